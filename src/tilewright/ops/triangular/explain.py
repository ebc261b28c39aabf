"""Explanations of `syrk`, `syr2k` and `trmm` calls: the kernel, the copies, the number of runs."""

from __future__ import annotations

import math
from typing import Any

from tilewright.compiler.explanation import Explanation, kernel_strategy, thread_note
from tilewright.compiler.kernel import Kernel
from tilewright.ops.triangular import syr2k_call as syr2k
from tilewright.ops.triangular import trmm_call as trmm
from tilewright.ops.triangular.syr2k_call import SymmetricCall
from tilewright.ops.triangular.trmm_call import Triangular, TrmmCall
from tilewright.ops.triangular.trmm_problem import Side
from tilewright.spec.arguments import check_flag, check_number, parse_choice
from tilewright.threads.pool import limited


def explain_triangles(name: str, *arguments: Any, **options: Any) -> Explanation:
    """Explain how a call of one of these functions runs, without computing it."""
    with limited(options.pop("threads", None)):
        return _explain_trmm(*arguments, **options) if name == "trmm" else _explain(name, arguments, options)


def _explain(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Explanation:
    """Explain a symmetric product; the call's number of threads is already set."""
    count = 1 if name == "syrk" else 2
    lower, out = check_flag(options.pop("lower", True), "lower"), options.pop("out", None)
    later = [one for one in ("alpha", "beta") if isinstance(check_number(options.get(one, 0), one), complex)]
    kept = {one: value for one, value in options.items() if one not in later}
    out = arguments[count] if len(arguments) > count else out
    call = syr2k.prepare(name, list(arguments[:count]), out, lower=lower, **kept)
    rows, depth = call.factors[0].shape[-2:]
    work = count * rows * rows * depth // 2
    notes = [*call.copies, *(f"{one} applies to the finished product" for one in later)]
    if call.target.size == 0:
        return _nothing(name, call, notes)
    kernel, c = syr2k.kernel_of(call, lower=lower)
    if kernel.problem.lower is not lower:
        notes.append("computed as the transposed product, whose rows are contiguous")
    return _explained(name, call, kernel, notes, (math.prod(c.shape[:-2]), work))


def _explain_trmm(
    a: Any,
    b: Any,
    out: Any = None,
    *,
    alpha: Any = 1,
    lower: bool = True,
    unit: bool = False,
    side: str = "left",
) -> Explanation:
    """Explain a product with a triangular matrix."""
    triangular = Triangular(
        parse_choice(Side, side, "side"), check_flag(lower, "lower"), check_flag(unit, "unit")
    )
    call = trmm.prepare(a, b, out, alpha=alpha, triangular=triangular)
    notes = [f"{one} is copied: another dtype, alignment, or shared memory" for one in call.copies]
    if call.later is not None:
        notes.append("alpha applies to the finished product")
    if call.target.size == 0:
        return _nothing("trmm", call, notes)
    left, right = call.factors
    work = math.prod(right.shape[-2:]) * left.shape[-1] // 2
    kernel = call.kernel
    if "block_sums" in {buffer.name for buffer in kernel.nest.buffers}:
        notes.append(
            "sums are kept in a buffer: C would round them, or is transposed with respect to the tiles"
        )
    return _explained("trmm", call, kernel, notes, (math.prod(right.shape[:-2]), work))


def _subject(name: str, call: SymmetricCall | TrmmCall) -> str:
    shapes = ", ".join(str(factor.shape) for factor in call.factors)
    return f"{name} of {shapes} in {call.types.name}"


def _nothing(name: str, call: SymmetricCall | TrmmCall, notes: list[str]) -> Explanation:
    return Explanation(_subject(name, call), "none", "nothing to do: a size is 0", (), tuple(notes), ())


def _explained(
    name: str,
    call: SymmetricCall | TrmmCall,
    kernel: Kernel,
    notes: list[str],
    counts: tuple[int, int],
) -> Explanation:
    """The explanation, given how many matrices there are and the multiply-adds of one."""
    matrices, work = counts
    if matrices > 1:
        notes.append(f"a batch of {matrices} products, one after the other")
    notes += ["through Python", thread_note(work)]
    strategy = kernel_strategy(kernel.compilation)
    figures = (repr(kernel.blocking), f"{2 * work * matrices:,} flops")
    return Explanation(_subject(name, call), kernel.name, strategy, (), tuple(notes), figures)
