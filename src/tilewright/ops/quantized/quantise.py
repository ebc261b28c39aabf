"""Quantised weights: floats to integers with scales, and integers that others made, as packed matrices."""

from __future__ import annotations

from functools import reduce
from typing import Any, get_args

import numpy as np

from tilewright.calls.foreign import as_array
from tilewright.calls.operands import Array
from tilewright.calls.pieces import PIECE, all_finite, as_type, pieces
from tilewright.errors import (
    InvalidChoice,
    InvalidGroup,
    InvalidOperand,
    QuantisedRange,
    ScaleShape,
    UnsupportedArgument,
    shown,
)
from tilewright.machine.machine import Machine
from tilewright.ops.packing.matrix import PackedMatrix
from tilewright.ops.packing.words import WIDE, packed_floats, packed_integers, spans
from tilewright.ops.quantized.affine import grouped, scale_and_zero, to_nearest
from tilewright.ops.quantized.gptq import error_feedback, second_moments
from tilewright.ops.quantized.hqq import half_quadratic
from tilewright.spec.arguments import as_integer, check_flag, check_numbers, check_word
from tilewright.spec.weights import GROUPS, Elements, Weights
from tilewright.typing import RoundingName

#: Bits of quantised elements.
_INTEGERS = {8: Elements.I8, 4: Elements.I4}


def _elements(bits: int) -> Elements:
    found = as_integer(bits)
    if found not in _INTEGERS:
        raise InvalidChoice(name="bits", found=shown(bits), allowed=", ".join(map(str, _INTEGERS)))
    return _INTEGERS[found]


def _group(group: object) -> int:
    """Depths that share a scale; 0 for all of them. `Weights` validates the number."""
    found = 0 if group is None else as_integer(group)
    if found is None or found < 0:
        raise InvalidGroup(group=shown(group), allowed=", ".join(map(str, GROUPS)))
    return found


def _matrix(array: Any, name: str) -> Array:
    found = as_array(array, name)
    if found.ndim != 2:
        raise InvalidOperand(name=name, reason=f"it has {found.ndim} dimensions; a weight is a matrix (k, n)")
    return found


# --- the formulas ---------------------------------------------------------------------------------


def quantised(w: Array, form: Weights) -> tuple[Array, Array, Array]:
    """Unsigned elements (k, n), scales and zero points (groups, n) of a float32 matrix, to nearest.

    The scale of a group follows from its range: `scale_and_zero`.
    """
    depth, columns = w.shape
    shape = (form.groups(depth), columns)
    u, scales = np.empty(w.shape, np.uint8), np.ones(shape, np.float32)
    zeros = np.full(shape, form.elements.middle, np.float32)
    for number, part in grouped(w, form):
        groups, length, _ = part.shape
        some, first = slice(number, number + groups), number * form.group
        to = u[first : first + groups * length].reshape(part.shape)
        for across in spans(columns, WIDE):
            down = list(spans(length, max(1, PIECE // (groups * min(columns, WIDE)))))
            values = [part[:, rows, across] for rows in down]
            low = reduce(np.minimum, [value.min(axis=1) for value in values])
            high = reduce(np.maximum, [value.max(axis=1) for value in values])
            scale, zero = scale_and_zero(low, high, form)
            scales[some, across], zeros[some, across] = scale, zero
            for rows, value in zip(down, values, strict=True):
                to[:, rows, across] = to_nearest(value, scale[:, np.newaxis], zero[:, np.newaxis], form)
    return u, scales, zeros


def quantize_weights(
    w: Any,
    machine: Machine,
    *,
    bits: int,
    group: int | None,
    symmetric: bool,
    rounding: str,
    inputs: Any,
) -> PackedMatrix:
    """Implementation of `tilewright.quantize_weights`, which documents it."""
    form = Weights(_elements(bits), _group(group), zeros=not check_flag(symmetric, "symmetric"))
    word = check_word(rounding, "rounding", get_args(RoundingName))
    array = as_type(check_numbers(_matrix(w, "w"), "w"), np.float32)
    if not all_finite(array):
        raise InvalidOperand(name="w", reason="it holds NaN or infinities, which integers cannot represent")
    if inputs is not None and word != "gptq":
        raise UnsupportedArgument(name="inputs", value=shown(inputs), remedy="pass rounding='gptq' with it")
    match word:
        case "gptq":
            moments = second_moments(_inputs(inputs, array.shape[0]))
            u, scales, zeros = error_feedback(array, form, moments)
        case "hqq":
            u, scales, zeros = half_quadratic(array, form)
        case _:
            u, scales, zeros = quantised(array, form)
    return packed_integers(u, scales, zeros if form.zeros else None, form, machine)


def quantized_for(w: Array, form: Weights, moments: Array, machine: Machine) -> PackedMatrix:
    """A float32 weight rounded for products with inputs of which `gptq.second_moments` are given.

    Raises
    ------
    InvalidOperand : the weight has NaN or infinities.
    """
    if not all_finite(w):
        raise InvalidOperand(name="w", reason="it holds NaN or infinities, which integers cannot represent")
    u, scales, zeros = error_feedback(np.ascontiguousarray(w), form, moments)
    return packed_integers(u, scales, zeros if form.zeros else None, form, machine)


def _inputs(inputs: Any, depth: int) -> Array:
    """Inputs of a layer as a float32 matrix (samples, k)."""
    if inputs is None:
        reason = "rounding='gptq' needs what the weight is multiplied with, of shape (..., k)"
        raise InvalidOperand(name="inputs", reason=reason)
    found = check_numbers(as_array(inputs, "inputs"), "inputs")
    if found.ndim < 1 or found.shape[-1] != depth:
        raise InvalidOperand(name="inputs", reason=f"its shape is {found.shape}, must be (..., {depth})")
    array = as_type(found, np.float32).reshape(-1, depth) if depth else np.zeros((0, 0), np.float32)
    if not all_finite(array):
        raise InvalidOperand(name="inputs", reason="it holds NaN or infinities")
    return array


def pack_quantized(
    q: Any, scales: Any, zeros: Any, machine: Machine, *, bits: int, group: int | None
) -> PackedMatrix:
    """Implementation of `tilewright.pack_quantized`, which documents it."""
    elements, array = _elements(bits), _matrix(q, "q")
    form = Weights(elements, _group(group), zeros=zeros is not None)
    if array.dtype.kind not in "iu" and not array.dtype.name.startswith(("int", "uint")):
        raise InvalidOperand(name="q", reason=f"its dtype is {array.dtype}, not an integer type")
    signed = array.dtype.kind == "i" or array.dtype.name.startswith("int")
    middle = elements.middle if signed else 0
    unsigned = np.empty(array.shape, np.uint8)
    for part in pieces(array.shape, array.strides):
        unsigned[part] = _in_range(array[part].astype(np.int64) + middle, "q", bits, middle)
    shape = (form.groups(array.shape[0]), array.shape[1])
    scale = _per_group(scales, "scales", shape, group)
    zero = None
    if zeros is not None:
        zero = _in_range(_per_group(zeros, "zeros", shape, group) + middle, "zeros", bits, middle)
    return packed_integers(unsigned, scale, zero, form, machine)


def _in_range(values: Array, name: str, bits: int, middle: int) -> Array:
    """Unsigned integers of some bits; what was given had `middle` taken off."""
    most = (1 << bits) - 1
    if values.size and not (values.min() >= 0 and values.max() <= most):
        raise QuantisedRange(name=name, bits=bits, low=-middle, high=most - middle)
    if not np.array_equal(values, np.rint(values)):
        raise QuantisedRange(name=name, bits=bits, low=-middle, high=most - middle)
    return values


def _per_group(values: Any, name: str, shape: tuple[int, int], group: int | None) -> Array:
    """One float32 per group and column; with a single group, the group axis may be missing."""
    array = check_numbers(as_array(values, name), name)
    found = array.astype(np.float32)
    if not group and found.ndim == 1:
        found = found[np.newaxis, :]
    if found.shape != shape:
        raise ScaleShape(name=name, found=array.shape, required=shape)
    return found


def pack_floats(w: Any, form: str, machine: Machine) -> PackedMatrix:
    """A weight kept in a narrower type than its products: see `tilewright.pack`."""
    elements = Elements(form)
    dtype = elements.dtype
    array = as_type(check_numbers(_matrix(w, "b"), "b"), dtype.numpy)
    return packed_floats(array, elements, machine)
