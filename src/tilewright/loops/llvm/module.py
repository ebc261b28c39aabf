"""Parser of a module of LLVM IR as LLVM prints it: functions, blocks, source lines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType

from tilewright.cached import cached_property
from tilewright.loops.llvm.instruction import Instruction, read_instruction
from tilewright.loops.llvm.text import NAME, closing, split_commas, split_type
from tilewright.loops.nests.nest import Where
from tilewright.records import dataclass

_DEFINE = re.compile(rf'define [^@"]*(?:"[^"]*"[^@"]*)*@({NAME})\(')
_GLOBAL = re.compile(rf"@({NAME}) = (.*)")
_TYPE = re.compile(rf"(%{NAME}) = type (.*)")
_QUOTED = re.compile(r'target (triple|datalayout) = "(.*)"')
_GROUP = re.compile(r"attributes #(\d+) = \{ (.*) \}")
_GROUPS_USED = re.compile(r" #(\d+)")
_NODE = re.compile(r"!(\d+) = (.*)")
_LABEL = re.compile(rf"({NAME}):")
_TARGET = re.compile(rf"label %({NAME})")
_PARAMETER = re.compile(rf"(.*) (%{NAME})$")
_STRING = re.compile(r'"([^"]*)"(?:="([^"]*)")?')
#: Fields of debug information nodes.
_LINE, _INLINED, _NODE_NAME = (
    re.compile(pattern) for pattern in (r"\bline: (\d+)", r"\binlinedAt: !(\d+)", r'\bname: "([^"]*)"')
)
_COLUMN, _SCOPE, _FILE, _FILE_NAME = (
    re.compile(pattern)
    for pattern in (r"\bcolumn: (\d+)", r"\bscope: !(\d+)", r"\bfile: !(\d+)", r'\bfilename: "([^"]*)"')
)
#: Scopes around a location that are looked at.
_MOST_SCOPES = 50
_DEBUG = re.compile(r" !dbg !(\d+)")
_VARIABLE_OF = re.compile(rf"#dbg_value\(\S+ (%{NAME}), !(\d+), !DIExpression\(\),")
_LOOP = re.compile(r"!llvm\.loop !(\d+)")
_NODES = re.compile(r"!(\d+)")
_NAMED_NODE = re.compile(r'^!\{!"([^"]*)"')
_POINTER = re.compile(r"(?:^|-)p(?:0)?:(\d+)")


@dataclass(frozen=True)
class FormalParameter:
    """A formal parameter: its name with "%", its type, attributes such as "noalias" or "align 8"."""

    name: str
    kind: str
    attributes: str

    @property
    def noalias(self) -> bool:
        """Whether its target is not modified through any other pointer (`noalias`)."""
        return re.search(r"\bnoalias\b", self.attributes) is not None


@dataclass(frozen=True)
class Global:
    """A global variable or an alias.

    Attributes
    ----------
    name : without "@".
    kind : type of its value.
    alias : its address is that of another symbol, or computed at program start.
    constant : never written.
    """

    name: str
    kind: str
    alias: bool
    constant: bool


@dataclass(frozen=True, eq=False)
class BasicBlock:
    """A basic block: its label without "%", and its instructions, which are parsed on demand.

    Attributes
    ----------
    successors : labels in the text order of the terminator, without duplicates.
    start, stop : range of its instructions' lines within the function.
    """

    label: str
    successors: tuple[str, ...]
    start: int
    stop: int
    _lines: tuple[str, ...] = field(repr=False)

    @cached_property
    def instructions(self) -> tuple[Instruction, ...]:
        """All instructions: phis first, the terminator last."""
        read, pieces, first = [], list[str](), 0
        for number in range(self.start, self.stop):
            line = self._lines[number]
            if not line.strip() or line.lstrip().startswith((";", "#dbg_")):
                continue
            if _continues(line):
                pieces.append(line.strip())
                continue
            if pieces:
                read.append(read_instruction(" ".join(pieces), first))
            pieces, first = [line], number
        if pieces:
            read.append(read_instruction(" ".join(pieces), first))
        return tuple(read)

    @property
    def phis(self) -> tuple[Instruction, ...]:
        """Its phis."""
        return tuple(one for one in self.instructions if one.opcode == "phi")

    @property
    def terminator(self) -> Instruction:
        """Its last instruction."""
        return self.instructions[-1]


def _continues(line: str) -> bool:
    """Whether a line continues the instruction above: cases of a switch, targets of an invoke."""
    return line.startswith(("   ", "  ]"))


@dataclass(frozen=True, eq=False)
class FunctionDefinition:
    """A function with a body.

    Attributes
    ----------
    name : without "@", quoted if LLVM quotes it.
    lines : its text, from `define` to the closing brace.
    start : index of its first line in the module.
    """

    name: str
    lines: tuple[str, ...]
    start: int

    @cached_property
    def _head(self) -> tuple[str, str]:
        """The parameter list in brackets after the name, and the text after it."""
        found = _DEFINE.match(self.lines[0])
        assert found is not None
        line, opened = self.lines[0], found.end() - 1
        behind = closing(line, opened)
        return line[opened + 1 : behind - 1], line[behind:]

    @cached_property
    def parameters(self) -> tuple[FormalParameter, ...]:
        """Its parameters, without "..."."""
        found = []
        for part in split_commas(self._head[0]):
            split = _PARAMETER.match(part)
            if split:
                kind, attributes = split_type(split[1])
                found.append(FormalParameter(split[2], kind, attributes))
        return tuple(found)

    @property
    def groups(self) -> tuple[int, ...]:
        """Numbers of its attribute groups."""
        return tuple(map(int, _GROUPS_USED.findall(self._head[1])))

    @property
    def debug(self) -> int | None:
        """Number of its debug information node."""
        found = _DEBUG.search(self._head[1])
        return int(found[1]) if found else None

    @cached_property
    def blocks(self) -> Mapping[str, BasicBlock]:
        """Its blocks by label, entry first. Only labels and terminators are parsed."""
        unnamed = sum(one.name[1:].isdigit() for one in self.parameters)
        label, start = str(unnamed), 1  # LLVM does not print the number of an entry that has no name
        found: dict[str, BasicBlock] = {}

        def close(stop: int) -> None:
            found[label] = BasicBlock(label, self._successors(start, stop), start, stop, self.lines)

        for number in range(1, len(self.lines) - 1):
            line = self.lines[number]
            if not line or line[0] in " ;":
                continue
            named = _LABEL.match(line)
            if named is None:
                continue
            if number > start or found:
                close(number)
            label, start = named[1], number + 1
        close(len(self.lines) - 1)
        return MappingProxyType(found)

    def _successors(self, start: int, stop: int) -> tuple[str, ...]:
        """Labels in the last instruction of the given lines."""
        pieces: list[str] = []
        for number in range(stop - 1, start - 1, -1):
            line = self.lines[number]
            if not line.strip() or line.lstrip().startswith((";", "#dbg_")):
                continue
            pieces.append(line)
            if not _continues(line):
                break
        return tuple(dict.fromkeys(_TARGET.findall(" ".join(reversed(pieces)))))

    @property
    def entry(self) -> str:
        """The label of its first block."""
        return next(iter(self.blocks))

    @cached_property
    def predecessors(self) -> Mapping[str, tuple[str, ...]]:
        """Predecessors of each block."""
        found: dict[str, list[str]] = {label: [] for label in self.blocks}
        for label, block in self.blocks.items():
            for successor in block.successors:
                found[successor].append(label)
        return MappingProxyType({label: tuple(labels) for label, labels in found.items()})

    @cached_property
    def definitions(self) -> Mapping[str, Instruction]:
        """The defining instruction of each value, by name with "%"."""
        return MappingProxyType(
            {one.result: one for block in self.blocks.values() for one in block.instructions if one.result}
        )

    @cached_property
    def homes(self) -> Mapping[str, str]:
        """The label of the block that defines each value, by name with "%"."""
        return MappingProxyType(
            {
                one.result: label
                for label, block in self.blocks.items()
                for one in block.instructions
                if one.result
            }
        )

    @cached_property
    def users(self) -> Mapping[str, tuple[tuple[str, Instruction], ...]]:
        """The instructions that use each value, with the labels of their blocks, in text order."""
        found: dict[str, list[tuple[str, Instruction]]] = {}
        for label, block in self.blocks.items():
            for one in block.instructions:
                for name in one.names:
                    found.setdefault(name, []).append((label, one))
        return MappingProxyType({name: tuple(places) for name, places in found.items()})

    def __repr__(self) -> str:
        return f"<Function {self.name}>"


@dataclass(frozen=True, eq=False)
class ParsedModule:
    """A module of LLVM IR.

    Attributes
    ----------
    lines : its text.
    triple, datalayout : of its target; "" if missing.
    functions : functions with a body, by name without "@".
    globals : variables and aliases, by name without "@".
    types : definitions of named types: "%struct.S" -> "{ i32, ptr }".
    """

    lines: tuple[str, ...] = field(repr=False)
    triple: str
    datalayout: str
    functions: Mapping[str, FunctionDefinition] = field(repr=False)
    globals: Mapping[str, Global] = field(repr=False)
    types: Mapping[str, str] = field(repr=False)
    _variables: dict[str, Mapping[str, str]] = field(repr=False, default_factory=dict)

    @cached_property
    def _nodes(self) -> Mapping[int, str]:
        """Metadata nodes by number."""
        found = {}
        for line in reversed(self.lines):
            if line.startswith("!"):
                node = _NODE.match(line)
                if node:
                    found[int(node[1])] = node[2]
            elif line:
                break  # they are the last of a module
        return MappingProxyType(found)

    def node(self, number: int) -> str:
        """The text of a metadata node; "" if there is none."""
        return self._nodes.get(number, "")

    @cached_property
    def _groups(self) -> Mapping[int, Mapping[str, str]]:
        """Attribute groups: string attributes with values, and enum attributes."""
        found = {}
        for line in self.lines:
            group = _GROUP.match(line) if line.startswith("attributes #") else None
            if group:
                words = dict.fromkeys(_STRING.sub("", group[2]).split(), "")
                found[int(group[1])] = words | dict(_STRING.findall(group[2]))
        return MappingProxyType(found)

    def attribute(self, function: FunctionDefinition, name: str) -> str:
        """Value of a string attribute of a function, such as "target-cpu"; "" if missing."""
        values = (self._groups.get(number, {}).get(name, "") for number in function.groups)
        return next(filter(None, values), "")

    def marks(self, function: FunctionDefinition, word: str) -> bool:
        """Whether a function has an enum attribute, such as "optnone"."""
        return any(word in self._groups.get(number, {}) for number in function.groups)

    @property
    def pointer_bits(self) -> int:
        """Width of addresses."""
        found = _POINTER.search(self.datalayout)
        return int(found[1]) if found else 64

    @cached_property
    def is_fortran(self) -> bool:
        """Whether flang wrote it: arrays have their first subscript along memory."""
        return any(line.startswith('source_filename = "FIRModule"') for line in self.lines[:4])

    def loop_properties(self, function: FunctionDefinition, label: str) -> frozenset[str]:
        """Loop metadata on the branch of a latch, such as "llvm.loop.mustprogress"."""
        block = function.blocks[label]
        found = _LOOP.search("\n".join(function.lines[block.start : block.stop]))
        node = self._nodes.get(int(found[1]), "") if found else ""
        parts = (self._nodes.get(int(number), "") for number in _NODES.findall(node))
        return frozenset(name for part in parts for name in _NAMED_NODE.findall(part))

    def variables(self, function: FunctionDefinition) -> Mapping[str, str]:
        """Source names of values according to debug information: "%3" -> "a".

        Names that belong to several values in turn are left out.
        """
        if function.name not in self._variables:
            found: dict[str, set[str]] = {}
            for line in function.lines:
                named = _VARIABLE_OF.search(line) if "#dbg_value(" in line else None
                name = _NODE_NAME.search(self._nodes.get(int(named[2]), "")) if named else None
                if named and name:
                    found.setdefault(name[1], set()).add(named[1])
            only = {min(values): name for name, values in found.items() if len(values) == 1}
            self._variables[function.name] = MappingProxyType(only)
        return self._variables[function.name]

    def name_in_source(self, function: FunctionDefinition) -> str:
        """Source name of a function according to debug information; else its symbol."""
        node = self._nodes.get(function.debug, "") if function.debug is not None else ""
        found = _NODE_NAME.search(node)
        return found[1] if found else function.name.strip('"')

    def where(self, function: FunctionDefinition, instruction: Instruction | None = None) -> Where:
        """Source location of an instruction for remarks; of an inlined one, the location of the call."""
        name = self.name_in_source(function)
        number = instruction.debug if instruction is not None else None
        node = ""
        while number is not None:
            node = self.node(number)
            inlined = _INLINED.search(node)
            number = int(inlined[1]) if inlined else None
        line, column = _number(_LINE, node), _number(_COLUMN, node)
        # Line 0: code that has no line of its own.
        return Where(name, line, column, self._file_of(node)) if line else Where(name)

    def _file_of(self, node: str) -> str:
        """The file of a location or a scope, by the scopes around it; "" if none says it."""
        for _ in range(_MOST_SCOPES):
            file = _number(_FILE, node)
            if file is not None:
                found = _FILE_NAME.search(self.node(file))
                return found[1] if found else ""
            scope = _number(_SCOPE, node)
            if scope is None:
                return ""
            node = self.node(scope)
        return ""


def _number(pattern: re.Pattern[str], node: str) -> int | None:
    found = pattern.search(node)
    return int(found[1]) if found else None


def read_module(text: str) -> ParsedModule:
    """Parse a module from its text, as LLVM 22 prints it; function bodies are parsed on demand.

    Examples
    --------
    >>> module = read_module('''
    ... define i32 @next(i32 %x) {
    ...   %y = add nsw i32 %x, 1
    ...   ret i32 %y
    ... }
    ... ''')
    >>> function = module.functions["next"]
    >>> [one.opcode for one in function.blocks[function.entry].instructions]
    ['add', 'ret']
    """
    lines = tuple(text.split("\n"))
    target = {"triple": "", "datalayout": ""}
    functions: dict[str, FunctionDefinition] = {}
    variables: dict[str, Global] = {}
    types: dict[str, str] = {}
    number = 0
    while number < len(lines):
        line = lines[number]
        match line[:1]:
            case "d" if line.startswith("define "):
                stop = lines.index("}", number) + 1
                found = _DEFINE.match(line)
                assert found is not None
                functions[found[1]] = FunctionDefinition(found[1], lines[number:stop], number)
                number = stop - 1
            case "@":
                variable = _read_global(line)
                variables[variable.name] = variable
            case "%":
                named = _TYPE.match(line)
                if named:
                    types[named[1]] = named[2]
            case "t":
                quoted = _QUOTED.match(line)
                if quoted:
                    target[quoted[1]] = quoted[2]
            case _:
                pass
        number += 1
    return ParsedModule(
        lines=lines,
        triple=target["triple"],
        datalayout=target["datalayout"],
        functions=MappingProxyType(functions),
        globals=MappingProxyType(variables),
        types=MappingProxyType(types),
    )


_VARIABLE = re.compile(r"(?:[a-z_]+(?:\([^)]*\))? )*?(global|constant|alias|ifunc) ")


def _read_global(line: str) -> Global:
    found = _GLOBAL.match(line)
    assert found is not None
    name, rest = found[1], found[2]
    word = _VARIABLE.match(rest)
    if word is None:  # a comdat, or something newer: nothing is known of it
        return Global(name, "", alias=True, constant=False)
    kind = split_type(rest[word.end() :])[0]
    return Global(name, kind, alias=word[1] in ("alias", "ifunc"), constant=word[1] == "constant")
