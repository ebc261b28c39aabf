"""Two products of one nest with the same matrix, by strips of rows, which the second finds in the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from tilewright.loops.nests.effects import Store
from tilewright.loops.nests.nest import CountedLoop, Extent, MatrixProduct, ProductDimension
from tilewright.loops.nests.polynomial import Polynomial, Symbol
from tilewright.loops.nests.sequence import ProductStep, Step, StripStep
from tilewright.loops.nests.strips import moved_store
from tilewright.records import dataclass
from tilewright.spec.roles import DimensionRole

#: Rows of a strip at most: more do not make a product of a strip faster.
MOST_ROWS = 64
#: Bytes of a strip: half of the smallest L2 of cores with vectors of 256 bits and more (512 KiB), so that the
#: vectors fit beside it.
STRIP_BYTES = 256 << 10

#: The product that some stores are, if they are one.
ProductOf = Callable[[Sequence[Store]], MatrixProduct | None]
#: The loops that compute stores as they are.
LoopsOf = Callable[[Sequence[Store]], tuple[CountedLoop, ...]]


@dataclass(frozen=True)
class MatrixSharing:
    """What `shared` needs beside the steps.

    Attributes
    ----------
    stores : those of each product.
    fresh : makes a symbol of an integer that steps are given, from a name.
    product_of, loops_of : of stores.
    """

    stores: Mapping[MatrixProduct, Sequence[Store]]
    fresh: Callable[[str], Symbol]
    product_of: ProductOf
    loops_of: LoopsOf


def shared(steps: Sequence[Step], sharing: MatrixSharing) -> Iterator[Step]:
    """Steps, in which two products with one matrix that follow each other are run by strips of its rows.

    Before: ``t = A*x; y += Aᵀ*t``. After: for strips s of rows, ``t[s] = A[s]*x; y += A[s]ᵀ*t[s]``.
    Elements of y are sums of one sum for each strip, in the order of rows; those of t are as before.
    """
    waiting = list(steps)
    while waiting:
        strip = _strip(waiting[0], waiting[1], sharing) if len(waiting) > 1 else None
        if strip is not None:
            yield strip
            del waiting[:2]
        else:
            yield waiting.pop(0)


def _strip(first: Step, second: Step, sharing: MatrixSharing) -> StripStep | None:
    """Two steps by strips; None if they do not share a matrix, or one needs all of the other."""
    rows = _rows(first), _rows(second)
    if rows[0] is None or rows[1] is None:
        return None
    assert isinstance(first, ProductStep)
    assert isinstance(second, ProductStep)
    products = first.product, second.product
    if not _may_alternate(products, rows[0], rows[1]) or any(one not in sharing.stores for one in products):
        return None
    extent, stride = rows[0].extent, rows[0].a
    begin, end = (sharing.fresh(f"{name}.{rows[0].index}") for name in ("begin", "end"))
    count = Extent.of(Polynomial.of(end) - begin)
    inner: list[Step] = []
    for product, row in zip(products, (rows[0], rows[1]), strict=True):
        stores = sharing.stores[product]
        ranges = [
            dict((*one.ranges, *(own for term in one.form.terms for own in term.sums))) for one in stores
        ]
        if any(one.get(row.index, extent) != extent for one in ranges):
            return None  # the dimension is several loops
        places: dict[Symbol, Polynomial] = {row.index: Polynomial.of(row.index) + begin}
        cut = [moved_store(one, places, {row.index: count}) for one in stores]
        part = sharing.product_of(cut)
        if part is None:
            return None
        inner.append(ProductStep(part, sharing.loops_of(cut)))
    return StripStep(begin, end, extent, MOST_ROWS, tuple(inner), stride)


def _rows(step: Step) -> ProductDimension | None:
    """The dimension of a matrix along its rows of adjacent elements; None if a step is no such product."""
    if not isinstance(step, ProductStep) or step.parts:
        return None
    product = step.product
    if (
        product.finish
        or product.triangle is not None
        or product.second is not None
        or product.a.dtype is None
    ):
        return None
    match sorted(product.dimensions, key=lambda one: one.role is DimensionRole.K):
        case [m, k] if (m.role, k.role) == (DimensionRole.M, DimensionRole.K):
            pass
        case _:
            return None
    for row, column in ((m, k), (k, m)):
        if column.a.constant == product.a.dtype.size and row.a.constant != product.a.dtype.size:
            return row
    return None


def _may_alternate(
    products: tuple[MatrixProduct, MatrixProduct], first: ProductDimension, second: ProductDimension
) -> bool:
    """Whether both read the same rows, one into elements of its own, the other into a sum over all rows.

    Different memory does not overlap, which is checked before any step.
    """
    if {first.role, second.role} != {DimensionRole.M, DimensionRole.K}:
        return False
    if products[0].a != products[1].a or (first.a, first.extent) != (second.a, second.extent):
        return False
    by_row, over_rows = products if first.role is DimensionRole.M else products[::-1]
    row, summed = (first, second) if first.role is DimensionRole.M else (second, first)
    if not over_rows.beta.is_one or over_rows.c.memory in (by_row.a.memory, by_row.b.memory, by_row.c.memory):
        return False
    if over_rows.b.memory != by_row.c.memory:
        return True
    same = over_rows.b == by_row.c and summed.b == row.c
    return same and by_row is products[0]
