"""What changed between two runs of the whole benchmark beyond noise.

The times of each system on each row are compared by the Mann-Whitney rank test, exactly, and the p-values of
all tests are adjusted by Holm's method: below 0.05, at most one comparison in twenty has any false finding.
Times count in units of the peak measured right before each, or of a pass over memory where that is the bound,
so a run at another clock rate is no change. Two runs differ by more than the samples within one: processes
have their memory elsewhere. So a change also has to be larger than `SMALLEST`, and larger than what most
peers differ by that are of the same version in both runs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tilewright.records import dataclass
from tilewright.tools.bench.results import OURS, Results, RowResult
from tilewright.tools.explore.statistics import holm, median, rank_test

#: Adjusted p-values below this are findings.
LEVEL = 0.05
#: Changes of less than this do not count, however sure they are.
SMALLEST = 0.05
#: Peers of the same version give the noise between runs if there are so many measurements of them; this share
#: of them lies within it.
ENOUGH, QUANTILE = 20, 0.95

#: The package whose version is that of a system.
_PACKAGES = {"numpy-best": "numpy", "inductor": "torch", "iree": "iree-base-compiler"}


@dataclass(frozen=True)
class Change:
    """One system on one row.

    Attributes
    ----------
    ratio : the new time over the old one: above 1, it became slower.
    p : adjusted.
    """

    key: str
    family: str
    label: str
    system: str
    ratio: float
    p: float

    @property
    def is_slower(self) -> bool:
        """Whether it became slower."""
        return self.ratio > 1


@dataclass(frozen=True)
class RunComparison:
    """Two runs side by side; the fields are the JSON form.

    Attributes
    ----------
    changes : those beyond noise, the largest first.
    tested : how many pairs of samples were compared.
    noise : changes that are smaller do not count: 0.05 is 5 %.
    noise_of_peers : what most peers of the same version differ by; None if there are too few.
    differences : what of the identity differs, as (old, new).
    only_old, only_new : rows that one run has alone.
    """

    changes: tuple[Change, ...]
    tested: int
    noise: float
    noise_of_peers: float | None
    differences: Mapping[str, tuple[Any, Any]]
    only_old: tuple[str, ...]
    only_new: tuple[str, ...]

    @property
    def is_slower(self) -> bool:
        """Whether tilewright became slower on a row."""
        return any(change.is_slower and change.system == OURS for change in self.changes)

    def to_json(self) -> str:
        """The comparison as a JSON text."""
        return json.dumps(asdict(self), indent=1) + "\n"


def compare(old: Results, new: Results) -> RunComparison:
    """Compare two runs; the method is described at the head of this file."""
    pairs = [(row, same) for row in new.rows if (same := old.find(row.key)) is not None]
    found: list[Change] = []
    for row, same in pairs:
        found += [_change(row, same, name) for name in row.names if name in same.names]
    drifts = sorted(abs(math.log(one.ratio)) for one in found if _is_same_peer(one.system, old, new))
    of_peers = None
    if len(drifts) >= ENOUGH:
        of_peers = math.expm1(drifts[math.ceil(QUANTILE * len(drifts)) - 1])
    noise = max(SMALLEST, of_peers or 0.0)
    adjusted = [
        Change(one.key, one.family, one.label, one.system, one.ratio, p)
        for one, p in zip(found, holm([one.p for one in found]), strict=True)
    ]
    beyond = [one for one in adjusted if one.p < LEVEL and abs(math.log(one.ratio)) > math.log1p(noise)]
    return RunComparison(
        changes=tuple(sorted(beyond, key=lambda one: -abs(math.log(one.ratio)))),
        tested=len(found),
        noise=noise,
        noise_of_peers=of_peers,
        differences=_differences(old.identity, new.identity),
        only_old=tuple(row.key for row in old.rows if new.find(row.key) is None),
        only_new=tuple(row.key for row in new.rows if old.find(row.key) is None),
    )


def _change(row: RowResult, same: RowResult, system: str) -> Change:
    """One pair of samples, with the p-value of its own test."""
    before, after = same.normalised(system), row.normalised(system)
    if row.is_memory_bound != same.is_memory_bound:  # at the border of both bounds: plain times
        before, after = list(same.of(system).seconds), list(row.of(system).seconds)
    ratio = median(after) / median(before)
    return Change(row.key, row.family, row.label, system, ratio, rank_test(before, after))


def _is_same_peer(system: str, old: Results, new: Results) -> bool:
    """Whether a system is a peer whose version is that of the other run."""
    package = _PACKAGES.get(system, system)
    versions = [run.identity.get("versions", {}).get(package) for run in (old, new)]
    return system != OURS and versions[0] == versions[1]


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Entries that differ; of versions only those."""
    found: dict[str, tuple[Any, Any]] = {}
    for name in dict.fromkeys((*old, *new)):
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        if isinstance(before, dict) and isinstance(after, dict):
            inner = _differences(before, after)
            found.update({f"{name}: {part}": values for part, values in inner.items()})
        else:
            found[name] = (before, after)
    return found
