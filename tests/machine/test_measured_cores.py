"""Measurements of cores: records survive the disk or count as missing, and leave the order of sums alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tilewright.errors import UnsupportedDtype
from tilewright.machine.catalog import CATALOG, find_machine
from tilewright.machine.cores import Core
from tilewright.machine.host import detect_host
from tilewright.machine.machine import Machine
from tilewright.machine.measure import (
    MEASURED,
    Measurement,
    decode_measurement,
    keep_measurement,
    load_measurement,
    measurement_key,
)
from tilewright.macro.blocking import choose_blocking
from tilewright.settings import Settings
from tilewright.spec.dtype import GEMM_DTYPES
from tilewright.store import ObjectCache

FOUND = Measurement(3.456, 256, 0.987, 1.02, 31.4, 15.9, 8.88, 3.33, 9.87, 21.2)
#: A core with a twentieth and one with twenty times of everything.
SLOW, FAST = (
    Measurement(
        3.0, 512, 2 * scale, 2 * scale, 64 * scale, 24 * scale, 12 * scale, 6 * scale, 4 / scale, 15 / scale
    )
    for scale in (0.05, 20.0)
)


@pytest.fixture
def store(tmp_path: Path) -> ObjectCache:
    return ObjectCache(tmp_path / "store")


def test_a_record_survives_the_disk_in_two_digits(store: ObjectCache) -> None:
    assert load_measurement(store, "a cpu") is None
    keep_measurement(store, "a cpu", FOUND)
    kept = load_measurement(store, "a cpu")
    assert kept is not None
    assert kept == FOUND.rounded() == replace(kept, fmas=0.99, clock_ghz=3.5)
    assert load_measurement(store, "another cpu") is None
    assert load_measurement(None, "a cpu") is None


def test_another_one_takes_its_place(store: ObjectCache) -> None:
    for found in (SLOW, FAST):
        keep_measurement(store, "a cpu", found)
    assert load_measurement(store, "a cpu") == FAST.rounded()
    assert len(store.entries()) == 1


def invalid() -> Iterator[bytes]:
    """Contents of an entry that are none of ours, or make no sense."""
    yield from (b"", b"{", b"[]", b"null", b"\xff", b"1e999")
    for name in asdict(FOUND):
        for value in (0, -1.0, "2", None, float("inf"), float("nan"), [1]):
            yield json.dumps(asdict(FOUND) | {name: value}).encode()
        yield json.dumps({other: value for other, value in asdict(FOUND).items() if other != name}).encode()
    yield json.dumps(asdict(FOUND) | {"more": 1.0}).encode()


def test_entries_that_make_no_sense_count_as_missing(store: ObjectCache) -> None:
    assert decode_measurement(FOUND.encoded()) == FOUND
    for content in invalid():
        assert decode_measurement(content) is None, content
        store.store(measurement_key("a cpu"), content)
        assert load_measurement(store, "a cpu") is None


def test_a_damaged_file_counts_as_missing(store: ObjectCache) -> None:
    keep_measurement(store, "a cpu", FOUND)
    (entry,) = store.entries()
    for content in (entry.path.read_bytes()[:-1], b"", bytes(200)):
        entry.path.write_bytes(content)
        assert load_measurement(store, "a cpu") is None


def test_what_a_measurement_sets() -> None:
    core = FOUND.applied_to(Core())
    assert core.vectors[0].fmas == FOUND.fmas
    changed = {name for name in Core.__dataclass_fields__ if getattr(core, name) != getattr(Core(), name)}
    assert changed == {*MEASURED, "vectors"}
    assert set(MEASURED) == {
        *(f"{level}_bytes_per_cycle" for level in ("l1", "l2", "l3", "memory")),
        *("set_conflict_cycles", "page_walk_cycles"),
    }


@pytest.mark.parametrize("machine", [entry.machine for entry in CATALOG], ids=lambda machine: machine.name)
def test_tiles_and_blocks_do_not_depend_on_it(machine: Machine) -> None:
    """The depth of a block, which decides the order of sums, follows from the tile too."""
    unknown = replace(machine, core=Core())
    for dtype in GEMM_DTYPES:
        blockings = set()
        for measurement in (None, SLOW, FAST):
            measured = replace(unknown, measurement=measurement)
            try:
                blockings.add(choose_blocking(measured, measured.isa.tile(dtype)))
            except UnsupportedDtype:
                continue
        assert len(blockings) <= 1, dtype


def test_rates_that_are_measured_are_for_times_only() -> None:
    machine = replace(find_machine("znver5"), core=Core())
    slow = replace(machine, measurement=SLOW)
    assert slow.isa == machine.isa
    assert slow.timed_isa.fma_per_cycle == SLOW.fmas
    assert machine.timed_isa is machine.isa
    assert (slow.core.l1_bytes_per_cycle, slow.core_row) == (SLOW.l1_bytes_per_cycle, Core())
    assert replace(slow, cores=3).core == slow.core
    assert find_machine("pwr10").emulated_on(slow).core.name == "POWER10"


def test_a_host_reads_what_is_kept_once(tmp_path: Path) -> None:
    settings = Settings(cpu="x86-64-v3", cache_dir=str(tmp_path / "store"))
    store, kind = ObjectCache(tmp_path / "store"), detect_host(settings).kind.value
    keep_measurement(store, kind, FOUND)
    # This process has asked before: its machine stays as it was.
    assert detect_host(settings).machine().measurement is None
    other = Settings(cpu="x86-64-v3", cache_dir=str(tmp_path / "store"), cache_bytes=1 << 20)
    assert detect_host(other).machine().measurement == FOUND.rounded()
    assert detect_host(replace(other, measure=False)).machine().measurement is None
    assert detect_host(replace(other, cache=False)).machine().measurement is None
    assert detect_host(replace(other, cpu="haswell")).machine().measurement is None
