"""The scores of attention as a result of their own, after any of the stages that make weights of them."""

from __future__ import annotations

import numpy as np

from tilewright.calls.operands import Array
from tilewright.ops.attention.prepared import PreparedAttention
from tilewright.ops.attention.problem import ScoreStage
from tilewright.ops.attention.unfused import (
    blocks_of_heads,
    cap_scores,
    exponentials,
    mask_scores,
    query_heads,
    scaled_products,
)


def attention_scores(prepared: PreparedAttention, stage: ScoreStage) -> Array:
    """The scores of every query and key, in the type of the sums; those outside of lengths are excluded.

    A separate pass: attention kernels never hold all scores.
    """
    call, (queries, keys) = prepared.call, prepared.sides
    excluded = 0.0 if stage is ScoreStage.SOFTMAX else -np.inf
    shape = (len(call.items), call.q.shape[1], queries.most, keys.most)
    found = np.full(shape, excluded, call.row_max.dtype)
    with np.errstate(all="ignore"):
        for number, sequence, kv_heads in blocks_of_heads(call):
            heads = query_heads(sequence, kv_heads)
            scores = scaled_products(sequence, kv_heads)
            if stage is not ScoreStage.PRODUCT:
                cap_scores(call, scores)
            if stage in (ScoreStage.MASK, ScoreStage.SOFTMAX):
                mask_scores(sequence, scores, heads)
            if stage is ScoreStage.SOFTMAX:
                _, row_sum = exponentials(call, scores, heads)
                scores /= np.where(row_sum == 0, 1, row_sum)[..., np.newaxis]
            scores = scores.reshape(heads.stop - heads.start, *scores.shape[2:])
            found[number, heads, : sequence.queries, : sequence.keys] = scores
    packed = queries.first is not None
    return found if packed else found.reshape(*prepared.state_shape, keys.most)
