"""The windows that each statement of tile IR reads and writes, and the sizes that its work depends on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import NamedTuple

from tilewright.ir.expressions import ADJACENT, Constant, Expression, TableEntry, ceildiv, minimum
from tilewright.ir.nodes import (
    Finish,
    Pack,
    Primitive,
    Slice,
    Statement,
    Stored,
    TileEpilogue,
    TileMatmul,
    Traffic,
    UnaryMap,
)
from tilewright.ir.primitives.attention import KeyScores, SumValues
from tilewright.ir.primitives.budget import Spend
from tilewright.ir.primitives.prefetch import PrefetchRows
from tilewright.ir.primitives.products import SumProducts
from tilewright.ir.primitives.rotary import RotateRows
from tilewright.ir.primitives.rows import PAIR, RowPrimitive
from tilewright.ir.primitives.tables import PackTable, ScatterTile

#: Fields of primitives that say how much work there is; the others move windows or change values.
_EXTENTS = (
    "rows",
    "columns",
    "depth",
    "lanes",
    "keys",
    "padded",
    "out_columns",
    "pairs",
    "rest",
    "turns",
    "elements",
    "panel",
    "stream",
)
#: Windows that a primitive writes; those of the same name that another one only reads are in `_READ`.
_WRITTEN = ("to", "out", "scores", "weights", "gradients", "row_max", "row_sum", "to_max", "to_sum", "kept")
_READ = {"SumValues": ("weights",), "Normalise": ("row_max", "row_sum"), "Keep": ("weights",)}
#: Windows that are prefetched for others to read.
_AHEAD = ("fetched", "ahead")
#: Windows of one number for each row.
_NUMBERS = ("row_max", "row_sum", "to_max", "to_sum", "other_max", "other_sum", "lse", "delta", "indices")


class Touch(NamedTuple):
    """A window of some rows and columns.

    written : whether it is written; what is written past the caches does not fill lines first.
    past : not 0 if it is written past the caches.
    """

    part: Slice
    rows: Expression
    columns: Expression
    written: bool = False
    past: Expression = Constant(0)


def extents_of(node: Statement) -> dict[str, Expression]:
    """The sizes that the work of a statement depends on, by name."""
    found = {name: getattr(node, name, None) for name in _EXTENTS}
    match node:
        case TileMatmul(batch=batch) if batch is not None:
            found["batch"] = batch.count
        case Pack(source=source):
            found["lane_stride"] = source.strides[0]
        case UnaryMap(destination=to, source=source) if source is not None:
            found |= {"from_column": source.strides[1], "to_column": to.strides[1]}
        case RowPrimitive(source=source):
            found["from_column"] = source.strides[1]
        case PackTable(steps=steps, depths_at=depths):
            found["lane_step"] = TableEntry(steps.buffer, steps.offset)
            second = TableEntry(depths.buffer, depths.offset + minimum(node.depth - 1, 1))
            found["depth_step"] = second - TableEntry(depths.buffer, depths.offset)
        case ScatterTile(step=step):
            found["step"] = step
    return {name: value for name, value in found.items() if isinstance(value, Expression)}


def touches_of(node: Statement) -> Iterator[Touch]:
    """The windows of a statement."""
    match node:
        case TileMatmul():
            yield from _of_tile(node)
        case Pack(destination=to, source=source, lanes=lanes, depth=depth):
            yield _words(source, node.stored, lanes, depth)
            spread = Constant(node.parts.spread[0] * node.parts.spread[1])
            yield _strip(to, lanes * depth * spread)
        case TileEpilogue(c=c, sums=sums, rows=rows, columns=columns):
            yield Touch(sums, rows, columns)
            yield Touch(c, rows, columns, written=True)
            yield from _operands(node.finish, rows, columns)
        case UnaryMap(destination=to, source=source, rows=rows, columns=columns):
            if source is not None:
                yield Touch(source, rows, columns)
            past = Constant(int(node.traffic is Traffic.STREAM))
            yield Touch(to, rows, columns, written=True, past=past)
        case PackTable(to=to, lanes=lanes, depth=depth):
            yield Touch(_by_tables(node.source, node.lanes_at, node.depths_at, depth), lanes, depth)
            yield _strip(to, lanes * depth)
        case ScatterTile(to=to, tile=tile, rows=rows, columns=columns):
            yield Touch(tile, rows, columns)
            yield Touch(_by_tables(to, node.rows_at, node.columns_at, columns), rows, columns, written=True)
        case KeyScores(scores=scores, q=q, k=k, rows=rows, keys=keys, depth=depth):
            yield Touch(scores, rows, keys, written=True)
            yield Touch(q, rows, depth)
            yield Touch(k, keys, depth)
        case SumValues(out=out, weights=weights, values=values, rows=rows, keys=keys, columns=columns):
            yield Touch(out, rows, columns, written=True)
            yield Touch(weights, rows, keys)
            yield Touch(values, keys, columns)
        case Spend() | PrefetchRows():
            return
        case Primitive():
            yield from _of_primitive(node)


def _of_tile(node: TileMatmul) -> Iterator[Touch]:
    """Operands, sums and what finishes them."""
    rows, columns, depth = node.rows, node.columns, node.depth
    yield Touch(node.a, rows, ceildiv(depth, node.depths_of_a))
    across, deep = node.spread_of_b
    yield _words(node.b, node.stored, ceildiv(columns, across), ceildiv(depth, deep))
    if node.copied is not None:
        yield Touch(node.copied, columns, depth, written=True)
    sums = node.c if node.carry is None else node.carry.sums
    yield Touch(sums, rows, columns, written=True)
    if node.stored is not None and node.stored.zero is not None:
        yield Touch(node.stored.zero, columns, ceildiv(depth, node.stored.group))
    if node.groups is not None:
        yield Touch(node.groups.scale, columns, ceildiv(depth, node.groups.depth))
    yield from _operands(node.finish, rows, columns)


def _operands(finish: Finish | None, rows: Expression, columns: Expression) -> Iterator[Touch]:
    """The operands of steps before a store."""
    for step in finish.steps if finish is not None else ():
        if step.operand is not None:
            yield Touch(step.operand, rows, columns)


def _words(part: Slice, stored: Stored | None, lanes: Expression, depth: Expression) -> Touch:
    """Elements, or the words of a packed weight that hold them."""
    if stored is None or not stored.elements.scaled:
        return Touch(part, lanes, depth)
    return Touch(part, lanes, ceildiv(depth, stored.elements.depths))


def _strip(part: Slice, elements: Expression) -> Touch:
    """Adjacent elements that are written."""
    return Touch(
        Slice(part.buffer, part.offset, (Constant(0), ADJACENT)), Constant(1), elements, written=True
    )


def _by_tables(part: Slice, rows: Slice, columns: Slice, width: Expression) -> Slice:
    """Elements whose places are in tables, as if all were adjacent, in the order of the tables."""
    offset = part.offset + rows.offset * width + columns.offset
    return Slice(part.buffer, offset, (width, ADJACENT))


def _of_primitive(node: Primitive) -> Iterator[Touch]:
    """Windows of rows × columns, by the names of the fields."""
    sizes = extents_of(node)
    rows = sizes.get("rows", Constant(1))
    columns = sizes.get("columns", sizes.get("elements", Constant(1)))
    if isinstance(node, RotateRows):
        columns = node.pairs * 2 + node.rest
    if isinstance(node, SumProducts):
        rows = rows * node.turns
    read = _READ.get(type(node).__name__, ())
    for one in fields(node):
        part = getattr(node, one.name)
        if not isinstance(part, Slice) or one.name in _AHEAD:
            continue
        wide = sizes.get("out_columns", columns) if one.name == "out" else columns
        number = one.name in _NUMBERS or (one.name == "to" and isinstance(node, SumProducts))
        number = number or (one.name == "to" and isinstance(node, RowPrimitive) and node.op.reduces)
        high = Constant(PAIR) if one.name == "kept" else rows
        past = sizes.get("stream", Constant(0)) if one.name == "to" else Constant(0)
        written = one.name in _WRITTEN and one.name not in read
        yield Touch(part, high, Constant(1) if number else wide, written, past)
