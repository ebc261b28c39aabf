"""The order in which the operands of an einsum meet: as given, or as opt_einsum finds it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import combinations
from math import inf, prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tilewright.errors import (
    InvalidChoice,
    InvalidPath,
    shown,
)
from tilewright.ops.einsum.subscripts import Indexing
from tilewright.preparing import importing
from tilewright.spec.arguments import as_integers, as_items, as_number, as_text

#: The operands that one step of a contraction takes, by their places in the list that is left; what it
#: makes is appended to the list.
Path: TypeAlias = tuple[tuple[int, ...], ...]

#: Steps of two operands need no search, and one of three has three.
_OPERANDS_OF_ONE_STEP = 2

#: Operands of which opt_einsum's "auto" looks at every order, and so many at most have few enough to list.
_OPERANDS_LISTED = 4

#: Labels whose search is kept.
_TEXTS = 1024


def check_search(optimize: object) -> bool | str | tuple[Any, ...]:
    """`optimize` of a call as a key: a truth, the name of a search, or the items of a path as tuples.

    Raises
    ------
    InvalidPath

    >>> check_search(["einsum_path", [0, 1]]), check_search(None)
    (('einsum_path', (0, 1)), False)
    """
    if optimize is None or isinstance(optimize, (bool, np.bool_)):
        return bool(optimize)
    text = as_text(optimize)
    if text is not None:
        return text
    items = as_items(optimize) if isinstance(optimize, (list, tuple)) else None
    if items is None:
        reason = "it is neither the name of a search nor a list of steps"
        raise InvalidPath(found=shown(optimize), reason=reason)
    named = as_text(items[0]) if items else None
    if named is None:
        return tuple(map(_step, items))
    if named == "einsum_path":
        return (named, *map(_step, items[1:]))
    limit = None if len(items) == 1 or items[1] is None else as_number(items[1])
    unlimited = len(items) == 1 or items[1] is None
    if len(items) > 2 or isinstance(limit, complex) or (limit is None and not unlimited):
        reason = "the second item must be the maximum number of elements of an intermediate result"
        raise InvalidPath(found=shown(optimize), reason=reason)
    return named, limit


def _step(places: object) -> tuple[int, ...]:
    """The operands that one step of a path contracts."""
    items = as_items(places)
    found = None if items is None else as_integers(items)
    if found is None:
        raise InvalidPath(found=shown(places), reason="a step is a tuple of integers")
    return found


def find_path(indexing: Indexing, optimize: Any) -> Path:
    """The order in which operands meet.

    Parameters
    ----------
    optimize : False or None: from left to right; True or "auto", or another name that opt_einsum knows
        ("greedy", "optimal", "dp", ...), which may stand in a tuple with the most elements that an
        intermediate result may have; or a path: a list of tuples, as `numpy.einsum_path` (with its name in
        front) and `opt_einsum.contract_path` return it.

    Raises
    ------
    InvalidChoice : if no search has that name.
    InvalidPath : if the path does not end with one array, or names operands that there are not.

    Examples
    --------
    >>> find_path(lay_over(parse("ij,jk,k"), [(9, 9), (9, 9), (9,)]), "auto")
    ((1, 2), (0, 1))
    """
    count = len(indexing.inputs)
    search, limit = check_search(optimize), None
    if isinstance(search, tuple):
        name = search[0] if search else None
        if not isinstance(name, str):
            return _checked(search, count)
        if name == "einsum_path":
            return _checked(search[1:], count)
        search, limit = name, (search[1] if len(search) > 1 else None)
    known = search if isinstance(search, str) else "auto"
    if count <= _OPERANDS_OF_ONE_STEP and known in ("auto", "greedy", "optimal"):
        return (tuple(range(count)),)
    if not search:
        return _leftmost(count)
    return _searched(indexing, known, limit)


def _leftmost(count: int) -> Path:
    """Operands from left to right: each result is appended to the list that is left.

    >>> _leftmost(4)
    ((0, 1), (0, 2), (0, 1))
    """
    return ((0, 1), *((0, left - 1) for left in range(count - 1, 1, -1)))


def _searched(indexing: Indexing, name: str, limit: Any) -> Path:
    """The path that opt_einsum finds."""
    if name in ("auto", "optimal") and limit is None and len(indexing.inputs) <= _OPERANDS_LISTED:
        return _cheapest(indexing)
    with importing:
        from opt_einsum import paths

    try:
        search = paths.get_path_fn(name)
    except KeyError:
        allowed = "True, False, auto, greedy, optimal, dp, branch-2, random-greedy, or a path"
        raise InvalidChoice(name="optimize", found=shown(name), allowed=allowed) from None
    terms = [frozenset(term) for term in indexing.inputs]
    found = search(terms, frozenset(indexing.output), dict(indexing.sizes), limit)
    return tuple(tuple(step) for step in found)


class _LabelBits(NamedTuple):
    """Sets of labels as integers, a bit for each label.

    Attributes
    ----------
    labels : those of the bits, the lowest first.
    inputs, output : labels of operands and result.
    """

    labels: str
    inputs: tuple[int, ...]
    output: int


@lru_cache(maxsize=_TEXTS)
def _bits(inputs: tuple[str, ...], output: str) -> _LabelBits:
    """The labels of operands and result as bits.

    >>> _bits(("ij", "jk"), "ik")
    _LabelBits(labels='ijk', inputs=(3, 6), output=5)
    """
    labels = "".join(dict.fromkeys("".join(inputs)))

    def bits(term: str) -> int:
        return sum(1 << labels.index(label) for label in set(term))

    return _LabelBits(labels, tuple(map(bits, inputs)), bits(output))


def _cheapest(indexing: Indexing) -> Path:
    """The path that opt_einsum's "optimal" finds, by the same search on integers in place of sets.

    Sets take longer than a small contraction. As there, what a pair makes and costs is kept by its labels
    alone, so the order of the visits counts.
    """
    labels, terms, output = _bits(indexing.inputs, indexing.output)
    sizes = [indexing.sizes[label] for label in labels]
    known: dict[tuple[int, int], tuple[int, int]] = {}
    least, best = inf, tuple[tuple[int, int], ...]()

    def visit(
        path: tuple[tuple[int, int], ...], left: tuple[int, ...], terms: tuple[int, ...], operations: int
    ) -> None:
        nonlocal least, best
        if len(left) == 1:
            least, best = operations, path
            return
        for first, second in combinations(left, 2):
            a, b = terms[first], terms[second]
            found = known.get((a, b))
            if found is None:
                needed = output
                for place in left:
                    if place not in (first, second):
                        needed |= terms[place]
                loops = a | b
                turns = prod([size for bit, size in enumerate(sizes) if loops >> bit & 1])
                found = known[a, b] = loops & needed, 2 * turns if a & b & ~needed else turns
            made, more = found
            if operations + more < least:
                rest = tuple([place for place in left if place not in (first, second)])
                step = (*path, (first, second))
                visit(step, (*rest, len(terms)), (*terms, made), operations + more)

    visit((), tuple(range(len(terms))), terms, 0)
    places, found = [*range(len(terms))], []
    for number, step in enumerate(best, len(terms)):
        found.append(tuple([places.index(operand) for operand in step]))
        places = [*(place for place in places if place not in step), number]
    return tuple(found)


def _checked(steps: Iterable[Any], count: int) -> Path:
    """A path that a caller gave, if it leads to one array."""
    path = []
    left = count
    for number, step in enumerate(steps):
        places = _step(step)
        if not places or len(set(places)) != len(places) or not all(0 <= place < left for place in places):
            reason = f"step {number} takes different ones of the {left} arrays that are left"
            raise InvalidPath(found=shown(places), reason=reason)
        path.append(places)
        left += 1 - len(places)
    if left != 1 or not path:
        raise InvalidPath(found=shown(tuple(path)), reason=f"{left} arrays remain at the end, must be 1")
    return tuple(path)
