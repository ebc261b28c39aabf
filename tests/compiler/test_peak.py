"""The peak of a multiply unit: which instruction is issued, how often, and nothing else in the loop."""

from __future__ import annotations

import itertools
import time

import pytest
from assembly_text import innermost_loops
from shares import looped
from support import host_rows
from tiers import each_value

import tilewright as tw
from tilewright.compiler import peak
from tilewright.compiler.peak import measure_peak, peak_name
from tilewright.errors import UnsupportedDtype
from tilewright.llvm.target import emit_assembly
from tilewright.machine.catalog import find_machine
from tilewright.machine.isa import Isa
from tilewright.machine.machine import Machine
from tilewright.spec.dtype import DTYPES, F32, F64

#: Machine, element types of A and B; the instruction, how often it stands in the loop, and beside what.
UNITS = {
    ("znver5", "f32", "f32"): ("vfmadd231ps", 16, 0, "FMA"),
    ("znver5", "f16", "f16"): ("vfmadd231ps", 16, 0, "FMA"),
    ("znver5", "c128", "c128"): ("vfmadd231pd", 16, 0, "FMA"),
    ("znver5", "bf16", "bf16"): ("vdpbf16ps", 16, 0, "vdpbf16ps"),
    ("znver5", "u8", "i8"): ("vpdpbusd", 16, 0, "vpdpbusd"),
    ("znver5", "i8", "u8"): ("vpdpbusd", 16, 0, "vpdpbusd"),
    ("znver5", "i8", "i8"): ("vpdpbusd", 16, 0, "vpdpbusd"),
    ("znver5", "i16", "i16"): ("vpdpwssd", 16, 0, "vpdpwssd"),
    ("znver5", "i32", "i32"): ("vpmulld", 18, 18, "multiply and add"),
    ("znver5", "i64", "i64"): ("vpmullq", 14, 14, "multiply and add"),
    ("x86-64-v3", "f32", "f32"): ("vfmadd231ps", 13, 0, "FMA"),
    ("x86-64-v3", "bf16", "bf16"): ("vfmadd231ps", 13, 0, "FMA"),
    ("x86-64-v3", "i8", "i8"): ("vpmaddwd", 13, 13, "pmaddwd and add"),
    ("x86-64-v3", "u8", "i8"): ("vpmaddwd", 13, 13, "pmaddwd and add"),
    ("x86-64-v2", "f32", "f32"): ("mulps", 13, 13, "multiply and add"),
    ("x86-64-v2", "i32", "i32"): ("pmulld", 13, 13, "multiply and add"),
    ("sapphirerapids", "bf16", "bf16"): ("tdpbf16ps", 4, 0, "tdpbf16ps"),
    ("sapphirerapids", "i8", "i8"): ("tdpbssd", 4, 0, "tdpbssd"),
    ("pwr10", "f32", "f32"): ("xvf32gerpp", 8, 0, "xvf32gerpp"),
    ("pwr10", "bf16", "bf16"): ("xvbf16ger2pp", 8, 0, "xvbf16ger2pp"),
    ("neoverse-n1", "f64", "f64"): ("fmla", 16, 0, "FMA"),
    ("neoverse-v2", "f64", "f64"): ("fmla", 24, 0, "FMA"),
}
#: Counting rounds, comparing, jumping back.
LOOP_OVERHEAD = 4


def loop_of(machine: Machine, a: str, b: str) -> tuple[str, ...]:
    """The instructions of the one loop."""
    module = peak._emit(machine, machine.isa.tile(DTYPES[a], DTYPES[b]))
    (loop,) = innermost_loops(emit_assembly(module, "peak", machine), machine.triple)
    return loop.instructions


@looped(("where", "unit"), UNITS.items())
def test_the_loop_holds_one_instruction_for_each_accumulator(
    where: tuple[str, str, str], unit: tuple[str, int, int, str]
) -> None:
    name, a, b = where
    instruction, count, others, called = unit
    machine = find_machine(name)
    loop = loop_of(machine, a, b)
    assert sum(line.split()[0].split(".")[0] == instruction for line in loop) == count
    assert len(loop) - count - others <= LOOP_OVERHEAD, loop
    assert not any("(" in line for line in loop), "operands stay in registers"
    assert peak_name(DTYPES[a], DTYPES[b], machine) == called


@looped("row", host_rows())
@looped("name", DTYPES)
def test_every_type_on_every_row_of_this_host(row: Isa, name: str) -> None:
    assert measure_peak(DTYPES[name], tw.machine().with_isa(row), seconds=1e-4) > 0


@pytest.mark.parametrize("row", host_rows(), ids=lambda row: row.name)
@pytest.mark.parametrize("target", ["pwr10", "sapphirerapids"])
@each_value
def test_accumulators_that_stay_in_a_unit(target: str, row: Isa) -> None:
    """Emulated, also where the product and the sum of this host are two instructions."""
    machine = find_machine(target).emulated_on(tw.machine().with_isa(row))
    assert measure_peak(F32, machine, seconds=1e-4) > 0
    assert measure_peak(DTYPES["u8"], machine, seconds=1e-4, b_dtype=DTYPES["i8"]) > 0


def test_two_operations_for_each_product(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count()
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(ticks)))  # each call takes 1 s
    machine = tw.machine()
    for dtype in (F32, F64, DTYPES["i8"]):
        tile = machine.isa.tile(dtype)
        down, across = peak._grid(machine.isa, tile)
        rounds = 10_000  # as many as are tried first, since one second is asked for
        assert measure_peak(dtype, machine, seconds=1.0) == pytest.approx(
            2 * rounds * down * across * tile.products * 1e-9
        )


def test_types_that_do_not_multiply() -> None:
    with pytest.raises(UnsupportedDtype):
        measure_peak(F32, tw.machine(), b_dtype=DTYPES["i8"])
