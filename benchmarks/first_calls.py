"""First calls: what a call of a new shape costs where its kernel exists; ``calls.py --first`` prints it.

Each row is a form of a public function with a call for each of many shapes, none of which it has seen. A
first call runs the Python that checks and prepares it, and leaves the recipe that later calls of that shape
repeat. The calls of a form follow each other, and a fixed loop of Python is timed between them: the figure
is the median of the calls, divided by the median of the loops beside them and multiplied by the least loop
of the run. So it is the time of a call on the machine as quiet as it was at its best moment. A neighbour
that uses the caches makes calls slower than loops, and the figure larger: compare runs on a quiet machine.
"least" is the lowest tenth of a form's calls in its best measurement, as they were timed.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import tilewright as tw
from tilewright.calls import repeated
from tilewright.llvm.quick import quick_code

#: Shapes that a form is called with before it is measured, so that its kernels exist.
WARM = 12
#: Shapes of one measurement of a form, and measurements of each.
SHAPES, ROUNDS = 40, 5
#: What is asked, in microseconds.
WANTED = 60.0
#: Turns of the loop that tells how fast the machine runs Python.
TURNS = 400

RNG = np.random.default_rng(0)


class Form(NamedTuple):
    """One form: its name, and its call for three sizes."""

    name: str
    call: Callable[[int, int, int], Callable[[], Any]]


def sizes(number: int) -> tuple[int, int, int]:
    """Three sizes from 8 to 24, other ones for each number up to 1,000.

    >>> len({sizes(number) for number in range(1000)})
    1000
    """
    return 8 + number % 11, 8 + number % 13, 8 + number % 7


def values(*shape: int, dtype: Any = "f4") -> Any:
    return RNG.standard_normal(shape).astype(dtype)


def whole(*shape: int, dtype: Any = "i8") -> Any:
    return RNG.integers(0, 9, shape).astype(dtype)


def of_arrays(function: Callable[..., Any], *arrays: Any, **named: Any) -> Callable[[], Any]:
    return lambda: function(*arrays, **named)


def forms() -> Iterator[Form]:
    """Every form that is measured."""
    yield from product_forms()
    yield from einsum_forms()
    yield from layer_forms()
    yield from attention_forms()
    yield from row_forms()


def product_forms() -> Iterator[Form]:
    """`matmul` where its entry of all shapes does not serve it, and NumPy's other products."""
    of, matmul = of_arrays, tw.matmul

    def overlapping(m: int, n: int, k: int) -> Callable[[], Any]:
        a = values(m, m + n + k)[:, :m]
        return of(matmul, a, a.T, out=a)

    yield Form("matmul alpha=", lambda m, n, k: of(matmul, values(m, k), values(k, n), alpha=2.0))
    yield Form("matmul dtype=", lambda m, n, k: of(matmul, values(m, k), values(k, n), dtype="f8"))
    yield Form("matmul threads=", lambda m, n, k: of(matmul, values(m, k), values(k, n), threads=1))
    yield Form("matmul f32, f64", lambda m, n, k: of(matmul, values(m, k), values(k, n, dtype="f8")))
    yield Form("matmul 4-D", lambda m, n, k: of(matmul, values(2, 3, m, k), values(2, 3, k, n)))
    yield Form(
        "matmul 4-D, broadcast", lambda m, n, k: of(matmul, values(2, 3, m, k), values(1, 3, k, n), alpha=2)
    )
    yield Form("matmul bias=", lambda m, n, k: of(matmul, values(m, k), values(k, n), bias=values(n)))
    yield Form(
        "matmul bias=, gelu",
        lambda m, n, k: of(matmul, values(m, k), values(k, n), bias=values(n), activation="gelu"),
    )
    yield Form("matmul out= shared", overlapping)
    yield Form(
        "matmul out=, beta=",
        lambda m, n, k: of(matmul, values(m, k), values(k, n), out=values(m, n), beta=1.0),
    )
    yield Form("matmul bool", lambda m, n, k: of(matmul, values(m, k) > 0, values(k, n) > 0))
    yield Form("matmul int64, bias=", lambda m, n, k: of(matmul, whole(m, k), whole(k, n), bias=whole(n)))
    yield Form(
        "matmul complex alpha=",
        lambda m, n, k: of(matmul, values(m, k).astype("c8"), values(k, n).astype("c8"), alpha=2j),
    )
    yield Form("matmul strided", lambda m, n, k: of(matmul, values(m, k)[::-1], values(n, k).T, alpha=2.0))
    yield Form(
        "matmul_integer",
        lambda m, n, k: of(tw.matmul_integer, whole(m, k, dtype="u1"), whole(k, n, dtype="i1"), 3, 1),
    )
    yield Form("vecdot", lambda m, n, k: of(tw.vecdot, values(m, n, k), values(m, n, k)))
    yield Form("matvec", lambda m, n, k: of(tw.matvec, values(n, m, k), values(k)))
    yield Form("vecmat", lambda m, n, k: of(tw.vecmat, values(m, k), values(m, k, n)))
    yield Form("inner", lambda m, n, k: of(tw.inner, values(m, k), values(n, k)))
    yield Form("kron", lambda m, n, k: of(tw.kron, values(m, k), values(n, 2)))
    yield Form("tensordot", lambda m, n, k: of(tw.tensordot, values(m, k), values(k, n), 1))
    yield Form(
        "tensordot axes=",
        lambda m, n, k: of(tw.tensordot, values(m, 4, k), values(k, 4, n), ([1, 2], [1, 0])),
    )
    yield Form("syrk", lambda m, n, k: of(tw.syrk, values(m, n + k)))
    yield Form("syr2k", lambda m, n, k: of(tw.syr2k, values(m, n + k), values(m, n + k)))
    yield Form("trmm", lambda m, n, k: of(tw.trmm, values(m, m), values(m, n + k)))
    yield Form("mmt4d", lambda m, n, k: of(tw.mmt4d, values(m, k, 8, 4), values(n, k, 8, 4)))
    kernel = tw.compile(tw.Gemm())
    yield Form(
        "kernel(a, b, c)", lambda m, n, k: of(kernel, values(m, k), values(k, n), np.empty((m, n), "f4"))
    )


#: Subscripts, each with the shapes of its operands in the sizes m, n and k.
_SUBSCRIPTS: dict[str, Callable[[int, int, int], tuple[tuple[int, ...], ...]]] = {
    "ij,jk->ik": lambda m, n, k: ((m, k), (k, n)),
    "ij,kj->ki": lambda m, n, k: ((m, k), (n, k)),
    "bij,bjk->bik": lambda m, n, k: ((3, m, k), (3, k, n)),
    "bhqd,bhkd->bhqk": lambda m, n, k: ((2, 3, m, k), (2, 3, n, k)),
    "ijk,kjl->il": lambda m, n, k: ((m, 4, k), (k, 4, n)),
    "aib,bja->ij": lambda m, n, k: ((3, m, k), (k, n, 3)),
    "ij,jk,kl->il": lambda m, n, k: ((m, k), (k, n), (n, 5)),
    "ab,bc,cd,de->ae": lambda m, n, k: ((m, k), (k, n), (n, 5), (5, m)),
    "i,ij,j->": lambda m, n, k: ((m,), (m, n + k), (n + k,)),
    "ij,ij->i": lambda m, n, k: ((m, n + k), (m, n + k)),
    "ij,j->i": lambda m, n, k: ((m, n + k), (n + k,)),
    "i,j->ij": lambda m, n, k: ((m,), (n + k,)),
    "ij,ij->ij": lambda m, n, k: ((m, n + k), (m, n + k)),
    "ij->ji": lambda m, n, k: ((m, n + k),),
    "ij->i": lambda m, n, k: ((m, n + k),),
    "ii": lambda m, n, k: ((m + 17 * n + 300 * k,) * 2,),
}


def einsum_forms() -> Iterator[Form]:
    """`einsum` of one to four operands."""

    def form(text: str) -> Form:
        def call(m: int, n: int, k: int) -> Callable[[], Any]:
            shapes = _SUBSCRIPTS[text](m, n, k)
            # Diagonals are of matrices whose rows are one: the sizes are large so that none is met twice.
            arrays = [
                np.lib.stride_tricks.as_strided(values(shape[0]), shape, (0, 4))
                if text == "ii"
                else values(*shape)
                for shape in shapes
            ]
            return of_arrays(tw.einsum, text, *arrays)

        return Form(f"einsum {text}", call)

    yield from map(form, _SUBSCRIPTS)
    yield Form(
        "einsum out=",
        lambda m, n, k: of_arrays(tw.einsum, "ij,jk->ik", values(m, k), values(k, n), out=values(m, n)),
    )


def layer_forms() -> Iterator[Form]:
    """Linear layers: of another number of rows by one weight, and by new weights."""
    weight, bias = values(64, 64), values(64)
    turned = weight.T
    weights = {
        "packed": tw.pack(turned),
        "int8": tw.quantize_weights(turned),
        "int8 with zeros": tw.quantize_weights(turned, symmetric=False),
        "int8 in groups": tw.quantize_weights(turned, group=32),
        "int4": tw.quantize_weights(turned, bits=4, group=32),
    }

    of = of_arrays
    yield Form("linear array", lambda m, n, k: of(tw.linear, values(m, k), values(n, k)))
    yield Form("linear array, bias", lambda m, n, k: of(tw.linear, values(m, k), values(n, k), values(n)))
    yield Form(
        "linear array, 3-D, gelu",
        lambda m, n, k: of(tw.linear, values(2, m, k), values(n, k), values(n), "gelu"),
    )
    for name, one in weights.items():
        yield Form(f"linear {name}", lambda m, n, k, w=one: of(tw.linear, values(m, 64 + n + k)[:, :64], w))
        yield Form(
            f"linear {name}, bias",
            lambda m, n, k, w=one: of(tw.linear, values(m, 64 + n + k)[:, :64], w, bias),
        )


def attention_forms() -> Iterator[Form]:
    """Attention and its gradients."""
    of = of_arrays

    def operands(m: int, n: int, k: int, kv_heads: int = 2) -> list[Any]:
        return [values(n % 3 + 1, 2, m, 8), *(values(n % 3 + 1, kv_heads, n + k, 8) for _ in range(2))]

    def backward(m: int, n: int, k: int) -> Callable[[], Any]:
        q, key, value = operands(m, n, k)
        out, lse = tw.attention(q, key, value, return_lse=True)
        return of(tw.attention_backward, q, q, key, value, out, lse)

    yield Form("attention", lambda *s: of(tw.attention, *operands(*s)))
    yield Form("attention causal", lambda *s: of(tw.attention, *operands(*s), causal=True))
    yield Form("attention grouped", lambda *s: of(tw.attention, *operands(*s, kv_heads=1)))
    yield Form(
        "attention mask",
        lambda m, n, k: of(tw.attention, *operands(m, n, k), mask=RNG.random((m, n + k)) > 0.3),
    )
    yield Form("attention lse", lambda *s: of(tw.attention, *operands(*s), return_lse=True))
    yield Form(
        "attention bshd",
        lambda m, n, k: of(
            tw.attention, values(1, m, 2, 8), *(values(1, n + k, 2, 8) for _ in "kv"), layout="bshd"
        ),
    )
    yield Form(
        "attention kv_lengths",
        lambda m, n, k: of(
            tw.attention, *operands(m, n, k), kv_lengths=np.full(n % 3 + 1, n + k - 1, np.int64)
        ),
    )
    yield Form(
        "attention packed",
        lambda m, n, k: of(
            tw.attention, *(values(m, n + k, 8) for _ in "qkv"), cu_seqlens_q=np.array([0, n, n + k])
        ),
    )
    yield Form("attention_backward", backward)


def row_forms() -> Iterator[Form]:
    """Functions of elements and of rows, and transposes."""
    of = of_arrays
    for name in ("exp", "tanh", "relu", "gelu", "silu", "softmax", "log_softmax", "layer_norm"):
        one = getattr(tw, name)
        yield Form(name, lambda m, n, k, f=one: of(f, values(m, n + k)))
    yield Form(
        "exp, out f16",
        lambda m, n, k: of(tw.exp, values(m, n + k), out=values(m, n + k, dtype="f2")),
    )
    yield Form(
        "layer_norm(x, w, b)",
        lambda m, n, k: of(tw.layer_norm, values(m, n, k), values(k), values(k)),
    )
    yield Form(
        "layer_norm return_stats",
        lambda m, n, k: of(tw.layer_norm, values(m, n, k), values(k), values(k), return_stats=True),
    )
    yield Form("rms_norm(x, w)", lambda m, n, k: of(tw.rms_norm, values(m, n, k), values(k)))
    for name in ("sum", "mean", "max", "min"):
        one = getattr(tw, name)
        yield Form(name, lambda m, n, k, f=one: of(f, values(m, n + k), 1))
    yield Form("sum int64", lambda m, n, k: of(tw.sum, whole(m, n + k), 1))
    yield Form("transpose", lambda m, n, k: of(tw.transpose, values(m, n + k)))
    yield Form("transpose 3-D", lambda m, n, k: of(tw.transpose, values(m, n, k), (2, 0, 1)))


def loop_seconds() -> float:
    """The time of a fixed loop of Python."""
    start = time.perf_counter()
    total = 0
    for number in range(TURNS):
        total += number & 3
    return time.perf_counter() - start


def block(form: Form, numbers: range) -> tuple[list[float], list[float]]:
    """Seconds of the first calls of a form for some shapes, and of the loops beside them."""
    calls = [form.call(*sizes(number)) for number in numbers]
    times, loops = [], []
    for call in calls:
        loops.append(loop_seconds())
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return times, loops


def measure(rounds: int, only: str) -> None:
    """Measure and print the table."""
    rows = [form for form in forms() if only in form.name]
    quick_code.finish()
    for form in rows:
        block(form, range(WARM))
    found: dict[str, list[tuple[float, float]]] = {form.name: [] for form in rows}
    shortest = dict.fromkeys(found, float("inf"))
    least = float("inf")
    for turn in range(rounds):
        random.shuffle(rows)
        for form in rows:
            repeated.replay().table.clear()
            first = WARM + turn * SHAPES
            times, loops = block(form, range(first, first + SHAPES))
            least = min(least, *loops)
            shortest[form.name] = min(shortest[form.name], *statistics.quantiles(times, n=10)[:1])
            found[form.name].append((statistics.median(times), statistics.median(loops)))
    print(
        f"first calls of {rounds * SHAPES} shapes; a loop of {TURNS} turns took {least * 1e6:.1f} us at best"
    )
    print(f"{'form':<28} {'us':>7} {'least':>7}")
    slow = 0
    for name, blocks in found.items():
        calibrated = [times / loops * least * 1e6 for times, loops in blocks]
        each = statistics.median(calibrated)
        slow += each > WANTED
        shown = shortest[name] * 1e6
        print(f"{name:<28} {each:>7.1f} {shown:>7.1f}{'  above' * (each > WANTED)}")
    print(f"{slow} of {len(found)} above {WANTED:.0f} us")
