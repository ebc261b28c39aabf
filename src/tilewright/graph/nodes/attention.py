"""Attention, with the options that models use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.calls.operands import Array
from tilewright.calls.repeated import in_python
from tilewright.graph.nodes.base import Node, ValueType
from tilewright.graph.sizes import Sizes, product
from tilewright.loops.nests.polynomial import Polynomial
from tilewright.ops.attention.public import attention
from tilewright.typing import AttentionLayoutName, CausalName

_attention = in_python(attention)

#: Places of the head axis and of the token axis, by layout.
_AXES = {"bhsd": (-3, -2), "bshd": (-2, -3)}


@dataclass(frozen=True)
class AttentionNode(Node):
    """softmax(q · kᵀ · scale + mask) · v; see `tilewright.attention`.

    Attributes
    ----------
    operands : q, k, v, then the mask where there is one.
    """

    masked: bool = False
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
            self.require_dtype(one, name, "f", "a floating-point type")
        self.require(q.shape[-1] == k.shape[-1], f"q has heads of {q.shape[-1]}, k of {k.shape[-1]}")
        if len(q.shape) > 2:
            heads, tokens = _AXES[self.layout]
            for place in (heads, tokens):
                self.require(k.shape[place] == v.shape[place], "k and v have other heads or tokens")
        return ValueType(q.dtype, (*q.shape[:-1], v.shape[-1]))

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """Score by score, in float64."""
        q, k, v = (one.astype(np.float64) for one in arrays[:3])
        if self.layout == "bshd":
            q, k, v = (np.moveaxis(one, -2, -3) for one in (q, k, v))
        if q.ndim > 2:
            k, v = (np.repeat(one, q.shape[-3] // one.shape[-3], axis=-3) for one in (k, v))
        scale = q.shape[-1] ** -0.5 if self.scale is None else self.scale
        scores = np.matmul(q, np.swapaxes(k, -1, -2)) * scale
        if self.softcap:
            scores = self.softcap * np.tanh(scores / self.softcap)
        if self.masked:
            mask = arrays[3]
            scores = (
                np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask.astype(np.float64)
            )
        scores = np.where(self._seen(*scores.shape[-2:]), scores, -np.inf)
        peak = scores.max(axis=-1, keepdims=True, initial=-np.inf)
        weights = np.exp(scores - np.where(np.isneginf(peak), 0, peak))
        total = weights.sum(axis=-1, keepdims=True)
        found = np.matmul(weights / np.where(total == 0, 1, total), v)
        found = np.moveaxis(found, -3, -2) if self.layout == "bshd" else found
        return np.asarray(found, arrays[0].dtype)

    def _seen(self, queries: int, keys: int) -> Array:
        """Which keys a query attends to: the last query is at the last key, unless the first ones are aligned."""
        offset = 0 if self.causal == "upper_left" else keys - queries
        distance = np.arange(keys)[np.newaxis, :] - np.arange(queries)[:, np.newaxis] - offset
        seen = distance <= 0 if self.causal else np.ones((queries, keys), bool)
        left, right = self.window or (None, None)
        seen &= True if left is None else distance >= -left
        seen &= True if right is None else distance <= right
        return seen

    def run(self, arrays: Sequence[Any], out: Array, sizes: Sizes) -> None:
        """By `tilewright.attention`."""
        q, k, v, *mask = arrays
        _attention(
            q,
            k,
            v,
            mask=mask[0] if mask else None,
            causal=self.causal,
            scale=self.scale,
            window=self.window,
            softcap=self.softcap,
            layout=self.layout,
            out=out,
        )

    def work(self, types: Sequence[ValueType], result: ValueType) -> Polynomial:
        """Two products over all keys, whether or not they are masked."""
        q, k, v = types[:3]
        tokens = k.shape[_AXES[self.layout][1] if len(k.shape) > 2 else -2]
        return product(q.shape[:-1]) * tokens * (q.shape[-1] + v.shape[-1]) * 2
