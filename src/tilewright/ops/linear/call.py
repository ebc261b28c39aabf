"""`matmul` where an operand is a `PackedMatrix`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import DTypeLike

from tilewright.calls.batch import batch_function, merge_axes, outer_offsets
from tilewright.calls.operands import Array, data_address, element_strides, merges
from tilewright.calls.pieces import contiguous, copy_to
from tilewright.calls.promotion import store
from tilewright.calls.recording import element, new_array
from tilewright.errors import (
    MissingOut,
    PackedRole,
    UnsupportedArgument,
)
from tilewright.ops.gemm.epilogue_operands import (
    activation_word,
    bias_matrix,
    bias_of,
)
from tilewright.ops.gemm.operands import (
    as_operand,
    check_array,
    check_operand_cast,
    check_out,
    convert,
    direct_out,
    merge_rows,
    product_shapes,
    result_dtype,
    wanted_dtype,
)
from tilewright.ops.linear.kernel import PackedGemmKernel, RouteKey, find_route
from tilewright.ops.packing.matrix import PackedMatrix
from tilewright.preparing import importing, once
from tilewright.recorder import Grouped
from tilewright.spec.arguments import check_number
from tilewright.spec.factors import factor
from tilewright.threads.pool import call_team
from tilewright.typing import Number


@once
def _quantised_rows() -> Any:
    """The module of products with `QuantizedRows`, which others do without."""
    with importing:
        from tilewright.ops.linear import activations

    return activations


@once
def _quantised_weights() -> Any:
    """The module of products with quantised weights."""
    with importing:
        from tilewright.ops.linear import quantized

    return quantized


def matmul(
    a: Any,
    b: Any,
    out: Any = None,
    *,
    dtype: DTypeLike | None = None,
    alpha: Number = 1.0,
    beta: Number = 0.0,
    bias: Any = None,
    activation: str | None = None,
) -> Array:
    """alpha · a @ b + beta · out, where a or b is a `PackedMatrix`; see `tilewright.matmul`."""
    activation = activation_word(activation)
    alpha, beta = check_number(alpha, "alpha"), check_number(beta, "beta")
    dtype = None if dtype is None else wanted_dtype(dtype)
    if isinstance(a, Grouped):
        rows = _quantised_rows()
        if isinstance(a, rows.QuantizedRows):
            for name, value, usual in (("alpha", alpha, 1), ("beta", beta, 0)):
                if value != usual:
                    remedy = f"pass {usual} with quantised rows"
                    raise UnsupportedArgument(name=name, value=value, remedy=remedy)
            given = None if out is None else check_array(out)
            return cast("Array", rows.matmul(a, b, given, dtype=dtype, bias=bias, activation=activation))
    if isinstance(a, PackedMatrix) and isinstance(b, PackedMatrix):
        b = np.asarray(b)  # one of them is unpacked: weights are one side of a product
    packed, other = (b, a) if isinstance(b, PackedMatrix) else (a, b)
    side = "b" if packed is b else "a"
    if packed.role != side:
        raise PackedRole(found=packed.role, required=side)
    array = convert(other, "a" if side == "b" else "b")
    if packed.form.weights is not None:
        weights = _quantised_weights()
        given = None if out is None else check_array(out)
        request = weights.ProductRequest(given, dtype, alpha, beta, bias, activation)
        return cast("Array", weights.matmul(array, packed, request))
    given = None if out is None else check_array(out)
    first, second = (array.shape, packed.shape) if side == "b" else (packed.shape, array.shape)
    shapes = product_shapes(first, second)
    route_key = RouteKey(array.dtype, None, None, activation)
    if dtype is not None or given is not None:
        route_key = route_key._replace(computed=result_dtype(array, np.empty(0, packed.dtype), given, dtype))
    vectors = []
    if bias is not None:
        vector, along = bias_of(bias, shapes.result, (len(first) == 1, len(second) == 1))
        vectors.append(vector)
        route_key = route_key._replace(along=along)
    route = find_route(packed, route_key)
    kernel, acc = route.kernel, route.kernel.types.acc
    alpha, beta = factor(alpha, "alpha", acc), factor(beta, "beta", acc)
    if given is None and beta != 0:
        raise MissingOut(function="matmul", beta=beta)
    if given is not None:
        check_out(given, shapes.result, route.result)
    name = "a" if side == "b" else "b"
    check_operand_cast(array, route.result, name)
    operand = as_operand(array, route.operand, name)
    avoid = [] if given is None else [given]
    vectors = [bias_matrix(vector, kernel.types, route.result, avoid) for vector in vectors]
    by_row = any(vector.shape[1] == 1 and vector.shape[0] != 1 for vector in vectors)
    direct = given is not None and direct_out(given, route.result, operand, packed.data4d)
    if side == "b" and operand.ndim > 2 and operand.size and not by_row:  # one product of all rows
        if not merges(operand, (math.prod(operand.shape[:-1]), operand.shape[-1])):
            operand = contiguous(operand)
        direct = direct and merges(cast("Array", given), (math.prod(shapes.result[:-1]), shapes.n))
    target = cast("Array", given) if direct else new_array(shapes.result, route.result)
    if beta != 0 and not direct:
        copy_to(target, cast("Array", given))
    matrices = _matrices(operand, target, side, merge=not by_row)
    with kernel.pool.block() as scratch:
        call = _Call(packed, side, (shapes.m, shapes.n, shapes.k), (alpha, beta), vectors)
        _run(kernel, call, matrices, scratch)
    if given is None:
        return element(target)
    if not direct:
        store(target, given)
    return given


def _matrices(operand: Array, target: Array, side: str, *, merge: bool) -> tuple[Array, Array]:
    """The other operand and C with two axes or more, rows of a batch merged where they can be."""
    if operand.ndim == 1 and side == "b":
        return operand[np.newaxis, :], target[..., np.newaxis, :]
    if operand.ndim == 1:
        return operand[:, np.newaxis], target[..., np.newaxis]
    if side == "b" and operand.ndim > 2 and merge:
        tall, _, c = merge_rows(operand, np.empty((0, 0)), target)
        return tall, c
    return operand, target


class _Call(NamedTuple):
    """The arguments shared by every product of a batch."""

    packed: PackedMatrix
    side: str
    sizes: tuple[int, int, int]
    factors: tuple[float, float]
    vectors: list[Array]

    def arrays(self, other: Array, c: Array) -> list[Array]:
        """A, B and C of one product."""
        tiles = self.packed.data4d
        return [other, tiles, c] if self.side == "b" else [tiles, other, c]


def _run(kernel: PackedGemmKernel, call: _Call, matrices: tuple[Array, Array], scratch: int) -> None:
    """Every product of a batch, whose longest axis runs in compiled code."""
    other, c = matrices
    batch, sizes = c.shape[:-2], call.sizes
    if 0 in c.shape:
        return
    if call.side == "b":
        sizes = (c.shape[-2], *sizes[1:])  # rows of a batch are merged
    axes = merge_axes(batch, _steps(call, other, c))
    if not axes or call.vectors or kernel.problem.epilogue:  # the compiled loop has no place for vectors
        for index in np.ndindex(batch):
            arrays = call.arrays(other[index], c[index])
            kernel.run_packed(arrays, sizes, call.factors, scratch, call.vectors)
        return
    first = (0,) * len(batch)
    arrays = call.arrays(other[first], c[first])
    longest = max(axes, key=lambda axis: axis.length)
    others = [axis for axis in axes if axis is not longest]
    strides = [s for array in arrays for s in (element_strides(array) if array.ndim == 2 else (0, 0))]
    pointers = [data_address(array) for array in arrays]
    run, step = batch_function(kernel.types.acc), kernel.scratch_step
    with call_team(math.prod(sizes) * longest.length) as team:
        rest = (*sizes, *strides, *call.factors, scratch, step, kernel.scratch_parts, team)
        for offsets in outer_offsets(others):
            places = (pointer + offset for pointer, offset in zip(pointers, offsets, strict=True))
            run(kernel.address, longest.length, *longest.steps, *places, *rest)


def _steps(call: _Call, other: Array, c: Array) -> list[tuple[int, ...]]:
    """Bytes from one product of a batch to the next along each axis, in A, B and C."""
    still = (0,) * (c.ndim - 2)
    pair = [other.strides[:-2], still] if call.side == "b" else [still, other.strides[:-2]]
    return [*pair, c.strides[:-2]]
