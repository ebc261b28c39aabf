"""`tilewright.attention` against the oracle: every keyword, layout, type, length and stride."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from attention_cases import Call, bshd, normal, packed_call, paged_call, quantised_call, random_call
from shares import looped, share
from support import LAYOUTS, Array, unaligned
from tiers import crossed

import tilewright as tw
from tilewright.errors import OutReadOnly
from tilewright.ops.attention.bounds import exclusion_limit
from tilewright.typing import AttentionStrategyName

STRATEGIES = ("blocks", "decode", "unfused")
MAKERS: dict[str, Callable[[np.random.Generator, Any], Call]] = {
    "arrays": random_call,
    "packed": packed_call,
    "paged": paged_call,
    "quantised": quantised_call,
}
#: The most that a result of normal operands may differ from float64, by the unit of its type.
TOLERANCE = {"float32": 3e-6, "float64": 1e-13, "float16": 4e-3, "bfloat16": 3e-2}

each_strategy = pytest.mark.parametrize("strategy", STRATEGIES)


def assert_near(found: Array, expected: Array, scale: float = 1.0) -> None:
    """As near as the type allows, NaN where NaN is expected."""
    bound = TOLERANCE[found.dtype.name] * max(scale, 1.0)
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=bound, atol=bound)


def check(call: Call, **options: Any) -> None:
    out, lse = tw.attention(call.q, call.k, call.v, **call.keywords, return_lse=True, **options)
    expected, expected_lse = call.expected()
    assert out.dtype == call.q.dtype
    assert out.shape == (*call.q.shape[:-1], call.v.shape[-1])
    assert lse.dtype == (np.float64 if out.dtype == np.float64 else np.float32)
    assert_near(out, expected, np.nanmax(abs(expected), initial=0))
    narrow = 1e-2 if out.dtype.itemsize == 2 else 1e-5
    np.testing.assert_allclose(lse, expected_lse, rtol=narrow, atol=narrow)


@pytest.mark.parametrize("maker", MAKERS)
@each_strategy
def test_random_calls(maker: str, strategy: AttentionStrategyName) -> None:
    unfused, first = strategy == "unfused", list(MAKERS).index(maker)
    for seed in share(range(40), 4) if unfused else share(range(10), 5, first):
        check(MAKERS[maker](np.random.default_rng(seed), np.float32), strategy=strategy)


@pytest.mark.parametrize(
    ("maker", "dtype"), crossed(MAKERS, [np.float64, np.float16, ml_dtypes.bfloat16], 2), ids=str
)
def test_types(maker: str, dtype: Any) -> None:
    for seed in share(range(3), 3, list(MAKERS).index(maker) + np.dtype(dtype).num):
        check(MAKERS[maker](np.random.default_rng(100 + seed), dtype))


@pytest.mark.parametrize("maker", MAKERS)
def test_heads_behind_the_sequence(maker: str) -> None:
    """bshd gives the bits of bhsd; masks, lse and scales by head stay as they are."""
    for seed in share(range(10), 5, list(MAKERS).index(maker)):  # those of `test_random_calls`
        call = MAKERS[maker](np.random.default_rng(seed), np.float32)
        turned = dict(call.keywords)
        for name in ("key_scales", "value_scales"):
            if name in turned:
                turned[name] = turned[name].swapaxes(1, 2)
        operands = [bshd(array) for array in (call.q, call.k, call.v)]
        out, lse = tw.attention(*operands, **turned, layout="bshd", return_lse=True)
        same, same_lse = tw.attention(call.q, call.k, call.v, **call.keywords, return_lse=True)
        np.testing.assert_array_equal(out, bshd(same))
        np.testing.assert_array_equal(lse, same_lse)


def plain(*, heads: int = 4, kv_heads: int = 2, queries: int = 9, keys: int = 33, d: int = 16) -> Call:
    rng = np.random.default_rng(5)
    return Call(
        normal(rng, 2, heads, queries, d),
        normal(rng, 2, kv_heads, keys, d),
        normal(rng, 2, kv_heads, keys, 24),
    )


# --- strides, conversions ---------------------------------------------------------------------------


@looped("name", LAYOUTS)
@looped("operand", range(3))
def test_strides(name: str, operand: int) -> None:
    call = plain()
    operands = [call.q, call.k, call.v]
    operands[operand] = LAYOUTS[name](operands[operand])
    expected, _ = call.expected()
    assert_near(tw.attention(*operands, causal=False), expected)


def test_unaligned_foreign_and_read_only_operands() -> None:
    call = plain()
    q, k, v = unaligned(call.q), call.k.astype(">f4"), call.v.copy()
    v.flags.writeable = False
    out = tw.attention(q, k, v)
    assert out.dtype == np.dtype("f4")
    assert out.dtype.isnative
    assert_near(out, call.expected()[0])


def test_lists_are_float64() -> None:
    out = tw.attention([[1.0, 2.0]], [[1.0, 0.0]], [[3.0]])
    assert (out.dtype, out.tolist()) == (np.dtype(np.float64), [[3.0]])


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        (("f4", "f8", "f4"), np.float64),
        (("f2", "f4", "f2"), np.float32),
        ((ml_dtypes.bfloat16, "f2", "f2"), np.float32),
        (("f2", "f2", "f2"), np.float16),
    ],
)
def test_promotion(dtypes: tuple[Any, ...], expected: Any) -> None:
    call = plain()
    operands = [array.astype(dtype) for array, dtype in zip((call.q, call.k, call.v), dtypes, strict=True)]
    assert tw.attention(*operands).dtype == expected


def test_axes_may_be_missing_or_more() -> None:
    call = plain(kv_heads=4)
    whole = tw.attention(call.q, call.k, call.v, causal=True)
    heads, lse = tw.attention(call.q[0], call.k[0], call.v[0], causal=True, return_lse=True)
    assert lse.shape == (4, 9)
    np.testing.assert_array_equal(heads, whole[0])
    one, lse = tw.attention(call.q[0, 1], call.k[0, 1], call.v[0, 1], causal=True, return_lse=True)
    assert lse.shape == (9,)
    np.testing.assert_array_equal(one, whole[0, 1])
    mask = np.random.default_rng(0).random((2, 1, 1, 9, 33)) < 0.5
    more = [array.reshape(2, 1, *array.shape[1:]) for array in (call.q, call.k, call.v)]
    out, lse = tw.attention(*more, mask=mask, return_lse=True)
    assert (out.shape, lse.shape) == ((2, 1, 4, 9, 24), (2, 1, 4, 9))
    np.testing.assert_array_equal(out[:, 0], tw.attention(call.q, call.k, call.v, mask=mask[:, 0]))


def test_a_batch_of_one_serves_all() -> None:
    call = plain()
    out = tw.attention(call.q, call.k[:1], call.v[:1])
    for item in range(2):
        np.testing.assert_array_equal(out[item], tw.attention(call.q[item], call.k[0], call.v[0]))
    out = tw.attention(call.q[:1], call.k, call.v)
    assert out.shape == (2, 4, 9, 24)
    np.testing.assert_array_equal(out[1], tw.attention(call.q[0], call.k[1], call.v[1]))


# --- out --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LAYOUTS)
def test_out_of_any_strides(name: str) -> None:
    call = plain()
    expected = tw.attention(call.q, call.k, call.v)
    out = LAYOUTS[name](np.full(expected.shape, np.nan, np.float32))
    assert tw.attention(call.q, call.k, call.v, out=out) is out
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("operand", range(3))
def test_out_may_be_an_operand(operand: int) -> None:
    call = plain(heads=2, queries=600, keys=600, d=24)
    operands = [call.q, call.k, call.v]
    expected = tw.attention(*operands)
    assert tw.attention(*operands, out=operands[operand]) is operands[operand]
    np.testing.assert_array_equal(operands[operand], expected)


def test_out_of_more_axes_and_any_strides() -> None:
    call = plain()
    expected = np.stack([tw.attention(call.q, call.k, call.v)] * 3, axis=1)
    out = np.full((24, 9, 4, 3, 2), np.nan, np.float32).T  # the first two axes are not one
    more = [np.stack([array] * 3, axis=1) for array in (call.q, call.k, call.v)]
    assert tw.attention(*more, out=out) is out
    np.testing.assert_array_equal(out, expected)


def test_out_may_be_the_mask() -> None:
    call = plain(heads=2, queries=9, keys=24)
    mask = normal(np.random.default_rng(3), 2, 2, 9, 24)
    expected = tw.attention(call.q, call.k, call.v, mask=mask)
    np.testing.assert_array_equal(tw.attention(call.q, call.k, call.v, mask=mask, out=mask), expected)


def test_out_of_another_type() -> None:
    call = plain()
    out = np.empty((2, 4, 9, 24), np.float64)
    tw.attention(call.q, call.k, call.v, out=out)
    np.testing.assert_array_equal(out, tw.attention(call.q, call.k, call.v).astype(np.float64))


# --- masks ------------------------------------------------------------------------------------------


@looped("shape", [(33,), (9, 1), (1, 33), (4, 1, 33), (2, 1, 9, 33), (2, 4, 1, 1), ()])
@looped("logical", [True, False])
@each_strategy
def test_masks_broadcast(shape: tuple[int, ...], logical: bool, strategy: AttentionStrategyName) -> None:
    call = plain()
    rng = np.random.default_rng(7)
    mask = np.asarray(rng.random(shape) < 0.6 if logical else rng.standard_normal(shape).astype(np.float32))
    call.keywords["mask"] = np.broadcast_to(mask, (2, 4, 9, 33))
    assert_near(tw.attention(call.q, call.k, call.v, mask=mask, strategy=strategy), call.expected()[0])


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16, ">f4"])
def test_masks_of_any_float(dtype: Any) -> None:
    call = plain()
    mask = np.random.default_rng(8).standard_normal((9, 33)).astype(dtype)
    mask[2:5, 4:] = -np.inf
    mask[6] = 2 * exclusion_limit(np.dtype(dtype))
    call.keywords["mask"] = np.broadcast_to(mask, (2, 4, 9, 33)).astype(np.float64)
    call.keywords["mask"][:, :, 6] = -np.inf
    out = tw.attention(call.q, call.k, call.v, mask=mask)
    assert_near(out, call.expected()[0])
    assert not out[:, :, 6].any()


@each_strategy
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_masked_out_never_leaks(strategy: AttentionStrategyName, value: float) -> None:
    """Keys and values that no query sees, and those that some don't, hold NaN or infinities."""
    call = plain(queries=20)
    mask = np.random.default_rng(9).random((2, 4, 20, 33)) < 0.5
    mask[..., 5] = False
    mask[:, :, :10, 6] = False
    mask[:, :, 10:, 6] = True
    expected = tw.attention(call.q, call.k, call.v, mask=mask, strategy=strategy)
    call.k[:, :, 5:7] = value
    call.v[:, :, 5:7] = value
    for given in (mask, np.where(mask, np.float32(0), -np.inf)):
        out = tw.attention(call.q, call.k, call.v, mask=given, strategy=strategy)
        np.testing.assert_allclose(out[:, :, :10], expected[:, :, :10], rtol=1e-5, atol=1e-6)
        assert not np.isfinite(out[:, :, 10:]).any()


@each_strategy
@pytest.mark.parametrize("bound", [{"causal": True}, {"window": (3, 2)}, {"kv_lengths": [20, 20]}])
def test_keys_out_of_bounds_never_leak(bound: dict[str, Any], strategy: AttentionStrategyName) -> None:
    call = plain(queries=33)
    expected = tw.attention(call.q, call.k, call.v, **bound, strategy=strategy)
    call.k[:, :, 25:], call.v[:, :, 25:] = np.nan, np.nan
    out = tw.attention(call.q, call.k, call.v, **bound, strategy=strategy)
    free = 33 if "kv_lengths" in bound else 25 - bound.get("window", (0, 0))[1]
    np.testing.assert_allclose(out[:, :, :free], expected[:, :, :free], rtol=1e-5, atol=1e-6)
    assert np.isnan(out[:, :, free:]).all()


@each_strategy
def test_a_query_of_nan_is_nan_alone(strategy: AttentionStrategyName) -> None:
    call = plain()
    expected = tw.attention(call.q, call.k, call.v, strategy=strategy)
    call.q[1, 2, 4, 7] = np.nan
    out, lse = tw.attention(call.q, call.k, call.v, return_lse=True, strategy=strategy)
    wrong = np.zeros((2, 4, 9), np.bool_)
    wrong[1, 2, 4] = True
    np.testing.assert_array_equal(np.isnan(out).all(axis=3), wrong)
    np.testing.assert_array_equal(np.isnan(lse), wrong)
    np.testing.assert_array_equal(out[~wrong], expected[~wrong])


# --- rows that see nothing, sizes of zero -------------------------------------------------------------


@each_strategy
@pytest.mark.parametrize(
    "keywords",
    [{"mask": False}, {"mask": -np.inf}, {"kv_lengths": 0}, {"window": (0, 0), "causal": "upper_left"}],
)
def test_rows_that_see_nothing_are_zero(keywords: dict[str, Any], strategy: AttentionStrategyName) -> None:
    call = plain(queries=9, keys=5)
    call.v[...] = np.nan if "window" not in keywords else 1
    out, lse = tw.attention(call.q, call.k, call.v, **keywords, return_lse=True, strategy=strategy)
    rows = slice(5, None) if "window" in keywords else slice(None)
    assert not out[:, :, rows].any()
    assert (lse[:, :, rows] == -np.inf).all()


@each_strategy
def test_a_sink_of_rows_that_see_nothing(strategy: AttentionStrategyName) -> None:
    call = plain()
    sinks = np.arange(4, dtype=np.float32)
    out, lse = tw.attention(
        call.q, call.k, call.v, mask=False, sinks=sinks, return_lse=True, strategy=strategy
    )
    assert not out.any()
    np.testing.assert_allclose(lse, np.broadcast_to(sinks[:, None], lse.shape))


@each_strategy
@looped("axis", ["batch", "heads", "queries", "keys", "d", "value_dim"])
def test_sizes_of_zero(axis: str, strategy: AttentionStrategyName) -> None:
    sizes = {"batch": 2, "heads": 4, "queries": 3, "keys": 5, "d": 8, "value_dim": 6, axis: 0}
    b, h, queries, keys, d, value_dim = sizes.values()
    rng = np.random.default_rng(0)
    q, k, v = normal(rng, b, h, queries, d), normal(rng, b, h, keys, d), normal(rng, b, h, keys, value_dim)
    out, lse = tw.attention(q, k, v, causal=True, return_lse=True, strategy=strategy)
    assert (out.shape, lse.shape) == ((b, h, queries, value_dim), (b, h, queries))
    assert np.isfinite(out).all()
    assert (lse == -np.inf).all() == (axis == "keys" or not lse.size)


def test_heads_larger_than_any_kernel() -> None:
    rng = np.random.default_rng(0)
    call = Call(normal(rng, 1, 1, 3, 1500), normal(rng, 1, 1, 5, 1500), normal(rng, 1, 1, 5, 1100))
    assert_near(tw.attention(call.q, call.k, call.v), call.expected()[0])


# --- scales -----------------------------------------------------------------------------------------


@each_strategy
@looped("shape", [(), (2,), (3, 2), (3, 2, 1), (1, 2, 21), (3, 2, 21, 1)])
def test_scales_by_head_and_token(shape: tuple[int, ...], strategy: AttentionStrategyName) -> None:
    rng = np.random.default_rng(11)
    call = Call(
        normal(rng, 3, 4, 5, 16),
        rng.integers(-127, 128, (3, 2, 21, 16)).astype(np.int8),
        rng.integers(-127, 128, (3, 2, 21, 16)).astype(np.int8),
    )
    given = [np.asarray(rng.uniform(0.005, 0.02, shape)) for _ in "kv"]
    whole = {0: lambda s: s, 1: lambda s: s[:, None], 2: lambda s: s[..., None], 4: lambda s: s[..., 0]}
    full = [np.broadcast_to(whole.get(s.ndim, whole[0])(s), (3, 2, 21)) for s in given]
    call.keywords = dict(zip(("key_scales", "value_scales"), full, strict=True))
    out = tw.attention(call.q, call.k, call.v, key_scales=given[0], value_scales=given[1], strategy=strategy)
    assert_near(out, call.expected()[0])


@each_strategy
def test_scales_of_pages(strategy: AttentionStrategyName) -> None:
    call = paged_call(np.random.default_rng(12))
    for name in "kv":
        array = getattr(call, name)
        setattr(call, name, np.random.default_rng(1).integers(-127, 128, array.shape).astype(np.int8))
    for name in ("key_scales", "value_scales"):
        call.keywords[name] = np.random.default_rng(2).uniform(0.005, 0.02, call.k.shape[:3])
    check(call, strategy=strategy)


# --- threads, determinism ------------------------------------------------------------------------------


@each_strategy
def test_bits_depend_on_nothing_around_a_query(strategy: AttentionStrategyName) -> None:
    """Threads, the batch and the rows beside a query change no bit of its result."""
    call = plain(queries=33, keys=300, d=32)
    expected = tw.attention(call.q, call.k, call.v, strategy=strategy, threads=1)
    for threads in (2, 3):
        np.testing.assert_array_equal(
            tw.attention(call.q, call.k, call.v, strategy=strategy, threads=threads), expected
        )
    np.testing.assert_array_equal(
        tw.attention(call.q[1:], call.k[1:], call.v[1:], strategy=strategy), expected[1:]
    )


@pytest.mark.parametrize("bound", [{}, {"causal": True}, {"window": (40, 3)}])
def test_sequences_go_their_own_ways(bound: dict[str, Any]) -> None:
    """Packed sequences of few and of many queries have the bits that each has alone, in any company."""
    rng = np.random.default_rng(13)
    rows, columns = [0, 1, 50, 52, 52, 120], [0, 90, 140, 400, 410, 480]
    q, k, v = normal(rng, 4, 120, 32), normal(rng, 2, 480, 32), normal(rng, 2, 480, 24)
    found, lse = tw.attention(
        q, k, v, cu_seqlens_q=rows, cu_seqlens_k=columns, **bound, return_lse=True, threads=2
    )
    for item in range(5):
        here, there = slice(rows[item], rows[item + 1]), slice(columns[item], columns[item + 1])
        alone, alone_lse = tw.attention(q[:, here], k[:, there], v[:, there], **bound, return_lse=True)
        np.testing.assert_array_equal(found[:, here], alone)
        np.testing.assert_array_equal(lse[:, here], alone_lse)


# --- calls of shapes that are known ---------------------------------------------------------------------


def test_the_second_call_has_the_bits_of_the_first() -> None:
    call = plain(queries=33)
    mask = np.random.default_rng(0).random((2, 4, 33, 33)) < 0.5
    for keywords in (
        {},
        {"causal": True, "scale": 0.3},
        {"mask": mask},
        {"window": [4, 1]},
        {"softcap": 2.0},
    ):
        first, first_lse = tw.attention(call.q, call.k, call.v, **keywords, return_lse=True)
        again = np.full_like(first, np.nan)
        out, lse = tw.attention(call.q, call.k, call.v, **keywords, return_lse=True, out=again)
        assert out is again
        for _ in range(2):
            np.testing.assert_array_equal(tw.attention(call.q, call.k, call.v, **keywords), first)
            np.testing.assert_array_equal(out, first)
            np.testing.assert_array_equal(lse, first_lse)
            out, lse = tw.attention(call.q, call.k, call.v, **keywords, return_lse=True, out=again)


def test_known_shapes_with_other_values_and_other_masks() -> None:
    call = plain()
    for seed in range(3):
        rng = np.random.default_rng(seed)
        call.k, call.v = normal(rng, *call.k.shape), normal(rng, *call.v.shape)
        call.keywords["mask"] = rng.random((2, 4, 9, 33)) < 0.5
        assert_near(tw.attention(call.q, call.k, call.v, mask=call.keywords["mask"]), call.expected()[0])


def test_known_shapes_that_are_not_aligned_or_overlap() -> None:
    """What a plan was made for does not say where later arrays stand.

    So many queries are several tasks, of which the later ones read keys that the first would overwrite.
    """
    call = plain(heads=2, queries=600, keys=600, d=24)
    expected = tw.attention(call.q, call.k, call.v)
    np.testing.assert_array_equal(tw.attention(unaligned(call.q), call.k, call.v), expected)
    np.testing.assert_array_equal(tw.attention(call.q, call.k, unaligned(call.v)), expected)
    out = np.empty_like(expected)
    tw.attention(call.q, call.k, call.v, out=out)
    out.flags.writeable = False
    with pytest.raises(OutReadOnly):
        tw.attention(call.q, call.k, call.v, out=out)
    q = call.q.copy()
    np.testing.assert_array_equal(tw.attention(q, call.k, call.v, out=q), expected)
    k = call.k.copy()
    np.testing.assert_array_equal(tw.attention(call.q, k, call.v, out=k), expected)


def test_known_shapes_of_another_byte_order() -> None:
    call = plain()
    expected = tw.attention(call.q, call.k, call.v)
    mask = np.random.default_rng(1).standard_normal((9, 33)).astype(np.float32)
    masked = tw.attention(call.q, call.k, call.v, mask=mask)
    for _ in range(2):
        np.testing.assert_array_equal(tw.attention(call.q.astype(">f4"), call.k, call.v), expected)
        found = tw.attention(call.q, call.k, call.v, mask=mask.astype(">f4"))
        np.testing.assert_array_equal(found, masked)


def test_problems_in_another_process_are_found_again() -> None:
    problem = tw.Attention(64, dtype="bf16", bounded=True)
    assert hash(problem) == hash(tw.Attention(64, dtype="bf16", bounded=True))
    state = problem.__getstate__()
    assert "_hash" not in state
    again = pickle.loads(pickle.dumps(problem))
    assert again == problem
    assert hash(again) == hash(problem)
    assert {problem: 1}[again] == 1


@each_strategy
@pytest.mark.parametrize(("pages", "page", "d"), [(0, 3, 8), (2, 0, 8), (2, 3, 0), (0, 0, 0)])
def test_caches_without_pages_rows_or_columns(
    strategy: AttentionStrategyName, pages: int, page: int, d: int
) -> None:
    """A block table may lead to nothing as long as no key is read; scales of keys too."""
    rows = min(pages, 1) * page
    q, cache = np.ones((2, 4, 3, d), np.float32), np.ones((pages, 2, page, d), np.float32)
    given: dict[str, Any] = {
        "block_table": np.zeros((2, 1), int),
        "kv_lengths": [rows, 0],
        "strategy": strategy,
    }
    scales = np.ones((pages, 2, page), np.float32)
    for more in ({}, {"key_scales": scales}, {"return_scores": "softmax"}):
        found = tw.attention(q, cache, cache, **given, **more)
        out = found[0] if isinstance(found, tuple) else found
        assert out.shape == q.shape
        assert (out[:1] == min(rows, 1)).all()
        assert not out[1:].any()


@each_strategy
def test_no_sequence_at_all(strategy: AttentionStrategyName) -> None:
    """Batches of 0 beside keys of one sequence, pages without a head, offsets of nothing."""
    q, k = np.ones((0, 4, 40, 8), np.float32), np.ones((1, 2, 33, 8), np.float32)
    calls: tuple[dict[str, Any], ...] = (
        {"q_lengths": []},
        {"kv_lengths": []},
        {"q_offset": []},
        {"causal": True},
    )
    for given in calls:
        assert tw.attention(q, k, k, **given, strategy=strategy).shape == q.shape
    assert tw.attention(q[0:0, 0], k[0, :1], k[0, :1], cu_seqlens_q=[0], cu_seqlens_k=[0]).shape == (0, 40, 8)
    nothing: dict[str, Any] = {"block_table": np.zeros((0, 3), int), "kv_lengths": [], "key_scales": 1.0}
    assert tw.attention(q, k, k, **nothing, strategy=strategy).shape == q.shape
