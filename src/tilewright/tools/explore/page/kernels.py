"""Pages about one problem on one target or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.calls.compile import compile_problem
from tilewright.compiler.kernel import Kernel
from tilewright.compiler.operation import Problem
from tilewright.compiler.target import resolve_target
from tilewright.errors import InvalidChoice, shown
from tilewright.machine.machine import Machine
from tilewright.tools.explore.page.build import Exploration, exploration
from tilewright.tools.explore.page.measured_points import add_measured
from tilewright.tools.explore.page.record import kernel_record


def explore_problem(
    problem: Problem,
    targets: Sequence[str | Machine | None] = (None,),
    sizes: Mapping[str, int] | None = None,
    peers: Sequence[str] | None = None,
) -> Exploration:
    """The page of a problem.

    Parameters
    ----------
    problem : what is compiled for each target.
    targets : names of targets or machines; this host by default.
    sizes : lengths of axes that the problem leaves open, for the call that is drawn.
    peers : systems to measure on this host beside Tilewright; None if nothing is measured.

    Raises
    ------
    NotMeasured : the problem is no product of known sizes, or this host is not among the targets.

    Examples
    --------
    >>> import tilewright as tw
    >>> page = explore_problem(tw.Gemm(64, 64, 64), ["znver4", "neoverse-v2"])
    >>> [target["cut"]["values"]["mr"] for target in page.record["targets"]]
    [6, 12]
    """
    machines = [resolve_target(target) for target in targets]
    kernels = [compile_problem(problem, machine) for machine in machines]
    records = [kernel_record(kernel, sizes or {}) for kernel in kernels]
    if peers is not None:
        add_measured(problem, machines, records, peers)
    return exploration(title_of(kernels[0]), records)


def explore_kernel(
    kernel: Kernel, targets: Sequence[str | Machine] = (), sizes: Mapping[str, int] | None = None
) -> Exploration:
    """The page of a kernel, and of the same problem on further targets; see `Kernel.explore`."""
    records = [kernel_record(kernel, sizes or {})]
    for target in targets:
        machine = resolve_target(target)
        if machine != kernel.machine:
            records.append(kernel_record(compile_problem(kernel.problem, machine), sizes or {}))
    return exploration(title_of(kernel), records)


def title_of(kernel: Kernel) -> str:
    """The kernel's name without its row: what all targets have in common."""
    return kernel.name.removesuffix(f"_{kernel.machine.isa.name}")


def parse_sizes(text: str) -> dict[str, int]:
    """Lengths of axes, from text such as m=512,n=512.

    >>> parse_sizes("m=512, keys=1024")
    {'m': 512, 'keys': 1024}

    Raises
    ------
    InvalidChoice
    """
    found = {}
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, _, size = word.partition("=")
        if not size.isdecimal() or int(size) < 1:
            raise InvalidChoice(
                name="size", found=shown(text), allowed="a length for each axis, as m=512,n=512"
            )
        found[name.strip()] = int(size)
    return found
