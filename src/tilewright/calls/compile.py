"""Problem and target in, kernel out."""

from __future__ import annotations

from typing import Any

from tilewright.calls.kernels import new_kernel
from tilewright.compiler.kernel import Kernel
from tilewright.compiler.operation import Problem, operation_of
from tilewright.compiler.target import resolve_target
from tilewright.errors.callers import named_in_errors
from tilewright.machine.isa import Lowering
from tilewright.machine.machine import Machine
from tilewright.spec.arguments import parse_choice
from tilewright.typing import LoweringName


def compile_problem(
    problem: Any, target: str | Machine | None = None, lowering: Lowering | LoweringName = Lowering.TARGET
) -> Any:
    """The kernel of a problem, of the class that its operation has: see `compile`."""
    operation_of(problem)  # refused before an invalid target is
    machine = resolve_target(target).with_lowering(parse_choice(Lowering, lowering, "lowering"))
    return new_kernel(problem, machine)


@named_in_errors
def compile(
    problem: Problem,
    target: str | Machine | None = None,
    *,
    lowering: Lowering | LoweringName = "target",
) -> Kernel:
    """Compiles a problem for this host or another machine.

    Parameters
    ----------
    problem : what to compute. A `Contraction` whose dimensions are all sequential gets a `schedule` first.
    target : None or "host" for this host, a name of `targets()`, "triple:cpu" or "triple:cpu:+features"
        in LLVM's names (such as "aarch64-linux-gnu:neoverse-n2:+sve"), or a `Machine`.
    lowering : who writes the tile products: "target", this package by the target's multiply instructions,
        or "generic", LLVM from its intrinsic `llvm.matrix.multiply` (Kuzma et al. 2023, §3.2).

    Raises
    ------
    NotAProblem, InvalidChoice, UnknownTarget, InvalidTarget, UnknownTriple, UnknownCpu, UnknownFeature,
    UnsupportedDtype, CompilationFailed

    Examples
    --------
    >>> import tilewright as tw
    >>> tw.compile(tw.Gemm(m=8, n=8, k=8)).flops
    1024
    """
    kernel: Kernel = compile_problem(problem, target, lowering)
    return kernel
