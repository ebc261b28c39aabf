"""Errors of matrix products: shapes, epilogues, zero points, quantised weights, tiles."""

from __future__ import annotations

from tilewright.errors.base import TilewrightError


class ShapeMismatch(TilewrightError, ValueError):
    """The inner sizes of a product differ."""

    speaker = "matmul"
    message = (
        "{left} has shape {a} and {right} has shape {b}: the last axis of {left} has {inner_a} elements and "
        "the contracted axis of {right} {inner_b}; they must be equal (transpose or reshape one of them)"
    )

    def __init__(self, *, left: str = "a", right: str = "b", **fields: object) -> None:
        super().__init__(left=left, right=right, **fields)


class FactorAxes(TilewrightError, ValueError):
    """A factor of a symmetric or triangular product has fewer than two axes."""

    message = (
        "{name} has shape {found}, must have at least two axes: those of a matrix, after any "
        "batch axes (pass a vector v as the column v[:, numpy.newaxis])"
    )


class FactorShapes(TilewrightError, ValueError):
    """The factors of a symmetric product have different numbers of rows or columns."""

    message = (
        "a has shape {a} and b has shape {b}; the last two axes of both must be the same n and k "
        "(pass b.T if b is transposed)"
    )


class TriangleNotSquare(TilewrightError, ValueError):
    """The triangular matrix of a product is not square."""

    speaker = "trmm"
    message = "a has shape {found}; a triangular matrix is square: its last two axes must be equal"


class TriangleShape(TilewrightError, ValueError):
    """The sizes of the triangular matrix and of the other factor do not match."""

    speaker = "trmm"
    message = (
        "a has shape {a} and b has shape {b}: with side={side!r}, a must have as many rows and columns "
        "as b has {what} (or pass the other side)"
    )


class InvalidZeroPoint(TilewrightError, ValueError):
    """Invalid zero point: not an integer of its operand's type, or of the wrong shape."""

    speaker = "matmul_integer"
    message = "{name} is {found}, must be {required}"


class StepDtype(TilewrightError, TypeError):
    """An epilogue step does not support the element type of its value."""

    speaker = "epilogue"
    message = "{step} does not apply to {dtype}: {reason}"


class StepShape(TilewrightError, ValueError):
    """The shape of an epilogue operand does not broadcast to the result."""

    speaker = "matmul"
    message = "{name} has shape {found}, must be {required}"


class TilesMismatch(TilewrightError, ValueError):
    """The depths of two tiled operands differ."""

    speaker = "mmt4d"
    message = (
        "lhs4d has shape {lhs} and a depth of {lhs_depth} tiles, rhs4d has shape {rhs} and a depth of "
        "{rhs_depth}: number and size of the tiles must be equal; pack both with the same K0"
    )


class InvalidTiles(TilewrightError, ValueError):
    """Invalid tile sizes."""

    message = "tiles are {found}, must be {required}"


class InvalidGroup(TilewrightError, ValueError):
    """Unsupported group size of a quantised weight."""

    message = "group is {group}, must be one of {allowed}, or None for one scale for each column"


class ScaleShape(TilewrightError, ValueError):
    """Invalid shape of scales or zero points: not one for each group and column."""

    message = "{name} have shape {found}, must be {required}: one for each {each}"

    def __init__(self, *, each: str = "group of depths and each column", **fields: object) -> None:
        super().__init__(each=each, **fields)


class QuantisedWeight(TilewrightError, ValueError):
    """Quantised rows cannot be multiplied with this weight."""

    message = (
        "quantised rows cannot be multiplied with {found}; the weight must have 8 bits, one scale for each "
        "column and no zero points: tilewright.quantize_weights(w, bits=8)"
    )


class QuantisedRange(TilewrightError, ValueError):
    """Integers of a quantised weight exceed its number of bits."""

    message = (
        "{name} of {bits} bits must be integers from {low} to {high}; clip or shift them, or pass more bits"
    )
