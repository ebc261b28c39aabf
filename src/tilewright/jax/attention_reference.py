"""Attention in JAX's own operations: what it means, and gradients that have no kernel.

Scores are materialised. It gives gradients of other types than the kernels have, those of masks, and second
derivatives.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tilewright.jax.library import jax, jnp


class AttentionOptions(NamedTuple):
    """The options of a call, checked; hashable, as parameters of primitives must be."""

    causal: bool | str = False
    scale: float | None = None
    window: tuple[int | None, int | None] | None = None
    softcap: float | None = None
    layout: str = "bhsd"

    def items(self) -> tuple[tuple[str, Any], ...]:
        """The options with their names."""
        return tuple(self._asdict().items())

    @property
    def length_axis(self) -> int:
        """The axis of queries and keys among the four of an operand."""
        return 2 if self.layout == "bhsd" else 1

    @property
    def head_axis(self) -> int:
        """The axis of heads."""
        return 3 - self.length_axis


def reference_attention(options: AttentionOptions, q: Any, k: Any, v: Any, mask: Any) -> tuple[Any, Any]:
    """Attention and the logarithms of the sums of exponentials, by their definition.

    Parameters
    ----------
    q, k, v : four axes in the order of the layout; a batch of 1 serves every sequence.
    mask : None, or four axes (batch, heads, queries, keys), each of which may be 1.
    """
    wide = jnp.float64 if q.dtype == jnp.float64 else jnp.float32
    queries, keys, values = (
        (one if options.layout == "bhsd" else jnp.swapaxes(one, 1, 2)).astype(wide) for one in (q, k, v)
    )
    group = queries.shape[1] // keys.shape[1]
    keys, values = (jnp.repeat(one, group, axis=1) for one in (keys, values))
    scale = q.shape[-1] ** -0.5 if options.scale is None else options.scale
    scores = jnp.einsum("bhqd,bhkd->bhqk", *_same_batch(queries * scale, keys), precision="highest")
    if options.softcap:
        scores = options.softcap * jnp.tanh(scores / options.softcap)
    visible = jnp.asarray(_positions(options, q.shape[options.length_axis], k.shape[options.length_axis]))
    if mask is not None:
        mask = _padded(mask, scores.shape[-1])
        if mask.dtype == jnp.bool_:
            visible = visible & mask
        else:
            # As in the kernels: half of the least number excludes, as -inf does.
            visible = visible & (mask > jnp.finfo(mask.dtype).min / 2)
            scores = scores + jnp.where(visible, mask, 0).astype(wide)
    visible = jnp.broadcast_to(visible, jnp.broadcast_shapes(visible.shape, scores.shape))
    # Twice `where`: the gradient of what is not chosen must not be NaN.
    most = jnp.max(scores, -1, keepdims=True, where=visible, initial=-jnp.inf)
    most = jax.lax.stop_gradient(jnp.where(jnp.isfinite(most), most, 0))
    weights = jnp.where(visible, jnp.exp(jnp.where(visible, scores - most, 0)), 0)
    total = jnp.sum(weights, -1, keepdims=True)
    seen = total > 0
    shares = weights / jnp.where(seen, total, 1)
    out = jnp.einsum("bhqk,bhkd->bhqd", *_same_batch(shares, values), precision="highest")
    lse = jnp.where(seen, most + jnp.log(jnp.where(seen, total, 1)), -jnp.inf)[..., 0]
    return (out if options.layout == "bhsd" else jnp.swapaxes(out, 1, 2)).astype(q.dtype), lse


def _same_batch(a: Any, b: Any) -> tuple[Any, Any]:
    """Two operands, of which one with a batch of 1 repeats."""
    batch = max(a.shape[0], b.shape[0])
    return jnp.broadcast_to(a, (batch, *a.shape[1:])), jnp.broadcast_to(b, (batch, *b.shape[1:]))


def _positions(options: AttentionOptions, queries: int, keys: int) -> Any:
    """True where a query sees a key by the options, (queries, keys)."""
    offset = 0 if options.causal == "upper_left" else keys - queries
    distance = np.arange(keys)[None, :] - (np.arange(queries)[:, None] + offset)
    visible = np.ones((queries, keys), bool)
    if options.causal:
        visible &= distance <= 0
    left, right = options.window or (None, None)
    if left is not None:
        visible &= distance >= -left
    if right is not None:
        visible &= distance <= right
    return visible


def _padded(mask: Any, keys: int) -> Any:
    """A mask whose last axis covers all keys: those that it lacks are not seen."""
    if mask.shape[-1] in (1, keys):
        return mask
    fill = False if mask.dtype == jnp.bool_ else -jnp.inf
    widths = [(0, 0)] * (mask.ndim - 1) + [(0, keys - mask.shape[-1])]
    return jnp.pad(mask, widths, constant_values=fill)
