"""Caches of keys and values, which are inputs that a run writes to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np

from tilewright.calls.operands import Array
from tilewright.graph.nodes.base import Node, ValueType
from tilewright.graph.sizes import Sizes
from tilewright.ops.attention.kv_cache import AppendRequest, prepare_append
from tilewright.ops.quantized.rows import quantised_rows
from tilewright.records import dataclass
from tilewright.spec.dtype import F32
from tilewright.typing import AttentionLayoutName

#: Operands that an append may have behind the caches, the new rows and the lengths.
APPEND_BESIDE = ("new_lengths", "block_table", "key_scales", "value_scales")
_SCALES = ("key_scales", "value_scales")
#: Element types of a cache with scales of rows, and without: NumPy's kind, in words.
_SCALED, _PLAIN = ("i", "int8"), ("f", "a floating-point type, or int8 with scales")


def _quantised(rows: Array) -> tuple[Array, Array]:
    """Rows as int8, and their scales."""
    found = quantised_rows(np.ascontiguousarray(rows, np.float32), F32)
    return found.q, found.scales


@dataclass(frozen=True)
class AppendNode(Node):
    """New keys and values behind those that caches hold; the new lengths. See `tilewright.append_kv`.

    Attributes
    ----------
    operands : k_cache, v_cache, k, v, kv_lengths, then those that `beside` names.
    beside : names out of `APPEND_BESIDE`.
    """

    beside: tuple[str, ...] = ()
    layout: AttentionLayoutName = "bhsd"

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """A length of each sequence."""
        self.require(self.layout in get_args(AttentionLayoutName), f"no layout {self.layout!r}")
        caches, new, lengths = types[:2], types[2:4], types[4]
        for name, scales, cache, one in zip("kv", _SCALES, caches, new, strict=True):
            both = len(cache.shape) == len(one.shape) == 4
            self.require(both, f"{name} and its cache must have 4 dimensions")
            self.require(cache.shape[-1] == one.shape[-1], f"{name} and its cache have other columns")
            self.require_dtype(one, name, "f", "a floating-point type")
            self.require_dtype(cache, f"{name}_cache", *(_SCALED if scales in self.beside else _PLAIN))
        self.require_dtype(lengths, "kv_lengths", "iu", "an integer type")
        for name, one in zip(self.beside, types[5:], strict=True):
            self.require(name in APPEND_BESIDE, f"no operand {name!r}; known: {', '.join(APPEND_BESIDE)}")
            kinds = ("f", "a floating-point type") if name in _SCALES else ("iu", "an integer type")
            self.require_dtype(one, name, *kinds)
        return ValueType(np.dtype(np.int64), new[0].shape[:1])

    def writes(self) -> tuple[int, ...]:
        """The caches, and those of scales."""
        return (0, 1, *(5 + at for at, name in enumerate(self.beside) if name in _SCALES))

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """Row by row."""
        k_cache, v_cache, k, v, lengths, *rest = arrays
        beside = dict(zip(self.beside, rest, strict=True))
        heads = 2 if self.layout == "bshd" else 1  # the axis of heads goes to the front of (tokens, columns)
        first = np.broadcast_to(lengths, len(k)).astype(np.int64)
        count = np.broadcast_to(np.asarray(beside.get("new_lengths", k.shape[3 - heads])), len(k))
        table = beside.get("block_table")
        for name, cache, new in zip(_SCALES, (k_cache, v_cache), (k, v), strict=True):
            targets = np.moveaxis(cache, heads, 1)
            scales = np.moveaxis(beside[name], heads, 1) if name in beside else None
            size = targets.shape[2]
            for sequence, rows in enumerate(np.moveaxis(new, heads, 1)):
                for number in range(count[sequence]):
                    page, place = divmod(int(first[sequence]) + number, size)
                    at = (sequence if table is None else table[sequence, page], slice(None), place)
                    row = rows[:, number]
                    if scales is not None:
                        row, scales[at] = _quantised(row)
                    targets[at] = row
        return np.asarray(first + count)

    def run(self, arrays: Sequence[Any], out: Array, sizes: Sizes) -> None:
        """By the machine code of `tilewright.append_kv`."""
        k_cache, v_cache, k, v, lengths, *rest = arrays
        beside = dict(zip(self.beside, rest, strict=True))
        scales = tuple(beside.pop(name, None) for name in _SCALES)
        request = AppendRequest(
            (k_cache, v_cache), (k, v), lengths, **beside, scales=(scales[0], scales[1]), layout=self.layout
        )
        prepare_append(request, out).run()
