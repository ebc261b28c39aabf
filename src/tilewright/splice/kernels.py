"""Kernels as parts of somebody else's module: text of LLVM IR, once for each problem and machine."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tilewright.ir.alone import alone
from tilewright.llvm.values import Type
from tilewright.lower import SCRATCH_ALIGNMENT, scratch_layout, signature
from tilewright.machine.machine import Machine
from tilewright.pipeline import STAGES, Compilation, Problem
from tilewright.spec.names import kernel_name

_DEFINITION = re.compile(r"^(define .*) \{$", re.MULTILINE)


@dataclass(frozen=True)
class Kernel:
    """A function that a module gets.

    Attributes
    ----------
    name : its symbol, the only one that other modules see.
    arguments : names and types, in order.
    scratch_bytes : memory that it is given, with room to begin on a page; 0 where it needs none.
    text : a module of its own.
    """

    name: str
    arguments: tuple[tuple[str, Type], ...]
    scratch_bytes: int
    text: str


class Kernels:
    """The kernels that one module needs so far; the names of all of them begin alike."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._found: dict[tuple[Problem, Machine], Kernel] = {}
        self._taken: dict[str, str] = {}

    def find(self, problem: Problem, machine: Machine) -> Kernel:
        """The kernel of a problem on a machine, compiled as far as LLVM IR."""
        key = (problem, machine)
        if key not in self._found:
            self._found[key] = self._make(problem, machine)
        return self._found[key]

    def take(self, kernel: Kernel) -> None:
        """Puts a kernel into the module."""
        self._taken[kernel.name] = kernel.text

    @property
    def texts(self) -> tuple[str, ...]:
        """The modules of the kernels that were taken."""
        return tuple(self._taken.values())

    def _make(self, problem: Problem, machine: Machine) -> Kernel:
        name = f"{self._prefix}{len(self._found)}_{kernel_name(problem, machine.isa.name)}"
        state = Compilation(problem, machine, name)
        for stage in STAGES:
            state = state.with_field(stage.name, stage.run(state))
            if stage.name == "nest":
                state = state.with_field("nest", alone(state.program))
            if stage.name == "llvm":
                break
        room = scratch_layout(state.program).bytes
        return Kernel(
            name,
            tuple(signature(state.program)),
            room and room + SCRATCH_ALIGNMENT,
            _compiled_for(machine, state.llvm),
        )


def _compiled_for(machine: Machine, text: str) -> str:
    """A module whose functions say which CPU they are for, whatever the rest of a program is compiled for.

    Before: ``define void @gemm(ptr %a) nounwind {``. After: ``define void @gemm(ptr %a) nounwind
    "target-cpu"="znver5" "target-features"="+avx512f" {``
    """
    attributes = f'"target-cpu"="{machine.cpu}"'
    if machine.features:
        attributes += f' "target-features"="{machine.features}"'
    return _DEFINITION.sub(rf"\1 {attributes} {{", text)
