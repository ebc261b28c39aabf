"""Instruction-set rows: their multiply instructions and the limits on register tiles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from tilewright.errors import InvalidChoice, UnknownIsa, UnsupportedDtype, shown
from tilewright.machine.arch import AARCH64, POWERPC64LE, RISCV64, X86_64
from tilewright.spec.dtype import BF16, F16, F32, F64, I4X2, I8, I16, I32, I64, U8, DType, accumulator


class Lowering(Enum):
    """Code generator of a tile product.

    TARGET: this package, by the row's multiply instructions.
    GENERIC: LLVM, from its matrix intrinsic; for comparison.
    """

    TARGET = "target"
    GENERIC = "generic"


#: What every row has: one element of A times a vector of B. And LLVM's intrinsic, which no row lists.
MULTIPLY_ADD = "multiply_add"
MATRIX_MULTIPLY = "matrix_multiply"


class Edge(Enum):
    """How a register tile narrower than its vectors is loaded and stored.

    MASK: masked vector loads and stores that never touch a masked-out byte.
    SPILL: through a small buffer, element by element; operands are packed at the edge.
    """

    MASK = "mask"
    SPILL = "spill"


class Broadcast(Enum):
    """How an element of A is broadcast to every lane.

    MEMORY: a broadcasting load (one load per element, one register).
    LANE: the FMA takes a lane of a vector register (one vector load serves several elements).
    SCALAR: the FMA takes a scalar register (one scalar load per element, no vector register).
    """

    MEMORY = "memory"
    LANE = "lane"
    SCALAR = "scalar"


@dataclass(frozen=True)
class TileFma:
    """One multiply-add instruction: acc[m, n] += a[m, k] · b[k, n].

    Attributes
    ----------
    instruction : its name in `micro.units.instructions`, the manual's mnemonic where there is one.
    a, b, acc : element types of the operands, as packed panels hold them, and of the accumulator. Operands of
        narrower types are converted to these when they are loaded or packed.
    m, n, k : the instruction's own tile: rows of A, columns of B, and the depth it sums over.
    kr : consecutive depths of one column of B that are adjacent in a packed panel.
    kr_a : consecutive depths of one row of A that are adjacent in a packed panel; 0 if it is kr.
    feature : LLVM feature that the instruction needs beyond the row's own.
    per_cycle : instructions that start each cycle; 0 if as many as the row's FMA.
    latency : cycles until its result can be added to again; 0 if it is that of the row's FMA.
    accumulators : number of accumulators in addition to the vector registers; 0 if sums are kept in
        vector registers.
    separate : the product and its addition are two instructions, so that each product takes a register.
    registers : how many of the row's vector registers it can name; 0 for all of them.
    biased : the instruction needs one operand unsigned. 128 is added to each element of A, and one more
        accumulator for each vector of B collects what that adds, to be subtracted at the end.
    streaming : m and n are the lanes of a streaming vector (SME), whose length the machine says.
    """

    instruction: str
    a: DType
    b: DType
    acc: DType
    m: int
    n: int
    k: int = 1
    kr: int = 1
    kr_a: int = 0
    feature: str | None = None
    per_cycle: float = 0
    latency: int = 0
    accumulators: int = 0
    separate: bool = False
    registers: int = 0
    biased: bool = False
    streaming: bool = False

    def __post_init__(self) -> None:
        for kr in (self.kr, self.interleave_a):
            if self.k % kr:
                raise InvalidChoice(name="kr", found=kr, allowed=f"divisors of k = {self.k}")

    @property
    def interleave_a(self) -> int:
        """Consecutive depths of one row of A stored together in a packed panel."""
        return self.kr_a or self.kr

    @property
    def is_matrix_engine(self) -> bool:
        """Whether one instruction multiplies several rows of A: it reads both operands from packed panels.

        The others multiply one row of A, whose element or word is broadcast, by a vector of B.
        """
        return self.m > 1

    @property
    def has_accumulators(self) -> bool:
        """Whether sums are kept in accumulators of the unit, and leave the vector registers to operands."""
        return self.accumulators > 0

    @property
    def bias_accumulators(self) -> int:
        """Accumulators beside those of the rows of A, for each vector of B: see `biased`."""
        return int(self.biased)

    @property
    def products(self) -> int:
        """Multiplications of one instruction."""
        return self.m * self.n * self.k

    @property
    def in_place(self) -> bool:
        """Whether operands can be read in place: one row of A, one depth."""
        return not self.is_matrix_engine and self.k == 1

    def widened(self, vector_bits: int) -> TileFma:
        """The instruction on vectors of another length: more columns, of a streaming one more rows too.

        >>> tile = TileFma("bfmmla", BF16, BF16, F32, m=2, n=2, k=4, kr=4).widened(512)
        >>> tile.m, tile.n
        (2, 8)
        """
        if self.streaming:
            lanes = vector_bits // self.acc.bits
            return replace(self, m=lanes, n=lanes)
        return replace(self, n=vector_bits // (self.m * self.acc.bits))

    def takes(self, a: DType, b: DType) -> bool:
        """Return whether operands of these types, widened if needed, keep their values and type of sums."""
        return self.a.holds(a) and self.b.holds(b) and self.acc == accumulator(a, b)


@dataclass(frozen=True)
class Isa:
    """One row: the vector unit as the models and the micro-kernels see it.

    Attributes
    ----------
    name : the name in kernel names and settings.
    arch : the architecture it belongs to, the first part of the LLVM triple; empty for all.
    features : LLVM features that must be present, those that they imply included. Features that are not
        listed are turned off, so that a narrow row can be compiled and tested on a wider CPU.
    vector_bits, vector_registers : size and number of architectural vector registers.
    fma_per_cycle : FMAs that start each cycle on common cores of the row.
    fma_latency : cycles until the result of an FMA can be added to again. The product of both is how many
        independent accumulators keep the unit busy.
    loads_per_cycle : vector loads that start each cycle.
    edge : how partial vectors are loaded and stored.
    broadcast : how an element of A reaches every lane.
    tiles : the multiply instructions; several may take the same types.
    source : the manual, and where the rates and latencies are from.
    folds_loads : arithmetic instructions take one operand from memory (x86), so that a loaded vector which
        is used once needs no register: kernels then read a term in the addition that uses it.
    fused : the multiply-add on floats rounds once. Without, it is a multiply and an add of two roundings.
    half : there are instructions that convert between float16 and float32 (F16C). Without, conversions
        are integer arithmetic.
    scalable : the length of vectors is a property of the machine (SVE), which LLVM is told when it compiles;
        vector_bits is the least length.
    least_masked_bits : the narrowest element for which there are masked loads and stores. Partial vectors of
        narrower elements go through a buffer: AVX2 masks elements of 32 bits (VMASKMOVPS) and none below.
    emulated : the instructions are written as ordinary LLVM operations (`micro.units.emulate`), so that the
        row's kernels run, slowly, on a CPU without them.
    """

    name: str
    arch: str
    features: tuple[str, ...]
    vector_bits: int
    vector_registers: int
    fma_per_cycle: int
    fma_latency: int
    loads_per_cycle: int
    edge: Edge
    broadcast: Broadcast
    tiles: tuple[TileFma, ...]
    source: str
    folds_loads: bool = False
    fused: bool = True
    half: bool = True
    scalable: bool = False
    least_masked_bits: int = 8
    emulated: bool = False

    def __post_init__(self) -> None:
        for tile in self.tiles:
            if not tile.has_accumulators and tile.m * tile.n * tile.acc.bits > self.vector_bits:
                raise InvalidChoice(
                    name=f"{self.name} tile n", found=tile.n, allowed=f"what fits {self.vector_bits} bits"
                )

    def lanes(self, dtype: DType) -> int:
        """Elements of one vector register."""
        return self.vector_bits // dtype.bits

    def tile(self, a: DType, b: DType | None = None) -> TileFma:
        """The multiply instruction for two element types: the one with most products a cycle.

        Operands that it takes only wider are widened when they are loaded or packed.

        Raises
        ------
        UnsupportedDtype : if the row has none.

        >>> AVX2.tile(BF16).a.name
        'f32'
        """
        b = a if b is None else b
        a, b = a.real, b.real
        able = [tile for tile in self.tiles if tile.takes(a, b)]
        if not able:
            supported = ", ".join(sorted({f"{tile.a} x {tile.b}" for tile in self.tiles}))
            raise UnsupportedDtype(dtype=f"{a} x {b} on {self.name}", supported=supported)
        return max(able, key=lambda tile: tile.products * self.rate(tile))

    def pair_tile(self, a: DType, b: DType) -> TileFma | None:
        """The instruction that adds two adjacent products of bfloats to each lane, if there is one.

        >>> AVX512.pair_tile(BF16, BF16).instruction, AVX2.pair_tile(BF16, BF16)
        ('vdpbf16ps', None)
        """
        fitting = (one for one in self.tiles if not one.is_matrix_engine and (one.k, one.kr) == (2, 2))
        return next((one for one in fitting if one.a == one.b == a == b == BF16), None)

    def rate(self, tile: TileFma) -> float:
        """Instructions of a kind that start each cycle.

        >>> AVX512.rate(AVX512.tile(F32)), AVX512.rate(AVX512.tile(I64))
        (2, 0.5)
        """
        return tile.per_cycle or self.fma_per_cycle

    def latency(self, tile: TileFma) -> int:
        """Cycles from one instruction to another that adds to the same accumulator."""
        return tile.latency or self.fma_latency

    def fuses(self, tile: TileFma) -> bool:
        """Whether products are accumulated as they are computed; else each takes a register and an add."""
        return self.fused and not tile.separate

    def registers(self, tile: TileFma) -> int:
        """Vector registers that hold the sums and operands of an instruction."""
        return tile.registers or self.vector_registers

    def multiplies_by_lane(self, tile: TileFma) -> bool:
        """Whether the instruction takes a lane of a register that holds several elements of A."""
        return self.broadcast is Broadcast.LANE and not tile.is_matrix_engine

    def words(self, tile: TileFma) -> int:
        """Operands of A in one vector register, each of which every lane gets: elements, or words of kr."""
        return self.vector_bits // (tile.a.bits * tile.kr)

    @property
    def streams(self) -> bool:
        """Whether machine code depends on the length of streaming vectors."""
        return not self.emulated and any(tile.streaming for tile in self.tiles)

    def edge_of(self, *dtypes: DType) -> Edge:
        """How partial vectors of some types are loaded and stored: VMASKMOV has none below 32 bits."""
        narrow = any(dtype.bits < self.least_masked_bits for dtype in dtypes)
        return Edge.SPILL if narrow else self.edge

    def generic(self) -> Isa:
        """The row whose tile products are LLVM's matrix intrinsic: none of its own instructions is left.

        >>> AVX512.generic().tile(BF16).instruction
        'matrix_multiply'
        """
        tiles = tuple(
            replace(tile, instruction=MATRIX_MULTIPLY)
            for tile in self.tiles
            if tile.instruction == MULTIPLY_ADD
        )
        return replace(self, name=f"{self.name}_generic", tiles=tiles)

    def limited(self, features: frozenset[str], vector_bits: int = 0, streaming_bits: int = 0) -> Isa:
        """The row with the instructions of one CPU: those whose feature it has, at its vector lengths.

        Parameters
        ----------
        vector_bits, streaming_bits : the CPU's lengths of scalable and of streaming vectors; 0 where it has
            none. The first matters to scalable rows.

        >>> [tile.n for tile in SVE.limited(frozenset({"sve"}), 512).tiles if tile.a == F32]
        [16]
        """
        width = vector_bits if self.scalable and vector_bits else self.vector_bits
        tiles = []
        for tile in self.tiles:
            lacks = tile.feature is not None and tile.feature not in features
            if lacks or (tile.streaming and not streaming_bits):
                continue
            if tile.streaming:
                tiles.append(tile.widened(streaming_bits))
            else:
                tiles.append(tile.widened(width) if self.scalable else tile)
        limited = replace(self, tiles=tuple(tiles), vector_bits=width)
        return self if limited == self else limited


def _vector_tiles(vector_bits: int, integer_registers: int = 0) -> tuple[TileFma, ...]:
    """One element of A times one vector of B, for every type of accumulator.

    Parameters
    ----------
    integer_registers : how many registers instructions on integers can name; 0 for all.
    """
    floats = tuple(
        TileFma(MULTIPLY_ADD, dtype, dtype, dtype, m=1, n=vector_bits // dtype.bits) for dtype in (F32, F64)
    )
    integers = tuple(
        TileFma(
            MULTIPLY_ADD,
            dtype,
            dtype,
            dtype,
            m=1,
            n=vector_bits // dtype.bits,
            per_cycle=per_cycle,
            latency=latency,
            separate=True,
            registers=integer_registers,
        )
        for dtype, per_cycle, latency in ((I32, 1, 10), (I64, 0.5, 12))
    )
    return floats + integers


def _dot_tiles(vector_bits: int, bf16: str | None, vnni: str) -> tuple[TileFma, ...]:
    """x86: sums of 2 or 4 adjacent products, with the LLVM features that bring them.

    PMADDWD is in every row (SSE2, AVX2, AVX512BW).
    """
    n = vector_bits // 32
    tiles = [TileFma("pmaddwd", I16, I16, I32, m=1, n=n, k=2, kr=2, per_cycle=1.5, latency=6, separate=True)]
    tiles += [
        TileFma("vpdpwssd", I16, I16, I32, m=1, n=n, k=2, kr=2, feature=vnni),
        TileFma("vpdpbusd", U8, I8, I32, m=1, n=n, k=4, kr=4, feature=vnni),
        # One more accumulator per vector of B takes off what the bias of A added.
        TileFma("vpdpbusd_swapped", I8, U8, I32, m=1, n=n, k=4, kr=4, feature=vnni),
        TileFma("vpdpbusd_biased", I8, I8, I32, m=1, n=n, k=4, kr=4, feature=vnni, biased=True),
    ]
    if bf16:
        tiles.append(TileFma("vdpbf16ps", BF16, BF16, F32, m=1, n=n, k=2, kr=2, feature=bf16, per_cycle=2))
    return tuple(tiles)


def _amx(instruction: str, a: DType, b: DType, acc: DType, feature: str) -> TileFma:
    """A product of tiles of AMX: a grid of 2×2 accumulators, the other four tiles hold operands.

    Source: Intel SDM vol. 2, TDPBF16PS, TDPFP16PS, TDPB[SU][SU]D; one in 16 cycles, latency 52: Intel 248966,
    Advanced Matrix Extensions.
    """
    k = 64 // a.size
    return TileFma(
        instruction,
        a,
        b,
        acc,
        m=16,
        n=16,
        k=k,
        kr=4 // a.size,
        kr_a=k,
        feature=feature,
        per_cycle=1 / 16,
        latency=52,
        accumulators=4,
    )


_AMX_TILES = (
    _amx("tdpbf16ps", BF16, BF16, F32, "amx-bf16"),
    _amx("tdpfp16ps", F16, F16, F32, "amx-fp16"),
    _amx("tdpbssd", I8, I8, I32, "amx-int8"),
    _amx("tdpbsud", I8, U8, I32, "amx-int8"),
    _amx("tdpbusd", U8, I8, I32, "amx-int8"),
    _amx("tdpbuud", U8, U8, I32, "amx-int8"),
)


def _mma(instruction: str, a: DType, b: DType, acc: DType, n: int, k: int) -> TileFma:
    """An outer product of POWER10: eight accumulators, two products a cycle, four cycles on one of them.

    Source: Power ISA 3.1 book I, VSX Matrix-Multiply Assist; Kuzma et al. 2023, §3.2.
    """
    return TileFma(
        instruction, a, b, acc, m=4, n=n, k=k, kr=k, feature="mma", per_cycle=2, latency=4, accumulators=8
    )


_MMA_TILES = (
    _mma("xvf32gerpp", F32, F32, F32, 4, 1),
    _mma("xvf64gerpp", F64, F64, F64, 2, 1),
    _mma("xvbf16ger2pp", BF16, BF16, F32, 4, 2),
    _mma("xvf16ger2pp", F16, F16, F32, 4, 2),
    _mma("xvi16ger2pp", I16, I16, I32, 4, 2),
    # Of a signed and an unsigned operand; the unit makes the others from them.
    _mma("xvi8ger4pp", I8, U8, I32, 4, 4),
    _mma("xvi8ger4pp", U8, I8, I32, 4, 4),
    _mma("xvi8ger4pp", U8, U8, I32, 4, 4),
    _mma("xvi8ger4pp", I8, I8, I32, 4, 4),
    _mma("xvi4ger8pp", I4X2, I4X2, I32, 4, 8),
)


def _arm_dot(
    instruction: str, a: DType, b: DType, acc: DType, feature: str, *, kr: int = 4, per_cycle: float = 4
) -> TileFma:
    """Sums of kr adjacent products in each lane of 32 bits, four of them in 128 bits.

    Source: Arm ARM DDI 0487, §C7.2 and §C8.2, SDOT, UDOT, USDOT, BFDOT, FMLAL; width and latency: LLVM's
    models of the Neoverse V2, whose source is its software optimisation guide (109898), and for SVE V1.
    """
    latency = {BF16: 5, F16: 4}.get(a, 3)
    return TileFma(
        instruction, a, b, acc, m=1, n=4, k=kr, kr=kr, feature=feature, per_cycle=per_cycle, latency=latency
    )


def _arm_square(
    instruction: str, a: DType, b: DType, acc: DType, feature: str, *, k: int = 8, per_cycle: float = 4
) -> TileFma:
    """A product of 2×k by k×2 in each 128 bits.

    Source: Arm ARM DDI 0487, §C7.2 and §C8.2, SMMLA, UMMLA, USMMLA, BFMMLA; width and latency as `_arm_dot`.
    """
    latency = 6 if a == BF16 else 3
    return TileFma(
        instruction, a, b, acc, m=2, n=2, k=k, kr=k, feature=feature, per_cycle=per_cycle, latency=latency
    )


_NEON_TILES = (
    # Before the multiply-adds, which do as many products a cycle of operands twice the size.
    _arm_dot("fmlal", F16, F16, F32, "fp16fml", kr=1),
    _arm_dot("sdot", I8, I8, I32, "dotprod"),
    _arm_dot("udot", U8, U8, I32, "dotprod"),
    _arm_dot("usdot", U8, I8, I32, "i8mm"),
    _arm_dot("usdot", I8, U8, I32, "i8mm"),
    _arm_dot("bfdot", BF16, BF16, F32, "bf16", kr=2),
    _arm_square("smmla", I8, I8, I32, "i8mm"),
    _arm_square("ummla", U8, U8, I32, "i8mm"),
    _arm_square("usmmla", U8, I8, I32, "i8mm"),
    _arm_square("usmmla", I8, U8, I32, "i8mm"),
    _arm_square("bfmmla", BF16, BF16, F32, "bf16", k=4),
)


def _outer(
    instruction: str, a: DType, b: DType, acc: DType, *, per_cycle: float = 0.5, feature: str = "sme"
) -> TileFma:
    """An outer product of streaming vectors into a tile of ZA, which has as many as acc has bytes.

    Source: Arm ARM DDI 0487, §C8.2 FMOPA, BFMOPA, SMOPA, UMOPA, SUMOPA, USMOPA; width and latency on the
    Apple M4: Remke and Breuer, Hello SME!, SC24 workshops (2009 GFLOPS of float32, as many of 16-bit floats,
    503 of float64, 4017 of int8; four independent products).
    """
    lanes, kr = 128 // acc.bits, acc.size // a.size
    return TileFma(
        instruction,
        a,
        b,
        acc,
        m=lanes,
        n=lanes,
        k=kr,
        kr=kr,
        feature=feature,
        per_cycle=per_cycle,
        latency=4,
        accumulators=acc.size,
        streaming=True,
    )


_SME_TILES = (
    # Those of 16-bit floats first: float32 does as many products a cycle of operands twice the size.
    _outer("fmopa", F16, F16, F32),
    _outer("bfmopa", BF16, BF16, F32),
    _outer("fmopa", F32, F32, F32, per_cycle=1),
    _outer("fmopa", F64, F64, F64, per_cycle=1, feature="sme-f64f64"),
    _outer("smopa", I8, I8, I32),
    _outer("umopa", U8, U8, I32),
    _outer("sumopa", I8, U8, I32),
    _outer("usmopa", U8, I8, I32),
)

_SVE_TILES = (
    _arm_dot("fmlalb", F16, F16, F32, "sve2", kr=2, per_cycle=1),
    *(replace(tile, feature="sve") for tile in _vector_tiles(128)),
    _arm_dot("sdot", I8, I8, I32, "sve", per_cycle=2),
    _arm_dot("udot", U8, U8, I32, "sve", per_cycle=2),
    _arm_dot("usdot", U8, I8, I32, "i8mm", per_cycle=2),
    _arm_dot("usdot", I8, U8, I32, "i8mm", per_cycle=2),
    _arm_dot("bfdot", BF16, BF16, F32, "bf16", kr=2, per_cycle=2),
    _arm_square("smmla", I8, I8, I32, "i8mm", per_cycle=2),
    _arm_square("ummla", U8, U8, I32, "i8mm", per_cycle=2),
    _arm_square("usmmla", U8, I8, I32, "i8mm", per_cycle=2),
    _arm_square("usmmla", I8, U8, I32, "i8mm", per_cycle=2),
    _arm_square("bfmmla", BF16, BF16, F32, "bf16", k=4, per_cycle=2),
)

AVX512 = Isa(
    name="avx512",
    arch=X86_64.name,
    features=("avx", "avx2", "f16c", "fma", "avx512f", "avx512bw", "avx512vl", "avx512dq"),
    vector_bits=512,
    vector_registers=32,
    fma_per_cycle=2,
    fma_latency=4,
    loads_per_cycle=2,
    edge=Edge.MASK,
    broadcast=Broadcast.MEMORY,
    tiles=_vector_tiles(512) + _dot_tiles(512, "avx512bf16", "avx512vnni") + _AMX_TILES,
    source="Intel SDM vol. 1 ch. 15; latency and width: Zen 4/5 and Skylake-SP optimisation guides",
    folds_loads=True,
)

AVX2 = Isa(
    name="avx2",
    arch=X86_64.name,
    features=("avx", "avx2", "f16c", "fma"),
    vector_bits=256,
    vector_registers=16,
    fma_per_cycle=2,
    fma_latency=5,
    loads_per_cycle=2,
    edge=Edge.MASK,
    broadcast=Broadcast.MEMORY,
    tiles=_vector_tiles(256) + _dot_tiles(256, None, "avxvnni"),
    source="Intel SDM vol. 1 ch. 14 (VMASKMOV: 14.6.5); latency: Haswell 5, Skylake and Zen 4",
    folds_loads=True,
    least_masked_bits=32,
)

NEON = Isa(
    name="neon",
    arch=AARCH64.name,
    features=("neon",),
    vector_bits=128,
    vector_registers=32,
    fma_per_cycle=4,
    fma_latency=4,
    loads_per_cycle=3,
    edge=Edge.SPILL,
    broadcast=Broadcast.LANE,
    tiles=_NEON_TILES + _vector_tiles(128) + _SME_TILES,
    source="Arm ARM DDI 0487 §C7 FMLA (by element); width and latency: Neoverse V2 optimisation guide",
)

SVE = Isa(
    name="sve",
    arch=AARCH64.name,
    features=("neon", "sve"),
    vector_bits=128,
    vector_registers=32,
    fma_per_cycle=2,
    fma_latency=9,
    loads_per_cycle=2,
    edge=Edge.MASK,
    broadcast=Broadcast.MEMORY,
    tiles=_SVE_TILES,
    source="Arm ARM DDI 0487 §C8.2 FMLA (vectors), LD1RW; width and latency: A64FX Microarchitecture Manual; "
    "the Neoverse V1 has 2 of latency 4 at 256 bits (its software optimisation guide), as much as its Neon",
    scalable=True,
)

VSX = Isa(
    name="vsx",
    arch=POWERPC64LE.name,
    features=("power9-vector",),
    vector_bits=128,
    vector_registers=64,
    fma_per_cycle=4,
    fma_latency=7,
    loads_per_cycle=2,
    edge=Edge.SPILL,
    broadcast=Broadcast.MEMORY,
    tiles=_vector_tiles(128, integer_registers=32) + _MMA_TILES,  # VMULUWM, VADDUWM: VSR 32 to 63
    source="Power ISA 3.0B book I ch. 7 (xvmaddasp, lxvwsx); latency 7 and 2 loads of 128 bits a cycle: "
    "POWER9 Processor User's Manual and LLVM's PPCScheduleP9, PPCScheduleP10; 4 FMAs a cycle are those of "
    "half a POWER10 core (Starke et al., IEEE Micro 41(2), 2021), the POWER9 has 2",
)

RVV128 = Isa(
    name="rvv128",
    arch=RISCV64.name,
    features=("m", "v"),
    vector_bits=128,
    vector_registers=32,
    fma_per_cycle=2,
    fma_latency=4,
    loads_per_cycle=2,
    edge=Edge.SPILL,
    broadcast=Broadcast.SCALAR,
    tiles=_vector_tiles(128),
    source="RISC-V V 1.0 §13.6 (vfmacc.vf), VLEN of 128 or more; width and latency are an estimate for "
    "out-of-order cores with two vector pipes",
    half=False,  # Zfhmin and Zvfhmin are not part of V
)

GENERIC128 = Isa(
    name="generic128",
    arch="",
    features=(),
    vector_bits=128,
    vector_registers=16,
    fma_per_cycle=1,
    fma_latency=8,
    loads_per_cycle=1,
    edge=Edge.SPILL,
    broadcast=Broadcast.MEMORY,
    tiles=_vector_tiles(128),
    source="x86-64 psABI baseline (SSE2): MULPS then ADDPS, latency 4 + 4; the floor of every 64-bit target",
    folds_loads=True,
    fused=False,
    half=False,
)

#: All rows; of those that are equally fast on a CPU (`best_isa`), earlier ones are better.
ISAS: tuple[Isa, ...] = (AVX512, AVX2, NEON, SVE, VSX, RVV128, GENERIC128)


def find_isa(name: str) -> Isa:
    """The row of a name; `UnknownIsa` lists the rows.

    >>> find_isa("avx2").vector_bits
    256
    """
    for isa in ISAS:
        if isa.name == name:
            return isa
    raise UnknownIsa(found=shown(name), known=", ".join(isa.name for isa in ISAS))


def usable_isas(arch: str, features: frozenset[str]) -> tuple[Isa, ...]:
    """The rows a CPU can run, best first, from its architecture and LLVM features."""
    return tuple(
        isa for isa in ISAS if isa.arch in ("", arch) and all(feature in features for feature in isa.features)
    )


def best_isa(arch: str, features: frozenset[str], vector_bits: int = 0) -> Isa:
    """The row with the highest multiply rate among those a CPU can run.

    Parameters
    ----------
    vector_bits : its length of scalable vectors; 0 if it has none or the length is unknown.

    >>> best_isa("aarch64", frozenset({"neon", "sve"}), 256).name
    'neon'
    >>> best_isa("aarch64", frozenset({"neon", "sve"}), 512).name
    'sve'
    """
    return max(
        usable_isas(arch, features),
        key=lambda isa: isa.fma_per_cycle * (vector_bits if isa.scalable else isa.vector_bits),
    )
