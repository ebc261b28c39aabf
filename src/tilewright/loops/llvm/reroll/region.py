"""Regions of a function that are the copies of one loop, and the paths through them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from tilewright.loops.llvm.control_flow import Flow, NaturalLoop
from tilewright.loops.llvm.facts import bits_of
from tilewright.loops.llvm.instruction import Instruction
from tilewright.loops.llvm.module import FunctionDefinition
from tilewright.loops.llvm.reroll.indices import indices_in
from tilewright.loops.llvm.reroll.summands import NotOneLoop
from tilewright.loops.llvm.reroll.trace import PathStep
from tilewright.loops.llvm.successors import between
from tilewright.records import dataclass

#: Paths through one region, at most: two versions, two epilogues and a prologue make some twenty.
MOST_PATHS = 64
#: Elements that an iteration of a plain loop reads, at most: two factors and the sum.
_PLAIN_LOADS = 3
#: Join points that are tried as the end of a region.
_MOST_ENDS = 3


@dataclass(frozen=True, eq=False)
class CopiedRegion:
    """Blocks between a branch and the point where all paths meet again.

    Attributes
    ----------
    start : the block in front of the region.
    end : the block behind it.
    blocks : the blocks between them.
    loops : loops among them by header, each of one block.
    """

    function: FunctionDefinition
    start: str
    end: str
    blocks: frozenset[str]
    loops: Mapping[str, NaturalLoop]

    @property
    def names(self) -> frozenset[str]:
        """Values that its blocks define."""
        return frozenset(
            one.result
            for label in self.blocks
            for one in self.function.blocks[label].instructions
            if one.result
        )

    def paths(self) -> list[tuple[PathStep, ...]]:
        """Every path from its start to its end."""
        found: list[tuple[PathStep, ...]] = []
        left: list[tuple[PathStep, ...]] = [(PathStep(self.start, ""),)]
        while left:
            path = left.pop()
            label = path[-1].label
            for successor in self.function.blocks[label].successors:
                if successor == self.end:
                    found.append(path)
                elif successor not in self.blocks:
                    raise NotOneLoop("may stop the program")
                elif successor != label:
                    left.append((*path, PathStep(successor, label)))
            if len(found) + len(left) > MOST_PATHS:
                raise NotOneLoop("has too many paths through its copies")
        return found

    @property
    def is_plain(self) -> bool:
        """Whether it is one loop that reads and stores no more than one iteration does."""
        if len(self.loops) > 1:
            return False
        inside = [one for label in self.blocks for one in self.function.blocks[label].instructions]
        found = Counter(one.opcode for one in inside)
        vectors = any(one.kind.startswith("<") for one in inside)
        return not vectors and found["load"] <= _PLAIN_LOADS and found["store"] <= 1

    def check_uses(self) -> None:
        """Refuse a region that leaves values in other ways than by phis of its end."""
        for name in self.names:
            for label, user in self.function.users.get(name, ()):
                if label in self.blocks:
                    continue
                lone = self.function.predecessors[self.end]
                if label != self.end or (user.opcode != "phi" and len(lone) > 1):
                    raise NotOneLoop("leaves values to the code behind its copies")


def regions(flow: Flow, label: str, loop: NaturalLoop) -> Iterator[CopiedRegion]:
    """Regions that begin behind a block of a loop, the smallest first; those without loops are left out."""
    function = flow.function
    successors = function.blocks[label].successors
    tried = 0
    for end in flow.order[flow.order.index(label) + 1 :]:
        if end not in loop.blocks or flow.innermost(end) is not loop:
            continue
        parts = [between(function, first, end, loop) for first in successors]
        blocks = frozenset(one for part in parts if part for one in part)
        if any(part is None for part in parts) or not blocks:
            continue
        inner = {child.header: child for child in loop.children if child.header in blocks}
        entered = {one for block in blocks for one in function.predecessors[block]} - blocks
        if not inner or entered != {label}:
            continue
        if all(len(child.blocks) == 1 for child in inner.values()):
            yield CopiedRegion(function, label, end, blocks, inner)
        tried += 1
        if tried >= _MOST_ENDS:
            return


def indices_of(region: CopiedRegion) -> frozenset[str]:
    """Vectors of a region that addresses are computed from, and scalars taken out of them."""
    return indices_in([one for label in region.blocks for one in region.function.blocks[label].instructions])


def elements_in(region: CopiedRegion, indices: frozenset[str]) -> frozenset[str]:
    """Integers of a region, and of the block behind it, that are computed from elements of memory.

    Vectors are, unless they are `indices`.
    """
    function = region.function
    inside = {*region.blocks, region.end}
    left = [
        one.result
        for label in inside
        for one in function.blocks[label].instructions
        if one.result and one.result not in indices and _is_element(one)
    ]
    found: set[str] = set()
    while left:
        name = left.pop()
        if name in found:
            continue
        found.add(name)
        for label, user in function.users.get(name, ()):
            if label in inside and user.result and user.opcode not in ("icmp", "getelementptr"):
                left.append(user.result)
    return frozenset(found)


def _is_element(instruction: Instruction) -> bool:
    """Whether an instruction reads an element, or computes a vector."""
    return instruction.kind.startswith("<") or (instruction.opcode == "load" and instruction.kind != "ptr")


def sums_in(region: CopiedRegion, elements: frozenset[str], indices: frozenset[str]) -> bool:
    """Whether loops of a region carry a sum of elements."""
    return any(
        phi.result in elements or (bits_of(phi.kind) is None and phi.result not in indices)
        for header in region.loops
        for phi in region.function.blocks[header].phis
    )
