"""Tilewright: a tensor compiler for CPUs."""

from tilewright import errors as errors
from tilewright.api import matmul
from tilewright.errors import TilewrightError
from tilewright.machine.catalog import targets
from tilewright.machine.host import machine
from tilewright.runtime.kernel import Kernel
from tilewright.runtime.kernel import compile_problem as compile
from tilewright.spec.dtype import DType
from tilewright.spec.problem import Gemm

__version__ = "0.1.0"

__all__ = ["DType", "Gemm", "Kernel", "TilewrightError", "compile", "errors", "machine", "matmul", "targets"]
