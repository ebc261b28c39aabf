"""Runs NumPy's products under the installation with operands that touch inaccessible pages; a program.

    python guarded_loops.py {letters of NumPy's types}

Every operand has its outermost byte beside a guard page, below or above it, with steps of either sign and
gaps between its elements, in batches and alone. The exit status says whether every result was NumPy's and
every byte around `out` was left alone.
"""

from __future__ import annotations

import itertools
import sys

import numpy as np
from installed_loops import assert_close, numbers, taking_everything
from support import GuardedMemory

#: Sizes (m, n, k) around those of register tiles, of one row or column, and of more than one block.
SIZES = ((1, 1, 1), (1, 17, 9), (19, 1, 33), (6, 16, 8), (7, 17, 5), (13, 31, 40), (40, 3, 70), (2, 300, 20))

#: Of each array: the order of its axes in memory, gaps, and which run backwards.
LAYOUTS = tuple(itertools.product(("row", "column"), (1, 2), (False, True)))


def steps_of(shape: tuple[int, ...], size: int, layout: tuple[str, int, bool]) -> tuple[int, ...]:
    """Byte strides of an array with a layout."""
    order, gap, backwards = layout
    axes = list(range(len(shape)))
    if order == "column":
        axes[-2:] = axes[:-3:-1]
    steps = [0] * len(shape)
    step = size * gap
    for axis in reversed(axes):
        steps[axis] = -step if backwards else step
        step *= shape[axis]
    return tuple(steps)


def check(letter: str, sizes: tuple[int, int, int], batch: tuple[int, ...], turn: int) -> None:
    """Every function with one choice of layouts, each operand at either end of its pages."""
    m, n, k = sizes
    rng = np.random.default_rng(turn)
    size = np.dtype(letter).itemsize
    for name, first, second, third in (
        ("matmul", (m, k), (k, n), (m, n)),
        ("matvec", (m, k), (k,), (m,)),
        ("vecmat", (k,), (k, n), (n,)),
        ("vecdot", (k,), (k,), ()),
    ):
        function = getattr(np, name, None)
        if function is None:
            continue
        shapes = ((*batch, *first), (*batch, *second), (*batch, *third))
        a, b = (numbers(rng, shape, letter) for shape in shapes[:2])
        expected = np.asarray(function(a, b))
        magnitude = function(np.abs(a).astype(float), np.abs(b).astype(float))
        for at_end in (False, True):
            places, memories = [], []
            for number, array in enumerate((a, b, np.zeros(shapes[2], letter))):
                layout = LAYOUTS[(turn * 3 + number * 5) % len(LAYOUTS)]
                steps = steps_of(array.shape, size, layout) if array.ndim else ()
                memory = GuardedMemory(4096 + 4 * array.nbytes)
                places.append(memory.place(array, steps, at_end=at_end))
                memories.append(memory)
            before = memories[2].outside(places[2])
            with taking_everything():
                function(places[0], places[1], out=places[2])
            assert_close(places[2], expected, magnitude, k)
            np.testing.assert_array_equal(memories[2].outside(places[2]), before)


def main(letters: str) -> None:
    """All sizes, alone and in batches."""
    count = 0
    for letter in letters:
        for turn, (sizes, batch) in enumerate(itertools.product(SIZES, ((), (3,)))):
            check(letter, sizes, batch, turn)
            count += 1
    sys.stdout.write(f"{count} cases of {letters}, every result right, nothing else touched\n")


if __name__ == "__main__":
    main(sys.argv[1])
