"""Copies a block into whole micro-panels: contiguous runs, register transposes, any stride.

Elements are converted to the multiply instruction's type, interleaved by depth, or split into parts of
complex numbers. Lanes beyond the block repeat one of its lanes: a tile computes them without storing them, so
they raise no floating-point flag that the block's own elements do not raise.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tilewright.ir.nodes import Parts
from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.convert import Convert
from tilewright.llvm.values import (
    INT8,
    INT64,
    POINTER,
    VOID,
    Type,
    Value,
    int64,
    memory_type,
    vector_of,
    zero,
)
from tilewright.machine.isa import Edge, Isa
from tilewright.machine.machine import CACHE_LINE
from tilewright.micro.packing.transpose import interleave, transpose
from tilewright.spec.dtype import DType

#: Bytes of one 64-bit offset.
OFFSET_BYTES = 8

#: Words that are assembled in registers from runs of lanes.
WORD_BYTES = 16

#: Panels of adjacent lanes that are copied at the same time: four runs of 32 to 128 bytes. One at a time took
#: up to twice as long; eight were no faster than four (docs/decisions/021-pack-panels-side-by-side.md).
PANELS_TOGETHER = 4

#: Words of depth by which rows of the source are prefetched while panels are copied side by side. Their runs
#: are too short for the hardware's prefetchers: 24x3072x768 of float32 went from 0.49 to 0.66 of the peak on
#: Zen 4, 64x8192x256 from 0.66 to 0.77; 4 words gained as much at the latter and less at the former.
PREFETCHED_WORDS = 8

#: The widest integer that vectors of every instruction set have as a lane.
WORD_BITS = 64


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


def square_function(module: Module, bits: int, width: int) -> Callee:
    """square(to, to_step, from, lanes): `width` depths of `width` lanes, transposed in registers.

    Elements are words of some bits. Lane l starts lanes[l] bytes after `from`; depth p is stored at `to` + p
    · to_step bytes. One function serves all transpositions of squares: its shuffles are the longest
    straight-line code of a module.
    """
    name = f"square_{bits}_{width}"
    known = module.find(name)
    if known is not None:
        return known
    f = module.define(name, VOID, SQUARE_ARGUMENTS)
    for p, column in enumerate(_transposed_square(f, bits, width)):
        f.store(column, f.at(f.arguments["to"], f.mul(f.arguments["to_step"], p)), 1)
    f.ret()
    return f.callee


SQUARE_ARGUMENTS = [("to", POINTER), ("to_step", INT64), ("from", POINTER), ("lanes", POINTER)]


def _transposed_square(f: Function, bits: int, width: int) -> list[Value]:
    """The depths of a square of words, read lane by lane."""
    words = max(1, bits // WORD_BITS)
    lane_bits = bits // words
    kind = vector_of(Type(f"i{lane_bits}", f"i{lane_bits}"), width * words)
    rows = []
    for lane in range(width):
        offset = f.load(INT64, f.at(f.arguments["lanes"], lane * OFFSET_BYTES), OFFSET_BYTES)
        rows.append(f.load(kind, f.at(f.arguments["from"], offset), 1))
    return transpose(f, rows, words)


class PackKernel:
    """pack(destination, source, lane stride, depth stride, lanes, depth); strides in elements.

    Parameters
    ----------
    isa : the row.
    source, to : element types of the block and of the panels.
    panel, kr, unit, parts : as `Pack` has them.

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
    ) -> None:
        self.isa, self.source, self.to = isa, source, to
        self.panel, self.kr, self.unit, self.parts = panel, kr, unit, parts
        lanes, self.depths = parts.spread
        self.lanes = panel // lanes  # of the source, in one panel
        self.word_bits = source.bits * kr
        self.chunks = chunks(self.lanes, max(1, isa.vector_bits // self.word_bits))
        self.edge = isa.edge_of(source.real)
        self.group_bytes = to.bytes(panel * kr * self.depths)  # of one word of every lane

    @property
    def name(self) -> str:
        """The function's name in a module."""
        return f"pack_{self.source}_{self.to}_{self.panel}_{self.kr}_{self.unit}_{self.parts.value}"

    def emit(self, module: Module) -> Callee:
        """Defines the function in a module; returns the function to call."""
        known = module.find(self.name)
        if known is not None:
            return known
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
        begin, *state = self._side_by_side(f, state, (lane_bytes, depth_bytes), panel_bytes)
        with f.carried_loop(begin, lanes, int64(self.lanes), state, "panel") as (first, values, advance):
            destination, source = values
            left = f.sub(lanes, first)
            self._emit_panel(f, destination, source, left, (lane_bytes, depth_bytes), panel_bytes)
            self._clear(f, destination, panel_bytes)
            advance((f.at(destination, panel_bytes), f.at(source, f.mul(lane_bytes, self.lanes))))
        f.ret()
        return f.callee

    def _side_by_side(
        self, f: Function, state: list[Value], strides: tuple[Value, Value], panel_bytes: Value
    ) -> list[Value]:
        """Whole panels of adjacent lanes, several at once; returns the first lane of the rest.

        A run of one panel is a cache line or two, and the next one is in another page, which no prefetcher
        follows.
        """
        if f.module.quick or (self._long_words and self.lanes < self._side):
            return state
        lane_bytes, depth_bytes = strides
        together = PANELS_TOGETHER * self.lanes
        adjacent = f.icmp("==", f.arguments["lane_stride"], 1)
        end = f.select(adjacent, f.sub(f.arguments["lanes"], together - 1), int64(0))
        with f.carried_loop(int64(0), end, int64(together), state, "panels") as (_, values, advance):
            done, destination, source = values
            if self._long_words:
                self._collect(f, destination, source, depth_bytes, panel_bytes, PANELS_TOGETHER)
            else:
                self._copy(f, destination, source, depth_bytes, None, panel_bytes)
            with f.loop(int64(0), int64(PANELS_TOGETHER), int64(1), "cleared") as panel:
                self._clear(f, f.at(destination, f.mul(panel, panel_bytes)), panel_bytes)
            following = f.at(destination, f.mul(panel_bytes, PANELS_TOGETHER))
            advance((f.add(done, together), following, f.at(source, f.mul(lane_bytes, together))))
        return list(advance.results)

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
        panel_bytes: Value,
    ) -> None:
        """One micro-panel by the first method that fits its strides and the remaining lanes.

        Quick code has two of them: adjacent lanes, and any strides.
        """
        lane_bytes, depth_bytes = strides
        whole = f.icmp(">=", left, self.lanes)
        lanes_adjacent = f.icmp("==", f.arguments["lane_stride"], 1)
        if f.module.quick and self._long_words:
            self._any(f, destination, source, strides, left, int64(0))
            return
        if f.module.quick:
            with f.branch(f.and_(lanes_adjacent, whole)) as (then, otherwise):
                with then:
                    self._copy(f, destination, source, depth_bytes, None)
                with otherwise:
                    self._any(f, destination, source, strides, left, int64(0))
            return
        depths_adjacent = f.icmp("==", f.arguments["depth_stride"], 1)
        words = self._whole_words(f)
        wide = f.icmp(">=", words, max(width for _, width in self.chunks))
        transposing = f.and_(depths_adjacent, wide)
        if self._long_words:
            with f.branch(transposing) as (then, otherwise):
                with then:
                    self._transpose(f, destination, source, lane_bytes, left)
                    self._any(f, destination, source, strides, left, words)
                with otherwise:
                    if self.lanes < self._side:
                        self._any(f, destination, source, strides, left, int64(0))
                    else:
                        with f.branch(f.and_(lanes_adjacent, whole)) as (then_collect, otherwise_any):
                            with then_collect:
                                self._collect(f, destination, source, depth_bytes, panel_bytes, 1)
                            with otherwise_any:
                                self._any(f, destination, source, strides, left, int64(0))
            return
        with f.branch(f.and_(lanes_adjacent, whole)) as (then, otherwise):
            with then:
                self._copy(f, destination, source, depth_bytes, None)
            with otherwise, f.branch(transposing) as (then_transpose, otherwise_any):
                with then_transpose:
                    self._transpose(f, destination, source, lane_bytes, left)
                    if self.kr > 1:
                        self._any(f, destination, source, strides, left, words)
                with otherwise_any:
                    if self.edge is Edge.SPILL:
                        self._any(f, destination, source, strides, left, int64(0))
                    else:
                        with f.branch(lanes_adjacent) as (then_masked, otherwise_scalar):
                            with then_masked:
                                self._copy(f, destination, source, depth_bytes, left)
                            with otherwise_scalar:
                                self._any(f, destination, source, strides, left, int64(0))

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
        swapped = f.shuffle(both, both, [lane ^ 1 for lane in range(2 * width)])
        negative = f.emit(swapped.type, f"fneg {swapped.typed}")
        return [
            both,
            f.shuffle(
                swapped, negative, [lane if lane % 2 else 2 * width + lane for lane in range(2 * width)]
            ),
        ]

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
    def _long_words(self) -> bool:
        """Whether a word is longer than `WORD_BYTES`, as the tiles of AMX take them of A."""
        return self.word_bits > 8 * WORD_BYTES and self.parts is Parts.WHOLE

    @property
    def _side(self) -> int:
        """Elements of a side of the squares that long words are collected by."""
        return WORD_BYTES // self.source.size

    # --- the four methods ----------------------------------------------------------------------------

    def _copy(
        self,
        f: Function,
        destination: Value,
        source: Value,
        depth_bytes: Value,
        left: Value | None,
        panel_bytes: Value | None = None,
    ) -> None:
        """Adjacent lanes: runs of the panel's width from kr depths; missing lanes repeat the last one.

        Given the bytes of a panel, several panels are copied side by side.
        """
        masks = {
            start: None if left is None else f.lane_mask(f.minimum(left, int64(self.lanes)), start, width)
            for start, width in self.chunks
        }
        last = int64(0)
        if left is not None:
            last = f.mul(f.sub(f.minimum(left, int64(self.lanes)), 1), self.source.size)
        state = [destination, source]
        with f.carried_loop(int64(0), self._whole_words(f), int64(1), state, "copy") as (_, values, advance):
            to, at = values
            if panel_bytes is not None:
                self._prefetch(f, f.at(at, f.mul(depth_bytes, PREFETCHED_WORDS * self.kr)), depth_bytes)
            depths = [f.at(at, f.mul(depth_bytes, depth)) for depth in range(self.kr)]
            self._copy_groups(f, to, depths, masks, last, None, panel_bytes)
            advance((f.at(to, self.group_bytes), f.at(at, f.mul(depth_bytes, self.kr))))
        if self.kr > 1:
            to, at = advance.results
            rest = f.and_(f.arguments["depth"], int64(self.kr - 1))
            with f.when(f.icmp(">", rest, 0)):
                # Depths that do not exist are read from the first one, and not used.
                exist = [f.icmp("<", int64(depth), rest) for depth in range(self.kr)]
                depths = [
                    f.at(at, f.select(some, f.mul(depth_bytes, depth), int64(0)))
                    for depth, some in enumerate(exist)
                ]
                self._copy_groups(f, to, depths, masks, last, exist, panel_bytes)

    def _prefetch(self, f: Function, ahead: Value, depth_bytes: Value) -> None:
        """Prefetches a word of all lanes of the panels side by side; hints may pass the source's end."""
        for depth in range(self.kr):
            row = f.at(ahead, f.mul(depth_bytes, depth))
            for line in range(0, PANELS_TOGETHER * self.lanes * self.source.size, CACHE_LINE):
                f.prefetch(f.at(row, line), write=False, locality=3)

    def _copy_groups(
        self,
        f: Function,
        to: Value,
        depths: list[Value],
        masks: dict[int, Value | None],
        last: Value,
        exist: list[Value] | None,
        panel_bytes: Value | None,
    ) -> None:
        """One word of every lane of one panel, or of the panels side by side."""
        if panel_bytes is None:
            self._copy_group(f, to, depths, masks, last, exist)
            return
        run = self.lanes * self.source.size
        if exist is None:
            for beside in range(PANELS_TOGETHER):
                places = [f.at(depth, run * beside) for depth in depths]
                self._copy_group(f, f.at(to, f.mul(panel_bytes, beside)), places, masks, last, None)
            return
        with f.loop(int64(0), int64(PANELS_TOGETHER), int64(1), "beside") as panel:  # once: less code
            places = [f.at(depth, f.mul(panel, run)) for depth in depths]
            self._copy_group(f, f.at(to, f.mul(panel, panel_bytes)), places, masks, last, exist)

    def _copy_group(
        self,
        f: Function,
        to: Value,
        depths: list[Value],
        masks: dict[int, Value | None],
        last: Value,
        exist: list[Value] | None,
    ) -> None:
        """One word of every lane, from runs of lanes at kr depths."""
        for start, width in self.chunks:
            runs = [self._run(f, depth, start, width, masks[start], last) for depth in depths]
            if exist is not None:
                runs = [f.select(some, run, zero(run.type)) for some, run in zip(exist, runs, strict=True)]
            words = runs[0] if self.kr == 1 else interleave(f, runs)
            self._store(f, words, width, f.at(to, start * self._lane_bytes))

    def _run(
        self, f: Function, depth: Value, start: int, width: int, mask: Value | None, last: Value
    ) -> Value:
        """Adjacent lanes at one depth; complex numbers are words of two parts."""
        size, parts = self.source.size, self.source.size // self.source.real.size
        kind, pointer = vector_of(memory_type(self.source.real), width * parts), f.at(depth, start * size)
        if mask is None:
            return f.load(kind, pointer, self.source.real.size)
        repeated = f.load(
            vector_of(memory_type(self.source.real), parts), f.at(depth, last), self.source.real.size
        )
        others = f.shuffle(repeated, repeated, [lane % parts for lane in range(width * parts)])
        if parts > 1:
            mask = f.shuffle(mask, mask, [lane // parts for lane in range(width * parts)])
        return f.masked_load(kind, pointer, mask, self.source.real.size, others)

    def _collect(
        self,
        f: Function,
        destination: Value,
        source: Value,
        depth_bytes: Value,
        panel_bytes: Value,
        panels: int,
    ) -> None:
        """Adjacent lanes of long words: squares of single elements, transposed in registers.

        The depths that a word lacks at the end are read from its last one and then overwritten with zeros.
        """
        side = self._side
        assert self.lanes >= side
        assert self.kr % side == 0
        depth, square = f.arguments["depth"], self._element_square(f.module, side)
        offsets = f.alloca(INT64, side, CACHE_LINE)
        for_word = f.mul(depth_bytes, self.kr)
        with f.carried_loop(int64(0), depth, int64(self.kr), [destination, source], "word") as (
            first,
            (to_word, word),
            advance,
        ):
            depths = f.minimum(f.sub(depth, first), int64(self.kr))
            with f.loop(int64(0), depths, int64(side), "square") as begin:
                for beside in range(side):
                    offset = f.mul(f.minimum(f.add(begin, beside), f.sub(depths, 1)), depth_bytes)
                    f.store(offset, f.at(offsets, beside * OFFSET_BYTES), OFFSET_BYTES)
                with self._lanes_of(f, to_word, panel_bytes, panels, side) as (lane, to_lane):
                    to = f.at(to_lane, f.mul(begin, self.to.size))
                    at = f.at(word, f.mul(lane, self.source.size))
                    f.call(square, [to, int64(self._lane_bytes), at, offsets])
            with (
                f.when(f.icmp("<", depths, self.kr)),
                self._lanes_of(f, to_word, panel_bytes, panels, 1) as (_, to_lane),
            ):
                kind = vector_of(memory_type(self.to), self.kr)
                kept = f.select(
                    f.lane_mask(depths, 0, self.kr), f.load(kind, to_lane, self.to.size), zero(kind)
                )
                f.store(kept, to_lane, self.to.size)
            advance((f.at(to_word, self.group_bytes), f.at(word, for_word)))

    @contextmanager
    def _lanes_of(
        self, f: Function, to_word: Value, panel_bytes: Value, panels: int, step: int
    ) -> Iterator[tuple[Value, Value]]:
        """A loop over the lanes of adjacent panels: the lane, and where its word is in its panel.

        The last step in a panel overlaps the one before it where the lanes are no multiple of a step.
        """
        with (
            f.loop(int64(0), int64(panels), int64(1), "beside") as panel,
            f.loop(int64(0), int64(self.lanes), int64(step), "lane") as first,
        ):
            lane = f.minimum(first, int64(self.lanes - step)) if self.lanes % step else first
            to_panel = f.at(to_word, f.mul(panel, panel_bytes))
            yield f.add(f.mul(panel, self.lanes), lane), f.at(to_panel, f.mul(lane, self._lane_bytes))

    def _element_square(self, module: Module, side: int) -> Callee:
        """The function that transposes a square of single elements, depth by depth, and stores lanes."""
        if self._plain:
            return square_function(module, self.source.bits, side)
        name = f"elements_{self.name}_{side}"
        known = module.find(name)
        if known is not None:
            return known
        f = module.define(name, VOID, SQUARE_ARGUMENTS)
        kind, convert = vector_of(memory_type(self.source), side), Convert(f, half=self.isa.half)
        for lane, words in enumerate(_transposed_square(f, self.source.bits, side)):
            elements = convert(f.bitcast(words, kind), self.source, self.to)
            f.store(elements, f.at(f.arguments["to"], f.mul(f.arguments["to_step"], lane)), self.to.size)
        f.ret()
        return f.callee

    def _transpose(
        self, f: Function, destination: Value, source: Value, lane_bytes: Value, left: Value
    ) -> None:
        """Adjacent depths: squares of words transposed in registers.

        If the depth is not a multiple of its width, the last square overlaps the one before it, so that
        nothing after the rows is read. Missing lanes repeat the last row.
        """
        words, word_bytes = self._whole_words(f), self.word_bits // 8
        last = f.sub(left, 1)
        for width in dict.fromkeys(width for _, width in self.chunks):
            starts = [start for start, chunk in self.chunks if chunk == width]
            square = self.square(f.module, width)
            offsets = f.alloca(INT64, width, CACHE_LINE)
            final = f.sub(words, width)
            with f.loop(int64(starts[0]), int64(starts[-1] + width), int64(width), "chunk") as start:
                for lane in range(width):
                    offset = f.mul(f.minimum(f.add(start, lane), last), lane_bytes)
                    f.store(offset, f.at(offsets, lane * OFFSET_BYTES), OFFSET_BYTES)
                to_chunk = f.at(destination, f.mul(start, self._lane_bytes))
                with f.loop(int64(0), words, int64(width), "square") as position:
                    at = f.minimum(position, final)
                    to = f.at(to_chunk, f.mul(at, self.group_bytes))
                    place = f.at(source, f.mul(at, word_bytes))
                    f.call(square, [to, int64(self.group_bytes), place, offsets])

    def square(self, module: Module, width: int) -> Callee:
        """The function that transposes a square of words and stores their elements."""
        if self._plain:
            return square_function(module, self.word_bits, width)
        name = f"square_{self.name}_{width}"
        known = module.find(name)
        if known is not None:
            return known
        f = module.define(name, VOID, SQUARE_ARGUMENTS)
        for p, words in enumerate(_transposed_square(f, self.word_bits, width)):
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
        depth, last = f.arguments["depth"], f.sub(left, 1)
        kind, size = memory_type(self.source.real), self.source.real.size
        with (
            f.loop(begin, f.ceildiv(depth, int64(self.kr)), int64(1), "word") as word,
            f.loop(int64(0), int64(self.lanes), int64(1), "lane") as lane,
        ):
            to = f.at(f.at(destination, f.mul(word, self.group_bytes)), f.mul(lane, self._lane_bytes))
            at = f.at(source, f.mul(f.minimum(lane, last), lane_bytes))
            if self.parts is not Parts.WHOLE:
                place = f.at(at, f.mul(word, depth_bytes))
                self._store(f, f.load(vector_of(kind, 2), place, size), 1, to)
            elif self.kr == 1:
                value = f.load(kind, f.at(at, f.mul(word, depth_bytes)), size)
                f.store(Convert(f, half=self.isa.half)(value, self.source, self.to), to, self.to.size)
            else:
                with f.loop(int64(0), int64(self.kr), int64(self.to.held), "depth") as inner:
                    first = f.add(f.mul(word, self.kr), inner)
                    depths = [f.add(first, beside) for beside in range(self.to.held)]
                    value = self._cell(f, at, depths, depth_bytes)
                    f.store(value, f.at(to, f.bytes_of(inner, self.to.bits)), self.to.size)

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
