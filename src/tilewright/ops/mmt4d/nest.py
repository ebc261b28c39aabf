"""The nests of mmt4d: register tiles inside the caller's tiles, or the caller's tiles packed again."""

from __future__ import annotations

import math

from tilewright.ir.expressions import (
    Constant,
    Expression,
    FirstElse,
    Name,
    Scalar,
    Unless,
    ceildiv,
    maximum,
    minimum,
    roundup,
)
from tilewright.ir.nodes import (
    Buffer,
    Let,
    Loop,
    Pack,
    Program,
    Slice,
    Space,
    Statement,
    Tile,
    TileMatmul,
    UnaryMap,
)
from tilewright.ir.primitives.budget import Spend
from tilewright.machine.isa import Isa, TileFma
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import (
    SUMS_COLUMNS,
    SUMS_ROWS,
    Blocking,
    choose_blocking,
    depth_unit,
    register_candidates,
)
from tilewright.macro.cost import RegisterTile
from tilewright.macro.partition import ROW_TASKS, THREAD_TASKS, parallel, share, tasks
from tilewright.ops.gemm.cache_blocks import balanced, depths_of_blocks, longest_block
from tilewright.ops.mmt4d.problem import TILE_COUNTS, Mmt4d
from tilewright.records import dataclass
from tilewright.spec.functions import UnaryOp

#: Below this share of the multiply unit's rate, packing again costs less than small register tiles do.
LEAST_SHARE = 0.75


@dataclass(frozen=True)
class Mmt4dCut:
    """Blocking of an mmt4d.

    Attributes
    ----------
    blocking : register tile and cache blocks; mr and nr divide the caller's tiles where those are read in
        place.
    in_place : whether the caller's tiles are read in place.
    step, interleave_a : depths that the multiply instruction takes, and those of A that are adjacent.
    chain : depths of one chain of sums; 0 if sums are exact.
    """

    blocking: Blocking
    in_place: bool
    step: int
    interleave_a: int
    chain: int


def share_of_rate(isa: Isa, instruction: TileFma, tile: RegisterTile) -> float:
    """The share of the multiply unit's rate that a register tile allows: by latency and by loads.

    >>> from tilewright.machine.isa_rows import AVX512
    >>> from tilewright.spec.dtype import F32
    >>> one = AVX512.tile(F32)
    >>> tiles = {(tile.mr, tile.nr): tile for tile in register_candidates(AVX512, one)}
    >>> [round(share_of_rate(AVX512, one, tiles[size]), 2) for size in ((12, 32), (16, 16), (4, 16))]
    [1.0, 0.94, 0.5]
    """
    per_cycle = isa.rate(instruction)
    latency = isa.latency(instruction)
    if instruction.has_accumulators:
        return min(1.0, tile.accumulators / instruction.accumulators)
    loads = tile.loads_per_depth * per_cycle / isa.loads_per_cycle
    return min(1.0, tile.accumulators / (per_cycle * latency), tile.accumulators / loads)


def tile_inside(problem: Mmt4d, isa: Isa, instruction: TileFma) -> RegisterTile | None:
    """The best register tile that divides the caller's tiles; None where packing again is better.

    Operands are read in place if they have the instruction's element types and interleave.
    """
    one = instruction
    stands = (problem.dtype, problem.b_dtype) == (one.a, one.b)
    if not stands or {one.kr, one.interleave_a, one.k} != {problem.k0}:
        return None
    able = [
        tile
        for tile in register_candidates(isa, one)
        if problem.m0 % tile.mr == 0
        and problem.n0 % tile.nr == 0
        and share_of_rate(isa, one, tile) >= LEAST_SHARE
    ]
    return max(able, key=lambda tile: (share_of_rate(isa, one, tile), tile.cmr), default=None)


def choose_mmt4d(problem: Mmt4d, machine: Machine) -> Mmt4dCut:
    """Register tile and cache blocks; the blocks are whole tiles of the caller.

    Examples
    --------
    >>> from tilewright.machine.catalog import find_machine
    >>> cut = choose_mmt4d(Mmt4d(24, 64, 1), find_machine("znver5"))
    >>> cut.in_place, cut.blocking.mr, cut.blocking.nr
    (True, 12, 32)
    """
    one = machine.isa.tile(problem.dtype, problem.b_dtype)
    usual = choose_blocking(machine, one)
    unit = depth_unit(one)
    tile = tile_inside(problem, machine.isa, one)
    if tile is None:
        rows, columns = math.lcm(usual.mr, problem.m0), math.lcm(usual.nr, problem.n0)
        depth = math.lcm(unit, problem.k0)
        tile_sizes = (usual.mr, usual.nr)
    else:
        rows, columns, depth = problem.m0, problem.n0, unit
        tile_sizes = (tile.mr, tile.nr)

    def down(size: int, step: int) -> int:
        return max(step, size // step * step)

    blocking = Blocking(
        *tile_sizes,
        kr=one.kr,
        mc=down(usual.mc, rows),
        nc=down(usual.nc, columns),
        kc=longest_block(usual.kc, depth, one.sum_depths),
    )
    return Mmt4dCut(blocking, tile is not None, one.k, one.interleave_a, one.sum_depths)


@dataclass(frozen=True)
class _Sizes:
    """Numbers of tiles as expressions, and the sizes of the matrices in them."""

    m1: Expression
    n1: Expression
    k1: Expression
    m0: int
    n0: int
    k0: int

    @classmethod
    def of(cls, problem: Mmt4d) -> _Sizes:
        counts = (getattr(problem, name) for name in TILE_COUNTS)
        m1, n1, k1 = (
            Name(name) if count is None else Constant(count)
            for name, count in zip(TILE_COUNTS, counts, strict=True)
        )
        return cls(m1, n1, k1, problem.m0, problem.n0, problem.k0)

    @property
    def m(self) -> Expression:
        return self.m1 * self.m0

    @property
    def n(self) -> Expression:
        return self.n1 * self.n0

    @property
    def k(self) -> Expression:
        return self.k1 * self.k0


def _depth_loop(k: Expression, kc: Expression, *body: Statement) -> Loop:
    """pc over k, at least once: an empty product still writes beta · out."""
    depth = Let("depth", minimum(kc, k - Name("pc")))
    return Loop("pc", Constant(0), maximum(k, 1), kc, (depth, *body))


def in_place(problem: Mmt4d, cut: Mmt4dCut, unit: int) -> tuple[Statement, ...]:
    """The five loops of Algorithm 1 without its packing: every panel already is one.

    Element (i, p) of lhs, in tile i1 = i // M0, is i1·M0·k + (i % M0)·K0 + (p // K0)·M0·K0 + p % K0 elements
    behind the first: the panel of i1 holds k depths of M0 rows.
    """
    sizes, tile = _Sizes.of(problem), cut.blocking
    one = Tile(tile.mr, tile.nr, tile.kr)
    m0, n0, k0 = problem.m0, problem.n0, problem.k0
    i1, j1, i0, j0, pc = (Name(name) for name in ("i1", "j1", "i0", "j0", "pc"))
    a = Slice("lhs", i1 * sizes.k + i0 * k0 + pc * m0, (Constant(k0), Constant(m0 * k0)), interleave=k0)
    b = Slice("rhs", j1 * sizes.k + j0 * k0 + pc * n0, (Constant(k0), Constant(n0 * k0)), interleave=k0)
    c = Slice("out", i1 * sizes.n + j1 * m0 + i0 * n0 + j0, (Constant(n0), Constant(1)))
    product = TileMatmul(
        c=c,
        a=a,
        b=b,
        rows=Constant(tile.mr),
        columns=Constant(tile.nr),
        depth=Name("depth"),
        tile=one,
        alpha=Scalar(1.0),
        beta=FirstElse("pc", Scalar("beta"), Scalar(1.0)),
    )
    rows = Loop("i0", Constant(0), Constant(m0), Constant(tile.mr), (product,))
    ir = Loop("i1", Name("ic"), minimum(Name("ic") + Name("mc"), sizes.m), Constant(m0), (rows,))
    columns = Loop("j0", Constant(0), Constant(n0), Constant(tile.nr), (ir,))
    jc, jj, end = Name("jc"), Name("jj"), Name("jend")
    jr = Loop("j1", jj, minimum(jj + Name("jn"), end), Constant(n0), (columns,))
    ic = parallel("ic", Constant(0), sizes.m, Name("mc"), parallel("jj", jc, end, Name("jn"), jr))
    # Columns are cut where the blocks of rows are too few for the threads.
    across = ceildiv(tasks(THREAD_TASKS), maximum(ceildiv(sizes.m, Name("mc")), 1))
    columns_block = (
        Let("jend", minimum(jc + Name("nc"), sizes.n)),
        Let("jn", share(end - jc, n0, across)),
        _depth_loop(sizes.k, Name("kc"), ic),
    )
    rows_a_task = share(sizes.m, m0, tasks(ROW_TASKS))
    return (
        Let("kc", depths_of_blocks(sizes.k, tile.kc, unit, cut.chain)),
        Let("mc", minimum(balanced(sizes.m, tile.mc, m0), rows_a_task)),
        Let("nc", balanced(sizes.n, tile.nc, n0)),
        Loop("jc", Constant(0), sizes.n, Name("nc"), columns_block),
    )


def repacked(problem: Mmt4d, cut: Mmt4dCut, unit: int) -> tuple[Statement, ...]:
    """The five loops on a block of out, whose operands are laid out in rows first and packed from there.

    Blocks of out are kept in scratch as rows, because a register tile covers parts of several tiles; each
    completes the whole depth before the next one begins, and is then copied into its tiles.
    """
    sizes, tile = _Sizes.of(problem), cut.blocking
    rows_held, columns_held = _held(problem, cut)
    one = Tile(tile.mr, tile.nr, tile.kr)
    ib, jb, ic, pc, i, j, i1, j1 = (Name(name) for name in ("ib", "jb", "ic", "pc", "i", "j", "i1", "j1"))
    row_end, column_end, row_stop = Name("row_end"), Name("column_end"), Name("row_stop")

    def tiles_of_block(load: bool) -> Loop:
        """Moves every tile of out into the block (where beta is not 0), or back."""
        block = Slice("block", (i1 - ib) * columns_held + (j1 - jb), (Constant(columns_held), Constant(1)))
        out = Slice("out", i1 * sizes.n + j1 * problem.m0, (Constant(problem.n0), Constant(1)))
        ends = (block, out) if load else (out, block)
        move = UnaryMap(UnaryOp.IDENTITY, *ends, rows=Constant(problem.m0), columns=Constant(problem.n0))
        across = Loop("j1", jb, column_end, Constant(problem.n0), (move,))
        end = ib + Unless("beta", row_end - ib) if load else row_end
        return Loop("i1", ib, end, Constant(problem.m0), (across,))

    def rows_of(operand: str, axis: str, span: tuple[Expression, Expression], held: int, lanes: int) -> Loop:
        """Lays out the lanes begin .. end of an operand at depth pc: one row of them for each depth."""
        at, q, k0 = Name(axis), Name("q"), problem.k0
        source = Slice(operand, at * sizes.k + pc * lanes + q, (Constant(lanes * k0), Constant(k0)))
        to = Slice(f"{operand}_rows", (at - span[0]) + q * held, (Constant(k0 * held), Constant(1)))
        move = UnaryMap(
            UnaryOp.IDENTITY, to, source, rows=ceildiv(Name("depth"), k0), columns=Constant(lanes)
        )
        depths = Loop("q", Constant(0), Constant(k0), Constant(1), (move,))
        return Loop(axis, *span, Constant(lanes), (depths,))

    def pack(operand: str, held: int, lanes: Expression, side: tuple[int, int]) -> Pack:
        panel, kr = side
        to = Slice(f"{operand}_pack", Constant(0), (Constant(kr), Constant(kr * panel)), interleave=kr)
        source = Slice(f"{operand}_rows", Constant(0), (Constant(1), Constant(held)))
        return Pack(to, source, lanes, Name("depth"), panel, kr, cut.step)

    padded = roundup(Name("depth"), cut.step)
    kr_a, kr_b = cut.interleave_a, tile.kr
    product = TileMatmul(
        c=Slice("block", (i - ib) * columns_held + (j - jb), (Constant(columns_held), Constant(1))),
        a=Slice("lhs_pack", (i - ic) * padded, (Constant(kr_a), Constant(kr_a * tile.mr)), interleave=kr_a),
        b=Slice("rhs_pack", (j - jb) * padded, (Constant(kr_b), Constant(kr_b * tile.nr)), interleave=kr_b),
        rows=minimum(tile.mr, row_stop - i),
        columns=minimum(tile.nr, column_end - j),
        depth=Name("depth"),
        tile=one,
        alpha=Scalar(1.0),
        beta=FirstElse("pc", Scalar("beta"), Scalar(1.0)),
    )
    ir = Loop("i", ic, row_stop, Constant(tile.mr), (product,))
    jr = Loop("j", jb, column_end, Constant(tile.nr), (ir,))
    ic_loop = Loop(
        "ic",
        ib,
        row_end,
        Constant(tile.mc),
        (
            Let("row_stop", minimum(ic + tile.mc, row_end)),
            rows_of("lhs", "i1", (ic, row_stop), tile.mc, problem.m0),
            pack("lhs", tile.mc, row_stop - ic, (tile.mr, kr_a)),
            jr,
        ),
    )
    depth = _depth_loop(
        sizes.k,
        Name("kc"),
        Spend(Name("depth") * rows_held * columns_held),
        rows_of("rhs", "j1", (jb, column_end), columns_held, problem.n0),
        pack("rhs", columns_held, column_end - jb, (tile.nr, kr_b)),
        ic_loop,
    )
    rows, columns = _units(problem, cut)
    block = (
        Let("row_end", minimum(ib + Name("rows_step"), sizes.m)),
        Let("column_end", minimum(jb + Name("columns_step"), sizes.n)),
        tiles_of_block(load=True),
        depth,
        tiles_of_block(load=False),
    )
    ib_loop = parallel("ib", Constant(0), sizes.m, Name("rows_step"), *block)
    across = ceildiv(tasks(THREAD_TASKS), maximum(ceildiv(sizes.m, Name("rows_step")), 1))
    return (
        Let("kc", depths_of_blocks(sizes.k, tile.kc, unit, cut.chain)),
        Let("rows_step", minimum(rows_held, share(sizes.m, rows, tasks(THREAD_TASKS)))),
        Let("columns_step", minimum(columns_held, share(sizes.n, columns, across))),
        parallel("jb", Constant(0), sizes.n, Name("columns_step"), ib_loop),
    )


def _units(problem: Mmt4d, cut: Mmt4dCut) -> tuple[int, int]:
    """Rows and columns that are whole register tiles and whole tiles of the caller."""
    return math.lcm(cut.blocking.mr, problem.m0), math.lcm(cut.blocking.nr, problem.n0)


def _held(problem: Mmt4d, cut: Mmt4dCut) -> tuple[int, int]:
    """Rows and columns of the block of out that waits in scratch."""
    rows, columns = _units(problem, cut)
    return max(rows, SUMS_ROWS // rows * rows), max(columns, SUMS_COLUMNS // columns * columns)


def build_mmt4d(problem: Mmt4d, cut: Mmt4dCut, machine: Machine, name: str) -> Program:
    """The tile IR of an mmt4d.

    Examples
    --------
    >>> from tilewright.machine.catalog import find_machine
    >>> machine, problem = find_machine("znver5"), Mmt4d(12, 32, 1)
    >>> program = build_mmt4d(problem, choose_mmt4d(problem, machine), machine, "g")
    >>> [buffer.name for buffer in program.buffers]
    ['lhs', 'rhs', 'out']
    """
    types, tile = problem.types, cut.blocking
    unit = math.lcm(depth_unit(machine.isa.tile(types.a, types.b)), problem.k0)
    arguments = tuple(Buffer(operand.name, operand.dtype, Space.ARGUMENT) for operand in problem.operands)
    if cut.in_place:
        return Program(name, TILE_COUNTS, ("beta",), arguments, in_place(problem, cut, unit))
    one = machine.isa.tile(types.a, types.b)
    rows, columns = _held(problem, cut)
    kc = max(unit, tile.kc // unit * unit)
    padded = -(-kc // one.k) * one.k

    def whole(size: int, panel: int) -> int:
        return -(-size // panel) * panel

    scratch = (
        Buffer("rhs_rows", types.b, Space.THREAD, kc * columns),
        Buffer("rhs_pack", one.b, Space.THREAD, padded * whole(columns, tile.nr)),
        Buffer("lhs_rows", types.a, Space.THREAD, kc * tile.mc),
        Buffer("lhs_pack", one.a, Space.THREAD, padded * whole(tile.mc, tile.mr)),
        Buffer("block", types.c, Space.THREAD, rows * columns),
    )
    return Program(name, TILE_COUNTS, ("beta",), (*arguments, *scratch), repacked(problem, cut, unit))
