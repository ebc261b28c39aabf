"""Contractions as configured: against NumPy, on every kind of primitive, in any order and on any strides."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import pickle
from random import Random
from typing import Any

import numpy as np
import pytest
from contraction_cases import Case, of_values, random_case
from hypothesis import given
from hypothesis import strategies as st
from shares import share
from support import Array, filled, rough, within
from tiers import draws
from uncompiled import uncompiled

import tilewright as tw
from tilewright.errors import (
    ContractionMemory,
    ContractionPrimitive,
    InvalidSize,
    OperandMismatch,
    OutOverlapsItself,
)
from tilewright.ir.interpret import interpret
from tilewright.ir.nodes import Space
from tilewright.ir.parse import parse_program
from tilewright.ir.text import print_program
from tilewright.ops.contraction.dimension import Dimension
from tilewright.ops.contraction.kernel import ContractionKernel
from tilewright.ops.contraction.main import FirstTouch
from tilewright.ops.contraction.memory import reach
from tilewright.ops.contraction.nest import open_sizes
from tilewright.ops.contraction.problem import Contraction
from tilewright.threads.pool import limited

#: Element types of random cases; f32 more often than others.
TYPES = ("f32", "f32", "f64", "bf16", "f16", "i8", "i32", "c64", "c128")

#: Machines whose tile IR is interpreted, and whose kernels are emulated: one of each kind of unit.
TARGETS = ("x86-64-v2", "sapphirerapids", "neoverse-v2", "a64fx", "apple-m4", "pwr9", "pwr10", "rva23")


def run(case: Case, kernel: Any) -> Array:
    """What the kernel leaves in out."""
    arrays = {name: case.placed(name) for name in case.problem.names}
    bias = arrays.pop("bias", None)
    if case.problem.first is not FirstTouch.NONE or case.problem.is_unary:
        arrays["out"][...] = np.nan if arrays["out"].dtype.kind in "fc" else 77
    found = kernel(*arrays.values(), bias=bias, sizes=case.sizes)
    assert found is arrays["out"]
    return found


@draws(16)
@given(st.randoms(use_true_random=False))
def test_random_contractions(random: Random) -> None:
    case = random_case(random, dtypes=TYPES)
    assert np.array_equal(run(case, tw.compile(case.problem)), case.expected()), case.problem


def interpreted(case: Case, target: str, threads: int) -> Array:
    """What tile IR for a machine leaves in out."""
    kernel = uncompiled(case.problem, target)
    program = kernel.nest
    assert parse_program(print_program(program)) == program
    sizes = dict(zip(open_sizes(case.problem), case.sizes, strict=True))
    buffers: dict[str, Any] = {}
    views = {name: case.placed(name) for name in case.problem.names}
    for name, view in views.items():
        flat = view.base
        assert isinstance(flat, np.ndarray)
        stored = program.buffer(name).dtype.numpy
        buffers[name] = (
            flat.view(stored),
            -reach(case.known.having(name), name)[0] * (flat.itemsize // stored.itemsize),
        )
    call = kernel.prepared(case.sizes)
    if call.tables is not None:
        tables = [one.name for one in program.arguments if one.name not in views]
        buffers |= dict(zip(tables, call.tables.arrays, strict=True))
        sizes |= zip(program.sizes[len(sizes) :], call.tables.sizes.values(), strict=True)
    interpret(program, sizes, {}, buffers, threads)
    return views["out"]


@pytest.mark.parametrize("target", TARGETS)
def test_tile_ir_of_other_machines(target: str) -> None:
    for seed in share(range(4), 2, TARGETS.index(target)):
        case = random_case(Random(f"{target}{seed}"), dtypes=TYPES, lengths=(1, 2, 3, 7, 17))
        assert np.array_equal(interpreted(case, target, 1 + seed % 2), case.expected()), case.problem


@pytest.mark.parametrize("target", TARGETS)
def test_kernels_of_other_machines(target: str) -> None:
    for seed in share(range(2), 2, TARGETS.index(target)):
        case = random_case(Random(f"{seed}{target}"), dtypes=TYPES)
        assert np.array_equal(run(case, tw.compile(case.problem, f"emulate:{target}")), case.expected())


# --- the configurations of Breuer, tnzr.compile ---------------------------------------------------


def blocked(main: str, first: str, last: str | None, sizes: tuple[int, ...] = (4, 3, 5, 32, 32, 32)) -> Case:
    """Blocks of matrices: loops over blocks, the primitive inside of them (Breuer, tnzr.compile, §7.2)."""
    m0, n0, k0, m1, n1, k1 = sizes
    kind = "primitive" if main == "brgemm" else "sequential"
    problem = Contraction(
        [
            Dimension("m", "sequential", m0, in0=k0 * k1 * m1, out=m1 * n1),
            Dimension("n", "sequential", n0, in1=k0 * k1 * n1, out=m0 * m1 * n1),
            Dimension("k", kind, k0, in0=k1 * m1, in1=k1 * n1),
            Dimension("m", "primitive", m1, in0=1, out=1),
            Dimension("n", "primitive", n1, in1=k1, out=m1),
            Dimension("k", "primitive", k1, in0=m1, in1=1),
        ],
        main=main,
        first=first,
        last=last,
    )
    return of_values(problem)


@pytest.mark.parametrize("main", ["gemm", "brgemm"])
@pytest.mark.parametrize(("first", "last"), [("zero", None), ("zero", "relu"), ("none", "relu")])
def test_configured_runs(main: str, first: str, last: str | None) -> None:
    case = blocked(main, first, last)
    kernel = tw.compile(case.problem)
    assert np.array_equal(run(case, kernel), case.expected())
    touched = ("unary zero" in kernel.tile_ir, "epilogue" in kernel.tile_ir)
    # Around a brgemm no k runs as a loop: its tiles replace out and take the steps themselves.
    assert touched == (main == "gemm" and first == "zero", main == "gemm" and last == "relu")
    assert ("batch 5" in kernel.tile_ir) is (main == "brgemm")


def test_loops_stand_in_the_order_given() -> None:
    case = blocked("gemm", "zero", None)
    for order in ((0, 1, 2), (2, 0, 1), (1, 2, 0)):
        dimensions = (*(case.problem.dimensions[at] for at in order), *case.problem.primitive)
        problem = case.problem.with_dimensions(dimensions)
        loops = [line.split()[1] for line in tw.compile(problem).tile_ir.splitlines() if " 1:" in line]
        assert loops == [f"{'mnk'[at]}_{place}" for place, at in enumerate(order)]
        assert np.array_equal(run(of_values(problem), tw.compile(problem)), of_values(problem).expected())


def test_any_number_of_threads_gives_the_same_bits() -> None:
    problem = Contraction(
        [
            Dimension("m", "parallel", 7, in0=40 * 50, out=40 * 30),
            Dimension("k", "sequential", 2, in0=25, in1=25),
            Dimension("m", "primitive", 40, in0=50, out=30),
            Dimension("n", "primitive", 30, in1=50, out=1),
            Dimension("k", "primitive", 25, in0=1, in1=1),
        ],
        main="packed_gemm",
    )
    kernel, a, b = tw.compile(problem), rough((7, 40, 50)), rough((30, 50), seed=1)
    several = kernel(a, b, np.empty((7, 40, 30), np.float32))
    with limited(1):
        alone = kernel(a, b, np.empty((7, 40, 30), np.float32))
    assert np.array_equal(several, alone)
    np.testing.assert_allclose(several, np.einsum("amk,nk->amn", a, b), rtol=1e-4, atol=1e-4)


def test_large_primitives_are_the_loops_of_a_product() -> None:
    sizes = (1500, 33, 70)
    m, n, k = sizes
    dimensions = [
        Dimension("m", "primitive", m, in0=k, out=n),
        Dimension("n", "primitive", n, in1=1, out=1),
        Dimension("k", "primitive", k, in0=1, in1=n),
    ]
    case = of_values(Contraction(dimensions, main="gemm", first="bias", last="relu"))
    assert np.array_equal(run(case, tw.compile(case.problem)), case.expected())


@pytest.mark.parametrize("out", [(70, -1), (-1, 30), (140, 2), (2, 60)])
@pytest.mark.parametrize("static", [True, False])
def test_columns_of_out_that_are_not_adjacent(out: tuple[int, int], *, static: bool) -> None:
    sizes = (30, 70)  # whole register tiles among them
    m, n = sizes if static else (None, None)
    dimensions = [
        Dimension("m", "primitive", m, in0=33, out=out[0]),
        Dimension("n", "primitive", n, in1=1, out=out[1]),
        Dimension("k", "primitive", 33, in0=1, in1=70),
    ]
    problem = Contraction(dimensions, main="gemm", first="none", last="relu,clamp:-1:30")
    case = of_values(problem, () if static else sizes)
    assert np.array_equal(run(case, tw.compile(problem)), case.expected())


# --- sizes ----------------------------------------------------------------------------------------


def line(size: int | None = None, **strides: int) -> Contraction:
    return Contraction([Dimension("c", "primitive", size, **{"in0": 1, "out": 1, **strides})], main="relu")


@pytest.mark.parametrize("main", ["gemm", "packed_gemm"])
@pytest.mark.parametrize("first", ["none", "zero", "bias"])
def test_no_depth(main: str, first: str) -> None:
    for static in (True, False):
        k = 0 if static else None
        problem = Contraction(
            [
                Dimension("m", "primitive", 3, in0=1, out=4, bias=0),
                Dimension("n", "primitive", 4, in1=1, out=1, bias=1),
                Dimension("k", "primitive", k, in0=3, in1=4),
            ],
            main=main,
            first=first,
            last="relu",
        )
        a, b, bias = np.zeros((0, 3), np.float32), np.zeros((0, 4), np.float32), filled((4,), seed=3)
        before = filled((3, 4), seed=5)
        expected = {"none": before, "zero": 0 * before, "bias": np.tile(bias, (3, 1))}[first]
        given = bias if first == "bias" else None
        found = tw.compile(problem)(a, b, before.copy(), bias=given, sizes=() if static else (0,))
        assert np.array_equal(found, np.maximum(expected, 0))


def test_nothing_to_do() -> None:
    out = np.full(4, 7, np.float32)
    assert tw.compile(line(0))(out, out) is out
    assert np.array_equal(tw.compile(line())(np.zeros(4, np.float32), out, sizes=(0,)), np.full(4, 7))


def test_operands_keep_their_roles_at_every_size() -> None:
    """Which operand's rows are packed as rows was decided before the sizes were known."""
    for size in (1, 5):
        dimensions = [
            Dimension("k", "primitive", 2, in0=15, in1=4),
            Dimension("m", "primitive", None, in0=33, out=2),
            Dimension("k", "primitive", 3, in0=1, in1=1),
        ]
        case = of_values(Contraction(dimensions, main="packed_gemm"), (size,))
        assert np.array_equal(run(case, tw.compile(case.problem)), case.expected())


def test_many_sizes() -> None:
    kernel, x = tw.compile(line()), filled((200,))
    for size in range(1, 200):
        out = np.full(200, 7, np.float32)
        kernel(x, out, sizes=(size,))
        assert np.array_equal(out, np.where(np.arange(200) < size, np.maximum(x, 0), 7))


# --- what is refused ------------------------------------------------------------------------------


def test_calls_that_are_refused() -> None:
    kernel, x, out = tw.compile(line(8)), np.ones(8, np.float32), np.zeros(8, np.float32)
    read_only = np.zeros(8, np.float32)
    read_only.flags.writeable = False
    refused: list[tuple[type[Exception], str, tuple[Any, ...], dict[str, Any]]] = [
        (OperandMismatch, "operands", (x,), {}),
        (OperandMismatch, "operands", (x, out), {"bias": x}),
        (OperandMismatch, "type", ([1.0] * 8, out), {}),
        (OperandMismatch, "type", (x, [1.0] * 8), {}),
        (OperandMismatch, "dtype", (x.astype(np.float64), out), {}),
        (OperandMismatch, "alignment", (np.zeros(33, np.uint8)[1:].view(np.float32), out), {}),
        (OperandMismatch, "writeable", (x, read_only), {}),
        (ContractionMemory, "in0 accesses elements 0 to 7", (x[1:], out), {}),
        (ContractionMemory, "out accesses elements 0 to 7", (x, out[:-1]), {}),
        (InvalidSize, "sizes", (x, out), {"sizes": (8,)}),
    ]
    for error, message, operands, keywords in refused:
        with pytest.raises(error, match=message):
            kernel(*operands, **keywords)
    assert not out.any()
    longer = np.zeros(12, np.float32)
    with pytest.raises(OperandMismatch, match="memory"):
        kernel(longer[:8], longer[4:])


def test_loops_that_would_round_sums() -> None:
    described = Contraction(
        [Dimension("m", size=4, in0=1, out=1), Dimension("k", size=4, in0=4, in1=1)], "bf16"
    )
    with pytest.raises(ContractionPrimitive, match="sums of f32 kept in an out of bf16 by the loop k"):
        ContractionKernel.compiled(described)  # `compile` finds a schedule without such a loop


def test_all_of_it_in_loops() -> None:
    dimensions = [
        Dimension("k", size=5, in0=3, in1=4),
        Dimension("m", size=3, in0=1, out=4),
        Dimension("n", size=4, in1=1, out=1),
    ]
    for first, last in (("zero", None), ("none", "relu")):
        case = of_values(Contraction(dimensions, first=first, last=last))
        assert np.array_equal(run(case, ContractionKernel.compiled(case.problem)), case.expected())


def test_out_overlaps_itself() -> None:
    problem = Contraction(
        [Dimension("c", "sequential", 3, in0=4, out=2), Dimension("c", "primitive", 4, in0=1, out=1)],
        main="identity",
    )
    with pytest.raises(OutOverlapsItself, match="strides"):
        tw.compile(problem)(np.ones(12, np.float32), np.zeros(12, np.float32))


def test_a_function_in_place() -> None:
    x = filled((8,))
    assert np.array_equal(tw.compile(line(8))(x, x), np.maximum(filled((8,)), 0))
    turned = Contraction(
        [Dimension("c", "primitive", 4, in0=1, out=4), Dimension("c", "primitive", 4, in0=4, out=1)],
        main="identity",
    )
    square = np.zeros((4, 4), np.float32)
    with pytest.raises(OperandMismatch, match="memory"):
        tw.compile(turned)(square, square)


# --- what a kernel shows --------------------------------------------------------------------------


def test_what_a_kernel_shows() -> None:
    case = blocked("gemm", "bias", "relu")
    kernel = tw.compile(case.problem)
    assert kernel.flops == 2 * 4 * 3 * 5 * 32**3
    assert "const float *bias" in kernel.header
    assert "first touch bias, last touch relu" in kernel.header
    again = pickle.loads(pickle.dumps(kernel))
    assert again.name == kernel.name
    packed = tw.compile(Contraction(case.problem.dimensions, main="packed_gemm"))
    assert "table of offsets" in packed.header
    assert "struct tw_team *team" in packed.header
    assert kernel.name != packed.name
    assert all(buffer.space is Space.ARGUMENT for buffer in kernel.nest.buffers)


def test_arrays_are_checked_before_tables_are_made() -> None:
    dimensions = [
        Dimension("m", "primitive", None, in0=1, out=1),
        Dimension("n", "primitive", 4, in1=1, out=2**40),
        Dimension("k", "primitive", 0, in0=1, in1=1),
    ]
    kernel = tw.compile(Contraction(dimensions))
    few = np.zeros(8, np.float32)
    with within(20):
        with pytest.raises(ContractionMemory, match="out accesses elements 0 to"):
            kernel(few, few, few.copy(), sizes=[2**38])
        empty = tw.compile(tw.einsum_contraction("ab,bc->ac", (2**33, 0), (0, 0)))
        out = np.empty((2**33, 0), np.float32)
        assert empty(np.empty((2**33, 0), np.float32), np.empty((0, 0), np.float32), out) is out
