"""Errors about files of weights and the layouts of quantised weights in them."""

from __future__ import annotations

from tilewright.errors.base import TilewrightError


class WeightFileNotFound(TilewrightError, OSError):
    """A file of weights is missing or unreadable."""

    message = "cannot read the weights {path}: {reason}"


class WeightFileDamaged(TilewrightError, ValueError):
    """A file is not of the expected format, or is corrupt."""

    message = "{path} is not a {format} file, or is corrupt: {reason}; download or convert it again"


class WeightFileTruncated(TilewrightError, ValueError):
    """A file of weights ends too early."""

    message = "{path} is truncated: it has {found} bytes, {what} needs {required}; download it again"


class UnknownTensor(TilewrightError, KeyError):
    """A file of weights has no tensor of a name."""

    message = "{path} has no tensor {name}; the nearest names are {nearest}"

    def __str__(self) -> str:
        """The message; `KeyError` would quote it."""
        return str(self.args[0])


class TensorTypeUnsupported(TilewrightError, TypeError):
    """The element type of a stored tensor cannot be read."""

    message = "tensor {name} of {path} has elements of type {found}, which cannot be read; readable: {known}"


class LayoutMismatch(TilewrightError, ValueError):
    """The arrays of a quantised weight do not fit together."""

    message = "{layout}: {name} has {found}, must have {required}"


class FractionalZeros(TilewrightError, ValueError):
    """Zero points of a quantised weight are not integers that packed elements can have."""

    message = (
        "zero points are fractions, or far from the elements; those of packed elements of {bits} bits are "
        "integers among the elements; {remedy}"
    )


class InputsReordered(TilewrightError, ValueError):
    """A quantised weight has its rows in another order than the inputs."""

    message = (
        "the {depth} rows of the weight are in the order of their groups (g_idx), not of the inputs; call "
        "pack(reordered=True) and multiply x[..., weight.order], or pack weight.dequantized()"
    )
