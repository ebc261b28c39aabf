"""Quick code: the first calls of a process, and what replaces it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emulated_rows import emulated_kernel
from tiers import crossed

import tilewright as tw
from tilewright.calls.layout import native_entry_possible
from tilewright.llvm.quick import QUICK_CALLS, QUICK_UNIT_BITS, QUICK_WORK, QuickCode
from tilewright.llvm.target import has_parts
from tilewright.machine.host import host_machine
from tilewright.machine.isa_rows import usable_isas
from tilewright.machine.machine import enabled_features
from tilewright.ops.gemm.kernel import GemmKernel
from tilewright.ops.gemm.problem import Gemm
from tilewright.spec.dtype import DType


def test_calls_are_counted_and_steps_done_once() -> None:
    """After the last call everything is improved, then what follows is done; nothing is done twice."""
    quick, done = QuickCode(), list[str]()
    quick.then(lambda: done.append("then"))
    quick.add(lambda: done.append("kernel"))
    for _ in range(QUICK_CALLS - 1):
        quick.count()
    assert quick.wanted
    assert not done
    quick.count()
    quick.count()
    assert not quick.wanted
    assert done == ["kernel", "then"]


def test_long_call_ends_quick_code() -> None:
    """A call of much work is never served by quick code."""
    quick = QuickCode()
    quick.check(QUICK_WORK)
    assert quick.wanted
    quick.check(QUICK_WORK + 1)
    assert not quick.wanted


def test_interrupted_step_is_done_again() -> None:
    """A signal handler may raise inside of a step: the step stays to be done."""
    quick, tries = QuickCode(), list[int]()

    def step() -> None:
        tries.append(1)
        if len(tries) == 1:
            raise KeyboardInterrupt

    quick.add(step)
    with pytest.raises(KeyboardInterrupt):
        quick.finish()
    quick.count()
    quick.count()
    assert len(tries) == 2


#: Sizes of products, and which operands are transposed: the paths of the kernel.
PATHS = (
    ((45, 70, 33), ""),
    ((45, 70, 33), "a"),
    ((45, 70, 33), "b"),
    ((45, 70, 33), "c"),
    ((45, 1, 33), ""),
    ((1, 70, 33), ""),
    ((1, 70, 33), "b"),
    ((130, 600, 700), "ab"),
)


#: Element types and epilogues: of one kind of tile or pack each.
PRODUCTS = (
    ("f32", ""),
    ("f32", "bias,gelu"),
    ("f64", ""),
    ("c64", ""),
    ("i8", ""),
    ("bf16", "bias,relu,residual"),
)

#: Instruction sets with masks for edges and without, as far as the host has them.
ROWS = tuple(isa.name for isa in usable_isas(host_machine().arch, enabled_features(host_machine().features)))


def _filled(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Any:
    """Numbers of a type: of floats normal ones, of integers small ones."""
    if dtype.is_integer:
        return random.integers(-9, 9, shape).astype(dtype.numpy)
    found = random.standard_normal(shape)
    return (found + 1j * random.standard_normal(shape) if dtype.real != dtype else found).astype(dtype.numpy)


@pytest.mark.parametrize(
    ("dtype", "steps"),
    [("f32", "gelu"), ("f64", "tanh"), ("bf16", "silu"), ("f16", "sigmoid"), ("i8", "relu"), ("c64", "")],
)
def test_every_level_has_the_same_bits(dtype: Any, steps: str) -> None:
    """Tiles and functions too, which quick code has compiled well; tests/shared/quick_tests.py needs it."""
    problem = Gemm(dtype=dtype, a="strided", b="strided", c="strided", epilogue=steps)
    kernels = [emulated_kernel(problem, host_machine()), tw.compile(problem)]
    random = np.random.default_rng(0)
    for m, n, k in ((45, 70, 33), (1, 70, 33), (45, 1, 33)):
        a, b = (_filled(random, shape, problem.dtype) for shape in ((m, k), (k, n)))
        found = [kernel(a, b, np.zeros((m, n), problem.out_dtype.numpy)) for kernel in kernels]
        assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.skipif(not has_parts(host_machine()), reason="kernels are compiled whole")
@pytest.mark.usefixtures("uncached")
@pytest.mark.parametrize(("isa", "dtype", "epilogue"), crossed(ROWS, PRODUCTS, 2))
def test_same_bits(monkeypatch: pytest.MonkeyPatch, isa: str, dtype: Any, epilogue: str) -> None:
    """Quick code computes the bits of the code that replaces it, on every path and every row of the host.

    In `make test` rows and products take turns.
    """
    quick = QuickCode()
    monkeypatch.setattr("tilewright.compiler.kernel.quick_code", quick)
    monkeypatch.setenv("TILEWRIGHT_ISA", isa)
    problem = Gemm(dtype=dtype, a="strided", b="strided", c="strided", epilogue=epilogue)
    kernel = GemmKernel.compiled_quickly(problem)
    random = np.random.default_rng(0)
    calls = []
    for (m, n, k), transposed in PATHS:
        shapes = {"a": (m, k), "b": (k, n), "c": (m, n)}
        arrays = [
            _filled(random, shape[::-1] if name in transposed else shape, problem.dtype)
            for name, shape in shapes.items()
        ]
        operands = {
            one.name: _filled(random, (m if one.columns == 1 else one.rows or m, one.columns or n), one.dtype)
            for one in problem.step_operands
        }
        matrices = [
            array.T if name in transposed else array for name, array in zip(shapes, arrays, strict=True)
        ]
        calls.append((matrices, {name: one[0] if len(one) == 1 else one for name, one in operands.items()}))
    factors = {"alpha": 2.0, "beta": 0.5} if not problem.types.acc.is_integer else {"alpha": 2, "beta": 3}

    def results(kernel: GemmKernel) -> list[Any]:
        return [kernel(a, b, c.copy("K"), **factors, **steps) for (a, b, c), steps in calls]

    former, first = kernel.address, results(kernel)
    # A kernel of its own: what repeats calls of the first one has the addresses of its quick code.
    for found, expected in zip(first, results(GemmKernel.compiled(problem)), strict=True):
        assert found.tobytes() == expected.tobytes()
    quick.finish()
    assert kernel.address != former


@pytest.mark.usefixtures("uncached")
def test_quick_products_are_right() -> None:
    """Not only the same as later ones."""
    kernel = GemmKernel.compiled_quickly(Gemm(dtype="f32", a="strided", b="strided", c="strided"))
    random = np.random.default_rng(0)
    for (m, n, k), _ in PATHS:
        a, b = random.standard_normal((m, k), np.float32), random.standard_normal((k, n), np.float32)
        np.testing.assert_allclose(kernel(a, b, np.empty((m, n), np.float32)), a @ b, rtol=0, atol=1e-3)


def test_work_is_counted() -> None:
    """A million multiply-adds count as a call."""
    quick = QuickCode()
    quick.spend(QUICK_CALLS - 1 << QUICK_UNIT_BITS - 3)
    assert quick.wanted
    for _ in range(8):
        quick.spend(QUICK_CALLS << QUICK_UNIT_BITS - 3)
    assert not quick.wanted


PROCESS = f"""
import numpy as np, tilewright as tw
from tilewright.llvm.quick import quick_code
a, q = np.ones((8, 8), np.float32), np.ones((1, 1, 4, 8), np.float32)
for number in range({QUICK_CALLS + 1}):
    assert (tw.matmul(a, a) == 8).all()
    if number % 32 == 0:
        assert (tw.attention(q, q, q) == 1).all()
assert not quick_code.wanted
assert (tw.matmul(a, a) == 8).all()
assert (tw.attention(q, q, q) == 1).all()
from tilewright.ops.matmul.public import _native
entry = _native[0]
assert [row.code for row in entry.table.rows[:entry.table.count]] == [one.address for one in entry._kernels]
assert all(kernel._quick is None for kernel in entry._kernels)
assert len(entry._code._codes) == 2
"""


@pytest.mark.skipif(not native_entry_possible(), reason="calls go through Python")
@pytest.mark.usefixtures("uncached")
def test_machine_code_counts_its_calls() -> None:
    """Calls that never meet Python end quick code, too; kernels and entries are replaced."""
    done = subprocess.run([sys.executable, "-c", PROCESS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


FIRST = """
import numpy as np, tilewright as tw
from tilewright.llvm.quick import quick_code
x = np.ones((8, 8), np.float32)
tw.exp(x), tw.exp(x), tw.matmul(x, x), tw.matmul(x, x)
quick_code.finish()
"""
SECOND = f"""
import numpy as np, tilewright as tw
from tilewright.llvm.quick import quick_code
x, y = np.ones((8, 16), np.float32), np.ones((8, 8))
for number in range({QUICK_CALLS + 2}):
    assert (CALL).all()
    assert quick_code._improve or number > 3
assert not quick_code._improve
"""


def run_cached(program: str, folder: Path) -> None:
    """A process that keeps what it compiles in a folder."""
    environment = {**os.environ, "TILEWRIGHT_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def filled_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache of a process whose quick code was replaced."""
    folder = tmp_path_factory.mktemp("cache")
    run_cached(FIRST, folder)
    return folder


@pytest.mark.skipif(not native_entry_possible(), reason="calls go through Python")
@pytest.mark.skipif(not has_parts(host_machine()), reason="kernels are compiled whole")
@pytest.mark.parametrize("call", ["tw.linear(x, x, x[0, :8]) == 17", "tw.matmul(y, y) == 8"])
def test_entries_from_the_cache_count_calls_of_kernels_that_are_not_in_it(
    filled_cache: Path, tmp_path: Path, call: str
) -> None:
    """Otherwise such a kernel would be quick code as long as the process runs, and in all later ones."""
    folder = tmp_path / "cache"
    shutil.copytree(filled_cache, folder)
    run_cached(SECOND.replace("CALL", call), folder)
