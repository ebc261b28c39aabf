"""Run-time detection of LLVM's CPU features: bits of CPUID, XCR0 and Linux's HWCAP."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from enum import IntEnum, IntFlag

from tilewright.errors import NoResolver, UntestableFeature
from tilewright.machine import arch
from tilewright.machine.machine import Machine, enabled_features
from tilewright.records import dataclass


class Register(IntEnum):
    """The registers that CPUID fills, in the order in which programs keep them."""

    EAX = 0
    EBX = 1
    ECX = 2
    EDX = 3


@dataclass(frozen=True, order=True)
class CpuidWord:
    """32 bits that CPUID gives for a leaf and a subleaf; 0 where the CPU has no such leaf."""

    leaf: int
    subleaf: int
    register: Register

    @property
    def label(self) -> str:
        """The word as an identifier.

        >>> CpuidWord(7, 1, Register.EAX).label
        'cpuid_7_1_eax'
        """
        return f"cpuid_{self.leaf:x}_{self.subleaf:x}_{self.register.name.lower()}"


@dataclass(frozen=True, order=True)
class StateWord:
    """XCR0: which registers the operating system saves; 0 where it saves none (no OSXSAVE)."""

    label = "xcr0"


@dataclass(frozen=True, order=True)
class TileGrantWord:
    """1 if the operating system lets this process use AMX tiles, 0 if not; asking is granting.

    Source: Linux, Documentation/arch/x86/xstate.rst, "Using dynamically enabled XSTATE features".
    """

    label = "tile_grant"


@dataclass(frozen=True, order=True)
class AuxiliaryWord:
    """The value of getauxval(3) for an entry of the auxiliary vector."""

    entry: int
    label: str


Word = CpuidWord | StateWord | TileGrantWord | AuxiliaryWord

XCR0 = StateWord()
TILE_GRANT = TileGrantWord()
#: Linux, include/uapi/linux/auxvec.h.
HWCAP = AuxiliaryWord(16, "hwcap")
HWCAP2 = AuxiliaryWord(26, "hwcap2")

#: CPUID.1:ECX.OSXSAVE: the operating system has enabled XGETBV, Intel SDM vol. 1 §13.2.
OSXSAVE = 1 << 27


class Saved(IntFlag):
    """Bits of XCR0: registers that the operating system saves, Intel SDM vol. 1 §13.1 and §13.3."""

    NONE = 0
    AVX = 0x6  # SSE and AVX state
    AVX512 = 0xE6  # and opmask, upper halves of ZMM0-15, ZMM16-31
    TILES = 0x60000  # XTILECFG and XTILEDATA
    EGPR = 1 << 19  # R16 to R31, Intel APX architecture specification 355828


@dataclass(frozen=True)
class Condition:
    """A word must have every bit of a mask."""

    word: Word
    mask: int

    def holds(self, value: int) -> bool:
        """Return whether a word satisfies the condition.

        >>> Condition(XCR0, 0xE6).holds(0x7)
        False
        """
        return value & self.mask == self.mask


@dataclass(frozen=True)
class FeatureBit:
    """One row: an LLVM feature and the bits that report it.

    Attributes
    ----------
    feature : LLVM's name.
    word, mask : the bits, all of which must be set.
    saved : what the operating system must save besides.
    """

    feature: str
    word: Word
    mask: int
    saved: Saved = Saved.NONE

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions a program must check."""
        found = [Condition(self.word, self.mask)]
        if self.saved:
            found.append(Condition(XCR0, int(self.saved)))
        if self.saved & Saved.TILES:
            found.append(Condition(TILE_GRANT, 1))
        return tuple(found)


@dataclass(frozen=True)
class Detection:
    """How programs of one architecture detect their CPU's features.

    Attributes
    ----------
    arch : as `Machine.arch`.
    baseline : the CPU that every one of the architecture can run code for, in LLVM's words.
    rows : features and their bits, in the order of their worth: of two CPUs the better one has the latest row
        that the other lacks.
    ignored : features that no kernel uses: they are part of the baseline, or LLVM emits them for atomics,
        intrinsics, attributes or the system only, or all that they imply has rows.
    untestable : features that LLVM may use but no bit reports.
    source : the manuals.
    """

    arch: str
    baseline: str
    rows: tuple[FeatureBit, ...]
    ignored: frozenset[str]
    untestable: tuple[str, ...]
    source: str

    @property
    def questions(self) -> tuple[str, ...]:
        """The features to ask LLVM about a CPU: it may use them in kernels though no record names them."""
        return (*(row.feature for row in self.rows), *self.untestable)


def _rows(word: Word, bits: str, saved: Saved = Saved.NONE) -> tuple[FeatureBit, ...]:
    """Rows of "feature:bit feature:bit" in one word."""
    entries = (entry.rpartition(":") for entry in bits.split())
    return tuple(FeatureBit(name, word, 1 << int(bit), saved) for name, _, bit in entries)


def _same_bit(word: Word, mask: int, names: str, saved: Saved = Saved.NONE) -> tuple[FeatureBit, ...]:
    """Rows of features that one bit shows."""
    return tuple(FeatureBit(name, word, mask, saved) for name in names.split())


def _names(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


def _cpuid(leaf: int, subleaf: int, register: str) -> CpuidWord:
    return CpuidWord(leaf, subleaf, Register[register])


_LEAF1_ECX, _LEAF1_EDX = _cpuid(1, 0, "ECX"), _cpuid(1, 0, "EDX")
_LEAF7_EBX, _LEAF7_ECX, _LEAF7_EDX = (_cpuid(7, 0, name) for name in ("EBX", "ECX", "EDX"))
_LEAF7_1_EAX, _LEAF7_1_EDX = _cpuid(7, 1, "EAX"), _cpuid(7, 1, "EDX")
_EXTENDED_ECX = _cpuid(0x80000001, 0, "ECX")

X86 = Detection(
    arch=arch.X86_64.name,
    baseline=arch.X86_64.baseline,
    rows=(
        *_rows(_LEAF1_ECX, "sse3:0 ssse3:9 sse4.1:19 sse4.2:20 movbe:22 popcnt:23"),
        *_rows(_EXTENDED_ECX, "lzcnt:5 sse4a:6 prfchw:8 tbm:21"),
        *_rows(_LEAF7_EBX, "bmi:3 bmi2:8"),
        *_rows(_LEAF7_ECX, "gfni:8"),
        *_rows(_LEAF1_ECX, "avx:28 f16c:29", Saved.AVX),
        *_rows(_EXTENDED_ECX, "xop:11 fma4:16", Saved.AVX),
        *_rows(_LEAF1_ECX, "fma:12", Saved.AVX),
        *_rows(_LEAF7_EBX, "avx2:5", Saved.AVX),
        *_rows(_LEAF7_1_EAX, "avxvnni:4 avxifma:23", Saved.AVX),
        *_rows(_LEAF7_1_EDX, "avxvnniint8:4 avxneconvert:5 avxvnniint16:10", Saved.AVX),
        *_rows(_LEAF7_EBX, "avx512f:16 avx512dq:17 avx512cd:28 avx512bw:30 avx512vl:31", Saved.AVX512),
        *_rows(_LEAF7_EBX, "avx512ifma:21", Saved.AVX512),
        *_rows(_LEAF7_ECX, "avx512vbmi:1 avx512vbmi2:6 avx512bitalg:12 avx512vpopcntdq:14", Saved.AVX512),
        *_rows(_LEAF7_EDX, "avx512vp2intersect:8", Saved.AVX512),
        *_rows(_LEAF7_ECX, "avx512vnni:11", Saved.AVX512),
        *_rows(_LEAF7_1_EAX, "avx512bf16:5", Saved.AVX512),
        *_rows(_LEAF7_EDX, "avx512fp16:23", Saved.AVX512),
        *_same_bit(_LEAF7_1_EDX, 1 << 21, "egpr ccmp cf ndd nf ppx push2pop2 zu", Saved.EGPR),
        *_rows(_LEAF7_EDX, "amx-tile:24 amx-int8:25 amx-bf16:22", Saved.TILES),
        *_rows(_LEAF7_1_EAX, "amx-fp16:21", Saved.TILES),
        *_rows(_LEAF7_1_EDX, "amx-complex:8", Saved.TILES),
    ),
    ignored=_names(
        # The baseline; AVX10.1, which is AVX-512 with all of its extensions; atomics; compares of the x87.
        "64bit cmov fxsr mmx sse sse2 x87 avx10.1 cx16 cx8 sahf",
        # Intrinsics and the system.
        "adx aes cldemote clflushopt clwb clzero cmpccxadd crc32 enqcmd fsgsbase hreset invpcid kl lwp",
        "movdir64b movdiri movrs mwaitx pclmul pconfig pku prefetchi ptwrite raoint rdpid rdpru rdrnd",
        "rdseed rtm serialize sgx sha sha512 shstk sm3 sm4 tsxldtrk uintr usermsr vaes vpclmulqdq waitpkg",
        "wbnoinvd widekl xsave xsavec xsaveopt xsaves",
    ),
    untestable=("avx10.2",),
    source="Intel SDM vol. 2, CPUID, and vol. 1 §14.3, §15.2 (detection with XCR0); AMD64 APM vol. 3 "
    "appendix E; LLVM names: llvm/lib/TargetParser/Host.cpp, getHostCPUFeatures",
)

AARCH64 = Detection(
    arch=arch.AARCH64.name,
    baseline=arch.AARCH64.baseline,
    rows=(
        *_rows(HWCAP, "fp-armv8:0 neon:1 rdm:12 complxnum:14 sha3:17 dotprod:20 fp16fml:23 sve:22"),
        *_same_bit(HWCAP, 1 << 9 | 1 << 10, "fullfp16"),  # of scalars and of vectors
        *_rows(HWCAP2, "cssc:34 mops:43 hbc:44 i8mm:13 bf16:14 faminmax:50 sve2:1 sve2p1:36"),
        *_rows(HWCAP2, "f32mm:10 f64mm:11 sme:23 sme-i16i64:24 sme-f64f64:25 sme-fa64:30 sme2:37 sme2p1:38"),
    ),
    ignored=_names(
        "aes altnzcv bti ccdp ccidx ccpp crc crypto dit ecv ete fgt flagm fptoint jsconv lor lse lse128",
        "lse2 mpam mte nv outline-atomics pan pan-rwv pauth perfmon predres ras rand rcpc rcpc-immo rcpc3",
        "sb sel2 sha2 sm4 spe specrestrict ssbs sve-aes sve-bitperm sve2-aes sve2-bitperm sve2-sha3",
        "sve2-sm4 tlb-rmi trbe uaops vh wfxt",
    ),
    untestable=("cmpbr", "fprcvt", "sve2p2"),
    source="Linux, Documentation/arch/arm64/elf_hwcaps.rst and arch/arm64/include/uapi/asm/hwcap.h; "
    "LLVM names: llvm/lib/Target/AArch64/AArch64Features.td",
)

#: Bits of Linux's arch/powerpc/include/uapi/asm/cputable.h.
_ALTIVEC, _POWER_VSX = 1 << 28, 1 << 7
_ARCH_2_07, _ARCH_3_00, _IEEE128, _ARCH_3_1, _MMA = 1 << 31, 1 << 23, 1 << 22, 1 << 18, 1 << 17

POWER = Detection(
    arch=arch.POWERPC64LE.name,
    baseline=arch.POWERPC64LE.baseline,
    rows=(
        *_same_bit(HWCAP, _ALTIVEC, "altivec"),
        *_same_bit(HWCAP, _POWER_VSX, "vsx"),
        *_same_bit(HWCAP2, _ARCH_2_07, "power8-vector power8-altivec direct-move isa-v207-instructions"),
        *_same_bit(HWCAP2, _ARCH_3_00, "power9-vector power9-altivec isa-v30-instructions"),
        *_same_bit(HWCAP2, _IEEE128, "float128"),
        *_same_bit(HWCAP2, _ARCH_3_1, "power10-vector isa-v31-instructions paired-vector-memops"),
        *_same_bit(HWCAP2, _ARCH_3_1, "prefix-instrs pcrelative-memops"),
        *_same_bit(HWCAP2, _MMA, "mma"),
    ),
    ignored=_names("64bit cmpb crypto fpu htm partword-atomics quadword-atomics"),
    untestable=("isa-future-instructions",),
    source="Power Architecture 64-Bit ELF V2 ABI §4.1.1.3 (AT_HWCAP, AT_HWCAP2); Linux, cputable.h; "
    "LLVM names: llvm/lib/Target/PowerPC/PPC.td",
)

#: One row per architecture whose programs can find out.
DETECTIONS: tuple[Detection, ...] = (X86, AARCH64, POWER)

#: LLVM tuning features: they change which instructions it prefers, not which are available.
_PREFERENCES = ("fast-", "slow-", "prefer-", "false-deps-", "tuning-")


def detection_of(machine: Machine) -> Detection:
    """How programs for a machine detect their CPU's features.

    Raises
    ------
    NoResolver : for an architecture without a row, or another system than Linux.

    Examples
    --------
    >>> from tilewright.machine.catalog import find_machine
    >>> detection_of(find_machine("pwr10")).baseline
    'ppc64le'
    """
    known = ", ".join(detection.arch for detection in DETECTIONS)
    if "linux" not in machine.triple:
        reason = "its objects are not those of Linux"
        raise NoResolver(target=machine.name, triple=machine.triple, reason=reason, known=known)
    for detection in DETECTIONS:
        if detection.arch == machine.arch:
            return detection
    reason = f"no table says where a program sees what a {machine.arch} CPU has"
    raise NoResolver(target=machine.name, triple=machine.triple, reason=reason, known=known)


def required_features(machine: Machine, has: Collection[str]) -> tuple[FeatureBit, ...]:
    """The rows of every feature that code for a machine may depend on.

    Parameters
    ----------
    machine : what the code is compiled for.
    has : which of the detection's `questions` its CPU has, as LLVM says.

    Raises
    ------
    NoResolver : as `detection_of`.
    UntestableFeature : for a feature that no bit shows.

    Examples
    --------
    >>> from tilewright.machine.catalog import find_machine
    >>> [row.feature for row in required_features(find_machine("pwr10"), ())]
    ['vsx', 'power9-vector', 'power10-vector', 'paired-vector-memops', 'mma']
    """
    detection = detection_of(machine)
    wanted = {*enabled_features(machine.features), *machine.isa.features, *has}
    rows = tuple(row for row in detection.rows if row.feature in wanted)
    unknown = wanted - {row.feature for row in rows} - detection.ignored
    unknown = {name for name in unknown if not name.startswith(_PREFERENCES)}
    if unknown:
        raise UntestableFeature(target=machine.name, features=", ".join(sorted(unknown)), arch=detection.arch)
    return rows


def conditions_of(rows: Sequence[FeatureBit]) -> tuple[Condition, ...]:
    """The conditions of many features, one for each word, words in a fixed order.

    >>> rows = [row for row in X86.rows if row.feature == "avx2"]
    >>> [f"{condition.word.label} {condition.mask:#x}" for condition in conditions_of(rows)]
    ['cpuid_7_0_ebx 0x20', 'xcr0 0x6']
    """
    masks: dict[Word, int] = {}
    for row in rows:
        for condition in row.conditions:
            masks[condition.word] = masks.get(condition.word, 0) | condition.mask
    return tuple(Condition(word, masks[word]) for word in sorted(masks, key=_reading_order))


def words_of(many: Iterable[Sequence[Condition]]) -> tuple[Word, ...]:
    """Every word that some conditions look at, in the order to read them: the grant of tiles behind XCR0."""
    return tuple(sorted({one.word for conditions in many for one in conditions}, key=_reading_order))


def _reading_order(word: Word) -> tuple[int, str]:
    """CPUID and the auxiliary vector first; the grant of tiles, which changes the process, last."""
    match word:
        case CpuidWord() | AuxiliaryWord():
            return 0, word.label
        case StateWord():
            return 1, word.label
        case TileGrantWord():
            return 2, word.label
