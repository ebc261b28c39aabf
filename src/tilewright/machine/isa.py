"""Instruction-set rows: their multiply instructions and the limits on register tiles."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import get_args

from tilewright.errors import InvalidChoice, UnsupportedDtype
from tilewright.machine.cores import Core
from tilewright.records import dataclass
from tilewright.spec.dtype import BF16, DType, accumulator
from tilewright.typing import LoweringName


class Lowering(Enum):
    """Code generator of a tile product.

    TARGET: this package, by the row's multiply instructions.
    GENERIC: LLVM, from its matrix intrinsic; for comparison.
    """

    TARGET, GENERIC = get_args(LoweringName)


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


#: Sums that depend on each other, at most. The error of a chain grows with its length; 256 is the shortest
#: block of the BLAS libraries, and closing a chain costs some cycles (docs/decisions/048-chains-of-sums.md).
SUMS_OF_A_CHAIN = 256

#: A step of the depth with at least so many multiply-adds has room for prefetches of B.
FETCHING_FMAS = 8


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
    chain : sums of floats that depend on each other before they join a total, at most.
    joins : depths whose products the instruction sums before they reach the accumulator: in kr sums side by
        side, each of every kr-th depth and beginning with zero, which are then added to each other. 0: every
        product is added to the accumulator directly.
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
    chain: int = SUMS_OF_A_CHAIN
    joins: int = 0

    def __post_init__(self) -> None:
        for kr in (self.kr, self.interleave_a):
            if self.k % kr:
                raise InvalidChoice(name="kr", found=kr, allowed=f"divisors of k = {self.k}")

    @property
    def interleave_a(self) -> int:
        """Consecutive depths of one row of A stored together in a packed panel."""
        return self.kr_a or self.kr

    @property
    def sum_depths(self) -> int:
        """Depths that are added one after the other before their sum joins those before; 0 if sums are exact.

        `chain` sums, of which each adds the products of kr depths at once.
        """
        return 0 if self.acc.is_integer else self.chain * self.kr

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

    def takes(self, a: DType, b: DType, sums: DType | None = None) -> bool:
        """Return whether operands of these types, widened if needed, keep their values and type of sums."""
        return self.a.holds(a) and self.b.holds(b) and self.acc == (sums or accumulator(a, b))


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
    fma_per_cycle : FMAs that start each cycle on common cores of the row; those of the core in the row of a
        machine (`on_core`).
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
    issue_per_cycle : instructions that start each cycle, of the core in the row of a machine (`on_core`); 0
        if unknown.
    emulated : the instructions are written as ordinary LLVM operations (`micro.units.emulate`), so that the
        row's kernels run, slowly, on a CPU without them.
    halves : an FMA of half the width takes half the time, on cores that compute wide vectors in two passes
        (`on_core`).
    """

    name: str
    arch: str
    features: tuple[str, ...]
    vector_bits: int
    vector_registers: int
    fma_per_cycle: float
    fma_latency: int
    loads_per_cycle: float
    edge: Edge
    broadcast: Broadcast
    tiles: tuple[TileFma, ...]
    source: str
    folds_loads: bool = False
    fused: bool = True
    half: bool = True
    scalable: bool = False
    least_masked_bits: int = 8
    issue_per_cycle: int = 0
    emulated: bool = False
    halves: bool = False

    def __post_init__(self) -> None:
        for tile in self.tiles:
            if not tile.has_accumulators and tile.m * tile.n * tile.acc.bits > self.vector_bits:
                raise InvalidChoice(
                    name=f"{self.name} tile n", found=tile.n, allowed=f"what fits {self.vector_bits} bits"
                )

    def fetches(self, fmas: int) -> bool:
        """Whether a step of the depth with so many multiply-adds has room to prefetch a row of B in place."""
        return self.folds_loads and fmas >= FETCHING_FMAS

    def lanes(self, dtype: DType) -> int:
        """Elements of one vector register."""
        return self.vector_bits // dtype.bits

    def tile(self, a: DType, b: DType | None = None, sums: DType | None = None) -> TileFma:
        """The multiply instruction for two element types: the one with most products a cycle.

        Operands that it takes only wider are widened when loaded or packed. Sums are of `sums`, or else of
        the type that follows from the operands (`accumulator`).

        Raises
        ------
        UnsupportedDtype : if the row has none.

        >>> AVX2.tile(BF16).a.name
        'f32'
        >>> AVX2.tile(BF16, sums=F64).a.name
        'f64'
        """
        b = a if b is None else b
        a, b = a.real, b.real
        able = [tile for tile in self.tiles if tile.takes(a, b, sums)]
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

    def row_tile(self, tile: TileFma) -> TileFma | None:
        """The instruction of few rows: the same, or beside an engine vectors that add in its order; or None.

        That is possible for bfloat16, whose words a shift and a mask take apart, where the order is known
        (`TileFma.joins`).

        >>> amx = AVX512.tile(BF16)
        >>> tile = AVX512.row_tile(amx)
        >>> amx.instruction, tile.instruction, tile.m, tile.n, tile.k, tile.joins
        ('tdpbf16ps', 'tdpbf16ps_rows', 1, 16, 2, 32)
        """
        if not tile.is_matrix_engine:
            return tile
        if not tile.joins or tile.a != BF16:
            return None
        return TileFma(
            *(f"{tile.instruction}_rows", tile.a, tile.b, tile.acc),
            m=1,
            n=self.lanes(tile.acc),
            k=tile.kr,
            kr=tile.kr,
            chain=tile.chain,
            joins=tile.joins,
        )

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

    def on_core(self, core: Core) -> Isa:
        """The row with the rates and the latency of a core; of rows without FMAs it says nothing.

        Instructions that the row gives a rate of their own keep its ratio to that of the FMA, units with
        accumulators of their own their rate.

        >>> from tilewright.machine.core_rows import find_core
        >>> zen4 = AVX512.on_core(find_core("znver4"))
        >>> zen4.fma_per_cycle, zen4.loads_per_cycle, zen4.rate(zen4.tile(I64))
        (1, 1, 0.25)
        >>> zen4.halves, AVX512.on_core(find_core("znver5")).halves
        (True, False)
        """
        rates = core.rates(self.vector_bits) if self.fused else None
        if rates is None:
            return self
        half = core.rates(self.vector_bits // 2)
        share = rates.fmas / self.fma_per_cycle
        tiles = tuple(
            tile if tile.has_accumulators else replace(tile, per_cycle=share * tile.per_cycle)
            for tile in self.tiles
        )
        return replace(
            self,
            fma_per_cycle=rates.fmas,
            fma_latency=core.fma_latency or self.fma_latency,
            loads_per_cycle=rates.loads,
            issue_per_cycle=core.issue_per_cycle,
            tiles=tiles,
            halves=not self.scalable and half is not None and half.fmas >= 2 * rates.fmas,
        )

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
