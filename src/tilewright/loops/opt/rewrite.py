"""An LLVM module in, one with products in the place of loop nests out, and what became of each nest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.llvm.canonical import inline_calls, shape_loops
from tilewright.llvm.target import parse
from tilewright.loops.llvm.inlining import Calls
from tilewright.loops.llvm.module import FunctionDefinition, ParsedModule, read_module
from tilewright.loops.opt.records import ProductOptions, Remark
from tilewright.loops.opt.search import Search
from tilewright.loops.splice.splice import Splicer


@dataclass(frozen=True)
class Rewritten:
    """A module after the search.

    Attributes
    ----------
    module : LLVM's, which calls kernels that `splicer` has yet to link; None where nothing was replaced.
    remarks : one for each nest that was looked at.
    shaped : the text in which nests were looked for.
    """

    module: Any
    remarks: tuple[Remark, ...]
    shaped: str
    splicer: Splicer

    @property
    def count(self) -> int:
        """How many nests were replaced."""
        return sum(remark.replaced for remark in self.remarks)


def rewrite(module: Any, target_machine: Any, options: ProductOptions) -> Rewritten:
    """Replaces the products in an LLVM module, which itself stays as it is.

    Loops are looked for in a copy of which nothing but loops has changed. Where calls hide what loops do,
    another copy has them inlined.

    Before: loops that multiply matrices. After: in front of them a call of a function that multiplies them
    and says so, or does nothing where run time shows that it may not; behind it the loops.
    """
    shaped = module.clone()
    shape_loops(shaped, target_machine)
    text = str(shaped)
    found = replace_products(text, options)
    if not Calls(read_module(text)).hide_products:
        return found
    inlined = module.clone()
    inline_calls(inlined, target_machine)
    more = replace_products(str(inlined), options)
    return more if more.count >= found.count else found


def replace_products(text: str, options: ProductOptions) -> Rewritten:
    """Replaces the products in a module, as LLVM prints it, whose loops have been given their shape."""
    module = read_module(text)
    splicer = Splicer(module.triple, module.datalayout, text, options.strategy, options.memory)
    remarks: list[Remark] = []
    bodies: dict[str, Sequence[str]] = {}
    for name, function in module.functions.items():
        search = Search(module, function, splicer, options)
        search.run()
        remarks += search.remarks
        if search.lines is not function.lines:
            bodies[name] = search.lines
    if not bodies:
        return Rewritten(None, tuple(remarks), text, splicer)
    spliced = parse("\n".join([*_with_bodies(module, bodies), *splicer.declarations]), "spliced")
    splicer.link(spliced)
    return Rewritten(spliced, tuple(remarks), text, splicer)


def _with_bodies(module: ParsedModule, bodies: dict[str, Sequence[str]]) -> list[str]:
    """The lines of a module, some functions of which have other ones."""
    lines: list[str] = []
    behind = 0
    for name, body in bodies.items():
        function: FunctionDefinition = module.functions[name]
        lines += [*module.lines[behind : function.start], *body]
        behind = function.start + len(function.lines)
    return [*lines, *module.lines[behind:]]
