"""Analytic model of fused attention: register tile, blocks from the caches, and when queries are few."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from tilewright.errors import BlockNotMultiple, InvalidSize
from tilewright.machine.isa import TileFma
from tilewright.machine.machine import Machine
from tilewright.macro import cost
from tilewright.macro.blocking import machine_tile
from tilewright.macro.bounds import BlockBound, CutBounds, Occupant, Rule, bound_by, tile_bounds
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

#: Keys of one run. Merging a state costs what a few keys do, and a run of 1 MiB (of 128 elements of 16 bits)
#: takes 20 us at 50 GB/s, many times what starting a task costs.
SPLIT = 2048

#: Keys, then values, that are computed while as many of the others are fetched, so that requests never rest:
#: 8 KiB in the first cache. Measured on Zen 5, bf16 of 128 elements, four rows: blocks of 16 run at 0.83 of
#: the speed of a plain read, of 32 at 0.70, of 64 at 0.62, although larger ones take less time in the cache.
BLOCK = 16

#: Rows (queries times heads of a group) whose state a run keeps in L2 along with the keys.
MOST_ROWS = 64

#: Numbers in a row's state in addition to its unfinished results: maximum and sum.
STATE = 2


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
    limits = attention_limits(problem, machine, instruction, tile.mr)
    b2 = _below(min(limits.strip, limits.keys), tile.nr)
    b1 = min(-(-LEAST_QUERIES // tile.mr) * tile.mr, _below(limits.rows, tile.mr))
    b3 = min(b2, largest_b3(machine.l1.size, problem.value_dim, tile.mr, limits.element))
    return AttentionBlocking(mr=tile.mr, nr=tile.nr, kr=instruction.kr, b1=b1, b2=b2, b3=b3)


class AttentionLimits(NamedTuple):
    """The sizes that the rules of `choose_attention` allow: (3') and (4') of b2, (4'') of b1.

    `element` is the bytes of a key or value in a panel.
    """

    strip: float
    keys: float
    rows: float
    element: int


def attention_limits(problem: Attention, machine: Machine, instruction: TileFma, mr: int) -> AttentionLimits:
    """The rules of `choose_attention` with the numbers of a machine."""
    acc, element = problem.acc.size, max(problem.dtype.size, instruction.b.size)
    part = machine.l2.size / BLOCKS_L2_PART
    return AttentionLimits(
        strip=machine.l1.size / STRIP_L1_PART / (mr * acc),
        keys=part / (element * (problem.head_dim + problem.value_dim)),
        rows=part / (problem.dtype.size * problem.head_dim + acc * problem.value_dim),
        element=element,
    )


def bounds_of_attention(problem: Attention, machine: Machine, cut: AttentionBlocking) -> CutBounds:
    """The rules that fixed each size of attention's blocking."""
    instruction = machine.isa.tile(problem.dtype)
    limits = attention_limits(problem, machine, instruction, cut.mr)
    d, dv, size, acc = problem.head_dim, problem.value_dim, problem.dtype.size, problem.acc.size
    l1, l2, element = machine.l1.size, machine.l2.size, limits.element
    strip = Rule(
        f"scores of one row of tiles: mr · b2 bytes < L1 / {STRIP_L1_PART}",
        f"b2 < {l1:,} / {STRIP_L1_PART} / ({cut.mr} · {acc}) = {limits.strip:,.0f}",
        limits.strip,
    )
    keys = Rule(
        f"keys and values: b2 · (d + dv) bytes < L2 / {BLOCKS_L2_PART}",
        f"b2 < {l2:,} / {BLOCKS_L2_PART} / ({element} · ({d} + {dv})) = {limits.keys:,.0f}",
        limits.keys,
    )
    rows = Rule(
        f"rows of Q and unfinished results: b1 · (d + dv) bytes < L2 / {BLOCKS_L2_PART}",
        f"b1 < {l2:,} / {BLOCKS_L2_PART} / ({size} · {d} + {acc} · {dv}) = {limits.rows:,.0f}",
        limits.rows,
        binds=limits.rows <= LEAST_QUERIES,
    )
    enough = Rule(
        "no more than make packing keys cheap, so that short sequences make several tasks",
        f"b1 ≤ {LEAST_QUERIES} in whole tiles",
        LEAST_QUERIES,
        binds=limits.rows > LEAST_QUERIES,
    )
    most = largest_b3(l1, dv, cut.mr, element)
    values = Rule(
        "values of a tile's turn: b3 · d + mr · b3 + mr · d bytes < L1",
        f"b3 < ({l1 // element:,} - {cut.mr} · {dv}) / ({dv} + {cut.mr}) "
        f"= {(l1 // element - cut.mr * dv) / (dv + cut.mr):,.0f}",
        most,
        binds=most <= cut.b2,
    )
    blocks = (
        *tile_bounds(machine, instruction, cut.mr, cut.nr),
        BlockBound("b1", cut.b1, cut.mr, "queries of a block", (rows, enough)),
        BlockBound("b2", cut.b2, cut.nr, "keys of a block", bound_by((strip, keys), min(limits[:2]))),
        BlockBound("b3", cut.b3, DEPTH_UNIT, "values that meet a tile of scores at a time", (values,)),
    )
    occupants = (
        Occupant("L1", f"values of a turn: {cut.b3} × {dv}", element * cut.b3 * dv),
        Occupant("L1", f"scores of a turn: {cut.mr} × {cut.b3}", acc * cut.mr * cut.b3),
        Occupant("L1", f"results of a tile of rows: {cut.mr} × {dv}", acc * cut.mr * dv),
        Occupant("L2", f"keys and values: {cut.b2} × {d + dv}", element * cut.b2 * (d + dv)),
        Occupant("L2", f"queries and results: {cut.b1} × {d + dv}", cut.b1 * (size * d + acc * dv)),
    )
    return CutBounds(
        blocks, occupants, source="Fu et al. 2024, doi:10.1145/3650200.3656620, (3)-(5), for scores in L1"
    )


# --- few queries ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DecodeCut:
    """Blocking of attention with few queries.

    Attributes
    ----------
    split, block : keys of a task, and between steps of softmax.
    depth : elements of a packed query, whole vectors.
    wide : numbers of a row of unfinished results, whole vectors.
    """

    split: int
    block: int
    depth: int
    wide: int

    def splits(self, keys: int) -> int:
        """Runs of so many keys; one of none."""
        return max(1, -(-keys // self.split))

    def partials(self, batch: int, heads: int, queries: int, splits: int) -> int:
        """Elements of the states of a call."""
        return batch * heads * queries * splits * (self.wide + STATE)


def choose_decode(problem: Attention, machine: Machine) -> DecodeCut:
    """Choose the blocking for a problem and machine; vectors of pairs hold twice the elements."""
    lanes = machine.isa.lanes(problem.acc)
    depth, wide = (-(-size // (2 * lanes)) * 2 * lanes for size in (problem.head_dim, problem.value_dim))
    return DecodeCut(SPLIT, BLOCK, depth, wide)


@dataclass(frozen=True)
class AttentionCost:
    """Predicted cycles for one key of one head of keys, for the queries of all heads that share it.

    The number of keys, of sequences and of threads drops out, so that no bit of a result depends on these.

    Attributes
    ----------
    blocks : panels of keys, multiplied by blocks of queries.
    decode : keys in place, multiplied by all queries.
    unfused : products and softmax one after the other.
    """

    blocks: float
    decode: float
    unfused: float


def attention_cost(problem: Attention, machine: Machine, queries: int, group: int) -> AttentionCost:
    """The cost of so many queries per head, where `group` heads of queries share a head of keys.

    Examples
    --------
    >>> from tilewright.machine.catalog import find_machine
    >>> one = attention_cost(Attention(128), find_machine("znver5"), queries=1, group=4)
    >>> one.decode < one.blocks < one.unfused
    True
    """
    isa = machine.isa
    tile = isa.tile(problem.dtype, problem.dtype)
    lanes = isa.lanes(problem.acc)
    products = problem.head_dim + problem.value_dim  # of one row and key
    rows = queries * group
    softmax = rows * cost.SOFTMAX_OPERATIONS / lanes
    # Multiply-adds of whole vectors in the time of one of the unit's.
    rate = tile.products * isa.rate(tile) / (lanes * isa.fma_per_cycle)
    multiply = rows * products / (lanes * rate)
    pack = group * cost.KEY_PACK_OPERATIONS * problem.head_dim / lanes
    pairs = isa.pair_tile(problem.dtype, problem.kv_dtype) is not None
    row = rows * products / lanes * (cost.KEY_ROW_PAIR_OPERATIONS if pairs else cost.KEY_ROW_OPERATIONS)
    vectors = products * problem.kv_dtype.bits / isa.vector_bits
    read = cost.KEY_OPERATIONS + cost.KEY_READ_OPERATIONS * vectors
    times = -(-rows // MOST_ROWS)  # rows that do not fit read the keys again
    scores = rows * cost.SCORE_OPERATIONS * cost.SCORE_PASSES / lanes
    blocks = pack + multiply + softmax
    operations = (blocks, times * read + row + softmax, blocks + scores)
    return AttentionCost(*(one / isa.fma_per_cycle for one in operations))


@lru_cache(maxsize=256)
def decode_queries(problem: Attention, machine: Machine, group: int) -> int:
    """The most queries for which keys are read in place; 0 where blocks are always faster.

    >>> from tilewright.machine.catalog import find_machine
    >>> decode_queries(Attention(128), find_machine("znver5"), group=4)
    16
    """
    most = 0
    for queries in range(1, max(1, MOST_ROWS // max(group, 1)) + 1):
        found = attention_cost(problem, machine, queries, group)
        if found.decode > found.blocks:
            break
        most = queries
    return most
