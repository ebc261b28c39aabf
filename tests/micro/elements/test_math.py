"""Elementwise functions: errors in ulps over every exponent, special values, flags, and machine code."""

from __future__ import annotations

import ctypes
import importlib.util
import math as scalar
import re
import sys
from collections.abc import Callable
from functools import cache, partial
from itertools import product
from types import ModuleType
from typing import Any, TypeAlias

import mpmath
import numpy as np
import pytest
from assembly_text import AssemblyLoop, innermost_loops, vector_stack_moves
from numpy.typing import NDArray
from shares import looped
from support import ARCH, FENV, ROOT, host_rows, no_flags
from tiers import crossed, first_of, named

import tilewright as tw
from tilewright.llvm.build import Module
from tilewright.llvm.floats import Floats
from tilewright.llvm.jit import Linked
from tilewright.llvm.target import data_layout, emit_assembly, emit_object, parse, target_machine, tuning
from tilewright.llvm.values import INT64, POINTER, VOID, Value, element_type, int64, vector_type
from tilewright.machine.catalog import find_machine, targets
from tilewright.machine.isa import Isa
from tilewright.machine.isa_rows import AVX512
from tilewright.micro.elements import math
from tilewright.micro.elements.math import FUNCTIONS, emit
from tilewright.micro.elements.polynomials import CONSTANTS
from tilewright.spec.dtype import F32, F64, DType
from tilewright.spec.functions import UnaryOp

Array: TypeAlias = NDArray[Any]
Wide: TypeAlias = NDArray[np.float64]
Write = Callable[[Floats, Value], Value]
Native = Callable[[Array], Array]

#: The functions with an error, and the errors their docstrings state: with fused multiply-add, without.
ULPS: dict[str, tuple[float, float]] = {
    "exp": (1.6, 2.0),
    "exp_nonpositive": (2.0, 2.3),
    "tanh": (2.0, 2.0),
    "sigmoid": (2.0, 2.0),
    "silu": (2.0, 2.0),
    "gelu_tanh": (2.0, 2.0),
    "gelu": (2.9, 3.4),
    "erf": (1.4, 1.6),
}
#: The functions that round once or not at all, and what they equal in NumPy.
EXACT: dict[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.where(x < 0, x.dtype.type(0), x),
    "square": np.square,
    "negate": np.negative,
    "reciprocal": np.reciprocal,
}
DTYPES = (F32, F64)

each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)

# --- running on this host -------------------------------------------------------------------------


def write_of(name: str) -> Write:
    found: Write = getattr(math, name)
    return found


def loop_text(module: Module, write: Write, dtype: DType, lanes: int, *, fused: bool) -> str:
    """f(x, y, n): y = write(x), in vectors of some lanes or, with none, scalars."""
    arguments = [("x", POINTER), ("y", POINTER), ("n", INT64)]
    f = module.define("f", VOID, arguments, exported=True)
    kind = vector_type(dtype, lanes) if lanes else element_type(dtype)
    with f.loop(int64(0), f.arguments["n"], int64(lanes or 1)) as i:
        at = f.mul(i, dtype.size)
        x = f.load(kind, f.at(f.arguments["x"], at), dtype.size)
        f.store(write(Floats(f, dtype, kind, fused=fused), x), f.at(f.arguments["y"], at), dtype.size)
    f.ret()
    return str(module)


def native(write: Write, dtype: DType, isa: Isa, *, fused: bool, lanes: int | None = None) -> Native:
    """The function on arrays."""
    machine = tw.machine().with_isa(isa)
    width = isa.lanes(dtype) if lanes is None else lanes
    module = Module("math", machine.triple, data_layout(machine), tuning(machine), machine.function_bits)
    text = loop_text(module, write, dtype, width, fused=fused)
    code = Linked(emit_object(text, "math", machine), ("f",), {})
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(code.address("f"))

    def run(x: Array, owner: Linked = code) -> Array:
        whole = np.resize(x, -(-x.size // max(1, width)) * max(1, width)).astype(dtype.numpy)
        y = np.empty_like(whole)
        function(whole.ctypes.data, y.ctypes.data, whole.size)
        return y[: x.size]

    return run


def kinds() -> list[tuple[Isa, bool]]:
    """Every row of this host; those with fused multiply-add also without using it."""
    rows = [(isa, isa.fused) for isa in host_rows()]
    return rows + [(isa, False) for isa, fused in rows if fused]


each_kind = pytest.mark.parametrize(
    ("isa", "fused"), kinds(), ids=lambda each: each.name if isinstance(each, Isa) else f"fused={each}"
)

# --- what is computed -----------------------------------------------------------------------------


def _logistic(x: Wide) -> Wide:
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1.0) / (1.0 + small)


def _weighted(x: Wide, weight: Wide) -> Wide:
    return np.where(np.isneginf(x), -0.0, x * weight)


def _tanh_argument(x: Wide) -> Wide:
    return 2 * scalar.sqrt(2 / scalar.pi) * (x + 0.044715 * x**3)


_erf = np.vectorize(scalar.erf, otypes=[np.float64])
_erfc = np.vectorize(scalar.erfc, otypes=[np.float64])

#: float64 for f32: wrong by at most some 1e-14, a ten-millionth of its ulp.
IN_F64: dict[str, Callable[[Wide], Wide]] = {
    "exp": np.exp,
    "exp_nonpositive": np.exp,
    "tanh": np.tanh,
    "sigmoid": _logistic,
    "silu": lambda x: _weighted(x, _logistic(x)),
    "gelu_tanh": lambda x: _weighted(x, _logistic(_tanh_argument(x))),
    "gelu": lambda x: _weighted(x, _erfc(-x / scalar.sqrt(2)) / 2),
    "erf": _erf,
}


def _exact_gelu_tanh(x: mpmath.mpf) -> mpmath.mpf:
    argument = 2 * mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf("0.044715") * x**3)
    return x / (1 + mpmath.exp(-argument))


IN_MPMATH: dict[str, Callable[[mpmath.mpf], mpmath.mpf]] = {
    "exp": mpmath.exp,
    "exp_nonpositive": mpmath.exp,
    "tanh": mpmath.tanh,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "silu": lambda x: x / (1 + mpmath.exp(-x)),
    "gelu_tanh": _exact_gelu_tanh,
    "gelu": lambda x: x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
    "erf": mpmath.erf,
}

# --- where ----------------------------------------------------------------------------------------

MANTISSAS = 2_000


def neighbours(x: Array, count: int) -> Array:
    """Each value and `count` of its neighbours on both sides."""
    bits = x.view(np.int32 if x.dtype == np.float32 else np.int64)
    around = bits[:, None] + np.arange(-count, count + 1, dtype=bits.dtype)
    found: Array = around.reshape(-1).view(x.dtype)
    return found


def borders(dtype: DType) -> Array:
    """Where a formula changes: the constants of the type, and what rounds to the next multiple of ln 2."""
    c = CONSTANTS[dtype]
    limits = [getattr(c, name) for name in ("exp_least", "exp_most", "erf_border", "erf_one")]
    limits += [c.silu_vanishes, c.gelu_vanishes, c.gelu_tanh_vanishes, math.SATURATED, math.NORMAL_SATURATED]
    largest = float(np.log(np.finfo(dtype.numpy_name).max))
    smallest = scalar.log(float(np.finfo(dtype.numpy_name).smallest_subnormal))
    normal = scalar.log(float(np.finfo(dtype.numpy_name).tiny))
    turns = (np.arange(int(-smallest / scalar.log(2)) + 2) + 0.5) * scalar.log(2)
    square_turns = np.sqrt(2 * turns)
    places = [*limits, largest, -smallest, -normal, *turns, *(2 * turns), *(turns / 2), *square_turns]
    return np.array([*places, *(-place for place in places)], dtype.numpy)


@cache
def f32_points() -> Array:
    """Of each of the 256 exponents and both signs, both ends and others; and the borders densely."""
    random = np.random.default_rng(1)
    mantissas = random.integers(0, 2**23, (512, MANTISSAS), dtype=np.uint32)
    mantissas[:, :4] = (0, 1, 2**23 - 1, 2**22)
    exponents = np.arange(512, dtype=np.uint32)[:, None] << np.uint32(23)
    every = (exponents | mantissas).reshape(-1).view(np.float32)
    # Most values of most functions lie in few binades: more of those.
    busy = np.arange(
        np.float32(2**-12).view(np.uint32), np.float32(128).view(np.uint32), 331, dtype=np.uint32
    )
    many = busy.view(np.float32)
    return np.concatenate((every, many, -many, neighbours(borders(F32), 40)))


@cache
def points(dtype: DType) -> Array:
    """The same points in any type; signalling NaNs become quiet where they are converted."""
    with np.errstate(invalid="ignore"):
        return f32_points().astype(dtype.numpy)


def domain(name: str, x: Array) -> Array:
    return x[~(x > 0)] if name == "exp_nonpositive" else x


@cache
def f32_reference(name: str) -> tuple[Array, Wide]:
    x = domain(name, f32_points())
    with np.errstate(all="ignore"):
        return x, IN_F64[name](x.astype(np.float64))


@cache
def f64_reference(name: str) -> tuple[Wide, Wide, Wide]:
    """Points, the nearest float64, and what it lacks in ulps: the exact result is (found + lacks·ulp)."""
    random = np.random.default_rng(2)
    reach = {"tanh": 25.0, "erf": 6.5, "gelu": 39.0, "gelu_tanh": 22.5}.get(name, 760.0)
    sizes = np.concatenate((random.uniform(0, reach, 300), random.uniform(0, 3, 400)))
    sizes = np.concatenate((sizes, np.exp(random.uniform(-30, 1, 200)), 10.0 ** -np.arange(30, 320, 10)))
    edges = borders(F64)[:: 7 if name != "exp" else 3]
    x = domain(name, np.concatenate((sizes, -sizes, edges)))
    value, lacks = np.empty_like(x), np.empty_like(x)
    with mpmath.workprec(150):
        for i, each in enumerate(x):
            exact = IN_MPMATH[name](mpmath.mpf(float(each)))
            value[i] = float(exact)
            if np.isfinite(value[i]):
                lacks[i] = float(
                    (exact - mpmath.mpf(value[i])) / mpmath.mpf(float(ulp(value[i : i + 1], F64)[0]))
                )
    return x, value, lacks


def ulp(value: Wide, dtype: DType) -> Wide:
    """The distance of neighbours in the binade of a value."""
    least, bits = {F32: (-149, 24), F64: (-1074, 53)}[dtype]
    _, exponent = np.frexp(value)
    size: Wide = np.ldexp(1.0, np.maximum(exponent - bits, least))
    return size


def assert_within(name: str, x: Array, found: Array, exact: Wide, errors: Wide, bound: float) -> None:
    """Errors of finite results stay below the bound; the others are the same."""
    with np.errstate(over="ignore"):
        nearest = exact.astype(found.dtype)
    finite = np.isfinite(nearest)
    np.testing.assert_array_equal(found[~finite], nearest[~finite], f"{name}: not finite")
    # What overflows by rounding alone may still be the largest finite number, and the reverse.
    wrong = finite & ~(errors <= bound)
    worst = int(np.argmax(np.where(finite, np.nan_to_num(errors, nan=np.inf), 0)))
    assert not wrong.any(), f"{name}({x[worst]!r}) = {found[worst]!r}: {errors[worst]} ulp"


@each_kind
@pytest.mark.parametrize("name", ULPS)
def test_f32_error_over_every_exponent(name: str, isa: Isa, fused: bool) -> None:
    x, exact = f32_reference(name)
    found = native(write_of(name), F32, isa, fused=fused)(x)
    with np.errstate(all="ignore"):
        errors = np.abs(found.astype(np.float64) - exact) / ulp(exact, F32)
    assert_within(name, x, found, exact, errors, ULPS[name][0 if fused else 1])


@each_kind
@pytest.mark.parametrize("name", ULPS)
def test_f64_error(name: str, isa: Isa, fused: bool) -> None:
    x, exact, lacks = f64_reference(name)
    found = native(write_of(name), F64, isa, fused=fused)(x)
    with np.errstate(all="ignore"):
        errors = np.abs((found - exact) / ulp(exact, F64) - lacks)
    assert_within(name, x, found, exact, errors, ULPS[name][0 if fused else 1])


@each_dtype
@each_kind
@pytest.mark.parametrize("name", EXACT)
def test_simple_functions_equal_numpy(name: str, dtype: DType, isa: Isa, fused: bool) -> None:
    x = points(dtype)
    with np.errstate(all="ignore"):
        expected = EXACT[name](x)
    found = native(write_of(name), dtype, isa, fused=fused)(x)
    np.testing.assert_array_equal(found, expected)
    signed = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[signed], np.signbit(expected)[signed])


@each_dtype
@pytest.mark.parametrize("op", [UnaryOp.ZERO, UnaryOp.IDENTITY])
def test_moves_keep_every_bit(op: UnaryOp, dtype: DType) -> None:
    x = points(dtype)
    found = native(FUNCTIONS[op], dtype, host_rows()[0], fused=True)(x)
    expected = np.zeros_like(x) if op is UnaryOp.ZERO else x
    np.testing.assert_array_equal(found.view(np.uint8), expected.view(np.uint8))


# --- special values -------------------------------------------------------------------------------

INF, NAN = scalar.inf, scalar.nan

#: f(-inf), f(-0), f(+0), f(inf); NaN gives NaN in all.
SPECIAL: dict[str, tuple[float, float, float, float]] = {
    "exp": (0.0, 1.0, 1.0, INF),
    "exp_nonpositive": (0.0, 1.0, 1.0, NAN),
    "tanh": (-1.0, -0.0, 0.0, 1.0),
    "sigmoid": (0.0, 0.5, 0.5, 1.0),
    "silu": (-0.0, -0.0, 0.0, INF),
    "gelu_tanh": (-0.0, -0.0, 0.0, INF),
    "gelu": (-0.0, -0.0, 0.0, INF),
    "erf": (-1.0, -0.0, 0.0, 1.0),
    "relu": (0.0, -0.0, 0.0, INF),
    "square": (INF, 0.0, 0.0, INF),
    "negate": (INF, 0.0, -0.0, -INF),
    "reciprocal": (-0.0, -INF, INF, 0.0),
}


@each_dtype
@each_kind
@looped("name", SPECIAL)
def test_special_values(name: str, dtype: DType, isa: Isa, fused: bool) -> None:
    found = native(write_of(name), dtype, isa, fused=fused)(
        np.array([-INF, -0.0, 0.0, INF, NAN], dtype.numpy)
    )
    expected = np.array(SPECIAL[name])
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(found[:4][known], expected[known])
    np.testing.assert_array_equal(np.signbit(found[:4])[known], np.signbit(expected)[known])
    assert np.isnan(found[4])


@each_dtype
@pytest.mark.parametrize("name", ["silu", "gelu", "gelu_tanh"])
def test_what_vanishes_keeps_its_sign(name: str, dtype: DType) -> None:
    """The last value that is not 0, and -0 from there on."""
    run = native(write_of(name), dtype, host_rows()[0], fused=True)
    limit = getattr(CONSTANTS[dtype], f"{name}_vanishes")
    below = -np.array([limit, 2 * limit, 1e30], dtype.numpy)
    np.testing.assert_array_equal(run(below), 0)
    assert np.signbit(run(below)).all()
    assert run(np.array([-0.9 * limit], dtype.numpy))[0] < 0


@each_dtype
@pytest.mark.parametrize("name", ["tanh", "erf", "sigmoid"])
def test_limits_are_not_passed(name: str, dtype: DType) -> None:
    x = points(dtype)
    found = native(write_of(name), dtype, host_rows()[0], fused=True)(x[~np.isnan(x)])
    assert found.max() == 1
    assert found.min() == (0 if name == "sigmoid" else -1)


@each_dtype
def test_exp_of_positive_values_that_the_shorter_form_takes(dtype: DType) -> None:
    x = np.linspace(0, {F32: 43, F64: 292}[dtype], 1000).astype(dtype.numpy)
    run = native(math.exp_nonpositive, dtype, host_rows()[0], fused=True)
    np.testing.assert_allclose(run(x), np.exp(x.astype(np.float64)), rtol=1e-6 if dtype is F32 else 1e-14)


# --- the floating-point environment ---------------------------------------------------------------

#: <fenv.h>: invalid, division by zero; overflow, underflow.
INVALID, DIVISION = 0x01, {"x86_64": 0x04, "aarch64": 0x02}.get(ARCH, 0)
OVERFLOW, UNDERFLOW = {"x86_64": (0x08, 0x10), "aarch64": (0x04, 0x08)}.get(ARCH, (0, 0))

needs_fenv = pytest.mark.skipif(not FENV, reason="fenv.h of this platform is not known")


@needs_fenv
@pytest.mark.parametrize(
    ("isa", "fused", "dtype", "name"),
    crossed(kinds(), product(DTYPES, [*ULPS, *EXACT]), len(kinds())),
    ids=named,
)
def test_finite_operands_raise_neither_invalid_nor_division(
    name: str, dtype: DType, isa: Isa, fused: bool
) -> None:
    x = domain(name, points(dtype))
    x = x[np.isfinite(x) & (x != 0)]
    extreme = np.finfo(dtype.numpy_name)
    ends = np.array([extreme.max, extreme.tiny, extreme.smallest_subnormal])
    zeros = np.zeros(0 if name == "reciprocal" else 1)
    x = np.concatenate((x, domain(name, np.concatenate((ends, -ends, zeros, -zeros))))).astype(dtype.numpy)
    run = native(write_of(name), dtype, isa, fused=fused)
    with no_flags(INVALID | DIVISION):
        run(x)


@needs_fenv
@each_dtype
@pytest.mark.parametrize("name", ["tanh", "sigmoid", "silu", "gelu_tanh", "gelu", "erf"])
def test_large_operands_raise_nothing(name: str, dtype: DType) -> None:
    """What is subtracted from a large x is bounded; it neither overflows nor underflows."""
    run = native(write_of(name), dtype, host_rows()[0], fused=True)
    x = np.exp(np.linspace(-4, 60, 4096)).astype(dtype.numpy)
    with no_flags(INVALID | DIVISION | OVERFLOW | UNDERFLOW):
        run(x)


@needs_fenv
@each_dtype
def test_masked_scores_raise_nothing(dtype: DType) -> None:
    """exp(-inf) of a masked score is 0 without the cost of an underflow."""
    run = native(math.exp_nonpositive, dtype, host_rows()[0], fused=True)
    x = np.array([-INF, -1e30, -800.0, 0.0] * 16, dtype.numpy)
    with no_flags(INVALID | DIVISION | OVERFLOW | UNDERFLOW):
        found = run(x)
    assert found.tolist() == [0.0, 0.0, 0.0, 1.0] * 16


@needs_fenv
@each_dtype
@pytest.mark.parametrize(
    ("write", "power", "logarithm"),
    [
        (partial(math.exp_nonpositive, flushed=True), np.exp, np.log),
        (math.exp2_nonpositive, np.exp2, np.log2),
    ],
    ids=["exp", "exp2"],
)
def test_weights_are_never_subnormal(
    dtype: DType, write: Write, power: np.ufunc, logarithm: np.ufunc
) -> None:
    """Products of subnormal weights would take more than a hundred cycles each."""
    tiny = np.finfo(dtype.numpy_name).tiny
    edge = logarithm(float(tiny))
    x = np.concatenate((edge + np.linspace(-20, 20, 999), np.linspace(edge, 0, 999))).astype(dtype.numpy)
    with no_flags(INVALID | DIVISION | OVERFLOW | UNDERFLOW):
        found = native(write, dtype, host_rows()[0], fused=True)(x)
    exact = power(x.astype(np.longdouble))
    normal = found >= tiny
    assert (found[~normal] == 0).all()
    assert (exact[~normal] < tiny * (1 + 1e-4)).all()
    assert (exact[normal] > tiny * (1 - 1e-4)).all()
    np.testing.assert_allclose(found[normal], exact[normal], rtol=1e-6 if dtype is F32 else 1e-14)


@needs_fenv
@each_dtype
@pytest.mark.parametrize("name", ["silu", "gelu_tanh", "gelu"])
def test_results_that_vanish_are_not_computed(name: str, dtype: DType) -> None:
    """Far below zero they are -0 without the cost of an underflow."""
    limit = getattr(CONSTANTS[dtype], f"{name}_vanishes")
    x = -np.exp(np.linspace(np.log(limit * 1.001), 60, 500)).astype(dtype.numpy)
    with no_flags(INVALID | DIVISION | OVERFLOW | UNDERFLOW):
        found = native(write_of(name), dtype, host_rows()[0], fused=True)(x)
    assert (found == 0).all()
    assert np.signbit(found).all()


# --- lanes, the table -----------------------------------------------------------------------------


@each_dtype
@pytest.mark.parametrize("name", [*ULPS, *EXACT])
def test_every_number_of_lanes_gives_the_same_bits(name: str, dtype: DType) -> None:
    isa = host_rows()[0]
    fused = isa.fused
    x = domain(name, points(dtype)[::37])
    expected = native(write_of(name), dtype, isa, fused=fused)(x)
    for lanes in (0, 1, 3, 2 * isa.lanes(dtype)):
        found = native(write_of(name), dtype, isa, fused=fused, lanes=lanes)(x)
        np.testing.assert_array_equal(found, expected, f"{lanes} lanes")


def test_the_table_has_every_operation() -> None:
    assert set(FUNCTIONS) == set(UnaryOp)
    for op, write in FUNCTIONS.items():
        assert write.__name__.lstrip("_") == op.value


def test_emit_takes_the_operation() -> None:
    def write(v: Floats, x: Value) -> Value:
        return emit(v.f, UnaryOp.NEGATE, v.dtype, x, fused=v.fused)

    assert native(write, F64, host_rows()[0], fused=True)(np.array([1.5]))[0] == -1.5


# --- machine code ---------------------------------------------------------------------------------

#: Instruction sets without a row: what LLVM must also be able to compile, (triple, CPU, features).
ELSEWHERE = {
    "pwr9": ("powerpc64le-unknown-linux-gnu", "pwr9", ""),
    "pwr10": ("powerpc64le-unknown-linux-gnu", "pwr10", ""),
    "riscv": ("riscv64-unknown-linux-gnu", "generic-rv64", "+d,+v"),
}

CALL = re.compile(r"^\s(callq?|bl|jal|call|tail)\s", re.MULTILINE)


@cache
def assembly(name: str, dtype: DType, target: str) -> str:
    machine = find_machine(target)
    module = Module("math", machine.triple, data_layout(machine), tuning(machine), machine.function_bits)
    fused = machine.isa.fused
    text = loop_text(module, write_of(name), dtype, machine.isa.lanes(dtype), fused=fused)
    return emit_assembly(text, "math", machine)


def loop_of(name: str, dtype: DType, target: str) -> AssemblyLoop:
    (loop,) = innermost_loops(assembly(name, dtype, target), find_machine(target).triple)
    return loop


def spills(loop: AssemblyLoop) -> list[str]:
    """Stores of vectors to the stack; constants beyond the registers may be read from there."""
    return [line for line in vector_stack_moves(loop) if re.match(r"st|v?mov\w+\s+%[xyz]mm", line)]


def scalars(loop: AssemblyLoop) -> list[str]:
    """Arithmetic on one lane at a time."""
    return loop.matching(r"^v?(add|sub|mul|div|max|min|fn?m\w+)s[sd]\s|^f\w+\s+[sd]\d")


def instructions_of(target: str) -> tuple[object, ...]:
    """What functions are written with: the row and the length of its vectors."""
    isa = find_machine(target).isa
    return isa.arch, isa.name, isa.vector_bits


@each_dtype
@pytest.mark.parametrize("target", first_of(targets(), instructions_of))
@looped("name", [*ULPS, *EXACT])
def test_every_target_without_calls_spills_or_scalars(name: str, dtype: DType, target: str) -> None:
    assert not CALL.search(assembly(name, dtype, target))
    assert not spills(loop_of(name, dtype, target))
    assert not scalars(loop_of(name, dtype, target))


@pytest.mark.parametrize("target", ["znver5", "x86-64-v2", "neoverse-v2"])
def test_calls_spills_and_scalars_are_found(target: str) -> None:
    machine = find_machine(target)
    module = Module("math", machine.triple, data_layout(machine), None, machine.function_bits)
    text = loop_text(module, math.exp, F32, 0, fused=machine.isa.fused)
    (loop,) = innermost_loops(emit_assembly(text, "math", machine), machine.triple)
    assert len(scalars(loop)) >= 10
    for line in (
        "vmovaps\t%zmm1, 64(%rsp)",
        "movups\t%xmm1, (%rsp)",
        "str\tq1, [sp]",
        "stp\tq1, q2, [sp, #16]",
    ):
        assert spills(AssemblyLoop("f", (line,)))
    for line in ("vmovaps\t64(%rsp), %zmm1", "ldr\tq1, [sp]"):
        assert not spills(AssemblyLoop("f", (line,)))
    for line in ("\tcallq\texpf@PLT", "\tbl\texpf", "\tcall\texpf"):
        assert CALL.search(line)


@each_dtype
@looped("where", ELSEWHERE)
@looped("name", [*ULPS, *EXACT])
def test_instruction_sets_without_a_row(name: str, dtype: DType, where: str) -> None:
    triple, cpu, features = ELSEWHERE[where]
    target = target_machine(triple, cpu, features)
    module = Module("math", triple, str(target.target_data))
    text = loop_text(module, write_of(name), dtype, 128 // dtype.bits, fused=True)
    assert not CALL.search(str(target.emit_assembly(parse(text, "math"))))


@each_dtype
@looped("name", [*ULPS, *EXACT])
def test_no_function_of_a_library_is_asked_for(name: str, dtype: DType) -> None:
    module = Module("math", "x86_64-unknown-linux-gnu", "")
    text = loop_text(module, write_of(name), dtype, 4, fused=True)
    assert set(re.findall(r"@([\w.]+)\.v\w+\(", text)) <= {"llvm.fma", "llvm.fabs", "llvm.copysign"}


#: Vector instructions of the loop on AVX-512 in f32 without load, store and register moves; fused ones.
COUNTS = {
    "exp": (16, 10),
    "exp_nonpositive": (13, 8),
    "tanh": (21, 8),
    "sigmoid": (17, 9),
    "silu": (20, 9),
    "gelu_tanh": (35, 15),
    "gelu": (37, 19),
    "erf": (33, 20),
    "relu": (1, 0),
    "square": (1, 0),
    "negate": (1, 0),
    "reciprocal": (1, 0),
}


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("target", [name for name in targets() if find_machine(name).isa is AVX512])
def test_instructions_with_avx512(name: str, target: str) -> None:
    loop = loop_of(name, F32, target)
    vectors = [line for line in loop.matching("%zmm") if not re.match(r"vmov(aps|ups|dqu)", line)]
    fused = [line for line in vectors if re.match(r"vfn?m", line)]
    assert (len(vectors), len(fused)) == COUNTS[name]
    assert not loop.matching(r"%[xy]mm"), "whole vectors"
    assert len(loop.matching(r"^vmovup|\(%r\w+,%r\w+,")) <= 3, "the operand and the result"


# --- coefficients ---------------------------------------------------------------------------------

#: log2 of the weighted errors that `Constants` states.
APPROXIMATIONS = {
    F32: {
        "exp_far": -26.0,
        "exp_near": -22.8,
        "growth": -28.2,
        "erf_near": -25.6,
        "erf_far": -29.4,
        "mills_numerator": -28.7,
    },
    F64: {
        "exp_far": -56.3,
        "exp_near": -56.4,
        "growth": -56.6,
        "erf_near": -56.0,
        "erf_far": -57.0,
        "mills_numerator": -57.6,
    },
}


@cache
def derivation() -> ModuleType:
    """docs/polynomials.py, which is no module of the package."""
    specification = importlib.util.spec_from_file_location("polynomials", ROOT / "docs" / "polynomials.py")
    assert specification is not None
    assert specification.loader is not None
    found = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = found
    specification.loader.exec_module(found)
    return found


@each_dtype
def test_coefficients_approximate_as_stated(dtype: DType) -> None:
    script, record = derivation(), CONSTANTS[dtype]
    stated = dict(APPROXIMATIONS[dtype])
    for fit in script.fits(dtype):
        parts = [[mpmath.mpf(each) for each in getattr(record, name)] for name in fit.names]
        numerator, denominator = parts if len(parts) == 2 else (parts[0], [mpmath.mpf(1)])
        with mpmath.workdps(60):
            errors = [
                fit.weight(x)
                * abs(fit.function(x) - script.value(numerator, x) / script.value(denominator, x))
                for x in fit.points(400)
                if fit.weight(x) > 1e-30
            ]
            assert mpmath.log(max(errors), 2) < stated.pop(fit.names[0]), fit.names
    assert not stated


@each_dtype
def test_constants_are_the_nearest_of_their_type(dtype: DType) -> None:
    with mpmath.workdps(60):
        assert derivation().check_constants(dtype)
