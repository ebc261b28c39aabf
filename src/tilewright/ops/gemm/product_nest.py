"""State shared by the loop nests of one GEMM: sizes, register tile, operand slices and packing."""

from __future__ import annotations

from dataclasses import replace

from tilewright.ir.expressions import (
    AllOf,
    AnyOf,
    Compare,
    Constant,
    Expression,
    ExpressionLike,
    FirstElse,
    Lead,
    Name,
    Relation,
    Scalar,
    ceildiv,
    maximum,
    minimum,
    roundup,
)
from tilewright.ir.nodes import (
    Applied,
    Carry,
    Finish,
    Groups,
    If,
    Let,
    Loop,
    Pack,
    Panels,
    Slice,
    Statement,
    Stored,
    Tile,
    TileMatmul,
)
from tilewright.ir.primitives.budget import Spend
from tilewright.machine.isa import Edge, TileFma
from tilewright.machine.machine import CACHE_LINE
from tilewright.macro.blocking import Blocking
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.gemm.sizes import Sizes, computed_transposed, residual_strides
from tilewright.records import dataclass
from tilewright.spec.dtype import DType
from tilewright.spec.epilogue import Along, Bias, Residual, Scale, TypedStep, replace_dtype
from tilewright.spec.parts import Parts
from tilewright.spec.problem import ProductTypes
from tilewright.spec.weights import Elements, Weights

#: Run-time parameters of every GEMM program besides its sizes and strides.
SCALARS = ("alpha", "beta")

#: Columns of tiles from which on a B in place is walked by its lines: the first column is a narrow one more.
LINED_TILES = 16
#: The same for the lines of C where B is packed, and the most depths: a tile writes C once in so many steps.
#: Of the peak of a Zen 5, with NumPy's large arrays, which begin 16 bytes behind a line: 2000x2992x16 0.37 by
#: columns and 0.55 by lines, 4096x4096x64 0.82 and 0.87, 600x10000x100 0.85 and 0.90, 500x512x200 0.94 and
#: 0.91.
LINED_PANELS, LINED_DEPTH = 32, 128


@dataclass(frozen=True)
class NestEpilogue:
    """The epilogue of a nest, in the orientation of the nest.

    Attributes
    ----------
    typed : the steps, with the types of their operands.
    strides : row and column stride of each residual.
    parts : numbers in one element of C.
    """

    typed: tuple[TypedStep, ...] = ()
    strides: tuple[tuple[str, tuple[Expression, Expression]], ...] = ()
    parts: int = 1

    @classmethod
    def of(cls, problem: Gemm) -> NestEpilogue:
        """The steps of a problem; where C is computed transposed, rows are columns."""
        strides = residual_strides(problem)
        if not computed_transposed(problem):
            return cls(problem.steps, tuple(strides.items()), 2 if problem.types.is_complex else 1)
        transposed = problem.epilogue.transposed().typed(problem.types.sums, problem.out_dtype)
        swapped = {name: (column, row) for name, (row, column) in strides.items()}
        return cls(transposed, tuple(swapped.items()), 2 if problem.types.is_complex else 1)

    def at(self, i: Expression, j: Expression, axis: str | None) -> Finish | None:
        """The steps on the tile whose first element is (i, j), at the last iteration of an axis."""
        if not self.typed:
            return None
        return Finish(tuple(self._applied(step, i, j) for step in self.typed), axis)

    def _applied(self, one: TypedStep, i: Expression, j: Expression) -> Applied:
        zero: Expression = Constant(0)
        unit: Expression = Constant(1)
        step, _, name = one
        match step:
            case Bias(along, dtype) | Scale(along, dtype):
                row, column = {Along.COLUMN: (zero, unit), Along.ROW: (unit, zero)}.get(along, (zero, zero))
            case Residual(dtype):
                row, column = dict(self.strides)[str(name)]
            case _:
                return Applied(step)
        assert name is not None
        assert dtype is not None
        parts, offset = self.parts, i * row + j * column
        window = Slice(name, offset * parts, (row * parts, column * parts), interleave=parts)
        return Applied(replace_dtype(step, dtype.real), window)


def ones(*strides: Expression) -> tuple[Compare, ...]:
    """Comparisons with 1 of the strides that are not known to be 1."""
    return tuple(Compare(Relation.EQ, stride, Constant(1)) for stride in strides if stride != Constant(1))


def decided(*terms: Compare) -> tuple[Compare, ...] | None:
    """The comparisons that cannot be decided at compile time; None if one is known to fail."""
    known = [_known(term) for term in terms]
    if False in known:
        return None
    return tuple(term for term, answer in zip(terms, known, strict=True) if answer is None)


def decide(
    condition: AnyOf, then: tuple[Statement, ...], otherwise: tuple[Statement, ...]
) -> tuple[Statement, ...]:
    """An `If`, or the side that is known to be taken.

    Before: ``if 100 == 1 and rs_b == 1: then, else: otherwise``. After: ``otherwise``.
    """
    possible = []
    for conjunction in condition.terms:
        found = [_known(term) for term in conjunction.terms]
        if False in found:
            continue
        open_terms = tuple(
            term for term, known in zip(conjunction.terms, found, strict=True) if known is None
        )
        if not open_terms:
            return then
        possible.append(AllOf(open_terms))
    return (If(AnyOf(tuple(possible)), then, otherwise),) if possible else otherwise


def _known(term: Compare) -> bool | None:
    """The result of a comparison of constants; None if it is not constant."""
    match term:
        case Compare(relation, Constant(left), Constant(right)):
            return {Relation.EQ: left == right, Relation.LE: left <= right, Relation.LT: left < right}[
                relation
            ]
        case _:
            return None


@dataclass(frozen=True)
class Nest:
    """State and slices shared by every loop nest of one GEMM.

    `a` and `b` are the buffers in the roles of A (broadcast, rows) and B (vectors, columns); a
    column-major C is computed as Cᵀ = Bᵀ·Aᵀ, which makes its rows contiguous and swaps them. In `packed`
    operands, each micro-panel holds the whole depth; a packed C has one contiguous tile behind the other.

    Sizes are counted in elements of the operands. Complex products are real ones on their parts (see
    `Parts`): a tile has twice the depth and twice the columns that its slices of the operands have.
    """

    sizes: Sizes
    blocking: Blocking
    edge: Edge
    types: ProductTypes
    instruction: TileFma
    a: str = "a"
    b: str = "b"
    packed: frozenset[str] = frozenset()
    sums: Slice | None = None  # where sums wait that C can't take
    weights: Weights | None = None  # the quantised format of B, if it has one
    steps: NestEpilogue = NestEpilogue()
    strip: int = 0  # rows of A that are read in place for all columns; 0 where A is packed
    first_row: Expression | None = None  # of the rows that a task walks, mb of them; or else all
    shift: Expression = Constant(0)  # where the first column of tiles begins, at most 0: by lines

    @property
    def tile(self) -> Tile:
        """The register tile."""
        return Tile(self.blocking.mr, self.blocking.nr, self.blocking.kr)

    @property
    def carries(self) -> bool:
        """Whether C cannot hold unfinished sums: it would round them, or its type differs from the sums'."""
        apart = self.types.c.real != self.types.acc
        return self.types.narrows or (apart and bool(self.steps.typed))

    @property
    def parts(self) -> int:
        """Numbers in one element: 2 where it is complex."""
        return 2 if self.types.is_complex else 1

    @property
    def columns_step(self) -> int:
        """Columns of C that one tile covers."""
        return self.tile.nr // self.parts

    @property
    def in_place(self) -> bool:
        """Whether tiles can read operands in place, converting them if necessary."""
        return self.instruction.in_place and self.parts == 1

    @property
    def uniform(self) -> bool:
        """Whether operands, C and sums have the instruction's one type."""
        return self.in_place and self.types.uniform

    @property
    def words(self) -> tuple[Compare, ...] | None:
        """Conditions under which tiles can read A in place: none (always), these, or None (never)."""
        if self.in_place:
            return ()
        stored = self.types.a if self.a == "a" else self.types.b
        if self.parts > 1:
            # Complex numbers that are adjacent along the depth are so many depths of real ones.
            plain = self.instruction.in_place and stored.real == self.instruction.a
            return decided(Compare(Relation.EQ, self.sizes.cs_a, Constant(1))) if plain else None
        if self.instruction.is_matrix_engine or stored != self.instruction.a:
            return None
        k = self.sizes.k
        return decided(
            Compare(Relation.EQ, self.sizes.cs_a, Constant(1)),
            Compare(Relation.EQ, roundup(k, self.instruction.k), k),
        )

    @property
    def by_lines(self) -> bool:
        """Whether the first column of tiles may be a narrow one, so that the others begin with lines."""
        return self.shift != Constant(0)

    @property
    def tile_column(self) -> Expression:
        """The first column of the tile."""
        return maximum(Name("j"), 0) if self.by_lines else Name("j")

    @property
    def tile_columns(self) -> Expression:
        """The columns of the tile: fewer in the last one, and in the first one where `by_lines`."""
        if not self.by_lines:
            return minimum(self.columns_step, self.sizes.n - Name("j"))
        return minimum(Name("j") + self.columns_step, self.sizes.n) - self.tile_column

    def shift_by_b(self) -> Expression:
        """Where the first column of tiles begins so that the second one begins with a line of B."""
        dtype = self.types.b if self.b == "b" else self.types.a
        return self._shift(self.b, dtype, self.sizes.rs_b, LINED_TILES)

    def shift_by_c(self) -> Expression:
        """The same for lines of C, where the depth is short."""
        shallow = minimum(maximum(Constant(LINED_DEPTH + 1) - self.sizes.k, 0), 1)
        return self._shift("c", self.types.c, self.sizes.rs_c, LINED_PANELS) * shallow

    def _shift(self, buffer: str, dtype: DType, rows: Expression, least: int) -> Expression:
        """A column, at most 0. It is 0 where rows begin at different places of a line, or columns are few."""
        if self.edge is not Edge.MASK or self.parts > 1 or CACHE_LINE % dtype.size:
            return Constant(0)
        lead, line = Lead(buffer, CACHE_LINE), CACHE_LINE // dtype.size
        alike = Constant(1) - minimum(roundup(rows, line) - rows, 1)
        many = minimum(maximum(self.sizes.n - (least * self.columns_step - 1), 0), 1)
        return (lead - minimum(lead, 1) * self.columns_step) * alike * many

    def panel_depth(self) -> Expression:
        """Depths of a packed panel: whole steps of the instruction."""
        return roundup(Name("depth") * self.parts, self.instruction.k)

    def whole_depth(self) -> Expression:
        """Depths of the panels of a packed operand: all of them, in whole steps of the instruction."""
        return roundup(self.sizes.k * self.parts, self.instruction.k)

    def c_tile(self) -> Slice:
        """The register tile of C at (i, j)."""
        sizes, i, j, parts = self.sizes, Name("i"), self.tile_column, self.parts
        if "c" in self.packed:
            # Tile (q, t) is number q·N1 + t: the tiles before it hold i rows of all N1·nr columns, and j
            # columns of mr rows.
            row = self.tile.nr
            offset = i * roundup(sizes.n * parts, row) + j * (self.tile.mr * parts)
            return Slice("c", offset, (Constant(row), Constant(parts)), interleave=parts)
        offset, strides = i * sizes.rs_c + j * sizes.cs_c, (sizes.rs_c * parts, sizes.cs_c * parts)
        return Slice("c", offset * parts, strides, interleave=parts)  # pairs of columns are adjacent

    def matmul(self, a: Slice, b: Slice, columns: Expression) -> TileMatmul:
        """The one register tile at (i, j), rows and columns of C cut at the matrix edge."""
        sizes, i = self.sizes, Name("i")
        return TileMatmul(
            c=self.c_tile(),
            a=a,
            b=b,
            rows=minimum(self.blocking.mr, sizes.m - i),
            columns=columns * self.parts,
            depth=Name("depth") * self.parts,
            tile=self.tile,
            alpha=Scalar("alpha"),
            beta=Scalar("beta") if self.sums else FirstElse("pc", Scalar("beta"), Scalar(1.0)),
            carry=Carry(self.sums, "pc") if self.sums else None,
            groups=self.groups(self.tile_column),
            finish=self.steps.at(i, self.tile_column, "pc"),
            sums=self.types.chosen,
            split=self.parts > 1 and a.buffer == self.a and self.a not in self.packed,
        )

    def a_in_place(self) -> Slice:
        """A at row i and depth pc, in place."""
        sizes, k = self.sizes, self.instruction.k
        offset = Name("i") * sizes.rs_a + Name("pc") * sizes.cs_a
        if self.parts > 1:
            return Slice(self.a, offset, (sizes.rs_a, Constant(1)))
        if k == 1:
            return Slice(self.a, offset, (sizes.rs_a, sizes.cs_a))
        return Slice(self.a, offset, (sizes.rs_a, Constant(k)), interleave=k)

    def b_in_place(self) -> Slice:
        """B at column j and depth pc; its columns are adjacent."""
        sizes = self.sizes
        return Slice(self.b, self.tile_column + Name("pc") * sizes.rs_b, (Constant(1), sizes.rs_b))

    def a_panel(self, first: Expression | None = None) -> Slice:
        """The micro-panel of A that holds row i, at depth pc; packing began with row ic, or `first`."""
        if self.a in self.packed:
            before = Name("pc") * (self.parts * self.tile.mr)
            return self._a_panel_at(self.a, Name("i") * self.whole_depth() + before)
        start = (Name("i") - (Name("ic") if first is None else first)) * self.panel_depth()
        return self._a_panel_at("a_pack", start)

    def _a_panel_at(self, buffer: str, start: Expression) -> Slice:
        kr = self.instruction.interleave_a
        return Slice(buffer, start, (Constant(kr), Constant(kr * self.tile.mr)), interleave=kr)

    def b_panel(self) -> Slice:
        """The micro-panel of B that holds column j, at depth pc."""
        if self.b in self.packed:
            before = Name("pc") * (self.parts * self.tile.nr)
            return self._b_panel_at(self.b, Name("j") * (self.whole_depth() * self.parts) + before)
        start = (Name("j") - Name("jc")) * (self.panel_depth() * self.parts)
        return self._b_panel_at("b_pack", start)

    def _b_panel_at(self, buffer: str, start: Expression) -> Slice:
        kr = self.instruction.kr
        return Slice(buffer, start, (Constant(kr), Constant(kr * self.tile.nr)), interleave=kr)

    def pack_a(self, rows: Expression, first: Expression | None = None) -> Pack:
        """Packs rows ic .. ic+rows of A (or from `first`) at depth pc."""
        sizes, one = self.sizes, self.instruction
        first = Name("ic") if first is None else first
        source = Slice(self.a, first * sizes.rs_a + Name("pc") * sizes.cs_a, (sizes.rs_a, sizes.cs_a))
        kr, parts = one.interleave_a, Parts.SPLIT if self.parts > 1 else Parts.WHOLE
        start = self._a_panel_at("a_pack", Constant(0))
        return Pack(start, source, rows, Name("depth"), self.tile.mr, kr, one.k, parts)

    def pack_b(self, first: Expression, columns: Expression, before: ExpressionLike = 0) -> Pack:
        """Packs columns first .. first+columns of B at depth pc, behind the panels of those `before`."""
        sizes, one = self.sizes, self.instruction
        source = Slice(self.b, first * sizes.cs_b + Name("pc") * sizes.rs_b, (sizes.cs_b, sizes.rs_b))
        parts = Parts.ROTATED if self.parts > 1 else Parts.WHOLE
        start = self._b_panel_at("b_pack", self.panel_depth() * self.parts * before)
        if self.weights is not None:
            elements, lanes = self.weights.elements, self.tile.nr
            source, stored = self.stored_b(elements, first), self.stored(elements, first)
            return Pack(start, source, columns, Name("depth"), lanes, one.kr, one.k, parts, stored)
        return Pack(start, source, columns, Name("depth"), self.tile.nr, one.kr, one.k, parts)

    # --- weights in words -------------------------------------------------------------------------

    def stored_b(self, elements: Elements, column: Expression) -> Slice:
        """The words of the panels from a column on, at depth pc."""
        lanes, unit, depths = self.tile.nr, elements.unit, elements.depths
        words, row = ceildiv(self._stored_depth(depths), depths), lanes * unit
        offset = column * (words * unit) + ceildiv(Name("pc"), depths) * row
        interleave = 1 if elements.scaled else depths
        strides, panels = (Constant(unit), Constant(row)), Panels(lanes, words * row)
        return Slice(self.b, offset, strides, interleave=interleave, panels=panels)

    def _stored_depth(self, depths: int) -> Expression:
        """Depths of the panels of words: of an engine's own panels, whole steps of it."""
        engine = self.weights is None and self.instruction.k > depths
        return self.whole_depth() if engine else self.sizes.k

    def stored(self, elements: Elements, column: Expression) -> Stored:
        """How the quantised words of the columns from `j` on are unpacked."""
        if self.weights is None or not self.weights.zeros:
            return Stored(elements)
        return Stored(elements, self._scales("zeros", column), self._group())

    def groups(self, column: Expression) -> Groups | None:
        """The scales of the columns from some one on."""
        if self.weights is None or not self.weights.elements.scaled:
            return None
        return Groups(self._scales("scales", column), self._group())

    def _group(self) -> Expression:
        """Depths that share a scale, inside one depth block."""
        assert self.weights is not None
        return Constant(self.weights.group) if self.weights.group else Name("kc")

    def _scales(self, buffer: str, column: Expression) -> Slice:
        """The scales (or zero points) of the groups from depth pc on, in panels as the columns are."""
        assert self.weights is not None
        lanes, group = self.tile.nr, self.weights.group
        if not group:
            return Slice(buffer, column, (Constant(1), Constant(0)), panels=Panels(lanes, Constant(lanes)))
        groups = maximum(ceildiv(self.sizes.k, group), 1)
        offset = column * groups + ceildiv(Name("pc"), group) * lanes
        return Slice(buffer, offset, (Constant(1), Constant(lanes)), panels=Panels(lanes, groups * lanes))

    def whole_tile(self) -> tuple[Compare, ...]:
        """That the tile at j has all its columns, where the row cannot cut it in memory."""
        if self.edge is Edge.MASK:
            return ()
        return (Compare(Relation.LE, Name("j") + self.columns_step, self.sizes.n),)

    def column(self, choices: tuple[AllOf, ...]) -> tuple[Statement, ...]:
        """The column of tiles at j; B in place if any choice holds (or none is given), else copied."""
        if not choices:
            return self.column_in_place()
        return decide(AnyOf(choices), self.column_in_place(), self.column_copied())

    def column_in_place(self) -> tuple[Statement, ...]:
        """The column of tiles at j, both operands in place."""
        return (self._rows(self.b_in_place()),)

    def column_copied(self) -> tuple[Statement, ...]:
        """The column of tiles at j, A in place, B copied into a micro-panel first."""
        one = self._b_panel_at("b_panel", Constant(0))
        return (replace(self.pack_b(self.tile_column, self.tile_columns), destination=one), self._rows(one))

    def column_copying(self) -> tuple[Statement, ...]:
        """The column of tiles at j, A in place: the first tile copies B into a micro-panel for the others."""
        panel, m, mr = self._b_panel_at("b_panel", Constant(0)), self.sizes.m, self.tile.mr
        one = self.matmul(self.a_in_place(), self.b_in_place(), self.tile_columns)
        copying = replace(one, rows=Constant(mr), copied=panel)
        others = self.matmul(self.a_in_place(), panel, self.tile_columns)
        return (
            Loop("i", Constant(0), minimum(m, 1), Constant(mr), (copying,)),
            Loop("i", Constant(mr), m, Constant(mr), (others,)),
        )

    def column_packed(self) -> tuple[Statement, ...]:
        """The column of tiles at j, A in place, B in the panels of a packed operand."""
        return (self._rows(self.b_panel()),)

    def _rows(self, b: Slice) -> Loop:
        first: Expression = Constant(0)
        end = self.sizes.m
        if self.first_row is not None:
            first, end = self.first_row, minimum(self.first_row + Name("mb"), end)
        body = (self.matmul(self.a_in_place(), b, self.tile_columns),)
        return Loop("i", first, end, Constant(self.tile.mr), body)

    def depth_loop(self, *body: Statement) -> Loop:
        """pc over k, at least once: an empty product still writes beta · C."""
        k = Name("depths")
        depth = Let("depth", minimum(Name("kc"), k - Name("pc")))
        return Loop("pc", Constant(0), maximum(k, 1), Name("kc"), (depth, *body))

    def depth_loop_of_task(self, area: Expression, *body: Statement) -> Loop:
        """`depth_loop` with a budget, for work inside a task; `area` is the number of sums."""
        loop = self.depth_loop(*body)
        return replace(loop, body=(loop.body[0], Spend(area * Name("depth")), *loop.body[1:]))
