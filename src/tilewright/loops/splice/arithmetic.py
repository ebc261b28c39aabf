"""Lowering of symbols, polynomials and trip counts to integers and pointers of an LLVM function."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from tilewright.llvm.build import Function
from tilewright.llvm.convert import Convert
from tilewright.llvm.values import INT1, INT64, POINTER, Type, Value, constant, int64, memory_type, named_type
from tilewright.loops.llvm.symbols import Computed, IntegerOperation, Reloaded, SsaValue
from tilewright.loops.nests.nest import Extent, Factor, InvariantScalar
from tilewright.loops.nests.polynomial import Polynomial, Symbol
from tilewright.spec.dtype import DType, find_llvm_type

#: Alignment of loads from program memory: the program's own load may be better aligned, but that is unknown.
UNKNOWN_ALIGNMENT = 1

#: Sizes are clamped to this before they are multiplied: three of them do not overflow.
MOST_COUNTED = 1 << 20

_CHECKED = Type("{ i64, i1 }", "")


def kind_of(symbol: SsaValue | Reloaded) -> Type:
    """The LLVM type of a symbol's value."""
    return named_type(symbol.kind)


def symbols_below(symbols: Iterable[Symbol]) -> Iterator[Symbol]:
    """Symbols and their operands, each after the operands it is computed from.

    >>> n = SsaValue.of("%n", "i32")
    >>> larger = Computed.of(IntegerOperation.MAXIMUM, Polynomial.of(n), Polynomial())
    >>> [str(one) for one in symbols_below([larger])]
    ['%n:i32', 'max(%n:i32, 0)']
    """
    for symbol in symbols:
        match symbol:
            case Reloaded(base=base, offset=offset):
                yield from symbols_below((base, *sorted(offset.symbols)))
            case Computed(operands=operands):
                for operand in operands:
                    yield from symbols_below(sorted(operand.symbols))
        yield symbol


class IntegerArithmetic(Protocol):
    """Arithmetic of 64-bit integers."""

    def add(self, left: Value, right: Value | int) -> Value:
        """left + right."""

    def sub(self, left: Value, right: Value | int) -> Value:
        """left - right."""

    def mul(self, left: Value, right: Value | int) -> Value:
        """left * right."""


class Exact:
    """Arithmetic that records whether any result overflowed; `Function`'s own wraps around."""

    def __init__(self, f: Function) -> None:
        self._f = f
        self._wrapped: list[Value] = []

    def add(self, left: Value, right: Value | int) -> Value:
        """left + right."""
        right = int64(right) if isinstance(right, int) else right
        plain = 0 in (left.known, right.known)
        return self._f.add(left, right) if plain else self._checked("sadd", left, right)

    def sub(self, left: Value, right: Value | int) -> Value:
        """left - right."""
        right = int64(right) if isinstance(right, int) else right
        return self._f.sub(left, right) if right.known == 0 else self._checked("ssub", left, right)

    def mul(self, left: Value, right: Value | int) -> Value:
        """left * right."""
        right = int64(right) if isinstance(right, int) else right
        plain = {left.known, right.known} & {0, 1}
        return self._f.mul(left, right) if plain else self._checked("smul", left, right)

    def _checked(self, word: str, left: Value, right: Value) -> Value:
        f = self._f
        intrinsic = f.module.declare(f"llvm.{word}.with.overflow.i64", _CHECKED, (INT64, INT64))
        if left.known is not None and right.known is not None:
            found = {"sadd": int.__add__, "ssub": int.__sub__, "smul": int.__mul__}[word](
                left.known, right.known
            )
            if -(1 << 63) <= found < 1 << 63:
                return int64(found)
        both = f.call(intrinsic, [left, right])
        self._wrapped.append(f.emit(INT1, f"extractvalue {both.typed}, 1"))
        return f.emit(INT64, f"extractvalue {both.typed}, 0")

    @property
    def right(self) -> Value:
        """Whether no result so far overflowed."""
        found = Value(INT1, "true")
        for wrapped in self._wrapped:
            found = self._f.and_(found, self._f.not_(wrapped))
        return found


class Invariants:
    """Values of the symbols of a nest in the function that takes them as arguments.

    Attributes
    ----------
    f : the function.
    exact : checked arithmetic for trip counts and conditions. Addresses use that of `f`: they are exact
        modulo 2^64.
    """

    def __init__(self, f: Function, given: Mapping[tuple[str, str], Value]) -> None:
        self.f, self.exact = f, Exact(f)
        self._given = given
        self._found: dict[Symbol, Value] = {}

    def raw(self, symbol: Symbol) -> Value:
        """The value of a symbol in its own type."""
        if symbol not in self._found:
            self._found[symbol] = self._raw(symbol)
        return self._found[symbol]

    def _raw(self, symbol: Symbol) -> Value:
        match symbol:
            case SsaValue(text=text, kind=kind):
                return self._given[text, kind]
            case Reloaded(base=base, offset=offset):
                place = self.address(base, offset)
                return self.f.load(kind_of(symbol), place, UNKNOWN_ALIGNMENT)
            case Computed(operator=operator, operands=operands):
                return self._computed(operator, [self.integer(one, self.exact) for one in operands])
            case _:
                raise AssertionError(f"{symbol} is not a symbol of LLVM IR")

    def _computed(self, operator: IntegerOperation, operands: list[Value]) -> Value:
        f = self.f
        match operator:
            case IntegerOperation.MAXIMUM | IntegerOperation.MINIMUM:
                choose = most if operator is IntegerOperation.MAXIMUM else least
                found = operands[0]
                for other in operands[1:]:
                    found = choose(f, found, other)
                return found
            case IntegerOperation.QUOTIENT:
                left, right = operands
                quotient = f.emit(INT64, f"sdiv {left.typed}, {right.text}")
                rest = f.sub(left, f.mul(quotient, right))
                return f.select(f.icmp("<", rest, 0), f.sub(quotient, 1), quotient)

    def within(self, more: Mapping[Symbol, Value]) -> Invariants:
        """The values inside a loop, in which further symbols have values."""
        inner = Invariants(self.f, self._given)
        inner._found = {**self._found, **more}
        return inner

    def symbol(self, symbol: Symbol) -> Value:
        """The value of a symbol as a 64-bit integer."""
        value = self.raw(symbol)
        if value.type == POINTER:
            return self.f.ptrtoint(value)
        if value.type == INT64:
            return value
        signed = isinstance(symbol, (SsaValue, Reloaded)) and symbol.signed
        return self.f.sext(value, INT64) if signed else self.f.zext(value, INT64)

    def integer(
        self, value: Polynomial, numbers: IntegerArithmetic, indices: Mapping[Symbol, Value] | None = None
    ) -> Value:
        """The value of a polynomial, given the values of its loop indices."""
        total = int64(0)
        for monomial, coefficient in value.terms:
            product = int64(coefficient)
            for symbol in monomial:
                known = None if indices is None else indices.get(symbol)
                product = numbers.mul(product, self.symbol(symbol) if known is None else known)
            total = numbers.add(total, product)
        return total

    def address(self, base: Symbol, offset: Polynomial) -> Value:
        """An address in a memory object."""
        pointer = self.raw(base)
        if pointer.type != POINTER:
            pointer = self.f.inttoptr(pointer)
        return self.f.at(pointer, self.integer(offset, self.f))

    def count(self, extent: Extent, indices: Mapping[Symbol, Value] | None = None) -> Value:
        """The trip count of a loop: a non-negative integer."""
        f, found = self.f, None
        for bound in extent.bounds:
            span = self.integer(bound.span, self.exact, indices)
            if bound.step > 1:  # towards 0, which is upwards where a loop runs not at all
                span = self.exact.add(span, bound.step - 1)
                span = quotient(f, span, bound.step)
            found = span if found is None else least(f, found, span)
        assert found is not None
        return most(f, found, int64(extent.least))


def scalar_value(invariants: Invariants, scalar: InvariantScalar, to: DType) -> Value:
    """A number that the program computes before the nest, converted to a type."""
    f, value = invariants.f, invariants.raw(scalar.symbol)
    dtype = scalar.dtype or find_llvm_type(value.type.text)
    assert dtype is not None
    if memory_type(dtype) != value.type:  # conversions take floats of 16 bits as integers
        value = f.bitcast(value, memory_type(dtype))
    return Convert(f, half=False)(value, dtype, to)


def factor_value(f: Function, invariants: Invariants, factor: Factor, acc: DType) -> Value:
    """alpha or beta in the accumulator type."""
    assert not isinstance(factor.number, complex)
    found: Value | None = None
    for scalar in factor.scalars:
        value = scalar_value(invariants, scalar, acc)
        found = value if found is None else f.times(found, value)
    number = constant(acc, factor.number)
    if found is None:
        return number
    return found if factor.number == 1 else f.times(found, number)


def quotient(f: Function, left: Value, right: int) -> Value:
    """left / right, rounded towards 0; constants are folded."""
    if left.known is not None:
        magnitude = abs(left.known) // right
        return int64(magnitude if left.known >= 0 else -magnitude)
    return f.emit(INT64, f"sdiv {left.typed}, {right}")


def least(f: Function, left: Value, right: Value) -> Value:
    """The smaller of two integers; constants are folded."""
    if left.known is not None and right.known is not None:
        return min(left, right, key=lambda value: value.known or 0)
    return f.minimum(left, right)


def most(f: Function, left: Value, right: Value) -> Value:
    """The larger of two integers; constants are folded."""
    if left.known is not None and right.known is not None:
        return max(left, right, key=lambda value: value.known or 0)
    return f.maximum(left, right)
