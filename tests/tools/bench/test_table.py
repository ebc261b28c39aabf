"""Rows of the whole benchmark: how many, which, and that workers make the same problems of their requests."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tilewright.errors import InvalidChoice, PackageMissing, ToolMissing, WrongResult
from tilewright.tools.bench import peers
from tilewright.tools.bench.case import OperationCase
from tilewright.tools.bench.families import OPERATIONS
from tilewright.tools.bench.peers import PEERS, find_peer, has_header, is_installed
from tilewright.tools.bench.table import rows
from tilewright.tools.explore.worker import Worker

FAMILIES = {
    "products", "skewed products", "element types", "batches", "attention", "einsum", "linear layers",
    "norms and softmax", "models", "loops", "fixed-size kernels", "calls", "threads",
}  # fmt: skip
#: Small sizes of the operations that are computed here; the others take seconds to compile.
SMALL = {
    "einsum": ((("i", 8), ("j", 4), ("k", 6)), "ij,jk->ki"),
    "linear": ((("m", 3), ("n", 16), ("k", 8)), "relu"),
    "softmax": ((("rows", 4), ("columns", 9)), ""),
    "transpose": ((("rows", 4), ("columns", 9)), ""),
    "call of matmul": ((("n", 8),), ""),
}
#: And those of all others.
LARGER = {
    "linear with GELU": ((("m", 3), ("n", 16), ("k", 8)), "gelu"),
    "linear, packed weight": ((("m", 3), ("n", 64), ("k", 128)), "bias"),
    "linear, 8-bit weight": ((("m", 3), ("n", 64), ("k", 256)), "bias"),
    "linear, 4-bit weight": ((("m", 3), ("n", 64), ("k", 256)), "bias"),
    "two layers": ((("rows", 3), ("inner", 32), ("width", 16)), ""),
    "encoder layer": ((("length", 5), ("width", 128)), ""),
    "loops in C": ((("n", 24),), "ijk"),
    "loops in Python": ((("n", 24),), "ijk"),
    "kernel": ((("m", 8), ("n", 4), ("k", 5)), ""),
}


def test_the_quick_form_has_sixty_rows_of_every_family() -> None:
    quick, whole = rows(2, quick=True), rows(2)
    assert len(quick) >= 60
    assert {row.family for row in quick} == {row.family for row in whole} == FAMILIES
    assert {row.key for row in quick} < {row.key for row in whole}
    assert len({row.key for row in whole}) == len(whole)


@pytest.mark.parametrize(
    ("cores", "counts"), [(1, set()), (2, {2}), (6, {2, 4, 6}), (8, {2, 4, 8}), (9, {2, 4, 8, 9})]
)
def test_threads_are_powers_of_two_and_all_cores(cores: int, counts: set[int]) -> None:
    assert {row.threads for row in rows(cores)} - {1} == counts
    assert {row.threads for row in rows(cores, quick=True)} - {1} == ({max(counts)} if counts else set())


def test_a_worker_makes_the_same_problem_of_a_request() -> None:
    for row in rows(2):
        if isinstance(row.case, OperationCase):
            request = json.loads(json.dumps(row.case.request))
            assert OperationCase.from_request(request["operation"]) == row.case
            assert row.moved == row.case.row.moved(row.case)


def test_an_einsum_counts_the_operations_of_the_best_order() -> None:
    case = OperationCase("einsum", (("i", 10), ("j", 20), ("k", 30)), "f32", "ij,jk->ik")
    assert case.flops_of("tilewright") == 2 * 10 * 20 * 30
    assert case.row.moved(case) == 4 * (10 * 20 + 20 * 30 + 10 * 30)


def prepared(operation: str, sizes: tuple[tuple[str, int], ...], option: str, system: str) -> float:
    case = OperationCase(operation, sizes, "f32", option)
    request = json.loads(json.dumps(case.request))
    answer = Worker(system, 1).answer({"prepare": {"index": 0, "seed": 1, **request}})
    return float(answer["seconds"])


@pytest.mark.parametrize("operation", SMALL)
def test_results_are_those_of_float64(operation: str) -> None:
    sizes, option = SMALL[operation]
    for system in ("tilewright", "numpy", "scipy"):
        if system in OPERATIONS[operation].ways and (system == "tilewright" or is_installed(system)):
            assert prepared(operation, sizes, option, system) > 0


def every_way() -> list[tuple[str, str]]:
    others = {name: ((("rows", 4), ("columns", 9)), "") for name in OPERATIONS if name not in SMALL | LARGER}
    calls = {name: ((("n", 8),), "") for name in others if name.startswith("call")}
    ALL.update({**others, **calls, **SMALL, **LARGER})
    return [(name, system) for name in ALL for system in OPERATIONS[name].ways]


ALL: dict[str, tuple[tuple[tuple[str, int], ...], str]] = {}


@pytest.mark.exhaustive
@pytest.mark.parametrize(("operation", "system"), every_way())
def test_every_way_of_every_operation(operation: str, system: str) -> None:
    try:
        OperationCase(operation, *ALL[operation][:1]).way_of(system)
    except (PackageMissing, ToolMissing) as error:
        pytest.skip(str(error))
    if operation == "loops in C" and system == "tilewright":
        try:
            find_peer("clang").check()
        except ToolMissing as error:
            pytest.skip(str(error))
    assert prepared(operation, *ALL[operation], system) > 0


def test_a_wrong_result_is_refused_with_its_place() -> None:
    case = OperationCase("transpose", (("rows", 2), ("columns", 3)))
    exact = np.arange(6.0).reshape(3, 2)
    found = exact.copy()
    case.check("numpy", found, exact, 1e-4)
    found[2, 1] += 0.01
    with pytest.raises(WrongResult, match="row 2, column 1"):
        case.check("numpy", found, exact, 1e-4)
    found[2, 1] = np.nan
    with pytest.raises(WrongResult):
        case.check("numpy", found, exact, 1e9)
    with pytest.raises(WrongResult):
        case.check("numpy", exact.T, exact, 1e9)


def test_who_does_not_compute_an_operation_is_refused() -> None:
    case = OperationCase("transpose", (("rows", 2), ("columns", 3)))
    with pytest.raises(InvalidChoice):
        case.types_of("libxsmm")
    with pytest.raises(InvalidChoice):
        case.start("numpy", 0, 1, "znver4")
    with pytest.raises(InvalidChoice):
        OperationCase("nothing", ()).types_of("numpy")
    with pytest.raises(InvalidChoice):
        find_peer("nobody")


def test_peers_say_what_they_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {peer.name for peer in PEERS} >= {
        "numpy", "numpy-best", "scipy", "torch", "inductor", "jax", "onnxruntime", "numba", "libxsmm", "iree",
    }  # fmt: skip
    assert not has_header("no_such_header_of_anyone.h")
    assert not is_installed("no_such_package.inner")
    monkeypatch.setattr(peers, "is_installed", lambda package: False)
    with pytest.raises(PackageMissing, match=r"pip install tilewright\[peers\]"):
        find_peer("numba").check()
    monkeypatch.setattr(peers, "first_tool", lambda tools: None)
    with pytest.raises(ToolMissing, match=r"c\+\+ or g\+\+"):
        peers.Peer("x", "X", (), peers.CXX_COMPILERS, debian="g++").check()
    monkeypatch.undo()
    monkeypatch.setattr(peers, "has_header", lambda name: False)
    monkeypatch.setattr(peers, "first_tool", lambda tools: "/usr/bin/cc")
    with pytest.raises(ToolMissing, match="libxsmm-dev"):
        find_peer("libxsmm").check()
