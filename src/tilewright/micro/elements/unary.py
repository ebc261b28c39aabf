"""Unary operations on blocks: along adjacent elements, through a transpose, or element by element.

As in `transpose_blocks.py`, the last vector of a column overlaps the one before: nothing outside the operands
is accessed and no unused lane is computed. It is loaded before any store, so that an operation in place reads
every element once.
"""

from __future__ import annotations

from typing import NamedTuple

from tilewright.ir.nodes import Traffic
from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.values import INT64, POINTER, VOID, Value, int64, zero
from tilewright.machine.isa import Isa
from tilewright.micro.calls import UnaryCall
from tilewright.micro.elements.element import ElementOp
from tilewright.micro.elements.transpose_blocks import TransposeBlock, TransposeKernel, powers, starts

#: Vectors per iteration of a loop over a light operation: loads precede stores, and the loop's own
#: instructions are negligible.
UNROLLED_VECTORS = 4

#: Vectors that are loaded before the first of them is stored: half of the registers of most rows. Four lines
#: of 256 bytes are more than all of them.
MOST_VECTORS = 16

#: A column of known size of up to this many vectors, and a block of up to so many, is written without loops.
STRAIGHT_VECTORS = 16


def emit_unary(f: Function, isa: Isa, line_bytes: int, call: UnaryCall) -> None:
    """Writes a unary operation at the current position, by the strides that are known to be 1."""
    if call.destination.row.known != 1 and call.destination.column.known == 1:
        call = call.transposed()
    (to, to_row, to_column, dtype), (at, at_row, at_column, source) = call.destination, call.source
    element = ElementOp(call.op, dtype, source, fused=isa.fused, half=isa.half)
    if to_row.known == at_row.known == 1:
        columns = Columns(to, at, to_column, at_column, call.rows, call.columns)
        ColumnsKernel(isa, element, line_bytes).emit_call(f, columns, call.traffic)
        return
    assert not element.converts, "verified"
    if to_row.known == at_column.known == 1:
        # As a transposition: adjacent along the rows in A, along the columns in B.
        block = TransposeBlock(to, at, to_column, at_row, call.columns, call.rows)
        kernel = TransposeKernel(isa, element, line_bytes)
        if not kernel.emit_inline(f, block):
            f.call(kernel.emit(f.module, call.traffic), block)
    else:
        strides = [to, to_row, to_column, at, at_row, at_column]
        f.call(_emit_scattered(f.module, element), [*strides, call.rows, call.columns])


class Columns(NamedTuple):
    """Columns of adjacent elements in both operands; leading dimensions in elements."""

    destination: Value
    source: Value
    destination_column: Value
    source_column: Value
    rows: Value
    columns: Value


class ColumnsKernel:
    """B[i, j] = op(A[i, j]) column by column.

    Parameters
    ----------
    isa : the row.
    element : operation and element type.
    line_bytes : a cache line.
    """

    def __init__(self, isa: Isa, element: ElementOp, line_bytes: int) -> None:
        self.element, self.line_bytes = element, line_bytes
        self.lanes = element.lanes(isa)

        #: Bytes of an element of the destination, and of the source.
        self.to_size, self.at_size = element.dtype.size, element.source.size

    @property
    def name(self) -> str:
        """The prefix of the names of this kernel's functions."""
        return f"unary_{self.element.name}"

    def emit_call(self, f: Function, block: Columns, traffic: Traffic) -> None:
        """Writes small blocks of known sizes in place; calls the function for others."""
        rows, columns = block.rows.known, block.columns.known
        if rows is not None and columns is not None:
            pieces = starts(rows, min(self.lanes, powers(rows)[0]))
            if len(pieces) * columns <= STRAIGHT_VECTORS:
                for column in range(columns):
                    self._straight(f, self._column(f, block, int64(column)), rows, pieces)
                return
        streams = traffic is Traffic.STREAM
        f.call((self._emit_streamed if streams else self.emit)(f.module), block)

    def _straight(self, f: Function, column: tuple[Value, Value], rows: int, pieces: tuple[int, ...]) -> None:
        """A column of known size: all of its vectors are loaded, then all are stored."""
        to, at = column
        width = min(self.lanes, powers(rows)[0])
        values = self._computed(f, [f.at(at, piece * self.at_size) for piece in pieces], width)
        for piece, value in zip(pieces, values, strict=True):
            self.element.store(f, value, f.at(to, piece * self.to_size))

    def _computed(self, f: Function, pointers: list[Value], count: int) -> list[Value]:
        """The operation on `count` adjacent elements at each place; zero reads nothing."""
        if self.element.reads_nothing:
            return [zero(self.element.vector(count)) for _ in pointers]
        loaded = [self.element.load(f, pointer, count) for pointer in pointers]
        return self.element.operate_all(f, loaded)

    def _column(self, f: Function, block: Columns, column: Value) -> tuple[Value, Value]:
        """The start of a column of the destination and of the source."""
        to_step = f.mul(block.destination_column, self.to_size)
        at_step = f.mul(block.source_column, self.at_size)
        return f.at(block.destination, f.mul(column, to_step)), f.at(block.source, f.mul(column, at_step))

    def _function(self, module: Module, name: str) -> tuple[Function, Columns]:
        kinds = {"destination": POINTER, "source": POINTER}
        f = module.define(name, VOID, [(field, kinds.get(field, INT64)) for field in Columns._fields])
        return f, Columns(*f.arguments.values())

    def emit(self, module: Module) -> Callee:
        """Defines the function for columns of any length in a module; returns the function to call."""
        known = module.find(self.name)
        if known is not None:
            return known
        f, block = self._function(module, self.name)
        for width in powers(self.lanes):
            with f.when(f.icmp(">=", block.rows, width)):
                with f.loop(int64(0), block.columns, int64(1), "column") as column:
                    to, at = self._column(f, block, column)
                    if width == self.lanes:
                        self._long(f, to, at, block.rows)
                    else:
                        self._short(f, to, at, block.rows, width)
                f.ret()
        f.ret()
        return f.callee

    def _long(self, f: Function, to: Value, at: Value, rows: Value) -> None:
        """A column of at least one vector: whole vectors, and one that ends with the column."""
        lanes, element = self.lanes, self.element
        last = f.sub(rows, lanes)
        place = f.at(at, f.mul(last, self.at_size))
        kept = None if element.reads_nothing else element.load(f, place, lanes)
        start = int64(0)
        if element.op.single:
            turn = UNROLLED_VECTORS * lanes
            start = f.and_(last, int64(-turn))
            with f.loop(int64(0), start, int64(turn), "turn") as row:
                self._vectors(f, to, at, row, UNROLLED_VECTORS)
        with f.loop(start, last, int64(lanes), "vector") as row:
            self._vectors(f, to, at, row, 1)
        value = zero(element.vector(lanes)) if kept is None else element.operate(f, kept)
        element.store(f, value, f.at(to, f.mul(last, self.to_size)))

    def _vectors(self, f: Function, to: Value, at: Value, row: Value, count: int) -> None:
        """Some vectors from a row on: loaded together, then stored together."""
        to, at = f.at(to, f.mul(row, self.to_size)), f.at(at, f.mul(row, self.at_size))
        places = range(0, count * self.lanes, self.lanes)
        values = self._computed(f, [f.at(at, place * self.at_size) for place in places], self.lanes)
        for place, value in zip(places, values, strict=True):
            self.element.store(f, value, f.at(to, place * self.to_size))

    def _short(self, f: Function, to: Value, at: Value, rows: Value, width: int) -> None:
        """A column of `width` to twice that many elements: the first and the last so many."""
        places = [int64(0)] if width == 1 else [int64(0), f.sub(rows, width)]
        values = self._computed(f, [f.at(at, f.mul(place, self.at_size)) for place in places], width)
        for place, value in zip(places, values, strict=True):
            self.element.store(f, value, f.at(to, f.mul(place, self.to_size)))

    def _emit_streamed(self, module: Module) -> Callee:
        """Stores whole lines of the destination past the caches; elements before and after them as usual."""
        name = f"{self.name}_streamed"
        known = module.find(name)
        if known is not None:
            return known
        usual = self.emit(module)
        size, line = self.to_size, self.line_bytes
        turn = line * UNROLLED_VECTORS // size
        f, block = self._function(module, name)
        with f.loop(int64(0), block.columns, int64(1), "column") as column:
            to, at = self._column(f, block, column)
            lead = f.and_(f.sub(int64(0), f.ptrtoint(to)), int64(line - 1))
            lead = f.minimum(f.ashr(lead, int64(size.bit_length() - 1)), block.rows)
            self._call_part(f, usual, (to, at), int64(0), lead)
            aligned = f.icmp("==", f.and_(f.ptrtoint(to), int64(size - 1)), 0)
            whole = f.and_(f.sub(block.rows, lead), int64(-turn))
            end = f.add(lead, f.select(aligned, whole, int64(0)))
            with f.loop(lead, end, int64(turn), "lines") as row:
                self._lines(f, f.at(to, f.mul(row, size)), f.at(at, f.mul(row, self.at_size)))
            self._call_part(f, usual, (to, at), end, f.sub(block.rows, end))
        f.ret()
        return f.callee

    def _lines(self, f: Function, to: Value, at: Value) -> None:
        """One turn: whole lines."""
        step = self.lanes * self.to_size
        count = self.line_bytes * UNROLLED_VECTORS // step
        # A function of many instructions needs all registers, so vectors are not kept waiting in them.
        together = min(count, MOST_VECTORS) if self.element.op.single else 1
        for start in range(0, count, together):
            places = [number * self.lanes for number in range(start, start + together)]
            values = self._computed(f, [f.at(at, place * self.at_size) for place in places], self.lanes)
            for place, value in zip(places, values, strict=True):
                f.store_nontemporal(value, f.at(to, place * self.to_size), min(step, self.line_bytes))

    def _call_part(
        self, f: Function, callee: Callee, column: tuple[Value, Value], first: Value, rows: Value
    ) -> None:
        """Some rows of one column, by the function for any length."""
        to, at = (
            f.at(pointer, f.mul(first, size))
            for pointer, size in zip(column, (self.to_size, self.at_size), strict=True)
        )
        f.call(callee, [to, at, int64(0), int64(0), rows, int64(1)])


def _emit_scattered(module: Module, element: ElementOp) -> Callee:
    """The function for any strides: one element at a time, in the order of the destination's rows."""
    name = f"scattered_{element.op.value}_{element.dtype}"
    known = module.find(name)
    if known is not None:
        return known
    fields = ("to", "to_row", "to_column", "at", "at_row", "at_column", "rows", "columns")
    kinds = {"to": POINTER, "at": POINTER}
    f = module.define(name, VOID, [(field, kinds.get(field, INT64)) for field in fields])
    g, size = f.arguments, element.dtype.size
    steps = {field: f.mul(g[field], size) for field in ("to_row", "to_column", "at_row", "at_column")}
    with f.loop(int64(0), g["rows"], int64(1), "row") as row:
        state = [
            f.at(g["to"], f.mul(row, steps["to_row"])),
            f.at(g["at"], f.mul(row, steps["at_row"])),
        ]
        with f.carried_loop(int64(0), g["columns"], int64(1), state, "column") as (_, places, advance):
            to, at = places
            element.store(f, element.operate(f, element.load(f, at, 1)), to)
            advance([f.at(to, steps["to_column"]), f.at(at, steps["at_column"])])
    f.ret()
    return f.callee
