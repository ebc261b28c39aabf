"""`tilewright info`: this machine, its settings and its measured peak."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Any

import typer

from tilewright.calls.layout import why_not_native
from tilewright.compiler.measure_core import measure_core
from tilewright.compiler.peak import measure_peak, peak_name
from tilewright.compiler.pipeline import run_stages
from tilewright.configuration import show_config
from tilewright.machine.cores import Core
from tilewright.machine.host import HostFacts, default_thread_count, detect_host
from tilewright.machine.isa import Isa
from tilewright.machine.machine import Machine
from tilewright.machine.measure import Measurement, keep_measurement
from tilewright.macro.blocking import Blocking
from tilewright.ops.gemm.problem import Gemm
from tilewright.records import dataclass
from tilewright.settings import VARIABLES, read_settings
from tilewright.spec.dtype import GEMM_DTYPES, DType
from tilewright.store import store_for
from tilewright.threads.pool import pool_facts
from tilewright.tools.cli import terminal
from tilewright.tools.cli.options import group
from tilewright.tools.explore.facts import machine_facts, reported_versions

app = group()

#: Where figures are from that a core's row doesn't have.
_DEFAULT_CORE = "the row of the instruction set, costs as on Zen 5"

#: Which figures of a core the models use.
ROW_FIGURES, MEASURED_FIGURES, DEFAULT_FIGURES = "row", "measured", "default"


@dataclass(frozen=True)
class Info:
    """Everything `tilewright info` says; the fields are its JSON form."""

    machine: dict[str, Any]
    core: dict[str, dict[str, Any]]
    core_figures: dict[str, dict[str, float | None]]
    settings: dict[str, dict[str, Any]]
    versions: dict[str, str]
    threads: int
    pool: dict[str, Any]
    repeated_calls: str
    blocking: dict[str, dict[str, Any]]
    units: dict[str, str]
    peak_gflops: dict[str, float]


def _core_facts(facts: HostFacts, machine: Machine) -> dict[str, dict[str, Any]]:
    """What is known of the core besides its figures, each with its source."""
    row = facts.core.value
    source = row.source or _DEFAULT_CORE
    latency = source if row.fma_latency else f"default ({_DEFAULT_CORE})"
    found = {
        "figures used": (_used(machine), source),
        "FMA latency": (machine.isa.fma_latency, latency),
        "TLB pages": (" and ".join(map(str, row.tlb_pages)), source),
    }
    return {name: {"value": value, "origin": origin} for name, (value, origin) in found.items()}


def _used(machine: Machine) -> str:
    """Which figures of the core the models use."""
    if machine.measurement is not None:
        return MEASURED_FIGURES
    return ROW_FIGURES if machine.core.name else DEFAULT_FIGURES


def _figures(core: Core, isa: Isa) -> dict[str, float]:
    """The figures of a core that can be measured, at the width of a row."""
    rates = core.rates(isa.vector_bits)
    return {
        "FMAs a cycle": isa.fma_per_cycle if rates is None else rates.fmas,
        "loads a cycle": isa.loads_per_cycle if rates is None else rates.loads,
        "L1 bytes a cycle": core.l1_bytes_per_cycle,
        "L2 bytes a cycle": core.l2_bytes_per_cycle,
        "L3 bytes a cycle": core.l3_bytes_per_cycle,
        "memory bytes a cycle": core.memory_bytes_per_cycle,
        "set conflict, cycles": core.set_conflict_cycles,
        "page walk, cycles": core.page_walk_cycles,
    }


def _compared(machine: Machine, measurement: Measurement | None) -> dict[str, dict[str, float | None]]:
    """Each figure in the row or by default, as measured, their ratio, and which is used."""
    row = _figures(machine.core_row, machine.isa)
    used = _figures(machine.core, machine.timed_isa)
    measured: dict[str, float] = {}
    if measurement is not None:
        measured = _figures(measurement.applied_to(machine.core_row), machine.isa)
    return {
        name: {
            "row": row[name],
            "measured": measured.get(name),
            "ratio": measured[name] / row[name] if name in measured else None,
            "used": used[name],
        }
        for name in row
    }


def _measured_now(facts: HostFacts, machine: Machine) -> Measurement:
    """Measures the core, and keeps the result for later processes if no row describes it."""
    found = measure_core(machine)
    store = store_for(read_settings())
    if store is not None and not facts.core.value.name:
        keep_measurement(store, facts.kind.value, found)
    return found


def _collect_info(*, measure: bool) -> Info:
    settings = read_settings()
    facts = detect_host(settings)
    machine = facts.machine()

    def blocking(dtype: DType) -> dict[str, Any]:
        found = run_stages(Gemm(dtype=dtype), machine, until="blocking").blocking
        assert isinstance(found, Blocking)
        return asdict(found)

    measurement = _measured_now(facts, machine) if measure else machine.measurement
    return Info(
        machine=machine_facts(facts, origins=True),
        core=_core_facts(facts, machine),
        core_figures=_compared(machine, measurement),
        settings={
            variable.name: {"value": getattr(settings, variable.field), "meaning": variable.meaning}
            for variable in VARIABLES
        },
        versions=reported_versions(),
        threads=default_thread_count(settings, facts),
        pool=pool_facts(),
        repeated_calls=f"through Python: {reason}" if (reason := why_not_native()) else "machine code",
        blocking={str(dtype): blocking(dtype) for dtype in GEMM_DTYPES},
        units={str(dtype): peak_name(dtype, dtype, machine) for dtype in GEMM_DTYPES},
        peak_gflops={str(dtype): measure_peak(dtype, machine) for dtype in GEMM_DTYPES},
    )


#: Facts that only --json has: the key of files, and whether a variable names the CPU, which sources say.
_INTERNAL = frozenset({"kind", "named"})


def _lines(values: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Name, value and origin of every fact that says something; a cache level is one line."""
    before = ""
    for key, value in values.items():
        name = key.replace("_", " ")
        if key in _INTERNAL or (name.endswith(" bits") and not value["value"]):
            continue
        if value is None:
            yield name, "none", ""
        elif isinstance(value, bool):
            yield name, "yes" if value else "no", ""
        elif "origin" in value:
            origin = value["origin"]
            yield name, _shown(name, value["value"]), "as above" if origin == before else origin
            before = origin
        else:
            yield name, *_cache_level(value)


def _cache_level(level: dict[str, dict[str, Any]]) -> tuple[str, str]:
    """One level of cache, and the sources of its figures: files of Linux without their paths."""
    size, ways, line, shared = (level[name]["value"] for name in ("size", "ways", "line", "shared_by"))
    sharing = "" if shared is None else f", shared by {shared} cores" if shared > 1 else ", of one core"
    origins = dict.fromkeys(re.sub(r"^sysfs .*", "sysfs", one["origin"]) for one in level.values())
    return f"{_bytes(size)}, {ways} ways, lines of {line} bytes{sharing}", "; ".join(origins)


def _bytes(count: int) -> str:
    """A size in KiB, or in MiB if it is a whole number of these.

    >>> _bytes(32768), _bytes(2**21)
    ('32 KiB', '2 MiB')
    """
    return f"{count / 1024:g} KiB" if count % 2**20 else f"{count >> 20} MiB"


def _setting(value: object) -> str:
    """The value of a setting as its variable has it."""
    return "-" if value is None else str(int(value)) if isinstance(value, bool) else str(value)


def _number(value: float | None) -> str:
    """A figure for a person."""
    return "-" if value is None else f"{value:.3g}"


def _shown(name: str, value: object) -> str:
    """A value for a person; of the features those that the CPU has. --json has it all."""
    if name == "features":
        return " ".join(feature[1:] for feature in str(value).split(",") if feature.startswith("+"))
    if isinstance(value, int) and name.endswith("bytes"):
        return _bytes(value)
    if isinstance(value, list):
        return "; ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


@app.command()
def info(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure the core now, also one that a table describes.")
    ] = False,
    config: Annotated[
        bool,
        typer.Option("--config", help="Print what a bug report needs: tilewright.show_config()."),
    ] = False,
) -> None:
    """Show this machine, its settings and its measured peak."""
    if config:
        shown = show_config()
        typer.echo(json.dumps(asdict(shown), indent=2) if as_json else str(shown))
        return
    found = _collect_info(measure=measure)
    if as_json:
        typer.echo(json.dumps(asdict(found), indent=2))
        return
    console = terminal.console()
    facts = [*_lines(found.machine), *_lines(found.core)]
    facts.append(("threads", str(found.threads), "cores and settings"))
    facts += [(f"thread pool {name}", str(value), "this process") for name, value in found.pool.items()]
    facts.append(("repeated calls", found.repeated_calls, "this interpreter"))
    terminal.print_table(console, "machine", ("fact", "value", "source"), facts)
    figures = [
        (name, *(_number(values[column]) for column in ("row", "measured", "ratio", "used")))
        for name, values in found.core_figures.items()
    ]
    row = ROW_FIGURES if found.core["figures used"]["value"] == ROW_FIGURES else DEFAULT_FIGURES
    terminal.print_table(console, "core", ("figure", row, "measured", "ratio", "used"), figures)
    peaks = [
        (
            dtype,
            found.units[dtype],
            f"{peak:.1f}",
            " ".join(f"{key}={size}" for key, size in found.blocking[dtype].items()),
        )
        for dtype, peak in found.peak_gflops.items()
    ]
    headings = ("dtype", "multiplies with", "peak now, GFLOPS", "blocking")
    terminal.print_table(console, "element types, one core", headings, peaks)
    settings = [(name, _setting(entry["value"]), entry["meaning"]) for name, entry in found.settings.items()]
    terminal.print_table(
        console, "settings (environment variables)", ("variable", "value", "meaning"), settings
    )
    terminal.print_table(console, "versions", ("library", "version"), list(found.versions.items()))
