"""A set-associative cache hierarchy with least-recently-used replacement, fed with addresses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from tilewright.ir.accesses import Addresses
from tilewright.machine.cache import Cache


class CacheLevel:
    """One level: lines by their sets, the least recently used first."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self.sets: list[dict[int, None]] = [{} for _ in range(cache.sets)]

    def touch(self, line: int) -> bool:
        """Whether a line was there; it is now, as the last one used."""
        held = self.sets[line % len(self.sets)]
        found = line in held
        if found:
            del held[line]
        elif len(held) == self.cache.ways:
            del held[next(iter(held))]
        held[line] = None
        return found


class CacheHierarchy:
    """Levels that all get the lines which the level before lacks.

    Attributes
    ----------
    brought : by level (0: from L2 to L1), how many lines of each place the level before lacked; the last
        entry counts lines from memory.
    """

    def __init__(self, *caches: Cache) -> None:
        self.line = caches[0].line
        assert all(cache.line == self.line for cache in caches)
        self.levels = [CacheLevel(cache) for cache in caches]
        self.brought: list[Counter[int]] = [Counter() for _ in caches]

    def touch(self, addresses: Addresses, place_bytes: int) -> None:
        """Accesses in order; repeated ones of one line count once. A place is so many bytes."""
        lines = addresses // self.line
        changed = np.empty(len(lines), bool)
        changed[:1] = True
        np.not_equal(lines[1:], lines[:-1], out=changed[1:])
        a_place = place_bytes // self.line
        first, rest = self.levels[0], self.levels[1:]
        for line in lines[changed].tolist():
            if first.touch(line):
                continue
            self.brought[0][line // a_place] += 1
            for level, brought in zip(rest, self.brought[1:], strict=True):
                if level.touch(line):
                    break
                brought[line // a_place] += 1

    def run(self, groups: Iterable[Addresses], place_bytes: int) -> None:
        """All groups of accesses in order."""
        for addresses in groups:
            self.touch(addresses, place_bytes)
