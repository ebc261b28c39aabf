"""Regions of a nest that a branch may skip: whether the branch only guards empty loops."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.loops.llvm.symbols import Computed, Reloaded
from tilewright.loops.llvm.tidy import same
from tilewright.loops.nests.nest import Access, Assign, Cell, CountedLoop, Load, Read, Statement, Within
from tilewright.loops.nests.polynomial import Polynomial


def guards(values: list[Polynomial], region: list[Statement]) -> bool:
    """Whether inequalities hold exactly if the only loop of a region runs at least once."""
    loops = [one for one in region if isinstance(one, CountedLoop)]
    if len(loops) != 1:
        return False
    spans = {bound.span - 1 for bound in loops[0].extent.bounds}
    return {value for value in values if not _is_sure(value)} == {
        span for span in spans if not _is_sure(span)
    }


def is_nothing(region: list[Statement]) -> bool:
    """Whether a region has no effect if its only loop does not run."""
    held: dict[Cell, Access] = {}
    for statement in region:
        match statement:
            case Assign(target=Cell() as cell, value=Load(access)):
                held[cell] = access
            case Assign(target=Access() as target, value=Read(cell)) if cell in held and same(
                held[cell], target
            ):
                continue
            case Assign(target=Cell()) | CountedLoop():
                continue
            case _:
                return False
    return True


def _is_sure(value: Polynomial) -> bool:
    return value.constant is not None and value.constant >= 0


def cells_of(value: object) -> Iterator[Cell]:
    """Every variable that a value reads."""
    match value:
        case Read(cell):
            yield cell
        case _:
            for name in getattr(value, "__dataclass_fields__", ()):
                inner = getattr(value, name)
                if hasattr(inner, "__dataclass_fields__"):
                    yield from cells_of(inner)


def reads_memory(value: Polynomial) -> bool:
    """Whether a polynomial depends on memory contents."""
    for symbol in value.symbols:
        match symbol:
            case Reloaded():
                return True
            case Computed(operands=operands) if any(map(reads_memory, operands)):
                return True
            case _:
                continue
    return False


def named(condition: Within) -> Iterator[Polynomial]:
    """Every polynomial in a condition."""
    yield from (condition.value, condition.low, condition.high)
    for _, extent in condition.loops:
        yield from (bound.span for bound in extent.bounds)
