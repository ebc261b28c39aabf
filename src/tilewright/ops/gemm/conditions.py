"""When a path through the loops is taken: conditions on sizes and strides.

Numbers are the limits of the cost model (`macro.cost.in_place_limits`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from tilewright.ir.expressions import AllOf, AnyOf, Compare, Constant, Name, Relation, maximum, roundup
from tilewright.macro.blocking import SUMS_ROWS
from tilewright.macro.cost import InPlaceLimits
from tilewright.macro.prediction import SLICES
from tilewright.ops.gemm.product_nest import Nest, ones

#: Rows of B that are multiples of this part of a way of L1 apart fall into as many sets.
HALF, QUARTER = 2, 4

#: Up to so many rows an A whose depths are not adjacent stays in place though it could be packed once for all
#: slices of B. Times of strips over those of packing once: 44x1576x790 0.97, 64x3000x400 0.98, 96x1000x1000
#: 1.09, 200x1000x1000 1.08 (float32, Emerald Rapids).
FEW_SPREAD = 64

#: Up to so many rows a small B stays in place though its rows, and those of C, fall into two sets of L1. Of
#: the peak of a Zen 5, in place and in strips: 64x512x96 0.91 and 0.83, 100x512x64 0.83 and 0.85, 512x512x8
#: 0.42 and 0.66; with AVX2 48x512x64 0.93 and 0.86, 96x512x32 0.87 and 0.93.
ROWS_IN_TWO_SETS = 64


def a_in_place(nest: Nest, limits: InPlaceLimits, words: tuple[Compare, ...]) -> AnyOf:
    """Condition under which columns of tiles read A in place: it is small or seldom read."""
    sizes = nest.sizes
    choices: tuple[Compare, ...] = (
        Compare(Relation.LE, sizes.m * Name("kc"), Constant(limits.in_place_a)),
        Compare(Relation.LE, sizes.n, Constant(limits.few_columns)),
    )
    if nest.in_place and not nest.uniform:
        choices = _converting(nest, limits)
    held = (Compare(Relation.LE, sizes.m, Constant(SUMS_ROWS)),) if nest.carries else ()
    one = Compare(Relation.LE, sizes.n, Constant(nest.columns_step))
    kinds = (*_columns_near(nest, limits), (one,)) if ones(sizes.cs_a) else ((),)
    return AnyOf(tuple(AllOf((choice, *kind, *words, *held)) for choice in choices for kind in kinds))


def _columns_near(nest: Nest, limits: InPlaceLimits) -> tuple[tuple[Compare, ...], ...]:
    """Alternatives under which columns of tiles may read A again: adjacent depths, or L1 holds it."""
    sizes = nest.sizes
    adjacent = ones(sizes.cs_a)
    small = Compare(Relation.LE, sizes.m * Name("kc"), Constant(limits.columns_in_place))
    return (adjacent, (small,)) if adjacent else ((),)


def _converting(nest: Nest, limits: InPlaceLimits) -> tuple[Compare, ...]:
    """Sizes at which tiles may convert what they read: once for every nr columns of A, mr rows of B."""
    few_rows = Compare(Relation.LE, nest.sizes.m, Constant(limits.few_rows))
    return (few_rows, Compare(Relation.LE, nest.sizes.n, Constant(limits.few_columns // 2)))


def both_in_place(nest: Nest, limits: InPlaceLimits, words: tuple[Compare, ...]) -> AnyOf:
    """Condition under which tiles read both operands in place: B is small, as A and C are, or seldom read.

    Of few rows, B whose lanes are not adjacent is copied, one micro-panel at a time.
    """
    sizes = nest.sizes
    small = Compare(Relation.LE, sizes.n * Name("kc"), Constant(limits.in_place_b))
    spread = Compare(Relation.LT, sizes.rs_b, roundup(sizes.rs_b, limits.one_set))
    held = (Compare(Relation.LE, sizes.m, Constant(SUMS_ROWS)),) if nest.carries else ()
    always = (*words, *held)
    few_near = Compare(Relation.LE, sizes.m * maximum(sizes.n, Name("kc")), Constant(limits.in_place_a))
    near = few_near
    if limits.late_near:
        near = Compare(Relation.LE, sizes.m * (sizes.n + Name("kc")), Constant(limits.late_near))
    lone = Compare(Relation.LE, sizes.n, Constant(limits.lone_columns))
    if nest.uniform:
        small_b = (small, _rows_of_b(nest, limits, Relation.LT), *ones(sizes.cs_b))
        few = Compare(Relation.LE, sizes.m, Constant(ROWS_IN_TWO_SETS))
        small_b_in_two_sets = (small, spread, few, *ones(sizes.cs_b))
        # Lines of few sets evict each other before the next rows meet them.
        kinds = _columns_near(nest, limits)
        seldom = tuple(_few_in_place(nest, limits))
        fetched = tuple(_fetched_b(nest, limits))
        places = (small_b, small_b_in_two_sets, *(place for place, _ in fetched))
        beside = (near, few_near, *(few_near if rows_are_few else near for _, rows_are_few in fetched))
        choices = (
            *seldom,
            *(
                (*place, limit, *kind)
                for (place, limit), kind in product(zip(places, beside, strict=True), kinds)
            ),
            *((*place, *kind) for place, kind in product(_copied_b(nest, limits, spread), kinds)),
            *((*place, lone) for place in places if limits.lone_columns),
            *((*_in_l1(nest, limits), *kind) for kind in kinds),
            *((*place, *kind) for place, kind in product(_fetched_rows(nest, limits), kinds)),
        )
        return AnyOf(tuple(AllOf((*choice, *always)) for choice in choices))
    return AnyOf(tuple(AllOf((choice, *always)) for choice in _converting(nest, limits)))


def _rows_of_b(nest: Nest, limits: InPlaceLimits, relation: Relation, part: int = HALF) -> Compare:
    """Whether rows of B are multiples of a part of a way of L1 apart (EQ), or spread over more sets (LT)."""
    rows = nest.sizes.rs_b
    return Compare(relation, rows, roundup(rows, max(1, limits.one_set // part)))


def _fetched_rows(nest: Nest, limits: InPlaceLimits) -> Iterator[tuple[Compare, ...]]:
    """Conditions of a B of any size, whose rows tiles prefetch, while L2 keeps a slice of A."""
    sizes = nest.sizes
    held = Compare(Relation.LE, sizes.m * Name("kc"), Constant(limits.in_place_a))
    for most, part in ((limits.fetched_rows, QUARTER), (limits.crowded_rows, HALF)):
        if most:
            rows = Compare(Relation.LE, sizes.m, Constant(most))
            yield rows, held, _rows_of_b(nest, limits, Relation.LT, part), *_deep(limits), *ones(sizes.cs_b)


def _fetched_b(nest: Nest, limits: InPlaceLimits) -> Iterator[tuple[tuple[Compare, ...], bool]]:
    """Conditions of a larger slice of B, whose rows tiles prefetch, and whether they are of few rows."""
    sizes = nest.sizes
    spread = _rows_of_b(nest, limits, Relation.LT, QUARTER)
    rows = Compare(Relation.LE, sizes.m, Constant(limits.late_rows))
    few = (rows, *_deep(limits))
    rows_of_slice: tuple[Compare, ...] = ()
    if limits.slice_rows:
        rows_of_slice = (Compare(Relation.LE, sizes.m, Constant(limits.slice_rows)),)
    # The same slice once, for any rows.
    slices = {limits.late_slice: few, limits.fetched_slice: rows_of_slice}
    for most, others in slices.items():
        if most:
            held = Compare(Relation.LE, sizes.n * Name("kc"), Constant(most))
            yield (held, spread, *ones(sizes.cs_b), *others), bool(others)


def _deep(limits: InPlaceLimits) -> tuple[Compare, ...]:
    """Conditions of so many depths that most rows of B in a column of tiles are prefetched."""
    return (Compare(Relation.LT, Constant(limits.late_depth), Name("kc")),) if limits.late_depth else ()


def _copied_b(nest: Nest, limits: InPlaceLimits, spread: Compare) -> Iterator[tuple[Compare, ...]]:
    """Conditions of a B whose lanes are not adjacent: a slice of A is so small that L2 keeps it."""
    sizes = nest.sizes
    if limits.copied_a and sizes.cs_b != Constant(1):
        held = Compare(Relation.LE, sizes.m * Name("kc"), Constant(limits.copied_a))
        yield held, spread, Compare(Relation.LT, Constant(1), sizes.cs_b)


def _in_l1(nest: Nest, limits: InPlaceLimits) -> tuple[Compare, ...]:
    """Conditions of a B in L1, which every tile of all rows finds there."""
    sizes = nest.sizes
    held = Compare(Relation.LE, sizes.n * Name("kc"), Constant(limits.b_in_l1))
    near = Compare(Relation.LE, sizes.m * (sizes.n + Name("kc")), Constant(limits.near))
    return held, near, _rows_of_b(nest, limits, Relation.LT, QUARTER), *ones(sizes.cs_b)


def _few_in_place(nest: Nest, limits: InPlaceLimits) -> Iterator[tuple[Compare, ...]]:
    """Alternatives under which B is in place because few rows read it."""
    sizes = nest.sizes
    few = Compare(Relation.LE, sizes.m, Constant(limits.few_rows))
    if limits.few_in_one_set:
        yield few, Compare(Relation.LT, sizes.rs_b, roundup(sizes.rs_b, limits.few_in_one_set))
        return
    crowded = Constant(min(limits.few_rows, limits.crowded_rows))
    yield Compare(Relation.LE, sizes.m, crowded), *_deep(limits), *ones(sizes.cs_b)
    if limits.late_depth:
        yield Compare(Relation.LE, sizes.m, Constant(limits.uncopied_rows)), *ones(sizes.cs_b)
    if sizes.cs_b != Constant(1):  # copied, one micro-panel at a time
        spread = Compare(Relation.LT, sizes.rs_b, roundup(sizes.rs_b, limits.one_set))
        yield few, spread, Compare(Relation.LT, Constant(1), sizes.cs_b)


def in_strips(nest: Nest, limits: InPlaceLimits, words: tuple[Compare, ...]) -> AnyOf:
    """Condition under which strips of A are read in place: their lines survive in L1."""
    sizes = nest.sizes
    rows: tuple[Compare, ...] = ()
    if limits.rows_in_one_set:
        rows = (Compare(Relation.LT, sizes.rs_a, roundup(sizes.rs_a, limits.rows_in_one_set)),)
    if nest.in_place and not nest.uniform:
        rows = (*rows, Compare(Relation.LE, sizes.n, Constant(limits.few_columns // 2)))
    adjacent = ones(sizes.cs_a)
    if not adjacent:
        return AnyOf((AllOf((*rows, *words)),))
    spread, many_sets = (
        Compare(Relation.LT, sizes.cs_a, roundup(sizes.cs_a, distance))
        for distance in (limits.one_set, limits.few_sets)
    )
    kept = Compare(Relation.LE, Name("kc"), Constant(limits.depths_of_strip))
    seldom: tuple[tuple[Compare, ...], ...] = ()
    if limits.seldom_columns:
        seldom = ((spread, Compare(Relation.LE, sizes.n, Constant(limits.seldom_columns))),)
    if limits.spread_rows:
        few, some = (
            Compare(Relation.LE, sizes.m, Constant(most)) for most in (FEW_SPREAD, limits.spread_rows)
        )
        one_slice = Compare(Relation.LE, sizes.n * Name("kc"), Constant(SLICES * limits.strip_slice))
        seldom = (*seldom, (spread, few), (spread, some, one_slice))
    choices = (adjacent, (many_sets, kept), *seldom)
    return AnyOf(tuple(AllOf((*choice, *rows, *words)) for choice in choices))


def streamed_b(nest: Nest, limits: InPlaceLimits) -> Iterator[tuple[Compare, ...]]:
    """Alternatives under which a B for few rows is so far away that it is read in order."""
    m, far = nest.sizes.m, Compare(Relation.LT, Constant(limits.far_b), nest.sizes.n * nest.sizes.k)
    yield Compare(Relation.LE, m, Constant(limits.streamed_rows)), far
    most_else = max(limits.streamed_rows, limits.crowded_above)
    if most_else < limits.crowded_streamed:
        above = Compare(Relation.LT, Constant(most_else), m)
        most = Compare(Relation.LE, m, Constant(limits.crowded_streamed))
        yield above, most, far, _rows_of_b(nest, limits, Relation.EQ)
