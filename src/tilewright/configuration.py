"""`show_config`: versions, machine, settings and state of this process, as text for a bug report."""

from __future__ import annotations

import platform
import sys
from dataclasses import asdict, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from tilewright.calls.layout import why_not_native
from tilewright.installation.state import state
from tilewright.machine.host import HostFacts, default_thread_count, detect_host
from tilewright.machine.tuning import Tuning
from tilewright.notebook import entry, facts_table
from tilewright.records import dataclass
from tilewright.settings import VARIABLES, Settings, read_settings
from tilewright.store import store_for
from tilewright.threads.pool import pool_facts

#: Packages that are named with their versions where they are installed: those that every call needs, those
#: that the command line needs, and those that this package works with.
PACKAGES = (
    *("tilewright", "llvmlite", "numpy", "ml_dtypes", "opt_einsum", "platformdirs", "rich", "typer"),
    *("torch", "jax", "onnx", "onnxruntime", "scipy", "numba", "iree-base-compiler"),
    *("dask", "einops", "safetensors", "threadpoolctl"),
)


@dataclass(frozen=True)
class Configuration:
    """What a bug report needs to know; prints as text, and as a table in notebooks.

    Attributes
    ----------
    versions : of Python, the operating system, LLVM, NumPy's BLAS and packages that are installed.
    machine : the CPU, its row, caches, cores and threads.
    settings : environment variables that are set, by name.
    state : how calls run in this process, and where compiled objects are kept.
    """

    versions: dict[str, str]
    machine: dict[str, str]
    settings: dict[str, str]
    state: dict[str, str]

    def __str__(self) -> str:
        lines = []
        for one in fields(self):
            lines.append(f"[{one.name}]")
            facts: dict[str, str] = getattr(self, one.name)
            width = max(map(len, facts), default=0)
            lines += [f"{name:<{width}}  {value}" for name, value in facts.items()] or ["none"]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """What notebooks show."""
        sections: dict[str, dict[str, str]] = asdict(self)
        return entry("tilewright.show_config()", *(facts_table(facts.items()) for facts in sections.values()))


def show_config() -> Configuration:
    """Versions, machine, settings and state of this process: paste it into a bug report.

    Nothing is measured or compiled, and the name of the home directory is left out.

    Returns
    -------
    Configuration
        Prints as text; its fields are dictionaries.

    Examples
    --------
    >>> import tilewright as tw
    >>> "python" in tw.show_config().versions
    True
    >>> print(tw.show_config())  # doctest: +SKIP
    [versions]
    python  3.13.5 (CPython)
    ...
    """
    settings = read_settings()
    facts = detect_host(settings)
    return Configuration(
        {"python": _interpreter(), "system": _system(), **library_versions()},
        _machine(facts, settings),
        {
            one.name: _setting(getattr(settings, one.field))
            for one in VARIABLES
            if getattr(settings, one.field) != getattr(_UNSET, one.field)
        },
        _state(settings),
    )


def _setting(value: object) -> str:
    """The value of a setting; files and folders without the name of the home directory."""
    return without_home(Path(value)) if isinstance(value, str) and value else str(value)


#: Settings of an environment without variables of this package.
_UNSET = Settings()


def _interpreter() -> str:
    """Version and implementation of Python, and whether it has its lock."""
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    kind = platform.python_implementation() + ("" if gil else ", without the GIL")
    return f"{platform.python_version()} ({kind})"


def _system() -> str:
    """The operating system and its C library."""
    libc = " ".join(platform.libc_ver())
    return f"{platform.system()} {platform.release()} {platform.machine()} {libc}".strip()


def library_versions() -> dict[str, str]:
    """Versions of LLVM, NumPy's BLAS and the packages that are installed."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found | {"llvm": ".".join(map(str, llvm.llvm_version_info)), "numpy blas": _numpy_blas()}


def _numpy_blas() -> str:
    """The BLAS that NumPy was built with."""
    config: Any = np.show_config(mode="dicts")
    blas = config.get("Build Dependencies", {}).get("blas", {})
    return f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()


def _machine(facts: HostFacts, settings: Settings) -> dict[str, str]:
    """The CPU as the models see it."""
    machine = facts.machine()
    levels = [level for level in (facts.l1, facts.l2, facts.l3) if level is not None]
    caches = ", ".join(f"{level.size.value >> 10} KiB" for level in levels)
    changed = [row for row in facts.table() if row[2].startswith("TILEWRIGHT_")]
    return {
        "cpu": f"{machine.cpu} ({facts.identity.value or 'no numbers of its own'})",
        "row": f"{machine.isa.name} ({facts.isa.origin})",
        "core": machine.core.name or "no row: " + ("measured" if machine.measurement else "default figures"),
        "caches": caches,
        "cores": f"{facts.cores.value} ({facts.cores.origin})",
        "threads": str(default_thread_count(settings, facts)),
        "tuned": "; ".join(f"{one.types}: {tuning_text(one)}" for one in machine.tunings) or "nothing",
        "changed by settings": ", ".join(name for name, _, _ in changed) or "nothing",
    }


def _state(settings: Settings) -> dict[str, str]:
    """How calls run in this process."""
    reason = why_not_native()
    store = store_for(settings)
    kept = "off"
    if store is not None:
        sizes = [one.size for one in store.entries()]
        kept = f"{without_home(store.directory)}: {len(sizes)} objects, {sum(sizes)} bytes"
    pool = ", ".join(f"{name} {value}" for name, value in pool_facts().items())
    return {
        "repeated calls": "machine code" if reason is None else f"through Python: {reason}",
        "NumPy's products": "replaced (tilewright.install)" if state().active else "NumPy's own",
        "thread pool": pool,
        "object cache": kept,
    }


def without_home(path: Path) -> str:
    """A path for others to read: the home directory, which has a person's name, as ~.

    >>> without_home(Path.home() / "a")
    '~/a'
    """
    home = Path.home()
    return f"~/{path.relative_to(home).as_posix()}" if path.is_relative_to(home) else str(path)


def tuning_text(tuning: Tuning) -> str:
    """The constants of a tuning that are replaced.

    >>> from tilewright.machine.tuning import TunedConstant
    >>> tuning_text(Tuning("f32", (TunedConstant("mr", 6, 6), TunedConstant("strip", 6, 12))))
    'strip 6 -> 12'
    """
    changed = [one for one in tuning.constants if one.model != one.value]
    return ", ".join(f"{one.name} {one.model} -> {one.value}" for one in changed)
