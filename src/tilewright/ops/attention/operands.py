"""The arguments of attention, each converted and checked: q, k, v, their sequences, what changes scores."""

from __future__ import annotations

import math
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple, get_args

import numpy as np

from tilewright.calls.foreign import as_array
from tilewright.calls.operands import Array, data_address, whole_strides
from tilewright.calls.pieces import contiguous, copied
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
from tilewright.ops.attention.bounds import Causal
from tilewright.ops.attention.problem import ATTENTION_DTYPES
from tilewright.ops.attention.sequences import (
    SequenceSide,
    lengths,
    packed_side,
    paged_side,
    rows_of_pages,
)
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


def state_shape(result: tuple[int, ...], layout: AttentionLayout) -> tuple[int, ...]:
    """The shape of lse, row_max and row_sum for a result: (..., heads, queries) in every layout.

    >>> state_shape((5, 3, 2), AttentionLayout.BSHD)
    (3, 5)
    """
    if len(result) == 2 or layout is AttentionLayout.BHSD:
        return result[:-1]
    return (*result[:-3], result[-2], result[-3])


#: What a number of axes is, by layout.
_AXES = {
    AttentionLayout.BHSD: "(sequence, d), (heads, sequence, d) or (batch, heads, sequence, d)",
    AttentionLayout.BSHD: "(sequence, d), (sequence, heads, d) or (batch, sequence, heads, d)",
}


class AttentionOperands(NamedTuple):
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


def read_operands(q: Any, k: Any, v: Any, keywords: Keywords) -> AttentionOperands:
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
    return AttentionOperands(given, q4, k4, v4, layout, copied)


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


def sequence_sides(operands: AttentionOperands, keywords: Keywords) -> tuple[SequenceSide, SequenceSide, int]:
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


def broadcast_mask(array: Array, lead: tuple[int, ...], shape: tuple[int, ...]) -> Array:
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


def mask_columns(array: Array, keys: SequenceSide, cache: Array) -> tuple[Array, int]:
    """A mask without columns past the last key of a paged cache, and the number of keys it covers.

    A mask may cover only the first keys (the others are excluded). A single column broadcasts.
    """
    columns = array.shape[-1] if array.ndim else 1
    if columns == 1:
        return array, keys.most
    if keys.pages is not None and keys.most < columns <= keys.pages.shape[1] * cache.shape[2]:
        return array[..., : keys.most], keys.most
    return array, min(columns, keys.most)


def padded_mask(array: Array, columns: int) -> Array:
    """A copy of a mask that excludes the keys it does not cover; of types that are no mask's, zeros."""
    whole = np.zeros((*array.shape[:-1], columns), array.dtype)
    if float_dtype(array.dtype) is not None:
        whole[...] = -np.inf
    whole[..., : array.shape[-1]] = array
    return whole


def _real_numbers(value: Any, name: str) -> Array:
    array = as_array(value, name)
    if array.dtype.kind not in "iufV" or (array.dtype.kind == "V" and float_dtype(array.dtype) is None):
        raise AttentionDtype(name=name, found=array.dtype, required="real numbers")
    return array


def head_vector(value: Any, name: str, heads: int, acc: DType) -> Array:
    """Slopes or sinks, contiguous, of the type of sums."""
    array = _real_numbers(value, name)
    if array.ndim and array.shape != (heads,):
        raise HeadVectorShape(name=name, found=array.shape, required=(heads,))
    return contiguous(array if array.ndim else np.broadcast_to(array, (heads,)), acc.numpy)


def token_scales(value: Any, name: str, operands: AttentionOperands, keys: SequenceSide, acc: DType) -> Array:
    """Scales of keys or values, contiguous (batch, kv_heads, keys), of the type of sums."""
    array, k = _real_numbers(value, name), operands.k
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


def parse_softcap(value: Any) -> float:
    """The cap of scores; 0 for none."""
    if value is None:
        return 0.0
    cap = real_number(value, "softcap")
    if not 0 <= cap < math.inf:
        raise InvalidScalar(name="softcap", found=shown(value), required="a non-negative number (0: no cap)")
    return cap
