"""Basic indexing as in NumPy: integers, slices, None and an ellipsis, of axes whose lengths may be sizes."""

from __future__ import annotations

from typing import Any, NamedTuple

from tilewright.errors import GraphShape, shown
from tilewright.graph.arguments import check_length
from tilewright.graph.sizes import ONE, Shape
from tilewright.loops.nests.polynomial import Polynomial
from tilewright.spec.arguments import as_integer

_NODE = "slice"


class Cut(NamedTuple):
    """What one index keeps of an axis."""

    axis: int
    start: Polynomial
    stop: Polynomial
    step: int


class Cuts(NamedTuple):
    """What an index means.

    Attributes
    ----------
    cuts : of the axes that are not kept whole.
    shape : the places of the result: an axis that was indexed by a slice, or None for a new one of length 1.
    """

    cuts: tuple[Cut, ...]
    shape: tuple[int | None, ...]


def read_index(index: Any, shape: Shape) -> Cuts:
    """What an index of a value of a shape means.

    Raises
    ------
    GraphShape
    """
    given = list(index) if isinstance(index, tuple) else [index]
    places = [at for at, one in enumerate(given) if one is Ellipsis]
    if len(places) > 1:
        raise GraphShape(node=_NODE, reason="an index has one ellipsis at most")
    at = places[0] if places else len(given)
    axes = sum(one is not None and one is not Ellipsis for one in given)
    if axes > len(shape):
        raise GraphShape(node=_NODE, reason=f"more indices than the {len(shape)} axes of x")
    given[at : at + 1] = [slice(None)] * (len(shape) - axes)
    cuts: list[Cut] = []
    kept: list[int | None] = []
    axis = 0
    for one in given:
        if one is None:
            kept.append(None)
            continue
        cut = Cut(axis, *_bounds(one, shape[axis]))
        if cut != Cut(axis, Polynomial(), shape[axis], 1):
            cuts.append(cut)
        if isinstance(one, slice):
            kept.append(axis)
        axis += 1
    return Cuts(tuple(cuts), tuple(kept))


def result_shape(found: Cuts, shape: Shape) -> Shape:
    """The shape of an indexed value, whose axes were cut to a shape."""
    return tuple(ONE if axis is None else shape[axis] for axis in found.shape)


def _bounds(index: Any, length: Polynomial) -> tuple[Polynomial, Polynomial, int]:
    """Start, stop and step of an index of an axis; negative numbers count from its end."""
    if not isinstance(index, slice):
        if not isinstance(index, (str, Polynomial)) and as_integer(index) is None:
            reason = f"index {shown(index)} is neither an integer nor a slice; use take"
            raise GraphShape(node=_NODE, reason=reason)
        first = check_length(_NODE, index)
        if first.constant is not None and first.constant < 0:
            first = first + length
        return first, first + 1, 1
    step = 1 if index.step is None else as_integer(index.step)
    if step is None or step < 1:
        raise GraphShape(node=_NODE, reason=f"step {shown(index.step)} must be a positive integer")
    start, stop = _bound(index.start, length, Polynomial()), _bound(index.stop, length, length)
    empty = start.constant is not None and stop.constant is not None and stop.constant < start.constant
    return start, start if empty else stop, step


def _bound(value: Any, length: Polynomial, default: Polynomial) -> Polynomial:
    """One end of a slice; where the length is a number, within it."""
    if value is None:
        return default
    size = check_length(_NODE, value)
    number, whole = size.constant, length.constant
    if number is None:
        return size
    if number < 0:
        return length + number if whole is None else Polynomial.of(max(whole + number, 0))
    return size if whole is None else Polynomial.of(min(number, whole))
