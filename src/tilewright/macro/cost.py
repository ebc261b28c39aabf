"""The cost model: cycles of register tiles, of moving elements, of calls, and where strategies break even.

Every number is a fact of the machine: rates of its ISA row, sizes of its caches, cycles of its `Core`.
Operations count what is moved and computed, each for its own problem.
"""

from __future__ import annotations

from math import ceil, gcd

from tilewright.machine.cache import Cache
from tilewright.machine.cores import Core
from tilewright.machine.isa import Isa, TileFma
from tilewright.machine.machine import Machine
from tilewright.records import dataclass
from tilewright.spec.parts import Parts
from tilewright.spec.problem import ProductTypes


@dataclass(frozen=True)
class RegisterTile:
    """A register tile of mr×nr: what it needs in registers, and what it loads."""

    mr: int
    nr: int
    accumulators: int
    registers: int
    loads_per_depth: int

    @property
    def cmr(self) -> float:
        """Computation-to-memory ratio 2·mr·nr/(mr+nr) (Fu et al. 2024, equation 8)."""
        return 2 * self.mr * self.nr / (self.mr + self.nr)


def tile_cycles(
    machine: Machine, instruction: TileFma, tile: RegisterTile, depth: int, *, masked: bool
) -> float:
    """Cycles of one register tile over a depth: the slowest of FMA, loads, latency and L2.

    The vector operand is read once per row of tiles; beyond half of L1 it comes from L2. A masked vector
    is two loads, its own and that of the element which its missing lanes repeat.
    """
    isa, core = machine.isa, machine.core
    vectors = tile.nr // isa.lanes(instruction.acc)
    bytes_a_step = instruction.b.bytes(tile.nr * instruction.k)
    steps = -(-depth // instruction.k)
    from_l2 = bytes_a_step * steps > machine.l1.size / 2
    step = max(
        tile.accumulators / isa.rate(instruction),
        (tile.loads_per_depth + masked) / isa.loads_per_cycle,
        float(isa.latency(instruction)),
        bytes_a_step / core.l2_bytes_per_cycle if from_l2 else 0.0,
    )
    if tile.mr > core.addressed_rows:
        step += 0.5
    update = core.update_cycles / 2 * tile.mr * vectors
    return step * steps + core.tile_cycles + core.tile_row_cycles * tile.mr + update


# --- elements and caches ---------------------------------------------------------------------------------

#: Share of a cache in which one of several operands is expected to survive.
KEPT_SHARE = 0.5


def load_cycles(core: Core, *, adjacent: bool, in_l2: bool) -> float:
    """Cycles to read an element: one of adjacent ones, or each from a cache line of its own."""
    if adjacent:
        return core.load_cycles
    return core.l2_line_cycles if in_l2 else core.l3_line_cycles


def store_cycles(core: Core, *, adjacent: bool) -> float:
    """Cycles to write an element of the result."""
    return core.store_cycles if adjacent else core.strided_store_cycles


def copy_cycles(core: Core, elements: int, *, in_l2: bool) -> float:
    """Cycles of a call that copies an operand into another order of its axes."""
    return elements * (core.copy_cycles if in_l2 else core.far_copy_cycles) + core.call_cycles


def rows_held(stride_bytes: int, cache: Cache) -> int:
    """How many lines at equal distances a cache can hold: strides of powers of two fall into few sets.

    >>> l2 = Cache(size=1 << 20, ways=16, line=64)
    >>> rows_held(6400, l2), rows_held(8192, l2)
    (4096, 128)
    """
    lines = max(1, stride_bytes // cache.line)
    return cache.ways * cache.sets // gcd(lines, cache.sets)


# --- packed or in place ------------------------------------------------------------------------------------


#: B in place is read along rows of a register tile, a line or a few of each, which no prefetcher follows.
#: Up to this many times L1 that costs less than the copy (200x200 of float32 with 32 KiB; 256x256 more).
IN_PLACE_B_L1 = 4

#: Where L1 holds B, and that share of the last cache A and C, both stay in place for any number of rows:
#: columns of tiles have less to do between tiles than strips of A. Of the peak of a Zen 5, in place and in
#: strips: 16384x48x96 0.88 and 0.83, 20000x64x64 0.94 and 0.86, 10000x100x100 0.82 and 0.80; with AVX2 0.98
#: and 0.92, 0.97 and 0.90, 0.91 and 0.88. From memory, A is read once for each column of tiles: 200000x64x64
#: has 0.47 and 0.82.
NEAR_L3 = 1 / 3
#: Where L3 does not deliver a panel of B in time, it is L2 that has to hold them: in place and in strips, of
#: PyTorch's speed on an Emerald Rapids, 4096x64x128 0.89 and 1.01, 16384x48x96 0.65 and 0.77, 5000x200x60
#: 0.76 and 1.07, 4000x100x100 0.82 and 1.00; with AVX2, of NumPy's, 0.98 and 1.04, 0.98 and 1.11, 0.89 and
#: 1.11, 0.90 and 1.02. In L2, of 2000x100x100 and 1000x60x200, both take the same time.
#: Half of it, because columns of tiles go over all of C: 400x1000x10 0.85 and 1.09, 1500x250x10 0.98 and
#: 1.06, 1500x110x60 1.01 and 1.10.
NEAR_L2 = 1 / 2
#: A and C may take so much of L2 there where L1 does not hold B: float64 of 400x420x64 0.81 and 1.01,
#: 1500x250x128 0.72 and 0.93, 3000x110x60 0.80 and 1.06, float32 of 800x250x64 1.01 and 1.12, 400x700x128
#: 0.89 and 1.09. Smaller ones take the same time: 400x250x128 1.17 and 1.10.
LATE_NEAR_L2 = 1 / 3
#: More columns than a vector are transposed there if idle lanes are one for so many of them. Of PyTorch's
#: speed, transposed and in strips, float64 of 500x24x200 0.74 and 0.93, 500x26x64 0.98 and 1.19, 500x18x200
#: 1.22 and 0.90, float32 of 500x24x64 1.00 and 1.13, 2000x26x800 0.85 and 1.00, 500x18x800 1.22 and 1.04.
LATE_IDLE_LANES = 3

#: Rows up to which a copy of B costs more than to read it in place once for each row of tiles: 17x1000x1000
#: of float32 has 0.88 of the peak in place and 0.66 packed, 24x3072x768 the same (Zen 4).
FEW_ROWS = 24

#: Tiles that prefetch rows of B read it in place from L3 nearly as fast as packed panels: slices of up to so
#: many times L2, for as many rows as leave A and C near (200x1000x1000 of float32 with 1 MiB).
FETCHED_SLICE_L2 = 2
#: Up to so many rows have a B of any size in place: a copy would cost more than the wait for rows that are
#: prefetched. Fewer where every fourth row of B shares a set of L1 (multiples of a KiB) or every second one,
#: and only if a tile reads pairs of lines of each. Of the peak of a Zen 5, in place and in strips:
#: 12x2080x2080 0.83 and 0.41, 64x2080x2080 0.88 and 0.68, 256x4128x4128 0.91 and 0.83, 384x4128x4128 0.87 and
#: 0.87; 128x1280x1024 0.95 and 0.89, 256x768x1024 0.85 and 0.92; 36x4096x4096 0.59 and 0.53, 48x2048x2048
#: 0.58 and 0.62. With AVX2, whose tiles read one line of a row, 128x1280x1024 has 0.82 and 0.92, 12x1024x1024
#: 0.50 and 0.68.
FETCHED_ROWS = 384
CROWDED_ROWS = 128
FEW_FETCHED_ROWS = 36
CROWDED_LINES = 2
#: Where L3 needs longer for a row of B than a step takes (Golden Cove server), any number of rows has slices
#: of that share of L2 in place. Only so many rows have larger ones: a copy would take longer than tiles
#: wait. Of the peak, 384³ has 0.83 in place and 0.89 with a packed B, 300³ 0.90 and 0.90 (beside a busy
#: sibling thread 0.66 and 0.73), 768³ 0.83 and 0.93, 200x300x5000 0.77 and 0.84.
LATE_SLICE_L2 = 1 / 8
LATE_ROWS = 128
#: Where strips meet panels that stay in L2, so many rows: of PyTorch's speed, in place and in strips,
#: 64x500x128 has 1.01 and 0.93, 64x1000x60 0.98 and 0.92, 150x300x200 0.96 and 1.14, 500x200x256 1.01 and
#: 1.05; of the speed with usual tiles and larger panels, 36x1000x1000 1.40 and 1.14, 48x1000x1000 1.17 and
#: 1.18, 64x1000x1000 1.10 and 1.19.
STAYING_SLICE_ROWS, STAYING_ROWS = 96, 48
#: And where rows of B share sets of L1: 16x4096x4096 0.80 and 0.79, 20x4096x1024 0.70 and 0.89, 24x4096x1024
#: 0.91 and 1.08; float64 of 24x2048x2048 0.91 and 1.44.
STAYING_CROWDED_ROWS = 16
#: Unless they are shallow: tiles prefetch none of the rows with which a column begins, a quarter and more of
#: so few depths. 16x10000x64 has 39 GFLOPS in place and 60 with a packed B, 36x10000x128 86 and 103,
#: 100x10000x100 113 and 130, 36x10000x192 91 and 93. Fewer than 8 rows were not measured, and stay.
LATE_DEPTH = 192
UNCOPIED_ROWS = 7
#: There, panels that strips meet take that share of L2 at most for each thread, and stay in it beside what a
#: sibling thread needs: with twice as much, 200x1000x1000 takes 1.14 times as long, 48x2000x256 1.03
#: (docs/decisions/065-busy-siblings.md, 072-wide-strips.md). Not in a small L2, where a strip would meet so
#: few columns that A comes from L3 too often.
LATE_PANELS_L2 = 3 / 16
LATE_PANELS_LEAST_L2 = 1 << 20

#: Share of L2 that a slice of A may take to meet a B whose lanes are not adjacent, one micro-panel after the
#: other: A stays in L2, and each panel is read where it was written. Of the peak of a Zen 4, 128x3072x768
#: has 0.90 so and 0.84 with B packed at once, 256x768x768 0.94 and 0.95, 512x3072x768 0.89 and 0.91. None
#: where strips have panels that stay in L2: of PyTorch's speed on an Emerald Rapids, 32x4096x1024 has 1.04
#: so and 1.11, 128x768x3072 0.93 and 1.00, float64 0.91 and 1.03, 0.87 and 1.05.
COPIED_A_L2 = 1 / 4

#: Micro-panels of B for which an A whose depths are not adjacent isn't worth a copy: 1000x32x1000 has 0.69
#: of the peak in place and 0.60 packed, 1000x48x1000 0.53 and 0.66 (Zen 3). None where panels stay
#: in L2: 1000x16x1000 has 0.73 and 1.10 of PyTorch's speed, 1000x64x1000 0.94 and 1.10 (Emerald Rapids).
SELDOM_PANELS = 2
#: Instead, so many rows have such an A in strips there: of PyTorch's speed, in strips and packed,
#: 28x1000x1000 has 1.02 and 0.72, 128x1000x1000 0.96 and 0.80, 256x1000x500 0.92 and 0.80, float64 0.85 and
#: 0.70, 0.84 and 0.82, 0.83 and 0.78; 512x512x512 0.90 and 0.91, float64 0.51 and 0.80.
STAYING_COLUMNS_ROWS = 256

#: Rows up to which reading B outweighs the multiplication (8 rows of AVX-512 f32 take 0.5 cycles an element
#: of B in each pair, DRAM about as long).
STREAMED_ROWS = 8
#: So few rows stream B once L2 does not hold it, because a step is too short to prefetch for: with AVX2,
#: whose tiles read one line of a row, 3, else 2. Where rows of B share sets of L1, more do if they are
#: several tiles, which read B again and again, with AVX2 any up to 8 (docs/decisions/059-rows-of-b.md). Of
#: PyTorch's speed on an Emerald Rapids, in place and streamed: 3x1000x1000 1.01 and 0.89, 5x4096x1024 0.90
#: and 0.70, 7x4096x4096 1.18 and 0.99; with AVX2 3x1000x1000 0.76 and 0.83.
UNFETCHED_ROWS, UNFETCHED_LINES_ROWS = 3, 2
SEVERAL_TILES_ROWS = 7

#: Ways of a set of L1 that the rows of a register tile leave to the lines of B and C that pass by.
PASSING_WAYS = 2

#: Share of L1 that a strip of an A whose depths are not adjacent may take, with the micro-panel of B and the
#: tiles of C that meet it. Each depth has lines of its own, of which a register tile needs mr elements. In 32
#: KiB, strips of 192 depths are as fast as packed rows (0.85 and 0.87 of the peak of a Zen 3), of 256 depths
#: they have 0.81 and 0.89, of 640 depths 0.63 and 0.88.
COLUMNS_SHARE = 3 / 4

#: Lines at multiples of this part of a way fall into so few sets that L1 holds 16 times its ways of them.
FEW_SETS = 16

#: Share of what a cache delivers that panels of B may take: from L3 once for each strip of A, from L2 once
#: for each register tile.
STREAM_SHARE = 0.5


@dataclass(frozen=True)
class InPlaceLimits:
    """Sizes and strides up to which operands are multiplied in place; see `in_place_limits`.

    Attributes
    ----------
    in_place_b : elements of a kc×n slice of B.
    far_b : elements of B, or of a slice of it, that L2 holds.
    b_in_l1, near : elements of B, and of A and C together, with which all stay in place.
    fetched_slice, slice_rows : elements of such a slice where tiles prefetch its rows, 0 without prefetches;
        and rows that have it in place, 0 if any do.
    fetched_rows, crowded_rows : rows that read a B of any size in place, if its rows spread over the sets of
        L1; the second, if they fall into four sets. 0 without prefetches.
    late_slice, late_rows : elements of a larger slice that only so many rows read in place.
    late_near : elements of A and C together; 0 where it is in_place_a that bounds each of them.
    idle_lanes : columns for each idle lane of a vector with which more columns than one has are transposed;
        0 if any number is.
    late_depth, uncopied_rows : depths up to which only so many rows do; 0 where that makes no difference.
    copied_a : elements of an m×kc slice of A for which a B whose lanes are not adjacent is copied one
        micro-panel at a time; 0 if it never is.
    lone_columns : columns that have B in place however large A is: those of one tile; 0 where A and C must be
        near all the same.
    seldom_columns, spread_rows : columns or rows for which an A whose depths are not adjacent stays in place.
    streamed_rows : rows that stream a B which L2 does not hold.
    crowded_above, crowded_streamed : where its rows share sets of L1, more rows than the first stream it, and
        at most the second.
    in_place_a : elements of an m×kc slice of A whose columns of tiles are computed one after the other.
    few_rows, few_columns : m and n.
    few_in_one_set : elements; few rows read B in place unless its rows are at multiples of this distance; 0
        if they always do.
    strip : rows of A that meet all of B before the next ones.
    strip_slice : elements of packed panels that the strips of one thread meet before the next ones; 0 for as
        many as are packed at once.
    one_set : elements; lines of B, and of A along a row, at multiples of this distance share one set of L1.
    rows_in_one_set : the same for the rows of a register tile; 0 if the ways of a set hold them all.
    half_in_one_set : the same for lines of A that columns of half a vector meet in place; 0 if none do.
    columns_in_place : elements of an m×kc slice of A in place whose depths are not adjacent.
    depths_of_strip : depths of a strip of such an A, each of which is a line.
    tall_rows : rows of a tile in place for the columns of one vector; 0 where they are those of every tile.
    few_sets : elements; lines of such depths at multiples of this distance evict each other.
    """

    in_place_b: int
    far_b: int
    b_in_l1: int
    near: int
    fetched_slice: int
    slice_rows: int
    fetched_rows: int
    crowded_rows: int
    late_slice: int
    late_rows: int
    late_near: int
    idle_lanes: int
    late_depth: int
    uncopied_rows: int
    copied_a: int
    lone_columns: int
    seldom_columns: int
    spread_rows: int
    streamed_rows: int
    crowded_above: int
    crowded_streamed: int
    in_place_a: int
    few_rows: int
    few_in_one_set: int
    few_columns: int
    strip: int
    strip_slice: int
    one_set: int
    rows_in_one_set: int
    half_in_one_set: int
    columns_in_place: int
    depths_of_strip: int
    few_sets: int
    tall_rows: int


def row_feed(isa: Isa, instruction: TileFma, mr: int, nr: int) -> float:
    """Bytes of B that a register tile of mr×nr takes in a cycle."""
    return instruction.b.bytes(nr) * instruction.products * isa.rate(instruction) / (mr * nr)


def tiles_a_panel(machine: Machine, core: Core, instruction: TileFma, mr: int, nr: int) -> int:
    """Register tiles, one below the other, that let panels of B stream from the L3 of a core in time."""
    feed = row_feed(machine.isa, instruction, mr, nr)
    return max(1, ceil(feed / (STREAM_SHARE * core.l3_bytes_per_cycle)))


def is_late(machine: Machine, instruction: TileFma, mr: int, nr: int) -> bool:
    """Whether the L3 of a core takes longer for a row of B than a register tile of mr×nr computes with it."""
    return row_feed(machine.isa, instruction, mr, nr) > machine.core.l3_bytes_per_cycle


def panels_stay(machine: Machine, instruction: TileFma, mr: int, nr: int) -> bool:
    """Whether strips meet only as many panels at a time as L2 keeps, because L3 is late."""
    return is_late(machine, instruction, mr, nr) and machine.l2.size >= LATE_PANELS_LEAST_L2


def in_place_limits(
    machine: Machine, instruction: TileFma, mr: int, nr: int, types: ProductTypes
) -> InPlaceLimits:
    """The sizes at which packing starts to pay, for a register tile of mr×nr.

    - B is packed once for all rows, unless it is small (`IN_PLACE_B_L1`; `FETCHED_SLICE_L2` where tiles
      prefetch it), or the rows are few (`FEW_ROWS`).
    - A is read in place, strip by strip: each strip is read once from wherever it lies, stays in L1 or L2,
      and meets all panels of B. It is packed only where its lines would evict each other.
    - Where depths of A are not adjacent, each depth of a strip has lines of its own: such an A is packed
      unless L1 holds the lines of all depths (`COLUMNS_SHARE`), or they are used once or twice.
    - A strip has as many register tiles as let the panels of B stream from L3 in time (`tiles_a_panel`).
      Where L3 can't deliver that to one tile, strips meet as many panels at a time as L2 keeps
      (`LATE_PANELS_L2`).

    Measured in docs/decisions/046-strips-of-a.md, 057-columns-of-a.md, 059-rows-of-b.md and 060-late-l3.md.
    """
    core, l1, isa = machine.core, machine.l1, machine.isa
    tiles = tiles_a_panel(machine, core, instruction, mr, nr)
    # Of a depth: the lines of a strip whose depths are not adjacent, and a row of the panel.
    depth_bytes = ceil(tiles * mr * types.a.size / l1.line) * l1.line + instruction.b.bytes(nr)
    way = l1.size // l1.ways
    held = rows_held(way, l1) >= mr + (0 if core.full_sets_in_place else PASSING_WAYS)
    one_a_step = instruction.in_place and instruction.k == 1
    lanes = isa.lanes(instruction.acc)
    fetches = one_a_step and isa.fetches(mr * nr // lanes)
    late_l3 = is_late(machine, instruction, mr, nr)
    slices = (LATE_SLICE_L2 if late_l3 else FETCHED_SLICE_L2, FETCHED_SLICE_L2)
    stays = panels_stay(machine, instruction, mr, nr)
    near = int(NEAR_L2 * machine.l2.size if late_l3 else NEAR_L3 * (machine.l3 or machine.l2).size)
    fetched, late = (int(fetches * slice_l2 * machine.l2.size) // types.b.size for slice_l2 in slices)
    wide = fetches and types.b.bytes(nr) >= CROWDED_LINES * l1.line
    crowded = STAYING_CROWDED_ROWS if stays else FEW_ROWS if late_l3 else CROWDED_ROWS
    unfetched = UNFETCHED_LINES_ROWS if wide else UNFETCHED_ROWS
    above, most = (mr, SEVERAL_TILES_ROWS) if wide else (unfetched, STREAMED_ROWS)
    # Of an element of B; panels hold complex numbers twice (`Parts.ROTATED`).
    across, deep = Parts.ROTATED.spread if types.is_complex else Parts.WHOLE.spread
    in_panels = types.b.real.size * across * deep
    return InPlaceLimits(
        in_place_b=IN_PLACE_B_L1 * l1.size // types.b.size,
        far_b=machine.l2.size // types.b.size,
        b_in_l1=l1.size // types.b.size,
        near=near // types.a.size,
        fetched_slice=fetched,
        slice_rows=stays * STAYING_SLICE_ROWS,
        fetched_rows=fetches * (FEW_ROWS if late_l3 else FETCHED_ROWS),
        crowded_rows=wide * crowded,
        late_slice=late,
        late_rows=STAYING_ROWS if stays else LATE_ROWS,
        late_near=int(late_l3 * LATE_NEAR_L2 * machine.l2.size) // types.a.size,
        idle_lanes=late_l3 * LATE_IDLE_LANES,
        late_depth=fetches * late_l3 * LATE_DEPTH,
        uncopied_rows=UNCOPIED_ROWS,
        copied_a=0 if stays else int(COPIED_A_L2 * machine.l2.size) // types.a.size,
        lone_columns=0 if stays else nr,
        seldom_columns=0 if stays else SELDOM_PANELS * nr,
        spread_rows=stays * STAYING_COLUMNS_ROWS,
        in_place_a=3 * machine.l2.size // (2 * types.a.size),
        streamed_rows=unfetched if fetches else STREAMED_ROWS,
        crowded_above=above,
        crowded_streamed=most,
        few_rows=FEW_FETCHED_ROWS if wide and not late_l3 else FEW_ROWS,
        few_in_one_set=0 if wide else max(1, way // types.b.size),
        few_columns=4 * nr,
        strip=tiles * mr,
        strip_slice=int(stays * LATE_PANELS_L2 * machine.l2.size) // in_panels,
        one_set=max(1, way // types.b.size),
        rows_in_one_set=0 if held else max(1, way // types.a.size),
        half_in_one_set=0 if core.full_sets_in_place else max(1, way // types.a.size),
        columns_in_place=l1.size // types.a.size,
        depths_of_strip=int(COLUMNS_SHARE * l1.size - tiles * mr * nr * types.c.size) // depth_bytes,
        few_sets=max(1, way // (FEW_SETS * types.a.size)),
        tall_rows=2 * mr if one_a_step and isa.halves and mr < 2 * isa.fma_latency * isa.fma_per_cycle else 0,
    )


# --- a call or the loops as they were ----------------------------------------------------------------------


@dataclass(frozen=True)
class CallLimits:
    """Multiply-adds (m·n·k) from which a native call is faster than compiled loops; see `call_limits`.

    Attributes
    ----------
    kernel : of a kernel for any sizes.
    exact : of a kernel for known sizes.
    triangle : of a kernel for one triangle of the result, which always packs.
    vector : of a matrix times a vector where the innermost loop runs along the rows of the matrix.
    in_place, in_place_vector : up to which operands stay in place, so that nothing is allocated.
    """

    kernel: int
    exact: int
    triangle: int
    vector: int = 1 << 21
    in_place: int = 1 << 18
    in_place_vector: int = 1 << 14


def call_limits(core: Core) -> CallLimits:
    """Where calls and loops take equal time (docs/decisions/036-spliced-products.md).

    A call pays off from as many multiply-adds as loops make in its cycles. Measured in float32 on Zen 5:
    5·5·5 takes 41 to 66 ns as loops and 33 as a call, 4·4·4 takes 23 to 35 and 28; with known sizes
    3·3·3 takes 9 ns either way, 4·4·4 takes 5 as a call and 20 as loops. A triangle of 24·24·24 takes 431 ns
    (SYR2K: 608) as loops and 361 (555) as a call, of 16·16·16 140 (235) and 218 (329).

    LLVM compiles a matrix times a vector, read along its rows, to the code of the kernel: 1024·1024 takes 48
    us as loops and 45 as a kernel, 512·512 takes 9 and 20, 2048·2048 takes 245 and 180, because the kernel
    prefetches. In place, 64·64·64 takes 2.4 us, and memory for panels about 40 ns; a matrix of 128·128 times
    a vector takes 0.5 us either way, one of 512·512 takes 19 us by tiles and 9 by the kernel that streams it.
    """
    return CallLimits(
        kernel=int(core.kernel_call_cycles * core.loop_rate),
        exact=int(core.exact_call_cycles * core.loop_rate),
        triangle=int(core.packed_call_cycles * core.vector_loop_rate),
    )


# --- attention ---------------------------------------------------------------------------------------------

# Work of attention beside its products, in multiply-adds of whole vectors that take as long: fitted to
# the times of both kernels on Zen 5 (heads of 64 and 128, 1 to 64 rows, 4096 keys), within a third.

#: To read and pack a vector of a key, which every head of queries does for panels of its own.
KEY_PACK_OPERATIONS = 16.0
#: Softmax of a vector of scores: scale, maximum, exponential, sum.
SOFTMAX_OPERATIONS = 36.0
#: To go on to the next key where keys are not packed, and to read each vector of a key or value in place.
KEY_OPERATIONS, KEY_READ_OPERATIONS = 20.0, 2.0
#: For each row and vector of such a key instead of 1: reduction of sums along vectors, broadcast of weights;
#: and where instructions add products of pairs, which save half of the multiply-adds only.
KEY_ROW_OPERATIONS, KEY_ROW_PAIR_OPERATIONS = 1.3, 1.1
#: A vector of scores through memory, once for each of maximum, difference, exponential, sum and two products.
SCORE_OPERATIONS, SCORE_PASSES = 10.0, 6
