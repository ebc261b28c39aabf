"""One row of A times columns of B that are contiguous along the depth, transposed in registers."""

from __future__ import annotations

from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.values import (
    INT64,
    POINTER,
    VOID,
    Value,
    constant,
    element_type,
    int64,
    vector_type,
    zero,
)
from tilewright.machine.isa import SUMS_OF_A_CHAIN, Isa
from tilewright.machine.machine import CACHE_LINE
from tilewright.micro.packing.squares import OFFSET_BYTES, square_function
from tilewright.micro.tiles.epilogue import Factors, store_sums
from tilewright.spec.dtype import DType

#: Depths of a square added per iteration.
UNROLLED_DEPTHS = 4


class TransposedBKernel:
    """c[j] = alpha · Σ a[p] · B[p, j] + beta · c[j] for as many columns as a vector has lanes.

    Each column is summed depth by depth, in chains as in every other tile. So lanes are columns, and a square
    of B, read along the depth, is transposed in registers. As many rows of memory as there are lanes are read
    at the same time, more streams than prefetchers follow: while one run of depths is computed, the next run
    is prefetched row by row. A, B, C and the sums have one type.
    """

    def __init__(self, isa: Isa, dtype: DType) -> None:
        self.isa, self.dtype = isa, dtype
        self.lanes, self.element = isa.lanes(dtype), element_type(dtype)
        self.kind = vector_type(dtype, self.lanes)

    @property
    def name(self) -> str:
        """The function's name in a module."""
        return f"turned_{self.dtype}"

    def emit(self, module: Module) -> Callee:
        """Defines the function in a module; the value to call."""
        known = module.find(self.name)
        if known is not None:
            return known
        arguments = [
            ("depth", INT64),
            ("a", POINTER),
            ("a_depth", INT64),
            ("b", POINTER),
            ("b_column", INT64),
            ("c", POINTER),
            ("alpha", self.element),
            ("beta", self.element),
        ]
        f = module.define(self.name, VOID, arguments)
        g, size, lanes = f.arguments, self.dtype.size, self.lanes
        square = square_function(module, self.dtype.bits, lanes)
        buffer, offsets = (
            f.alloca(self.element, lanes * lanes, CACHE_LINE),
            f.alloca(INT64, lanes, CACHE_LINE),
        )
        column = f.mul(g["b_column"], size)
        for lane in range(lanes):
            f.store(f.mul(column, lane), f.at(offsets, lane * OFFSET_BYTES), OFFSET_BYTES)
        run = lanes * lanes  # depths of one run: one row is fetched with each square
        nothing = f.splat(constant(self.dtype, -0.0), lanes)  # which leaves every number as it is
        state: list[Value] = [int64(0), zero(self.kind), nothing]
        end = f.add(g["depth"], 1 - lanes)
        with f.carried_loop(int64(0), end, int64(run), state, "run") as (first, values, advance):
            more = f.icmp("<", f.add(first, run), g["depth"])
            here = f.at(g["b"], f.mul(first, size))
            following = f.at(g["b"], f.mul(column, lanes))  # the next columns, or the next depths
            ahead = f.select(more, f.at(here, run * size), following)
            stop = f.minimum(f.add(first, run), end)
            inner = [*values, ahead]
            with f.carried_loop(first, stop, int64(lanes), inner, "square") as (p, given, next_square):
                _, total, closed, ahead = given
                total, closed = self._close(f, p, total, closed)
                for line in range(0, lanes * size * lanes, CACHE_LINE):
                    f.prefetch(f.at(ahead, line), write=False, locality=3)
                f.call(square, [buffer, int64(lanes * size), f.at(g["b"], f.mul(p, size)), offsets])
                total = self._add_square(f, buffer, p, total)
                next_square((f.add(p, lanes), total, closed, f.at(ahead, column)))
            advance(next_square.results[:3])
        total, closed = self._tail(f, buffer, *advance.results)
        total = f.plus(total, closed)
        factors = Factors.of_depth(f, self.dtype)
        store_sums(f, self.isa, factors, [total], [g["c"]], (self.dtype, self.dtype))
        f.ret()
        return f.callee

    def _close(self, f: Function, p: Value, total: Value, closed: Value) -> tuple[Value, Value]:
        """Sums that begin anew at depth p, and those of closed chains, if a chain ends there."""
        ends = f.and_(f.icmp(">", p, 0), f.icmp("==", f.and_(p, int64(SUMS_OF_A_CHAIN - 1)), 0))
        return f.select(ends, zero(self.kind), total), f.select(ends, f.plus(total, closed), closed)

    def _add_square(self, f: Function, buffer: Value, p: Value, total: Value) -> Value:
        """All depths of a square; the sum is one dependency chain, which a loop does not slow down."""
        row = self.lanes * self.dtype.size
        together = min(self.lanes, UNROLLED_DEPTHS)
        with f.carried_loop(int64(0), int64(self.lanes), int64(together), [total], "depth") as (
            depth,
            values,
            advance,
        ):
            (total,) = values
            for further in range(together):
                vector = f.load(self.kind, f.at(buffer, f.mul(f.add(depth, further), row)), self.dtype.size)
                total = self._add(f, f.add(p, f.add(depth, further)), vector, total)
            advance([total])
        return advance.results[0]

    def _add(self, f: Function, p: Value, vector: Value, total: Value) -> Value:
        g, size = f.arguments, self.dtype.size
        at = f.at(g["a"], f.mul(f.mul(p, g["a_depth"]), size))
        a = f.splat(f.load(self.element, at, size), self.lanes)
        return f.multiply_add(a, vector, total, fused=self.isa.fused)

    def _tail(
        self, f: Function, buffer: Value, done: Value, total: Value, closed: Value
    ) -> tuple[Value, Value]:
        """The last depths, fewer than a square has: lane by lane into the buffer, then added in order."""
        g, size = f.arguments, self.dtype.size
        state = [total, closed]
        with f.carried_loop(done, g["depth"], int64(1), state, "tail") as (p, values, advance):
            total, closed = self._close(f, p, *values)
            at = f.at(g["b"], f.mul(p, size))
            with f.loop(int64(0), int64(self.lanes), int64(1), "lane") as lane:
                step = f.mul(f.mul(lane, g["b_column"]), size)
                f.store(f.load(self.element, f.at(at, step), size), f.at(buffer, f.mul(lane, size)), size)
            advance([self._add(f, p, f.load(self.kind, buffer, size), total), closed])
        return advance.results[0], advance.results[1]
