"""One call of attention: choice of strategy, and the steps around the kernel."""

from __future__ import annotations

import logging
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple, get_args

import numpy as np

from tilewright.calls.kernels import kernel_for
from tilewright.calls.operands import Array
from tilewright.calls.pieces import copy_to
from tilewright.calls.promotion import store
from tilewright.calls.recording import constant, repeatable
from tilewright.compiler.kernel import Kernel
from tilewright.machine.host import host_machine
from tilewright.ops.attention.cut import decode_queries
from tilewright.ops.attention.kernel import LENGTHS, AttentionCall, similar_keys
from tilewright.ops.attention.operands import Keywords
from tilewright.ops.attention.prepared import PreparedAttention, prepare
from tilewright.ops.attention.problem import ITEM_FIELDS, Attention, Schedule, ScoreStage
from tilewright.ops.attention.table import decided
from tilewright.preparing import Late
from tilewright.recorder import current
from tilewright.spec.arguments import check_flag, parse_choice
from tilewright.typing import AttentionStrategyName

logger = logging.getLogger("tilewright.calls")

#: What few calls need.
_log_sum_exp = Late("tilewright.ops.attention.log_sum_exp:log_sum_exp")
_attention_scores = Late("tilewright.ops.attention.scores:attention_scores")
_run_unfused = Late("tilewright.ops.attention.unfused:run_unfused")


class AttentionStrategy(Enum):
    """Strategies for computing attention."""

    AUTO, BLOCKS, DECODE, UNFUSED = get_args(AttentionStrategyName)


@lru_cache(maxsize=256)
def _most_queries(problem: Attention, group: int) -> int:
    """`decode_queries` on this host, as it was at the first use."""
    return decode_queries(problem, host_machine(), group)


class Part(NamedTuple):
    """The sequences of a call that share a strategy."""

    strategy: AttentionStrategy
    call: AttentionCall


def choose(prepared: PreparedAttention, wanted: AttentionStrategy) -> tuple[Part, ...]:
    """The strategy of each sequence of a call, chosen by its own number of queries alone."""
    call, problem = prepared.call, prepared.problem
    if problem is None:  # no kernel is made for heads of this size
        return (Part(AttentionStrategy.UNFUSED, call),)
    if wanted not in (AttentionStrategy.AUTO, AttentionStrategy.DECODE):
        return (Part(wanted, call),)
    if not all(array.strides[3] == array.itemsize for array in (call.k, call.v)):
        return (Part(AttentionStrategy.BLOCKS, call),)  # few queries read keys and values in place
    if wanted is AttentionStrategy.DECODE:
        return (Part(wanted, call),)
    most = _most_queries(problem, call.q.shape[1] // max(call.k.shape[1], 1))
    if call.queries <= most:
        return (Part(AttentionStrategy.DECODE, call),)
    if not prepared.partial or not len(call.items):
        return (Part(AttentionStrategy.BLOCKS, call),)
    queries = call.items[:, ITEM_FIELDS.index("queries")]
    ways = ((AttentionStrategy.DECODE, queries <= most), (AttentionStrategy.BLOCKS, queries > most))
    return tuple(
        Part(
            way,
            call._replace(
                items=call.items if those.all() else call.items[those],
                queries=int(queries[those].max()),
                keys=None,
            ),
        )
        for way, those in ways
        if those.any()
    )


def kernel_of(problem: Attention, way: AttentionStrategy) -> Kernel:
    """The kernel of a strategy that has one."""
    kernel: Kernel = kernel_for(problem.scheduled(Schedule(way.value)), quick=True)
    return kernel


def run(prepared: PreparedAttention, parts: tuple[Part, ...]) -> None:
    """Computes; `target` and the rows' states are written."""
    if prepared.partial:  # rows that belong to no sequence
        call = prepared.call
        for array, value in ((call.out, 0), (call.row_max, -np.inf), (call.row_sum, 0)):
            copy_to(array, constant(np.array(value, array.dtype)))
    if not prepared.call.row_max.size:
        return
    for way, call in parts:
        if way is AttentionStrategy.UNFUSED:
            _run_unfused(call)
        else:
            assert prepared.problem is not None
            call.run(kernel_of(prepared.problem, way))


def _for_others(prepared: PreparedAttention, part: Part, wanted: AttentionStrategy, *, masked: bool) -> Part:
    """A part that is recorded for other contents of lengths as well, those with the same decisions."""
    call, (queries, keys) = part.call, prepared.sides
    problem = prepared.problem
    if current.recorder is None or problem is None or part.strategy is AttentionStrategy.UNFUSED:
        return part
    few = part.strategy is AttentionStrategy.DECODE
    rows, count = (int(call.items[:, ITEM_FIELDS.index(name)].max(initial=0)) for name in LENGTHS)
    least, most = 0, call.queries
    exact = masked and (queries.first is not None or keys.first is not None or keys.pages is not None)
    if few or exact:
        least = rows
    elif queries.first is not None:
        most = min(queries.total, 1 << (most - 1).bit_length() if most else 0)
        call = call._replace(queries=most)
    each = 0
    chosen = wanted is AttentionStrategy.AUTO and prepared.partial and not few
    if chosen and all(array.strides[3] == array.itemsize for array in (call.k, call.v)):
        each = _most_queries(problem, call.q.shape[1] // max(call.k.shape[1], 1)) + 1
    fewest, longest = (count, count) if exact else similar_keys(count, kernel_of(problem, part.strategy))
    decided(
        call.items,
        least_each=each,
        least_queries=least,
        most_queries=most,
        least_keys=fewest,
        most_keys=longest,
        unbounded=not problem.bounded,
    )
    return part._replace(call=call)


def attention_with_scores(
    q: Any, k: Any, v: Any, out: Any, keywords: Keywords, *, return_lse: bool, strategy: str, stage: Any
) -> tuple[Array, ...]:
    """Implementation of `tilewright.attention` with `return_scores`."""
    wanted, after = (
        parse_choice(AttentionStrategy, strategy, "strategy"),
        parse_choice(ScoreStage, stage, "return_scores"),
    )
    prepared = prepare(q, k, v, out, keywords, all_scores=True)
    run(prepared, choose(prepared, wanted))
    scores = _attention_scores(
        prepared, after
    )  # `out` may share memory with operands: it is written afterwards
    found = _finished(prepared, return_lse=return_lse)
    return (*found, scores) if isinstance(found, tuple) else (found, scores)


def _finished(prepared: PreparedAttention, *, return_lse: bool) -> Array | tuple[Array, Array]:
    """The results of a call that has run; `out` is written."""
    result = prepared.target
    if prepared.given is not None and prepared.given is not result:
        store(result, prepared.given)
        result = prepared.given
    if not return_lse:
        return result
    call = prepared.call
    return result, _log_sum_exp(call.row_max, call.row_sum).reshape(prepared.state_shape)


def attention(
    q: Any, k: Any, v: Any, out: Any, keywords: Keywords, *, return_lse: bool, strategy: str
) -> Array | tuple[Array, Array]:
    """Implementation of `tilewright.attention`, which documents it."""
    return_lse = check_flag(return_lse, "return_lse")
    wanted = parse_choice(AttentionStrategy, strategy, "strategy")
    prepared = prepare(q, k, v, out, keywords)
    if prepared.copies:
        logger.debug("attention: %s", "; ".join(prepared.copies))
    parts = choose(prepared, wanted)
    if prepared.by_contents and len(parts) == 1:
        parts = (_for_others(prepared, parts[0], wanted, masked=keywords.mask is not None),)
    run(prepared, parts)
    found = _finished(prepared, return_lse=return_lse)
    if all(part.strategy is not AttentionStrategy.UNFUSED for part in parts):
        repeatable()
    return found
