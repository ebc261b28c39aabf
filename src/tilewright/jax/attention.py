"""`attention` for arrays of JAX, under its transformations; its gradients are kernels too."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from tilewright.errors import AttentionDtype, JaxTracedOption
from tilewright.errors.callers import named_in_errors
from tilewright.jax.attention_calls import backward, forward
from tilewright.jax.attention_reference import AttentionOptions, reference_attention
from tilewright.jax.library import jax, jnp
from tilewright.jax.lowering import bind, checked_shape, operand
from tilewright.ops.attention.bounds import Bounds
from tilewright.ops.attention.operands import Keywords, operand_types
from tilewright.ops.attention.prepared import prepare
from tilewright.ops.attention.problem import MAX_HEAD
from tilewright.typing import AttentionLayoutName, CausalName

#: Types whose gradients are kernels.
_WITH_GRADIENTS = (jnp.float32, jnp.bfloat16)


@named_in_errors
def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    mask: Any = None,
    causal: bool | CausalName = False,
    scale: float | None = None,
    window: tuple[int | None, int | None] | None = None,
    softcap: float | None = None,
    layout: AttentionLayoutName = "bhsd",
) -> Any:
    """`tilewright.attention` as a primitive of JAX: under `jit`, `vmap` and `grad`.

    Gradients of float32 and bfloat16 come from kernels that use no memory for scores; those of other types,
    of masks, and second derivatives from operations of XLA, which do.

    Parameters
    ----------
    q, k, v, mask : as in `tilewright.attention`; floats.
    causal, scale, window, softcap, layout : as there; Python values, not traced ones.

    Returns
    -------
    jax.Array of the shape of q, the last axis as long as that of v

    Raises
    ------
    AttentionAxes, AttentionDtype, AttentionBatch, HeadsMismatch, HeadSizeMismatch, KeysMismatch, MaskShape,
    MaskDtype, InvalidWindow, InvalidScalar, InvalidChoice, JaxShapeUnknown
        While JAX traces.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> q = jnp.ones((1, 2, 3, 4))
    >>> attention(q, q, q, causal=True).shape
    (1, 2, 3, 4)
    """
    named: dict[str, Any] = {
        "causal": causal,
        "scale": scale,
        "window": window,
        "softcap": softcap,
        "layout": layout,
    }
    for name, value in named.items():
        parts = value if type(value) in (tuple, list) else (value,)
        if any(isinstance(one, jax.core.Tracer) for one in parts):
            raise JaxTracedOption(name=name)
    if window is not None:
        bounds = Bounds.parse(window=window)
        named["window"] = (bounds.left, bounds.right)
    arrays = {name: operand(one, name) for name, one in (("q", q), ("k", k), ("v", v))}
    query, key = operand_types(*(one.dtype for one in arrays.values()))
    if query is not key:
        raise AttentionDtype(name="k", found=arrays["k"].dtype, required="a float")
    arrays = {name: one.astype(query.numpy) for name, one in arrays.items()}
    if mask is not None:
        arrays["mask"] = operand(mask, "mask")
    shape, options = _checked(arrays, named)
    batch = math.prod(arrays["q"].shape[:-3])
    q, k, v = (_four_axes(arrays[name]) for name in "qkv")
    found = _attend(options, q, k, v, _mask_of_four(arrays.get("mask"), arrays["q"].shape[:-3], batch))
    return found.reshape(shape)


def _checked(arrays: dict[str, Any], named: dict[str, Any]) -> tuple[tuple[int, ...], AttentionOptions]:
    """The shape of the result and the options, checked by `tilewright.attention`'s own rules.

    They look at shapes and types only, so arrays that are never written to stand for operands.
    """
    empty = {name: np.empty(checked_shape(one, name), one.dtype) for name, one in arrays.items()}
    keywords = Keywords(mask=empty.get("mask"), **named)
    prepared = prepare(empty["q"], empty["k"], empty["v"], None, keywords)
    call = prepared.call
    options = AttentionOptions(
        causal="upper_left" if named["causal"] == "upper_left" else bool(named["causal"]),
        scale=None if named["scale"] is None else float(call.scale),
        window=named["window"],
        softcap=float(call.softcap) or None,
        layout=str(named["layout"]),
    )
    return prepared.target.shape, options


def _four_axes(array: Any) -> Any:
    """An operand with one axis of sequences in front."""
    if array.ndim == 2:
        return array[None, None]
    return array.reshape(math.prod(array.shape[:-3]), *array.shape[-3:])


def _mask_of_four(mask: Any, lead: tuple[int, ...], batch: int) -> Any:
    """A mask (sequences, heads, queries, keys), each of which may be 1; None without a mask."""
    if mask is None:
        return None
    if mask.ndim > 4:
        mask = jnp.broadcast_to(mask, (*lead, *mask.shape[-3:]))
        return mask.reshape(batch, *mask.shape[-3:])
    return mask.reshape(*(1,) * (4 - mask.ndim), *mask.shape)


# --- the function and its derivatives ---------------------------------------------------------------


def _operands(*arrays: Any) -> list[Any]:
    """Arrays without a mask that is None."""
    return [one for one in arrays if one is not None]


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _forward(options: AttentionOptions, q: Any, k: Any, v: Any, mask: Any) -> tuple[Any, Any]:
    """Attention and the logarithms of sums, by the kernel."""
    if 0 in (*q.shape, *k.shape, *v.shape):
        return reference_attention(options, q, k, v, mask)
    out, lse = bind(forward, *_operands(q, k, v, mask), options=options)
    return out, lse


@_forward.defjvp
def _forward_tangents(options: AttentionOptions, primals: Any, tangents: Any) -> Any:
    """For derivatives of gradients."""
    _, found = _reference_tangents(partial(reference_attention, options), primals, tangents)
    return _forward(options, *primals), found


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _gradients(
    options: AttentionOptions, given: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, mask: Any
) -> tuple[Any, Any, Any]:
    """The gradients with respect to q, k and v, by the kernel."""
    dq, dk, dv = bind(backward, *_operands(given, q, k, v, out, lse, mask), options=options)
    return dq, dk, dv


@_gradients.defjvp
def _gradient_tangents(options: AttentionOptions, primals: Any, tangents: Any) -> Any:
    """Second derivatives: of the definition, in which the result and its sums follow from q, k and v."""

    def of_definition(given: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
        return _reference_gradients(options, given, q, k, v, mask)[:3]

    def own(values: Any) -> list[Any]:
        return [*values[:4], values[6]]

    _, found = _reference_tangents(of_definition, own(primals), own(tangents))
    return _gradients(options, *primals), found


def _reference_tangents(function: Any, primals: Any, tangents: Any) -> Any:
    """`jax.jvp` of a function whose last argument is a mask or None."""
    *others, mask = primals
    if mask is None or not jnp.issubdtype(mask.dtype, jnp.floating):
        return jax.jvp(lambda *values: function(*values, mask), tuple(others), tuple(tangents[:-1]))
    return jax.jvp(function, tuple(primals), tuple(tangents))


def _reference_gradients(
    options: AttentionOptions, given: Any, q: Any, k: Any, v: Any, mask: Any
) -> tuple[Any, ...]:
    """The gradients with respect to q, k, v and a mask of floats, by the definition."""
    floats = mask is not None and jnp.issubdtype(mask.dtype, jnp.floating)
    arguments = (q, k, v, mask) if floats else (q, k, v)
    _, pull = jax.vjp(
        lambda *values: reference_attention(options, *values, *_rest(values, mask))[0], *arguments
    )
    found: tuple[Any, ...] = pull(given)
    return found if floats else (*found, None)


def _rest(values: tuple[Any, ...], mask: Any) -> tuple[Any, ...]:
    """The mask where it is not among the values."""
    return () if len(values) == 4 else (mask,)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _attend(options: AttentionOptions, q: Any, k: Any, v: Any, mask: Any) -> Any:
    """Attention of operands with four axes."""
    return _forward(options, q, k, v, mask)[0]


def _attend_forward(options: AttentionOptions, q: Any, k: Any, v: Any, mask: Any) -> tuple[Any, Any]:
    """The result, and what gradients need; whether the mask has a gradient is known while JAX traces."""
    of_mask = mask is not None and mask.perturbed
    values = [None if one is None else one.value for one in (q, k, v, mask)]
    out, lse = _forward(options, *values)
    return out, (*values, out, lse, _Flag() if of_mask else None)


@jax.tree_util.register_static
class _Flag:
    """Part of what a forward pass keeps: its presence says that the mask has a gradient."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Flag)

    def __hash__(self) -> int:
        return hash(_Flag)


def _attend_backward(options: AttentionOptions, kept: Any, given: Any) -> tuple[Any, Any, Any, Any]:
    q, k, v, mask, out, lse, of_mask = kept
    if isinstance(given, jax.custom_derivatives.SymbolicZero):
        return None, None, None, None
    sizes = (q.shape[3], v.shape[3])
    kernel = q.dtype in _WITH_GRADIENTS and of_mask is None and max(sizes) <= MAX_HEAD
    if kernel and 0 not in (*q.shape, *k.shape, *v.shape):
        return *_gradients(options, given, q, k, v, out, lse, mask), None
    found = _reference_gradients(options, given, q, k, v, mask)
    return found[0], found[1], found[2], found[3] if of_mask is not None else None


_attend.defvjp(_attend_forward, _attend_backward, symbolic_zeros=True)
