"""Moves the steps of an epilogue out of register tiles: sums go through a small buffer on the stack."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tilewright.ir.expressions import AllOf, AnyOf, Compare, Constant, Name, Relation, Scalar
from tilewright.ir.nodes import (
    Buffer,
    Finish,
    If,
    Loop,
    Program,
    Slice,
    Space,
    Statement,
    TileEpilogue,
    TileMatmul,
    sums_type,
)
from tilewright.spec.dtype import DType

#: The buffer of one tile's sums; no argument has this name.
TILE = "tile_sums"


def separate_steps(program: Program, in_registers: Callable[[TileMatmul], bool] = lambda _: False) -> Program:
    """Replaces tiles with steps by tiles without, each followed by a `TileEpilogue` on the tile's sums.

    Before, in a loop pc over k::

        matmul c = beta * c + alpha * a . b  then bias, gelu at last pc

    After::

        if k <= pc + kc:
          matmul tile_sums = 0 * c + alpha * a . b  fetch c
          epilogue c = beta * c + 1 * tile_sums  then bias, gelu
        else:
          matmul c = beta * c + alpha * a . b

    Parameters
    ----------
    in_registers : the tiles that apply their steps themselves if they are whole and all columns are
        adjacent::

        if k <= pc + kc:
          if mr <= rows and nr <= columns and cs_c == 1:
            matmul c = beta * c + alpha * a . b  then bias, relu
          else: ...

    A tile with `carry` writes nothing but its sums before the last iteration.
    """
    pass_ = _Separation(program, in_registers)
    body = pass_.block(program.body, {})
    if not pass_.sizes:
        return replace(program, body=body)
    (acc,) = pass_.types
    tile = Buffer(TILE, acc, Space.LOCAL, max(pass_.sizes))
    return replace(program, buffers=(*program.buffers, tile), body=body)


class _Separation:
    def __init__(self, program: Program, in_registers: Callable[[TileMatmul], bool]) -> None:
        self.program, self.in_registers = program, in_registers
        self.sizes: list[int] = []  # elements of each tile that has steps
        self.types: set[DType] = set()  # of their sums

    def block(self, body: tuple[Statement, ...], loops: dict[str, Loop]) -> tuple[Statement, ...]:
        """A block, given the loops around it."""
        found: list[Statement] = []
        for statement in body:
            match statement:
                case Loop(axis, body=inner):
                    found.append(replace(statement, body=self.block(inner, loops | {axis: statement})))
                case If(condition, then, otherwise):
                    found.append(If(condition, self.block(then, loops), self.block(otherwise, loops)))
                case TileMatmul(finish=Finish()):
                    found += self.matmul(statement, loops)
                case TileEpilogue(finish=Finish(axis=str(axis))):
                    found += self.epilogue(statement, loops[axis])
                case _:
                    found.append(statement)
        return tuple(found)

    def matmul(self, node: TileMatmul, loops: dict[str, Loop]) -> tuple[Statement, ...]:
        """One register tile with steps."""
        assert node.finish is not None
        tile, pairs = node.tile, node.c.interleave
        self.sizes.append(tile.mr * tile.nr)
        a, b = (self.program.buffer(window.buffer).dtype for window in (node.a, node.b))
        self.types.add(sums_type(node, a, b))
        row = Constant(tile.nr)
        sums = Slice(TILE, Constant(0), (row, Constant(pairs)), interleave=pairs)
        steps = replace(node.finish, axis=None)
        whole = replace(node, c=sums, beta=Scalar(0.0), finish=None, fetched=node.c)
        adjacent = replace(sums, strides=(row, Constant(1)), interleave=1)
        epilogue = TileEpilogue(node.c, adjacent, node.rows, node.columns, Scalar(1.0), node.beta, steps)
        finished: tuple[Statement, ...] = (whole, epilogue)
        apart = isinstance(node.c.strides[1], Constant) and node.c.strides[1] != Constant(1)
        if not apart and self.in_registers(node):
            finished = (If(is_whole(node), (replace(node, finish=steps),), finished),)
        if node.finish.axis is None:
            return finished
        unfinished = replace(node, finish=None) if node.carry is None else replace(whole, fetched=None)
        return (If(at_last(loops[node.finish.axis]), finished, (unfinished,)),)

    def epilogue(self, node: TileEpilogue, loop: Loop) -> tuple[Statement, ...]:
        """An epilogue whose steps come at the last iteration of a loop."""
        assert node.finish is not None
        steps = replace(node, finish=replace(node.finish, axis=None))
        return (If(at_last(loop), (steps,), (replace(node, finish=None),)),)


def at_last(loop: Loop) -> AnyOf:
    """The condition that a loop is at its last iteration."""
    return AnyOf((AllOf((Compare(Relation.LE, loop.end, Name(loop.axis) + loop.step),)),))


def is_whole(node: TileMatmul) -> AnyOf:
    """The condition that a tile is whole, and columns of C and of the operands of steps are adjacent."""
    assert node.finish is not None
    windows = [node.c, *(one.operand for one in node.finish.steps if one.operand is not None)]
    strides = [window.strides[1] for window in windows]
    open_strides = dict.fromkeys(stride for stride in strides if not isinstance(stride, Constant))
    return AnyOf(
        (
            AllOf(
                (
                    Compare(Relation.LE, Constant(node.tile.mr), node.rows),
                    Compare(Relation.LE, Constant(node.tile.nr), node.columns),
                    *(Compare(Relation.EQ, stride, Constant(1)) for stride in open_strides),
                )
            ),
        )
    )
