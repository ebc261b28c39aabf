"""The function that runs a product by tables: fills them, checks where rows are, calls the kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from tilewright.compiler.interface import SCRATCH_ALIGNMENT
from tilewright.llvm.build import Function, Module
from tilewright.llvm.convert import Convert
from tilewright.llvm.values import (
    INT1,
    INT64,
    POINTER,
    VOID,
    Value,
    element_type,
    int64,
    memory_type,
    null,
    zero,
)
from tilewright.loops.llvm.symbols import Reloaded, Rows, SsaValue, split_rows
from tilewright.loops.nests.nest import Injective, ProductDimension, Within
from tilewright.loops.nests.polynomial import Index, Polynomial, Symbol
from tilewright.loops.splice.arithmetic import MOST_COUNTED, Invariants, factor_value, least, symbols_below
from tilewright.loops.splice.calls import (
    invariants_of,
    named_within,
    parameters_of,
    read_memory,
    values_of,
)
from tilewright.loops.splice.conditions import Conditions
from tilewright.loops.splice.context import Context, PanelAllocator
from tilewright.loops.splice.kernels import EmbeddedKernel
from tilewright.loops.splice.row_conditions import RowConditions
from tilewright.loops.splice.table_code import ENTRY, TableCode, chunk_of, entry, put
from tilewright.loops.splice.table_operands import FusedDimensions, fused_dimensions, origin_of, row_pointer
from tilewright.loops.splice.table_plan import LocatedOperand, TablePlan, names_row_pointers
from tilewright.loops.splice.threads import TeamOfCall, team_of_call
from tilewright.macro.blocking import Blocking
from tilewright.ops.contraction.tables.nest import TABLES
from tilewright.ops.contraction.tables.op import choose_tables
from tilewright.ops.contraction.tables.tables import L2_SHARE

#: Work is counted up to this: its product with another size does not overflow.
MOST_WORK = 1 << 40


def define_table_call(
    module: Module, names: tuple[str, str], plan: TablePlan, kernel: EmbeddedKernel, context: Context
) -> tuple[SsaValue, ...]:
    """A function that runs a product and returns true, or returns false without any effect.

    Parameters
    ----------
    names : of the function, and what those of the functions that it shares with others begin with.
    context : properties of the program.

    Returns
    -------
    The program values that it takes, in order.
    """
    product = plan.product
    symbols = tuple(dict.fromkeys(symbols_below(_named(plan))))
    taken = values_of(symbols)
    words = (module.attributes, context.attributes, "noinline" if kernel.takes_team else "")
    attributes = " ".join(filter(None, words))
    f = module.define(names[0], INT1, parameters_of(taken), exported=True, attributes=attributes)
    invariants = invariants_of(f, taken)
    code = TableCode(module, names[1])
    rows = names_row_pointers(product)
    with ExitStack() as checked:
        if any(isinstance(symbol, Reloaded) for symbol in symbols):
            read_memory(product, invariants, checked)
        counts = {dimension: invariants.count(dimension.extent) for dimension in product.dimensions}
        work = _work(f, counts)
        # Every loop runs, and so every pointer is read by the program.
        checked.enter_context(f.when(f.icmp("<=", int64(plan.least_work), work)))
        conditions = Conditions(invariants, product, counts)
        reloaded = [symbol for symbol in symbols if isinstance(symbol, Reloaded)]
        if rows:
            for condition in product.conditions:
                if isinstance(condition, Within):
                    conditions.within(condition)
                elif isinstance(condition, Injective) and not isinstance(product.c.memory.base, Rows):
                    conditions.injective()
        else:
            conditions.write()
            for one in reloaded:
                if one.base == product.c.memory.base or not product.c.memory.private:
                    conditions.unwritten(one)
        for symbol in symbols:
            invariants.raw(symbol)
        conditions.require(invariants.exact.right)
        checked.enter_context(f.when(conditions.holds))
        call = _TableCall(f, invariants, plan, counts, code, kernel)
        with team_of_call(f, kernel, context.teams, call.work()) as team:
            holds = _run(call, team, context.memory, reloaded if rows else None)
        f.ret(holds)
    f.ret(Value(INT1, "false"))
    return taken


def _run(
    call: _TableCall, team: TeamOfCall, memory: PanelAllocator, reloaded: Sequence[Reloaded] | None
) -> Value:
    """Fill the tables and run the kernel if they hold; returns whether it ran.

    Parameters
    ----------
    reloaded : values in memory that rows behind pointers may not overlap; None if there are no such rows.
    """
    f = call.f
    block = f.call(f.module.declare(memory.allocate, POINTER, (INT64,)), [call.bytes(team)])
    with f.once_if(f.icmp("!=", block, null()), [Value(INT1, "false")]) as ((_,), advance):
        call.fill(block, team)
        holds = call.even()
        if reloaded is not None:
            holds = f.and_(holds, call.rows().hold(reloaded))
        with f.when(holds):
            call.write(block, team)
        if memory.release is not None:
            f.call(f.module.declare(memory.release, VOID, (POINTER,)), [block])
        advance([holds])
    return advance.results[0]


def _work(f: Function, counts: Mapping[ProductDimension, Value]) -> Value:
    """Multiply-adds; 0 if some loop does not run."""
    work = int64(1)
    for count in counts.values():
        work = least(f, f.mul(work, least(f, count, int64(MOST_COUNTED))), int64(MOST_WORK))
    return work


def _named(plan: TablePlan) -> Iterator[Symbol]:
    """The symbols in a plan's records; of rows, those of their table."""
    product = plan.product
    for one in plan.operands:
        yield one.base
        yield from _symbols(*split_rows(one.operand.offset))
    for dimension in product.dimensions:
        strides = (part for name in "abc" for part in split_rows(getattr(dimension, name)))
        yield from _symbols(*strides, *(bound.span for bound in dimension.extent.bounds))
    for factor in (product.alpha, product.beta):
        yield from (scalar.symbol for scalar in factor.scalars)
    for condition in product.conditions:
        if isinstance(condition, Within):
            yield from named_within(condition)


def _symbols(*values: Polynomial) -> Iterator[Symbol]:
    for value in values:
        yield from (symbol for symbol in sorted(value.symbols) if not isinstance(symbol, Index))


class _TableCall:
    """The tables of a product in its function, and the kernel call.

    Attributes
    ----------
    tables : the tables by name, with offsets in elements of lanes and depths beside those of the kernel:
        "m.a", "n.c".
    """

    def __init__(
        self,
        f: Function,
        invariants: Invariants,
        plan: TablePlan,
        counts: Mapping[ProductDimension, Value],
        code: TableCode,
        kernel: EmbeddedKernel,
    ) -> None:
        self.f, self.invariants, self.plan, self.counts = f, invariants, plan, counts
        self._code, self._kernel = code, kernel
        cut = choose_tables(plan.problem, plan.machine)
        self._cut: Blocking = cut
        self.sizes = {fused.letter: self._size(fused) for fused in fused_dimensions(plan)}
        self._panels = {
            "m": self._bound(fused_dimensions(plan)[0]),
            "n": self._bound(fused_dimensions(plan)[1]),
        }
        self.tables: dict[str, Value] = {}
        #: Bits of offsets that are no multiples of the element size.
        self._odd = f.alloca(INT64, 1, ENTRY)
        f.store(int64(0), self._odd, ENTRY)

    def _size(self, fused: FusedDimensions) -> Value:
        size = int64(1)
        for dimension in fused.dimensions:
            size = self.f.mul(size, self.counts[dimension])
        return size

    def work(self) -> Value:
        """Multiply-adds of one call of the kernel."""
        inside = (*self.plan.m, *self.plan.n, *self.plan.k)
        return _work(self.f, {one: self.counts[one] for one in inside})

    def _width(self, letter: str) -> tuple[int, int]:
        """Lanes of a panel, and of its unit: columns are computed in whole vectors."""
        lanes = self.plan.machine.isa.lanes(self.plan.problem.sums)
        return (self._cut.mr, 1) if letter == "m" else (self._cut.nr, lanes)

    def _part(self, fused: FusedDimensions) -> Value:
        """Where panels are cut: at the ends of the last dimension, if that leaves few lanes empty."""
        f, total = self.f, self.sizes[fused.letter]
        if len(fused.dimensions) < 2:
            return total
        last = self.counts[fused.dimensions[-1]]
        width, unit = self._width(fused.letter)
        chunk = chunk_of(f, last, width, unit)
        computed = f.mul(f.ceildiv(last, chunk), chunk)
        few = f.icmp("<=", f.mul(f.sub(computed, last), MOST_EMPTY), last)
        return f.select(few, last, total)

    def _bound(self, fused: FusedDimensions) -> Value:
        """Panels of fused dimensions."""
        f, part = self.f, self._part(fused)
        width, unit = self._width(fused.letter)
        each = f.ceildiv(part, chunk_of(f, part, width, unit))
        return f.mul(f.udiv(self.sizes[fused.letter], part), each)

    def _lengths(self) -> dict[str, Value]:
        """Entries of every table."""
        f = self.f
        lengths = {
            f"{fused.letter}.{name}": self.sizes[fused.letter]
            for fused in fused_dimensions(self.plan)
            for name in fused.operands
        }
        lengths |= {"k.a_run": self.sizes["k"], "k.b_run": self.sizes["k"]}
        for letter in "mn":
            panels, (width, _) = self._panels[letter], self._width(letter)
            lengths |= dict.fromkeys(
                (f"{letter}.to", f"{letter}.c_to"), f.mul(panels, width)
            )  # lanes of the operand and of C
            lengths |= dict.fromkeys((f"{letter}.counts", f"{letter}.steps", f"{letter}.c_steps"), panels)
        if self.plan.narrows:
            elements = f.mul(self.sizes["m"], self.sizes["n"])
            kept = f.ceildiv(f.mul(elements, self.plan.problem.sums.size), int64(ENTRY))
            lengths |= {"sums": kept, "m.sums": self.sizes["m"], "n.sums": self.sizes["n"]}
        most = f.maximum(self.sizes["k"], f.maximum(self._panels["m"], self._panels["n"]))
        return lengths | {"zeros": f.add(most, 1)}

    def bytes(self, team: TeamOfCall) -> Value:
        """Memory of the tables and of the kernel."""
        total = self.f.add(team.scratch_bytes, ENTRY)
        for length in self._lengths().values():
            total = self.f.add(total, self.f.mul(length, ENTRY))
        return total

    def fill(self, block: Value, team: TeamOfCall) -> None:
        """Fill the tables, which begin a page behind the kernel's memory at the latest."""
        f = self.f
        place = f.at(block, f.and_(f.add(team.scratch_bytes, ENTRY - 1), int64(-ENTRY)))
        for name, length in self._lengths().items():
            self.tables[name] = place
            place = f.at(place, f.mul(length, ENTRY))
        with f.loop(int64(0), self._lengths()["zeros"], int64(1)) as index:
            put(f, int64(0), self.tables["zeros"], index)
        operands = {one.name: one for one in self.plan.operands}
        for fused in fused_dimensions(self.plan):
            for name in fused.operands:
                self._fill(fused, operands[name], self.tables[f"{fused.letter}.{name}"])
        if self.plan.narrows:
            for letter, step in (("m", self.sizes["n"]), ("n", int64(1))):
                with f.loop(int64(0), self.sizes[letter], int64(1)) as index:
                    put(f, f.mul(index, step), self.tables[f"{letter}.sums"], index)
        for name in "ab":
            f.call(self._code.runs, [self.tables[f"k.{name}"], self.sizes["k"], self.tables[f"k.{name}_run"]])
        for fused in fused_dimensions(self.plan)[:2]:
            letter, part = fused.letter, self._part(fused)
            width, unit = self._width(letter)
            sizes = [self.sizes[letter], part, int64(width), chunk_of(f, part, width, unit)]
            result = "sums" if self.plan.narrows else "c"
            names = (fused.operands[0], result, "to", "c_to", "counts", "steps", "c_steps")
            f.call(self._code.panels, [*sizes, *(self.tables[f"{letter}.{name}"] for name in names)])

    def rows(self) -> RowConditions:
        """Conditions on rows behind pointers."""
        invariants = self.f, self.invariants
        return RowConditions(*invariants, self.plan, self.counts, self._code, self.tables, self.sizes)

    def _fill(self, fused: FusedDimensions, one: LocatedOperand, table: Value) -> None:
        """Offsets of an operand over all indices of fused dimensions, the last one fastest."""
        f, integer = self.f, self.invariants.integer
        size = one.dtype.size
        start = split_rows(one.operand.offset)
        begin = f.ptrtoint(origin_of(self.f, self.invariants, one))
        pointers = one.rows is not None and any(map(one.steps_rows, fused.dimensions))
        with ExitStack() as loops:
            place, in_table, in_row = int64(0), int64(0), int64(0)
            for dimension in fused.dimensions:
                count = self.counts[dimension]
                index = loops.enter_context(f.loop(int64(0), count, int64(1)))
                place = f.add(f.mul(place, count), index)
                table_step, row_step = (integer(part, f) for part in split_rows(one.stride(dimension)))
                in_table = f.add(in_table, f.mul(index, table_step))
                in_row = f.add(in_row, f.mul(index, row_step))
            if pointers:
                found = row_pointer(f, self.invariants, one, f.add(integer(start[0], f), in_table))
                address = f.add(f.ptrtoint(found), f.add(integer(start[1], f), in_row))
                in_row = f.sub(address, begin)
            f.store(f.or_(f.load(INT64, self._odd, ENTRY), f.and_(in_row, int64(size - 1))), self._odd, ENTRY)
            put(f, f.ashr(in_row, int64(size.bit_length() - 1)), table, place)

    def even(self) -> Value:
        """Whether all offsets are whole elements."""
        return self.f.icmp("==", self.f.load(INT64, self._odd, ENTRY), 0)

    def write(self, block: Value, team: TeamOfCall) -> None:
        """The loops around the kernel, and its call."""
        f, product, sums = self.f, self.plan.product, self.plan.problem.sums
        up = f.add(f.ptrtoint(block), SCRATCH_ALIGNMENT - 1)
        ahead = f.sub(f.and_(up, int64(-SCRATCH_ALIGNMENT)), f.ptrtoint(block))
        alpha, beta = (factor_value(f, self.invariants, one, sums) for one in (product.alpha, product.beta))
        given = {
            "alpha": alpha,
            "beta": zero(element_type(sums)) if self.plan.narrows else beta,
            "scratch": f.at(block, ahead),
            "team": team.team,
            "batch": int64(1),
            "m": f.mul(self._panels["m"], self._cut.mr),
            "n": f.mul(self._panels["n"], self._cut.nr),
            "k": self.sizes["k"],
            "nc": self._columns(),
        }
        given |= {name: self.tables[place] for name, place in _PLACES.items()}
        with self._around() as pointers:
            callee = f.module.declare(self._kernel.name, VOID, [kind for _, kind in self._kernel.arguments])
            whole = given | pointers
            if self.plan.narrows:
                whole["out"] = self.tables["sums"]
            f.call(callee, [whole[name] for name, _ in self._kernel.arguments])
            if self.plan.narrows:
                self._store_sums(pointers["out"], beta)

    def _store_sums(self, out: Value, beta: Value) -> None:
        """Convert final sums to the type of C, once."""
        f, tables, sums = self.f, self.tables, self.plan.problem.sums
        c = self.plan.operands[2].dtype
        convert, some = Convert(f, half=False), f.not_equal(beta, zero(element_type(sums)))
        with f.loop(int64(0), self.sizes["m"], int64(1)) as row:
            begin, first = entry(f, tables["m.c"], row), f.mul(row, self.sizes["n"])
            with f.loop(int64(0), self.sizes["n"], int64(1)) as column:
                source = f.at(tables["sums"], f.mul(f.add(first, column), sums.size))
                place = f.at(out, f.mul(f.add(begin, entry(f, tables["n.c"], column)), c.size))
                value = f.load(element_type(sums), source, sums.size)
                with f.once_if(some, [value]) as ((final,), advance):
                    old = convert(f.load(memory_type(c), place, c.size), c, sums)
                    advance([f.plus(final, f.times(beta, old))])
                f.store(convert(advance.results[0], sums, c), place, c.size)

    @contextmanager
    def _around(self) -> Iterator[dict[str, Value]]:
        """The loops around the call; yields the operands."""
        f, integer = self.f, self.invariants.integer
        found = {one.name: origin_of(self.f, self.invariants, one) for one in self.plan.operands}
        with ExitStack() as loops:
            for dimension in self.plan.around:
                index = loops.enter_context(f.loop(int64(0), self.counts[dimension], int64(1)))
                found = {
                    name: f.at(place, f.mul(index, integer(getattr(dimension, name), f)))
                    for name, place in found.items()
                }
            yield {"out": found["c"], "a": found["a"], "b": found["b"]}

    def _columns(self) -> Value:
        """Columns that are packed at a time; see `tables._columns`."""
        f, cut = self.f, self._cut
        rows, size = f.mul(self._panels["m"], cut.mr), self.plan.problem.sums.size
        lane = f.mul(f.minimum(self.sizes["k"], int64(cut.kc)), size)
        room = f.sub(int64(int(self.plan.machine.l2.size * L2_SHARE)), f.mul(rows, lane))
        panels = f.maximum(f.udiv(f.maximum(room, int64(0)), f.mul(lane, cut.nr)), int64(1))
        few = f.minimum(f.mul(panels, cut.nr), int64(cut.nc))
        return f.select(f.icmp("<", int64(cut.mc), rows), int64(cut.nc), few)


#: A panel may lack one in so many of its lanes where a dimension ends, rather than go on in the next row.
MOST_EMPTY = 5

#: Where the tables of the kernel are.
_PLACES = {
    **dict.fromkeys(("ab", "bb", "cb", "ak_turn", "bk_turn", "am_shift", "bn_shift"), "zeros"),
    "am": "m.to",
    "cm": "m.c_to",
    "bn": "n.to",
    "cn": "n.c_to",
    "ak": "k.a",
    "bk": "k.b",
    "ak_run": "k.a_run",
    "bk_run": "k.b_run",
    "m_count": "m.counts",
    "n_count": "n.counts",
    "am_step": "m.steps",
    "bn_step": "n.steps",
    "cm_step": "m.c_steps",
    "cn_step": "n.c_steps",
}
assert set(_PLACES) == set(TABLES)
