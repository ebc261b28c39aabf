"""The analytic models: expected numbers for every catalogued machine, and the inequalities behind them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shares import covering, looped, share

from tilewright.compiler.pipeline import run_stages
from tilewright.errors import BlockNotMultiple, InvalidSize, NoRegisterTile
from tilewright.ir.nodes import Let, Program
from tilewright.machine.catalog import find_machine, targets
from tilewright.machine.isa import Broadcast, Isa
from tilewright.machine.isa_rows import AVX2, AVX512, GENERIC128, ISAS, NEON
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import (
    CMR_SLACK,
    DEPTH_UNIT,
    UPDATE_SHARE,
    Blocking,
    choose_blocking,
    machine_tile,
    panel_bytes,
    register_tile,
    register_tiles,
    row_block,
    wide_tile,
    wide_tiles_in_place,
)
from tilewright.macro.cost import RegisterTile
from tilewright.ops.chain.nest import ROW_BLOCKS, rows_of_block
from tilewright.ops.chain.problem import LinearChain
from tilewright.ops.gemm.nest import build_gemm
from tilewright.ops.gemm.problem import Gemm
from tilewright.spec.dtype import BF16, F32, F64, I8, I16, U8, DType
from tilewright.spec.problem import Strategy

#: mr, nr, kc, mc, nc per machine and dtype, from the inequalities by hand. For haswell in f32:
#: 6·2 accumulators + 2 of B + 1 of A = 15 ≤ 16 registers; kc = (256 KiB / 4) / (2 · 64 B) = 512, as L2/4
#: holds no more; mc = (65536 - 2·512·16) / 3 / 512 = 32, down to 5·6; nc = 2 MiB / 2 KiB = 1024. For znver4,
#: no tile of 8 rows or fewer is near the best CMR; 6·4 accumulators take 256 B of B in 24 cycles, below 12 a
#: cycle; kc = 2.5 · 1 / 0.5 % = 500, up to 512.
EXPECTED: dict[str, dict[DType, tuple[int, int, int, int, int]]] = {
    "haswell": {F32: (6, 16, 512, 30, 1024), F64: (6, 8, 512, 12, 512)},
    "cascadelake": {F32: (6, 64, 512, 126, 3520), F64: (6, 32, 512, 60, 1760)},
    "sapphirerapids": {F32: (12, 32, 1024, 144, 6720), F64: (12, 16, 1024, 72, 3360)},
    "znver2": {F32: (6, 16, 1024, 30, 1024), F64: (6, 8, 1024, 12, 512)},
    "znver4": {F32: (6, 64, 512, 126, 4096), F64: (6, 32, 512, 60, 2048)},
    "znver5": {F32: (12, 32, 1024, 60, 2048), F64: (12, 16, 1024, 24, 1024)},
    "neoverse-n1": {F32: (12, 8, 1024, 72, 2048), F64: (4, 12, 1024, 32, 1020)},
    "neoverse-v1": {F32: (12, 8, 2048, 36, 1024), F64: (4, 12, 1360, 24, 768)},
    "neoverse-v2": {F32: (12, 8, 2048, 36, 3648), F64: (4, 12, 1360, 24, 2736)},
    "apple-m1": {F32: (8, 12, 2048, 504, 504), F64: (8, 6, 2048, 248, 252)},
    "graniterapids": {F32: (12, 32, 1024, 144, 32256), F64: (12, 16, 1024, 72, 16128)},
    "kunpeng-920": {F32: (12, 8, 1488, 24, 2816), F64: (4, 12, 680, 24, 3084)},
    # 14·2 accumulators of 512 bits + 2 of B + 1 of A = 31 registers; kc = 2.5 · 2 / 0.5 %, up to 1024.
    "a64fx": {F32: (14, 32, 1024, 658, 1024), F64: (14, 16, 1024, 322, 512)},
    # The accumulators of SME are 2·2 of 16×16, or 4·2 of 8×8; kc = 64 KiB / (32 · 4 B) of B in half of L1.
    "apple-m4": {F32: (32, 32, 512, 2688, 2048), F64: (32, 16, 512, 1344, 1024)},
    # 6·9 accumulators + 9 of B + 1 of A = 64 registers; kc = 512 KiB / 4 / (2·36·4 B), down to 448.
    "pwr9": {F32: (6, 36, 448, 72, 1440), F64: (8, 14, 584, 24, 560)},
    # The eight accumulators of MMA are 2·4 of 4×4 (4×2); kc = 2.5 · 2 / 0.5 %, up to 1024.
    "pwr10": {F32: (8, 16, 1024, 72, 7680), F64: (8, 8, 1024, 32, 3840)},
    # 7·4 accumulators + 4 of B, none of A = 32 registers; 8·3 fit too, with a lower ratio.
    "rva23": {F32: (7, 16, 1024, 70, 1024), F64: (7, 8, 1024, 35, 512)},
    "x86-64-v2": {F32: (6, 8, 512, 36, 1024), F64: (6, 4, 512, 18, 512)},
    "x86-64-v3": {F32: (6, 16, 512, 30, 1024), F64: (6, 8, 512, 12, 512)},
    "x86-64-v4": {F32: (14, 32, 1024, 56, 704), F64: (14, 16, 1024, 28, 352)},
}
FLOATS = (F32, F64)
#: The rows with the instructions whose operands may stay where they are: multiply-adds of vectors.
VECTOR_ROWS = tuple(replace(isa, tiles=tuple(tile for tile in isa.tiles if tile.in_place)) for isa in ISAS)
each_machine = pytest.mark.parametrize("name", targets())
each_dtype = pytest.mark.parametrize("dtype", FLOATS, ids=str)
each_isa = pytest.mark.parametrize("isa", VECTOR_ROWS, ids=lambda isa: isa.name)


def test_the_table_covers_the_catalogue() -> None:
    assert set(EXPECTED) == set(targets())
    assert all(set(row) == set(FLOATS) for row in EXPECTED.values())


def blocking_of(machine: Machine, dtype: DType) -> Blocking:
    """The blocking of a product of one type."""
    return choose_blocking(machine, machine.isa.tile(dtype))


@each_machine
@each_dtype
def test_blocking_of_every_machine(name: str, dtype: DType) -> None:
    mr, nr, kc, mc, nc = EXPECTED[name][dtype]
    assert blocking_of(find_machine(name), dtype) == Blocking(mr=mr, nr=nr, kr=1, mc=mc, nc=nc, kc=kc)


# --- the inequalities themselves --------------------------------------------------------------------


def registers_needed(isa: Isa, dtype: DType, mr: int, nr: int) -> int:
    """Registers of one depth step, counted as the micro-kernel uses them."""
    vectors = nr // isa.lanes(dtype)
    of_a = {Broadcast.MEMORY: 1, Broadcast.LANE: math.ceil(mr / isa.lanes(dtype)), Broadcast.SCALAR: 0}
    return mr * vectors + vectors + of_a[isa.broadcast] + (0 if isa.fused else 1)


def feeds(isa: Isa, dtype: DType, mr: int, nr: int) -> bool:
    """Whether latency is covered and loads do not bound the multiply unit."""
    vectors = nr // isa.lanes(dtype)
    loads = vectors + (math.ceil(mr / isa.lanes(dtype)) if isa.broadcast is Broadcast.LANE else mr)
    covers = mr * vectors >= isa.fma_per_cycle * isa.fma_latency
    return covers and loads / isa.loads_per_cycle <= mr * vectors / isa.fma_per_cycle


def qualifying(isa: Isa, dtype: DType) -> set[tuple[int, int]]:
    lanes = isa.lanes(dtype)
    return {
        (mr, vectors * lanes)
        for mr in range(1, 64)
        for vectors in range(1, 64)
        if (isa.broadcast is not Broadcast.LANE or mr % lanes == 0)
        and registers_needed(isa, dtype, mr, vectors * lanes) <= isa.vector_registers
        and feeds(isa, dtype, mr, vectors * lanes)
    }


def cmr(mr: int, nr: int) -> float:
    return 2 * mr * nr / (mr + nr)


@each_isa
@each_dtype
def test_register_tiles_are_exactly_those_that_qualify(isa: Isa, dtype: DType) -> None:
    tiles = register_tiles(isa, isa.tile(dtype))
    assert {(tile.mr, tile.nr) for tile in tiles} == qualifying(isa, dtype)
    for tile in tiles:
        assert tile.registers == registers_needed(isa, dtype, tile.mr, tile.nr)
        assert tile.cmr == cmr(tile.mr, tile.nr)


@each_isa
@each_dtype
@looped("ways", [1, 2, 4, 8, 12, 16, 64])
def test_the_best_tile_prefers_rows_within_the_ways(isa: Isa, dtype: DType, ways: int) -> None:
    tile = register_tile(isa, isa.tile(dtype), ways)
    every = qualifying(isa, dtype)
    best = max(cmr(*each) for each in every)
    near = {each for each in every if each[0] <= ways and cmr(*each) >= (1 - CMR_SLACK) * best}
    if near:
        assert tile.mr <= ways
        assert tile.cmr == max(cmr(*each) for each in near)
    else:
        assert tile.cmr == best


def test_ties_go_to_fewer_loads() -> None:
    """6×4 and 4×6 have the same CMR; a row of 3 vectors and 4 broadcasts are 7 loads, not 8."""
    isa = replace(GENERIC128, vector_registers=17)
    assert {(6, 4), (4, 6)} <= qualifying(isa, F64)
    assert cmr(6, 4) == cmr(4, 6) == max(cmr(*each) for each in qualifying(isa, F64))
    tile = register_tile(isa, isa.tile(F64), ways=8)
    assert (tile.mr, tile.nr, tile.loads_per_depth) == (4, 6, 7)


@pytest.mark.parametrize(
    ("isa", "dtype", "ways", "mr", "nr"),
    [
        (AVX512, F32, 12, 12, 32),
        (AVX512, F32, 8, 14, 32),  # 8 rows of 3 vectors have 70 % of the best CMR only
        (AVX2, F32, 8, 6, 16),
        (GENERIC128, F32, 8, 6, 8),
        (NEON, F32, 8, 8, 12),
        (NEON, F32, 4, 12, 8),
    ],
)
def test_register_tile_by_hand(isa: Isa, dtype: DType, ways: int, mr: int, nr: int) -> None:
    tile = register_tile(isa, isa.tile(dtype), ways)
    assert (tile.mr, tile.nr) == (mr, nr)


#: Instructions that take several depths, or several rows: machine, operands -> instruction, mr, nr, kr.
UNITS: list[tuple[str, DType, DType, str, int, int, int]] = [
    # 14·2 accumulators + 2 of B + 1 of A = 31 of 32 registers.
    ("cascadelake", U8, I8, "vpdpbusd", 14, 32, 4),
    # One row more takes off the bias: 13 rows.
    ("cascadelake", I8, I8, "vpdpbusd_biased", 13, 32, 4),
    ("cascadelake", I16, I16, "vpdpwssd", 14, 32, 2),
    # No bfloat16 there: operands are widened. Rows of A in place must fit the 8 ways of L1: 6·4 accumulators.
    ("cascadelake", BF16, BF16, "multiply_add", 6, 64, 1),
    ("znver5", BF16, BF16, "vdpbf16ps", 12, 32, 2),
    # 6·2 + 2 + 1 and the product, which is added by another instruction: 16.
    ("haswell", I16, I8, "pmaddwd", 6, 16, 2),
    # Four tiles of C, two of A, two of B.
    ("sapphirerapids", BF16, BF16, "tdpbf16ps", 32, 32, 2),
    ("sapphirerapids", I8, U8, "tdpbsud", 32, 32, 4),
    ("pwr10", BF16, BF16, "xvbf16ger2pp", 8, 16, 2),
    ("pwr10", I16, I16, "xvi16ger2pp", 8, 16, 2),
    ("x86-64-v2", I8, I8, "multiply_add", 6, 8, 1),
]


@pytest.mark.parametrize(("name", "a", "b", "instruction", "mr", "nr", "kr"), UNITS)
def test_tiles_of_other_instructions_by_hand(
    name: str, a: DType, b: DType, instruction: str, mr: int, nr: int, kr: int
) -> None:
    machine = find_machine(name)
    one = machine.isa.tile(a, b)
    assert one.instruction == instruction
    blocking = choose_blocking(machine, one)
    assert (blocking.mr, blocking.nr, blocking.kr) == (mr, nr, kr)


@each_machine
def test_blocks_of_every_instruction_are_whole(name: str) -> None:
    """Whole tiles, whole steps of the depth, and accumulators that the unit has."""
    machine = find_machine(name)
    for one in machine.isa.tiles:
        tile = machine_tile(machine, one)
        blocking = choose_blocking(machine, one)
        assert (blocking.mr, blocking.nr, blocking.kr) == (tile.mr, tile.nr, one.kr)
        assert (tile.mr % one.m, tile.nr % one.n, blocking.kc % one.k) == (0, 0, 0)
        grid = tile.mr // one.m * tile.nr // one.n
        assert tile.accumulators == grid + one.biased * tile.nr // one.n
        assert tile.registers <= machine.isa.vector_registers
        assert tile.accumulators <= (one.accumulators or machine.isa.vector_registers)


@pytest.mark.parametrize("registers", [1, 2, 6])
def test_too_few_registers_have_no_tile(registers: int) -> None:
    poor = replace(AVX2, name="poor", vector_registers=registers)
    with pytest.raises(NoRegisterTile, match=f"{registers} vector registers of 8 lanes for f32 on poor"):
        register_tile(poor, poor.tile(F32), ways=8)


def test_loads_that_bound_every_tile_leave_none() -> None:
    with pytest.raises(NoRegisterTile):
        register_tile(replace(AVX512, loads_per_cycle=1, fma_per_cycle=8), AVX512.tile(F32), ways=8)


@each_machine
@each_dtype
def test_kc(name: str, dtype: DType) -> None:
    """UPDATE_CYCLES / (kc / FMAs a cycle) ≤ share, unless two panels would fill L2/4; never below (1)."""
    machine = find_machine(name)
    blocking = blocking_of(machine, dtype)
    kc, row_bytes = blocking.kc, blocking.nr * dtype.size
    assert kc % DEPTH_UNIT == 0
    per_cycle = machine.isa.tile(dtype).per_cycle or machine.isa.fma_per_cycle
    update_share = machine.core.update_cycles / (kc / per_cycle)
    panels_bytes = 2 * kc * row_bytes
    half_l1 = machine.l1.size // 2
    assert kc + DEPTH_UNIT > half_l1 / row_bytes, "Kuzma et al. 2023 (1): a panel in half of L1 is the least"
    if kc * row_bytes > half_l1:
        assert panels_bytes <= machine.l2.size / 4
    shortened = panels_bytes + 2 * DEPTH_UNIT * row_bytes > machine.l2.size / 4
    block_bytes = 6 * (kc + DEPTH_UNIT) * blocking.mr * dtype.size
    shortened |= block_bytes + panels_bytes + 2 * DEPTH_UNIT * row_bytes > machine.l2.size
    assert blocking.mc >= 2 * blocking.mr, "a micro-panel of B serves several tiles"
    assert update_share <= UPDATE_SHARE or shortened


@each_machine
@each_dtype
def test_mc_and_nc(name: str, dtype: DType) -> None:
    """mc·kc fills a third of what B leaves of L2, nc·kc its share of the last cache, in whole tiles."""
    machine = find_machine(name)
    blocking = blocking_of(machine, dtype)
    mc, nc, kc, mr, nr = blocking.mc, blocking.nc, blocking.kc, blocking.mr, blocking.nr
    room = (machine.l2.size / dtype.size - 2 * kc * nr) / 3
    assert mc * kc <= room < (mc + mr) * kc
    last = panel_bytes(machine)
    assert nc * kc <= last / dtype.size < (nc + nr) * kc
    assert (mc % mr, nc % nr, kc % blocking.kr) == (0, 0, 0)


def with_l2(machine: Machine, size: int) -> Machine:
    return replace(machine, l2=replace(machine.l2, size=size))


@each_dtype
@given(st.sampled_from(targets()), st.integers(0, 2**22), st.integers(1, 200))
@settings(deadline=None)
def test_more_l2_never_shrinks_mc(dtype: DType, name: str, more: int, depth_units: int) -> None:
    machine = find_machine(name)
    instruction = machine.isa.tile(dtype)
    tile = machine_tile(machine, instruction)
    larger = with_l2(machine, machine.l2.size + more)
    kc = depth_units * DEPTH_UNIT
    assert row_block(machine, instruction, tile, kc) <= row_block(larger, instruction, tile, kc)


@each_machine
@each_dtype
def test_twice_the_cache_never_shrinks_a_block(name: str, dtype: DType) -> None:
    machine = find_machine(name)
    blocks = [blocking_of(with_l2(machine, machine.l2.size << shift), dtype) for shift in range(5)]
    assert sorted(block.mc for block in blocks) == [block.mc for block in blocks]
    assert sorted(block.kc for block in blocks) == [block.kc for block in blocks]
    if machine.l3 is not None:
        caches = [replace(machine.l3, size=machine.l3.size << shift) for shift in range(4)]
        panels = [blocking_of(replace(machine, l3=cache), dtype).nc for cache in caches]
        assert sorted(panels) == panels
        assert panels[0] < panels[-1]


@each_machine
def test_blocks_never_fall_below_one_unit(name: str) -> None:
    tiny = replace(
        find_machine(name),
        l1=replace(find_machine(name).l1, size=64),
        l2=replace(find_machine(name).l2, size=64),
        l3=replace(find_machine(name).l2, size=64),
    )
    for dtype in FLOATS:
        blocking = blocking_of(tiny, dtype)
        assert (blocking.mc, blocking.nc, blocking.kc) == (blocking.mr, blocking.nr, DEPTH_UNIT)


def lets(program: Program) -> dict[str, object]:
    return {statement.name: statement.value for statement in program.body if isinstance(statement, Let)}


@each_machine
def test_the_depth_cut_depends_on_k_dtype_and_machine_alone(name: str) -> None:
    """Promise 5: rows, columns, layouts and strategy do not change in which order depths are added."""
    machine = find_machine(name)
    for dtype in share(FLOATS, 2, targets().index(name)):
        blocking = blocking_of(machine, dtype)
        problems = [
            Gemm(m, n, k=5000, dtype=dtype, a=layout, b=layout, c=c, strategy=strategy)
            for m, n, layout, c, strategy in covering(
                (1, 1000, None), (1, 77, None), ("row", "col", "strided"), ("row", "strided"), Strategy
            )
        ]
        programs = [build_gemm(problem, blocking, machine, "g") for problem in problems]
        assert len({lets(program)["kc"] for program in programs}) == 1


# --- records ------------------------------------------------------------------------------------------

GOOD = {"mr": 6, "nr": 16, "kr": 2, "mc": 36, "nc": 64, "kc": 8}


@pytest.mark.parametrize(("block", "unit"), [("mc", "mr"), ("nc", "nr"), ("kc", "kr")])
def test_blocks_are_whole_multiples(block: str, unit: str) -> None:
    Blocking(**GOOD)
    wrong = {**GOOD, block: GOOD[block] + 1}
    with pytest.raises(BlockNotMultiple) as caught:
        Blocking(**wrong)
    for part in (block, str(GOOD[block] + 1), unit, str(GOOD[unit])):
        assert part in str(caught.value)


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("value", [0, -16])
def test_blocks_are_positive(name: str, value: int) -> None:
    with pytest.raises(InvalidSize, match=f"blocking {name} is {value}"):
        Blocking(**{**GOOD, name: value})


def test_cmr() -> None:
    tile = RegisterTile(mr=6, nr=16, accumulators=12, registers=15, loads_per_depth=8)
    assert tile.cmr == pytest.approx(2 * 6 * 16 / 22)


WIDE = find_machine("sapphirerapids")


@pytest.mark.parametrize(
    ("machine", "dtype", "wide"),
    [
        (WIDE, F32, (8, 48)),
        (WIDE, F64, (8, 24)),
        (WIDE.with_isa(AVX2), F32, (4, 24)),
        (find_machine("cascadelake"), F32, None),  # whose usual tile is 6x64
        (find_machine("haswell"), F32, None),  # L2 is too small for panels
        (find_machine("znver4"), F32, None),  # L3 is in time
        (find_machine("znver5"), F64, None),
        (find_machine("neoverse-v1"), F64, None),
    ],
    ids=lambda value: getattr(value, "cpu", None) or getattr(value, "name", None) or str(value),
)
def test_wide_tiles_are_of_cores_whose_l3_is_late(
    machine: Machine, dtype: DType, wide: tuple[int, int] | None
) -> None:
    one = machine.isa.tile(dtype)
    usual = machine_tile(machine, one)
    found = wide_tile(machine, one, usual.mr, usual.nr)
    assert (found and (found.mr, found.nr)) == wide
    if found is not None:
        assert found.accumulators == usual.accumulators
        assert wide_tile(machine, one, found.mr, found.nr) is None, "a tuned tile may be the wide one"


@pytest.mark.parametrize(
    ("machine", "dtype", "tiles"),
    [
        (WIDE, F32, [(8, 48), (6, 64)]),
        (WIDE, F64, [(8, 24), (6, 32)]),
        (WIDE.with_isa(AVX2), F32, []),  # 4x24 saves one instruction of twenty
        (find_machine("znver5"), F32, []),
    ],
    ids=lambda value: getattr(value, "cpu", None) or str(value),
)
def test_wide_tiles_in_place_save_instructions(
    machine: Machine, dtype: DType, tiles: list[tuple[int, int]]
) -> None:
    one = machine.isa.tile(dtype)
    usual = machine_tile(machine, one)
    found = wide_tiles_in_place(machine, one, usual.mr, usual.nr)
    assert [(tile.mr, tile.nr) for tile in found] == tiles
    assert all(tile.accumulators == usual.accumulators for tile in found)


def test_blocks_beside_a_packed_operand_are_higher_and_sum_in_the_same_order() -> None:
    machine = find_machine("znver5")
    usual = run_stages(Gemm(), machine, until="blocking").blocking
    beside = run_stages(Gemm(b="packed"), machine, until="blocking").blocking
    assert isinstance(usual, Blocking)
    assert isinstance(beside, Blocking)
    assert beside == replace(usual, mc=2 * usual.mc)
    assert beside.mc * beside.kc * 4 <= machine.l2.size / 2
    assert run_stages(Gemm(a="packed"), machine, until="blocking").blocking == usual


def test_rows_of_a_chain_keep_its_widest_layer_in_the_last_cache() -> None:
    machine = find_machine("znver5")
    one = machine.isa.tile(F32)
    blocking = choose_blocking(machine, one)
    rows = {
        width: rows_of_block(LinearChain((64, width)), blocking, machine, one)
        for width in (64, 1 << 15, 1 << 20)
    }
    assert rows[64] == ROW_BLOCKS * blocking.mc
    assert machine.l3 is not None
    assert rows[1 << 15] * (1 << 15) * 4 <= machine.l3.size / 4 < rows[64] * (1 << 15) * 4
    assert rows[1 << 20] == blocking.mr
