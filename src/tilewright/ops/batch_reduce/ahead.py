"""Which register tile of a product prefetches which part of the next one.

See docs/decisions/074-next-products.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from tilewright.ir.expressions import Constant, Expression, Name
from tilewright.ir.nodes import Loop, Slice, Statement

#: Tiles along one axis of C: (size, how many) of each run of equal ones, as `Cover` has them.
TileCounts = tuple[tuple[int, int], ...]


class NextMatrix(NamedTuple):
    """A matrix of the next product: its buffer, where it begins, its elements, and bytes of one."""

    buffer: str
    start: Expression
    elements: int
    element_bytes: int

    @property
    def bytes(self) -> int:
        """Of all its elements."""
        return self.elements * self.element_bytes


class Share(NamedTuple):
    """The tiles that prefetch one matrix.

    Attributes
    ----------
    matrix : what they prefetch.
    tiles : how many they are along the divided axis.
    step : elements that each prefetches in one step of the depth.
    """

    matrix: NextMatrix
    tiles: int
    step: int


class TileRun(NamedTuple):
    """Adjacent tiles of one size along an axis.

    Attributes
    ----------
    first, size : where the run begins, and rows or columns of each tile.
    tiles : how many.
    number : that of its first tile, along the axis or, where that is divided, within the share.
    share : what they prefetch, where the axis is divided.
    """

    first: int
    size: int
    tiles: int
    number: int
    share: Share | None

    def at(self, index: Expression) -> Expression:
        """The first row or column of a tile, given its index in the run."""
        return index * self.size + self.first

    def over(self, axis: str, body: Callable[[Expression], tuple[Statement, ...]]) -> tuple[Statement, ...]:
        """The statements for each tile, given its index in the run."""
        if self.tiles == 1:
            return body(Constant(0))
        return (Loop(axis, Constant(0), Constant(self.tiles), Constant(1), body(Name(axis))),)


class Shares(NamedTuple):
    """The tiles of a product in runs of rows and of columns, of which one axis is divided.

    Attributes
    ----------
    across : tiles along the other axis.
    depth : steps of each tile.
    """

    rows: list[TileRun]
    columns: list[TileRun]
    across: int
    depth: int

    def of_tile(self, row: TileRun, column: TileRun, i: Expression, j: Expression) -> Slice:
        """What a tile prefetches, given its indices in its runs."""
        along, over = (i + row.number, j + column.number)
        share = row.share
        if share is None:
            share, along, over = column.share, over, along
        assert share is not None, "one axis is divided"
        place = (along * self.across + over) * (share.step * self.depth)
        return Slice(share.matrix.buffer, share.matrix.start + place, (Constant(0), Constant(share.step)))


def share_tiles(
    matrices: Sequence[NextMatrix], heights: TileCounts, widths: TileCounts, depth: int
) -> Shares:
    """Divides the tiles of a product among the matrices of the next one, in their order, by their bytes.

    Along the axis that has more tiles; if there are fewer tiles than matrices, the smallest are left out.
    """
    rows, columns = (sum(count for _, count in parts) for parts in (heights, widths))
    by_rows = rows >= columns
    along, across = (rows, columns) if by_rows else (columns, rows)
    shares = _shares(matrices, along, across * depth)
    divided = list(_divided(heights if by_rows else widths, shares))
    others = list(_undivided(widths if by_rows else heights))
    return Shares(*((divided, others) if by_rows else (others, divided)), across, depth)


def _shares(matrices: Sequence[NextMatrix], tiles: int, steps: int) -> list[Share]:
    """Of so many tiles along an axis, for each of which there are so many steps of the depth."""
    left = sorted(matrices, key=lambda matrix: matrix.bytes, reverse=True)[:tiles]
    found = []
    for matrix in (one for one in matrices if one in left):
        own = round(tiles * matrix.bytes / sum(one.bytes for one in left))
        left.remove(matrix)
        own = max(1, min(tiles - len(left), own)) if left else tiles
        found.append(Share(matrix, own, -(-matrix.elements // (own * steps))))
        tiles -= own
    return found


def _divided(parts: TileCounts, shares: list[Share]) -> Iterator[TileRun]:
    """Runs of equal tiles, each within one share."""
    sizes = [size for size, count in parts for _ in range(count)]
    owners = [(share, number) for share in shares for number in range(share.tiles)]
    first = 0
    for (size, share), run in groupby(zip(sizes, owners, strict=True), key=lambda one: (one[0], one[1][0])):
        numbers = [number for _, (_, number) in run]
        yield TileRun(first, size, len(numbers), numbers[0], share)
        first += size * len(numbers)


def _undivided(parts: TileCounts) -> Iterator[TileRun]:
    """Runs of equal tiles."""
    first = number = 0
    for size, count in parts:
        yield TileRun(first, size, count, number, None)
        first, number = first + size * count, number + count
