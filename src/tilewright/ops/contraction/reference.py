"""The meaning of contractions in NumPy: operands as views of memory, sums in the widest type."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import ContractionMemory, InvalidSize
from tilewright.ops.contraction.problem import Contraction, Dimension, FirstTouch
from tilewright.spec.functions import UnaryOp, meaning
from tilewright.spec.problem import exact_dtype


def stride_of(dimension: Dimension, name: str) -> int:
    """Elements from one index of a dimension to the next in an operand."""
    found: int = getattr(dimension, name)
    return found


def reach(problem: Contraction, name: str) -> tuple[int, int]:
    """The lowest and the highest element of an operand, counted from the first one.

    >>> reach(Contraction([Dimension("c", "primitive", 8, in0=-2, out=1)], main="relu"), "in0")
    (-14, 0)
    """
    steps = [((d.size or 0) - 1) * stride_of(d, name) for d in problem.having(name)]
    return sum(min(step, 0) for step in steps), sum(max(step, 0) for step in steps)


def span(array: NDArray[Any]) -> tuple[int, int]:
    """The lowest and the highest element of the memory between an array's first and last byte.

    >>> span(np.zeros((2, 3)).T[::-1])
    (-2, 3)
    """
    low, high = np.lib.array_utils.byte_bounds(array)
    first = array.__array_interface__["data"][0]
    return -((first - low) // array.itemsize), (high - first) // array.itemsize - 1


def check_memory(problem: Contraction, name: str, array: NDArray[Any]) -> None:
    """Refuses an array that does not have all elements of an operand whose sizes are known."""
    if any(dimension.size == 0 for dimension in problem.having(name)):
        return
    (low, high), (found_low, found_high) = reach(problem, name), span(array)
    if low < found_low or high > found_high:
        raise ContractionMemory(name=name, low=low, high=high, found_low=found_low, found_high=found_high)


def view(problem: Contraction, name: str, array: NDArray[Any]) -> NDArray[Any]:
    """What `Contraction.view` does."""
    found = problem.having(name)
    shape = []
    for dimension in found:
        if dimension.size is None:
            raise InvalidSize(name=f"size of {dimension}", found=None, required="known: call sized() before")
        shape.append(dimension.size)
    check_memory(problem, name, array)
    steps = [stride_of(dimension, name) * array.itemsize for dimension in found]
    # From an array of one element: what as_strided is told of all of them is checked above.
    first = np.lib.stride_tricks.as_strided(array, (1,) * array.ndim if array.size else (0,) * array.ndim)
    return np.lib.stride_tricks.as_strided(first, shape, steps)


def reference(
    problem: Contraction,
    in0: NDArray[Any],
    in1: NDArray[Any] | None,
    out: NDArray[Any] | None,
    bias: NDArray[Any] | None,
) -> NDArray[Any]:
    """What `Contraction.reference` does."""
    first = view(problem, "in0", in0)
    if isinstance(problem.main, UnaryOp):
        return meaning(problem.main, first)
    types = problem.types
    exact = exact_dtype(types)
    assert in1 is not None, "a product has two operands"
    labels = {
        name: [at for at, one in enumerate(problem.dimensions) if one in problem.having(name)]
        for name in ("in0", "in1", "out")
    }
    arrays = (first.astype(exact), labels["in0"], view(problem, "in1", in1).astype(exact), labels["in1"])
    value: NDArray[Any] = np.asarray(np.einsum(*arrays, labels["out"], optimize=True))
    held = {FirstTouch.NONE: ("out", out), FirstTouch.BIAS: ("bias", bias)}.get(problem.first)
    if held is not None:
        name, array = held
        assert array is not None, f"first touch reads {name}"
        value = value + view(problem, name, array).astype(exact)
    return problem.last.reference(value, (), types.sums, types.c)
