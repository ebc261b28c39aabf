"""Peers for products that few programs call directly: SciPy's BLAS functions, and IREE."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.errors import InvalidChoice, PackageMissing, UnsupportedDtype
from tilewright.records import dataclass
from tilewright.spec.dtype import C64, C128, F32, F64
from tilewright.tools.explore.prepared import (
    Arrays,
    Environment,
    ReturningProduct,
    SystemProduct,
    stored,
)

if TYPE_CHECKING:
    from tilewright.ops.gemm.problem import Gemm
    from tilewright.spec.problem import ProductTypes

_LETTERS = {F32: "s", F64: "d", C64: "c", C128: "z"}


@dataclass(frozen=True)
class SciPy:
    """`scipy.linalg.blas`, on the BLAS that SciPy was built with; C is written in place."""

    name: str = "scipy"
    package: str = "scipy"

    def environments(self, threads: int) -> tuple[Environment, ...]:  # noqa: ARG002
        """The caller's."""
        return ({},)

    def types(self, wanted: ProductTypes) -> ProductTypes:
        """The four types of BLAS."""
        if wanted.a == wanted.b == wanted.c and wanted.a in _LETTERS:
            return wanted
        raise UnsupportedDtype(dtype=f"{wanted.name} of scipy", supported="f32, f64, c64, c128")

    def call(self, types: ProductTypes) -> str:
        """The function of BLAS."""
        return f"scipy.linalg.blas.{_LETTERS[types.a]}gemm"

    def prepare(self, gemm: Gemm, arrays: Arrays, threads: int, target: str | None) -> SystemProduct:  # noqa: ARG002
        """The product of the transposes, in Fortran order, so that nothing is copied."""
        if arrays[2].ndim > 2:
            raise InvalidChoice(name="case", found="a batch", allowed="single products, as BLAS has them")
        function = getattr(import_module("scipy.linalg.blas"), f"{_LETTERS[gemm.types.a]}gemm")
        (a, flip_a), (b, flip_b) = (stored(array) for array in arrays[:2])
        left, right, result = b.T, a.T, arrays[2].T

        def run(_a: object, _b: object, out: object) -> None:  # noqa: ARG001
            function(1.0, left, right, 0.0, result, int(flip_b), int(flip_a), 1)

        return SystemProduct(run, *arrays)


#: IREE computes float64 in float32 unless it is told not to.
_KEEP_F64 = ("--iree-input-demote-f64-to-f32=false",)
_MLIR = """func.func @product(%a: tensor<{a}x{kind}>, %b: tensor<{b}x{kind}>) -> tensor<{c}x{kind}> {{
  %zero = arith.constant 0.0 : {kind}
  %empty = tensor.empty() : tensor<{c}x{kind}>
  %start = linalg.fill ins(%zero : {kind}) outs(%empty : tensor<{c}x{kind}>) -> tensor<{c}x{kind}>
  %product = linalg.{name} ins(%a, %b : tensor<{a}x{kind}>, tensor<{b}x{kind}>)
      outs(%start : tensor<{c}x{kind}>) -> tensor<{c}x{kind}>
  return %product : tensor<{c}x{kind}>
}}
"""


@dataclass(frozen=True)
class Iree:
    """`linalg.matmul` compiled by IREE for this CPU, with data tiling; a new array for each result."""

    name: str = "iree"
    package: str = "iree"

    def environments(self, threads: int) -> tuple[Environment, ...]:  # noqa: ARG002
        """The caller's."""
        return ({},)

    def types(self, wanted: ProductTypes) -> ProductTypes:
        """float32 and float64."""
        for package in ("iree.compiler", "iree.runtime"):
            if find_spec("iree") is None or find_spec(package) is None:
                install = "iree-base-compiler iree-base-runtime"
                raise PackageMissing(purpose="measuring iree", package=package, install=install)
        if wanted.a == wanted.b == wanted.c and wanted.a in (F32, F64):
            return wanted
        raise UnsupportedDtype(dtype=f"{wanted.name} of iree", supported="f32, f64")

    def call(self, types: ProductTypes) -> str:
        """The operation and the options that matter."""
        return f"IREE linalg.matmul({types.a}), llvm-cpu for the host, data tiling, local-sync"

    def prepare(self, gemm: Gemm, arrays: Arrays, threads: int, target: str | None) -> SystemProduct:  # noqa: ARG002
        """Compiled for these sizes; operands are copied to the device beforehand."""
        if threads != 1:
            raise InvalidChoice(name="threads of iree", found=threads, allowed="1, as local-sync has it")
        compiler, runtime = import_module("iree.compiler"), import_module("iree.runtime")
        name = "matmul" if arrays[2].ndim == 2 else "batch_matmul"
        shapes = dict(zip("abc", ("x".join(map(str, array.shape)) for array in arrays), strict=True))
        text = _MLIR.format(**shapes, kind=str(gemm.types.a), name=name)
        options = ["--iree-llvmcpu-target-cpu=host", "--iree-opt-data-tiling", *_KEEP_F64]
        code = compiler.compile_str(text, target_backends=["llvm-cpu"], extra_args=options)
        context = runtime.SystemContext(config=runtime.Config("local-sync"))
        context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, code))
        function = context.modules.module["product"]
        a, b = (
            runtime.asdevicearray(context.config.device, np.ascontiguousarray(array)) for array in arrays[:2]
        )
        return IreeProduct(function, a, b, arrays[2])


@dataclass(frozen=True)
class IreeProduct(ReturningProduct):
    """A product whose result is an array of a device."""

    def finish(self) -> None:
        """Copy the last result into C."""
        out: Any = self.out
        out[...] = self.last.pop().to_host()
