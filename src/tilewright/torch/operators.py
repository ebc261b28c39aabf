"""Operators of PyTorch with gradients: products, linear layers and attention."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

import tilewright as tw
from tilewright.torch.gradients import activation_gradient, attention_gradients, sum_to
from tilewright.typing import ActivationName

Causal = bool | Literal["lower_right", "upper_left"]

# PyTorch reads the schema of an operator from annotations: these are of PyTorch's kinds only.


@torch.library.custom_op("tilewright::linear", mutates_args=())
def linear_operator(x: Tensor, weight: Tensor, bias: Tensor | None, activation: str | None) -> Tensor:
    """activation(x @ weight.T + bias)."""
    with torch.no_grad():
        return tw.linear(x, weight, bias, activation)  # type: ignore[arg-type]


@linear_operator.register_fake
def _linear_fake(x: Tensor, weight: Tensor, bias: Tensor | None, activation: str | None) -> Tensor:  # noqa: ARG001
    return x.new_empty((*x.shape[:-1], weight.shape[0]), dtype=torch.promote_types(x.dtype, weight.dtype))


def _linear_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG001
    x, weight, bias, ctx.activation = inputs
    ctx.save_for_backward(x, weight, bias)


def _linear_backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
    x, weight, bias = ctx.saved_tensors
    needs_x, needs_weight, needs_bias, _ = ctx.needs_input_grad
    if ctx.activation is not None:
        before = linear_operator(x, weight, bias, None)
        gradient = activation_gradient(ctx.activation, gradient, before)
    rows = gradient.reshape(-1, gradient.shape[-1])
    to_x = matmul_operator(rows, weight).reshape(x.shape).to(x.dtype) if needs_x else None
    to_weight = matmul_operator(rows.T, x.reshape(-1, x.shape[-1])).to(weight.dtype) if needs_weight else None
    return to_x, to_weight, rows.sum(0).to(bias.dtype) if needs_bias else None, None


linear_operator.register_autograd(_linear_backward, setup_context=_linear_context)


@torch.library.custom_op("tilewright::matmul", mutates_args=())
def matmul_operator(a: Tensor, b: Tensor) -> Tensor:
    """a @ b of tensors with two axes or more; axes in front broadcast."""
    with torch.no_grad():
        found: Tensor = tw.matmul(a, b, order="C")
        return found


@matmul_operator.register_fake
def _matmul_fake(a: Tensor, b: Tensor) -> Tensor:
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return a.new_empty((*batch, a.shape[-2], b.shape[-1]), dtype=torch.promote_types(a.dtype, b.dtype))


def _matmul_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG001
    ctx.save_for_backward(*inputs)


def _matmul_backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:
    a, b = ctx.saved_tensors
    to_a = to_b = None
    if ctx.needs_input_grad[0]:
        to_a = sum_to(matmul_operator(gradient, b.mT), a.shape).to(a.dtype)
    if ctx.needs_input_grad[1]:
        to_b = sum_to(matmul_operator(a.mT, gradient), b.shape).to(b.dtype)
    return to_a, to_b


matmul_operator.register_autograd(_matmul_backward, setup_context=_matmul_context)


@torch.library.custom_op("tilewright::attention", mutates_args=())
def attention_operator(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    causal: str | None,
    scale: float | None,
    left: int | None,
    right: int | None,
    softcap: float | None,
) -> tuple[Tensor, Tensor]:
    """Attention, and the logarithms of the sums that weights are divided by."""
    with torch.no_grad():
        found: tuple[Tensor, Tensor] = tw.attention(
            q, k, v, mask=mask, return_lse=True, **_options(causal, scale, left, right, softcap)
        )
        return found


def _options(
    causal: str | None, scale: float | None, left: int | None, right: int | None, softcap: float | None
) -> dict[str, Any]:
    return {"causal": causal or False, "scale": scale, "window": (left, right), "softcap": softcap}


@attention_operator.register_fake
def _attention_fake(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,  # noqa: ARG001
    causal: str | None,  # noqa: ARG001
    scale: float | None,  # noqa: ARG001
    left: int | None,  # noqa: ARG001
    right: int | None,  # noqa: ARG001
    softcap: float | None,  # noqa: ARG001
) -> tuple[Tensor, Tensor]:
    dtype = torch.promote_types(torch.promote_types(q.dtype, k.dtype), v.dtype)
    sums = torch.float64 if dtype == torch.float64 else torch.float32
    return q.new_empty((*q.shape[:-1], v.shape[-1]), dtype=dtype), q.new_empty(q.shape[:-1], dtype=sums)


@torch.library.custom_op("tilewright::attention_backward", mutates_args=())
def attention_backward_operator(
    gradient: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    lse: Tensor,
    mask: Tensor | None,
    causal: str | None,
    scale: float | None,
    left: int | None,
    right: int | None,
    softcap: float | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of attention with respect to q, k and v."""
    with torch.no_grad():
        found: tuple[Tensor, Tensor, Tensor] = tw.attention_backward(
            gradient, q, k, v, out, lse, mask=mask, **_options(causal, scale, left, right, softcap)
        )
        return found


@attention_backward_operator.register_fake
def _attention_backward_fake(
    gradient: Tensor,  # noqa: ARG001
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *_: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    dtype = torch.promote_types(torch.promote_types(q.dtype, k.dtype), v.dtype)
    made = [one.new_empty(one.shape, dtype=dtype) for one in (q, k, v)]
    return made[0], made[1], made[2]


def _attention_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    q, k, v, mask, *ctx.options = inputs
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(q, k, v, mask, *output)


def _attention_backward(ctx: Any, gradient: Tensor, _: Any) -> tuple[Any, ...]:
    """By the kernels for float32 and bfloat16; other types and gradients of masks by PyTorch's operations."""
    q, k, v, mask, out, lse = ctx.saved_tensors
    types = {one.dtype for one in (q, k, v)}
    options = ctx.options
    if len(types) == 1 and types <= {torch.float32, torch.bfloat16} and not ctx.needs_input_grad[3]:
        found = attention_backward_operator(gradient.contiguous(), q, k, v, out, lse, mask, *options)
        return *found, None, None, None, None, None, None
    gradients = attention_gradients(gradient, q, k, v, mask, *options)
    return *gradients, None, None, None, None, None


attention_operator.register_autograd(_attention_backward, setup_context=_attention_context)


# --- public functions -----------------------------------------------------------------------------


def linear(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, activation: ActivationName | None = None
) -> Tensor:
    """`tilewright.linear` as an operator of PyTorch, with gradients and under `torch.compile`.

    Parameters
    ----------
    x : shape (..., in).
    weight : shape (out, in).
    bias : shape (out,), optional.
    activation : "relu", "gelu", "gelu_tanh", "silu", "sigmoid" or "tanh".

    Examples
    --------
    >>> x, weight = torch.ones(2, 3, requires_grad=True), torch.ones(4, 3)
    >>> linear(x, weight, activation="relu").sum().backward()
    >>> x.grad
    tensor([[4., 4., 4.],
            [4., 4., 4.]])
    """
    found: Tensor = linear_operator(x, weight, bias, activation)
    return found


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """`tilewright.matmul` as an operator of PyTorch; shapes are those of `torch.matmul`.

    >>> matmul(torch.ones(2, 3), torch.ones(3))
    tensor([3., 3.])
    """
    row, column = a.ndim == 1, b.ndim == 1
    found: Tensor = matmul_operator(a.unsqueeze(0) if row else a, b.unsqueeze(-1) if column else b)
    if column:
        found = found.squeeze(-1)
    return found.squeeze(-1 if column else -2) if row else found


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Tensor | None = None,
    causal: Causal = False,
    scale: float | None = None,
    window: tuple[int | None, int | None] | None = None,
    softcap: float | None = None,
) -> Tensor:
    """`tilewright.attention` as an operator of PyTorch, with gradients and under `torch.compile`.

    Gradients of float32 and bfloat16 come from kernels that use no memory for scores.

    Parameters
    ----------
    q : shape (batch, heads, queries, d).
    k, v : shapes (batch, kv_heads, keys, d) and (batch, kv_heads, keys, value_dim).
    mask : broadcasts to (batch, heads, queries, keys); bool (True where a key is seen), or added to scores.
    causal : True and "lower_right" place the last query at the last key; "upper_left" the first at the first,
        as `torch.nn.functional.scaled_dot_product_attention` does with ``is_causal=True``.
    scale, window, softcap : as in `tilewright.attention`.

    Examples
    --------
    >>> q = torch.ones(1, 1, 2, 4)
    >>> attention(q, q, q, causal=True).shape
    torch.Size([1, 1, 2, 4])
    """
    side = "lower_right" if causal is True else causal or None
    left, right = window or (None, None)
    found: tuple[Tensor, Tensor] = attention_operator(q, k, v, mask, side, scale, left, right, softcap)
    return found[0]
