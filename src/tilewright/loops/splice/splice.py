"""Products found in a module's functions become calls; kernels and what calls them go into the module."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from tilewright.llvm.build import Module
from tilewright.llvm.matrix import PREFIX, lower_matrices
from tilewright.llvm.target import parse, target_machine
from tilewright.loops.llvm.symbols import Found, SsaValue
from tilewright.loops.nests.nest import Refusal
from tilewright.loops.nests.polynomial import Polynomial
from tilewright.loops.splice.calls import Context, PanelAllocator, define_call, define_value
from tilewright.loops.splice.kernels import EmbeddedKernel, Kernels
from tilewright.loops.splice.matrices import multiply_by_tiles
from tilewright.loops.splice.plan import FRAME_BYTES, KernelChoice, KernelPlan, ProductStrategy, plan
from tilewright.loops.splice.text import phis, put_ahead
from tilewright.machine.isa import Lowering
from tilewright.machine.machine import Machine


class Splicer:
    """What is put into one module: a function for each product, and their kernels.

    Parameters
    ----------
    triple, data_layout : those of the module.
    text : the module, which may have been spliced before: no name is given twice.
    strategy : how products are to run.
    memory : where panels of kernels come from; by default malloc and free.
    """

    def __init__(
        self,
        triple: str,
        data_layout: str,
        text: str = "",
        strategy: ProductStrategy = ProductStrategy.AUTO,
        memory: PanelAllocator | None = None,
    ) -> None:
        self._strategy, self._memory = strategy, memory or PanelAllocator()
        self._module = Module("tilewright", triple, data_layout)
        prefixes = (f"tilewright_{number}_" for number in count())
        self._prefix = next(prefix for prefix in prefixes if f"@{prefix}" not in text)
        self._kernels = Kernels(self._prefix)
        self._machines: dict[str, Machine] = {}
        self._number = 0

    def splice(
        self, lines: Sequence[str], found: Found, machine: Machine, attributes: str = ""
    ) -> list[str] | Refusal:
        """A function, as LLVM prints it, in which a product goes around its loops wherever it may.

        Parameters
        ----------
        lines : the function.
        machine : what kernels are for.
        attributes : those that say what the function itself is compiled for, as LLVM spells them. What calls
            the kernels has the same: both pass floats in the same registers, and one may be inlined.

        Returns
        -------
        Refusal : there is no kernel for the product; the function stays as it is.
        """
        product, place = found.product, found.place
        planned = plan(product, machine, self._strategy)
        if isinstance(planned, Refusal):
            return planned
        values = dict(place.leaving)
        behind = phis(lines, place.exit)
        for phi in behind:
            if phi.name not in values:
                return Refusal(
                    product.where, f"leaves a value behind, {phi.name}, that only its iterations know"
                )
        number, self._number = self._number, self._number + 1
        done, call = f"{self._prefix}done_{number}", f"{self._prefix}product_{number}"
        kernels = self._kernels_of(planned, machine)
        context = Context(attributes, self._memory)
        taken = define_call(self._module, call, planned, kernels, context)
        self._machines[call] = machine
        code = [_call(f"%{done}", "i1", call, taken)]
        leaving: dict[str, str] = {}
        for phi in behind:
            function = f"{self._prefix}leaving_{number}_{len(leaving)}"
            leaving[phi.name] = f"%{function}"
            self._machines[function] = machine
            given = define_value(self._module, function, Polynomial.of(values[phi.name]), phi.kind)
            code.append(_call(f"%{function}", phi.kind, function, given))
        code.append(f"br i1 %{done}, label %{place.exit}, label %{place.header}")
        return put_ahead(lines, place, f"{self._prefix}{number}", code, leaving)

    def multiply_by_tiles(
        self, lines: Sequence[str], machine: Machine, *, assume_reassociation: bool
    ) -> list[str]:
        """A function whose `llvm.matrix.multiply` are products of register tiles; see there."""
        if self._strategy is ProductStrategy.GENERIC:
            return list(lines)
        return multiply_by_tiles(lines, self._kernels, machine, assume_reassociation=assume_reassociation)

    def _kernels_of(self, planned: KernelPlan, machine: Machine) -> list[tuple[KernelChoice, EmbeddedKernel]]:
        """The ways of a plan that are taken; one for little work only where the frame holds its panels.

        Of products whose work is known, that is one.
        """
        if planned.intrinsic:
            return []
        if self._strategy is ProductStrategy.GENERIC:
            machine = machine.with_lowering(Lowering.GENERIC)
        found = [(way, self._kernels.find(way.problem, machine, way.panel_depth)) for way in planned.ways]
        kept = [one for one in found if one[0].most_work is None or one[1].scratch_bytes <= FRAME_BYTES]
        if planned.work is not None:
            kept = [one for one in kept if one[0].most_work is None or planned.work <= one[0].most_work][:1]
        for _, kernel in kept:
            self._kernels.take(kernel)
        return kept

    @property
    def declarations(self) -> tuple[str, ...]:
        """What a module with spliced functions has to declare until `link` has been called."""
        found = []
        for name, function in self._module.functions.items():
            kinds = ", ".join(value.type.text for value in function.arguments.values())
            found.append(f"declare {function.result.text} @{name}({kinds})")
        return (*found, *self._kernels.declarations)

    def link(self, module: Any) -> None:
        """Puts the functions into an LLVM module whose text has been spliced; they may be inlined."""
        functions = [
            line
            for name, function in self._module.functions.items()
            for line in multiply_by_tiles(
                list(function.lines()), self._kernels, self._machines[name], assume_reassociation=True
            )
        ]
        declarations = dict.fromkeys([*self._module.declarations.values(), *self._kernels.declarations])
        text = "\n".join([*self._module.header, *declarations, *functions])
        self._add(module, [text, *self._kernels.texts(inlined=True)])

    def link_kernels(self, module: Any) -> None:
        """Puts the kernels in, behind the optimiser: it would make them up to 10 % slower."""
        self._add(module, self._kernels.texts(inlined=False))

    def _add(self, module: Any, texts: Sequence[str]) -> None:
        for text in texts:
            part = parse(text, "tilewright")
            part.triple, part.data_layout = module.triple, module.data_layout
            if PREFIX in text:
                lower_matrices(part, target_machine(module.triple, "", ""))
            module.link_in(part)
        for function in module.functions:
            if function.name.startswith(self._prefix) and not function.is_declaration:
                function.linkage = "internal"


def _call(result: str, kind: str, function: str, taken: Sequence[SsaValue]) -> str:
    arguments = ", ".join(f"{one.kind} {one.text}" for one in taken)
    return f"{result} = call {kind} @{function}({arguments})"
