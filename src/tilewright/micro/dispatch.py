"""One register tile for sizes given at run time: a function that picks among straight-line tiles."""

from __future__ import annotations

from typing import NamedTuple

from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.values import INT64, POINTER, VOID, Type, Value, int64, zero
from tilewright.machine.isa import Edge
from tilewright.micro.kernel import CACHE_LINE, MicroKernel, Part, TileCall

#: Heights of the partial tiles: four rows of two vectors fill both FMA pipes for their whole latency, so
#: that more heights would gain little, and each costs 6 ms of the first call.
PARTIAL_HEIGHTS = (8, 4, 2, 1)


class Dispatch:
    """The functions of one tile in a module: one for each height, and the one that calls them.

    Parameters
    ----------
    kernel : the register tile.
    """

    def __init__(self, kernel: MicroKernel) -> None:
        self.kernel = kernel
        self.isa, self.dtype, self.tile, self.element = kernel.isa, kernel.dtype, kernel.tile, kernel.element

    @property
    def name(self) -> str:
        """The name of the dispatching function in a module."""
        suffix = "_packed" if self.kernel.adjacent_a else ""
        return f"tile_{self.dtype}_{self.tile.mr}x{self.tile.nr}{suffix}"

    def row_variants(self) -> tuple[int, ...]:
        """Heights of the straight-line tiles, tallest first; any height is a sum of them.

        >>> from tilewright.ir.nodes import Tile
        >>> from tilewright.machine.isa import AVX512
        >>> from tilewright.micro.vector import BroadcastFma
        >>> from tilewright.spec.dtype import F32
        >>> Dispatch(BroadcastFma(AVX512, F32, Tile(12, 32), adjacent_a=False)).row_variants()
        (12, 8, 4, 2, 1)
        """
        return (self.tile.mr, *(height for height in PARTIAL_HEIGHTS if height < self.tile.mr))

    def parts(self, rows: int) -> tuple[Part, ...]:
        """The column variants of one height, in the order they are tested."""
        whole = (Part(rows, (self.kernel.lanes,) * self.kernel.vectors, masked=False),)
        if self.isa.edge is Edge.SPILL:
            return whole
        counts = range(1, self.kernel.vectors + 1)
        masked = tuple(Part(rows, (self.kernel.lanes,) * vectors, masked=True) for vectors in counts)
        return (*(whole if rows == self.tile.mr else ()), *masked)

    def arguments(self, *sizes: str) -> list[tuple[str, Type]]:
        """The C signature of a tile function; strides are in elements."""
        return [
            *((name, INT64) for name in sizes),
            ("depth", INT64),
            ("a", POINTER),
            ("a_lane", INT64),
            ("a_depth", INT64),
            ("b", POINTER),
            ("b_depth", INT64),
            ("c", POINTER),
            ("c_row", INT64),
            *((("c_column", INT64),) if "rows" in sizes else ()),
            ("alpha", self.element),
            ("beta", self.element),
        ]

    def emit(self, module: Module) -> Callee:
        """Defines the functions of this tile in a module; the value to call."""
        known = module.find(self.name)
        if known is not None:
            return known
        heights = {rows: self._emit_height(module, rows) for rows in self.row_variants()}
        return self._emit_dispatch(module, heights)

    def _emit_height(self, module: Module, rows: int) -> Callee:
        """One function per height; inside, one loop per column variant."""
        f = module.define(f"{self.name}_{rows}", VOID, self.arguments("columns"))
        g = f.arguments
        call = TileCall(
            columns=g["columns"],
            depth=g["depth"],
            a=g["a"],
            a_lane=g["a_lane"],
            a_depth=g["a_depth"],
            b=g["b"],
            b_depth=g["b_depth"],
            c=g["c"],
            c_row=g["c_row"],
            alpha=g["alpha"],
            beta=g["beta"],
            prefetch=True,
        )
        parts = self.parts(rows)
        for part in parts[:-1]:
            limit = len(part.widths) * self.kernel.lanes
            relation = "<=" if part.masked else "=="
            with f.when(f.compare(relation, call.columns, limit)):
                self.kernel.emit_part(f, part, call)
                f.ret()
        self.kernel.emit_part(f, parts[-1], call)
        f.ret()
        return f.callee

    # --- the function that picks ------------------------------------------------------------

    def _emit_dispatch(self, module: Module, heights: dict[int, Callee]) -> Callee:
        """Covers rows × columns with the variants; columns that are not adjacent go through a buffer."""
        f = module.define(self.name, VOID, self.arguments("rows", "columns"))
        rows, columns = f.arguments["rows"], f.arguments["columns"]
        whole = f.compare("==", columns, self.tile.nr)
        adjacent = f.compare("==", f.arguments["c_column"], 1)
        full = f.both(f.compare("==", rows, self.tile.mr), f.both(whole, adjacent))
        with f.when(full):
            target = _Target.of(f)
            self._call(f, heights[self.tile.mr], target, int64(self.tile.nr), f.arguments["a"], target.c)
            f.ret()
        if self.isa.edge is Edge.SPILL:
            adjacent = f.both(adjacent, whole)
        with f.when(adjacent):
            self._cover(f, heights, _Target.of(f), columns)
            f.ret()
        self._spill(f, heights)
        f.ret()
        return f.callee

    def _cover(self, f: Function, heights: dict[int, Callee], target: _Target, columns: Value) -> None:
        """Calls the variants whose heights sum to the rows, tallest first."""
        size = self.dtype.size
        a_step = f.mul(f.arguments["a_lane"], size)
        c_step = f.mul(target.row, size)
        rows = f.arguments["rows"]
        state: list[Value] = [int64(0), f.arguments["a"], target.c]
        for height, callee in heights.items():
            end = f.add(rows, 1 - height)
            with f.carried_loop(state[0], end, int64(height), state, "height") as (_, values, advance):
                done, a, c = values
                self._call(f, callee, target, columns, a, c)
                advance((f.add(done, height), f.at(a, f.mul(a_step, height)), f.at(c, f.mul(c_step, height))))
            state = advance.results

    def _call(self, f: Function, callee: Callee, target: _Target, columns: Value, a: Value, c: Value) -> None:
        g = f.arguments
        walk = [g["depth"], a, g["a_lane"], g["a_depth"], g["b"], g["b_depth"]]
        f.call(callee, [columns, *walk, c, target.row, target.alpha, target.beta])

    def _spill(self, f: Function, heights: dict[int, Callee]) -> None:
        """The tile into a small buffer, then element by element into C with its two strides."""
        dtype, nr = self.dtype, self.tile.nr
        buffer = f.stack(self.element, self.tile.mr * nr, CACHE_LINE)
        columns = int64(nr) if self.isa.edge is Edge.SPILL else f.arguments["columns"]
        target = _Target(buffer, int64(nr), f.arguments["alpha"], zero(self.element))
        self._cover(f, heights, target, columns)
        beta = f.arguments["beta"]
        keep = f.differs(beta, zero(self.element))
        row_step, column_step = (f.mul(f.arguments[name], dtype.size) for name in ("c_row", "c_column"))
        with (
            f.loop(int64(0), f.arguments["rows"], int64(1), "row") as row,
            f.loop(int64(0), f.arguments["columns"], int64(1), "column") as column,
        ):
            at = f.add(f.mul(row, nr), column)
            value = f.load(self.element, f.at(buffer, f.mul(at, dtype.size)), dtype.size)
            pointer = f.at(f.at(f.arguments["c"], f.mul(row, row_step)), f.mul(column, column_step))
            with f.branch(keep) as (then, otherwise):
                with then:
                    old = f.load(self.element, pointer, dtype.size)
                    fused = self.isa.tile(dtype).fused
                    f.store(f.multiply_add(beta, old, value, fused=fused), pointer, dtype.size)
                with otherwise:
                    f.store(value, pointer, dtype.size)


class _Target(NamedTuple):
    """Where a tile goes: C itself, or the spill buffer."""

    c: Value
    row: Value
    alpha: Value
    beta: Value

    @classmethod
    def of(cls, f: Function) -> _Target:
        g = f.arguments
        return cls(g["c"], g["c_row"], g["alpha"], g["beta"])
