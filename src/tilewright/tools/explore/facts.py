"""What a report says about the machine it was measured on."""

from __future__ import annotations

import platform
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from tilewright.configuration import library_versions, tuning_text
from tilewright.machine.cores import Core, CpuIdentity
from tilewright.machine.isa import Isa
from tilewright.machine.measure import Measurement
from tilewright.machine.probe import CacheFacts, Fact
from tilewright.machine.tuning import Tuning

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tilewright.machine.host import HostFacts


def plain(value: object, *, origins: bool = False) -> Any:
    """A host fact as JSON values: the value alone, or ``{"value": ..., "origin": ...}``.

    >>> plain(Fact(8, "argument"), origins=True)
    {'value': 8, 'origin': 'argument'}
    """
    match value:
        case Fact():
            bare = plain(value.value)
            return {"value": bare, "origin": value.origin} if origins else bare
        case CacheFacts():
            return {f.name: plain(getattr(value, f.name), origins=origins) for f in fields(value)}
        case Isa() | Core():
            return value.name
        case CpuIdentity():
            return str(value)
        case Measurement():
            return asdict(value)
        case tuple():
            return [plain(one) for one in value]
        case Tuning():
            return f"{value.types}: {tuning_text(value)}"
        case _:
            return value


def machine_facts(facts: HostFacts, *, origins: bool = False) -> dict[str, Any]:
    """Every value known of the host, as JSON values."""
    return {f.name: plain(getattr(facts, f.name), origins=origins) for f in fields(facts)}


def reported_versions() -> dict[str, str]:
    """Versions of Python, LLVM, NumPy's BLAS and the packages that are installed."""
    return {"python": platform.python_version(), **library_versions()}


def describe_machine(facts: HostFacts) -> dict[str, Any]:
    """The "machine" part of a report: host facts, operating system and library versions."""
    return {
        **machine_facts(facts),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": reported_versions(),
    }


def machine_title(machine: Mapping[str, Any]) -> str:
    """The machine in a few words, for the title of a table or a plot.

    >>> machine_title({"cpu": "znver5", "isa": "avx512"})
    'znver5 (avx512)'
    """
    return f"{machine['cpu']} ({machine['isa']})"
