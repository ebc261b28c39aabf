"""`tilewright.schedule`: a schedule for a contraction."""

from __future__ import annotations

from tilewright.compiler.target import resolve_target
from tilewright.errors.callers import named_in_errors
from tilewright.machine.machine import Machine
from tilewright.ops.contraction.problem import Contraction
from tilewright.ops.contraction.schedule import passes


@named_in_errors
def schedule(contraction: Contraction, target: str | Machine | None = None) -> Contraction:
    """The same contraction with a schedule for a machine: how its dimensions run, in which order.

    Dimensions that are one in every operand are fused; the primitive and its dimensions are those of the
    least estimated cycles; what caches don't hold is cut; outer loops become tasks, if need be after a cut.
    Order and execution of the given dimensions are not looked at. `compile` does this where all are
    sequential.

    Parameters
    ----------
    contraction : of one operand or two.
    target : as in `compile`.

    Returns
    -------
    Contraction
        It means the same, on the same memory. Sizes of run time are given in the same order.

    Raises
    ------
    ContractionPrimitive : if no primitive takes the element types.
    UnknownTarget, InvalidTarget, UnknownTriple, UnknownCpu, UnknownFeature : as `compile`.

    Examples
    --------
    >>> import tilewright as tw
    >>> found = tw.schedule(tw.einsum_contraction("bij,bjk->bik", (4, 64, 64), (4, 64, 64)), "znver5")
    >>> print(found)
    contraction dtype=f32 in1_dtype=f32 out_dtype=f32 main=gemm first=zero
    c sequential 4  in0=4096 in1=4096 out=4096
    m primitive  64 in0=64   in1=0    out=64
    n primitive  64 in0=0    in1=1    out=1
    k primitive  64 in0=1    in1=64   out=0
    """
    return passes.schedule(contraction, resolve_target(target))
