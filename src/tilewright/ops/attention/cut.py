"""Analytic model of fused attention: its register tile, and blocks of queries and keys from the caches."""

from __future__ import annotations

from tilewright.errors import BlockNotMultiple, InvalidSize
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import machine_tile
from tilewright.ops.attention.problem import Attention
from tilewright.records import dataclass

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


def largest_b3(l1: int, value_dim: int, mr: int, size: int = 4) -> int:
    """The most values that Fu et al. 2024 (5) admits, a multiple of `DEPTH_UNIT`; at least as many.

    The b3×d block of V serves every row tile, of which the mr×b3 scores are read and the mr×d results kept:
    b3·d + mr·b3 + mr·d < L1 solved for b3: b3 < (L1 - mr·d) / (d + mr).

    >>> largest_b3(64 << 10, value_dim=64, mr=5)
    224
    """
    return _below((l1 // size - mr * value_dim) / (value_dim + mr), DEPTH_UNIT)


def _below(bound: float, unit: int) -> int:
    """The largest multiple of unit below a bound, at least one unit."""
    return max(1, -(-int(bound) // unit) - 1 if bound == int(bound) else int(bound) // unit) * unit


def choose_attention(problem: Attention, machine: Machine) -> AttentionBlocking:
    """The blocking of attention of any length on a machine.

    The register tile is that of products, which pack rows of A in panels; that of Fu et al. 2024, §5.2.1,
    reads 14 rows in place on AVX-512, and was 25 % slower.

    The paper keeps the b1×b2 scores in L2: (3) b1·d + d·nr + b1·nr < L1, (4) b1·d + d·b2 + b1·b2 < L2.
    Here the scores of one row tile, a strip of mr×b2, are weighted and multiplied with V before the next
    tile is begun, so they stay in L1, and the whole block of Kᵀ is packed once for b1 rows. Inequalities (3)
    and (4) become, in bytes:

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
    tile = machine_tile(machine, instruction)
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
