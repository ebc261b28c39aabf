"""`Graph`: what users build a model with."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from tilewright.errors import GraphInput, GraphOperand, GraphShape, GraphWithoutOutput, shown
from tilewright.graph.arguments import (
    check_activation,
    check_axes,
    check_axis,
    check_beside,
    check_constant,
    check_shape,
    check_values,
)
from tilewright.graph.compiled import CompiledGraph, compile_network
from tilewright.graph.drawing import Shown, draw, graph_text
from tilewright.graph.dtypes import graph_dtype
from tilewright.graph.network import Network, check_written, without_dead
from tilewright.graph.nodes.attention import BESIDE, AttentionNode
from tilewright.graph.nodes.base import Node, ValueType
from tilewright.graph.nodes.caches import APPEND_BESIDE, AppendNode
from tilewright.graph.nodes.elementwise import (
    BINARY,
    UNARY,
    BinaryNode,
    CastNode,
    GatedNode,
    UnaryNode,
    WhereNode,
)
from tilewright.graph.nodes.movement import (
    ConcatenateNode,
    ExpandNode,
    ReshapeNode,
    SliceNode,
    TakeNode,
    TransposeNode,
)
from tilewright.graph.nodes.products import EinsumNode, LinearNode, MatmulNode
from tilewright.graph.nodes.rows import REDUCTIONS, NormNode, ReduceNode, SoftmaxNode
from tilewright.graph.nodes.sequences import EmbeddingNode, RotaryNode
from tilewright.graph.nodes.sources import ConstantNode, InputNode
from tilewright.graph.sizes import SizeLike, product, quotient, shown_shape
from tilewright.graph.slicing import read_index, result_shape
from tilewright.graph.value import Value, is_number, typed_alike
from tilewright.ops.attention.bounds import Bounds, Causal, parse_causal
from tilewright.ops.packing.matrix import PackedMatrix
from tilewright.spec.arguments import check_flag, check_text, check_word, parse_choice, real_number
from tilewright.spec.epilogue import ACTIVATIONS
from tilewright.spec.functions import UnaryOp
from tilewright.typing import ActivationName, AttentionLayoutName

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from tilewright.graph.nodes.rows import NormName, ReductionName
    from tilewright.spec.dtype import DType
    from tilewright.typing import CausalName, ElementType


class Graph(Shown):
    """A model: nodes on inputs and weights, built once, compiled once, and run as one call.

    Sizes of inputs are integers or names; a name is the same size wherever it occurs, and one compiled graph
    serves all values of it. Every method checks its operands' types and shapes at once.

    Raises
    ------
    GraphShape, GraphDtype, GraphOperand : by every method, for operands that do not fit.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> g = tw.Graph()
    >>> x = g.input("x", shape=("batch", 3))
    >>> y = g.linear(x, np.eye(3, dtype=np.float32), np.ones(3, np.float32), activation="relu")
    >>> g.output(y)
    >>> run = g.compile()
    >>> run(np.full((2, 3), 2, np.float32))
    array([[3., 3., 3.],
           [3., 3., 3.]], dtype=float32)
    """

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._types: list[ValueType] = []
        self._outputs: list[tuple[str, int]] = []
        self._constants: dict[int, Value] = {}

    # --- inputs and results ---------------------------------------------------------------------------

    def input(
        self, name: str, dtype: DType | ElementType | DTypeLike = "f32", shape: Sequence[SizeLike] = ()
    ) -> Value:
        """An array that every call gives.

        Parameters
        ----------
        name : how a call may name it; inputs may also be given in the order of their declaration.
        dtype : its element type, or "bool".
        shape : sizes, each an integer, a name, or an expression of the sizes of other values.

        Raises
        ------
        GraphInput, GraphShape : a name that exists; a size that is neither an integer nor a name.
        """
        label = check_text(name, "name")
        if any(isinstance(node, InputNode) and node.label == label for node in self._nodes):
            raise GraphInput(name=label, reason="the graph has an input of this name")
        sizes = check_shape(f"input {label}", shape)
        for size in sizes:
            if size.constant is not None and size.constant < 0:
                raise GraphInput(name=label, reason=f"size {size} is negative")
        return self._add(InputNode((), label, graph_dtype(dtype), sizes))

    def constant(self, value: Any, name: str = "") -> Value:
        """An array, a number or a `PackedMatrix` as a value of the graph; it must not change afterwards."""
        held, label = check_constant("constant", "value", value), check_text(name, "name")
        known = self._constants.get(id(held))
        if known is None:
            known = self._add(ConstantNode((), held, label))
            self._constants[id(held)] = known
        return known

    def output(self, value: Value, name: str | None = None) -> None:
        """Name a result; a call returns all of them in this order, one alone as it is."""
        at = self._at(value, "output", "value")
        label = f"output{len(self._outputs)}" if name is None else check_text(name, "name")
        self._outputs.append((label, at))

    @property
    def network(self) -> Network:
        """The immutable form of what has been built: nodes that no output depends on are left out.

        Raises
        ------
        GraphWithoutOutput
        """
        if not self._outputs:
            raise GraphWithoutOutput
        return without_dead(Network(tuple(self._nodes), tuple(self._outputs)))

    def __repr__(self) -> str:
        return graph_text("Graph", self._nodes, self._types, self._outputs)

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """What Dask names tasks by: the nodes and the constants."""
        network = self.network
        constants = (node.value for node in network.nodes if isinstance(node, ConstantNode))
        return type(self).__name__, str(network), *constants

    def compile(self, *, precision: str = "f32", calibration: Any = None) -> CompiledGraph:
        """The graph as one function; see `CompiledGraph`.

        Parameters
        ----------
        precision : element type of weights and products: "f32" (as they are), "bf16", "i8-weights",
            "i4-weights" or "i8-dynamic"; see docs/reference/weights.md.
        calibration : sample calls for the last three: a list of tuples of inputs, of dicts of inputs by
            name, or of arrays where there is one input. The graph runs them in float32; weights are then
            rounded, or columns scaled, for what its layers were multiplied with.
        """
        return compile_network(self.network, precision, calibration)

    def draw(self, path: str | os.PathLike[str] | None = None) -> str:
        """The graph as a picture in SVG, as it was built; `CompiledGraph.draw` shows what runs.

        Parameters
        ----------
        path : a file that the picture is written to.

        Raises
        ------
        GraphWithoutOutput, InvalidFileName, GraphNotWritable
        """
        return draw(self.network, path)

    # --- products -------------------------------------------------------------------------------------

    def linear(
        self,
        x: Any,
        weight: Any,
        bias: Any = None,
        activation: ActivationName | None = None,
        residual: Any = None,
    ) -> Value:
        """activation(x @ weight.T + bias) + residual; the weight is (out, in), or a `PackedMatrix`."""
        operands = [x, weight, *(one for one in (bias, residual) if one is not None)]
        return self._node(
            LinearNode,
            operands,
            activation=check_activation(activation),
            bias=bias is not None,
            residual=residual is not None,
            by_columns=isinstance(weight, PackedMatrix),
        )

    def matmul(
        self, a: Any, b: Any, *, alpha: float = 1.0, activation: ActivationName | None = None
    ) -> Value:
        """alpha · a @ b, then an activation; batch axes broadcast."""
        factor = real_number(alpha, "alpha")
        return self._node(MatmulNode, [a, b], alpha=factor, activation=check_activation(activation))

    def einsum(self, subscripts: str, *operands: Any) -> Value:
        """`numpy.einsum` without an ellipsis."""
        text = check_text(subscripts, "subscripts").replace(" ", "")
        given, arrow, result = text.partition("->")
        if not arrow:
            labels = given.replace(",", "")
            result = "".join(sorted(one for one in set(labels) if labels.count(one) == 1))
        return self._node(EinsumNode, operands, subscripts=f"{given}->{result}")

    def attention(
        self,
        q: Any,
        k: Any,
        v: Any,
        *,
        mask: Any = None,
        causal: bool | CausalName = False,
        scale: float | None = None,
        window: tuple[int | None, int | None] | None = None,
        softcap: float | None = None,
        layout: AttentionLayoutName = "bhsd",
        **beside: Any,
    ) -> Value:
        """softmax(q · kᵀ · scale + mask) · v; see `tilewright.attention`.

        Parameters
        ----------
        beside : "q_lengths", "kv_lengths", "cu_seqlens_q", "cu_seqlens_k", "q_offset", "sinks",
            "alibi_slopes", "block_table", "key_scales" or "value_scales", as of `tilewright.attention`.
        """
        kind, bounds = parse_causal(causal), Bounds.parse(causal, window)
        given = check_beside("attention", {"mask": mask, **beside}, BESIDE)
        return self._node(
            AttentionNode,
            [q, k, v, *given.values()],
            beside=tuple(given),
            causal="upper_left" if kind is Causal.UPPER_LEFT else kind is not None,
            scale=None if scale is None else real_number(scale, "scale"),
            window=None if window is None else (bounds.left, bounds.right),
            softcap=None if softcap is None else real_number(softcap, "softcap"),
            layout=check_word(layout, "layout", get_args(AttentionLayoutName)),
        )

    def append_kv(
        self,
        k_cache: Value,
        v_cache: Value,
        k: Any,
        v: Any,
        kv_lengths: Any,
        *,
        layout: AttentionLayoutName = "bhsd",
        **beside: Any,
    ) -> Value:
        """Write keys and values behind those of caches, which are inputs; the new lengths.

        Attention over the caches takes these lengths as `kv_lengths`, and so runs after it. The arrays that a
        call gives for the caches are changed. See `tilewright.append_kv`.

        Parameters
        ----------
        beside : "new_lengths", "block_table", "key_scales" or "value_scales", as of `tilewright.append_kv`.
        """
        given = check_beside("append_kv", beside, APPEND_BESIDE)
        word = check_word(layout, "layout", get_args(AttentionLayoutName))
        operands = [k_cache, v_cache, k, v, kv_lengths, *given.values()]
        return self._node(AppendNode, operands, beside=tuple(given), layout=word)

    # --- rows and elements ----------------------------------------------------------------------------

    def softmax(self, x: Any, axis: int | tuple[int, ...] = -1) -> Value:
        """e^x / Σ e^x along an axis."""
        return self._node(SoftmaxNode, [x], axes=check_axes("softmax", axis))

    def log_softmax(self, x: Any, axis: int | tuple[int, ...] = -1) -> Value:
        """The logarithm of `softmax`."""
        return self._node(SoftmaxNode, [x], axes=check_axes("softmax", axis), log=True)

    def layer_norm(
        self,
        x: Any,
        weight: Any = None,
        bias: Any = None,
        axis: int | tuple[int, ...] = -1,
        eps: float = 1e-5,
    ) -> Value:
        """(x - mean) / √(variance + eps) · weight + bias along the last axes."""
        return self._norm("layer", [x, weight, bias], axis, eps)

    def rms_norm(
        self, x: Any, weight: Any = None, axis: int | tuple[int, ...] = -1, eps: float = 1e-5
    ) -> Value:
        """x / √(mean of squares + eps) · weight along the last axes."""
        return self._norm("rms", [x, weight, None], axis, eps)

    def _norm(self, kind: NormName, operands: list[Any], axis: int | tuple[int, ...], eps: float) -> Value:
        _, weight, bias = operands
        given = [one for one in operands if one is not None]
        flags = {"weight": weight is not None, "bias": bias is not None}
        options = {"axes": check_axes(f"{kind}_norm", axis), "eps": real_number(eps, "eps")}
        return self._node(NormNode, given, kind=kind, **options, **flags)

    def reduce(
        self,
        function: ReductionName,
        x: Any,
        axis: int | tuple[int, ...] | None = None,
        *,
        keepdims: bool = False,
    ) -> Value:
        """A reduction by name ("sum", "mean", "max", "min", "prod") along axes; None: along all."""
        value = self._value(x, "reduce", "x")
        axes = tuple(range(value.ndim)) if axis is None else check_axes("reduce", axis)
        name = check_word(function, "function", REDUCTIONS)
        return self._node(
            ReduceNode, [value], function=name, axes=axes, keepdims=check_flag(keepdims, "keepdims")
        )

    def unary(self, function: str, x: Any) -> Value:
        """A function of each element by name, as "sqrt", "gelu" or "logical_not"."""
        return self._node(UnaryNode, [x], function=check_word(function, "function", UNARY))

    def relu(self, x: Any) -> Value:
        """max(x, 0)."""
        return self.unary("relu", x)

    def gelu(self, x: Any) -> Value:
        """x · Φ(x), with the error function."""
        return self.unary("gelu", x)

    def silu(self, x: Any) -> Value:
        """x · sigmoid(x)."""
        return self.unary("silu", x)

    def sigmoid(self, x: Any) -> Value:
        """1 / (1 + e^-x)."""
        return self.unary("sigmoid", x)

    def tanh(self, x: Any) -> Value:
        """The hyperbolic tangent."""
        return self.unary("tanh", x)

    def exp(self, x: Any) -> Value:
        """e^x."""
        return self.unary("exp", x)

    def binary(self, function: str, a: Any, b: Any) -> Value:
        """A function of NumPy's of two operands by name, as "add", "maximum" or "less".

        A number takes the type of the other operand, as NumPy's do.
        """
        return self._node(BinaryNode, typed_alike(a, b), function=check_word(function, "function", BINARY))

    def gated(self, x: Any, gate: Any, activation: ActivationName = "silu") -> Value:
        """x · activation(gate), as of SwiGLU and GeGLU; see `tilewright.gated`."""
        name = parse_choice(UnaryOp, activation, "activation", ACTIVATIONS).value
        return self._node(GatedNode, [x, gate], activation=name)

    def rotary(
        self,
        x: Any,
        cos: Any,
        sin: Any,
        positions: Any = None,
        *,
        interleaved: bool = False,
        layout: AttentionLayoutName = "bhsd",
    ) -> Value:
        """Queries or keys with rotary positions; see `tilewright.rotary` and `rotary_tables`."""
        operands = [x, cos, sin, *(() if positions is None else (positions,))]
        word = check_word(layout, "layout", get_args(AttentionLayoutName))
        return self._node(
            RotaryNode, operands, interleaved=check_flag(interleaved, "interleaved"), layout=word
        )

    def where(self, condition: Any, a: Any, b: Any) -> Value:
        """a where the condition holds, else b; all broadcast."""
        return self._node(WhereNode, [condition, *typed_alike(a, b)])

    def cast(self, x: Any, dtype: DType | ElementType | DTypeLike) -> Value:
        """x in another element type."""
        value, wanted = self._value(x, "cast", "x"), graph_dtype(dtype)
        return value if value.dtype == wanted else self._node(CastNode, [value], dtype=wanted)

    # --- shapes ---------------------------------------------------------------------------------------

    def reshape(self, x: Any, shape: Sequence[SizeLike]) -> Value:
        """The elements of x in row-major order in another shape; one size may be -1."""
        value = self._value(x, "reshape", "x")
        wanted = list(check_shape("reshape", shape))
        unknown = [at for at, size in enumerate(wanted) if size.constant == -1]
        if unknown:
            rest = product([size for at, size in enumerate(wanted) if at != unknown[0]])
            found = quotient(product(value.shape), rest) if len(unknown) == 1 else None
            if found is None:
                reason = f"{shown_shape(value.shape)} is no multiple of {shown_shape(tuple(wanted))}"
                raise GraphShape(node="reshape", reason=reason)
            wanted[unknown[0]] = found
        return (
            value if tuple(wanted) == value.shape else self._node(ReshapeNode, [value], shape=tuple(wanted))
        )

    def transpose(self, x: Any, axes: Sequence[int] | None = None) -> Value:
        """The axes of x in another order; by default reversed."""
        value = self._value(x, "transpose", "x")
        order = tuple(range(value.ndim))[::-1] if axes is None else check_axes("transpose", axes)
        if all(-value.ndim <= axis < value.ndim for axis in order):
            order = tuple(axis % value.ndim for axis in order)
        return self._node(TransposeNode, [value], axes=order)

    def expand(self, x: Any, shape: Sequence[SizeLike]) -> Value:
        """x broadcast to a shape."""
        value, wanted = self._value(x, "expand", "x"), check_shape("expand", shape)
        return value if value.shape == wanted else self._node(ExpandNode, [value], shape=wanted)

    def concatenate(self, values: Sequence[Any], axis: int = 0) -> Value:
        """Values one behind the other along an axis."""
        given = check_values("concatenate", values)
        return self._node(ConcatenateNode, given, axis_=check_axis("concatenate", axis))

    def take(self, x: Any, indices: Any, axis: int = 0) -> Value:
        """Elements of x at indices along an axis."""
        return self._node(TakeNode, [x, indices], axis_=check_axis("take", axis))

    def embedding(self, table: Any, indices: Any) -> Value:
        """The rows of a table at indices from 0 on, which every run checks; see `tilewright.embedding`."""
        return self._node(EmbeddingNode, [table, indices])

    def slice(self, x: Any, index: Any) -> Value:
        """NumPy's basic indexing: integers, slices, None and an ellipsis. Bounds may be sizes."""
        value = self._value(x, "slice", "x")
        found = read_index(index, value.shape)
        for cut in found.cuts:
            options = {"axis_": cut.axis, "start": cut.start, "stop": cut.stop, "step": cut.step}
            value = self._node(SliceNode, [value], **options)
        return self.reshape(value, result_shape(found, value.shape))

    # --- nodes ----------------------------------------------------------------------------------------

    def _node(self, made: type[Node], operands: Sequence[Any], **options: Any) -> Value:
        places = tuple(
            self._at(one, made.__name__.removesuffix("Node").lower(), str(number))
            for number, one in enumerate(operands)
        )
        return self._add(made(places, **options))

    def _add(self, node: Node) -> Value:
        kind = node.infer([self._types[operand] for operand in node.operands])
        for place in node.writes():
            check_written(node, place, self._nodes[node.operands[place]])
        self._nodes.append(node)
        self._types.append(kind)
        return Value(self, len(self._nodes) - 1, kind)

    def _value(self, given: Any, node: str, operand: str) -> Value:
        if isinstance(given, Value):
            if given.graph is not self:
                raise GraphOperand(node=node, operand=operand, found="a value of another graph")
            return given
        if isinstance(given, (PackedMatrix, np.ndarray, np.generic)) or is_number(given):
            check_constant(node, operand, given)
            return self.constant(given)
        raise GraphOperand(node=node, operand=operand, found=shown(given))

    def _at(self, given: Any, node: str, operand: str) -> int:
        return self._value(given, node, operand).at
