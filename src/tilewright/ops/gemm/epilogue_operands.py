"""Operands of an epilogue: what kernels and `matmul` make of the arrays they are given for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tilewright.calls.foreign import as_array
from tilewright.calls.operands import Array, check_operand
from tilewright.calls.pieces import as_type, copied
from tilewright.calls.promotion import kind_of, same_kind
from tilewright.calls.recording import constant
from tilewright.errors import InvalidScalar, OperandMismatch, StepOperands, StepShape, UnsafeCast, shown
from tilewright.ops.gemm.problem import Gemm
from tilewright.spec.arguments import as_number, parse_choice
from tilewright.spec.dtype import Kind
from tilewright.spec.epilogue import ACTIVATIONS, Activation, Along, Bias, Epilogue, Residual, Scale, Step
from tilewright.spec.factors import factor
from tilewright.spec.functions import UnaryOp
from tilewright.spec.problem import Operand, ProductTypes


def step_matrices(
    kernel: str, problem: Gemm, given: Mapping[str, Any], sizes: tuple[int, int]
) -> list[Array]:
    """The operands of a problem's steps as matrices: (1, n) and (m, 1) of vectors, (1, 1), (m, n).

    Raises
    ------
    StepOperands : one is missing, or not an operand.
    OperandMismatch : one has another shape, dtype or layout.
    """
    required = [operand.name for operand in problem.step_operands]
    if set(given) != set(required):
        words = " and ".join(required) or "none"
        raise StepOperands(kernel=kernel, required=words, found=", ".join(given) or "none")
    shapes = [step_shape(step, *sizes) for step, _, name in problem.steps if name is not None]
    return [
        _matrix(kernel, operand, given[operand.name], shape)
        for operand, shape in zip(problem.step_operands, shapes, strict=True)
    ]


def step_shape(step: Step, m: int, n: int) -> tuple[int, int]:
    """The shape of a step's operand for an m×n result."""
    match step:
        case Bias(along) | Scale(along):
            return along.shape(m, n)
        case Residual():
            return m, n
        case _:
            raise AssertionError(f"{step} has no operand")


def _matrix(kernel: str, operand: Operand, value: Any, shape: tuple[int, int]) -> Array:
    kind = operand.dtype.numpy
    number = None if isinstance(value, np.ndarray) and value.ndim else as_number(value)
    if shape == (1, 1) and number is not None:
        if isinstance(number, complex) and operand.dtype.kind is not Kind.COMPLEX:
            raise InvalidScalar(name=operand.name, found=shown(value), required="a real number")
        array = constant(np.array([[factor(number, operand.name, operand.dtype)]], kind))
    else:
        array = value
        if isinstance(array, np.ndarray) and array.ndim == 1 and 1 in shape:
            array = array[:, np.newaxis] if shape[1] == 1 and shape[0] != 1 else array[np.newaxis, :]
    check_operand(kernel, operand, array)
    if array.shape != shape:
        raise OperandMismatch(
            kernel=kernel, name=operand.name, what="shape", found=np.shape(value), required=shape
        )
    return np.asarray(array)


def activation_word(activation: object) -> str | None:
    """The word of an activation, where it is text; of no other class, so that it is a key.

    Raises
    ------
    InvalidChoice : for anything but text, None and members of `UnaryOp`.
    """
    if activation is None or type(activation) is str:
        return activation
    return str(parse_choice(UnaryOp, activation, "activation", ACTIVATIONS).value)


# --- matmul -----------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def matmul_epilogue(along: Along | None, activation: str | None) -> Epilogue:
    """bias along an axis (None: no bias), then an activation.

    >>> str(matmul_epilogue(Along.COLUMN, "gelu"))
    'bias,gelu'
    """
    steps: list[Step] = [] if along is None else [Bias(along)]
    return Epilogue(steps if activation is None else [*steps, Activation(activation)])


@lru_cache(maxsize=512)
def typed_epilogue(along: Along | None, activation: str | None, types: ProductTypes) -> Epilogue:
    """`matmul_epilogue`, each of whose steps has a meaning on the sums of some types.

    Raises
    ------
    StepDtype
    """
    found = matmul_epilogue(along, activation)
    found.typed(types.sums, types.c)
    return found


def bias_of(value: Any, result: tuple[int, ...], vectors: tuple[bool, bool]) -> tuple[Array, Along]:
    """The bias of `matmul` as one row (1, n) or one column (m, 1) for (m, n) matrices, and its axis.

    Parameters
    ----------
    value : a number, (n,) or (1, n) for the last axis of the result, (m, 1) for the one before.
    result : the shape of the result.
    vectors : whether a and b have one axis, which the result then lacks.

    Raises
    ------
    InvalidOperand, StepShape
    """
    array = as_array(value, "bias")
    last = result[-1] if result else 1
    a_vector, b_vector = vectors
    rows = 1 if a_vector or b_vector else result[-2]
    leading = array.shape[:-2]
    tail = (1, *array.shape)[-2:] if array.ndim < 2 else array.shape[-2:]
    if all(size == 1 for size in leading):
        if tail in ((1, last), (1, 1), (1,)):
            row = array.reshape(1, -1)
            if row.shape[1] != last:
                row = np.broadcast_to(row, (1, last))
            return (row.T, Along.ROW) if b_vector and not a_vector else (row, Along.COLUMN)
        if tail == (rows, 1):
            return array.reshape(rows, 1), Along.ROW
    raise StepShape(
        name="bias", found=array.shape, required=f"({last},), or ({rows}, 1) for one element a row"
    )


@lru_cache(maxsize=256)
def activation_of(activation: str | None, computed: np.dtype[Any]) -> str | None:
    """The activation to compute: ReLU does not change unsigned integers, so it is dropped there.

    Unsigned integers are computed as signed ones of the same bits, which ReLU would misread as negative.

    >>> activation_of("relu", np.dtype("u2")) is None
    True
    """
    known = activation is not None and Activation(activation).op is UnaryOp.RELU
    return None if known and kind_of(computed) == "u" else activation


def bias_matrix(array: Array, types: ProductTypes, computed: np.dtype[Any], avoid: Sequence[Array]) -> Array:
    """A bias as kernels take it: contiguous, in the type of the sums, not overlapping the output."""
    if not same_kind(array.dtype, computed):
        raise UnsafeCast(name="bias", found=array.dtype, required=str(computed))
    kind = types.sums.numpy
    if computed.kind == "u":
        array = as_type(array, np.dtype(f"uint{kind.itemsize * 8}")).view(kind)
    column = array.shape[1] == 1
    found = as_type((array.T if column else array)[0], kind)
    adjacent = found.size <= 1 or found.strides[0] == found.itemsize
    if not adjacent or any(np.may_share_memory(found, other) for other in avoid):
        found = copied(found)
    return found[:, np.newaxis] if column else found[np.newaxis, :]
