"""Takes the steps of an epilogue out of register tiles: sums go through a small buffer in the frame."""

from __future__ import annotations

from dataclasses import replace

from tilewright.ir.nodes import (
    AllOf,
    AnyOf,
    Buffer,
    Compare,
    Constant,
    Epilogue,
    Finish,
    If,
    Loop,
    Name,
    Program,
    Relation,
    Scalar,
    Slice,
    Space,
    Statement,
    TileMatmul,
    sums_type,
)
from tilewright.spec.dtype import DType

#: The buffer of one tile's sums; no argument has this name.
TILE = "tile_sums"


def separate_steps(program: Program) -> Program:
    """Tiles with steps as tiles without, each followed by an `Epilogue` on the sums that it left.

    Before, in a loop pc over k::

        matmul c = beta * c + alpha * a . b  then bias, gelu at last pc

    After::

        if k <= pc + kc:
          matmul tile_sums = 0 * c + alpha * a . b
          epilogue c = beta * c + 1 * tile_sums  then bias, gelu
        else:
          matmul c = beta * c + alpha * a . b

    A tile with `carry` writes nothing but sums before the last iteration, and so has one form.
    """
    pass_ = _Separation(program)
    body = pass_.block(program.body, {})
    if not pass_.sizes:
        return replace(program, body=body)
    (acc,) = pass_.types
    tile = Buffer(TILE, acc, Space.LOCAL, max(pass_.sizes))
    return replace(program, buffers=(*program.buffers, tile), body=body)


class _Separation:
    def __init__(self, program: Program) -> None:
        self.program = program
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
                case Epilogue(finish=Finish(axis=str(axis))):
                    found += self.epilogue(statement, loops[axis])
                case _:
                    found.append(statement)
        return tuple(found)

    def matmul(self, node: TileMatmul, loops: dict[str, Loop]) -> list[Statement]:
        """One register tile with steps."""
        assert node.finish is not None
        tile, pairs = node.tile, node.c.interleave
        self.sizes.append(tile.mr * tile.nr)
        a, b = (self.program.buffer(window.buffer).dtype for window in (node.a, node.b))
        self.types.add(sums_type(node, a, b))
        strides = (Constant(tile.nr), Constant(1))
        if pairs > 1:
            strides = (Constant(tile.nr), Constant(pairs))
        sums = Slice(TILE, Constant(0), strides, interleave=pairs)
        whole = replace(node, c=sums, beta=Scalar(0.0), finish=None)
        rows = Slice(TILE, Constant(0), (Constant(tile.nr), Constant(1)))
        one = Scalar(1.0)
        steps = replace(node.finish, axis=None)
        epilogue = Epilogue(node.c, rows, node.rows, node.columns, one, node.beta, steps)
        if node.finish.axis is None:
            return [whole, epilogue]
        last = at_last(loops[node.finish.axis])
        if node.carry is not None:
            return [whole, If(last, (epilogue,))]
        return [If(last, (whole, epilogue), (replace(node, finish=None),))]

    def epilogue(self, node: Epilogue, loop: Loop) -> list[Statement]:
        """An epilogue whose steps come at the last iteration of a loop."""
        assert node.finish is not None
        steps = replace(node, finish=replace(node.finish, axis=None))
        return [If(at_last(loop), (steps,), (replace(node, finish=None),))]


def at_last(loop: Loop) -> AnyOf:
    """That a loop is at its last iteration."""
    return AnyOf((AllOf((Compare(Relation.LE, loop.end, Name(loop.axis) + loop.step),)),))
