"""`scaled_dot_product_attention` of PyTorch by Tilewright, by PyTorch's registry of flash attention.

`torch.nn.attention.activate_flash_attention_impl("tilewright")` turns it on: PyTorch's operation for CPUs and
its gradient get these kernels, wherever it would have called its own flash attention.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import tilewright as tw
from tilewright.torch.gradients import attention_gradients

#: The name in the registry.
NAME = "tilewright"
_FORWARD = "_scaled_dot_product_flash_attention_for_cpu"
_BACKWARD = f"{_FORWARD}_backward"


def _forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Attention in memory that is laid out as the queries are, which PyTorch's operation promises."""
    assert not dropout, "PyTorch calls this operation without dropout only"
    out = torch.empty_like(query)
    causal: Any = "upper_left" if is_causal else False
    with torch.no_grad():
        _, sums = tw.attention(
            query, key, value, mask=attn_mask, causal=causal, scale=scale, out=out, return_lse=True
        )
    return out, sums


def _backward(
    gradient: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    sums: Tensor,
    dropout: float,  # noqa: ARG001 - as ATen passes it
    is_causal: bool,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    causal: Any = "upper_left" if is_causal else None
    with torch.no_grad():
        if query.dtype not in (torch.float32, torch.bfloat16):
            found = attention_gradients(
                gradient, query, key, value, attn_mask, causal, scale, None, None, None
            )
            return found[:3]
        return tw.attention_backward(
            gradient, query, key, value, out, sums, mask=attn_mask, causal=causal or False, scale=scale
        )


class _Active:
    """The kernels in PyTorch's dispatcher, until `remove`."""

    def __init__(self) -> None:
        self._library = torch.library.Library("aten", "IMPL")
        self._library.impl(_FORWARD, _forward, "CPU", allow_override=True)
        self._library.impl(_BACKWARD, _backward, "CPU", allow_override=True)

    def remove(self) -> None:
        """PyTorch's own kernels again."""
        self._library._destroy()


def register_scaled_dot_product() -> None:
    """Lists the kernels in PyTorch's registry, where it has one; programs activate them."""
    register = getattr(torch.nn.attention, "register_flash_attention_impl", None)
    if register is not None:
        register(NAME, register_fn=_Active)
