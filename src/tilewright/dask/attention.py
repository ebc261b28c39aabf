"""Attention of Dask arrays: states of chunks of queries and of keys, merged as a tree in a fixed order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, Unpack

import numpy as np

from tilewright.calls.foreign import as_array
from tilewright.calls.operands import Array
from tilewright.dask.library import HighLevelGraph, Task, TaskRef, da, tokenize
from tilewright.dask.operands import chunked, one_chunk, starts
from tilewright.errors import (
    AttentionAxes,
    AttentionBatch,
    HeadSizeMismatch,
    HeadsMismatch,
    HeadVectorShape,
    InvalidQueryOffset,
    KeysMismatch,
    MaskShape,
    shown,
)
from tilewright.errors.callers import check_keywords, named_in_errors
from tilewright.ops.attention.bounds import FARTHEST, Bounds
from tilewright.ops.attention.operands import AttentionLayout, Keywords
from tilewright.ops.attention.public import ScoreKeywords, attention_partial
from tilewright.ops.attention.public import attention as attention_of_arrays
from tilewright.ops.attention.state import AttentionState, merge_attention
from tilewright.records import dataclass
from tilewright.spec.arguments import as_integer, check_flag, parse_choice
from tilewright.typing import AttentionLayoutName

#: States that one task merges.
FAN_IN = 4
_AXES = "(batch, heads, sequence, d), or with layout='bshd' (batch, sequence, heads, d)"


@dataclass(frozen=True)
class BlockOptions:
    """What attention of one chunk of queries to one of keys computes.

    Attributes
    ----------
    q_offset : position of the first query among the keys of the chunk; None where positions have no effect.
    mask, sinks, slopes : whether these follow q, k and v.
    """

    layout: AttentionLayoutName
    scale: float | None
    softcap: float | None
    causal: bool
    window: tuple[int | None, int | None] | None
    q_offset: int | None = None
    mask: bool = False
    sinks: bool = False
    slopes: bool = False


def block_state(options: BlockOptions, q: Array, k: Array, v: Array, *further: Array) -> Array:
    """The packed state of a chunk of queries and a chunk of keys."""
    rest = iter(further)
    named: dict[str, Any] = {"scale": options.scale, "softcap": options.softcap, "layout": options.layout}
    named["causal"], named["window"], named["q_offset"] = options.causal, options.window, options.q_offset
    named["mask"] = next(rest) if options.mask else None
    named["sinks"] = next(rest) if options.sinks else None
    named["alibi_slopes"] = next(rest) if options.slopes else None
    return attention_partial(q, k, v, **named).packed()


def merge_states(layout: str, *packed: Array) -> Array:
    """Packed states, merged in their order."""
    states = [AttentionState.from_packed(one, layout=layout) for one in packed]
    return merge_attention(states).packed() if len(states) > 1 else packed[0]


def result_of(layout: str, dtype: str, *packed: Array) -> Array:
    """The result of the last states, in the type of the queries."""
    return np.ascontiguousarray(merge_states(layout, *packed)[..., :-2], np.dtype(dtype))


def lse_of(layout: str, *packed: Array) -> Array:
    """The logarithm of the sum of exponentials of the last states."""
    return AttentionState.from_packed(merge_states(layout, *packed), layout=layout).lse


@named_in_errors
def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    return_lse: bool = False,
    **keywords: Unpack[ScoreKeywords],
) -> Any:
    """`tilewright.attention` of Dask arrays whose queries, keys, heads and batches are in chunks; lazy.

    Parameters
    ----------
    q, k, v : dask.array.Array or array_like, of four axes
        As of `tilewright.attention`. The last axis becomes one chunk; v takes the chunks of k, heads of q
        those that belong to the heads of k.
    return_lse : as of `tilewright.attention`.
    keywords : mask, causal, scale, window, q_offset, softcap, alibi_slopes, sinks and layout, as of
        `tilewright.attention`. The mask may be a Dask array; q_offset is one number, the same for all
        sequences. Chunks of keys that no query of a chunk sees are not computed.

    Returns
    -------
    dask.array.Array, or two of them if `return_lse`
        States of chunks of keys are merged `FAN_IN` at a time, neighbours first: the same bits whatever the
        workers and the order in which tasks run.

    Raises
    ------
    NotDaskArray, UnknownChunks, ChunkType, and what `tilewright.attention` raises; before anything runs.

    Examples
    --------
    >>> import dask.array as da, tilewright.dask as twd
    >>> q, k = da.ones((1, 2, 3, 4), chunks=2, dtype="f4"), da.ones((1, 2, 9, 4), chunks=3, dtype="f4")
    >>> twd.attention(q, k, k).compute()[0, 0, 0]
    array([1., 1., 1., 1.], dtype=float32)
    """
    known = [name for name in Keywords._fields if name in ScoreKeywords.__optional_keys__]
    check_keywords("attention", keywords, (*known, "return_lse"))
    given = Keywords(**keywords)
    order = parse_choice(AttentionLayout, given.layout, "layout")
    operands = [chunked(array, name) for name, array in (("q", q), ("k", k), ("v", v))]
    named = {name: getattr(given, name) for name in ("causal", "scale", "window", "softcap", "layout")}
    mask = None if given.mask is None else chunked(given.mask, "mask")
    sizes = _checked(operands, order)
    with_lse = check_flag(return_lse, "return_lse")
    vectors = ("alibi_slopes", "sinks")
    own = {name: _head_vector(getattr(given, name), name, sizes.heads) for name in vectors}
    metas = _metas(operands, mask, sizes, named, own)
    bounds = Bounds.parse(given.causal, given.window)
    base = _base(given.q_offset, bounds, sizes)
    causal = given.causal is not False
    plain = not causal and given.window is None and given.alibi_slopes is None
    place = None if plain else base
    options = BlockOptions(order.value, given.scale, given.softcap, causal, given.window, place)
    graph = _AttentionGraph(*_with_chunks(operands, order), mask, own, options, bounds, order)
    return graph.results(metas, with_lse=with_lse)


@dataclass(frozen=True)
class _Sizes:
    """Sizes of attention."""

    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int


def _checked(operands: Sequence[Any], order: AttentionLayout) -> _Sizes:
    """The sizes of operands that fit each other.

    Raises
    ------
    AttentionAxes, KeysMismatch, AttentionBatch, HeadsMismatch, HeadSizeMismatch
    """
    for name, array in zip("qkv", operands, strict=True):
        if array.ndim != len("bhsd"):
            raise AttentionAxes(name=name, found=array.shape, required=4, layout=_AXES)
    q, k, v = operands
    if k.shape[:-1] != v.shape[:-1]:
        raise KeysMismatch(k=k.shape, v=v.shape)
    if q.shape[-1] != k.shape[-1]:
        raise HeadSizeMismatch(found=q.shape[-1], required=k.shape[-1])
    heads, rows = _places(order)
    if k.shape[0] != q.shape[0] and 1 not in (k.shape[0], q.shape[0]):
        raise AttentionBatch(name="k", found=k.shape[0], required=q.shape[0])
    sizes = _Sizes(max(q.shape[0], k.shape[0]), q.shape[heads], k.shape[heads], q.shape[rows], k.shape[rows])
    if sizes.heads % sizes.kv_heads if sizes.kv_heads else sizes.heads:
        raise HeadsMismatch(heads=sizes.heads, kv_heads=sizes.kv_heads, layout=order.value)
    return sizes


def _places(order: AttentionLayout) -> tuple[int, int]:
    """The axes of heads and of queries or keys."""
    return (1, 2) if order is AttentionLayout.BHSD else (2, 1)


def _head_vector(value: Any, name: str, heads: int) -> Array | None:
    """Numbers of each head.

    Raises
    ------
    HeadVectorShape
    """
    if value is None:
        return None
    array = as_array(value, name)
    if array.shape not in ((), (heads,)):
        raise HeadVectorShape(name=name, found=array.shape, required=(heads,))
    return np.broadcast_to(array, (heads,))


def _metas(
    operands: Sequence[Any], mask: Any, sizes: _Sizes, named: dict[str, Any], vectors: dict[str, Any]
) -> tuple[Array, Array]:
    """Empty results, of the types that attention of one query and one key has; it checks the options.

    Raises
    ------
    MaskShape, and what `tilewright.attention` raises
    """
    order, small = parse_choice(AttentionLayout, named["layout"], "layout"), []
    for array, heads in zip(operands, (sizes.heads, sizes.kv_heads, sizes.kv_heads), strict=True):
        shape = (1, heads, 1) if order is AttentionLayout.BHSD else (1, 1, heads)
        small.append(np.zeros((*shape, array.shape[-1]), array.dtype))
    required = (sizes.batch, sizes.heads, sizes.queries, sizes.keys)
    if mask is not None:
        try:
            whole = np.broadcast_shapes(mask.shape, required)
        except ValueError:
            whole = ()
        if whole != required:
            raise MaskShape(found=mask.shape, required=required)
        named = named | {"mask": np.zeros((1, 1), mask.dtype)}
    function: Any = attention_of_arrays
    out, lse = function(*small, return_lse=True, **named, **vectors)
    return np.empty((0,) * 4, out.dtype), np.empty((0,) * 3, lse.dtype)


def _base(q_offset: Any, bounds: Bounds, sizes: _Sizes) -> int:
    """The position of the first query among all keys.

    Raises
    ------
    InvalidQueryOffset
    """
    if q_offset is None:
        return 0 if bounds.upper_left else sizes.keys - sizes.queries
    found = as_integer(q_offset)
    if found is None or abs(found) > FARTHEST:
        raise InvalidQueryOffset(reason=f" is {shown(q_offset)}", required="an integer")
    return found


def _with_chunks(operands: Sequence[Any], order: AttentionLayout) -> tuple[Any, Any, Any]:
    """Queries, keys and values whose chunks belong to each other."""
    q, k, v = (one_chunk(array, [array.ndim - 1]) for array in operands)
    heads, rows = _places(order)
    group = q.shape[heads] // max(k.shape[heads], 1)
    q = q.rechunk({heads: tuple(size * group for size in k.chunks[heads])})
    if k.shape[0] == q.shape[0]:
        k = k.rechunk({0: q.chunks[0]})
    v = v.rechunk({0: k.chunks[0], heads: k.chunks[heads], rows: k.chunks[rows]})
    return q, k, v


@dataclass(frozen=True)
class _AttentionGraph:
    """The tasks of attention.

    Attributes
    ----------
    q, k, v : with chunks that belong to each other.
    mask : a Dask array or None.
    vectors : slopes and sinks of all heads, or None.
    options : of all chunks; `q_offset` is the position of the first query among all keys.
    """

    q: Any
    k: Any
    v: Any
    mask: Any
    vectors: Mapping[str, Array | None]
    options: BlockOptions
    bounds: Bounds
    order: AttentionLayout

    def results(self, metas: tuple[Array, Array], *, with_lse: bool) -> Any:
        """The Dask arrays."""
        mask = self._chunked_mask()
        inputs = [self.q, self.k, self.v, *(() if mask is None else (mask,))]
        vectors = [self.vectors[name] for name in sorted(self.vectors)]
        token = tokenize(
            [array.name for array in inputs], self.options, self.bounds, self.order.value, vectors
        )
        names = [f"tilewright-attention-{word}{token}" for word in ("", "lse-")]
        heads, rows = _places(self.order)
        graph: dict[Any, Any] = {}
        batches = max((self.q.chunks[0], self.k.chunks[0]), key=sum)
        counts = len(batches), self.q.numblocks[heads], self.q.numblocks[rows]
        for place in product(*map(range, counts)):
            states = dict(self._states(token, place, mask))
            graph |= states
            last, tree = _merged(token, place, self.order.value, list(states))
            graph |= tree
            at = (place[0], place[1], place[2]) if heads == 1 else (place[0], place[2], place[1])
            key, root = (names[0], *at, 0), [TaskRef(one) for one in last]
            if with_lse and len(root) > 1:
                one = (f"tilewright-attention-merge-{token}", -1, *place)
                graph[one] = Task(one, merge_states, self.order.value, *root)
                root = [TaskRef(one)]
            graph[key] = Task(key, result_of, self.order.value, metas[0].dtype.name, *root)
            if with_lse:
                lse = (names[1], *place)
                graph[lse] = Task(lse, lse_of, self.order.value, *root)
        layers = HighLevelGraph.from_collections(names[0], graph, dependencies=inputs)
        chunks = (batches, self.q.chunks[1], self.q.chunks[2], (self.v.shape[-1],))
        out = da.Array(layers, names[0], chunks, meta=metas[0])
        if not with_lse:
            return out
        layers = HighLevelGraph(layers.layers | {names[1]: {}}, layers.dependencies | {names[1]: {names[0]}})
        return out, da.Array(
            layers, names[1], (batches, self.q.chunks[heads], self.q.chunks[rows]), meta=metas[1]
        )

    def _chunked_mask(self) -> Any:
        """The mask with the chunks of scores; axes of length 1 repeat."""
        if self.mask is None:
            return None
        heads, rows = _places(self.order)
        batches = max((self.q.chunks[0], self.k.chunks[0]), key=sum)
        scores = (batches, self.q.chunks[heads], self.q.chunks[rows], self.k.chunks[rows])
        own = scores[len(scores) - self.mask.ndim :]
        wanted = ((1,) if size == 1 else chunks for size, chunks in zip(self.mask.shape, own, strict=True))
        return self.mask.rechunk(tuple(wanted)) if self.mask.ndim else self.mask

    def _states(self, token: str, place: tuple[int, ...], mask: Any) -> Iterator[tuple[Any, Any]]:
        """Keys and tasks of the states of a chunk of queries, for each chunk of keys that it sees."""
        batch, head, row = place
        heads, rows = _places(self.order)
        first_query = starts(self.q.chunks[rows])[row]
        queries = range(first_query, first_query + self.q.chunks[rows][row])
        head_start = starts(self.q.chunks[heads])[head]
        own_heads = slice(head_start, head_start + self.q.chunks[heads][head])
        begins, sizes = starts(self.k.chunks[rows]), self.k.chunks[rows]
        seen = [at for at, size in enumerate(sizes) if size and self._sees(queries, begins[at], size)]
        for number, at in enumerate(seen or [0]):
            offset = self.options.q_offset
            own = None if offset is None else offset + first_query - begins[at]
            options, further = replace(self.options, q_offset=own), []
            if mask is not None:
                further.append(_block(mask, (batch, head, row, at)[4 - mask.ndim :]))
            sinks, slopes = self.vectors["sinks"], self.vectors["alibi_slopes"]
            if sinks is not None and number == 0:
                further.append(sinks[own_heads])
            if slopes is not None:
                further.append(slopes[own_heads])
            options = replace(
                options,
                mask=mask is not None,
                sinks=sinks is not None and number == 0,
                slopes=slopes is not None,
            )
            operands = (
                self._of(self.q, batch, head, row),
                *(self._of(x, batch, head, at) for x in (self.k, self.v)),
            )
            key = (f"tilewright-attention-partial-{token}", *place, at)
            yield key, Task(key, block_state, options, *operands, *further)

    def _sees(self, queries: range, first_key: int, keys: int) -> bool:
        """Return whether any query of a chunk sees any key of a chunk."""
        base = self.options.q_offset
        if base is None or not queries:
            return True
        right, left = self.bounds.right, self.bounds.left
        too_late = right is not None and first_key > base + queries[-1] + right
        too_early = left is not None and first_key + keys - 1 < base + queries[0] - left
        return not (too_late or too_early)

    def _of(self, array: Any, batch: int, head: int, row: int) -> Any:
        """The reference to a chunk of an operand."""
        at = (batch, head, row, 0) if _places(self.order)[0] == 1 else (batch, row, head, 0)
        return _block(array, at)


def _block(array: Any, place: Sequence[int]) -> Any:
    """The reference to a chunk; axes of one chunk repeat."""
    return TaskRef(
        (array.name, *(at if count > 1 else 0 for at, count in zip(place, array.numblocks, strict=True)))
    )


def _merged(
    token: str, place: tuple[int, ...], layout: str, keys: Sequence[Any]
) -> tuple[list[Any], dict[Any, Any]]:
    """The keys of the last states of a tree, `FAN_IN` at most, and the tasks that merge the others."""
    tasks: dict[Any, Any] = {}
    level = list(keys)
    depth = 0
    while len(level) > FAN_IN:
        groups = [level[first : first + FAN_IN] for first in range(0, len(level), FAN_IN)]
        level = []
        for number, group in enumerate(groups):
            key = (f"tilewright-attention-merge-{token}", depth, *place, number)
            tasks[key] = Task(key, merge_states, layout, *(TaskRef(one) for one in group))
            level.append(key)
        depth += 1
    return level, tasks
