"""Rows of memory-bound functions: softmax and norms, reductions, functions of elements, transposes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

import tilewright as tw
from tilewright.ops.rows.problem import RowFunction
from tilewright.spec.functions import UnaryOp, meaning
from tilewright.tools.bench.families.frameworks import Maker, jax_way, onnx_way, torch_ways
from tilewright.tools.bench.operation import Array, Arrays, Call, Operation, OperationShape, Way

#: Added to variances, as PyTorch's layer_norm has it.
EPS = 1e-5


def _matrix(shape: OperationShape, generator: np.random.Generator) -> Arrays:
    return (shape.normal(generator, shape["rows"], shape["columns"]),)


def _with_weight(shape: OperationShape, generator: np.random.Generator) -> Arrays:
    """A matrix, and a weight and a bias of its columns."""
    columns = shape["columns"]
    weight = 1 + shape.normal(generator, columns) / 8
    return (*_matrix(shape, generator), weight.astype(shape.numpy_dtype), shape.normal(generator, columns))


def _moved(shape: OperationShape) -> int:
    """A matrix read and one written."""
    return 2 * shape.item_bytes * shape["rows"] * shape["columns"]


def _moved_once(shape: OperationShape) -> int:
    """A matrix read and a column written."""
    return shape.item_bytes * shape["rows"] * (shape["columns"] + 1)


def _rows(op: Any, shape: OperationShape, x: Array) -> Array:  # noqa: ARG001
    return np.asarray(RowFunction(op).reference(x, eps=0.0))


def _layer_norm(shape: OperationShape, x: Array, weight: Array, bias: Array) -> Array:  # noqa: ARG001
    centred = x - x.mean(-1, keepdims=True)
    return np.asarray(centred / np.sqrt((centred**2).mean(-1, keepdims=True) + EPS) * weight + bias)


def _rms_norm(shape: OperationShape, x: Array, weight: Array, bias: Array) -> Array:  # noqa: ARG001
    return np.asarray(x / np.sqrt((x**2).mean(-1, keepdims=True) + EPS) * weight)


def _into(function: Callable[..., Any]) -> Callable[[OperationShape, Arrays, int], Call]:
    """A function of ours that writes into an array of the operand's shape."""

    def prepare(shape: OperationShape, arrays: Arrays, threads: int) -> Call:  # noqa: ARG001
        out = np.empty_like(arrays[0])
        return lambda: function(*arrays, out=out)

    return prepare


def _ours(name: str) -> Callable[[OperationShape, Arrays, int], Call]:
    """A public function, looked up when it is measured: nothing of the package is while this is imported."""

    def prepare(shape: OperationShape, arrays: Arrays, threads: int) -> Call:
        return _into(getattr(tw, name))(shape, arrays, threads)

    return prepare


def _returning(function: Callable[..., Any]) -> Callable[[OperationShape, Arrays, int], Call]:
    def prepare(shape: OperationShape, arrays: Arrays, threads: int) -> Call:  # noqa: ARG001
        return lambda: function(*arrays)

    return prepare


def _scipy_softmax(shape: OperationShape, arrays: Arrays, threads: int) -> Call:  # noqa: ARG001
    special = import_module("scipy.special")
    return lambda: special.softmax(arrays[0], axis=1)


def _transposed(shape: OperationShape, arrays: Arrays, threads: int) -> Call:  # noqa: ARG001
    out = np.empty(arrays[0].shape[::-1], arrays[0].dtype)

    def run() -> Array:
        np.copyto(out, arrays[0].T)
        return out

    return run


def _our_transpose(shape: OperationShape, arrays: Arrays, threads: int) -> Call:  # noqa: ARG001
    out = np.empty(arrays[0].shape[::-1], arrays[0].dtype)
    return lambda: tw.transpose(arrays[0], out=out)


def _node(kind: str, domain: str = "", **attributes: int) -> Callable[[Any, OperationShape], list[Any]]:
    def nodes(onnx: Any, shape: OperationShape) -> list[Any]:  # noqa: ARG001
        return [onnx.helper.make_node(kind, ["a"], ["y"], domain=domain, **attributes)]

    return nodes


def _onnx_norm(onnx: Any, shape: OperationShape) -> list[Any]:  # noqa: ARG001
    return [onnx.helper.make_node("LayerNormalization", ["a", "b", "c"], ["y"], axis=-1, epsilon=EPS)]


def _torch_function(name: str) -> Maker:
    def make(torch: Any, shape: OperationShape) -> Callable[..., Any]:  # noqa: ARG001
        found: Callable[..., Any] = getattr(torch.nn.functional if name in ("gelu", "silu") else torch, name)
        return found

    return make


def _jax_function(name: str) -> Maker:
    def make(jax: Any, shape: OperationShape) -> Callable[..., Any]:  # noqa: ARG001
        if name == "gelu":
            return partial(jax.nn.gelu, approximate=False)
        found: Callable[..., Any] = getattr(jax.nn if name == "silu" else jax.numpy, name)
        return found

    return make


def _exact_function(name: str) -> Callable[[OperationShape, Array], Array]:
    return lambda shape, x: np.asarray(meaning(UnaryOp(name), x))  # noqa: ARG005


def _function(name: str) -> Operation:
    """A function of single elements; NumPy has some of them."""
    ways = {
        "tilewright": Way(f"tilewright.{name}(out=)", _ours(name)),
        **torch_ways(f"torch {name}", _torch_function(name)),
        "jax": jax_way(f"jax {name}", _jax_function(name)),
    }
    if hasattr(np, name):
        ways["numpy"] = Way(f"numpy.{name}(out=)", _into(getattr(np, name)))
    return Operation(name, "functions of elements", _matrix, _exact_function(name), ways, None, _moved)


OPERATIONS = (
    Operation(
        "softmax",
        "functions of rows",
        _matrix,
        partial(_rows, "softmax"),
        {
            "tilewright": Way("tilewright.softmax(out=)", _ours("softmax")),
            "scipy": Way("scipy.special.softmax", _scipy_softmax),
            **torch_ways("torch.softmax", lambda torch, shape: partial(torch.softmax, dim=1)),  # noqa: ARG005
            "jax": jax_way("jax.nn.softmax", lambda jax, shape: jax.nn.softmax),  # noqa: ARG005
            "onnxruntime": onnx_way("Softmax", _node("Softmax", axis=-1)),
        },
        None,
        _moved,
    ),
    Operation(
        "layer_norm",
        "functions of rows",
        _with_weight,
        _layer_norm,
        {
            "tilewright": Way("tilewright.layer_norm(out=)", _ours("layer_norm")),
            **torch_ways(
                "functional.layer_norm",
                lambda torch, shape: (
                    lambda x, w, b: torch.nn.functional.layer_norm(x, (shape["columns"],), w, b)
                ),
            ),
            "onnxruntime": onnx_way("LayerNormalization", _onnx_norm),
        },
        None,
        _moved,
    ),
    Operation(
        "rms_norm",
        "functions of rows",
        _with_weight,
        _rms_norm,
        {
            "tilewright": Way(
                "tilewright.rms_norm(out=)",
                _into(lambda x, w, b, out: tw.rms_norm(x, w, eps=EPS, out=out)),  # noqa: ARG005
            ),
            **torch_ways(
                "functional.rms_norm",
                lambda torch, shape: (
                    lambda x, w, b: torch.nn.functional.rms_norm(x, (shape["columns"],), w, EPS)  # noqa: ARG005
                ),
            ),
        },
        None,
        _moved,
    ),
    Operation(
        "sum of rows",
        "reductions",
        _matrix,
        partial(_rows, "sum"),
        {
            "tilewright": Way("tilewright.sum(axis=1)", _returning(lambda x: tw.sum(x, 1))),
            "numpy": Way("numpy.sum(axis=1)", _returning(lambda x: np.sum(x, 1))),
            **torch_ways("torch.sum", lambda torch, shape: lambda x: torch.sum(x, 1)),  # noqa: ARG005
            "jax": jax_way("jax.numpy.sum", lambda jax, shape: lambda x: jax.numpy.sum(x, 1)),  # noqa: ARG005
        },
        None,
        _moved_once,
    ),
    Operation(
        "transpose",
        "transposes",
        _matrix,
        lambda shape, x: x.T,  # noqa: ARG005
        {
            "tilewright": Way("tilewright.transpose(out=)", _our_transpose),
            "numpy": Way("numpy.copyto(out, a.T)", _transposed),
            **torch_ways("a.t().contiguous()", lambda torch, shape: lambda x: x.t().contiguous()),  # noqa: ARG005
        },
        None,
        _moved,
    ),
    *map(_function, ("exp", "tanh", "gelu", "silu")),
)
