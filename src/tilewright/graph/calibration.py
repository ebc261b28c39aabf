"""What the linear layers of a graph are multiplied with, measured on sample inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.operands import Array, data_address
from tilewright.errors import InvalidOperand, shown
from tilewright.graph.execute import run_network
from tilewright.graph.network import Network, bind_sizes
from tilewright.graph.nodes.products import LinearNode
from tilewright.graph.plan import plan_memory
from tilewright.ops.packing.matrix import aligned_empty
from tilewright.ops.quantized.gptq import second_moments
from tilewright.progress import Steps


class InputStatistics(NamedTuple):
    """What is known of the inputs x (rows, k) of linear layers.

    Attributes
    ----------
    rows : how many.
    largest : |x| at most, by column, float32.
    moments : xᵀx (k, k), float64; None where nothing asks for it.
    """

    rows: int
    largest: Array
    moments: Array | None


#: Statistics of values that linear layers read, by their positions in a network.
Statistics = Mapping[int, InputStatistics]


def sample_calls(calibration: Any) -> list[tuple[tuple[Any, ...], Mapping[str, Any]]]:
    """Sample calls as arguments by position and by name.

    Raises
    ------
    InvalidOperand : not an iterable of calls, or an empty one.
    """
    required = "must be a list of calls, each a tuple of inputs, a dict of inputs by name, or one array"
    if not isinstance(calibration, Iterable) or isinstance(calibration, (str, bytes, Mapping, np.ndarray)):
        raise InvalidOperand(name="calibration", reason=f"it is {shown(calibration)}, {required}")
    found: list[tuple[tuple[Any, ...], Mapping[str, Any]]] = []
    for call in calibration:
        match call:
            case Mapping():
                found.append(((), call))
            case tuple() | list():
                found.append((tuple(call), {}))
            case _:
                found.append(((call,), {}))
    if not found:
        raise InvalidOperand(name="calibration", reason=f"it is empty, {required}")
    return found


def input_statistics(network: Network, calls: Sequence[list[Array]], *, moments: bool) -> Statistics:
    """Statistics of the inputs of all linear layers of a network, over all calls.

    Parameters
    ----------
    calls : checked inputs of each call.

    Raises
    ------
    InvalidOperand : an input of a layer is not finite.
    """
    found: dict[int, InputStatistics] = {}

    def see(at: int, operands: Sequence[Any]) -> None:
        place = network.nodes[at].operands[0]
        if isinstance(network.nodes[at], LinearNode) and place not in seen:
            seen.add(place)
            found[place] = _merged(found.get(place), operands[0], moments=moments)

    with Steps("run sample calls", len(calls)) as steps:
        for arrays in calls:
            seen: set[int] = set()
            run_observed(network, arrays, see)
            steps.advance()
    return found


def run_observed(
    network: Network, arrays: Sequence[Array], see: Callable[[int, Sequence[Any]], None]
) -> tuple[Array, ...]:
    """The results of a network of which `see` gets the operands of each node, before the node runs."""
    declared = zip(network.inputs, arrays, strict=True)
    sizes = bind_sizes([(node.label, node.shape, array.shape) for (_, node), array in declared])
    plan = plan_memory(network, arrays, sizes)
    arena = aligned_empty((plan.arena_bytes,), np.dtype(np.uint8))
    return run_network(network, plan, arrays, sizes, data_address(arena), see)


def _merged(known: InputStatistics | None, x: Array, *, moments: bool) -> InputStatistics:
    """What is known with one more array."""
    rows = np.ascontiguousarray(x, np.float32).reshape(-1, x.shape[-1])
    largest = np.abs(rows).max(axis=0, initial=0)
    if not np.isfinite(largest).all():
        raise InvalidOperand(
            name="calibration", reason="a linear layer's input has NaN or infinities with it"
        )
    products = second_moments(rows) if moments else None
    if known is None:
        return InputStatistics(len(rows), largest, products)
    if products is not None:
        products += known.moments
    return InputStatistics(known.rows + len(rows), np.maximum(known.largest, largest), products)
