"""Expected speed of matrix products, one row per measured CPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Expectation:
    """Float32 products from n = 256 on, one thread, on one CPU; docs/performance.md has the tables.

    Attributes
    ----------
    cpu : LLVM's name.
    share : share of the FMA peak.
    peers : speed compared with peers.
    """

    cpu: str
    share: str
    peers: str


#: One row per CPU that a page of docs/performance.md has tables of.
EXPECTATIONS = (
    Expectation(
        "znver4",
        "85 to 92 %",
        "1.0 to 1.1 of best peer",
    ),
    Expectation(
        "znver5",
        "87 to 96 %",
        "1.8 to 2.1 of AVX2 NumPy",
    ),
)


def expectation_line(machine: Mapping[str, Any]) -> str:
    """A line on the expected speed on CPUs like that of a report.

    >>> expectation_line({"cpu": "z80", "isa": "generic128"})
    'expected on z80: unknown, docs/performance.md has znver4, znver5'
    """
    cpu = machine["cpu"]
    for row in EXPECTATIONS:
        if row.cpu == cpu:
            return f"expected on {cpu} from n = 256: {row.share} of peak, {row.peers}"
    measured = ", ".join(row.cpu for row in EXPECTATIONS)
    return f"expected on {cpu}: unknown, docs/performance.md has {measured}"
