"""Instruction-set rows: they check themselves, cite a source, and are found by name and by features."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from shares import looped

from tilewright.errors import InvalidChoice, UnknownIsa, UnsupportedDtype
from tilewright.machine.isa import Edge, Isa, TileFma
from tilewright.machine.isa_rows import (
    AVX2,
    AVX512,
    GENERIC128,
    ISAS,
    NEON,
    RVV128,
    SVE,
    VSX,
    find_isa,
    usable_isas,
)
from tilewright.spec.dtype import (
    BF16,
    C64,
    C128,
    DTYPES,
    F16,
    F32,
    F64,
    I4,
    I8,
    I16,
    I32,
    I64,
    U4,
    U8,
    DType,
    Kind,
    accumulator,
)


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


FEATURES = {
    AVX512: ("avx512bf16", "avx512vnni", "amx-bf16", "amx-fp16", "amx-int8"),
    AVX2: ("avxvnni",),
    VSX: ("mma",),
}
#: Operands on a row with some features -> the instruction.
CHOSEN: list[tuple[Isa, tuple[str, ...], DType, DType, str]] = [
    (AVX512, (), F32, F32, "multiply_add"),
    (AVX512, FEATURES[AVX512], F32, F32, "multiply_add"),
    (AVX512, FEATURES[AVX512], BF16, F32, "multiply_add"),
    (AVX512, FEATURES[AVX512], BF16, BF16, "tdpbf16ps"),
    (AVX512, ("avx512bf16",), BF16, BF16, "vdpbf16ps"),
    (AVX512, (), BF16, BF16, "multiply_add"),
    (AVX512, FEATURES[AVX512], BF16, F16, "multiply_add"),
    (AVX512, FEATURES[AVX512], F16, F16, "tdpfp16ps"),
    (AVX512, ("avx512bf16",), F16, F16, "multiply_add"),
    (AVX512, FEATURES[AVX512], U8, I8, "tdpbusd"),
    (AVX512, ("avx512vnni",), U8, I8, "vpdpbusd"),
    (AVX512, ("avx512vnni",), I8, U8, "vpdpbusd_swapped"),
    (AVX512, ("avx512vnni",), I4, I8, "vpdpbusd_biased"),
    (AVX512, ("avx512vnni",), U8, U8, "vpdpwssd"),
    (AVX512, ("avx512vnni",), U4, U4, "vpdpbusd"),
    (AVX512, (), U8, U8, "pmaddwd"),
    (AVX512, (), I16, I32, "multiply_add"),
    (AVX512, (), I64, I8, "multiply_add"),
    (AVX512, (), C64, C64, "multiply_add"),
    (AVX2, (), I8, I8, "pmaddwd"),
    (AVX2, ("avxvnni",), I8, I8, "vpdpbusd_biased"),
    (VSX, (), F32, F32, "multiply_add"),
    (VSX, ("mma",), F32, F32, "xvf32gerpp"),
    (VSX, ("mma",), C128, C128, "xvf64gerpp"),
    (VSX, ("mma",), U8, U8, "xvi8ger4pp"),
    (VSX, ("mma",), I32, I32, "multiply_add"),
    (GENERIC128, (), I8, I8, "multiply_add"),
]


@looped(("isa", "features", "a", "b", "instruction"), CHOSEN)
def test_the_instruction_of_most_products(
    isa: Isa, features: tuple[str, ...], a: DType, b: DType, instruction: str
) -> None:
    limited = isa.limited(frozenset(features))
    assert limited.name == isa.name
    assert all(tile.feature is None or tile.feature in features for tile in limited.tiles)
    tile = limited.tile(a, b)
    assert tile.instruction == instruction
    assert tile.a.holds(a.real)
    assert tile.b.holds(b.real)
    assert tile.acc is accumulator(a, b)
    every = [one for one in limited.tiles if one.takes(a.real, b.real)]
    assert max(one.products * (one.per_cycle or isa.fma_per_cycle) for one in every) == tile.products * (
        tile.per_cycle or isa.fma_per_cycle
    )


def test_every_row_has_an_instruction_for_every_pair() -> None:
    for isa in (*ISAS, *(row.limited(frozenset()) for row in (AVX512, AVX2, NEON, VSX))):
        for a, b in product(DTYPES.values(), repeat=2):
            if a.is_integer == b.is_integer:
                assert isa.tile(a, b).acc is accumulator(a.real, b.real)
            else:
                with pytest.raises(UnsupportedDtype):
                    isa.tile(a, b)


def test_a_row_with_every_instruction_is_not_copied() -> None:
    for isa in ISAS:
        features = frozenset(tile.feature for tile in isa.tiles if tile.feature)
        assert isa.limited(features, isa.vector_bits, 128) is isa


@pytest.mark.parametrize(
    ("row", "dtypes", "edge"),
    [
        (AVX512, (I8, F64), Edge.MASK),
        (AVX2, (F32, F64, C128), Edge.MASK),
        (AVX2, (F32, BF16), Edge.SPILL),  # VMASKMOV has no elements below 32 bits
        (AVX2, (I8,), Edge.SPILL),
        (NEON, (F32,), Edge.SPILL),
    ],
)
def test_edges_of_element_types(row: Isa, dtypes: tuple[DType, ...], edge: Edge) -> None:
    assert row.edge_of(*dtypes) is edge


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
        ("aarch64", {"neon", "sve"}, (NEON, SVE, GENERIC128)),
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
