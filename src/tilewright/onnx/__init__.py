"""ONNX models: read into graphs, and run as a backend of the `onnx` library."""

from tilewright.onnx.backend import Backend as Backend
from tilewright.onnx.load import load as load

__all__ = ["Backend", "load"]
