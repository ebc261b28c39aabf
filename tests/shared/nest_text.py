"""Loop nests written as Python text, for tests: what stands behind the records is plain to see.

``C[i, j]`` is an element of a row-major matrix with a leading dimension "ldC" and ``C[x]`` one of a vector;
a layout says otherwise. Names that are assigned are variables, other names numbers. ``f64(x)`` converts,
``hole()`` is an obstacle, ``range(0, n, 2)`` and ``range(ii, min(ii + 8, n))`` are bounds of loops.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from textwrap import dedent

from tilewright.loops.nests.nest import (
    Access,
    Assign,
    Bound,
    Cell,
    Conversion,
    CountedLoop,
    Extent,
    InvariantScalar,
    Load,
    MemoryObject,
    Minus,
    Number,
    Obstacle,
    Read,
    Statement,
    Sum,
    Times,
    Value,
    Where,
)
from tilewright.loops.nests.polynomial import Index, Polynomial, Symbol
from tilewright.spec.dtype import DTYPES, F32, DType


@dataclass(frozen=True)
class Layout:
    """Memory of an array: its type, strides of its axes in elements, and the memory and place it is in."""

    dtype: DType = F32
    strides: tuple[int | str, ...] = ()
    memory: str = ""
    offset: int = 0
    private: bool = True


@dataclass
class Reader:
    """Makes records of syntax trees."""

    layouts: Mapping[str, Layout] = field(default_factory=dict)
    fast: bool = True
    scalar_type: DType = F32
    ranges: dict[str, Polynomial] = field(default_factory=dict)
    loops: int = 0
    cells: set[str] = field(default_factory=set)

    def body(self, statements: list[ast.stmt]) -> tuple[Statement, ...]:
        return tuple(self.statement(statement) for statement in statements)

    def statement(self, node: ast.stmt) -> Statement:
        where = Where("f", node.lineno)
        match node:
            case ast.For(target=ast.Name(id=name), iter=ast.Call(args=arguments), body=body):
                return self.loop(name, arguments, body, where)
            case ast.Assign(targets=[target], value=value):
                return Assign(self.target(target), self.value(value), where)
            case ast.AugAssign(target=target, op=operation, value=value):
                plain = ast.parse(ast.unparse(target), mode="eval").body
                return Assign(self.target(target), self.value(ast.BinOp(plain, operation, value)), where)
            case _:
                return Obstacle("calls hole()", where)

    def loop(self, name: str, arguments: list[ast.expr], body: list[ast.stmt], where: Where) -> CountedLoop:
        start, stop, *step = [ast.Constant(0), *arguments] if len(arguments) == 1 else arguments
        stride = self.integer(step[0]).constant if step else 1
        assert stride is not None
        first = self.integer(start)
        ends = stop.args if isinstance(stop, ast.Call) else [stop]
        spans = [self.integer(end) - first if stride > 0 else first - self.integer(end) for end in ends]
        self.loops += 1
        index = Index(f"{name}{self.loops}")
        shadowed = dict(self.ranges)
        self.ranges[name] = first + Polynomial.of(index) * stride
        extent = Extent(tuple(Bound(span, abs(stride)) for span in spans))
        loop = CountedLoop(index, extent, self.body(body), where)
        self.ranges = shadowed
        return loop

    def integer(self, node: ast.expr) -> Polynomial:
        match node:
            case ast.Constant(value=int() as value):
                return Polynomial.of(value)
            case ast.Name(id=name):
                return self.ranges.get(name, Polynomial.of(Symbol(name)))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.integer(operand)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self.integer(left) + self.integer(right)
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return self.integer(left) - self.integer(right)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return self.integer(left) * self.integer(right)
            case _:
                raise NotImplementedError(ast.unparse(node))

    def target(self, node: ast.expr) -> Access | Cell:
        return Cell(node.id) if isinstance(node, ast.Name) else self.access(node)

    def access(self, node: ast.expr) -> Access:
        assert isinstance(node, ast.Subscript)
        name = ast.unparse(node.value)
        layout = self.layouts.get(name, Layout())
        axes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        leading: list[int | str] = [f"ld{name}", 1]
        strides = layout.strides or leading[2 - len(axes) :]
        offset = Polynomial.of(layout.offset)
        for axis, stride in zip(axes, strides, strict=True):
            offset = offset + self.integer(axis) * (Symbol(stride) if isinstance(stride, str) else stride)
        memory = MemoryObject(Symbol(layout.memory or name), layout.memory or name, layout.private)
        return Access(memory, offset * layout.dtype.size, layout.dtype, Where("f", node.lineno))

    def value(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(value=float() | int() as value):
                return Number(value)
            case ast.Name(id=name):
                return (
                    Read(Cell(name))
                    if name in self.cells
                    else InvariantScalar(Symbol(name), self.scalar_type)
                )
            case ast.Subscript():
                return Load(self.access(node))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return Minus(self.value(operand))
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return Sum(self.value(left), self.value(right), self.fast)
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return Sum(self.value(left), Minus(self.value(right)), self.fast)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return Times(self.value(left), self.value(right), self.fast)
            case ast.Call(func=ast.Name(id=name), args=[argument]):
                return Conversion(self.value(argument), DTYPES[name])
            case _:
                raise NotImplementedError(ast.unparse(node))


def nest_of(
    text: str,
    layouts: Mapping[str, Layout] | None = None,
    *,
    fast: bool = True,
    scalar_type: DType = F32,
) -> CountedLoop:
    """The nest that a text is; `fast` permits sums to be reassociated and products to be contracted."""
    tree = ast.parse(dedent(text))
    assigned = (
        target
        for node in ast.walk(tree)
        for target in (
            node.targets
            if isinstance(node, ast.Assign)
            else [node.target]
            if isinstance(node, ast.AugAssign)
            else []
        )
    )
    cells = {target.id for target in assigned if isinstance(target, ast.Name)}
    reader = Reader(layouts or {}, fast, scalar_type, cells=cells)
    (loop,) = reader.body(tree.body)
    assert isinstance(loop, CountedLoop)
    return loop
