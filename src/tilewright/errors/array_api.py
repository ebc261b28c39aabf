"""Errors of `tilewright.array_api`."""

from __future__ import annotations

from tilewright.errors.base import TilewrightError


class NotStandardArray(TilewrightError, TypeError):
    """An operand that is no array."""

    message = (
        "{name} is {found}; must be an array of NumPy or of a library with `__array_namespace__` or DLPack"
    )


class SeveralLibraries(TilewrightError, TypeError):
    """Operands of different libraries."""

    message = (
        "operands are of {libraries}; they must be of one library: convert one of them with `from_dlpack` of "
        "the other's namespace"
    )


class NotNumeric(TilewrightError, TypeError):
    """An operand without a numeric element type."""

    message = "{name} has dtype {found}, must be an integer, a float or complex; convert it with astype"


class MixedKinds(TilewrightError, TypeError):
    """Operands whose types the standard does not promote."""

    message = (
        "the standard has no common type for {a} and {b}; convert one of them with astype (integers and "
        "floats are not mixed, nor uint64 and signed integers)"
    )


class NegativeAxisNeeded(TilewrightError, ValueError):
    """The axis of `vecdot` is not counted from the last one."""

    speaker = "vecdot"
    message = "axis is {found}, must be from -{ndim} to -1: it is counted from the last axis of both operands"


class TooFewAxes(TilewrightError, ValueError):
    """An operand has too few axes."""

    message = "{name} has shape {shape}, needs {required}"
