"""The path of a program for given sizes: its decisions, and the primitives it executes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilewright.ir.expressions import AnyOf, Binary, Compare, Expression, Lead, Name, TableEntry, Unless
from tilewright.ir.interpret import Interpreter
from tilewright.ir.nodes import If, Let, Loop, Program, Statement
from tilewright.ir.primitives.budget import Spend
from tilewright.ir.primitives.prefetch import PrefetchRows
from tilewright.records import dataclass


@dataclass(frozen=True)
class Decision:
    """One condition that was evaluated: its text, whether it holds, and the values it depends on."""

    condition: AnyOf
    holds: bool
    values: Mapping[str, int]


@dataclass(frozen=True)
class Trace:
    """The decisions of a run in order, and each primitive it executes, once."""

    decisions: tuple[Decision, ...]
    primitives: tuple[Statement, ...]


def names_in(node: Expression) -> Iterator[str]:
    """The names an expression mentions, in order."""
    match node:
        case Name(name):
            yield name
        case Binary(_, left, right):
            yield from names_in(left)
            yield from names_in(right)
        case Unless(_, value) | TableEntry(_, value) | Lead(offset=value):
            yield from names_in(value)


def comparisons(condition: AnyOf) -> Iterator[Compare]:
    """The comparisons of a condition, in order."""
    for conjunction in condition.terms:
        yield from conjunction.terms


class _Tracer:
    """Follows the first iteration of every loop."""

    def __init__(self, scalars: Mapping[str, complex]) -> None:
        self.run = Interpreter({}, scalars)
        self.decisions: list[Decision] = []
        self.primitives: list[Statement] = []

    def block(self, body: tuple[Statement, ...], names: Mapping[str, int]) -> None:
        names = dict(names)
        for statement in body:
            match statement:
                case Let(name, value):
                    names[name] = self.run.integer(value, names)
                case Loop(axis, begin, end, body=inner):
                    start = self.run.integer(begin, names)
                    if start < self.run.integer(end, names):
                        self.block(inner, {**names, axis: start})
                case If(condition, then, otherwise):
                    holds = self.run.holds(condition, names)
                    sides = [side for term in comparisons(condition) for side in (term.left, term.right)]
                    seen = dict.fromkeys(name for side in sides for name in names_in(side))
                    self.decisions.append(Decision(condition, holds, {name: names[name] for name in seen}))
                    self.block(then if holds else otherwise, names)
                case Spend() | PrefetchRows():  # computes nothing
                    pass
                case _ if statement not in self.primitives:
                    self.primitives.append(statement)


def trace(program: Program, sizes: Mapping[str, int], scalars: Mapping[str, complex]) -> Trace:
    """The path of a program for given sizes and scalars; buffers are not needed.

    Examples
    --------
    >>> from tilewright.ir.expressions import AllOf, Constant, Relation
    >>> condition = AnyOf((AllOf((Compare(Relation.EQ, Name("m"), Constant(1)),)),))
    >>> program = Program("p", ("m",), (), (), (If(condition, ()),))
    >>> trace(program, {"m": 3}, {}).decisions[0].holds
    False
    """
    tracer = _Tracer(scalars)
    tracer.block(program.body, sizes)
    return Trace(tuple(tracer.decisions), tuple(tracer.primitives))
