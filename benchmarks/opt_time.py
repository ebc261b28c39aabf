"""How long `tilewright opt` takes for a module of 2,000 functions in which nothing is a product of matrices.

The functions are C as programs have it: strings, lists, trees, tables, state machines, filters, sparse and
triangular solvers, dynamic programming. About half have loops, a quarter have nests; constants differ, so
that no two are the same. clang turns them into LLVM IR once, without any pass. Then ``tilewright opt`` and
``clang -O3`` on the same file take turns, both writing LLVM IR: times by the clock and in processor time, and
the ratios of the medians and of the shortest runs. Where there are two cores, LLVM's -O3 runs beside the
search. The share of each step is measured in this process: reading, LLVM's -O3 and writing are the floor,
which llvmlite's LLVM sets (it checks its own assertions).
Run it with ``python benchmarks/opt_time.py`` on a quiet machine; it needs clang.
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

from tilewright.llvm.canonical import optimise_module, shape_loops
from tilewright.loops.opt.optimise import optimise
from tilewright.loops.opt.records import OutputFormat, ProductOptions
from tilewright.loops.opt.rewrite import replace_products
from tilewright.loops.opt.work import Work, read_module_of, target_machine_of
from tilewright.tools.explore.statistics import median

FUNCTIONS = 2000

#: What is asked of the whole, in times of clang -O3.
ASKED = 2.0

#: The functions, one line each behind a comment that names their kind.
FUNCTION_TEXTS = Path(__file__).with_name("opt_functions.c")
#: How many functions of each kind there are for each other.
MIX = {"plain": 2, "loops": 1, "nests": 1}


def source(functions: int) -> str:
    """C that is the same whenever it is asked for."""
    head, *parts = FUNCTION_TEXTS.read_text().split("\n// ")
    bodies = {
        name: [Template(line) for line in lines] for name, *lines in (part.splitlines() for part in parts)
    }
    chance = random.Random(0)
    kinds = [bodies[name] for name, share in MIX.items() for _ in range(share)]
    lines = [
        chance.choice([body for body in chance.choice(kinds) if body.template]).substitute(
            n=number, a=chance.randrange(1, 50), b=chance.randrange(2, 99), c=chance.randrange(1, 8)
        )
        for number in range(functions)
    ]
    return head + "\n" + "\n".join(lines)


class Seconds(NamedTuple):
    """How long a command takes, by the clock and on all cores together, its children included."""

    clock: float
    processor: float


def seconds(command: Sequence[str | Path]) -> Seconds:
    """Runs a command."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after, end = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    return Seconds(end - start, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def steps(content: bytes) -> dict[str, float]:
    """Seconds of processor time of each step."""
    work = Work(content, "module", OutputFormat.LL, ProductOptions())
    found = {}

    def timed(name: str, step: Callable[[], Any]) -> Any:
        start = time.process_time()
        result = step()
        found[name] = time.process_time() - start
        return result

    module = timed("read", lambda: read_module_of(work))
    target = target_machine_of(module, work)
    shaped = module.clone()
    timed("shape loops", lambda: shape_loops(shaped, target))
    text = str(shaped)
    rewritten = timed("search", lambda: replace_products(text, work.options))
    assert rewritten.count == 0, "something was a product"
    timed("LLVM's -O3", lambda: optimise_module(module, target))
    timed("write", lambda: str(module))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--functions", type=int, default=FUNCTIONS)
    parser.add_argument("--runs", type=int, default=5)
    chosen = parser.parse_args()
    clang = next(filter(None, map(shutil.which, ("clang-19", "clang-20", "clang-21", "clang"))), None)
    if clang is None:
        parser.error("clang is not installed")
    with tempfile.TemporaryDirectory() as folder:
        program, module, result = (Path(folder) / name for name in ("a.c", "a.ll", "b.ll"))
        program.write_text(source(chosen.functions))
        raw = ("-O2", "-ffast-math", "-w", "-S", "-emit-llvm")
        subprocess.run([clang, *raw, "-Xclang", "-disable-llvm-passes", program, "-o", module], check=True)
        content = module.read_bytes()
        commands: dict[str, list[str | Path]] = {
            "tilewright opt": [sys.executable, "-m", "tilewright", "opt", module, "-o", result],
            "clang -O3": [clang, "-O3", "-S", "-emit-llvm", "-w", module, "-o", result],
        }
        times: dict[str, list[Seconds]] = {name: [] for name in commands}
        for _ in range(chosen.runs):
            for name, command in commands.items():
                times[name].append(seconds(command))
    nests = len(optimise(content).remarks)
    print(f"{chosen.functions} functions, {nests} nests, {len(content) / 1e6:.1f} MB of LLVM IR")
    for name, found in times.items():
        for kind, values in zip(Seconds._fields, zip(*found, strict=True), strict=True):
            runs = ", ".join(f"{one:.2f}" for one in values)
            print(f"{name:16} {kind:9} {median(values):6.2f} s   (runs: {runs})")
    parts = steps(content)
    print("of which: " + ", ".join(f"{name} {one:.2f} s" for name, one in parts.items()))
    floor = sum(parts[name] for name in ("read", "LLVM's -O3", "write"))
    ours, theirs = (Seconds(*map(median, zip(*times[name], strict=True))) for name in commands)
    print(f"llvmlite's LLVM alone: {floor / theirs.processor:.2f}x of clang")
    ratio = ours.clock / theirs.clock
    print(f"medians: {ratio:.2f}x of clang, asked: {ASKED:g}: {'met' if ratio <= ASKED else 'missed'}")
    print(f"processor time: {ours.processor / theirs.processor:.2f}x of clang")
    ours, theirs = (Seconds(*map(min, zip(*times[name], strict=True))) for name in commands)
    print(f"shortest runs: {ours.clock / theirs.clock:.2f}x of clang")


if __name__ == "__main__":
    main()
