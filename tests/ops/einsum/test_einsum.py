"""tw.einsum: what numpy.einsum returns, in every element type, from any strides, into any out."""

from __future__ import annotations

import string
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given as examples_of
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided
from shares import looped, share
from support import LAYOUTS, Array, assert_accurate, filled, rough, unaligned
from tiers import draws

import tilewright as tw
from tilewright.calls.operands import overlaps_itself
from tilewright.errors import (
    EinsumCast,
    InvalidChoice,
    InvalidOperand,
    InvalidPath,
    LabelSizes,
    MalformedSubscripts,
    MaskedOperand,
    OperandCount,
    OutNotArray,
    OutOverlapsItself,
    OutReadOnly,
    OutShape,
    SublistLabel,
    TilewrightError,
    UnexpectedKeyword,
    UnsupportedDtype,
)
from tilewright.ops.einsum.matmul_pair import MatmulPair
from tilewright.ops.einsum.pair import PairProblem, plan_pair
from tilewright.ops.einsum.table_pair import TablePair


def _each(*texts: str, **sizes: int) -> dict[str, dict[str, int]]:
    return dict.fromkeys(texts, sizes)


#: Subscripts and the length of each label; other labels are 3 long.
SUBSCRIPTS: dict[str, dict[str, int]] = {
    # products of matrices, in every order
    **_each("ij,jk", "ij,jk->ki", "ji,jk->ik", "ij,kj->ik", "ji,kj->ki", i=2, k=4),
    "ij,jk->": {"i": 2, "k": 4},
    "ij,jk->i": {"i": 2, "k": 4},
    "ij,jk->j": {"i": 2, "k": 4},
    "ij,kl->": {"i": 2, "l": 4},
    # batches
    **_each("bij,bjk->bik", "bij,bjk->ikb", "bij,bjk->bki", "ibj,bjk->bik", b=5, j=4),
    "bhqd,bhkd->bhqk": {"b": 2, "q": 4, "k": 5},
    "bqhd,bkhd->bhqk": {"b": 2, "q": 4, "k": 5},
    "bhqk,bhkd->bqhd": {"b": 2, "q": 4, "k": 5},
    "bij,bij->b": {"i": 4},
    "bij,bij->bi": {"i": 4},
    "ij,ij->": {"i": 4},
    "ij,ji->": {"i": 4},
    "ij,ji->ij": {"i": 4},
    # several axes of one role, adjacent and not
    "ijk,kl->ijl": {"i": 2, "l": 5},
    "ikj,kl->ijl": {"i": 2, "l": 5},
    "ijk,jkl->il": {"i": 2, "l": 5},
    "aib,bja->ij": {"a": 2, "b": 5},
    "aibj,bkal->ijkl": {"a": 2, "b": 4},
    "abcd,efcd->abef": {"a": 2, "f": 4},
    "acbd,dfce->aebf": {"a": 2, "f": 4},
    "abcdef,dega->bcfg": {"a": 2, "d": 2},
    # without a sum
    "i,j->ij": {"j": 4},
    "i,j->ji": {"j": 4},
    "ij,kl->ikjl": {"j": 4},
    "ij,ij->ij": {"j": 4},
    "ij,i->ji": {"j": 4},
    "i,->i": {},
    ",": {},
    # one operand
    **_each("ij->ji", "ij->ij", "ij->", "ij->i", "ij->j", "ijk->j", "ijk->ik", "kji->ik", i=2),
    **_each("ii", "ii->i", "iji->j", "iij->ji", "ijij->ij", "ijij->", "iii->i", "iijj->ij", j=4),
    "": {},
    "i->": {},
    # diagonals and sums of one operand, then products
    "iij,jk->ki": {"k": 4},
    "ijj,kk->": {"k": 4},
    "ij,k->i": {"k": 4},
    "ijk,il->kl": {"i": 2},
    # many operands
    "ij,jk,kl->il": {"i": 2, "l": 5},
    "ij,jk,kl,lm->mi": {"i": 2, "l": 5},
    "i,i,i": {},
    "ij,ij,ij->ij": {},
    "ij,jk,ki->": {"k": 4},
    "abc,bd,ce,adf->ef": {"a": 2, "f": 4},
    "i,j,k,l->ijkl": {"i": 2},
    "ij,jk,k,,i->": {},
    # zero sizes and axes of length 1
    **_each("ij,jk,ki->k", "ij,jk", "ji,jk->i", j=0),
    "ij,jk->ki": {"i": 0},
    "ij->i": {"j": 0},
    "ij,jk->ik": {"j": 1},
    "bij,bjk->bki": {"b": 1, "i": 1},
    "ijk->kji": {"j": 1},
    "iij->ij": {"i": 1},
}

DTYPES = ["f4", "f8", "f2", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "c8", "c16", "?"]


def operands(text: str, sizes: dict[str, int], dtype: str = "f8") -> list[Array]:
    """Small integers, whose sums are exact in any order."""
    terms = text.partition("->")[0].replace(" ", "").split(",")
    shapes = [tuple(sizes.get(label, 3) for label in term) for term in terms]
    return [filled(shape, dtype, seed) for seed, shape in enumerate(shapes)]


def check(*arguments: Any, **keywords: Any) -> Any:
    """The result after its comparison with NumPy's; a second call takes what the first has kept."""
    expected = np.einsum(*arguments, **keywords)
    for _ in range(2):
        found = tw.einsum(*arguments, **keywords)
        assert type(found) is type(expected)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_array_equal(found, expected)
    return found


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type(dtype: str) -> None:
    for text, sizes in share(SUBSCRIPTS.items(), 4, DTYPES.index(dtype)):
        check(text, *operands(text, sizes, dtype))


@looped("text", SUBSCRIPTS)
def test_out(text: str) -> None:
    given = operands(text, SUBSCRIPTS[text], "f4")
    expected = np.einsum(text, *given)
    for name, layout in LAYOUTS.items():
        if expected.ndim < 2 and name not in ("C", "strided")[: expected.ndim + 1]:
            continue
        out = layout(np.full(expected.shape, np.nan, np.float32))
        assert tw.einsum(text, *given, out=out) is out
        np.testing.assert_array_equal(out, expected)


@looped("layout", LAYOUTS)
@pytest.mark.parametrize(
    "text", ["ikj,kl->ijl", "aibj,bkal->ijkl", "bij,bjk->bik", "ij,ij->", "ijk->j", "ij->i"]
)
def test_strides(text: str, layout: str) -> None:
    given = [LAYOUTS[layout](array) for array in operands(text, SUBSCRIPTS[text], "f4")]
    check(text, *given)
    check(text, given[0], *(np.array(array) for array in given[1:]))


#: Forms, broadcasting and scalars as NumPy takes them.
CALLS: list[tuple[Any, ...]] = [
    ("...ij,...jk", filled((2, 1, 3, 4)), filled((5, 4, 2))),
    ("...ij,...jk->...ki", filled((3, 4)), filled((5, 4, 2))),
    ("i...->...i", filled((3, 4, 5))),
    ("...", filled((3, 4))),
    ("i...j->...ij", filled((3, 2, 3))),
    ("...,...", filled((3, 1)), filled((4,))),
    ("...i,...->...i", filled((2, 3)), 4.0),
    ("ij->...ij", filled((2, 3))),
    ("ij,jk", filled((2, 1)), filled((3, 4))),
    ("ij,jk->ijk", filled((2, 1)), filled((3, 4))),
    ("ij,ij->j", filled((1, 3)), filled((4, 1))),
    (filled((2, 3)), [0, 1], filled((3, 4)), [1, 2]),
    (filled((2, 3)), [0, 1], filled((3, 4)), [1, 2], [2, 0]),
    (filled((2, 3)), [1, 0]),
    (filled((2, 3, 4)), [0, ...], [..., 0]),
    ("i,i", [1, 2], [3.5, 4]),
    (",", 2, 3),
    (",ij", 2.0, filled((2, 3))),
    (b"ij->ji", filled((2, 3))),
    ("i->i", range(3)),
    ("ij,jk", filled((2, 3)).astype(">f4"), filled((3, 2), "f8")),
    ("ij->ji", filled((2, 3)).astype(">f4")),
    ("ij->j", filled((2, 3)).astype(">f4")),
    ("ij,jk", unaligned(filled((2, 3))), filled((3, 2))),
    ("ij,jk", filled((2, 3), "i4"), filled((3, 2), "f4")),
    ("ij,jk,kl", filled((2, 3), "i1"), filled((3, 2), "f4"), filled((2, 2), "c8")),
    ("ij->ji", np.array([["a", "b"]])),
    ("ij,jk", filled((2, 3)).view(np.matrix), filled((3, 2))),
]


@looped("number", range(len(CALLS)))
def test_calls(number: int) -> None:
    check(*CALLS[number])


def test_views_share_memory_and_can_be_written() -> None:
    square = np.zeros((3, 3))
    tw.einsum("ii->i", square)[...] = 1
    assert np.array_equal(square, np.eye(3))
    assert np.shares_memory(tw.einsum("ij->ji", square), square)
    square.flags.writeable = False
    assert not tw.einsum("ii->i", square).flags.writeable


@pytest.mark.parametrize("optimize", [True, False, "auto", "greedy", "optimal", ("greedy", 100), None])
def test_orders_of_contraction(optimize: Any) -> None:
    text = "abc,bd,ce,adf->ef"
    given = operands(text, {"a": 2, "f": 4})
    assert np.array_equal(tw.einsum(text, *given, optimize=optimize), np.einsum(text, *given))


@pytest.mark.parametrize(
    "path", [[(0, 1), (0, 2), (0, 1)], [(0, 3), (0, 1, 2)], [(0, 1, 2, 3)], [(1, 3), (0, 2), (1, 0)]]
)
def test_given_paths(path: list[tuple[int, ...]]) -> None:
    text = "abc,bd,ce,adf->ef"
    given = operands(text, {"a": 2, "f": 4})
    expected = np.einsum(text, *given)
    assert np.array_equal(tw.einsum(text, *given, optimize=path), expected)
    assert np.array_equal(tw.einsum(text, *given, optimize=["einsum_path", *path]), expected)


@pytest.mark.parametrize("order", "CFAK")
@pytest.mark.parametrize("text", ["ij,jk->ik", "bij,bjk->ikb"])
def test_order_in_memory(text: str, order: str) -> None:
    found = check(text, *operands(text, {}), order=order)
    assert found.flags.f_contiguous if order == "F" else found.flags.c_contiguous or order == "K"


def test_types_asked_for() -> None:
    a, b = filled((2, 30), "i1"), filled((30, 2), "i1", 1)
    assert np.array_equal(check("ij,jk", a, b, dtype="i4"), a.astype("i4") @ b.astype("i4"))
    out = np.zeros((2, 2), "i4")
    tw.einsum("ij,jk", a, b, out=out)
    assert np.array_equal(out, a.astype("i4") @ b.astype("i4"))
    check("ij,jk", a.astype("f8"), b, dtype="f4", casting="same_kind")
    check("ij,jk", a.astype("f8"), b, dtype="i4", casting="unsafe")
    check("ij->j", a, dtype="f8")
    check("ij,j->", a, b[:, 0], dtype="c16")
    assert tw.einsum("ij->ji", a, dtype="f8").dtype == np.float64
    narrow = np.zeros((2, 2), "f4")
    tw.einsum("ij,jk", a.astype("f8"), b, out=narrow, casting="same_kind")
    assert np.array_equal(narrow, out)


@looped("dtype", [ml_dtypes.bfloat16, ml_dtypes.int4, ml_dtypes.uint4])
@looped("text", ["ij,jk->ki", "ij,ij->ij", "ij->j", "ijk->j", "ii->i", "ij,jk,kl->il", "ij,k->i"])
def test_types_that_numpy_has_no_einsum_of(dtype: type, text: str) -> None:
    given: list[Array] = [abs(array).astype(dtype) for array in operands(text, {}, "f4")]
    expected = np.einsum(text, *(array.astype("i8") for array in given))
    found = tw.einsum(text, *given)
    assert found.dtype == dtype
    wrapped = expected if dtype is ml_dtypes.bfloat16 else expected % 16
    assert np.array_equal(found.astype("f8") % (16 if wrapped is not expected else np.inf), wrapped)


def test_sums_before_a_product_are_not_rounded() -> None:
    """200000 is no float16; what it is multiplied by makes one of it."""
    a, b = np.full((1, 2), 2.0**-10, "f2"), np.full((1000, 2), 200, "f2")
    assert np.array_equal(tw.einsum("ij,kj->i", a, b), np.array([390.625], "f2"))


@looped("text", ["i->", "ij->i", "ij->j", "ij->"])
@looped("shape", [(40000, 2), (2, 40000), (5, 40000), (40000, 5)])
def test_long_sums(text: str, shape: tuple[int, int]) -> None:
    a = rough(shape if "j" in text else (shape[0] * shape[1],))
    found, exact = tw.einsum(text, a), np.einsum(text, a.astype("f8"))
    assert np.allclose(found, exact, rtol=0, atol=1e-2)


def test_infinite_sums_of_complex_numbers() -> None:
    a = np.array([[1 + 1j, complex(np.inf, 0)]])
    check("ij->i", a)
    check("ij->i", np.array([[1, np.inf]]), dtype="c16")
    check("jiki->j", np.arange(36).reshape(2, 3, 2, 3) + 1j)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("text", ["ij,jk", "ji,kj->ik"])
def test_rounding(text: str, dtype: str) -> None:
    a, b = rough((70, 300), dtype, 1), rough((300, 90), dtype, 2)
    given = (a, b) if text == "ij,jk" else (a.T.copy(), b.T.copy())
    assert_accurate(tw.einsum(text, *given), a, b)


def test_out_may_share_memory_with_an_operand() -> None:
    a, b = filled((4, 4)), filled((4, 4), seed=1)
    expected = a @ b
    tw.einsum("ij,jk->ik", a, b, out=a)
    assert np.array_equal(a, expected)
    tw.einsum("ij->ji", a, out=a)
    assert np.array_equal(a, expected.T)


def test_out_may_be_an_operand_that_is_read_by_tables() -> None:
    a, b = filled((16, 16, 16, 16)), filled((16, 16, 16, 16), seed=1)
    expected = np.einsum("aibj,jcid->abcd", a, b, optimize=True)
    tw.einsum("aibj,jcid->abcd", a, b, out=a)
    assert np.array_equal(a, expected)


def test_a_kept_call_does_not_serve_another_type() -> None:
    for given in (np.ones((2, 2)), np.ones((2, 2)).view(np.matrix)):
        assert type(tw.einsum("ij,jk", given, given)) is np.ndarray
    masked = np.ma.array(np.ones((2, 2)), mask=[[True, False], [False, False]])
    with pytest.raises(MaskedOperand):
        tw.einsum("ij,jk", masked, masked)


# --- what NumPy lets callers write ---------------------------------------------------------------


@looped("order", ["c", "f", "a", "k", "C", "F", "A", None, b"F"])
@looped(
    ("text", "shapes"),
    [
        ("...ft,mf->...mt", [(2, 3, 5), (4, 3)]),
        ("ij->ji", [(3, 4)]),
        ("ij,jk,kl->il", [(3, 4), (4, 2), (2, 5)]),
    ],
)
def test_orders_in_any_spelling(text: str, shapes: list[tuple[int, ...]], order: Any) -> None:
    for layout in (np.ascontiguousarray, np.asfortranarray):
        operands: list[Any] = [layout(filled(shape, seed=seed)) for seed, shape in enumerate(shapes)]
        name = "K" if order is None else order.decode() if isinstance(order, bytes) else order.upper()
        if name == "A":
            name = "F" if layout is np.asfortranarray else "C"
        run = tw.compile_einsum(text, *operands, order=order)
        for found in (tw.einsum(text, *operands, order=order), run(*operands)):
            np.testing.assert_allclose(found, np.einsum(text, *operands), rtol=1e-5)
            assert name == "K" or found.flags["F_CONTIGUOUS" if name == "F" else "C_CONTIGUOUS"]


@pytest.mark.parametrize(
    "labels",
    [
        (np.array([0, 1]), np.array([1, 2], np.int8)),
        (range(2), range(1, 3)),
        ((0, 1), [np.int64(1), np.uint8(2)]),
        (iter([0, 1]), iter([1, 2])),
    ],
    ids=["arrays", "ranges", "tuple and integers", "iterators"],
)
def test_labels_in_any_sequence(labels: tuple[Any, Any]) -> None:
    a, b = filled((3, 4)), filled((4, 5), seed=2)
    for _ in range(1 if "iterator" in type(labels[0]).__name__ else 3):  # the first call, and those kept
        np.testing.assert_array_equal(tw.einsum(a, labels[0], b, labels[1]), tw.einsum("ij,jk", a, b))


@pytest.mark.parametrize(
    "labels", ["ab", [0, 1.0], np.array([0.0, 1.0]), 3, None, [0, 52], np.eye(2, dtype=int)]
)
def test_labels_that_are_none(labels: Any) -> None:
    with pytest.raises(SublistLabel):
        tw.einsum(np.ones((2, 2)), labels)


@pytest.mark.parametrize("text", ["i- >i", " i -> i ", "i->i"])
def test_spaces(text: str) -> None:
    assert tw.einsum(text, np.arange(3.0)).tolist() == [0, 1, 2]


def test_calls_without_operands_or_with_unknown_keywords() -> None:
    for arguments in ((), ("",), ("i",)):
        with pytest.raises(OperandCount):
            tw.einsum(*arguments)
    with pytest.raises(UnexpectedKeyword, match="where"):
        tw.einsum("i", np.ones(3), where=True)  # type: ignore[call-overload]
    path = ["einsum_path", (2, 3), (0, 1)]
    for kind in (InvalidPath, RuntimeError, ValueError):
        with pytest.raises(kind):
            tw.einsum("ab,bc,cd,de->ae", *[np.ones((2, 2))] * 4, optimize=path)


# --- views instead of copies ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "shapes", "copied"),
    [
        (("ij", "jk", "ik"), ((2, 3), (3, 4)), (False, False)),
        (("ijk", "jkl", "il"), ((2, 3, 4), (3, 4, 5)), (False, False)),
        (("ijk", "kjl", "il"), ((2, 3, 4), (4, 3, 5)), (True, False)),
        (("ijk", "kjl", "il"), ((2, 3, 4), (4, 3, 1)), (False, True)),
        (("ikj", "kl", "ijl"), ((2, 3, 4), (3, 5)), (False, False)),  # a product for each i
        (("bhqd", "bhkd", "bhqk"), ((2, 3, 4, 5), (2, 3, 6, 5)), (False, False)),
        (("bqhd", "bkhd", "bhqk"), ((2, 4, 3, 5), (2, 6, 3, 5)), (False, False)),
    ],
)
def test_what_is_copied(
    labels: tuple[str, str, str],
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
    copied: tuple[bool, bool],
) -> None:
    a, b = (np.zeros(shape) for shape in shapes)
    pairing = plan_pair(PairProblem.of(labels, a, b))
    assert isinstance(pairing, MatmulPair), "too few elements for tables"
    assert (pairing.a.copied, pairing.b.copied) == copied


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_operands_are_multiplied_where_they_stand(dtype: type) -> None:
    """Without copies of either, into a new array, a given one, one with strides of its own."""
    random = np.random.default_rng(0)
    a: Array = random.standard_normal((20, 17, 60, 48)).astype(dtype)
    b: Array = random.standard_normal((19, 60, 16, 48)).astype(dtype).swapaxes(0, 2)
    subscripts = "acgx,ygbx->abcy"
    labels = ("acgx", "ygbx", "abcy")
    pairing = plan_pair(PairProblem.of(labels, a, b))
    assert isinstance(pairing, TablePair)
    expected = np.einsum(subscripts, a.astype(np.float64), b.astype(np.float64))
    rtol, atol = (1e-4, 1e-3) if dtype is np.float32 else (1e-12, 1e-11)
    np.testing.assert_allclose(tw.einsum(subscripts, a, b), expected, rtol=rtol, atol=atol)
    wide = np.zeros((*expected.shape[:3], 2 * expected.shape[3]), dtype)
    out = wide[..., ::2]
    assert tw.einsum(subscripts, a, b, out=out) is out
    np.testing.assert_allclose(out, expected, rtol=rtol, atol=atol)
    assert not wide[..., 1::2].any()
    swapped = a.astype(a.dtype.newbyteorder())
    np.testing.assert_allclose(tw.einsum(subscripts, swapped, b), expected, rtol=rtol, atol=atol)
    np.testing.assert_allclose(tw.einsum(subscripts, a, b.astype(np.float64)), expected, rtol=rtol, atol=atol)


# --- Hypothesis -----------------------------------------------------------------------------------


@st.composite
def problems(draw: st.DrawFn) -> tuple[str, list[Array]]:
    """Any subscripts over few labels, of operands with any strides, some axes of length 1."""
    labels = string.ascii_letters[: draw(st.integers(1, 5))]
    sizes = {label: draw(st.integers(0 if draw(st.booleans()) else 1, 4)) for label in labels}
    terms = draw(st.lists(st.text(labels, max_size=4), min_size=1, max_size=4))
    dtype = draw(st.sampled_from(DTYPES))
    given = []
    for seed, term in enumerate(terms):
        one = {label: draw(st.integers(0, 9)) == 0 for label in term}
        shape = tuple(1 if one[label] else sizes[label] for label in term)
        steps = [draw(st.sampled_from([1, 1, 2, -1])) for _ in shape]
        whole = filled(tuple(size * abs(step) for size, step in zip(shape, steps, strict=True)), dtype, seed)
        order = draw(st.permutations(range(len(shape))))
        index: Any = (..., *(slice(None, None, step) for step in steps))
        view = whole[index]
        given.append(
            np.array(view.transpose(order)).transpose(np.argsort(order)) if draw(st.booleans()) else view
        )
    text = ",".join(terms)
    if draw(st.booleans()):
        known = sorted({label for term in terms for label in term})
        output = draw(st.lists(st.sampled_from(known), unique=True)) if known else []
        text += "->" + "".join(output)
    return text, given


@draws(300)
@examples_of(problems())
def test_any_subscripts(problem: tuple[str, list[Array]]) -> None:
    text, given = problem
    check(text, *given)
    expected = np.einsum(text, *given)
    out = np.zeros(expected.shape, expected.dtype)
    for _ in range(2):
        out.fill(0)
        tw.einsum(text, *given, out=out, optimize=False)
    assert np.array_equal(out, expected)


# --- errors ---------------------------------------------------------------------------------------

A, B = filled((2, 3)), filled((3, 4), seed=1)
BAD: list[tuple[tuple[Any, ...], dict[str, Any], type[TilewrightError], type[Exception]]] = [
    (("ij,jk", A, A), {}, LabelSizes, ValueError),
    (("i?,jk", A, B), {}, MalformedSubscripts, ValueError),
    ((A, [0, "1"]), {}, SublistLabel, TypeError),
    (("i", [[1], [2, 3]]), {}, InvalidOperand, ValueError),
    (("ij,jk", A, B), {"order": "X"}, InvalidChoice, ValueError),
    (("ij,jk", A, B), {"casting": "any"}, InvalidChoice, ValueError),
    (("ij,jk", A, B), {"optimize": "no"}, InvalidChoice, ValueError),
    (("ij,jk", A, B.astype("f8")), {"dtype": "f4"}, EinsumCast, TypeError),
    (("ij,jk", A, B.astype("O")), {}, UnsupportedDtype, TypeError),
    (("ij,jk", A, B.astype("g")), {}, UnsupportedDtype, TypeError),
    (("ij->", A.astype("M8[s]")), {}, UnsupportedDtype, TypeError),
    (("ij,jk", A, B.astype("M8[s]")), {}, UnsupportedDtype, TypeError),
]


@pytest.mark.parametrize(("arguments", "keywords", "kind", "builtin"), BAD)
def test_bad_calls(
    arguments: tuple[Any, ...],
    keywords: dict[str, Any],
    kind: type[TilewrightError],
    builtin: type[Exception],
) -> None:
    out = np.full((2, 4), 7, np.float32)
    extras: tuple[dict[str, Any], ...] = ({}, {"out": out}) if len(arguments) > 2 else ({},)
    for extra in extras:
        with pytest.raises(kind) as caught:
            tw.einsum(*arguments, **keywords, **extra)
        assert isinstance(caught.value, builtin)
    assert (out == 7).all()


def read_only(array: Array) -> Array:
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("out", "kind"),
    [
        ([0], OutNotArray),
        (np.zeros((4, 2), "f4"), OutShape),
        (np.zeros((1, 2, 4), "f4"), OutShape),
        (np.zeros((2, 4), "i4"), EinsumCast),
        (np.zeros((2, 4), "f2"), EinsumCast),
        (read_only(np.zeros((2, 4), "f4")), OutReadOnly),
        (as_strided(np.zeros(8, "f4"), (2, 4), (0, 4)), OutOverlapsItself),
        (as_strided(np.zeros(8, "f4"), (2, 4), (4, 4)), OutOverlapsItself),
    ],
)
def test_bad_out(out: Any, kind: type[TilewrightError]) -> None:
    before = np.array(out)
    with pytest.raises(kind):
        tw.einsum("ij,jk", A, B, out=out)
    assert np.array_equal(out, before)


@pytest.mark.parametrize(
    ("shape", "strides", "overlaps"),
    [
        ((2, 4), (16, 4), False),
        ((2, 4), (-16, 4), False),
        ((2, 4), (12, 4), True),
        ((2, 3), (12, 8), False),
        ((2, 3), (8, 8), True),
        ((2, 2), (4, 2), True),
        ((1, 4), (0, 4), False),
        ((0, 4), (0, 0), False),
    ],
)
def test_places_that_two_elements_share(
    shape: tuple[int, ...], strides: tuple[int, ...], overlaps: bool
) -> None:
    base = np.zeros(64, np.float32)[16:]
    assert overlaps_itself(as_strided(base, shape, strides)) is overlaps
