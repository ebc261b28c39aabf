"""Kernels of products of elements and their sums, and which axes of arrays are theirs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.kernels import kernel_for
from tilewright.calls.operands import Array, data_address
from tilewright.calls.recording import new_array
from tilewright.compiler.kernel import Kernel
from tilewright.ops.sum_of_products.problem import SUM_DTYPES, SumOfProducts, Walk
from tilewright.spec.dtype import DTYPES, DType, find_numpy_dtype

#: Multiply-adds that take as long as reading one element: 60 per nanosecond, compared with 8 elements.
ELEMENT_WORK = 8

#: Plans kept; one takes about 30 us to make.
_PLANS = 1024


@lru_cache(maxsize=64)
def _computed(dtype: np.dtype[Any]) -> DType | None:
    """The type whose kernels take an element type: unsigned integers are signed ones of their width."""
    if not dtype.isnative:
        return None
    if dtype.kind == "u":
        return DTYPES.get(f"i{8 * dtype.itemsize}")
    found = find_numpy_dtype(dtype)
    return found if found in SUM_DTYPES else None


class _CommonAxis(NamedTuple):
    """An axis of all arrays: its length, and elements from one position to the next in each."""

    length: int
    steps: tuple[int, ...]


def _merged(axes: Sequence[_CommonAxis]) -> list[_CommonAxis]:
    """Axes, outermost first, with neighbours fused that have one stride in every array.

    >>> _merged([_CommonAxis(3, (20, 4)), _CommonAxis(5, (4, 0)), _CommonAxis(4, (1, 0))])
    [_CommonAxis(length=3, steps=(20, 4)), _CommonAxis(length=20, steps=(1, 0))]
    """
    found: list[_CommonAxis] = []
    for axis in axes:
        evenly = found and all(
            outer == axis.length * inner for outer, inner in zip(found[-1].steps, axis.steps, strict=True)
        )
        if evenly:
            found[-1] = _CommonAxis(found[-1].length * axis.length, axis.steps)
        else:
            found.append(axis)
    return found


class ProductsCall(NamedTuple):
    """How arrays of known types, shapes and strides are multiplied element by element.

    Attributes
    ----------
    problem : what the kernel computes.
    swapped : whether the second array is its x.
    shape : of the result, which is C-contiguous.
    numbers : what the kernel takes: `product_sizes`.
    work : in multiply-adds.
    """

    problem: SumOfProducts
    swapped: bool
    shape: tuple[int, ...]
    numbers: tuple[int, ...]
    work: int

    @property
    def run(self) -> int:
        """Elements that vectors go along: summed ones where all operands walk these, else of the result."""
        return self.numbers[4 if self.problem.walk is Walk.ALONG else 3]

    def __call__(self, *operands: Array) -> Array:
        """The result."""
        found = new_array(self.shape, operands[0].dtype)
        self.into(operands, found)
        return found

    def into(self, operands: Sequence[Array], out: Array) -> None:
        """Writes the result into a C-contiguous array."""
        factors = operands[::-1] if self.swapped else operands
        kernel: Kernel = kernel_for(self.problem)
        kernel.launch((*map(data_address, (*factors, out)), *self.numbers), self.work)


@lru_cache(maxsize=_PLANS)
def plan_products(
    labels: tuple[str, ...],
    wanted: str,
    dtype: np.dtype[Any],
    shapes: tuple[tuple[int, ...], ...],
    strides: tuple[tuple[int, ...], ...],
) -> ProductsCall | None:
    """How operands of these labels become a C-contiguous result; None where there is no kernel that suits.

    Parameters
    ----------
    labels : of one or two operands; a label may be repeated.
    wanted : those of the result.
    dtype : of operands and result.
    strides : in bytes; elements are aligned.

    Examples
    --------
    >>> found = plan_products(("ij",), "j", np.dtype("f4"), ((3, 4),), ((16, 4),))
    >>> found.problem.walk, found.shape
    (<Walk.ACROSS: 'across'>, (4,))
    """
    kind = _computed(dtype)
    if kind is None:
        return None
    sizes: dict[str, int] = {}
    steps: list[dict[str, int]] = []
    for own, shape, places in zip(labels, shapes, strides, strict=True):
        found: dict[str, int] = {}
        for label, size, step in zip(own, shape, places, strict=True):
            if size > 1 and step % dtype.itemsize:
                return None
            sizes[label] = max(size, sizes.get(label, 1)) if size else 0
            found[label] = found.get(label, 0) + (step // dtype.itemsize if size > 1 else 0)
        steps.append(found)
    shape = tuple(sizes[label] for label in wanted)
    if 0 in sizes.values():
        return None
    result, step = {}, 1
    for label in reversed(wanted):
        result[label], step = step, step * sizes[label]
    axes = {
        label: _CommonAxis(size, (*(found.get(label, 0) for found in steps), result.get(label, 0)))
        for label, size in sizes.items()
        if size > 1
    }
    kept = _merged([axes[label] for label in wanted if label in axes])
    summed = _merged(
        sorted(
            (axis for label, axis in axes.items() if label not in wanted),
            key=lambda axis: -abs(axis.steps[0]),
        )
    )
    return _arranged(kind, kept, summed, shape, len(labels))


def _arranged(
    kind: DType, kept: list[_CommonAxis], summed: list[_CommonAxis], shape: tuple[int, ...], factors: int
) -> ProductsCall | None:
    """Which axes are rows, columns and turns."""
    if summed:
        found, swapped = _sums(kept, summed, factors)
    elif factors == 2:
        found, swapped = _products(kept)
    else:
        return None
    if found is None:
        return None
    walk, axes = found
    lengths = tuple(axis.length for axis in axes)
    order = _ORDERS[factors, swapped]
    strides = tuple(0 if place is None else axis.steps[place] for place in order for axis in axes)
    work = ELEMENT_WORK * prod(lengths)
    return ProductsCall(SumOfProducts(walk, factors, kind), swapped, shape, (*lengths, *strides), work)


#: Which steps of an axis are those of x, y and z, by the number of factors and whether they are swapped.
_ORDERS: dict[tuple[int, bool], tuple[int | None, ...]] = {
    (1, False): (0, None, 1),
    (2, False): (0, 1, 2),
    (2, True): (1, 0, 2),
}


#: Elements up to which single ones take less time than a call of anything else.
_FEW = 1 << 12


def _few(axes: Sequence[_CommonAxis]) -> bool:
    return prod(axis.length for axis in axes) <= _FEW


def _none(factors: int) -> _CommonAxis:
    return _CommonAxis(1, (0,) * (factors + 1))


def _sums(
    kept: list[_CommonAxis], summed: list[_CommonAxis], factors: int
) -> tuple[tuple[Walk, tuple[_CommonAxis, ...]] | None, bool]:
    """Up to three axes that are kept and two that are summed; adjacent elements make the vectors.

    Whether the second operand is x comes with it.
    """
    if len(kept) > 3 or len(summed) > 2:
        return None, False
    none = _none(factors)
    outer = [none] * (3 - len(kept)) + kept
    first, last = (none, summed[0]) if len(summed) == 1 else summed
    axes = (*outer[:2], first, outer[2], last)
    if all(step == 1 for step in last.steps[:factors]):
        return (Walk.ALONG, axes), False
    match outer[2].steps:
        case (1, 1) | (1, 1, 1):
            return (Walk.ACROSS, axes), False
        case (1, 0, 1):
            return (Walk.WEIGHTED, axes), False
        case (0, 1, 1):
            return (Walk.WEIGHTED, axes), True
        case _:
            return ((Walk.APART, axes) if factors == 1 or _few(kept + summed) else None), False


def _products(kept: list[_CommonAxis]) -> tuple[tuple[Walk, tuple[_CommonAxis, ...]] | None, bool]:
    """Up to five axes; the last is that of vectors. Whether the second operand is x comes with it."""
    if len(kept) > 5 or not kept:
        return None, False
    axes = [_none(2)] * (5 - len(kept)) + kept
    match axes[-1].steps[:2]:
        case (1, 1):
            return (Walk.EACH, tuple(axes)), False
        case (0, 1):
            return (Walk.SPREAD, tuple(axes)), False
        case (1, 0):
            return (Walk.SPREAD, tuple(axes)), True
        case _:
            return ((Walk.SINGLE, tuple(axes)) if _few(kept) else None), False
