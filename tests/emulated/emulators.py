"""What runs the machines of the catalogue here: the user mode of qemu, and the C compiler of zig to link."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from platformdirs import user_cache_path

from tilewright.machine.catalog import CATALOG
from tilewright.machine.isa import TileFma
from tilewright.machine.isa_rows import usable_isas
from tilewright.machine.machine import Machine, enabled_features

HARNESS = Path(__file__).parent / "harness.c"
LIBC = Path(__file__).parent / "libc"
#: A binary that takes longer than this hangs.
SECONDS = 300


@dataclass(frozen=True)
class Emulator:
    """One row: what runs the machines of an architecture and an instruction-set row.

    Attributes
    ----------
    arch : as `Machine.arch`.
    isa : name of the row; "" for every row of the architecture.
    zig : target of the C compiler.
    cpu : qemu's -cpu, with {vector_bits}, {vector_bytes} and {power} (pwr9 -> power9) of the machine, and
        {tile_bytes}, the length of vectors whose outer products are one of its instructions.
    cpus : LLVM's name -> qemu's, where qemu has the very CPU, which knows no instruction more.
    slack_bytes : what may be read behind an operand. qemu 7.2 reads all of a vector that VMASKMOV loads and
        masks it afterwards: from an operand's end to as far behind as a tile is wide. The CPU does not touch
        what is masked, as tests/guard_pages see.
    longer : the same CPU with longer vectors, which must give the same results.
    wrong : instructions that qemu 7.2 computes something else with.
    lacks : features of the row's instructions that qemu 7.2 does not have.
    """

    arch: str
    isa: str
    zig: str
    cpu: str
    cpus: tuple[tuple[str, str], ...] = ()
    slack_bytes: int = 0
    longer: str = ""
    wrong: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()

    def runs(self, tile: TileFma) -> bool:
        """Whether an instruction gives what it should."""
        return tile.instruction not in self.wrong and tile.feature not in self.lacks

    def command(self, machine: Machine) -> list[str]:
        """The emulator and its options; the binary follows."""
        name = f"qemu-{self.arch.replace('powerpc', 'ppc')}"
        power = machine.cpu.replace("pwr", "power")
        vector_bits = machine.isa.vector_bits
        tile_bits = max(
            (tile.n * tile.acc.bits for tile in machine.isa.tiles if tile.accumulators), default=vector_bits
        )
        common = self.cpu.format(
            vector_bits=vector_bits, vector_bytes=vector_bits // 8, tile_bytes=tile_bits // 8, power=power
        )
        return [_emulator_path(name) or name, "-cpu", dict(self.cpus).get(machine.cpu, common)]


#: Rows of instruction sets that qemu 7.2 lacks; they run where the host has them.
NOT_EMULATED = ("avx512",)

EMULATORS: tuple[Emulator, ...] = (
    Emulator(
        "aarch64",
        "",
        "aarch64-linux-none",
        "max,sve-default-vector-length={vector_bytes},sme_fa64=off,sme-default-vector-length={tile_bytes}",
        cpus=(("neoverse-n1", "neoverse-n1"),),
        # Its outer products of bytes take two rows and two columns for one: test_sme_units.py.
        wrong=("smopa", "umopa", "sumopa", "usmopa"),
    ),
    Emulator("x86_64", "generic128", "x86_64-linux-none", "Nehalem"),
    Emulator("x86_64", "avx2", "x86_64-linux-none", "Haswell", slack_bytes=128, lacks=("avxvnni",)),
    Emulator("powerpc64le", "", "powerpc64le-linux-none", "{power}"),
    Emulator(
        "riscv64",
        "",
        "riscv64-linux-none",
        "rv64,v=true,vlen={vector_bits}",
        longer="rv64,v=true,vlen=256",
    ),
)


def find_emulator(machine: Machine) -> Emulator | None:
    """The row that runs a machine, None if there is none."""
    for row in EMULATORS:
        if row.arch == machine.arch and row.isa in ("", machine.isa.name):
            return row
    return None


def emulator_of(machine: Machine) -> Emulator:
    """The row of a machine that has one."""
    found = find_emulator(machine)
    assert found is not None, machine.name
    return found


def emulated_machines() -> tuple[Machine, ...]:
    """The machines of the catalogue that an emulator runs, as Linux has them, with each of their rows whose
    vectors are as long as the machine's."""
    found: list[Machine] = []
    for entry in CATALOG:
        if find_emulator(entry.machine):
            found.append(_on_linux(entry.machine))
            found.extend(_at_its_length(found[-1]))
    return tuple(found)


def _at_its_length(machine: Machine) -> Iterator[Machine]:
    """The machine on scalable rows that it has beside its own."""
    for isa in usable_isas(machine.arch, enabled_features(machine.features)):
        if isa.scalable and isa.name != machine.isa.name and machine.vector_bits:
            yield replace(machine.with_isa(isa), name=f"{machine.name}-{isa.name}")


def _on_linux(machine: Machine) -> Machine:
    """The machine with another object format where its own is not ELF; the instructions are the same."""
    if "linux" in machine.triple:
        return machine
    return replace(machine, triple=f"{machine.arch}-unknown-linux-gnu")


def variants(machines: Sequence[Machine]) -> Iterator[Machine]:
    """The first machines of their kind with less: no square products, streaming vectors of half the length.

    Where there are squares, the dot products of the same types are not chosen.
    """
    squares, streams = set(), set()
    for machine in machines:
        isa = machine.isa
        if isa.name not in squares and any(tile.m == 2 for tile in isa.tiles):
            squares.add(isa.name)
            rows = replace(isa, tiles=tuple(tile for tile in isa.tiles if tile.m == 1))
            yield replace(machine, name=f"{machine.name}-dots", isa=rows)
        if isa.name not in streams and machine.streaming_bits:
            streams.add(isa.name)
            half = machine.streaming_bits // 2
            yield replace(machine, name=f"{machine.name}-{half}", streaming_bits=half)


@cache
def _emulator_path(name: str) -> str | None:
    return shutil.which(name) or shutil.which(f"{name}-static")


def missing_tool(machine: Machine) -> str | None:
    """What would have to be installed to run a machine, with the command; None if nothing."""
    emulator = emulator_of(machine)
    name = Path(emulator.command(machine)[0]).name
    if platform.system() != "Linux":
        return f"{name} runs Linux programs on Linux only"
    if find_spec("ziglang") is None:
        return f"ziglang is not installed: {sys.executable} -m pip install ziglang"
    if _emulator_path(name) is None and not Path(emulator.command(machine)[0]).exists():
        return f"{name} is not installed: sudo apt-get install qemu-user"
    return None


def _zig_cache() -> Path:
    """Where zig keeps what it compiled: by environment, as two installations undo each other."""
    inside = sys.prefix != sys.base_prefix
    return Path(sys.prefix, "cache", "zig") if inside else user_cache_path("tilewright-tests") / "zig"


def link(machine: Machine, sources: Sequence[Path], objects: Sequence[Path], binary: Path) -> None:
    """A static binary of C sources and objects, with `libc` in the place of a C library."""
    emulator = emulator_of(machine)
    place = str(_zig_cache())
    environ = {"ZIG_GLOBAL_CACHE_DIR": place, "ZIG_LOCAL_CACHE_DIR": place, **os.environ}
    options = ["-target", emulator.zig, "-static", "-O2", "-std=gnu11", "-Wall", "-Werror"]
    options += ["-ffreestanding", "-nostdlib", "-isystem", str(LIBC)]
    files = [str(path) for path in (*sources, LIBC / "libc.c", *objects)]
    _run([sys.executable, "-m", "ziglang", "cc", *options, *files, "-o", str(binary)], environ)


def run_emulated(machine: Machine, binary: Path, *arguments: str, cpu: str = "") -> tuple[int, str, str]:
    """The exit status, the output and the complaints of a binary on an emulated machine, or another `cpu`."""
    command = emulator_of(machine).command(machine)
    command = [*command[:-1], cpu or command[-1], str(binary), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    return done.returncode, done.stdout, done.stderr


def _run(command: list[str], environ: dict[str, str]) -> None:
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, f"{' '.join(command[:8])} ...\n{done.stdout}\n{done.stderr}"
