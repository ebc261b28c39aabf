"""Report of a compiled contraction tree, node by node: labels, sizes, work, strategy, predicted time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from tilewright.compiler.peak import measure_peak
from tilewright.machine.host import host_machine
from tilewright.macro.cost import copy_cycles
from tilewright.ops.einsum.labels import Axes, Roles, count
from tilewright.ops.einsum.strategies import PairCosts
from tilewright.ops.einsum.tree import Leaf, Pair, Permutation, Tree, name_of, names_of, path_of_tree, walk
from tilewright.records import dataclass
from tilewright.spec.dtype import F32


@dataclass(frozen=True)
class NodeExplanation:
    """One contraction or permutation.

    Attributes
    ----------
    node : labels of what it takes and of what it makes.
    sizes : of its labels, in the order in which they occur.
    flops : 2 for each multiply-add, of complex numbers too.
    moved_bytes : of operands and result, each once.
    how : in place, in place in loops, by tables, element by element, or permutation; what is copied first.
    seconds : predicted.
    """

    node: str
    sizes: str
    flops: int
    moved_bytes: int
    how: str
    seconds: float


@dataclass(frozen=True)
class TreeExplanation:
    """How a compiled einsum runs.

    Attributes
    ----------
    subject : what was compiled.
    path : the order in which operands meet, as opt_einsum writes it.
    nodes : contractions and permutations in the order in which they run.
    """

    subject: str
    path: tuple[tuple[int, ...], ...]
    nodes: tuple[NodeExplanation, ...]

    @property
    def flops(self) -> int:
        """Of all nodes."""
        return sum(node.flops for node in self.nodes)

    @property
    def seconds(self) -> float:
        """Predicted, of all nodes."""
        return sum(node.seconds for node in self.nodes)

    def __str__(self) -> str:
        titles = ("node", "sizes", "Mflop", "MB", "predicted us", "how")
        rows = [
            (
                node.node,
                node.sizes,
                f"{node.flops / 1e6:,.3f}",
                f"{node.moved_bytes / 1e6:,.3f}",
                f"{node.seconds * 1e6:,.1f}",
                node.how,
            )
            for node in self.nodes
        ]
        widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
        lines = [
            "  ".join(
                cell.rjust(width) if 2 <= place <= 4 else cell.ljust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in (titles, *rows)
        ]
        total = f"{self.flops / 1e6:,.3f} Mflop, {self.seconds * 1e6:,.1f} us predicted"
        return "\n".join([self.subject, f"path {list(self.path)}", *lines, total])

    __repr__ = __str__


@lru_cache(maxsize=1)
def cycle_seconds() -> float:
    """The time of one cycle: that of the multiply-adds that the row says a cycle has."""
    machine = host_machine()
    tile = machine.isa.tile(F32)
    rate = tile.products * machine.isa.rate(tile)
    return 2 * rate / (measure_peak(F32, machine) * 1e9)


def node_text(node: Pair | Permutation) -> str:
    """A node in terms of labels: its operands, and its result.

    >>> node_text(Pair(Leaf("ij", 0), Leaf("jk", 1), "ik"))
    'ij,jk->ik'
    """
    children = (node.left, node.right) if isinstance(node, Pair) else (node.child,)
    return f"{','.join(names_of(child.labels) for child in children)}->{names_of(node.labels)}"


def explain_tree(
    subject: str, tree: Tree, operands: Sequence[Axes], costs: PairCosts, *, as_given: bool
) -> TreeExplanation:
    """The report of a tree.

    Parameters
    ----------
    operands : lengths and strides of each operand's labels.
    as_given : whether results are stored in the order of the labels of their nodes, the last one too.
    """
    sizes = {label: size for axes in operands for label, size in axes.sizes.items()}
    places: list[Axes] = []
    nodes = []
    for node in walk(tree):
        match node:
            case Leaf(operand=operand):
                places.append(operands[operand])
                continue
            case Permutation():
                elements = count(node.labels, sizes)
                cycles, how = copy_cycles(costs.core, elements, in_l2=True), "permutation"
                taken, flops = [places.pop()], 0
            case Pair():
                taken = [places.pop(), places.pop()][::-1]
                target = Axes.adjacent(node.labels, sizes, costs.itemsize)
                c = target if as_given or node is not tree else None
                roles = Roles.of(node.left.labels, node.right.labels, node.labels)
                strategy = costs.cheapest(roles, taken[0], taken[1], c)
                cycles, how = strategy.cycles, str(strategy)
                flops = 2 * count(node.of_both, sizes)
        made = Axes.adjacent(node.labels, sizes, costs.itemsize)
        moved = sum(axes.elements for axes in (*taken, made)) * costs.itemsize
        nodes.append(
            NodeExplanation(node_text(node), _sizes(node, sizes), flops, moved, how, cycles * cycle_seconds())
        )
        places.append(made)
    return TreeExplanation(subject, path_of_tree(tree)[1], tuple(nodes))


def _sizes(node: Pair | Permutation, sizes: Mapping[str, int]) -> str:
    labels = node.of_both if isinstance(node, Pair) else node.labels
    return " ".join(f"{name_of(label)}={sizes[label]}" for label in labels)
