"""Loops for products with few rows or one column: they read a matrix once, and reading it is the work."""

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
    ceildiv,
    maximum,
    minimum,
    roundup,
)
from tilewright.ir.nodes import (
    DOT_SUMS,
    FEW_LANES,
    LINE_BITS,
    Buffer,
    If,
    Let,
    Loop,
    Pack,
    Panels,
    Slice,
    Space,
    Statement,
    Tile,
    TileEpilogue,
    TileForm,
    TileMatmul,
)
from tilewright.machine.isa import SUMS_OF_A_CHAIN, Broadcast, Isa
from tilewright.macro.blocking import SUMS_ROWS
from tilewright.macro.cost import STREAMED_ROWS
from tilewright.macro.partition import TASK_ELEMENTS, THREAD_TASKS, bounded, parallel, share, tasks
from tilewright.ops.gemm.product_nest import Nest, ones
from tilewright.spec.dtype import DType
from tilewright.spec.parts import Parts

#: Depths that one pass over a row of sums adds: as many rows of B are read side by side. The sums are
#: loaded and stored once in 8 multiply-adds; 4 and 16 measured slower (docs/decisions/011).
STREAMED_DEPTH = 8

#: Vectors of one row of the pass. Two rows take half as many each: as many sums, and as much code.
STREAMED_VECTORS = 4

#: Blocks of sums: of the chain that is added to, of closed chains, and of the whole depth where C cannot hold
#: its sums.
STREAMED_BLOCKS = 3

#: Bytes of one row of sums: a third of the smallest L1; rows of B stream through the rest.
SUMS_BYTES = 16 << 10


#: Vector registers for other things than sums where lines are transposed in registers: four depths of the
#: lines, the next ones as they arrive, and an element in all lanes.
FEW_TEMPORARIES = 6

#: Rows of one tile of dot products; the micro-kernel takes them two by two.
DOT_ROWS = 4

#: Depths of one pass of dot products, at most: the vector stays in L2 while the matrix passes by.
DOT_DEPTH = 8192


def sums_buffer(nest: Nest) -> Buffer:
    """Per-thread buffer for the sums of a block of columns, and for sums that C cannot hold."""
    acc = nest.types.acc
    block = STREAMED_ROWS * (SUMS_BYTES // acc.size)
    if nest.carries:
        size = max(STREAMED_BLOCKS * block, SUMS_ROWS * nest.tile.nr)
    else:
        size = 2 * block if nest.instruction.sum_depths else block
    return Buffer("sums", acc, Space.THREAD, size)


def streaming(nest: Nest, dtype: DType, lanes: int) -> tuple[Statement, ...]:
    """Few rows: whole rows of B pass by, eight at a time, and are added to sums kept in cache.

    A tile that keeps its sums in registers reads 128 bytes of a row of B before it jumps to the next
    one, which no prefetcher follows. Here each row is read in one run of up to 16 KiB. The sum of each
    element keeps the order it has in every other nest: depth by depth within kc, then block by block.
    Where the instruction takes several depths, rows of B are interleaved as they are loaded. Complex numbers
    have half as many columns and depths as their parts.
    """
    sizes, tile, parts = nest.sizes, nest.tile, nest.parts
    width, block = STREAMED_VECTORS * lanes // parts, SUMS_BYTES // dtype.size
    i, j, jb, p = Name("i"), Name("j"), Name("jb"), Name("p")

    def added(depth: Expression, heights: tuple[int, ...]) -> tuple[Statement, ...]:
        """Adds depths from p, so many numbers, to the sums of the block, by tiles of two rows and of one."""
        found: list[Statement] = []
        spans = {
            2: (Constant(0), Name("paired")),
            1: (Name("paired") if 2 in heights else Constant(0), sizes.m),
        }
        for height in heights:
            first, end = spans[height]
            at, across = Name("pc") + p, width // height
            a = Slice(nest.a, i * sizes.rs_a + at * sizes.cs_a, (sizes.rs_a, sizes.cs_a))
            if parts > 1:
                a = replace(a, strides=(sizes.rs_a, Constant(1)))
            if nest.instruction.k > 1:
                a = replace(
                    a, strides=(sizes.rs_a, Constant(nest.instruction.k)), interleave=nest.instruction.k
                )
            b = Slice(nest.b, j + at * sizes.rs_b, (Constant(1), sizes.rs_b))
            one = nest.matmul(a, b, Constant(across))
            one = replace(
                one,
                c=Slice("sums", i * block + (j - jb) * parts, (Constant(block), Constant(1))),
                rows=Constant(height),
                depth=depth,
                tile=Tile(height, across * parts, tile.kr),
                rotated=parts > 1,
                alpha=Scalar(1.0),
                beta=FirstElse("p", Scalar(0.0), Scalar(1.0)),
                carry=None,
                finish=None,
            )
            columns = Loop("j", jb, Name("jend"), Constant(across), (one,))
            found.append(Loop("i", first, end, Constant(height), (columns,)))
        return tuple(found)

    step = Constant(STREAMED_DEPTH)
    whole = Compare(Relation.LE, p + step, Name("depth"))
    left = minimum((Name("depth") - p) * parts, STREAMED_DEPTH * parts)
    passes = If(AnyOf((AllOf((whole,)),)), added(Constant(STREAMED_DEPTH * parts), (2, 1)), added(left, (1,)))
    held, closed, total = (
        Slice("sums", Constant(number * STREAMED_ROWS * block), (Constant(block), Constant(1)))
        for number in range(STREAMED_BLOCKS)
    )
    store = TileEpilogue(
        c=Slice("c", jb * parts, (sizes.rs_c * parts, Constant(parts)), interleave=parts),
        sums=held,
        rows=sizes.m,
        columns=(Name("jend") - jb) * parts,
        alpha=Scalar("alpha"),
        beta=FirstElse("pc", Scalar("beta"), Scalar(1.0)),
        finish=nest.steps.at(Constant(0), jb, "pc"),
    )

    def add(sums: Slice, total: Slice, axis: str) -> TileEpilogue:
        """Adds sums to those of an axis' previous iterations."""
        first = FirstElse(axis, Scalar(0.0), Scalar(1.0))
        return replace(store, c=total, sums=sums, alpha=Scalar(1.0), beta=first, finish=None)

    end = Let("jend", minimum(jb + Name("jn"), Name("wide")))
    walk: tuple[Statement, ...] = (Loop("p", Constant(0), Name("depth"), step, (passes,)),)
    chain = nest.instruction.sum_depths // parts
    if chain:
        # A depth of one chain is not copied: what follows reads the sums, or else those of closed chains.
        several = Compare(Relation.LT, Constant(chain), Name("depth"))
        close = If(AnyOf((AllOf((several,)),)), (add(held, closed, "pd"),), ())
        of_chain = Loop("p", Name("pd"), minimum(Name("pd") + chain, Name("depth")), step, (passes,))
        moved = minimum(maximum(Name("depth") - chain, 0), 1) * (STREAMED_ROWS * block)
        walk = (Loop("pd", Constant(0), Name("depth"), Constant(chain), (of_chain, close)),)
        held = replace(held, offset=moved)
        store = replace(store, sums=held)
    cut = nest.whole_tile()
    lets = (
        Let("paired", roundup(maximum(sizes.m - 1, 0), 2)),  # rows that have a partner
        Let("wide", roundup(maximum(sizes.n + 1 - width, 0), width)),  # columns of whole tiles
        Let("jn", minimum(share(Name("wide"), width, tasks(THREAD_TASKS)), block // parts)),
    )

    def rest(nest: Nest) -> tuple[Statement, ...]:
        return nest.column((AllOf(cut),) if cut else ()) if nest.in_place else nest.column_copied()

    if not nest.carries:
        blocks = parallel("jb", Constant(0), Name("wide"), Name("jn"), end, *walk, store)
        tail = Loop("j", Name("wide"), sizes.n, Constant(nest.columns_step), rest(nest))
        return (*lets, nest.depth_loop_of_task(sizes.m * sizes.n, blocks, tail))
    # A narrower C takes the sums of the whole depth, which are added up in a block of their own.
    steps = nest.steps.at(Constant(0), jb, None)
    final = replace(store, sums=total, beta=Scalar("beta"), finish=steps)
    depths = nest.depth_loop_of_task(sizes.m * Name("jn"), *walk, add(held, total, "pc"))
    blocks = parallel("jb", Constant(0), Name("wide"), Name("jn"), end, depths, final)
    kept = replace(nest, sums=Slice("sums", i * tile.nr, (Constant(tile.nr), Constant(1))))
    of_tail = kept.depth_loop_of_task(sizes.m * tile.nr, *rest(kept))
    tail = Loop("j", Name("wide"), sizes.n, Constant(tile.nr), (of_tail,))
    return (*lets, blocks, tail)


def most_few(isa: Isa) -> int:
    """The largest count of rows or columns beside lines that are transposed in registers.

    Each has a vector of sums; `FEW_TEMPORARIES` others are transposed or repeat an element. More than one
    need multiply-adds that repeat an element of memory, and fixed vectors of several parts of 128 bits:
    where sums have no lanes to spare, panels are as fast.

    >>> from tilewright.machine.isa_rows import AVX2, AVX512, NEON
    >>> most_few(AVX512), most_few(AVX2), most_few(NEON)
    (26, 10, 1)
    """
    several = isa.broadcast is Broadcast.MEMORY and isa.vector_bits > LINE_BITS and not isa.scalable
    return isa.vector_registers - FEW_TEMPORARIES if several else 1


def few_rows(nest: Nest, lanes: int, most: int) -> tuple[Statement, ...]:
    """Few rows times a matrix that is contiguous along the depth, as many columns as lanes at a time."""
    sizes, j = nest.sizes, Name("j")
    pack, few = _few(nest.a, Name("pc") * sizes.cs_a, (sizes.rs_a, sizes.cs_a), sizes.m)
    sums = Slice("sums", Constant(0), (Constant(lanes), Constant(1)))
    one = replace(
        _sums_of_lines(nest, few, Slice(nest.b, j * sizes.cs_b + Name("pc"), (sizes.cs_b, Constant(1)))),
        c=sums,
        rows=sizes.m,
        columns=Constant(lanes),
        tile=Tile(most, lanes),
        form=TileForm.TRANSPOSED_B,
    )
    store = _store(sums, Slice("c", j, (sizes.rs_c, Constant(1))), (sizes.m, Constant(lanes)))
    store = replace(store, finish=nest.steps.at(Constant(0), j, "pc"))
    jb, jn = Name("jb"), Name("jn")
    inside = Loop("j", jb, minimum(jb + jn, Name("wide")), Constant(lanes), (one, store))
    whole = parallel("jb", Constant(0), Name("wide"), jn, inside)
    rest = Loop("j", Name("wide"), sizes.n, Constant(nest.tile.nr), nest.column_copied())
    parts = bounded(tasks(THREAD_TASKS), sizes.m * sizes.n * Name("kc"), TASK_ELEMENTS)
    return (
        Let("wide", roundup(maximum(sizes.n + 1 - lanes, 0), lanes)),  # columns of whole tiles
        Let("jn", share(Name("wide"), lanes, parts)),
        nest.depth_loop_of_task(sizes.m * sizes.n, pack, whole, rest),
    )


def few_columns(nest: Nest, lanes: int, most: int) -> tuple[Statement, ...]:
    """A matrix that is contiguous along the depth times few columns, as many rows as lanes at a time.

    Of complex numbers, lines are the parts in turn, and each column is two.
    """
    sizes, i, parts = nest.sizes, Name("i"), nest.parts
    pack, few = _few(nest.b, Name("pc") * sizes.rs_b, (sizes.cs_b, sizes.rs_b), sizes.n, parts)
    sums = Slice("sums", Constant(0), (Constant(-(-most // lanes) * lanes), Constant(1)))
    one = replace(
        _sums_of_lines(nest, Slice(nest.a, i * sizes.rs_a + Name("pc"), (sizes.rs_a, Constant(1))), few),
        c=sums,
        rows=Constant(lanes),
        columns=sizes.n * parts,
        tile=Tile(lanes, most),
        form=TileForm.TRANSPOSED_A,
    )
    c = Slice("c", i * sizes.rs_c * parts, (sizes.rs_c * parts, Constant(parts)), interleave=parts)
    store = _store(sums, c, (Constant(lanes), sizes.n * parts))
    store = replace(store, finish=nest.steps.at(i, Constant(0), "pc"))
    ib, mb = Name("ib"), Name("mb")
    inside = Loop("i", ib, minimum(ib + mb, Name("tall")), Constant(lanes), (one, store))
    whole = parallel("ib", Constant(0), Name("tall"), mb, inside)
    readable = (*ones(sizes.cs_b), *nest.whole_tile())
    last = replace(nest, first_row=Name("tall"))
    if nest.in_place:
        column = last.column((AllOf(readable),) if readable else ())
        rest = Loop("j", Constant(0), sizes.n, Constant(nest.tile.nr), column)
    else:
        rest = _rows_by_few(nest, few, Name("tall"))
    several = bounded(tasks(THREAD_TASKS), sizes.m * sizes.n * Name("kc"), TASK_ELEMENTS)
    return (
        Let("tall", roundup(maximum(sizes.m + 1 - lanes, 0), lanes)),  # rows of whole tiles
        Let("mb", maximum(share(Name("tall"), lanes, several), lanes)),
        nest.depth_loop_of_task(sizes.m * sizes.n, pack, whole, rest),
    )


def _rows_by_few(nest: Nest, few: Slice, first: Expression) -> Loop:
    """The rows from some one on, in place, times the panels of few columns."""
    sizes, j, panels = nest.sizes, Name("j"), few.panels
    assert panels is not None
    across = panels.lanes // nest.parts
    panel = replace(few, offset=ceildiv(j, across) * panels.stride, panels=None)
    one = nest.matmul(nest.a_in_place(), panel, minimum(across, sizes.n - j))
    one = replace(one, tile=replace(nest.tile, nr=panels.lanes))
    rows = Loop("i", first, sizes.m, Constant(nest.tile.mr), (one,))
    return Loop("j", Constant(0), sizes.n, Constant(across), (rows,))


def _few(
    buffer: str,
    offset: Expression,
    strides: tuple[Expression, Expression],
    count: Expression,
    parts: int = 1,
) -> tuple[Pack, Slice]:
    """Few rows or columns into panels, and the window of these."""
    depth, kind = Name("depth"), Parts.ROTATED if parts > 1 else Parts.WHOLE
    panels = Slice("few_pack", Constant(0), (Constant(1), Constant(FEW_LANES)))
    pack = Pack(panels, Slice(buffer, offset, strides), count, depth, FEW_LANES, parts=kind)
    return pack, replace(panels, panels=Panels(FEW_LANES, depth * (parts * FEW_LANES)))


def _sums_of_lines(nest: Nest, a: Slice, b: Slice) -> TileMatmul:
    """A product of which C takes the plain sums."""
    one = nest.matmul(a, b, Constant(0))
    return replace(one, alpha=Scalar(1.0), beta=Scalar(0.0), carry=None, finish=None)


def _store(sums: Slice, c: Slice, shape: tuple[Expression, Expression]) -> TileEpilogue:
    """Sums of a depth block to C."""
    beta = FirstElse("pc", Scalar("beta"), Scalar(1.0))
    return TileEpilogue(c, sums, *shape, Scalar("alpha"), beta)


def dots(nest: Nest, lanes: int) -> tuple[Statement, ...]:
    """One column: dot products of rows of A with a vector, both contiguous along the depth.

    Vectors run along the depth, so n = 1 has its own summation order, the same for
    every row. Rows that run side by side share the vector's loads. A pass adds as many depths as the chains
    of all lanes have.
    """
    most = min(DOT_DEPTH, SUMS_OF_A_CHAIN * DOT_SUMS * lanes)
    sizes, i = nest.sizes, Name("i")
    at = Name("pd")
    one = replace(
        nest.matmul(
            Slice(nest.a, i * sizes.rs_a + at, (sizes.rs_a, Constant(1))),
            Slice(nest.b, at, (Constant(1), Constant(1))),
            Constant(1),
        ),
        c=Slice("c", i * sizes.rs_c, (sizes.rs_c, Constant(1))),
        rows=minimum(DOT_ROWS, sizes.m - i),
        tile=Tile(DOT_ROWS, 1),
        form=TileForm.DOT,
        carry=None,
        beta=FirstElse("pd", Scalar("beta"), Scalar(1.0)),
        finish=nest.steps.at(i, Constant(0), None if nest.carries else "pd"),
    )
    depths = Name("depths")
    depth = Let("depth", depths if nest.carries else minimum(most, depths - at))
    ib, mb = Name("ib"), Name("mb")
    inside = Loop("i", ib, minimum(ib + mb, sizes.m), Constant(DOT_ROWS), (one,))
    rows = parallel("ib", Constant(0), sizes.m, mb, inside)
    # A narrower C would round the sums of each pass.
    step = maximum(depths, 1) if nest.carries else Constant(most)
    walk = Loop("pd", Constant(0), maximum(depths, 1), step, (depth, rows))
    parts = bounded(tasks(THREAD_TASKS), sizes.m * minimum(step, depths), TASK_ELEMENTS)
    return (Let("mb", share(sizes.m, DOT_ROWS, parts)), walk)
