"""Copies panels of a packed weight into panels of a multiply instruction: words become floats on the way."""

from __future__ import annotations

from typing import NamedTuple

from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.values import INT8, INT64, POINTER, VOID, Value, int64, vector_of, zero
from tilewright.machine.isa import Isa
from tilewright.micro.packing.transpose import interleave
from tilewright.micro.packing.words import Words
from tilewright.spec.dtype import BF16, F32, DType
from tilewright.spec.weights import Elements


class UnpackKernel:
    """unpack(destination, source, apart, lanes, depth, group, zero, zero_apart, zero_step).

    Integers less their zero points, or floats, in the type of the instruction's operand; whole panels, whose
    lanes behind the last column the weight pads. Distances are in elements.

    Parameters
    ----------
    isa : the row.
    elements : what a word holds.
    to, panel, kr, unit : as `Pack` has them.
    zeros : there are zero points (else pointer and distances are not read).
    """

    def __init__(
        self, isa: Isa, elements: Elements, to: DType, shape: tuple[int, int, int], *, zeros: bool
    ) -> None:
        self.isa, self.elements, self.to, self.zeros = isa, elements, to, zeros
        self.panel, self.kr, self.unit = shape
        self.lanes = min(self.panel, isa.lanes(F32))
        self.row_bytes = self.panel * self.kr * to.size  # of kr depths of every lane
        self.together = max(1, self.kr // elements.depths)  # words that make kr depths

    @property
    def name(self) -> str:
        """The function's name in a module."""
        zeros = "_zeros" * self.zeros
        return f"unpack_{self.elements.value}_{self.to}_{self.panel}_{self.kr}_{self.unit}{zeros}"

    def emit(self, module: Module) -> Callee:
        """Defines the function in a module; returns the function to call."""
        known = module.find(self.name)
        if known is not None:
            return known
        f = module.define(self.name, VOID, _ARGUMENTS)
        g = f.arguments
        units = f.ceildiv(g["depth"], int64(self.unit))
        panel_bytes = f.mul(units, self.unit * self.panel * self.to.size)
        source_bytes = f.mul(g["apart"], self.elements.storage.size)
        zero_bytes = f.mul(g["zero_apart"], F32.size)
        state = [g["destination"], g["source"], g["zero"]]
        span = (int64(0), g["lanes"], int64(self.panel))
        with f.carried_loop(*span, state, "panel") as (_, values, advance):
            to, source, zeros = values
            self._panel(f, to, source, zeros)
            if self.unit > self.kr:
                self._clear(f, to, panel_bytes)
            moved = zip(values, (panel_bytes, source_bytes, zero_bytes), strict=True)
            advance([f.at(pointer, step) for pointer, step in moved])
        f.ret()
        return f.callee

    def _clear(self, f: Function, to: Value, panel_bytes: Value) -> None:
        """Zeros for the depths that fill the last unit."""
        begin = f.mul(f.ceildiv(f.arguments["depth"], int64(self.kr)), self.row_bytes)
        width = self.lanes * self.to.size
        with f.loop(begin, panel_bytes, int64(width), "clear") as at:
            f.store(zero(vector_of(INT8, width)), f.at(to, at), 1)

    def _panel(self, f: Function, to: Value, source: Value, zeros: Value) -> None:
        """One panel, group by group: each has zero points of its own."""
        g, deep = f.arguments, self.elements.depths * self.together
        step = f.mul(g["zero_step"], F32.size)
        word_bytes = self.panel * self.elements.word_bytes * self.together
        state = [to, source, zeros]
        with f.carried_loop(int64(0), g["depth"], g["group"], state, "group") as (first, values, advance):
            depth = f.minimum(g["group"], f.sub(g["depth"], first))
            place = _PanelPlaces(*values)
            end = f.sub(depth, deep - 1)
            with f.carried_loop(int64(0), end, int64(deep), values[:2], "word") as (_, inner, onward):
                self._words(f, place._replace(to=inner[0], source=inner[1]), None)
                onward((f.at(inner[0], deep // self.kr * self.row_bytes), f.at(inner[1], word_bytes)))
            last = onward.results
            if deep > 1:
                rest = f.and_(depth, int64(deep - 1))
                with f.when(f.icmp(">", rest, 0)):
                    self._words(f, place._replace(to=last[0], source=last[1]), rest)
            advance((*last, f.at(values[2], step)))

    def _words(self, f: Function, place: _PanelPlaces, rest: Value | None) -> None:
        """The words of one step of every lane: all of their depths, or the first `rest`."""
        taken = []
        for lane in range(0, self.panel, self.lanes):
            words = Words(f, self.isa, self.elements, self.lanes)
            zeros = None
            if self.zeros:
                zeros = f.load(words.kind, f.at(place.zero, lane * F32.size), F32.size)
            values: list[Value] = []
            for number in range(self.together):
                first = (number * self.panel + lane) * self.elements.word_bytes
                pointer, exists = f.at(place.source, first), None
                if rest is not None and number:  # a word beyond the weight is not read: its depths are zero
                    exists = f.icmp("<", int64(number * self.elements.depths), rest)
                    pointer = f.select(exists, pointer, place.source)
                several = list(words.depths(words.load(pointer), zeros))
                if exists is not None:
                    several = [f.select(exists, value, zero(value.type)) for value in several]
                values += several
            taken.append((lane, words, values))
        for depth in range(0, self.elements.depths * self.together, self.kr):
            row = f.at(place.to, depth // self.kr * self.row_bytes)

            def store(depth: int = depth, row: Value = row) -> None:
                for lane, words, values in taken:
                    value = self._value(f, words, values[depth : depth + self.kr])
                    f.store(value, f.at(row, lane * self.kr * self.to.size), self.to.size)

            if rest is None or depth == 0:
                store()
            else:
                with f.when(f.icmp("<", int64(depth), rest)):
                    store()

    def _value(self, f: Function, words: Words, depths: list[Value]) -> Value:
        """The kr depths of some lanes as the panel has them: exact in its type."""
        if self.to == F32:
            return depths[0]
        assert self.to == BF16
        pairs = [words.pair(first, second) for first, second in zip(depths[::2], depths[1::2], strict=True)]
        return pairs[0] if len(pairs) == 1 else interleave(f, pairs)


class _PanelPlaces(NamedTuple):
    """Addresses of a panel: of its destination, its source and its zero points."""

    to: Value
    source: Value
    zero: Value


_ARGUMENTS = [
    ("destination", POINTER),
    ("source", POINTER),
    ("apart", INT64),
    ("lanes", INT64),
    ("depth", INT64),
    ("group", INT64),
    ("zero", POINTER),
    ("zero_apart", INT64),
    ("zero_step", INT64),
]
