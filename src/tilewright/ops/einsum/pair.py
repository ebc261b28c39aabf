"""Two arrays summed over labels they share: views of them that `matmul` multiplies where they stand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.operands import Array, broadcast_shapes, merges
from tilewright.calls.pieces import PIECE, pieces
from tilewright.calls.promotion import computing_dtype, rounds_twice, store
from tilewright.calls.recipes import Made, Placed, product_step
from tilewright.ops.einsum.element_pairs import ByProducts
from tilewright.ops.einsum.labels import Axes, Roles, count, neighbours
from tilewright.ops.einsum.pair_cost import MOST_STACKS, Price, Pricing, Way
from tilewright.ops.einsum.scattered_pairs import ByTables
from tilewright.ops.matmul.public import matmul
from tilewright.ops.sum_of_products.kernel import plan_products
from tilewright.ops.transpose.call import transpose
from tilewright.spec.problem import check_elements

#: Pairings kept; one takes about 50 us to make.
_PAIRINGS = 2048

#: Elements up to which NumPy copies in less time than it takes to call the compiled moves: 1 us.
_MOVED_BY_NUMPY = 1 << 10


#: Elements of a matrix beyond which its product with a vector is left to `matmul`, which reads several rows
#: at once and so waits less for memory: those of a second cache.
_LONG_READS = 1 << 18


class Fused(NamedTuple):
    """How an operand becomes a stack of matrices: its axes permuted, then neighbours fused.

    Attributes
    ----------
    axes : the order of its axes; None where it is theirs.
    shape : after that; None where nothing is fused.
    copied : whether axes that become one are not one where they stand.
    """

    axes: tuple[int, ...] | None
    shape: tuple[int, ...] | None
    copied: bool = False

    @classmethod
    def make(cls, labels: str, order: str, sizes: Mapping[str, int], shape: tuple[int, ...]) -> Fused:
        """The view whose axes stand in `order`, reshaped."""
        axes = tuple(labels.index(label) for label in order)
        before = tuple(sizes[label] for label in order)
        return cls(None if order == labels else axes, None if before == shape else shape)

    def of(self, array: Array) -> Array:
        """The array as seen so."""
        if self.copied:
            return _moved(array, self)
        if self.axes is not None:
            array = array.transpose(self.axes)
        return array if self.shape is None else array.reshape(self.shape)


def _moved(array: Array, view: Fused) -> Array:
    """A copy in which the axes of a view do become one: a permutation by compiled code, of few by NumPy."""
    if array.size <= _MOVED_BY_NUMPY:
        turned = array if view.axes is None else array.transpose(view.axes)
        return turned.copy() if view.shape is None else turned.reshape(view.shape)
    moved = transpose(array, range(array.ndim) if view.axes is None else view.axes)
    return moved if view.shape is None else moved.reshape(view.shape)


class Cut(NamedTuple):
    """How the result of a product becomes that of a contraction: axes cut, then permuted.

    Attributes
    ----------
    product : the shape that the product returns.
    shape : with the axes it was fused of; None where none was.
    axes : their order; None where it is the wanted one.
    back : the order in which axes of the result stand as the product makes them.
    """

    product: tuple[int, ...]
    shape: tuple[int, ...] | None
    axes: tuple[int, ...] | None
    back: tuple[int, ...]

    @classmethod
    def make(cls, made: str, wanted: str, sizes: Mapping[str, int], shape: tuple[int, ...]) -> Cut:
        """From the order of axes that is made, in this shape, to the one that is wanted."""
        cut = tuple(sizes[label] for label in made)
        axes = tuple(made.index(label) for label in wanted)
        back = tuple(wanted.index(label) for label in made)
        return cls(shape, None if cut == shape else cut, None if made == wanted else axes, back)

    def of(self, found: Array) -> Array:
        """What a product returned, as the result."""
        if self.shape is not None:
            found = found.reshape(self.shape)
        return found if self.axes is None else found.transpose(self.axes)

    def target(self, out: Array) -> Array | None:
        """The view of `out` that a product writes; None where no view is of the product's shape."""
        view = out.transpose(self.back)
        if out.size and not merges(view, self.product):
            return None
        view.shape = self.product
        return view


class Pairing(NamedTuple):
    """How two operands are multiplied.

    Attributes
    ----------
    a, b : views of them as the product takes them.
    result : what becomes of its result.
    by_elements : whether elements are multiplied, none summed: by `numpy.multiply`.
    turned : whether the product takes b first.
    stacks : the lengths of axes of a batch around its last one, if they are few products.
    """

    a: Fused
    b: Fused
    result: Cut
    by_elements: bool
    turned: bool
    stacks: tuple[int, ...] = ()

    def multiply(self, a: Array, b: Array) -> Array:
        """The result in memory of its own."""
        first, second = self.a.of(a), self.b.of(b)
        if self.by_elements:
            check_elements("einsum: a result", self.result.product)
            return self.result.of(_multiplied(first, second, None, None))
        if self.turned:
            first, second = second, first
        if self.stacks and first.dtype == second.dtype:
            check_elements("einsum: a result", self.result.product)
            return self.result.of(self._each(first, second, np.empty(self.result.product, first.dtype)))
        return self.result.of(matmul(first, second))

    def _each(self, first: Array, second: Array, found: Array) -> Array:
        """The product of stacks in several axes: machine code takes the last of these, a loop the others."""
        axes = len(self.stacks)
        if first.shape[:axes] != self.stacks:  # repeated along a loop over labels of the other
            first = np.broadcast_to(first, (*self.stacks, *first.shape[axes:]))
        if second.shape[:axes] != self.stacks:
            second = np.broadcast_to(second, (*self.stacks, *second.shape[axes:]))
        for place in np.ndindex(self.stacks):
            matmul(first[place], second[place], found[place])
        return found

    def step(self, arrays: Placed, out: Array | None, *, last: bool) -> Made | None:
        """The same for machine code; None where operands are copied, or many products are one result."""
        if self.by_elements or self.stacks or self.a.copied or self.b.copied:
            return None
        (left, a), (right, b) = arrays
        factors = [(left, a, self.a.of(a)), (right, b, self.b.of(b))]
        return product_step(factors[::-1] if self.turned else factors, self.result, out, last=last)

    def compute(self, a: Array, b: Array, out: Array | None, dtype: np.dtype[Any] | None) -> Array:
        """The result in `out`, or in memory of its own; computed in a type of its own."""
        first, second = self.a.of(a), self.b.of(b)
        if self.turned:
            first, second = second, first
        target = None if out is None else self.result.target(out)
        if (
            target is not None
            and self.stacks
            and first.dtype == second.dtype == target.dtype
            and dtype is None
        ):
            self._each(first, second, target)
            assert out is not None
            return out
        if self.by_elements:
            found = _multiplied(first, second, target, dtype)
        else:
            found = (
                matmul(first, second, target) if dtype is None else matmul(first, second, target, dtype=dtype)
            )
        if out is None:
            return self.result.of(found)
        if target is None:
            store(self.result.of(found), out)
        return out


def _multiplied(a: Array, b: Array, out: Array | None, dtype: np.dtype[Any] | None) -> Array:
    """Products of elements, rounded once to the type of the result; large ones in pieces."""
    shape = broadcast_shapes(a.shape, b.shape) if out is None else out.shape
    assert shape is not None  # labels have been checked
    if math.prod(shape) > PIECE:
        if out is None:
            out = np.empty(shape, np.result_type(a, b) if dtype is None else dtype)
        a, b = np.broadcast_to(a, shape), np.broadcast_to(b, shape)
        for part in pieces(shape, out.strides):
            _multiplied(a[part], b[part], out[part], dtype)
        return out
    if dtype is None:
        return np.multiply(a, b, out=out, order="C")
    wide = computing_dtype((a.dtype, b.dtype), dtype)
    if wide == dtype:
        return np.multiply(a, b, out=out, dtype=dtype, casting="unsafe", order="C")
    found = np.empty(shape, dtype) if out is None else out
    with np.errstate(over="ignore"):  # as in results of kernels
        if rounds_twice(wide, dtype):
            store(np.multiply(a, b, dtype=wide, casting="unsafe"), found)
        else:  # in `wide` and rounded to `dtype`, by pieces that fit NumPy's buffer
            np.multiply(a, b, out=found, dtype=wide, casting="unsafe")
    return found


@lru_cache(maxsize=_PAIRINGS)
def plan_pairing(
    labels: tuple[str, str, str],
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
    strides: tuple[tuple[int, ...], tuple[int, ...]],
    target: tuple[int, ...] | None = None,
    dtype: np.dtype[Any] | None = None,
) -> Pairing | ByTables | ByProducts:
    """How operands of these labels (those of the result last), shapes and strides are multiplied.

    Axes of one role become one where all their neighbours are evenly apart; others are loops around the
    product, or an operand is copied, or tables say where elements stand: whatever costs least
    (`pair_cost.py`).

    Parameters
    ----------
    target : the strides of the array that receives the result; None: it may stand in any order.
    dtype : of both operands and the result; None: any, of elements as large as the smallest step.

    Before: "aib,bja->ij" of C-contiguous arrays. After: A (i, a, b) as a matrix of copies, or B (j, a, b).
    """
    labels_out = labels[2]
    a, b = (Axes.of(*given) for given in zip(labels[:2], shapes, strides, strict=True))
    sizes = {**a.sizes, **b.sizes}
    roles = Roles.of(*labels)
    shape = tuple(sizes[label] for label in labels_out)
    if not roles.summed:
        return ByProducts(labels, _by_elements(labels, sizes))
    c = None if target is None else Axes.of(labels_out, shape, target)
    pricing = Pricing.of(dtype, (a, b))
    price = pricing.cheapest(roles, a, b, c)
    two_vectors = int(pricing.rate)
    if price.way is Way.TABLES:
        # Arrays that tables do not serve, such as those in another byte order, are copied where they have to.
        copying = pricing._replace(by_tables=False).cheapest(roles, a, b, c)
        pairing = _pairing(labels, roles, copying, (a, b, c), two_vectors)
        return ByTables(labels, tuple(sizes.values()), shape, pairing)
    pairing = _pairing(labels, roles, price, (a, b, c), two_vectors)
    if roles.rows and roles.columns:
        return pairing
    by_products = ByProducts(labels, pairing)
    matrix = "a" if roles.rows else "b"
    own = price.rows + price.columns
    if own and matrix not in price.moved and prod(sizes.values()) > _LONG_READS:
        if not roles.batch:
            return pairing
        # More of it is adjacent than a kernel of elements walks on.
        call = dtype and plan_products(labels[:2], labels_out, dtype, shapes, strides)
        if call and call.run < 2 * min(two_vectors, count(own, sizes)):
            return pairing
    return by_products


def _pairing(
    labels: tuple[str, str, str],
    roles: Roles,
    price: Price,
    operands: tuple[Axes, Axes, Axes | None],
    two_vectors: int,
) -> Pairing:
    """The views of a way without tables; of elements, two vectors are what a register tile has as columns."""
    labels_a, labels_b, labels_out = labels
    a, b, c = operands
    sizes = {**a.sizes, **b.sizes}
    # What is copied has its axes in the order that is asked for.
    left, right = (None if name in price.moved else own for name, own in (("a", a), ("b", b)))
    groups = (
        *neighbours(roles.batch, (left, right, c)),
        *neighbours("".join(label for label in price.loops if label in labels_a), (left, c)),
        *neighbours("".join(label for label in price.loops if label in labels_b), (right, c)),
    )
    nearest = labels_out[-1:] if c is None else c.outermost_first(labels_out)[-1:]
    # The transposed product where that makes the last axis of the result contiguous; of a matrix and a
    # vector, the matrix first: its rows are then read several at a time.
    turned = bool(nearest and roles.columns) and (nearest in price.rows or not (price.rows or groups))
    if c is None:
        # A result in any order: few rows and many columns, where these are adjacent.
        narrow_rows, narrow_columns = (count(own, sizes) < two_vectors for own in (price.rows, price.columns))
        if narrow_columns and not narrow_rows and left is not None and left.nearest in price.rows:
            turned = bool(roles.columns)
        elif narrow_rows and not narrow_columns and right is not None and right.nearest in price.columns:
            turned = turned and not price.rows
    stack = _Stack(groups, sizes, vectors=bool(roles.summed) and not groups)
    groups_a, groups_b = (price.rows, price.summed), (price.summed, price.columns)
    made = (price.rows, price.columns)
    if turned:
        groups_a, groups_b, made = groups_a[::-1], groups_b[::-1], made[::-1]
    return Pairing(
        stack.operand(labels_a, groups_a, copied="a" in price.moved),
        stack.operand(labels_b, groups_b, copied="b" in price.moved),
        Cut.make("".join((*groups, *made)), labels_out, sizes, stack.shape(*made)),
        by_elements=False,
        turned=turned,
        stacks=stack.outer(),
    )


class _Stack(NamedTuple):
    """The shapes of matrices in a batch.

    Attributes
    ----------
    batch : the labels of each axis of the batch; of which an operand without it has one position.
    sizes : those of all labels.
    vectors : whether a group without labels is no axis, as in products of 1-D arrays.
    """

    batch: tuple[str, ...]
    sizes: Mapping[str, int]
    vectors: bool

    def shape(self, *groups: str) -> tuple[int, ...]:
        """The batch, then an axis for each group."""
        own = (count(group, self.sizes) for group in groups if group or not self.vectors)
        return (*(count(group, self.sizes) for group in self.batch), *own)

    def outer(self) -> tuple[int, ...]:
        """The lengths of all axes of the batch but the last; none where they are too many for a loop."""
        lengths = tuple(count(group, self.sizes) for group in self.batch[:-1])
        return lengths if prod(lengths) <= MOST_STACKS else ()

    def operand(self, labels: str, groups: tuple[str, str], *, copied: bool) -> Fused:
        """The view of an operand as such matrices."""
        own = tuple(group for group in self.batch if set(group) <= set(labels))
        order = "".join((*own, *groups))
        lengths = self.shape(*groups)
        if not own and not self.outer():
            lengths = lengths[len(self.batch) :]
        elif len(own) < len(self.batch):
            ones = [count(group, self.sizes) if group in own else 1 for group in self.batch]
            lengths = (*ones, *lengths[len(ones) :])
        view = Fused.make(labels, order, self.sizes, lengths)
        return view._replace(copied=copied)


def _by_elements(labels: tuple[str, str, str], sizes: Mapping[str, int]) -> Pairing:
    """Both operands spread over the axes of the result, with axes of length 1 where they have none."""
    labels_a, labels_b, labels_out = labels

    def spread(own: str) -> Fused:
        order = "".join(label for label in labels_out if label in own)
        shape = tuple(sizes[label] if label in own else 1 for label in labels_out)
        return Fused.make(own, order, sizes, shape)

    shape = tuple(sizes[label] for label in labels_out)
    result = Cut.make(labels_out, labels_out, sizes, shape)
    return Pairing(spread(labels_a), spread(labels_b), result, by_elements=True, turned=False)


def contract(
    a: Array,
    b: Array,
    labels_a: str,
    labels_b: str,
    labels_out: str,
    out: Array | None = None,
    *,
    dtype: np.dtype[Any] | None = None,
) -> Array:
    """The sum over all labels that are not in the result of the products of elements.

    Parameters
    ----------
    a, b : arrays, any strides. Axes of one label are equally long.
    labels_a, labels_b : a character for each axis, none twice. One that the other operand lacks is in
        `labels_out`.
    labels_out : those of the result.
    out : receives the result: of its shape, any strides, sharing no memory with a and b.
    dtype : the type of the result and of the arithmetic, as `matmul` takes it; NumPy's promotion by default.

    Returns
    -------
    numpy.ndarray of the axes `labels_out`, or `out`
        Where the order of axes that the product makes is not that of the result, a view of it.

    Notes
    -----
    Operands are multiplied where they stand: as matrices if axes of one role can be walked with one stride,
    else by tables (decision 025) in float32 and float64; of other types, and of few elements, the smaller
    choice is copied by compiled code. Where one of them has no axis of its own, or nothing is summed,
    elements are multiplied one by one where adjacent ones make vectors; without a sum else by NumPy.

    Examples
    --------
    >>> import numpy as np
    >>> a, b = np.ones((2, 3, 4), np.float32), np.ones((4, 3, 5), np.float32)
    >>> contract(a, b, "ijk", "kjl", "li").shape
    (5, 2)
    """
    shapes, strides = (a.shape, b.shape), (a.strides, b.strides)
    target = None if out is None else out.strides
    pairing = plan_pairing((labels_a, labels_b, labels_out), shapes, strides, target, a.dtype)
    if out is None and dtype is None:
        return np.asarray(pairing.multiply(a, b))  # products of vectors are scalars
    return np.asarray(pairing.compute(a, b, out, dtype))
