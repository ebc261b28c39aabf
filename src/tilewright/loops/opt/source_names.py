"""Names of values in terms of the source program: variables, arguments, fields of structures."""

from __future__ import annotations

import re

from tilewright.loops.llvm.debug_types import DebugTypes
from tilewright.loops.llvm.module import FunctionDefinition, ParsedModule
from tilewright.loops.llvm.text import NAME

#: A value with the type that its symbol carries, "%n:i32"; remarks omit the type.
_TYPED = re.compile(rf"([%@]{NAME})(?::(?:i\d+|ptr|float|double|half|bfloat))?(?::unsigned)?")
#: The content of memory: "[%c:ptr + 8]:ptr".
_MEMORY = re.compile(r"\[([^\[\]]+?)(?: \+ ([^\[\]]+))?\]:\w+(?::unsigned)?")
#: The variable in the name that LLVM gives to a value of it: "i.045", "x.addr", "sum.0.lcssa".
_VARIABLE = re.compile(r"([A-Za-z_]\w*)(?:\.(?:addr|lcssa|sroa|ph|pre|in|us|\d)[\w.]*)?")
#: Symbols of Fortran: of a module, "_QMsolverEa", of a subroutine, "_QFstepEa".
_FORTRAN = re.compile(r"_Q[MF]\w*?E(\w+)")
#: Numba's names of an array argument's data and shape, and of other arguments.
_NUMBA = re.compile(r"arg\.(\w+?)(?:\.4|\.5\.(\d+))?")
#: Instructions whose results have names of LLVM's, such as "arrayidx".
_NAMED_BY_SOURCE = ("phi", "alloca")


class SourceNames:
    """Rewrites texts about values of one function."""

    def __init__(self, module: ParsedModule, function: FunctionDefinition) -> None:
        self._module, self._function = module, function
        self._variables = module.variables(function)
        self._types = DebugTypes(module, function)
        self._arguments = {one.name: n for n, one in enumerate(function.parameters, 1)}

    def __call__(self, text: str) -> str:
        r"""A text without names of LLVM IR.

        >>> from tilewright.loops.llvm.module import read_module
        >>> module = read_module("define void @f(ptr %0, i32 %n.addr) {\\n  ret void\\n}")
        >>> SourceNames(module, module.functions["f"])("n=%n.addr:i32, %0 and [%0 + 8]:ptr of @g")
        'n=n, arg1 and at(arg1 + 8) of g'
        """
        named = _TYPED.sub(lambda found: self._name(found[1]), text)
        before = ""
        while named != before:
            before = named
            named = _MEMORY.sub(lambda found: self._content(found[1], found[2]), named)
        return named

    def _name(self, value: str) -> str:
        """The name of one value or global variable."""
        if value in self._variables:
            return self._variables[value]
        name = value[1:].strip('"')
        if value.startswith("@"):
            fortran = _FORTRAN.fullmatch(name)
            return fortran[1] if fortran else name
        numba = _NUMBA.fullmatch(name)
        if numba:
            return f"{numba[1]}.shape[{numba[2]}]" if numba[2] else numba[1]
        declared = self._types.declared.get(value)
        if declared is not None:
            return declared
        defined = self._function.definitions.get(value)
        if defined is not None and defined.opcode == "load":
            pointer = defined.operands[0].text
            declared = self._types.declared.get(pointer)
            if declared is not None:  # an argument of Fortran, which is passed by reference
                return declared
        if defined is None or defined.opcode in _NAMED_BY_SOURCE:
            found = _VARIABLE.fullmatch(name)
            if found:
                return found[1]
        if value in self._arguments:
            return f"arg{self._arguments[value]}"
        line = self._module.where(self._function, defined).line
        return "(value)" if line is None else f"(value of line {line})"

    def _content(self, base: str, offset: str | None) -> str:
        """The content of memory at an offset in bytes from what a pointer points to."""
        if offset is None or offset.isdigit():
            field = self._types.field(base, int(offset or 0))
            if field is not None:
                return field
        return f"at({base})" if offset is None else f"at({base} + {offset})"
