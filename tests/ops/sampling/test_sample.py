"""Sampling of tokens: limits, ties and draws beside a plain reference, distributions, errors."""

from __future__ import annotations

import itertools
import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import Array, rough
from tiers import draws, each_value

import tilewright as tw
from tilewright.errors import InvalidGenerator, InvalidLogits, InvalidScalar, InvalidSize, UnsupportedDtype
from tilewright.ops.sampling import choose


def reference(
    row: list[float],
    draw: float,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
) -> int:
    """The token by a full sort of Python's, one step after the other."""
    if temperature == 0:
        return row.index(max(row))
    ranked = sorted(range(len(row)), key=lambda token: (-row[token], token))[:top_k]
    most = row[ranked[0]]
    weight = {token: math.exp((row[token] - most) / temperature) for token in ranked}
    if top_p is not None:
        total, reached, kept = math.fsum(weight.values()), 0.0, []
        for token in ranked:
            kept.append(token)
            reached += weight[token]
            if reached >= top_p * total:
                break
        ranked = kept
    if min_p is not None:
        ranked = [token for token in ranked if weight[token] >= min_p]
    goal, reached = draw * math.fsum(weight[token] for token in ranked), 0.0
    for token in sorted(ranked):
        reached += weight[token]
        if reached > goal:
            return token
    raise AssertionError("the weights add up to more than the goal")


OPTIONS: dict[str, tuple[Any, ...]] = {
    "temperature": (1.0, 0.3, 4),
    "top_k": (None, 1, 7, 5000),
    "top_p": (None, 0.05, 0.8, 1.0),
    "min_p": (None, 0.02, 1.0),
}


@pytest.mark.parametrize("spread", [1.0, 6.0])
@pytest.mark.parametrize("tokens", [1, 30, 3000])
@each_value
def test_every_combination_of_limits(tokens: int, spread: float) -> None:
    logits = spread * rough((3, tokens), np.float64)
    logits[1, 1 : tokens // 2] = -np.inf
    for values in itertools.product(*OPTIONS.values()):
        options = dict(zip(OPTIONS, values, strict=True))
        found = tw.sample(logits, generator=np.random.default_rng(5), **options)
        given_draws = np.random.default_rng(5).random(3)
        expected = [
            reference(row.tolist(), draw, **options) for row, draw in zip(logits, given_draws, strict=True)
        ]
        assert found.dtype == np.int64
        assert found.tolist() == expected, options


@draws(200)
@given(data=st.data())
def test_rows_with_ties(data: st.DataObject) -> None:
    """Few different logits: weights and their sums are the same in any order of equal ones."""
    row = data.draw(st.lists(st.sampled_from([0.0, 1.0, -2.0, -np.inf]), min_size=1, max_size=20))
    row[data.draw(st.integers(0, len(row) - 1))] = 1.0
    options = {name: data.draw(st.sampled_from(values)) for name, values in OPTIONS.items()}
    seed = data.draw(st.integers(0, 100))
    found = tw.sample(np.array(row), generator=np.random.default_rng(seed), **options)
    assert found == reference(row, np.random.default_rng(seed).random(), **options)


def kept(row: Any, **options: Any) -> set[int]:
    """Tokens that are ever chosen."""
    many = np.broadcast_to(np.asarray(row, np.float64), (400, len(row)))
    return set(tw.sample(many, generator=np.random.default_rng(1), **options).tolist())


def test_of_equal_tokens_the_first_remain() -> None:
    assert kept([0, 5, 0, 5, 5, 0], top_k=2) == {1, 3}
    assert kept([5, 0, 0, 0, 5], top_k=3) == {0, 1, 4}
    assert kept([0, 0, 0, 0], top_p=0.5) == {0, 1}
    assert kept([0, 0, 0, 0], top_p=0.51) == {0, 1, 2}
    assert kept([0, 0, 0, 0], top_p=1e-9) == {0}
    assert kept([0, 0, 0, 0], top_p=1.0) == {0, 1, 2, 3}
    assert kept([0, math.log(0.25), math.log(0.2)], min_p=0.22) == {0, 1}
    assert kept([0, 1, 1], min_p=1.0) == {1, 2}
    assert kept([0, 0, -np.inf], top_k=3) == {0, 1}
    assert tw.sample([[1.0, 7.0, 7.0], [7.0, 7.0, 1.0]], temperature=0).tolist() == [1, 0]
    # The share is one of those that top_k keeps: of two equal tokens, half is one.
    assert kept([0, 0, 0, 0], top_k=2, top_p=0.5) == {0}


def test_a_nucleus_of_many_tokens_is_that_of_a_full_ranking(monkeypatch: pytest.MonkeyPatch) -> None:
    logits = rough((20, 5000), np.float64)
    for share in (0.3, 0.9, 0.999):
        few = tw.sample(logits, top_p=share, generator=np.random.default_rng(2))
        with monkeypatch.context() as patch:
            patch.setattr(choose, "FIRST_RANKED", 5000)
            assert np.array_equal(tw.sample(logits, top_p=share, generator=np.random.default_rng(2)), few)


def test_frequencies_are_the_probabilities() -> None:
    probabilities = np.array([0.5, 0.05, 0.3, 0.15])
    for temperature in (1.0, 0.5):
        many = np.broadcast_to(np.log(probabilities), (20_000, 4))
        found = tw.sample(many, temperature=temperature, generator=np.random.default_rng(3))
        expected = probabilities ** (1 / temperature)
        expected = 20_000 * expected / expected.sum()
        # Chi-squared of three degrees of freedom: above 16.3 once in a thousand seeds.
        assert (((np.bincount(found, minlength=4) - expected) ** 2) / expected).sum() < 16.3


def test_extreme_draws_and_temperatures() -> None:
    class Fixed(np.random.Generator):
        value = 0.0

        def random(self, size: Any = None, *_: Any, **__: Any) -> Any:
            return np.full(size, self.value)

    fixed = Fixed(np.random.PCG64())
    row = np.array([-np.inf, 0.0, -1.0, -2000.0, -np.inf])
    assert tw.sample(row, generator=fixed) == 1
    fixed.value = np.nextafter(1.0, 0.0)
    assert tw.sample(row, generator=fixed) == 2
    assert tw.sample(np.zeros(3), generator=fixed) == 2
    assert tw.sample(row, temperature=5e-324, generator=fixed) == 1
    assert tw.sample(row, temperature=1e300, generator=fixed) == 3


def test_shapes_types_and_generators() -> None:
    logits = rough((2, 3, 50))
    tokens = tw.sample(logits, generator=np.random.default_rng(4))
    assert tokens.shape == (2, 3)
    flat = tw.sample(logits.reshape(6, 50), generator=np.random.default_rng(4))
    assert np.array_equal(tokens.ravel(), flat)
    assert np.array_equal(tw.sample(np.asfortranarray(logits), generator=np.random.default_rng(4)), tokens)
    for dtype in (np.float16, ml_dtypes.bfloat16, np.float64):
        narrow = logits.astype(dtype)
        wide = tw.sample(narrow.astype(np.float64), generator=np.random.default_rng(4))
        assert np.array_equal(tw.sample(narrow, generator=np.random.default_rng(4)), wide)
        greedy = tw.sample(narrow, temperature=0)
        assert np.array_equal(greedy, narrow.astype(np.float64).argmax(axis=-1))
    assert tw.sample(logits[0, 0]).shape == ()
    assert tw.sample(logits[:, :0]).shape == tw.sample(logits[:, :0], temperature=0).shape == (2, 0)
    assert tw.sample(np.zeros((0, 0))).shape == (0,)
    generator = np.random.default_rng(6)
    before = generator.bit_generator.state
    tw.sample(logits, temperature=0, generator=generator)
    assert generator.bit_generator.state == before
    tw.sample(logits, generator=generator)
    other = np.random.default_rng(6)
    other.random(6)
    assert generator.bit_generator.state == other.bit_generator.state
    assert len({tw.sample(np.zeros(1000)).item() for _ in range(20)}) > 1


def test_errors() -> None:
    logits: Array = np.zeros((3, 4))
    for value, words in ((np.nan, "row 1 has NaN or inf"), (np.inf, "row 1 has NaN or inf")):
        wrong = logits.copy()
        wrong[1, 2] = value
        for temperature in (0, 1):
            with pytest.raises(InvalidLogits, match=f"^sample: logits: {words}"):
                tw.sample(wrong, temperature=temperature)
    masked = logits.copy()
    masked[2] = -np.inf
    with pytest.raises(InvalidLogits, match="row 2 has no token above -inf"):
        tw.sample(masked)
    for empty, words in ((np.zeros((3, 0)), "has no token"), (np.float64(3), "has no axis")):
        with pytest.raises(InvalidLogits, match=words):
            tw.sample(empty)
    wrong_options: tuple[dict[str, Any], ...] = (
        *({"temperature": value} for value in (-1, np.nan, np.inf, 1j, "1")),
        *({"top_p": value} for value in (0, 1.1, -0.5, np.nan)),
        *({"min_p": value} for value in (-0.1, 1.5, np.nan)),
    )
    for options in wrong_options:
        with pytest.raises(InvalidScalar, match=next(iter(options))):
            tw.sample(logits, **options)
    wrong_counts: tuple[Any, ...] = (0, -1, 2.0, "3")
    for count in wrong_counts:
        with pytest.raises(InvalidSize, match="top_k"):
            tw.sample(logits, top_k=count)
    sources: tuple[Any, ...] = (7, np.random, np.random.RandomState(0))
    for source in sources:
        with pytest.raises(InvalidGenerator, match=r"numpy\.random\.Generator"):
            tw.sample(logits, generator=source)
    with pytest.raises(UnsupportedDtype):
        tw.sample(logits.astype(complex))
