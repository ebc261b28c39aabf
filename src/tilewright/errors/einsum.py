"""Errors of einsum, contractions and trees of contractions."""

from __future__ import annotations

from tilewright.errors.base import TilewrightError


class MalformedSubscripts(TilewrightError, ValueError):
    """Text that is no subscripts."""

    message = "einsum: {reason}\n    {subscripts}\n    {pointer}"


class OutputLabelRepeated(TilewrightError, ValueError):
    """A label stands twice in the result."""

    message = (
        "einsum: label {label!r} stands twice in the result; name each once\n    {subscripts}\n    {pointer}"
    )


class OutputLabelUnknown(TilewrightError, ValueError):
    """A label of the result that no operand has."""

    message = "einsum: label {label!r} of the result is none of an operand's\n    {subscripts}\n    {pointer}"


class EllipsisNotInOutput(TilewrightError, ValueError):
    """The axes of an ellipsis are missing from the result."""

    message = (
        "einsum: {subscripts}: '...' stands for {count} axes of the operands and is missing from the result; "
        "write it there, or give axes that are summed a label"
    )


class OperandCount(TilewrightError, ValueError):
    """More or fewer operands than subscripts."""

    message = "einsum: {subscripts}: {found} operands are given, the subscripts are of {required}"


class SublistLabel(TilewrightError, TypeError, ValueError):
    """Lists of labels that are none, in the form without text."""

    message = "einsum: {what}: found {found}, must be {required}"


class AxesWithoutLabels(TilewrightError, ValueError):
    """An operand has another number of axes than labels."""

    message = (
        "einsum: {subscripts}: operand {number} has shape {shape}, its subscripts {labels!r} name {count} "
        "axes; name every axis, or write '...' for the others"
    )


class LabelSizes(TilewrightError, ValueError):
    """Axes of one label have different lengths."""

    message = (
        "einsum: {subscripts}: label {label} is {size} long in operand {first} and {other} in operand "
        "{second}; axes of one label must be equal, or 1 in one of two operands"
    )


class InvalidPath(TilewrightError, ValueError, RuntimeError):
    """An order of contraction that is none."""

    message = "einsum: optimize, the order of contraction: found {found}: {reason}"


class ContractionDimension(TilewrightError, ValueError):
    """A dimension of a contraction that is none of its type."""

    message = "contraction: a dimension of type {type} has {found}, must be {required}"


class ContractionPrimitive(TilewrightError, ValueError):
    """Dimensions called primitive over which no primitive runs."""

    message = "contraction: {main}: found {found}, must be {required}"


class ContractionMemory(TilewrightError, ValueError):
    """An operand reaches beyond the array that was passed for it."""

    message = (
        "contraction: {name} has elements {low} to {high}, counted from the first one; the array passed has "
        "{found_low} to {found_high}: pass one that begins with element 0 and holds all of them"
    )


class MalformedTree(TilewrightError, ValueError):
    """Text that is no tree of contractions."""

    message = "einsum_tree: {reason}\n    {tree}\n    {pointer}"


class TreeDimensionRepeated(TilewrightError, ValueError):
    """A dimension stands twice in one list of a tree."""

    message = (
        "einsum_tree: dimension {number} stands twice in one list; name each once, and take a diagonal "
        "before (numpy.einsum('ii->i', a))\n    {tree}\n    {pointer}"
    )


class TreeDimensionUnknown(TilewrightError, ValueError):
    """A dimension of a node's result that nothing it is made of has."""

    message = (
        "einsum_tree: dimension {number} of the result is in nothing that the node is made of; name it "
        "there, or leave it out\n    {tree}\n    {pointer}"
    )


class TreeDimensionLost(TilewrightError, ValueError):
    """A dimension of one operand that neither the other one nor the result has."""

    message = (
        "einsum_tree: dimension {number} of one operand is missing from this result and from the other "
        "operand; name it in the result, or sum it before (numpy.sum)\n    {tree}\n    {pointer}"
    )


class TreeSizeMissing(TilewrightError, ValueError):
    """A dimension of a tree has no size."""

    message = "einsum_tree: dimension {number} has no size; sizes has those of: {known}"


class TreeSize(TilewrightError, ValueError, TypeError):
    """The size of a dimension is no length."""

    message = "einsum_tree: the size of dimension {number} is {found}, must be an integer from 0 on"


class ContractionOperands(TilewrightError, ValueError):
    """Subscripts of no or of several pairs of operands."""

    message = (
        "einsum_contraction: {subscripts!r} is of {found} operands, must be one or two; "
        "tilewright.einsum finds the order in which more of them meet"
    )


class ContractionText(TilewrightError, ValueError):
    """Text that is no contraction."""

    message = "contraction text, line {line}: {found!r}: {reason}"


class CompiledOperand(TilewrightError, ValueError):
    """An operand of a compiled einsum has another shape than the one it was compiled for."""

    message = (
        "{name}: operand {number} has shape {found}, compiled for {required}; pass an array of that shape, "
        "or compile again for this one"
    )


class EinsumCast(TilewrightError, TypeError):
    """An operand or `out` is of a type that does not convert to or from that of the result."""

    message = (
        "einsum: {name} does not cast from {found} to {required} under {casting!r} casting; "
        "pass dtype=, an out of another dtype, or casting='same_kind' or 'unsafe' if that is meant"
    )


class ContractionAxes(TilewrightError, ValueError):
    """Axes over which two arrays cannot be summed."""

    message = "{function}: axes {axes} of shapes {a} and {b}: {reason}"
