"""Errors about the axes that a function of arrays is given."""

from __future__ import annotations

from numpy.exceptions import AxisError

from tilewright.errors.base import TilewrightError


class OutOtherDtype(TilewrightError, TypeError):
    """`out` of a move of elements has another dtype."""

    message = (
        "transpose: out has dtype {found}, the array has {required}; elements are moved, not converted: "
        "pass out of that dtype"
    )


class InvalidAxes(TilewrightError, ValueError):
    """The axes of a permutation are not one."""

    message = (
        "transpose: axes {found} do not permute the {ndim} axes of the array: {reason}; "
        "name each axis from 0 to {ndim} - 1 once, or pass None to reverse them"
    )


class AxisOutOfRange(TilewrightError, AxisError):
    """An axis that the array does not have."""

    message = (
        "{function}: axis {found} is not one of an array of {ndim} axes; pass integers from -{ndim} to {last}"
    )

    def __init__(self, *, found: int, ndim: int, **fields: object) -> None:
        super().__init__(found=found, ndim=ndim, **fields)
        self.axis, self.ndim = found, ndim
        self.args = (self._said,)

    def __str__(self) -> str:
        return str(self.args[0])


class CoreAxes(TilewrightError, AxisError):
    """More or fewer axes than the matrices and vectors of a product have."""

    message = "{function}: axes {found} of one array, must be {required}: those of its matrices or vectors"

    def __init__(self, **fields: object) -> None:
        super().__init__(**fields)
        self.args = (self._said,)


class AxesCount(TilewrightError, ValueError):
    """`axes` does not say something of each array."""

    message = (
        "{function}: axes is a list of {found}, must hold those of a, of b and of the result, which may be "
        "missing if it is a number"
    )


class EmptyReduction(TilewrightError, ValueError):
    """There is no largest or smallest of no elements."""

    message = "{function}: no elements along axes {axes} of an array of shape {shape}; pass at least one"


class RepeatedAxis(TilewrightError, ValueError):
    """One axis is named twice."""

    message = "{function}: axis {found} is named twice in {axes}; name each axis once"


class InvalidAxis(TilewrightError, TypeError):
    """An axis that is no integer."""

    message = "{function}: axis is {found}, must be {required}"


class NormOperandShape(TilewrightError, ValueError):
    """A weight or bias that does not have the shape of the axes that are normalised."""

    message = "{function}: {name} has shape {found}, must be {required}: the lengths of the axes normalised"


class NegativeEps(TilewrightError, ValueError):
    """An eps under the root that is negative or no number."""

    message = "{function}: eps is {found}, must be 0 or a positive number"
