"""Kernels whose results depend on rounding: factorisations, correlation, orthogonalisation."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from shares import EVERY_TEST_RUNS
from support import Array

from recognise.calls import SOURCES
from recognise.findings import found_in
from recognise.toolchains import CLANG, library
from tilewright.loops.driving.build import build
from tilewright.loops.driving.units import UnitCompiler
from tilewright.loops.opt.records import ProductOptions
from tilewright.loops.splice.plan import ProductStrategy

#: Rows of the source's arrays: more than two strips, and one row more.
ROWS = 150
#: Each kernel, its arrays (square, of one row, a matrix that can be factorised), and what is found in it.
KERNELS = {
    "cholesky": ("f", "mk,kn->mn triangle"),
    "lu": ("f", "mk,kn->mn"),
    "gramschmidt": ("fmm", "mk,k->m set"),
    "correlation": ("mmvvc", "mk,kn->mn"),
}


def _operands(kinds: str) -> list[Array]:
    random = np.random.default_rng(5)
    made = []
    for kind in kinds:
        array = random.uniform(0.1, 1, ROWS if kind == "v" else (ROWS, ROWS))
        if kind == "f":
            array = array @ array.T + ROWS * np.eye(ROWS)
        made.append(array)
    return made


def _run(function: Any, kinds: str, size: int) -> list[Array]:
    function.restype = None
    arrays = _operands(kinds.replace("c", ""))
    arguments = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
    numbers = [ctypes.c_double(float(max(size, 1)))] if "c" in kinds else []
    function(*arguments, ctypes.c_int(size), *numbers)
    return arrays


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> tuple[ctypes.CDLL, ctypes.CDLL, UnitCompiler]:
    if CLANG.program is None:
        pytest.skip("clang is not installed")
    folder = tmp_path_factory.mktemp("kernels")
    text = (SOURCES / "kernels.c").read_text(encoding="utf-8")
    path = folder / "kernels.c"
    # From here on; the other kernels are tested by test_replaced.
    head, _, tail = text.partition("// gramschmidt(")
    path.write_text(head[: head.index("// gemm(")] + "// gramschmidt(" + tail, encoding="utf-8")
    toolchain = CLANG.with_options(f"-DN={ROWS}")
    strategy = ProductStrategy.AUTO if EVERY_TEST_RUNS else ProductStrategy.TILING
    units, made = UnitCompiler(ProductOptions(strategy=strategy)), folder / "replaced.so"
    assert build(toolchain.command([path], made), units) == 0
    return library(toolchain, path, folder), ctypes.CDLL(str(made)), units


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_that_round(name: str, libraries: tuple[ctypes.CDLL, ctypes.CDLL, UnitCompiler]) -> None:
    original, replaced, units = libraries
    kinds, found = KERNELS[name]
    assert found_in(units.remarks, name) == found
    for size in (0, 1, 2, 63, 65, 128, ROWS):
        expected = _run(getattr(original, name), kinds, size)
        results = _run(getattr(replaced, name), kinds, size)
        for one, other in zip(expected, results, strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-9 * max(1.0, float(np.abs(one).max())))
