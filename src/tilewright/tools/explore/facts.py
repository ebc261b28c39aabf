"""What a report says about the machine it was measured on."""

from __future__ import annotations

import platform
from dataclasses import asdict, fields
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from tilewright.machine.cores import Core, CpuIdentity
from tilewright.machine.isa import Isa
from tilewright.machine.measure import Measurement
from tilewright.machine.probe import CacheFacts, Fact
from tilewright.machine.tuning import Tuning

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tilewright.machine.host import HostFacts

#: Packages whose versions decide about speed.
PACKAGES = (
    "tilewright",
    "llvmlite",
    "numpy",
    "torch",
    "jax",
    "onnxruntime",
    "scipy",
    "numba",
    "iree-base-compiler",
)


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


def tuning_text(tuning: Tuning) -> str:
    """The constants of a tuning that are replaced.

    >>> from tilewright.machine.tuning import TunedConstant
    >>> tuning_text(Tuning("f32", (TunedConstant("mr", 6, 6), TunedConstant("strip", 6, 12))))
    'strip 6 -> 12'
    """
    changed = [one for one in tuning.constants if one.model != one.value]
    return ", ".join(f"{one.name} {one.model} -> {one.value}" for one in changed)


def machine_facts(facts: HostFacts, *, origins: bool = False) -> dict[str, Any]:
    """Every value known of the host, as JSON values."""
    return {f.name: plain(getattr(facts, f.name), origins=origins) for f in fields(facts)}


def library_versions() -> dict[str, str]:
    """Versions of Python, LLVM, NumPy's BLAS and the packages that are installed."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    import llvmlite.binding as llvm

    found["llvm"] = ".".join(map(str, llvm.llvm_version_info))
    found["numpy blas"] = _numpy_blas()
    return found


def _numpy_blas() -> str:
    import numpy as np

    config: Any = np.show_config(mode="dicts")
    blas = config.get("Build Dependencies", {}).get("blas", {})
    return f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()


def describe_machine(facts: HostFacts) -> dict[str, Any]:
    """The "machine" part of a report: host facts, operating system and library versions."""
    return {
        **machine_facts(facts),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": library_versions(),
    }


def machine_title(machine: Mapping[str, Any]) -> str:
    """The machine in a few words, for the title of a table or a plot.

    >>> machine_title({"cpu": "znver5", "isa": "avx512"})
    'znver5 (avx512)'
    """
    return f"{machine['cpu']} ({machine['isa']})"
