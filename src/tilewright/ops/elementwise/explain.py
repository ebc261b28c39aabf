"""What a call of a function of rows or of elements comes to: which axes vectors run along, what is moved."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from tilewright.calls.layout import native_entry_possible, why_not_native
from tilewright.compiler.alternatives import predicted_alternatives
from tilewright.compiler.explanation import Considered, Explanation, kernel_strategy, thread_note
from tilewright.macro.partition import MOVED_WORK
from tilewright.ops.rows.kernel import Prepared, RowCall
from tilewright.threads.pool import limited


def explain_function(function: Any, *arguments: Any, **options: Any) -> Explanation:
    """How a call of a function of `functions.py` or `reductions.py` runs; nothing is computed."""
    request = inspect.unwrap(function.__self__)(*arguments, **options)
    with limited(request.threads):
        return _explained(function.__name__, request.prepare(), arguments)


def _explained(name: str, prepared: Prepared, arguments: tuple[Any, ...]) -> Explanation:
    subject = f"{name} of {prepared.x.shape} {prepared.x.dtype}"
    notes = []
    if arguments and prepared.x is not arguments[0]:
        notes.append("x is copied: not aligned, or not of a type that kernels support")
    if prepared.out is not None and prepared.target is not prepared.out:
        notes.append("computed in a buffer, then copied to out: it overlaps an operand or has another type")
    call = prepared.call
    if call is None and prepared.moved is None:
        return Explanation(subject, "none", "nothing to do: the array is empty", (), tuple(notes), ())
    notes.append(_entry_note(prepared))
    if call is None:
        strategy = "arrays are moved so that elements of rows are adjacent, then computed in place"
        return Explanation(subject, "none on the arrays in place", strategy, (), tuple(notes), ())
    notes.append(thread_note(call.elements * MOVED_WORK))
    considered = _considered(call)
    return Explanation(
        subject,
        call.kernel.name,
        kernel_strategy(call.kernel.compilation),
        tuple(one.decision for one in considered),
        tuple(notes),
        (repr(call.kernel.blocking), f"{call.elements:,} elements, {_moved_bytes(call):,} bytes at least"),
        considered,
    )


def _moved_bytes(call: RowCall) -> int:
    """Bytes of x and of the result, and of what stands beside once."""
    x, *others = call.arrays
    return call.elements * x.itemsize + sum(array.nbytes for array in others)


def _considered(call: RowCall) -> tuple[Considered, ...]:
    """The paths of the kernel: what is kept between passes, and whether results go past the caches."""
    names = dict(zip(call.kernel.nest.sizes, call.sizes, strict=True))
    scalars = dict(zip(call.kernel.nest.scalars, call.scalars, strict=True))
    return tuple(
        path.considered
        for path in predicted_alternatives(call.kernel.compilation, names, {}, scalars=scalars)
    )


def _entry_note(prepared: Prepared) -> str:
    """Whether machine code repeats the call."""
    out, target = prepared.out, prepared.target
    if not native_entry_possible():
        return f"through Python: {why_not_native()}"
    if out is not None and not np.can_cast(target.dtype, out.dtype, "safe"):
        return "through Python: the result is rounded when it is copied to out"
    return "native entry from the second call on"
