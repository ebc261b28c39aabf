"""Calls of as many arrays and results as recipes have: the caches of a decoder are two for each layer."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from repeated_calls import python_lines
from support import Array

import tilewright as tw
from tilewright.calls.layout import native_entry_possible
from tilewright.calls.recipes.recipe import MOST_ARRAYS, MOST_RESULTS, MOST_WORDS
from tilewright.calls.recipes.recording import extent
from tilewright.calls.recording import new_array, numpy_call, repeatable
from tilewright.calls.repeated import repeated, replay

pytestmark = pytest.mark.skipif(not native_entry_possible(), reason="no native entries in this interpreter")

RNG = np.random.default_rng(3)


@repeated
def doubled(arrays: tuple[Array, ...], count: int) -> tuple[Array, ...]:
    """The doubles of the last arrays."""
    found = []
    for one in arrays[-count:]:
        found.append(new_array(one.shape, one.dtype))
        numpy_call(np.add, one, one, found[-1])
    repeatable()
    return tuple(found)


@pytest.mark.parametrize("arrays", [9, MOST_ARRAYS])
@pytest.mark.parametrize("results", [1, 5, MOST_RESULTS])
def test_many_arrays_and_results(arrays: int, results: int) -> None:
    results = min(arrays, results)
    for _ in range(3):
        given = tuple(RNG.standard_normal((2, 3)) for _ in range(arrays))
        found: list[Any] = []
        lines = python_lines(lambda g=given, f=found: f.append(doubled(g, results)))  # type: ignore[misc]
        assert len(found[0]) == results
        for one, expected in zip(found[0], given[-results:], strict=True):
            assert np.array_equal(one, 2 * expected)
    assert lines == 0


def test_more_of_them_are_python_s() -> None:
    many = tuple(np.ones(2) for _ in range(MOST_ARRAYS + 1))
    for arrays, results in ((MOST_ARRAYS + 1, 1), (MOST_RESULTS + 1, MOST_RESULTS + 1)):
        for _ in range(3):
            assert len(doubled(many[:arrays], results)) == results
        assert python_lines(lambda a=arrays, r=results: doubled(many[:a], r)) > 0  # type: ignore[misc]


def relations(arrays: list[Array]) -> int:
    """Words of a key that say which arrays meet."""
    key = replay().key(doubled.__self__, (tuple(arrays), 1), {})  # type: ignore[attr-defined]
    assert key is not None
    apart = replay().key(doubled.__self__, (tuple(map(np.zeros_like, arrays)), 1), {})  # type: ignore[attr-defined]
    assert apart is not None
    return (len(key.words) - len(apart.words)) // 8


@pytest.mark.parametrize("order", ["ascending", "descending", "random"])
def test_arrays_that_meet_are_in_the_key_in_any_order(order: str) -> None:
    """Parts of one array, of which some overlap."""
    memory = np.zeros(10_000)
    starts = np.sort(RNG.integers(0, 9_900, 120))
    starts = {"ascending": starts, "descending": starts[::-1], "random": RNG.permutation(starts)}[order]
    arrays = [memory[start : start + 40] for start in starts]
    places = [extent(one)[:2] for one in arrays]
    pairs = itertools.combinations(places, 2)
    expected = sum(low < end and begin < high for (low, high), (begin, end) in pairs)
    assert expected > 20
    assert relations(arrays) == expected
    assert relations(arrays[::2]) < expected


def test_which_arrays_meet_is_in_the_key() -> None:
    """Arrays beyond the first ones, one element apart."""
    memory = np.zeros(500)
    apart = [memory[2 * place : 2 * place + 1] for place in range(200)]

    def key(*changed: int) -> bytes:
        arrays = list(apart)
        arrays[changed[0]] = arrays[changed[1]]
        found = replay().key(doubled.__self__, (tuple(arrays), 1), {})  # type: ignore[attr-defined]
        assert found is not None
        return found.words

    assert len({key(150, 10), key(150, 26), key(151, 10), key(22, 10), key(23, 10)}) == 5


def test_more_relations_than_a_key_has_are_python_s() -> None:
    """All of these meet, in pairs whose number is above that of the words."""
    memory = np.ones((100, 100))
    columns = tuple(memory[:, place] for place in range(100))
    assert MOST_WORDS < 100 * 99 // 2
    for _ in range(3):
        assert np.array_equal(doubled(columns, 1)[0], np.full(100, 2.0))
    assert python_lines(lambda: doubled(columns, 1)) > 0


def test_a_graph_of_many_inputs() -> None:
    g = tw.Graph()
    names = [f"cache{number}" for number in range(100)]
    inputs = [g.input(name, "f32", (4, 8)) for name in names]
    total = inputs[0]
    for one in inputs[1:]:
        total = total + one
    g.output(total)
    run = g.compile()
    for _ in range(3):
        arrays = [RNG.standard_normal((4, 8)).astype(np.float32) for _ in inputs]
        named = dict(zip(names[9:], arrays[9:], strict=True))
        found: list[Any] = []
        lines = python_lines(lambda a=arrays, n=named, f=found: f.append(run(*a[:9], **n)))  # type: ignore[misc]
        np.testing.assert_allclose(found[0], sum(arrays), rtol=1e-5, atol=1e-5)
    assert lines == 0
