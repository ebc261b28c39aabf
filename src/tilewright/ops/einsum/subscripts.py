"""Subscripts of einsum: parsed, laid over shapes, and the order in which operands meet."""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import inf, prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tilewright.errors import (
    AxesWithoutLabels,
    EllipsisNotInOutput,
    InvalidChoice,
    InvalidPath,
    LabelSizes,
    MalformedSubscripts,
    OperandCount,
    OutputLabelRepeated,
    OutputLabelUnknown,
    SublistLabel,
    shown,
)
from tilewright.preparing import importing
from tilewright.spec.arguments import as_integer, as_integers, as_items, as_number, as_text, check_text

#: What a caller may write for an axis, in the order in which the interleaved form numbers them.
LETTERS = string.ascii_uppercase + string.ascii_lowercase

#: The one character that stands for "..." in a parsed term.
ELLIPSIS = "."

#: Labels of the axes of an ellipsis, the last axis first: Greek letters, of which there are more than the
#: 64 axes that an array can have.
_ELLIPSIS_LABELS = tuple(chr(0x3B1 + number) for number in range(64))

#: The operands that one step of a contraction takes, by their places in the list that is left; what it
#: makes is appended to the list.
Path: TypeAlias = tuple[tuple[int, ...], ...]

#: Steps of two operands need no search, and one of three has three.
_OPERANDS_OF_ONE_STEP = 2

#: Operands of which opt_einsum's "auto" looks at every order, and so many at most have few enough to list.
_OPERANDS_LISTED = 4

#: Texts whose terms are kept, and what else follows from a text and numbers of axes alone.
_TEXTS = 1024


@dataclass(frozen=True)
class Equation:
    """Subscripts as they were written.

    Attributes
    ----------
    text : the subscripts without spaces, for messages.
    inputs : the labels of each operand; `ELLIPSIS` stands for "...".
    output : those of the result, explicit ones or NumPy's: the ellipsis, then all labels that occur once,
        in alphabetical order.
    """

    text: str
    inputs: tuple[str, ...]
    output: str


class Indexing(NamedTuple):
    """One einsum over known shapes: a label for each axis, the axes of an ellipsis included.

    Attributes
    ----------
    inputs, output : labels; one label is one character.
    sizes : the length of each label's axes. An axis of length 1 repeats along a longer one.
    """

    inputs: tuple[str, ...]
    output: str
    sizes: Mapping[str, int]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        sizes = self.sizes
        return tuple([sizes[label] for label in self.output])


def _shortened(text: str) -> tuple[str, tuple[int, ...]]:
    """Subscripts without spaces and with one character for an ellipsis, and where each one was written.

    Before: "i ...->i". After: "i.->i" and (0, 2, 5, 6, 7).
    """
    found, places = [], []
    dots: list[int] = []
    for place, character in enumerate(text):
        if character == ".":
            dots.append(place)
            if len(dots) == len("..."):
                found.append(ELLIPSIS)
                places.append(dots[0])
                dots.clear()
        elif dots:
            break
        elif character != " ":
            found.append(character)
            places.append(place)
    if dots:
        raise _malformed(text, dots[0], "this '.' is not part of an ellipsis '...'")
    return "".join(found), tuple(places)


def _malformed(text: str, place: int, reason: str) -> MalformedSubscripts:
    return MalformedSubscripts(subscripts=text, pointer=_pointer(place), reason=reason)


def _pointer(place: int) -> str:
    """A line that points at a character of the line above."""
    return " " * place + "^"


def parse(subscripts: str) -> Equation:
    """The terms of subscripts as `numpy.einsum` reads them.

    Raises
    ------
    MalformedSubscripts : with the place in the text.
    OutputLabelRepeated, OutputLabelUnknown

    Examples
    --------
    >>> parse("b...j, jk")
    Equation(text='b...j, jk', inputs=('b.j', 'jk'), output='.bk')
    """
    return _parsed(check_text(subscripts, "subscripts"))


@lru_cache(maxsize=_TEXTS)
def _parsed(subscripts: str) -> Equation:
    """The terms of a text; errors are found again each time."""
    short, places = _shortened(subscripts)
    arrow = short.find("->")
    left = short if arrow < 0 else short[:arrow]
    seen_ellipsis = False
    for number, character in enumerate(short):
        if (number in (arrow, arrow + 1) and arrow >= 0) or (character == "," and not 0 <= arrow < number):
            seen_ellipsis = False
        elif character == ELLIPSIS:
            if seen_ellipsis:
                raise _malformed(subscripts, places[number], "a term has at most one ellipsis")
            seen_ellipsis = True
        elif character not in LETTERS:
            reason = f"{character!r} is no label: labels are the letters a to z and A to Z"
            if character in "->":
                reason = "there is at most one '->', between operands and result"
            elif character == ",":
                reason = "there is one result: ',' stands between operands only"
            raise _malformed(subscripts, places[number], reason)
    output = _implicit(left) if arrow < 0 else short[arrow + len("->") :]
    for number, label in enumerate(output):
        pointer = "" if arrow < 0 else _pointer(places[arrow + len("->") + number])
        if label in output[:number]:
            raise OutputLabelRepeated(subscripts=subscripts, label=label, pointer=pointer)
        if label not in left and label != ELLIPSIS:
            raise OutputLabelUnknown(subscripts=subscripts, label=label, pointer=pointer)
    return Equation(subscripts, tuple(left.split(",")), output)


def _implicit(left: str) -> str:
    """The labels of the result where none are given.

    >>> _implicit("ba,ac")
    'bc'
    """
    once = sorted(label for label in set(left) - {",", ELLIPSIS} if left.count(label) == 1)
    return (ELLIPSIS if ELLIPSIS in left else "") + "".join(once)


def interleaved(arguments: Sequence[Any]) -> tuple[str, list[Any]]:
    """Subscripts and operands of the form ``einsum(a, [0, 1], b, [1, 2], [0, 2])``.

    Raises
    ------
    OperandCount : if an operand has no list of labels.
    SublistLabel : if a label is neither an integer from 0 to 51 nor an Ellipsis.

    Examples
    --------
    >>> interleaved(("a", [0, ...], "b", [...], [...]))
    ('A...,...->...', ['a', 'b'])
    """
    pairs, rest = divmod(len(arguments), 2)
    if pairs == 0:
        raise OperandCount(subscripts="(lists of labels)", found=len(arguments), required="at least one")
    operands = list(arguments[0 : 2 * pairs : 2])
    text = ",".join(map(_letters, arguments[1 : 2 * pairs : 2]))
    return (f"{text}->{_letters(arguments[-1])}" if rest else text), operands


def _letters(labels: Any) -> str:
    """A list of labels as text; any sequence is one, such as a range or an array of integers."""
    found = as_items(labels)
    if found is None:
        raise SublistLabel(found=shown(labels), what="labels of an operand", required="a list of integers")
    return "".join(map(_letter, found))


def _letter(label: Any) -> str:
    if label is Ellipsis:
        return "..."
    required = f"an integer from 0 to {len(LETTERS) - 1}, or an Ellipsis"
    number = as_integer(label)
    if number is None or not 0 <= number < len(LETTERS):
        raise SublistLabel(found=shown(label), what="a label", required=required)
    return LETTERS[number]


def lay_over(equation: Equation, shapes: Sequence[tuple[int, ...]]) -> Indexing:
    """A label for each axis of operands of these shapes.

    Raises
    ------
    OperandCount, AxesWithoutLabels, LabelSizes, EllipsisNotInOutput

    Examples
    --------
    >>> found = lay_over(parse("...ij,...jk"), [(5, 2, 3), (7, 1, 3, 4)])
    >>> found.inputs, found.output, found.shape
    (('αij', 'βαjk'), 'βαik', (7, 5, 2, 4))
    """
    text = equation.text
    if len(shapes) != len(equation.inputs):
        raise OperandCount(subscripts=text, found=len(shapes), required=len(equation.inputs))
    inputs, output, refused = _labels(equation.inputs, equation.output, tuple(map(len, shapes)))
    if refused is not None:
        term = equation.inputs[refused]
        raise AxesWithoutLabels(
            subscripts=text,
            number=refused,
            shape=shapes[refused],
            labels=term.replace(ELLIPSIS, "..."),
            count=len(term) - term.count(ELLIPSIS),
        )
    if output is None:
        raise EllipsisNotInOutput(subscripts=text, count=max(map(_axes_of_ellipsis, equation.inputs, shapes)))
    return Indexing(inputs, output, _sizes(text, inputs, shapes))


class _Labels(NamedTuple):
    """Labels of operands and of the result by numbers of axes alone.

    Attributes
    ----------
    output : None where an ellipsis of axes is missing from the result.
    refused : the first operand whose axes have no labels, or too many.
    """

    inputs: tuple[str, ...]
    output: str | None
    refused: int | None


def _axes_of_ellipsis(term: str, shape: Sequence[int]) -> int:
    """The axes of an operand that its letters leave to an ellipsis; negative where they are too many."""
    return len(shape) - len(term) + term.count(ELLIPSIS)


@lru_cache(maxsize=_TEXTS)
def _labels(terms: tuple[str, ...], output: str, ranks: tuple[int, ...]) -> _Labels:
    """A label for each axis of operands with so many axes."""
    inputs, longest = [], 0
    for number, (term, rank) in enumerate(zip(terms, ranks, strict=True)):
        free = rank - len(term) + term.count(ELLIPSIS)
        if free < 0 or (free > 0 and ELLIPSIS not in term):
            return _Labels((), None, number)
        inputs.append(term.replace(ELLIPSIS, _ellipsis(free)))
        longest = max(longest, free)
    whole = None if longest and ELLIPSIS not in output else output.replace(ELLIPSIS, _ellipsis(longest))
    return _Labels(tuple(inputs), whole, None)


def _ellipsis(count: int) -> str:
    """The labels of so many axes, the last of which is the same for all operands."""
    return "".join(reversed(_ELLIPSIS_LABELS[:count]))


def _sizes(text: str, inputs: Sequence[str], shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
    """The length of each label: axes of length 1 repeat, but not on the diagonal of one operand."""
    sizes: dict[str, int] = {}
    for term, shape in zip(inputs, shapes, strict=True):
        for label, size in zip(term, shape, strict=True):
            if sizes.setdefault(label, size) != size:
                return _repeated_sizes(text, inputs, shapes)
    return sizes


def _repeated_sizes(text: str, inputs: Sequence[str], shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
    """The same where axes of one label differ: one of length 1 repeats, others are refused."""
    sizes: dict[str, int] = {}
    owner: dict[str, int] = {}
    for number, (term, shape) in enumerate(zip(inputs, shapes, strict=True)):
        own: dict[str, int] = {}
        for label, size in zip(term, shape, strict=True):
            known = own.setdefault(label, size)
            if known != size:
                raise _differ(text, label, (number, known), (number, size))
        for label, size in own.items():
            known = sizes.get(label, 1)
            if 1 not in (known, size) and known != size:
                raise _differ(text, label, (owner[label], known), (number, size))
            if known == 1:
                sizes[label], owner[label] = size, number
    return sizes


def _differ(text: str, label: str, first: tuple[int, int], second: tuple[int, int]) -> LabelSizes:
    name = repr(label)
    if label in _ELLIPSIS_LABELS:
        name = f"'...', axis {-1 - _ELLIPSIS_LABELS.index(label)} of it,"
    return LabelSizes(
        subscripts=text, label=name, first=first[0], size=first[1], second=second[0], other=second[1]
    )


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
