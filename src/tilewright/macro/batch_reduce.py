"""Batch-reduce GEMM of hardcoded sizes: straight register tiles, the batch summed in registers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby

from tilewright.ir.nodes import (
    Batch,
    Buffer,
    Constant,
    Expression,
    FirstElse,
    Loop,
    Name,
    Pack,
    Program,
    Scalar,
    ScalarValue,
    Slice,
    Space,
    Statement,
    Tile,
    TileMatmul,
)
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import Cover, choose_cover
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


@dataclass(frozen=True)
class _Roles:
    """A product turned so that C's vectors lie along its contiguous axis."""

    rows: int
    columns: int
    broadcast: _Side
    vector: _Side


def _side(name: str, layout: Layout, *, lane_is_row: bool) -> _Side:
    """A or B by rows (m of A, depths of B) or columns; one of the two strides is 1."""
    leading = Name(f"ld_{name}")
    rows_adjacent = layout is Layout.COL
    lane_adjacent = rows_adjacent if lane_is_row else not rows_adjacent
    lane, depth = (Constant(1), leading) if lane_adjacent else (leading, Constant(1))
    return _Side(name, lane, depth, Name(f"br_stride_{name}"))


def _roles(problem: BatchReduceGemm) -> _Roles:
    """Rows of A are broadcast for a row-major C; for a column-major one, columns of B."""
    a = _side("a", problem.a, lane_is_row=True)
    b = _side("b", problem.b, lane_is_row=False)
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


def _packed(problem: BatchReduceGemm, roles: _Roles, cover: Cover) -> tuple[Statement, ...]:
    """The vector operand of each product is transposed into a panel first; C collects the batch."""
    x, y = roles.broadcast, roles.vector
    addresses = problem.batch is BatchMode.ADDRESS
    beta: ScalarValue = FirstElse("batch", Scalar(float(problem.beta)), Scalar(1.0))
    index = Name("batch") if addresses else None

    def at(side: _Side, offset: Expression) -> Slice:
        start = offset if addresses else offset + Name("batch") * side.step
        return Slice(side.name, start, (side.lane, side.depth), index)

    def row_tiles(column: Expression, columns: int) -> tuple[Statement, ...]:
        panel = Slice("panel", Constant(0), (Constant(1), Constant(columns)))

        def tile(row: Expression, rows: int) -> tuple[Statement, ...]:
            node = _tile(problem, roles, (row, column), (rows, columns))
            fields = dict(node.__dict__)
            fields.update(a=at(x, row * x.lane), b=panel, beta=beta, batch=None)
            return (TileMatmul(**fields),)

        source = at(y, column * y.lane)
        pack = Pack(panel, source, Constant(columns), Constant(problem.k), columns)
        return (pack, *_over("i", cover.heights, tile))

    body = _over("j", cover.widths, row_tiles)
    return (Loop("batch", Constant(0), Constant(problem.count), Constant(1), body),)


def cover_of(problem: BatchReduceGemm, machine: Machine) -> Cover:
    """The register tiles of a problem: rows of the broadcast operand, columns of the vector operand.

    >>> from tilewright.machine.catalog import find_machine
    >>> cover_of(BatchReduceGemm(23, 23, 23, 1), find_machine("znver5")).heights
    ((12, 1), (11, 1))
    """
    roles = _roles(problem)
    direct = roles.vector.lane == Constant(1)
    depth = problem.k * (problem.count if direct else 1)
    cover = choose_cover(machine, problem.dtype, roles.rows, roles.columns, depth)
    if direct:
        return cover
    limit = max(1, LOCAL_PANEL_BYTES // (problem.k * problem.dtype.size))
    return _narrowed(cover, limit, machine.isa.lanes(problem.dtype))


def build_batch_reduce(problem: BatchReduceGemm, cover: Cover, name: str) -> Program:
    """The tile IR of a batch-reduce GEMM, cut by a cover.

    The register tile loads vectors of the operand that shares C's contiguous axis. Where that
    operand's lanes are not adjacent, it is transposed panel by panel.

    Examples
    --------
    >>> from tilewright.machine.catalog import find_machine
    >>> problem = BatchReduceGemm(16, 6, 64, 1)
    >>> cover = cover_of(problem, find_machine("znver5"))
    >>> len(build_batch_reduce(problem, cover, "kernel").body)
    1
    """
    roles = _roles(problem)
    buffers = [Buffer(operand, problem.dtype, Space.ARGUMENT) for operand in ("a", "b", "c")]
    if roles.vector.lane == Constant(1):
        body = _direct(problem, roles, cover)
    else:
        body = _packed(problem, roles, cover)
        widest = max(width for width, _ in cover.widths)
        buffers.append(Buffer("panel", problem.dtype, Space.LOCAL, widest * problem.k))
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
