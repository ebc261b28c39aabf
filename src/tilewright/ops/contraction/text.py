"""The text of contractions: a line of choices, then a line for each dimension; it parses back."""

from __future__ import annotations

from tilewright.errors import ContractionText, TilewrightError
from tilewright.ops.contraction.problem import Contraction, Dimension
from tilewright.spec.arguments import check_text

#: The first word.
_HEAD = "contraction"

#: The choices of the first line, in order.
_CHOICES = ("dtype", "in1_dtype", "out_dtype", "main", "first", "last")

#: The strides of a line, in order; that of the bias stands where it is not 0 in some dimension.
_STRIDES = ("in0", "in1", "out", "bias")

#: A size that is given at run time.
_OPEN = "?"


def print_contraction(contraction: Contraction) -> str:
    """The text of a contraction, its dimensions as a table.

    Examples
    --------
    >>> k = Dimension("k", "primitive", 32, in0=64, in1=1)
    >>> print(print_contraction(Contraction([Dimension("m", "sequential", 64, in0=1, out=1), k])))
    contraction dtype=f32 in1_dtype=f32 out_dtype=f32 main=packed_gemm first=zero
    m sequential 64 in0=1  in1=0 out=1
    k primitive  32 in0=64 in1=1 out=0
    """
    values = [
        *(contraction.dtype, contraction.in1_dtype, contraction.out_dtype),
        *(contraction.main.value, contraction.first.value, contraction.last),
    ]
    choices = zip(_CHOICES, map(str, values), strict=True)
    head = " ".join([_HEAD, *(f"{name}={value}" for name, value in choices if value)])
    biased = any(dimension.bias for dimension in contraction.dimensions)
    rows = [_row(dimension, biased=biased) for dimension in contraction.dimensions]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        " ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
    return "\n".join([head, *lines])


def _row(dimension: Dimension, *, biased: bool) -> list[str]:
    """The words of a dimension's line."""
    size = _OPEN if dimension.size is None else str(dimension.size)
    strides = _STRIDES if biased else _STRIDES[:-1]
    steps = (f"{name}={getattr(dimension, name)}" for name in strides)
    return [dimension.type.value, dimension.execution.value, size, *steps]


def parse_contraction(text: str) -> Contraction:
    """The contraction that `print_contraction` wrote.

    Raises
    ------
    ContractionText : with the line, and what is wrong with it.

    Examples
    --------
    >>> text = "contraction dtype=f64 main=gemm" + chr(10) + "m primitive 8 in0=1 out=1"
    >>> parse_contraction(text).primitive[0].size
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
    choices = _pairs(first, head[1:], _CHOICES)
    dimensions = [_dimension(number, words) for number, words in rest]
    try:
        return Contraction(dimensions, choices.pop("dtype", "f32"), **choices)
    except TilewrightError as error:
        raise ContractionText(line=first, found=" ".join(head), reason=str(error)) from error


def _dimension(line: int, words: list[str]) -> Dimension:
    """The dimension of one line."""
    found = " ".join(words)
    if len(words) < len(("type", "execution", "size")):
        reason = "a dimension is its type, execution, size and strides"
        raise ContractionText(line=line, found=found, reason=reason)
    kind, execution, size, *steps = words
    strides = _pairs(line, steps, _STRIDES)
    try:
        numbers = {name: int(value) for name, value in strides.items()}
        return Dimension(kind, execution, None if size == _OPEN else int(size), **numbers)
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
