"""Attention to a part of the keys, and the state that such parts are merged by."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.exchange import exchanging
from tilewright.calls.foreign import as_array
from tilewright.calls.operands import Array
from tilewright.errors import InvalidSequence, NoStates, PackedState, StateLayouts, StateShape, shown
from tilewright.ops.attention.call import AttentionStrategy, choose, run
from tilewright.ops.attention.log_sum_exp import log_sum_exp
from tilewright.ops.attention.operands import AttentionLayout, Keywords, state_shape
from tilewright.ops.attention.prepared import prepare
from tilewright.ops.rows.call import check_axes
from tilewright.spec.arguments import as_items, check_flag, check_items, check_numbers, parse_choice


class _StateArrays(NamedTuple):
    """The arrays of a state, as they are unpacked and sent."""

    out: Array
    row_max: Array
    row_sum: Array


class AttentionState(_StateArrays):
    """The state of attention to some keys, in float32 (float64 for float64 queries).

    Unpacks as (out, row_max, row_sum).

    Attributes
    ----------
    out : numpy.ndarray
        The result of these keys alone, in the shape and layout of that of `tilewright.attention`, not rounded
        to q's type.
    row_max : numpy.ndarray, shape (batch, heads, queries) in every layout
        The largest score of each row, -inf where no key is seen.
    row_sum : numpy.ndarray, shape (batch, heads, queries) in every layout
        The sum of e^(score - row_max) of each row, 0 where no key is seen.
    layout : str
        The layout of `out`: "bhsd" or "bshd".
    """

    layout: str = AttentionLayout.BHSD.value

    def __new__(cls, out: Array, row_max: Array, row_sum: Array, *, layout: str = "bhsd") -> AttentionState:
        """A state from its arrays and the layout of the first."""
        made = super().__new__(cls, out, row_max, row_sum)
        made.layout = parse_choice(AttentionLayout, layout, "layout").value
        return made

    def _replace(self, **changes: Any) -> AttentionState:
        """The state with other arrays, in the same layout."""
        return AttentionState(*super()._replace(**changes), layout=self.layout)

    def __repr__(self) -> str:
        rows, columns = self.row_max.shape, self.out.shape[-1:]
        return (
            f"<AttentionState of rows {rows}, {columns[0]} columns, {self.out.dtype}, layout {self.layout}>"
        )

    @property
    def lse(self) -> Array:
        """The logarithm of each row's sum of exponentials, (batch, heads, queries) in every layout.

        >>> AttentionState(np.zeros((1, 2)), np.array([3.0]), np.array([1.0])).lse
        array([3.])
        """
        return exchanging(log_sum_exp)(self.row_max, self.row_sum)

    def packed(self) -> Array:
        """The state as one array: `out`, then row_max and row_sum as two more columns, in `layout`.

        For reductions that merge buffers, such as those of Dask and MPI; `from_packed` is the inverse.

        >>> AttentionState(np.zeros((1, 2)), np.array([3.0]), np.array([1.0])).packed()
        array([[0., 0., 3., 1.]])
        """
        rows = (of_results(array, self.layout) for array in (self.row_max, self.row_sum))
        return np.concatenate((self.out, *rows), axis=-1)

    @classmethod
    def from_packed(cls, packed: Any, *, layout: str = "bhsd") -> AttentionState:
        """The state that `packed` made into an array of shape (..., d + 2).

        Raises
        ------
        PackedState, InvalidChoice, and those of arrays that are none
        """
        array, order = as_array(packed, "packed"), parse_choice(AttentionLayout, layout, "layout")
        if array.ndim < len("sd") or array.shape[-1] < len(("row_max", "row_sum")):
            raise PackedState(found=array.shape)
        rows = (array[..., -2], array[..., -1])
        if order is AttentionLayout.BSHD and array.ndim > len("sd"):
            rows = (rows[0].swapaxes(-1, -2), rows[1].swapaxes(-1, -2))
        return cls(array[..., :-2], *rows, layout=order.value)

    @staticmethod
    def merge_packed(packed: Any, axis: Any = 0, keepdims: Any = False) -> Array:
        """Packed states along an axis, merged in their order: ``combine`` of `dask.array.reduction`.

        Parameters
        ----------
        packed : array_like, shape (..., d + 2); its other axes are those of rows of results.
        axis : int, or a tuple of one
        keepdims : whether the result has that axis, of length 1.

        Raises
        ------
        PackedState, AxisOutOfRange, InvalidAxis, InvalidFlag, NoStates

        >>> two = np.array([[2.0, 0.0, 1.0], [4.0, 0.0, 3.0]])  # of one column
        >>> AttentionState.merge_packed(two)
        array([3.5, 0. , 4. ])
        """
        array = as_array(packed, "packed")
        if array.ndim < len("sd") or array.shape[-1] < len(("row_max", "row_sum")):
            raise PackedState(found=array.shape)
        place = check_axes("merge_packed", axis, array.ndim - 1)[0]
        parts = np.moveaxis(array, place, 0)
        if not len(parts):
            raise NoStates
        states = [AttentionState(part[..., :-2], part[..., -2], part[..., -1]) for part in parts]
        found = merge_attention(states).packed()
        return np.expand_dims(found, place) if check_flag(keepdims, "keepdims") else found

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """What Dask names tasks by."""
        return (type(self).__name__, *self, self.layout)


def of_results(rows: Array, layout: str) -> Array:
    """One number per row, shaped to broadcast along the columns of its result."""
    swapped = layout == AttentionLayout.BSHD.value and rows.ndim > 1
    return (rows.swapaxes(-1, -2) if swapped else rows)[..., np.newaxis]


def attention_partial(q: Any, k: Any, v: Any, keywords: Keywords) -> AttentionState:
    """Implementation of `tilewright.attention_partial`, which documents it."""
    prepared = prepare(q, k, v, None, keywords)
    call, acc = prepared.call, prepared.call.row_max.dtype
    if prepared.target.dtype != acc:
        problem = prepared.problem
        target = np.empty(prepared.target.shape, acc)
        steps = tuple(step // call.out.itemsize * acc.itemsize for step in call.out.strides)
        call = call._replace(out=np.lib.stride_tricks.as_strided(target, call.out.shape, steps))
        partial = None if problem is None else problem.unrounded()
        prepared = prepared._replace(problem=partial, call=call, target=target)
    run(prepared, choose(prepared, AttentionStrategy.AUTO))
    states = [array.reshape(prepared.state_shape) for array in (call.row_max, call.row_sum)]
    layout = parse_choice(AttentionLayout, keywords.layout, "layout")
    return AttentionState(prepared.target, *states, layout=layout.value)


def _states(states: Iterable[Any], layout: Any) -> tuple[list[AttentionState], AttentionLayout]:
    """States whose shapes fit each other, and the layout of their results."""
    kind, names = "a sequence of AttentionState, or of (out, row_max, row_sum)", _StateArrays._fields
    asked = None if layout is None else parse_choice(AttentionLayout, layout, "layout").value
    given = []
    for state in check_items(states, "states", kind):
        parts = as_items(state)
        if parts is None or len(parts) != len(names):
            raise InvalidSequence(name="states", found=shown(states), required=kind)
        own = state.layout if isinstance(state, AttentionState) else asked or "bhsd"
        own = parse_choice(AttentionLayout, own, "layout").value
        numbers = (check_numbers(as_array(part, name), name) for part, name in zip(parts, names, strict=True))
        given.append(AttentionState(*numbers, layout=own))
    if not given:
        raise NoStates
    found = asked or given[0].layout
    for number, state in enumerate(given):
        if state.layout != found:
            raise StateLayouts(number=number, found=state.layout, required=found)
    shape, order = given[0].out.shape, AttentionLayout(found)
    rows = state_shape(shape, order)
    for number, state in enumerate(given):
        for name, array, required in zip(state._fields, state, (shape, rows, rows), strict=True):
            if array.shape != required:
                raise StateShape(number=number, name=name, found=array.shape, required=required)
    return given, order


def merge_attention(states: Iterable[Any], layout: Any = None) -> AttentionState:
    """Implementation of `tilewright.merge_attention`, which documents it."""
    given, order = _states(states, layout)

    row_max = np.maximum.reduce([state.row_max for state in given])
    base = np.where(row_max == -np.inf, 0, row_max)
    weights = [state.row_sum * np.exp(state.row_max - base) for state in given]
    row_sum = weights[0].copy()
    out = given[0].out * of_results(weights[0], order.value)
    for state, weight in zip(given[1:], weights[1:], strict=True):
        row_sum += weight
        out += state.out * of_results(weight, order.value)
    out /= of_results(np.where(row_sum == 0, 1, row_sum), order.value)
    return AttentionState(out, row_max, row_sum, layout=order.value)
