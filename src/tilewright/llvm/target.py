"""Target machines: what LLVM compiles for, and machine code or assembly from a module."""

from __future__ import annotations

import re
from typing import Any

import llvmlite.binding as llvm

from tilewright.errors import CompilationFailed
from tilewright.llvm.backends import initialize
from tilewright.llvm.matrix import PREFIX, lower_matrices
from tilewright.machine.machine import Machine
from tilewright.preparing import importing, once, preparing

#: LLVM's -O1 code generator gives the same speed as -O2 and -O3 for our explicit vectors, 10 % sooner.
CODEGEN_LEVEL = 1
#: -O0 takes a quarter of that time. Code whose speed does not matter is compiled so.
QUICK_LEVEL = 0


@once
def target_machine(
    triple: str, cpu: str, features: str, *, jit: bool = False, level: int = CODEGEN_LEVEL
) -> Any:
    """The LLVM target machine: position-independent code for one CPU, at a level of optimisation."""
    return _made(triple, cpu, features, jit=jit, level=level)


def _made(triple: str, cpu: str, features: str, *, jit: bool, level: int) -> Any:
    initialize()
    target = llvm.Target.from_triple(triple)
    return target.create_target_machine(
        cpu=cpu, features=features, opt=level, reloc="pic", codemodel="default", jit=jit
    )


#: CPUs whose scheduling model in LLVM 22 makes it spill accumulators of a loop that fits the registers
#: (14x32 of AVX-512; of Neon 16x6, and 12x8 of dot products); scheduled for another CPU the loop is clean,
#: and only the order of instructions differs.
_TUNING = {
    "znver4": "x86-64",
    "x86-64-v4": "x86-64",
    "neoverse-n1": "neoverse-n2",
    "neoverse-v1": "neoverse-n2",
    "tsv110": "neoverse-n2",
}


def tuning(machine: Machine) -> str | None:
    """The CPU to schedule for where that is another one than to compile for."""
    return _TUNING.get(machine.cpu)


def _target_of(machine: Machine, level: int = CODEGEN_LEVEL) -> Any:
    """The target machine of a machine; LLVM is asked first about names that a user chose."""
    _check_names(machine)
    return target_machine(machine.triple, machine.cpu, machine.features, level=level)


def new_target_machine(machine: Machine, level: int) -> Any:
    """A target machine of its own, for a thread: LLVM uses one for one module at a time."""
    _check_names(machine)
    return _made(machine.triple, machine.cpu, machine.features, jit=False, level=level)


def _check_names(machine: Machine) -> None:
    if machine.named:
        with importing:
            from tilewright.llvm.subtarget import cpu_features  # 10 ms: it starts processes

        cpu_features(machine.triple, machine.cpu, machine.features, ())


#: Triples whose objects can be merged.
_MERGED = re.compile(r"(x86_64|aarch64|powerpc64le|riscv64)(-\w+)?-linux(-gnu|-musl)?$")


def has_parts(machine: Machine) -> bool:
    """Whether kernels of a machine are compiled by parts (`llvm/parts.py`)."""
    return _MERGED.match(machine.triple) is not None


def data_layout(machine: Machine) -> str:
    """LLVM's description of type sizes and alignments for a machine.

    Raises
    ------
    UnknownCpu, UnknownFeature, InvalidTarget
        If the user named a CPU or features of this host that LLVM does not know, or cannot compile for.
    """
    return str(_target_of(machine).target_data)


def parse(text: str, name: str, context: Any = None) -> Any:
    """A verified LLVM module from text, in LLVM's global context unless another one is given.

    Raises
    ------
    CompilationFailed : with LLVM's reason.
    """
    with preparing:
        try:
            module = llvm.parse_assembly(text, context)
            module.verify()
        except RuntimeError as error:
            raise CompilationFailed(kernel=name, reason=str(error).strip()) from error
        return module


def _selectable(text: str, name: str, machine: Machine, level: int) -> tuple[Any, Any]:
    """A module that instruction selection can handle, and the target machine to hand it to."""
    module, target = parse(text, name), _target_of(machine, level)
    if PREFIX in text:
        lower_matrices(module, target)
    return module, target


class CompilationCount:
    """How many modules this process compiled to objects; those of the object cache are not compiled.

    One of the few states of a process: whoever asks whether a cache or a cluster saved compilations reads it.
    """

    def __init__(self) -> None:
        self.number = 0


compilations = CompilationCount()


def emit_object(text: str, name: str, machine: Machine, level: int = CODEGEN_LEVEL) -> bytes:
    """Machine code of a module, as an object file."""
    with preparing:
        module, target = _selectable(text, name, machine, level)
        compilations.number += 1
        return bytes(target.emit_object(module))


def emit_optimised(text: str, name: str, machine: Machine) -> bytes:
    """Machine code of a module of plain loops, of which LLVM's optimiser makes vectors first."""
    with preparing:
        module, target = parse(text, name), _target_of(machine)
        options = llvm.create_pipeline_tuning_options(speed_level=2)
        options.loop_vectorization, options.loop_unrolling = True, False
        builder = llvm.create_pass_builder(target, options)
        builder.getModulePassManager().run(module, builder)
        return bytes(target.emit_object(module))


def emit_assembly(text: str, name: str, machine: Machine) -> str:
    """Assembly text of a module."""
    with preparing:
        module, target = _selectable(text, name, machine, CODEGEN_LEVEL)
        return str(target.emit_assembly(module))
