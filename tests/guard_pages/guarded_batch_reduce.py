"""Runs batch-reduce kernels whose operands touch inaccessible pages; a program, as a fault ends only itself.

    python guarded_batch_reduce.py {f32|f64} TURN

The row is the host's, or that of TILEWRIGHT_ISA. Sizes cover every tail of m, n and k from 1 to 40. A tail of
m meets two combinations of layouts, and others with another turn; in `make test` a turn has every remainder
of m by 8, and the next one the other sizes. The exit status says whether every byte outside C was left alone
and every product was right.
"""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import ctypes
import itertools
import sys
from typing import Any

import numpy as np
from shares import EVERY_TEST_RUNS
from support import Array, GuardedMemory, filled

import tilewright as tw

LARGEST = 40
#: Elements between lines, and between matrices.
PADDING = 3


def steps(shape: tuple[int, ...], layout: str, size: int) -> tuple[int, ...]:
    """Byte strides of a batch of matrices."""
    _, rows, columns = shape
    length, lines = (columns, rows) if layout == "row" else (rows, columns)
    leading = length + PADDING
    step = lines * leading + PADDING
    inner = (leading, 1) if layout == "row" else (1, leading)
    return tuple(stride * size for stride in (step, *inner))


class Bench:
    """Guarded memory for the operands and for two arrays of pointers."""

    def __init__(self) -> None:
        self.memories = [GuardedMemory(64 * 1024) for _ in range(3)]
        self.pointers = [GuardedMemory(64) for _ in range(2)]

    def run(self, kernel: Any, *, at_end: bool) -> None:
        """One product and its checks."""
        problem = kernel.problem
        m, n, k, count = problem.m, problem.n, problem.k, problem.count
        shapes = ((count, m, k), (count, k, n), (1, m, n))
        layouts = (problem.a.value, problem.b.value, problem.c.value)
        a, b, c = (
            memory.place(
                filled(shape, problem.dtype.numpy, seed),
                steps(shape, layout, problem.dtype.size),
                at_end=at_end,
            )
            for seed, (memory, shape, layout) in enumerate(zip(self.memories, shapes, layouts, strict=True))
        )
        expected = problem.reference(np.array(a), np.array(b), np.array(c[0]))
        if problem.beta == 0:
            c[...] = np.nan
        before = self.memories[2].outside(c)
        if problem.batch.value == "stride":
            kernel(a, b, c[0])
        else:
            self.call_with_pointers(kernel, (a, b, c), at_end=at_end)
        if not np.array_equal(c[0], expected):
            raise SystemExit(f"wrong product: {problem}")
        if not np.array_equal(self.memories[2].outside(c), before):
            raise SystemExit(f"bytes outside C changed: {problem}")

    def call_with_pointers(self, kernel: Any, arrays: tuple[Array, Array, Array], *, at_end: bool) -> None:
        """The C function; its arrays of pointers stand beside a guard page too."""
        a, b, c = arrays
        placed = [
            memory.place(np.array([self.address(each) for each in array]), (8,), at_end=at_end)
            for memory, array in zip(self.pointers, (a, b), strict=True)
        ]
        problem = kernel.problem
        leading = [
            array.strides[1 if operand.layout.value == "row" else 2] // array.itemsize
            for array, operand in zip(arrays, problem.operands, strict=True)
        ]
        function: Any = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 5)(kernel.address)
        function(*(self.address(each) for each in (*placed, c)), *leading, 0, 0)

    @staticmethod
    def address(array: Array) -> int:
        """Where an array starts."""
        return int(array.__array_interface__["data"][0])


def main(dtype: str, first: str) -> None:
    """Every tail of m, n and k; layouts, beta, batch and mode take turns."""
    each, apart = (4, 1) if EVERY_TEST_RUNS else (16, 8)
    bench = Bench()
    turns = itertools.count(3 * int(first))
    kernels = 0
    for number, (a, b, c) in enumerate(itertools.product(("row", "col"), repeat=3)):
        for m in range(1 + (number + apart * int(first)) % each, LARGEST + 1, each):
            turn = next(turns)
            n, k = 17 * m % 41, (7 * m + 2 * number) % LARGEST + 1  # all from 1 to 40
            problem = tw.BatchReduceGemm(
                m,
                n,
                k,
                turn // 4 % 2 + 1,
                dtype,
                a=a,
                b=b,
                c=c,
                beta=turn % 2,
                batch=("stride", "address")[turn // 2 % 2],
            )
            kernel = tw.compile(problem)
            for at_end in (False, True):
                bench.run(kernel, at_end=at_end)
            kernels += 1
    sys.stdout.write(f"{kernels} kernels\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
