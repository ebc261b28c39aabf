"""Changes at random to the text of a nest: names, bounds, statements moved, repeated and dropped."""

from __future__ import annotations

import ast
import random
from textwrap import dedent

from nest_layouts import Row

#: Bounds that a loop is given; those with the names of indices make triangles, of which most are not inside
#: of the loop that they name.
BOUNDS = ("i + 1", "j + 1", "j, n", "i, m", "n", "m", "0, m, 2", "3")
#: Names that stand for one another, by kind.
ALIKE = ("ijk", "st", "mnlq")


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
