"""Instruction-set rows: what one multiply instruction computes, and what a tile may hold."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tilewright.errors import InvalidChoice, UnknownIsa, UnsupportedDtype
from tilewright.spec.dtype import F32, F64, DType


class Edge(Enum):
    """How a register tile narrower than its vectors is loaded and stored.

    MASK: masked vector loads and stores that never touch a masked-out byte.
    SPILL: through a small buffer, element by element; operands are packed at the edge.
    """

    MASK = "mask"
    SPILL = "spill"


class Broadcast(Enum):
    """How an element of A reaches every lane.

    MEMORY: a broadcasting load (one load per element, one register).
    LANE: the FMA takes a lane of a vector register (one vector load serves several elements).
    SCALAR: the FMA takes a scalar register (one scalar load per element, no vector register).
    """

    MEMORY = "memory"
    LANE = "lane"
    SCALAR = "scalar"


@dataclass(frozen=True)
class TileFma:
    """What ONE multiply-add instruction computes: acc[m, n] += a[m, k] · b[k, n].

    Attributes
    ----------
    a, b, acc : element types of the operands and of the accumulator.
    m, n, k : the instruction's own tile.
    kr : consecutive depths stored together in a packed panel.
    fused : one rounding for multiply and add.
    feature : LLVM feature beyond the row's own that the instruction needs.
    """

    a: DType
    b: DType
    acc: DType
    m: int
    n: int
    k: int
    kr: int
    fused: bool = True
    feature: str | None = None

    def __post_init__(self) -> None:
        if self.k % self.kr:
            raise InvalidChoice(name="kr", found=self.kr, allowed=f"divisors of k = {self.k}")


@dataclass(frozen=True)
class Isa:
    """One row: the vector unit as the models and the micro-kernels see it.

    Attributes
    ----------
    name : the name in kernel names and settings.
    arch : first part of the LLVM triple it belongs to.
    features : LLVM features that must be present, those that they imply included: a narrower row
        turns off what it does not list.
    vector_bits, vector_registers : size and number of architectural vector registers.
    fma_per_cycle, fma_latency : issue width and latency in cycles of the FMA on common cores;
        their product is how many independent accumulators keep the unit busy.
    loads_per_cycle : vector loads per cycle.
    edge : how partial vectors are loaded and stored.
    broadcast : how elements of A are spread.
    tiles : the multiply instructions, one per combination of types.
    source : the manual.
    folds_loads : arithmetic takes one operand from memory, so that it needs no register.
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

    def __post_init__(self) -> None:
        for tile in self.tiles:
            if tile.n * tile.acc.bits > self.vector_bits * tile.m:
                raise InvalidChoice(
                    name=f"{self.name} tile n", found=tile.n, allowed=f"what fits {self.vector_bits} bits"
                )

    def lanes(self, dtype: DType) -> int:
        """Elements of one vector register."""
        return self.vector_bits // dtype.bits

    def tile(self, dtype: DType) -> TileFma:
        """The multiply instruction for an element type.

        Raises
        ------
        UnsupportedDtype : if the row has none.
        """
        for tile in self.tiles:
            if tile.a == tile.b == dtype:
                return tile
        supported = ", ".join(sorted({str(tile.a) for tile in self.tiles}))
        raise UnsupportedDtype(dtype=f"{dtype} on {self.name}", supported=supported)


def _vector_tiles(vector_bits: int, *, fused: bool) -> tuple[TileFma, ...]:
    """Broadcast-FMA on one vector: 1 x lanes x 1 for each float type."""
    return tuple(
        TileFma(dtype, dtype, dtype, m=1, n=vector_bits // dtype.bits, k=1, kr=1, fused=fused)
        for dtype in (F32, F64)
    )


AVX512 = Isa(
    name="avx512",
    arch="x86_64",
    features=("avx", "avx2", "fma", "avx512f", "avx512vl", "avx512dq"),
    vector_bits=512,
    vector_registers=32,
    fma_per_cycle=2,
    fma_latency=4,
    loads_per_cycle=2,
    edge=Edge.MASK,
    broadcast=Broadcast.MEMORY,
    tiles=_vector_tiles(512, fused=True),
    source="Intel SDM vol. 1 ch. 15; latency and width: Zen 4/5 and Skylake-SP optimisation guides",
    folds_loads=True,
)

AVX2 = Isa(
    name="avx2",
    arch="x86_64",
    features=("avx", "avx2", "fma"),
    vector_bits=256,
    vector_registers=16,
    fma_per_cycle=2,
    fma_latency=5,
    loads_per_cycle=2,
    edge=Edge.MASK,
    broadcast=Broadcast.MEMORY,
    tiles=_vector_tiles(256, fused=True),
    source="Intel SDM vol. 1 ch. 14 (VMASKMOV: 14.6.5); latency: Haswell 5, Skylake and Zen 4",
    folds_loads=True,
)

NEON = Isa(
    name="neon",
    arch="aarch64",
    features=("neon",),
    vector_bits=128,
    vector_registers=32,
    fma_per_cycle=4,
    fma_latency=4,
    loads_per_cycle=3,
    edge=Edge.SPILL,
    broadcast=Broadcast.LANE,
    tiles=_vector_tiles(128, fused=True),
    source="Arm ARM DDI 0487 §C7 FMLA (by element); width and latency: Neoverse V2 optimisation guide",
)

VSX = Isa(
    name="vsx",
    arch="powerpc64le",
    features=("power9-vector",),
    vector_bits=128,
    vector_registers=64,
    fma_per_cycle=4,
    fma_latency=7,
    loads_per_cycle=2,
    edge=Edge.SPILL,
    broadcast=Broadcast.MEMORY,
    tiles=_vector_tiles(128, fused=True),
    source="Power ISA 3.0B book I ch. 7 (xvmaddasp, lxvwsx); latency 7 and 2 loads of 128 bits a cycle: "
    "POWER9 Processor User's Manual and LLVM's PPCScheduleP9, PPCScheduleP10; 4 FMAs a cycle are those of "
    "half a POWER10 core (Starke et al., IEEE Micro 41(2), 2021), the POWER9 has 2",
)

RVV128 = Isa(
    name="rvv128",
    arch="riscv64",
    features=("m", "v"),
    vector_bits=128,
    vector_registers=32,
    fma_per_cycle=2,
    fma_latency=4,
    loads_per_cycle=2,
    edge=Edge.SPILL,
    broadcast=Broadcast.SCALAR,
    tiles=_vector_tiles(128, fused=True),
    source="RISC-V V 1.0 §13.6 (vfmacc.vf), VLEN of 128 or more; width and latency are an estimate for "
    "out-of-order cores with two vector pipes",
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
    tiles=_vector_tiles(128, fused=False),
    source="x86-64 psABI baseline (SSE2): MULPS then ADDPS, latency 4 + 4; the floor of every 64-bit target",
    folds_loads=True,
)

#: All rows, best first: the first whose features a CPU has is the one it gets.
ISAS: tuple[Isa, ...] = (AVX512, AVX2, NEON, VSX, RVV128, GENERIC128)


def find_isa(name: str) -> Isa:
    """The row of a name; `UnknownIsa` lists the rows.

    >>> find_isa("avx2").vector_bits
    256
    """
    for isa in ISAS:
        if isa.name == name:
            return isa
    raise UnknownIsa(found=repr(name), known=", ".join(isa.name for isa in ISAS))


def usable_isas(arch: str, features: frozenset[str]) -> tuple[Isa, ...]:
    """The rows a CPU can run, best first, from its architecture and LLVM features."""
    return tuple(
        isa for isa in ISAS if isa.arch in ("", arch) and all(feature in features for feature in isa.features)
    )
