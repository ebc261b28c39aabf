"""Records of loop nests in any language: loops, assignments, and the recognised matrix product."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from enum import Enum
from typing import TypeAlias

from tilewright.loops.nests.polynomial import Index, Polynomial, Symbol
from tilewright.records import dataclass
from tilewright.spec.dtype import DType
from tilewright.spec.epilogue import Step
from tilewright.spec.roles import DimensionRole


@dataclass(frozen=True)
class Where:
    """A source location, as remarks print it; the file is as the compiler was given it, "" if unknown."""

    function: str
    line: int | None = None
    column: int | None = None
    file: str = ""

    def __str__(self) -> str:
        return self.function if self.line is None else f"{self.function}:{self.line}"


@dataclass(frozen=True)
class Refusal:
    """Location and reason of a nest that is not replaced; the text continues "refused, since it ..."."""

    where: Where
    reason: str


# Memory


@dataclass(frozen=True)
class MemoryObject:
    """A memory object that offsets are relative to: the target of a pointer, a global variable, an array.

    Attributes
    ----------
    base : its address; equal bases denote the same memory.
    name : its name in messages.
    private : no other memory of the nest overlaps it (noalias arguments, distinct global variables).
    """

    base: Symbol
    name: str
    private: bool = False


@dataclass(frozen=True)
class Access:
    """One element that iterations read or write.

    Attributes
    ----------
    offset : bytes from the base of the memory, in terms of the loop indices; for arrays whose types are not
        known yet, a sum of subscripts times `Symbol`s of strides.
    dtype : type of the element in memory; None if it is known at run time only.
    where : source location, ignored when accesses are compared.
    subscripts : one for each axis, if the language has them.
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
    """The last value assigned to a scalar variable."""

    cell: Cell


@dataclass(frozen=True)
class Number:
    """A constant."""

    value: float | int | complex


@dataclass(frozen=True)
class InvariantScalar:
    """A loop-invariant number: alpha, beta."""

    symbol: Symbol
    dtype: DType | None


@dataclass(frozen=True)
class Sum:
    """left + right. `reassociates`: the language permits reordering the additions."""

    left: Value
    right: Value
    reassociates: bool


@dataclass(frozen=True)
class Times:
    """left * right. `contracts`: the language permits leaving the product unrounded."""

    left: Value
    right: Value
    contracts: bool


@dataclass(frozen=True)
class Minus:
    """-value."""

    value: Value


@dataclass(frozen=True)
class Conversion:
    """A value converted to another type."""

    value: Value
    dtype: DType


@dataclass(frozen=True)
class Quotient:
    """left / right."""

    left: Value
    right: Value
    where: Where = field(compare=False)


@dataclass(frozen=True)
class SquareRoot:
    """The square root of a value."""

    value: Value
    where: Where = field(compare=False)


@dataclass(frozen=True)
class Select:
    """`then` if left and right are in a relation, else `otherwise`.

    Attributes
    ----------
    relation : as LLVM names that of floats: "ogt", "ult".
    free : the language permits any result where an operand is NaN, and either sign of zero.
    """

    relation: str
    left: Value
    right: Value
    then: Value
    otherwise: Value
    where: Where = field(compare=False)
    free: bool = False


@dataclass(frozen=True)
class FunctionCall:
    """A function of values, such as the exponential function, by its name in NumPy."""

    function: str
    operands: tuple[Value, ...]
    where: Where = field(compare=False)


@dataclass(frozen=True)
class Unreadable:
    """A value of an unsupported kind; the reason names it, as in "divides"."""

    reason: str
    where: Where


#: Values that no sum of products contains, but that may be computed from one, element by element.
Pointwise: TypeAlias = Quotient | SquareRoot | Select | FunctionCall

Value: TypeAlias = (
    Load | Read | Number | InvariantScalar | Sum | Times | Minus | Conversion | Pointwise | Unreadable
)


# Statements


@dataclass(frozen=True)
class Assign:
    """target = value."""

    target: Access | Cell
    value: Value
    where: Where


@dataclass(frozen=True)
class Obstacle:
    """A statement that no product contains: a call, an exit, a volatile access. The reason names it."""

    reason: str
    where: Where


@dataclass(frozen=True)
class Bound:
    """ceil(span / step), with a positive step."""

    span: Polynomial
    step: int = 1

    @property
    def last(self) -> Polynomial:
        """What the last index does not exceed: it is this for a step of 1."""
        return self.span - 1

    def __str__(self) -> str:
        return str(self.span) if self.step == 1 else f"ceil(({self.span}) / {self.step})"


@dataclass(frozen=True)
class Extent:
    """Trip count of a loop: the smallest of its bounds, but at least `least`.

    Bounds may contain indices of outer loops: triangles, the last block of a blocked loop. `least` is 1 for
    loops that test their condition after the first iteration.
    """

    bounds: tuple[Bound, ...]
    least: int = 0

    @classmethod
    def of(cls, count: Polynomial | int) -> Extent:
        """An extent that is one polynomial."""
        return cls((Bound(Polynomial.of(count)),))

    @property
    def constant(self) -> int | None:
        """The trip count if it is a number."""
        spans = [(bound.span.constant, bound.step) for bound in self.bounds]
        if any(span is None for span, _ in spans):
            return None
        return max(self.least, min(-(-span // step) for span, step in spans if span is not None))

    def __str__(self) -> str:
        shown = ", ".join(map(str, self.bounds))
        return shown if len(self.bounds) == 1 else f"min({shown})"


@dataclass(frozen=True)
class CountedLoop:
    """A loop that runs its body `extent` times, for index = 0, 1, 2, ...; accesses contain starts and steps.

    Indices are unique within a nest.
    """

    index: Index
    extent: Extent
    body: tuple[Statement, ...]
    where: Where

    def walk(self) -> Iterator[Statement]:
        """The loop and every statement in it, in program order."""
        yield self
        for statement in self.body:
            if isinstance(statement, CountedLoop):
                yield from statement.walk()
            else:
                yield statement


Statement: TypeAlias = CountedLoop | Assign | Obstacle


# Conditions to check at run time before the product may run


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
    """The bytes between the first and the last element of C do not overlap those of the other operand."""

    other: str  # "a", "b"


@dataclass(frozen=True)
class Injective:
    """No two iterations over the dimensions of C access the same element of C."""


Condition: TypeAlias = Within | Disjoint | Injective


# The recognised product


@dataclass(frozen=True)
class ProductDimension:
    """One dimension of a product: its extent, and the stride of each operand along it (0: broadcast)."""

    role: DimensionRole
    index: Index
    extent: Extent
    a: Polynomial
    b: Polynomial
    c: Polynomial


@dataclass(frozen=True)
class MatrixOperand:
    """One matrix: its memory, the offset of its first element, its element type."""

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


@dataclass(frozen=True)
class FinishingStep:
    """A step on the finished sum of each element of C, before it is stored.

    Attributes
    ----------
    step : with M dimensions as rows, and N dimensions as columns.
    operand : the matrix, vector or number that it reads, if it reads one.
    rows, columns : bytes from one element of the operand to the next.
    """

    step: Step
    operand: MatrixOperand | Factor | None = None
    rows: Polynomial = Polynomial()
    columns: Polynomial = Polynomial()


class TriangularPart(Enum):
    """The triangle of a symmetric C that a nest computes, diagonal included."""

    LOWER = "lower"
    UPPER = "upper"


@dataclass(frozen=True)
class MatrixProduct:
    """C = beta*C + alpha*(sum over the K dimensions of A*B), for all of C or one triangle.

    Attributes
    ----------
    dimensions : M is in A and C, N in B and C, K in A and B, BATCH in all three. Dimensions of one role that
        can be fused are one dimension; outermost first. A role may be missing: a matrix-vector product has
        no N.
    triangle : rows and columns of C have the same range, and only one triangle is computed; the strides of
        M and N dimensions apply to it.
    second : (a, b) of an added second product with A and B exchanged: SYR2K. None otherwise.
    beta : 0 if C is overwritten, 1 if the product is added to it.
    acc : type of the program's partial sums; None if it is known at run time only.
    conditions : what must be checked at run time.
    finish : what is done to alpha * sums + beta * C before it is stored.
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
    finish: tuple[FinishingStep, ...] = ()
