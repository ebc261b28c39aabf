"""Quick code: the first calls of a process, and what replaces it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from tilewright.calls.layout import native_entry_possible
from tilewright.llvm.quick import QUICK_CALLS, QUICK_WORK, QuickCode
from tilewright.ops.gemm.kernel import GemmKernel
from tilewright.ops.gemm.problem import Gemm


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


@pytest.mark.usefixtures("uncached")
def test_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quick code computes the bits of the code that replaces it, on every path."""
    quick = QuickCode()
    monkeypatch.setattr("tilewright.compiler.kernel.quick_code", quick)
    kernel = GemmKernel.compiled_quickly(Gemm(dtype="f32", a="strided", b="strided", c="strided"))
    random = np.random.default_rng(0)
    calls = []
    for (m, n, k), transposed in PATHS:
        shapes = {"a": (m, k), "b": (k, n), "c": (m, n)}
        arrays = [
            random.standard_normal(shape[::-1] if name in transposed else shape, np.float32)
            for name, shape in shapes.items()
        ]
        calls.append(
            [array.T if name in transposed else array for name, array in zip(shapes, arrays, strict=True)]
        )
    former, first = kernel.address, [kernel(a, b, np.empty_like(c)) for a, b, c in calls]
    quick.finish()
    assert kernel.address != former
    for (a, b, c), found in zip(calls, first, strict=True):
        assert np.array_equal(kernel(a, b, np.empty_like(c)), found)
        np.testing.assert_allclose(found, a @ b, rtol=0, atol=1e-3)


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
