"""The function that runs a product: checks conditions, calls a kernel, and returns whether it did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from tilewright.compiler.interface import SCRATCH_ALIGNMENT
from tilewright.compiler.lowering.frame import LOCAL_ALIGNMENT
from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.matrix import MatrixAt, add_product, load_matrix, multiply_matrices, store_matrix
from tilewright.llvm.values import (
    INT1,
    INT8,
    INT64,
    POINTER,
    VOID,
    Type,
    Value,
    constant,
    element_type,
    int64,
    null,
)
from tilewright.loops.llvm.symbols import Reloaded, SsaValue
from tilewright.loops.nests.nest import (
    Extent,
    Factor,
    MatrixProduct,
    ProductDimension,
    Within,
)
from tilewright.loops.nests.polynomial import Index, Polynomial, Symbol
from tilewright.loops.splice.arithmetic import Invariants, kind_of, least, scalar_value, symbols_below
from tilewright.loops.splice.conditions import Conditions
from tilewright.loops.splice.kernels import EmbeddedKernel
from tilewright.loops.splice.plan import KernelChoice, KernelMatrix, KernelPlan
from tilewright.loops.splice.threads import TeamFunctions, team_of_call
from tilewright.ops.batch_reduce.problem import BatchReduceGemm
from tilewright.records import dataclass
from tilewright.spec.dtype import DType
from tilewright.spec.problem import Layout
from tilewright.spec.roles import DimensionRole

#: Sizes are clamped to this before they are multiplied: three of them do not overflow.
MOST_COUNTED = 1 << 20


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


@dataclass(frozen=True)
class PanelAllocator:
    """Allocator of packed panels.

    Attributes
    ----------
    allocate : a function that takes a number of bytes and returns memory, or null on failure.
    release : a function that frees that memory; None if nothing is freed, as for an arena.
    """

    allocate: str = "malloc"
    release: str | None = "free"


@dataclass(frozen=True)
class Context:
    """Properties of the surrounding program that a product's function depends on.

    Attributes
    ----------
    attributes : target attributes of its caller, in LLVM syntax.
    memory : allocator of packed panels.
    teams : opens and closes teams of threads; None for one thread.
    """

    attributes: str
    memory: PanelAllocator
    teams: TeamFunctions | None = None


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
    teams = any(kernel.takes_team for _, kernel in kernels)
    words = (module.attributes, context.attributes, "noinline" if panels or teams else "")
    attributes = " ".join(filter(None, words))
    f = module.define(name, INT1, parameters_of(taken), exported=True, attributes=attributes)
    invariants = invariants_of(f, taken)
    with ExitStack() as checked:
        if any(isinstance(symbol, Reloaded) for symbol in symbols):
            read_memory(plan.product, invariants, checked)
        counts = {dimension: invariants.count(dimension.extent) for dimension in plan.product.dimensions}
        call = _Call(f, invariants, plan, counts, context)
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
    for factor in (product.alpha, product.beta):
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


class _Call:
    """The kernel calls of a product, in its function."""

    def __init__(
        self,
        f: Function,
        invariants: Invariants,
        plan: KernelPlan,
        counts: Mapping[ProductDimension, Value],
        context: Context,
    ) -> None:
        self.memory, self.teams = context.memory, context.teams
        self.f, self.invariants, self.plan, self.counts = f, invariants, plan, counts
        self.given: dict[str, Value] = {"scratch": null(), "br_stride_a": int64(0), "br_stride_b": int64(0)}
        for name, dimension in (("m", plan.m), ("n", plan.n), ("k", plan.k)):
            self.given[name] = int64(1) if dimension is None else counts[dimension]

    def strides(self, conditions: Conditions) -> None:
        """Strides in elements; strides in bytes must be multiples of the element size."""
        for matrix in self.plan.matrices:
            rows, columns = (
                int64(1) if stride is None else self._elements(stride, matrix, conditions)
                for stride in (matrix.rows, matrix.columns)
            )
            leading = columns if matrix.layout is Layout.COL else rows
            if matrix.name == "b" and self.plan.product.triangle is not None:
                rows, columns = columns, rows  # the kernel's B has C's rows too
            name = matrix.name
            self.given |= {f"rs_{name}": rows, f"cs_{name}": columns, f"ld_{name}": leading}

    def work(self) -> Value:
        """Multiply-adds of one call; above the thresholds the exact number does not matter."""
        sizes = [least(self.f, self.given[name], int64(MOST_COUNTED)) for name in ("m", "n", "k")]
        return self.f.mul(self.f.mul(sizes[0], sizes[1]), sizes[2])

    def _elements(self, stride: Polynomial, matrix: KernelMatrix, conditions: Conditions) -> Value:
        """A stride in elements."""
        f, size = self.f, matrix.dtype.size
        if all(coefficient % size == 0 for _, coefficient in stride.terms):
            terms = tuple((monomial, coefficient // size) for monomial, coefficient in stride.terms)
            return self.invariants.integer(Polynomial(terms), f)
        in_bytes = self.invariants.integer(stride, f)
        conditions.require(f.icmp("==", f.and_(in_bytes, int64(size - 1)), 0))
        return f.ashr(in_bytes, int64(size.bit_length() - 1))

    def write(self, work: Value, kernels: Sequence[tuple[KernelChoice, EmbeddedKernel]]) -> None:
        """Calls the first kernel suited to the amount of work, and returns true."""
        if self.plan.intrinsic:
            with self._around() as (pointers, _, _):
                self._multiply(pointers)
            self.f.ret(Value(INT1, "true"))
            return
        (way, kernel), *rest = kernels
        if not rest:
            self._run(way, kernel, work)
            return
        assert way.most_work is not None
        with self.f.when(self.f.icmp("<=", work, int64(way.most_work))):
            self._run(way, kernel, work)
        self.write(work, rest)

    def _run(self, way: KernelChoice, kernel: EmbeddedKernel, work: Value) -> None:
        """The loops around the kernel call; a team and memory for panels are taken before them, and given
        back after them.
        """
        f, done = self.f, Value(INT1, "true")
        if way.most_work is not None:
            size = kernel.scratch_bytes
            self._loops(kernel, f.alloca(INT8, size, LOCAL_ALIGNMENT) if size else null())
            f.ret(done)
            return
        with team_of_call(f, kernel, self.teams, work) as team:
            self.given["team"] = team.team
            if kernel.scratch_bytes:
                allocate = f.module.declare(self.memory.allocate, POINTER, (INT64,))
                block = f.call(allocate, [team.scratch_bytes])
                done = f.icmp("!=", block, null())
                with f.when(done):
                    up = f.add(f.ptrtoint(block), SCRATCH_ALIGNMENT - 1)
                    ahead = f.sub(f.and_(up, int64(-SCRATCH_ALIGNMENT)), f.ptrtoint(block))
                    self._loops(kernel, f.at(block, ahead))
                    if self.memory.release is not None:
                        f.call(f.module.declare(self.memory.release, VOID, (POINTER,)), [block])
            else:
                self._loops(kernel, null())
        f.ret(done)

    def _loops(self, kernel: EmbeddedKernel, scratch: Value) -> None:
        f, plan = self.f, self.plan
        acc = plan.types.acc
        factors = plan.product.alpha, plan.product.beta
        alpha, beta = (factor_value(f, self.invariants, factor, acc) for factor in factors)
        with self._around() as (pointers, depth, first):
            if first is not None:
                beta = f.select(first, beta, constant(acc, 1))
            given = {**self.given, **pointers, "k": depth, "alpha": alpha, "beta": beta, "scratch": scratch}
            callee = f.module.declare(kernel.name, VOID, [kind for _, kind in kernel.arguments])
            f.call(callee, [given[name] for name, _ in kernel.arguments])

    @contextmanager
    def _around(self) -> Iterator[tuple[dict[str, Value], Value, Value | None]]:
        """The loops around a kernel call.

        Yields the start of each operand, the depth, and whether this is the first of several calls that
        accumulate into the same elements; None if there is one call.
        """
        f, invariants, around = self.f, self.invariants, self.plan.around
        depth, counts = self.given["k"], dict(self.counts)
        pointers = {
            matrix.name: invariants.address(matrix.operand.memory.base, matrix.operand.offset)
            for matrix in self.plan.matrices
        }
        deep = [one for one in around if one.role is DimensionRole.K]
        for one in deep:  # where one of several depths is 0, one call of depth 0 does what beta asks for
            some = f.icmp("<", int64(0), counts[one])
            depth = f.select(some, depth, int64(0))
            counts[one] = f.maximum(counts[one], int64(1))
        with ExitStack() as loops:
            first: Value | None = None
            for one in around:
                index = loops.enter_context(f.loop(int64(0), counts[one], int64(1)))
                pointers = {
                    name: f.at(place, f.mul(index, invariants.integer(getattr(one, name), f)))
                    for name, place in pointers.items()
                }
                if one in deep:
                    begins = f.icmp("==", index, 0)
                    first = begins if first is None else f.and_(first, begins)
            yield pointers, depth, first

    def _multiply(self, pointers: Mapping[str, Value]) -> None:
        """The product as one `llvm.matrix.multiply` on whole matrices, loaded and stored by intrinsics."""
        f, (a, b, c), whole = self.f, self.plan.matrices, self.plan.ways[0].problem
        assert isinstance(whole, BatchReduceGemm)
        places = {
            one.name: MatrixAt(
                pointers[one.name], self.given[f"ld_{one.name}"], rows_adjacent=one.layout is Layout.COL
            )
            for one in (a, b, c)
        }
        kind = element_type(whole.dtype)
        left = load_matrix(f, kind, places["a"], (whole.m, whole.k))
        right = load_matrix(f, kind, places["b"], (whole.k, whole.n))
        product = multiply_matrices(f, left, right, (whole.m, whole.k, whole.n))
        if whole.beta:
            product = add_product(f, load_matrix(f, kind, places["c"], (whole.m, whole.n)), product)
        store_matrix(f, product, places["c"], (whole.m, whole.n))


def factor_value(f: Function, invariants: Invariants, factor: Factor, acc: DType) -> Value:
    """alpha or beta in the accumulator type."""
    assert not isinstance(factor.number, complex)
    found: Value | None = None
    for scalar in factor.scalars:
        value = scalar_value(invariants, scalar, acc)
        found = value if found is None else f.times(found, value)
    number = constant(acc, factor.number)
    if found is None:
        return number
    return found if factor.number == 1 else f.times(found, number)
