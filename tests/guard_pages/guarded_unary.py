"""Runs unary kernels whose operands touch inaccessible pages; a program, so that a fault ends only itself.

    python guarded_unary.py {f32|f64|i8|i16|c128}

The row is the host's, or that of TILEWRIGHT_ISA. Kernels with sizes given at run time meet every pair of
sizes around the widths of vectors and squares, with and without gaps between lines, on every path: near,
far and streaming. The exit status says whether every byte outside B was left alone and every result was
right.
"""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import itertools
import sys
from typing import Any

import numpy as np
from shares import EVERY_TEST_RUNS, share
from support import Array, GuardedMemory
from unary_cuts import Function, compile_cut

from tilewright.ops.unary.problem import Unary

SIZES = (1, 2, 3, 5, 7, 8, 9, 12, 15, 16, 17, 31, 32, 33, 47, 64, 70)
GAPS = (0, 3)
#: Of the pairs of sizes, `make test` runs one in so many; the next kernel takes the next ones.
SHARED = 10


class Bench:
    """Guarded memory for A and B."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self.memories = [GuardedMemory(96 * 1024) for _ in range(2)]
        content = np.random.default_rng(0).integers(-4, 5, (70, 70))
        self.content = np.where(content == 0, 4, content).astype(dtype)

    def run(
        self, problem: Unary, function: Function, sizes: tuple[int, int], gap: int, *, at_end: bool
    ) -> None:
        """One call and its checks."""
        (m, n), size = sizes, self.dtype.itemsize
        by_rows = problem.b.value == "row"
        ld_a, ld_b = m + gap, (n if by_rows else m) + gap
        given = self.content[:m, :n]
        a = self.memories[0].place(given, (size, ld_a * size), at_end=at_end)
        steps = (ld_b * size, size) if by_rows else (size, ld_b * size)
        b = self.memories[1].place(np.zeros_like(given), steps, at_end=at_end)
        before = self.memories[1].outside(b)
        function(address(a), address(b), ld_a, ld_b, m, n)
        if not np.allclose(b, problem.reference(given), rtol=1e-6, atol=0):
            raise SystemExit(f"wrong result: {problem} {m}x{n} gap {gap}")
        if not np.array_equal(self.memories[1].outside(b), before):
            raise SystemExit(f"bytes outside B changed: {problem} {m}x{n} gap {gap}")


def address(array: Array) -> int:
    """Where an array starts."""
    return int(array.__array_interface__["data"][0])


#: Cuts that send every matrix along one path.
PATHS: tuple[dict[str, int], ...] = (
    {},
    {"near": 1},
    {"near": 1, "stream_from": 1},
    {"near": 1, "block": 16},
    {"near": 1, "block": 7, "wide": 11},
)


def main(dtype: str) -> None:
    """Every pair of sizes; operations and gaps take turns.

    In `make test` each operation meets every path in one order of B, which is the other one on the next path.
    """
    floating = dtype.startswith("f")
    ops = ("identity", "reciprocal", "zero", "gelu") if floating else ("identity", "zero")
    done = 0
    kernels = [
        (op, b, changed)
        for (i, op), (j, b), (k, changed) in itertools.product(
            enumerate(ops), enumerate(("col", "row")), enumerate(PATHS)
        )
        if EVERY_TEST_RUNS or (i + j + k) % 2 == 0
    ]
    for turn, (op, b, changed) in enumerate(kernels):
        problem = Unary(op, dtype=dtype, b=b)
        bench = Bench(problem.dtype.numpy)
        function = compile_cut(problem, **changed)
        for number, sizes in share(enumerate(itertools.product(SIZES, SIZES)), SHARED, turn + turn // SHARED):
            for at_end in (False, True):
                bench.run(problem, function, sizes, GAPS[number % 2], at_end=at_end)
                done += 1
    sys.stdout.write(f"{done} calls\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
