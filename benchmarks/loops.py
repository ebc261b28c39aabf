"""Loops of C programs: as clang compiles them, replaced by `tilewright cc`, and with a call of BLAS instead.

The method of Kuzma et al. 2023 (doi:10.1002/spe.3214):
one executable for each system, all of them in random order, 20 runs each; one thread;
the median with its 95 % confidence interval. Needs clang (Debian: clang-19). Polly is measured where clang
has it. PLuTo is not: no distribution has a package of it.

``python benchmarks/loops.py`` prints four tables: large products, n at run time, in three orders of the
loops; small ones; the strategies over all sizes, which ``--plot FILE.png`` draws as the seed's figures 4
to 7; and products on several threads (``OMP_NUM_THREADS``) over those on one. ``--table NAME`` measures one
of them, ``--runs N`` and ``--largest N`` make it shorter.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tilewright.tools.explore.statistics import geometric_mean, median, median_interval

HERE = Path(__file__).parent
CLANG = next(filter(None, map(shutil.which, ("clang-19", "clang"))), "clang")
FLAGS = ("-O3", "-march=native", "-ffast-math")
ORDERS = ("ijk", "ikj", "jki")
#: Sizes of the seed's three figures: small, medium, large. The intrinsic writes out every product.
SMALL, MEDIUM, LARGE = (8, 16, 32, 64), (128, 256, 384, 512), (768, 1024, 1536, 2048)
LARGEST_INTRINSIC = 32
#: Seconds of repeated calls within one run; a call that takes longer is the run.
SECONDS = 0.05
#: No order of n additions in f32 has an |error| / (|a|.|b|) above n of these; a wrong element is far above.
ROUNDOFF = 2.0**-24


@dataclass(frozen=True)
class System:
    """One row: how the loops become an object.

    Attributes
    ----------
    driver : words before clang's own.
    defines : of loops_kernel.c.
    largest : the largest size that it is measured at.
    libraries : what it is linked with.
    """

    name: str
    driver: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    largest: int = 1 << 30
    libraries: tuple[str, ...] = ()


def tilewright(*options: str) -> tuple[str, ...]:
    """The words that have a command of clang's driven."""
    return (sys.executable, "-m", "tilewright", "cc", *options, "--")


def blas_library() -> Path:
    """The OpenBLAS that NumPy's wheel brings."""
    folder = Path(np.__file__).parent.parent / "numpy.libs"
    return next(folder.glob("*openblas*"))


ORIGINAL = System("clang -O3")
REPLACED = System("tilewright cc", tilewright())
BLAS = System("OpenBLAS", defines=(f'-DBLAS="{blas_library()}"',))
STRATEGIES = (
    System("intrinsic", tilewright("--strategy", "intrinsic"), largest=LARGEST_INTRINSIC),
    System("tiling", tilewright("--strategy", "tiling")),
    System("packing", tilewright("--strategy", "packing")),
    System("generic", tilewright("--strategy", "generic")),
)
OWN = System("cc --threads own", tilewright("--threads", "own"))
OPENMP = System("cc --threads openmp", tilewright("--threads", "openmp"), libraries=("-fopenmp",))
POLLY = System("Polly", flags=("-mllvm", "-polly"))


@dataclass(frozen=True)
class Case:
    """One executable: a system, an order of the loops, and whether the size is a constant."""

    system: System
    order: str
    size: int
    constant: bool = False


@dataclass
class Measured:
    """Seconds of the runs of a case, or why there are none."""

    seconds: list[float] = field(default_factory=list)
    failure: str = ""


def build(case: Case, folder: Path) -> Path:
    """The executable of a case; those that differ in nothing but a size at run time are one."""
    system = case.system
    size = case.size if case.constant else "n"
    stem = folder / f"{system.name}-{case.order}-{size}".replace(" ", "-")
    if not stem.exists():
        defines = [*system.defines, f"-DORDER={case.order}", *([f"-DSIZE={size}"] if case.constant else [])]
        loops = [*system.driver, CLANG, *FLAGS, *system.flags, *defines, "-c", str(HERE / "loops_kernel.c")]
        subprocess.run([*loops, "-o", f"{stem}.o"], check=True, capture_output=True, text=True)
        harness = str(HERE / "loops_harness.c")
        link = [CLANG, "-O2", harness, f"{stem}.o", "-lm", "-ldl", *system.libraries, "-o", str(stem)]
        subprocess.run(link, check=True, capture_output=True, text=True)
    return stem


def run(program: Path, size: int) -> float:
    """Seconds of one product; the result is checked before any is timed."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    words = [str(program), str(size), str(SECONDS)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=environment)
    seconds, error = map(float, done.stdout.split())
    if not error <= (size + 2) * ROUNDOFF:
        raise ArithmeticError(f"{program.name} computed n = {size} wrongly: relative error {error:.1e}")
    return seconds


def measure(cases: Sequence[Case], runs: int, seed: int) -> dict[Case, Measured]:
    """Every case so many times, all in random order."""
    measured = {case: Measured() for case in cases}
    with tempfile.TemporaryDirectory() as name:
        programs = {}
        for case in cases:
            try:
                programs[case] = build(case, Path(name))
                run(programs[case], case.size)
            except (subprocess.CalledProcessError, ArithmeticError) as error:
                lines = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
                measured[case].failure = lines[-1] if lines else str(error)
                programs.pop(case, None)
        order = [case for case in programs for _ in range(runs)]
        random.Random(seed).shuffle(order)
        for case in order:
            measured[case].seconds.append(run(programs[case], case.size))
    return measured


def gflops(size: int, seconds: float) -> float:
    """Speed of a product of square matrices."""
    return 2e-9 * size**3 / seconds


def report(measured: dict[Case, Measured]) -> None:
    """A line a case."""
    for case, found in measured.items():
        title = f"{case.system.name:19} {case.order} n={case.size:<5}"
        if found.failure:
            print(f"{title} not measured: {found.failure}")
            continue
        low, high = median_interval(found.seconds)
        speeds = (gflops(case.size, seconds) for seconds in (median(found.seconds), high, low))
        print("{} {:8.2f} GFLOPS  {:.2f}..{:.2f}".format(title, *speeds))


def ratios(
    measured: dict[Case, Measured], ours: System, other: System, other_order: str | None = None
) -> Iterator[tuple[int, float]]:
    """Size, and how many times as fast one system is as another: the geometric mean over the orders."""
    for size in sorted({case.size for case in measured}):
        found = []
        for case, mine in measured.items():
            if (case.system, case.size) == (ours, size) and mine.seconds:
                peer = Case(other, other_order or case.order, size, case.constant)
                theirs = measured.get(peer) or measured.get(Case(other, other_order or case.order, size))
                if theirs is not None and theirs.seconds:
                    found.append(median(theirs.seconds) / median(mine.seconds))
        if found:
            yield size, geometric_mean(found)


def say_ratios(measured: dict[Case, Measured], ours: System, other: System, order: str | None = None) -> None:
    """One line of ratios."""
    found = ", ".join(f"{ratio:.2f} (n={size})" for size, ratio in ratios(measured, ours, other, order))
    print(f"{ours.name} / {other.name}: {found}")


def loops_table(sizes: Sequence[int], runs: int, seed: int) -> dict[Case, Measured]:
    """Loops of three orders, sizes at run time, beside the same with replaced loops and a call of BLAS."""
    cases = [Case(system, order, n) for n in sizes for system in (ORIGINAL, REPLACED) for order in ORDERS]
    measured = measure([*cases, *(Case(BLAS, "ijk", n) for n in sizes)], runs, seed)
    report(measured)
    say_ratios(measured, REPLACED, ORIGINAL)
    say_ratios(measured, REPLACED, BLAS, "ijk")
    return measured


def strategies_table(sizes: Sequence[int], runs: int, seed: int) -> dict[Case, Measured]:
    """Each strategy at sizes that are constants, beside clang alone, Polly and BLAS."""
    systems = [ORIGINAL, REPLACED, *STRATEGIES, POLLY]
    cases = [Case(system, "ijk", n, True) for n in sizes for system in systems if n <= system.largest]
    measured = measure([*cases, *(Case(BLAS, "ijk", n) for n in sizes)], runs, seed)
    report(measured)
    for system in systems[1:]:
        say_ratios(measured, system, ORIGINAL)
        say_ratios(measured, system, BLAS)
    return measured


def threads_table(sizes: Sequence[int], runs: int, seed: int) -> dict[Case, Measured]:
    """Replaced loops on several threads, of a pool and of OpenMP, beside one thread."""
    cases = [Case(system, "ijk", n) for n in sizes for system in (REPLACED, OWN, OPENMP)]
    measured = measure(cases, runs, seed)
    report(measured)
    for system in (OWN, OPENMP):
        say_ratios(measured, system, REPLACED)
    return measured


def plot(measured: dict[Case, Measured], path: Path) -> None:
    """The seed's figures 4 to 7: speed-ups over clang at small, medium and large sizes, and over BLAS."""
    import matplotlib.pyplot as plt

    panels = (
        ("small, over clang -O3", SMALL, ORIGINAL),
        ("medium, over clang -O3", MEDIUM, ORIGINAL),
        ("large, over clang -O3", LARGE, ORIGINAL),
        ("all sizes, over OpenBLAS", (*SMALL, *MEDIUM, *LARGE), BLAS),
    )
    systems = [REPLACED, *STRATEGIES, POLLY]
    figure, axes = plt.subplots(2, 2, figsize=(13, 8), layout="constrained")
    known = {case.size for case in measured}
    for axis, (title, wanted, peer) in zip(axes.flat, panels, strict=True):
        sizes = [size for size in wanted if size in known]
        for place, system in enumerate(systems):
            found = {size: ratio for size, ratio in ratios(measured, system, peer) if size in sizes}
            positions = [sizes.index(size) + 0.13 * (place - 2.5) for size in found]
            axis.bar(positions, list(found.values()), width=0.12, label=system.name)
        axis.axhline(1, color="black", linewidth=0.8)
        axis.set(title=title, xlabel="n", ylabel="speed-up", yscale="log")
        axis.set_xticks(range(len(sizes)), [str(size) for size in sizes])
    axes.flat[0].legend(ncols=2, fontsize="small")
    figure.suptitle("C loops, f32, n x n x n, one thread; without PLuTo, which nobody packages")
    figure.savefig(path, dpi=120)


def main() -> None:
    """Print the tables that are asked for."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--table", choices=("large", "small", "strategies", "threads"), action="append")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--largest", type=int, default=2048)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    tables = {
        "large": (loops_table, (512, 1024, 2048)),
        "small": (loops_table, SMALL),
        "strategies": (strategies_table, (*SMALL, *MEDIUM, *LARGE)),
        "threads": (threads_table, (128, 160, 256, 512, 1024, 2048)),
    }
    results: dict[str, dict[Case, Measured]] = {}
    for name in options.table or tables:
        table, sizes = tables[name]
        print(f"--- {name}")
        results[name] = table([n for n in sizes if n <= options.largest], options.runs, options.seed)
    if options.plot is not None and "strategies" in results:
        plot(results["strategies"], options.plot)
    if options.json is not None:
        rows = [
            {"table": name, "system": case.system.name, "order": case.order, "n": case.size}
            | {"constant": case.constant, "seconds": found.seconds, "failure": found.failure}
            for name, measured in results.items()
            for case, found in measured.items()
        ]
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
