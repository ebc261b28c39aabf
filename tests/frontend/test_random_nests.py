"""The recogniser on nests changed at random: whatever it takes for a product is one."""

from __future__ import annotations

import ast
import random
from textwrap import dedent

import pytest
from nest_layouts import Row
from nest_oracle import Memory, evaluated, run_nest, run_product
from nest_text import nest_of
from recognised_nests import RECOGNISED
from refused_nests import REFUSED

from tilewright.frontend.loops import contraction
from tilewright.frontend.nests import Injective, Loop, Product, Within
from tilewright.frontend.polynomial import Symbol

#: Nests that are drawn for each seed; about one in twelve is a product.
DRAWN = 200
#: Bounds that a loop is given; those with the names of indices make triangles, of which most are not inside
#: of the loop that they name.
BOUNDS = ("i + 1", "j + 1", "j, n", "i, m", "n", "m", "0, m, 2", "3")
#: Names that stand for one another, by kind.
ALIKE = ("ijk", "st", "mnlq")
#: What the names stand for, those of indices outside of their loops included.
NUMBERS = {"m": 3, "n": 4, "l": 5, "q": 2, "alpha": 3, "beta": -2, "ldA": 130, "ldB": 150, "ldC": 170}
NUMBERS |= dict.fromkeys("ijkpst", 7)


def loops_of(tree: ast.AST) -> list[ast.For]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.For)]


def rename(tree: ast.AST, rng: random.Random) -> None:
    names = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    name = rng.choice(names)
    name.id = rng.choice(next((kind for kind in ALIKE if name.id in kind), name.id.split()))


def shuffle(tree: ast.AST, rng: random.Random) -> None:
    rng.shuffle(rng.choice(loops_of(tree)).body)


def move(tree: ast.AST, rng: random.Random) -> None:
    body = rng.choice([loop.body for loop in loops_of(tree) if len(loop.body) > 1] or [[]])
    if body:
        statement = body.pop(rng.randrange(len(body)))
        place = rng.choice(loops_of(tree)).body
        place.insert(rng.randint(0, len(place)), statement)


def repeat(tree: ast.AST, rng: random.Random) -> None:
    body = rng.choice(loops_of(tree)).body
    body.insert(rng.randint(0, len(body)), ast.parse(ast.unparse(rng.choice(body))).body[0])


def drop(tree: ast.AST, rng: random.Random) -> None:
    body = rng.choice(loops_of(tree)).body
    if len(body) > 1:
        body.pop(rng.randrange(len(body)))


def accumulate(tree: ast.AST, rng: random.Random) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and rng.random() < 0.5:
            old = ast.parse(ast.unparse(node.targets[0]), mode="eval").body
            node.value = ast.BinOp(old, rng.choice([ast.Add(), ast.Sub()]), node.value)


def bound(tree: ast.AST, rng: random.Random) -> None:
    rng.choice(loops_of(tree)).iter = ast.parse(f"range({rng.choice(BOUNDS)})", mode="eval").body


MUTATIONS = (rename, rename, rename, shuffle, move, repeat, drop, accumulate, bound, bound)


def drawn(row: Row, rng: random.Random) -> str:
    """The text of a nest, changed in one to three places."""
    tree = ast.parse(dedent(row.text))
    for _ in range(rng.randint(1, 3)):
        rng.choice(MUTATIONS)(tree, rng)
    return ast.unparse(ast.fix_missing_locations(tree))


def runs(nest: Loop, memory: Memory) -> bool:
    """Runs a nest; a variable that is read before it is set makes it no program."""
    try:
        run_nest(nest, NUMBERS, memory)
    except KeyError:
        return False
    return True


def applies(product: Product) -> bool:
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
        if not isinstance(product, Product) or not applies(product) or not runs(nest, original):
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
