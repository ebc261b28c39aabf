"""Errors of matrix products: shapes, epilogues, zero points, quantised weights, tiles."""

from __future__ import annotations

from tilewright.errors.base import TilewrightError


class ShapeMismatch(TilewrightError, ValueError):
    """The inner sizes of a product differ."""

    message = (
        "matmul: a has shape {a} and b has shape {b}: the last axis of a is {inner_a} long, the "
        "axis of b it meets is {inner_b}; they must be equal (transpose or reshape one of them)"
    )


class FactorAxes(TilewrightError, ValueError):
    """A factor of a symmetric or triangular product that is no matrix."""

    message = (
        "{function}: {name} has shape {found}, must have at least two axes: those of a matrix, behind any "
        "batch axes (a vector v is the column v[:, numpy.newaxis])"
    )


class FactorShapes(TilewrightError, ValueError):
    """The factors of a symmetric product differ in rows or columns."""

    message = (
        "{function}: a has shape {a} and b has shape {b}; the last two axes of both must be the same n and k "
        "(pass b.T where it is given transposed)"
    )


class TriangleNotSquare(TilewrightError, ValueError):
    """The triangular matrix of a product is not square."""

    message = (
        "trmm: a has shape {found}; its last two axes must be equal, as those of a triangular matrix are"
    )


class TriangleShape(TilewrightError, ValueError):
    """The triangular matrix of a product does not fit the other one."""

    message = (
        "trmm: a of shape {a} stands on the {side} of b of shape {b}: it must have as many rows and columns "
        "as b has {what} (or pass the other side)"
    )


class InvalidZeroPoint(TilewrightError, ValueError):
    """Invalid zero point: not an integer of its operand's type, or of the wrong shape."""

    message = "matmul_integer: {name} is {found}, must be {required}"


class StepDtype(TilewrightError, TypeError):
    """A step of an epilogue that has no meaning on the type of the value."""

    message = "epilogue: {step} does not apply to {dtype}: {reason}"


class StepShape(TilewrightError, ValueError):
    """An operand of an epilogue that does not fit the result."""

    message = "matmul: {name} has shape {found}, must be {required}"


class TilesMismatch(TilewrightError, ValueError):
    """The depths of two operands in tiles differ."""

    message = (
        "mmt4d: lhs has shape {lhs}, whose depth is {lhs_depth} tiles, and rhs {rhs}, whose depth is "
        "{rhs_depth}: numbers and sizes of the tiles must be equal; pack both with the same K0"
    )


class InvalidTiles(TilewrightError, ValueError):
    """Tile sizes that no tile has."""

    message = "tiles are {found}, must be {required}"


class InvalidGroup(TilewrightError, ValueError):
    """Depths that cannot share one scale."""

    message = "a group of {group} depths is not supported; pass one of {allowed}, or None for one a column"


class ScaleShape(TilewrightError, ValueError):
    """Scales or zero points are not one for each group and column."""

    message = "{name} have shape {found}, must be {required}: one for each group of depths and each column"


class QuantisedWeight(TilewrightError, ValueError):
    """Quantised rows meet a weight that integers cannot multiply."""

    message = (
        "quantised rows meet {found}; they take a weight of 8 bits with one scale a column and no zero "
        "points: tilewright.quantize_weights(w, bits=8)"
    )


class QuantisedRange(TilewrightError, ValueError):
    """Integers that do not fit the bits of a quantised weight."""

    message = (
        "{name} of {bits} bits must be integers from {low} to {high}; clip or shift them, or pass more bits"
    )
