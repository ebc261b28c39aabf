"""`Backend`: the interface of the `onnx` library to systems that run models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx.backend.base

from tilewright.calls.operands import Array
from tilewright.errors import ModelDevice, UnsupportedModel
from tilewright.graph.compiled import CompiledGraph
from tilewright.onnx.library import onnx as library
from tilewright.onnx.load import model_graph


class PreparedModel(onnx.backend.base.BackendRep):
    """A model that is ready to run.

    Inputs whose values decide about shapes are compiled in: a call with other values of them compiles again.
    """

    def __init__(self, model: library.ModelProto) -> None:
        self._model = model
        held = {one.name for one in model.graph.initializer}
        self._names = [one.name for one in model.graph.input if one.name not in held]
        self._fixed: tuple[str, ...] = ()
        self._compiled: dict[tuple[Any, ...], CompiledGraph] = {}
        try:
            self._compiled[()] = model_graph(model).compile()
        except UnsupportedModel as error:
            needs = _needs(error)
            if not needs:
                raise
            self._fixed = needs

    def run(self, inputs: Any, **options: Any) -> tuple[Array, ...]:
        """The outputs for inputs in order, or by name."""
        if isinstance(inputs, Mapping):
            arrays = dict(inputs)
        else:
            given = inputs if isinstance(inputs, (list, tuple)) else [inputs]
            arrays = dict(zip(self._names, given, strict=True))
        arrays = {name: np.asarray(value) for name, value in arrays.items()}
        compiled = self._for(arrays)
        rest = [arrays[name] for name in self._names if name not in self._fixed]
        found = compiled(*rest, **options)
        return found if isinstance(found, tuple) else (found,)

    def _for(self, arrays: Mapping[str, Array]) -> CompiledGraph:
        """The compiled graph for the values of inputs that decide about shapes."""
        while True:
            fixed = {name: arrays[name] for name in self._fixed}
            key = tuple((one.shape, one.tobytes()) for one in fixed.values())
            if key in self._compiled:
                return self._compiled[key]
            try:
                self._compiled[key] = model_graph(self._model, constants=fixed).compile()
            except UnsupportedModel as error:
                fresh = tuple(name for name in _needs(error) if name not in self._fixed)
                if not fresh:
                    raise
                self._fixed = (*self._fixed, *fresh)


def _needs(error: UnsupportedModel) -> tuple[str, ...]:
    """Inputs whose values would make more of a model's nodes supported."""
    nodes = error.fields["nodes"]
    assert isinstance(nodes, Sequence)
    if any(not node.needs for node in nodes):
        return ()
    return tuple(sorted({name for node in nodes for name in node.needs}))


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
    def is_compatible(cls, model: library.ModelProto, device: str = "CPU", **options: Any) -> bool:  # noqa: ARG003
        """Return whether every node of a model is supported, or would be once inputs are known."""
        try:
            cls.prepare(model, device)
        except (UnsupportedModel, ModelDevice):
            return False
        return True

    @classmethod
    def prepare(cls, model: library.ModelProto, device: str = "CPU", **options: Any) -> PreparedModel:  # noqa: ARG003
        """A model, compiled.

        Raises
        ------
        ModelDevice, and what `tilewright.onnx.load` raises
        """
        if not cls.supports_device(device):
            raise ModelDevice(device=device)
        return PreparedModel(model)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return whether a device is a CPU."""
        return device.partition(":")[0].upper() == "CPU"
