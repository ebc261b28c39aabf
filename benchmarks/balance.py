"""How evenly the threads of many cores would share the products of `shapes_everywhere.py`: simulated.

Nothing is computed: the tasks of each product are listed as its kernel would cut them for so many threads,
each takes as long as its multiply-adds and copies, and a thread that is free takes the next one
(`tilewright.tools.explore.task_costs`). A row has, for each number of threads, the most tasks of one parallel
loop, the share of the time in which threads have one, and the speed-up over one thread, into which the start
and the end of each parallel loop count. Memory that cores share is not modelled. Run it with
``python benchmarks/balance.py [CPU ...]``, by default for znver4; it takes minutes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from functools import cache

from shapes_everywhere import SHAPES

from tilewright.ir.nodes import Program
from tilewright.machine.catalog import find_machine
from tilewright.machine.machine import Machine
from tilewright.ops.gemm.cut import cut_gemm
from tilewright.ops.gemm.nest import build_gemm
from tilewright.ops.gemm.problem import Gemm
from tilewright.spec.problem import Layout
from tilewright.tools.explore.statistics import geometric_mean
from tilewright.tools.explore.task_costs import program_costs

#: Threads that are simulated.
THREADS = (2, 8, 64, 192)


@cache
def program(machine: Machine, b: Layout) -> Program:
    """The tile IR of products of any size."""
    problem = Gemm(b=b)
    return build_gemm(problem, cut_gemm(problem, machine), machine, "balance")


def products() -> Iterator[tuple[str, Gemm]]:
    """The single products of the benchmark, with their labels."""
    for shapes in SHAPES:
        if shapes.batch == 1:
            yield from ((f"{shapes.kind} {case.label}", case.gemm) for case in shapes.cases)


def sizes_of(gemm: Gemm) -> dict[str, int]:
    """Sizes and strides of contiguous operands."""
    m, n, k = gemm.m or 0, gemm.n or 0, gemm.k or 0
    of_b = (n, 1) if gemm.b is Layout.ROW else (1, k)
    return {
        "m": m, "n": n, "k": k, "rs_a": k, "cs_a": 1, "rs_b": of_b[0], "cs_b": of_b[1], "rs_c": n, "cs_c": 1,
    }  # fmt: skip


def simulate(machine: Machine) -> None:
    """Prints the table of one machine."""
    print(
        f"{machine}\n{'tasks, share, speed-up':28}" + "".join(f"{count:>6} threads    " for count in THREADS)
    )
    speedups: dict[int, list[float]] = {count: [] for count in THREADS}
    for label, gemm in products():
        alone = program_costs(program(machine, gemm.b), machine, sizes_of(gemm), 1).cycles(1)
        line = f"{label:28}"
        for count in THREADS:
            costs = program_costs(program(machine, gemm.b), machine, sizes_of(gemm), count)
            speedup = alone / costs.cycles(count)
            speedups[count].append(speedup)
            line += f"{max(map(len, costs.regions)):6d} {costs.balance(count):.2f} {speedup:6.1f}  "
        print(line, flush=True)
    means = "".join(f"{geometric_mean(speedups[count]):18.1f}" for count in THREADS)
    print(f"{'speed-up, geometric mean':26}{means}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a table for each machine."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cpu", nargs="*", default=["znver4"])
    for name in parser.parse_args(arguments).cpu:
        simulate(find_machine(name))


if __name__ == "__main__":
    main()
