"""Errors about files of weights and the layouts of quantised weights in them."""

from __future__ import annotations

from tilewright.errors.base import TilewrightError


class WeightFileNotFound(TilewrightError, OSError):
    """A file of weights is missing or unreadable."""

    message = "cannot read the weights {path}: {reason}"


class WeightFileDamaged(TilewrightError, ValueError):
    """A file is not of the expected format, or is corrupt."""

    message = "{path} is not a {format} file, or is corrupt: {reason}; download or convert it again"


class UnknownTensor(TilewrightError, KeyError):
    """A file of weights has no tensor of a name."""

    message = "{path} has no tensor {name}; the nearest names are {nearest}"

    def __str__(self) -> str:
        """The message; `KeyError` would quote it."""
        return str(self.args[0])


class TensorTypeUnsupported(TilewrightError, TypeError):
    """The element type of a stored tensor cannot be read."""

    message = "tensor {name} of {path} has elements of type {found}, which cannot be read; readable: {known}"
