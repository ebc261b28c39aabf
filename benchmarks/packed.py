"""Packed weights and mmt4d: beside products that pack and PyTorch, against the FMA peak, and cache misses.

Systems run in turn in random order on the same arrays; the tables give medians. PyTorch joins where it is
installed. ``--misses`` counts the misses of the first-level data cache of tiling, packing and mmt4d, as the
table of seed 003: by ``perf stat`` where this machine has the counters, else by ``valgrind
--tool=cachegrind``, which takes minutes. Run it with ``python benchmarks/packed.py`` on a quiet machine.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import tilewright as tw
from tilewright.compiler.peak import measure_peak
from tilewright.machine.host import host_machine
from tilewright.spec.dtype import F32
from tilewright.tools.explore.rounds import median_seconds
from tilewright.tools.explore.statistics import median

#: The weight of the linear layers: outputs, inputs.
OUTPUTS, INPUTS = 4096, 1024
ROWS = (64, 128, 512)
SQUARES = (1024, 2048)

#: What cachegrind runs: it knows no AVX-512.
TARGET = "x86-64-v3"
KERNELS = ("tiling", "packing", "mmt4d")


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    """Random numbers in float32."""
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


def weights(repeat: int, threads: int) -> None:
    """x @ weight.T with a weight packed once, beside the same call with the array, and PyTorch."""
    weight = numbers(OUTPUTS, INPUTS)
    packed, contiguous = tw.pack(weight.T), np.ascontiguousarray(weight.T)
    torch: Any = None
    if importlib.util.find_spec("torch") is not None:
        import torch as found

        torch = found
        torch.set_num_threads(threads)
    print(f"weight {OUTPUTS}x{INPUTS} f32      packed     x @ w.T        x @ b     linear of torch")
    for m in ROWS:
        x = numbers(m, INPUTS)
        assert np.array_equal(tw.matmul(x, packed), tw.matmul(x, contiguous))
        calls: dict[str, Callable[[], object]] = {
            "packed": lambda x=x: tw.matmul(x, packed),  # type: ignore[misc]
            "x @ w.T": lambda x=x: tw.matmul(x, weight.T),  # type: ignore[misc]
            "x @ b": lambda x=x: tw.matmul(x, contiguous),  # type: ignore[misc]
        }
        if torch is not None:
            of_torch, w = torch.from_numpy(x), torch.from_numpy(weight)
            calls["torch"] = lambda of_torch=of_torch, w=w: torch.nn.functional.linear(of_torch, w)  # type: ignore[misc]
        found = median_seconds(calls, repeat)
        ours = found.pop("packed")
        rate = 2 * m * INPUTS * OUTPUTS / ours / 1e9
        ratios = "".join(f"{seconds / ours:13.2f}" for seconds in found.values())
        print(f"{m:4} rows       {rate:8.0f} GFLOPS{ratios}")


def chains(repeat: int) -> None:
    """Two linear layers with GELU between them as one kernel, beside one after the other."""
    sizes = (INPUTS, OUTPUTS, INPUTS)
    kernel = tw.compile(tw.LinearChain(sizes, ("gelu", None)))
    packed = [tw.pack(numbers(*shape) / 30) for shape in pairwise(sizes)]
    biases = [numbers(size) for size in sizes[1:]]
    print(f"\n{'x'.join(map(str, sizes))} f32, gelu         chain   layer by layer")
    for m in ROWS:
        x = numbers(m, INPUTS)

        def layers(x: np.ndarray[Any, Any] = x) -> np.ndarray[Any, Any]:
            return tw.linear(tw.linear(x, packed[0], biases[0], "gelu"), packed[1], biases[1])

        assert np.array_equal(kernel(x, packed, biases), layers())
        calls: dict[str, Callable[[], object]] = {
            "chain": lambda x=x: kernel(x, packed, biases),  # type: ignore[misc]
            "layers": layers,
        }
        found = median_seconds(calls, repeat)
        rate = kernel.problem.flops_a_row * m / found["chain"] / 1e9
        print(f"{m:4} rows                {rate:8.0f} GFLOPS {found['layers'] / found['chain']:11.2f}")


def tiles(repeat: int) -> None:
    """mmt4d on operands in the machine's tiles, as a share of the FMA peak measured between the calls."""
    machine, peaks = host_machine(), []
    print("\nmmt4d, tiles of the machine       GFLOPS   share of the FMA peak (whole tiles)")
    for n in SQUARES:
        lhs, rhs = tw.pack(numbers(n, n), role="a"), tw.pack(numbers(n, n))
        out = tw.mmt4d(lhs, rhs)
        kernel = tw.compile(tw.Mmt4d(out.shape[2], out.shape[3], 1))
        calls: dict[str, Callable[[], object]] = {
            "mmt4d": lambda k=kernel, a=lhs, b=rhs, c=out: k(a.data4d, b.data4d, c),  # type: ignore[misc]
            "peak": lambda: peaks.append(measure_peak(F32, machine, 0.005)),
        }
        seconds = median_seconds(calls, repeat)["mmt4d"]
        rate, peak = 2 * n**3 / seconds / 1e9, median(peaks)
        whole = 2 * out.size * n / seconds / 1e9
        print(f"{n}x{n}x{n:<22} {rate:8.0f}   {rate / peak:.3f} ({whole / peak:.3f})")


# --- cache misses -------------------------------------------------------------------------------------


def harness(folder: Path) -> Path:
    """The C program with the three kernels, linked from their objects."""
    gemms = {name: tw.compile(tw.Gemm(strategy=name), TARGET) for name in KERNELS[:2]}
    tile = gemms["packing"].blocking
    tiled = tw.compile(tw.Mmt4d(tile.mr, tile.nr, tile.kr), TARGET)
    kernels: dict[str, Any] = {**gemms, "mmt4d": tiled}
    objects = []
    for name, kernel in kernels.items():
        path = folder / f"{name}.o"
        path.write_bytes(kernel.object_code)
        objects.append(str(path))
    scratch = -(-max(kernel.scratch_bytes for kernel in kernels.values()) // 4096) * 4096 + 4096
    defines = [f"-D{name.upper()}={kernel.symbol}" for name, kernel in kernels.items()]
    defines += [f"-DM0={tile.mr}", f"-DN0={tile.nr}", f"-DSCRATCH={scratch}"]
    compiler = [found] if (found := shutil.which("cc")) else [sys.executable, "-m", "ziglang", "cc"]
    source, program = Path(__file__).parent / "packed_harness.c", folder / "harness"
    subprocess.run([*compiler, "-O1", *defines, str(source), *objects, "-o", str(program)], check=True)
    return program


def counted_by_perf(program: Path, kernel: str, n: int) -> int | None:
    """Loads that miss L1, from the counters of this machine; None where it has none."""
    perf = shutil.which("perf")
    if perf is None:
        return None
    command = [perf, "stat", "-x,", "-e", "L1-dcache-load-misses:u", str(program), kernel, str(n)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    counts = re.findall(r"^(\d+),,L1-dcache-load-misses", found.stderr, re.MULTILINE)
    return int(counts[0]) if counts else None


def counted_by_cachegrind(program: Path, kernel: str, n: int) -> int:
    """Reads and writes that miss the first-level data cache of the target, simulated."""
    l1 = tw.compile(tw.Gemm(), TARGET).machine.l1
    command = [
        "valgrind",
        "--tool=cachegrind",
        "--cache-sim=yes",
        f"--D1={l1.size},{l1.ways},{l1.line}",
        f"--cachegrind-out-file={os.devnull}",
        str(program),
        kernel,
        str(n),
    ]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    count = re.search(r"D1\s+misses:\s+([\d,]+)", found.stderr)
    assert count is not None, found.stderr
    return int(count[1].replace(",", ""))


def misses(sizes: list[int], *, simulated: bool) -> None:
    """Misses of the first-level data cache, as seed 003 has them for its two ways."""
    with tempfile.TemporaryDirectory() as folder:
        program = harness(Path(folder))
        counters = not simulated and counted_by_perf(program, "none", 64) is not None
        if not counters and shutil.which("valgrind") is None:
            sys.exit("no counters that perf reads, and no valgrind; run: apt-get install valgrind")
        how = "perf stat" if counters else "valgrind --tool=cachegrind"
        print(f"\nmisses of L1 data, millions ({TARGET}, {how})")
        print(f"{'n':>6}" + "".join(f"{name:>12}" for name in KERNELS) + "   tiling to packing, to mmt4d")
        for n in sizes:
            count = counted_by_perf if counters else counted_by_cachegrind
            before = count(program, "none", n)
            assert before is not None
            found = []
            for name in KERNELS:
                counted = count(program, name, n)
                assert counted is not None
                found.append((counted - before) / 1e6)
            shown = "".join(f"{value:12.2f}" for value in found)
            print(f"{n:>6}{shown}   {found[0] / found[1]:8.2f} {found[0] / found[2]:10.2f}", flush=True)


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--misses", metavar="N,N", nargs="?", const="512,1024,2048", default="")
    parser.add_argument("--simulated", action="store_true", help="count misses by valgrind in any case")
    arguments = parser.parse_args()
    if arguments.misses:
        misses([int(size) for size in arguments.misses.split(",")], simulated=arguments.simulated)
        return
    tw.set_num_threads(arguments.threads)
    weights(arguments.repeat, arguments.threads)
    chains(arguments.repeat)
    tw.set_num_threads(1)
    tiles(arguments.repeat)


if __name__ == "__main__":
    main()
