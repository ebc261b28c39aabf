"""`matmul` and `linear` of Dask arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.calls.foreign import as_array
from tilewright.calls.operands import Array
from tilewright.dask.chains import ChainStep, ChunkedContraction, contract
from tilewright.dask.library import DataNode, HighLevelGraph, Task, TaskRef, da, tokenize
from tilewright.dask.operands import chunked, one_chunk
from tilewright.dask.planning import Plan, cut
from tilewright.errors import (
    BatchMismatch,
    InvalidOperand,
    InvalidPlan,
    ScalarOperand,
    ShapeMismatch,
    StepShape,
    TilewrightError,
    UnsupportedArgument,
    shown,
)
from tilewright.errors.callers import named_in_errors
from tilewright.ops.gemm.epilogue_operands import activation_word
from tilewright.ops.matmul.linear import linear as linear_of_arrays
from tilewright.ops.matmul.public import matmul as matmul_of_arrays
from tilewright.ops.packing.file import on_this_host
from tilewright.ops.packing.matrix import PackedMatrix

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from tilewright.typing import ActivationName

#: Labels of batch axes, the last one first; the axes of the matrices have others.
_BATCH = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijl"
#: Where a packed weight of another machine keeps itself in the tiles of this host.
_HERE = "on this host"
#: Bytes of the narrowest float that sums are kept in.
_FLOAT_BYTES = 4


@named_in_errors
def matmul(
    a: Any,
    b: Any,
    /,
    *,
    dtype: DTypeLike | None = None,
    bias: Any = None,
    activation: ActivationName | None = None,
    plan: Plan | None = None,
) -> Any:
    """a @ b of Dask arrays, then bias and activation; lazy, one accumulator for each chunk of the result.

    Parameters
    ----------
    a, b : dask.array.Array or array_like
        Shapes and types as of `tilewright.matmul`. Where chunks along the summed or a batch axis differ, the
        operand of fewer bytes is rechunked.
    dtype, bias, activation : as of `tilewright.matmul`. Sums are rounded to a narrower type at the end.
    plan : of `tilewright.dask.plan`, optional
        Gives chunks, the pieces that a task adds, and how many chains add up each chunk.

    Returns
    -------
    dask.array.Array
        The same bits whatever the workers and the order in which tasks run.

    Raises
    ------
    NotDaskArray, UnknownChunks, ChunkType, InvalidPlan, and what `tilewright.matmul` raises; before anything
    is computed.

    Examples
    --------
    >>> import dask.array as da, tilewright.dask as twd
    >>> x = da.ones((4, 6), chunks=(2, 3), dtype="f4")
    >>> twd.matmul(x, x.T).compute()[0]
    array([6., 6., 6., 6.], dtype=float32)
    """
    a, b = chunked(a, "a"), chunked(b, "b")
    return _product("matmul", a, b, dtype=dtype, bias=bias, activation=activation, plan=plan)


@named_in_errors
def linear(
    x: Any,
    weight: Any,
    bias: Any = None,
    activation: ActivationName | None = None,
    *,
    plan: Plan | None = None,
) -> Any:
    """activation(x @ weight.T + bias) of a Dask array; lazy.

    Parameters
    ----------
    x : dask.array.Array or array_like, shape (..., in)
    weight : dask.array.Array or array_like of shape (out, in), or PackedMatrix of shape (in, out)
        A packed weight is sent to a worker once, and x rechunked to one chunk along its last axis.
    bias, activation : as of `tilewright.linear`.
    plan : as of `matmul`, of ``plan(x, weight.T)``.

    Returns
    -------
    dask.array.Array of shape (..., out)

    Raises
    ------
    As `matmul`, and PackedRole.
    """
    x = chunked(x, "x")
    if isinstance(weight, PackedMatrix):
        return _packed_linear(x, weight, bias, activation, plan)
    weight = chunked(weight, "weight")
    if weight.ndim != 2:
        raise InvalidOperand(name="weight", reason=f"it has {weight.ndim} dimensions; a weight is (out, in)")
    try:
        return _product("linear", x, weight.T, dtype=None, bias=bias, activation=activation, plan=plan)
    except TilewrightError as error:
        error.rename({"a": "x", "b": "weight"}, b=weight.shape)
        raise


def _packed_linear(x: Any, weight: PackedMatrix, bias: Any, activation: Any, plan: Plan | None) -> Any:
    """A linear layer with a weight in tiles, chunk by chunk of x."""
    if plan is not None:
        raise UnsupportedArgument(name="plan", value="...", remedy="omit it with a packed weight")
    if not x.ndim:
        raise ScalarOperand(name="x")
    bias = None if bias is None else as_array(bias, "bias")
    sample = np.zeros((1, x.shape[-1]), x.dtype)
    meta = linear_of_arrays(sample, weight, bias, activation)[:0].reshape((0,) * x.ndim)
    x = one_chunk(x, [x.ndim - 1])
    token = tokenize(x, weight, bias, activation)
    name, weight_key = f"tilewright-linear-{token}", f"tilewright-weight-{tokenize(weight)}"
    graph: dict[Any, Any] = {weight_key: DataNode(weight_key, weight)}
    for place in np.ndindex(*x.numblocks):
        key, chunk = (name, *place), TaskRef((x.name, *place))
        graph[key] = Task(key, _linear_of_chunk, chunk, TaskRef(weight_key), bias, activation)
    layers = HighLevelGraph.from_collections(name, graph, dependencies=[x])
    return da.Array(layers, name, (*x.chunks[:-1], (weight.shape[1],)), meta=meta)


def _linear_of_chunk(x: Array, weight: PackedMatrix, bias: Array | None, activation: Any) -> Array:
    """The layer on a worker, which packs a weight in tiles of another machine again, once."""
    own = weight.routes.get(_HERE, weight)
    if own is weight:
        own = on_this_host(weight)
        if own is not weight:
            weight.routes[_HERE] = own
    return linear_of_arrays(x, own, bias, activation)


def _product(name: str, a: Any, b: Any, *, dtype: Any, bias: Any, activation: Any, plan: Plan | None) -> Any:
    """The product of two checked operands."""
    for operand, array in (("a", a), ("b", b)):
        if not array.ndim:
            raise ScalarOperand(name=operand)
    row, column = a.ndim == 1, b.ndim == 1
    left, right = a[np.newaxis, :] if row else a, b[:, np.newaxis] if column else b
    if left.shape[-1] != right.shape[-2]:
        raise ShapeMismatch(a=a.shape, b=b.shape, inner_a=left.shape[-1], inner_b=right.shape[-2])
    shape = (*_batches(left, right), left.shape[-2], right.shape[-1])
    bias = None if bias is None else _checked_bias(bias, shape)
    activation = activation_word(activation)
    result, acc = _types(a, b, dtype, bias, activation)
    labels = tuple(_letters(array.ndim - 2) + own for array, own in ((left, "mk"), (right, "kn")))
    step = ChainStep("", 2, acc.name, result.name, activation)
    fixed = {} if plan is None else _chunks_of(plan, left, right)
    own: dict[str, Any] = (
        {} if plan is None else {"depth": plan.depth, "replicas": plan.replicas, "skew": plan.tile_chunks}
    )
    meta = np.empty((0,) * len(shape), result)
    how = ChunkedContraction(name, labels, _letters(len(shape) - 2) + "mn", step, meta, **own)
    found = contract((left, right), how, bias=bias, fixed=fixed)
    found = found[..., 0, :] if row else found
    return found[..., 0] if column else found


def _letters(count: int) -> str:
    """The labels of so many batch axes.

    >>> _letters(2), _letters(0)
    ('BA', '')
    """
    return _BATCH[:count][::-1]


def _batches(left: Any, right: Any) -> tuple[int, ...]:
    """The batch axes of a result.

    Raises
    ------
    BatchMismatch
    """
    try:
        return np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    except ValueError:
        raise BatchMismatch(a=left.shape[:-2], b=right.shape[:-2]) from None


def _checked_bias(bias: Any, shape: tuple[int, ...]) -> Any:
    """A bias as a Dask array that broadcasts to a row or a column of each matrix of the result.

    Raises
    ------
    StepShape
    """
    bias = chunked(bias, "bias")
    m, n = shape[-2:]
    if bias.shape not in ((), (1,), (n,), (1, n), (m, 1), (1, 1)):
        raise StepShape(name="bias", found=bias.shape, required=f"({n},), (1, {n}) or ({m}, 1)")
    return bias


def _types(a: Any, b: Any, dtype: Any, bias: Any, activation: Any) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """The types of the result and of sums, as products of arrays without depth have them."""
    nothing = np.zeros((1, 0), a.dtype), np.zeros((0, 1), b.dtype)
    small = None if bias is None else np.zeros((1,), bias.dtype)
    found = matmul_of_arrays(*nothing, dtype=dtype, bias=small, activation=activation).dtype
    natural = found if dtype is None else matmul_of_arrays(*nothing).dtype
    return found, accumulator(natural, found)


def accumulator(natural: np.dtype[Any], result: np.dtype[Any]) -> np.dtype[Any]:
    """The type of sums: float32 at least for floats, otherwise that of the result.

    >>> accumulator(np.dtype("f2"), np.dtype("f2")), accumulator(np.dtype("i1"), np.dtype("i1"))
    (dtype('float32'), dtype('int8'))
    """
    if result.kind in "biuc":
        return result
    wide = [np.dtype(np.float32) if one.itemsize < _FLOAT_BYTES else one for one in (natural, result)]
    return np.dtype(np.promote_types(*wide))


def _chunks_of(plan: Plan, left: Any, right: Any) -> dict[str, tuple[int, ...]]:
    """The chunks of a plan, by labels.

    Raises
    ------
    InvalidPlan
    """
    m, k, n = left.shape[-2], left.shape[-1], right.shape[-1]
    required = f"{m} x {n} x {k}"
    if not isinstance(plan, Plan):
        raise InvalidPlan(found=shown(plan), required=required)
    if (plan.m, plan.n, plan.k) != (m, n, k):
        raise InvalidPlan(found=f"a plan of {plan.m} x {plan.n} x {plan.k}", required=required)
    sizes = zip("mnk", (m, n, k), plan.chunks, strict=True)
    return {label: cut(size, chunk) for label, size, chunk in sizes}
