"""The loops around one register tile: jc, pc, ic, jr, ir, with operands packed or in place."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.nodes import (
    AllOf,
    AnyOf,
    Buffer,
    Compare,
    Constant,
    Epilogue,
    Expression,
    If,
    Let,
    Loop,
    Name,
    Pack,
    Program,
    Relation,
    Space,
    Statement,
    TileMatmul,
    Unless,
    ceildiv,
    maximum,
    minimum,
    roundup,
)
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import DEPTH_UNIT, Blocking
from tilewright.macro.nest import SCALARS, SIZES, Nest, decide, ones, sizes_of
from tilewright.macro.streaming import STREAMED_ROWS, columns, dots, streaming, sums_buffer
from tilewright.spec.dtype import DType
from tilewright.spec.problem import Gemm, Layout, Strategy


@dataclass(frozen=True)
class Thresholds:
    """Up to where `auto` leaves operands in place; see `thresholds`.

    Attributes
    ----------
    in_place_b : elements of a kc×n slice of B.
    in_place_a : elements of an m×kc slice of A.
    few_rows, few_columns : m and n.
    streamed_rows : m up to which B is streamed.
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


def tiling(nest: Nest, limits: Thresholds | None = None) -> tuple[Statement, ...]:
    """A in place; B in place or, one micro-panel at a time, in a small reused buffer.

    The register tile loads vectors of B along n. So a micro-panel is copied first where its lanes
    are not adjacent, at the right edge where the row has no masks, and (given limits) where B is
    too large to be read in place once per row of tiles. The copy stays near: seed 000's online
    packing (§4.1.1). Without limits this is seed 004's Tiling (§4.1.3).
    """
    sizes, tile = nest.sizes, nest.tile
    readable = (*ones(sizes.cs_b), *nest.whole_tile())
    choices: tuple[AllOf, ...] = (AllOf(readable),) if readable else ()
    if limits is not None:
        small = Compare(Relation.LE, sizes.n * Name("kc"), Constant(limits.in_place_b))
        flat = Compare(Relation.LE, sizes.m, Constant(limits.few_rows))
        choices = (AllOf((*readable, small)), AllOf((*readable, flat)))
    return (nest.depth_loop(Loop("j", Constant(0), sizes.n, Constant(tile.nr), nest.column(choices))),)


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


def _auto(nest: Nest, limits: Thresholds, dtype: DType, lanes: int) -> tuple[Statement, ...]:
    """One column: dot products; few rows: stream B; A small or seldom read: in place; else five loops."""
    sizes = nest.sizes
    small = Compare(Relation.LE, sizes.m * Name("kc"), Constant(limits.in_place_a))
    narrow = Compare(Relation.LE, sizes.n, Constant(limits.few_columns))
    near = AnyOf((AllOf((small,)), AllOf((narrow,))))
    body = decide(near, tiling(nest, limits), packing(nest))
    one_row = Compare(Relation.EQ, sizes.m, Constant(1))
    far = Compare(Relation.LT, Constant(limits.in_place_b), sizes.n * sizes.k)
    some = Compare(Relation.LT, Constant(0), Name("depths"))
    adjacent = (*ones(sizes.cs_b, sizes.cs_c), some)
    single = AllOf((*adjacent, one_row))
    few = AllOf((*adjacent, Compare(Relation.LE, sizes.m, Constant(limits.streamed_rows)), far))
    body = decide(AnyOf((single, few)), streaming(nest, dtype, lanes), body)
    if sizes.cs_b != Constant(1):
        deep = (*ones(sizes.rs_b, sizes.cs_c), one_row, Compare(Relation.LE, Constant(lanes), sizes.k))
        body = decide(AnyOf((AllOf(deep),)), columns(nest, lanes), body)
    if nest.a == "a":  # turned, one column is a row of the problem, whose order is that of every row
        one = Compare(Relation.EQ, sizes.n, Constant(1))
        body = decide(AnyOf((AllOf((one, *ones(sizes.cs_a, sizes.rs_b))),)), dots(nest), body)
    return body


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
    sizes, isa, dtype = sizes_of(problem), machine.isa, problem.dtype
    nest = Nest(sizes, blocking, isa.edge)
    if problem.c is Layout.COL:
        nest = Nest(sizes.turned(), blocking, isa.edge, a="b", b="a")
    match problem.strategy:
        case Strategy.TILING:
            body = tiling(nest)
        case Strategy.PACKING:
            body = packing(nest)
        case Strategy.AUTO:
            limits = thresholds(blocking, dtype, machine.l2.size)
            body = _auto(nest, limits, dtype, isa.lanes(dtype))
    body = (*_depths(nest), *body)
    kc = -(-blocking.kc // DEPTH_UNIT) * DEPTH_UNIT  # as `_blocks` rounds it
    used = _buffers_used(body)
    scratch = (
        Buffer("b_pack", dtype, Space.SHARED, kc * blocking.nc),
        Buffer("a_pack", dtype, Space.THREAD, kc * blocking.mc),
        sums_buffer(dtype),
    )
    arguments = tuple(Buffer(operand, dtype, Space.ARGUMENT) for operand in ("a", "b", "c"))
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
            case Epilogue(c, sums):
                found |= {c.buffer, sums.buffer}
            case Let():
                pass
    return frozenset(found)
