"""Schedules of contractions: golden text of every pass, and results that no pass changes."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shares import looped
from support import Array, within
from tiers import draws

from tilewright.errors import ContractionPrimitive, InvalidChoice
from tilewright.machine.catalog import find_machine
from tilewright.machine.machine import Machine
from tilewright.macro.cost import rows_held
from tilewright.ops.contraction.dimension import Dimension, ExecutionType
from tilewright.ops.contraction.main import Main
from tilewright.ops.contraction.memory import reach
from tilewright.ops.contraction.problem import Contraction
from tilewright.ops.contraction.schedule.estimate import estimate
from tilewright.ops.contraction.schedule.fuse import fuse
from tilewright.ops.contraction.schedule.identify import ways
from tilewright.ops.contraction.schedule.passes import PASSES, schedule
from tilewright.ops.contraction.schedule.reorder import reorder
from tilewright.ops.contraction.schedule.split import balance, cut_at, divisors, tasks_of, work_of
from tilewright.ops.einsum.contraction import StridedOperand, einsum_dimensions
from tilewright.spec.problem import exact_dtype
from tilewright.spec.roles import DimensionRole

GOLDEN = Path(__file__).parent / "golden"
TWO_CORES = replace(find_machine("znver5"), cores=2)
ONE_CORE = replace(find_machine("znver5"), cores=1)


def einsum(
    subscripts: str, *shapes: tuple[int, ...], dtype: str = "f32", main: str | None = None
) -> Contraction:
    dimensions = einsum_dimensions(subscripts, [StridedOperand(shape) for shape in shapes])
    return Contraction(dimensions, dtype, main=main or Main.PACKED_GEMM)


#: Contractions whose passes stand in golden files, with the machine.
CASES: dict[str, tuple[Contraction, Machine]] = {
    "matrices": (einsum("ij,jk->ik", (1600, 1600), (1600, 1600)), TWO_CORES),
    "tall": (einsum("ij,jk->ik", (100000, 64), (64, 64)), TWO_CORES),
    "shared": (einsum("ij,jk->ik", (384, 256), (256, 256)), TWO_CORES),
    "interleaved": (einsum("axby,xcyd->acbd", (64, 64, 25, 25), (64, 64, 25, 25)), ONE_CORE),
    "fused": (einsum("aibj,jbkc->aikc", (8, 8, 8, 4), (4, 8, 8, 8)), ONE_CORE),
    "batch": (einsum("bij,bjk->bik", (64, 64, 64), (64, 64, 64)), TWO_CORES),
    "deep": (einsum("ij,jk->ik", (64, 8192), (8192, 48)), ONE_CORE),
    "summed_twice": (einsum("iajb,ajbk->ik", (32, 4, 3, 16), (4, 3, 16, 32)), ONE_CORE),
    "turned": (einsum("abcd->dbca", (20, 25, 30, 70), main="relu"), TWO_CORES),
    "copied": (einsum("abc->bac", (40, 20, 300), main="identity"), TWO_CORES),
}


#: Those whose reference takes too long.
LARGE = ("matrices", "interleaved", "deep", "tall")


def history(given: Contraction, machine: Machine) -> str:
    """The contraction, and what each pass made of it where it changed anything."""
    parts, last = [f"given\n{given}\n"], str(given)
    for step in PASSES:
        found = str(schedule(given, machine, until=step.name))
        parts.append(f"{step.name}\n{found}\n" if found != last else f"{step.name}: the same\n")
        last = found
    return "\n".join(parts)


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str, *, update_golden: bool) -> None:
    text, path = history(*CASES[name]), GOLDEN / f"{name}.txt"
    if update_golden:
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), "changed; rewrite with pytest --update-golden"
    assert len(text.splitlines()) <= 45


def test_no_golden_file_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(CASES)


# --- meaning --------------------------------------------------------------------------------------


def memory_after(contraction: Contraction, seed: int = 0) -> Array:
    """The memory of out after the operation on small integers."""
    random = np.random.default_rng(seed)
    arrays = []
    for name in ("in0", "in1"):
        low, high = reach(contraction.having(name), name)
        assert low == 0
        arrays.append(random.integers(-3, 4, high + 1).astype(contraction.element_of(name).numpy))
    out = np.full(reach(contraction.having("out"), "out")[1] + 1, 99, exact_dtype(contraction.types))
    in1 = None if contraction.is_unary else arrays[1]
    contraction.view("out", out)[...] = contraction.reference(arrays[0], in1)
    return out


@looped("until", [step.name for step in PASSES])
@looped("name", [name for name in CASES if name not in LARGE])
def test_no_pass_changes_the_result(name: str, until: str) -> None:
    given, machine = CASES[name]
    found = schedule(given, machine, until=until)
    np.testing.assert_array_equal(memory_after(found), memory_after(given))


SIZES = st.sampled_from([1, 2, 3, 4, 8, 30])


@st.composite
def contractions(draw: st.DrawFn) -> Contraction:
    """Contractions of up to six labels in any order, of either one or two operands."""
    labels = draw(st.lists(st.sampled_from("cmnk"), min_size=1, max_size=6))
    names = "abcdef"[: len(labels)]
    sizes = {name: draw(SIZES) for name in names}
    operands = []
    for role in ("cmk", "cnk", "cmn"):
        own = [name for name, kind in zip(names, labels, strict=True) if kind in role]
        operands.append("".join(draw(st.permutations(own))))
    shapes = [StridedOperand(tuple(sizes[label] for label in term)) for term in operands[:2]]
    dtype = draw(st.sampled_from(["f32", "f64", "i32", "c64", "bf16"]))
    out_dtype = "f32" if dtype == "bf16" and labels.count("k") > 2 else None
    dimensions = einsum_dimensions("{},{}->{}".format(*operands), shapes)
    return Contraction(dimensions, dtype, out_dtype=out_dtype)


@draws(60)
@given(contractions(), st.sampled_from(["znver5", "haswell", "neoverse-v2", "pwr10"]), st.integers(1, 8))
def test_schedules_mean_the_same(given_: Contraction, target: str, cores: int) -> None:
    machine = replace(find_machine(target), cores=cores)
    found = schedule(given_, machine)
    np.testing.assert_array_equal(memory_after(found), memory_after(given_))
    assert found.flops == given_.flops
    assert Contraction.parse(str(found)) == found


# --- each pass ------------------------------------------------------------------------------------


def test_fuse_takes_neighbours_in_any_order() -> None:
    inner, outer = Dimension("m", size=3, in0=2, out=1), Dimension("m", size=4, in0=6, out=3)
    for order in ([inner, outer], [outer, inner]):
        (found,) = fuse(Contraction(order), ONE_CORE).dimensions
        assert found == Dimension("m", size=12, in0=2, out=1)


@pytest.mark.parametrize(
    "other",
    [
        Dimension("m", size=4, in0=6, out=4),
        Dimension("c", size=4, in0=6, in1=1, out=3),
        Dimension("m", size=4, in0=6, out=3, bias=1),
        Dimension("m", in0=6, out=3),
    ],
    ids=["apart in out", "of another type", "apart in the bias", "a size of run time"],
)
def test_fuse_leaves_what_is_not_one(other: Dimension) -> None:
    given_ = Contraction([other, Dimension("m", size=3, in0=2, out=1)])
    assert fuse(given_, ONE_CORE) == given_


def test_a_contraction_of_one_element_keeps_a_dimension() -> None:
    assert len(schedule(einsum("i,i->", (1,), (1,)), TWO_CORES).dimensions) == 1


#: What is identified: subscripts, shapes, the primitive, the types of its dimensions.
PRIMITIVES: dict[str, tuple[str, list[tuple[int, ...]], str, str]] = {
    "small matrices": ("ij,jk->ik", [(64, 64), (64, 64)], "gemm", "mnk"),
    "large matrices": ("ij,jk->ik", [(4096, 4096), (4096, 4096)], "packed_gemm", "mnk"),
    "two sums": ("iajb,ajbk->ik", [(32, 4, 3, 16), (4, 3, 16, 32)], "gemm", "mnk"),
    "two sums apart": ("aibj,ajbk->ik", [(4, 32, 3, 16), (4, 16, 3, 64)], "brgemm", "kmnk"),
    "a vector": ("ij,j->i", [(64, 64), (64,)], "gemm", "mk"),
    "a dot product": ("i,i->", [(64,), (64,)], "gemm", "k"),
    "an outer product": ("i,j->ij", [(64,), (64,)], "gemm", "mn"),
    "a product of elements": ("ij,ij->ij", [(64, 64), (64, 64)], "gemm", ""),
}


@pytest.mark.parametrize("name", PRIMITIVES)
def test_identify(name: str) -> None:
    subscripts, shapes, main, kinds = PRIMITIVES[name]
    found = schedule(einsum(subscripts, *shapes), ONE_CORE, until="identify")
    assert isinstance(found.main, Main)
    assert (found.main.value, "".join(d.type.value for d in found.primitive)) == (main, kinds)


def test_strides_of_powers_of_two_are_packed() -> None:
    """Depths 8 KiB apart fall into few sets of every cache, so that operands in place are read from far."""
    m, k = Dimension("m", size=256, in0=1, out=1), Dimension("k", size=1024, in0=1600, in1=1)
    n = Dimension("n", size=256, in1=1024, out=256)
    mains = []
    for stride in (1600, 2048):
        given_ = Contraction([m, n, replace(k, in0=stride)])
        mains.append(ways(given_, ONE_CORE)[0].main)
    assert mains == [Main.GEMM, Main.PACKED_GEMM]
    assert rows_held(2048 * 4, ONE_CORE.l2) < 1024 < rows_held(1600 * 4, ONE_CORE.l2)


def test_sums_that_out_cannot_hold_stay_in_one_primitive() -> None:
    found = schedule(einsum("ij,jk->ik", (64, 8192), (8192, 48), dtype="bf16"), ONE_CORE)
    assert [d for d in found.loops if d.type is DimensionRole.K] == []
    with pytest.raises(ContractionPrimitive, match="must be an out of f32"):
        schedule(einsum("abij,bjak->ik", (9, 9, 9, 9), (9, 9, 9, 9), dtype="bf16"), ONE_CORE)


def test_sizes_of_run_time_keep_their_order() -> None:
    strided = [
        Dimension("k", in0=99, in1=1),
        Dimension("c", in0=9, in1=9, out=9),
        Dimension("m", in0=1, out=1),
    ]
    found = schedule(Contraction([*strided, Dimension("n", size=4, in1=99, out=99)]), TWO_CORES)
    assert (found.main, [d.type.value for d in found.primitive]) == (Main.PACKED_GEMM, ["k", "c", "m", "n"])
    moved = Contraction([Dimension("c", in0=step, out=step) for step in (1, 30, 6)], main="relu")
    assert [d.in0 for d in schedule(moved, TWO_CORES).dimensions] == [1, 30, 6]
    with pytest.raises(ContractionPrimitive, match="elements of i32 x i32"):
        schedule(Contraction(strided, "i32"), ONE_CORE)


def test_sums_stand_inside() -> None:
    loops = [
        Dimension("k", size=4, in0=4096, in1=64),
        Dimension("k", size=2, in0=9, in1=65536),
        Dimension("m", size=8, in0=32, out=32),
        Dimension("n", size=16, in1=4, out=256),
    ]
    found = reorder(Contraction(loops, main="gemm"), ONE_CORE)
    assert [(d.type.value, d.size) for d in found.dimensions] == [("n", 16), ("m", 8), ("k", 2), ("k", 4)]


@pytest.mark.parametrize("threads", [2, 3, 4, 7, 16, 64])
def test_tasks_keep_threads_at_work(threads: int) -> None:
    machine = replace(ONE_CORE, cores=threads)
    found = schedule(einsum("ij,jk->ik", (1680, 64), (64, 1680)), machine)
    parallel = [d for d in found.dimensions if d.execution is ExecutionType.PARALLEL]
    assert balance(prod(d.size or 0 for d in parallel), threads) >= 0.9
    assert parallel == list(found.dimensions[: len(parallel)])


def test_sums_are_no_tasks() -> None:
    found = schedule(einsum("ij,jk->ik", (67, 8192), (8192, 47)), replace(ONE_CORE, cores=64))
    sums = [d.execution for d in found.loops if d.type is DimensionRole.K]
    assert sums == [ExecutionType.SEQUENTIAL]


@pytest.mark.parametrize(("batch", "parallel"), [(4, True), (3, False)])
def test_packed_operands_have_tasks_of_their_own(batch: int, *, parallel: bool) -> None:
    """They share panels, and run-time counts of threads: only a loop that is balanced is better."""
    found = schedule(einsum("bij,bjk->bik", (batch, 1024, 1024), (batch, 1024, 1024)), TWO_CORES)
    assert found.main is Main.PACKED_GEMM
    assert [d.execution is ExecutionType.PARALLEL for d in found.loops] == [parallel]


def test_small_ones_have_no_tasks() -> None:
    found = schedule(einsum("bij,bjk->bik", (4, 8, 8), (4, 8, 8)), TWO_CORES)
    assert {d.execution for d in found.loops} == {ExecutionType.SEQUENTIAL}


def test_primes_stay_whole() -> None:
    found = schedule(einsum("ij,jk->ik", (1601, 1601), (1601, 1601)), TWO_CORES)
    assert tasks_of(found) == 1
    assert [d.size for d in found.primitive] == [1601] * 3


def test_a_dimension_is_cut_at_divisors() -> None:
    one = Dimension("k", "primitive", 30, in0=7, in1=-2)
    for inner in divisors(30, 30):
        outer, rest = cut_at(one, inner)
        assert (outer.size, outer.in0, outer.in1) == (30 // inner, 7 * inner, -2 * inner)
        assert (rest.size, rest.in0, rest.in1) == (inner, 7, -2)


@looped("number", [0, 1, 2, 12, 36, 97, 360, 2**10, 3**6])
@looped("most", [0, 1, 5, 6, 7, 20, 1000])
def test_divisors_up_to_a_bound(number: int, most: int) -> None:
    assert list(divisors(number, most)) == [d for d in range(1, min(number, most) + 1) if number % d == 0]


#: A power of two, a prime, and the product of two primes: too long to count up to their square roots.
LONG = (2**58, 2**59 - 55, (2**31 - 1) * (2**27 - 39))


@pytest.mark.parametrize("cores", [1, 64, 2**40])
@pytest.mark.parametrize("long", LONG)
def test_searches_are_bounded(long: int, cores: int) -> None:
    machine = replace(find_machine("znver5"), cores=cores)
    cases = (
        einsum("ij,jk->ik", (long, 4), (4, 3)),
        einsum("ij,jk->ki", (3, 4), (4, long)),
        einsum("ij,jk->ik", (3, long), (long, 4)),
        einsum("ij->ji", (long, 3), main="identity"),
    )
    with within(20):
        for case in cases:
            assert work_of(schedule(case, machine)) == work_of(case)


def test_estimates_count_what_is_moved() -> None:
    given_ = einsum("ij,jk->ik", (640, 640), (640, 640))
    packed, in_place = (
        next(way for way in ways(given_, ONE_CORE) if way.main is main)
        for main in (Main.PACKED_GEMM, Main.GEMM)
    )
    assert estimate(packed, ONE_CORE).moved == 2 * 640 * 640
    assert estimate(in_place, ONE_CORE).moved == 0
    for way in (packed, in_place):
        assert estimate(way, ONE_CORE).cycles >= 640**3 / 32  # two vectors of 16 a cycle


def test_an_unknown_pass() -> None:
    with pytest.raises(InvalidChoice, match="fuse, identify, block, split, reorder, parallelise"):
        schedule(einsum("ij,jk->ik", (4, 4), (4, 4)), ONE_CORE, until="tile")
