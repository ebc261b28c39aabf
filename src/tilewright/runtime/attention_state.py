"""Attention to a part of the keys, and the state that such parts are merged by."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from tilewright.errors import NoStates, StateShape
from tilewright.runtime.attention_arrays import AttentionLayout, Keywords, prepare
from tilewright.runtime.attention_call import log_sum_exp
from tilewright.runtime.attention_front import Strategy, choose, run
from tilewright.runtime.operands import Array
from tilewright.spec.choice import parse_choice


class AttentionState(NamedTuple):
    """What attention to some keys comes to, in float32 (float64 of float64 queries).

    Attributes
    ----------
    out : the result of these keys alone, in the shape of `tilewright.attention`'s, not rounded to q's type.
    row_max : the largest score of each row, -inf where no key is seen; of out's shape without its last axis.
    row_sum : the sum of e^(score - row_max) of each row, 0 where no key is seen.
    """

    out: Array
    row_max: Array
    row_sum: Array

    @property
    def lse(self) -> Array:
        """The logarithm of each row's sum of exponentials.

        >>> AttentionState(np.zeros((1, 2)), np.array([3.0]), np.array([1.0])).lse
        array([3.])
        """
        return log_sum_exp(self.row_max, self.row_sum)


def attention_partial(q: Any, k: Any, v: Any, keywords: Keywords) -> AttentionState:
    """What `tilewright.attention_partial` does, which documents it."""
    prepared = prepare(q, k, v, None, keywords)
    call, acc = prepared.call, prepared.call.row_max.dtype
    if prepared.target.dtype != acc:
        problem = prepared.problem
        target = np.empty(prepared.target.shape, acc)
        steps = tuple(step // call.out.itemsize * acc.itemsize for step in call.out.strides)
        call = call._replace(out=np.lib.stride_tricks.as_strided(target, call.out.shape, steps))
        partial = None if problem is None else problem.unrounded()
        prepared = prepared._replace(problem=partial, call=call, target=target)
    run(prepared, choose(prepared, Strategy.AUTO))
    states = [array.reshape(prepared.state_shape) for array in (call.row_max, call.row_sum)]
    layout = parse_choice(AttentionLayout, keywords.layout, "layout")
    if layout is AttentionLayout.BSHD and prepared.target.ndim > 2:
        states = [np.ascontiguousarray(state.swapaxes(-1, -2)) for state in states]
    return AttentionState(prepared.target, *states)


def merge_attention(states: Iterable[Any]) -> AttentionState:
    """What `tilewright.merge_attention` does, which documents it."""
    given = [AttentionState(*map(np.asarray, state)) for state in states]
    if not given:
        raise NoStates
    shape = given[0].out.shape
    for number, state in enumerate(given):
        for name, array, required in zip(state._fields, state, (shape, shape[:-1], shape[:-1]), strict=True):
            if array.shape != required:
                raise StateShape(number=number, name=name, found=array.shape, required=required)
    row_max = np.maximum.reduce([state.row_max for state in given])
    base = np.where(row_max == -np.inf, 0, row_max)
    weights = [state.row_sum * np.exp(state.row_max - base) for state in given]
    row_sum = weights[0].copy()
    out = given[0].out * weights[0][..., np.newaxis]
    for state, weight in zip(given[1:], weights[1:], strict=True):
        row_sum += weight
        out += state.out * weight[..., np.newaxis]
    out /= np.where(row_sum == 0, 1, row_sum)[..., np.newaxis]
    return AttentionState(out, row_max, row_sum)
