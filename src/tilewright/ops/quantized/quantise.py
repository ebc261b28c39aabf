"""Quantised weights: floats to integers with scales, and integers that others made, as packed matrices."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from types import MappingProxyType
from typing import Any

import numpy as np

from tilewright.calls.foreign import as_array
from tilewright.calls.operands import Array
from tilewright.calls.pieces import PIECE, all_finite, as_type, pieces
from tilewright.errors import InvalidChoice, InvalidGroup, InvalidOperand, QuantisedRange, ScaleShape, shown
from tilewright.machine.host import host_machine
from tilewright.machine.machine import Machine
from tilewright.macro.packing import PanelForm, weight_lanes
from tilewright.ops.packing.matrix import PackedForm, PackedMatrix, aligned_empty
from tilewright.spec.arguments import as_integer, check_flag, check_numbers
from tilewright.spec.dtype import F32, U8
from tilewright.spec.problem import Role
from tilewright.spec.weights import GROUPS, Elements, Weights

#: Bits of quantised elements.
_INTEGERS = {8: Elements.I8, 4: Elements.I4}
#: Weight types stored narrower than their products compute, by the name that selects them.
_FLOATS = {
    elements.value: (elements, elements.dtype) for elements in Elements if elements.dtype.is_narrow_float
}

#: Elements of one block of groups, which NumPy quantises at once; a group that has more is a block by itself.
_BLOCK_ELEMENTS = 1 << 16
#: These words.
FORMS = tuple(_FLOATS)

#: Bytes of one word of integers.
WORD_BYTES = 4

#: Columns that are quantised together: rows of them are long enough for NumPy.
_WIDE = 1 << 14


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
        for across in _spans(columns, _WIDE):
            part_scales, part_zeros = scales[some, across], zeros[some, across]
            down = list(_spans(length, max(1, PIECE // (groups * min(columns, _WIDE)))))
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


def _spans(extent: int, step: int) -> Iterator[slice]:
    """Slices of some length that cover an axis; the work on one of them is not interrupted.

    >>> list(_spans(5, 3))
    [slice(0, 3, None), slice(3, 5, None)]
    """
    for first in range(0, extent, step):
        yield slice(first, min(first + step, extent))


# --- words ----------------------------------------------------------------------------------------


def _in_panels(columns: Array, lanes: int, fill: float) -> Array:
    """Matrix (r, n) as [panels, r, lanes]; lanes past the last column hold `fill`."""
    rows, n = columns.shape
    panels = -(-n // lanes)
    whole = np.full((rows, panels * lanes), fill, columns.dtype)
    whole[:, :n] = columns
    return np.ascontiguousarray(whole.reshape(rows, panels, lanes).transpose(1, 0, 2))


def _integer_words(u: Array, elements: Elements, lanes: int) -> Array:
    """Panels of bytes [N1, words, N0, 4]; missing lanes and depths hold the middle of the range."""
    depth, n = u.shape
    words, panels = Weights(elements).words(depth), -(-n // lanes)
    data = aligned_empty((panels, words, lanes, WORD_BYTES), np.dtype(np.uint8))
    for some, deep in _blocks(panels, words, lanes * WORD_BYTES):
        rows = slice(deep.start * elements.depths, deep.stop * elements.depths)
        part = u[rows, some.start * lanes : some.stop * lanes]
        block = data[some, deep]
        whole: Array = np.full((block.shape[1] * elements.depths, part.shape[1]), elements.middle, np.uint8)
        whole[: len(part)] = part
        if elements is Elements.I4:
            whole = whole[0::2] | whole[1::2] << 4
        split = _in_panels(whole, lanes, elements.middle * (17 if elements is Elements.I4 else 1))
        block[...] = split.reshape(*block.shape[:2], WORD_BYTES, lanes).transpose(0, 1, 3, 2)
    return data


def _blocks(panels: int, deep: int, elements: int) -> Iterator[tuple[slice, slice]]:
    """Blocks of some panels and some of their depth, where each has so many elements of both."""
    below = max(1, PIECE // elements)
    for down in _spans(deep, below):
        for some in _spans(panels, max(1, below // (down.stop - down.start))):
            yield some, down


def _float_words(w: Array, form: PanelForm) -> Array:
    """Panels [N1, K1, N0, K0] of floats; missing lanes and depths are zero."""
    depth, n = w.shape
    panels, steps, lanes = -(-n // form.lanes), -(-depth // form.kr), form.lanes
    data = aligned_empty((panels, steps, lanes, form.kr), w.dtype)
    for some, deep in _blocks(panels, steps, lanes * form.kr):
        part = w[deep.start * form.kr : deep.stop * form.kr, some.start * lanes : some.stop * lanes]
        block = data[some, deep]
        whole = np.zeros((block.shape[1] * form.kr, part.shape[1]), w.dtype)
        whole[: len(part)] = part
        split = _in_panels(whole, lanes, 0)
        block[...] = split.reshape(*block.shape[:2], form.kr, lanes).transpose(0, 1, 3, 2)
    return data


def _packed(
    matrix: Array, data: Array, panels: PanelForm, weights: Weights, row: str, **vectors: Array
) -> PackedMatrix:
    form = PackedForm(Role.B, F32, F32, panels, row, weights)
    return PackedMatrix(form, (matrix.shape[0], matrix.shape[1]), data, MappingProxyType(vectors))


def _packed_integers(
    u: Array, scales: Array, zeros: Array | None, form: Weights, machine: Machine
) -> PackedMatrix:
    lanes = weight_lanes(machine)
    vectors = {"scales": scales, **({} if zeros is None else {"zeros": zeros})}
    arrays = {}
    for name, values in vectors.items():
        split = _in_panels(values.astype(np.float32), lanes, 1.0)
        arrays[name] = aligned_empty(split.shape, split.dtype)
        arrays[name][...] = split
    panels = PanelForm(U8, lanes, WORD_BYTES, WORD_BYTES)
    return _packed(u, _integer_words(u, form.elements, lanes), panels, form, machine.isa.name, **arrays)


# --- what users call ------------------------------------------------------------------------------


def quantize_weights(
    w: Any, machine: Machine, *, bits: int, group: int | None, symmetric: bool
) -> PackedMatrix:
    """Implementation of `tilewright.quantize_weights`, which documents it."""
    form = Weights(_elements(bits), _group(group), zeros=not check_flag(symmetric, "symmetric"))
    array = as_type(check_numbers(_matrix(w, "w"), "w"), np.float32)
    if not all_finite(array):
        raise InvalidOperand(name="w", reason="it holds NaN or infinities, which integers cannot represent")
    return _packed_integers(*quantised(array, form), form, machine)


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
    return _packed_integers(unsigned, scale, zero, form, machine)


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
    elements, dtype = _FLOATS[form]
    panels = PanelForm(dtype, weight_lanes(machine), elements.depths, elements.depths)
    array = as_type(check_numbers(_matrix(w, "b"), "b"), dtype.numpy)
    return _packed(array, _float_words(array, panels), panels, Weights(elements), machine.isa.name)


def elements_of(packed: PackedMatrix) -> Array:
    """The elements of a weight's tiles (k, n), integers unsigned."""
    weights, data = packed.form.weights, packed.data4d
    assert weights is not None
    (depth, n), (panels, deep, lanes, kr) = packed.shape, data.shape
    scaled = weights.elements.scaled
    step = weights.elements.depths if scaled else kr
    found = np.empty((depth, n), np.float32 if scaled else data.dtype)
    for some, down in _blocks(panels, deep, lanes * step):
        block = data[some, down]
        to = found[down.start * step : down.stop * step, some.start * lanes : some.stop * lanes]
        if scaled:
            words = block.view("<u4")[..., 0].transpose(0, 2, 1)  # [panels, lanes, words]
            split = weights.unpacked(words, len(to)).transpose(0, 2, 1)
        else:
            split = block.transpose(0, 1, 3, 2).reshape(len(block), -1, lanes)
        to[...] = _columns(split, *to.shape)
    return found


def _vector_of(packed: PackedMatrix, name: str) -> Array:
    """A vector of a weight: (groups, n)."""
    weights, (depth, n) = packed.form.weights, packed.shape
    assert weights is not None
    return _columns(packed.vectors[name], weights.groups(depth), n)


def repacked_weight(packed: PackedMatrix) -> PackedMatrix:
    """The same weight in the panels of this host, bit for bit."""
    weights = packed.form.weights
    assert weights is not None
    values = elements_of(packed)
    if not weights.elements.scaled:
        return pack_floats(values, weights.elements.value, host_machine())
    zeros = _vector_of(packed, "zeros") if weights.zeros else None
    u, scales = values.astype(np.uint8), _vector_of(packed, "scales")
    return _packed_integers(u, scales, zeros, weights, host_machine())


def dequantised(packed: PackedMatrix) -> Array:
    """The float32 matrix (k, n) that a packed weight represents: s · (u - z), or its floats."""
    weights, (depth, n) = packed.form.weights, packed.shape
    assert weights is not None
    values = as_type(elements_of(packed), np.float32)
    if not weights.elements.scaled:
        return values
    scales, middle = _vector_of(packed, "scales"), np.float32(weights.elements.middle)
    zeros = _vector_of(packed, "zeros") if weights.zeros else None
    group = weights.group or max(depth, 1)
    for rows in _spans(depth if n else 0, max(1, PIECE // min(max(n, 1), _WIDE))):
        numbers = np.arange(rows.start, rows.stop) // group
        for across in _spans(n, _WIDE):
            part = values[rows, across]
            part -= middle if zeros is None else zeros[numbers, across]
            part *= scales[numbers, across]
    return values


def _columns(panels: Array, rows: int, n: int) -> Array:
    """[panels, rows, lanes] as (rows, n)."""
    count, deep, lanes = panels.shape
    return panels.transpose(1, 0, 2).reshape(deep, count * lanes)[:rows, :n]
