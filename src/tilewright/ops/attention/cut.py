"""Analytic model of fused attention: its register tile, and blocks of queries and keys from the caches."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.errors import BlockNotMultiple, InvalidSize, NoRegisterTile
from tilewright.machine.isa import Broadcast, Isa, TileFma
from tilewright.machine.machine import Cache, Machine
from tilewright.macro.blocking import register_tile
from tilewright.macro.cost import RegisterTile
from tilewright.ops.attention.problem import Attention
from tilewright.spec.dtype import DType

#: Registers that Fu et al. 2024 (doi:10.1145/3650200.3656620), §5.2.1, reserve for what is fused into the
#: score tile: the scale, a vector of the mask and the row maximum.
FUSED_REGISTERS = 3

#: A tile of whole cache lines may have this share less of the best CMR: V is read in place, and a
#: tile that ends inside a line leaves the rest of it to be read again by the next one.
LINE_SLACK = 0.25

#: Part of L1 that the strip of scores of one row tile may take; panels and rows stream through the rest.
STRIP_L1_PART = 2

#: Part of L2 that a block of keys and values may take, and a block of queries and results another: what
#: comes next, and the operands on their way through, take the rest.
BLOCKS_L2_PART = 3

#: Queries in a block, at least: packing one key costs about as much as multiplying it with three queries
#: (a transposed element 0.2 cycles, its 4·b1 operations 64 a cycle), less than two percent of 192.
LEAST_QUERIES = 192

#: b3 is a multiple of so many keys.
DEPTH_UNIT = 32


@dataclass(frozen=True)
class AttentionBlocking:
    """How attention is cut: register tile mr×nr with interleave kr, b1 queries, b2 keys, b3 values at a time.

    Raises
    ------
    InvalidSize, BlockNotMultiple

    Examples
    --------
    >>> AttentionBlocking(mr=5, nr=16, kr=1, b1=160, b2=160, b3=128).b2
    160
    """

    mr: int
    nr: int
    kr: int
    b1: int
    b2: int
    b3: int

    def __post_init__(self) -> None:
        for name in ("mr", "nr", "kr", "b1", "b2", "b3"):
            if getattr(self, name) <= 0:
                raise InvalidSize(name=f"blocking {name}", found=getattr(self, name), required="positive")
        for block, unit in (("b1", "mr"), ("b2", "nr"), ("b2", "kr"), ("b3", "kr")):
            if getattr(self, block) % getattr(self, unit):
                raise BlockNotMultiple(
                    block=block, size=getattr(self, block), of=unit, unit=getattr(self, unit)
                )


def scores_in_l1(blocking: AttentionBlocking, head_dim: int) -> int:
    """Elements reused by loops L4 and L5: Fu et al. 2024 (3), b1·d + d·nr + b1·nr < L1.

    The b1×d block of Q serves every panel of Kᵀ, the d×nr panel every row tile, and the b1×nr scores are
    written.
    """
    return blocking.b1 * head_dim + head_dim * blocking.nr + blocking.b1 * blocking.nr


def block_in_l2(blocking: AttentionBlocking, head_dim: int) -> int:
    """Elements of one iteration of loop L3: Fu et al. 2024 (4), b1·d + d·b2 + b1·b2 < L2.

    The block of Q is multiplied with a block of Kᵀ; the b1×b2 scores are kept for the second product.
    """
    return blocking.b1 * head_dim + head_dim * blocking.b2 + blocking.b1 * blocking.b2


def values_in_l1(blocking: AttentionBlocking, value_dim: int) -> int:
    """Elements reused by loop L5': Fu et al. 2024 (5), b3·d + mr·b3 + mr·d < L1.

    The b3×d block of V serves every row tile, of which the mr×b3 scores are read and the mr×d results kept.
    """
    return blocking.b3 * value_dim + blocking.mr * blocking.b3 + blocking.mr * value_dim


def admits(l1: int, l2: int, blocking: AttentionBlocking, head_dim: int, size: int = 4) -> bool:
    """Return whether caches of these sizes in bytes satisfy Fu et al. 2024 (3)-(5), for `size`-byte elements.

    Examples
    --------
    >>> blocking = AttentionBlocking(mr=5, nr=16, kr=1, b1=160, b2=160, b3=128)
    >>> admits(64 << 10, 512 << 10, blocking, head_dim=64)
    True
    """
    return (
        scores_in_l1(blocking, head_dim) * size < l1
        and block_in_l2(blocking, head_dim) * size < l2
        and values_in_l1(blocking, head_dim) * size < l1
    )


def largest_b1(l1: int, head_dim: int, tile: tuple[int, int], size: int = 4) -> int:
    """The most queries that Fu et al. 2024 (3) admits, in whole tiles of (mr, nr); at least one tile.

    b1·d + d·nr + b1·nr < L1 solved for b1: b1 < (L1 - d·nr) / (d + nr).

    >>> largest_b1(64 << 10, head_dim=64, tile=(5, 16))
    190
    """
    mr, nr = tile
    return _below((l1 // size - head_dim * nr) / (head_dim + nr), mr)


def largest_b2(l2: int, head_dim: int, b1: int, nr: int, size: int = 4) -> int:
    """The most keys that Fu et al. 2024 (4) admits, in whole panels of nr; at least one.

    b1·d + d·b2 + b1·b2 < L2 solved for b2: b2 < (L2 - b1·d) / (d + b1).

    >>> largest_b2(512 << 10, head_dim=64, b1=160, nr=16)
    528
    """
    return _below((l2 // size - b1 * head_dim) / (head_dim + b1), nr)


def largest_b3(l1: int, value_dim: int, mr: int, size: int = 4) -> int:
    """The most values that Fu et al. 2024 (5) admits, a multiple of `DEPTH_UNIT`; at least as many.

    b3·d + mr·b3 + mr·d < L1 solved for b3: b3 < (L1 - mr·d) / (d + mr).

    >>> largest_b3(64 << 10, value_dim=64, mr=5)
    224
    """
    return _below((l1 // size - mr * value_dim) / (value_dim + mr), DEPTH_UNIT)


def _below(bound: float, unit: int) -> int:
    """The largest multiple of unit below a bound, at least one unit."""
    return max(1, -(-int(bound) // unit) - 1 if bound == int(bound) else int(bound) // unit) * unit


def _tile(isa: Isa, instruction: TileFma, mr: int, across: int, fused: int) -> RegisterTile:
    """A tile of mr rows read in place, `across` vectors wide, with `fused` further registers."""
    match isa.broadcast:
        case Broadcast.LANE:  # a register holds several depths of one row
            a_registers, a_loads = mr, -(-mr * instruction.a.size * instruction.kr * 8 // isa.vector_bits)
        case Broadcast.MEMORY:
            a_registers, a_loads = 1, mr
        case Broadcast.SCALAR:
            a_registers, a_loads = 0, mr
    product = 0 if isa.fuses(instruction) else 1
    accumulators = mr * across
    return RegisterTile(
        mr=mr,
        nr=across * instruction.n,
        accumulators=accumulators,
        registers=accumulators + across + a_registers + product + fused,
        loads_per_depth=a_loads + across,
    )


def attention_tiles(isa: Isa, instruction: TileFma, fused: int = 0) -> tuple[RegisterTile, ...]:
    """Every mr×nr tile of rows of Q, read in place, times a panel of Kᵀ that fits the registers.

    With v = nr/lanes vectors across, Fu et al. 2024, §5.2.1, count mr·v accumulators + v of K + those of Q
    + `fused` ≤ registers. Of Q there are mr where the FMA takes a lane, since a register holds several depths
    of ONE row; one where an element is broadcast from memory; none where the FMA takes a scalar. The
    accumulators hide the latency, and loads do not bound the multiply unit, as in `blocking.register_tiles`.
    """
    per_cycle = isa.rate(instruction)
    latency = isa.latency(instruction)
    tiles = [
        _tile(isa, instruction, mr, across, fused)
        for across in range(1, isa.vector_registers)
        for mr in range(1, isa.vector_registers // across + 1)
    ]
    return tuple(
        tile
        for tile in tiles
        if tile.registers <= isa.vector_registers
        and tile.accumulators >= per_cycle * latency
        and tile.loads_per_depth * per_cycle <= tile.accumulators * isa.loads_per_cycle
    )


def attention_tile(
    isa: Isa, instruction: TileFma, cache: Cache, fused: int = 0, stored: DType | None = None
) -> RegisterTile:
    """The register tile of attention: the best CMR = 2·mr·nr/(mr+nr) among tiles of whole cache lines.

    Fu et al. 2024 (7) ask for nr of whole vectors, (8) for the largest CMR. By these two alone Neon would
    have 9×8 (CMR 8.5) rather than the paper's 5×16 (7.6). The paper does not say what decides; the difference
    is that V is not packed: a tile reads nr elements of a row of V, 16 of f32 are a cache line, and of 8 the
    other half is fetched again by the next tile, after the whole depth. So tiles of whole lines of the
    `stored` type come first where they have all but `LINE_SLACK` of the best CMR. A matrix unit has its own
    tile, see `blocking.register_tile`.

    Parameters
    ----------
    fused : registers of the operations fused into the tile; `FUSED_REGISTERS` in the paper.
    stored : the type of V in memory; that of the instruction by default.

    Raises
    ------
    NoRegisterTile : if nothing fits.

    Examples
    --------
    >>> from tilewright.machine.isa import AVX512, NEON
    >>> from tilewright.spec.dtype import F32
    >>> tile = attention_tile(NEON, NEON.tile(F32), Cache(64 << 10, ways=4, line=64), FUSED_REGISTERS)
    >>> tile.mr, tile.nr, tile.registers
    (5, 16, 32)
    >>> tile = attention_tile(AVX512, AVX512.tile(F32), Cache(48 << 10, ways=12, line=64))
    >>> tile.mr, tile.nr
    (14, 32)
    """
    if instruction.is_matrix_engine or instruction.has_accumulators:
        return register_tile(isa, instruction, cache.ways)
    tiles = attention_tiles(isa, instruction, fused)
    if not tiles:
        lanes = isa.lanes(instruction.acc)
        raise NoRegisterTile(registers=isa.vector_registers, lanes=lanes, dtype=instruction.a, isa=isa.name)
    size = (stored or instruction.b).size
    best = max(tile.cmr for tile in tiles)
    lines = [
        tile for tile in tiles if tile.nr * size % cache.line == 0 and tile.cmr >= (1 - LINE_SLACK) * best
    ]
    return max(lines or tiles, key=lambda tile: (tile.cmr, -tile.loads_per_depth))


def choose_attention(problem: Attention, machine: Machine) -> AttentionBlocking:
    """The blocking of attention of any length on a machine.

    The register tile is that of products, which pack rows of A in panels; the paper's (`attention_tile`)
    reads 14 rows in place on AVX-512, and was 25 % slower.

    The paper keeps the b1×b2 scores in L2. Here the scores of one row tile, a strip of mr×b2, are weighted
    and multiplied with V before the next tile is begun, so they stay in L1, and the whole block of Kᵀ is
    packed once for b1 rows. Inequalities (3) and (4) become, in bytes:

    - b2: a strip takes a part of L1, (3') mr·b2·acc < L1 / `STRIP_L1_PART`, and the block of keys and values
      a part of L2, (4') b2·(d + dv) < L2 / `BLOCKS_L2_PART`: every row tile goes past all of it;
    - b1: the rows of Q and the unfinished results take as large a part, (4'') b1·(d·q + dv·acc) <
      L2 / `BLOCKS_L2_PART`, but not more rows than `LEAST_QUERIES` asks for, so that short sequences
      still make several tasks;
    - b3: (5) as it is, and never more than b2.

    Examples
    --------
    >>> from tilewright.machine.catalog import find_machine
    >>> choose_attention(Attention(64), find_machine("znver5"))
    AttentionBlocking(mr=12, nr=32, kr=1, b1=192, b2=480, b3=128)
    """
    instruction = machine.isa.tile(problem.dtype)
    tile = register_tile(machine.isa, instruction, machine.l1.ways)
    acc, element = problem.acc.size, max(problem.dtype.size, instruction.b.size)
    part = machine.l2.size / BLOCKS_L2_PART
    strip = machine.l1.size / STRIP_L1_PART / (tile.mr * acc)
    keys = part / (element * (problem.head_dim + problem.value_dim))
    b2 = _below(min(strip, keys), tile.nr)
    rows = part / (problem.dtype.size * problem.head_dim + acc * problem.value_dim)
    wanted = -(-LEAST_QUERIES // tile.mr) * tile.mr
    b1 = min(wanted, _below(rows, tile.mr))
    b3 = min(b2, largest_b3(machine.l1.size, problem.value_dim, tile.mr, element))
    return AttentionBlocking(mr=tile.mr, nr=tile.nr, kr=instruction.kr, b1=b1, b2=b2, b3=b3)
