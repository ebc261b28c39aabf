"""Kernels of the object cache: the interface beside the code, and what a process imports then."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.compiler.interface import Interface, store_interface, stored_interface
from tilewright.compiler.lowering.interface import has_tasks, scratch_layout, signature
from tilewright.compiler.operation import Problem
from tilewright.compiler.pipeline import LAST_PROGRAM, interface_of, run_stages
from tilewright.machine.catalog import find_machine
from tilewright.ops.attention.problem import Attention
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.unary.problem import Unary

PROBLEMS = (Gemm(), Gemm(dtype="bf16", epilogue="bias,relu"), Attention(64), Unary("relu"))


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: type(problem).__name__)
def test_interface_says_what_the_program_says(problem: Problem) -> None:
    state = run_stages(problem, find_machine("znver4"), until=LAST_PROGRAM)
    found, program = interface_of(state), state.program
    assert found.name == state.name
    assert list(found.arguments) == [kind.text for _, kind in signature(program)]
    assert found.has_scratch == bool(program.scratch)
    assert (found.takes_scratch, found.takes_team) == (program.needs_scratch, has_tasks(program))
    for threads in (1, 2, 7):
        assert found.scratch_bytes_for(threads) == scratch_layout(program).size(threads)
    assert Interface.decoded(found.encoded()) == found


def test_interface_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By problem and machine."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", "1")
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "objects"))
    machine = find_machine("znver4")
    interface = interface_of(run_stages(Gemm(), machine, until=LAST_PROGRAM))
    store_interface(Gemm(), machine, interface)
    assert stored_interface(Gemm(), machine) == interface
    assert stored_interface(Gemm(), find_machine("znver2")) is None
    assert stored_interface(Gemm(m=3), machine) is None


PROCESS = """
import sys
import numpy as np, tilewright as tw
a = np.arange(12, dtype=np.float32).reshape(3, 4)
assert (tw.matmul(a, a.T) == np.matmul(a, a.T)).all()
q = np.ones((1, 1, 4, 8), np.float32)
assert (tw.attention(q, q, q) == 1).all()
compiler = ("compiler.pipeline", "compiler.lowering", "micro", "ops.gemm.nest", "threads.pool_code")
loaded = [name for name in sys.modules if name.startswith(tuple(f"tilewright.{one}" for one in compiler))]
from tilewright.ops.gemm.kernel import matmul_kernels
kernel = matmul_kernels["f32"]
print(len(loaded), kernel.address != 0, kernel.blocking.kc > 0, "matmul" in kernel.tile_ir, kernel.flops)
print(len(kernel.object_code) > 0, kernel.name in kernel.llvm_ir, kernel.scratch_bytes > 0)
"""


def test_cached_kernels_need_no_compiler(tmp_path: Path) -> None:
    """A process that finds its code imports nothing that makes code, until it is asked for."""
    settings = {"TILEWRIGHT_CACHE": "1", "TILEWRIGHT_CACHE_DIR": str(tmp_path / "objects")}
    command = ["env", *(f"{name}={value}" for name, value in settings.items()), sys.executable, "-c", PROCESS]
    first, second = (
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        for _ in range(2)
    )
    assert int(first[0].split()[0]) > 0
    assert second[0] == "0 True True True None"
    assert first[1] == second[1] == "True True True"
