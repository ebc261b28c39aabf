"""Sums over chunks of contracted axes, as chains of tasks with one accumulator for each chunk of the result.

A step of a chain takes the sum so far and a few pieces of each operand, copies the sum and adds all its
products to the copy in place (beta = 1). So no task writes to memory that the scheduler knows: a step may run
again, on another worker and while its input is being sent, and gives the same bits. Of partial results, one
for each chain is alive.

The order of additions is that of the contracted chunks, whatever the schedule: results do not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np

from tilewright.calls.operands import Array
from tilewright.dask.library import HighLevelGraph, Task, TaskRef, da, tokenize
from tilewright.dask.operands import Chunks, common_chunks
from tilewright.ops.einsum.public import einsum
from tilewright.ops.matmul.public import matmul
from tilewright.records import dataclass
from tilewright.typing import ActivationName

#: Pieces of each operand that one task adds. Copying the sum costs 6 % of one product of chunks of 1,024, of
#: eight 0.8 %; and there are half as many tasks as with four.
DEPTH = 8


@dataclass(frozen=True)
class ChainStep:
    """What one task of a chain computes.

    Attributes
    ----------
    subscripts : of an einsum of one piece of each operand; empty: matmul of two.
    operands : how many operands there are.
    acc, out : names of the types of the sum and of the result.
    activation : of the finished sum.
    """

    subscripts: str
    operands: int
    acc: str
    out: str
    activation: ActivationName | None = None


@dataclass(frozen=True)
class ChunkedContraction:
    """A sum over labels of products of operands in chunks, with a bias along the last label.

    Attributes
    ----------
    name : of the function, as tasks are named.
    labels, output : a character for each axis of each operand, and of the result.
    step : what a task computes.
    meta : an empty array of the result's type.
    depth : pieces of each operand in one task.
    replicas : into how many chains the sum of one chunk is cut; they are added in their order.
    skew : chunks along the last two axes of a worker's tile of the result. Chains of neighbouring tiles begin
        at different places of the sum, so that not all workers ask for the same chunk at once. 0: all begin
        at the first.
    """

    name: str
    labels: tuple[str, ...]
    output: str
    step: ChainStep
    meta: Array
    depth: int = DEPTH
    replicas: int = 1
    skew: tuple[int, int] = (0, 0)


def add_pieces(step: ChainStep, shape: tuple[int, ...], previous: Array | None, *pieces: Array) -> Array:
    """The sum so far, plus the products of some pieces of each operand, in memory of its own."""
    groups = [pieces[at : at + step.operands] for at in range(0, len(pieces), step.operands)]
    if previous is None and not groups:
        return np.zeros(shape, np.dtype(step.acc))
    total = np.empty(shape, np.dtype(step.acc)) if previous is None else np.array(previous, order="C")
    for number, group in enumerate(groups):
        _add_product(step, total, group, adds=previous is not None or number > 0)
    return total


def add_last_pieces(
    step: ChainStep, shape: tuple[int, ...], bias: Array | None, previous: Array | None, *pieces: Array
) -> Array:
    """The result of a chunk with one chain: the last step of its sum, then bias and activation."""
    return _finished(step, add_pieces(step, shape, previous, *pieces), bias)


def add_chains(step: ChainStep, bias: Array | None, *sums: Array) -> Array:
    """The result of a chunk from the sums of its chains, in their order."""
    total = np.array(sums[0], order="C")
    for other in sums[1:]:
        np.add(total, other, out=total)
    return _finished(step, total, bias)


def _add_product(step: ChainStep, total: Array, group: Sequence[Array], *, adds: bool) -> None:
    """Add one product to a sum, in place; without `adds` the product replaces it."""
    if total.dtype != np.bool_ and not step.subscripts:
        matmul(group[0], group[1], total, beta=int(adds))
    elif not adds:
        einsum(step.subscripts or "...ij,...jk->...ik", *group, out=total)
    else:
        found = einsum(step.subscripts or "...ij,...jk->...ik", *group, dtype=total.dtype)
        np.add(total, found, out=total)


def _finished(step: ChainStep, total: Array, bias: Array | None) -> Array:
    """A sum with bias and activation, which change it in place, in the type of the result.

    They are the epilogue of a product without depth, so that there is one meaning of each.
    """
    if bias is not None or step.activation is not None:
        nothing = np.zeros((*total.shape[:-1], 0), total.dtype), np.zeros((0, total.shape[-1]), total.dtype)
        matmul(*nothing, total, beta=1, bias=bias, activation=step.activation)
    return total.astype(np.dtype(step.out), copy=False)


def contract(
    operands: Sequence[Any], how: ChunkedContraction, *, bias: Any = None, fixed: Chunks | None = None
) -> Any:
    """The Dask array of a contraction.

    Parameters
    ----------
    operands : Dask arrays of known chunks.
    bias : a Dask array that broadcasts to the result, or None.
    fixed : chunks of labels that are decided.
    """
    arrays, chunks = common_chunks(operands, how.labels, fixed)
    bias = None if bias is None else _with_chunks_of_result(bias, [chunks[label] for label in how.output])
    names = [array.name for array in (*arrays, *(() if bias is None else (bias,)))]
    token = tokenize(how.step, how.labels, how.output, how.depth, how.replicas, how.skew, names)
    name = f"tilewright-{how.name}-{token}"
    graph = dict(_ChainGraph(name, arrays, how, bias, chunks).tasks())
    inputs = [*arrays, *(() if bias is None else (bias,))]
    layers = HighLevelGraph.from_collections(name, graph, dependencies=inputs)
    return da.Array(layers, name, tuple(chunks[label] for label in how.output), meta=how.meta)


def _with_chunks_of_result(bias: Any, chunks: Sequence[tuple[int, ...]]) -> Any:
    """A bias with the chunks of the result's last axes; axes of length 1 repeat."""
    wanted = {}
    for axis, sizes in enumerate(chunks[len(chunks) - bias.ndim :]):
        wanted[axis] = (1,) if bias.shape[axis] == 1 else sizes
    return bias.rechunk(wanted) if wanted else bias


@dataclass(frozen=True)
class _ChainGraph:
    """The tasks of one contraction.

    Attributes
    ----------
    name : of the result.
    arrays : operands with equal chunks along equal labels; `bias` with those of the result, or None.
    chunks : of each label.
    """

    name: str
    arrays: Sequence[Any]
    how: ChunkedContraction
    bias: Any
    chunks: Chunks

    def tasks(self) -> Iterator[tuple[Any, Any]]:
        """Keys and tasks: for each chunk of the result the steps of its chains, then the chunk itself."""
        how, inner = self.how, list(self._inner())
        for place in product(*(range(len(self.chunks[label])) for label in how.output)):
            at = dict(zip(how.output, place, strict=True))
            shape = tuple(self.chunks[label][number] for label, number in at.items())
            chains = [[]] if 0 in shape else self._chains(inner, place)
            batches = [list(self._batches(at, chain)) for chain in chains]
            key, bias = (self.name, *place), self._bias_of(place)
            if len(batches) == 1:
                steps = dict(self._steps(place, shape, batches[0][:-1]))
                yield from steps.items()
                previous = TaskRef(next(reversed(steps))) if steps else None
                yield key, Task(key, add_last_pieces, how.step, shape, bias, previous, *batches[0][-1])
                continue
            sums = []
            for replica, own in enumerate(batches):
                steps = dict(self._steps((*place, replica), shape, own))
                yield from steps.items()
                sums.append(TaskRef(next(reversed(steps))))
            yield key, Task(key, add_chains, how.step, bias, *sums)

    def _inner(self) -> Iterator[dict[str, int]]:
        """The places of chunks along contracted labels, those without elements left out."""
        terms = "".join(self.how.labels)
        labels = [label for label in dict.fromkeys(terms) if label not in self.how.output]
        for place in product(*(range(len(self.chunks[label])) for label in labels)):
            at = dict(zip(labels, place, strict=True))
            if all(self.chunks[label][number] for label, number in at.items()):
                yield at

    def _chains(
        self, inner: Sequence[dict[str, int]], place: tuple[int, ...]
    ) -> list[Sequence[dict[str, int]]]:
        """The places that each chain of a chunk of the result adds up, in its order."""
        count = max(1, min(self.how.replicas, len(inner)))
        bounds = [len(inner) * number // count for number in range(count + 1)]
        chains = [inner[low:high] for low, high in pairwise(bounds)]
        if 0 in self.how.skew:
            return list(chains)
        shift = sum(at // tile for at, tile in zip(place[-2:], self.how.skew, strict=True))
        starts = [shift % max(len(chain), 1) for chain in chains]
        return [[*chain[start:], *chain[:start]] for chain, start in zip(chains, starts, strict=True)]

    def _batches(self, at: dict[str, int], chain: Sequence[dict[str, int]]) -> Iterator[list[Any]]:
        """References to the pieces that each task of a chain takes."""
        for first in range(0, max(len(chain), 1), self.how.depth):
            batch = []
            for one in chain[first : first + self.how.depth]:
                terms = zip(self.arrays, self.how.labels, strict=True)
                batch += [TaskRef(_key(array, term, at | one)) for array, term in terms]
            yield batch

    def _steps(
        self, place: tuple[int, ...], shape: tuple[int, ...], batches: Sequence[Sequence[Any]]
    ) -> Iterator[tuple[Any, Any]]:
        """Keys and tasks of one chain, each of which depends on the one before it."""
        name, previous = f"tilewright-{self.how.name}-sum-{self.name.rpartition('-')[2]}", None
        for number, batch in enumerate(batches):
            key = (name, number, *place)
            yield key, Task(key, add_pieces, self.how.step, shape, previous, *batch)
            previous = TaskRef(key)

    def _bias_of(self, place: tuple[int, ...]) -> Any:
        """The reference to the bias of a chunk of the result."""
        if self.bias is None:
            return None
        own = place[len(place) - self.bias.ndim :]
        return TaskRef((self.bias.name, *_numbers(own, self.bias)))


def _key(array: Any, term: str, at: dict[str, int]) -> tuple[Any, ...]:
    """The key of an operand's piece."""
    return (array.name, *_numbers([at[label] for label in term], array))


def _numbers(place: Sequence[int], array: Any) -> list[int]:
    """The numbers of an operand's chunk; an axis of one chunk of length 1 repeats."""
    return [at if count > 1 else 0 for at, count in zip(place, array.numblocks, strict=True)]
