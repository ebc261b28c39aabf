"""Decoding: one or few queries against long caches of keys and values, beside the time of reading them.

As many caches take turns as together exceed the last cache of the processor four times over, as a model's
layers do. Reading is measured between the calls, over as many bytes (`tools/bench/bandwidth.py`): 1 is
its speed. PyTorch joins where it is installed, in the faster of its ways. Run it with
``python benchmarks/attention_decode.py`` on a quiet machine; `benchmarks/attention.py` has what is asked of
decoding among what is asked of attention.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import tilewright as tw
from tilewright.machine.host import host_machine
from tilewright.tools.bench.bandwidth import MemoryProbe
from tilewright.tools.explore.statistics import median

#: Times the last cache that the caches of keys and values take together.
CACHES = 4
HEAD = 128


class Case(NamedTuple):
    """What is decoded: heads of keys, queries for each of them, and how they stand."""

    name: str
    dtype: Any
    kv_dtype: Any
    keys: int
    group: int = 4
    queries: int = 1
    kv_heads: int = 8
    layout: str = "bhsd"


BF16 = ml_dtypes.bfloat16
CASES = (
    Case("bf16", BF16, BF16, 4096),
    Case("bf16", BF16, BF16, 32768),
    Case("bf16, bshd", BF16, BF16, 4096, layout="bshd"),
    Case("bf16, group 1", BF16, BF16, 4096, group=1),
    Case("bf16, group 8", BF16, BF16, 4096, group=8),
    Case("bf16, 4 queries", BF16, BF16, 4096, queries=4),
    Case("f32", np.float32, np.float32, 4096),
    Case("f16", np.float16, np.float16, 4096),
    Case("i8 and scales", BF16, np.int8, 4096),
)


def operands(case: Case, seed: int) -> tuple[Any, ...]:
    """Normal queries, keys and values of a layer."""
    random = np.random.default_rng(seed)
    q = random.standard_normal((1, case.kv_heads * case.group, case.queries, HEAD), np.float32)
    found = [q.astype(case.dtype)]
    for _ in "kv":
        numbers = random.standard_normal((1, case.kv_heads, case.keys, HEAD), np.float32)
        whole = np.round(numbers * 30).clip(-127, 127) if case.kv_dtype is np.int8 else numbers
        found.append(whole.astype(case.kv_dtype))
    if case.layout == "bhsd":
        return tuple(found)
    return tuple(np.ascontiguousarray(array.swapaxes(1, 2)) for array in found)


def seconds(calls: Sequence[Callable[[], Any]]) -> float:
    """Of a round of calls."""
    begin = time.perf_counter()
    for call in calls:
        call()
    return time.perf_counter() - begin


def torch_ways(arrays: Sequence[Any]) -> dict[str, Callable[[], Any]]:
    """Heads of a group share keys by name, or are queries of one head."""
    import torch

    torch.set_grad_enabled(False)

    def tensor(array: Any) -> Any:
        if array.dtype != BF16:
            return torch.from_numpy(array)
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)

    q, k, v = map(tensor, arrays)
    attend = torch.nn.functional.scaled_dot_product_attention
    rows = q.reshape(1, k.shape[1], -1, HEAD)
    return {
        "gqa": lambda: attend(q, k, v, enable_gqa=True),
        "rows": lambda: attend(rows, k, v),
    }


def measure(case: Case, options: argparse.Namespace) -> None:
    """One line of the table."""
    machine = host_machine()
    one = 2 * case.kv_heads * case.keys * HEAD * np.dtype(case.kv_dtype).itemsize
    last = (machine.l3 or machine.l2).size
    layers = [operands(case, seed) for seed in range(max(1, -(-CACHES * last // one)))]
    scales = {"key_scales": 1 / 30, "value_scales": 1 / 30} if case.kv_dtype is np.int8 else {}
    keywords: dict[str, Any] = {"layout": case.layout, **scales}
    ways: dict[str, list[Callable[[], Any]]] = {
        "tilewright": [lambda layer=layer: tw.attention(*layer, **keywords) for layer in layers]  # type: ignore[misc]
    }
    if importlib.util.find_spec("torch") and case.layout == "bhsd" and not scales:
        for layer in layers:
            for name, call in torch_ways(layer).items():
                ways.setdefault(name, []).append(call)
    probe = MemoryProbe(machine, one * len(layers))
    taken: dict[str, list[float]] = {name: [] for name in (*ways, "read")}
    for turn in range(options.repeat + 1):
        for name, times in taken.items():
            found = probe.read_seconds() if name == "read" else seconds(ways[name])
            if turn:  # the first round warms up
                times.append(found)
    times_of = {name: median(values) for name, values in taken.items()}
    ours, read = times_of["tilewright"], times_of["read"]
    theirs = [times_of[name] for name in ("gqa", "rows") if name in times_of]
    ratio = f"{min(theirs) / ours:9.1f}" if theirs else f"{'':9}"
    speed = one * len(layers) / read / 1e9
    tail = f"{read / ours:8.2f}{ratio}{speed:11.0f}{ours / len(layers) * 1e6:10.0f}"
    say(f"{case.name:18}{case.keys:8}{tail}")


def say(text: str) -> None:
    """One line of output."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repeat", type=int, default=10)
    options = parser.parse_args()
    tw.set_num_threads(1)
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(1)
    say(f"{'8 heads of 128':18}{'keys':>8}{'share':>8}{'torch':>9}{'GB/s read':>11}{'us':>10}")
    for case in CASES:
        measure(case, options)


if __name__ == "__main__":
    main()
