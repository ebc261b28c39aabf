"""Tilewright: a tensor compiler for CPUs."""

from typing import TYPE_CHECKING, Any

from tilewright import errors as errors
from tilewright.api import compile, explain, matmul, targets, transpose
from tilewright.errors import TilewrightError
from tilewright.machine.host import machine
from tilewright.spec.dtype import DType
from tilewright.spec.problem import BatchReduceGemm, Gemm
from tilewright.spec.unary import Unary

if TYPE_CHECKING:
    from tilewright.runtime.kernel import Kernel

__version__ = "0.1.0"

__all__ = [
    "BatchReduceGemm",
    "DType",
    "Gemm",
    "Kernel",
    "TilewrightError",
    "Unary",
    "compile",
    "errors",
    "explain",
    "machine",
    "matmul",
    "targets",
    "transpose",
]


def __getattr__(name: str) -> Any:
    # Kernel brings the whole compiler with it; whoever only imports the package does not pay for that.
    if name == "Kernel":
        from tilewright.runtime.kernel import Kernel

        return Kernel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
