"""Functions with loops, accelerated and as they are: both must have the same outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tilewright as tw

Array = np.ndarray[Any, Any]


def made(dtype: str, shape: tuple[int, int, int] = (11, 13, 12)) -> list[Array]:
    m, n, k = shape
    rng = np.random.default_rng(0)
    return [rng.integers(-4, 5, size).astype(dtype) for size in ((m, k), (k, n), (m, n))]


def same(function: Callable[..., Any], ours: list[Array], theirs: list[Array]) -> Any:
    """Runs a function and its accelerated self, compares outcomes, and returns the report."""

    def outcome(call: Callable[..., Any], arrays: list[Array]) -> str:
        try:
            return repr(call(*arrays))
        except (IndexError, ValueError, TypeError, UnboundLocalError, ArithmeticError) as error:
            return repr(error)

    fast = tw.accelerate(function)
    with np.errstate(over="ignore"):
        assert outcome(fast, ours) == outcome(function, theirs)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)
        assert np.asarray(one).dtype == np.asarray(other).dtype
    return tw.accelerate.report(fast)[0]
