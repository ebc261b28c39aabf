"""Operands of sums of products: every walk as it stands in memory, exact sums, shapes with every tail."""

from __future__ import annotations

from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from support import Array, GuardedMemory

from tilewright.ops.sum_of_products.problem import SumOfProducts, Walk

#: Every problem of one type.
PROBLEMS = tuple((walk, factors) for walk in Walk for factors in walk.factors)
NUMPY: dict[str, Any] = {"bf16": ml_dtypes.bfloat16}


def small(shape: tuple[int, ...], dtype: Any, seed: int) -> Array:
    """-1, 0 and 1, complex ones in both parts: sums of hundreds are exact in every type but 8 bits wide."""
    random = np.random.default_rng(seed)
    found = random.integers(-1, 2, shape)
    if np.dtype(dtype).kind == "c":
        found = found + 1j * random.integers(-1, 2, shape)
    return found.astype(dtype)


class Case(NamedTuple):
    """Arrays of five axes for one problem, as its walk wants them in memory, and what they become."""

    arrays: list[Array]
    expected: Array


def placed(content: Array, axes: tuple[int, ...], gap: int, memory: GuardedMemory | None) -> Array:
    """The content with its axes in an order of memory, so many elements apart; at the end of a memory."""
    steps, step = [0] * content.ndim, content.itemsize
    for axis in reversed(axes):
        steps[axis], step = step, step * content.shape[axis] + gap * content.itemsize
    if memory is not None:
        return memory.place(content, tuple(steps), at_end=True)
    base = np.zeros(step // content.itemsize + 1, content.dtype)
    view: Array = np.ndarray(content.shape, content.dtype, base, 0, tuple(steps))
    view[...] = content
    return view


def make(
    problem: SumOfProducts, shape: tuple[int, ...], gap: int = 0, memories: list[GuardedMemory] | None = None
) -> Case:
    """Operands of a problem with the lengths of its five axes; results are filled with what is no result."""
    dtype = NUMPY.get(problem.dtype.name, problem.dtype.numpy)
    order = (0, 1, 2, 4, 3) if problem.walk in (Walk.ACROSS, Walk.WEIGHTED) else (0, 1, 2, 3, 4)
    # Elements that are walked one by one are two apart.
    doubled = problem.walk in (Walk.APART, Walk.SINGLE)
    arrays = []
    for seed in range(problem.factors):
        full = (*shape[:4], 1) if problem.walk is Walk.SPREAD and seed == 0 else shape
        full = (*shape[:3], 1, shape[4]) if problem.walk is Walk.WEIGHTED and seed == 1 else full
        content = small((*full[:4], full[4] * 2) if doubled else full, dtype, seed)
        one = placed(content, order, gap, memories[seed] if memories else None)
        arrays.append(one[..., ::2] if doubled else one)
    whole = [np.broadcast_to(array, shape) for array in arrays]
    expected = problem.reference(*whole)
    with np.errstate(all="ignore"):
        expected = expected.astype(dtype)
    blank = np.full(expected.shape, 77).astype(dtype)
    if not problem.dtype.is_integer:
        blank[...] = np.nan
    result = tuple(range(expected.ndim))
    arrays.append(placed(blank, result, gap, memories[2] if memories else None))
    return Case(arrays, expected)


def strides_of(problem: SumOfProducts, case: Case) -> list[int]:
    """The strides of x, y and z as the kernel takes them."""
    found: list[int] = []
    x, *rest = case.arrays
    y = rest[0] if problem.factors == 2 else None
    for array in (x, y, case.arrays[-1]):
        if array is None:
            found += [0] * 5
            continue
        steps = [step // array.itemsize for step in array.strides]
        if array.ndim == 3:  # sums: without turns and columns
            steps = [*steps[:2], 0, steps[2], 0]
        found += steps
    if problem.walk is Walk.SPREAD:
        found[4] = 0
    if problem.walk is Walk.WEIGHTED:
        found[8] = 0
    return found


def shapes(lanes: int) -> list[tuple[int, ...]]:
    """One element, tails of vectors and of turns, several of every axis, more columns than a block has."""
    return [
        (1, 1, 1, 1, 1),
        (2, 3, 2, 3, lanes - 1),
        (1, 1, 1, lanes + 1, 4 * lanes + 3),
        (1, 2, 3, 2, 5 * lanes),
        (1, 1, 1, 17 * lanes + 5, 3),
        (1, 1, 2, 2 * lanes + 3, 131),
        (1, 1, 1, 1, 1030 * lanes // 4),
    ]
