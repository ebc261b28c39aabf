"""One row of A times columns of B that are contiguous along the depth: squares transposed on the way."""

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
from tilewright.machine.isa import Edge, Isa
from tilewright.micro.kernel import CACHE_LINE
from tilewright.micro.transpose import transpose
from tilewright.spec.dtype import DType


class TurnedKernel:
    """c[j] = alpha · Σ a[p] · B[p, j] + beta · c[j] for as many columns as a vector has lanes.

    The sum of a column goes depth by depth, as in every other tile. So lanes are columns, and a square
    of B, read along the depth, is transposed in registers. As many rows of memory as there are lanes
    are read side by side, more than prefetchers follow: while one run of a square's depths is computed,
    the next run is fetched row after row.
    """

    def __init__(self, isa: Isa, dtype: DType) -> None:
        self.isa, self.dtype = isa, dtype
        self.lanes, self.element = isa.lanes(dtype), element_type(dtype)
        self.kind = vector_type(dtype, self.lanes)
        self.fused = isa.tile(dtype).fused

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
        g, size = f.arguments, self.dtype.size
        column = f.mul(g["b_column"], size)
        steps = [f.opaque(f.mul(column, lane)) for lane in range(self.lanes)]
        run = self.lanes * self.lanes  # depths of one run: one row is fetched with each square
        state: list[Value] = [int64(0), zero(self.kind)]
        end = f.add(g["depth"], 1 - self.lanes)
        with f.carried_loop(int64(0), end, int64(run), state, "run") as (first, values, advance):
            more = f.compare("<", f.add(first, run), g["depth"])
            here = f.at(g["b"], f.mul(first, size))
            following = f.at(g["b"], f.mul(column, self.lanes))  # the next columns, or the next depths
            ahead = f.select(more, f.at(here, run * size), following)
            stop = f.minimum(f.add(first, run), end)
            inner = [*values, ahead]
            with f.carried_loop(first, stop, int64(self.lanes), inner, "square") as (
                p,
                state_in,
                next_square,
            ):
                _, total, ahead = state_in
                for line in range(0, run * size // self.lanes, CACHE_LINE):
                    f.prefetch(f.at(ahead, line), write=False, locality=3)
                at = f.at(g["b"], f.mul(p, size))
                square = transpose(f, [f.load(self.kind, f.at(at, step), size) for step in steps])
                for lane, vector in enumerate(square):
                    total = self._add(f, f.add(p, lane), vector, total)
                next_square((f.add(p, self.lanes), total, f.at(ahead, column)))
            advance(next_square.results[:2])
        done, total = advance.results
        self._store(f, self._tail(f, steps, done, total))
        f.ret()
        return f.callee

    def _add(self, f: Function, p: Value, vector: Value, total: Value) -> Value:
        g, size = f.arguments, self.dtype.size
        at = f.at(g["a"], f.mul(f.mul(p, g["a_depth"]), size))
        a = f.splat(f.load(self.element, at, size), self.lanes)
        return f.multiply_add(a, vector, total, fused=self.fused)

    def _tail(self, f: Function, steps: list[Value], done: Value, total: Value) -> Value:
        """The last depths, fewer than a square has: transposed into a small buffer, then added in order."""
        g, size, lanes = f.arguments, self.dtype.size, self.lanes
        square = f.stack(self.element, lanes * lanes, CACHE_LINE)
        at = f.at(g["b"], f.mul(done, size))
        left = f.sub(g["depth"], done)
        with f.when(f.compare(">", left, 0)):
            if self.isa.edge is Edge.MASK:
                mask = f.first_lanes(left, 0, lanes)
                rows = [f.masked_load(self.kind, f.at(at, step), mask, size) for step in steps]
                for p, vector in enumerate(transpose(f, rows)):
                    f.store(vector, f.at(square, p * lanes * size), size)
            else:
                with f.loop(int64(0), left, int64(1), "depth") as depth:
                    to, source = f.at(square, f.mul(depth, lanes * size)), f.at(at, f.mul(depth, size))
                    for lane, step in enumerate(steps):
                        value = f.load(self.element, f.at(source, step), size)
                        f.store(value, f.at(to, lane * size), size)
        with f.carried_loop(int64(0), left, int64(1), [total], "tail") as (depth, values, advance):
            vector = f.load(self.kind, f.at(square, f.mul(depth, lanes * size)), size)
            advance([self._add(f, f.add(done, depth), vector, values[0])])
        return advance.results[0]

    def _store(self, f: Function, total: Value) -> None:
        """c = alpha · total + beta · c; alpha is not used when the depth is 0, c not read when beta is."""
        g, size = f.arguments, self.dtype.size
        empty = f.compare("==", g["depth"], 0)
        alpha = f.splat(f.select(empty, constant(self.dtype, 1.0), g["alpha"]), self.lanes)
        beta = f.splat(g["beta"], self.lanes)
        value = f.float_multiply(total, alpha)
        with f.once_if(f.differs(g["beta"], zero(self.element)), (value,)) as (values, advance):
            old = f.load(self.kind, g["c"], size)
            advance((f.multiply_add(beta, old, values[0], fused=self.fused),))
        f.store(advance.results[0], g["c"], size)
