"""The nests of symmetric products: the interpreter's result equals the reference, the rest of C stays."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from emulated_rows import drawn, stored
from shares import share
from support import Array
from tiers import crossed

import tilewright as tw
from tilewright.ir.interpret import Interpreter, interpret
from tilewright.ir.nodes import Pack, Program, Statement, TileEpilogue, TileMatmul
from tilewright.ir.parse import parse_program
from tilewright.ir.text import print_program
from tilewright.ir.trace import trace
from tilewright.ir.verify import verify
from tilewright.machine.catalog import find_machine
from tilewright.macro.blocking import Blocking
from tilewright.ops.triangular.syr2k_nest import build_symmetric, choose_symmetric, symmetric_sizes
from tilewright.ops.triangular.syr2k_problem import Syr2k, Syrk
from tilewright.spec.problem import Layout

MACHINES = ("znver5", "haswell", "sapphirerapids", "neoverse-v2", "pwr10", "rva23", "x86-64-v2")
TYPES = (("f32", None), ("bf16", None), ("bf16", "f32"), ("f16", None), ("i8", "i32"), ("c64", None))
#: Nothing, one element, tails on both sides of the diagonal, several blocks of rows, columns and depths.
SIZES = ((0, 3), (1, 1), (3, 0), (13, 5), (41, 21), (70, 12))


def small(problem: Syrk, machine: str) -> Blocking:
    """A blocking whose blocks are a few tiles, so that small matrices have several of each."""
    cut = choose_symmetric(problem, find_machine(machine))
    unit = max(8, cut.kr)
    return replace(cut, mc=2 * cut.mr, nc=2 * cut.nr, kc=2 * unit * len(problem.factors))


def run(program: Program, problem: Syrk, n: int, k: int, factors: tuple[float, float], threads: int) -> None:
    """Runs a program on random matrices; beyond the triangle C holds what it held."""
    random = np.random.default_rng(n + k)
    alpha, beta = factors
    given = [drawn(random, problem.dtype, (n, k)) for _ in problem.factors]
    c = drawn(random, problem.out_dtype, (n, n))
    expected: Array = stored(problem.reference(*given, c, alpha=alpha, beta=beta), problem.out_dtype)
    inside = np.tri(n, dtype=bool) if problem.lower else np.tri(n, dtype=bool).T
    expected = np.where(inside, expected, c)
    if beta == 0 and not problem.out_dtype.is_integer:
        c[inside] = np.nan
    buffers: dict[str, Any] = {}
    strides: dict[str, int] = {"n": n, "k": k}
    for operand, array in zip(problem.operands, (*given, c), strict=True):
        dense = np.asarray(array, order="F" if operand.layout is Layout.COL else "C")
        flat = dense.reshape(-1, order="A")
        buffers[operand.name] = flat.view(operand.dtype.real.numpy) if operand.name == "c" else flat
        rows, columns = array.shape
        steps = (1, rows) if operand.layout is Layout.COL else (columns, 1)
        strides |= dict(zip((f"rs_{operand.name}", f"cs_{operand.name}"), steps, strict=True))
    sizes = {name: strides[name] for name in symmetric_sizes(problem)}
    interpret(program, sizes, {"alpha": alpha, "beta": beta}, buffers, threads=threads)
    order = "F" if problem.c is Layout.COL else "C"
    found = buffers["c"].view(problem.out_dtype.numpy).reshape((n, n), order=order)
    np.testing.assert_array_equal(found, expected, err_msg=f"{problem} {n}x{k} {factors}")


@pytest.mark.parametrize(("name", "types"), crossed(MACHINES, ([types] for types in TYPES), 2), ids=str)
def test_nests_mean_the_problem(name: str, types: tuple[str, str | None]) -> None:
    """Triangles, layouts, sizes, factors and threads take turns."""
    turns = itertools.cycle(itertools.product(((1.0, 0.0), (2.0, -1.0)), (1, 3)))
    kinds = enumerate((Syrk, Syr2k, Syr2k, Syrk), MACHINES.index(name))
    for number, kind in share(kinds, 3, TYPES.index(types)):
        lower = number // 3 % 2 == 0
        layouts: dict[str, Any] = {"a": ("row", "col")[number % 2], "c": ("row", "col")[number // 2 % 2]}
        problem = kind(dtype=types[0], out_dtype=types[1], lower=lower, **layouts)
        program = verify(build_symmetric(problem, small(problem, name), find_machine(name), "s"))
        assert parse_program(print_program(program)) == program
        for (n, k), (factors, threads) in zip(SIZES[number % 3 :: 3], turns, strict=False):
            run(program, problem, n, k, factors, threads)


def tiles(body: tuple[Statement, ...]) -> int:
    """How many register tiles a body has."""
    found = 0
    for statement in body:
        found += isinstance(statement, TileMatmul)
        for part in ("body", "then", "otherwise"):
            found += tiles(getattr(statement, part, ()))
    return found


def test_each_factor_is_packed_twice_and_multiplied_together() -> None:
    """Kuzma et al. 2023, §5.1: four packs; both products of a tile are one, and go to C by one store."""
    machine = find_machine("znver5")
    for problem, packs in ((Syr2k(), 4), (Syrk(), 2)):
        program = build_symmetric(problem, choose_symmetric(problem, machine), machine, "s")
        way = trace(program, dict.fromkeys(symmetric_sizes(problem), 1), {"alpha": 1.0, "beta": 0.0})
        assert sum(isinstance(node, Pack) for node in way.primitives) == packs
        assert tiles(program.body) == 2  # one that the diagonal does not cut, and one that it does


def test_no_tile_beyond_the_triangle() -> None:
    """Tiles that the loops reach, counted against those that have an element of the triangle."""
    machine = find_machine("znver5")
    problem = Syr2k(dtype="f32")
    cut = choose_symmetric(problem, machine)
    for lower, n in itertools.product((True, False), (cut.nr, 5 * cut.nr + 7, 12 * cut.mr)):
        problem = Syr2k(lower=lower)
        program = build_symmetric(problem, cut, machine, "s")
        visited = visits(program, {"n": n, "k": 1})
        wanted = {
            (i, j)
            for i in range(0, n, cut.mr)
            for j in range(0, n, cut.nr)
            if (j < min(i + cut.mr, n) if lower else i < min(j + cut.nr, n))
        }
        assert visited == wanted


class Visits(Interpreter):
    """A run that moves nothing and notes where register tiles stand."""

    def __init__(self) -> None:
        super().__init__({}, {"alpha": 1.0, "beta": 0.0})
        self.found: list[tuple[int, int]] = []

    def pack(self, node: Pack, names: Mapping[str, int]) -> None:
        """Not looked at."""

    def epilogue(self, node: TileEpilogue, names: Mapping[str, int], first: Mapping[str, bool]) -> None:
        """Not looked at."""

    def matmul(self, node: TileMatmul, names: Mapping[str, int], first: Mapping[str, bool]) -> None:
        """One register tile."""
        self.found.append((names["i"], names["j"]))


def visits(program: Program, sizes: dict[str, int]) -> set[tuple[int, int]]:
    """Where the register tiles of a run stand, none of them twice."""
    run = Visits()
    run.block(program.body, dict.fromkeys(program.sizes, 1) | sizes, {})
    assert len(run.found) == len(set(run.found)), "no tile is computed twice"
    return set(run.found)


def test_blocking_is_that_of_products() -> None:
    machine = find_machine("znver5")
    assert choose_symmetric(tw.Syr2k(), machine) == tw.compile(tw.Gemm(), "znver5").blocking
