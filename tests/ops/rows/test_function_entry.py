"""The native entry of functions of rows and elements: which calls it repeats, overlap, references."""

from __future__ import annotations

import gc
import inspect
import pickle
import subprocess
import sys
import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support import Array, rough, unaligned
from tiers import crossed

import tilewright as tw
from tilewright.calls import recipes
from tilewright.calls.fastcall import native_entry_possible
from tilewright.calls.recipes import RecipeTable
from tilewright.errors import NegativeEps, OutReadOnly, OutShape, TilewrightError
from tilewright.ops.elementwise import call as elementwise
from tilewright.ops.elementwise import public as elementwise_front
from tilewright.ops.rows import builtins as function_front
from tilewright.ops.rows import public as rows_front
from tilewright.ops.rows.recipes import add_recipe, call_words
from tilewright.spec.functions import UnaryOp

pytestmark = pytest.mark.skipif(not native_entry_possible(), reason="the entry is not native here")

W, B = rough((7,), seed=1), rough((7,), seed=2)

#: Calls on an array of five rows of seven.
CALLS: dict[str, Any] = {
    "softmax": tw.softmax,
    "axis": lambda x: tw.softmax(x, 0),
    "axis by name": lambda x: tw.log_softmax(x, axis=-1),
    "weight and bias": lambda x: tw.layer_norm(x, W, B),
    "eps": lambda x: tw.layer_norm(x, W, B, -1, 0.25),
    "bias by name": lambda x: tw.layer_norm(x, bias=B, eps=0.5),
    "one weight": lambda x: tw.rms_norm(x, W),
    "across": lambda x: tw.rms_norm(x, axis=0),
    "elements": tw.silu,
    "word": lambda x: tw.gelu(x, "tanh"),
    "none": lambda x: tw.relu(x, None),
}


@pytest.fixture
def python_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry for each call that goes through Python."""
    calls: list[str] = []

    def watch(module: Any, name: str) -> None:
        original = getattr(module, name)

        def seen(*arguments: Any, **named: Any) -> Any:
            calls.append(name)
            return original(*arguments, **named)

        monkeypatch.setattr(module, name, seen)

    watch(rows_front, "prepare")
    watch(elementwise_front, "prepare_each")
    return calls


@pytest.mark.parametrize(
    ("dtype", "name"), crossed([np.float32, np.float64, np.float16, ml_dtypes.bfloat16], CALLS, 2)
)
def test_repeated_calls_are_machine_code(name: str, dtype: Any, python_calls: list[str]) -> None:
    call, x, other = CALLS[name], rough((5, 7)).astype(dtype), rough((5, 7), seed=9).astype(dtype)
    first = call(x)
    python_calls.clear()
    again, another = call(x), call(other)
    assert python_calls == []
    assert again.tobytes() == first.tobytes()
    assert (again.dtype, again.shape, again.strides) == (first.dtype, first.shape, first.strides)
    assert another.tobytes() == call(unaligned(other)).tobytes()
    assert len(python_calls) == 1
    assert not np.array_equal(another, first)


def test_eps_is_known_by_its_value(python_calls: list[str]) -> None:
    x = rough((3, 7))
    kept = [tw.rms_norm(x, eps=float(text)) for text in ("0.25", "0.5")]
    python_calls.clear()
    assert np.array_equal(tw.rms_norm(x, eps=float("0.25")), kept[0])
    assert np.array_equal(tw.rms_norm(x, eps=float("0.5")), kept[1])
    assert python_calls == []
    assert not np.array_equal(kept[0], kept[1])


def test_out_in_place_and_overlapping(python_calls: list[str]) -> None:
    memory = rough((9, 40))
    for function in (tw.softmax, tw.relu):
        expected = function(memory)
        out = np.empty_like(memory)
        for _ in range(2):
            assert function(memory, out=out) is out
        assert np.array_equal(out, expected)
        python_calls.clear()
        place = memory.copy()
        assert function(place, out=place) is place
        assert np.array_equal(place, expected)
        assert python_calls == []
        for shift in (1, -1):  # of the same shapes and strides, but in one another
            both = np.concatenate([memory, memory])
            x, y = (both[4:13], both[4 + shift : 13 + shift])
            wanted = function(x.copy())
            function(x, out=y)
            assert np.array_equal(y, wanted)
        assert len(python_calls) == 2
    strided = [np.zeros((9, 80), np.float32)[:, ::2] for _ in range(2)]
    strided[0][...] = memory
    for _ in range(2):
        tw.relu(strided[0], out=strided[1])
    assert np.array_equal(strided[1], np.maximum(memory, 0))


def test_one_object_in_two_places() -> None:
    """What is known of a call with one array does not make one of two arrays in another call."""
    shape = (3, 11)  # of no other test
    x, out, kept = rough(shape), np.zeros(shape, np.float32), rough(shape)
    tw.silu(x.copy(), out=(first := x.copy()))
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
    assert np.array_equal(first, tw.silu(x))
    vector, weight = rough((13,)), rough((13,), seed=5)
    tw.layer_norm(vector, vector, vector)
    tw.layer_norm(vector, weight, weight)
    tw.layer_norm(vector, vector, weight)
    expected = tw.layer_norm(vector, threads=1) * weight
    np.testing.assert_allclose(tw.layer_norm(vector, weight, 0 * weight), expected, rtol=1e-6)
    np.testing.assert_allclose(tw.layer_norm(vector, weight, vector), expected + vector, rtol=1e-5, atol=1e-6)


def test_arrays_for_numbers(python_calls: list[str]) -> None:
    """Their values are looked at in every call."""
    x, eps, axis = rough((5, 5)), np.array(0.5), np.array(0)
    for value, other in ((0.5, 0), (0.25, 1)):
        eps[...], axis[...] = value, other
        assert np.array_equal(tw.rms_norm(x, eps=eps), tw.rms_norm(x, eps=value))  # type: ignore[arg-type]
        assert np.array_equal(tw.softmax(x, axis), tw.softmax(x, other))  # type: ignore[arg-type]
    assert len(python_calls) == 8


def test_a_weight_in_the_memory_of_out(python_calls: list[str]) -> None:
    x, out = rough((7, 7)), rough((7, 7), seed=3)
    expected = tw.layer_norm(x, out[2].copy(), out=np.empty_like(x))
    apart = np.empty_like(x)
    for _ in range(2):
        tw.layer_norm(x, out[2], out=apart)
    assert np.array_equal(apart, expected)
    python_calls.clear()
    assert np.array_equal(tw.layer_norm(x, out[2], out=out), expected)
    assert python_calls == ["prepare"]


@pytest.mark.parametrize(
    "change",
    [
        unaligned,
        lambda x: x[:0],
        lambda x: x.astype(x.dtype.newbyteorder()),
        lambda x: x.view(np.recarray),
        lambda x: x.tolist(),
        lambda x: x[:, ::-1],
    ],
)
def test_what_python_has_to_do(change: Any, python_calls: list[str]) -> None:
    x = change(rough((4, 6)))
    for _ in range(2):
        np.testing.assert_allclose(tw.relu(x), np.maximum(np.asarray(x), 0))
    assert python_calls == ["prepare_each"] * 2


def test_errors_after_calls_that_are_known() -> None:
    x, out = np.ones((4, 3), np.float32), np.zeros((4, 3), np.float32)
    for _ in range(2):
        tw.softmax(x, out=out)
        tw.rms_norm(x, eps=0.5)
    out[...] = 7
    out.flags.writeable = False
    with pytest.raises(OutReadOnly):
        tw.softmax(x, out=out)
    with pytest.raises(OutShape):
        tw.softmax(x, out=np.zeros((3, 4), np.float32))
    with pytest.raises(NegativeEps):
        tw.rms_norm(x, eps=-0.5)
    with pytest.raises(TilewrightError):
        tw.softmax(x, 2)
    with pytest.raises(TypeError):
        tw.softmax(x, axes=1)  # type: ignore[call-arg]
    assert (out == 7).all()


def test_references() -> None:
    x, out = rough((3, 7)), np.empty((3, 7), np.float32)
    for _ in range(2):
        tw.layer_norm(x, W, B, out=out)
        tw.softmax(x)
    gc.collect()
    watched = (x, out, W, B, x.dtype)
    before = [sys.getrefcount(one) for one in watched]
    for _ in range(1000):
        tw.layer_norm(x, W, B, out=out)
        tw.softmax(x)
    assert [sys.getrefcount(one) for one in watched] == before


def test_threads_at_once() -> None:
    """Each call has its own buffers."""
    arrays = [rough((300, 257), seed=seed) for seed in range(4)]
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


def test_names_signatures_and_pickles() -> None:
    parameters = (
        "x, weight=None, bias=None, axis=-1, eps=1e-05, *, out=None, return_stats=False, threads=None"
    )
    assert str(inspect.signature(tw.layer_norm)) == f"({parameters})"
    assert (tw.softmax.__name__, tw.softmax.__module__) == ("softmax", "tilewright.ops.rows.public")
    assert "Parameters" in (tw.gelu.__doc__ or "")
    for function in (tw.softmax, tw.gelu, tw.sum):
        assert pickle.loads(pickle.dumps(function)) is function


def test_a_function_that_is_loaded_late_is_machine_code_too() -> None:
    """Public functions are imported when they are first looked up, one module after the other."""
    question = (
        "import sys, numpy as np, tilewright as tw\n"
        "x = np.ones((4, 4), np.float32)\n"
        "assert all(tw.softmax(x).shape == x.shape for _ in range(2))\n"
        "assert 'tilewright.ops.rows.public_reductions' not in sys.modules\n"
        "tw.max(x, 0)\n"
        "python = []\n"
        "sys.setprofile(lambda frame, event, what: python.append(event == 'call'))\n"
        "tw.max(x, 0)\n"
        "sys.setprofile(None)\n"
        "assert not any(python)\n"
    )
    subprocess.run([sys.executable, "-c", question], check=True)


def test_words_of_calls() -> None:
    """What may change without becoming another object, or is made anew for every call, is never known."""
    x = np.ones((2, 3), np.float32)
    known: list[tuple[Any, ...]] = [(x, -1), (x, None), (x, "tanh"), (x, 0.5), (x, x, x, x, x, x)]
    unknown: list[tuple[Any, ...]] = [
        (x, [0, 1]),
        (x, (0, 1)),
        (x, 10**6),
        (x, np.float64(0.5)),
        (x,) * 7,
        (x.tolist(),),
    ]
    for given in known:
        assert call_words(None, given, {}) is not None
    for given in unknown:
        assert call_words(None, given, {}) is None
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((x, -1), {}),
        ((x,), {"axis": -1}),
        ((x,), {"eps": -1}),
    ]
    apart = [call_words(None, *call) for call in calls]
    assert len({tuple(words or ()) for words in apart}) == 3


def test_a_full_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipes, "MOST_RECIPES", 2)
    table = RecipeTable()

    def kept(length: int) -> int:
        x: Array = np.ones(length, np.float32)
        add_recipe(table, None, (x,), {}, elementwise.prepare_each(UnaryOp.RELU, x))
        return sum(slot is not None for slot in table.slots)

    assert [kept(3), kept(3), kept(4), kept(5)] == [1, 1, 2, 1]


def test_calls_count_as_uses_while_they_run() -> None:
    """A long call lets go of the GIL, and its recipe must outlive the table."""
    x = np.ones((2000, 1000), np.float32)
    out = np.empty_like(x)
    for _ in range(2):
        tw.gelu(x, out=out)
    table = function_front._native[0].table
    used = [recipe for recipe, _ in table._kept if recipe.shape[:2] == list(x.shape)]
    seen: set[int] = set()
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            seen.update(recipe.uses for recipe in used)

    thread = threading.Thread(target=look)
    thread.start()
    for _ in range(50):
        tw.gelu(x, out=out)
    done.set()
    thread.join()
    assert used
    assert 1 in seen
    assert [recipe.uses for recipe in used] == [0] * len(used)
