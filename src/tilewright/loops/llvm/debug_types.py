"""Debug information of variables: declared pointers, and the fields of structures that they point to."""

from __future__ import annotations

import re

from tilewright.loops.llvm.module import FunctionDefinition, ParsedModule
from tilewright.loops.llvm.text import NAME

_DECLARED = re.compile(rf"#dbg_declare\(ptr (%{NAME}), !(\d+), !DIExpression\(\),")
_VALUE = re.compile(r"#dbg_value\([^!]*, !(\d+), ")
_NODE_NAME = re.compile(r'\bname: "([^"]*)"')
_TYPE, _BASE, _ELEMENTS, _OFFSET = (
    re.compile(rf"\b{field}: !?(\d+)") for field in ("type", "baseType", "elements", "offset")
)
_NODES = re.compile(r"!(\d+)")
#: Nodes that name another type, and those that point to it.
_ALIASES = ("DW_TAG_const_type", "DW_TAG_typedef", "DW_TAG_volatile_type", "DW_TAG_restrict_type")
_POINTERS = {"DW_TAG_pointer_type": "->", "DW_TAG_reference_type": ".", "DW_TAG_rvalue_reference_type": "."}
_STRUCTURES = ("DW_TAG_structure_type", "DW_TAG_class_type")


class DebugTypes:
    """The variables of a function and their types.

    Attributes
    ----------
    declared : names of variables whose memory a value points to: arguments of Fortran, mostly.
    """

    def __init__(self, module: ParsedModule, function: FunctionDefinition) -> None:
        self._module = module
        self.declared: dict[str, str] = {}
        self._type_of: dict[str, str] = {}
        for line in function.lines:
            if "#dbg_" not in line:
                continue
            found = _DECLARED.search(line)
            number = found[2] if found else None
            if found is None:
                value = _VALUE.search(line)
                number = value[1] if value else None
            node = module.node(int(number)) if number else ""
            name, kind = _NODE_NAME.search(node), _TYPE.search(node)
            if name and found:
                self.declared[found[1]] = name[1]
            if name and kind:
                self._type_of[name[1]] = kind[1]

    def field(self, variable: str, offset: int) -> str | None:
        """What is located at an offset in bytes from a pointer: "c->data"; None if it is unknown."""
        kind = self._resolved(self._type_of.get(variable))
        arrow = next((sign for tag, sign in _POINTERS.items() if tag in kind), None)
        if arrow is None:
            return None
        structure = self._resolved(_found(_BASE, kind))
        members = self._module.node(int(_found(_ELEMENTS, structure) or -1))
        if not any(tag in structure for tag in _STRUCTURES):
            return f"*{variable}" if offset == 0 else None
        for number in _NODES.findall(members):
            member = self._module.node(int(number))
            name, kind_of = _NODE_NAME.search(member), _found(_BASE, member)
            if "DW_TAG_member" in member and name and int(_found(_OFFSET, member) or 0) == 8 * offset:
                text = f"{variable}{arrow}{name[1]}"
                if kind_of:
                    self._type_of[text] = kind_of
                return text
        return None

    def _resolved(self, number: str | None) -> str:
        """The node of a type behind its aliases; "" if there is none."""
        seen = set()
        while number is not None and number not in seen:
            seen.add(number)
            node = self._module.node(int(number))
            if not any(tag in node for tag in _ALIASES):
                return node
            number = _found(_BASE, node)
        return ""


def _found(pattern: re.Pattern[str], node: str) -> str | None:
    found = pattern.search(node)
    return found[1] if found else None
