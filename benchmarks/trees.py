"""Trees of contractions beside opt_einsum with PyTorch.

One thread, float32. Both sides contract in the same order, that of the tree or of opt_einsum; PyTorch also in
its own (`torch.einsum`), and the faster of its two counts. Systems run in turn in random order on the same
arrays, results are checked against float64 first; the table gives medians, the worst ratio and the geometric
mean of all. "einsum" is `tw.einsum` with the path, "compiled" what `tw.compile_einsum` returns, which keeps
the memory of what is made on the way. Run it with ``python benchmarks/trees.py`` on a quiet machine.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import opt_einsum
import torch

import tilewright as tw
from tilewright.machine.host import host_machine
from tilewright.tools.explore.rounds import median_seconds

#: Seconds of one measurement, filled by repeating short calls.
SECONDS = 5e-3
#: The largest difference from float64, as a share of the largest result.
TOLERANCE = 1e-4


class Tree(NamedTuple):
    """A network: subscripts, and the length of each label."""

    subscripts: str
    sizes: dict[str, int]

    @property
    def terms(self) -> list[str]:
        """The labels of each operand."""
        return self.subscripts.partition("->")[0].split(",")

    def operands(self) -> list[Any]:
        """Random operands, scaled so that sums stay around 1."""
        random = np.random.default_rng(0)
        return [
            (random.standard_normal([self.sizes[label] for label in term]) / 3).astype(np.float32)
            for term in self.terms
        ]


def grid(rows: int, columns: int, bond: int) -> Tree:
    """A projected entangled-pair state's norm after its layers are merged: a grid of bonds."""
    letters = iter("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    down = {(i, j): next(letters) for i in range(rows - 1) for j in range(columns)}
    right = {(i, j): next(letters) for i in range(rows) for j in range(columns - 1)}
    terms = [
        "".join(
            bonds[place]
            for bonds, place in (
                (down, (i - 1, j)),
                (right, (i, j - 1)),
                (down, (i, j)),
                (right, (i, j)),
            )
            if place in bonds
        )
        for i in range(rows)
        for j in range(columns)
    ]
    return Tree(f"{','.join(terms)}->", dict.fromkeys("".join(terms), bond))


TREES = {
    "tensor train": Tree(
        "ia,ajb,bkc,cld,dm->ijklm", {**dict.fromkeys("ijklm", 20), **dict.fromkeys("abcd", 32)}
    ),
    "tensor ring": Tree("aib,bjc,ckd,dla->ijkl", {**dict.fromkeys("ijkl", 40), **dict.fromkeys("abcd", 24)}),
    "fully connected": Tree(
        "aefg,behi,cfhj,dgij->abcd", {"a": 60, "b": 60, "c": 20, "d": 20, **dict.fromkeys("efghij", 8)}
    ),
    "linear attention": Tree(
        "bqd,dhe,bkf,fhe,bkg,ghv,hvo->bqo", {"b": 4, "h": 4, "e": 64, "v": 64, **dict.fromkeys("qkdfgo", 256)}
    ),
    "DMRG step": Tree(
        "awc,wsdx,xtuy,bye,astb->cdue",
        {**dict.fromkeys("abce", 128), **dict.fromkeys("wxy", 8), **dict.fromkeys("sdtu", 4)},
    ),
    "coupled cluster": Tree(
        "mnef,aeim,bfjn->abij", {**dict.fromkeys("mnij", 16), **dict.fromkeys("abef", 32)}
    ),
    "coupled cluster, ladders": Tree(
        "mnef,efij,abmn->abij", {**dict.fromkeys("mnij", 16), **dict.fromkeys("abef", 40)}
    ),
    "Tucker": Tree("abcd,ia,jb,kc,ld->ijkl", {**dict.fromkeys("abcd", 20), **dict.fromkeys("ijkl", 48)}),
    "PEPS 4x4": grid(4, 4, 12),
    "PEPS 5x5": grid(5, 5, 6),
}


def measure(name: str, tree: Tree, repeat: int) -> tuple[float, float]:
    """Prints a line; the ratios to the faster of PyTorch's."""
    arrays = tree.operands()
    tensors = [torch.from_numpy(array) for array in arrays]
    text, shapes = tree.subscripts, [array.shape for array in arrays]
    path, _ = opt_einsum.contract_path(text, *arrays, optimize="auto")
    expression = opt_einsum.contract_expression(text, *shapes, optimize=path)
    run = tw.compile_einsum(text, *arrays, optimize=path)
    calls: dict[str, Callable[[], Any]] = {
        "einsum": lambda: tw.einsum(text, *arrays, optimize=path),
        "compiled": lambda: run(*arrays),
        "opt_einsum": lambda: expression(*tensors),
        "torch": lambda: torch.einsum(text, *tensors),
    }
    exact = opt_einsum.contract(text, *(array.astype(np.float64) for array in arrays), optimize=path)
    scale = float(np.abs(exact).max())
    for call in calls.values():
        np.testing.assert_allclose(np.asarray(call()), exact, rtol=0, atol=TOLERANCE * scale)
    found = median_seconds(calls, repeat, SECONDS)
    peer = min(found["opt_einsum"], found["torch"])
    ratios = peer / found["einsum"], peer / found["compiled"]
    flops = run.explain().flops
    times = "".join(f"{found[system] * 1e3:11.3f}" for system in calls)
    print(
        f"{name:<26}{times}{ratios[0]:9.2f}{ratios[1]:9.2f}{flops / found['compiled'] / 1e9:9.1f}", flush=True
    )
    return ratios


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--only", default="", help="names that contain this")
    options = parser.parse_args()
    torch.set_num_threads(1)
    tw.set_num_threads(1)
    machine = host_machine()
    print(f"{machine.cpu}, row {machine.isa.name}, PyTorch {torch.__version__}, one thread, float32, ms")
    print(f"{'':<26}     einsum   compiled opt_einsum      torch   ratio  compiled  GFLOPS")
    found = [measure(name, tree, options.repeat) for name, tree in TREES.items() if options.only in name]
    for name, ratios in zip(("einsum", "compiled"), zip(*found, strict=True), strict=True):
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{name}: geometric mean {mean:.2f}, worst {min(ratios):.2f}")


if __name__ == "__main__":
    main()
