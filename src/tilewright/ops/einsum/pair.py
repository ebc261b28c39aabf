"""Contractions of two arrays: the problem, and its plan, the strategy that costs least."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tilewright.calls.operands import Array
from tilewright.ops.einsum.labels import Axes, Roles, count, neighbours
from tilewright.ops.einsum.matmul_pair import MatmulPair, MatrixView, ResultView
from tilewright.ops.einsum.strategies import MOST_STACKS, PairCosts, PairMethod, PairStrategy
from tilewright.ops.einsum.table_pair import TablePair
from tilewright.ops.sum_of_products.call import ProductsCall, plan_products
from tilewright.spec.axes import row_major

#: Plans kept; one takes about 50 us to make.
_PLANS = 2048

#: Elements of a matrix beyond which its product with a vector is left to `matmul`, which reads several rows
#: at once and so waits less for memory: those of a second cache.
_LONG_READS = 1 << 18


class PairProblem(NamedTuple):
    """The contraction of two arrays: all that its plan depends on.

    Attributes
    ----------
    labels : of both operands and of the result; a character for each axis.
    shapes, strides : of both operands, strides in bytes.
    dtype : of the first operand.
    target : the strides of the array that receives the result; None: it may have any layout.
    uniform : whether operands and result have the one type and are aligned, as kernels by tables and by
        elements need them; others are left to `matmul`.
    """

    labels: tuple[str, str, str]
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    strides: tuple[tuple[int, ...], tuple[int, ...]]
    dtype: np.dtype[Any]
    target: tuple[int, ...] | None = None
    uniform: bool = True

    @classmethod
    def of(
        cls,
        labels: tuple[str, str, str],
        a: Array,
        b: Array,
        out: Array | None = None,
        dtype: np.dtype[Any] | None = None,
    ) -> PairProblem:
        """That of arrays; `dtype` is as in `contract`."""
        kind = a.dtype
        uniform = kind == b.dtype and a.flags.aligned and b.flags.aligned
        if dtype is not None:  # NumPy says that float64 == None
            uniform = uniform and kind == dtype
        target = None
        if out is not None:
            target, uniform = out.strides, uniform and kind == out.dtype and out.flags.aligned
        return cls(labels, (a.shape, b.shape), (a.strides, b.strides), kind, target, uniform)

    @property
    def sizes(self) -> dict[str, int]:
        """The length of each label, in the order in which they occur."""
        return {
            label: size
            for labels, shape in zip(self.labels, self.shapes, strict=False)
            for label, size in zip(labels, shape, strict=True)
        }

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        sizes = self.sizes
        return tuple(sizes[label] for label in self.labels[2])

    @property
    def axes(self) -> tuple[Axes, Axes, Axes | None]:
        """Lengths and strides of the labels of both operands and of the result, if they are known."""
        a, b = (Axes.of(*given) for given in zip(self.labels[:2], self.shapes, self.strides, strict=True))
        return a, b, None if self.target is None else Axes.of(self.labels[2], self.shape, self.target)

    @property
    def roles(self) -> Roles:
        """The roles of its labels."""
        return Roles.of(*self.labels)

    @property
    def costs(self) -> PairCosts:
        """The cost model: without tables where they cannot locate all elements."""
        found = PairCosts.of(self.dtype)
        steps = (step for strides in (*self.strides, self.target or ()) for step in strides)
        whole = self.uniform and not any(step % self.dtype.itemsize for step in steps)
        return found if whole else found._replace(by_tables=False)

    def products(self) -> ProductsCall | None:
        """The call of a kernel of elements; None where none suits. It writes contiguous results."""
        if not self.uniform:
            return None
        if self.target is not None:
            wanted = row_major(self.shape, self.dtype.itemsize)
            given = zip(self.shape, self.target, wanted, strict=True)
            if any(size > 1 and step != contiguous for size, step, contiguous in given):
                return None
        return plan_products(self.labels[:2], self.labels[2], self.dtype, self.shapes, self.strides)


PairPlan: TypeAlias = MatmulPair | TablePair | ProductsCall


@lru_cache(maxsize=_PLANS)
def plan_pair(problem: PairProblem) -> PairPlan:
    """How two arrays are contracted.

    Axes of one role become one where all their neighbours are evenly apart; others are loops around the
    product, or an operand is copied, or tables say where elements stand: whatever costs least
    (`strategies.py`). Without a sum, or where one operand has no axis of its own, elements are multiplied one
    by one if a kernel does that; else `matmul` or NumPy does.

    Before: "aib,bja->ij" of C-contiguous arrays. After: A (i, a, b) as a matrix of copies, or B (j, a, b).
    """
    roles, sizes = problem.roles, problem.sizes
    if not roles.summed:
        call = problem.products()
        return _by_elements(problem.labels, sizes) if call is None else call
    costs, axes = problem.costs, problem.axes
    strategy, two_vectors = costs.cheapest(roles, *axes), int(costs.rate)
    if strategy.method is PairMethod.TABLES:
        return TablePair(problem.labels, tuple(sizes.values()), problem.shape)
    if not (roles.rows and roles.columns):
        call = problem.products()
        if call is not None and not _is_read_by_rows(roles, strategy, sizes, call, two_vectors):
            return call
    return _matmul_pair(problem.labels, roles, strategy, axes, two_vectors)


def _is_read_by_rows(
    roles: Roles, strategy: PairStrategy, sizes: Mapping[str, int], call: ProductsCall, two_vectors: int
) -> bool:
    """Whether `matmul` reads more adjacent elements of a matrix beside a vector than a kernel of elements."""
    own = strategy.rows + strategy.columns
    matrix = "a" if roles.rows else "b"
    if not own or matrix in strategy.copied or prod(sizes.values()) <= _LONG_READS:
        return False
    return not roles.batch or call.run < 2 * min(two_vectors, count(own, sizes))


def _matmul_pair(
    labels: tuple[str, str, str],
    roles: Roles,
    strategy: PairStrategy,
    operands: tuple[Axes, Axes, Axes | None],
    two_vectors: int,
) -> MatmulPair:
    """The views of a way without tables; of elements, two vectors are what a register tile has as columns."""
    labels_a, labels_b, labels_out = labels
    a, b, c = operands
    sizes = {**a.sizes, **b.sizes}
    # A copied operand has its axes in the required order.
    left, right = None if "a" in strategy.copied else a, None if "b" in strategy.copied else b
    groups = neighbours(roles.batch, (left, right, c))
    if strategy.loops:
        groups = (
            *groups,
            *neighbours("".join(label for label in strategy.loops if label in labels_a), (left, c)),
            *neighbours("".join(label for label in strategy.loops if label in labels_b), (right, c)),
        )
    nearest = labels_out[-1:] if c is None else c.outermost_first(labels_out)[-1:]
    # The transposed product where that makes the last axis of the result contiguous; of a matrix and a
    # vector, the matrix first: its rows are then read several at a time.
    transposed = bool(nearest and roles.columns) and (
        nearest in strategy.rows or not (strategy.rows or groups)
    )
    if c is None:
        # A result in any order: few rows and many columns, where these are adjacent.
        narrow_rows = count(strategy.rows, sizes) < two_vectors
        narrow_columns = count(strategy.columns, sizes) < two_vectors
        if narrow_columns and not narrow_rows and left is not None and left.nearest in strategy.rows:
            transposed = bool(roles.columns)
        elif narrow_rows and not narrow_columns and right is not None and right.nearest in strategy.columns:
            transposed = transposed and not strategy.rows
    stacks = _lengths(groups[:-1], sizes)
    if prod(stacks) > MOST_STACKS:
        stacks = ()
    pattern = _pattern(labels, groups, strategy[2:6], transposed, bool(stacks))
    return MatmulPair(
        pattern.a.view(sizes),
        pattern.b.view(sizes),
        pattern.result.view(sizes),
        by_elements=False,
        transposed=transposed,
        stacks=stacks,
    )


def _lengths(groups: tuple[str, ...], sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The lengths of axes, each of which is one of some labels; 1 of none."""
    return tuple([count(group, sizes) for group in groups])


class _ViewPattern(NamedTuple):
    """The view of an operand as matrices, for any sizes: see `MatrixView`.

    Attributes
    ----------
    order : the labels in the order of the matrices' axes.
    groups : those of each axis.
    """

    axes: tuple[int, ...] | None
    order: str
    groups: tuple[str, ...]
    copied: bool

    def view(self, sizes: Mapping[str, int]) -> MatrixView:
        """The view of an operand of some sizes."""
        shape = None
        if self.groups != tuple(self.order):
            shape = _lengths(self.groups, sizes)
            if shape == _lengths(tuple(self.order), sizes):
                shape = None
        return MatrixView(self.axes, shape, self.copied)


class _ResultPattern(NamedTuple):
    """The view of a result, for any sizes: see `ResultView`.

    Attributes
    ----------
    made : the labels in the order of the axes that the product makes.
    groups : those of each of its axes.
    """

    made: str
    groups: tuple[str, ...]
    axes: tuple[int, ...] | None
    back: tuple[int, ...]

    def view(self, sizes: Mapping[str, int]) -> ResultView:
        """The view of a result of some sizes."""
        product, cut = _lengths(self.groups, sizes), None
        if self.groups != tuple(self.made):
            cut = _lengths(tuple(self.made), sizes)
            if cut == product:
                cut = None
        return ResultView(product, cut, self.axes, self.back)


class _PairPattern(NamedTuple):
    """The views of a pair, for any sizes."""

    a: _ViewPattern
    b: _ViewPattern
    result: _ResultPattern


@lru_cache(maxsize=_PLANS)
def _pattern(
    labels: tuple[str, str, str],
    batch: tuple[str, ...],
    strategy: tuple[str, str, str, str],
    transposed: bool,
    stacked: bool,
) -> _PairPattern:
    """The views of operands and result as stacks of matrices.

    Parameters
    ----------
    batch : the labels of each axis of the batch; of which an operand without it has one position.
    strategy : which operands are copied; rows, columns and summed labels.
    stacked : whether a loop goes over the axes of the batch but the last.
    """
    labels_a, labels_b, labels_out = labels
    copied, rows, columns, summed = strategy
    vectors = bool(summed) and not batch  # a group without labels is no axis, as in products of 1-D arrays
    groups_a, groups_b, made = (rows, summed), (summed, columns), (rows, columns)
    if transposed:
        groups_a, groups_b, made = groups_a[::-1], groups_b[::-1], made[::-1]

    def axes(*groups: str) -> tuple[str, ...]:
        return tuple(group for group in groups if group or not vectors)

    def operand(name: str, own: str, groups: tuple[str, str]) -> _ViewPattern:
        has = [set(group) <= set(own) for group in batch]
        order = "".join((*(group for group, is_own in zip(batch, has, strict=True) if is_own), *groups))
        around = [group if is_own else "" for group, is_own in zip(batch, has, strict=True)]
        if not any(has) and not stacked:
            around = []
        moved = None if order == own else tuple(own.index(label) for label in order)
        return _ViewPattern(moved, order, (*around, *axes(*groups)), name in copied)

    whole = "".join((*batch, *made))
    moved = None if whole == labels_out else tuple(whole.index(label) for label in labels_out)
    back = tuple(labels_out.index(label) for label in whole)
    result = _ResultPattern(whole, (*batch, *axes(*made)), moved, back)
    return _PairPattern(operand("a", labels_a, groups_a), operand("b", labels_b, groups_b), result)


def _by_elements(labels: tuple[str, str, str], sizes: Mapping[str, int]) -> MatmulPair:
    """Both operands spread over the axes of the result, with axes of length 1 where they have none."""
    labels_a, labels_b, labels_out = labels

    def spread(own: str) -> MatrixView:
        order = "".join(label for label in labels_out if label in own)
        shape = tuple(sizes[label] if label in own else 1 for label in labels_out)
        return MatrixView.make(own, order, sizes, shape)

    shape = tuple(sizes[label] for label in labels_out)
    result = ResultView.make(labels_out, labels_out, sizes, shape)
    return MatmulPair(spread(labels_a), spread(labels_b), result, by_elements=True, transposed=False)


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
    plan = plan_pair(PairProblem.of((labels_a, labels_b, labels_out), a, b, out, dtype))
    match plan:
        case MatmulPair():
            found = plan.compute(a, b, out, dtype)
        case TablePair():
            found = plan.compute(a, b, out)
        case ProductsCall():
            found = plan(a, b, out=out)
    return np.asarray(found)  # products of vectors are scalars
