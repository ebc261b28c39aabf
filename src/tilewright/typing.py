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

#: Types that weights are stored in, as floats.
WeightForm: TypeAlias = Literal["bf16", "f16", "f8e4m3", "f8e5m2"]

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
#: The main primitive of a contraction of two operands.
MainName: TypeAlias = Literal["gemm", "brgemm", "packed_gemm"]
#: How the result of a contraction is initialised.
FirstTouchName: TypeAlias = Literal["none", "zero", "bias"]
#: Code generators of a tile product.
LoweringName: TypeAlias = Literal["target", "generic"]
