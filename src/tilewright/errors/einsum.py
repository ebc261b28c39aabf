"""Errors of einsum, contractions and trees of contractions."""

from __future__ import annotations

from tilewright.errors.base import TilewrightError


class MalformedSubscripts(TilewrightError, ValueError):
    """Invalid subscripts."""

    speaker = "einsum"
    message = "{reason}\n    {subscripts}\n    {pointer}"


class OutputLabelRepeated(TilewrightError, ValueError):
    """A label is repeated in the output subscripts."""

    speaker = "einsum"
    message = (
        "label {label!r} is repeated in the output; use each label once\n    {subscripts}\n    {pointer}"
    )


class OutputLabelUnknown(TilewrightError, ValueError):
    """A label of the output is in no operand."""

    speaker = "einsum"
    message = "label {label!r} of the output is in no operand\n    {subscripts}\n    {pointer}"


class EllipsisNotInOutput(TilewrightError, ValueError):
    """An ellipsis of the operands is missing from the output."""

    speaker = "einsum"
    message = (
        "{subscripts}: '...' stands for {count} axes of the operands and is missing from the output; "
        "add it, or give a label to each axis that is summed"
    )


class OperandCount(TilewrightError, ValueError):
    """The number of operands is not the number of subscripts."""

    speaker = "einsum"
    message = "{subscripts}: {found} operands are given, the subscripts name {required}"


class SublistLabel(TilewrightError, TypeError, ValueError):
    """Invalid list of labels in the interleaved form of einsum."""

    speaker = "einsum"
    message = "{what}: found {found}, must be {required}"


class AxesWithoutLabels(TilewrightError, ValueError):
    """The number of axes of an operand is not the number of its labels."""

    speaker = "einsum"
    message = (
        "{subscripts}: operand {number} has shape {shape}, its subscripts {labels!r} name {count} "
        "axes; name every axis, or write '...' for the others"
    )


class LabelSizes(TilewrightError, ValueError):
    """Axes of one label have different lengths."""

    speaker = "einsum"
    message = (
        "{subscripts}: label {label} has size {size} in operand {first} and {other} in operand "
        "{second}; sizes of a label must be equal, or 1 in one of two operands"
    )


class InvalidPath(TilewrightError, ValueError, RuntimeError):
    """Invalid contraction order."""

    speaker = "einsum"
    message = "invalid contraction order optimize={found}: {reason}"


class ContractionDimension(TilewrightError, ValueError):
    """Invalid dimension for its type in a contraction."""

    speaker = "contraction"
    message = "a dimension of type {type} has {found}, must be {required}"


class ContractionPrimitive(TilewrightError, ValueError):
    """No primitive supports the dimensions marked as primitive."""

    speaker = "contraction"
    message = "{main}: found {found}, must be {required}"


class ContractionMemory(TilewrightError, ValueError):
    """An operand of a contraction extends past its array."""

    speaker = "contraction"
    message = (
        "{name} accesses elements {low} to {high}; the array passed has "
        "{found_low} to {found_high}: pass an array that begins with element 0 and holds all of them"
    )


class MalformedTree(TilewrightError, ValueError):
    """Invalid text of a contraction tree."""

    speaker = "einsum_tree"
    message = "{reason}\n    {tree}\n    {pointer}"


class TreeDimensionRepeated(TilewrightError, ValueError):
    """A dimension is repeated in one list of a contraction tree."""

    speaker = "einsum_tree"
    message = (
        "dimension {number} is repeated in one list; name each once, and take a diagonal "
        "beforehand (numpy.einsum('ii->i', a))\n    {tree}\n    {pointer}"
    )


class TreeDimensionUnknown(TilewrightError, ValueError):
    """A dimension of a node's result is in none of its operands."""

    speaker = "einsum_tree"
    message = (
        "dimension {number} of the result is in no operand of the node; add it "
        "to an operand, or omit it\n    {tree}\n    {pointer}"
    )


class TreeDimensionLost(TilewrightError, ValueError):
    """A dimension is in one operand only and not in the result."""

    speaker = "einsum_tree"
    message = (
        "dimension {number} of one operand is in neither the result nor the other "
        "operand; add it to the result, or sum over it beforehand (numpy.sum)\n    {tree}\n    {pointer}"
    )


class TreeSizeMissing(TilewrightError, ValueError):
    """The size of a dimension of a contraction tree is missing."""

    speaker = "einsum_tree"
    message = "dimension {number} has no size; sizes are given for: {known}"


class TreeSize(TilewrightError, ValueError, TypeError):
    """Invalid size of a dimension of a contraction tree."""

    speaker = "einsum_tree"
    message = "the size of dimension {number} is {found}, must be a non-negative integer"


class ContractionOperands(TilewrightError, ValueError):
    """The subscripts are not those of one or two operands."""

    speaker = "einsum_contraction"
    message = (
        "{subscripts!r} names {found} operands, must be one or two; "
        "tilewright.einsum finds the contraction order of more"
    )


class ContractionText(TilewrightError, ValueError):
    """Invalid text of a contraction."""

    message = "contraction text, line {line}: {found!r}: {reason}"


class CompiledOperand(TilewrightError, ValueError):
    """The shape of an operand is not the one that the einsum was compiled for."""

    message = (
        "{name}: operand {number} has shape {found}, compiled for {required}; pass an array of that shape, "
        "or compile again for this one"
    )


class EinsumCast(TilewrightError, TypeError):
    """An operand or `out` does not cast to or from the dtype of the result."""

    speaker = "einsum"
    message = (
        "{name} does not cast from {found} to {required} under {casting!r} casting; "
        "pass dtype=, an out of another dtype, or casting='same_kind' or 'unsafe' if that is intended"
    )


class ContractionAxes(TilewrightError, ValueError):
    """Invalid axes of a product of two arrays."""

    message = "axes {axes} of shapes {a} and {b}: {reason}"
