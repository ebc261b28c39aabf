"""Weights of modules packed once, and again when their tensors change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from tilewright.calls.exchange import exporter_of


def array_of(tensor: torch.Tensor) -> Any:
    """The NumPy view of a tensor, whether or not it requires grad."""
    plain = tensor.detach()
    exporter = exporter_of(plain)
    assert exporter is not None
    return exporter.view(plain)


class _State(NamedTuple):
    """Tensors as something was made of them.

    Attributes
    ----------
    tensors, versions, addresses : which they are, how often they had been written, and where.
    arrays : their memory, which is held so that no other tensor gets its address.
    """

    tensors: tuple[torch.Tensor, ...]
    versions: list[int]
    addresses: list[int]
    arrays: list[Any]

    def holds(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Return whether they are these tensors, unchanged."""
        return (
            all(a is b for a, b in zip(tensors, self.tensors, strict=True))
            and [one._version for one in tensors] == self.versions
            and [one.data_ptr() for one in tensors] == self.addresses
        )


class Packed:
    """Something that is made of the arrays of tensors, and made again when these have changed.

    A copy of the owner, or what pickle stores, makes it anew.
    """

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make
        self._current: tuple[_State, Any] | None = None

    def of(self, *tensors: torch.Tensor) -> Any:
        """What is made of these tensors: in every call of those of inference mode, which count no changes."""
        current = self._current
        if current is not None and current[0].holds(tensors):
            return current[1]
        arrays = [*map(array_of, tensors)]
        made = self._make(*arrays)
        if not any(one.is_inference() for one in tensors):
            versions, addresses = [one._version for one in tensors], [one.data_ptr() for one in tensors]
            self._current = _State(tensors, versions, addresses, arrays), made
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Packed, (self._make,)
