"""`softmax`, `layer_norm` and `rms_norm` of Dask arrays, also along axes in chunks.

Along chunked axes each chunk has a small table of numbers for each line: its largest element and the sum of
exponentials, or its count, mean and sum of squares about the mean. The tables of a line are merged in the
order of the chunks; then each chunk is normalised by what was merged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from tilewright.calls.foreign import as_array
from tilewright.calls.operands import Array
from tilewright.dask.library import HighLevelGraph, Task, TaskRef, da, tokenize
from tilewright.dask.operands import chunked
from tilewright.errors import NormOperandShape
from tilewright.errors.callers import named_in_errors
from tilewright.ops.elementwise.public import exp
from tilewright.ops.rows.call import check_axes, check_eps
from tilewright.ops.rows.public import layer_norm as layer_norm_of_arrays
from tilewright.ops.rows.public import rms_norm as rms_norm_of_arrays
from tilewright.ops.rows.public import softmax as softmax_of_arrays
from tilewright.ops.rows.public_reductions import max as max_of_arrays
from tilewright.ops.rows.public_reductions import sum as sum_of_arrays
from tilewright.records import dataclass
from tilewright.spec.dtype import parse_dtype


@dataclass(frozen=True)
class Norm:
    """What a norm computes: axes, number of elements of a line, eps, and whether means are subtracted."""

    axes: tuple[int, ...]
    count: int
    eps: float
    centred: bool


@named_in_errors
def softmax(x: Any, axis: int | tuple[int, ...] = -1) -> Any:
    """`tilewright.softmax` of a Dask array, along axes that may be in chunks; lazy.

    Parameters
    ----------
    x : dask.array.Array or array_like
    axis : int or tuple of int

    Returns
    -------
    dask.array.Array of x's shape and chunks

    Raises
    ------
    NotDaskArray, UnknownChunks, ChunkType, and what `tilewright.softmax` raises; before anything is computed.

    Examples
    --------
    >>> import dask.array as da, tilewright.dask as twd
    >>> twd.softmax(da.zeros(4, chunks=2)).compute()
    array([0.25, 0.25, 0.25, 0.25])
    """
    x = chunked(x, "x")
    axes = check_axes("softmax", axis, x.ndim)
    meta = softmax_of_arrays(np.zeros((1,) * x.ndim, x.dtype))
    if all(x.numblocks[one] == 1 for one in axes):
        return _by_chunk("softmax", x, meta, softmax_of_arrays, axes)
    acc = _wide(meta.dtype)
    stats = _Lines("softmax", x, axes).merged(_exponentials, _merged_exponentials, (axes, acc.name))
    return stats.applied(_softmax_of_chunk, (acc.name, meta.dtype.name), meta)


@named_in_errors
def layer_norm(
    x: Any, weight: Any = None, bias: Any = None, axis: int | tuple[int, ...] = -1, eps: float = 1e-5
) -> Any:
    """`tilewright.layer_norm` of a Dask array, along axes that may be in chunks; lazy.

    Parameters
    ----------
    x : dask.array.Array or array_like
    weight, bias : array_like, optional, of the shape of the normalised axes
    axis, eps : as of `tilewright.layer_norm`.

    Returns
    -------
    dask.array.Array of x's shape and chunks

    Raises
    ------
    NotDaskArray, UnknownChunks, ChunkType, NormOperandShape, and what `tilewright.layer_norm` raises; before
    anything is computed.
    """
    return _normalised("layer_norm", x, {"weight": weight, "bias": bias}, axis, eps)


@named_in_errors
def rms_norm(x: Any, weight: Any = None, axis: int | tuple[int, ...] = -1, eps: float | None = None) -> Any:
    """`tilewright.rms_norm` of a Dask array, along axes that may be in chunks; lazy.

    Parameters
    ----------
    x, weight, axis : as of `layer_norm`.
    eps : float, optional
        As of `tilewright.rms_norm`.

    Returns
    -------
    dask.array.Array of x's shape and chunks

    Raises
    ------
    As `layer_norm`.
    """
    return _normalised("rms_norm", x, {"weight": weight}, axis, eps)


def _normalised(name: str, x: Any, given: dict[str, Any], axis: Any, eps: Any) -> Any:
    """A norm, whole chunks by kernels and lines of several chunks by tables."""
    x = chunked(x, "x")
    axes = check_axes(name, axis, x.ndim)
    lengths = tuple(x.shape[one] for one in axes)
    affine = {key: None if value is None else as_array(value, key) for key, value in given.items()}
    for key, value in affine.items():
        if value is not None and value.shape != lengths:
            raise NormOperandShape(name=key, found=value.shape, required=lengths)
    centred = name == "layer_norm"
    function: Any = layer_norm_of_arrays if centred else rms_norm_of_arrays
    small = {
        key: None if value is None else np.ones((1,) * len(axes), value.dtype)
        for key, value in affine.items()
    }
    meta = function(np.zeros((1,) * x.ndim, x.dtype), *small.values(), axis=axes, eps=eps)
    if all(x.numblocks[one] == 1 for one in axes):
        return _by_chunk(name, x, meta, function, *affine.values(), axes, eps)
    eps = check_eps(name, eps, parse_dtype(meta.dtype))
    norm, acc = Norm(axes, int(np.prod(lengths)), eps, centred), _wide(meta.dtype)
    stats = _Lines(name, x, axes).merged(_moments, _merged_moments, (norm, acc.name))
    return stats.applied(_norm_of_chunk, (norm, acc.name, meta.dtype.name), meta, tuple(affine.values()))


def _wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type that lines are computed in."""
    return np.dtype(np.float64 if dtype == np.float64 else np.float32)


def _by_chunk(name: str, x: Any, meta: Array, function: Callable[..., Any], *arguments: Any) -> Any:
    """A function of each chunk, whose lines are whole."""
    return da.map_blocks(
        _called, x, function=function, arguments=arguments, meta=meta[:0], dtype=meta.dtype,
        name=f"tilewright-{name}-{tokenize(x.name, arguments)}",
    )  # fmt: skip


def _called(chunk: Array, *, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """The function of a chunk; of no elements the chunk itself."""
    return function(chunk, *arguments)


@dataclass(frozen=True)
class _Stats:
    """The merged tables of lines: tasks and their name."""

    lines: _Lines
    name: str
    graph: dict[Any, Any]

    def applied(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        meta: Array,
        affine: Sequence[Any] = (),
    ) -> Any:
        """The Dask array of chunks that are normalised by their tables."""
        x, axes = self.lines.x, self.lines.axes
        token = tokenize(self.name, arguments, affine)
        name = f"tilewright-{self.lines.function}-{token}"
        graph = dict(self.graph)
        offsets = [np.cumsum((0, *sizes)) for sizes in x.chunks]
        for place in product(*map(range, x.numblocks)):
            own = tuple(slice(offsets[one][place[one]], offsets[one][place[one] + 1]) for one in axes)
            parts = [None if value is None else value[own] for value in affine]
            key, line = (name, *place), tuple(0 if one in axes else at for one, at in enumerate(place))
            table = TaskRef((self.name, *line))
            graph[key] = Task(key, function, *arguments, TaskRef((x.name, *place)), table, *parts)
        layers = HighLevelGraph.from_collections(name, graph, dependencies=[x])
        return da.Array(layers, name, x.chunks, meta=meta[:0])


@dataclass(frozen=True)
class _Lines:
    """Lines of an array along axes in chunks.

    Attributes
    ----------
    function : the name of what is computed.
    """

    function: str
    x: Any
    axes: tuple[int, ...]

    def merged(
        self, table: Callable[..., Any], merge: Callable[..., Any], arguments: tuple[Any, ...]
    ) -> _Stats:
        """The tables of all lines: one of each chunk, merged in the order of the chunks."""
        x, token = self.x, tokenize(self.function, self.x.name, self.axes, arguments)
        names = [f"tilewright-{self.function}-{word}-{token}" for word in ("chunk", "line")]
        graph: dict[Any, Any] = {}
        of_lines: dict[Any, list[Any]] = {}
        for place in product(*map(range, x.numblocks)):
            line = tuple(0 if axis in self.axes else at for axis, at in enumerate(place))
            own = of_lines.setdefault((names[1], *line), [])
            if all(x.chunks[axis][place[axis]] for axis in self.axes):
                key = (names[0], *place)
                graph[key] = Task(key, table, *arguments, TaskRef((x.name, *place)))
                own.append(TaskRef(key))
        for key, tables in of_lines.items():
            graph[key] = Task(key, merge, *tables)
        return _Stats(self, names[1], graph)


# --- what tasks compute ---------------------------------------------------------------------------


def _exponentials(axes: tuple[int, ...], acc: str, chunk: Array) -> Array:
    """The largest element of each line of a chunk, and the sum of exponentials beside it."""
    wide = chunk.astype(np.dtype(acc), copy=False)
    largest = max_of_arrays(wide, axis=axes, keepdims=True)
    with np.errstate(invalid="ignore"):
        beside = np.where(np.isneginf(largest), 0, largest)  # a chunk of -inf adds nothing to other chunks
        total = sum_of_arrays(exp(wide - beside), axis=axes, keepdims=True)
    return np.stack((largest, total))


def _merged_exponentials(*tables: Array) -> Array:
    """The tables of chunks of a line, merged."""
    largest = np.maximum.reduce([table[0] for table in tables]) if tables else np.empty(())
    total = np.zeros_like(largest)
    with np.errstate(invalid="ignore"):
        for table in tables:
            total += np.where(np.isneginf(table[0]), 0, table[1] * np.exp(table[0] - largest))
    return np.stack((largest, total))


def _softmax_of_chunk(acc: str, out: str, chunk: Array, table: Array) -> Array:
    """The softmax of a chunk by the table of its lines."""
    if not chunk.size:
        return np.empty(chunk.shape, np.dtype(out))
    with np.errstate(invalid="ignore", divide="ignore"):
        found = exp(chunk.astype(np.dtype(acc), copy=False) - table[0])
        found /= table[1]
    return found.astype(np.dtype(out), copy=False)


def _moments(norm: Norm, acc: str, chunk: Array) -> Array:
    """Count, mean and sum of squares about the mean of each line of a chunk; without means about 0."""
    wide = chunk.astype(np.dtype(acc), copy=False)
    count = int(np.prod([chunk.shape[axis] for axis in norm.axes]))
    shape = tuple(1 if axis in norm.axes else size for axis, size in enumerate(chunk.shape))
    mean = np.zeros(shape, np.float64)
    if norm.centred:
        mean = np.asarray(sum_of_arrays(wide, axis=norm.axes, keepdims=True), np.float64) / count
    away = wide - mean.astype(wide.dtype)
    squares = np.asarray(sum_of_arrays(away * away, axis=norm.axes, keepdims=True), np.float64)
    if norm.centred:  # the mean that was subtracted was rounded
        rounded = mean.astype(wide.dtype)
        squares -= count * (mean - rounded) ** 2
    return np.stack((np.full(shape, float(count)), mean, squares))


def _merged_moments(*tables: Array) -> Array:
    """The moments of a line from those of its chunks (Chan, Golub and LeVeque, 1979)."""
    if not tables:
        return np.empty(())
    count, mean, squares = tables[0]
    for more, other, own in tables[1:]:
        together, between = count + more, other - mean
        mean = mean + between * (more / together)
        squares = squares + own + between * between * (count * more / together)
        count = together
    return np.stack((count, mean, squares))


def _norm_of_chunk(
    norm: Norm, acc: str, out: str, chunk: Array, table: Array, *affine: Array | None
) -> Array:
    """The norm of a chunk by the moments of its lines, which of `rms_norm` are about 0."""
    if not chunk.size:
        return np.empty(chunk.shape, np.dtype(out))
    _, mean, squares = table
    spread = 1 / np.sqrt(squares / norm.count + norm.eps)
    wide = chunk.astype(np.dtype(acc), copy=False)
    found = (wide - mean.astype(acc)) * spread.astype(acc) if norm.centred else wide * spread.astype(acc)
    shape = [size if axis in norm.axes else 1 for axis, size in enumerate(chunk.shape)]
    weight, bias = (*affine, None)[:2]
    if weight is not None:
        found *= weight.reshape(shape).astype(acc, copy=False)
    if bias is not None:
        found += bias.reshape(shape).astype(acc, copy=False)
    return found.astype(np.dtype(out), copy=False)
