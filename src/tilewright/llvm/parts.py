"""Compiles a kernel by parts: functions that other kernels have too are compiled once.

Kernels of one element type differ in their loops; tiles, packing routines and transposes have the same text.
LLVM's code generator takes each function by itself, so its machine code is the same in a part.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, OrderedDict
from typing import NamedTuple

from tilewright.llvm.generation import Job, emit_objects
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


def _key_of(job: Job, machine: Machine) -> bytes:
    """What shapes the object of a part: machines that differ in caches or rates alone share it."""
    shaping = f"{machine.triple}\0{machine.cpu}\0{machine.features}\0{job.level}\0{job.text}"
    return hashlib.sha256(shaping.encode()).digest()


def _key_of_stored(key: bytes) -> bytes:
    """The key of a part in the object cache."""
    return hashlib.sha256(f"part\0{generator_version()}\0".encode() + key).digest()


def _found(key: bytes) -> bytes | None:
    """The object of a part, if this process or the object cache keeps it."""
    store = object_cache()
    found = _parts.get(key)
    if found is None and store is not None:
        found = store.load(_key_of_stored(key))
    return found


def _keep(key: bytes, part: bytes) -> None:
    """Keeps the object of a part in this process, as the one used last."""
    _parts.pop(key, None)
    _parts[key] = part
    if len(_parts) > _MOST_PARTS:
        _parts.popitem(last=False)


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
    own = Job(first, QUICK_LEVEL if quick else CODEGEN_LEVEL)
    parts = [Job(part, _level_of(part) if quick else CODEGEN_LEVEL) for part in others]
    with preparing:
        keys = [_key_of(part, machine) for part in parts]
        found = {key: _found(key) for key in keys}
        missing = {key: part for key, part in zip(keys, parts, strict=True) if found[key] is None}
        of_kernel, *made = emit_objects([own, *missing.values()], name, machine)
        store = object_cache()
        for key, part in zip(missing, made, strict=True):
            found[key] = part
            if store is not None:
                store.store(_key_of_stored(key), part)
        objects = [part for part in found.values() if part is not None]
        for key, part in zip(found, objects, strict=True):
            _keep(key, part)
    return merge_objects([of_kernel, *objects])
