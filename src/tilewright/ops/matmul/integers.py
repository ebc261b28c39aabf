"""Products of 8-bit integers with zero points: one product of the raw operands, and correction terms."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.calls.foreign import as_array
from tilewright.calls.operands import Array, broadcast_shapes, whole_strides
from tilewright.calls.pieces import as_type, contiguous, copy_to
from tilewright.calls.recording import constant, element, new_array, numpy_call, repeatable
from tilewright.calls.repeated import repeated
from tilewright.errors import InvalidZeroPoint, UnsupportedDtype
from tilewright.ops.gemm.call import matmul
from tilewright.ops.gemm.kernel import matmul_kernel
from tilewright.ops.gemm.operands import (
    Shapes,
    check_array,
    check_out,
    convert,
    direct_out,
    merge_rows,
    product_shapes,
    product_types,
)
from tilewright.spec.arguments import contents_read
from tilewright.spec.epilogue import Along, Bias, Epilogue
from tilewright.threads.pool import limited
from tilewright.typing import ArrayLike, OutArray

_INT32 = np.dtype(np.int32)
_BYTES = (np.dtype(np.int8), np.dtype(np.uint8))


class _ZeroPoint(NamedTuple):
    """The zero point of an operand as 32-bit integers.

    Attributes
    ----------
    values : of shape (..., m, 1) for a, (..., 1, n) for b; (1, 1) where one number is for all.
    one : whether it is one number.
    none : whether it is known that all are 0.
    known : whether they follow from the options of the call.
    """

    values: Array
    one: bool
    none: bool
    known: bool = False


def _zero_point(value: Any, name: str, operand: Array, axis: int) -> _ZeroPoint:
    """A zero point by rows of a (axis -2) or columns of b (axis -1).

    Raises
    ------
    InvalidZeroPoint : it is not an integer of the operand's type, or its shape does not match the rows
        (columns).
    """
    array = np.zeros((), np.int64) if value is None else as_array(value, name)
    limits = np.iinfo(operand.dtype)
    if array.dtype.kind not in "iu":
        raise InvalidZeroPoint(name=name, found=f"of dtype {array.dtype}", required="integers")
    given = isinstance(value, np.ndarray)
    if given and array.dtype != operand.dtype:
        contents_read(array)  # any integer of the operand's own type is valid
    if array.size and not limits.min <= int(array.min()) <= int(array.max()) <= limits.max:
        found = f"from {array.min()} to {array.max()}"
        raise InvalidZeroPoint(name=name, found=found, required=f"values of {operand.dtype}")
    if array.size == 1:
        number = array.reshape(1, 1)
        none = not given and not number.any()
        return _ZeroPoint(
            _cut(number) if given else constant(number.astype(_INT32)), one=True, none=none, known=not given
        )
    size, other = operand.shape[axis], -1 if axis == -2 else -2
    values = array if array.ndim != 1 else np.expand_dims(array, other)
    batch = operand.shape[:-2]
    fits = values.ndim >= 2 and values.shape[axis] == size and values.shape[other] == 1
    if fits and values.ndim > 2:
        fits = len(values.shape) == operand.ndim and all(
            own in (1, length) for own, length in zip(values.shape[:-2], batch, strict=True)
        )
    if not fits:
        of = f"({size},), or (..., {size}, 1)" if axis == -2 else f"({size},), or (..., 1, {size})"
        raise InvalidZeroPoint(name=name, found=f"of shape {array.shape}", required=f"one number, {of}")
    return _ZeroPoint(_cut(values), one=False, none=False)


def _cut(array: Array) -> Array:
    """Integers modulo 2^32, as int32."""
    return as_type(array, _INT32)


def _combined(function: Any, a: Array, b: Array) -> Array:
    """What a function of NumPy makes of 32-bit integers, modulo 2^32."""
    shape = broadcast_shapes(a.shape, b.shape)
    assert shape is not None
    found = new_array(shape, _INT32)
    numpy_call(function, a, b, found)
    return found


@repeated
def matmul_integer(
    a: ArrayLike,
    b: ArrayLike,
    a_zero_point: ArrayLike | None = None,
    b_zero_point: ArrayLike | None = None,
    *,
    out: OutArray | None = None,
    threads: int | None = None,
) -> NDArray[Any]:
    """(a - a_zero_point) @ (b - b_zero_point) of bytes, exact in int32: ONNX's MatMulInteger.

    Parameters
    ----------
    a, b : array_like of int8 or uint8, in any combination
        Shapes (..., m, k) and (..., k, n), as in `matmul`: batch axes broadcast, 1-D operands are vectors.
    a_zero_point : integer or array_like, optional
        One number, (m,) for the rows of a, or (..., m, 1). Values of a's type; 0 by default.
    b_zero_point : integer or array_like, optional
        One number, (n,) for the columns of b, or (..., 1, n). Values of b's type; 0 by default.
    out : numpy.ndarray of int32, optional
        Receives the result.
    threads : int, optional
        As in `matmul`.

    Returns
    -------
    numpy.ndarray of int32, shape (..., m, n), or `out`
        Sums wrap around modulo 2**32.

    Raises
    ------
    InvalidZeroPoint, UnsupportedDtype, and what `matmul` raises; each before `out` changes.

    Notes
    -----
    The bytes are multiplied as they are. Two numbers are taken off with the sums of a's rows and b's columns
    when the product is stored; zero points by rows or columns through a product of depth 2.
    QLinearMatMul's scales follow: ``np.clip(np.rint(found * (a_scale * b_scale / y_scale)) + y_zero_point,
    0, 255)``.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> a, b = np.array([[11, 7]], np.uint8), np.array([[1], [-3]], np.int8)
    >>> tw.matmul_integer(a, b, 12, -1)
    array([[8]], dtype=int32)
    """
    with limited(threads):
        found = _product(a, b, a_zero_point, b_zero_point, out)
    repeatable()
    return found


def _product(a: Any, b: Any, a_zero_point: Any, b_zero_point: Any, out: Any) -> Array:
    """The product with the zero points taken off."""
    given_a, given_b = convert(a, "a"), convert(b, "b")
    for array in (given_a, given_b):
        if array.dtype not in _BYTES:
            raise UnsupportedDtype(dtype=array.dtype, supported="i8, u8 with zero points")
    shapes = product_shapes(given_a.shape, given_b.shape)
    left = given_a[np.newaxis, :] if given_a.ndim == 1 else given_a
    right = given_b[:, np.newaxis] if given_b.ndim == 1 else given_b
    zero_a = _zero_point(a_zero_point, "a_zero_point", left, -2)
    zero_b = _zero_point(b_zero_point, "b_zero_point", right, -1)
    given = None if out is None else check_out(check_array(out), shapes.result, _INT32)
    full = (*shapes.batch, shapes.m, shapes.n)
    if given is not None and direct_out(given, _INT32, given_a, given_b):
        target = given[..., np.newaxis] if given_b.ndim == 1 else given
        target = target[..., np.newaxis, :] if given_a.ndim == 1 else target
    else:
        target = new_array(full, _INT32)
    _multiply(left, right, target, (zero_a, zero_b), shapes)
    if given is None:
        return element(target.reshape(shapes.result))
    if not np.may_share_memory(given, target):
        copy_to(given, target.reshape(shapes.result), "unsafe")
    return given


def _multiply(a: Array, b: Array, c: Array, zeros: tuple[_ZeroPoint, _ZeroPoint], shapes: Shapes) -> None:
    """C = A·B - za·(sums of B's columns) - (sums of A's rows - k·za)·zb."""
    zero_a, zero_b = zeros
    if (zero_a.none and zero_b.none) or c.size == 0:
        matmul(a, b, c, dtype=_INT32)
        return
    k = shapes.k
    if zero_a.known and zero_b.known and _with_numbers(a, b, c, zeros, k):
        return
    columns = rows = zero = constant(np.zeros((1, 1), _INT32))
    if not zero_a.none:  # ones of b's type: no other kernel
        columns = matmul(constant(np.ones((1, k), a.dtype)), b, dtype=_INT32)
    if not zero_b.none:
        rows = matmul(a, constant(np.ones((k, 1), b.dtype)), dtype=_INT32)
        if not zero_a.none:
            rows = _combined(np.subtract, rows, _product_of(zero_a, k))
    if zero_a.one and zero_b.one:
        tall_a, _, tall_c = merge_rows(a, b, c)
        if tall_a.ndim == b.ndim == tall_c.ndim == 2 and whole_strides(tall_a) and whole_strides(b):
            by_column = zero if zero_a.none else _combined(np.multiply, columns, _product_of(zero_a, -1))
            by_row = zero if zero_b.none else _combined(np.multiply, rows, _product_of(zero_b, -1))
            _with_biases(tall_a, b, tall_c, by_column, by_row.reshape(-1, 1))
            return
    # Both terms are a product of depth 2, into which A·B is added.
    batch = _common(rows, zero_a.values)
    first = new_array((*batch, shapes.m, 2), _INT32)
    numpy_call(np.negative, zero_a.values, first[..., :1])
    numpy_call(np.negative, rows, first[..., 1:])
    batch = _common(columns, zero_b.values)
    second = new_array((*batch, 2, shapes.n), _INT32)
    copy_to(second[..., :1, :], columns)
    copy_to(second[..., 1:, :], zero_b.values)
    first = np.broadcast_to(first, (*c.shape[:-2], *first.shape[-2:]))
    matmul(first, second, c)
    matmul(a, b, c, beta=1)


def _with_numbers(a: Array, b: Array, c: Array, zeros: tuple[_ZeroPoint, _ZeroPoint], k: int) -> bool:
    """The product less two numbers, which scale the sums; False where a batch does not merge."""
    a, _, c = merge_rows(a, b, c)
    if not (a.ndim == b.ndim == c.ndim == 2 and whole_strides(a) and whole_strides(b)):
        return False
    by_column = by_row = constant(np.zeros((1, 1), _INT32))
    number_a, number_b = (int(zero.values[0, 0]) for zero in zeros)
    if number_a:  # ones of the other operand's type: no other kernel
        by_column = matmul(constant(np.ones((1, k), a.dtype)), b, dtype=_INT32, alpha=-number_a)
    if number_b:
        both = constant(np.array([k * number_a * number_b]).astype(_INT32)) if number_a else None
        by_row = matmul(a, constant(np.ones((k, 1), b.dtype)), dtype=_INT32, alpha=-number_b, bias=both)
    _with_biases(a, b, c, by_column, by_row)
    return True


def _product_of(zeros: _ZeroPoint, number: int) -> Array:
    """Zero points times a number, modulo 2^32."""
    factor = np.full((1, 1), number).astype(_INT32)
    if zeros.known:
        return constant(zeros.values * factor)
    return _combined(np.multiply, zeros.values, constant(factor))


def _common(sums: Array, values: Array) -> tuple[int, ...]:
    """The batch axes of sums and zero points together, which have been checked to broadcast."""
    found = broadcast_shapes(sums.shape[:-2], values.shape[:-2])
    assert found is not None
    return found


def _with_biases(a: Array, b: Array, c: Array, by_column: Array, by_row: Array) -> None:
    """A·B with one vector for the columns of C and one for its rows, added when C is stored."""
    kernel = matmul_kernel(
        product_types(a.dtype, b.dtype, _INT32), Epilogue((Bias(Along.COLUMN), Bias(Along.ROW)))
    )
    column = contiguous(np.broadcast_to(by_column, (1, c.shape[1])))
    row = contiguous(np.broadcast_to(by_row, (c.shape[0], 1)))
    with kernel.pool.block() as scratch:
        kernel.run(a, b, c, 1, 0, scratch, (column, row))
