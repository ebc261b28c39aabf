"""Transposes in registers: the shuffles of `network`, applied to numbered lanes, give the transpose."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from shares import looped

from tilewright.micro.packing.transpose import ShuffleNetwork, network, perfect_shuffle

WIDTHS = (1, 2, 4, 8, 16)
#: Lanes in 128 bits: elements of 8, 16, 32, 64 and 128 bits.
PARTS = (16, 8, 4, 2, 1)


def shuffled(left: NDArray[np.int64], right: NDArray[np.int64], lanes: tuple[int, ...]) -> NDArray[np.int64]:
    return np.concatenate((left, right))[list(lanes)]


@looped(("lanes", "count"), list(product(WIDTHS, WIDTHS)))
@looped("part", PARTS)
def test_the_network_transposes(lanes: int, count: int, part: int) -> None:
    check_network(network(lanes, count, part), lanes, count)


@pytest.mark.parametrize(
    ("lanes", "together"), [(lanes, 1 << bit) for lanes in WIDTHS for bit in range(lanes.bit_length() - 1)]
)
def test_the_perfect_shuffle_transposes(lanes: int, together: int) -> None:
    whole = lanes * together
    plan = perfect_shuffle(lanes, whole)
    check_network(plan, lanes, lanes)
    each = [lane for pair in zip(range(whole), range(whole, 2 * whole), strict=True) for lane in pair]
    assert all([*found.low, *found.high] == each for found in plan.rounds), "ZIP1 and ZIP2 of single lanes"


def check_network(plan: ShuffleNetwork, lanes: int, count: int) -> None:
    """Numbered lanes come out transposed."""
    block = np.arange(lanes * count).reshape(count, lanes)
    held = [np.concatenate([block[number] for number in group]) for group in plan.joined]
    for distance, low, high in plan.rounds:
        following = list(held)
        for index, vector in enumerate(held):
            if not index & distance:
                other = held[index + distance]
                following[index] = shuffled(vector, other, low)
                following[index + distance] = shuffled(vector, other, high)
        held = following
    found = [held[index][start : start + count] for index, start in plan.results]
    np.testing.assert_array_equal(np.array(found), block.T)


@looped(("lanes", "count"), list(product(WIDTHS, WIDTHS)))
def test_one_round_per_power_of_two(lanes: int, count: int) -> None:
    plan = network(lanes, count, 4)
    square = min(lanes, count)
    assert [found.distance for found in plan.rounds] == [2**bit for bit in range(square.bit_length() - 1)]
    for found in plan.rounds:
        width = 2 * max(lanes, count)
        assert sorted((*found.low, *found.high)) == list(range(width)), "no lane is lost or doubled"
    assert sorted(number for group in plan.joined for number in group) == list(range(count))


@looped("lanes", WIDTHS[1:])
@looped("part", PARTS)
def test_a_square_interleaves_inside_128_bits_and_deals_beyond(lanes: int, part: int) -> None:
    """The forms that are one instruction on every row: no lane leaves its part, or whole parts do."""
    part = min(part, lanes)
    for found in network(lanes, lanes, part).rounds:
        for chosen in (found.low, found.high):
            if found.distance < part:
                assert all(lane % lanes // part == place // part for place, lane in enumerate(chosen))
            else:
                starts = chosen[::part]
                assert all(start % part == 0 for start in starts)
                assert [lane - lane % part for lane in chosen] == [s for s in starts for _ in range(part)]
