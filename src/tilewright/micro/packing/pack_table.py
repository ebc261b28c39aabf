"""Packs by tables of offsets: adjacent lanes in vectors, adjacent depths in squares, others one by one."""

from __future__ import annotations

from itertools import pairwise

from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.convert import Convert
from tilewright.llvm.values import INT64, POINTER, VOID, Value, int64, memory_type, vector_type
from tilewright.machine.isa import Edge, Isa
from tilewright.machine.machine import CACHE_LINE
from tilewright.micro.calls import Operands, PrimitiveFunction, Window, value, window
from tilewright.micro.packing.pack import PackKernel
from tilewright.micro.packing.squares import OFFSET_BYTES, SQUARE_ARGUMENTS
from tilewright.micro.packing.transpose import PART_BITS, transpose
from tilewright.spec.dtype import I64, DType

#: Lanes assembled from single elements at once, or fewer in narrower panels: as many 64-bit addresses leave
#: half of x86-64's registers free.
TOGETHER = 8

#: Lanes of the largest square that is transposed as a whole.
LARGEST_SQUARE = 8

#: Lanes of a panel at most: 2 vectors of 2,048 bits, the longest of SVE, in float32.
WIDEST_PANEL = 128


def emit_pack_table(f: Function, isa: Isa, given: Operands) -> None:
    """Calls the function of a `PackTable`; it takes the functions for the width of its panels."""
    to, source, panel = window(given, "to"), window(given, "source"), value(given, "panel")
    assert panel.known is not None
    assert panel.known <= WIDEST_PANEL, "the offsets of a panel's lanes have room in the frame"
    ways = _Ways(isa, source.dtype, to.dtype, panel.known)
    own: Operands = {
        "panel": Value(INT64, panel.text),
        "widest": Value(INT64, str(ways.widest)),
        "copy": Value(POINTER, ways.copy(f.module).text),
        "squares": Value(POINTER, ways.squares(f.module).text),
        "elements": Value(POINTER, ways.elements(f.module).text),
    }
    rows = PrimitiveFunction(f, isa, "pack_table", to.dtype, given | own)
    rows.call(lambda f, given: _pack(f, ways.edge, given), as_written=True)


def _own(given: Operands, name: str) -> Callee:
    """A function for panels of the width that is packed."""
    return Callee(VOID, value(given, name).text)


def _pack(f: Function, edge: Edge, given: Operands) -> None:
    to, source, lanes_at = (window(given, name) for name in ("to", "source", "lanes_at"))
    panel, depth = value(given, "panel"), value(given, "depth")
    panel_bytes = f.mul(f.mul(depth, panel), to.dtype.size)
    offsets = f.alloca(INT64, WIDEST_PANEL, CACHE_LINE)
    panels = f.udiv(value(given, "lanes"), panel)
    with f.walk(int64(0), panels, "panel") as (number, advance):
        first = f.mul(number, panel)
        count = window(given, "counts").entry(f, number)
        begin = lanes_at.entry(f, first)
        place = f.at(to.pointer, f.mul(number, panel_bytes))
        block = f.at(source.pointer, f.mul(begin, source.dtype.size))
        with f.loop(int64(0), panel, int64(1), "lane") as lane:
            distance = f.sub(lanes_at.entry(f, f.add(first, lane)), begin)
            f.store(f.mul(distance, source.dtype.size), f.at(offsets, f.mul(lane, OFFSET_BYTES)), 8)
        shifts = f.minimum(window(given, "shifts").entry(f, number), f.sub(panels, number))
        shifted = f.icmp(">=", shifts, value(given, "widest"))
        depths_at = window(given, "depths_at").pointer
        with f.branch(shifted) as (together, alone):
            with together:  # panels that are one element apart
                squares = [place, panel_bytes, shifts, block, depths_at, depth, offsets]
                f.call(_own(given, "squares"), squares)
            with alone:
                adjacent = f.icmp("==", window(given, "steps").entry(f, number), 1)
                if edge is Edge.SPILL:
                    adjacent = f.and_(adjacent, f.icmp("==", count, panel))
                with f.branch(adjacent) as (copied, apart):
                    with copied:
                        f.call(_own(given, "copy"), [place, block, depths_at, depth, count])
                    with apart:
                        _runs(f, given, place, block, offsets)
        advance([f.add(number, f.select(shifted, shifts, int64(1)))])


def _runs(f: Function, given: Operands, place: Value, block: Value, offsets: Value) -> None:
    """A panel whose lanes are not adjacent, `offsets` bytes from the first: run after run of depths."""
    depths_at, runs, depth = window(given, "depths_at"), window(given, "runs"), value(given, "depth")
    panel, widest = value(given, "panel"), value(given, "widest")
    depth_bytes = f.mul(panel, window(given, "to").dtype.size)
    with f.walk(int64(0), depth, "run") as (first, advance):
        run = f.minimum(runs.entry(f, first), f.sub(depth, first))
        next_one = f.select(f.icmp(">", run, 1), f.add(first, 1), first)
        adjacent = f.icmp("==", f.sub(depths_at.entry(f, next_one), depths_at.entry(f, first)), 1)
        turns = f.minimum(window(given, "turns").entry(f, first), f.udiv(f.sub(depth, first), run))
        turned = f.icmp(">=", turns, widest)
        square = f.or_(turned, f.and_(adjacent, f.icmp(">=", run, widest)))
        target = f.at(place, f.mul(first, depth_bytes))
        table = f.at(depths_at.pointer, f.mul(first, OFFSET_BYTES))
        with f.branch(square) as (squares, elements):
            with squares:  # depths that are adjacent from run to run, or in one
                count, inner = f.select(turned, turns, run), f.select(turned, run, int64(1))
                apart = f.mul(inner, depth_bytes)
                f.call(_own(given, "squares"), [target, apart, count, block, table, inner, offsets])
            with elements:
                f.call(_own(given, "elements"), [target, block, table, run, offsets, panel])
        advance([f.add(first, f.select(turned, f.mul(turns, run), run))])


class _Ways:
    """The functions that fill a panel of some lanes; depth p of its source is at block + depths_at[p].

    Parameters
    ----------
    isa : the row.
    source, to : element types of the operand and of the panel.
    width : lanes of the panel.
    """

    def __init__(self, isa: Isa, source: DType, to: DType, width: int) -> None:
        self.isa, self.source, self.to, self.width = isa, source, to, width
        self.edge = isa.edge_of(source)
        self.packing = PackKernel(isa, source, to, width)
        self.widest = max(side for _, side in self.packing.chunks)
        self.depth_bytes = width * to.size

    def _named(self, word: str) -> str:
        return f"{word}_{self.source}_{self.to}_{self.width}"

    def _entry(self, f: Function, depth: Value) -> Value:
        """The bytes from the block to one of its depths."""
        table = Window(f.arguments["depths_at"], int64(1), int64(0), I64)
        return f.mul(table.entry(f, depth), self.source.size)

    def copy(self, module: Module) -> Callee:
        """copy(to, block, depths_at, depth, count): adjacent lanes; beyond the count, the last."""
        name = self._named("copy")
        known = module.find(name)
        if known is not None:
            return known
        f = module.define(name, VOID, [*_PLACES, ("depth", INT64), ("count", INT64)])
        whole = f.icmp("==", f.arguments["count"], self.width)
        if self.edge is Edge.MASK:
            with f.when(f.not_(whole)):
                self._copy(f, masked=True)
                f.ret()
        self._copy(f, masked=False)
        f.ret()
        return f.callee

    def _copy(self, f: Function, *, masked: bool) -> None:
        g, size = f.arguments, self.source.size
        convert, one = Convert(f, half=self.isa.half), memory_type(self.source)
        masks = [
            f.lane_mask(g["count"], lane, width) if masked else None for lane, width in self.packing.chunks
        ]
        last = f.mul(f.sub(g["count"], 1), size)
        with f.loop(int64(0), g["depth"], int64(1), "depth") as depth:
            from_ = f.at(g["block"], self._entry(f, depth))
            to = f.at(g["to"], f.mul(depth, self.depth_bytes))
            for (lane, width), mask in zip(self.packing.chunks, masks, strict=True):
                kind, place = vector_type(self.source, width), f.at(from_, lane * size)
                if mask is None:
                    lanes = f.load(kind, place, size)
                else:
                    repeated = f.splat(f.load(one, f.at(from_, last), size), width)
                    lanes = f.masked_load(kind, place, mask, size, repeated)
                f.store(convert(lanes, self.source, self.to), f.at(to, lane * self.to.size), self.to.size)

    def squares(self, module: Module) -> Callee:
        """squares(to, apart, count, block, depths_at, depth, lanes_at), all in bytes but count and depth.

        `count` blocks, each one element after the previous, are stored `apart` bytes from each other: for
        each depth, squares of lanes and blocks are transposed in registers. The last squares overlap those
        before them.
        """
        name = self._named("squares")
        known = module.find(name)
        if known is not None:
            return known
        f = module.define(name, VOID, _SQUARES, as_written=True)
        g = f.arguments
        chunks = self.packing.chunks
        with f.walk(int64(0), int64(self.width), "lane") as (lane, advance):
            side = int64(chunks[0][1])
            square = Value(POINTER, self._square(module, chunks[0][1]).text)
            for first, width in chunks[1:]:
                if width < chunks[0][1]:
                    behind = f.icmp(">=", lane, first)
                    narrow = Value(POINTER, self._square(module, width).text)
                    side, square = f.select(behind, int64(width), side), f.select(behind, narrow, square)
            final, lanes = f.sub(g["count"], side), f.at(g["lanes_at"], f.mul(lane, OFFSET_BYTES))
            with (
                f.loop(int64(0), g["count"], side, "square") as position,
                f.loop(int64(0), g["depth"], int64(1), "depth") as depth,
            ):
                at = f.minimum(position, final)
                to = f.at(f.at(g["to"], f.mul(lane, self.to.size)), f.mul(at, g["apart"]))
                from_ = f.at(f.at(g["block"], f.mul(at, self.source.size)), self._entry(f, depth))
                arguments = [f.at(to, f.mul(depth, self.depth_bytes)), g["apart"], from_, lanes]
                f.call(Callee(VOID, square.text), arguments)
            advance([f.add(lane, side)])
        f.ret()
        return f.callee

    def _square(self, module: Module, side: int) -> Callee:
        """A square that is transposed in registers; a large one in strips of lanes.

        Strips of 128 bits of 16 lanes are a sixth of the code of a whole square of float32, whose 64 shuffles
        take LLVM as long as the register tile (10 ms); turning takes 17 ns in place of 15.
        """
        if side <= LARGEST_SQUARE or self.isa.scalable:
            return self.packing.square(module, side)
        name = f"strips_{self.source}_{self.to}_{side}"
        known = module.find(name)
        if known is not None:
            return known
        f = module.define(name, VOID, SQUARE_ARGUMENTS)
        g, size, width = f.arguments, self.source.size, PART_BITS // self.source.bits
        convert, kind = Convert(f, half=self.isa.half), vector_type(self.source, width)
        with f.loop(int64(0), int64(side), int64(width), "strip") as first:
            from_, to = f.at(g["from"], f.mul(first, size)), f.at(g["to"], f.mul(first, g["to_step"]))
            offsets = [f.load(INT64, f.at(g["lanes"], lane * OFFSET_BYTES), 8) for lane in range(side)]
            rows = [f.load(kind, f.at(from_, offset), size) for offset in offsets]
            for number, lanes in enumerate(transpose(f, rows)):
                place = f.at(to, f.mul(g["to_step"], number))
                f.store(convert(lanes, self.source, self.to), place, self.to.size)
        f.ret()
        return f.callee

    def elements(self, module: Module) -> Callee:
        """elements(to, block, depths_at, depth, lanes_at, width): lanes `lanes_at` bytes from the block.

        They may be anywhere. Some at a time, in one vector where they are adjacent; the last ones overlap
        those before them.
        """
        count = min(TOGETHER, 1 << self.width.bit_length() - 1)
        name = f"elements_{self.source}_{self.to}_{count}"
        known = module.find(name)
        if known is not None:
            return known
        f = module.define(name, VOID, [*_PLACES, ("depth", INT64), ("lanes_at", POINTER), ("width", INT64)])
        g = f.arguments
        with f.loop(int64(0), g["width"], int64(count), "lanes") as position:
            first = f.minimum(position, f.sub(g["width"], count))
            at = f.at(g["lanes_at"], f.mul(first, OFFSET_BYTES))
            offsets = [f.load(INT64, f.at(at, lane * OFFSET_BYTES), 8) for lane in range(count)]
            uneven = int64(0)
            for here, next_one in pairwise(offsets):
                uneven = f.or_(uneven, f.sub(f.sub(next_one, here), self.source.size))
            to = f.at(g["to"], f.mul(first, self.to.size))
            with f.branch(f.icmp("==", uneven, 0)) as (adjacent, other):
                with adjacent:
                    self._vectors(f, to, offsets[:1], count)
                with other:
                    self._vectors(f, to, offsets, count)
        f.ret()
        return f.callee

    def _vectors(self, f: Function, to: Value, offsets: list[Value], count: int) -> None:
        """A vector for each depth, of adjacent lanes or of elements at all these offsets."""
        size, convert = self.source.size, Convert(f, half=self.isa.half)
        one = memory_type(self.source)
        kind = vector_type(self.source, count) if count > 1 else one
        depth_bytes = f.mul(f.arguments["width"], self.to.size)
        places = [f.at(f.arguments["block"], offset) for offset in offsets]
        with f.loop(int64(0), f.arguments["depth"], int64(1), "depth") as depth:
            at = self._entry(f, depth)
            if len(places) == count > 1:
                vector = f.build_vector([f.load(one, f.at(place, at), size) for place in places])
            else:
                vector = f.load(kind, f.at(places[0], at), size)
            f.store(convert(vector, self.source, self.to), f.at(to, f.mul(depth, depth_bytes)), self.to.size)


_PLACES = [("to", POINTER), ("block", POINTER), ("depths_at", POINTER)]

_SQUARES = [
    ("to", POINTER),
    ("apart", INT64),
    ("count", INT64),
    *_PLACES[1:],
    ("depth", INT64),
    ("lanes_at", POINTER),
]
