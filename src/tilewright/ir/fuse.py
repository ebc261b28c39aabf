"""Fusion of nests, so that the output of one stays in cache for the next: unpack, pack and consumers.

Each is a pure function of a program and keeps its meaning bit for bit. They look at nests over tiles: loops
over j and i around moves (`TileEpilogue`) of one tile each, one nest behind the other in a block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tilewright.ir.expressions import Constant, Name, Scalar
from tilewright.ir.nodes import (
    Buffer,
    If,
    Let,
    Loop,
    Pack,
    Program,
    Slice,
    Space,
    Statement,
    TileEpilogue,
    TileMatmul,
    UnaryMap,
)
from tilewright.ir.primitives.budget import Spend
from tilewright.ir.separate import at_last
from tilewright.spec.parts import Parts

_Body = tuple[Statement, ...]


# --- queries ------------------------------------------------------------------------------


def _statements(body: _Body) -> Iterator[Statement]:
    """Every statement of a block, those inside loops and branches too."""
    for statement in body:
        yield statement
        match statement:
            case Loop(body=inner):
                yield from _statements(inner)
            case If(then=then, otherwise=otherwise):
                yield from _statements((*then, *otherwise))


def _reads(statement: Statement) -> list[Slice]:
    """The windows that one primitive reads; those it writes and reads again are written."""
    match statement:
        case Pack(source=source):
            return [source]
        case UnaryMap(source=source):
            return [] if source is None else [source]
        case TileMatmul(a=a, b=b):
            return [a, b]
        case TileEpilogue(sums=sums):
            return [sums]
        case _:
            return []


def _writes(statement: Statement) -> list[Slice]:
    match statement:
        case Pack(destination=destination) | UnaryMap(destination=destination):
            return [destination]
        case TileMatmul(c=c, copied=copied):
            return [c] if copied is None else [c, copied]
        case TileEpilogue(c=c):
            return [c]
        case _:
            return []


def _users(program: Program, buffer: str) -> tuple[list[Statement], list[Statement]]:
    """The primitives that write and that read a buffer."""
    every = list(_statements(program.body))
    return (
        [one for one in every if any(window.buffer == buffer for window in _writes(one))],
        [one for one in every if any(window.buffer == buffer for window in _reads(one))],
    )


def _is_scratch(program: Program, buffer: str) -> bool:
    return program.buffer(buffer).space is Space.THREAD


def _tile_nest(statement: Statement) -> tuple[Loop, Loop] | None:
    """The two loops of a nest over tiles."""
    match statement:
        case Loop(body=(Loop() as inner,)) as outer if not any(isinstance(part, Loop) for part in inner.body):
            return outer, inner
        case _:
            return None


def _same_loops(left: tuple[Loop, Loop], right: tuple[Loop, Loop]) -> bool:
    return all(
        (one.axis, one.begin, one.end, one.step) == (other.axis, other.begin, other.end, other.step)
        for one, other in zip(left, right, strict=True)
    )


def _with_body(nest: tuple[Loop, Loop], body: _Body) -> Loop:
    outer, inner = nest
    return replace(outer, body=(replace(inner, body=body),))


def _in_blocks(body: _Body, program: Program) -> Iterator[tuple[int, _Body]]:
    """Every place of a block and of those inside it."""
    for number, statement in enumerate(body):
        yield number, body
        if isinstance(statement, Loop):
            yield from _in_blocks(statement.body, program)


def _exchanged(body: _Body, old: _Body, new: _Body) -> _Body:
    """The body with one block of statements replaced by another."""
    if body is old:
        return new
    return tuple(
        replace(part, body=_exchanged(part.body, old, new)) if isinstance(part, Loop) else part
        for part in body
    )


def _without(program: Program, body: _Body, *unused: str) -> Program:
    buffers = tuple(buffer for buffer in program.buffers if buffer.name not in unused)
    return replace(program, buffers=buffers, body=body)


# --- unpack into its consumer -----------------------------------------------------------------------


def fuse_unpack(program: Program) -> Program:
    """Consumers of rows that were only unpacked read the tiles instead.

    Before::

        for j, i: epilogue sums[i, j] = 1 * tiles[i, j]
        for j, i: epilogue rows[i, j] = 1 * sums[i, j]  then bias, gelu

    After::

        for j, i: epilogue rows[i, j] = 1 * tiles[i, j]  then bias, gelu
    """
    for number, body in _in_blocks(program.body, program):
        nest = _tile_nest(body[number])
        if nest is None or number + 1 == len(body):
            continue
        following = _tile_nest(body[number + 1])
        match nest[1].body, following:
            case (TileEpilogue() as unpack,), (_, Loop(body=(TileEpilogue() as user, *rest))) if (
                following is not None
                and _same_loops(nest, following)
                and _only_moves(program, unpack)
                and user.sums == unpack.c
                and _users(program, unpack.c.buffer) == ([unpack], [user])
            ):
                fused = replace(user, sums=unpack.sums)
                new = _with_body(following, (fused, *rest))
                found = _exchanged(program.body, body, (*body[:number], new, *body[number + 2 :]))
                return fuse_unpack(_without(program, found, unpack.c.buffer))
            case _:
                continue
    return program


def _only_moves(program: Program, node: TileEpilogue) -> bool:
    """Whether an epilogue copies into scratch of the same type."""
    types = {program.buffer(window.buffer).dtype for window in (node.c, node.sums)}
    plain = node.finish is None and (node.alpha, node.beta) == (Scalar(1.0), Scalar(0.0))
    return plain and len(types) == 1 and _is_scratch(program, node.c.buffer)


# --- pack into its producer -------------------------------------------------------------------------


def fuse_pack(program: Program) -> Program:
    """Rows that are only packed are packed tile by tile, as they are produced.

    Before::

        for j, i: epilogue rows[i, j] = 1 * tiles[i, j]  then bias, gelu
        pack panels = rows

    After, with rows that hold one tile::

        for j, i:
          epilogue rows = 1 * tiles[i, j]  then bias, gelu
          pack panels[i, j] = rows

    A tile must begin at a whole step of the depth and hold the rows of one panel.
    """
    for number, body in _in_blocks(program.body, program):
        nest = _tile_nest(body[number])
        if nest is None or number + 1 == len(body):
            continue
        match nest[1].body, body[number + 1]:
            case (TileEpilogue() as producer,), Pack() as pack if _packs_tiles(program, nest, producer, pack):
                j, i = nest[0], nest[1]
                assert isinstance(i.step, Constant)
                assert isinstance(j.step, Constant)
                assert isinstance(pack.depth, Constant)
                row = Constant(j.step.value)
                tile = Slice(producer.c.buffer, Constant(0), (row, Constant(1)))
                whole = -(-pack.depth.value // pack.unit) * pack.unit
                place = pack.destination.offset + (Name(i.axis) * whole + Name(j.axis) * pack.panel)
                piece = replace(
                    pack,
                    destination=replace(pack.destination, offset=place),
                    source=tile,
                    lanes=producer.rows,
                    depth=producer.columns,
                )
                new = _with_body(nest, (replace(producer, c=tile), piece))
                found = _exchanged(program.body, body, (*body[:number], new, *body[number + 2 :]))
                held = replace(program.buffer(tile.buffer), size=i.step.value * j.step.value)
                return fuse_pack(_with_buffer(program, found, held))
            case _:
                continue
    return program


def _packs_tiles(program: Program, nest: tuple[Loop, Loop], producer: TileEpilogue, pack: Pack) -> bool:
    """Whether a pack reads exactly what a nest writes, in panels that its tiles fill."""
    j, i = nest
    match j.step, pack.depth:
        case Constant(width), Constant(depth):
            row, one = Constant(depth), Constant(1)
            written = Slice(producer.c.buffer, Name(i.axis) * row + Name(j.axis), (row, one))
            return (
                pack.parts is Parts.WHOLE
                and _is_scratch(program, producer.c.buffer)
                and producer.c == written
                and pack.source == Slice(written.buffer, Constant(0), (row, one))
                and (i.begin, i.end, i.step) == (Constant(0), pack.lanes, Constant(pack.panel))
                and (j.begin, j.end) == (Constant(0), pack.depth)
                and width % pack.unit == 0
                and _users(program, written.buffer) == ([producer], [pack])
            )
        case _:
            return False


def _with_buffer(program: Program, body: _Body, changed: Buffer) -> Program:
    buffers = tuple(changed if buffer.name == changed.name else buffer for buffer in program.buffers)
    return replace(program, buffers=buffers, body=body)


# --- a consumer into the product -----------------------------------------------------------------------


def fuse_consumer(program: Program) -> Program:
    """An epilogue that follows a product is applied to each tile at its last depth block, while it is in L1.

    Before::

        for pc:
          for j, i: matmul tiles[i, j] += …
        for j, i: epilogue rows[i, j] = 1 * tiles[i, j]  then bias, gelu

    After::

        for pc:
          for j, i:
            matmul tiles[i, j] += …
            if k <= pc + kc:
              epilogue rows[i, j] = 1 * tiles[i, j]  then bias, gelu

    Where one block is the whole depth, one tile is all that is held.
    """
    for number, body in _in_blocks(program.body, program):
        if number + 1 == len(body):
            continue
        match body[number], _tile_nest(body[number + 1]):
            case Loop(body=(*before, Loop() as walk)) as blocks, (_, Loop(body=after)) as following:
                if not all(isinstance(statement, (Let, Spend)) for statement in before):
                    continue
                nest = _tile_nest(walk)
                if nest is None or following is None or not _same_loops(nest, following):
                    continue
                match nest[1].body, after:
                    case (TileMatmul() as product,), (TileEpilogue() as user, *_) if (
                        user.sums == product.c
                        and _is_scratch(program, product.c.buffer)
                        and _users(program, product.c.buffer) == ([product], [user])
                    ):
                        held, inner = _at_last_depth(program, blocks, product, after)
                        loops = replace(blocks, body=(*before, _with_body(nest, inner)))
                        found = _exchanged(program.body, body, (*body[:number], loops, *body[number + 2 :]))
                        return fuse_consumer(_with_buffer(program, found, held))
                    case _:
                        continue
            case _:
                continue
    return program


def _at_last_depth(program: Program, blocks: Loop, product: TileMatmul, after: _Body) -> tuple[Buffer, _Body]:
    """The buffer of the tiles, and the body of the innermost loop."""
    buffer = program.buffer(product.c.buffer)
    match blocks.end, blocks.step, after[0]:
        case Constant(end), Constant(step), TileEpilogue() as user if end <= step:
            one = replace(product.c, offset=Constant(0))
            held = replace(buffer, size=product.tile.mr * product.tile.nr)
            return held, (replace(product, c=one), replace(user, sums=one), *after[1:])
        case _:
            return buffer, (product, If(at_last(blocks), after))
