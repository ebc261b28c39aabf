"""Pages about one problem on one target or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.calls.compile import compile_problem
from tilewright.compiler.kernel import Kernel
from tilewright.compiler.operation import Problem
from tilewright.compiler.target import resolve_target
from tilewright.errors import InvalidChoice, shown
from tilewright.machine.machine import Machine
from tilewright.tools.bench.peers import find_peer
from tilewright.tools.explore.page.build import Exploration, exploration
from tilewright.tools.explore.page.measured_points import add_measured, check_measurable
from tilewright.tools.explore.page.record import kernel_record


def explore_problem(
    problem: Problem,
    targets: Sequence[str | Machine | None] = (None,),
    sizes: Mapping[str, int] | None = None,
    *,
    measure: bool = False,
    peers: Sequence[str] | None = None,
) -> Exploration:
    """The page of a problem.

    Parameters
    ----------
    problem : what is compiled for each target.
    targets : names of targets or machines; this host by default.
    sizes : lengths of axes that the problem leaves open, for the call that is drawn.
    measure : whether to run the call that is drawn on this host, which takes seconds.
    peers : systems to measure beside it; by default those that are installed and compute the problem.

    Raises
    ------
    NotMeasured : nothing can be measured, since this host is not among the targets.

    Examples
    --------
    >>> import tilewright as tw
    >>> page = explore_problem(tw.Gemm(64, 64, 64), ["znver4", "neoverse-v2"])
    >>> [target["cut"]["values"]["mr"] for target in page.record["targets"]]
    [6, 12]
    """
    machines = [resolve_target(target) for target in targets]
    kernels = [compile_problem(problem, machine) for machine in machines]
    return _page(kernels, sizes or {}, measure=measure, peers=peers)


def explore_kernel(
    kernel: Kernel,
    targets: Sequence[str | Machine] = (),
    sizes: Mapping[str, int] | None = None,
    *,
    measure: bool = False,
    peers: Sequence[str] | None = None,
) -> Exploration:
    """The page of a kernel, and of the same problem on further targets; see `Kernel.explore`."""
    machines = [machine for machine in map(resolve_target, targets) if machine != kernel.machine]
    kernels = [kernel, *(compile_problem(kernel.problem, machine) for machine in machines)]
    return _page(kernels, sizes or {}, measure=measure, peers=peers)


def _page(
    kernels: Sequence[Kernel], sizes: Mapping[str, int], *, measure: bool, peers: Sequence[str] | None
) -> Exploration:
    """The page of kernels of one problem."""
    if measure:
        check_measurable(kernels, peers)
    records = [kernel_record(kernel, sizes) for kernel in kernels]
    if measure:
        add_measured(kernels, records, peers, sizes)
    return exploration(title_of(kernels[0]), records)


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


def parse_peers(text: str) -> tuple[str, ...] | None:
    """Names of peers, from text such as numpy,torch; "none" for none, and None for the usual ones.

    >>> parse_peers("numpy, torch"), parse_peers("none"), parse_peers("")
    (('numpy', 'torch'), (), None)

    Raises
    ------
    InvalidChoice
    """
    if text.strip() == "none":
        return ()
    names = tuple(filter(None, (part.strip() for part in text.split(","))))
    return tuple(find_peer(name).name for name in names) or None
