"""Networks: the immutable form of a graph, which passes change and plans are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from tilewright.cached import cached_property
from tilewright.errors import GraphInput
from tilewright.graph.nodes.base import Node, ValueType
from tilewright.graph.nodes.sources import ConstantNode, InputNode
from tilewright.graph.sizes import Shape, Sizes, evaluate, is_name
from tilewright.loops.nests.polynomial import Polynomial
from tilewright.records import dataclass


@dataclass(frozen=True)
class Network:
    """Nodes in an order in which operands come first, and which of them are results.

    Attributes
    ----------
    nodes : each names its operands by their positions.
    outputs : names and positions of the results.
    """

    nodes: tuple[Node, ...]
    outputs: tuple[tuple[str, int], ...]

    @cached_property
    def types(self) -> tuple[ValueType, ...]:
        """The type of each node's result.

        Raises
        ------
        GraphShape, GraphDtype
        """
        found: list[ValueType] = []
        for node in self.nodes:
            found.append(node.infer([found[operand] for operand in node.operands]))
            for place in node.writes():
                check_written(node, place, self.nodes[node.operands[place]])
        return tuple(found)

    @cached_property
    def written(self) -> frozenset[int]:
        """The positions of the inputs that a run writes to."""
        return frozenset(node.operands[place] for node in self.nodes for place in node.writes())

    @property
    def inputs(self) -> tuple[tuple[int, InputNode], ...]:
        """Positions and declarations of the inputs, in their order."""
        return tuple((at, node) for at, node in enumerate(self.nodes) if isinstance(node, InputNode))

    def operand_types(self, at: int) -> tuple[ValueType, ...]:
        """The types of a node's operands."""
        return tuple(self.types[operand] for operand in self.nodes[at].operands)

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """The positions of the nodes that read each node, once for each operand; outputs do not count."""
        found: list[list[int]] = [[] for _ in self.nodes]
        for at, node in enumerate(self.nodes):
            for operand in node.operands:
                found[operand].append(at)
        return tuple(map(tuple, found))

    @cached_property
    def results(self) -> frozenset[int]:
        """The positions of the outputs."""
        return frozenset(at for _, at in self.outputs)

    def sole_reader(self, at: int) -> int | None:
        """The one node that reads a node which is no output, else None."""
        readers = self.readers[at]
        return readers[0] if len(readers) == 1 and at not in self.results else None

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """The network as text, a line for each node, then the outputs.

        >>> from tilewright.graph.builder import Graph
        >>> g = Graph()
        >>> _ = g.output(g.relu(g.input("x", shape=("n", 4))), "y")
        >>> print(g.network)
        %0 = input x : float32[n, 4]
        %1 = unary relu(%0) : float32[n, 4]
        y = %1
        """
        for at, (node, one) in enumerate(zip(self.nodes, self.types, strict=True)):
            yield f"%{at} = {_described(node)} : {one}"
        for name, at in self.outputs:
            yield f"{name} = %{at}"


def _described(node: Node) -> str:
    """A node in words: its kind, operands and options."""
    operands = ", ".join(f"%{operand}" for operand in node.operands)
    if isinstance(node, InputNode):
        return f"input {node.label}"
    function = getattr(node, "function", "")
    options = " ".join(word for word in node.options().split(" ") if not word.startswith("function="))
    words = [
        node.name,
        f"{function}({operands})" if function else f"({operands})" if operands else "",
        options,
    ]
    text = " ".join(filter(None, words))
    return text.replace(f"{node.name} (", f"{node.name}(")


class Rewriter:
    """Builds the network that a pass makes of another one, node by node.

    Attributes
    ----------
    moved : new positions of the nodes copied so far, by their old ones.
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        self.nodes: list[Node] = []
        self.moved: dict[int, int] = {}

    def add(self, node: Node) -> int:
        """Appends a node whose operands are new positions; returns its position."""
        self.nodes.append(node)
        return len(self.nodes) - 1

    def copy(self, at: int) -> int:
        """Appends a node of the old network with its operands' new positions."""
        node = self.network.nodes[at]
        self.moved[at] = self.add(replace(node, operands=tuple(self.moved[one] for one in node.operands)))
        return self.moved[at]

    def finished(self) -> Network:
        """The new network, without nodes that nothing reads; inputs stay."""
        outputs = tuple((name, self.moved[at]) for name, at in self.network.outputs)
        return without_dead(Network(tuple(self.nodes), outputs))


def without_dead(network: Network) -> Network:
    """The network without nodes that no output depends on; inputs, and nodes that write to them, stay."""
    needed = {at for _, at in network.outputs} | {at for at, _ in network.inputs}
    needed.update(at for at, node in enumerate(network.nodes) if node.writes())
    for at in range(len(network.nodes) - 1, -1, -1):
        if at in needed:
            needed.update(network.nodes[at].operands)
    if len(needed) == len(network.nodes):
        return network
    moved: dict[int, int] = {}
    nodes: list[Node] = []
    for at, node in enumerate(network.nodes):
        if at in needed:
            moved[at] = len(nodes)
            nodes.append(replace(node, operands=tuple(moved[one] for one in node.operands)))
    return Network(tuple(nodes), tuple((name, moved[at]) for name, at in network.outputs))


def rewritten(network: Network, change: Callable[[Rewriter, int], int | None]) -> Network:
    """The network in which each node is what `change` adds for it, or a copy where that returns None."""
    rewriter = Rewriter(network)
    for at in range(len(network.nodes)):
        found = change(rewriter, at)
        if found is None:
            rewriter.copy(at)
        else:
            rewriter.moved[at] = found
    return rewriter.finished()


def check_written(node: Node, place: int, operand: Node) -> None:
    """Raise `GraphShape` unless an operand that a node writes to is an input."""
    node.require(isinstance(operand, InputNode), f"operand {place} is written to, and must be an input")


def is_constant(node: Node) -> bool:
    """Return whether a node is a constant."""
    return isinstance(node, ConstantNode)


def bind_sizes(declared: Sequence[tuple[str, Shape, tuple[int, ...]]]) -> Sizes:
    """The named sizes of a call, from names, declared shapes and found shapes of its inputs.

    Sizes that are expressions are compared after those that are names, and give those of their names that
    no input has by itself.

    Raises
    ------
    GraphInput : a shape that does not fit, or a size that two inputs have differently.

    Examples
    --------
    >>> from tilewright.graph.sizes import shape_of, size_of
    >>> bind_sizes([("x", shape_of((size_of("n") * size_of("m") * 2, "n")), (24, 3))])
    {'n': 3, 'm': 4}
    """
    sizes: dict[str, int] = {}
    expressions = []
    for name, shape, found in declared:
        if len(shape) != len(found):
            raise GraphInput(name=name, reason=f"it has {len(found)} dimensions, must have {len(shape)}")
        for axis, (size, length) in enumerate(zip(shape, found, strict=True)):
            fixed = size.constant
            if fixed is None and not is_name(size):
                expressions.append((name, axis, size, length))
                continue
            known = sizes.setdefault(str(size), length) if fixed is None else fixed
            _require_length(name, axis, size, length, known)
    for name, axis, size, length in expressions:
        _solve(size, length, sizes)
        if all(symbol.name in sizes for monomial, _ in size.terms for symbol in monomial):
            _require_length(name, axis, size, length, evaluate(size, sizes))
    return sizes


def _require_length(name: str, axis: int, size: Polynomial, length: int, known: int) -> None:
    if known != length:
        reason = f"axis {axis} has {length} elements, must have {known}"
        raise GraphInput(name=name, reason=reason if str(size) == str(known) else f"{reason} ({size})")


def _solve(size: Polynomial, length: int, sizes: dict[str, int]) -> None:
    """Finds the one size of an expression that is unknown, if it is in one term and not squared."""
    left, factor, unknown = length, 0, ""
    for monomial, coefficient in size.terms:
        missing = [symbol.name for symbol in monomial if symbol.name not in sizes]
        term = coefficient
        for symbol in monomial:
            term *= sizes.get(symbol.name, 1)
        if not missing:
            left -= term
        elif len(missing) > 1 or unknown:
            return
        else:
            factor, unknown = term, missing[0]
    if unknown and factor and left % factor == 0 and left // factor >= 0:
        sizes[unknown] = left // factor
