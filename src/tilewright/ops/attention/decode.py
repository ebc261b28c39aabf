"""The nest of attention with few queries: reads all keys of a head once, at memory bandwidth.

Nothing but the queries is packed. Keys are split into runs of constant length, each of which is a task with a
state of its own (maxima, sums, unfinished results); a second nest merges the states of a head in the order of
its keys. Which keys make a run depends on nothing else, so that neither threads nor other sequences change a
result.

Within a run, blocks of keys and values alternate: while the scores of one are computed its values are on
their way from memory, and while these are summed the next keys. If the heads of one key are adjacent,
a task takes them through a run side by side, so that memory is read in order.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.ir.expressions import (
    AllOf,
    AnyOf,
    Compare,
    Constant,
    Expression,
    Name,
    Relation,
    Scalar,
    TableEntry,
    ceildiv,
    maximum,
    minimum,
)
from tilewright.ir.nodes import Buffer, If, Let, Loop, Pack, Program, Slice, Space, Statement
from tilewright.ir.primitives.attention import Begin, KeyScores, Merge, Normalise, Softmax, SumValues
from tilewright.machine.machine import Machine
from tilewright.macro.partition import parallel
from tilewright.ops.attention.cut import MOST_ROWS, STATE, DecodeCut
from tilewright.ops.attention.nest import (
    STRIP_PADDING,
    attention_arguments,
    floor_to,
    item_lets,
    item_number,
    page_of,
    score_changes,
)
from tilewright.ops.attention.problem import Attention, attention_scalars, attention_sizes
from tilewright.spec.dtype import BF16


def decode_sizes(problem: Attention) -> tuple[str, ...]:
    """Run-time sizes in the order of the C signature.

    `splits` is how many runs the longest sequence has, `heads_together` how many heads of keys one task takes
    through a run side by side: one, or several where the heads of one key are adjacent in memory.
    """
    return (*attention_sizes(problem), "splits", "heads_together")


def decode_arguments(problem: Attention) -> tuple[Buffer, ...]:
    """Argument buffers in the order of the C signature: `partials` holds the states of all runs."""
    return (*attention_arguments(problem), Buffer("partials", problem.acc, Space.ARGUMENT))


class _Nest:
    """The loops of one problem on one machine."""

    def __init__(self, problem: Attention, cut: DecodeCut, machine: Machine) -> None:
        self.problem, self.cut = problem, cut
        self.acc = problem.acc
        #: Queries and weights stay bfloats where the row adds products of pairs of them.
        self.operand = self.acc
        if machine.isa.pair_tile(problem.dtype, problem.kv_dtype) is not None:
            self.operand = BF16
        self.row = cut.block + STRIP_PADDING

    def buffers(self) -> tuple[Buffer, ...]:
        """Scratch of a thread."""
        found = [
            ("q_pack", self.operand, MOST_ROWS * self.cut.depth),
            ("scores", self.acc, MOST_ROWS * self.row),
            ("weights", self.operand, MOST_ROWS * self.row),
        ]
        return tuple(Buffer(name, dtype, Space.THREAD, size) for name, dtype, size in found)

    # --- expressions and slices -----------------------------------------------------------------

    def state(self, split: Expression, row: Expression) -> tuple[Slice, Slice, Slice]:
        """Maxima, sums and unfinished results of a run, from a row on."""
        cut, rows = self.cut, Name("group") * Name("queries")
        run = (Name("b") * Name("kv_heads") + Name("kv")) * Name("splits") + split
        first = run * rows * (cut.wide + STATE)
        number = (Constant(1), Constant(0))
        return (
            Slice("partials", first + row, number),
            Slice("partials", first + rows + row, number),
            Slice("partials", first + rows * STATE + row * cut.wide, (Constant(cut.wide), Constant(1))),
        )

    def strip(self, buffer: str, row: Expression, column: Expression | int = 0) -> Slice:
        """Scores or weights of a block."""
        return Slice(buffer, row * self.row + column, (Constant(self.row), Constant(1)))

    def stored(self, buffer: str, key: Expression, heads_on: Expression | None = None) -> Slice:
        """Keys or values from `first` on that are adjacent in memory, of this head or a later one."""
        head, row = Name(f"{buffer}_head"), Name(f"{buffer}_row")
        number_of_head = Name("kv") if heads_on is None else Name("kv") + heads_on
        first = Name(f"{buffer}0") + number_of_head * head
        if self.problem.paged:
            page = page_of(key)
            number = TableEntry("pages", Name("pages0") + page)
            first = first + number * Name(f"{buffer}_page") + (key - page * Name("page")) * row
        else:
            first = first + key * row
        return Slice(buffer, first, (row, Constant(1)))

    # --- statements -----------------------------------------------------------------------------

    def program(self, name: str) -> Program:
        """The whole program."""
        zero, one = Constant(0), Constant(1)
        runs = parallel("s", zero, Name("splits"), one, *self.run())
        heads = parallel("kg", zero, Name("kv_heads"), Name("heads_together"), runs)
        merged = parallel("kv", zero, Name("kv_heads"), one, *self.merge())
        return Program(
            name=name,
            sizes=decode_sizes(self.problem),
            scalars=attention_scalars(self.problem),
            buffers=(*decode_arguments(self.problem), *self.buffers()),
            body=(
                parallel("b", zero, Name("batch"), one, heads),
                parallel("b", zero, Name("batch"), one, merged),
            ),
        )

    def run(self) -> tuple[Statement, ...]:
        """All rows past the keys of one run; rows that do not fit go past them once more."""
        cut = self.cut
        first: Expression = Name("s") * cut.split
        last: Expression = minimum(first + cut.split, Name("keys0"))
        if self.problem.bounded:
            first = maximum(first, floor_to(maximum(Name("low0"), 0), cut.block))
            last = minimum(last, Name("high0") + Name("queries0") - 1)
        lets = [*item_lets(self.problem), Let("begin", first), Let("end", last)]
        body = (*lets, *self.row_blocks(*self.rows()))
        # The first run has the state of rows that see nothing.
        there = (Compare(Relation.LT, Name("s") * cut.split, maximum(item_number("keys"), 1)),)
        return (If(AnyOf((AllOf(there),)), body),)

    def row_blocks(self, *body: Statement) -> tuple[Statement, ...]:
        """Statements for as many heads and queries at a time as have room for their states.

        The states of a block are contiguous, head by head, after those of earlier blocks.
        """
        hb, ib, queries = Name("hb"), Name("ib"), Name("queries0")
        heads_step, queries_step = Name("heads_step"), Name("queries_step")
        lets = (
            Let("heads", minimum(heads_step, Name("group") - hb)),
            Let("queries_here", minimum(queries_step, queries - ib)),
            Let("rows", Name("heads") * Name("queries_here")),
            Let("first_row", hb * queries + Name("heads") * ib),
        )
        blocks = Loop("ib", Constant(0), queries, queries_step, (*lets, *body))
        return (
            Let("heads_step", minimum(Name("group"), MOST_ROWS)),
            # MOST_ROWS / heads_step, rounded down.
            Let("queries_step", ceildiv(Constant(MOST_ROWS + 1) - heads_step, heads_step)),
            Loop("hb", Constant(0), Name("group"), heads_step, (blocks,)),
        )

    def each_head(self, *body: Statement) -> Loop:
        """Statements for every head of a block of rows; the rows of a head are adjacent."""
        head = Let("head", Name("kv") * Name("group") + Name("hb") + Name("g"))
        return Loop("g", Constant(0), Name("heads"), Constant(1), (head, *body))

    def rows(self) -> tuple[Statement, ...]:
        """A block of rows past the keys of a run."""
        cut, jb, begin, end, keys = self.cut, Name("jb"), Name("begin"), Name("end"), Name("keys")
        q = Slice("q_pack", Constant(0), (Constant(cut.depth), Constant(1)))
        _, _, out = self.state(Name("s"), Name("first_row"))
        # Next read: the next keys of the head, or the same keys of the next head. A table of pages is not
        # looked at outside of the run.
        next_head = minimum(Name("heads_together") - 1, 1)
        following = minimum(jb + (Constant(1) - next_head) * cut.block, end - 1)

        def scores(key: Expression, count: Expression) -> Statement:
            to, depth = self.strip("scores", Constant(0), key - jb), Constant(self.problem.head_dim)
            return KeyScores(to, q, self.stored("k", key), self.stored("v", jb), Name("rows"), count, depth)

        def sums(key: Expression, count: Expression) -> Statement:
            weights, columns = self.strip("weights", Constant(0), key - jb), Constant(self.problem.value_dim)
            values, fetched = self.stored("v", key), self.stored("k", following, next_head)
            return SumValues(out, weights, values, fetched, Name("rows"), count, columns)

        # Queries of several heads take turns in the room of one.
        packing = AnyOf(
            (
                AllOf((Compare(Relation.EQ, jb, begin),)),
                AllOf((Compare(Relation.LT, Constant(1), Name("heads_together")),)),
            )
        )
        head = (
            If(packing, (self.each_head(self.pack_queries()),)),
            self.together(jb, keys, scores),
            self.weights(jb, keys),
            self.together(jb, keys, sums),
        )
        block = (Let("keys", minimum(cut.block, end - jb)), self.each_kv_head(*head))
        blocks = Loop("jb", begin, end, Constant(cut.block), block)
        return (self.each_kv_head(self.each_head(*self.begin())), blocks)

    def each_kv_head(self, *body: Statement) -> Loop:
        """Statements for every head of keys of a task."""
        first = Name("kg")
        end = minimum(first + Name("heads_together"), Name("kv_heads"))
        return Loop("kv", first, end, Constant(1), body)

    def local_row(self) -> Expression:
        """The first row of a head in the buffers of a thread."""
        return Name("g") * Name("queries_here")

    def state_of_head(self, split: Expression) -> tuple[Slice, Slice, Slice]:
        """The state of a head's queries of this block."""
        return self.state(split, Name("first_row") + self.local_row())

    def pack_queries(self) -> Pack:
        """Queries of a head as rows of an operand."""
        cut = self.cut
        offset = Name("q0") + Name("head") * Name("q_head") + Name("ib") * Name("q_row")
        rows, depth = Name("queries_here"), Constant(self.problem.head_dim)
        packed = Slice("q_pack", self.local_row() * cut.depth, (Constant(1), Constant(1)))
        row, column = Name("q_row"), Name("q_col")
        if self.problem.head_dim == cut.depth:  # one panel, whose lanes are the elements: copied in vectors
            return Pack(packed, Slice("q", offset, (column, row)), depth, rows, cut.depth)
        # A panel for each query, with zeros at its end.
        return Pack(packed, Slice("q", offset, (row, column)), rows, depth, 1, 1, cut.depth)

    def begin(self) -> tuple[Statement, ...]:
        """The state of a head before any key: a sink is in that of the first run."""
        rows, wide = Name("queries_here"), Constant(self.cut.wide)
        row_max, row_sum, out = self.state_of_head(Name("s"))
        begin = (Begin(row_max, row_sum, out, rows, wide),)
        if not self.problem.sinks:
            return begin
        sink = Slice("sinks", Name("head"), (Constant(0), Constant(0)))
        with_sink = (Begin(row_max, row_sum, out, rows, wide, sink),)
        first = AnyOf((AllOf((Compare(Relation.EQ, Name("s"), Constant(0)),)),))
        return (If(first, with_sink, begin),)

    def together(
        self, first: Expression, count: Expression, make: Callable[[Expression, Expression], Statement]
    ) -> Statement:
        """A statement on a range of keys; repeated for each page if keys are paged."""
        if not self.problem.paged:
            return make(first, count)
        page, number, key = Name("page"), Name("p"), Name("page_key")
        inside = (
            Let("page_key", maximum(first, number * page)),
            Let("page_keys", minimum(first + count, number * page + page) - key),
            make(key, Name("page_keys")),
        )
        return Loop("p", page_of(first), page_of(first + count - 1) + 1, Constant(1), inside)

    def weights(self, column: Expression, keys: Expression) -> Statement:
        """Softmax of all rows at once; head by head where what they see, or how, differs."""
        problem = self.problem
        if problem.bounded or problem.slopes or problem.mask is not None:
            return self.each_head(self.softmax(column, keys, self.local_row(), Name("queries_here")))
        return self.softmax(column, keys, Constant(0), Name("rows"))

    def softmax(self, column: Expression, keys: Expression, first: Expression, rows: Expression) -> Softmax:
        """Scores of some rows, of one head's queries where they differ, become weights."""
        given = score_changes(self.problem, Name("ib"), column)
        row_max, row_sum, out = self.state(Name("s"), Name("first_row") + first)
        return Softmax(
            self.strip("scores", first),
            self.strip("weights", first),
            row_max,
            row_sum,
            out,
            rows,
            keys,
            keys,
            Constant(self.cut.wide),
            Scalar("scale"),
            **given,  # type: ignore[arg-type]
        )

    def merge(self) -> tuple[Statement, ...]:
        """The states of a head's runs, in their order, and its results."""
        cut, zero = self.cut, Constant(0)
        whole = (Name("group") * Name("queries0"), Constant(cut.wide))
        merge = Merge(*self.state(zero, zero), *self.state(Name("s"), zero), *whole)
        runs = ceildiv(Name("keys0"), Constant(cut.split))
        row_max, row_sum, out = self.state_of_head(zero)
        head, row = Name("head"), Name("ib")
        to = Name("out0") + head * Name("o_head") + row * Name("o_row")
        state = Name("state0") + head * Name("state_head") + row
        number = (Constant(1), zero)
        normalise = Normalise(
            Slice("out", to, (Name("o_row"), Name("o_col"))),
            out,
            row_max,
            row_sum,
            Slice("row_max", state, number),
            Slice("row_sum", state, number),
            Name("queries_here"),
            Constant(self.problem.value_dim),
        )
        return (
            *item_lets(self.problem),
            Loop("s", Constant(1), runs, Constant(1), (merge,)),
            *self.row_blocks(self.each_head(normalise)),
        )


def build_decode(problem: Attention, cut: DecodeCut, machine: Machine, name: str) -> Program:
    """The tile IR of attention with few queries."""
    return _Nest(problem, cut, machine).program(name)
