"""What the symbols of nests found in LLVM IR stand for, and where such a nest is in its function."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tilewright.loops.nests.nest import Condition, CountedLoop, MatrixProduct
from tilewright.loops.nests.polynomial import Polynomial, Symbol

#: What fields of symbols hold before `of` gives them values: a subclass's fields need defaults.
NOTHING, NO_OFFSET = Symbol(""), Polynomial()


@dataclass(frozen=True)
class SsaValue(Symbol):
    """A value that is defined before the nest; its name is unique together with its reading.

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
    """What memory holds at an address that no store of the nest touches; read once before the nest.

    The nest reads it in its first iterations in any case if the conditions hold that name none of its kind;
    those that do name one are in the order of the program. So a value may be read as soon as the conditions
    hold that stand before the first one that names it. Disjointness from C is to be checked like that of A
    and B.
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
    """What an integer is computed with that no polynomial says."""

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
class NestLocation:
    """A nest in its function.

    Attributes
    ----------
    function : the function's name, "@" not included.
    preheader, header, exit : labels, "%" not included: the block whose branch enters the outermost loop, the
        first block of that loop, and the only block behind it.
    leaving : values that phis of the exit block take from the loop: the phi's name and what it is when the
        new code ran instead.
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
class Candidate:
    """A nest in LLVM IR, which may be a product.

    Attributes
    ----------
    nest, place : the nest and where it is.
    conditions : what has to hold for the nest to say what the program does, to be checked beside those of
        the product: numbers do not wrap around, checks of subscripts do not stop the program.
    """

    nest: CountedLoop
    place: NestLocation
    conditions: tuple[Condition, ...]
