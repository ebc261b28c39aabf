"""The registry of kernels that calls of this process share: compiled once each, kept for ever."""

from __future__ import annotations

from typing import Any

from tilewright.calls.kernel import ArrayKernel
from tilewright.compiler.operation import operation_of
from tilewright.machine.host import host_machine
from tilewright.machine.machine import Machine
from tilewright.preparing import preparing

#: The kernels by their problems and machines; None is this host as it was at the first use.
_kernels: dict[tuple[Any, Machine | None], Any] = {}


def new_kernel(problem: Any, machine: Machine) -> Any:
    """Compiles a problem; the kernel is of the class that its operation has."""
    op = operation_of(problem)
    return (op.kernel or ArrayKernel).compiled(op.completed(problem, machine), machine)


def quick_kernel(problem: Any) -> Any:
    """Compiles a problem for this host, from quick code as long as the process has some."""
    op = operation_of(problem)
    return (op.kernel or ArrayKernel).compiled_quickly(op.completed(problem, host_machine()))


def kernel_for(problem: Any, machine: Machine | None = None, *, quick: bool = False) -> Any:
    """The one kernel of a problem in this process, compiled by the first thread that needs it.

    Parameters
    ----------
    machine : None for this host as the environment described it at the first use of the problem.
    quick : whether it may be quick code at first; its callers ask for the address in every call.

    Examples
    --------
    >>> from tilewright.ops.unary.problem import Unary
    >>> kernel_for(Unary("identity")) is kernel_for(Unary("identity"))
    True
    """
    key = problem, machine
    found = _kernels.get(key)
    if found is None:
        with preparing:
            found = _kernels.get(key)
            if found is None:  # a call that interrupts this one may be first: see `preparing`
                made = quick_kernel(problem) if quick else new_kernel(problem, machine or host_machine())
                found = _kernels.setdefault(key, made)
    return found
