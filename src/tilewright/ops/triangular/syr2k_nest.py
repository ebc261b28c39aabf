"""The nest of symmetric products: the five loops over one triangle of C, every factor packed twice."""

from __future__ import annotations

from dataclasses import replace

from tilewright.ir.expressions import (
    AllOf,
    AnyOf,
    Compare,
    Constant,
    Expression,
    FirstElse,
    Name,
    Relation,
    Scalar,
    Unless,
    ceildiv,
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
)
from tilewright.machine.isa import TileFma
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import SUMS_COLUMNS, SUMS_ROWS, Blocking, choose_blocking, depth_unit
from tilewright.macro.partition import (
    parallel,
)
from tilewright.ops.gemm.cache_blocks import balanced, task_columns
from tilewright.ops.gemm.product_nest import SCALARS, Nest
from tilewright.ops.gemm.sizes import Sizes, extent, strides_of
from tilewright.ops.triangular.blocks import column_blocks, kept_rows
from tilewright.ops.triangular.syr2k_problem import Syrk
from tilewright.records import dataclass
from tilewright.spec.problem import Layout


def symmetric_sizes(problem: Syrk) -> tuple[str, ...]:
    """The run-time parameters of a problem's program, in the order of its C signature.

    >>> symmetric_sizes(Syrk())
    ('n', 'k', 'rs_a', 'cs_a', 'rs_c', 'cs_c')
    """
    return ("n", "k", *(f"{axis}_{name}" for name in (*problem.factors, "c") for axis in ("rs", "cs")))


def symmetric_instruction(problem: Syrk, machine: Machine) -> TileFma:
    """The multiply instruction: both of its operands have the factors' type."""
    return machine.isa.tile(problem.dtype, problem.dtype)


def choose_symmetric(problem: Syrk, machine: Machine) -> Blocking:
    """Register tile and cache blocks: those of the usual product; the factors share the depth of a panel."""
    return choose_blocking(machine, symmetric_instruction(problem, machine))


@dataclass(frozen=True)
class Triangle:
    """Overlap of a triangle of C with the register tile at (i, j).

    `lower` refers to the nest's orientation: a column-major C is computed transposed, where its lower
    triangle is the upper one.
    """

    lower: bool
    rows: int
    columns: int

    def whole(self) -> Compare:
        """That all of the tile at (i, j) belongs to the triangle."""
        i, j = Name("i"), Name("j")
        if self.lower:
            return Compare(Relation.LE, j + self.columns, i + 1)
        return Compare(Relation.LE, i + self.rows, j + 1)

    def met(self, begin: Expression, columns_end: Expression) -> Compare:
        """That rows ic .. row_end have elements of the triangle in columns begin .. columns_end."""
        if self.lower:
            return Compare(Relation.LT, begin, Name("row_end"))
        return Compare(Relation.LT, Name("ic"), columns_end)

    def columns_from(self, begin: Expression) -> Expression:
        """The first column of tiles, at or after `first`, that overlaps rows ic .. row_end."""
        return begin if self.lower else begin + _down(Name("ic") - begin, self.columns)

    def columns_to(self, end: Expression) -> Expression:
        """End of the columns that overlap rows ic .. row_end."""
        return minimum(end, Name("row_end")) if self.lower else end

    def rows_from(self) -> Expression:
        """The first row of tiles, from ic on, that overlaps the column of tiles at j."""
        return Name("ic") + _down(Name("j") - Name("ic"), self.rows) if self.lower else Name("ic")

    def rows_to(self) -> Expression:
        """End of the rows that overlap the column of tiles at j."""
        return Name("row_end") if self.lower else minimum(Name("row_end"), Name("j") + self.columns)

    def corner(self, rows: Expression, columns: Expression) -> tuple[Expression, Expression]:
        """The rows and columns of the tile at (i, j), which the diagonal cuts, that have any element.

        Before, lower: rows 8..12 of columns 0..32. After: rows 8..12 of columns 0..12.
        """
        i, j = Name("i"), Name("j")
        if self.lower:
            return rows, minimum(columns, i + rows - j)
        return minimum(rows, j + columns - i), columns

    def row(self, columns: Expression) -> tuple[Expression, Expression]:
        """The first column and the number of columns that row i + r has in a tile which the diagonal cuts."""
        before = Name("i") + Name("r") - Name("j")
        if self.lower:
            return Constant(0), maximum(minimum(columns, before + 1), 0)
        first = maximum(before, 0)
        return first, columns - first


def _down(value: Expression, unit: int) -> Expression:
    """The largest multiple of unit that is at most value; 0 where that is negative."""
    return roundup(maximum(value, 0) + 1, unit) - unit


@dataclass(frozen=True)
class SymmetricNest:
    """The loops of C = alpha · Σ L·Rᵀ + beta · C on a triangle; terms are the products (L, R) of the sum.

    One register tile accumulates all terms in turn, so that C is loaded and stored once: its panel of
    rows holds the depths of every L, its panel of columns those of every R in the same order, and their
    product is that of one long panel (Kuzma et al. 2023, §5.1, have two multiplies there).
    """

    terms: tuple[Nest, ...]
    triangle: Triangle

    @property
    def nest(self) -> Nest:
        """State common to all terms: C and the register tile."""
        return self.terms[0]

    @property
    def most_depths(self) -> int:
        """Depths of each term in the longest panel."""
        unit = depth_unit(self.nest.instruction)
        return max(unit, self.nest.blocking.kc // (self.nest.parts * len(self.terms)) // unit * unit)

    @property
    def panel_depths(self) -> int:
        """Depths of all terms in the longest panel, in numbers."""
        return len(self.terms) * self.most_depths * self.nest.parts

    # --- packing ----------------------------------------------------------------------------------

    def pack_rows(self) -> tuple[Statement, ...]:
        """The panels of rows ic .. row_end."""
        mr, parts = self.nest.tile.mr, self.nest.parts
        if len(self.terms) == 1:
            return (self.nest.pack_a(Name("row_end") - Name("ic")),)
        ip, ic = Name("ip"), Name("ic")
        packs: list[Statement] = []
        for number, term in enumerate(self.terms):
            pack = term.pack_a(minimum(mr, Name("row_end") - ip), ip)
            start = (ip - ic) * term.panel_depth() + Name("each") * (number * mr * parts)
            place = replace(pack.destination, offset=start)
            packs.append(replace(pack, destination=place, depth=Name("span")))
        return (Loop("ip", ic, Name("row_end"), Constant(mr), tuple(packs)),)

    def pack_columns(self) -> tuple[Statement, ...]:
        """The panels of columns jp .. jp + np of block jc."""
        jp, jq, nest = Name("jp"), Name("jq"), self.nest
        end = minimum(jp + Name("np"), Name("jend"))
        if len(self.terms) == 1:
            return (nest.pack_b(jp, end - jp, jp - Name("jc")),)
        packs: list[Statement] = []
        for number, term in enumerate(self.terms):
            pack = term.pack_b(jq, minimum(nest.columns_step, end - jq))
            start = (jq - Name("jc")) * (term.panel_depth() * nest.parts)
            start = start + Name("each") * (number * nest.tile.nr * nest.parts)
            place = replace(pack.destination, offset=start)
            packs.append(replace(pack, destination=place, depth=Name("span")))
        return (Loop("jq", jp, end, Constant(nest.columns_step), tuple(packs)),)

    # --- register tiles ---------------------------------------------------------------------------

    def tile(self) -> tuple[Statement, ...]:
        """The register tile at (i, j): stored directly to C, or through a buffer if the diagonal cuts it."""
        nest, columns = self.nest, minimum(self.nest.columns_step, self.nest.sizes.n - Name("j"))
        node = nest.matmul(nest.a_panel(), nest.b_panel(), columns)
        whole: tuple[Statement, ...] = (node,)
        if nest.sums is not None:
            whole = (self._kept(node, nest.sums), *self._at_last(self._finished(node, nest.sums)))
        rows, columns = self.triangle.corner(node.rows, columns)
        cut = replace(node, rows=rows, columns=columns * nest.parts)
        sums = self._held() if nest.sums is None else nest.sums
        across = self._kept(cut, sums), *self._at_last(self._rows(cut, sums, columns))
        return (If(AnyOf((AllOf((self.triangle.whole(),)),)), whole, across),)

    def _held(self) -> Slice:
        """The buffer of one tile's sums."""
        parts = self.nest.parts
        return Slice("tile", Constant(0), (Constant(self.nest.tile.nr), Constant(parts)), interleave=parts)

    def _kept(self, node: TileMatmul, sums: Slice) -> TileMatmul:
        """The tile with its sums left in a buffer, or added to those that are there from earlier depths."""
        added = Scalar(0.0) if self.nest.sums is None else FirstElse("pc", Scalar(0.0), Scalar(1.0))
        return replace(node, c=sums, alpha=Scalar(1.0), beta=added, carry=None)

    def _finished(self, node: TileMatmul, sums: Slice) -> TileEpilogue:
        """Store the sums of whole rows to C."""
        row, _ = sums.strides
        adjacent = Slice(sums.buffer, sums.offset, (row, Constant(1)))
        return TileEpilogue(node.c, adjacent, node.rows, node.columns, Scalar("alpha"), node.beta)

    def _rows(self, node: TileMatmul, sums: Slice, columns: Expression) -> Loop:
        """Store the sums of a tile that the diagonal cuts to C, row by row."""
        parts, r = self.nest.parts, Name("r")
        first, count = self.triangle.row(columns)
        c_row, c_column = node.c.strides
        # Of complex numbers, strides from one pair to the next count numbers.
        c = replace(node.c, offset=node.c.offset + r * c_row + first * c_column)
        held = replace(sums, offset=sums.offset + r * sums.strides[0] + first * parts)
        one = replace(node, c=c, rows=Constant(1), columns=count * parts)
        return Loop("r", Constant(0), node.rows, Constant(1), (self._finished(one, held),))

    def _at_last(self, statement: Statement) -> tuple[Statement, ...]:
        """A statement that comes when the sums are finished, if they wait for the last depths."""
        if self.nest.sums is None:
            return (statement,)
        last = Compare(Relation.LE, Name("depths"), Name("pc") + Name("kc"))
        return (If(AnyOf((AllOf((last,)),)), (statement,)),)

    # --- loops ------------------------------------------------------------------------------------

    def block(self, first: Expression, end: Expression) -> tuple[Statement, ...]:
        """The loops pc, ic, jr and ir over rows first .. end and the columns of block jc.

        The longest rows of the triangle come first, so that no thread is left alone with them.
        """
        nest, triangle, step = self.nest, self.triangle, self.nest.columns_step
        jc, jj, jend, ic = Name("jc"), Name("jj"), Name("jend"), Name("ic")
        jj_end = minimum(jj + Name("jn"), jend)
        ir = Loop("i", triangle.rows_from(), triangle.rows_to(), Constant(nest.tile.mr), self.tile())
        jr = Loop("j", triangle.columns_from(jj), triangle.columns_to(jj_end), Constant(step), (ir,))
        met = AnyOf((AllOf((triangle.met(jj, jj_end),)),))
        at = Name("iq")
        backward = first + (ceildiv(end - first, Name("mc")) - 1) * Name("mc") - at
        inside = (
            Let("ic", backward if triangle.lower else first + at),
            Let("row_end", minimum(ic + Name("mc"), end)),
            If(met, (*self.pack_rows(), jr)),
        )
        columns = parallel("jj", jc, jend, Name("jn"), *inside)
        rows = parallel("iq", Constant(0), end - first, Name("mc"), columns)
        panels = parallel("jp", jc, jend, Name("np"), *self.pack_columns())
        return (
            *task_columns(nest, end - first, Name("jend") - Name("jc")),
            self.depth_loop(panels, rows),
        )

    def depth_loop(self, *body: Statement) -> Loop:
        """pc over k, at least once: an empty product still writes beta · C."""
        k = Name("depths")
        lets: tuple[Statement, ...] = (Let("depth", minimum(Name("kc"), k - Name("pc"))),)
        if len(self.terms) > 1:
            lets = (
                Let("span", minimum(Name("kc"), k - Name("pc"))),
                Let("each", roundup(Name("span"), self.nest.instruction.k)),
                Let("depth", Name("each") * len(self.terms)),
            )
        return Loop("pc", Constant(0), maximum(k, 1), Name("kc"), (*lets, *body))

    def body(self) -> tuple[Statement, ...]:
        """The whole nest."""
        nest = self.nest
        most_columns = nest.blocking.nc // nest.parts
        if nest.sums is not None:  # C would round unfinished sums; a separate block keeps them
            most_columns = min(most_columns, SUMS_COLUMNS // nest.tile.nr * nest.tile.nr)
        kc = balanced(nest.sizes.k, self.most_depths, depth_unit(nest.instruction))
        lower = self.triangle.lower
        first, end = (Name("jc"), nest.sizes.n) if lower else (Constant(0), Name("jend"))
        blocks = column_blocks(nest, kc, most_columns, kept_rows(nest, first, end, self.block))
        return (Let("depths", Unless("alpha", nest.sizes.k)), *blocks)


def _sizes(problem: Syrk, left: str, right: str) -> Sizes:
    """The sizes of one product: rows are those of `left`, columns the rows of `right`."""
    n, k = extent("n", problem.n), extent("k", problem.k)
    rows, columns, c = (strides_of(name, getattr(problem, name)) for name in (left, right, "c"))
    return Sizes(n, n, k, *rows, *columns[::-1], *(c[::-1] if _transposed(problem) else c))


def _transposed(problem: Syrk) -> bool:
    """Return whether Cᵀ is computed: the same product, with the other triangle.

    A complex C always as its lower triangle: the parts of a product of row i and row j are added in the order
    of i and j (`computed_transposed`), so that both triangles have the same bits in every layout.
    """
    return not problem.lower if problem.types.is_complex else problem.c is Layout.COL


def build_symmetric(problem: Syrk, blocking: Blocking, machine: Machine, name: str) -> Program:
    """The tile IR of a symmetric product.

    A column-major C is computed transposed, which changes nothing but the triangle; a complex C so that the
    triangle is the lower one.

    Examples
    --------
    >>> from tilewright.machine.catalog import find_machine
    >>> machine, problem = find_machine("znver5"), Syrk()
    >>> program = build_symmetric(problem, choose_symmetric(problem, machine), machine, "s")
    >>> [buffer.name for buffer in program.buffers]
    ['a', 'c', 'b_pack', 'a_pack', 'tile']
    """
    one, types, isa = symmetric_instruction(problem, machine), problem.types, machine.isa
    edge = isa.edge_of(*(dtype.real for dtype in (types.a, types.b, types.c)))
    lower = problem.lower is not _transposed(problem)
    # A_i·B_j comes first for i > j in every layout, so that both triangles have the same bits.
    left = problem.factors if lower else problem.factors[::-1]
    terms = [
        Nest(_sizes(problem, *pair), blocking, edge, types, one, a=pair[0], b=pair[1])
        for pair in zip(left, reversed(left), strict=True)
    ]
    first = terms[0]
    if first.carries:
        place = (Name("i") - Name("ib")) * SUMS_COLUMNS + (Name("j") - Name("jc")) * first.parts
        sums = Slice("block_sums", place, (Constant(SUMS_COLUMNS), Constant(1)))
        terms = [replace(term, sums=sums) for term in terms]
    triangle = Triangle(lower, first.tile.mr, first.columns_step)
    nest = SymmetricNest(tuple(terms), triangle)
    waiting = (
        Buffer("block_sums", types.acc, Space.SHARED, SUMS_ROWS * SUMS_COLUMNS)
        if first.carries
        else Buffer("tile", types.acc, Space.THREAD, first.tile.mr * first.tile.nr)
    )
    buffers = (
        *(Buffer(factor, types.a, Space.ARGUMENT) for factor in problem.factors),
        Buffer("c", types.c.real, Space.ARGUMENT),
        Buffer("b_pack", one.b, Space.SHARED, nest.panel_depths * blocking.nc),
        Buffer("a_pack", one.a, Space.THREAD, nest.panel_depths * blocking.mc),
        waiting,
    )
    return Program(name, symmetric_sizes(problem), SCALARS, buffers, nest.body())
