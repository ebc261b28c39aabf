"""The text of contractions: a line of choices, then a line for each dimension; it parses back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tilewright.errors import ContractionText, TilewrightError
from tilewright.ops.contraction.dimension import STRIDES, Dimension
from tilewright.spec.arguments import check_text, unchecked

#: The first word.
_HEAD = "contraction"

#: The choices of the first line, in order.
CHOICES = ("dtype", "in1_dtype", "out_dtype", "main", "first", "last")

#: A size that is given at run time.
_OPEN = "?"


def print_contraction(choices: Mapping[str, object], dimensions: Sequence[Dimension]) -> str:
    """The text of a contraction: its choices, then its dimensions as a table; empty choices are left out.

    Examples
    --------
    >>> k = Dimension("k", "primitive", 32, in0=64, in1=1)
    >>> print(print_contraction({"dtype": "f32"}, [Dimension("m", size=64, in0=1, out=1), k]))
    contraction dtype=f32
    m sequential 64 in0=1  in1=0 out=1
    k primitive  32 in0=64 in1=1 out=0
    """
    head = " ".join([_HEAD, *(f"{name}={value}" for name, value in choices.items() if str(value))])
    biased = any(dimension.bias for dimension in dimensions)
    rows = [_row(dimension, biased=biased) for dimension in dimensions]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        " ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
    return "\n".join([head, *lines])


def _row(dimension: Dimension, *, biased: bool) -> list[str]:
    """The words of a dimension's line."""
    size = _OPEN if dimension.size is None else str(dimension.size)
    strides = STRIDES if biased else STRIDES[:-1]
    steps = (f"{name}={getattr(dimension, name)}" for name in strides)
    return [dimension.type.value, dimension.execution.value, size, *steps]


class ParsedContraction(NamedTuple):
    """A text: its choices by name, its dimensions, and the first line with its number, for messages."""

    choices: dict[str, str]
    dimensions: list[Dimension]
    line: int
    head: str


def parse_contraction(text: str) -> ParsedContraction:
    """The parts of a text that `print_contraction` wrote.

    Raises
    ------
    ContractionText : with the line, and what is wrong with it.

    Examples
    --------
    >>> text = "contraction dtype=f64 main=gemm" + chr(10) + "m primitive 8 in0=1 out=1"
    >>> parse_contraction(text).dimensions[0].size
    8
    """
    lines = [
        (number, line.split())
        for number, line in enumerate(check_text(text, "text").splitlines(), 1)
        if line.strip()
    ]
    if not lines or lines[0][1][0] != _HEAD:
        found = " ".join(lines[0][1]) if lines else ""
        raise ContractionText(line=1, found=found, reason=f"the first word must be {_HEAD!r}")
    (first, head), *rest = lines
    choices = _pairs(first, head[1:], CHOICES)
    dimensions = [_dimension(number, words) for number, words in rest]
    return ParsedContraction(choices, dimensions, first, " ".join(head))


def _dimension(line: int, words: list[str]) -> Dimension:
    """The dimension of one line."""
    found = " ".join(words)
    if len(words) < len(("type", "execution", "size")):
        reason = "a dimension is its type, execution, size and strides"
        raise ContractionText(line=line, found=found, reason=reason)
    kind, execution, size, *steps = words
    strides = _pairs(line, steps, STRIDES)
    try:
        numbers = {name: int(value) for name, value in strides.items()}
        return Dimension(
            unchecked(kind), unchecked(execution), None if size == _OPEN else int(size), **numbers
        )
    except (TilewrightError, ValueError) as error:
        raise ContractionText(line=line, found=found, reason=str(error)) from error


def _pairs(line: int, words: list[str], allowed: tuple[str, ...]) -> dict[str, str]:
    """Words such as in0=1 by their names."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name not in allowed or name in found:
            reason = f"{word!r} is none of {', '.join(f'{known}=...' for known in allowed)}, each once"
            raise ContractionText(line=line, found=" ".join(words), reason=reason)
        found[name] = value
    return found
