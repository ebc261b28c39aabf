"""Nests of weights in words: the interpreter's result equal to the formula for every kind of instruction.

Buffers end with their last word and scale, and so the interpreter's bounds check proves that no nest reads
behind them. Values are small integers and scales powers of two, so that every sum is exact.
"""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from tiers import crossed

from tilewright.errors import InvalidTileIr
from tilewright.ir.interpret import interpret
from tilewright.ir.nodes import Pack, Panels, Program, Statement, TileMatmul
from tilewright.ir.parse import parse_program
from tilewright.ir.text import print_program
from tilewright.ir.trace import trace
from tilewright.ir.verify import verify
from tilewright.machine.catalog import find_machine
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import Blocking, choose_blocking, depth_unit
from tilewright.macro.packing import weight_lanes
from tilewright.ops.gemm.nest import build_gemm, instruction_of
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.packing.call import unpack
from tilewright.ops.packing.matrix import PackedMatrix
from tilewright.ops.quantized.quantise import pack_floats, pack_quantized
from tilewright.spec.problem import PRODUCT_SIZES
from tilewright.spec.weights import Elements, Weights

UNITS = ("znver5", "haswell", "sapphirerapids", "neoverse-v2", "pwr10", "pwr9", "rva23", "apple-m4")
FORMS = ("i8", "i8g32z", "i4g64", "i4z", "bf16", "f16")
#: Rows of few and of many; columns of whole blocks and parts of panels; depths of blocks, groups and words.
SHAPES = [(1, 300, 70), (3, 130, 131), (8, 5, 33), (33, 40, 200), (40, 70, 129), (2, 1, 1)]


def weight(form: Weights, k: int, n: int, machine: Machine) -> PackedMatrix:
    random = np.random.default_rng(k + n)
    if not form.elements.scaled:
        return pack_floats(random.integers(-8, 9, (k, n)).astype(np.float32), form.elements.value, machine)
    bits, groups = form.elements.bits, form.groups(k)
    q = random.integers(-(1 << bits - 1), 1 << bits - 1, (k, n)).astype(np.int8)
    zeros = random.integers(-3, 4, (groups, n)) if form.zeros else None
    scales = 2.0 ** random.integers(-2, 2, (groups, n))
    return pack_quantized(q, scales, zeros, machine, bits=bits, group=form.group or None)


def program_of(problem: Gemm, machine: Machine) -> Program:
    """The nest with small blocks, so that sums wait between them and groups are cut."""
    one = instruction_of(problem, machine.isa)
    whole = choose_blocking(machine, one, weight_lanes(machine))
    unit = max(depth_unit(one), 64)
    blocking = Blocking(whole.mr, whole.nr, whole.kr, 2 * whole.mr, 2 * whole.nr, unit)
    return build_gemm(problem, blocking, machine, "g")


def words_of(packed: PackedMatrix, elements: Elements) -> Any:
    kind = {Elements.BF16: packed.data4d.dtype, Elements.F16: np.dtype(np.float16)}.get(elements, np.int32)
    return packed.data4d.reshape(-1).view(kind)


@pytest.mark.parametrize(("unit", "name", "dtype"), crossed(UNITS, product(FORMS, ["f32", "bf16"]), 4))
def test_nests_mean_the_formula(unit: str, name: str, dtype: str) -> None:
    machine, form = find_machine(unit), Weights.parse(name)
    problem = Gemm(dtype=dtype, out_dtype="f32", weights=form)
    program = program_of(problem, machine)
    assert parse_program(print_program(program)) == verify(program)
    for m, n, k in SHAPES:
        packed = weight(form, k, n, machine)
        x = np.random.default_rng(m).integers(-3, 4, (m, k)).astype(problem.dtype.numpy)
        c = np.full(m * n, np.nan, np.float32)
        sizes = dict(zip(PRODUCT_SIZES, (m, n, k, k, 1, 0, 0, n, 1), strict=True))
        vectors = {key: packed.vectors[key].reshape(-1) for key in form.vectors}
        given = {"a": x.reshape(-1), "b": words_of(packed, form.elements), "c": c, **vectors}
        interpret(program, sizes, {"alpha": 2.0, "beta": 0.0}, given)
        expected = 2 * (x.astype(np.float64) @ unpack(packed).astype(np.float64))
        assert np.array_equal(c.reshape(m, n), expected), (m, n, k)


#: Rows up to which words are read: 4-bit ones are unpacked four times at most, for 8 or for 4 rows.
BORDERS = (("znver5", "i4g64", 32), ("znver2", "i4g64", 16), ("znver2", "i8", 32), ("znver2", "bf16", 32))


@pytest.mark.parametrize(
    ("unit", "form", "m", "narrow"),
    [(unit, form, m, m <= most) for unit, form, most in BORDERS for m in (1, 8, most, most + 1)],
)
def test_few_rows_read_words_and_many_rows_floats(unit: str, form: str, m: int, narrow: bool) -> None:
    machine = find_machine(unit)
    program = program_of(Gemm(weights=Weights.parse(form)), machine)
    sizes = dict(zip(PRODUCT_SIZES, (m, 300, 200, 200, 1, 0, 0, 300, 1), strict=True))
    found = trace(program, sizes, {"alpha": 1.0, "beta": 0.0}).primitives
    tiles = [one for one in found if isinstance(one, TileMatmul)]
    assert all((one.stored is not None) is narrow for one in tiles)
    assert any(isinstance(one, Pack) for one in found) is not narrow
    assert all((one.groups is not None) is (form != "bf16") for one in tiles)


def tiles_of(body: tuple[Statement, ...]) -> list[TileMatmul]:
    found = []
    for statement in body:
        inner = [getattr(statement, name, ()) for name in ("body", "then", "otherwise")]
        found += [statement] if isinstance(statement, TileMatmul) else []
        found += [tile for block in inner for tile in tiles_of(block)]
    return found


def test_programs_that_take_words_for_something_else_are_refused() -> None:
    program = program_of(Gemm(weights=Weights.parse("i4g64z")), find_machine("znver5"))
    node = next(tile for tile in tiles_of(program.body) if tile.stored is not None)
    assert node.stored is not None
    assert node.groups is not None
    assert node.stored.zero is not None
    wrong = [
        (
            replace(node, stored=replace(node.stored, elements=Elements.BF16)),
            "words of bf16 must be stored as bf16",
        ),
        (replace(node, b=replace(node.b, panels=None)), "words must be in panels"),
        (replace(node, groups=replace(node.groups, scale=replace(node.groups.scale, buffer="b"))), "are f32"),
        (replace(node, groups=replace(node.groups, scale=replace(node.groups.scale, panels=None))), "scales"),
        (replace(node, b=replace(node.b, panels=Panels(0, node.b.strides[0]))), "at least one lane"),
    ]
    names = {"i", "j", "pc", "depth", "kc", "jb"}
    for tile, reason in wrong:
        alone = replace(
            program, sizes=(*program.sizes, *sorted(names)), body=(replace(tile, beta=node.alpha),)
        )
        with pytest.raises(InvalidTileIr, match=reason):
            verify(alone)
