"""Subscripts of one or two operands as a `Contraction`: a dimension for each label, with its strides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tilewright.errors import ContractionOperands, InvalidSequence, shown
from tilewright.ops.contraction.dimension import Dimension
from tilewright.ops.einsum.subscripts import Indexing, lay_over, parse
from tilewright.spec.arguments import as_integers, as_items
from tilewright.spec.axes import row_major
from tilewright.spec.roles import DimensionRole

#: The operands that a contraction has at most.
_MOST_OPERANDS = 2


class StridedOperand(NamedTuple):
    """An operand: the lengths of its axes, and elements from one index to the next; None: row-major."""

    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None

    def steps(self, labels: str, sizes: Mapping[str, int]) -> dict[str, int]:
        """The stride of each label, of a repeated one along the diagonal.

        A label whose axis of length 1 repeats along a longer one of another operand is none of its own.
        """
        strides = row_major(self.shape) if self.strides is None else self.strides
        found: dict[str, int] = {}
        for label, size, stride in zip(labels, self.shape, strides, strict=True):
            if size == sizes[label]:
                found[label] = found.get(label, 0) + stride
        return found


def einsum_dimensions(
    subscripts: str, operands: Sequence[StridedOperand], out_strides: Sequence[int] | None = None
) -> tuple[Dimension, ...]:
    """The dimensions of a contraction given by subscripts: those of the result in order, then sums.

    Parameters
    ----------
    subscripts : as `tilewright.einsum` takes them, of one or two operands.
    operands : their shapes and strides.
    out_strides : elements between the axes of the result; by default it is row-major.

    Raises
    ------
    ContractionOperands : if there are none or more than two operands.
    What `parse` and `lay_over` raise.

    Examples
    --------
    >>> for dimension in einsum_dimensions("ij,jk->ik", [StridedOperand((2, 3)), StridedOperand((3, 4))]):
    ...     print(dimension)
    m sequential 2 in0=3 in1=0 out=4
    n sequential 4 in0=0 in1=1 out=1
    k sequential 3 in0=1 in1=4 out=0
    """
    equation = parse(subscripts)
    if not 1 <= len(equation.inputs) <= _MOST_OPERANDS:
        raise ContractionOperands(subscripts=subscripts, found=len(equation.inputs))
    indexing = lay_over(equation, [operand.shape for operand in operands])
    inputs = [
        operand.steps(labels, indexing.sizes)
        for operand, labels in zip(operands, indexing.inputs, strict=True)
    ]
    written = (
        row_major(indexing.shape) if out_strides is None else _strides(out_strides, len(indexing.output))
    )
    out = dict(zip(indexing.output, written, strict=True))
    return tuple(_dimension(label, indexing, inputs, out) for label in _order(indexing))


def _strides(out_strides: object, count: int) -> tuple[int, ...]:
    """Elements between the axes of a result."""
    items = as_items(out_strides)
    found = None if items is None else as_integers(items)
    if found is None or len(found) != count:
        required = f"{count} integers, the elements between the axes of the result"
        raise InvalidSequence(name="out_strides", found=shown(out_strides), required=required)
    return found


def _order(indexing: Indexing) -> str:
    """Labels of the result, then the others as they occur."""
    return "".join(dict.fromkeys(indexing.output + "".join(indexing.inputs)))


def _dimension(
    label: str, indexing: Indexing, inputs: Sequence[Mapping[str, int]], out: Mapping[str, int]
) -> Dimension:
    """The dimension of one label."""
    first, second = inputs[0], inputs[1] if len(inputs) > 1 else None
    size = indexing.sizes[label]
    in_second = second is None or label in second
    # What a single input has, and out lacks, is summed over the one element that the other input repeats.
    role = DimensionRole.of(label in first, in_second, label in out) or DimensionRole.K
    in0, in1 = (0 if own is None else own.get(label, 0) for own in (first, second))
    return Dimension(role, size=size, in0=in0, in1=in1, out=out.get(label, 0))
