"""Loops that compute a store as it is, in the order that suits memory where any order is right."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from tilewright.loops.nests.dependences import Arrays, Touched, boxed, single
from tilewright.loops.nests.effects import Range, Store, Term
from tilewright.loops.nests.nest import (
    Assign,
    Cell,
    CountedLoop,
    Load,
    Number,
    Read,
    Statement,
    Sum,
    Times,
    Value,
)
from tilewright.loops.nests.polynomial import Index


def loops_of(store: Store, arrays: Arrays) -> CountedLoop:
    """The loops of one store. Sums are kept in a variable for each term."""
    if store.value is not None:
        body: list[Statement] = [Assign(store.target, store.value, store.where)]
    else:
        body = _assigned(store)
    return _nested(_arranged(store, arrays), tuple(body), store)


def accumulated(store: Store, outer: Index, arrays: Arrays) -> CountedLoop:
    """The loops of ``C += sum``, with sums kept in C and adjacent elements innermost where that is right.

    Loops up to `outer` stay where they are; those behind it may be in any order.
    """
    own, term = store.form.terms
    if not (term.reassociates or store.target.dtype is None or store.target.dtype.is_integer):
        return loops_of(store, arrays)
    ranges = (*store.ranges, *term.sums)
    first = [index for index, _ in ranges].index(outer) + 1
    indices = [index for index, _ in ranges]
    form = store.target.offset.linear(indices)
    if form is None:
        return loops_of(store, arrays)

    def reach(own: Range) -> tuple[bool, int, int]:
        """Where a loop belongs: over sums, then over distant elements, then over adjacent ones."""
        stride = form.coefficient(own[0])
        many = max((len(monomial) for monomial, _ in stride.terms), default=0)
        return bool(stride), -many, -abs(stride.constant or 0)

    inner = sorted(ranges[first:], key=reach)
    terms = (own, replace(term, sums=()))
    kept = replace(store, form=replace(store.form, terms=terms))
    return _nested((*ranges[:first], *inner), tuple(_assigned(kept)), store)


def _nested(ranges: tuple[Range, ...], body: tuple[Statement, ...], store: Store) -> CountedLoop:
    for index, extent in reversed(ranges):
        body = (CountedLoop(index, extent, body, store.where),)
    (loop,) = body
    assert isinstance(loop, CountedLoop)
    return loop


def _assigned(store: Store) -> list[Statement]:
    """The statements of one element."""
    statements: list[Statement] = []
    values: list[tuple[Value, bool]] = []
    for number, term in enumerate(store.form.terms):
        if not term.sums:
            values.append((_value(term), term.reassociates))
            continue
        cell = Cell(f"sum.{number}")
        added = Assign(cell, Sum(Read(cell), _value(term), term.reassociates), store.where)
        statements += [Assign(cell, Number(0), store.where), _nested(term.sums, (added,), store)]
        values.append((Read(cell), term.reassociates))
    if not values:
        total: Value = Number(0)
    else:
        total, free = values[0]
        for value, reassociates in values[1:]:
            total, free = Sum(total, value, free and reassociates), free and reassociates
    return [*statements, Assign(store.target, total, store.where)]


def _value(term: Term) -> Value:
    """A term without its sums."""
    factors: list[Value] = list(term.factor.scalars)
    if term.factor.number != 1 or not (factors or term.elements):
        factors.insert(0, Number(term.factor.number))
    factors += [Load(element.access) for element in term.elements]
    return reduce(lambda left, right: Times(left, right, term.contracts), factors)


def _arranged(store: Store, arrays: Arrays) -> tuple[Range, ...]:
    """The loops around a store; adjacent elements innermost if each iteration has its own element."""
    box = boxed(store.ranges)
    plain = box is not None and not box.differences and not box.places
    reads = [element.access for term in store.form.terms for element in term.elements]
    others = any(one.memory == store.target.memory and one != store.target for one in reads)
    if not plain or box is None or others or store.value is not None or store.target.dtype is None:
        return store.ranges
    touched = Touched(store.target.memory, store.target.offset, store.target.dtype, box, writes=True)
    if not arrays.has_own_elements(touched, store.ranges):
        return store.ranges
    named = [single(expression) for expression in arrays.subscripts(touched).expressions]
    order = {part[0]: place for place, part in enumerate(named) if part is not None}
    return tuple(sorted(store.ranges, key=lambda own: order[own[0]]))
