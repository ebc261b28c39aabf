"""Text edits of a function: a new block in front of a nest, and the phis it affects."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tilewright.loops.llvm.symbols import NestLocation
from tilewright.loops.llvm.text import NAME
from tilewright.records import dataclass

#: First line of a block.
LABEL = re.compile(r'^("(?:[^"\\]|\\.)*"|[-\w.$]+):')
_PHI = re.compile(rf"^  (%{NAME}) = phi (.+?) \[ ")


@dataclass(frozen=True)
class ExitPhi:
    """A phi of the exit block of a nest: its name and type."""

    name: str
    kind: str


def phis(lines: Sequence[str], label: str) -> tuple[ExitPhi, ...]:
    """The phis at the start of a block.

    >>> phis(["done:", "  %end = phi i64 [ %i, %loop ]", "  ret void"], "done")
    (ExitPhi(name='%end', kind='i64'),)
    """
    first, end = _block(lines, label)
    found = (_PHI.match(line) for line in lines[first:end])
    return tuple(ExitPhi(match[1], match[2]) for match in found if match)


def insert_bypass(
    lines: Sequence[str], place: NestLocation, block: str, code: Sequence[str], leaving: Mapping[str, str]
) -> list[str]:
    """Insert a new block in front of a nest.

    Parameters
    ----------
    lines : the function, as LLVM prints it.
    block : label of the new block.
    code : its instructions; the terminator branches to the nest or to its exit.
    leaving : values of the exit's phis when the new block branches to the exit, by name.

    Before: ``entry: br label %loop``. After: ``entry: br label %new``, ``new: ..., br i1 %done, label %exit,
    label %loop``; the phis of the loop then name %new instead of %entry.
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
    """The range of lines of a block; the entry block may have no label."""
    starts = {0: ""}
    for number, line in enumerate(lines):
        match = LABEL.match(line)
        if match:
            starts[number] = match[1]
    named = [number for number, name in starts.items() if name == label]
    first = named[0] if named else 0
    return first, min((number for number in starts if number > first), default=len(lines))
