"""The example of a library, linked for each architecture and run on several CPUs: variant and results."""

from __future__ import annotations

import platform
import signal
import subprocess
from functools import cache
from pathlib import Path

import pytest

from emulated.emulators import SECONDS, emulator_of, link, missing_tool
from tilewright.aot.build import KernelLibrary, build_library
from tilewright.aot.files import library_files
from tilewright.aot.form import LibraryForm
from tilewright.aot.spec_file import read_spec
from tilewright.machine.catalog import find_machine
from tilewright.machine.host import host_machine
from tilewright.machine.machine import Machine, enabled_features

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "library"

#: Targets, in an order that is not the resolver's, and what CPUs of qemu take; None where nothing fits.
TARGETS: dict[tuple[str, ...], dict[str, str | None]] = {
    ("x86-64-v2", "x86-64-v4", "x86-64-v3"): {
        "Nehalem": "x86-64-v2",
        "Haswell": "x86-64-v3",
        "max": "x86-64-v3",  # qemu 7.2 has no AVX-512
        "Haswell,-fma": "x86-64-v2",
        "Haswell,-xsave": "x86-64-v2",  # AVX2, but the system does not save its registers
        "Conroe": None,
    },
    ("neoverse-n1", "neoverse-v2"): {
        "neoverse-n1": "neoverse-n1",
        "cortex-a76": "neoverse-n1",
        "max": "neoverse-v2",
        "max,sve=off": "neoverse-n1",
        "cortex-a53": None,
    },
    ("pwr9", "pwr10"): {"power9": "pwr9", "power10": "pwr10", "power8": None},
}
RIGHT = ("multiply: right", "relu: right", "multiply_16x6x64: right")

ABORTS = """
#include "tilewright.h"
int main(void)
{
    float x = 1;
    relu(&x, &x, 1, 1, 1, 1);
    return 0;
}
"""


@cache
def built(targets: tuple[str, ...]) -> KernelLibrary:
    """The example's library, compiled once for all tests of a worker."""
    return build_library(read_spec(EXAMPLE / "spec.toml"), [find_machine(name) for name in targets])


def make(targets: tuple[str, ...], folder: Path, form: LibraryForm = LibraryForm.ARCHIVE) -> KernelLibrary:
    """Writes the example's library and its program into a folder."""
    library = built(targets)
    for name, content in library_files(library, form, "1.0").items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (folder / "main.c").write_bytes((EXAMPLE / "main.c").read_bytes())
    return library


def linked(machine: Machine, folder: Path) -> Path:
    """The program, linked to the archive."""
    link(machine, [folder / "main.c"], [folder / "libtilewright.a"], folder / "program")
    return folder / "program"


def skip_without_tools(machine: Machine) -> None:
    missing = missing_tool(machine)
    if missing:
        pytest.skip(missing)


def run(command: list[str]) -> tuple[int, str, str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    return done.returncode, done.stdout, done.stderr


def emulated(machine: Machine, cpu: str, binary: Path) -> tuple[int, str, str]:
    return run([emulator_of(machine).command(machine)[0], "-cpu", cpu, str(binary)])


@pytest.mark.parametrize("targets", TARGETS, ids=lambda targets: targets[0])
def test_each_cpu_takes_its_variant(targets: tuple[str, ...], tmp_path: Path) -> None:
    machine = find_machine(targets[0])
    skip_without_tools(machine)
    make(targets, tmp_path)
    binary = linked(machine, tmp_path)
    for cpu, variant in TARGETS[targets].items():
        status, output, complaints = emulated(machine, cpu, binary)
        lines = output.splitlines()
        assert lines[:1] == [f"variant: {variant or 'none'}"], f"{cpu}: {output}{complaints}"
        assert status == (0 if variant else 2), f"{cpu}: {output}{complaints}"
        found = [line.partition(",")[0] for line in lines[1:]]
        assert found == (list(RIGHT) if variant else []), f"{cpu}: {output}"


def test_this_cpu_takes_its_variant(tmp_path: Path) -> None:
    """Run without an emulator: the variant is the best whose features LLVM finds on this CPU."""
    (targets,) = (names for names in TARGETS if "x86-64-v4" in names)
    machine = find_machine(targets[0])
    if platform.system() != "Linux" or host_machine().arch != machine.arch:
        pytest.skip("not an x86 CPU under Linux")
    skip_without_tools(machine)
    library = make(targets, tmp_path)
    features = enabled_features(host_machine().features)
    fitting = [
        variant.target
        for variant in library.variants.ordered
        if {row.feature for row in variant.features} <= features
    ]
    status, output, _ = run([str(linked(machine, tmp_path))])
    assert output.splitlines()[0] == f"variant: {fitting[0]}"
    assert status == 0, output


def test_objects_link_as_the_archive_does(tmp_path: Path) -> None:
    (targets, *_) = TARGETS
    machine = find_machine(targets[0])
    skip_without_tools(machine)
    make(targets, tmp_path, LibraryForm.OBJECTS)
    link(machine, [tmp_path / "main.c"], sorted(tmp_path.glob("*.o")), tmp_path / "program")
    status, output, _ = emulated(machine, "Haswell", tmp_path / "program")
    assert output.startswith("variant: x86-64-v3\n")
    assert status == 0, output


def test_a_kernel_that_nothing_fits_says_so(tmp_path: Path) -> None:
    (targets, *_) = TARGETS
    machine = find_machine(targets[0])
    skip_without_tools(machine)
    make(targets, tmp_path)
    (tmp_path / "main.c").write_text(ABORTS, encoding="utf-8")
    binary = linked(machine, tmp_path)
    assert emulated(machine, "Nehalem", binary)[0] == 0
    status, _, complaints = emulated(machine, "Conroe", binary)
    assert status == -signal.SIGABRT
    assert "tilewright: no kernel of this library runs on this CPU" in complaints
    assert "x86-64-v4, x86-64-v3, x86-64-v2" in complaints
