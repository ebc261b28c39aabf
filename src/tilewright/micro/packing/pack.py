"""Copies a block into whole micro-panels: contiguous runs, register transposes, any stride.

Elements are converted to the multiply instruction's type, interleaved by depth, or split into parts of
complex numbers. Lanes beyond the block repeat one of its lanes: a tile computes them without storing them, so
they raise no floating-point flag that the block's own elements do not raise.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import NamedTuple

from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.convert import Convert
from tilewright.llvm.values import (
    INT8,
    INT64,
    POINTER,
    VOID,
    Value,
    int64,
    memory_type,
    named_type,
    vector_of,
    zero,
)
from tilewright.llvm.written import write_once
from tilewright.machine.isa import Edge, Isa
from tilewright.machine.machine import CACHE_LINE
from tilewright.micro.packing.rotated import times_i
from tilewright.micro.packing.squares import (
    OFFSET_BYTES,
    SQUARE_ARGUMENTS,
    square_function,
    transposed_square,
)
from tilewright.micro.packing.transpose import interleave
from tilewright.spec.dtype import DType
from tilewright.spec.parts import Parts

#: Rows of the source that are copied to all panels before the next ones. Hardware prefetches rows that are
#: read from end to end. Panel after panel, and four panels side by side, took up to 1.5 times as long
#: (docs/decisions/051-pack-rows-from-end-to-end.md).
ROWS_TOGETHER = 8

#: Squares for fewer depths than the widest ones need: the next width that has one everywhere. Each width is a
#: function of its own, and squares of 2 gain nothing over single words.
NARROW = 4


def chunks(count: int, lanes: int) -> tuple[tuple[int, int], ...]:
    """A run of elements as power-of-two vectors: (first element, width), widest first.

    >>> chunks(12, 16)
    ((0, 8), (8, 4))
    >>> chunks(32, 16)
    ((0, 16), (16, 16))
    """
    found, start = [], 0
    while start < count:
        width = min(lanes, 1 << ((count - start).bit_length() - 1))
        found.append((start, width))
        start += width
    return tuple(found)


#: Lanes whose words are copied side by side where a word fills a vector: so many streams hardware prefetches.
LANES_TOGETHER = 8
BYTE_BITS = 8


class _FewLanes(NamedTuple):
    """The lanes of a panel that a block has, fewer than all.

    Attributes
    ----------
    masks : by the first lane of a vector, which of its lanes are read.
    last : bytes from the first lane to the last one, which the others repeat.
    """

    masks: dict[int, Value]
    last: Value


class Adjacent(Enum):
    """The axis of a block whose elements are known to be adjacent; the value is part of a function's name."""

    LANES = "lanes"
    DEPTHS = "depths"
    UNKNOWN = ""


class PackKernel:
    """pack(destination, source, lane stride, depth stride, lanes, depth); strides in elements.

    Parameters
    ----------
    isa : the row.
    source, to : element types of the block and of the panels.
    panel, kr, unit, parts : as `Pack` has them.
    adjacent : what is known of the strides; methods that need others are left out, which saves most of the
        time that LLVM takes for the function.

    The block is read in words: kr elements of consecutive depths, or one complex number.
    """

    def __init__(
        self,
        isa: Isa,
        source: DType,
        to: DType,
        panel: int,
        kr: int = 1,
        unit: int = 1,
        parts: Parts = Parts.WHOLE,
        adjacent: Adjacent = Adjacent.UNKNOWN,
    ) -> None:
        self.isa, self.source, self.to = isa, source, to
        self.panel, self.kr, self.unit, self.parts = panel, kr, unit, parts
        self.adjacent = adjacent
        lanes, self.depths = parts.spread
        self.lanes = panel // lanes  # of the source, in one panel
        self.word_bits = source.bits * kr
        self.chunks = chunks(self.lanes, max(1, isa.vector_bits // self.word_bits))
        self.edge = isa.edge_of(source.real)
        self.group_bytes = to.bytes(panel * kr * self.depths)  # of one word of every lane

    @property
    def name(self) -> str:
        """The function's name in a module."""
        parts = ("pack", self.source, self.to, self.panel, self.kr, self.unit, self.parts.value)
        return "_".join(str(part) for part in (*parts, self.adjacent.value) if part != "")

    def emit(self, module: Module) -> Callee:
        """Defines the function in a module; returns the function to call."""
        known = module.find(self.name)
        if known is not None:
            return known
        shape = (self.source, self.to, self.panel, self.kr, self.unit, self.parts, self.adjacent)
        return write_once(module, (type(self), self.isa, shape), self._define)

    def _define(self, module: Module) -> Callee:
        arguments = [
            ("destination", POINTER),
            ("source", POINTER),
            ("lane_stride", INT64),
            ("depth_stride", INT64),
            ("lanes", INT64),
            ("depth", INT64),
        ]
        f = module.define(self.name, VOID, arguments)
        lanes, size = f.arguments["lanes"], self.source.size
        lane_bytes, depth_bytes = (f.mul(f.arguments[name], size) for name in ("lane_stride", "depth_stride"))
        units = f.ceildiv(f.mul(f.arguments["depth"], self.depths), int64(self.unit))
        panel_bytes = f.mul(units, self.to.bytes(self.unit * self.panel))
        state = [int64(0), f.arguments["destination"], f.arguments["source"]]
        begin, *state = self._whole_panels(f, state, (lane_bytes, depth_bytes), panel_bytes)
        with f.carried_loop(begin, lanes, int64(self.lanes), state, "panel") as (first, values, advance):
            destination, source = values
            left = f.sub(lanes, first)
            self._emit_panel(f, destination, source, left, (lane_bytes, depth_bytes))
            self._clear(f, destination, panel_bytes)
            advance((f.at(destination, panel_bytes), f.at(source, f.mul(lane_bytes, self.lanes))))
        f.ret()
        return f.callee

    def _whole_panels(
        self, f: Function, state: list[Value], strides: tuple[Value, Value], panel_bytes: Value
    ) -> list[Value]:
        """Whole panels of adjacent lanes; returns the first lane of the rest, and where its panels are."""
        if f.module.quick or self.adjacent is Adjacent.DEPTHS:
            return state
        (_, destination, source), (lane_bytes, depth_bytes) = state, strides
        together = max(1, ROWS_TOGETHER // self.kr)
        words, adjacent = self._whole_words(f), f.icmp("==", f.arguments["lane_stride"], 1)
        possible = f.and_(adjacent, f.icmp(">=", words, together))
        panels = f.select(possible, f.udiv(f.arguments["lanes"], int64(self.lanes)), int64(0))
        end = f.select(f.icmp(">", panels, 0), words, int64(0))
        with f.loop(int64(0), end, int64(together), "rows") as first:
            word = f.minimum(first, f.sub(words, together))  # the last rows overlap those before
            at = f.at(source, f.mul(f.mul(word, self.kr), depth_bytes))
            rows = [f.at(at, f.mul(depth_bytes, row)) for row in range(together * self.kr)]
            to = f.at(destination, f.mul(word, self.group_bytes))
            with self._panels(f, panels, to, panel_bytes) as (offset, to_panel):
                parts = [f.at(row, offset) for row in rows]
                for number in range(together):
                    of_word = parts[number * self.kr : (number + 1) * self.kr]
                    self._copy_group(f, f.at(to_panel, number * self.group_bytes), of_word)
        if self.unit > 1:
            rest = f.at(source, f.mul(f.mul(words, self.kr), depth_bytes))
            with self._panels(f, panels, destination, panel_bytes) as (offset, panel):
                to = f.at(panel, f.mul(words, self.group_bytes))
                self._copy_rest(f, to, f.at(rest, offset), depth_bytes)
                self._clear(f, panel, panel_bytes)
        lanes = f.mul(panels, self.lanes)
        return [lanes, f.at(destination, f.mul(panels, panel_bytes)), f.at(source, f.mul(lanes, lane_bytes))]

    @contextmanager
    def _panels(
        self, f: Function, count: Value, to: Value, panel_bytes: Value
    ) -> Iterator[tuple[Value, Value]]:
        """A loop over adjacent panels: bytes of a source's row before each one, and its place."""
        run = self.lanes * self.source.size
        with f.carried_loop(int64(0), f.mul(count, run), int64(run), [to], "panel") as (
            offset,
            (at,),
            advance,
        ):
            yield offset, at
            advance([f.at(at, panel_bytes)])

    def _clear(self, f: Function, destination: Value, panel_bytes: Value) -> None:
        """Zeros for the depths that fill the last unit."""
        if self.unit == self.kr:
            return
        begin = f.mul(f.ceildiv(f.arguments["depth"], int64(self.kr)), self.group_bytes)
        width = self.chunks[-1][1] * self.word_bits // 8  # which divides the bytes of each word of every lane
        bytes_ = vector_of(INT8, width)
        with f.loop(begin, panel_bytes, int64(width), "clear") as at:
            f.store(zero(bytes_), f.at(destination, at), 1)

    def _emit_panel(
        self,
        f: Function,
        destination: Value,
        source: Value,
        left: Value,
        strides: tuple[Value, Value],
    ) -> None:
        """One micro-panel by the first method that fits its strides and the remaining lanes.

        Quick code has two of them: adjacent lanes, and any strides.
        """
        lane_bytes, depth_bytes = strides

        def others() -> None:
            begin = self._squares(f, destination, source, lane_bytes, left)
            self._any(f, destination, source, strides, left, begin)

        if self.adjacent is Adjacent.DEPTHS:
            others()
            return
        whole = f.icmp(">=", left, self.lanes)
        lanes_adjacent = f.icmp("==", f.arguments["lane_stride"], 1)
        with f.branch(f.and_(lanes_adjacent, whole)) as (then, otherwise):
            with then:
                self._copy(f, destination, source, depth_bytes)
            with otherwise:
                if f.module.quick or self.edge is Edge.SPILL:
                    others()
                elif self.adjacent is Adjacent.LANES:
                    self._copy(f, destination, source, depth_bytes, left)
                else:
                    with f.branch(lanes_adjacent) as (then_masked, otherwise_any):
                        with then_masked:
                            self._copy(f, destination, source, depth_bytes, left)
                        with otherwise_any:
                            others()

    def _squares(
        self, f: Function, destination: Value, source: Value, lane_bytes: Value, left: Value
    ) -> Value:
        """Adjacent depths in the widest squares of words that they suffice for; the number of words done.

        Few depths have narrow ones: element by element they would take five times as long.
        """
        if f.module.quick or self.adjacent is Adjacent.LANES:
            return int64(0)
        words, widest = self._whole_words(f), max(width for _, width in self.chunks)
        narrow = min(widest, NARROW)
        possible = f.and_(f.icmp("==", f.arguments["depth_stride"], 1), f.icmp(">=", words, narrow))
        with f.when(possible):
            if narrow == widest:
                self._transpose(f, destination, source, lane_bytes, left, widest)
            else:
                with f.branch(f.icmp(">=", words, widest)) as (then, otherwise):
                    with then:
                        self._transpose(f, destination, source, lane_bytes, left, widest)
                    with otherwise:
                        self._transpose(f, destination, source, lane_bytes, left, narrow)
        return f.select(possible, words, int64(0))

    def _whole_words(self, f: Function) -> Value:
        depth = f.arguments["depth"]
        return depth if self.kr == 1 else f.ashr(depth, int64(self.kr.bit_length() - 1))

    # --- words in registers ------------------------------------------------------

    def _rows(self, f: Function, words: Value, width: int) -> list[Value]:
        """The rows of the panel that a vector of words gives."""
        part = memory_type(self.source.real)
        if self.parts is Parts.WHOLE:
            elements = f.bitcast(words, vector_of(part, width * self.kr))
            return [Convert(f, half=self.isa.half)(elements, self.source, self.to)]
        both = f.bitcast(words, vector_of(part, 2 * width))
        both = Convert(f, half=self.isa.half)(both, self.source.real, self.to)
        if self.parts is Parts.SPLIT:
            return [f.shuffle(both, both, range(first, 2 * width, 2)) for first in (0, 1)]
        return [both, times_i(f, both)]

    def _store(self, f: Function, words: Value, width: int, to: Value) -> None:
        """Stores the elements of a vector of words at the address of its first lane."""
        for number, row in enumerate(self._rows(f, words, width)):
            f.store(row, f.at(to, number * self.panel * self.to.size), self.to.size)

    @property
    def _lane_bytes(self) -> int:
        """Bytes from one lane of the source to the next in a row of the panel."""
        return self.to.bytes(self.parts.spread[0] * self.kr)

    @property
    def _plain(self) -> bool:
        """Whether words are stored in the panel unchanged."""
        return self.parts is Parts.WHOLE and self.source == self.to and self.source.significand != 4

    @property
    def _copies_words(self) -> bool:
        """Whether a word fills a vector or more, so that nothing is transposed."""
        whole = self.parts is Parts.WHOLE and self.source.bits >= BYTE_BITS
        fills = self.kr > 1 and self.word_bits >= self.isa.vector_bits
        return whole and fills and self.lanes % LANES_TOGETHER == 0

    # --- the four methods ----------------------------------------------------------------------------

    def _copy(
        self, f: Function, destination: Value, source: Value, depth_bytes: Value, left: Value | None = None
    ) -> None:
        """Adjacent lanes: runs of the panel's width from kr depths; missing lanes repeat the last one."""
        few = None if left is None else self._few_lanes(f, left)
        state = [destination, source]
        with f.carried_loop(int64(0), self._whole_words(f), int64(1), state, "copy") as (_, values, advance):
            to, at = values
            depths = [f.at(at, f.mul(depth_bytes, depth)) for depth in range(self.kr)]
            self._copy_group(f, to, depths, few)
            advance((f.at(to, self.group_bytes), f.at(at, f.mul(depth_bytes, self.kr))))
        to, at = advance.results
        self._copy_rest(f, to, at, depth_bytes, few)

    def _copy_rest(
        self, f: Function, to: Value, at: Value, depth_bytes: Value, few: _FewLanes | None = None
    ) -> None:
        """The word of every lane, from depths that are fewer than kr."""
        if self.kr == 1:
            return
        rest = f.and_(f.arguments["depth"], int64(self.kr - 1))
        with f.when(f.icmp(">", rest, 0)):
            # Depths that do not exist are read from the first one, and not used.
            exist = [f.icmp("<", int64(depth), rest) for depth in range(self.kr)]
            depths = [
                f.at(at, f.select(some, f.mul(depth_bytes, depth), int64(0)))
                for depth, some in enumerate(exist)
            ]
            self._copy_group(f, to, depths, few, exist)

    def _few_lanes(self, f: Function, left: Value) -> _FewLanes:
        """The lanes of a panel that the block has."""
        lanes = f.minimum(left, int64(self.lanes))
        masks = {start: f.lane_mask(lanes, start, width) for start, width in self.chunks}
        return _FewLanes(masks, f.mul(f.sub(lanes, 1), self.source.size))

    def _copy_group(
        self,
        f: Function,
        to: Value,
        depths: list[Value],
        few: _FewLanes | None = None,
        exist: list[Value] | None = None,
    ) -> None:
        """One word of every lane, from runs of lanes at kr depths."""
        for start, width in self.chunks:
            runs = [self._run(f, depth, start, width, few) for depth in depths]
            if exist is not None:
                runs = [f.select(some, run, zero(run.type)) for some, run in zip(exist, runs, strict=True)]
            words = runs[0] if self.kr == 1 else interleave(f, runs)
            self._store(f, words, width, f.at(to, start * self._lane_bytes))

    def _run(self, f: Function, depth: Value, start: int, width: int, few: _FewLanes | None) -> Value:
        """Adjacent lanes at one depth; complex numbers are words of two parts."""
        size, parts = self.source.size, self.source.size // self.source.real.size
        kind, pointer = vector_of(memory_type(self.source.real), width * parts), f.at(depth, start * size)
        if few is None:
            return f.load(kind, pointer, self.source.real.size)
        mask, last = few.masks[start], f.at(depth, few.last)
        repeated = f.load(vector_of(memory_type(self.source.real), parts), last, self.source.real.size)
        others = f.shuffle(repeated, repeated, [lane % parts for lane in range(width * parts)])
        if parts > 1:
            mask = f.shuffle(mask, mask, [lane // parts for lane in range(width * parts)])
        return f.masked_load(kind, pointer, mask, self.source.real.size, others)

    def _transpose(
        self, f: Function, destination: Value, source: Value, lane_bytes: Value, left: Value, widest: int
    ) -> None:
        """Adjacent depths: squares of words, of the given width at most, transposed in registers.

        If the depth is not a multiple of its width, the last square overlaps the one before it, so that
        nothing after the rows is read. Missing lanes repeat the last row.
        """
        if self._copies_words:
            self._copy_words(f, destination, source, lane_bytes, left)
            return
        words, word_bytes = self._whole_words(f), self.word_bits // 8
        last = f.sub(left, 1)
        begin = 0
        for width, lanes in self._runs(widest):
            square = self.square(f.module, width)
            offsets = f.alloca(INT64, width, CACHE_LINE)
            final = f.sub(words, width)
            with f.loop(int64(begin), int64(begin + lanes), int64(width), "chunk") as start:
                for lane in range(width):
                    offset = f.mul(f.minimum(f.add(start, lane), last), lane_bytes)
                    f.store(offset, f.at(offsets, lane * OFFSET_BYTES), OFFSET_BYTES)
                to_chunk = f.at(destination, f.mul(start, self._lane_bytes))
                with f.loop(int64(0), words, int64(width), "square") as position:
                    at = f.minimum(position, final)
                    to = f.at(to_chunk, f.mul(at, self.group_bytes))
                    place = f.at(source, f.mul(at, word_bytes))
                    f.call(square, [to, int64(self.group_bytes), place, offsets])
            begin += lanes

    def _copy_words(
        self, f: Function, destination: Value, source: Value, lane_bytes: Value, left: Value
    ) -> None:
        """Adjacent depths whose words fill a vector or more: the words of some lanes, depth after depth.

        So many lanes have their pointers in registers.
        """
        words, word_bytes, last = self._whole_words(f), self.word_bits // 8, f.sub(left, 1)
        kind = vector_of(memory_type(self.source.real), self.kr)
        with f.loop(int64(0), int64(self.lanes), int64(LANES_TOGETHER), "lanes") as start:
            lanes = (f.minimum(f.add(start, lane), last) for lane in range(LANES_TOGETHER))
            rows = [f.at(source, f.mul(lane, lane_bytes)) for lane in lanes]
            to_lanes = f.at(destination, f.mul(start, self._lane_bytes))
            with f.loop(int64(0), words, int64(1), "word") as word:
                to, offset = f.at(to_lanes, f.mul(word, self.group_bytes)), f.mul(word, word_bytes)
                for lane, row in enumerate(rows):
                    value = f.load(kind, f.at(row, offset), self.source.real.size)
                    self._store(f, value, 1, f.at(to, lane * self._lane_bytes))

    def _runs(self, widest: int) -> list[tuple[int, int]]:
        """The widths of squares, of the given one at most, each with the lanes that it takes.

        >>> from tilewright.machine.isa_rows import AVX512
        >>> from tilewright.spec.dtype import F32
        >>> PackKernel(AVX512, F32, F32, 28)._runs(16), PackKernel(AVX512, F32, F32, 28)._runs(4)
        ([(16, 16), (8, 8), (4, 4)], [(4, 28)])
        """
        lanes: dict[int, int] = {}
        for _, chunk in self.chunks:
            width = min(chunk, widest)
            lanes[width] = lanes.get(width, 0) + chunk
        return list(lanes.items())

    def square(self, module: Module, width: int) -> Callee:
        """The function that transposes a square of words and stores their elements."""
        if self._plain:
            return square_function(module, self.word_bits, width)
        name = f"square_{self.name}_{width}"
        known = module.find(name)
        if known is not None:
            return known
        f = module.define(name, VOID, SQUARE_ARGUMENTS)
        for p, words in enumerate(transposed_square(f, self.word_bits, width)):
            self._store(f, words, width, f.at(f.arguments["to"], f.mul(f.arguments["to_step"], p)))
        f.ret()
        return f.callee

    def _any(
        self,
        f: Function,
        destination: Value,
        source: Value,
        strides: tuple[Value, Value],
        left: Value,
        begin: Value,
    ) -> None:
        """Any strides, from some word on: element by element; missing lanes repeat the last one."""
        lane_bytes, depth_bytes = strides
        words, lanes = f.ceildiv(f.arguments["depth"], int64(self.kr)), f.minimum(left, int64(self.lanes))
        with f.loop(begin, words, int64(1), "word") as word:
            row = f.at(destination, f.mul(word, self.group_bytes))

            def copy(lane: Value) -> Value:
                to = f.at(row, f.mul(lane, self._lane_bytes))
                self._copy_word(f, to, f.at(source, f.mul(lane, lane_bytes)), word, depth_bytes)
                return to

            with f.when(f.icmp("<", left, self.lanes)):
                self._repeat(f, row, copy(f.sub(lanes, 1)))
            with f.loop(int64(0), lanes, int64(1), "lane") as lane:
                copy(lane)

    def _copy_word(self, f: Function, to: Value, lane: Value, word: Value, depth_bytes: Value) -> None:
        """One word of one lane, element by element."""
        kind, size = memory_type(self.source.real), self.source.real.size
        if self.parts is not Parts.WHOLE:
            place = f.at(lane, f.mul(word, depth_bytes))
            self._store(f, f.load(vector_of(kind, 2), place, size), 1, to)
        elif self.kr == 1:
            value = f.load(kind, f.at(lane, f.mul(word, depth_bytes)), size)
            f.store(Convert(f, half=self.isa.half)(value, self.source, self.to), to, self.to.size)
        else:
            with f.loop(int64(0), int64(self.kr), int64(self.to.held), "depth") as inner:
                first = f.add(f.mul(word, self.kr), inner)
                depths = [f.add(first, beside) for beside in range(self.to.held)]
                value = self._cell(f, lane, depths, depth_bytes)
                f.store(value, f.at(to, f.bytes_of(inner, self.to.bits)), self.to.size)

    def _repeat(self, f: Function, row: Value, last: Value) -> None:
        """A word of every lane: that of one lane, which stands in the panel already."""
        piece = min(self._lane_bytes, OFFSET_BYTES)
        pieces = self._lane_bytes // piece
        for number in range(self.depths):
            along = number * self.to.bytes(self.panel * self.kr)
            word = f.load(vector_of(named_type(f"i{8 * piece}"), pieces), f.at(last, along), 1)
            for start, width in self.chunks:
                repeated = f.shuffle(word, word, [lane % pieces for lane in range(width * pieces)])
                f.store(repeated, f.at(row, along + start * self._lane_bytes), 1)

    def _cell(self, f: Function, lane: Value, depths: list[Value], depth_bytes: Value) -> Value:
        """The elements of one lane that share a cell of the panel; those behind the depth are zero."""
        kind, convert = memory_type(self.source.real), Convert(f, half=self.isa.half)
        to = self.to if len(depths) == 1 else self.source
        values = []
        for p in depths:
            exists = f.icmp("<", p, f.arguments["depth"])
            place = f.at(lane, f.mul(f.select(exists, p, int64(0)), depth_bytes))
            value = convert(f.load(kind, place, self.source.real.size), self.source, to)
            values.append(f.select(exists, value, zero(value.type)))
        return values[0] if to == self.to else convert(f.build_vector(values), to, self.to)
