"""Features and their bits: the catalogue is covered, LLVM knows the names, Linux reads the same bits here."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from shares import looped

from tilewright.errors import NoResolver, UntestableFeature
from tilewright.llvm.subtarget import cpu_features
from tilewright.machine.catalog import CATALOG, find_machine
from tilewright.machine.feature_bits import (
    DETECTIONS,
    HWCAP,
    HWCAP2,
    TILE_GRANT,
    X86,
    XCR0,
    CpuidWord,
    Detection,
    Register,
    Saved,
    conditions_of,
    detection_of,
    required_features,
    words_of,
)
from tilewright.machine.machine import Machine

TESTABLE = [
    entry.machine
    for entry in CATALOG
    if "linux" in entry.machine.triple and entry.machine.arch in {one.arch for one in DETECTIONS}
]
each_detection = pytest.mark.parametrize("detection", DETECTIONS, ids=lambda one: one.arch)


@looped("machine", TESTABLE)
def test_the_catalogue_can_be_tested_for(machine: Machine) -> None:
    found = {row.feature for row in required_features(machine, ())}
    assert found >= set(machine.isa.features)


ASK_LLVM = """
import sys
import llvmlite.binding as llvm
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
llvm.Target.from_triple(sys.argv[1]).create_target_machine(cpu="help")
"""


@each_detection
def test_llvm_knows_the_names(detection: Detection) -> None:
    command = [sys.executable, "-c", ASK_LLVM, f"{detection.arch}-linux-gnu"]
    known = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    listed = {
        line.split()[0] for line in known.partition("Available features")[2].splitlines() if " - " in line
    }
    names = {*detection.questions, *detection.ignored}
    assert names <= listed, names - listed


@each_detection
def test_the_baseline_asks_for_nothing_that_a_cpu_may_lack(detection: Detection) -> None:
    """Whatever LLVM says of it is in every CPU of the architecture that Linux runs on in 64 bits."""
    has = cpu_features(f"{detection.arch}-linux-gnu", detection.baseline, "", detection.questions)
    allowed = {
        "x86_64": frozenset[str](),
        "aarch64": {"neon", "fp-armv8"},
        # Little-endian Linux begins with POWER8.
        "powerpc64le": {
            *("altivec", "vsx", "power8-vector", "power8-altivec"),
            *("direct-move", "isa-v207-instructions"),
        },
    }
    assert has == allowed[detection.arch]


@each_detection
def test_a_feature_stands_in_one_place(detection: Detection) -> None:
    names = [row.feature for row in detection.rows]
    assert len(set(names)) == len(names)
    assert not set(names) & {*detection.ignored, *detection.untestable}
    assert detection.source


#: Leaf, subleaf, register, bit and what the system must save: Intel SDM vol. 2 CPUID, AMD64 APM vol. 3 E.
EXPECTED = {
    "sse4.2": (1, 0, "ECX", 20, 0),
    "fma": (1, 0, "ECX", 12, 0x6),
    "f16c": (1, 0, "ECX", 29, 0x6),
    "lzcnt": (0x80000001, 0, "ECX", 5, 0),
    "bmi2": (7, 0, "EBX", 8, 0),
    "avx2": (7, 0, "EBX", 5, 0x6),
    "avx512f": (7, 0, "EBX", 16, 0xE6),
    "avx512vl": (7, 0, "EBX", 31, 0xE6),
    "avx512vnni": (7, 0, "ECX", 11, 0xE6),
    "avx512fp16": (7, 0, "EDX", 23, 0xE6),
    "avx512bf16": (7, 1, "EAX", 5, 0xE6),
    "avxvnni": (7, 1, "EAX", 4, 0x6),
    "amx-tile": (7, 0, "EDX", 24, 0x60000),
    "amx-fp16": (7, 1, "EAX", 21, 0x60000),
}


@pytest.mark.parametrize(("feature", "place"), EXPECTED.items())
def test_bits_of_cpuid(feature: str, place: tuple[int, int, str, int, int]) -> None:
    leaf, subleaf, register, bit, saved = place
    (row,) = (row for row in X86.rows if row.feature == feature)
    assert row.word == CpuidWord(leaf, subleaf, Register[register])
    assert (row.mask, row.saved) == (1 << bit, Saved(saved))


def test_vectors_need_the_operating_system() -> None:
    """Each feature with registers wider than SSE's asks XCR0; AVX-512 asks for all of its state."""
    for row in X86.rows:
        wide = row.feature.startswith(("avx", "fma", "f16c", "xop", "amx", "egpr"))
        assert not wide or row.saved, row.feature
        assert row.feature[:6] != "avx512" or row.saved == Saved.AVX512, row.feature
        assert not row.feature.startswith("amx") or row.saved == Saved.TILES, row.feature


def masks(target: str) -> dict[str, int]:
    rows = required_features(find_machine(target), ())
    return {condition.word.label: condition.mask for condition in conditions_of(rows)}


def test_conditions() -> None:
    assert masks("neoverse-n1") == {"hwcap": 1 << 1 | 1 << 9 | 1 << 10 | 1 << 20}
    assert masks("pwr10") == {"hwcap": 0x80, "hwcap2": 0x00800000 | 0x00040000 | 0x00020000}
    amx = masks("sapphirerapids")
    assert amx["xcr0"] == 0x600E6
    assert amx["tile_grant"] == 1


def test_tiles_are_asked_for_last() -> None:
    rows = required_features(find_machine("sapphirerapids"), ())
    *_, state, grant = words_of([conditions_of(rows)])
    assert (state, grant) == (XCR0, TILE_GRANT)


def test_what_cannot_be_tested_for() -> None:
    with pytest.raises(NoResolver, match=r"rva23 .* what a riscv64 CPU has"):
        detection_of(find_machine("rva23"))
    with pytest.raises(NoResolver, match=r"apple-m1 .* not those of Linux"):
        detection_of(find_machine("apple-m1"))
    machine = find_machine("x86-64-v3")
    with pytest.raises(UntestableFeature, match=r"x86-64-v3 uses avx10.2, movies, which a program"):
        required_features(replace(machine, features=f"{machine.features},+movies"), {"avx10.2"})
    required_features(replace(machine, features=f"{machine.features},+fast-gather,-movies"), ())


#: Linux's words in /proc/cpuinfo for LLVM's, where they differ.
CPUINFO = {
    "sse3": "pni",
    "sse4.1": "sse4_1",
    "sse4.2": "sse4_2",
    "lzcnt": "abm",
    "prfchw": "3dnowprefetch",
    "bmi": "bmi1",
    "avxvnni": "avx_vnni",
    "avx512bf16": "avx512_bf16",
    "avx512vnni": "avx512_vnni",
    "avx512vbmi": "avx512vbmi",
    "avx512vbmi2": "avx512_vbmi2",
    "avx512bitalg": "avx512_bitalg",
    "avx512vpopcntdq": "avx512_vpopcntdq",
    "avx512vp2intersect": "avx512_vp2intersect",
    "avx512fp16": "avx512_fp16",
    "amx-bf16": "amx_bf16",
    "amx-tile": "amx_tile",
    "amx-int8": "amx_int8",
}


def linux_flags() -> set[str]:
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        pytest.skip("not an x86 CPU under Linux")
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return set(next(line for line in lines if line.startswith("flags")).partition(":")[2].split())


def test_linux_names_the_same_bits() -> None:
    """The module `cpuid` of Linux gives the registers, where it is loaded; its flags the names."""
    device = Path("/dev/cpu/0/cpuid")
    flags = linux_flags()
    if not os.access(device, os.R_OK):
        pytest.skip("the kernel's module cpuid is not loaded, or not for us")
    with device.open("rb") as file:
        for row in X86.rows:
            if not isinstance(row.word, CpuidWord) or row.feature not in {*CPUINFO, *EXPECTED}:
                continue
            file.seek(row.word.subleaf << 32 | row.word.leaf)
            registers = file.read(16)
            value = int.from_bytes(registers[4 * row.word.register :][:4], "little")
            if CPUINFO.get(row.feature, row.feature) in flags:  # Linux hides what it does not support
                assert value & row.mask == row.mask, row.feature


def test_labels_are_identifiers() -> None:
    words = {condition.word for one in DETECTIONS for row in one.rows for condition in row.conditions}
    assert {HWCAP, HWCAP2, XCR0, TILE_GRANT} < words
    labels = [word.label for word in words]
    assert len(set(labels)) == len(labels)
    assert all(label.isidentifier() for label in labels)
