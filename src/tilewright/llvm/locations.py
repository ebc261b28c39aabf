"""Which lines of LLVM IR each line of assembly was made of, by LLVM's own debug locations.

Debug locations change no instruction: the assembly with them, less its directives, is that without.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tilewright.llvm.target import emit_assembly
from tilewright.machine.machine import Machine

#: The first number of metadata that is added; modules of kernels have a handful of their own.
_FIRST = 1 << 20
_NAME = re.compile(r"@([-\w.$]+)\(")

#: Directives that debug information adds to assembly, and labels that only they refer to. A function of
#: POWER has two entries, whose labels are named by the number of the function.
_DIRECTIVE = re.compile(
    r"\s*\.(file|loc)\s|\.?L(tmp\d+|func_(begin|end|gep|lep)\d+):|\s*\.(size|localentry)\s.*L?func_"
)
_LOCATION = re.compile(r"\s*\.loc\s+\d+\s+(\d+)")
_DEBUG_SECTION = re.compile(r"\s*\.section\s+(\.debug|__DWARF)")


class LocatedAssembly(NamedTuple):
    """Assembly, and of each of its lines the line of LLVM IR that it was made of.

    lines : the assembly without directives about debug information.
    origins : for each of them a line of the module, from 1; 0 where LLVM knows none.
    """

    lines: tuple[str, ...]
    origins: tuple[int, ...]


def with_locations(module: str) -> str:
    """A module whose instructions have debug locations: their own lines in its text.

    Before: ``%.2 = add i64 %.1, 1``. After: ``%.2 = add i64 %.1, 1, !dbg !1048588``, where that is
    ``!DILocation(line: 12, column: 1, scope: ...)``.
    """
    lines, nodes, scope = [], [], 0
    for number, line in enumerate(module.splitlines(), start=1):
        if line.startswith("define "):
            name = _NAME.search(line)
            assert name is not None, line
            scope = _FIRST + number
            line = f"{line[:-1]}!dbg !{scope} {{"  # noqa: PLW2901 - the same line, longer
            nodes.append(
                f'!{scope} = distinct !DISubprogram(name: "{name[1]}", scope: !{_FIRST - 1}, '
                f"file: !{_FIRST - 1}, line: {number}, type: !{_FIRST - 3}, scopeLine: {number}, "
                f"spFlags: DISPFlagDefinition, unit: !{_FIRST - 2})"
            )
        elif line == "}":
            scope = 0
        elif scope and not line.endswith(":"):
            line = f"{line}, !dbg !{_FIRST + number}"  # noqa: PLW2901 - the same line, longer
            nodes.append(f"!{_FIRST + number} = !DILocation(line: {number}, column: 1, scope: !{scope})")
        lines.append(line)
    return "\n".join([*lines, *_UNIT, *nodes]) + "\n"


#: The compile unit that the functions are in: tables of lines are all that it wants.
_UNIT = (
    f"!llvm.dbg.cu = !{{!{_FIRST - 2}}}",
    f"!llvm.module.flags = !{{!{_FIRST - 4}, !{_FIRST - 5}}}",
    f'!{_FIRST - 1} = !DIFile(filename: "kernel.ll", directory: "")',
    (
        f"!{_FIRST - 2} = distinct !DICompileUnit(language: DW_LANG_C99, file: !{_FIRST - 1}, "
        "isOptimized: true, emissionKind: LineTablesOnly)"
    ),
    f"!{_FIRST - 3} = !DISubroutineType(types: !{_FIRST - 6})",
    f'!{_FIRST - 4} = !{{i32 2, !"Debug Info Version", i32 3}}',
    f'!{_FIRST - 5} = !{{i32 7, !"Dwarf Version", i32 4}}',
    f"!{_FIRST - 6} = !{{null}}",
)


def locate(module: str, name: str, machine: Machine) -> LocatedAssembly:
    """The assembly of a module, and the lines of the module that it was made of.

    Parameters
    ----------
    name : what the module is called in errors.
    """
    lines, origins, current = [], [], 0
    for line in emit_assembly(with_locations(module), name, machine).splitlines():
        if _DEBUG_SECTION.match(line):
            break
        location = _LOCATION.match(line)
        if location is not None:
            current = int(location[1])
        elif not _DIRECTIVE.match(line):
            lines.append(line)
            origins.append(current if _is_instruction(line) else 0)
    return LocatedAssembly(tuple(lines), tuple(origins))


def _is_instruction(line: str) -> bool:
    text = line.strip()
    return bool(text) and line[0].isspace() and not text.startswith((".", "#", "//"))


def instructions(assembly: str) -> list[str]:
    r"""The lines of an assembly that are instructions or labels of its own, without comments.

    >>> instructions("kernel:\n\t.cfi_startproc\n\tret\n.Lfunc_end0:\n")
    ['kernel:', 'ret']
    """
    found = []
    for line in assembly.splitlines():
        text = re.split(r"\s+(?:#|//)", line)[0].strip()
        if text and not text.startswith((".", "#", "//")) and not _DIRECTIVE.match(line):
            found.append(text)
    return found
