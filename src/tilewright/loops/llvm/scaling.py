"""Branches on the value of a factor: special cases for 0 and 1 that equal the general computation."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.loops.llvm.instruction import Instruction
from tilewright.loops.llvm.tidy import same
from tilewright.loops.nests.nest import (
    Access,
    Assign,
    Conversion,
    CountedLoop,
    InvariantScalar,
    Load,
    Minus,
    Number,
    Statement,
    Sum,
    Times,
    Value,
)
from tilewright.loops.nests.polynomial import Index, Polynomial, Symbol


def is_special_case(
    special: Sequence[Statement], general: Sequence[Statement], factor: Value, number: float
) -> bool:
    """Whether statements equal more general ones in which a factor has a certain value.

    0 times anything is 0 here: kernels do not read operands that are multiplied by 0, and programs that
    handle 0 separately intend the same.

    ``if (beta == 0) c = 0; else c = beta*c;`` -> ``c = beta*c``
    """
    return _texts(special, {}, factor, number) == _texts(general, {}, factor, number)


def is_special_value(special: Value, general: Value, factor: Value, number: float) -> bool:
    """As `is_special_case`, for values."""
    return _text(special, {}, factor, number) == _text(general, {}, factor, number)


def may_be_skipped(factor: Value, test: Instruction) -> bool:
    """Whether products with a factor may be computed although the program skips them if the factor is 0.

    A kernel skips factors of 0 as a whole. For single elements the program must exclude infinities and NaN.
    """
    return isinstance(factor, InvariantScalar) or test.flags >= {"nnan", "ninf"}


def _texts(
    statements: Sequence[Statement], names: dict[Symbol, Symbol], factor: Value, number: float
) -> list[str]:
    """Statements as text, without no-ops; loops are named by their depth."""
    found = []
    for statement in statements:
        match statement:
            case CountedLoop(index=index, extent=extent, body=body):
                inner = {**names, index: Index(f"depth {len(names)}")}
                lines = _texts(body, inner, factor, number)
                bounds = sorted(f"{bound.span.substitute(names)} / {bound.step}" for bound in extent.bounds)
                if lines:
                    found.append(f"{bounds} {extent.least} {lines}")
            case Assign(target=target, value=value):
                place = _place(target, names) if isinstance(target, Access) else target.name
                text = _text(value, names, factor, number)
                if text != place:
                    found.append(f"{place} = {text}")
            case _:
                found.append(str(statement))
    return found


def _place(access: Access, names: dict[Symbol, Symbol]) -> str:
    return f"{access.memory.base}[{Polynomial.of(access.offset).substitute(names)}] {access.dtype}"


def _text(value: Value, names: dict[Symbol, Symbol], factor: Value, number: float) -> str:
    """A value as text, with products with 0 and 1 and sums with 0 simplified."""

    def inner(part: Value) -> str:
        return _text(part, names, factor, number)

    if _is(value, factor):
        return str(float(number))
    match value:
        case Number(known) if not isinstance(known, complex):
            return str(float(known))
        case Load(access):
            return _place(access, names)
        case Times(left, right):
            parts = sorted((inner(left), inner(right)))
            if "0.0" in parts:
                return "0.0"
            return " * ".join(part for part in parts if part != "1.0") or "1.0"
        case Sum(left, right):
            return " + ".join(part for part in sorted((inner(left), inner(right))) if part != "0.0") or "0.0"
        case Minus(part):
            return "0.0" if inner(part) == "0.0" else f"-({inner(part)})"
        case Conversion(part, dtype):
            return inner(part) if inner(part) in ("0.0", "1.0") else f"{dtype}({inner(part)})"
        case _:
            return str(value)


def _is(value: Value, factor: Value) -> bool:
    """Whether two values are the same scalar or the same element."""
    match value, factor:
        case InvariantScalar(), InvariantScalar():
            return value == factor
        case Load(access), Load(other):
            return same(access, other)
        case _:
            return False
