"""What the models know of one core: instructions a cycle, caches, bandwidths and costs."""

from __future__ import annotations

from dataclasses import field

from tilewright.machine.cache import Cache
from tilewright.records import dataclass


@dataclass(frozen=True)
class VectorRates:
    """Instructions on vectors of up to so many bits that start each cycle."""

    bits: int
    fmas: float
    loads: float
    stores: float


@dataclass(frozen=True)
class CpuIdentity:
    """What a CPU says of itself, in numbers that no hypervisor's choice of features changes.

    Attributes
    ----------
    vendor : CPUID's vendor, such as "AuthenticAMD"; "MIDR 0x41" with the implementer of an Arm CPU; "PVR" on
        POWER; "hw.cpufamily" on Apple's under macOS.
    family : CPUID's display family; 0 elsewhere.
    model : CPUID's display model, MIDR's part, PVR's version, or the value of hw.cpufamily.
    efficient : whether it is an efficient core of a hybrid part (CPUID leaf 1AH: Atom).

    >>> str(CpuIdentity("AuthenticAMD", 0x19, 0x01))
    'AuthenticAMD family 0x19 model 0x1'
    """

    vendor: str
    family: int
    model: int
    efficient: bool = False

    def __str__(self) -> str:
        family = f" family {self.family:#x}" if self.family else ""
        return f"{self.vendor}{family} model {self.model:#x}{' efficient core' if self.efficient else ''}"


@dataclass(frozen=True)
class CpuModels:
    """The models of one family that have the same core; `efficient` None: whatever kind of core it is."""

    vendor: str
    family: int
    models: tuple[range, ...]
    efficient: bool | None = None

    def __contains__(self, cpu: CpuIdentity) -> bool:
        return (
            (self.vendor, self.family) == (cpu.vendor, cpu.family)
            and self.efficient in (None, cpu.efficient)
            and any(cpu.model in models for models in self.models)
        )


@dataclass(frozen=True)
class Core:
    """One micro-architecture; `machine/core_rows.py` has the rows.

    The defaults of the costs were measured on a Zen 5 (AVX-512, 48 KiB of L1, 1 MiB of L2, 32 MiB of L3,
    4.4 GHz). Cycles "per element" are averages over whole products, less the multiply-adds, and were the same
    for float32 and float64. Rows without measurements use the defaults.

    Attributes
    ----------
    name : of the micro-architecture; empty for a core that no row describes.
    cpus : LLVM's names of its CPUs.
    models : the numbers by which its CPUs name themselves, for hosts of which LLVM says only a level.
    vectors : rates of vectors, narrowest first; without them those of the `Isa` row are taken.
    fma_latency : cycles until the result of a multiply-add can be added to again; 0 as in the `Isa` row.
    issue_per_cycle : instructions that start each cycle, of one thread alone; each of two has half. The width
        of allocation or dispatch in the guides that `source` names; 0 if unknown.
    tlb_pages : translations that the first and the second level hold, of ordinary pages; 0 if unknown.
    l1, l2, l3 : data caches of an ordinary part, for named machines; a host reads its own.
    source : where the figures are from.
    l1_bytes_per_cycle : sustained from L1, by loads of the widest vectors.
    l2_bytes_per_cycle : sustained from L2 to L1: half of the peak of 64 bytes, less where loads cross lines.
    l3_bytes_per_cycle : from beyond L2 in an order that the prefetcher does not follow.
    memory_bytes_per_cycle : one core reading from memory in sequence, at its usual clock.
    page_walk_cycles : added to a read whose translation neither level of the TLB holds, the entries of the
        page table in the caches; reads that don't depend on each other, so that walks overlap.
    full_sets_in_place : whether rows of a tile that need every way of a set of L1 are faster in place than in
        a copy.
    set_conflict_cycles : added to a read of a line that L1 lost because too many lines fall into its set, and
        that L2 has: latency and bandwidth of L2, as far as other reads don't hide them.
    l3_overlap : share of the time of sequential reads from beyond L2 in which multiply-adds go on (blocks of
        matrices of 600 to 1600).
    l2_line_cycles, l3_line_cycles : for one element of a cache line of its own, from L2 and from beyond it.
    load_cycles, store_cycles : for each of adjacent elements of an operand and of the result.
    strided_store_cycles : for each element of a result that is not contiguous.
    pack_cycles : to copy an element into a panel (0.6 to 1 from 128x128 to 800x800 of float32).
    gather_run_cycles, gather_cycles : to pack an element through a table of offsets, in runs of at least a
        vector and in shorter ones (dimensions of 25).
    scatter_tile_cycles, scatter_run_cycles, scatter_cycles : to scatter one element through an offset table:
        contiguous matrix; runs of at least two vectors; shorter runs.
    copy_cycles, far_copy_cycles : to copy an element into another order of axes, within L2 and beyond it.
    page_slowdown : of a register tile whose broadcast rows are each in a page of their own: translations miss
        (64 rows 160 KB apart compared with 25 of 100 bytes).
    update_cycles : to update a vector of C: prefetch, load, add and store take 4 of 2 memory slots a cycle.
    tile_cycles : fixed overhead of a register tile: call of the loop, addresses, first and last latency.
    tile_row_cycles : for the addresses of each row of the broadcast operand and of C, once per tile.
    tile_height_cycles : of a second height of tiles, another piece of code whose branches are predicted less
        well: 32 rows as four times 8 are 3 % faster than as 11, 11 and 10 (32x32x32 of float32).
    addressed_rows : rows whose addresses fit the integer registers; a tile of more reloads some, which takes
        half a cycle a depth.
    matrix_cycles : overhead of one product of a batch.
    nest_cycles : overhead of the five loops around packed operands: bounds, tables, no first prefetch.
    call_cycles : overhead of a call of `matmul` or `transpose` from Python.
    table_call_cycles : overhead of such a call that looks up tables of offsets.
    batch_call_cycles, batch_item_cycles : of a call of products whose batch has several axes, in which Python
        takes part, and of each of these products.
    peak_share : of the multiply-add peak, reached by a product whose operands are in the caches.
    kernel_call_cycles, exact_call_cycles : of a native call of a kernel for any sizes (33 ns), and of one
        compiled for known sizes.
    packed_call_cycles : of a native call of a kernel that always packs.
    loop_rate, vector_loop_rate : multiply-adds per cycle of loops that LLVM compiled, where sizes are a few
        elements, and where whole vectors are computed.
    """

    name: str = ""
    cpus: tuple[str, ...] = field(default=(), repr=False)
    models: tuple[CpuModels, ...] = field(default=(), repr=False)
    vectors: tuple[VectorRates, ...] = ()
    fma_latency: int = 0
    issue_per_cycle: int = 0
    tlb_pages: tuple[int, int] = (0, 0)
    l1: Cache = field(default=Cache(32 << 10, ways=8, line=64), repr=False)
    l2: Cache = field(default=Cache(512 << 10, ways=8, line=64), repr=False)
    l3: Cache | None = field(default=None, repr=False)
    source: str = field(default="", repr=False)
    l1_bytes_per_cycle: float = 64.0
    l2_bytes_per_cycle: float = 24.0
    l3_bytes_per_cycle: float = 12.0
    memory_bytes_per_cycle: float = 6.0
    page_walk_cycles: float = 15.0
    full_sets_in_place: bool = False
    set_conflict_cycles: float = 4.5
    l3_overlap: float = 0.75
    l2_line_cycles: float = 4.5
    l3_line_cycles: float = 15.0
    load_cycles: float = 0.4
    store_cycles: float = 0.25
    strided_store_cycles: float = 1.5
    pack_cycles: float = 0.8
    gather_run_cycles: float = 1.2
    gather_cycles: float = 2.5
    scatter_tile_cycles: float = 0.8
    scatter_run_cycles: float = 2.5
    scatter_cycles: float = 4.0
    copy_cycles: float = 1.5
    far_copy_cycles: float = 3.0
    page_slowdown: float = 1.1
    update_cycles: float = 2.5
    tile_cycles: float = 12.0
    tile_row_cycles: float = 1.0
    tile_height_cycles: float = 16.0
    addressed_rows: int = 12
    matrix_cycles: float = 40.0
    nest_cycles: float = 2_000.0
    call_cycles: float = 4_000.0
    table_call_cycles: float = 20_000.0
    batch_call_cycles: float = 200_000.0
    batch_item_cycles: float = 900.0
    peak_share: float = 0.88
    kernel_call_cycles: float = 128.0
    exact_call_cycles: float = 64.0
    packed_call_cycles: float = 1_024.0
    loop_rate: float = 1.0
    vector_loop_rate: float = 8.0

    def rates(self, vector_bits: int) -> VectorRates | None:
        """The rates of vectors of a width, if the core has such vectors."""
        return next((rates for rates in self.vectors if rates.bits >= vector_bits), None)

    @property
    def exposed_l3_bytes_per_cycle(self) -> float:
        """Bytes from beyond L2 per cycle that multiply-adds wait for them, read in sequence."""
        return self.l3_bytes_per_cycle / (1.0 - self.l3_overlap)
