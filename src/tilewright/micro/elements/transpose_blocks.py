"""Transposes a block through registers: squares of vectors, narrower rectangles at thin edges.

Where a block is at least as large as a square, its last squares overlap the ones before, so that every load
and store is a whole vector of elements that exist: nothing outside the operands is touched, no lane is
computed that is not stored, and no masks are needed. Elements in the overlap are written twice.
"""

from __future__ import annotations

from typing import NamedTuple

from tilewright.ir.nodes import Traffic
from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.values import INT64, POINTER, VOID, Value, int64
from tilewright.machine.isa import Isa
from tilewright.micro.elements.element import ElementOp
from tilewright.micro.packing.transpose import transpose

#: Lines that may be written piece by piece before the CPU flushes one of them half full: it combines such
#: writes in 8 to 12 buffers.
COMBINED_LINES = 8

#: A block of known sizes of up to this many rectangles is written without loops.
STRAIGHT_RECTANGLES = 8


#: An x86 address is a register plus 1, 2, 4 or 8 times another one: with the step and three times it, one
#: pointer reaches four lines.
LINES_OF_ONE_POINTER = 4


class TransposeBlock(NamedTuple):
    """A block to transpose: its operands and leading dimensions in elements.

    Elements of the source are adjacent along the rows (of a column), those of the destination along
    the columns (of a row).
    """

    destination: Value
    source: Value
    destination_row: Value
    source_column: Value
    rows: Value
    columns: Value


class Rectangle(NamedTuple):
    """One rectangle in registers: vectors of `rows` elements in, vectors of `columns` elements out."""

    rows: int
    columns: int


def powers(largest: int) -> tuple[int, ...]:
    """Powers of two from the largest down to 1.

    >>> powers(8)
    (8, 4, 2, 1)
    """
    return tuple(1 << bit for bit in reversed(range(largest.bit_length())))


def starts(extent: int, size: int) -> tuple[int, ...]:
    """Starts of pieces of one size that cover an extent of at least that size; the last may overlap.

    >>> starts(10, 4)
    (0, 4, 6)
    """
    return (*range(0, extent - size, size), extent - size)


def _lines(f: Function, first: Value, step_bytes: Value, count: int) -> list[Value]:
    """Addresses of cache lines: four from each pointer, so that few multiples of the step are kept."""
    found: list[Value] = []
    for start in range(0, count, LINES_OF_ONE_POINTER):
        if start:
            first = f.freeze(f.at(first, f.mul(step_bytes, LINES_OF_ONE_POINTER)))
        lines = range(min(LINES_OF_ONE_POINTER, count - start))
        found.extend(f.at(first, f.mul(step_bytes, line)) for line in lines)
    return found


class TransposeKernel:
    """B[i, j] = op(A[i, j]) on a block, A column-major and B row-major.

    Parameters
    ----------
    isa : the row.
    element : operation and element type.
    line_bytes : a cache line.
    """

    def __init__(self, isa: Isa, element: ElementOp, line_bytes: int) -> None:
        self.element, self.line_bytes = element, line_bytes
        # Half the registers hold a square; the other half the round that is being computed.
        self.side = min(element.lanes(isa), isa.vector_registers // 2)

    @property
    def _size(self) -> int:
        return self.element.dtype.size

    @property
    def name(self) -> str:
        """The prefix of the names of this kernel's functions."""
        return f"transpose_{self.element.op.value}_{self.element.dtype}"

    @property
    def streams(self) -> bool:
        """Whether squares write whole lines, or few enough lines at a time that writes are combined."""
        return self.side * self._size == self.line_bytes or self.side <= COMBINED_LINES

    # --- functions of a module ------------------------------------------------------------------

    def emit(self, module: Module, traffic: Traffic) -> Callee:
        """Defines the function for blocks of any size in a module; returns the function to call."""
        if traffic is Traffic.STREAM and not self.streams:
            traffic = Traffic.FAR
        name = f"{self.name}_{traffic.value}"
        known = module.find(name)
        if known is not None:
            return known
        near = self._near(module)
        if traffic is Traffic.NEAR:
            return near
        far = self._far(module, near)
        return far if traffic is Traffic.FAR else self._stream(module, near, far)

    def emit_inline(self, f: Function, block: TransposeBlock) -> bool:
        """Writes a block of known, small sizes in place; returns False if it is too large."""
        rows, columns = block.rows.known, block.columns.known
        if rows is None or columns is None:
            return False
        shape = self.fitting(rows, columns)
        places = [(i, j) for i in starts(rows, shape.rows) for j in starts(columns, shape.columns)]
        if len(places) > STRAIGHT_RECTANGLES:
            return False
        for i, j in places:
            self._rectangle(f, block, shape, (int64(i), int64(j)), Traffic.NEAR)
        return True

    def fitting(self, rows: int, columns: int) -> Rectangle:
        """The largest rectangle that a block of these sizes holds.

        A side shorter than the square's takes the largest power of two; where both are, the smaller
        one is that of a square.
        """
        square = min(rows, columns)
        if square < self.side and max(rows, columns) < self.side:
            side = powers(square)[0]
            return Rectangle(side, side)
        return Rectangle(*(powers(min(extent, self.side))[0] for extent in (rows, columns)))

    def _shapes(self) -> list[Rectangle]:
        """Every rectangle, the square first, then those of one thin side, then the small squares."""
        side, thin = self.side, powers(self.side)[1:]
        wide = [Rectangle(side, width) for width in thin]
        tall = [Rectangle(height, side) for height in thin]
        return [Rectangle(side, side), *wide, *tall, *(Rectangle(small, small) for small in thin)]

    def _near(self, module: Module) -> Callee:
        """Picks the rectangle and covers the block with it."""
        walks = [
            (shape, self._walk(module, f"{self.name}_{shape.rows}x{shape.columns}", shape, Traffic.NEAR))
            for shape in self._shapes()
        ]
        f, block = self._function(module, f"{self.name}_near")
        for shape, walk in walks:
            fits = f.and_(f.icmp(">=", block.rows, shape.rows), f.icmp(">=", block.columns, shape.columns))
            with f.when(fits):
                f.call(walk, block)
                f.ret()
        f.ret()
        return f.callee

    def _far(self, module: Module, near: Callee) -> Callee:
        """Squares whose source is prefetched a line ahead; thin blocks as they are.

        Where rows of squares are whole lines of B, squares go along diagonals: the lines that are loaded
        ahead of time for the next squares then lie in other sets of L1 than those being written, also
        with leading dimensions of a power of two. Otherwise rows go one after the other, so that a line
        written in part is completed while it is there.
        """
        square = Rectangle(self.side, self.side)
        by_rows = self._walk(module, f"{self.name}_fetched", square, Traffic.FAR)
        by_diagonals = self._diagonals(module) if self.side * self._size == self.line_bytes else None
        f, block = self._function(module, f"{self.name}_far")
        with f.when(self._holds_squares(f, block)):
            if by_diagonals is not None:
                wide = f.icmp(">=", block.columns, block.rows)
                with f.when(f.and_(self._whole_lines(f, block), wide)):
                    f.call(by_diagonals, block)
                    f.ret()
            f.call(by_rows, block)
            f.ret()
        f.call(near, block)
        f.ret()
        return f.callee

    def _stream(self, module: Module, near: Callee, far: Callee) -> Callee:
        """Whole squares past the caches where lines of B begin with them; the columns beyond, as they are."""
        side = self.side
        walk = self._walk(module, f"{self.name}_streamed", Rectangle(side, side), Traffic.STREAM)
        f, block = self._function(module, f"{self.name}_stream")
        with f.when(f.and_(self._whole_lines(f, block), self._holds_squares(f, block))):
            whole = f.and_(block.columns, int64(-side))
            f.call(walk, block._replace(columns=whole))
            rest = block._replace(
                destination=f.at(block.destination, f.mul(whole, self._size)),
                source=f.at(block.source, f.mul(f.mul(block.source_column, whole), self._size)),
                columns=f.sub(block.columns, whole),
            )
            f.call(near, rest)
            f.ret()
        f.call(far, block)
        f.ret()
        return f.callee

    def _whole_lines(self, f: Function, block: TransposeBlock) -> Value:
        """Whether rows of B start on cache lines: aligned, with a stride of whole lines."""
        place = f.or_(f.ptrtoint(block.destination), f.mul(block.destination_row, self._size))
        return f.icmp("==", f.and_(place, int64(self.line_bytes - 1)), 0)

    def _holds_squares(self, f: Function, block: TransposeBlock) -> Value:
        return f.and_(f.icmp(">=", block.rows, self.side), f.icmp(">=", block.columns, self.side))

    def _function(self, module: Module, name: str) -> tuple[Function, TransposeBlock]:
        kinds = {"destination": POINTER, "source": POINTER}
        arguments = [(field, kinds.get(field, INT64)) for field in TransposeBlock._fields]
        f = module.define(name, VOID, arguments)
        return f, TransposeBlock(*f.arguments.values())

    def _walk(self, module: Module, name: str, shape: Rectangle, traffic: Traffic) -> Callee:
        """Rectangles of one shape over a block of at least that size, row of rectangles by row."""
        f, block = self._function(module, name)
        last_row, last_column = f.sub(block.rows, shape.rows), f.sub(block.columns, shape.columns)
        with f.loop(int64(0), block.rows, int64(shape.rows), "row") as row:
            i = f.minimum(row, last_row)
            with f.loop(int64(0), block.columns, int64(shape.columns), "column") as column:
                self._rectangle(f, block, shape, (i, f.minimum(column, last_column)), traffic)
        f.ret()
        return f.callee

    def _diagonals(self, module: Module) -> Callee:
        """Squares over a block at least as wide as high: along its diagonals, from column to column."""
        side = self.side
        f, block = self._function(module, f"{self.name}_diagonals")
        last_row, last_column = f.sub(block.rows, side), f.sub(block.columns, side)
        width = f.and_(f.add(block.columns, side - 1), int64(-side))
        with (
            f.loop(int64(0), block.columns, int64(side), "column") as column,
            f.loop(int64(0), block.rows, int64(side), "row") as row,
        ):
            ahead = f.add(column, row)
            around = f.select(f.icmp(">=", ahead, width), f.sub(ahead, width), ahead)
            place = (f.minimum(row, last_row), f.minimum(around, last_column))
            self._rectangle(f, block, Rectangle(side, side), place, Traffic.FAR)
        f.ret()
        return f.callee

    # --- one rectangle --------------------------------------------------------------------------

    def _rectangle(
        self,
        f: Function,
        block: TransposeBlock,
        shape: Rectangle,
        place: tuple[Value, Value],
        traffic: Traffic,
    ) -> None:
        """Loads columns of A, transposes them, stores rows of B."""
        element, size = self.element, self._size
        i, j = place
        column_bytes, row_bytes = f.mul(block.source_column, size), f.mul(block.destination_row, size)
        source = f.at(f.at(block.source, f.mul(i, size)), f.mul(j, column_bytes))
        destination = f.at(f.at(block.destination, f.mul(j, size)), f.mul(i, row_bytes))
        pointers = _lines(f, source, column_bytes, shape.columns)
        if traffic is not Traffic.NEAR:
            for pointer in pointers:
                f.prefetch(f.at(pointer, self.line_bytes), write=False, locality=3)
        columns = [element.load(f, pointer, shape.rows) for pointer in pointers]
        if shape.rows >= shape.columns:  # on the fuller vectors
            columns = element.operate_all(f, columns)
        rows = transpose(f, columns, element.words)
        if shape.rows < shape.columns:
            rows = element.operate_all(f, rows)
        for row, to in zip(rows, _lines(f, destination, row_bytes, shape.rows), strict=True):
            if traffic is Traffic.STREAM:
                f.store_nontemporal(row, to, min(self.line_bytes, shape.columns * size))
            else:
                element.store(f, row, to)
