"""Long tests come first in the half of each worker, and no test is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from worker_order import LONG, from_the_end, is_long, long_first

TESTS = Path(__file__).parent


@pytest.mark.parametrize(
    ("tests", "expected"),
    [
        ("abCdEfgHij", "CHabdEfgij"),
        ("abcd", "abcd"),
        ("ABCa", "ACBa"),
        ("AB", "AB"),
        ("aB", "Ba"),
        ("", ""),
    ],
)
def test_each_half_begins_with_long_tests(tests: str, expected: str) -> None:
    assert "".join(long_first(tests, str.isupper)) == expected
    assert sorted(expected) == sorted(tests)


def test_every_second_worker_collects_from_the_end() -> None:
    assert [from_the_end(f"gw{number}") for number in range(12)] == [False, True] * 6


@pytest.mark.parametrize("part", LONG)
def test_what_is_long_exists(part: str) -> None:
    assert (TESTS / part).exists()
    assert is_long(TESTS / part)


def test_other_files_are_short() -> None:
    assert not is_long(Path(__file__))
