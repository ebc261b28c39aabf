"""Loop nests of Python source: `for` over `range` and elements of arrays, as records that no language names.

Arrays have no types and strides before a call; the offset of an element is the sum of its subscripts times
symbols, one for each axis. Integers and numbers that the nest does not assign are symbols, too, named as they
are written: ``n``, ``A.shape[0]``, ``self.alpha``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tilewright.frontend.nests import (
    Access,
    Assign,
    Bound,
    Cell,
    Extent,
    Load,
    Loop,
    Memory,
    Minus,
    Number,
    Obstacle,
    Read,
    Scalar,
    Statement,
    Sum,
    Times,
    Unreadable,
    Value,
    Where,
)
from tilewright.frontend.polynomial import Index, Polynomial, Symbol

#: Functions that a nest may call: whether a name still means the built-in is looked at when the nest runs.
BUILTINS = frozenset({"range", "len", "min", "max", "sum", "int", "abs"})
#: Statements, and what they are called in a reason.
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
#: Operators that no sum of products has.
OPERATORS: dict[type[ast.AST], str] = {
    ast.Div: "divides",
    ast.FloorDiv: "divides",
    ast.Mod: "takes a remainder",
    ast.Pow: "takes a power",
    ast.MatMult: "multiplies matrices by itself",
}

Arithmetic: TypeAlias = ast.Add | ast.Sub | ast.Mult


class NotAnInteger(Exception):
    """An expression is no polynomial in loop variables; the argument says why."""


@dataclass(frozen=True)
class Axis(Symbol):
    """The stride of one axis of an array, in elements' places: 1 for one subscript further."""

    array: str = ""
    axis: int = 0

    @classmethod
    def of(cls, array: str, axis: int) -> Axis:
        """The symbol of an axis.

        >>> Axis.of("A", 1).name
        'A.strides[1]'
        """
        return cls(f"{array}.strides[{axis}]", array, axis)


@dataclass(frozen=True)
class Variable:
    """A loop variable: its name, and what it is in an iteration of its loop."""

    name: str
    value: Polynomial
    index: Index
    extent: Extent


@dataclass
class PythonNest:
    """A nest of Python source, and what its records name.

    Attributes
    ----------
    node : the outermost loop.
    loop : its record.
    variables : of loops, in the order of the text; those of generators are not among them.
    arrays : how many subscripts each array has, by the expression that gives it.
    integers, scalars : expressions, by the symbols that stand for them.
    assigned : scalar variables that the nest assigns; of these `kept` are elements without subscripts,
        since the function reads them elsewhere.
    builtins : the functions of `BUILTINS` that it calls.
    has_floats : whether a number is written with a decimal point.
    """

    node: ast.For
    loop: Loop
    variables: list[Variable] = field(default_factory=list)
    arrays: dict[str, int] = field(default_factory=dict)
    integers: dict[Symbol, ast.expr] = field(default_factory=dict)
    scalars: dict[Symbol, ast.expr] = field(default_factory=dict)
    assigned: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()
    builtins: set[str] = field(default_factory=set)
    has_floats: bool = False


def python_nest(node: ast.For, function: str, kept: frozenset[str] = frozenset()) -> PythonNest:
    r"""The record of a loop and what is in it.

    Parameters
    ----------
    function : its name, for remarks.
    kept : scalar variables that are read behind the nest.

    Examples
    --------
    >>> text = "for i in range(n):\n for k in range(len(x)):\n  y[i] += A[i, k] * x[k]"
    >>> nest = python_nest(ast.parse(text).body[0], "f")
    >>> sorted(nest.arrays), [symbol.name for symbol in nest.integers]
    (['A', 'x', 'y'], ['n', 'len(x)'])
    """
    reader = _Reader(function, node, kept)
    statement = reader.loop(node)
    if not isinstance(statement, Loop):
        statement = replace(reader.nest.loop, body=(statement,))
    reader.nest.loop = statement
    return reader.nest


def assigned_names(node: ast.AST) -> frozenset[str]:
    """Every name that a statement binds, those in it included."""
    names = (child for child in ast.walk(node) if isinstance(child, ast.Name))
    return frozenset(name.id for name in names if not isinstance(name.ctx, ast.Load))


class _Reader:
    """Reads the statements of one nest."""

    def __init__(self, function: str, node: ast.For, kept: frozenset[str]) -> None:
        self.function = function
        self.bound = assigned_names(node)
        targets = frozenset(
            target.id
            for child in ast.walk(node)
            for target in _targets(child)
            if isinstance(target, ast.Name)
        )
        empty = Loop(Index(""), Extent.of(0), (), Where(function, node.lineno))
        self.nest = PythonNest(node, empty, assigned=targets, kept=kept)
        self.ranges: dict[str, Polynomial] = {}
        self.waiting: list[Statement] = []
        self.count = 0

    def where(self, node: ast.stmt | ast.expr) -> Where:
        return Where(self.function, node.lineno)

    def body(self, statements: list[ast.stmt]) -> Iterator[Statement]:
        for node in statements:
            found = self.statement(node)
            yield from self.waiting
            self.waiting.clear()
            if found is not None:
                yield found

    def statement(self, node: ast.stmt) -> Statement | None:
        """One statement; sums over generators, which stand before it, go to `waiting`."""
        where = self.where(node)
        match node:
            case ast.For():
                return self.loop(node)
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
                return Obstacle(STATEMENTS.get(type(node), "has a statement that no product has"), where)

    def assign(self, target: ast.expr, value: Value, where: Where) -> Statement:
        try:
            match target:
                case ast.Name(id=name) if name not in self.ranges:
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
                return self.counted(name, iterable, node.body, where)
            case ast.For(orelse=[]):
                return Obstacle("has a loop over more than one variable", where)
            case _:
                return Obstacle("has an else behind a loop", where)

    def counted(
        self, name: str, iterable: ast.expr, body: list[ast.stmt] | ast.expr, where: Where
    ) -> Statement:
        """A loop over a range; `body` is an expression where a generator's elements are summed."""
        match iterable:
            case ast.Call(func=ast.Name(id="range"), args=[_, *_] as arguments, keywords=[]):
                self.nest.builtins.add("range")
            case _:
                return Obstacle(f"has a loop over {ast.unparse(iterable)}, which is no range", where)
        if name in self.ranges or name in self.nest.assigned:
            return Obstacle(f"assigns the loop variable {name} inside of its loop", where)
        self.count += 1
        index = Index(name if all(v.name != name for v in self.nest.variables) else f"{name}'{self.count}")
        try:
            extent, value = self.range_of(arguments, index)
        except NotAnInteger as reason:
            return Obstacle(str(reason), where)
        self.ranges[name] = value
        if isinstance(body, ast.expr):
            held, added = Cell(f"the sum over {name}"), self.value(body)
            inner: tuple[Statement, ...] = (
                *self.waiting,
                Assign(held, Sum(Read(held), added, reassociates=True), where),
            )
            self.waiting.clear()
        else:
            self.nest.variables.append(Variable(name, value, index, extent))
            inner = tuple(self.body(body))
        del self.ranges[name]
        return Loop(index, extent, inner, where)

    def range_of(self, arguments: list[ast.expr], index: Index) -> tuple[Extent, Polynomial]:
        """How often a range counts, and what its variable is in an iteration."""
        start, stop, *rest = [ast.Constant(0), *arguments] if len(arguments) == 1 else arguments
        step = self.integer(rest[0]).constant if rest else 1
        if not step:
            raise NotAnInteger("has a range whose step is no number")
        first = self.integer(start)
        limit = "min" if step > 0 else "max"
        match stop:
            case ast.Call(func=ast.Name(id=name), args=ends, keywords=[]) if name == limit and len(ends) > 1:
                self.nest.builtins.add(name)
            case _:
                ends = [stop]
        spans = (self.integer(end) - first for end in ends)
        bounds = tuple(Bound(span if step > 0 else -span, abs(step)) for span in spans)
        return Extent(bounds), first + Polynomial.of(index) * step

    def integer(self, node: ast.expr) -> Polynomial:
        """An integer as a polynomial in loop indices and in what the nest does not assign."""
        match node:
            case ast.Constant(value=int() as value) if not isinstance(value, bool):
                return Polynomial.of(value)
            case ast.Name(id=name) if name in self.ranges:
                return self.ranges[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.integer(operand)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self.integer(left) + self.integer(right)
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return self.integer(left) - self.integer(right)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return self.integer(left) * self.integer(right)
            case _ if self.is_invariant(node):
                symbol = Symbol(ast.unparse(node))
                self.nest.integers[symbol] = node
                return Polynomial.of(symbol)
            case _:
                raise NotAnInteger(
                    f"counts with {ast.unparse(node)}, which is no sum of loop variables times numbers"
                )

    def is_invariant(self, node: ast.expr) -> bool:
        """Whether an expression is the same throughout the nest, and does nothing but to be computed."""
        match node:
            case ast.Name(id=name):
                return name not in self.bound
            case ast.Constant():
                return True
            case ast.Attribute(value=value) | ast.UnaryOp(operand=value):
                return self.is_invariant(value)
            case ast.BinOp(left=left, right=right):
                return self.is_invariant(left) and self.is_invariant(right)
            case ast.Subscript(value=ast.Attribute(attr="shape" | "strides", value=value), slice=axis):
                return self.is_invariant(value) and self.is_invariant(axis)
            case ast.Call(func=ast.Name(id="len"), args=[ast.Subscript(value=value, slice=ast.Constant())]):
                self.nest.builtins.add("len")
                return self.is_invariant(value)
            case ast.Call(func=ast.Name(id=name), args=parts, keywords=[]) if name in BUILTINS - {
                "range",
                "sum",
            }:
                self.nest.builtins.add(name)
                return all(map(self.is_invariant, parts))
            case _:
                return False

    def access(self, node: ast.Subscript) -> Access:
        """An element; ``A[i][k]`` is ``A[i, k]``."""
        axes: list[ast.expr] = []
        array: ast.expr = node
        while isinstance(array, ast.Subscript):
            own = array.slice.elts if isinstance(array.slice, ast.Tuple) else [array.slice]
            axes[:0] = own
            array = array.value
        name = ast.unparse(array)
        if not isinstance(array, ast.Name | ast.Attribute) or not self.is_invariant(array):
            raise NotAnInteger(f"takes elements of {name}, which the nest itself computes")
        if any(isinstance(axis, ast.Slice) or _is_special(axis) for axis in axes):
            raise NotAnInteger(f"takes a part of {name} and not an element")
        if self.nest.arrays.setdefault(name, len(axes)) != len(axes):
            raise NotAnInteger(f"takes elements and rows of {name}")
        subscripts = tuple(self.integer(axis) for axis in axes)
        offset = Polynomial()
        for number, subscript in enumerate(subscripts):
            offset = offset + subscript * Axis.of(name, number)
        return Access(Memory(Symbol(name), name), offset, None, self.where(node), subscripts)

    def scalar_access(self, name: str, where: Where) -> Access:
        """A variable as an array without axes."""
        self.nest.arrays[name] = 0
        return Access(Memory(Symbol(name), name), Polynomial(), None, where)

    def value(self, node: ast.expr) -> Value:
        """What an expression computes; whatever no sum of products has is `Unreadable`."""
        where = self.where(node)
        match node:
            case ast.Constant(value=float() | int() | complex() as number) if not isinstance(number, bool):
                self.nest.has_floats |= not isinstance(number, int)
                return Number(number)
            case ast.Name(id=name) if name in self.nest.kept:
                return Load(self.scalar_access(name, where))
            case ast.Name(id=name) if name in self.nest.assigned:
                return Read(Cell(name))
            case ast.Name(id=name) if name in self.ranges:
                return Unreadable(f"calculates with the loop variable {name}", where)
            case ast.Name() | ast.Attribute() if self.is_invariant(node):
                symbol = Symbol(ast.unparse(node))
                self.nest.scalars[symbol] = node
                return Scalar(symbol, None)
            case ast.Subscript():
                try:
                    return Load(self.access(node))
                except NotAnInteger as reason:
                    return Unreadable(str(reason), where)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return Minus(self.value(operand))
            case ast.BinOp(left=left, op=operator, right=right):
                return self.combined(self.value(left), operator, self.value(right), node)
            case ast.Call(func=ast.Name(id="sum"), args=[ast.GeneratorExp() as generator], keywords=[]):
                return self.summed(generator)
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
            case _:
                return Unreadable(OPERATORS.get(type(operator), "computes with bits"), self.where(node))

    def summed(self, generator: ast.GeneratorExp) -> Value:
        """``sum(x for k in range(n))``, as a variable that a loop in front of the statement adds to."""
        where = self.where(generator)
        match generator.generators:
            case [ast.comprehension(target=ast.Name(id=name), iter=iterable, ifs=[], is_async=0)]:
                outer, self.waiting = self.waiting, []
                loop = self.counted(name, iterable, generator.elt, where)
                cell = Cell(f"the sum over {name}")
                self.nest.builtins.add("sum")
                self.waiting = [*outer, Assign(cell, Number(0), where), loop]
                return Read(cell)
            case _:
                return Unreadable("sums over more than one range, or over a part of one", where)


def _targets(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.Assign(targets=targets):
            return targets
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target) | ast.NamedExpr(target=target):
            return [target]
        case _:
            return []


def _is_special(axis: ast.expr) -> bool:
    """Whether a subscript makes or keeps an axis: None, an ellipsis."""
    return isinstance(axis, ast.Constant) and not isinstance(axis.value, int)
