"""The loops of a GEMM's quick code: dot products for one column, operands in place for everything else."""

from __future__ import annotations

from dataclasses import replace

from tilewright.ir.nodes import If, Loop, Program, Statement, TileForm, TileMatmul
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import Blocking
from tilewright.ops.gemm.nest import build_gemm
from tilewright.ops.gemm.problem import Gemm
from tilewright.spec.problem import Strategy


def build_quick_gemm(problem: Gemm, blocking: Blocking, machine: Machine, program: Program) -> Program:
    """A shorter program with the bits of a GEMM's usual one.

    Before: dot products, streaming, in place, or packed, by size. After: dot products where they were, since
    they have an order of their own; else in place, with a micro-panel of B copied where it is strided.
    """
    if problem.strategy is not Strategy.AUTO or problem.packed or problem.weights is not None:
        return program
    *lets, first = program.body
    tiled = build_gemm(problem.with_strategy(Strategy.TILING), blocking, machine, program.name)
    match first:
        case If(then=then) if _has_dots(then):
            return replace(tiled, body=(*lets, replace(first, otherwise=tiled.body[len(lets) :])))
        case _:
            return tiled


def _has_dots(body: tuple[Statement, ...]) -> bool:
    """Whether a block multiplies by dot products."""
    for statement in body:
        match statement:
            case Loop(body=inner) if _has_dots(inner):
                return True
            case TileMatmul(form=TileForm.DOT):
                return True
    return False
