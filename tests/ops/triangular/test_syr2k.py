"""`syrk` and `syr2k`: values, triangles, promotion, overlap, bits, memory, errors; and their kernels."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import itertools
import pickle
from functools import cache
from typing import Any

import numpy as np
import pytest
from emulated_rows import drawn, emulated_kernel, emulating, every_feature, in_layout, stored
from hypothesis import given
from hypothesis import strategies as st
from shares import looped, share
from support import (
    FENV,
    GUARD_PAGES,
    LAYOUTS,
    Array,
    GuardedMemory,
    assert_accurate,
    filled,
    gamma,
    no_flags,
    rough,
    unaligned,
)
from tiers import draws

import tilewright as tw
from tilewright.calls.kernel import ArrayKernel
from tilewright.errors import (
    BatchMismatch,
    FactorAxes,
    FactorShapes,
    ForeignKernel,
    InvalidOperand,
    InvalidScalar,
    InvalidThreads,
    MissingOut,
    OperandMismatch,
    OutDtype,
    OutNotArray,
    OutOverlapsItself,
    OutReadOnly,
    OutShape,
    SizeOverflow,
    TilewrightError,
    UnsupportedDtype,
)
from tilewright.machine.isa import Isa
from tilewright.machine.isa_rows import ISAS
from tilewright.macro.blocking import SUMS_ROWS
from tilewright.ops.triangular.syr2k_call import symmetric_kernel, triangle_mask
from tilewright.ops.triangular.syr2k_problem import Syr2k, Syrk
from tilewright.spec.dtype import DTYPES, GEMM_DTYPES, DType
from tilewright.spec.problem import ProductTypes

BOTH = pytest.mark.parametrize("lower", [True, False], ids=["lower", "upper"])
#: More depths than a block of two factors has, with a tail.
DEEP = 1037


def product(a: Array, b: Array | None = None) -> Array:
    """a @ bᵀ + b @ aᵀ, or a @ aᵀ."""
    other = a if b is None else b
    one: Array = a @ np.swapaxes(other, -1, -2)
    return one if b is None else one + np.swapaxes(one, -1, -2)


def inside(n: int, lower: bool) -> Array:
    return triangle_mask(n, lower=lower)


# --- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", GEMM_DTYPES, ids=str)
def test_every_type(dtype: DType) -> None:
    """Exact sums; integers of the whole range, which wrap around. Triangles take turns."""
    random, number = np.random.default_rng(1), GEMM_DTYPES.index(dtype)
    kinds = share((Syrk, Syr2k), 2, number // 2)
    for kind, (n, k) in itertools.product(kinds, ((45, 19), (5, 3))):
        lower = (number % 2 == 0) is (kind is Syrk)
        problem = kind(dtype=dtype, lower=lower)
        factors = [drawn(random, dtype, (n, k)) for _ in problem.factors]
        c = drawn(random, dtype, (n, n))
        kernel = kernel_of(kind, dtype.name, lower)
        for alpha, beta in ((1, 0), (2, -1)):
            expected = stored(problem.reference(*factors, c, alpha=alpha, beta=beta), dtype)
            found = c.copy()
            kernel(*factors, found, alpha=alpha, beta=beta)
            np.testing.assert_array_equal(found, np.where(inside(n, lower), expected, c))


@cache
def kernel_of(kind: type[Syrk], dtype: str, lower: bool) -> ArrayKernel:
    types = ProductTypes.parse(DTYPES[dtype])
    return symmetric_kernel(2 if kind is Syr2k else 1, types, lower)


@BOTH
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_rounding_is_bounded(dtype: str, lower: bool) -> None:
    """Promise 4, of the sum of 2k products."""
    n = 83
    a, b, c = rough((n, DEEP), dtype, 1), rough((n, DEEP), dtype, 2), rough((n, n), dtype, 3)
    found = tw.syr2k(a, b, c.copy(), alpha=0.5, beta=-2, lower=lower)
    joined, other = np.hstack((a, b)), np.hstack((b, a))
    mask = inside(n, lower)
    kept = np.where(mask, found, 0.5 * (joined @ other.T) - 2 * c)
    assert_accurate(kept, joined, other.T, c, alpha=0.5, beta=-2)
    assert np.array_equal(found[~mask], c[~mask])
    single = tw.syrk(a, lower=lower)
    assert_accurate(np.where(mask, single, a @ a.T), a, a.T)
    assert not single[~mask].any()


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_narrow_sums_are_rounded_once(dtype: str) -> None:
    """Sums wait in float32 between blocks of depths: half an ulp of the result, and γ of float32."""
    kind = DTYPES[dtype].numpy
    a, b = rough((40, 2 * DEEP), kind, 1), rough((40, 2 * DEEP), kind, 2)
    exact = product(a.astype(np.float64), b.astype(np.float64))
    scale = product(abs(a.astype(np.float64)), abs(b.astype(np.float64)))
    found = tw.syr2k(a, b).astype(np.float64)
    half_ulp = {"bf16": 2.0**-8, "f16": 2.0**-11}[dtype]
    allowed = half_ulp * abs(exact) + gamma(4 * DEEP + 2, np.float32) * scale * (1 + half_ulp)
    assert (abs(found - np.tril(exact)) <= allowed).all()
    wide = tw.syr2k(a, b, np.zeros((40, 40), np.float32))
    assert (abs(wide - np.tril(exact)) <= gamma(4 * DEEP + 2, np.float32) * scale).all()


@BOTH
def test_more_than_a_block_of_waiting_sums(lower: bool) -> None:
    """Rows and columns beyond `SUMS_ROWS` and `SUMS_COLUMNS`."""
    kind, n = DTYPES["bf16"].numpy, SUMS_ROWS + 50
    a, b = filled((n, 3), kind, 1), filled((n, 3), kind, 2)
    expected = product(a.astype("f4"), b.astype("f4")).astype(kind)
    expected[~inside(n, lower)] = 0
    assert tw.syr2k(a, b, lower=lower).tobytes() == expected.tobytes()


@draws(60)
@given(st.data())
def test_random_calls(data: st.DataObject) -> None:
    """Sizes, layouts, triangles and factors at random; exact."""
    n, k = data.draw(st.integers(0, 100)), data.draw(st.integers(0, 40))
    lower, two = data.draw(st.booleans()), data.draw(st.booleans())
    layout = st.sampled_from(sorted(LAYOUTS))
    a, b = (LAYOUTS[data.draw(layout)](filled((n, k), seed=seed)) for seed in (1, 2))
    c = LAYOUTS[data.draw(layout)](filled((n, n), seed=3))
    alpha, beta = data.draw(st.sampled_from(((1, 0), (2, 1), (0, 3), (-1, 0.5))))
    before = c.copy()
    options: dict[str, Any] = {"alpha": alpha, "beta": beta, "lower": lower}
    found = tw.syr2k(a, b, c, **options) if two else tw.syrk(a, c, **options)
    assert found is c
    expected = alpha * (product(a, b) if two else product(a)) + beta * before
    np.testing.assert_array_equal(c, np.where(inside(n, lower), expected, before))


def test_batches_broadcast() -> None:
    a, b = filled((3, 1, 20, 7), seed=1), filled((4, 20, 7), seed=2)
    found = tw.syr2k(a, b)
    assert found.shape == (3, 4, 20, 20)
    np.testing.assert_array_equal(found, np.tril(product(*np.broadcast_arrays(a, b))))
    np.testing.assert_array_equal(tw.syrk(b, lower=False), np.triu(product(b)))
    out = np.full((4, 20, 20), 5, np.float32).swapaxes(1, 2)
    tw.syrk(b, out, beta=2)
    np.testing.assert_array_equal(out, np.where(inside(20, True), product(b) + 10, 5))


def test_whatever_numpy_takes() -> None:
    a, b = filled((30, 11), "i4", 1), filled((30, 11), "f4", 2)
    expected = np.tril(product(a.astype("f8"), b.astype("f8")))
    for one, other in (
        (a, b),
        (a.tolist(), b.astype("f8").tolist()),
        (a.astype(">i4"), b.astype(">f4")),
        (unaligned(a), unaligned(b)),
        (np.asfortranarray(a), b[::-1][::-1]),
    ):
        found = tw.syr2k(one, other)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, expected)
    out = np.zeros((30, 30), ">f4")
    assert tw.syr2k(b, b, out) is out
    np.testing.assert_array_equal(out, np.tril(product(b, b)))
    wide = np.zeros((30, 30), np.int32)
    bytes_ = drawn(np.random.default_rng(1), DTYPES["i8"], (30, 11))
    np.testing.assert_array_equal(tw.syrk(bytes_, wide), np.tril(product(bytes_.astype("i4"))))
    mixed = tw.syr2k(bytes_, np.abs(bytes_).astype("u1"))
    assert mixed.dtype == np.int16
    unsigned = np.random.default_rng(2).integers(0, 2**32, (9, 5), np.uint32)
    np.testing.assert_array_equal(tw.syrk(unsigned), np.tril(product(unsigned)))


def test_complex_factors() -> None:
    """alpha and beta may be complex where the result is; nothing is conjugated."""
    a, b, c = (filled((17, n), "c8", n) + 1j * filled((17, n), "f4", n + 1) for n in (9, 10, 17))
    b = b[:, :9]
    expected = (2 - 1j) * product(a, b) + 1j * c
    found = tw.syr2k(a, b, c.copy(), alpha=2 - 1j, beta=1j)
    np.testing.assert_array_equal(found, np.where(inside(17, True), expected, c))
    np.testing.assert_array_equal(tw.syrk(a, alpha=1j, lower=False), np.triu(1j * product(a)))
    nothing = np.full_like(a, np.nan)
    np.testing.assert_array_equal(tw.syrk(nothing, c.copy(), alpha=0j, beta=1), c)


# --- promises -----------------------------------------------------------------------------------


@BOTH
def test_what_is_not_asked_for_is_not_read(lower: bool) -> None:
    a, b, nothing = filled((50, 30), seed=1), filled((50, 30), seed=2), np.full((50, 30), np.nan, np.float32)
    out = np.full((50, 50), np.nan, np.float32)
    tw.syr2k(a, b, out, lower=lower)
    mask = inside(50, lower)
    np.testing.assert_array_equal(out[mask], product(a, b)[mask])
    assert np.isnan(out[~mask]).all()
    out[mask] = 3
    tw.syr2k(nothing, nothing, out, alpha=0, beta=2, lower=lower)
    assert (out[mask] == 6).all()
    tw.syrk(nothing[:, :0], out, beta=0.5, lower=lower)
    assert (out[mask] == 3).all()
    tw.syrk(nothing[:, :0], out, lower=lower)
    assert (out[mask] == 0).all()
    assert np.isnan(out[~mask]).all()


def test_not_finite_numbers_propagate() -> None:
    a, b = filled((40, 25), seed=1), filled((40, 25), seed=2)
    a[7, 3], b[11, 3], b[7, 4] = np.inf, 0, np.nan
    with np.errstate(invalid="ignore"):
        expected = np.tril(product(a, b))
    np.testing.assert_array_equal(tw.syr2k(a, b), expected)


def test_nothing_to_do() -> None:
    assert tw.syrk(np.ones((0, 3))).shape == (0, 0)
    assert tw.syr2k(np.ones((2, 0, 3)), np.ones((0, 3))).shape == (2, 0, 0)
    assert tw.syrk(np.ones((0, 2, 3))).shape == (0, 2, 2)
    assert not tw.syrk(np.ones((3, 0))).any()


def test_out_that_shares_memory() -> None:
    """As if it did not (promise 7); what is beyond the triangle stays."""
    for shift in (0, 1, -1):
        memory = filled((64, 40), seed=1)
        a, out = memory[10:40, :30], memory[10 + shift : 40 + shift, 5:35]
        before, expected = out.copy(), product(a.copy())
        tw.syr2k(a, a, out, beta=1)
        np.testing.assert_array_equal(out, np.where(inside(30, True), 2 * expected + before, before))
    a = filled((DEEP, DEEP), "f8")  # blocks of depths are packed after the first of them went to out
    before, expected = a.copy(), product(a)
    assert tw.syrk(a, a) is a
    np.testing.assert_array_equal(a, np.where(inside(DEEP, True), expected, before))


def test_the_bits_do_not_depend_on_where_and_how() -> None:
    """Triangle, layout, threads, place in a batch, alignment: promise 5."""
    a, b, c = rough((200, DEEP), seed=1), rough((200, DEEP), seed=2), rough((200, 200), seed=3)
    c = c + c.T
    expected = tw.syr2k(a, b, c.copy(), beta=0.3, threads=1)
    lower = np.tril_indices(200)
    for threads, triangle, order in itertools.product((1, 2), (True, False), ("C", "F")):
        out = LAYOUTS[order](c)
        tw.syr2k(a, b, out, beta=0.3, lower=triangle, threads=threads)
        found = out if triangle else out.T
        assert found[lower].tobytes() == expected[lower].tobytes(), (threads, triangle, order)
    single = tw.syrk(a)
    for layout in ("F", "padded", "strided"):
        assert tw.syrk(LAYOUTS[layout](a)).tobytes() == single.tobytes()
    assert tw.syrk(np.stack((b, a)))[1].tobytes() == single.tobytes()


@pytest.mark.skipif(not FENV, reason="fenv.h of this host is not known")
def test_no_exception_is_raised_by_lanes_that_nobody_asked_for() -> None:
    """Tiles compute what is beyond the diagonal and beyond the edge; neither raises a flag."""
    a = np.zeros((45, 3), np.float32)
    a[:, 0] = 1
    big = np.full((45, 45), 3e38, np.float32)
    with no_flags():
        tw.syrk(a)
        tw.syr2k(a, a, big, alpha=0.5, beta=0.25, lower=False)


@pytest.mark.skipif(not GUARD_PAGES, reason="needs guard pages")
@pytest.mark.parametrize("at_end", [True, False], ids=["end", "start"])
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "i8", "c64"])
def test_nothing_outside_of_operands_is_touched(dtype: str, at_end: bool) -> None:
    """Every operand beside an inaccessible page; sizes around the tile, both triangles and orders of C."""
    kind, cut = DTYPES[dtype].numpy, kernel_of(Syr2k, dtype, True).blocking
    sizes = sorted(
        {1, 2, 3, cut.mr - 1, cut.mr, cut.mr + 1, cut.nr - 1, cut.nr, cut.nr + 1, cut.nr + cut.mr + 3}
    )
    memories = [GuardedMemory(8 * 80 * 80) for _ in range(3)]
    for turn, n in enumerate(sizes):
        k, gap, lower = (1, 7, 16, 3)[turn % 4], turn % 2, turn % 3 == 0
        for transposed in (False, True):
            item = kind.itemsize
            steps = [((k + gap) * item, item)] * 2 + [((n + gap) * item, item)]
            if transposed:
                steps = [(item, (n + gap) * item)] * 3
            shapes = ((n, k), (n, k), (n, n))
            a, b, c = (
                memory.place(filled(shape, kind, seed), step, at_end=at_end)
                for seed, (memory, shape, step) in enumerate(zip(memories, shapes, steps, strict=True))
            )
            before, around = c.copy(), memories[2].outside(c)
            expected = product(np.array(a), np.array(b))
            tw.syr2k(a, b, c, lower=lower)
            np.testing.assert_array_equal(c, np.where(inside(n, lower), expected.astype(kind), before))
            assert np.array_equal(memories[2].outside(c), around)


# --- errors -------------------------------------------------------------------------------------

A, B, C = filled((4, 3), seed=1), filled((4, 3), seed=2), filled((4, 4), seed=3)
REFUSED: tuple[tuple[type[TilewrightError], tuple[Any, ...], dict[str, Any], str], ...] = (
    (FactorShapes, (A, B[:, :2]), {}, r"syr2k: a has shape \(4, 3\) and b has shape \(4, 2\)"),
    (FactorShapes, (A, B.T), {}, "the same n and k"),
    (FactorAxes, (A[0], B), {}, r"a has shape \(3,\)"),
    (FactorAxes, (A, 2.0), {}, r"b has shape \(\), must have at least two axes"),
    (BatchMismatch, (np.ones((2, 4, 3)), np.ones((3, 4, 3))), {}, r"syr2k: batch axes \(2,\) of a"),
    (InvalidOperand, ([[1.0, 2.0], [3.0]], B), {}, "a"),
    (UnsupportedDtype, (A.astype(object), B), {}, "object"),
    (UnsupportedDtype, (A.astype(bool), B.astype(bool)), {}, "bool"),
    (OutShape, (A, B, C[:3]), {}, r"\(3, 4\)"),
    (OutDtype, (A, B, C.astype("i4")), {}, "int32"),
    (OutNotArray, (A, B, [[0.0]]), {}, "list"),
    (MissingOut, (A, B), {"beta": 0.5}, "syr2k: beta is 0.5"),
    (MissingOut, (A + 0j, B), {"alpha": 1j, "beta": 1}, "syr2k: beta is 1"),
    (InvalidScalar, (A, B), {"alpha": "2"}, "alpha"),
    (InvalidScalar, (A, B, C), {"beta": 1j}, "beta is 1j, must be a real number"),
    (InvalidScalar, (A.astype("i4"), B.astype("i4")), {"alpha": 0.5}, "an integer"),
    (InvalidThreads, (A, B), {"threads": 0}, "threads"),
    (SizeOverflow, (np.empty((2**31, 0)), np.empty((2**31, 0))), {}, "syr2k: the result"),
)


@looped(("kind", "arguments", "options", "words"), REFUSED)
def test_refused(
    kind: type[TilewrightError], arguments: tuple[Any, ...], options: dict[str, Any], words: str
) -> None:
    before = C.copy()
    with pytest.raises(kind, match=words):
        tw.syr2k(*arguments, **options)
    assert np.array_equal(C, before)


def test_an_out_that_cannot_take_it() -> None:
    fixed = C.copy()
    fixed.flags.writeable = False
    with pytest.raises(OutReadOnly):
        tw.syrk(A, fixed)
    folded = np.lib.stride_tricks.as_strided(np.zeros(16, np.float32), (4, 4), (4, 4))
    with pytest.raises(OutOverlapsItself):
        tw.syrk(A, folded)


# --- kernels ------------------------------------------------------------------------------------


@pytest.mark.parametrize("layouts", [*itertools.product(("row", "col"), repeat=3)], ids="-".join)
def test_kernels_of_fixed_layouts(layouts: tuple[str, str, str]) -> None:
    n, k = 37, 19
    a, b, c = (
        np.asarray(filled(shape, seed=seed), order="F" if layout == "col" else "C")
        for seed, (shape, layout) in enumerate(zip(((n, k), (n, k), (n, n)), layouts, strict=True))
    )
    before, lower = c.copy(), layouts.count("col") % 2 == 0
    problem = tw.Syr2k(n, k, a=layouts[0], b=layouts[1], c=layouts[2], lower=lower)
    kernel = tw.compile(problem)
    assert isinstance(kernel, ArrayKernel)
    assert kernel(a, b, c, alpha=2, beta=-1) is c
    np.testing.assert_array_equal(c, np.where(inside(n, lower), 2 * product(a, b) - before, before))
    assert kernel.flops == 2 * k * n * (n + 1)


def test_a_kernel_pickles_and_shows_itself() -> None:
    kernel = tw.compile(tw.Syrk(dtype="f64"))
    again = pickle.loads(pickle.dumps(kernel))
    a = filled((20, 6), "f8")
    np.testing.assert_array_equal(again(a, np.zeros((20, 20))), np.tril(a @ a.T))
    assert "Syrk n=any" in repr(kernel)
    text = str(tw.explain(tw.Syr2k(lower=False)))
    assert "upper triangle, 2 products in each" in text


def test_calls_are_explained() -> None:
    text = str(tw.explain(tw.syr2k, A, B))
    assert "syr2k of (4, 3), (4, 3) in f32" in text
    assert "lower triangle, 2 products in each" in text
    assert "transposed" not in text
    text = str(
        tw.explain(tw.syrk, np.stack((A, A)).astype("i4"), np.zeros((2, 4, 4)).swapaxes(1, 2), lower=False)
    )
    assert "a is copied: int32 to float64" in text
    assert "computed as the transposed product" in text
    assert "a batch of 2 products" in text
    assert "alpha applies to the finished product" in str(tw.explain(tw.syrk, A + 0j, alpha=1j))
    assert "nothing to do" in str(tw.explain(tw.syrk, A[:0]))
    with pytest.raises(FactorShapes):
        tw.explain(tw.syr2k, A, B.T)


def test_what_a_kernel_refuses() -> None:
    kernel, c = tw.compile(tw.Syr2k(4)), np.zeros((4, 4), np.float32)
    for arrays, word in (
        ((A, B, C.astype("f8")), "dtype"),
        ((A, B[:, :2].copy(), c), "k = 2"),
        ((A[:3], B, c), "n = 3"),
        ((A, c), "number 3"),
        ((np.asfortranarray(A), B, c), "stride of axis 1"),
        ((c[:, :3], B, c), "shared with c"),
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
        tw.compile(tw.Syr2k(), other)(A, B, C)


@pytest.mark.parametrize("isa", ISAS, ids=lambda isa: isa.name)
def test_other_rows(isa: Isa) -> None:
    """Their instructions written as plain LLVM; types, triangles and layouts take turns."""
    number = ISAS.index(isa)
    machine = emulating(isa.limited(every_feature(isa), 128 if isa.scalable else 0))
    random = np.random.default_rng(number)
    types = (("f32", None), ("bf16", None), ("i8", "i32"), ("c64", None))
    for turn, (dtype, out) in share(enumerate(types), len(types), number):
        problem = (Syr2k, Syrk)[turn // 2](
            dtype=dtype, out_dtype=out, lower=number % 3 > 0, a=("row", "col")[turn % 2]
        )
        kernel = emulated_kernel(problem, machine)
        n, k = kernel.blocking.nr + kernel.blocking.mr + 3, kernel.blocking.kc // 2 + 5
        factors = [drawn(random, problem.dtype, (n, k)) for _ in problem.factors]
        factors[0] = in_layout(factors[0], problem.a)
        c = drawn(random, problem.out_dtype, (n, n))
        expected = stored(problem.reference(*factors, c, alpha=2, beta=-1), problem.out_dtype)
        expected = np.where(inside(n, problem.lower), expected, c)
        kernel(*factors, c, alpha=2, beta=-1)
        np.testing.assert_array_equal(c, expected, err_msg=kernel.name)
