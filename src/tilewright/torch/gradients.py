"""Gradients in PyTorch's own operations: of activations, and of attention where no kernel computes them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

aten = torch.ops.aten


def sum_to(gradient: Tensor, shape: Sequence[int]) -> Tensor:
    """The gradient of an operand that was broadcast from a shape.

    >>> sum_to(torch.ones(2, 3), (1, 3))
    tensor([[2., 2., 2.]])
    """
    return gradient.sum_to_size(*shape) if tuple(gradient.shape) != tuple(shape) else gradient


def activation_gradient(name: str, gradient: Tensor, before: Tensor) -> Tensor:
    """The gradient with respect to what an activation was applied to."""
    found: Tensor
    match name:
        case "relu":
            found = aten.threshold_backward(gradient, before, 0)
        case "gelu":
            found = aten.gelu_backward(gradient, before)
        case "gelu_tanh":
            found = aten.gelu_backward(gradient, before, approximate="tanh")
        case "silu":
            share = before.sigmoid()  # PyTorch's own function cannot be differentiated again
            found = gradient * share * (1 + before * (1 - share))
        case "sigmoid":
            found = aten.sigmoid_backward(gradient, before.sigmoid())
        case "tanh":
            found = aten.tanh_backward(gradient, before.tanh())
        case _:
            raise AssertionError(name)
    return found


def attention_gradients(
    gradient: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    causal: str | None,
    scale: float | None,
    left: int | None,
    right: int | None,
    softcap: float | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Gradients with respect to q, k, v and a mask that is added; can be differentiated again.

    Weights P = softmax(S) give dV = Pᵀ·dO and dS = P ∘ (dO·Vᵀ - rowsum(dO ∘ O)); S = scale · Q·Kᵀ.
    """
    heads = q.shape[-3] // k.shape[-3] if q.ndim > 2 else 1
    keys, values = (one.repeat_interleave(heads, -3) if heads > 1 else one for one in (k, v))
    factor = q.shape[-1] ** -0.5 if scale is None else scale
    scores = factor * (q @ keys.mT)
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    slope = 1 - (scores / softcap).square() if softcap else None
    hidden = _hidden(q.shape[-2], k.shape[-2], causal, left, right, q.device)
    added = None
    if mask is not None and mask.dtype == torch.bool:
        hidden = ~mask if hidden is None else hidden | ~mask
    elif mask is not None:
        added = mask
        scores = scores + mask
    if hidden is not None:
        scores = scores.masked_fill(hidden, -torch.inf)
    weights = torch.softmax(scores, -1).nan_to_num(0.0)  # of queries that see no key
    to_weights = gradient @ values.mT
    to_scores = weights * (to_weights - (weights * to_weights).sum(-1, keepdim=True))
    to_mask = sum_to(to_scores, added.shape).to(added.dtype) if added is not None else None
    to_products = (to_scores if slope is None else to_scores * slope) * factor
    to_q, to_k, to_v = to_products @ keys, to_products.mT @ q, weights.mT @ gradient
    if heads > 1:
        to_k, to_v = (one.unflatten(-3, (-1, heads)).sum(-3) for one in (to_k, to_v))
    return to_q.to(q.dtype), to_k.to(k.dtype), to_v.to(v.dtype), to_mask


def _hidden(
    queries: int, keys: int, causal: str | None, left: int | None, right: int | None, device: torch.device
) -> Tensor | None:
    """True where a query does not see a key by the options."""
    if causal is None and left is None and right is None:
        return None
    offset = 0 if causal == "upper_left" else keys - queries
    place = torch.arange(queries, device=device)[:, None] + offset
    distance = torch.arange(keys, device=device)[None, :] - place
    hidden = torch.zeros_like(distance, dtype=torch.bool)
    if causal is not None:
        hidden = hidden | (distance > 0)
    if left is not None:
        hidden = hidden | (distance < -left)
    return hidden if right is None else hidden | (distance > right)
