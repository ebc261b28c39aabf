"""Reads assembly text: its innermost loops, and what they multiply, load and move to the stack."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True)
class AssemblyLoop:
    """The instructions from a label to the jump back to it, in one function."""

    function: str
    instructions: tuple[str, ...]

    @property
    def counts(self) -> Counter[str]:
        """How often each instruction name occurs; `fmla.4s` counts as `fmla`."""
        return Counter(line.split()[0].split(".")[0] for line in self.instructions)

    def matching(self, pattern: str) -> list[str]:
        return [line for line in self.instructions if re.search(pattern, line)]


_LABEL = re.compile(r"([\w.$]+):")
_LOCAL = re.compile(r"\.?L")
_JUMP = re.compile(r"(?:^|[\s,])(\.?L\w+)$")


def without_comment(line: str, triple: str) -> str:
    if triple.startswith(("x86", "powerpc", "riscv")):
        return line.split("#", maxsplit=1)[0].strip()
    return re.split(r"//|(?<!\w);", line)[0].strip()


_DEFINITION = re.compile(r"^define (?:internal )?([^@\n]*@([\w.$]+)\(.*) \{\n(?:.*\n)*?\}\n", re.MULTILINE)


def only(llvm: str, *words: str) -> str:
    """A module of LLVM with those functions alone whose names begin with a word; it declares the others.

    Machine code of a function does not depend on the others beside it, which take most of the time.
    """
    return _DEFINITION.sub(
        lambda found: found[0] if found[2].startswith(words) else f"declare {found[1]}\n", llvm
    )


def innermost_loops(text: str, triple: str) -> list[AssemblyLoop]:
    """Loops that hold no other loop: every backward jump to a label, without those around another."""
    found: list[tuple[str, int, list[str]]] = []
    function, lines, labels = "", [], {}  # type: str, list[str], dict[str, int]
    for raw in text.splitlines():
        line = without_comment(raw, triple)
        label = _LABEL.match(line)
        if label and not _LOCAL.match(label[1]):
            function, lines, labels = label[1].lstrip("_"), [], {}
        elif label:
            labels[label[1]] = len(lines)
        elif line and not line.startswith("."):
            lines.append(line)
            jump = _JUMP.search(line)
            if jump and jump[1] in labels:
                start = labels[jump[1]]
                found.append((function, start, lines[start:]))

    def around(outer: tuple[str, int, list[str]], inner: tuple[str, int, list[str]]) -> bool:
        same = outer is not inner and outer[0] == inner[0]
        return same and outer[1] <= inner[1] and inner[1] + len(inner[2]) <= outer[1] + len(outer[2])

    inner = [each for each in found if not any(around(each, other) for other in found)]
    return [AssemblyLoop(name, tuple(instructions)) for name, _, instructions in inner]


def functions(text: str, triple: str) -> dict[str, AssemblyLoop]:
    """All instructions of each function."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for raw in text.splitlines():
        line = without_comment(raw, triple)
        label = _LABEL.match(line)
        if label and not _LOCAL.match(label[1]):
            lines = found.setdefault(label[1].lstrip("_"), [])
        elif line and not label and not line.startswith("."):
            lines.append(line)
    return {name: AssemblyLoop(name, tuple(instructions)) for name, instructions in found.items()}


def multiplies(loop: AssemblyLoop) -> int:
    """Vector multiplies and multiply-adds of any target; scalar ones count where they share the name."""
    x86_and_arm = r"vfmadd\d+p|mulp|fmla|fmad(?=\sz)|fmul"
    return len(loop.matching(rf"^({x86_and_arm}|xvn?m(add|sub)[am]|xvmul|vfn?m(acc|add|sac|sub|ul)\.v)"))


def quadwords_loaded(loop: AssemblyLoop) -> int:
    """128-bit registers that loads fill: ldp fills two."""
    return len(loop.matching(r"^ldu?r\s+q")) + 2 * len(loop.matching(r"^ldp\s+q"))


def vector_loads(loop: AssemblyLoop) -> list[str]:
    """Instructions that read a vector register from memory other than the stack."""
    x86, arm = r"\(%(?!rsp|rip)\w+.*%[xyz]mm", r"^ld\w+\s.*\b[qvz]\d+.*\[x"
    power = r"^lxv\w*\s.*(\((?!1\))\d+\)|, \d+, \d+)$"
    return loop.matching(f"{x86}|{arm}|{power}")


def vector_stack_moves(loop: AssemblyLoop) -> list[str]:
    """Instructions that move a vector register from or to the stack."""
    x86, arm = r"%rsp.*%[xyz]mm|%[xyz]mm.*%rsp", r"\b[qvz]\d+.*\bsp\b"
    # POWER's stack pointer is r1; of RISC-V's vectors only whole registers (vs1r.v, vl1r.v) go to the stack.
    power, riscv = r"^(st|l)(xv|v)\w*\s.*(\(1\)|, 1, \d+)$", r"^v(s|l)\dr\w*\.v\s"
    return loop.matching(f"{x86}|{arm}|{power}|{riscv}")
