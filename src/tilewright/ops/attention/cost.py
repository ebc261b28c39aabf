"""Which schedule attention takes: what blocks, few queries, and all scores at once cost, key by key."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tilewright.machine.machine import Machine
from tilewright.ops.attention.decode import MOST_ROWS
from tilewright.ops.attention.problem import Attention

# Costs are in steps: a step is the time of one multiply-add of whole vectors. They are those of one key of
# one head of keys, for the queries of all heads that share it, so that the number of keys, of sequences and
# of threads drops out, and no bit of a result depends on these. The figures were fitted to the times of both
# kernels on Zen 5 (AVX-512; heads of 64 and 128, 1 to 64 rows, 4096 keys), which they meet within a third.

#: Reading and packing a vector of a key, of which every head of queries has to do with its own panels.
PACK_STEPS = 16.0
#: Softmax of a vector of scores: scale, maximum, exponential, sum.
SOFTMAX_STEPS = 36.0
#: Going on to the next key where it is not packed, and each vector of a key or value that is read there.
KEY_STEPS, READ_STEPS = 20.0, 2.0
#: What a vector of such a key takes for each row instead of 1: sums along the vectors are added up, weights
#: spread. Instructions that add products of pairs save half of the multiply-adds, but nothing of that.
ROW_STEPS, ROW_PAIR_STEPS = 1.3, 1.1
#: A vector of scores through memory for each of maximum, difference, exponential, sum and both products.
SCORE_STEPS = 10.0


@dataclass(frozen=True)
class AttentionCost:
    """Steps for one key of one head of keys.

    Attributes
    ----------
    blocks : panels of keys past blocks of queries.
    decode : keys past all queries, read where they stand.
    unfused : products and softmax one after the other.
    """

    blocks: float
    decode: float
    unfused: float


def attention_cost(problem: Attention, machine: Machine, queries: int, group: int) -> AttentionCost:
    """The cost of so many queries, whose heads share a head of keys in groups.

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
    softmax = rows * SOFTMAX_STEPS / lanes
    # Multiply-adds of whole vectors in the time of one of the unit's.
    rate = tile.products * (tile.per_cycle or isa.fma_per_cycle) / (lanes * isa.fma_per_cycle)
    multiply = rows * products / (lanes * rate)
    pack = group * PACK_STEPS * problem.head_dim / lanes
    pairs = isa.pair_tile(problem.dtype, problem.kv_dtype) is not None
    row = rows * products / lanes * (ROW_PAIR_STEPS if pairs else ROW_STEPS)
    read = KEY_STEPS + READ_STEPS * products * problem.kv_dtype.bits / isa.vector_bits
    times = -(-rows // MOST_ROWS)  # rows that do not fit go past the keys again
    return AttentionCost(
        blocks=pack + multiply + softmax,
        decode=times * read + row + softmax,
        unfused=pack + multiply + softmax + rows * SCORE_STEPS * 6 / lanes,
    )


@lru_cache(maxsize=256)
def decode_queries(problem: Attention, machine: Machine, group: int) -> int:
    """The most queries that go past keys as they stand; 0 where blocks are always faster.

    >>> from tilewright.machine.catalog import find_machine
    >>> decode_queries(Attention(128), find_machine("znver5"), group=4)
    16
    """
    most = 0
    for queries in range(1, max(1, MOST_ROWS // max(group, 1)) + 1):
        cost = attention_cost(problem, machine, queries, group)
        if cost.decode > cost.blocks:
            break
        most = queries
    return most
