"""Errors of products with weights of 4 bits, by how they are rounded: to nearest, "hqq", "gptq".

    python benchmarks/rounding.py

Prints the table of docs/decisions/020-weights-in-words.md.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any, get_args

import numpy as np

import tilewright as tw
from tilewright.typing import RoundingName

Array = np.ndarray[Any, np.dtype[Any]]
DEPTH, COLUMNS, SAMPLES, ROWS = 1024, 1024, 2048, 256
_DRAW = np.random.default_rng(0)
#: What correlates the inputs, and the sizes of their channels.
_MIX, _CHANNELS = _DRAW.standard_normal((DEPTH // 8, DEPTH)), np.exp(0.5 * _DRAW.standard_normal(DEPTH))


def independent(rows: int, draw: np.random.Generator) -> Array:
    """Normal inputs."""
    return draw.standard_normal((rows, DEPTH)).astype(np.float32)


def correlated(rows: int, draw: np.random.Generator) -> Array:
    """Inputs of low rank, with noise, of channels of unequal size."""
    low = draw.standard_normal((rows, len(_MIX))) @ _MIX / np.sqrt(len(_MIX))
    return ((low + 0.3 * draw.standard_normal((rows, DEPTH))) * _CHANNELS).astype(np.float32)


INPUTS: dict[str, Callable[[int, np.random.Generator], Array]] = {
    "independent": independent,
    "correlated": correlated,
}
WEIGHTS: dict[str, Callable[[np.random.Generator], Array]] = {
    "normal": lambda draw: draw.standard_normal((DEPTH, COLUMNS)),
    "Student-t": lambda draw: draw.standard_t(3, (DEPTH, COLUMNS)),
}


def main() -> None:
    """Prints the table."""
    roundings = get_args(RoundingName)
    print("| inputs | weights | group | zero points |", " | ".join(roundings), "|")
    print("|---" * (4 + len(roundings)) + "|")
    seconds = dict.fromkeys(roundings, 0.0)
    for inputs, weights, group, zeros in itertools.product(INPUTS, WEIGHTS, (64, 128), (False, True)):
        samples, x = (INPUTS[inputs](rows, np.random.default_rng(rows)) for rows in (SAMPLES, ROWS))
        w = WEIGHTS[weights](np.random.default_rng(7)).astype(np.float32)
        exact = x.astype(np.float64) @ w
        row = []
        for rounding in roundings:
            given = {"inputs": samples} if rounding == "gptq" else {}
            started = time.perf_counter()
            packed = tw.quantize_weights(
                w, bits=4, group=group, symmetric=not zeros, rounding=rounding, **given
            )
            seconds[rounding] += time.perf_counter() - started
            row.append(np.linalg.norm(tw.matmul(x, packed) - exact) / np.linalg.norm(exact))
        words = "yes" if zeros else "no"
        print(
            f"| {inputs} | {weights} | {group} | {words} |", " | ".join(f"{error:.4f}" for error in row), "|"
        )
    print(", ".join(f"{name} {total / 16:.2f} s" for name, total in seconds.items()))


if __name__ == "__main__":
    main()
