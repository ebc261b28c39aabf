"""Functions of elements: of one operand, of two that broadcast, a choice between two, conversions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, get_args

import numpy as np

from tilewright.calls.operands import Array
from tilewright.calls.recording import numpy_call
from tilewright.errors import GraphDtype
from tilewright.graph.nodes.base import Node, ValueType, is_float, moved
from tilewright.graph.sizes import Sizes, broadcast
from tilewright.ops.binary.call import prepare_pairs
from tilewright.ops.elementwise.call import convert, prepare_each
from tilewright.records import dataclass
from tilewright.spec.binary_functions import BinaryOp, binary_meaning
from tilewright.spec.functions import UnaryOp, meaning
from tilewright.typing import ActivationName


class ElementFunction(NamedTuple):
    """A function of single elements.

    Attributes
    ----------
    numpy : its meaning; None for those whose meaning `spec.functions` has.
    op : the kernel of floats, where there is one.
    """

    numpy: Callable[..., Any] | None
    op: UnaryOp | None = None


#: Functions of one operand, by name.
UNARY: dict[str, ElementFunction] = {
    "relu": ElementFunction(None, UnaryOp.RELU),
    "gelu": ElementFunction(None, UnaryOp.GELU),
    "gelu_tanh": ElementFunction(None, UnaryOp.GELU_TANH),
    "silu": ElementFunction(None, UnaryOp.SILU),
    "sigmoid": ElementFunction(None, UnaryOp.SIGMOID),
    "erf": ElementFunction(None, UnaryOp.ERF),
    "exp": ElementFunction(np.exp, UnaryOp.EXP),
    "tanh": ElementFunction(np.tanh, UnaryOp.TANH),
    "square": ElementFunction(np.square, UnaryOp.SQUARE),
    "negative": ElementFunction(np.negative, UnaryOp.NEGATE),
    "reciprocal": ElementFunction(np.reciprocal, UnaryOp.RECIPROCAL),
    **{
        name: ElementFunction(getattr(np, name))
        for name in (
            *(
                "sqrt",
                "abs",
                "log",
                "log2",
                "log1p",
                "expm1",
                "exp2",
                "sin",
                "cos",
                "tan",
                "arcsin",
                "arccos",
            ),
            *("arctan", "sinh", "cosh", "arcsinh", "arccosh", "arctanh", "floor", "ceil", "rint", "trunc"),
            *("sign", "isnan", "isinf", "logical_not", "invert"),
        )
    },
}

#: Functions of two operands, by the names of NumPy's.
BINARY: dict[str, Callable[..., Any]] = {
    name: getattr(np, name)
    for name in (
        *("add", "subtract", "multiply", "divide", "floor_divide", "power", "maximum", "minimum"),
        *("fmod", "remainder", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
        *("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "arctan2"),
        *("left_shift", "right_shift"),
    )
}


#: Those of them that have a kernel for floats.
_PAIR_KERNELS: dict[str, BinaryOp] = {op.value: op for op in BinaryOp}


def _unary_meaning(name: str, x: Array) -> Array:
    row = UNARY[name]
    if row.numpy is not None:
        with np.errstate(all="ignore"):
            return np.asarray(row.numpy(x))
    assert row.op is not None
    return meaning(row.op, x).astype(x.dtype if is_float(x.dtype) else np.float64)


@dataclass(frozen=True)
class UnaryNode(Node):
    """f(x), element by element."""

    function: str = "relu"

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """The shape of x, and the type that NumPy's function has."""
        x = types[0]
        self.require(self.function in UNARY, f"no function {self.function!r}")
        return ValueType(_unary_meaning(self.function, np.ones(1, x.dtype)).dtype, x.shape)

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """By NumPy; what NumPy has not, in float64 and rounded once."""
        return _unary_meaning(self.function, arrays[0])

    def run(self, arrays: Sequence[Any], out: Array, sizes: Sizes) -> None:
        """By the kernel of the function, or NumPy's where there is none."""
        row = UNARY[self.function]
        if row.op is not None and is_float(arrays[0].dtype):
            prepare_each(row.op, arrays[0], out).run()
        else:
            assert row.numpy is not None
            numpy_call(row.numpy, arrays[0], out=out, quiet=True)

    def in_place(self) -> tuple[int, ...]:
        """The memory of x."""
        return (0,)


@dataclass(frozen=True)
class BinaryNode(Node):
    """f(a, b) of operands that broadcast."""

    function: str = "add"

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """The shape that both broadcast to, and the type that NumPy's function has."""
        self.require(self.function in BINARY, f"no function {self.function!r}")
        ones = [np.ones(1, one.dtype) for one in types]
        with np.errstate(all="ignore"):
            dtype = np.asarray(BINARY[self.function](*ones)).dtype
        return ValueType(dtype, broadcast(self.function, [one.shape for one in types]))

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """By the function of NumPy."""
        with np.errstate(all="ignore"):
            return np.asarray(BINARY[self.function](*arrays))

    def run(self, arrays: Sequence[Any], out: Array, sizes: Sizes) -> None:
        """By the kernel of the function where floats have one, else NumPy's."""
        op = _PAIR_KERNELS.get(self.function)
        if op is not None and all(one.dtype == out.dtype and is_float(one.dtype) for one in arrays):
            prepare_pairs(op, arrays[0], arrays[1], out).run()
        else:
            numpy_call(BINARY[self.function], *arrays, out=out, quiet=True)

    def in_place(self) -> tuple[int, ...]:
        """The memory of either operand."""
        return (0, 1)


@dataclass(frozen=True)
class GatedNode(Node):
    """x · activation(gate) of operands that broadcast: SwiGLU, GeGLU and their relatives.

    Attributes
    ----------
    operands : x, gate.
    """

    activation: ActivationName = "silu"

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """The shape that both broadcast to, in their one type."""
        x, gate = types
        self.require(self.activation in get_args(ActivationName), f"no activation {self.activation!r}")
        self.require_dtype(x, "x", "f", "a floating-point type")
        if gate.dtype != x.dtype:
            raise GraphDtype(node=self.name, operand="gate", found=gate.dtype, required=x.dtype)
        return ValueType(x.dtype, broadcast(self.name, [x.shape, gate.shape]))

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """In float64, rounded once."""
        x, gate = arrays
        found = binary_meaning(BinaryOp.MULTIPLY, x, gate, UnaryOp(self.activation))
        return found.astype(x.dtype)

    def run(self, arrays: Sequence[Any], out: Array, sizes: Sizes) -> None:
        """By the kernel of `tilewright.gated`."""
        x, gate = arrays
        prepare_pairs(BinaryOp.MULTIPLY, x, gate, out, UnaryOp(self.activation)).run()

    def in_place(self) -> tuple[int, ...]:
        """The memory of either operand."""
        return (0, 1)


@dataclass(frozen=True)
class WhereNode(Node):
    """a where a condition holds, else b; all broadcast."""

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """The shape that all broadcast to."""
        condition, a, b = types
        self.require_dtype(condition, "condition", "b", "bool")
        try:
            dtype = np.result_type(a.dtype, b.dtype)
        except TypeError as error:
            required = f"one that NumPy promotes with {a.dtype}"
            raise GraphDtype(node=self.name, operand="b", found=b.dtype, required=required) from error
        return ValueType(dtype, broadcast(self.name, [one.shape for one in types]))

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """By `numpy.where`."""
        return np.where(*arrays)

    def run(self, arrays: Sequence[Any], out: Array, sizes: Sizes) -> None:
        """A copy of b, over which a is copied where the condition holds."""
        condition, a, b = arrays
        numpy_call(np.copyto, out, b)
        numpy_call(np.copyto, out, a, where=condition)


@dataclass(frozen=True)
class CastNode(Node):
    """x in another element type, as `numpy.ndarray.astype`."""

    dtype: np.dtype[Any] = np.dtype("f4")

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """The shape of x in the other type."""
        return ValueType(self.dtype, types[0].shape)

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """By `astype`."""
        with np.errstate(all="ignore"):
            return arrays[0].astype(self.dtype)

    def run(self, arrays: Sequence[Any], out: Array, sizes: Sizes) -> None:
        """The kernel that converts floats, or NumPy's copy."""
        if convert(arrays[0], out):
            return
        if np.can_cast(arrays[0].dtype, out.dtype, "same_kind"):
            moved(out, arrays[0])
        else:
            numpy_call(np.copyto, out, arrays[0], casting="unsafe", quiet=True)
