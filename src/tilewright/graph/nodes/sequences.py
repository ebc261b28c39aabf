"""What models of sequences have beside products: look-ups of embeddings, rotary positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np

from tilewright.calls.indices import checked_indices
from tilewright.calls.operands import Array
from tilewright.graph.nodes.base import Node, ValueType
from tilewright.graph.sizes import Sizes
from tilewright.ops.embedding.call import prepare_embedding
from tilewright.ops.rotary.call import prepare_rotary
from tilewright.records import dataclass
from tilewright.spec.rotary import Pairing
from tilewright.typing import AttentionLayoutName

#: The place of the token axis, by layout.
_TOKENS = {"bhsd": -2, "bshd": -3}


@dataclass(frozen=True)
class EmbeddingNode(Node):
    """Rows of a table at indices, which every run checks before it writes.

    Attributes
    ----------
    operands : the table, the indices.
    """

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """The shape of the indices with the columns of the table."""
        table, indices = types
        self.require_dtype(table, "table", "f", "a floating-point type")
        self.require_dtype(indices, "indices", "iu", "an integer type")
        self.require(len(table.shape) == 2, f"the table has {len(table.shape)} dimensions, must have 2")
        return ValueType(table.dtype, (*indices.shape, table.shape[1]))

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """By indexing, after the check."""
        table, indices = arrays
        return np.asarray(table[checked_indices(indices, "indices", len(table))])

    def run(self, arrays: Sequence[Any], out: Array, sizes: Sizes) -> None:
        """By the kernel of `tilewright.embedding`."""
        table, indices = arrays
        prepare_embedding(table, indices, out, None).run()


@dataclass(frozen=True)
class RotaryNode(Node):
    """Queries or keys whose pairs of elements are rotated by angles of their positions; `tilewright.rotary`.

    Attributes
    ----------
    operands : x, cosines, sines, and positions if there are any.
    """

    interleaved: bool = False
    layout: AttentionLayoutName = "bhsd"

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """The type of x."""
        x, cos, sin, *positions = types
        self.require(self.layout in get_args(AttentionLayoutName), f"no layout {self.layout!r}")
        self.require(2 <= len(x.shape) <= 4, f"x has {len(x.shape)} dimensions, must have 2 to 4")
        for name, one in (("x", x), ("cos", cos), ("sin", sin)):
            self.require_dtype(one, name, "f", "a floating-point type")
        self.require(len(cos.shape) == 2 and cos == sin, "cos and sin must be tables of one type and shape")
        pairs, width = cos.shape[1].constant, x.shape[-1].constant
        if pairs is not None and width is not None:
            self.require(2 * pairs <= width, f"{pairs} pairs are rotated in heads of {width} elements")
        for one in positions:
            self.require_dtype(one, "positions", "iu", "an integer type")
            self.require(len(one.shape) <= 2, "positions must have 2 dimensions at most")
        return x

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """In float64, rounded once."""
        x, cos, sin, *positions = arrays
        tokens = -2 if x.ndim == 2 else _TOKENS[self.layout]
        places = positions[0] if positions else np.arange(x.shape[tokens])
        places = checked_indices(places, "positions", len(cos))
        angles = []
        for table in (cos, sin):
            rows = table[places].astype(np.float64)  # (batch, tokens, pairs) or (tokens, pairs)
            if tokens == -3 or rows.ndim > 2:  # an axis for the heads
                rows = np.expand_dims(rows, -2 if tokens == -3 else -3)
            angles.append(rows)
        c, s = angles
        pairs = cos.shape[1]
        found = x.astype(np.float64)
        first, second = (
            (slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2))
            if self.interleaved
            else (slice(pairs), slice(pairs, 2 * pairs))
        )
        a, b = found[..., first].copy(), found[..., second].copy()
        found[..., first], found[..., second] = a * c - b * s, b * c + a * s
        return found.astype(x.dtype)

    def run(self, arrays: Sequence[Any], out: Array, sizes: Sizes) -> None:
        """By the kernel of `tilewright.rotary`."""
        x, cos, sin, *positions = arrays
        pairing = Pairing.INTERLEAVED if self.interleaved else Pairing.HALVES
        places = positions[0] if positions else None
        prepare_rotary(x, (cos, sin), places, out, pairing=pairing, layout=self.layout).run()

    def in_place(self) -> tuple[int, ...]:
        """The memory of x."""
        return (0,)
