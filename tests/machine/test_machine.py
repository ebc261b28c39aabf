"""Machines: feature strings limited to the row, also in the code that LLVM makes of them."""

from __future__ import annotations

from dataclasses import fields, replace
from importlib import import_module

import llvmlite.binding as llvm
import pytest
from shares import looped

from tilewright.errors import InvalidSize, IsaNotOnHost
from tilewright.llvm.object_cache import key_of
from tilewright.machine.arch import triple_arch
from tilewright.machine.cache import Cache
from tilewright.machine.catalog import CATALOG, find_machine
from tilewright.machine.isa import Isa
from tilewright.machine.isa_rows import AVX2, AVX512, GENERIC128, NEON
from tilewright.machine.machine import Machine, enabled_features, limit_features

#: What the row of 512 bits needs and no narrower one does.
WIDE_OFF = "-avx512bw,-avx512dq,-avx512f,-avx512vl"

LIMITED = [
    # features, row, architecture -> features
    ("+avx2,+avx512f,+avx512vl,+fma", AVX2, "x86_64", f"+avx2,+fma,{WIDE_OFF}"),
    (f"+avx2,{WIDE_OFF},+fma", AVX2, "x86_64", f"+avx2,{WIDE_OFF},+fma"),
    ("-avx512f,+avx512f", AVX2, "x86_64", WIDE_OFF),
    ("", AVX2, "x86_64", WIDE_OFF),
    ("+avx512dq,+avx512f,+avx512vl", AVX512, "x86_64", "+avx512dq,+avx512f,+avx512vl"),
    ("+avx2,+sse2", GENERIC128, "x86_64", f"+sse2,-avx,-avx2,{WIDE_OFF},-f16c,-fma"),
    ("+neon", NEON, "aarch64", "+neon"),
    ("+neon", GENERIC128, "aarch64", "+neon"),
    ("+v", GENERIC128, "riscv64", "+v"),
]


@pytest.mark.parametrize(("features", "isa", "arch", "expected"), LIMITED)
def test_limit_features(features: str, isa: Isa, arch: str, expected: str) -> None:
    limited = limit_features(features, isa, arch)
    assert limited == expected
    assert limit_features(limited, isa, arch) == limited


def test_a_wider_row_that_builds_on_a_narrow_one_leaves_it(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = replace(NEON, name="sve256", features=("neon", "sve"), vector_bits=256)
    module = import_module("tilewright.machine.machine")  # tilewright.machine is also a public function
    monkeypatch.setattr(module, "ISAS", (wide, NEON, GENERIC128))
    assert limit_features("+neon,+sve", GENERIC128, "aarch64") == "+neon,-sve"
    assert limit_features("+neon,+sve", NEON, "aarch64") == "+neon,-sve"
    assert limit_features("+neon,+sve", wide, "aarch64") == "+neon,+sve"


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ("", set()),
        ("+a,-b", {"a"}),
        ("+a,-a", set()),
        ("-a,+a", {"a"}),
        ("+sse4.1,+64bit", {"sse4.1", "64bit"}),
    ],
)
def test_enabled_features(features: str, expected: set[str]) -> None:
    assert enabled_features(features) == expected


@pytest.mark.parametrize(
    ("triple", "arch"),
    [
        ("x86_64-unknown-linux-gnu", "x86_64"),
        ("x86_64h-apple-macosx", "x86_64"),
        ("amd64-pc-freebsd", "x86_64"),
        ("arm64-apple-darwin23.0.0", "aarch64"),
        ("aarch64-unknown-linux-gnu", "aarch64"),
        ("riscv64", "riscv64"),
    ],
)
def test_triple_arch(triple: str, arch: str) -> None:
    assert triple_arch(triple) == arch


def test_a_machine_is_limited_when_it_is_made_and_when_it_changes_row() -> None:
    machine = find_machine("znver5")
    assert "+avx512f" in machine.features.split(",")
    limited = machine.with_isa(AVX2)
    assert limited.isa.name == AVX2.name
    assert "avx512f" not in enabled_features(limited.features)
    assert limited.with_isa(AVX2) == limited


def test_a_limited_machine_does_not_go_back() -> None:
    with pytest.raises(IsaNotOnHost, match=r"avx512 needs avx512f, .*choose one of: avx2, generic128"):
        find_machine("znver5").with_isa(AVX2).with_isa(AVX512)


@pytest.mark.parametrize(("isa", "absent"), [(AVX2, "zmm"), (GENERIC128, "ymm")])
def test_llvm_stays_within_the_row(isa: Isa, absent: str) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = find_machine("znver5")
    assert "zmm" in _assembly_of_wide_add(machine)
    assert absent not in _assembly_of_wide_add(machine.with_isa(isa))
    for register in range(16, 32):
        assert f"mm{register}" not in _assembly_of_wide_add(machine.with_isa(isa))


def _assembly_of_wide_add(machine: Machine) -> str:
    """An add of 64 floats, as two arguments in memory, for a machine."""
    vector = "<64 x float>"
    module = llvm.parse_assembly(
        f"define void @f(ptr %p) {{ %a = load {vector}, ptr %p, align 4\n"
        f"%b = fadd {vector} %a, %a\n store {vector} %b, ptr %p, align 4\n ret void }}"
    )
    target = llvm.Target.from_triple(machine.triple)
    target_machine = target.create_target_machine(cpu=machine.cpu, features=machine.features)
    return str(target_machine.emit_assembly(module))


@pytest.mark.parametrize("field", ["size", "ways", "line", "shared_by"])
def test_a_cache_checks_itself(field: str) -> None:
    values = {"size": 32768, "ways": 8, "line": 64, "shared_by": 1, field: 0}
    with pytest.raises(InvalidSize, match=f"cache {field}"):
        Cache(**values)


def test_cache_sets() -> None:
    assert Cache(48 * 1024, ways=12, line=64).sets == 64


def test_a_machine_needs_a_core() -> None:
    cache = Cache(32768, ways=8, line=64)
    with pytest.raises(InvalidSize, match="cores is 0"):
        Machine("m", AVX2, "x86_64-linux", "haswell", "", cache, cache, None, cores=0)


def test_repr_is_one_short_line() -> None:
    assert repr(find_machine("znver5")) == "<Machine znver5: znver5, avx512, 48K+1M+32M caches, 128 cores>"
    for entry in CATALOG:
        assert len(repr(entry.machine)) < 120


@looped("field", [field.name for field in fields(Machine)])
def test_the_full_text_has_every_field(field: str) -> None:
    """Keys of the object cache are made of it."""
    machine = find_machine("neoverse-v2")
    assert f"{field}={getattr(machine, field)!r}" in machine.full_text


def test_the_full_text_tells_rows_of_one_name_apart() -> None:
    machine = find_machine("znver5")
    other = replace(machine, isa=replace(machine.isa, fused=not machine.isa.fused))
    assert repr(other) == repr(machine)
    assert other.full_text != machine.full_text
    assert key_of("gemm", other) != key_of("gemm", machine)
