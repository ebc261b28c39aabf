"""Dot products: a few rows of A times one vector, both contiguous along the depth."""

from __future__ import annotations

from tilewright.ir.nodes import DOT_SUMS
from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.convert import Convert
from tilewright.llvm.values import (
    INT64,
    POINTER,
    VOID,
    Value,
    element_type,
    int64,
    memory_type,
    vector_of,
    vector_type,
    zero,
)
from tilewright.machine.isa import Edge, Isa
from tilewright.machine.machine import CACHE_LINE
from tilewright.micro.tiles.epilogue import Factors, store_sums
from tilewright.spec.dtype import DType

#: Rows computed together: they share the loads of the vector, and two streams are prefetched best.
ROWS = 2

#: Prefetch distance of each row in bytes: the hardware prefetcher restarts at every row (measured gain: 10 %
#: of the bandwidth if rows do not start on cache lines, none if they do).
PREFETCH_BYTES = 512


class DotKernel:
    """c[i] = alpha · Σ A[i, p] · b[p] + beta · c[i].

    The order of summation does not depend on the number of rows: `DOT_SUMS` vectors of partial sums in turn;
    the remaining whole vectors go to the first; then the last lanes, under a mask or, without masks, one by
    one; then the partial sums pairwise, then their lanes pairwise.

    Elements are converted to the type of the sums as they are loaded.

    Parameters
    ----------
    isa : the row.
    acc : element type of the sums.
    a, b, c : those of the operands in memory.
    """

    def __init__(self, isa: Isa, acc: DType, a: DType, b: DType, c: DType) -> None:
        self.isa, self.acc = isa, acc
        self.a, self.b, self.c = a, b, c
        self.lanes, self.element = isa.lanes(acc), element_type(acc)
        self.edge = isa.edge_of(a, b)

    @property
    def name(self) -> str:
        """The function's name in a module."""
        return f"dot_{self.a}_{self.b}_{self.c}"

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
        a_bytes, c_bytes = f.mul(g["a_row"], self.a.size), f.mul(g["c_row"], self.c.size)
        state: tuple[Value, ...] = (int64(0), g["a"], g["c"])
        for height in (1,) if module.quick else (ROWS, 1):
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
        g = f.arguments
        rows = [f.at(a[0], f.mul(a[1], row)) for row in range(height)]
        kind = vector_of(self.element, self.lanes)
        turn, vector_a = self.lanes * DOT_SUMS, self.lanes * self.a.size
        sums = [zero(kind) for _ in range(height * DOT_SUMS)]
        begin = int64(0)
        for step, used in ((turn, DOT_SUMS), (self.lanes, 1)):
            end = f.add(g["depth"], 1 - step)
            state = [begin, *sums]
            with f.carried_loop(begin, end, int64(step), state, "depth") as (p, values, advance):
                following = list(values[1:])
                for part in range(used):
                    place_b = f.at(f.at(g["b"], f.mul(p, self.b.size)), part * self.lanes * self.b.size)
                    b = self._load(f, self.b, place_b)
                    for row, pointer in enumerate(rows):
                        at = f.at(f.at(pointer, f.mul(p, self.a.size)), part * vector_a)
                        if used > 1 and part * vector_a % CACHE_LINE == 0:
                            f.prefetch(f.at(at, PREFETCH_BYTES), write=False, locality=3)
                        place = row * DOT_SUMS + part
                        following[place] = self._add(f, self._load(f, self.a, at), b, following[place])
                advance((f.add(p, step), *following))
            begin, *sums = advance.results
        totals = self._tail(
            f, rows, begin, [sums[row * DOT_SUMS : (row + 1) * DOT_SUMS] for row in range(height)]
        )
        places = [f.at(c[0], f.mul(c[1], row)) for row in range(height)]
        factors = Factors.of_depth(f, self.acc)
        store_sums(f, self.isa, factors, totals, places, (self.acc, self.c))

    def _load(self, f: Function, dtype: DType, pointer: Value, mask: Value | None = None) -> Value:
        """A vector of one operand, converted to the type of the sums."""
        kind = vector_type(dtype, self.lanes)
        if mask is None:
            value = f.load(kind, pointer, dtype.size)
        else:
            value = f.masked_load(kind, pointer, mask, dtype.size)
        return Convert(f, half=self.isa.half)(value, dtype, self.acc)

    def _element(self, f: Function, dtype: DType, pointer: Value) -> Value:
        value = f.load(memory_type(dtype), pointer, dtype.size)
        return Convert(f, half=self.isa.half)(value, dtype, self.acc)

    def _tail(self, f: Function, rows: list[Value], begin: Value, sums: list[list[Value]]) -> list[Value]:
        """The last depths, fewer than a vector, and the sum over lanes."""
        g = f.arguments
        if self.edge is Edge.MASK:
            mask = f.lane_mask(f.sub(g["depth"], begin), 0, self.lanes)
            b = self._load(f, self.b, f.at(g["b"], f.mul(begin, self.b.size)), mask)
            for pointer, parts in zip(rows, sums, strict=True):
                a = self._load(f, self.a, f.at(pointer, f.mul(begin, self.a.size)), mask)
                parts[0] = self._add(f, a, b, parts[0])
            return [self._over_lanes(f, parts) for parts in sums]
        totals = [self._over_lanes(f, parts) for parts in sums]
        with f.carried_loop(begin, g["depth"], int64(1), totals, "tail") as (p, values, advance):
            b = self._element(f, self.b, f.at(g["b"], f.mul(p, self.b.size)))
            places = [f.at(pointer, f.mul(p, self.a.size)) for pointer in rows]
            elements = [self._element(f, self.a, place) for place in places]
            advance([self._add(f, a, b, total) for a, total in zip(elements, values, strict=True)])
        return advance.results

    def _add(self, f: Function, a: Value, b: Value, total: Value) -> Value:
        return f.multiply_add(a, b, total, fused=self.isa.fused)

    def _over_lanes(self, f: Function, parts: list[Value]) -> Value:
        """The sum of all lanes of some vectors, pairwise."""
        while len(parts) > 1:
            parts = [f.plus(left, right) for left, right in zip(parts[::2], parts[1::2], strict=True)]
        (total,) = parts
        lanes = self.lanes
        while lanes > 1:
            lanes //= 2
            low, high = (f.shuffle(total, total, range(start, start + lanes)) for start in (0, lanes))
            total = f.plus(low, high)
        return f.extract(total, 0)
