"""Analytic models: the register tile from the register file, the cache blocks from the caches."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import NamedTuple

from tilewright.errors import BlockNotMultiple, InvalidSize, NoRegisterTile
from tilewright.machine.isa import Broadcast, Edge, Isa, TileFma
from tilewright.machine.machine import Machine
from tilewright.macro.cost import (
    PASSING_WAYS,
    STREAM_SHARE,
    RegisterTile,
    panels_stay,
    row_feed,
    tile_cycles,
    tiles_a_panel,
)
from tilewright.records import dataclass

#: Share of a tile's time that its load-add-store of C in cache may cost (see `depth_block`). Large C goes to
#: memory and back each time: half a percent instead of one made n = 3000 five percent faster.
UPDATE_SHARE = 0.005

#: Part of L2 that two micro-panels of B may take, the one in use and the next.
PANELS_L2_PART = 4

#: Register tiles that the block of A has at least: a micro-panel of B is read from L3 once for all of them.
ROW_TILES = 2

#: Share of L2, less two micro-panels of B, that the block of A takes at most. With 256 rows AMX is 5 % faster
#: than with 128 (bfloat16 of 1024x1024x1024).
MOST_ROWS_L2 = 0.6

#: A register tile may give up this share of the best CMR to fit its rows in the ways of L1.
CMR_SLACK = 0.125

#: kc is a multiple of this many depths, so that panels of equal length start on cache lines.
DEPTH_UNIT = 8

#: Share of the last cache that the packed panel of B may take; the rest is for A, C and other cores.
LAST_CACHE_SHARE = 0.25

#: Bytes of the panel of B for each usable core that shares the last cache. A virtual machine of two cores has
#: neighbours there which it does not see: on a busy Zen 3 (32 MiB for eight cores, two of them usable),
#: 4096x4096x4096 has 0.82 of the peak with panels of 2 or 4 MiB, 0.38 with 8; 1536x4096x1024 0.89 and 0.76.
CORE_PANEL_BYTES = 2 << 20
#: Or so many times L2, where that is more: A is packed once for each panel.
CORE_PANEL_L2 = 2

#: Panel of B where there is no third level: it then lives in memory, and this bounds the scratch.
PANEL_WITHOUT_L3 = 4 << 20


#: Rows of a C that can't take sums, whose sums wait in a block or beside a column of tiles.
SUMS_ROWS = 2048
#: Rows of A that are packed at once where they meet several slices of B. They take 8 MiB, a share of L3; each
#: block of them packs B again.
PACKED_ROWS = 2048


#: Columns of the block of `SUMS_ROWS` rows in which sums of a narrower C wait for the next depth block: B is
#: packed again for each block of rows, and A for each of columns, which costs a few percent at these sizes.
SUMS_COLUMNS = 1024


@dataclass(frozen=True)
class Blocking:
    """How one GEMM is cut: register tile mr×nr with interleave kr, cache blocks mc, nc, kc."""

    mr: int
    nr: int
    kr: int
    mc: int
    nc: int
    kc: int

    def __post_init__(self) -> None:
        for name in ("mr", "nr", "kr", "mc", "nc", "kc"):
            if getattr(self, name) <= 0:
                raise InvalidSize(name=f"blocking {name}", found=getattr(self, name), required="positive")
        for block, unit in (("mc", "mr"), ("nc", "nr"), ("kc", "kr")):
            if getattr(self, block) % getattr(self, unit):
                raise BlockNotMultiple(
                    block=block, size=getattr(self, block), of=unit, unit=getattr(self, unit)
                )


def _candidate(isa: Isa, instruction: TileFma, mr: int, across: int) -> RegisterTile:
    """A tile of mr rows and `across` accumulators side by side."""
    down = mr // instruction.m
    # An instruction with a bias keeps one accumulator more for each vector of B.
    accumulators = (down + instruction.bias_accumulators) * across
    if instruction.is_matrix_engine:
        a_registers, a_loads = 1, down
    else:
        word_lanes = isa.words(instruction)
        match isa.broadcast:
            case Broadcast.MEMORY:
                a_registers, a_loads = 1, mr
            case Broadcast.LANE:
                a_registers = a_loads = -(-mr // word_lanes)
            case Broadcast.SCALAR:
                a_registers, a_loads = 0, mr
    product = 0 if isa.fuses(instruction) else 1
    held = 0 if instruction.has_accumulators else accumulators
    return RegisterTile(
        mr=mr,
        nr=across * instruction.n,
        accumulators=accumulators,
        registers=held + across + a_registers + product,
        loads_per_depth=a_loads + across,
    )


def register_tiles(isa: Isa, instruction: TileFma) -> tuple[RegisterTile, ...]:
    """Every mr×nr that keeps the multiply unit busy without spilling.

    With v = nr/lanes vectors a row, one depth step issues mr·v FMAs. A tile qualifies if

    - registers: mr·v accumulators + v of B + those of A (one broadcast; mr/lanes vectors where the
      FMA takes a lane; none where it takes a scalar) + one product where multiply and add are
      separate ≤ vector registers (Fu et al. 2024 (7): nr is a multiple of the lanes);
    - latency: mr·v ≥ fma_per_cycle · fma_latency independent accumulators;
    - loads: loads per depth / loads per cycle ≤ mr·v / FMAs per cycle, so loads never bound it;
    - lanes: where the FMA takes a lane, mr is a multiple of the lanes, so whole vectors hold A.

    A unit with accumulators of its own is filled with them (Kuzma et al. 2023, Algorithm 2: VAccs × HAccs).
    """
    per_cycle = isa.rate(instruction)
    latency = isa.latency(instruction)
    most = instruction.accumulators
    tiles = []
    for tile in register_candidates(isa, instruction):
        hides = tile.accumulators >= per_cycle * latency
        feeds = tile.loads_per_depth * per_cycle <= tile.accumulators * isa.loads_per_cycle
        if most:
            hides, feeds = tile.accumulators == most or instruction.biased, True
        if hides and feeds:
            tiles.append(tile)
    return tuple(tiles)


def register_candidates(isa: Isa, instruction: TileFma) -> tuple[RegisterTile, ...]:
    """Every mr×nr that fits the registers, whole vectors of A where the FMA takes lanes of them."""
    most = instruction.accumulators or isa.registers(instruction)
    tiles = []
    for across in range(1, most + 1):
        for down in range(1, most // across + 1):
            mr = down * instruction.m
            tile = _candidate(isa, instruction, mr, across)
            fits = tile.registers <= isa.registers(instruction) and tile.accumulators <= most
            by_lane = isa.multiplies_by_lane(instruction)
            word_lanes = isa.words(instruction)
            whole = not by_lane or mr % word_lanes == 0
            pairs = not instruction.is_matrix_engine or tile.nr % isa.lanes(instruction.acc) == 0
            if fits and whole and pairs:
                tiles.append(tile)
    return tuple(tiles)


def machine_tile(machine: Machine, instruction: TileFma, columns: int = 0) -> RegisterTile:
    """The register tile of an instruction on a machine; see `register_tile`."""
    feed = STREAM_SHARE * machine.core_row.l2_bytes_per_cycle
    return register_tile(machine.isa, instruction, machine.l1.ways, columns, feed)


def register_tile(
    isa: Isa, instruction: TileFma, ways: int, columns: int = 0, feed: float = 0.0
) -> RegisterTile:
    """The register tile of the best CMR, preferring rows that fit in the ways of L1.

    With `columns`, one of as many: a packed operand has panels of them.

    A and C are used in place, and a tile's rows are a leading dimension apart. When that is a multiple of
    the bytes one way spans (every power of two of 4 KiB or more), the rows fall into the same set, and more
    rows than ways evict each other between their prefetch and their use. So among the tiles within
    `CMR_SLACK` of the best CMR, those with mr ≤ ways come first. If there are none and FMAs read A in place,
    those come that leave `PASSING_WAYS` of a set to what passes by and read at most `feed` bytes of B a
    cycle, since such wide tiles stream B from L2: 6x64 on a Zen 4, which has 8 ways and one FMA a cycle.
    Ties go to fewer loads.

    Examples
    --------
    >>> from tilewright.machine.isa_rows import AVX512, AVX2
    >>> from tilewright.spec.dtype import F32
    >>> tile = register_tile(AVX512, AVX512.tile(F32), ways=12)
    >>> tile.mr, tile.nr
    (12, 32)
    >>> tile = register_tile(AVX2, AVX2.tile(F32), ways=8)
    >>> tile.mr, tile.nr
    (6, 16)
    """
    tiles = tuple(tile for tile in register_tiles(isa, instruction) if columns in (0, tile.nr))
    if not tiles:
        lanes = isa.lanes(instruction.acc)
        raise NoRegisterTile(registers=isa.vector_registers, lanes=lanes, dtype=instruction.a, isa=isa.name)
    # One accumulator wide, each element of A would be used once.
    tiles = tuple(tile for tile in tiles if tile.nr > instruction.n) or tiles
    best = max(tile.cmr for tile in tiles)
    near = [
        tile for tile in tiles if tile.mr <= max(ways, instruction.m) and tile.cmr >= (1 - CMR_SLACK) * best
    ]
    if not near and instruction.in_place and isa.fuses(instruction):
        per_cycle = isa.rate(instruction) * instruction.products

        def streams(tile: RegisterTile) -> bool:
            return instruction.b.bytes(tile.nr) * per_cycle <= feed * tile.mr * tile.nr

        near = [tile for tile in tiles if tile.mr <= ways - PASSING_WAYS and streams(tile)]
    return max(near or tiles, key=lambda tile: (tile.cmr, -tile.loads_per_depth))


#: Share of what L2 delivers that a wide tile reads of B: 8x48 takes a third on a Golden Cove, which was up to
#: 6 % faster than 6x64 (0.44).
WIDE_SHARE = 1 / 3


#: Least share of the instructions of a depth that a wide tile saves in place. With AVX-512 8x48 saves 8 % of
#: those of 12x32 and 6x64 11 %; with AVX2 4x24 saves 5 % of those of 6x16, and 128³ took 1.09 times as long.
WIDE_SAVING = 1 / 16


def wide_tiles(machine: Machine, instruction: TileFma, mr: int, nr: int) -> tuple[RegisterTile, ...]:
    """Tiles with the accumulators of a usual one of mr×nr, but fewer loads; narrowest first.

    Two busy threads share the issue slots of a core, and each element of A takes one. There are such tiles
    only where panels stay in L2 because L3 is late (`panels_stay`).

    Examples
    --------
    >>> from tilewright.machine.catalog import find_machine
    >>> from tilewright.spec.dtype import F32
    >>> machine = find_machine("sapphirerapids")
    >>> [(tile.mr, tile.nr) for tile in wide_tiles(machine, machine.isa.tile(F32), 12, 32)]
    [(8, 48), (6, 64)]
    """
    isa = machine.isa
    if not instruction.in_place or not panels_stay(machine, instruction, mr, nr):
        return ()
    usual = _candidate(isa, instruction, mr, nr // instruction.n)
    found: list[RegisterTile] = []
    for tile in sorted(register_tiles(isa, instruction), key=lambda tile: tile.nr):
        least = found[-1] if found else usual
        as_many = tile.accumulators == usual.accumulators
        if tile.nr > nr and as_many and tile.loads_per_depth < least.loads_per_depth:
            found.append(tile)
    return tuple(found)


def wide_tile(machine: Machine, instruction: TileFma, mr: int, nr: int) -> RegisterTile | None:
    """The one of `wide_tiles` for strips of A, whose panels L2 feeds; None if none is.

    Measured in docs/decisions/072-wide-strips.md.

    Examples
    --------
    >>> from tilewright.machine.catalog import find_machine
    >>> from tilewright.spec.dtype import F32
    >>> machine = find_machine("sapphirerapids")
    >>> tile = wide_tile(machine, machine.isa.tile(F32), 12, 32)
    >>> tile.mr, tile.nr
    (8, 48)
    """
    feed = WIDE_SHARE * machine.core.l2_bytes_per_cycle
    tiles = wide_tiles(machine, instruction, mr, nr)
    fed = [tile for tile in tiles if row_feed(machine.isa, instruction, tile.mr, tile.nr) <= feed]
    return fed[-1] if fed else None


def wide_tiles_in_place(machine: Machine, instruction: TileFma, mr: int, nr: int) -> tuple[RegisterTile, ...]:
    """Those of `wide_tiles` that save enough where both operands are in place; see `WIDE_SAVING`."""
    usual = _candidate(machine.isa, instruction, mr, nr // instruction.n)
    most = usual.loads_per_depth - WIDE_SAVING * (usual.accumulators + usual.loads_per_depth)
    tiles = wide_tiles(machine, instruction, mr, nr)
    return tuple(tile for tile in tiles if tile.loads_per_depth <= most)


#: Blocks of rows of the usual GEMM in a block where B is packed already (see `prepacked`).
PREPACKED_ROWS = 2


def prepacked_rows(machine: Machine, instruction: TileFma, blocking: Blocking) -> int:
    """How many times the usual rows a block has in `prepacked`; 1 where twice as many would fill L2."""
    tile = machine_tile(machine, instruction, blocking.nr)
    limits = row_limits(machine, instruction, tile, blocking.kc)
    return PREPACKED_ROWS if limits.rows == limits.third else 1


def prepacked(machine: Machine, instruction: TileFma, blocking: Blocking) -> Blocking:
    """The blocking of a GEMM whose B stands in panels: higher blocks of rows, everything else the same.

    B is not in L3 yet, as it is where it was just packed, and passes by once for each block of rows. So the
    block of A takes a larger part of L2: twice the rows measured 1 to 3 % faster at 512 to 2048 rows of a
    weight of 1024x4096 f32, four times as many no faster. Tiles and kc stay, and so does the order of sums.
    """
    return replace(blocking, mc=prepacked_rows(machine, instruction, blocking) * blocking.mc)


@dataclass(frozen=True)
class Cover:
    """How a product of known sizes is cut into register tiles.

    Attributes
    ----------
    heights : (rows, how many tiles of that height), from the top.
    widths : (columns, how many tiles of that width), from the left.
    """

    heights: tuple[tuple[int, int], ...]
    widths: tuple[tuple[int, int], ...]


#: Registers that a straight tile leaves to the scheduler: its depth is unrolled, and loads move up.
SPARE_REGISTERS = 2


def _even(total: int, parts: int) -> tuple[tuple[int, int], ...]:
    """`total` in `parts` nearly equal sizes, larger ones first: (size, how many).

    >>> _even(64, 5)
    ((13, 4), (12, 1))
    """
    size, larger = divmod(total, parts)
    found = ((size + 1, larger), (size, parts - larger))
    return tuple((value, count) for value, count in found if count and value)


def choose_cover(machine: Machine, instruction: TileFma, edge: Edge, sizes: tuple[int, int, int]) -> Cover:
    """Register tiles for a product of known rows, columns and depth, by least estimated cycles.

    Rows are cut into equal heights and vectors of columns into equal widths (the last column tile
    may end in a partial vector); every pair of counts that fits the registers is tried. So 23 rows
    become 12 + 11, not 12 + 8 + 3, and 5 columns one tile.

    Examples
    --------
    >>> from tilewright.machine.catalog import find_machine
    >>> from tilewright.spec.dtype import F32
    >>> machine = find_machine("znver5")
    >>> choose_cover(machine, machine.isa.tile(F32), machine.isa.edge, (64, 64, 64)).widths
    ((64, 1),)

    Source: Breuer, tnzr.compile, §7.2 (kernels for arbitrary sizes from a few micro-kernels).
    """
    isa, (rows, columns, depth) = machine.isa, sizes
    if instruction.is_matrix_engine:
        return _whole_tiles(machine, instruction, rows, columns)
    lanes = isa.lanes(instruction.acc)
    vectors = -(-columns // lanes)
    usable = isa.registers(instruction) - _spare_registers(isa, instruction, edge, columns)
    best: tuple[float, Cover] | None = None

    # Thousands of covers are made of a few dozen tiles.
    @cache
    def candidate(height: int, vectors: int) -> RegisterTile:
        return _candidate(isa, instruction, height, vectors)

    @cache
    def cycles_of(height: int, width: int) -> float:
        masked = edge is Edge.MASK and width % lanes != 0
        tile = candidate(height, _vectors(edge, lanes, width))
        return tile_cycles(machine, instruction, tile, depth, masked=masked)

    for across in range(1, vectors + 1):
        widths = _columns(_even(vectors, across), lanes, columns)
        most = max(_vectors(edge, lanes, width) for width, _ in widths)
        tallest_that_fits = (usable - most - 1) // most
        if tallest_that_fits < 1:
            continue
        for down in range(-(-rows // tallest_that_fits), rows + 1):
            heights = _even(rows, down)
            tallest = candidate(heights[0][0], most)
            if tallest.registers > usable:
                continue
            cycles = sum(
                count * times * cycles_of(height, width)
                for height, count in heights
                for width, times in widths
            )
            cycles += machine.core.tile_height_cycles * (len(heights) - 1)
            if best is None or cycles < best[0]:
                best = (cycles, Cover(heights, widths))
            if tallest.accumulators < isa.rate(instruction) * isa.latency(instruction):
                break  # shorter tiles only add latency
    if best is None:
        raise NoRegisterTile(registers=isa.vector_registers, lanes=lanes, dtype=instruction.a, isa=isa.name)
    return best[1]


def _whole_tiles(machine: Machine, instruction: TileFma, rows: int, columns: int) -> Cover:
    """The unit's own tile as often as it fits, then what remains."""
    tile = machine_tile(machine, instruction)

    def cut(extent: int, size: int) -> tuple[tuple[int, int], ...]:
        whole, rest = divmod(extent, size)
        return tuple((part, count) for part, count in ((size, whole), (rest, 1)) if part and count)

    return Cover(cut(rows, tile.mr), cut(columns, tile.nr))


def _spare_registers(isa: Isa, instruction: TileFma, edge: Edge, columns: int) -> int:
    """Registers that a straight tile leaves free: for the scheduler, for a product, for a mask.

    The depth is unrolled, and loads move up. A separate multiply needs two more (its result, and the
    copy that two-operand instructions make); a mask that lives in a vector register, the lane it
    repeats and their blend three (below 512 bits).
    """
    fused = isa.fuses(instruction)
    masked = edge is Edge.MASK and columns % isa.lanes(instruction.acc) != 0 and isa.vector_bits < 512
    return SPARE_REGISTERS + (0 if fused else 2) + (3 if masked else 0)


def _vectors(edge: Edge, lanes: int, columns: int) -> int:
    """Vectors of one row of a tile: the last one masked, or a power of two for each bit of the rest."""
    whole, rest = divmod(columns, lanes)
    return whole + (rest.bit_count() if edge is Edge.SPILL else min(rest, 1))


def _columns(widths: tuple[tuple[int, int], ...], lanes: int, columns: int) -> tuple[tuple[int, int], ...]:
    """Widths in columns; the last tile loses what the last vector lacks."""
    missing = sum(width * count for width, count in widths) * lanes - columns
    width, count = widths[-1]
    found = [(size * lanes, times) for size, times in widths[:-1]]
    if missing == 0:
        found.append((width * lanes, count))
    else:
        if count > 1:
            found.append((width * lanes, count - 1))
        found.append((width * lanes - missing, 1))
    return tuple(found)


def _down(size: float, unit: int) -> int:
    """The largest multiple of unit that is at most size, at least one unit."""
    return max(unit, int(size) // unit * unit)


def depth_unit(instruction: TileFma) -> int:
    """kc is a multiple of this many depths."""
    return max(DEPTH_UNIT, instruction.k)


def depth_block(machine: Machine, instruction: TileFma, tile: RegisterTile) -> int:
    """kc, the depth of the packed panels: Kuzma et al. 2023 (1)-(2), with the L2 as feeder.

    (1) keeps a kc×nr micro-panel of B in half of L1, (2) leaves the other half to A and C.
    That is the bound where L1 alone can feed the multiply unit. The micro-kernel consumes
    (mr + nr) elements per depth, during mr·nr/lanes/fma_per_cycle cycles: 15 bytes a cycle for
    12×32 f32, a quarter of what the L2 of the catalogued cores delivers. So the micro-panels may
    stream from L2, and a longer kc pays, because each tile of C is loaded, added and stored once
    per kc:

        update share = update_cycles / (kc / fma_per_cycle) ≤ UPDATE_SHARE
        kc ≥ update_cycles · fma_per_cycle / UPDATE_SHARE                     (1000 at 2 FMAs)

    bounded by (1') two micro-panels of B (the one in use and the next) ≤ L2/4, so that most of L2
    stays with the block of A, and (1'') that block, which has a third of the rest, holds `ROW_TILES` tiles:
    3·ROW_TILES·mr·kc ≤ L2 - 2·kc·nr in bytes. The result never falls below (1).

    kc depends on machine and dtypes only (and on k through `balanced`): promise 5. An
    instruction that takes several depths at once takes as many times more of them.
    """
    return _down(depth_limits(machine, instruction, tile).depth, depth_unit(instruction))


class DepthLimits(NamedTuple):
    """The depths that each rule of `depth_block` gives: at least the first, at most the others."""

    in_l1: float
    wanted: float
    in_l2: float
    beside_a: float

    @property
    def depth(self) -> float:
        """The depth that follows, before it is rounded."""
        return max(self.in_l1, min(self.wanted, self.in_l2, self.beside_a))


def depth_limits(machine: Machine, instruction: TileFma, tile: RegisterTile) -> DepthLimits:
    """The rules of `depth_block` with the numbers of a machine."""
    per_cycle = machine.isa.rate(instruction)
    wanted = machine.core.update_cycles * per_cycle / UPDATE_SHARE
    wanted = -(-int(wanted) // 64) * 64 * instruction.k
    bytes_a_depth = instruction.a.bytes(3 * ROW_TILES * tile.mr) + instruction.b.bytes(2 * tile.nr)
    return DepthLimits(
        in_l1=machine.l1.size / 2 / instruction.b.bytes(tile.nr),
        wanted=wanted,
        in_l2=machine.l2.size / PANELS_L2_PART / instruction.b.bytes(2 * tile.nr),
        beside_a=machine.l2.size / bytes_a_depth,
    )


def row_block(machine: Machine, instruction: TileFma, tile: RegisterTile, kc: int) -> int:
    """mc, rows of the packed block of A: Kuzma et al. 2023 (3).

    L2 holds the mc×kc block, two micro-panels of B (one in use, the next arriving) and the lines
    of C in flight. L2 is shared with instructions, with the lines that A's next block and C pass
    through, and replaced by pseudo-LRU, so the block takes a third of what remains:
    mc·kc ≤ (L2 - 2·kc·nr) / 3 in bytes (a half measured 2 % slower at n = 4096). Or, of a matrix unit, as
    many as let micro-panels of B stream from L3 in time, if that is more: eight tiles of AMX.
    """
    return _down(row_limits(machine, instruction, tile, kc).rows, tile.mr)


class RowLimits(NamedTuple):
    """The rows that each rule of `row_block` gives: the first, or more by the second, up to the third."""

    third: float
    in_time: int
    most: float

    @property
    def rows(self) -> float:
        """The rows that follow, before they are rounded."""
        return max(self.third, min(self.in_time, self.most))


def row_limits(machine: Machine, instruction: TileFma, tile: RegisterTile, kc: int) -> RowLimits:
    """The rules of `row_block` with the numbers of a machine, not with those that were measured on a host."""
    remaining = machine.l2.size - instruction.b.bytes(2 * kc * tile.nr)
    rows = remaining * 8 / instruction.a.bits / kc
    tiles = tiles_a_panel(machine, machine.core_row, instruction, tile.mr, tile.nr)
    return RowLimits(rows / 3, tile.mr * tiles * instruction.is_matrix_engine, rows * MOST_ROWS_L2)


def panel_bytes(machine: Machine) -> float:
    """Bytes that the packed panel of B may take."""
    if machine.l3 is None:
        return PANEL_WITHOUT_L3
    a_core = max(CORE_PANEL_BYTES, CORE_PANEL_L2 * machine.l2.size)
    return min(machine.l3.size * LAST_CACHE_SHARE, a_core * machine.l3.shared_by)


def column_block(machine: Machine, instruction: TileFma, tile: RegisterTile, kc: int) -> int:
    """nc, columns of the packed panel of B: Kuzma et al. 2023 (4)-(7).

    The kc×nc panel lives in the last cache, of which a single call takes `LAST_CACHE_SHARE`
    (inclusive copies of A, and C streaming through, take the rest), and at most `CORE_PANEL_BYTES` or
    `CORE_PANEL_L2` for each core that shares it: nc·kc ≤ share · L3.
    """
    return _down(panel_bytes(machine) * 8 / instruction.b.bits / kc, tile.nr)


def choose_blocking(machine: Machine, instruction: TileFma, columns: int = 0) -> Blocking:
    """The blocking of a GEMM of any size on a machine, in elements of the instruction's panels.

    With `columns`, the register tile has as many.

    Source: Kuzma et al. 2023, doi:10.1002/spe.3214, §3.1 (1)-(7); Fu et al. 2024,
    doi:10.1145/3650200.3656620, §5.2.1 (7)-(8); Low et al. 2016, doi:10.1145/2925987, against which the order
    of the bounds (kc from L1, mc from L2, nc from L3) was checked.

    Examples
    --------
    >>> from tilewright.machine.catalog import find_machine
    >>> from tilewright.spec.dtype import F32
    >>> machine = find_machine("znver5")
    >>> choose_blocking(machine, machine.isa.tile(F32))
    Blocking(mr=12, nr=32, kr=1, mc=60, nc=2048, kc=1024)
    """
    tile = machine_tile(machine, instruction, columns)
    kc = depth_block(machine, instruction, tile)
    return Blocking(
        mr=tile.mr,
        nr=tile.nr,
        kr=instruction.kr,
        mc=row_block(machine, instruction, tile, kc),
        nc=column_block(machine, instruction, tile, kc),
        kc=kc,
    )
