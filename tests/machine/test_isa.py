"""Instruction-set rows: they check themselves, cite a source, and are found by name and by features."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright.errors import InvalidChoice, UnknownIsa, UnsupportedDtype
from tilewright.machine.isa import (
    AVX2,
    AVX512,
    GENERIC128,
    ISAS,
    NEON,
    RVV128,
    VSX,
    Isa,
    TileFma,
    find_isa,
    usable_isas,
)
from tilewright.spec.dtype import F32, F64, DType, Kind


@pytest.mark.parametrize("isa", ISAS, ids=lambda isa: isa.name)
def test_a_row_is_complete(isa: Isa) -> None:
    assert isa.source
    assert find_isa(isa.name) is isa
    assert isa.tiles
    assert isa.vector_registers >= 16
    assert len({(tile.instruction, tile.a, tile.b, tile.acc) for tile in isa.tiles}) == len(isa.tiles)
    for tile in isa.tiles:
        # One multiply never produces more than the vector registers it has.
        assert tile.m * tile.n * tile.acc.bits <= isa.vector_bits * isa.vector_registers


@pytest.mark.parametrize(
    ("isa", "lanes"),
    [
        (AVX512, (16, 8)),
        (AVX2, (8, 4)),
        (NEON, (4, 2)),
        (VSX, (4, 2)),
        (RVV128, (4, 2)),
        (GENERIC128, (4, 2)),
    ],
)
def test_lanes(isa: Isa, lanes: tuple[int, int]) -> None:
    assert (isa.lanes(F32), isa.lanes(F64)) == lanes
    assert (isa.tile(F32).n, isa.tile(F64).n) == lanes


def test_names_are_unique() -> None:
    assert len({isa.name for isa in ISAS}) == len(ISAS)


def test_a_tile_wider_than_the_vector_is_refused() -> None:
    with pytest.raises(InvalidChoice, match="n is 32"):
        replace(AVX512, tiles=(TileFma("multiply_add", F32, F32, F32, m=1, n=32),))


def test_an_interleave_that_does_not_divide_the_depth_is_refused() -> None:
    with pytest.raises(InvalidChoice, match="kr is 3"):
        TileFma("vdpbf16ps", F32, F32, F32, m=1, n=16, k=2, kr=3)


def test_an_unknown_row_lists_the_rows() -> None:
    with pytest.raises(UnknownIsa, match=r"'avx1024'; known: .*avx512, avx2.*generic128"):
        find_isa("avx1024")


def test_a_type_without_instruction() -> None:
    with pytest.raises(UnsupportedDtype, match="f128 x f128 on avx2"):
        AVX2.tile(DType("f128", 128, Kind.FLOAT, "float128", 113))


V3 = {"avx", "avx2", "f16c", "fma"}


@pytest.mark.parametrize(
    ("arch", "features", "expected"),
    [
        ("x86_64", {*V3, "avx512f", "avx512bw", "avx512vl", "avx512dq"}, (AVX512, AVX2, GENERIC128)),
        ("x86_64", {*V3, "avx512f", "avx512vl", "avx512dq"}, (AVX2, GENERIC128)),
        ("x86_64", {*V3, "avx512f"}, (AVX2, GENERIC128)),  # Knights Landing: no avx512vl
        ("x86_64", V3 - {"f16c"}, (GENERIC128,)),
        ("x86_64", {"avx", "avx2"}, (GENERIC128,)),
        ("x86_64", {"avx", "avx512f", "avx512bw", "avx512vl", "avx512dq"}, (GENERIC128,)),  # avx2 turned off
        ("aarch64", {"neon", "sve"}, (NEON, GENERIC128)),
        ("aarch64", set(), (GENERIC128,)),
        ("x86_64", {"neon"}, (GENERIC128,)),
        ("riscv64", {"m", "v"}, (RVV128, GENERIC128)),
        ("riscv64", {"v"}, (GENERIC128,)),
        ("powerpc64le", {"power9-vector", "vsx"}, (VSX, GENERIC128)),
        ("powerpc64le", {"vsx"}, (GENERIC128,)),  # POWER8: no load that splats a word
        ("powerpc64", {"power9-vector"}, (GENERIC128,)),  # big-endian
    ],
)
def test_usable_rows_best_first(arch: str, features: set[str], expected: tuple[Isa, ...]) -> None:
    rows = usable_isas(arch, frozenset(features))
    assert rows == expected
