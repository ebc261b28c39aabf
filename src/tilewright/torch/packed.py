"""Weights of modules packed once, and again when their tensors change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from tilewright.calls.exchange import exporter_of


def array_of(tensor: torch.Tensor) -> Any:
    """The NumPy view of a tensor, whether or not it requires grad."""
    plain = tensor.detach()
    exporter = exporter_of(plain)
    assert exporter is not None
    return exporter.view(plain)


class _Made(NamedTuple):
    """Something made of a tensor.

    Attributes
    ----------
    tensor, version, address : which it is, how often it had been written, and where.
    array : its memory, which is held so that no other tensor gets its address.
    value : what was made.
    """

    tensor: torch.Tensor
    version: int
    address: int
    array: Any
    value: Any


class Packed:
    """Something that is made of the array of a tensor, and made again when the tensor has changed.

    A copy of the owner, or what pickle stores, makes it anew.
    """

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make = make
        self._current: _Made | None = None

    def of(self, tensor: torch.Tensor) -> Any:
        """What is made of a tensor: in every call of one of inference mode, which counts no changes."""
        current = self._current
        if (
            current is not None
            and current.tensor is tensor
            and current.version == tensor._version
            and current.address == tensor.data_ptr()
        ):
            return current.value
        array = array_of(tensor)
        made = self._make(array)
        if not tensor.is_inference():
            self._current = _Made(tensor, tensor._version, tensor.data_ptr(), array, made)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Packed, (self._make,)
