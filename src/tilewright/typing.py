"""Types of the arguments of public functions, for annotations.

The words that an option takes are written here only: checks and enumerations read them by `typing.get_args`.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy import typing as npt


class SupportsDLPack(Protocol):
    """An array that other libraries read through DLPack, such as a tensor of PyTorch."""

    def __dlpack__(self) -> Any: ...

    def __dlpack_device__(self) -> tuple[Any, Any]: ...


class SupportsArrayInterface(Protocol):
    """An array that describes its memory as NumPy does."""

    @property
    def __array_interface__(self) -> dict[str, Any]: ...


#: What functions take as an operand: arrays, numbers, lists of these, buffers and arrays of other libraries.
ArrayLike: TypeAlias = npt.ArrayLike | SupportsDLPack | SupportsArrayInterface

#: What functions write a result into: an array, or a tensor of another library.
OutArray: TypeAlias = npt.NDArray[Any] | SupportsDLPack | SupportsArrayInterface

#: A factor of products: a number of Python or of NumPy.
Number: TypeAlias = complex | np.number[Any]

# --- element types ------------------------------------------------------------------------------

#: Element types, by the names that they have here and by those of NumPy and ml_dtypes.
DTypeName: TypeAlias = Literal[
    "f64",
    "f32",
    "bf16",
    "f16",
    "i4",
    "u4",
    "i8",
    "u8",
    "i16",
    "i32",
    "i64",
    "c64",
    "c128",
    "f8e4m3",
    "f8e5m2",
    "float64",
    "float32",
    "bfloat16",
    "float16",
    "int4",
    "uint4",
    "int8",
    "uint8",
    "int16",
    "int32",
    "int64",
    "complex64",
    "complex128",
    "float8_e4m3fn",
    "float8_e5m2",
]
#: What problems take as an element type.
ElementType: TypeAlias = DTypeName | np.dtype[Any] | type[np.generic]
#: Types that weights are stored in, as floats.
WeightForm: TypeAlias = Literal["bf16", "f16", "f8e4m3", "f8e5m2"]
#: Precisions that matrices of a file are packed in.
WeightPrecision: TypeAlias = Literal["f32", "bf16", "i8-weights", "i4-weights"]
#: Precisions that graphs and models are compiled with.
GraphPrecision: TypeAlias = Literal["f32", "bf16", "i8-weights", "i4-weights", "i8-dynamic"]
#: How weights are rounded to integers.
RoundingName: TypeAlias = Literal["nearest", "hqq", "gptq"]
#: How GPTQ checkpoints store zero points.
GptqFormat: TypeAlias = Literal["gptq", "gptq_v2"]

# --- products -----------------------------------------------------------------------------------

#: Functions that are applied to sums before they are stored.
ActivationName: TypeAlias = Literal["relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh"]
#: Forms of GELU: with the error function, or its approximation.
GeluForm: TypeAlias = Literal["none", "tanh"]
#: What may be converted, in the order in which more is allowed.
Casting: TypeAlias = Literal["no", "equiv", "safe", "same_kind", "unsafe"]
#: Order in memory of a new array.
Order: TypeAlias = Literal["C", "F", "A", "K"]
#: The operand that a packed matrix is.
RoleName: TypeAlias = Literal["a", "b"]
#: The side of a triangular matrix in a product.
SideName: TypeAlias = Literal["left", "right"]

# --- attention ----------------------------------------------------------------------------------

#: Which query is aligned with which key.
CausalName: TypeAlias = Literal["lower_right", "upper_left"]
#: The order of the axes: batch, heads, sequence, elements of a head.
AttentionLayoutName: TypeAlias = Literal["bhsd", "bshd"]
#: How attention is computed.
AttentionStrategyName: TypeAlias = Literal["auto", "blocks", "decode", "unfused"]
#: A step after which scores are returned.
ScoreStageName: TypeAlias = Literal["product", "softcap", "mask", "softmax"]

# --- problems -----------------------------------------------------------------------------------

#: Which axis of a matrix is contiguous: "strided" leaves both strides to run time, "packed" are tiles.
LayoutName: TypeAlias = Literal["row", "col", "strided", "packed"]
#: How the operands of a product are read: in place, or packed first.
StrategyName: TypeAlias = Literal["auto", "tiling", "packing"]
#: How the matrices of a batch reduction are found: by a stride, or by their addresses.
BatchModeName: TypeAlias = Literal["stride", "address", "ahead"]
#: Schedules of attention.
ScheduleName: TypeAlias = Literal["blocks", "decode"]
#: Functions of rows.
RowOpName: TypeAlias = Literal[
    "softmax",
    "log_softmax",
    "layer_norm",
    "rms_norm",
    "sum",
    "mean",
    "max",
    "min",
    "inverse_deviation",
    "inverse_root",
]
#: How vectors lie in the matrices of a sum of products.
WalkName: TypeAlias = Literal["along", "across", "weighted", "apart", "each", "spread", "single"]
#: Types of the dimensions of a contraction.
DimensionRoleName: TypeAlias = Literal["c", "m", "n", "k"]
#: How a dimension of a contraction runs.
ExecutionName: TypeAlias = Literal["sequential", "parallel", "primitive"]
#: Functions of single elements.
UnaryName: TypeAlias = Literal[
    "zero",
    "identity",
    "relu",
    "square",
    "exp",
    "tanh",
    "gelu",
    "gelu_tanh",
    "silu",
    "sigmoid",
    "reciprocal",
    "negate",
    "erf",
]
#: Functions of pairs of elements.
BinaryName: TypeAlias = Literal["add", "subtract", "multiply", "divide", "maximum", "minimum"]
#: Elements of a head that a rotary embedding rotates together.
PairingName: TypeAlias = Literal["halves", "interleaved"]
#: Frequencies of rotary embeddings for longer sequences than those of training.
RotaryScalingName: TypeAlias = Literal["linear", "ntk", "dynamic", "yarn", "llama3"]
#: The main primitive of a contraction of two operands.
MainName: TypeAlias = Literal["gemm", "brgemm", "packed_gemm"]
#: How the result of a contraction is initialised.
FirstTouchName: TypeAlias = Literal["none", "zero", "bias"]
#: Code generators of a tile product.
LoweringName: TypeAlias = Literal["target", "generic"]
