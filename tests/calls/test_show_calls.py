"""What `show_calls` and `explain` say of the way that calls take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.calls.layout import native_entry_possible
from tilewright.calls.repeated import CallCount, replay

pytestmark = pytest.mark.skipif(not native_entry_possible(), reason="no native entries in this interpreter")

SCALAR: Any = np.float64(2.5)
A = np.ones((3, 5))
B = np.ones((5, 4))


class Subclass(np.ndarray[Any, Any]):
    """A class of arrays that is not NumPy's own."""


def counted() -> CallCount:
    found = [one for one in tw.show_calls() if one.function == "matmul"]
    return found[0] if found else CallCount("matmul", 0, 0, {})


def test_calls_are_counted() -> None:
    tw.matmul(A.tolist(), B)  # from here on, lists of numbers become arrays in machine code
    replay().table.clear()
    before = counted()
    for _ in range(10):
        tw.matmul(A, B, alpha=2.5)
    for _ in range(3):
        tw.matmul(A, B, alpha=SCALAR)
        tw.matmul(A.tolist(), B, alpha=2.5)
    after = counted()
    assert after.repeated - before.repeated == 9 + 2 + 3  # the scalar of NumPy has a key of its own
    assert after.first - before.first == 2
    assert sum(after.python.values()) - sum(before.python.values()) == 0
    assert "matmul" in str(tw.show_calls())


def test_counts_outlive_the_table() -> None:
    before = counted().repeated
    for _ in range(4):
        tw.matmul(A, B, alpha=7.5)
    for _ in range(2):
        replay().table.clear()
        tw.matmul(A, B, alpha=8.5)
    assert counted().repeated - before == 3


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((A, B), None),
        ((np.ones((3, 5)).view(Subclass), B), "does not know"),
    ],
)
def test_explain_names_the_way(arguments: tuple[Any, ...], reason: str | None) -> None:
    replay().table.clear()

    def said() -> str:
        return str(tw.explain(tw.matmul, *arguments, alpha=1.25))

    assert "first call of its kind" in said() or reason is not None
    tw.matmul(*arguments, alpha=1.25)
    assert ("native entry" in said()) is (reason is None)
    assert reason is None or reason in said()
