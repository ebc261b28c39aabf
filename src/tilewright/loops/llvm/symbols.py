"""Symbols of nests in LLVM IR, and the location of such a nest in its function."""

from __future__ import annotations

from enum import Enum

from tilewright.loops.nests.nest import Condition, CountedLoop, MatrixProduct
from tilewright.loops.nests.polynomial import Polynomial, Symbol
from tilewright.loops.nests.sequence import Distribution
from tilewright.records import dataclass

#: Default values of fields of symbols that `of` replaces: fields of a subclass need defaults.
NOTHING, NO_OFFSET = Symbol(""), Polynomial()


@dataclass(frozen=True)
class SsaValue(Symbol):
    """A value that is defined before the nest; its name is unique together with its signedness.

    Attributes
    ----------
    text : as an operand is written, "%n", "@matrix", "%7".
    kind : its type, "i32", "i64", "ptr", "float".
    signed : how an integer narrower than 64 bits is read.
    """

    text: str = ""
    kind: str = "i64"
    signed: bool = True

    @classmethod
    def of(cls, text: str, kind: str, *, signed: bool = True) -> SsaValue:
        """The symbol of an operand.

        >>> SsaValue.of("%n", "i32").name
        '%n:i32'
        """
        return cls(f"{text}:{kind}{'' if signed else ':unsigned'}", text, kind, signed)


@dataclass(frozen=True)
class Reloaded(Symbol):
    """The content of memory at an address that no store of the nest touches; loaded once before the nest.

    The nest loads it in its first iterations in any case, provided that the conditions without such symbols
    hold; conditions with such symbols are in program order. So a value may be loaded once all conditions
    before the first one that names it hold. Disjointness from C must be checked as for A and B.
    """

    base: Symbol = NOTHING
    offset: Polynomial = NO_OFFSET
    kind: str = "i64"
    signed: bool = True

    @classmethod
    def of(cls, base: Symbol, offset: Polynomial, kind: str, *, signed: bool = True) -> Reloaded:
        """The symbol of an element of memory."""
        place = f"{base} + {offset}" if offset else str(base)
        return cls(f"[{place}]:{kind}{'' if signed else ':unsigned'}", base, offset, kind, signed)


class IntegerOperation(Enum):
    """An operation on integers that polynomials cannot express."""

    MAXIMUM = "max"
    MINIMUM = "min"
    QUOTIENT = "floor of quotient"  # of the first and the second operand, which is positive


@dataclass(frozen=True)
class Computed(Symbol):
    """An integer that is computed before the nest."""

    operator: IntegerOperation = IntegerOperation.MAXIMUM
    operands: tuple[Polynomial, ...] = ()

    @classmethod
    def of(cls, operator: IntegerOperation, *operands: Polynomial) -> Computed:
        """The symbol of a value."""
        return cls(f"{operator.value}({', '.join(map(str, operands))})", operator, operands)


@dataclass(frozen=True)
class RowDistance(Symbol):
    """Stands for the distance between the rows of a table of pointers: that of one byte of the table.

    A row is the content of the table at some offset q; its address is written `Rows + q * RowDistance`, as if
    rows were at equal distances. Nothing that is done with polynomials depends on the value of a symbol, so
    results hold for rows anywhere. But an address of one row tells nothing of another row: differences
    between rows are no numbers.
    """


@dataclass(frozen=True)
class Rows(Symbol):
    """The rows of a table of pointers, as the base of addresses; see `RowDistance`.

    Attributes
    ----------
    table : the base address of the table.
    text : as the table is written.
    """

    table: Symbol = NOTHING
    text: str = ""
    kind: str = "ptr"

    @classmethod
    def of(cls, table: Symbol) -> Rows:
        """The rows of a table.

        >>> print(Rows.of(SsaValue.of("%a", "ptr")))
        rows of %a:ptr
        """
        return cls(f"rows of {table}", table, getattr(table, "text", "") or table.name)

    @property
    def distance(self) -> RowDistance:
        """The symbol that stands for the distance between rows."""
        return RowDistance(f"distance of {self.name}")


def names_rows(value: Polynomial) -> bool:
    """Whether a polynomial is the address of a row, or has a difference between rows in it.

    >>> rows = Rows.of(SsaValue.of("%a", "ptr"))
    >>> names_rows(Polynomial.of(rows)), names_rows(Polynomial.of(rows.table))
    (True, False)
    """
    return any(isinstance(symbol, (Rows, RowDistance)) for symbol in value.symbols)


def split_rows(value: Polynomial) -> tuple[Polynomial, Polynomial]:
    """An offset as the offset of its pointer in the table, and what is added to the pointer.

    >>> distance = Rows.of(SsaValue.of("%a", "ptr")).distance
    >>> table, row = split_rows(Polynomial.of(distance) * 16 + 4)
    >>> str(table), str(row)
    ('16', '4')
    """
    table, row = Polynomial(), Polynomial()
    for monomial, coefficient in value.terms:
        rest = tuple(symbol for symbol in monomial if not isinstance(symbol, RowDistance))
        part = Polynomial(((rest, coefficient),))
        table, row = (table, row + part) if rest == monomial else (table + part, row)
    return table, row


@dataclass(frozen=True)
class NestLocation:
    """Location of a nest in its function.

    Attributes
    ----------
    function : the function's name, without "@".
    preheader, header, exit : labels without "%": the block whose branch enters the outermost loop, the first
        block of that loop, and the only block after it.
    leaving : values that phis of the exit block take from the loop: the name of the phi, and its value if the
        kernel ran instead.
    """

    function: str
    preheader: str
    header: str
    exit: str
    leaving: tuple[tuple[str, Polynomial], ...] = ()


@dataclass(frozen=True)
class Found:
    """A product in LLVM IR, and the nest that computes it."""

    product: MatrixProduct
    place: NestLocation


@dataclass(frozen=True)
class Distributed:
    """A nest in LLVM IR that is several statements, some of them products."""

    distribution: Distribution
    place: NestLocation


@dataclass(frozen=True)
class Candidate:
    """A nest in LLVM IR that may be a product.

    Attributes
    ----------
    nest, place : the nest and its location.
    conditions : what must hold for the nest to describe the program, checked beside the conditions of the
        product: numbers do not wrap around, checks of subscripts do not stop the program.
    """

    nest: CountedLoop
    place: NestLocation
    conditions: tuple[Condition, ...]
