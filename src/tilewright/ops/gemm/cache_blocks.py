"""Loops over cache blocks around one register tile: jc, pc, ic, jr, ir, operands packed or in place."""

from __future__ import annotations

from dataclasses import replace

from tilewright.ir.expressions import (
    AllOf,
    AnyOf,
    Compare,
    Constant,
    Expression,
    ExpressionLike,
    Name,
    Relation,
    Threads,
    Unless,
    ceildiv,
    maximum,
    minimum,
    roundup,
)
from tilewright.ir.nodes import If, Let, Loop, Slice, Statement
from tilewright.ir.primitives.prefetch import PrefetchRows
from tilewright.machine.machine import CACHE_LINE
from tilewright.macro.blocking import PACKED_ROWS, SUMS_COLUMNS, SUMS_ROWS, depth_unit
from tilewright.macro.partition import (
    COLUMN_TASKS,
    LEAST_COLUMN_TILES,
    LEAST_COPIED_TILES,
    LEAST_ROW_TILES,
    LEAST_STRIP_TILES,
    LEAST_TILES,
    MOVED_WORK,
    PACKED_RUN,
    ROW_TASKS,
    THREAD_TASKS,
    bounded,
    parallel,
    share,
    tasks,
)
from tilewright.ops.gemm.product_nest import (
    Nest,
    decide,
    ones,
)

#: The largest strip of A that is prefetched while the one before is used: half of the smallest L1.
AHEAD_BYTES = 16 << 10


def tiling(nest: Nest) -> tuple[Statement, ...]:
    """A in place; B in place or, one micro-panel at a time, in a small reused buffer.

    The register tile loads vectors of B along n. So a micro-panel is copied first where its lanes are not
    adjacent, and at the right edge where the row has no masks: the online packing of Fu et al. 2024, §4.1.1.
    Source: the Tiling of Kuzma et al. 2023, §4.1.3.
    """
    if nest.carries:
        nest = beside_column(nest)
    readable = (*ones(nest.sizes.cs_b), *nest.whole_tile())
    nest = replace(nest, first_row=Name("ib"), shift=nest.shift_by_b() if nest.in_place else Constant(0))
    return walk_columns(
        nest, nest.column((AllOf(readable),) if readable else ()) if nest.in_place else nest.column_copied()
    )


def tiling_in_place(nest: Nest) -> tuple[Statement, ...]:
    """`tiling` where the lanes of B are adjacent, which tiles read in place with or without whole columns."""
    nest = replace(nest, first_row=Name("ib"), shift=nest.shift_by_b())
    return walk_columns(nest, nest.column_in_place())


def walk_columns(nest: Nest, column: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Column after column of tiles, over the rows of a task; A is in place."""
    sizes, step = nest.sizes, nest.columns_step
    jb, jn = Name("jb"), Name("jn")
    area = minimum(Name("mb"), sizes.m) * step
    body = (nest.depth_loop_of_task(area, *column),) if nest.carries else column
    shift = _first_column(nest)
    inside = Loop("j", jb + shift, minimum(jb + jn + shift, sizes.n), Constant(step), body)
    rows = parallel("ib", Constant(0), sizes.m, Name("mb"), inside)
    columns = sizes.n - shift
    walk = parallel("jb", Constant(0), columns, jn, rows)
    # Rows are cut where columns are too few; each task copies columns of a B that is not read in place.
    copied: ExpressionLike = int(not nest.in_place)
    if nest.in_place:
        copied = maximum(minimum(sizes.cs_b - 1, 1), 0)
    if nest.b in nest.packed:
        copied = 0
    least = (copied * (LEAST_COPIED_TILES - LEAST_ROW_TILES) + LEAST_ROW_TILES) * nest.tile.mr
    all_rows, some = _work(nest, sizes.m), _work(nest, minimum(sizes.m, least))
    down = ceildiv(bounded(tasks(THREAD_TASKS), all_rows), maximum(ceildiv(columns, jn), 1))
    lets = (
        Let("jn", share(columns, step, bounded(tasks(COLUMN_TASKS), some))),
        Let("mb", maximum(share(sizes.m, nest.tile.mr, down), least)),
    )
    return (*_shift_let(nest), *lets, walk if nest.carries else nest.depth_loop(walk))


def _work(nest: Nest, rows: Expression) -> Expression:
    """Multiply-adds of some rows; each element that is read or written counts as `MOVED_WORK` of them."""
    return (rows + MOVED_WORK) * (nest.sizes.n + MOVED_WORK) * (Name("kc") + MOVED_WORK)


def copying(nest: Nest) -> tuple[Statement, ...]:
    """A in place; of each column of tiles the first one, which has all its rows, copies B for the others.

    What `packing` does one after the other, waiting for rows of B and multiplying, happens at once.
    """
    sizes, step, jb, jn = nest.sizes, nest.columns_step, Name("jb"), Name("jn")
    inside = Loop("j", jb, minimum(jb + jn, sizes.n), Constant(step), nest.column_copying())
    let = Let("jn", share(sizes.n, step, bounded(tasks(COLUMN_TASKS), _work(nest, sizes.m))))
    return (let, nest.depth_loop(parallel("jb", Constant(0), sizes.n, jn, inside)))


def _shift_let(nest: Nest) -> tuple[Let, ...]:
    """The column at which the first tiles begin, where it may be before column 0."""
    return (Let("shift", nest.shift),) if nest.by_lines else ()


def _first_column(nest: Nest) -> Expression:
    """The value of `_shift_let`."""
    return Name("shift") if nest.by_lines else Constant(0)


def packing(nest: Nest, strip: int = 0, strip_slice: int = 0) -> tuple[Statement, ...]:
    """The five loops with both operands packed (Kuzma et al. 2023, Algorithm 1).

    With a `strip`, A stays in place, and so many rows of it meet all columns of a block before the next ones;
    with a `strip_slice`, the panels of a block have at most so many elements for each thread.
    """
    sizes, mr = nest.sizes, nest.tile.mr
    rows_a_task = share(sizes.m, mr, tasks(ROW_TASKS))
    block = balanced(sizes.m, nest.blocking.mc, mr)
    lined = not nest.carries and nest.b not in nest.packed
    nest = replace(nest, strip=strip, shift=nest.shift_by_c() if lined else Constant(0))
    first = _first_column(nest)
    blocks = (
        *_shift_let(nest),
        Let("mc", minimum(strip or block, rows_a_task if strip else maximum(rows_a_task, LEAST_TILES * mr))),
        Let("nc", balanced(sizes.n - first, _widest(nest, strip_slice), nest.columns_step)),
    )
    jc = Loop("jc", first, sizes.n, Name("nc"), _row_blocks(nest, Constant(0), sizes.m, "nc"))
    if not nest.carries:
        return (*blocks, jc)
    # Unfinished sums cannot be stored in C, which would round them. They are kept in a separate block; each
    # block of C then completes the whole depth before the next one begins.
    place = (Name("i") - Name("ib")) * SUMS_COLUMNS + (Name("j") - Name("jc")) * nest.parts
    sums = Slice("block_sums", place, (Constant(SUMS_COLUMNS), Constant(1)))
    nest = replace(nest, sums=sums)
    rows = SUMS_ROWS // nest.tile.mr * nest.tile.mr
    columns = min(SUMS_COLUMNS // nest.tile.nr * nest.tile.nr, nest.blocking.nc) // nest.parts
    end = minimum(Name("ib") + rows, sizes.m)
    several = (
        Let("nc", balanced(sizes.n, columns, nest.columns_step)),
        Loop(
            "jc",
            Constant(0),
            sizes.n,
            Name("nc"),
            (Loop("ib", Constant(0), sizes.m, Constant(rows), _row_blocks(nest, Name("ib"), end, "nc")),),
        ),
    )
    one = Compare(Relation.LE, Name("depths"), Name("kc"))
    single = replace(nest, sums=replace(sums, offset=Constant(0)))  # which one block does not touch
    alone = (
        blocks[1],
        Loop("jc", Constant(0), sizes.n, Name("nc"), _row_blocks(single, Constant(0), sizes.m, "nc")),
    )
    return (blocks[0], *decide(AnyOf((AllOf((one,)),)), alone, several))


def packing_once(nest: Nest, strip: int, strip_slice: int) -> tuple[Statement, ...]:
    """Rows of A are packed once for all columns; strips of the panels meet slices of B that L2 keeps.

    `packing` would copy A again for each slice. Where C can't take unfinished sums, the depth is one block.
    """
    sizes, mr, ib, ip = nest.sizes, nest.tile.mr, Name("ib"), Name("ip")
    if nest.carries:
        nest = replace(nest, sums=Slice("block_sums", Constant(0), (Constant(SUMS_COLUMNS), Constant(1))))
    else:
        nest = replace(nest, shift=nest.shift_by_c())
    first, rows = _first_column(nest), PACKED_ROWS // mr * mr
    end = minimum(ib + rows, sizes.m)
    place = replace(nest.a_panel(), buffer="a_block", offset=(ip - ib) * nest.panel_depth())
    pack = replace(nest.pack_a(minimum(Name("mp"), end - ip), ip), destination=place)
    panel = replace(nest.a_panel(ib), buffer="a_block")
    strips = replace(nest, strip=strip)  # of panels, in tasks of as many columns as strips in place have
    slices = Loop("jc", first, sizes.n, Name("nc"), _columns(strips, ib, end, Name("nc"), panel))
    rows_a_task = share(minimum(sizes.m, rows), mr, tasks(ROW_TASKS))
    return (
        *_shift_let(nest),
        Let("mp", rows_a_task),
        Let("mc", minimum(strip, rows_a_task)),
        Let("nc", balanced(sizes.n - first, _widest(nest, strip_slice), nest.columns_step)),
        Loop(
            "ib",
            Constant(0),
            sizes.m,
            Constant(rows),
            (nest.depth_loop(parallel("ip", ib, end, Name("mp"), pack), slices),),
        ),
    )


def _widest(nest: Nest, strip_slice: int) -> Expression:
    """The most columns of a block: its panels, and with a `strip_slice` so many elements for each thread."""
    widest: Expression = Constant(nest.blocking.nc // nest.parts)
    if strip_slice:
        widest = minimum(widest, ceildiv(Constant(strip_slice), Name("kc")) * Threads())
    return widest


def _row_blocks(nest: Nest, begin: Expression, end: Expression, nc: str) -> tuple[Statement, ...]:
    """The loops pc, ic, jr and ir over rows begin .. end and the columns of block jc."""
    a, rows = nest.a_panel(), tuple[Statement, ...]()
    if nest.strip:
        a = nest.a_in_place()
    elif nest.a not in nest.packed:
        rows = (nest.pack_a(minimum(Name("mc"), end - Name("ic"))),)
    found = _columns(nest, begin, end, Name(nc), a, *rows)
    lets = tuple(one for one in found if isinstance(one, Let))
    return (*lets, nest.depth_loop(*found[len(lets) :]))


def _columns(
    nest: Nest, begin: Expression, end: Expression, nc: Expression, a: Slice, *rows: Statement
) -> tuple[Statement, ...]:
    """The columns of block jc at depth pc: they are packed, and rows begin .. end multiplied by them."""
    jc, ic, jj, last = (Name(axis) for axis in ("jc", "ic", "jj", "jend"))
    one = nest.matmul(a, nest.b_panel(), nest.tile_columns)
    ir = Loop("i", ic, minimum(ic + Name("mc"), end), Constant(nest.tile.mr), (one,))
    ahead = _next_strip(nest, end) if nest.strip and a.buffer == nest.a else ()
    jr = Loop("j", jj, minimum(jj + Name("jn"), last), Constant(nest.columns_step), (*ahead, ir))
    blocks = parallel("ic", begin, end, Name("mc"), parallel("jj", jc, last, Name("jn"), *rows, jr))
    multiplied, packed = task_columns(nest, end - begin, last - jc)
    jend = Let("jend", minimum(jc + nc, nest.sizes.n))
    if nest.b in nest.packed:
        return jend, multiplied, blocks
    return jend, multiplied, packed, parallel("jp", jc, last, Name("np"), *_pack_panels(nest)), blocks


def _pack_panels(nest: Nest) -> tuple[Statement, ...]:
    """Packs np columns of B from jp on; the panel that begins before column 0 by itself."""
    jp, last = Name("jp"), Name("jend")
    if not nest.by_lines:
        return (nest.pack_b(jp, minimum(Name("np"), last - jp), jp - Name("jc")),)
    step = nest.columns_step
    narrow = nest.pack_b(Constant(0), minimum(jp + step, last))
    begins_before = AnyOf((AllOf((Compare(Relation.LT, jp, Constant(0)),)),))
    first = Name("packed")
    others = nest.pack_b(first, minimum(jp + Name("np"), last) - first, first - Name("jc"))
    return (
        If(begins_before, (narrow,), ()),
        Let("packed", jp + minimum(maximum(Constant(0) - jp, 0), 1) * step),
        others,
    )


def task_columns(nest: Nest, rows: Expression, columns: Expression) -> tuple[Let, Let]:
    """The columns of a block that one task multiplies with mc of the rows, and those that one packs.

    Columns are cut where the blocks of rows are too few.
    """
    step, stored = nest.columns_step, nest.types.b if nest.b == "b" else nest.types.a
    across = ceildiv(tasks(THREAD_TASKS), maximum(ceildiv(rows, Name("mc")), 1))
    least = LEAST_STRIP_TILES if nest.strip else LEAST_COLUMN_TILES
    panels = -(-PACKED_RUN // stored.bytes(step))
    return (
        Let("jn", maximum(share(columns, step, across), least * step)),
        Let("np", share(columns, panels * step, tasks(COLUMN_TASKS))),
    )


def _next_strip(nest: Nest, end: Expression) -> tuple[Statement, ...]:
    """Prefetches the next strip of A, a part beside each column of tiles.

    Hardware does not follow its rows where they are short, as of tall products. Strips that take more than
    `AHEAD_BYTES` have long rows, and would evict each other.
    """
    sizes, size = nest.sizes, (nest.types.a if nest.a == "a" else nest.types.b).size
    if sizes.cs_a != Constant(1) and nest.words != ():
        return ()
    line = CACHE_LINE // size
    jj, here, rows = Name("jj"), Name("ic") + Name("mc"), Name("mc")
    columns = ceildiv(minimum(jj + Name("jn"), Name("jend")) - jj, nest.columns_step)
    part = roundup(ceildiv(Name("depth"), columns), line)
    begin = ceildiv(Name("j") - jj, nest.columns_step) * part
    source = Slice(nest.a, here * sizes.rs_a + Name("pc") + begin, (sizes.rs_a, Constant(1)))
    fetch = PrefetchRows(source, minimum(rows, end - here), minimum(part, Name("depth") - begin))
    wanted = (
        Compare(Relation.LT, begin, Name("depth")),
        Compare(Relation.LT, here, end),
        Compare(Relation.LE, rows * Name("depth"), Constant(AHEAD_BYTES // size)),
        *ones(sizes.cs_a),
    )
    return decide(AnyOf((AllOf(wanted),)), (fetch,), ())


def balanced(extent: Expression, block: ExpressionLike, unit: int) -> Expression:
    """`extent` in equal parts of at most `block`, each a multiple of `unit`.

    An extent of 0 gives 0, and its loops make no turn or one empty one.
    """
    parts = maximum(ceildiv(extent, block), 1)
    return maximum(roundup(ceildiv(extent, parts), unit), unit)


def depth_lets(nest: Nest) -> tuple[Let, Let]:
    """The depth to walk (none where alpha is 0), and kc, which depends on k alone (promise 5)."""
    sizes = nest.sizes
    kc = depths_of_blocks(sizes.k, most_depths(nest), depth_step(nest), _chain(nest))
    return Let("depths", Unless("alpha", sizes.k)), Let("kc", kc)


def depths_of_blocks(k: Expression, most: int, unit: int, chain: int) -> Expression:
    """kc: the depth in equal blocks of at most `most`, which are multiples of a unit.

    Several blocks end where chains of sums end, so that every nest closes the same ones.
    """
    if not unit < chain <= most or chain % unit:
        return balanced(k, most, unit)
    return minimum(balanced(k, most, chain), maximum(roundup(k, unit), unit))


def longest_block(kc: int, unit: int, chain: int) -> int:
    """The longest block of depths, at most kc: whole units, and whole chains if it has any."""
    most = max(unit, kc // unit * unit)
    return most // chain * chain if 0 < chain < most and chain % unit == 0 else most


def _chain(nest: Nest) -> int:
    """Depths of one chain of sums, in elements of the operands."""
    return nest.instruction.sum_depths // nest.parts


def depth_step(nest: Nest) -> int:
    """kc is a multiple of this: whole steps of the instruction, whole groups; both are powers of two."""
    return max(depth_unit(nest.instruction), nest.weights.group if nest.weights else 0)


def most_depths(nest: Nest) -> int:
    """Depths of the longest panels: whole units, which `balanced` does not exceed."""
    unit = depth_step(nest)
    return longest_block(-(-nest.blocking.kc // nest.parts // unit) * unit, unit, _chain(nest))


def beside_column(nest: Nest) -> Nest:
    """Buffer for the sums of a narrower C between depth blocks, for a column of a few tiles."""
    row = nest.tile.nr
    return replace(nest, sums=Slice("sums", Name("i") * row, (Constant(row), Constant(1))))
