"""Heights of the register tiles that cover rows which are fewer than those of a whole tile."""

from __future__ import annotations

#: Heights of partial tiles. Four rows of two vectors keep both FMA pipes busy for their whole latency, so
#: more heights would gain little, and each costs 6 ms of the first call.
PARTIAL_HEIGHTS: tuple[int, ...] = (8, 4, 2, 1)

#: Those of tiles that may compute their last row twice, and the least one that does: it and taller ones take
#: one row less, too. So 3 and 5 to 7 rows are one tile, which reads B once
#: (docs/decisions/073-rows-computed-twice.md).
REPEATING_HEIGHTS: tuple[int, ...] = (8, 6, 4, 2, 1)
LEAST_REPEATING = 4


def least_rows(height: int, whole: int, *, repeats: bool) -> int:
    """The fewest rows that a tile takes: its height, or one less if it may compute its last row twice.

    Whole tiles need all registers, and never do.

    >>> least_rows(6, 12, repeats=True), least_rows(2, 12, repeats=True), least_rows(12, 12, repeats=True)
    (5, 2, 12)
    """
    return height - (repeats and LEAST_REPEATING <= height < whole)


def covering(rows: int, whole: int, *, repeats: bool) -> dict[int, int]:
    """How many tiles of each height cover some rows: whole ones, then partial ones, tallest first.

    >>> covering(31, 12, repeats=True), covering(31, 12, repeats=False)
    ({12: 2, 8: 1}, {12: 2, 4: 1, 2: 1, 1: 1})
    """
    partial = REPEATING_HEIGHTS if repeats else PARTIAL_HEIGHTS
    found: dict[int, int] = {}
    for height in (whole, *(height for height in partial if height < whole)):
        more = rows - least_rows(height, whole, repeats=repeats)
        if more >= 0:
            found[height] = more // height + 1
            rows -= found[height] * height
    return found
