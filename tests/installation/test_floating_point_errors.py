"""Floating-point warnings and errors of products that kernels take: NumPy's, whichever thread finds them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from installed_loops import taken, taking_everything

import tilewright as tw


def messages(function: Any, *operands: Any) -> set[str]:
    """The warnings of a call."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function(*operands)
    return {str(one.message) for one in found}


def cases(letter: str, size: int) -> dict[str, tuple[Any, Any]]:
    """Operands that raise errors, and others that seem to."""
    big = np.finfo(letter).max / 2
    ones = np.ones((size, size), letter)
    large, infinite, nan, tiny = (ones.copy() for _ in range(4))
    large[3, :] = big
    infinite[2, 1] = np.inf
    nan[1, 1] = np.nan
    opposite = infinite.copy()
    opposite[2, 2] = -np.inf
    zero = np.zeros((size, size), letter)
    mixed = infinite.copy()
    mixed[0, 0] = np.nan
    tiny[...] = np.finfo(letter).tiny
    return {
        "overflow": (large, ones),
        "infinite": (infinite, ones),
        "infinite on the right": (ones, infinite),
        "nan": (nan, ones),
        "inf - inf": (opposite, ones),
        "inf * 0": (infinite, zero),
        "inf * 0 beside nan": (mixed, zero),
        "overflow of a column": (ones, large.T.copy()),
        "finite": (ones, ones),
    }


@pytest.mark.parametrize("letter", "efdFD")
@pytest.mark.parametrize("size", [21, 130])
def test_warnings_are_those_of_numpy(letter: str, size: int) -> None:
    given = cases(letter, size)
    expected = {name: messages(np.matmul, *operands) for name, operands in given.items()}
    with taking_everything() as loops:
        before = taken(loops, letter)
        found = {name: messages(np.matmul, *operands) for name, operands in given.items()}
        assert taken(loops, letter) > before
    for name, text in found.items():
        if name in QUIET and (letter not in "FD" or "infinite" not in name):
            assert not text
        elif letter in "FD":  # BLAS scales sums by 1 + 0i, and thus multiplies infinite ones by zero
            assert text <= expected[name]
            assert (OVERFLOW in text) is (OVERFLOW in expected[name])
        else:
            assert text == expected[name]


OVERFLOW = "overflow encountered in matmul"
#: Results of these are what the operands say; BLAS may warn, since it multiplies by zeros beside its tiles.
QUIET = {"infinite", "infinite on the right", "nan", "finite"}


def test_errors_of_other_threads_are_seen() -> None:
    before = tw.get_num_threads()
    size = 300
    ones = np.ones((size, size), np.float32)
    tw.set_num_threads(2)
    try:
        with tw.installed():
            for row in (0, 150, size - 1):
                for _ in range(3):
                    large = ones.copy()
                    large[row] = 3e38
                    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow"):
                        large @ ones
                    with np.errstate(all="raise"):
                        ones @ ones
    finally:
        tw.set_num_threads(before)


def test_errors_of_what_was_before_stay() -> None:
    """One call of a loop that fails, and another that does not."""
    a = np.ones((2, 3, 40, 40))
    a[0, 1] = 1e308
    with taking_everything(), np.errstate(all="raise"):
        with pytest.raises(FloatingPointError, match="overflow"):
            np.matmul(a, np.ones((40, 40)) * 10)
        with pytest.raises(FloatingPointError, match="underflow"):
            np.matmul(np.full((20, 20), 1e-300), np.full((20, 20), 1e-300))


def test_integers_and_errstate() -> None:
    a = np.full((30, 30), 2**62)
    with taking_everything(), np.errstate(all="raise"):
        np.testing.assert_array_equal(a @ a, np.zeros((30, 30), int))


def test_float16_overflows_when_it_is_stored() -> None:
    a = np.full((20, 20), 60.0, np.float16)
    with taking_everything():
        assert messages(np.matmul, a, a) == {"overflow encountered in matmul"}
        sums = np.full((20, 400), 16.0, np.float16) @ np.full((400, 20), 0.5, np.float16)
    np.testing.assert_array_equal(sums, 3200.0)
