"""One computation of a plan: arrays, element types, and memory of intermediate results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, get_args

import numpy as np
from numpy.typing import DTypeLike

from tilewright.calls.operands import Array
from tilewright.calls.pieces import as_type
from tilewright.calls.promotion import (
    computing_dtype,
    narrowed,
    store,
    summed_in,
)
from tilewright.calls.recording import new_array
from tilewright.ops.einsum.pair import contract
from tilewright.ops.einsum.plan import EinsumPlan
from tilewright.ops.einsum.steps import PairStep, PermuteStep, Steps
from tilewright.ops.gemm.gufuncs import memory_order
from tilewright.ops.transpose.call import transpose
from tilewright.spec.arguments import check_word
from tilewright.spec.problem import check_elements
from tilewright.typing import Casting

_CASTING: tuple[str, ...] = get_args(Casting)


class EinsumOptions(NamedTuple):
    """The keywords of a call."""

    out: Array | None
    dtype: DTypeLike | None
    order: str
    casting: str
    optimize: Any

    def check(self) -> None:
        """The words among them.

        Raises
        ------
        InvalidChoice
        """
        memory_order(self.order)
        check_word(self.casting, "casting", _CASTING)

    def given(self) -> dict[str, Any]:
        """Those that are not as they are by default, as NumPy has them."""
        given = zip(self._fields, self, (None, None, "K", "safe", "auto"), strict=True)
        return {name: value for name, value, usual in given if value is not usual}


class Types(NamedTuple):
    """Element types of one call.

    Attributes
    ----------
    result : of the result.
    computed : that operands are converted to.
    partial : of what steps before the last make: 16-bit floats stay in the 32 bits that they are summed in.
    """

    result: np.dtype[Any]
    computed: np.dtype[Any]
    partial: np.dtype[Any]

    @classmethod
    def of(cls, result: np.dtype[Any], operands: Sequence[Array] = ()) -> Types:
        """Those of calls with this result: operands are not rounded to it, results are once."""
        given = tuple([operand.dtype for operand in operands if operand.dtype is not result])
        computed = computing_dtype(given, result) if given else result
        return cls(result, computed, summed_in(computed))

    def of_sum(self, operand: Array, steps: Steps) -> np.dtype[Any] | None:
        """In which type an operand is summed by itself, None: in its own."""
        wanted = self.partial if steps else self.result
        return None if operand.dtype == wanted else wanted

    def alike(self, a: Array, b: Array) -> tuple[Array, Array]:
        """Two operands, in 32 bits if one was made so."""
        if self.partial == self.result or a.dtype == b.dtype or self.partial not in (a.dtype, b.dtype):
            return a, b
        return as_type(a, self.partial), as_type(b, self.partial)


class ResultMemory(Protocol):
    """Memory of intermediate results."""

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An array that nothing else uses until it is given back."""

    def give_back(self, array: Array) -> None:
        """An array that was taken, or any other, is needed no more."""


class _Fresh:
    """New memory for every result."""

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        check_elements("a result", shape)
        return new_array(shape, dtype)

    def give_back(self, array: Array) -> None:
        """Nothing: the array goes when nothing refers to it."""


FRESH = _Fresh()


class EinsumRun:
    """One computation of a plan: `step` for each step in order, then `result`.

    Parameters
    ----------
    out : receives the result; shares no memory with an operand.
    memory : for results on the way whose order is chosen.
    """

    def __init__(
        self,
        plan: EinsumPlan,
        operands: Sequence[Array],
        out: Array | None,
        types: Types,
        memory: ResultMemory,
    ) -> None:
        self.plan, self.out, self.types, self.memory = plan, out, types, memory
        self.arrays: list[Any] = [
            operand if collapse is None else collapse.compute(operand, types.of_sum(operand, plan.steps))
            for collapse, operand in zip(plan.collapses, operands, strict=True)
        ]
        pairs = (place for place, step in enumerate(plan.steps) if isinstance(step, PairStep))
        self.product = max(pairs, default=-1)

    def step(self, place: int) -> None:
        """Computes one step."""
        step, arrays, types = self.plan.steps[place], self.arrays, self.types
        if isinstance(step, PermuteStep):
            array = arrays[step.place]
            arrays[step.place] = None  # its memory may be free from here on
            shape = tuple(array.shape[axis] for axis in step.axes)
            last = place == len(self.plan.steps) - 1  # which is returned
            arrays.append(transpose(array, step.axes, None if last else self.memory.take(shape, array.dtype)))
            self.memory.give_back(array)
            return
        a, b, made, target = arrays[step.left], arrays[step.right], types.partial, None
        if place == self.product:
            a, b = types.alike(a, b)
            made = types.result
        if place == len(self.plan.steps) - 1:
            target = None if self.out is None else self.out.squeeze(self.plan.squeezed)
        elif step.shape is not None:
            target = self.memory.take(step.shape, made)
        arrays[step.left] = arrays[step.right] = None
        dtype = None if a.dtype == b.dtype == made else made
        arrays.append(contract(a, b, *step.labels, target, dtype=dtype))
        self.memory.give_back(a)
        self.memory.give_back(b)

    def result(self) -> Array:
        """The result, or `out`."""
        plan, out = self.plan, self.out
        found: Array = self.arrays[-1]
        if self.product < 0:
            found = narrowed(found, self.types.result)
        if out is None:
            return found.reshape(plan.shape)
        written = bool(plan.steps) and self.product == len(plan.steps) - 1
        return out if written else copied_into(found.reshape(plan.shape), out)


def run_plan(plan: EinsumPlan, operands: Sequence[Array], out: Array | None, types: Types) -> Array:
    """The result of a plan, or `out`, which shares no memory with an operand."""
    one = EinsumRun(plan, operands, out, types, FRESH)
    for place in range(len(plan.steps)):
        one.step(place)
    return one.result()


def copied_into(found: Array, out: Array) -> Array:
    """`out`, to which a result was copied."""
    store(found, out)
    return out
