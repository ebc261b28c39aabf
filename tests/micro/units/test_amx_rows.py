"""Few rows beside AMX: vectors that add in the unit's order, flush what it flushes, and give its bits."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from amx_model import flushed
from assembly_text import functions, innermost_loops
from emulated_rows import emulated_kernel
from support import Array
from uncompiled import uncompiled

import tilewright as tw
from tilewright.compiler.target import resolve_target
from tilewright.machine.catalog import find_machine
from tilewright.machine.host import host_machine
from tilewright.machine.isa_rows import AVX512
from tilewright.machine.machine import Machine
from tilewright.spec.dtype import BF16
from tilewright.spec.weights import Weights

BFLOAT = np.dtype(ml_dtypes.bfloat16)
#: Depths of several steps of the unit and the rest of one; columns of whole blocks of panels and a rest.
K, N = 230, 141
#: Most rows that vectors multiply, by the form of a packed operand; words of float8 become panels.
FEW = {"packed": 2, "i8": 8, "i8g64": 8, "i4g32z": 4, "f8e4m3": 0}
NAME = "sapphirerapids"
#: Rows that begin, in this order, with numbers of these sizes: some are subnormal, or their products.
SIZES = (1.0, 1e-30, 1e-38, 1e-20)


def problem_of(form: str) -> tw.Gemm:
    """bfloat16 rows times a packed operand, into float32, so that no rounding hides the order of sums."""
    if form == "packed":
        return tw.Gemm(dtype="bf16", out_dtype="f32", b="packed")
    return tw.Gemm(dtype="bf16", out_dtype="f32", weights=Weights.parse(form))


def operand(form: str, w: Array, target: Any) -> tw.PackedMatrix:
    match form:
        case "packed":
            return tw.pack(w.astype(BFLOAT), target=target)
        case "f8e4m3":
            return tw.pack(w, form="f8e4m3", target=target)
        case _:
            bits, _, group = form.removeprefix("i").rstrip("z").partition("g")
            symmetric = not form.endswith("z")
            options = {"bits": int(bits), "group": int(group) if group else None, "symmetric": symmetric}
            return tw.quantize_weights(w, **options, target=target)  # type: ignore[arg-type]


def rows_of(random: np.random.Generator, count: int) -> Array:
    sizes = np.resize(np.repeat(SIZES, 2), count)
    return (random.standard_normal((count, K)) * sizes[:, None]).astype(BFLOAT)


def sum_in_order(x: Array, w: Array) -> Array:
    """Intel SDM vol. 2, TDPBF16PS: of each 32 depths the even ones, the odd ones, then both."""
    x, w = flushed(x.astype(np.float32)), flushed(w.astype(np.float32))
    total = np.zeros((len(x), w.shape[1]), np.float32)
    for first in range(0, len(w), 32):
        both = []
        for part in range(first, first + 2):
            some = np.zeros_like(total)
            for depth in range(part, min(first + 32, len(w)), 2):
                products = x[:, depth, None].astype(np.float64) * w[depth].astype(np.float64)
                some = flushed((some + products).astype(np.float32))
            both.append(some)
        total = flushed(total + flushed(both[0] + both[1]))
    return total


def multiply(kernel: Any, x: Array, packed: tw.PackedMatrix) -> Array:
    return kernel(x, packed, np.full((len(x), N), np.nan, np.float32))  # type: ignore[no-any-return]


@cache
def with_amx() -> Machine:
    """This host with the products of bfloat16 of AMX, which need not run."""
    host = host_machine()
    others = tuple(tile for tile in host.isa.tiles if (tile.a, tile.b) != (BF16, BF16))
    amx = next(tile for tile in AVX512.tiles if tile.instruction == "tdpbf16ps")
    features = f"{host.features},+amx-tile,+amx-bf16"
    return replace(host, isa=replace(host.isa, tiles=(*others, amx)), features=features)


needs_avx512 = pytest.mark.skipif(
    host_machine().isa.name != "avx512", reason="vectors beside AMX are AVX-512's"
)


@needs_avx512
def test_the_order_and_the_flushing_of_the_unit() -> None:
    """On any CPU with AVX-512: few rows need no AMX."""
    random, kernel = np.random.default_rng(0), emulated_kernel(problem_of("packed"), with_amx())
    w = random.standard_normal((K, N)).astype(BFLOAT)
    w[:, ::3] *= BFLOAT.type(1e-9)
    x = rows_of(random, 16)
    expected = sum_in_order(x, w)
    assert (expected == 0).any(), "some sums are flushed"
    packed = operand("packed", w, with_amx())
    for first in range(0, len(x), FEW["packed"]):
        some = slice(first, first + FEW["packed"])
        np.testing.assert_array_equal(multiply(kernel, x[some], packed), expected[some])
        np.testing.assert_array_equal(multiply(kernel, x[first : first + 1], packed)[0], expected[first])


@needs_avx512
def test_infinities_and_nans() -> None:
    x, w = np.ones((2, K), BFLOAT), np.ones((K, N), BFLOAT)
    x[1, 5], w[3, 1], w[4, 2], w[4, 3], w[6, 3] = np.inf, np.nan, np.inf, np.inf, -np.inf
    found = multiply(emulated_kernel(problem_of("packed"), with_amx()), x, operand("packed", w, with_amx()))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(found, x.astype(np.float32) @ w.astype(np.float32))


@pytest.mark.parametrize("form", FEW)
def test_few_rows_have_the_bits_of_many(form: str) -> None:
    """The emulated unit, which tiles of 32 rows go through, and vectors; numbers of normal size."""
    machine, random = resolve_target(f"emulate:{NAME}"), np.random.default_rng(1)
    kernel = emulated_kernel(problem_of(form), machine)
    w, x = random.standard_normal((K, N), np.float32), random.standard_normal((40, K)).astype(BFLOAT)
    packed = operand(form, w, f"emulate:{NAME}")
    whole = multiply(kernel, x, packed)
    if form == "packed":
        np.testing.assert_array_equal(whole, sum_in_order(x, w.astype(BFLOAT)))
    for rows in range(1, FEW[form] + 2):
        np.testing.assert_array_equal(multiply(kernel, x[:rows], packed), whole[:rows], str(rows))


@pytest.mark.skipif(host_machine().isa.tile(BF16).instruction != "tdpbf16ps", reason="needs a CPU with AMX")
@pytest.mark.parametrize("form", FEW)
def test_few_rows_have_the_bits_of_many_on_this_cpu(form: str) -> None:
    random = np.random.default_rng(2)
    w, x = random.standard_normal((K, N), np.float32), rows_of(random, 40)
    packed = operand(form, w, None)
    kernel = tw.compile(problem_of(form))
    whole = multiply(kernel, x, packed)
    for rows in range(1, FEW[form] + 2):
        np.testing.assert_array_equal(multiply(kernel, x[:rows], packed), whole[:rows], str(rows))


@pytest.mark.parametrize("form", ["packed", "i4g32z"])
def test_the_mode_changes_outside_of_loops_over_depths(form: str) -> None:
    """Entering and leaving it takes as long as a hundred multiply-adds."""
    text = uncompiled(problem_of(form), NAME).assembly
    found = functions(text, find_machine(NAME).triple)
    tiles = [loop for name, loop in found.items() if "tdpbf16ps_rows" in name and loop.matching("fmadd")]
    assert tiles
    assert all(loop.matching("ldmxcsr") for loop in tiles)
    assert not any(loop.matching("mxcsr") for loop in innermost_loops(text, find_machine(NAME).triple))
