"""Arguments of a graph's methods, checked before a node is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.errors import GraphDtype, GraphOperand, GraphShape, shown
from tilewright.graph.sizes import Shape, size_of
from tilewright.loops.nests.polynomial import Polynomial
from tilewright.ops.packing.matrix import PackedMatrix
from tilewright.spec.arguments import (
    MAX_SIZE,
    array_of,
    as_integer,
    as_integers,
    as_items,
    as_text,
    parse_choice,
)
from tilewright.spec.epilogue import ACTIVATIONS
from tilewright.spec.functions import UnaryOp
from tilewright.typing import ActivationName


def check_axes(node: str, axis: object) -> tuple[int, ...]:
    """One axis or several.

    Raises
    ------
    GraphShape

    >>> check_axes("softmax", -1), check_axes("mean", [0, 1])
    ((-1,), (0, 1))
    """
    found = as_integers(axis)
    if found is None or any(abs(one) > MAX_SIZE for one in found):
        raise GraphShape(node=node, reason=f"axis {shown(axis)} is neither an integer nor a tuple of them")
    return found


def check_axis(node: str, axis: object) -> int:
    """One axis.

    Raises
    ------
    GraphShape
    """
    found = check_axes(node, axis)
    if len(found) != 1:
        raise GraphShape(node=node, reason=f"axis {shown(axis)} is no integer")
    return found[0]


def check_length(node: str, value: object) -> Polynomial:
    """A size or a bound: an integer of 64 bits, a name, or an expression of the sizes of other values.

    Raises
    ------
    GraphShape
    """
    if isinstance(value, Polynomial):
        return value
    found = as_text(value) or as_integer(value)
    if found is None or (isinstance(found, int) and abs(found) > MAX_SIZE):
        raise GraphShape(node=node, reason=f"{shown(value)} is neither an integer of 64 bits nor a name")
    return size_of(found)


def check_shape(node: str, shape: object) -> Shape:
    """A shape.

    Raises
    ------
    GraphShape
    """
    items = as_items(shape)
    if items is None:
        raise GraphShape(node=node, reason=f"shape {shown(shape)} is no sequence of sizes")
    return tuple(check_length(node, one) for one in items)


def check_constant(node: str, operand: str, value: object) -> Any:
    """What a graph holds as a constant: a `PackedMatrix`, or an array of truth values or numbers.

    Raises
    ------
    GraphDtype, InvalidOperand
    """
    if isinstance(value, PackedMatrix):
        return value
    array = array_of(value, operand)
    if array.dtype.kind not in "biufc" and not is_extended(array.dtype):
        raise GraphDtype(node=node, operand=operand, found=array.dtype, required="bool or a type of numbers")
    return array


def check_values(node: str, values: object) -> tuple[Any, ...]:
    """Several operands.

    Raises
    ------
    GraphOperand
    """
    found = None if isinstance(values, (np.ndarray, PackedMatrix)) else as_items(values)
    if not found:
        raise GraphOperand(node=node, operand="values", found=shown(values))
    return found


def check_beside(node: str, operands: dict[str, Any], known: Sequence[str]) -> dict[str, Any]:
    """The optional operands that are given, by their names.

    Raises
    ------
    GraphShape
    """
    given = {name: one for name, one in operands.items() if one is not None}
    for name in given:
        if name not in known:
            raise GraphShape(node=node, reason=f"no operand {name!r}; known: {', '.join(known)}")
    return given


def check_activation(name: object) -> ActivationName | None:
    """The activation of a product.

    Raises
    ------
    InvalidChoice
    """
    return None if name is None else parse_choice(UnaryOp, name, "activation", ACTIVATIONS).value


def is_extended(dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype is one of the numbers that NumPy itself has not, as bfloat16."""
    return dtype.kind == "V" and not issubclass(dtype.type, np.void)
