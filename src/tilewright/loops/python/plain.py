"""Loops over sequences, rows and counters as loops over ranges, for the reader alone.

Before::

    for crow, arow in zip(C, A):           for p in range(min(len(C), len(A))):
        for k, x in enumerate(arow):           for k in range(A.shape[1]):
            for j in range(n):                     x = A[p][k]
                crow[j] += x * B[k, j]             for j in range(n):
                                                       C[p][j] += x * B[k, j]

After, on the right. What runs if the nest is not replaced stays as it was written.
"""

from __future__ import annotations

import ast
from copy import deepcopy
from dataclasses import field

from tilewright.loops.python.aliases import (
    Substitution,
    is_row,
    remaining,
    resolved,
    separated,
    stored_names,
)
from tilewright.loops.python.counted_while import range_of
from tilewright.loops.python.guards import without_continue
from tilewright.loops.python.sequences import (
    ITERATORS,
    Iteration,
    backwards,
    iteration,
    minus,
    numbered,
    plus,
)
from tilewright.records import dataclass


@dataclass
class PlainLoops:
    """A nest without sequences, and what must hold where it stands for the original.

    Attributes
    ----------
    equal : pairs of integers that must be equal.
    builtins : functions that the original calls.
    replaced : names that stand for rows, arrays and integers.
    unresolved : those of `replaced` that the copy still reads, outside of where they stand for that.
    """

    loop: ast.For
    equal: list[tuple[ast.expr, ast.expr]] = field(default_factory=list)
    builtins: set[str] = field(default_factory=set)
    replaced: set[str] = field(default_factory=set)
    unresolved: list[str] = field(default_factory=list)


def plain_loops(node: ast.For) -> PlainLoops:
    """A copy of a nest in which loops over sequences and counters are loops over ranges."""
    copy = deepcopy(node)
    made = PlainLoops(copy)
    made.builtins = {
        one.func.id
        for one in ast.walk(node)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id in ITERATORS
    }
    _Ranges(made).visit(copy)
    ast.fix_missing_locations(copy)
    made.unresolved = remaining(made.replaced, copy)
    return made


class _Ranges(ast.NodeTransformer):
    """Rewrites from the outside in; whatever does not fit stays, and is refused by the reader."""

    def __init__(self, made: PlainLoops) -> None:
        self._made = made
        self._count = 0

    def visit_For(self, node: ast.For) -> ast.AST:
        self._header(node)
        node.body = without_continue(self._statements(node.body))
        self.generic_visit(node)
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        node.body = self._statements(node.body)
        node.orelse = self._statements(node.orelse)
        return self.generic_visit(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp | ast.ListComp) -> ast.AST:
        for place, part in enumerate(node.generators):
            made = self._ranged(part.target, part.iter)
            if made is None or _captured(node, place):
                continue
            name, part.iter, found = made
            part.target = ast.copy_location(ast.Name(name, ast.Store()), node)
            for own, item in found.items:
                change = Substitution(own, item)
                node.elt = change.visit(node.elt)
                for later in node.generators[place + 1 :]:
                    later.iter = change.visit(later.iter)
        return self.generic_visit(node)

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        return self.visit_GeneratorExp(node)

    def _header(self, node: ast.For) -> None:
        """Turns the loop itself into one over a range."""
        inside = ast.Module(node.body, [])
        bound = stored_names(inside)
        targets = stored_names(node.target)
        arrays = {one.id for one in ast.walk(node.iter) if isinstance(one, ast.Name)}
        if node.orelse or targets & bound or arrays & (bound | targets):
            return
        made = self._ranged(node.target, node.iter)
        if made is None:
            return
        name, node.iter, found = made
        node.target = ast.copy_location(ast.Name(name, ast.Store()), node)
        first: list[ast.stmt] = []
        for own, item in found.items:
            if isinstance(item, ast.Subscript) and not is_row(own, inside):
                start = ast.Assign([ast.Name(own, ast.Store())], item)
                first.append(ast.copy_location(start, node))
            else:
                inside = Substitution(own, item).visit(inside)
                self._made.replaced.add(own)
        node.body = [*first, *inside.body]

    def _ranged(self, target: ast.expr, iterable: ast.expr) -> tuple[str, ast.expr, Iteration] | None:
        """The variable and the range of a loop over something else, and what it binds beside."""
        match target, iterable:
            case ast.Name(), ast.Call(func=ast.Name(id="range")):
                return None
            case ast.Name(id=name), ast.Call(
                func=ast.Name(id="reversed"),
                args=[ast.Call(func=ast.Name(id="range"), args=[_, *_] as words, keywords=[])],
                keywords=[],
            ):
                turned = backwards(words)
                return None if turned is None else (name, _range(turned, iterable), Iteration())
            case _:
                pass
        name, start = numbered(target, iterable)
        if not name:
            self._count += 1
            name = f"place {self._count}"
        place = minus(ast.Name(name, ast.Load()), start)
        found = iteration(target, iterable, place)
        if found is None:
            return None
        self._made.equal += found.equal
        found.items = [own for own in found.items if own[0] != name]
        lengths = list({ast.unparse(one): one for one in found.lengths}.values())
        ends = [plus(start, one) for one in lengths]
        shortest = ast.Call(ast.Name("min", ast.Load()), ends, []) if len(ends) > 1 else ends[0]
        return name, _range([start, shortest], iterable), found

    def _statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for statement in separated(body):
            loop = range_of(found, statement) if isinstance(statement, ast.While) else None
            if loop is not None:
                found.remove(loop.start)
                found.append(loop.loop)
            else:
                found.append(statement)
        return resolved(found, self._made.replaced)


def _captured(node: ast.GeneratorExp | ast.ListComp, place: int) -> bool:
    """Whether names in a sequence of a comprehension, or its variables, are bound again further inside."""
    part = node.generators[place]
    names = {one.id for one in ast.walk(part) if isinstance(one, ast.Name)}
    inner = (stored_names(one) for one in (*node.generators[place + 1 :], node.elt))
    return any(names & bound for bound in inner)


def _range(words: list[ast.expr], like: ast.expr) -> ast.expr:
    return ast.copy_location(ast.Call(ast.Name("range", ast.Load()), words, []), like)
