"""Checks of kernel operands: type, dtype, rank, alignment and layout."""

from __future__ import annotations

import ctypes
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilewright.calls.foreign import refuse as refuse_foreign
from tilewright.calls.layout import ARRAY_DATA, layout_known
from tilewright.errors import LeadingDimension, OperandMismatch
from tilewright.spec.problem import Layout, Operand

Array: TypeAlias = NDArray[Any]


def element_strides(array: Array) -> tuple[int, int]:
    """Strides of a 2-D array in elements; an axis of length 1 counts as contiguous.

    >>> element_strides(np.zeros((4, 1), np.float32)[:, ::-1])
    (1, 1)
    """
    rows, columns = array.shape
    row, column = array.strides
    size = array.itemsize
    row = columns if rows == 1 and columns > 1 else row // size
    return row, 1 if columns == 1 else column // size


def whole_strides(array: Array) -> bool:
    """Whether elements are aligned and strides are multiples of the element size (axes of length 1 are
    ignored).
    """
    flags = array.flags
    if not flags.aligned:
        return False
    if flags.c_contiguous:
        return True
    size = array.itemsize
    steps = zip(array.shape, array.strides, strict=True)
    return all(stride % size == 0 or length <= 1 for length, stride in steps)


#: Whether the data address can be read directly from the array object.
_READABLE = layout_known()
_word_at = ctypes.c_size_t.from_address


def data_address(array: Array) -> int:
    """The address of the first element.

    Read from the object if its layout is known: ``__array_interface__`` takes a microsecond,
    ``ndarray.ctypes`` several.
    """
    if _READABLE:
        return _word_at(id(array) + ARRAY_DATA).value
    return int(array.__array_interface__["data"][0])


def addresses(*arrays: Array | None) -> list[int | None]:
    """The addresses of the first elements; None for no array."""
    return [None if array is None else data_address(array) for array in arrays]


def check_operand(kernel: str, operand: Operand, array: Array) -> None:
    """Reject an array whose type, dtype, rank, alignment or layout differs from the operand's."""

    def refuse(what: str, found: object, required: object) -> None:
        raise OperandMismatch(kernel=kernel, name=operand.name, what=what, found=found, required=required)

    if not isinstance(array, np.ndarray):
        refuse("type", type(array).__name__, "numpy.ndarray")
    if type(array) is not np.ndarray:
        refuse_foreign(array, operand.name)
    if array.dtype != operand.dtype.numpy:
        refuse("dtype", array.dtype, operand.dtype.numpy)
    if array.ndim != 2:
        refuse("dimensions", array.ndim, 2)
    if not whole_strides(array):
        refuse("alignment", "unaligned elements", "aligned elements")
    axis = {Layout.ROW: 1, Layout.COL: 0}.get(operand.layout)
    if axis is not None and array.size and array.shape[axis] > 1 and array.strides[axis] != array.itemsize:
        refuse(
            f"stride of axis {axis}",
            array.strides[axis],
            f"{array.itemsize} bytes ({operand.layout.value} layout)",
        )


def leading_dimension(kernel: str, operand: Operand, array: Array) -> int:
    """Elements between consecutive rows (columns if the operand is column-major) of a matching array.

    Raises
    ------
    OperandMismatch : see `check_operand`.
    LeadingDimension : if rows or columns overlap.
    """
    check_operand(kernel, operand, array)
    axis = 0 if operand.layout is Layout.ROW else 1
    length, least = array.shape[axis], array.shape[1 - axis]
    found = array.strides[axis] // array.itemsize if length > 1 else least
    if found < least:
        raise LeadingDimension(kernel=kernel, name=operand.name, found=found, required=least)
    return int(found)


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape that arrays of some shapes broadcast to, or None if they do not.

    `numpy.broadcast_shapes` refuses shapes of more than 32 axes; arrays have up to 64.

    >>> broadcast_shapes((5, 1, 2), (7, 1)), broadcast_shapes((2,), (3,))
    ((5, 7, 2), None)
    """
    found = max(shapes, key=len)
    for shape in shapes:
        if shape in (found, ()):
            continue
        lead = len(found) - len(shape)
        tail = []
        for ours, theirs in zip(found[lead:], shape, strict=True):
            if ours != theirs and 1 not in (ours, theirs):
                return None
            tail.append(theirs if ours == 1 else ours)
        found = (*found[:lead], *tail)
    return found


def merges(array: Array, shape: tuple[int, ...]) -> bool:
    """Return whether a non-empty array can be viewed in a shape that merges adjacent axes.

    Setting the shape of a view would also tell, but NumPy copies the array before it refuses.

    >>> merges(np.zeros((2, 3, 4)), (6, 4)), merges(np.zeros((2, 3, 4))[:, :2], (4, 4))
    (True, False)
    """
    axes = [axis for axis in zip(array.shape, array.strides, strict=True) if axis[0] != 1]
    place = 0
    for wanted in shape:
        first, length = place, 1
        while length < wanted and place < len(axes):
            length *= axes[place][0]
            place += 1
        inner = axes[first:place]
        if length != wanted or any(step != size * below for (_, step), (size, below) in pairwise(inner)):
            return False
    return place == len(axes)


def overlaps_itself(array: Array) -> bool:
    """Whether two elements of an array share a byte.

    >>> overlaps_itself(np.lib.stride_tricks.as_strided(np.zeros(4), (3, 2), (8, 8)))
    True
    """
    axes = sorted(
        (abs(step), size) for size, step in zip(array.shape, array.strides, strict=True) if size > 1
    )
    reach = array.itemsize
    nested = array.size > 0
    for step, size in axes:
        nested = nested and step >= reach
        reach += (size - 1) * step
    if nested or array.size == 0:
        return False
    # Axes whose ranges overlap may still interleave: only the addresses decide.
    places = np.zeros((), np.int64)
    for step, size in axes:
        places = np.add.outer(places, np.arange(size) * step)
    return bool(np.any(np.diff(np.sort(places, axis=None)) < array.itemsize))
