"""Errors about the arrays, scalars and `out` of a call."""

from __future__ import annotations

from tilewright.errors.base import TilewrightError


class BatchMismatch(TilewrightError, ValueError):
    """The batch axes of two operands do not broadcast."""

    message = (
        "{function}: batch axes {a} of a and {b} of b do not broadcast; "
        "axes before the last two must be equal, 1 or missing"
    )


class ScalarOperand(TilewrightError, ValueError):
    """An operand has no axes."""

    message = "matmul: operand {name} has 0 dimensions, needs at least 1; use numpy.multiply for scalars"


class OutShape(TilewrightError, ValueError):
    """`out` has another shape than the result."""

    message = "out has shape {found}, the result has shape {required}; pass out of that shape"


class OutDtype(TilewrightError, TypeError):
    """`out` cannot hold the result without an unsafe cast."""

    message = (
        "out has dtype {found}, which cannot hold a {required} result under {casting!r} "
        "casting; pass out of dtype {required}, or to matmul dtype= to choose the result type"
    )

    def __init__(self, *, casting: str = "same_kind", **fields: object) -> None:
        super().__init__(casting=casting, **fields)


class OutReadOnly(TilewrightError, ValueError):
    """`out` is not writable."""

    message = "out is read-only; pass a writable array (out.copy(), or out.flags.writeable = True)"


class OutCount(TilewrightError, ValueError):
    """`out` is a tuple that does not hold exactly one array."""

    message = "{function}: out is a tuple of {found}, must be an array or a tuple of one"


class OutNotArray(TilewrightError, TypeError):
    """`out` is not a NumPy array."""

    message = "out is {found}, must be a numpy.ndarray"


class MissingOut(TilewrightError, ValueError):
    """beta is not 0 but there is no C to read."""

    message = "{function}: beta is {beta}, which adds to out, but no out is given; pass out= or beta=0"


class InvalidScalar(TilewrightError, TypeError):
    """alpha or beta is not a number that the element type takes."""

    message = "{name} is {found}, must be {required}"


class InvalidOperand(TilewrightError, ValueError):
    """An operand that NumPy cannot make an array of."""

    message = "operand {name} is not a rectangular array of numbers: {reason}"


class MaskedOperand(TilewrightError, TypeError):
    """An operand or `out` is a masked array."""

    message = (
        "{name} is a masked array, and masks are not looked at here; pass x.filled(0) where masked elements "
        "add nothing to sums, or x.data for the values behind the mask"
    )


class ForeignArray(TilewrightError, TypeError):
    """An array of a library that overrides NumPy's functions."""

    message = (
        "{name} is of type {kind}, whose library has its own functions on such arrays; convert it first, by "
        "numpy.asarray or the library's own way of bringing it into this process's memory"
    )


class ForeignKeyword(TilewrightError, TypeError):
    """A call that is left to the library of an operand has a keyword that NumPy's function lacks."""

    message = (
        "{function}: {name} is given, but the call belongs to the library of {kind}, an operand, which takes "
        "what numpy.{function} takes; convert the operand by numpy.asarray, or leave {name} out"
    )


class NoUfuncs(TilewrightError, TypeError):
    """An operand says that universal functions do not take it."""

    message = (
        "{function}: an operand of type {kind} does not support universal functions (its __array_ufunc__ is "
        "None); use the functions of its library, or convert it by numpy.asarray"
    )


class UnsafeCast(TilewrightError, TypeError):
    """The inputs cannot be cast to the requested dtype."""

    message = (
        "matmul: operand {name} has dtype {found}, which does not cast to {required} under "
        "{casting!r} casting; convert it with .astype({required!r}) if that is meant"
    )

    def __init__(self, *, casting: str = "same_kind", **fields: object) -> None:
        super().__init__(casting=casting, **fields)


class UnsupportedDtype(TilewrightError, TypeError):
    """No kernel for an element type."""

    message = "dtype {dtype} has no kernel; supported: {supported}; convert the operands with .astype"


class NoCommonDtype(UnsupportedDtype):
    """Operands of types that NumPy promotes to no common one."""

    message = (
        "{found} have no common dtype; pass dtype={wanted} where the function takes it, or convert an "
        "operand with .astype"
    )


class UnsupportedArgument(TilewrightError, NotImplementedError):
    """A documented argument that this version does not carry out."""

    message = "matmul: argument {name}={value} is not supported by this version; {remedy}"


class OutOverlapsItself(TilewrightError, ValueError):
    """Several elements of `out` stand in one place."""

    message = (
        "out has shape {shape} and strides {strides}, which put several elements in one place; "
        "pass an array of memory of its own (numpy.empty)"
    )
