"""Conditions of branches between copies of a loop body, as trees over polynomials."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from tilewright.loops.llvm.facts import bits_of
from tilewright.loops.llvm.instruction import Instruction
from tilewright.loops.llvm.reroll.lanes import LaneValues
from tilewright.loops.nests.polynomial import Polynomial, Symbol
from tilewright.records import dataclass


@dataclass(frozen=True)
class IntegerTest:
    """left `predicate` right, of integers of so many bits."""

    predicate: str
    left: Polynomial
    right: Polynomial
    bits: int


@dataclass(frozen=True)
class Disjunction:
    """At least one of two conditions holds."""

    left: PathCondition
    right: PathCondition


@dataclass(frozen=True)
class Conjunction:
    """Both of two conditions hold."""

    left: PathCondition
    right: PathCondition


@dataclass(frozen=True)
class Known:
    """A condition that always holds, or never."""

    holds: bool


@dataclass(frozen=True)
class UnknownCondition:
    """A condition that nothing is known of, such as whether arrays overlap."""


PathCondition: TypeAlias = IntegerTest | Disjunction | Conjunction | Known | UnknownCondition


@dataclass(frozen=True)
class Masked:
    """An integer with some of its bits cleared.

    Attributes
    ----------
    value : the integer.
    mask : the bits that are kept; -1: all of them, the integer in another width.
    bits : width of the result.
    """

    value: Polynomial
    mask: int
    bits: int


def condition_of(text: str, lanes: LaneValues) -> PathCondition:
    """The condition that an i1 stands for, along the path that values belong to."""
    if text in ("true", "false"):
        return Known(text == "true")
    match lanes.function.definitions.get(text):
        case Instruction(opcode="icmp", operands=((kind, left), (_, right)), predicate=predicate):
            bits = bits_of(kind)
            if bits is None or kind == "ptr":
                return UnknownCondition()
            return IntegerTest(predicate, lanes.integer(kind, left), lanes.integer(kind, right), bits)
        case Instruction(opcode="or", operands=((_, left), (_, right))):
            return Disjunction(condition_of(left, lanes), condition_of(right, lanes))
        case Instruction(opcode="select", operands=((_, left), (_, "true"), (_, right))):
            return Disjunction(condition_of(left, lanes), condition_of(right, lanes))
        case Instruction(opcode="and", operands=((_, left), (_, right))):
            return Conjunction(condition_of(left, lanes), condition_of(right, lanes))
        case Instruction(opcode="select", operands=((_, left), (_, right), (_, "false"))):
            return Conjunction(condition_of(left, lanes), condition_of(right, lanes))
        case Instruction(opcode="freeze", operands=((_, inner),)):
            return condition_of(inner, lanes)
        case _:
            return UnknownCondition()


def equalities(conditions: Iterable[tuple[PathCondition, bool]]) -> dict[Symbol, Polynomial]:
    """Symbols that are constants wherever conditions hold (or do not)."""
    found: dict[Symbol, Polynomial] = {}
    left = list(conditions)
    while left:
        match left.pop():
            case (Conjunction(one, other), True) | (Disjunction(one, other), False) as test:
                left += [(one, test[1]), (other, test[1])]
            case (IntegerTest("eq", value, number), True) | (IntegerTest("ne", value, number), False):
                if number.constant is not None:
                    match value.terms:
                        case (((symbol,), 1),):
                            found[symbol] = number
                        case _:
                            continue
            case _:
                continue
    return found


_CASTS = ("zext", "sext", "trunc")


def masked(symbol: Symbol, lanes: LaneValues) -> Masked | None:
    """What an integer that is no polynomial is made of; None where nothing is known."""
    text = getattr(symbol, "text", "")
    match lanes.function.definitions.get(text):
        case Instruction(opcode="and", kind=kind, operands=((_, value), (_, mask))) if _is_number(mask):
            bits = bits_of(kind) or 0
            return Masked(lanes.integer(kind, value), int(mask) % (1 << bits), bits)
        case Instruction(opcode="urem", kind=kind, operands=((_, value), (_, divisor))) if (
            _is_number(divisor) and int(divisor) > 0 and not int(divisor) & (int(divisor) - 1)
        ):
            return Masked(lanes.integer(kind, value), int(divisor) - 1, bits_of(kind) or 0)
        case Instruction(opcode="add", kind=kind, operands=((_, value), (_, number))) if _is_number(number):
            return Masked(lanes.integer(kind, value) + int(number), -1, bits_of(kind) or 0)
        case Instruction(opcode=opcode, kind=kind, operands=((inner, value),)) if opcode in _CASTS:
            return Masked(lanes.integer(inner, value), -1, min(bits_of(kind) or 0, bits_of(inner) or 0))
        case _:
            return None


def _is_number(text: str) -> bool:
    return text.lstrip("-").isdigit()
