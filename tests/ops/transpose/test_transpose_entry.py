"""The native entry of transpose: which arrays it takes, NumPy's elements, references, overlap, errors."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from support import Array, unaligned

import tilewright as tw
from tilewright.calls.fastcall import native_entry_possible
from tilewright.errors import OutOtherDtype, OutReadOnly, OutShape
from tilewright.ops.transpose import call as python_half
from tilewright.ops.transpose.native_entry import LETTERS

pytestmark = pytest.mark.skipif(not native_entry_possible(), reason="the entry is not native here")


@pytest.fixture(autouse=True)
def _compiled() -> None:
    for letter in "bhidD":
        tw.transpose(np.ones((2, 2), letter))


@pytest.fixture
def python_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry for each call that goes through Python."""
    calls: list[str] = []
    original = python_half.transpose

    def seen(*args: Any) -> Any:
        calls.append("transpose")
        return original(*args)

    monkeypatch.setattr(python_half, "transpose", seen)
    return calls


def numbered(shape: tuple[int, ...], letter: str) -> Array:
    return (np.arange(np.prod(shape)) % 120).reshape(shape).astype(letter)


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (2, 3), (16, 16), (33, 65), (128, 5)], ids=str)
def test_every_type(letter: str, shape: tuple[int, int], python_calls: list[str]) -> None:
    a = numbered(shape, letter)
    found = tw.transpose(a)
    assert (found.dtype, found.shape, found.flags.c_contiguous) == (a.dtype, shape[::-1], True)
    np.testing.assert_array_equal(found, a.T)
    out = np.full_like(found, 1)
    assert tw.transpose(a, out=out) is out
    np.testing.assert_array_equal(out, a.T)
    assert python_calls == []


@pytest.mark.parametrize(
    ("change", "native"),
    [
        (lambda a: a[:, ::2], True),
        (lambda a: a[::-1], True),
        (lambda a: a[:, ::-1], True),
        (lambda a: a[1:, 1:], True),
        (lambda a: a.T, False),  # a copy of contiguous columns
        (unaligned, False),
        (lambda a: a[:0], False),
        (lambda a: a[np.newaxis], False),
        (lambda a: a[0], False),
        (lambda a: a.astype(a.dtype.newbyteorder()), False),
        (lambda a: a.view(np.recarray), False),
    ],
)
def test_views(change: Any, native: bool, python_calls: list[str]) -> None:
    a = change(numbered((20, 34), "f"))
    found = tw.transpose(a)
    np.testing.assert_array_equal(found, np.asarray(a).T)
    assert (python_calls == []) is native


def test_complex_numbers_between_two_of_their_sizes(python_calls: list[str]) -> None:
    """NumPy calls them aligned like their halves; the kernel moves them whole."""
    halves = np.arange(4 * 6 * 2 + 1, dtype=np.float64)
    a = halves[1:].view(np.complex128).reshape(4, 6)
    np.testing.assert_array_equal(tw.transpose(a), a.T)
    record = np.zeros((5, 7), [("number", np.complex128), ("rest", np.float64)])
    record["number"] = numbered((5, 7), "D")
    np.testing.assert_array_equal(tw.transpose(record["number"]), record["number"].T)
    assert len(python_calls) == 2


def test_the_rest_of_out_stays() -> None:
    a = numbered((9, 13), "d")
    whole = np.full((15, 12), np.nan)
    tw.transpose(a, out=whole[1:14, 2:11])
    np.testing.assert_array_equal(whole[1:14, 2:11], a.T)
    assert np.isnan(whole).sum() == whole.size - a.size


def test_overlap() -> None:
    a = numbered((32, 32), "f")
    expected = a.T.copy()
    assert tw.transpose(a, out=a) is a
    np.testing.assert_array_equal(a, expected)


@pytest.mark.parametrize(
    ("out", "error"),
    [
        (np.zeros((3, 4), np.float32), OutShape),
        (np.zeros((4, 3), np.float64), OutOtherDtype),
        (np.zeros(12, np.float32), OutShape),
    ],
)
def test_errors(out: Array, error: type[Exception]) -> None:
    with pytest.raises(error):
        tw.transpose(numbered((3, 4), "f"), out=out)
    assert not out.any()
    locked = np.zeros((4, 3), np.float32)
    locked.flags.writeable = False
    with pytest.raises(OutReadOnly):
        tw.transpose(numbered((3, 4), "f"), out=locked)
    for arguments in ((), (out, None, None, None)):
        with pytest.raises(TypeError):
            tw.transpose(*arguments)


def test_no_reference_is_lost() -> None:
    a, out = numbered((5, 9), "f"), np.zeros((9, 5), np.float32)
    kept = [a, out, a.dtype]
    before = [sys.getrefcount(thing) for thing in kept]
    for _ in range(1000):
        found = tw.transpose(a)
        tw.transpose(a, out=out)
    assert sys.getrefcount(found) == 2
    del found
    assert [sys.getrefcount(thing) for thing in kept] == before


def test_it_is_a_function_like_any_other() -> None:
    import inspect
    import pickle

    assert str(inspect.signature(tw.transpose)) == "(a, axes=None, out=None)"
    assert tw.transpose.__doc__ is not None
    assert pickle.loads(pickle.dumps(tw.transpose)) is tw.transpose
