"""Two arrays summed over labels they share: views of them that `matmul` multiplies where they stand.

A label is one character and names an axis. By where it stands it is of the batch (in both operands and in the
result), a row (in A and the result), a column (in B and the result) or summed (in both operands only).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise, product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tilewright.runtime.matmul_front import matmul
from tilewright.runtime.operands import Array
from tilewright.runtime.recipes import Made, product_recipe
from tilewright.runtime.scattered_pairs import LEAST_WORK, ByTables
from tilewright.runtime.transpose import transpose

#: Pairings kept; one takes about 50 us to make.
_PAIRINGS = 2048

#: Elements of an outer product up to which the kernel of products (k = 1) is faster than `numpy.multiply`:
#: those that stay in the second cache.
_OUTER_BY_KERNEL = 1 << 18


#: Elements up to which NumPy copies in less time than it takes to call the compiled moves: 1 us.
_MOVED_BY_NUMPY = 1 << 10


#: Stacks of products that a loop in Python gives to machine code, 1 us each; more are one call of 60 us.
_MOST_STACKS = 32


class Axes(NamedTuple):
    """What one operand's labels are: the length of each axis, and bytes from one position to the next."""

    sizes: Mapping[str, int]
    steps: Mapping[str, int]

    @classmethod
    def of(cls, labels: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> Axes:
        """Those of an operand whose axes have these labels, in order."""
        return cls(dict(zip(labels, shape, strict=True)), dict(zip(labels, strides, strict=True)))

    def fuse(self, labels: str) -> bool:
        """Whether these axes are one, walked with one stride, in this order.

        >>> Axes.of("ij", (2, 3), (24, 8)).fuse("ij"), Axes.of("ij", (2, 3), (24, 8)).fuse("ji")
        (True, False)
        """
        long = [label for label in labels if self.sizes[label] != 1]
        steps, sizes = self.steps, self.sizes
        return all(steps[outer] == sizes[inner] * steps[inner] for outer, inner in pairwise(long))

    def outermost_first(self, labels: str) -> str:
        """Labels in descending order of strides."""
        return "".join(sorted(labels, key=lambda label: -abs(self.steps[label])))

    @property
    def elements(self) -> int:
        """How many the operand has."""
        return prod(self.sizes.values())


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
        try:
            view.shape = self.product
        except AttributeError:  # NumPy's answer where the axes do not merge without a copy
            return None
        return view


class Roles(NamedTuple):
    """What each label of a pair of operands is, each group in the order of the result."""

    batch: str
    rows: str
    columns: str
    summed: str

    @classmethod
    def of(cls, labels_a: str, labels_b: str, labels_out: str) -> Roles:
        """The roles by presence in A, B and the result.

        >>> Roles.of("bij", "bjk", "kbi")
        Roles(batch='b', rows='i', columns='k', summed='j')
        """
        assert set(labels_a) ^ set(labels_b) <= set(labels_out) <= set(labels_a) | set(labels_b)
        return cls(
            "".join(label for label in labels_out if label in labels_a and label in labels_b),
            "".join(label for label in labels_out if label not in labels_b),
            "".join(label for label in labels_out if label not in labels_a),
            "".join(label for label in labels_a if label not in labels_out),
        )


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
            return self.result.of(np.multiply(first, second, order="C"))
        if self.turned:
            first, second = second, first
        if self.stacks and first.dtype == second.dtype:
            return self.result.of(self._each(first, second))
        return self.result.of(matmul(first, second))

    def _each(self, first: Array, second: Array) -> Array:
        """The product of stacks in several axes: machine code takes the last of these, a loop the others."""
        found = np.empty(self.result.product, first.dtype)
        for place in np.ndindex(self.stacks):
            matmul(first[place], second[place], found[place])
        return found

    def recipe(self, a: Array, b: Array) -> Made | None:
        """The same for machine code; None where operands are copied, or many products are one result."""
        if self.by_elements or self.stacks or self.a.copied or self.b.copied:
            return None
        seen = [(0, self.a.of(a)), (1, self.b.of(b))]
        return product_recipe((a, b), seen[::-1] if self.turned else seen, self.result)

    def compute(self, a: Array, b: Array, out: Array | None, dtype: np.dtype[Any] | None) -> Array:
        """The result in `out`, or in memory of its own; computed in a type of its own."""
        first, second = self.a.of(a), self.b.of(b)
        if self.turned:
            first, second = second, first
        target = None if out is None else self.result.target(out)
        if self.by_elements:
            found = np.multiply(first, second, out=target, dtype=dtype, casting="unsafe", order="C")
        else:
            found = (
                matmul(first, second, target) if dtype is None else matmul(first, second, target, dtype=dtype)
            )
        if out is None:
            return self.result.of(found)
        if target is None:
            np.copyto(out, self.result.of(found), casting="unsafe")
        return out


class _Order(NamedTuple):
    """One way to fuse: labels of rows, columns and sums in order, and bytes that it moves."""

    rows: str
    columns: str
    summed: str
    moves_a: bool
    moves_b: bool


def _orders(roles: Roles, a: Axes, b: Axes) -> Iterator[_Order]:
    """The ways worth a look: each group in the order of the result, and of the operands' strides."""
    rows = dict.fromkeys((roles.rows, a.outermost_first(roles.rows)))
    columns = dict.fromkeys((roles.columns, b.outermost_first(roles.columns)))
    summed = dict.fromkeys((a.outermost_first(roles.summed), b.outermost_first(roles.summed)))
    for row, column, sums in product(rows, columns, summed):
        moves_a = not (a.fuse(row) and a.fuse(sums))
        moves_b = not (b.fuse(column) and b.fuse(sums))
        yield _Order(row, column, sums, moves_a, moves_b)


@lru_cache(maxsize=_PAIRINGS)
def plan_pairing(
    labels: tuple[str, str, str],
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
    strides: tuple[tuple[int, ...], tuple[int, ...]],
) -> Pairing | ByTables:
    """How operands of these labels (those of the result last), shapes and strides are multiplied.

    Axes of one role become one where all their neighbours are evenly apart. Of the orders in which they do,
    the one is taken that copies least; an operand whose axes don't fuse in any is copied.

    Before: "aib,bja->ij" of C-contiguous arrays. After: A (i, a, b) as a matrix of copies, or B (j, a, b).
    """
    labels_a, labels_b, labels_out = labels
    a, b = (Axes.of(*given) for given in zip(labels[:2], shapes, strides, strict=True))
    sizes = {**a.sizes, **b.sizes}
    roles = Roles.of(*labels)
    if not roles.summed and not _outer_by_kernel(roles, labels_out, sizes):
        return _by_elements(labels, sizes)

    def cost(order: _Order) -> tuple[int, bool]:
        moved = a.elements * order.moves_a + b.elements * order.moves_b
        return moved, (order.rows, order.columns) != (roles.rows, roles.columns)

    order = min(_orders(roles, a, b), key=cost)
    rows, summed, columns = order.rows, order.summed, order.columns
    # The transposed product where that makes the last axis of the result contiguous.
    turned = bool(roles.rows) and labels_out[-1] in roles.rows
    stack = _Stack(_batch_axes(roles.batch, a, b), sizes, vectors=bool(roles.summed) and not roles.batch)
    groups_a, groups_b, made = (rows, summed), (summed, columns), (rows, columns)
    if turned:
        groups_a, groups_b, made = (summed, rows), (columns, summed), (columns, rows)
    pairing = Pairing(
        stack.operand(labels_a, groups_a, copied=order.moves_a),
        stack.operand(labels_b, groups_b, copied=order.moves_b),
        Cut.make(roles.batch + "".join(made), labels_out, sizes, stack.shape(*made)),
        by_elements=False,
        turned=turned,
        stacks=stack.outer(),
    )
    if not (order.moves_a or order.moves_b) or prod(sizes.values()) < LEAST_WORK:
        return pairing
    return ByTables(labels, tuple(sizes.values()), tuple(sizes[label] for label in labels_out), pairing)


def _outer_by_kernel(roles: Roles, labels_out: str, sizes: Mapping[str, int]) -> bool:
    """Whether a product without a sum is a matrix that the kernel of products makes in place."""
    small = _count(labels_out, sizes) <= _OUTER_BY_KERNEL
    whole = labels_out in (roles.rows + roles.columns, roles.columns + roles.rows)
    return small and whole and bool(roles.rows and roles.columns)


def _count(labels: str, sizes: Mapping[str, int]) -> int:
    """Elements of an array with these axes."""
    return prod(sizes[label] for label in labels)


def _batch_axes(batch: str, a: Axes, b: Axes) -> tuple[str, ...]:
    """The labels of the batch, neighbours together where both operands walk on evenly."""
    found: list[str] = []
    for label in batch:
        if found and a.fuse(found[-1] + label) and b.fuse(found[-1] + label):
            found[-1] += label
        else:
            found.append(label)
    return tuple(found)


class _Stack(NamedTuple):
    """The shapes of matrices in a batch.

    Attributes
    ----------
    batch : the labels of each axis of the batch.
    sizes : those of all labels.
    vectors : whether a group without labels is no axis, as in products of 1-D arrays.
    """

    batch: tuple[str, ...]
    sizes: Mapping[str, int]
    vectors: bool

    def shape(self, *groups: str) -> tuple[int, ...]:
        """The batch, then an axis for each group."""
        own = (_count(group, self.sizes) for group in groups if group or not self.vectors)
        return (*(_count(group, self.sizes) for group in self.batch), *own)

    def outer(self) -> tuple[int, ...]:
        """The lengths of all axes of the batch but the last; none where they are too many for a loop."""
        lengths = tuple(_count(group, self.sizes) for group in self.batch[:-1])
        return lengths if prod(lengths) <= _MOST_STACKS else ()

    def operand(self, labels: str, groups: tuple[str, str], *, copied: bool) -> Fused:
        """The view of an operand as such matrices."""
        order = "".join((*self.batch, *groups))
        view = Fused.make(labels, order, self.sizes, self.shape(*groups))
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
    choice is copied by compiled code. Without a sum, elements are multiplied by NumPy.

    Examples
    --------
    >>> import numpy as np
    >>> a, b = np.ones((2, 3, 4), np.float32), np.ones((4, 3, 5), np.float32)
    >>> contract(a, b, "ijk", "kjl", "li").shape
    (5, 2)
    """
    shapes, strides = (a.shape, b.shape), (a.strides, b.strides)
    pairing = plan_pairing((labels_a, labels_b, labels_out), shapes, strides)
    if out is None and dtype is None:
        return pairing.multiply(a, b)
    return pairing.compute(a, b, out, dtype)
