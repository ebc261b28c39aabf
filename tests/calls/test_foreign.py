"""Masked arrays, arrays of other libraries and subclasses in the place of NumPy's arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.errors import ForeignArray, InvalidOperand, MaskedOperand, OperandMismatch

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


@pytest.mark.parametrize(("call", "at"), EACH, ids=NAMES)
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


@pytest.mark.parametrize(
    ("call", "at"),
    [pair for pair in EACH if takes_no_foreign(*pair)],
    ids=[name for name, pair in zip(NAMES, EACH, strict=True) if takes_no_foreign(*pair)],
)
def test_arrays_of_other_libraries_are_not_brought_here(call: Any, at: int | str) -> None:
    expected: tuple[type[Exception], ...] = (ForeignArray,)
    if isinstance(call[0], tw.Kernel) or call[0] is CALLS[-1][0]:
        expected = (OperandMismatch,)
    with pytest.raises(expected):
        replaced(call, at, Elsewhere)


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
