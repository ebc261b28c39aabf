"""Products: linear layers, matrix products and einsum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np

from tilewright.calls.operands import Array
from tilewright.calls.recording import numpy_call
from tilewright.calls.repeated import in_python
from tilewright.graph.nodes.base import Node, ValueType, moved
from tilewright.graph.sizes import Sizes, broadcast, product
from tilewright.loops.nests.polynomial import Polynomial
from tilewright.ops.einsum.public import einsum
from tilewright.ops.linear.activations import quantize_rows
from tilewright.ops.matmul.public import matmul
from tilewright.records import dataclass
from tilewright.spec.functions import UnaryOp, meaning
from tilewright.typing import ActivationName

_matmul, _einsum, _quantize_rows = in_python(matmul), in_python(einsum), in_python(quantize_rows)


def activated(x: Array, activation: str | None) -> Array:
    """The meaning of an activation, in the type of x."""
    return x if activation is None else meaning(UnaryOp(activation), x).astype(x.dtype)


@dataclass(frozen=True)
class LinearNode(Node):
    """activation(x @ weight.T + bias) + residual.

    Attributes
    ----------
    operands : x, weight, then the bias and the residual where there are any.
    by_columns : whether the weight is stored (in, out), as packed ones are, and not (out, in).
    quantised_rows : whether x is rounded to 8 bits with a scale for each row, to meet a weight of 8 bits.
    dtype : of the result, where that is not the wider one of x and the weight.
    """

    activation: ActivationName | None = None
    bias: bool = False
    residual: bool = False
    by_columns: bool = False
    quantised_rows: bool = False
    dtype: np.dtype[Any] | None = None

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """(..., in) and the weight's (out, in) to (..., out)."""
        x, weight = types[:2]
        self.require(len(x.shape) >= 1, "x needs one dimension at least")
        self.require(len(weight.shape) == 2, f"a weight is (out, in), found {len(weight.shape)} dimensions")
        inner, outer = weight.shape if self.by_columns else weight.shape[::-1]
        self.require(x.shape[-1] == inner, f"x has {x.shape[-1]} columns, the weight {inner}")
        self.require(self.activation in (None, *get_args(ActivationName)), f"activation {self.activation!r}")
        shape = (*x.shape[:-1], outer)
        rest = list(types[2:])
        if self.bias:
            self.require(rest.pop(0).shape == (outer,), f"the bias must have {outer} elements")
        if self.residual:
            self.require(self.activation is None, "a residual is added to sums without an activation")
            self.require(rest.pop(0).shape == shape, "the residual must have the shape of the result")
        wider = x.dtype if weight.dtype.itemsize <= x.dtype.itemsize else weight.dtype
        return ValueType(self.dtype or wider, shape)

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """By `numpy.matmul`."""
        x, weight, *rest = arrays
        if self.dtype is not None:
            x, weight = x.astype(self.dtype), weight.astype(self.dtype)
        found = np.matmul(x, weight if self.by_columns else weight.T)
        if self.bias:
            found = found + rest.pop(0)
        found = activated(found, self.activation)
        return found + rest.pop(0) if self.residual else found

    def run(self, arrays: Sequence[Any], out: Array, sizes: Sizes) -> None:
        """One product with its epilogue; a residual is what the result is added to."""
        x, weight, *rest = arrays
        bias = rest.pop(0) if self.bias else None
        if self.quantised_rows:
            found = _matmul(
                _quantize_rows(x),
                weight,
                None if self.residual else out,
                bias=bias,
                activation=self.activation,
            )
            if self.residual:
                numpy_call(np.add, found, rest[0], out=out, quiet=True)
            return
        options: dict[str, Any] = {}
        if self.residual:
            if rest[0] is not out:
                moved(out, rest[0])
            options["beta"] = 1
        weight = weight if self.by_columns else weight.T
        _matmul(x, weight, out, bias=bias, activation=self.activation, **options)

    def in_place(self) -> tuple[int, ...]:
        """The residual's memory."""
        return (len(self.operands) - 1,) if self.residual else ()

    def work(self, types: Sequence[ValueType], result: ValueType) -> Polynomial:
        """A multiplication and an addition for each element of the sums."""
        return product(result.shape) * types[0].shape[-1] * 2


@dataclass(frozen=True)
class MatmulNode(Node):
    """alpha · a @ b, then an activation."""

    activation: ActivationName | None = None
    alpha: float = 1.0

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """As `numpy.matmul`."""
        a, b = types
        self.require(bool(a.shape and b.shape), "operands need one dimension at least")
        left = a.shape if len(a.shape) > 1 else (Polynomial.of(1), *a.shape)
        right = b.shape if len(b.shape) > 1 else (*b.shape, Polynomial.of(1))
        self.require(
            left[-1] == right[-2], f"a has {left[-1]} columns and b has {right[-2]} rows; these must be equal"
        )
        matrix = (*left[-2:-1][: len(a.shape) > 1], *right[-1:][: len(b.shape) > 1])
        shape = (*broadcast(self.name, (left[:-2], right[:-2])), *matrix)
        return ValueType(np.result_type(a.dtype, b.dtype), shape)

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """By `numpy.matmul`."""
        found = np.matmul(*arrays)
        return activated(found * found.dtype.type(self.alpha) if self.alpha != 1 else found, self.activation)

    def run(self, arrays: Sequence[Any], out: Array, sizes: Sizes) -> None:
        """By `tilewright.matmul`."""
        a, b = arrays
        _matmul(a, b, out, alpha=self.alpha, activation=self.activation)

    def work(self, types: Sequence[ValueType], result: ValueType) -> Polynomial:
        """A multiplication and an addition for each element of the sums."""
        return product(result.shape) * types[0].shape[-1] * 2


@dataclass(frozen=True)
class EinsumNode(Node):
    """`numpy.einsum` with explicit output labels and no ellipsis."""

    subscripts: str = ""

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """The sizes of the result's labels."""
        given, result = self.subscripts.split("->")
        terms = given.split(",")
        self.require(len(terms) == len(types), f"{self.subscripts!r} is of {len(terms)} operands")
        sizes: dict[str, Polynomial] = {}
        for term, one in zip(terms, types, strict=True):
            self.require(len(term) == len(one.shape), f"{term!r} is of {len(term)} dimensions, not {one}")
            for label, size in zip(term, one.shape, strict=True):
                known = sizes.setdefault(label, size)
                self.require(known == size, f"label {label} has sizes {known} and {size}")
        self.require(set(result) <= set(sizes), f"{result!r} has labels of no operand")
        dtype = np.result_type(*(one.dtype for one in types))
        return ValueType(dtype, tuple(sizes[label] for label in result))

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """By `numpy.einsum`."""
        found: Array = np.einsum(self.subscripts, *arrays)
        return found

    def run(self, arrays: Sequence[Any], out: Array, sizes: Sizes) -> None:
        """By `tilewright.einsum`."""
        _einsum(self.subscripts, *arrays, out=out)

    def work(self, types: Sequence[ValueType], result: ValueType) -> Polynomial:
        """A multiplication and an addition for each point of the labels' space."""
        terms = self.subscripts.split("->")[0].split(",")
        known = {
            label: size
            for term, one in zip(terms, types, strict=True)
            for label, size in zip(term, one.shape, strict=True)
        }
        return product(tuple(known.values())) * 2
