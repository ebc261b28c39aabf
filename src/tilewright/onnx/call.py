"""One node of a model as operators see it: its inputs, attributes, and what of them has been read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tilewright.calls.operands import Array
from tilewright.graph.value import Value
from tilewright.loops.nests.polynomial import Polynomial
from tilewright.onnx.library import onnx
from tilewright.onnx.model_graph import ModelGraph
from tilewright.onnx.sizes import SizeArray, size_elements
from tilewright.onnx.source import attribute_value
from tilewright.onnx.tensors import tensor_array

#: A value of a model: of the graph, or sizes.
Tensor: TypeAlias = "Value | SizeArray"
#: What an operator computes: one result, or all of them, None for those that it does not have.
Results: TypeAlias = "Tensor | tuple[Tensor | None, ...]"


class UnsupportedNode(NamedTuple):
    """A node that cannot be imported.

    Attributes
    ----------
    needs : inputs of the model whose values must be known when it is loaded.
    known : whether there is such an operator.
    """

    op_type: str
    domain: str
    name: str
    reason: str
    needs: tuple[str, ...] = ()
    known: bool = True


class NotSupported(Exception):
    """The reason why a node cannot be imported."""

    def __init__(self, reason: str, needs: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.reason, self.needs = reason, needs


class NodeCall:
    """A node with its inputs.

    Attributes
    ----------
    operator : its operator's name.
    opset : the version of its operator set.
    wanted : which outputs the model names.
    """

    def __init__(
        self, graph: ModelGraph, node: onnx.NodeProto, opset: int, inputs: Sequence[Tensor | None]
    ) -> None:
        self.graph, self.operator, self.opset = graph, node.op_type, opset
        self.wanted = [bool(name) for name in node.output]
        self._inputs = list(inputs)
        self._attributes = {one.name: one for one in node.attribute}
        self._unread = set(self._attributes)
        self._unseen = {number for number, one in enumerate(inputs) if one is not None}

    # --- inputs ---------------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """Number of inputs, missing ones included."""
        return len(self._inputs)

    def has(self, number: int) -> bool:
        """Whether an input is there."""
        return number < len(self._inputs) and self._inputs[number] is not None

    def tensor(self, number: int) -> Tensor:
        """An input, whatever it is."""
        found = self._inputs[number] if number < len(self._inputs) else None
        if found is None:
            raise NotSupported(f"input {number} is missing")
        self._unseen.discard(number)
        return found

    def value(self, number: int) -> Value:
        """An input as a value of the graph."""
        found = self.tensor(number)
        return self.graph.sizes(found) if isinstance(found, SizeArray) else found

    def optional(self, number: int) -> Value | None:
        """An input as a value of the graph, None where it is missing."""
        return self.value(number) if self.has(number) else None

    def values(self) -> list[Value]:
        """All inputs."""
        return [self.value(number) for number in range(self.count)]

    def elements(self, number: int) -> Array:
        """The elements of an integer input as polynomials in the sizes."""
        found = self.tensor(number)
        if isinstance(found, SizeArray):
            return found.elements
        array = self._array(found, number)
        if array.dtype.kind not in "iub":
            raise NotSupported(f"input {number} has dtype {array.dtype}, must be an integer type")
        return size_elements(array)

    def size_list(self, number: int) -> list[Polynomial]:
        """The elements of an integer input, one or several."""
        return list(self.elements(number).reshape(-1))

    def array(self, number: int) -> Array:
        """An input that must be known when the model is loaded."""
        found = self.tensor(number)
        if isinstance(found, SizeArray):
            known = found.known
            if known is None:
                raise NotSupported(f"input {number} depends on sizes of the inputs, must be constant")
            return known
        return self._array(found, number)

    def _array(self, value: Value, number: int) -> Array:
        known = self.graph.known(value)
        if known is None:
            needs = self.graph.inputs_of(value)
            reason = f"input {number} must be known when the model is loaded"
            if needs:
                reason += f", and depends on {', '.join(needs)} (give it as a constant)"
            raise NotSupported(reason, needs)
        return known

    def integers(self, number: int) -> list[int]:
        """The elements of an integer input that must be known."""
        array = self.array(number)
        if array.dtype.kind not in "iu":
            raise NotSupported(f"input {number} has dtype {array.dtype}, must be an integer type")
        return [int(one) for one in array.reshape(-1)]

    def sizes_of(self, number: int) -> Array | None:
        """The elements of an input that is made of sizes which are not all known, else None."""
        found = self.tensor(number)
        return found.elements if isinstance(found, SizeArray) else None

    def is_integer_known(self, number: int) -> bool:
        """Whether an input is integers that are constants or sizes."""
        found = self.tensor(number)
        if isinstance(found, SizeArray):
            return True
        return found.dtype.kind in "iu" and self.graph.known(found) is not None

    def size_dtype(self) -> np.dtype[Any]:
        """The element type of the first input that is made of sizes."""
        return next(one.dtype for one in self._inputs if isinstance(one, SizeArray))

    @property
    def has_sizes(self) -> bool:
        """Whether an input is made of sizes."""
        return any(isinstance(one, SizeArray) for one in self._inputs)

    # --- attributes -----------------------------------------------------------------------------------

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute, or its default."""
        self._unread.discard(name)
        found = self._attributes.get(name)
        if found is None:
            return default
        value = attribute_value(found)
        kinds = _KINDS.get(type(default))
        if kinds is not None and not isinstance(value, kinds):
            raise NotSupported(f"attribute {name} is no {type(default).__name__}")
        return value

    def given(self, name: str) -> bool:
        """Whether an attribute is there."""
        return name in self._attributes

    def tensor_attribute(self, tensor: Any) -> Array:
        """The array of an attribute that is a tensor."""
        if not isinstance(tensor, onnx.TensorProto):
            raise NotSupported("an attribute is no tensor")
        return tensor_array(tensor, "the model", None)

    def flag(self, name: str, *, default: bool = False) -> bool:
        """An attribute that is 0 or 1."""
        return bool(self.attribute(name, int(default)))

    def integer(self, name: str) -> int:
        """A required attribute that is an integer."""
        found = self.attribute(name)
        if not isinstance(found, int):
            raise NotSupported(f"attribute {name} is missing")
        return found

    def integer_list(self, name: str) -> list[int] | None:
        """An attribute of several integers, None where it is missing."""
        found = self.attribute(name)
        return None if found is None else [int(one) for one in found]

    def ignore(self, *names: str) -> None:
        """Declare that attributes change nothing here."""
        self._unread.difference_update(names)

    def ignore_inputs(self, *numbers: int) -> None:
        """Declare that inputs change nothing here."""
        self._unseen.difference_update(numbers)

    def wants(self, number: int) -> bool:
        """Whether the model uses an output."""
        return number < len(self.wanted) and self.wanted[number]

    # --- results --------------------------------------------------------------------------------------

    def checked(self, results: Results) -> tuple[Tensor | None, ...]:
        """The results, once everything that the model gives has been read.

        Raises
        ------
        NotSupported : an attribute or an input that the operator does not know, or a result it has not.
        """
        if self._unread:
            raise NotSupported(f"attribute {', '.join(sorted(self._unread))} is not supported")
        if self._unseen:
            raise NotSupported(f"input {', '.join(map(str, sorted(self._unseen)))} is not supported")
        found = results if isinstance(results, tuple) else (results,)
        for number, wanted in enumerate(self.wanted):
            if wanted and (number >= len(found) or found[number] is None):
                raise NotSupported(f"output {number} is not supported")
        return found


#: Types of attributes, by the type of their default.
_KINDS: dict[type, tuple[type, ...]] = {int: (int,), float: (int, float), str: (str,)}

Operator: TypeAlias = "Callable[[NodeCall], Results]"


class OperatorTable(dict[tuple[str, str], Operator]):
    """Operators by domain and name."""

    def add(self, *names: str) -> Callable[[Operator], Operator]:
        """Enter a function under names: "Add", or "com.microsoft:FusedMatMul" of another domain."""

        def enter(function: Operator) -> Operator:
            for name in names:
                domain, _, operator = name.rpartition(":")
                self[domain, operator] = function
            return function

        return enter


def is_kind(value: Value, kinds: str) -> bool:
    """Return whether a value's dtype is of one of NumPy's kinds; floats of ml_dtypes count as "f"."""
    kind = "f" if value.dtype.kind == "V" and "float" in value.dtype.name else value.dtype.kind
    return kind in kinds
