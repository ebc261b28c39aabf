"""Unary problems compiled with another cut than the machine's, so that small matrices take any path."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

import tilewright as tw
from tilewright.compiler.lowering.program import lower
from tilewright.ir.nodes import Program
from tilewright.llvm.jit import Linked
from tilewright.llvm.target import emit_object
from tilewright.ops.unary.nest import build_unary, choose_blocks
from tilewright.ops.unary.problem import Unary


class Function:
    """The C function of a program on this host: two pointers, then integers."""

    def __init__(self, program: Program) -> None:
        machine = tw.machine()
        name = program.name
        self._code = Linked(emit_object(lower(program, machine), name, machine), (name,), {})
        kinds = [ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int64] * len(program.sizes)]
        self._function: Any = ctypes.CFUNCTYPE(None, *kinds)(self._code.address(name))

    def __call__(self, *arguments: int) -> None:
        self._function(*arguments)


def compile_cut(problem: Unary, **changed: int) -> Function:
    """A problem whose blocks are those of this host but for some fields."""
    blocks = replace(choose_blocks(problem, tw.machine()), **changed)
    return Function(build_unary(problem, blocks, "kernel"))
