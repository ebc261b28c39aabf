"""The catalogue: rows are whole, LLVM knows their names, and a wrong name gets the nearest ones."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest
from shares import looped

from tilewright.errors import NoVectorUnit, UnknownTarget
from tilewright.machine.cache import Cache
from tilewright.machine.catalog import CATALOG, CatalogEntry, find_entry, find_machine, targets
from tilewright.machine.isa_rows import AVX2, AVX512, NEON, VSX

NAMES = {
    *("cascadelake", "haswell", "sapphirerapids", "znver2", "znver4", "znver5"),
    *("x86-64-v2", "x86-64-v3", "x86-64-v4"),
    *("apple-m1", "apple-m4", "neoverse-n1", "neoverse-v1", "neoverse-v2", "a64fx", "kunpeng-920"),
    *("graniterapids", "pwr9", "pwr10", "rva23"),
}

CHECK_LLVM_KNOWS = """
import sys
import llvmlite.binding as llvm
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
for row in sys.argv[1:]:
    triple, cpu, features = row.split("|")
    llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features)
"""


def warnings_of_llvm(*rows: tuple[str, str, str]) -> str:
    """What LLVM prints about unknown CPUs and features; it goes on without them, so only the text tells."""
    command = [sys.executable, "-c", CHECK_LLVM_KNOWS, *("|".join(row) for row in rows)]
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=dict(os.environ))
    return result.stderr


def test_names() -> None:
    assert set(targets()) >= NAMES
    assert len(set(targets())) == len(targets())
    assert "host" not in targets()


def test_llvm_knows_every_cpu_and_feature() -> None:
    machines = [entry.machine for entry in CATALOG]
    assert warnings_of_llvm(*((machine.triple, machine.cpu, machine.features) for machine in machines)) == ""


def test_llvm_complains_about_unknown_names() -> None:
    assert "zenver" in warnings_of_llvm(("x86_64-linux", "zenver", ""))
    assert "avx1024" in warnings_of_llvm(("x86_64-linux", "znver5", "+avx1024"))


@looped("entry", CATALOG)
def test_a_row_is_complete(entry: CatalogEntry) -> None:
    machine = entry.machine
    assert entry.source
    assert find_entry(machine.name) is entry
    assert machine.l1.size < machine.l2.size
    for cache in filter(None, (machine.l1, machine.l2, machine.l3)):
        assert cache.size == cache.sets * cache.ways * cache.line
        assert cache.shared_by <= machine.cores
    # A private or cluster cache has a power of two of sets; a sliced L3 need not.
    assert all(cache.sets & (cache.sets - 1) == 0 for cache in (machine.l1, machine.l2))
    assert machine.page_bytes in (4096, 16384, 65536)


@pytest.mark.parametrize(
    ("name", "isa", "l1", "l2", "l3"),
    [
        ("haswell", "avx2", (32, 8), (256, 8), (8 * 1024, 16)),
        ("znver5", "avx512", (48, 12), (1024, 16), (32 * 1024, 16)),
        ("znver4", "avx512", (32, 8), (1024, 8), (32 * 1024, 16)),
        ("neoverse-v2", "neon", (64, 4), (1024, 8), (114 * 1024, 12)),
        ("graniterapids", "avx512", (48, 12), (2048, 16), (504 * 1024, 16)),
        ("kunpeng-920", "neon", (64, 4), (512, 8), (64 * 1024, 16)),
        ("rva23", "rvv128", (64, 8), (1024, 8), (16 * 1024, 16)),
        ("x86-64-v2", "generic128", (32, 8), (256, 8), (8 * 1024, 16)),
    ],
)
def test_figures(name: str, isa: str, l1: tuple[int, int], l2: tuple[int, int], l3: tuple[int, int]) -> None:
    machine = find_machine(name)
    assert machine.isa.name == isa
    for cache, (kib, ways) in zip((machine.l1, machine.l2, machine.l3), (l1, l2, l3), strict=True):
        assert cache is not None
        assert (cache.size, cache.ways, cache.line) == (kib * 1024, ways, 64)


@pytest.mark.parametrize(
    ("name", "l2_kib", "l3_mib", "sharers"), [("pwr9", 512, 10, 2), ("pwr10", 1024, 120, 30)]
)
def test_power(name: str, l2_kib: int, l3_mib: int, sharers: int) -> None:
    machine = find_machine(name)
    assert machine.isa.name == VSX.name
    assert machine.l1 == Cache(32 * 1024, ways=8, line=128)
    assert machine.l2.size == l2_kib * 1024
    assert machine.l3 is not None
    assert (machine.l3.size, machine.l3.line, machine.l3.shared_by) == (l3_mib * 2**20, 128, sharers)


@pytest.mark.parametrize(
    ("name", "row", "l2_mib", "line"), [("a64fx", "sve", 8, 256), ("apple-m4", "neon", 16, 128)]
)
def test_machines_without_l3(name: str, row: str, l2_mib: int, line: int) -> None:
    machine = find_machine(name)
    assert machine.isa.name == row
    assert machine.l3 is None
    assert (machine.l2.size, machine.l2.line) == (l2_mib * 2**20, line)


def test_apple_m1_has_no_l3() -> None:
    machine = find_machine("apple-m1")
    assert machine.isa.name == NEON.name
    assert machine.l3 is None
    assert machine.l2 == Cache(12 * 2**20, ways=12, line=128, shared_by=4)


@pytest.mark.parametrize(
    ("wrong", "nearest"), [("zenver5", "znver5"), ("Haswell", "haswell"), ("", "haswell")]
)
def test_an_unknown_name_gets_the_nearest_first(wrong: str, nearest: str) -> None:
    with pytest.raises(UnknownTarget) as caught:
        find_machine(wrong)
    listed = str(caught.value).split("known: ")[1].split(", ")
    assert set(listed) == set(targets())
    assert listed[0] == nearest or not wrong


def test_a_row_that_claims_too_much_is_refused() -> None:
    haswell = find_machine("haswell")
    assert haswell.isa.name == AVX2.name
    with pytest.raises(NoVectorUnit, match="haswell"):
        CatalogEntry(replace(haswell, isa=AVX512), "nowhere")
