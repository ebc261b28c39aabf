"""Cheap look at the text of LLVM IR: whether any nest of loops could be a product of matrices."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

_NAME = r'(?:[-\w$.]+|"[^"]*")'
_DEFINE = re.compile(rf'define [^@"\n]*(?:"[^"\n]*"[^@"\n]*)*@({_NAME})\(')
#: A label where a block begins, or a label that a branch names.
_LABEL = re.compile(rf"^({_NAME}):|\blabel %({_NAME})", re.MULTILINE)
#: A product of two values, neither of them a constant; `mul` of subscripts is one, too.
_MULTIPLY = re.compile(
    r"= (?:fmul|mul) [^%\n]*%[^,\n]+, %"
    r"|@llvm\.(?:fma|fmuladd)\.[^(\n]*\([^%,\n]*%[^,\n]+, [^%,\n]*%"
)
_CALL = re.compile(rf"(?:call|invoke) [^@\n]*@({_NAME})\(")
_GROUP = re.compile(r"^attributes (#\d+) = \{ (.*) \}", re.MULTILINE)
#: Products of clang's matrix types: they need no loop.
_MATRICES = "@llvm.matrix.multiply"


@dataclass(frozen=True, eq=False)
class _FunctionText:
    """The text of a function, from `define` to its closing brace."""

    text: str

    @cached_property
    def multiplies(self) -> bool:
        return _MULTIPLY.search(self.text) is not None

    @cached_property
    def back_edges(self) -> tuple[tuple[int, int], ...]:
        """Positions of each label that is branched to from behind it, and of that branch.

        Every cycle of blocks has such a branch, whatever the order of the text.
        """
        at: dict[str, int] = {}
        found = []
        for one in _LABEL.finditer(self.text):
            if one[1] is not None:
                at[one[1]] = one.start()
            elif one[2] in at:
                found.append((at[one[2]], one.start()))
        return tuple(found)

    @property
    def has_nest(self) -> bool:
        """Whether two back edges overlap, as those of a loop inside of a loop do."""
        edges = sorted(self.back_edges)
        return any(start <= max(stop for _, stop in edges[:n]) for n, (start, _) in enumerate(edges) if n)

    def calls(self, start: int = 0, stop: int | None = None) -> frozenset[str]:
        return frozenset(_CALL.findall(self.text, start, len(self.text) if stop is None else stop))


@dataclass(frozen=True, eq=False)
class _Module:
    functions: Mapping[str, _FunctionText]

    def reachable(self, names: frozenset[str]) -> Iterator[_FunctionText]:
        """Functions with a body that are called, directly or not."""
        seen: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            function = self.functions.get(name)
            if function is None or name in seen:
                continue
            seen.add(name)
            yield function
            waiting += function.calls()


def may_have_products(ir: str, *, least_loops: int = 2, any_nest: bool = False) -> bool:
    r"""Whether a module has a function in which loops are nested and two values are multiplied.

    Calls are followed, and functions that are compiled without optimisation are left out. In the text of a
    front end, which has blocks in the order of the source, no product is overlooked.

    Parameters
    ----------
    ir : text of a module.
    least_loops : 1 for IR that was optimised before: the loop inside may have been unrolled.
    any_nest : whether nests count that multiply nothing: remarks list them, too.

    Examples
    --------
    >>> may_have_products("define i32 @f(i32 %x) {\n  %y = mul i32 %x, %x\n  ret i32 %y\n}")
    False
    """
    if _MATRICES in ir:
        return True
    without = {name for name, words in _GROUP.findall(ir) if re.search(r"\boptnone\b", words)}
    module = _Module(dict(_functions(ir)))
    for function in module.functions.values():
        if function.back_edges and without.isdisjoint(_groups(function)):
            nested = function.has_nest if least_loops > 1 else True
            if (nested or _calls_loops(module, function)) and (any_nest or _multiplies(module, function)):
                return True
    return False


def _functions(ir: str) -> Iterator[tuple[str, _FunctionText]]:
    start = 0 if ir.startswith("define ") else ir.find("\ndefine ") + 1
    while start or ir.startswith("define "):
        stop = ir.find("\n}", start)
        head = _DEFINE.match(ir, start)
        if stop < 0:
            return
        # A head that is not understood hides no function: nobody is seen to call it, but it may have loops.
        yield f"at {start}" if head is None else head[1], _FunctionText(ir[start:stop])
        start = ir.find("\ndefine ", stop) + 1
        if not start:
            return


def _groups(function: _FunctionText) -> list[str]:
    return re.findall(r" (#\d+)", function.text[: function.text.find("\n")])


def _calls_loops(module: _Module, function: _FunctionText) -> bool:
    """Whether a loop calls a function that has loops."""
    inside = frozenset().union(*(function.calls(start, stop) for start, stop in function.back_edges))
    return any(called.back_edges for called in module.reachable(inside))


def _multiplies(module: _Module, function: _FunctionText) -> bool:
    return function.multiplies or any(one.multiplies for one in module.reachable(function.calls()))
