"""Attention for models of Hugging Face `transformers`, registered under the name "tilewright" by this import.

import tilewright.torch.transformers
model = AutoModel.from_pretrained(name, attn_implementation="tilewright")
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

from tilewright.errors import AttentionWithout
from tilewright.torch.operators import attention

#: What models pass as `attn_implementation`.
NAME = "tilewright"


def attention_forward(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    position_bias: Tensor | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """Attention as a layer of a model calls it; with dropout it is PyTorch's.

    Parameters
    ----------
    query : shape (batch, heads, queries, d); key and value may have fewer heads.
    attention_mask : bool, True where a key is seen, or added to the scores; None for all, or a causal mask.
    position_bias : added to the scores.

    Returns
    -------
    Tensor
        Shape (batch, queries, heads, d).

    Raises
    ------
    AttentionWithout : for sinks.
    """
    if s_aux is not None:
        raise AttentionWithout(what="sinks")
    if dropout and softcap is None:
        return sdpa_attention_forward(
            module,
            query,
            key,
            value,
            attention_mask,
            dropout=dropout,
            scaling=scaling,
            is_causal=is_causal,
            position_bias=position_bias,
            **others,
        )
    if dropout:
        raise AttentionWithout(what="dropout together with softcap")
    decoder = getattr(module, "is_causal", True) if is_causal is None else is_causal
    causal = query.shape[2] > 1 and attention_mask is None and decoder
    found = attention(
        query,
        key,
        value,
        mask=_biased(attention_mask, position_bias),
        causal="upper_left" if causal else False,  # queries are the first of the cache that an empty one has
        scale=scaling,
        softcap=softcap,
    )
    return found.transpose(1, 2).contiguous(), None


def _biased(mask: Tensor | None, bias: Tensor | None) -> Tensor | None:
    """A mask with a bias of positions in one tensor."""
    if bias is None or mask is None:
        return mask if bias is None else bias
    return torch.where(mask, bias, -torch.inf) if mask.dtype == torch.bool else mask + bias


AttentionInterface.register(NAME, attention_forward)
AttentionMaskInterface.register(NAME, sdpa_mask)
