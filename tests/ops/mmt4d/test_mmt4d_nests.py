"""The nests of mmt4d: which tiles are read in place, and the interpreter's result equal to the reference."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import numpy as np
import pytest
from shares import EVERY_TEST_RUNS, share
from tiers import crossed

from tilewright.errors import InvalidSize, UnsupportedDtype
from tilewright.ir.interpret import interpret
from tilewright.ir.nodes import Pack, Program, Statement, UnaryMap
from tilewright.ir.parse import parse_program
from tilewright.ir.text import print_program
from tilewright.ir.trace import trace
from tilewright.ir.verify import verify
from tilewright.machine.catalog import find_machine
from tilewright.macro.blocking import choose_blocking
from tilewright.ops.mmt4d.nest import build_mmt4d, choose_mmt4d
from tilewright.ops.mmt4d.problem import TILE_COUNTS, Mmt4d

MACHINES = ("znver5", "haswell", "sapphirerapids", "neoverse-v2", "pwr10", "rva23", "x86-64-v2")
#: Tile sizes: those of IREE's targets, vectors in part, whole and several, one element, odd ones.
TILES = (
    (8, 8, 1),
    (16, 16, 1),
    (4, 4, 2),
    (12, 32, 1),
    (8, 8, 4),
    (24, 64, 2),
    (1, 1, 1),
    (7, 33, 3),
    (3, 5, 16),
)
TYPES = (("f32", None), ("f64", None), ("bf16", None), ("f16", None), ("i8", None), ("u8", "i8"))


def run(program: Program, problem: Mmt4d, counts: tuple[int, int, int], beta: int) -> None:
    """Runs a program on tiles and compares with the reference; buffers end with the last tile."""
    (m1, n1, k1), random = counts, np.random.default_rng(sum(counts))
    lhs = random.integers(0, 5, (m1, k1, problem.m0, problem.k0)).astype(problem.dtype.numpy)
    rhs = random.integers(0, 5, (n1, k1, problem.n0, problem.k0)).astype(problem.b_dtype.numpy)
    shape = (m1, n1, problem.m0, problem.n0)
    out = random.integers(0, 5, shape).astype(problem.out_dtype.numpy)
    expected = problem.reference(lhs, rhs, out if beta else None)
    if not beta and not problem.out_dtype.is_integer:
        out[...] = np.nan
    flat = {"lhs": lhs.reshape(-1), "rhs": rhs.reshape(-1), "out": out.reshape(-1)}
    interpret(verify(program), dict(zip(TILE_COUNTS, counts, strict=True)), {"beta": beta}, flat)
    np.testing.assert_array_equal(flat["out"].reshape(shape).astype(expected.dtype), expected)


@pytest.mark.parametrize(("name", "types"), crossed(MACHINES, ([types] for types in TYPES), 2), ids=str)
def test_any_tiles_equal_the_reference(name: str, types: tuple[str, str | None]) -> None:
    machine = find_machine(name)
    for number, tiles in share(enumerate(TILES), 2, MACHINES.index(name) + TYPES.index(types)):
        problem = Mmt4d(*tiles, types[0], b_dtype=types[1])
        program = build_mmt4d(problem, choose_mmt4d(problem, machine), machine, "g")
        assert parse_program(print_program(program)) == program
        counts = ((1, 1, 1), (3, 2, 9), (2, 4, 3), (4, 1, 40))[number % 4]
        run(program, problem, counts, number % 2)
    known = Mmt4d(4, 8, 1, types[0], b_dtype=types[1], m1=3, n1=2, k1=5)
    run(build_mmt4d(known, choose_mmt4d(known, machine), machine, "g"), known, (3, 2, 5), 0)


@pytest.mark.parametrize("name", ["znver5", "haswell"])
def test_more_tiles_than_a_block(name: str) -> None:
    machine = find_machine(name)
    cases = (((4, 2, 1), (90, 11, 1200)), ((3, 5, 3), (60, 220, 9)), ((700, 3, 1), (4, 2, 3)))
    for tiles, counts in cases if EVERY_TEST_RUNS or name == "haswell" else cases[2:]:
        problem = Mmt4d(*tiles)
        cut = choose_mmt4d(problem, machine)
        run(build_mmt4d(problem, cut, machine, "g"), problem, counts, 1)


@pytest.mark.parametrize("beta", [0.0, 1.0])
def test_out_is_read_only_where_it_is_added_to(beta: float) -> None:
    machine, problem = find_machine("znver5"), Mmt4d(4, 4, 2)
    program = build_mmt4d(problem, choose_mmt4d(problem, machine), machine, "g")
    way = trace(program, dict.fromkeys(TILE_COUNTS, 3), {"beta": beta})
    moves = [node for node in way.primitives if isinstance(node, UnaryMap)]
    read = [node for node in moves if node.source is not None and node.source.buffer == "out"]
    assert bool(read) == (beta != 0)


def packs(body: tuple[Statement, ...]) -> int:
    """How many packs a body has."""
    found = 0
    for statement in body:
        found += isinstance(statement, Pack)
        found += packs(getattr(statement, "body", ()))
    return found


#: Machine, element type and tiles, and the register tile that reads them in place; None where they are not.
IN_PLACE = {
    ("znver5", "f32", (12, 32, 1)): (12, 32),
    ("znver5", "f32", (24, 64, 1)): (12, 32),
    ("znver5", "f32", (16, 16, 1)): (16, 16),
    ("znver5", "f32", (8, 8, 1)): None,  # half of a vector
    ("znver5", "f32", (12, 32, 2)): None,  # pairs of depths
    ("znver5", "bf16", (16, 32, 2)): (8, 32),
    ("znver5", "f16", (12, 32, 1)): None,  # no such instruction: packing widens
    ("znver5", "i8", (8, 32, 4)): (8, 32),
    ("haswell", "f32", (8, 8, 1)): (8, 8),
    ("haswell", "f64", (6, 8, 1)): (6, 8),
    ("neoverse-v2", "f32", (8, 8, 1)): (8, 8),
    ("neoverse-v2", "i8", (8, 8, 8)): (8, 8),
    ("pwr10", "f32", (8, 16, 1)): (8, 16),
    ("sapphirerapids", "bf16", (16, 16, 2)): None,  # AMX has A and B in other tiles
}


@pytest.mark.parametrize("case", IN_PLACE, ids=str)
def test_which_tiles_are_read_in_place(case: tuple[str, str, tuple[int, int, int]]) -> None:
    name, dtype, tiles = case
    machine, problem = find_machine(name), Mmt4d(*tiles, dtype)
    cut = choose_mmt4d(problem, machine)
    expected = IN_PLACE[case]
    assert cut.in_place == (expected is not None)
    body = build_mmt4d(problem, cut, machine, "g").body
    assert packs(body) == (0 if cut.in_place else 2)
    if expected is None:
        usual = choose_blocking(machine, machine.isa.tile(problem.dtype))
        expected = usual.mr, usual.nr
    assert (cut.blocking.mr, cut.blocking.nr) == expected


def test_problems() -> None:
    assert Mmt4d(8, 8, 4, "i8", m1=2, n1=3, k1=5).flops == 2 * 16 * 24 * 20
    assert Mmt4d(8, 8, 4, "i8", m1=2, n1=3, k1=5).bytes == 20 * (16 + 24) + 4 * 16 * 24
    assert Mmt4d(8, 8, 1).flops is None
    assert Mmt4d(8, 8, 1).bytes is None
    for sizes in ((0, 8, 1), (8, 5000, 1), (8, 8, 1.5)):
        with pytest.raises(InvalidSize):
            Mmt4d(*sizes)
    with pytest.raises(UnsupportedDtype, match="mmt4d"):
        Mmt4d(8, 8, 1, "c64")
