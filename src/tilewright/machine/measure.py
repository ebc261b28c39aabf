"""What was measured of a core that no row describes: the record, and where it is kept between processes.

The measuring itself is machine code (`compiler/measure_core.py`). It happens once for each kind of CPU; the
result is kept in the store of this package. A process reads what is kept when it first describes its host,
and stays with that: its machine never changes. See docs/decisions/047-measured-cores.md.
"""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import asdict, fields, replace
from functools import cache
from math import isfinite
from typing import Any

from tilewright.machine.cores import Core, VectorRates
from tilewright.records import dataclass
from tilewright.store import ObjectCache

logger = logging.getLogger("tilewright.machine")

#: Changes with what is measured and how, so that results of other versions are measured again.
MEASURE_VERSION = 1

#: Figures are kept in this many significant digits: the third changes from run to run.
DIGITS = 2


@dataclass(frozen=True)
class Measurement:
    """What one core did in a short measurement.

    Attributes
    ----------
    clock_ghz : of a chain of dependent additions of integers, one a cycle.
    vector_bits : width of the vectors of all other figures.
    fmas, loads : of vectors, that start in a cycle.
    l1_bytes_per_cycle, l2_bytes_per_cycle, l3_bytes_per_cycle, memory_bytes_per_cycle : of sequential reads.
        Without an L3, the third is that of memory.
    set_conflict_cycles, page_walk_cycles : as in `Core`.
    """

    clock_ghz: float
    vector_bits: int
    fmas: float
    loads: float
    l1_bytes_per_cycle: float
    l2_bytes_per_cycle: float
    l3_bytes_per_cycle: float
    memory_bytes_per_cycle: float
    set_conflict_cycles: float
    page_walk_cycles: float

    def rounded(self) -> Measurement:
        """The same in two significant digits.

        >>> Measurement(3.456, 256, 1.996, 2.04, 60.7, 31.9, 22.4, 7.77, 2.04, 11.6).rounded().fmas
        2.0
        """
        figures: dict[str, Any] = asdict(self)
        rounded: dict[str, Any] = {name: float(f"{value:.{DIGITS}g}") for name, value in figures.items()}
        return Measurement(**{**rounded, "vector_bits": self.vector_bits})

    def applied_to(self, core: Core) -> Core:
        """A core with the measured figures, and everything else as it was."""
        return replace(
            core,
            vectors=(VectorRates(self.vector_bits, fmas=self.fmas, loads=self.loads, stores=self.loads / 2),),
            **{name: getattr(self, name) for name in MEASURED},
        )

    def encoded(self) -> bytes:
        """The record as bytes."""
        return json.dumps(asdict(self)).encode()


#: Figures of `Core` that a measurement replaces, besides the rates of vectors.
MEASURED = tuple(field.name for field in fields(Measurement) if field.name in Core.__dataclass_fields__)


def decode_measurement(content: bytes) -> Measurement | None:
    """The record in some bytes; None unless each figure is there, finite and positive.

    >>> decode_measurement(b'{"clock_ghz": 3.5}') is None
    True
    """
    try:
        found = json.loads(content)
    except ValueError:
        return None
    names = [field.name for field in fields(Measurement)]
    if not isinstance(found, dict) or list(found) != names:
        return None
    numbers = [value for value in found.values() if isinstance(value, (int, float))]
    if len(numbers) < len(names) or not all(isfinite(value) and value > 0 for value in numbers):
        return None
    return Measurement(**{**found, "vector_bits": int(found["vector_bits"])})


def measurement_key(cpu: str) -> bytes:
    """The name in the store of what was measured on a kind of CPU.

    Parameters
    ----------
    cpu : everything that figures depend on: the CPU's numbers, the row, its caches and pages.
    """
    return hashlib.sha256(f"core measurement\0{MEASURE_VERSION}\0{cpu}".encode()).digest()


def load_measurement(store: ObjectCache | None, cpu: str) -> Measurement | None:
    """What is kept of a kind of CPU; an entry that makes no sense counts as missing."""
    content = None if store is None else store.load(measurement_key(cpu))
    return None if content is None else decode_measurement(content)


def keep_measurement(store: ObjectCache, cpu: str, measurement: Measurement) -> None:
    """Keeps a measurement, in place of the one that was there."""
    store.store(measurement_key(cpu), measurement.rounded().encoded())


@cache
def kept_measurement(store: ObjectCache | None, cpu: str) -> Measurement | None:
    """What was kept of a kind of CPU when this process first asked."""
    return load_measurement(store, cpu)
