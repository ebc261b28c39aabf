"""Transposes a square of vectors in registers by log2(lanes) rounds of two-operand shuffles."""

from __future__ import annotations

from tilewright.llvm.build import Function
from tilewright.llvm.values import Value


def rounds(lanes: int) -> tuple[tuple[int, tuple[int, ...], tuple[int, ...]], ...]:
    """The shuffles of each round: (distance, lanes of the low result, lanes of the high result).

    In the round of distance d, rows r and r+d exchange blocks of d lanes: the low result keeps the
    even blocks of both rows, the high result the odd ones. This is TRN1/TRN2 on Arm at every
    distance; x86 blends or permutes two registers, one instruction each with AVX-512.

    >>> rounds(2)
    ((1, (0, 2), (1, 3)),)
    """
    found = []
    distance = 1
    while distance < lanes:
        low, high = [], []
        for lane in range(lanes):
            block, inside = divmod(lane, distance)
            pair = block // 2 * 2 * distance + inside
            side = lanes if block % 2 else 0
            low.append(side + pair)
            high.append(side + pair + distance)
        found.append((distance, tuple(low), tuple(high)))
        distance *= 2
    return tuple(found)


def transpose(f: Function, rows: list[Value]) -> list[Value]:
    """Column vectors of a square given by its row vectors."""
    lanes = len(rows)
    for distance, low, high in rounds(lanes):
        following = list(rows)
        for row in range(lanes):
            if row & distance == 0:
                following[row] = f.shuffle(rows[row], rows[row + distance], low)
                following[row + distance] = f.shuffle(rows[row], rows[row + distance], high)
        rows = following
    return rows
