"""Repeated calls of kernels and compiled contractions, and with packed operands."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from repeated_calls import check
from shares import looped
from support import Array

import tilewright as tw
from tilewright.calls.kinds import serial_readable
from tilewright.calls.layout import native_entry_possible
from tilewright.calls.recipes.recipe import MOST_RECIPES
from tilewright.calls.recipes.recording import Recording
from tilewright.calls.recording import repeatable
from tilewright.calls.repeated import repeated, replay
from tilewright.recorder import Numbered

pytestmark = pytest.mark.skipif(not native_entry_possible(), reason="no native entries in this interpreter")

RNG = np.random.default_rng(19)


def values(*shape: int, dtype: str = "f4") -> Array:
    return RNG.standard_normal(shape).astype(dtype)


# --- objects with a number --------------------------------------------------------------------------


NUMBERED: dict[str, Callable[[], Any]] = {
    "kernel": lambda: tw.compile(tw.Gemm(dtype="f32")),
    "unary": lambda: tw.compile(tw.Unary("exp")),
    "packed": lambda: tw.pack(values(5, 6)),
    "quantised": lambda: tw.quantize_weights(values(64, 16), bits=8),
    "einsum": lambda: tw.compile_einsum("ij,jk->ik", (2, 3), (3, 4)),
}


def serial(value: Any) -> int:
    return int(value._serial)


@pytest.mark.parametrize("name", NUMBERED)
def test_each_object_has_a_number_where_machine_code_reads_it(name: str) -> None:
    value = NUMBERED[name]()
    assert serial_readable(value)
    copies = [value, pickle.loads(pickle.dumps(value)), copy.deepcopy(value)]
    assert len({serial(one) for one in copies}) == 3
    assert all(serial_readable(one) for one in copies)


@pytest.mark.parametrize("name", ["packed", "quantised"])
def test_memory_of_a_packed_matrix_is_known_and_not_kept(name: str) -> None:
    weight: Any = NUMBERED[name]()
    memory = list(weight.memory())
    assert sum(size for _, size in memory) == weight.nbytes
    recording = Recording((weight,))
    for address, size in memory:
        assert recording._found(address + size - 1) == (0, address + size - 1)
    shared = Recording((weight.data4d, [weight]))
    assert shared.reason


def test_recipes_tell_numbered_arguments_apart_and_keep_none() -> None:
    class Thing(Numbered):
        pass

    made: list[int] = []

    @repeated
    def nothing(thing: Thing, x: Array) -> Array:
        made.append(serial(thing))
        repeatable()
        return x

    x, first, second = values(3), Thing(), Thing()
    for _ in range(3):
        assert nothing(first, x) is x
        assert nothing(second, x) is x
    assert made == [serial(first), serial(second)]
    gone = weakref.ref(first)
    del first
    gc.collect()
    assert gone() is None
    assert len(replay().table) > 0
    hollow = object.__new__(Thing)  # without a number
    with pytest.raises(AttributeError):
        nothing(hollow, x)


# --- kernels ------------------------------------------------------------------------------------------

A, B, C, BIAS = values(8, 8), values(8, 8), values(8, 8), values(8)
A3 = values(3, 8, 8)


@cache
def kernel(problem: Any) -> Any:
    return tw.compile(problem)


@pytest.mark.parametrize(
    "options",
    [{}, {"alpha": 2.0}, {"alpha": 0.5, "beta": -1.0}, {"beta": np.float32(1)}, {"alpha": 3, "beta": True}],
    ids=str,
)
def test_gemm(options: dict[str, Any]) -> None:
    check(kernel(tw.Gemm(dtype="f32")), A, B, C, **options)
    check(kernel(tw.Gemm(dtype="f32")).native, A, B, C, **options)
    check(kernel(tw.Gemm(dtype="f32", a="strided", b="strided", c="strided")), A.T, B, C.T, **options)


def test_operands_of_an_epilogue() -> None:
    steps = kernel(tw.Gemm(dtype="f32", epilogue="bias,gelu,residual"))

    def product(a: Array, b: Array, c: Array, bias: Array, residual: Array) -> Any:
        return steps(a, b, c, bias=bias, residual=residual)

    assert product(A, B, C, BIAS, values(8, 8)) is C
    check(product, A, B, C, BIAS, values(8, 8))


NUMBER: Any = np.array(2.0)


def test_numbers_for_operands_of_an_epilogue() -> None:
    """A number is part of the call's key, an array of one element is read again."""
    scaled = kernel(tw.Gemm(dtype="f32", epilogue="scale:all"))
    for _ in range(3):
        for number in (2.0, 3.0):
            np.testing.assert_allclose(scaled(A, B, C, scale=number), number * (A @ B), rtol=1e-4, atol=1e-5)
            NUMBER[...] = number
            np.testing.assert_allclose(scaled(A, B, C, scale=NUMBER), number * (A @ B), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("problem", "operands"),
    [
        (tw.BatchReduceGemm(8, 8, 8, a="row", b="row", c="row"), (A, B, C)),
        (tw.BatchReduceGemm(8, 8, 8, 3, a="row", b="row", c="row"), (values(3, 8, 8), values(3, 8, 8), C)),
        (
            tw.BatchReduceGemm(8, 8, 8, 3, a="row", b="row", c="row"),
            (values(6, 8, 8)[::-2], values(3, 8, 8), C),
        ),
        (tw.Unary("identity", a="strided", b="strided"), (A, C)),
        (tw.Unary("exp", 8, 8), (np.asfortranarray(A), np.asfortranarray(C))),
        (tw.Syrk(dtype="f32"), (A, C)),
        (tw.Syr2k(dtype="f32"), (A, B, C)),
        (tw.Trmm(dtype="f32"), (A, B, C)),
        (tw.Mmt4d(4, 8, 1, "f32"), (values(2, 8, 4, 1), values(1, 8, 8, 1), values(2, 1, 4, 8))),
    ],
    ids=lambda value: str(value) if isinstance(value, tw.BatchReduceGemm) else type(value).__name__,
)
def test_kernels_of_other_problems(problem: Any, operands: tuple[Array, ...]) -> None:
    check(kernel(problem), *operands)


# --- public functions -------------------------------------------------------------------------------

WIDE = values(8, 8, dtype="f8")


@looped(
    ("function", "operands", "options"),
    [
        (tw.syrk, (A,), {}),
        (tw.syrk, (A,), {"lower": False, "alpha": 2.0}),
        (tw.syrk, (A, C), {"beta": 0.5}),
        (tw.syrk, (A, np.asfortranarray(C)), {"threads": 1}),
        (tw.syrk, (A[::-1],), {}),
        (tw.syrk, (A3,), {}),
        (tw.syr2k, (A, B), {}),
        (tw.syr2k, (A, WIDE), {"lower": False}),
        (tw.syr2k, (A3, B), {}),
        (tw.trmm, (A, B), {}),
        (tw.trmm, (A, B), {"side": "right", "unit": True, "lower": False, "alpha": 0.5}),
        (tw.trmm, (A, B, C), {}),
        (tw.trmm, (A, C, C), {}),
        (tw.trmm, (WIDE, B), {}),
        (tw.trmm, (A3, B.T), {}),
        (tw.mmt4d, (values(2, 8, 4, 1), values(1, 8, 8, 1)), {}),
        (tw.mmt4d, (values(2, 8, 4, 1), values(1, 8, 8, 1), values(2, 1, 4, 8)), {}),
        (tw.mmt4d, (values(2, 8, 4, 1), values(1, 8, 8, 1), values(2, 1, 8, 4).swapaxes(2, 3)), {}),
    ],
)
def test_triangles_and_tiles(function: Any, operands: tuple[Array, ...], options: dict[str, Any]) -> None:
    check(function, *operands, **options)


def test_a_triangle_that_is_not_computed_is_zero() -> None:
    for _ in range(3):
        np.testing.assert_array_equal(np.triu(tw.syrk(A), 1), 0)


def test_complex_factors_stay_in_python() -> None:
    a, b = values(4, 4).astype("c16"), values(4, 4).astype("c16")
    for _ in range(3):
        np.testing.assert_allclose(tw.trmm(a, b, alpha=2j), 2j * np.tril(a) @ b)
        np.testing.assert_allclose(tw.syrk(a, alpha=2j), np.tril(2j * a @ a.T))


@pytest.mark.parametrize("name", ["packed", "unpacked"])
def test_packed_operands(name: str) -> None:
    first, second = tw.pack(A), tw.pack(B)
    product = kernel(tw.Gemm(dtype="f32", b="packed"))
    for weight, dense in ((first, A), (second, B)):
        if name == "unpacked":
            check(lambda weight=weight: tw.unpack(weight))
            np.testing.assert_array_equal(tw.unpack(weight), dense)
        else:
            check(lambda a, c, weight=weight: product(a, weight, c), A3[0], C)
            np.testing.assert_allclose(product(A3[0], weight, C), A3[0] @ dense, rtol=1e-4, atol=1e-5)


def compiled(text: str, *shapes: tuple[int, ...], **options: Any) -> Any:
    return tw.compile_einsum(text, *shapes, **options)


SQUARE = (8, 8)


@pytest.mark.parametrize(
    ("call", "operands"),
    [
        (compiled("ij,jk->ik", SQUARE, SQUARE), (A, B)),
        (compiled("ij,jk->ki", SQUARE, SQUARE), (A.T, WIDE)),
        (compiled("ij,jk,kl->il", SQUARE, SQUARE, SQUARE), (A, B, C)),
        (compiled("abcd,cdef->abef", *[(4,) * 4] * 2), (values(4, 4, 4, 4), values(4, 4, 4, 4))),
        (compiled("abcd,cebf->adef", *[(3,) * 4] * 2), (values(3, 3, 3, 3), values(3, 3, 3, 3))),
        (compiled("ij->ji", SQUARE), (A,)),
        (compiled("ij->i", SQUARE), (A,)),
        (compiled("ij,ij->", SQUARE, SQUARE), (A, B)),
    ],
    ids=lambda value: repr(value) if callable(value) else None,
)
def test_compiled_einsums(call: Any, operands: tuple[Array, ...]) -> None:
    check(call, *operands)
    if call.shape:
        out = np.array(call(*operands))
        check(lambda *given: call(*given[:-1], out=given[-1], threads=1), *operands, out)


def test_a_tree_in_brackets() -> None:
    check(tw.einsum_tree("[[2,1],[1,0]->[2,0]]", [8, 8, 8]), A, B)


def test_large_results_on_the_way_keep_their_memory() -> None:
    call = compiled("ij,jk,kl->il", (300, 300), (300, 300), (300, 300))
    operands = [values(300, 300) for _ in range(3)]
    for _ in range(3):
        np.testing.assert_allclose(call(*operands), np.linalg.multi_dot(operands), rtol=1e-2, atol=1e-1)
    assert call._workspaces[0].nbytes > 0


def test_a_chain_takes_one_weight_twice() -> None:
    weight = tw.pack(A)
    chain = kernel(tw.LinearChain((8, 8, 8), ("relu", None), bias=False))
    check(lambda x: chain(x, [weight, weight]), A3[0])


def test_keys_of_many_calls_spread_over_the_table() -> None:
    """Few of as many recipes as the table holds find their slots taken."""
    replay().table.clear()
    product, count = kernel(tw.Gemm(dtype="f32")), 3 * MOST_RECIPES // 4
    for number in range(count):
        m, n, k = number % 12 + 1, number // 12 % 12 + 1, number // 144 + 1
        product(np.ones((m, k), "f4"), np.ones((k, n), "f4"), np.ones((m, n), "f4"))
    assert sum(slot is not None for slot in replay().table.slots) >= 0.99 * count


def test_a_kernel_is_not_kept_by_its_recipes() -> None:
    product = tw.compile(tw.Gemm(8, 8, 8, "f32", strategy="tiling"))
    for _ in range(3):
        product(A, B, C)
    code, whole = weakref.ref(product._code), weakref.ref(product)
    del product
    gc.collect()
    assert (whole(), code()) == (None, None)
