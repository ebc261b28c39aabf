"""Arrays of places: integers that machine code checks, in the first call of a kind and in repeated ones.

A check is a step of the recipe: where it fails, Python makes the call and raises the error. What is checked
is a private copy, since another thread may write into the caller's array before a kernel reads it.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np

from tilewright.calls.foreign import as_array
from tilewright.calls.operands import Array, data_address
from tilewright.calls.pieces import copy_to
from tilewright.calls.recording import constant, new_array
from tilewright.errors import IndexPastEnd, InvalidIndices
from tilewright.llvm.build import Module
from tilewright.llvm.jit import Linked
from tilewright.llvm.object_cache import cached_object
from tilewright.llvm.target import data_layout, emit_object
from tilewright.llvm.values import INT64, POINTER, VOID, int64
from tilewright.machine.host import host_machine
from tilewright.preparing import once
from tilewright.recorder import current

_MODULE, _CHECK = "tw_indices", "tw_check_indices"

#: Arrays of first places that are kept.
_RANGES = 64


def _emit() -> str:
    """The module: a function that stores 1 if an integer is negative or not below a limit, else 0."""
    machine = host_machine()
    module = Module(_MODULE, machine.triple, data_layout(machine))
    arguments = [("status", POINTER), ("indices", POINTER), ("count", INT64), ("limit", INT64)]
    f = module.define(_CHECK, VOID, arguments, exported=True)
    g = f.arguments
    last = f.sub(g["limit"], 1)
    with f.carried_loop(int64(0), g["count"], int64(1), [int64(0)], "index") as (at, (wrong,), advance):
        index = f.load(INT64, f.at(g["indices"], f.mul(at, 8)), 8)
        # The sign of either: of a negative index, or of what is missing behind one that is too large.
        advance([f.or_(wrong, f.or_(index, f.sub(last, index)))])
    (wrong,) = advance.results
    f.store(f.zext(f.icmp("<", wrong, 0), INT64), g["status"], 8)
    f.ret()
    return str(module)


@once
def _function() -> Any:
    machine = host_machine()
    code = cached_object(_MODULE, machine, lambda: emit_object(_emit(), _MODULE, machine))
    pointer, word = ctypes.c_void_p, ctypes.c_int64
    return Linked(code, (_CHECK,), {}).function(_CHECK, [pointer, pointer, word, word])


def checked_indices(value: Any, name: str, limit: int) -> Array:
    """Integers from 0 to limit - 1 as a private, contiguous array of int64.

    Raises
    ------
    InvalidIndices : they are no array of integers.
    IndexPastEnd : one is negative, or not below the limit.

    Examples
    --------
    >>> checked_indices([[0, 2]], "indices", 3)
    array([[0, 2]])
    """
    given = as_array(value, name)
    if given.dtype.kind not in "iu" and given.size:
        raise InvalidIndices(name=name, found=given.dtype)
    found = new_array(given.shape, np.int64)
    if not given.size:
        return found
    copy_to(found, given, "unsafe")  # those of uint64 that do not fit become negative
    status = new_array((1,), np.int64)
    recorder = current.recorder
    if recorder is not None:
        recorder.team(None, 0)
    _function()(data_address(status), data_address(found), found.size, limit)
    if recorder is not None:
        recorder.check()
    if status[0]:
        place = tuple(map(int, np.argwhere((found < 0) | (found >= limit))[0]))
        where = str(list(place)) if place else ""
        raise IndexPastEnd(name=name, place=where, found=int(given[place]), limit=limit)
    return found


@lru_cache(maxsize=_RANGES)
def _first(count: int) -> Array:
    found = np.arange(count)
    found.flags.writeable = False
    return found


def first_places(count: int) -> Array:
    """0, 1, ..., as an array of int64."""
    return constant(_first(count))
