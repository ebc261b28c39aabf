"""Compiles a kernel by parts: functions that other kernels have too are compiled once.

Kernels of one element type differ in their loops; tiles, packing routines and transposes have the same text.
LLVM's code generator takes each function by itself, so its machine code is the same in a part.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from tilewright.llvm.merge_objects import merge_objects
from tilewright.llvm.object_cache import generator_version
from tilewright.llvm.target import CODEGEN_LEVEL, QUICK_LEVEL, emit_object, has_parts
from tilewright.machine.machine import Machine
from tilewright.preparing import preparing
from tilewright.store import object_cache

#: Objects of parts that are kept, of 2 to 30 KiB each.
_MOST_PARTS = 256

#: A module of its own takes LLVM about 1.5 ms more than its functions within another one, 40 lines' time.
_LEAST_LINES = 150

#: First words of the names of functions that quick code has without optimisation: copies, dot products,
#: stores of strided results.
_QUICK = "pack_|square_|turned_|dot_|epilogue_"

#: Functions, addresses and metadata that a line refers to.
_REFERENCE = re.compile(r"@[-\w.$]+|!\d+")
_SIGNATURE = re.compile(r"define (internal )?(.+?) (@[-\w.$]+)\((.*)\) (.*) \{\n")

#: The most recently used parts, by digest of text and target: the object file.
_parts: OrderedDict[bytes, bytes] = OrderedDict()


class _Function(NamedTuple):
    """A function of a module: its text, what it refers to, and its declaration for other modules."""

    name: str
    text: str
    references: frozenset[str]
    declaration: str
    own: bool

    @property
    def stem(self) -> str:
        """The name without the number that tells variants apart, which are one part."""
        return re.sub(r"_\d+$", "", self.name)


def _function(text: str) -> _Function:
    signature = _SIGNATURE.match(text)
    assert signature is not None, text[:100]
    internal, result, name, arguments, attributes = signature.groups()
    kinds = re.sub(r" %[\w.]+", "", arguments)
    # The bodies of tasks are the kernel's loops, and what they are called with differs from kernel to kernel.
    own = internal is None or name.startswith("@task_")
    declaration = f"declare hidden {result} {name}({kinds}) {attributes}"
    return _Function(name, text, frozenset(_REFERENCE.findall(text)), declaration, own)


def split_module(text: str) -> list[str]:
    """The parts of a module, each a module; the first one has the exported function and small ones.

    Before: one module with `gemm`, `task_0`, six variants of `tile` and `pack`. After: a module with `gemm`
    and `task_0`, one with the tiles, one with `pack`; each declares as hidden what it calls in the others.
    """
    first = text.index("\ndefine ") + 1
    header = text[:first].splitlines()
    declarations = {
        match.group(): line for line in header[1:] if (match := _REFERENCE.search(line)) is not None
    }
    target = [line for line in header if line.startswith("target ")]
    functions = [_function("define " + body) for body in text[first:].split("define ")[1:]]
    lines = Counter[str]()
    for function in functions:
        lines[function.stem] += function.text.count("\n")
    own = {function.name for function in functions if function.own}
    groups: dict[str, list[_Function]] = {"": []}
    for function in functions:
        apart = not function.own and lines[function.stem] >= _LEAST_LINES and not function.references & own
        groups.setdefault(function.stem if apart else "", []).append(function)
    part_of = {function.name: part for part, group in groups.items() for function in group}
    shared = {
        name
        for function in functions
        for name in function.references
        if part_of.get(name, part_of[function.name]) != part_of[function.name]
    }
    declarations |= {function.name: function.declaration for function in functions}
    found = []
    for group in groups.values():
        defined = {function.name for function in group}
        used = sorted(set().union(*(function.references for function in group)) - defined)
        texts = [
            function.text.replace("define internal", "define hidden", 1)
            if function.name in shared
            else function.text
            for function in group
        ]
        found.append("\n".join([*target, *(declarations[name] for name in used), "".join(texts)]))
    return found


def _stored_or_compiled(shaping: str, compile_it: Callable[[], bytes]) -> bytes:
    """The object of a part from the object cache, or compiled and stored.

    Machines that differ in caches or rates alone share it: nothing else shapes it but what its text says.
    """
    store = object_cache()
    if store is None:
        return compile_it()
    key = hashlib.sha256(f"part\0{generator_version()}\0{shaping}".encode()).digest()
    found = store.load(key)
    if found is None:
        found = compile_it()
        store.store(key, found)
    return found


def _object_of(text: str, name: str, machine: Machine, level: int) -> bytes:
    """The object of a part: kept in this process, stored in the object cache, or compiled."""
    shaping = f"{machine.triple}\0{machine.cpu}\0{machine.features}\0{level}\0{text}"
    key = hashlib.sha256(shaping.encode()).digest()
    with preparing:
        found = _parts.pop(key, None)
        if found is None:
            found = _stored_or_compiled(shaping, lambda: emit_object(text, name, machine, level))
        _parts[key] = found
        if len(_parts) > _MOST_PARTS:
            _parts.popitem(last=False)
    return found


def _level_of(part: str) -> int:
    """At which level a part of quick code is compiled, by the name of its first function."""
    return QUICK_LEVEL if re.search(rf"^define .*?@({_QUICK})", part, re.MULTILINE) else CODEGEN_LEVEL


def emit_by_parts(text: str, name: str, machine: Machine, *, quick: bool = False) -> bytes:
    """Machine code of a kernel's module, as an object file; parts that another kernel had are reused.

    Parameters
    ----------
    quick : whether loops around tiles, copies and the like are compiled without optimisation.
    """
    first, *others = split_module(text) if has_parts(machine) else [text]
    if not others:
        return emit_object(text, name, machine)
    own = emit_object(first, name, machine, QUICK_LEVEL if quick else CODEGEN_LEVEL)
    levels = [_level_of(part) if quick else CODEGEN_LEVEL for part in others]
    rest = (_object_of(part, name, machine, level) for part, level in zip(others, levels, strict=True))
    return merge_objects([own, *rest])
