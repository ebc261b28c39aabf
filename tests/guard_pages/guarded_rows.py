"""Runs functions of rows beside inaccessible pages; a program, so that a fault ends only itself.

    python guarded_rows.py {f32|f64|bf16|f16} TURN

The row is the host's, or that of TILEWRIGHT_ISA. In `make test` a function has one layout, near the caches
or past them; the other types and the next turn have the others. The exit status says whether every byte
outside y was left alone and every result was right.
"""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import itertools
import sys

import numpy as np
from other_cuts import kernel_with
from shares import share
from support import GuardedMemory

import tilewright as tw
from tilewright.compiler.kernel import Kernel
from tilewright.ops.rows.kernel import RowCall
from tilewright.ops.rows.problem import RowFunction
from tilewright.spec.row_functions import RowOp

COLUMNS = (1, 3, 7, 8, 15, 16, 17, 33, 64, 70, 129)
ROWS = (1, 3, 16, 17, 80)
GAPS = (0, 3, 16)


def past_caches(problem: RowFunction) -> Kernel:
    """The kernel of matrices past the caches, with the buffers of rows too short for some."""
    return kernel_with(problem, side=64, kept=64, stream_from=1)


def main(name: str, first: str) -> None:
    """Every function, layout, size and end of the pages."""
    done = 0
    memories = [GuardedMemory(128 * 1024) for _ in range(4)]
    turn = ("f32", "f64", "bf16", "f16").index(name)
    every = itertools.product(enumerate(RowOp), enumerate(("row", "col")))
    for (i, op), (j, layout) in share(every, 4, (turn ^ turn >> 1) + int(first) // 2):
        beside = ("weight", "bias")[: {RowOp.LAYER_NORM: 2, RowOp.RMS_NORM: 1}.get(op, 0)]
        problem = RowFunction(op, name, layout=layout, **dict.fromkeys(beside, name))
        dtype = problem.dtype.numpy
        for compiled in share((Kernel.compiled, past_caches), 2, i + j + int(first)):
            kernel = compiled(problem)
            for number, (columns, rows) in enumerate(itertools.product(COLUMNS, ROWS)):
                gap, at_end = GAPS[number % len(GAPS)], bool(number // len(GAPS) % 2)
                size = dtype.itemsize
                by_rows = layout == "row"
                steps = ((columns + gap) * size, size) if by_rows else (size, (rows + gap) * size)
                content = np.random.default_rng(columns).standard_normal((rows, columns)).astype(dtype)
                x = memories[0].place(content, steps, at_end=at_end)
                line = steps[0 if by_rows else 1] // size
                if op.reduces:
                    line_y = 1 + gap if by_rows else 0
                    y = memories[1].place(np.zeros(rows, dtype), ((line_y or 1) * size,), at_end=at_end)
                else:
                    line_y = line
                    y = memories[1].place(np.zeros_like(content), steps, at_end=at_end)
                vectors = [
                    memory.place(content[0], (size,), at_end=at_end) for memory in memories[2:][: len(beside)]
                ]
                before = memories[1].outside(y)
                sizes = (1, 1, rows, columns, 0, 0, line, 0, 0, line_y)
                RowCall(kernel, [x, y, *vectors], sizes, x.size, [0.5] if op.takes_eps else []).run()
                exact = problem.reference(content, *vectors, eps=0.5)
                if not np.allclose(y.astype(np.float64), exact, rtol=1e-2, atol=2e-3):
                    raise SystemExit(f"wrong result: {kernel.name} {rows}x{columns} gap {gap}")
                if not np.array_equal(memories[1].outside(y), before):
                    raise SystemExit(f"bytes outside y changed: {kernel.name} {rows}x{columns} gap {gap}")
                done += 1
    sys.stdout.write(f"{done} calls of {tw.machine().isa.name}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
