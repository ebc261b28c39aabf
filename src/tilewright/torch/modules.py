"""Modules of PyTorch with packed weights: `optimize` makes them of those of a model, `restore` undoes it.

A module stays the object that it was, with its parameters, hooks and names; its class is replaced by a
subclass that computes the same by Tilewright. What has gradients, or runs on another device, PyTorch
computes as before.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

import tilewright as tw
from tilewright.errors import InvalidOperand, shown
from tilewright.graph.passes.pack_weights import PRECISIONS, packed_weight, rounds_here
from tilewright.spec.arguments import check_word
from tilewright.torch.packed import Packed

M = TypeVar("M", bound=nn.Module)
#: Attributes that optimised modules have beside those of PyTorch.
_PRECISION, _PACKED = "_tilewright_precision", "_tilewright_packed"


class _Rows(NamedTuple):
    """A linear layer, or some rows of one: those of Q, K and V are in one tensor.

    Attributes
    ----------
    name : by which its module has the packed weight.
    """

    name: str
    first: int | None = None
    last: int | None = None

    def of(self, tensor: Any) -> Any:
        """The rows, of a weight or a bias."""
        return tensor if self.first is None or tensor is None else tensor[self.first : self.last]


def _pack(weight: Any, *, rows: _Rows, precision: str) -> Any:
    """A weight (out, in) in tiles; only float32 is stored in fewer bits."""
    return packed_weight(rows.of(weight).T, precision if weight.dtype.name == "float32" else "f32")


def _served(x: Tensor, weight: Tensor) -> bool:
    """Return whether a call is Tilewright's: no gradients, one type, plain tensors on the CPU."""
    if torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad):
        return False
    plain = type(x) is Tensor and x.is_cpu and weight.is_cpu
    return plain and x.dtype == weight.dtype and x.is_floating_point()


def _multiply(module: nn.Module, rows: _Rows, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x @ weight.T + bias by the packed weight."""
    kept, precision = module.__dict__[_PACKED], module.__dict__[_PRECISION]
    if rows.name not in kept:
        kept[rows.name] = Packed(partial(_pack, rows=rows, precision=precision))
    packed, own = kept[rows.name].of(weight), rows.of(bias)
    if torch.is_grad_enabled():  # without a gradient, as the caller has found
        x, own = x.detach(), None if own is None else own.detach()
    if x.dtype == torch.float32 and rounds_here(precision):
        found = torch.empty((*x.shape[:-1], packed.shape[1]), dtype=torch.float32)
        return tw.linear(x.to(torch.bfloat16), packed, own, out=found)
    if precision != "i8-dynamic" or x.dtype != torch.float32:
        return tw.linear(x, packed, own)
    found = tw.linear(tw.quantize_rows(x), packed, own)
    return found if isinstance(found, Tensor) else torch.from_numpy(found)


@torch.compiler.disable
def _multiply_outside(
    module: nn.Module, rows: _Rows, x: Tensor, weight: Tensor, bias: Tensor | None
) -> Tensor:
    """A product with a packed weight of fewer bits, where a graph of Dynamo breaks."""
    return _multiply(module, rows, x, weight, bias)


def _linear_of(module: nn.Module, rows: _Rows, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """A linear layer: by the packed weight, or by PyTorch where that is asked for gradients, or by Dynamo."""
    compiling = torch.compiler.is_compiling()
    if not _served(x, weight) or (compiling and module.__dict__[_PRECISION] == "f32"):
        return nn.functional.linear(x, rows.of(weight), rows.of(bias))  # which the backend packs by itself
    return (_multiply_outside if compiling else _multiply)(module, rows, x, weight, bias)


_WHOLE, _OUT = _Rows("all"), _Rows("out")


class PackedLinear(nn.Linear):
    """`torch.nn.Linear` with a packed weight."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - PyTorch's name
        """input @ weight.T + bias."""
        return _linear_of(self, _WHOLE, input, self.weight, self.bias)


class FusedLayerNorm(nn.LayerNorm):
    """`torch.nn.LayerNorm` in one pass."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - PyTorch's name
        """Normalised over the last axes."""
        weight, bias = self.weight, self.bias
        unlike = torch.compiler.is_compiling() or (weight is None and bias is not None)
        if unlike or not _served(input, input if weight is None else weight):
            return super().forward(input)
        axes = tuple(range(-len(self.normalized_shape), 0))
        with torch.no_grad():
            return tw.layer_norm(input, weight, bias, axes, self.eps)


class FusedRMSNorm(nn.RMSNorm):
    """`torch.nn.RMSNorm` in one pass."""

    def forward(self, x: Tensor) -> Tensor:
        """Divided by the root of the mean of squares over the last axes."""
        weight = self.weight
        if torch.compiler.is_compiling() or not _served(x, x if weight is None else weight):
            return super().forward(x)
        axes = tuple(range(-len(self.normalized_shape), 0))
        eps = torch.finfo(x.dtype).eps if self.eps is None else self.eps
        with torch.no_grad():
            return tw.rms_norm(x, weight, axes, eps)


class PackedAttention(nn.MultiheadAttention):
    """`torch.nn.MultiheadAttention` with packed projections and fused attention.

    Weights of attention (``need_weights=True``) are PyTorch's to compute.
    """

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The output projection of attention, and its weights if they are asked for."""
        plain = not need_weights and query.dim() == 3 and self._is_plain()
        if not plain or not all(_served(one, self.in_proj_weight) for one in (query, key, value)):
            return super().forward(
                query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal
            )
        mask = _merged_mask(attn_mask, key_padding_mask, query.dtype, self.num_heads)
        q, k, v = self._heads_of(query, key, value)
        found = _attend(q, k, v, mask).transpose(1, 2).flatten(2)
        out = self.out_proj
        found = _linear_of(self, _OUT, found, out.weight, out.bias)
        return found if self.batch_first else found.transpose(0, 1), None

    def _is_plain(self) -> bool:
        return (
            self._qkv_same_embed_dim
            and self.bias_k is None
            and not self.add_zero_attn
            and not (self.training and self.dropout)
        )

    def _heads_of(self, query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
        """Q, K and V, each (batch, heads, tokens, d): one product for self-attention."""
        weight, bias, width = self.in_proj_weight, self.in_proj_bias, self.embed_dim
        if query is key and key is value:
            found = [*_linear_of(self, _WHOLE, query, weight, bias).chunk(3, -1)]
        else:
            parts = [_Rows(name, at * width, (at + 1) * width) for at, name in enumerate("qkv")]
            given = zip(parts, (query, key, value), strict=True)
            found = [_linear_of(self, part, x, weight, bias) for part, x in given]
        if not self.batch_first:
            found = [one.transpose(0, 1) for one in found]
        return [one.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2) for one in found]


def _attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    if torch.compiler.is_compiling():
        return nn.functional.scaled_dot_product_attention(q, k, v, mask)
    with torch.no_grad():
        return tw.attention(q, k, v, mask=mask)


def _merged_mask(
    scores: Tensor | None, padding: Tensor | None, dtype: torch.dtype, heads: int
) -> Tensor | None:
    """One mask of the two that PyTorch has, whose truths hide a key and ours show one."""
    if scores is not None and scores.dim() == 3:
        scores = scores.unflatten(0, (-1, heads))
    if padding is not None:
        padding = padding[:, None, None, :]
    given = [one for one in (scores, padding) if one is not None]
    if not given:
        return None
    if all(one.dtype == torch.bool for one in given):
        hidden = given[0] if len(given) == 1 else given[0] | given[1]
        return ~hidden
    added = [_added(one, dtype) for one in given]
    return added[0] if len(added) == 1 else added[0] + added[1]


def _added(mask: Tensor, dtype: torch.dtype) -> Tensor:
    if mask.dtype != torch.bool:
        return mask.to(dtype)
    return torch.zeros_like(mask, dtype=dtype).masked_fill(mask, -torch.inf)


class PackedEncoderLayer(nn.TransformerEncoderLayer):
    """`torch.nn.TransformerEncoderLayer` that calls its parts, and never PyTorch's fused path."""

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Self-attention and a feed-forward network, each with a residual and a norm."""
        x, attend = src, partial(self._sa_block, is_causal=is_causal)
        if self.norm_first:
            x = x + attend(self.norm1(x), src_mask, src_key_padding_mask)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + attend(x, src_mask, src_key_padding_mask))
        return self.norm2(x + self._ff_block(x))


#: Classes of PyTorch, and what they become; subclasses of programs stay as they are.
OPTIMIZED: dict[type[nn.Module], type[nn.Module]] = {
    nn.Linear: PackedLinear,
    nn.LayerNorm: FusedLayerNorm,
    nn.RMSNorm: FusedRMSNorm,
    nn.MultiheadAttention: PackedAttention,
    nn.TransformerEncoderLayer: PackedEncoderLayer,
}
_FORMER = {ours: theirs for theirs, ours in OPTIMIZED.items()}


def optimize(module: M, precision: str = "f32") -> M:
    """Make linear layers, attention and norms of a model run by Tilewright, in place.

    Parameters, buffers and their names stay: `state_dict` and `load_state_dict` work as before, and weights
    are packed again when they have changed. Calls with gradients are PyTorch's.

    Parameters
    ----------
    module : a model, or one module.
    precision : how weights of float32 are stored: "f32", "bf16", "i8-weights", "i4-weights"; "i8-dynamic"
        also rounds rows of activations to 8 bits. On AMX the three in between round them to bfloat16.

    Returns
    -------
    torch.nn.Module
        The module itself.

    Raises
    ------
    InvalidOperand, InvalidChoice

    Examples
    --------
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LayerNorm(4))
    >>> type(optimize(model)[0]).__name__, type(restore(model)[0]).__name__
    ('PackedLinear', 'Linear')
    """
    _require_module(module)
    precision = check_word(precision, "precision", PRECISIONS)
    for one in module.modules():
        if type(one) in OPTIMIZED:
            one.__class__ = OPTIMIZED[type(one)]
        if type(one) in _FORMER:
            one.__dict__[_PRECISION], one.__dict__[_PACKED] = precision, {}
        if type(one) is nn.TransformerEncoder and one.use_nested_tensor:
            one.use_nested_tensor = False  # its layers would get tensors without a shape
            one.__dict__[_PRECISION] = precision
    return module


def restore(module: M) -> M:
    """Undo `optimize`: every module gets its class back, and packed weights are freed.

    Raises
    ------
    InvalidOperand
    """
    _require_module(module)
    for one in module.modules():
        if type(one) is nn.TransformerEncoder and _PRECISION in one.__dict__:
            one.use_nested_tensor = True
        one.__class__ = _FORMER.get(type(one), type(one))
        one.__dict__.pop(_PRECISION, None)
        one.__dict__.pop(_PACKED, None)
    return module


def _require_module(module: object) -> None:
    if not isinstance(module, nn.Module):
        raise InvalidOperand(name="module", reason=f"found {shown(module)}, must be a torch.nn.Module")
