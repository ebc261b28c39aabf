"""Runs products with epilogues whose operands touch inaccessible pages; a program: a fault ends only itself.

    python guarded_epilogue.py {f32|f64|i8} TURN

In `make test` an epilogue meets one combination of layouts, and the next one with the next turn. Vectors,
residual and C lie beside a guard page at either end; what must not be read holds NaN. The row is the host's,
or that of TILEWRIGHT_ISA.
"""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from shares import share
from support import Array, GuardedMemory, filled

import tilewright as tw

#: One tile and its tails, dot products, one deep row, few rows, several depth blocks.
SIZES = (
    *((1, 1, 3), (30, 1, 40), (1, 70, 64), (5, 300, 20), (3, 17, 2000), (13, 33, 9), (12, 32, 16)),
    *((29, 71, 5), (61, 47, 1100), (2, 5, 0), (15, 16, 7), (25, 95, 30)),
)
#: Rows of steps by element type: light ones, which whole tiles take in registers, and others.
EPILOGUES = {
    "f32": (
        "bias,relu",
        "bias:row,residual,scale,clamp:-9:9",
        "bias,residual,gelu",
        "scale:row,scale:column",
    ),
    "f64": ("bias,relu", "residual,tanh"),
    "i8": ("bias,scale:column,residual", "scale:row,saturate"),
}
LAYOUTS = (("row", "row", "row"), ("col", "row", "col"), ("row", "strided", "strided"))
#: Bytes for what lies between lines, beside twice an operand.
MARGIN = 4 << 10


def placed(memory: GuardedMemory, array: Array, layout: str, *, at_end: bool) -> Array:
    """A copy of a matrix beside a guard, with a gap between its lines where it has several."""
    size, (rows, columns) = array.itemsize, array.shape
    steps = {
        "row": ((columns + 3 * (rows > 1)) * size, size),
        "col": (size, (rows + 3 * (columns > 1)) * size),
        "strided": ((2 * columns + 3) * size, 2 * size),
    }
    return memory.place(array, steps[layout], at_end=at_end)


def run(kernel: Any, layouts: tuple[str, ...], sizes: tuple[int, int, int], *, at_end: bool) -> None:
    """One product and its checks."""
    problem = kernel.problem
    m, n, k = sizes
    shapes = ((m, k), (k, n), (m, n))
    dense = [filled(shape, one.dtype.numpy, 3) for one, shape in zip(problem.operands, shapes, strict=True)]
    steps = {}
    for operand in problem.step_operands:
        shape = (
            m if operand.rows is None else operand.rows,
            n if operand.columns is None else operand.columns,
        )
        steps[operand.name] = filled(shape, operand.dtype.numpy, 5)
    expected = problem.reference(*dense[:2], operands=list(steps.values()))
    memories = [GuardedMemory(3 * array.nbytes + MARGIN) for array in (*dense, *steps.values())]
    a, b, c = (
        placed(memory, array, layout, at_end=at_end)
        for memory, array, layout in zip(memories, dense, layouts, strict=False)
    )
    given = {
        name: placed(memory, array, layouts[2] if "residual" in name else "row", at_end=at_end)
        for (name, array), memory in zip(steps.items(), memories[3:], strict=True)
    }
    for name, array in given.items():
        if array.shape[1] == 1 and array.shape[0] > 1:  # a column of adjacent elements
            memory = memories[3 + list(given).index(name)]
            given[name] = memory.place(steps[name], (array.itemsize, array.itemsize), at_end=at_end)
    if c.dtype.kind == "f":
        c[...] = np.nan
    before = memories[2].outside(c)
    kernel(a, b, c, **given)
    np.testing.assert_allclose(c.astype(float), expected, rtol=1e-5, atol=1e-3, err_msg=kernel.name)
    if not np.array_equal(memories[2].outside(c), before):
        raise SystemExit(f"bytes outside C changed: {kernel.name} {sizes}")


def main(dtype: str, turn: str) -> None:
    """Runs the epilogues of one element type and prints the number of products."""
    count = 0
    for epilogue, chosen in (
        (epilogue, layouts)
        for number, epilogue in enumerate(EPILOGUES[dtype])
        for layouts in share(LAYOUTS, len(LAYOUTS), number + int(turn))
    ):
        out = "i8" if "saturate" in epilogue else "f32" if dtype == "i8" else dtype
        a, b, c = chosen
        kernel = tw.compile(tw.Gemm(dtype=dtype, out_dtype=out, a=a, b=b, c=c, epilogue=epilogue))
        for sizes in SIZES:
            for at_end in (False, True):
                run(kernel, chosen, sizes, at_end=at_end)
                count += 1
    sys.stdout.write(f"{count} products\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
