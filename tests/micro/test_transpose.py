"""Transposes in registers: the shuffles of `rounds`, applied to numbered lanes, give the transpose."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.micro.transpose import rounds

WIDTHS = (1, 2, 4, 8, 16)


@pytest.mark.parametrize("lanes", WIDTHS)
def test_the_rounds_transpose(lanes: int) -> None:
    rows = list(np.arange(lanes * lanes).reshape(lanes, lanes))
    expected = np.array(rows).T
    for distance, low, high in rounds(lanes):
        following = list(rows)
        for row in range(lanes):
            if not row & distance:
                both = np.concatenate((rows[row], rows[row + distance]))
                following[row], following[row + distance] = both[list(low)], both[list(high)]
        rows = following
    np.testing.assert_array_equal(np.array(rows), expected)


@pytest.mark.parametrize("lanes", WIDTHS)
def test_one_round_per_power_of_two(lanes: int) -> None:
    found = rounds(lanes)
    assert [distance for distance, _, _ in found] == [2**power for power in range(lanes.bit_length() - 1)]
    for _, low, high in found:
        assert sorted((*low, *high)) == list(range(2 * lanes)), "no lane is lost or doubled"
