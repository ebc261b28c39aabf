"""Unary primitives: B = op(A), element by element, with or without transposition."""

from __future__ import annotations

from enum import Enum


class UnaryOp(Enum):
    """What a unary primitive does to each element.

    GELU is x·Φ(x) with the error function, GELU_TANH its usual approximation by tanh; SILU is
    x·sigmoid(x).
    """

    ZERO = "zero"
    IDENTITY = "identity"
    RELU = "relu"
    SQUARE = "square"
    EXP = "exp"
    TANH = "tanh"
    GELU = "gelu"
    GELU_TANH = "gelu_tanh"
    SILU = "silu"
    SIGMOID = "sigmoid"
    RECIPROCAL = "reciprocal"
    NEGATE = "negate"
