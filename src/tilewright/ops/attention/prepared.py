"""A validated call of attention: the kernel, the views it takes, and what belongs to its results."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.foreign import as_array
from tilewright.calls.operands import Array
from tilewright.calls.recording import new_array
from tilewright.ops.attention.bounds import Bounds
from tilewright.ops.attention.kernel import AttentionCall
from tilewright.ops.attention.operands import (
    AttentionOperands,
    Keywords,
    broadcast_mask,
    head_vector,
    heads_first,
    mask_columns,
    padded_mask,
    parse_softcap,
    read_operands,
    sequence_sides,
    state_shape,
    token_scales,
)
from tilewright.ops.attention.problem import MAX_HEAD, Attention
from tilewright.ops.attention.sequences import SequenceSide, Strides, query_offset, table_of
from tilewright.ops.gemm.operands import check_out, direct_out
from tilewright.spec.arguments import real_number
from tilewright.spec.dtype import F32, F64, find_numpy_dtype


class PreparedAttention(NamedTuple):
    """A validated, converted call of `attention`; `given` is unchanged so far.

    Attributes
    ----------
    problem : the problem its kernel solves; None if kernels do not support the sizes of its heads.
    call : the kernel's arguments; `call.out` is a view of `target`.
    target : the array the kernel writes, in the shape and layout of the result.
    given : the caller's `out`, or None.
    state_shape : of lse.
    partial : whether some rows belong to no sequence and become zero.
    copies : a description of each copy.
    sides : the sequences of queries, and those of keys.
    by_contents : whether the table depends on the contents of arrays.
    """

    problem: Attention | None
    call: AttentionCall
    target: Array
    given: Array | None
    state_shape: tuple[int, ...]
    partial: bool
    copies: tuple[str, ...]
    sides: tuple[SequenceSide, SequenceSide]
    by_contents: bool = False


@lru_cache(maxsize=256)
def _problem(
    sizes: tuple[int, int],
    types: tuple[np.dtype[Any], np.dtype[Any]],
    mask: np.dtype[Any] | None,
    flags: tuple[bool, ...],
) -> Attention | None:
    """The record of the kernel; None for heads that none is made for.

    Its types are looked for by those of arrays, whose hashes are quick.
    """
    if not all(1 <= size <= MAX_HEAD for size in sizes):
        return None
    names = ("bounded", "softcap", "slopes", "sinks", "key_scales", "value_scales", "paged")
    options: dict[str, Any] = dict(zip(names, flags, strict=True))
    kinds = [None if dtype is None else find_numpy_dtype(dtype) for dtype in (*types, mask)]
    return Attention(*sizes, kinds[0] or F32, kv_dtype=kinds[1], mask=kinds[2], **options)


def prepare(
    q: Any, k: Any, v: Any, out: Any, keywords: Keywords, *, all_scores: bool = False
) -> PreparedAttention:
    """Every check and conversion of `attention`; `out` has not changed afterwards.

    Parameters
    ----------
    all_scores : whether scores of all keys are wanted, of those too that a mask of fewer keys leaves out.
    """
    operands = read_operands(q, k, v, keywords)
    q4, k4, v4, layout = operands.q, operands.k, operands.v, operands.layout
    bounds = Bounds.parse(keywords.causal, keywords.window)
    softcap = parse_softcap(keywords.softcap)
    head_dim, value_dim = q4.shape[3], v4.shape[3]
    scale = (
        1 / math.sqrt(max(head_dim, 1)) if keywords.scale is None else real_number(keywords.scale, "scale")
    )
    queries, keys, batch = sequence_sides(operands, keywords)
    heads = q4.shape[1]
    acc = F64 if q4.dtype == np.float64 else F32

    lead, result = _result_shape(operands, queries, keys, batch)
    offset = None if keywords.q_offset is None else query_offset(keywords.q_offset, batch)
    mask, covered = None, keys.most
    if keywords.mask is not None:
        array, covered = mask_columns(as_array(keywords.mask, "mask"), keys, k4)
        if all_scores and covered < keys.most:
            array, covered = padded_mask(array, keys.most), keys.most
        mask = broadcast_mask(array, lead or (batch,), (batch, heads, queries.most, covered))
    whole = keys
    keys = keys.first_rows(covered)
    vectors = [
        None if value is None else head_vector(value, name, heads, acc)
        for name, value in (("alibi_slopes", keywords.alibi_slopes), ("sinks", keywords.sinks))
    ]
    scales = [
        None if value is None else token_scales(value, name, operands, keys, acc)
        for name, value in (("key_scales", keywords.key_scales), ("value_scales", keywords.value_scales))
    ]
    given = None if out is None else check_out(out, result, q4.dtype)
    reads = [q4, k4, v4, *(array for array in (mask, *vectors, *scales) if array is not None)]
    direct = given is not None and _writable(given, q4.dtype, reads)
    target = given if direct and given is not None else new_array(result, q4.dtype)
    out4 = heads_first(target, layout)

    rows = (len(out4), heads, out4.shape[2])
    row_max, row_sum = new_array(rows, acc.numpy), new_array(rows, acc.numpy)
    steps = _steps((q4, k4, v4, out4), mask, scales, (queries, keys), rows)
    covers = None if mask is None else covered
    table = table_of(bounds, (queries, whole), batch, covers, offset, steps, k4)
    types, mask_type = (q4.dtype, k4.dtype), None if mask is None else mask.dtype
    optional = [value is not None for value in (*vectors, *scales, keys.pages)]
    problem = _problem((head_dim, value_dim), types, mask_type, (table.bound, softcap != 0, *optional))
    call = AttentionCall(
        *(q4, k4, v4, out4),
        table.items,
        *(row_max, row_sum),
        queries.most,
        *(scale, softcap),
        mask,
        *(vectors[0], vectors[1], scales[0], scales[1]),
        keys.pages,
        table.keys,
    )
    copies = operands.copies()
    if given is not None and not direct:
        copies = (*copies, "the result is copied into out: another dtype, misaligned, or shared memory")
    partial, sides = queries.rows is not None, (queries, keys)
    by_contents = any(part is not None for part in (queries.rows, keys.rows, keys.pages)) or (
        isinstance(offset, np.ndarray)
    )
    return PreparedAttention(
        problem, call, target, given, state_shape(result, layout), partial, copies, sides, by_contents
    )


def _result_shape(
    operands: AttentionOperands, queries: SequenceSide, keys: SequenceSide, batch: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The axes in front of heads and sequence, and the shape of the result."""
    q, k, v = operands.given
    lead = q.shape[:-3]
    if queries.batch != batch:  # q is broadcast to the batches of k
        lead = k.shape[:-3] if keys.first is None and keys.pages is None else (batch,)
    inner = q.shape[-3:-1] if q.ndim > 2 or not lead else operands.q.shape[1:3]
    return lead, (*lead, *inner, v.shape[-1])


def _writable(out: Array, dtype: np.dtype[Any], reads: list[Array]) -> bool:
    """Return whether a kernel may write into `out`."""
    merges = out.ndim <= 4 or out.flags.c_contiguous
    return merges and all(direct_out(out, dtype, array, array) for array in reads)


def _steps(
    arrays: tuple[Array, Array, Array, Array],
    mask: Array | None,
    scales: list[Array | None],
    sides: tuple[SequenceSide, SequenceSide],
    state: tuple[int, int, int],
) -> Strides:
    """From one sequence to the next in each array: see `table_of`."""
    queries, keys = sides
    found = []
    for array, side in zip(arrays, (queries, keys, keys, queries), strict=True):
        if side.pages is not None or (side.first is None and array.shape[0] <= 1):
            found.append(0)  # there is one only
        else:
            found.append(array.strides[0 if side.first is None else 2] // array.itemsize)
    q, k, v, out = found
    scale = next((array for array in scales if array is not None), None)
    if scale is None or len(scale) == 1:
        scale_step = 0 if keys.first is None else 1
    else:
        scale_step = scale.shape[1] * scale.shape[2]
    mask_step = 0 if mask is None else mask.strides[0] // mask.itemsize
    state_step = state[1] * state[2] if queries.first is None else 1
    return Strides(q, k, v, out, mask_step, state_step, scale_step)
