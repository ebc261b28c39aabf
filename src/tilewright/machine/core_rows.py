"""The micro-architectures: one row each, found by LLVM's name of a CPU."""

from __future__ import annotations

from tilewright.machine.cores import Core, VectorRates

#: Rates are those of the unit's throughput, not of the front end; a load or store of a vector counts once.
#: Bandwidths are the sustained ones of the sources, of one core reading in order.
CORES: tuple[Core, ...] = (
    Core(
        name="Haswell",
        cpus=("haswell", "broadwell"),
        vectors=(VectorRates(256, fmas=2, loads=2, stores=1),),
        fma_latency=5,
        tlb_pages=(64, 1024),
        l2_bytes_per_cycle=25.0,
        source="Intel 248966, Haswell microarchitecture: ports 0 and 1, cache parameters (L2 25 "
        "bytes a cycle)",
    ),
    Core(
        name="Skylake client",
        cpus=("skylake",),
        vectors=(VectorRates(256, fmas=2, loads=2, stores=1),),
        fma_latency=4,
        tlb_pages=(64, 1536),
        l2_bytes_per_cycle=29.0,
        l3_bytes_per_cycle=18.0,
        source="Intel 248966, Skylake client microarchitecture: ports, cache parameters (L2 29, L3 "
        "18 bytes a cycle)",
    ),
    Core(
        name="Skylake server",
        cpus=("skylake-avx512", "cascadelake", "cooperlake"),
        vectors=(VectorRates(512, fmas=2, loads=2, stores=1),),
        fma_latency=4,
        tlb_pages=(64, 1536),
        l2_bytes_per_cycle=52.0,
        source="Intel 248966, Skylake server microarchitecture: ports 0+1 and 5, cache parameters "
        "(L2 52 bytes a "
        "cycle); parts with one unit of 512 bits (some Bronze, Silver) are not told apart",
    ),
    Core(
        name="Ice Lake client",
        cpus=("icelake-client", "tigerlake", "rocketlake"),
        vectors=(VectorRates(256, fmas=2, loads=2, stores=2), VectorRates(512, fmas=1, loads=2, stores=1)),
        fma_latency=4,
        tlb_pages=(64, 2048),
        l2_bytes_per_cycle=48.0,
        source="Intel 248966, Ice Lake client microarchitecture: one unit of 512 bits, L2 48 bytes a cycle",
    ),
    Core(
        name="Ice Lake server",
        cpus=("icelake-server",),
        vectors=(VectorRates(256, fmas=2, loads=2, stores=2), VectorRates(512, fmas=2, loads=2, stores=1)),
        fma_latency=4,
        tlb_pages=(64, 2048),
        l2_bytes_per_cycle=48.0,
        source="Intel 248966, Ice Lake microarchitecture: ports 0+1 and 5, L2 48 bytes a cycle",
    ),
    Core(
        name="Golden Cove server",
        cpus=("sapphirerapids", "emeraldrapids", "graniterapids", "graniterapids-d"),
        vectors=(VectorRates(256, fmas=2, loads=3, stores=2), VectorRates(512, fmas=2, loads=2, stores=1)),
        fma_latency=4,
        tlb_pages=(96, 2048),
        l2_bytes_per_cycle=48.0,
        source="Intel 248966, Golden Cove microarchitecture (Redwood Cove has the same units): "
        "three loads of 256 "
        "or two of 512 bits, DTLB of 96 and STLB of 2,048 entries",
    ),
    Core(
        name="Golden Cove client",
        cpus=("alderlake", "raptorlake", "meteorlake"),
        vectors=(VectorRates(256, fmas=2, loads=3, stores=2),),
        fma_latency=4,
        tlb_pages=(96, 2048),
        l2_bytes_per_cycle=48.0,
        source="Intel 248966, Golden Cove microarchitecture: performance cores; LLVM gives "
        "efficient cores of the "
        "same part this name too",
    ),
    Core(
        name="Gracemont",
        cpus=("gracemont", "sierraforest", "grandridge"),
        vectors=(VectorRates(128, fmas=2, loads=2, stores=2), VectorRates(256, fmas=1, loads=1, stores=1)),
        fma_latency=6,
        tlb_pages=(48, 2048),
        source="Intel 248966, Gracemont microarchitecture: data paths of 128 bits; efficient cores "
        "of Alder Lake",
    ),
    Core(
        name="Zen",
        cpus=("znver1",),
        vectors=(VectorRates(128, fmas=2, loads=2, stores=1), VectorRates(256, fmas=1, loads=1, stores=0.5)),
        fma_latency=5,
        tlb_pages=(64, 1536),
        source="AMD 55723, Software Optimization Guide for Family 17h: data paths of 128 bits",
    ),
    Core(
        name="Zen 2",
        cpus=("znver2",),
        vectors=(VectorRates(256, fmas=2, loads=2, stores=1),),
        fma_latency=5,
        tlb_pages=(64, 2048),
        source="AMD 56305, Software Optimization Guide for Family 17h Models 30h: floating-point pipes, TLBs",
    ),
    Core(
        name="Zen 3",
        cpus=("znver3",),
        vectors=(VectorRates(256, fmas=2, loads=2, stores=1),),
        fma_latency=4,
        tlb_pages=(64, 2048),
        source="AMD 56665, Software Optimization Guide for Family 19h: FMA of 4 cycles",
    ),
    Core(
        name="Zen 4",
        cpus=("znver4",),
        vectors=(VectorRates(256, fmas=2, loads=2, stores=1), VectorRates(512, fmas=1, loads=1, stores=0.5)),
        fma_latency=4,
        tlb_pages=(72, 3072),
        source="AMD 57647, Software Optimization Guide for the Zen 4 Microarchitecture: 512 bits "
        "take two passes of "
        "256-bit units; bandwidths measured, as on Zen 5",
    ),
    Core(
        name="Zen 5",
        cpus=("znver5",),
        vectors=(VectorRates(512, fmas=2, loads=2, stores=1),),
        fma_latency=4,
        tlb_pages=(96, 4096),
        source="AMD 58455, Software Optimization Guide for the Zen 5 Microarchitecture: data paths "
        "of 512 bits; "
        "mobile parts, with paths of 256, have the same name",
    ),
    Core(
        name="Neoverse N1",
        cpus=("neoverse-n1",),
        vectors=(VectorRates(128, fmas=2, loads=2, stores=2),),
        fma_latency=4,
        tlb_pages=(48, 1280),
        source="Arm PJDOC-466751330-9707, Neoverse N1 Software Optimization Guide: V pipes, loads; "
        "TRM 100616: TLBs",
    ),
    Core(
        name="Neoverse V1",
        cpus=("neoverse-v1",),
        vectors=(VectorRates(128, fmas=4, loads=3, stores=2), VectorRates(256, fmas=2, loads=2, stores=1)),
        fma_latency=4,
        tlb_pages=(48, 2048),
        source="Arm PJDOC-466751330-9685, Neoverse V1 Software Optimization Guide: V and L pipes; "
        "TRM 101427: TLBs",
    ),
    Core(
        name="Neoverse V2",
        cpus=("neoverse-v2",),
        vectors=(VectorRates(128, fmas=4, loads=3, stores=2),),
        fma_latency=4,
        tlb_pages=(48, 2048),
        source="Arm PJDOC-466751330-593177, Neoverse V2 Software Optimization Guide: V and L pipes; "
        "TRM 102375: TLBs",
    ),
    Core(
        name="Apple M1 to M4",
        cpus=("apple-m1", "apple-m2", "apple-m3", "apple-m4"),
        vectors=(VectorRates(128, fmas=4, loads=3, stores=2),),
        fma_latency=4,
        tlb_pages=(160, 3072),
        source="Johnson, Apple M1 Firestorm microarchitecture (measured): four FMA units, three "
        "loads, two stores",
    ),
    Core(
        name="A64FX",
        cpus=("a64fx",),
        vectors=(VectorRates(512, fmas=2, loads=2, stores=1),),
        fma_latency=9,
        tlb_pages=(16, 1024),
        source="Fujitsu, A64FX Microarchitecture Manual: FLA and FLB, FMA of 9 cycles, TLBs",
    ),
    Core(
        name="POWER9",
        cpus=("pwr9",),
        vectors=(VectorRates(128, fmas=2, loads=2, stores=1),),
        fma_latency=7,
        tlb_pages=(64, 1024),
        source="IBM POWER9 Processor User's Manual: two vector units of 128 bits in a core of four threads",
    ),
    Core(
        name="POWER10",
        cpus=("pwr10",),
        vectors=(VectorRates(128, fmas=4, loads=2, stores=2),),
        fma_latency=7,
        tlb_pages=(64, 4096),
        source="Starke et al., IBM's POWER10 Processor, IEEE Micro 41(2), 2021: four vector units, "
        "TLB of 4,096",
    ),
    Core(
        name="RVA23",
        cpus=("generic-rv64",),
        vectors=(VectorRates(128, fmas=2, loads=2, stores=1),),
        fma_latency=4,
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
