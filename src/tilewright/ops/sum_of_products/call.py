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
from tilewright.spec.axes import StridedAxis, fused_axes, row_major
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

    def __call__(self, *operands: Array, out: Array | None = None) -> Array:
        """The result in `out`, which is C-contiguous, or in memory of its own."""
        found = new_array(self.shape, operands[0].dtype) if out is None else out
        factors = operands[::-1] if self.swapped else operands
        kernel: Kernel = kernel_for(self.problem)
        kernel.launch((*map(data_address, (*factors, found)), *self.numbers), self.work)
        return found


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
    arrays = (steps[0], steps[1] if len(steps) > 1 else {}, dict(zip(wanted, row_major(shape), strict=True)))
    axes = {label: StridedAxis(size, *(own.get(label) for own in arrays)) for label, size in sizes.items()}
    kept = fused_axes(axes[label] for label in wanted)
    far_first = sorted(
        (axis for label, axis in axes.items() if label not in wanted), key=lambda axis: -abs(axis.step("a"))
    )
    return _call(kind, len(labels), kept, fused_axes(far_first), shape)


def _call(
    kind: DType, factors: int, kept: list[StridedAxis], summed: list[StridedAxis], shape: tuple[int, ...]
) -> ProductsCall | None:
    """The call for fused axes, if a kernel walks them."""
    found = _sums(kept, summed, factors) if summed else _products(kept) if factors == 2 else None
    if found is None:
        return None
    lengths = tuple(axis.size for axis in found.axes)
    order = "bac" if found.swapped else "abc"
    strides = tuple(axis.step(operand) for operand in order for axis in found.axes)
    problem, work = SumOfProducts(found.walk, factors, kind), ELEMENT_WORK * prod(lengths)
    return ProductsCall(problem, found.swapped, shape, (*lengths, *strides), work)


class _Arrangement(NamedTuple):
    """Which axes are batch, outer ones, turns, rows and columns, and whether the second operand is x."""

    walk: Walk
    axes: Sequence[StridedAxis]
    swapped: bool = False


#: Elements up to which single ones take less time than a call of anything else.
_FEW = 1 << 12

#: In place of an axis that is missing.
_NO_AXIS = StridedAxis(1, None, None, None)


def _few(axes: Sequence[StridedAxis]) -> bool:
    return prod(axis.size for axis in axes) <= _FEW


def _sums(kept: list[StridedAxis], summed: list[StridedAxis], factors: int) -> _Arrangement | None:
    """Up to three axes that are kept and two that are summed; adjacent elements make the vectors."""
    if len(kept) > 3 or len(summed) > 2:
        return None
    outer = [_NO_AXIS] * (3 - len(kept)) + kept
    first, last = (_NO_AXIS, summed[0]) if len(summed) == 1 else summed
    axes = (*outer[:2], first, outer[2], last)
    if last.steps[:factors] == (1, 1)[:factors]:
        return _Arrangement(Walk.ALONG, axes)
    match outer[2].steps, factors:
        case ((1, 1, 1), 2) | ((1, 0, 1), 1):
            return _Arrangement(Walk.ACROSS, axes)
        case (1, 0, 1), 2:
            return _Arrangement(Walk.WEIGHTED, axes)
        case (0, 1, 1), 2:
            return _Arrangement(Walk.WEIGHTED, axes, swapped=True)
        case _:
            return _Arrangement(Walk.APART, axes) if factors == 1 or _few(kept + summed) else None


def _products(kept: list[StridedAxis]) -> _Arrangement | None:
    """Up to five axes; the last is that of vectors."""
    if len(kept) > 5 or not kept:
        return None
    axes = [_NO_AXIS] * (5 - len(kept)) + kept
    match axes[-1].steps[:2]:
        case (1, 1):
            return _Arrangement(Walk.EACH, axes)
        case (0, 1):
            return _Arrangement(Walk.SPREAD, axes)
        case (1, 0):
            return _Arrangement(Walk.SPREAD, axes, swapped=True)
        case _:
            return _Arrangement(Walk.SINGLE, axes) if _few(kept) else None
