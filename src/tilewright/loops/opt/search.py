"""Search for products in one function: its nests from the outside in, with a remark for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.errors import TilewrightError
from tilewright.llvm.matrix import MULTIPLY
from tilewright.loops.llvm.loops import Root, nests
from tilewright.loops.llvm.module import FunctionDefinition, ParsedModule
from tilewright.loops.llvm.prefilter import multiplies_elements
from tilewright.loops.llvm.symbols import Distributed, Found, SsaValue
from tilewright.loops.nests.distribute import distribute
from tilewright.loops.nests.nest import Refusal
from tilewright.loops.nests.recognise import recognise
from tilewright.loops.opt.machines import machine_of
from tilewright.loops.opt.records import NO_ELEMENTS, ProductOptions, Remark
from tilewright.loops.opt.wording import described, is_optimised, reason
from tilewright.loops.splice.splice import Splicer
from tilewright.machine.machine import Machine

#: Minimum loop depth of a product: a matrix times a vector.
LEAST_DEPTH = 2
#: The only pointer width that kernels support.
POINTER_BITS = 64
#: Attributes with the target CPU and features of a function.
_CPU_ATTRIBUTES = ("target-cpu", "target-features")
#: Attributes of functions that are left unchanged, and their meaning in remarks.
_UNTOUCHED = {
    "optnone": "compiled without optimisation",
    "sanitize_address": "to have its accesses checked",
    "sanitize_hwaddress": "to have its accesses checked",
    "sanitize_memory": "to have its accesses checked",
    "sanitize_memtag": "to have its accesses checked",
    "sanitize_thread": "to have its accesses checked",
    "sanitize_realtime": "to have its calls checked",
    "strictfp": "to keep the environment of its floating-point numbers",
}


class Search:
    """Searches the nests of one function from the outside in.

    A refused nest may contain a product: inside a loop over time steps, or a loop over rows of a result that
    is processed further.

    Attributes
    ----------
    lines : text of the function, with its products after `run`.
    remarks : one for each nest that is not part of a product.
    """

    def __init__(
        self, module: ParsedModule, function: FunctionDefinition, splicer: Splicer, options: ProductOptions
    ) -> None:
        self.module, self.function, self.options = module, function, options
        self.lines: Sequence[str] = function.lines
        self.remarks: list[Remark] = []
        self._splicer = splicer

    def run(self) -> None:
        """Search every nest, and every use of LLVM's matrix intrinsics."""
        if len(self.function.blocks) > LEAST_DEPTH:
            for root in nests(self.function, self.module):
                self._visit(root)
        if any(MULTIPLY in line for line in self.lines):
            self._multiply()

    def _multiply(self) -> None:
        """Lower matrix intrinsics to the target's register tiles; those without a kernel are left to LLVM."""
        machine = self._machine()
        if isinstance(machine, Machine):
            lines = self._splicer.multiply_by_tiles(
                self.lines, machine, assume_reassociation=self.options.assume_reassociation
            )
            if lines != list(self.lines):
                self.lines = lines

    def _visit(self, root: Root, above: str = "") -> None:
        """Search a nest, and the nests inside if it is refused; the reason `above` is not repeated."""
        if root.loop.depth < LEAST_DEPTH:
            return
        found = self._replaced(root)
        if isinstance(found, Refusal):
            if found.reason != above:
                self.remarks.append(Remark(root.where, replaced=False, text=reason(root, found)))
            for inner in root.inner:
                self._visit(inner, found.reason)
        else:
            products = [found.product] if isinstance(found, Found) else found.distribution.products
            text = "; then ".join(described(root, product) for product in products)
            self.remarks.append(Remark(root.where, replaced=True, text=text))

    def _replaced(self, root: Root) -> Found | Distributed | Refusal:
        """The product that replaces a nest, or a refusal."""
        if not multiplies_elements(self.function, root.loop.blocks):
            return Refusal(root.where, NO_ELEMENTS)
        for word, meaning in _UNTOUCHED.items():
            if self.module.marks(self.function, word):
                return Refusal(root.where, f"is in a function that is {meaning} ({word})")
        try:
            found = self._found(root)
        except RecursionError:
            return Refusal(root.where, "computes with integers that depend on too many others")
        if isinstance(found, Refusal):
            return found
        machine = self._machine()
        if isinstance(machine, str):
            return Refusal(root.where, machine)
        said = " ".join(f'"{name}"="{value}"' for name, value in self._compiled_for().items() if value)
        if isinstance(found, Distributed):
            lines = self._splicer.splice_distribution(self.lines, found, machine, said)
        else:
            lines = self._splicer.splice(self.lines, found, machine, said)
        if isinstance(lines, Refusal):
            return lines
        self.lines = lines
        return found

    def _found(self, root: Root) -> Found | Distributed | Refusal:
        """What replaces a nest, as it stands or with the copies of its loops read as one loop each."""
        found = self._read(root, rerolls=False)
        if not isinstance(found, Refusal) or not root.may_have_copies:
            return found
        rerolled = self._read(root, rerolls=True)
        return found if isinstance(rerolled, Refusal) and not is_optimised(root) else rerolled

    def _read(self, root: Root, *, rerolls: bool) -> Found | Distributed | Refusal:
        """The product of a nest, or several statements with products among them; with its location.

        Copies that are read as one loop are tried as single products only.
        """
        candidate = root.read(reassociates=self.options.assume_reassociation, rerolls=rerolls)
        if isinstance(candidate, Refusal):
            return candidate
        product = recognise(candidate.nest)
        if isinstance(product, Refusal):
            if rerolls:
                return product
            distribution = distribute(candidate.nest, lambda name: SsaValue.of(f"%tilewright.{name}", "i64"))
            if isinstance(distribution, Refusal):
                return product
            conditions = (*candidate.conditions, *distribution.conditions)
            return Distributed(replace(distribution, conditions=conditions), candidate.place)
        product = replace(product, conditions=(*candidate.conditions, *product.conditions))
        return Found(product, candidate.place)

    def _compiled_for(self) -> dict[str, str]:
        """Target attributes of the function; "" if it has none."""
        return {name: self.module.attribute(self.function, name) for name in _CPU_ATTRIBUTES}

    def _machine(self) -> Machine | str:
        """The machine that the function is compiled for, or a refusal."""
        bits = self.module.pointer_bits
        if bits != POINTER_BITS:
            return f"has pointers of {bits} bits; kernels need {POINTER_BITS}"
        cpu, features = self._compiled_for().values()
        try:
            return machine_of(self.module.triple, cpu, features, self.options)
        except TilewrightError as error:
            return f"is for a target without kernels: {error}"
