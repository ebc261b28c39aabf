"""Control flow of a function of LLVM IR: dominators, and natural loops as a tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from tilewright.cached import cached_property
from tilewright.loops.llvm.module import FunctionDefinition
from tilewright.records import dataclass


@dataclass(frozen=True, eq=False)
class NaturalLoop:
    """A natural loop: the blocks from which control returns to a header that dominates them, by label.

    Attributes
    ----------
    header : its only entry.
    blocks : all blocks, including the header and inner loops, in function order.
    latches : blocks that branch back to the header.
    exiting : blocks with a successor outside of the loop.
    exits : those successors.
    preheader : the only predecessor of the header outside of the loop, if the header is its only successor;
        else None.
    children : loops directly inside it, in function order.
    """

    header: str
    blocks: frozenset[str]
    latches: tuple[str, ...]
    exiting: tuple[str, ...]
    exits: tuple[str, ...]
    preheader: str | None
    children: tuple[NaturalLoop, ...]

    @property
    def depth(self) -> int:
        """Depth of the deepest nest that starts with this loop, itself included."""
        return 1 + max((child.depth for child in self.children), default=0)

    def walk(self) -> Iterator[NaturalLoop]:
        """The loop and every loop in it, outer ones first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def __repr__(self) -> str:
        return f"<NaturalLoop {self.header}>"


class Flow:
    """Control flow of a function, derived from labels and branches only.

    Examples
    --------
    >>> from tilewright.loops.llvm.module import read_module
    >>> flow = Flow(read_module('''
    ... define void @f(i1 %c) {
    ... entry:
    ...   br label %loop
    ...
    ... loop:
    ...   br i1 %c, label %loop, label %exit
    ...
    ... exit:
    ...   ret void
    ... }
    ... ''').functions["f"])
    >>> flow.loops[0].preheader, flow.loops[0].exits, flow.dominates("loop", "exit")
    ('entry', ('exit',), True)
    """

    def __init__(self, function: FunctionDefinition) -> None:
        self.function = function

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Reachable labels in reverse post-order: each after its predecessors, back edges ignored."""
        blocks, entry = self.function.blocks, self.function.entry
        finished: list[str] = []
        seen = {entry}
        stack = [(entry, iter(blocks[entry].successors))]
        while stack:
            label, successors = stack[-1]
            for successor in successors:
                if successor not in seen:
                    seen.add(successor)
                    stack.append((successor, iter(blocks[successor].successors)))
                    break
            else:
                finished.append(label)
                stack.pop()
        return tuple(reversed(finished))

    @cached_property
    def immediate_dominators(self) -> Mapping[str, str]:
        """Immediate dominator of each block; the entry dominates itself.

        Source: Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm" (2001), figure 3.
        """
        number = {label: place for place, label in enumerate(self.order)}
        found = {self.function.entry: self.function.entry}
        changed = True
        while changed:
            changed = False
            for label in self.order[1:]:
                known = [one for one in self.function.predecessors[label] if one in found]
                nearest = known[0]
                for other in known[1:]:
                    while nearest != other:
                        if number[nearest] > number[other]:
                            nearest = found[nearest]
                        else:
                            other = found[other]  # noqa: PLW2901 - both climb until they meet
                if found.get(label) != nearest:
                    found[label] = nearest
                    changed = True
        return MappingProxyType(found)

    def dominates(self, above: str, label: str) -> bool:
        """Whether every path from the entry to a block passes another one; each block dominates itself."""
        outer, inner = self._spans.get(above), self._spans.get(label)
        return outer is not None and inner is not None and outer[0] <= inner[0] and inner[1] <= outer[1]

    @cached_property
    def _spans(self) -> Mapping[str, tuple[int, int]]:
        """Entry and exit times of a depth-first walk over the dominator tree."""
        children: dict[str, list[str]] = {label: [] for label in self.order}
        for label, parent in self.immediate_dominators.items():
            if label != parent:
                children[parent].append(label)
        entered: dict[str, int] = {}
        found: dict[str, tuple[int, int]] = {}
        stack = [self.function.entry]
        while stack:
            label = stack[-1]
            if label not in entered:
                entered[label] = len(entered)
                stack += children[label]
            else:
                stack.pop()
                found[label] = (entered[label], len(entered))
        return MappingProxyType(found)

    @cached_property
    def back_edges(self) -> Mapping[str, tuple[str, ...]]:
        """Latches of each header."""
        found: dict[str, list[str]] = {}
        number = {label: place for place, label in enumerate(self.order)}
        for label in self.order:
            for successor in self.function.blocks[label].successors:
                if number[successor] <= number[label] and self.dominates(successor, label):
                    found.setdefault(successor, []).append(label)
        return MappingProxyType({header: tuple(latches) for header, latches in found.items()})

    @cached_property
    def loops(self) -> tuple[NaturalLoop, ...]:
        """The outermost natural loops, in function order. Irreducible cycles are not included."""
        bodies = {header: self._body(header, latches) for header, latches in self.back_edges.items()}
        # A header is in its own loop and in all enclosing ones; the smallest of these is its parent.
        children: dict[str | None, list[str]] = {}
        for header in bodies:
            around = [other for other, body in bodies.items() if other != header and header in body]
            parent = min(around, key=lambda other: len(bodies[other]), default=None)
            children.setdefault(parent, []).append(header)

        def make(header: str) -> NaturalLoop:
            return self._loop(header, bodies[header], tuple(map(make, children.get(header, ()))))

        return tuple(map(make, children.get(None, ())))

    def innermost(self, label: str) -> NaturalLoop | None:
        """The innermost loop that contains a block."""
        return self._innermost.get(label)

    @cached_property
    def _innermost(self) -> Mapping[str, NaturalLoop]:
        return {label: loop for top in self.loops for loop in top.walk() for label in loop.blocks}

    def _body(self, header: str, latches: tuple[str, ...]) -> frozenset[str]:
        """The header and all blocks from which a latch is reached without passing the header."""
        body, left = {header}, list(latches)
        reached = self.immediate_dominators
        while left:
            label = left.pop()
            if label not in body and label in reached:
                body.add(label)
                left.extend(self.function.predecessors[label])
        return frozenset(body)

    def _loop(self, header: str, body: frozenset[str], children: tuple[NaturalLoop, ...]) -> NaturalLoop:
        blocks = self.function.blocks
        inside = [label for label in self.order if label in body]
        leaving = [(label, one) for label in inside for one in blocks[label].successors if one not in body]
        entering = [label for label in self.function.predecessors[header] if label not in body]
        single = len(entering) == 1 and blocks[entering[0]].successors == (header,)
        return NaturalLoop(
            header=header,
            blocks=body,
            latches=self.back_edges[header],
            exiting=tuple(dict.fromkeys(label for label, _ in leaving)),
            exits=tuple(dict.fromkeys(one for _, one in leaving)),
            preheader=entering[0] if single else None,
            children=children,
        )
