"""The instruction sets: one row each, best first for every architecture."""

from __future__ import annotations

from dataclasses import replace

from tilewright.errors import UnknownIsa, shown
from tilewright.machine.arch import AARCH64, POWERPC64LE, RISCV64, X86_64
from tilewright.machine.isa import MULTIPLY_ADD, SUMS_OF_A_CHAIN, Broadcast, Edge, Isa, TileFma
from tilewright.registered import ROWS, registered, registered_places
from tilewright.spec.dtype import BF16, F16, F32, F64, I4X2, I8, I16, I32, I64, U8, DType


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
    Advanced Matrix Extensions. Reading the tiles of sums takes 140 ns, as long as five steps, and operands of
    8 or 11 bits make far larger errors than a long chain.
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
        chain=4 * SUMS_OF_A_CHAIN,
        joins=0 if acc.is_integer else k,
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
    row: Isa | None = registered(ROWS, name, Isa)
    if row is not None:
        return row
    known = (*(isa.name for isa in ISAS), *registered_places(ROWS))
    raise UnknownIsa(found=shown(name), known=", ".join(known))


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
