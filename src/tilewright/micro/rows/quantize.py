"""Rows of activations as 8-bit integers: the largest magnitude of a row, then its elements in units of it."""

from __future__ import annotations

from typing import NamedTuple

from tilewright.llvm.build import Function, Module
from tilewright.llvm.convert import Convert
from tilewright.llvm.floats import Floats
from tilewright.llvm.values import (
    INT8,
    INT32,
    INT64,
    POINTER,
    VOID,
    Value,
    element_type,
    int64,
    memory_type,
    vector_of,
    zero,
)
from tilewright.machine.isa import Isa
from tilewright.spec.dtype import F32, I32, DType

#: The largest 8-bit integer, to which the largest magnitude of a row is mapped.
LARGEST = 127

#: Bits of float32: without its sign, and of infinity.
_MAGNITUDE, _INFINITY = 0x7FFFFFFF, 0x7F800000

#: 1.5 · 2^23: a float of at most 22 bits that it is added to is rounded to an integer, ties to even, which
#: is then in the low bits of the sum.
_ROUNDING = 12582912.0

#: Vectors per iteration of the loops: their maxima and sums are independent.
VECTORS = 4


class _State(NamedTuple):
    """The scale of one row, and whether it is valid."""

    scale: Value
    finite: Value


class QuantizeKernel:
    """rows(x, x_row, rows, columns, q, q_row, scales, sums): 8-bit integers for rows of floats.

    scale = max|x| / 127 (1 where that is 0), q = x / scale rounded to nearest, ties to even, of at most 127;
    sums are those of q. A row with a NaN or an infinity has the scale NaN, and q = 0. Strides in elements.

    Parameters
    ----------
    isa : the row.
    dtype : float32 or a narrower float.
    """

    def __init__(self, isa: Isa, dtype: DType) -> None:
        self.isa, self.dtype, self.lanes = isa, dtype, isa.lanes(F32)

    def emit(self, module: Module, name: str) -> None:
        """Defines the function, exported."""
        f = module.define(name, VOID, _ARGUMENTS, exported=True)
        g = f.arguments
        with f.loop(int64(0), g["rows"], int64(1), "row") as row:
            x = f.at(g["x"], f.mul(f.mul(row, g["x_row"]), self.dtype.size))
            q = f.at(g["q"], f.mul(row, g["q_row"]))
            largest = self._largest(f, x)
            # Bits of floats grow with their magnitude, those of infinity and NaN above all others.
            finite = f.icmp("<", largest, _INFINITY)
            scalar = Floats(f, F32, element_type(F32), fused=self.isa.fused)
            scale = scalar.divide(f.bitcast(largest, scalar.type), scalar.constant(float(LARGEST)))
            some = f.not_equal(scale, zero(scale.type))
            scale = f.select(some, scale, scalar.constant(1.0))
            nan = f.bitcast(Value(INT32, str(_INFINITY | 1 << 22)), scalar.type)
            total = self._divide(f, x, q, _State(scale, finite))
            f.store(f.select(finite, scale, nan), f.at(g["scales"], f.mul(row, F32.size)), F32.size)
            f.store(total, f.at(g["sums"], f.mul(row, I32.size)), I32.size)
        f.ret()

    def _load(self, f: Function, x: Value, column: Value, lanes: int) -> Value:
        """One vector of a row, or (no lanes) one element, as float32."""
        kind = vector_of(memory_type(self.dtype), lanes) if lanes else memory_type(self.dtype)
        value = f.load(kind, f.at(x, f.mul(column, self.dtype.size)), self.dtype.size)
        return Convert(f, half=self.isa.half)(value, self.dtype, F32)

    def _largest(self, f: Function, x: Value) -> Value:
        """The bits of the largest magnitude of a row."""

        def magnitude(column: Value, lanes: int) -> Value:
            value = self._load(f, x, column, lanes)
            floats = Floats(f, F32, value.type, fused=self.isa.fused)
            return f.and_(floats.bits(value), floats.integer(_MAGNITUDE))

        columns, step = f.arguments["columns"], self.lanes * VECTORS
        begun = [zero(vector_of(INT32, self.lanes))] * VECTORS
        end = f.sub(columns, step - 1)
        with f.carried_loop(int64(0), end, int64(step), [int64(0), *begun], "whole") as (at, values, advance):
            found = [magnitude(f.add(at, self.lanes * v), self.lanes) for v in range(VECTORS)]
            most = [f.maximum(old, new) for old, new in zip(values[1:], found, strict=True)]
            advance([f.add(at, step), *most])
        done, *vectors = advance.results
        largest = self._across(f, vectors, maximum=True)
        with f.carried_loop(done, columns, int64(1), [largest], "rest") as (at, values, advance):
            advance([f.maximum(values[0], magnitude(at, 0))])
        return advance.results[0]

    def _across(self, f: Function, vectors: list[Value], *, maximum: bool) -> Value:
        """The maximum, or the sum, of all lanes of some vectors."""
        combine = f.maximum if maximum else f.plus
        while len(vectors) > 1:
            vectors = [combine(left, right) for left, right in zip(vectors[::2], vectors[1::2], strict=True)]
        vector, lanes = vectors[0], self.lanes
        while lanes > 1:
            lanes //= 2
            low, high = (f.shuffle(vector, vector, range(start, start + lanes)) for start in (0, lanes))
            vector = combine(low, high)
        return f.extract(vector, 0)

    def _divide(self, f: Function, x: Value, q: Value, state: _State) -> Value:
        """Writes the integers of a row; their sum."""

        def integers(column: Value, lanes: int) -> Value:
            value = self._load(f, x, column, lanes)
            floats = Floats(f, F32, value.type, fused=self.isa.fused)
            divisor = f.splat(state.scale, lanes) if lanes else state.scale
            quotient = floats.at_most(floats.divide(value, divisor), floats.constant(float(LARGEST)))
            quotient = floats.at_least(quotient, floats.constant(-float(LARGEST)))
            rounding = floats.constant(_ROUNDING)
            moved = floats.bits(floats.add(quotient, rounding))
            number = f.sub(moved, floats.bits(rounding))
            found = f.select(state.finite, number, zero(number.type))
            kind = vector_of(INT8, lanes) if lanes else INT8
            f.store(f.trunc(found, kind), f.at(q, column), 1)
            return found

        columns, step = f.arguments["columns"], self.lanes * VECTORS
        begun = [zero(vector_of(INT32, self.lanes))] * VECTORS
        end = f.sub(columns, step - 1)
        with f.carried_loop(int64(0), end, int64(step), [int64(0), *begun], "whole") as (at, values, advance):
            found = [integers(f.add(at, self.lanes * v), self.lanes) for v in range(VECTORS)]
            advance(
                [f.add(at, step), *(f.plus(old, new) for old, new in zip(values[1:], found, strict=True))]
            )
        done, *vectors = advance.results
        total = self._across(f, vectors, maximum=False)
        with f.carried_loop(done, columns, int64(1), [total], "rest") as (at, values, advance):
            advance([f.plus(values[0], integers(at, 0))])
        return advance.results[0]


_ARGUMENTS = [
    ("x", POINTER),
    ("x_row", INT64),
    ("rows", INT64),
    ("columns", INT64),
    ("q", POINTER),
    ("q_row", INT64),
    ("scales", POINTER),
    ("sums", POINTER),
]
