"""The registry of kernels: one kernel for each problem and machine, whoever asks first."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from tilewright.calls import kernels
from tilewright.calls.kernels import kernel_for
from tilewright.machine.host import host_machine
from tilewright.machine.isa import Lowering
from tilewright.ops.unary.kernel import UnaryKernel
from tilewright.ops.unary.problem import Unary

THREADS = 4


def test_threads_compile_one_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "_kernels", {})
    compiled: list[Any] = []
    original = kernels.new_kernel
    barrier = Barrier(THREADS)

    def counted(problem: Any, machine: Any) -> Any:
        compiled.append(problem)
        return original(problem, machine)

    def first_use(_: int) -> Any:
        barrier.wait()
        return kernel_for(Unary("identity", m=3, n=5))

    monkeypatch.setattr(kernels, "new_kernel", counted)
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(first_use, range(THREADS)))
    assert len(compiled) == 1
    assert {id(kernel) for kernel in found} == {id(found[0])}
    assert isinstance(found[0], UnaryKernel)


def test_machines_have_kernels_of_their_own() -> None:
    machine = host_machine().with_lowering(Lowering.GENERIC)
    problem = Unary("identity", m=3, n=5)
    assert kernel_for(problem, machine) is kernel_for(problem, machine)
    assert kernel_for(problem, machine) is not kernel_for(problem)
    assert kernel_for(problem, machine).machine == machine
