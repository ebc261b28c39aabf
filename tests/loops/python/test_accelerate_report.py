"""`tilewright.accelerate.report`: which loops stay, and why; and what cannot be accelerated at all."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import python_programs as programs

import tilewright as tw
from tilewright.errors import NotAccelerated, SourceMissing

Array = np.ndarray[Any, Any]


def early(A: Array, B: Array, C: Array) -> None:
    for i in range(7):
        for k in range(7):
            if A[i, k] == 0:
                break
            C[i] += A[i, k] * B[k]


def divided(A: Array, B: Array, C: Array) -> None:
    for i in range(7):
        for k in range(7):
            C[i] += A[i, k] / B[k]


def called(A: Array, B: Array, C: Array) -> None:
    for i in range(7):
        for k in range(7):
            C[i] += abs(A[i, k]) * B[k]


def indirect(A: Array, B: Array, C: Array, rows: Array) -> None:
    for i in range(7):
        for k in range(7):
            C[i] += A[rows[i], k] * B[k]


def iterated(A: Array, B: Array, C: Array) -> None:
    for i, row in dict(enumerate(A)).items():
        for k in range(7):
            C[i] += row[k] * B[k]


def sliced(A: Array, B: Array, C: Array) -> None:
    for i in range(7):
        for k in range(7):
            C[i, ::2] += A[i, k] * B[k, ::2]


def kept_sum(A: Array, B: Array, C: Array) -> float:
    for i in range(7):
        s = 0.0
        for k in range(7):
            s += A[i, k] * B[k]
        C[i] = s
    return s


def rewritten(A: Array, B: Array, C: Array) -> None:
    for i in range(7):
        for k in range(7):
            C[i] += A[i, k] * B[k]
            i = 0  # noqa: PLW2901


def with_else(A: Array, B: Array, C: Array) -> None:
    for i in range(7):
        for k in range(7):
            C[i] += A[i, k] * B[k]
    else:  # noqa: PLW0120
        C[0] = 0


def unused(A: Array, B: Array, C: Array) -> None:
    for i in range(7):
        t = B[i + 100]
        for k in range(7):
            C[i] += A[i, k] * B[k]
        del t


def taken_in_steps(A: Array, B: Array, C: Array) -> None:
    for i in range(7):
        for k in range(7):
            C[i, :] += A[:, i][k] * B[:, k][0:7]


def growing(A: Array, B: Array, C: Array) -> None:
    for i in range(7):
        for k in range(7):
            C[i, i:7] += A[i, k] * B[k, 0:i]


def idle(A: Array, B: Array, C: Array) -> None:
    for i in range(7):
        t = A[i + 100, 0]
        for k in range(7):
            C[i] += A[i, k] * B[k]
        t = 0.0 + t


def variables_multiplied(A: Array, B: Array, C: Array) -> None:
    for i in range(7):
        for k in range(7):
            C[i] += A[i * k, k] * B[k]
            C[i] += A[i * k, k] * B[k]


REFUSED = [
    (variables_multiplied, "has subscripts that are not affine in loop indices, in line"),
    (idle, "reads elements of A that no product needs, in line"),
    (taken_in_steps, "takes a slice of A instead of an element"),
    (growing, "takes a slice of B whose length varies"),
    (early, "has a condition"),
    (divided, "divides"),
    (called, "calls abs"),
    (indirect, "counts with rows[i]"),
    (iterated, "more than one variable"),
    (sliced, "takes every n-th element of C"),
    (kept_sum, "leaves s"),
    (rewritten, "assigns the loop variable i"),
    (with_else, "else"),
    (unused, "deletes"),
]


@pytest.mark.parametrize(("function", "reason"), REFUSED, ids=[row[0].__name__ for row in REFUSED])
def test_refused(function: Callable[..., Any], reason: str) -> None:
    fast = tw.accelerate(function)
    report = tw.accelerate.report(fast)
    assert not report[0].replaced
    assert reason in report[0].text
    assert report[0].line == function.__code__.co_firstlineno + 1


def test_an_outer_loop_may_stay_around_a_product() -> None:
    fast = tw.accelerate(programs.two_nests)
    report = tw.accelerate.report(fast)
    first = programs.two_nests.__code__.co_firstlineno
    assert [(nest.line - first, nest.replaced) for nest in report] == [(2, False), (4, True), (10, True)]


def test_report_is_readable(caplog: pytest.LogCaptureFixture) -> None:
    fast = tw.accelerate(programs.plain)
    line = programs.plain.__code__.co_firstlineno + 1
    text = str(tw.accelerate.report(fast))
    assert text.startswith(f"line {line}: replaced by ik,kj->ij  (C[m,n] += A[m,k]*B[k,n], m=A.shape[0], ")
    with caplog.at_level(logging.DEBUG, "tilewright"):
        fast(np.ones((2, 2)), np.ones((2, 2)), np.ones((2, 2)))
    assert "few iterations" in caplog.text
    assert str(tw.accelerate.report(fast)).endswith("few iterations are faster as written")


def test_slices_of_different_lengths_run_as_written() -> None:
    fast = tw.accelerate(programs.rows)
    a, b, c = np.ones((7, 9)), np.ones((9, 1)), np.zeros((7, 8))
    fast(a, b, c)
    np.testing.assert_array_equal(c, np.full((7, 8), 9))
    assert tw.accelerate.report(fast)[0].as_written.startswith("slices differ in length")


def test_what_is_called_np_is_looked_at() -> None:
    class Other:
        """A module of that name."""

        @staticmethod
        def dot(left: Array, right: Array) -> float:
            return float(np.max(left * right))

    def own(A: Array, B: Array, C: Array, np: type[Other]) -> None:
        for i in range(7):
            for j in range(7):
                C[i, j] = np.dot(A[i, :], B[:, j])

    fast = tw.accelerate(own)
    c = np.zeros((7, 7))
    fast(np.ones((7, 7)), np.ones((7, 7)), c, Other)
    np.testing.assert_array_equal(c, np.ones((7, 7)))
    assert tw.accelerate.report(fast)[0].as_written == "np is not NumPy"


def test_functions_as_they_were_written() -> None:
    would_be, is_so = (tw.accelerate.report(one) for one in (programs.plain, tw.accelerate(programs.plain)))
    assert str(would_be) == str(is_so)
    assert tw.accelerate.report(programs.plain)[0].replaced


def test_errors() -> None:
    with pytest.raises(NotAccelerated, match="found int"):
        tw.accelerate(3)  # type: ignore[call-overload]
    with pytest.raises(NotAccelerated, match="len, as it is"):
        tw.accelerate.report(len)
    namespace: dict[str, Any] = {}
    exec("def made(): pass", namespace)
    with pytest.raises(SourceMissing, match="the source of made"):
        tw.accelerate(namespace["made"])
