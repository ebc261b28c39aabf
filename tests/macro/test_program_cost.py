"""Costs of programs: counts against the interpreter, bytes against those that are touched, known figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler.alternatives import predicted_alternatives
from tilewright.compiler.example import Example
from tilewright.compiler.kernel import Kernel
from tilewright.compiler.matrix_example import example_of
from tilewright.compiler.operation import Compilation
from tilewright.compiler.pipeline import run_stages
from tilewright.ir.accesses import accesses
from tilewright.ir.expressions import Constant, Expression, Lead, Name, TableEntry, Unless
from tilewright.ir.interpret import Interpreter
from tilewright.ir.nodes import Buffer, If, Let, Loop, Program, Slice, Space, Statement, UnaryMap
from tilewright.ir.primitives.budget import Spend
from tilewright.ir.primitives.prefetch import PrefetchRows
from tilewright.machine.cache import Cache
from tilewright.machine.catalog import find_machine
from tilewright.machine.machine import Machine
from tilewright.macro.counting import Counts, count_program
from tilewright.macro.footprint import AccessLattice, LatticeAxis, touched
from tilewright.macro.levels import Cycles
from tilewright.macro.prediction import Path, Product
from tilewright.macro.program_cost import predict_counts, predict_program
from tilewright.macro.touches import extents_of
from tilewright.ops.attention.cut import attention_cost
from tilewright.ops.gemm.paths import GemmPaths
from tilewright.spec.dtype import F32
from tilewright.spec.functions import UnaryOp
from tilewright.spec.weights import Weights

ZEN4 = find_machine("znver4")

#: Small calls of each kind of nest: the interpreter runs them in milliseconds.
CALLS: dict[str, tuple[Any, dict[str, int]]] = {
    "gemm": (tw.Gemm(), {"m": 37, "n": 75, "k": 19}),
    "gemm of tasks": (tw.Gemm(strategy="packing"), {"m": 37, "n": 75, "k": 19}),
    "packed": (tw.Gemm(b="packed"), {"m": 21, "n": 70, "k": 33}),
    "words": (tw.Gemm(5, 64, 128, b="packed", weights=Weights.parse("i4g64")), {}),
    "unary": (tw.Unary("relu", 40, 50), {}),
    "transpose": (tw.Unary("identity", b="row"), {"m": 130, "n": 70}),
    "rows": (tw.RowFunction("softmax"), {"rows": 7, "columns": 40}),
    "rows across": (tw.RowFunction("layer_norm", layout="col"), {"rows": 70, "columns": 9}),
    "elementwise": (tw.Elementwise("gelu"), {"rows": 7, "columns": 40}),
    "binary": (tw.BinaryFunction("multiply"), {"rows": 7, "columns": 40}),
    "syrk": (tw.Syrk(), {"n": 70, "k": 30}),
    "trmm": (tw.Trmm(), {"m": 40, "n": 70}),
    "attention": (tw.Attention(16, bounded=True), {"queries": 30, "keys": 70}),
    "few queries": (tw.Attention(16, schedule="decode"), {"queries": 3, "keys": 70}),
    "contraction": (tw.einsum_contraction("abc,cd->abd", (4, 6, 8), (8, 5)), {}),
    "tables": (tw.einsum_contraction("acbd,dfce->abef", (6, 4, 8, 5), (5, 7, 4, 3)), {}),
    "batch": (tw.BatchReduceGemm(16, 6, 20), {"count": 3}),
}


class _Counting(Interpreter):
    """Follows a program as the interpreter does; statements are noted with their sizes, and not run."""

    def __init__(self, tables: Mapping[str, tuple[int, ...]]) -> None:
        super().__init__({name: (np.array(table, np.int64), 0) for name, table in tables.items()}, {})
        self.runs: Counter[tuple[Statement, tuple[tuple[str, int], ...]]] = Counter()

    def integer(self, node: Expression, names: Mapping[str, int]) -> int:
        """As the interpreter has it; scalars are not 0, flags are, and addresses are those of whole lines."""
        match node:
            case Unless(_, value):
                return self.integer(value, names)
            case Lead():
                return 0
            case TableEntry(buffer, _) if buffer not in self.buffers:
                return 0
            case _:
                return super().integer(node, names)

    def block(self, body: tuple[Statement, ...], names: dict[str, int], first: dict[str, bool]) -> None:
        """Follows loops and branches."""
        names = dict(names)
        for statement in body:
            match statement:
                case Let(name, value):
                    names[name] = self.integer(value, names)
                case Loop() | If():
                    super().block((statement,), names, first)
                case _:
                    sizes = {name: self.integer(one, names) for name, one in extents_of(statement).items()}
                    self.runs[statement, tuple(sizes.items())] += 1


def nest_of(problem: Any, machine: Machine) -> Kernel:
    """A problem up to its tile IR; tables of contractions are those of their kernels."""
    if isinstance(problem, tw.Contraction):
        return tw.compile(problem, machine)
    return cast("Kernel", run_stages(problem, machine, "nest"))


def counted(name: str) -> tuple[Kernel, Example, Counts]:
    """A kernel, its call, and what is counted of it."""
    problem, sizes = CALLS[name]
    kernel = nest_of(problem, ZEN4)
    example = example_of(kernel, sizes)
    return kernel, example, count_program(kernel.nest, ZEN4, example.sizes, example.tables)


@pytest.mark.parametrize("name", CALLS)
def test_statements_are_counted_as_the_interpreter_runs_them(name: str) -> None:
    kernel, example, found = counted(name)
    run = _Counting(example.tables)
    run.block(kernel.nest.body, dict(example.sizes), {})
    assert {(one.node, one.sizes): times for one, times in found.runs.items()} == run.runs
    assert sum(run.runs.values()) >= 1


@pytest.mark.parametrize("name", CALLS)
def test_every_statement_has_a_cost(name: str) -> None:
    kernel, _, found = counted(name)
    whole = predict_counts(found, kernel.nest, ZEN4)
    assert all(part >= 0 for part in whole)
    for one in found.runs:
        if not isinstance(one.node, (Spend, PrefetchRows)):
            alone = predict_counts(Counts({one: 1}, {}, 0), kernel.nest, ZEN4)
            assert alone.busy > ZEN4.core.kernel_call_cycles, one.node


def lines_of(kernel: Kernel, example: Example) -> list[int]:
    """The cache lines of a call in the order in which the interpreter's accesses touch them."""
    scalars = dict.fromkeys(kernel.nest.scalars, 1.0)
    places = np.concatenate([one // 64 for one in accesses(kernel.nest, example.sizes, scalars)])
    return [int(one) for one in places[np.append(True, np.diff(places) != 0)]]


@pytest.mark.parametrize("name", ["gemm", "gemm of tasks", "packed", "unary", "transpose", "syrk", "trmm"])
def test_touched_bytes_are_those_of_the_accesses(name: str) -> None:
    kernel, example, found = counted(name)
    distinct = 64 * len(set(lines_of(kernel, example)))
    # Rows begin anywhere in a line, of which the model knows nothing; a triangle counts as its rectangle.
    assert 0.8 * distinct < found.touched < 1.5 * distinct


def misses(lines: list[int], capacity: int) -> int:
    """Lines that a cache of so many, of which the least recently used is replaced, does not hold."""
    held: dict[int, None] = {}
    found = 0
    for line in lines:
        if line in held:
            del held[line]
        else:
            found += 1
            if len(held) == capacity:
                del held[next(iter(held))]
        held[line] = None
    return found


@pytest.mark.parametrize(
    ("problem", "sizes", "kibibytes"),
    [
        (tw.Gemm(strategy="tiling"), {"m": 40, "n": 192, "k": 100}, 8),
        (tw.Gemm(strategy="packing"), {"m": 40, "n": 192, "k": 100}, 8),
        (tw.Unary("identity", b="row"), {"m": 260, "n": 200}, 40),
        (tw.Unary("relu", 100, 80), {}, 8),
    ],
    ids=["tiling", "packing", "transpose", "relu"],
)
def test_bytes_that_a_cache_lacks_are_those_of_a_simulated_one(
    problem: Any, sizes: dict[str, int], kibibytes: int
) -> None:
    kernel = nest_of(problem, ZEN4)
    example = example_of(kernel, sizes)
    size = kibibytes << 10
    small = replace(ZEN4, l1=Cache(size, ways=size // 64, line=64))
    simulated = 64 * misses(lines_of(kernel, example), size // 64)
    found = count_program(kernel.nest, small, example.sizes)
    # Lines that are written move twice: they are filled and written back.
    assert 0.8 * simulated < found.missed["l2"] < 2.3 * simulated


#: Bytes of rows that no cache of a Zen 4 holds.
_LONG = {"rows": 4096, "columns": 4096}
_ARRAY = 4 * 4096 * 4096


@pytest.mark.parametrize(
    ("problem", "passes"),
    [
        (tw.RowFunction("softmax"), 2),  # read once, stored past the caches once
        (tw.RowFunction("layer_norm"), 2),
        (tw.RowFunction("sum"), 1),
        (tw.Elementwise("relu"), 2),
        (tw.BinaryFunction("multiply"), 3),
    ],
)
def test_long_arrays_move_once_from_memory(problem: Any, passes: int) -> None:
    kernel = nest_of(problem, ZEN4)
    example = example_of(kernel, _LONG)
    found = count_program(kernel.nest, ZEN4, example.sizes).bytes_by_level
    assert found["memory"] == pytest.approx(passes * _ARRAY, rel=0.02)
    cycles = predict_program(kernel.nest, ZEN4, example.sizes)
    least = passes * _ARRAY / ZEN4.core.memory_bytes_per_cycle
    assert least * 0.98 <= cycles.total <= 1.6 * least


@pytest.mark.parametrize(("rows", "level"), [(4, ""), (64, "l2"), (1000, "l3")])
def test_short_arrays_stay_in_the_level_that_holds_them(rows: int, level: str) -> None:
    kernel = nest_of(tw.RowFunction("sum"), ZEN4)
    example = example_of(kernel, {"rows": rows, "columns": 1000})
    found = count_program(kernel.nest, ZEN4, example.sizes).bytes_by_level
    moved = {name: count for name, count in found.items() if count}
    assert list(moved) == ([level] if level else [])
    if level:
        assert moved[level] == pytest.approx(4 * rows * 1001, rel=0.05)


def test_what_is_stored_past_the_caches_goes_to_memory() -> None:
    kernel = nest_of(tw.RowFunction("softmax"), ZEN4)
    example = example_of(kernel, {"rows": 64, "columns": 1000})
    paths = predicted_alternatives(cast("Compilation", kernel), example.sizes, {})
    by_words = {one.meaning.rpartition("; ")[2]: one for one in paths}
    through = by_words["exponentials kept in a buffer, stores through the caches"]
    past = by_words["exponentials kept in a buffer, stores past the caches"]
    assert through.taken
    assert not past.taken
    assert through.parts["memory"] == 0
    least = 4 * 64 * 1000 / ZEN4.core.memory_bytes_per_cycle * (1 - ZEN4.core.l3_overlap)
    assert past.parts["memory"] == pytest.approx(least, rel=0.01)


def test_multiply_adds_of_a_product_are_those_of_its_path() -> None:
    sizes = {"m": 100, "n": 192, "k": 100}
    kernel = nest_of(tw.Gemm(strategy="tiling"), ZEN4)
    found = predict_program(kernel.nest, ZEN4, example_of(kernel, sizes).sizes)
    path = GemmPaths.of(tw.Gemm(), ZEN4).predict(Path.IN_PLACE, Product.contiguous(100, 192, 100))
    assert found.multiply == pytest.approx(path.multiply)
    assert found.total == pytest.approx(path.total, rel=0.5)


def test_a_triangle_is_half_of_its_square() -> None:
    kernel, shape = nest_of(tw.Syrk(), ZEN4), {"n": 640, "k": 128}
    found = predict_program(kernel.nest, ZEN4, example_of(kernel, shape).sizes)
    tile = ZEN4.isa.tile(F32)
    square = 640 * 640 * 128 / tile.products / ZEN4.isa.rate(tile)
    assert 0.5 * square < found.multiply < 0.6 * square


@pytest.mark.parametrize("target", ["znver4", "znver5", "neoverse-v2"])
def test_attention_agrees_with_the_costs_that_choose_its_schedule(target: str) -> None:
    machine, problem = find_machine(target), tw.Attention(64)
    kernel = nest_of(problem, machine)
    queries = keys = 384
    example = example_of(kernel, {"queries": queries, "keys": keys})
    found = predict_program(kernel.nest, machine, example.sizes, example.tables)
    wanted = attention_cost(problem, machine, queries, 1).blocks * keys
    assert found.busy == pytest.approx(wanted, rel=0.4)


def test_pages_that_a_tlb_lacks_are_walked() -> None:
    # A column of a row-major matrix whose rows are two pages long touches a page for each row.
    column = AccessLattice("a", 0, 4, (LatticeAxis(8192, 4096),), {})
    assert touched((column,), 4096) == 4096
    program = Program(
        "p",
        ("m",),
        (),
        (Buffer("a", F32, Space.ARGUMENT), Buffer("b", F32, Space.ARGUMENT)),
        (
            UnaryMap(
                UnaryOp.IDENTITY,
                Slice("b", Constant(0), (Constant(1), Constant(1))),
                Slice("a", Constant(0), (Constant(2048), Constant(1))),
                Name("m"),
                Constant(1),
            ),
        ),
    )
    few, many = (predict_program(program, ZEN4, {"m": rows}).tlb for rows in (1000, 8192))
    assert few == 0
    assert many == pytest.approx(8192 * ZEN4.core.page_walk_cycles, rel=0.01)
    unknown = replace(ZEN4, core=replace(ZEN4.core, tlb_pages=(0, 0)))
    assert predict_program(program, unknown, {"m": 8192}).tlb == 0


def test_turns_of_a_loop_that_differ_in_offsets_alone_are_looked_at_once() -> None:
    kernel = nest_of(tw.RowFunction("sum"), ZEN4)
    huge = example_of(kernel, {"batch": 1 << 20, "rows": 3, "columns": 5})
    found = count_program(kernel.nest, ZEN4, huge.sizes)
    assert sum(found.runs.values()) == 1 << 20


def test_parts_of_cycles_add_up() -> None:
    one = Cycles(multiply=1, l2=2).plus(Cycles(functions=10, tlb=1), 2)
    assert one == Cycles(multiply=1, functions=20, l2=2, tlb=2)
    assert (one.total, one.busy) == (25, 21)
