"""Predicted cycles of every strategy by part, and the roofline of a machine."""

from __future__ import annotations

from typing import Any

from tilewright.compiler.alternatives import PredictedPath, predicted_alternatives
from tilewright.compiler.example import Example
from tilewright.compiler.kernel import Kernel
from tilewright.errors import TilewrightError
from tilewright.machine.machine import Machine
from tilewright.ops.gemm.paths import product_paths
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.matmul.explain import product_words
from tilewright.records import dataclass
from tilewright.spec.dtype import DType
from tilewright.spec.problem import PRODUCT_SIZES, Strategy

#: What each part of a prediction counts, in words.
PARTS = {
    "multiply": "multiply-adds, or the latency of sums that are too few",
    "functions": "other arithmetic on vectors: exponentials, reductions, conversions",
    "tiles": "calls, addresses and updates of C",
    "packing": "copies into panels and into other orders",
    "l1": "loads and stores that take longer than the arithmetic on them",
    "l2": "waiting for L2",
    "l3": "waiting for L3",
    "memory": "waiting for memory",
    "tlb": "page walks: translations that the TLB lacks",
}


def predicted_paths(kernel: Kernel, example: Example) -> tuple[PredictedPath, ...]:
    """The paths of a kernel, that which is taken first, then the others, fewest predicted cycles first.

    Examples
    --------
    >>> import tilewright as tw
    >>> from tilewright.compiler.matrix_example import example_of
    >>> kernel = tw.compile(tw.Gemm(100, 100, 100), "znver4")
    >>> [(path.name, path.taken) for path in predicted_paths(kernel, example_of(kernel, {}))][0]
    ('IN_PLACE', True)
    """
    problem = kernel.problem
    if not isinstance(problem, Gemm):
        return predicted_alternatives(kernel.compilation, example.sizes, example.tables)
    if problem.strategy is not Strategy.AUTO or problem.packed or problem.weights:
        return predicted_alternatives(kernel.compilation, example.sizes, example.tables, product_words)
    return product_paths(problem, kernel.machine, tuple(example.sizes[name] for name in PRODUCT_SIZES))


@dataclass(frozen=True)
class Roofline:
    """What a core can do, and where a problem is.

    Attributes
    ----------
    peak : operations a cycle of the multiply unit; 0 if the machine has none for the element types.
    levels : bytes a cycle from each level of memory.
    intensity : operations for each byte that a call must move.
    flops : of the example.
    predicted : operations a cycle of the strategy that is taken, as predicted; None without a prediction.
    points : operations a cycle that were measured, by system.
    """

    peak: float
    levels: tuple[tuple[str, float], ...]
    intensity: float
    flops: int
    predicted: float | None
    points: tuple[tuple[str, float], ...] = ()


def chosen_sums(problem: Any) -> DType | None:
    """The type of a problem's sums if it is not the one that follows from its element types."""
    return getattr(getattr(problem, "types", None), "chosen", None)


def peak_rate(a: DType, b: DType, machine: Machine, sums: DType | None = None) -> float:
    """Operations a cycle of the multiply unit for two element types; 0 if the machine has none."""
    try:
        tile = machine.timed_isa.tile(a.real, b.real, sums)
    except TilewrightError:
        return 0.0
    return 2.0 * tile.products * machine.timed_isa.rate(tile)


def peak_of(problem: Any, machine: Machine) -> float:
    """Operations a cycle of the multiply unit for a problem's element types."""
    a = getattr(problem, "dtype", None)
    if a is None:
        return 0.0
    return peak_rate(a, getattr(problem, "b_dtype", None) or a, machine, chosen_sums(problem))


def roofline_of(kernel: Kernel, paths: tuple[PredictedPath, ...], counts: tuple[int, int]) -> Roofline:
    """The roofline of a kernel's machine.

    Parameters
    ----------
    counts : operations and bytes of the example.
    """
    core = kernel.machine.core
    levels = [("L1", core.l1_bytes_per_cycle), ("L2", core.l2_bytes_per_cycle)]
    if kernel.machine.l3 is not None:
        levels.append(("L3", core.l3_bytes_per_cycle))
    levels.append(("memory", core.memory_bytes_per_cycle))
    flops, moved = counts
    taken = next((one for one in paths if one.taken and one.cycles), None)
    predicted = flops / taken.cycles if taken is not None else None
    peak = peak_of(kernel.problem, kernel.machine)
    return Roofline(peak, tuple(levels), flops / max(moved, 1), flops, predicted)
