"""Tilewright: a tensor compiler for CPUs."""

from typing import TYPE_CHECKING, Any

from tilewright import errors as errors
from tilewright.api import (
    append_kv,
    attention,
    attention_backward,
    attention_partial,
    compile,
    compile_einsum,
    einsum_contraction,
    einsum_tree,
    explain,
    get_num_threads,
    inner,
    kron,
    linear,
    matmul_integer,
    matvec,
    merge_attention,
    mmt4d,
    pack,
    pack_quantized,
    quantize_rows,
    quantize_weights,
    schedule,
    set_num_threads,
    targets,
    tensordot,
    transpose,
    unpack,
    vecdot,
    vecmat,
)
from tilewright.errors import TilewrightError
from tilewright.functions import (
    erf,
    exp,
    gelu,
    layer_norm,
    log_softmax,
    relu,
    rms_norm,
    sigmoid,
    silu,
    softmax,
    tanh,
)
from tilewright.loops import accelerate
from tilewright.machine.host import machine
from tilewright.preparing import importing
from tilewright.reductions import max, mean, min, sum  # noqa: A004 (NumPy's names)
from tilewright.runtime.einsum_front import einsum
from tilewright.runtime.matmul_front import matmul
from tilewright.spec.attention import Attention
from tilewright.spec.attention_backward import AttentionBackward
from tilewright.spec.chain import LinearChain
from tilewright.spec.contraction import Contraction, Dimension
from tilewright.spec.dtype import DType
from tilewright.spec.elementwise import Elementwise
from tilewright.spec.epilogue import Activation, Bias, Clamp, Epilogue, Residual, Saturate, Scale
from tilewright.spec.mmt4d import Mmt4d
from tilewright.spec.packing import Packing
from tilewright.spec.problem import BatchReduceGemm, Gemm
from tilewright.spec.row_function import RowFunction
from tilewright.spec.sum_of_products import SumOfProducts
from tilewright.spec.syr2k import Syr2k, Syrk
from tilewright.spec.trmm import Trmm
from tilewright.spec.unary import Unary
from tilewright.triangles import syr2k, syrk, trmm

if TYPE_CHECKING:
    from tilewright.runtime.kernel import Kernel
    from tilewright.runtime.packed import PackedMatrix
    from tilewright.runtime.rows import QuantizedRows

__version__ = "0.1.0"

__all__ = [
    "Activation",
    "Attention",
    "AttentionBackward",
    "BatchReduceGemm",
    "Bias",
    "Clamp",
    "Contraction",
    "DType",
    "Dimension",
    "Elementwise",
    "Epilogue",
    "Gemm",
    "Kernel",
    "LinearChain",
    "Mmt4d",
    "PackedMatrix",
    "Packing",
    "QuantizedRows",
    "Residual",
    "RowFunction",
    "Saturate",
    "Scale",
    "SumOfProducts",
    "Syr2k",
    "Syrk",
    "TilewrightError",
    "Trmm",
    "Unary",
    "accelerate",
    "append_kv",
    "attention",
    "attention_backward",
    "attention_partial",
    "compile",
    "compile_einsum",
    "einsum",
    "einsum_contraction",
    "einsum_tree",
    "erf",
    "errors",
    "exp",
    "explain",
    "gelu",
    "get_num_threads",
    "inner",
    "kron",
    "layer_norm",
    "linear",
    "log_softmax",
    "machine",
    "matmul",
    "matmul_integer",
    "matvec",
    "max",
    "mean",
    "merge_attention",
    "min",
    "mmt4d",
    "pack",
    "pack_quantized",
    "quantize_rows",
    "quantize_weights",
    "relu",
    "rms_norm",
    "schedule",
    "set_num_threads",
    "sigmoid",
    "silu",
    "softmax",
    "sum",
    "syr2k",
    "syrk",
    "tanh",
    "targets",
    "tensordot",
    "transpose",
    "trmm",
    "unpack",
    "vecdot",
    "vecmat",
]


def __getattr__(name: str) -> Any:
    # Kernel brings the whole compiler with it; whoever only imports the package does not pay for that.
    if name == "Kernel":
        with importing:
            from tilewright.runtime.kernel import Kernel

        return Kernel
    if name == "PackedMatrix":
        with importing:
            from tilewright.runtime.packed import PackedMatrix

        return PackedMatrix
    if name == "QuantizedRows":
        with importing:
            from tilewright.runtime.rows import QuantizedRows

        return QuantizedRows
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    # Completion offers the public names, including those that are loaded late, and no imports of this file.
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
