"""ONNX models: read into graphs, and run as a backend of the `onnx` library."""

from tilewright.onnx.backend import Backend as Backend
from tilewright.onnx.load import load as load
from tilewright.onnx.load import read as read

#: The functions of a backend, so that this module is one: `tilewright.onnx.prepare(model).run(inputs)`.
is_compatible = Backend.is_compatible
prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device

__all__ = ["Backend", "is_compatible", "load", "prepare", "read", "run_model", "run_node", "supports_device"]
