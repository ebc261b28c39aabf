"""Attention, with the options and the arrays beside keys and values that models use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.calls.operands import Array
from tilewright.calls.repeated import in_python
from tilewright.graph.nodes.base import Node, ValueType
from tilewright.graph.sizes import Sizes, product
from tilewright.loops.nests.polynomial import Polynomial
from tilewright.ops.attention.public import attention
from tilewright.records import dataclass
from tilewright.typing import AttentionLayoutName, CausalName

_attention = in_python(attention)

#: Places of the head axis and of the token axis, by layout.
_AXES = {"bhsd": (-3, -2), "bshd": (-2, -3)}

#: Scales of rows of int8 caches, by operand.
_SCALES = {"k": "key_scales", "v": "value_scales"}

#: Operands that attention may have behind q, k and v, by the names of `tilewright.attention`.
BESIDE = (
    *("mask", "q_lengths", "kv_lengths", "cu_seqlens_q", "cu_seqlens_k", "q_offset"),
    *("sinks", "alibi_slopes", "block_table", "key_scales", "value_scales"),
)


@dataclass(frozen=True)
class AttentionNode(Node):
    """softmax(q · kᵀ · scale + mask) · v; see `tilewright.attention`.

    Attributes
    ----------
    operands : q, k, v, then those that `beside` names.
    beside : names out of `BESIDE`.
    """

    beside: tuple[str, ...] = ()
    causal: bool | CausalName = False
    scale: float | None = None
    window: tuple[int | None, int | None] | None = None
    softcap: float | None = None
    layout: AttentionLayoutName = "bhsd"

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """The shape of q with the columns of v."""
        q, k, v = types[:3]
        for name, one in zip("qkv", types, strict=False):
            self.require(len(one.shape) == len(q.shape) >= 2, f"{name} has {len(one.shape)} dimensions")
            scaled = _SCALES.get(name) in self.beside and one.dtype == np.int8
            if not scaled:
                self.require_dtype(one, name, "f", "a floating-point type")
        self.require(q.shape[-1] == k.shape[-1], f"q has heads of {q.shape[-1]}, k of {k.shape[-1]}")
        if len(q.shape) > 2:
            heads, tokens = _AXES[self.layout]
            for place in (heads, tokens):
                self.require(k.shape[place] == v.shape[place], "k and v have other heads or tokens")
        for name, one in zip(self.beside, types[3:], strict=True):
            if name == "mask":
                self.require_dtype(one, name, "bf", "bool or a floating-point type")
            elif name in ("sinks", "alibi_slopes", *_SCALES.values()):
                self.require_dtype(one, name, "f", "a floating-point type")
            else:
                self.require_dtype(one, name, "iu", "an integer type")
        return ValueType(q.dtype, (*q.shape[:-1], v.shape[-1]))

    def tokens(self, one: ValueType) -> Polynomial:
        """The number of tokens of queries, keys or values."""
        return one.shape[_AXES[self.layout][1] if len(one.shape) > 2 else -2]

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """Score by score, in float64."""
        q, k, v = (one.astype(np.float64) for one in arrays[:3])
        beside = dict(zip(self.beside, arrays[3:], strict=True))
        scales = [beside.pop(name, None) for name in _SCALES.values()]
        k, v = (
            one if scale is None else one * scale[..., None]
            for one, scale in zip((k, v), scales, strict=True)
        )
        if "block_table" in beside:
            table = beside.pop("block_table")
            k, v = (self._gathered(one, table) for one in (k, v))
        if self.layout == "bshd":
            q, k, v = (np.moveaxis(one, -2, -3) for one in (q, k, v))
        if q.ndim > 2:
            k, v = (np.repeat(one, q.shape[-3] // one.shape[-3], axis=-3) for one in (k, v))
        if "cu_seqlens_q" in beside:
            ends_q = beside.pop("cu_seqlens_q")
            ends_k = beside.pop("cu_seqlens_k", ends_q)
            found = np.zeros((*q.shape[:-1], v.shape[-1]))
            for first_q, last_q, first_k, last_k in zip(ends_q, ends_q[1:], ends_k, ends_k[1:], strict=False):
                part = slice(first_q, last_q)
                keys = slice(first_k, last_k)
                found[..., part, :] = self._one(q[..., part, :], k[..., keys, :], v[..., keys, :], beside)
        else:
            found = self._one(q, k, v, beside)
        found = np.moveaxis(found, -3, -2) if self.layout == "bshd" else found
        return np.asarray(found, arrays[0].dtype)

    def _gathered(self, pages: Array, table: Array) -> Array:
        """The keys or values of each sequence, out of its pages."""
        # Entries of the table behind the last key may be any number.
        found = pages[np.clip(table, 0, len(pages) - 1)]  # (batch, pages, ...)
        if self.layout == "bshd":
            return np.asarray(found.reshape(len(table), -1, *found.shape[3:]))
        found = np.moveaxis(found, 2, 1)
        return np.asarray(found.reshape(*found.shape[:2], -1, found.shape[-1]))

    def _one(self, q: Array, k: Array, v: Array, beside: dict[str, Array]) -> Array:
        """Attention of heads first, each sequence with all its keys."""
        scale = q.shape[-1] ** -0.5 if self.scale is None else self.scale
        scores = np.matmul(q, np.swapaxes(k, -1, -2)) * scale
        if self.softcap:
            scores = self.softcap * np.tanh(scores / self.softcap)
        queries, keys = scores.shape[-2:]
        distance = self._distance(queries, keys, beside)
        if "alibi_slopes" in beside:
            scores = scores - beside["alibi_slopes"][:, None, None] * abs(distance)
        if "mask" in beside:
            mask = beside["mask"]
            hidden = np.where(mask, 0, -np.inf) if mask.dtype == bool else mask.astype(np.float64)
            scores = scores + hidden
        scores = np.where(self._seen(distance, beside), scores, -np.inf)
        sink = beside["sinks"].astype(np.float64)[:, None, None] if "sinks" in beside else -np.inf
        peak = np.maximum(scores.max(axis=-1, keepdims=True, initial=-np.inf), sink)
        peak = np.where(np.isneginf(peak), 0, peak)
        weights = np.exp(scores - peak)
        total = weights.sum(axis=-1, keepdims=True) + np.exp(sink - peak)
        return np.asarray(np.matmul(weights / np.where(total == 0, 1, total), v))

    def _distance(self, queries: int, keys: int, beside: dict[str, Array]) -> Array:
        """The position of each key from that of each query, (queries, keys) or (batch, 1, queries, keys)."""
        counted_k = np.asarray(beside.get("kv_lengths", keys))
        counted_q = np.asarray(beside.get("q_lengths", queries))
        if "q_offset" in beside:
            first = np.asarray(beside["q_offset"])
        else:
            first = 0 * counted_k if self.causal == "upper_left" else counted_k - counted_q
        first = first.reshape(-1, 1, 1, 1) if first.ndim else first
        distance: Array = np.arange(keys)[np.newaxis, :] - np.arange(queries)[:, np.newaxis] - first
        return distance

    def _seen(self, distance: Array, beside: dict[str, Array]) -> Array:
        """Which keys a query attends to."""
        queries, keys = distance.shape[-2:]
        seen: Array = distance <= 0 if self.causal else np.ones(distance.shape, bool)
        left, right = self.window or (None, None)
        seen = seen if left is None else seen & (distance >= -left)
        seen = seen if right is None else seen & (distance <= right)
        if "kv_lengths" in beside:
            seen = seen & (np.arange(keys) < beside["kv_lengths"].reshape(-1, 1, 1, 1))
        if "q_lengths" in beside:
            seen = seen & (np.arange(queries)[:, None] < beside["q_lengths"].reshape(-1, 1, 1, 1))
        return seen

    def run(self, arrays: Sequence[Any], out: Array, sizes: Sizes) -> None:
        """By `tilewright.attention`."""
        q, k, v, *beside = arrays
        options: dict[str, Any] = dict(zip(self.beside, beside, strict=True))
        for name in ("causal", "scale", "window", "softcap", "layout"):
            options[name] = getattr(self, name)
        _attention(q, k, v, out=out, **options)

    def work(self, types: Sequence[ValueType], result: ValueType) -> Polynomial:
        """Two products over all keys, whether or not they are masked."""
        q, k, v = types[:3]
        tokens = self.tokens(k)
        return product(q.shape[:-1]) * tokens * (q.shape[-1] + v.shape[-1]) * 2
