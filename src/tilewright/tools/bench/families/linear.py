"""Rows of linear layers: bias and activation in one call, packed weights, weights of 8 and 4 bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import tilewright as tw
from tilewright.spec.functions import UnaryOp, meaning
from tilewright.tools.bench.families.frameworks import jax_way, onnx_way, torch_way, torch_ways
from tilewright.tools.bench.operation import Array, Arrays, Call, Operation, OperationShape, Way

#: Depths that share a scale in weights of few bits.
GROUP = 128
#: The largest differences that rounding weights to so many bits makes, of the largest element.
ROUNDED = {8: 0.02, 4: 0.2}


def _operands(shape: OperationShape, generator: np.random.Generator) -> Arrays:
    """x (m, k), a weight (n, k) whose products are around 1, and a bias (n,)."""
    m, n, k = shape["m"], shape["n"], shape["k"]
    weight = shape.normal(generator, n, k) / np.float32(math.sqrt(k))
    return shape.normal(generator, m, k), weight.astype(shape.numpy_dtype), shape.normal(generator, n)


def _exact(shape: OperationShape, x: Array, weight: Array, bias: Array) -> Array:
    found = x @ weight.T + bias
    return found if shape.option in ("", "bias") else np.asarray(meaning(UnaryOp(shape.option), found))


def _work(shape: OperationShape) -> int:
    return 2 * shape["m"] * shape["n"] * shape["k"]


def _moved(shape: OperationShape, weight_bits: int = 0) -> int:
    m, n, k = shape["m"], shape["n"], shape["k"]
    weight = n * k * (weight_bits or 8 * shape.item_bytes) // 8
    return weight + shape.item_bytes * (m * k + m * n + n)


def _activation(shape: OperationShape) -> Any:
    return None if shape.option in ("", "bias") else shape.option


def _tilewright(make: Callable[[Array], Any]) -> Callable[[OperationShape, Arrays, int], Call]:
    """A layer with a weight in the form that a function gives it."""

    def prepare(shape: OperationShape, arrays: Arrays, threads: int) -> Call:  # noqa: ARG001
        x, weight, bias = arrays
        return partial(tw.linear, x, make(weight), bias, _activation(shape))

    return prepare


def _as_it_is(weight: Array) -> Array:
    return weight


def _packed(weight: Array) -> Any:
    return tw.pack(weight.T)


def _numpy(shape: OperationShape, arrays: Arrays, threads: int) -> Call:  # noqa: ARG001
    """A product and the bias in place; GELU has no function in NumPy."""
    x, weight, bias = arrays

    def run() -> Array:
        y: Array = x @ weight.T
        y += bias
        return np.maximum(y, 0, out=y) if shape.option == "relu" else y

    return run


def _torch(torch: Any, shape: OperationShape) -> Any:
    functional = torch.nn.functional
    functions = {"gelu": functional.gelu, "relu": torch.relu, "silu": functional.silu}
    apply = functions.get(shape.option, lambda value: value)
    return lambda x, weight, bias: apply(functional.linear(x, weight, bias))


def _jax(jax: Any, shape: OperationShape) -> Any:
    functions = {"gelu": partial(jax.nn.gelu, approximate=False), "relu": jax.nn.relu, "silu": jax.nn.silu}
    apply = functions.get(shape.option, lambda value: value)
    return lambda x, weight, bias: apply(x @ weight.T + bias)


def _onnx(onnx: Any, shape: OperationShape) -> list[Any]:
    node = onnx.helper.make_node
    last = "y" if _activation(shape) is None else "h"
    found = [node("Gemm", ["a", "b", "c"], [last], transB=1)]
    match shape.option:
        case "gelu":
            found.append(node("Gelu", ["h"], ["y"], domain="com.microsoft"))
        case "relu":
            found.append(node("Relu", ["h"], ["y"]))
    return found


def _onnx_bits(bits: int) -> Way:
    """MatMulNBits of ONNX Runtime: symmetric weights in groups, sums in float32."""

    def prepare(shape: OperationShape, arrays: Arrays, threads: int) -> Call:
        x, weight, bias = arrays
        n, k = weight.shape
        groups = weight.reshape(n, k // GROUP, GROUP)
        half = 1 << bits - 1
        scales = np.abs(groups).max(-1, keepdims=True) / (half - 1)
        words = (np.rint(groups / scales) + half).clip(0, 2 * half - 1).astype(np.uint8)
        if bits == 4:
            words = words[..., ::2] | words[..., 1::2] << 4
        values = {"words": words, "scales": scales.reshape(-1).astype(np.float32)}

        def nodes(onnx: Any, _: OperationShape) -> list[Any]:
            make, attributes = onnx.helper, {"K": k, "N": n, "bits": bits, "block_size": GROUP}
            constants = [
                make.make_node("Constant", [], [name], value=onnx.numpy_helper.from_array(value, name))
                for name, value in values.items()
            ]
            inputs = ["a", "words", "scales"]
            product = make.make_node(
                "MatMulNBits", inputs, ["h"], domain="com.microsoft", accuracy_level=1, **attributes
            )
            return [*constants, product, make.make_node("Add", ["h", "b"], ["y"])]

        return onnx_way("MatMulNBits", nodes).prepare(shape, (x, bias), threads)

    return Way(
        f"onnxruntime MatMulNBits, {bits} bits, groups of {GROUP}",
        prepare,
        lambda value: value.numpy(),
        ROUNDED[bits],
    )


def _quantised(bits: int) -> Operation:
    """A layer whose weight has few bits, beside the same layer of peers in float32."""
    group = None if bits == 8 else GROUP
    ways = {
        "tilewright": Way(
            f"tilewright.linear, weight of {bits} bits",
            _tilewright(lambda weight: tw.quantize_weights(weight.T, bits=bits, group=group)),
            tolerance=ROUNDED[bits],
        ),
        "torch": torch_way("functional.linear, weight in float32", _torch),
        "onnxruntime": _onnx_bits(bits),
    }
    name = f"linear, {bits}-bit weight"
    moved = partial(_moved, weight_bits=bits)
    return Operation(name, "linear layers", _operands, _exact, ways, _work, moved)


_PEERS = {
    "numpy": Way("x @ weight.T, bias and ReLU in place", _numpy),
    **torch_ways("functional.linear and activation", _torch),
    "jax": jax_way("x @ weight.T + bias, activation", _jax),
    "onnxruntime": onnx_way("Gemm and activation", _onnx),
}


def _without_numpy(ways: dict[str, Way]) -> dict[str, Way]:
    return {name: way for name, way in ways.items() if name != "numpy"}


OPERATIONS = (
    Operation(
        "linear",
        "linear layers",
        _operands,
        _exact,
        {"tilewright": Way("tilewright.linear", _tilewright(_as_it_is)), **_PEERS},
        _work,
        _moved,
    ),
    Operation(
        "linear with GELU",
        "linear layers",
        _operands,
        _exact,
        {"tilewright": Way("tilewright.linear", _tilewright(_as_it_is)), **_without_numpy(_PEERS)},
        _work,
        _moved,
    ),
    Operation(
        "linear, packed weight",
        "linear layers",
        _operands,
        _exact,
        {"tilewright": Way("tilewright.linear, weight by tilewright.pack", _tilewright(_packed)), **_PEERS},
        _work,
        _moved,
    ),
    _quantised(8),
    _quantised(4),
)
