"""An example call of a kernel: operands of any sizes, as tight as their layouts allow."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from tilewright.compiler.example import OPEN_SIZE, Example, View
from tilewright.compiler.kernel import Kernel
from tilewright.compiler.operation import operation_of
from tilewright.ir.nodes import Program
from tilewright.spec.problem import Layout, Operand

#: Lengths that are other than `OPEN_SIZE`: batches of one matrix, rows of a few tasks.
_LENGTHS = {"batch": 1, "outer": 1, "rows": 64, "columns": 1000, "lanes": 256, "depth": 96, "turns": 4}


def matrix_example(kernel: Kernel, wanted: Mapping[str, int]) -> Example:
    """Operands as tight as their layouts allow; open axes have the length that is wanted, or `OPEN_SIZE`.

    Operations that declare no operands are given matrices of rows × columns, by the names of their sizes.

    Examples
    --------
    >>> import tilewright as tw
    >>> found = matrix_example(tw.compile(tw.Gemm(64, None, 32), "znver4"), {"n": 48})
    >>> found.shape, found.sizes["rs_b"], found.views["c"].rows
    ({'m': 64, 'k': 32, 'n': 48}, 48, 64)
    """
    operands = [operand for operand in kernel.problem.operands if operand.axes]
    program = kernel.nest
    if not operands:
        return _rows_example(program, wanted)
    shape = {
        axis: wanted.get(axis, OPEN_SIZE) if size is None else size
        for operand in operands
        for axis, size in operand.sizes
    }
    sizes, views = dict(shape), {}
    for operand in operands:
        rows, columns = (shape[axis] for axis in operand.axes)
        row, column = strides_of(operand, rows, columns)
        name = operand.name
        sizes |= {f"rs_{name}": row, f"cs_{name}": column, f"ld_{name}": max(row, column)}
        sizes |= {f"br_stride_{name}": rows * columns}
        if operand.layout is not Layout.PACKED:
            axes = operand.axes[0], operand.axes[1]
            views[name] = View(rows, columns, row, column, axes)
    known = {name: sizes.get(name, _stride(name, shape)) for name in program.sizes}
    return Example(shape, known, {}, views)


def strides_of(operand: Operand, rows: int, columns: int) -> tuple[int, int]:
    """Strides of the rows and columns of an operand without gaps."""
    return (1, rows) if operand.layout is Layout.COL else (columns, 1)


def _rows_example(program: Program, wanted: Mapping[str, int]) -> Example:
    """Matrices of rows × columns, all elements of which are adjacent."""
    shape = {name: wanted.get(name, _LENGTHS[name]) for name in program.sizes if name in _LENGTHS} or {
        name: wanted.get(name, OPEN_SIZE) for name in program.sizes if "_" not in name
    }
    sizes = {name: shape.get(name, _stride(name, shape)) for name in program.sizes}
    rows, columns = list(shape.values())[-2:] if len(shape) > 1 else (1, prod(shape.values()))
    axes = list(shape)[-2:]
    view = View(rows, columns, columns, 1, (axes[0], axes[-1]) if axes else ("rows", "columns"))
    floats = [one.name for one in program.arguments if not one.dtype.is_integer or one.dtype.size < 8]
    return Example(shape, sizes, {}, dict.fromkeys(floats, view))


def _stride(name: str, shape: Mapping[str, int]) -> int:
    """A stride by its name: of adjacent columns, from row to row, or from matrix to matrix."""
    lengths = list(shape.values())
    _, _, kind = name.rpartition("_")
    if kind in ("col", "column", "cs"):
        return 1
    if kind in ("line", "row", "stride"):
        return lengths[-1] if name != "depth_stride" else 1
    return prod(lengths[-2:])


def example_of(kernel: Kernel, wanted: Mapping[str, int]) -> Example:
    """The example of an operation's own, or `matrix_example`."""
    own = operation_of(kernel.problem).example
    found: Example = (own or matrix_example)(kernel, wanted)
    return found
