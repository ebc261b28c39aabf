"""Errors about axes and reductions."""

from __future__ import annotations

from numpy.exceptions import AxisError

from tilewright.errors.base import TilewrightError


class OutOtherDtype(TilewrightError, TypeError):
    """The dtype of `out` is not the dtype of the array that is transposed."""

    speaker = "transpose"
    message = (
        "out has dtype {found}, the array has {required}; transpose does not convert: "
        "pass an out of that dtype"
    )


class InvalidAxes(TilewrightError, ValueError):
    """Invalid permutation of axes."""

    speaker = "transpose"
    message = (
        "axes {found} are not a permutation of the {ndim} axes of the array: {reason}; "
        "name each axis from 0 to {ndim} - 1 once, or pass None to reverse them"
    )


class AxisOutOfRange(TilewrightError, AxisError):
    """An axis is out of range."""

    message = "axis {found} is out of range for an array of {ndim} axes; pass integers from -{ndim} to {last}"

    def __init__(self, *, found: int, ndim: int, **fields: object) -> None:
        super().__init__(found=found, ndim=ndim, **fields)
        self.axis, self.ndim = found, ndim
        self.args = (self._text(),)

    def __str__(self) -> str:
        return str(self.args[0])


class CoreAxes(TilewrightError, AxisError):
    """Invalid number of core axes in `axes`."""

    message = "the entry {found} of axes must have length {required}: the axes of a matrix or vector"

    def __init__(self, **fields: object) -> None:
        super().__init__(**fields)
        self.args = (self._text(),)


class AxesCount(TilewrightError, ValueError):
    """`axes` has no entry for some array."""

    message = (
        "axes is a list of {found}, must have an entry for a, for b and for the result, "
        "which may be missing if the result is a scalar"
    )


class EmptyReduction(TilewrightError, ValueError):
    """A maximum or minimum over an empty axis."""

    message = "axes {axes} of an array of shape {shape} are empty; there must be at least one element"


class RepeatedAxis(TilewrightError, ValueError):
    """An axis is repeated."""

    message = "axis {found} is repeated in {axes}; name each axis once"


class InvalidAxis(TilewrightError, TypeError):
    """An axis is not an integer."""

    message = "{name} is {found}, must be {required}"

    def __init__(self, *, name: str = "axis", **fields: object) -> None:
        super().__init__(name=name, **fields)


class NormOperandShape(TilewrightError, ValueError):
    """The shape of a weight or bias is not that of the normalised axes."""

    message = "{name} has shape {found}, must be {required}: the lengths of the normalised axes"


class NegativeEps(TilewrightError, ValueError):
    """Invalid `eps`: negative or not a number."""

    message = "eps is {found}, must be a non-negative number"
