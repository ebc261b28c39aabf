"""tw.tensordot, inner, kron, vecdot, matvec, vecmat beside NumPy's; opt_einsum on this package."""

from __future__ import annotations

from typing import Any

import numpy as np
import opt_einsum
import pytest
from shares import looped
from support import filled

import tilewright as tw
from tilewright.errors import (
    AxisOutOfRange,
    BatchMismatch,
    ContractionAxes,
    InvalidOperand,
    OutShape,
    ShapeMismatch,
    TilewrightError,
    UnsupportedDtype,
)

DTYPES = ["f4", "f8", "f2", "i1", "u8", "c8", "c16", "?"]

#: The function, shapes of two operands, further arguments.
CALLS: list[tuple[str, tuple[int, ...], tuple[int, ...], tuple[Any, ...]]] = [
    ("tensordot", (2, 3, 4), (3, 4, 5), ()),
    ("tensordot", (2, 3, 4), (4, 3, 5), (([1, 2], [1, 0]),)),
    ("tensordot", (2, 3, 4), (4, 3, 5), (([2, -2], (0, 1)),)),
    ("tensordot", (2, 3), (3, 2), ((1, 0),)),
    ("tensordot", (2, 3), (4, 5), (0,)),
    ("tensordot", (2, 3), (4, 5), (([], []),)),
    ("tensordot", (3,), (3,), (1,)),
    ("tensordot", (2, 3), (2, 3), ()),
    ("tensordot", (), (), (0,)),
    ("tensordot", (2, 0), (0, 3), (1,)),
    ("tensordot", (2, 1), (1, 3), (1,)),
    ("inner", (3,), (3,), ()),
    ("inner", (2, 3), (4, 3), ()),
    ("inner", (2, 3), (3,), ()),
    ("inner", (), (2, 3), ()),
    ("inner", (2, 5, 3), (4, 3), ()),
    ("kron", (2, 3), (4, 5), ()),
    ("kron", (3,), (2, 2), ()),
    ("kron", (2, 1, 2), (3,), ()),
    ("kron", (), (), ()),
    ("kron", (0, 2), (2, 2), ()),
    ("vecdot", (3,), (3,), ()),
    ("vecdot", (4, 1, 3), (5, 3), ()),
    ("vecdot", (0,), (0,), ()),
    ("matvec", (2, 3), (3,), ()),
    ("matvec", (4, 2, 3), (5, 1, 3), ()),
    ("vecmat", (3,), (3, 2), ()),
    ("vecmat", (4, 3), (4, 3, 2), ()),
]


@looped("dtype", DTYPES)
@looped(("function", "a", "b", "rest"), CALLS)
def test_like_numpy(
    function: str, a: tuple[int, ...], b: tuple[int, ...], rest: tuple[Any, ...], dtype: str
) -> None:
    first, second = filled(a, dtype, 1), filled(b, dtype, 2)
    if first.dtype.kind == "c":
        first, second = first * (1 + 2j), second * (2 - 1j)
    first, second = first.astype(dtype), second.astype(dtype)
    expected = getattr(np, function)(first, second, *rest)
    found = getattr(tw, function)(first, second, *rest)
    assert type(found) is type(expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(found, expected)


def test_mixed_types_and_lists() -> None:
    assert tw.inner([1, 2], [0.5, 1]) == 2.5
    assert tw.kron(2, [1, 2]).tolist() == [2, 4]
    assert tw.tensordot(filled((2, 3), "i4"), filled((3, 2), "f4"), 1).dtype == np.float64


def test_axis_and_dtype_of_vecdot() -> None:
    a, b = filled((3, 4)), filled((3, 4), seed=1)
    assert np.array_equal(tw.vecdot(a, b, axis=0), (a * b).sum(axis=0))
    assert tw.vecdot(a, b, dtype="f8").dtype == np.float64


@pytest.mark.parametrize(
    ("function", "a", "b", "result"),
    [
        ("vecdot", (4, 3), (4, 3), (4,)),
        ("matvec", (4, 2, 3), (4, 3), (4, 2)),
        ("vecmat", (4, 3), (4, 3, 2), (4, 2)),
    ],
)
def test_out(function: str, a: tuple[int, ...], b: tuple[int, ...], result: tuple[int, ...]) -> None:
    first, second = filled(a, seed=1), filled(b, seed=2)
    out = np.full(result, np.nan, np.float32)
    assert getattr(tw, function)(first, second, out) is out
    assert np.array_equal(out, getattr(np, function)(first, second))
    with pytest.raises(OutShape):
        getattr(tw, function)(first, second, np.zeros((7, 7), np.float32))


A = np.ones((2, 3), np.float32)


@pytest.mark.parametrize(
    ("function", "arguments", "kind"),
    [
        ("tensordot", (A, A, 1), ContractionAxes),
        ("tensordot", (A, A, 3), ContractionAxes),
        ("tensordot", (A, A, "ab"), ContractionAxes),
        ("tensordot", (A, A, ([0], [0, 1])), ContractionAxes),
        ("tensordot", (A, A, ([0, 0], [0, 0])), ContractionAxes),
        ("tensordot", (A, A, ([5], [0])), ContractionAxes),
        ("tensordot", (A, A.astype("O"), 2), UnsupportedDtype),
        ("tensordot", ([[1], [1, 2]], A), InvalidOperand),
        ("inner", (A, A[:, :2]), ContractionAxes),
        ("kron", (A, A.astype("M8[s]")), UnsupportedDtype),
        ("vecdot", (1.0, A), ContractionAxes),
        ("vecdot", (A, A[:, :2]), ShapeMismatch),
        ("vecdot", (A, np.ones((5, 3), np.float32)), BatchMismatch),
        ("matvec", (A[0], A[0]), ContractionAxes),
        ("vecmat", (A[0], A[0]), ContractionAxes),
    ],
)
def test_bad_calls(function: str, arguments: tuple[Any, ...], kind: type[TilewrightError]) -> None:
    with pytest.raises(kind) as caught:
        getattr(tw, function)(*arguments)
    assert isinstance(caught.value, (ValueError, TypeError))


def test_an_axis_that_vectors_do_not_have() -> None:
    with pytest.raises(AxisOutOfRange):
        tw.vecdot(A, A, axis=2)


@pytest.mark.parametrize("optimize", [True, False, "greedy", "optimal", "auto"])
def test_opt_einsum_on_this_package(optimize: Any) -> None:
    text = "ij,jk,kil,lm,mm,n->mn"
    shapes = [(4, 5), (5, 6), (6, 4, 3), (3, 3), (3, 3), (7,)]
    given = [filled(shape, "f8", seed) for seed, shape in enumerate(shapes)]
    found = opt_einsum.contract(text, *given, backend="tilewright", optimize=optimize)
    assert np.array_equal(found, np.einsum(text, *given))


def test_an_expression_of_opt_einsum() -> None:
    expression = opt_einsum.contract_expression("ij,jk,kl->il", (2, 3), (3, 4), (4, 5))
    given = [filled(shape, "f4", seed) for seed, shape in enumerate([(2, 3), (3, 4), (4, 5)])]
    found = expression(*given, backend="tilewright")
    assert np.array_equal(found, given[0] @ given[1] @ given[2])
