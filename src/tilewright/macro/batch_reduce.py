"""Batch-reduce GEMM of hardcoded sizes: straight register tiles, the batch summed in registers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from tilewright.ir.nodes import (
    Batch,
    Buffer,
    Carry,
    Constant,
    Expression,
    FirstElse,
    Loop,
    Name,
    Pack,
    Parts,
    Program,
    Scalar,
    ScalarValue,
    Slice,
    Space,
    Statement,
    Tile,
    TileMatmul,
)
from tilewright.machine.isa import Isa, TileFma
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import Cover, choose_cover
from tilewright.spec.dtype import DType, Kind
from tilewright.spec.problem import BatchMode, BatchReduceGemm, Layout

#: Run-time parameters behind the three pointers, in the order of seed 002's Listing 7.2.1.
SIZES = ("ld_a", "ld_b", "ld_c", "br_stride_a", "br_stride_b")

#: A micro-panel that must be transposed stands in the frame; threads have stacks of 512 KiB and more.
LOCAL_PANEL_BYTES = 128 << 10


@dataclass(frozen=True)
class _Side:
    """One input as the register tile sees it: its name, and strides along rows or lanes and depth."""

    name: str
    lane: Expression
    depth: Expression
    step: Expression
    dtype: DType


@dataclass(frozen=True)
class _Roles:
    """A product turned so that C's vectors lie along its contiguous axis."""

    rows: int
    columns: int
    broadcast: _Side
    vector: _Side

    def instruction(self, isa: Isa) -> TileFma:
        """The multiply instruction for the elements of both sides."""
        return isa.tile(self.broadcast.dtype, self.vector.dtype)

    def in_place(self, instruction: TileFma) -> bool:
        """Whether register tiles read both sides where they stand."""
        adjacent = self.vector.lane == Constant(1)
        return adjacent and instruction.in_place and self.vector.dtype.kind is not Kind.COMPLEX


def _side(name: str, layout: Layout, dtype: DType, *, lane_is_row: bool) -> _Side:
    """A or B by rows (m of A, depths of B) or columns; one of the two strides is 1."""
    leading = Name(f"ld_{name}")
    rows_adjacent = layout is Layout.COL
    lane_adjacent = rows_adjacent if lane_is_row else not rows_adjacent
    lane, depth = (Constant(1), leading) if lane_adjacent else (leading, Constant(1))
    return _Side(name, lane, depth, Name(f"br_stride_{name}"), dtype)


def _roles(problem: BatchReduceGemm) -> _Roles:
    """Rows of A are broadcast for a row-major C; for a column-major one, columns of B."""
    a = _side("a", problem.a, problem.dtype, lane_is_row=True)
    b = _side("b", problem.b, problem.b_dtype, lane_is_row=False)
    if problem.c is Layout.ROW:
        return _Roles(problem.m, problem.n, a, b)
    return _Roles(problem.n, problem.m, b, a)


def _spans(parts: tuple[tuple[int, int], ...]) -> Iterator[tuple[int, int, int]]:
    """(first, end, size) of each run of equal parts."""
    first = 0
    for size, count in parts:
        yield first, first + size * count, size
        first += size * count


def _over(
    axis: str, parts: tuple[tuple[int, int], ...], body: Callable[[Expression, int], tuple[Statement, ...]]
) -> tuple[Statement, ...]:
    """Runs of equal parts as loops, single parts as straight code."""
    found: list[Statement] = []
    for number, (first, end, size) in enumerate(_spans(parts)):
        if end - first == size:
            found.extend(body(Constant(first), size))
        else:
            name = f"{axis}{number}"
            found.append(Loop(name, Constant(first), Constant(end), Constant(size), body(Name(name), size)))
    return tuple(found)


def _tile(
    problem: BatchReduceGemm, roles: _Roles, place: tuple[Expression, Expression], size: tuple[int, int]
) -> TileMatmul:
    """One register tile at (row, column), both operands in place, the whole batch in registers."""
    row, column = place
    rows, columns = size
    x, y = roles.broadcast, roles.vector
    steps = {x.name: x.step, y.name: y.step}
    addresses = problem.batch is BatchMode.ADDRESS
    one = Constant(1)
    batch = None
    if problem.count > 1 or addresses:
        # Behind pointers, the next operand is the next pointer.
        batch = Batch(
            Constant(problem.count),
            one if addresses else steps[x.name],
            one if addresses else steps[y.name],
            addresses,
        )
    return TileMatmul(
        c=Slice("c", row * Name("ld_c") + column, (Name("ld_c"), Constant(1))),
        a=Slice(x.name, row * x.lane, (x.lane, x.depth)),
        b=Slice(y.name, column * y.lane, (y.lane, y.depth)),
        rows=Constant(rows),
        columns=Constant(columns),
        depth=Constant(problem.k),
        tile=Tile(rows, columns),
        alpha=Scalar(1.0),
        beta=Scalar(float(problem.beta)),
        batch=batch,
    )


def _direct(problem: BatchReduceGemm, roles: _Roles, cover: Cover) -> tuple[Statement, ...]:
    def row_tiles(column: Expression, columns: int) -> tuple[Statement, ...]:
        return _over(
            "i", cover.heights, lambda row, rows: (_tile(problem, roles, (row, column), (rows, columns)),)
        )

    return _over("j", cover.widths, row_tiles)


def _packed(problem: BatchReduceGemm, roles: _Roles, cover: Cover, isa: Isa) -> tuple[Statement, ...]:
    """Operands of each product are packed into panels first; C, or sums beside it, collects the batch.

    Both are where the instruction takes several depths or complex parts; else only the vector operand,
    whose lanes are not adjacent.
    """
    x, y, instruction = roles.broadcast, roles.vector, roles.instruction(isa)
    addresses, types = problem.batch is BatchMode.ADDRESS, problem.types
    parts = 2 if types.is_complex else 1
    both = not instruction.in_place or parts > 1
    beta: ScalarValue = FirstElse("batch", Scalar(float(problem.beta)), Scalar(1.0))
    index = Name("batch") if addresses else None
    depth = -(-problem.k * parts // instruction.k) * instruction.k
    carry = types.narrows and problem.count > 1
    # Tiles write whole vectors of sums, which may not reach into the next row's.
    pitch = _whole_columns(roles.columns * parts, instruction, isa)
    sums = Slice("sums", Constant(0), (Constant(pitch), Constant(1)))

    def at(side: _Side, offset: Expression) -> Slice:
        start = offset if addresses else offset + Name("batch") * side.step
        return Slice(side.name, start, (side.lane, side.depth), index)

    def panel(buffer: str, lanes: int, kr: int, first: Expression) -> Slice:
        return Slice(buffer, first, (Constant(kr), Constant(kr * lanes)), interleave=kr)

    def pack_rows() -> tuple[Statement, ...]:
        """Each height of tiles is a run of micro-panels."""
        found = []
        kr, how = instruction.interleave_a, Parts.SPLIT if parts > 1 else Parts.WHOLE
        for first, end, rows in _spans(cover.heights):
            to = panel("rows", rows, kr, Constant(first * depth))
            source = at(x, first * x.lane)
            count, k = Constant(end - first), Constant(problem.k)
            found.append(Pack(to, source, count, k, rows, kr, instruction.k, how))
        return tuple(found)

    def row_tiles(column: Expression, columns: int) -> tuple[Statement, ...]:
        kr, how = instruction.kr, Parts.ROTATED if parts > 1 else Parts.WHOLE
        wide = columns * parts
        if instruction.m > 1:
            wide = _whole_columns(wide, instruction, isa)
        panel_b = panel("panel", wide, kr, Constant(0))

        def tile(row: Expression, rows: int) -> tuple[Statement, ...]:
            node = _tile(problem, roles, (row, column), (rows, columns))
            high = -(-rows // instruction.m) * instruction.m
            a = at(x, row * x.lane)
            if both:
                a = panel("rows", rows, instruction.interleave_a, row * depth)
            node = replace(
                node,
                a=a,
                b=panel_b,
                depth=Constant(problem.k * parts),
                columns=Constant(columns * parts),
                tile=Tile(high, wide, kr),
                beta=Scalar(float(problem.beta)) if carry else beta,
                batch=None,
            )
            if parts > 1:
                c = node.c
                strides = (c.strides[0] * parts, c.strides[1] * parts)
                node = replace(node, c=Slice("c", c.offset * parts, strides, interleave=parts))
            if carry:
                place = replace(sums, offset=row * pitch + column * parts)
                node = replace(node, carry=Carry(place, "batch"))
            return (node,)

        source = at(y, column * y.lane)
        pack = Pack(panel_b, source, Constant(columns), Constant(problem.k), wide, kr, instruction.k, how)
        return (pack, *_over("i", cover.heights, tile))

    packs = pack_rows() if both else ()
    body = (*packs, *_over("j", cover.widths, row_tiles))
    return (Loop("batch", Constant(0), Constant(problem.count), Constant(1), body),)


def _whole_columns(columns: int, instruction: TileFma, isa: Isa) -> int:
    """As many columns in whole vectors of sums, and whole instructions."""
    whole = max(instruction.n, isa.lanes(instruction.acc))
    return -(-columns // whole) * whole


def cover_of(problem: BatchReduceGemm, machine: Machine) -> Cover:
    """The register tiles of a problem: rows of the broadcast operand, columns of the vector operand.

    >>> from tilewright.machine.catalog import find_machine
    >>> cover_of(BatchReduceGemm(23, 23, 23, 1), find_machine("znver5")).heights
    ((12, 1), (11, 1))
    """
    roles = _roles(problem)
    types, isa = problem.types, machine.isa
    instruction, parts = roles.instruction(isa), 2 if types.is_complex else 1
    direct = roles.in_place(instruction)
    depth = problem.k * parts * (problem.count if direct else 1)
    edge = isa.edge_of(*(dtype.real for dtype in (types.a, types.b, types.c)))
    cover = choose_cover(machine, instruction, edge, (roles.rows, roles.columns * parts, depth))
    if direct:
        return cover
    limit = max(1, LOCAL_PANEL_BYTES // (problem.k * parts * instruction.b.size))
    cover = _narrowed(cover, limit, max(isa.lanes(types.acc), instruction.n))
    return Cover(cover.heights, tuple((size // parts, count) for size, count in cover.widths))


def build_batch_reduce(problem: BatchReduceGemm, cover: Cover, machine: Machine, name: str) -> Program:
    """The tile IR of a batch-reduce GEMM, cut by a cover.

    The register tile loads vectors of the operand that shares C's contiguous axis. Where that
    operand's lanes are not adjacent, it is transposed panel by panel.

    Examples
    --------
    >>> from tilewright.machine.catalog import find_machine
    >>> problem, machine = BatchReduceGemm(16, 6, 64, 1), find_machine("znver5")
    >>> cover = cover_of(problem, machine)
    >>> len(build_batch_reduce(problem, cover, machine, "kernel").body)
    1
    """
    roles, types = _roles(problem), problem.types
    one, parts = roles.instruction(machine.isa), 2 if types.is_complex else 1
    stored = (types.a, types.b, types.c.real)
    buffers = [Buffer(operand, dtype, Space.ARGUMENT) for operand, dtype in zip("abc", stored, strict=True)]
    if roles.in_place(one):
        body = _direct(problem, roles, cover)
    else:
        body = _packed(problem, roles, cover, machine.isa)
        depth = -(-problem.k * parts // one.k) * one.k
        widest = max(_whole_columns(width * parts, one, machine.isa) for width, _ in cover.widths)
        buffers.append(Buffer("panel", one.b, Space.LOCAL, widest * depth))
        if not one.in_place or parts > 1:
            high = sum(-(-rows // one.m) * one.m * count for rows, count in cover.heights)
            buffers.append(Buffer("rows", one.a, Space.LOCAL, high * depth))
        if types.narrows and problem.count > 1:
            rows = -(-roles.rows // one.m) * one.m
            columns = _whole_columns(roles.columns * parts, one, machine.isa)
            buffers.append(Buffer("sums", types.acc, Space.LOCAL, rows * columns))
    return Program(name=name, sizes=SIZES, scalars=(), buffers=tuple(buffers), body=body)


def _narrowed(cover: Cover, limit: int, lanes: int) -> Cover:
    """The cover with tiles no wider than `limit` columns, in whole vectors."""
    width = max(lanes, limit // lanes * lanes)
    columns: list[int] = []
    for size, count in cover.widths:
        whole, rest = divmod(size, width)
        columns.extend(([width] * whole + [rest] * (rest > 0)) * count)
    # Equal tiles are one run, whatever they were cut from: each run is written once.
    columns.sort(reverse=True)
    runs = tuple((size, len(list(equal))) for size, equal in groupby(columns))
    return Cover(cover.heights, runs)
