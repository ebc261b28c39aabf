"""Calls of attention kernels with everything that scores can meet, and what they give in float64."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from support import Array

from tilewright.ops.attention.kernel import AttentionCall, make_items
from tilewright.ops.attention.nest import attention_arguments
from tilewright.ops.attention.problem import Attention, attention_scalars, attention_sizes
from tilewright.spec.dtype import DType

#: What comes with a problem: keyword arguments of `Attention`.
FEATURES: tuple[dict[str, Any], ...] = (
    {},
    {"bounded": True},
    {"mask": "u8"},
    {"mask": "f32", "bounded": True},
    {"softcap": True},
    {"slopes": True, "bounded": True},
    {"sinks": True},
    {"paged": True},
    {"paged": True, "bounded": True, "sinks": True},
    {"kv_dtype": "i8", "key_scales": True, "value_scales": True},
    {"mask": "bf16", "softcap": True, "slopes": True, "sinks": True, "bounded": True},
)


@dataclass(frozen=True)
class Sizes:
    """How many of everything there are; lengths of the sequences differ from each other."""

    batch: int = 2
    kv_heads: int = 2
    group: int = 2
    queries: int = 30
    keys: int = 41

    def lengths(self, item: int) -> tuple[int, int]:
        """Queries and keys of one sequence."""
        return max(self.queries - 3 * item, 0), max(self.keys - 5 * item, 0)


def plain(array: Array) -> Array:
    """An array where it stands."""
    return array


def numbers(shape: tuple[int, ...], dtype: DType, seed: int) -> Array:
    """Normal variates, or small integers."""
    random = np.random.default_rng(seed)
    if dtype.is_integer:
        return random.integers(-20, 21, shape).astype(dtype.numpy)
    return random.standard_normal(shape).astype(dtype.numpy)


@dataclass(frozen=True)
class Made:
    """A call, its range of keys for each query 0, and pages as rows where there are any."""

    problem: Attention
    call: AttentionCall
    sizes: Sizes
    ranges: tuple[tuple[int, int], ...]

    def expected(self) -> tuple[Array, Array, Array]:
        """Results, largest score and sum of each row, in float64; zeros where no sequence has a row."""
        sizes, group = self.sizes, self.sizes.group
        heads = sizes.kv_heads * group
        out = np.zeros((sizes.batch, heads, sizes.queries, self.problem.value_dim))
        most, total = np.zeros(out.shape[:3]), np.zeros(out.shape[:3])
        for item, head in itertools.product(range(sizes.batch), range(heads)):
            queries, keys = sizes.lengths(item)
            found = self._head(item, head, queries, keys)
            for to, value in zip((out, most, total), found, strict=True):
                to[item, head, :queries] = value
        return out, most, total

    def rows(self, array: Array, item: int, head: int, keys: int) -> Array:
        """Keys or values of one head, out of their pages where they have some."""
        if self.call.pages is None:
            return array[item, head, :keys]
        page = array.shape[2]
        count = -(-keys // page)
        first = int(self.call.items[item, 7])
        pages = self.call.pages[first : first + count]
        found: Array = array[pages, head].reshape(-1, array.shape[3])[:keys]
        return found

    def _head(self, item: int, head: int, queries: int, keys: int) -> tuple[Array, Array, Array]:
        call, kv = self.call, head // self.sizes.group
        q = call.q[item, head, :queries].astype(np.float64)
        k = self.rows(call.k, item, kv, keys).astype(np.float64)
        v = self.rows(call.v, item, kv, keys).astype(np.float64)
        t = q @ k.T * call.scale
        i, j = np.ogrid[:queries, :keys]
        if call.key_scales is not None:
            t = t * call.key_scales[item, kv, :keys]
        if self.problem.softcap:
            t = call.softcap * np.tanh(t / call.softcap)
        if call.slopes is not None:
            t = t - call.slopes[head] * np.abs(j - i - (keys - queries))
        if call.mask is not None:
            mask = call.mask[item, head, :queries, :keys]
            t = np.where(mask != 0, t, -np.inf) if mask.dtype == np.uint8 else t + mask.astype(np.float64)
        if self.problem.bounded:
            low, high = self.ranges[item]
            t = np.where((low + i <= j) & (j < high + i), t, -np.inf)
        sunk = call.sinks is not None
        first = np.full((queries, 1), call.sinks[head] if call.sinks is not None else -np.inf)
        most = np.maximum(first, t.max(axis=1, keepdims=True, initial=-np.inf))
        base = np.where(most == -np.inf, 0, most)
        weights = np.exp(t - base)
        total = weights.sum(axis=1, keepdims=True) + (np.exp(first - base) if sunk else 0)
        if call.value_scales is not None:
            weights = weights * call.value_scales[item, kv, :keys]
        with np.errstate(invalid="ignore", divide="ignore"):
            out = np.where(total == 0, 0, weights @ v / total)
        return out, most[:, 0], total[:, 0]


def make(
    problem: Attention,
    sizes: Sizes = Sizes(),
    *,
    place: Callable[[Array], Array] = plain,
    seed: int = 0,
    ranges: tuple[int, int] | None = None,
) -> Made:
    """A call whose arrays hold as much as it needs; `place` puts them somewhere."""
    heads, acc = sizes.kv_heads * sizes.group, problem.acc.numpy
    batch, queries, keys = sizes.batch, sizes.queries, sizes.keys
    q = place(numbers((batch, heads, queries, problem.head_dim), problem.dtype, seed))
    pages, page = None, 7
    rows = (batch, sizes.kv_heads, keys)
    if problem.paged:
        each = -(-keys // page)
        order = np.random.default_rng(seed).permutation(batch * each)
        pages = place(order.astype(np.int64))
        rows = (batch * each, sizes.kv_heads, page)
    k = place(numbers((*rows, problem.head_dim), problem.kv_dtype, seed + 1))
    v = place(numbers((*rows, problem.value_dim), problem.kv_dtype, seed + 2))
    out = place(np.full((batch, heads, queries, problem.value_dim), 99, problem.dtype.numpy))
    state = [place(np.full((batch, heads, queries), 77, acc)) for _ in range(2)]
    found = []
    for item in range(batch):
        lengths = sizes.lengths(item)
        causal = lengths[1] - lengths[0]
        found.append(ranges or (causal - 9, causal + 1))
    index = np.arange(batch)

    def first(array: Array) -> Array:
        return index * (array.strides[0] // array.itemsize)

    fields: dict[str, Any] = {name: first(array) for name, array in (("q", q), ("out", out))}
    fields["state"] = index * heads * queries
    if pages is None:
        fields |= {"k": first(k), "v": first(v)}
    else:
        fields["pages"] = index * (len(pages) // batch)
    mask = None
    if problem.mask is not None:
        random = np.random.default_rng(seed + 3)
        mask = random.integers(0, 2, (batch, 1, queries, keys)).astype(problem.mask.numpy)
        mask = place(mask)
        fields["mask"] = first(mask)
        mask = np.broadcast_to(mask, (batch, heads, queries, keys))
    scales: list[Array | None] = [None, None]
    if problem.key_scales:
        random = np.random.default_rng(seed + 4)
        scales = [place(random.uniform(0.01, 0.1, (batch, sizes.kv_heads, keys)).astype(acc)) for _ in scales]
        fields["scales"] = index * sizes.kv_heads * keys
    each_head = [place(np.linspace(0.1, 0.5, heads).astype(acc)) for _ in range(2)]
    counts = [sizes.lengths(item) for item in range(batch)]
    items = make_items(
        batch,
        **fields,
        queries=[count[0] for count in counts],
        keys=[count[1] for count in counts],
        low=[low for low, _ in found],
        high=[high for _, high in found],
    )
    call = AttentionCall(
        q,
        k,
        v,
        out,
        place(items),
        state[0],
        state[1],
        queries,
        problem.head_dim**-0.5,
        3.0,
        mask=mask,
        slopes=each_head[0] if problem.slopes else None,
        sinks=each_head[1] if problem.sinks else None,
        key_scales=scales[0],
        value_scales=scales[1],
        pages=pages,
    )
    return Made(problem, call, sizes, tuple(found))


def allowed(problem: Attention) -> float:
    """How far a result of normal variates may be from the exact one."""
    return {"f64": 3e-14, "f32": 4e-6, "f16": 4e-3, "bf16": 4e-2}[problem.dtype.name]


def check(made: Made) -> None:
    """Results and states against float64; rows behind the end of a sequence are as they were."""
    out, most, total = made.expected()
    bound, call = allowed(made.problem), made.call
    for item in range(made.sizes.batch):
        queries, _ = made.sizes.lengths(item)
        np.testing.assert_allclose(
            call.out[item, :, :queries].astype(np.float64), out[item, :, :queries], rtol=bound, atol=bound
        )
        np.testing.assert_allclose(
            call.row_max[item, :, :queries], most[item, :, :queries], rtol=bound, atol=bound
        )
        np.testing.assert_allclose(
            call.row_sum[item, :, :queries], total[item, :, :queries], rtol=20 * bound, atol=bound
        )
        assert np.all(call.out[item, :, queries:] == np.asarray(99, call.out.dtype))


def parameters(made: Made) -> tuple[dict[str, int], dict[str, float], Mapping[str, Array]]:
    """Sizes, scalars and flat buffers, as `interpret` takes them; arrays have to be contiguous."""
    call, problem = made.call, made.problem
    values = [made.sizes.batch, made.sizes.kv_heads, made.sizes.group, call.queries]
    arrays: dict[str, Any] = dict(call._asdict())
    for name in ("q", "k", "v", "out"):
        values += [step // arrays[name].itemsize for step in arrays[name].strides[1:]]
    values.append(call.row_max.shape[-1])
    if call.mask is not None:
        values += [step // call.mask.itemsize for step in call.mask.strides[1:]]
    if call.key_scales is not None:
        values.append(call.key_scales.shape[-1])
    if problem.paged:
        steps = [array.strides[0] // array.itemsize for array in (call.k, call.v)]
        values += [call.k.shape[2], *steps]
    sizes = dict(zip(attention_sizes(problem), values, strict=True))
    scalars = {name: float(arrays[name]) for name in attention_scalars(problem)}
    buffers = {}
    for buffer in attention_arguments(problem):
        array = arrays[buffer.name]
        if buffer.name == "mask":
            array = array[:, :1]
        buffers[buffer.name] = array.reshape(-1)
        assert np.shares_memory(buffers[buffer.name], array)
    return sizes, scalars, buffers


def problems(dtype: str, head: int = 20, value: int = 24) -> Iterator[Attention]:
    """Every combination of `FEATURES` for one type; stored integers only with their scales."""
    for features in FEATURES:
        yield Attention(head, value, dtype, **features)


def moved(made: Made, **arrays: Any) -> Made:
    """The same call with other arrays."""
    return replace(made, call=made.call._replace(**arrays))
