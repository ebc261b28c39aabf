"""Rows of einsum: contractions as people write them."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import opt_einsum

import tilewright as tw
from tilewright.tools.bench.families.frameworks import jax_way, torch_way
from tilewright.tools.bench.operation import Array, Arrays, Call, Operation, OperationShape, Way


def _terms(shape: OperationShape) -> tuple[list[tuple[int, ...]], tuple[int, ...]]:
    """Shapes of the operands and of the result."""
    given, _, result = shape.option.partition("->")
    shapes = [tuple(shape[label] for label in term) for term in given.split(",")]
    return shapes, tuple(shape[label] for label in result)


def _operands(shape: OperationShape, generator: np.random.Generator) -> Arrays:
    return tuple(shape.normal(generator, *sizes) for sizes in _terms(shape)[0])


def _exact(shape: OperationShape, *arrays: Array) -> Array:
    return np.asarray(np.einsum(shape.option, *arrays, optimize=True))


def _work(shape: OperationShape) -> int:
    """Operations in the best order of pairs."""
    _, facts = opt_einsum.contract_path(shape.option, *_terms(shape)[0], shapes=True)
    return int(facts.opt_cost)


def _moved(shape: OperationShape) -> int:
    given, result = _terms(shape)
    return shape.item_bytes * (sum(map(prod, given)) + prod(result))


def _tilewright(shape: OperationShape, arrays: Arrays, threads: int) -> Call:  # noqa: ARG001
    text = shape.option
    return lambda: tw.einsum(text, *arrays)


def _numpy(shape: OperationShape, arrays: Arrays, threads: int) -> Call:  # noqa: ARG001
    text = shape.option
    return lambda: np.einsum(text, *arrays, optimize=True)


def _torch(torch: Any, shape: OperationShape) -> Any:
    return lambda *tensors: torch.einsum(shape.option, *tensors)


def _jax(jax: Any, shape: OperationShape) -> Any:
    return lambda *arrays: jax.numpy.einsum(shape.option, *arrays)


OPERATIONS = (
    Operation(
        "einsum",
        "contractions",
        _operands,
        _exact,
        {
            "tilewright": Way("tilewright.einsum", _tilewright),
            "numpy": Way("numpy.einsum(optimize=True)", _numpy),
            "torch": torch_way("torch.einsum", _torch),
            "jax": jax_way("jax.numpy.einsum", _jax),
        },
        _work,
        _moved,
    ),
)
