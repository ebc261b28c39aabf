"""Repeated calls of functions of rows and of elements, of reductions and of transpose."""

from __future__ import annotations

import gc
import inspect
import pickle
import sys
import threading
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from repeated_calls import check, python_lines
from shares import looped
from support import Array, run_python, unaligned
from tiers import crossed, pairwise

import tilewright as tw
from tilewright.calls.layout import native_entry_possible
from tilewright.calls.recipes.recipe import Field
from tilewright.calls.repeated import replay
from tilewright.errors import AxisOutOfRange, NegativeEps, OutReadOnly, OutShape

pytestmark = pytest.mark.skipif(not native_entry_possible(), reason="no native entries in this interpreter")

RNG = np.random.default_rng(20)


def values(*shape: int, dtype: Any = "f4") -> Array:
    return RNG.standard_normal(shape).astype(dtype)


def integers(*shape: int, dtype: Any = "i4") -> Array:
    return RNG.integers(0, 100, shape).astype(dtype)


FLOATS = ["f4", "f8", "f2", ml_dtypes.bfloat16]
X, W, B = values(5, 8), values(8), values(8)

ROWS: dict[str, tuple[Callable[..., Any], tuple[Array, ...]]] = {
    "softmax": (tw.softmax, (X,)),
    "first axis": (lambda x: tw.softmax(x, 0), (X,)),
    "axis by name": (lambda x: tw.log_softmax(x, axis=-1), (X,)),
    "threads": (lambda x: tw.softmax(x, threads=2), (X,)),
    "threads of NumPy": (lambda x: tw.softmax(x, threads=np.int64(1)), (X,)),  # type: ignore[arg-type]
    "adjacent axes": (lambda x: tw.softmax(x, (1, 2)), (values(3, 4, 5),)),
    "list of axes": (lambda x: tw.softmax(x, [-1, 1]), (values(3, 4, 5),)),  # type: ignore[arg-type]
    "axes that are moved": (lambda x: tw.softmax(x, (0, 2)), (values(3, 4, 5),)),
    "lines that are moved": (tw.softmax, (values(3, 8, 9)[:, ::2, ::-1],)),
    "columns": (tw.softmax, (np.asfortranarray(values(5, 8)),)),
    "unaligned": (tw.softmax, (unaligned(values(5, 8)),)),
    "byte order": (tw.softmax, (X.astype(">f4"),)),
    "integers": (tw.softmax, (integers(5, 8),)),
    "truth values": (tw.softmax, (integers(5, 8, dtype="?"),)),
    "empty": (tw.softmax, (values(0, 8),)),
    "weight and bias": (tw.layer_norm, (X, W, B)),
    "bias by name": (lambda x, b: tw.layer_norm(x, bias=b, eps=0.5), (X, B)),
    "wide weight": (tw.layer_norm, (X, values(8, dtype="f8"), B)),
    "integers as weight": (tw.layer_norm, (X, integers(8))),
    "narrow weight": (tw.layer_norm, (X, values(8, dtype="f2"))),
    "strided weight": (tw.layer_norm, (X, values(16)[::2], values(8, 2)[:, 1])),
    "narrow x": (tw.layer_norm, (values(5, 8, dtype="f2"), W, B)),
    "narrow x and weight": (tw.layer_norm, (values(5, 8, dtype="f2"), values(8, dtype="f2"))),
    "norm of two axes": (lambda x, w: tw.layer_norm(x, w, axis=(1, 2)), (values(3, 4, 8), values(4, 8))),
    "one vector for two": (lambda x, w: tw.layer_norm(x, w, w), (X, W)),
    "x as its own weight": (lambda x: tw.layer_norm(x, x, x), (W,)),
    "root mean square": (tw.rms_norm, (X, W)),
    "eps": (lambda x: tw.rms_norm(x, eps=0.25), (X,)),
    "eps of NumPy": (lambda x: tw.rms_norm(x, eps=np.float64(0.25)), (X,)),
    "one row": (tw.rms_norm, (W,)),
}

EACH: dict[str, tuple[Callable[..., Any], tuple[Array, ...]]] = {
    **{name: (getattr(tw, name), (X,)) for name in ("relu", "exp", "tanh", "sigmoid", "silu", "erf", "gelu")},
    "word": (lambda x: tw.gelu(x, "tanh"), (X,)),
    "word by name": (lambda x: tw.gelu(x, approximate="tanh"), (X,)),
    "elements, threads": (lambda x: tw.exp(x, threads=2), (X,)),
    "strided": (tw.exp, (values(5, 16)[:, ::2],)),
    "backwards": (tw.exp, (values(5, 8)[::-1, ::-1],)),
    "elements of columns": (tw.exp, (np.asfortranarray(values(5, 8)),)),
    "elements from integers": (tw.exp, (integers(5, 8, dtype="i2"),)),
    "no axes": (tw.exp, (values(),)),
    "many axes": (tw.exp, (values(2, 1, 2, 1, 2, 3),)),
    "gaps": (tw.exp, (values(2, 4, 4, 4, 9)[::2, ::2, ::2, ::2, ::2],)),
}

REDUCED: dict[str, tuple[Callable[..., Any], tuple[Array, ...]]] = {
    **{
        f"{name} {words}": (lambda x, name=name, given=given: getattr(tw, name)(x, **given), (values(5, 8),))
        for name in ("sum", "mean", "max", "min")
        for words, given in (
            ("all", {}),
            ("rows", {"axis": 1}),
            ("columns", {"axis": 0}),
            ("both", {"axis": (0, 1)}),
            ("none", {"axis": ()}),
            ("kept", {"axis": -1, "keepdims": True}),
            ("all kept", {"keepdims": True}),
            ("threads", {"axis": 0, "threads": 2}),
        )
    },
    "moved": (lambda x: tw.sum(x, (0, 2)), (values(4, 6, 8)[:, ::2, ::2],)),
    "moved to a number": (tw.max, (values(4, 6, 8)[:, ::2, ::2],)),
    "one element": (tw.sum, (values(1, 1),)),
    "a number": (tw.mean, (values(),)),
    "sum of nothing": (lambda x: tw.sum(x, 0), (values(0, 3),)),
    "mean of nothing": (tw.mean, (values(0, 3),)),
    "nothing": (lambda x: tw.max(x, 1), (values(0, 3),)),
}


GATE = values(5, 8)
PAIRS: dict[str, tuple[Callable[..., Any], tuple[Array, ...]]] = {
    "gated": (tw.gated, (X, GATE)),
    **{
        f"gated {word}": (lambda x, y, word=word: tw.gated(x, y, word), (X, GATE))
        for word in ("gelu", "gelu_tanh", "relu", "sigmoid", "tanh", None)
    },
    "merged": (tw.gated, (X,)),
    "merged, gate last": (lambda x: tw.gated(x, gate_first=False), (X,)),
    "gate of rows": (tw.gated, (X, values(8))),
    "gate of columns": (tw.gated, (X, values(5, 1))),
    "gate of an array of its own": (lambda x: tw.gated(x, x), (X,)),
    "gated, two types": (tw.gated, (X, values(5, 8, dtype="f2"))),
    "gated, integers": (tw.gated, (X, integers(5, 8))),
    "gated, threads": (lambda x, y: tw.gated(x, y, threads=2), (X, GATE)),
    "gated into": (lambda x, y, out: tw.gated(x, y, out=out), (X, GATE, values(5, 8))),
    "gated in place": (lambda x, y: tw.gated(x, y, out=x), (X, GATE)),
    "gated, overlapping": (lambda x: tw.gated(x[1:], x[1:], out=x[:-1]), (X,)),
    "gated, moved": (tw.gated, (X, np.asfortranarray(GATE))),
    "gated, many axes": (tw.gated, (values(2, 1, 3, 1, 2, 1), values(1, 2, 1, 3, 1, 2))),
    "gated nothing": (tw.gated, (values(0, 8),)),
}


TABLES = values(100, 4), values(100, 4)  # as many rows as there are integers
Q = values(2, 3, 5, 8)
ROTATED: dict[str, tuple[Callable[..., Any], tuple[Array, ...]]] = {
    "rotary": (tw.rotary, (Q, *TABLES)),
    "rotary, positions": (tw.rotary, (Q, *TABLES, integers(2, 5, dtype="i8"))),
    "rotary, positions of all": (tw.rotary, (Q, *TABLES, integers(5))),
    "rotary, one position": (tw.rotary, (values(2, 3, 1, 8), *TABLES, integers(2, 1, dtype="u2"))),
    "rotary, heads last": (lambda *given: tw.rotary(*given, layout="bshd"), (Q, *TABLES, integers(2, 3))),
    "rotary, interleaved": (lambda *given: tw.rotary(*given, interleaved=True), (Q, *TABLES)),
    "rotary of a part": (tw.rotary, (values(3, 5, 11), *TABLES)),
    "rotary of one head": (lambda *given: tw.rotary(*given, threads=2), (values(5, 8), *TABLES)),
    "rotary in place": (lambda x, *given: tw.rotary(x, *given, out=x), (Q, *TABLES, integers(5))),
    "rotary, moved": (tw.rotary, (np.asfortranarray(Q), *TABLES, integers(2, 5)[:, ::-1])),
    "rotary, types": (tw.rotary, (values(2, 3, 5, 8, dtype="f2"), *TABLES)),
    "rotary, wide tables": (tw.rotary, (Q, values(100, 4, dtype="f8"), values(100, 4, dtype="f8"))),
    "rotary of nothing": (tw.rotary, (values(2, 3, 0, 8), *TABLES, integers(2, 0))),
}


VOCABULARY = values(100, 8)  # as many rows as there are integers
GATHERED: dict[str, tuple[Callable[..., Any], tuple[Array, ...]]] = {
    **{
        f"embedding of {np.dtype(dtype)}": (tw.embedding, (values(100, 8, dtype=dtype), integers(5)))
        for dtype in FLOATS
    },
    "embedding, many axes": (tw.embedding, (VOCABULARY, integers(2, 3, dtype="i8"))),
    "embedding, one index": (tw.embedding, (VOCABULARY, integers(dtype="u1"))),
    "embedding, scale": (lambda *given: tw.embedding(*given, scale=8**0.5), (VOCABULARY, integers(5))),
    "embedding into": (tw.embedding, (VOCABULARY, integers(5), values(5, 8))),
    "embedding into rows": (
        lambda table, indices, out: tw.embedding(table, indices, out[:, ::2, :8]),
        (VOCABULARY, integers(5, 3), values(5, 6, 9)),
    ),
    "embedding, threads": (lambda *given: tw.embedding(*given, threads=2), (VOCABULARY, integers(5))),
    "embedding of columns": (tw.embedding, (np.asfortranarray(VOCABULARY), integers(5)[::-1])),
    "embedding of nothing": (tw.embedding, (VOCABULARY, integers(0, 3))),
}

FORMS = {**ROWS, **EACH, **REDUCED, **PAIRS, **ROTATED, **GATHERED}


@pytest.mark.parametrize("name", FORMS)
def test_forms(name: str) -> None:
    function, operands = FORMS[name]
    check(function, *operands)


def test_embedding_of_quantised_rows() -> None:
    rows, indices = tw.quantize_rows(VOCABULARY), integers(2, 3)
    for _ in range(3):
        tw.embedding(rows, indices)
    others = tw.quantize_rows(values(100, 8))
    found: list[Array] = []
    assert python_lines(lambda: found.append(tw.embedding(others, indices))) == 0
    np.testing.assert_array_equal(found[0], np.asarray(others)[indices])


def merged(x: Array) -> Array:
    """A gated product of an array's halves, whatever its last axis."""
    return tw.gated(x[..., : x.shape[-1] // 2 * 2])


@pytest.mark.parametrize(
    ("function", "dtype"),
    crossed([tw.softmax, tw.rms_norm, tw.silu, tw.sum, tw.max, tw.transpose, merged], FLOATS, 2),
)
def test_types(function: Callable[..., Any], dtype: Any) -> None:
    check(function, values(5, 8, dtype=dtype))
    check(function, values(3, 4, 5, dtype=dtype))


@pytest.mark.parametrize(
    ("dtype", "function", "axis"),
    pairwise(
        ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"],
        [tw.sum, tw.mean, tw.max, tw.min],
        [None, 0, 1, (), (0, 2)],
    ),
)
def test_integers(function: Any, dtype: str, axis: Any) -> None:
    check(lambda x: function(x, axis), integers(4, 5, 6, dtype=dtype))


def test_extreme_integers_are_exact() -> None:
    for dtype in ("i4", "u4", "i1"):
        limits = np.iinfo(dtype)
        x: Array = np.array([[limits.max, limits.max - 1], [limits.min, limits.min + 1]], dtype)
        for _ in range(3):
            for axis in (None, 0, 1):
                np.testing.assert_array_equal(tw.max(x, axis), np.max(x, axis))
                np.testing.assert_array_equal(tw.min(x, axis), np.min(x, axis))
                np.testing.assert_array_equal(tw.sum(x, axis), np.sum(x, axis))
    wrapping: Array = np.array([[2**63 - 1, 2**62], [2**63 - 1, 5]])
    for _ in range(3):
        assert tw.sum(wrapping) == np.sum(wrapping)


OUT = [tw.softmax, tw.log_softmax, tw.layer_norm, tw.rms_norm, tw.relu, tw.gelu]


@pytest.mark.parametrize("function", OUT)
def test_out(function: Any) -> None:
    def into(x: Array, out: Array) -> Any:
        return function(x, out=out)

    check(into, X, np.empty_like(X))
    check(into, X, np.empty((5, 8)))  # of a wider type
    check(into, X, np.empty((5, 16), "f4")[:, ::2])
    check(into, X, np.empty((8, 5), "f4").T)
    check(lambda x: function(x, out=x), X)
    check(lambda whole: function(whole[0], out=whole[1]), values(2, 5, 8))
    check(lambda whole: function(whole[:5], out=whole[1:]), values(6, 8))
    check(lambda x, out: function(x, out=out, threads=2), X, np.empty_like(X))


def test_a_weight_in_the_memory_of_out() -> None:
    check(lambda x, out: tw.layer_norm(x, out[2], out=out), values(8, 8), values(8, 8))
    check(lambda x: tw.layer_norm(x, x[2], out=x), values(8, 8))


def test_out_of_reductions() -> None:
    for dtype in ("f4", "i4"):
        x = integers(5, 8, dtype=dtype)
        check(lambda x, out: tw.sum(x, 0, out), x, np.empty(8, tw.sum(x, 0).dtype))
        check(lambda x, out: tw.max(x, 1, out=out), x, np.empty(5, dtype))
        check(lambda x, out: tw.max(x, 1, out=out), x, np.empty((5, 3), dtype)[:, 1])
        check(lambda x, out: tw.min(x, out=out), x, np.empty((), dtype))
        check(lambda x: tw.max(x, 0, out=x[0]), x)
    check(lambda x, out: tw.sum(x, 0, out), X, np.empty(8, "f8"))


@looped("dtype", ["f4", "i1", "D", "M8[s]", "S3", [("a", "i4"), ("b", "f8")]])
@looped("axes", [None, (1, 0, 2), [2, 0, 1], (0, -1, 1), (0, 1, 2)])
def test_transpose(dtype: Any, axes: Any) -> None:
    x = RNG.integers(0, 100, (3, 4, 5)).astype(dtype)

    def of(x: Array) -> Any:
        return tw.transpose(x, axes)

    views = [x, x[:, ::2], x[::-1, :, 1:], x[:0], *([unaligned(x)] if x.dtype.alignment > 1 else [])]
    for a in views:
        check(of, a)
    shape = np.transpose(x, axes).shape
    check(lambda x, out: tw.transpose(x, axes, out), x, np.empty(shape, dtype))
    check(lambda x, out: tw.transpose(x, axes, out=out), x, np.empty((*shape, 2), dtype)[..., 1])


def test_transpose_of_matrices() -> None:
    x = values(6, 6)
    check(tw.transpose, x)
    check(tw.transpose, x.T)
    check(tw.transpose, W)
    check(lambda x: tw.transpose(x, out=x), x)
    check(lambda x: tw.transpose(x[:5, :5], out=x[1:, 1:]), x)


def test_objects_are_copied_by_numpy() -> None:
    x: Array = np.array([[object(), object()], [object(), object()]])
    for _ in range(3):
        assert (tw.transpose(x) == x.T).all()
        y = x.copy()
        tw.transpose(y, out=y)
        assert (y == x.T).all()


def test_what_numbers_in_arrays_say_is_read_at_every_call() -> None:
    x, eps, axis, axes = values(5, 5), np.array(0.5), np.array(0), np.array([0, 1])
    for value, other in ((0.5, 0), (0.25, 1), (0.5, 0)):
        eps[...], axis[...], axes[...] = value, other, (other, 1 - other)
        for _ in range(2):
            assert np.array_equal(tw.rms_norm(x, eps=eps), tw.rms_norm(x, eps=value))  # type: ignore[call-overload]
            assert np.array_equal(tw.softmax(x, axis), tw.softmax(x, other))  # type: ignore[arg-type]
            assert np.array_equal(tw.transpose(x, axes), x.transpose(axes))  # type: ignore[arg-type]


def test_calls_that_differ_in_one_thing() -> None:
    x, y = values(4, 4), values(4, 4)
    forms: list[tuple[Callable[[], Any], Any]] = [
        (lambda: tw.layer_norm(x, W[:4]), tw.layer_norm(x) * W[:4]),
        (lambda: tw.layer_norm(x, None, W[:4]), tw.layer_norm(x) + W[:4]),
        (lambda: tw.layer_norm(x, bias=W[:4]), tw.layer_norm(x) + W[:4]),
        (lambda: tw.layer_norm(x, W[:4], axis=0), tw.layer_norm(x, axis=0) * W[:4, None]),
        (lambda: tw.sum(x), np.sum(x)),
        (lambda: tw.sum(x, 0), np.sum(x, 0)),
        (lambda: tw.sum(x, axis=1), np.sum(x, 1)),
        (lambda: tw.sum(x, 0, keepdims=True), np.sum(x, 0, keepdims=True)),
        (lambda: tw.max(x, 0), np.max(x, 0)),
        (lambda: tw.transpose(x, (0, 1)), x),
        (lambda: tw.transpose(x, (1, 0)), x.T),
        (lambda: tw.transpose(x.T), x),
        (lambda: tw.relu(x, y.copy()), np.maximum(x, 0)),
        (lambda: tw.relu(out=y.copy(), x=x), np.maximum(x, 0)),
    ]
    for _ in range(3):
        for call, expected in forms:
            np.testing.assert_allclose(call(), expected, rtol=2e-5, atol=2e-6)


def test_errors_after_calls_that_are_known() -> None:
    x, out = values(4, 3), np.zeros((4, 3), np.float32)
    for _ in range(3):
        tw.softmax(x, out=out)
        tw.rms_norm(x, eps=0.5)
        tw.transpose(x, (1, 0))
    out[...] = 7
    out.flags.writeable = False
    with pytest.raises(OutReadOnly):
        tw.softmax(x, out=out)
    with pytest.raises(OutShape):
        tw.softmax(x, out=np.zeros((3, 4), np.float32))
    with pytest.raises(NegativeEps):
        tw.rms_norm(x, eps=-0.5)
    with pytest.raises(AxisOutOfRange):
        tw.softmax(x, 2)
    with pytest.raises(TypeError):
        tw.softmax(x, axes=1)  # type: ignore[call-arg]
    assert (out == 7).all()


def test_statistics() -> None:
    for norm in (tw.layer_norm, tw.rms_norm):
        result, *statistics = norm(X, return_stats=True)
        assert result.shape == X.shape
        assert all(one.shape == (5, 1) for one in statistics)
        check(norm, X, return_stats=True)
        check(norm, X.astype("i4"), axis=0, return_stats=True)
    with np.errstate(all="raise"):  # which statistics of numbers too large for their squares do not
        for _ in range(3):
            assert tw.rms_norm(np.full((5, 8), 1e30, "f4"), return_stats=True)[1].max() == 0


def test_references_are_given_back() -> None:
    out = np.empty((8, 5), "f4")
    calls: list[Callable[[], Any]] = [
        lambda: tw.layer_norm(X, values(8, dtype="f8"), B),
        lambda: tw.sum(X),
        lambda: tw.sum(integers(4, 4)),
        lambda: tw.transpose(X, out=out),
    ]
    for call in calls * 2:
        call()
    gc.collect()
    watched = (X, B, out, X.dtype)
    before = [sys.getrefcount(one) for one in watched]
    for call in calls * 300:
        call()
    assert [sys.getrefcount(one) for one in watched] == before


def test_one_object_in_two_places() -> None:
    """What is known of a call with one array does not make one of two arrays in another call."""
    shape = (3, 11)  # of no other test
    x, out = values(*shape), np.zeros(shape, np.float32)
    kept = x.copy()
    calls: tuple[Any, ...] = (
        tw.tanh,
        lambda a, b: tw.exp(a, out=b),
        lambda a, b: tw.erf(out=b, x=a),  # by name, the other way round
    )
    for call in calls:
        same = x.copy()
        call(same, same)
        assert call(x, out) is out
        assert np.array_equal(out, same)
        assert np.array_equal(x, kept)
    vector, weight = values(13), values(13)
    tw.layer_norm(vector, vector, vector)
    tw.layer_norm(vector, weight, weight)
    tw.layer_norm(vector, vector, weight)
    expected = tw.layer_norm(vector) * weight
    np.testing.assert_allclose(tw.layer_norm(vector, weight, 0 * weight), expected, rtol=1e-6)
    np.testing.assert_allclose(tw.layer_norm(vector, weight, vector), expected + vector, rtol=1e-5, atol=1e-6)


def test_threads_at_once() -> None:
    """Each call has its own buffers."""
    arrays = [values(300, 257) for _ in range(4)]
    expected = [tw.softmax(x, threads=1) for x in arrays]
    wrong: list[int] = []

    def work(number: int) -> None:
        found = [tw.softmax(arrays[number]) for _ in range(50)]
        wrong.append(sum(not np.array_equal(one, expected[number]) for one in found))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [0] * 4


@pytest.mark.parametrize(
    "call", [lambda x, out: tw.gelu(x, out=out), lambda x, out: tw.transpose(x, out=out.reshape(1000, 2000))]
)
def test_long_calls_let_other_threads_run(call: Callable[..., Any]) -> None:
    """Their recipes count as used meanwhile, since these must outlive the table."""
    x = values(2000, 1000)
    out = np.empty_like(x)
    replay().table.clear()
    for _ in range(2):
        call(x, out=out)
    used = [recipe.words for recipe in replay().table._kept.values()]
    seen: set[int] = set()
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            seen.update(recipe[Field.USES] for recipe in used)

    thread = threading.Thread(target=look)
    thread.start()
    for _ in range(50):
        call(x, out=out)
    done.set()
    thread.join()
    assert 1 in seen
    assert [recipe[Field.USES] for recipe in used] == [0] * len(used)


def test_complex_numbers_between_two_of_their_sizes() -> None:
    """NumPy calls them aligned like their halves; they are moved whole."""
    halves = values(4 * 6 * 2 + 1, dtype="f8")
    check(tw.transpose, halves[1:].view(np.complex128).reshape(4, 6))
    record = np.zeros((5, 7), [("number", np.complex128), ("rest", np.float64)])
    record["number"] = values(5, 7)
    for _ in range(3):
        np.testing.assert_array_equal(tw.transpose(record["number"]), record["number"].T)


def test_the_rest_of_out_stays() -> None:
    a = values(9, 13, dtype="f8")
    whole = np.full((15, 12), np.nan)
    for _ in range(3):
        tw.transpose(a, out=whole[1:14, 2:11])
        np.testing.assert_array_equal(whole[1:14, 2:11], a.T)
        assert np.isnan(whole).sum() == whole.size - a.size


def test_names_signatures_and_pickles() -> None:
    parameters = (
        "x, weight=None, bias=None, axis=-1, eps=1e-05, *, out=None, return_stats=False, threads=None"
    )
    assert str(inspect.signature(tw.layer_norm)) == f"({parameters})"
    assert str(inspect.signature(tw.transpose)) == "(a, axes=None, out=None)"
    assert (tw.softmax.__name__, tw.softmax.__module__) == ("softmax", "tilewright.ops.rows.public")
    assert (tw.transpose.__name__, tw.transpose.__module__) == ("transpose", "tilewright")
    for function in (tw.softmax, tw.gelu, tw.sum, tw.transpose):
        assert "Parameters" in (function.__doc__ or "")
        assert pickle.loads(pickle.dumps(function)) is function


def test_a_function_that_is_loaded_late_is_machine_code_too() -> None:
    """Public functions are imported when they are first looked up, one module after the other."""
    code = """
import sys, numpy as np, tilewright as tw
x = np.ones((4, 4), np.float32)
assert all(tw.softmax(x).shape == x.shape for _ in range(2))
assert 'tilewright.ops.rows.public_reductions' not in sys.modules
tw.max(x, 0)
python = []
sys.setprofile(lambda frame, event, what: python.append(event == 'call'))
tw.max(x, 0)
sys.setprofile(None)
assert not any(python)
"""
    run_python("-c", code)
