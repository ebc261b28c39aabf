"""The primitives of attention and of its gradients; `vmap` makes more sequences of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.jax.attention_reference import AttentionOptions
from tilewright.jax.library import batching, jnp
from tilewright.jax.lowering import bind, call_primitive, result_type


def state_type(q: Any) -> Any:
    """The type of the logarithms of sums."""
    return jnp.float64 if q.dtype == jnp.float64 else jnp.float32


def result_types(options: AttentionOptions, q: Any, k: Any, v: Any) -> tuple[Any, Any]:
    """The shapes and types of attention and of the logarithms of sums."""
    batch = max(one.shape[0] for one in (q, k, v))
    shape = (batch, *q.shape[1:3], v.shape[3])
    rows = (batch, q.shape[options.head_axis], q.shape[options.length_axis])
    return result_type(shape, q.dtype, q), result_type(rows, state_type(q), q)


def _forward_results(q: Any, k: Any, v: Any, *_: Any, options: AttentionOptions) -> Sequence[Any]:
    return result_types(options, q, k, v)


def _backward_results(_: Any, q: Any, k: Any, v: Any, *__: Any, options: AttentionOptions) -> Sequence[Any]:  # noqa: ARG001
    return [result_type(one.shape, one.dtype, one) for one in (q, k, v)]


forward = call_primitive(
    "tilewright_attention",
    _forward_results,
    lambda *, options: ("attention", options.items()),
    several=True,
)
backward = call_primitive(
    "tilewright_attention_backward",
    _backward_results,
    lambda *, options: ("attention_backward", options.items()),
    several=True,
)


def _merged(value: Any, axis: int | None, count: int, batch: int, *, whole: bool) -> Any:
    """An operand with `count` times `batch` sequences.

    Parameters
    ----------
    axis : that which `vmap` adds; None where the operand has none.
    whole : whether one sequence that serves all must be repeated.
    """
    if axis is None:
        if value.shape[0] == 1 and not whole:
            return value
        value = jnp.broadcast_to(value, (count, *value.shape))
    else:
        value = jnp.moveaxis(value, axis, 0)
    value = jnp.broadcast_to(value, (count, batch, *value.shape[2:]))
    return value.reshape(count * batch, *value.shape[2:])


def _batched_forward(operands: Any, axes: Any, *, options: AttentionOptions) -> Any:
    count = _count(operands, axes)
    batch = max(_sequences(operands, axes))
    # One sequence serves all where the kernel allows it: not of queries alone, and of keys and values alike.
    shared = [axis is None and one.shape[0] == 1 for axis, one in zip(axes, operands, strict=True)]
    keys = shared[1] and shared[2]
    whole = [batch > 1 or keys, not keys, not keys, False]
    merged = [
        _merged(value, axis, count, batch, whole=need)
        for value, axis, need in zip(operands, axes, whole[: len(operands)], strict=True)
    ]
    found = bind(forward, *merged, options=options)
    return [one.reshape(count, batch, *one.shape[1:]) for one in found], [0, 0]


def _batched_backward(operands: Any, axes: Any, *, options: AttentionOptions) -> Any:
    """Gradients of each sequence of each member; of keys that serve several, the sums over these."""
    count = _count(operands, axes)
    sizes = _sequences(operands, axes)
    batch = max(sizes)
    merged = [
        _merged(value, axis, count, batch, whole=place < 6)
        for place, (value, axis) in enumerate(zip(operands, axes, strict=True))
    ]
    found = bind(backward, *merged, options=options)
    results = [one.reshape(count, batch, *one.shape[1:]) for one in found]
    own = sizes[1:4]
    summed = [
        one.sum(1, keepdims=True, dtype=jnp.float32).astype(one.dtype) if size < batch else one
        for one, size in zip(results, own, strict=True)
    ]
    return summed, [0, 0, 0]


def _count(operands: Sequence[Any], axes: Sequence[int | None]) -> int:
    """The length of the axis that `vmap` adds."""
    return next(
        int(value.shape[axis]) for value, axis in zip(operands, axes, strict=True) if axis is not None
    )


def _sequences(operands: Sequence[Any], axes: Sequence[int | None]) -> list[int]:
    """The sequences of each operand, without the axis that `vmap` adds."""
    return [
        value.shape[0] if axis is None or axis > 0 else value.shape[1]
        for value, axis in zip(operands, axes, strict=True)
    ]


batching.primitive_batchers[forward] = _batched_forward
batching.primitive_batchers[backward] = _batched_backward
