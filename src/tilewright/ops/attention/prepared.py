"""A validated attention call: the kernel, its arguments, and the post-processing of its results."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilewright.calls.operands import Array
from tilewright.calls.recording import constant, new_array, numpy_call
from tilewright.ops.attention.kernel import AttentionCall
from tilewright.ops.attention.problem import Attention
from tilewright.ops.attention.sequences import SequenceSide

#: A number that changes no sum but 0, of every type of sums.
_LEAST = {np.dtype(kind): np.array(np.finfo(kind).tiny) for kind in (np.float32, np.float64)}


def log_sum_exp(row_max: Array, row_sum: Array) -> Array:
    """The logarithm of each row's sum of exponentials: -inf where no key is seen.

    >>> log_sum_exp(np.array([3.0, -np.inf]), np.array([1.0, 0.0]))
    array([  3., -inf])
    """
    found = new_array(row_sum.shape, row_sum.dtype)
    # A sum of 0 has a maximum of -inf, which stays the result; its logarithm would raise a flag. Other sums
    # are at least 1, the exponential of the maximum's distance from itself.
    numpy_call(np.add, row_sum, constant(_LEAST[row_sum.dtype]), found)
    numpy_call(np.log, found, found)
    numpy_call(np.add, found, row_max, found)
    return found


class PreparedAttention(NamedTuple):
    """A validated, converted call of `attention`; `given` is unchanged so far.

    Attributes
    ----------
    problem : the problem its kernel solves; None if kernels do not support the sizes of its heads.
    call : the kernel's arguments; `call.out` is a view of `target`.
    target : the array the kernel writes, in the shape and layout of the result.
    given : the caller's `out`, or None.
    state_shape : of lse.
    partial : whether some rows belong to no sequence and become zero.
    copies : a description of each copy.
    sides : the sequences of queries, and those of keys.
    by_contents : whether the table depends on the contents of arrays.
    """

    problem: Attention | None
    call: AttentionCall
    target: Array
    given: Array | None
    state_shape: tuple[int, ...]
    partial: bool
    copies: tuple[str, ...]
    sides: tuple[SequenceSide, SequenceSide]
    by_contents: bool = False
