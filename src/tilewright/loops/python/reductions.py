"""Sums and dot products in expressions of Python, as loops in front of the statement that has them."""

from __future__ import annotations

import ast

from tilewright.loops.nests.nest import (
    Assign,
    Cell,
    CountedLoop,
    Extent,
    Number,
    Obstacle,
    Read,
    Statement,
    Sum,
    Times,
    Unreadable,
    Value,
    Where,
)
from tilewright.loops.nests.polynomial import Index, Polynomial
from tilewright.loops.python.elements import NotAnInteger, PythonNest, SubscriptReader, slices_of
from tilewright.loops.python.sequences import subscripts_of

#: Functions of NumPy that multiply two vectors.
DOTS = frozenset({"dot", "inner"})


class ReductionReader(SubscriptReader):
    """Reads `sum` of comprehensions, and dot products of rows and columns."""

    def __init__(self, function: str, nest: PythonNest, bound: frozenset[str]) -> None:
        super().__init__(function, nest, bound)
        self.waiting: list[Statement] = []
        #: The loops around what is read, and how many conditions.
        self.open: list[tuple[Index, Extent]] = []
        self.conditional = 0
        self.indices: set[str] = set()

    def value(self, node: ast.expr) -> Value:
        """The value of an expression."""
        raise NotImplementedError

    def reduction(self, node: ast.expr) -> Value | None:
        """The value of an expression that is a sum over more than it names; None for any other."""
        match node:
            case ast.BinOp(left=left, op=ast.MatMult(), right=right):
                return self._dot(left, right, node)
            case ast.Call(
                func=ast.Name(id="sum"), args=[ast.GeneratorExp() | ast.ListComp() as terms, *starts]
            ):
                return self._summed(terms, [*starts, *(word.value for word in node.keywords)])
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=module), attr=name), args=[left, right], keywords=[]
            ) if name in DOTS and module not in self.bound:
                self.nest.modules.add(module)
                return self._dot(left, right, node)
            case ast.Call(
                func=ast.Attribute(value=ast.Subscript() as left, attr="dot"), args=[right], keywords=[]
            ):
                return self._dot(left, right, node)
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=module), attr="sum"),
                args=[ast.BinOp(left=left, op=ast.Mult(), right=right)],
                keywords=[],
            ) if module not in self.bound and _whole(left) and _whole(right):
                self.nest.modules.add(module)
                self.nest.widens = True
                return self._dot(left, right, node)
            case ast.Call(
                func=ast.Attribute(value=ast.BinOp(left=left, op=ast.Mult(), right=right), attr="sum"),
                args=[],
                keywords=[],
            ) if _whole(left) and _whole(right):
                self.nest.widens = True
                return self._dot(left, right, node)
            case _:
                return None

    def opened(
        self, name: str, iterable: ast.expr, where: Where
    ) -> tuple[Index, Extent, Polynomial] | Obstacle:
        """Makes a range known by the name of its variable, until that is deleted from `ranges`."""
        match iterable:
            case ast.Call(func=ast.Name(id="range"), args=[_, *_] as arguments, keywords=[]):
                self.nest.builtins.add("range")
            case _:
                return Obstacle(f"has a loop over {ast.unparse(iterable)}, which is not a range", where)
        if name in self.ranges or name in self.nest.assigned:
            return Obstacle(f"assigns the loop variable {name} inside of its loop", where)
        index = self.new_index(name)
        try:
            extent, value = self.range_of(arguments, index)
        except NotAnInteger as reason:
            return Obstacle(str(reason), where)
        self.ranges[name] = self.nest.values[index] = value
        self.open.append((index, extent))
        return index, extent, value

    def new_index(self, name: str) -> Index:
        """An index that no other loop has, of the given name if that is free."""
        self.count += 1
        index = Index(f"{name}'{self.count}" if name in self.indices else name)
        self.indices.add(name)
        return index

    def at_least(self, value: Polynomial) -> None:
        """Notes that an integer must not be negative in any iteration of the loops around."""
        for index, extent in reversed(self.open):
            form = value.linear([index])
            slope = None if form is None else form.coefficient(index).constant
            if slope is None:
                raise NotAnInteger("has a condition on a product of loop variables")
            if slope < 0:
                value = value.substitute({index: extent.bounds[0].last})
            else:
                value = value.substitute({index: 0})
        if value.constant is None:
            self.nest.not_negative.append(value)
        elif value.constant < 0:
            raise NotAnInteger("has a condition that is met outside of the range of its loop")

    def new_cell(self, name: str) -> Cell:
        """A variable of its own."""
        self.count += 1
        return Cell(f"{name}, number {self.count}")

    def _dot(self, left: ast.expr, right: ast.expr, node: ast.expr) -> Value:
        """``A[i, :] @ B[:, j]`` as a variable that a preceding loop accumulates."""
        where = self.where(node)
        one, other = _whole(left), _whole(right)
        if self.parts or one is None or other is None:
            return Unreadable("multiplies whole matrices", where)
        try:
            ((_, length),) = self.ranges_of(one)
            self.at_least(length)
        except NotAnInteger as reason:
            return Unreadable(str(reason), where)
        part = self.new_part(length)
        self.parts = [part]
        added = Times(self.value(one), self.value(other), contracts=True)
        self.parts = []
        cell = self.new_cell(f"the product in line {node.lineno}")
        total = Assign(cell, Sum(Read(cell), added, reassociates=True), where)
        loop = CountedLoop(part.index, Extent.of(part.length), (total,), where)
        self.waiting += [Assign(cell, Number(0), where), loop]
        return Read(cell)

    def _summed(self, terms: ast.GeneratorExp | ast.ListComp, starts: list[ast.expr]) -> Value:
        """``sum(x for k in range(n))`` as a variable that a preceding loop accumulates."""
        where = self.where(terms)
        if len(starts) > 1 or any(part.ifs or part.is_async for part in terms.generators):
            return Unreadable("sums over a part of a range", where)
        start: Value = self.value(starts[0]) if starts else Number(0)
        names = ", ".join(ast.unparse(part.target) for part in terms.generators)
        cell = self.new_cell(f"the sum over {names}")
        outer, self.waiting = self.waiting, []
        loop = self._terms(terms.generators, terms.elt, cell, where)
        if isinstance(loop, Obstacle):
            self.waiting = outer
            return Unreadable(loop.reason, where)
        self.nest.builtins.add("sum")
        self.waiting = [*outer, Assign(cell, Number(0), where), loop]
        return Sum(start, Read(cell), reassociates=True) if starts else Read(cell)

    def _terms(
        self, generators: list[ast.comprehension], element: ast.expr, cell: Cell, where: Where
    ) -> Statement:
        """The loops of a comprehension, which add its elements to a variable."""
        first, *rest = generators
        if not isinstance(first.target, ast.Name):
            return Obstacle(f"sums over {ast.unparse(first.iter)}", where)
        opened = self.opened(first.target.id, first.iter, where)
        if isinstance(opened, Obstacle):
            return opened
        index, extent, _ = opened
        if rest:
            inner = self._terms(rest, element, cell, where)
            body: tuple[Statement, ...] = (inner,)
        else:
            added = self.value(element)
            body = (*self.waiting, Assign(cell, Sum(Read(cell), added, reassociates=True), where))
            self.waiting = []
        del self.ranges[first.target.id]
        self.open.pop()
        return CountedLoop(index, extent, body, where)


def _whole(node: ast.expr) -> ast.Subscript | None:
    """A vector with its slice: ``A[i]`` is ``A[i, :]``; None for what is no vector."""
    match node:
        case ast.Subscript():
            slices = len(slices_of(node))
            if slices == 1:
                return node
            return None if slices else _with_slice(node)
        case ast.Name():
            return _with_slice(node)
        case _:
            return None


def _with_slice(array: ast.expr) -> ast.Subscript:
    base, axes = subscripts_of(array) if isinstance(array, ast.Subscript) else (array, [])
    every: list[ast.expr] = [*axes, ast.Slice()]
    place = every[0] if len(every) == 1 else ast.Tuple(every, ast.Load())
    made = ast.copy_location(ast.Subscript(base, place, ast.Load()), array)
    return ast.fix_missing_locations(made)
