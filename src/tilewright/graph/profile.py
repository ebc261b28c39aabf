"""Time of every node of a compiled graph: `CompiledGraph.explain` and `CompiledGraph.profile`."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tilewright.calls.operands import Array
from tilewright.errors import GraphNotWritable
from tilewright.graph.network import Network
from tilewright.graph.nodes.base import Node
from tilewright.graph.nodes.sources import ConstantNode, InputNode
from tilewright.graph.sizes import Sizes, evaluate, evaluate_shape, shape_of
from tilewright.records import dataclass

#: Runs of all nodes, of which the median of each node's times is taken.
REPEAT = 9
#: More of them say nothing more, and take for ever.
MOST_REPEATS = 1000


@dataclass(frozen=True)
class NodeTime:
    """What one node takes.

    Attributes
    ----------
    at, text : its position in the network, and the node in words.
    seconds : the median time.
    flops, nbytes : floating-point operations, and bytes of its operands and result.
    """

    at: int
    text: str
    seconds: float
    flops: int
    nbytes: int

    @property
    def gflops(self) -> float:
        """10⁹ operations per second."""
        return self.flops / self.seconds / 1e9

    @property
    def gbytes(self) -> float:
        """10⁹ bytes per second."""
        return self.nbytes / self.seconds / 1e9


@dataclass(frozen=True)
class GraphTimes:
    """The nodes of a graph with their times, in their order; `str` is a table.

    Attributes
    ----------
    total : the time of the whole graph in one call.
    """

    nodes: tuple[NodeTime, ...]
    total: float
    arena_bytes: int

    def __str__(self) -> str:
        rows = [f"{'us':>9} {'share':>6} {'GFLOP/s':>8} {'GB/s':>7}  node"]
        whole = sum(one.seconds for one in self.nodes) or 1.0
        for one in self.nodes:
            speed = f"{one.gflops:8.1f}" if one.flops else " " * 8
            rows.append(
                f"{one.seconds * 1e6:9.1f} {one.seconds / whole:6.1%} {speed} {one.gbytes:7.1f}  {one.text}"
            )
        rows.append(f"{self.total * 1e6:9.1f} us in one call; {whole * 1e6:.1f} us node by node")
        rows.append(f"{self.arena_bytes:,} bytes of memory for values besides inputs, weights and results")
        return "\n".join(rows)

    def by_kind(self) -> dict[str, float]:
        """Seconds by the first words of the nodes: "linear", "attention", ..., longest first."""
        found: dict[str, float] = {}
        for one in self.nodes:
            kind = one.text.split("(")[0].split("= ")[-1].strip()
            found[kind] = found.get(kind, 0.0) + one.seconds
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def write_trace(self, path: str | Path) -> None:
        """Write the times in Chrome's trace format, for chrome://tracing or Perfetto.

        Raises
        ------
        GraphNotWritable
        """
        events: list[dict[str, Any]] = []
        start = 0.0
        for one in self.nodes:
            arguments = {"node": one.text, "flops": one.flops, "bytes": one.nbytes}
            name = one.text.split("(")[0]
            where = {"ph": "X", "pid": 1, "tid": 1, "ts": start * 1e6, "dur": one.seconds * 1e6}
            events.append({"name": name, "cat": "node", **where, "args": arguments})
            start += one.seconds
        text = json.dumps({"traceEvents": events, "displayTimeUnit": "ms"})
        try:
            Path(path).write_text(text, encoding="utf-8")
        except OSError as error:
            raise GraphNotWritable(path=path, reason=error.strerror or str(error)) from error


def single(network: Network, at: int, operands: Sequence[Any], sizes: Sizes) -> tuple[Network, list[Array]]:
    """A network of one node, whose operands that are no constants are inputs; and these inputs."""
    nodes: list[Node] = []
    inputs: list[Array] = []
    for number, (operand, value) in enumerate(zip(network.nodes[at].operands, operands, strict=True)):
        constant = network.nodes[operand]
        if isinstance(constant, ConstantNode):
            nodes.append(constant)
            continue
        inputs.append(value)
        nodes.append(InputNode((), f"x{number}", value.dtype, shape_of(value.shape)))
    nodes.append(replace(network.nodes[at].at_sizes(sizes), operands=tuple(range(len(nodes)))))
    return Network(tuple(nodes), (("y", len(nodes) - 1),)), inputs


def measure_nodes(
    network: Network,
    inputs: Sequence[Array],
    sizes: Sizes,
    compiled: Callable[[Network], Callable[..., Any]],
    repeat: int = REPEAT,
) -> tuple[NodeTime, ...]:
    """Run a network node by node, each as a compiled graph of its own, several times in turn.

    Parameters
    ----------
    compiled : makes a function of a network without passes.
    """
    given = iter(inputs)
    values: list[Any] = []
    steps: list[tuple[int, Callable[..., Any], list[Array]]] = []
    for at, node in enumerate(network.nodes):
        operands = [values[operand] for operand in node.operands]
        if isinstance(node, InputNode):
            values.append(next(given))
        elif isinstance(node, ConstantNode):
            values.append(node.value)
        elif node.is_view:
            values.append(node.evaluate(operands, sizes))
        else:
            alone, arrays = single(network, at, operands, sizes)
            run = compiled(alone)
            values.append(run(*arrays))
            steps.append((at, run, arrays))
    times: dict[int, list[float]] = {at: [] for at, _, _ in steps}
    for _ in range(repeat):
        for at, run, arrays in steps:
            started = time.perf_counter()
            run(*arrays)
            times[at].append(time.perf_counter() - started)
    lines = list(network.lines())
    found = []
    for at, _, _ in steps:
        flops = evaluate(network.nodes[at].work(network.operand_types(at), network.types[at]), sizes)
        nbytes = sum(node_bytes(network, one, sizes) for one in {at, *network.nodes[at].operands})
        found.append(NodeTime(at, lines[at], statistics.median(times[at]), flops, nbytes))
    return tuple(found)


def node_bytes(network: Network, at: int, sizes: Sizes) -> int:
    """Bytes of the value of a node: of a constant those that it is stored in."""
    node, kind = network.nodes[at], network.types[at]
    if isinstance(node, ConstantNode):
        return int(node.value.nbytes)
    count = 1
    for length in evaluate_shape(kind.shape, sizes):
        count *= length
    return count * kind.dtype.itemsize
