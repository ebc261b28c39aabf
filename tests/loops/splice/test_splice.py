"""Products spliced into functions of hand-made LLVM IR, run through the JIT against NumPy."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from spliced import (
    FOURS,
    LDA,
    LDB,
    LDC,
    POINTERS,
    ROW_MAJOR,
    K,
    M,
    N,
    Spliced,
    dimension,
    gemm,
    numbers,
    operand,
    under,
    value,
)
from support import host_rows
from tiers import each_value

from tilewright.loops.llvm.symbols import Computed, IntegerOperation, Reloaded
from tilewright.loops.nests.nest import (
    Extent,
    Factor,
    InvariantScalar,
    MatrixProduct,
    Refusal,
    TriangularPart,
)
from tilewright.loops.nests.polynomial import Polynomial
from tilewright.loops.splice.plan import ProductStrategy, plan
from tilewright.machine.host import host_machine
from tilewright.macro.cost import call_limits
from tilewright.ops.gemm.problem import Gemm
from tilewright.spec.dtype import BF16, F16, F32, F64, I8, I16, I32, I64, U8, DType
from tilewright.spec.roles import DimensionRole

LIMITS = call_limits(host_machine().core)


@pytest.fixture(scope="module")
def adds() -> Spliced:
    """C += A·B, all of them row-major."""
    return Spliced(gemm(F32, (M, N, K), FOURS), ROW_MAJOR)


@pytest.mark.parametrize(
    ("m", "n", "k"), [(5, 7, 9), (64, 64, 64), (70, 66, 130), (1, 19, 40), (90, 1, 4), (3, 2000, 30)]
)
def test_product_goes_around_its_loop(adds: Spliced, m: int, n: int, k: int) -> None:
    a, b, c = numbers((m, k), F32, 1), numbers((k, n), F32, 2), numbers((m, n), F32, 3)
    expected = c + a @ b
    assert not adds(a, b, c, m, n, k, k, n, n).looped
    np.testing.assert_array_equal(c, expected)


def test_little_work_is_left_to_the_loop(adds: Spliced) -> None:
    a, b, c = np.ones((4, 4), "f4"), np.ones((4, 4), "f4"), np.zeros((4, 4), "f4")
    assert LIMITS.kernel > 4**3
    assert adds(a, b, c, 4, 4, 4, 4, 4, 4).looped
    assert adds(a, b, c, 1000, 0, 1000, 1000, 1000, 1000).looped
    assert adds(a, b, c, -5, 100, 1000, 1000, 1000, 1000).looped
    assert (c == 0).all()


def test_beta_zero_never_reads_c() -> None:
    spliced = Spliced(gemm(F32, (M, N, K), FOURS, beta=Factor(0)), ROW_MAJOR)
    a, b, c = np.ones((30, 4), "f4"), np.ones((4, 5), "f4"), np.full((30, 5), np.nan, "f4")
    assert not spliced(a, b, c, 30, 5, 4, 4, 5, 5).looped
    assert (c == 4).all()


TYPES = [
    *((F64, F64, F64), (F16, F16, F16), (BF16, BF16, BF16), (F16, F16, F32), (BF16, BF16, F32)),
    *((I8, I8, I32), (U8, I8, I32), (I8, I8, I8), (I16, I16, I16), (I16, I16, I32), (I32, I32, I32)),
    (I64, I64, I64),
]


@pytest.mark.parametrize("types", TYPES, ids=lambda types: "-".join(map(str, types)))
def test_element_types(types: tuple[DType, DType, DType]) -> None:
    ta, tb, tc = types
    strides = (LDA * ta.size, ta.size, LDB * tb.size, tb.size, LDC * tc.size, tc.size)
    spliced = under(gemm(ta, (M, N, K), strides, types=types, alpha=Factor(-1)))
    m, n, k = 9, 21, 13
    a, b, c = numbers((m, k), ta, 1), numbers((k, n), tb, 2), numbers((m, n), tc, 3)
    expected = c.astype(float) - a.astype(float) @ b.astype(float)
    assert not spliced(a, b, c, m, n, k, k, n, n).looped
    wide = expected.astype(np.int64).astype(tc.numpy) if tc.is_integer else expected
    np.testing.assert_array_equal(c.astype(float), wide.astype(float))


@pytest.mark.parametrize("layouts", ["rrr", "ccr", "rcc", "srs", "sss"])
def test_layouts(layouts: str) -> None:
    """Row-major, column-major, or both strides at run time."""
    leading = [(f"{axis}s_{name}", "i64") for name in "abc" for axis in "rc"]
    strides = []
    for name, layout in zip("abc", layouts, strict=True):
        rows, columns = (Polynomial.of(value(f"{axis}s_{name}")) * 4 for axis in "rc")
        strides += [4 if layout == "c" else rows, 4 if layout == "r" else columns]
    spliced = Spliced(gemm(F32, (M, N, K), strides), [*ROW_MAJOR[:6], *leading])
    m, n, k = 17, 23, 11
    matrices = []
    for seed, (shape, layout) in enumerate(zip(((m, k), (k, n), (m, n)), layouts, strict=True)):
        if layout == "s":
            matrices.append(numbers((shape[0] * 2, shape[1] * 3), F32, seed)[::2, ::-3])
        else:
            matrices.append(np.asarray(numbers(shape, F32, seed), order="F" if layout == "c" else "C"))
    a, b, c = matrices
    expected = c + a @ b
    given = [stride // 4 for matrix in matrices for stride in matrix.strides]
    assert not spliced(a, b, c, m, n, k, *given).looped
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("size", [4, 8, 23, 64])
@pytest.mark.parametrize("beta", [0, 1])
def test_known_sizes(size: int, beta: int) -> None:
    row = 4 * size
    spliced = Spliced(gemm(F32, (size,) * 3, (row, 4, row, 4, row, 4), beta=Factor(beta)), [*POINTERS])
    assert "brgemm" in spliced.text
    a, b, c = (numbers((size, size), F32, seed) for seed in range(3))
    expected = beta * c + a @ b
    assert not spliced(a, b, c).looped
    np.testing.assert_array_equal(c, expected)


def test_narrow_sizes_are_read_as_the_program_reads_them() -> None:
    sizes = (value("m", "i32"), value("n", "i32", signed=False), value("k", "i32"))
    arguments = [*POINTERS, ("m", "i32"), ("n", "i32"), ("k", "i32")]
    spliced = Spliced(gemm(F32, sizes, (32, 4, 32, 4, 32, 4)), arguments)
    a, b, c = np.ones((8, 8), "f4"), np.ones((8, 8), "f4"), np.zeros((8, 8), "f4")
    assert not spliced(a, b, c, 8, 8, 8).looped
    assert spliced(a, b, c, -8, 8, 8).looped
    assert spliced(a, b, c, 8, -8, 8).looped  # 2^32 - 8 columns overlap everything


def scalar(name: str, kind: str) -> InvariantScalar:
    return InvariantScalar(value(name, kind), None)


def test_factors_of_other_types() -> None:
    product = gemm(
        *(F32, (M, N, K), FOURS),
        alpha=Factor(2.0, (scalar("x", "double"), scalar("y", "float"))),
        beta=Factor(1, (scalar("z", "i32"),)),
    )
    spliced = Spliced(product, [*ROW_MAJOR, ("x", "double"), ("y", "float"), ("z", "i32")])
    a, b, c = (numbers((8, 8), F32, seed) for seed in range(3))
    expected = 2.0 * 1.5 * 0.25 * (a @ b) - 3 * c
    assert not spliced(a, b, c, *[8] * 6, 1.5, 0.25, -3).looped
    np.testing.assert_array_equal(c, expected)


def test_integers_in_memory_are_read_unless_c_has_them() -> None:
    size = Reloaded.of(value("where", "ptr"), Polynomial.of(8), "i32")
    bound = Computed.of(IntegerOperation.MINIMUM, Polynomial.of(size), M)
    spliced = Spliced(gemm(F32, (bound, N, K), FOURS), [*ROW_MAJOR, ("where", "ptr")])
    where = np.array([0, 0, 9, 0], np.int32)
    a, b, c = np.ones((16, 8), "f4"), np.ones((8, 8), "f4"), np.zeros((16, 8), "f4")
    assert not spliced(a, b, c, 16, 8, 8, 8, 8, 8, where).looped
    assert (c[:9] == 8).all()
    assert (c[9:] == 0).all()
    inside = c.view(np.int32)
    inside[0, 2] = 9
    assert spliced(a, b, c, 16, 8, 8, 8, 8, 8, inside).looped


def around(*dimensions: tuple[DimensionRole, int, int, int, int], dtype: DType = F32) -> MatrixProduct:
    """A product of constant sizes and strides in elements."""
    size = dtype.size
    dimensions_of = tuple(
        dimension(role, extent, a * size, b * size, c * size) for role, extent, a, b, c in dimensions
    )
    return replace(gemm(dtype, (1, 1, 1), (0,) * 6), dimensions=dimensions_of)


def test_loops_around_the_kernel() -> None:
    """Two dimensions of each role: A [h i g p q], B [h p q j], C [h i g j]."""
    h, i, g, j, p, q = 2, 3, 5, 7, 4, 6
    a, b, c = numbers((h, i, g, p, q), F32, 1), numbers((h, p, q, j), F32, 2), numbers((h, i, g, j), F32, 3)
    product = around(
        (DimensionRole.BATCH, h, i * g * p * q, p * q * j, i * g * j),
        (DimensionRole.M, i, g * p * q, 0, g * j),
        (DimensionRole.M, g, p * q, 0, j),
        (DimensionRole.K, p, q, q * j, 0),
        (DimensionRole.K, q, 1, j, 0),
        (DimensionRole.N, j, 0, 1, 1),
    )
    expected = c + np.einsum("higpq,hpqj->higj", a, b)
    assert not Spliced(product, POINTERS)(a, b, c).looped
    np.testing.assert_array_equal(c, expected)


def test_no_depths_of_several_still_scale_c() -> None:
    product = around(
        (DimensionRole.M, 64, 1, 0, 8),
        (DimensionRole.N, 8, 0, 1, 1),
        (DimensionRole.K, 8, 1, 1, 0),
        (DimensionRole.K, 8, 1, 1, 0),
    )
    *others, deep = product.dimensions
    product = replace(product, dimensions=(*others, replace(deep, extent=Extent.of(M))), beta=Factor(3))
    spliced = Spliced(product, [*POINTERS, ("m", "i64")])
    a, b, c = np.ones(600, "f4"), np.ones(600, "f4"), np.ones((64, 8), "f4")
    assert not spliced(a, b, c, 0).looped
    assert (c == 3).all()


@pytest.mark.parametrize("second", [False, True], ids=["syrk", "syr2k"])
@pytest.mark.parametrize("triangle", list(TriangularPart), ids=lambda one: one.value)
def test_triangles(triangle: TriangularPart, second: bool) -> None:
    a, b = operand("a", F32), operand("b", F32)
    product = replace(
        gemm(F32, (N, N, K), (K * 4, 4, 4, K * 4, N * 4, 4), alpha=Factor(2)),
        b=b if second else a,
        second=(b, a) if second else None,
        triangle=triangle,
    )
    spliced = Spliced(product, [*POINTERS, ("n", "i64"), ("k", "i64")])
    n, k = 37, 19
    left, right, result = numbers((n, k), F32, 1), numbers((n, k), F32, 2), numbers((n, n), F32, 3)
    sums = left @ right.T + right @ left.T if second else left @ left.T
    part = np.tril if triangle is TriangularPart.LOWER else np.triu
    expected = result + part(2 * sums)
    assert not spliced(left, right, result, n, k).looped
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("strategy", list(ProductStrategy), ids=lambda one: one.value)
def test_strategies(strategy: ProductStrategy) -> None:
    size = 12
    product = gemm(F32, (size,) * 3, (48, 4, 48, 4, 48, 4))
    spliced = Spliced(product, POINTERS, strategy=strategy)
    a, b, c = (numbers((size, size), F32, seed) for seed in range(3))
    expected = c + a @ b
    assert not spliced(a, b, c).looped
    np.testing.assert_array_equal(c, expected)


REFUSED = [
    (gemm(F32, (M, N, K), FOURS, types=(F32, I32, F32)), "for which there is no kernel"),
    (gemm(F32, (M, N, K), FOURS, acc=F64), "sums products of f32 and f32 in f64"),
    (gemm(I32, (M, N, K), FOURS, types=(I32, I32, I64)), "for which there is no kernel"),
    (gemm(I32, (M, N, K), FOURS, alpha=Factor(0.5)), "cannot represent"),
    (gemm(F32, (3, 3, 3), FOURS), "has 27 multiply-adds"),
    (
        around(
            (DimensionRole.M, 9, 9, 0, 9),
            (DimensionRole.N, 9, 0, 1, 1),
            (DimensionRole.K, 3, 3, 27, 0),
            (DimensionRole.K, 3, 9, 9, 0),
            dtype=BF16,
        ),
        "sums along several dimensions into bf16",
    ),
]


@pytest.mark.parametrize(("product", "reason"), REFUSED, ids=[reason for _, reason in REFUSED])
def test_refusals(product: MatrixProduct, reason: str) -> None:
    found = plan(product, host_machine())
    assert isinstance(found, Refusal)
    assert reason in found.reason


def test_sums_that_only_reach_c_in_part() -> None:
    """Integers summed in 64 bits into 32 of them: bits that do not reach C need no sums."""
    found = plan(gemm(I32, (M, N, K), FOURS, acc=I64), host_machine())
    assert not isinstance(found, Refusal)


def test_a_single_row_or_column_stands_as_suits_the_matrix() -> None:
    def layout(*dimensions: tuple[DimensionRole, int, int, int, int]) -> str:
        found = plan(around(*dimensions), host_machine())
        assert not isinstance(found, Refusal)
        problem = found.ways[-1].problem
        assert isinstance(problem, Gemm)
        return str(problem.c.value)

    assert (
        layout((DimensionRole.M, 2000, 2000, 0, 1), (DimensionRole.K, 2000, 1, 1, 0)) == "row"
    )  # sums along rows of A
    assert (
        layout((DimensionRole.M, 2000, 1, 0, 1), (DimensionRole.K, 2000, 2000, 1, 0)) == "col"
    )  # rows of A's transpose, scaled
    assert layout((DimensionRole.N, 2000, 0, 2000, 1), (DimensionRole.K, 2000, 1, 1, 0)) == "col"
    assert layout((DimensionRole.N, 2000, 0, 1, 1), (DimensionRole.K, 2000, 1, 2000, 0)) == "row"


def test_loops_that_walk_a_matrix_in_order_stay_until_it_is_large() -> None:
    def least(*dimensions: tuple[DimensionRole, int, int, int, int]) -> int:
        found = plan(around(*dimensions), host_machine())
        assert not isinstance(found, Refusal)
        return found.least_work

    size = 3000
    along, across = (DimensionRole.K, size, 1, 1, 0), (DimensionRole.M, size, size, 0, 1)
    assert least(across, along) == LIMITS.vector
    assert least(along, across) == LIMITS.kernel  # the innermost loop skips from row to row
    along, across = (DimensionRole.K, size, 1, size, 0), (DimensionRole.N, size, 0, 1, 1)
    assert least(along, across) == LIMITS.vector
    assert least(along, across, (DimensionRole.M, 5, size, 0, size)) == LIMITS.kernel


def test_an_arena_in_the_place_of_malloc() -> None:
    """A function of the program gives memory, or none, and then the loops run."""
    product = gemm(F32, (M, N, K), FOURS)
    # More than is used: an L3 of 300 MiB has large blocks.
    room: list[NDArray[Any]] = [np.zeros(1 << 29, np.uint8)]
    asked: list[int] = []

    def given(size: int) -> int | None:
        asked.append(size)
        return room[0].ctypes.data if room and size <= room[0].nbytes else None

    arena = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(given)
    address = ctypes.cast(arena, ctypes.c_void_p).value or 0
    spliced = Spliced(product, ROW_MAJOR, arena={"my_arena": address})
    assert "@malloc" not in spliced.text
    a, b, c = numbers((100, 100), F32, 1), numbers((100, 100), F32, 2), np.zeros((100, 100), "f4")
    assert not spliced(a, b, c, *[100] * 6).looped
    np.testing.assert_array_equal(c, a @ b)
    assert len(asked) == 1
    assert asked[0] < room[0].nbytes
    room.clear()
    assert spliced(a, b, c, *[100] * 6).looped


#: A column-major, B and C of strides that run time knows.
STRIDED = (4, LDA * 4, LDB * 4, LDC * 4, LDC * 4, LDB * 4)


@pytest.mark.parametrize("strides", [FOURS, STRIDED], ids=["row-major", "strided"])
@pytest.mark.parametrize("isa", ["avx512", "avx2", "generic128"])
@each_value
def test_little_work_asks_for_no_memory(isa: str, strides: tuple[Polynomial | int, ...]) -> None:
    """Panels stand in the frame, where edges or strides want some; deep ones block by block."""
    rows = {row.name: row for row in host_rows()}
    if isa not in rows:
        pytest.skip(f"this machine has no {isa}")
    none = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)(lambda _size: None)
    address = ctypes.cast(none, ctypes.c_void_p).value or 0
    machine = host_machine().with_isa(rows[isa])
    spliced = Spliced(gemm(F32, (M, N, K), strides), ROW_MAJOR, machine, arena={"no_arena": address})
    pitch = 64
    for m, n, k in ((9, 21, 13), (3, 5, 1000), (40, 40, 40)):
        b = numbers((k, pitch), F32, 2)[:, :n]
        if strides is FOURS:
            a, c = numbers((m, k), F32, 1), numbers((m, pitch), F32, 3)[:, :n]
            given = (k, pitch, pitch)
        else:
            a, c = numbers((k, m), F32, 1).T, numbers((n, pitch), F32, 3)[:, :m].T
            given = (m, pitch, 1)
        expected = c + a @ b
        assert not spliced(a, b, c, m, n, k, *given).looped
        np.testing.assert_array_equal(c, expected)
    a, b, c = (numbers((100, 100), F32, seed) for seed in range(3))
    assert spliced(a, b, c, *[100] * 4, 100, 100 if strides is FOURS else 1).looped
