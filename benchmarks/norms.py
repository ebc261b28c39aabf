"""Functions of rows and of single elements beside PyTorch and one pass over memory.

One thread. Systems run in turn in random order on the same arrays, results are checked against float64 first;
the table gives medians: of the time, of its ratio to PyTorch's, and of the share of a `memcpy` of the array,
which reads and writes as many bytes. Run it with ``python benchmarks/norms.py`` on a quiet machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from timeit import Timer
from typing import Any, NamedTuple

import numpy as np
import torch

import tilewright as tw
from tilewright.explore.statistics import median
from tilewright.machine.host import host_machine
from tilewright.runtime.bandwidth import MemoryProbe
from tilewright.spec.functions import UnaryOp, meaning
from tilewright.spec.row_function import RowFunction

#: Seconds of one measurement, filled by repeating short calls.
SECONDS = 2e-3
#: The largest difference from float64 of results around 1.
TOLERANCE = 1e-5

Call = Callable[[], Any]


class Case(NamedTuple):
    """One function: ours, PyTorch's and the exact one of an array."""

    ours: Callable[[Any, Any], Any]
    peer: Callable[[Any], Any]
    exact: Callable[[Any], Any]


def rows_of(op: str, axis: int = -1) -> Callable[[Any], Any]:
    """A function of rows in float64, along an axis."""
    eps = 1e-5 if op.endswith("norm") else 0.0
    return lambda x: np.moveaxis(RowFunction(op).reference(np.moveaxis(x, axis, -1), eps=eps), -1, axis)


def cases(columns: int) -> dict[str, Case]:
    """Every function that is measured; weights are 1 and biases 0."""
    one, zero = np.ones(columns, np.float32), np.zeros(columns, np.float32)
    weight, bias, shape = torch.from_numpy(one), torch.from_numpy(zero), (columns,)
    functional = torch.nn.functional
    found = {
        "softmax": Case(
            lambda x, y: tw.softmax(x, out=y), lambda x: torch.softmax(x, -1), rows_of("softmax")
        ),
        "softmax, axis 0": Case(
            lambda x, y: tw.softmax(x, 0, y), lambda x: torch.softmax(x, 0), rows_of("softmax", 0)
        ),
        "log_softmax": Case(
            lambda x, y: tw.log_softmax(x, out=y), lambda x: torch.log_softmax(x, -1), rows_of("log_softmax")
        ),
        "layer_norm": Case(
            lambda x, y: tw.layer_norm(x, one, zero, out=y),
            lambda x: functional.layer_norm(x, shape, weight, bias),
            rows_of("layer_norm"),
        ),
        "rms_norm": Case(
            lambda x, y: tw.rms_norm(x, one, eps=1e-5, out=y),
            lambda x: functional.rms_norm(x, shape, weight, 1e-5),
            rows_of("rms_norm"),
        ),
    }
    peers = {"relu": torch.relu, "gelu": functional.gelu, "silu": functional.silu, "tanh": torch.tanh}
    for name, peer in peers.items():
        ours = getattr(tw, name)
        found[name] = Case(
            lambda x, y, ours=ours: ours(x, out=y), peer, lambda x, name=name: meaning(UnaryOp(name), x)
        )
    return found


def compare(calls: dict[str, Call], repeat: int) -> dict[str, float]:
    """Median seconds of each call, measured in turn in random order."""
    random = np.random.default_rng(0)
    timers = {name: Timer(call) for name, call in calls.items()}
    times = {name: max(1, int(SECONDS / (timer.timeit(3) / 3))) for name, timer in timers.items()}
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeat):
        for name in random.permutation(list(calls)):
            found[name].append(timers[name].timeit(times[name]) / times[name])
    return {name: median(seconds) for name, seconds in found.items()}


def table(rows: int, columns: int, repeat: int) -> None:
    """One shape."""
    x = np.random.default_rng(0).standard_normal((rows, columns), dtype=np.float32)
    y, given = np.empty_like(x), torch.from_numpy(x)
    probe = MemoryProbe(host_machine(), x.nbytes)
    print(f"\n({rows}, {columns}) f32           tilewright     torch   ratio    copy   share")
    for name, case in cases(columns).items():
        np.testing.assert_allclose(case.ours(x, y), case.exact(x), atol=TOLERANCE, rtol=TOLERANCE)
        calls: dict[str, Call] = {
            "tilewright": lambda case=case: case.ours(x, y),
            "torch": lambda case=case: case.peer(given),
            "copy": probe.copy_seconds,
        }
        found = compare(calls, repeat)
        ours, theirs, copy = (found[system] for system in calls)
        line = f"{name:<26} {ours * 1e6:8.1f} us {theirs * 1e6:8.1f} {theirs / ours:7.2f}"
        print(f"{line} {copy * 1e6:7.1f} {copy / ours:7.2f}")


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--shapes", default="4096x1024,512x768,16x128")
    options = parser.parse_args()
    torch.set_num_threads(1)
    tw.set_num_threads(1)
    print(f"{host_machine().cpu}, row {host_machine().isa.name}, PyTorch {torch.__version__}, one thread")
    for shape in options.shapes.split(","):
        rows, columns = map(int, shape.split("x"))
        table(rows, columns, options.repeat)


if __name__ == "__main__":
    main()
