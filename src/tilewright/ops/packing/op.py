"""Packing declared: its cut, nest, kernel names and C parameters."""

from __future__ import annotations

from tilewright.compiler.operation import Compilation, Op
from tilewright.macro.packing import PanelForm, panel_form
from tilewright.ops.packing.call import PackingKernel
from tilewright.ops.packing.nest import build_packing
from tilewright.ops.packing.problem import Packing
from tilewright.spec.problem import Role

_LANES = {Role.A: "rows", Role.B: "columns"}


def _meaning(state: Compilation, name: str) -> str:
    problem: Packing = state.problem
    source, panels = state.program.arguments
    shape = "lanes x depth" if problem.role is Role.A else "depth x lanes"
    return {
        "source": f"{shape} of {source.dtype}, any strides",
        "panels": f"panels of {panels.dtype}",
        "lanes": f"{_LANES[problem.role]} of the matrix",
        "depth": "the other of its sizes",
        "lane_stride": "from one lane to the next",
        "depth_stride": "from one depth to the next",
    }[name]


def _strategy(state: Compilation) -> str:
    form: PanelForm = state.blocking
    return f"a copy into tiles of {form.lanes} lanes and {form.kr} depths, panel after panel"


PACKING = Op(
    problem=Packing,
    cut=lambda problem, machine: panel_form(problem.types, problem.role, machine),
    nest=lambda problem, form, _, name: build_packing(problem, form, name),
    stem=lambda problem: f"pack_{problem.role.value}_{problem.dtype}_with_{problem.other}",
    kernel=PackingKernel,
    formula=lambda problem: (
        f"Packs a matrix in the role of {problem.role.value.upper()}: lanes are its {_LANES[problem.role]}."
    ),
    overlap=lambda _: "The panels overlap nothing; strides are in elements.",
    meaning=_meaning,
    strategy=_strategy,
)
