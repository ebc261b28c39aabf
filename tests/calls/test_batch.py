"""Batches of products: which axes become one, where matrices start, and the compiled loop over a kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shares import looped
from support import Array, filled, rough
from tiers import crossed, pairwise

import tilewright as tw
from tilewright.calls.batch import BatchAxis, batch_function, fixed_batch_function, merge_axes, outer_offsets
from tilewright.calls.operands import data_address, element_strides
from tilewright.ops.gemm.kernel import matmul_kernel
from tilewright.spec.dtype import F32, GEMM_DTYPES, DType
from tilewright.spec.factors import factor
from tilewright.threads.pool import TEAM_WORK, ThreadPool
from tilewright.threads.scratch import ScratchPool

# --- axes -----------------------------------------------------------------------------------------------

#: Shape; strides of a, b and c; the axes that remain.
MERGED: dict[str, tuple[Sequence[int], Sequence[Sequence[int]], tuple[BatchAxis, ...]]] = {
    "no axis": ((), ((), (), ()), ()),
    "one axis": ((5,), ((8,), (16,), (24,)), (BatchAxis(5, (8, 16, 24)),)),
    "one axis of length 1": ((1,), ((8,), (16,), (24,)), ()),
    "all of length 1": ((1, 1), ((8, 4), (16, 4), (24, 4)), ()),
    "even": ((4, 5), ((40, 8), (80, 16), (120, 24)), (BatchAxis(20, (8, 16, 24)),)),
    "even through three": (
        (2, 3, 4),
        ((96, 32, 8), (0, 0, 0), (-12, -4, -1)),
        (BatchAxis(24, (8, 0, -1)),),
    ),
    "b repeats": ((4, 5), ((40, 8), (0, 0), (120, 24)), (BatchAxis(20, (8, 0, 24)),)),
    "b repeats along the outer axis": (
        (4, 5),
        ((40, 8), (0, 16), (120, 24)),
        (BatchAxis(4, (40, 0, 120)), BatchAxis(5, (8, 16, 24))),
    ),
    "b repeats along the inner axis": (
        (4, 5),
        ((40, 8), (16, 0), (120, 24)),
        (BatchAxis(4, (40, 16, 120)), BatchAxis(5, (8, 0, 24))),
    ),
    "backwards": ((4, 5), ((-40, -8), (80, 16), (120, 24)), (BatchAxis(20, (-8, 16, 24)),)),
    "backwards along one axis": (
        (4, 5),
        ((-40, 8), (80, 16), (120, 24)),
        (BatchAxis(4, (-40, 80, 120)), BatchAxis(5, (8, 16, 24))),
    ),
    "a gap in c": (
        (4, 5),
        ((40, 8), (80, 16), (121, 24)),
        (BatchAxis(4, (40, 80, 121)), BatchAxis(5, (8, 16, 24))),
    ),
    "length 1 between": ((4, 1, 5), ((40, 7, 8), (80, 9, 16), (120, 0, 24)), (BatchAxis(20, (8, 16, 24)),)),
    "length 1 at both ends": (
        (1, 4, 1),
        ((7, 8, 7), (7, 16, 7), (7, 24, 7)),
        (BatchAxis(4, (8, 16, 24)),),
    ),
    "the inner two of three": (
        (2, 4, 5),
        ((7, 40, 8), (7, 80, 16), (7, 120, 24)),
        (BatchAxis(2, (7, 7, 7)), BatchAxis(20, (8, 16, 24))),
    ),
    "empty": ((0, 5), ((40, 8), (80, 16), (120, 24)), (BatchAxis(0, (8, 16, 24)),)),
}


@looped("name", MERGED)
def test_merge_axes(name: str) -> None:
    shape, strides, expected = MERGED[name]
    assert merge_axes(shape, strides) == expected


def positions(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Where every matrix starts, by the strides themselves."""
    return [
        tuple(sum(i * step for i, step in zip(index, steps, strict=True)) for steps in strides)
        for index in np.ndindex(*shape)
    ]


@settings(deadline=None)
@given(
    shape=st.lists(st.sampled_from((0, 1, 1, 2, 3)), max_size=4),
    steps=st.lists(st.sampled_from((-12, -6, -2, 0, 1, 2, 3, 4, 6, 12)), min_size=12, max_size=12),
)
def test_merged_axes_visit_the_same_places_in_the_same_order(shape: list[int], steps: list[int]) -> None:
    strides = [steps[4 * operand : 4 * operand + len(shape)] for operand in range(3)]
    axes = merge_axes(shape, strides)
    assert all(axis.length != 1 for axis in axes)
    assert math.prod(axis.length for axis in axes) == math.prod(shape)
    assert list(outer_offsets(axes)) == positions(shape, strides)


OFFSETS: dict[str, tuple[tuple[BatchAxis, ...], list[tuple[int, ...]]]] = {
    "no axis": ((), [(0, 0, 0)]),
    "one axis": ((BatchAxis(3, (8, 0, 16)),), [(0, 0, 0), (8, 0, 16), (16, 0, 32)]),
    "backwards": ((BatchAxis(2, (-8, 4, 0)),), [(0, 0, 0), (-8, 4, 0)]),
    "two axes": (
        (BatchAxis(2, (100, 0, 10)), BatchAxis(2, (8, 1, -1))),
        [(0, 0, 0), (8, 1, -1), (100, 0, 10), (108, 1, 9)],
    ),
    "empty": ((BatchAxis(2, (8, 8, 8)), BatchAxis(0, (1, 1, 1))), []),
}


@pytest.mark.parametrize("name", OFFSETS)
def test_outer_offsets(name: str) -> None:
    axes, expected = OFFSETS[name]
    assert list(outer_offsets(axes)) == expected


@cache
def pool() -> ThreadPool:
    """Three threads, whatever the process may use."""
    return ThreadPool(3, 3)


# --- the compiled loops ---------------------------------------------------------------------------------

M, N, K, COUNT = 5, 7, 6, 4

#: How the names of integer types end.
INTEGERS = ("int4", "int8", "int16", "int32", "int64")

#: Steps in matrices: forwards, repeated, backwards, every other one.
STEPS = [
    (1, 1, 1),
    (1, 0, 1),
    (0, 1, 1),
    (0, 0, 1),
    (-1, 1, 1),
    (1, -1, -1),
    (2, 1, 1),
    (1, 2, 2),
    (-2, 0, 2),
]


def matrices(dtype: np.dtype[np.generic]) -> list[Array]:
    """Stacks of A, B and C long enough for every other matrix, which are all different."""
    stacks = [filled((2 * COUNT, *shape), dtype, seed) for seed, shape in enumerate(((M, K), (K, N), (M, N)))]
    for number in range(2 * COUNT):
        stacks[0][number, 0, 0], stacks[1][number, 0, 0] = number + 1, 3 * number + 1
    return stacks


def place(number: int, step: int) -> int:
    """Which matrix of its stack one of a walk is; it begins at the end where it goes backwards."""
    return number * step if step >= 0 else number * step - 1


class Walk:
    """Three stacks, the first matrix of each, and the steps between matrices in bytes."""

    def __init__(self, dtype: DType, steps: tuple[int, int, int], count: int) -> None:
        self.stacks = matrices(dtype.numpy)
        self.products = [tuple(place(number, step) for step in steps) for number in range(count)]
        self.first = [stack[place(0, step)] for stack, step in zip(self.stacks, steps, strict=True)]
        self.in_bytes = [step * stack.strides[0] for stack, step in zip(self.stacks, steps, strict=True)]
        self.pointers = [data_address(matrix) for matrix in self.first]

    def expected(self, alpha: float, beta: float) -> Array:
        """C after the products, one by one."""
        stack_a, stack_b, stack_c = self.stacks
        found: Array = stack_c.copy()
        wide = np.int64 if found.dtype.name.endswith(INTEGERS) else np.complex128
        for a, b, c in self.products:
            product = stack_a[a].astype(wide) @ stack_b[b].astype(wide)
            value = wide(alpha) * product + wide(beta) * found[c].astype(wide)
            found[c] = (value if wide is np.int64 or found.dtype.kind == "c" else value.real).astype(
                found.dtype
            )
        return found


each_type_and_steps = pytest.mark.parametrize(
    ("dtype", "steps"), crossed(GEMM_DTYPES, [(steps,) for steps in STEPS], len(STEPS)), ids=str
)


@each_type_and_steps
def test_batch_function(dtype: DType, steps: tuple[int, int, int]) -> None:
    """No product, one and several; with one thread and with a team."""
    kernel = matmul_kernel(dtype)
    for (alpha, beta), count, threads in product([(1.0, 0.0), (-2.0, 3.0)], [0, 1, COUNT], [1, 3]):
        walk = Walk(dtype, steps, count)
        expected = walk.expected(alpha, beta)
        strides = [stride for matrix in walk.first for stride in element_strides(matrix)]
        places = (*walk.in_bytes, *walk.pointers, M, N, K, *strides)
        own = ScratchPool(threads * kernel.scratch_step)
        with own.block() as scratch, pool().team(threads) as team:
            factors = [factor(value, "alpha", kernel.types.acc) for value in (alpha, beta)]
            rest = (*factors, scratch, kernel.scratch_step, threads, team if threads > 1 else None)
            batch_function(kernel.types.acc)(kernel.address, count, *places, *rest)
        np.testing.assert_array_equal(walk.stacks[2], expected, f"{alpha, beta, count, threads}")


@each_type_and_steps
def test_fixed_batch_function(dtype: DType, steps: tuple[int, int, int]) -> None:
    """The same, of matrices whose sizes the kernel knows."""
    kernel = tw.compile(tw.BatchReduceGemm(M, N, K, 1, dtype, a="row", b="row", c="row", beta=0))
    for count, threads in product([0, 1, COUNT], [1, 3]):
        walk = Walk(dtype, steps, count)
        expected = walk.expected(1, 0)
        with pool().team(threads) as team:
            rest = (K, N, N, 0, 0, team if threads > 1 else None)
            fixed_batch_function()(kernel.address, count, *walk.in_bytes, *walk.pointers, *rest)
        np.testing.assert_array_equal(walk.stacks[2], expected, f"{count, threads}")


@pytest.mark.parametrize("count", [1, 7, 24, 100])
@pytest.mark.parametrize("parts", [0, 3])
def test_large_products_of_a_team(count: int, parts: int) -> None:
    """Several beside each other where they are many and there is scratch; else each by the whole team."""
    size, kernel = 110, matmul_kernel(F32)
    assert size**3 > TEAM_WORK
    a, b = filled((count, size, size), seed=1), np.array(filled((count, size, size), seed=2).mT, order="C").mT
    c = np.full((count, size, size), np.nan, np.float32)
    strides = [stride for array in (a, b, c) for stride in element_strides(array[0])]
    places = [data_address(array) for array in (a, b, c)]
    own = ScratchPool(kernel.scratch_bytes_for(3) + 3 * kernel.scratch_step)
    with own.block() as scratch, pool().team(3) as team:
        rest = (1.0, 0.0, scratch, kernel.scratch_step, parts, team)
        steps = [array.strides[0] for array in (a, b, c)]
        batch_function(F32)(kernel.address, count, *steps, *places, size, size, size, *strides, *rest)
    np.testing.assert_array_equal(c, a @ b)


# --- a batch equals its matrices one by one -----------------------------------------------------------------

SHAPES = [
    ((3, 4, 13, 9), (3, 4, 9, 17)),
    ((3, 1, 13, 9), (1, 4, 9, 17)),
    ((4, 13, 9), (3, 1, 9, 17)),
    ((3, 4, 1, 40), (4, 40, 70)),
    ((3, 4, 13, 40), (3, 1, 40, 1)),
    ((2, 1, 3, 5, 33), (4, 1, 33, 2)),
    ((3, 4, 300, 20), (3, 4, 20, 3)),
    ((3, 4, 9, 0), (3, 4, 0, 5)),
    ((0, 4, 9, 3), (1, 4, 3, 5)),
]


def same_bits(left: Array, right: Array) -> bool:
    word = {4: np.uint32, 8: np.uint64}[left.itemsize]
    return np.array_equal(np.ascontiguousarray(left).view(word), np.ascontiguousarray(right).view(word))


@pytest.mark.parametrize(
    ("dtype", "shapes", "order", "reverse", "way"),
    pairwise(
        (np.float32, np.float64),
        SHAPES,
        ("CC", "CF", "FC", "FF"),
        (False, True),
        ("plain", "scaled", "columns of C"),
    ),
)
def test_a_batch_equals_its_matrices(
    dtype: type, shapes: tuple[tuple[int, ...], tuple[int, ...]], order: str, reverse: bool, way: str
) -> None:
    shape_a, shape_b = shapes
    a, b = rough(shape_a, dtype, 1), rough(shape_b, dtype, 2)
    a, b = (
        np.array(array.swapaxes(-1, -2), order="C").swapaxes(-1, -2) if letter == "F" else array
        for array, letter in zip((a, b), order, strict=True)
    )
    a = a[::-1] if reverse else a
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    m, n = a.shape[-2], b.shape[-1]
    scalars: dict[str, Any] = {"alpha": 0.3, "beta": -0.7} if way == "scaled" else {}
    c = rough((*batch, n, m) if way == "columns of C" else (*batch, m, n), dtype, 3)
    c = c.swapaxes(-1, -2) if way == "columns of C" else c
    out = c.copy(order="K")
    assert tw.matmul(a, b, out=out, **scalars) is out
    wide_a, wide_b = np.broadcast_to(a, (*batch, *a.shape[-2:])), np.broadcast_to(b, (*batch, *b.shape[-2:]))
    for index in np.ndindex(*batch):
        alone = tw.matmul(wide_a[index], wide_b[index], out=c[index], **scalars)
        assert same_bits(out[index], alone), index
