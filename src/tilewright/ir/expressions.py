"""Expressions of tile IR: what is known when a program runs.

Integers are extents, strides and offsets, in terms of sizes, lets and loop axes. Conditions compare them.
Scalars are the factors of a product.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from tilewright.records import dataclass

# --- integers -----------------------------------------------------------------------------------


class Expression:
    """Base of integer expressions; arithmetic operators build folded trees."""

    def __add__(self, other: ExpressionLike) -> Expression:
        return fold(Operator.ADD, self, expression(other))

    def __radd__(self, other: ExpressionLike) -> Expression:
        return fold(Operator.ADD, expression(other), self)

    def __sub__(self, other: ExpressionLike) -> Expression:
        return fold(Operator.SUB, self, expression(other))

    def __mul__(self, other: ExpressionLike) -> Expression:
        return fold(Operator.MUL, self, expression(other))

    def __rmul__(self, other: ExpressionLike) -> Expression:
        return fold(Operator.MUL, expression(other), self)


@dataclass(frozen=True)
class Constant(Expression):
    """A known integer."""

    value: int


#: The stride of adjacent elements.
ADJACENT = Constant(1)


@dataclass(frozen=True)
class Name(Expression):
    """A run-time size, a let or a loop axis."""

    name: str


class Operator(Enum):
    """Integer operators; CEILDIV and ROUNDUP take positive second operands."""

    ADD = "+"
    SUB = "-"
    MUL = "*"
    MIN = "min"
    MAX = "max"
    CEILDIV = "ceildiv"
    ROUNDUP = "roundup"


@dataclass(frozen=True)
class Binary(Expression):
    """left operator right."""

    operator: Operator
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Unless(Expression):
    """0 if the scalar is 0, else the value: alpha = 0 makes the depth 0."""

    scalar: str
    value: Expression


@dataclass(frozen=True)
class Lead(Expression):
    """Elements of an argument buffer, from an offset on, before the next multiple of `unit_bytes`.

    Zero where the address is such a multiple.
    """

    buffer: str
    unit_bytes: int
    offset: Expression = Constant(0)


@dataclass(frozen=True)
class Threads(Expression):
    """The number of threads that share the call: 1 if its caller has no team."""


@dataclass(frozen=True)
class TableEntry(Expression):
    """An element of a buffer of 64-bit integers: offsets, lengths and pages that are stored in tables."""

    buffer: str
    index: Expression


ExpressionLike: TypeAlias = Expression | int


def expression(value: ExpressionLike) -> Expression:
    """An expression from an expression or an integer."""
    return value if isinstance(value, Expression) else Constant(int(value))


def apply(operator: Operator, left: int, right: int) -> int:
    """The value of one operator on integers; the meaning every consumer shares."""
    match operator:
        case Operator.ADD:
            return left + right
        case Operator.SUB:
            return left - right
        case Operator.MUL:
            return left * right
        case Operator.MIN:
            return min(left, right)
        case Operator.MAX:
            return max(left, right)
        case Operator.CEILDIV:
            return -(-left // right)
        case Operator.ROUNDUP:
            return -(-left // right) * right


def fold(operator: Operator, left: Expression, right: Expression) -> Expression:
    """A `Binary` with constants computed and neutral elements removed.

    Before: ``0 + x * 1``. After: ``x``.
    """
    if isinstance(left, Constant) and isinstance(right, Constant):
        return Constant(apply(operator, left.value, right.value))
    zero, one = Constant(0), Constant(1)
    match operator:
        case Operator.ADD if left == zero:
            return right
        case Operator.ADD | Operator.SUB if right == zero:
            return left
        case Operator.MUL if zero in (left, right):
            return zero
        case Operator.MUL if left == one:
            return right
        case Operator.MUL | Operator.CEILDIV | Operator.ROUNDUP if right == one:
            return left
        case Operator.MIN | Operator.MAX if left == right:
            return left
        case _:
            return Binary(operator, left, right)


def minimum(left: ExpressionLike, right: ExpressionLike) -> Expression:
    """min(left, right)."""
    return fold(Operator.MIN, expression(left), expression(right))


def upper_bound(value: Expression) -> int | None:
    """A constant that an expression never exceeds, if its form shows one.

    >>> upper_bound(minimum(Name("depth"), 8))
    8
    """
    match value:
        case Constant(known):
            return known
        case Binary(Operator.MIN, left, right):
            bounds = [bound for bound in map(upper_bound, (left, right)) if bound is not None]
            return min(bounds, default=None)
        case _:
            return None


def maximum(left: ExpressionLike, right: ExpressionLike) -> Expression:
    """max(left, right)."""
    return fold(Operator.MAX, expression(left), expression(right))


def ceildiv(left: ExpressionLike, right: ExpressionLike) -> Expression:
    """left / right, rounded up."""
    return fold(Operator.CEILDIV, expression(left), expression(right))


def roundup(left: ExpressionLike, right: ExpressionLike) -> Expression:
    """The smallest multiple of right that is at least left."""
    return fold(Operator.ROUNDUP, expression(left), expression(right))


# --- conditions and scalars ---------------------------------------------------------------------


class Relation(Enum):
    """Comparisons of two expressions."""

    EQ = "=="
    LE = "<="
    LT = "<"


@dataclass(frozen=True)
class Compare:
    """left relation right."""

    relation: Relation
    left: Expression
    right: Expression


@dataclass(frozen=True)
class AllOf:
    """Every comparison holds."""

    terms: tuple[Compare, ...]


@dataclass(frozen=True)
class AnyOf:
    """At least one of the conjunctions holds."""

    terms: tuple[AllOf, ...]


@dataclass(frozen=True)
class Scalar:
    """A floating-point value: a parameter's name or a constant."""

    value: str | float


@dataclass(frozen=True)
class FirstElse:
    """One scalar on the first iteration of an axis, another afterwards."""

    axis: str
    first: Scalar
    rest: Scalar


ScalarValue: TypeAlias = Scalar | FirstElse
