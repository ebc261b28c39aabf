"""Constant folding of ATen graphs: positions, causal masks and the like are computed once."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily

#: Bytes of the largest constant that folding makes.
MOST_BYTES = 1 << 24
_PREFIX = "tilewright_constant_"
#: Attribute of tensors that nothing changes.
_MARK = "_tilewright_constant"


def is_constant(value: Any) -> bool:
    """Return whether a tensor was made by `fold_constants`."""
    return hasattr(value, _MARK)


def fold_constants(module: fx.GraphModule) -> None:
    """Replaces operations whose operands are numbers and constants by tensors.

    ::

        %positions = aten.arange(8)                      %constant_0 = get_attr
        %mask = aten.le(%positions, %positions_1)   ->
        %scores = aten.where(%mask, %x, -inf)            %scores = aten.where(%constant_0, %x, -inf)
    """
    folded: dict[fx.Node, torch.Tensor] = {}
    for node in module.graph.nodes:
        if node.op == "get_attr":
            value = getattr(module, str(node.target), None)
            if type(value) is torch.Tensor and not isinstance(value, FakeTensor):
                folded[node] = value
        elif _is_foldable(node) and all(one in folded for one in node.all_input_nodes):
            folded[node] = _computed(node, folded)
    for node, value in folded.items():
        if node.op == "get_attr" or all(user in folded for user in node.users):
            continue
        name = f"{_PREFIX}{node.name}"
        setattr(value, _MARK, True)
        module.register_buffer(name, value, persistent=False)
        with module.graph.inserting_before(node):
            made = module.graph.get_attr(name)
        made.meta = dict(node.meta)
        node.replace_all_uses_with(made)
    module.graph.eliminate_dead_code()


def _is_foldable(node: fx.Node) -> bool:
    """Return whether an operation is a function of its operands, of one result of a known and small size."""
    operation, found = node.target, node.meta.get("val")
    if not isinstance(operation, torch._ops.OpOverload) or not isinstance(found, torch.Tensor):
        return False
    if torch.Tag.nondeterministic_seeded in operation.tags or operation._schema.is_mutable:
        return False
    if found.device.type != "cpu" or any(not isinstance(size, int) for size in found.shape):
        return False
    return operation.namespace in ("aten", "prims") and found.numel() * found.element_size() <= MOST_BYTES


def _computed(node: fx.Node, folded: dict[fx.Node, torch.Tensor]) -> torch.Tensor:
    arguments, named = fx.map_arg((node.args, node.kwargs), folded.__getitem__)
    with unset_fake_temporarily(), torch.no_grad():
        found: torch.Tensor = node.target(*arguments, **named)
        return found.clone() if found._is_view() else found
