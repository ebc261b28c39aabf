"""Functions that several modules have alike, such as register tiles: they are written once in a process.

Those of a float32 product take Python 0.1 s on an Emerald Rapids. Kernels of one element type differ in their
loops, and most of their functions are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple

from tilewright.llvm.build import Callee, Function, Module
from tilewright.preparing import preparing

#: Text that is kept: the functions of some eight kernels for any sizes, of types of their own.
MOST_BYTES = 8 << 20


class _Kept(NamedTuple):
    """Functions that one call wrote, what they declare, and the length of their text."""

    callee: Callee
    functions: dict[str, Function]
    declarations: dict[str, str]
    size: int


#: By what they are and the module that they are for; the most recently used one is the last. A `dict`: who
#: iterates over an `OrderedDict` hashes each key in Python, where a signal handler may compile a kernel.
_kept: dict[Hashable, _Kept] = {}


def write_once(module: Module, what: Hashable, write: Callable[[Module], Callee]) -> Callee:
    """Functions of a module: those that another module of this process has, or written for it.

    Parameters
    ----------
    what : all that shapes the functions besides `Module.kind`; equal values have equal functions.
    write : defines the functions in an empty module of the same kind; returns the one to call.

    >>> def write(module):
    ...     print("written")
    ...     f = module.define("nothing", VOID, [])
    ...     f.ret()
    ...     return f.callee
    >>> from tilewright.llvm.values import VOID
    >>> modules = Module("a", "x86_64", "e"), Module("b", "x86_64", "e")
    >>> [write_once(module, "nothing", write).text for module in modules]
    written
    ['@nothing', '@nothing']
    >>> str(modules[1]).splitlines()[-4:]
    ['define internal void @nothing() nounwind uwtable {', 'entry.1:', 'ret void', '}']
    """
    key = (module.kind, what)
    with preparing:
        kept = _kept.pop(key, None)
        if kept is None:
            empty = module.empty()
            callee = write(empty)
            size = sum(function.seal() for function in empty.functions.values())
            kept = _Kept(callee, empty.functions, empty.declarations, size)
        _kept[key] = kept
        # Each list is made at once: between two bytecodes a signal handler may compile a kernel, which
        # changes the dictionary.
        while sum(one.size for one in list(_kept.values())) > MOST_BYTES and (keys := list(_kept)[:-1]):
            _kept.pop(keys[0], None)
    for name, function in kept.functions.items():
        module.functions.setdefault(name, function)
    for name, text in kept.declarations.items():
        module.declarations.setdefault(name, text)
    return kept.callee
