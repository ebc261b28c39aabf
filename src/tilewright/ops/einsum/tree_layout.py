"""The layout of every intermediate result of a contraction tree: the cheapest over the whole tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from tilewright.ops.einsum.labels import Axes, Roles
from tilewright.ops.einsum.steps import is_placed
from tilewright.ops.einsum.strategies import PairCosts, PairStrategy
from tilewright.ops.einsum.tree import Leaf, Pair, Permutation, Tree, rebuilt, walk

#: Orders of both operands that a pair looks at, those that cost least to make: beside one that stands, and
#: where both may.
_MOST_ORDERS, _MOST_OF_EACH = 8, 4


class _Choice(NamedTuple):
    """One order of a result: its cycles with everything below, and the orders of what it is made of."""

    cycles: float
    axes: Axes
    children: tuple[str, ...] = ()


def without_permutations(tree: Tree) -> Tree:
    """The same contractions: a permuted result is computed in that order, an operand used in place.

    Before: ``[[0,1],[1,2]->[0,2]]->[2,0]``. After: ``[0,1],[1,2]->[2,0]``. Only an operand that is the whole
    tree stays a permutation.
    """

    def plain(node: Tree) -> Tree:
        match node:
            case Permutation(child=Pair() as child, labels=labels):
                return replace(child, labels=labels)
            case Permutation(child=child) if node is not tree:
                return child
            case _:
                return node

    # The root is another object once what is below it was rebuilt, so it is treated by itself.
    if isinstance(tree, Permutation):
        child = rebuilt(tree.child, plain)
        while isinstance(child, Permutation):
            child = child.child
        return (
            replace(child, labels=tree.labels) if isinstance(child, Pair) else Permutation(child, tree.labels)
        )
    return rebuilt(tree, plain)


def laid_out(tree: Tree, operands: Sequence[Axes], costs: PairCosts) -> Tree:
    """The tree with the orders of its results chosen, and operands moved first where that pays.

    Each result may stand as its product makes it (rows, then columns, or the other way round), or as its
    consumer wants it (what is summed next to each other, at either end), or so that both come close. Costs
    are those of `PairCosts`; the cheapest choice for the whole tree is found from the operands upwards. What
    meets what stays as it is.

    Parameters
    ----------
    operands : lengths and strides of each operand's labels.

    Before: ``[b,f,j,n],[[m,n,e,f],[a,e,i,m]->[n,f,a,i]]->[a,b,i,j]``. After: the inner result is
    ``[a,i,f,n]``: rows, then columns, and what is summed next to each other.
    """
    tree = without_permutations(tree)
    if not isinstance(tree, Pair):
        return tree
    sizes = {label: size for axes in operands for label, size in axes.sizes.items()}
    search = _Search(tree, operands, sizes, costs)
    return search.tree()


class _Search:
    """The choices of one tree, nodes by their number in the order of `walk`."""

    def __init__(
        self, tree: Pair, operands: Sequence[Axes], sizes: Mapping[str, int], costs: PairCosts
    ) -> None:
        self.operands, self.sizes, self.costs = operands, sizes, costs
        self.nodes = list(walk(tree))
        self.below = _children(self.nodes)
        self.wishes = self._wishes()
        self.choices: list[dict[str, _Choice]] = []
        for number, node in enumerate(self.nodes):
            self.choices.append(self._choices(number, node))

    def _wishes(self) -> dict[int, tuple[str, Pair]]:
        """For each result but the last, the order that its consumer would like, and the consumer."""
        found: dict[int, tuple[str, Pair]] = {}
        wanted = {len(self.nodes) - 1: self.nodes[-1].labels}
        for number in range(len(self.nodes) - 1, -1, -1):
            node = self.nodes[number]
            if not isinstance(node, Pair):
                continue
            left, right = node.left, node.right
            summed = [label for label in left.labels if label in right.labels and label not in node.labels]
            leaf = next((one for one in (left, right) if isinstance(one, Leaf)), None)
            sums = (
                "".join(summed)
                if leaf is None
                else self.operands[leaf.operand].outermost_first("".join(summed))
            )
            for child in self.below[number]:
                own = self.nodes[child].labels
                wanted[child] = "".join(label for label in wanted[number] if label in own) + sums
                found[child] = wanted[child], node
        return found

    def _choices(self, number: int, node: Tree) -> dict[str, _Choice]:
        """The orders of one node that are worth a look, each with the best of what is below it."""
        if isinstance(node, Leaf):
            return {node.labels: _Choice(0.0, self.operands[node.operand])}
        assert isinstance(node, Pair)
        each = [self.choices[child] for child in self.below[number]]
        most = _MOST_OF_EACH if min(map(len, each)) > 1 else _MOST_ORDERS
        left, right = (_best(choices, most) for choices in each)
        found = {}
        for order in self._orders(number, node):
            target = Axes.adjacent(order, self.sizes, self.costs.itemsize)
            c = target if number in self.wishes else None
            cycles, children = min(
                (self._strategy(node, order, a, b, c).cycles + a.cycles + b.cycles, (first, second))
                for (first, a), (second, b) in product(left, right)
            )
            found[order] = _Choice(cycles, target, children)
        return found

    def _strategy(self, node: Pair, order: str, a: _Choice, b: _Choice, c: Axes | None) -> PairStrategy:
        roles = Roles.of(node.left.labels, node.right.labels, order)
        return self.costs.cheapest(roles, a.axes, b.axes, c)

    def _orders(self, number: int, node: Pair) -> list[str]:
        """Orders of a result: as the product makes it, as the consumer wants it, and between the two."""
        if number not in self.wishes or not is_placed(node.of_both, self.sizes):
            return [node.labels]
        wish, consumer = self.wishes[number]
        other = consumer.right if consumer.left is node else consumer.left
        kept, met = set(consumer.labels), set(other.labels)
        left, right = set(node.left.labels), set(node.right.labels)

        def those(*sets: set[str], order: str = wish) -> str:
            return "".join(label for label in order if all(label in one for one in sets))

        def made(order: str) -> tuple[str, str, str]:
            return (
                those(left, right, order=order),
                those(left - right, order=order),
                those(right - left, order=order),
            )

        batch, free, summed = those(kept, met), those(kept - met), those(met - kept)
        found = []
        for one in (wish, node.labels):
            both, rows, columns = made(one)
            found += [both + rows + columns, both + columns + rows]
        found += [batch + free + summed, batch + summed + free]
        for first, second in ((left - right, right), (right - left, left)):
            inside = those(kept - met, first) + those(met - kept, first), those(met - kept, second)
            outside = those(kept - met, second)
            found.append(batch + outside + "".join(inside))
        return list(dict.fromkeys(found))

    def tree(self) -> Tree:
        """The tree of the cheapest choices."""
        last = len(self.nodes) - 1
        chosen = {last: min(self.choices[last], key=lambda order: self.choices[last][order].cycles)}
        for number in range(last, -1, -1):
            orders = self.choices[number][chosen[number]].children
            chosen |= zip(self.below[number], orders, strict=True)
        made: list[Tree] = []
        for number, node in enumerate(self.nodes):
            match node:
                case Pair():
                    right, left = made.pop(), made.pop()
                    made.append(self._pair(number, node, (left, right), chosen))
                case _:
                    made.append(node)
        return made.pop()

    def _pair(self, number: int, node: Pair, children: tuple[Tree, Tree], chosen: Mapping[int, str]) -> Tree:
        """A pair whose operands are moved first if that is the cheapest way."""
        left, right = children
        a, b = (self.choices[child][chosen[child]] for child in self.below[number])
        order = chosen[number]
        c = self.choices[number][order].axes if number in self.wishes else None
        if is_placed(node.of_both, self.sizes):
            strategy = self._strategy(node, order, a, b, c)
            roles = Roles.of(left.labels, right.labels, order)
            if "a" in strategy.copied:
                rows = (c or a.axes).outermost_first(roles.rows)
                left = Permutation(left, roles.batch + rows + strategy.summed)
            if "b" in strategy.copied:
                columns = (c or b.axes).outermost_first(roles.columns)
                right = Permutation(right, roles.batch + strategy.summed + columns)
        return Pair(left, right, order)


def _best(choices: Mapping[str, _Choice], most: int) -> list[tuple[str, _Choice]]:
    """The orders that cost least to make."""
    return sorted(choices.items(), key=lambda item: item[1].cycles)[:most]


def _children(nodes: Sequence[Tree]) -> list[tuple[int, ...]]:
    """The numbers of what each node is made of."""
    found: list[tuple[int, ...]] = []
    waiting: list[int] = []
    for number, node in enumerate(nodes):
        taken = {Leaf: 0, Permutation: 1, Pair: 2}[type(node)]
        found.append(tuple(waiting[len(waiting) - taken :]))
        del waiting[len(waiting) - taken :]
        waiting.append(number)
    return found
