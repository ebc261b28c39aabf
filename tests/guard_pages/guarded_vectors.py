"""Runs products of one or few rows or columns whose operands touch inaccessible pages; a program.

    python guarded_vectors.py {matmul|fixed} {f32|f64}

The row is the host's, or that of TILEWRIGHT_ISA. `matmul` takes the kernel behind `matmul`, `fixed` kernels
of the layouts of each case. The exit status says whether every byte outside C was left alone and every
product was right.
"""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

from guarded import Bench, Case
from shares import share

import tilewright as tw
from tilewright.machine.isa import SUMS_OF_A_CHAIN
from tilewright.macro.cost import STREAMED_ROWS
from tilewright.ops.gemm.nest import DEPTH_OF_COLUMNS, LINES_BY_LANES_OF_COLUMNS
from tilewright.ops.gemm.streaming import (
    DOT_DEPTH,
    DOT_ROWS,
    STREAMED_VECTORS,
    SUMS_BYTES,
    most_few,
)

COEFFICIENTS = ((1.0, 0.0), (0.5, 0.0), (1.0, 1.0), (-2.0, 0.5), (0.0, 0.5), (0.0, 0.0), (1.0, 0.0))

#: Elements that a product of one row reads of B, at most: the sizes below multiply.
MOST_ELEMENTS = 140_000


def around(*sizes: int) -> list[int]:
    """Each size with its neighbours."""
    return sorted({size + offset for size in sizes for offset in (-1, 0, 1) if size + offset > 0})


class Sizes:
    """Sizes (m, n, k) of the products that read a matrix once, around every unit that they are cut into.

    Parameters
    ----------
    kernel : a kernel of `auto`, for its row, register tile and limits.
    """

    def __init__(self, kernel: Any) -> None:
        dtype, machine = kernel.problem.dtype, kernel.machine
        self.lanes = machine.isa.lanes(dtype)
        self.width, self.block = STREAMED_VECTORS * self.lanes, SUMS_BYTES // dtype.size
        self.kc, self.most = kernel.blocking.kc, most_few(machine.isa)
        self.far = machine.l2.size // kernel.types.b.size

    def dots(self) -> Iterator[tuple[int, int, int]]:
        """One column; the deep ones with few rows."""
        lanes = self.lanes
        for k in (0, *around(2, lanes, 4 * lanes, 5 * lanes, 8 * lanes), 9 * lanes + lanes // 2):
            yield from ((m, 1, k) for m in (*range(1, 2 * DOT_ROWS + 2), 37))
        for k in (*around(DOT_DEPTH, DOT_DEPTH + 4 * lanes), 2 * DOT_DEPTH + lanes + 3):
            yield from ((m, 1, k) for m in (1, DOT_ROWS - 1, DOT_ROWS, DOT_ROWS + 1, 2 * DOT_ROWS + 3))

    def turned(self) -> Iterator[tuple[int, int, int]]:
        """One row up to one too many, of depths around the parts of lines and the chains of sums."""
        lanes, most = self.lanes, self.most
        depths = {*around(4, lanes, SUMS_OF_A_CHAIN, self.kc), 2 * self.kc + 9}
        for number, k in enumerate((0, *sorted(depths))):
            columns = (lanes, *around(2 * lanes, 5 * lanes + 3))
            yield from ((1, n, k) for n in columns)
            counts = sorted({2, 3, most - 1, most, most + 1} - {0, 1})
            yield from ((m, n, k) for m in counts for n in share(columns, 2, number + m))

    def few_columns(self) -> Iterator[tuple[int, int, int]]:
        """Two columns up to one too many, rows around whole vectors of them."""
        lanes, least = self.lanes, max(1, LINES_BY_LANES_OF_COLUMNS // self.lanes)
        depths = {*around(DEPTH_OF_COLUMNS, SUMS_OF_A_CHAIN), self.kc + 3}
        for number, k in enumerate(sorted(depths)):
            rows = (*around(least, least + lanes), least + 2 * lanes + 3)
            counts = sorted({2, 3, lanes - 1, lanes + 1, self.most - 1, self.most, self.most + 1} - {0, 1})
            yield from ((m, n, k) for n in counts for m in share(rows, 3, number + n))

    def one_row(self) -> Iterator[tuple[int, int, int]]:
        """One row of a few columns up to several blocks of sums."""
        width, block = self.width, self.block
        columns = {*around(3, self.lanes, width, 2 * width, block, block + width), 2 * block + width + 3}
        for n in sorted(columns - {1}):
            depths = (0, *around(2, 8, 16), 37, *around(self.kc), 2 * self.kc + 9)
            yield from ((1, n, k) for k in depths if n * k <= MOST_ELEMENTS)

    def few_rows(self) -> Iterator[tuple[int, int, int]]:
        """Two rows up to one too many, over a B that the second-level cache does not hold."""
        columns = (*around(self.width), 3 * self.width + 5, *around(self.block), 2 * self.block + self.width)
        for number, n in enumerate(columns):
            least = self.far // n + 1
            yield from ((m, n, least + (3 * number + m) % 8) for m in range(2, STREAMED_ROWS + 2))


#: Layouts of a, b and c that lead to each kind of product.
LAYOUTS = {
    "dots": (("row", "dense col", "dense"), ("dense", "dense col", "row"), ("row", "dense col", "strided")),
    "turned": (("row", "col", "row"), ("strided", "dense col", "dense"), ("reversed", "col", "dense")),
    "few_columns": (("row", "row", "row"), ("dense", "col", "dense"), ("row", "reversed", "dense")),
    "one_row": (("row", "row", "row"), ("strided", "dense", "dense")),
    "few_rows": (("row", "row", "row"), ("col", "dense", "dense"), ("reversed", "row", "dense")),
}
#: Layouts of the transposed matrix.
MIRRORED = {"row": "col", "col": "row", "dense": "dense col", "dense col": "dense"}
#: Layouts as problems name them.
WORDS = {"dense": "row", "dense col": "col", "reversed": "strided"}


def mirrored(case: Case) -> Case:
    """The transposed product: all three are turned, and the factors change places."""
    (m, n, k), (a, b, c) = case.sizes, case.layouts
    a, b, c = (MIRRORED.get(layout, layout) for layout in (b, a, c))
    return case._replace(sizes=(n, m, k), layouts=(a, b, c))


def cases(kernel: Any) -> Iterator[tuple[str, Case]]:
    """Every size with every layout that leads to its kind; ends and coefficients take turns.

    In `make test` layouts take turns too, so that a size meets one of them.

    Of one column there is no mirror: a row has the order of all rows.
    """
    coefficients, sides = itertools.cycle(COEFFICIENTS), (False, True)
    ends = itertools.cycle(itertools.product(sides, sides, sides))
    for kind, layouts in LAYOUTS.items():
        for number, size in enumerate(getattr(Sizes(kernel), kind)()):
            for layout in share(layouts, len(layouts), number // 3):  # each third size is mirrored
                case = Case(size, layout, next(ends), *next(coefficients))
                yield kind, mirrored(case) if kind != "dots" and number % 3 == 0 else case


@cache
def compiled(a: str, b: str, c: str, dtype: str) -> Any:
    """The kernel of three layouts."""
    kernel: Any = tw.compile(tw.Gemm(dtype=dtype, a=a, b=b, c=c))
    return kernel


def fixed(case: Case, dtype: str) -> Any:
    """The kernel of the layouts of a case."""
    a, b, c = (WORDS.get(layout, layout) for layout in case.layouts)
    return compiled(a, b, c, dtype)


def main(how: str, dtype: str) -> None:
    """Runs one group of cases and prints the number of each kind."""
    kernel = compiled("strided", "strided", "strided", dtype)
    largest = 5 * max(MOST_ELEMENTS, Sizes(kernel).far)  # few rows, each with a gap
    bench = Bench(kernel.problem.dtype.numpy, (largest, largest, MOST_ELEMENTS))
    counts: Counter[str] = Counter()
    for kind, case in cases(kernel):
        bench.run(case, fixed(case, dtype) if how == "fixed" else None)
        counts[kind] += 1
    sys.stdout.write(" ".join(f"{kind} {count}" for kind, count in counts.items()) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
