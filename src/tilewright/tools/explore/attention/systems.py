"""The systems whose attention is measured: tilewright and its peers, one row each.

All are called alike: operands given, a new array of results back. Where a peer has several ways to the same
result, each is tried before anything is measured, and the fastest is taken.
"""

from __future__ import annotations

import math
import time
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import repeat
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tilewright.errors import InvalidChoice, PackageMissing, UnsupportedDtype
from tilewright.records import dataclass
from tilewright.spec.dtype import parse_dtype
from tilewright.threads.scratch import resident_scratch_bytes
from tilewright.tools.explore.prepared import NamedSystem
from tilewright.tools.explore.systems import array_tensor, onnx_session

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tilewright.tools.explore.attention.shape import AttentionShape

#: Calls of each way of a peer before the fastest is chosen; the first one is not timed.
TRIALS = 3


class AttentionRun:
    """A prepared attention; every system is called the same way, so the overhead of the loop is equal.

    Parameters
    ----------
    function : without arguments.
    read : makes an array of what it returns.
    """

    def __init__(self, function: Callable[[], Any], read: Callable[[Any], NDArray[Any]]) -> None:
        self._function, self._read = function, read
        self._last: Any = None

    def run(self, calls: int) -> None:
        """Compute it `calls` times."""
        function, last = self._function, None
        for _ in repeat(None, calls):
            last = function()
        self._last = last

    def result(self) -> NDArray[Any]:
        """What the last call returned, as (batch, heads, queries, head_dim); it is let go of."""
        last, self._last = self._last, None
        return self._read(last)


class AttentionSystem(NamedSystem, Protocol):
    """Something that computes attention."""

    def check(self, case: AttentionShape) -> None:
        """Refuse what it does not compute.

        Raises
        ------
        UnsupportedDtype, InvalidChoice, PackageMissing
        """

    def call(self, case: AttentionShape) -> str:
        """What is called, as reports name it."""

    def prepare(self, case: AttentionShape, arrays: Sequence[NDArray[Any]], threads: int) -> AttentionRun:
        """Bring q, k and v into the system's form; it may use `threads` threads."""

    def kept_bytes(self) -> int | None:
        """Memory for intermediate results that it holds between calls; None where that is not known."""


class _Peer:
    """What is the same for all peers."""

    def kept_bytes(self) -> int | None:
        """Nobody can tell."""
        return None


@dataclass(frozen=True)
class TilewrightAttention:
    """`tilewright.attention`; the thread count comes from the worker's environment."""

    name: str = "tilewright"
    package: str = "tilewright"
    strategy: str = "auto"

    def check(self, case: AttentionShape) -> None:
        """It computes every case."""

    def call(self, case: AttentionShape) -> str:  # noqa: ARG002
        """The public function, and the strategy where one is given."""
        return "tilewright.attention" + (f", {self.strategy}" if self.strategy != "auto" else "")

    def prepare(
        self,
        case: AttentionShape,
        arrays: Sequence[NDArray[Any]],
        threads: int,  # noqa: ARG002
    ) -> AttentionRun:
        """The arrays as they are."""
        function = import_module(self.package).attention
        options: dict[str, Any] = {"causal": True} if case.causal else {}
        options |= {} if case.window is None else {"window": case.window}
        options |= {"strategy": self.strategy} if self.strategy != "auto" else {}
        return AttentionRun(partial(function, *arrays, **options), np.asarray)

    def kept_bytes(self) -> int | None:
        """The scratch of its kernels."""
        return resident_scratch_bytes()


@dataclass(frozen=True)
class NumPyAttention(_Peer):
    """Two products by `numpy.matmul` and a softmax in place, head by head, so that scores stay in cache."""

    name: str = "numpy"
    package: str = "numpy"

    def check(self, case: AttentionShape) -> None:
        """The types that BLAS has."""
        _require(self.name, case, ("f32", "f64"))

    def call(self, case: AttentionShape) -> str:  # noqa: ARG002
        """What it is made of."""
        return "numpy.matmul, softmax in place, numpy.matmul"

    def prepare(self, case: AttentionShape, arrays: Sequence[NDArray[Any]], threads: int) -> AttentionRun:
        """The environment bounds the threads of the BLAS; threadpoolctl, where installed, sets them."""
        if find_spec("threadpoolctl") is not None:
            import_module("threadpoolctl").threadpool_limits(threads, user_api="blas")
        return AttentionRun(partial(_unfused, case, _hidden(case), *arrays), np.asarray)


def _hidden(case: AttentionShape) -> NDArray[np.bool_] | None:
    """(queries, keys): what queries do not see; None where they see everything."""
    return None if case.bounds is None else ~case.visible(np.arange(case.queries))


def _unfused(
    case: AttentionShape,
    hidden: NDArray[np.bool_] | None,
    q: NDArray[Any],
    k: NDArray[Any],
    v: NDArray[Any],
) -> NDArray[Any]:
    """softmax(q · kᵀ · scale) · v, head by head."""
    out = np.empty_like(q)
    group, scale = case.heads // case.kv_heads, q.dtype.type(1 / math.sqrt(case.head_dim))
    scores = np.empty((case.queries, case.keys), q.dtype)
    for batch in range(case.batch):
        for head in range(case.heads):
            np.matmul(q[batch, head] * scale, k[batch, head // group].T, out=scores)
            if hidden is not None:
                scores[hidden] = -np.inf
            scores -= scores.max(-1, keepdims=True)
            np.exp(scores, out=scores)
            sums = scores.sum(-1, keepdims=True)
            np.matmul(scores, v[batch, head // group], out=out[batch, head])
            out[batch, head] /= sums
    return out


@dataclass(frozen=True)
class TorchAttention(_Peer):
    """`torch.nn.functional.scaled_dot_product_attention` on tensors that are the NumPy arrays' memory."""

    name: str = "torch"
    package: str = "torch"

    def check(self, case: AttentionShape) -> None:
        """It has every type."""

    def call(self, case: AttentionShape) -> str:
        """With what stands for the bounds; groups of heads are tried in all its ways."""
        extra = "" if case.bounds is None else ", attn_mask" if _needs_mask(case) else ", is_causal"
        return f"torch scaled_dot_product_attention({case.dtype}{extra})"

    def prepare(self, case: AttentionShape, arrays: Sequence[NDArray[Any]], threads: int) -> AttentionRun:
        """Outside of autograd, on `threads` intra-op threads; the fastest way for groups and masks."""
        torch = import_module(self.package)
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        dtype = parse_dtype(case.dtype)
        attend = torch.nn.functional.scaled_dot_product_attention
        q, k, v = (array_tensor(torch, array, dtype) for array in arrays)
        group = case.heads // case.kv_heads
        ways = []
        for bounds in _torch_bounds(torch, case, q.dtype):
            if group == 1:
                ways.append(partial(attend, q, k, v, **bounds))
                continue
            wide_k, wide_v = (x.repeat_interleave(group, dim=1) for x in (k, v))
            ways.append(partial(attend, q, wide_k, wide_v, **bounds))
            ways.append(partial(attend, q, k, v, enable_gqa=True, **bounds))
            if case.queries == 1 and not bounds:
                # The heads of a group as queries of one head of keys, which one query each allows.
                rows = q.view(case.batch, case.kv_heads, group, case.head_dim)
                ways.append(partial(_as_heads, attend, rows, k, v, q.shape))
        return AttentionRun(_fastest(ways), lambda out: _tensor_array(torch, out))


def _torch_bounds(torch: Any, case: AttentionShape, dtype: Any) -> list[dict[str, Any]]:
    """Torch's ways to say which keys are seen: of a mask, truths (which it converts) and what is added."""
    if not _needs_mask(case):
        return [{"is_causal": True} if case.bounds is not None else {}]
    seen = torch.from_numpy(case.visible(np.arange(case.queries)))
    added = torch.zeros(seen.shape, dtype=dtype).masked_fill_(~seen, -math.inf)
    return [{"attn_mask": seen}, {"attn_mask": added}]


def _needs_mask(case: AttentionShape) -> bool:
    """Whether torch's `is_causal`, which counts from the first key, does not say it."""
    square = case.queries == case.keys and case.window is None
    return case.bounds is not None and not square


def _as_heads(attend: Callable[..., Any], q: Any, k: Any, v: Any, shape: Sequence[int]) -> Any:
    return attend(q, k, v).view(shape)


def _tensor_array(torch: Any, tensor: Any) -> NDArray[Any]:
    """A tensor's values; bfloat16, of which NumPy knows nothing, in float32, which holds them."""
    return np.asarray((tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy())


def _fastest(ways: Sequence[Callable[[], Any]]) -> Callable[[], Any]:
    """The way with the least time of a few calls, in turn."""
    if len(ways) == 1:
        return ways[0]
    best = [math.inf] * len(ways)
    for trial in range(TRIALS):
        for number, way in enumerate(ways):
            start = time.perf_counter()
            way()
            if trial:
                best[number] = min(best[number], time.perf_counter() - start)
    return ways[best.index(min(best))]


@dataclass(frozen=True)
class OnnxRuntimeAttention(_Peer):
    """`Attention` of ONNX, and ONNX Runtime's own `MultiHeadAttention`, as models of one node."""

    name: str = "onnxruntime"
    package: str = "onnxruntime"

    def check(self, case: AttentionShape) -> None:
        """Its kernels for CPUs are of float32; causal counts from the first key, and there are no windows."""
        _require(self.name, case, ("f32",))
        if _needs_mask(case):
            raise InvalidChoice(
                name="case of onnxruntime", found=case.name, allowed="all keys, or a causal square"
            )
        if find_spec("onnx") is None:
            raise PackageMissing(purpose="measuring onnxruntime", package="onnx", install="onnx")

    def call(self, case: AttentionShape) -> str:  # noqa: ARG002
        """The nodes that are tried."""
        return "onnxruntime Attention or MultiHeadAttention, the faster"

    def prepare(self, case: AttentionShape, arrays: Sequence[NDArray[Any]], threads: int) -> AttentionRun:
        """Sessions of `threads` threads; the faster of two nodes where the heads are as many."""
        ways = [self._attention(case, arrays, threads)]
        if case.heads == case.kv_heads:
            ways.append(self._multi_head(case, arrays, threads))
        return AttentionRun(_fastest(ways), np.asarray)

    def _attention(
        self, case: AttentionShape, arrays: Sequence[NDArray[Any]], threads: int
    ) -> Callable[[], Any]:
        """The node of ONNX: operands (batch, heads, sequence, head)."""
        causal = int(case.bounds is not None)
        run = self._session("Attention", "", {"is_causal": causal}, arrays, threads)
        return lambda: run()[0]

    def _multi_head(
        self, case: AttentionShape, arrays: Sequence[NDArray[Any]], threads: int
    ) -> Callable[[], Any]:
        """The node of ONNX Runtime: operands (batch, sequence, heads · head), brought there beforehand."""
        flat = [
            np.ascontiguousarray(np.swapaxes(array, 1, 2)).reshape(case.batch, array.shape[2], -1)
            for array in arrays
        ]
        attributes = {"num_heads": case.heads, "unidirectional": int(case.bounds is not None)}
        run = self._session("MultiHeadAttention", "com.microsoft", attributes, flat, threads)
        shape = (case.batch, case.queries, case.heads, case.head_dim)
        return lambda: np.swapaxes(run()[0].reshape(shape), 1, 2)

    def _session(
        self,
        node: str,
        domain: str,
        attributes: dict[str, int],
        arrays: Sequence[NDArray[Any]],
        threads: int,
    ) -> Callable[[], Any]:
        """A model of one node, and a call on three arrays."""
        onnxruntime, onnx = import_module(self.package), import_module("onnx")
        make, kind = onnx.helper, onnx.TensorProto.FLOAT
        graph = make.make_graph(
            [make.make_node(node, ["q", "k", "v"], ["y"], domain=domain, **attributes)],
            "attention",
            [
                make.make_tensor_value_info(name, kind, array.shape)
                for name, array in zip("qkv", arrays, strict=True)
            ],
            [make.make_tensor_value_info("y", kind, None)],
        )
        opsets = [make.make_opsetid("", ONNX_OPSET), make.make_opsetid("com.microsoft", 1)]
        model = make.make_model(graph, opset_imports=opsets, ir_version=ONNX_IR)
        session = onnx_session(onnxruntime, model.SerializeToString(), threads)
        feeds = {
            name: onnxruntime.OrtValue.ortvalue_from_numpy(array)
            for name, array in zip("qkv", arrays, strict=True)
        }
        return lambda: [value.numpy() for value in session.run_with_ort_values(None, feeds)]


#: The first operator set that has `Attention`, and the version of the format that came with it.
ONNX_OPSET, ONNX_IR = 23, 10


def _require(system: str, case: AttentionShape, dtypes: Sequence[str]) -> None:
    if case.dtype not in dtypes:
        raise UnsupportedDtype(dtype=f"{case.dtype} attention of {system}", supported=", ".join(dtypes))


#: Whom tilewright is compared with. A new peer is a row here.
ATTENTION_PEERS: tuple[AttentionSystem, ...] = (
    NumPyAttention(),
    TorchAttention(),
    OnnxRuntimeAttention(),
    TilewrightAttention("tilewright-unfused", strategy="unfused"),
)
ATTENTION_SYSTEMS: tuple[AttentionSystem, ...] = (*ATTENTION_PEERS, TilewrightAttention())


def default_attention_peers(dtype: str) -> tuple[str, ...]:
    """torch where it is installed; else NumPy, where it has the type.

    >>> "tilewright" in default_attention_peers("f32")
    False
    """
    if find_spec("torch") is not None:
        return ("torch",)
    return ("numpy",) if dtype in ("f32", "f64") else ()
