"""How the functions of sources/ are called, read from the comments above them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

SOURCES = Path(__file__).parent / "sources"

_COMMENT = re.compile(
    r"^\s*(?://|!) (?P<name>[\w{},]+)\((?P<arguments>.*)\) (?P<verdict>replaced|refused|any)(?P<found>.*)$"
)
_POINTER = re.compile(
    r"(?P<dtype>\w+) (?P<scope>@?)(?P<name>\w+)\[(?P<length>[^\]]+)\](?:=(?P<value>-?\d+))?(?P<alone> alone)?"
)
_ROWS = re.compile(r"(?P<dtype>\w+) \*(?P<name>\w+)\[(?P<count>[^\]]+)\]\[(?P<length>[^\]]+)\]")
_NUMBER = re.compile(r"(?P<reference>&?)(?P<dtype>\w+) (?P<name>\w+)(?:>=(?P<least>\d+)|=(?P<value>.+))?")


@dataclass(frozen=True)
class Pointer:
    """An array of so many elements; `value`: all of them are that. `alone`: it may overlap no other.

    `rows`: it is a table of pointers to so many rows.
    """

    dtype: str
    name: str
    length: str
    value: int | None
    alone: bool
    is_global: bool
    rows: str = ""


@dataclass(frozen=True)
class Number:
    """A size that is drawn, not below `least`; or a value, perhaps of other sizes."""

    dtype: str
    name: str
    least: int | None
    value: str | None
    by_reference: bool


@dataclass(frozen=True)
class Call:
    """One function of a source, how to call it, and what is to be found in it.

    Attributes
    ----------
    verdict : "replaced", "refused" or "any".
    found : the product, as the comment words it.
    """

    source: str
    function: str
    arguments: tuple[Pointer | Number, ...]
    verdict: str
    found: str

    @property
    def sizes(self) -> tuple[Number, ...]:
        """The arguments that are drawn."""
        return tuple(part for part in self.arguments if isinstance(part, Number) and part.value is None)


@cache
def calls(source: str) -> tuple[Call, ...]:
    """Every function of a source."""
    return calls_of((SOURCES / source).read_text(encoding="utf-8"), source)


def calls_of(text: str, source: str) -> tuple[Call, ...]:
    """Every function of a source's text."""
    return tuple(call for line in text.splitlines() for call in _read(source, line))


def with_functions(text: str, kept: Collection[str]) -> str:
    """A source without the other functions, each from its comment to the brace in the first column."""
    lines, left_out = [], False
    for line in text.splitlines(keepends=True):
        found = _COMMENT.match(line)
        if found is not None:
            left_out = not any(name in kept for name, _ in _expanded(found["name"]))
        if not left_out:
            lines.append(line)
        elif line.startswith("}"):
            left_out = False
    return "".join(lines)


def _read(source: str, line: str) -> Iterator[Call]:
    found = _COMMENT.match(line)
    if found is None:
        return
    for name, chosen in _expanded(found["name"]):
        arguments = tuple(
            _argument(part.replace("NAME", chosen)) for part in found["arguments"].split(", ") if part
        )
        yield Call(source, name, arguments, found["verdict"], found["found"].strip())


def _expanded(name: str) -> Iterator[tuple[str, str]]:
    """a_{b,c} -> (a_b, b), (a_c, c)."""
    parts = re.split(r"\{([^}]*)\}", name)
    for chosen in product(*(part.split(",") for part in parts[1::2])):
        yield "".join(a + b for a, b in zip(parts[::2], (*chosen, ""), strict=True)), "".join(chosen[:1])


def _argument(text: str) -> Pointer | Number:
    rows = _ROWS.fullmatch(text.strip())
    if rows is not None:
        length = f"({rows['count']})*({rows['length']})"
        return Pointer(rows["dtype"], rows["name"], length, None, False, False, rows["count"])
    pointer, number = _POINTER.fullmatch(text.strip()), _NUMBER.fullmatch(text.strip())
    if pointer is not None:
        value = None if pointer["value"] is None else int(pointer["value"])
        alone, is_global = pointer["alone"] is not None, bool(pointer["scope"])
        return Pointer(pointer["dtype"], pointer["name"], pointer["length"], value, alone, is_global)
    assert number is not None, text
    least = None if number["least"] is None else int(number["least"])
    return Number(number["dtype"], number["name"], least, number["value"], bool(number["reference"]))


def evaluated(text: str, sizes: Mapping[str, int]) -> int:
    """The value of an expression of sizes: integers, names, operators and brackets."""
    assert re.fullmatch(r"[\w+\-*/% ()]+", text), text
    return int(eval(text, {"__builtins__": {}}, dict(sizes)))
