"""Tilewright: a tensor compiler for CPUs."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tilewright import errors as errors
from tilewright.deprecated import Deprecated
from tilewright.errors import TilewrightError
from tilewright.preparing import importing
from tilewright.threads.lifetime import watch_forks
from tilewright.threads.limits import register_pool

if TYPE_CHECKING:
    from tilewright import array_api as array_api
    from tilewright import onnx as onnx
    from tilewright.calls.compile import compile
    from tilewright.calls.repeated import show_calls
    from tilewright.compiler.kernel import Kernel
    from tilewright.configuration import show_config
    from tilewright.graph.builder import Graph
    from tilewright.graph.compiled import CompiledGraph, load_graph
    from tilewright.installation.public import install, installed, uninstall
    from tilewright.loops.accelerate.public import accelerate
    from tilewright.machine.catalog import targets
    from tilewright.machine.host import machine
    from tilewright.ops.attention.backward_problem import AttentionBackward
    from tilewright.ops.attention.problem import Attention
    from tilewright.ops.attention.public import (
        attention,
        attention_backward,
        attention_partial,
        merge_attention,
    )
    from tilewright.ops.attention.public_cache import append_kv
    from tilewright.ops.batch_reduce.problem import BatchReduceGemm
    from tilewright.ops.binary.problem import BinaryFunction
    from tilewright.ops.binary.public import gated
    from tilewright.ops.chain.problem import LinearChain
    from tilewright.ops.contraction.dimension import Dimension
    from tilewright.ops.contraction.problem import Contraction
    from tilewright.ops.contraction.public import schedule
    from tilewright.ops.einsum.contraction_call import einsum_contraction
    from tilewright.ops.einsum.products import inner, kron, matvec, tensordot, vecdot, vecmat
    from tilewright.ops.einsum.public import einsum
    from tilewright.ops.einsum.public_compiled import compile_einsum, einsum_tree
    from tilewright.ops.elementwise.problem import Elementwise
    from tilewright.ops.elementwise.public import erf, exp, gelu, relu, sigmoid, silu, tanh
    from tilewright.ops.embedding.problem import Embedding
    from tilewright.ops.embedding.public import embedding
    from tilewright.ops.explain import explain
    from tilewright.ops.gemm.problem import Gemm
    from tilewright.ops.linear.activations import QuantizedRows, quantize_rows
    from tilewright.ops.matmul.integers import matmul_integer
    from tilewright.ops.matmul.linear import linear
    from tilewright.ops.matmul.public import matmul
    from tilewright.ops.mmt4d.call import mmt4d
    from tilewright.ops.mmt4d.problem import Mmt4d
    from tilewright.ops.packing.matrix import PackedMatrix
    from tilewright.ops.packing.problem import Packing
    from tilewright.ops.quantized.public import pack, pack_quantized, quantize_weights, unpack
    from tilewright.ops.rotary.problem import Rotary
    from tilewright.ops.rotary.public import rotary
    from tilewright.ops.rotary.tables import rotary_tables
    from tilewright.ops.rows.problem import RowFunction
    from tilewright.ops.rows.public import layer_norm, log_softmax, rms_norm, softmax
    from tilewright.ops.rows.public_reductions import max, mean, min, sum  # noqa: A004 (NumPy's names)
    from tilewright.ops.sampling.public import sample
    from tilewright.ops.sum_of_products.problem import SumOfProducts
    from tilewright.ops.transpose.public import transpose
    from tilewright.ops.triangular.public import syr2k, syrk, trmm
    from tilewright.ops.triangular.syr2k_problem import Syr2k, Syrk
    from tilewright.ops.triangular.trmm_problem import Trmm
    from tilewright.ops.unary.problem import Unary
    from tilewright.spec.dtype import DType
    from tilewright.spec.epilogue import Activation, Bias, Clamp, Epilogue, Residual, Saturate, Scale
    from tilewright.threads.pool import get_num_threads, set_num_threads
    from tilewright.weights.gguf_file import load_gguf
    from tilewright.weights.layouts import unpack_awq, unpack_gptq, unpack_hqq
    from tilewright.weights.safetensors_file import load_safetensors

__version__ = "0.1.0"

__all__ = [
    "Activation",
    "Attention",
    "AttentionBackward",
    "BatchReduceGemm",
    "Bias",
    "BinaryFunction",
    "Clamp",
    "CompiledGraph",
    "Contraction",
    "DType",
    "Dimension",
    "Elementwise",
    "Embedding",
    "Epilogue",
    "Gemm",
    "Graph",
    "Kernel",
    "LinearChain",
    "Mmt4d",
    "PackedMatrix",
    "Packing",
    "QuantizedRows",
    "Residual",
    "Rotary",
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
    "embedding",
    "erf",
    "errors",
    "exp",
    "explain",
    "gated",
    "gelu",
    "get_num_threads",
    "inner",
    "install",
    "installed",
    "kron",
    "layer_norm",
    "linear",
    "load_gguf",
    "load_graph",
    "load_safetensors",
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
    "rotary",
    "rotary_tables",
    "sample",
    "schedule",
    "set_num_threads",
    "show_calls",
    "show_config",
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
    "uninstall",
    "unpack",
    "unpack_awq",
    "unpack_gptq",
    "unpack_hqq",
    "vecdot",
    "vecmat",
]

#: Public name: the module that defines it, imported when the name is first looked up.
_HOMES = {
    "Activation": "tilewright.spec.epilogue",
    "Attention": "tilewright.ops.attention.problem",
    "AttentionBackward": "tilewright.ops.attention.backward_problem",
    "BatchReduceGemm": "tilewright.ops.batch_reduce.problem",
    "Bias": "tilewright.spec.epilogue",
    "BinaryFunction": "tilewright.ops.binary.problem",
    "Clamp": "tilewright.spec.epilogue",
    "CompiledGraph": "tilewright.graph.compiled",
    "Contraction": "tilewright.ops.contraction.problem",
    "DType": "tilewright.spec.dtype",
    "Dimension": "tilewright.ops.contraction.dimension",
    "Elementwise": "tilewright.ops.elementwise.problem",
    "Embedding": "tilewright.ops.embedding.problem",
    "Epilogue": "tilewright.spec.epilogue",
    "Gemm": "tilewright.ops.gemm.problem",
    "Graph": "tilewright.graph.builder",
    "Kernel": "tilewright.compiler.kernel",
    "LinearChain": "tilewright.ops.chain.problem",
    "Mmt4d": "tilewright.ops.mmt4d.problem",
    "PackedMatrix": "tilewright.ops.packing.matrix",
    "Packing": "tilewright.ops.packing.problem",
    "QuantizedRows": "tilewright.ops.linear.activations",
    "Residual": "tilewright.spec.epilogue",
    "Rotary": "tilewright.ops.rotary.problem",
    "RowFunction": "tilewright.ops.rows.problem",
    "Saturate": "tilewright.spec.epilogue",
    "Scale": "tilewright.spec.epilogue",
    "SumOfProducts": "tilewright.ops.sum_of_products.problem",
    "Syr2k": "tilewright.ops.triangular.syr2k_problem",
    "Syrk": "tilewright.ops.triangular.syr2k_problem",
    "Trmm": "tilewright.ops.triangular.trmm_problem",
    "Unary": "tilewright.ops.unary.problem",
    "accelerate": "tilewright.loops.accelerate.public",
    "append_kv": "tilewright.ops.attention.public_cache",
    "attention": "tilewright.ops.attention.public",
    "attention_backward": "tilewright.ops.attention.public",
    "attention_partial": "tilewright.ops.attention.public",
    "compile": "tilewright.calls.compile",
    "compile_einsum": "tilewright.ops.einsum.public_compiled",
    "einsum": "tilewright.ops.einsum.public",
    "einsum_contraction": "tilewright.ops.einsum.contraction_call",
    "einsum_tree": "tilewright.ops.einsum.public_compiled",
    "embedding": "tilewright.ops.embedding.public",
    "erf": "tilewright.ops.elementwise.public",
    "exp": "tilewright.ops.elementwise.public",
    "explain": "tilewright.ops.explain",
    "gated": "tilewright.ops.binary.public",
    "gelu": "tilewright.ops.elementwise.public",
    "get_num_threads": "tilewright.threads.pool",
    "inner": "tilewright.ops.einsum.products",
    "install": "tilewright.installation.public",
    "installed": "tilewright.installation.public",
    "kron": "tilewright.ops.einsum.products",
    "layer_norm": "tilewright.ops.rows.public",
    "linear": "tilewright.ops.matmul.linear",
    "load_gguf": "tilewright.weights.gguf_file",
    "load_graph": "tilewright.graph.compiled",
    "load_safetensors": "tilewright.weights.safetensors_file",
    "log_softmax": "tilewright.ops.rows.public",
    "machine": "tilewright.machine.host",
    "matmul": "tilewright.ops.matmul.public",
    "matmul_integer": "tilewright.ops.matmul.integers",
    "matvec": "tilewright.ops.einsum.products",
    "max": "tilewright.ops.rows.public_reductions",
    "mean": "tilewright.ops.rows.public_reductions",
    "merge_attention": "tilewright.ops.attention.public",
    "min": "tilewright.ops.rows.public_reductions",
    "mmt4d": "tilewright.ops.mmt4d.call",
    "pack": "tilewright.ops.quantized.public",
    "pack_quantized": "tilewright.ops.quantized.public",
    "quantize_rows": "tilewright.ops.linear.activations",
    "quantize_weights": "tilewright.ops.quantized.public",
    "relu": "tilewright.ops.elementwise.public",
    "rms_norm": "tilewright.ops.rows.public",
    "rotary": "tilewright.ops.rotary.public",
    "rotary_tables": "tilewright.ops.rotary.tables",
    "sample": "tilewright.ops.sampling.public",
    "schedule": "tilewright.ops.contraction.public",
    "set_num_threads": "tilewright.threads.pool",
    "show_calls": "tilewright.calls.repeated",
    "show_config": "tilewright.configuration",
    "sigmoid": "tilewright.ops.elementwise.public",
    "silu": "tilewright.ops.elementwise.public",
    "softmax": "tilewright.ops.rows.public",
    "sum": "tilewright.ops.rows.public_reductions",
    "syr2k": "tilewright.ops.triangular.public",
    "syrk": "tilewright.ops.triangular.public",
    "tanh": "tilewright.ops.elementwise.public",
    "targets": "tilewright.machine.catalog",
    "tensordot": "tilewright.ops.einsum.products",
    "transpose": "tilewright.ops.transpose.public",
    "trmm": "tilewright.ops.triangular.public",
    "uninstall": "tilewright.installation.public",
    "unpack": "tilewright.ops.quantized.public",
    "unpack_awq": "tilewright.weights.layouts",
    "unpack_gptq": "tilewright.weights.layouts",
    "unpack_hqq": "tilewright.weights.layouts",
    "vecdot": "tilewright.ops.einsum.products",
    "vecmat": "tilewright.ops.einsum.products",
}

#: Packages that are imported when they are looked up; `import *` leaves them out.
_PACKAGES = ("array_api", "onnx")

#: Deprecated names: using one warns and gives its replacement (docs/reference/versions.md).
_DEPRECATED: dict[str, Deprecated] = {}

register_pool()
watch_forks()

# Every operation needs these; the first call would pay for them.
for _module in ("tilewright.machine.host", "tilewright.ops.gemm.problem", "tilewright.calls.foreign"):
    import_module(_module)
# Importing a subpackage binds its name here, once: `tilewright.machine` is the function of that name.
globals().pop("machine", None)

if not TYPE_CHECKING:  # type checkers know the names from the imports above, and no others

    def __getattr__(name: str) -> Any:
        if name in _DEPRECATED:
            _DEPRECATED[name].warn()
            return globals()["__getattr__"](_DEPRECATED[name].replacement.removeprefix("tilewright."))
        if name not in _HOMES and name not in _PACKAGES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        with importing:
            home = import_module(_HOMES.get(name, f"tilewright.{name}"))
        value = getattr(home, name) if name in _HOMES else home
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    # Completion offers the public names, including those that are loaded late, and no imports of this file.
    return sorted({*__all__, *_PACKAGES, *(name for name in globals() if name.startswith("__"))})
