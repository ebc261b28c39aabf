"""Errors about the arrays, scalars and `out` of a call."""

from __future__ import annotations

from tilewright.errors.base import TilewrightError


class BatchMismatch(TilewrightError, ValueError):
    """The batch axes of two operands do not broadcast."""

    message = (
        "batch axes {a} of a and {b} of b do not broadcast; "
        "the axes before the last two must be equal, 1 or missing"
    )


class ScalarOperand(TilewrightError, ValueError):
    """An operand is a scalar where a vector or matrix is required."""

    speaker = "matmul"
    message = "operand {name} has 0 dimensions, needs at least 1; use numpy.multiply for scalars"


class PairShapes(TilewrightError, ValueError):
    """The shapes of two operands of an elementwise function do not broadcast."""

    message = "{left} has shape {a} and {right} has shape {b}, which do not broadcast"


class GateHalves(TilewrightError, ValueError):
    """An array without a separate gate has no two halves."""

    speaker = "gated"
    message = (
        "x has shape {found}; without gate its last axis holds the gate and the values, "
        "and must have an even length: pass gate=, or an x of shape (..., 2n)"
    )


class OutShape(TilewrightError, ValueError):
    """The shape of `out` is not the shape of the result."""

    message = "out has shape {found}, the result has shape {required}; pass an out of that shape"


class OutDtype(TilewrightError, TypeError):
    """`out` cannot hold the result without an unsafe cast."""

    message = (
        "out has dtype {found}, which cannot hold a {required} result under {casting!r} "
        "casting; pass an out of dtype {required}, or choose the result type with dtype="
    )

    def __init__(self, *, casting: str = "same_kind", **fields: object) -> None:
        super().__init__(casting=casting, **fields)


class OutReadOnly(TilewrightError, ValueError):
    """`out` is not writable."""

    message = "out is read-only; pass a writable array (out.copy(), or out.flags.writeable = True)"


class OutCount(TilewrightError, ValueError):
    """`out` is a tuple that does not hold exactly one array."""

    message = "out is a tuple of {found}, must be an array or a tuple of one"


class OutNotArray(TilewrightError, TypeError):
    """`out` is not a NumPy array."""

    message = "out is {found}, must be a numpy.ndarray"


class MissingOut(TilewrightError, ValueError):
    """beta is not 0, but no `out` is given to add to."""

    message = "beta is {beta}, but there is no out to scale and add; pass out= or beta=0"


class InvalidScalar(TilewrightError, TypeError):
    """Invalid alpha or beta: not a number that the element type can hold."""

    message = "{name} is {found}, must be {required}"


class InvalidOperand(TilewrightError, ValueError):
    """An operand cannot be converted to an array."""

    message = "{name} is invalid: {reason}"


class MaskedOperand(TilewrightError, TypeError):
    """An operand or `out` is a masked array."""

    message = (
        "{name} is a masked array, and masks are not supported; pass x.filled(0) if masked elements "
        "should add nothing to sums, or x.data to ignore the mask"
    )


class ForeignArray(TilewrightError, TypeError):
    """An operand belongs to a library that overrides NumPy's functions, is sparse, or is not computed yet."""

    message = "{name} is of type {kind}, {reason}; {remedy}"

    def __init__(
        self,
        *,
        reason: str = "whose library implements these functions itself",
        remedy: str = "convert it first, with numpy.asarray or a function of its library that copies it into "
        "memory",
        **fields: object,
    ) -> None:
        super().__init__(reason=reason, remedy=remedy, **fields)


class NotAnArray(TilewrightError, TypeError):
    """An operand is text or another object of which NumPy makes no numbers."""

    message = "{name} is {found}, must be an array or a list of numbers{remedy}"


class TensorNotReadable(TilewrightError, TypeError):
    """An operand is an array of another library that NumPy cannot view in its memory."""

    message = "{name} is of type {kind}, which cannot be read as an array: {reason}"


class RequiresGrad(TilewrightError, RuntimeError):
    """A PyTorch tensor takes part in automatic differentiation, which these functions do not record."""

    message = (
        "{name} {what}, and PyTorch would not record this operation; pass {name}.detach(), or call inside "
        "torch.no_grad() if no gradient is needed"
    )


class ForeignKeyword(TilewrightError, TypeError):
    """A keyword that NumPy's function lacks is given in a call dispatched to the operand's library."""

    message = (
        "{name} is given, but the call is dispatched to the library of an operand of type "
        "{kind}, which takes the arguments of numpy.{function}; convert the operand with numpy.asarray, or "
        "omit {name}"
    )


class NoUfuncs(TilewrightError, TypeError):
    """An operand disables universal functions."""

    message = (
        "an operand of type {kind} does not support universal functions (its __array_ufunc__ is "
        "None); use the functions of its library, or convert it with numpy.asarray"
    )


class UnsafeCast(TilewrightError, TypeError):
    """The inputs cannot be cast to the requested dtype."""

    speaker = "matmul"
    message = (
        "operand {name} has dtype {found}, which does not cast to {required} under "
        "{casting!r} casting; convert it with .astype({required!r}) if that is intended"
    )

    def __init__(self, *, casting: str = "same_kind", **fields: object) -> None:
        super().__init__(casting=casting, **fields)


class UnsupportedDtype(TilewrightError, TypeError):
    """Unsupported element type."""

    message = "dtype {dtype} has no kernel; supported: {supported}; convert the operands with {remedy}"

    def __init__(self, **fields: object) -> None:
        objects = str(fields.get("dtype")) == "object"
        remedy = ".astype(float): they hold Python objects" if objects else ".astype"
        super().__init__(**{"remedy": remedy} | fields)


class UnsupportedSums(UnsupportedDtype):
    """No kernel keeps the sums of such products in the requested type."""

    message = "sums of {sums} for products {dtypes}: no kernel; supported: {supported}"

    def __init__(self, **fields: object) -> None:
        TilewrightError.__init__(self, **fields)


class NoCommonDtype(UnsupportedDtype):
    """The operands have no common dtype under NumPy's promotion."""

    message = (
        "{found} have no common dtype; pass dtype={wanted} if the function has that argument, or convert an "
        "operand with .astype"
    )

    def __init__(self, **fields: object) -> None:
        TilewrightError.__init__(self, **fields)


class UnsupportedArgument(TilewrightError, NotImplementedError):
    """A documented argument is not supported by this version."""

    speaker = "matmul"
    message = "argument {name}={value} is not supported by this version; {remedy}"


class OutOverlapsItself(TilewrightError, ValueError):
    """Elements of `out` overlap in memory."""

    message = (
        "out has shape {shape} and strides {strides}, which map several elements to one address; "
        "pass an array without overlapping elements (numpy.empty)"
    )
