"""Packs words longer than a vector's lanes, as the tiles of AMX take them of A."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.convert import Convert
from tilewright.llvm.values import INT64, VOID, Value, int64, memory_type, vector_of, zero
from tilewright.machine.isa import Isa
from tilewright.machine.machine import CACHE_LINE
from tilewright.micro.packing.pack import Adjacent, PackKernel
from tilewright.micro.packing.squares import (
    OFFSET_BYTES,
    SQUARE_ARGUMENTS,
    square_function,
    transposed_square,
)
from tilewright.spec.dtype import DType
from tilewright.spec.parts import Parts

#: Words that are assembled in registers from runs of lanes.
WORD_BYTES = 16

#: Panels of adjacent lanes that long words are collected for at the same time.
PANELS_TOGETHER = 4


class LongWordPack(PackKernel):
    """`PackKernel` of words that are longer than `WORD_BYTES`: 64 depths of bytes, 32 of 16-bit floats.

    Interleaving runs of lanes would take thousands of shuffles. Adjacent lanes are collected by squares of
    single elements instead, which one small function transposes.
    """

    @property
    def _side(self) -> int:
        """Elements of a side of the squares that words are collected by."""
        return WORD_BYTES // self.source.size

    def _whole_panels(
        self, f: Function, state: list[Value], strides: tuple[Value, Value], panel_bytes: Value
    ) -> list[Value]:
        if f.module.quick or self.lanes < self._side or self.adjacent is Adjacent.DEPTHS:
            return state
        lane_bytes, depth_bytes = strides
        together = PANELS_TOGETHER * self.lanes
        adjacent = f.icmp("==", f.arguments["lane_stride"], 1)
        end = f.select(adjacent, f.sub(f.arguments["lanes"], together - 1), int64(0))
        with f.carried_loop(int64(0), end, int64(together), state, "panels") as (_, values, advance):
            done, destination, source = values
            self._collect(f, destination, source, depth_bytes, panel_bytes, PANELS_TOGETHER)
            with f.loop(int64(0), int64(PANELS_TOGETHER), int64(1), "cleared") as panel:
                self._clear(f, f.at(destination, f.mul(panel, panel_bytes)), panel_bytes)
            following = f.at(destination, f.mul(panel_bytes, PANELS_TOGETHER))
            advance((f.add(done, together), following, f.at(source, f.mul(lane_bytes, together))))
        return list(advance.results)

    def _emit_panel(
        self,
        f: Function,
        destination: Value,
        source: Value,
        left: Value,
        strides: tuple[Value, Value],
    ) -> None:
        lane_bytes, depth_bytes = strides

        def others() -> None:
            begin = self._squares(f, destination, source, lane_bytes, left)
            self._any(f, destination, source, strides, left, begin)

        if f.module.quick or self.lanes < self._side or self.adjacent is Adjacent.DEPTHS:
            others()
            return
        adjacent = f.icmp("==", f.arguments["lane_stride"], 1)
        with f.branch(f.and_(adjacent, f.icmp(">=", left, self.lanes))) as (then, otherwise):
            with then:
                self._collect(f, destination, source, depth_bytes, int64(0), 1)
            with otherwise:
                others()

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
        for lane, words in enumerate(transposed_square(f, self.source.bits, side)):
            elements = convert(f.bitcast(words, kind), self.source, self.to)
            f.store(elements, f.at(f.arguments["to"], f.mul(f.arguments["to_step"], lane)), self.to.size)
        f.ret()
        return f.callee


def pack_kernel(
    isa: Isa,
    source: DType,
    to: DType,
    panel: int,
    kr: int = 1,
    unit: int = 1,
    parts: Parts = Parts.WHOLE,
    adjacent: Adjacent = Adjacent.UNKNOWN,
) -> PackKernel:
    """What packs a block; the arguments are those of `PackKernel`."""
    long = parts is Parts.WHOLE and source.bits * kr > 8 * WORD_BYTES
    return (LongWordPack if long else PackKernel)(isa, source, to, panel, kr, unit, parts, adjacent)
