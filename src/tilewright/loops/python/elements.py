"""Array elements and index expressions in the source of a Python function."""

from __future__ import annotations

import ast
from dataclasses import field

from tilewright.loops.nests.nest import Access, Bound, CountedLoop, Extent, MemoryObject, Where
from tilewright.loops.nests.polynomial import Index, Polynomial, Symbol
from tilewright.loops.python.sequences import subscripts_of
from tilewright.records import dataclass

#: Built-in functions that a nest may call; the run-time check verifies that the names still refer to them.
BUILTINS = frozenset({"range", "len", "min", "max", "sum", "int", "abs"})


#: What the indices of loops begin with that slices stand for; no variable of a program does.
SLICE = "slice "


class NotAnInteger(Exception):
    """An expression is not a polynomial in loop variables; the argument says why."""


@dataclass(frozen=True)
class AxisStride(Symbol):
    """The stride of one array axis, in elements."""

    array: str = ""
    axis: int = 0

    @classmethod
    def of(cls, array: str, axis: int) -> AxisStride:
        """The symbol of an axis.

        >>> AxisStride.of("A", 1).name
        'A.strides[1]'
        """
        return cls(f"{array}.strides[{axis}]", array, axis)


@dataclass(frozen=True)
class LoopVariable:
    """A loop variable: its name, and its value behind the loop in terms of the last loop index.

    Names that no program has are of loops that the reader made.
    """

    name: str
    final: Polynomial
    index: Index
    extent: Extent


@dataclass(frozen=True)
class SliceRange:
    """The loop that a slice stands for: its index and length."""

    index: Index
    length: Polynomial


@dataclass
class PythonNest:
    """A nest of Python source, with the names used in its records.

    Attributes
    ----------
    node : the outermost loop.
    loop : its record.
    variables : loop variables in program order, without those of generators.
    arrays : number of subscripts of each array, by array expression.
    integers, scalars : expressions, by symbol.
    assigned : scalar variables that the nest assigns; those in `kept` are read elsewhere in the function and
        therefore treated as elements without subscripts.
    undone : names that have another value after the nest than its loops leave: see counted_while.py.
    builtins, modules : functions of `BUILTINS` that it calls, and names that it uses for NumPy.
    roots : names that it uses for NumPy or `math`, of which it takes square roots.
    differences : of lengths of slices that must be equal; the record is valid if all are 0.
    not_negative : the record is valid if none of these is negative.
    values : the variable of a loop, by its index.
    counts : trip counts of loops with steps, by symbol: span and step.
    numbers : those that are written in it.
    counters : integers that counters of `while` loops start from: the counters have their types.
    widens : whether a sum of small integers is computed in larger ones.
    """

    node: ast.For | ast.While
    loop: CountedLoop
    variables: list[LoopVariable] = field(default_factory=list)
    arrays: dict[str, int] = field(default_factory=dict)
    integers: dict[Symbol, ast.expr] = field(default_factory=dict)
    scalars: dict[Symbol, ast.expr] = field(default_factory=dict)
    assigned: frozenset[str] = frozenset()
    undone: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()
    builtins: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)
    roots: set[str] = field(default_factory=set)
    differences: list[Polynomial] = field(default_factory=list)
    not_negative: list[Polynomial] = field(default_factory=list)
    values: dict[Index, Polynomial] = field(default_factory=dict)
    counts: dict[Symbol, tuple[Polynomial, int]] = field(default_factory=dict)
    numbers: list[float | complex] = field(default_factory=list)
    counters: set[Symbol] = field(default_factory=set)
    widens: bool = False

    @property
    def has_floats(self) -> bool:
        """Whether a number is written with a decimal point."""
        return any(not isinstance(number, int) for number in self.numbers)

    def count_of(self, span: Polynomial, step: int) -> Polynomial:
        """The trip count of a loop with a step, which is no polynomial, as a symbol."""
        symbol = Symbol(f"ceil(({span}) / {step})")
        self.counts[symbol] = span, step
        return Polynomial.of(symbol)


class SubscriptReader:
    """Reads integers and array elements in the source of one nest.

    Parameters
    ----------
    function : its name, for remarks.
    nest : the record that is filled in.
    bound : every name that the nest binds.
    """

    def __init__(self, function: str, nest: PythonNest, bound: frozenset[str]) -> None:
        self.function, self.nest, self.bound = function, nest, bound
        self.ranges: dict[str, Polynomial] = {}
        self.parts: list[SliceRange] = []
        self.count = 0

    def where(self, node: ast.stmt | ast.expr) -> Where:
        """The line of a statement or an expression."""
        return Where(self.function, node.lineno)

    def range_of(self, arguments: list[ast.expr], index: Index) -> tuple[Extent, Polynomial]:
        """Trip count of a range, and the value of its variable in terms of the loop index."""
        start, stop, *rest = [ast.Constant(0), *arguments] if len(arguments) == 1 else arguments
        step = self.integer(rest[0]).constant if rest else 1
        if not step:
            raise NotAnInteger("has a range whose step is not a constant")
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
        """An integer as a polynomial in loop indices and values that the nest does not assign."""
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
                    f"counts with {ast.unparse(node)}, which is not affine in the loop variables"
                )

    def is_invariant(self, node: ast.expr) -> bool:
        """Whether an expression is loop-invariant and free of side effects."""
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
            case ast.Call(func=ast.Name(id="len"), args=[ast.Call(func=ast.Name(id="range"), args=parts)]):
                self.nest.builtins |= {"len", "range"}
                return all(map(self.is_invariant, parts))
            case ast.Call(func=ast.Name(id=name), args=parts, keywords=[]) if name in BUILTINS - {
                "range",
                "sum",
            }:
                self.nest.builtins.add(name)
                return all(map(self.is_invariant, parts))
            case _:
                return False

    def access(self, node: ast.Subscript) -> Access:
        """An element access; ``A[i][k]`` is ``A[i, k]``."""
        name, axes = self.array_of(node)
        count = len(slices_of(node))
        in_steps = count > 0 and isinstance(node.value, ast.Subscript)  # A[:, i][k] is A[k, i]
        if count > len(self.parts) or in_steps or any(map(_is_special, axes)):
            raise NotAnInteger(f"takes a slice of {name} instead of an element")
        if self.nest.arrays.setdefault(name, len(axes)) != len(axes):
            raise NotAnInteger(f"takes elements and rows of {name}")
        parts = iter(self.parts[len(self.parts) - count :])  # the last axes of arrays meet
        subscripts = tuple(
            self.element(name, place, axis, next(parts))
            if isinstance(axis, ast.Slice)
            else self.integer(axis)
            for place, axis in enumerate(axes)
        )
        offset = Polynomial()
        for number, subscript in enumerate(subscripts):
            offset = offset + subscript * AxisStride.of(name, number)
        return Access(MemoryObject(Symbol(name), name), offset, None, self.where(node), subscripts)

    def array_of(self, node: ast.Subscript) -> tuple[str, list[ast.expr]]:
        """The expression of an array, and the subscripts of an access to it."""
        array, axes = subscripts_of(node)
        name = ast.unparse(array)
        if not isinstance(array, ast.Name | ast.Attribute) or not self.is_invariant(array):
            raise NotAnInteger(f"takes elements of {name}, which the nest itself assigns")
        return name, axes

    def part(self, name: str, place: int, axis: ast.Slice) -> tuple[Polynomial, Polynomial]:
        """The first subscript of a slice, and its length."""
        if axis.step is not None:
            raise NotAnInteger(f"takes every n-th element of {name}")
        first = Polynomial() if axis.lower is None else self.integer(axis.lower)
        end = axis.upper or ast.parse(f"{name}.shape[{place}]", mode="eval").body
        return first, self.integer(end) - first

    def ranges_of(self, node: ast.Subscript) -> list[tuple[Polynomial, Polynomial]]:
        """The first subscripts and the lengths of the slices among the subscripts, in order."""
        name, axes = self.array_of(node)
        slices = [(place, axis) for place, axis in enumerate(axes) if isinstance(axis, ast.Slice)]
        return [self.part(name, place, axis) for place, axis in slices]

    def new_part(self, length: Polynomial) -> SliceRange:
        """A new loop for a slice."""
        self.count += 1
        return SliceRange(Index(f"{SLICE}{self.count}"), length)

    def element(self, name: str, place: int, axis: ast.Slice, part: SliceRange) -> Polynomial:
        """The subscript of a slice's element in terms of the index of its loop."""
        first, length = self.part(name, place, axis)
        difference = length - part.length
        if difference.indices:
            raise NotAnInteger(f"takes a slice of {name} whose length varies with another one's")
        if difference:
            self.nest.differences.append(difference)
        return first + part.index

    def scalar_access(self, name: str, where: Where) -> Access:
        """A scalar variable as an array without axes."""
        self.nest.arrays[name] = 0
        return Access(MemoryObject(Symbol(name), name), Polynomial(), None, where)


def slices_of(node: ast.Subscript) -> list[ast.Slice]:
    """The slices among the subscripts."""
    return [axis for axis in subscripts_of(node)[1] if isinstance(axis, ast.Slice)]


def _is_special(axis: ast.expr) -> bool:
    """Whether a subscript adds or keeps an axis: None, an ellipsis."""
    return isinstance(axis, ast.Constant) and not isinstance(axis.value, int)
