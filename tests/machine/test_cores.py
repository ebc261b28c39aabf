"""The rows of micro-architectures: complete, without doubles, and applied to the rows of instruction sets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright.machine.catalog import CATALOG, find_machine
from tilewright.machine.core_rows import CORES, find_core
from tilewright.machine.cores import Core, VectorRates
from tilewright.machine.isa_rows import AVX2, AVX512, GENERIC128
from tilewright.machine.machine import Machine
from tilewright.spec.dtype import F32, I8, I64

#: Micro-architecture levels and a part without a published guide: their core is not known.
WITHOUT = {"x86-64-v2", "x86-64-v3", "x86-64-v4", "kunpeng-920"}

each_core = pytest.mark.parametrize("core", CORES, ids=lambda core: core.name)


def test_cpus_are_in_one_row() -> None:
    cpus = [cpu for core in CORES for cpu in core.cpus]
    assert len(cpus) == len(set(cpus))


@each_core
def test_rows_are_complete(core: Core) -> None:
    assert core.source
    assert core.fma_latency > 0
    bits = [rates.bits for rates in core.vectors]
    assert bits == sorted(set(bits))
    for narrow, wide in zip(core.vectors, core.vectors[1:], strict=False):
        # Wider vectors take as long or longer, but never move less in all.
        assert narrow.fmas >= wide.fmas
        assert narrow.fmas * narrow.bits <= wide.fmas * wide.bits


@each_core
def test_caches_and_bandwidths_are_in_order(core: Core) -> None:
    levels = [core.l1_bytes_per_cycle, core.l2_bytes_per_cycle]
    if core.l3 is not None:
        levels += [core.l3_bytes_per_cycle, core.memory_bytes_per_cycle]
        assert core.l2.size <= core.l3.size
    assert levels == sorted(levels, reverse=True)
    assert 0 < core.memory_bytes_per_cycle <= core.l2_bytes_per_cycle
    assert core.l1.size < core.l2.size
    assert core.page_walk_cycles > 0
    assert core.set_conflict_cycles > 0
    # What loads of the widest vectors deliver; POWER10 loads pairs of vectors.
    widest = core.vectors[-1]
    loaded = widest.loads * widest.bits / 8
    assert 0.8 * loaded <= core.l1_bytes_per_cycle <= 2 * loaded


def test_named_machines_have_their_core() -> None:
    assert {entry.machine.name for entry in CATALOG if not entry.machine.core.name} == WITHOUT


def test_rates_are_those_of_the_width() -> None:
    zen4 = find_machine("znver4")
    assert (zen4.isa.fma_per_cycle, zen4.isa.loads_per_cycle) == (1, 1)
    narrow = zen4.with_isa(AVX2)
    assert (narrow.isa.fma_per_cycle, narrow.isa.loads_per_cycle, narrow.isa.fma_latency) == (2, 2, 4)
    assert AVX2.fma_latency == 5


def test_rates_of_their_own_keep_their_ratio() -> None:
    row = AVX512.on_core(find_core("znver4"))
    assert row.rate(row.tile(I64)) * AVX512.fma_per_cycle == AVX512.rate(AVX512.tile(I64))
    engines = find_machine("sapphirerapids").isa
    assert engines.rate(engines.tile(I8)) == 1 / 16


def test_a_core_is_applied_once() -> None:
    machine = find_machine("znver4")
    assert replace(machine, cores=3).isa == machine.isa
    assert machine.isa.on_core(machine.core) == machine.isa


def test_cores_say_nothing_of_rows_without_multiply_adds() -> None:
    assert GENERIC128.on_core(find_core("haswell")) == GENERIC128
    assert AVX512.on_core(Core()) == AVX512


def test_a_core_of_ones_own() -> None:
    slow = Core(name="slow", vectors=(VectorRates(512, fmas=1, loads=1, stores=1),), fma_latency=9)
    machine: Machine = replace(find_machine("znver5"), core=slow)
    assert machine.core == slow
    assert (machine.isa.rate(machine.isa.tile(F32)), machine.isa.fma_latency) == (1, 9)
