"""Functions with loops changed at random: accelerated, they do the same to arrays, variables and errors."""

from __future__ import annotations

import ast
import linecache
import random
from collections.abc import Callable
from textwrap import indent
from typing import Any

import numpy as np
import pytest
from nest_layouts import Row
from nest_mutations import drawn
from recognised_nests import RECOGNISED
from refused_nests import REFUSED
from shares import EVERY_TEST_RUNS

import tilewright as tw
from tilewright.spec.dtype import DTYPES

Array = np.ndarray[Any, Any]

#: Functions that are drawn for each seed; about one in four runs a product.
DRAWN = 120 if EVERY_TEST_RUNS else 60
#: Shapes by the number of subscripts: larger than most that the nests name, not than all.
SHAPES = {1: (600,), 2: (40, 40), 3: (12, 14, 15), 4: (8, 9, 8, 9)}
#: Nests on rows and columns, beside those on elements.
ROWS = [
    Row("", "", text)
    for text in (
        "for i in range(m):\n for j in range(n):\n  C[i, j] = np.dot(A[i, :], B[:, j])",
        "for i in range(m):\n for j in range(n):\n  C[i, j] += alpha * (A[i, 0:l] @ B[0:l, j])",
        "for i in range(m):\n C[i, :] = 0\n for k in range(l):\n  C[i, :] += A[i, k] * B[k, :]",
        "for i in range(m):\n for k in range(l):\n  C[i, q:n] += A[i, k] * B[k, q:n]",
        "for i in range(m):\n for k in range(l):\n  C[i, i:n] += A[i, k] * A[i:n, k]",
        "for k in range(l):\n C[:, :] += alpha * A[k, :] * B[:, k]",
    )
]
#: What m, n, l and q may be.
SIZES = ([7, 7, 6, 0, -1], [6, 7, 1, 0], [5, 8, 9, 0], [3, 4])
#: The function around a nest; what is assigned in the nest is returned.
HEAD = "def f(A, B, C, D, m, n, l, q, alpha, beta, p=1, i=9, j=9, k=9, s=0, t=0):\n"
RETURNED = {"variables of loops": "i, j, k", "all variables": "i, j, k, s, t"}


def function_of(text: str, returned: str, name: str) -> tuple[Callable[..., Any], dict[str, int]]:
    """A function with a nest, whose source Python finds, and how many subscripts its arrays have."""
    source = f"{HEAD}{indent(text, '    ')}\n    return {returned}\n"
    for dtype in DTYPES:
        source = source.replace(f"{dtype}(", "(")
    file = f"<drawn {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"np": np}
    exec(compile(source, file, "exec"), namespace)
    axes = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Subscript):
            axes[ast.unparse(node.value)] = len(node.slice.elts) if isinstance(node.slice, ast.Tuple) else 1
    return namespace["f"], axes


def outcome(function: Callable[..., Any], arrays: list[Array], numbers: dict[str, int]) -> str:
    """What a call returns, types included, or the error that it ends in."""
    try:
        return repr(function(*arrays, **numbers))
    except (IndexError, ValueError, TypeError, NameError, OverflowError) as error:
        return repr(error)


def arrays_of(seed: int, axes: dict[str, int]) -> list[Array]:
    """The same arrays for the same seed; in one of eight cases C is A."""
    rng = np.random.default_rng(seed)
    found = [rng.integers(-3, 4, SHAPES[axes.get(name, 2)]) for name in "ABCD"]
    if rng.integers(8) == 0:
        found[2] = found[0]
    return found


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("returned", RETURNED)
def test_calls_have_the_same_outcome(returned: str) -> None:
    rng = random.Random(len(returned))
    called = 0
    for number in range(DRAWN):
        text = drawn(rng.choice([*RECOGNISED, *REFUSED, *ROWS, *ROWS, *ROWS]), rng)
        if "hole" in text:
            continue
        function, axes = function_of(text, RETURNED[returned], f"{returned} {number}")
        fast = tw.accelerate(function)
        nests = [nest for nest in tw.accelerate.report(fast) if nest.replaced]
        if not nests:
            continue
        numbers = {name: rng.choice(sizes) for name, sizes in zip("mnlq", SIZES, strict=True)}
        numbers |= {"alpha": rng.choice([2, -1]), "beta": rng.choice([0, 1, -2])}
        ours, theirs = arrays_of(number, axes), arrays_of(number, axes)
        assert outcome(fast, ours, numbers) == outcome(function, theirs, numbers), text
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=text)
        called += any(not nest.as_written for nest in nests)
    assert called > DRAWN // 10
