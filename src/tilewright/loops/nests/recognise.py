"""Recogniser: finds the matrix product that a loop nest computes, in any loop order and layout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce

from tilewright.loops.nests.effects import Range, Refused, Store, Term, effects, narrower, times
from tilewright.loops.nests.nest import (
    Access,
    Condition,
    CountedLoop,
    Disjoint,
    Factor,
    Injective,
    MatrixOperand,
    MatrixProduct,
    ProductDimension,
    Refusal,
    TriangularPart,
    Where,
)
from tilewright.loops.nests.polynomial import Index, Polynomial
from tilewright.loops.nests.space import IterationSpace, dependent, fused, normalised
from tilewright.loops.nests.unrolled import rolled
from tilewright.records import dataclass
from tilewright.spec.dtype import DType
from tilewright.spec.roles import DimensionRole


def recognise(nest: CountedLoop) -> MatrixProduct | Refusal:
    """C (+)= alpha * op(A) * op(B) (+ beta*C), in any order of the loops and any layout, or why not.

    Matrices times vectors are products too, and so are SYRK and SYR2K, of which one triangle is computed.

    Examples
    --------
    >>> from tilewright.loops.nests.nest import Assign, Extent, Load, MemoryObject, Sum, Times
    >>> from tilewright.loops.nests.polynomial import Symbol
    >>> from tilewright.spec.dtype import F32
    >>> here, (i, j, k) = Where("f"), map(Index, "ijk")
    >>> def element(name, row, column):
    ...     offset = (Polynomial.of(row) * 100 + column) * 4
    ...     return Access(MemoryObject(Symbol(name), name), offset, F32, here)
    >>> added = Times(Load(element("a", i, k)), Load(element("b", k, j)), contracts=True)
    >>> c = element("c", i, j)
    >>> update = Assign(c, Sum(Load(c), added, reassociates=True), here)
    >>> nest = update
    >>> for index in (j, k, i):
    ...     nest = CountedLoop(index, Extent.of(64), (nest,), here)
    >>> product = recognise(nest)
    >>> [(dimension.role.name, str(dimension.extent)) for dimension in product.dimensions]
    [('M', '64'), ('K', '64'), ('N', '64')]

    Source: Kuzma et al. 2023, §4.1.2; Carvalho et al., KernelFaRer: Replacing Native-Code Idioms with
    High-Performance Library Calls, ACM TACO 18(3), 2021, doi:10.1145/3459010.
    """
    found = contraction(nest)
    if isinstance(found, Refusal):
        return found
    roles = {dimension.role for dimension in found.dimensions}
    if DimensionRole.K not in roles:
        return Refusal(found.where, "sums nothing: no loop index is in both factors but not in the result")
    if not roles & {DimensionRole.M, DimensionRole.N}:
        return Refusal(found.where, "multiplies no matrix: every loop over the result is in both factors")
    return found


def contraction(nest: CountedLoop) -> MatrixProduct | Refusal:
    """As `recognise`, but also accepts dot, outer and elementwise products.

    >>> from tilewright.loops.nests.nest import Extent
    >>> contraction(CountedLoop(Index("i"), Extent.of(4), (), Where("f", 7))).reason
    'stores nothing'
    """
    try:
        return product_of(nest.where, effects(nest))
    except Refused as refused:
        return refused.refusal


@dataclass(frozen=True)
class _Step:
    """One store in the form C = beta*C + sum of products.

    Attributes
    ----------
    around : loops around it in which C stays the same element.
    space : the loops over the elements of C, and the offset of C.
    """

    store: Store
    beta: Factor
    products: tuple[Term, ...]
    around: tuple[Range, ...]
    space: IterationSpace


def product_of(where: Where, stores: Sequence[Store]) -> MatrixProduct:
    """The product that some stores compute together; raises `Refused`."""
    if not stores:
        raise Refused(where, "stores nothing")
    updates = [store for store in stores if any(len(term.elements) > 1 for term in store.form.terms)]
    if not updates:
        raise Refused(where, "does not sum products of two elements")
    c = updates[0].target
    for store in stores:
        if store.target.memory != c.memory:
            raise Refused(store.where, f"stores into {store.target.memory.name} and into {c.memory.name}")
        if store.target.dtype != c.dtype:
            raise Refused(store.where, f"stores elements of several types into {c.memory.name}")
    steps = [_step(store) for store in stores]
    for position, step in enumerate(steps):
        for later in steps[position + 1 :]:
            _check_order(step, later)
    beta = reduce(times, (step.beta for step in steps), Factor())
    terms = [
        (
            step,
            replace(term, factor=reduce(times, (later.beta for later in steps[position + 1 :]), term.factor)),
        )
        for position, step in enumerate(steps)
        for term in step.products
    ]
    if any(term.factor.is_zero for _, term in terms):
        raise Refused(where, f"overwrites the sum in {c.memory.name}")
    products = [_assembled(step, term, Factor(0) if beta.is_zero else beta) for step, term in terms]
    match products:
        case [only]:
            return _checked_triangle(only)
        case [one, two]:
            return _with_second(one, two)
        case _:
            raise Refused(products[2].where, f"adds {len(products)} products to {c.memory.name}")


def _step(store: Store) -> _Step:
    """A store in the form C = beta*C + products."""
    c, betas, products = store.target, [], []
    for term in store.form.terms:
        match term.elements:
            case ():
                raise Refused(
                    store.where, f"adds numbers to {c.memory.name} that are not products of elements"
                )
            case (own,) if own.access.memory == c.memory:
                if own.access.offset != c.offset or own.access.dtype != c.dtype:
                    raise Refused(
                        store.where, f"reads {c.memory.name} with different subscripts than it writes"
                    )
                if own.version != store.version or term.sums or not own.exact:
                    raise Refused(store.where, f"adds {c.memory.name} from before another store")
                betas.append(term)
            case (other,):
                raise Refused(store.where, f"adds elements of {other.access.memory.name}")
            case (_, _):
                products.append(term)
            case _:
                raise Refused(store.where, f"multiplies {len(term.elements)} elements")
    if len(betas) > 1:
        raise Refused(store.where, f"adds {c.memory.name} to itself")
    beta = betas[0].factor if betas else Factor(0)
    indices = c.offset.symbols
    space = normalised(IterationSpace(tuple(store.ranges), (c.offset,)))
    around = tuple(own for own in store.ranges if own[0] not in indices and own[1].constant != 1)
    if around and not beta.is_one:
        verb = "clears" if beta.is_zero else "scales"
        raise Refused(store.where, f"{verb} {c.memory.name} inside of the loop over {around[0][0]}")
    return _Step(store, beta, rolled(products), around, _of_c(space))


def _of_c(space: IterationSpace) -> IterationSpace:
    """The loops over the elements of C, without the other loops."""
    named = space.offsets[0].symbols
    kept = tuple(own for own in space.ranges if own[0] in named)
    ordered = space.ordered if space.ordered and set(space.ordered) <= named else None
    return fused(replace(space, ranges=kept, ordered=ordered))


def _check_order(first: _Step, second: _Step) -> None:
    """Check that the first store may finish everywhere before the second one begins."""
    name = first.store.target.memory.name
    where = second.store.where
    if _shape(first.space) != _shape(second.space):
        before = first.store.where.line
        place = "before" if before is None else f"in line {before}"
        raise Refused(where, f"stores into other elements of {name} {place}")
    if first.beta.is_one and second.beta.is_one:
        return  # sums of sums, in any order
    shared = [
        own for own, other in zip(first.store.ranges, second.store.ranges, strict=False) if own == other
    ]
    for index, _ in shared:
        one, two = (step.store.target.offset for step in (first, second))
        indices = [index]
        forms = one.linear(indices), two.linear(indices)
        if not all(form and form.coefficient(index) for form in forms) or (
            forms[0] and forms[1] and forms[0].coefficient(index) != forms[1].coefficient(index)
        ):
            raise Refused(where, f"stores into {name} twice in every iteration of the loop over {index}")


def _shape(space: IterationSpace) -> tuple[object, ...]:
    """The part of an iteration space that does not depend on the names of indices."""

    def stride(index: Index) -> str:
        found = space.strides(index)
        return "" if found is None else str(found[0])

    ordered = tuple(stride(index) for index in space.ordered or ())
    ranges = sorted((stride(index), str(extent), extent.least) for index, extent in space.ranges)
    return (*ranges, ordered, space.starts[0])


def _assembled(step: _Step, term: Term, beta: Factor) -> MatrixProduct:
    """One product as if the nest computed nothing else."""
    store, c = step.store, step.store.target
    left, right = (element.access for element in term.elements)
    for element in term.elements:
        if (element.access.memory, element.access.offset) == (c.memory, c.offset):
            raise Refused(store.where, f"reads {c.memory.name} as a factor while it stores into it")
        if not element.exact or element.dtype != term.elements[0].dtype:
            name = element.access.memory.name
            raise Refused(
                store.where, f"rounds elements of {name} from {element.access.dtype} to {element.dtype}"
            )
    around = IterationSpace((*store.ranges, *term.sums), (c.offset, left.offset, right.offset))
    space = normalised(around)
    if not space.is_linear:
        raise Refused(store.where, "has subscripts that are not affine in loop indices")
    pair = dependent(space)
    if pair is not None:
        raise Refused(
            store.where, f"runs the loop over {pair[0]} for a number of times that depends on {pair[1]}"
        )
    space = fused(space)
    dimensions = [_dimension(space, own, store.where) for own in space.ranges]
    roles = {dimension.role for dimension in dimensions}
    if DimensionRole.N in roles and DimensionRole.M not in roles:
        left, right = right, left
        space = replace(space, offsets=(space.offsets[0], space.offsets[2], space.offsets[1]))
        dimensions = [_dimension(space, own, store.where) for own in space.ranges]
    start_c, start_a, start_b = space.starts
    operands = [
        MatrixOperand(access.memory, start, access.dtype)
        for access, start in ((left, start_a), (right, start_b), (c, start_c))
    ]
    acc = term.acc if term.sums else store.form.dtype
    acc = narrower(acc, c.dtype) if step.around else acc
    _check_permission(term, acc, dimensions, c, store.where)
    _check_disjoint(operands, dimensions, store.where)
    return MatrixProduct(
        operands[0],
        operands[1],
        operands[2],
        tuple(dimensions),
        term.factor,
        beta,
        acc,
        (*space.conditions, *_conditions(operands, dimensions, c)),
        store.where,
        _side(space, dimensions, store.where),
    )


def _dimension(space: IterationSpace, own: Range, where: Where) -> ProductDimension:
    index, extent = own
    strides = space.strides(index)
    assert strides is not None
    c, a, b = strides
    role = DimensionRole.of(bool(a), bool(b), bool(c))
    if role is None:
        found = "the result" if c else "one factor" if a or b else "no subscript"
        raise Refused(where, f"has a loop over {index} whose index is in {found} only")
    return ProductDimension(role, index, extent, a, b, c)


def _check_permission(
    term: Term, acc: DType | None, dimensions: Sequence[ProductDimension], c: Access, where: Where
) -> None:
    if (acc is not None and acc.is_integer) or all(d.role is not DimensionRole.K for d in dimensions):
        return
    kind = acc or "floats"
    if not term.reassociates:
        raise Refused(where, f"sums {kind} into {c.memory.name} without permission to reassociate")
    if not term.contracts:
        raise Refused(where, f"rounds products of {kind} without permission to contract them with sums")


def _check_disjoint(
    operands: Sequence[MatrixOperand], dimensions: Sequence[ProductDimension], where: Where
) -> None:
    """Check that no factor provably aliases C at the same or a neighbouring iteration."""
    c = operands[2]
    for operand in operands[:2]:
        if operand.memory != c.memory:
            continue
        away = c.offset - operand.offset
        steps = [step for d in dimensions for step in (d.c, d.b if operand is operands[1] else d.a) if step]
        if not away or away in steps or -away in steps:
            raise Refused(where, f"reads {c.memory.name} as a factor while it stores into it")


def _conditions(
    operands: Sequence[MatrixOperand], dimensions: Sequence[ProductDimension], c: Access
) -> Iterator[Condition]:
    for name, operand in zip("ab", operands, strict=False):
        apart = operand.memory != c.memory and (operand.memory.private or c.memory.private)
        if not apart:
            yield Disjoint(name)
    if not _is_injective(dimensions, c.dtype):
        yield Injective()


def _is_injective(dimensions: Sequence[ProductDimension], dtype: DType | None) -> bool:
    """Whether the strides of C prove that no two iterations share an element.

    Each stride must exceed the extent of all smaller ones.
    """
    if dtype is None:
        return False
    reach = Polynomial.of(dtype.size)
    waiting = [dimension for dimension in dimensions if dimension.c]
    waiting.sort(key=lambda d: (d.c.constant is None, abs(d.c.constant or 0)))
    while waiting:
        found = next((d for d in waiting if _skips(d.c, reach) or _skips(-d.c, reach)), None)
        if found is None:
            return False
        waiting.remove(found)
        stride = found.c if _skips(found.c, reach) else -found.c
        last = found.extent.constant
        match found.extent.bounds:
            case _ if last is not None:
                reach = reach + stride * max(last - 1, 0)
            case (bound,) if bound.step == 1 and found.extent.least == 0:
                reach = stride * bound.span
            case _:
                return not waiting
    return True


def _skips(stride: Polynomial, reach: Polynomial) -> bool:
    """Whether a stride is a constant of at least the required distance, or a positive multiple of it."""
    if stride.constant is not None and reach.constant is not None:
        return stride.constant >= reach.constant
    if not stride.terms or not reach.terms:
        return False
    many = stride.terms[0][1] // reach.terms[0][1]
    return many > 0 and stride == reach * many


def _side(
    space: IterationSpace, dimensions: Sequence[ProductDimension], where: Where
) -> TriangularPart | None:
    """The triangle of C that the iterations cover; None for all of C."""
    if space.ordered is None:
        return None
    small, large = space.ordered
    roles = {dimension.index: dimension.role for dimension in dimensions}
    match roles[small], roles[large]:
        case DimensionRole.N, DimensionRole.M:
            return TriangularPart.LOWER
        case DimensionRole.M, DimensionRole.N:
            return TriangularPart.UPPER
        case _:
            raise Refused(where, f"runs the loop over {small} for a number of times that depends on {large}")


def _checked_triangle(product: MatrixProduct) -> MatrixProduct:
    """Check that a product covers all of C, or multiplies a matrix by its own transpose."""
    if product.triangle is not None and not _are_transposes(product, product):
        raise Refused(product.where, "computes one triangle of a product of two matrices")
    return product


def _with_second(one: MatrixProduct, two: MatrixProduct) -> MatrixProduct:
    """The sum of a product and the same product with exchanged factors: SYR2K."""
    if one.triangle is None or two.triangle is None:
        raise Refused(two.where, f"adds two products to {one.c.memory.name}")
    if one.triangle is not two.triangle:
        two = _swapped(two)
    if one.alpha != two.alpha or not _are_transposes(one, two):
        raise Refused(two.where, "computes one triangle of two products that are not each other's transposes")
    conditions = tuple(dict.fromkeys(one.conditions + two.conditions))
    return replace(one, conditions=conditions, second=(two.a, two.b))


def _swapped(product: MatrixProduct) -> MatrixProduct:
    """The transposed product, with A and B exchanged."""
    roles = {DimensionRole.M: DimensionRole.N, DimensionRole.N: DimensionRole.M}
    sides = {
        TriangularPart.LOWER: TriangularPart.UPPER,
        TriangularPart.UPPER: TriangularPart.LOWER,
        None: None,
    }
    dimensions = tuple(replace(d, role=roles.get(d.role, d.role), a=d.b, b=d.a) for d in product.dimensions)
    return replace(product, a=product.b, b=product.a, dimensions=dimensions, triangle=sides[product.triangle])


def _are_transposes(one: MatrixProduct, two: MatrixProduct) -> bool:
    """Whether two products of the same C are equal up to the order of their factors."""

    def walks(product: MatrixProduct) -> list[tuple[str, ...]]:
        """Strides of C, A and B along each dimension."""
        return sorted((d.role.name, str(d.extent), str(d.c), str(d.a), str(d.b)) for d in product.dimensions)

    def transposed_walks(product: MatrixProduct) -> list[tuple[str, ...]]:
        c_of = {role: [str(d.c) for d in product.dimensions if d.role is role] for role in DimensionRole}
        other = replace(_swapped(product), triangle=product.triangle)
        m, n = c_of[DimensionRole.M][0], c_of[DimensionRole.N][0]
        moved = {DimensionRole.M: m, DimensionRole.N: n}
        return sorted(
            (d.role.name, str(d.extent), moved.get(d.role, str(d.c)), str(d.a), str(d.b))
            for d in other.dimensions
        )

    return (one.a, one.b, walks(one)) == (two.b, two.a, transposed_walks(two))
