"""Functions of rows, reductions and functions of single elements beside PyTorch and one pass over memory.

One thread. Systems run in turn in random order on the same arrays, results are checked against float64
first; the table gives medians: of the time, of PyTorch's and the ratio to it, of the stream of memory and the
share of it. The stream is the same traffic without arithmetic: of functions the faster of `memcpy` and of a
copy past the caches, which read and write as many bytes, of reductions a read. Tables of small arrays show
what calls cost. Run it with ``python benchmarks/norms.py`` on a quiet machine; ``--dtypes bfloat16,float16``
measures others.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from timeit import Timer
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import torch

import tilewright as tw
from tilewright.machine.host import host_machine
from tilewright.ops.rows.problem import RowFunction
from tilewright.spec.functions import UnaryOp, meaning
from tilewright.tools.bench.bandwidth import MemoryProbe
from tilewright.tools.explore.statistics import geometric_mean, median

#: Seconds of one measurement, filled by repeating short calls.
SECONDS = 2e-3
#: The largest differences from float64, relative and of results around 1.
TOLERANCE = {"float32": 1e-5, "float64": 1e-12, "bfloat16": 1e-2, "float16": 2e-3}

Call = Callable[[], Any]


class Case(NamedTuple):
    """One function: ours, PyTorch's and the exact one of an array; whether it makes numbers of rows."""

    ours: Callable[[Any, Any], Any]
    peer: Callable[[Any], Any]
    exact: Callable[[Any], Any]
    reduces: bool = False


def rows_of(op: str, axis: int = -1) -> Callable[[Any], Any]:
    """A function of rows in float64, along an axis."""
    problem = RowFunction(op)
    eps = 1e-5 if problem.op.takes_eps else 0.0

    def exact(x: Any) -> Any:
        found = problem.reference(np.moveaxis(x, axis, -1), eps=eps)
        return found if problem.op.reduces else np.moveaxis(found, -1, axis)

    return exact


def norms(columns: int, dtype: Any) -> dict[str, Case]:
    """Softmax and the norms; weights are 1 and biases 0."""
    one, zero = np.ones(columns, dtype), np.zeros(columns, dtype)
    weight, bias, shape = as_torch(one), as_torch(zero), (columns,)
    functional = torch.nn.functional
    found = {
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
    peers: dict[str, Any] = {"softmax": torch.softmax, "log_softmax": torch.log_softmax}
    for name, peer in peers.items():
        ours = getattr(tw, name)
        for axis in (1, 0):
            found[f"{name}, axis {axis}"] = Case(
                lambda x, y, ours=ours, axis=axis: ours(x, axis, y),
                lambda x, peer=peer, axis=axis: peer(x, axis),
                rows_of(name, axis),
            )
    return found


def reductions() -> dict[str, Case]:
    """Numbers of rows and of columns."""
    found = {}
    for name, peer in {"sum": torch.sum, "mean": torch.mean, "max": torch.amax, "min": torch.amin}.items():
        ours = getattr(tw, name)
        for axis in (1, 0):
            found[f"{name}, axis {axis}"] = Case(
                lambda x, y, ours=ours, axis=axis: ours(x, axis),  # noqa: ARG005
                lambda x, peer=peer, axis=axis: peer(x, axis),
                rows_of(name, axis),
                reduces=True,
            )
    return found


def elements() -> dict[str, Case]:
    """Functions of single elements."""
    functional, found = torch.nn.functional, {}
    peers: dict[str, Any] = {
        "relu": torch.relu,
        "exp": torch.exp,
        "sigmoid": torch.sigmoid,
        "tanh": torch.tanh,
        "silu": functional.silu,
        "gelu": functional.gelu,
    }
    for name, peer in peers.items():
        ours = getattr(tw, name)
        found[name] = Case(
            lambda x, y, ours=ours: ours(x, out=y), peer, lambda x, name=name: meaning(UnaryOp(name), x)
        )
    found["gated"] = Case(
        lambda x, y: tw.gated(x, x, out=y),
        lambda x: functional.silu(x) * x,
        lambda x: x * meaning(UnaryOp.SILU, x),
    )
    return found


def as_torch(x: Any) -> Any:
    """A tensor on the memory of an array."""
    if x.dtype.name == "bfloat16":
        return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(x)


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


def streams(x: Any) -> dict[str, Call]:
    """Reading the array once, and the two ways to copy it."""
    probe = MemoryProbe(host_machine(), x.nbytes)
    words = x.reshape(-1).view(np.float32).reshape(-1, 1)
    copy, moved = tw.compile(tw.Unary("identity")), np.empty_like(words)
    return {
        "read": probe.read_seconds,
        "memcpy": probe.copy_seconds,
        "copy": lambda: copy(words, moved),
    }


def table(rows: int, columns: int, dtype: Any, repeat: int) -> list[float]:
    """One shape; the ratios to PyTorch."""
    x = np.random.default_rng(0).standard_normal((rows, columns), dtype=np.float32).astype(dtype)
    y, given, ratios = np.empty_like(x), as_torch(x), []
    print(f"\n({rows}, {columns}) {x.dtype.name:<11} tilewright     torch   ratio  stream   share")
    beside = streams(x)
    bound = TOLERANCE[x.dtype.name]
    for name, case in {**norms(columns, x.dtype), **reductions(), **elements()}.items():
        exact = case.exact(x.astype(np.float64))
        # Sums of n numbers around 1 are off by as much more as they are larger.
        scale = np.sqrt(x.size / exact.size) if case.reduces else 1.0
        found = np.asarray(case.ours(x, y)).astype(np.float64)
        np.testing.assert_allclose(found, exact, atol=bound * scale, rtol=bound)
        known = ("read",) if case.reduces else ("memcpy", "copy")
        calls: dict[str, Call] = {
            "tilewright": lambda case=case: case.ours(x, y),
            "torch": lambda case=case: case.peer(given),
            **{system: beside[system] for system in known},
        }
        seconds = compare(calls, repeat)
        ours, theirs = seconds["tilewright"], seconds["torch"]
        stream = min(seconds[system] for system in known)
        ratios.append(theirs / ours)
        line = f"{name:<26} {ours * 1e6:8.1f} us {theirs * 1e6:8.1f} {theirs / ours:7.2f}"
        print(f"{line} {stream * 1e6:7.1f} {stream / ours:7.2f}")
    return ratios


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--shapes", default="4096x1024,512x768,16x128")
    parser.add_argument("--dtypes", default="float32")
    options = parser.parse_args()
    torch.set_num_threads(1)
    tw.set_num_threads(1)
    print(f"{host_machine().cpu}, row {host_machine().isa.name}, PyTorch {torch.__version__}, one thread")
    ratios: list[float] = []
    for dtype in options.dtypes.split(","):
        for shape in options.shapes.split(","):
            rows, columns = map(int, shape.split("x"))
            kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
            ratios += table(rows, columns, kind, options.repeat)
    print(f"\nratio to torch: worst {min(ratios):.2f}, geometric mean {geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    main()
