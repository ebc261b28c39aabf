"""Primitives of products of elements, summed or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import numpy as np

from tilewright.ir.expressions import ADJACENT, Constant, Expression
from tilewright.ir.nodes import Array, Primitive, PrimitiveOperands, Slice
from tilewright.records import dataclass
from tilewright.spec.dtype import DType
from tilewright.spec.products import product_meaning

#: The most bytes of adjacent rows of floats that a `SumProducts` takes; 16-bit types count as 32 bits.
SIDE_BYTES = 4096


@dataclass(frozen=True)
class SumProducts(Primitive):
    """to[i] = Σ left[t, i, j] · right[t, i, j] over all turns t and columns j, for every row i; or +=.

    Elements of rows are adjacent in left and right; or elements of columns are, there and in `to` (`right`
    may then have one element for all rows); or neither, and elements are processed one by one. Adjacent rows
    of floats take at most `SIDE_BYTES`.

    Attributes
    ----------
    to : the second stride is not used.
    left_turn, right_turn : from one turn to the next.
    added : sums are added to the previous values if it is not 0.
    right : without it the elements of `left` are summed.
    """

    word: ClassVar[str] = "sum_products"
    emission: ClassVar[str] = "rows.sum_of_products:emit_sum_products"
    long: ClassVar[bool] = True

    to: Slice
    left: Slice
    rows: Expression
    columns: Expression
    turns: Expression
    left_turn: Expression
    added: Expression
    right: Slice | None = None
    right_turn: Expression | None = None

    def rules(self, types: Mapping[str, DType]) -> Iterator[tuple[bool, str]]:
        """Factors of one type and one orientation."""
        factors = [factor for factor in (self.left, self.right) if factor is not None]
        for axis in (0, 1):
            alike = len({factor.strides[axis] == ADJACENT for factor in factors}) == 1
            alike |= axis == 0 and factors[-1].strides[0] == Constant(0)
            yield alike, "both factors have adjacent elements along the same axis"
        found = {types[name] for name in ("to", "left", "right") if name in types}
        yield len(found) == 1, "factors and sums have one type"
        yield (self.right is None) is (self.right_turn is None), "right and right_turn come together"

    def run(self, at: PrimitiveOperands) -> None:
        """The sums, as `product_meaning` has them."""
        rows, columns, turns = (at.number(name) for name in ("rows", "columns", "turns"))

        def stacked(name: str) -> Array:
            step = at.number(f"{name}_turn")
            windows = [at.window(name, rows, columns, shift=turn * step) for turn in range(turns)]
            if windows:
                return np.stack(windows)
            return np.zeros((0, rows, columns), at.window(name, 1, 1).dtype)

        right = None if self.right is None else stacked("right")
        to = at.window("to", rows, 1)[:, 0]
        found = product_meaning(stacked("left"), right, (0, 2))
        to[...] = found + to if at.number("added") else found


@dataclass(frozen=True)
class MultiplyRows(Primitive):
    """to[i, j] = left[i, j] · right[i, j].

    Elements of rows are adjacent, in `left` also one for each row; or in none, and it is one after the other.
    """

    word: ClassVar[str] = "multiply_rows"
    emission: ClassVar[str] = "rows.sum_of_products:emit_multiply_rows"

    to: Slice
    left: Slice
    right: Slice
    rows: Expression
    columns: Expression

    def rules(self, types: Mapping[str, DType]) -> Iterator[tuple[bool, str]]:
        """Factors of one type and one orientation."""
        vectors = self.to.strides[1] == ADJACENT
        alike = vectors is (self.right.strides[1] == ADJACENT)
        yield alike, "elements of rows are adjacent in to and right, or in neither"
        known = self.left.strides[1] in (Constant(0), ADJACENT)
        yield known or not vectors, "left has adjacent elements too, or one for each row"
        yield types["to"] == types["left"] == types["right"], "factors and products have one type"

    def run(self, at: PrimitiveOperands) -> None:
        """The products, as `product_meaning` has them."""
        shape = (at.number("rows"), at.number("columns"))
        left, right = (at.window(name, *shape) for name in ("left", "right"))
        at.window("to", *shape)[...] = product_meaning(left, right, None)
