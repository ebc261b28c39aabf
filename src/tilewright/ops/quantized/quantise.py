"""Quantised weights: floats to integers with scales, and integers that others made, as packed matrices."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any

import numpy as np

from tilewright.calls.foreign import as_array
from tilewright.calls.operands import Array
from tilewright.calls.pieces import PIECE, all_finite, as_type, pieces
from tilewright.errors import InvalidChoice, InvalidGroup, InvalidOperand, QuantisedRange, ScaleShape, shown
from tilewright.machine.machine import Machine
from tilewright.ops.packing.matrix import PackedMatrix
from tilewright.ops.packing.words import WIDE, packed_floats, packed_integers, spans
from tilewright.spec.arguments import as_integer, check_flag, check_numbers
from tilewright.spec.weights import GROUPS, Elements, Weights

#: Bits of quantised elements.
_INTEGERS = {8: Elements.I8, 4: Elements.I4}

#: Elements of one block of groups, which NumPy quantises at once; a group that has more is a block by itself.
_BLOCK_ELEMENTS = 1 << 16


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


def quantised(w: Array, form: Weights) -> tuple[Array, Array, Array | None]:
    """Unsigned elements (k, n), scales and zero points (groups, n) of a float32 matrix.

    With z the middle of the range, 2^(bits-1), where the form has no zero points:

        symmetric: s = max|w| / (2^(bits-1) - 1),  u = rint(w / s) + z
        with zero points: s = (max(w, 0) - min(w, 0)) / (2^bits - 1),  z = rint(-min(w, 0) / s),
                          u = rint(w / s) + z, held between 0 and 2^bits - 1

    in float32, `rint` to nearest, ties to even; a group of zeros has s = 1.
    """
    depth, columns = w.shape
    most = (1 << form.elements.bits) - 1
    shape = (form.groups(depth), columns)
    u, scales = np.empty(w.shape, np.uint8), np.ones(shape, np.float32)
    zeros = np.full(shape, form.elements.middle, np.float32)
    for number, part in _grouped(w, form):
        groups, length, _ = part.shape
        some, first = slice(number, number + groups), number * form.group
        to = u[first : first + groups * length].reshape(part.shape)
        for across in spans(columns, WIDE):
            part_scales, part_zeros = scales[some, across], zeros[some, across]
            down = list(spans(length, max(1, PIECE // (groups * min(columns, WIDE)))))
            values = [part[:, rows, across] for rows in down]
            if form.zeros:
                low = np.minimum(reduce(np.minimum, [value.min(axis=1) for value in values]), 0)
                high = np.maximum(reduce(np.maximum, [value.max(axis=1) for value in values]), 0)
                scale = (high / np.float32(most)) - (low / np.float32(most))
            else:
                largest = reduce(np.maximum, [np.abs(value).max(axis=1) for value in values])
                scale = largest / np.float32(form.elements.middle - 1)
            scale[scale == 0] = 1
            if form.zeros:
                part_zeros[...] = np.clip(np.rint(-low / scale), 0, most)
            part_scales[...] = scale
            for rows, value in zip(down, values, strict=True):
                found = np.rint(value / scale[:, np.newaxis]) + part_zeros[:, np.newaxis]
                to[:, rows, across] = np.clip(found, 0, most)
    return u, scales, zeros if form.zeros else None


def _grouped(w: Array, form: Weights) -> Iterator[tuple[int, Array]]:
    """Blocks of groups (groups, depths, n), each with the number of its first group; short ones last.

    Narrow groups are many to a block, so that NumPy's work outweighs Python's; wide ones few, so that
    temporaries stay in the caches. A matrix without elements has no blocks, however many rows it has.
    """
    depth, columns = w.shape
    if not w.size:
        return
    group = form.group or depth
    whole = depth // group
    together = max(1, _BLOCK_ELEMENTS // (group * columns))
    for number in range(0, whole, together):
        groups = min(together, whole - number)
        yield number, w[number * group : (number + groups) * group].reshape(groups, group, columns)
    if depth % group:
        yield whole, w[np.newaxis, whole * group :]


def quantize_weights(
    w: Any, machine: Machine, *, bits: int, group: int | None, symmetric: bool
) -> PackedMatrix:
    """Implementation of `tilewright.quantize_weights`, which documents it."""
    form = Weights(_elements(bits), _group(group), zeros=not check_flag(symmetric, "symmetric"))
    array = as_type(check_numbers(_matrix(w, "w"), "w"), np.float32)
    if not all_finite(array):
        raise InvalidOperand(name="w", reason="it holds NaN or infinities, which integers cannot represent")
    return packed_integers(*quantised(array, form), form, machine)


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
