"""Pairs of operands without a matrix product: elements are multiplied one by one, and summed or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilewright.calls.operands import Array
from tilewright.ops.sum_of_products.call import ProductsCall, plan_products

if TYPE_CHECKING:
    from tilewright.ops.einsum.matmul_pair import MatmulPair
    from tilewright.ops.einsum.scattered_pair import ScatteredPair


class ElementwisePair(NamedTuple):
    """Nothing is summed, or one operand has no axis of its own.

    Attributes
    ----------
    labels : of both operands and the result.
    otherwise : how types and places are multiplied that have no such kernel.
    """

    labels: tuple[str, str, str]
    otherwise: MatmulPair | ScatteredPair

    def call(self, a: Array, b: Array) -> ProductsCall | None:
        """The call of a kernel on arrays; None where no kernel suits."""
        if a.dtype != b.dtype or not (a.flags.aligned and b.flags.aligned):
            return None
        shapes, strides = (a.shape, b.shape), (a.strides, b.strides)
        return plan_products(self.labels[:2], self.labels[2], a.dtype, shapes, strides)

    def multiply(self, a: Array, b: Array) -> Array:
        """The result in memory of its own."""
        call = self.call(a, b)
        return self.otherwise.multiply(a, b) if call is None else call(a, b)

    def compute(self, a: Array, b: Array, out: Array | None, dtype: np.dtype[Any] | None) -> Array:
        """The result in `out`, or in memory of its own; computed in a type of its own."""
        # NumPy says that float64 == None.
        call = self.call(a, b) if dtype is None or dtype == a.dtype else None
        if call is None:
            return self.otherwise.compute(a, b, out, dtype)
        if out is None:
            return call(a, b)
        if out.dtype != a.dtype or not (out.flags.c_contiguous and out.flags.aligned):
            return self.otherwise.compute(a, b, out, dtype)
        call.into((a, b), out)
        return out
