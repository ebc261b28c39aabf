"""Detects loops that may become products once calls in them are inlined."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain

from tilewright.cached import cached_property
from tilewright.loops.llvm.control_flow import Flow
from tilewright.loops.llvm.module import FunctionDefinition, ParsedModule
from tilewright.loops.llvm.prefilter import multiplies_elements
from tilewright.loops.llvm.text import NAME

_CALLEE = re.compile(rf"\b(?:call|invoke) [^@]*@({NAME})\(")
#: Loop depth of a product, at least.
_LEAST_DEPTH = 2


class Calls:
    """Call graph of a module, with the loop depth of calls.

    Examples
    --------
    >>> from tilewright.loops.llvm.module import read_module
    >>> module = read_module('''
    ... define float @times(float %x, float %y) {
    ...   %z = fmul float %x, %y
    ...   ret float %z
    ... }
    ...
    ... define void @f(i1 %c) {
    ... entry:
    ...   br label %outer
    ...
    ... outer:
    ...   br label %inner
    ...
    ... inner:
    ...   %z = call float @times(float 1.0, float 2.0)
    ...   br i1 %c, label %inner, label %behind
    ...
    ... behind:
    ...   br i1 %c, label %outer, label %exit
    ...
    ... exit:
    ...   ret void
    ... }
    ... ''')
    >>> Calls(module).hide_products
    True
    """

    def __init__(self, module: ParsedModule) -> None:
        self._functions = module.functions
        self._depths: dict[str, int] = {}

    @cached_property
    def hide_products(self) -> bool:
        """Whether a nest, counting loops of called functions, may contain a product once calls are inlined.

        Only functions defined in the module can be inlined.
        """
        return any(self._hides(function) for function in self._functions.values())

    def _hides(self, function: FunctionDefinition) -> bool:
        if not self._callees(function, function.blocks):
            return False
        for loop in Flow(function).loops:
            within = self._below(self._callees(function, loop.blocks))
            if not within or loop.depth + max(map(self._depth, within)) < _LEAST_DEPTH:
                continue
            if multiplies_elements(function, loop.blocks) or any(map(self._multiplies, within)):
                return True
        return False

    def _callees(self, function: FunctionDefinition, labels: Iterable[str]) -> frozenset[str]:
        """Functions of the module that the given blocks call."""
        lines = chain.from_iterable(
            function.lines[block.start : block.stop] for block in map(function.blocks.__getitem__, labels)
        )
        found = (_CALLEE.search(line) for line in lines if "call " in line or "invoke " in line)
        return frozenset(call[1] for call in found if call and call[1] in self._functions)

    def _below(self, names: Iterable[str]) -> frozenset[str]:
        """Functions, and all that they call directly or indirectly."""
        found: set[str] = set()
        left = list(names)
        while left:
            name = left.pop()
            if name not in found:
                found.add(name)
                left += self._callees(self._functions[name], self._functions[name].blocks)
        return frozenset(found)

    def _depth(self, name: str) -> int:
        """Loop depth of a function."""
        if name not in self._depths:
            loops = Flow(self._functions[name]).loops
            self._depths[name] = max((loop.depth for loop in loops), default=0)
        return self._depths[name]

    def _multiplies(self, name: str) -> bool:
        """Whether a function multiplies elements or its arguments."""
        function = self._functions[name]
        return multiplies_elements(function, function.blocks, [one.name for one in function.parameters])
