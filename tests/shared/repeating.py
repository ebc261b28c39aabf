"""Checks of calls that machine code repeats."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from support import Array

from tilewright.calls.repeated import replay

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
    """An array of other values and memory, of the same strides."""
    owner = array if array.base is None else array.base
    assert isinstance(owner, np.ndarray)
    memory = np.array(owner, order="K")
    offset = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    found = np.ndarray(array.shape, array.dtype, memory.data, offset, array.strides)
    if array.dtype.kind in "fc":
        found[...] = RNG.standard_normal(array.shape)
    return found


def check(function: Callable[..., Any], *operands: Array, **options: Any) -> None:
    """The third call, on other arrays, runs no Python and gives the answer that Python gives."""
    for _ in range(2):
        function(*operands, **options)
    fresh = [alike(operand) for operand in operands]
    found: list[Any] = []
    assert python_lines(lambda: found.append(function(*fresh, **options))) == 0, (function, options)
    replay().table.clear()
    expected = function(*fresh, **options)
    assert type(found[0]) is type(expected)
    several = isinstance(expected, tuple)
    for one, other in zip(found[0], expected, strict=True) if several else ((found[0], expected),):
        assert type(one) is type(other)
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert getattr(one, "strides", ()) == getattr(other, "strides", ())
        assert one.tobytes() == other.tobytes()
