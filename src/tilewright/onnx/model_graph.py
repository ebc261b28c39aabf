"""The graph of a model: `Graph` with the nodes that only models need, and values known while loading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tilewright.calls.operands import Array
from tilewright.errors import UnknownSize
from tilewright.graph.builder import Graph
from tilewright.graph.nodes.base import Node
from tilewright.graph.nodes.generated import IotaNode, SizesNode
from tilewright.graph.nodes.indexing import FlipNode, GatherNDNode, PadNode, ScatterNode, TakeAlongNode
from tilewright.graph.nodes.integers import MatmulIntegerNode
from tilewright.graph.nodes.scans import ArgReduceNode, CumulativeNode, SortedNode
from tilewright.graph.nodes.sources import ConstantNode, InputNode
from tilewright.graph.sizes import SizeLike, product, shape_of, size_of
from tilewright.graph.value import Value
from tilewright.onnx.sizes import SizeArray, size_elements

if TYPE_CHECKING:
    from tilewright.graph.nodes.indexing import ScatterName

#: Elements of a value that is computed while loading, at most: shapes, axes and indices are smaller.
MOST_KNOWN = 4096


class ModelGraph(Graph):
    """A graph that is built from a model.

    What depends on constants alone and is small is known at once, since it may be a shape.
    """

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[int, Array] = {}

    def _add(self, node: Node) -> Value:
        value = super()._add(node)
        lengths = [size.constant for size in value.shape]
        if isinstance(node, ConstantNode):
            if not node.packed:
                self._known[value.at] = node.value
        elif not isinstance(node, InputNode) and None not in lengths:
            operands = [self._known.get(one) for one in node.operands]
            count = product(value.shape).constant
            if all(one is not None for one in operands) and count is not None and count <= MOST_KNOWN:
                try:
                    found = node.evaluate([one for one in operands if one is not None], {})
                except UnknownSize:
                    return value
                self._known[value.at] = np.asarray(found).astype(value.dtype, copy=False)
        return value

    def known(self, value: Value) -> Array | None:
        """The array of a value that follows from constants, else None."""
        return self._known.get(value.at)

    def inputs_of(self, value: Value) -> tuple[str, ...]:
        """The names of the inputs that a value depends on."""
        found, waiting, seen = [], [value.at], {value.at}
        while waiting:
            node = self._nodes[waiting.pop()]
            if isinstance(node, InputNode):
                found.append(node.label)
            fresh = set(node.operands) - seen
            seen |= fresh
            waiting += fresh
        return tuple(sorted(found))

    # --- values that follow from sizes ----------------------------------------------------------------

    def sizes(self, array: SizeArray) -> Value:
        """An array of sizes as a value."""
        known = array.known
        if known is not None:
            return self.constant(known)
        elements = tuple(array.elements.flat)
        return self._node(
            SizesNode, (), elements=elements, lengths=array.elements.shape, dtype=np.dtype(array.dtype)
        )

    def iota(self, length: SizeLike, start: SizeLike = 0, step: int = 1, dtype: Any = np.int64) -> Value:
        """start, start + step, ...: `length` integers."""
        options = {"length": size_of(length), "start": size_of(start), "step": step}
        return self._node(IotaNode, (), **options, dtype=np.dtype(dtype))

    def shape(self, value: Value) -> SizeArray:
        """The sizes of a value."""
        return SizeArray(size_elements(value.shape), np.dtype(np.int64))

    # --- nodes that only models need ------------------------------------------------------------------

    def flip(self, x: Any, axis: int) -> Value:
        """An axis from its end to its beginning."""
        return self._node(FlipNode, [x], axis_=axis)

    def pad(self, x: Any, value: Any, before: Sequence[SizeLike], after: Sequence[SizeLike]) -> Value:
        """x between elements of one value."""
        return self._node(PadNode, [x, value], before=shape_of(before), after=shape_of(after))

    def cumulative(
        self,
        function: Literal["sum", "prod"],
        x: Any,
        axis: int,
        *,
        exclusive: bool = False,
        reverse: bool = False,
    ) -> Value:
        """Sums or products of the elements up to each one."""
        options = {"exclusive": exclusive, "reverse": reverse}
        return self._node(CumulativeNode, [x], function=function, axis_=axis, **options)

    def arg_reduce(
        self,
        function: Literal["max", "min"],
        x: Any,
        axis: int,
        *,
        keepdims: bool = False,
        last: bool = False,
    ) -> Value:
        """The position of the largest or smallest element of an axis."""
        return self._node(ArgReduceNode, [x], function=function, axis_=axis, keepdims=keepdims, last=last)

    def sorted(self, x: Any, count: int, axis: int, *, largest: bool, positions: bool) -> Value:
        """The first elements of a sorted axis, or their positions."""
        options = {"largest": largest, "positions": positions}
        return self._node(SortedNode, [x], count=count, axis_=axis, **options)

    def take_along(self, x: Any, indices: Any, axis: int) -> Value:
        """Elements of x at positions of one axis."""
        return self._node(TakeAlongNode, [x, indices], axis_=axis)

    def gather_nd(self, x: Any, indices: Any, batch: int) -> Value:
        """Parts of x at the positions that the last axis of the indices has."""
        return self._node(GatherNDNode, [x, indices], batch=batch)

    def scatter(
        self, x: Any, indices: Any, updates: Any, function: ScatterName, axis: int | None = None
    ) -> Value:
        """x with elements replaced by updates, or combined with them."""
        return self._node(ScatterNode, [x, indices, updates], function=function, axis_=axis)

    def matmul_integer(self, a: Any, b: Any, a_zero: Any = None, b_zero: Any = None) -> Value:
        """(a - a_zero) @ (b - b_zero), exact in int32."""
        zeros = [one for one in (a_zero, b_zero) if one is not None]
        flags = {"a_zero": a_zero is not None, "b_zero": b_zero is not None}
        return self._node(MatmulIntegerNode, [a, b, *zeros], **flags)

    # --- formulas -------------------------------------------------------------------------------------

    def clipped(self, x: Value, low: Any = None, high: Any = None) -> Value:
        """min(max(x, low), high)."""
        if low is not None:
            x = self.binary("maximum", x, low)
        return x if high is None else self.binary("minimum", x, high)

    def broadcast_to(self, x: Value, shape: Sequence[SizeLike]) -> Value:
        """x expanded by a shape that may itself be expanded by that of x."""
        wanted = shape_of(shape)
        count = max(len(wanted), x.ndim)
        ones = (size_of(1),) * count
        left, right = (*ones, *x.shape)[-count:] if count else (), (*ones, *wanted)[-count:] if count else ()
        sizes = [b if a == size_of(1) else a for a, b in zip(left, right, strict=True)]
        return self.expand(x, sizes)

    def number(self, x: Value, value: float) -> Value:
        """A number as a constant of the type of x."""
        return self.constant(np.asarray(value).astype(x.dtype))
