"""Chains of linear layers as one problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tilewright.cached import cached_property
from tilewright.errors import InvalidSize, UnsupportedDtype
from tilewright.records import dataclass
from tilewright.spec.arguments import check_flag, check_integer, check_items, parse_choice
from tilewright.spec.constructor import constructor_text
from tilewright.spec.dtype import GEMM_DTYPES, DType, Kind, parse_dtype
from tilewright.spec.epilogue import ACTIVATIONS, Activation, Bias, Epilogue, Step
from tilewright.spec.functions import UnaryOp
from tilewright.spec.problem import Layout, Operand, ProductTypes, exact_dtype
from tilewright.spec.records import set_fields

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tilewright.typing import ActivationName, ElementType

#: Largest size of a layer, so that scratch for a block of rows stays small.
MAX_LAYER = 1 << 20


@dataclass(frozen=True, init=False)
class LinearChain:
    """y = f_L(… f_1(x @ B_1 + bias_1) … @ B_L + bias_L), the weights packed: an MLP, for example.

    Intermediates never leave the tiles of the machine (layouts fused with producers and consumers).

    Parameters
    ----------
    sizes : inputs of the first layer, then the outputs of each.
    activations : one for each layer: "relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh" or None.
    dtype : element type of x, weights, intermediates (each rounded to it) and y: a float.
    bias : whether every layer has one, of the type of the sums.

    Raises
    ------
    InvalidSize, InvalidChoice, UnsupportedDtype

    Examples
    --------
    >>> LinearChain((1024, 4096, 1024), ("gelu", None)).flops_a_row
    16777216
    """

    operation: ClassVar[str] = "chain"
    __repr__ = constructor_text
    sizes: tuple[int, ...]
    activations: tuple[UnaryOp | None, ...]
    dtype: DType
    bias: bool

    def __init__(
        self,
        sizes: Sequence[int],
        activations: Sequence[ActivationName | UnaryOp | None] = (),
        dtype: DType | ElementType = "f32",
        *,
        bias: bool = True,
    ) -> None:
        items = check_items(sizes, "sizes", f"a sequence of integers from 1 to {MAX_LAYER}")
        if len(items) < 2:
            raise InvalidSize(name="sizes", found=items, required="those of at least one layer: (in, out)")
        found = tuple(check_integer(size, "a size of a chain", 1, MAX_LAYER) for size in items)
        words = check_items(activations, "activations", "a sequence of words and None, one a layer")
        given = words or (None,) * (len(found) - 1)
        if len(given) != len(found) - 1:
            raise InvalidSize(name="activations", found=len(given), required=f"{len(found) - 1}, one a layer")
        kind = parse_dtype(dtype, GEMM_DTYPES)
        if kind.kind is not Kind.FLOAT:
            raise UnsupportedDtype(dtype=f"{kind} in a chain", supported="floats")
        set_fields(
            self,
            sizes=found,
            activations=tuple(
                None if name is None else parse_choice(UnaryOp, name, "activation", ACTIVATIONS)
                for name in given
            ),
            dtype=kind,
            bias=check_flag(bias, "bias"),
        )

    @cached_property
    def types(self) -> ProductTypes:
        """The element types of each layer's product."""
        return ProductTypes.parse(self.dtype)

    @property
    def layers(self) -> tuple[tuple[int, int], ...]:
        """Inputs and outputs of each layer."""
        return tuple(zip(self.sizes[:-1], self.sizes[1:], strict=True))

    def epilogue(self, layer: int) -> Epilogue:
        """The epilogue of a layer."""
        steps: list[Step] = [Bias(dtype=self.types.acc)] if self.bias else []
        activation = self.activations[layer]
        return Epilogue(steps if activation is None else [*steps, Activation(activation)])

    @property
    def operands(self) -> tuple[Operand, ...]:
        """x, then the weight of each layer and its bias, then y."""
        found = [Operand("x", None, self.sizes[0], self.dtype, Layout.ROW)]
        for number, (inputs, outputs) in enumerate(self.layers, 1):
            found.append(Operand(f"weight{number}", inputs, outputs, self.dtype, Layout.PACKED))
            if self.bias:
                found.append(Operand(f"bias{number}", 1, outputs, self.types.acc, Layout.ROW))
        return (*found, Operand("y", None, self.sizes[-1], self.dtype, Layout.ROW))

    @property
    def flops_a_row(self) -> int:
        """Operations of the products for one row of x."""
        return sum(2 * inputs * outputs for inputs, outputs in self.layers)

    @property
    def flops(self) -> int | None:
        """None: the number of rows is given at run time."""
        return None

    @property
    def bytes(self) -> int | None:
        """None: the number of rows is given at run time."""
        return None

    def reference(
        self, x: NDArray[Any], weights: Sequence[NDArray[Any]], biases: Sequence[NDArray[Any]] = ()
    ) -> NDArray[Any]:
        """The meaning of the problem in float64; weights are (in, out). Intermediates are not rounded."""
        value = x.astype(exact_dtype(self.types))
        for layer, weight in enumerate(weights):
            value = value @ weight.astype(value.dtype)
            operands = [np.asarray(biases[layer])] if self.bias else []
            epilogue, acc = self.epilogue(layer), self.types.acc
            value = epilogue.reference(value, operands, acc, acc)
        return value
