"""Table of architectures: everything the package needs to know of one except its instructions."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from dataclasses import field

from tilewright.records import dataclass

#: What lengths of scalable vectors are multiples of (DDI 0487, ZCR_ELx.LEN).
GRANULE_BITS = 128


@dataclass(frozen=True)
class SystemCalls:
    """Numbers of Linux's system calls, asm/unistd.h."""

    futex: int
    gettid: int
    sched_getaffinity: int
    sched_setaffinity: int


@dataclass(frozen=True)
class FloatMode:
    """The register with the rounding and the treatment of subnormals of a thread, by LLVM's intrinsics.

    Attributes
    ----------
    read, write : the intrinsics.
    bits : of the register.
    in_memory : whether they take its address in memory instead of the value.
    flags : bits that are set by operations, and do not change their results.
    """

    read: str
    write: str
    bits: int
    in_memory: bool = False
    flags: int = 0


@dataclass(frozen=True)
class Arch:
    """One architecture. Its vector units are rows of `isa`; what programs can test, rows of `feature_bits`.

    Attributes
    ----------
    name : the first part of LLVM triples, in the spelling of `Isa.arch`.
    aliases : other spellings in triples.
    linux_name : the name in `platform.machine` on Linux.
    baseline : the CPU that every one of the architecture can run code for, in LLVM's words.
    calling : features without which functions cannot be called, each with a sign for on or off:
        floating-point arguments travel in vector registers, pointers have 64 bits, the thread pool exchanges
        words of 8 bytes.
    always : features that every CPU has, whether LLVM detects them or not.
    built_on : the features that each feature is built on directly. Turned off, they take it along (LLVM's
        ``*.td`` files).
    caches_kib : size in KiB, ways and bytes of a line of the caches that are assumed of one core: level 1,
        level 2, and the usual share of level 3. Panels too large for a cache cost more than small ones, so
        these are the smaller of what is common.
    pause : LLVM's intrinsic that tells the CPU that a thread polls memory, and its integer arguments.
    system_calls : of Linux; None if the thread pool has to sleep without them.
    map_noreserve : MAP_NORESERVE of linux/mman.h, with which a fork does not have to promise the memory.
    float_mode : how floating-point operations of a thread round; None if that is not read and written here.
    has_cpuid : an instruction says everything about the CPU; else the system is asked.
    source : the manuals.
    """

    name: str
    aliases: tuple[str, ...] = ()
    linux_name: str = ""
    baseline: str = "generic"
    calling: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    built_on: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    caches_kib: tuple[tuple[int, int, int], ...] = ((32, 8, 64), (256, 8, 64), (1024, 16, 64))
    pause: tuple[str, tuple[int, ...]] | None = None
    system_calls: SystemCalls | None = None
    map_noreserve: int = 0
    float_mode: FloatMode | None = None
    has_cpuid: bool = False
    source: str = ""

    @property
    def linux_triple(self) -> str:
        """The LLVM triple of a Linux host."""
        return f"{self.name}-unknown-linux-gnu"


#: The numbers of architectures without numbers of their own: asm-generic/unistd.h.
_GENERIC_CALLS = SystemCalls(futex=98, gettid=178, sched_getaffinity=123, sched_setaffinity=122)

X86_64 = Arch(
    name="x86_64",
    aliases=("amd64", "x86_64h"),
    linux_name="x86_64",
    baseline="x86-64",
    calling=("+64bit", "+64bit-mode", "+sse", "+sse2", "+cx8", "-soft-float", "-32bit-mode", "-16bit-mode"),
    built_on={
        "sse3": ("sse2",),
        "ssse3": ("sse3",),
        "sse4.1": ("ssse3",),
        "sse4.2": ("sse4.1",),
        "avx": ("sse4.2",),
        "avx2": ("avx",),
        "f16c": ("avx",),
        "fma": ("avx",),
        "avxvnni": ("avx2",),
        "avx512f": ("avx2", "f16c", "fma"),
        "avx512bw": ("avx512f",),
        "avx512dq": ("avx512f",),
        "avx512vl": ("avx512f",),
        "avx512vnni": ("avx512f",),
        "avx512bf16": ("avx512bw",),
        "amx-bf16": ("amx-tile",),
        "amx-fp16": ("amx-tile",),
        "amx-int8": ("amx-tile",),
    },
    caches_kib=((32, 8, 64), (256, 8, 64), (2048, 16, 64)),
    pause=("llvm.x86.sse2.pause", ()),
    system_calls=SystemCalls(futex=202, gettid=186, sched_getaffinity=204, sched_setaffinity=203),
    map_noreserve=0x4000,
    float_mode=FloatMode("llvm.x86.sse.stmxcsr", "llvm.x86.sse.ldmxcsr", 32, in_memory=True, flags=0x3F),
    has_cpuid=True,
    source="System V ABI, AMD64 supplement, 3.2.3; caches: Haswell client, Intel 248966 (no later core with "
    "AVX2 has less); Intel SDM vol. 2, PAUSE; vol. 1, 10.2.3, MXCSR",
)

AARCH64 = Arch(
    name="aarch64",
    aliases=("arm64", "arm64e"),
    linux_name="aarch64",
    calling=("+fp-armv8", "+neon"),
    always=("neon",),
    built_on={
        "dotprod": ("neon",),
        "i8mm": ("neon",),
        "bf16": ("neon",),
        "fullfp16": ("fp-armv8",),
        "fp16fml": ("fullfp16",),
        "sve": ("fullfp16",),
        "sve2": ("sve",),
        "sme": ("bf16", "fullfp16"),
        "sme-f64f64": ("sme",),
    },
    caches_kib=((64, 4, 64), (512, 8, 64), (1024, 16, 64)),
    pause=("llvm.aarch64.hint", (1,)),
    system_calls=_GENERIC_CALLS,
    map_noreserve=0x4000,
    float_mode=FloatMode("llvm.aarch64.get.fpcr", "llvm.aarch64.set.fpcr", 64),
    source="AAPCS64 (IHI 0055) 6, which relies on Advanced SIMD; caches: Arm Neoverse N1 TRM 100616, with "
    "the smaller of its L2 sizes, L3 1 MiB a core as in Ampere Altra; Arm ARM C5.2, FPCR; C6.2, YIELD "
    "(HINT #1)",
)

POWERPC64LE = Arch(
    name="powerpc64le",
    aliases=("ppc64le",),
    linux_name="ppc64le",
    baseline="ppc64le",
    calling=("+64bit", "+64bit-support", "+hard-float", "+fpu"),
    built_on={
        "vsx": ("altivec",),
        "power8-altivec": ("altivec",),
        "power8-vector": ("vsx", "power8-altivec"),
        "isa-v30-instructions": ("isa-v207-instructions",),
        "power9-altivec": ("isa-v30-instructions", "power8-altivec"),
        "power9-vector": ("power9-altivec", "power8-vector"),
        "mma": ("power8-vector", "power9-altivec", "paired-vector-memops"),
    },
    caches_kib=((32, 8, 128), (256, 8, 128), (5120, 20, 128)),
    system_calls=SystemCalls(futex=221, gettid=207, sched_getaffinity=223, sched_setaffinity=222),
    map_noreserve=0x40,
    source="ELFv2 ABI for Power, 2.2; caches: IBM POWER9 Processor User's Manual (L1 32 KiB 8-way; L2 512 "
    "KiB 8-way and L3 10 MiB 20-way for two cores, of which one has half)",
)

RISCV64 = Arch(
    name="riscv64",
    linux_name="riscv64",
    baseline="generic-rv64",
    calling=("+64bit", "+f", "+d", "+zicsr", "-32bit", "-e"),
    built_on={
        "m": ("zmmul",),
        "zve32x": ("zvl32b",),
        "zve32f": ("zve32x",),
        "zve64x": ("zve32x", "zvl64b"),
        "zvl64b": ("zvl32b",),
        "zvl128b": ("zvl64b",),
        "zve64f": ("zve32f", "zve64x"),
        "zve64d": ("zve64f",),
        "v": ("zve64d", "zvl128b"),
    },
    system_calls=_GENERIC_CALLS,
    map_noreserve=0x4000,
    source="RISC-V ELF psABI, lp64d",
)

#: All rows. Kernels of the last four are plain vectors of LLVM; only their calling conventions are known.
ARCHS: tuple[Arch, ...] = (
    X86_64,
    AARCH64,
    POWERPC64LE,
    RISCV64,
    Arch(
        "loongarch64",
        calling=("+64bit", "+32s", "+f", "+d", "-32bit"),
        source="LoongArch ELF psABI, lp64d",
    ),
    Arch("s390x", calling=("-soft-float",), source="s390x ELF ABI, 1.2"),
    Arch(
        "mips64el",
        calling=("+gp64", "+fp64", "-soft-float", "-single-float", "-mips16"),
        source="MIPSpro N64 ABI",
    ),
    Arch("sparcv9", calling=("-soft-float",), source="SPARC Compliance Definition 2.4"),
)

_BY_NAME = {name: arch for arch in ARCHS for name in (arch.name, *arch.aliases)}


def find_arch(triple: str) -> Arch:
    """The row of an LLVM triple or of an architecture; one without facts for those that have none.

    >>> find_arch("arm64-apple-darwin23.0.0").name, find_arch("hexagon").calling
    ('aarch64', ())
    """
    name = triple.partition("-")[0]
    return _BY_NAME.get(name) or Arch(name)


def triple_arch(triple: str) -> str:
    """The architecture of an LLVM triple, in the spelling of `Isa.arch`.

    >>> triple_arch("arm64-apple-darwin23.0.0")
    'aarch64'
    """
    return find_arch(triple).name


def linux_arch() -> Arch | None:
    """The row of this host, if it runs Linux and has one."""
    if sys.platform != "linux":
        return None
    return next((arch for arch in ARCHS if arch.linux_name == platform.machine()), None)
