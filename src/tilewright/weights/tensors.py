"""The tensors of weight files: read, and packed, when they are asked for."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any

from tilewright.calls.operands import Array
from tilewright.errors import TensorTypeUnsupported, UnknownTensor, shown
from tilewright.ops.packing.matrix import PackedMatrix
from tilewright.records import dataclass

#: Names that the message about an unknown one offers.
_MOST_OFFERED = 3


@dataclass(frozen=True)
class StoredTensor:
    """One tensor of a file.

    Attributes
    ----------
    name : as the file spells it.
    shape : as NumPy has it, slowest axis first.
    type : the element type, as the format spells it.
    path : the file that it is in.
    array : returns the tensor, read-only.
    packed : returns the matrix that products take, where the tensor is to be packed.
    """

    name: str
    shape: tuple[int, ...]
    type: str
    path: str
    array: Callable[[], Array] = field(repr=False)
    packed: Callable[[], PackedMatrix] | None = field(default=None, repr=False)

    def to_be_packed(self, packed: Callable[[], PackedMatrix]) -> StoredTensor:
        """The same tensor, which its file has as a packed matrix."""
        return replace(self, packed=packed)


class TensorFile(Mapping[str, Array | PackedMatrix]):
    """The tensors of a weight file by name: a read-only mapping to arrays and packed matrices.

    Arrays are views of the memory-mapped file: as long as they live, the file must not be shortened. A packed
    matrix is made when it is asked for first, and kept.

    Attributes
    ----------
    path : the file, or the index of several.
    metadata : what the file says beside its tensors.
    tensors : name, shape and element type of each tensor.
    """

    def __init__(self, path: str, tensors: Mapping[str, StoredTensor], metadata: Mapping[str, Any]) -> None:
        self.path = path
        self.metadata: Mapping[str, Any] = MappingProxyType(dict(metadata))
        self.tensors: Mapping[str, StoredTensor] = MappingProxyType(dict(tensors))
        self._packed: dict[str, PackedMatrix] = {}

    def __getitem__(self, name: str) -> Array | PackedMatrix:
        tensor = self._tensor(name)
        if tensor.packed is None:
            return tensor.array()
        found = self._packed.get(name)
        return self._packed.setdefault(name, tensor.packed()) if found is None else found

    def array(self, name: str) -> Array:
        """A tensor as an array, whether or not the mapping has it packed.

        Raises
        ------
        UnknownTensor, TensorTypeUnsupported
        """
        return self._tensor(name).array()

    def _tensor(self, name: str) -> StoredTensor:
        found = self.tensors.get(name) if isinstance(name, str) else None
        if found is None:
            raise unknown_tensor(self.path, name, self.tensors)
        return found

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self.tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    def __eq__(self, other: object) -> bool:
        return self is other  # the elements of a model are not compared by accident

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        packed = sum(tensor.packed is not None for tensor in self.tensors.values())
        return f"TensorFile({self.path}: {len(self)} tensors, {packed} of them packed)"


def unknown_tensor(path: str, name: object, known: Mapping[str, Any]) -> UnknownTensor:
    """The error of a name that a file does not have."""
    near = difflib.get_close_matches(name, known, _MOST_OFFERED, 0.0) if isinstance(name, str) else []
    return UnknownTensor(path=path, name=shown(name), nearest=", ".join(near or list(known)[:_MOST_OFFERED]))


def unsupported_type(path: str, name: str, found: str, known: Mapping[str, Any]) -> TensorTypeUnsupported:
    """The error of an element type that no array has."""
    return TensorTypeUnsupported(path=path, name=name, found=found, known=", ".join(known))
