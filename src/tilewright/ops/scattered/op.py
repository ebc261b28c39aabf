"""Products addressed through tables declared: their cut, nest, kernel names and C parameters."""

from __future__ import annotations

from tilewright.compiler.kernel import Kernel
from tilewright.compiler.operation import Compilation, Op
from tilewright.ops.scattered.nest import build_scattered, choose_scattered
from tilewright.ops.scattered.problem import ScatteredGemm


def _meaning(state: Compilation, name: str) -> str:
    if name in ("alpha", "beta"):
        return {"alpha": "factor of A * B", "beta": "factor of C"}[name]
    if name in state.program.sizes:
        return "products" if name == "batch" else "entries of its tables"
    return "elements" if len(name) == 1 else "table of offsets, runs or steps, in elements"


SCATTERED = Op(
    problem=ScatteredGemm,
    cut=choose_scattered,
    nest=build_scattered,
    stem=lambda problem: f"scattered_{problem.dtype}",
    kernel=Kernel,
    formula=lambda _: (
        "C[cm[i] + cn[j]] = alpha * sum of A[am[i] + ak[p]] * B[bn[j] + bk[p]] + beta * the same."
    ),
    meaning=_meaning,
    written=lambda _: ("c",),
)
