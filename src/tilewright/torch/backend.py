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
from torch._functorch._aot_autograd.schemas import OutputType
from torch._guards import TracingContext
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from tilewright.errors import InvalidChoice, NotConvertible, shown
from tilewright.graph.passes.pack_weights import PRECISIONS
from tilewright.spec.arguments import check_word
from tilewright.torch.constants import fold_constants
from tilewright.torch.partition import PREFIX, NodeReport, partitioned
from tilewright.torch.region import Region, places_of
from tilewright.torch.rows.table import KEPT

logger = logging.getLogger("tilewright.torch")

#: Takes the reports of a graph.
Listener = Callable[[Sequence[NodeReport]], None]
#: A function that empties the list of its arguments.
Boxed = Callable[[list[Any]], Any]
#: Why graphs of training stay with PyTorch.
TRAINING = "its inputs require grad; call the model under torch.no_grad() or torch.inference_mode()"


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

    Raises
    ------
    InvalidChoice
    """
    precision = _precision_of(options or {})
    tensors = [*(one for one in inputs if isinstance(one, torch.Tensor)), *module.parameters()]
    if torch.is_grad_enabled() and any(one.requires_grad for one in tensors):
        _tell(_reports_of_training(module), listener)
        return module.forward
    found: list[Callable[..., Any]] = []
    compile_graph = partial(_compile_inference, precision=precision, listener=listener, found=found)
    compiled: Callable[..., Any] = aot_autograd(
        fw_compiler=compile_graph, inference_compiler=compile_graph, decompositions=_decompositions()
    )(module, inputs)
    return found[0] if found else compiled


def _precision_of(options: Mapping[str, Any]) -> str:
    for name in options:
        if name != "precision":
            raise InvalidChoice(name="the option", found=shown(name), allowed='"precision"')
    return check_word(options.get("precision", "f32"), "precision", PRECISIONS)


def _compile_inference(
    module: fx.GraphModule,
    inputs: Sequence[Any],
    *,
    precision: str,
    listener: Listener | None,
    found: list[Callable[..., Any]],
) -> Boxed:
    """An ATen graph as a function.

    Parameters
    ----------
    found : gets a function of the inputs if Dynamo may call it without AOTAutograd's wrapper.
    """
    fold_constants(module)
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
    _tell(reports, listener)
    run = _only_region(fused) or _interpreted(fused, regions)
    if _plain(inputs):
        found.append(run)
    return _boxed(run)


def _plain(inputs: Sequence[Any]) -> bool:
    """Return whether what AOTAutograd puts around the graph does nothing.

    Its wrapper writes inputs that the graph changes, makes results views of inputs again, and leaves modes.
    """
    context = TracingContext.try_get()
    about = None if context is None else context.fw_metadata
    return (
        about is not None
        and len(about.input_info) == len(inputs)
        and not any(map(is_traceable_wrapper_subclass, inputs))
        and not torch.is_grad_enabled()
        and not torch._C._is_any_autocast_enabled()
        and not about.num_mutated_inp_runtime_indices
        and not about.num_outputs_aliased
        and not about.num_intermediate_bases
        and not about.dynamic_outputs
        and not about.tokens
        and not about.is_rng_op_functionalized
        and about.grad_enabled_mutation is None
        and all(one.output_type is OutputType.non_alias for one in about.output_info)
    )


def _boxed(run: Callable[..., Any]) -> Boxed:
    """The function as AOTAutograd calls it."""

    def boxed(arguments: list[Any]) -> Any:
        given = tuple(arguments)
        arguments.clear()
        return run(*given)

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed


def _interpreted(fused: fx.GraphModule, regions: Mapping[str, Region]) -> Callable[..., Any]:
    """Executes PyTorch's nodes and regions in order."""
    for name, region in regions.items():
        region.__name__ = name  # type: ignore[attr-defined]
    fused.recompile()
    return fused.forward


def _only_region(fused: fx.GraphModule) -> Callable[..., Any] | None:
    """The graph if it is one region of some of its inputs, and its results are the region's."""
    nodes = list(fused.graph.nodes)
    inputs = [node for node in nodes if node.op == "placeholder"]
    calls = [node for node in nodes if isinstance(node.target, Region)]
    (results,) = (node.args[0] for node in nodes if node.op == "output")
    if len(calls) != 1 or not isinstance(results, (tuple, list)):
        return None
    items = [node for node in nodes if node.op not in ("placeholder", "output") and node is not calls[0]]
    if any(node.args != (calls[0], place) for place, node in enumerate(items)) or list(results) != items:
        return None
    if any(one not in inputs for one in calls[0].args):
        return None
    region = calls[0].target
    places = [inputs.index(one) for one in calls[0].args]
    if places == list(range(len(inputs))):
        return region.__call__
    chosen = places_of(places)
    return lambda *arguments: region(*chosen(arguments))


def _reports_of_training(module: fx.GraphModule) -> list[NodeReport]:
    skipped = ("placeholder", "output", "get_attr")
    nodes = [node for node in module.graph.nodes if node.op not in skipped]
    return [NodeReport(_name_of(node.target), None, TRAINING) for node in nodes]


def _name_of(target: Any) -> str:
    return str(getattr(target, "__name__", target))


def _tell(reports: Sequence[NodeReport], listener: Listener | None) -> None:
    if listener is not None:
        listener(reports)
    if reports and all(one.reason == TRAINING for one in reports):
        logger.info("torch.compile: a graph of %d operations stays with PyTorch: %s", len(reports), TRAINING)
        return
    left = Counter((one.operation, one.reason) for one in reports if one.region is None)
    for (operation, reason), count in left.items():
        logger.debug("torch.compile: %d of %s stay with PyTorch: %s", count, operation, reason)


def register() -> None:
    """Makes the backend known to `torch.compile` by its name, also where no entry point names it."""
    if "tilewright" not in torch._dynamo.backends.registry._COMPILER_FNS:
        register_backend(tilewright)
