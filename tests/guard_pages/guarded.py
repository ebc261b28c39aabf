"""Runs products whose operands touch inaccessible pages; a program, so that a fault ends only itself.

    python guarded.py {matmul|strided|fixed} {f32|f64} {auto|tiling|packing}

The row is the host's, or that of TILEWRIGHT_ISA. The exit status says whether every byte outside C was
left alone and every product was right.
"""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from shares import EVERY_TEST_RUNS, share
from support import Array, GuardedMemory, filled

import tilewright as tw
from tilewright.compiler.kernel import Kernel
from tilewright.macro.blocking import Blocking

#: Elements between the end of one row and the beginning of the next.
PADDING = 3
DEPTHS = (1, 7, 8, 9, 2, 16, 3, 17, 33)
#: Elements of the largest operand of a group, gaps and strides included.
ELEMENTS = 24 << 10
LAYOUTS = ("row", "col", "strided", "reversed")
COEFFICIENTS = ((1.0, 0.0), (2.0, 1.0), (1.0, -0.5))


class Case(NamedTuple):
    """One product: its sizes, the layout of each operand, and which end of each is at a guard."""

    sizes: tuple[int, int, int]
    layouts: tuple[str, str, str]
    at_end: tuple[bool, bool, bool]
    alpha: float
    beta: float


def tails(tile: int, lanes: int) -> list[int]:
    """Sizes with every tail: all up to one tile and one vector, then around the next tiles."""
    first = range(1, tile + 2)
    around_vectors = (size + offset for size in range(tile, 2 * tile + lanes, lanes) for offset in (-1, 1))
    return sorted({*first, *around_vectors, 2 * tile, 2 * tile + 3, 2 * tile + lanes + 3})


def few_tails(tile: int, lanes: int) -> list[int]:
    """A sample of `tails` that still has each tail of one vector."""
    close = {1, 2, 3, lanes - 1, lanes, lanes + 1, tile - 1, tile, tile + 1, tile + 3, 2 * tile + 3}
    return sorted(size for size in close | set(range(tile + 1, tile + lanes, 3)) if size > 0)


def steps(rows: int, columns: int, layout: str, size: int) -> tuple[int, int]:
    """Byte strides of a layout, with padding between its lines unless it is dense."""
    match layout:
        case "row":
            return (columns + PADDING) * size, size
        case "col":
            return size, (rows + PADDING) * size
        case "dense":
            return columns * size, size
        case "dense col":
            return size, rows * size
        case "strided":
            return (2 * columns + PADDING) * size, 2 * size
        case "reversed":
            return -(columns + PADDING) * size, -size
        case _:
            raise ValueError(layout)


def cases(blocking: Blocking, lanes: int, layouts: tuple[tuple[str, ...], ...]) -> Iterator[Case]:
    """Pairs of tails with combinations of layouts; depth, ends and coefficients take turns.

    Each operand in turn gets the complete list of its tails; the other sizes then take a sample. A pair of
    tails meets every combination of layouts in `make test-all`; in `make test` it meets each layout of each
    operand, and the next pairs meet them in other combinations.
    """
    rows, columns = tails(blocking.mr, 1), tails(blocking.nr, lanes)
    few_rows, few_columns = few_tails(blocking.mr, 1), few_tails(blocking.nr, lanes)
    pairs = {*itertools.product(rows, few_columns[::3]), *itertools.product(few_rows[::3], columns)}
    depths, coefficients = itertools.cycle(DEPTHS), itertools.cycle(COEFFICIENTS)
    for number, (m, n) in enumerate(sorted(pairs)):
        for a, b, c in combinations(layouts, number):
            for end in (False, True):
                alpha, beta = next(coefficients)
                yield Case((m, n, next(depths)), (a, b, c), (end, end, end), alpha, beta)


def combinations(layouts: tuple[tuple[str, ...], ...], number: int) -> list[tuple[str, ...]]:
    """Layouts of the operands of one pair of sizes.

    In `make test` each layout of each operand is met once. Sixteen numbers in a row meet all combinations of
    four layouts.
    """
    if EVERY_TEST_RUNS:
        return list(itertools.product(*layouts))
    shifts = (0, number, number // len(layouts[1]))
    return [
        tuple(of_one[(turn + shift) % len(of_one)] for of_one, shift in zip(layouts, shifts, strict=True))
        for turn in range(max(map(len, layouts)))
    ]


def latin_square(layouts: tuple[str, ...], turn: int) -> list[tuple[str, str, str]]:
    """Layouts of three operands: every pair of two operands' layouts; all combinations in `make test-all`."""
    found = itertools.product(enumerate(layouts), repeat=3)
    return [
        (a, b, c) for (i, a), (j, b), (k, c) in found if EVERY_TEST_RUNS or (i + j + k) % len(layouts) == turn
    ]


class Bench:
    """Guarded memory for the three operands.

    Parameters
    ----------
    elements : of the largest A, B and C, with the gaps between their lines.
    """

    def __init__(self, dtype: np.dtype[np.generic], elements: tuple[int, int, int]) -> None:
        self.dtype = dtype
        self.memories = [GuardedMemory(size * dtype.itemsize) for size in elements]
        self.contents = [filled((size,), dtype, seed) for seed, size in enumerate(elements)]

    def place(self, case: Case) -> list[Array]:
        """The operands of a case, each beside its guard."""
        m, n, k = case.sizes
        return [
            memory.place(
                content[: rows * columns].reshape(rows, columns),
                steps(rows, columns, layout, self.dtype.itemsize),
                at_end=end,
            )
            for memory, content, (rows, columns), layout, end in zip(
                self.memories, self.contents, ((m, k), (k, n), (m, n)), case.layouts, case.at_end, strict=True
            )
        ]

    def run(self, case: Case, kernel: Kernel | None) -> None:
        """One product and its checks; beta = 0 finds NaN in C, alpha = 0 in A and B."""
        a, b, c = self.place(case)
        expected = case.alpha * (np.array(a) @ np.array(b)) + case.beta * np.array(c)
        if case.beta == 0:
            c[...] = np.nan
        if case.alpha == 0:
            a[...], b[...] = np.nan, np.nan
        before = self.memories[2].outside(c)
        scalars: dict[str, Any] = (
            {} if (case.alpha, case.beta) == (1, 0) else {"alpha": case.alpha, "beta": case.beta}
        )
        if kernel is None:  # without scalars through the native entry
            tw.matmul(a, b, out=c, **scalars)
        else:
            kernel(a, b, c, **scalars)
        if not np.array_equal(c, expected):
            raise SystemExit(f"wrong product: {case} {kernel}")
        if not np.array_equal(self.memories[2].outside(c), before):
            raise SystemExit(f"bytes outside C changed: {case} {kernel}")


def main(how: str, dtype: str, strategy: str) -> None:
    """Runs one group of cases and prints their number."""
    bench = Bench(tw.Gemm(dtype=dtype).dtype.numpy, (ELEMENTS, ELEMENTS, ELEMENTS))
    strided = tw.compile(tw.Gemm(dtype=dtype, a="strided", b="strided", c="strided", strategy=strategy))
    lanes = strided.machine.isa.lanes(strided.problem.dtype)
    count = 0
    if how == "fixed":
        turn = (("f32", "tiling"), ("f32", "packing"), ("f64", "auto")).index((dtype, strategy))
        for number, (a, b, c) in enumerate(latin_square(("row", "col", "strided"), turn)):
            kernel = tw.compile(tw.Gemm(dtype=dtype, a=a, b=b, c=c, strategy=strategy))
            # 5 has no factor in common with what takes turns: ends, coefficients, depths.
            for case in share(cases(strided.blocking, lanes, ((a,), (b,), (c,))), 5, number):
                bench.run(case, kernel)
                count += 1
    else:
        kernel_or_none = None if how == "matmul" else strided
        for case in cases(strided.blocking, lanes, (LAYOUTS, LAYOUTS, LAYOUTS)):
            bench.run(case, kernel_or_none)
            count += 1
    sys.stdout.write(f"{count} products\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
