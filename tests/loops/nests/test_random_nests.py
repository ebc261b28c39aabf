"""The recogniser on nests changed at random: whatever it takes for a product is one."""

from __future__ import annotations

import random

import pytest
from nest_mutations import drawn
from nest_oracle import Memory, evaluated, run_nest, run_product
from nest_text import nest_of
from recognised_nests import RECOGNISED
from refused_nests import REFUSED
from shares import EVERY_TEST_RUNS

from tilewright.loops.nests.nest import CountedLoop, Injective, MatrixProduct, Within
from tilewright.loops.nests.polynomial import Symbol
from tilewright.loops.nests.recognise import contraction

#: Nests that are drawn for each seed; about one in twelve is a product.
DRAWN = 200 if EVERY_TEST_RUNS else 80
#: What the names stand for, those of indices outside of their loops included.
NUMBERS = {"m": 3, "n": 4, "l": 5, "q": 2, "alpha": 3, "beta": -2, "ldA": 130, "ldB": 150, "ldC": 170}
NUMBERS |= dict.fromkeys("ijkpst", 7)


def runs(nest: CountedLoop, memory: Memory) -> bool:
    """Runs a nest; a variable that is read before it is set makes it no program."""
    try:
        run_nest(nest, NUMBERS, memory)
    except KeyError:
        return False
    return True


def applies(product: MatrixProduct) -> bool:
    """Whether the conditions that name sizes hold; elements of C that meet are found as they are stored."""
    values = {Symbol(name): number for name, number in NUMBERS.items()}
    for condition in product.conditions:
        if isinstance(condition, Within) and evaluated(condition.value, values) < 0:
            return False
    return True


@pytest.mark.parametrize("seed", range(2))
def test_what_is_found_is_what_the_nest_does(seed: int) -> None:
    rng = random.Random(seed)
    products = 0
    for _ in range(DRAWN):
        row = rng.choice([*RECOGNISED, *REFUSED])
        text = drawn(row, rng)
        try:
            nest = nest_of(text, row.layouts)
        except (AssertionError, ValueError):  # subscripts that its layout has not
            continue
        product = contraction(nest)
        original, replaced = Memory(), Memory()
        if not isinstance(product, MatrixProduct) or not applies(product) or not runs(nest, original):
            continue
        products += 1
        try:
            run_product(product, NUMBERS, replaced)
        except AssertionError:
            assert Injective() in product.conditions, text
            continue
        places = set(original) | set(replaced)
        assert all(original[place] == replaced[place] for place in places), text
    assert products > DRAWN // 50
