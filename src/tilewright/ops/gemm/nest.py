"""The nest of a product: its paths through the loops, and the scratch they use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from tilewright.ir.expressions import AllOf, AnyOf, Compare, Constant, Name, Relation, roundup
from tilewright.ir.nodes import (
    FEW_LANES,
    Buffer,
    If,
    Loop,
    Pack,
    Program,
    Space,
    Statement,
    TileEpilogue,
    TileMatmul,
)
from tilewright.machine.isa import MATRIX_MULTIPLY, SUMS_OF_A_CHAIN, Edge, Isa, TileFma
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import PACKED_ROWS, SUMS_COLUMNS, SUMS_ROWS, Blocking
from tilewright.macro.cost import STREAMED_ROWS, InPlaceLimits, in_place_limits
from tilewright.macro.prediction import SLICES, Path
from tilewright.macro.tuned import tuned_limits
from tilewright.ops.gemm.cache_blocks import (
    beside_column,
    copying,
    depth_lets,
    most_depths,
    packing,
    packing_once,
    tiling,
    tiling_in_place,
    walk_columns,
)
from tilewright.ops.gemm.conditions import a_in_place, both_in_place, in_strips, streamed_b
from tilewright.ops.gemm.narrow import most_rows, narrow, plain_elements
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.gemm.product_nest import SCALARS, Nest, NestEpilogue, decide, ones
from tilewright.ops.gemm.sizes import computed_transposed, sizes_named, sizes_of
from tilewright.ops.gemm.streaming import (
    dots,
    few_columns,
    few_rows,
    most_few,
    streaming,
    sums_buffer,
)
from tilewright.ops.gemm.wide_tiles import WideTiles
from tilewright.spec.dtype import F32
from tilewright.spec.problem import Strategy

#: Up to so many rows a B of more than so many times L2 is copied while the first ones are multiplied. Times
#: before over times then: 13x4000x1000 1.4, 16x4096x1024 1.6, 24x4000x1000 1.3 to 1.5, 48x4000x1000 1.1,
#: 64x2000x2000 1.1, 96x2000x2000 1.0; of twice L2, 16x1000x1000 1.0, 24x2000x500 0.9. From L3, 13x4000x1000
#: takes as long, 16x4000x1000 1.1 (Emerald Rapids).
COPIED_ROWS = 64
COPIED_L2 = 2

#: Vectors of lines from which on few rows transpose them in registers.
LINES_OF_ROWS = 2

#: Few columns need lanes to spare, more lines and some depths: f32 of 64x4x64 has 0.24 of the peak in place
#: and 0.29 so, 37x6x90 0.31 and 0.29, 48x8x48 0.39 and 0.36, f64 of 100x4x100 0.59 and 0.56, 4000x10x64 0.66
#: and 0.71 (Zen 4).
LANES_OF_COLUMNS = 8
LINES_BY_LANES_OF_COLUMNS = 1024
DEPTH_OF_COLUMNS = 64
#: Rows and columns of small products. Few columns ask for as many rows (`LINES_BY_LANES_OF_COLUMNS`), and a
#: team for more work (`TEAM_WORK`): small products have no path but the one in place.
SMALL_SIDE = 64
#: Rows of B that are less than this part of a way of L1 apart are never crowded: paths ask for a half of it
#: and for a quarter.
CROWDED_PART = 4
#: Complex columns, each of which is two real ones, that are computed so: complex64 of 1000x1x1000 took 902 us
#: with B in panels and takes 413, 200x1x200 40 and 13 to 15 (Emerald Rapids).
COMPLEX_COLUMNS = 1
#: Complex rows for which B streams: complex64 of 3x1000x1000 takes 0.6 of its time in strips, 4x1000x1000
#: 0.7, 6 and 8 rows as long, 8x3000x100 1.15 times as long (Emerald Rapids).
COMPLEX_ROWS = 4


def _few_rows(nest: Nest, isa: Isa, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Few rows by tiles of their own, where vectors read the words of B; else the given loops."""
    sizes, weights = nest.sizes, nest.weights
    one = isa.row_tile(nest.instruction)
    if one is None or nest.parts > 1:
        return body
    elements = plain_elements(one) if weights is None else weights.elements
    words, others = replace(nest, instruction=one).words, {"c", nest.a} & nest.packed
    if elements is None or words is None or others:
        return body
    most = most_rows(isa, nest, elements)
    if not most:
        return body
    few = Compare(Relation.LE, sizes.m, Constant(most))
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
    if nest.b not in nest.packed or nest.a in nest.packed:
        return body
    if words is None:
        return _few_rows(nest, isa, body)
    near = a_in_place(nest, limits, words)
    if nest.carries:
        nest = beside_column(nest)
    nest = replace(nest, first_row=Name("ib"))
    return _few_rows(nest, isa, decide(near, walk_columns(nest, nest.column_packed()), body))


class PathChoice(NamedTuple):
    """A path through the loops, the condition under which it is taken, and its statements.

    Paths are tried in order; the last one has no condition. The statements are right where `possible` holds,
    or for all sizes and strides.
    """

    path: Path
    condition: AnyOf | None
    body: tuple[Statement, ...]
    possible: AnyOf | None = None


def paths_of(nest: Nest, limits: InPlaceLimits, machine: Machine) -> tuple[PathChoice, ...]:
    """The paths of a product of any size, in the order in which they are tried."""
    return tuple(_paths(nest, limits, machine))


def _paths(nest: Nest, limits: InPlaceLimits, machine: Machine) -> Iterator[PathChoice]:
    isa, wide = machine.isa, WideTiles.of(nest, machine)
    sizes, words, lanes = nest.sizes, nest.words, isa.lanes(nest.types.acc)
    one_row = Compare(Relation.EQ, sizes.m, Constant(1))
    if nest.a == "a" and nest.parts == 1:
        # Transposed, one column is a row of the problem, with the summation order of every row.
        one = Compare(Relation.EQ, sizes.n, Constant(1))
        condition = AnyOf((AllOf((one, *ones(sizes.cs_a, sizes.rs_b))),))
        yield PathChoice(Path.DOTS, condition, dots(nest, lanes), condition)
    if nest.parts == 1 and words is not None:
        if nest.uniform:
            yield from _few_lines(nest, limits, isa)
        some = Compare(Relation.LT, Constant(0), Name("depths"))
        adjacent = (*ones(sizes.cs_b, sizes.cs_c), some, *words)
        few = (*adjacent, Compare(Relation.LE, sizes.m, Constant(STREAMED_ROWS)))
        streamed = ((one_row,), *streamed_b(nest, limits))
        condition = AnyOf(tuple(AllOf((*adjacent, *choice)) for choice in streamed))
        possible = AnyOf((AllOf(few),))
        body = streaming(nest, nest.types.acc, lanes)
        yield PathChoice(Path.STREAMING, condition, body, possible)
    if words is not None and nest.parts > 1:
        yield from _few_complex_columns(nest, isa)
        yield from _few_complex_rows(nest, isa)
    if words is not None:
        if wide is not None:
            yield from _copying(wide, nest.tile.mr)
        if nest.in_place:
            body = _tall_tiles(nest, limits, lanes, tiling(nest))
            for choice in reversed(wide.in_place if wide else ()):
                body = decide(choice.condition, tiling_in_place(choice.nest), body)
            yield PathChoice(Path.IN_PLACE, both_in_place(nest, limits, words), body)
        body = packing(nest, limits.strip, limits.strip_slice)
        if wide is not None:
            body = wide.strips(body)
        yield PathChoice(Path.STRIPS, in_strips(nest, limits, words), body)
    yield PathChoice(Path.PACKED, None, _both_packed(wide or WideTiles(nest, limits), packing(nest)))


def _both_packed(tiles: WideTiles, others: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """A packed once for several slices of B where L2 keeps these, else other statements."""
    nest, limits = tiles.nest, tiles.limits
    if not limits.strip_slice:
        return others
    one: tuple[Compare, ...] = ()
    if nest.carries:
        one = (Compare(Relation.LE, Name("depths"), Name("kc")),)
    several = Compare(Relation.LT, Constant(SLICES * limits.strip_slice), nest.sizes.n * Name("kc"))
    body = packing_once(nest, limits.strip, limits.strip_slice)
    return decide(AnyOf((AllOf((several, *one)),)), body, others)


def _copying(tiles: WideTiles, lone: int) -> Iterator[PathChoice]:
    """The path of few rows beside a B far away, which the first tile of each column copies for the others.

    Up to `lone` rows are one tile in place.
    """
    nest, limits = tiles.nest, tiles.limits
    fetches = nest.instruction.k == 1 and nest.edge is Edge.MASK
    if not nest.uniform or not fetches or nest.steps != NestEpilogue():
        return
    sizes, mr = nest.sizes, nest.tile.mr
    possible = (Compare(Relation.LE, Constant(mr), sizes.m), *ones(sizes.cs_b, sizes.cs_c))
    worth = (
        Compare(Relation.LT, Constant(lone), sizes.m),
        Compare(Relation.LE, sizes.m, Constant(COPIED_ROWS)),
        Compare(Relation.LT, Constant(COPIED_L2 * limits.far_b), sizes.n * sizes.k),
        Compare(Relation.LE, Constant(tiles.columns), sizes.n),
    )
    condition = AnyOf((AllOf((*possible, *worth)),))
    yield PathChoice(Path.COPYING, condition, copying(nest), AnyOf((AllOf(possible),)))


def _few_lines(nest: Nest, limits: InPlaceLimits, isa: Isa) -> Iterator[PathChoice]:
    """Paths of few rows or columns, where lines of the other operand are transposed in registers."""
    sizes, lanes = nest.sizes, isa.lanes(nest.types.acc)
    most = most_few(isa)
    some = Compare(Relation.LT, Constant(0), Name("depths"))
    if sizes.cs_b != Constant(1):
        few = Compare(Relation.LE, sizes.m, Constant(most))
        several = Compare(Relation.LE, Constant(LINES_OF_ROWS * lanes), sizes.n)
        possible = (*ones(sizes.rs_b, sizes.cs_c), few, some)
        condition = AnyOf((AllOf((*possible, several)),))
        body = few_rows(nest, lanes, most)
        yield PathChoice(Path.FEW_ROWS, condition, body, AnyOf((AllOf(possible),)))
    if lanes < LANES_OF_COLUMNS or most == 1:
        return
    few = Compare(Relation.LE, sizes.n, Constant(most))
    worth = (
        Compare(Relation.LE, Constant(LINES_BY_LANES_OF_COLUMNS // lanes), sizes.m),
        Compare(Relation.LE, Constant(DEPTH_OF_COLUMNS), sizes.k),
    )
    # One vector of columns leaves no lane idle. Half of one is as fast in place on some cores where lines
    # share a set (1920x8x1024: a Zen 4; of a Zen 5 0.47 of the peak transposed and 0.35 in place).
    n, half, one = sizes.n, Constant(lanes // 2), Constant(lanes)
    less: tuple[tuple[Compare, ...], ...] = ((Compare(Relation.LT, n, one),),)
    if limits.half_in_one_set:
        spread = Compare(Relation.LT, sizes.rs_a, roundup(sizes.rs_a, limits.half_in_one_set))
        less = (
            (Compare(Relation.LT, n, half),),
            (Compare(Relation.EQ, n, half), spread),
            (Compare(Relation.LT, half, n), Compare(Relation.LT, n, one)),
        )
    more: tuple[tuple[Compare, ...], ...] = ((Compare(Relation.LT, one, n),),)
    if limits.idle_lanes:
        # Idle lanes of the last vector are so large a part of the columns; where one tile has all, larger.
        computed, least = roundup(n, lanes) * limits.idle_lanes, n * (1 + limits.idle_lanes)
        more = (
            (Compare(Relation.LT, one, n), Compare(Relation.LT, least, computed)),
            (Compare(Relation.LT, Constant(nest.columns_step), n), Compare(Relation.LE, least, computed)),
        )
    counts = (*less, *more)
    possible = (*ones(sizes.cs_a, sizes.cs_c), few, some)
    condition = AnyOf(tuple(AllOf((*possible, *worth, *count)) for count in counts))
    body = few_columns(nest, lanes, most)
    yield PathChoice(Path.FEW_COLUMNS, condition, body, AnyOf((AllOf(possible),)))


def _few_complex_columns(nest: Nest, isa: Isa) -> Iterator[PathChoice]:
    """The path of few complex columns, whose parts are as many real ones beside lines of parts of A."""
    sizes, lanes, most = nest.sizes, isa.lanes(nest.types.acc), most_few(isa)
    if not nest.types.numbers.uniform or most == 1:
        return
    few = Compare(Relation.LE, sizes.n, Constant(most // nest.parts))
    some = Compare(Relation.LT, Constant(0), Name("depths"))
    possible = (*ones(sizes.cs_a, sizes.cs_c), few, some)
    one = Compare(Relation.LE, sizes.n, Constant(COMPLEX_COLUMNS))
    condition = AnyOf((AllOf((*possible, one)),))
    yield PathChoice(Path.FEW_COLUMNS, condition, few_columns(nest, lanes, most), AnyOf((AllOf(possible),)))


def _few_complex_rows(nest: Nest, isa: Isa) -> Iterator[PathChoice]:
    """The path of few complex rows, for which B is read once, in place."""
    sizes, lanes = nest.sizes, isa.lanes(nest.types.acc)
    if not nest.types.numbers.uniform or nest.instruction.instruction == MATRIX_MULTIPLY:
        return
    some = Compare(Relation.LT, Constant(0), Name("depths"))
    adjacent = (*ones(sizes.cs_a, sizes.cs_b, sizes.cs_c), some)
    few, possible = (
        AnyOf((AllOf((*adjacent, Compare(Relation.LE, sizes.m, Constant(rows)))),))
        for rows in (COMPLEX_ROWS, STREAMED_ROWS)
    )
    yield PathChoice(Path.STREAMING, few, streaming(nest, nest.types.acc, lanes), possible)


def _tall_tiles(
    nest: Nest, limits: InPlaceLimits, lanes: int, body: tuple[Statement, ...]
) -> tuple[Statement, ...]:
    """Columns of one vector by taller tiles, where sums of others leave the unit idle, or else a given body.

    Not where rows of A share a set of L1, which has fewer ways than such a tile has rows.
    """
    if not limits.tall_rows or not nest.uniform:
        return body
    rows = limits.tall_rows
    tall = replace(nest.blocking, mr=rows, nr=lanes, mc=rows, nc=lanes)
    nest = replace(nest, blocking=tall, first_row=Name("ib"))
    sizes = nest.sizes
    narrow = Compare(Relation.LE, sizes.n, Constant(lanes))
    spread = Compare(Relation.LT, sizes.rs_a, roundup(sizes.rs_a, limits.one_set))
    condition = AllOf((narrow, spread, *ones(sizes.cs_b), *nest.whole_tile()))
    return decide(AnyOf((condition,)), walk_columns(nest, nest.column_in_place()), body)


def small_product(nest: Nest, limits: InPlaceLimits) -> AllOf | None:
    """The condition of small products, which take `Path.IN_PLACE` by one task; None if a nest has none."""
    if not nest.uniform or nest.carries or nest.edge is not Edge.MASK:
        return None
    sizes, small = nest.sizes, Constant(SMALL_SIDE)
    return AllOf(
        (
            *ones(sizes.cs_a, sizes.cs_b),
            Compare(Relation.LT, Constant(1), sizes.m),
            Compare(Relation.LT, sizes.m, small),
            Compare(Relation.LT, Constant(1), sizes.n),
            Compare(Relation.LE, sizes.n, small),
            Compare(Relation.LE, sizes.n, sizes.rs_b),
            Compare(Relation.LT, sizes.rs_b, Constant(limits.one_set // CROWDED_PART)),
            Compare(Relation.LE, sizes.k, Constant(SUMS_OF_A_CHAIN)),
        )
    )


def _small(
    nest: Nest, limits: InPlaceLimits, machine: Machine, body: tuple[Statement, ...]
) -> tuple[Statement, ...]:
    """Small products in place, without tasks, before any other question is asked; else a given body.

    The questions of all paths and the division into tasks are some 300 instructions, which take as long as a
    product of 16³.
    """
    condition = small_product(nest, limits)
    if condition is None:
        return body
    found, wide = _without_tasks(nest), WideTiles.of(nest, machine)
    for choice in reversed(wide.in_place if wide else ()):
        found = decide(choice.condition, _without_tasks(choice.nest), found)
    return decide(AnyOf((condition,)), found, body)


def _without_tasks(nest: Nest) -> tuple[Statement, ...]:
    """Column after column of tiles in place."""
    columns = Loop("j", Constant(0), nest.sizes.n, Constant(nest.columns_step), nest.column_in_place())
    return (nest.depth_loop(columns),)


def _auto(nest: Nest, limits: InPlaceLimits, machine: Machine, only: Path | None) -> tuple[Statement, ...]:
    """The first path whose condition holds, or one path whatever the sizes."""
    *others, last = paths_of(nest, limits, machine)
    if only is not None:
        return next((choice.body for choice in others if choice.path is only), last.body)
    # Dot products come first: they have a summation order of their own.
    dots = [choice for choice in others if choice.path is Path.DOTS]
    body = _chosen(others[len(dots) :], last.body)
    return _chosen(dots, _small(nest, limits, machine, body))


def _chosen(choices: list[PathChoice], body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """The first choice whose condition holds, else other statements."""
    for choice in reversed(choices):
        assert choice.condition is not None
        body = decide(choice.condition, choice.body, body)
    return body


def instruction_of(problem: Gemm, isa: Isa) -> TileFma:
    """The multiply instruction of a problem; a column-major C gives A and B each other's roles."""
    a, b, sums = problem.dtype, problem.b_dtype, problem.types.chosen
    return isa.tile(b, a, sums) if computed_transposed(problem) else isa.tile(a, b, sums)


def limits_of(nest: Nest, machine: Machine) -> InPlaceLimits:
    """The sizes at which packing starts to pay, as the model has them or as they were tuned on this host."""
    blocking, types = nest.blocking, nest.types
    limits = in_place_limits(machine, nest.instruction, blocking.mr, blocking.nr, types)
    tuned = not nest.packed and not nest.weights
    return tuned_limits(machine, types, limits, blocking.mr) if tuned else limits


def lay_gemm(
    nest: Nest, strategy: Strategy, machine: Machine, only: Path | None = None
) -> tuple[tuple[Statement, ...], tuple[Buffer, ...]]:
    """The statements of a product of any size, and the scratch that they use.

    They use the nest's operand names and the scalars alpha and beta. `only` names the one path to take.
    """
    types, blocking, isa = nest.types, nest.blocking, machine.isa
    limits = limits_of(nest, machine)
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
            body = _auto(nest, limits, machine, only)
    body = (*depth_lets(nest), *body)
    one = nest.instruction
    kc = most_depths(nest) * nest.parts
    used = _buffers_used(body)
    wide = WideTiles.of(nest, machine)
    panel = max(blocking.nr, wide.nest.blocking.nr if wide else 0)
    scratch = (
        Buffer("b_pack", one.b, Space.SHARED, kc * blocking.nc),
        Buffer("block_sums", types.acc, Space.SHARED, SUMS_ROWS * SUMS_COLUMNS),
        Buffer("a_pack", one.a, Space.THREAD, kc * blocking.mc),
        Buffer("a_block", one.a, Space.SHARED, kc * PACKED_ROWS),
        Buffer("b_panel", one.b, Space.THREAD, kc * panel),
        Buffer("few_pack", one.b, Space.SHARED, kc * -(-most_few(isa) // FEW_LANES) * FEW_LANES),
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
        steps=NestEpilogue.of(problem),
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
        scalar_dtype=types.chosen,
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
            case TileMatmul(carry=carry, copied=copied):
                found |= {statement.a.buffer, statement.b.buffer, statement.c.buffer}
                found |= {copied.buffer} if copied else set()
                found |= {carry.sums.buffer} if carry else set()
            case TileEpilogue(c, sums):
                found |= {c.buffer, sums.buffer}
    return frozenset(found)
