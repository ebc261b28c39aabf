"""Products of hardcoded sizes: straight register tiles, a batch summed in registers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TypeAlias

from tilewright.ir.expressions import AnyOf, Constant, Expression, FirstElse, Name, Scalar, ScalarValue
from tilewright.ir.nodes import (
    Applied,
    Batch,
    Buffer,
    Carry,
    Finish,
    If,
    Loop,
    Pack,
    Program,
    Slice,
    Space,
    Statement,
    Tile,
    TileEpilogue,
    TileMatmul,
)
from tilewright.ir.separate import at_last
from tilewright.machine.isa import Isa, TileFma
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import Cover, choose_cover
from tilewright.ops.batch_reduce.ahead import NextMatrix, TileRun, share_tiles
from tilewright.ops.batch_reduce.problem import BatchMode, BatchReduceGemm
from tilewright.records import dataclass
from tilewright.spec.dtype import DType
from tilewright.spec.parts import Parts
from tilewright.spec.problem import FIXED_STRIDES, Layout, ProductTypes

#: A micro-panel that must be transposed is stored in the frame; threads have stacks of 512 KiB and more.
LOCAL_PANEL_BYTES = 128 << 10


#: The row and column of C at which a tile begins.
Place: TypeAlias = tuple[Expression, Expression]
#: The statements of a tile at a place, of a size, which prefetches something; those before a column of tiles.
TileBody: TypeAlias = Callable[[Place, tuple[int, int], Slice | None], tuple[Statement, ...]]
ColumnBody: TypeAlias = Callable[[Expression, int], tuple[Statement, ...]]


@dataclass(frozen=True)
class OperandSide:
    """One input as the register tile sees it, strides in elements.

    Attributes
    ----------
    name : its buffer.
    lane, depth : from one row (of the broadcast input) or column (of the vector input) to the next, and from
        one depth to the next.
    step : from one product of the batch to the next.
    """

    name: str
    lane: Expression
    depth: Expression
    step: Expression
    dtype: DType


@dataclass(frozen=True)
class TileProduct:
    """A batch of products of known sizes, transposed so that vectors run along C's contiguous axis, if any.

    Attributes
    ----------
    rows, columns, depth, count : sizes.
    broadcast, vector : the input whose elements are broadcast, and the one loaded as vectors.
    c : the start of C and its row and column strides.
    types : element types; either input may be A.
    beta : 1 adds to C, 0 replaces it.
    addresses : the inputs are arrays of pointers.
    ahead : tiles prefetch the next product.
    steps : operations applied to sums before they are stored.
    """

    rows: int
    columns: int
    depth: int
    count: int
    broadcast: OperandSide
    vector: OperandSide
    c: Slice
    types: ProductTypes
    beta: int = 0
    addresses: bool = False
    ahead: bool = False
    steps: tuple[Applied, ...] = ()

    def instruction(self, isa: Isa) -> TileFma:
        """The multiply instruction for the elements of both sides."""
        return isa.tile(self.broadcast.dtype, self.vector.dtype)

    def in_place(self, isa: Isa) -> bool:
        """Whether register tiles read both inputs in place."""
        adjacent = self.vector.lane == Constant(1)
        return adjacent and self.instruction(isa).in_place and not self.types.is_complex

    @property
    def apart(self) -> bool:
        """Whether tiles are stored through a buffer: tiles of known sizes store contiguous columns only."""
        return self.c.strides[1] != Constant(1)

    @property
    def parts(self) -> int:
        """Numbers in one element: 2 where it is complex."""
        return 2 if self.types.is_complex else 1


def _side(name: str, layout: Layout, dtype: DType, *, lane_is_row: bool) -> OperandSide:
    """A or B by rows (m of A, depths of B) or columns; one of the two strides is 1."""
    leading = Name(f"ld_{name}")
    rows_adjacent = layout is Layout.COL
    lane_adjacent = rows_adjacent if lane_is_row else not rows_adjacent
    lane, depth = (Constant(1), leading) if lane_adjacent else (leading, Constant(1))
    return OperandSide(name, lane, depth, Name(f"br_stride_{name}"), dtype)


def _product(problem: BatchReduceGemm) -> TileProduct:
    """Rows of A are broadcast for a row-major C; for a column-major one, columns of B.

    Of complex numbers always rows of A: see `macro.nest.computed_transposed`.
    """
    sizes, sides = (
        (problem.m, problem.n),
        (
            _side("a", problem.a, problem.dtype, lane_is_row=True),
            _side("b", problem.b, problem.b_dtype, lane_is_row=False),
        ),
    )
    by_columns = problem.c is not Layout.ROW
    if by_columns and not problem.types.is_complex:
        sizes, sides, by_columns = (sizes[1], sizes[0]), (sides[1], sides[0]), False
    return TileProduct(
        *(*sizes, problem.k, problem.count, *sides),
        c=Slice("c", Constant(0), (Constant(1), Name("ld_c")) if by_columns else (Name("ld_c"), Constant(1))),
        types=problem.types,
        beta=problem.beta,
        addresses=problem.batch is BatchMode.ADDRESS,
        ahead=problem.batch is BatchMode.AHEAD,
    )


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
    product: TileProduct,
    place: Place,
    size: tuple[int, int],
    ahead: Slice | None,
) -> TileMatmul:
    """One register tile at (row, column), both operands in place, the whole batch in registers."""
    row, column = place
    rows, columns = size
    x, y, c = product.broadcast, product.vector, product.c
    addresses = product.addresses
    one = Constant(1)
    batch = None
    if product.count > 1 or addresses:
        # Behind pointers, the next operand is the next pointer.
        batch = Batch(
            Constant(product.count), one if addresses else x.step, one if addresses else y.step, addresses
        )
    return TileMatmul(
        c=replace(c, offset=c.offset + (row * c.strides[0] + column * c.strides[1])),
        a=Slice(x.name, row * x.lane, (x.lane, x.depth)),
        b=Slice(y.name, column * y.lane, (y.lane, y.depth)),
        rows=Constant(rows),
        columns=Constant(columns),
        depth=Constant(product.depth),
        tile=Tile(rows, columns),
        alpha=Scalar(1.0),
        beta=Scalar(float(product.beta)),
        batch=batch,
        finish=Finish(product.steps) if product.steps else None,
        ahead=ahead,
    )


def _stored(product: TileProduct, node: TileMatmul, last: AnyOf | None = None) -> tuple[Statement, ...]:
    """A tile whose columns of C are not adjacent goes through a buffer.

    Before: ``matmul c = beta * c + a . b``. After: ``matmul tile = a . b``, ``epilogue c = beta * c + tile``;
    where sums wait for a last product, only that one is stored.
    """
    if not product.apart:
        return (node,)
    row, parts = Constant(node.tile.nr), product.parts
    held = Slice("tile", Constant(0), (row, Constant(parts)), interleave=parts)
    adjacent = Slice("tile", Constant(0), (row, Constant(1)))
    kept = replace(node, c=held, beta=Scalar(0.0), finish=None)
    store: Statement = TileEpilogue(
        node.c, adjacent, node.rows, node.columns, Scalar(1.0), node.beta, node.finish
    )
    return (kept, store if last is None else If(last, (store,)))


def _next_product(product: TileProduct) -> tuple[NextMatrix, ...]:
    """The matrices of the next product, which are taken to be without gaps, and its C to follow this one.

    First what the first tile reads whole, last what it writes when it ends.
    """
    x, y, c = product.broadcast, product.vector, product.c
    m, n, k = product.rows, product.columns, product.depth
    return (
        NextMatrix(y.name, y.step, n * k, y.dtype.size),
        NextMatrix(x.name, x.step, m * k, x.dtype.size),
        NextMatrix(c.buffer, c.strides[0] * m, m * n, product.types.c.size),
    )


def _tiles(product: TileProduct, cover: Cover, tile: TileBody, before: ColumnBody) -> tuple[Statement, ...]:
    """Column after column of tiles, with what comes before each; tiles may share the next product."""
    if not product.ahead:

        def of_column(column: Expression, columns: int) -> tuple[Statement, ...]:
            tiles = _over("i", cover.heights, lambda row, rows: tile((row, column), (rows, columns), None))
            return (*before(column, columns), *tiles)

        return _over("j", cover.widths, of_column)
    shares = share_tiles(_next_product(product), cover.heights, cover.widths, product.depth)

    def of_run(row: TileRun, column: TileRun, i: Expression, j: Expression) -> tuple[Statement, ...]:
        return tile((row.at(i), column.at(j)), (row.size, column.size), shares.of_tile(row, column, i, j))

    def of_columns(column: TileRun, j: Expression) -> tuple[Statement, ...]:
        found = [*before(column.at(j), column.size)]
        for number, row in enumerate(shares.rows):
            found += row.over(f"i{number}", partial(of_run, row, column, j=j))
        return tuple(found)

    found: list[Statement] = []
    for number, column in enumerate(shares.columns):
        found += column.over(f"j{number}", partial(of_columns, column))
    return tuple(found)


def _direct(product: TileProduct, cover: Cover) -> tuple[Statement, ...]:
    def tile(place: Place, size: tuple[int, int], ahead: Slice | None) -> tuple[Statement, ...]:
        return _stored(product, _tile(product, place, size, ahead))

    return _tiles(product, cover, tile, lambda column, columns: ())  # noqa: ARG005


def _packed(product: TileProduct, cover: Cover, isa: Isa) -> tuple[Statement, ...]:
    """Operands of each product are packed into panels first; C, or sums beside it, collects the batch.

    Both are if the instruction takes several depths or complex parts; otherwise only the vector operand,
    whose lanes are not adjacent.
    """
    x, y, instruction = product.broadcast, product.vector, product.instruction(isa)
    addresses, types, parts = product.addresses, product.types, product.parts
    both = not instruction.in_place or parts > 1
    beta: ScalarValue = FirstElse("batch", Scalar(float(product.beta)), Scalar(1.0))
    index = Name("batch") if addresses else None
    depth = -(-product.depth * parts // instruction.k) * instruction.k
    carry = types.narrows and product.count > 1
    # Tiles write whole vectors of sums, which may not reach into the next row's.
    pitch = _whole_columns(product.columns * parts, instruction, isa)
    sums = Slice("sums", Constant(0), (Constant(pitch), Constant(1)))

    def at(side: OperandSide, offset: Expression) -> Slice:
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
            count, k = Constant(end - first), Constant(product.depth)
            found.append(Pack(to, source, count, k, rows, kr, instruction.k, how))
        return tuple(found)

    def panel_of(columns: int) -> tuple[Slice, int]:
        """The panel of some columns, and its lanes."""
        wide = columns * parts
        if instruction.is_matrix_engine:
            wide = _whole_columns(wide, instruction, isa)
        return panel("panel", wide, instruction.kr, Constant(0)), wide

    def pack(column: Expression, columns: int) -> tuple[Statement, ...]:
        kr, how = instruction.kr, Parts.ROTATED if parts > 1 else Parts.WHOLE
        source, (to, wide) = at(y, column * y.lane), panel_of(columns)
        return (Pack(to, source, Constant(columns), Constant(product.depth), wide, kr, instruction.k, how),)

    def tile(place: Place, size: tuple[int, int], ahead: Slice | None) -> tuple[Statement, ...]:
        (row, column), (rows, columns), (panel_b, wide) = place, size, panel_of(size[1])
        node = _tile(product, place, size, ahead)
        high = -(-rows // instruction.m) * instruction.m
        a = at(x, row * x.lane)
        if both:
            a = panel("rows", rows, instruction.interleave_a, row * depth)
        node = replace(
            node,
            a=a,
            b=panel_b,
            depth=Constant(product.depth * parts),
            columns=Constant(columns * parts),
            tile=Tile(high, wide, instruction.kr),
            beta=Scalar(float(product.beta)) if carry else beta,
            batch=None,
        )
        if parts > 1:
            c = node.c
            strides = (c.strides[0] * parts, c.strides[1] * parts)
            node = replace(node, c=Slice(c.buffer, c.offset * parts, strides, interleave=parts))
        if carry:
            kept = replace(sums, offset=row * pitch + column * parts)
            node = replace(node, carry=Carry(kept, "batch"))
        if node.finish is not None and product.count > 1:
            node = replace(node, finish=replace(node.finish, axis="batch"))
        return _stored(product, node, at_last(batch_loop()) if carry else None)

    def batch_loop(*body: Statement) -> Loop:
        return Loop("batch", Constant(0), Constant(product.count), Constant(1), body)

    packs = pack_rows() if both else ()
    if both:  # steps take several depths
        product = replace(product, ahead=False)
    return (batch_loop(*packs, *_tiles(product, cover, tile, pack)),)


def _whole_columns(columns: int, instruction: TileFma, isa: Isa) -> int:
    """Number of columns rounded up to whole vectors of sums and whole instructions."""
    whole = max(instruction.n, isa.lanes(instruction.acc))
    return -(-columns // whole) * whole


def cover_of(problem: BatchReduceGemm, machine: Machine) -> Cover:
    """The register tiles of a problem: rows of the broadcast operand, columns of the vector operand.

    >>> from tilewright.machine.catalog import find_machine
    >>> cover_of(BatchReduceGemm(23, 23, 23, 1), find_machine("znver5")).heights
    ((12, 1), (11, 1))
    """
    return cover_product(_product(problem), machine)


def cover_product(product: TileProduct, machine: Machine) -> Cover:
    """The register tiles of a product of known sizes."""
    types, isa, parts = product.types, machine.isa, product.parts
    instruction, direct = product.instruction(isa), product.in_place(isa)
    depth = product.depth * parts * (product.count if direct else 1)
    edge = isa.edge_of(*(dtype.real for dtype in (types.a, types.b, types.c)))
    cover = choose_cover(machine, instruction, edge, (product.rows, product.columns * parts, depth))
    if direct:
        return cover
    lane_bytes = instruction.b.bytes(max(instruction.b.held, product.depth) * parts)
    limit = max(1, LOCAL_PANEL_BYTES // lane_bytes)
    cover = _narrowed(cover, limit, max(isa.lanes(types.acc), instruction.n))
    return Cover(cover.heights, tuple((size // parts, count) for size, count in cover.widths))


def lay_product(product: TileProduct, cover: Cover, isa: Isa) -> tuple[Statement, ...]:
    """The statements of a product, cut by a cover.

    The register tile loads vectors of the operand that shares C's contiguous axis. Where that
    operand's lanes are not adjacent, it is transposed panel by panel.
    """
    return _direct(product, cover) if product.in_place(isa) else _packed(product, cover, isa)


def product_buffers(product: TileProduct, cover: Cover, isa: Isa, space: Space) -> Iterator[Buffer]:
    """The buffers that the statements of `lay_product` use in addition to the operands."""
    types, one, parts = product.types, product.instruction(isa), product.parts
    if not product.in_place(isa):
        depth = -(-product.depth * parts // one.k) * one.k
        widest = max(_whole_columns(width * parts, one, isa) for width, _ in cover.widths)
        yield Buffer("panel", one.b, space, widest * depth)
        if not one.in_place or parts > 1:
            high = sum(-(-rows // one.m) * one.m * count for rows, count in cover.heights)
            yield Buffer("rows", one.a, space, high * depth)
        if types.narrows and product.count > 1:
            rows = -(-product.rows // one.m) * one.m
            columns = _whole_columns(product.columns * parts, one, isa)
            yield Buffer("sums", types.acc, space, rows * columns)
    if product.apart:
        columns = max(_whole_columns(width * parts, one, isa) for width, _ in cover.widths)
        rows = max(-(-rows // one.m) * one.m for rows, _ in cover.heights)
        yield Buffer("tile", types.acc, space, rows * columns)


def build_batch_reduce(problem: BatchReduceGemm, cover: Cover, machine: Machine, name: str) -> Program:
    """The tile IR of a batch-reduce GEMM, cut by a cover.

    Examples
    --------
    >>> from tilewright.machine.catalog import find_machine
    >>> problem, machine = BatchReduceGemm(16, 6, 64, 1), find_machine("znver5")
    >>> cover = cover_of(problem, machine)
    >>> len(build_batch_reduce(problem, cover, machine, "kernel").body)
    1
    """
    product, types = _product(problem), problem.types
    stored = (types.a, types.b, types.c.real)
    operands = [Buffer(operand, dtype, Space.ARGUMENT) for operand, dtype in zip("abc", stored, strict=True)]
    buffers = (*operands, *product_buffers(product, cover, machine.isa, Space.LOCAL))
    return Program(name, FIXED_STRIDES, (), buffers, lay_product(product, cover, machine.isa))


def _narrowed(cover: Cover, limit: int, lanes: int) -> Cover:
    """The cover with tiles no wider than `limit` columns, in whole vectors."""
    width = max(lanes, limit // lanes * lanes)
    columns: list[int] = []
    for size, count in cover.widths:
        whole, rest = divmod(size, width)
        columns.extend(([width] * whole + [rest] * (rest > 0)) * count)
    # Equal tiles form one run, and the code of each run is emitted once.
    columns.sort(reverse=True)
    runs = tuple((size, len(list(equal))) for size, equal in groupby(columns))
    return Cover(cover.heights, runs)
