"""What LLVM says of CPUs: features by name, and names it does not know as errors, never as output."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tiers import first_of

from tilewright.errors import InvalidTarget, TilewrightError, UnknownCpu, UnknownFeature, UnknownTriple
from tilewright.llvm import subtarget
from tilewright.llvm.subtarget import cpu_features
from tilewright.machine.catalog import CATALOG, CatalogEntry
from tilewright.machine.machine import enabled_features

ARM = ("dotprod", "neon", "sme", "sve", "sve2")


@pytest.mark.parametrize(
    ("triple", "cpu", "features", "names", "expected"),
    [
        ("x86_64-linux-gnu", "haswell", "", ("avx2", "avx512f", "fma"), {"avx2", "fma"}),
        ("x86_64-linux-gnu", "znver5", "", ("amx-tile", "avx512f", "avx512vl"), {"avx512f", "avx512vl"}),
        ("x86_64-linux-gnu", "znver5", "-avx512f", ("avx2", "avx512f", "avx512vl"), {"avx2"}),
        ("x86_64-linux-gnu", "haswell", "+avx512vl", ("avx512f",), {"avx512f"}),  # implied
        ("aarch64-linux-gnu", "neoverse-n1", "", ARM, {"dotprod", "neon"}),
        ("aarch64-linux-gnu", "neoverse-n1", "+sve", ARM, {"dotprod", "neon", "sve"}),
        ("arm64-apple-macosx11.0.0", "apple-m4", "", ARM, {"dotprod", "neon", "sme"}),
        ("powerpc64le-linux-gnu", "pwr9", "", ("mma", "power9-vector", "vsx"), {"power9-vector", "vsx"}),
        ("riscv64-linux-gnu", "generic-rv64", "+v", ("d", "m", "v"), {"d", "v"}),
        ("riscv64-linux-gnu", "sifive-p670", "", ("d", "m", "v"), {"d", "m", "v"}),
        ("x86_64-linux-gnu", "haswell", "", (), set()),
    ],
)
def test_features(triple: str, cpu: str, features: str, names: tuple[str, ...], expected: set[str]) -> None:
    assert cpu_features(triple, cpu, features, names) == expected


@pytest.mark.parametrize(
    "entry",
    first_of(CATALOG, lambda entry: (entry.machine.arch, entry.machine.isa.name, entry.machine.vector_bits)),
    ids=lambda entry: entry.machine.name,
)
def test_catalogued_cpus_have_what_their_rows_need(entry: CatalogEntry) -> None:
    """In `make test` the first CPU of each row and length of vectors: each asks a child."""
    machine = entry.machine
    asked = tuple(sorted(enabled_features(machine.features)))
    assert cpu_features(machine.triple, machine.cpu, machine.features, asked) == set(asked)


@pytest.mark.parametrize(
    ("triple", "cpu", "features", "error", "words"),
    [
        ("abacus-linux", "x", "", UnknownTriple, "'abacus-linux'"),
        ("", "x", "", UnknownTriple, "''"),
        ('x86_64"\n', "x", "", UnknownTriple, "not a triple"),
        ("x86_64-linux-gnu", "zenver5", "", UnknownCpu, "'zenver5' of x86_64-linux-gnu; nearest: znver5, "),
        ("aarch64-linux-gnu", "neoverse-n9", "", UnknownCpu, "neoverse-n2"),
        ("x86_64-linux-gnu", "help", "", UnknownCpu, "nearest: "),
        ("x86_64-linux-gnu", "znver5", "+avx1024", UnknownFeature, "'avx1024' of x86_64-linux-gnu; nearest"),
        ("aarch64-linux-gnu", "neoverse-n1", "-sv3", UnknownFeature, "sve"),
        ("aarch64-linux-gnu", "neoverse-n1", "+neon,+help", UnknownFeature, "nearest: "),
        ("x86_64-linux-gnu", "i386", "", InvalidTarget, "64-bit code requested"),
        ("riscv64-linux-gnu", "rocket-rv32", "", InvalidTarget, "requires an RV64 CPU"),
        ("riscv64-linux-gnu", "sifive-u74", "+zvl256b", InvalidTarget, "'v'"),
        ("armv7-linux-gnueabihf", "cortex-a15", "", InvalidTarget, "32 bits"),
        ("nvptx64-nvidia-cuda", "sm_80", "", InvalidTarget, "cannot generate code"),
    ],
)
def test_what_llvm_does_not_know(
    triple: str,
    cpu: str,
    features: str,
    error: type[TilewrightError],
    words: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(error) as caught:
        cpu_features(triple, cpu, features, ())
    assert words in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_a_child_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(Path("absent") / "python"))
    with pytest.raises(InvalidTarget, match="could not be asked"):
        cpu_features.__wrapped__("x86_64-linux-gnu", "znver3", "", ())


def test_a_child_that_ends_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = subprocess.CompletedProcess([], -6, "", "")
    monkeypatch.setattr(subtarget, "_ask", lambda *_: silent)
    with pytest.raises(InvalidTarget, match="ended without a word"):
        cpu_features.__wrapped__("x86_64-linux-gnu", "znver3", "", ())
