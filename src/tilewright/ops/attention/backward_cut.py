"""A block of attention's scores computed again for gradients: its size, buffers, windows and tiles."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tilewright.ir.expressions import (
    Constant,
    Expression,
    ExpressionLike,
    Name,
    Scalar,
    TableEntry,
    maximum,
    minimum,
    roundup,
)
from tilewright.ir.nodes import (
    Buffer,
    Let,
    Loop,
    Pack,
    Slice,
    Space,
    Statement,
    Tile,
    TileEpilogue,
    TileMatmul,
    UnaryMap,
)
from tilewright.ir.primitives.attention import Finite, SoftmaxGradient
from tilewright.machine.isa import TileFma
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import choose_blocking
from tilewright.ops.attention.backward_problem import AttentionBackward
from tilewright.ops.attention.nest import floor_to
from tilewright.ops.attention.problem import ITEM_FIELDS, ITEM_SIZE
from tilewright.records import dataclass
from tilewright.spec.dtype import F32, I64, DType
from tilewright.spec.functions import UnaryOp

#: Columns of the table of sequences: those of attention, with shift instead of pages, which gradients do
#: not take, and in spare ones where the gradients begin.
BACKWARD_FIELDS = (
    *("shift" if name == "pages" else name for name in ITEM_FIELDS if name != "shift"),
    *("dout", "dq", "dk", "dv"),
)
assert len(BACKWARD_FIELDS) <= ITEM_SIZE

#: Share of the second-level cache that the panels, sums and scores of one block of keys may take: what
#: passes by, rows of Q, dO and the operands of other threads, takes the rest.
BLOCK_SHARE = 0.6

#: Most keys of a block. Panels of Q and dO are packed again for each: 2 % of the work at 256 keys.
MOST_KEYS = 256

#: Register tiles in a block of queries per block of keys: the depth of dV += Pᵀ·dO and dK += dSᵀ·Q.
QUERY_TILES = 6

#: Most queries of a task of dQ, whose sums take at most this share of the second-level cache. Panels of keys
#: and values are packed again for each.
MOST_QUERIES = 512
SUMS_SHARE = 0.25

#: Sums of dQ of narrower elements that a task of dK and dV may keep for all queries of its heads, in bytes.
KEPT_SUMS_BYTES = 2 << 20

#: Bytes behind each row of scores, so that a column of them, which the tiles of dV and dK walk, does not
#: fall into few sets of the first-level cache.
ROW_STAGGER_BYTES = 64


@dataclass(frozen=True)
class BackwardBlocking:
    """How the gradients of attention are cut.

    Attributes
    ----------
    mr, nr, kr : the register tile of every product.
    b1, b2 : queries and keys of a block of scores.
    rows : most queries of a task of dQ.
    """

    mr: int
    nr: int
    kr: int
    b1: int
    b2: int
    rows: int


def choose_backward(problem: AttentionBackward, machine: Machine) -> BackwardBlocking:
    """Register tile and blocks of queries and keys.

    A block of keys holds panels of K and V, sums of dK and dV, and two blocks of scores; it is traversed by
    panels of Q and dO: in bytes b2·(d + dv)·(panel + sum) + 2·b1·b2·score + b1·(d + dv)·panel.

    Examples
    --------
    >>> from tilewright.machine.catalog import find_machine
    >>> choose_backward(AttentionBackward(64), find_machine("znver5"))
    BackwardBlocking(mr=12, nr=32, kr=1, b1=72, b2=256, rows=504)
    """
    one = machine.isa.tile(problem.dtype)
    usual = choose_blocking(machine, one)
    mr, nr = usual.mr, usual.nr
    unit = math.lcm(mr, one.k)
    wide = problem.head_dim + problem.value_dim
    b1 = whole(QUERY_TILES * mr, unit)
    room = int(machine.l2.size * BLOCK_SHARE) - b1 * wide * one.b.size
    b2 = room // (wide * (one.b.size + F32.size) + 2 * b1 * F32.size)
    keys = math.lcm(nr, one.k)
    b2 = max(keys, min(b2, MOST_KEYS) // keys * keys)
    rows = min(MOST_QUERIES, int(machine.l2.size * SUMS_SHARE) // (problem.head_dim * F32.size))
    return BackwardBlocking(mr, nr, one.kr, b1, b2, max(unit, rows // unit * unit))


class ScoreBlock:
    """Operations on one block of scores, shared by every nest of a kernel.

    Queries and keys are numbered inside their sequence. Names in scope: `b` the sequence, `h` the head of
    keys, `head` that of queries, `jb` and `columns` the block of keys, `i` and `tile_rows` a tile of queries.
    """

    def __init__(self, problem: AttentionBackward, cut: BackwardBlocking, machine: Machine) -> None:
        self.problem, self.cut, self.isa = problem, cut, machine.isa
        self.one: TileFma = machine.isa.tile(problem.dtype)
        self.unit = self.one.k
        #: Scores are written in whole vectors, and read in whole steps of the instruction.
        self.lanes = math.lcm(machine.isa.lanes(F32), self.unit)
        self.score_row = whole(cut.b2, self.lanes) + max(ROW_STAGGER_BYTES // F32.size, self.lanes)
        self.tile = Tile(cut.mr, cut.nr, cut.kr)
        #: Whether tiles read A in place, with any stride along the depth.
        self.plain = self.one.in_place
        self.in_place = self.plain and problem.dtype == self.one.a
        #: Whether they read rows of dS in place: adjacent depths form a word.
        self.rows_in_place = not self.one.is_matrix_engine
        #: Whether weights and gradients take the memory of scores and products.
        self.kept = self.one.a == F32
        #: Whether sums of dQ are accumulated in dQ itself.
        self.direct = problem.dtype == F32

    # --- buffers ------------------------------------------------------------------------------------

    def buffers(self) -> tuple[Buffer, ...]:
        """Arguments, then scratch of each thread."""
        p = self.problem
        given = dict.fromkeys(("q", "k", "v", "out", "dout", "dq", "dk", "dv"), p.dtype)
        given |= {"items": I64, "lse": F32, "delta": F32}
        given |= {"mask": p.mask} if p.mask else {}
        given |= {"slopes": F32} if p.slopes else {}
        arguments = (Buffer(name, dtype, Space.ARGUMENT) for name, dtype in given.items())
        own = (Buffer(name, dtype, Space.THREAD, size) for name, (dtype, size) in self._scratch().items())
        return (*arguments, *own)

    def _scratch(self) -> dict[str, tuple[DType, int]]:
        """Element type and elements of each buffer of a thread."""
        p, cut, one, unit = self.problem, self.cut, self.one, self.unit
        deep, deep_v = whole(p.head_dim, unit), whole(p.value_dim, unit)
        wide, wide_v = whole(p.head_dim, cut.nr), whole(p.value_dim, cut.nr)
        keys, queries = whole(cut.b2, unit), whole(cut.b1, unit)
        scratch = {
            "keys_turned": (one.b, whole(cut.b2, cut.nr) * deep),
            "values_turned": (one.b, whole(cut.b2, cut.nr) * deep_v),
            "key_panels": (one.b, wide * keys),
            "query_panels": (one.b, wide * queries),
            "dout_panels": (one.b, wide_v * queries),
            "scores": (F32, cut.b1 * self.score_row),
            "products": (F32, cut.b1 * self.score_row),
            "dk_sums": (F32, cut.b2 * wide),
            "dv_sums": (F32, cut.b2 * wide_v),
        }
        if not self.in_place:
            most = whole(max(cut.b1, cut.rows), cut.mr)
            scratch |= {"query_rows": (one.a, most * deep), "dout_rows": (one.a, most * deep_v)}
        if not self.kept:
            block = (one.a, cut.b1 * self.score_row)
            scratch |= {"weights": block, "gradients": block}
        if not self.rows_in_place:
            scratch["gradient_rows"] = (one.a, cut.mr * keys)
        if not self.plain:
            transposed = (one.a, whole(cut.b2, cut.mr) * queries)
            scratch |= {"weights_turned": transposed, "gradients_turned": transposed}
        if not self.direct:
            scratch["dq_sums"] = (F32, max(cut.rows * wide, self.kept_sums))
        return scratch

    @property
    def kept_sums(self) -> int:
        """Sums of dQ that a task of dK and dV may keep."""
        return KEPT_SUMS_BYTES // F32.size

    # --- windows ------------------------------------------------------------------------------------

    def item(self, field: str) -> TableEntry:
        """A column of the table of items, for sequence b."""
        return TableEntry("items", Name("b") * ITEM_SIZE + BACKWARD_FIELDS.index(field))

    def array(self, name: str, head: Expression, row: Expression) -> Slice:
        """The rows of an array from some row of a head on."""
        column = Name(f"{name}_col") if name in ("q", "k", "v") else Constant(1)
        offset = Name(f"{name}_at") + head * Name(f"{name}_head") + row * Name(f"{name}_row")
        return Slice(name, offset, (Name(f"{name}_row"), column))

    def state(self, name: str, head: Expression, row: Expression) -> Slice:
        """lse or delta of the rows from some row of a head on."""
        offset = Name("state_at") + head * Name("state_head") + row
        return Slice(name, offset, (Constant(1), Constant(0)))

    def scores(self, name: str, row: Expression) -> Slice:
        """The rows of a block of scores, or of what has their shape."""
        return Slice(name, row * self.score_row, (Constant(self.score_row), Constant(1)))

    @property
    def names(self) -> tuple[str, str]:
        """Names of the buffers of weights and gradients."""
        return ("scores", "products") if self.kept else ("weights", "gradients")

    def panel_b(self, buffer: str, lane: Expression, deep: Expression, depth: ExpressionLike = 0) -> Slice:
        """The panel of B of a lane, in panels of so many depths, from a depth on."""
        kr, nr = self.one.kr, self.cut.nr
        return Slice(
            buffer, lane * deep + depth * Constant(nr), (Constant(kr), Constant(kr * nr)), interleave=kr
        )

    def panel_a(self, buffer: str, lane: Expression, deep: Expression, depth: ExpressionLike = 0) -> Slice:
        """The same of A."""
        kr, mr = self.one.interleave_a, self.cut.mr
        return Slice(
            buffer, lane * deep + depth * Constant(mr), (Constant(kr), Constant(kr * mr)), interleave=kr
        )

    # --- statements ---------------------------------------------------------------------------------

    def pack_b(self, to: str, source: Slice, lanes: Expression, depth: Expression) -> Pack:
        """Panels of B of a window of (lanes, depth)."""
        panel, kr = self.cut.nr, self.one.kr
        return Pack(self.panel_b(to, Constant(0), Constant(0)), source, lanes, depth, panel, kr, self.unit)

    def pack_a(self, to: str, source: Slice, lanes: Expression, depth: Expression) -> Pack:
        """Panels of A of a window of (lanes, depth)."""
        panel, kr = self.cut.mr, self.one.interleave_a
        return Pack(self.panel_a(to, Constant(0), Constant(0)), source, lanes, depth, panel, kr, self.unit)

    def pack_keys(self) -> tuple[Pack, ...]:
        """Panels of Kᵀ and Vᵀ for the block of keys at jb: lanes are keys."""
        keys, values = (self.array(name, Name("h"), Name("jb")) for name in "kv")
        columns, p = Name("columns"), self.problem
        return (
            self.pack_b("keys_turned", keys, columns, Constant(p.head_dim)),
            self.pack_b("values_turned", values, columns, Constant(p.value_dim)),
        )

    def pack_finite(self, to: str, source: Slice, depth: Expression) -> tuple[Statement, ...]:
        """Panels of Q or K whose depths are their rows; NaN in a masked row must not reach the sums."""
        d = self.problem.head_dim
        adjacent = Slice(to, Constant(0), (Constant(0), Constant(1)))
        elements = whole(d, self.cut.nr) * roundup(depth, self.unit)
        return self.pack_b(to, transposed(source), Constant(d), depth), Finite(adjacent, elements)

    def pack_key_panels(self) -> tuple[Statement, ...]:
        """Panels of K for the block of keys at jb: depths are keys."""
        return self.pack_finite("key_panels", self.array("k", Name("h"), Name("jb")), Name("columns"))

    def pack_rows(self, first: Expression, rows: Expression) -> tuple[Pack, ...]:
        """Rows of Q and dO, where tiles don't read them in place."""
        if self.in_place:
            return ()
        queries, douts = (self.array(name, Name("head"), first) for name in ("q", "dout"))
        return (
            self.pack_a("query_rows", queries, rows, Constant(self.problem.head_dim)),
            self.pack_a("dout_rows", douts, rows, Constant(self.problem.value_dim)),
        )

    def product(
        self, c: Slice, a: Slice, b: Slice, sizes: tuple[Expression, Expression, Expression], factor: Scalar
    ) -> TileMatmul:
        """C += factor · A·B on one register tile of (rows, columns, depth)."""
        return TileMatmul(c, a, b, *sizes, self.tile, factor, Scalar(1.0))

    def lanes_of(self, width: int) -> Expression:
        """Columns of the tile at c, of so many."""
        nr = self.cut.nr
        return Constant(nr) if width % nr == 0 else minimum(nr, Constant(width) - Name("c"))

    def over_columns(self, width: int, *body: Statement) -> Loop:
        """A loop over columns of tiles."""
        return Loop("c", Constant(0), Constant(width), Constant(self.cut.nr), body)

    def zero(self, window: Slice, rows: Expression, width: int) -> UnaryMap:
        """Sums that nothing was added to."""
        return UnaryMap(UnaryOp.ZERO, window, None, rows, Constant(width))

    def sums(self, name: str, row: Expression, width: int) -> Slice:
        """Rows of sums of a gradient, in whole tiles."""
        wide = whole(width, self.cut.nr)
        return Slice(name, row * wide, (Constant(wide), Constant(1)))

    def finish(self, sums: Slice, to: Slice, rows: Expression, factor: Scalar) -> TileEpilogue:
        """A gradient from its sums."""
        width = self.problem.value_dim if to.buffer == "dv" else self.problem.head_dim
        return TileEpilogue(to, sums, rows, Constant(width), factor, Scalar(0.0))

    # --- a tile of queries and a block of keys --- -----------------------------------------------------

    def weights_of_tile(self, first: Expression, row: Expression, *, weights: bool) -> tuple[Statement, ...]:
        """Gradients dS, and weights P if requested, of the tile of queries at i and the block of keys.

        Parameters
        ----------
        first : the query that packed rows begin with.
        row : position of the tile in the block of scores.
        """
        p, i, head = self.problem, Name("i"), Name("head")
        if self.in_place:
            q, dout = self.array("q", head, i), self.array("dout", head, i)
        else:
            deep, deep_v = (Constant(whole(size, self.unit)) for size in (p.head_dim, p.value_dim))
            q = self.panel_a("query_rows", i - first, deep)
            dout = self.panel_a("dout_rows", i - first, deep_v)
        tiles = (
            self._score_tile(self.scores("scores", row), q, "keys_turned", p.head_dim),
            self._score_tile(self.scores("products", row), dout, "values_turned", p.value_dim),
        )
        given: dict[str, Expression | Slice | Scalar] = {}
        if p.bounded:
            given |= {name: Name(name) + i - Name("jb") for name in ("low", "high")}
        if p.softcap:
            given["softcap"] = Scalar("softcap")
        if p.slopes:
            given["slope"] = Slice("slopes", head, (Constant(0), Constant(0)))
            given["distance"] = Name("jb") - i - (Name("item_keys") - Name("item_queries")) - Name("shift")
        if p.mask:
            row_step, column_step = Name("mask_row"), Name("mask_col")
            offset = Name("mask_at") + head * Name("mask_head") + i * row_step + Name("jb") * column_step
            given["mask"] = Slice("mask", offset, (row_step, column_step))
        if weights:
            given["weights"] = self.scores(self.names[0], row)
        gradient = SoftmaxGradient(
            gradients=self.scores(self.names[1], row),
            scores=self.scores("scores", row),
            products=self.scores("products", row),
            lse=self.state("lse", head, i),
            delta=self.state("delta", head, i),
            rows=Name("tile_rows"),
            columns=Name("columns"),
            padded=roundup(Name("columns"), self.lanes),
            scale=Scalar("scale"),
            **given,  # type: ignore[arg-type]
        )
        panels = Loop("j", Name("seen"), Name("seen_end"), Constant(self.cut.nr), tiles)
        return (*self._seen_columns(), panels, gradient)

    def _score_tile(self, rows: Slice, a: Slice, panels: str, depth: int) -> TileMatmul:
        """One tile of Q·Kᵀ or dO·Vᵀ: rows of A by the panel of B at key j."""
        j = Name("j")
        c = Slice(rows.buffer, rows.offset + j, rows.strides)
        b = self.panel_b(panels, j, Constant(whole(depth, self.unit)))
        sizes = (Name("tile_rows"), minimum(self.cut.nr, Name("columns") - j), Constant(depth))
        return TileMatmul(c, a, b, *sizes, self.tile, Scalar(1.0), Scalar(0.0))

    def _seen_columns(self) -> tuple[Let, ...]:
        """The columns of the block that the tile sees, begun with a whole panel."""
        if not self.problem.bounded:
            return Let("seen", Constant(0)), Let("seen_end", Name("columns"))
        i, jb, panel = Name("i"), Name("jb"), math.lcm(self.cut.nr, self.unit)
        last = i + Name("tile_rows") - 1
        return (
            Let("seen", down(Name("low") + i - jb, panel)),
            Let("seen_end", minimum(Name("high") + last - jb, Name("columns"))),
        )

    def add_to_queries(self, to: Slice, row: Expression) -> tuple[Statement, ...]:
        """dQ += scale · dS·K for the tile of queries, whose dS is at a row of the block."""
        seen, depth = Name("seen"), maximum(Name("seen_end") - Name("seen"), 0)
        gradients = self.scores(self.names[1], row)
        rows = Slice(gradients.buffer, gradients.offset + seen, gradients.strides)
        packs: tuple[Pack, ...] = ()
        if not self.rows_in_place:
            packs = (self.pack_a("gradient_rows", rows, Name("tile_rows"), depth),)
            rows = self.panel_a("gradient_rows", Constant(0), Constant(0))
        c, d = Name("c"), self.problem.head_dim
        b = self.panel_b("key_panels", c, roundup(Name("columns"), self.unit), seen)
        # Rows and panels are zero up to whole steps of the instruction.
        sizes = (Name("tile_rows"), self.lanes_of(d), roundup(depth, self.unit))
        window = Slice(to.buffer, to.offset + c, to.strides)
        return (*packs, self.over_columns(d, self.product(window, rows, b, sizes, Scalar("scale"))))

    def lets(self, *arrays: str) -> Iterator[Let]:
        """Definitions from the table row of sequence b: offsets of arrays, lengths, bounds."""
        for name in (*arrays, "state", *(("mask",) if self.problem.mask else ())):
            yield Let(f"{name}_at", self.item(name))
        yield Let("item_queries", self.item("queries"))
        yield Let("item_keys", self.item("keys"))
        if self.problem.bounded:
            yield Let("low", self.item("low"))
            yield Let("high", self.item("high"))
        if self.problem.slopes:
            yield Let("shift", self.item("shift"))


def transposed(window: Slice) -> Slice:
    """A window with its axes exchanged."""
    return Slice(window.buffer, window.offset, window.strides[::-1])


def down(value: Expression, unit: int) -> Expression:
    """max(value, 0), rounded down to a multiple of unit."""
    least = maximum(value, 0)
    return least if unit == 1 else floor_to(least, unit)


def whole(size: int, unit: int) -> int:
    """size, rounded up to a multiple of unit."""
    return -(-size // unit) * unit
