"""The tiles of one call in order: which statement runs, where its loops are, and what it touches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from itertools import islice, product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.compiler.example import Example, View
from tilewright.errors import InvalidTileIr
from tilewright.ir.expressions import Constant, Expression, TableEntry
from tilewright.ir.interpret import Interpreter
from tilewright.ir.nodes import (
    If,
    Let,
    Loop,
    Pack,
    Primitive,
    Program,
    Slice,
    Statement,
    TileEpilogue,
    TileMatmul,
    UnaryMap,
)
from tilewright.ir.primitives.budget import Spend
from tilewright.ir.primitives.prefetch import PrefetchRows
from tilewright.ir.primitives.tables import PackTable, ScatterTile
from tilewright.records import dataclass

#: Steps that a page has: a thousand seconds of play at one step a frame would bore, and 200 KB of them fit.
MOST_STEPS = 3000
#: Steps that are counted beyond these.
MOST_COUNTED = 60_000
#: Rectangles of one window, and runs of one of its rows, that are drawn apart; more become one.
_MOST_PARTS, _MOST_RUNS = 64, 16
#: The stride of an axis along which elements repeat.
_SAME = Constant(0)


@dataclass(frozen=True)
class WindowAccess:
    """A window that a step reads or writes: rectangles of its buffer (row, column, rows, columns)."""

    buffer: str
    role: str
    parts: tuple[tuple[int, int, int, int], ...]


@dataclass(frozen=True)
class Step:
    """One primitive that runs.

    Attributes
    ----------
    statement : its number; see `ir.text.statement_lines`.
    axes : the loops around it and where they are, outermost first.
    touches : what it reads and writes.
    """

    statement: int
    axes: tuple[tuple[str, int], ...]
    touches: tuple[WindowAccess, ...]


@dataclass(frozen=True)
class CallSteps:
    """The steps of a call.

    Attributes
    ----------
    steps : the first `MOST_STEPS`.
    count : how many the call has; `MOST_COUNTED` stands for more.
    words : for each statement that runs, what it is.
    multiply_adds : of the register tiles in all steps that were counted.
    """

    steps: tuple[Step, ...]
    count: int
    words: Mapping[int, str]
    multiply_adds: int

    @property
    def whole(self) -> bool:
        """Whether every step was counted."""
        return self.count < MOST_COUNTED


class _Walker(Interpreter):
    """Follows loops and conditions as one thread runs them."""

    def __init__(self, program: Program, example: Example) -> None:
        tables = {name: (np.array(values, np.int64), 0) for name, values in example.tables.items()}
        super().__init__({**tables}, dict.fromkeys(program.scalars, 1.0) | {"beta": 0.0})
        self.views = example.views
        self.complex = {one.name for one in program.buffers if one.dtype.real != one.dtype}
        self.words: dict[int, str] = {}
        self._sizes: dict[int, int] = {}

    def integer(self, node: Expression, names: Mapping[str, int]) -> int:
        """As for `Interpreter`; flags that a run sets are 0."""
        if isinstance(node, TableEntry) and node.buffer not in self.buffers:
            return 0
        return super().integer(node, names)

    def _count(self, statement: Statement) -> int:
        """The statement and all inside it."""
        if id(statement) not in self._sizes:
            match statement:
                case Loop(body=body):
                    inside = body
                case If(then=then, otherwise=otherwise):
                    inside = (*then, *otherwise)
                case _:
                    inside = ()
            self._sizes[id(statement)] = 1 + sum(map(self._count, inside))
        return self._sizes[id(statement)]

    def follow(
        self,
        body: tuple[Statement, ...],
        names: Mapping[str, int],
        number: int,
        axes: tuple[tuple[str, int], ...] = (),
    ) -> Iterator[tuple[int, Statement, Mapping[str, int], tuple[tuple[str, int], ...]]]:
        """The primitives of a block in order: number, statement, values of names, places of the loops."""
        names = dict(names)
        for statement in body:
            own, number = number, number + self._count(statement)
            match statement:
                case Let(name, value):
                    names[name] = self.integer(value, names)
                case Loop():
                    yield from self.turns(statement, names, own, axes)
                case If(condition, then, otherwise):
                    first = own + 1
                    if self.holds(condition, names):
                        yield from self.follow(then, names, first, axes)
                    else:
                        yield from self.follow(otherwise, names, first + sum(map(self._count, then)), axes)
                case Spend() | PrefetchRows():  # computes nothing
                    pass
                case _:
                    yield own, statement, names, axes

    def turns(
        self, loop: Loop, names: Mapping[str, int], number: int, axes: tuple[tuple[str, int], ...]
    ) -> Iterator[tuple[int, Statement, Mapping[str, int], tuple[tuple[str, int], ...]]]:
        """All turns of a loop in order; of fused loops too."""
        loops = loop.fused()
        spans = [
            range(*(self.integer(part, names) for part in (one.begin, one.end, one.step))) for one in loops
        ]
        for places in product(*spans):
            here = tuple((one.axis, place) for one, place in zip(loops, places, strict=True))
            yield from self.follow(
                loops[-1].body, {**names, **dict(here)}, number + len(loops), (*axes, *here)
            )

    def multiply_adds(self, node: Statement, names: Mapping[str, int]) -> int:
        """Of one register tile; 0 of other statements."""
        if not isinstance(node, TileMatmul):
            return 0
        count = 1 if node.batch is None else self.integer(node.batch.count, names)
        return count * prod(self.integer(one, names) for one in (node.rows, node.columns, node.depth))

    def touches(self, node: Statement, names: Mapping[str, int]) -> Iterator[WindowAccess]:
        """What a primitive reads and writes."""

        def size(value: Expression) -> int:
            return self.integer(value, names)

        match node:
            case TileMatmul(c=c, a=a, b=b, rows=m, columns=n, depth=k):
                shape = (size(m), size(n), size(k))
                yield self.touch(a, "A", (shape[0], shape[2]), names)
                yield self.touch(b, "B", (shape[1], shape[2]), names)
                yield self.touch(c, "C", (shape[0], shape[1]), names)
            case Pack(destination=to, source=source, lanes=lanes, depth=depth):
                found = (size(lanes), size(depth))
                yield self.touch(source, "read", found, names)
                yield self.strip(to, "packed", found[0] * found[1], names)
            case TileEpilogue(c=c, sums=sums, rows=m, columns=n):
                yield self.touch(sums, "read", (size(m), size(n)), names)
                yield self.touch(c, "written", (size(m), size(n)), names)
            case UnaryMap(destination=to, source=source, rows=m, columns=n):
                if source is not None:
                    yield self.touch(source, "read", (size(m), size(n)), names)
                yield self.touch(to, "written", (size(m), size(n)), names)
            case PackTable(to=to, source=source, lanes=lanes, depth=depth):
                at = (node.lanes_at, size(lanes)), (node.depths_at, size(depth))
                yield self.by_tables(source, "read", at, names)
                yield self.strip(to, "packed", size(lanes) * size(depth), names)
            case ScatterTile(to=to, tile=tile, rows=m, columns=n):
                yield self.touch(tile, "read", (size(m), size(n)), names)
                at = (node.rows_at, size(m)), (node.columns_at, size(n))
                yield self.by_tables(to, "written", at, names)
            case Primitive():
                yield from self._of_primitive(node, names)

    def _of_primitive(self, node: Primitive, names: Mapping[str, int]) -> Iterator[WindowAccess]:
        """The windows of a primitive whose fields name rows and columns."""
        given: dict[str, Any] = {one.name: getattr(node, one.name) for one in fields(node)}
        rows, columns = given.get("rows"), given.get("columns", given.get("lanes"))
        if not isinstance(rows, Expression):
            return
        extent = (self.integer(rows, names), 1)
        if isinstance(columns, Expression):
            extent = (extent[0], self.integer(columns, names))
        for name, value in given.items():
            if isinstance(value, Slice):
                flat = value.strides[1] == _SAME
                yield self.touch(value, name, (extent[0], 1) if flat else extent, names)

    def by_tables(
        self,
        part: Slice,
        role: str,
        tables: tuple[tuple[Slice, int], tuple[Slice, int]],
        names: Mapping[str, int],
    ) -> WindowAccess:
        """Elements whose places are sums of entries of two tables."""
        (first, count), (second, length) = tables
        outer, inner = (
            self.window(one, (size, 1), names) for one, size in ((first, count), (second, length))
        )
        cells = np.unique(self.integer(part.offset, names) + outer + inner.T)
        view = self.views.get(part.buffer)
        if view is None or not cells.size:
            return WindowAccess(part.buffer, role, ())
        return WindowAccess(part.buffer, role, rectangles_of(view, cells))

    def strip(self, part: Slice, role: str, elements: int, names: Mapping[str, int]) -> WindowAccess:
        """Adjacent elements from the first one of a window."""
        offset = self.integer(part.offset, names)
        return WindowAccess(part.buffer, role, ((0, offset, 1, max(elements, 1)),))

    def touch(self, part: Slice, role: str, shape: tuple[int, int], names: Mapping[str, int]) -> WindowAccess:
        """A window as rectangles of the view of its buffer, or of memory."""
        offset = self.integer(part.offset, names)
        strides = (self.integer(part.strides[0], names), self.integer(part.strides[1], names))
        view = self.views.get(part.buffer)
        if view is None or part.index is not None or part.panels is not None:
            reach = sum(max(0, count - 1) * stride for count, stride in zip(shape, strides, strict=True))
            return WindowAccess(part.buffer, role, ((0, offset, 1, max(reach + 1, 1)),))
        # Sums of complex numbers are real and imaginary parts side by side, in a C that holds both.
        parts = 2 if part.buffer in self.complex and role in ("C", "written") else 1
        if parts == 1 and part.interleave == 1:
            return WindowAccess(part.buffer, role, rectangles(view, offset, strides, shape))
        i, p = np.ogrid[: shape[0], : shape[1]]
        cells = offset + i * strides[0] + p // part.interleave * strides[1] + p % part.interleave
        return WindowAccess(part.buffer, role, rectangles_of(view, np.unique(cells // parts)))


def rectangles(
    view: View, offset: int, strides: tuple[int, int], shape: tuple[int, int]
) -> tuple[tuple[int, int, int, int], ...]:
    """The cells of a view that a window covers, as rectangles (row, column, rows, columns).

    >>> rectangles(View(8, 10, 10, 1), 23, (10, 1), (2, 4))
    ((2, 3, 2, 4),)
    >>> rectangles(View(8, 10, 10, 1), 23, (1, 10), (2, 4))
    ((2, 3, 4, 2),)
    >>> rectangles(View(8, 10, 10, 1), 8, (2, 1), (2, 2))
    ((0, 8, 1, 2), (1, 0, 1, 2))
    """
    if 0 in shape:
        return ()
    wide, big, small = _directions(view)
    most = view.columns if wide else view.rows
    outer, inner = divmod(offset, big)
    inner //= small
    for (over, along), (count, length) in ((strides, shape), (strides[::-1], shape[::-1])):
        if (over == big or count == 1) and (along == small or length == 1) and inner + length <= most:
            found = (outer, inner, count, length)
            return (found if wide else (inner, outer, length, count),)
    i, p = np.ogrid[: shape[0], : shape[1]]
    return rectangles_of(view, np.unique(offset + i * strides[0] + p * strides[1]))


def _directions(view: View) -> tuple[bool, int, int]:
    """Whether rows are further apart than columns, and the larger and the smaller stride."""
    wide = view.row_stride >= view.column_stride
    strides = view.row_stride, view.column_stride
    return wide, max(*strides, 1), max(min(strides), 1)


def rectangles_of(view: View, cells: NDArray[np.int64]) -> tuple[tuple[int, int, int, int], ...]:
    """Sorted elements of a buffer as rectangles of its view; of very many, the rectangle around them.

    >>> rectangles_of(View(8, 10, 10, 1), np.array([3, 4, 13, 14, 25]))
    ((0, 3, 2, 2), (2, 5, 1, 1))
    """
    wide, big, small = _directions(view)
    outers, inners = cells // big, cells % big // small
    rows = np.unique(outers)
    parts: list[tuple[int, int, int, int]] = []
    for row in rows:
        inside = inners[outers == row]
        cuts = np.flatnonzero(np.diff(inside) > 1) + 1
        for run in np.split(inside, cuts if len(cuts) <= _MOST_RUNS else []):
            begin, length = int(run[0]), int(run[-1] - run[0] + 1)
            above = parts[-1] if parts else (0, 0, 0, 0)
            if above[1:] == (begin, above[2], length) and above[0] + above[2] == row:
                parts[-1] = (above[0], begin, above[2] + 1, length)
            else:
                parts.append((int(row), begin, 1, length))
    if len(parts) > _MOST_PARTS:
        begin, end = int(inners.min()), int(inners.max()) + 1
        parts = [(int(rows[0]), begin, int(rows[-1] - rows[0] + 1), end - begin)]
    return tuple(part if wide else (part[1], part[0], part[3], part[2]) for part in parts)


#: What statements do, by their class.
_WORDS = {
    TileMatmul: "multiply one register tile",
    Pack: "pack a block into panels",
    TileEpilogue: "finish sums and store C",
    UnaryMap: "apply a function to elements",
}


def walk_of(program: Program, example: Example) -> CallSteps:
    """The steps of a call as one thread runs them.

    Raises
    ------
    InvalidTileIr : if the example lacks what the program reads.

    Examples
    --------
    >>> import tilewright as tw
    >>> from tilewright.compiler.matrix_example import example_of
    >>> kernel = tw.compile(tw.Gemm(12, 64, 8), "znver4")
    >>> walk = walk_of(kernel.nest, example_of(kernel, {}))
    >>> walk.count, walk.steps[-1].touches[2].parts
    (2, ((6, 0, 6, 64),))
    """
    walker = _Walker(program, example)
    steps, count, work = [], 0, 0
    words: dict[int, str] = {}
    try:
        places = walker.follow(program.body, example.sizes, 0)
        for number, node, names, axes in islice(places, MOST_COUNTED):
            if count < MOST_STEPS:
                steps.append(Step(number, axes, tuple(walker.touches(node, names))))
                words[number] = _WORDS.get(type(node), getattr(node, "word", "").replace("_", " "))
            count += 1
            work += walker.multiply_adds(node, names)
    except KeyError as error:
        raise InvalidTileIr(where=str(error), reason="has no value in the example") from error
    return CallSteps(tuple(steps), count, words, work)
