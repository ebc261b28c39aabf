"""Operators that move elements: shapes, slices, selections by indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.graph.sizes import product, quotient, size_of
from tilewright.graph.value import Value
from tilewright.loops.nests.polynomial import Polynomial
from tilewright.onnx.call import NodeCall, NotSupported, OperatorTable, Results
from tilewright.onnx.operators.shapes import bounded
from tilewright.onnx.sizes import is_negative

OPERATORS = OperatorTable()

#: Bounds of slices from here on mean the end of an axis.
_FAR = 1 << 30


def axes_of(call: NodeCall, number: int = 1) -> list[int] | None:
    """Axes from an input or, in older operator sets, from an attribute."""
    if call.has(number):
        return call.integers(number)
    return call.integer_list("axes")


def axis_in(axis: int, ndim: int) -> int:
    """An axis counted from the front."""
    if not -ndim <= axis < max(ndim, 1):
        raise NotSupported(f"axis {axis} does not exist in {ndim} dimensions")
    return axis % max(ndim, 1)


@OPERATORS.add("Reshape")
def reshape(call: NodeCall) -> Results:
    """Another shape; 0 stands for the size of x there, -1 for what is left."""
    x, wanted = call.value(0), call.size_list(1)
    if not call.flag("allowzero"):
        for at, size in enumerate(wanted):
            if size.constant == 0:
                wanted[at] = x.shape[axis_in(at, x.ndim)]
    if any(size.constant == -1 for size in wanted) and product(x.shape).constant == 0:
        wanted = _of_nothing(x, wanted)
    return call.graph.reshape(x, wanted)


def _of_nothing(x: Value, wanted: list[Polynomial]) -> list[Polynomial]:
    """The shape of an array without elements, -1 replaced."""
    rest = product([size for size in wanted if size.constant != -1])
    found = quotient(product(x.shape), rest) if rest else size_of(0)
    if found is None:
        raise NotSupported(f"no shape for {x}")
    return [found if size.constant == -1 else size for size in wanted]


@OPERATORS.add("Transpose")
def transpose(call: NodeCall) -> Results:
    """The axes in another order."""
    return call.graph.transpose(call.value(0), call.integer_list("perm"))


@OPERATORS.add("Squeeze")
def squeeze(call: NodeCall) -> Results:
    """x without axes of length 1."""
    x, axes = call.value(0), axes_of(call)
    if axes is None:
        gone = {at for at, size in enumerate(x.shape) if size.constant == 1}
    else:
        gone = {axis_in(axis, x.ndim) for axis in axes}
        if any(x.shape[axis].constant != 1 for axis in gone):
            raise NotSupported("an axis has no length of 1")
    return call.graph.reshape(x, [size for at, size in enumerate(x.shape) if at not in gone])


@OPERATORS.add("Unsqueeze")
def unsqueeze(call: NodeCall) -> Results:
    """x with more axes of length 1."""
    x, axes = call.value(0), axes_of(call) or []
    ndim = x.ndim + len(axes)
    new = {axis_in(axis, ndim) for axis in axes}
    rest = iter(x.shape)
    if len(new) != len(axes):
        raise NotSupported("an axis is named twice")
    return call.graph.reshape(x, [size_of(1) if at in new else next(rest) for at in range(ndim)])


@OPERATORS.add("Flatten")
def flatten(call: NodeCall) -> Results:
    """The axes in two groups."""
    x, axis = call.value(0), call.attribute("axis", 1)
    at = axis + x.ndim if axis < 0 else axis
    return call.graph.reshape(x, (product(x.shape[:at]), product(x.shape[at:])))


@OPERATORS.add("Expand")
def expand(call: NodeCall) -> Results:
    """x broadcast to a shape."""
    return call.graph.broadcast_to(call.value(0), call.size_list(1))


@OPERATORS.add("Tile")
def tile(call: NodeCall) -> Results:
    """x repeated along its axes."""
    x, repeats = call.value(0), call.size_list(1)
    if len(repeats) != x.ndim:
        raise NotSupported(f"{len(repeats)} numbers of repetitions for {x.ndim} axes")
    inner: list[Any] = []
    outer: list[Any] = []
    for size, count in zip(x.shape, repeats, strict=True):
        fresh = [] if count == size_of(1) else [count]
        inner += [size_of(1) for _ in fresh] + [size]
        outer += [*fresh, size]
    spread = call.graph.expand(call.graph.reshape(x, inner), outer)
    return call.graph.reshape(spread, [a * b for a, b in zip(x.shape, repeats, strict=True)])


@OPERATORS.add("Concat")
def concatenate(call: NodeCall) -> Results:
    """Values one behind the other."""
    return call.graph.concatenate(call.values(), call.integer("axis"))


@OPERATORS.add("Split")
def split(call: NodeCall) -> Results:
    """Parts of an axis."""
    x = call.value(0)
    axis = axis_in(call.attribute("axis", 0), x.ndim)
    count, length = call.attribute("num_outputs", len(call.wanted)), x.shape[axis]
    if call.has(1):
        parts = call.size_list(1)
    elif length.constant is not None:
        part = -(-length.constant // count)
        parts = [size_of(min(part, max(length.constant - part * at, 0))) for at in range(count)]
    else:
        even = quotient(length, size_of(count))
        if even is None:
            raise NotSupported(f"{length} elements in {count} parts")
        parts = [even] * count
    found, start = [], size_of(0)
    for part_size in parts:
        found.append(call.graph.slice(x, (*[slice(None)] * axis, slice(start, start + part_size))))
        start = start + part_size
    return tuple(found)


@OPERATORS.add("Slice")
def slice_axes(call: NodeCall) -> Results:
    """Ranges of axes."""
    x, starts, ends = call.value(0), call.size_list(1), call.size_list(2)
    axes = call.integers(3) if call.has(3) else list(range(len(starts)))
    steps = call.integers(4) if call.has(4) else [1] * len(starts)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        x = _sliced(call, x, axis_in(axis, x.ndim), start, end, step)
    return x


def _sliced(call: NodeCall, x: Value, axis: int, start: Polynomial, end: Polynomial, step: int) -> Value:
    if step == 0:
        raise NotSupported("a step of 0")
    length = x.shape[axis]
    if step < 0:  # counted from the end: element i is element length - 1 - i
        x = call.graph.flip(x, axis)
        start, end = _from_end(start, length), _from_end(end, length)
    else:
        start, end = _from_front(start, length), _from_front(end, length)
    if is_negative(end - start) is True:
        end = start
    index = (*[slice(None)] * axis, slice(start, end, abs(step)))
    return call.graph.slice(x, index)


def _from_front(bound: Polynomial, length: Polynomial) -> Polynomial:
    """A bound of a slice forward, between 0 and the length."""
    number = bound.constant
    if number is not None and number >= _FAR:
        return length
    if number is not None and number <= -_FAR:
        return size_of(0)
    found = bound + length if is_negative(bound) is True else bound
    if is_negative(found) is True:
        return size_of(0)
    return bounded(found, length)


def _from_end(bound: Polynomial, length: Polynomial) -> Polynomial:
    """A bound of a slice backward, as one of the reversed axis."""
    number = bound.constant
    if number is not None and number >= _FAR:
        return size_of(0)
    if number is not None and number <= -_FAR:
        return length
    found = length - 1 - (bound + length if is_negative(bound) is True else bound)
    if is_negative(found) is True:
        return size_of(0)
    return bounded(found, length)


@OPERATORS.add("Pad")
def pad(call: NodeCall) -> Results:
    """x with more elements at the ends of its axes, or fewer."""
    x, mode = call.value(0), call.attribute("mode", "constant")
    pads = call.size_list(1)
    axes = call.integers(3) if call.has(3) else list(range(x.ndim))
    if len(pads) != 2 * len(axes):
        raise NotSupported(f"{len(pads)} numbers for both ends of {len(axes)} axes")
    before, after = [size_of(0)] * x.ndim, [size_of(0)] * x.ndim
    for number, axis in enumerate(axes):
        at = axis_in(axis, x.ndim)
        before[at], after[at] = pads[number], pads[len(axes) + number]
    x = _cropped(call, x, before, after)
    if mode != "constant":
        call.ignore_inputs(2)
        return _repeated(call, x, before, after, mode)
    value = call.optional(2)
    if all(not one for one in (*before, *after)):
        return x
    filled = call.graph.number(x, 0) if value is None else call.graph.reshape(value, ())
    return call.graph.pad(x, filled, before, after)


def _cropped(call: NodeCall, x: Value, before: list[Polynomial], after: list[Polynomial]) -> Value:
    """x without what negative numbers take away; these become 0."""
    for axis in range(x.ndim):
        start = stop = size_of(0)
        if is_negative(before[axis]) is True:
            start, before[axis] = -before[axis], size_of(0)
        if is_negative(after[axis]) is True:
            stop, after[axis] = -after[axis], size_of(0)
        if start or stop:
            index = slice(start, x.shape[axis] - stop)
            x = call.graph.slice(x, (*[slice(None)] * axis, index))
    return x


def _repeated(
    call: NodeCall, x: Value, before: list[Polynomial], after: list[Polynomial], mode: str
) -> Value:
    """x with elements of its own added."""
    modes: dict[str, Any] = {"edge": "edge", "reflect": "reflect", "wrap": "wrap"}
    if mode not in modes:
        raise NotSupported(f"mode {mode}")
    for axis in range(x.ndim):
        length, first, last = x.shape[axis].constant, before[axis].constant, after[axis].constant
        if not before[axis] and not after[axis]:
            continue
        if length is None or first is None or last is None:
            raise NotSupported(f"mode {mode} of an axis whose length is not constant")
        indices = np.pad(np.arange(length), (first, last), modes[mode])
        x = call.graph.take(x, indices, axis)
    return x


@OPERATORS.add("CenterCropPad")
def center_crop_pad(call: NodeCall) -> Results:
    """x cut or padded to a shape on both sides alike."""
    x, wanted = call.value(0), call.integers(1)
    axes = call.integer_list("axes") or list(range(x.ndim))
    for axis, target in zip(axes, wanted, strict=True):
        at = axis_in(axis, x.ndim)
        length = x.shape[at].constant
        if length is None:
            raise NotSupported("an axis whose length is not constant")
        if length > target:
            start = (length - target) // 2
            x = call.graph.slice(x, (*[slice(None)] * at, slice(start, start + target)))
        elif length < target:
            before, after = [0] * x.ndim, [0] * x.ndim
            before[at] = (target - length) // 2
            after[at] = target - length - before[at]
            x = call.graph.pad(x, call.graph.number(x, 0), before, after)
    return x


# --- selections -------------------------------------------------------------------------------------


@OPERATORS.add("Gather")
def gather(call: NodeCall) -> Results:
    """Elements at indices of an axis."""
    x = call.value(0)
    axis = axis_in(call.attribute("axis", 0), x.ndim)
    sizes = call.sizes_of(1)
    if sizes is not None and sizes.ndim == 0:  # one index that follows from sizes is a slice
        index = _from_front(call.size_list(1)[0], x.shape[axis])
        return call.graph.slice(x, (*[slice(None)] * axis, index))
    return call.graph.take(x, call.value(1), axis)


@OPERATORS.add("GatherElements")
def gather_elements(call: NodeCall) -> Results:
    """Elements at positions of an axis, one for each element of the indices."""
    return call.graph.take_along(call.value(0), call.value(1), call.attribute("axis", 0))


@OPERATORS.add("GatherND")
def gather_nd(call: NodeCall) -> Results:
    """Parts at the positions that the last axis of the indices has."""
    return call.graph.gather_nd(call.value(0), call.value(1), call.attribute("batch_dims", 0))


@OPERATORS.add("ScatterND", "ScatterElements")
def scatter(call: NodeCall) -> Results:
    """x with elements replaced or combined."""
    function = call.attribute("reduction", "none")
    if function not in ("none", "add", "mul", "max", "min"):
        raise NotSupported(f"reduction {function}")
    axis = call.attribute("axis", 0) if call.operator == "ScatterElements" else None
    return call.graph.scatter(call.value(0), call.value(1), call.value(2), function, axis)


@OPERATORS.add("OneHot")
def one_hot(call: NodeCall) -> Results:
    """One value at the index of each vector of an axis, another one elsewhere."""
    g, indices, depth = call.graph, call.value(0), call.array(1).reshape(-1)
    axis = axis_in(call.attribute("axis", -1), indices.ndim + 1)
    values, classes = call.value(2), int(depth[0])
    indices = g.cast(indices, "i64")
    indices = g.where(g.binary("less", indices, 0), indices + classes, indices)
    placed = g.reshape(indices, (*indices.shape[:axis], 1, *indices.shape[axis:]))
    numbers = g.reshape(g.iota(classes), (classes, *[1] * (indices.ndim - axis)))
    hit = g.binary("equal", placed, numbers)
    return g.where(hit, g.slice(values, 1), g.slice(values, 0))


@OPERATORS.add("Trilu")
def triangle(call: NodeCall) -> Results:
    """One triangle of the last two axes, 0 elsewhere."""
    g, x, upper = call.graph, call.value(0), call.flag("upper", default=True)
    diagonal = call.size_list(1)[0] if call.has(1) else size_of(0)
    if x.ndim < 2:
        raise NotSupported("x needs two axes at least")
    rows = g.slice(g.iota(x.shape[-2], diagonal), (slice(None), None))
    columns = g.iota(x.shape[-1])
    kept = g.binary("greater_equal" if upper else "less_equal", columns, rows)
    return g.where(kept, x, g.number(x, 0))


@OPERATORS.add("DepthToSpace", "SpaceToDepth")
def depth_and_space(call: NodeCall) -> Results:
    """Blocks of two axes exchanged with channels."""
    g, x, block = call.graph, call.value(0), call.integer("blocksize")
    batch, channels, height, width = x.shape
    columns = call.attribute("mode", "DCR") == "CRD"
    if call.operator == "SpaceToDepth":
        shape = (batch, channels, *_parts(height, block), *_parts(width, block))
        order = (0, 1, 3, 5, 2, 4) if columns else (0, 3, 5, 1, 2, 4)
        found = g.transpose(g.reshape(x, shape), order)
        return g.reshape(found, (batch, channels * (block * block), shape[2], shape[4]))
    less = quotient(channels, size_of(block * block))
    if less is None:
        raise NotSupported(f"{channels} channels in blocks of {block}")
    split_channels = (less, block, block) if columns else (block, block, less)
    order = (0, 1, 4, 2, 5, 3) if columns else (0, 3, 4, 1, 5, 2)
    found = g.transpose(g.reshape(x, (batch, *split_channels, height, width)), order)
    return g.reshape(found, (batch, less, height * block, width * block))


def _parts(length: Polynomial, block: int) -> tuple[Polynomial, Polynomial]:
    found = quotient(length, size_of(block))
    if found is None:
        raise NotSupported(f"{length} elements in blocks of {block}")
    return found, size_of(block)
