"""What tests of the installation share: loops that take everything, random operands, bounds of errors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import tilewright as tw
from tilewright.installation import names
from tilewright.installation.rows import LETTERS
from tilewright.installation.state import state
from tilewright.installation.thresholds import NEVER

#: Bits that a sum of k terms may lose, in units of the type's epsilon times the sum of magnitudes.
UNITS = 4.0

_LIMITS = ("_LEAST_OF_BLAS", "_LEAST", "_LEAST_CONTRACTION", "_LEAST_KRON")


@contextmanager
def taking_everything() -> Iterator[Any]:
    """Context in which kernels take the smallest products, too; gives the loops."""
    with tw.installed():
        loops = state().loops
        assert loops is not None
        limits = {name: getattr(names, name) for name in _LIMITS}
        for row in loops.table.rows:
            row.least[:] = [least if least == NEVER else 1 for least in row.least]
            row.least_product = row.least_depth = row.least_side = row.least_columns = 1
            row.least_alone = 1
        for name in _LIMITS:
            setattr(names, name, 1)
        try:
            yield loops
        finally:
            for row, letter in zip(loops.table.rows, LETTERS, strict=True):
                loops.limit(row, letter)
            for name, limit in limits.items():
                setattr(names, name, limit)


def taken(loops: Any, letter: str) -> int:
    """Calls of all functions that kernels took of a type."""
    return sum(loops.table.rows[LETTERS.index(letter)].taken)


def numbers(rng: np.random.Generator, shape: tuple[int, ...], letter: str) -> Any:
    """Random numbers of a type: all integers, floats of a few sizes."""
    dtype = np.dtype(letter)
    if dtype.kind in "iu":  # of the very type: where long has 64 bits, generators make no long long
        return np.frombuffer(rng.bytes(math.prod(shape) * dtype.itemsize), dtype).reshape(shape)
    found = rng.standard_normal(shape) * 2.0 ** rng.integers(-4, 4, shape)
    if dtype.kind == "c":
        found = found + 1j * rng.standard_normal(shape)
    return found.astype(dtype)


def laid_out(rng: np.random.Generator, array: Any) -> Any:
    """The same numbers with random strides: axes in any order, gaps, steps of either sign, broadcast axes."""
    order = rng.permutation(array.ndim)
    gaps = rng.integers(1, 4, array.ndim) if rng.random() < 0.5 else np.ones(array.ndim, int)
    room = np.zeros(
        [int(array.shape[axis] * gap) for axis, gap in zip(order, gaps, strict=True)], array.dtype
    )
    view = room[tuple(slice(None, None, int(gap)) for gap in gaps)].transpose(np.argsort(order))
    flips = tuple(slice(None, None, -1 if rng.random() < 0.3 else 1) for _ in range(array.ndim))
    view = view[flips]
    view[...] = array
    return view


def assert_close(found: Any, expected: Any, magnitude: Any, depth: int) -> None:
    """Integers equal; floats within the error of a sum of `depth` terms, and of their one rounding."""
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    if found.dtype.kind in "iu":
        np.testing.assert_array_equal(found, expected)
        return
    info = np.finfo(found.dtype)
    kept = np.finfo(np.float32).eps if found.dtype == np.float16 else info.eps
    wide = np.complex256 if found.dtype.kind == "c" else np.longdouble
    bound = UNITS * (np.sqrt(depth) + 8) * kept * magnitude + np.abs(expected.astype(wide)) * info.eps
    assert (np.abs(found.astype(wide) - expected.astype(wide)) <= bound + info.tiny).all()
