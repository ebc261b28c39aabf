"""The function that runs a product: checks conditions, calls a kernel, and returns whether it did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.values import (
    INT1,
    INT64,
    POINTER,
    Type,
    Value,
    int64,
)
from tilewright.loops.llvm.symbols import Reloaded, SsaValue
from tilewright.loops.nests.nest import (
    Extent,
    Factor,
    MatrixOperand,
    MatrixProduct,
    Within,
)
from tilewright.loops.nests.polynomial import Index, Polynomial, Symbol
from tilewright.loops.splice.arithmetic import Invariants, kind_of, symbols_below
from tilewright.loops.splice.conditions import Conditions
from tilewright.loops.splice.context import Context
from tilewright.loops.splice.kernel_call import KernelCall
from tilewright.loops.splice.kernels import EmbeddedKernel
from tilewright.loops.splice.plan import KernelChoice, KernelPlan


def arguments_of(polynomials: Sequence[Polynomial]) -> tuple[SsaValue, ...]:
    """Program values that polynomials depend on, one for each signedness."""
    named = (symbol for polynomial in polynomials for symbol in sorted(polynomial.symbols))
    return values_of(symbols_below(named))


def define_value(module: Module, name: str, value: Polynomial, kind: str) -> tuple[SsaValue, ...]:
    """Define a function that computes a polynomial; returns the values that it takes."""
    taken = arguments_of([value])
    result = POINTER if kind == "ptr" else Type(kind, kind)
    f = module.define(name, result, parameters_of(taken), exported=True)
    invariants = invariants_of(f, taken)
    pointers = [one for one in taken if one.kind == "ptr" and ((one,), 1) in value.terms]
    if result == POINTER and pointers:
        f.ret(invariants.address(pointers[0], value - pointers[0]))
        return taken
    found = invariants.integer(value, f)
    f.ret(f.inttoptr(found) if result == POINTER else found if result == INT64 else f.trunc(found, result))
    return taken


def define_call(
    module: Module,
    name: str,
    plan: KernelPlan,
    kernels: Sequence[tuple[KernelChoice, EmbeddedKernel]],
    context: Context,
) -> tuple[SsaValue, ...]:
    """A function that runs a product and returns true, or returns false without any effect.

    Parameters
    ----------
    kernels : the selected kernels of the plan.
    context : properties of the program.

    Returns
    -------
    The program values that it takes, in order.
    """
    symbols = tuple(dict.fromkeys(symbols_below(named_by(plan.product))))
    taken = values_of(symbols)
    # Panels in the frame of an inlined function would enlarge the frames of its callers.
    panels = any(way.most_work is not None and kernel.scratch_bytes for way, kernel in kernels)
    teams = context.teams is not None
    words = (module.attributes, context.attributes, "noinline" if panels or teams else "")
    attributes = " ".join(filter(None, words))
    f = module.define(name, INT1, parameters_of(taken), exported=True, attributes=attributes)
    invariants = invariants_of(f, taken)
    with ExitStack() as checked:
        if any(isinstance(symbol, Reloaded) for symbol in symbols):
            read_memory(plan.product, invariants, checked)
        counts = {dimension: invariants.count(dimension.extent) for dimension in plan.product.dimensions}
        call = KernelCall(f, invariants, plan, counts, context)
        work = call.work()
        checked.enter_context(f.when(f.icmp("<=", int64(plan.least_work), work)))
        conditions = Conditions(invariants, plan.product, counts)
        conditions.write()
        for symbol in symbols:
            c = plan.product.c.memory
            if isinstance(symbol, Reloaded) and (symbol.base == c.base or not c.private):
                conditions.unwritten(symbol)
        call.strides(conditions)
        for symbol in symbols:  # read here, since ways of computing the product that name it part below
            invariants.raw(symbol)
        conditions.require(invariants.exact.right)
        with f.when(conditions.holds):
            call.write(work, kernels)
    f.ret(Value(INT1, "false"))
    return taken


def define_first(
    module: Module, name: str, ways: Sequence[tuple[str, tuple[SsaValue, ...]]], context: Context
) -> tuple[SsaValue, ...]:
    """A function that calls functions with the values they take, until one of them returns true."""
    taken = values_of([value for _, values in ways for value in values])
    attributes = " ".join(filter(None, (module.attributes, context.attributes)))
    f = module.define(name, INT1, parameters_of(taken), exported=True, attributes=attributes)
    given = dict(zip(((one.text, one.kind) for one in taken), f.arguments.values(), strict=True))
    for way, values in ways:
        done = f.call(Callee(INT1, f"@{way}"), [given[one.text, one.kind] for one in values])
        with f.when(done):
            f.ret(Value(INT1, "true"))
    f.ret(Value(INT1, "false"))
    return taken


def read_memory(product: MatrixProduct, invariants: Invariants, checked: ExitStack) -> None:
    """Values in program memory, loaded once the conditions hold under which the program loads them."""
    f, known = invariants.f, set[Symbol]()
    conditions = Conditions(invariants, product, {})

    def check() -> None:
        checked.enter_context(f.when(f.and_(conditions.holds, invariants.exact.right)))

    for condition in product.conditions:
        if isinstance(condition, Within):
            read = {one for one in symbols_below(named_within(condition)) if isinstance(one, Reloaded)}
            if not read <= known:
                check()
                known |= read
            conditions.within(condition)
    check()


def values_of(symbols: Iterator[Symbol] | Sequence[Symbol]) -> tuple[SsaValue, ...]:
    """The program values among symbols, one for each of the program's."""
    found = {(one.text, one.kind): one for one in symbols if isinstance(one, SsaValue)}
    return tuple(found.values())


def parameters_of(taken: Sequence[SsaValue]) -> list[tuple[str, Type]]:
    """The parameters of a function that takes values of the program."""
    return [(f"value.{number}", kind_of(one)) for number, one in enumerate(taken)]


def invariants_of(f: Function, taken: Sequence[SsaValue]) -> Invariants:
    """The values of symbols in a function with these parameters."""
    return Invariants(
        f, {(one.text, one.kind): f.arguments[f"value.{number}"] for number, one in enumerate(taken)}
    )


def named_by(product: MatrixProduct) -> Iterator[Symbol]:
    """The symbols in a product's records."""
    for operand in (product.a, product.b, product.c, *(product.second or ())):
        yield operand.memory.base
        yield from symbols_in(operand.offset)
    for one in product.dimensions:
        yield from symbols_in(one.a, one.b, one.c, *spans_of(one.extent))
    factors = [product.alpha, product.beta]
    for step in product.finish:
        yield from symbols_in(step.rows, step.columns)
        match step.operand:
            case MatrixOperand(memory=memory, offset=offset):
                yield memory.base
                yield from symbols_in(offset)
            case Factor():
                factors.append(step.operand)
    for factor in factors:
        yield from (scalar.symbol for scalar in factor.scalars)
    for condition in product.conditions:
        if isinstance(condition, Within):
            yield from named_within(condition)


def named_within(condition: Within) -> Iterator[Symbol]:
    """The symbols in a condition."""
    yield from symbols_in(condition.value, condition.low, condition.high)
    for _, extent in condition.loops:
        yield from symbols_in(*spans_of(extent))


def symbols_in(*values: Polynomial) -> Iterator[Symbol]:
    """The symbols of polynomials that are no indices."""
    for value in values:
        yield from (symbol for symbol in sorted(value.symbols) if not isinstance(symbol, Index))


def spans_of(extent: Extent) -> Iterator[Polynomial]:
    """The spans of an extent."""
    yield from (bound.span for bound in extent.bounds)
