"""Calls of libraries with tensors of their own: PyTorch, Inductor, JAX and ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from tilewright.spec.dtype import parse_dtype
from tilewright.tools.bench.operation import Arrays, Call, OperationShape, Way
from tilewright.tools.explore.attention.systems import ONNX_IR, ONNX_OPSET
from tilewright.tools.explore.systems import array_tensor, onnx_session

#: Makes a function of tensors, given the library.
Maker = Callable[[Any, OperationShape], Callable[..., Any]]


def read_tensor(tensor: Any) -> Any:
    """A tensor of PyTorch as an array; of bfloat16 as float32."""
    return tensor.float().numpy() if str(tensor.dtype) == "torch.bfloat16" else tensor.numpy()


def torch_way(call: str, make: Maker, tolerance: float | None = None, *, compiled: bool = False) -> Way:
    """A function of PyTorch's tensors, eager or by `torch.compile`, outside of autograd."""

    def prepare(shape: OperationShape, arrays: Arrays, threads: int) -> Call:
        torch = import_module("torch")
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        tensors = [array_tensor(torch, array, parse_dtype(str(array.dtype.name))) for array in arrays]
        function = make(torch, shape)
        if compiled:
            function = torch.compile(function, dynamic=False)
            function(*tensors)
        return lambda: function(*tensors)

    return Way(call, prepare, read_tensor, tolerance)


def torch_ways(call: str, make: Maker) -> dict[str, Way]:
    """The same function eager and by Inductor."""
    return {
        "torch": torch_way(call, make),
        "inductor": torch_way(f"torch.compile: {call}", make, compiled=True),
    }


def jax_way(call: str, make: Maker) -> Way:
    """A function of JAX's arrays under `jax.jit`."""

    def prepare(shape: OperationShape, arrays: Arrays, threads: int) -> Call:  # noqa: ARG001
        jax = import_module("jax")
        jax.config.update("jax_cpu_enable_async_dispatch", False)
        device = jax.devices("cpu")[0]
        given = [jax.device_put(array, device) for array in arrays]
        function = jax.jit(make(jax, shape))
        function(*given).block_until_ready()
        return lambda: function(*given).block_until_ready()

    return Way(f"jax.jit: {call}", prepare)


def onnx_way(call: str, nodes: Callable[[Any, OperationShape], Sequence[Any]]) -> Way:
    """A model of ONNX Runtime, whose inputs "a", "b", ... are the operands and whose output is "y".

    The first operand is the input of a call; the others are weights of the model, which it may prepare.
    """

    def prepare(shape: OperationShape, arrays: Arrays, threads: int) -> Call:
        onnxruntime, onnx = import_module("onnxruntime"), import_module("onnx")
        make, kind = onnx.helper, onnx.TensorProto.FLOAT
        names = [chr(ord("a") + index) for index in range(len(arrays))]
        weights = [
            onnx.numpy_helper.from_array(array, name)
            for name, array in zip(names[1:], arrays[1:], strict=True)
        ]
        graph = make.make_graph(
            list(nodes(onnx, shape)),
            "operation",
            [make.make_tensor_value_info("a", kind, arrays[0].shape)],
            [make.make_tensor_value_info("y", kind, None)],
            weights,
        )
        opsets = [make.make_opsetid("", ONNX_OPSET), make.make_opsetid("com.microsoft", 1)]
        model = make.make_model(graph, opset_imports=opsets, ir_version=ONNX_IR)
        session = onnx_session(onnxruntime, model.SerializeToString(), threads)
        given = {"a": onnxruntime.OrtValue.ortvalue_from_numpy(arrays[0])}
        return lambda: session.run_with_ort_values(["y"], given)[0]

    return Way(f"onnxruntime {call}", prepare, lambda value: value.numpy())
