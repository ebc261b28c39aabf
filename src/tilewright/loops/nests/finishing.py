"""Elementwise work around a product as steps of its epilogue: bias, scale, residual, bounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf, isfinite

from tilewright.loops.nests.effects import Range
from tilewright.loops.nests.nest import (
    Access,
    Assign,
    CountedLoop,
    Factor,
    FinishingStep,
    InvariantScalar,
    Load,
    MatrixOperand,
    MatrixProduct,
    Number,
    ProductDimension,
    Select,
    Statement,
    Sum,
    Times,
    Value,
)
from tilewright.loops.nests.pointwise import elements_of
from tilewright.loops.nests.polynomial import Index, Polynomial
from tilewright.loops.nests.sequence import LoopStep, ProductStep, Step
from tilewright.records import dataclass
from tilewright.spec.dtype import DType
from tilewright.spec.epilogue import Activation, Along, Bias, Clamp, Residual, Scale
from tilewright.spec.functions import UnaryOp
from tilewright.spec.roles import DimensionRole


def finished(steps: Sequence[Step]) -> list[Step]:
    """Steps in which products take the loops around them that compute nothing but elements of the same C.

    Before: ``C = bias; C += A*B; C = max(C, 0)``. After: ``C = A*B, then + bias, relu``.

    An element is finished before others are summed. That is right because the loops read no other element of
    C, write nothing else, and read no memory that the product writes: a distribution checks that at run time.
    """
    found: list[Step] = []
    place = 0
    while place < len(steps):
        step = steps[place]
        place += 1
        if isinstance(step, ProductStep) and _takes_steps(step.product):
            parts: list[Step] = [step]
            product = step.product
            first = _with_initial(found[-1], product) if found and product.beta.is_one else None
            if first is not None:
                parts.insert(0, found.pop())
                product = first
            while place < len(steps):
                more = _behind(steps[place], product)
                if more is None:
                    break
                product = replace(product, finish=_joined(product.finish + more))
                parts.append(steps[place])
                place += 1
            if product.finish:
                step = ProductStep(product, _loops(parts), tuple(parts))
        found.append(step)
    return found


def _takes_steps(product: MatrixProduct) -> bool:
    """Whether one call of a kernel computes all of C: one dimension of each role, and no triangle."""
    roles = [dimension.role for dimension in product.dimensions]
    wanted = (DimensionRole.M, DimensionRole.N, DimensionRole.K)
    return sorted(map(str, roles)) == sorted(map(str, wanted)) and product.triangle is None


def _loops(parts: Sequence[Step]) -> tuple[Statement, ...]:
    assert all(isinstance(part, (LoopStep, ProductStep)) for part in parts)
    return tuple(loop for part in parts for loop in getattr(part, "loops"))  # noqa: B009


@dataclass(frozen=True)
class _Elements:
    """An assignment to each element of C.

    Attributes
    ----------
    rows, columns : the indices of its loops.
    """

    assign: Assign
    target: Access
    dtype: DType
    rows: Index
    columns: Index
    product: MatrixProduct

    def operand(self, access: Access) -> FinishingStep | None:
        """Where elements are that an assignment reads, with the step that adds them."""
        form = access.offset.linear([self.rows, self.columns])
        if form is None or access.memory == self.target.memory or access.dtype != self.dtype:
            return None
        rows, columns = form.coefficient(self.rows), form.coefficient(self.columns)
        step: Bias | Residual | None = None
        size = Polynomial.of(self.dtype.size)
        if not rows and columns == size:
            step = Bias(Along.COLUMN)
        elif rows == size and not columns:
            step = Bias(Along.ROW)
        elif rows and columns and self._lies_like_c(rows, columns):
            step = Residual()
        operand = MatrixOperand(access.memory, form.rest, access.dtype)
        return None if step is None else FinishingStep(step, operand, rows, columns)

    def _lies_like_c(self, rows: Polynomial, columns: Polynomial) -> bool:
        """Whether the axis along which elements of C are adjacent, if one is, has adjacent elements too."""
        size = Polynomial.of(self.dtype.size)
        of_c = {dimension.role: dimension.c for dimension in self.product.dimensions}
        if of_c[DimensionRole.N] == size:
            return columns == size
        return of_c[DimensionRole.M] != size or rows == size


def _elements(step: Step, product: MatrixProduct) -> _Elements | None:
    """The assignment of loops that write each element of a product's C once."""
    if not isinstance(step, LoopStep) or len(step.loops) != 1:
        return None
    ranges: list[Range] = []
    statement = step.loops[0]
    while isinstance(statement, CountedLoop) and len(statement.body) == 1:
        ranges.append((statement.index, statement.extent))
        statement = statement.body[0]
    if not isinstance(statement, Assign) or not isinstance(statement.target, Access) or len(ranges) != 2:
        return None
    target, c = statement.target, product.c
    form = target.offset.linear([index for index, _ in ranges])
    if form is None or (target.memory, form.rest, target.dtype) != (c.memory, c.offset, c.dtype):
        return None
    sides = {one.role: one for one in product.dimensions}
    found: dict[DimensionRole, Index] = {}
    for index, extent in ranges:
        places = [
            role
            for role in (DimensionRole.M, DimensionRole.N)
            if _is_along(sides[role], form.coefficient(index)) and sides[role].extent == extent
        ]
        if len(places) != 1:
            return None
        found[places[0]] = index
    if len(found) != 2 or target.dtype is None:
        return None
    rows, columns = found[DimensionRole.M], found[DimensionRole.N]
    return _Elements(statement, target, target.dtype, rows, columns, product)


def _is_along(dimension: ProductDimension, stride: Polynomial) -> bool:
    return dimension.c == stride


def _with_initial(step: Step, product: MatrixProduct) -> MatrixProduct | None:
    """A product that adds what loops put into C, or add to C, before it is added."""
    elements = _elements(step, product)
    if elements is None:
        return None
    summands = list(_summands(elements.assign.value))
    others = [one for one in summands if one != Load(elements.target)]
    own = len(summands) - len(others)
    added = [_added(one, elements) for one in others]
    if own > 1 or not added or None in added:
        return None
    finish = tuple(step for steps in added for step in steps or ())
    return replace(product, beta=Factor(own), finish=finish)


def _summands(value: Value) -> Iterator[Value]:
    """The values whose sum, in any order, is a value."""
    if isinstance(value, Sum) and value.reassociates:
        yield from _summands(value.left)
        yield from _summands(value.right)
    else:
        yield value


def _behind(step: Step, product: MatrixProduct) -> tuple[FinishingStep, ...] | None:
    """The steps that do to finished sums what loops behind a product do to its C."""
    elements = _elements(step, product)
    return None if elements is None else _steps(elements.assign.value, elements)


def _added(value: Value, elements: _Elements) -> tuple[FinishingStep, ...] | None:
    """The steps that add a value without elements of C."""
    match value:
        case Load(access=access):
            one = elements.operand(access)
            return None if one is None else (one,)
        case Sum(reassociates=True):
            left, right = _added(value.left, elements), _added(value.right, elements)
            return None if left is None or right is None else left + right
        case _:
            return None


def _steps(value: Value, elements: _Elements) -> tuple[FinishingStep, ...] | None:
    """The steps that compute a value from the element of C in it."""
    match value:
        case Load(access=access) if access == elements.target:
            return ()
        case Sum():
            inner, other = _parted(value, elements)
            before, more = _steps(inner, elements), _added(other, elements)
        case Times() if not elements.dtype.is_integer:
            inner, other = _parted(value, elements)
            before, more = _steps(inner, elements), _scaled(other, elements)
        case Select(free=True):
            inner, step = _bounded(value)
            before = None if step is None else _steps(inner, elements)
            more = None if step is None else (FinishingStep(step),)
        case _:
            return None
    return None if before is None or more is None else before + more


def _parted(value: Sum | Times, elements: _Elements) -> tuple[Value, Value]:
    """The operand of a sum or a product that contains the element of C, and the other one."""
    own = any(access == elements.target for access in elements_of(value.left))
    return (value.left, value.right) if own else (value.right, value.left)


def _scaled(value: Value, elements: _Elements) -> tuple[FinishingStep, ...] | None:
    """The step that multiplies by a value without elements of C."""
    match value:
        case Number(value=number) if not isinstance(number, complex):
            return (FinishingStep(Scale(Along.ALL), Factor(number)),)
        case InvariantScalar(dtype=dtype) if dtype == elements.dtype:
            return (FinishingStep(Scale(Along.ALL), Factor(1, (value,))),)
        case Load(access=access):
            one = elements.operand(access)
            if one is None or not isinstance(one.step, Bias):
                return None
            return (replace(one, step=Scale(one.step.along)),)
        case _:
            return None


def _bounded(value: Select) -> tuple[Value, Clamp | None]:
    """The value that a choice bounds by a number, and the step; NaN and the signs of zeros do not count."""
    above = value.relation[1:] in ("gt", "ge")
    if not above and value.relation[1:] not in ("lt", "le"):
        return value, None
    left, right = value.left, value.right
    if isinstance(left, Number):
        left, right, above = right, left, not above
    if not isinstance(right, Number) or isinstance(right.value, complex):
        return value, None
    bound = float(right.value)
    if (value.then, value.otherwise) == (left, right):
        larger = above
    elif (value.then, value.otherwise) == (right, left):
        larger = not above
    else:
        return value, None
    if not isfinite(bound):
        return value, None
    return left, Clamp(bound, inf) if larger else Clamp(-inf, bound)


def _joined(steps: tuple[FinishingStep, ...]) -> tuple[FinishingStep, ...]:
    """Steps with bounds from both sides as one, and a bound of 0 as ReLU."""
    found: list[FinishingStep] = []
    for one in steps:
        last = found[-1].step if found else None
        match last, one.step:
            case Activation(UnaryOp.RELU), Clamp(low, high) if low == -inf and high >= 0:
                found[-1] = FinishingStep(Clamp(0.0, high))
            case Clamp(low, high), Clamp(lower, higher) if high == inf and lower == -inf and low <= higher:
                found[-1] = FinishingStep(Clamp(low, higher))
            case _, Clamp(low, high) if (low, high) == (0.0, inf):
                found.append(FinishingStep(Activation("relu")))
            case _:
                found.append(one)
    return tuple(found)
