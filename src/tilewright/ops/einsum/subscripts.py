"""Subscripts of einsum: parsed, and laid over shapes."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from tilewright.errors import (
    AxesWithoutLabels,
    EllipsisNotInOutput,
    LabelSizes,
    MalformedSubscripts,
    OperandCount,
    OutputLabelRepeated,
    OutputLabelUnknown,
    SublistLabel,
    shown,
)
from tilewright.records import dataclass
from tilewright.spec.arguments import as_integer, as_items, check_text

#: What a caller may write for an axis, in the order in which the interleaved form numbers them.
LETTERS = string.ascii_uppercase + string.ascii_lowercase

#: The one character that stands for "..." in a parsed term.
ELLIPSIS = "."

#: Labels of the axes of an ellipsis, the last axis first: Greek letters, of which there are more than the
#: 64 axes that an array can have.
_ELLIPSIS_LABELS = tuple(chr(0x3B1 + number) for number in range(64))

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
