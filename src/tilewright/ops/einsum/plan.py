"""Plans of einsum: what becomes of operands of known shapes and strides, step by step; plans are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from tilewright.ops.einsum.collapse import Collapse, plan_collapse
from tilewright.ops.einsum.labels import Axes
from tilewright.ops.einsum.order import Path, find_path
from tilewright.ops.einsum.steps import Steps, is_placed, steps_of
from tilewright.ops.einsum.strategies import PairCosts
from tilewright.ops.einsum.subscripts import Indexing, lay_over, parse
from tilewright.ops.einsum.table_pair import TABLE_TYPES
from tilewright.ops.einsum.tree import Pair, Tree, tree_of_path, walk
from tilewright.ops.einsum.tree_layout import laid_out

#: What a plan depends on in an operand: shape, strides, and the kind of its type in NumPy's letters.
OperandKey: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], str]

#: Two operands leave nothing to choose; of more, the layouts of intermediate results are chosen.
_OPERANDS_OF_ONE_PAIR = 2

#: Bytes of the types that have kernels which follow tables.
_BYTES_BY_TABLES = {dtype.itemsize for dtype in TABLE_TYPES}

#: Plans kept: one of three operands takes about 200 us to make.
_PLANS = 1024


class EinsumPlan(NamedTuple):
    """The steps of an einsum over operands of known shapes and strides.

    Attributes
    ----------
    collapses : how each operand is reduced first; None: not at all.
    steps : contractions of pairs and permutations, in order.
    shape : of the result.
    squeezed : axes of it of length 1, which no step makes.
    """

    collapses: tuple[Collapse | None, ...]
    steps: Steps
    shape: tuple[int, ...]
    squeezed: tuple[int, ...]

    @property
    def is_view(self) -> bool:
        """Whether the result is a view of the one operand."""
        return not self.steps and self.collapses[0] is not None and self.collapses[0].is_view


@lru_cache(maxsize=_PLANS)
def kept_plan(subscripts: str, places: tuple[OperandKey, ...], optimize: Any) -> EinsumPlan:
    """The plan for these operands, from the cache; `optimize` is hashable."""
    return make_plan(subscripts, places, optimize)


def make_plan(subscripts: str, places: Sequence[OperandKey], optimize: Any) -> EinsumPlan:
    """The plan for operands of these shapes and strides.

    Raises
    ------
    What `parse`, `lay_over` and `find_path` raise.

    Examples
    --------
    >>> make_plan("ij,jk->ki", [((2, 3), (24, 8), "f"), ((3, 4), (32, 8), "f")], "auto").steps
    (PairStep(left=0, right=1, labels=('ij', 'jk', 'ki'), shape=None),)
    """
    shapes = [shape for shape, _, _ in places]
    indexing = lay_over(parse(subscripts), shapes)
    path = find_path(indexing, optimize)
    shape = indexing.shape
    if len(places) == 1:
        collapse = plan_collapse(indexing.inputs[0], shapes[0], indexing.output)
        return EinsumPlan((collapse,), (), shape, ())
    terms = kept_labels(indexing, shapes)
    collapses = collapses_of(indexing.inputs, places, terms)
    output = indexing.output
    squeezed: tuple[int, ...] = ()
    if 1 in shape:
        output = "".join(label for label, size in zip(output, shape, strict=True) if size != 1)
        squeezed = tuple(axis for axis, size in enumerate(shape) if size == 1)
    network = _network(terms, output, path)
    sizes = indexing.sizes
    if len(terms) == _OPERANDS_OF_ONE_PAIR or not any(is_placed(loops, sizes) for loops in network.loops):
        return EinsumPlan(collapses, network.steps, shape, squeezed)
    operands = place_operands(terms, sizes, places, collapses)
    tree = laid_out(network.tree, operands, costs_of(places, operands))
    return EinsumPlan(collapses, steps_of(tree, len(places), sizes), shape, squeezed)


class _Network(NamedTuple):
    """Operands that are contracted in some order: what follows from labels alone.

    Attributes
    ----------
    tree : the contractions.
    steps : the same in order, results standing as products make them.
    loops : the labels of each contraction's loops.
    """

    tree: Tree
    steps: Steps
    loops: tuple[str, ...]


@lru_cache(maxsize=_PLANS)
def _network(terms: tuple[str, ...], output: str, path: Path) -> _Network:
    """The contractions of operands with these labels, in the order of a path."""
    tree = tree_of_path(terms, output, path)
    pairs = [node.of_both for node in walk(tree) if isinstance(node, Pair)]
    return _Network(tree, steps_of(tree, len(terms)), tuple(pairs))


def collapses_of(
    inputs: Sequence[str], places: Sequence[OperandKey], terms: Sequence[str]
) -> tuple[Collapse | None, ...]:
    """How operands with labels `inputs` become those with the labels of `terms`."""
    return tuple(
        None if labels == term else plan_collapse(labels, shape, term)
        for labels, (shape, _, _), term in zip(inputs, places, terms, strict=True)
    )


def place_operands(
    terms: Sequence[str],
    sizes: Mapping[str, int],
    places: Sequence[OperandKey],
    collapses: Sequence[Collapse | None],
) -> tuple[Axes, ...]:
    """Lengths and strides of the labels of operands; reduced operands are new arrays."""
    bytes_of_sums = min((abs(step) for _, strides, _ in places for step in strides if step), default=1)
    return tuple(
        Axes.of(term, shape, strides) if collapse is None else Axes.adjacent(term, sizes, bytes_of_sums)
        for term, (shape, strides, _), collapse in zip(terms, places, collapses, strict=True)
    )


def costs_of(places: Sequence[OperandKey], operands: Sequence[Axes]) -> PairCosts:
    """The cost model for operands: elements as large as the smallest stride, tables where all are floats."""
    costs = PairCosts.of(None, operands)
    floats = all(kind == "f" for _, _, kind in places)
    return costs._replace(by_tables=floats and costs.itemsize in _BYTES_BY_TABLES)


def kept_labels(indexing: Indexing, shapes: Sequence[tuple[int, ...]]) -> tuple[str, ...]:
    """The labels of operands in pairs: none of length 1, none twice, none that one operand alone has."""
    long = indexing.inputs
    if any(1 in shape for shape in shapes):
        long = tuple(
            [
                "".join([label for label, size in zip(labels, shape, strict=True) if size != 1])
                for labels, shape in zip(long, shapes, strict=True)
            ]
        )
    return _kept(long, indexing.output)


@lru_cache(maxsize=_PLANS)
def _kept(long: tuple[str, ...], output: str) -> tuple[str, ...]:
    """The same of labels that are longer than 1."""
    owners = Counter(label for labels in long for label in set(labels))
    return tuple(
        "".join(dict.fromkeys(label for label in labels if owners[label] > 1 or label in output))
        for labels in long
    )
