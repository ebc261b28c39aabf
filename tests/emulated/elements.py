"""Operands of every element type, and what a product of them may be.

Floats are integers whose products have exact sums in the type of the sums, so that results are right to the
bit, rounded once where C is narrow; or rough numbers, whose results are compared within the bound of a sum of
k products. Integers are of the whole range, or all at its ends.
"""

from __future__ import annotations

import itertools
from enum import Enum
from functools import cache

import numpy as np
from support import Array

from tilewright.spec.dtype import F64, DType, Kind
from tilewright.spec.problem import ProductTypes

#: Elements to cut operands from.
SIZE = 1 << 19
#: Exact operands: 24·24·k is below 2^24 up to k = 29000, and a hundred products do not fit bfloat16.
LARGEST = 24
#: Rough operands are normal variates times powers of two up to this one: float16 holds sums of a thousand.
REACH = 3


class Filling(Enum):
    """What operands hold."""

    EXACT = "exact"
    ROUGH = "rough"
    ENDS = "ends"


@cache
def content(dtype: DType, filling: Filling, seed: int) -> Array:
    """Elements to cut operands from; what the upper half of a byte of four bits holds does not count."""
    random = np.random.default_rng(seed)
    if dtype.is_integer:
        return np.frombuffer(random.bytes(SIZE * dtype.size), dtype.numpy).copy()
    if dtype.kind is Kind.COMPLEX:
        parts = content(dtype.real, filling, seed), content(dtype.real, filling, seed + 1000)
        return (parts[0] + 1j * parts[1]).astype(dtype.numpy)
    if filling is Filling.EXACT:
        return random.integers(-LARGEST, LARGEST + 1, SIZE).astype(dtype.numpy)
    scale = np.exp2(random.integers(-REACH, REACH + 1, SIZE))
    return (random.standard_normal(SIZE) * scale).astype(dtype.numpy)


def ends(dtype: DType) -> tuple[int, int]:
    """The smallest and the largest value of an integer type.

    >>> from tilewright.spec.dtype import I4, U8
    >>> ends(I4), ends(U8)
    ((-8, 7), (0, 255))
    """
    if dtype.kind is Kind.UNSIGNED:
        return 0, (1 << dtype.significand) - 1
    return -(1 << (dtype.significand - 1)), (1 << (dtype.significand - 1)) - 1


def cut(dtype: DType, filling: Filling, seed: int, shape: tuple[int, ...], turn: int) -> Array:
    """One operand, a copy; A is seed 0, B 1 and C 2, and the ends that A and B are at take turns."""
    if filling is Filling.ENDS and seed < 2:
        pairs = list(itertools.product((0, 1), repeat=2))
        return np.full(shape, ends(dtype)[pairs[turn % 4][seed]]).astype(dtype.numpy)
    size = int(np.prod(shape))
    start = turn % 1000
    assert start + size <= SIZE, shape
    return content(dtype, filling, seed)[start : start + size].reshape(shape).copy()


def stored(exact: Array, dtype: DType) -> Array:
    """Results as memory holds them: rounded once, or wrapped around; upper halves of four bits are zero."""
    if dtype.is_integer and dtype.significand < dtype.bits:
        low: Array = (exact & ((1 << dtype.significand) - 1)).astype(np.uint8)
        return low
    with np.errstate(all="ignore"):
        rounded: Array = exact.astype(dtype.numpy)
    return rounded


def _parts(values: Array) -> Array:
    """Sizes of the real and of the imaginary parts."""
    wide = np.asarray(values).astype(np.complex128)
    sizes: Array = np.abs(wide.real) + 1j * np.abs(wide.imag)
    return sizes


def allowed(types: ProductTypes, exact: Array, a: Array, b: Array, extra: Array, alpha: float) -> Array:
    """What each element, or each part of one, may differ by from `stored(exact)`.

    gamma(k + 2)·(|alpha||A||B| + |extra|), with twice the depth where elements are complex, and half of the
    last place of a narrower C; then what storing the expected result changed it by.

    Parameters
    ----------
    a, b : (..., m, k) and (..., k, n): several products are added.
    extra : beta·C.
    """
    left, right = _parts(a), _parts(b)
    real = left.real @ right.real + left.imag @ right.imag
    imaginary = left.real @ right.imag + left.imag @ right.real
    sizes = abs(alpha) * (real + 1j * imaginary)
    depth = a.shape[-1]
    if a.ndim > 2:  # a batch
        sizes, depth = sizes.sum(axis=0), depth * a.shape[0]
    unit = types.acc.unit_roundoff * (2 if types.acc == F64 else 1)  # the reference is rounded too
    count = (2 if types.is_complex else 1) * depth + 2
    bound = count * unit / (1 - count * unit) * (sizes + _parts(extra))
    if types.narrows:
        bound = bound + _half_places(_parts(exact) + bound, types.c.real)
    bound = bound + _parts(stored(exact, types.c).astype(exact.dtype) - exact)
    whole: Array = bound if types.is_complex else bound.real.copy()
    return whole


def _half_places(values: Array, dtype: DType) -> Array:
    """Half of the last place of parts, all positive, in a narrow type; at least that of its subnormals."""
    least = 2 - dtype.bias  # the exponent of frexp of the smallest normal number

    def half(part: Array) -> Array:
        found: Array = np.exp2(np.maximum(np.frexp(part)[1], least) - dtype.significand - 1.0)
        return found

    return half(values.real) + 1j * half(values.imag)
