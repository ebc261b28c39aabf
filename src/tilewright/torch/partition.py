"""Which nodes of an ATen graph run in compiled graphs, and which stay with PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import fx
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase
from torch.fx.passes.utils.fuser_utils import fuse_by_partitions

from tilewright.torch.conversion import ConversionVerdict, judged
from tilewright.torch.rows.table import ROWS

#: Names of the modules that regions become.
PREFIX = "tilewright_region_"
_LIGHT = "its region has no product, attention, norm or softmax, which would be worth a call"
#: Operations whose results depend on how an operand is laid out in memory.
_STRIDED = {torch.ops.aten.as_strided.default, torch.ops.aten.as_strided_copy.default}
_READS_STRIDES = (
    "its graph has an operation that reads strides, which results of compiled graphs have of their own"
)


class NodeReport(NamedTuple):
    """The region or library that a node runs in.

    Attributes
    ----------
    operation : ATen's name of it.
    region : the number of the compiled graph, or None for PyTorch.
    reason : why it stays with PyTorch, or "".
    """

    operation: str
    region: int | None
    reason: str = ""


class _Support(OperatorSupportBase):  # type: ignore[misc, unused-ignore]
    """Answers the partitioner by verdicts."""

    def __init__(self, verdicts: Mapping[fx.Node, ConversionVerdict]) -> None:
        self._verdicts = verdicts

    def is_node_supported(self, _: Mapping[str, torch.nn.Module], node: fx.Node) -> bool:
        return node in self._verdicts and not self._verdicts[node].reason


def partitioned(module: fx.GraphModule) -> tuple[fx.GraphModule, list[NodeReport]]:
    """The module with regions as submodules, and where each node runs."""
    module.graph.eliminate_dead_code()
    _separate_views_of_inputs(module.graph)
    verdicts: dict[fx.Node, ConversionVerdict] = {}
    strided = any(node.target in _STRIDED for node in module.graph.nodes)
    for node in module.graph.nodes:
        if node.op == "call_function" and _gives_tensors(node.meta.get("val")):
            verdicts[node] = ConversionVerdict(_READS_STRIDES) if strided else judged(node, verdicts)
    partitions = CapabilityBasedPartitioner(
        module, _Support(verdicts), allows_single_node_partition=True
    ).propose_partitions()
    kept = [one.nodes for one in partitions if any(_is_heavy(node) for node in one.nodes)]
    region_of = {node: number for number, nodes in enumerate(kept) for node in nodes}
    reports = [
        NodeReport(str(node.target), region_of.get(node), verdict.reason or _reason_of(node, region_of))
        for node, verdict in verdicts.items()
    ]
    fused = fuse_by_partitions(module, kept, prefix=PREFIX, always_return_tuple=True)
    fused.recompile()
    return fused, reports


def _reason_of(node: fx.Node, region_of: Mapping[fx.Node, int]) -> str:
    return "" if node in region_of else _LIGHT


def _is_heavy(node: fx.Node) -> bool:
    row = ROWS.get(node.target)
    return row is not None and row.heavy


def _gives_tensors(found: Any) -> bool:
    several = found if isinstance(found, (tuple, list)) else (found,)
    return any(isinstance(one, torch.Tensor) for one in several)


def _separate_views_of_inputs(graph: fx.Graph) -> None:
    """Copies views of inputs for each node that reads them: a transposed weight belongs in each region."""
    for node in list(graph.nodes):
        users = list(node.users)
        operands = node.all_input_nodes
        row = ROWS.get(node.target)
        if row is None or not row.view or len(users) < 2:
            continue
        if not all(one.op == "placeholder" for one in operands):
            continue
        for user in users[1:]:
            with graph.inserting_after(node):
                copied = graph.node_copy(node)
            user.replace_input_with(node, copied)
