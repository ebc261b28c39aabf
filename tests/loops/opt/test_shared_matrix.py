"""Two products of one nest with the same matrix run by strips of its rows: A·x and Aᵀ·t, as in ATAX and BICG.

The functions of shared_matrix.ll are those of clang: ``t = A·x; y += Aᵀ·t`` (atax), ``s += Aᵀ·r; q += A·p``
(bicg), atax of a matrix whose columns are contiguous (columns), and of two matrices (others).
"""

from __future__ import annotations

import ctypes
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tilewright.llvm.backends import initialize
from tilewright.llvm.canonical import shape_loops
from tilewright.llvm.jit import Linked
from tilewright.loops.llvm.loops import nests
from tilewright.loops.llvm.module import read_module
from tilewright.loops.llvm.symbols import SsaValue
from tilewright.loops.nests.distribute import distribute
from tilewright.loops.nests.nest import Refusal
from tilewright.loops.nests.sequence import ProductStep, StripStep
from tilewright.loops.nests.shared import MOST_ROWS, STRIP_BYTES
from tilewright.loops.opt.records import OutputFormat, ProductOptions
from tilewright.loops.opt.work import Work, optimise_here, read_module_of, target_machine_of
from tilewright.loops.splice.plan import ProductStrategy
from tilewright.machine.host import host_machine

SOURCE = (Path(__file__).parent / "shared_matrix.ll").read_bytes()
#: One strategy, so that kernels compute every part of a strip.
OPTIONS = ProductOptions(target=host_machine(), strategy=ProductStrategy.TILING)
WORK = Work(SOURCE, "shared", OutputFormat.OBJECT, OPTIONS)
FUNCTIONS = ("atax", "bicg")
#: Rows and columns: none, one strip, several with a rest, strips cut short by the cache, rows beyond it.
SIZES = [
    (0, 90),
    (90, 0),
    (63, 70),
    (64, 65),
    (MOST_ROWS * 2 + 1, 70),
    (130, 5000),
    (3, STRIP_BYTES // 4 + 5),
]


@cache
def code() -> Linked:
    initialize()
    done = optimise_here(replace(WORK, source=SOURCE.partition(b"define dso_local void @columns")[0]))
    assert [one.where.function for one in done.remarks if one.replaced] == [*FUNCTIONS]
    names = ("malloc", "free", "memset", "memcpy")
    library = ctypes.CDLL(None)
    imports = {name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in names}
    return Linked(done.content, FUNCTIONS, imports)


def run(name: str, m: int, n: int, *arrays: NDArray[np.generic]) -> None:
    kinds = [ctypes.c_long] * 2 + [ctypes.c_void_p] * len(arrays)
    function = ctypes.CFUNCTYPE(None, *kinds)(code().address(name))
    function(m, n, *(array.ctypes.data for array in arrays))


def atax(a: NDArray[np.int32], x: NDArray[np.int32], t: NDArray[np.int32], y: NDArray[np.int32]) -> None:
    """The loops, row by row, so that arrays that overlap do so here, too."""
    with np.errstate(over="ignore"):
        for i, row in enumerate(a):
            t[i] = 0
            for j in range(len(row)):
                t[i] += row[j] * x[j]
            for j in range(len(row)):
                y[j] += row[j] * t[i]


@pytest.mark.parametrize(("m", "n"), SIZES)
def test_atax_of_integers(m: int, n: int) -> None:
    random = np.random.default_rng(0)
    a, x, t, y = (random.integers(-9, 9, shape).astype("i4") for shape in ((m, n), n, m, n))
    expected = y + a.T @ (a @ x)
    run("atax", m, n, a, x, t, y)
    np.testing.assert_array_equal(t, a @ x)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(("m", "n"), SIZES)
def test_bicg_of_floats(m: int, n: int) -> None:
    random = np.random.default_rng(0)
    a, p, q, r, s = (random.integers(-9, 9, shape).astype("f8") for shape in ((m, n), n, m, m, n))
    expected = q + a @ p, s + a.T @ r
    run("bicg", m, n, a, p, q, r, s)
    np.testing.assert_array_equal(q, expected[0])
    np.testing.assert_array_equal(s, expected[1])


@pytest.mark.parametrize("overlap", ["y is x", "t is x", "t is y", "y is in a", "t is in a"])
def test_arrays_that_overlap(overlap: str) -> None:
    """The program's own loops run then."""
    m, n = 150, 80
    results = []
    for function in (lambda *arrays: run("atax", m, n, *arrays), atax):
        random = np.random.default_rng(0)
        a, x, t, y = (random.integers(-2, 3, shape).astype("i4") for shape in ((m, n), 200, 200, 200))
        match overlap:
            case "y is x":
                y = x
            case "t is x":
                t = x
            case "t is y":
                t = y
            case "y is in a":
                y = a[100]
            case "t is in a":
                t = a.reshape(-1)[n * 20 :]
        function(a, x[:n], t[:m], y[:n])
        results.append((a, x, t, y))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("name", "by_strips"), [("atax", True), ("bicg", True), ("columns", False), ("others", False)]
)
def test_steps(name: str, by_strips: bool) -> None:
    module = read_module_of(WORK)
    shape_loops(module, target_machine_of(module, WORK))
    parsed = read_module(str(module))
    (root,) = nests(parsed.functions[name], parsed)
    candidate = root.read()
    assert not isinstance(candidate, Refusal), candidate
    found = distribute(candidate.nest, lambda text: SsaValue.of(f"%{text}", "i64"))
    assert not isinstance(found, Refusal), found
    assert len(found.products) == 2
    strips = [step for step in found.steps if isinstance(step, StripStep)]
    assert bool(strips) is by_strips
    for strip in strips:
        assert all(isinstance(step, ProductStep) for step in strip.steps)
        assert strip.bytes is not None
