"""Explanation of an attention call: its schedule and why, skipped work, steps around the kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.compiler.explanation import Considered, Explanation, compared
from tilewright.machine.host import host_machine
from tilewright.ops.attention.call import AttentionStrategy, Part, choose, kernel_of
from tilewright.ops.attention.cut import attention_cost
from tilewright.ops.attention.operands import Keywords
from tilewright.ops.attention.prepared import PreparedAttention, prepare
from tilewright.ops.attention.problem import ITEM_FIELDS, MAX_HEAD, ScoreStage
from tilewright.spec.arguments import check_flag, parse_choice
from tilewright.threads.pool import TEAM_WORK, limited, wanted_threads

#: What each strategy does, in words.
_WORDS = {
    AttentionStrategy.BLOCKS: (
        "blocks: panels of K past blocks of queries, softmax on strips in L1 (Fu et al. 2024)"
    ),
    AttentionStrategy.DECODE: (
        "few queries: keys and values are read once, in place, in runs whose results are merged"
    ),
    AttentionStrategy.UNFUSED: "unfused: all scores of some heads, softmax, their product with V",
}


def scores_of(prepared: PreparedAttention) -> tuple[int, int]:
    """Number of scores of one head over all sequences, and how many of them are in bounds.

    Scores that a mask excludes count as in bounds.
    """
    columns = [ITEM_FIELDS.index(name) for name in ("queries", "keys", "low", "high")]
    total = seen = 0
    for queries, keys, low, high in prepared.call.items[:, columns].tolist():
        row = np.arange(queries)
        total += queries * keys
        seen += int((np.clip(high + row, 0, keys) - np.clip(low + row, 0, keys)).clip(0).sum())
    return total, seen


def _reasons(prepared: PreparedAttention, part: Part, wanted: AttentionStrategy) -> tuple[str, ...]:
    """Reasons for the strategy of some sequences."""
    call, problem = part.call, prepared.problem
    if problem is None:
        return (f"kernels support head sizes from 1 to {MAX_HEAD}",)
    if wanted is not AttentionStrategy.AUTO and wanted is part.strategy:
        return (f"strategy={wanted.value!r} was requested",)
    if not all(array.strides[3] == array.itemsize for array in (call.k, call.v)):
        return ("keys or values are not contiguous along the head and are packed",)
    group = call.q.shape[1] // max(call.k.shape[1], 1)
    found = attention_cost(problem, host_machine(), call.queries, group)
    cycles = f"{found.blocks:.0f} in blocks, {found.decode:.0f} by few queries, {found.unfused:.0f} unfused"
    return (
        f"{len(call.items)} sequences of at most {call.queries} queries, {group} heads share a head of keys",
        f"cycles for a key: {cycles}",
    )


def _considered(prepared: PreparedAttention, part: Part, wanted: AttentionStrategy) -> tuple[Considered, ...]:
    """Each strategy for some sequences, the one that is taken first."""
    call, problem = part.call, prepared.problem
    if problem is None:
        return ()
    group = call.q.shape[1] // max(call.k.shape[1], 1)
    found = attention_cost(problem, host_machine(), call.queries, group)
    cycles = {
        AttentionStrategy.BLOCKS: found.blocks,
        AttentionStrategy.DECODE: found.decode,
        AttentionStrategy.UNFUSED: found.unfused,
    }
    adjacent = all(array.strides[3] == array.itemsize for array in (call.k, call.v))

    def reason(one: AttentionStrategy) -> str:
        if one is part.strategy:
            if one is wanted:
                return f"strategy={one.value!r} was requested"
            return "the fewest predicted cycles" if adjacent else "keys or values are packed by this one"
        ranking = compared(cycles[one], cycles[part.strategy])
        if wanted is part.strategy:
            return f"not requested; {ranking}"
        if one is AttentionStrategy.DECODE and not adjacent:
            return f"needs keys and values that are contiguous along the head; {ranking}"
        return f"on request only; {ranking}" if one is AttentionStrategy.UNFUSED else ranking

    order = sorted(cycles, key=lambda one: (one is not part.strategy, cycles[one]))
    return tuple(
        Considered(_WORDS[one], one is part.strategy, reason(one), cycles[one], "a key") for one in order
    )


def explain_attention(q: Any, k: Any, v: Any, *, threads: int | None = None, **options: Any) -> Explanation:
    """Explain how ``attention(q, k, v, **options)`` runs, without computing it."""
    out = options.pop("out", None)
    check_flag(options.pop("return_lse", False), "return_lse")
    stage = options.pop("return_scores", None)
    strategy = options.pop("strategy", "auto")
    keywords = Keywords(**options)
    wanted = parse_choice(AttentionStrategy, strategy, "strategy")
    if stage is not None:
        stage = parse_choice(ScoreStage, stage, "return_scores")
    prepared = prepare(q, k, v, out, keywords, all_scores=stage is not None)
    parts = choose(prepared, wanted)
    call = prepared.call
    total, seen = scores_of(prepared)
    heads, d, value_dim = call.q.shape[1], call.q.shape[3], call.v.shape[3]
    work = seen * heads * (d + value_dim)
    notes = list(prepared.copies)
    if stage is not None:
        notes.append(f"a second pass computes all scores, for return_scores={stage.value!r}")
    if seen < total:
        notes.append(
            f"{1 - seen / total:.0%} of the scores are out of bounds: whole blocks of them are skipped"
        )
    with limited(threads):
        several = wanted_threads() > 1 and work > TEAM_WORK
        notes.append(f"{wanted_threads()} threads, fewer while other calls run" if several else "one thread")
    sizes = f"{call.queries} queries, {int(call.items[:, ITEM_FIELDS.index('keys')].max(initial=0))} keys"
    subject = (
        f"attention of {len(call.items)} x {heads} heads ({call.k.shape[1]} of keys), {sizes}, "
        f"{d} and {value_dim} elements, {call.q.dtype}"
    )
    names, figures = [], []
    for part in parts:
        if prepared.problem is None or part.strategy is AttentionStrategy.UNFUSED:
            names.append("matmul")
        else:
            kernel = kernel_of(prepared.problem, part.strategy)
            names.append(kernel.name)
            figures.append(repr(kernel.blocking))
    figures.append(f"{2 * work:,} flops")
    considered = tuple(one for part in parts for one in _considered(prepared, part, wanted))
    return Explanation(
        subject,
        " and ".join(names),
        "; ".join(_WORDS[part.strategy] for part in parts),
        tuple(reason for part in parts for reason in _reasons(prepared, part, wanted)),
        tuple(notes),
        tuple(figures),
        considered,
    )
