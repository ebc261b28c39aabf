"""The ordered stages: what each fills in, where a run stops, the C signature, column-major C."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest
from shares import looped
from support import LAYOUTS, filled

import tilewright as tw
from tilewright.compiler.operation import Compilation, kernel_name
from tilewright.compiler.pipeline import STAGES, run_stages
from tilewright.errors import InvalidChoice, SizeOverflow
from tilewright.ir.nodes import Program
from tilewright.ir.verify import verify
from tilewright.machine.catalog import find_machine
from tilewright.macro.blocking import Blocking, choose_blocking
from tilewright.ops.gemm.problem import Gemm
from tilewright.spec.problem import PRODUCT_SIZES

# --- stages -------------------------------------------------------------------------------------------


def test_the_stages_in_their_order() -> None:
    rewrites = ["fuse_unpack", "fuse_pack", "fuse_consumer"]
    assert [stage.name for stage in STAGES] == ["blocking", "nest", *rewrites, "llvm", "object"]


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
    assert state.blocking == choose_blocking(machine, machine.isa.tile(problem.dtype))
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


@pytest.mark.parametrize("until", ["typo", "", "blocking "])
def test_a_stage_that_does_not_exist(until: str) -> None:
    with pytest.raises(InvalidChoice, match=r"stage is .*, must be one of: blocking, nest, fuse_unpack, "):
        run_stages(Gemm(), find_machine("haswell"), until=until)


@pytest.mark.parametrize("c", ["row", "col"])
def test_the_c_signature_has_one_order(c: str) -> None:
    """Pointers, sizes and strides, scalars, scratch, team: the same for every layout."""
    state = run_stages(Gemm(b="col", c=c), find_machine("haswell"), until="llvm")
    found = re.search(rf"define void @{state.name}\((.*)\)", state.llvm)
    assert found
    names = re.findall(r"(\w+)[^,%]*%\"?(\w+)", found[1])
    pointers = [("ptr", name) for name in ("a", "b", "c")]
    sizes = [("i64", name) for name in PRODUCT_SIZES]
    assert names == [
        *pointers,
        *sizes,
        ("float", "alpha"),
        ("float", "beta"),
        ("ptr", "scratch"),
        ("ptr", "team"),
    ]


def test_a_state_is_never_changed_in_place() -> None:
    before = Compilation(Gemm(), find_machine("haswell"), "g")
    after = before.with_field("llvm", "text")
    assert (before.llvm, after.llvm) == ("", "text")
    assert after.problem is before.problem


# --- column-major C -----------------------------------------------------------------------------------


@looped("sizes", [(5, 4, 3), (40, 70, 33), (1, 1, 1), (0, 4, 2), (3, 4, 0), (5, 1, 3), (1, 5, 3)])
@looped("layouts", list(product(("row", "col"), repeat=2)))
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


def test_sizes_that_no_memory_has() -> None:
    with pytest.raises(SizeOverflow, match="Gemm: c needs"):
        run_stages(Gemm(m=2**40, n=2**40, k=2), find_machine("znver5"), until="nest")
