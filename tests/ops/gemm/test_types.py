"""Kernels of every element type with this host's instructions: accuracy, integers, order, flags, guard pages.

tests/micro/test_emulate.py runs every row's kernels on exact sums; here floats round, and the CPU multiplies.
"""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from shares import EVERY_TEST_RUNS, check_each, cover
from support import ARCH, EXCEPTIONS, FENV, GUARD_PAGES, Array, GuardedMemory, gamma, host_rows, no_flags
from tiers import exhaustive, named, pairwise

import tilewright as tw
from tilewright.compiler.kernel import Kernel
from tilewright.errors import UnsupportedDtype
from tilewright.machine.catalog import find_machine
from tilewright.machine.machine import Machine, runs_on
from tilewright.macro.blocking import Blocking
from tilewright.ops.batch_reduce.problem import BatchReduceGemm
from tilewright.ops.gemm.nest import instruction_of
from tilewright.ops.gemm.problem import Gemm
from tilewright.spec.dtype import DTYPES, DType, Kind
from tilewright.spec.problem import Layout, ProductTypes, exact_dtype

pytestmark = pytest.mark.skipif(not GUARD_PAGES, reason="no pages can be protected")

Types = tuple[str, str, str]

#: The rows of this host, and CPUs with fewer instructions that it can stand in for.
TARGETS: dict[str, Machine] = {isa.name: tw.machine(isa.name) for isa in host_rows()} | {
    name: find_machine(name)
    for name in ("x86-64-v4", "x86-64-v3", "x86-64-v2")
    if runs_on(find_machine(name), tw.machine())
}
#: SSE2 stands for no CPU of its own, and floats are multiplied alike with AVX-VNNI and without.
INTEGER_TARGETS = [name for name in TARGETS if name != "generic128" or "x86-64-v2" not in TARGETS]
FLOAT_TARGETS = [name for name in INTEGER_TARGETS if name != "avx2" or "x86-64-v3" not in TARGETS]


def triples() -> Iterator[Types]:
    """Every combination of element types that a product has."""
    for a, b, c in product(DTYPES, repeat=3):
        with suppress(UnsupportedDtype):
            ProductTypes.parse(a, b, c)
            yield a, b, c


def parts_of(triple: Types) -> set[object]:
    """What a product adds to a test of others: the instruction, and the conversions before and after it."""
    a, b, c = triple
    instruction = instruction_of(Gemm(dtype=a, b_dtype=b, out_dtype=c), tw.machine().isa)
    return {instruction, ("A", a), ("B", b), ("C", c, ProductTypes.parse(*triple).acc)}


@cache
def chosen_triples() -> list[Types]:
    """Triples in which each instruction, each type of A and of B, and each C of each type of sums occurs."""
    found = list(triples())
    return found if EVERY_TEST_RUNS else cover({triple: parts_of(triple) for triple in found})


#: Invalid operations, divisions by zero and overflows; a narrow C may well be subnormal.
SERIOUS = EXCEPTIONS[ARCH][0] if FENV else 0

#: The combinations that have an instruction, a conversion or a store of their own.
TYPES: tuple[Types, ...] = (
    ("bf16", "bf16", "bf16"),
    ("bf16", "bf16", "f32"),
    ("f16", "f16", "f16"),
    ("f16", "bf16", "f32"),
    ("f32", "f16", "bf16"),
    ("f64", "bf16", "f32"),
    ("i8", "i8", "i32"),
    ("i8", "i8", "i8"),
    ("u8", "i8", "i32"),
    ("i8", "u8", "i16"),
    ("u8", "u8", "i32"),
    ("i16", "i16", "i32"),
    ("i4", "u4", "i32"),
    ("i32", "i32", "i32"),
    ("i64", "i64", "i64"),
    ("c64", "c64", "c64"),
    ("c128", "c64", "c128"),
)
INTEGERS = tuple(types for types in TYPES if DTYPES[types[0]].is_integer)


def code_of(target: str, types: Types) -> tuple[object, ...]:
    """Targets with the same code: their row, and what multiplies and converts such numbers."""
    machine, (a, b, c) = TARGETS[target], types
    multiply = instruction_of(Gemm(dtype=a, b_dtype=b, out_dtype=c), machine.isa)
    return machine.isa.name, multiply, target if "bf16" in types else None


def cases(types: Iterable[Types], *, first: int = 0, each: int = 1) -> pytest.MarkDecorator:
    """Each combination of types on each target, once for each code in `make test`; of those one in `each`."""
    found, seen = [], set()
    for row, one in enumerate(types):
        for column, target in enumerate(INTEGER_TARGETS if one in INTEGERS else FLOAT_TARGETS):
            code = (one, code_of(target, one))
            marks = exhaustive if code in seen or (row + column) % each != first else ()
            seen.add(code)
            found.append(pytest.param(target, one, id=f"{'-'.join(one)}-{target}", marks=marks))
    return pytest.mark.parametrize(("target", "types"), found)


# --- operands -------------------------------------------------------------------------------------------


def drawn(random: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Normal variates, or integers of the whole range."""
    if dtype.is_integer:
        lowest = -(1 << dtype.significand - 1) if dtype.kind is Kind.SIGNED else 0
        highest = lowest + (1 << dtype.significand) - 1
        return random.integers(lowest, highest, shape, np.int64, endpoint=True).astype(dtype.numpy)
    found = random.standard_normal(shape)
    if dtype.kind is Kind.COMPLEX:
        return (found + 1j * random.standard_normal(shape)).astype(dtype.numpy)
    return found.astype(dtype.numpy)


def extreme(dtype: DType, shape: tuple[int, int]) -> Array:
    """The most negative number in every other line, the largest one in the others."""
    lowest = -(1 << dtype.significand - 1) if dtype.kind is Kind.SIGNED else 0
    highest = lowest + (1 << dtype.significand) - 1
    lines = np.arange(shape[0])[:, None] % 2 == 0
    return np.where(np.broadcast_to(lines, shape), lowest, highest).astype(dtype.numpy)


#: Elements between the end of a line and the beginning of the next, and between matrices.
PADDING = 3


def steps(shape: tuple[int, ...], layout: Layout, size: int) -> tuple[int, ...]:
    """Byte strides of a matrix, or of a batch of them."""
    rows, columns = shape[-2:]
    length, lines = (rows, columns) if layout is Layout.COL else (columns, rows)
    inner = (1, length + PADDING) if layout is Layout.COL else (length + PADDING, 1)
    outer = (lines * (length + PADDING) + PADDING,) * (len(shape) - 2)
    twice = 2 if layout is Layout.STRIDED else 1
    return tuple(stride * size * twice for stride in (*outer, *inner))


@cache
def memory(operand: str) -> GuardedMemory:
    """The pages of one operand, with an inaccessible one at each end."""
    return GuardedMemory(1 << 19)


def placed(problem: Gemm | BatchReduceGemm, arrays: tuple[Array, Array, Array], number: int) -> list[Array]:
    """Operands in their layouts, some of them at the end of their pages, the others at the beginning."""
    return [
        memory(operand.name).place(
            array, steps(array.shape, operand.layout, operand.dtype.size), at_end=number >> place & 1 == 0
        )
        for place, (operand, array) in enumerate(zip(problem.operands, arrays, strict=True))
    ]


def ordered(problem: Gemm, *arrays: Array) -> list[Array]:
    """A, B and C, contiguous in their layouts."""
    return [
        np.array(array, order="F" if operand.layout is Layout.COL else "C")
        for operand, array in zip(problem.operands, arrays, strict=True)
    ]


# --- what is right --------------------------------------------------------------------------------------


def parts(array: Array) -> Array:
    """Absolute values; of complex numbers, the sum of those of both parts, which bounds every product's."""
    return abs(array.real) + abs(array.imag)


def assert_right(types: ProductTypes, found: Array, expected: Array, magnitude: Array, depth: int) -> None:
    """Promise 4: |found - exact| ≤ γ(k+2)·(|α||A||B| + |β||C|) + half an ulp of C; integers are exact."""
    if types.c.is_integer:
        np.testing.assert_array_equal(found, expected.astype(found.dtype))
        return
    exact = exact_dtype(types)
    count = depth * (2 if types.is_complex else 1) + 2
    sums = gamma(count, types.acc.numpy) + gamma(count, np.float64)
    # Below the least normal number a rounding is not relative: half a step of subnormals.
    least = 2.0 ** {"f16": -24, "f8e4m3": -10, "f8e5m2": -17}.get(types.c.name, -126)
    bound = sums * magnitude + types.c.unit_roundoff * (parts(expected) + sums * magnitude) + least
    wrong = ~(parts(found.astype(exact) - expected) <= bound)
    assert not wrong.any(), f"{np.count_nonzero(wrong)} of {found.size} elements outside the bound"


def check_gemm(
    kernel: Kernel, arrays: tuple[Array, Array, Array], coefficients: tuple[float, float], number: int
) -> None:
    """One product between guard pages, of which nothing but C changes."""
    problem, (alpha, beta) = kernel.problem, coefficients
    assert isinstance(problem, Gemm)
    a, b, c = arrays
    exact = exact_dtype(problem.types)
    expected = problem.reference(a, b, c, alpha=alpha, beta=beta)
    magnitude = abs(alpha) * (parts(a.astype(exact)) @ parts(b.astype(exact)))
    magnitude = magnitude + abs(beta) * parts(c.astype(exact))
    if beta == 0 and not problem.out_dtype.is_integer:
        c = np.full_like(c, np.nan)
    in_a, in_b, in_c = placed(problem, (a, b, c), number)
    before = memory("c").outside(in_c)
    with no_flags(SERIOUS) if FENV else nullcontext():
        kernel(in_a, in_b, in_c, alpha=alpha, beta=beta)
    assert_right(problem.types, in_c, expected, magnitude, a.shape[1])
    assert np.array_equal(memory("c").outside(in_c), before), "bytes outside C changed"


LAYOUTS = (("row", "row", "row"), ("row", "col", "row"), ("col", "row", "col"), ("strided",) * 3)
STRATEGIES = ("auto", "auto", "packing", "tiling")


def number_of(target: str, types: Types) -> int:
    """Types and targets take turns with layouts, strategies and places."""
    place = TYPES.index(types) if types in TYPES else len(TYPES)
    return 7 * place + list(TARGETS).index(target)


@cache
def compiled(target: str, types: Types, strategy: str | None = None) -> Kernel:
    """One kernel of types on a target for every test here; another if a strategy is asked for."""
    number = number_of(target, types)
    a, b, c = LAYOUTS[number % len(LAYOUTS)]
    if strategy is None:
        return compiled(target, types, STRATEGIES[number // 4 % 4])
    problem = Gemm(dtype=types[0], b_dtype=types[1], out_dtype=types[2], a=a, b=b, c=c, strategy=strategy)
    return tw.compile(problem, TARGETS[target])


def cut_of(kernel: Kernel) -> Blocking:
    """How a kernel's products are cut."""
    assert isinstance(kernel.blocking, Blocking)
    return kernel.blocking


def gemm_arrays(problem: Gemm, sizes: tuple[int, int, int], seed: int = 0) -> tuple[Array, Array, Array]:
    (m, n, k), random = sizes, np.random.default_rng(seed)
    dtypes = (problem.dtype, problem.b_dtype, problem.out_dtype)
    a, b, c = (
        drawn(random, dtype, shape) for dtype, shape in zip(dtypes, ((m, k), (k, n), (m, n)), strict=True)
    )
    return a, b, c


# --- products -------------------------------------------------------------------------------------------


@cases(TYPES, each=2)
def test_gemm(target: str, types: Types) -> None:
    """One row, one column, tails of every kind, several depth blocks, alpha and beta."""
    number, kernel = number_of(target, types), compiled(target, types)
    problem, blocking = kernel.problem, cut_of(kernel)
    assert isinstance(problem, Gemm)
    mr, nr, kc = blocking.mr, blocking.nr, blocking.kc
    sizes = [
        (1, 1, 1),
        (1, 2 * nr + 3, 17),
        (mr + 3, 1, 33),
        (2 * mr + 1, nr - 1, 2),
        (mr - 1, 3 * nr + 5, 7),
        (5, nr + 1, kc + 3),
        (3 * mr, 2 * nr, 16),
        (4, 3, 0),
    ]
    for turn, (m, n, k) in enumerate(sizes):
        coefficients = ((1, 0), (2, 3), (-1, 1))[turn % 3]
        check_gemm(kernel, gemm_arrays(problem, (m, n, k), turn), coefficients, number + turn)


def check_batch_reduce(types: Types) -> None:
    """One sum of products between guard pages; targets, layouts, sizes and beta take turns."""
    a, b, c = types
    number = sum(factor * list(DTYPES).index(name) for factor, name in zip((31, 7, 1), types, strict=True))
    m, n, k, count = ((5, 3, 7, 2), (1, 1, 1, 1), (13, 21, 9, 3), (9, 19, 18, 1))[number % 4]
    layouts = {name: ("row", "col")[number >> place & 1] for place, name in enumerate("abc")}
    known: Any = {"b_dtype": b, "out_dtype": c, "beta": number // 3 % 2, **layouts}
    problem = BatchReduceGemm(m, n, k, count, a, **known)
    random = np.random.default_rng(number)
    shapes = ((count, m, k), (count, k, n), (m, n))
    arrays = [
        drawn(random, operand.dtype, shape) for operand, shape in zip(problem.operands, shapes, strict=True)
    ]
    exact = exact_dtype(problem.types)
    expected = problem.reference(*arrays)
    magnitude = np.einsum("imk,ikn->mn", *(parts(array.astype(exact)) for array in arrays[:2]))
    magnitude = magnitude + problem.beta * parts(arrays[2].astype(exact))
    if problem.beta == 0 and not problem.out_dtype.is_integer:
        arrays[2][...] = np.nan
    in_a, in_b, in_c = placed(problem, (arrays[0], arrays[1], arrays[2]), number)
    before = memory("c").outside(in_c)
    target = list(TARGETS)[number % len(TARGETS)]
    tw.compile(problem, TARGETS[target])(in_a, in_b, in_c)
    assert_right(problem.types, in_c, expected, magnitude, k * count)
    assert np.array_equal(memory("c").outside(in_c), before), "bytes outside C changed"


@pytest.mark.parametrize("a", DTYPES)
def test_batch_reduce_of_every_triple(a: str) -> None:
    """Each instruction and each conversion; every triple in `make test-all`."""
    check_each((types for types in chosen_triples() if types[0] == a), check_batch_reduce)


# --- one rounding -----------------------------------------------------------------------------------------


NARROW: tuple[Types, ...] = (
    ("bf16", "bf16", "bf16"),
    ("f16", "f16", "f16"),
    ("f32", "bf16", "f16"),
    ("c128", "c128", "c64"),
)


@pytest.mark.parametrize(
    ("target", "types", "strategy"), pairwise(FLOAT_TARGETS, NARROW, ("auto", "packing", "tiling")), ids=named
)
def test_narrow_results_are_rounded_once(target: str, types: Types, strategy: str) -> None:
    """Sums that are exact where they are kept, over several depth blocks: C is the exact value, rounded."""
    kernel = compiled(target, types, strategy)
    problem = kernel.problem
    assert isinstance(problem, Gemm)
    random, kc = np.random.default_rng(0), cut_of(kernel).kc
    for (m, n, k), (alpha, beta) in (
        ((7, 37, 2 * kc + 5), (1, 0)),
        ((70, 9, 3 * kc), (2, -1)),
        ((1, 40, kc + 1), (1, 1)),
    ):
        a, b, c = (
            random.integers(-4, 5, shape).astype(operand.dtype.numpy)
            for operand, shape in zip(problem.operands, ((m, k), (k, n), (m, n)), strict=True)
        )
        expected = problem.reference(a, b, c, alpha=alpha, beta=beta).astype(c.dtype)
        a, b, c = ordered(problem, a, b, c)
        kernel(a, b, c, alpha=alpha, beta=beta)
        np.testing.assert_array_equal(c.astype(np.complex128), expected.astype(np.complex128))


# --- integers at the ends of their range ------------------------------------------------------------------


@cases(INTEGERS)
def test_integers_at_their_ends(target: str, types: Types) -> None:
    """-128·-128, 255·127, 255·255 and -32768·-32768, which overflows the sum of two: nothing saturates."""
    kernel = compiled(target, types)
    problem = kernel.problem
    assert isinstance(problem, Gemm)
    sizes = ((3, 5, 1), (2, 17, 2), (13, 33, 3), (4, 4, 64), (1, 9, 1031), (9, 1, 30), (70, 70, 70))
    for turn, (m, n, k) in enumerate(sizes):
        a, c = extreme(problem.dtype, (m, k)), extreme(problem.out_dtype, (m, n))
        b = np.ascontiguousarray(extreme(problem.b_dtype, (n, k)).T)
        check_gemm(kernel, (a, b, c), ((1, 0), (3, -2))[turn % 2], turn)


# --- promises 5 and 6 -------------------------------------------------------------------------------------


@cases((*TYPES[:6], ("c64", "c64", "c64")), each=2)
def test_bits_do_not_depend_on_rows_or_strategy(target: str, types: Types) -> None:
    """Row i of any number of rows, in place or packed, is the product of row i alone."""
    kernels = [compiled(target, types, strategy) for strategy in ("auto", "packing")]
    problem = kernels[0].problem
    assert isinstance(problem, Gemm)
    for n, k in ((37, 33), (70, cut_of(kernels[0]).kc + 9)):
        a, b, c = ordered(problem, *gemm_arrays(problem, (29, n, k)))

        def product_of(kernel: Kernel, rows: slice, a: Array = a, b: Array = b, c: Array = c) -> bytes:
            found = np.zeros_like(c[rows])
            kernel(a[rows], b, found)
            return found.tobytes()

        alone = [product_of(kernels[0], slice(i, i + 1)) for i in range(29)]
        for kernel, m in product(kernels, (1, 2, 5, 12, 29)):
            assert product_of(kernel, slice(0, m)) == b"".join(alone[:m]), f"{kernel.name} of {m} rows"


@pytest.mark.skipif(not FENV, reason="floating-point flags of this C library are not known")
@cases((("bf16", "bf16", "f32"), ("f16", "f16", "f16"), ("f32", "f16", "bf16"), ("c64", "c64", "c64")))
def test_infinity_beside_padding_raises_no_flag(target: str, types: Types) -> None:
    """Lanes and depths that do not exist multiply what real ones do: no infinity meets a zero."""
    kernel = compiled(target, types)
    problem = kernel.problem
    assert isinstance(problem, Gemm)
    for m, n, k in ((1, 3, 1), (5, 7, 3), (13, 33, 9), (3, 1, 5)):
        a, b, c = (
            np.ones(shape, operand.dtype.numpy)
            for operand, shape in zip(problem.operands, ((m, k), (k, n), (m, n)), strict=True)
        )
        if not problem.types.is_complex:  # of infinite complex numbers some parts are NaN
            a[-1, -1] = np.inf
        in_a, in_b, in_c = placed(problem, (a, b, c), 0)
        with no_flags(SERIOUS):
            kernel(in_a, in_b, in_c)
        expected = np.full((m, n), float(k))
        expected[-1] = k if problem.types.is_complex else np.inf
        np.testing.assert_array_equal(in_c.astype(np.complex128), expected.astype(np.complex128))
