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
from tilewright.loops.accelerate.public import accelerate
from tilewright.machine.host import machine
from tilewright.ops.attention.backward_problem import AttentionBackward
from tilewright.ops.attention.problem import Attention
from tilewright.ops.batch_reduce.problem import BatchReduceGemm
from tilewright.ops.chain.problem import LinearChain
from tilewright.ops.contraction.problem import Contraction, Dimension
from tilewright.ops.einsum.public import einsum
from tilewright.ops.elementwise.problem import Elementwise
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.matmul.public import matmul
from tilewright.ops.mmt4d.problem import Mmt4d
from tilewright.ops.packing.problem import Packing
from tilewright.ops.rows.problem import RowFunction
from tilewright.ops.rows.public import (
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
from tilewright.ops.rows.public_reductions import max, mean, min, sum  # noqa: A004 (NumPy's names)
from tilewright.ops.sum_of_products.problem import SumOfProducts
from tilewright.ops.triangular.public import syr2k, syrk, trmm
from tilewright.ops.triangular.syr2k_problem import Syr2k, Syrk
from tilewright.ops.triangular.trmm_problem import Trmm
from tilewright.ops.unary.problem import Unary
from tilewright.preparing import importing
from tilewright.spec.dtype import DType
from tilewright.spec.epilogue import Activation, Bias, Clamp, Epilogue, Residual, Saturate, Scale

if TYPE_CHECKING:
    from tilewright.compiler.kernel import Kernel
    from tilewright.ops.linear.activations import QuantizedRows
    from tilewright.ops.packing.matrix import PackedMatrix

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
            from tilewright.compiler.kernel import Kernel

        return Kernel
    if name == "PackedMatrix":
        with importing:
            from tilewright.ops.packing.matrix import PackedMatrix

        return PackedMatrix
    if name == "QuantizedRows":
        with importing:
            from tilewright.ops.linear.activations import QuantizedRows

        return QuantizedRows
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    # Completion offers the public names, including those that are loaded late, and no imports of this file.
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
