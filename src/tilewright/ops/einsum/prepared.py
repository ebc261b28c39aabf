"""Cache of prepared einsum calls: Python functions by shapes and strides, and recipes of machine code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import NDArray

from tilewright.calls.fastcall import native_entry_possible
from tilewright.calls.recipes import EinsumCall, Made
from tilewright.llvm.builtin import Builtin
from tilewright.ops.einsum.native_entry import NativeEinsum
from tilewright.preparing import Section

_keeping = Section()
_native: list[NativeEinsum] = []  # the one entry of this process, once made

#: Calls kept: more shapes than a program that repeats itself has.
MOST_CALLS = 1024

#: The function that computes a call without keywords, by subscripts, then shape, strides and dtype of each
#: operand. Emptied when it is full.
calls: dict[tuple[Any, ...] | None, Callable[..., NDArray[Any]]] = {}


def keep_call(key: tuple[Any, ...], function: Callable[..., NDArray[Any]]) -> None:
    """Lets Python look up a call on plain arrays."""
    if len(calls) >= MOST_CALLS:
        calls.clear()
    calls[key] = function


def keep_steps(builtin: Builtin, call: EinsumCall, steps: Sequence[Made]) -> None:
    """Lets machine code serve repetitions of a call, where the interpreter has such an entry."""
    with _keeping as first:
        if not first:
            return
        if not _native:
            if not native_entry_possible():
                return
            _native.append(NativeEinsum(builtin))
        _native[0].add(call, steps)
