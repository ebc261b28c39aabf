"""`trmm`: values, triangles, promotion, overlap, bits, memory, errors; and its kernels."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from emulated_rows import drawn, emulated_kernel, emulating, every_feature, in_layout, stored
from hypothesis import given
from hypothesis import strategies as st
from shares import share
from support import (
    GUARD_PAGES,
    LAYOUTS,
    Array,
    GuardedMemory,
    assert_accurate,
    filled,
    gamma,
    rough,
    unaligned,
)
from tiers import draws

import tilewright as tw
from tilewright.calls.kernel import ArrayKernel
from tilewright.errors import (
    BatchMismatch,
    FactorAxes,
    ForeignKernel,
    InvalidChoice,
    InvalidScalar,
    InvalidThreads,
    OperandMismatch,
    OutDtype,
    OutOverlapsItself,
    OutReadOnly,
    OutShape,
    SizeOverflow,
    TilewrightError,
    TriangleNotSquare,
    TriangleShape,
    UnsupportedDtype,
)
from tilewright.machine.isa import Isa
from tilewright.machine.isa_rows import ISAS
from tilewright.macro.blocking import SUMS_COLUMNS, SUMS_ROWS
from tilewright.ops.triangular.trmm_call import Triangular, trmm_kernel
from tilewright.ops.triangular.trmm_problem import Side, Trmm
from tilewright.spec.dtype import DTYPES, GEMM_DTYPES, DType
from tilewright.spec.problem import Layout, ProductTypes
from tilewright.typing import SideName

#: More depths than a block has, with a tail; half of them are no multiple of a register tile's rows.
DEEP = 1035
SIDES: tuple[SideName, ...] = ("left", "right")
KINDS = [*itertools.product(SIDES, (True, False), (True, False))]


def triangle(a: Array, *, lower: bool, unit: bool) -> Array:
    """The triangular matrix that is meant."""
    found: Array = np.tril(a) if lower else np.triu(a)
    index = np.arange(a.shape[-1])
    if unit:
        found[..., index, index] = 1
    return found


def product(a: Array, b: Array, *, lower: bool = True, unit: bool = False, side: SideName = "left") -> Array:
    t = triangle(a, lower=lower, unit=unit)
    found: Array = t @ b if side == "left" else b @ t
    return found


# --- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", GEMM_DTYPES, ids=str)
def test_every_type(dtype: DType) -> None:
    """Exact sums; integers of the whole range, which wrap around. Sides, triangles, diagonals take turns."""
    random, number = np.random.default_rng(1), GEMM_DTYPES.index(dtype)
    for turn, sizes in itertools.product(share(range(2), 2, number // 2), ((45, 37), (5, 70))):
        side, lower, unit = KINDS[(number + 3 * turn) % len(KINDS)]
        problem = Trmm(dtype=dtype, side=side, lower=lower, unit=unit)
        order = sizes[0] if side == "left" else sizes[1]
        a, b = drawn(random, dtype, (order, order)), drawn(random, dtype, sizes)
        kernel = trmm_kernel(ProductTypes.parse(dtype), Triangular(Side(side), lower, unit), Layout.ROW)
        for alpha in (1, -2):
            c = np.empty(sizes, dtype.numpy)
            kernel(in_strides(a), in_strides(b), c, alpha=alpha)
            np.testing.assert_array_equal(c, stored(problem.reference(a, b, alpha=alpha), dtype))


def in_strides(array: Array) -> Array:
    return LAYOUTS["strided"](array)


@pytest.mark.parametrize(("side", "lower", "unit"), KINDS)
def test_rounding_is_bounded(side: SideName, lower: bool, unit: bool) -> None:
    a = rough((DEEP, DEEP), seed=1)
    b = rough((DEEP, 40) if side == "left" else (40, DEEP), seed=2)
    found = tw.trmm(a, b, alpha=0.5, side=side, lower=lower, unit=unit)
    t = triangle(a, lower=lower, unit=unit)
    assert_accurate(found, *((t, b) if side == "left" else (b, t)), alpha=0.5)


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_narrow_sums_are_rounded_once(dtype: str) -> None:
    """Sums wait in float32 between blocks of depths: half an ulp of the result, and γ of float32."""
    kind = DTYPES[dtype].numpy
    a, b = rough((DEEP, DEEP), kind, 1), rough((DEEP, 40), kind, 2)
    wide, other = a.astype(np.float64), b.astype(np.float64)
    exact, scale = np.triu(wide) @ other, np.triu(abs(wide)) @ abs(other)
    half_ulp = {"bf16": 2.0**-8, "f16": 2.0**-11}[dtype]
    allowed = half_ulp * abs(exact) + gamma(DEEP + 2, np.float32) * scale * (1 + half_ulp)
    assert (abs(tw.trmm(a, b, lower=False).astype(np.float64) - exact) <= allowed).all()


@draws(40)
@given(st.data())
def test_random_calls(data: st.DataObject) -> None:
    """Sizes, layouts, triangles and factors at random; exact."""
    m, n = data.draw(st.integers(0, 100)), data.draw(st.integers(0, 70))
    side, lower, unit = data.draw(st.sampled_from(KINDS))
    order = m if side == "left" else n
    layout = st.sampled_from(sorted(LAYOUTS))
    a, b, c = (
        LAYOUTS[data.draw(layout)](filled(shape, seed=seed))
        for seed, shape in enumerate(((order, order), (m, n), (m, n)))
    )
    alpha = data.draw(st.sampled_from((1, -1, 0.5, 0)))
    expected = alpha * product(a, b, side=side, lower=lower, unit=unit)
    assert tw.trmm(a, b, c, alpha=alpha, side=side, lower=lower, unit=unit) is c
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("lower", [True, False], ids=["lower", "upper"])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_more_than_a_block_of_waiting_sums(dtype: str, lower: bool) -> None:
    """Rows and columns beyond `SUMS_ROWS` and `SUMS_COLUMNS`, on the side where sums of float32 wait."""
    kind = DTYPES[dtype].numpy
    for order, other in ((SUMS_ROWS + 50, 3), (20, SUMS_COLUMNS + 50)):
        a, b = filled((order, order), kind, 1), filled((other, order), kind, 2)
        a[np.abs(np.subtract.outer(np.arange(order), np.arange(order))) > 9] = (
            0  # few terms: exact in bfloat16
        )
        expected = product(a.astype("f4"), b.astype("f4"), side="right", lower=lower)
        found = tw.trmm(a, b, side="right", lower=lower)
        np.testing.assert_array_equal(found.astype("f4"), expected.astype(kind).astype("f4"))


def test_batches_and_whatever_numpy_takes() -> None:
    a, b = filled((3, 1, 20, 20), seed=1), filled((4, 20, 7), seed=2)
    np.testing.assert_array_equal(tw.trmm(a, b), product(a, b))
    np.testing.assert_array_equal(
        tw.trmm(a, b.swapaxes(1, 2), side="right"), product(a, b.swapaxes(1, 2), side="right")
    )
    one, other = a[0, 0].astype("i4"), b[0]
    expected = product(one.astype("f8"), other.astype("f8"))
    for left, right in (
        (one, other),
        (one.tolist(), other.astype("f8").tolist()),
        (one.astype(">i4"), other.astype(">f4")),
        (unaligned(one), unaligned(other)),
    ):
        found = tw.trmm(left, right)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, expected)
    out = np.zeros((20, 7), ">f4")
    assert tw.trmm(a[0, 0], other, out) is out
    np.testing.assert_array_equal(out, product(a[0, 0], other))
    wide = np.zeros((20, 7), np.int32)
    bytes_ = drawn(np.random.default_rng(1), DTYPES["i8"], (20, 20)), filled((20, 7), np.int8)
    np.testing.assert_array_equal(tw.trmm(*bytes_, wide), product(*(one.astype("i4") for one in bytes_)))


def test_complex_factors() -> None:
    a, b = (filled((17, n), "c8", n) + 1j * filled((17, n), "f4", n + 1) for n in (17, 9))
    np.testing.assert_array_equal(tw.trmm(a, b, alpha=2 - 1j), (2 - 1j) * product(a, b))
    assert not tw.trmm(a * np.nan, b, alpha=0j).any()


# --- promises -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("side", "lower", "unit"), KINDS)
def test_what_is_beyond_the_triangle_means_nothing(side: SideName, lower: bool, unit: bool) -> None:
    """NaN beyond the triangle, in out, and with alpha = 0 everywhere."""
    a, b = filled((50, 50), seed=1), filled((50, 50), seed=2)
    expected = product(a, b, side=side, lower=lower, unit=unit)
    kept = np.tri(50, k=-1 if unit else 0, dtype=bool)
    a[~(kept if lower else kept.T)] = np.nan
    out = np.full((50, 50), np.nan, np.float32)
    options: dict[str, Any] = {"side": side, "lower": lower, "unit": unit}
    np.testing.assert_array_equal(tw.trmm(a, b, out, **options), expected)
    out[...] = np.nan
    assert not tw.trmm(out.copy(), out.copy(), out, alpha=0, **options).any()


@pytest.mark.parametrize(("side", "lower", "unit"), KINDS)
def test_not_finite_numbers_stay_where_they_are_multiplied(side: SideName, lower: bool, unit: bool) -> None:
    """A NaN in row p of b reaches the rows whose sums have a depth p, and no other one of their tiles."""
    a, b = np.abs(filled((60, 60), seed=1)) + 1, filled((60, 60), seed=2)
    for p in (0, 7, 29, 59):
        spoiled = b.copy()
        if side == "left":
            spoiled[p, 5] = np.nan
        else:
            spoiled[5, p] = np.inf
        found = tw.trmm(a, spoiled, side=side, lower=lower, unit=unit)
        line = np.isfinite(found[:, 5] if side == "left" else found[5])
        below = lower is (side == "left")
        expected = np.arange(60) < p if below else np.arange(60) > p
        np.testing.assert_array_equal(line, expected)
        other = np.delete(found, 5, axis=1 if side == "left" else 0)
        assert np.isfinite(other).all()


def test_out_that_shares_memory() -> None:
    """Also b itself, as of the BLAS function, and a."""
    a, b = filled((30, 30), seed=1), filled((30, 30), seed=2)
    expected = product(a, b)
    assert tw.trmm(a, b, b) is b
    np.testing.assert_array_equal(b, expected)
    expected = product(a, b)
    tw.trmm(a, b, a)
    np.testing.assert_array_equal(a, expected)
    # Blocks of depths are packed after the first of them went to the result.
    a, b = filled((DEEP, DEEP), "f8", 1), filled((DEEP, 9), "f8", 2)
    expected = product(a, b)
    np.testing.assert_array_equal(tw.trmm(a, b, b), expected)
    memory = filled((31, 30), seed=3)
    a = a[:30, :30].astype("f4")
    expected = product(a, memory[:30].copy())
    tw.trmm(a, memory[:30], memory[1:])
    np.testing.assert_array_equal(memory[1:], expected)


def test_the_bits_do_not_depend_on_where_and_how() -> None:
    """Threads, layouts, columns beside, batch; and the right side is the left one transposed."""
    a, b = rough((DEEP, DEEP), seed=1), rough((DEEP, 75), seed=2)
    for lower in (True, False):
        expected = tw.trmm(a, b, lower=lower, threads=1)
        assert tw.trmm(a, b, lower=lower, threads=2).tobytes() == expected.tobytes()
        assert tw.trmm(a, b[:, 40:41], lower=lower).tobytes() == expected[:, 40:41].tobytes()
        turned = tw.trmm(a.T, b.T, lower=not lower, side="right")
        assert turned.T.tobytes() == expected.tobytes()
        out = np.empty((75, DEEP), np.float32).T
        assert tw.trmm(np.asfortranarray(a), b, out, lower=lower).tobytes() == expected.tobytes()
        assert tw.trmm(a, np.stack((b, b)), lower=lower)[1].tobytes() == expected.tobytes()


@pytest.mark.skipif(not GUARD_PAGES, reason="needs guard pages")
@pytest.mark.parametrize("at_end", [True, False], ids=["end", "start"])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_nothing_outside_of_operands_is_touched(dtype: str, at_end: bool) -> None:
    """Every operand beside an inaccessible page; sizes around the tile, both sides and orders of C."""
    kind = DTYPES[dtype].numpy
    memories = [GuardedMemory(8 * 80 * 80) for _ in range(3)]
    for turn, (m, n) in enumerate(((1, 33), (11, 16), (12, 31), (13, 32), (47, 3))):
        side, lower, unit = KINDS[turn % len(KINDS)]
        order = m if side == "left" else n
        for transposed in (False, True):
            item, gap = kind.itemsize, turn % 2
            views = []
            for seed, (memory, (rows, columns)) in enumerate(
                zip(memories, ((order, order), (m, n), (m, n)), strict=True)
            ):
                steps = (item, (rows + gap) * item) if transposed else ((columns + gap) * item, item)
                views.append(memory.place(filled((rows, columns), kind, seed), steps, at_end=at_end))
            a, b, c = views
            around = memories[2].outside(c)
            expected = product(np.array(a), np.array(b), side=side, lower=lower, unit=unit)
            tw.trmm(a, b, c, side=side, lower=lower, unit=unit)
            np.testing.assert_array_equal(c, expected.astype(kind))
            assert np.array_equal(memories[2].outside(c), around)


# --- errors -------------------------------------------------------------------------------------

A, B, C = filled((4, 4), seed=1), filled((4, 3), seed=2), filled((4, 3), seed=3)
REFUSED: tuple[tuple[type[TilewrightError], tuple[Any, ...], dict[str, Any], str], ...] = (
    (TriangleNotSquare, (B, B), {}, r"a has shape \(4, 3\)"),
    (TriangleShape, (A, B.T), {}, r"a has shape \(4, 4\) and b has shape \(3, 4\): with side='left'.*rows"),
    (TriangleShape, (A, B), {"side": "right"}, "as b has columns"),
    (FactorAxes, (A[0], B), {}, r"trmm: a has shape \(4,\)"),
    (BatchMismatch, (np.ones((2, 4, 4)), np.ones((3, 4, 3))), {}, r"trmm: batch axes \(2,\) of a"),
    (UnsupportedDtype, (A.astype(object), B), {}, "object"),
    (OutShape, (A, B, C.T), {}, r"\(3, 4\)"),
    (OutDtype, (A, B, C.astype("i4")), {}, "int32"),
    (InvalidChoice, (A, B), {"side": "top"}, "left, right"),
    (InvalidScalar, (A, B), {"alpha": "2"}, "alpha"),
    (InvalidScalar, (A, B), {"alpha": 1j}, "a real number"),
    (InvalidThreads, (A, B), {"threads": 0}, "threads"),
)


@pytest.mark.parametrize(("kind", "arguments", "options", "words"), REFUSED)
def test_refused(
    kind: type[TilewrightError], arguments: tuple[Any, ...], options: dict[str, Any], words: str
) -> None:
    before = C.copy()
    with pytest.raises(kind, match=words):
        tw.trmm(*arguments, **options)
    assert np.array_equal(C, before)


def test_a_result_that_is_too_large() -> None:
    a = np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), (2**30, 2**30), (0, 0))
    with pytest.raises(SizeOverflow, match="trmm: the result"):
        tw.trmm(a, a)


def test_an_out_that_cannot_take_it() -> None:
    fixed = C.copy()
    fixed.flags.writeable = False
    with pytest.raises(OutReadOnly):
        tw.trmm(A, B, fixed)
    folded = np.lib.stride_tricks.as_strided(np.zeros(12, np.float32), (4, 3), (4, 4))
    with pytest.raises(OutOverlapsItself):
        tw.trmm(A, B, folded)


# --- kernels ------------------------------------------------------------------------------------


def test_kernels_of_fixed_layouts_and_sizes() -> None:
    for number, layouts in enumerate(
        (("row", "col", "row"), ("col", "row", "col"), ("col", "col", "row")), 2
    ):
        side, lower, unit = KINDS[number]
        m, n = 37, 19
        order = m if side == "left" else n
        problem = tw.Trmm(m, n, a=layouts[0], b=layouts[1], c=layouts[2], side=side, lower=lower, unit=unit)
        a, b, c = (
            in_layout(filled(shape, seed=seed), operand.layout)
            for seed, (shape, operand) in enumerate(
                zip(((order, order), (m, n), (m, n)), problem.operands, strict=True)
            )
        )
        kernel = tw.compile(problem)
        assert isinstance(kernel, ArrayKernel)
        assert kernel(a, b, c, alpha=2) is c
        np.testing.assert_array_equal(c, 2 * product(a, b, side=side, lower=lower, unit=unit))


def test_a_kernel_pickles_and_shows_itself() -> None:
    kernel = tw.compile(tw.Trmm(dtype="f64"))
    again = pickle.loads(pickle.dumps(kernel))
    a, b = filled((20, 20), "f8"), filled((20, 6), "f8")
    np.testing.assert_array_equal(again(a, b, np.zeros((20, 6))), np.tril(a) @ b)
    assert "Trmm m=any" in repr(kernel)
    assert "depths of the lower triangle" in str(tw.explain(tw.Trmm()))


def test_calls_are_explained() -> None:
    text = str(tw.explain(tw.trmm, A, B, lower=False, threads=1))
    assert "trmm of (4, 4), (4, 3) in f32" in text
    assert "depths of the upper triangle" in text
    assert "one thread" in text
    assert "wait" not in text
    text = str(tw.explain(tw.trmm, A, B.T.astype("f8"), side="right"))
    assert "a is copied" in text
    assert "sums are kept in a buffer" in text
    assert "nothing to do" in str(tw.explain(tw.trmm, A, B[:, :0]))
    with pytest.raises(TriangleShape):
        tw.explain(tw.trmm, A, B.T)


def test_what_a_kernel_refuses() -> None:
    kernel, c = tw.compile(tw.Trmm(4)), np.zeros((4, 3), np.float32)
    for arrays, word in (
        ((A, B, C.astype("f8")), "dtype"),
        ((A[:3, :3].copy(), B, c), "operand a has m = 3"),
        ((A, B[:3], c), "operand b has m = 3"),
        ((A, B, c[:, :2]), "n = 2"),
        ((A, c, c), "shared with c"),
    ):
        with pytest.raises(OperandMismatch, match=word):
            kernel(*arrays)
    c.flags.writeable = False
    with pytest.raises(OperandMismatch, match="writeable"):
        kernel(A, B, c)
    with pytest.raises(InvalidScalar):
        kernel(A, B, C, alpha="2")
    other = "neoverse-v2" if tw.machine().arch != "aarch64" else "znver5"
    with pytest.raises(ForeignKernel):
        tw.compile(tw.Trmm(), other)(A, B, C)


@pytest.mark.parametrize("isa", ISAS, ids=lambda isa: isa.name)
def test_other_rows(isa: Isa) -> None:
    """Their instructions written as plain LLVM; types, triangles and layouts take turns."""
    number = ISAS.index(isa)
    machine = emulating(isa.limited(every_feature(isa), 128 if isa.scalable else 0))
    random = np.random.default_rng(number)
    types = (("f32", None), ("bf16", None), ("i8", "i32"), ("c64", None))
    for turn, (dtype, out) in share(enumerate(types), len(types), number):
        side, lower, unit = KINDS[(number + turn) % len(KINDS)]
        problem = Trmm(dtype=dtype, out_dtype=out, side=side, lower=lower, unit=unit)
        kernel = emulated_kernel(problem, machine)
        order, other = kernel.blocking.kc + kernel.blocking.mr + 3, kernel.blocking.nr + 5
        m, n = (order, other) if side == "left" else (other, order)
        a, b = drawn(random, problem.dtype, (order, order)), drawn(random, problem.dtype, (m, n))
        c = np.empty((m, n), problem.out_dtype.numpy)
        kernel(a, b, c, alpha=2)
        expected = stored(problem.reference(a, b, alpha=2), problem.out_dtype)
        np.testing.assert_array_equal(c, expected, err_msg=kernel.name)
