"""What a repeated call of each public function costs with tiny operands, beside the peer's own call.

Each row is a form of a function. Ours and the peer's (NumPy, SciPy or PyTorch where installed) take turns in
random order in one process, one thread each; the figures are the medians over rounds of a call's time in
microseconds. The peer of a call with operands of PyTorch or JAX is ours with NumPy arrays; the difference
takes the place of the ratio. "around" is what is left without the functions of machine code and of NumPy that
the call runs, which are timed alone. "way" says whether a repeated call runs Python. Run it with
``python benchmarks/calls.py`` on a quiet machine; ``--rounds N`` repeats more, ``--only TEXT`` takes some
rows. ``--first`` measures first calls of new shapes instead: see `first_calls.py`.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import math
import random
import statistics
import sys
import time
import timeit
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar, NamedTuple

import first_calls
import numpy as np

import tilewright as tw
from tilewright.calls import repeated
from tilewright.calls.recipes.recording import Recording
from tilewright.calls.recipes.thunks import thunk_of, word_of
from tilewright.llvm.build import Callee, Module
from tilewright.llvm.jit import Linked
from tilewright.llvm.target import data_layout, emit_object
from tilewright.llvm.values import INT64, POINTER, VOID, int64
from tilewright.machine.host import host_machine

#: Calls of one measurement, and measurements of each function.
CALLS, ROUNDS = 500, 15
#: How often a function of machine code runs when it is timed alone, and the measurements of it.
ALONE, TRIES = 2000, 5

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


def product_rows(torch: Any) -> Iterator[Row]:
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
    three = values(8, 8)
    texts = {
        "ij,jk->ik": (a, b),
        "ij,jk,kl->il": (a, b, three),
        "ij,ij->i": (a, b),
        "ij->ji": (a,),
        "ii": (a,),
    }
    for text, arrays in texts.items():
        ours = lambda t=text, x=arrays: tw.einsum(t, *x)  # noqa: E731
        yield Row(f"einsum {text}", ours, "numpy", lambda t=text, x=arrays: np.einsum(t, *x))
        if torch is not None:
            tensors = tuple(map(torch.from_numpy, arrays))
            call = lambda t=text, x=tensors: torch.einsum(t, *x)  # noqa: E731
            yield Row(f"einsum {text} (torch)", ours, "torch", call)
    compiled = tw.compile_einsum("ij,jk,kl->il", a, b, three)
    text = "ij,jk,kl->il"
    yield Row("compile_einsum", lambda: compiled(a, b, three), "numpy", lambda: np.einsum(text, a, b, three))
    cube = values(4, 5, 6)
    yield Row("transpose", lambda: tw.transpose(a), "numpy", lambda: np.transpose(a).copy())
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


def other_rows() -> Iterator[Row]:
    """Operands of other types, results in other places, and reductions."""
    a, b, out = values(8, 8), values(8, 8), values(8, 8)
    narrow, wide = values(8, 8, dtype="f2"), (values(8, 8, dtype="f8"), values(8, 8, dtype="f8"))
    truths, more = a > 0, b > 0
    first, second = ((a + 1j * b).astype("c8") for _ in range(2))
    whole = RNG.integers(0, 9, (8, 8))
    bytes_, signed = whole.astype("u1"), whole.astype("i1")
    np_matmul = np.matmul
    yield Row("matmul bool", lambda: tw.matmul(truths, more), "numpy", lambda: np_matmul(truths, more))
    yield Row("matmul int64", lambda: tw.matmul(whole, whole), "numpy", lambda: np_matmul(whole, whole))
    yield Row(
        "matmul complex alpha=",
        lambda: tw.matmul(first, second, alpha=2j),
        "numpy",
        lambda: np.complex64(2j) * np_matmul(first, second),
    )
    yield Row(
        "matmul f64, out f32",
        lambda: tw.matmul(*wide, out),
        "numpy",
        lambda: np_matmul(*wide, out=out, casting="same_kind"),
    )
    yield Row("matmul strided", lambda: tw.matmul(a[::-1], b.T), "numpy", lambda: np_matmul(a[::-1], b.T))
    yield Row(
        "matmul_integer",
        lambda: tw.matmul_integer(bytes_, signed, 3, 1),
        "numpy",
        lambda: np_matmul(bytes_.astype("i4") - 3, signed.astype("i4") - 1),
    )
    yield Row(
        "exp, out f16",
        lambda: tw.exp(a, out=narrow),
        "numpy",
        lambda: np.exp(a, out=narrow, casting="same_kind"),
    )
    for name in ("exp", "tanh", "relu"):
        theirs = getattr(np, name, lambda x: np.maximum(x, 0))
        ours = getattr(tw, name)
        yield Row(name, lambda f=ours: f(a), "numpy", lambda f=theirs: f(a))
    for name in ("sum", "mean", "max", "min"):
        ours, theirs = getattr(tw, name), getattr(np, name)
        yield Row(name, lambda f=ours: f(a, 1), "numpy", lambda f=theirs: f(a, 1))
        yield Row(f"{name} int64", lambda f=ours: f(whole, 1), "numpy", lambda f=theirs: f(whole, 1))
    tiles = values(2, 2, 8, 4), values(3, 2, 8, 4)
    yield Row("mmt4d", lambda: tw.mmt4d(*tiles), "numpy", lambda: np.einsum("mkij,nkhj->mnih", *tiles))
    blas = optional("scipy.linalg.blas")
    syr2k = None if blas is None else (lambda: blas.ssyr2k(1.0, a, b))
    yield Row("syr2k", lambda: tw.syr2k(a, b), "scipy", syr2k)
    yield Row("kron of vectors", lambda: tw.kron(a[0], b[0]), "numpy", lambda: np.kron(a[0], b[0]))


def layer_rows(torch: Any) -> Iterator[Row]:
    """Linear layers, attention and functions of rows, beside PyTorch."""
    x, weight, bias, cube = values(8, 64), values(64, 64), values(64), values(2, 4, 64)
    q, k, v = (values(1, 2, 8, 8) for _ in range(3))
    mask = RNG.random((8, 8)) > 0.3
    scale, shift = values(64), values(64)
    (cos, sin), places = tw.rotary_tables(32, 8), np.arange(8)[np.newaxis]
    calls: dict[str, Callable[[], Any] | None] = {}
    if torch is not None:
        nn = torch.nn.functional
        tx, tw_, tb, tc = (torch.from_numpy(one) for one in (x, weight, bias, cube))
        tq, tk, tv = (torch.from_numpy(one) for one in (q, k, v))
        tm, ts, th = torch.from_numpy(mask), torch.from_numpy(scale), torch.from_numpy(shift)
        visible = torch.arange(8)[None, :] < 6
        dot = nn.scaled_dot_product_attention
        leaves = [one.clone().requires_grad_() for one in (tq, tk, tv)]
        result = dot(*leaves)

        def backward() -> Any:
            return torch.autograd.grad(result, leaves, tq, retain_graph=True)

        tcaches = [torch.zeros((1, 2, 64, 8)) for _ in range(2)]
        tpositions = torch.arange(6, 14)

        def append() -> Any:
            for cache, rows in zip(tcaches, (tk, tv), strict=True):
                cache.index_copy_(2, tpositions, rows)

        tcos, tsin, tplaces = (torch.from_numpy(one) for one in (cos, sin, places))

        def rotate() -> Any:
            c, s = (torch.cat((one[tplaces],) * 2, -1)[:, None] for one in (tcos, tsin))
            first, second = tq.chunk(2, -1)
            return tq * c + torch.cat((-second, first), -1) * s

        calls = {
            "linear": lambda: nn.linear(tx, tw_, tb),
            "plain": lambda: nn.linear(tx, tw_),
            "gelu": lambda: nn.gelu(nn.linear(tc, tw_, tb)),
            "attention": lambda: dot(tq, tk, tv),
            "causal": lambda: dot(tq, tk, tv, is_causal=True),
            "mask": lambda: dot(tq, tk, tv, attn_mask=tm),
            "append": append,
            "lengths": lambda: dot(tq, tk, tv, attn_mask=visible),
            "backward": backward,
            "softmax": lambda: nn.softmax(tx, -1),
            "log_softmax": lambda: nn.log_softmax(tx, -1),
            "layer_norm": lambda: nn.layer_norm(tx, (64,), ts, th),
            "norm": lambda: nn.layer_norm(tx, (64,)),
            "stats": lambda: torch.native_layer_norm(tx, (64,), ts, th, 1e-5),
            "rms_norm": lambda: nn.rms_norm(tx, (64,), ts),
            "gelu_alone": lambda: nn.gelu(tx),
            "silu": lambda: nn.silu(tx),
            "gated": lambda: nn.silu(tx) * tx,
            "rotary": rotate,
            "embedding": lambda: nn.embedding(tplaces, tx),
        }
    peer = calls.get
    turned = weight.T
    weights = {
        "array": weight,
        "packed": tw.pack(turned),
        "int8": tw.quantize_weights(turned),
        "int8 with zeros": tw.quantize_weights(turned, symmetric=False),
        "int8 in groups": tw.quantize_weights(turned, group=32),
        "int4": tw.quantize_weights(turned, bits=4, group=32),
    }
    for name, one in weights.items():
        yield Row(f"linear {name}", lambda w=one: tw.linear(x, w), "torch", peer("plain"))
        yield Row(f"linear {name}, bias", lambda w=one: tw.linear(x, w, bias), "torch", peer("linear"))
        yield Row(
            f"linear {name}, 3-D, gelu", lambda w=one: tw.linear(cube, w, bias, "gelu"), "torch", peer("gelu")
        )
    rows = tw.quantize_rows(x)
    yield Row(
        "linear int8, int8 rows", lambda: tw.linear(rows, weights["int8"], bias), "torch", peer("linear")
    )
    yield Row("quantize_rows", lambda: tw.quantize_rows(x))
    lengths, offsets = np.array([6]), np.array([0, 3, 8])
    packed = values(2, 8, 8)
    yield Row("attention", lambda: tw.attention(q, k, v), "torch", peer("attention"))
    yield Row("attention causal", lambda: tw.attention(q, k, v, causal=True), "torch", peer("causal"))
    yield Row("attention mask", lambda: tw.attention(q, k, v, mask=mask), "torch", peer("mask"))
    yield Row(
        "attention kv_lengths", lambda: tw.attention(q, k, v, kv_lengths=lengths), "torch", peer("lengths")
    )
    yield Row("attention packed", lambda: tw.attention(packed, packed, packed, cu_seqlens_q=offsets))
    caches = [np.zeros((1, 2, 64, 8), "f4") for _ in range(2)]
    paged = [np.zeros((16, 2, 8, 8), "f4") for _ in range(2)]
    table, far = np.arange(8)[np.newaxis], [np.zeros((1, 2, 64, 8), "i1") for _ in range(2)]
    scales = dict(zip(("key_scales", "value_scales"), np.ones((2, 1, 2, 64), "f4"), strict=True))
    yield Row("append_kv", lambda: tw.append_kv(*caches, k, v, lengths), "torch", peer("append"))
    yield Row("append_kv paged", lambda: tw.append_kv(*paged, k, v, lengths, block_table=table))
    yield Row("append_kv int8, scales", lambda: tw.append_kv(*far, k, v, lengths, **scales))
    yield Row("attention lse", lambda: tw.attention(q, k, v, return_lse=True), "torch", peer("attention"))
    out, lse = tw.attention(q, k, v, return_lse=True)
    yield Row(
        "attention_backward", lambda: tw.attention_backward(q, q, k, v, out, lse), "torch", peer("backward")
    )
    yield Row("softmax", lambda: tw.softmax(x), "torch", peer("softmax"))
    yield Row("log_softmax", lambda: tw.log_softmax(x), "torch", peer("log_softmax"))
    yield Row("layer_norm(x)", lambda: tw.layer_norm(x), "torch", peer("norm"))
    yield Row("layer_norm(x, w, b)", lambda: tw.layer_norm(x, scale, shift), "torch", peer("layer_norm"))
    yield Row(
        "layer_norm return_stats",
        lambda: tw.layer_norm(x, scale, shift, return_stats=True),
        "torch",
        peer("stats"),
    )
    yield Row("rms_norm(x, w)", lambda: tw.rms_norm(x, scale), "torch", peer("rms_norm"))
    yield Row("gelu", lambda: tw.gelu(x), "torch", peer("gelu_alone"))
    yield Row("silu", lambda: tw.silu(x), "torch", peer("silu"))
    yield Row("gated", lambda: tw.gated(x, x), "torch", peer("gated"))
    yield Row("embedding", lambda: tw.embedding(x, places), "torch", peer("embedding"))
    yield Row("rotary", lambda: tw.rotary(q, cos, sin, places), "torch", peer("rotary"))


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


class Kept(Recording):
    """A recording that keeps the functions of a call with their arguments, to run them again."""

    all: ClassVar[list[Kept]] = []

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.functions: list[tuple[Any, tuple[Any, ...]]] = []
        self.of_numpy: list[Callable[[], Any]] = []
        Kept.all.append(self)

    def refuse(self, reason: str) -> None:
        """Goes on: also of calls that are repeated elsewhere the functions are of interest."""
        self.reason = self.reason or reason

    def called(self, function: Any, arguments: tuple[Any, ...]) -> None:
        self.functions.append((function, arguments))
        super().called(function, arguments)

    def numpy(
        self, function: Any, arguments: tuple[Any, ...], names: tuple[str, ...] = (), *, quiet: bool = False
    ) -> None:
        count = len(arguments) - len(names)
        named = dict(zip(names, arguments[count:], strict=True))
        call = partial(np.copyto, *arguments, casting="unsafe") if function is None else None
        self.of_numpy.append(call or partial(function, *arguments[:count], **named))
        super().numpy(function, arguments, names, quiet=quiet)


def loop_code() -> Linked:
    """Machine code that runs a function of machine code many times."""
    machine = host_machine()
    module = Module("tw_alone", machine.triple, data_layout(machine))
    names = [("thunk", POINTER), ("code", POINTER), ("words", POINTER), ("count", INT64)]
    f = module.define("tw_alone", VOID, names, exported=True)
    thunk, code, words, count = f.arguments.values()
    with f.loop(int64(0), count, int64(1), "time"):
        f.call(Callee(VOID, thunk.text), [code, words])
    f.ret()
    return Linked(emit_object(str(module), "tw_alone", machine), ("tw_alone",), {})


def alone(call: Callable[[], Any], loop: Any) -> float:
    """Microseconds of the functions that a call runs, each run alone; of calls that Python makes, 0."""
    repeated.replay().table.clear()
    Kept.all.clear()
    before, repeated.Recording = repeated.Recording, Kept  # type: ignore[misc]
    try:
        call()
    finally:
        repeated.Recording = before  # type: ignore[misc]
    total = 0.0
    for recording in Kept.all[:1]:
        for function, arguments in recording.functions:
            words = [
                word_of(kind, 0 if value is None else value) & (1 << 64) - 1
                for kind, value in zip(function.kinds, arguments, strict=True)
            ]
            given = (ctypes.c_uint64 * len(words))(*words)
            thunk = thunk_of(function)
            assert thunk is not None
            places = thunk.address, function.address, ctypes.addressof(given), ALONE
            times = []
            for _ in range(TRIES):
                start = time.perf_counter()
                loop(*places)
                times.append(time.perf_counter() - start)
            total += min(times) / ALONE * 1e6
        for one in recording.of_numpy:
            total += min(timeit.repeat(one, number=ALONE // 10, repeat=TRIES)) / (ALONE // 10) * 1e6
    return total


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
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--only", default="", help="rows whose names have this text")
    parser.add_argument("--first", action="store_true", help="first calls of new shapes")
    options = parser.parse_args()
    tw.set_num_threads(1)
    if options.first:
        first_calls.measure(options.rounds or first_calls.ROUNDS, options.only)
        return
    threadpoolctl = optional("threadpoolctl")
    torch, jax = optional("torch"), optional("jax.numpy")
    if torch is not None:
        torch.set_num_threads(1)
    limits = contextlib.nullcontext() if threadpoolctl is None else threadpoolctl.threadpool_limits(1)
    with limits:
        every = (*product_rows(torch), *other_rows(), *layer_rows(torch), *tensor_rows(torch, jax))
        rows = [row for row in every if options.only in row.form]
        times: dict[tuple[str, bool], list[float]] = {}
        jobs = [(row, own) for row in rows for own in (True, False) if own or row.theirs is not None]
        for row, own in jobs:
            for _ in range(3):
                (row.ours if own else row.theirs)()  # type: ignore[misc]
        for _ in range(options.rounds or ROUNDS):
            random.shuffle(jobs)
            for row, own in jobs:
                call = row.ours if own else row.theirs
                assert call is not None
                taken = timeit.timeit(call, number=CALLS) / CALLS * 1e6
                times.setdefault((row.form, own), []).append(taken)
    version = "missing" if torch is None else torch.__version__
    print(f"NumPy {np.__version__}, PyTorch {version}; microseconds a call")
    code = loop_code()
    loop = code.function("tw_alone", (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64))
    print(f"{'form':<28} {'ours':>8} {'around':>8} {'peer':>8} {'ratio':>7}  way")
    ratios, most = [], (0.0, "")
    in_python = {row.form for row in rows if runs_python(row.ours)}
    for row in rows:
        ours = statistics.median(times[row.form, True])
        python = row.form in in_python
        way = "Python" if python else "machine code"
        around = ours if python else max(ours - alone(row.ours, loop), 0.0)
        most = max(most, (around, row.form))
        peer, ratio = "", ""
        if row.theirs is not None:
            theirs = statistics.median(times[row.form, False])
            if row.peer == "arrays":
                peer, ratio = f"{theirs:.2f}", f"{ours - theirs:+.2f} us"
            else:
                ratios.append((theirs / ours, row.form))
                peer, ratio = f"{theirs:.2f}", f"{theirs / ours:.2f}"
        rest = "" if row.theirs else ", no peer"
        print(f"{row.form:<28} {ours:>8.2f} {around:>8.2f} {peer:>8} {ratio:>7}  {way}{rest}")
    print(f"most around the kernel: {most[0]:.2f} us, {most[1]}")
    if ratios:
        mean = math.exp(statistics.fmean(math.log(ratio) for ratio, _ in ratios))
        print(f"ratio to the peer: geometric mean {mean:.2f}, worst {min(ratios)[0]:.2f}, {min(ratios)[1]}")


if __name__ == "__main__":
    main()
