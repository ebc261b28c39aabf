"""Loops that clang wrote, run on this host: what the new code gives, and what it does not read."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import numpy as np
import pytest
from shares import EVERY_TEST_RUNS

from tilewright.llvm.jit import Linked
from tilewright.loops.opt.records import OutputFormat, ProductOptions
from tilewright.loops.opt.work import Work, optimise_here
from tilewright.loops.splice.plan import ProductStrategy
from tilewright.machine.host import host_machine

SOURCE = Path(__file__).parents[1] / "llvm" / "clang_forms.ll"
NAMES = ("refc", "reft", "s_mem")
INT, DOUBLE, POINTER = ctypes.c_int, ctypes.c_double, ctypes.c_void_p


@pytest.fixture(scope="module")
def code() -> Linked:
    """The functions for this host, whatever clang wrote them for."""
    lines = SOURCE.read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("target "))
    strategy = ProductStrategy.AUTO if EVERY_TEST_RUNS else ProductStrategy.TILING  # which hold the tests
    options = ProductOptions(target=host_machine(), strategy=strategy)
    done = optimise_here(Work(text.encode(), "forms.ll", OutputFormat.OBJECT, options))
    replaced = {remark.where.function: remark.text for remark in done.remarks if remark.replaced}
    assert replaced.keys() >= set(NAMES)
    assert replaced["s_mem"].endswith("m=at(c), n=at(c + 4), k=at(a + 4), f32")
    library = ctypes.CDLL(None)
    names = ("malloc", "free", "memset", "memcpy")
    imports = {name: ctypes.cast(getattr(library, name), POINTER).value or 0 for name in names}
    return Linked(done.content, NAMES, imports)


def integers(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).integers(-4, 5, shape).astype("f8")


@pytest.mark.parametrize("beta", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("sizes", [(40, 50, 60), (3, 4, 5), (5, 4, 0), (0, 4, 4)])
@pytest.mark.parametrize("name", ["refc", "reft"])
def test_factors_that_are_tested_for_0_and_1(
    code: Linked, name: str, sizes: tuple[int, int, int], beta: float
) -> None:
    m, n, k = sizes
    a, b, c = integers(k, m), integers(n, k), integers(n, m)
    expected = 3 * b @ a + beta * c
    if name == "reft":
        a = np.ascontiguousarray(a.T)
    if beta == 0:
        c[...] = np.nan
    kinds = (INT, INT, INT, DOUBLE, POINTER, INT, POINTER, INT, DOUBLE, POINTER, INT)
    function = ctypes.CFUNCTYPE(None, *kinds)(code.address(name))
    leading = m if name == "refc" else k
    function(m, n, k, 3, a.ctypes.data, leading, b.ctypes.data, k, beta, c.ctypes.data, m)
    np.testing.assert_array_equal(c, expected)


class Matrix(ctypes.Structure):
    """struct { int rows, cols; float *data; } of the source."""

    _fields_ = (("rows", INT), ("columns", INT), ("data", POINTER))


@pytest.mark.parametrize("sizes", [(40, 50, 60), (3, 4, 5)])
def test_sizes_and_pointers_in_memory(code: Linked, sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    a, b, c = (integers(*shape).astype("f4") for shape in ((m, k), (k, n), (m, n)))
    expected = c + a @ b
    function = ctypes.CFUNCTYPE(None, *[POINTER] * 3)(code.address("s_mem"))
    matrices = [Matrix(*array.shape, array.ctypes.data) for array in (c, a, b)]
    function(*(ctypes.addressof(matrix) for matrix in matrices))
    np.testing.assert_array_equal(c, expected)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a fault has to end another process")
@pytest.mark.parametrize("sizes", [(0, 5), (5, 0)])
def test_nothing_is_read_that_the_program_does_not_read(code: Linked, sizes: tuple[int, int]) -> None:
    """Where C has no rows or columns, A and B may be null."""
    function = ctypes.CFUNCTYPE(None, *[POINTER] * 3)(code.address("s_mem"))
    matrix = Matrix(*sizes, None)
    child = os.fork()
    if not child:
        function(ctypes.addressof(matrix), None, None)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
