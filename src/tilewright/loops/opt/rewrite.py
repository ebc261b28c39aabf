"""Replace loop nests of an LLVM module by products, with a remark for each nest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.llvm.canonical import inline_calls, shape_loops
from tilewright.llvm.target import parse
from tilewright.loops.llvm.inlining import Calls
from tilewright.loops.llvm.module import FunctionDefinition, ParsedModule, read_module
from tilewright.loops.opt.records import ProductOptions, Remark
from tilewright.loops.opt.search import Search
from tilewright.loops.splice.splice import Splicer
from tilewright.records import dataclass


@dataclass(frozen=True)
class Rewritten:
    """A module after replacement.

    Attributes
    ----------
    module : LLVM's module, which calls kernels that `splicer` still has to link; None if nothing was
        replaced.
    remarks : one for each nest examined.
    shaped : the canonicalised text in which nests were searched.
    """

    module: Any
    remarks: tuple[Remark, ...]
    shaped: str
    splicer: Splicer

    @property
    def count(self) -> int:
        """Number of replaced nests."""
        return sum(remark.replaced for remark in self.remarks)


def rewrite(module: Any, target_machine: Any, options: ProductOptions) -> Rewritten:
    """Replace the products in an LLVM module; the given module is not modified.

    The search uses a copy in which only loops were canonicalised, and, if calls hide the bodies of loops,
    another copy with these calls inlined.

    Before: loops that multiply matrices. After: a call, in front of them, of a function that computes the
    product and returns true, or returns false if a run-time condition fails; in that case the loops run.
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
    """Replace the products in a module given as text, whose loops are in canonical form."""
    module = read_module(text)
    splicer = Splicer(
        module.triple, module.datalayout, text, options.strategy, options.memory, options.threads
    )
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
    """The lines of a module with some function bodies replaced."""
    lines: list[str] = []
    behind = 0
    for name, body in bodies.items():
        function: FunctionDefinition = module.functions[name]
        lines += [*module.lines[behind : function.start], *body]
        behind = function.start + len(function.lines)
    return [*lines, *module.lines[behind:]]
