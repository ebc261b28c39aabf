"""The rewrites of chains: same results before and after each, round trips gone, other programs untouched."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray
from tiers import crossed

from tilewright.ir.expressions import Constant
from tilewright.ir.fuse import fuse_consumer, fuse_pack, fuse_unpack
from tilewright.ir.interpret import interpret
from tilewright.ir.nodes import Loop, Pack, Program, Slice, Statement, TileEpilogue
from tilewright.ir.parse import parse_program
from tilewright.ir.text import print_program
from tilewright.ir.verify import verify
from tilewright.machine.catalog import find_machine
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import Blocking, choose_blocking, depth_unit
from tilewright.macro.packing import panel_form
from tilewright.ops.chain.nest import CHAIN_SIZES, build_chain
from tilewright.ops.chain.problem import LinearChain
from tilewright.ops.packing.nest import build_packing
from tilewright.ops.packing.problem import Packing
from tilewright.spec.problem import Role

Array: TypeAlias = NDArray[Any]

PASSES: tuple[Callable[[Program], Program], ...] = (fuse_unpack, fuse_pack, fuse_consumer)
MACHINES = ("znver5", "haswell", "neoverse-v2", "sapphirerapids", "pwr10", "x86-64-v2")
CHAINS = {
    "two": ((20, 96, 24), ("relu", None)),
    "three": ((64, 80, 128, 5), ("relu", "relu", "relu")),
    "one": ((33, 40), ("relu",)),
}


def shrunken(machine: Machine, problem: LinearChain, *, deep: bool) -> Blocking:
    """The machine's register tile with small blocks of rows, and of depth."""
    one = machine.isa.tile(problem.dtype)
    tile, unit = choose_blocking(machine, one), depth_unit(one)
    kc = 256 // unit * unit if deep else unit
    return Blocking(mr=tile.mr, nr=tile.nr, kr=tile.kr, mc=tile.mr, nc=tile.nr, kc=kc)


def chain(machine: Machine, name: str, dtype: str, *, deep: bool) -> tuple[LinearChain, Program]:
    sizes, activations = CHAINS[name]
    problem = LinearChain(sizes, activations, dtype)
    blocking = shrunken(machine, problem, deep=deep)
    return problem, verify(build_chain(problem, blocking, machine, "g"))


def panels(matrix: Array, problem: LinearChain, machine: Machine) -> Array:
    """A weight in the tiles of a machine, flat."""
    packing = Packing(Role.B, problem.dtype)
    form = panel_form(packing.types, Role.B, machine)
    depth, lanes = matrix.shape
    flat = np.zeros(int(np.prod(form.shape(lanes, depth)))).astype(form.storage.numpy)
    sizes = {"lanes": lanes, "depth": depth, "lane_stride": 1, "depth_stride": lanes}
    interpret(build_packing(packing, form, "g"), sizes, {}, {"source": matrix.reshape(-1), "panels": flat})
    return flat


def run(program: Program, problem: LinearChain, machine: Machine, m: int) -> tuple[Array, Array]:
    """The result on small integers, whose sums are exact, and the reference."""
    random, kind = np.random.default_rng(m), problem.dtype.numpy
    x = random.integers(-1, 2, (m, problem.sizes[0])).astype(kind)
    weights = [(random.random(shape) < 0.04).astype(kind) for shape in problem.layers]
    biases = [random.integers(-1, 2, n).astype(problem.types.acc.numpy) for n in problem.sizes[1:]]
    y = np.full((m, problem.sizes[-1]), np.nan).astype(kind)
    buffers = {"x": x.reshape(-1), "y": y.reshape(-1)}
    for number, (weight, bias) in enumerate(zip(weights, biases, strict=True), 1):
        buffers |= {f"weight{number}": panels(weight, problem, machine), f"bias{number}": bias}
    sizes = dict(zip(CHAIN_SIZES, (m, problem.sizes[0], problem.sizes[-1]), strict=True))
    interpret(program, sizes, {}, buffers)
    return y, problem.reference(x, weights, biases)


@pytest.mark.parametrize(
    ("machine_name", "name", "deep", "dtype"),
    crossed(MACHINES, product(CHAINS, (True, False), ("f32", "bf16", "f16", "f64")), 12),
)
def test_each_rewrite_keeps_the_result(machine_name: str, dtype: str, name: str, deep: bool) -> None:
    machine = find_machine(machine_name)
    problem, program = chain(machine, name, dtype, deep=deep)
    for rewrite in (lambda given: given, *PASSES):
        program = verify(rewrite(program))
        assert parse_program(print_program(program)) == program
        for m in (1, 2 * shrunken(machine, problem, deep=deep).mr + 3):
            found, expected = run(program, problem, machine, m)
            np.testing.assert_array_equal(found.astype(np.float64), expected)


def scratch(program: Program) -> dict[str, int]:
    return {buffer.name: buffer.size or 0 for buffer in program.scratch}


def test_what_each_rewrite_takes_away() -> None:
    machine = find_machine("znver5")
    problem, nests = chain(machine, "two", "f32", deep=True)
    rows, tile = 4 * 12, 12 * 32
    assert scratch(nests)["sums1"] == rows * 96
    unpacked = fuse_unpack(nests)
    assert set(scratch(nests)) - set(scratch(unpacked)) == {"sums1", "sums2"}
    assert scratch(unpacked)["rows1"] == rows * 96
    packed = fuse_pack(unpacked)
    assert scratch(packed)["rows1"] == tile
    assert scratch(packed)["tiles1"] == rows * 96
    fused = fuse_consumer(packed)
    assert scratch(fused) == {
        "panels1": rows * 20,
        "tiles1": tile,
        "rows1": tile,
        "panels2": rows * 96,
        "tiles2": tile,
    }
    assert len(loops(fused.body)) < len(loops(packed.body)) < len(loops(nests.body))
    assert all(rewrite(fused) == fused for rewrite in PASSES)
    del problem


def test_sums_wait_in_tiles_where_the_depth_has_blocks() -> None:
    machine = find_machine("znver5")
    _, nests = chain(machine, "two", "f32", deep=False)
    fused = fuse_consumer(fuse_pack(fuse_unpack(nests)))
    assert scratch(fused)["tiles1"] == 48 * 96
    assert "if 20 <= pc + 8" in print_program(fused)


def loops(body: tuple[Statement, ...]) -> list[Loop]:
    found = []
    for statement in body:
        if isinstance(statement, Loop):
            found += [statement, *loops(statement.body)]
    return found


def edited(program: Program, change: Callable[[Statement], Statement]) -> Program:
    """The program with every primitive changed."""

    def block(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        return tuple(
            replace(statement, body=block(statement.body))
            if isinstance(statement, Loop)
            else change(statement)
            for statement in body
        )

    return replace(program, body=block(program.body))


def test_rows_that_somebody_else_reads_stay() -> None:
    machine = find_machine("znver5")
    _, nests = chain(machine, "two", "f32", deep=True)

    def another(statement: Statement) -> Statement:
        if isinstance(statement, Pack) and statement.destination.buffer == "panels2":
            return replace(
                statement, source=Slice("sums1", *(statement.source.offset, statement.source.strides))
            )
        return statement

    changed = edited(nests, another)
    assert "sums1" in scratch(fuse_unpack(changed))
    assert scratch(fuse_pack(changed))["rows1"] == 48 * 96


def test_tiles_that_do_not_begin_at_a_step_of_the_depth_are_packed_together() -> None:
    machine = find_machine("znver5")
    _, nests = chain(machine, "two", "f32", deep=True)

    def by_words(statement: Statement) -> Statement:
        if isinstance(statement, Pack) and statement.destination.buffer == "panels2":
            return replace(statement, unit=64)
        return statement

    changed = edited(fuse_unpack(nests), by_words)
    assert fuse_pack(changed) == changed


def test_an_unpack_that_computes_stays() -> None:
    machine = find_machine("znver5")
    _, nests = chain(machine, "two", "f32", deep=True)

    def doubled(statement: Statement) -> Statement:
        if isinstance(statement, TileEpilogue) and statement.c.buffer == "sums1":
            return replace(statement, rows=Constant(1), alpha=replace(statement.alpha, value=2.0))
        return statement

    assert "sums1" in scratch(fuse_unpack(edited(nests, doubled)))
