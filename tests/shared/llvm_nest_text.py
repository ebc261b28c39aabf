"""Nests as text, for tests to compare and people to read."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.loops.llvm.symbols import Candidate
from tilewright.loops.nests.nest import (
    Access,
    Assign,
    Cell,
    Conversion,
    CountedLoop,
    FunctionCall,
    InvariantScalar,
    Load,
    Minus,
    Number,
    Obstacle,
    Quotient,
    Read,
    Select,
    SquareRoot,
    Statement,
    Sum,
    Times,
    Unreadable,
    Value,
    Within,
)


def value_text(value: Value) -> str:
    """`!` marks operations that may not be reordered or fused, and memory that nothing overlaps."""
    match value:
        case Load(access):
            return access_text(access)
        case Read(cell):
            return cell.name
        case Number(number):
            return str(number)
        case InvariantScalar(symbol, _):
            return f"<{symbol}>"
        case Sum(left, right, reassociates):
            return f"({value_text(left)} +{'' if reassociates else '!'} {value_text(right)})"
        case Times(left, right, contracts):
            return f"({value_text(left)} *{'' if contracts else '!'} {value_text(right)})"
        case Minus(inner):
            return f"-{value_text(inner)}"
        case Conversion(inner, dtype):
            return f"{dtype.name}({value_text(inner)})"
        case Quotient(left, right):
            return f"({value_text(left)} / {value_text(right)})"
        case SquareRoot(inner):
            return f"sqrt({value_text(inner)})"
        case Select(relation, left, right, then, otherwise):
            test = f"{value_text(left)} {relation} {value_text(right)}"
            return f"({value_text(then)} if {test} else {value_text(otherwise)})"
        case FunctionCall(function, operands):
            return f"{function}({', '.join(map(value_text, operands))})"
        case Unreadable(reason, _):
            return f"? {reason}"


def access_text(access: Access) -> str:
    return f"{access.memory.name}{'!' if access.memory.private else ''}[{access.offset}]"


def lines(statement: Statement, indent: str = "") -> Iterator[str]:
    match statement:
        case CountedLoop(index=index, extent=extent, body=body):
            least = f", at least {extent.least}" if extent.least else ""
            yield f"{indent}{index} < {extent}{least}:"
            for inner in body:
                yield from lines(inner, indent + "  ")
        case Assign(target=target, value=value):
            name = target.name if isinstance(target, Cell) else access_text(target)
            yield f"{indent}{name} = {value_text(value)}"
        case Obstacle(reason=reason):
            yield f"{indent}? {reason}"


def candidate_text(candidate: Candidate) -> str:
    """The nest, its conditions, and what it leaves behind; loops are i0, i1, ... in the order of the text."""
    found = list(lines(candidate.nest))
    for condition in candidate.conditions:
        assert isinstance(condition, Within)
        found.append(f"if {condition.low} <= {condition.value} < {condition.high}")
    found += [f"leaves {name} = {value}" for name, value in candidate.place.leaving]
    text = "\n".join(found)
    loops = [one for one in candidate.nest.walk() if isinstance(one, CountedLoop)]
    names = {loop.index.name: f"i{number}" for number, loop in enumerate(loops)}
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, names[name])
    return text
