"""Any permutation of any array's axes, cut into 2-D transposes and copies of compiled kernels."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.foreign import as_array, refuse
from tilewright.calls.kernels import kernel_for
from tilewright.calls.operands import Array
from tilewright.calls.pieces import copy_to, pieces
from tilewright.calls.recording import new_array, not_repeatable
from tilewright.calls.strided_loop import loop_over_arrays, strided_loop_record
from tilewright.errors import InvalidAxes, OutOtherDtype, OutReadOnly, OutShape, shown
from tilewright.ops.unary.kernel import UnaryKernel
from tilewright.ops.unary.problem import Unary
from tilewright.spec.arguments import as_integers, as_items, out_array
from tilewright.typing import DTypeName

#: The element type in whose name bytes are moved, by size.
_WORDS: dict[int, DTypeName] = {1: "i8", 2: "i16", 4: "i32", 8: "i64", 16: "c128"}

#: Larger arrays are moved in pieces of at least so many bytes: 1 to 10 ms.
PIECE_BYTES = 1 << 24

#: Plans kept; one takes about 20 us to make.
_PLANS = 1024


class Axis(NamedTuple):
    """One axis of a copy: its length, and its strides in bytes in A and B."""

    length: int
    step_a: int
    step_b: int


class TransposePlan(NamedTuple):
    """A permutation in terms of kernels: rows × columns of words, over outer axes.

    word : bytes that are moved as one element.
    rows, columns : the two axes a kernel walks; where they can, rows are adjacent in A.
    outer : the axes around it, innermost in B first.
    """

    word: int
    rows: Axis
    columns: Axis
    outer: tuple[Axis, ...]


def merged(axes: list[Axis]) -> list[Axis]:
    """Axes in descending order of steps in B, with neighbours fused that both arrays walk on evenly.

    Before: (4, 5) with steps (20, 4) in A and (20, 4) in B. After: one axis of 20.

    >>> merged([Axis(5, 4, 4), Axis(4, 20, 20), Axis(1, 7, 7)])
    [Axis(length=20, step_a=4, step_b=4)]
    """
    found: list[Axis] = []
    for axis in sorted(axes, key=lambda axis: (-abs(axis.step_b), -abs(axis.step_a))):
        if axis.length == 1:
            continue
        outer = found[-1] if found else None
        if outer and (outer.step_a, outer.step_b) == (axis.length * axis.step_a, axis.length * axis.step_b):
            found[-1] = Axis(outer.length * axis.length, axis.step_a, axis.step_b)
        else:
            found.append(axis)
    return found


def _word(size: int, axes: list[Axis]) -> int:
    """The largest element that divides an item and every step."""
    common = math.gcd(size, *(step for axis in axes for step in axis[1:]))
    return math.gcd(common, max(_WORDS))


def _widened(word: int, axes: list[Axis]) -> tuple[int, list[Axis]]:
    """Without the innermost axis where all of it is one larger word in both arrays.

    Before: (1000, 1000, 2) words of 4 bytes. After: (1000, 1000) words of 8.
    """
    inner = axes[-1]
    size = inner.length * word
    adjacent = inner.step_a == inner.step_b == word
    whole = all(step % size == 0 for axis in axes[:-1] for step in axis[1:])
    return (size, axes[:-1]) if adjacent and whole and size in _WORDS else (word, axes)


@lru_cache(maxsize=_PLANS)
def plan_move(
    size: int, lengths: tuple[int, ...], steps_a: tuple[int, ...], steps_b: tuple[int, ...]
) -> TransposePlan:
    """Plan the copy of `size`-byte items from A to B; axes in any order, none of length 0.

    Examples
    --------
    >>> plan_move(4, (3, 2), (4, 12), (8, 4)).rows  # the transpose of a contiguous (2, 3) array
    Axis(length=3, step_a=4, step_b=8)
    """
    axes = [Axis(*values) for values in zip(lengths, steps_a, steps_b, strict=True) if values[0] > 1]
    word = _word(size, axes)
    if word < size:
        axes.append(Axis(size // word, word, word))
    axes = merged(axes)
    if axes:
        word, axes = _widened(word, axes)
    if not axes:
        return TransposePlan(word, Axis(1, word, word), Axis(1, word, word), ())
    inner_b = axes[-1]
    inner_a = min(axes, key=lambda axis: abs(axis.step_a))
    rest = [axis for axis in axes if axis not in (inner_a, inner_b)]
    if inner_a is not inner_b:
        return TransposePlan(word, inner_a, inner_b, tuple(reversed(rest)))
    # The same axis is innermost in both: columns of copies; the longest other axis has the fewest calls.
    columns = max(rest, key=lambda axis: axis.length, default=Axis(1, word, word))
    return TransposePlan(
        word, inner_a, columns, tuple(axis for axis in reversed(rest) if axis is not columns)
    )


#: The kernels of this process, by the bytes of an element.
move_kernels: dict[int, UnaryKernel] = {}


def move_kernel(word: int) -> UnaryKernel:
    """The kernel that moves elements of 1, 2, 4, 8 or 16 bytes with any strides."""
    kernel = move_kernels.get(word)
    if kernel is None:
        kernel = kernel_for(Unary("identity", dtype=_WORDS[word], a="strided", b="strided"))
        move_kernels[word] = kernel
    return kernel


@lru_cache(maxsize=_PLANS)
def _record(size: int, lengths: tuple[int, ...], steps_a: tuple[int, ...], steps_b: tuple[int, ...]) -> Any:
    """A move as the compiled walk reads it."""
    plan = plan_move(size, lengths, steps_a, steps_b)
    word, rows, columns = plan.word, plan.rows, plan.columns
    steps = (rows.step_a, columns.step_a, rows.step_b, columns.step_b)
    arguments = (*(step // word for step in steps), rows.length, columns.length)
    kernel = move_kernel(word)
    record = strided_loop_record(kernel.address, arguments, plan.outer)
    record.kernel = kernel  # the address is good for as long as the kernel lives
    return record


@lru_cache(maxsize=_PLANS)
def _permuted(
    shape: tuple[int, ...], strides: tuple[int, ...], axes: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides of a view with permuted axes."""
    return tuple(shape[axis] for axis in axes), tuple(strides[axis] for axis in axes)


def check_axes(axes: Any, ndim: int) -> tuple[int, ...]:
    """The axes of a permutation, none of them negative; None reverses them.

    >>> check_axes((0, -1, 1), 3)
    (0, 2, 1)

    Raises
    ------
    InvalidAxes
    """
    if axes is None:
        return tuple(range(ndim))[::-1]
    items = as_items(axes)
    given = None if items is None else as_integers(items)
    if given is None:
        raise InvalidAxes(found=shown(axes), ndim=ndim, reason="they are not a sequence of integers")
    if len(given) != ndim:
        raise InvalidAxes(found=given, ndim=ndim, reason=f"there are {len(given)} of them")
    for axis in given:
        if not -ndim <= axis < ndim:
            raise InvalidAxes(found=given, ndim=ndim, reason=f"{axis} is out of range")
    found = tuple(axis % ndim for axis in given)
    if len(set(found)) != ndim:
        raise InvalidAxes(found=given, ndim=ndim, reason="one of them is repeated")
    return found


def transpose(a: Any, axes: Any = None, out: Any = None) -> Array:
    """The array with its axes permuted, in memory of its own; see `tilewright.transpose`."""
    array = a if type(a) is np.ndarray else _converted(a)
    order = check_axes(axes, array.ndim)
    shape, strides = _permuted(array.shape, array.strides, order)
    dtype = array.dtype
    if out is None:
        target = new_array(shape, dtype)
    else:
        target = _check_out(out, shape, dtype)
        if np.may_share_memory(target, array):
            copy_to(target, transpose(array, order))
            return target
    if dtype.hasobject:
        not_repeatable("objects are copied")
        copy_to(target, array.transpose(order))  # references are counted
    elif array.nbytes > PIECE_BYTES:
        _move_in_pieces(array.transpose(order), target)
    elif array.nbytes:
        loop_over_arrays(_record(dtype.itemsize, shape, strides, target.strides), array, target)
    return target


def _move_in_pieces(source: Array, target: Array) -> None:
    """A move of one shape, with signal handlers in between.

    Pieces follow each other as the blocks of the kernel do: in the order of A where lines of B are written
    whole, past the caches, else in that of B. No piece is so small that it would stay in the caches.
    """
    not_repeatable("a large array is moved in pieces")
    size = source.itemsize
    plan = plan_move(size, source.shape, source.strides, target.strides)
    blocks = move_kernel(plan.word).blocking
    most = max(PIECE_BYTES, blocks.stream_from * plan.word) // size
    whole_lines = plan.rows.step_b % blocks.line_bytes == 0
    order = source.strides if whole_lines else target.strides
    for part in pieces(source.shape, order, most):
        a, b = source[part], target[part]
        loop_over_arrays(_record(size, a.shape, a.strides, b.strides), a, b)


def _converted(a: Any) -> Array:
    """Convert an array-like to a plain array."""
    return as_array(a, "a")


def _check_out(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Validate that `out` can hold the result."""
    array = out_array(out)
    refuse(array, "out")
    if out.shape != shape:
        raise OutShape(found=out.shape, required=shape)
    if out.dtype != dtype:
        raise OutOtherDtype(found=out.dtype, required=dtype)
    if not out.flags.writeable:
        raise OutReadOnly
    return array
