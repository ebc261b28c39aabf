"""LLVM intrinsics: calls without effects, and `memset` as a loop of stores."""

from __future__ import annotations

import re

from tilewright.loops.llvm.control_flow import NaturalLoop
from tilewright.loops.llvm.instruction import Instruction
from tilewright.loops.llvm.trip_counts import TripCounts
from tilewright.loops.llvm.values import Values
from tilewright.loops.nests.nest import Access, Assign, Bound, CountedLoop, Extent, Number
from tilewright.loops.nests.polynomial import Index, Polynomial, Symbol
from tilewright.spec.dtype import DType, find_llvm_type

#: Calls for optimisers and debuggers, without effect on values or memory.
_SILENT = re.compile(r"@llvm\.(?:assume|dbg|experimental\.noalias|invariant|donothing|prefetch|sideeffect)\b")
#: Calls without side effects; their values are handled by trees and evolutions.
_PURE = re.compile(
    r"@llvm\.(?:fmuladd|fma|[su]min|[su]max|[su](?:add|sub|mul)\.with\.overflow|abs|minnum|maxnum|fabs|sqrt|expect|"
    r"is\.constant|fshl|fshr|ctpop|ctlz|cttz|bswap|vscale|[su]cmp|vector\.reduce\.f?add)\."
)
_MEMSET = re.compile(r"@llvm\.memset\.p0\.i\d+$")


def changes_nothing(callee: str) -> bool:
    """Whether a call has no side effect.

    >>> changes_nothing("@llvm.fma.f32"), changes_nothing("@llvm.memcpy.p0.p0.i64"), changes_nothing("@puts")
    (True, False, False)
    """
    return bool(_SILENT.match(callee) or _PURE.match(callee))


def clears(callee: str) -> bool:
    """Whether a call sets bytes of memory."""
    return _MEMSET.match(callee) is not None


def filled(
    counts: TripCounts, values: Values, instruction: Instruction, loop: NaturalLoop, index: Index
) -> CountedLoop | None:
    """`llvm.memset` of zeros as a loop over elements of the type that the nest stores; None for other values.

    Parameters
    ----------
    loop : the loop that contains the call.
    index : index of the new loop.
    """
    (_, pointer), (_, byte), length, (_, volatile) = instruction.operands
    place = counts.address(pointer, loop)
    span = counts.one(counts.of(*length, loop))
    if byte != "0" or volatile != "false" or place is None or span is None:
        return None
    element = _element_at(counts, place[0])
    if element is None:
        return None
    size = element.size
    if any(factor % size for _, factor in span.terms) or not counts.require(span, 0):
        return None
    count = Polynomial(tuple((monomial, factor // size) for monomial, factor in span.terms))
    where = values.where(instruction)
    offset = place[1] + Polynomial.of(index) * size
    target = Access(values.memory(place[0]), offset, element, where)
    values.note_store(target, "", loop)
    return CountedLoop(index, Extent((Bound(count),)), (Assign(target, Number(0), where),), where)


def _element_at(counts: TripCounts, base: Symbol) -> DType | None:
    """The type that the nest stores to a memory object."""
    for label in counts.root.blocks:
        for instruction in counts.function.blocks[label].instructions:
            if instruction.opcode != "store":
                continue
            element = find_llvm_type(instruction.operands[0].kind)
            target = counts.address(instruction.operands[1].text, counts.flow.innermost(label))
            if element is not None and target is not None and target[0] == base:
                return element
    return None
