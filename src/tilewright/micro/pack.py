"""Copies a block into whole micro-panels: contiguous runs, register transposes, any stride.

Lanes that the block lacks repeat one that it has: a tile computes them and never stores them, and so
they raise no floating-point flag that the block's own elements do not raise.
"""

from __future__ import annotations

from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.values import INT64, POINTER, VOID, Value, element_type, int64, vector_type
from tilewright.machine.isa import Edge, Isa
from tilewright.micro.kernel import CACHE_LINE
from tilewright.micro.transpose import transpose
from tilewright.spec.dtype import DType

#: Bytes of one 64-bit offset.
OFFSET_BYTES = 8


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


def square_function(module: Module, dtype: DType, width: int) -> Callee:
    """square(to, to_step, from, lanes): `width` depths of `width` lanes, turned in registers.

    Lane l starts lanes[l] bytes behind `from`; depth p goes to `to` + p · to_step bytes. One function
    serves every place that turns squares: its shuffles are the longest straight code of a module.
    """
    name = f"square_{dtype}_{width}"
    known = module.find(name)
    if known is not None:
        return known
    arguments = [("to", POINTER), ("to_step", INT64), ("from", POINTER), ("lanes", POINTER)]
    f = module.define(name, VOID, arguments)
    g, kind, size = f.arguments, vector_type(dtype, width), dtype.size
    rows = []
    for lane in range(width):
        offset = f.load(INT64, f.at(g["lanes"], lane * OFFSET_BYTES), OFFSET_BYTES)
        rows.append(f.load(kind, f.at(g["from"], offset), size))
    for p, column in enumerate(transpose(f, rows)):
        f.store(column, f.at(g["to"], f.mul(g["to_step"], p)), size)
    f.ret()
    return f.callee


class PackKernel:
    """pack(destination, source, lane stride, depth stride, lanes, depth); strides in elements."""

    def __init__(self, isa: Isa, dtype: DType, panel: int) -> None:
        self.isa, self.dtype, self.panel = isa, dtype, panel
        self.element = element_type(dtype)
        self.chunks = chunks(panel, isa.lanes(dtype))

    @property
    def name(self) -> str:
        """The function's name in a module."""
        return f"pack_{self.dtype}_{self.panel}"

    def emit(self, module: Module) -> Callee:
        """Defines the function in a module; the value to call."""
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
        lanes, size = f.arguments["lanes"], self.dtype.size
        lane_bytes, depth_bytes = (f.mul(f.arguments[name], size) for name in ("lane_stride", "depth_stride"))
        panel_bytes = f.mul(f.arguments["depth"], self.panel * size)
        state = [f.arguments["destination"], f.arguments["source"]]
        with f.carried_loop(int64(0), lanes, int64(self.panel), state, "panel") as (first, values, advance):
            destination, source = values
            left = f.sub(lanes, first)
            self._emit_panel(f, destination, source, left, (lane_bytes, depth_bytes))
            advance((f.at(destination, panel_bytes), f.at(source, f.mul(lane_bytes, self.panel))))
        f.ret()
        return f.callee

    def _emit_panel(
        self, f: Function, destination: Value, source: Value, left: Value, strides: tuple[Value, Value]
    ) -> None:
        """One micro-panel by the first way that fits its strides and the lanes that are left."""
        lane_bytes, depth_bytes = strides
        depth = f.arguments["depth"]
        whole = f.compare(">=", left, self.panel)
        lanes_adjacent = f.compare("==", f.arguments["lane_stride"], 1)
        depths_adjacent = f.compare("==", f.arguments["depth_stride"], 1)
        wide = f.compare(">=", depth, max(width for _, width in self.chunks))
        transposing = f.both(depths_adjacent, wide)
        with f.branch(f.both(lanes_adjacent, whole)) as (then, otherwise):
            with then:
                self._copy(f, destination, source, depth_bytes, None)
            with otherwise, f.branch(transposing) as (then_transpose, otherwise_any):
                with then_transpose:
                    self._transpose(f, destination, source, lane_bytes, left)
                with otherwise_any:
                    if self.isa.edge is Edge.SPILL:
                        self._any(f, destination, source, strides, left)
                    else:
                        with f.branch(lanes_adjacent) as (then_masked, otherwise_scalar):
                            with then_masked:
                                self._copy(f, destination, source, depth_bytes, left)
                            with otherwise_scalar:
                                self._any(f, destination, source, strides, left)

    def _copy(
        self, f: Function, destination: Value, source: Value, depth_bytes: Value, left: Value | None
    ) -> None:
        """Adjacent lanes: one run of the panel's width per depth; missing lanes repeat the last one."""
        size = self.dtype.size
        masks = {
            start: None if left is None else f.first_lanes(f.minimum(left, int64(self.panel)), start, width)
            for start, width in self.chunks
        }
        last = int64(0) if left is None else f.mul(f.sub(f.minimum(left, int64(self.panel)), 1), size)
        state = [destination, source]
        with f.carried_loop(int64(0), f.arguments["depth"], int64(1), state, "copy") as (_, values, advance):
            to, at = values
            for start, width in self.chunks:
                kind, pointer = vector_type(self.dtype, width), f.at(at, start * size)
                mask = masks[start]
                value = (
                    f.load(kind, pointer, size)
                    if mask is None
                    else f.masked_load(
                        kind, pointer, mask, size, f.splat(f.load(self.element, f.at(at, last), size), width)
                    )
                )
                f.store(value, f.at(to, start * size), size)
            advance((f.at(to, self.panel * size), f.at(at, depth_bytes)))

    def _transpose(
        self, f: Function, destination: Value, source: Value, lane_bytes: Value, left: Value
    ) -> None:
        """Adjacent depths: squares transposed in registers.

        The last square overlaps the one before it where the depth is not a multiple of its width, so
        that nothing behind the rows is read. Missing lanes repeat the last row.
        """
        size, depth = self.dtype.size, f.arguments["depth"]
        last = f.sub(left, 1)
        for width in dict.fromkeys(width for _, width in self.chunks):
            starts = [start for start, chunk in self.chunks if chunk == width]
            square = square_function(f.module, self.dtype, width)
            offsets = f.stack(INT64, width, CACHE_LINE)
            final = f.sub(depth, width)
            with f.loop(int64(starts[0]), int64(starts[-1] + width), int64(width), "chunk") as start:
                for lane in range(width):
                    offset = f.mul(f.minimum(f.add(start, lane), last), lane_bytes)
                    f.store(offset, f.at(offsets, lane * OFFSET_BYTES), OFFSET_BYTES)
                to_chunk = f.at(destination, f.mul(start, size))
                with f.loop(int64(0), depth, int64(width), "square") as position:
                    at = f.minimum(position, final)
                    to = f.at(to_chunk, f.mul(at, self.panel * size))
                    f.call(square, [to, int64(self.panel * size), f.at(source, f.mul(at, size)), offsets])

    def _any(
        self, f: Function, destination: Value, source: Value, strides: tuple[Value, Value], left: Value
    ) -> None:
        """Any strides: element by element; missing lanes repeat the last one."""
        size = self.dtype.size
        lane_bytes, depth_bytes = strides
        last = f.sub(left, 1)
        with f.loop(int64(0), f.arguments["depth"], int64(1), "depth") as p:
            to, at = f.at(destination, f.mul(p, self.panel * size)), f.at(source, f.mul(p, depth_bytes))
            with f.loop(int64(0), int64(self.panel), int64(1), "lane") as lane:
                step = f.mul(f.minimum(lane, last), lane_bytes)
                f.store(f.load(self.element, f.at(at, step), size), f.at(to, f.mul(lane, size)), size)
