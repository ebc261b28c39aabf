"""Functions around nests drawn at random, calls of them with arrays drawn at random, and their outcomes."""

from __future__ import annotations

import ast
import linecache
import random
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from textwrap import indent
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from nest_mutations import drawn
from python_forms import PYTHON_FORMS
from python_statements import StatementWriter
from recognised_nests import RECOGNISED
from refused_nests import REFUSED

import tilewright as tw
from tilewright.loops.python import calls, vector_call, vector_code
from tilewright.spec.dtype import DTYPES

Array = np.ndarray[Any, Any]

#: Shapes by the number of subscripts: larger than most that the nests name, not than all.
SHAPES = {1: (600,), 2: (40, 40), 3: (12, 14, 15), 4: (8, 9, 8, 9)}
#: What m, n, l and q may be.
SIZES = ([7, 7, 6, 7, 6, 5, 0, -1], [6, 7, 7, 6, 5, 1, 0], [5, 8, 9, 6, 5, 7, 0], [3, 4, 2])
#: The function around a nest; what is assigned in the nest is returned.
HEAD = "def f(A, B, C, D, m, n, l, q, alpha, beta, p=1, i=9, j=9, k=9, s=0, t=0):\n"
RETURNED = {"variables of loops": "i, j, k", "all variables": "i, j, k, s, t", "nothing": "None"}
#: Types of arrays; others that one array in twenty has.
TYPES, OTHERS = ("i8", "i8", "f8", "f8", "f4", "c16", "i1", "u2"), ("f4", "i4", "f2", "?", "O")


#: Where nests are from.
FAMILIES = ("forms", "changed forms", "recognised", "statements")
#: Constants that keep small nests as they are, and values that do not.
SMALL = (
    (calls, "FEWEST_ITERATIONS", 1),
    (vector_call, "FEWEST_ITERATIONS", 1),
    (vector_code, "STRIP", 3),
)
#: What becomes of nests.
OUTCOMES = ("drawn", "replaced", "ran replaced", "refused", "wrong")
#: Values of floats up to which outcomes are compared.
LARGEST = 1e6


class DrawnCall(NamedTuple):
    """One call, replaced and as it is written.

    Attributes
    ----------
    family : where the nest is from: forms of Python, recognised ones, statements written at random.
    text : of the nest.
    replaced, ran : whether a nest was replaced, and whether the replacement ran.
    wrong : how the outcomes differ; empty if they do not.
    """

    family: str
    text: str
    replaced: bool
    ran: bool
    wrong: str


def function_of(text: str, returned: str, name: str) -> tuple[Callable[..., Any], dict[str, int]]:
    """A function with a nest, whose source Python finds, and how many subscripts its arrays have."""
    source = f"{HEAD}{indent(text, '    ')}\n    return {returned}\n"
    for dtype in DTYPES:
        source = source.replace(f"{dtype}(", "(")
    file = f"<drawn {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"np": np}
    exec(compile(source, file, "exec"), namespace)
    axes: dict[str, int] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Subscript):
            count = len(node.slice.elts) if isinstance(node.slice, ast.Tuple) else 1
            array = ast.unparse(node.value)
            axes[array] = max(axes.get(array, 0), count)
    return namespace["f"], axes


def outcome(function: Callable[..., Any], arrays: list[Array], numbers: dict[str, int]) -> str:
    """What a call returns, types included, or the error that it ends in."""
    try:
        return repr(function(*arrays, **numbers))
    except (IndexError, ValueError, TypeError, NameError, ArithmeticError, AttributeError) as error:
        return repr(error)


def arrays_of(seed: int, axes: dict[str, int], *, wide: bool = False) -> list[Array]:
    """The same arrays for the same seed; some share memory, some are too small, some of another type.

    Floats of `wide` ones have 64 bits, whichever was drawn.
    """
    rng = np.random.default_rng(seed)
    dtype = TYPES[rng.integers(len(TYPES))]
    small = rng.integers(8) == 0
    found = []
    for name in "ABCD":
        shape = SHAPES[axes.get(name, 2)]
        if small and rng.integers(3) == 0:
            shape = tuple(int(rng.integers(3, 8)) for _ in shape)
        own = OTHERS[rng.integers(len(OTHERS))] if rng.integers(20) == 0 else dtype
        values = rng.integers(-3, 4, shape)
        if name == "D" and len(shape) == 2:
            values += 9 * np.eye(*shape, dtype=values.dtype)  # so that factorisations have no zeros
        wider = wide and np.dtype(own).kind in "fc"
        found.append(values.astype(np.result_type(own, np.float64) if wider else own))
    kind = rng.integers(12)
    if kind == 0:
        found[2] = found[rng.integers(2)]
    elif kind == 1 and found[0].ndim == found[2].ndim:
        found[2] = found[0][tuple(slice(int(rng.integers(3)), None) for _ in range(found[0].ndim))]
    elif kind == 2:
        found[1] = found[1].T
    elif kind == 3:
        found[2] = found[3]
    return found


def same(one: Array, other: Array) -> bool:
    """Whether arrays are equal, or close where their values are no small integers.

    What has overflowed is infinite or NaN: factors are applied to sums (docs/reference/accelerate.md).

    Floats that have grown have grown from rounding errors, too: the same nests with integers tell more.
    """
    if one.dtype == other.dtype == object:
        return repr(one.tolist()) == repr(other.tolist())  # NaN included
    if one.dtype != other.dtype or one.dtype.kind not in "fc":
        return one.dtype == other.dtype and bool((one == other).all())
    limit = 1e-2 if one.dtype == np.float16 else 1e-3 if one.dtype in (np.float32, np.complex64) else 1e-8
    scale = np.abs(other[np.isfinite(other)]).max(initial=1)
    if scale > LARGEST:
        return True
    some = np.isfinite(one) | np.isfinite(other)
    one, other = one[some], other[some]
    return bool(np.allclose(one, other, rtol=limit, atol=limit * min(float(scale), 1e3)))


def difference(
    fast: Callable[..., Any],
    function: Callable[..., Any],
    ours: list[Array],
    theirs: list[Array],
    numbers: dict[str, int],
) -> tuple[str, bool]:
    """How outcomes of a function replaced and as it is written differ, and whether a float has overflowed."""
    with np.errstate(all="ignore"):
        results = outcome(fast, ours, numbers), outcome(function, theirs, numbers)
    wrong = "" if _alike(*results) else f"{results[0]} instead of {results[1]}"
    for letter, one, other in zip("ABCD", ours, theirs, strict=True):
        with np.errstate(all="ignore"):
            wrong = wrong or ("" if same(one, other) else f"{letter} differs, of {one.dtype}")
    floats = [one for one in theirs if one.dtype.kind in "fc"]
    return wrong, not all(np.isfinite(one).all() for one in floats)


def drawn_call(rng: random.Random, name: str) -> DrawnCall | None:
    """One nest and one call of it; None where the text is no program."""
    family, text = _drawn_text(rng)
    if "hole" in text:
        return None
    try:
        function, axes = function_of(text, RETURNED[rng.choice(list(RETURNED))], name)
    except SyntaxError:
        return None
    axes = {} if family in ("forms", "changed forms") else axes
    fast = tw.accelerate(function)
    nests = [nest for nest in tw.accelerate.report(fast) if nest.replaced]
    numbers = {size: rng.choice(sizes) for size, sizes in zip("mnlq", SIZES, strict=True)}
    numbers |= {"alpha": rng.choice([2, -1]), "beta": rng.choice([0, 1, -2])}
    if not nests:
        return DrawnCall(family, text, replaced=False, ran=False, wrong="")
    seed = rng.randrange(1 << 30)
    wrong, overflowed = difference(fast, function, arrays_of(seed, axes), arrays_of(seed, axes), numbers)
    ran = any(nest.call is not None and nest.call.runs for nest in nests)
    if wrong and overflowed:  # a maximum with NaN or infinity is a number that depends on the order of sums
        pair = arrays_of(seed, axes, wide=True), arrays_of(seed, axes, wide=True)
        wrong, _ = difference(fast, function, *pair, numbers)
    wrong = f"{wrong} ({numbers}, seed {seed})" if wrong else ""
    return DrawnCall(family, text, replaced=True, ran=ran, wrong=wrong)


def _drawn_text(rng: random.Random) -> tuple[str, str]:
    """The family and the text of a nest."""
    family = rng.choice((*FAMILIES, "statements"))
    match family:
        case "forms":
            return family, rng.choice(PYTHON_FORMS).text
        case "changed forms":
            return family, drawn(rng.choice(PYTHON_FORMS), rng)
        case "recognised":
            return family, drawn(rng.choice([*RECOGNISED, *REFUSED]), rng)
        case _:
            return family, StatementWriter(rng).nest()


def _alike(one: str, other: str) -> bool:
    """Whether results are alike: sums of floats are equal in their first digits, in the type of NumPy."""
    inexact = [text.count("np.float") + text.count("np.complex") for text in (one, other)]
    return one == other or inexact[0] == inexact[1] > 0


def drawn_calls(seed: int, count: int) -> tuple[list[str], Counter[tuple[str, str]]]:
    """What differs among the nests drawn for a seed, and what became of how many, by family.

    Nests run replaced however few iterations they have, and triangles are cut into short strips.
    """
    rng = random.Random(seed)
    found: list[str] = []
    became: Counter[tuple[str, str]] = Counter()
    with ExitStack() as changed, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Integers of Python grow with each product, and are compared as text.
        changed.callback(sys.set_int_max_str_digits, sys.get_int_max_str_digits())
        sys.set_int_max_str_digits(0)
        for module, constant, value in SMALL:
            changed.enter_context(mock.patch.object(module, constant, value))
        while became["all", "drawn"] < count:
            call = drawn_call(rng, f"{seed}, {became['all', 'drawn']}")
            if call is None:
                continue
            for family in ("all", call.family):
                became[family, "drawn"] += 1
                became[family, "replaced" if call.replaced else "refused"] += 1
                became[family, "ran replaced"] += call.ran
                became[family, "wrong"] += bool(call.wrong)
            if call.wrong:
                found.append(f"seed {seed}: {call.wrong}\n{call.text}")
    return found, became
