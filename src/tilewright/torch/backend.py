"""The backend of `torch.compile`: graphs of PyTorch run as compiled graphs, the rest of them as before."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import torch
from torch import fx
from torch._decomp import core_aten_decompositions
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.backends.registry import register_backend

from tilewright.errors import NotConvertible
from tilewright.torch.partition import PREFIX, NodeReport, partitioned
from tilewright.torch.region import Region
from tilewright.torch.rows.table import KEPT

logger = logging.getLogger("tilewright")

#: Takes the reports of a graph, and whether it is one of inference.
Listener = Callable[[Sequence[NodeReport], bool], None]
#: Why graphs of training stay with PyTorch.
TRAINING = "the graph is one of training; call the model under torch.no_grad() or torch.inference_mode()"


@cache
def _decompositions() -> dict[Any, Any]:
    """What PyTorch takes apart: everything that is not core ATen, but for operations with a row."""
    return {overload: how for overload, how in core_aten_decompositions().items() if overload not in KEPT}


def tilewright(
    module: fx.GraphModule,
    inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    listener: Listener | None = None,
) -> Callable[..., Any]:
    """The backend "tilewright" of `torch.compile`.

    Parameters
    ----------
    options : "precision", as `Graph.compile` takes it.
    listener : is told where each node runs.
    """
    precision = str((options or {}).get("precision", "f32"))
    inference = partial(_compile_inference, precision=precision, listener=listener)
    training = partial(_compile_training, listener=listener)
    compiled: Callable[..., Any] = aot_autograd(
        fw_compiler=training,
        bw_compiler=_in_pytorch,
        inference_compiler=inference,
        decompositions=_decompositions(),
    )(module, inputs)
    return compiled


def _compile_inference(
    module: fx.GraphModule, _: Sequence[Any], *, precision: str, listener: Listener | None
) -> Callable[[list[Any]], Any]:
    """An ATen graph as a function that empties the list of its arguments."""
    fused, reports = partitioned(module)
    regions: dict[str, Region] = {}
    for node in list(fused.graph.nodes):
        if node.op != "call_module" or not str(node.target).startswith(PREFIX):
            continue
        number = int(str(node.target).removeprefix(PREFIX))
        try:
            regions[node.name] = Region(fused.get_submodule(node.target), precision)
        except NotConvertible as error:
            reports = [
                one._replace(region=None, reason=str(error)) if one.region == number else one
                for one in reports
            ]
            continue
        node.op, node.target = "call_function", regions[node.name]
    if listener is not None:
        listener(reports, True)
    _log(reports)
    return _executor(fused, regions)


def _executor(fused: fx.GraphModule, regions: Mapping[str, Region]) -> Callable[[list[Any]], Any]:
    run = _only_region(fused) or _interpreted(fused, regions)
    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def _interpreted(fused: fx.GraphModule, regions: Mapping[str, Region]) -> Callable[[list[Any]], Any]:
    """Executes PyTorch's nodes and regions in order."""
    for name, region in regions.items():
        region.__name__ = name  # type: ignore[attr-defined]
    fused.recompile()
    forward = fused.forward

    def run(arguments: list[Any]) -> Any:
        given = tuple(arguments)
        arguments.clear()
        return forward(*given)

    return run


def _only_region(fused: fx.GraphModule) -> Callable[[list[Any]], Any] | None:
    """The graph if it is one region and nothing else, whose results are in the region's order."""
    nodes = list(fused.graph.nodes)
    inputs = [node for node in nodes if node.op == "placeholder"]
    calls = [node for node in nodes if isinstance(node.target, Region)]
    (results,) = (node.args[0] for node in nodes if node.op == "output")
    if len(calls) != 1 or not isinstance(results, (tuple, list)):
        return None
    items = [node for node in nodes if node.op not in ("placeholder", "output") and node is not calls[0]]
    if any(node.args != (calls[0], place) for place, node in enumerate(items)) or list(results) != items:
        return None
    region = calls[0].target
    places = [inputs.index(one) for one in calls[0].args]

    def run(arguments: list[Any]) -> Any:
        given = [arguments[place] for place in places]
        arguments.clear()
        return region(*given)

    return run


def _compile_training(
    module: fx.GraphModule, _: Sequence[Any], *, listener: Listener | None
) -> Callable[[list[Any]], Any]:
    """Forward graphs of training stay with PyTorch."""
    nodes = [node for node in module.graph.nodes if node.op == "call_function"]
    if listener is not None:
        listener([NodeReport(str(node.target), None, TRAINING) for node in nodes], False)
    logger.info("torch.compile: %s", TRAINING)
    return _in_pytorch(module, ())


def _in_pytorch(module: fx.GraphModule, _: Sequence[Any]) -> Callable[[list[Any]], Any]:
    forward = module.forward

    def run(arguments: list[Any]) -> Any:
        given = tuple(arguments)
        arguments.clear()
        return forward(*given)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def _log(reports: Sequence[NodeReport]) -> None:
    left = Counter((one.operation, one.reason) for one in reports if one.region is None)
    for (operation, reason), count in left.items():
        logger.debug("torch.compile: %d of %s stay with PyTorch: %s", count, operation, reason)


def register() -> None:
    """Makes the backend known to `torch.compile` by its name."""
    if "tilewright" not in torch._dynamo.backends.registry._COMPILER_FNS:  # noqa: SLF001
        register_backend(tilewright)
