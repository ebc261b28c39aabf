"""The function that runs a distributed nest: checks conditions, then runs products and loops in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.values import INT1, Value, int64
from tilewright.loops.llvm.symbols import Reloaded, RowDistance, Rows, SsaValue
from tilewright.loops.nests.nest import (
    Access,
    Assign,
    CountedLoop,
    InvariantScalar,
    Load,
    MatrixProduct,
    Statement,
    Within,
)
from tilewright.loops.nests.nest import Value as Tree
from tilewright.loops.nests.pointwise import parts_of
from tilewright.loops.nests.polynomial import Index, Polynomial, Symbol
from tilewright.loops.nests.sequence import (
    Distribution,
    Footprint,
    LoopStep,
    ProductStep,
    Step,
    StripStep,
    targets,
)
from tilewright.loops.nests.shared import STRIP_BYTES
from tilewright.loops.splice.arithmetic import MOST_COUNTED, Invariants, least, most, symbols_below
from tilewright.loops.splice.calls import (
    invariants_of,
    named_by,
    named_within,
    parameters_of,
    spans_of,
    symbols_in,
    values_of,
)
from tilewright.loops.splice.conditions import TRUE, Conditions, Interval, apart
from tilewright.loops.splice.statements import Statements
from tilewright.records import dataclass

#: Multiply-adds of the largest product, or iterations over strips, below which the program's loops run.
LEAST_WORK = 4096


@dataclass(frozen=True)
class ProductCall:
    """The function of one product, and the program values that it takes."""

    callee: Callee
    taken: tuple[SsaValue, ...]


def program_values(distribution: Distribution) -> tuple[SsaValue, ...] | None:
    """The program values that a distribution needs; None if some are in memory that it may write.

    That includes pointers to rows, of which dependences between statements say nothing either.
    """
    own = set(_strip_symbols(distribution.steps))
    symbols = tuple(dict.fromkeys(symbols_below(_named(distribution))))
    if any(isinstance(symbol, (Reloaded, RowDistance, Rows)) for symbol in symbols):
        return None
    return tuple(one for one in values_of(symbols) if one not in own)


def define_distribution(
    module: Module,
    name: str,
    distribution: Distribution,
    calls: Mapping[MatrixProduct, ProductCall],
    attributes: str,
) -> tuple[SsaValue, ...]:
    """A function that runs a distributed nest and returns true, or returns false without any effect.

    Parameters
    ----------
    calls : the function of each product that a kernel computes. Where it returns false, loops run.

    Returns
    -------
    The program values that it takes, in order.
    """
    taken = program_values(distribution)
    assert taken is not None
    words = " ".join(filter(None, (module.attributes, attributes)))
    f = module.define(name, INT1, parameters_of(taken), exported=True, attributes=words)
    invariants = invariants_of(f, taken)
    for symbol in dict.fromkeys(symbols_below(_named(distribution))):
        if symbol not in set(_strip_symbols(distribution.steps)) and not isinstance(symbol, Index):
            invariants.raw(symbol)
    with f.when(_is_worth(distribution.steps, invariants)):
        holds = _conditions(distribution, invariants)
        with f.when(f.and_(holds, invariants.exact.right)):
            _Steps(f, distribution, calls).write(distribution.steps, invariants)
            f.ret(Value(INT1, "true"))
    f.ret(Value(INT1, "false"))
    return taken


def _is_worth(steps: Sequence[Step], invariants: Invariants) -> Value:
    """Whether some product is large."""
    f, found = invariants.f, Value(INT1, "false")
    for step in steps:
        match step:
            case ProductStep(product=product):
                extents = [dimension.extent for dimension in product.dimensions]
            case StripStep(extent=extent):
                extents = [extent, extent]
            case LoopStep():
                continue
        work = int64(1)
        for extent in extents:
            count = least(f, invariants.count(extent), int64(MOST_COUNTED))
            work = least(f, f.mul(work, count), int64(MOST_COUNTED))
        found = f.or_(found, f.icmp("<=", int64(LEAST_WORK), work))
    return found


def _conditions(distribution: Distribution, invariants: Invariants) -> Value:
    f, product = invariants.f, distribution.products[0]
    conditions = Conditions(invariants, product, {})
    for condition in distribution.conditions:
        assert isinstance(condition, Within)
        conditions.within(condition)
    holds = conditions.holds
    for guard in distribution.guards:
        one, other = (_interval(footprint, invariants) for footprint in (guard.one, guard.other))
        separate = apart(f, one, other)
        holds = separate if holds == TRUE else f.and_(holds, separate)
    return holds


def _interval(footprint: Footprint, invariants: Invariants) -> Interval:
    f, exact, operand = invariants.f, invariants.exact, footprint.operand
    assert operand.dtype is not None
    low, high = int64(0), int64(operand.dtype.size)
    for _, extent, stride in footprint.moves:
        count = most(f, invariants.count(extent), int64(1))
        reach = exact.mul(exact.sub(count, 1), invariants.integer(stride, exact))
        low = exact.add(low, least(f, reach, int64(0)))
        high = exact.add(high, most(f, reach, int64(0)))
    start = f.ptrtoint(invariants.address(operand.memory.base, operand.offset))
    return Interval(f.add(start, low), f.add(start, high))


class _Steps:
    """Writes the steps of a distribution."""

    def __init__(
        self, f: Function, distribution: Distribution, calls: Mapping[MatrixProduct, ProductCall]
    ) -> None:
        self._f, self._calls = f, calls
        dtype = distribution.products[0].c.dtype
        assert dtype is not None
        self._dtype = dtype

    def write(self, steps: Sequence[Step], invariants: Invariants) -> None:
        """Steps, in their order."""
        for step in steps:
            match step:
                case LoopStep(loops=loops):
                    self._loops(loops, invariants)
                case ProductStep(product=product, loops=loops) if product in self._calls:
                    call = self._calls[product]
                    done = self._f.call(call.callee, [invariants.raw(symbol) for symbol in call.taken])
                    with self._f.when(self._f.not_(done)):
                        self._loops(loops, invariants)
                case ProductStep(loops=loops):
                    self._loops(loops, invariants)
                case StripStep():
                    self._strips(step, invariants)

    def _loops(self, loops: Sequence[Statement], invariants: Invariants) -> None:
        """Loops, which compute in the type of what they write."""
        for loop in loops:
            dtype = next((target.dtype for target in targets([loop])), None) or self._dtype
            Statements(invariants, dtype).write([loop])

    def _strips(self, step: StripStep, invariants: Invariants) -> None:
        f, count = self._f, invariants.count(step.extent)
        length = int64(step.length)
        if step.bytes is not None:
            each = most(f, invariants.integer(step.bytes, f), int64(1))
            fitting = f.udiv(int64(STRIP_BYTES), each)
            length = most(f, least(f, length, fitting), int64(1))
        with f.loop(int64(0), count, length) as begin:
            end = least(f, f.add(begin, length), count)
            inner = invariants.within({step.begin: begin, step.end: end})
            self.write(step.steps, inner)


# Symbols


def _strip_symbols(steps: Sequence[Step]) -> Iterator[Symbol]:
    for step in steps:
        if isinstance(step, StripStep):
            yield from (step.begin, step.end)
            yield from _strip_symbols(step.steps)


def _named(distribution: Distribution) -> Iterator[Symbol]:
    """The symbols in a distribution's records."""
    for condition in distribution.conditions:
        if isinstance(condition, Within):
            yield from named_within(condition)
    for guard in distribution.guards:
        for footprint in (guard.one, guard.other):
            yield footprint.operand.memory.base
            yield from symbols_in(footprint.operand.offset)
            for _, extent, stride in footprint.moves:
                yield from symbols_in(stride, *spans_of(extent))
    yield from _named_steps(distribution.steps)


def _named_steps(steps: Sequence[Step]) -> Iterator[Symbol]:
    for step in steps:
        match step:
            case ProductStep(product=product, loops=loops):
                yield from named_by(product)
                yield from _named_statements(loops)
            case LoopStep(loops=loops):
                yield from _named_statements(loops)
            case StripStep(extent=extent, steps=inner, bytes=each):
                yield from symbols_in(*spans_of(extent), each or Polynomial())
                yield from _named_steps(inner)


def _named_statements(statements: Sequence[Statement]) -> Iterator[Symbol]:
    for statement in statements:
        match statement:
            case CountedLoop(extent=extent, body=body):
                yield from symbols_in(*spans_of(extent))
                yield from _named_statements(body)
            case Assign(target=target, value=value):
                if isinstance(target, Access):
                    yield from _named_access(target)
                yield from _named_value(value)


def _named_access(access: Access) -> Iterator[Symbol]:
    yield access.memory.base
    yield from symbols_in(access.offset)


def _named_value(value: Tree) -> Iterator[Symbol]:
    match value:
        case Load(access=access):
            yield from _named_access(access)
        case InvariantScalar(symbol=symbol):
            yield symbol
    for part in parts_of(value):
        yield from _named_value(part)
