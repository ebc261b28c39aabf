"""Products of elements and their sums: every walk and type, tails, guard pages, other CPUs, threads."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulated_rows import emulated_kernel, emulating
from object_symbols import undefined_symbols
from product_operands import PROBLEMS, Case, make, shapes, small, strides_of
from shares import looped, share
from support import Array, GuardedMemory, rough, unaligned
from tiers import crossed, named
from uncompiled import uncompiled

import tilewright as tw
from tilewright.calls.kernels import kernel_for
from tilewright.calls.operands import data_address
from tilewright.compiler.kernel import Kernel
from tilewright.compiler.pipeline import run_stages
from tilewright.errors import InvalidChoice, InvalidSize, UnsupportedDtype
from tilewright.ir.interpret import interpret
from tilewright.ir.parse import parse_program
from tilewright.ir.text import print_program
from tilewright.ir.verify import verify
from tilewright.llvm.target import emit_object
from tilewright.machine.catalog import CATALOG, find_machine
from tilewright.machine.isa import Isa
from tilewright.machine.isa_rows import AVX2, AVX512, NEON
from tilewright.machine.machine import Machine
from tilewright.ops.sum_of_products.call import plan_products
from tilewright.ops.sum_of_products.nest import ProductCut, build_products, choose_products, product_sizes
from tilewright.ops.sum_of_products.problem import SUM_DTYPES, SumOfProducts, Walk


def run(kernel: Kernel, case: Case, shape: tuple[int, ...]) -> Array:
    kernel.function(*map(data_address, case.arrays), *shape, *strides_of(kernel.problem, case), None)
    return case.arrays[-1]


@pytest.mark.parametrize(("walk", "factors", "dtype"), crossed(PROBLEMS, SUM_DTYPES, 2), ids=named)
def test_numbers(walk: Walk, factors: int, dtype: Any) -> None:
    problem = SumOfProducts(walk, factors, dtype)
    kernel: Kernel = kernel_for(problem)
    for number, shape in enumerate(shapes(kernel.machine.isa.lanes(problem.acc))):
        case = make(problem, shape, gap=number % 3)
        np.testing.assert_array_equal(run(kernel, case, shape), case.expected, str(shape))


@pytest.mark.parametrize(("isa", "walk", "factors"), crossed([AVX2, AVX512, NEON], PROBLEMS, 2), ids=named)
def test_rows_of_other_machines(walk: Walk, factors: int, isa: Isa) -> None:
    machine, first = emulating(isa), PROBLEMS.index((walk, factors)) + isa.vector_bits // 128
    for dtype in share(("f32", "bf16", "c128", "i16"), 4, first):
        problem = SumOfProducts(walk, factors, dtype)
        kernel = emulated_kernel(problem, machine)
        for shape in shapes(isa.lanes(problem.acc))[:4]:
            case = make(problem, shape)
            np.testing.assert_array_equal(run(kernel, case, shape), case.expected, f"{dtype} {shape}")


@looped("dtype", ["f32", "f16", "i8", "c64"])
@looped(("walk", "factors"), PROBLEMS)
def test_no_byte_outside_is_touched(walk: Walk, factors: int, dtype: str) -> None:
    memories = [GuardedMemory(1 << 16) for _ in range(3)]
    problem = SumOfProducts(walk, factors, dtype)
    kernel: Kernel = kernel_for(problem)
    lanes = kernel.machine.isa.lanes(problem.acc)
    for gap in (0, 3):
        for shape in ((1, 1, 1, 1, 1), (1, 2, 2, 3, lanes + 1), (1, 1, 1, lanes + 3, 5), (2, 1, 1, 5, 7)):
            case = make(problem, shape, gap, memories)
            before = memories[2].outside(case.arrays[-1])
            np.testing.assert_array_equal(run(kernel, case, shape), case.expected)
            assert np.array_equal(memories[2].outside(case.arrays[-1]), before)


@looped("dtype", ["f32", "bf16", "i32"])
@looped(("walk", "factors"), [one for one in PROBLEMS if one[0].sums])
@looped("empty", [2, 4])
def test_sums_of_nothing_are_zero(walk: Walk, factors: int, dtype: str, empty: int) -> None:
    shape = tuple(0 if axis == empty else 3 for axis in range(5))
    case = make(SumOfProducts(walk, factors, dtype), shape)
    assert not run(kernel_for(SumOfProducts(walk, factors, dtype)), case, shape).any()


# --- tile IR --------------------------------------------------------------------------------------


@looped("dtype", ["f32", "f16", "i8", "c128"])
@looped("name", ["znver5", "neoverse-v2"])
@pytest.mark.parametrize(("walk", "factors"), PROBLEMS)
def test_the_oracle_computes_the_reference(walk: Walk, factors: int, name: str, dtype: str) -> None:
    problem = SumOfProducts(walk, factors, dtype)
    cut = ProductCut(8, 3, 4)
    program = verify(build_products(problem, cut, "kernel"))
    assert parse_program(print_program(program)) == program
    assert choose_products(problem, find_machine(name)).together > 0
    for shape in ((1, 2, 3, 9, 5), (2, 1, 1, 3, 10)):
        case = make(problem, shape)
        names = "xyz" if factors == 2 else "xz"
        flat = {array: np.asarray(one.base) for array, one in zip(names, case.arrays, strict=True)}
        sizes = dict(zip(product_sizes(), (*shape, *strides_of(problem, case)), strict=True))
        interpret(program, sizes, {}, flat)
        np.testing.assert_array_equal(case.arrays[-1], case.expected)


#: A machine of each row.
MACHINES = tuple(
    {
        entry.machine.isa.name: entry.machine
        for entry in CATALOG
        if entry.machine.vector_bits or not entry.machine.isa.scalable
    }.values()
)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.isa.name)
def test_kernels_of_every_row_call_nothing(machine: Machine) -> None:
    """Types take turns; in `make test` walks too, of which tests/emulated compiles the others."""
    first = MACHINES.index(machine)
    for number, (walk, factors) in share(enumerate(PROBLEMS, first), 2, first):
        dtype = SUM_DTYPES[3 * number % len(SUM_DTYPES)]
        state = run_stages(SumOfProducts(walk, factors, dtype), machine)
        assert undefined_symbols(state.object) == set(), (walk, dtype)


def test_sums_along_a_row_are_vectors_that_wait_for_nothing() -> None:
    """On AVX-512, a turn of the inner loop adds four vectors from memory to four registers."""
    kernel = uncompiled(SumOfProducts("along"), "znver5")
    adds = [
        line for line in kernel.assembly.splitlines() if "vaddps" in line and "zmm" in line and "(" in line
    ]
    assert len({line.rsplit(",", 1)[1] for line in adds}) >= 4, adds


# --- plans ----------------------------------------------------------------------------------------


@looped(
    ("labels", "wanted", "walk", "lengths"),
    [
        (("ijk",), "", "along", (1, 1, 1, 1, 24)),
        (("ijk",), "i", "along", (1, 1, 1, 2, 12)),
        (("ijk",), "k", "across", (1, 1, 1, 4, 6)),
        (("ijk",), "j", "along", (1, 1, 2, 3, 4)),
        (("ijk",), "ik", "across", (1, 2, 1, 4, 3)),
        (("ijk", "ijk"), "", "along", (1, 1, 1, 1, 24)),
        (("ijk", "ijk"), "i", "along", (1, 1, 1, 2, 12)),
        (("ijk", "k"), "ij", "along", (1, 1, 1, 6, 4)),
        (("ijk", "ijk"), "jk", "across", (1, 1, 1, 12, 2)),
        (("ij", "i"), "j", "weighted", (1, 1, 1, 3, 2)),
        (("i", "ij"), "j", "weighted", (1, 1, 1, 3, 2)),
        (("ijk", "ij"), "k", "weighted", (1, 1, 1, 4, 6)),
        (("ijk", "ijk"), "ijk", "each", (1, 1, 1, 1, 24)),
        (("ijk", "k"), "ijk", "each", (1, 1, 1, 6, 4)),
        (("ijk", "i"), "ijk", "spread", (1, 1, 1, 2, 12)),
        (("i", "j"), "ij", "spread", (1, 1, 1, 2, 3)),
        (("i", "j"), "ji", "spread", (1, 1, 1, 3, 2)),
        (("ijk", "kji"), "ik", "apart", (1, 2, 1, 4, 3)),
        (("ij", "ji"), "", "apart", (1, 1, 2, 1, 3)),
        (("ijk", "kji"), "", None, None),
        (("ij", "ji"), "ij", "single", (1, 1, 1, 2, 3)),
        (("ijk", "kji"), "ijk", "single", (1, 1, 2, 3, 4)),
    ],
)
def test_plans(labels: tuple[str, ...], wanted: str, walk: str | None, lengths: tuple[int, ...]) -> None:
    size = {"i": 2, "j": 3, "k": 4}
    arrays = [small(tuple(size[label] for label in own), "f4", seed) for seed, own in enumerate(labels)]
    dtype = np.dtype(np.float32)
    places = tuple(one.shape for one in arrays), tuple(one.strides for one in arrays)
    call = plan_products(labels, wanted, dtype, *places)
    if walk is None:
        assert call is None
        return
    assert call is not None
    assert (call.problem.walk.value, call.numbers[:5]) == (walk, lengths)
    expected = np.einsum(f"{','.join(labels)}->{wanted}", *arrays)
    np.testing.assert_array_equal(call(*arrays), expected)


def test_diagonals_and_strides() -> None:
    a = small((12, 12), "f8", 0)
    for text, view in (("ii->", a), ("ii->", a[::-1]), ("ij->i", a[:, ::2]), ("ij->j", a[::-1, ::3])):
        own, wanted = text.split("->")
        call = plan_products((own,), wanted, view.dtype, (view.shape,), (view.strides,))
        assert call is not None, text
        np.testing.assert_array_equal(call(view), np.einsum(text, view))


def test_many_elements_apart_are_not_multiplied_one_by_one() -> None:
    a = np.ones((200, 200))
    for wanted in ("", "ij"):
        assert plan_products(("ij", "ji"), wanted, a.dtype, (a.shape,) * 2, (a.strides,) * 2) is None


@pytest.mark.parametrize("dtype", ["?", ">f8", "O", "M8[s]", "i1,i1"])
def test_types_without_kernels(dtype: str) -> None:
    a = np.zeros(4, dtype)
    assert plan_products(("i",), "", a.dtype, (a.shape,), (a.strides,)) is None


def test_places_between_elements_are_no_kernels() -> None:
    a = unaligned(np.ones((3, 4)))
    assert tw.einsum("ij->", a) == 12
    fields = np.zeros(5, "f4,i2,f8")["f2"]
    assert plan_products(("i",), "", fields.dtype, (fields.shape,), (fields.strides,)) is None


# --- einsum ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["ij->", "ij->i", "ij->j", "ij,ij->", "ij,ij->i", "ij,ij->j"])
@pytest.mark.parametrize("shape", [(1, 1 << 20), (1 << 20, 1), (1024, 1024), (1 << 17, 8)])
def test_sums_are_as_exact_as_numpys(text: str, shape: tuple[int, int]) -> None:
    given = [abs(rough(shape, np.float32, seed)) for seed in range(text.count(",") + 1)]
    exact = np.einsum(text, *(one.astype(np.float64) for one in given))
    worst = np.max(np.abs(tw.einsum(text, *given) - exact) / exact)
    assert worst <= max(np.max(np.abs(np.einsum(text, *given) - exact) / exact), 4e-7)


@pytest.mark.parametrize("text", ["i->", "i,i->"])
def test_very_long_sums_are_sums_of_sums(text: str) -> None:
    a = np.tile(abs(rough((1 << 20,), np.float32)), 16)
    given = (a,) * (text.count(",") + 1)
    exact = 16 * np.sum(a[: 1 << 20].astype(np.float64) ** len(given))
    assert abs(tw.einsum(text, *given) - exact) <= 4e-7 * exact


@pytest.mark.parametrize("text", ["ij->i", "ij->j", "ij,ij->i", "i,j->ij", "ij,ij->ij", "ijk->j"])
def test_any_number_of_threads_gives_the_same_bits(text: str) -> None:
    terms = text.partition("->")[0].split(",")
    shapes = [(700,) * len(term) if len(term) < 3 else (90, 70, 80) for term in terms]
    given = [rough(shape, np.float32, seed) for seed, shape in enumerate(shapes)]
    alone = tw.einsum(text, *given, threads=1)
    for _ in range(2):
        assert np.array_equal(tw.einsum(text, *given), alone)
    np.testing.assert_allclose(alone, np.einsum(text, *given), rtol=1e-4, atol=1e-3)


def test_a_row_has_the_same_bits_wherever_it_stands() -> None:
    a, b = rough((200, 333)), rough((200, 333), seed=1)
    rows, columns = tw.einsum("ij,ij->i", a, b), tw.einsum("ij->j", a)
    for start in (0, 1, 67):
        assert np.array_equal(tw.einsum("ij,ij->i", a[start:], b[start:]), rows[start:])
        assert np.array_equal(tw.einsum("ij->j", a[:, start:]), columns[start:])


def test_special_values() -> None:
    a = np.array([[np.inf, 1], [np.nan, 2], [-np.inf, np.inf]], np.float32)
    with np.errstate(all="ignore"):
        for text in ("ij->i", "ij->j", "ij->"):
            np.testing.assert_array_equal(tw.einsum(text, a), np.einsum(text, a))


# --- errors, headers ------------------------------------------------------------------------------


def test_errors() -> None:
    with pytest.raises(InvalidChoice, match="walk"):
        SumOfProducts("sideways")
    for walk in ("each", "weighted"):
        with pytest.raises(InvalidChoice, match=f"factors of '{walk}'"):
            SumOfProducts(walk, 1)
    with pytest.raises(UnsupportedDtype):
        SumOfProducts("along", 1, "u8")
    with pytest.raises(InvalidSize, match="block"):
        ProductCut(1, 1, 0)


@pytest.mark.parametrize("walk", ["along", "each"])
def test_a_header_names_every_parameter(walk: str) -> None:
    kernel = tw.compile(SumOfProducts(walk, 2, "c64"))
    for name in ("*x", "*y", "*z", *(f" {size}" for size in kernel.nest.sizes)):
        assert name in kernel.header
    assert emit_object(kernel.llvm_ir, kernel.name, kernel.machine)
