"""Whether tilewright is faster than the fastest peer of a row, or slower, or neither beyond noise."""

from __future__ import annotations

from enum import Enum

from tilewright.tools.bench.results import RowResult


class Verdict(Enum):
    """What the confidence interval of the ratio to the fastest peer says."""

    FASTER = "faster"
    EVEN = "even"
    SLOWER = "slower"
    ALONE = "no peer"


def verdict_of(row: RowResult) -> Verdict:
    """Faster or slower where the 95 % confidence interval of the ratio excludes 1."""
    if not row.peers:
        return Verdict.ALONE
    lower, upper = row.ratio_interval(row.peers[0])
    if lower > 1:
        return Verdict.FASTER
    return Verdict.SLOWER if upper < 1 else Verdict.EVEN
