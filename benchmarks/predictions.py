"""Predicted and measured time of products on every path through the loops.

Each shape is computed by one kernel for each path that can compute it, in random order, the peak of the
multiply unit measured right before, from which the clock follows. The table shows, for each path, its share
of the peak and predicted over measured time; then the path that the conditions of the kernel choose, and one
that is faster. The last lines are the figures: the median error, and the share of shapes whose chosen path is
within 3 % of the fastest.

Run ``python benchmarks/predictions.py`` on a quiet machine. ``--row avx2`` takes another row of instructions,
``--only REGEX`` some shapes, ``--rounds N`` measures more often.
"""

from __future__ import annotations

import argparse
import random
import re
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from shapes_everywhere import SHAPES

import tilewright as tw
from tilewright.compiler.operation import kernel_name
from tilewright.compiler.peak import measure_peak
from tilewright.compiler.pipeline import finish, run_stages
from tilewright.machine.machine import Machine
from tilewright.macro.prediction import Path, Product
from tilewright.ops.gemm.kernel import GemmKernel
from tilewright.ops.gemm.nest import build_gemm
from tilewright.ops.gemm.paths import GemmPaths
from tilewright.ops.gemm.problem import Gemm
from tilewright.spec.dtype import F32
from tilewright.tools.explore.statistics import median

#: One measurement lasts so long, or one call.
SECONDS = 0.01
#: The peak is measured so long.
PEAK_SECONDS = 0.003
#: A path is the fastest or as good within this share.
NEAR = 0.03


def shapes(pattern: str) -> Iterator[tuple[str, tuple[int, int, int], str]]:
    """Label, sizes, and the transposed operands, of every single product."""
    for kind in SHAPES:
        if kind.batch > 1:
            continue
        for case in kind.cases:
            label = f"{kind.kind} {case.label}"
            if re.search(pattern, label):
                yield label, case.sizes, kind.trans


def kernel_of(problem: Gemm, machine: Machine, path: Path) -> GemmKernel:
    """The kernel of a problem that takes one path whatever the sizes."""
    state = run_stages(problem, machine, until="blocking")
    name = f"{kernel_name(problem, machine.isa.name)}_{path.name.lower()}"
    nest = build_gemm(problem, state.blocking, machine, name, only=path)
    return GemmKernel(finish(replace(state, name=name).with_field("nest", nest)))


def main() -> None:
    """Prints the table and the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--row", help="default: the widest row of the host")
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    tw.set_num_threads(1)
    machine = tw.machine(options.row) if options.row else tw.machine()
    problem = Gemm(dtype="f32", a="strided", b="strided", c="strided")
    paths = GemmPaths.of(problem, machine)
    kernels = {path: kernel_of(problem, machine, path) for path in paths.all}
    flops_a_cycle = 2 * machine.isa.tile(F32).products * machine.isa.rate(machine.isa.tile(F32))
    print(f"{machine!r}, core {machine.core.name or 'unknown'}, {paths.cut.blocking}")
    print(f"{'':<26}" + "".join(f"{path.name.lower():>18}" for path in kernels) + "  chosen")
    errors, losses = [], []
    rng = np.random.default_rng(0)
    for label, (m, n, k), transposed in shapes(options.only):
        a, b = (
            rng.standard_normal(shape[::-1]).astype("f4").T
            if name in transposed
            else rng.standard_normal(shape).astype("f4")
            for name, shape in (("a", (m, k)), ("b", (k, n)))
        )
        c = np.empty((m, n), "f4")
        strides = (stride // matrix.itemsize for matrix in (a, b, c) for stride in matrix.strides)
        product = Product(m, n, k, *strides)
        possible = [path for path in paths.possible(product) if path in kernels]
        cycles: dict[Path, list[float]] = {path: [] for path in possible}
        for turn in range(options.rounds + 1):
            for path in random.sample(possible, len(possible)):
                call, repeat = kernels[path], 0
                hertz = measure_peak(F32, machine, PEAK_SECONDS) * 1e9 / flops_a_cycle
                begin = time.perf_counter()
                while repeat == 0 or time.perf_counter() - begin < SECONDS:
                    call(a, b, c)
                    repeat += 1
                if turn:  # the first round warms up
                    cycles[path].append((time.perf_counter() - begin) / repeat * hertz)
        found = {path: median(values) for path, values in cycles.items()}
        predicted = {path: paths.predict(path, product).total for path in possible}
        chosen, fastest = paths.chosen(product), min(found, key=found.__getitem__)
        texts = []
        for path in kernels:
            if path not in found:
                texts.append(f"{'-':>18}")
                continue
            share = 2 * m * n * k / flops_a_cycle / found[path]
            texts.append(f"{share:>11.2f} ({predicted[path] / found[path]:4.2f})")
            errors.append(abs(predicted[path] / found[path] - 1))
        loss = found[chosen] / found[fastest] - 1
        losses.append(loss)
        mark = "" if loss <= NEAR else f", {fastest.name.lower()} is {loss:.0%} faster"
        print(f"{label:<26}{''.join(texts)}  {chosen.name.lower()}{mark}", flush=True)
    near = sum(loss <= NEAR for loss in losses) / len(losses)
    print(f"\nmedian error of predictions {median(errors):.3f} (asked: 0.15)")
    print(f"chosen path within {NEAR:.0%} of the fastest in {near:.2f} of {len(losses)} shapes (asked: 0.95)")


if __name__ == "__main__":
    main()
