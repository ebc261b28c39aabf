"""Tasks of a parallel nest: any number of threads gives the values of one, and gets its share."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tiers import pairwise

from tilewright.ir.expressions import Constant
from tilewright.ir.interpret import Interpreter, interpret
from tilewright.ir.nodes import Loop, Space
from tilewright.machine.catalog import find_machine
from tilewright.macro.blocking import Blocking
from tilewright.macro.partition import share, tasks
from tilewright.ops.gemm.nest import build_gemm
from tilewright.ops.gemm.problem import Gemm

#: One machine with masks, one without, one with a matrix unit; blocks so small that every loop turns.
MACHINES = {
    "znver5": Blocking(mr=12, nr=32, kr=1, mc=24, nc=128, kc=16),
    "haswell": Blocking(mr=6, nr=16, kr=1, mc=12, nc=64, kc=16),
    "pwr10": Blocking(mr=8, nr=16, kr=1, mc=16, nc=64, kc=16),
}
#: Five loops, tiles in place, one row, few rows, one column, one deep row, nothing at all.
SIZES = [
    (150, 300, 40),
    (200, 33, 20),
    (1, 700, 40),
    (5, 1100, 40),
    (90, 1, 40),
    (0, 5, 3),
    (5, 4, 0),
]


def evaluate(threads: int, extent: int, unit: int, each: int) -> int:
    return Interpreter({}, {}, threads).integer(share(Constant(extent), unit, tasks(each)), {})


def test_one_thread_has_one_task() -> None:
    assert evaluate(1, 1000, 32, 8) == 1024
    assert evaluate(1, 0, 32, 8) == 32, "a step is never 0"


@pytest.mark.parametrize("threads", [2, 3, 8, 64, 192])
def test_every_thread_has_several_tasks(threads: int) -> None:
    step = evaluate(threads, 100_000, 32, 8)
    assert step % 32 == 0
    assert -(-100_000 // step) >= 4 * threads


@pytest.mark.parametrize(
    ("name", "dtype", "strategy", "b", "threads"),
    pairwise(MACHINES, ("f32", "bf16"), ("auto", "tiling", "packing"), ("row", "col"), (2, 5)),
)
def test_tasks_in_any_order(name: str, dtype: str, strategy: str, b: str, threads: int) -> None:
    """The interpreter runs the tasks last to first, and forgets each thread's scratch in between."""
    machine = find_machine(name)
    kr = machine.isa.tile(Gemm(dtype=dtype).dtype).kr
    blocking = Blocking(**(vars(MACHINES[name]) | {"kr": kr}))
    problem = Gemm(dtype=dtype, b=b, strategy=strategy)
    program = build_gemm(problem, blocking, machine, "g")
    random = np.random.default_rng(0)
    kind = problem.dtype.numpy
    for m, n, k in SIZES:
        a = random.integers(-2, 3, (m, k)).astype(kind)
        right = random.integers(-2, 3, (k, n)).astype(kind)
        flat_b = right.reshape(-1) if b == "row" else np.ascontiguousarray(right.T).reshape(-1)
        c = np.full(m * n, np.nan, kind)
        sizes = {"m": m, "n": n, "k": k, "rs_a": k, "cs_a": 1, "rs_c": n, "cs_c": 1}
        sizes |= {"rs_b": n, "cs_b": 1} if b == "row" else {"rs_b": 1, "cs_b": k}
        buffers = {"a": a.reshape(-1), "b": flat_b, "c": c}
        interpret(program, sizes, {"alpha": 1.0, "beta": 0.0}, buffers, threads)
        expected = a.astype(np.float64) @ right.astype(np.float64)
        np.testing.assert_array_equal(c.reshape(m, n).astype(np.float64), expected, err_msg=f"{m}x{n}x{k}")


def loops(body: tuple[object, ...]) -> Iterator[Loop]:
    for statement in body:
        if isinstance(statement, Loop):
            yield statement
        for part in ("body", "then", "otherwise"):
            yield from loops(getattr(statement, part, ()))


@pytest.mark.parametrize("strategy", ["auto", "tiling", "packing"])
def test_what_threads_share_is_packed_apart(strategy: str) -> None:
    """Panels that one task packs for others are in shared scratch; its own are not."""
    program = build_gemm(Gemm(strategy=strategy), MACHINES["znver5"], find_machine("znver5"), "g")
    spaces = {buffer.name: buffer.space for buffer in program.scratch}
    assert spaces.get("b_pack", Space.SHARED) is Space.SHARED
    assert all(spaces.get(name, Space.THREAD) is Space.THREAD for name in ("a_pack", "b_panel", "sums"))
    assert any(loop.execution.value == "parallel" for loop in loops(program.body))
