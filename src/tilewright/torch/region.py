"""Regions: parts of an ATen graph that run as one compiled graph, with their weights packed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from operator import attrgetter, is_, itemgetter
from typing import Any

import torch
from torch import fx

from tilewright.errors import NotConvertible
from tilewright.graph.compiled import CompiledGraph
from tilewright.graph.sizes import Shape, is_name
from tilewright.torch.constants import is_constant
from tilewright.torch.conversion import Converter, is_tensor, type_of_node
from tilewright.torch.packed import array_of
from tilewright.torch.sizes import names_in, size_of_torch

logger = logging.getLogger("tilewright.torch")

#: How often weights may change before they are operands like others: packing takes longer than a product.
MOST_REPACKED = 16

_version, _address = attrgetter("_version"), torch.Tensor.data_ptr


def is_weight(value: Any) -> bool:
    """Return whether a tensor is a parameter or a buffer of a module, as Dynamo marks them, or a constant."""
    if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.is_inference():
        return False  # tensors of inference mode do not count their changes
    return (
        isinstance(value, torch.nn.Parameter)
        or hasattr(value, "_dynamo_static_input_type")
        or is_constant(value)
    )


class _Built:
    """A compiled graph with the weights it was made of.

    Attributes
    ----------
    run : the graph.
    operands : its operands among the arguments.
    """

    def __init__(self, weights: Sequence[int], operands: Sequence[int], run: CompiledGraph) -> None:
        self.run, self.operands = run, places_of(operands)
        self._weights = places_of(weights)
        self._held: tuple[Any, ...] = ()
        self._versions: list[int] = []
        self._addresses: list[int] = []
        self._arrays: list[Any] = []

    def hold(self, arguments: Sequence[Any]) -> None:
        """Remembers the weights: which they are, where, and how often they have been written.

        Their memory is held too, so that no other tensor gets its address.
        """
        self._held = self._weights(arguments)
        self._versions = [*map(_version, self._held)]
        self._addresses = [*map(_address, self._held)]
        self._arrays = [*map(array_of, self._held)]

    def serves(self, arguments: Sequence[Any]) -> bool:
        """Return whether the weights are those that the graph has packed."""
        weights = self._weights(arguments)
        return (
            [*map(_version, weights)] == self._versions
            and [*map(_address, weights)] == self._addresses
            and all(map(is_, weights, self._held))
        )


def places_of(places: Sequence[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """A function that takes these items of a sequence.

    >>> places_of([2])("abc"), places_of([])("abc"), places_of([0, 1])("abc")
    (('c',), (), ('a', 'b'))
    """
    if len(places) == 1:
        (only,) = places
        return lambda items: (items[only],)
    return itemgetter(*places) if places else lambda _: ()


class Region:
    """A submodule of an ATen graph as a function of its inputs.

    The first call makes the graph, since weights are known from then on. It is made again when a weight has
    been replaced or written.

    Parameters
    ----------
    module : the submodule.
    precision : see `Graph.compile`.

    Raises
    ------
    NotConvertible : a size that follows from no input.
    """

    def __init__(self, module: fx.GraphModule, precision: str) -> None:
        self._precision = precision
        nodes = list(module.graph.nodes)
        self._inputs = [node for node in nodes if node.op == "placeholder"]
        self._body = [node for node in nodes if node.op == "call_function"]
        (self._outputs,) = (node.args[0] for node in nodes if node.op == "output")
        self._sizes = self._size_inputs()
        self._built: _Built | None = None
        self._changes = 0

    def _size_inputs(self) -> dict[str, int]:
        """Named sizes that follow from no tensor, and the places of the arguments that are these sizes."""
        shapes = [type_of_node(node).shape for node in self._inputs if is_tensor(node)]
        wanted = names_in(tuple(size for node in self._body for size in _shape_of_result(node)))
        missing = wanted - _names_from(shapes)
        given = {
            str(size_of_torch(node.meta["val"])): place
            for place, node in enumerate(self._inputs)
            if isinstance(node.meta.get("val"), torch.SymInt)
        }
        for name in missing:
            if name not in given:
                raise NotConvertible(reason=f"the size {name} follows from no input of its region")
        return {name: given[name] for name in sorted(missing)}

    def __call__(self, *arguments: Any) -> Any:
        """The results of the region, as a tuple."""
        built = self._built
        if built is None or not built.serves(arguments):
            built = self._build(arguments)
        operands = built.operands(arguments)
        if self._sizes:
            operands += tuple(_nothing.expand(arguments[place]) for place in self._sizes.values())
        found = built.run(*operands)
        return found if isinstance(found, tuple) else (found,)

    def _build(self, arguments: Sequence[Any]) -> _Built:
        """Makes the graph, with weights as constants unless these change again and again."""
        constant = self._changes < MOST_REPACKED
        if self._changes == MOST_REPACKED:
            logger.info("weights of a compiled module change in many calls; they are not packed any more")
        self._changes += 1
        converter = Converter()
        weights, operands = [], []
        for place, (node, argument) in enumerate(zip(self._inputs, arguments, strict=True)):
            if not is_tensor(node):
                continue
            if constant and is_weight(argument):
                weights.append(place)
                converter.bind(node, array_of(argument), node.name)
            else:
                operands.append(place)
                converter.declare(node, node.name)
        for name in self._sizes:
            converter.graph.input(f"size {name}", "bool", (name,))
        for node in self._body:
            converter.add(node)
        for node in self._outputs:
            found = converter.values[node]
            assert not isinstance(found, list)
            converter.graph.output(found, node.name)
        built = _Built(weights, operands, converter.graph.compile(precision=self._precision))
        built.hold(arguments)
        self._built = built
        return built


#: An element that is expanded to arrays of any length.
_nothing = torch.zeros(1, dtype=torch.bool)


def _shape_of_result(node: fx.Node) -> Shape:
    found = node.meta.get("val")
    if isinstance(found, (tuple, list)) and not found:
        return ()
    return type_of_node(node).shape


def _names_from(shapes: Sequence[Shape]) -> set[str]:
    """The named sizes that `bind_sizes` finds from arrays of these shapes."""
    known = {str(size) for shape in shapes for size in shape if is_name(size)}
    for size in (one for shape in shapes for one in shape):
        unknown = {symbol.name for symbol in size.symbols} - known
        terms = [monomial for monomial, _ in size.terms if any(one.name in unknown for one in monomial)]
        if len(unknown) == 1 and len(terms) == 1 and sum(one.name in unknown for one in terms[0]) == 1:
            known |= unknown
    return known
