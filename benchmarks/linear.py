"""Linear layers with a fused epilogue: ratios to torch and to the same steps one after the other.

The systems take turns in one process in random order, after a check against float64; medians of the time of a
call, of one thread its processor time. Unfused is what a user would write without an epilogue:
`tilewright.matmul` into an array, the bias added in place by NumPy, and the activation by a kernel of
`tilewright.Unary`. torch joins where it is installed. Run it with ``python benchmarks/linear.py`` on a quiet
machine.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

import tilewright as tw
from tilewright.errors import PackageMissing
from tilewright.machine.host import detect_host
from tilewright.spec.functions import UnaryOp, meaning
from tilewright.tools.explore.facts import describe_machine, machine_title
from tilewright.tools.explore.systems import find_system

UNFUSED, TORCH, PLAIN = "unfused", "torch", "matmul alone"


@dataclass(frozen=True)
class Layer:
    """One layer, and the least ratios that are asked for (None: no matter)."""

    m: int
    k: int
    n: int
    activation: str | None
    least: dict[str, float]

    @property
    def title(self) -> str:
        """Sizes and steps."""
        return (
            f"{self.m}x{self.k}x{self.n} {'bias' if self.activation is None else f'bias,{self.activation}'}"
        )


TABLE = (
    Layer(512, 1024, 4096, "gelu", {TORCH: 2.0, UNFUSED: 1.15}),
    Layer(512, 1024, 4096, "relu", {}),
    Layer(512, 1024, 4096, None, {}),
    Layer(128, 512, 2048, "gelu", {}),
    Layer(512, 64, 4096, "relu", {}),
    Layer(8, 1024, 4096, "gelu", {}),
    Layer(1, 1024, 4096, "gelu", {}),
)


def torch_layer(layer: Layer, x: Any, w: Any, bias: Any, threads: int) -> Callable[[], Any] | None:
    """The layer in torch, eager; None where torch is missing."""
    try:
        find_system("torch")
    except PackageMissing as error:
        print(error)
        return None
    import torch
    from torch.nn import functional

    torch.set_num_threads(threads)
    functions = {"gelu": functional.gelu, "relu": torch.relu, None: lambda value: value}
    tensor, weight = torch.from_numpy(x), torch.from_numpy(np.ascontiguousarray(w.T))
    vector, apply = torch.from_numpy(bias), functions[layer.activation]

    def run() -> Any:
        with torch.no_grad():
            return apply(functional.linear(tensor, weight, vector)).numpy()

    return run


def systems(layer: Layer, x: Any, w: Any, bias: Any, threads: int) -> dict[str, Callable[[], Any]]:
    """The layer by name of what computes it; the first is the fused one."""
    out, rest, alone = (np.empty((layer.m, layer.n), np.float32) for _ in range(3))
    unary = None if layer.activation is None else tw.compile(tw.Unary(layer.activation)).native

    def fused() -> Any:
        return tw.matmul(x, w, out=out, bias=bias, activation=layer.activation)

    def unfused() -> Any:
        tw.matmul(x, w, out=rest)
        np.add(rest, bias, out=rest)
        if unary is not None:
            unary(rest.T, rest.T)  # a kernel of column-major matrices, in place
        return rest

    def plain() -> Any:
        return tw.matmul(x, w, out=alone)

    found = {"fused": fused, UNFUSED: unfused, PLAIN: plain}
    torch = torch_layer(layer, x, w, bias, threads)
    return found | ({} if torch is None else {TORCH: torch})


def seconds_of(run: Callable[[], Any], threads: int) -> float:
    """The time of one call: of a single thread, what other programs take does not count."""
    clock = time.thread_time if threads == 1 else time.perf_counter
    begin = clock()
    run()
    return clock() - begin


def measure(layer: Layer, repeat: int, threads: int) -> dict[str, float]:
    """The median time of a call of each system, in seconds."""
    generator = np.random.default_rng(0)
    shapes = ((layer.m, layer.k), (layer.k, layer.n), (layer.n,))
    x, w, bias = (generator.standard_normal(shape).astype(np.float32) for shape in shapes)
    w /= np.float32(np.sqrt(layer.k))
    found = systems(layer, x, w, bias, threads)
    exact = x.astype(np.float64) @ w.astype(np.float64) + bias
    if layer.activation is not None:
        exact = meaning(UnaryOp(layer.activation), exact)
    for name, run in found.items():
        if name != PLAIN:
            np.testing.assert_allclose(run(), exact, atol=1e-3, err_msg=name)
        run()
    times: dict[str, list[float]] = {name: [] for name in found}
    for _ in range(repeat):
        for name in random.sample(sorted(found), len(found)):
            times[name].append(seconds_of(found[name], threads))
    return {name: median(values) for name, values in times.items()}


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--only", default="", help="a part of the titles of the layers to measure")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    tw.set_num_threads(options.threads)
    title = machine_title(describe_machine(detect_host()))
    print(f"{title}, {options.threads} threads, {options.repeat} measurements")
    print(f"{'layer':<24} {'fused, ms':>10} {'ratio to':<14} {'asked':>6} {'measured':>9}")
    for layer in TABLE:
        if options.only not in layer.title:
            continue
        times = measure(layer, options.repeat, options.threads)
        fused = times.pop("fused")
        for name, seconds in times.items():
            least = layer.least.get(name)
            verdict = "" if least is None else "yes" if seconds / fused >= least else "no"
            asked, ratio = "" if least is None else f"{least:g}", seconds / fused
            print(f"{layer.title:<24} {1e3 * fused:>10.3f} {name:<14} {asked:>6} {ratio:>9.2f} {verdict}")


if __name__ == "__main__":
    main()
