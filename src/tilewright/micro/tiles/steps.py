"""Steps of an epilogue on one vector of finished sums, or on one element."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeAlias

from tilewright.llvm.build import Function
from tilewright.llvm.convert import Convert
from tilewright.llvm.floats import Floats
from tilewright.llvm.values import Value, element_type, memory_type, vector_of, vector_type, zero
from tilewright.machine.isa import Isa
from tilewright.micro.elements.math import emit
from tilewright.spec.dtype import DType, integer_range
from tilewright.spec.epilogue import (
    Activation,
    Bias,
    Clamp,
    Epilogue,
    Residual,
    Saturate,
    Scale,
)

#: Loads the operand of the step of a number, in the elements that it has in memory, as many as the value has.
Loads: TypeAlias = Callable[[int], Value]

#: 1.5 · 2^mantissa bits, by the bits of a float: a smaller number plus it has an integer in the low bits.
_TO_INTEGER = {32: 1.5 * 2.0**23, 64: 1.5 * 2.0**52}


class TileSteps(NamedTuple):
    """The steps of a whole register tile, in its registers.

    Attributes
    ----------
    isa : the row.
    epilogue : the steps, with the types of their operands.
    operands : for each step that has one its first element, elements from one row to the next, and whether
        there is one for each column, side by side.
    """

    isa: Isa
    epilogue: Epilogue
    operands: dict[int, tuple[Value, Value, bool]]

    def apply(
        self, f: Function, types: tuple[DType, DType], widths: tuple[int, ...], sums: list[Value]
    ) -> list[Value]:
        """C's elements from the sums of each vector of each row, given the types of both."""
        steps, count = StepEmitter(f, self.isa, self.epilogue, *types), len(widths)

        def load(number: int, row: int, v: int) -> Value:
            pointer, row_step, adjacent = self.operands[number]
            dtype = steps.typed[number].element
            place = f.at(pointer, f.mul(f.mul(row_step, dtype.size), row))
            if adjacent:
                place = f.at(place, sum(widths[:v]) * dtype.size)
                return f.load(vector_type(dtype, widths[v]), place, dtype.size)
            return f.splat(f.load(memory_type(dtype), place, dtype.size), widths[v])

        places = [divmod(index, count) for index in range(len(sums))]
        pairs = zip(sums, places, strict=True)
        return [steps(value, partial(load, row=row, v=v)) for value, (row, v) in pairs]


class StepEmitter:
    """The steps of an epilogue, written at the current position of a function.

    Parameters
    ----------
    f : the function that is written.
    isa : the row.
    epilogue : the steps, with the types of their operands.
    acc, c : types of the sums and of C in memory; the real type of complex ones.
    """

    def __init__(self, f: Function, isa: Isa, epilogue: Epilogue, acc: DType, c: DType) -> None:
        self.f, self.isa, self.acc, self.c = f, isa, acc, c
        self.typed = epilogue.typed(acc, c)
        self.convert = Convert(f, half=isa.half)

    def __call__(self, value: Value, loads: Loads) -> Value:
        """C's elements, in their type in memory, from sums."""
        current = self.acc
        for number, (step, dtype, name) in enumerate(self.typed):
            value, current = self._as(value, current, dtype), dtype
            match step:
                case Bias(dtype=given) | Residual(dtype=given) | Scale(dtype=given) if name is not None:
                    assert given is not None
                    operand = self.convert(loads(number), given, dtype)
                    multiplies = isinstance(step, Scale)
                    value = self.f.times(value, operand) if multiplies else self.f.plus(value, operand)
                case Activation(op) if not dtype.is_integer:
                    value = emit(self.f, op, dtype, value, fused=self.isa.fused)
                case Activation():  # of integers ReLU
                    value = self._larger(value, self._integer(value, dtype, 0))
                case Clamp(low, high):
                    value = self._clamped(value, dtype, low, high)
                case Saturate():
                    return self._saturated(value, dtype)
                case _:
                    raise AssertionError(f"{step} has no lowering")
        return self.convert(value, current, self.c)

    def _as(self, value: Value, source: DType, to: DType) -> Value:
        """Integers as floats, rounded to nearest; anything else stays."""
        if source.is_integer is to.is_integer:
            return value
        kind = vector_of(element_type(to), value.type.lanes) if value.type.lanes else element_type(to)
        return self.f.emit(kind, f"sitofp {value.typed} to {kind.text}")

    # --- bounds ---------------------------------------------------------------------------------

    def _floats(self, value: Value, dtype: DType) -> Floats:
        return Floats(self.f, dtype, value.type, fused=self.isa.fused)

    def _integer(self, like: Value, dtype: DType, number: int) -> Value:
        """An integer in every lane."""
        text = f"splat (i{dtype.bits} {number})" if like.type.lanes else str(number)
        return Value(like.type, text)

    def _larger(self, left: Value, right: Value) -> Value:
        return self.f.select(self.f.icmp(">", left, right), left, right)

    def _smaller(self, left: Value, right: Value) -> Value:
        return self.f.select(self.f.icmp("<", left, right), left, right)

    def _clamped(self, value: Value, dtype: DType, low: float, high: float) -> Value:
        """NaN stays NaN; a bound that the type does not reach is left out."""
        if not dtype.is_integer:
            v = self._floats(value, dtype)
            value = v.at_least(value, v.constant(low)) if low != -float("inf") else value
            return v.at_most(value, v.constant(high)) if high != float("inf") else value
        least, most = integer_range(dtype)
        if low > least:
            value = self._larger(value, self._integer(value, dtype, int(min(low, most))))
        if high < most:
            value = self._smaller(value, self._integer(value, dtype, int(max(high, least))))
        return value

    def _saturated(self, value: Value, dtype: DType) -> Value:
        """Bounded first, so that it fits; then rounded by the addition of a number whose last place is 1."""
        least, most = integer_range(self.c)
        value = self._clamped(value, dtype, least, most)
        if not dtype.is_integer:
            v = self._floats(value, dtype)
            number = v.compare("==", value, value)
            value = self.f.select(number, value, zero(value.type))
            value = v.bits(v.add(value, v.constant(_TO_INTEGER[dtype.bits])))
        element = memory_type(self.c)
        kind = vector_of(element, value.type.lanes) if value.type.lanes else element
        return self.f.trunc(value, kind)
