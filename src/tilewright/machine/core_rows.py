"""The micro-architectures: one row each, found by the numbers of a CPU or by LLVM's name of it.

Where the figures are from, in the order of preference:

- rates, latencies, TLBs and sizes of caches: the vendor's guide, named in the row;
- bandwidths: measurements of one core at a fixed clock, mostly the machine files of Kerncraft (likwid-bench,
  loads; Hammer et al. 2017), for AMD's Zen 5 those of docs/decisions. Where
  nobody has measured L1, its figure is loads a cycle times their width: 92 % of that and more was measured
  wherever both are known;
- page walks: 30 cycles (the last entry of a table comes from L2, and the read is tried again) over the walks
  that the core does at the same time, where the guide says how many; two are assumed elsewhere. "Estimated"
  in a row says which figures have no better origin.
"""

from __future__ import annotations

from functools import cache

from tilewright.machine.cache import Cache
from tilewright.machine.cores import Core, CpuIdentity, CpuModels, VectorRates

_KIB, _MIB = 2**10, 2**20


def _one(*models: int) -> tuple[range, ...]:
    """Single models as ranges."""
    return tuple(range(model, model + 1) for model in models)


def _intel(*models: int, efficient: bool | None = None) -> CpuModels:
    """Models of Intel's family 6 (Intel SDM vol. 4, table 2-1)."""
    return CpuModels("GenuineIntel", 6, _one(*models), efficient)


def _amd(family: int, *models: range) -> CpuModels:
    """Models of AMD's, in hexadecimal as its guides name them."""
    return CpuModels("AuthenticAMD", family, models)


def _arm(implementer: int, *parts: int) -> CpuModels:
    """Parts of an implementer of Arm CPUs (MIDR_EL1, DDI 0487)."""
    return CpuModels(f"MIDR {implementer:#x}", 0, _one(*parts))


def _apple(*families: int) -> CpuModels:
    """Values of hw.cpufamily (mach/machine.h)."""
    return CpuModels("hw.cpufamily", 0, _one(*families))


_ALDER_LAKE = (0x97, 0x9A, 0xB7, 0xBA, 0xBF, 0xAA, 0xAC)

#: Rates are those of the unit's throughput, not of the front end; a load or store of a vector counts once.
#: Bandwidths are the sustained ones of the sources, of one core reading in order.
CORES: tuple[Core, ...] = (
    Core(
        name="Haswell",
        cpus=("haswell", "broadwell"),
        models=(_intel(0x3C, 0x3F, 0x45, 0x46, 0x3D, 0x47, 0x4F, 0x56),),
        vectors=(VectorRates(256, fmas=2, loads=2, stores=1),),
        fma_latency=5,
        issue_per_cycle=4,
        tlb_pages=(64, 1024),
        l1=Cache(32 * _KIB, ways=8, line=64),
        l2=Cache(256 * _KIB, ways=8, line=64),
        l3=Cache(8 * _MIB, ways=16, line=64, shared_by=4),
        l1_bytes_per_cycle=58.0,
        l2_bytes_per_cycle=25.0,
        l3_bytes_per_cycle=10.0,
        memory_bytes_per_cycle=4.0,
        page_walk_cycles=30.0,
        source="Intel 248966, Haswell microarchitecture: ports 0 and 1, cache parameters (L2 25 bytes a "
        "cycle), one page walk at a time; Kerncraft, HaswellEP_E5-2695v3: L1 58.5, L2 25.2, L3 10.0, "
        "memory 3.9 bytes a cycle at 2.3 GHz",
    ),
    Core(
        name="Skylake client",
        cpus=("skylake",),
        models=(_intel(0x4E, 0x5E, 0x8E, 0x9E, 0xA5, 0xA6),),
        vectors=(VectorRates(256, fmas=2, loads=2, stores=1),),
        fma_latency=4,
        issue_per_cycle=4,
        tlb_pages=(64, 1536),
        l1=Cache(32 * _KIB, ways=8, line=64),
        l2=Cache(256 * _KIB, ways=4, line=64),
        l3=Cache(8 * _MIB, ways=16, line=64, shared_by=4),
        l1_bytes_per_cycle=64.0,
        l2_bytes_per_cycle=29.0,
        l3_bytes_per_cycle=18.0,
        memory_bytes_per_cycle=6.5,
        source="Intel 248966, Skylake client microarchitecture: ports, cache parameters (L2 29, L3 18 "
        "bytes a cycle), two page walks; memory estimated (three quarters of two channels of DDR4-2133 at "
        "4 GHz)",
    ),
    Core(
        name="Skylake server",
        cpus=("skylake-avx512", "cascadelake", "cooperlake"),
        models=(_intel(0x55),),
        vectors=(VectorRates(512, fmas=2, loads=2, stores=1),),
        fma_latency=4,
        issue_per_cycle=4,
        tlb_pages=(64, 1536),
        l1=Cache(32 * _KIB, ways=8, line=64),
        l2=Cache(1 * _MIB, ways=16, line=64),
        l3=Cache(27 * _MIB + 512 * _KIB, ways=11, line=64, shared_by=20),
        l1_bytes_per_cycle=107.0,
        l2_bytes_per_cycle=52.0,
        l3_bytes_per_cycle=10.0,
        memory_bytes_per_cycle=5.5,
        source="Intel 248966, Skylake server microarchitecture: ports 0+1 and 5, cache parameters (L2 52 "
        "bytes a cycle), two page walks; Kerncraft, SkylakeSP_Gold-6148 (L1 106.6, L2 46.2, L3 10.2, "
        "memory 6.0 at 2.4 GHz) and CascadelakeSP_Gold-6248_SNC (110, 44.4, 9.6, 5.2 at 2.5 GHz); parts "
        "with one unit of 512 bits (some Bronze, Silver) are not told apart",
    ),
    Core(
        name="Ice Lake client",
        cpus=("icelake-client", "tigerlake", "rocketlake"),
        models=(_intel(0x7D, 0x7E, 0x8C, 0x8D, 0xA7),),
        vectors=(VectorRates(256, fmas=2, loads=2, stores=2), VectorRates(512, fmas=1, loads=2, stores=1)),
        fma_latency=4,
        issue_per_cycle=5,
        tlb_pages=(64, 2048),
        l1=Cache(48 * _KIB, ways=12, line=64),
        l2=Cache(512 * _KIB, ways=8, line=64),
        l3=Cache(8 * _MIB, ways=16, line=64, shared_by=4),
        l1_bytes_per_cycle=128.0,
        l2_bytes_per_cycle=48.0,
        l3_bytes_per_cycle=18.0,
        memory_bytes_per_cycle=7.0,
        source="Intel 248966, Ice Lake client microarchitecture: one unit of 512 bits, L1 48 KiB, L2 48 "
        "bytes a cycle; L3 as Skylake client, memory estimated; Tiger Lake's L2 is larger",
    ),
    Core(
        name="Ice Lake server",
        cpus=("icelake-server",),
        models=(_intel(0x6A, 0x6C),),
        vectors=(VectorRates(256, fmas=2, loads=2, stores=2), VectorRates(512, fmas=2, loads=2, stores=1)),
        fma_latency=4,
        issue_per_cycle=5,
        tlb_pages=(64, 2048),
        l1=Cache(48 * _KIB, ways=12, line=64),
        l2=Cache(1 * _MIB + 256 * _KIB, ways=20, line=64),
        l3=Cache(54 * _MIB, ways=12, line=64, shared_by=36),
        l1_bytes_per_cycle=128.0,
        l2_bytes_per_cycle=48.0,
        l3_bytes_per_cycle=10.0,
        memory_bytes_per_cycle=6.0,
        source="Intel 248966, Ice Lake microarchitecture: ports 0+1 and 5, L1 two loads of 64 bytes, L2 48 "
        "bytes a cycle; Kerncraft, IcelakeSP_Platinum-8360Y: L2 46.1, L3 10.3, memory 6.4 bytes a cycle at "
        "2.4 GHz",
    ),
    Core(
        name="Golden Cove server",
        cpus=("sapphirerapids", "emeraldrapids", "graniterapids", "graniterapids-d"),
        models=(_intel(0x8F, 0xCF, 0xAD, 0xAE),),
        vectors=(VectorRates(256, fmas=2, loads=3, stores=2), VectorRates(512, fmas=2, loads=2, stores=1)),
        fma_latency=4,
        issue_per_cycle=6,
        tlb_pages=(96, 2048),
        l1=Cache(48 * _KIB, ways=12, line=64),
        l2=Cache(2 * _MIB, ways=16, line=64),
        l3=Cache(105 * _MIB, ways=15, line=64, shared_by=56),
        l1_bytes_per_cycle=120.0,
        l2_bytes_per_cycle=48.0,
        l3_bytes_per_cycle=9.0,
        memory_bytes_per_cycle=5.5,
        full_sets_in_place=True,
        page_walk_cycles=8.0,
        source="Intel 248966, Golden Cove microarchitecture (Redwood Cove has the same units): three loads "
        "of 256 or two of 512 bits, DTLB of 96 and STLB of 2,048 entries, four page walks; Kerncraft, "
        "SapphireRapids_Platinum-8470: L1 120.8, L3 8.8, memory 7.2 bytes a cycle at 2 GHz, here at 2.6; "
        "12 rows in one set on an Emerald Rapids: docs/decisions/060-late-l3.md",
    ),
    Core(
        name="Golden Cove client",
        cpus=("alderlake", "raptorlake", "meteorlake"),
        models=(_intel(*_ALDER_LAKE, efficient=False),),
        vectors=(VectorRates(256, fmas=2, loads=3, stores=2),),
        fma_latency=4,
        issue_per_cycle=6,
        tlb_pages=(96, 2048),
        l1=Cache(48 * _KIB, ways=12, line=64),
        l2=Cache(1 * _MIB + 256 * _KIB, ways=10, line=64),
        l3=Cache(30 * _MIB, ways=12, line=64, shared_by=16),
        l1_bytes_per_cycle=96.0,
        l2_bytes_per_cycle=48.0,
        l3_bytes_per_cycle=14.0,
        memory_bytes_per_cycle=7.0,
        page_walk_cycles=8.0,
        source="Intel 248966, Golden Cove microarchitecture: performance cores, three loads of 256 bits, "
        "four page walks; Core i9-12900K: L2 1.25 MiB, L3 30 MiB; L3 and memory estimated. LLVM gives "
        "efficient cores of the same part this name too; they are told apart by CPUID leaf 1AH, as Linux "
        "reads it",
    ),
    Core(
        name="Gracemont",
        cpus=("gracemont", "sierraforest", "grandridge"),
        models=(_intel(*_ALDER_LAKE, efficient=True), _intel(0xBE, 0xAF, 0xB6)),
        vectors=(VectorRates(128, fmas=2, loads=2, stores=2), VectorRates(256, fmas=1, loads=1, stores=1)),
        fma_latency=6,
        tlb_pages=(48, 2048),
        l1=Cache(32 * _KIB, ways=8, line=64),
        l2=Cache(2 * _MIB, ways=16, line=64, shared_by=4),
        l3=Cache(30 * _MIB, ways=12, line=64, shared_by=16),
        l1_bytes_per_cycle=32.0,
        l3_bytes_per_cycle=9.0,
        memory_bytes_per_cycle=5.0,
        set_conflict_cycles=6.0,
        source="Intel 248966, Gracemont microarchitecture: data paths of 128 bits, L2 of four cores 2 MiB "
        "16-way; efficient cores of Alder Lake; L3, memory and page walks estimated",
    ),
    Core(
        name="Zen",
        cpus=("znver1",),
        models=(_amd(0x17, range(0x30)),),
        vectors=(VectorRates(128, fmas=2, loads=2, stores=1), VectorRates(256, fmas=1, loads=1, stores=0.5)),
        fma_latency=5,
        tlb_pages=(64, 1536),
        l1=Cache(32 * _KIB, ways=8, line=64),
        l2=Cache(512 * _KIB, ways=8, line=64),
        l3=Cache(8 * _MIB, ways=16, line=64, shared_by=4),
        l1_bytes_per_cycle=31.0,
        memory_bytes_per_cycle=7.0,
        source="AMD 55723, Software Optimization Guide for Family 17h: data paths of 128 bits, two page "
        "walks; Kerncraft, Zen_EPYC-7451: L1 30.8, L2 30.9, L3 21.8, memory 9.4 bytes a cycle at 2.3 GHz, "
        "here at 3.2; L2 and L3 in the order of a product as on Zen 5",
    ),
    Core(
        name="Zen 2",
        cpus=("znver2",),
        models=(_amd(0x17, range(0x30, 0x48), range(0x60, 0x80), range(0x84, 0x88), range(0x90, 0xB0)),),
        vectors=(VectorRates(256, fmas=2, loads=2, stores=1),),
        fma_latency=5,
        issue_per_cycle=6,
        tlb_pages=(64, 2048),
        l1=Cache(32 * _KIB, ways=8, line=64),
        l2=Cache(512 * _KIB, ways=8, line=64),
        l3=Cache(16 * _MIB, ways=16, line=64, shared_by=4),
        l1_bytes_per_cycle=59.0,
        memory_bytes_per_cycle=6.5,
        source="AMD 56305, Software Optimization Guide for Family 17h Models 30h: floating-point pipes, "
        "TLBs, two page walks; Kerncraft, Zen2_EPYC-7452: L1 58.9, L2 31.8, L3 23.0, memory 9.3 bytes a "
        "cycle at 2.35 GHz, here at 3.35; L2 and L3 in the order of a product as on Zen 5",
    ),
    Core(
        name="Zen 3",
        cpus=("znver3",),
        models=(_amd(0x19, range(0x10), range(0x20, 0x60)),),
        vectors=(VectorRates(256, fmas=2, loads=2, stores=1),),
        fma_latency=4,
        issue_per_cycle=6,
        tlb_pages=(64, 2048),
        l1=Cache(32 * _KIB, ways=8, line=64),
        l2=Cache(512 * _KIB, ways=8, line=64),
        l3=Cache(32 * _MIB, ways=16, line=64, shared_by=8),
        l1_bytes_per_cycle=62.0,
        memory_bytes_per_cycle=6.5,
        page_walk_cycles=5.0,
        set_conflict_cycles=3.0,
        source="AMD 56665, Software Optimization Guide for Family 19h: FMA of 4 cycles, two loads of 256 "
        "bits, six page walks; memory, page walks (4 to 6) and conflicts (2.5 to 4) measured on an EPYC of "
        "model 1, where L1 gave 64, L2 32 and L3 21 bytes a cycle in sequence; L2 and L3 here in the order "
        "of a product as on Zen 5",
    ),
    Core(
        name="Zen 4",
        cpus=("znver4",),
        models=(_amd(0x19, range(0x10, 0x20), range(0x60, 0x80), range(0xA0, 0xB0)),),
        vectors=(VectorRates(256, fmas=2, loads=2, stores=1), VectorRates(512, fmas=1, loads=1, stores=0.5)),
        fma_latency=4,
        issue_per_cycle=6,
        tlb_pages=(72, 3072),
        l1=Cache(32 * _KIB, ways=8, line=64),
        l2=Cache(1 * _MIB, ways=8, line=64),
        l3=Cache(32 * _MIB, ways=16, line=64, shared_by=8),
        l1_bytes_per_cycle=64.0,
        memory_bytes_per_cycle=7.5,
        page_walk_cycles=6.0,
        source="AMD 57647, Software Optimization Guide for the Zen 4 Microarchitecture: 512 bits take two "
        "passes of 256-bit units, six page walks; L2 and L3 measured in products, as on Zen 5; memory "
        "estimated",
    ),
    Core(
        name="Zen 5",
        cpus=("znver5",),
        models=(_amd(0x1A, range(0x50), range(0x60, 0x78), range(0xD0, 0xD8)),),
        vectors=(VectorRates(512, fmas=2, loads=2, stores=1),),
        fma_latency=4,
        issue_per_cycle=8,
        tlb_pages=(96, 4096),
        l1=Cache(48 * _KIB, ways=12, line=64),
        l2=Cache(1 * _MIB, ways=16, line=64),
        l3=Cache(32 * _MIB, ways=16, line=64, shared_by=8),
        l1_bytes_per_cycle=128.0,
        memory_bytes_per_cycle=10.5,
        page_walk_cycles=6.0,
        full_sets_in_place=True,
        source="AMD 58455, Software Optimization Guide for the Zen 5 Microarchitecture: data paths of 512 "
        "bits, six page walks; memory 43 to 52 GB/s at 4.4 GHz (docs/decisions/011-matrix-vector.md); "
        "mobile parts, with paths of 256, have the same name",
    ),
    Core(
        name="Neoverse N1",
        cpus=("neoverse-n1",),
        models=(_arm(0x41, 0xD0C),),
        vectors=(VectorRates(128, fmas=2, loads=2, stores=2),),
        fma_latency=4,
        tlb_pages=(48, 1280),
        l1=Cache(64 * _KIB, ways=4, line=64),
        l2=Cache(1 * _MIB, ways=8, line=64),
        l3=Cache(32 * _MIB, ways=16, line=64, shared_by=64),
        l1_bytes_per_cycle=32.0,
        memory_bytes_per_cycle=7.0,
        source="Arm PJDOC-466751330-9707, Neoverse N1 Software Optimization Guide: V pipes, loads; TRM "
        "100616: TLBs, L1 4-way, L2 8-way; L3 and memory estimated",
    ),
    Core(
        name="Neoverse V1",
        cpus=("neoverse-v1",),
        models=(_arm(0x41, 0xD40),),
        vectors=(VectorRates(128, fmas=4, loads=3, stores=2), VectorRates(256, fmas=2, loads=2, stores=1)),
        fma_latency=4,
        tlb_pages=(48, 2048),
        l1=Cache(64 * _KIB, ways=4, line=64),
        l2=Cache(1 * _MIB, ways=8, line=64),
        l3=Cache(32 * _MIB, ways=16, line=64, shared_by=64),
        l1_bytes_per_cycle=64.0,
        memory_bytes_per_cycle=9.0,
        source="Arm PJDOC-466751330-9685, Neoverse V1 Software Optimization Guide: V and L pipes; TRM "
        "101427: TLBs, L1 4-way, L2 8-way; L3 and memory estimated",
    ),
    Core(
        name="Neoverse V2",
        cpus=("neoverse-v2",),
        models=(_arm(0x41, 0xD4F),),
        vectors=(VectorRates(128, fmas=4, loads=3, stores=2),),
        fma_latency=4,
        tlb_pages=(48, 2048),
        l1=Cache(64 * _KIB, ways=4, line=64),
        l2=Cache(1 * _MIB, ways=8, line=64),
        l3=Cache(114 * _MIB, ways=12, line=64, shared_by=72),
        l1_bytes_per_cycle=48.0,
        memory_bytes_per_cycle=9.0,
        source="Arm PJDOC-466751330-593177, Neoverse V2 Software Optimization Guide: V and L pipes; TRM "
        "102375: TLBs, L1 4-way, L2 8-way; NVIDIA Grace Performance Tuning Guide: L3 114 MiB; L3 and "
        "memory estimated",
    ),
    Core(
        name="Apple M1",
        cpus=("apple-m1",),
        models=(_apple(0x1B588BB3), _arm(0x61, 0x22, 0x23, 0x24, 0x25, 0x28, 0x29)),
        vectors=(VectorRates(128, fmas=4, loads=3, stores=2),),
        fma_latency=4,
        tlb_pages=(160, 3072),
        l1=Cache(128 * _KIB, ways=8, line=64),
        l2=Cache(12 * _MIB, ways=12, line=128, shared_by=4),
        l1_bytes_per_cycle=48.0,
        memory_bytes_per_cycle=18.0,
        set_conflict_cycles=6.0,
        source="Johnson, Apple M1 Firestorm microarchitecture (measured): four FMA units, three loads, two "
        "stores, TLBs; Ravichandran et al., PACMAN, ISCA 2022: caches; AnandTech, The 2020 Mac Mini "
        "Unleashed: memory 58 GB/s of one core at 3.2 GHz",
    ),
    Core(
        name="Apple M2",
        cpus=("apple-m2",),
        models=(_apple(0xDA33D83D), _arm(0x61, 0x32, 0x33, 0x34, 0x35, 0x38, 0x39)),
        vectors=(VectorRates(128, fmas=4, loads=3, stores=2),),
        fma_latency=4,
        tlb_pages=(160, 3072),
        l1=Cache(128 * _KIB, ways=8, line=64),
        l2=Cache(16 * _MIB, ways=16, line=128, shared_by=4),
        l1_bytes_per_cycle=48.0,
        memory_bytes_per_cycle=22.0,
        set_conflict_cycles=6.0,
        source="the units and TLBs of the M1; sysctl hw.perflevel0 of an M2: L2 16 MiB for 4 cores; memory "
        "estimated from its share of the M1's",
    ),
    Core(
        name="Apple M3",
        cpus=("apple-m3",),
        models=(_apple(0xFA33415E, 0x5F4DEA93, 0x72015832),),
        vectors=(VectorRates(128, fmas=4, loads=3, stores=2),),
        fma_latency=4,
        tlb_pages=(160, 3072),
        l1=Cache(128 * _KIB, ways=8, line=64),
        l2=Cache(16 * _MIB, ways=16, line=128, shared_by=4),
        l1_bytes_per_cycle=48.0,
        memory_bytes_per_cycle=20.0,
        set_conflict_cycles=6.0,
        source="the units and TLBs of the M1; sysctl hw.perflevel0 of an M3: L2 16 MiB for 4 cores; memory "
        "estimated from its share of the M1's",
    ),
    Core(
        name="Apple M4",
        cpus=("apple-m4",),
        models=(_apple(0x6F5129AC, 0x17D5B93A),),
        vectors=(VectorRates(128, fmas=4, loads=3, stores=2),),
        fma_latency=4,
        tlb_pages=(160, 3072),
        l1=Cache(128 * _KIB, ways=8, line=64),
        l2=Cache(16 * _MIB, ways=16, line=128, shared_by=4),
        l1_bytes_per_cycle=48.0,
        memory_bytes_per_cycle=22.0,
        set_conflict_cycles=6.0,
        source="the units and TLBs of the M1; sysctl hw.perflevel0 of an M4: L1 data 128 KiB, L2 16 MiB "
        "shared by the 4 performance cores, lines of 128 bytes; associativities and lines of L1 as the "
        "M1's; memory estimated from its share of the M1's",
    ),
    Core(
        name="A64FX",
        cpus=("a64fx",),
        models=(_arm(0x46, 0x001),),
        vectors=(VectorRates(512, fmas=2, loads=2, stores=1),),
        fma_latency=9,
        tlb_pages=(16, 1024),
        l1=Cache(64 * _KIB, ways=4, line=256),
        l2=Cache(8 * _MIB, ways=16, line=256, shared_by=12),
        l1_bytes_per_cycle=128.0,
        memory_bytes_per_cycle=20.0,
        page_walk_cycles=30.0,
        set_conflict_cycles=10.0,
        source="Fujitsu, A64FX Microarchitecture Manual: FLA and FLB, FMA of 9 cycles, TLBs, caches; "
        "Alappat et al. 2022: L1 128, L2 64 bytes a cycle at most; Kerncraft, A64FX_qpace4: memory 19.9 "
        "bytes a cycle at 1.8 GHz, L2 27.5; page walks and conflicts estimated",
    ),
    Core(
        name="POWER9",
        cpus=("pwr9",),
        models=(CpuModels("PVR", 0, _one(0x4E)),),
        vectors=(VectorRates(128, fmas=2, loads=2, stores=1),),
        fma_latency=7,
        tlb_pages=(64, 1024),
        l1=Cache(32 * _KIB, ways=8, line=128),
        l2=Cache(512 * _KIB, ways=8, line=128, shared_by=2),
        l3=Cache(10 * _MIB, ways=20, line=128, shared_by=2),
        l1_bytes_per_cycle=32.0,
        memory_bytes_per_cycle=5.0,
        page_walk_cycles=30.0,
        set_conflict_cycles=6.0,
        source="IBM POWER9 Processor User's Manual: two vector units of 128 bits in a core of four "
        "threads, caches, TLBs; memory, page walks and conflicts estimated",
    ),
    Core(
        name="POWER10",
        cpus=("pwr10",),
        models=(CpuModels("PVR", 0, _one(0x80)),),
        vectors=(VectorRates(128, fmas=4, loads=2, stores=2),),
        fma_latency=7,
        tlb_pages=(64, 4096),
        l1=Cache(32 * _KIB, ways=8, line=128),
        l2=Cache(1 * _MIB, ways=8, line=128),
        l3=Cache(120 * _MIB, ways=16, line=128, shared_by=30),
        l1_bytes_per_cycle=64.0,
        memory_bytes_per_cycle=8.0,
        page_walk_cycles=8.0,
        source="Starke et al., IBM's POWER10 Processor, IEEE Micro 41(2), 2021: four vector units, loads "
        "of 32 bytes, TLB of 4,096, four page walks; caches of half a core, of four threads; memory "
        "estimated",
    ),
    Core(
        name="RVA23",
        cpus=("generic-rv64",),
        vectors=(VectorRates(128, fmas=2, loads=2, stores=1),),
        fma_latency=4,
        l1=Cache(64 * _KIB, ways=8, line=64),
        l2=Cache(1 * _MIB, ways=8, line=64),
        l3=Cache(16 * _MIB, ways=16, line=64, shared_by=16),
        l1_bytes_per_cycle=32.0,
        memory_bytes_per_cycle=5.0,
        source="an estimate for server cores of the profile: no core is named",
    ),
)

_BY_CPU = {cpu: core for core in CORES for cpu in core.cpus}


def find_core(cpu: str) -> Core:
    """The row of an LLVM CPU name, or the defaults.

    >>> find_core("znver4").name, find_core("x86-64-v3").name
    ('Zen 4', '')
    """
    return _BY_CPU.get(cpu, Core())


@cache
def identified_core(cpu: CpuIdentity) -> Core | None:
    """The row of a CPU that says what it is, or None.

    >>> core = identified_core(CpuIdentity("GenuineIntel", 6, 0x97, efficient=True))
    >>> core.name if core else None
    'Gracemont'
    """
    return next((core for core in CORES if any(cpu in models for models in core.models)), None)
