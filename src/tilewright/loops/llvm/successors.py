"""Paths through blocks: those that never return, and the blocks between a branch and its join point."""

from __future__ import annotations

from tilewright.loops.llvm.control_flow import NaturalLoop
from tilewright.loops.llvm.module import FunctionDefinition

#: Blocks followed to prove that control does not return: a panic takes three or four.
_WAYS_OUT = 16


def never_returns(function: FunctionDefinition, label: str) -> bool:
    """Whether control never returns from a block: it panics, aborts or throws."""
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
    """The blocks from one block up to, but not including, a join point within an iteration of a loop.

    Returns
    -------
    None : some path leads elsewhere; paths that never return are ignored.
    """
    if first == join:
        return frozenset()
    seen, left = {first}, [first]
    while left:
        for successor in function.blocks[left.pop()].successors:
            if successor == join or successor in seen or never_returns(function, successor):
                continue
            if successor not in loop.blocks or successor == loop.header:
                return None
            seen.add(successor)
            left.append(successor)
    return None if loop.header in seen else frozenset(seen)
