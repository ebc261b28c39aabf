"""Sizes of an attention to measure: the record that cases and systems share."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np

from tilewright.errors import InvalidChoice, InvalidSize
from tilewright.ops.attention.bounds import Bounds
from tilewright.ops.attention.problem import ATTENTION_DTYPES
from tilewright.records import dataclass
from tilewright.spec.dtype import parse_dtype
from tilewright.spec.problem import ProductTypes
from tilewright.spec.records import set_fields

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The sizes of an attention, in the order of its text.
SIZE_NAMES = ("batch", "heads", "kv_heads", "queries", "keys", "head_dim")


@dataclass(frozen=True)
class AttentionShape:
    """Sizes, element type and visible keys of one attention.

    Attributes
    ----------
    batch, heads, kv_heads, queries, keys, head_dim : sizes; values are as long as keys.
    dtype : element type of every operand.
    causal : each query sees the keys up to its own, the last query all of them.
    window : keys to the left and to the right that a query sees; None for all.
    label : what a person reads.

    Raises
    ------
    InvalidSize, InvalidChoice, InvalidWindow, UnsupportedDtype

    Examples
    --------
    >>> AttentionShape(1, 32, 8, 1, 4096, 128, "bf16").name
    'attention 1x32/8x1:4096x128'
    """

    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    head_dim: int
    dtype: str = "f32"
    causal: bool = False
    window: tuple[int, int] | None = None
    label: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for name, size in self.size_fields.items():
            if size < 1:
                raise InvalidSize(name=name, found=size, required="at least 1 to be measured")
        if self.heads % self.kv_heads:
            raise InvalidChoice(
                name="heads of keys", found=self.kv_heads, allowed=f"what divides {self.heads} heads"
            )
        set_fields(self, dtype=str(parse_dtype(self.dtype, ATTENTION_DTYPES)))
        if self.window is not None:
            set_fields(self, window=tuple(self.window))
        Bounds.parse(self.causal, self.window)
        if not self.label:
            set_fields(self, label=self.shape)

    @property
    def shape(self) -> str:
        """Sizes as text, such as "1x32/8x1:4096x128"."""
        heads = f"{self.heads}" if self.heads == self.kv_heads else f"{self.heads}/{self.kv_heads}"
        keys = f"{self.keys}" if self.queries == self.keys else f"{self.queries}:{self.keys}"
        return f"{self.batch}x{heads}x{keys}x{self.head_dim}"

    @property
    def name(self) -> str:
        """The problem in a report: sizes, then what is not seen."""
        words = ["attention", self.shape] + ["causal"] * self.causal
        words += [] if self.window is None else ["window {},{}".format(*self.window)]
        return " ".join(words)

    @property
    def types(self) -> ProductTypes:
        """The types of its two products."""
        return ProductTypes.parse(self.dtype)

    @property
    def size_fields(self) -> dict[str, int]:
        """Its sizes by name."""
        return {name: getattr(self, name) for name in SIZE_NAMES}

    @property
    def bounds(self) -> Bounds | None:
        """What bounds the keys that a query sees; None where every query sees all of them."""
        bounds = Bounds.parse(self.causal, self.window)
        return bounds if bounds.bind(self.queries, self.keys) else None

    def visible(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """(rows, keys): which keys some queries see."""
        bounds = Bounds.parse(self.causal, self.window)
        low, high = bounds.limits(self.queries, self.keys)
        place = np.arange(self.keys)[None, :] - rows[:, None]
        return np.asarray((place >= low) & (place < high))

    @property
    def pairs(self) -> float:
        """Pairs of query and key that count: all, half of a square that is causal, or those in the window."""
        if self.window is None and self.causal and self.queries == self.keys:
            return self.queries * self.keys / 2
        if self.bounds is None:
            return self.queries * self.keys
        low, high = self.bounds.limits(self.queries, self.keys)
        rows = np.arange(self.queries)
        seen = np.minimum(rows + high, self.keys) - np.maximum(rows + low, 0)
        return int(np.maximum(seen, 0).sum())

    @property
    def flops(self) -> int:
        """4·b·h·pairs·d: two products of two operations for each pair and element of a head.

        >>> AttentionShape(1, 1, 1, 10, 10, 64, causal=True).flops
        12800
        """
        return int(4 * self.batch * self.heads * self.pairs * self.head_dim)
