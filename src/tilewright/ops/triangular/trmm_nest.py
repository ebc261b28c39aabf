"""The nest of products with a triangular matrix: five loops over the depths that each row of tiles has."""

from __future__ import annotations

import math
from dataclasses import replace

from tilewright.ir.expressions import (
    AllOf,
    AnyOf,
    Compare,
    Constant,
    Expression,
    Name,
    Relation,
    Scalar,
    Unless,
    maximum,
    minimum,
    roundup,
)
from tilewright.ir.nodes import (
    Buffer,
    If,
    Let,
    Loop,
    Program,
    Slice,
    Space,
    Statement,
    TileEpilogue,
    TileMatmul,
    UnaryMap,
)
from tilewright.machine.isa import TileFma
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import SUMS_COLUMNS, SUMS_ROWS, Blocking, choose_blocking, depth_unit
from tilewright.macro.partition import (
    parallel,
)
from tilewright.ops.gemm.cache_blocks import balanced, task_columns
from tilewright.ops.gemm.product_nest import Nest
from tilewright.ops.gemm.sizes import Sizes, extent, strides_of
from tilewright.ops.triangular.blocks import column_blocks, kept_rows
from tilewright.ops.triangular.trmm_problem import Side, Trmm
from tilewright.records import dataclass
from tilewright.spec.functions import UnaryOp

#: Run-time parameters in the order of the C signature.
TRMM_SIZES = ("m", "n", "rs_a", "cs_a", "rs_b", "cs_b", "rs_c", "cs_c")

#: Rows and columns of sums that one task transposes: 16 KiB of float32.
MOVED = 64

#: Numbers behind the panels of rows: a tile of one row may read a vector of lanes from its own lane on.
LANES_BEHIND = 64


def trmm_instruction(problem: Trmm, machine: Machine) -> TileFma:
    """The multiply instruction: that of the sums' type, to which packing widens.

    Instructions that take several depths would multiply elements beyond the triangle.
    """
    one = machine.isa.tile(problem.types.acc, problem.types.acc)
    assert one.k == 1
    return one


def choose_trmm(problem: Trmm, machine: Machine) -> Blocking:
    """Register tile and cache blocks: those of the usual product."""
    return choose_blocking(machine, trmm_instruction(problem, machine))


@dataclass(frozen=True)
class TriangularNest:
    """The loops of C = alpha · T · B, where T has the rows of the register tile.

    A row of tiles crosses the diagonal in one block of depths, whose length is a multiple of the tile's rows.
    The depths on one side of the diagonal's square are multiplied by whole tiles; the square
    itself row by row, each with its own depths, so that elements outside T are never replaced by zeros.
    """

    nest: Nest
    lower: bool
    unit: bool

    @property
    def most_depths(self) -> int:
        """Depths of the longest panels: whole tiles of rows."""
        step = self.depth_step
        return max(step, self.nest.blocking.kc // self.nest.parts // step * step)

    @property
    def depth_step(self) -> int:
        """kc is a multiple of this."""
        return math.lcm(depth_unit(self.nest.instruction), self.nest.tile.mr)

    @property
    def moves(self) -> bool:
        """Whether buffered sums are transposed into C in squares: C is column-major and of their type."""
        nest = self.nest
        alike = nest.types.c == nest.types.acc and nest.sizes.rs_c == Constant(1)
        return nest.sums is not None and alike

    # --- packing ----------------------------------------------------------------------------------

    def pack_rows(self) -> Loop:
        """The panels of rows ic .. row_end, each of the depths that it has of this block."""
        nest, mr, parts = self.nest, self.nest.tile.mr, self.nest.parts
        ip, ic, pc = Name("ip"), Name("ic"), Name("pc")
        pack = nest.pack_a(minimum(mr, Name("row_end") - ip), ip)
        start: Expression = (ip - ic) * nest.panel_depth()
        source, depth = pack.source, Name("depth")
        if self.lower:
            count = minimum(depth, ip + mr - pc)
        else:
            before = minimum(maximum(ip - pc, 0), depth)
            start, count = start + before * (mr * parts), depth - before
            source = replace(source, offset=source.offset + before * source.strides[1])
        place = replace(pack.destination, offset=start)
        one = replace(pack, destination=place, source=source, depth=count)
        return Loop("ip", ic, Name("row_end"), Constant(mr), (one,))

    # --- register tiles ---------------------------------------------------------------------------

    def tile(self) -> tuple[Statement, ...]:
        """The register tile at (i, j) and the depths pc .. pc + depth."""
        nest, i, pc, depth = self.nest, Name("i"), Name("pc"), Name("depth")
        columns = minimum(nest.columns_step, nest.sizes.n - Name("j"))
        node = nest.matmul(nest.a_panel(), nest.b_panel(), columns)
        node = replace(node, alpha=Scalar("alpha"), beta=Scalar(1.0), carry=None)
        if nest.sums is not None:
            node = replace(node, c=nest.sums, alpha=Scalar(1.0) if nest.carries else Scalar("alpha"))
        first: Expression = Constant(0)
        if self.lower:
            count = minimum(depth, i - pc)
            begins = Compare(Relation.LE, pc, Constant(0))
        else:
            first = minimum(maximum(i + nest.tile.mr - pc, 0), depth)
            count = depth - first
            begins = Compare(Relation.LE, pc, i)
        straight = self._at_depths(node, first, count)
        meets = AllOf(
            (Compare(Relation.LE, pc, i), Compare(Relation.LT, i, pc + depth)),
        )
        return (
            If(AnyOf((AllOf((begins,)),)), (replace(straight, beta=Scalar(0.0)),), (straight,)),
            If(AnyOf((meets,)), (self._square(node, columns),)),
            *self._finished(node, columns),
        )

    def _at_depths(self, node: TileMatmul, first: Expression, count: Expression) -> TileMatmul:
        """A tile of some of the depths of its panels."""
        parts = self.nest.parts
        a = replace(node.a, offset=node.a.offset + first * (self.nest.tile.mr * parts))
        b = replace(node.b, offset=node.b.offset + first * (self.nest.tile.nr * parts))
        return replace(node, a=a, b=b, depth=count * parts)

    def _square(self, node: TileMatmul, columns: Expression) -> Loop:
        """The depths i .. i + mr, row by row; a diagonal of ones adds rows of B themselves."""
        nest, parts, r = self.nest, self.nest.parts, Name("r")
        at, skipped = Name("i") - Name("pc"), int(self.unit)
        row = replace(
            node,
            c=replace(node.c, offset=node.c.offset + r * node.c.strides[0]),
            a=replace(node.a, offset=node.a.offset + r * nest.instruction.interleave_a),
            rows=Constant(1),
        )
        if self.lower:
            part = self._at_depths(row, at, r + (1 - skipped))
        else:
            part = self._at_depths(row, at + r + skipped, node.rows - r - skipped)
        body: list[Statement] = [part]
        if self.unit:
            diagonal = self._at_depths(row, at + r, Constant(1)).b
            values = Slice(diagonal.buffer, diagonal.offset, (Constant(nest.tile.nr), Constant(1)))
            body.append(TileEpilogue(row.c, values, Constant(1), columns * parts, row.alpha, Scalar(1.0)))
        return Loop("r", Constant(0), node.rows, Constant(1), tuple(body))

    def _finished(self, node: TileMatmul, columns: Expression) -> tuple[Statement, ...]:
        """Store buffered sums to C after the last depths of their rows."""
        nest = self.nest
        if nest.sums is None or self.moves:
            return ()
        end = Name("i") + 1 if self.lower else nest.sizes.k
        last = Compare(Relation.LE, end, Name("pc") + Name("kc"))
        alpha, beta = Scalar("alpha") if nest.carries else Scalar(1.0), Scalar(0.0)
        adjacent = Slice(nest.sums.buffer, nest.sums.offset, (nest.sums.strides[0], Constant(1)))
        store = TileEpilogue(nest.c_tile(), adjacent, node.rows, columns * nest.parts, alpha, beta)
        return (If(AnyOf((AllOf((last,)),)), (store,)),)

    def _moved(self, first: Expression, end: Expression) -> tuple[Statement, ...]:
        """Transpose rows first .. end of the sums of block jc into C."""
        if not self.moves:
            return ()
        im, jm, jend = Name("im"), Name("jm"), Name("jend")
        sizes, side = self.nest.sizes, Constant(MOVED)
        place = (im - Name("ib")) * SUMS_COLUMNS + (jm - Name("jc"))
        move = UnaryMap(
            UnaryOp.IDENTITY,
            Slice("c", im * sizes.rs_c + jm * sizes.cs_c, (sizes.rs_c, sizes.cs_c)),
            Slice("block_sums", place, (Constant(SUMS_COLUMNS), Constant(1))),
            rows=minimum(MOVED, end - im),
            columns=minimum(MOVED, jend - jm),
        )
        rows = parallel("im", first, end, side, move)
        return (parallel("jm", Name("jc"), jend, side, rows),)

    # --- loops ------------------------------------------------------------------------------------

    def block(self, first: Expression, end: Expression) -> tuple[Statement, ...]:
        """The loops pc, ic, jr and ir over rows first .. end and the columns of block jc."""
        nest, step = self.nest, self.nest.columns_step
        jc, jj, jp, jend, ic, pc = (Name(axis) for axis in ("jc", "jj", "jp", "jend", "ic", "pc"))
        ir = Loop("i", ic, Name("row_end"), Constant(nest.tile.mr), self.tile())
        jr = Loop("j", jj, minimum(jj + Name("jn"), jend), Constant(step), (ir,))
        # Rows that have depths of the block: from the diagonal down, or up to it.
        below = pc if first == Constant(0) else maximum(first, pc)
        begin, stop = (below, end) if self.lower else (first, minimum(end, pc + Name("kc")))
        inside = (Let("row_end", minimum(ic + Name("mc"), stop)), self.pack_rows(), jr)
        rows = parallel("ic", begin, stop, Name("mc"), parallel("jj", jc, jend, Name("jn"), *inside))
        pack_b = nest.pack_b(jp, minimum(Name("np"), jend - jp), jp - jc)
        panels = parallel("jp", jc, jend, Name("np"), pack_b)
        depth = Let("depth", Unless("alpha", minimum(Name("kc"), nest.sizes.k - pc)))
        earlier = roundup(first + 1, Name("kc")) - Name("kc")  # the block of depths that has the first row
        depths = (Constant(0), end) if self.lower or first == Constant(0) else (earlier, nest.sizes.k)
        return (
            *task_columns(nest, end - first, Name("jend") - Name("jc")),
            Loop("pc", *depths, Name("kc"), (depth, panels, rows)),
            *self._moved(first, end),
        )

    def body(self) -> tuple[Statement, ...]:
        """The whole nest."""
        nest = self.nest
        most_columns = nest.blocking.nc // nest.parts
        if nest.sums is not None:
            most_columns = min(most_columns, SUMS_COLUMNS // nest.tile.nr * nest.tile.nr // nest.parts)
        kc = balanced(nest.sizes.k, self.most_depths, self.depth_step)
        inside = kept_rows(nest, Constant(0), nest.sizes.m, self.block)
        return column_blocks(nest, kc, most_columns, inside)


def _sizes(problem: Trmm) -> Sizes:
    """The sizes of C = T · B; of a product with T on the right those of Cᵀ = Tᵀ · Bᵀ."""
    m, n = extent("m", problem.m), extent("n", problem.n)
    a, b, c = (strides_of(name, getattr(problem, name)) for name in "abc")
    if problem.side is Side.LEFT:
        return Sizes(m, n, m, *a, *b, *c)
    return Sizes(n, m, n, *a[::-1], *b[::-1], *c[::-1])


def build_trmm(problem: Trmm, blocking: Blocking, machine: Machine, name: str) -> Program:
    """The tile IR of a product with a triangular matrix.

    A right-side product is computed transposed: the matrix is then on the left, with the other triangle.

    Examples
    --------
    >>> from tilewright.machine.catalog import find_machine
    >>> machine, problem = find_machine("znver5"), Trmm()
    >>> program = build_trmm(problem, choose_trmm(problem, machine), machine, "t")
    >>> [buffer.name for buffer in program.buffers]
    ['a', 'b', 'c', 'b_pack', 'a_pack']
    """
    one, types = trmm_instruction(problem, machine), problem.types
    edge = machine.isa.edge_of(types.acc, types.c.real)
    nest = Nest(_sizes(problem), blocking, edge, types, one)
    # If C would round unfinished sums, or its columns are not contiguous, a separate block keeps them.
    waits = nest.carries or nest.sizes.cs_c != Constant(1)
    if waits:
        place = (Name("i") - Name("ib")) * SUMS_COLUMNS + (Name("j") - Name("jc")) * nest.parts
        strides = (Constant(SUMS_COLUMNS), Constant(nest.parts))
        nest = replace(nest, sums=Slice("block_sums", place, strides, interleave=nest.parts))
    loops = TriangularNest(nest, problem.lower is (problem.side is Side.LEFT), problem.unit)
    depths = loops.most_depths * nest.parts
    sums = (Buffer("block_sums", types.acc, Space.SHARED, SUMS_ROWS * SUMS_COLUMNS),)
    buffers = (
        Buffer("a", types.a, Space.ARGUMENT),
        Buffer("b", types.b, Space.ARGUMENT),
        Buffer("c", types.c.real, Space.ARGUMENT),
        Buffer("b_pack", one.b, Space.SHARED, depths * blocking.nc),
        *(sums if waits else ()),
        Buffer("a_pack", one.a, Space.THREAD, depths * blocking.mc + LANES_BEHIND),
    )
    return Program(name, TRMM_SIZES, ("alpha",), buffers, loops.body())
