"""The nodes of a contraction tree as steps on arrays, in order."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import NamedTuple, TypeAlias

from tilewright.ops.einsum.tree import Leaf, Pair, Permutation, Tree, walk

#: Multiply-adds from which the order of a result is worth a thought: of fewer, a call costs more than the
#: work, and results keep the layout that products give them.
LEAST_PLACED = 1 << 17


def is_placed(loops: str, sizes: Mapping[str, int]) -> bool:
    """Whether the order of the result of loops over these labels is worth a thought.

    >>> is_placed("ijk", dict.fromkeys("ijk", 64)), is_placed("ijk", dict.fromkeys("ijk", 8))
    (True, False)
    """
    return prod([sizes[label] for label in loops]) >= LEAST_PLACED


class PairStep(NamedTuple):
    """The contraction of two arrays.

    Attributes
    ----------
    left, right : their places: operands, then what steps made, in order.
    labels : of both, and of the result.
    shape : of memory in the order of the result's labels that is written; None: it stands as the product
        makes it, and is seen in that order.
    """

    left: int
    right: int
    labels: tuple[str, str, str]
    shape: tuple[int, ...] | None = None


class PermuteStep(NamedTuple):
    """An array copied into another order of its axes.

    Attributes
    ----------
    place : of the array: operands, then what steps made, in order.
    axes : the order of its axes.
    """

    place: int
    axes: tuple[int, ...]


Steps: TypeAlias = tuple[PairStep | PermuteStep, ...]


def steps_of(
    tree: Tree, operands: int, sizes: Mapping[str, int] | None = None, *, all_placed: bool = False
) -> Steps:
    """The steps that compute a tree of so many operands.

    Parameters
    ----------
    sizes : of labels; given, results of `LEAST_PLACED` multiply-adds stand in memory in the order of the
        labels of their nodes.
    all_placed : whether smaller ones do too.

    Examples
    --------
    >>> steps_of(Pair(Leaf("ij", 0), Permutation(Leaf("kj", 1), "jk"), "ik"), 2)
    (PermuteStep(place=1, axes=(1, 0)), PairStep(left=0, right=2, labels=('ij', 'jk', 'ik'), shape=None))
    """
    steps: list[PairStep | PermuteStep] = []
    waiting: list[int] = []
    for node in walk(tree):
        match node:
            case Leaf(operand=operand):
                waiting.append(operand)
                continue
            case Permutation(child=child, labels=labels):
                axes = tuple(child.labels.index(label) for label in labels)
                steps.append(PermuteStep(waiting.pop(), axes))
            case Pair(left=left, right=right, labels=labels) as node:
                second, first = waiting.pop(), waiting.pop()
                shape = None
                if sizes is not None and (all_placed or is_placed(node.of_both, sizes)):
                    shape = tuple(sizes[label] for label in labels)
                steps.append(PairStep(first, second, (left.labels, right.labels, labels), shape))
        waiting.append(operands + len(steps) - 1)
    return tuple(steps)
