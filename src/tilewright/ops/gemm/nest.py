"""The loops around one register tile: jc, pc, ic, jr, ir, with operands packed or in place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from tilewright.ir.nodes import (
    AllOf,
    AnyOf,
    Buffer,
    Compare,
    Constant,
    Expression,
    If,
    Let,
    Loop,
    Name,
    Pack,
    Program,
    Relation,
    Slice,
    Space,
    Statement,
    TileEpilogue,
    TileMatmul,
    Unless,
    ceildiv,
    maximum,
    minimum,
    roundup,
)
from tilewright.ir.primitives.prefetch import PrefetchRows
from tilewright.machine.isa import Isa, TileFma
from tilewright.machine.machine import CACHE_LINE, Machine
from tilewright.macro.blocking import SUMS_COLUMNS, SUMS_ROWS, Blocking, depth_unit
from tilewright.macro.cost import InPlaceLimits, in_place_limits
from tilewright.macro.partition import (
    COLUMN_TASKS,
    LEAST_COLUMN_TILES,
    LEAST_ROW_TILES,
    LEAST_TILES,
    MOVED_WORK,
    PACKED_PANELS,
    ROW_TASKS,
    THREAD_TASKS,
    bounded,
    parallel,
    share,
    tasks,
)
from tilewright.macro.prediction import Path
from tilewright.ops.gemm.narrow import NARROW_ROWS, NARROW_STORED_ROWS, narrow, plain_elements
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.gemm.product_nest import (
    SCALARS,
    Nest,
    Steps,
    computed_transposed,
    decide,
    ones,
    sizes_named,
    sizes_of,
)
from tilewright.ops.gemm.streaming import (
    MOST_STREAMED_ROWS,
    STREAMED_ROWS,
    columns,
    dots,
    streaming,
    sums_buffer,
)
from tilewright.spec.dtype import F32
from tilewright.spec.problem import Strategy

#: The largest strip of A that is prefetched while the one before is used: half of the smallest L1.
AHEAD_BYTES = 16 << 10


def tiling(nest: Nest) -> tuple[Statement, ...]:
    """A in place; B in place or, one micro-panel at a time, in a small reused buffer.

    The register tile loads vectors of B along n. So a micro-panel is copied first where its lanes are not
    adjacent, and at the right edge where the row has no masks: the online packing of Fu et al. 2024, §4.1.1.
    Source: the Tiling of Kuzma et al. 2023, §4.1.3.
    """
    if nest.carries:
        nest = _beside_column(nest)
    readable = (*ones(nest.sizes.cs_b), *nest.whole_tile())
    nest = replace(nest, first_row=Name("ib"))
    return _walk(
        nest, nest.column((AllOf(readable),) if readable else ()) if nest.in_place else nest.column_copied()
    )


def _walk(nest: Nest, column: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Column after column of tiles, over the rows of a task; A is in place."""
    sizes, step = nest.sizes, nest.columns_step
    jb, jn = Name("jb"), Name("jn")
    area = minimum(Name("mb"), sizes.m) * step
    body = (nest.depth_loop_of_task(area, *column),) if nest.carries else column
    inside = Loop("j", jb, minimum(jb + jn, sizes.n), Constant(step), body)
    rows = parallel("ib", Constant(0), sizes.m, Name("mb"), inside)
    walk = parallel("jb", Constant(0), sizes.n, jn, rows)
    # Rows are cut where the columns are too few.
    least = LEAST_ROW_TILES * nest.tile.mr

    def work(m: Expression) -> Expression:
        """Multiply-adds of m rows; each element that is read or written counts as `MOVED_WORK` of them."""
        return (m + MOVED_WORK) * (sizes.n + MOVED_WORK) * (Name("kc") + MOVED_WORK)

    down = ceildiv(bounded(tasks(THREAD_TASKS), work(sizes.m)), maximum(ceildiv(sizes.n, jn), 1))
    lets = (
        Let("jn", share(sizes.n, step, bounded(tasks(COLUMN_TASKS), work(minimum(sizes.m, least))))),
        Let("mb", maximum(share(sizes.m, nest.tile.mr, down), least)),
    )
    return (*lets, walk if nest.carries else nest.depth_loop(walk))


def packing(nest: Nest, strip: int = 0) -> tuple[Statement, ...]:
    """The five loops with both operands packed (Kuzma et al. 2023, Algorithm 1).

    With a `strip`, A stays in place, and so many rows of it meet all of the columns before the next ones.
    """
    sizes, mr = nest.sizes, nest.tile.mr
    rows_a_task = share(sizes.m, mr, tasks(ROW_TASKS))
    block = balanced(sizes.m, nest.blocking.mc, mr)
    nest = replace(nest, strip=strip)
    blocks = (
        Let("mc", minimum(strip or block, rows_a_task if strip else maximum(rows_a_task, LEAST_TILES * mr))),
        Let("nc", balanced(sizes.n, nest.blocking.nc // nest.parts, nest.columns_step)),
    )
    jc = Loop("jc", Constant(0), sizes.n, Name("nc"), _row_blocks(nest, Constant(0), sizes.m, "nc"))
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


def _row_blocks(nest: Nest, begin: Expression, end: Expression, nc: str) -> tuple[Statement, ...]:
    """The loops pc, ic, jr and ir over rows begin .. end and the columns of block jc."""
    sizes, tile, step = nest.sizes, nest.tile, nest.columns_step
    jc, ic, jj, jp = (Name(axis) for axis in ("jc", "ic", "jj", "jp"))
    columns = minimum(nest.columns_step, sizes.n - Name("j"))
    ir = Loop(
        "i",
        ic,
        minimum(ic + Name("mc"), end),
        Constant(tile.mr),
        (nest.matmul(nest.a_in_place() if nest.strip else nest.a_panel(), nest.b_panel(), columns),),
    )
    last = Name("jend")
    ahead = _next_strip(nest, end) if nest.strip else ()
    jr = Loop("j", jj, minimum(jj + Name("jn"), last), Constant(step), (*ahead, ir))
    rows = () if nest.a in nest.packed or nest.strip else (nest.pack_a(minimum(Name("mc"), end - ic)),)
    blocks = parallel("ic", begin, end, Name("mc"), parallel("jj", jc, last, Name("jn"), *rows, jr))
    pack_b = nest.pack_b(jp, minimum(Name("np"), last - jp), jp - jc)
    panels = () if nest.b in nest.packed else (parallel("jp", jc, last, Name("np"), pack_b),)
    # Columns are cut where the blocks of rows are too few.
    across = ceildiv(tasks(THREAD_TASKS), maximum(ceildiv(end - begin, Name("mc")), 1))
    return (
        Let("jend", minimum(jc + Name(nc), sizes.n)),
        Let("jn", maximum(share(last - jc, step, across), LEAST_COLUMN_TILES * step)),
        *((Let("np", share(last - jc, PACKED_PANELS * step, tasks(COLUMN_TASKS))),) if panels else ()),
        nest.depth_loop(*panels, blocks),
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


def balanced(extent: Expression, block: int, unit: int) -> Expression:
    """`extent` in equal parts of at most `block`, each a multiple of `unit`.

    An extent of 0 gives 0, and its loops make no turn or one empty one.
    """
    parts = maximum(ceildiv(extent, block), 1)
    return maximum(roundup(ceildiv(extent, parts), unit), unit)


def depth_lets(nest: Nest) -> tuple[Let, Let]:
    """The depth to walk (none where alpha is 0), and kc, which depends on k alone (docs/promises.md, 5)."""
    sizes = nest.sizes
    kc = depths_of_blocks(sizes.k, _most_depths(nest), _unit(nest), _chain(nest))
    return Let("depths", Unless("alpha", sizes.k)), Let("kc", kc)


def depths_of_blocks(k: Expression, most: int, unit: int, chain: int) -> Expression:
    """kc: the depth in equal blocks of at most `most`, which are multiples of a unit.

    Several blocks end where chains of sums end, so that every nest closes the same ones.
    """
    if not unit < chain <= most:
        return balanced(k, most, unit)
    return minimum(balanced(k, most, chain), maximum(roundup(k, unit), unit))


def longest_block(kc: int, unit: int, chain: int) -> int:
    """The longest block of depths, at most kc: whole units, and whole chains if it has any."""
    most = max(unit, kc // unit * unit)
    return most // chain * chain if 0 < chain < most else most


def _chain(nest: Nest) -> int:
    """Depths of one chain of sums, in elements of the operands."""
    return nest.instruction.sum_depths // nest.parts


def _unit(nest: Nest) -> int:
    """kc is a multiple of this: whole steps of the instruction, whole groups; both are powers of two."""
    return max(depth_unit(nest.instruction), nest.weights.group if nest.weights else 0)


def _most_depths(nest: Nest) -> int:
    """Depths of the longest panels: whole units, which `_balanced` does not exceed."""
    unit = _unit(nest)
    return longest_block(-(-nest.blocking.kc // nest.parts // unit) * unit, unit, _chain(nest))


def _near(nest: Nest, limits: InPlaceLimits, words: tuple[Compare, ...]) -> AnyOf:
    """Condition under which columns of tiles read A in place: it is small or seldom read."""
    sizes = nest.sizes
    choices: tuple[Compare, ...] = (
        Compare(Relation.LE, sizes.m * Name("kc"), Constant(limits.in_place_a)),
        Compare(Relation.LE, sizes.n, Constant(limits.few_columns)),
    )
    if nest.in_place and not nest.uniform:
        choices = _converting(nest, limits)
    held = (Compare(Relation.LE, sizes.m, Constant(SUMS_ROWS)),) if nest.carries else ()
    return AnyOf(tuple(AllOf((choice, *words, *held)) for choice in choices))


def _converting(nest: Nest, limits: InPlaceLimits) -> tuple[Compare, ...]:
    """Sizes at which tiles may convert what they read: once for every nr columns of A, mr rows of B."""
    few_rows = Compare(Relation.LE, nest.sizes.m, Constant(limits.few_rows))
    return (few_rows, Compare(Relation.LE, nest.sizes.n, Constant(limits.few_columns // 2)))


def _both_in_place(nest: Nest, limits: InPlaceLimits, words: tuple[Compare, ...]) -> AnyOf:
    """Condition under which tiles read both operands in place: B is small, as A and C are, or seldom read.

    Of few rows, B whose lanes are not adjacent is copied, one micro-panel at a time.
    """
    sizes = nest.sizes
    few = Compare(Relation.LE, sizes.m, Constant(limits.few_rows))
    small = Compare(Relation.LE, sizes.n * Name("kc"), Constant(limits.in_place_b))
    spread = Compare(Relation.LT, sizes.rs_b, roundup(sizes.rs_b, limits.one_set))
    held = (Compare(Relation.LE, sizes.m, Constant(SUMS_ROWS)),) if nest.carries else ()
    always = (*words, *held)
    near = Compare(Relation.LE, sizes.m * maximum(sizes.n, Name("kc")), Constant(limits.in_place_a))
    one = Compare(Relation.LE, sizes.n, Constant(nest.columns_step))
    if nest.uniform:
        small_b = (small, spread, *ones(sizes.cs_b))
        # Lines of few sets evict each other before the next rows meet them.
        choices = ((few, spread), (*small_b, near), (*small_b, one))
        return AnyOf(tuple(AllOf((*choice, *always)) for choice in choices))
    return AnyOf(tuple(AllOf((choice, *always)) for choice in _converting(nest, limits)))


def _strips(nest: Nest, limits: InPlaceLimits, words: tuple[Compare, ...]) -> AnyOf:
    """Condition under which strips of A are read in place: their lines survive in L1."""
    sizes = nest.sizes
    rows: tuple[Compare, ...] = ()
    if limits.rows_in_one_set:
        rows = (Compare(Relation.LT, sizes.rs_a, roundup(sizes.rs_a, limits.rows_in_one_set)),)
    if nest.in_place and not nest.uniform:
        rows = (*rows, Compare(Relation.LE, sizes.n, Constant(limits.few_columns // 2)))
    adjacent = ones(sizes.cs_a)
    spread = Compare(Relation.LT, sizes.cs_a, roundup(sizes.cs_a, limits.one_set))
    choices = (adjacent, (spread,)) if adjacent else ((),)
    return AnyOf(tuple(AllOf((*choice, *rows, *words)) for choice in choices))


def _few_rows(nest: Nest, isa: Isa, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Few rows by tiles of their own, where vectors read the words of B; else the given loops."""
    sizes, words, weights = nest.sizes, nest.words, nest.weights
    elements = plain_elements(nest.instruction) if weights is None else weights.elements
    others = {"c", nest.a} & nest.packed
    if elements is None or nest.instruction.is_matrix_engine or words is None or others:
        return body
    rows = NARROW_ROWS if weights is None else NARROW_STORED_ROWS
    few = Compare(Relation.LE, sizes.m, Constant(rows))
    some = Compare(Relation.LT, Constant(0), Name("depths"))
    condition = AllOf((few, some, *ones(sizes.cs_a, sizes.cs_c), *words))
    return decide(AnyOf((condition,)), narrow(nest, isa, elements), body)


def _prepacked(nest: Nest, limits: InPlaceLimits, isa: Isa) -> tuple[Statement, ...]:
    """The nest for prepacked operands: five loops around the panels, or A in place with panels of B.

    Tiles and depth blocks are those of every other nest, so that each sum has the same order.
    """
    body, words = packing(nest), nest.words
    if nest.weights is not None:
        return _few_rows(nest, isa, body)
    if nest.b not in nest.packed or nest.a in nest.packed or words is None:
        return body
    near = _near(nest, limits, words)
    if nest.carries:
        nest = _beside_column(nest)
    nest = replace(nest, first_row=Name("ib"))
    return _few_rows(nest, isa, decide(near, _walk(nest, nest.column_packed()), body))


def _beside_column(nest: Nest) -> Nest:
    """Buffer for the sums of a narrower C between depth blocks, for a column of a few tiles."""
    row = nest.tile.nr
    return replace(nest, sums=Slice("sums", Name("i") * row, (Constant(row), Constant(1))))


class PathChoice(NamedTuple):
    """A path through the loops, the condition under which it is taken, and its statements.

    Paths are tried in order; the last one has no condition. The statements are right where `possible` holds,
    or for all sizes and strides.
    """

    path: Path
    condition: AnyOf | None
    body: tuple[Statement, ...]
    possible: AnyOf | None = None


def paths_of(nest: Nest, limits: InPlaceLimits, lanes: int) -> tuple[PathChoice, ...]:
    """The paths of a product of any size, in the order in which they are tried."""
    return tuple(_paths(nest, limits, lanes))


def _paths(nest: Nest, limits: InPlaceLimits, lanes: int) -> Iterator[PathChoice]:
    sizes, words = nest.sizes, nest.words
    one_row = Compare(Relation.EQ, sizes.m, Constant(1))
    if nest.a == "a" and nest.parts == 1:
        # Transposed, one column is a row of the problem, with the summation order of every row.
        one = Compare(Relation.EQ, sizes.n, Constant(1))
        condition = AnyOf((AllOf((one, *ones(sizes.cs_a, sizes.rs_b))),))
        yield PathChoice(Path.DOTS, condition, dots(nest, lanes), condition)
    if nest.parts == 1 and words is not None:
        if nest.uniform and sizes.cs_b != Constant(1):
            deep = (*ones(sizes.rs_b, sizes.cs_c), one_row, Compare(Relation.LE, Constant(lanes), sizes.k))
            condition = AnyOf((AllOf(deep),))
            yield PathChoice(Path.COLUMNS, condition, columns(nest, lanes), condition)
        far = Compare(Relation.LT, Constant(limits.far_b), sizes.n * sizes.k)
        some = Compare(Relation.LT, Constant(0), Name("depths"))
        adjacent = (*ones(sizes.cs_b, sizes.cs_c), some, *words)
        single = AllOf((*adjacent, one_row))
        few, more = (
            (*adjacent, Compare(Relation.LE, sizes.m, Constant(rows)))
            for rows in (STREAMED_ROWS, MOST_STREAMED_ROWS)
        )
        # Between the two, tiles in place are faster unless rows of B share few sets of L1.
        crowded = Compare(Relation.EQ, sizes.rs_b, roundup(sizes.rs_b, limits.one_set))
        condition = AnyOf((single, AllOf((*few, far)), AllOf((*more, far, crowded))))
        possible = AnyOf((AllOf(more),))
        body = streaming(nest, nest.types.acc, lanes)
        yield PathChoice(Path.STREAMING, condition, body, possible)
    if words is not None:
        if nest.in_place:
            yield PathChoice(Path.IN_PLACE, _both_in_place(nest, limits, words), tiling(nest))
        yield PathChoice(Path.STRIPS, _strips(nest, limits, words), packing(nest, limits.strip))
    yield PathChoice(Path.PACKED, None, packing(nest))


def _auto(nest: Nest, limits: InPlaceLimits, lanes: int, only: Path | None) -> tuple[Statement, ...]:
    """The first path whose condition holds, or one path whatever the sizes."""
    *others, last = paths_of(nest, limits, lanes)
    if only is not None:
        return next((choice.body for choice in others if choice.path is only), last.body)
    body = last.body
    for choice in reversed(others):
        assert choice.condition is not None
        body = decide(choice.condition, choice.body, body)
    return body


def instruction_of(problem: Gemm, isa: Isa) -> TileFma:
    """The multiply instruction of a problem; a column-major C gives A and B each other's roles."""
    a, b = problem.dtype, problem.b_dtype
    return isa.tile(b, a) if computed_transposed(problem) else isa.tile(a, b)


def lay_gemm(
    nest: Nest, strategy: Strategy, machine: Machine, only: Path | None = None
) -> tuple[tuple[Statement, ...], tuple[Buffer, ...]]:
    """The statements of a product of any size, and the scratch that they use.

    They use the nest's operand names and the scalars alpha and beta. `only` names the one path to take.
    """
    types, blocking, isa = nest.types, nest.blocking, machine.isa
    limits = in_place_limits(machine, nest.instruction, blocking.mr, blocking.nr, types)
    match strategy:
        case _ if nest.packed or nest.weights:
            body = _prepacked(nest, limits, isa)
        case Strategy.TILING if nest.words == ():
            body = tiling(nest)
            if nest.carries:
                held = Compare(Relation.LE, nest.sizes.m, Constant(SUMS_ROWS))
                body = decide(AnyOf((AllOf((held,)),)), body, packing(nest))
        case Strategy.TILING | Strategy.PACKING:
            body = packing(nest)
        case Strategy.AUTO:
            body = _auto(nest, limits, isa.lanes(types.acc), only)
    body = (*depth_lets(nest), *body)
    one = nest.instruction
    kc = _most_depths(nest) * nest.parts
    used = _buffers_used(body)
    scratch = (
        Buffer("b_pack", one.b, Space.SHARED, kc * blocking.nc),
        Buffer("block_sums", types.acc, Space.SHARED, SUMS_ROWS * SUMS_COLUMNS),
        Buffer("a_pack", one.a, Space.THREAD, kc * blocking.mc),
        Buffer("b_panel", one.b, Space.THREAD, kc * blocking.nr),
        sums_buffer(nest),
    )
    return body, tuple(buffer for buffer in scratch if buffer.name in used)


def gemm_nest(problem: Gemm, blocking: Blocking, machine: Machine) -> Nest:
    """The state of the loop nests of a problem; a column-major C gives A and B each other's roles."""
    isa, types = machine.isa, problem.types
    edge = isa.edge_of(*(dtype.real for dtype in (types.a, types.b, types.c)))
    weights = problem.weights
    nest = Nest(
        *(sizes_of(problem), blocking, edge, types, instruction_of(problem, isa)),
        packed=problem.packed if weights is None else frozenset(),
        weights=weights,
        steps=Steps.of(problem),
    )
    if computed_transposed(problem):
        nest = replace(nest, sizes=nest.sizes.swapped(), a="b", b="a")
    return nest


def build_gemm(
    problem: Gemm, blocking: Blocking, machine: Machine, name: str, only: Path | None = None
) -> Program:
    """The tile IR of a GEMM; its parameters have the same meaning for every layout of C.

    `only` names the one path to take, which benchmarks compare.

    Examples
    --------
    >>> from tilewright.machine.catalog import find_machine
    >>> from tilewright.ops.gemm.problem import Gemm
    >>> blocking = Blocking(12, 32, 1, 216, 4096, 512)
    >>> program = build_gemm(Gemm(strategy="tiling"), blocking, find_machine("znver5"), "g")
    >>> [buffer.name for buffer in program.buffers]
    ['a', 'b', 'c']
    """
    types, weights = problem.types, problem.weights
    nest = gemm_nest(problem, blocking, machine)
    body, scratch = lay_gemm(nest, problem.strategy, machine, only)
    one = nest.instruction
    stored = (
        one.a if "a" in problem.packed else types.a,
        weights.elements.storage if weights else one.b if "b" in problem.packed else types.b,
        types.c.real,
    )
    named = dict(zip("abc", stored, strict=True))
    named |= dict.fromkeys(weights.vectors if weights else (), F32)
    named |= {operand.name: operand.dtype.real for operand in problem.step_operands}
    arguments = tuple(Buffer(name, dtype, Space.ARGUMENT) for name, dtype in named.items())
    return Program(
        name=name,
        sizes=sizes_named(problem),
        scalars=SCALARS,
        buffers=(*arguments, *scratch),
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
            case TileMatmul(carry=carry):
                found |= {statement.a.buffer, statement.b.buffer, statement.c.buffer}
                found |= {carry.sums.buffer} if carry else set()
            case TileEpilogue(c, sums):
                found |= {c.buffer, sums.buffer}
            case Let():
                pass
    return frozenset(found)
