"""The record of one level of data cache."""

from __future__ import annotations

from tilewright.errors import InvalidSize
from tilewright.records import dataclass


@dataclass(frozen=True)
class Cache:
    """One level of data cache as one core sees it.

    Attributes
    ----------
    size : bytes.
    ways : associativity.
    line : bytes of a cache line.
    shared_by : number of usable cores that share it.
    """

    size: int
    ways: int
    line: int
    shared_by: int = 1

    def __post_init__(self) -> None:
        for name in ("size", "ways", "line", "shared_by"):
            if getattr(self, name) <= 0:
                raise InvalidSize(name=f"cache {name}", found=getattr(self, name), required="positive")

    @property
    def sets(self) -> int:
        """Number of sets."""
        return max(1, self.size // (self.ways * self.line))
