"""The memory accesses of a program for given sizes: which bytes its tiles and copies touch, in order.

What a model of caches needs: one address for each element, in the order in which a register tile or a copy
takes them. Prefetches, the order inside a depth or a block of a copy, and the stack are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import InvalidTileIr
from tilewright.ir.expressions import Expression, Lead
from tilewright.ir.interpret import Interpreter
from tilewright.ir.nodes import (
    If,
    Let,
    Loop,
    Pack,
    Program,
    Slice,
    Statement,
    TileEpilogue,
    TileMatmul,
    UnaryMap,
)
from tilewright.ir.primitives.budget import Spend
from tilewright.ir.primitives.prefetch import PrefetchRows

Addresses: TypeAlias = NDArray[np.int64]

#: Bytes between the starts of two buffers, which is more than any of them has.
APART = 1 << 40

#: Depths that a copy reads of each lane before it goes to the next: a vector's, where they are adjacent.
COPIED_DEPTHS = 8


def buffer_of(program: Program, address: int) -> str:
    """The buffer that an address of `accesses` is in."""
    return program.buffers[address // APART - 1].name


class _Placed(Interpreter):
    """Follows the loops and conditions of a program, and yields what each primitive touches."""

    def __init__(self, program: Program, scalars: Mapping[str, complex], starts: Mapping[str, int]) -> None:
        super().__init__({}, scalars)
        self.bits = {buffer.name: buffer.dtype.bits for buffer in program.buffers}
        places = enumerate(program.buffers, start=1)
        self.starts = {buffer.name: place * APART + starts.get(buffer.name, 0) for place, buffer in places}

    def integer(self, node: Expression, names: Mapping[str, int]) -> int:
        """As for `Interpreter`; an address is that of the buffer's place."""
        if isinstance(node, Lead):
            bits = self.bits[node.buffer]
            address = self.starts[node.buffer] + self.integer(node.offset, names) * bits // 8
            return -address % node.unit_bytes * 8 // bits
        return super().integer(node, names)

    def touched(self, part: Slice, shape: tuple[int, int], names: Mapping[str, int]) -> Addresses:
        """The address of each element of a window."""
        if part.index is not None:
            raise InvalidTileIr(where=part.buffer, reason="holds pointers, whose places are not known")
        first, second = (self.integer(stride, names) for stride in part.strides)
        i, p = np.ogrid[: shape[0], : shape[1]]
        lane = i if part.panels is None else i % part.panels.lanes
        at = self.integer(part.offset, names) + lane * first
        if part.panels is not None:
            at = at + i // part.panels.lanes * self.integer(part.panels.stride, names)
        at = at + p // part.interleave * second + p % part.interleave
        found: Addresses = self.starts[part.buffer] + at * self.bits[part.buffer] // 8
        return found

    def touches(self, body: tuple[Statement, ...], names: Mapping[str, int]) -> Iterator[Addresses]:
        """The addresses that each primitive of a block touches."""
        names = dict(names)
        for statement in body:
            match statement:
                case Let(name, value):
                    names[name] = self.integer(value, names)
                case Loop():
                    yield from self.iterations(statement, names)
                case If(condition, then, otherwise):
                    yield from self.touches(then if self.holds(condition, names) else otherwise, names)
                case Pack():
                    yield self.packed(statement, names)
                case TileMatmul():
                    yield self.multiplied(statement, names)
                case TileEpilogue(c=c, sums=sums, rows=rows, columns=columns):
                    yield self.windows((sums, c), (rows, columns), names)
                case UnaryMap(destination=to, source=source, rows=rows, columns=columns):
                    yield self.windows((to,) if source is None else (source, to), (rows, columns), names)
                case Spend() | PrefetchRows():  # touch no memory that counts
                    pass
                case _:
                    reason = "is a primitive whose accesses are not described"
                    raise InvalidTileIr(where=type(statement).__name__, reason=reason)

    def iterations(self, loop: Loop, names: Mapping[str, int]) -> Iterator[Addresses]:
        """All iterations in order, of fused loops too, as one thread runs them."""
        loops = loop.fused()
        ends = [[self.integer(part, names) for part in (one.begin, one.end, one.step)] for one in loops]
        spans = [range(*end) for end in ends]
        for places in product(*spans):
            for one, place, span in zip(loops, places, spans, strict=True):
                self.last[one.axis] = place == span[-1]
            axes = {one.axis: place for one, place in zip(loops, places, strict=True)}
            yield from self.touches(loops[-1].body, {**names, **axes})

    def windows(
        self, parts: tuple[Slice, ...], extents: tuple[Expression, Expression], names: Mapping[str, int]
    ) -> Addresses:
        """Whole windows of one shape, one after the other."""
        rows, columns = (self.integer(extent, names) for extent in extents)
        return np.concatenate([self.touched(part, (rows, columns), names).ravel() for part in parts])

    def packed(self, node: Pack, names: Mapping[str, int]) -> Addresses:
        """A copy: the source in blocks of a few depths, of each all lanes; then the panels."""
        if node.stored is not None:
            raise InvalidTileIr(where="pack", reason="copies a stored weight: its accesses are not described")
        lanes, depth = self.integer(node.lanes, names), self.integer(node.depth, names)
        places = self.touched(node.source, (lanes, depth), names)
        blocks = [places[:, p : p + COPIED_DEPTHS].ravel() for p in range(0, depth, COPIED_DEPTHS)]
        lanes, depth = lanes * node.parts.spread[0], depth * node.parts.spread[1]
        size = -(-lanes // node.panel) * node.panel * (-(-depth // node.unit) * node.unit)
        name, offset = node.destination.buffer, self.integer(node.destination.offset, names)
        written = self.starts[name] + (offset + np.arange(size)) * self.bits[name] // 8
        return np.concatenate([*blocks, written])

    def multiplied(self, node: TileMatmul, names: Mapping[str, int]) -> Addresses:
        """A register tile: of each depth the elements of A, then those of B; last sums that wait, or C."""
        if node.stored is not None:
            raise InvalidTileIr(
                where="matmul", reason="reads a stored weight: its accesses are not described"
            )
        rows, columns, depth = (self.integer(part, names) for part in (node.rows, node.columns, node.depth))
        found = []
        for left, right in self.batch(node, names) if depth else ():
            a = self.touched(left, (rows, depth // node.depths_of_a), names).repeat(node.depths_of_a, axis=1)
            across, deep = node.spread_of_b
            b = self.touched(right, (columns // across, depth // deep), names)
            b = b.repeat(across, axis=0).repeat(deep, axis=1)
            copy = () if node.copied is None else (self.touched(node.copied, (columns, depth), names),)
            found.append(np.concatenate([a, b, *copy]).T.ravel())
        if node.carry is not None:
            found.append(self.touched(node.carry.sums, (rows, columns), names).ravel())
        if node.carry is None or self.last[node.carry.axis]:
            found.append(self.touched(node.c, (rows, columns), names).ravel())
        return np.concatenate(found)


def accesses(
    program: Program,
    sizes: Mapping[str, int],
    scalars: Mapping[str, complex],
    starts: Mapping[str, int] | None = None,
) -> Iterator[Addresses]:
    """The addresses in bytes that a program touches, in order, one array for each primitive it runs.

    Parameters
    ----------
    sizes, scalars : a value for each parameter of the program.
    starts : bytes by which buffers start behind a multiple of `APART`; 0 by default.

    Raises
    ------
    InvalidTileIr : if the program has a primitive whose accesses are not described: others than products
        and copies of plain elements.

    Examples
    --------
    >>> from tilewright.ir.expressions import Constant, Name
    >>> from tilewright.ir.nodes import Buffer, Space
    >>> from tilewright.spec.dtype import F32
    >>> from tilewright.spec.functions import UnaryOp
    >>> c = Slice("c", Constant(0), (Name("ldc"), Constant(1)))
    >>> zero = UnaryMap(UnaryOp.ZERO, c, None, Constant(2), Constant(3))
    >>> program = Program("p", ("ldc",), (), (Buffer("c", F32, Space.ARGUMENT),), (zero,))
    >>> [found] = accesses(program, {"ldc": 100}, {})
    >>> (found - APART).tolist()
    [0, 4, 8, 400, 404, 408]
    """
    yield from _Placed(program, scalars, starts or {}).touches(program.body, sizes)
