"""`append_kv`: rows behind those of each sequence, in every layout and type, and what it refuses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from attention_cases import bshd
from shares import looped
from support import Array

import tilewright as tw
from tilewright.errors import (
    AppendDtype,
    AppendScales,
    AppendShape,
    AttentionAxes,
    BlockOutsideCache,
    BlockTableShape,
    CacheFull,
    CacheNotArray,
    CacheReadOnly,
    InvalidChoice,
    InvalidLengths,
    InvalidOperand,
    KeysMismatch,
    TilewrightError,
    UnsupportedDtype,
)
from tilewright.typing import AttentionLayoutName

BATCH, HEADS, CAPACITY = 3, 2, 12


def normal(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def caches(dtype: Any = np.float32) -> tuple[Array, Array]:
    return (
        normal(BATCH, HEADS, CAPACITY, 8, dtype=dtype, seed=1),
        normal(BATCH, HEADS, CAPACITY, 6, dtype=dtype, seed=2),
    )


def new(rows: int = 4, dtype: Any = np.float32) -> tuple[Array, Array]:
    return (
        normal(BATCH, HEADS, rows, 8, dtype=dtype, seed=3),
        normal(BATCH, HEADS, rows, 6, dtype=dtype, seed=4),
    )


def appended(cache: Array, rows: Array, before: list[int], counts: list[int]) -> Array:
    """The oracle."""
    found = cache.copy()
    for item, (first, count) in enumerate(zip(before, counts, strict=True)):
        found[item, :, first : first + count] = rows[item, :, :count].astype(cache.dtype)
    return found


@looped("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8])
@looped("layout", ["bhsd", "bshd"])
@looped(
    ("before", "counts"),
    [(5, None), (0, 4), ([5, 5, 5], [4, 4, 4]), ([0, 3, 8], None), ([2, 12, 0], [4, 0, 1])],
)
def test_rows_of_each_sequence(dtype: Any, layout: AttentionLayoutName, before: Any, counts: Any) -> None:
    old, rows = caches(dtype), new(dtype=dtype)
    firsts, numbers = np.broadcast_to(before, BATCH).tolist(), np.broadcast_to(counts or 4, BATCH).tolist()
    expected = [appended(*pair, firsts, numbers) for pair in zip(old, rows, strict=True)]
    turn = bshd if layout == "bshd" else np.copy
    k_cache, v_cache = (turn(cache) for cache in old)
    k, v = (turn(array) for array in rows)
    found = tw.append_kv(k_cache, v_cache, k, v, before, new_lengths=counts, layout=layout)
    assert found.dtype == np.int64
    assert found.tolist() == [first + number for first, number in zip(firsts, numbers, strict=True)]
    for cache, wanted in zip((k_cache, v_cache), expected, strict=True):
        assert np.array_equal(cache, turn(wanted))


@pytest.mark.parametrize("page", [1, 3, 5])
def test_pages(page: int) -> None:
    """Rows go on from page to page; other pages keep their bytes."""
    table = np.random.default_rng(page).permutation(20)[:12].reshape(3, 4)
    before, counts = np.array([0, page, 2 * page]), np.array([2 * page, page + 1, 0])
    k, v = new(2 * page)
    k_cache, v_cache = normal(20, HEADS, page, 8), normal(20, HEADS, page, 6)
    expected = [k_cache.copy(), v_cache.copy()]
    for item in range(3):
        for row in range(counts[item]):
            number, place = divmod(int(before[item]) + row, page)
            for cache, rows in zip(expected, (k, v), strict=True):
                cache[table[item, number], :, place] = rows[item, :, row]
    found = tw.append_kv(k_cache, v_cache, k, v, before, new_lengths=counts, block_table=table)
    assert np.array_equal(found, before + counts)
    assert np.array_equal(k_cache, expected[0])
    assert np.array_equal(v_cache, expected[1])


def test_steps_of_a_model() -> None:
    """A prompt, then steps of one and of three tokens: the same as attention to all keys at once."""
    k, v = new(CAPACITY)
    q = normal(BATCH, 4, CAPACITY, 8, seed=5)
    k_cache, v_cache = (np.full_like(array, np.nan) for array in (k, v))
    lengths: Any = 0
    for first, last in ((0, 5), (5, 6), (6, 9), (9, 12)):
        rows = (..., slice(first, last), slice(None))
        lengths = tw.append_kv(k_cache, v_cache, k[rows], v[rows], lengths)
        out = tw.attention(q[rows], k_cache, v_cache, kv_lengths=lengths, causal=True)
        expected = tw.attention(q, k, v, causal=True)[rows]
        np.testing.assert_allclose(out, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("axes", [2, 3])
def test_caches_of_one_sequence(axes: int) -> None:
    old, rows = caches(), new()
    at: Any = (0,) * (4 - axes)
    expected = [appended(*pair, [3, 3, 3], [4, 4, 4])[at] for pair in zip(old, rows, strict=True)]
    k_cache, v_cache = (cache[at] for cache in old)
    assert tw.append_kv(k_cache, v_cache, rows[0][at], rows[1][at], 3).tolist() == [7]
    assert np.array_equal(k_cache, expected[0])
    assert np.array_equal(v_cache, expected[1])


def test_strided_caches_scales_and_other_types() -> None:
    """A cache may be a view: the scales of quantised keys are one with an axis more."""
    whole = np.zeros((BATCH, 2 * CAPACITY, HEADS, 8), np.float16)
    view = whole[:, ::2]
    k, _ = new()
    tw.append_kv(view, view.copy(), bshd(k), bshd(k), [0, 1, 2], layout="bshd")
    assert np.array_equal(view[2, 2:6], bshd(k).astype(np.float16)[2])
    assert not whole[:, 1::2].any()
    scales = np.zeros((BATCH, HEADS, CAPACITY), np.float32)
    tw.append_kv(scales[..., None], scales.copy()[..., None], k[..., :1], k[..., :1], 2)
    assert np.array_equal(scales[:, :, 2:6], k[..., 0])


def test_new_rows_may_be_those_of_the_cache() -> None:
    k_cache, v_cache = caches()
    expected = [appended(cache, cache[:, :, :9], [1, 1, 1], [9, 9, 9]) for cache in (k_cache, v_cache)]
    tw.append_kv(k_cache, v_cache, k_cache[:, :, :9], v_cache[:, :, :9], 1)
    assert np.array_equal(k_cache, expected[0])
    assert np.array_equal(v_cache, expected[1])


def test_numbers_too_large_for_the_cache_are_infinite() -> None:
    cache = np.zeros((1, 4, 2), np.float16)
    with np.errstate(all="raise"):
        tw.append_kv(cache, cache.copy(), np.full((1, 1, 2), 1e30), np.full((1, 1, 2), 1e30), 0)
    assert np.isinf(cache[0, 0]).all()


@dataclass
class Bad:
    """A call that is refused: what differs from a good one, the class, and words of its message."""

    given: dict[str, Any]
    kind: type[TilewrightError]
    builtin: type[Exception]
    words: str
    keywords: dict[str, Any] = field(default_factory=dict)


K, V = new()
SCALES = np.zeros((BATCH, HEADS, CAPACITY), np.float32)
BYTES = {"v_cache": np.zeros((BATCH, HEADS, CAPACITY, 6), np.int8)}
TABLE = {"block_table": np.array([[0, 1], [2, 0], [1, 2]])}
BAD = [
    Bad({"k_cache": [[0.0]]}, CacheNotArray, TypeError, "k_cache is list"),
    Bad({"v_cache": np.broadcast_to(V[:1], (3, 2, 4, 6))}, CacheReadOnly, ValueError, "v_cache"),
    Bad({"k_cache": np.zeros(4)}, AttentionAxes, ValueError, "k_cache has shape"),
    Bad({"k": K[0]}, AttentionAxes, ValueError, "k has shape"),
    Bad({"k": K[:, :, :, :7]}, AppendShape, ValueError, r"\(3, 2, 4, 7\)"),
    Bad({"v": V[:2]}, AppendShape, ValueError, r"v has shape \(2, 2, 4, 6\)"),
    Bad({"v": V[:, :1]}, AppendShape, ValueError, "v has shape"),
    Bad({"v": V[:, :, :3]}, KeysMismatch, ValueError, r"\(3, 2, 3, 6\)"),
    Bad({"v_cache": np.zeros((3, 2, 11, 6), "f4")}, KeysMismatch, ValueError, "11"),
    Bad({"k": K + 0j}, AppendDtype, TypeError, "complex64"),
    Bad({"k_cache": np.zeros((3, 2, 12, 8), "i1")}, AppendDtype, TypeError, "int8"),
    Bad({"k": [[1.0], [2.0, 3.0]]}, InvalidOperand, ValueError, "k is invalid"),
    Bad({"kv_lengths": [1, 2]}, InvalidLengths, ValueError, "kv_lengths"),
    Bad({"kv_lengths": [0, -1, 0]}, InvalidLengths, ValueError, r"kv_lengths\[1\] is -1"),
    Bad({"kv_lengths": 2**63 - 1}, InvalidLengths, ValueError, "9223372036854775807"),
    Bad({"kv_lengths": [0, 1, 9]}, CacheFull, ValueError, "sequence 2 has 9 keys.* 4 more.*12"),
    Bad({}, InvalidLengths, ValueError, r"new_lengths\[0\] is 5", {"new_lengths": 5}),
    Bad({}, InvalidLengths, ValueError, "new_lengths", {"new_lengths": 1.5}),
    Bad({}, InvalidChoice, ValueError, "layout", {"layout": "sbhd"}),
    Bad({}, BlockTableShape, ValueError, r"\(2, 1\)", {"block_table": [[0], [1]]}),
    Bad({}, BlockTableShape, ValueError, r"\(3,\)", {"block_table": [0, 1, 2]}),
    Bad({}, BlockOutsideCache, IndexError, r"\[1, 0\] is page 3", {"block_table": [[0, 9], [3, 0], [1, 2]]}),
    Bad({"kv_lengths": 21}, CacheFull, ValueError, "24", TABLE),
    Bad(
        {"k_cache": np.zeros((3, 2, 12, 8), object)},
        UnsupportedDtype,
        TypeError,
        "k_cache of object.* numbers",
    ),
    Bad({}, AppendScales, ValueError, r"key_scales .* int8, k_cache is float32", {"key_scales": SCALES}),
    Bad(
        BYTES,
        AppendScales,
        ValueError,
        r"value_scales is float64 \(3, 2, 12\)",
        {"value_scales": SCALES.astype("f8")},
    ),
    Bad(BYTES, AppendScales, ValueError, r"must be float32 \(3, 2, 12\)", {"value_scales": SCALES[:, :1]}),
    Bad(
        {**BYTES, "v": V.astype("i1")},
        *(AppendScales, ValueError, "value_scales needs rows to quantise, v is int8"),
        {"value_scales": SCALES},
    ),
    Bad(BYTES, CacheNotArray, TypeError, "value_scales is list", {"value_scales": SCALES.tolist()}),
    Bad(
        BYTES,
        *(CacheReadOnly, ValueError, "value_scales"),
        {"value_scales": np.broadcast_to(SCALES[0], SCALES.shape)},
    ),
]


@looped("bad", BAD)
def test_refused_before_anything_is_written(bad: Bad) -> None:
    k_cache, v_cache = caches()
    before = k_cache.copy(), v_cache.copy()
    given = {"k_cache": k_cache, "v_cache": v_cache, "k": K, "v": V, "kv_lengths": 0, **bad.given}
    with pytest.raises(bad.kind, match=bad.words) as raised:
        tw.append_kv(**given, **bad.keywords)
    assert isinstance(raised.value, bad.builtin)
    assert np.array_equal(k_cache, before[0])
    assert np.array_equal(v_cache, before[1])


def test_lengths_are_new_arrays() -> None:
    k_cache, v_cache = caches()
    lengths = np.zeros(3, np.int64)
    found = tw.append_kv(k_cache, v_cache, K, V, lengths)
    assert not np.shares_memory(found, lengths)
    assert lengths.tolist() == [0, 0, 0]
