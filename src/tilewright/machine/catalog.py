"""Named machines: CPUs to compile for without having one, each row with its source."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TypedDict

from tilewright.errors import NoVectorUnit, UnknownTarget, shown
from tilewright.machine.arch import AARCH64, POWERPC64LE, RISCV64, X86_64
from tilewright.machine.cache import Cache
from tilewright.machine.core_rows import find_core
from tilewright.machine.isa import Isa
from tilewright.machine.isa_rows import AVX2, AVX512, GENERIC128, NEON, RVV128, SVE, VSX, usable_isas
from tilewright.machine.machine import Machine, enabled_features
from tilewright.records import dataclass
from tilewright.registered import MACHINES, registered, registered_places

_KIB = 2**10
_MIB = 2**20
_X86 = X86_64.linux_triple
_ARM = AARCH64.linux_triple
_POWER = POWERPC64LE.linux_triple
_RISCV = RISCV64.linux_triple
_MACOS = "arm64-apple-macosx11.0.0"


@dataclass(frozen=True)
class CatalogEntry:
    """One row: a machine and the source of its figures."""

    machine: Machine
    source: str

    def __post_init__(self) -> None:
        machine = self.machine
        usable = usable_isas(machine.arch, enabled_features(machine.features))
        if machine.isa.name not in [isa.name for isa in usable]:
            rows = ", ".join(isa.name for isa in usable)
            raise NoVectorUnit(cpu=machine.cpu, triple=machine.triple, rows=rows)


def _features(isa: Isa, *others: str) -> str:
    """The feature string: what the row needs, and what else of use to a kernel the CPU has."""
    return ",".join(f"+{name}" for name in sorted({*isa.features, *others}))


class _Caches(TypedDict):
    """The caches among the arguments of `Machine`."""

    l1: Cache
    l2: Cache
    l3: Cache | None


def _caches(cpu: str, l3: Cache | None = None) -> _Caches:
    """The caches in the row of a CPU's core; a part may have another L3."""
    core = find_core(cpu)
    return _Caches(l1=core.l1, l2=core.l2, l3=l3 or core.l3)


_SSE = ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
_V3 = ("bmi", "bmi2", "f16c", "lzcnt", "movbe", *_SSE)
_V4 = ("avx512bw", "avx512cd", *_V3)

#: One row per machine; `cores` and the sharing of caches are those of one socket of the part named.
CATALOG: tuple[CatalogEntry, ...] = (
    CatalogEntry(
        Machine(
            name="haswell",
            isa=AVX2,
            triple=_X86,
            cpu="haswell",
            features=_features(AVX2, *_V3),
            cores=4,
            **_caches("haswell"),
        ),
        "Intel 64 and IA-32 Optimization Reference Manual 248966, Haswell cache parameters; Core i7-4770: "
        "4 cores, 8 MiB L3, 16-way as CPUID leaf 4 reports it",
    ),
    CatalogEntry(
        Machine(
            name="cascadelake",
            isa=AVX512,
            triple=_X86,
            cpu="cascadelake",
            features=_features(AVX512, *_V4, "avx512vnni"),
            cores=20,
            **_caches("cascadelake"),
        ),
        "Intel 248966, Skylake Server cache parameters (L2 1 MiB 16-way, L3 1.375 MiB 11-way per core); "
        "WikiChip, Cascade Lake; Xeon Gold 6248: 20 cores, 27.5 MiB L3",
    ),
    CatalogEntry(
        Machine(
            name="sapphirerapids",
            isa=AVX512,
            triple=_X86,
            cpu="sapphirerapids",
            features=_features(
                AVX512,
                *_V4,
                "amx-bf16",
                "amx-int8",
                "amx-tile",
                "avx512bf16",
                "avx512fp16",
                "avx512vnni",
                "avxvnni",
            ),
            cores=56,
            **_caches("sapphirerapids"),
        ),
        "Intel 248966, Golden Cove cache parameters; Intel support article 000027820 (L2 2 MiB, L3 1.875 MiB "
        "per core), L3 15-way as CPUID leaf 4 reports it; Xeon Platinum 8480+: 56 cores, 105 MiB L3",
    ),
    CatalogEntry(
        Machine(
            name="graniterapids",
            isa=AVX512,
            triple=_X86,
            cpu="graniterapids",
            features=_features(
                AVX512,
                *_V4,
                "amx-bf16",
                "amx-fp16",
                "amx-int8",
                "amx-tile",
                "avx512bf16",
                "avx512fp16",
                "avx512vnni",
                "avxvnni",
            ),
            cores=128,
            **_caches("graniterapids", l3=Cache(504 * _MIB, ways=16, line=64, shared_by=128)),
        ),
        "Intel 248966, Redwood Cove: caches of Golden Cove (L1 48 KiB 12-way, L2 2 MiB 16-way); "
        "Xeon 6980P: 128 cores, 504 MiB L3, whose associativity is not published: 16 assumed",
    ),
    CatalogEntry(
        Machine(
            name="znver2",
            isa=AVX2,
            triple=_X86,
            cpu="znver2",
            features=_features(AVX2, *_V3),
            cores=64,
            **_caches("znver2"),
        ),
        "AMD Software Optimization Guide for Family 17h Models 30h and Greater, publication 56305, caches; "
        "EPYC 7742: 64 cores, 16 MiB L3 per complex of 4",
    ),
    CatalogEntry(
        Machine(
            name="znver4",
            isa=AVX512,
            triple=_X86,
            cpu="znver4",
            features=_features(AVX512, *_V4, "avx512bf16", "avx512vnni"),
            cores=96,
            **_caches("znver4"),
        ),
        "AMD Software Optimization Guide for the Zen 4 Microarchitecture, publication 57647, caches; "
        "EPYC 9654: 96 cores, 32 MiB L3 per complex of 8",
    ),
    CatalogEntry(
        Machine(
            name="znver5",
            isa=AVX512,
            triple=_X86,
            cpu="znver5",
            features=_features(AVX512, *_V4, "avx512bf16", "avx512vnni", "avx512vp2intersect", "avxvnni"),
            cores=128,
            **_caches("znver5"),
        ),
        "AMD Software Optimization Guide for the Zen 5 Microarchitecture, publication 58455, caches; "
        "EPYC 9755: 128 cores, 32 MiB L3 per complex of 8",
    ),
    CatalogEntry(
        Machine(
            name="neoverse-n1",
            isa=NEON,
            triple=_ARM,
            cpu="neoverse-n1",
            features=_features(NEON, "dotprod", "fullfp16"),
            cores=64,
            **_caches("neoverse-n1"),
        ),
        "Arm Neoverse N1 TRM 100616 (L1 64 KiB 4-way, L2 up to 1 MiB 8-way); AWS Graviton2: 64 cores, "
        "32 MiB system level cache, whose associativity is not published: 16 assumed",
    ),
    CatalogEntry(
        Machine(
            name="neoverse-v1",
            isa=NEON,
            triple=_ARM,
            cpu="neoverse-v1",
            features=_features(NEON, "bf16", "dotprod", "fp16fml", "fullfp16", "i8mm", "sve"),
            cores=64,
            vector_bits=256,
            **_caches("neoverse-v1"),
        ),
        "Arm Neoverse V1 TRM 101427 (L1 64 KiB 4-way, L2 1 MiB 8-way); AWS Graviton3: 64 cores, "
        "32 MiB system level cache, whose associativity is not published: 16 assumed",
    ),
    CatalogEntry(
        Machine(
            name="neoverse-v2",
            isa=NEON,
            triple=_ARM,
            cpu="neoverse-v2",
            features=_features(NEON, "bf16", "dotprod", "fp16fml", "fullfp16", "i8mm", "sve", "sve2"),
            cores=72,
            vector_bits=128,
            **_caches("neoverse-v2"),
        ),
        "Arm Neoverse V2 TRM 102375 (L1 64 KiB 4-way, L2 8-way); NVIDIA Grace Performance Tuning Guide: "
        "72 cores, L2 1 MiB, L3 114 MiB, whose associativity is not published: 12 assumed",
    ),
    CatalogEntry(
        Machine(
            name="kunpeng-920",
            isa=NEON,
            triple=_ARM,
            cpu="tsv110",
            features=_features(NEON, "dotprod", "fp16fml", "fullfp16"),
            l1=Cache(64 * _KIB, ways=4, line=64),
            l2=Cache(512 * _KIB, ways=8, line=64),
            l3=Cache(64 * _MIB, ways=16, line=64, shared_by=64),
            cores=64,
        ),
        "WikiChip, Kunpeng 920-6426 and TaiShan v110 (L1 64 KiB 4-way, L2 512 KiB 8-way, L3 1 MiB per core): "
        "64 cores, 64 MiB L3, whose associativity is an estimate: 16 assumed",
    ),
    CatalogEntry(
        Machine(
            name="a64fx",
            isa=SVE,
            triple=_ARM,
            cpu="a64fx",
            features=_features(SVE, "fullfp16"),
            cores=48,
            page_bytes=64 * _KIB,
            vector_bits=512,
            **_caches("a64fx"),
        ),
        "Fujitsu, A64FX Microarchitecture Manual (L1 64 KiB 4-way, L2 8 MiB 16-way for the 12 cores of a "
        "memory group, lines of 256 bytes, no L3); 48 cores; pages of 64 KiB, those of its usual systems",
    ),
    CatalogEntry(
        Machine(
            name="apple-m4",
            isa=NEON,
            triple=_MACOS,
            cpu="apple-m4",
            features=_features(
                NEON, "bf16", "dotprod", "fp16fml", "fullfp16", "i8mm", "sme", "sme-f64f64", "sme2"
            ),
            cores=4,
            page_bytes=16 * _KIB,
            streaming_bits=512,
            **_caches("apple-m4"),
        ),
        "sysctl hw.perflevel0 of an M4: L1 data 128 KiB, L2 16 MiB shared by the 4 performance cores, lines "
        "of 128 bytes; the associativities and the lines of L1 are an estimate from the M1's; no L3",
    ),
    CatalogEntry(
        Machine(
            name="apple-m1",
            isa=NEON,
            triple=_MACOS,
            cpu="apple-m1",
            features=_features(NEON, "dotprod", "fp16fml", "fullfp16"),
            cores=4,
            page_bytes=16 * _KIB,
            **_caches("apple-m1"),
        ),
        "Ravichandran et al., PACMAN, ISCA 2022, cache table of the M1 (L1 8-way, 64-byte lines; L2 12-way, "
        "128-byte lines); the 4 performance cores, which share the L2; no L3 beyond the memory-side cache",
    ),
    CatalogEntry(
        Machine(
            name="pwr9",
            isa=VSX,
            triple=_POWER,
            cpu="pwr9",
            features=_features(VSX, "vsx"),
            cores=22,
            page_bytes=64 * _KIB,
            **_caches("pwr9"),
        ),
        "IBM POWER9 Processor User's Manual (L1 32 KiB 8-way; a pair of cores shares L2 512 KiB 8-way and "
        "L3 10 MiB 20-way; lines of 128 bytes); Power AC922: 22 cores of four threads",
    ),
    CatalogEntry(
        Machine(
            name="pwr10",
            isa=VSX,
            triple=_POWER,
            cpu="pwr10",
            features=_features(VSX, "mma", "paired-vector-memops", "power10-vector", "vsx"),
            cores=30,
            page_bytes=64 * _KIB,
            **_caches("pwr10"),
        ),
        "Starke et al., IBM's POWER10 Processor, IEEE Micro 41(2), 2021 (15 cores of eight threads, L2 2 MiB "
        "and L3 8 MiB for each): here the 30 halves of four threads, with half of the L2; associativities "
        "are an estimate from the POWER9's and lscpu",
    ),
    CatalogEntry(
        Machine(
            name="rva23",
            isa=RVV128,
            triple=_RISCV,
            cpu="generic-rv64",
            features=_features(RVV128, "a", "b", "c", "d", "f"),
            cores=16,
            **_caches("generic-rv64"),
        ),
        "RISC-V Profiles, RVA23U64 (B and V with VLEN of 128 or more are mandatory, lines of 64 bytes by "
        "Zic64b; Zvbb and the rest of what it demands is of no use here); no CPU is named: the caches are "
        "an estimate for server cores of that profile",
    ),
    CatalogEntry(
        Machine(
            name="x86-64-v2",
            isa=GENERIC128,
            triple=_X86,
            cpu="x86-64-v2",
            features=_features(GENERIC128, *_SSE),
            l1=Cache(32 * _KIB, ways=8, line=64),
            l2=Cache(256 * _KIB, ways=8, line=64),
            l3=Cache(8 * _MIB, ways=16, line=64, shared_by=4),
            cores=4,
        ),
        "System V psABI for AMD64, micro-architecture levels; caches of its first CPU, Nehalem "
        "(Core i7-920): Intel 248966",
    ),
    CatalogEntry(
        Machine(
            name="x86-64-v3",
            isa=AVX2,
            triple=_X86,
            cpu="x86-64-v3",
            features=_features(AVX2, *_V3),
            l1=Cache(32 * _KIB, ways=8, line=64),
            l2=Cache(256 * _KIB, ways=8, line=64),
            l3=Cache(8 * _MIB, ways=16, line=64, shared_by=4),
            cores=4,
        ),
        "System V psABI for AMD64, micro-architecture levels; caches of its first CPU, Haswell: Intel 248966",
    ),
    CatalogEntry(
        Machine(
            name="x86-64-v4",
            isa=AVX512,
            triple=_X86,
            cpu="x86-64-v4",
            features=_features(AVX512, *_V4),
            l1=Cache(32 * _KIB, ways=8, line=64),
            l2=Cache(1 * _MIB, ways=16, line=64),
            l3=Cache(11 * _MIB, ways=11, line=64, shared_by=8),
            cores=8,
        ),
        "System V psABI for AMD64, micro-architecture levels; caches of its first CPU, Skylake Server, with "
        "8 cores (Xeon Silver 4108: 11 MiB L3): Intel 248966",
    ),
)


def targets() -> tuple[str, ...]:
    """Names of the machines that kernels can be compiled for, besides this host.

    Examples
    --------
    >>> import tilewright as tw
    >>> "znver5" in tw.targets()
    True
    """
    names = (entry.machine.name for entry in CATALOG)
    return tuple(dict.fromkeys((*names, *registered_places(MACHINES))))


def find_entry(name: str) -> CatalogEntry:
    """The row with a name.

    Raises
    ------
    UnknownTarget : if there is none; the message lists the names, most similar first.

    Examples
    --------
    >>> find_entry("haswell").source[:5]
    'Intel'
    """
    for entry in CATALOG:
        if entry.machine.name == name:
            return entry
    found: CatalogEntry | None = registered(MACHINES, name, CatalogEntry)
    if found is not None:
        return found
    similar = get_close_matches(name, targets(), n=len(targets()), cutoff=0.0)
    raise UnknownTarget(found=shown(name), known=", ".join(similar))


def find_machine(name: str) -> Machine:
    """The machine with a name.

    Raises
    ------
    UnknownTarget : if there is none; the message lists the names, most similar first.

    Examples
    --------
    >>> find_machine("neoverse-v2").isa.name
    'neon'
    """
    return find_entry(name).machine
