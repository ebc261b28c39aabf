"""Reader of Python source: nests of `for` over `range` and array elements as language-independent records.

Types and strides of arrays are unknown before the call, so the offset of an element is the sum of its
subscripts times one symbol for each axis. Integers and numbers that the nest does not assign are symbols
too, named as in the source: ``n``, ``A.shape[0]``, ``self.alpha``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from tilewright.loops.nests.nest import (
    Assign,
    Bound,
    Cell,
    CountedLoop,
    Extent,
    InvariantScalar,
    Load,
    Minus,
    Number,
    Obstacle,
    Quotient,
    Read,
    Statement,
    Sum,
    Times,
    Unreadable,
    Value,
    Where,
)
from tilewright.loops.nests.polynomial import Index, Polynomial, Symbol
from tilewright.loops.python.counted_while import COUNTER
from tilewright.loops.python.elements import (
    LoopVariable,
    NotAnInteger,
    PythonNest,
    slices_of,
)
from tilewright.loops.python.functions import FunctionReader
from tilewright.loops.python.guards import Chosen, Piece, guard_of, pieces, tests_of, with_outcome
from tilewright.loops.python.plain import PlainLoops, plain_loops

#: Unsupported statements, and their names in refusals.
STATEMENTS: dict[type[ast.AST], str] = {
    ast.If: "has a condition",
    ast.While: "has a loop without a range",
    ast.Break: "leaves a loop early",
    ast.Continue: "skips a part of an iteration",
    ast.Return: "returns from inside of a loop",
    ast.Expr: "calls a function",
    ast.With: "enters a context",
    ast.Try: "handles exceptions",
    ast.Raise: "raises an exception",
    ast.Assert: "asserts",
    ast.Delete: "deletes",
}
#: Operators that cannot be part of a sum of products.
OPERATORS: dict[type[ast.AST], str] = {
    ast.FloorDiv: "divides",
    ast.Mod: "takes a remainder",
    ast.Pow: "takes a power",
    ast.MatMult: "multiplies whole matrices",
}


#: A value that is put where a variable is read, and that has changed before.
LOST = Unreadable("computes a variable element by element, and changes what it is computed from", Where(""))


def python_nest(
    node: ast.For,
    function: str,
    kept: frozenset[str] = frozenset(),
    outcomes: Mapping[str, bool] | None = None,
) -> PythonNest:
    r"""The record of a loop and its body.

    Parameters
    ----------
    function : its name, for remarks.
    kept : scalar variables that are read after the nest.
    outcomes : of conditions that are the same for the whole nest, by their text; see `nest_tests`.

    Examples
    --------
    >>> text = "for i in range(n):\n for k in range(len(x)):\n  y[i] += A[i, k] * x[k]"
    >>> nest = python_nest(ast.parse(text).body[0], "f")
    >>> sorted(nest.arrays), [symbol.name for symbol in nest.integers]
    (['A', 'x', 'y'], ['n', 'len(x)'])
    """
    plain = plain_loops(node)
    if outcomes:
        chosen = Chosen(outcomes).visit(plain.loop)
        assert isinstance(chosen, ast.For)
        plain.loop = chosen
    reader = _Reader(function, node, plain, kept)
    statement = reader.loop(plain.loop)
    if reader.waiting:  # parts of the outermost range
        assert isinstance(statement, CountedLoop)
        parts = (*reader.waiting, statement)
        statement = CountedLoop(reader.new_index("once"), Extent.of(1), parts, statement.where)
    if plain.unresolved:
        reason = f"reads {plain.unresolved[0]} outside of where that stands for a row or an integer"
        statement = Obstacle(reason, reader.where(node))
    if isinstance(statement, CountedLoop):
        statement = reader.with_equal(plain, statement)
    if not isinstance(statement, CountedLoop):
        statement = replace(reader.nest.loop, body=(statement,))
    reader.nest.loop = statement
    return reader.nest


def nest_tests(node: ast.For) -> list[str]:
    """The conditions of a nest that are the same for all of it, as text."""
    loop = plain_loops(node).loop
    return tests_of(loop, assigned_names(loop))


def assigned_names(node: ast.AST) -> frozenset[str]:
    """Every name that a statement binds, including nested statements."""
    names = (child for child in ast.walk(node) if isinstance(child, ast.Name))
    return frozenset(name.id for name in names if not isinstance(name.ctx, ast.Load))


class _Reader(FunctionReader):
    """Reads the statements of one nest."""

    def __init__(self, function: str, node: ast.For, plain: PlainLoops, kept: frozenset[str]) -> None:
        loop = plain.loop
        targets = _scalars(loop)
        # Names of rows end at the last row, those of integers at the last one: nobody may read them behind.
        undone = assigned_names(node) - assigned_names(loop)
        empty = CountedLoop(Index(""), Extent.of(0), (), Where(function, node.lineno))
        nest = PythonNest(node, empty, assigned=targets, kept=kept, undone=undone)
        nest.builtins |= plain.builtins
        super().__init__(function, nest, assigned_names(loop))

    def with_equal(self, plain: PlainLoops, loop: CountedLoop) -> Statement:
        """A loop after noting which integers must be equal."""
        found = (self.equal(one, other, loop.where) for one, other in plain.equal)
        return next((one for one in found if one is not None), loop)

    def equal(self, one: ast.expr, other: ast.expr, where: Where) -> Obstacle | None:
        """Notes that two integers must be equal, or the loops run as written."""
        try:
            difference = self.integer(one) - self.integer(other)
        except NotAnInteger as reason:
            return Obstacle(str(reason), where)
        if difference.indices:
            return Obstacle("asserts", where)
        self.nest.differences.append(difference)
        return None

    def body(self, statements: list[ast.stmt]) -> Iterator[Statement]:
        outer, self.deferred = self.deferred, {}
        unread, self.unread = self.unread, {}
        for node in statements:
            found = self.statement(node)
            written = [*self.waiting, *([] if found is None else [found])]
            self.waiting.clear()
            self.forget(written)
            yield from written
        self.deferred = dict.fromkeys(outer.keys() | self.deferred.keys(), LOST)
        if self.unread:  # errors of computing it must not be lost
            yield Obstacle(
                f"computes {next(iter(self.unread))}, which no statement needs", self.where(statements[-1])
            )
        self.unread = unread

    def statement(self, node: ast.stmt) -> Statement | None:
        """Read one statement; loops for sums over generators, which precede it, are appended to `waiting`."""
        where = self.where(node)
        match node:
            case (
                ast.Assign(targets=[ast.Subscript() as target])
                | ast.AugAssign(target=ast.Subscript() as target)
            ) if slices_of(target) and not self.parts:
                return self.sliced(node, target, where)
            case ast.For():
                return self.loop(node)
            case ast.If(test=ast.Compare(), body=[ast.Assign(targets=[target], value=then)]) if (
                chosen := self.chosen(node, target, then)
            ) is not None:
                return self.assign(target, chosen, where)
            case ast.Assert(test=ast.Compare(left=one, ops=[ast.Eq()], comparators=[other])):
                return self.equal(one, other, where)
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                return None
            case ast.Assign(targets=[ast.Name() | ast.Subscript() as target]):
                return self.assign(target, self.value(node.value), where)
            case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value):
                return self.assign(target, self.value(value), where)
            case ast.AugAssign(target=ast.Name() | ast.Subscript() as target, op=operator):
                held = self.value(target)
                return self.assign(target, self.combined(held, operator, self.value(node.value), node), where)
            case _:
                return Obstacle(
                    STATEMENTS.get(type(node), "has a statement that cannot be part of a product"), where
                )

    def sliced(self, node: ast.stmt, target: ast.Subscript, where: Where) -> Statement:
        """A statement on whole slices as loops over their elements, the last axis innermost."""
        try:
            slices = self.ranges_of(target)
            for _, length in slices:
                self.at_least(length)
        except NotAnInteger as reason:
            return Obstacle(str(reason), where)
        self.parts = [self.new_part(length) for _, length in slices]
        for part, (first, _) in zip(self.parts, slices, strict=True):
            self.nest.values[part.index] = first + part.index
        inner = self.statement(node)
        body = (*self.waiting, inner) if inner is not None else ()
        self.waiting.clear()
        for part in reversed(self.parts):
            body = (CountedLoop(part.index, Extent.of(part.length), body, where),)
        self.parts = []
        return body[0]

    def assign(self, target: ast.expr, value: Value, where: Where) -> Statement | None:
        """An assignment; None if the value of a variable is put where that is read."""
        try:
            match target:
                case ast.Name(id=name) if (
                    name not in self.ranges and name not in self.nest.kept and (self.defers(name, value))
                ):
                    return None
                case ast.Name(id=name) if name not in self.ranges:
                    self.deferred.pop(name, None)
                    kept = name in self.nest.kept
                    return Assign(self.scalar_access(name, where) if kept else Cell(name), value, where)
                case ast.Subscript():
                    return Assign(self.access(target), value, where)
                case _:
                    return Obstacle("assigns a loop variable", where)
        except NotAnInteger as reason:
            return Obstacle(str(reason), where)

    def loop(self, node: ast.For) -> Statement:
        where = self.where(node)
        match node:
            case ast.For(target=ast.Name(id=name), iter=iterable, orelse=[]):
                return self.counted(name, iterable, node.body, where, node.type_comment)
            case ast.For(orelse=[]):
                return Obstacle("has a loop over more than one variable", where)
            case _:
                return Obstacle("has an else clause after a loop", where)

    def counted(
        self,
        name: str,
        iterable: ast.expr,
        body: list[ast.stmt],
        where: Where,
        counter: str | None = None,
    ) -> Statement:
        """A loop over a range.

        Parameters
        ----------
        counter : of a `while` loop, whether its variable ends at the bound: see counted_while.py.
        """
        opened = self.opened(name, iterable, where)
        if isinstance(opened, Obstacle):
            return opened
        index, extent, value = opened
        final = value.substitute({index: Polynomial.of(index) + 1}) if counter == COUNTER else value
        if counter is not None:
            self.nest.counters |= value.symbols & self.nest.integers.keys()
        if self.conditional or self.may_be_empty(extent):
            self.nest.undone |= {name}  # nobody knows which iteration was the last one with this loop
        else:
            self.nest.variables.append(LoopVariable(name, final, index, extent))
        loops = list(self.pieces(name, index, extent, body, where))
        del self.ranges[name]
        self.open.pop()
        self.waiting += loops[:-1]
        return loops[-1] if loops else CountedLoop(index, extent, (), where)

    def pieces(
        self, name: str, index: Index, extent: Extent, body: list[ast.stmt], where: Where
    ) -> Iterator[CountedLoop]:
        """A loop as several ones, in each of which the conditions on its variable have one outcome."""
        guard = guard_of(body, name, self.is_known)
        if guard is None:
            yield CountedLoop(index, extent, tuple(self.body(body)), where)
            return
        try:
            parts = self.parts_of_range(guard, index, extent)
        except NotAnInteger as reason:
            yield CountedLoop(index, extent, (Obstacle(str(reason), self.where(guard)),), where)
            return
        self.conditional += 1
        value, own = self.ranges[name], self.open[-1]
        for part in parts:
            inner = self.new_index(name)
            self.ranges[name] = self.nest.values[inner] = value.substitute({index: part.begin + inner})
            length = Extent.of(part.end - part.begin)
            self.open[-1] = (inner, length)
            found = list(self.pieces(name, inner, length, with_outcome(body, guard, met=part.met), where))
            yield from (loop for loop in found if loop.body)
        self.ranges[name], self.open[-1] = value, own
        self.conditional -= 1

    def parts_of_range(self, guard: ast.If, index: Index, extent: Extent) -> list[Piece]:
        """Where in a range a condition is met."""
        found = None
        match guard.test, extent:
            case ast.Compare(left=left, ops=[sign], comparators=[right]), Extent(
                bounds=(Bound(span=count, step=1),)
            ):
                with suppress(NotAnInteger):
                    found = pieces(sign, self.integer(left) - self.integer(right), index, count)
        if found is None:
            raise NotAnInteger("has a condition")
        for part in found:
            self.at_least(part.begin)
            self.at_least(part.end - part.begin)
        return found

    def may_be_empty(self, extent: Extent) -> bool:
        """Whether a loop has no iterations in the last iteration of those around: ``range(i + 1, n)``."""
        span = extent.bounds[0].span
        if not span.indices:
            return False
        for index, around in reversed(self.open[:-1]):
            span = span.substitute({index: around.bounds[0].last})
        return span.constant is not None and span.constant < 1

    def is_known(self, name: str) -> bool:
        """Whether a name is a variable of a loop around, or the same for the whole nest."""
        return name in self.ranges or name not in self.bound

    def value(self, node: ast.expr) -> Value:
        """The value of an expression; `Unreadable` if it cannot be part of a sum of products."""
        where = self.where(node)
        match node:
            case ast.Constant(value=float() | int() | complex() as number) if not isinstance(number, bool):
                self.nest.numbers.append(number)
                return Number(number)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=float() | int() as number)) if (
                not isinstance(number, bool)
            ):
                self.nest.numbers.append(-number)
                return Minus(Number(number))
            case ast.Name(id=name) if name in self.nest.kept:
                return Load(self.scalar_access(name, where))
            case ast.Name(id=name) if name in self.deferred:
                return self.deferred_value(name)
            case ast.Name(id=name) if name in self.nest.assigned:
                return Read(Cell(name))
            case ast.Name(id=name) if name in self.ranges:
                return Unreadable(f"calculates with the loop variable {name}", where)
            case ast.Name() | ast.Attribute() | ast.BinOp(op=ast.Pow()) if self.is_invariant(node):
                symbol = Symbol(ast.unparse(node))
                self.nest.scalars[symbol] = node
                return InvariantScalar(symbol, None)
            case ast.Subscript():
                try:
                    return Load(self.access(node))
                except NotAnInteger as reason:
                    return Unreadable(str(reason), where)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return Minus(self.value(operand))
            case ast.BinOp() | ast.Call() | ast.IfExp() if (applied := self.applied(node)) is not None:
                return applied
            case ast.BinOp() | ast.Call() if (found := self.reduction(node)) is not None:
                return found
            case ast.BinOp(left=left, op=operator, right=right):
                return self.combined(self.value(left), operator, self.value(right), node)
            case ast.Call(func=function):
                return Unreadable(f"calls {ast.unparse(function)}", where)
            case _:
                return Unreadable(f"computes {ast.unparse(node)}", where)

    def combined(self, left: Value, operator: ast.operator, right: Value, node: ast.expr | ast.stmt) -> Value:
        match operator:
            case ast.Add():
                return Sum(left, right, reassociates=True)
            case ast.Sub():
                return Sum(left, Minus(right), reassociates=True)
            case ast.Mult():
                return Times(left, right, contracts=True)
            case ast.Div():
                return Quotient(left, right, self.where(node))
            case _:
                return Unreadable(OPERATORS.get(type(operator), "computes with bits"), self.where(node))


def _scalars(node: ast.AST) -> frozenset[str]:
    """Names that assignments bind, without those of loops."""
    return frozenset(
        target.id for child in ast.walk(node) for target in _targets(child) if isinstance(target, ast.Name)
    )


def _targets(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.Assign(targets=targets):
            return targets
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target) | ast.NamedExpr(target=target):
            return [target]
        case _:
            return []
