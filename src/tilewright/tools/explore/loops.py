"""Reads assembly text: its innermost loops, what they multiply, and how many depths one turn holds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from tilewright.cached import cached_property
from tilewright.machine.arch import AARCH64, POWERPC64LE, RISCV64, X86_64, triple_arch
from tilewright.records import dataclass


@dataclass(frozen=True)
class Dialect:
    """How the assembly of one architecture is written, and which words multiply; all regular expressions.

    Attributes
    ----------
    comment : from here to the end of the line nothing is code.
    register : a vector or accumulator register; what it matches names the same register in every width.
    accumulates : instructions that multiply vectors and add to a register.
    multiplies : those that only multiply.
    adds : what adds the products of those.
    stores : instructions that write memory and no register.
    leaves : what never goes on with the next line.
    stack : an address in the stack frame.
    vector_words : the instructions whose operands `register` may match; of POWER's others they are integer
        registers, which are bare numbers too.
    result_last : the result is the last operand, else the first.
    source : the manual.
    """

    comment: str
    register: str
    accumulates: str
    multiplies: str
    adds: str
    stores: str
    leaves: str
    stack: str
    source: str
    vector_words: str = r".*"
    result_last: bool = False


#: One row per architecture. Scalar arithmetic (vfmadd231ss, fmadd, xsmaddasp) is not among the words.
DIALECTS: dict[str, Dialect] = {
    X86_64.name: Dialect(
        comment=r"#",
        register=r"%(?:[xyz]mm)?((?<=mm)\d+|tmm\d+)",
        accumulates=r"vfn?m(add|sub)(132|213|231)p[sdh]|vdpbf16ps|vdpphps|vpdp\w+|vpmadd52[lh]uq|tdp\w+",
        multiplies=r"v?mulp[sdh]|v?pmaddwd|v?pmull[wdq]",
        adds=r"v?addp[sdh]|v?padd[wdq]",
        stores=r"\S+\s+[%$].*, [-\w]*\([^)]*\)(\s*\{%k\d\})?$",
        leaves=r"jmpq?|retq?",
        stack=r"\(%rsp\b",
        source="Intel SDM vol. 2 (AT&T syntax: the result stands last)",
        result_last=True,
    ),
    AARCH64.name: Dialect(
        comment=r"//|(?<!\w);",
        register=r"\b(?:[vqzdshb](?=\d))?((?<=[vqzdshb])\d+|za\d+)\b",
        accumulates=r"(fml[as]l?[2bt]?|bfmlal[bt]|[us]mlal[2bt]?|mla|(su|us|bf|[fsu])dot|(us|bf|[fsu])mmla|"
        r"(su|us|bf|[fsu])mopa)(\.\w+)?",
        multiplies=r"fmul(\.\w+)?",
        adds=r"fadd(\.\w+)?",
        stores=r"st",
        leaves=r"b|br|ret",
        stack=r"\[sp\b",
        source="Arm ARM DDI 0487 ch. C7, C8, D1",
    ),
    POWERPC64LE.name: Dialect(
        comment=r"#",
        register=r"(?<![\w(.-])(\d+)(?![\w(])",
        accumulates=r"xvn?m(add|sub)[am][sd]p|(pm)?xv\w+ger\w*|vmsum\w+",
        multiplies=r"xvmul[sd]p",
        adds=r"xvadd[sd]p",
        stores=r"st",
        leaves=r"b|blr|bctr",
        stack=r"\(1\)$|^(l|st)\S+\s+\d+, 1, \d+$",
        source="Power ISA 3.1C book I ch. 6 and 7",
        vector_words=r"(l|st|pm)?x?v\w+|xx\w+",
    ),
    RISCV64.name: Dialect(
        comment=r"#",
        register=r"\bv(\d+)\b",
        accumulates=r"vfn?m(acc|add|sac|sub)\.v[vf]|vfw(macc|maccbf16)\.v[vf]|vw?macc\w*\.v[vx]|vqdot\w*\.v[vx]",
        multiplies=r"vfmul\.v[vf]",
        adds=r"vfadd\.vv",
        stores=r"vs\w+\.v",
        leaves=r"j|jr|ret|tail",
        stack=r"\(sp\)|^vs\dr\.v|^vl\dre\d+\.v",
        source="RISC-V V 1.0 §11, §13; whole-register moves (§7.9) only go to the stack",
    ),
}


def dialect_of(triple: str) -> Dialect:
    """The dialect of a triple's architecture.

    >>> dialect_of("arm64-apple-macosx11.0.0").source
    'Arm ARM DDI 0487 ch. C7, C8, D1'
    """
    return DIALECTS[triple_arch(triple)]


@dataclass(frozen=True)
class AssemblyLoop:
    r"""The instructions from a label to the jump back to it, in one function.

    Examples
    --------
    >>> text = "kernel:\n.LBB0_1:\n\tvfmadd231ps\t%zmm3, %zmm2, %zmm1\n\tjne\t.LBB0_1\n"
    >>> (loop,) = innermost_loops(text, "x86_64-linux")
    >>> loop.function, loop.label, len(loop.multiplies), loop.depths
    ('kernel', '.LBB0_1', 1, 1)
    """

    function: str
    label: str
    instructions: tuple[str, ...]
    dialect: Dialect

    @property
    def counts(self) -> Counter[str]:
        """How often each instruction name occurs; `fmla.4s` counts as `fmla`."""
        return Counter(line.split()[0].split(".")[0] for line in self.instructions)

    def matching(self, pattern: str) -> list[str]:
        """The instructions in which a regular expression is found."""
        return [line for line in self.instructions if re.search(pattern, line)]

    @property
    def on_stack(self) -> list[str]:
        """Instructions that name an address in the stack frame."""
        return self.matching(self.dialect.stack)

    @property
    def multiplies(self) -> list[str]:
        """Instructions that multiply vectors."""
        words = f"{self.dialect.accumulates}|{self.dialect.multiplies}"
        return [line for line in self.instructions if self._multiplies_vectors(line, words)]

    def _multiplies_vectors(self, line: str, words: str) -> bool:
        # AArch64 has vector and scalar forms of one name: fmla v0.4s, ... and fmul s0, s1, s2.
        scalar = re.match(r"\w+\s+[sdh]\d+,", line)
        return bool(re.fullmatch(words, _word(line))) and not scalar

    @cached_property
    def depths(self) -> int:
        """Depth steps in one turn: the longest chain of sums into one accumulator.

        What one turn adds to an accumulator depends on what it added before; everything else that is
        multiplied comes from loads. So the longest chain counts the depths, whatever register holds the
        sum (`vfmadd132ps`, `vfmadd.vf` write it over a factor).
        """
        chain: dict[str, int] = {}
        longest = 1
        for line in self.instructions:
            word, named = _word(line), self._named(line)
            if not named or re.match(self.dialect.stores, line):
                continue
            result = named[-1 if self.dialect.result_last else 0]
            if re.fullmatch(self.dialect.accumulates, word):
                chain[result] = 1 + max(chain.get(name, 0) for name in named)
            elif re.fullmatch(self.dialect.adds, word):
                # Of three operands, the one that is the result is not read.
                others = named[:-1] if self.dialect.result_last else named[1:]
                read = others if len(named) > 2 else named
                chain[result] = 1 + max(chain.get(name, 0) for name in read)
            elif "[" in line:  # an AArch64 address: every register beside it is loaded
                chain.update(dict.fromkeys(named, 0))
            else:
                chain[result] = 0
            longest = max(longest, chain[result])
        return longest

    def _named(self, line: str) -> list[str]:
        """The vector registers of an instruction, in its order."""
        if not re.fullmatch(self.dialect.vector_words, _word(line)):
            return []
        return re.findall(self.dialect.register, line)


def _word(line: str) -> str:
    return line.split(maxsplit=1)[0]


_LABEL = re.compile(r"([\w.$]+):")
_LOCAL = re.compile(r"\.?L")
_JUMP = re.compile(r"(?:^|[\s,])(\.?L\w+)$")


@dataclass
class _Block:
    """Instructions behind a label or a jump; the first one of a function has no label."""

    label: str
    instructions: list[str] = field(default_factory=list)


def _functions(text: str, dialect: Dialect) -> Iterator[tuple[str, list[_Block]]]:
    """The blocks of each function, in the order of the text."""
    name, blocks = "", [_Block("")]
    for raw in text.splitlines():
        line = re.split(dialect.comment, raw, maxsplit=1)[0].strip()
        label = _LABEL.match(line)
        if label and not _LOCAL.match(label[1]):
            yield name, blocks
            name, blocks = label[1].removeprefix("_"), [_Block("")]
        elif label:
            blocks.append(_Block(label[1]))
        elif line and not line.startswith("."):
            blocks[-1].instructions.append(line)
            if _JUMP.search(line) or re.fullmatch(dialect.leaves, _word(line)):
                blocks.append(_Block(""))
    yield name, blocks


def _successors(blocks: list[_Block], dialect: Dialect) -> dict[int, set[int]]:
    """Where control goes from each block: to the target of its jump, to the next one, or both."""
    places = {block.label: place for place, block in enumerate(blocks) if block.label}
    found: dict[int, set[int]] = {}
    for place, block in enumerate(blocks):
        last = block.instructions[-1] if block.instructions else ""
        jump = _JUMP.search(last)
        found[place] = {places[jump[1]]} if jump and jump[1] in places else set()
        if place + 1 < len(blocks) and not (last and re.fullmatch(dialect.leaves, _word(last))):
            found[place].add(place + 1)
    return found


def _reached(starts: Iterable[int], edges: Mapping[int, set[int]], without: int | None = None) -> set[int]:
    """The blocks that edges reach from some, themselves included, on ways around one block."""
    found: set[int] = set()
    waiting = [start for start in starts if start != without]
    while waiting:
        place = waiting.pop()
        if place not in found:
            found.add(place)
            waiting.extend(edges[place] - {without})
    return found


def _loops(edges: Mapping[int, set[int]]) -> dict[int, set[int]]:
    """Natural loops: first block -> all its blocks.

    An edge u -> v goes back if every way from the entry to u passes v; the loop of v is v and what reaches
    such a u on ways around v. A jump backward in the text alone is none: blocks are placed in any order.

    Source: Aho, Lam, Sethi, Ullman, Compilers, 2nd ed., §9.6.6.
    """
    back: dict[int, set[int]] = {place: set() for place in edges}
    for place, targets in edges.items():
        for target in targets:
            back[target].add(place)
    alive = _reached([0], edges)
    found: dict[int, set[int]] = {}
    for target in alive:
        latches = back[target] & alive - _reached([0], edges, without=target)
        if latches:
            found[target] = {target} | _reached(latches, back, without=target)
    return found


def innermost_loops(text: str, triple: str) -> list[AssemblyLoop]:
    """Loops that hold no other loop, of all functions of an assembly text."""
    dialect = dialect_of(triple)
    found = []
    for function, blocks in _functions(text, dialect):
        loops = _loops(_successors(blocks, dialect))
        for first, body in loops.items():
            if any(other < body for other in loops.values()):
                continue
            lines = tuple(line for place in sorted(body) for line in blocks[place].instructions)
            found.append(AssemblyLoop(function, blocks[first].label, lines, dialect))
    return found
