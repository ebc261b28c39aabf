"""Floating-point arithmetic of one type, scalar or vector: constants, sums, products, signs, bits."""

from __future__ import annotations

from tilewright.llvm.build import Function
from tilewright.llvm.values import Type, Value, constant, truth_of, vector_of
from tilewright.spec.dtype import DType

#: Ordered comparisons: false where an operand is NaN.
_RELATIONS = {"<": "olt", "<=": "ole", "==": "oeq", ">": "ogt", ">=": "oge"}


class Floats:
    """Operations on values of one float type, written at the current position of a function.

    Every operation rounds once, to nearest, and is one instruction on every target: nothing here
    calls a library, so it can be compiled for any of them.

    Parameters
    ----------
    f : the function that is written.
    dtype : the element type.
    like : the type of the values: the element's own, or a vector of any number of lanes.
    fused : the target multiplies and adds with one rounding.
    """

    def __init__(self, f: Function, dtype: DType, like: Type, *, fused: bool) -> None:
        self.f, self.dtype, self.type, self.fused = f, dtype, like, fused
        self._word = Type(f"i{dtype.bits}", f"i{dtype.bits}")
        self.integers = vector_of(self._word, like.lanes) if like.lanes else self._word

    def constant(self, value: float) -> Value:
        """The same constant in every lane."""
        return self._everywhere(constant(self.dtype, value), self.type)

    def integer(self, value: int) -> Value:
        """The same integer in every lane, of the width of a float."""
        return self._everywhere(Value(self._word, str(value)), self.integers)

    def _everywhere(self, scalar: Value, kind: Type) -> Value:
        return Value(kind, f"splat ({scalar.typed})" if kind.lanes else scalar.text)

    # --- one rounding each --------------------------------------------------------------------

    def add(self, left: Value, right: Value) -> Value:
        """left + right."""
        return self._binary("fadd", left, right)

    def subtract(self, left: Value, right: Value) -> Value:
        """left - right."""
        return self._binary("fsub", left, right)

    def multiply(self, left: Value, right: Value) -> Value:
        """left · right."""
        return self._binary("fmul", left, right)

    def divide(self, left: Value, right: Value) -> Value:
        """left / right."""
        return self._binary("fdiv", left, right)

    def root(self, x: Value) -> Value:
        """√x."""
        return self._intrinsic("sqrt", x)

    def multiply_add(self, left: Value, right: Value, addend: Value) -> Value:
        """left · right + addend: one rounding where the target fuses, else two."""
        return self.f.multiply_add(left, right, addend, fused=self.fused)

    def _binary(self, word: str, left: Value, right: Value) -> Value:
        return self.f.emit(left.type, f"{word} {left.typed}, {right.text}")

    # --- signs and choices, exact ---------------------------------------------------------------

    def negate(self, x: Value) -> Value:
        """x with the other sign, also where it is zero or NaN."""
        return self.f.emit(x.type, f"fneg {x.typed}")

    def magnitude(self, x: Value) -> Value:
        """x without its sign."""
        return self._intrinsic("fabs", x)

    def with_sign(self, x: Value, sign: Value) -> Value:
        """The magnitude of x with the sign of another value."""
        return self._intrinsic("copysign", x, sign)

    def compare(self, relation: str, left: Value, right: Value) -> Value:
        """'<', '<=', '==', '>', '>='; false where one is NaN."""
        word = _RELATIONS[relation]
        return self.f.emit(truth_of(left.type), f"fcmp {word} {left.typed}, {right.text}")

    def at_least(self, x: Value, limit: Value) -> Value:
        """x, or the limit where x is below it: NaN stays NaN and a zero keeps its sign.

        x86 MAXPS gives its second operand where one is NaN or both are zero, and so is this in one
        instruction; `llvm.maximum` takes five there.
        """
        return self.f.select(self.compare(">", limit, x), limit, x)

    def at_most(self, x: Value, limit: Value) -> Value:
        """x, or the limit where x is above it: NaN stays NaN and a zero keeps its sign."""
        return self.f.select(self.compare("<", limit, x), limit, x)

    def _intrinsic(self, name: str, *operands: Value) -> Value:
        kinds = [value.type for value in operands]
        callee = self.f.module.declare(f"llvm.{name}.{kinds[0].suffix}", kinds[0], kinds)
        return self.f.call(callee, operands)

    # --- bits -----------------------------------------------------------------------------------

    def bits(self, x: Value) -> Value:
        """The bits of floats as integers."""
        return self.f.emit(self.integers, f"bitcast {x.typed} to {self.integers.text}")

    def from_bits(self, x: Value) -> Value:
        """The floats that have these bits."""
        return self.f.emit(self.type, f"bitcast {x.typed} to {self.type.text}")
