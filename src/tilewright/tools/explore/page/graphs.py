"""Pages about graphs: nodes, the memory of a run, the least time of each node, and kernels of products."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.calls.compile import compile_problem
from tilewright.compiler.operation import Problem
from tilewright.compiler.target import resolve_target
from tilewright.errors import TilewrightError
from tilewright.graph.compiled import CompiledGraph, load_graph
from tilewright.graph.network import Network
from tilewright.graph.nodes.attention import AttentionNode
from tilewright.graph.nodes.base import Node
from tilewright.graph.nodes.products import LinearNode, MatmulNode
from tilewright.graph.nodes.sources import ConstantNode, InputNode
from tilewright.graph.plan import plan_memory
from tilewright.graph.profile import node_bytes
from tilewright.graph.sizes import Shape, Sizes, evaluate, evaluate_shape
from tilewright.machine.machine import Machine
from tilewright.ops.attention.problem import Attention
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.packing.matrix import PackedMatrix
from tilewright.preparing import Late
from tilewright.records import dataclass
from tilewright.spec.arguments import unchecked
from tilewright.spec.dtype import parse_dtype
from tilewright.spec.problem import Layout
from tilewright.tools.explore.page.build import Exploration, exploration
from tilewright.tools.explore.page.costs import peak_of
from tilewright.tools.explore.page.record import kernel_record, machine_record

#: The package of ONNX models is optional.
_load_onnx = Late("tilewright.onnx:load")

#: The value of a named size that nobody gave.
OPEN_SIZE = 64
#: Kernels that a page shows, of all targets together: each adds about 100 KB to it.
MOST_KERNELS = 9


def explore_file(
    path: Path, sizes: Mapping[str, int], targets: Sequence[str | Machine | None], precision: str
) -> Exploration:
    """The page of an ONNX model or of a graph that `CompiledGraph.save` wrote."""
    graph = _load_onnx(path, precision=precision) if path.suffix == ".onnx" else load_graph(path)
    return explore_graph(graph, targets, sizes, title=path.name)


def explore_graph(
    graph: CompiledGraph,
    targets: Sequence[str | Machine | None] = (),
    sizes: Mapping[str, int] | None = None,
    title: str = "graph",
    kernels: int = MOST_KERNELS,
) -> Exploration:
    """The page of a graph after all passes.

    Parameters
    ----------
    targets : for the times of nodes and the kernels of products; this host by default. The nodes themselves
        are those that were compiled here.
    sizes : values of the named sizes; `OPEN_SIZE` by default.
    kernels : kernels that the page shows at most, of all targets together.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> g = tw.Graph()
    >>> _ = g.output(g.relu(g.input("x", shape=("n", 4))), "y")
    >>> page = explore_graph(g.compile(), ["znver4"], {"n": 8})
    >>> [node["title"] for node in page.record["graph"]["nodes"]]
    ['input x', 'unary relu']
    """
    network = graph.network
    known = _sizes(network, sizes or {})
    record = {"title": title, **_graph_record(network, known)}
    machines = [resolve_target(target) for target in (targets or (None,))]
    problems = _problems(network, known)[: -(-kernels // len(machines))]
    records = [
        {
            "target": machine_record(machine),
            "times": [{"cycles": one, "bound": bound} for one, bound in _times(network, known, machine)],
            "nodes": [_kernel_of(group, machine) for group in problems],
        }
        for machine in machines
    ]
    return exploration(title, records, graph=record)


def _sizes(network: Network, wanted: Mapping[str, int]) -> dict[str, int]:
    """A value for each name in the shapes of the inputs."""
    names = {
        symbol.name
        for _, node in network.inputs
        for size in node.shape
        for monomial, _ in size.terms
        for symbol in monomial
    }
    return {name: wanted.get(name, OPEN_SIZE) for name in sorted(names)}


def _graph_record(network: Network, sizes: Sizes) -> dict[str, Any]:
    """Nodes that are no constants, and where their values are in a run."""
    lines = list(network.lines())
    shown = [at for at, node in enumerate(network.nodes) if not isinstance(node, ConstantNode)]
    arrays = [np.empty(evaluate_shape(node.shape, sizes), node.dtype) for _, node in network.inputs]
    plan = plan_memory(network, arrays, sizes)
    place = {at: number for number, at in enumerate(shown)}
    memory, seen = [], set()
    for at in shown:
        buffer = plan.placements[at].buffer
        if buffer is None or buffer.result or id(buffer) in seen:
            continue
        seen.add(id(buffer))
        last = max((place[one] for one in shown if one <= buffer.last), default=place[at])
        span = {"first": place.get(buffer.first, place[at]), "last": last}
        memory.append(
            {"title": _title(network.nodes[at]), "offset": buffer.offset, "nbytes": buffer.nbytes, **span}
        )
    return {
        "nodes": [
            {
                "at": at,
                "title": _title(network.nodes[at]),
                "type": str(network.types[at]),
                "text": lines[at],
                "reads": list(dict.fromkeys(network.nodes[at].operands)),
            }
            for at in shown
        ],
        "memory": memory,
        "arena": plan.arena_bytes,
        "sizes": ", ".join(f"{name} = {value}" for name, value in sizes.items()) or "the sizes of its inputs",
    }


def _number(network: Network, at: int) -> int:
    """The number of a node among those that are no constants."""
    return sum(not isinstance(node, ConstantNode) for node in network.nodes[:at])


def _title(node: Node) -> str:
    """The kind of a node, with its name or function."""
    return " ".join(filter(None, [node.name, getattr(node, "label", "") or getattr(node, "function", "")]))


def _times(network: Network, sizes: Sizes, machine: Machine) -> Iterator[tuple[float, str]]:
    """The least cycles of each node that is no constant, on one core, and what bounds them."""
    for at, node in enumerate(network.nodes):
        if isinstance(node, ConstantNode):
            continue
        if isinstance(node, InputNode) or node.is_view:
            yield 0.0, "memory"
            continue
        flops = evaluate(node.work(network.operand_types(at), network.types[at]), sizes)
        moved = sum(node_bytes(network, one, sizes) for one in {at, *node.operands})
        problem = _problem(network, node, at, sizes)
        peak = peak_of(problem, machine) if problem is not None else 0.0
        compute, memory = flops / peak if peak else 0.0, moved / machine.core.memory_bytes_per_cycle
        yield max(compute, memory), "compute" if compute > memory else "memory"


@dataclass(frozen=True)
class _ProblemNodes:
    """A problem, and the nodes that it is the kernel of."""

    problem: Problem
    title: str
    nodes: tuple[int, ...]
    flops: int


def _problems(network: Network, sizes: Sizes) -> list[_ProblemNodes]:
    """The different problems of a graph: first one of each operation, then those with most operations."""
    found: dict[Problem, list[int]] = {}
    for at, node in enumerate(network.nodes):
        problem = _problem(network, node, at, sizes)
        if problem is not None:
            found.setdefault(problem, []).append(at)
    groups = [
        _ProblemNodes(
            problem,
            f"{_number(network, nodes[0])}: {_title(network.nodes[nodes[0]])}",
            tuple(nodes),
            sum(
                evaluate(network.nodes[at].work(network.operand_types(at), network.types[at]), sizes)
                for at in nodes
            ),
        )
        for problem, nodes in found.items()
    ]
    groups.sort(key=lambda group: -group.flops)
    first = {group.problem.operation: group for group in reversed(groups)}.values()
    return sorted(groups, key=lambda group: group not in first)


def _problem(network: Network, node: Node, at: int, sizes: Sizes) -> Problem | None:
    """The problem that a node's kernel computes; None for other nodes than products and attention."""
    types = network.operand_types(at)
    try:
        match node:
            case LinearNode():
                return _linear_problem(network, node, types[0].shape, sizes)
            case MatmulNode():
                m, k = evaluate_shape(types[0].shape, sizes)[-2:]
                dtype = parse_dtype(types[0].dtype)
                return Gemm(m, evaluate(types[1].shape[-1], sizes), k, dtype)
            case AttentionNode():
                head, value = (evaluate(types[place].shape[-1], sizes) for place in (0, 2))
                bounded = bool(node.causal) or node.window is not None
                return Attention(head, value, parse_dtype(types[0].dtype), bounded=bounded)
            case _:
                return None
    except (TilewrightError, ValueError):  # of types or shapes that have no kernel of their own
        return None


def _linear_problem(network: Network, node: LinearNode, shape: Shape, sizes: Sizes) -> Gemm:
    """A linear layer as the product of its rows with a weight that is packed, or not."""
    *rows, k = evaluate_shape(shape, sizes)
    m = int(np.prod(rows, dtype=np.int64))
    weight, (at, place) = network.nodes[node.operands[1]], node.operands[:2]
    first, second = network.types[place].shape
    n = evaluate(second if node.by_columns else first, sizes)
    dtype = parse_dtype(network.types[at].dtype)
    steps = ",".join(filter(None, ["bias" * node.bias, node.activation]))
    packed = weight.value if isinstance(weight, ConstantNode) else None
    if isinstance(packed, PackedMatrix) and packed.form.weights is not None and not node.quantised_rows:
        return Gemm(m, n, k, dtype, b=Layout.PACKED, weights=packed.form.weights, epilogue=unchecked(steps))
    layout = (
        Layout.PACKED if isinstance(packed, PackedMatrix) else Layout.ROW if node.by_columns else Layout.COL
    )
    return Gemm(m, n, k, dtype, b=layout, epilogue=unchecked(steps))


def _kernel_of(group: _ProblemNodes, machine: Machine) -> dict[str, Any]:
    """The record of a product's kernel on a machine."""
    kernel = compile_problem(group.problem, machine)
    return {"title": group.title, "at": list(group.nodes), **kernel_record(kernel, {})}
