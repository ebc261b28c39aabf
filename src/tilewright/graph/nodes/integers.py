"""Products of 8-bit integers with zero points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.calls.operands import Array
from tilewright.calls.repeated import in_python
from tilewright.graph.nodes.base import Node, ValueType
from tilewright.graph.nodes.products import MatmulNode
from tilewright.graph.sizes import Sizes, product
from tilewright.loops.nests.polynomial import Polynomial
from tilewright.ops.matmul.integers import matmul_integer
from tilewright.records import dataclass

_matmul_integer = in_python(matmul_integer)


@dataclass(frozen=True)
class MatmulIntegerNode(Node):
    """(a - a's zero point) @ (b - b's zero point), exact in int32; see `tilewright.matmul_integer`.

    Attributes
    ----------
    operands : a, b, then the zero points that there are.
    """

    a_zero: bool = False
    b_zero: bool = False

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """The shape of the product, int32."""
        for name, one in zip("ab", types, strict=False):
            self.require(one.dtype in (np.int8, np.uint8), f"{name} has dtype {one.dtype}, not int8 or uint8")
        return ValueType(np.dtype(np.int32), MatmulNode((0, 1)).infer(types[:2]).shape)

    def _zeros(self, arrays: Sequence[Any]) -> tuple[Any, Any]:
        rest = list(arrays[2:])
        return (rest.pop(0) if self.a_zero else None), (rest.pop(0) if self.b_zero else None)

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """In int64, modulo 2^32."""
        a, b = (one.astype(np.int64) for one in arrays[:2])
        zero_a, zero_b = self._zeros(arrays)
        if zero_a is not None:
            by_row = zero_a.ndim == 1 and zero_a.size > 1
            a = a - (zero_a[:, np.newaxis] if by_row else zero_a).astype(np.int64)
        if zero_b is not None:
            b = b - zero_b.astype(np.int64)
        return np.asarray(np.matmul(a, b)).astype(np.int32)

    def run(self, arrays: Sequence[Any], out: Array, sizes: Sizes) -> None:
        """By `tilewright.matmul_integer`."""
        a, b = arrays[:2]
        _matmul_integer(a, b, *self._zeros(arrays), out=out)

    def work(self, types: Sequence[ValueType], result: ValueType) -> Polynomial:
        """A multiplication and an addition for each element of the sums."""
        return product(result.shape) * types[0].shape[-1] * 2
