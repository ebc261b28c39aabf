"""Nodes of ATen graphs become values of a `Graph`, one by one, by the rows of `rows/`."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import fx

from tilewright.calls.torch_functions import numpy_type_of
from tilewright.errors import NotConvertible, TilewrightError
from tilewright.graph.builder import Graph
from tilewright.graph.sizes import Shape
from tilewright.graph.value import Value
from tilewright.torch.rows.row import AtenCall, TensorType
from tilewright.torch.rows.table import ROWS
from tilewright.torch.sizes import shape_of_torch, size_of_torch


def type_of(found: Any) -> TensorType:
    """The type of a fake tensor.

    Raises
    ------
    NotConvertible : a tensor that is not on the CPU, or whose elements or sizes graphs do not have.
    """
    if not isinstance(found, torch.Tensor):
        raise NotConvertible(reason="its result is no tensor")
    if found.device.type != "cpu":
        raise NotConvertible(reason=f"it is on the device {found.device}")
    if found.layout != torch.strided:
        raise NotConvertible(reason=f"its layout is {found.layout}")
    dtype = numpy_type_of(found.dtype)
    if dtype is None:
        raise NotConvertible(reason=f"graphs have no element type {found.dtype}")
    return TensorType(dtype, shape_of_torch(found.shape))


def type_of_node(node: fx.Node) -> TensorType:
    """The type of a node's result; of several results, that of the first.

    Raises
    ------
    NotConvertible
    """
    found = node.meta.get("val")
    return type_of(found[0] if isinstance(found, (tuple, list)) and found else found)


def is_tensor(node: fx.Node) -> bool:
    """Return whether a node's result is a tensor and not a size."""
    return isinstance(node.meta.get("val"), torch.Tensor)


class Converter:
    """Adds nodes to a graph.

    Attributes
    ----------
    graph : the graph.
    values : what nodes have become so far.
    """

    def __init__(self) -> None:
        self.graph = Graph()
        self.values: dict[fx.Node, Value | list[Value]] = {}

    def declare(self, node: fx.Node, name: str) -> None:
        """Makes a node an input of the graph.

        Raises
        ------
        NotConvertible
        """
        kind = type_of_node(node)
        self.values[node] = self.graph.input(name, kind.dtype, kind.shape)

    def bind(self, node: fx.Node, array: Any, name: str) -> None:
        """Makes a node a constant of the graph."""
        self.values[node] = self.graph.constant(array, name)

    def add(self, node: fx.Node) -> None:
        """Converts a node whose operands have been converted.

        Raises
        ------
        NotConvertible : an operation without a row, or operands that its row does not take.
        TilewrightError : operands that the graph does not take.
        """
        if node.target is operator.getitem:
            self.values[node] = self._item(node)
            return
        row = ROWS.get(node.target)
        if row is None:
            raise NotConvertible(reason="it has no row in the table of operations")
        several = isinstance(node.meta.get("val"), (tuple, list))
        if several and row.results == 1 and not _reads_first_only(node):
            raise NotConvertible(reason="results other than its first one are read")
        arguments = [self._argument(one) for one in node.args]
        named = {name: self._argument(one) for name, one in node.kwargs.items()}
        wanted = None if row.results is None else type_of_node(node)
        found = row.convert(AtenCall(self.graph, wanted, node.meta.get("val")), *arguments, **named)
        if isinstance(found, Value):
            assert wanted is not None
            _require(found, wanted)
        self.values[node] = found

    def _item(self, node: fx.Node) -> Value:
        source, place = node.args
        assert isinstance(source, fx.Node)
        assert isinstance(place, int)
        whole = self.values.get(source)
        if whole is None:
            raise NotConvertible(reason=f"{source.target} stays with PyTorch")
        found = whole[place] if isinstance(whole, list) else whole
        _require(found, type_of_node(node))
        return found

    def _argument(self, given: Any) -> Any:
        """An argument of a node: values for tensors, polynomials for symbolic sizes."""
        if isinstance(given, (list, tuple)):
            return [self._argument(one) for one in given]
        if not isinstance(given, fx.Node):
            return given
        if given in self.values:
            return self.values[given]
        found = given.meta.get("val")
        if isinstance(found, (int, torch.SymInt)):
            size = size_of_torch(found)
            return size if size.constant is None else size.constant
        raise NotConvertible(reason=f"its operand {given.name} is no tensor")


def _reads_first_only(node: fx.Node) -> bool:
    return all(user.target is operator.getitem and user.args[1] == 0 for user in node.users)


def _require(found: Value, wanted: TensorType) -> None:
    """Raises unless a value has the type that PyTorch's result has."""
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        made, needed = (f"{one.dtype}{_shown(one.shape)}" for one in (found, wanted))
        raise NotConvertible(reason=f"it would be {made}, must be {needed}")


def _shown(shape: Shape) -> str:
    return f"[{', '.join(map(str, shape))}]"


class ConversionVerdict(NamedTuple):
    """Whether a node can be converted.

    Attributes
    ----------
    reason : why it stays with PyTorch, or "".
    """

    reason: str = ""


def judged(node: fx.Node, verdicts: Mapping[fx.Node, ConversionVerdict]) -> ConversionVerdict:
    """Tries to convert one node, in a graph of its own.

    Parameters
    ----------
    verdicts : those of the nodes before it.
    """
    probe = Converter()
    try:
        if node.target is operator.getitem:
            source = node.args[0]
            assert isinstance(source, fx.Node)
            if verdicts.get(source, ConversionVerdict("a")).reason:
                return ConversionVerdict(f"it is part of {source.target}, which stays with PyTorch")
            return ConversionVerdict()
        for number, operand in enumerate(node.all_input_nodes):
            if isinstance(operand.meta.get("val"), torch.Tensor):
                probe.declare(operand, f"operand{number}")
        probe.add(node)
    except TilewrightError as error:
        return ConversionVerdict(str(error))
    except (TypeError, ValueError, np.exceptions.AxisError) as error:
        return ConversionVerdict(f"{type(error).__name__}: {error}")
    return ConversionVerdict()
