"""The `onnx` library, which only this package imports."""

from __future__ import annotations

from tilewright.errors import PackageMissing

try:
    import google.protobuf.message as protobuf
    import onnx
    import onnx.backend.base
    import onnx.checker
    import onnx.defs
    import onnx.helper
    import onnx.inliner
    import onnx.numpy_helper
except ImportError as error:
    raise PackageMissing(
        purpose="reading ONNX models", package="onnx", install="'tilewright[onnx]'"
    ) from error

__all__ = ["onnx", "protobuf"]
