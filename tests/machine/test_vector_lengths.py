"""Scalable and streaming vectors: their length is the machine's, and rows, tiles and functions follow it."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import re
import sys
from dataclasses import replace

import pytest
from uncompiled import uncompiled

from tilewright.aot.variants import order_targets
from tilewright.compiler.pipeline import run_stages
from tilewright.errors import InvalidSize, InvalidTarget, IsaNotOnHost
from tilewright.llvm.target import emit_assembly
from tilewright.machine import system_facts
from tilewright.machine.catalog import find_machine
from tilewright.machine.custom import TargetName
from tilewright.machine.feature_bits import AARCH64, HWCAP, HWCAP2, POWER
from tilewright.machine.host import detect_host
from tilewright.machine.isa_rows import NEON, SVE, best_isa, usable_isas
from tilewright.machine.machine import Machine
from tilewright.machine.probe import Processor, Surroundings, this_host
from tilewright.ops.gemm.problem import Gemm
from tilewright.settings import Settings
from tilewright.spec.dtype import BF16, F32, F64, I8

FEATURES = frozenset({"neon", "sve", "sve2", "i8mm", "bf16"})
STREAMING = frozenset({"neon", "sme", "sme-f64f64"})
LENGTHS = (128, 256, 512, 1024, 2048)


@pytest.mark.parametrize("bits", LENGTHS)
def test_columns_grow_with_scalable_vectors(bits: int) -> None:
    isa = SVE.limited(FEATURES, bits)
    assert isa.vector_bits == bits
    assert isa.lanes(F32) == isa.tile(F32).n == bits // 32
    assert isa.tile(F64).n == bits // 64
    square = isa.tile(I8)
    assert (square.instruction, square.m, square.n, square.k) == ("smmla", 2, bits // 64, 8)
    assert isa.limited(FEATURES, bits) is isa
    assert isa.limited(FEATURES, 128).tiles == SVE.limited(FEATURES, 128).tiles


@pytest.mark.parametrize("bits", LENGTHS)
def test_squares_grow_with_streaming_vectors(bits: int) -> None:
    isa = NEON.limited(STREAMING, 0, bits)
    assert isa.vector_bits == NEON.vector_bits
    for dtype, tiles in ((F32, 4), (F64, 8)):
        (tile,) = (tile for tile in isa.tiles if tile.instruction == "fmopa" and tile.a == dtype)
        lanes = bits // dtype.bits
        assert (tile.m, tile.n, tile.k, tile.accumulators) == (lanes, lanes, 1, tiles)
        # At 128 bits there are as many products a cycle in the vector unit.
        assert isa.tile(dtype) == tile or bits == 128


def test_without_a_streaming_length_there_are_no_outer_products() -> None:
    assert not any(tile.streaming for tile in NEON.limited(STREAMING).tiles)


@pytest.mark.parametrize(
    ("features", "vector_bits", "expected"),
    [
        ({"neon"}, 0, "neon"),
        ({"neon", "sve"}, 0, "neon"),  # nobody knows the length
        ({"neon", "sve"}, 128, "neon"),
        ({"neon", "sve"}, 256, "neon"),  # four multiply-adds of 128 bits are as many as two of 256
        ({"neon", "sve"}, 512, "sve"),
        (set(), 0, "generic128"),
    ],
)
def test_the_row_that_multiplies_most(features: set[str], vector_bits: int, expected: str) -> None:
    assert best_isa("aarch64", frozenset(features), vector_bits).name == expected


def test_without_scalable_vectors_the_first_usable_row_is_best() -> None:
    for arch, features in (
        ("x86_64", {"avx", "avx2", "f16c", "fma"}),
        ("powerpc64le", {"power9-vector"}),
        ("riscv64", {"m", "v"}),
    ):
        assert best_isa(arch, frozenset(features)) is usable_isas(arch, frozenset(features))[0]


def test_a_scalable_row_needs_a_length() -> None:
    with pytest.raises(InvalidSize, match="vector_bits is 0, must be known for the row sve"):
        find_machine("neoverse-n1").with_isa(SVE)


def test_a_machine_of_another_length() -> None:
    machine = find_machine("a64fx")
    assert (machine.isa.name, machine.isa.tile(F32).n) == ("sve", 16)
    assert replace(machine, vector_bits=256).isa.tile(F32).n == 8
    assert replace(machine, vector_bits=1024).isa.tile(F32).n == 32


def assembly(machine: Machine, dtype: str, strategy: str = "auto") -> tuple[str, str]:
    """The module and its assembly."""
    state = run_stages(Gemm(dtype=dtype, strategy=strategy), machine, "llvm")
    return state.llvm, emit_assembly(state.llvm, state.name, machine)


@pytest.mark.parametrize(("bits", "strategy"), [(256, "packing"), (1024, "tiling")])
def test_functions_say_their_length(bits: int, strategy: str) -> None:
    module, text = assembly(replace(find_machine("a64fx"), vector_bits=bits), "f32", strategy)
    defined = re.findall(r"^define.*$", module, re.MULTILINE)
    assert defined
    assert all(f"vscale_range({bits // 128},{bits // 128})" in line for line in defined)
    assert re.search(r"fmla\s+z\d+\.s, p\d/m, z\d+\.s", text)
    assert not re.search(r"fmla\s+v\d+\.4s, v\d+\.4s, v\d+\.s\[", text)


def test_only_functions_of_outer_products_are_in_streaming_mode() -> None:
    module, text = assembly(find_machine("apple-m4"), "f32")
    streaming = [line for line in module.splitlines() if "aarch64_pstate_sm_body" in line]
    assert streaming
    assert all("vscale_range(4,4)" in line and "uwtable" not in line for line in streaming)
    assert all("fmopa" in line for line in streaming)
    assert module.count("vscale_range") == len(streaming)
    assert len(re.findall(r"smstart\s+sm", text)) == len(streaming)


# --- targets by name ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("features", "row", "vector_bits", "streaming_bits"),
    [
        ("", "neon", 256, 0),
        ("+sve", "neon", 256, 0),
        ("+sve256", "sve", 256, 0),
        ("+sve128,+i8mm", "sve", 128, 0),
        ("+sme512", "neon", 256, 512),
    ],
)
def test_features_with_lengths(features: str, row: str, vector_bits: int, streaming_bits: int) -> None:
    name = TargetName.parse(f"aarch64-linux-gnu:neoverse-v1:{features}")
    assert not re.search(r"\d", name.features.replace("i8mm", ""))
    machine = name.machine(frozenset({"neon", "sve", "i8mm"}))
    assert (machine.isa.name, machine.vector_bits) == (row, vector_bits)
    assert machine.streaming_bits == streaming_bits
    assert machine.name.rstrip(":").endswith(features or "neoverse-v1")


@pytest.mark.parametrize("feature", ["+sve100", "+sve4096", "+sme192"])
def test_no_such_length(feature: str) -> None:
    with pytest.raises(InvalidTarget, match="is not a length of vectors: a multiple of 128 up to 2048"):
        TargetName.parse(f"aarch64-linux-gnu:generic:{feature}")


def test_a_target_has_the_instructions_of_its_cpu() -> None:
    """Also those beyond the row's own features."""
    name = TargetName.parse("aarch64-linux-gnu:neoverse-v1")
    assert {"i8mm", "bf16", "dotprod", "sve", "sme"} <= set(name.questions)
    assert "mma" in TargetName.parse("powerpc64le-linux-gnu:pwr10").questions
    kernel = uncompiled(Gemm(dtype="i8", out_dtype="i32"), "aarch64-linux-gnu:neoverse-v1:+sve256")
    assert "smmla\tz" in kernel.assembly


def test_a_library_has_kernels_of_fixed_lengths() -> None:
    (variant,) = order_targets([find_machine("a64fx")]).ordered
    assert variant.machine.isa.name == "neon"
    assert "sve" in [row.feature for row in variant.features]


# --- hosts ------------------------------------------------------------------------------------------


def arm_host(processor: Processor) -> Surroundings:
    return replace(this_host(), processor=lambda: processor)


def of_features(*names: str, vector_bits: int = 0) -> Processor:
    features = tuple((name, True) for name in names)
    return Processor("aarch64-unknown-linux-gnu", "generic", features, vector_bits)


@pytest.mark.parametrize(("bits", "row"), [(128, "neon"), (512, "sve")])
def test_a_host_takes_the_row_of_its_length(bits: int, row: str) -> None:
    surroundings = arm_host(of_features("neon", "sve", vector_bits=bits))
    facts = detect_host(Settings(), surroundings=surroundings)
    assert facts.isa.value.name == row
    assert facts.machine().vector_bits == bits
    assert ("vector bits", str(bits), "operating system") in facts.table()
    asked = detect_host(Settings(isa="sve"), surroundings=surroundings)
    assert asked.machine().isa.tile(F32).n == bits // 32


def test_a_host_without_a_length_cannot_be_asked_for_the_row() -> None:
    with pytest.raises(IsaNotOnHost, match="sve"):
        detect_host(Settings(isa="sve"), surroundings=arm_host(of_features("neon", "sve")))


def test_features_in_the_auxiliary_vector() -> None:
    words = {HWCAP.entry: 0, HWCAP2.entry: 0}
    for row in AARCH64.rows:
        if row.feature in ("dotprod", "i8mm", "bf16"):
            words[row.word.entry] |= row.mask  # type: ignore[union-attr]
    found = system_facts.linux_features("aarch64", words.__getitem__)
    assert {name for name, has in found.items() if has} == {"dotprod", "i8mm", "bf16"}
    assert set(found) == {row.feature for row in AARCH64.rows}
    assert system_facts.linux_features("powerpc64le", {16: -1, 26: -1}.__getitem__) == {
        row.feature: True for row in POWER.rows
    }
    assert system_facts.linux_features("riscv64", words.__getitem__) == {}


def test_features_of_macos() -> None:
    known = {"hw.optional.arm.FEAT_DotProd": 1, "hw.optional.arm.FEAT_I8MM": 0}
    found = system_facts.macos_features(known.get)
    assert [name for name, has in found.items() if has] == ["dotprod"]


@pytest.mark.parametrize(("system", "expected"), [("darwin", (0, 512)), ("win32", (0, 0))])
def test_lengths_of_systems(system: str, expected: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", system)
    assert system_facts.vector_lengths({"hw.optional.arm.sme_max_svl_b": 64}.get) == expected


def test_lengths_of_this_process() -> None:
    """Of a system without such vectors both are 0."""
    for bits in system_facts.vector_lengths(lambda _: None):
        assert bits == 0 or bits in range(128, 2049, 128)


def test_every_instruction_of_arm_has_a_feature_or_is_everywhere() -> None:
    for isa in (NEON, SVE):
        for tile in isa.tiles:
            assert tile.feature or tile.instruction == "multiply_add"
    assert SVE.tile(BF16).instruction == "bfmmla"
