"""The nest of fused attention: loops over heads, blocks of queries and blocks of keys.

Source: Fu et al., ICS 2024, doi:10.1145/3650200.3656620, §4 and §5, with one difference: L5, over the rows of
a block, is outside of L4, over its panels of keys. So the scores of one register tile of rows, a strip of
mr × b2, stay in L1 from their product to the product with V; between two row tiles, panels of K and rows of V
come from L2.
"""

from __future__ import annotations

from enum import Enum

from tilewright.ir.expressions import (
    AllOf,
    AnyOf,
    Compare,
    Constant,
    Expression,
    FirstElse,
    Name,
    Relation,
    Scalar,
    TableEntry,
    ceildiv,
    maximum,
    minimum,
    roundup,
)
from tilewright.ir.nodes import (
    Buffer,
    If,
    Let,
    Loop,
    Pack,
    Program,
    Slice,
    Space,
    Statement,
    Tile,
    TileMatmul,
    UnaryMap,
)
from tilewright.ir.primitives.attention import Begin, Keep, Normalise, Softmax
from tilewright.ir.primitives.budget import Spend
from tilewright.machine.isa import Edge, TileFma
from tilewright.machine.machine import Machine
from tilewright.macro.partition import parallel
from tilewright.ops.attention.cut import AttentionBlocking
from tilewright.ops.attention.problem import (
    ITEM_FIELDS,
    ITEM_SIZE,
    Attention,
    attention_scalars,
    attention_sizes,
)
from tilewright.spec.dtype import I64
from tilewright.spec.functions import UnaryOp

#: Padding elements per row of a strip, so that rows fall into different sets of L1.
STRIP_PADDING = 16


def attention_arguments(problem: Attention) -> tuple[Buffer, ...]:
    """Argument buffers in the order of the C signature."""
    acc = problem.acc
    found = [
        ("q", problem.dtype),
        ("k", problem.kv_dtype),
        ("v", problem.kv_dtype),
        ("out", problem.out_dtype),
    ]
    found += [("items", I64), ("row_max", acc), ("row_sum", acc)]
    found += [("mask", problem.mask)] if problem.mask else []
    optional = ("slopes", "sinks", "key_scales", "value_scales")
    found += [(name, acc) for name in optional if getattr(problem, name)]
    found += [("pages", I64)] if problem.paged else []
    return tuple(Buffer(name, dtype, Space.ARGUMENT) for name, dtype in found)


def item_number(field: str) -> Expression:
    """A number of the sequence b."""
    return TableEntry("items", Name("b") * ITEM_SIZE + ITEM_FIELDS.index(field))


def page_of(key: Expression) -> Expression:
    """The number of the page that holds a key."""
    return ceildiv(key + 1, Name("page")) - 1


def item_lets(problem: Attention) -> list[Statement]:
    """The numbers of the sequence that a problem needs, by their names and "0"."""
    optional = {
        "mask": problem.mask is not None,
        "scales": problem.key_scales or problem.value_scales,
        "pages": problem.paged,
        "low": problem.bounded,
        "high": problem.bounded,
        "shift": problem.slopes,
    }
    return [Let(f"{name}0", item_number(name)) for name in ITEM_FIELDS if optional.get(name, True)]


def score_changes(
    problem: Attention, row: Expression, column: Expression
) -> dict[str, Slice | Expression | Scalar | None]:
    """What changes the scores of rows from one on and columns from one on, by the fields of `Softmax`."""
    given: dict[str, Slice | Expression | Scalar | None] = {}
    if problem.bounded:
        given["low"] = Name("low0") + row - column
        given["high"] = Name("high0") + row - column
    if problem.softcap:
        given["softcap"] = Scalar("softcap")
    if problem.slopes:
        given["slope"] = Slice("slopes", Name("head"), (Constant(0), Constant(0)))
        given["distance"] = column - row - (Name("keys0") - Name("queries0")) - Name("shift0")
    for buffer, field, flag in (
        ("key_scales", "key_scale", problem.key_scales),
        ("value_scales", "weight_scale", problem.value_scales),
    ):
        if flag:
            offset = Name("scales0") + Name("kv") * Name("scales_head") + column
            given[field] = Slice(buffer, offset, (Constant(0), Constant(1)))
    if problem.mask is not None:
        offset = Name("mask0") + Name("head") * Name("mask_head") + row * Name("mask_row")
        offset = offset + column * Name("mask_col")
        given["mask"] = Slice("mask", offset, (Name("mask_row"), Name("mask_col")))
    return given


def floor_to(value: Expression, unit: int) -> Expression:
    """The largest multiple of a unit that is not above a value, which is not negative."""
    return roundup(value + 1, unit) - unit


def _when(left: Expression, relation: Relation, right: Expression | int, *body: Statement) -> If:
    """Statements under one comparison."""
    limit = right if isinstance(right, Expression) else Constant(right)
    return If(AnyOf((AllOf((Compare(relation, left, limit),)),)), body)


class Queries(Enum):
    """Where the rows of a tile of queries are: in their array, in panels, or one of them alone in a panel."""

    IN_PLACE = "in place"
    PACKED = "packed"
    ALONE = "alone"


class _Nest:
    """The loops of one problem on one machine."""

    def __init__(self, problem: Attention, cut: AttentionBlocking, machine: Machine) -> None:
        self.problem, self.cut = problem, cut
        one: TileFma = machine.isa.tile(problem.dtype, problem.dtype)
        self.one, self.acc = one, problem.acc
        self.tile = Tile(cut.mr, cut.nr, cut.kr)
        self.depth = -(-problem.head_dim // one.k) * one.k  # of a panel of Q and K
        lanes = machine.isa.lanes(self.acc)
        self.wide = -(-problem.value_dim // lanes) * lanes  # of a row of unfinished results
        self.row = cut.b2 + STRIP_PADDING  # of a strip
        # A tile reads whole vectors of V, except where masks end the last one.
        masked = machine.isa.edge_of(one.b) is Edge.MASK and one.in_place
        whole = problem.value_dim % cut.nr == 0
        #: V is read in place if it holds the instruction's element type and no read goes past its end.
        self.v_stands = (problem.kv_dtype, one.kr) == (one.b, 1) and (whole or masked)
        #: So is Q: tiles broadcast its elements from anywhere.
        self.q_stands = (problem.dtype, one.kr) == (one.a, 1) and one.in_place
        #: Elements between rows that share a set of L1.
        self.one_set = max(1, machine.l1.size // machine.l1.ways // problem.dtype.size)
        self.same = one.a == self.acc  # weights take the place of scores
        self.turns_weights = one.is_matrix_engine  # weights must be packed in a panel
        self.careful = problem.bounded or problem.mask is not None

    # --- buffers ------------------------------------------------------------------------------

    def buffers(self) -> tuple[Buffer, ...]:
        """Scratch of a thread."""
        cut, one, problem = self.cut, self.one, self.problem
        keys = -(-cut.b2 // one.k) * one.k
        across = -(-problem.value_dim // cut.nr) * cut.nr
        found = [
            ("q_pack", one.a, cut.b1 * self.depth),
            ("k_pack", one.b, cut.b2 * self.depth),
            ("scores", self.acc, cut.mr * self.row),
            ("sums", self.acc, cut.b1 * self.wide),
            ("m", self.acc, cut.b1),
            ("l", self.acc, cut.b1),
        ]
        if not self.v_stands:
            found.append(("v_pack", one.b, keys * across))
        if not self.same:
            found.append(("weights", one.a, cut.mr * self.row))
        if self.turns_weights:
            found.append(("w_pack", one.a, cut.mr * keys))
        if self.problem.paged:
            found.append(("k_rows", problem.kv_dtype, cut.b2 * problem.head_dim))
            found.append(("v_rows", problem.kv_dtype, cut.b2 * problem.value_dim))
        if self.careful:
            found.append(("flag", I64, 1))
            found.append(("v_kept", problem.kv_dtype, cut.b2 * problem.value_dim))
        return tuple(Buffer(name, dtype, Space.THREAD, size) for name, dtype, size in found)

    # --- slices -------------------------------------------------------------------------------

    def rows_of(self, buffer: str, field: str, head: Expression, row: Expression) -> Slice:
        """Rows of an operand of the sequence, columns along the second axis."""
        letter = "o" if buffer == "out" else buffer
        strides = tuple(Name(f"{letter}_{axis}") for axis in ("head", "row", "col"))
        offset = Name(f"{field}0") + head * strides[0] + row * strides[1]
        return Slice(buffer, offset, (strides[1], strides[2]))

    def state(self, buffer: str, row: Expression) -> Slice:
        """A number of each row."""
        return Slice(buffer, row, (Constant(1), Constant(0)))

    def sums(self, row: Expression, column: Expression | int = 0) -> Slice:
        """Unfinished results."""
        return Slice("sums", row * self.wide + column, (Constant(self.wide), Constant(1)))

    def strip(self, column: Expression, *, weights: bool) -> Slice:
        """Scores or weights of a row tile from a column on."""
        buffer = "weights" if weights and not self.same else "scores"
        return Slice(buffer, column, (Constant(self.row), Constant(1)))

    # --- statements ---------------------------------------------------------------------------

    def program(self, name: str) -> Program:
        """The whole program."""
        ib, b1 = Name("ib"), self.cut.b1
        block = _when(ib, Relation.LT, item_number("queries"), *self.block())
        rows = parallel("ib", Constant(0), Name("queries"), Constant(b1), block)
        groups = parallel("g", Constant(0), Name("group"), Constant(1), rows)
        heads = parallel("kv", Constant(0), Name("kv_heads"), Constant(1), groups)
        batch = parallel("b", Constant(0), Name("batch"), Constant(1), heads)
        return Program(
            name=name,
            sizes=attention_sizes(self.problem),
            scalars=attention_scalars(self.problem),
            buffers=(*attention_arguments(self.problem), *self.buffers()),
            body=(batch,),
        )

    def block(self) -> tuple[Statement, ...]:
        """b1 queries of one head past all keys that one of them sees: loop L2 of Fu et al. 2024."""
        cut, ib, rows = self.cut, Name("ib"), Name("rows")
        body: list[Statement] = [
            *item_lets(self.problem),
            Let("head", Name("kv") * Name("group") + Name("g")),
            Let("rows", minimum(cut.b1, Name("queries0") - ib)),
            *self.past_keys(ib, rows),
        ]
        if self.careful:
            flag = Slice("flag", Constant(0), (Constant(1), Constant(1)))
            body.append(UnaryMap(UnaryOp.ZERO, flag, None, Constant(1), Constant(1)))
        body.append(self.normalise(Constant(0), rows, flagged=self.careful))
        if self.careful:
            body.append(_when(TableEntry("flag", Constant(0)), Relation.EQ, 1, self.again(rows)))
        return tuple(body)

    def past_keys(self, first: Expression, rows: Expression) -> tuple[Statement, ...]:
        """Rows from a first one past all keys: in place, if their lines fall into several sets of L1.

        Packing 80 queries of 64 elements takes a twentieth of their attention to as many keys.
        """

        def past(place: Queries, *packing: Statement) -> tuple[Statement, ...]:
            tiles = Loop("i", Constant(0), rows, Constant(self.cut.mr), self.row_tile(rows, place))
            return (*packing, self.begin(Constant(0), rows), self.over_keys(first, rows, tiles))

        packed = past(Queries.PACKED, self.pack_q(first, rows))
        if not self.q_stands:
            return packed
        spread = Compare(Relation.LT, Name("q_row"), roundup(Name("q_row"), self.one_set))
        return (If(AnyOf((AllOf((spread,)),)), past(Queries.IN_PLACE), packed),)

    def pack_q(self, first: Expression, rows: Expression) -> Pack:
        """Queries as panels of A, of the whole head."""
        cut, kr = self.cut, self.one.interleave_a
        panels = Slice("q_pack", Constant(0), (Constant(kr), Constant(kr * cut.mr)), interleave=kr)
        q = self.rows_of("q", "q", Name("head"), first)
        return Pack(panels, q, rows, Constant(self.problem.head_dim), cut.mr, kr, self.one.k)

    def begin(self, first: Expression, rows: Expression) -> Begin:
        """The initial state of rows, before any key.

        If every row sees the first block of keys, its product overwrites the results.
        """
        sink = None
        if self.problem.sinks:
            sink = Slice("sinks", Name("head"), (Constant(0), Constant(0)))
        row_max, row_sum = self.state("m", first), self.state("l", first)
        columns: Expression = Constant(self.wide)
        if not self.problem.bounded:
            columns = maximum(Constant(1) - Name("keys0"), 0) * self.wide  # all of them where there is no key
        return Begin(row_max, row_sum, self.sums(first), rows, columns, sink)

    def normalise(self, first: Expression, rows: Expression, *, flagged: bool) -> Normalise:
        """Results of finished rows."""
        at = Name("ib") + first
        state = Name("state0") + Name("head") * Name("state_head") + at
        flag = Slice("flag", Constant(0), (Constant(1), Constant(1))) if flagged else None
        return Normalise(
            self.rows_of("out", "out", Name("head"), at),
            self.sums(first),
            self.state("m", first),
            self.state("l", first),
            self.state("row_max", state),
            self.state("row_sum", state),
            rows,
            Constant(self.problem.value_dim),
            flag,
        )

    def over_keys(self, first: Expression, rows: Expression, *tiles: Statement) -> Loop:
        """Blocks of b2 keys: L3. Those that no row sees are skipped."""
        cut, one, keys = self.cut, self.one, Name("keys0")
        begin: Expression = Constant(0)
        end: Expression = keys
        if self.problem.bounded:
            seen = maximum(Name("low0") + first, 0)
            begin, end = floor_to(seen, cut.b2), minimum(keys, Name("high0") + first + rows - 1)
        jb = Name("jb")
        work = rows * (cut.b2 * (self.problem.head_dim + self.problem.value_dim))
        body: list[Statement] = [Spend(work), Let("kb", minimum(cut.b2, end - jb))]
        k, v = (self.rows_of(buffer, buffer, Name("kv"), jb) for buffer in "kv")
        if self.problem.paged:
            body.append(self.gather())
            k = Slice("k_rows", Constant(0), (Constant(self.problem.head_dim), Constant(1)))
            v = Slice("v_rows", Constant(0), (Constant(self.problem.value_dim), Constant(1)))
        kr = one.kr
        panels = Slice("k_pack", Constant(0), (Constant(kr), Constant(kr * cut.nr)), interleave=kr)
        body.append(Pack(panels, k, Name("kb"), Constant(self.problem.head_dim), cut.nr, kr, one.k))
        if not self.v_stands:
            body.append(self.pack_v(v, Name("kb")))
        return Loop("jb", begin, end, Constant(cut.b2), (*body, *tiles))

    def pack_v(self, v: Slice, keys: Expression) -> Pack:
        """Values of some keys as panels of B: their depth is the keys."""
        cut, one = self.cut, self.one
        kr = one.kr
        panels = Slice("v_pack", Constant(0), (Constant(kr), Constant(kr * cut.nr)), interleave=kr)
        transposed = Slice(v.buffer, v.offset, (v.strides[1], v.strides[0]))
        return Pack(panels, transposed, Constant(self.problem.value_dim), keys, cut.nr, kr, one.k)

    def gather(self) -> Loop:
        """Rows of a block of keys out of their pages."""
        jb, page = Name("jb"), Name("page")
        at = Name("p")
        moves: list[Statement] = [
            Let("number", TableEntry("pages", Name("pages0") + at)),
            Let("page_first", maximum(at * page, jb)),
            Let("page_rows", minimum(at * page + page, jb + Name("kb")) - Name("page_first")),
        ]
        sources = []
        for letter in "kv":
            head, row, column = (Name(f"{letter}_{axis}") for axis in ("head", "row", "col"))
            offset = Name(f"{letter}0") + Name("kv") * head + Name("number") * Name(f"{letter}_page")
            inside = Name("page_first") - at * page
            sources.append(Slice(letter, offset + inside * row, (row, column)))
        moves += self.move((sources[0], sources[1]), Name("page_first") - jb, Name("page_rows"))
        begin = page_of(jb)
        return Loop("p", begin, page_of(jb + Name("kb") - 1) + 1, Constant(1), tuple(moves))

    def move(self, sources: tuple[Slice, Slice], first: Expression, rows: Expression) -> list[Statement]:
        """Rows of keys and of values to their place in the block."""
        moves: list[Statement] = []
        for source, columns in zip(sources, (self.problem.head_dim, self.problem.value_dim), strict=True):
            to = Slice(f"{source.buffer}_rows", first * columns, (Constant(columns), Constant(1)))
            moves.append(UnaryMap(UnaryOp.IDENTITY, to, source, rows, Constant(columns)))
        return moves

    def row_tile(self, rows: Expression, place: Queries) -> tuple[Statement, ...]:
        """One register tile of rows, or one row, on a block of keys: scores, softmax, product with V."""
        cut, i, ib, jb = self.cut, Name("i"), Name("ib"), Name("jb")
        most = Constant(1) if place is Queries.ALONE else minimum(cut.mr, rows - i)
        body: list[Statement] = [Let("tile_rows", most)]
        js: Expression = Constant(0)
        je: Expression = Name("kb")
        if self.problem.bounded:
            first = Name("low0") + ib + i - jb
            last = Name("high0") + ib + i + Name("tile_rows") - 1 - jb
            body += [
                Let("js", floor_to(maximum(first, 0), cut.nr)),
                Let("je", minimum(Name("kb"), last)),
            ]
            js, je = Name("js"), Name("je")
            body.append(_when(js, Relation.LT, je, *self.products(js, je, place)))
        else:
            body += self.products(js, je, place)
        return tuple(body)

    def products(self, js: Expression, je: Expression, place: Queries) -> tuple[Statement, ...]:
        """Scores of a row tile from panel js on, its softmax, and weights times values."""
        cut, one, i = self.cut, self.one, Name("i")
        kr_a, kr = one.interleave_a, one.kr
        k = Slice("k_pack", Name("j") * self.depth, (Constant(kr), Constant(kr * cut.nr)), interleave=kr)
        scores = TileMatmul(
            c=self.strip(Name("j"), weights=False),
            a=self.queries(place),
            b=k,
            rows=Name("tile_rows"),
            columns=Constant(cut.nr),
            depth=Constant(self.problem.head_dim),
            tile=self.tile,
            alpha=Scalar(1.0),
            beta=Scalar(0.0),
        )
        body: list[Statement] = [
            Loop("j", js, je, Constant(cut.nr), (scores,)),
            Let("seen", je - js),
            self.softmax(js),
        ]
        weights = self.strip(js, weights=True)
        left = Slice(weights.buffer, weights.offset, (weights.strides[0], Constant(kr_a)), interleave=kr_a)
        if self.turns_weights:
            left = Slice("w_pack", Constant(0), (Constant(kr_a), Constant(kr_a * cut.mr)), interleave=kr_a)
            body.append(Pack(left, weights, Name("tile_rows"), Name("seen"), cut.mr, kr_a, one.k))
        c = Name("c")
        v = self.values(js)
        alone = place is Queries.ALONE
        if alone:
            kept = Slice("v_kept", Constant(0), (Constant(self.problem.value_dim), Constant(1)))
            column = Slice(weights.buffer, weights.offset, (Constant(1), Constant(0)))
            body.append(Keep(kept, v, column, Name("seen"), Constant(self.problem.value_dim)))
            if not self.v_stands:
                body.append(self.pack_v(kept, Name("seen")))
            v = kept
        if self.v_stands:
            right = Slice(v.buffer, v.offset + c, (Constant(1), v.strides[0]))
        else:
            keys, at = (Name("seen"), Constant(0)) if alone else (Name("kb"), js)
            offset = c * roundup(keys, one.k) + at * cut.nr
            right = Slice("v_pack", offset, (Constant(kr), Constant(kr * cut.nr)), interleave=kr)
        product = TileMatmul(
            c=self.sums(i, c),
            a=left,
            b=right,
            rows=Name("tile_rows"),
            columns=minimum(cut.nr, Constant(self.problem.value_dim) - c),
            depth=Name("seen"),
            tile=self.tile,
            alpha=Scalar(1.0),
            beta=Scalar(1.0) if self.problem.bounded else FirstElse("jb", Scalar(0.0), Scalar(1.0)),
        )
        body.append(Loop("c", Constant(0), Constant(self.problem.value_dim), Constant(cut.nr), (product,)))
        return tuple(body)

    def queries(self, place: Queries) -> Slice:
        """Queries of a row tile."""
        i, kr = Name("i"), self.one.interleave_a
        if place is Queries.IN_PLACE:
            return self.rows_of("q", "q", Name("head"), Name("ib") + i)
        first = Constant(0) if place is Queries.ALONE else i * self.depth
        return Slice("q_pack", first, (Constant(kr), Constant(kr * self.cut.mr)), interleave=kr)

    def values(self, js: Expression) -> Slice:
        """Values from key js of the block on, as rows."""
        if self.problem.paged:
            columns = self.problem.value_dim
            return Slice("v_rows", js * columns, (Constant(columns), Constant(1)))
        return self.rows_of("v", "v", Name("kv"), Name("jb") + js)

    def softmax(self, js: Expression) -> Softmax:
        """The substeps of Fu et al. 2024, §5.1, on the strip of a row tile."""
        problem, i, ib, jb = self.problem, Name("i"), Name("ib"), Name("jb")
        row, column = ib + i, jb + js
        given = score_changes(problem, row, column)
        return Softmax(
            self.strip(js, weights=False),
            self.strip(js, weights=True),
            self.state("m", i),
            self.state("l", i),
            self.sums(i),
            Name("tile_rows"),
            Name("seen"),
            roundup(Name("seen"), self.one.k),
            # Nothing is there to rescale in the first block.
            Constant(self.wide) if problem.bounded else minimum(self.wide, jb * self.wide),
            Scalar("scale"),
            **given,  # type: ignore[arg-type]
        )

    def again(self, rows: Expression) -> Loop:
        """Every row by itself, with values of 0 where its weight is 0: some masked-out value may be NaN."""
        i, one = Name("i"), Constant(1)
        at = Name("ib") + i
        keys = self.over_keys(at, one, *self.row_tile(rows, Queries.ALONE))
        body = (
            self.pack_q(at, one),
            self.begin(i, one),
            keys,
            self.normalise(i, one, flagged=False),
        )
        return Loop("i", Constant(0), rows, one, body)


def build_attention(problem: Attention, cut: AttentionBlocking, machine: Machine, name: str) -> Program:
    """The tile IR of attention in blocks."""
    return _Nest(problem, cut, machine).program(name)
