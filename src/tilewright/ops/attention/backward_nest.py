"""The nests of attention's gradients: row sums of dO ∘ O, then dQ, dK and dV from scores computed again.

One task processes the blocks of keys of a head in order and accumulates into dQ: five products per
block. If that makes too few tasks for the threads, tasks of dQ for blocks of queries and tasks of dK and dV
for blocks of keys follow one another: seven products, of which two are the same. Either way no two tasks add
to the same gradient, blocks begin at the same queries and keys, and sums go through them in the same order:
no bit depends on the number of threads.
"""

from __future__ import annotations

import math

from tilewright.ir.expressions import (
    AllOf,
    AnyOf,
    Compare,
    Constant,
    Expression,
    Name,
    Relation,
    Scalar,
    Threads,
    ceildiv,
    maximum,
    minimum,
    roundup,
)
from tilewright.ir.nodes import If, Let, Loop, Program, Slice, Statement, Tile, TileForm, TileMatmul
from tilewright.ir.primitives.budget import Spend
from tilewright.machine.machine import Machine
from tilewright.macro.partition import THREAD_TASKS, parallel, share, tasks
from tilewright.ops.attention.backward_cut import BackwardBlocking, ScoreBlock, down, transposed, whole
from tilewright.ops.attention.backward_problem import AttentionBackward

#: Products per block of scores: in the single nest, and in two nests that each recompute the scores.
PRODUCTS = 5
PRODUCTS_APART = 7


def backward_sizes(problem: AttentionBackward) -> tuple[str, ...]:
    """Run-time sizes and strides in elements, in the order of the C signature.

    Head and row strides of every array, column strides of those that may have any; columns of dO, O and the
    gradients are adjacent.
    """
    strides = [f"{name}_{axis}" for name in "qkv" for axis in ("head", "row", "col")]
    strides += [f"{name}_{axis}" for name in ("out", "dout", "dq", "dk", "dv") for axis in ("head", "row")]
    masks = ("mask_head", "mask_row", "mask_col") if problem.mask else ()
    return ("batch", "kv_heads", "group", "queries", "keys", *strides, "state_head", *masks)


def backward_scalars(problem: AttentionBackward) -> tuple[str, ...]:
    """Factors of scores."""
    return ("scale", "softcap") if problem.softcap else ("scale",)


class _Nests(ScoreBlock):
    """The nests of one kernel."""

    def row_sums(self) -> Loop:
        """delta: the row sums of dO ∘ O, for every query of every head."""
        i, head, ib = Name("i"), Name("head"), Name("ib")
        sum_of_row = TileMatmul(
            c=self.state("delta", head, i),
            a=self.array("dout", head, i),
            b=self.array("out", head, i),
            rows=Constant(1),
            columns=Constant(1),
            depth=Constant(self.problem.value_dim),
            tile=Tile(1, 1, 1),
            alpha=Scalar(1.0),
            beta=Scalar(0.0),
            form=TileForm.DOT,
        )
        last = minimum(ib + Name("rows_step"), self.item("queries"))
        body: tuple[Statement, ...] = (
            *(Let(f"{name}_at", self.item(name)) for name in ("out", "dout", "state")),
            Loop("i", ib, last, Constant(1), (sum_of_row,)),
        )
        blocks = parallel("ib", Constant(0), Name("queries"), Name("rows_step"), *body)
        heads = parallel("head", Constant(0), Name("kv_heads") * Name("group"), Constant(1), blocks)
        return parallel("b", Constant(0), Name("batch"), Constant(1), heads)

    def by_queries(self) -> Loop:
        """dQ: for each block of queries, past the blocks of keys that it sees."""
        p, cut, ib, i, jb = self.problem, self.cut, Name("ib"), Name("i"), Name("jb")
        rows, head, d = Name("rows"), Name("head"), p.head_dim
        to = self.array("dq", head, i) if self.direct else self.sums("dq_sums", i - ib, d)
        tile: tuple[Statement, ...] = (
            Let("tile_rows", minimum(cut.mr, Name("rows_end") - i)),
            *self.weights_of_tile(ib, Constant(0), weights=False),
            *self.add_to_queries(to, Constant(0)),
        )
        block: tuple[Statement, ...] = (
            Spend(rows * (cut.b2 * (d + p.value_dim))),
            Let("columns", minimum(cut.b2, Name("item_keys") - jb)),
            *self.pack_keys(),
            *self.pack_key_panels(),
            Loop("i", ib, Name("rows_end"), Constant(cut.mr), tile),
        )
        first: Expression = Constant(0)
        end: Expression = Name("item_keys")
        if p.bounded:
            first = down(Name("low") + ib, cut.b2)
            end = minimum(end, Name("high") + Name("rows_end") - 1)
        body = (
            Let("head", Name("h") * Name("group") + Name("g")),
            *self.lets("q", "k", "v", "dout", "dq"),
            Let("rows", maximum(minimum(Name("rows_step"), Name("item_queries") - ib), 0)),
            Let("rows_end", ib + rows),
            *self.pack_rows(ib, rows),
            self._begin_queries(ib, Constant(0), rows),
            Loop("jb", first, end, Constant(cut.b2), block),
            *self._end_queries(ib, Constant(0), rows),
        )
        blocks = parallel("ib", Constant(0), Name("queries"), Name("rows_step"), *body)
        group = parallel("g", Constant(0), Name("group"), Constant(1), blocks)
        heads = parallel("h", Constant(0), Name("kv_heads"), Constant(1), group)
        return parallel("b", Constant(0), Name("batch"), Constant(1), heads)

    def _begin_queries(self, first: Expression, row: Expression, rows: Expression) -> Statement:
        """Zero the sums of dQ, which are in dQ or at a row of the sums buffer."""
        d = self.problem.head_dim
        if self.direct:
            return self.zero(self.array("dq", Name("head"), first), rows, d)
        return self.zero(self.sums("dq_sums", row, d), rows, whole(d, self.cut.nr))

    def _end_queries(self, first: Expression, row: Expression, rows: Expression) -> tuple[Statement, ...]:
        """Store dQ from its sums, if these are in a buffer."""
        if self.direct:
            return ()
        to = self.array("dq", Name("head"), first)
        return (self.finish(self.sums("dq_sums", row, self.problem.head_dim), to, rows, Scalar(1.0)),)

    def by_keys(self) -> Loop:
        """dK and dV: for each block of keys, past the blocks of queries that see it."""
        body = (*self.lets("q", "k", "v", "dout", "dk", "dv"), *self.key_block(to_queries=False))
        blocks = parallel("jb", Constant(0), Name("keys"), Constant(self.cut.b2), *body)
        heads = parallel("h", Constant(0), Name("kv_heads"), Constant(1), blocks)
        return parallel("b", Constant(0), Name("batch"), Constant(1), heads)

    def by_heads(self) -> Loop:
        """All three gradients: for each head of keys, block of keys after block of keys."""
        g, item_queries = Name("g"), Name("item_queries")

        def over_group(*body: Statement) -> Loop:
            head = Let("head", Name("h") * Name("group") + g)
            return Loop("g", Constant(0), Name("group"), Constant(1), (head, *body))

        first, row = Constant(0), g * item_queries
        ends = self._end_queries(first, row, item_queries)
        body = (
            *self.lets("q", "k", "v", "dout", "dq", "dk", "dv"),
            over_group(self._begin_queries(first, row, item_queries)),
            Loop(
                "jb", Constant(0), Name("item_keys"), Constant(self.cut.b2), self.key_block(to_queries=True)
            ),
            *((over_group(*ends),) if ends else ()),
        )
        heads = parallel("h", Constant(0), Name("kv_heads"), Constant(1), *body)
        return parallel("b", Constant(0), Name("batch"), Constant(1), heads)

    def key_block(self, *, to_queries: bool) -> tuple[Statement, ...]:
        """dK and dV of the block of keys at jb, head after head of the group; on request also dQ."""
        p, cut, ib, i, jb = self.problem, self.cut, Name("ib"), Name("i"), Name("jb")
        rows, columns, d, dv = Name("rows"), Name("columns"), p.head_dim, p.value_dim
        tile: tuple[Statement, ...] = (
            Let("tile_rows", minimum(cut.mr, Name("rows_end") - i)),
            *self.weights_of_tile(ib, i - ib, weights=True),
        )
        if to_queries:
            row = Name("g") * Name("item_queries") + i
            to = self.array("dq", Name("head"), i) if self.direct else self.sums("dq_sums", row, d)
            tile = (*tile, *self.add_to_queries(to, i - ib))
        queries, douts = (self.array(name, Name("head"), ib) for name in ("q", "dout"))
        block: tuple[Statement, ...] = (
            Let("rows", minimum(cut.b1, Name("item_queries") - ib)),
            Let("rows_end", ib + rows),
            Spend(rows * (cut.b2 * (d + dv))),
            *self.pack_rows(ib, rows),
            *self.pack_finite("query_panels", queries, rows),
            self.pack_b("dout_panels", transposed(douts), Constant(dv), rows),
            Loop("i", ib, Name("rows_end"), Constant(cut.mr), tile),
            *self._transposed_block(),
            Loop("j", Constant(0), columns, Constant(cut.mr), self.key_tile()),
        )
        first: Expression = Constant(0)
        end: Expression = Name("item_queries")
        if p.bounded:
            first = down(jb - Name("high") + 1, cut.b1)
            end = minimum(end, jb + columns - Name("low"))
        head = Let("head", Name("h") * Name("group") + Name("g"))
        blocks = Loop("ib", first, end, Constant(cut.b1), block)
        sums, sums_v = self.sums("dk_sums", Constant(0), d), self.sums("dv_sums", Constant(0), dv)
        return (
            Let("columns", maximum(minimum(cut.b2, Name("item_keys") - jb), 0)),
            *self.pack_keys(),
            *(self.pack_key_panels() if to_queries else ()),
            self.zero(sums, columns, whole(d, cut.nr)),
            self.zero(sums_v, columns, whole(dv, cut.nr)),
            Loop("g", Constant(0), Name("group"), Constant(1), (head, blocks)),
            self.finish(sums, self.array("dk", Name("h"), jb), columns, Scalar("scale")),
            self.finish(sums_v, self.array("dv", Name("h"), jb), columns, Scalar(1.0)),
        )

    def _transposed_block(self) -> tuple[Statement, ...]:
        """Panels of Pᵀ and dSᵀ, where tiles don't read them in place."""
        if self.plain:
            return ()
        sizes = (Name("columns"), Name("rows"))
        names = zip(("weights_turned", "gradients_turned"), self.names, strict=True)
        return tuple(
            self.pack_a(to, transposed(self.scores(name, Constant(0))), *sizes) for to, name in names
        )

    def key_tile(self) -> tuple[Statement, ...]:
        """dV += Pᵀ·dO and dK += dSᵀ·Q for the tile of keys at j, over the queries of a block that see it."""
        p, cut, j, c = self.problem, self.cut, Name("j"), Name("c")
        keys = minimum(cut.mr, Name("columns") - j)
        begin: Expression = Constant(0)
        end: Expression = Name("rows")
        if p.bounded:
            key = Name("jb") + j - Name("ib")
            begin = down(key - Name("high") + 1, self.unit)
            end = minimum(end, key + keys - Name("low"))
        seen, depth = Name("seen"), maximum(Name("seen_end") - Name("seen"), 0)
        deep = roundup(Name("rows"), self.unit)
        weights, gradients = self.names
        loops = []
        for name, panels, source, packed, width in (
            ("dv_sums", "dout_panels", weights, "weights_turned", p.value_dim),
            ("dk_sums", "query_panels", gradients, "gradients_turned", p.head_dim),
        ):
            rows = self.sums(name, j, width)
            if self.plain:
                block = transposed(self.scores(source, seen))
                a = Slice(block.buffer, block.offset + j, block.strides)
            else:
                a = self.panel_a(packed, j, deep, seen)
            b = self.panel_b(panels, c, deep, seen)
            sizes = (keys, self.lanes_of(width), roundup(depth, self.unit))
            product = self.product(Slice(name, rows.offset + c, rows.strides), a, b, sizes, Scalar(1.0))
            loops.append(self.over_columns(width, product))
        return (Let("seen", begin), Let("seen_end", end), *loops)

    def together(self) -> AnyOf:
        """Condition under which whole-head tasks are faster: their rounds at five products, against seven."""
        heads = Name("batch") * Name("kv_heads")
        rounds = ceildiv(heads, Threads()) * Threads()
        terms = [Compare(Relation.LE, rounds * PRODUCTS, heads * PRODUCTS_APART)]
        if not self.direct:
            sums = Name("group") * Name("queries") * whole(self.problem.head_dim, self.cut.nr)
            terms.append(Compare(Relation.LE, sums, Constant(self.kept_sums)))
        return AnyOf((AllOf(tuple(terms)),))


def build_backward(problem: AttentionBackward, cut: BackwardBlocking, machine: Machine, name: str) -> Program:
    """The tile IR of attention's gradients.

    Examples
    --------
    >>> from tilewright.machine.catalog import find_machine
    >>> from tilewright.ops.attention.backward_cut import choose_backward
    >>> machine, problem = find_machine("znver5"), AttentionBackward(64)
    >>> program = build_backward(problem, choose_backward(problem, machine), machine, "g")
    >>> [buffer.name for buffer in program.arguments]
    ['q', 'k', 'v', 'out', 'dout', 'dq', 'dk', 'dv', 'items', 'lse', 'delta']
    """
    nests = _Nests(problem, cut, machine)
    # Blocks of queries are cut where heads are too few for the threads.
    heads = Name("batch") * Name("kv_heads") * Name("group")
    parts = ceildiv(tasks(THREAD_TASKS), maximum(heads, 1))
    unit = math.lcm(cut.mr, nests.unit)
    step = Let("rows_step", minimum(cut.rows, share(Name("queries"), unit, parts)))
    gradients = If(nests.together(), (nests.by_heads(),), (nests.by_queries(), nests.by_keys()))
    return Program(
        name=name,
        sizes=backward_sizes(problem),
        scalars=backward_scalars(problem),
        buffers=nests.buffers(),
        body=(step, nests.row_sums(), gradients),
    )
