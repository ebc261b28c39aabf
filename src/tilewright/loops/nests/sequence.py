"""Records of a distributed nest: products and loops that run one after the other in its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from tilewright.loops.nests.nest import (
    Access,
    Condition,
    CountedLoop,
    Extent,
    MatrixOperand,
    MatrixProduct,
    Statement,
    Where,
)
from tilewright.loops.nests.polynomial import Index, Polynomial, Symbol
from tilewright.records import dataclass


@dataclass(frozen=True)
class ProductStep:
    """A product, and loops that compute the same where no kernel does.

    Attributes
    ----------
    parts : of a product with finishing steps, what it was made of: a product without, and loops.
    """

    product: MatrixProduct
    loops: tuple[Statement, ...]
    parts: tuple[Step, ...] = ()


@dataclass(frozen=True)
class LoopStep:
    """Loops that run as they are."""

    loops: tuple[Statement, ...]


@dataclass(frozen=True)
class StripStep:
    """Steps for one strip of an index after the other.

    Attributes
    ----------
    begin, end : symbols of the first index of a strip and of the one after its last, which the steps name.
    extent : range of the index.
    length : indices of a strip; the last strip may have fewer.
    bytes : memory that an index reads, if strips are to be so short that their memory fits a cache.
    """

    begin: Symbol
    end: Symbol
    extent: Extent
    length: int
    steps: tuple[Step, ...]
    bytes: Polynomial | None = None


Step: TypeAlias = ProductStep | LoopStep | StripStep


@dataclass(frozen=True)
class Footprint:
    """Elements that loops access: a start, and a stride for each loop.

    Attributes
    ----------
    moves : index and extent of each loop, and the stride.
    """

    operand: MatrixOperand
    moves: tuple[tuple[Index, Extent, Polynomial], ...]


@dataclass(frozen=True)
class Apart:
    """The bytes of two footprints do not overlap."""

    one: Footprint
    other: Footprint


@dataclass(frozen=True)
class Distribution:
    """A nest as steps in an order that its dependences allow.

    Attributes
    ----------
    guards, conditions : what must be checked at run time before the first step.
    """

    steps: tuple[Step, ...]
    guards: tuple[Apart, ...]
    conditions: tuple[Condition, ...]
    where: Where

    @property
    def products(self) -> tuple[MatrixProduct, ...]:
        """Every product in the steps."""
        return tuple(_products(self.steps))


def _products(steps: Sequence[Step]) -> Iterator[MatrixProduct]:
    for step in steps:
        match step:
            case ProductStep(product=product):
                yield product
            case StripStep(steps=inner):
                yield from _products(inner)
            case LoopStep():
                continue


def targets(statements: Sequence[Statement]) -> Iterator[Access]:
    """The elements that statements write."""
    for statement in statements:
        match statement:
            case CountedLoop(body=body):
                yield from targets(body)
            case _:
                target = getattr(statement, "target", None)
                if isinstance(target, Access):
                    yield target
