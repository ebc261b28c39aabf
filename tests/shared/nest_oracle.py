"""The meaning of loop nests and of products, iteration by iteration, on integers: the recogniser's oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product as iterations

from tilewright.loops.nests.nest import (
    Access,
    Assign,
    Cell,
    Conversion,
    CountedLoop,
    Extent,
    Factor,
    InvariantScalar,
    Load,
    MatrixOperand,
    MatrixProduct,
    Minus,
    Number,
    ProductDimension,
    Read,
    Statement,
    Sum,
    Times,
    TriangularPart,
    Value,
)
from tilewright.loops.nests.polynomial import Polynomial, Symbol
from tilewright.spec.roles import DimensionRole


class Memory(dict[tuple[str, int], int]):
    """Elements by memory and offset; what nobody stored is a number that follows from the place."""

    def __missing__(self, place: tuple[str, int]) -> int:
        name, offset = place
        return (sum(map(ord, name)) * 31 + offset * 17 // 4) % 11 - 5


def evaluated(polynomial: Polynomial, values: Mapping[Symbol, int]) -> int:
    """The number that a polynomial is."""
    result = polynomial.substitute(values).constant
    assert result is not None, polynomial
    return result


def count_of(extent: Extent, values: Mapping[Symbol, int]) -> int:
    """How often a loop runs."""
    spans = (-(-evaluated(bound.span, values) // bound.step) for bound in extent.bounds)
    return max(extent.least, min(spans))


def run_nest(nest: CountedLoop, numbers: Mapping[str, int], memory: Memory) -> None:
    """Runs a nest on memory; numbers are the values of symbols by their names."""
    cells: dict[Cell, int] = {}

    def value(node: Value, values: Mapping[Symbol, int]) -> int:
        match node:
            case Load(access=access):
                return memory[access.memory.base.name, evaluated(access.offset, values)]
            case Read(cell=cell):
                return cells[cell]
            case Number(value=number):
                assert not isinstance(number, complex)
                return int(number)
            case InvariantScalar(symbol=symbol):
                return values[symbol]
            case Sum(left=left, right=right):
                return value(left, values) + value(right, values)
            case Times(left=left, right=right):
                return value(left, values) * value(right, values)
            case Minus(value=inner) | Conversion(value=inner):
                inside = value(inner, values)
                return -inside if isinstance(node, Minus) else inside
            case _:
                raise AssertionError(node)

    def run(statement: Statement, values: dict[Symbol, int]) -> None:
        match statement:
            case CountedLoop(index=index, extent=extent, body=body):
                for number in range(count_of(extent, values)):
                    for inner in body:
                        run(inner, {**values, index: number})
            case Assign(target=Cell() as cell, value=assigned):
                cells[cell] = value(assigned, values)
            case Assign(target=Access() as target, value=assigned):
                stored = value(assigned, values)
                memory[target.memory.base.name, evaluated(target.offset, values)] = stored
            case _:
                raise AssertionError(statement)

    run(nest, _symbols(numbers))


def run_product(product: MatrixProduct, numbers: Mapping[str, int], memory: Memory) -> None:
    """Runs a product on memory, from its record alone."""
    values = _symbols(numbers)
    counts = {dimension: count_of(dimension.extent, values) for dimension in product.dimensions}

    def place(
        operand: MatrixOperand,
        stride: Callable[[ProductDimension], Polynomial],
        at: dict[ProductDimension, int],
    ) -> tuple[str, int]:
        moved = sum(evaluated(stride(dimension), values) * number for dimension, number in at.items())
        return operand.memory.base.name, evaluated(operand.offset, values) + moved

    def factor(value: Factor) -> int:
        assert not isinstance(value.number, complex)
        result = int(value.number)
        for scalar in value.scalars:
            result *= values[scalar.symbol]
        return result

    def walk(*roles: DimensionRole) -> Iterator[dict[ProductDimension, int]]:
        chosen = [dimension for dimension in product.dimensions if dimension.role in roles]
        for at in iterations(*(range(counts[dimension]) for dimension in chosen)):
            yield dict(zip(chosen, at, strict=True))

    pairs = [(product.a, product.b), *([product.second] if product.second else [])]
    results: dict[tuple[str, int], int] = {}
    for at in walk(DimensionRole.BATCH, DimensionRole.M, DimensionRole.N):
        if product.triangle is not None:
            (row,) = (number for dimension, number in at.items() if dimension.role is DimensionRole.M)
            (column,) = (number for dimension, number in at.items() if dimension.role is DimensionRole.N)
            if row < column if product.triangle is TriangularPart.LOWER else row > column:
                continue
        total = 0
        for depth in walk(DimensionRole.K):
            every = {**at, **depth}
            for swapped, (a, b) in enumerate(pairs):
                left, right = place(a, lambda d: d.a, every), place(b, lambda d: d.b, every)
                if swapped:  # SYR2K: the rows of B and the columns of A
                    left = place(a, lambda d: _turned(product, d).b, every)
                    right = place(b, lambda d: _turned(product, d).a, every)
                total += memory[left] * memory[right]
        target = place(product.c, lambda d: d.c, at)
        old = 0 if product.beta.is_zero else factor(product.beta) * memory[target]
        assert target not in results, "two iterations share an element of C"
        results[target] = old + factor(product.alpha) * total
    memory.update(results)


def _turned(product: MatrixProduct, dimension: ProductDimension) -> ProductDimension:
    """The dimension whose strides of A and B the second product has in this one's place."""
    other = {DimensionRole.M: DimensionRole.N, DimensionRole.N: DimensionRole.M}.get(dimension.role)
    return next((d for d in product.dimensions if d.role is other), dimension)


def _symbols(numbers: Mapping[str, int]) -> dict[Symbol, int]:
    return {Symbol(name): number for name, number in numbers.items()}
