"""The loops around one register tile: jc, pc, ic, jr, ir, with operands packed or in place."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilewright.ir.nodes import (
    AllOf,
    AnyOf,
    Buffer,
    Compare,
    Constant,
    Expression,
    FirstElse,
    If,
    Let,
    Loop,
    Name,
    Pack,
    Program,
    Relation,
    Scalar,
    Slice,
    Space,
    Statement,
    Tile,
    TileMatmul,
    Unless,
    ceildiv,
    maximum,
    minimum,
    roundup,
)
from tilewright.machine.isa import Edge
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import DEPTH_UNIT, Blocking, wide_columns
from tilewright.spec.dtype import DType
from tilewright.spec.problem import Gemm, Layout, Strategy

#: Run-time parameters of every GEMM program, in the order of its C signature.
SIZES = ("m", "n", "k", "rs_a", "cs_a", "rs_b", "cs_b", "rs_c", "cs_c")
SCALARS = ("alpha", "beta")


@dataclass(frozen=True)
class Sizes:
    """The sizes and strides of one GEMM as expressions: names at run time, constants where known."""

    m: Expression
    n: Expression
    k: Expression
    rs_a: Expression
    cs_a: Expression
    rs_b: Expression
    cs_b: Expression
    rs_c: Expression
    cs_c: Expression

    def turned(self) -> Sizes:
        """The sizes of Cᵀ = Bᵀ·Aᵀ: m and n change places, and so do A and Bᵀ.

        Before: m×n×k, A with (rs_a, cs_a). After: n×m×k, A with (cs_b, rs_b).
        """
        return Sizes(self.n, self.m, self.k, self.cs_b, self.rs_b, self.cs_a, self.rs_a, self.cs_c, self.rs_c)


def sizes_of(problem: Gemm) -> Sizes:
    """Constants for what the problem fixes, names for the rest.

    Before: ``Gemm(k=64, a="row")``. After: ``k = 64``, ``cs_a = 1``, everything else by name.
    """

    def size(name: str, known: int | None) -> Expression:
        return Name(name) if known is None else Constant(known)

    def strides(name: str, layout: Layout) -> tuple[Expression, Expression]:
        row = Constant(1) if layout is Layout.COL else Name(f"rs_{name}")
        column = Constant(1) if layout is Layout.ROW else Name(f"cs_{name}")
        return row, column

    return Sizes(
        size("m", problem.m),
        size("n", problem.n),
        size("k", problem.k),
        *strides("a", problem.a),
        *strides("b", problem.b),
        *strides("c", problem.c),
    )


#: Rows up to which reading B outweighs the multiplication (8 rows of AVX-512 f32 take 0.5 cycles an
#: element of B in each pair, DRAM about as long).
STREAMED_ROWS = 8


@dataclass(frozen=True)
class Thresholds:
    """Up to where `auto` leaves operands in place; see `thresholds`.

    Attributes
    ----------
    in_place_b : elements of a kc×n slice of B.
    in_place_a : elements of an m×kc slice of A.
    few_rows, few_columns : m and n.
    streamed_rows : m up to which B is streamed by wide tiles.
    """

    in_place_b: int
    in_place_a: int
    few_rows: int
    few_columns: int
    streamed_rows: int


def thresholds(blocking: Blocking, dtype: DType, l2_bytes: int) -> Thresholds:
    """The sizes at which packing starts to pay.

    B in place is read once per mr rows, 128 bytes a row: while its kc×n slice fits in L2 those
    reads cost no more than packed ones; or m is at most two tiles, and packing would cost as much as
    both reads. A in place is read once per nr columns, along its rows: the stream is prefetched from
    the next cache while the m×kc slice is at most one and a half L2; or n is at most four tiles.
    Measured in docs/decisions/007-in-place-or-packed.md.
    """
    return Thresholds(
        in_place_b=l2_bytes // dtype.size,
        in_place_a=3 * l2_bytes // (2 * dtype.size),
        few_rows=2 * blocking.mr,
        few_columns=4 * blocking.nr,
        streamed_rows=STREAMED_ROWS,
    )


@dataclass(frozen=True)
class Nest:
    """What every loop nest of one GEMM shares.

    `wide_columns` is the width of a tile of one row (`streaming`). `a` and `b` are the buffers in the
    roles of A (broadcast, rows) and B (vectors, columns); a column-major C is computed as
    Cᵀ = Bᵀ·Aᵀ, which makes its rows contiguous and swaps them.
    """

    sizes: Sizes
    blocking: Blocking
    edge: Edge
    wide_columns: int
    a: str = "a"
    b: str = "b"

    @property
    def tile(self) -> Tile:
        """The register tile."""
        return Tile(self.blocking.mr, self.blocking.nr, self.blocking.kr)

    def matmul(self, a: Slice, b: Slice, columns: Expression) -> TileMatmul:
        """The one register tile at (i, j), rows and columns cut at the matrix edge."""
        sizes, i, j = self.sizes, Name("i"), Name("j")
        return TileMatmul(
            c=Slice("c", i * sizes.rs_c + j * sizes.cs_c, (sizes.rs_c, sizes.cs_c)),
            a=a,
            b=b,
            rows=minimum(self.blocking.mr, sizes.m - i),
            columns=columns,
            depth=Name("depth"),
            tile=self.tile,
            alpha=Scalar("alpha"),
            beta=FirstElse("pc", Scalar("beta"), Scalar(1.0)),
        )

    def a_in_place(self) -> Slice:
        """A at row i and depth pc, where it stands."""
        sizes = self.sizes
        return Slice(self.a, Name("i") * sizes.rs_a + Name("pc") * sizes.cs_a, (sizes.rs_a, sizes.cs_a))

    def b_in_place(self) -> Slice:
        """B at column j and depth pc; its columns are adjacent."""
        sizes = self.sizes
        return Slice(self.b, Name("j") + Name("pc") * sizes.rs_b, (Constant(1), sizes.rs_b))

    def a_panel(self) -> Slice:
        """The micro-panel of packed A that holds row i."""
        return Slice(
            "a_pack", (Name("i") - Name("ic")) * Name("depth"), (Constant(1), Constant(self.tile.mr))
        )

    def b_panel(self) -> Slice:
        """The micro-panel of packed B that holds column j."""
        return Slice(
            "b_pack", (Name("j") - Name("jc")) * Name("depth"), (Constant(1), Constant(self.tile.nr))
        )

    def pack_a(self, rows: Expression) -> Pack:
        """Packs rows ic .. ic+rows of A at depth pc."""
        sizes = self.sizes
        source = Slice(self.a, Name("ic") * sizes.rs_a + Name("pc") * sizes.cs_a, (sizes.rs_a, sizes.cs_a))
        return Pack(self.a_pack_start(), source, rows, Name("depth"), self.tile.mr, self.tile.kr)

    def a_pack_start(self) -> Slice:
        """The beginning of the packed block of A."""
        return Slice("a_pack", Constant(0), (Constant(1), Constant(self.tile.mr)))

    def pack_b(self, first: Expression, columns: Expression) -> Pack:
        """Packs columns first .. first+columns of B at depth pc."""
        sizes = self.sizes
        source = Slice(self.b, first * sizes.cs_b + Name("pc") * sizes.rs_b, (sizes.cs_b, sizes.rs_b))
        start = Slice("b_pack", Constant(0), (Constant(1), Constant(self.tile.nr)))
        return Pack(start, source, columns, Name("depth"), self.tile.nr, self.tile.kr)

    def depth_loop(self, *body: Statement) -> Loop:
        """pc over k, at least once: an empty product still writes beta · C."""
        k = Name("depths")
        depth = Let("depth", minimum(Name("kc"), k - Name("pc")))
        return Loop("pc", Constant(0), maximum(k, 1), Name("kc"), (depth, *body))


def tiling(nest: Nest, limits: Thresholds | None = None) -> tuple[Statement, ...]:
    """A in place; B in place or, one micro-panel at a time, in a small reused buffer.

    The register tile loads vectors of B along n. So a micro-panel is copied first where its lanes
    are not adjacent, at the right edge where the row has no masks, and (given limits) where B is
    too large to be read in place once per row of tiles. The copy stays near: seed 000's online
    packing (§4.1.1). Without limits this is seed 004's Tiling (§4.1.3).
    """
    sizes, tile = nest.sizes, nest.tile
    columns = minimum(tile.nr, sizes.n - Name("j"))

    def rows(b: Slice) -> Loop:
        body = (nest.matmul(nest.a_in_place(), b, columns),)
        return Loop("i", Constant(0), sizes.m, Constant(tile.mr), body)

    readable: tuple[Compare, ...] = ()
    if sizes.cs_b != Constant(1):
        readable += (Compare(Relation.EQ, sizes.cs_b, Constant(1)),)
    if nest.edge is Edge.SPILL:
        readable += (Compare(Relation.LE, Name("j") + tile.nr, sizes.n),)
    choices: tuple[AllOf, ...] = (AllOf(readable),) if readable else ()
    if limits is not None:
        small = Compare(Relation.LE, sizes.n * Name("kc"), Constant(limits.in_place_b))
        flat = Compare(Relation.LE, sizes.m, Constant(limits.few_rows))
        choices = (AllOf((*readable, small)), AllOf((*readable, flat)))
    body: tuple[Statement, ...] = (rows(nest.b_in_place()),)
    if choices:
        start = Slice("b_pack", Constant(0), (Constant(1), Constant(tile.nr)))
        copied = (nest.pack_b(Name("j"), columns), rows(start))
        body = (If(AnyOf(choices), body, copied),)
    return (nest.depth_loop(Loop("j", Constant(0), sizes.n, Constant(tile.nr), body)),)


def streaming(nest: Nest) -> tuple[Statement, ...]:
    """Few rows: tiles of one or two rows as wide as the registers allow, so that B streams.

    With few rows each element of B is used a few times at most, and reading it is the work. A tile of
    mr×nr reads nr elements of each row of B before it jumps to the next, 128 bytes for nr = 32; a
    tile of one row and three quarters of the registers reads 1,536, which the hardware prefetches.
    Rows go in pairs (a second pair finds the slice of B in L2), an odd last row on its own. The sum
    of each element keeps its order.
    """
    sizes, tile = nest.sizes, nest.tile
    whole = roundup(maximum(sizes.n + 1 - nest.wide_columns, 0), nest.wide_columns)
    body: list[Statement] = [
        Let("paired", roundup(maximum(sizes.m - 1, 0), 2)),  # rows that have a partner
        Let("wide", whole),  # columns that tiles of full width cover
    ]
    for height, first, end in ((2, Constant(0), Name("paired")), (1, Name("paired"), sizes.m)):
        width = nest.wide_columns // height
        one = nest.matmul(nest.a_in_place(), nest.b_in_place(), Constant(width))
        one = replace(one, rows=Constant(height), tile=Tile(height, width, tile.kr))
        rows = Loop("i", first, end, Constant(height), (one,))
        body.append(Loop("j", Constant(0), Name("wide"), Constant(width), (rows,)))
    rest = nest.matmul(nest.a_in_place(), nest.b_in_place(), minimum(tile.nr, sizes.n - Name("j")))
    rest_rows = Loop("i", Constant(0), sizes.m, Constant(tile.mr), (rest,))
    body.append(Loop("j", Name("wide"), sizes.n, Constant(tile.nr), (rest_rows,)))
    return (nest.depth_loop(*body),)


def packing(nest: Nest) -> tuple[Statement, ...]:
    """The five loops with both operands packed (seed 004 Algorithm 1)."""
    sizes, tile = nest.sizes, nest.tile
    jc, ic = Name("jc"), Name("ic")
    columns = minimum(tile.nr, sizes.n - Name("j"))
    ir = Loop(
        "i",
        ic,
        minimum(ic + Name("mc"), sizes.m),
        Constant(tile.mr),
        (nest.matmul(nest.a_panel(), nest.b_panel(), columns),),
    )
    jr = Loop("j", jc, minimum(jc + Name("nc"), sizes.n), Constant(tile.nr), (ir,))
    rows = nest.pack_a(minimum(Name("mc"), sizes.m - ic))
    ic_loop = Loop("ic", Constant(0), sizes.m, Name("mc"), (rows, jr))
    pc_loop = nest.depth_loop(nest.pack_b(jc, minimum(Name("nc"), sizes.n - jc)), ic_loop)
    blocks = (
        Let("mc", _balanced(sizes.m, nest.blocking.mc, tile.mr)),
        Let("nc", _balanced(sizes.n, nest.blocking.nc, tile.nr)),
    )
    return (*blocks, Loop("jc", Constant(0), sizes.n, Name("nc"), (pc_loop,)))


def _balanced(extent: Expression, block: int, unit: int) -> Expression:
    """`extent` in equal parts of at most `block`, each a multiple of `unit`.

    An extent of 0 gives 0, and its loops make no turn or one empty one.
    """
    parts = maximum(ceildiv(extent, block), 1)
    return maximum(roundup(ceildiv(extent, parts), unit), unit)


def _depths(nest: Nest) -> tuple[Statement, ...]:
    """The depth to walk (none where alpha is 0), and kc, which depends on k alone (promise 5)."""
    sizes, blocking = nest.sizes, nest.blocking
    return (
        Let("depths", Unless("alpha", sizes.k)),
        Let("kc", _balanced(sizes.k, blocking.kc, DEPTH_UNIT)),
    )


def _auto(nest: Nest, limits: Thresholds) -> tuple[Statement, ...]:
    """Few rows stream B; A stays in place where it is small or seldom read; else the five loops."""
    sizes = nest.sizes
    small = Compare(Relation.LE, sizes.m * Name("kc"), Constant(limits.in_place_a))
    narrow = Compare(Relation.LE, sizes.n, Constant(limits.few_columns))
    near = AnyOf((AllOf((small,)), AllOf((narrow,))))
    nested = If(near, tiling(nest, limits), packing(nest))
    if nest.edge is Edge.SPILL:
        return (nested,)  # the columns that wide tiles leave over need masks
    adjacent = tuple(
        Compare(Relation.EQ, stride, Constant(1))
        for stride in (sizes.cs_b, sizes.cs_c)
        if stride != Constant(1)
    )
    far = Compare(Relation.LT, Constant(limits.in_place_b), sizes.n * sizes.k)
    single = AllOf((*adjacent, Compare(Relation.EQ, sizes.m, Constant(1))))
    few = AllOf((*adjacent, Compare(Relation.LE, sizes.m, Constant(limits.streamed_rows)), far))
    return (If(AnyOf((single, few)), streaming(nest), (nested,)),)


def build_gemm(problem: Gemm, blocking: Blocking, machine: Machine, name: str) -> Program:
    """The tile IR of a GEMM; its parameters keep their meaning whatever the layout of C.

    Examples
    --------
    >>> from tilewright.machine.catalog import find_machine
    >>> from tilewright.spec.problem import Gemm
    >>> blocking = Blocking(12, 32, 1, 216, 4096, 512)
    >>> program = build_gemm(Gemm(strategy="tiling"), blocking, find_machine("znver5"), "g")
    >>> [buffer.name for buffer in program.buffers]
    ['a', 'b', 'c']
    """
    sizes, isa = sizes_of(problem), machine.isa
    wide = wide_columns(isa, problem.dtype)
    nest = Nest(sizes, blocking, isa.edge, wide)
    if problem.c is Layout.COL:
        nest = Nest(sizes.turned(), blocking, isa.edge, wide, a="b", b="a")
    match problem.strategy:
        case Strategy.TILING:
            body = tiling(nest)
        case Strategy.PACKING:
            body = packing(nest)
        case Strategy.AUTO:
            body = _auto(nest, thresholds(blocking, problem.dtype, machine.l2.size))
    body = (*_depths(nest), *body)
    kc = -(-blocking.kc // DEPTH_UNIT) * DEPTH_UNIT  # as `_blocks` rounds it
    used = _buffers_used(body)
    scratch = (
        Buffer("b_pack", problem.dtype, Space.SHARED, kc * blocking.nc),
        Buffer("a_pack", problem.dtype, Space.THREAD, kc * blocking.mc),
    )
    arguments = tuple(Buffer(operand, problem.dtype, Space.ARGUMENT) for operand in ("a", "b", "c"))
    return Program(
        name=name,
        sizes=SIZES,
        scalars=SCALARS,
        buffers=(*arguments, *(buffer for buffer in scratch if buffer.name in used)),
        body=body,
    )


def _buffers_used(body: tuple[Statement, ...]) -> frozenset[str]:
    found: set[str] = set()
    for statement in body:
        match statement:
            case Loop():
                found |= _buffers_used(statement.body)
            case If(_, then, otherwise):
                found |= _buffers_used(then) | _buffers_used(otherwise)
            case Pack(destination, source):
                found |= {destination.buffer, source.buffer}
            case TileMatmul():
                found |= {statement.a.buffer, statement.b.buffer, statement.c.buffer}
            case Let():
                pass
    return frozenset(found)
