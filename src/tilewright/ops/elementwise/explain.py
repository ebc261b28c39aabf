"""What a call of a function of rows or of elements comes to: which axes vectors run along, what is moved."""

from __future__ import annotations

from typing import Any

from tilewright.calls.fastcall import native_entry_possible
from tilewright.compiler.explanation import Explanation, decision_text, kernel_strategy, thread_note
from tilewright.ir.trace import trace
from tilewright.ops.rows.kernel import ELEMENT_WORK, Prepared, RowCall
from tilewright.ops.rows.nest import row_sizes
from tilewright.ops.rows.problem import RowFunction
from tilewright.ops.rows.recipes import call_words, make_recipe
from tilewright.threads.pool import limited


def explain_function(function: Any, *arguments: Any, **options: Any) -> Explanation:
    """How a call of a function of `functions.py` or `reductions.py` runs; nothing is computed."""
    request = function.__self__.__wrapped__(*arguments, **options)
    with limited(request.threads):
        return _explained(function.__name__, request.prepare(), arguments, options)


def _explained(
    name: str, prepared: Prepared, arguments: tuple[Any, ...], options: dict[str, Any]
) -> Explanation:
    subject = f"{name} of {prepared.x.shape} {prepared.x.dtype}"
    notes = []
    if arguments and prepared.x is not arguments[0]:
        notes.append("x is copied: not aligned, or not of a type that kernels support")
    if prepared.out is not None and prepared.target is not prepared.out:
        notes.append("computed in a buffer, then copied to out: it overlaps an operand or has another type")
    call = prepared.call
    if call is None and prepared.moved is None:
        return Explanation(subject, "none", "nothing to do: the array is empty", (), tuple(notes), ())
    if call is None:
        notes.append("through Python")
        strategy = "arrays are moved so that elements of rows are adjacent, then computed in place"
        return Explanation(subject, "none on the arrays in place", strategy, (), tuple(notes), ())
    reason = _python_reason(prepared, arguments, options)
    notes.append("native entry from the second call on" if reason is None else f"through Python: {reason}")
    notes.append(thread_note(call.elements * ELEMENT_WORK))
    return Explanation(
        subject,
        call.kernel.name,
        kernel_strategy(call.kernel.compilation),
        _decisions(call),
        tuple(notes),
        (repr(call.kernel.blocking), f"{call.elements:,} elements, {_moved_bytes(call):,} bytes at least"),
    )


def _moved_bytes(call: RowCall) -> int:
    """Bytes of x and of the result, and of what stands beside once."""
    x, *others = call.arrays
    return call.elements * x.itemsize + sum(array.nbytes for array in others)


def _decisions(call: RowCall) -> tuple[str, ...]:
    """Those of the kernel, and whether results go past the caches."""
    names = dict(zip(row_sizes(), call.sizes, strict=True))
    scalars = dict(zip(call.kernel.nest.scalars, call.scalars, strict=True))
    found = [decision_text(decision) for decision in trace(call.kernel.nest, names, scalars).decisions]
    problem = call.kernel.problem
    if isinstance(problem, RowFunction) and not problem.op.reduces:
        past, least = call.elements >= call.kernel.blocking.stream_from, call.kernel.blocking.stream_from
        answer = "yes" if past else "no "
        found.append(f"{answer}  past the caches: {least} <= elements   (elements = {call.elements})")
    return tuple(found)


def _python_reason(prepared: Prepared, arguments: tuple[Any, ...], options: dict[str, Any]) -> str | None:
    """Why calls stay in Python; None where machine code repeats them."""
    call = prepared.repeatable
    checks = (
        (not native_entry_possible(), "this interpreter has another layout of objects"),
        (options.get("threads") is not None, "it was given threads"),
        (call is None, "the result is copied"),
        (call_words(None, arguments, options) is None, "a mutable argument cannot be a key of the cache"),
        (
            call is not None and make_recipe(call, arguments, options) is None,
            "an operand is copied, or strides vary",
        ),
    )
    return next((reason for holds, reason in checks if holds), None)
