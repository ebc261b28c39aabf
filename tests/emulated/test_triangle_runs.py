"""syrk, syr2k and trmm on every row that an emulator runs: triangles, sides, several blocks, guard pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from shares import share
from support import Array

from emulated.case_file import UNREAD, UNWRITTEN, Case, Placed, Signature, Values, image
from emulated.elements import Filling, cut, stored
from emulated.emulators import emulated_machines
from emulated.kernels import Emitted, Kernels
from emulated.runs import run, skip_without_tools
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import Blocking
from tilewright.ops.triangular.syr2k_problem import Syr2k, Syrk
from tilewright.ops.triangular.trmm_problem import Side, Trmm
from tilewright.spec.dtype import BF16, F32, DType
from tilewright.spec.problem import Layout

#: The first machine of each row and unit.
RUN = tuple(
    {
        (machine.isa.name, *(machine.isa.tile(dtype).instruction for dtype in (F32, BF16))): machine
        for machine in reversed(emulated_machines())
    }.values()
)
#: Of which each machine runs every fourth one in `make test`; the next machine runs the next ones.
PROBLEMS: tuple[Syrk | Trmm, ...] = (
    Syr2k(c="col"),
    Syrk(dtype="bf16", a="col", lower=False),
    Trmm(dtype="f64", lower=False, unit=True),
    Trmm(dtype="bf16", side="right"),
    Syr2k(dtype="c64", lower=False),
    Syrk(dtype="i8", out_dtype="i32"),
    Trmm(b="col", c="col", side="right", unit=True),
    Trmm(dtype="c128", c="strided"),
)
SHARED = 6
FACTORS = ((1.0, 0.0), (2.0, -1.0), (0.0, 3.0))


def operands(
    problem: Syrk | Trmm, cut_by: Blocking, turn: int
) -> tuple[dict[str, int], list[tuple[int, int]]]:
    """Sizes beyond the blocks of small caches, or of one tile, and the shape of each operand."""
    long, short = ((cut_by.kc + 5, cut_by.nr + 3), (cut_by.nr + cut_by.mr + 1, 3), (1, 1))[turn % 3]
    if isinstance(problem, Syrk):
        n, k = (cut_by.nr + cut_by.mr + 1, long) if turn % 3 == 0 else (long, short)
        return {"n": n, "k": k}, [*((n, k) for _ in problem.factors), (n, n)]
    order = long
    m, n = (order, short) if problem.side is Side.LEFT else (short, order)
    return {"m": m, "n": n}, [(order, order), (m, n), (m, n)]


def strides(layout: Layout, rows: int, columns: int, gap: int) -> tuple[int, int]:
    """Strides in elements, with a gap between lines."""
    if layout is Layout.STRIDED:
        return 2 * columns + gap, 2
    return (1, rows + gap) if layout is Layout.COL else (columns + gap, 1)


def result(problem: Syrk | Trmm, arrays: list[Array], alpha: float, beta: float) -> Array:
    """What C holds afterwards; what is not to be read is overwritten in the arrays."""
    *given, c = arrays
    if isinstance(problem, Trmm):
        expected = stored(problem.reference(*given, alpha=alpha), problem.out_dtype)
        kept = np.tri(len(given[0]), k=-1 if problem.unit else 0, dtype=bool)
        given[0][~(kept if problem.lower else kept.T)] = np.nan
        inside: Array = np.ones(c.shape, bool)
    else:
        expected = stored(problem.reference(*arrays, alpha=alpha, beta=beta), problem.out_dtype)
        inside = np.tri(len(c), dtype=bool)
        inside = inside if problem.lower else inside.T
        expected = np.where(inside, expected, c)
    if isinstance(problem, Trmm) or beta == 0:
        c[inside] = unread(problem.out_dtype)
    if alpha == 0:
        for array in given:
            array[...] = unread(problem.dtype)
    return expected


def unread(dtype: DType) -> float:
    """A value that spoils whatever it is added to."""
    return 99 if dtype.is_integer else np.nan


def case(kernel: Emitted, turn: int) -> Case:
    """One call; factors, sizes, gaps and ends take turns."""
    problem, blocking = kernel.problem, kernel.cut
    assert isinstance(problem, Syrk | Trmm)
    assert isinstance(blocking, Blocking)
    sizes, shapes = operands(problem, blocking, turn)
    alpha, beta = FACTORS[turn % len(FACTORS)]
    arrays = [
        cut(operand.dtype, Filling.EXACT, seed, shape, turn)
        for seed, (operand, shape) in enumerate(zip(problem.operands, shapes, strict=True))
    ]
    expected = result(problem, arrays, alpha, beta)
    placed, integers = [], dict(sizes)
    for number, (operand, array) in enumerate(zip(problem.operands, arrays, strict=True)):
        step = strides(operand.layout, len(array), array.shape[1], turn % 2)
        integers |= {f"rs_{operand.name}": step[0], f"cs_{operand.name}": step[1]}
        written = operand.name == "c"
        gap = UNWRITTEN if written else UNREAD
        one = Placed(*image(array, step, gap), argument=number, at_end=bool((turn + number) % 2))
        placed.append(replace(one, expected=image(expected, step, gap)[0]) if written else one)
    return Case(
        label=f"{kernel.name} {sizes} alpha {alpha:g} beta {beta:g} case {turn}",
        kernel=kernel.number,
        signature=Signature.ADAPTED,
        element=problem.out_dtype.real.size,
        integers=tuple(integers[name] for name in kernel.program.sizes),
        operands=tuple(placed),
        alpha=alpha,
        beta=beta,
        values=Values.of(problem.out_dtype),
        scratch_bytes=kernel.scratch_bytes,
    )


def cases(kernels: Kernels, number: int) -> Iterator[Case]:
    """Every problem or a share of them, on small caches."""
    for problem in share(PROBLEMS, SHARED, number):
        kernel = kernels.emit(problem, near=True)
        yield from (case(kernel, turn) for turn in range(number, number + 6))


@pytest.mark.parametrize("machine", RUN, ids=lambda machine: machine.name)
def test_products_of_triangles_run(machine: Machine, tmp_path: Path) -> None:
    skip_without_tools(machine)
    kernels = Kernels(machine)
    status, output, complaints = run(kernels, cases(kernels, RUN.index(machine)), tmp_path)
    assert status == 0, output + complaints
