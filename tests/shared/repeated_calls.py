"""Checks of calls that machine code repeats."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from support import Array

from tilewright.calls.operands import data_address
from tilewright.calls.repeated import replay
from tilewright.llvm.quick import quick_code

# One call of a process compiles its quick code well, in Python. It must not be one that is looked at.
quick_code.finish()

RNG = np.random.default_rng(18)


def python_lines(call: Callable[[], Any]) -> int:
    """Lines of the package that Python runs in a call."""
    count = 0

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line" and "tilewright" in frame.f_code.co_filename
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def alike(array: Array) -> Array:
    """An array of other values and memory, of the same strides and alignment."""
    owner = array if array.base is None else array.base
    assert isinstance(owner, np.ndarray)
    memory = np.empty(owner.nbytes + 1, np.uint8)
    ctypes.memmove(data_address(memory), data_address(owner), owner.nbytes)
    offset = data_address(array) - data_address(owner)
    found: Array = np.ndarray(array.shape, array.dtype, memory, offset, array.strides)
    match array.dtype.kind:
        case "f" | "c":
            found[...] = RNG.standard_normal(array.shape)
        case "b" | "i" | "u":
            found[...] = RNG.integers(0, 100, array.shape)
        case _:
            found[...] = RNG.permutation(array.reshape(-1)).reshape(array.shape)
    return found


def check(function: Callable[..., Any], *operands: Array, **options: Any) -> None:
    """The third call, on other arrays, runs no Python and gives the answer that Python gives.

    An operand that is passed twice is one array in each call. What the call writes into is compared too.
    """
    for _ in range(2):
        function(*operands, **options)
    others = {id(operand): alike(operand) for operand in operands}
    before = {place: other.copy() for place, other in others.items()}
    fresh = [others[id(operand)] for operand in operands]
    results: list[Any] = []
    assert python_lines(lambda: results.append(function(*fresh, **options))) == 0, (function, options)
    found = _parts(results[0])
    kept = [part.tobytes() for part in found]
    after = {place: other.tobytes() for place, other in others.items()}
    for place, other in others.items():
        if other.flags.writeable:
            other[...] = before[place]
    replay().table.clear()
    result = function(*fresh, **options)
    assert type(results[0]) is type(result)
    for part, memory, expected in zip(found, kept, _parts(result), strict=True):
        assert type(part) is type(expected)
        assert (part.dtype, part.shape) == (expected.dtype, expected.shape)
        assert getattr(part, "strides", ()) == getattr(expected, "strides", ())
        assert memory == expected.tobytes()
    assert after == {place: other.tobytes() for place, other in others.items()}


def _parts(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple) else [result]
