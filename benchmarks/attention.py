"""Fused attention: everything that is asked of it, beside what is measured here.

Speeds are measured by the method of ``tilewright bench attention``: one process per system, all interleaved
in random order, results checked against float64 first, the peak measured beside each measurement. torch joins
where it is installed. Single thread unless a row says otherwise; of causal attention half of the operations
count. Run it with ``python benchmarks/attention.py`` on a quiet machine, ``--only decode,threads`` for some
rows.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from figures import HEADER, Line

import tilewright as tw
from tilewright.errors import TilewrightError
from tilewright.machine.host import detect_host, host_machine
from tilewright.tools.bench.bandwidth import MemoryProbe
from tilewright.tools.explore.attention.cases import AttentionCase, parse_shapes
from tilewright.tools.explore.attention.memory import measure_memory
from tilewright.tools.explore.facts import describe_machine, machine_title
from tilewright.tools.explore.mca import estimate_kernel
from tilewright.tools.explore.measure import BenchmarkPlan, BenchmarkReport, measure
from tilewright.tools.explore.statistics import geometric_mean, median

#: The shapes of most rows.
SHAPES = "1x12x384x64,8x12x384x64,1x16x2048x64,1x8x4096x128"
#: Keys that one query is decoded against; heads of 128, 32 of queries and 8 of keys, bfloat16.
DECODED = (4096, 32768)
#: Lengths that are compared with the products and softmax by themselves.
LENGTHS = "1x8x16x64,1x8x32x64,1x8x64x64,1x8x128x64,1x8x256x64,1x8x512x64,1x8x1024x64,1x8x2048x64,1x8x4096x64"
LONGEST = "1x4x8192x64"
#: Times the last cache that caches of keys in memory take together.
CACHES = 4
#: One measurement of threads repeats its call for so many seconds.
SECONDS = 0.05
#: The machine that is estimated, not measured.
ESTIMATED = "neoverse-v2"
#: The peer, where it is installed.
TORCH = ("torch",) if importlib.util.find_spec("torch") else ()


def report_of(
    shapes: str, peers: Sequence[str], options: argparse.Namespace, **variant: Any
) -> tuple[tuple[AttentionCase, ...], BenchmarkReport]:
    """Measures some shapes beside peers."""
    cases = parse_shapes(shapes, **variant)
    plan = BenchmarkPlan(cases, tuple(peers), repeat=options.repeat)
    return cases, measure(plan, describe_machine(detect_host()))


def speeds(cases: Sequence[AttentionCase], report: BenchmarkReport) -> str:
    """Our GFLOPS of each case."""
    found = [f"{report.row(case.name, 'tilewright').gflops_median:.0f}" for case in cases]
    return f"{', '.join(found)} of {report.peak_gflops:.0f} GFLOPS ({report.unit})"


def ratios(cases: Sequence[AttentionCase], report: BenchmarkReport, peer: str) -> list[float]:
    """Our speed over a peer's, of each case."""
    return [report.row(case.name, "tilewright").ratio_to[peer] for case in cases]


def listed(values: Sequence[float]) -> str:
    """Values of several cases."""
    return ", ".join(f"{value:.2f}" for value in values)


def full(options: argparse.Namespace) -> Iterator[Line]:
    """f32, every query sees every key."""
    cases, report = report_of(SHAPES, TORCH, options)
    for case in cases:
        share = report.row(case.name, "tilewright").share_of_peak
        yield Line(f"f32 {case.label}, share of peak", 0.70, share)
    for peer in TORCH:
        found = ratios(cases, report, peer)
        note = f"{listed(found)}; {speeds(cases, report)}"
        yield Line(f"f32, ratio to {peer}, geometric mean", 2.2, geometric_mean(found), note)


def causal(options: argparse.Namespace) -> Iterator[Line]:
    """f32, queries see the keys up to their own."""
    cases, report = report_of(SHAPES, TORCH, options, causal=True)
    for peer in TORCH:
        found = ratios(cases, report, peer)
        note = f"{listed(found)}; {speeds(cases, report)}"
        yield Line(f"f32 causal, ratio to {peer}, geometric mean", 2.8, geometric_mean(found), note)


def short(options: argparse.Namespace) -> Iterator[Line]:
    """f32, few queries and keys."""
    cases, report = report_of("1x12x128x64", TORCH, options)
    for peer in TORCH:
        found = ratios(cases, report, peer)
        yield Line(f"f32 {cases[0].label}, ratio to {peer}", 2.2, found[0], speeds(cases, report))


def narrow(options: argparse.Namespace) -> Iterator[Line]:
    """bf16."""
    cases, report = report_of(SHAPES, TORCH, options, dtype="bf16")
    for peer in TORCH:
        found = ratios(cases, report, peer)
        note = f"{listed(found)}; {speeds(cases, report)}"
        yield Line(f"bf16, ratio to {peer}, geometric mean", 3.0, geometric_mean(found), note)


def window(options: argparse.Namespace) -> Iterator[Line]:
    """Time of full causal attention over that of a window."""
    (whole,) = parse_shapes("1x8x8192x64", causal=True)
    seen = replace(whole, window=(255, 0), label="")
    plan = BenchmarkPlan((whole, seen), (), repeat=options.repeat)
    report = measure(plan, describe_machine(detect_host()))
    full_time, window_time = (
        case.flops / report.row(case.name, "tilewright").gflops_median for case in (whole, seen)
    )
    note = f"{full_time * 1e-6:.1f} and {window_time * 1e-6:.2f} ms"
    yield Line("window of 256 of 8192 keys, ratio to full causal", 10, full_time / window_time, note)


def decode(options: argparse.Namespace) -> Iterator[Line]:
    """One query against long caches of keys, which are in memory, not in a cache of the processor."""
    machine = host_machine()
    last = (machine.l3 or machine.l2).size
    for keys in DECODED:
        case = AttentionCase(1, 32, 8, 1, keys, 128, "bf16")
        size = 2 * case.kv_heads * keys * case.head_dim * 2
        caches = [case.operands(seed) for seed in range(max(1, -(-CACHES * last // size)))]
        case.check("tilewright", caches[0], np.asarray(tw.attention(*caches[0])))
        probe = MemoryProbe(machine, size * len(caches))
        ways = {"tilewright": [partial(tw.attention, *arrays) for arrays in caches]}
        ways |= {
            way: [torch_decode(way, case, arrays) for arrays in caches]
            for way in TORCH_WAYS[: 2 * bool(TORCH)]
        }
        taken: dict[str, list[float]] = {name: [] for name in (*ways, "read")}
        order = random.Random(0)
        for turn in range(options.repeat + 1):
            for name in order.sample(sorted(taken), len(taken)):
                seconds = probe.read_seconds() if name == "read" else time_of(ways[name])
                if turn:  # the first round warms up
                    taken[name].append(seconds)
        found = {name: median(values) for name, values in taken.items()}
        speed = size * len(caches) / found["read"] * 1e-9
        share = found["read"] / found["tilewright"]
        title = f"decode bf16 1x32/8x1:{keys}x128"
        yield Line(f"{title}, share of read bandwidth", 0.8, share, f"{speed:.0f} GB/s")
        if TORCH:
            best = min(found[way] for way in TORCH_WAYS)
            yield Line(f"{title}, ratio to torch", 1.5, best / found["tilewright"], "torch's faster way")


#: Ways of torch to let a group of heads see the same keys.
TORCH_WAYS = ("torch enable_gqa", "torch heads as queries")


def torch_decode(way: str, case: AttentionCase, arrays: Sequence[Any]) -> Callable[[], Any]:
    """One call of torch on operands of its own type."""
    import torch

    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    q, k, v = (torch.from_numpy(array.view(np.int16)).view(torch.bfloat16) for array in arrays)
    attend = torch.nn.functional.scaled_dot_product_attention
    if way == TORCH_WAYS[0]:
        return partial(attend, q, k, v, enable_gqa=True)
    rows = q.view(case.batch, case.kv_heads, case.heads // case.kv_heads, case.head_dim)
    return partial(attend, rows, k, v)


def time_of(calls: Sequence[Callable[[], Any]]) -> float:
    """Seconds of a round of calls."""
    begin = time.perf_counter()
    for call in calls:
        call()
    return time.perf_counter() - begin


def threads(options: argparse.Namespace) -> Iterator[Line]:
    """Two threads beside one, in turn."""
    order = random.Random(0)
    for case in parse_shapes("8x12x384x64,1x16x2048x64"):
        arrays = case.operands(0)
        found = []
        for turn in range(options.repeat + 1):
            taken = {}
            for count in order.sample((1, 2), 2):
                call = partial(tw.attention, *arrays, threads=count)
                call()
                calls = [call] * max(1, round(SECONDS / time_of([call])))
                taken[count] = time_of(calls) / len(calls)
            if turn:
                found.append(taken[1] / taken[2])
        yield Line(f"f32 {case.label}, 2 threads over 1", 1.85, median(found))


def memory(options: argparse.Namespace) -> Iterator[Line]:  # noqa: ARG001
    """Memory beyond operands and result."""
    (case,) = parse_shapes("1x16x8192x64")
    rows = measure_memory((case,), ("tilewright", *TORCH), 1)
    sizes = {row.system: row.extra_bytes / 2**20 for row in rows}
    note = ", ".join(f"{name} {size:.1f}" for name, size in sizes.items())
    yield Line(f"f32 {case.label}, MiB beyond operands and result", 4, sizes["tilewright"], note, upper=True)


def unfused(options: argparse.Namespace) -> Iterator[Line]:
    """Beside our own products with a softmax between them, at every length."""
    for kind in ({}, {"causal": True}):
        cases, report = report_of(f"{LENGTHS},{LONGEST}", ("tilewright-unfused",), options, **kind)
        found = ratios(cases, report, "tilewright-unfused")
        title = "f32 causal" if kind else "f32"
        yield Line(f"{title}, 16..8192 keys, least ratio to own unfused", 1.0, min(found), listed(found))


def accuracy(options: argparse.Namespace) -> Iterator[Line]:  # noqa: ARG001
    """The largest difference from float64, of every element."""
    worst = 0.0
    for kind in ({}, {"causal": True}):
        for case in parse_shapes(f"{SHAPES},1x12x128x64", **kind):
            q, k, v = case.operands(0)
            found = np.asarray(tw.attention(q, k, v, **kind))
            for batch, head in np.ndindex(case.batch, case.heads):
                exact = exactly(case, q[batch, head], k[batch, head], v[batch, head])
                worst = max(worst, float(np.abs(found[batch, head] - exact).max()))
    yield Line("f32, largest error of any element of these shapes", 2e-6, worst, upper=True)


def exactly(case: AttentionCase, q: Any, k: Any, v: Any) -> Any:
    """One head in float64."""
    scores = q.astype(np.float64) @ k.astype(np.float64).T / np.sqrt(case.head_dim)
    if case.bounds is not None:
        scores[~case.visible(np.arange(case.queries))] = -np.inf
    scores -= scores.max(1, keepdims=True)
    np.exp(scores, out=scores)
    return scores @ v.astype(np.float64) / scores.sum(1, keepdims=True)


def estimate(options: argparse.Namespace) -> Iterator[Line]:  # noqa: ARG001
    """What llvm-mca says of both inner loops on a CPU that is not here."""
    kernel = tw.compile(tw.Attention(64), ESTIMATED)
    loops = sorted(estimate_kernel(kernel).loops, key=lambda loop: -loop.multiplies)
    tallest = [loop for loop in loops if loop.multiplies == loops[0].multiplies]
    for loop in tallest:
        note = f"{loop.function} {loop.label}: {loop.multiplies} multiplies a turn"
        yield Line(f"f32 on {ESTIMATED}, share of FMA bound (llvm-mca)", 0.90, loop.share, note)


ROWS = (full, causal, short, narrow, window, decode, threads, memory, unfused, accuracy, estimate)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    names = [row.__name__ for row in ROWS]
    parser.add_argument("--only", default=",".join(names), help=f"comma list of {', '.join(names)}")
    parser.add_argument("--repeat", type=int, default=20)
    options = parser.parse_args()
    chosen = options.only.split(",")
    print(f"{machine_title(describe_machine(detect_host()))}\n")
    print(HEADER)
    missed = 0
    for row in ROWS:
        if row.__name__ not in chosen:
            continue
        try:
            for line in row(options):
                missed += not line.reached
                print(line, flush=True)
        except TilewrightError as error:
            print(f"{row.__name__}: {error}")
    print(f"\n{missed} figures are not reached")


if __name__ == "__main__":
    main()
