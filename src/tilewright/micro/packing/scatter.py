"""Stores by tables of offsets: adjacent columns go in vectors, the rest one by one."""

from __future__ import annotations

from tilewright.llvm.build import Function
from tilewright.llvm.convert import Convert
from tilewright.llvm.values import (
    INT64,
    Value,
    element_type,
    int64,
    memory_type,
    vector_type,
    zero,
)
from tilewright.machine.isa import Isa
from tilewright.micro.calls import Operands, PrimitiveFunction, Window, value, window
from tilewright.spec.dtype import DType

#: Lanes that are copied together where they are adjacent: of those that fit a panel, the most.
VECTOR_LANES = (8, 4, 2, 1)


def _apart_columns(f: Function, columns_at: Window, columns: Value, sizes: tuple[int, int]) -> Value:
    """For each vector of columns of a tile, 0 if it is whole and adjacent in C."""
    width, lanes = sizes
    found = f.alloca(INT64, width // lanes, 8)
    with f.loop(int64(0), columns, int64(lanes), "vector") as first:
        place = f.at(found, f.mul(f.udiv(first, int64(lanes)), 8))
        f.store(int64(1), place, 8)
        with f.when(f.icmp("<=", f.add(first, lanes), columns)):
            uneven = int64(0)
            for lane in range(lanes - 1):
                here, next_one = (columns_at.entry(f, f.add(first, at)) for at in (lane, lane + 1))
                uneven = f.or_(uneven, f.sub(f.sub(next_one, here), 1))
            f.store(uneven, place, 8)
    return found


def emit_scatter_tile(f: Function, isa: Isa, given: Operands) -> None:
    """Calls the function of a `ScatterTile`."""
    acc = window(given, "tile").dtype
    PrimitiveFunction(f, isa, "scatter_tile", acc, given).call(lambda f, given: _scatter(f, isa, acc, given))


def _scatter(f: Function, isa: Isa, acc: DType, given: Operands) -> None:
    to, tile, columns_at = (window(given, name) for name in ("to", "tile", "columns_at"))
    columns, beta = value(given, "columns"), value(given, "beta")
    convert, lanes = Convert(f, half=isa.half), isa.lanes(acc)
    some = f.not_equal(beta, zero(element_type(acc)))

    def put(pointer: Value, row: Value, column: Value, count: int) -> None:
        """One element or vector."""
        kind = vector_type(acc, count) if count > 1 else element_type(acc)
        stored = vector_type(to.dtype, count) if count > 1 else memory_type(to.dtype)
        sums = f.load(kind, tile.at(f, row, column), acc.size)
        with f.once_if(some, [sums]) as ((held,), advance):
            old = convert(f.load(stored, pointer, to.dtype.size), to.dtype, acc)
            factor = f.splat(beta, count) if count > 1 else beta
            advance([f.multiply_add(factor, old, held, fused=isa.fused)])
        f.store(convert(advance.results[0], acc, to.dtype), pointer, to.dtype.size)

    def place_of(begin: Value, column: Value) -> Value:
        return f.at(begin, f.mul(columns_at.entry(f, column), to.dtype.size))

    width = tile.row.known
    assert width is not None
    some_lanes = next(size for size in VECTOR_LANES if size <= lanes and width % size == 0)
    apart = _apart_columns(f, columns_at, columns, (width, some_lanes))
    with f.loop(int64(0), value(given, "rows"), int64(1), "row") as row:
        offset = f.mul(window(given, "rows_at").entry(f, row), to.dtype.size)
        begin = f.at(to.pointer, offset)
        with f.loop(int64(0), columns, int64(some_lanes), "column") as column:
            end = f.minimum(f.add(column, some_lanes), columns)
            near = f.load(INT64, f.at(apart, f.mul(f.udiv(column, int64(some_lanes)), 8)), 8)
            with f.branch(f.icmp("==", near, 0)) as (together, other):
                with together:
                    put(place_of(begin, column), row, column, some_lanes)
                with other, f.loop(column, end, int64(1), "element") as one:
                    put(place_of(begin, one), row, one, 1)
