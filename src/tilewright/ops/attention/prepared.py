"""A validated attention call: the kernel, its arguments, and what belongs to its results."""

from __future__ import annotations

from typing import NamedTuple

from tilewright.calls.operands import Array
from tilewright.ops.attention.kernel import AttentionCall
from tilewright.ops.attention.problem import Attention
from tilewright.ops.attention.sequences import SequenceSide


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
