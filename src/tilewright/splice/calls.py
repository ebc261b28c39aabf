"""The function that runs a product: conditions first, then calls of a kernel; it says whether it did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from tilewright.frontend.llvm_symbols import Reloaded, SsaValue
from tilewright.frontend.nests import Dimension, Extent, Factor, Product, Role, Scalar, Within
from tilewright.frontend.polynomial import Index, Polynomial, Symbol
from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.convert import Convert
from tilewright.llvm.values import (
    INT1,
    INT64,
    POINTER,
    VOID,
    Type,
    Value,
    constant,
    element_type,
    int64,
    memory_type,
    null,
)
from tilewright.lower import SCRATCH_ALIGNMENT
from tilewright.spec.dtype import DTYPES, DType
from tilewright.splice.arithmetic import Invariants, kind_of, symbols_below
from tilewright.splice.conditions import Conditions
from tilewright.splice.kernels import Kernel
from tilewright.splice.plan import Matrix, Plan

#: Element types of scalars, by their types in LLVM.
_SCALARS = {element_type(dtype).text: dtype for dtype in DTYPES.values() if dtype.real == dtype} | {
    "bfloat": DTYPES["bf16"],
    "half": DTYPES["f16"],
}


def arguments_of(polynomials: Sequence[Polynomial]) -> tuple[SsaValue, ...]:
    """The values of a program that polynomials are computed from; one of each reading of a value."""
    named = (symbol for polynomial in polynomials for symbol in sorted(polynomial.symbols))
    return _values(symbols_below(named))


def define_value(module: Module, name: str, value: Polynomial, kind: str) -> tuple[SsaValue, ...]:
    """A function that computes a polynomial from the values that it returns."""
    taken = arguments_of([value])
    result = POINTER if kind == "ptr" else Type(kind, kind)
    f = module.define(name, result, _parameters(taken), exported=True)
    invariants = _invariants(f, taken)
    pointers = [one for one in taken if one.kind == "ptr" and ((one,), 1) in value.terms]
    if result == POINTER and pointers:
        f.ret(invariants.address(pointers[0], value - pointers[0]))
        return taken
    found = invariants.integer(value, f)
    f.ret(
        f.as_pointer(found) if result == POINTER else found if result == INT64 else f.truncate(found, result)
    )
    return taken


def define_call(module: Module, name: str, plan: Plan, kernel: Kernel) -> tuple[SsaValue, ...]:
    """A function that runs a product, or returns false and leaves everything as it is.

    Returns
    -------
    The values of the program that it takes, in order.
    """
    symbols = tuple(dict.fromkeys(symbols_below(_named(plan.product))))
    taken = _values(symbols)
    f = module.define(name, INT1, _parameters(taken), exported=True)
    invariants = _invariants(f, taken)
    counts = {dimension: invariants.count(dimension.extent) for dimension in plan.product.dimensions}
    conditions = Conditions(invariants, plan.product, counts)
    conditions.write()
    for symbol in symbols:
        if isinstance(symbol, Reloaded) and not plan.product.c.memory.private:
            conditions.unwritten(symbol)
    call = _Call(f, invariants, plan, kernel, counts)
    strides = call.strides(conditions)
    conditions.require(invariants.exact.right)
    with f.when(conditions.holds):
        call.write(strides)
    f.ret(Value(INT1, "false"))
    return taken


def _values(symbols: Iterator[Symbol] | Sequence[Symbol]) -> tuple[SsaValue, ...]:
    found = {(one.text, one.kind): one for one in symbols if isinstance(one, SsaValue)}
    return tuple(found.values())


def _parameters(taken: Sequence[SsaValue]) -> list[tuple[str, Type]]:
    return [(f"value.{number}", kind_of(one)) for number, one in enumerate(taken)]


def _invariants(f: Function, taken: Sequence[SsaValue]) -> Invariants:
    return Invariants(
        f, {(one.text, one.kind): f.arguments[f"value.{number}"] for number, one in enumerate(taken)}
    )


def _named(product: Product) -> Iterator[Symbol]:
    """The symbols that a product's records name."""

    def of(*values: Polynomial) -> Iterator[Symbol]:
        for value in values:
            yield from (symbol for symbol in sorted(value.symbols) if not isinstance(symbol, Index))

    def bounds(extent: Extent) -> Iterator[Symbol]:
        yield from of(*(bound.span for bound in extent.bounds))

    for operand in (product.a, product.b, product.c, *(product.second or ())):
        yield operand.memory.base
        yield from of(operand.offset)
    for one in product.dimensions:
        yield from of(one.a, one.b, one.c)
        yield from bounds(one.extent)
    for factor in (product.alpha, product.beta):
        yield from (scalar.symbol for scalar in factor.scalars)
    for condition in product.conditions:
        if isinstance(condition, Within):
            yield from of(condition.value, condition.low, condition.high)
            for _, extent in condition.loops:
                yield from bounds(extent)


class _Call:
    """The calls of one kernel, in the function of its product."""

    def __init__(
        self,
        f: Function,
        invariants: Invariants,
        plan: Plan,
        kernel: Kernel,
        counts: dict[Dimension, Value],
    ) -> None:
        self.f, self.invariants, self.plan, self.kernel, self.counts = f, invariants, plan, kernel, counts

    def strides(self, conditions: Conditions) -> dict[str, Value]:
        """What the kernel takes beside pointers and scalars; strides must be whole elements."""
        found = {}
        for matrix in self.plan.matrices:
            for axis, stride in (("rs", matrix.rows), ("cs", matrix.columns)):
                value = int64(1) if stride is None else self._elements(stride, matrix, conditions)
                found[f"{axis}_{matrix.name}"] = value
        return found

    def _elements(self, stride: Polynomial, matrix: Matrix, conditions: Conditions) -> Value:
        """A stride in elements."""
        f, size = self.f, matrix.dtype.size
        if all(coefficient % size == 0 for _, coefficient in stride.terms):
            terms = tuple((monomial, coefficient // size) for monomial, coefficient in stride.terms)
            return self.invariants.integer(Polynomial(terms), f)
        in_bytes = self.invariants.integer(stride, f)
        conditions.require(f.compare("==", f.both(in_bytes, int64(size - 1)), 0))
        return f.shift_right(in_bytes, int64(size.bit_length() - 1))

    def size(self, dimension: Dimension | None) -> Value:
        """How many rows, columns or depths there are."""
        return int64(1) if dimension is None else self.counts[dimension]

    def write(self, values: dict[str, Value]) -> None:
        """The loops around the call; memory for panels is taken before, and given back behind them."""
        f = self.f
        if not self.kernel.scratch_bytes:
            self._loops(values)
            f.ret(Value(INT1, "true"))
            return
        allocate = f.module.declare("malloc", POINTER, (INT64,))
        release = f.module.declare("free", VOID, (POINTER,))
        block = f.call(allocate, [int64(self.kernel.scratch_bytes)])
        with f.when(f.compare("!=", block, null())):
            up = f.add(f.as_integer(block), SCRATCH_ALIGNMENT - 1)
            ahead = f.sub(f.both(up, int64(-SCRATCH_ALIGNMENT)), f.as_integer(block))
            self._loops({**values, "scratch": f.at(block, ahead)})
            f.call(release, [block])
            f.ret(Value(INT1, "true"))

    def _loops(self, values: dict[str, Value]) -> None:
        f, plan, invariants = self.f, self.plan, self.invariants
        product = plan.product
        sizes = {"m": self.size(plan.m), "n": self.size(plan.n), "k": self.size(plan.k)}
        pointers = {
            matrix.name: invariants.address(matrix.operand.memory.base, matrix.operand.offset)
            for matrix in plan.matrices
        }
        acc = plan.problem.types.acc
        alpha, beta = self._factor(product.alpha, acc), self._factor(product.beta, acc)
        deep = [one for one in plan.around if one.role is Role.K]
        counts = dict(self.counts)
        for one in deep:  # where one of several depths is 0, one call of depth 0 does what beta asks for
            some = f.compare("<", int64(0), counts[one])
            sizes["k"] = f.select(some, sizes["k"], int64(0))
            counts[one] = f.maximum(counts[one], int64(1))
        with ExitStack() as loops:
            first: Value | None = None
            for one in plan.around:
                index = loops.enter_context(f.loop(int64(0), counts[one], int64(1)))
                pointers = {
                    name: f.at(place, f.mul(index, invariants.integer(getattr(one, name), f)))
                    for name, place in pointers.items()
                }
                if one in deep:
                    begins = f.compare("==", index, 0)
                    first = begins if first is None else f.both(first, begins)
            if first is not None:
                beta = f.select(first, beta, constant(acc, 1))
            given = {**values, **sizes, **pointers, "alpha": alpha, "beta": beta, "team": null()}
            f.module.declare(self.kernel.name, VOID, [kind for _, kind in self.kernel.arguments])
            f.call(Callee(VOID, f"@{self.kernel.name}"), [given[name] for name, _ in self.kernel.arguments])

    def _factor(self, factor: Factor, acc: DType) -> Value:
        """alpha or beta, in the type of the sums."""
        assert not isinstance(factor.number, complex)
        found: Value | None = None
        for scalar in factor.scalars:
            value = self._scalar(scalar, acc)
            found = value if found is None else self.f.times(found, value)
        number = constant(acc, factor.number)
        if found is None:
            return number
        return found if factor.number == 1 else self.f.times(found, number)

    def _scalar(self, scalar: Scalar, acc: DType) -> Value:
        value = self.invariants.raw(scalar.symbol)
        dtype = scalar.dtype or _SCALARS[value.type.text]
        if memory_type(dtype) != value.type:  # conversions take floats of 16 bits as integers
            value = self.f.cast(value, memory_type(dtype))
        return Convert(self.f, half=False)(value, dtype, acc)
