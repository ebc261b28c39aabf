"""Text of a function with a block in front of a nest, from which new code goes around it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.loops.llvm.symbols import NestLocation
from tilewright.loops.llvm.text import NAME

#: How the first line of a block begins.
LABEL = re.compile(r'^("(?:[^"\\]|\\.)*"|[-\w.$]+):')
_PHI = re.compile(rf"^  (%{NAME}) = phi (.+?) \[ ")


@dataclass(frozen=True)
class ExitPhi:
    """A phi of the block behind a nest: its name, its type."""

    name: str
    kind: str


def phis(lines: Sequence[str], label: str) -> tuple[ExitPhi, ...]:
    """The phis that a block begins with.

    >>> phis(["done:", "  %end = phi i64 [ %i, %loop ]", "  ret void"], "done")
    (ExitPhi(name='%end', kind='i64'),)
    """
    first, end = _block(lines, label)
    found = (_PHI.match(line) for line in lines[first:end])
    return tuple(ExitPhi(match[1], match[2]) for match in found if match)


def put_ahead(
    lines: Sequence[str], place: NestLocation, block: str, code: Sequence[str], leaving: Mapping[str, str]
) -> list[str]:
    """A function whose nest is entered by way of a new block.

    Parameters
    ----------
    lines : the function, as LLVM prints it.
    block : the label of the new block.
    code : what it does, its terminator included, which goes to the nest or to its exit.
    leaving : by the names of the exit's phis, what they are where the new block went there.

    Before: ``entry: br label %loop``. After: ``entry: br label %new``, ``new: ..., br i1 %done, label %exit,
    label %loop``; the phis of the loop come from %new in the place of %entry.
    """
    result = list(lines)
    first, end = _block(result, place.preheader)
    target = re.compile(rf"label %{re.escape(place.header)}(?![-\w.$])")
    for number in range(first, end):
        result[number] = target.sub(f"label %{block}", result[number])
    first, end = _block(result, place.header)
    origin = re.compile(rf", %{re.escape(place.preheader)} \]")
    for number in range(first, end):
        if _PHI.match(result[number]):
            result[number] = origin.sub(f", %{block} ]", result[number])
    first, end = _block(result, place.exit)
    for number in range(first, end):
        found = _PHI.match(result[number])
        if found:
            head, bracket, tail = result[number].rpartition(" ]")
            result[number] = f"{head}{bracket}, [ {leaving[found[1]]}, %{block} ]{tail}"
    first, _ = _block(result, place.header)
    result[first:first] = [f"{block}:", *(f"  {line}" for line in code), ""]
    return result


def _block(lines: Sequence[str], label: str) -> tuple[int, int]:
    """The first line of a block, and the line behind its last; the entry may have no label of its own."""
    starts = {0: ""}
    for number, line in enumerate(lines):
        match = LABEL.match(line)
        if match:
            starts[number] = match[1]
    named = [number for number, name in starts.items() if name == label]
    first = named[0] if named else 0
    return first, min((number for number in starts if number > first), default=len(lines))
