"""Gradients of attention beside PyTorch's: time, share of the peak, error against float64, extra memory.

Both get the same arrays and the result of attention; calls take turns in random order, the peak is measured
beside them. GFLOPS count five products of one score, 2·b·h·q·k·(3·d + 2·dv), half of causal attention. Run
it with ``python benchmarks/attention_backward.py`` on a quiet machine, ``--threads 2`` for several threads.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import tilewright as tw
from tilewright.calls.kernels import kernel_for
from tilewright.compiler.peak import measure_peak
from tilewright.machine.host import host_machine
from tilewright.ops.attention.backward_problem import AttentionBackward, reference
from tilewright.spec.dtype import BF16, F32
from tilewright.tools.explore.rounds import median_seconds
from tilewright.tools.explore.statistics import geometric_mean

Array = np.ndarray[Any, Any]
HAS_TORCH = importlib.util.find_spec("torch") is not None


class Shape(NamedTuple):
    """Sizes of one attention."""

    batch: int
    heads: int
    kv_heads: int
    length: int
    head_dim: int

    def __str__(self) -> str:
        heads = f"{self.heads}/{self.kv_heads}" if self.kv_heads != self.heads else f"{self.heads}"
        return f"{self.batch}x{heads}x{self.length}x{self.head_dim}"


SHAPES = (
    Shape(1, 12, 12, 128, 64),
    Shape(1, 12, 12, 384, 64),
    Shape(8, 12, 12, 384, 64),
    Shape(1, 16, 16, 2048, 64),
    Shape(1, 8, 8, 2048, 128),
    Shape(1, 32, 8, 1024, 128),
)


def drawn(shape: Shape, dtype: str) -> tuple[Array, Array, Array, Array]:
    """dout, q, k and v, standard normal."""
    generator = np.random.default_rng(0)
    kind = np.float32 if dtype == "f32" else ml_dtypes.bfloat16
    heads = (shape.heads, shape.heads, shape.kv_heads, shape.kv_heads)
    sizes = ((shape.batch, count, shape.length, shape.head_dim) for count in heads)
    dout, q, k, v = (generator.standard_normal(size, np.float32).astype(kind) for size in sizes)
    return dout, q, k, v


def torch_call(arrays: tuple[Array, ...], *, causal: bool) -> Callable[[], object]:
    """The same gradients by PyTorch, whose forward pass is not repeated."""
    import torch

    kind = torch.float32 if arrays[0].dtype == np.float32 else torch.bfloat16
    dout, *operands = (torch.from_numpy(array.astype(np.float32)).to(kind) for array in arrays)
    given = [tensor.requires_grad_() for tensor in operands]
    grouped = given[0].shape[1] != given[1].shape[1]
    attend = torch.nn.functional.scaled_dot_product_attention
    out = attend(*given, is_causal=causal, enable_gqa=grouped)
    return lambda: torch.autograd.grad(out, given, dout, retain_graph=True)


def error(arrays: tuple[Array, ...], found: tuple[Array, ...], *, causal: bool) -> float:
    """The largest error of the gradients of one group of heads, beside the largest gradient."""
    group = arrays[1].shape[1] // arrays[2].shape[1]
    dout, q = (array[:1, :group] for array in arrays[:2])
    k, v = (array[:1, :1] for array in arrays[2:])
    length = q.shape[2]
    bias: Array = np.where(np.tri(length, dtype=np.bool_), 0, -np.inf) if causal else np.zeros(())
    exact = reference(q, k, v, dout, q.shape[3] ** -0.5, bias=bias)
    worst = 0.0
    for gradient, expected in zip(found, (exact.dq, exact.dk, exact.dv), strict=True):
        part = gradient[:1, : expected.shape[1]].astype(np.float64)
        worst = max(worst, float(np.abs(part - expected).max() / np.abs(expected).max()))
    return worst


def table(dtype: str, *, causal: bool, options: argparse.Namespace) -> None:
    """The lines of one type."""
    kind = F32 if dtype == "f32" else BF16
    ratios = []
    for shape in SHAPES:
        arrays = drawn(shape, dtype)
        dout, q, k, v = arrays
        out, lse = tw.attention(q, k, v, causal=causal, return_lse=True)

        def ours(given: tuple[Array, ...] = (dout, q, k, v, out, lse)) -> tuple[Array, Array, Array]:
            return tw.attention_backward(*given, causal=causal)

        calls: dict[str, Callable[[], object]] = {"tilewright": ours}
        if HAS_TORCH:
            calls["torch"] = torch_call(arrays, causal=causal)
        found = median_seconds(calls, options.repeat)
        peak = measure_peak(kind, host_machine()) * options.threads
        flops = 10 * shape.batch * shape.heads * shape.length**2 * shape.head_dim * (0.5 if causal else 1)
        speed = flops / found["tilewright"] / 1e9
        note = ""
        if HAS_TORCH:
            ratios.append(found["torch"] / found["tilewright"])
            note = f"{flops / found['torch'] / 1e9:8.0f}{ratios[-1]:8.2f}"
        wrong = error(arrays, ours(), causal=causal)
        problem = AttentionBackward(shape.head_dim, dtype=dtype, bounded=causal)
        scratch = kernel_for(problem).scratch_bytes_for(options.threads) / 2**20
        name = f"{dtype} {shape}{' causal' if causal else ''}"
        say(f"{name:28}{speed:8.0f}{speed / peak:7.2f}{note or ' ' * 16}{wrong:10.1e}{scratch:8.1f}")
    if ratios:
        say(f"{'geometric mean':28}{'':23}{geometric_mean(ratios):8.2f}")


def say(text: str) -> None:
    """One line of output."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=10)
    options = parser.parse_args()
    tw.set_num_threads(options.threads)
    if HAS_TORCH:
        import torch

        torch.set_num_threads(options.threads)
    say(f"{host_machine().name}, {options.threads} threads")
    say(f"{'':28}{'GFLOPS':>8}{'share':>7}{'torch':>8}{'ratio':>8}{'error':>10}{'MiB':>8}")
    for dtype in ("f32", "bf16"):
        for causal in (False, True):
            table(dtype, causal=causal, options=options)


if __name__ == "__main__":
    main()
