"""A backend of einops for NumPy's arrays.

einops chooses its backend by the type of an array, and keeps the choice in a table. It has one backend for a
type, so this one takes the place of NumPy's: all that it does not have is NumPy's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tilewright.errors import PackageMissing
from tilewright.ops.einsum.public import einsum

try:
    from einops import _backends as backends
except ImportError as error:
    raise PackageMissing(
        purpose="einops on Tilewright", package="einops", install="'tilewright[einops]'"
    ) from error


class TilewrightBackend(backends.NumpyBackend):
    """NumPy's backend with another `einsum`."""

    framework_name = "tilewright"

    def is_appropriate_type(self, tensor: Any) -> bool:  # noqa: ARG002 - as einops calls it
        """Nothing by itself: `enable` chooses it."""
        return False

    def einsum(self, pattern: str, *tensors: Any) -> Any:
        """The contraction of a pattern, in which axes are letters already."""
        return einsum(pattern, *tensors)


def enable() -> None:
    """Makes `einops.einsum` and layers of einops multiply NumPy's arrays here, in the whole process.

    Examples
    --------
    >>> import einops, numpy as np
    >>> enable()
    >>> einops.einsum(np.ones((2, 3)), np.ones((4, 3)), "row k, column k -> row column").shape
    (2, 4)
    >>> disable()
    """
    backends._type2backend[np.ndarray] = TilewrightBackend()


def disable() -> None:
    """Gives NumPy's arrays back to the backend of NumPy."""
    if isinstance(backends._type2backend.get(np.ndarray), TilewrightBackend):
        del backends._type2backend[np.ndarray]


@contextmanager
def enabled() -> Iterator[None]:
    """`enable` for the duration of a block.

    >>> with enabled():
    ...     pass
    """
    enable()
    try:
        yield
    finally:
        disable()
