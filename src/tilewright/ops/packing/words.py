"""Weights in words: panels of integers and of narrow floats, written and read back."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType

import numpy as np

from tilewright.calls.operands import Array
from tilewright.calls.pieces import PIECE, as_type
from tilewright.calls.recording import not_repeatable
from tilewright.machine.host import host_machine
from tilewright.machine.machine import Machine
from tilewright.macro.packing import PanelForm, weight_lanes
from tilewright.ops.packing.matrix import PackedForm, PackedMatrix, aligned_empty
from tilewright.spec.dtype import F32, U8, Kind
from tilewright.spec.problem import Role
from tilewright.spec.weights import WORD_BYTES, Elements, Weights

#: Columns that are quantised together: rows of them are long enough for NumPy.
WIDE = 1 << 14


def spans(extent: int, step: int) -> Iterator[slice]:
    """Slices of some length that cover an axis; the work on one of them is not interrupted.

    >>> list(spans(5, 3))
    [slice(0, 3, None), slice(3, 5, None)]
    """
    for first in range(0, extent, step):
        yield slice(first, min(first + step, extent))


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
    for down in spans(deep, below):
        for some in spans(panels, max(1, below // (down.stop - down.start))):
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


def packed_integers(
    u: Array, scales: Array, zeros: Array | None, form: Weights, machine: Machine
) -> PackedMatrix:
    """Unsigned elements (k, n), scales and zero points (groups, n) in the panels of a machine."""
    lanes = weight_lanes(machine)
    vectors = {"scales": scales, **({} if zeros is None else {"zeros": zeros})}
    arrays = {}
    for name, values in vectors.items():
        split = _in_panels(values.astype(np.float32), lanes, 1.0)
        arrays[name] = aligned_empty(split.shape, split.dtype)
        arrays[name][...] = split
    panels = PanelForm(U8, lanes, WORD_BYTES, WORD_BYTES)
    return _packed(u, _integer_words(u, form.elements, lanes), panels, form, machine.isa.name, **arrays)


def packed_floats(array: Array, elements: Elements, machine: Machine) -> PackedMatrix:
    """A weight of narrow floats in the panels of a machine."""
    panels = PanelForm(elements.dtype, weight_lanes(machine), elements.depths, elements.depths)
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


def tiles_of(packed: PackedMatrix) -> Array:
    """The tiles of a packed matrix with one element in each item: its own, unless several share a byte."""
    storage, data = packed.form.panels.storage, packed.data4d
    if storage.held == 1:
        return data
    panels, deep, lanes, cells = data.shape
    not_repeatable("elements that share a byte, which NumPy takes apart")
    found = np.empty((panels, deep, lanes, cells * storage.held), storage.numpy)
    shifts = np.arange(storage.held, dtype=np.uint8)[::-1] * storage.bits
    signed = np.int8 if storage.kind is Kind.SIGNED else np.uint8
    for some, down in _blocks(panels, deep, lanes * cells * storage.held):
        raised = data[some, down, :, :, np.newaxis] << shifts  # each element in the highest bits of a byte
        values = raised.view(signed) >> storage.cell.bits - storage.bits
        found[some, down] = values.reshape(*values.shape[:3], -1)
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
        return packed_floats(values, weights.elements, host_machine())
    zeros = _vector_of(packed, "zeros") if weights.zeros else None
    u, scales = values.astype(np.uint8), _vector_of(packed, "scales")
    return packed_integers(u, scales, zeros, weights, host_machine())


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
    for rows in spans(depth if n else 0, max(1, PIECE // min(max(n, 1), WIDE))):
        numbers = np.arange(rows.start, rows.stop) // group
        for across in spans(n, WIDE):
            part = values[rows, across]
            part -= middle if zeros is None else zeros[numbers, across]
            part *= scales[numbers, across]
    return values


def _columns(panels: Array, rows: int, n: int) -> Array:
    """[panels, rows, lanes] as (rows, n)."""
    count, deep, lanes = panels.shape
    return panels.transpose(1, 0, 2).reshape(deep, count * lanes)[:rows, :n]
