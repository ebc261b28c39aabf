"""A result is returned, and `out` complete, whatever fails behind it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support import Array, rough

import tilewright as tw
from tilewright.calls import repeated
from tilewright.calls.afterwards import afterwards
from tilewright.calls.layout import native_entry_possible
from tilewright.ops.gemm import call as arrays
from tilewright.ops.matmul import public as matmul_front
from tilewright.threads import scratch

A, B = rough((5, 6)), rough((6, 7), seed=1)
Q, K = rough((1, 2, 4, 16)), rough((1, 2, 5, 16), seed=2)
WEIGHT = rough((64, 32), seed=3)


def into(call: Callable[..., Any], shape: tuple[int, ...]) -> Array:
    """What a call leaves in `out`."""
    out: Array = np.full(shape, np.nan, np.float32)
    returned: Array = call(out)
    assert returned is out
    return returned


def quantised() -> Array:
    packed = tw.quantize_weights(WEIGHT.T)
    return tw.matmul(np.full((3, packed.shape[0]), 0.5, np.float32), packed)


_NATIVE = {"recipes", "functions"}
#: What fails: the module and the function in it; and a call behind whose result that stands.
PLACES: dict[str, tuple[Any, str, Callable[[], Any]]] = {
    "matmul": (matmul_front, "_connect", lambda: into(lambda c: tw.matmul(A, B, c, alpha=2), (5, 7))),
    "sizes": (arrays, "make_wanted", lambda: into(lambda c: tw.matmul(A[::2], B, c, alpha=2), (3, 7))),
    "recipes": (repeated, "replay", lambda: into(lambda c: tw.matmul(A, B, c, activation="silu"), (5, 7))),
    "functions": (repeated, "replay", lambda: into(lambda c: tw.softmax(A, out=c), (5, 6))),
}


@pytest.mark.parametrize("place", PLACES)
def test_results_come_through(
    place: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if place in _NATIVE and not native_entry_possible():
        pytest.skip("no native entries in this interpreter")
    module, name, call = PLACES[place]
    repeated.replay().table.clear()
    failed = []

    class Failing:
        def __call__(self, *_: Any, **__: Any) -> None:
            failed.append(place)
            raise MemoryError(place)

        def __enter__(self) -> None:
            self()

        def __exit__(self, *_: object) -> None: ...

    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING, "tilewright"):
        patched.setattr(module, name, Failing())
        found = call()
    assert set(failed) == {place}
    assert place in caplog.text
    np.testing.assert_array_equal(found, call())


def test_scratch_of_later_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that native calls found without a block returns its product where none can be mapped."""
    kernel: Any = tw.compile(tw.Gemm())
    kernel.pool.supply()
    monkeypatch.setattr(kernel.pool.table, "wanted", 1)

    def refuse(self: scratch.ScratchPool) -> None:
        raise MemoryError

    monkeypatch.setattr(scratch.ScratchPool, "supply", refuse)
    c = np.full((5, 7), np.nan, np.float32)
    np.testing.assert_allclose(kernel(A, B, c), A @ B, rtol=1e-5)


def test_a_call_that_is_interrupted_raises() -> None:
    with pytest.raises(KeyboardInterrupt), afterwards("matmul"):
        raise KeyboardInterrupt


def test_narrow_results_are_complete_before_anything_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "make_wanted", lambda: 1 / 0)
    out = np.zeros((7, 5), ml_dtypes.bfloat16).T
    np.testing.assert_allclose(tw.matmul(A[::-1], B, out).astype("f4"), A[::-1] @ B, rtol=1e-2, atol=1e-2)
