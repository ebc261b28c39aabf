"""Scores of few queries: dot products with rows of keys that are read in place."""

from __future__ import annotations

from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.values import INT64, POINTER, VOID, Value, int64, vector_of, zero
from tilewright.machine.isa import Isa
from tilewright.micro.attention.stream import Stream, heights
from tilewright.micro.calls import Operands, value, window
from tilewright.micro.packing.transpose import PART_BITS
from tilewright.spec.dtype import DType


class KeysKernel:
    """keys(rows, keys, q, q_row, k, k_row, s, s_row, next, next_row): s[r, j] = Σ_p q[r, p] · k[j, p].

    Vectors run along the head. A tile is some rows by as many keys as there are accumulators; at its end
    the lanes of all accumulators are added by the exchanges of a transposition, so that each lane of the
    result is one score. The lanes of each score are added in one order, whatever the tile.

    Rows of q are padded with zeros to whole vectors. Scores are written for whole groups of keys: `s` has
    room for `stream.accumulators` more. While the first rows are computed, row j of `next` is fetched with
    key j.

    Parameters
    ----------
    isa : the row.
    q : element type of the packed queries.
    k : that of the keys.
    acc : that of the scores.
    depth : elements of a query and a key.
    """

    def __init__(self, isa: Isa, q: DType, k: DType, acc: DType, depth: int) -> None:
        self.stream = Stream(isa, q, k, acc, depth)

    @property
    def name(self) -> str:
        """The function's name in a module."""
        return f"keys_{self.stream.name}"

    def emit(self, module: Module) -> Callee:
        """Defines the function in a module; returns the function to call."""
        known = module.find(self.name)
        if known is not None:
            return known
        f = module.define(self.name, VOID, _ARGUMENTS)
        for height, begin, end in heights(f, f.arguments["rows"]):
            with f.loop(begin, end, int64(height), "rows") as row:
                first = f.icmp("==", row, int64(0))
                with f.branch(first) as (fetching, otherwise):
                    with fetching:
                        self._rows(f, row, height, fetch=True)
                    with otherwise:
                        self._rows(f, row, height, fetch=False)
        f.ret()
        return f.callee

    def _rows(self, f: Function, row: Value, height: int, *, fetch: bool) -> None:
        """All keys for `height` rows."""
        g, stream = f.arguments, self.stream
        together = stream.accumulators // height
        q_bytes = f.mul(g["q_row"], stream.operand.size)
        s_bytes = f.mul(g["s_row"], stream.acc.size)
        q = [f.at(g["q"], f.mul(f.add(row, one), q_bytes)) for one in range(height)]
        s = [f.at(g["s"], f.mul(f.add(row, one), s_bytes)) for one in range(height)]
        k_bytes = f.mul(g["k_row"], stream.stored.size)
        next_bytes = f.mul(g["next_row"], stream.stored.size)
        whole = f.add(g["keys"], 1 - together)
        with f.carried_loop(int64(0), whole, int64(together), [int64(0), g["k"], g["next"]], "keys") as (
            key,
            values,
            advance,
        ):
            _, k, following = values
            k_rows = [f.at(k, f.mul(k_bytes, one)) for one in range(together)]
            fetched = [f.at(following, f.mul(next_bytes, one)) for one in range(together)]
            self._store(f, s, key, self._scores(f, q, k_rows, fetched if fetch else []), together)
            moved = [f.at(k, f.mul(k_bytes, together)), f.at(following, f.mul(next_bytes, together))]
            advance([f.add(key, together), *moved])
        done, k, following = advance.results
        with f.when(f.icmp("<", done, g["keys"])):
            last = f.sub(f.sub(g["keys"], done), 1)  # keys beyond the last one repeat it
            places = [f.minimum(int64(one), last) for one in range(together)]
            k_rows = [f.at(k, f.mul(k_bytes, place)) for place in places]
            fetched = [f.at(following, f.mul(next_bytes, place)) for place in places]
            self._store(f, s, done, self._scores(f, q, k_rows, fetched if fetch else []), together)

    def _scores(self, f: Function, q: list[Value], k: list[Value], fetched: list[Value]) -> list[Value]:
        """Vectors of the scores of some rows and keys: by rows, their keys adjacent."""
        stream = self.stream
        sums = [[zero(stream.kind)] * len(k) for _ in q]
        word = vector_of(stream.word(), stream.lanes)
        for following in fetched:
            stream.prefetch(f, following)
        for first in range(0, stream.columns, stream.width):
            left = [f.load(word, f.at(one, first * stream.operand.size), stream.operand.size) for one in q]
            for column, key in enumerate(k):
                right = stream.operands(f, stream.load(f, key, first))
                for row, operand in enumerate(left):
                    sums[row][column] = stream.multiply(f, operand, right, sums[row][column])
        every = [one for row in sums for one in row]
        groups = range(0, len(every), stream.lanes)
        return [over_lanes(f, every[first : first + stream.lanes], stream.acc) for first in groups]

    def _store(self, f: Function, s: list[Value], key: Value, scores: list[Value], together: int) -> None:
        """Scores to their rows."""
        stream = self.stream
        size = stream.acc.size
        for number, vector in enumerate(scores):
            for lane in range(0, stream.lanes, min(together, stream.lanes)):
                to, column = divmod(number * stream.lanes + lane, together)
                piece = vector
                if together < stream.lanes:
                    piece = f.shuffle(vector, vector, range(lane, lane + together))
                f.store(piece, f.at(f.at(s[to], f.mul(key, size)), column * size), size)


def over_lanes(f: Function, vectors: list[Value], dtype: DType) -> Value:
    """The sum of all lanes of each of some vectors, as many as they have lanes: one lane each.

    The exchanges of a transposition, each followed by an addition: inside 128 bits neighbours interleave,
    beyond whole parts are dealt. Every sum is added in the same order: lanes half of 128 bits apart, then
    those a quarter apart, then the parts pairwise.
    """
    lanes = vectors[0].type.lanes
    part = min(lanes, PART_BITS // dtype.bits)
    group = 1
    while group < lanes:
        low: list[int] = []
        high: list[int] = []
        if group < part:
            for start in range(0, lanes, part):
                firsts = [range(first, first + group) for first in range(start, start + part, group)]
                mixed = [side + lane for one in firsts for side in (0, lanes) for lane in one]
                low, high = low + mixed[:part], high + mixed[part:]
        else:
            parts = [range(first, first + part) for first in range(0, lanes, part)]
            low, high = (
                [side + lane for side in (0, lanes) for one in parts[odd::2] for lane in one]
                for odd in (0, 1)
            )
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [f.plus(f.shuffle(a, b, low), f.shuffle(a, b, high)) for a, b in pairs]
        group *= 2
    return vectors[0]


def emit_key_scores(f: Function, isa: Isa, given: Operands) -> None:
    """Calls the function of a `KeyScores`."""
    scores, q, k, fetched = (window(given, name) for name in ("scores", "q", "k", "fetched"))
    depth = value(given, "depth").known
    assert depth is not None, "verified"
    kernel = KeysKernel(isa, q.dtype, k.dtype, scores.dtype, depth)
    places = [part for one in (q, k, scores, fetched) for part in (one.pointer, one.row)]
    f.call(kernel.emit(f.module), [value(given, "rows"), value(given, "keys"), *places])


_ARGUMENTS = [
    ("rows", INT64),
    ("keys", INT64),
    ("q", POINTER),
    ("q_row", INT64),
    ("k", POINTER),
    ("k_row", INT64),
    ("s", POINTER),
    ("s_row", INT64),
    ("next", POINTER),
    ("next_row", INT64),
]
