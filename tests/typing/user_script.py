"""A user's program that calls every public function: type checkers find nothing wrong."""
# pyright: strict

import array
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import tilewright as tw
from tilewright.typing import ActivationName, ArrayLike, AttentionLayoutName, DTypeName


class Tensor:
    """An array of another library, which NumPy does not know."""

    def __dlpack__(self, *, stream: Any = None) -> Any:
        return None

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class Image:
    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {}


Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]
x: Floats = np.ones((4, 4), np.float32)
y = np.ones((4, 4))

# Operands: arrays, lists, numbers, buffers, and arrays of other libraries.
operands: list[ArrayLike] = [x, [[1.0, 2.0], [3.0, 4.0]], 3.0, memoryview(b"1"), array.array("d", [1.0])]
operands += [Tensor(), Image()]
for operand in operands:
    assert_type(tw.exp(operand), Array)

# Products.
assert_type(tw.matmul(Tensor(), Tensor(), out=Tensor()), Array)
assert_type(tw.matmul(x, y, alpha=2.0, bias=[1.0] * 4, activation="gelu", threads=2), Array)
assert_type(tw.matmul(x, y, y, dtype=np.float64, casting="unsafe", order="F"), Array)
assert_type(tw.matmul(x, y, sums=np.float64), Array)
assert_type(tw.linear(x, y, None, "relu"), Array)
assert_type(tw.matmul_integer([[1]], [[2]], 1, None), Array)
assert_type(tw.einsum("ij,jk->ik", x, y, order="C", casting="same_kind"), Array)
assert_type(tw.einsum(x, [0, 1], y, [1, 2], [0, 2]), Array)
assert_type(tw.tensordot(x, y, axes=([1], [0])), Array)
assert_type(tw.tensordot(x, y, 1), Array)
assert_type(tw.inner(x, y), Array)
assert_type(tw.kron(x, y), Array)
assert_type(tw.vecdot(x, y, axis=0, keepdims=True), Array)
assert_type(tw.matvec(x, y[0]), Array)
assert_type(tw.vecmat(x[0], y), Array)
assert_type(tw.syrk(x, lower=False), Array)
assert_type(tw.syr2k(x, x, alpha=2), Array)
assert_type(tw.trmm(x, x, side="right"), Array)
assert_type(tw.transpose(x, (1, 0)), Array)
number = float(tw.einsum("i,i", x[0], y[0]))

# Packed operands.
packed = tw.pack(x, form="bf16")
assert_type(packed, tw.PackedMatrix)
assert_type(tw.unpack(packed), Array)
assert_type(tw.matmul(x, tw.quantize_weights(x, bits=8)), Array)
assert_type(tw.linear(tw.quantize_rows(x), tw.quantize_weights(x)), Array)
assert_type(tw.pack_quantized([[1]], [[0.5]], bits=4), tw.PackedMatrix)
model = tw.load_safetensors("model.safetensors", pack="*.weight", precision="i8-weights", names=["a.*"])
model = tw.load_gguf("model.gguf", pack=lambda name: name == "a.weight", names="a.*")
assert_type(model["a.weight"], Array | tw.PackedMatrix)
assert_type(tw.linear(x, model["a.weight"]), Array)
for stored in (tw.unpack_gptq(x, x, x), tw.unpack_awq(x, x, x), tw.unpack_hqq(x, x, x, (4, 4))):
    assert_type(stored.pack(), tw.PackedMatrix)
tiles = tw.pack(x, role="a", tiles=(2, 1)), tw.pack(x, tiles=(2, 1))
assert_type(tw.mmt4d(*tiles), Array)

# Attention.
layout: AttentionLayoutName = "bshd"
q = np.ones((1, 2, 3, 4), np.float32)
out = tw.attention(q, q, q, causal=True, layout=layout, strategy="blocks", window=(2, None))
assert_type(out, Array)
out, lse = tw.attention(q, q, q, return_lse=True, causal="upper_left")
assert_type(lse, Array)
out, lse, scores = tw.attention(q, q, q, mask=x > 0, return_lse=True, return_scores="softmax")
assert_type(tw.attention_backward(q, q, q, q, out, lse, scale=0.5), tuple[Array, Array, Array])
parts = [tw.attention_partial(q, q, q, causal=True, q_offset=0, softcap=3.0)]
assert_type(tw.merge_attention(parts).out, Array)
assert_type(tw.append_kv(q.copy(), q.copy(), q, q, 0), Array)
bytes_ = np.zeros(q.shape, np.int8)
assert_type(tw.append_kv(bytes_, bytes_, q, q, 0, key_scales=x, value_scales=x), Array)

# Functions of rows and of single elements.
assert_type(tw.softmax(x, axis=0), Array)
assert_type(tw.log_softmax(x), Array)
assert_type(tw.layer_norm(x, bias=y[0]), Array)
assert_type(tw.layer_norm(x, return_stats=True), tuple[Array, Array, Array])
assert_type(tw.rms_norm(x, eps=1e-6), Array)
assert_type(tw.rms_norm(x, return_stats=True)[1], Array)
for reduction in (tw.sum, tw.mean, tw.max, tw.min):
    assert_type(reduction(x, axis=(0, 1), keepdims=True), Array)
for function in (tw.erf, tw.relu, tw.sigmoid, tw.silu, tw.tanh):
    assert_type(function(x, x, threads=1), Array)
assert_type(tw.gated(x, y, "gelu", gate_first=False), Array)
cos, sin = tw.rotary_tables(8, 4, scaling="yarn", factor=2.0, original_length=4)
assert_type(tw.rotary(q, cos, sin, [0, 1, 2], layout=layout, interleaved=True), Array)
assert_type(tw.embedding(x, [0, 1], scale=2.0), Array)
assert_type(tw.embedding(tw.quantize_rows(x), 1), Array)
assert_type(tw.sample(x, temperature=0.5, top_k=3, generator=np.random.default_rng(0)), Array)
names: tuple[ActivationName, ...] = ("relu", "silu")
layers = [tw.linear(x, x, None, name) for name in names]
assert_type(tw.gelu(x, "tanh"), Array)

# Models.
network = tw.Graph()
tokens = network.input("x", dtype="f32", shape=("batch", 3))
network.output(network.softmax(network.linear(tokens, x, activation="gelu") * 2.0 + tokens[:1]), name="y")
run = network.compile(precision="bf16")
assert_type(run, tw.CompiledGraph)
run.save("model.twgraph")
print(tw.load_graph("model.twgraph", mmap=False)(x), run.explain(x))
assert_type(tw.onnx.load("model.onnx", precision="f32", shapes={"x": ("n", 4)}), tw.CompiledGraph)
assert_type(tw.onnx.read(b"", constants={"x": x}), tw.Graph)

# Compiled kernels and contractions, and what the package says of itself.
types: tuple[DTypeName, ...] = ("f32", "bfloat16")
problems = [tw.Gemm(dtype=dtype) for dtype in types]
problems += [tw.Gemm(dtype=np.float64, b_dtype=y.dtype, a="col", strategy="packing")]
print(tw.BatchReduceGemm(4, 4, 4, 2, "i8", batch="address"), tw.Unary("relu", 4, 4, b="row"))
print(tw.Attention(64, mask="f32", schedule="decode"), tw.Trmm(side="right"), tw.Syrk(c="strided"))
kernel = tw.compile(tw.Gemm(4, 4, 4, "f32", epilogue="relu"), lowering="generic")
assert_type(kernel, tw.Kernel)
contraction = tw.einsum_contraction("ij,jk->ik", (2, 3), (3, 4), main="gemm", first="zero")
print(tw.schedule(contraction, tw.machine("avx2")).dimensions)
print(tw.compile_einsum("ij,jk->ik", x, (4, 4), order="C")(x, y).shape)
print(tw.einsum_tree("[0,1],[1,2]->[0,2]", (2, 3, 4))(x, y))
print(tw.explain(tw.matmul, x, y), tw.show_calls(), tw.show_config(), tw.targets(), tw.get_num_threads())
tw.set_num_threads(2)
tw.install()
tw.uninstall()
with tw.installed():
    pass


@tw.accelerate
def product(n: int, a: Floats, b: Floats, c: Floats) -> None:
    """c += a · b."""


@tw.accelerate(threads=2)
def product_of_two(n: int, a: Floats, b: Floats, c: Floats) -> None:
    """c += a · b."""


product(4, x, x, x)
product_of_two(4, x, x, x)
