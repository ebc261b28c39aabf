"""Calls that machine code repeats: Python's results on other data; and what stays with Python."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from repeated_calls import check, python_lines
from shares import looped
from support import Array, run_python

import tilewright as tw
from tilewright.calls.layout import native_entry_possible
from tilewright.calls.recipes.recipe import (
    HEADER_BYTES,
    MOST_RECIPES,
    PROBES,
    Field,
    MadeRecipe,
    RecipeTable,
)
from tilewright.calls.repeated import replay
from tilewright.errors import InvalidOperand, MaskedOperand, OperandMismatch, ShapeMismatch, UnsupportedDtype

pytestmark = pytest.mark.skipif(not native_entry_possible(), reason="no native entries in this interpreter")

RNG = np.random.default_rng(18)


def values(*shape: int, dtype: str = "f8") -> Array:
    return RNG.standard_normal(shape).astype(dtype)


ONE: Any = np.int64(1)
HALF: Any = np.float32(1.5)
A, B, BIAS = values(8, 8), values(8, 8), values(8)


@pytest.mark.parametrize(
    "options",
    [
        {"alpha": 2.0},
        {"alpha": np.float64(0.5)},
        {"alpha": 3},
        {"dtype": "f8"},
        {"dtype": np.float64},
        {"dtype": np.dtype("f4")},
        {"threads": 1},
        {"threads": 2},
        {"bias": BIAS},
        {"activation": "gelu"},
        {"bias": BIAS, "activation": "relu", "alpha": 0.5},
    ],
    ids=str,
)
def test_options_of_matmul(options: dict[str, Any]) -> None:
    check(tw.matmul, A, B, **options)


@pytest.mark.parametrize(
    "operands",
    [
        (values(8, 8, dtype="f4"), values(8, 8)),
        (values(2, 3, 8, 8), values(2, 3, 8, 8)),
        (values(2, 3, 8, 8), values(2, 1, 8, 8)),
        (values(2, 3, 4, 8, 8), values(8, 8)),
        (values(2, 3, 8, 8)[:, ::2], values(8, 8)),
        (values(9), values(2, 3, 9, 4)),
        (values(100, 120, dtype="f4"), values(120, 300)),
        (np.asfortranarray(values(8, 8, dtype="f4")), values(8, 8).T),
    ],
    ids=lambda operands: "x".join(str(one.shape) for one in operands),
)
def test_operands_of_matmul(operands: tuple[Array, Array]) -> None:
    check(tw.matmul, *operands)


def test_out_of_another_type_in_place_and_overlapping() -> None:
    a, b = values(8, 8, dtype="f4"), values(8, 8, dtype="f4")
    wide = np.empty((8, 8))
    whole = values(16, 8)
    for _ in range(3):
        whole[:8] = A
        assert tw.matmul(a, b, out=wide, dtype="f4", alpha=2.0) is wide
        np.testing.assert_allclose(wide, 2 * (a.astype("f8") @ b), rtol=1e-4, atol=1e-5)
        # The same shapes at other distances: in place, overlapping by a row, disjoint.
        for at in (0, 1, 8):
            whole[:8] = A
            target = whole[at : at + 8]
            assert tw.matmul(whole[:8], B, out=target, alpha=2.0) is target
            np.testing.assert_allclose(target, 2 * (A @ B), rtol=1e-12, err_msg=str(at))


def test_numbers_in_arrays_are_read_at_every_call() -> None:
    alpha: Any = np.array(2.0)
    for value in (2.0, 3.0, 4.0):
        alpha[...] = value
        expected = value * (A @ B)
        np.testing.assert_allclose(tw.matmul(A, B, alpha=alpha), expected, rtol=1e-12)


def test_calls_that_differ_in_one_thing_have_keys_of_their_own() -> None:
    """Each pair is called alternately, so that a key that lacks the difference gives the other's answer."""
    read_only = np.empty((8, 8))
    read_only.flags.writeable = False
    tw.matmul(A, B, out=np.empty((8, 8)), alpha=2.0)
    with pytest.raises(tw.errors.OutReadOnly):
        tw.matmul(A, B, out=read_only, alpha=2.0)
    for _ in range(3):
        assert tw.matmul(A, B, alpha=1, dtype="f4").dtype == np.float32
        assert tw.matmul(A, B, alpha=1, dtype="f8").dtype == np.float64
        np.testing.assert_allclose(tw.matmul(A, B, alpha=1), A @ B)
        np.testing.assert_allclose(tw.matmul(A, B, alpha=1.5), 1.5 * (A @ B))
        np.testing.assert_allclose(tw.matmul(A, B, alpha=ONE), A @ B)
        np.testing.assert_allclose(tw.matmul(A, B, alpha=HALF), A @ B * 1.5)
        np.testing.assert_allclose(tw.matmul(A, B, bias=BIAS), A @ B + BIAS)
        np.testing.assert_allclose(tw.matmul(A, B, bias=BIAS[:, None]), A @ B + BIAS[:, None])
        np.testing.assert_allclose(tw.matmul(A.T, B, alpha=2.0), 2 * A.T @ B)
        np.testing.assert_allclose(tw.matmul(A, B, alpha=2.0), 2 * A @ B)
        np.testing.assert_allclose(tw.matmul(A, A, alpha=2.0), 2 * A @ A)
        np.testing.assert_allclose(tw.matmul(A, A.T, alpha=2.0), 2 * A @ A.T)


def test_the_table_is_bounded_and_keeps_no_array() -> None:
    for size in range(1, MOST_RECIPES + 300):
        tw.matmul(np.ones((1, 1, 1, size % 61 + 1)), np.ones((size % 61 + 1, size // 61 + 1)), alpha=2.0)
    assert len(replay().table) <= MOST_RECIPES
    array = values(8, 8)
    tw.matmul(array, array, alpha=2.0)
    gone = weakref.ref(array)
    del array
    gc.collect()
    assert gone() is None


def test_a_key_whose_slots_are_full_gets_one_of_them() -> None:
    table, count = RecipeTable(), 3 * PROBES
    made = MadeRecipe([0] * (HEADER_BYTES // 8), [], ())
    keys = [number.to_bytes(8, "little") for number in range(count)]
    for number, key in enumerate(keys):
        table.add("f", key, 5 << 40, made, ())
        assert table.has(key)
        assert table.served(key) == 0
        assert len(table) == min(number + 1, PROBES)
    assert [table.has(key) for key in keys] == [False] * (count - PROBES) + [True] * PROBES
    assert sum(map(bool, table.slots)) == PROBES
    first = table.slots[0]
    assert first is not None
    block = (ctypes.c_int64 * (HEADER_BYTES // 8 + 1)).from_address(first)
    block[Field.USES], block[Field.HITS] = 1, 7
    for key in keys:  # the one in use is kept, and its calls count
        table.add("f", key, 5 << 40, made, ())
    assert block[HEADER_BYTES // 8] in range(count)
    assert table.hits()["f"] == 7


def test_references_are_given_back() -> None:
    out = np.empty((8, 8))
    operands = (A, B, BIAS, out)
    for _ in range(2):
        tw.matmul(A, B, out=out, bias=BIAS)
    before = [sys.getrefcount(one) for one in operands]
    for _ in range(100):
        tw.matmul(A, B, out=out, bias=BIAS)
        tw.matmul(A, B, bias=BIAS)
    assert [sys.getrefcount(one) for one in operands] == before


def test_many_threads_call_and_clear_at_once() -> None:
    failures: list[str] = []

    def work(number: int) -> None:
        a = np.full((4, 4), float(number))
        for turn in range(200):
            found = tw.matmul(a, a, alpha=float(turn % 7))
            if not (found == 4 * number * number * (turn % 7)).all():
                failures.append(f"{number} {turn}")
            if turn % 50 == number:
                replay().table.clear()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_finaliser_inside_of_a_recorded_call_is_not_recorded() -> None:
    class Calls:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
            tw.matmul(B, B, alpha=3.0)
            return A

    for _ in range(3):
        np.testing.assert_allclose(tw.matmul(Calls(), B, alpha=2.0), 2 * A @ B)
    np.testing.assert_allclose(tw.matmul(A, B, alpha=2.0), 2 * A @ B)


def test_a_child_of_a_fork_repeats_calls() -> None:
    code = """
import os, numpy as np, tilewright as tw
from tilewright.recorder import recordings
a = np.eye(4)
tw.matmul(a, a, alpha=2.0)
recordings.append(None)  # another thread records while this one forks
child = os.fork()
if child == 0:
    os._exit(0 if not recordings and (tw.matmul(a, a, alpha=2.0) == 2 * a).all() else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    run_python("-c", code)


def test_plain_products_leave_no_recipe_and_get_kernels_of_their_sizes() -> None:
    """Their own entry counts them, and asks Python for a kernel of exactly their sizes when that repays."""
    code = """
import numpy as np, tilewright as tw
from tilewright.calls import repeated
from tilewright.ops.gemm.kernel import _specials
from tilewright.ops.gemm.small_products import PRODUCTS_TO_REPAY
a, b = np.ones((8, 8)), np.ones((8, 8))
out = np.empty((8, 8))
for _ in range(PRODUCTS_TO_REPAY + 500):
    tw.matmul(a, b, out)
assert _specials()._kernels
assert not len(repeated.replay().table)
"""
    run_python("-c", code)


def test_lists_of_numbers_are_operands() -> None:
    """The third call makes arrays in machine code; lists that are no operands stay lists."""
    a, b = [[1.0, 2.0], [3.0, 4.0]], [[5, 6], [7, 8]]
    calls: list[tuple[Callable[[], Any], Any]] = [
        (lambda: tw.matmul(a, b), np.matmul(a, b)),
        (lambda: tw.matmul(a, [1, 0], alpha=2.0), 2 * np.matmul(a, [1, 0])),
        (lambda: tw.einsum("ij,jk->ki", a, b), np.matmul(a, b).T),
        (lambda: tw.tensordot(a, b, [[1], [0]]), np.matmul(a, b)),
        (lambda: tw.transpose(a, [1, 0]), np.transpose(a)),
        (lambda: tw.sum(b, axis=[0]), np.sum(b, axis=0)),  # type: ignore[arg-type]
        (lambda: tw.relu(a), np.asarray(a)),
    ]
    for number, (call, expected) in enumerate(calls):
        for _ in range(3):
            call()
        assert python_lines(call) == 0 or number == 3  # lists of axes are taken for operands
        np.testing.assert_array_equal(call(), expected)
    a[0][0] = 7.0
    np.testing.assert_array_equal(tw.matmul(a, b), np.matmul(a, b))
    for _ in range(3):  # labels are no operands
        np.testing.assert_array_equal(tw.einsum(a, [0, 1], b, [1, 2]), np.matmul(a, b))


#: A NaN that is signalling, and has a number in it.
NAN = float(np.array(0x7FF4000000000123, "u8").view("f8"))
#: Lists that machine code reads itself.
READ: list[Any] = [
    [1.5],
    [-3],
    [-0.0, float("nan"), float("-nan"), NAN, float("-inf"), 5e-324],
    [1, 2**63 - 1, -(2**63), 0],
    [[1, 2, 2.5], [3, 4, 5]],
    [[2.5, 1], [2**53 + 1, -(2**62) - 1], [3, 0.0]],
    [[[1.0, 2], [3, 4], [5, 6.0]]],
    [[[[1], [2]]], [[[3], [4]]], [[[5], [6]]]],
    [[[[[1.0], [2.0]]]]],
]
#: Lists that Python makes arrays of, or refuses.
LEFT: list[Any] = [
    [True, False],
    [1, True],
    [0.5, True],
    [2**63],
    [0.5, 2**63],
    [1, 0.5, 2**70],
    [],
    [[], []],
    [1.0, np.float32(2)],
    [np.float64(1.5), 2.0],
    [np.int64(1), 2],
    [[1.0], (2.0,)],
    [[1.0, 2.0], [3.0]],
    [[1.0], [2.0, 3.0]],
    [[1], [2.0], []],
    [[1.0], 2.0],
    [1.0, [2.0]],
    [[1, 2], [3, [4]]],
    [1, None],
    [1, 2j],
    [2**70],
]


def outcome(call: Callable[[], Array]) -> Any:
    """The element type, shape and bits of a result; None of an error."""
    try:
        result = call()
    except ValueError:
        return None
    return result.dtype, result.shape, result.tobytes() if result.dtype != object else result.tolist()


@looped("value", READ + LEFT)
def test_lists_become_the_arrays_of_numpy(value: Any) -> None:
    """Element type, shape and bits; arrays that turn out to be of another type are given up."""
    expected = outcome(lambda: np.transpose(np.asarray(value)))
    kinds = [np.dtype(float), np.dtype(int)]
    for _ in range(3):
        assert outcome(lambda: tw.transpose(value)) == expected
    before = [sys.getrefcount(kind) for kind in kinds]
    for _ in range(20):
        outcome(lambda: tw.transpose(value))
    after = [sys.getrefcount(kind) for kind in kinds]
    assert all(now < then + 20 for then, now in zip(before, after, strict=True))


def test_arrays_of_lists_are_given_up() -> None:
    """The first list is an array by the time that the second one is found to be none."""
    kind, objects = np.dtype(float), [[1.0, 2.0], [None, None]]
    before = sys.getrefcount(kind)
    for _ in range(20):
        with pytest.raises(UnsupportedDtype):
            tw.matmul([1.0, 2.0], objects)  # type: ignore[arg-type]
        np.testing.assert_array_equal(tw.matmul([1.0, 2.0], [np.float64(1.0), 2.0]), 5.0)
    assert sys.getrefcount(kind) < before + 20


@pytest.mark.parametrize(("values", "native"), [(READ, True), (LEFT, False)], ids=["read", "left"])
def test_lists_that_machine_code_reads(values: list[Any], native: bool) -> None:
    for value in values:
        for _ in range(3):
            outcome(partial(tw.transpose, value))
        assert (python_lines(partial(outcome, partial(tw.transpose, value))) == 0) == native, value


def test_lists_that_stay_with_python() -> None:
    a = [[1.0, 2.0], [3.0, 4.0]]
    tw.matmul(a, a)
    for _ in range(2):
        with pytest.raises(MaskedOperand):
            tw.matmul([np.ma.masked_array([1.0, 2.0], [False, True])], a)
        with pytest.raises(InvalidOperand):
            tw.matmul([[1.0, 2.0], [3.0]], a)
        with pytest.raises(ShapeMismatch):
            tw.matmul(a, [1.0, 2.0, 3.0])
    kernel, out = tw.compile(tw.Gemm()), [[0.0]]
    for _ in range(2):
        with pytest.raises(OperandMismatch):
            kernel(np.ones((1, 1), "f4"), np.ones((1, 1), "f4"), out)
