"""What `bench attention` measures: one attention with its operands, and the check against float64."""

from __future__ import annotations

import math
import re
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tilewright.errors import InvalidChoice, WrongResult, shown
from tilewright.records import dataclass
from tilewright.spec.dtype import F32, F64, parse_dtype
from tilewright.spec.problem import ProductTypes
from tilewright.tools.explore.attention.shape import AttentionShape
from tilewright.tools.explore.attention.systems import ATTENTION_SYSTEMS
from tilewright.tools.explore.measured import Started
from tilewright.tools.explore.prepared import Environment
from tilewright.tools.explore.systems import find_system

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tilewright.tools.explore.attention.systems import AttentionSystem

#: Heads that are compared with float64, and rows of each; the first and the last are always among them.
CHECKED_HEADS, CHECKED_ROWS = 4, 24

#: Roundings of one weight beside those of the sums: the exponential within 4 ulps, its argument, the rescale
#: and the division.
WEIGHT_ROUNDINGS = 8

#: Queries and keys of a case that only loads libraries.
SMALL = 16

_SHAPE = re.compile(r"(\d+)x(\d+)(?:/(\d+))?x(\d+)(?::(\d+))?x(\d+)")

#: Shapes by a name. bert: 12 heads of 64 in batches of 16 and 32, as MEATTEN (ICS 2024) measures. decoders:
#: heads of 128, fewer heads of keys and values than of queries, one query against a long cache.
WORKLOADS = {
    "bert": tuple(f"{batch}x12x{n}x64" for batch in (16, 32) for n in (80, 160, 320, 640, 1120, 1600)),
    "decoders": ("1x32/8x1024x128", "1x32/8x4096x128", "1x32/8x1:4096x128", "1x32/8x1:32768x128"),
    "lengths": tuple(f"1x8x{n}x64" for n in (16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)),
}


@dataclass(frozen=True)
class AttentionCase(AttentionShape):
    """One attention to measure, of standard normal queries, keys and values.

    Examples
    --------
    >>> AttentionCase(1, 32, 8, 1, 4096, 128, "bf16").name
    'attention 1x32/8x1:4096x128'
    """

    size_note: ClassVar[str] = "batch x heads (queries/keys) x sequence (queries:keys) x head"

    @classmethod
    def from_request(cls, fields: dict[str, Any]) -> AttentionCase:
        """The case of a worker's command."""
        return cls(**fields)

    @property
    def subject(self) -> str:
        """The kind in titles."""
        words = ["causal"] * self.causal + ["attention"]
        words += [] if self.window is None else ["in a window of {} and {} keys".format(*self.window)]
        return " ".join(words)

    @property
    def small(self) -> AttentionCase:
        """A small case that takes the same functions: it loads and compiles what this one needs."""
        size = SMALL + (0 if self.window is None else sum(self.window))
        return replace(self, batch=1, queries=min(self.queries, size), keys=min(self.keys, size), label="")

    @property
    def request(self) -> dict[str, Any]:
        """The record in JSON values."""
        return {"attention": asdict(self)}

    def types_of(self, system: str) -> ProductTypes:
        """Those of the case, which the system must have."""
        self.row_of(system).check(self)
        return self.types

    def environments_of(self, system: str, threads: int) -> tuple[Environment, ...]:  # noqa: ARG002
        """Every system runs in the caller's environment."""
        return ({},)

    def call_of(self, system: str) -> str:
        """What is called in a system."""
        return self.row_of(system).call(self)

    def flops_of(self, system: str) -> int:  # noqa: ARG002  (every system counts for the same)
        """The operations that one call counts for, whoever computes it."""
        return self.flops

    def start(self, system: str, seed: int, threads: int, target: str | None) -> Started:
        """Random operands, ready to be computed; attention runs on this host only."""
        if target is not None:
            raise InvalidChoice(name="target of measured attention", found=shown(target), allowed="host")
        arrays = self.operands(seed)
        call = self.row_of(system).prepare(self, arrays, threads)

        def check() -> None:
            self.check(system, arrays, call.result(), seed)

        return Started(call, check)

    @staticmethod
    def row_of(system: str) -> AttentionSystem:
        """The row of a system, if its package is installed."""
        return find_system(system, ATTENTION_SYSTEMS)

    def operands(self, seed: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """q (batch, heads, queries, head_dim), k and v (batch, kv_heads, keys, head_dim)."""
        generator = np.random.default_rng(seed)
        q = (self.batch, self.heads, self.queries, self.head_dim)
        kv = (self.batch, self.kv_heads, self.keys, self.head_dim)
        dtype = parse_dtype(self.dtype)
        wide = np.float64 if dtype == F64 else np.float32
        first, second, third = (
            generator.standard_normal(shape, wide).astype(dtype.numpy, copy=False) for shape in (q, kv, kv)
        )
        return first, second, third

    def check(self, system: str, arrays: Sequence[NDArray[Any]], found: NDArray[Any], seed: int = 0) -> float:
        """Compare a result with float64 on sampled heads and rows; the largest difference comes back.

        Raises
        ------
        WrongResult : names the worst element outside of `bound`.
        """
        worst = 0.0
        for batch, head, rows, expected, bound in self._samples(arrays, np.random.default_rng(seed)):
            part = found[batch, head, rows].astype(np.float64)
            error = np.abs(part - expected)
            excess = np.where(np.isnan(error), np.inf, error - bound)
            if np.any(excess > 0):
                i, j = np.unravel_index(int(np.argmax(excess)), excess.shape)
                raise WrongResult(
                    system=system,
                    problem=f"{self.name}, batch {batch}, head {head}",
                    row=int(rows[i]),
                    column=int(j),
                    found=float(part[i, j]),
                    expected=float(expected[i, j]),
                    bound=float(bound[i, j]),
                )
            worst = max(worst, float(error.max()))
        return worst

    def _samples(
        self, arrays: Sequence[NDArray[Any]], generator: np.random.Generator
    ) -> Iterator[tuple[int, int, NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]]:
        """Some heads, some of their rows: the result in float64, and how far another may be from it.

        A score is a dot product in the type of sums: its error e is at most gamma(d + 2)·|q||k|·scale. A
        weight exp(s - max) / sum then has a relative error of exp(2·e) - 1, `WEIGHT_ROUNDINGS` more
        roundings, the sums' one per key, and half an ulp of the operands' type where weights are narrowed
        to it, as the result is. So |error| <= relative · Σ p·|v| + half an ulp of the result.
        """
        q, k, v = arrays
        dtype = parse_dtype(self.dtype)
        roundoff = (F64 if dtype == F64 else F32).unit_roundoff
        narrow = 0.0 if dtype in (F32, F64) else dtype.unit_roundoff
        scale = 1 / math.sqrt(self.head_dim)
        heads = _spread(self.batch * self.heads, CHECKED_HEADS, generator)
        for number in heads:
            batch, head = divmod(int(number), self.heads)
            rows = _spread(self.queries, CHECKED_ROWS, generator)
            kv_head = head // (self.heads // self.kv_heads)
            queries = q[batch, head, rows].astype(np.float64)
            keys, values = (x[batch, kv_head].astype(np.float64) for x in (k, v))
            scores = np.where(self.visible(rows), queries @ keys.T * scale, -np.inf)
            top = scores.max(1, keepdims=True)
            weights = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
            total = weights.sum(1, keepdims=True)
            weights /= np.where(total > 0, total, 1.0)
            expected = weights @ values
            largest = (np.abs(queries) @ np.abs(keys).T).max(1, keepdims=True) * scale
            score_error = (self.head_dim + 2) * roundoff * largest
            relative = np.expm1(2 * score_error) + (self.keys + WEIGHT_ROUNDINGS) * roundoff + 2 * narrow
            bound = relative * (weights @ np.abs(values)) + (roundoff + narrow) * np.abs(expected)
            yield batch, head, rows, expected, bound


def _spread(size: int, count: int, generator: np.random.Generator) -> NDArray[np.intp]:
    """At most `count` indices below `size`, in order; the first and the last always."""
    if size <= count:
        return np.arange(size)
    inner = generator.choice(np.arange(1, size - 1), count - 2, replace=False)
    return np.sort(np.concatenate(([0, size - 1], inner)))


def parse_shapes(
    text: str, dtype: str = "f32", *, causal: bool = False, window: str | None = None
) -> tuple[AttentionCase, ...]:
    """The cases of a comma list of shapes and of names of `WORKLOADS`.

    Parameters
    ----------
    text : "1x12x384x64" is batch x heads x sequence x head; "1x32/8x1:4096x128" has 8 heads of keys and
        values, and one query beside 4096 keys.
    dtype : element type.
    causal : each query sees the keys up to its own.
    window : "256" or "256,0": keys to the left, and to the right (as many by default, none where causal).

    Raises
    ------
    InvalidChoice, InvalidSize, InvalidWindow, UnsupportedDtype

    Examples
    --------
    >>> [case.name for case in parse_shapes("1x12x384x64,2x8/2x1:64x32", window="16,0")]
    ['attention 1x12x384x64 window 16,0', 'attention 2x8/2x1:64x32 window 16,0']
    """
    sides = None if window is None else _parse_window(window, causal=causal)
    cases = []
    for item in (part.strip() for part in text.split(",")):
        for shape in WORKLOADS.get(item, (item,)):
            match = _SHAPE.fullmatch(shape)
            if match is None:
                raise InvalidChoice(
                    name="shape",
                    found=shown(shape),
                    allowed="BATCHxHEADS[/KV_HEADS]xQUERIES[:KEYS]xHEAD_DIM, such as 1x12x384x64 or "
                    f"1x32/8x1:4096x128, or one of {', '.join(WORKLOADS)}",
                )
            batch, heads, kv_heads, queries, keys, head_dim = match.groups()
            found = (batch, heads, kv_heads or heads, queries, keys or queries, head_dim)
            b, h, kv, i, j, d = map(int, found)
            cases.append(AttentionCase(b, h, kv, i, j, d, dtype, causal, sides))
    return tuple(dict.fromkeys(cases))


def _parse_window(text: str, *, causal: bool) -> tuple[int, int]:
    """Keys to the left and to the right.

    >>> _parse_window("256", causal=True), _parse_window("256,16", causal=False)
    ((256, 0), (256, 16))
    """
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > 2 or not all(part.isdecimal() for part in parts):
        raise InvalidChoice(
            name="window", found=shown(text), allowed="LEFT or LEFT,RIGHT, such as 256 or 256,0"
        )
    left = int(parts[0])
    return left, int(parts[1]) if len(parts) > 1 else (0 if causal else left)
