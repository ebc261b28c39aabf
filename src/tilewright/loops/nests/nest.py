"""Loop nests of any language: loops, what they assign, and the matrix product that a nest may be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from tilewright.loops.nests.polynomial import Index, Polynomial, Symbol
from tilewright.spec.dtype import DType


@dataclass(frozen=True)
class Where:
    """A place in somebody's program, as remarks name it."""

    function: str
    line: int | None = None

    def __str__(self) -> str:
        return self.function if self.line is None else f"{self.function}:{self.line}"


@dataclass(frozen=True)
class Refusal:
    """Why a nest stays as it is: the place, and a reason that continues "refused, since it ..."."""

    where: Where
    reason: str


# What a nest reads and writes


@dataclass(frozen=True)
class MemoryObject:
    """What offsets are counted from: a pointer, a global variable, an array.

    Attributes
    ----------
    base : its address; equal bases are the same memory.
    name : as messages call it.
    private : no other memory of the nest overlaps it (noalias arguments, different global variables).
    """

    base: Symbol
    name: str
    private: bool = False


@dataclass(frozen=True)
class Access:
    """One element that iterations read or write.

    Attributes
    ----------
    offset : from the base of the memory, in bytes, for every iteration; for arrays whose types are not known
        yet, a sum of subscripts times `Symbol`s of strides.
    dtype : of the element in memory; None where only run time knows it.
    where : in the program; accesses to the same element are equal wherever they stand.
    subscripts : one for each axis, where the language has them.
    """

    memory: MemoryObject
    offset: Polynomial
    dtype: DType | None
    where: Where = field(compare=False)
    subscripts: tuple[Polynomial, ...] = ()


@dataclass(frozen=True)
class Cell:
    """A scalar variable that the nest assigns, such as the sum of a dot product."""

    name: str


# Values


@dataclass(frozen=True)
class Load:
    """An element of memory."""

    access: Access


@dataclass(frozen=True)
class Read:
    """What was last assigned to a scalar variable."""

    cell: Cell


@dataclass(frozen=True)
class Number:
    """A constant."""

    value: float | int | complex


@dataclass(frozen=True)
class InvariantScalar:
    """A number that stays the same while the nest runs: alpha, beta."""

    symbol: Symbol
    dtype: DType | None


@dataclass(frozen=True)
class Sum:
    """left + right. `reassociates`: the language lets the order of additions change."""

    left: Value
    right: Value
    reassociates: bool


@dataclass(frozen=True)
class Times:
    """left * right. `contracts`: the language lets the product stay unrounded."""

    left: Value
    right: Value
    contracts: bool


@dataclass(frozen=True)
class Minus:
    """-value."""

    value: Value


@dataclass(frozen=True)
class Conversion:
    """A value in another type."""

    value: Value
    dtype: DType


@dataclass(frozen=True)
class Unreadable:
    """A value of another kind; the reason says which, as in "divides"."""

    reason: str
    where: Where


Value: TypeAlias = Load | Read | Number | InvariantScalar | Sum | Times | Minus | Conversion | Unreadable


# Statements


@dataclass(frozen=True)
class Assign:
    """target = value."""

    target: Access | Cell
    value: Value
    where: Where


@dataclass(frozen=True)
class Obstacle:
    """A statement that no product has: a call, an exit, a volatile access. The reason names it."""

    reason: str
    where: Where


@dataclass(frozen=True)
class Bound:
    """ceil(span / step), with a positive step."""

    span: Polynomial
    step: int = 1

    def __str__(self) -> str:
        return str(self.span) if self.step == 1 else f"ceil(({self.span}) / {self.step})"


@dataclass(frozen=True)
class Extent:
    """How often a loop runs: the least of its bounds, but not less than `least`.

    Bounds may name indices of outer loops: triangles, the last block of a blocked loop. `least` is 1 for
    loops that look at their condition behind the first iteration.
    """

    bounds: tuple[Bound, ...]
    least: int = 0

    @classmethod
    def of(cls, count: Polynomial | int) -> Extent:
        """A count that is a polynomial."""
        return cls((Bound(Polynomial.of(count)),))

    @property
    def constant(self) -> int | None:
        """The count where it is a number."""
        spans = [(bound.span.constant, bound.step) for bound in self.bounds]
        if any(span is None for span, _ in spans):
            return None
        return max(self.least, min(-(-span // step) for span, step in spans if span is not None))

    def __str__(self) -> str:
        shown = ", ".join(map(str, self.bounds))
        return shown if len(self.bounds) == 1 else f"min({shown})"


@dataclass(frozen=True)
class CountedLoop:
    """A body that runs `extent` times, for index = 0, 1, 2, ...; starts and steps stand in the accesses.

    No two loops of a nest have the same index.
    """

    index: Index
    extent: Extent
    body: tuple[Statement, ...]
    where: Where

    def walk(self) -> Iterator[Statement]:
        """It and every statement in it, in the order of the text."""
        yield self
        for statement in self.body:
            if isinstance(statement, CountedLoop):
                yield from statement.walk()
            else:
                yield statement


Statement: TypeAlias = CountedLoop | Assign | Obstacle


# What run time has to see before the new code may run


@dataclass(frozen=True)
class Within:
    """low <= value < high in every iteration of the loops that its indices belong to.

    Attributes
    ----------
    loops : index and extent of each index in `value`; outermost first.
    """

    value: Polynomial
    low: Polynomial
    high: Polynomial
    loops: tuple[tuple[Index, Extent], ...]


@dataclass(frozen=True)
class Disjoint:
    """The bytes that C's elements lie in, from the first to the last, are none of the other operand's."""

    other: str  # "a", "b"


@dataclass(frozen=True)
class Injective:
    """No two iterations over C's dimensions name the same element of C."""


Condition: TypeAlias = Within | Disjoint | Injective


# What a nest is


class DimensionRole(Enum):
    """What a loop does in a product, by the operands in which its index stands."""

    BATCH = "batch"
    M = "m"
    N = "n"
    K = "k"


@dataclass(frozen=True)
class ProductDimension:
    """One loop of a product: how often, and how far each operand moves with an iteration (0: not at all)."""

    role: DimensionRole
    index: Index
    extent: Extent
    a: Polynomial
    b: Polynomial
    c: Polynomial


@dataclass(frozen=True)
class MatrixOperand:
    """One matrix: where its first element stands, and of what type it is."""

    memory: MemoryObject
    offset: Polynomial
    dtype: DType | None


@dataclass(frozen=True)
class Factor:
    """A product of a number and scalars."""

    number: float | int | complex = 1
    scalars: tuple[InvariantScalar, ...] = ()

    @property
    def is_zero(self) -> bool:
        """Whether it is the number 0."""
        return self.number == 0

    @property
    def is_one(self) -> bool:
        """Whether it is the number 1."""
        return self.number == 1 and not self.scalars


class TriangularPart(Enum):
    """The part of a symmetric C that a nest computes, its diagonal included."""

    LOWER = "lower"
    UPPER = "upper"


@dataclass(frozen=True)
class MatrixProduct:
    """C = beta*C + alpha*(sum over the K dimensions of A*B), the whole of it or a triangle.

    Attributes
    ----------
    dimensions : M are in A and C, N in B and C, K in A and B, BATCH in all three. Those of one role whose
        strides follow from one another are one dimension already; outermost first. There may be none of a
        role: a matrix times a vector has no N.
    triangle : the rows and columns of C are the same loop's range, and only one triangle is computed; the
        strides of M and N dimensions hold for it.
    second : (a, b) of a second product that is added, A and B swapped: SYR2K. None otherwise.
    beta : 0 where C is set, 1 where it is added to.
    acc : what the sums are kept in by the program; None where only run time knows.
    conditions : what run time has to check.
    """

    a: MatrixOperand
    b: MatrixOperand
    c: MatrixOperand
    dimensions: tuple[ProductDimension, ...]
    alpha: Factor
    beta: Factor
    acc: DType | None
    conditions: tuple[Condition, ...]
    where: Where
    triangle: TriangularPart | None = None
    second: tuple[MatrixOperand, MatrixOperand] | None = None
