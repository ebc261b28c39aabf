"""One run of a network through Python, which a recording turns into machine code."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.calls.operands import Array
from tilewright.calls.recording import new_array
from tilewright.graph.network import Network, bind_sizes
from tilewright.graph.nodes.base import moved
from tilewright.graph.nodes.sources import ConstantNode, InputNode
from tilewright.graph.plan import MemoryPlan, Placement
from tilewright.graph.sizes import Sizes
from tilewright.progress import Steps


class _Memory:
    """Memory of a run: its arena, and the arrays that become results."""

    def __init__(self, arena: int, nbytes: int) -> None:
        block = memoryview((ctypes.c_uint8 * nbytes).from_address(arena) if nbytes else b"")
        self._arena = np.frombuffer(block, np.uint8)
        self._results: dict[int, Array] = {}

    def array(self, placement: Placement) -> Array:
        """The memory of a value."""
        buffer, shape, dtype = placement.buffer, placement.shape, placement.dtype
        assert buffer is not None
        if not buffer.result:
            return self._arena[buffer.offset : buffer.offset + buffer.nbytes].view(dtype).reshape(shape)
        found = self._results.get(id(buffer))
        if found is None:
            found = self._results[id(buffer)] = new_array(shape, dtype)
        return found if found.shape == shape else found.reshape(shape)


def run_network(
    network: Network,
    plan: MemoryPlan,
    inputs: Sequence[Array],
    sizes: Sizes,
    arena: int,
    see: Callable[[int, Sequence[Any]], None] | None = None,
) -> tuple[Array, ...]:
    """The results of a network.

    Parameters
    ----------
    arena : the address of ``plan.arena_bytes`` bytes of scratch.
    see : called with the position and the operands of each node that computes, before it runs.
    """
    with Steps("prepare kernels", len(network.nodes)) as steps:
        return _run(network, plan, inputs, sizes, _Memory(arena, plan.arena_bytes), see, steps.advance)


def _run(
    network: Network,
    plan: MemoryPlan,
    inputs: Sequence[Array],
    sizes: Sizes,
    memory: _Memory,
    see: Callable[[int, Sequence[Any]], None] | None,
    on_step: Callable[[], None],
) -> tuple[Array, ...]:
    """Run the nodes with memory for their values; `on_step` is called after each node."""
    given = iter(inputs)
    values: list[Any] = []
    for node, placement in zip(network.nodes, plan.placements, strict=True):
        operands = [values[operand] for operand in node.operands]
        if isinstance(node, InputNode):
            values.append(next(given))
        elif isinstance(node, ConstantNode):
            values.append(node.value)
        elif placement.view:
            values.append(node.evaluate(operands, sizes))
        else:
            if see is not None:
                see(len(values), operands)
            out = memory.array(placement)
            if out.size:
                node.run(operands, out, sizes)
            values.append(out)
        on_step()
    found = []
    for place, (_, at) in enumerate(network.outputs):
        value = values[at]
        if place in plan.copied:
            value = new_array(value.shape, value.dtype)
            moved(value, np.asarray(values[at]))
        found.append(value)
    return tuple(found)


def evaluate_network(network: Network, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """The meaning of a network: NumPy evaluates every node, and every value has memory of its own.

    Tests compare compiled graphs with it; inputs of float64 make float64 of whatever follows from them.
    """
    declared = zip(network.inputs, inputs, strict=True)
    sizes = bind_sizes([(node.label, node.shape, array.shape) for (_, node), array in declared])
    given = iter(inputs)
    values: list[Any] = []
    for node in network.nodes:
        if isinstance(node, InputNode):
            values.append(next(given))
        else:
            values.append(node.evaluate([values[operand] for operand in node.operands], sizes))
    return tuple(np.array(values[at]) for _, at in network.outputs)
