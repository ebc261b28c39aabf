"""LLVM's own lowering of tile products: in every tile, on every target, and the same sums as ours."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
import pytest
from _pytest.mark.structures import ParameterSet
from kinds import each_kind
from shares import EVERY_TEST_RUNS
from support import GUARD_PAGES, GuardedMemory, filled, host_rows
from tiers import exhaustive, named, pairwise

import tilewright as tw
from tilewright.errors import InvalidChoice, UnsupportedDtype
from tilewright.machine.catalog import find_machine, targets
from tilewright.machine.isa import MATRIX_MULTIPLY, Broadcast, Isa, Lowering
from tilewright.machine.isa_rows import GENERIC128
from tilewright.ops.batch_reduce.problem import BatchReduceGemm
from tilewright.ops.gemm.problem import Gemm
from tilewright.spec.dtype import F32, F64, I16
from tilewright.tools.explore.loops import innermost_loops

each_row = pytest.mark.parametrize("isa", host_rows(), ids=lambda isa: isa.name)
each_dtype = pytest.mark.parametrize("dtype", [F32, F64], ids=str)

#: Around tiles, vectors and depth blocks; one row and one column.
SIZES = [
    (1, 1, 1),
    (5, 3, 2),
    (12, 32, 8),
    (13, 33, 65),
    (64, 64, 64),
    (97, 130, 601),
    (1, 70, 40),
    (70, 1, 9),
]


def every_kind_and_type() -> list[ParameterSet]:
    """Every machine with both types; in `make test` the first of each kind with one of them in turn."""
    kinds = [one.values[0] for one in each_kind(targets()) if not one.marks]
    return [
        pytest.param(name, dtype, marks=() if name in kinds and kinds.index(name) % 2 == turn else exhaustive)
        for name in targets()
        for turn, dtype in enumerate((F32, F64))
    ]


def both(problem: Gemm | BatchReduceGemm, isa: Isa) -> tuple[Any, Any]:
    machine = tw.machine().with_isa(isa)
    return tw.compile(problem, machine, lowering="generic"), tw.compile(problem, machine)


@pytest.mark.parametrize(
    ("strategy", "dtype", "isa"), pairwise(("auto", "packing", "tiling"), (F32, F64), host_rows()), ids=named
)
def test_products(strategy: str, dtype: tw.DType, isa: Isa) -> None:
    """NumPy's within rounding, and bit for bit ours: multiply-adds in the same order."""
    generic, target = both(Gemm(dtype=dtype, strategy=strategy), isa)
    for seed, (m, n, k) in enumerate(SIZES):
        a, b = filled((m, k), dtype.numpy, seed), filled((k, n), dtype.numpy, seed + 1)
        c = np.full((m, n), np.nan, dtype.numpy)
        generic(a, b, c)
        np.testing.assert_allclose(c, a.astype(float) @ b.astype(float), rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(c, target(a, b, np.empty_like(c)))


@each_row
@each_dtype
def test_sums_of_products_of_known_sizes(dtype: tw.DType, isa: Isa) -> None:
    for m, n, k in ((16, 6, 64), (23, 17, 5), (3, 3, 1)):
        generic, target = both(BatchReduceGemm(m, n, k, 3, dtype), isa)
        a, b, c = (
            np.asfortranarray(filled(shape, dtype.numpy, seed)).reshape(shape, order="A")
            for seed, shape in enumerate(((3, m, k), (3, k, n), (m, n)))
        )
        a, b = (np.ascontiguousarray(x.transpose(0, 2, 1)).transpose(0, 2, 1) for x in (a, b))
        ours = c.copy(order="F")
        np.testing.assert_array_equal(generic(a, b, c), target(a, b, ours))


@pytest.mark.parametrize("layouts", ["rrr", "ccc", "sss"])
def test_layouts_and_factors(layouts: str) -> None:
    words = {"r": "row", "c": "col", "s": "strided"}
    a_layout, b_layout, c_layout = (words[letter] for letter in layouts)
    kernel = tw.compile(Gemm(a=a_layout, b=b_layout, c=c_layout, strategy="tiling"), lowering="generic")
    a, b, c = (filled(shape) for shape in ((29, 31), (31, 37), (29, 37)))
    if layouts == "ccc":
        a, b, c = map(np.asfortranarray, (a, b, c))
    expected = 2 * (a.astype(float) @ b) - 0.5 * c
    kernel(a, b, c, alpha=2, beta=-0.5)
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["bf16", "f16", "i8", "i64"])
def test_widened_elements(dtype: str) -> None:
    """What no multiply-add takes is widened to what one does, as on rows without an instruction for it."""
    kernel = tw.compile(Gemm(dtype=dtype), lowering="generic")
    numpy = kernel.problem.dtype.numpy
    generator = np.random.default_rng(3)
    a, b = (generator.integers(-3, 4, shape).astype(numpy) for shape in ((40, 50), (50, 45)))
    c = np.zeros((40, 45), kernel.problem.types.c.numpy)
    kernel(a, b, c)
    exact = a.astype(np.int64) @ b.astype(np.int64)
    np.testing.assert_array_equal(c.astype(np.float64), exact.astype(c.dtype).astype(np.float64))


def test_complex_numbers() -> None:
    """Few rows do not read B in place: the intrinsic takes no parts that are exchanged in registers."""
    kernel, generator = tw.compile(Gemm(dtype="c64"), lowering="generic"), np.random.default_rng(3)
    for m, n, k in ((1, 100, 40), (4, 70, 30), (40, 1, 70), (30, 30, 30)):
        parts = generator.integers(-3, 4, (2, m, k)), generator.integers(-3, 4, (2, k, n))
        a, b = ((real + 1j * imaginary).astype(np.complex64) for real, imaginary in parts)
        c = np.zeros((m, n), np.complex64)
        kernel(a, b, c)
        np.testing.assert_array_equal(c, a @ b)


@pytest.mark.skipif(not GUARD_PAGES, reason="no pages can be made inaccessible")
@pytest.mark.parametrize("at_end", [False, True])
@pytest.mark.parametrize("a_layout", ["row", "col"])
@pytest.mark.parametrize("sizes", [(13, 20, 9), (5, 3, 1), (26, 52, 33)])
def test_nothing_beside_the_operands_is_touched(
    sizes: tuple[int, int, int], a_layout: str, at_end: bool
) -> None:
    """Every access is inside: the pages beside are not there."""
    m, n, k = sizes
    for strategy in ("tiling", "packing"):
        kernel = tw.compile(Gemm(strategy=strategy, a=a_layout), lowering="generic")
        steps_of_a = (4 * k, 4) if a_layout == "row" else (4, 4 * m)
        places = (((m, k), steps_of_a), ((k, n), (4 * n, 4)), ((m, n), (4 * n, 4)))
        a, b, c = (
            GuardedMemory(4 * shape[0] * shape[1]).place(filled(shape), steps, at_end=at_end)
            for shape, steps in places
        )
        expected = np.array(a) @ np.array(b)
        np.testing.assert_allclose(kernel(a, b, c), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("name", "dtype"), every_kind_and_type(), ids=named)
def test_every_target(name: str, dtype: tw.DType) -> None:
    """Each depth is one intrinsic of the whole tile, and vector code is what becomes of it."""
    kernel = tw.compile(Gemm(dtype=dtype, strategy="packing"), name, lowering="generic")
    tile, by_lane = kernel.blocking, kernel.machine.isa.broadcast is Broadcast.LANE
    # Lanes of A come from whole vectors, as many as make a power of two.
    rows = 1 << (tile.mr - 1).bit_length() if by_lane else tile.mr
    suffix = {F32: "f32", F64: "f64"}[dtype]
    called = rf"call contract .*@llvm\.matrix\.multiply\.v{rows * tile.nr}{suffix}\."
    assert re.search(rf"{called}.*i32 {tile.nr}, i32 1, i32 {rows}\)", kernel.llvm_ir)
    assert "llvm.fma." not in "\n".join(line for line in kernel.llvm_ir.splitlines() if "@tile" in line)
    assert "matrix" not in kernel.assembly.replace(kernel.name, "")
    loops = [loop for loop in innermost_loops(kernel.assembly, kernel.machine.triple) if loop.multiplies]
    assert max(len(loop.multiplies) for loop in loops) >= tile.mr
    if EVERY_TEST_RUNS:  # what assembly does not call, an object does not
        assert b"llvm.matrix" not in kernel.object_code


def test_matrix_units_are_not_used() -> None:
    """The generic lowering knows none: POWER10 multiplies vectors."""
    for name in ("pwr10", "sapphirerapids", "neoverse-v2"):
        isa = find_machine(name).with_lowering(Lowering.GENERIC).isa
        assert {tile.instruction for tile in isa.tiles} == {MATRIX_MULTIPLY}
        assert all(tile.m == tile.k == 1 for tile in isa.tiles)
    assert find_machine("pwr10").with_lowering(Lowering.TARGET) is find_machine("pwr10")


def test_name_and_pickle() -> None:
    kernel = tw.compile(Gemm(8, 8, 8), "haswell", lowering="generic")
    assert kernel.name == "gemm_f32_8x8x8_rrr_auto_avx2_generic"
    assert pickle.loads(pickle.dumps(kernel)).llvm_ir == kernel.llvm_ir


def test_unknown_lowering() -> None:
    with pytest.raises(InvalidChoice, match="lowering is 'mlir', must be one of: target, generic"):
        tw.compile(Gemm(), lowering="mlir")


def test_types_without_sums_are_refused() -> None:
    isa = GENERIC128.generic()
    assert isa.tile(I16).acc.name == "i32"
    with pytest.raises(UnsupportedDtype, match="generic128_generic"):
        isa.tile(I16, F32)
