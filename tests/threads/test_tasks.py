"""Kernels as a team runs them: every task once, whoever does it, and the bits of one thread."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tiers import crossed, each_value, named

from tilewright.calls.operands import data_address, element_strides
from tilewright.compiler.scratch import scratch_pool
from tilewright.ops.gemm.kernel import GemmKernel
from tilewright.ops.gemm.problem import Gemm

BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
THREADS = 3

# Errors of a team are no errors of the function that calls it.
pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")


class Team(ctypes.Structure):
    """`struct tw_team` of `llvm/team.py`."""

    _fields_ = (("run", RUN), ("threads", ctypes.c_int64))


class Backwards:
    """A team of one thread that plays three: tasks last to first, for each of the three in turn."""

    def __init__(self) -> None:
        self.counts: list[int] = []
        self.team = Team(RUN(self.run), THREADS)

    def run(self, _team: int, body: int | None, env: int, tasks: int) -> None:
        if body is None:  # a long task asks whether the team was cancelled
            return
        self.counts.append(tasks)
        call = BODY(body)
        for task in reversed(range(tasks)):
            call(env, task % THREADS, task)


def multiply(
    kernel: GemmKernel, arrays: tuple[Any, Any, Any], team: Team | None, operands: Sequence[Any] = ()
) -> None:
    a, _, c = arrays
    strided = (*arrays, *(array for array in operands if array.shape == c.shape))
    sizes = (*c.shape, a.shape[1], *(stride for array in strided for stride in element_strides(array)))
    size = kernel.scratch_bytes_for(THREADS)
    assert size <= scratch_pool().size
    with scratch_pool().block() as scratch:
        ctypes.memset(scratch, 0xFF, size)  # NaN
        address = ctypes.addressof(team) if team is not None else None
        pointers = map(data_address, (*arrays, *operands))
        kernel.function(*pointers, *sizes, 1, 0, scratch, address)


TYPES = (("f32",), ("f64",), ("bf16",), ("f16",), ("i8", None, "i32"), ("c64",))


@pytest.mark.parametrize(
    ("types", "strategy"), crossed(([types] for types in TYPES), ["auto", "tiling", "packing"], 2), ids=named
)
def test_the_bits_do_not_depend_on_threads(types: tuple[str | None, ...], strategy: str) -> None:
    dtype, b_dtype, out_dtype = (*types, None, None)[:3]
    problem = Gemm(dtype=dtype or "f32", b_dtype=b_dtype, out_dtype=out_dtype, strategy=strategy)
    kernel = GemmKernel.compiled(problem)
    random = np.random.default_rng(0)
    kinds = [operand.dtype.numpy for operand in problem.operands]
    shared = 0
    for m, n, k in [(700, 600, 300), (130, 128, 1500), (1, 5000, 70), (6, 3000, 2100), (300, 1, 200)]:
        shapes = zip(((m, k), (k, n)), kinds, strict=False)
        a, b = ((random.standard_normal(shape) * 9).astype(kind) for shape, kind in shapes)
        alone, together = (np.full((m, n), 77, kinds[2]) for _ in range(2))
        multiply(kernel, (a, b, alone), None)
        several = Backwards()
        multiply(kernel, (a, b, together), several.team)
        assert alone.tobytes() == together.tobytes(), f"{m}x{n}x{k}"
        shared += max(several.counts) > 1
    assert shared >= 3, "large products have several tasks"


@pytest.mark.parametrize("epilogue", ["bias,relu", "bias:row,residual,gelu"])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@each_value
def test_epilogues_on_a_team(dtype: str, epilogue: str) -> None:
    """The buffer in which a tile leaves its sums is each task's own."""
    kernel = GemmKernel.compiled(Gemm(dtype=dtype, epilogue=epilogue))
    random, kind = np.random.default_rng(1), kernel.problem.dtype.numpy
    for m, n, k in [(300, 400, 2100), (6, 3000, 900), (130, 500, 64)]:
        a, b = (random.standard_normal(shape).astype(kind) for shape in ((m, k), (k, n)))
        operands = [
            random.standard_normal((one.rows or m, one.columns or n)).astype(one.dtype.numpy)
            for one in kernel.problem.step_operands
        ]
        alone, together = (np.full((m, n), 77, kind) for _ in range(2))
        several = Backwards()
        multiply(kernel, (a, b, alone), None, operands)
        multiply(kernel, (a, b, together), several.team, operands)
        assert alone.tobytes() == together.tobytes(), f"{m}x{n}x{k}"
        assert max(several.counts) > 1


def test_an_empty_product_has_no_tasks_that_matter() -> None:
    kernel = GemmKernel.compiled(Gemm())
    several = Backwards()
    c = np.empty((0, 4), np.float32)
    multiply(kernel, (np.empty((0, 3), np.float32), np.empty((3, 4), np.float32), c), several.team)
    c = np.full((3, 4), np.nan, np.float32)
    multiply(kernel, (np.empty((3, 0), np.float32), np.empty((0, 4), np.float32), c), several.team)
    assert not c.any()
