"""Where the values of a run are in memory: views, buffers that live only as long as they are read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tilewright.calls.operands import Array
from tilewright.errors import SizeOverflow
from tilewright.graph.network import Network
from tilewright.graph.nodes.base import Node
from tilewright.graph.nodes.movement import ReshapeNode
from tilewright.graph.nodes.sources import ConstantNode, InputNode
from tilewright.graph.sizes import Sizes, evaluate_shape
from tilewright.records import dataclass

#: Buffers begin at multiples of this: a cache line.
ALIGNMENT = 64
#: Bytes of all values of a run, at most: what an index of 64 bits reaches.
_MOST_BYTES = 1 << 62


@dataclass
class ValueBuffer:
    """Memory of one value, or of several that follow each other in place.

    Attributes
    ----------
    first, last : the nodes that write it first and read it last.
    result : whether it is the memory of a result, which the caller gets.
    offset : where it is in the arena; that of a result is 0.
    """

    nbytes: int
    first: int
    last: int
    result: bool = False
    offset: int = 0


@dataclass(frozen=True)
class Placement:
    """Where one value is.

    Attributes
    ----------
    buffer : its memory, of which it is all; None for inputs, constants and views.
    view : whether it is a view of its first operand.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    buffer: ValueBuffer | None
    view: bool = False


@dataclass(frozen=True)
class MemoryPlan:
    """Where the values of a run are.

    Attributes
    ----------
    placements : by node.
    copied : names of results that are copied at the end, since other results or callers have their memory.
    arena_bytes : memory of everything but inputs, constants and results; the peak of the run.
    """

    placements: tuple[Placement, ...]
    copied: frozenset[int]
    arena_bytes: int


class _Planner:
    """One pass over the nodes, with arrays that stand for values: right shapes and strides, no memory."""

    def __init__(self, network: Network, inputs: Sequence[Array], sizes: Sizes) -> None:
        self._network, self._sizes = network, sizes
        self._given = {at: array for (at, _), array in zip(network.inputs, inputs, strict=True)}
        self._stand_ins: list[Any] = []
        self._roots: list[ValueBuffer | None] = []
        self._whole: list[bool] = []  # whether a value is all of its root, element by element
        self._last = self._last_readers()
        self.placements: list[Placement] = []
        self.buffers: list[ValueBuffer] = []

    def _last_readers(self) -> list[int]:
        """The last node that reads each value; outputs are read at the end."""
        count = len(self._network.nodes)
        last = [max(readers, default=at) for at, readers in enumerate(self._network.readers)]
        for at in self._network.results:
            last[at] = count
        return last

    def place(self, at: int, node: Node) -> None:
        """Decides where the value of a node is."""
        kind = self._network.types[at]
        shape = evaluate_shape(kind.shape, self._sizes)
        if isinstance(node, (InputNode, ConstantNode)):
            value = node.value if isinstance(node, ConstantNode) else self._given[at]
            packed = isinstance(node, ConstantNode) and node.packed
            self._add(
                Placement(shape, kind.dtype, None), None, None if packed else _stand_in(value), whole=True
            )
            return
        if node.is_view:
            viewed = self._view(node)
            if viewed is not None:
                root = self._roots[node.operands[0]]
                if root is not None:
                    root.last = max(root.last, self._last[at])
                whole = self._whole[node.operands[0]] and viewed.size * kind.dtype.itemsize == (
                    root.nbytes if root else -1
                )
                self._add(Placement(shape, kind.dtype, None, view=True), root, viewed, whole=whole)
                return
        nbytes = math.prod(shape) * kind.dtype.itemsize
        if nbytes > _MOST_BYTES:
            raise SizeOverflow(what=f"graph node {node.name}", found=nbytes, limit=_MOST_BYTES)
        buffer = self._taken_over(at, node, shape, kind.dtype)
        if buffer is None:
            buffer = ValueBuffer(nbytes, at, self._last[at])
            self.buffers.append(buffer)
        buffer.last = max(buffer.last, self._last[at])
        stand_in = _without_memory(kind.dtype, shape, _row_major(shape, kind.dtype.itemsize))
        self._add(Placement(shape, kind.dtype, buffer), buffer, stand_in, whole=True)

    def _add(self, placement: Placement, root: ValueBuffer | None, stand_in: Any, *, whole: bool) -> None:
        self.placements.append(placement)
        self._roots.append(root)
        self._stand_ins.append(stand_in)
        self._whole.append(whole)

    def _view(self, node: Node) -> Any:
        """The view of an operand; None where a reshape needs a copy."""
        operand = self._stand_ins[node.operands[0]]
        if isinstance(node, ReshapeNode):
            try:
                return np.reshape(operand, evaluate_shape(node.shape, self._sizes), copy=False)
            except ValueError:
                return None
        return node.evaluate([operand], self._sizes)

    def _taken_over(
        self, at: int, node: Node, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> ValueBuffer | None:
        """The buffer of an operand that the node may overwrite and nothing reads later, else None."""
        for place in node.in_place():
            operand = node.operands[place]
            root, stand_in = self._roots[operand], self._stand_ins[operand]
            if root is None or root.last > at or node.operands.count(operand) > 1:
                continue
            same = stand_in.shape == shape and stand_in.dtype == dtype and self._whole[operand]
            others = (self._roots[one] for one in node.operands if one != operand)
            if same and stand_in.flags.c_contiguous and not any(one is root for one in others):
                return root
        return None

    def finish(self) -> MemoryPlan:
        """Memory of results, and offsets in the arena for the rest."""
        copied: set[int] = set()
        for place, (_, at) in enumerate(self._network.outputs):
            root = self._roots[at]
            if root is None or root.result or not self._whole[at]:
                copied.add(place)
            else:
                root.result = True
        arena = assign_offsets([one for one in self.buffers if not one.result])
        return MemoryPlan(tuple(self.placements), frozenset(copied), arena)


def _stand_in(array: Array) -> Array:
    """An array with the shape and strides of another one."""
    found = _without_memory(array.dtype, array.shape, array.strides)
    found.flags.writeable = False
    return found


def _without_memory(dtype: np.dtype[Any], shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """An array that stands for one in memory; bytes first, since NumPy has no code for every element type."""
    return as_strided(np.empty(1, f"V{dtype.itemsize}"), shape, strides).view(dtype)


def _row_major(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    steps = [itemsize]
    for length in shape[:0:-1]:
        steps.append(steps[-1] * max(length, 1))
    return tuple(steps[::-1][: len(shape)]) if shape else ()


def assign_offsets(buffers: list[ValueBuffer]) -> int:
    """Give buffers offsets at which none overlaps another one that is alive at the same time.

    Largest first, each at the lowest free place: greedy by size (Pisarchyk and Lee, arXiv:2001.03288).

    Returns
    -------
    int
        The end of the last one.

    Examples
    --------
    >>> one, two, three = ValueBuffer(100, 0, 1), ValueBuffer(100, 1, 2), ValueBuffer(64, 2, 3)
    >>> assign_offsets([one, two, three]), one.offset, two.offset, three.offset
    (256, 0, 128, 0)
    """
    placed: list[ValueBuffer] = []
    for buffer in sorted(buffers, key=lambda one: (-one.nbytes, one.first)):
        at = 0
        for other in sorted(placed, key=lambda one: one.offset):
            apart = other.last < buffer.first or buffer.last < other.first
            if not apart and other.offset < at + buffer.nbytes and at < other.offset + other.nbytes:
                at = -(-(other.offset + other.nbytes) // ALIGNMENT) * ALIGNMENT
        buffer.offset = at
        placed.append(buffer)
    return max((-(-(one.offset + one.nbytes) // ALIGNMENT) * ALIGNMENT for one in placed), default=0)


def plan_memory(network: Network, inputs: Sequence[Array], sizes: Sizes) -> MemoryPlan:
    """Where every value of a run with these inputs is."""
    planner = _Planner(network, inputs, sizes)
    for at, node in enumerate(network.nodes):
        planner.place(at, node)
    return planner.finish()
