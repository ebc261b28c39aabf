"""Nests of packed operands: the interpreter's result equal to `Gemm.reference` for every kind of instruction.

Packed buffers end with their last tile, and so the interpreter's bounds check proves that no nest reads
behind it; padding lanes hold what nobody may use, padding depths zeros.
"""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray
from shares import share
from tiers import crossed

from tilewright.errors import InvalidChoice
from tilewright.ir.interpret import interpret
from tilewright.ir.parse import parse_program
from tilewright.ir.text import print_program
from tilewright.ir.verify import verify
from tilewright.machine.catalog import find_machine
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import Blocking, choose_blocking, depth_unit
from tilewright.macro.packing import PanelForm, panel_form
from tilewright.ops.gemm.nest import build_gemm, instruction_of
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.packing.nest import build_packing
from tilewright.ops.packing.problem import Packing
from tilewright.spec.dtype import DType, Kind
from tilewright.spec.parts import Parts
from tilewright.spec.problem import PRODUCT_SIZES, Layout, Role

Array: TypeAlias = NDArray[Any]

UNITS = ("cascadelake", "znver5", "sapphirerapids", "haswell", "neoverse-v2", "pwr10", "rva23", "x86-64-v2")
TYPES: tuple[tuple[str, str | None, str | None], ...] = (
    ("f32", None, None),
    ("bf16", None, None),
    ("bf16", None, "f32"),
    ("f16", None, None),
    ("f64", None, None),
    ("i8", None, "i32"),
    ("u8", "i8", "i32"),
    ("i16", None, None),
    ("i4", None, "i32"),
    ("c64", None, None),
)
#: Every combination with a packed operand.
LAYOUTS = [
    layouts
    for layouts in product(("row", "strided", "packed"), ("row", "strided", "packed"), ("row", "packed"))
    if "packed" in layouts
]


def numbers(shape: tuple[int, int], dtype: DType, seed: int) -> Array:
    """Small integers: every sum is exact."""
    random = np.random.default_rng(seed)
    least, end = (0, 9) if dtype.kind is Kind.UNSIGNED else (-4, 5)
    found = random.integers(least, end, shape)
    if dtype.kind is Kind.COMPLEX:
        return (found + 1j * random.integers(least, end, shape)).astype(dtype.numpy)
    return found.astype(dtype.numpy)


def packed(matrix: Array, problem: Packing, machine: Machine) -> Array:
    """A matrix in panels as the packing nest makes them, in a flat buffer of exactly as many elements."""
    form = panel_form(problem.types, problem.role, machine)
    lanes, depth = problem.role.lanes_and_depth(matrix.shape)
    items = int(np.prod(form.shape(lanes, depth)))
    panels = np.full(items * form.storage.held, 99).astype(form.storage.numpy)
    strides = problem.role.lanes_and_depth((matrix.shape[1], 1))
    names = ("lanes", "depth", "lane_stride", "depth_stride")
    program = build_packing(problem, form, "g")
    assert parse_program(print_program(program)) == verify(program)
    interpret(
        program,
        dict(zip(names, (lanes, depth, *strides), strict=True)),
        {},
        {"source": matrix.reshape(-1), "panels": panels},
    )
    return panels


def shrunken(machine: Machine, problem: Gemm) -> Blocking:
    one = instruction_of(problem, machine.isa)
    tile = choose_blocking(machine, one)
    kc = (1 + problem.types.is_complex) * depth_unit(one)
    return Blocking(mr=tile.mr, nr=tile.nr, kr=tile.kr, mc=2 * tile.mr, nc=2 * tile.nr, kc=kc)


def tiles_of(c: Array, mr: int, nr: int) -> tuple[Array, Array]:
    """A buffer of whole tiles around C, and the places of C's elements in it, both in single numbers."""
    parts = 2 if c.dtype.kind == "c" else 1
    rows, columns = c.shape[0], c.shape[1] * parts
    m1, n1 = -(-rows // mr), -(-columns // nr)
    i, j = np.ogrid[:rows, :columns]
    places = ((i // mr * n1 + j // nr) * mr + i % mr) * nr + j % nr
    flat = np.full(m1 * n1 * mr * nr, 77).astype(c.real.dtype)
    flat[places] = c.view(c.real.dtype).reshape(rows, columns)
    return flat, places


@pytest.mark.parametrize(("name", "types"), crossed(UNITS, ([types] for types in TYPES), 2), ids=str)
def test_nests_equal_the_reference(name: str, types: tuple[str, str | None, str | None]) -> None:
    machine, (dtype, b_dtype, out_dtype) = find_machine(name), types
    first = UNITS.index(name) + TYPES.index(types)
    for number, (a, b, c) in share(enumerate(LAYOUTS), 7, first):
        problem = Gemm(dtype=dtype, b_dtype=b_dtype, out_dtype=out_dtype, a=a, b=b, c=c)
        cut, parts = shrunken(machine, problem), 1 + problem.types.is_complex
        m = (1, cut.mr - 1, cut.mr, 2 * cut.mr + 3, 4 * cut.mr + 1)[number % 5]
        n = (cut.nr // parts, 2 * cut.nr + 3, 1, 5 * cut.nr // parts + 2)[number % 4]
        k = (3, 2 * cut.kc + 5, cut.kc, 0)[number % 4 if number % 3 else 1]
        alpha, beta = ((1.0, 0.0), (2.0, 1.0), (-3.0, 2.0), (0.0, 3.0))[number % 4]
        left, right = numbers((m, k), problem.dtype, number), numbers((k, n), problem.b_dtype, number + 1)
        result = numbers((m, n), problem.out_dtype, number + 2)
        exact = problem.reference(left, right, result, alpha=alpha, beta=beta)
        buffers: dict[str, Array] = {"a": left.reshape(-1), "b": right.reshape(-1)}
        if a == "packed":
            buffers["a"] = packed(left, Packing(Role.A, problem.dtype, problem.b_dtype), machine)
        if b == "packed":
            buffers["b"] = packed(right, Packing(Role.B, problem.b_dtype, problem.dtype), machine)
        flat, places = tiles_of(result, cut.mr, cut.nr)
        if c != "packed":
            flat, places = result.view(result.real.dtype).reshape(-1).copy(), np.arange(m * n * parts)
        buffers["c"] = flat
        before = flat.copy()
        small = replace(machine, l2=replace(machine.l2, size=(1, 1 << 14)[number % 2]))
        program = verify(build_gemm(problem, cut, small, "g"))
        sizes = (m, n, k, k, 1, n, 1, n, 1)
        interpret(
            program, dict(zip(PRODUCT_SIZES, sizes, strict=True)), {"alpha": alpha, "beta": beta}, buffers
        )
        found = np.ascontiguousarray(flat[places]).reshape(m, n * parts).view(result.dtype)
        expected = exact.astype(result.dtype)
        np.testing.assert_array_equal(found.astype(exact.dtype), expected.astype(exact.dtype), f"{problem}")
        before[places] = flat[places]
        np.testing.assert_array_equal(flat, before, "padding of C was written")


@pytest.mark.parametrize("name", UNITS)
def test_no_packed_operand_is_packed_again(name: str) -> None:
    machine = find_machine(name)
    for a, b in (("packed", "packed"), ("packed", "row"), ("row", "packed")):
        problem = Gemm(a=a, b=b)
        program = build_gemm(problem, shrunken(machine, problem), machine, "g")
        scratch = {buffer.name for buffer in program.scratch}
        assert ("a_pack" in scratch, "b_pack" in scratch) == (a != "packed", b != "packed")


def test_panels_of_an_instruction() -> None:
    machine = find_machine("znver5")
    assert panel_form(Packing("b", "bf16").types, Role.B, machine) == PanelForm(
        Packing("b", "bf16").dtype, 32, 2, 2
    )
    halves = panel_form(Packing("b", "f16").types, Role.B, machine)
    assert halves.storage.name == "f32"
    assert panel_form(Packing("b", "c64").types, Role.B, machine).parts is Parts.ROTATED
    assert panel_form(Packing("a", "c64").types, Role.A, machine).parts is Parts.SPLIT


def test_packed_operands_need_rows_of_c() -> None:
    with pytest.raises(InvalidChoice, match="packed"):
        Gemm(b="packed", c="col")
    assert Gemm(c="packed").operands[2].layout is Layout.PACKED
