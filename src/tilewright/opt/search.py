"""The search for products in one function: its nests from the outside in, and what becomes of each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tilewright.errors import TilewrightError
from tilewright.frontend.llvm_glance import multiplies_elements
from tilewright.frontend.llvm_ir import Function, Module
from tilewright.frontend.llvm_loops import Root, nests
from tilewright.frontend.llvm_symbols import Found
from tilewright.frontend.llvm_text import NAME
from tilewright.frontend.loops import recognise
from tilewright.frontend.nests import Product, Refusal
from tilewright.frontend.product_text import product_text
from tilewright.llvm.matrix import MULTIPLY
from tilewright.machine.machine import Machine
from tilewright.opt.machines import machine_of
from tilewright.opt.records import Options, Remark
from tilewright.splice.splice import Splicer

#: Loops in one another that a product has at least: a matrix times a vector.
LEAST_DEPTH = 2


#: A value and its type, as symbols are named: "%n:i32". The type helps nobody who reads a remark.
_TYPED = re.compile(rf"(%{NAME}):\w+(?::unsigned)?")

#: How nests name the index of a loop: by the loop's header.
_INDEX = re.compile(rf"\bi\.{NAME}")


class Search:
    """One function, whose nests are looked at from the outside in.

    A nest that is refused may have a product in it: a loop over time steps around one, or the loop over the
    rows of a result which something else is done to.

    Attributes
    ----------
    lines : the function's text; with the products in it, once `run` has been called.
    remarks : one for each nest that is not part of a product.
    """

    def __init__(self, module: Module, function: Function, splicer: Splicer, options: Options) -> None:
        self.module, self.function, self.options = module, function, options
        self.lines: Sequence[str] = function.lines
        self.remarks: list[Remark] = []
        self._splicer = splicer

    def run(self) -> None:
        """Looks at every nest, and at every product of LLVM's matrices."""
        if len(self.function.blocks) > LEAST_DEPTH:
            for root in nests(self.function, self.module):
                self._visit(root)
        if any(MULTIPLY in line for line in self.lines):
            self._multiply()

    def _multiply(self) -> None:
        """Has matrices multiplied by the target's register tiles; without any, LLVM multiplies them."""
        machine = self._machine()
        if isinstance(machine, Machine):
            lines = self._splicer.multiply_by_tiles(
                self.lines, machine, assume_reassociation=self.options.assume_reassociation
            )
            if lines != list(self.lines):
                self.lines = lines

    def _visit(self, root: Root, above: str = "") -> None:
        """Looks at a nest, and at those in it if it is refused; the reason `above` is not repeated."""
        if root.loop.depth < LEAST_DEPTH:
            return
        found = self._replaced(root)
        if isinstance(found, Refusal):
            if found.reason != above:
                self.remarks.append(Remark(root.where, replaced=False, text=_reason(root, found)))
            for inner in root.inner:
                self._visit(inner, found.reason)
        else:
            self.remarks.append(Remark(root.where, replaced=True, text=_described(found.product)))

    def _replaced(self, root: Root) -> Found | Refusal:
        """The product in the place of a nest, or why there is none."""
        if not multiplies_elements(self.function, root.loop.blocks):
            return Refusal(root.where, "multiplies no two elements")
        candidate = root.read(reassociates=self.options.assume_reassociation)
        if isinstance(candidate, Refusal):
            return candidate
        product = recognise(candidate.nest)
        if isinstance(product, Refusal):
            return product
        product = replace(product, conditions=(*candidate.conditions, *product.conditions))
        found = Found(product, candidate.place)
        machine = self._machine()
        if isinstance(machine, TilewrightError):
            return Refusal(product.where, f"is for a target without kernels: {machine}")
        lines = self._splicer.splice(self.lines, found, machine)
        if isinstance(lines, Refusal):
            return lines
        self.lines = lines
        return found

    def _machine(self) -> Machine | TilewrightError:
        """What the function is compiled for, or why nobody knows."""
        cpu, features = (
            self.module.attribute(self.function, f"target-{what}") for what in ("cpu", "features")
        )
        try:
            return machine_of(self.module.triple, cpu, features, self.options)
        except TilewrightError as error:
            return error


def _reason(root: Root, refusal: Refusal) -> str:
    """A refusal's reason, with loops named by their lines and the line that it is about."""
    names = _index_names(root)
    text = _INDEX.sub(lambda found: names.get(found[0], found[0]), refusal.reason)
    return text if refusal.where.line in (root.where.line, None) else f"{text} (line {refusal.where.line})"


def _index_names(root: Root) -> dict[str, str]:
    """What a reader calls the indices of a nest: by the lines of the loops, or how deep these stand."""
    loops = list(_loops(root))
    lines = [one.where.line for one, _ in loops]
    return {
        f"i.{one.loop.header}": f"the index of line {line}"
        if line and lines.count(line) == 1
        else f"the index of loop {depth}"
        for (one, depth), line in zip(loops, lines, strict=True)
    }


def _loops(root: Root, depth: int = 1) -> Iterator[tuple[Root, int]]:
    """A loop and those in it, with how deep each stands."""
    yield root, depth
    for inner in root.inner:
        yield from _loops(inner, depth + 1)


def _described(product: Product) -> str:
    """A product and its element types, those of A, B and C where they differ."""
    types = dict.fromkeys(str(operand.dtype) for operand in (product.a, product.b, product.c))
    text = _TYPED.sub(r"\1", product_text(product))
    return f"{text}, {' '.join(types)}"
