"""`tilewright info`: this machine, its settings and its measured peak."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from tilewright.calls.layout import why_not_native
from tilewright.compiler.peak import measure_peak, peak_name
from tilewright.compiler.pipeline import run_stages
from tilewright.machine.host import default_thread_count, detect_host
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import Blocking
from tilewright.ops.gemm.problem import Gemm
from tilewright.settings import VARIABLES, read_settings
from tilewright.spec.dtype import GEMM_DTYPES, DType
from tilewright.threads.pool import pool_facts
from tilewright.tools.cli import terminal
from tilewright.tools.cli.options import group
from tilewright.tools.explore.facts import library_versions, machine_facts

app = group()

#: Where figures are from that a core's row doesn't have.
_DEFAULT_CORE = "the row of the instruction set, costs as on Zen 5"


@dataclass(frozen=True)
class Info:
    """Everything `tilewright info` says; the fields are its JSON form."""

    machine: dict[str, Any]
    core: dict[str, dict[str, Any]]
    settings: dict[str, dict[str, Any]]
    versions: dict[str, str]
    threads: int
    pool: dict[str, Any]
    repeated_calls: str
    blocking: dict[str, dict[str, Any]]
    units: dict[str, str]
    peak_gflops: dict[str, float]


def _core_facts(machine: Machine) -> dict[str, dict[str, Any]]:
    """The figures of the core that the models use, each with its source."""
    core, isa = machine.core, machine.isa
    source, default = core.source or _DEFAULT_CORE, f"default ({_DEFAULT_CORE})"
    found = {
        "micro-architecture": (core.name or "unknown", f"LLVM's name {machine.cpu}"),
        "FMAs a cycle": (isa.fma_per_cycle, source if core.vectors else default),
        "loads a cycle": (isa.loads_per_cycle, source if core.vectors else default),
        "FMA latency": (isa.fma_latency, source if core.fma_latency else default),
        "TLB pages": (" and ".join(map(str, core.tlb_pages)), source),
        "L2 bytes a cycle": (core.l2_bytes_per_cycle, source),
        "L3 bytes a cycle": (core.l3_bytes_per_cycle, source),
    }
    return {name: {"value": value, "origin": origin} for name, (value, origin) in found.items()}


def _collect_info() -> Info:
    settings = read_settings()
    facts = detect_host(settings)
    machine = facts.machine()

    def blocking(dtype: DType) -> dict[str, Any]:
        found = run_stages(Gemm(dtype=dtype), machine, until="blocking").blocking
        assert isinstance(found, Blocking)
        return asdict(found)

    return Info(
        machine=machine_facts(facts, origins=True),
        core=_core_facts(machine),
        settings={
            variable.name: {"value": getattr(settings, variable.field), "meaning": variable.meaning}
            for variable in VARIABLES
        },
        versions=library_versions(),
        threads=default_thread_count(settings, facts),
        pool=pool_facts(),
        repeated_calls=f"through Python: {reason}" if (reason := why_not_native()) else "machine code",
        blocking={str(dtype): blocking(dtype) for dtype in GEMM_DTYPES},
        units={str(dtype): peak_name(dtype, dtype, machine) for dtype in GEMM_DTYPES},
        peak_gflops={str(dtype): measure_peak(dtype, machine) for dtype in GEMM_DTYPES},
    )


def _leaves(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Name, value and origin of every fact; cache levels are nested one deep."""
    for name, value in values.items():
        full = f"{prefix}{name}".replace("_", " ")
        if value is None:
            yield full, "none", ""
        elif isinstance(value, bool):
            yield full, "yes" if value else "no", ""
        elif "origin" in value:
            yield full, _shown(full, value["value"]), value["origin"]
        else:
            yield from _leaves(value, f"{full} ")


def _shown(name: str, value: object) -> str:
    """A value for a person: sizes in KiB, and of the features those the CPU has; --json has it all."""
    if name == "features":
        return " ".join(feature[1:] for feature in str(value).split(",") if feature.startswith("+"))
    if isinstance(value, int) and name.endswith(("size", "bytes")):
        return f"{value / 1024:g} KiB"
    return "none" if value is None else str(value)


@app.command()
def info(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Show this machine, its settings and its measured peak."""
    found = _collect_info()
    if as_json:
        typer.echo(json.dumps(asdict(found), indent=2))
        return
    console = terminal.console()
    facts = [*_leaves(found.machine), *_leaves(found.core)]
    facts.append(("threads", str(found.threads), "cores and settings"))
    facts += [(f"thread pool {name}", str(value), "this process") for name, value in found.pool.items()]
    facts.append(("repeated calls", found.repeated_calls, "this interpreter"))
    terminal.print_table(console, "machine", ("value of", "is", "from"), facts)
    peaks = [
        (
            dtype,
            found.units[dtype],
            f"{peak:.1f}",
            " ".join(f"{key}={size}" for key, size in found.blocking[dtype].items()),
        )
        for dtype, peak in found.peak_gflops.items()
    ]
    columns = ("dtype", "multiplies with", "peak of one core, GFLOPS, measured now", "blocking")
    terminal.print_table(console, "element types", columns, peaks)
    settings = [
        (name, "-" if entry["value"] is None else str(entry["value"]), entry["meaning"])
        for name, entry in found.settings.items()
    ]
    terminal.print_table(console, "settings (environment variables)", ("variable", "is", "meaning"), settings)
    terminal.print_table(console, "versions", ("library", "version"), list(found.versions.items()))
