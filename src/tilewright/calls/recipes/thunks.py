"""Thunks: machine code that calls a C function of some signature with arguments from an array of words.

Calling conventions differ in where numbers of floating point go, so each signature has a thunk of its own,
which all functions of this signature share.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from tilewright.llvm.build import Callee, Module
from tilewright.llvm.jit import CodeAddress, Linked, NativeFunction
from tilewright.llvm.object_cache import cached_object
from tilewright.llvm.target import data_layout, emit_object
from tilewright.llvm.values import INT32, INT64, POINTER, VOID, Type, element_type
from tilewright.machine.host import host_machine
from tilewright.preparing import once
from tilewright.spec.dtype import F32, F64

_NAME = "tw_thunk"

#: LLVM's types of arguments that kernels take, by those of ctypes, each with a letter for the cache.
TYPES: dict[Any, tuple[str, Type]] = {
    ctypes.c_void_p: ("p", POINTER),
    CodeAddress: ("p", POINTER),
    ctypes.c_int64: ("l", INT64),
    ctypes.c_int32: ("i", INT32),
    ctypes.c_float: ("f", element_type(F32)),
    ctypes.c_double: ("d", element_type(F64)),
}


def word_of(kind: Any, value: Any) -> int:
    """A number of a type of ctypes as a signed word of 64 bits, from which a thunk reads it.

    >>> hex(word_of(ctypes.c_float, 1.0))
    '0x3f800000'
    """
    return int.from_bytes(bytes(kind(value)), "little", signed=True)


@once
def thunk(kinds: tuple[Any, ...]) -> Linked:
    """The thunk ``void tw_thunk(code, words)`` of functions with arguments of these types of ctypes.

    >>> code = thunk((ctypes.c_void_p, ctypes.c_int64, ctypes.c_float))
    """
    letters = "".join(TYPES[kind][0] for kind in kinds)
    machine = host_machine()

    def compiled() -> bytes:
        module = Module(_NAME, machine.triple, data_layout(machine))
        f = module.define(_NAME, VOID, [("code", POINTER), ("words", POINTER)], exported=True)
        words = f.arguments["words"]
        values = [f.load(TYPES[kind][1], f.at(words, 8 * place), 4) for place, kind in enumerate(kinds)]
        # Frozen, they are not copied as vectors: words just written one by one are slow to load so.
        values = [f.freeze(value) for value in values]
        f.call(Callee(VOID, f.arguments["code"].text), values)
        f.ret()
        return emit_object(str(module), _NAME, machine)

    return Linked(cached_object(f"{_NAME} {letters}", machine, compiled), (_NAME,), {})


class Thunk(NamedTuple):
    """A thunk's address, and which arguments are pointers and which are numbers other than int64."""

    address: int
    pointers: tuple[int, ...]
    numbers: tuple[int, ...]


def thunk_of(function: NativeFunction) -> Thunk | None:
    """The thunk of a function, which lives as long as the process; None for types that thunks do not know."""
    if function.thunk is None and all(kind in TYPES for kind in function.kinds):
        places = list(enumerate(function.kinds))
        function.thunk = Thunk(
            thunk(function.kinds).address(_NAME),
            tuple(place for place, kind in places if kind is ctypes.c_void_p),
            tuple(place for place, kind in places if kind not in (ctypes.c_void_p, ctypes.c_int64)),
        )
    found: Thunk | None = function.thunk
    return found
