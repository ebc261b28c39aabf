"""Rows of call overhead: functions of operands so small that the call itself is the time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import tilewright as tw
from tilewright.tools.bench.families.frameworks import torch_way
from tilewright.tools.bench.operation import Array, Arrays, Call, Operation, OperationShape, Way


def _two(shape: OperationShape, generator: np.random.Generator) -> Arrays:
    n = shape["n"]
    return shape.normal(generator, n, n), shape.normal(generator, n, n)


def _softmax(shape: OperationShape, a: Array, b: Array) -> Array:  # noqa: ARG001
    e = np.exp(a - a.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def _simple(function: Callable[..., Any]) -> Callable[[OperationShape, Arrays, int], Call]:
    """A function of two operands and an array for the result."""

    def prepare(shape: OperationShape, arrays: Arrays, threads: int) -> Call:  # noqa: ARG001
        return partial(function, *arrays, np.empty_like(arrays[0]))

    return prepare


def _attention(shape: OperationShape, a: Array, b: Array) -> Array:  # noqa: ARG001
    scores = a @ b.T / np.sqrt(a.shape[1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(weights / weights.sum(-1, keepdims=True) @ b)


def _torch_attention(torch: Any, shape: OperationShape) -> Any:  # noqa: ARG001
    function = torch.nn.functional.scaled_dot_product_attention
    return lambda a, b: function(a[None, None], b[None, None], b[None, None])[0, 0]


def _our_attention(a: Array, b: Array, out: Array) -> Any:  # noqa: ARG001
    return tw.attention(a[None, None], b[None, None], b[None, None])[0, 0]


def _operation(name: str, exact: Callable[..., Array], ways: dict[str, Way]) -> Operation:
    return Operation(name, "calls of tiny operands", _two, exact, ways, None, lambda shape: 0)  # noqa: ARG005


OPERATIONS = (
    _operation(
        "call of matmul",
        lambda shape, a, b: a @ b,  # noqa: ARG005
        {
            "tilewright": Way(
                "tilewright.matmul(a, b, out=c)", _simple(lambda a, b, c: tw.matmul(a, b, out=c))
            ),
            "numpy": Way("numpy.matmul(a, b, out=c)", _simple(lambda a, b, c: np.matmul(a, b, out=c))),
            "torch": torch_way("torch.matmul", lambda torch, shape: torch.matmul),  # noqa: ARG005
        },
    ),
    _operation(
        "call of einsum",
        lambda shape, a, b: a @ b,  # noqa: ARG005
        {
            "tilewright": Way(
                'tilewright.einsum("ij,jk->ik")',
                _simple(lambda a, b, c: tw.einsum("ij,jk->ik", a, b)),  # noqa: ARG005
            ),
            "numpy": Way('numpy.einsum("ij,jk->ik")', _simple(lambda a, b, c: np.einsum("ij,jk->ik", a, b))),  # noqa: ARG005
            "torch": torch_way(
                "torch.einsum",
                lambda torch, shape: partial(torch.einsum, "ij,jk->ik"),  # noqa: ARG005
            ),
        },
    ),
    _operation(
        "call of linear",
        lambda shape, a, b: a @ b.T,  # noqa: ARG005
        {
            "tilewright": Way("tilewright.linear(a, b)", _simple(lambda a, b, c: tw.linear(a, b))),  # noqa: ARG005
            "numpy": Way("a @ b.T", _simple(lambda a, b, c: a @ b.T)),  # noqa: ARG005
            "torch": torch_way("functional.linear", lambda torch, shape: torch.nn.functional.linear),  # noqa: ARG005
        },
    ),
    _operation(
        "call of softmax",
        _softmax,
        {
            "tilewright": Way("tilewright.softmax(a)", _simple(lambda a, b, c: tw.softmax(a))),  # noqa: ARG005
            "torch": torch_way("torch.softmax", lambda torch, shape: lambda a, b: torch.softmax(a, 1)),  # noqa: ARG005
        },
    ),
    _operation(
        "call of transpose",
        lambda shape, a, b: a.T,  # noqa: ARG005
        {
            "tilewright": Way(
                "tilewright.transpose(a, out=c)",
                _simple(lambda a, b, c: tw.transpose(a, out=c)),  # noqa: ARG005
            ),
            "numpy": Way("a.T.copy()", _simple(lambda a, b, c: a.T.copy())),  # noqa: ARG005
            "torch": torch_way("a.t().contiguous()", lambda torch, shape: lambda a, b: a.t().contiguous()),  # noqa: ARG005
        },
    ),
    _operation(
        "call of attention",
        _attention,
        {
            "tilewright": Way("tilewright.attention", _simple(_our_attention)),
            "torch": torch_way("scaled_dot_product_attention", _torch_attention),
        },
    ),
)
