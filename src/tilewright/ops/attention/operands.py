"""The arguments of attention: conversion, shapes, layouts, overlap; ends in the views that kernels take."""

from __future__ import annotations

import math
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple, get_args

import numpy as np

from tilewright.calls.foreign import as_array
from tilewright.calls.operands import Array, data_address, whole_strides
from tilewright.calls.pieces import contiguous, copied
from tilewright.calls.recording import new_array
from tilewright.errors import (
    AttentionArguments,
    AttentionAxes,
    AttentionBatch,
    AttentionDtype,
    AttentionScales,
    HeadSizeMismatch,
    HeadsMismatch,
    HeadVectorShape,
    InvalidScalar,
    KeysMismatch,
    MaskDtype,
    MaskShape,
    shown,
)
from tilewright.ops.attention.bounds import Bounds, Causal
from tilewright.ops.attention.kernel import AttentionCall
from tilewright.ops.attention.prepared import PreparedAttention
from tilewright.ops.attention.problem import ATTENTION_DTYPES, MAX_HEAD, Attention
from tilewright.ops.attention.sequences import (
    SequenceSide,
    Strides,
    lengths,
    packed_side,
    paged_side,
    query_offset,
    rows_of_pages,
    table_of,
)
from tilewright.ops.gemm.operands import check_out, direct_out
from tilewright.spec.arguments import parse_choice, real_number
from tilewright.spec.dtype import F32, F64, I8, DType, find_numpy_dtype
from tilewright.typing import AttentionLayoutName


class AttentionLayout(Enum):
    """The order of the axes: batch, heads, sequence, elements of a head."""

    BHSD, BSHD = get_args(AttentionLayoutName)


class Keywords(NamedTuple):
    """The keyword arguments that say what attention computes, as `tilewright.attention` documents them."""

    mask: Any = None
    causal: Any = False
    scale: Any = None
    window: Any = None
    softcap: Any = None
    alibi_slopes: Any = None
    sinks: Any = None
    q_lengths: Any = None
    kv_lengths: Any = None
    cu_seqlens_q: Any = None
    cu_seqlens_k: Any = None
    block_table: Any = None
    key_scales: Any = None
    value_scales: Any = None
    layout: Any = "bhsd"
    q_offset: Any = None


# --- element types ------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def float_dtype(dtype: np.dtype[Any]) -> DType | None:
    """The record of a float that attention takes, of any byte order."""
    found = find_numpy_dtype(dtype.newbyteorder("="))
    return found if found in ATTENTION_DTYPES else None


@lru_cache(maxsize=64)
def operand_types(q: np.dtype[Any], k: np.dtype[Any], v: np.dtype[Any]) -> tuple[DType, DType]:
    """The types in which queries and keys are read: one float for all, or int8 keys and values as they are.

    Floats of different types are converted to the widest; of bfloat16 and float16 to float32.

    Raises
    ------
    AttentionDtype

    >>> [str(kind) for kind in operand_types(*map(np.dtype, ("f4", "f8", "f4")))]
    ['f64', 'f64']
    """
    floats = ", ".join(kind.numpy_name for kind in ATTENTION_DTYPES)
    query = float_dtype(q)
    if query is None:
        raise AttentionDtype(name="q", found=q, required=f"one of {floats}")
    if k == v == I8.numpy:
        return query, I8
    kinds = {query}
    for name, dtype in (("k", k), ("v", v)):
        kind = float_dtype(dtype)
        if kind is None:
            raise AttentionDtype(name=name, found=dtype, required=f"one of {floats}, or k and v both int8")
        kinds.add(kind)
    if len(kinds) > 1:
        query = F64 if F64 in kinds else F32
    return query, query


def _readable(array: Array, dtype: np.dtype[Any]) -> Array:
    """The array in a kernel's type: itself where it is native, aligned and whole-strided."""
    if array.dtype == dtype and array.dtype.isnative and whole_strides(array):
        return array
    return copied(array, dtype)


# --- shapes -------------------------------------------------------------------------------------


def heads_first(array: Array, layout: AttentionLayout) -> Array:
    """A view (batch, heads, sequence, columns); axes in front of the last four are batches too.

    >>> heads_first(np.zeros((5, 3, 2)), AttentionLayout.BSHD).shape
    (1, 3, 5, 2)
    """
    if array.ndim == 2:
        return array[np.newaxis, np.newaxis]
    if array.ndim == 3:
        array = array[np.newaxis]
    elif array.ndim > 4:
        array = array.reshape(math.prod(array.shape[:-3]), *array.shape[-3:])
    return array if layout is AttentionLayout.BHSD else array.swapaxes(1, 2)


#: What a number of axes is, by layout.
_AXES = {
    AttentionLayout.BHSD: "(sequence, d), (heads, sequence, d) or (batch, heads, sequence, d)",
    AttentionLayout.BSHD: "(sequence, d), (sequence, heads, d) or (batch, sequence, heads, d)",
}


class _Operands(NamedTuple):
    """q, k and v as the caller has them, and as views of four axes, checked against each other.

    Attributes
    ----------
    copied : which of them are copies.
    """

    given: tuple[Array, Array, Array]
    q: Array
    k: Array
    v: Array
    layout: AttentionLayout
    copied: tuple[bool, ...]

    def copies(self) -> tuple[str, ...]:
        """A description of each copy."""
        if not any(self.copied):
            return ()
        return tuple(
            f"{name} is copied: {array.dtype} to {view.dtype}"
            for name, array, view, copied in zip("qkv", self.given, self[1:4], self.copied, strict=True)
            if copied and array.size
        )


def _operands(q: Any, k: Any, v: Any, keywords: Keywords) -> _Operands:
    """Conversions and every check of q, k and v that does not look at lengths."""
    layout = parse_choice(AttentionLayout, keywords.layout, "layout")
    given = as_array(q, "q"), as_array(k, "k"), as_array(v, "v")
    packed, paged = keywords.cu_seqlens_k is not None, keywords.block_table is not None
    alike = given[0].ndim if keywords.cu_seqlens_q is None and not packed and not paged else None
    for name, array in zip("qkv", given, strict=True):
        if array.ndim < 2 or (paged and name != "q" and array.ndim != 4):
            required = "4" if paged and name != "q" else "at least 2"
            axes = "(pages, ..., d) in the order of the layout" if required == "4" else _AXES[layout]
            raise AttentionAxes(name=name, found=array.shape, required=required, layout=axes)
        if alike is not None and array.ndim != alike:
            raise AttentionAxes(name=name, found=array.shape, required=f"as q {alike}", layout=_AXES[layout])
    query, key = operand_types(given[0].dtype, given[1].dtype, given[2].dtype)
    kinds = (query.numpy, key.numpy, key.numpy)
    read = [_readable(array, kind) for array, kind in zip(given, kinds, strict=True)]
    q4, k4, v4 = views = [heads_first(array, layout) for array in read]
    if not paged and v4.shape[3] > 1 and v4.strides[3] != v4.itemsize:
        v4 = views[2] = contiguous(v4)  # kernels read rows of values in place; other operands they pack
    if k4.shape[:-1] != v4.shape[:-1]:
        raise KeysMismatch(k=given[1].shape, v=given[2].shape)
    heads, kv_heads = q4.shape[1], k4.shape[1]
    if heads % kv_heads if kv_heads else heads:
        raise HeadsMismatch(heads=heads, kv_heads=kv_heads, layout=layout.value)
    if q4.shape[3] != k4.shape[3]:
        raise HeadSizeMismatch(found=q4.shape[3], required=k4.shape[3])
    copied = tuple(
        [
            view is not array and data_address(array) != data_address(view)
            for array, view in zip(given, views, strict=True)
        ]
    )
    return _Operands(given, q4, k4, v4, layout, copied)


# --- sequences ----------------------------------------------------------------------------------


def _check_combination(keywords: Keywords) -> None:
    """Refuses arguments about lengths that contradict each other."""
    pairs = (
        ("q_lengths", "cu_seqlens_q", "the offsets say how long each sequence is"),
        ("kv_lengths", "cu_seqlens_k", "the offsets say how long each sequence is"),
        ("cu_seqlens_k", "block_table", "keys are packed or paged"),
    )
    for first, second, reason in pairs:
        if getattr(keywords, first) is not None and getattr(keywords, second) is not None:
            raise AttentionArguments(found=f"{first} and {second} are given", remedy=f"{reason}: pass one")
    if keywords.block_table is not None and keywords.kv_lengths is None:
        raise AttentionArguments(
            found="block_table is given without kv_lengths", remedy="pass the number of keys of each sequence"
        )
    if keywords.q_offset is not None and isinstance(keywords.causal, (str, Causal)):
        raise AttentionArguments(
            found=f"causal={shown(keywords.causal)} and q_offset are given",
            remedy="both set the position of the queries: pass causal=True with q_offset",
        )
    if keywords.cu_seqlens_k is not None and keywords.cu_seqlens_q is None:
        raise AttentionArguments(
            found="cu_seqlens_k is given without cu_seqlens_q", remedy="pass the offsets of the queries too"
        )


def _packed(array: Array, name: str, value: Any, operand: str) -> SequenceSide:
    """Packed sequences, stored in an array with a batch of one."""
    if array.shape[0] != 1:
        raise AttentionAxes(
            name=operand,
            found=array.shape,
            required="3, for packed sequences",
            layout="(heads, rows, d), or (rows, heads, d) with layout='bshd'",
        )
    return packed_side(value, name, operand, array.shape[2])


def _sides(operands: _Operands, keywords: Keywords) -> tuple[SequenceSide, SequenceSide, int]:
    """The sequences of q and of k, and their number."""
    q, k = operands.q, operands.k
    _check_combination(keywords)
    queries, keys = SequenceSide(len(q), q.shape[2]), SequenceSide(len(k), k.shape[2])
    if keywords.cu_seqlens_q is not None:
        queries = _packed(q, "cu_seqlens_q", keywords.cu_seqlens_q, "q")
    if keywords.cu_seqlens_k is not None:
        keys = _packed(k, "cu_seqlens_k", keywords.cu_seqlens_k, "k")
    elif keywords.block_table is not None:
        keys = paged_side(keywords.block_table, keywords.kv_lengths, k)
    elif keywords.cu_seqlens_q is not None and keywords.kv_lengths is None and operands.given[1].ndim == 3:
        keys = _packed(k, "cu_seqlens_q", keywords.cu_seqlens_q, "k")  # self-attention
    if queries.batch != keys.batch and 1 not in (queries.batch, keys.batch):
        raise AttentionBatch(name="k", found=keys.batch, required=queries.batch)
    batch = keys.batch if queries.batch == 1 else queries.batch
    if keywords.q_lengths is not None:
        rows = lengths(keywords.q_lengths, "q_lengths", batch, queries.most)
        queries = queries._replace(rows=rows)
    if keywords.kv_lengths is not None and keys.pages is None:
        keys = keys._replace(rows=lengths(keywords.kv_lengths, "kv_lengths", batch, keys.most))
    return queries, keys, batch


# --- what is done to scores ---------------------------------------------------------------------


def _mask(array: Array, lead: tuple[int, ...], shape: tuple[int, ...]) -> Array:
    """A mask (batch, heads, queries, keys) with strides of 0 where it broadcasts; truths as bytes."""
    if array.dtype != np.bool_ and float_dtype(array.dtype) is None:
        supported = ", ".join(str(kind.numpy) for kind in ATTENTION_DTYPES)
        raise MaskDtype(found=array.dtype, supported=supported)
    found = array
    try:
        if array.ndim > 4:  # batches of several axes
            found = np.broadcast_to(array, (*lead, *array.shape[-3:]))
            found = found.reshape(math.prod(lead), *array.shape[-3:])
        found = _readable(found, found.dtype.newbyteorder("="))
        found = np.broadcast_to(found.view(np.uint8) if found.dtype == np.bool_ else found, shape)
    except ValueError:
        raise MaskShape(found=array.shape, required=(*lead, *shape[1:])) from None
    return found


def _mask_columns(array: Array, keys: SequenceSide, cache: Array) -> tuple[Array, int]:
    """A mask without columns past the last key of a paged cache, and the number of keys it covers.

    A mask may cover only the first keys (the others are excluded). A single column broadcasts.
    """
    columns = array.shape[-1] if array.ndim else 1
    if columns == 1:
        return array, keys.most
    if keys.pages is not None and keys.most < columns <= keys.pages.shape[1] * cache.shape[2]:
        return array[..., : keys.most], keys.most
    return array, min(columns, keys.most)


def _padded_mask(array: Array, columns: int) -> Array:
    """A copy of a mask that excludes the keys it does not cover; of types that are no mask's, zeros."""
    whole = np.zeros((*array.shape[:-1], columns), array.dtype)
    if float_dtype(array.dtype) is not None:
        whole[...] = -np.inf
    whole[..., : array.shape[-1]] = array
    return whole


def _head_vector(value: Any, name: str, heads: int, acc: DType) -> Array:
    """Slopes or sinks, contiguous, of the type of sums."""
    array = as_array(value, name)
    if array.dtype.kind not in "iufV" or (array.dtype.kind == "V" and float_dtype(array.dtype) is None):
        raise AttentionDtype(name=name, found=array.dtype, required="real numbers")
    if array.ndim and array.shape != (heads,):
        raise HeadVectorShape(name=name, found=array.shape, required=(heads,))
    return contiguous(array if array.ndim else np.broadcast_to(array, (heads,)), acc.numpy)


def _token_scales(value: Any, name: str, operands: _Operands, keys: SequenceSide, acc: DType) -> Array:
    """Scales of keys or values, contiguous (batch, kv_heads, keys), of the type of sums."""
    array, k = as_array(value, name), operands.k
    if array.dtype.kind not in "iufV" or (array.dtype.kind == "V" and float_dtype(array.dtype) is None):
        raise AttentionDtype(name=name, found=array.dtype, required="real numbers")
    tokens = operands.given[1].shape[:-1]
    refusal = AttentionScales(name=name, found=array.shape, required=tokens)
    paged = keys.pages is not None
    try:
        if array.ndim == len(tokens) + 1 or array.shape == tokens or array.ndim == len(tokens) > 2:
            whole = np.broadcast_to(array, (*tokens, 1) if array.ndim > len(tokens) else tokens)
            found = heads_first(
                whole if array.ndim > len(tokens) else whole[..., np.newaxis], operands.layout
            )
            found = found[..., 0]
        elif array.ndim <= 2:
            places = (keys.batch if paged else len(k), k.shape[1], keys.most if paged else k.shape[2])
            found = np.broadcast_to(array[..., np.newaxis] if array.ndim else array, places)
            paged = False
        else:
            raise refusal
    except ValueError:
        raise refusal from None
    if paged:  # in the order of the keys
        assert keys.pages is not None
        found = rows_of_pages(found[..., np.newaxis], keys.pages)[..., 0]
    return contiguous(found, acc.numpy)


def _softcap(value: Any) -> float:
    """The cap of scores; 0 for none."""
    if value is None:
        return 0.0
    cap = real_number(value, "softcap")
    if not 0 <= cap < math.inf:
        raise InvalidScalar(name="softcap", found=shown(value), required="a non-negative number (0: no cap)")
    return cap


# --- the whole ----------------------------------------------------------------------------------


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
    operands = _operands(q, k, v, keywords)
    q4, k4, v4, layout = operands.q, operands.k, operands.v, operands.layout
    bounds = Bounds.parse(keywords.causal, keywords.window)
    softcap = _softcap(keywords.softcap)
    head_dim, value_dim = q4.shape[3], v4.shape[3]
    scale = (
        1 / math.sqrt(max(head_dim, 1)) if keywords.scale is None else real_number(keywords.scale, "scale")
    )
    queries, keys, batch = _sides(operands, keywords)
    heads = q4.shape[1]
    acc = F64 if q4.dtype == np.float64 else F32

    lead, result = _result_shape(operands, queries, keys, batch)
    offset = None if keywords.q_offset is None else query_offset(keywords.q_offset, batch)
    mask, covered = None, keys.most
    if keywords.mask is not None:
        array, covered = _mask_columns(as_array(keywords.mask, "mask"), keys, k4)
        if all_scores and covered < keys.most:
            array, covered = _padded_mask(array, keys.most), keys.most
        mask = _mask(array, lead or (batch,), (batch, heads, queries.most, covered))
    whole = keys
    keys = keys.first_rows(covered)
    vectors = [
        None if value is None else _head_vector(value, name, heads, acc)
        for name, value in (("alibi_slopes", keywords.alibi_slopes), ("sinks", keywords.sinks))
    ]
    scales = [
        None if value is None else _token_scales(value, name, operands, keys, acc)
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
    operands: _Operands, queries: SequenceSide, keys: SequenceSide, batch: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The axes in front of heads and sequence, and the shape of the result."""
    q, k, v = operands.given
    lead = q.shape[:-3]
    if queries.batch != batch:  # q is broadcast to the batches of k
        lead = k.shape[:-3] if keys.first is None and keys.pages is None else (batch,)
    inner = q.shape[-3:-1] if q.ndim > 2 or not lead else operands.q.shape[1:3]
    return lead, (*lead, *inner, v.shape[-1])


def state_shape(result: tuple[int, ...], layout: AttentionLayout) -> tuple[int, ...]:
    """The shape of lse, row_max and row_sum for a result: (..., heads, queries) in every layout.

    >>> state_shape((5, 3, 2), AttentionLayout.BSHD)
    (3, 5)
    """
    if len(result) == 2 or layout is AttentionLayout.BHSD:
        return result[:-1]
    return (*result[:-3], result[-2], result[-3])


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
