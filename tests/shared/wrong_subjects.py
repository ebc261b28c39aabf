"""Everything public that can be called, with right arguments: where the generator of wrong calls starts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from wrong_graphs import methods
from wrong_namespaces import rows

import tilewright as tw
from tilewright.ops.attention.state import AttentionState
from tilewright.spec.dtype import Use
from tilewright.spec.weights import Weights

#: Makes one right value of a parameter, new for every call.
Make = Callable[[], Any]


@dataclass(frozen=True)
class Subject:
    """Something that can be called.

    Attributes
    ----------
    name : as a user writes it.
    call : makes what is called.
    first : right values of the arguments that every call has, by position, by name.
    named : those of keywords, of which a call has some.
    """

    name: str
    call: Callable[[], Callable[..., Any]]
    first: Mapping[str, Make]
    named: Mapping[str, Make] = field(default_factory=dict)


def arr(*shape: int, dtype: Any = np.float32) -> Make:
    """An array of small numbers."""
    size = int(np.prod(shape))
    return lambda: (np.arange(size) % 3 + 1).reshape(shape).astype(dtype)


def of(*values: Any) -> Make:
    """One of some constants, the next one at each call."""
    turn = iter(_turns(values))
    return lambda: next(turn)


def _turns(values: tuple[Any, ...]) -> Iterator[Any]:
    while True:
        yield from values


@cache
def _packed() -> Any:
    return tw.pack(arr(5, 6)())


@cache
def _model() -> bytes:
    """A model of ONNX."""
    import onnx

    text = '<ir_version: 8, opset_import: ["" : 18]> g (float[n, 3] x) => (float[n, 3] y) { y = Relu(x) }'
    found: bytes = onnx.parser.parse_model(text).SerializeToString()
    return found


@cache
def _weight() -> Any:
    return tw.quantize_weights(arr(5, 6)())


@cache
def _kernel(problem: Any) -> Any:
    return tw.compile(problem)


def _native(problem: Any) -> Callable[..., Any]:
    return _kernel(problem).native  # type: ignore[no-any-return]


@cache
def _run() -> Any:
    return tw.compile_einsum("ij,jk,kl->il", (4, 5), (5, 6), (6, 3))


def _state() -> Any:
    return AttentionState(arr(2, 4, 8)(), arr(2, 4)(), arr(2, 4)())


def _functions() -> Iterator[Subject]:
    threads, dtype = of(1, 2, None), of(None, np.float64, "f32", "float32")
    scalar, zero = of(1, 2.0, 0.5), of(0, 0.0, 1)
    ab, out = {"a": arr(4, 5), "b": arr(5, 6)}, arr(4, 6)
    steps = {"bias": arr(6), "activation": of("relu", "gelu", None)}
    steps_of_matmul = {**steps, "sums": of(None, np.float64, "f64", "float32")}
    yield Subject(
        "matmul",
        lambda: tw.matmul,
        ab,
        {"out": out, "dtype": dtype, "alpha": scalar, "beta": zero, **steps_of_matmul, "threads": threads},
    )
    yield Subject(
        "matmul packed",
        lambda: tw.matmul,
        {"a": arr(4, 5), "b": _packed},
        {"out": out, "dtype": dtype, "alpha": scalar, "beta": zero, **steps, "threads": threads},
    )
    yield Subject(
        "matmul complex",
        lambda: tw.matmul,
        {"a": arr(4, 5, dtype="c8"), "b": arr(5, 6, dtype="c8")},
        {"out": arr(4, 6, dtype="c8"), "alpha": of(1j, 2), "beta": of(0, 1j), "threads": threads},
    )
    einsum_options = {
        "out": out,
        "dtype": of(None, np.float32),
        "order": of("K", "C", "F"),
        "casting": of("safe", "same_kind"),
        "optimize": of("auto", True, False, "greedy"),
        "threads": threads,
    }
    yield Subject("einsum", lambda: tw.einsum, {"subscripts": of("ij,jk->ik"), **ab}, einsum_options)
    yield Subject(
        "einsum of three",
        lambda: tw.einsum,
        {"subscripts": of("ij,jk,kl->il"), **ab, "c": arr(6, 2)},
        {"optimize": of(["einsum_path", (0, 1), (0, 1)], "optimal", ("greedy", 100)), "order": of("K")},
    )
    yield Subject(
        "einsum of one", lambda: tw.einsum, {"subscripts": of("ij->ji", "ii->i", "ij->"), "a": arr(4, 4)}
    )
    yield Subject(
        "einsum of lists",
        lambda: tw.einsum,
        {"a": arr(4, 5), "la": of([0, 1]), "b": arr(5, 6), "lb": of([1, 2]), "lo": of([0, 2])},
        einsum_options,
    )
    shapes = {"a": of((4, 5)), "b": arr(5, 6)}
    yield Subject(
        "compile_einsum",
        lambda: tw.compile_einsum,
        {"subscripts": of("ij,jk->ik"), **shapes},
        {"dtype": dtype, "optimize": of("auto", True, False)},
    )
    yield Subject(
        "compile_einsum()",
        _run,
        {"a": arr(4, 5), "b": arr(5, 6), "c": arr(6, 3)},
        {"out": arr(4, 3), "threads": threads},
    )
    yield Subject("CompiledEinsum.seconds", lambda: _run().seconds, {}, {"repeat": of(1)})
    yield Subject("CompiledEinsum.explain", lambda: _run().explain, {})
    yield Subject(
        "einsum_tree",
        lambda: tw.einsum_tree,
        {
            "tree": of("[0,1],[[1,2],[2,3]->[1,3]]->[3,0]"),
            "sizes": of((2, 3, 4, 5), {0: 2, 1: 3, 2: 4, 3: 5}),
        },
        {"dtype": dtype, "optimize": of(True, False, "greedy")},
    )
    yield Subject(
        "einsum_contraction",
        lambda: tw.einsum_contraction,
        {"subscripts": of("ij,jk->ik"), **shapes},
        {
            "dtype": of("f32", None),
            "out_dtype": of("f32", None),
            "out_strides": of((6, 1)),
            "main": of("gemm", "packed_gemm"),
            "first": of("zero"),
            "last": of("relu", None),
        },
    )
    yield Subject(
        "schedule",
        lambda: tw.schedule,
        {"contraction": lambda: tw.einsum_contraction("ij,jk->ik", (4, 5), (5, 6))},
        {"target": of("znver5", None)},
    )
    axes = {"axes": of(1, ([1], [0]), (1, 0))}
    yield Subject("tensordot", lambda: tw.tensordot, {**ab, **axes})
    bytes_, point = {"a": arr(4, 5, dtype=np.uint8), "b": arr(5, 6, dtype=np.int8)}, of(None, 1)
    yield Subject(
        "matmul_integer",
        lambda: tw.matmul_integer,
        bytes_,
        {"a_zero_point": point, "b_zero_point": point, "out": arr(4, 6, dtype=np.int32), "threads": threads},
    )
    yield Subject("inner", lambda: tw.inner, {"a": arr(4, 5), "b": arr(3, 5)})
    yield Subject("kron", lambda: tw.kron, {"a": arr(2, 2), "b": arr(2, 3)})
    yield Subject(
        "vecdot",
        lambda: tw.vecdot,
        {"a": arr(4, 5), "b": arr(4, 5)},
        {"out": arr(4), "axis": of(-1, 1), "dtype": of(None)},
    )
    yield Subject(
        "matvec", lambda: tw.matvec, {"a": arr(4, 5), "b": arr(5)}, {"out": arr(4), "dtype": of(None)}
    )
    yield Subject(
        "vecmat", lambda: tw.vecmat, {"a": arr(5), "b": arr(5, 6)}, {"out": arr(6), "dtype": of(None)}
    )
    yield Subject(
        "transpose", lambda: tw.transpose, {"a": arr(2, 3, 4)}, {"axes": of((2, 0, 1)), "out": arr(4, 2, 3)}
    )
    yield Subject(
        "linear",
        lambda: tw.linear,
        {"x": arr(4, 5), "weight": arr(6, 5)},
        {**steps, "out": out, "threads": threads},
    )
    yield Subject(
        "linear packed",
        lambda: tw.linear,
        {"x": lambda: tw.quantize_rows(arr(4, 5)()), "weight": _weight},
        {**steps, "out": out, "threads": threads},
    )
    yield from _packing()
    yield from _attention()
    along = {"axis": of(-1, 0, (0, 1)), "out": arr(4, 5), "threads": threads}
    for name in ("softmax", "log_softmax"):
        yield Subject(name, partial(getattr, tw, name), {"x": arr(4, 5)}, along)
    norm = {"weight": arr(5), "axis": of(-1), "eps": of(1e-5, 0), "out": arr(4, 5), "threads": threads}
    yield Subject("layer_norm", lambda: tw.layer_norm, {"x": arr(4, 5)}, {**norm, "bias": arr(5)})
    yield Subject("rms_norm", lambda: tw.rms_norm, {"x": arr(4, 5)}, norm)
    for name in ("relu", "exp", "tanh", "sigmoid", "silu", "erf", "gelu"):
        named = {"out": arr(4, 5), "threads": threads}
        named |= {"approximate": of("none", "tanh")} if name == "gelu" else {}
        yield Subject(name, partial(getattr, tw, name), {"x": arr(4, 5)}, named)
    for name, gate in (("gated", {"gate": arr(4, 5)}), ("gated merged", {})):
        yield Subject(
            name,
            lambda: tw.gated,
            {"x": arr(4, 5) if gate else arr(4, 10), **gate},
            {
                "activation": of("silu", "gelu", None),
                "out": arr(4, 5),
                "gate_first": of(True, False),
                "threads": threads,
            },
        )
    tables = {"cos": arr(6, 2), "sin": arr(6, 2)}
    yield Subject(
        "rotary",
        lambda: tw.rotary,
        {"x": arr(2, 3, 4, 5), **tables},
        {
            "positions": of(None, np.zeros((2, 4), int), [0, 1, 2, 5]),
            "interleaved": of(False, True),
            "layout": of("bhsd"),
            "out": arr(2, 3, 4, 5),
            "threads": threads,
        },
    )
    yield Subject(
        "rotary_tables",
        lambda: tw.rotary_tables,
        {"length": of(9), "dim": of(8)},
        {
            "base": of(10000.0),
            "scaling": of(None, "linear", "yarn", "llama3", "dynamic"),
            "factor": of(4.0),
            "original_length": of(16),
            "beta_fast": of(32),
            "beta_slow": of(1),
            "low_freq_factor": of(1.0),
            "high_freq_factor": of(4.0),
            "attention_factor": of(None, 1.0),
            "dtype": of("f32", "bf16"),
        },
    )
    gathered = {"out": arr(2, 3, 5), "scale": of(None, 2.0), "threads": threads}
    for name, table in (
        ("embedding", arr(4, 5)),
        ("embedding of int8", lambda: tw.quantize_rows(arr(4, 5)())),
    ):
        yield Subject(
            name, lambda: tw.embedding, {"table": table, "indices": of([[0, 1, 3], [2, 2, 0]])}, gathered
        )
    yield Subject(
        "sample",
        lambda: tw.sample,
        {"logits": arr(4, 5)},
        {
            "temperature": of(0, 1.0),
            "top_k": of(None, 3),
            "top_p": of(None, 0.5),
            "min_p": of(None, 0.1),
            "generator": lambda: np.random.default_rng(0),
        },
    )
    for name in ("sum", "mean", "max", "min"):
        yield Subject(
            name,
            partial(getattr, tw, name),
            {"x": arr(4, 5)},
            {"axis": of(0), "out": arr(5), "keepdims": of(False), "threads": threads}
            | ({"dtype": of(None, np.float64)} if name in ("sum", "mean") else {}),
        )
    factors = {"out": arr(4, 4), "alpha": scalar, "lower": of(True, False), "threads": threads}
    yield Subject("syrk", lambda: tw.syrk, {"a": arr(4, 5)}, {**factors, "beta": zero})
    yield Subject("syr2k", lambda: tw.syr2k, {"a": arr(4, 5), "b": arr(4, 5)}, {**factors, "beta": zero})
    yield Subject(
        "trmm",
        lambda: tw.trmm,
        {"a": arr(4, 4), "b": arr(4, 4)},
        {**factors, "unit": of(False, True), "side": of("left", "right")},
    )
    yield Subject("set_num_threads", lambda: tw.set_num_threads, {"count": of(2)})
    yield Subject("get_num_threads", lambda: tw.get_num_threads, {})
    yield Subject("targets", lambda: tw.targets, {})
    yield Subject(
        "machine",
        lambda: tw.machine,
        {},
        {
            "isa": of(None, tw.machine().isa.name),
            "l1_bytes": of(32768),
            "l2_bytes": of(2**20),
            "l3_bytes": of(2**24),
            "cores": of(2),
            "cpu": of(tw.machine().cpu),
            "features": of(""),
        },
    )
    yield Subject(
        "compile",
        lambda: tw.compile,
        {"problem": lambda: tw.Gemm(2, 3, 4)},
        {"target": of(None, "host", "znver5"), "lowering": of("target", "generic")},
    )
    yield Subject(
        "accelerate", lambda: tw.accelerate, {"function": of(_plain_function)}, {"threads": of(None, 1)}
    )
    yield Subject("accelerate.report", lambda: tw.accelerate.report, {"function": of(_plain_function)})
    for name, first in (
        ("matmul", ab),
        ("einsum", {"subscripts": of("ij,jk->ik"), **ab}),
        ("softmax", {"x": arr(4, 5)}),
        ("sum", {"x": arr(4, 5)}),
        ("gelu", {"x": arr(4, 5)}),
        ("syrk", {"a": arr(4, 5)}),
        ("trmm", {"a": arr(4, 4), "b": arr(4, 4)}),
        ("attention", {name: arr(1, 2, 4, 8) for name in "qkv"}),
    ):
        options = {
            "matmul": {"alpha": scalar, "bias": arr(6)},
            "softmax": {"axis": of(0)},
            "attention": {"causal": of(True)},
        }
        yield Subject(
            f"explain {name}",
            lambda: tw.explain,
            {"subject": partial(getattr, tw, name), **first},
            {"threads": threads, **options.get(name, {})},
        )
    yield Subject(
        "explain a problem", lambda: tw.explain, {"subject": lambda: tw.Gemm(2, 3, 4)}, {"target": of(None)}
    )


def _plain_function(a: Any, b: Any, c: Any) -> None:
    for i in range(4):
        for j in range(5):
            for k in range(6):
                c[i, j] += a[i, k] * b[k, j]


def _packing() -> Iterator[Subject]:
    target = of(None, "host", "znver5")
    yield Subject(
        "pack",
        lambda: tw.pack,
        {"b": arr(5, 6)},
        {"role": of("b", "a"), "tiles": of((8, 2)), "form": of("bf16", "f16"), "target": target},
    )
    quantised = {"bits": of(8, 4), "group": of(None, 32), "target": target}
    yield Subject(
        "quantize_weights",
        lambda: tw.quantize_weights,
        {"w": arr(5, 6)},
        {**quantised, "symmetric": of(True), "rounding": of("gptq"), "inputs": arr(3, 5)},
    )
    yield Subject(
        "pack_quantized",
        lambda: tw.pack_quantized,
        {"q": arr(5, 6, dtype="i1"), "scales": arr(1, 6)},
        {"zeros": arr(1, 6, dtype="i1"), **quantised},
    )
    chosen = {"pack": of(True, False, "*.weight"), "precision": of(None), "names": of(None, "*")}
    for name in ("load_safetensors", "load_gguf"):
        yield Subject(name, partial(getattr, tw, name), {"path": of("/nowhere/at/all")}, chosen)
    yield Subject(
        "unpack_gptq",
        lambda: tw.unpack_gptq,
        {"qweight": arr(4, 8, dtype="i4"), "qzeros": arr(1, 1, dtype="i4"), "scales": arr(1, 8)},
        {
            "g_idx": lambda: np.zeros(32, np.int32),
            "bits": of(4),
            "group": of(None, 32),
            "checkpoint_format": of("gptq", "gptq_v2"),
        },
    )
    yield Subject(
        "unpack_awq",
        lambda: tw.unpack_awq,
        {"qweight": arr(32, 1, dtype="i4"), "qzeros": arr(1, 1, dtype="i4"), "scales": arr(1, 8)},
        {"group": of(None, 32)},
    )
    yield Subject(
        "unpack_hqq",
        lambda: tw.unpack_hqq,
        {"w_q": arr(1, 64, dtype="u1"), "scale": arr(2), "zero": arr(2), "shape": of((2, 64))},
        {"bits": of(4), "group": of(64), "axis": of(1)},
    )
    yield Subject("unpack", lambda: tw.unpack, {"packed": _packed})
    yield Subject("quantize_rows", lambda: tw.quantize_rows, {"x": arr(4, 5)})
    yield Subject(
        "QuantizedRows",
        lambda: tw.QuantizedRows,
        {"q": arr(4, 5, dtype="i1"), "scales": arr(4)},
        {"sums": arr(4, dtype="i4")},
    )
    yield Subject(
        "mmt4d",
        lambda: tw.mmt4d,
        {"lhs4d": arr(2, 3, 4, 2), "rhs4d": arr(1, 3, 8, 2)},
        {"out4d": arr(2, 1, 4, 8)},
    )
    made = {"form": lambda: _packed().form, "shape": of((5, 6)), "data4d": _packed().data4d.copy}
    yield Subject("PackedMatrix", lambda: tw.PackedMatrix, made, {"vectors": of({})})
    yield Subject("PackedMatrix.save", lambda: _packed().save, {"path": of("/nowhere/at/all")})
    yield Subject(
        "PackedMatrix.load",
        lambda: tw.PackedMatrix.load,
        {"path": of("/nowhere/at/all")},
        {"mmap": of(True), "verify": of(True), "repack": of(False)},
    )
    paths = {"path": of("/nowhere/at/all")}
    yield Subject("load_graph", lambda: tw.load_graph, paths, {"mmap": of(True), "verify": of(True)})
    if find_spec("onnx"):
        options = {
            "precision": of("f32", "bf16"),
            "shapes": of(None, {"x": ("n", 3)}),
            "constants": of(None, {}),
        }
        yield Subject("onnx.load", lambda: tw.onnx.load, {"model": _model}, options)
        yield Subject("onnx.read", lambda: tw.onnx.read, {"model": _model}, {"shapes": of(None)})
    yield Subject("PackedMatrix.copy", lambda: _packed().copy, {})
    yield Subject("PackedMatrix @", lambda: _packed().__rmatmul__, {"left": arr(4, 5)})
    yield Subject("@ PackedMatrix", lambda: tw.pack(arr(5, 6)(), role="a").__matmul__, {"right": arr(6, 3)})


def _append_to_int8(*operands: Any) -> Any:
    """Rows that are quantised into caches; the last two operands are caches of scales."""
    *others, key_scales, value_scales = operands
    return tw.append_kv(*others, key_scales=key_scales, value_scales=value_scales)


def _merged(*parts: Any) -> Any:
    """A state given by its arrays, merged with another one."""
    states: Any = [parts, _state()]
    return tw.merge_attention(states)


def _attention() -> Iterator[Subject]:
    qkv = {"q": arr(2, 4, 3, 8), "k": arr(2, 2, 5, 8), "v": arr(2, 2, 5, 8)}
    common = {
        "mask": arr(3, 5, dtype="?"),
        "causal": of(False, True, "upper_left"),
        "scale": of(None, 0.5),
        "window": of(None, (2, 0), (None, 1)),
        "softcap": of(None, 2.0),
        "alibi_slopes": arr(4),
        "sinks": arr(4),
        "q_lengths": arr(2, dtype="i4"),
        "kv_lengths": arr(2, dtype="i4"),
        "layout": of("bhsd"),
        "q_offset": of(None, 1),
        "threads": of(None, 1),
    }
    packed = {"cu_seqlens_q": lambda: np.array([0, 3]), "cu_seqlens_k": lambda: np.array([0, 5])}
    scales = {"key_scales": arr(2, 5), "value_scales": arr(2, 5)}
    paged = {**scales, "block_table": lambda: np.array([[0], [1]])}
    result = {"out": arr(2, 4, 3, 8), "return_lse": of(False, True), "strategy": of("auto", "fused")}
    yield Subject("attention", lambda: tw.attention, qkv, {**common, **result})
    yield Subject(
        "attention, all keywords", lambda: tw.attention, qkv, {**common, **packed, **paged, **result}
    )
    packed_qkv = {"q": arr(4, 3, 8), "k": arr(2, 5, 8), "v": arr(2, 5, 8)}
    yield Subject(
        "attention of packed sequences", lambda: tw.attention, {**packed_qkv}, {**packed, "causal": of(True)}
    )
    yield Subject(
        "attention of pages",
        lambda: tw.attention,
        {"q": arr(2, 4, 3, 8), "k": arr(2, 2, 16, 8), "v": arr(2, 2, 16, 8)},
        {"block_table": lambda: np.array([[0], [1]]), "kv_lengths": arr(2, dtype="i4")},
    )
    yield Subject(
        "attention of int8",
        lambda: tw.attention,
        {"q": arr(2, 4, 3, 8), "k": arr(2, 2, 5, 8, dtype="i1"), "v": arr(2, 2, 5, 8, dtype="i1")},
        {**scales, "causal": of(True)},
    )
    cache = {
        "k_cache": arr(2, 2, 5, 8),
        "v_cache": arr(2, 2, 5, 8),
        "k": arr(2, 2, 1, 8),
        "v": arr(2, 2, 1, 8),
    }
    yield Subject(
        "append_kv",
        lambda: tw.append_kv,
        {**cache, "kv_lengths": arr(2, dtype="i4")},
        {
            "new_lengths": lambda: np.array([1, 0]),
            "layout": of("bhsd"),
            "block_table": lambda: np.array([[0], [1]]),
        },
    )
    yield Subject(
        "rows appended to int8",
        lambda: _append_to_int8,
        {
            **{name: arr(2, 2, 5, 8, dtype="i1") for name in ("k_cache", "v_cache")},
            **{name: arr(2, 2, 1, 8) for name in ("k", "v")},
            "kv_lengths": arr(2, dtype="i4"),
            **{name: arr(2, 2, 5) for name in ("key_scales", "value_scales")},
        },
    )
    yield Subject("attention_partial", lambda: tw.attention_partial, qkv, {**common, **packed, **paged})
    yield Subject(
        "merge_attention",
        lambda: tw.merge_attention,
        {"states": lambda: [_state(), _state()]},
        {"layout": of(None, "bhsd")},
    )
    yield Subject(
        "merge_attention of parts",
        lambda: _merged,
        {"out": arr(2, 4, 8), "row_max": arr(2, 4), "row_sum": arr(2, 4)},
    )
    backward = {"dout": arr(2, 4, 3, 8), **qkv, "out": arr(2, 4, 3, 8), "lse": arr(2, 4, 3)}
    yield Subject("attention_backward", lambda: tw.attention_backward, backward, {**common, **packed})


def _records() -> Iterator[Subject]:
    size, kind = of(None, 4, 8), of("f32", "bf16", np.float64)
    sizes = {"m": size, "n": size, "k": size}
    layout, flag = of("row", "col"), of(False, True)
    types = {"b_dtype": of(None), "out_dtype": of(None, "f32")}
    layouts = {"a": layout, "b": layout, "c": layout}
    yield Subject(
        "Gemm",
        lambda: tw.Gemm,
        {},
        {
            **sizes,
            "dtype": kind,
            **layouts,
            **types,
            "epilogue": of(None, "bias,relu", [tw.Bias(), tw.Activation("gelu")]),
            "strategy": of("auto", "tiling"),
            "weights": of(None, Weights.parse("i8")),
            "sums": of(None, "f64"),
        },
    )
    yield Subject(
        "BatchReduceGemm",
        lambda: tw.BatchReduceGemm,
        {"m": of(4), "n": of(5), "k": of(6), "count": of(1)},
        {"dtype": kind, **layouts, **types, "beta": of(0, 1), "batch": of("stride")},
    )
    yield Subject(
        "Unary",
        lambda: tw.Unary,
        {"op": of("relu"), "m": size, "n": size},
        {"dtype": of("f32"), "a": of("col"), "b": layout},
    )
    yield Subject(
        "Mmt4d",
        lambda: tw.Mmt4d,
        {"m0": of(8), "n0": of(8), "k0": of(1)},
        {"dtype": kind, "b_dtype": of(None), "m1": size, "n1": size, "k1": size},
    )
    yield Subject(
        "Attention",
        lambda: tw.Attention,
        {"head_dim": of(8)},
        {
            "value_dim": of(None, 8),
            "dtype": of("f32", "bf16"),
            "kv_dtype": of(None, "i8"),
            "mask": of(None, "u8"),
            **dict.fromkeys(
                ("bounded", "softcap", "slopes", "sinks", "key_scales", "value_scales", "paged", "partial"),
                flag,
            ),
            "schedule": of("blocks"),
        },
    )
    yield Subject(
        "AttentionBackward",
        lambda: tw.AttentionBackward,
        {"head_dim": of(8)},
        {
            "value_dim": of(None),
            "dtype": of("f32"),
            "mask": of(None),
            **dict.fromkeys(("bounded", "softcap", "slopes"), flag),
        },
    )
    yield Subject(
        "Dimension",
        lambda: tw.Dimension,
        {"type": of("m")},
        {
            "execution": of("sequential"),
            "size": of(4),
            "in0": of(1),
            "in1": of(0),
            "out": of(1),
            "bias": of(0),
        },
    )
    yield Subject(
        "Contraction",
        lambda: tw.Contraction,
        {"dimensions": lambda: [tw.Dimension("m", size=4, in0=1, out=1)]},
        {
            "dtype": of("f32"),
            "in1_dtype": of(None),
            "out_dtype": of(None),
            "main": of("packed_gemm", "gemm"),
            "first": of("zero"),
            "last": of(None, "relu"),
        },
    )
    yield Subject(
        "Contraction.parse",
        lambda: tw.Contraction.parse,
        {"text": lambda: str(tw.einsum_contraction("ij,jk->ik", (2, 3), (3, 4)))},
    )
    yield Subject("Epilogue", lambda: tw.Epilogue, {"steps": lambda: [tw.Bias(), tw.Scale()]})
    yield Subject("Epilogue.parse", lambda: tw.Epilogue.parse, {"value": of("bias,relu")})
    along, optional = of("column", "row"), of(None, "f32")
    yield Subject("Bias", lambda: tw.Bias, {}, {"along": along, "dtype": optional})
    yield Subject("Scale", lambda: tw.Scale, {}, {"along": along, "dtype": optional})
    yield Subject("Residual", lambda: tw.Residual, {}, {"dtype": optional})
    yield Subject("Activation", lambda: tw.Activation, {"op": of("relu")})
    yield Subject("Clamp", lambda: tw.Clamp, {"low": of(0.0), "high": of(6)})
    yield Subject("Saturate", lambda: tw.Saturate, {})
    yield Subject(
        "LinearChain",
        lambda: tw.LinearChain,
        {"sizes": of((3, 4, 2))},
        {"activations": of(("relu", None)), "dtype": of("f32"), "bias": flag},
    )
    yield Subject("Packing", lambda: tw.Packing, {}, {"role": of("a", "b"), "dtype": kind, "other": of(None)})
    yield Subject(
        "RowFunction",
        lambda: tw.RowFunction,
        {"op": of("softmax", "layer_norm")},
        {"dtype": kind, "layout": layout, "weight": of(None), "bias": of(None)},
    )
    yield Subject(
        "BinaryFunction",
        lambda: tw.BinaryFunction,
        {"op": of("multiply")},
        {"dtype": kind, "activation": of("gelu", None)},
    )
    yield Subject(
        "Rotary", lambda: tw.Rotary, {}, {"dtype": kind, "tables": of(None), "pairing": of("halves")}
    )
    yield Subject("Embedding", lambda: tw.Embedding, {}, {"dtype": kind, "scaled": of(False)})
    yield Subject("Elementwise", lambda: tw.Elementwise, {"op": of("gelu")}, {"dtype": kind})
    yield Subject(
        "SumOfProducts",
        lambda: tw.SumOfProducts,
        {},
        {"walk": of("along"), "factors": of(2), "dtype": of("f32")},
    )
    triangle = {
        "n": size,
        "k": size,
        "dtype": kind,
        "out_dtype": of(None),
        "a": layout,
        "c": layout,
        "lower": flag,
    }
    yield Subject("Syrk", lambda: tw.Syrk, {}, triangle)
    yield Subject("Syr2k", lambda: tw.Syr2k, {}, {**triangle, "b": layout})
    yield Subject(
        "Trmm",
        lambda: tw.Trmm,
        {},
        {
            "m": size,
            "n": size,
            "dtype": kind,
            "out_dtype": of(None),
            **layouts,
            "side": of("left"),
            "lower": flag,
            "unit": flag,
        },
    )
    fields = {
        "name": of("f32"),
        "bits": of(32),
        "kind": of(tw.Gemm().dtype.kind),
        "numpy_name": of("float32"),
    }
    spelling = {
        "significand": of(24),
        "packed_in": of(None),
        "exponent": of(8),
        "infinities": flag,
        "extension": flag,
        "llvm_name": of("float"),
        "c_name": of("float"),
        "uses": of(Use.NONE),
    }
    yield Subject("DType", lambda: tw.DType, fields, spelling)


def _with_bias(kernel: Any) -> Callable[..., Any]:
    """A kernel with its epilogue's operand by position."""
    return lambda a, b, c, bias, **scalars: kernel(a, b, c, bias=bias, **scalars)


def _kernels() -> Iterator[Subject]:
    """Kernels of every kind of problem, called as objects and as builtins."""
    abc = {"a": arr(4, 5), "b": arr(5, 6), "c": arr(4, 6)}
    scalars = {"alpha": of(1, 2.0), "beta": of(0, 1)}
    single = {"a": arr(4, 5), "b": arr(4, 5)}
    contraction = tw.einsum_contraction("ij,jk->ik", (4, 5), (5, 6))
    chain = {
        "x": arr(4, 5),
        "weights": lambda: [_packed(), tw.pack(arr(6, 3)())],
        "biases": lambda: [arr(6)(), arr(3)()],
    }
    offsets = {"a": arr(4, 5), "b": arr(5, 6), "c": arr(4, 6)}
    known: tuple[tuple[Any, Mapping[str, Make], Mapping[str, Make]], ...] = (
        (tw.Gemm(), abc, scalars),
        (tw.Gemm(b="packed"), {"a": arr(4, 5), "b": _packed, "c": arr(4, 6)}, scalars),
        (tw.Gemm(weights=Weights.parse("i8")), {"a": arr(4, 5), "b": _weight, "c": arr(4, 6)}, scalars),
        (tw.BatchReduceGemm(4, 6, 5, 1, a="row", b="row", c="row"), abc, {}),
        (
            tw.BatchReduceGemm(4, 6, 5, 2, a="row", b="row", c="row", batch="address"),
            {"a": lambda: [arr(4, 5)()] * 2, "b": lambda: [arr(5, 6)()] * 2, "c": arr(4, 6)},
            {},
        ),
        (tw.Unary("relu", 4, 5, b="row"), {"a": lambda: arr(5, 4)().T, "b": arr(4, 5)}, {}),
        (
            tw.Packing("b"),
            {"matrix": arr(5, 6), "panels": lambda: np.zeros(_packed().data4d.shape, np.float32)},
            {},
        ),
        (
            tw.Mmt4d(4, 8, 2),
            {"lhs": arr(2, 3, 4, 2), "rhs": arr(1, 3, 8, 2), "out": arr(2, 1, 4, 8)},
            {"beta": of(0, 1)},
        ),
        (tw.LinearChain((5, 6, 3), ("relu", None)), chain, {"out": arr(4, 3)}),
        (tw.RowFunction("softmax"), single, {}),
        (tw.Elementwise("gelu"), single, {}),
        (tw.BinaryFunction("add"), {**single, "c": arr(4, 5)}, {}),
        (tw.Rotary(), single, {}),
        (tw.Embedding(), single, {}),
        (tw.Syrk(), {"a": arr(4, 5), "c": arr(4, 4)}, scalars),
        (tw.Syr2k(), {"a": arr(4, 5), "b": arr(4, 5), "c": arr(4, 4)}, scalars),
        (tw.Trmm(), {"a": arr(4, 4), "b": arr(4, 6), "c": arr(4, 6)}, {"alpha": of(1)}),
        (contraction, offsets, {"sizes": of(())}),
        (tw.SumOfProducts("along", 2), single, {}),
        (tw.Attention(8), single, {}),
        (tw.AttentionBackward(8), single, {}),
    )
    for number, (problem, first, named) in enumerate(known):
        name = f"{type(problem).__name__} kernel {number}"
        yield Subject(name, partial(_kernel, problem), first, named)
        yield Subject(f"{name}, native", partial(_native, problem), first, named)
    biased = tw.Gemm(4, 6, 5, epilogue="bias,relu")
    with_bias = {**abc, "bias": arr(6)}
    yield Subject("Gemm kernel with a bias", lambda: _with_bias(_kernel(biased)), with_bias, scalars)
    yield Subject(
        "Kernel.scratch_bytes_for", lambda: _kernel(tw.Gemm()).scratch_bytes_for, {"threads": of(2)}
    )


def _completed(subject: Subject) -> Subject:
    """A subject of a public function with the keywords that its row does not name, as they are by default."""
    function = getattr(tw, subject.name.split(" ")[0], None)
    if not callable(function):
        return subject
    known = {*subject.first, *subject.named}
    given = {
        name: of(one.default)
        for name, one in inspect.signature(function).parameters.items()
        if name not in known and one.kind is inspect.Parameter.KEYWORD_ONLY
    }
    return replace(subject, named={**given, **subject.named})


def subjects() -> tuple[Subject, ...]:
    """All of them."""
    others = (Subject(*one) for one in (*methods(), *rows(arr, of)))
    return tuple(map(_completed, (*_functions(), *_records(), *_kernels(), *others)))
