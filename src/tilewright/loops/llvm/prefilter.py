"""Fast prefilter: whether loops of LLVM IR could contain a sum of products."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tilewright.loops.llvm.instruction import Instruction
from tilewright.loops.llvm.module import FunctionDefinition

#: Fused multiply-add calls.
_FUSED = re.compile(r"@llvm\.(fma|fmuladd)\.")
#: Lines with an instruction that `_factors` handles.
_MULTIPLY = re.compile(r" = (?:fmul|mul|.*@llvm\.(?:fma|fmuladd)\.)")
#: Operations that an element may pass through before it is multiplied.
_THROUGH = frozenset(
    (  # noqa: SIM905
        "fpext fptrunc sext zext trunc sitofp uitofp fptosi fptoui bitcast shl fneg fmul mul freeze "
        "insertelement extractelement shufflevector"
    ).split()
)
#: Instructions that may yield an element; the last ones are opaque.
_PERHAPS = frozenset(("load", "call", "invoke", "select", "extractvalue"))


def multiplies_elements(
    function: FunctionDefinition, labels: Iterable[str], perhaps: Iterable[str] = ()
) -> bool:
    """Whether some blocks may multiply two numbers that memory holds; cheap, and never wrongly False.

    Most loops of a program multiply subscripts only, or a number by a constant, and need no closer look.

    Parameters
    ----------
    labels : of the blocks.
    perhaps : values from elsewhere that may be elements, such as the arguments of a function that is inlined.

    Examples
    --------
    >>> from tilewright.loops.llvm.control_flow import Flow
    >>> from tilewright.loops.llvm.module import read_module
    >>> function = read_module('''
    ... define void @f(ptr %a, i32 %n) {
    ... entry:
    ...   br label %loop
    ...
    ... loop:
    ...   %i = phi i32 [ 0, %entry ], [ %next, %loop ]
    ...   %x = load float, ptr %a
    ...   %y = fmul float %x, 2.0
    ...   store float %y, ptr %a
    ...   %next = mul i32 %i, %n
    ...   br label %loop
    ... }
    ... ''').functions["f"]
    >>> multiplies_elements(function, Flow(function).loops[0].blocks)
    False
    """
    elements = frozenset(perhaps)
    for label in labels:
        block = function.blocks[label]
        if not any(map(_MULTIPLY.search, function.lines[block.start : block.stop])):
            continue
        for factors in filter(None, map(_factors, block.instructions)):
            if all(_may_be_element(function, factor, elements) for factor in factors):
                return True
    return False


def _factors(instruction: Instruction) -> tuple[str, ...]:
    """Factors of a multiplication; empty for other instructions."""
    multiplies = instruction.opcode in ("fmul", "mul") or _FUSED.match(instruction.callee)
    return tuple(one.text for one in instruction.operands[:2]) if multiplies else ()


def _may_be_element(function: FunctionDefinition, name: str, elements: frozenset[str]) -> bool:
    """Whether a factor may be an element, or a product that contains one."""
    seen: set[str] = set()
    left = [name]
    while left:
        one = left.pop()
        if one in elements:
            return True
        found = function.definitions.get(one)
        if found is None or one in seen:
            continue  # a constant, or an argument: the same in every iteration
        seen.add(one)
        if found.opcode in _PERHAPS:
            return True
        if found.opcode in _THROUGH:
            left += [operand.text for operand in found.operands]
        left += [one.text for one in found.incoming]
    return False
