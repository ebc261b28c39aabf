"""What a repeated call of each public function costs with tiny operands, beside the peer's own call.

Each row is a form of a function. Ours and the peer's (NumPy, SciPy or PyTorch where installed) take turns in
random order in one process, one thread each; the figures are the medians over rounds of a call's time in
microseconds. The peer of a call with operands of PyTorch or JAX is ours with NumPy arrays; the difference
takes the place of the ratio. "way" says whether a repeated call runs Python. Run it with
``python benchmarks/calls.py`` on a quiet machine; ``--rounds N`` repeats more, ``--only TEXT`` takes some
rows.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import random
import statistics
import sys
import timeit
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import tilewright as tw

#: Calls of one measurement, and measurements of each function.
CALLS, ROUNDS = 500, 15

RNG = np.random.default_rng(0)


def values(*shape: int, dtype: Any = "f4") -> Any:
    return RNG.standard_normal(shape).astype(dtype)


class Row(NamedTuple):
    """One form: its name, our call, the peer's name and call."""

    form: str
    ours: Callable[[], Any]
    peer: str = ""
    theirs: Callable[[], Any] | None = None


def optional(name: str) -> Any:
    """A module that may be missing."""
    with contextlib.suppress(ImportError):
        return __import__(name, fromlist=["_"])
    return None


def product_rows() -> Iterator[Row]:
    """Forms of `matmul` and of NumPy's other products."""
    a, b, bias = values(8, 8), values(8, 8), values(8)
    wide, out = b.astype("f8"), np.empty((8, 8), "f4")
    batch = values(2, 3, 8, 8), values(2, 3, 8, 8)
    yield Row("matmul", lambda: tw.matmul(a, b), "numpy", lambda: np.matmul(a, b))
    yield Row("matmul out=", lambda: tw.matmul(a, b, out=out), "numpy", lambda: np.matmul(a, b, out=out))
    yield Row("matmul alpha=", lambda: tw.matmul(a, b, alpha=2.0), "numpy", lambda: 2.0 * np.matmul(a, b))
    yield Row(
        "matmul dtype=", lambda: tw.matmul(a, b, dtype="f8"), "numpy", lambda: np.matmul(a, b, dtype="f8")
    )
    yield Row("matmul threads=", lambda: tw.matmul(a, b, threads=1), "numpy", lambda: np.matmul(a, b))
    yield Row("matmul f32, f64", lambda: tw.matmul(a, wide), "numpy", lambda: np.matmul(a, wide))
    yield Row("matmul 4-D", lambda: tw.matmul(*batch), "numpy", lambda: np.matmul(*batch))
    yield Row("matmul bias=", lambda: tw.matmul(a, b, bias=bias), "numpy", lambda: np.matmul(a, b) + bias)
    nested = a.tolist(), b.tolist()
    yield Row("matmul lists", lambda: tw.matmul(*nested), "numpy", lambda: np.matmul(*nested))
    for name in ("vecdot", "matvec", "vecmat", "inner", "kron", "tensordot"):
        theirs = getattr(np, name, None)
        ours = getattr(tw, name)
        first = a if name != "vecmat" else bias
        second = b if name in ("vecdot", "vecmat", "inner", "kron", "tensordot") else bias
        more = (1,) if name == "tensordot" else ()
        call = None if theirs is None else (lambda t=theirs, x=first, y=second, m=more: t(x, y, *m))
        yield Row(name, lambda o=ours, x=first, y=second, m=more: o(x, y, *m), "numpy", call)
    yield Row(
        "einsum ij,jk->ik",
        lambda: tw.einsum("ij,jk->ik", a, b),
        "numpy",
        lambda: np.einsum("ij,jk->ik", a, b),
    )
    three = values(8, 8)
    text = "ij,jk,kl->il"
    yield Row(
        "einsum of three", lambda: tw.einsum(text, a, b, three), "numpy", lambda: np.einsum(text, a, b, three)
    )
    cube = values(4, 5, 6)
    yield Row("transpose", lambda: tw.transpose(a), "numpy", a.T.copy)
    turn = (2, 0, 1)
    yield Row(
        "transpose 3-D",
        lambda: tw.transpose(cube, turn),
        "numpy",
        lambda: np.ascontiguousarray(np.transpose(cube, turn)),
    )
    blas = optional("scipy.linalg.blas")
    syrk = None if blas is None else (lambda: blas.ssyrk(1.0, a))
    trmm = None if blas is None else (lambda: blas.strmm(1.0, a, b))
    yield Row("syrk", lambda: tw.syrk(a), "scipy", syrk)
    yield Row("trmm", lambda: tw.trmm(a, b), "scipy", trmm)
    kernel = tw.compile(tw.Gemm())
    yield Row("kernel(a, b, c)", lambda: kernel(a, b, out), "numpy", lambda: np.matmul(a, b, out=out))
    yield Row("kernel.native", lambda: kernel.native(a, b, out), "numpy", lambda: np.matmul(a, b, out=out))


def layer_rows(torch: Any) -> Iterator[Row]:
    """Linear layers, attention and functions of rows, beside PyTorch."""
    x, weight, bias = values(8, 64), values(64, 64), values(64)
    cube, tx = values(2, 4, 64), None
    packed = tw.pack(weight.T)
    eight = tw.quantize_weights(weight.T)
    q, k, v = (values(1, 2, 8, 8) for _ in range(3))
    mask = RNG.random((8, 8)) > 0.3
    scale, shift = values(64), values(64)
    calls: dict[str, Callable[[], Any] | None] = {}
    if torch is not None:
        nn = torch.nn.functional
        tx, tw_, tb, tc = (torch.from_numpy(one) for one in (x, weight, bias, cube))
        tq, tk, tv = (torch.from_numpy(one) for one in (q, k, v))
        tm, ts, th = torch.from_numpy(mask), torch.from_numpy(scale), torch.from_numpy(shift)
        dot = nn.scaled_dot_product_attention
        calls = {
            "linear": lambda: nn.linear(tx, tw_, tb),
            "gelu": lambda: nn.gelu(nn.linear(tc, tw_, tb)),
            "attention": lambda: dot(tq, tk, tv),
            "causal": lambda: dot(tq, tk, tv, is_causal=True),
            "mask": lambda: dot(tq, tk, tv, attn_mask=tm),
            "softmax": lambda: nn.softmax(tx, -1),
            "layer_norm": lambda: nn.layer_norm(tx, (64,), ts, th),
            "rms_norm": lambda: nn.rms_norm(tx, (64,), ts),
            "gelu_alone": lambda: nn.gelu(tx),
            "sum": lambda: tx.sum(-1),
        }
    peer = calls.get
    yield Row("linear, bias", lambda: tw.linear(x, weight, bias), "torch", peer("linear"))
    yield Row(
        "linear packed, 3-D, gelu", lambda: tw.linear(cube, packed, bias, "gelu"), "torch", peer("gelu")
    )
    yield Row("linear int8 weights", lambda: tw.linear(x, eight, bias), "torch", peer("linear"))
    yield Row("attention", lambda: tw.attention(q, k, v), "torch", peer("attention"))
    yield Row("attention causal", lambda: tw.attention(q, k, v, causal=True), "torch", peer("causal"))
    yield Row("attention mask", lambda: tw.attention(q, k, v, mask=mask), "torch", peer("mask"))
    yield Row("attention lse", lambda: tw.attention(q, k, v, return_lse=True))
    out, lse = tw.attention(q, k, v, return_lse=True)
    yield Row("attention_backward", lambda: tw.attention_backward(q, q, k, v, out, lse))
    yield Row("softmax", lambda: tw.softmax(x), "torch", peer("softmax"))
    yield Row("layer_norm(x, w, b)", lambda: tw.layer_norm(x, scale, shift), "torch", peer("layer_norm"))
    yield Row("rms_norm(x, w)", lambda: tw.rms_norm(x, scale), "torch", peer("rms_norm"))
    yield Row("gelu", lambda: tw.gelu(x), "torch", peer("gelu_alone"))


def tensor_rows(*libraries: Any) -> Iterator[Row]:
    """Operands of other libraries, beside the same call of ours on NumPy arrays."""
    x, weight, bias, q = values(8, 64), values(64, 64), values(64), values(1, 2, 8, 8)
    packed, out = tw.pack(weight.T), np.empty((8, 64), "f4")
    calls: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "matmul": (tw.matmul, (x, weight)),
        "linear": (tw.linear, (x, weight, bias)),
        "linear packed": (lambda x, bias: tw.linear(x, packed, bias), (x, bias)),
        "out=": (lambda x, w, out: tw.matmul(x, w, out=out), (x, weight, out)),
        "attention": (tw.attention, (q, q, q)),
        "layer_norm": (tw.layer_norm, (x, bias, bias)),
        "sum": (tw.sum, (x,)),
        "einsum": (lambda x, w: tw.einsum("ij,jk->ik", x, w), (x, weight)),
    }
    for library in libraries:
        if library is None:
            continue
        name = library.__name__.partition(".")[0]
        made = library.asarray
        for form, (function, arrays) in calls.items():
            if form == "out=" and name == "jax":
                continue  # JAX's arrays are not written
            tensors = [made(array) for array in arrays]
            yield Row(
                f"{name}: {form}",
                lambda f=function, t=tensors: f(*t),  # type: ignore[misc]
                "arrays",
                lambda f=function, a=arrays: f(*a),  # type: ignore[misc]
            )


def runs_python(call: Callable[[], Any]) -> bool:
    """Whether a repeated call runs a line of this package."""
    seen = False

    def trace(frame: Any, *_: Any) -> Any:
        nonlocal seen
        seen = seen or (
            "tilewright" in frame.f_code.co_filename and "benchmarks" not in frame.f_code.co_filename
        )
        return trace

    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(None)
    return seen


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", default="", help="rows whose names have this text")
    options = parser.parse_args()
    tw.set_num_threads(1)
    threadpoolctl = optional("threadpoolctl")
    torch, jax = optional("torch"), optional("jax.numpy")
    if torch is not None:
        torch.set_num_threads(1)
    limits = contextlib.nullcontext() if threadpoolctl is None else threadpoolctl.threadpool_limits(1)
    with limits:
        rows = [
            row
            for row in (*product_rows(), *layer_rows(torch), *tensor_rows(torch, jax))
            if options.only in row.form
        ]
        times: dict[tuple[str, bool], list[float]] = {}
        jobs = [(row, own) for row in rows for own in (True, False) if own or row.theirs is not None]
        for row, own in jobs:
            for _ in range(3):
                (row.ours if own else row.theirs)()  # type: ignore[misc]
        for _ in range(options.rounds):
            random.shuffle(jobs)
            for row, own in jobs:
                call = row.ours if own else row.theirs
                assert call is not None
                taken = timeit.timeit(call, number=CALLS) / CALLS * 1e6
                times.setdefault((row.form, own), []).append(taken)
    version = "missing" if torch is None else torch.__version__
    print(f"NumPy {np.__version__}, PyTorch {version}; microseconds a call")
    print(f"{'form':<26} {'ours':>8} {'peer':>8} {'ratio':>7}  way")
    ratios = []
    for row in rows:
        ours = statistics.median(times[row.form, True])
        way = "Python" if runs_python(row.ours) else "machine code"
        peer, ratio = "", ""
        if row.theirs is not None:
            theirs = statistics.median(times[row.form, False])
            if row.peer == "arrays":
                peer, ratio = f"{theirs:.2f}", f"{ours - theirs:+.2f} us"
            else:
                ratios.append(theirs / ours)
                peer, ratio = f"{theirs:.2f}", f"{theirs / ours:.2f}"
        print(f"{row.form:<26} {ours:>8.2f} {peer:>8} {ratio:>7}  {way}{'' if row.theirs else ', no peer'}")
    if ratios:
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        print(f"ratio to the peer: geometric mean {mean:.2f}, worst {min(ratios):.2f}")


if __name__ == "__main__":
    main()
