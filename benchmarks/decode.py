"""Decoding: few rows against a weight of 4096x4096, beside the time that reading its bytes takes.

A model decodes by reading one weight after the other, so that none is in a cache when its turn comes. Here as
many copies of one weight take turns as together exceed the last cache four times over ("memory"); beside them
one weight again and again, of which the last cache keeps what it can ("again"). Reading is measured between
the products, over as many bytes, by as many threads (`bench/bandwidth.py`). A share of 1 is the speed of
reading. PyTorch joins where it is installed. Run it with ``python benchmarks/decode.py`` on a quiet machine.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import sys
import time
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

import tilewright as tw
from tilewright.machine.host import host_machine
from tilewright.tools.bench.bandwidth import SharedProbe
from tilewright.tools.explore.statistics import median

SIZE = 4096
ROWS = (1, 2, 4, 8)
#: Times the last cache that weights in memory take together.
CACHES = 4
#: What is asked of one row (docs/decisions/020-weights-in-words.md).
ASKED = {"f32": 0.85, "i8": 0.75, "i4 group 128": 0.6}

Forms = dict[str, Callable[[np.ndarray[Any, Any]], Any]]
FORMS: Forms = {
    "f32": tw.pack,
    "bf16": lambda w: tw.pack(w, form="bf16"),
    "f16": lambda w: tw.pack(w, form="f16"),
    "i8": tw.quantize_weights,
    "i8 group 128": lambda w: tw.quantize_weights(w, group=128),
    "i4 group 128": lambda w: tw.quantize_weights(w, bits=4, group=128),
    "i4 group 32": lambda w: tw.quantize_weights(w, bits=4, group=32),
}


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    """Random numbers in float32."""
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


def in_turn(calls: list[Callable[[], object]], reader: SharedProbe, repeat: int) -> tuple[float, float]:
    """Median seconds of one round of the calls, and of reading, measured in turn."""
    rounds, reads = [], []
    for number in range(repeat + 1):
        begin = time.perf_counter()
        for call in calls:
            call()
        rounds.append(time.perf_counter() - begin)
        reads.append(reader.read_seconds())
        if not number:  # the first round warms up
            rounds.clear(), reads.clear()
    return median(rounds), median(reads)


def decode(options: argparse.Namespace) -> None:
    """The table of shares of the bandwidth."""
    machine, w = host_machine(), numbers(SIZE, SIZE)
    last = (machine.l3 or machine.l2).size
    say(f"{'weight':14}{'':8}" + "".join(f"{f'm = {m}':>9}" for m in ROWS) + f"{'GB/s read':>11}{'asked':>7}")
    for name, make in FORMS.items():
        packed = make(w)
        copies = max(1, -(-CACHES * last // packed.nbytes))
        for place, weights in (
            ("memory", [packed, *(packed.copy() for _ in range(copies - 1))]),
            ("again", [packed]),
        ):
            total = sum(one.nbytes for one in weights)
            reader, shares, speeds = SharedProbe(host_machine(), total, options.threads), [], []
            for m in ROWS:
                x = numbers(m, SIZE)
                calls = [lambda x=x, one=one: tw.matmul(x, one) for one in weights]  # type: ignore[misc]
                taken, read = in_turn(calls, reader, options.repeat)
                shares.append(read / taken)
                speeds.append(total / read / 1e9)
            asked = f"{ASKED[name]:7.2f}" if name in ASKED and place == "memory" else ""
            say(
                f"{name:14}{place:8}"
                + "".join(f"{share:9.2f}" for share in shares)
                + f"{median(speeds):11.0f}{asked}"
            )


def against_torch(options: argparse.Namespace) -> None:
    """Ratios of PyTorch's time of the same layer in float32 and bfloat16 to ours in each form."""
    import torch

    torch.set_num_threads(options.threads)
    w = numbers(SIZE, SIZE)
    last = (host_machine().l3 or host_machine().l2).size
    say("\ntime of torch.nn.functional.linear / ours, weights in memory")
    say(f"{'weight':14}{'torch':8}" + "".join(f"{f'm = {m}':>9}" for m in ROWS))
    for name, kind in (
        ("f32", torch.float32),
        ("bf16", torch.bfloat16),
        ("i8", torch.bfloat16),
        ("i4 group 128", torch.bfloat16),
    ):
        packed = FORMS[name](w)
        theirs = torch.from_numpy(w.T.copy()).to(kind)
        count = [max(1, -(-CACHES * last // size)) for size in (packed.nbytes, theirs.nbytes)]
        ours = itertools.cycle([packed, *(packed.copy() for _ in range(count[0] - 1))])
        others = itertools.cycle([theirs, *(theirs.clone() for _ in range(count[1] - 1))])
        ratios = []
        for m in ROWS:
            x = numbers(m, SIZE)
            x_torch = torch.from_numpy(x).to(kind)
            x_ours = x if kind is torch.float32 else x.astype(ml_dtypes.bfloat16)
            seconds: dict[str, list[float]] = {"ours": [], "torch": []}
            for _ in range(options.repeat * 4):
                for who, call in (
                    ("ours", lambda: tw.matmul(x_ours, next(ours))),  # noqa: B023
                    ("torch", lambda: torch.nn.functional.linear(x_torch, next(others))),  # noqa: B023
                ):
                    begin = time.perf_counter()
                    call()
                    seconds[who].append(time.perf_counter() - begin)
            ratios.append(median(seconds["torch"]) / median(seconds["ours"]))
        say(f"{name:14}{str(kind).removeprefix('torch.'):8}" + "".join(f"{ratio:9.2f}" for ratio in ratios))


def say(text: str) -> None:
    """One line of output."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=10)
    options = parser.parse_args()
    tw.set_num_threads(options.threads)
    decode(options)
    if importlib.util.find_spec("torch"):
        against_torch(options)


if __name__ == "__main__":
    main()
