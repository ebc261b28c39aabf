"""24 tensor contractions beside NumPy and PyTorch, in the style of the TCCG benchmark.

Coupled cluster, mode products, integral transformations, tensor trains and rings: index orders as they come,
up to eight labels. One thread. Each system runs in a process of its own, all in turn in random order; results
are checked against float64 first, in random places. The table gives medians of the time, the ratio to each
peer, and the share of the multiply-add peak, measured among them, that the best order of pairs needs.
`numpy.einsum` has ``optimize=True``, PyTorch has opt_einsum where that is installed. Run it with
``python benchmarks/contractions.py`` on a quiet machine.

Source of the style: Springer, Bientinesi, Design of a High-Performance GEMM-like Tensor-Tensor Multiplication
(ACM Trans. Math. Softw. 44(3), 2018), whose benchmark TCCG is; the list is our own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable, Sequence
from math import prod
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np
import opt_einsum

import tilewright as tw
from tilewright.compiler.peak import measure_peak
from tilewright.machine.host import host_machine
from tilewright.spec.dtype import DTYPES
from tilewright.tools.explore.statistics import geometric_mean, median


class Case(NamedTuple):
    """Subscripts, the length of each label, the element type, and whether one product of matrices does it."""

    kind: str
    subscripts: str
    sizes: dict[str, int]
    dtype: str = "f32"


def sizes(**lengths: int) -> dict[str, int]:
    """Lengths of labels: ``sizes(ab=3, c=4)`` is ``{"a": 3, "b": 3, "c": 4}``."""
    return {label: length for labels, length in lengths.items() for label in labels}


CASES = (
    Case("coupled cluster", "adec,ebd->abc", sizes(abcde=72)),
    Case("coupled cluster", "aebf,dfce->abcd", sizes(abcd=40, ef=32)),
    Case("coupled cluster", "aebf,fdec->abcd", sizes(abcd=40, ef=32)),
    Case("coupled cluster", "aecf,bfde->abcd", sizes(abcd=40, ef=32)),
    Case("coupled cluster", "aefb,fdce->abcd", sizes(abcd=40, ef=32), "f64"),
    Case("coupled cluster", "mnef,efij->mnij", sizes(mnij=24, ef=48)),
    Case("coupled cluster", "imae,mbej->ijab", sizes(imj=20, abe=48)),
    Case("triples", "gdab,efgc->abcdef", sizes(adg=20, bcef=16)),
    Case("triples", "gfbc,dega->abcdef", sizes(adg=20, bcef=16), "f64"),
    Case("mode product", "bda,dc->abc", sizes(abd=300, c=24)),
    Case("mode product", "dca,bd->abc", sizes(abd=300, c=24)),
    Case("mode product", "dbea,ec->abcd", sizes(ae=72, bd=64, c=24)),
    Case("mode product", "efbad,cf->abcde", sizes(ae=32, bdf=24, c=24)),
    Case("mode product", "ecbfa,fd->abcde", sizes(ae=32, bcf=24, d=24)),
    Case("mode product", "eb,aecd->abcd", sizes(abcde=64), "f64"),
    Case("transformation", "pqrs,pi,qj,rk,sl->ijkl", sizes(pqrs=56, ijkl=32)),
    Case("transformation", "ijkl,ia,jb,kc,ld->abcd", sizes(ijkl=48, abcd=24)),
    Case("tensor train", "aib,bjc,ckd->aijkd", sizes(abcd=32, ijk=20)),
    Case("tensor train", "aijb,cjd->aicbd", sizes(ab=24, cd=64, ij=8)),
    Case("tensor train", "amb,asc->mbsc", sizes(abc=192, m=8, s=4), "f64"),
    Case("tensor ring", "aijc,cka->ijk", sizes(ac=32, ijk=64)),
    Case("shared index", "ijk,jr,kr->ir", sizes(ijk=160, r=32)),
    Case("shared index", "xpia,xqja->xpqij", sizes(x=16, pq=8, ij=40, a=64)),
    Case("shared index", "nkij,njlk->nkil", sizes(n=24, k=16, ijl=64)),
)

#: Elements of a result that are compared, and by how much they may differ, in float32's and float64's digits.
PLACES, TOLERANCES = 32, {"f32": 1e-4, "f64": 1e-10}

#: Seconds of one measurement, filled by repeating short calls.
SECONDS = 5e-3

TYPES = {"f32": np.float32, "f64": np.float64}


def operands(case: Case) -> list[Any]:
    """Random arrays, the same in every process."""
    random = np.random.default_rng(7)
    inputs = case.subscripts.split("->")[0].split(",")
    kind: Any = TYPES[case.dtype]
    return [random.random([case.sizes[label] for label in labels], dtype=kind) for labels in inputs]


def check(case: Case, arrays: Sequence[Any], found: Any) -> None:
    """Some elements of a result against float64: the contraction of the slices that they are made of."""
    inputs, output = case.subscripts.split("->")
    random = np.random.default_rng(8)
    assert found.shape == tuple(case.sizes[label] for label in output), found.shape
    for _ in range(PLACES):
        place = {label: int(random.integers(case.sizes[label])) for label in output}
        slices = [
            array[tuple(place.get(label, slice(None)) for label in labels)].astype(np.float64)
            for labels, array in zip(inputs.split(","), arrays, strict=True)
        ]
        rest = ",".join(
            "".join(label for label in labels if label not in place) for labels in inputs.split(",")
        )
        exact = np.einsum(f"{rest}->", *slices, optimize=True)
        np.testing.assert_allclose(
            found[tuple(place[label] for label in output)], exact, TOLERANCES[case.dtype]
        )


def system(name: str) -> Callable[[str, list[Any]], Callable[[], Any]]:
    """What makes the call of one system, with one thread."""
    if name == "torch":
        import torch

        torch.set_num_threads(1)

        def of_tensors(text: str, arrays: list[Any]) -> Callable[[], Any]:
            tensors = [torch.from_numpy(array) for array in arrays]
            return lambda: torch.einsum(text, *tensors)

        return of_tensors
    if name == "numpy":
        from threadpoolctl import threadpool_limits

        threadpool_limits(1)
        return lambda text, arrays: lambda: np.einsum(text, *arrays, optimize=True)
    tw.set_num_threads(1)
    return lambda text, arrays: lambda: tw.einsum(text, *arrays)


def serve(name: str, pipe: Connection) -> None:
    """The process of one system: prepares the case it is told, then measures it as often as it is told."""
    make = None if name == "peak" else system(name)
    call: Callable[[], Any]
    times = 1
    while (told := pipe.recv()) is not None:
        if isinstance(told, int):
            case = CASES[told]
            if make is None:
                dtype = DTYPES[case.dtype]
                call, times = (lambda dtype=dtype: measure_peak(dtype, host_machine(), SECONDS)), 0
            else:
                arrays = operands(case)
                call = make(case.subscripts, arrays)
                check(case, arrays, np.asarray(call()))
                begin = time.perf_counter()
                call()
                times = max(1, int(SECONDS / (time.perf_counter() - begin)))
            pipe.send(None)
        elif not times:
            pipe.send(call())
        else:
            begin = time.perf_counter()
            for _ in range(times):
                call()
            pipe.send((time.perf_counter() - begin) / times)


class Process:
    """A system in a process of its own."""

    def __init__(self, name: str) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=serve, args=(name, other), daemon=True)
        self.process.start()

    def ask(self, what: int | str) -> Any:
        """Prepares the case of a number, or measures it."""
        self.pipe.send(what)
        return self.pipe.recv()


def flops(case: Case) -> float:
    """Those of the best order of pairs."""
    shapes = [array.shape for array in operands(case)]
    if len(shapes) == 2:
        return 2.0 * prod(case.sizes.values())
    _, info = opt_einsum.contract_path(case.subscripts, *shapes, shapes=True, optimize="optimal")
    return float(info.opt_cost)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--only", default="", help="cases whose kind or subscripts hold this")
    options = parser.parse_args()
    names = ("tilewright", "numpy", "torch", "peak")
    systems = {name: Process(name) for name in names}
    random = np.random.default_rng(0)
    print(f"{host_machine().cpu}, one thread, medians of {options.repeat}")
    print(f"{'contraction':<42} {'ms':>8} {'GFLOPS':>7} {'peak':>5} {'numpy':>8} {'torch':>7}")
    ratios: dict[str, list[tuple[float, float]]] = {}
    for number, case in enumerate(CASES):
        if options.only not in f"{case.kind} {case.subscripts}":
            continue
        for name in names:
            systems[name].ask(number)
        found: dict[str, list[float]] = {name: [] for name in names}
        for _ in range(options.repeat):
            for name in random.permutation(names):
                found[name].append(systems[name].ask("measure"))
        ours, theirs, others, peak = (median(found[name]) for name in names)
        speed = flops(case) / ours / 1e9
        ratios.setdefault(case.kind, []).append((theirs / ours, others / ours))
        line = f"{case.subscripts:<38} {case.dtype} {ours * 1e3:8.2f} {speed:7.1f} {speed / peak:5.2f}"
        print(f"{line} {theirs / ours:8.2f} {others / ours:7.2f}", flush=True)
    for process in systems.values():
        process.pipe.send(None)
    for kind, pairs in ratios.items():
        means = [geometric_mean(part) for part in zip(*pairs, strict=True)]
        print(f"{kind:<42} {'geometric mean':>22} {means[0]:8.2f} {means[1]:7.2f}")
    every = [pair for pairs in ratios.values() for pair in pairs]
    means, worst = ([f(part) for part in zip(*every, strict=True)] for f in (geometric_mean, min))
    print(f"{'all':<42} {'geometric mean':>22} {means[0]:8.2f} {means[1]:7.2f}")
    print(f"{'all':<42} {'worst':>22} {worst[0]:8.2f} {worst[1]:7.2f}")


if __name__ == "__main__":
    main()
