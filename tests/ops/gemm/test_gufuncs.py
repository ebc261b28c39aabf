"""matmul, vecdot, matvec and vecmat as NumPy has them: keywords, subclasses, operands of other libraries."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.exceptions import AxisError
from shares import looped
from support import filled

import tilewright as tw
from tilewright.errors import (
    AxesCount,
    AxisOutOfRange,
    CoreAxes,
    ForeignKeyword,
    InvalidAxis,
    InvalidChoice,
    InvalidFlag,
    MaskedOperand,
    NoUfuncs,
    OutCount,
    OutDtype,
    OutNotArray,
    OutShape,
    RepeatedAxis,
    TilewrightError,
    UnexpectedKeyword,
    UnsafeCast,
)

NAMES = ("matmul", "vecdot", "matvec", "vecmat")
A, B, V = filled((2, 3, 4)), filled((2, 4, 5), seed=2), filled((4,), seed=3)

#: The function, operands, keywords.
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("matmul", (A, B), {"axes": [(-2, -1), (-2, -1), (-2, -1)]}),
    ("matmul", (A, B), {"axes": [(1, 2), (1, 2), (0, 1)]}),
    ("matmul", (A.transpose(2, 0, 1), B.transpose(2, 1, 0)), {"axes": [(2, 0), (1, 0), (2, 0)]}),
    ("matmul", (A, V), {"axes": [(-2, -1), 0, 0]}),
    ("matmul", (A, V), {"axes": [(-2, -1), (0,), (-1,)]}),
    ("matmul", (V, B), {"axes": [0, (1, 2), 0]}),
    ("matmul", (V, V), {"axes": [0, 0, ()]}),
    ("matmul", (A, B), {"order": "F"}),
    ("matmul", (A, B), {"order": "c"}),
    ("matmul", (np.asfortranarray(A[0]), np.asfortranarray(B[0])), {"order": "A"}),
    ("matmul", (A, B), {"order": None}),
    ("matmul", (A, B), {"casting": "no"}),
    ("matmul", (A, B), {"casting": "unsafe", "dtype": "i4"}),
    ("matmul", (A, B.astype("f8")), {"casting": "safe"}),
    ("matmul", (A, B), {"out": ...}),
    ("matmul", (V, V), {"out": ...}),
    ("matmul", (A, B), {"out": (None,)}),
    ("vecdot", (A, A), {"axis": 0}),
    ("vecdot", (A, A), {"axis": 1, "keepdims": True}),
    ("vecdot", (A, A), {"keepdims": True}),
    ("vecdot", (V, V), {"keepdims": True}),
    ("vecdot", (A, A), {"axes": [0, 0]}),
    ("vecdot", (A, A), {"axes": [0, 0], "keepdims": True}),
    ("vecdot", (A, A), {"axes": [1, 1, 0], "keepdims": True}),
    ("vecdot", (A, A.swapaxes(0, 1)), {"axes": [(1,), 0, ()]}),
    ("vecdot", (A, A), {"order": "F", "axis": 0}),
    ("vecdot", (A * 1j, A), {"axis": np.int8(1)}),
    ("matvec", (A, V), {"axes": [(0, -1), 0, 0]}),
    ("matvec", (A, V), {"order": "F"}),
    ("vecmat", (V, B), {"axes": [0, (1, 2), 0]}),
    ("vecmat", (V, B), {"dtype": "f8", "casting": "safe"}),
]


def same(found: Any, expected: Any) -> None:
    """Type, shape, dtype, order in memory of matrices, and values."""
    assert type(found) is type(expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(found, expected)


@looped(("function", "operands", "keywords"), CALLS)
def test_like_numpy(function: str, operands: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    expected = getattr(np, function)(*operands, **keywords)
    found = getattr(tw, function)(*operands, **keywords)
    same(found, expected)
    if keywords.get("order") in ("F", "c", "A"):
        assert found.flags.f_contiguous == expected.flags.f_contiguous


#: The function, shapes of operands, of `out`, keywords.
OUTS: list[tuple[str, tuple[int, ...], tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ("matmul", (2, 3), (3, 4), (5, 2, 4), {}),
    ("matmul", (6, 1, 2, 3), (5, 3, 4), (7, 6, 5, 2, 4), {}),
    ("matmul", (1, 2, 3), (3, 4), (5, 2, 4), {}),
    ("matmul", (3,), (3, 4), (5, 4), {}),
    ("matmul", (2, 3), (3,), (5, 2), {}),
    ("matmul", (3,), (3,), (5, 2), {}),
    ("matmul", (5, 2, 3), (3, 4), (5, 2, 4), {}),
    ("matmul", (2, 3), (3, 4), (4, 5, 2), {"axes": [(0, 1), (0, 1), (2, 0)]}),
    ("matmul", (2, 3), (3, 4), (0, 2, 4), {}),
    ("vecdot", (1, 3), (1, 3), (5, 4, 3), {}),
    ("vecdot", (4, 3), (3,), (4, 1), {"keepdims": True}),
    ("vecdot", (4, 3), (4, 3), (1, 2, 3), {"axis": 0, "keepdims": True}),
    ("vecdot", (4, 3), (4, 3), (2, 3), {"axis": 0}),
    ("matvec", (2, 3), (3,), (5, 2), {}),
    ("matvec", (2, 3), (3,), (2, 5), {"axes": [(0, 1), 0, 0]}),
    ("vecmat", (3,), (3, 4), (5, 4), {}),
]


@looped(("function", "a", "b", "shape", "keywords"), OUTS)
@looped("dtype", ["f4", "f8", "c8", "?", "u2"])
@looped("tupled", [False, True])
def test_out_to_which_the_result_broadcasts(
    function: str,
    a: tuple[int, ...],
    b: tuple[int, ...],
    shape: tuple[int, ...],
    keywords: dict[str, Any],
    dtype: str,
    *,
    tupled: bool,
) -> None:
    first, second = (filled(size, dtype, seed) for seed, size in enumerate((a, b)))
    expected, out = (np.ones(shape, first.dtype) for _ in range(2))
    getattr(np, function)(first, second, out=expected, **keywords)
    assert getattr(tw, function)(first, second, out=(out,) if tupled else out, **keywords) is out
    same(out, expected)


def test_a_factor_of_an_out_that_is_larger_than_the_product() -> None:
    a, b, out = filled((2, 3)), filled((3, 4)), filled((5, 2, 4), seed=3)
    expected = 2 * (a @ b) + 3 * out + a[:, :1]
    tw.matmul(a, b, out, alpha=2, beta=3, bias=a[:, :1])
    np.testing.assert_allclose(out, expected, rtol=1e-6)


@pytest.mark.parametrize("casting", ["no", "equiv", "safe", "same_kind", "unsafe"])
@pytest.mark.parametrize("name", ["matmul", "vecdot"])
def test_casting_allows_what_numpy_allows(name: str, casting: str) -> None:
    """Of each pair of types, into the promoted type and into others: the same calls fail."""
    types = ("?", "i1", "i4", "f4", "f8")
    for a, b, dtype in ((a, b, dtype) for a in types for b in types for dtype in (None, "i4", "f4")):
        given: dict[str, Any] = {"casting": casting} | ({} if dtype is None else {"dtype": dtype})
        operands = np.eye(3, dtype=a), np.eye(3, dtype=b)
        try:
            expected = getattr(np, name)(*operands, **given)
        except TypeError:
            with pytest.raises(TypeError):
                getattr(tw, name)(*operands, **given)
        else:
            same(getattr(tw, name)(*operands, **given), expected)


def test_casting_to_out() -> None:
    out = np.zeros((2, 3, 5), "i4")
    assert tw.matmul(A, B, out=out, casting="unsafe") is out
    same(out, np.matmul(A, B, out=np.zeros_like(out), casting="unsafe"))


#: The function, keywords, the error, and whether NumPy raises one of the same built-in class.
BAD: list[tuple[str, dict[str, Any], type[TilewrightError], type[Exception]]] = [
    ("matmul", {"where": True}, UnexpectedKeyword, TypeError),
    ("matmul", {"axis": 0}, UnexpectedKeyword, TypeError),
    ("matmul", {"keepdims": False}, UnexpectedKeyword, TypeError),
    ("matmul", {"parrot": True}, UnexpectedKeyword, TypeError),
    ("matvec", {"keepdims": True}, UnexpectedKeyword, TypeError),
    ("vecmat", {"where": A}, UnexpectedKeyword, TypeError),
    ("vecdot", {"where": A > 0}, UnexpectedKeyword, TypeError),
    ("vecdot", {"axes": -1}, InvalidAxis, TypeError),
    ("vecdot", {"axes": (-1, -1)}, InvalidAxis, TypeError),
    ("vecdot", {"axes": [-1]}, AxesCount, ValueError),
    ("vecdot", {"axes": [-1] * 4}, AxesCount, ValueError),
    ("vecdot", {"axes": [-1.0, -1.0]}, InvalidAxis, TypeError),
    ("vecdot", {"axes": [None, 1]}, InvalidAxis, TypeError),
    ("vecdot", {"axes": [-1, -1, -1]}, CoreAxes, AxisError),
    ("vecdot", {"axes": [-1, (-2, -1), ()]}, CoreAxes, AxisError),
    ("vecdot", {"axes": [5, 0]}, AxisOutOfRange, AxisError),
    ("vecdot", {"axes": [0, 0], "axis": 0}, InvalidAxis, TypeError),
    ("vecdot", {"axis": None}, InvalidAxis, TypeError),
    ("vecdot", {"axis": 3}, AxisOutOfRange, AxisError),
    ("vecdot", {"keepdims": "true"}, InvalidFlag, TypeError),
    ("vecdot", {"keepdims": True, "out": np.zeros((2, 3), "f4")}, OutShape, ValueError),
    ("vecdot", {"keepdims": True, "out": np.zeros((), "f4")}, OutShape, ValueError),
    ("matmul", {"axes": [0, 0]}, AxesCount, ValueError),
    ("matmul", {"axes": [(-2, -1), (-2, -1)]}, AxesCount, ValueError),
    ("matmul", {"axes": [(-2, -1), (-2, -1), -1]}, CoreAxes, AxisError),
    ("matmul", {"axes": [(-2, -1), (-2, -1), (-2, -2)]}, RepeatedAxis, ValueError),
    ("matmul", {"axes": [(-2, -1), [-2, -1], (-2, -1)]}, InvalidAxis, TypeError),
    ("matmul", {"axes": [(-2, -1), (-2, -4), (-2, -1)]}, AxisOutOfRange, AxisError),
    ("matmul", {"casting": "some"}, InvalidChoice, ValueError),
    ("matmul", {"order": "X"}, InvalidChoice, ValueError),
    ("matmul", {"order": "Fortran"}, InvalidChoice, ValueError),
    ("matmul", {"subok": 2}, InvalidFlag, TypeError),
    ("matmul", {"casting": "safe", "dtype": "f2"}, UnsafeCast, TypeError),
    ("matmul", {"casting": "no", "out": np.zeros((2, 3, 5))}, OutDtype, TypeError),
    ("matmul", {"dtype": "i4"}, UnsafeCast, TypeError),
    ("matmul", {"out": ()}, OutCount, ValueError),
    ("matmul", {"out": (np.zeros((2, 3, 5), "f4"),) * 2}, OutCount, ValueError),
    ("matmul", {"out": (...,)}, OutNotArray, TypeError),
    ("matmul", {"out": [np.zeros((2, 3, 5), "f4")]}, OutNotArray, TypeError),
    ("vecdot", {"out": "text"}, OutNotArray, TypeError),
    ("matmul", {"out": np.zeros((1, 3, 5), "f4")}, OutShape, ValueError),
    ("vecdot", {"out": np.zeros(())}, OutShape, ValueError),
]


@looped(("function", "keywords", "kind", "builtin"), BAD)
def test_bad_keywords(
    function: str, keywords: dict[str, Any], kind: type[TilewrightError], builtin: type[Exception]
) -> None:
    operands = {"matmul": (A, B), "vecdot": (A, A), "matvec": (A, V), "vecmat": (V, B)}[function]
    with pytest.raises(builtin):
        getattr(np, function)(*operands, **keywords)
    with pytest.raises(kind) as caught:
        getattr(tw, function)(*operands, **keywords)
    assert isinstance(caught.value, builtin)
    assert str(caught.value)
    assert caught.value.args


def test_a_signature_of_types() -> None:
    with pytest.raises(UnexpectedKeyword, match="dtype="):
        tw.matmul(A, B, signature="ff->f")  # type: ignore[call-arg]


@pytest.mark.parametrize("code", ["q", "Q", "l", "L"])
def test_scalars_of_equal_types(code: str) -> None:
    """C's long and long long are equal types with scalars of two types."""
    for other in (np.longlong, np.int64, np.ulonglong, np.uint64):
        tw.vecdot(np.ones(3, other), np.ones(3, other))
        tw.einsum("i,i", np.ones(3, other), np.ones(3, other))
    vector = np.ones(3, code)
    assert type(tw.matmul(vector, vector)) is type(np.matmul(vector, vector))
    if code in "lL":
        assert type(tw.einsum("i,i", vector, vector)) is type(np.einsum("i,i", vector, vector))


# --- subclasses ---------------------------------------------------------------------------------


class First(np.ndarray):
    """A subclass without a priority of its own."""


class Second(np.ndarray):
    """One that goes before others."""

    __array_priority__: ClassVar[float] = 2.0


def plain(array: Any) -> Any:
    return array


def matrix(array: Any) -> Any:
    return np.asmatrix(array)


VIEWS: list[Callable[[Any], Any]] = [
    plain,
    matrix,
    lambda array: array.view(First),
    lambda array: array.view(Second),
    lambda array: array.tolist(),
]


@looped("first", VIEWS)
@looped("second", VIEWS)
@pytest.mark.parametrize(
    "function",
    [*NAMES, "inner", "kron", "tensordot", "matmul of vectors", "inner of vectors", "kron of numbers"],
)
def test_types_of_results(function: str, first: Callable[[Any], Any], second: Callable[[Any], Any]) -> None:
    a, b = filled((2, 2)), filled((2, 2), seed=2)
    if "vectors" in function:
        a, b = a[0], b[0]
    if "numbers" in function:
        a = a[0, 0]
    name, rest = function.split(maxsplit=1)[0], ((1,) if function == "tensordot" else ())
    operands = first(a), second(b)
    try:
        expected = getattr(np, name)(*operands, *rest)
    except ValueError:  # rows and columns of np.matrix that do not meet
        with pytest.raises(ValueError):  # noqa: PT011
            getattr(tw, name)(*operands, *rest)
        return
    same(getattr(tw, name)(*operands, *rest), expected)
    if name in NAMES:
        same(tw_plain := getattr(tw, name)(*operands, subok=False), getattr(np, name)(*operands, subok=False))
        assert not isinstance(tw_plain, (First, Second, np.matrix))


def test_a_subclass_from_before_numpy_2() -> None:
    class Old(np.ndarray):
        def __array_wrap__(self, array: Any, context: Any = None) -> Any:  # type: ignore[override]
            return array.view(Old)

    assert type(tw.matmul(A.view(Old), B)) is Old


def test_an_out_of_a_subclass_is_returned_itself() -> None:
    out = np.zeros((2, 3, 5), np.float32).view(First)
    assert tw.matmul(A, B, out=out) is out
    with pytest.raises(MaskedOperand):
        tw.matmul(A, B, out=np.ma.zeros((2, 3, 5), np.float32))


# --- other libraries ----------------------------------------------------------------------------


class Elsewhere:
    """An array whose library has functions of its own."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise AssertionError("the array was brought here")

    def __array_ufunc__(self, function: Any, method: str, *arguments: Any, **keywords: Any) -> Any:
        return function, method, arguments, keywords

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        return function, "__call__", arguments, keywords


def test_calls_that_belong_to_another_library(caplog: pytest.LogCaptureFixture) -> None:
    other: Any = Elsewhere()
    out: Any = np.zeros((2, 3, 5), np.float32)
    with caplog.at_level(logging.DEBUG, "tilewright"):
        pairs: list[tuple[Any, Any]] = [(A, other), (other, A), (other, [1.0])]
        for operands in pairs:
            for name in NAMES:
                function, method, arguments, _ = getattr(tw, name)(*operands)
                assert (function, method) == (getattr(np, name), "__call__")
                assert arguments == operands
            for name in ("inner", "kron"):
                assert getattr(tw, name)(*operands)[0] is getattr(np, name)
            assert tw.tensordot(*operands, 1)[0] is np.tensordot
            assert tw.einsum("...,...", *operands)[0] is np.einsum
            assert tw.einsum(operands[0], [0, 1], operands[1], [1])[0] is np.einsum
    assert "dispatched to numpy.matmul" in caplog.text
    assert tw.matmul(A, other, out=out, dtype="f8", axes=[0, 1])[3] == {
        "out": (out,),
        "dtype": np.dtype("f8"),
        "axes": [0, 1],
    }
    assert tw.matmul(A, B, out=other)[0] is np.matmul
    assert tw.vecdot(other, A, axis=1, keepdims=True)[3] == {"axis": 1, "keepdims": True}
    assert tw.einsum("ij->ji", other, optimize=True)[0] is np.einsum


def test_keywords_that_another_library_does_not_have() -> None:
    other: Any = Elsewhere()
    for keywords in ({"alpha": 2.0}, {"bias": V}, {"activation": "relu"}):
        with pytest.raises(ForeignKeyword, match=next(iter(keywords))):
            tw.matmul(A, other, **keywords)


def test_operands_that_refuse_universal_functions() -> None:
    class Refuses:
        __array_ufunc__ = None

    other: Any = Refuses()
    for name in NAMES:
        with pytest.raises(TypeError):
            getattr(np, name)(A, other)
        with pytest.raises(NoUfuncs, match="__array_ufunc__"):
            getattr(tw, name)(A, other)


@pytest.mark.parametrize("shape", [(), (1,) * 63, (1,) * 64], ids=len)
@pytest.mark.parametrize("function", ["vecdot", "matvec", "vecmat"])
def test_out_of_too_few_or_too_many_axes(function: str, shape: tuple[int, ...]) -> None:
    operands = {"vecdot": (A, A), "matvec": (A, V), "vecmat": (V, B)}[function]
    with pytest.raises(OutShape):
        getattr(tw, function)(*operands, out=np.zeros(shape, np.float32))
