"""Graphs mapped over chunks of rows and over the partitions of bags."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.calls.operands import Array
from tilewright.dask.library import DataNode, HighLevelGraph, Task, TaskRef, da, db, tokenize
from tilewright.dask.operands import chunked
from tilewright.errors import EmbedOutput, GraphInput, NotDaskArray, shown
from tilewright.errors.callers import named_in_errors
from tilewright.graph.builder import Graph
from tilewright.graph.compiled import CompiledGraph
from tilewright.graph.network import bind_sizes
from tilewright.graph.sizes import evaluate_shape

#: Makes the inputs of a graph of some items: an array, or a tuple or mapping of arrays, the rows in front.
Encode = Callable[[list[Any]], Any]


@named_in_errors
def embed(graph: Graph | CompiledGraph, x: Any, *, encode: Encode | None = None) -> Any:
    """Runs a graph of one output on every chunk of rows of an array, or on every partition of a bag; lazy.

    Parameters
    ----------
    graph : tilewright.Graph or CompiledGraph
        Pickled as its nodes and weights, sent to a worker once, and compiled there. The first axis of its
        inputs and of its output is that of rows, which must not depend on each other.
    x : dask.array.Array, array_like or dask.bag.Bag
        An array is the one input of the graph, in chunks along the first axis. With `encode` its items, or
        those of a bag, may be anything, such as sentences.
    encode : function of a list of items, optional
        Makes the inputs of these items: an array, or a tuple or mapping of arrays. Without it the items of a
        bag are arrays, each a row of the one input; rows of equal shapes run together.

    Returns
    -------
    dask.array.Array of the outputs' rows; of a bag a dask.bag.Bag of them, in the order of the items

    Raises
    ------
    EmbedOutput, GraphInput, NotDaskArray, UnknownChunks, ChunkType : before anything is computed, where there
    is no `encode`

    Examples
    --------
    >>> import dask.array as da, tilewright as tw, tilewright.dask as twd
    >>> g = tw.Graph()
    >>> g.output(g.relu(g.input("x", shape=("n", 2))))
    >>> twd.embed(g, da.ones((5, 2), chunks=(3, 2), dtype="f4")).compute().shape
    (5, 2)
    """
    run = graph.compile() if isinstance(graph, Graph) else graph
    if not isinstance(run, CompiledGraph):
        raise EmbedOutput(reason=f"found {shown(graph)}, must be a tilewright.Graph or a CompiledGraph")
    if len(run.network.outputs) != 1:
        raise EmbedOutput(reason=f"it has {len(run.network.outputs)} outputs, must have one")
    if run.network.written:
        raise EmbedOutput(reason="it writes to its inputs")
    if encode is not None and not callable(encode):
        raise EmbedOutput(reason=f"encode is {shown(encode)}, must be a function of a list of items")
    if encode is None and len(run.network.inputs) != 1:
        raise EmbedOutput(reason=f"it has {len(run.network.inputs)} inputs; pass encode, which makes them")
    if isinstance(x, db.Bag):
        return _of_bag(run, x, encode)
    return _of_array(run, x, encode)


def _of_array(run: CompiledGraph, x: Any, encode: Encode | None) -> Any:
    """The results of chunks of rows."""
    if encode is not None and not isinstance(x, da.Array):
        x = da.from_array(np.asarray(x), chunks=-1)
    x = chunked(x, "x")
    if not x.ndim:
        raise NotDaskArray(name="x", kind="an array without axes")
    x = x.rechunk(dict.fromkeys(range(1, x.ndim), -1)) if x.numblocks[1:] != (1,) * (x.ndim - 1) else x
    shape, dtype = _row(run, x, encode)
    token = tokenize(run, x.name, encode)
    name, graph_key = f"tilewright-embed-{token}", f"tilewright-graph-{tokenize(run)}"
    tasks: dict[Any, Any] = {graph_key: DataNode(graph_key, run)}
    for number in range(x.numblocks[0]):
        key, chunk = (name, number, *(0,) * len(shape)), TaskRef((x.name, number, *(0,) * (x.ndim - 1)))
        tasks[key] = Task(key, _rows, TaskRef(graph_key), chunk, encode, shape, dtype.name)
    layers = HighLevelGraph.from_collections(name, tasks, dependencies=[x])
    chunks = (x.chunks[0], *((size,) for size in shape))
    return da.Array(layers, name, chunks, meta=np.empty((0,) * (1 + len(shape)), dtype))


def _row(run: CompiledGraph, x: Any, encode: Encode | None) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and the type of a row of the result.

    Raises
    ------
    GraphInput, EmbedOutput
    """
    network = run.network
    kind = network.types[network.outputs[0][1]]
    sizes: dict[str, int] = {}
    if encode is None:
        ((_, node),) = network.inputs
        if x.dtype != node.dtype:
            raise GraphInput(name=node.label, reason=f"it has dtype {x.dtype}, must be {node.dtype}")
        sizes = dict(bind_sizes([(node.label, node.shape, x.shape)]))
        if not kind.shape or evaluate_shape(kind.shape, sizes)[0] != len(x):
            raise EmbedOutput(reason="its output does not have the rows of its input in front")
    if not kind.shape:
        raise EmbedOutput(reason="its output has no axis of rows")
    open_sizes = (
        {term for size in kind.shape[1:] for names, _ in size.terms for term in names} if not sizes else set()
    )
    if open_sizes:
        reason = f"the size {min(one.name for one in open_sizes)} of a row is not known before encode runs"
        raise EmbedOutput(reason=f"{reason}; map it over a bag")
    return evaluate_shape(kind.shape[1:], sizes), kind.dtype


def _of_bag(run: CompiledGraph, bag: Any, encode: Encode | None) -> Any:
    """The results of partitions of a bag."""
    token = tokenize(run, bag.name, encode)
    name, graph_key = f"tilewright-embed-{token}", f"tilewright-graph-{tokenize(run)}"
    tasks: dict[Any, Any] = {graph_key: DataNode(graph_key, run)}
    for number in range(bag.npartitions):
        key = (name, number)
        tasks[key] = Task(key, _items, TaskRef(graph_key), TaskRef((bag.name, number)), encode)
    layers = HighLevelGraph.from_collections(name, tasks, dependencies=[bag])
    return db.Bag(layers, name, bag.npartitions)


# --- what tasks compute ---------------------------------------------------------------------------


def _rows(
    run: CompiledGraph, chunk: Array, encode: Encode | None, shape: tuple[int, ...], dtype: str
) -> Array:
    """The rows of a chunk."""
    if not len(chunk):
        return np.empty((0, *shape), np.dtype(dtype))
    found = run(chunk) if encode is None else _encoded(run, list(chunk), encode)
    return np.asarray(found)


def _items(run: CompiledGraph, items: Any, encode: Encode | None) -> list[Any]:
    """The results of the items of a partition."""
    given = list(items)
    if not given:
        return []
    if encode is not None:
        return list(_encoded(run, given, encode))
    places: dict[Any, list[int]] = {}
    arrays = [np.asarray(item) for item in given]
    for at, array in enumerate(arrays):
        places.setdefault((array.shape, array.dtype.str), []).append(at)
    found: list[Any] = [None] * len(given)
    for own in places.values():
        for at, row in zip(own, run(np.stack([arrays[one] for one in own])), strict=True):
            found[at] = row
    return found


def _encoded(run: CompiledGraph, items: list[Any], encode: Encode) -> Array:
    """The results of items as `encode` hands them to the graph.

    Raises
    ------
    EmbedOutput : as many rows as items are required.
    """
    inputs = encode(items)
    if isinstance(inputs, Mapping):
        found = run(**inputs)
    elif isinstance(inputs, Sequence) and not isinstance(inputs, str):
        found = run(*inputs)
    else:
        found = run(inputs)
    if len(found) != len(items):
        raise EmbedOutput(reason=f"encode made {len(found)} rows of {len(items)} items")
    return np.asarray(found)
