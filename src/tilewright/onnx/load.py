"""`tilewright.onnx.load`: a model becomes a graph, and the graph a function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.calls.foreign import as_array
from tilewright.errors import InvalidModel, LoadArgument, TilewrightError, UnsupportedModel, shown
from tilewright.errors.callers import named_in_errors
from tilewright.graph.builder import Graph
from tilewright.graph.compiled import CompiledGraph
from tilewright.graph.sizes import SizeLike
from tilewright.onnx.call import NodeCall, NotSupported, Tensor, UnsupportedNode
from tilewright.onnx.library import onnx
from tilewright.onnx.model_graph import ModelGraph
from tilewright.onnx.operators.shapes import size_result
from tilewright.onnx.operators.table import OPERATORS
from tilewright.onnx.sizes import SizeArray
from tilewright.onnx.source import DEFAULT_DOMAINS, Model, ModelSource, read_model
from tilewright.onnx.tensors import element_dtype, tensor_array

#: Names of nodes that a message has for each reason, at most.
_MOST_NAMES = 3


@named_in_errors
def load(
    model: ModelSource,
    *,
    precision: str = "f32",
    shapes: Mapping[str, Sequence[SizeLike]] | None = None,
    constants: Mapping[str, Any] | None = None,
) -> CompiledGraph:
    """An ONNX model as one function of its inputs.

    Sizes that the model names may differ from call to call. What a model computes of shapes is evaluated now.

    Parameters
    ----------
    model : path or bytes of a model file, or a parsed model.
        Data in other files must lie in the model's folder, so such a model is loaded by its path.
    precision : element type of float32 weights and their products: "f32" (as they are), "bf16",
        "i8-weights", "i4-weights" or "i8-dynamic".
    shapes : other shapes of inputs by name, of integers and names of sizes.
    constants : values of inputs by name, for inputs that decide about shapes: no inputs of the function.

    Returns
    -------
    CompiledGraph
        Its inputs and outputs have the model's names and order.

    Raises
    ------
    UnsupportedModel : lists every node that cannot be imported, with the reason.
    InvalidModel, ModelNotReadable, ExternalData : a damaged or missing file.
    LoadArgument : shapes or constants that fit no input, or a model of another type.

    Examples
    --------
    >>> import numpy as np, onnx, tilewright as tw
    >>> model = onnx.parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["" : 18]>
    ...     agraph (float[batch, 2] x) => (float[batch, 2] y) { y = Relu(x) }''')
    >>> tw.onnx.load(model)(np.array([[-1, 2]], np.float32))
    array([[0., 2.]], dtype=float32)
    """
    return model_graph(model, shapes, constants).compile(precision=precision)


@named_in_errors
def read(
    model: ModelSource,
    *,
    shapes: Mapping[str, Sequence[SizeLike]] | None = None,
    constants: Mapping[str, Any] | None = None,
) -> Graph:
    """The graph of an ONNX model before any pass, for `Graph.compile`; arguments and errors as of `load`."""
    return model_graph(model, shapes, constants)


def model_graph(
    model: ModelSource,
    shapes: Mapping[str, Sequence[SizeLike]] | None = None,
    constants: Mapping[str, Any] | None = None,
) -> Graph:
    """The graph of a model; see `read`."""
    return graph_of(read_model(model), _by_name(shapes, "shapes"), _by_name(constants, "constants"))


def graph_of(model: Model, shapes: dict[str, Any], constants: dict[str, Any]) -> Graph:
    """The graph of a parsed model."""
    return _Importer(model, shapes, constants).run()


def _by_name(given: Any, argument: str) -> dict[str, Any]:
    """An argument that is a mapping of inputs' names.

    Raises
    ------
    LoadArgument
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise LoadArgument(argument=argument, reason=f"found {shown(given)}, must be a dict by inputs' names")
    return dict(given)


class _Importer:
    """One walk over the nodes of a model.

    Attributes
    ----------
    values : by name; None for values that unsupported nodes would have computed.
    refused : what is not supported so far.
    """

    def __init__(self, model: Model, shapes: dict[str, Any], constants: dict[str, Any]) -> None:
        self._model, self._shapes, self._constants = model, shapes, constants
        self._context = onnx.checker.C.CheckerContext()
        self._context.ir_version = min(model.proto.ir_version, onnx.IR_VERSION)
        self._context.opset_imports = dict(model.opsets)
        self.graph = ModelGraph()
        self.values: dict[str, Tensor | None] = {}
        self.refused: list[UnsupportedNode] = []

    def run(self) -> Graph:
        """The graph.

        Raises
        ------
        UnsupportedModel, InvalidModel, ExternalData, LoadArgument
        """
        graph = self._model.proto.graph
        for tensor in graph.initializer:
            array = tensor_array(tensor, self._model.label, self._model.folder)
            self._enter(tensor.name, self.graph.constant(array, tensor.name))
        if graph.sparse_initializer:
            self.refused.append(UnsupportedNode("sparse tensor", "", "", "sparse tensors are not supported"))
        held = {tensor.name for tensor in graph.initializer}
        given = [one for one in graph.input if one.name not in held]
        for name in {**self._shapes, **self._constants}:
            if name not in {one.name for one in given}:
                known = ", ".join(one.name for one in given) or "none"
                raise LoadArgument(
                    argument=f"value for input {name}", reason=f"the model's inputs are {known}"
                )
        for one in given:
            self._input(one)
        for node in graph.node:
            self._node(node)
        for one in graph.output:
            if one.name not in self.values:
                raise self._invalid(f"no node computes output {one.name!r}")
        if self.refused:
            listed = listing(self.refused)
            raise UnsupportedModel(model=self._model.label, listed=listed, nodes=tuple(self.refused))
        for one in graph.output:
            found = self.values[one.name]
            assert found is not None
            self.graph.output(self.graph.sizes(found) if isinstance(found, SizeArray) else found, one.name)
        return self.graph

    def _invalid(self, reason: str) -> InvalidModel:
        return InvalidModel(model=self._model.label, reason=reason)

    def _enter(self, name: str, value: Tensor | None) -> None:
        if name in self.values:
            raise self._invalid(f"two values have the name {name!r}")
        self.values[name] = value

    # --- inputs ---------------------------------------------------------------------------------------

    def _input(self, given: onnx.ValueInfoProto) -> None:
        name, kind = given.name, given.type.tensor_type
        dtype = element_dtype(kind.elem_type) if given.type.HasField("tensor_type") else None
        shape = self._shapes.get(name)
        if dtype is None or (shape is None and not kind.HasField("shape") and name not in self._constants):
            reason = "no shape is declared (give one)" if dtype is not None else "it is no tensor of numbers"
            self.refused.append(UnsupportedNode("input", "", name, reason))
            self._enter(name, None)
            return
        declared = self._declared(name, kind)
        if name in self._constants:
            self._enter(name, self.graph.constant(self._constant(name, dtype, declared), name))
            return
        if shape is not None and not _is_shape(shape):
            reason = f"found {shown(shape)}, must be integers and names of sizes"
            raise LoadArgument(argument=f"shape of input {name}", reason=reason)
        if shape is not None and kind.HasField("shape") and not _fits(shape, declared):
            raise LoadArgument(argument=f"shape of input {name}", reason=f"the model declares {declared}")
        try:
            self._enter(name, self.graph.input(name, dtype, declared if shape is None else list(shape)))
        except TilewrightError as error:
            raise self._invalid(str(error)) from error

    def _declared(self, name: str, kind: onnx.TypeProto.Tensor) -> list[SizeLike]:
        """The declared shape; sizes without a name get one of their own."""
        found: list[SizeLike] = []
        for axis, dimension in enumerate(kind.shape.dim):
            if dimension.HasField("dim_value") and dimension.dim_value >= 0:
                found.append(int(dimension.dim_value))
            else:
                found.append(dimension.dim_param or f"{name}.{axis}")
        return found

    def _constant(self, name: str, dtype: np.dtype[Any], declared: list[SizeLike]) -> Any:
        array = as_array(self._constants[name], name)
        if array.dtype != dtype:
            reason = f"it has dtype {array.dtype}, must be {dtype}"
            raise LoadArgument(argument=f"constant of input {name}", reason=reason)
        if declared and not _fits(array.shape, declared):
            reason = f"it has shape {array.shape}, the model declares {declared}"
            raise LoadArgument(argument=f"constant of input {name}", reason=reason)
        return array

    # --- nodes ----------------------------------------------------------------------------------------

    def _node(self, node: onnx.NodeProto) -> None:
        for name in node.input:
            if name and name not in self.values:
                raise self._invalid(f"{_title(node)} uses {name!r} before it is computed")
        domain = "" if node.domain in DEFAULT_DOMAINS else node.domain
        results: Sequence[Tensor | None] = ()
        inputs = [self.values[name] if name else None for name in node.input]
        computed = all(value is not None for name, value in zip(node.input, inputs, strict=True) if name)
        try:
            operator = OPERATORS.get((domain, node.op_type))
            if operator is None:
                raise NotSupported("there is no such operator")
            if computed:
                self._check(node, domain)
                call = NodeCall(self.graph, node, self._model.opsets.get(domain, 1), inputs)
                found = size_result(call) if call.has_sizes and not domain else None
                results = call.checked(operator(call)) if found is None else (found,)
        except NotSupported as error:
            self._refuse(node, domain, error.reason, error.needs)
        except InvalidModel:
            raise
        except TilewrightError as error:
            self._refuse(node, domain, str(error))
        except Exception as error:
            self._refuse(node, domain, f"{type(error).__name__}: {error}")
        for number, name in enumerate(node.output):
            if name:
                self._enter(name, results[number] if number < len(results) else None)

    def _check(self, node: onnx.NodeProto, domain: str) -> None:
        """The rules of the operator's schema: numbers of inputs, names and types of attributes."""
        version = self._model.opsets.get(domain, 1)
        try:
            if onnx.defs.get_schema(node.op_type, version, domain).deprecated:
                return
        except onnx.defs.SchemaError:
            return
        try:
            onnx.checker.check_node(node, self._context)
        except onnx.checker.ValidationError as error:
            reason = str(error).partition("\n")[0]
            raise self._invalid(f"{_title(node)}: {reason}") from error

    def _refuse(self, node: onnx.NodeProto, domain: str, reason: str, needs: tuple[str, ...] = ()) -> None:
        known = (domain, node.op_type) in OPERATORS
        refused = UnsupportedNode(node.op_type, domain or "ai.onnx", node.name, reason, needs, known)
        self.refused.append(refused)


def _is_shape(shape: Any) -> bool:
    """Return whether an argument is a shape: integers, and names of sizes."""
    return isinstance(shape, (list, tuple)) and all(
        isinstance(one, (int, np.integer)) or (isinstance(one, str) and one) for one in shape
    )


def _fits(shape: Sequence[Any], declared: Sequence[SizeLike]) -> bool:
    """Whether a shape has the numbers that another one declares."""
    return len(shape) == len(declared) and all(
        not isinstance(one, int) or not isinstance(size, int) or size == one
        for size, one in zip(shape, declared, strict=True)
    )


def _title(node: onnx.NodeProto) -> str:
    return f"node {node.op_type} {node.name!r}" if node.name else f"node {node.op_type}"


def listing(nodes: Iterable[UnsupportedNode]) -> str:
    """Nodes in words, those of one operator and reason together.

    >>> listing([UnsupportedNode("Conv", "ai.onnx", name, "there is no such operator") for name in "abcde"])
    'Conv (ai.onnx), 5 nodes (a, b, c, ...): there is no such operator'
    """
    groups: dict[tuple[str, str, str], list[str]] = {}
    for node in nodes:
        groups.setdefault((node.op_type, node.domain, node.reason), []).append(node.name)
    found = []
    for (op_type, domain, reason), names in groups.items():
        shown = ", ".join(filter(None, names[:_MOST_NAMES])) + (", ..." if len(names) > _MOST_NAMES else "")
        count = f", {len(names)} nodes" if len(names) > 1 else ""
        title = f"{op_type} ({domain})" if domain else op_type
        found.append(f"{title}{count}{f' ({shown})' if shown else ''}: {reason}")
    return "; ".join(found)
