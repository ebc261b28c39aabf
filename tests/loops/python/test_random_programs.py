"""Functions with loops drawn at random: accelerated, they do the same to arrays, variables and errors.

More of them: ``python tests/recognise/fuzz_python.py SEED COUNT``.
"""

from __future__ import annotations

from python_draws import drawn_calls
from shares import EVERY_TEST_RUNS

#: Functions that are drawn; about one in three runs replaced.
DRAWN = 400 if EVERY_TEST_RUNS else 50


def test_calls_have_the_same_outcome() -> None:
    wrong, became = drawn_calls(1, DRAWN)
    assert not wrong, "\n".join(wrong)
    assert became["all", "ran replaced"] > DRAWN // 8
    assert became["statements", "ran replaced"] > 0
