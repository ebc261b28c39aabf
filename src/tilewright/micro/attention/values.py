"""Weighted sums of rows of values that are read in place, for few queries."""

from __future__ import annotations

from typing import NamedTuple

from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.floats import Floats
from tilewright.llvm.values import (
    INT1,
    INT32,
    INT64,
    POINTER,
    VOID,
    Type,
    Value,
    element_type,
    int64,
    memory_type,
    vector_of,
    zero,
)
from tilewright.machine.isa import Isa
from tilewright.micro.attention.stream import Stream, heights, widen
from tilewright.micro.calls import Operands, value, window
from tilewright.micro.packing.transpose import PART_BITS
from tilewright.spec.dtype import DType

_INT16 = Type("i16", "i16")


class _Tile(NamedTuple):
    """The operands of one tile: rows of weights and of sums, a row of values, its first column and width."""

    p: list[Value]
    o: list[Value]
    v: Value
    column: int
    vectors: int


class ValuesKernel:
    """values(rows, keys, p, p_row, v, v_row, o, o_row, next, next_row): o[r, :] += Σ_j p[r, j] · v[j, :].

    Vectors run along the values. A tile keeps the sums of some rows and as many columns as there are
    accumulators; rows of values are read in pairs and interleaved where products of pairs are added.
    Values whose weight is 0 do not count, whatever they are: a row of a tile in which a NaN appears is
    computed once more, without them. Rows of o have whole vectors. While the first rows and columns are
    computed, row j of `next` is fetched with value j.

    Parameters
    ----------
    isa : the row.
    p : element type of the weights.
    v : that of the values.
    acc : that of the sums.
    columns : elements of a value.
    """

    def __init__(self, isa: Isa, p: DType, v: DType, acc: DType, columns: int) -> None:
        self.stream = Stream(isa, p, v, acc, columns)

    @property
    def name(self) -> str:
        """The function's name in a module."""
        return f"values_{self.stream.name}"

    def emit(self, module: Module) -> Callee:
        """Defines the function in a module; returns the function to call."""
        known = module.find(self.name)
        if known is not None:
            return known
        careful = self._emit_careful(module)
        f = module.define(self.name, VOID, _ARGUMENTS)
        g, stream = f.arguments, self.stream
        p_bytes = f.mul(g["p_row"], stream.operand.size)
        o_bytes = f.mul(g["o_row"], stream.acc.size)
        for height, begin, end in heights(f, g["rows"]):
            across = max(1, stream.accumulators // (height * stream.pairs))
            with f.loop(begin, end, int64(height), "rows") as row:
                rows = [f.add(row, one) for one in range(height)]
                p = [f.at(g["p"], f.mul(one, p_bytes)) for one in rows]
                o = [f.at(g["o"], f.mul(one, o_bytes)) for one in rows]
                step = across * stream.width
                for first in range(0, stream.columns, step):
                    vectors = min(across, -(-(stream.columns - first) // stream.width))
                    tile = _Tile(p, o, g["v"], first, vectors)
                    if first:
                        self._tile(f, tile, careful, fetch=False)
                        continue
                    with f.branch(f.icmp("==", row, int64(0))) as (fetching, otherwise):
                        with fetching:
                            self._tile(f, tile, careful, fetch=True)
                        with otherwise:
                            self._tile(f, tile, careful, fetch=False)
        f.ret()
        return f.callee

    def _tile(self, f: Function, tile: _Tile, careful: Callee, *, fetch: bool) -> None:
        """All values for some rows and columns."""
        g, stream = f.arguments, self.stream
        pairs, size = stream.pairs, stream.operand.size
        v_bytes = f.mul(g["v_row"], stream.stored.size)
        next_bytes = f.mul(g["next_row"], stream.stored.size)
        sums = [zero(stream.kind)] * (len(tile.p) * tile.vectors * pairs)
        state = [int64(0), tile.v, g["next"], *sums]
        word = stream.word()
        whole = f.add(g["keys"], 1 - pairs)
        with f.carried_loop(int64(0), whole, int64(pairs), state, "values") as (key, values, advance):
            _, v, following, *sums = values
            rows = [f.at(v, f.mul(v_bytes, one)) for one in range(pairs)]
            if fetch:
                for one in range(pairs):
                    stream.prefetch(f, f.at(following, f.mul(next_bytes, one)))
            weights = [f.load(word, f.at(p, f.mul(key, size)), size) for p in tile.p]
            sums = self._add(f, tile, rows, weights, sums)
            moved = [f.at(v, f.mul(v_bytes, pairs)), f.at(following, f.mul(next_bytes, pairs))]
            advance([f.add(key, pairs), *moved, *sums])
        done, v, _, *sums = advance.results
        if pairs == 2:
            with f.once_if(f.icmp("<", done, g["keys"]), sums) as (values, change):
                weights = [f.zext(f.load(_INT16, f.at(p, f.mul(done, size)), size), word) for p in tile.p]
                change(self._add(f, tile, [v], weights, list(values)))
            sums = change.results
        self._finish(f, tile, sums, careful)

    def _add(
        self, f: Function, tile: _Tile, rows: list[Value], weights: list[Value], sums: list[Value]
    ) -> list[Value]:
        """One value, or a pair of them, times the weights of each row."""
        stream, after = self.stream, list(sums)
        spread = [f.splat(weight, stream.lanes) for weight in weights]
        per_row = tile.vectors * stream.pairs
        for vector in range(tile.vectors):
            first = tile.column + vector * stream.width
            loaded = [stream.load(f, row, first) for row in rows]
            if stream.pairs == 2:
                loaded = loaded if len(loaded) == 2 else [*loaded, zero(loaded[0].type)]
                operands = [f.bitcast(one, vector_of(INT32, stream.lanes)) for one in _zipped(f, *loaded)]
            else:
                operands = [stream.operands(f, loaded[0])]
            for part, operand in enumerate(operands):
                for row, weight in enumerate(spread):
                    place = row * per_row + vector * stream.pairs + part
                    after[place] = stream.multiply(f, weight, operand, after[place])
        return after

    def _finish(self, f: Function, tile: _Tile, sums: list[Value], careful: Callee) -> None:
        """Adds the sums to o; those of a row that has a NaN are computed again, with care."""
        g, stream = f.arguments, self.stream
        per_row = tile.vectors * stream.pairs
        floats = Floats(f, stream.acc, stream.kind, fused=stream.isa.fused)
        columns = min(tile.vectors * stream.width, stream.columns - tile.column)
        for row, (p, o) in enumerate(zip(tile.p, tile.o, strict=True)):
            own = sums[row * per_row : (row + 1) * per_row]
            place = f.at(o, tile.column * stream.acc.size)
            with f.branch(f.not_(_any_nan(f, own))) as (numbers, otherwise):
                with numbers:
                    for vector in range(tile.vectors):
                        part = own[vector * stream.pairs : (vector + 1) * stream.pairs]
                        ordered = part if stream.pairs == 1 else _unzipped(f, *part)
                        for number, value in enumerate(ordered):
                            offset = (vector * stream.width + number * stream.lanes) * stream.acc.size
                            at = f.at(place, offset)
                            total = floats.add(f.load(stream.kind, at, stream.acc.size), value)
                            f.store(total, at, stream.acc.size)
                with otherwise:
                    v = f.at(tile.v, tile.column * stream.stored.size)
                    f.call(careful, [g["keys"], int64(columns), p, v, g["v_row"], place])

    def _emit_careful(self, module: Module) -> Callee:
        """careful(keys, columns, p, v, v_row, o): one row, element by element; nothing where p is 0."""
        stream = self.stream
        names = [("keys", INT64), ("columns", INT64), ("p", POINTER), ("v", POINTER), ("v_row", INT64)]
        f = module.define(f"{self.name}_careful", VOID, [*names, ("o", POINTER)])
        g, acc = f.arguments, stream.acc
        v_bytes = f.mul(g["v_row"], stream.stored.size)
        with f.loop(int64(0), g["keys"], int64(1), "key") as key:
            weight = self._element(f, f.at(g["p"], f.mul(key, stream.operand.size)), stream.operand)
            row = f.at(g["v"], f.mul(key, v_bytes))
            with (
                f.when(f.not_equal(weight, zero(weight.type))),
                f.loop(int64(0), g["columns"], int64(1), "column") as column,
            ):
                value = self._element(f, f.at(row, f.mul(column, stream.stored.size)), stream.stored)
                at = f.at(g["o"], f.mul(column, acc.size))
                total = f.load(element_type(acc), at, acc.size)
                f.store(f.multiply_add(weight, value, total, fused=stream.isa.fused), at, acc.size)
        f.ret()
        return f.callee

    def _element(self, f: Function, place: Value, dtype: DType) -> Value:
        value = f.load(memory_type(dtype), place, dtype.size)
        return widen(f, self.stream.isa, value, dtype, self.stream.acc)


def _any_nan(f: Function, vectors: list[Value]) -> Value:
    """Whether any lane of some vectors is NaN; one comparison looks at two of them."""
    kind = vector_of(INT1, vectors[0].type.lanes)
    tests = [
        f.emit(kind, f"fcmp uno {vectors[first].typed}, {vectors[min(first + 1, len(vectors) - 1)].text}")
        for first in range(0, len(vectors), 2)
    ]
    found = tests[0]
    for test in tests[1:]:
        found = f.or_(found, test)
    bits = Type(f"i{kind.lanes}", f"i{kind.lanes}")
    return f.icmp("!=", f.bitcast(found, bits), 0)


def _zipped(f: Function, even: Value, odd: Value) -> tuple[Value, Value]:
    """Pairs of elements of two vectors: in each 128 bits the lower ones, and the upper ones."""
    lanes = even.type.lanes
    part = min(lanes, PART_BITS // 16)
    low, high = [], []
    for start in range(0, lanes, part):
        mixed = [side + lane for lane in range(start, start + part) for side in (0, lanes)]
        low += mixed[:part]
        high += mixed[part:]
    return f.shuffle(even, odd, low), f.shuffle(even, odd, high)


def _unzipped(f: Function, low: Value, high: Value) -> tuple[Value, Value]:
    """Sums of the columns that `_zipped` put into two vectors, in order."""
    lanes = low.type.lanes
    part = min(lanes, PART_BITS // 32)
    order = []
    for start in range(0, lanes, part):
        order += [*range(start, start + part), *range(lanes + start, lanes + start + part)]
    return f.shuffle(low, high, order[:lanes]), f.shuffle(low, high, order[lanes:])


def emit_sum_values(f: Function, isa: Isa, given: Operands) -> None:
    """Calls the function of a `SumValues`."""
    out, weights, values, fetched = (window(given, name) for name in ("out", "weights", "values", "fetched"))
    columns = value(given, "columns").known
    assert columns is not None, "verified"
    kernel = ValuesKernel(isa, weights.dtype, values.dtype, out.dtype, columns)
    places = [part for one in (weights, values, out, fetched) for part in (one.pointer, one.row)]
    f.call(kernel.emit(f.module), [value(given, "rows"), value(given, "keys"), *places])


_ARGUMENTS = [
    ("rows", INT64),
    ("keys", INT64),
    ("p", POINTER),
    ("p_row", INT64),
    ("v", POINTER),
    ("v_row", INT64),
    ("o", POINTER),
    ("o_row", INT64),
    ("next", POINTER),
    ("next_row", INT64),
]
