"""The ordered stages: what each fills in, where a run stops, what kernels are called, column-major C."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest
from support import LAYOUTS, filled

import tilewright as tw
from tilewright.ir.nodes import Program
from tilewright.ir.verify import is_name, verify
from tilewright.machine.catalog import find_machine, targets
from tilewright.machine.isa import AVX2, ISAS
from tilewright.macro.blocking import Blocking, choose_blocking
from tilewright.macro.gemm import transpose_problem
from tilewright.pipeline import STAGES, Compilation, kernel_name, run_stages
from tilewright.spec.dtype import DTYPES, GEMM_DTYPES
from tilewright.spec.problem import Gemm, Layout, Strategy

#: A kernel's name, read back: what it computes, its sizes, layouts of A, B and C, strategy, row.
NAME = re.compile(
    r"gemm_(?P<dtype>[a-z]+\d+)_(?P<m>m|\d+)x(?P<n>n|\d+)x(?P<k>k|\d+)"
    r"_(?P<a>[rcs])(?P<b>[rcs])(?P<c>[rcs])_(?P<strategy>[a-z]+)_(?P<isa>[a-z]+\d*)"
)
LETTERS = {layout.letter: layout for layout in Layout}


def problem_of(name: str) -> tuple[Gemm, str]:
    """The problem and the ISA row that a kernel's name says."""
    found = NAME.fullmatch(name)
    assert found, name
    m, n, k = (int(found[size]) if found[size].isdigit() else None for size in "mnk")
    a, b, c = (LETTERS[found[operand]] for operand in "abc")
    return Gemm(m, n, k, DTYPES[found["dtype"]], a=a, b=b, c=c, strategy=found["strategy"]), found["isa"]


def every_problem() -> list[Gemm]:
    return [
        Gemm(m, n, k, dtype, a=a, b=b, c=c, strategy=strategy)
        for m, n, k in product((None, 1, 64), repeat=3)
        for dtype in GEMM_DTYPES
        for a, b, c in product(Layout, repeat=3)
        for strategy in Strategy
    ]


def test_names_are_unique_and_read_back() -> None:
    machine = find_machine("znver5")
    seen: dict[str, Gemm] = {}
    for problem in every_problem():
        name = kernel_name(problem, machine.isa.name)
        assert problem_of(name) == (problem, "avx512")
        assert is_name(name), "it is a C symbol too"
        assert seen.setdefault(name, problem) == problem
    assert len(seen) == len(every_problem())


def test_names_tell_the_rows_apart() -> None:
    names = {kernel_name(Gemm(), find_machine(name)) for name in targets()}
    assert {problem_of(name)[1] for name in names} == {isa.name for isa in ISAS}
    limited = find_machine("znver5").with_isa(AVX2)
    assert kernel_name(Gemm(m=3), limited) == "gemm_f32_3xnxk_rrr_auto_avx2"


# --- stages -------------------------------------------------------------------------------------------


def test_the_stages_in_their_order() -> None:
    assert [stage.name for stage in STAGES] == ["blocking", "nest", "llvm", "object"]


def filled_fields(state: Compilation) -> list[str]:
    return [stage.name for stage in STAGES if getattr(state, stage.name)]


@pytest.mark.parametrize("until", [stage.name for stage in STAGES])
def test_a_run_stops_after_the_stage_named(until: str) -> None:
    names = [stage.name for stage in STAGES]
    state = run_stages(Gemm(), find_machine("neoverse-v2"), until=until)
    assert filled_fields(state) == names[: names.index(until) + 1]


def test_each_stage_sees_what_the_one_before_made(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def watch(run: object) -> object:
        def watched(state: Compilation) -> object:
            seen.append(filled_fields(state))
            assert callable(run)
            return run(state)

        return watched

    for stage in STAGES:
        monkeypatch.setitem(stage.__dict__, "run", watch(stage.run))
    run_stages(Gemm(), find_machine("haswell"))
    names = [stage.name for stage in STAGES]
    assert seen == [names[:count] for count in range(len(names))]


@pytest.mark.parametrize("target", ["znver5", "haswell", "neoverse-v2", "apple-m1", "x86-64-v2"])
def test_what_the_stages_make(target: str) -> None:
    machine, problem = find_machine(target), Gemm(m=100, dtype="f64", b="col")
    state = run_stages(problem, machine)
    assert isinstance(state.blocking, Blocking)
    assert state.blocking == choose_blocking(machine, problem.dtype)
    assert isinstance(state.nest, Program)
    assert verify(state.nest) is state.nest
    assert state.nest.name == state.name == kernel_name(problem, machine.isa.name)
    assert f"define void @{state.name}(" in state.llvm
    assert machine.triple in state.llvm
    assert state.llvm.count("\ndefine ") == state.llvm.count("\ndefine internal ") + 1, (
        "one exported function"
    )
    magic = b"\xcf\xfa\xed\xfe" if "apple" in machine.triple else b"\x7fELF"
    assert state.object.startswith(magic)
    assert state.name.encode() in state.object


def test_a_state_is_never_changed_in_place() -> None:
    before = Compilation(Gemm(), find_machine("haswell"), "g")
    after = before.with_field("llvm", "text")
    assert (before.llvm, after.llvm) == ("", "text")
    assert after.problem is before.problem


# --- column-major C -----------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["znver5", "haswell", "neoverse-v2"])
def test_a_column_major_c_is_the_transposed_product(target: str) -> None:
    machine = find_machine(target)
    problem = Gemm(5, 6, 7, a="row", b="strided", c="col")
    state = run_stages(problem, machine, until="nest")
    other = run_stages(transpose_problem(problem), machine, until="nest")
    assert state.nest is not None
    assert other.nest is not None
    assert state.nest.body == other.nest.body
    assert problem_of(state.name)[0] == problem, "the name says what was asked for"


@pytest.mark.parametrize(
    "sizes",
    [(5, 4, 3), (40, 70, 33), (1, 1, 1), (0, 4, 2), (3, 4, 0), (5, 1, 3), (1, 5, 3)],
    ids=lambda sizes: "x".join(map(str, sizes)),
)
@pytest.mark.parametrize("layouts", list(product(("row", "col"), repeat=2)), ids="-".join)
def test_a_kernel_for_column_major_c(sizes: tuple[int, int, int], layouts: tuple[str, str]) -> None:
    m, n, k = sizes
    order = {"row": "C", "col": "F"}
    a = LAYOUTS[order[layouts[0]]](filled((m, k), seed=1))
    b = LAYOUTS[order[layouts[1]]](filled((k, n), seed=2))
    kernel = tw.compile(Gemm(a=layouts[0], b=layouts[1], c="col"))
    c = np.asfortranarray(filled((m, n), seed=3))
    expected = 2 * a @ b - c
    kernel(a, b, c, alpha=2.0, beta=-1.0)
    np.testing.assert_array_equal(c, expected)
    unread = np.full((m, n), np.nan, np.float32, order="F")
    kernel(a, b, unread)
    np.testing.assert_array_equal(unread, a @ b)
