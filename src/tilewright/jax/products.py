"""`matmul` and `einsum` for arrays of JAX, under its transformations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.calls.promotion import no_common_dtype, same_kind
from tilewright.errors import EinsumCast, ScalarOperand, UnsafeCast, UnsupportedDtype
from tilewright.errors.callers import named_in_errors
from tilewright.jax.contraction import Labels, contract, summed_in
from tilewright.jax.library import jax, jnp
from tilewright.jax.lowering import checked_shape, operand
from tilewright.ops.einsum.order import find_path
from tilewright.ops.einsum.subscripts import Indexing, interleaved, lay_over, parse
from tilewright.ops.gemm.operands import find_dtype, product_shapes, wanted_dtype

#: Types whose elements XLA stores otherwise than NumPy.
_PACKED = ("int2", "int4", "uint2", "uint4", "float4_e2m1fn")


@named_in_errors
def matmul(a: Any, b: Any, /, *, dtype: Any = None) -> Any:
    """`tilewright.matmul` as a primitive of JAX: under `jit`, `vmap`, `grad`, `jvp` and each other.

    Parameters
    ----------
    a, b : array_like
        Shapes (..., m, k) and (..., k, n), which broadcast; 1-D operands are vectors, as in `jnp.matmul`.
        Floats, complex numbers, integers of 8 bits or more, bool.
    dtype : optional
        Element type of the result; by default JAX's promotion of the operands. int8 operands with
        ``dtype="int32"`` are summed in 32 bits.

    Returns
    -------
    jax.Array of shape (..., m, n)

    Raises
    ------
    ScalarOperand, ShapeMismatch, BatchMismatch, UnsupportedDtype, UnsafeCast, JaxShapeUnknown
        While JAX traces.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> matmul(jnp.ones((2, 3)), jnp.ones((3,)))
    Array([3., 3.], dtype=float32)
    """
    a, b = operand(a, "a"), operand(b, "b")
    for name, array in (("a", a), ("b", b)):
        if not checked_shape(array, name):
            raise ScalarOperand(name=name)
    product_shapes(a.shape, b.shape)  # raises for shapes that do not match
    result = _result_type((a, b), dtype)
    for name, array in (("a", a), ("b", b)):
        if dtype is not None and not same_kind(array.dtype, result):
            raise UnsafeCast(name=name, found=array.dtype, required=result, casting="same_kind")
    left = "i" if a.ndim == 1 else "...mi"
    right = "i" if b.ndim == 1 else "...in"
    text = f"{left},{right}->..." + ("m" if a.ndim > 1 else "") + ("n" if b.ndim > 1 else "")
    return _contracted(lay_over(parse(text), (a.shape, b.shape)), (a, b), ((0, 1),), result)


@named_in_errors
def einsum(subscripts: Any, /, *operands: Any, dtype: Any = None, optimize: Any = "auto") -> Any:
    """`tilewright.einsum` as a primitive of JAX: under `jit`, `vmap`, `grad`, `jvp` and each other.

    Parameters
    ----------
    subscripts, operands : as in `tilewright.einsum`, also in its form with lists of labels.
    dtype : optional
        Element type of the result; by default JAX's promotion of the operands.
    optimize : as in `tilewright.einsum`.

    Returns
    -------
    jax.Array

    Raises
    ------
    MalformedSubscripts, OutputLabelUnknown, OutputLabelRepeated, EllipsisNotInOutput, OperandCount,
    AxesWithoutLabels, LabelSizes, SublistLabel, InvalidPath, InvalidChoice, EinsumCast, UnsupportedDtype,
    JaxShapeUnknown
        While JAX traces.

    Notes
    -----
    Products with a common summed label are kernels. Diagonals, sums of one operand and products of elements
    are operations of XLA, which fuses them with what is around them.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> einsum("ij,kj->ik", jnp.ones((2, 3)), jnp.ones((4, 3))).shape
    (2, 4)
    """
    text = subscripts
    if not isinstance(subscripts, (str, bytes)):
        text, operands = interleaved((subscripts, *operands))  # type: ignore[assignment]
    arrays = tuple(operand(one, f"operand {number}") for number, one in enumerate(operands))
    shapes = [checked_shape(array, f"operand {number}") for number, array in enumerate(arrays)]
    indexing = lay_over(parse(text.decode("latin-1") if isinstance(text, bytes) else text), shapes)
    result = _result_type(arrays, dtype)
    for number, array in enumerate(arrays):
        if dtype is not None and not same_kind(array.dtype, result):
            name = f"operand {number}"
            raise EinsumCast(name=name, found=array.dtype, required=result, casting="same_kind")
    return _contracted(indexing, arrays, find_path(indexing, optimize), result)


def _result_type(operands: Sequence[Any], dtype: Any) -> np.dtype[Any]:
    """The element type of a product, as JAX has it: without 64 bits unless they are enabled.

    Raises
    ------
    UnsupportedDtype, NoCommonDtype
    """
    try:
        asked = jnp.result_type(*operands) if dtype is None else wanted_dtype(dtype)
    except jax.dtypes.TypePromotionError as error:
        raise no_common_dtype(*(np.dtype(array.dtype) for array in operands)) from error
    found = np.dtype(jax.dtypes.canonicalize_dtype(asked))
    for one in (*(array.dtype for array in operands), found):
        if one.name in _PACKED:
            raise UnsupportedDtype(dtype=one, supported="those of tilewright.matmul of 8 bits or more")
        if one != np.bool_:
            find_dtype(np.dtype(one))
    return found


def _contracted(
    indexing: Indexing, operands: Sequence[Any], path: Sequence[tuple[int, ...]], dtype: np.dtype[Any]
) -> Any:
    """The result of an einsum: pairs of operands in the order of a path."""
    left = [_plain(*pair, indexing) for pair in zip(operands, indexing.inputs, strict=True)]
    for number, step in enumerate(path):
        last = number == len(path) - 1
        chosen = [left[place] for place in step]
        left = [one for place, one in enumerate(left) if place not in step]
        needed = set(indexing.output).union(*(labels for _, labels in left))
        array, labels = chosen[0]
        for other, term in chosen[1:]:
            end = last and term is chosen[-1][1]
            rest = needed.union(*(terms for _, terms in chosen if not end))
            out = indexing.output if end else "".join(dict.fromkeys(x for x in labels + term if x in rest))
            kind = dtype if end else summed_in(dtype)
            array, labels = contract(array, other, Labels(labels, term, out), kind), out
        left.append((array, labels))
    (array, labels), *_ = left
    return _alone(array, labels, indexing, dtype)


def _plain(array: Any, labels: str, indexing: Indexing) -> tuple[Any, str]:
    """An operand without repeated labels and without axes of length 1 that stand for longer ones."""
    while len(set(labels)) < len(labels):
        label = next(one for one in labels if labels.count(one) > 1)
        first = labels.index(label)
        second = labels.index(label, first + 1)
        array = jnp.diagonal(array, axis1=first, axis2=second)  # the diagonal is the last axis
        labels = labels[:first] + labels[first + 1 : second] + labels[second + 1 :] + label
    short = [axis for axis, label in enumerate(labels) if array.shape[axis] != indexing.sizes[label]]
    kept = "".join(label for axis, label in enumerate(labels) if axis not in short)
    return (jnp.squeeze(array, short) if short else array), kept


def _alone(array: Any, labels: str, indexing: Indexing, dtype: np.dtype[Any]) -> Any:
    """The result of what is left: sums of one operand, the order of axes, and axes that repeat."""
    summed = tuple(axis for axis, label in enumerate(labels) if label not in indexing.output)
    if summed:
        array = jnp.sum(array, summed, dtype=summed_in(dtype))
        labels = "".join(label for label in labels if label in indexing.output)
    if labels != indexing.output:
        array = jnp.transpose(array, [labels.index(label) for label in indexing.output if label in labels])
        absent = [axis for axis, label in enumerate(indexing.output) if label not in labels]
        array = jnp.broadcast_to(jnp.expand_dims(array, absent), indexing.shape)
    return array.astype(dtype)
