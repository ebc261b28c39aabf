"""Balance of products of triangles on several cores, simulated: rows of a triangle are not equally long."""

from __future__ import annotations

import pytest
from tiers import crossed

from tilewright.ir.nodes import Program
from tilewright.machine.catalog import find_machine
from tilewright.ops.triangular.syr2k_nest import build_symmetric, choose_symmetric
from tilewright.ops.triangular.syr2k_problem import Syr2k, Syrk
from tilewright.ops.triangular.trmm_nest import build_trmm, choose_trmm
from tilewright.ops.triangular.trmm_problem import Trmm
from tilewright.tools.explore.task_costs import program_costs

MACHINE = find_machine("znver5")
PROBLEMS = (Syr2k(), Syr2k(lower=False), Trmm(), Trmm(lower=False))
#: Least share of the time of so many threads that they do not wait, by threads and size: of symmetric
#: products, whose longest rows come first (in the other order 0.86 with 16), and of those with a triangle,
#: whose last blocks of depths have few rows.
LEAST = {(2, 512): (0.98, 0.97), (4, 1024): (0.98, 0.95), (16, 2048): (0.97, 0.84)}


def words(value: Syrk | Trmm | int) -> str:
    """The name of an argument of a test."""
    return str(value) if isinstance(value, int) else f"{type(value).__name__}-{value.lower}"


def program_of(problem: Syrk | Trmm) -> Program:
    if isinstance(problem, Trmm):
        return build_trmm(problem, choose_trmm(problem, MACHINE), MACHINE, "t")
    return build_symmetric(problem, choose_symmetric(problem, MACHINE), MACHINE, "s")


@pytest.mark.parametrize(
    ("threads", "size", "problem"), crossed(LEAST, ([one] for one in PROBLEMS), 2), ids=words
)
def test_no_thread_waits_for_the_long_rows(threads: int, size: int, problem: Syrk | Trmm) -> None:
    program = program_of(problem)
    sizes = {name: size for name in ("m", "n", "k") if name in program.sizes}
    costs = program_costs(program, MACHINE, dict.fromkeys(program.sizes, 1) | sizes, threads)
    least = LEAST[threads, size][isinstance(problem, Trmm)]
    assert costs.cycles(1) / costs.cycles(threads) / threads >= least
