"""`Backend`: the interface of the `onnx` library to systems that run models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tilewright.calls.operands import Array
from tilewright.errors import GraphInputs, ModelDevice, UnsupportedModel
from tilewright.graph.compiled import CompiledGraph
from tilewright.onnx.library import onnx
from tilewright.onnx.load import graph_of
from tilewright.onnx.source import DEFAULT_DOMAINS, LAST_OPSET, ModelSource, read_model


class PreparedModel(onnx.backend.base.BackendRep):
    """A model that is ready to run.

    Inputs whose values decide about shapes are compiled in: a call with other values of them compiles again.
    So does a call with other sizes, of a model that cannot be imported for all of them.

    Attributes
    ----------
    inputs, outputs : names, in the model's order.
    """

    def __init__(self, source: ModelSource, precision: str = "f32") -> None:
        self._model, self._precision = read_model(source), precision
        graph = self._model.proto.graph
        held = {one.name for one in graph.initializer}
        given = [one for one in graph.input if one.name not in held]
        self.inputs = tuple(one.name for one in given)
        self.outputs = tuple(one.name for one in graph.output)
        sizes = [size for one in given for size in one.type.tensor_type.shape.dim]
        self._sized = all(size.HasField("dim_value") for size in sizes)
        self._fixed: tuple[str, ...] = ()
        self._compiled: dict[Any, CompiledGraph] = {}
        try:
            self._compiled[()] = self._compile({}, {})
        except UnsupportedModel as error:
            self._fixed = self._needed(error)

    def _compile(self, shapes: dict[str, Any], constants: dict[str, Array]) -> CompiledGraph:
        return graph_of(self._model, shapes, constants).compile(precision=self._precision)

    def _needed(self, error: UnsupportedModel) -> tuple[str, ...]:
        """Inputs whose values would make more of a model's nodes supported.

        Raises
        ------
        UnsupportedModel : neither values nor sizes would.
        """
        nodes: Any = error.fields["nodes"]
        if any(not node.known for node in nodes) or not nodes:
            raise error
        fresh = {name for node in nodes for name in node.needs} - set(self._fixed)
        if not fresh and self._sized:
            raise error
        return (*self._fixed, *sorted(fresh))

    def run(self, inputs: Any, **options: Any) -> tuple[Array, ...]:
        """The outputs for inputs in order, or by name.

        Raises
        ------
        GraphInputs, GraphInput : inputs that are missing, unknown or of another type or shape.
        """
        if isinstance(inputs, Mapping):
            given = dict(inputs)
        else:
            listed = inputs if isinstance(inputs, (list, tuple)) else [inputs]
            if len(listed) > len(self.inputs):
                raise self._refused(f"found {len(listed)}")
            given = dict(zip(self.inputs, listed, strict=False))
        wrong = [name for name in given if name not in self.inputs]
        wrong = wrong or [name for name in self.inputs if name not in given]
        if wrong:
            missing = wrong[0] in self.inputs
            raise self._refused(f"{', '.join(wrong)} {'is missing' if missing else 'is none of them'}")
        arrays = {name: np.asarray(value) for name, value in given.items()}
        compiled = self._for(arrays)
        rest = [arrays[name] for name in self.inputs if name not in self._fixed]
        found = compiled(*rest, **options)
        return found if isinstance(found, tuple) else (found,)

    def _refused(self, reason: str) -> GraphInputs:
        return GraphInputs(known=", ".join(self.inputs) or "none", reason=reason)

    def _for(self, arrays: Mapping[str, Array]) -> CompiledGraph:
        """The compiled graph for the values of inputs that decide about shapes."""
        shapes = {name: one.shape for name, one in arrays.items()}
        while True:
            fixed = {name: arrays[name] for name in self._fixed}
            key = tuple((one.shape, one.tobytes()) for one in fixed.values())
            found = self._compiled.get(key) or self._compiled.get((key, *shapes.values()))
            if found is not None:
                return found
            try:
                self._compiled[key] = self._compile({}, fixed)
            except UnsupportedModel as error:
                needed = self._needed(error)
                if needed == self._fixed:  # what is left may depend on sizes
                    free = {name: shape for name, shape in shapes.items() if name not in fixed}
                    self._compiled[key, *shapes.values()] = self._compile(free, fixed)
                self._fixed = needed


class Backend(onnx.backend.base.Backend):
    """Tilewright as a backend: `prepare` a model and `run` it, or `run_model` at once.

    Examples
    --------
    >>> import numpy as np, onnx, tilewright.onnx
    >>> model = onnx.parser.parse_model('''
    ...     <ir_version: 8, opset_import: ["" : 18]>
    ...     agraph (float[n] x) => (float[n] y) { y = Abs(x) }''')
    >>> tilewright.onnx.Backend.run_model(model, [np.array([-1, 2], np.float32)])
    (array([1., 2.], dtype=float32),)
    """

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **options: Any) -> bool:  # noqa: ARG003
        """Return whether every node of a model is supported, or would be once inputs are known."""
        try:
            cls.prepare(model, device)
        except (UnsupportedModel, ModelDevice):
            return False
        return True

    @classmethod
    def prepare(cls, model: ModelSource, device: str = "CPU", **options: Any) -> PreparedModel:
        """A model, compiled.

        Parameters
        ----------
        options : "precision", as of `tilewright.onnx.load`.

        Raises
        ------
        ModelDevice, and what `tilewright.onnx.load` raises
        """
        if not cls.supports_device(device):
            raise ModelDevice(device=device)
        return PreparedModel(model, **options)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Any = None,  # noqa: ARG003 - types and shapes follow from the inputs
        **options: Any,
    ) -> tuple[Array, ...]:
        """The outputs of one node.

        Parameters
        ----------
        inputs : arrays in the order of the node's inputs, missing ones left out, or by name.
        options : "opset_version", by default the last one; "precision".
        """
        version = options.pop("opset_version", min(LAST_OPSET, onnx.defs.onnx_opset_version()))
        names = list(dict.fromkeys(filter(None, node.input)))
        listed = [inputs[name] for name in names] if isinstance(inputs, Mapping) else list(inputs)
        arrays = [np.asarray(one) for one in listed]
        helper = onnx.helper
        declared = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape)
            for name, one in zip(names, arrays, strict=False)
        ]
        results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = helper.make_graph([node], node.op_type, declared, results)
        opsets = [helper.make_opsetid("", version)]
        if node.domain not in DEFAULT_DOMAINS:
            opsets.append(helper.make_opsetid(node.domain, 1))
        model = helper.make_model(graph, opset_imports=opsets)
        return cls.prepare(model, device, **options).run(arrays)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return whether a device is a CPU."""
        return device.partition(":")[0].upper() == "CPU"
