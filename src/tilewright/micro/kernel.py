"""The micro-kernel: one register tile of C over a run of depths, its edges and its store.

`MicroKernel` unrolls the tile, walks the depth, cuts edges and stores with alpha and beta; a
subclass says how one instruction multiplies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

from tilewright.ir.nodes import Tile
from tilewright.llvm.build import (
    INT64,
    POINTER,
    VOID,
    Callee,
    Function,
    Module,
    Type,
    Value,
    constant,
    element_type,
    int64,
    vector_type,
    zero,
)
from tilewright.machine.isa import Edge, Isa
from tilewright.spec.dtype import DType

#: C is prefetched when this many depths remain: 64 steps of 12 cycles cover a DRAM access (100 ns and
#: more), and few lines are evicted from L1 before their use. Prefetching at the start measured 2-4 %
#: slower at n = 4096, not at all 6 % (docs/decisions/001-prefetch-c-late.md).
PREFETCH_DEPTH = 64

#: Rows of the partial tiles come in multiples of this, then one by one: a quarter tile of two vectors
#: still fills both FMA pipes for their whole latency.
ROW_STEP = 4


#: Bytes between two prefetches; the smallest line of the catalogued CPUs.
CACHE_LINE = 64


class Part(NamedTuple):
    """One straight-line variant: rows × vectors, its columns masked or all present."""

    rows: int
    vectors: int
    masked: bool


class MicroKernel(ABC):
    """C[rows, columns] = alpha · A[rows, depth] · B[depth, columns] + beta · C.

    Parameters
    ----------
    isa, dtype : the row and the element type.
    tile : mr×nr.
    adjacent_a : the rows of A are adjacent in memory (packed), known at compile time.
    """

    def __init__(self, isa: Isa, dtype: DType, tile: Tile, *, adjacent_a: bool) -> None:
        self.isa, self.dtype, self.tile, self.adjacent_a = isa, dtype, tile, adjacent_a
        self.lanes = isa.lanes(dtype)
        self.vectors = tile.nr // self.lanes
        self.vector = vector_type(dtype, self.lanes)
        self.element = element_type(dtype)

    # --- what a subclass lowers -------------------------------------------------------------

    @abstractmethod
    def load_a(self, function: Function, pointer: Value, offsets: list[Value]) -> list[Value]:
        """The operand of A for each row, at one depth."""

    @abstractmethod
    def load_b(self, function: Function, pointer: Value, vector: int, mask: Value | None) -> Value:
        """One vector of B at one depth."""

    @abstractmethod
    def multiply(self, function: Function, a: Value, b: Value, acc: Value) -> Value:
        """acc + a · b."""

    # --- names and variants -----------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name of the dispatching function in a module."""
        suffix = "_packed" if self.adjacent_a else ""
        return f"tile_{self.dtype}_{self.tile.mr}x{self.tile.nr}{suffix}"

    def row_variants(self) -> tuple[int, ...]:
        """Heights of the straight-line tiles, tallest first; any height is a sum of distinct ones.

        >>> from tilewright.machine.isa import AVX512
        >>> from tilewright.micro.vector import BroadcastFma
        >>> from tilewright.spec.dtype import F32
        >>> BroadcastFma(AVX512, F32, Tile(12, 32), adjacent_a=False).row_variants()
        (12, 8, 4, 3, 2, 1)
        """
        mr = self.tile.mr
        steps = range((mr - 1) // ROW_STEP * ROW_STEP, 0, -ROW_STEP)
        small = range(min(mr - 1, ROW_STEP - 1), 0, -1)
        return tuple(dict.fromkeys((mr, *steps, *small)))

    def parts(self, rows: int) -> tuple[Part, ...]:
        """The column variants of one height, in the order they are tested."""
        whole = (Part(rows, self.vectors, masked=False),)
        if self.isa.edge is Edge.SPILL:
            return whole
        masked = tuple(Part(rows, vectors, masked=True) for vectors in range(1, self.vectors + 1))
        return (*(whole if rows == self.tile.mr else ()), *masked)

    # --- emission ---------------------------------------------------------------------------

    def emit(self, module: Module) -> Callee:
        """Defines the functions of this tile in a module; the value to call."""
        known = module.find(self.name)
        if known is not None:
            return known
        heights = {rows: self._emit_height(module, rows) for rows in self.row_variants()}
        return self._emit_dispatch(module, heights)

    def _emit_height(self, module: Module, rows: int) -> Callee:
        """One function per height; inside, one loop per column variant."""
        f = module.define(f"{self.name}_{rows}", VOID, self._arguments("columns"))
        columns = f.arguments["columns"]
        for part in self.parts(rows):
            if part == self.parts(rows)[-1]:
                self._emit_part(f, part)
                f.ret()
            else:
                limit = self.tile.nr if not part.masked else part.vectors * self.lanes
                relation = "<=" if part.masked else "=="
                with f.when(f.compare(relation, columns, limit)):
                    self._emit_part(f, part)
                    f.ret()
        return f.callee

    def _emit_part(self, f: Function, part: Part) -> None:
        size = self.dtype.size
        a_lane, a_depth = (f.mul(f.arguments[name], size) for name in ("a_lane", "a_depth"))
        b_depth = f.mul(f.arguments["b_depth"], size)
        offsets = self._row_offsets(f, a_lane, part.rows)
        masks: list[Value | None] = [None] * part.vectors
        if part.masked:
            last = part.vectors - 1
            masks[last] = f.first_lanes(f.arguments["columns"], last * self.lanes, self.lanes)
        count = part.rows * part.vectors
        state = [f.arguments["a"], f.arguments["b"], *([zero(self.vector)] * count)]

        def walk(begin: Value, end: Value, state: list[Value]) -> list[Value]:
            with f.carried_loop(begin, end, int64(1), state, "depth") as (_, values, advance):
                pointer_a, pointer_b, *acc = values
                vectors_b = [self.load_b(f, pointer_b, v, masks[v]) for v in range(part.vectors)]
                for row, a in enumerate(self.load_a(f, pointer_a, offsets)):
                    for v, b in enumerate(vectors_b):
                        index = row * part.vectors + v
                        acc[index] = self.multiply(f, a, b, acc[index])
                advance((f.at(pointer_a, a_depth), f.at(pointer_b, b_depth), *acc))
            return advance.results

        depth = f.arguments["depth"]
        if part.masked or part.rows < self.tile.mr:
            state = walk(int64(0), depth, state)
        else:
            before = f.maximum(f.sub(depth, PREFETCH_DEPTH), int64(0))
            with f.carried_loop(int64(0), int64(2), int64(1), state, "half") as (half, values, advance):
                first = f.compare("==", half, 0)
                begin = f.select(first, int64(0), before)
                end = f.select(first, before, depth)
                with f.when(f.negate(first)):
                    self._prefetch_c(f, part)
                advance(walk(begin, end, list(values)))
            state = advance.results
        self._store(f, part, state[2:], masks)

    def _row_offsets(self, f: Function, stride: Value, rows: int) -> list[Value]:
        """Byte offsets of the rows of A: opaque odd multiples of the stride, times 1, 2, 4 or 8.

        x86 scales an index register for free, so 12 rows need 7 registers and no additions in the
        loop; LLVM alone would walk the rows by a chain of 12 dependent additions.
        """
        if self.adjacent_a:
            return [int64(row * self.dtype.size) for row in range(rows)]
        offsets: dict[int, Value] = {0: int64(0)}
        for row in range(1, rows):
            shift = min((row & -row).bit_length() - 1, 3)
            odd = row >> shift
            if shift:
                offsets[row] = f.shift_left(offsets[odd], int64(shift))
            else:
                offsets[row] = f.opaque(f.mul(stride, row))
        return [offsets[row] for row in range(rows)]

    def _prefetch_c(self, f: Function, part: Part) -> None:
        row_bytes = f.mul(f.arguments["c_row"], self.dtype.size)
        for row in range(part.rows):
            start = f.at(f.arguments["c"], f.mul(row_bytes, row))
            for line in range(0, self.tile.nr * self.dtype.size, CACHE_LINE):
                f.prefetch(f.at(start, line), write=True, locality=3)

    def _store(self, f: Function, part: Part, acc: list[Value], masks: list[Value | None]) -> None:
        """C = alpha · acc + beta · C; C is not read when beta is 0, alpha not used when depth is 0."""
        size = self.dtype.size
        empty = f.compare("==", f.arguments["depth"], 0)
        alpha = f.select(empty, constant(self.dtype, 1.0), f.arguments["alpha"])
        alphas = f.splat(alpha, self.lanes)
        betas = f.splat(f.arguments["beta"], self.lanes)
        row_bytes = f.mul(f.arguments["c_row"], size)
        keep = f.differs(f.arguments["beta"], zero(self.element))

        fused = self.isa.tile(self.dtype).fused

        def each(store: Callable[[Value, Value, int], None]) -> None:
            for row in range(part.rows):
                start = f.at(f.arguments["c"], f.mul(row_bytes, row))
                for v in range(part.vectors):
                    value = f.float_multiply(acc[row * part.vectors + v], alphas)
                    store(value, f.at(start, v * self.lanes * size), v)

        def replace(value: Value, pointer: Value, _: int) -> None:
            f.store(value, pointer, size)

        def update(value: Value, pointer: Value, _: int) -> None:
            old = f.load(self.vector, pointer, size)
            f.store(f.multiply_add(betas, old, value, fused=fused), pointer, size)

        def masked(value: Value, pointer: Value, v: int) -> None:
            # A mask that beta = 0 empties replaces the branch: half the code, and C stays unread.
            old = f.masked_load(self.vector, pointer, reads[v], size)
            sum_ = f.multiply_add(betas, old, value, fused=fused)
            f.masked_store(f.select(kept, sum_, value), pointer, writes[v], size)

        if part.masked:
            kept = f.splat(keep, self.lanes)
            everything = f.first_lanes(int64(self.lanes), 0, self.lanes)
            writes = [everything if mask is None else mask for mask in masks]
            reads = [f.both(kept, mask) for mask in writes]
            each(masked)
            return
        with f.branch(keep) as (then, otherwise):
            with then:
                each(update)
            with otherwise:
                each(replace)

    def _arguments(self, *sizes: str) -> list[tuple[str, Type]]:
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

    # --- the function that picks ------------------------------------------------------------

    def _emit_dispatch(self, module: Module, heights: dict[int, Callee]) -> Callee:
        """Covers rows × columns with the variants; columns that are not adjacent go through a buffer."""
        f = module.define(self.name, VOID, self._arguments("rows", "columns"))
        rows, columns = f.arguments["rows"], f.arguments["columns"]
        whole = f.compare("==", columns, self.tile.nr)
        adjacent = f.compare("==", f.arguments["c_column"], 1)
        full = f.both(f.compare("==", rows, self.tile.mr), f.both(whole, adjacent))
        with f.when(full):
            self._cover(f, {self.tile.mr: heights[self.tile.mr]}, _Target.of(f), int64(self.tile.nr))
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
        if len(heights) == 1:
            (whole,) = heights.values()
            self._call(f, whole, target, columns, f.arguments["a"], target.c)
            return
        size = self.dtype.size
        a_step = f.mul(f.arguments["a_lane"], size)
        c_step = f.mul(target.row, size)
        left, a, c = f.arguments["rows"], f.arguments["a"], target.c
        for height, callee in heights.items():
            fits = f.compare(">=", left, height)
            with f.when(fits):
                self._call(f, callee, target, columns, a, c)
            taken = f.select(fits, int64(height), int64(0))
            left = f.sub(left, taken)
            a = f.at(a, f.mul(a_step, taken))
            c = f.at(c, f.mul(c_step, taken))

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
