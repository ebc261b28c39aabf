"""Tile IR, LLVM IR and assembly of a kernel, and which lines of each belong together."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from tilewright.compiler.kernel import Kernel
from tilewright.compiler.lowering.expressions import MARK
from tilewright.compiler.lowering.program import lower_marked
from tilewright.ir.nodes import Program
from tilewright.ir.text import print_program, statement_lines
from tilewright.llvm.locations import locate
from tilewright.records import dataclass

_MARKED = re.compile(re.escape(MARK) + r"(\d+)$")
_DEFINED = re.compile(r"define .*?@([-\w.$]+)\(")
_REFERENCE = re.compile(r"@([-\w.$]+)")


@dataclass(frozen=True)
class Listing:
    """The three texts of a kernel, and their links.

    Attributes
    ----------
    program : the tile IR as it is lowered.
    tile, llvm, assembly : lines.
    tile_statements : for each line of tile IR its statement; None for declarations.
    llvm_statements : for each line of LLVM IR the statements it was written for; several where they call the
        function that it is in.
    shared : for each line of LLVM IR whether it belongs to its statements by calls only.
    assembly_llvm : for each line of assembly the index of its line of LLVM IR; None where LLVM knows none.
    """

    program: Program
    tile: tuple[str, ...]
    llvm: tuple[str, ...]
    assembly: tuple[str, ...]
    tile_statements: tuple[int | None, ...]
    llvm_statements: tuple[tuple[int, ...], ...]
    shared: tuple[bool, ...]
    assembly_llvm: tuple[int | None, ...]


def listing_of(kernel: Kernel) -> Listing:
    """The texts of a kernel with their links.

    Examples
    --------
    >>> import tilewright as tw
    >>> found = listing_of(tw.compile(tw.BatchReduceGemm(6, 16, 8, 2), "znver4"))
    >>> number = found.tile_statements[-1]
    >>> any(number in found.llvm_statements[at] for at in found.assembly_llvm if at is not None)
    True
    """
    program, marked = lower_marked(kernel.nest, kernel.machine)
    lines, marks = [], []
    for line in marked.splitlines():
        mark = _MARKED.search(line)
        lines.append(line[: mark.start()] if mark else line)
        marks.append(int(mark[1]) if mark else None)
    located = locate("\n".join(lines) + "\n", kernel.name, kernel.machine)
    return Listing(
        program,
        tuple(print_program(program).splitlines()),
        tuple(lines),
        located.lines,
        tuple(statement_lines(program)),
        tuple(_statements_of_lines(lines, marks)),
        tuple(mark is None for mark in marks),
        tuple(origin - 1 if origin else None for origin in located.origins),
    )


def functions_of(lines: list[str] | tuple[str, ...]) -> Iterator[tuple[str, int, int]]:
    """The functions of a module: name, index of the first line, index behind the last one.

    >>> list(functions_of(["", "define void @f() {", "entry:", "ret void", "}"]))
    [('f', 1, 5)]
    """
    begin, name = 0, ""
    for at, line in enumerate(lines):
        defined = _DEFINED.match(line)
        if defined is not None:
            begin, name = at, defined[1]
        elif line == "}":
            yield name, begin, at + 1


def _statements_of_lines(lines: list[str], marks: list[int | None]) -> Iterator[tuple[int, ...]]:
    """For each line the statement it is marked with, else those that call its function, by others too."""
    functions = list(functions_of(lines))
    names = {name for name, _, _ in functions}
    callers: dict[str, set[str]] = defaultdict(set)
    owners: dict[str, set[int]] = defaultdict(set)
    for name, begin, end in functions:
        for at in range(begin + 1, end):
            for called in _REFERENCE.findall(lines[at]):
                if called in names and called != name:
                    mark = marks[at]
                    (callers[called].add(name) if mark is None else owners[called].add(mark))
    grown = True
    while grown:
        grown = False
        for called, by in callers.items():
            found = owners[called].union(*(owners[name] for name in by))
            grown = grown or found != owners[called]
            owners[called] = found
    ends = {begin: (name, end) for name, begin, end in functions}
    name, end = "", 0
    for at, mark in enumerate(marks):
        if at in ends:
            name, end = ends[at]
        if mark is not None:
            yield (mark,)
        else:
            yield tuple(sorted(owners[name])) if at < end else ()
