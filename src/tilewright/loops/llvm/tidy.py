"""Normalisation of nests: stores sunk behind loops, dead stores removed, loop-invariant loads as scalars."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from tilewright.loops.llvm.evolution import Evolutions
from tilewright.loops.llvm.symbols import Reloaded, Rows, SsaValue
from tilewright.loops.nests.nest import (
    Access,
    Assign,
    Cell,
    CountedLoop,
    InvariantScalar,
    Load,
    MemoryObject,
    Read,
    Statement,
    Value,
)
from tilewright.loops.nests.polynomial import Polynomial, Symbol

Node = TypeVar("Node", bound="Statement | Value | Access | MemoryObject")


def same(one: Access, other: Access) -> bool:
    """Whether two accesses refer to the same element."""
    return one.memory.base == other.memory.base and one.offset == other.offset


def may_touch(one: Access, other: Access) -> bool:
    """Whether two accesses of one memory may have bytes in common; other memory is compared at run time.

    ``t[i]`` and ``t[j]`` may be the same element, ``t[i]`` and ``t[i + 1]`` are not.
    """
    if one.memory.base != other.memory.base:
        return False
    distance = (one.offset - other.offset).constant
    if distance is None or one.dtype is None or other.dtype is None:
        return True
    return -one.dtype.size < distance < other.dtype.size


def loads(value: object) -> Iterator[Access]:
    """Every element that a value reads."""
    if isinstance(value, Load):
        yield value.access
    elif is_dataclass(value) and not isinstance(value, Access):
        for field in fields(value):
            yield from loads(getattr(value, field.name))


def accesses(*statements: Statement) -> Iterator[tuple[Access, bool]]:
    """Every element that statements access, and whether they write it."""
    for statement in statements:
        match statement:
            case CountedLoop(body=body):
                yield from accesses(*body)
            case Assign(target=target, value=value):
                yield from ((access, False) for access in loads(value))
                if isinstance(target, Access):
                    yield target, True
            case _:
                continue


def sunk(loop: CountedLoop) -> list[Statement]:
    """A loop that runs at least once, with a last store that every iteration repeats moved behind it.

    ``loop {s = s + x; c = s}`` -> ``loop {s = s + x}; c = s``, if nothing else in the loop may touch c.
    """
    carried = {
        one.value: one.target for one in loop.body if isinstance(one, Assign) and isinstance(one.target, Cell)
    }
    kept: list[Statement] = []
    behind: list[Statement] = []
    for statement in loop.body:
        match statement:
            case Assign(target=Access() as target, value=value) if (
                value in carried
                and loop.index not in target.offset.symbols
                and sum(may_touch(access, target) for access, _ in accesses(loop)) == 1
            ):
                behind.append(replace(statement, value=Read(carried[value])))
            case _:
                kept.append(statement)
    return [replace(loop, body=tuple(kept)), *behind]


def without_dead_stores(statements: list[Statement]) -> tuple[Statement, ...]:
    """Statements without stores that are overwritten before they are read."""
    kept: list[Statement] = []
    for place, statement in enumerate(statements):
        match statement:
            case Assign(target=Access() as target) if _is_overwritten(target, statements[place + 1 :]):
                continue
            case _:
                kept.append(statement)
    return tuple(kept)


def _is_overwritten(target: Access, statements: list[Statement]) -> bool:
    for statement in statements:
        found = list(accesses(statement))
        if any(may_touch(access, target) for access, store in found if not store):
            return False
        if any(same(access, target) for access, _ in found):
            return isinstance(statement, Assign)
    return False


def with_knowledge(nest: CountedLoop, evolutions: Evolutions) -> tuple[CountedLoop, tuple[Access, ...]]:
    """The nest annotated with facts about its memory: disjoint objects and loop-invariant elements.

    Returns
    -------
    The nest, and the elements that have become scalars in it, loaded before the nest.
    """
    touched = list(accesses(nest))
    bases = {access.memory.base for access, _ in touched}
    written = {access.memory.base for access, store in touched if store}
    private = {base for base in bases if _is_private(base, bases, evolutions)}

    scalars = tuple(
        access
        for access, store in touched
        if not store and not access.offset.indices and access.memory.base not in written
        if not isinstance(access.memory.base, Rows)
    )

    def known(node: object) -> object:
        match node:
            case Load(access) if access in scalars:
                return _reloaded(access)
            case MemoryObject(base=base) if base in private:
                return replace(node, private=True)
            case _:
                return node

    rebuilt: CountedLoop = _rebuilt(nest, known)
    return rebuilt, scalars


def _reloaded(access: Access) -> InvariantScalar:
    """An element at a loop-invariant address, as a scalar that is loaded before the nest."""
    assert access.dtype is not None
    symbol = Reloaded.of(access.memory.base, access.offset, access.dtype.llvm_name)
    return InvariantScalar(symbol, access.dtype)


def _rebuilt(node: Any, change: Callable[[object], object]) -> Any:
    """A tree of records with some of them replaced, outer records first."""
    changed = change(node)
    if changed is not node and not isinstance(changed, MemoryObject):
        return changed
    node = changed
    if isinstance(node, tuple):
        return tuple(_rebuilt(part, change) for part in node)
    if not is_dataclass(node) or isinstance(node, (Symbol, Polynomial, type)):
        return node
    parts = {field.name: getattr(node, field.name) for field in fields(node)}
    rebuilt = {name: _rebuilt(part, change) for name, part in parts.items()}
    return node if all(rebuilt[name] is parts[name] for name in parts) else replace(node, **rebuilt)


# Memory objects


def _is_private(base: Symbol, bases: set[Symbol], evolutions: Evolutions) -> bool:
    """Whether nothing else that the nest touches overlaps the memory at an address."""
    kinds = {one: _kind(one, evolutions) for one in bases}
    others = {kind for one, kind in kinds.items() if one != base}
    match kinds[base]:
        case "noalias":
            return "unknown" not in others
        case "global":
            return others <= {"global", "noalias", "alloca"}
        case "alloca":
            return "unknown" not in others
        case _:
            return False


def _kind(base: Symbol, evolutions: Evolutions) -> str:
    """The kind of memory at an address: "noalias" or other arguments, "global" variables, "alloca", or
    "unknown".
    """
    if not isinstance(base, SsaValue):
        return "unknown"
    if base.text.startswith("@"):
        variable = evolutions.module.globals.get(base.text[1:])
        return "global" if variable is not None and not variable.alias else "unknown"
    for parameter in evolutions.function.parameters:
        if parameter.name == base.text:
            return "noalias" if parameter.noalias else "argument"
    definition = evolutions.function.definitions.get(base.text)
    return "alloca" if definition is not None and definition.opcode == "alloca" else "unknown"
