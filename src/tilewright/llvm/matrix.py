"""LLVM's matrix intrinsics: the product of two small matrices in registers, and the pass that lowers it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import llvmlite.binding as llvm

from tilewright.llvm.build import Function
from tilewright.llvm.values import (
    INT1,
    INT32,
    INT64,
    POINTER,
    VOID,
    Type,
    Value,
    element_of,
    int32,
    is_float,
    poison,
    vector_of,
)
from tilewright.preparing import once

#: What the names of all matrix intrinsics begin with, and that of the one that multiplies.
PREFIX = "@llvm.matrix."
MULTIPLY = f"{PREFIX}multiply."


def column_of(f: Function, elements: Sequence[Value]) -> Value:
    """A vector of scalars."""
    kind = vector_of(elements[0].type, len(elements))
    column = poison(kind)
    for lane, element in enumerate(elements):
        column = f.emit(kind, f"insertelement {column.typed}, {element.typed}, i32 {lane}")
    return column


def multiply_matrices(f: Function, left: Value, right: Value, sizes: tuple[int, int, int]) -> Value:
    """left · right, all of them flat vectors of columns; sizes are rows, inner, columns.

    What is added to a product of floats may be fused with it, as C compilers do by default
    (-ffp-contract=on).

    Source: LLVM Language Reference, llvm.matrix.multiply; Kuzma et al. 2023, Listing 1.
    """
    rows, inner, columns = sizes
    assert (left.type.lanes, right.type.lanes) == (rows * inner, inner * columns)
    kind = vector_of(element_of(left.type), rows * columns)
    name = f"llvm.matrix.multiply.{kind.suffix}.{left.type.suffix}.{right.type.suffix}"
    intrinsic = f.module.declare(name, kind, (left.type, right.type, INT32, INT32, INT32))
    operands = (left, right, *(int32(size) for size in sizes))
    arguments = ", ".join(value.typed for value in operands)
    return f.emit(kind, f"call {_contract(left)}{kind.text} {intrinsic.text}({arguments})")


class MatrixAt(NamedTuple):
    """A matrix in memory: its first element, elements from one row or column to the next, which of both."""

    pointer: Value
    leading: Value
    rows_adjacent: bool


def load_matrix(f: Function, element: Type, place: MatrixAt, sizes: tuple[int, int]) -> Value:
    """A matrix of rows and columns as a flat vector of columns.

    Source: LLVM Language Reference, llvm.matrix.column.major.load.
    """
    rows, columns = sizes
    kind = vector_of(element, rows * columns)
    name = f"llvm.matrix.column.major.load.{kind.suffix}.i64"
    intrinsic = f.module.declare(name, kind, (POINTER, INT64, INT1, INT32, INT32))
    high, wide = (rows, columns) if place.rows_adjacent else (columns, rows)
    found = f.call(intrinsic, [place.pointer, place.leading, Value(INT1, "false"), int32(high), int32(wide)])
    return found if place.rows_adjacent else _transposed(f, found, (columns, rows))


def store_matrix(f: Function, value: Value, place: MatrixAt, sizes: tuple[int, int]) -> None:
    """Writes a flat vector of columns to where a matrix of rows and columns stands.

    Source: LLVM Language Reference, llvm.matrix.column.major.store.
    """
    rows, columns = sizes
    name = f"llvm.matrix.column.major.store.{value.type.suffix}.i64"
    intrinsic = f.module.declare(name, VOID, (value.type, POINTER, INT64, INT1, INT32, INT32))
    if not place.rows_adjacent:
        value, (rows, columns) = _transposed(f, value, sizes), (columns, rows)
    given = [value, place.pointer, place.leading, Value(INT1, "false"), int32(rows), int32(columns)]
    f.call(intrinsic, given)


def _transposed(f: Function, value: Value, sizes: tuple[int, int]) -> Value:
    """The transpose of a matrix of so many rows and columns."""
    name = f"llvm.matrix.transpose.{value.type.suffix}"
    intrinsic = f.module.declare(name, value.type, (value.type, INT32, INT32))
    return f.call(intrinsic, [value, *map(int32, sizes)])


def add_product(f: Function, acc: Value, product: Value) -> Value:
    """acc + product, which may become one multiply-add."""
    if not is_float(acc.type):
        return f.plus(acc, product)
    return f.emit(acc.type, f"fadd contract {acc.typed}, {product.text}")


def _contract(value: Value) -> str:
    return "contract " if is_float(value.type) else ""


@once
def _enable() -> None:
    """LLVM's pipelines have the pass only then; once per process, as options may not be given twice."""
    llvm.set_option("", "-enable-matrix")


def lower_matrices(module: Any, target_machine: Any) -> None:
    """Replaces the matrix intrinsics of a module by vector code; instruction selection would abort.

    The pipeline of -O0 holds this pass and no optimisation, so the rest of the module stays what it was.
    Those of -O1 to -O3 make the same inner loops of it (docs/decisions/014-matrix-intrinsic.md).
    """
    _enable()
    builder = llvm.create_pass_builder(target_machine, llvm.create_pipeline_tuning_options(speed_level=0))
    builder.getModulePassManager().run(module, builder)
