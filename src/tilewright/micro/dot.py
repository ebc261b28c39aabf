"""Dot products: a few rows of A times one vector, both contiguous along the depth."""

from __future__ import annotations

from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.values import (
    INT64,
    POINTER,
    VOID,
    Value,
    element_type,
    int64,
    vector_type,
    zero,
)
from tilewright.machine.isa import Edge, Isa
from tilewright.micro.epilogue import Factors, store_sums
from tilewright.micro.kernel import CACHE_LINE
from tilewright.spec.dtype import DType

#: Independent sums of one row: with two loads a multiply-add these cover its latency of 4 to 5 cycles.
SUMS = 4

#: Rows side by side: they share the loads of the vector, and two streams of memory are prefetched best.
ROWS = 2

#: How far ahead each row is fetched, in bytes: the hardware starts anew at every row (measured: 10 %
#: of the bandwidth where rows do not start on cache lines, nothing where they do).
PREFETCH_BYTES = 512


class DotKernel:
    """c[i] = alpha · Σ A[i, p] · b[p] + beta · c[i].

    The sum of a row is the same whatever the number of rows: `SUMS` vectors of partial sums, filled in
    turn; the vectors that do not fill a turn go to the first; the last lanes under a mask, or one by
    one where the row has none; then the partial sums pairwise, then their lanes pairwise.
    """

    def __init__(self, isa: Isa, dtype: DType) -> None:
        self.isa, self.dtype = isa, dtype
        self.lanes, self.element = isa.lanes(dtype), element_type(dtype)
        self.fused = isa.tile(dtype).fused

    @property
    def name(self) -> str:
        """The function's name in a module."""
        return f"dot_{self.dtype}"

    def emit(self, module: Module) -> Callee:
        """Defines the function in a module; the value to call."""
        known = module.find(self.name)
        if known is not None:
            return known
        arguments = [
            ("rows", INT64),
            ("depth", INT64),
            ("a", POINTER),
            ("a_row", INT64),
            ("b", POINTER),
            ("c", POINTER),
            ("c_row", INT64),
            ("alpha", self.element),
            ("beta", self.element),
        ]
        f = module.define(self.name, VOID, arguments)
        g = f.arguments
        a_bytes, c_bytes = f.mul(g["a_row"], self.dtype.size), f.mul(g["c_row"], self.dtype.size)
        state: tuple[Value, ...] = (int64(0), g["a"], g["c"])
        for height in (ROWS, 1):
            done, a, c = state
            last = f.add(g["rows"], 1 - height)
            with f.carried_loop(done, last, int64(height), state, "rows") as (_, values, advance):
                done, a, c = values
                self._rows(f, height, (a, a_bytes), (c, c_bytes))
                moved = (
                    f.add(done, height),
                    f.at(a, f.mul(a_bytes, height)),
                    f.at(c, f.mul(c_bytes, height)),
                )
                advance(moved)
            state = tuple(advance.results)
        f.ret()
        return f.callee

    def _rows(self, f: Function, height: int, a: tuple[Value, Value], c: tuple[Value, Value]) -> None:
        """The dot products of `height` rows."""
        g, size = f.arguments, self.dtype.size
        rows = [f.at(a[0], f.mul(a[1], row)) for row in range(height)]
        kind = vector_type(self.dtype, self.lanes)
        turn, vector = self.lanes * SUMS, self.lanes * size
        sums = [zero(kind) for _ in range(height * SUMS)]
        begin = int64(0)
        for step, used in ((turn, SUMS), (self.lanes, 1)):
            end = f.add(g["depth"], 1 - step)
            state = [begin, *sums]
            with f.carried_loop(begin, end, int64(step), state, "depth") as (p, values, advance):
                following = list(values[1:])
                offset = f.mul(p, size)
                for part in range(used):
                    b = f.load(kind, f.at(f.at(g["b"], offset), part * vector), size)
                    for row, pointer in enumerate(rows):
                        at = f.at(f.at(pointer, offset), part * vector)
                        if used > 1 and part * vector % CACHE_LINE == 0:
                            f.prefetch(f.at(at, PREFETCH_BYTES), write=False, locality=3)
                        place = row * SUMS + part
                        following[place] = self._add(f, f.load(kind, at, size), b, following[place])
                advance((f.add(p, step), *following))
            begin, *sums = advance.results
        totals = self._tail(f, rows, begin, [sums[row * SUMS : (row + 1) * SUMS] for row in range(height)])
        places = [f.at(c[0], f.mul(c[1], row)) for row in range(height)]
        factors = Factors.of_depth(f, self.dtype)
        store_sums(f, factors, totals, places, size, fused=self.fused)

    def _tail(self, f: Function, rows: list[Value], begin: Value, sums: list[list[Value]]) -> list[Value]:
        """The last depths, fewer than a vector, and the sum over lanes."""
        g, size = f.arguments, self.dtype.size
        offset = f.mul(begin, size)
        if self.isa.edge is Edge.MASK:
            kind = vector_type(self.dtype, self.lanes)
            mask = f.first_lanes(f.sub(g["depth"], begin), 0, self.lanes)
            b = f.masked_load(kind, f.at(g["b"], offset), mask, size)
            for pointer, parts in zip(rows, sums, strict=True):
                a = f.masked_load(kind, f.at(pointer, offset), mask, size)
                parts[0] = self._add(f, a, b, parts[0])
            return [self._over_lanes(f, parts) for parts in sums]
        totals = [self._over_lanes(f, parts) for parts in sums]
        with f.carried_loop(begin, g["depth"], int64(1), totals, "tail") as (p, values, advance):
            at = f.mul(p, size)
            b = f.load(self.element, f.at(g["b"], at), size)
            advance(
                [
                    self._add(f, f.load(self.element, f.at(pointer, at), size), b, total)
                    for pointer, total in zip(rows, values, strict=True)
                ]
            )
        return advance.results

    def _add(self, f: Function, a: Value, b: Value, total: Value) -> Value:
        return f.multiply_add(a, b, total, fused=self.fused)

    def _over_lanes(self, f: Function, parts: list[Value]) -> Value:
        """The sum of all lanes of some vectors, pairwise."""
        while len(parts) > 1:
            parts = [f.float_add(left, right) for left, right in zip(parts[::2], parts[1::2], strict=True)]
        (total,) = parts
        lanes = self.lanes
        while lanes > 1:
            lanes //= 2
            low, high = (f.shuffle(total, total, range(start, start + lanes)) for start in (0, lanes))
            total = f.float_add(low, high)
        return f.extract(total, 0)
