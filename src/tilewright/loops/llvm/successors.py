"""Where control goes from a block: out of the program, or to where ways meet again."""

from __future__ import annotations

from tilewright.loops.llvm.control_flow import NaturalLoop
from tilewright.loops.llvm.module import FunctionDefinition

#: Blocks that are looked at to see that control does not come back: a panic takes three or four.
_WAYS_OUT = 16


def ends_badly(function: FunctionDefinition, label: str) -> bool:
    """Whether control never comes back from a block: it panics, aborts or throws."""
    seen, left = {label}, [label]
    while left:
        block = function.blocks[left.pop()]
        if not block.successors and block.terminator.opcode not in ("unreachable", "resume"):
            return False
        new = [one for one in block.successors if one not in seen]
        seen.update(new)
        left += new
        if len(seen) > _WAYS_OUT:
            return False
    return any(not function.blocks[one].successors for one in seen)


def between(function: FunctionDefinition, first: str, join: str, loop: NaturalLoop) -> frozenset[str] | None:
    """The blocks from one block to another, the last one not included, within an iteration of a loop.

    Returns
    -------
    None : some way leads elsewhere, but for those from which control never comes back.
    """
    if first == join:
        return frozenset()
    seen, left = {first}, [first]
    while left:
        for successor in function.blocks[left.pop()].successors:
            if successor == join or successor in seen or ends_badly(function, successor):
                continue
            if successor not in loop.blocks or successor == loop.header:
                return None
            seen.add(successor)
            left.append(successor)
    return None if loop.header in seen else frozenset(seen)
