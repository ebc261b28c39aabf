"""One call of attention: which strategy it takes, and what is done around the kernel."""

from __future__ import annotations

import logging
import threading
from enum import Enum
from functools import cache
from typing import Any

import numpy as np

from tilewright.runtime.attention import AttentionKernel
from tilewright.runtime.attention_arrays import Keywords, prepare
from tilewright.runtime.attention_call import PreparedAttention, log_sum_exp
from tilewright.runtime.attention_plans import keep_plan, plan_key, run_plan
from tilewright.runtime.attention_unfused import run_unfused
from tilewright.runtime.lifetime import hold_during_forks
from tilewright.runtime.operands import Array
from tilewright.spec.attention import Attention, Schedule
from tilewright.spec.choice import parse_choice

logger = logging.getLogger("tilewright")


_compiling = threading.RLock()
hold_during_forks(_compiling)


@cache
def _attention_kernel(problem: Attention) -> AttentionKernel:
    return AttentionKernel.compiled(problem)


#: The kernels of this process by their problems.
attention_kernels: dict[Attention, AttentionKernel] = {}


def attention_kernel(problem: Attention) -> AttentionKernel:
    """The kernel of a problem, made for the host at its first use."""
    kernel = attention_kernels.get(problem)
    if kernel is None:
        with _compiling:
            kernel = attention_kernels.setdefault(problem, _attention_kernel(problem))
    return kernel


#: Queries times heads of a group up to which keys pass by unpacked: packing a key costs as much as three to
#: eight of its products, and a key that comes from memory takes the time of a dozen.
DECODE_ROWS = 16


class Strategy(Enum):
    """How attention is computed."""

    AUTO = "auto"
    BLOCKS = "blocks"
    DECODE = "decode"
    UNFUSED = "unfused"


def choose(prepared: PreparedAttention, strategy: Strategy) -> Strategy:
    """The strategy of a call."""
    if prepared.problem is None:  # no kernel is made for heads of this size
        return Strategy.UNFUSED
    adjacent = all(array.strides[-1] == array.itemsize for array in (prepared.call.k, prepared.call.v))
    if strategy is Strategy.DECODE and not adjacent:  # keys and values are read where they stand
        return Strategy.BLOCKS
    if strategy is not Strategy.AUTO:
        return strategy
    rows = prepared.call.queries * prepared.call.q.shape[1] // max(prepared.call.k.shape[1], 1)
    return Strategy.DECODE if adjacent and rows <= DECODE_ROWS else Strategy.BLOCKS


def _kernel(prepared: PreparedAttention, way: Strategy) -> AttentionKernel:
    """The kernel of a call whose strategy has one."""
    assert prepared.problem is not None
    return attention_kernel(prepared.problem.scheduled(Schedule(way.value)))


def run(prepared: PreparedAttention, way: Strategy) -> None:
    """Computes; `target` and the rows' states are written."""
    call = prepared.call
    if prepared.partial:  # rows that belong to no sequence
        call.out[...] = 0
        call.row_max[...] = -np.inf
        call.row_sum[...] = 0
    if not call.row_max.size:
        return
    match way:
        case Strategy.BLOCKS | Strategy.DECODE:
            _kernel(prepared, way).run(call)
        case Strategy.UNFUSED:
            run_unfused(call)
        case other:
            raise AssertionError(other)


def _key(q: Any, k: Any, v: Any, out: Any, keywords: Keywords, strategy: str) -> tuple[Any, ...] | None:
    """What a plan depends on; None for calls with operands that plans do not know."""
    given = keywords
    if (
        given.q_lengths is not None
        or given.kv_lengths is not None
        or given.cu_seqlens_q is not None
        or given.cu_seqlens_k is not None
        or given.block_table is not None
        or given.alibi_slopes is not None
        or given.sinks is not None
        or given.key_scales is not None
        or given.value_scales is not None
    ):
        return None
    options = (given.causal, given.scale, given.window, given.softcap, given.layout, strategy)
    return plan_key(q, k, v, out, given.mask, options)


def attention(
    q: Any, k: Any, v: Any, out: Any, keywords: Keywords, *, return_lse: bool, strategy: str
) -> Array | tuple[Array, Array]:
    """What `tilewright.attention` does, which documents it."""
    key = _key(q, k, v, out, keywords, strategy)
    operands = (q, k, v) if keywords.mask is None else (q, k, v, keywords.mask)
    if key is not None:
        found = run_plan(key, operands, out, return_lse=return_lse)
        if found is not None:
            return found
    wanted = parse_choice(Strategy, strategy, "strategy")
    prepared = prepare(q, k, v, out, keywords)
    if prepared.copies:
        logger.debug("attention: %s", "; ".join(prepared.copies))
    way = choose(prepared, wanted)
    run(prepared, way)
    if key is not None and way is not Strategy.UNFUSED and prepared.call.row_max.size:
        keep_plan(key, operands, prepared, _kernel(prepared, way))
    result = prepared.target
    if prepared.given is not None and prepared.given is not result:
        np.copyto(prepared.given, result, casting="same_kind")
        result = prepared.given
    if not return_lse:
        return result
    call = prepared.call
    return result, log_sum_exp(call.row_max, call.row_sum).reshape(prepared.state_shape)
