"""Kernels embedded in a program's module: LLVM IR text, generated once for each problem and machine."""

from __future__ import annotations

import re
from dataclasses import replace

from tilewright.compiler.lowering.interface import scratch_layout, signature
from tilewright.compiler.operation import Compilation, Problem, kernel_name
from tilewright.compiler.pipeline import STAGES
from tilewright.ir.alone import alone
from tilewright.llvm.values import Type
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import Blocking
from tilewright.records import dataclass

_DEFINITION = re.compile(r"^(define .*) \{$", re.MULTILINE)


@dataclass(frozen=True)
class EmbeddedKernel:
    """A kernel function embedded in a module.

    Attributes
    ----------
    name : its symbol, the only one visible to other modules.
    arguments : names and types, in order.
    scratch_bytes : scratch memory that it takes, aligned to a page, or to a cache line if in the stack frame.
    thread_bytes : what each further thread of a team adds to that.
    inlined : whether it is inlined into its callers.
    text : the text of its module.
    """

    name: str
    arguments: tuple[tuple[str, Type], ...]
    scratch_bytes: int
    text: str
    inlined: bool
    thread_bytes: int = 0

    @property
    def takes_team(self) -> bool:
        """Whether it takes a team of threads, which may be null."""
        return any(name == "team" for name, _ in self.arguments)


class Kernels:
    """The kernels needed by one module so far; their names share a prefix."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._found: dict[tuple[Problem, Machine, int | None, bool, bool], EmbeddedKernel] = {}
        self._taken: dict[str, EmbeddedKernel] = {}

    def find(
        self,
        problem: Problem,
        machine: Machine,
        depth: int | None = None,
        *,
        inlined: bool = False,
        threads: bool = False,
    ) -> EmbeddedKernel:
        """The kernel of a problem on a machine as LLVM IR, for panels up to a given depth.

        It is inlined only if its functions have the caller's attributes; functions in streaming mode do not.
        With `threads`, it takes a team of them if it has parallel loops.
        """
        key = (problem, machine, depth, inlined, threads)
        if key not in self._found:
            self._found[key] = self._make(*key[:3], inlined=inlined, threads=threads)
        return self._found[key]

    def take(self, kernel: EmbeddedKernel) -> None:
        """Add a kernel to the module."""
        self._taken[kernel.name] = kernel

    @property
    def declarations(self) -> tuple[str, ...]:
        """Declarations of the kernels that were added."""
        return tuple(
            f"declare void @{kernel.name}({', '.join(kind.text for _, kind in kernel.arguments)})"
            for kernel in self._taken.values()
        )

    def texts(self, *, inlined: bool) -> tuple[str, ...]:
        """Module texts of the kernels that were added: the inlined ones, or the others."""
        return tuple(kernel.text for kernel in self._taken.values() if kernel.inlined is inlined)

    def _make(
        self, problem: Problem, machine: Machine, depth: int | None, *, inlined: bool, threads: bool
    ) -> EmbeddedKernel:
        name = f"{self._prefix}{len(self._found)}_{kernel_name(problem, machine.isa.name)}"
        state = Compilation(problem, machine, name)
        for stage in STAGES:
            state = state.with_field(stage.name, stage.run(state))
            if isinstance(state.blocking, Blocking) and depth is not None:
                shorter = replace(state.blocking, kc=min(state.blocking.kc, depth))
                state = state.with_field("blocking", shorter)
            if stage.name == "nest" and not threads:
                state = state.with_field("nest", alone(state.program))
            if stage.name == "llvm":
                break
        kinds = {line.partition(") ")[2] for line in _DEFINITION.findall(state.llvm)}
        inlined = inlined and len(kinds) == 1
        attributes = "alwaysinline" if inlined else _compiled_for(machine)
        layout = scratch_layout(state.program)
        return EmbeddedKernel(
            name,
            tuple(signature(state.program)),
            layout.bytes,
            _DEFINITION.sub(rf"\1 {attributes} {{", state.llvm),
            inlined,
            layout.thread_bytes,
        )


def _compiled_for(machine: Machine) -> str:
    """Target attributes of a machine, which kernels keep whatever the rest of the program is compiled for.

    >>> from tilewright.machine.catalog import find_machine
    >>> _compiled_for(find_machine("pwr10")).partition(" ")[0]
    '"target-cpu"="pwr10"'
    """
    attributes = f'"target-cpu"="{machine.cpu}"'
    return f'{attributes} "target-features"="{machine.features}"' if machine.features else attributes
