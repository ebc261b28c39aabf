"""Masked arrays, arrays of other libraries and subclasses in the place of NumPy's arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from shares import looped

import tilewright as tw
from tilewright.errors import (
    ForeignArray,
    InvalidOperand,
    MaskedOperand,
    NotAnArray,
    OperandMismatch,
    UnsupportedDtype,
)

A = np.arange(16.0, dtype=np.float32).reshape(4, 4)
Q = np.arange(32.0, dtype=np.float32).reshape(1, 1, 4, 8)
W = tw.quantize_weights(np.ones((4, 4), np.float32))
ROWS = np.array([0, 4], np.int64)
OUT, LSE = tw.attention(Q, Q, Q, return_lse=True)
STATE = tw.attention_partial(Q, Q, Q)
TILES = np.ones((1, 1, 4, 4), np.float32)
COMPILED = tw.compile_einsum("ij,jk->ik", (4, 4), (4, 4))

#: Calls of every function that takes arrays, as one of its arrays is replaced; and which arrays these are.
CALLS: list[tuple[Callable[..., Any], dict[str, Any], tuple[Any, ...]]] = [
    (tw.matmul, {"out": A.copy(), "bias": A[0]}, (A, A)),
    (tw.matmul, {"bias": A[0]}, (A, tw.pack(A))),
    (tw.matmul, {"bias": A[0], "activation": "relu"}, (A, A)),
    (tw.matmul, {}, (A, W)),
    (tw.einsum, {"out": A.copy()}, ("ij,jk->ik", A, A)),
    (tw.einsum, {}, ("ij,jk->ik", A, A)),
    (tw.einsum, {}, ("ij->j", A)),
    (tw.einsum, {}, (A, [0, 1], A, [1, 2])),
    (COMPILED, {"out": A.copy()}, (A, A)),
    (tw.tensordot, {}, (A, A, 1)),
    (tw.inner, {}, (A, A)),
    (tw.kron, {}, (A, A)),
    (tw.vecdot, {"out": A[0].copy()}, (A, A)),
    (tw.matvec, {"out": A[0].copy()}, (A, A[0])),
    (tw.vecmat, {"out": A[0].copy()}, (A[0], A)),
    (tw.transpose, {"out": A.copy()}, (A,)),
    (tw.linear, {"bias": A[0], "out": A.copy()}, (A, A)),
    (tw.linear, {}, (A, W)),
    (tw.pack, {}, (A,)),
    (tw.pack, {"form": "bf16"}, (A,)),
    (tw.quantize_weights, {}, (A,)),
    (tw.quantize_rows, {}, (A,)),
    (tw.pack_quantized, {"zeros": np.zeros((1, 4), np.int8)}, (np.ones((4, 4), np.int8), A[:1])),
    (tw.mmt4d, {"out4d": TILES.copy()}, (TILES, TILES)),
    (tw.softmax, {"out": A.copy()}, (A,)),
    (tw.layer_norm, {"weight": A[0], "bias": A[0], "out": A.copy()}, (A,)),
    (tw.rms_norm, {"weight": A[0]}, (A,)),
    (tw.sum, {"out": A[0].copy(), "axis": 0}, (A,)),
    (tw.max, {}, (A,)),
    (tw.gelu, {"out": A.copy()}, (A,)),
    (tw.exp, {}, (A,)),
    (tw.gated, {"out": A.copy()}, (A, A)),
    (tw.rotary, {"out": A.copy()}, (A, A[:, :2].copy(), A[:, :2].copy())),
    (tw.embedding, {"out": A[:2].copy()}, (A, np.arange(2))),
    (tw.sample, {"temperature": 0}, (A,)),
    (tw.syrk, {"out": A.copy(), "beta": 1}, (A,)),
    (tw.syr2k, {"out": A.copy()}, (A, A)),
    (tw.trmm, {"out": A.copy()}, (A, A)),
    (tw.attention, {"mask": np.ones((4, 4), bool), "out": Q.copy()}, (Q, Q, Q)),
    (tw.attention, {"kv_lengths": ROWS[1:], "alibi_slopes": A[0, :1], "sinks": A[0, :1]}, (Q, Q, Q)),
    (tw.attention, {"cu_seqlens_q": ROWS, "cu_seqlens_k": ROWS}, (Q[0], Q[0], Q[0])),
    (tw.attention_partial, {"mask": np.ones((4, 4), bool)}, (Q, Q, Q)),
    (tw.attention_backward, {"mask": np.ones((4, 4), bool)}, (OUT, Q, Q, Q, OUT, LSE)),
    (lambda *state: tw.merge_attention([type(STATE)(*state), STATE]), {}, tuple(STATE)),
    (tw.compile(tw.Gemm(dtype="f32")), {}, (A, A, A.copy())),
    (tw.compile(tw.Gemm(dtype="f32")).native, {}, (A, A, A.copy())),
]


def places(call: tuple[Callable[..., Any], dict[str, Any], tuple[Any, ...]]) -> list[int | str]:
    """Where the arrays of a call stand."""
    _, keywords, arguments = call
    found: list[int | str] = [at for at, value in enumerate(arguments) if isinstance(value, np.ndarray)]
    return found + [name for name, value in keywords.items() if isinstance(value, np.ndarray)]


def replaced(
    call: tuple[Callable[..., Any], dict[str, Any], tuple[Any, ...]],
    at: int | str,
    change: Callable[[Any], Any],
) -> Any:
    """The result of a call whose array at one place is changed."""
    function, keywords, arguments = call
    keywords = {name: change(value) if name == at else value for name, value in keywords.items()}
    return function(
        *(change(value) if number == at else value for number, value in enumerate(arguments)), **keywords
    )


EACH = [(call, at) for call in CALLS for at in places(call)]
NAMES = [f"{number}-{getattr(call[0], '__name__', 'kernel')}-{at}" for number, (call, at) in enumerate(EACH)]


@looped(("call", "at"), EACH)
def test_masked_arrays_are_refused(call: Any, at: int | str) -> None:
    with pytest.raises(MaskedOperand):
        replaced(call, at, np.ma.masked_array)


class Elsewhere:
    """An array whose library has its own functions, as Dask and CuPy have."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.shape, self.dtype, self.ndim = array.shape, array.dtype, array.ndim

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise AssertionError("the array was brought here")

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        return ("left", function.__name__, keywords)

    def __array_ufunc__(self, function: Any, method: str, *arguments: Any, **keywords: Any) -> Any:
        return ("left", function.__name__, keywords)


#: Functions that NumPy has too: what they do with such arrays is decided by these.
OF_NUMPY = (tw.matmul, tw.einsum, tw.tensordot, tw.inner, tw.kron, tw.vecdot, tw.matvec, tw.vecmat)


def takes_no_foreign(call: tuple[Any, dict[str, Any], tuple[Any, ...]], at: int | str) -> bool:
    """Whether the call belongs to this package alone, and the array is no result."""
    return call[0] not in OF_NUMPY and not str(at).startswith("out")


@looped(("call", "at"), [pair for pair in EACH if takes_no_foreign(*pair)])
def test_arrays_of_other_libraries_are_not_brought_here(call: Any, at: int | str) -> None:
    expected: tuple[type[Exception], ...] = (ForeignArray,)
    if isinstance(call[0], tw.Kernel) or call[0] is CALLS[-1][0]:
        expected = (OperandMismatch,)
    with pytest.raises(expected):
        replaced(call, at, Elsewhere)


def of_library(module: str, **methods: Any) -> Any:
    """An object of a class that says it is of another package."""
    return type("Other", (), {"__module__": module, **methods})()


def graph(_: Any) -> dict[str, Any]:
    """What Dask's collections return: what has to be computed."""
    return {}


#: Objects of other libraries, and what the message says to do.
OF_LIBRARIES = (
    (
        of_library("dask.array.core", __array_function__=None, __array_ufunc__=None),
        r"x\.compute\(\), or call .*map_blocks",
    ),
    (of_library("xarray.core", __dask_graph__=graph, __array__=None), r"x\.compute\(\)"),
    (of_library("anything", __dask_graph__=graph), r"x\.compute\(\)"),
    (of_library("cupy", __array_ufunc__=None), r"x\.get\(\)"),
    (of_library("scipy.sparse._csr"), r"x\.toarray\(\)"),
    (of_library("sparse.numba_backend", __array_function__=None), r"x\.todense\(\)"),
    (of_library("polars.lazyframe"), r"x\.collect\(\)\.to_numpy\(\)"),
)


@looped(("value", "remedy"), OF_LIBRARIES)
@looped("function", [lambda x: tw.matmul(x, A), lambda x: tw.einsum("ij,jk", A, x), tw.softmax, tw.transpose])
def test_sparse_and_lazy_operands_are_refused_by_class_name(
    function: Callable[[Any], Any], value: Any, remedy: str
) -> None:
    with pytest.raises(ForeignArray, match=f"is of type {type(value).__module__}.Other, .*; pass {remedy}"):
        function(value)


def test_a_list_of_sparse_operands_is_refused() -> None:
    with pytest.raises(ForeignArray, match="toarray"):
        tw.softmax([of_library("scipy.sparse._csr")])


@pytest.mark.parametrize("module", ["pandas", "xarray.core.dataarray", "polars.series.series"])
def test_tables_are_converted_by_every_function(module: str) -> None:
    """Also where NumPy's function would call theirs, which multiplies by NumPy or not at all."""

    def elsewhere(*_: Any, **__: Any) -> Any:
        raise AssertionError("the call was left to another library")

    methods = {"__array_ufunc__": elsewhere, "__array__": lambda _, dtype=None, copy=None: A}
    table = of_library(module, **methods)
    for found in (tw.matmul(table, A), tw.matmul(A, table), tw.einsum("ij,jk->ik", table, A)):
        assert type(found) is np.ndarray
        assert found.shape == A.shape
    np.testing.assert_array_equal(tw.matmul(table, A), tw.matmul(A, A))
    assert tw.softmax(table).shape == A.shape


#: Objects that are no arrays, and how messages call them.
NO_ARRAYS = (
    (None, "is None, must be an array or a list of numbers$"),
    ("abc", "is 'abc', must be an array or a list of numbers$"),
    (object(), "is of type builtins.object, must be an array or a list of numbers$"),
    ((one for one in (1.0, 2.0)), r"is of type builtins.generator, .*; pass list\(x\), or numpy.fromiter"),
    ({1.0, 2.0}, r"is of type builtins.set, .*; pass list\(x\)"),
)


@pytest.mark.parametrize(("value", "words"), NO_ARRAYS, ids=lambda value: type(value).__name__)
def test_objects_that_are_no_arrays_are_refused(value: Any, words: str) -> None:
    calls: dict[str, Callable[[Any], Any]] = {
        "matmul: a": lambda x: tw.matmul(x, A),
        "linear: x": lambda x: tw.linear(x, A),
        "einsum: operand 1": lambda x: tw.einsum("ij,jk", A, x),
        "attention: v": lambda x: tw.attention(Q, Q, x),
        "trmm: b": lambda x: tw.trmm(A, x),
        "transpose: a": tw.transpose,
        "sum: x": tw.sum,
    }
    for name, function in calls.items():
        with pytest.raises(NotAnArray, match=f"^{name} {words}"):
            function(value)


def test_arrays_of_objects_are_refused_with_what_to_do() -> None:
    objects = A.astype(object)
    for function in (lambda x: tw.matmul(x, A), tw.softmax, tw.sum, lambda x: tw.einsum("ij,jk", x, A)):
        with pytest.raises(UnsupportedDtype, match=r"dtype object .* \.astype\(float\): they hold"):
            function(objects)
    assert tw.transpose(objects).dtype == object  # which only moves elements


def test_masked_operands_are_named() -> None:
    calls: dict[str, Callable[[Any], Any]] = {
        "matmul: b": lambda x: tw.matmul(A, x),
        "inner: a": lambda x: tw.inner(x, A),
        "einsum: operand 1": lambda x: tw.einsum("ij,jk", A, x),
    }
    for name, function in calls.items():
        with pytest.raises(MaskedOperand, match=f"^{name} is a masked array"):
            function(np.ma.masked_array(A))


def test_sparse_matrices_of_scipy() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    for matrix in (sparse.csr_matrix(A), sparse.csr_array(A), sparse.coo_array(A)):
        with pytest.raises(ForeignArray, match=r"^matmul: b is of type scipy.sparse.*toarray"):
            tw.matmul(A, matrix)


@pytest.mark.parametrize(
    "value",
    [
        [A[0], np.ma.masked_array(A[0])],
        [[0.0, 1.0], [2.0, np.ma.masked]],
        (A[0], (0.0, 1.0, 2.0, np.ma.masked)),
    ],
    ids=["arrays", "elements", "tuples"],
)
@pytest.mark.parametrize("function", [tw.softmax, tw.sum, tw.transpose, tw.exp, lambda x: tw.matmul(x, x)])
def test_masked_arrays_in_lists_are_refused(function: Callable[[Any], Any], value: Any) -> None:
    with pytest.raises(MaskedOperand):
        function(value)


def test_lists_that_hold_themselves() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InvalidOperand):
        tw.softmax(endless)


def test_converted_as_numpy_does() -> None:
    """Subclasses without functions of their own, and whatever has only `__array__` or an interface."""

    class OnlyHere:
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
            return A

    for value in (OnlyHere(), A.data, A.view(np.recarray), A.tolist()):
        np.testing.assert_array_equal(tw.exp(value), tw.exp(np.asarray(value)))


# --- arrays that are taken in place ---------------------------------------------------------------


def parts(result: Any) -> list[Any]:
    """The arrays of a result."""
    if isinstance(result, tuple):
        return [part for item in result for part in parts(item)]
    return [] if isinstance(result, (tw.PackedMatrix, tw.QuantizedRows)) else [result]


def fresh(call: Any, export: Callable[[Any], Any]) -> Any:
    """The result of a call whose arrays are copies, all of them exported."""
    function, keywords, arguments = call
    made = {
        id(one): export(one.copy()) for one in (*arguments, *keywords.values()) if type(one) is np.ndarray
    }
    given = [made.get(id(value), value) for value in arguments]
    return function(*given, **{name: made.get(id(value), value) for name, value in keywords.items()})


@pytest.mark.parametrize("call", CALLS, ids=range(len(CALLS)))
def test_exported_arrays_give_the_bits_of_arrays(call: Any) -> None:
    expected = parts(fresh(call, np.asarray))
    for _ in range(3):
        found = parts(fresh(call, memoryview))
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


@pytest.mark.parametrize("call", CALLS, ids=range(len(CALLS)))
def test_tensors_give_tensors_with_the_bits_of_arrays(call: Any) -> None:
    torch = pytest.importorskip("torch")
    expected = parts(fresh(call, np.asarray))
    for _ in range(3):
        found = parts(fresh(call, torch.from_numpy))
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert type(one) is torch.Tensor
            assert one.numpy().tobytes() == np.asarray(other).tobytes()
