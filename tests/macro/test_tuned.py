"""Tuned constants in the models: what is taken, what is not, and that results keep their bits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from shares import looped

import tilewright as tw
from tilewright.compiler.pipeline import run_stages
from tilewright.ir.nodes import Program
from tilewright.machine.catalog import CATALOG, find_machine
from tilewright.machine.host import host_machine
from tilewright.machine.machine import Machine
from tilewright.machine.tuning import TunedConstant, Tuning
from tilewright.macro.blocking import Blocking, choose_blocking, column_block
from tilewright.macro.cost import RegisterTile, in_place_limits
from tilewright.macro.prediction import Path, Product
from tilewright.macro.tuned import TUNABLE_BLOCKS, TUNABLE_LIMITS, tuned_blocking, tuned_limits
from tilewright.ops.gemm.cut import cut_gemm
from tilewright.ops.gemm.paths import GemmPaths
from tilewright.ops.gemm.problem import Gemm
from tilewright.spec.dtype import F32, parse_dtype
from tilewright.spec.problem import ProductTypes

ZEN5 = find_machine("znver5")
TYPES = ProductTypes.parse(F32)
FMA = ZEN5.isa.tile(F32)
#: Blocks of A and of B for the models' tile of 12x32, and for one of 8x48.
MODEL = choose_blocking(ZEN5, FMA)
NC = MODEL.nc
WIDE = column_block(ZEN5, FMA, RegisterTile(8, 48, 24, 28, 11), MODEL.kc)
STRIDED: dict[str, Any] = dict.fromkeys("abc", "strided")


def tuned(machine: Machine, constants: Mapping[str, tuple[int, int]], types: str = "f32") -> Machine:
    """A machine with constants: the model's value and the one that replaces it."""
    found = tuple(TunedConstant(name, *constants[name]) for name in sorted(constants))
    return replace(machine, tunings=(Tuning(types, found),))


BLOCKINGS: list[tuple[dict[str, tuple[int, int]], dict[str, int]]] = [
    ({}, {}),
    ({"mc": (60, 120)}, {"mc": 120}),
    ({"nc": (NC, 512), "mc": (60, 24)}, {"mc": 24, "nc": 512}),
    ({"mc": (72, 120)}, {}),  # the models chose otherwise
    ({"mc": (60, 100)}, {}),  # no whole tiles
    ({"nc": (NC, 1000)}, {}),
    ({"mc": (60, 1200)}, {}),  # too much scratch
    ({"nc": (NC, 1 << 40)}, {}),
    ({"mr": (12, 8), "nr": (32, 48)}, {"mr": 8, "nr": 48, "mc": 48, "nc": WIDE}),
    ({"mr": (12, 8), "nr": (32, 48), "mc": (48, 96)}, {"mr": 8, "nr": 48, "mc": 96, "nc": WIDE}),
    ({"mr": (12, 8), "nr": (32, 48), "mc": (60, 120)}, {"mr": 8, "nr": 48, "mc": 48, "nc": WIDE}),
    ({"mr": (12, 14), "nr": (32, 64)}, {}),  # more registers than there are
    ({"mr": (12, 8), "nr": (32, 40)}, {}),  # no whole vectors
    ({"mr": (14, 8), "nr": (32, 48)}, {}),  # of two sizes one is of another model
    ({"kc": (1024, 512)}, {}),  # decides bits
    ({"strip": (12, 24)}, {}),
]


@looped(("constants", "changed"), BLOCKINGS)
def test_blockings(constants: dict[str, tuple[int, int]], changed: dict[str, int]) -> None:
    found = tuned_blocking(tuned(ZEN5, constants), TYPES, FMA, MODEL)
    assert found == replace(MODEL, **changed)


LIMITS: list[tuple[dict[str, tuple[int, int]], dict[str, int]]] = [
    ({}, {}),
    ({"few_rows": (36, 48)}, {"few_rows": 48}),
    ({"few_rows": (32, 48)}, {}),
    ({"strip": (24, 36)}, {"strip": 36}),
    ({"strip": (24, 30)}, {}),
    ({"strip": (24, 24 * 17)}, {}),
    ({"one_set": (1024, 512)}, {}),
    ({"in_place_b": (49152, 1), "far_b": (262144, 1 << 40)}, {"in_place_b": 1, "far_b": 1 << 40}),
]


@pytest.mark.parametrize(("constants", "changed"), LIMITS, ids=str)
def test_limits(constants: dict[str, tuple[int, int]], changed: dict[str, int]) -> None:
    model = in_place_limits(ZEN5, FMA, MODEL.mr, MODEL.nr, TYPES)
    assert (model.few_rows, model.strip, model.in_place_b, model.far_b) == (36, 24, 49152, 262144)
    found = tuned_limits(tuned(ZEN5, constants), TYPES, model, MODEL.mr)
    assert found == replace(model, **changed)


def test_constants_that_decide_bits_are_not_tunable() -> None:
    assert TUNABLE_BLOCKS == ("mr", "nr", "mc", "nc")
    assert {"kc", "kr", "one_set", "rows_in_one_set"}.isdisjoint(TUNABLE_BLOCKS + TUNABLE_LIMITS)


def extreme(machine: Machine, problem: Gemm) -> Machine:
    """A machine whose every constant is another one."""
    cut = cut_gemm(problem, machine)
    one = machine.isa.tile(problem.dtype, problem.b_dtype)
    limits = in_place_limits(machine, one, cut.mr, cut.nr, problem.types)
    blocks = {"mc": (cut.mc, 2 * cut.mc), "nc": (cut.nc, max(cut.nr, cut.nc // 4 // cut.nr * cut.nr))}
    others = {name: (getattr(limits, name), 2 * getattr(limits, name)) for name in TUNABLE_LIMITS}
    return tuned(machine, {**blocks, **others}, problem.types.name)


@pytest.mark.parametrize("name", [entry.machine.name for entry in CATALOG][::4])
@pytest.mark.parametrize("dtype", ["f32", "c64", "i8"])
def test_packed_operands_keep_their_panels(name: str, dtype: str) -> None:
    """Panels are written by one kernel and read by another one, also from a file."""
    machine = find_machine(name)
    for problem in (
        Gemm(dtype=parse_dtype(dtype), b="packed"),
        Gemm(dtype=parse_dtype(dtype), a="packed", b="packed"),
    ):
        loops = [run_stages(problem, one, until="nest") for one in (machine, extreme(machine, problem))]
        assert loops[0].blocking == loops[1].blocking
        assert loops[0].program.body == loops[1].program.body


def test_a_tuning_of_other_types_changes_nothing() -> None:
    problem = Gemm(**STRIDED)
    other = tuned(ZEN5, {"mc": (60, 120), "strip": (24, 48)}, "f64")
    programs: list[Program] = [run_stages(problem, one, until="nest").program for one in (ZEN5, other)]
    assert programs[0] == programs[1]


def test_explanations_follow_the_tuned_limits() -> None:
    product = Product.contiguous(40, 1024, 1000)
    problem = Gemm(**STRIDED)
    assert GemmPaths.of(problem, ZEN5).chosen(product) is Path.STRIPS
    assert GemmPaths.of(problem, tuned(ZEN5, {"few_rows": (36, 48)})).chosen(product) is Path.IN_PLACE


# --- bits --------------------------------------------------------------------------------------------------

#: Shapes on both sides of every limit: in place, few rows, streams, strips, blocks of depths and of columns.
SHAPES = (
    *((1, 70, 1300), (2, 300, 310), (8, 700, 300), (7, 33, 5), (20, 300, 300), (40, 300, 300)),
    *((90, 90, 90), (300, 210, 1100), (130, 2300, 60), (700, 40, 40), (64, 64, 2100), (200, 17, 300)),
)


def layouts(m: int, n: int, k: int, dtype: Any) -> list[tuple[Any, Any]]:
    """Operands in several layouts: rows, columns, and rows a power of two apart."""
    generator = np.random.default_rng(m + n + k)

    def drawn(*shape: int) -> Any:
        if np.issubdtype(dtype, np.integer):
            return generator.integers(-100, 100, shape).astype(dtype)
        return generator.standard_normal(shape).astype(dtype)

    a, b = drawn(m, k), drawn(k, n)
    wide = np.zeros((m, 4096), dtype)
    wide[:, :k] = a
    return [(a, b), (np.asfortranarray(a), b), (a, np.asfortranarray(b)), (wide[:, :k], b)]


def other_tile(machine: Machine, problem: Gemm) -> dict[str, tuple[int, int]]:
    """Another register tile, smaller by a row and by a vector."""
    cut: Blocking = cut_gemm(problem, machine)
    lanes = machine.isa.lanes(machine.isa.tile(problem.dtype).acc)
    return {"mr": (cut.mr, cut.mr - 1), "nr": (cut.nr, max(lanes, cut.nr - lanes))}


@pytest.mark.parametrize(
    ("dtype", "isa"), [("f32", None), ("f32", "generic128"), ("f64", None), ("i8", None), ("bf16", None)]
)
def test_results_keep_their_bits(dtype: str, isa: str | None) -> None:
    problem = Gemm(dtype=parse_dtype(dtype), **STRIDED)
    host = replace(host_machine() if isa is None else tw.machine(isa), tunings=())
    tile = other_tile(host, problem)
    small = tuned(host, tile, dtype)
    cut = cut_gemm(problem, small)
    assert cut.kc == cut_gemm(problem, host).kc
    if dtype in ("f32", "f64"):
        assert (cut.mr, cut.nr) == (tile["mr"][1], tile["nr"][1])
    kernels = [tw.compile(problem, one) for one in (host, small, extreme(host, problem))]
    assert len({(kernel.nest.body, kernel.nest.buffers) for kernel in kernels}) > 1
    numpy = problem.dtype.numpy
    for shape in SHAPES:
        for a, b in layouts(*shape, numpy):
            out = np.empty(shape[:2], numpy)
            results = [kernel(a, b, out).tobytes() for kernel in kernels]
            assert results[0] == results[1] == results[2], (shape, a.strides, b.strides)
