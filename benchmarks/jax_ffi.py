"""Products and attention inside `jax.jit`: Tilewright's primitives beside XLA's own operations.

    python benchmarks/jax_ffi.py [--rounds 9] [--seconds 0.04]

Both run in one process on the same arrays, in random order, round after round; the figures are medians over
the rounds of the time of a call, `block_until_ready` included. Results are compared before anything is timed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import tilewright as tw
import tilewright.jax as twj
from tilewright.tools.explore.rounds import median_seconds

#: Relative difference of results that is no mistake: of 16-bit types two roundings.
TOLERANCE = {"float32": 1e-4, "bfloat16": 3e-2, "int8": 0.0}


class Case(NamedTuple):
    """A function in two forms, and its operands."""

    name: str
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    operands: tuple[Any, ...]


def array(*shape: int, dtype: str = "float32", seed: int = 0) -> Any:
    values = np.random.default_rng(seed).standard_normal(shape)
    return jnp.asarray(values * (20 if dtype == "int8" else 1)).astype(dtype)


def products() -> Iterator[Case]:
    """Square products, a batch, transposed operands, gradients."""
    for dtype, sizes in {"float32": (32, 128, 512, 1024), "bfloat16": (512,), "int8": (512,)}.items():
        wide = "int32" if dtype == "int8" else dtype
        for size in sizes:
            operands = (array(size, size, dtype=dtype), array(size, size, dtype=dtype, seed=1))

            def ours(a: Any, b: Any, wide: str = wide) -> Any:
                return twj.matmul(a, b, dtype=wide)

            def theirs(a: Any, b: Any, wide: str = wide) -> Any:
                return jnp.matmul(a, b, preferred_element_type=wide)

            yield Case(f"matmul {dtype} {size}", ours, theirs, operands)
    several = (array(64, 96, 96), array(64, 96, 96, seed=1))
    yield Case("vmap(matmul) 64 x 96", jax.vmap(twj.matmul), jax.vmap(jnp.matmul), several)
    text = "bij,bkj->bik"
    yield Case(text, lambda a, b: twj.einsum(text, a, b), lambda a, b: jnp.einsum(text, a, b), several)

    def gradients(product: Callable[..., Any]) -> Callable[..., Any]:
        return jax.grad(lambda a, b: (product(a, b) ** 2).sum(), argnums=(0, 1))

    yield Case(
        "grad(matmul) 512",
        gradients(twj.matmul),
        gradients(jnp.matmul),
        (array(512, 512), array(512, 512, seed=1)),
    )


def attention() -> Iterator[Case]:
    """Eight heads of 64, by `jax.nn.dot_product_attention`, whose layout is "bshd"."""
    for length in (128, 512, 1024):
        q, k, v = (array(1, length, 8, 64, seed=seed) for seed in range(3))

        def ours(q: Any, k: Any, v: Any) -> Any:
            return twj.attention(q, k, v, causal=True, layout="bshd")

        def theirs(q: Any, k: Any, v: Any) -> Any:
            return jax.nn.dot_product_attention(q, k, v, is_causal=True)

        yield Case(f"causal attention {length}", ours, theirs, (q, k, v))
        if length == 512:
            both = [jax.grad(lambda *x, f=one: f(*x).sum(), argnums=(0, 1, 2)) for one in (ours, theirs)]
            yield Case(f"grad(attention) {length}", both[0], both[1], (q, k, v))


def check(case: Case) -> None:
    """Compares the results of both."""
    found, expected = (jax.tree.leaves(jax.jit(one)(*case.operands)) for one in (case.ours, case.theirs))
    for one, other in zip(found, expected, strict=True):
        a, b = (np.asarray(value, np.float64) for value in (one, other))
        difference = np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)
        limit = TOLERANCE[str(case.operands[0].dtype)]
        assert difference <= limit, (case.name, difference)


def finished(function: Callable[..., Any], operands: tuple[Any, ...]) -> None:
    """A call, until its results are there."""
    jax.block_until_ready(function(*operands))


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.04)
    options = parser.parse_args()
    print(f"jax {jax.__version__}, {tw.get_num_threads()} threads")
    print(f"{'':<26}{'Tilewright':>14}{'XLA':>14}{'ratio':>8}")
    for case in (*products(), *attention()):
        check(case)
        calls = {
            name: partial(finished, jax.jit(one), case.operands)
            for name, one in (("ours", case.ours), ("theirs", case.theirs))
        }
        ours, theirs = median_seconds(calls, options.rounds, options.seconds).values()
        print(
            f"{case.name:<26}{ours * 1e6:>11.1f} us{theirs * 1e6:>11.1f} us{theirs / ours:>8.2f}", flush=True
        )


if __name__ == "__main__":
    main()
