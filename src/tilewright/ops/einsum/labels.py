"""Labels of a pair of operands: their roles, and which axes fuse into one.

A label is one character and names an axis. It is of the batch (in both operands and in the result), a row (in
A and the result), a column (in B and the result) or summed (in both operands only).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import NamedTuple

from tilewright.spec.axes import row_major
from tilewright.spec.roles import DimensionRole


class Axes(NamedTuple):
    """The labels of one operand: length and stride in bytes of each axis."""

    sizes: Mapping[str, int]
    steps: Mapping[str, int]

    @classmethod
    def of(cls, labels: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> Axes:
        """Those of an operand whose axes have these labels, in order."""
        return cls(dict(zip(labels, shape, strict=True)), dict(zip(labels, strides, strict=True)))

    @classmethod
    def adjacent(cls, labels: str, sizes: Mapping[str, int], itemsize: int) -> Axes:
        """Those of a contiguous array with axes in the order of its labels.

        >>> Axes.adjacent("ij", {"i": 2, "j": 3}, 8).steps
        {'i': 24, 'j': 8}
        """
        shape = tuple(sizes[label] for label in labels)
        return cls.of(labels, shape, row_major(shape, itemsize))

    def fuse(self, labels: str) -> bool:
        """Whether these axes, in this order, form one axis of a single stride.

        >>> Axes.of("ij", (2, 3), (24, 8)).fuse("ij"), Axes.of("ij", (2, 3), (24, 8)).fuse("ji")
        (True, False)
        """
        if len(labels) < 2:
            return True
        long = [label for label in labels if self.sizes[label] != 1]
        steps, sizes = self.steps, self.sizes
        whole = all(steps[outer] == sizes[inner] * steps[inner] for outer, inner in pairwise(long))
        return whole or any(sizes[label] == 0 for label in labels)  # no element stands anywhere

    def outermost_first(self, labels: str) -> str:
        """Labels in descending order of strides."""
        if len(labels) < 2:
            return labels
        return "".join(sorted(labels, key=lambda label: -abs(self.steps[label])))

    @property
    def nearest(self) -> str:
        """The label of the axis with the smallest stride; one that no array has if none is longer than 1."""
        long = [label for label, size in self.sizes.items() if size > 1]
        return min(reversed(long), key=lambda label: abs(self.steps[label]), default="\0")

    @property
    def elements(self) -> int:
        """How many the operand has."""
        return prod(self.sizes.values())


class Roles(NamedTuple):
    """The labels of a pair of operands by role, each group in the order of the result."""

    batch: str
    rows: str
    columns: str
    summed: str

    @staticmethod
    @lru_cache(maxsize=1024)
    def of(labels_a: str, labels_b: str, labels_out: str) -> Roles:
        """The roles by presence in A, B and the result.

        >>> Roles.of("bij", "bjk", "kbi")
        Roles(batch='b', rows='i', columns='k', summed='j')
        """
        assert set(labels_a) ^ set(labels_b) <= set(labels_out) <= set(labels_a) | set(labels_b)
        found: dict[DimensionRole, list[str]] = {role: [] for role in DimensionRole}
        for label in dict.fromkeys(labels_out + labels_a):
            role = DimensionRole.of(label in labels_a, label in labels_b, label in labels_out)
            assert role is not None
            found[role].append(label)
        return Roles(*map("".join, found.values()))


def count(labels: str, sizes: Mapping[str, int]) -> int:
    """Elements of an array with these axes."""
    return sizes[labels] if len(labels) == 1 else prod([sizes[label] for label in labels])


def run_of(labels: str, x: Axes, c: Axes | None) -> tuple[str, str]:
    """The innermost labels that are one axis of an operand and of the result, and the others.

    >>> a = Axes.of("ijk", (2, 3, 4), (120, 40, 4))
    >>> run_of("ijk", a, None)
    ('k', 'ij')
    >>> run_of("ij", a, None), run_of("ij", a, Axes.of("ij", (2, 3), (4, 8)))
    (('ij', ''), ('i', 'j'))
    """
    if len(labels) < 2:
        return labels, ""
    sizes = x.sizes
    order = [label for label in (c or x).outermost_first(labels) if sizes[label] != 1]
    run = ""
    for label in reversed(order):
        inner = run[:1]
        if inner and any(
            axes.steps[label] != axes.steps[inner] * sizes[inner] for axes in (x, c) if axes is not None
        ):
            break
        run = label + run
    short = "".join(label for label in labels if sizes[label] == 1)
    return short + run, "".join(order[: len(order) - len(run)])


def neighbours(labels: str, operands: Iterable[Axes | None]) -> tuple[str, ...]:
    """Labels in order, grouped where they fuse in all of these operands; None: an operand of any layout.

    >>> a = Axes.of("ijk", (2, 3, 4), (120, 40, 4))
    >>> neighbours("ijk", (a, None)), neighbours("ikj", (a, None))
    (('ij', 'k'), ('i', 'k', 'j'))
    """
    if len(labels) < 2:
        return tuple(labels)
    known = [operand for operand in operands if operand is not None]
    found: list[str] = []
    for label in labels:
        if found and all(operand.fuse(found[-1] + label) for operand in known):
            found[-1] += label
        else:
            found.append(label)
    return tuple(found)
