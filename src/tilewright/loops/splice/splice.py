"""Splicer: adds the functions and kernels of recognised products to a module of LLVM IR."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from tilewright.llvm.build import Callee, Module
from tilewright.llvm.matrix import PREFIX, lower_matrices
from tilewright.llvm.target import parse, target_machine
from tilewright.llvm.values import INT1
from tilewright.loops.llvm.symbols import Distributed, Found, NestLocation, SsaValue
from tilewright.loops.nests.nest import MatrixProduct, Refusal, Where
from tilewright.loops.nests.polynomial import Polynomial
from tilewright.loops.nests.sequence import Distribution, ProductStep, Step
from tilewright.loops.splice.calls import define_call, define_first, define_value
from tilewright.loops.splice.context import Context, PanelAllocator
from tilewright.loops.splice.distribution import ProductCall, define_distribution, program_values
from tilewright.loops.splice.kernels import EmbeddedKernel, Kernels
from tilewright.loops.splice.matrices import multiply_by_tiles
from tilewright.loops.splice.plan import FRAME_BYTES, KernelChoice, KernelPlan, ProductStrategy, plan
from tilewright.loops.splice.table_call import define_table_call
from tilewright.loops.splice.table_plan import TablePlan, plans
from tilewright.loops.splice.team_runtime import TeamRuntime, team_runtime
from tilewright.loops.splice.text import insert_bypass, phis
from tilewright.loops.splice.threads import ThreadSource
from tilewright.machine.isa import Lowering
from tilewright.machine.machine import Machine
from tilewright.threads.pool import TEAM_WORK


class Splicer:
    """Adds product functions and their kernels to one module.

    Parameters
    ----------
    triple, data_layout : of the module.
    text : the module, which may have been spliced before: existing names are avoided.
    strategy : how products run.
    memory : allocator of packed panels; malloc and free by default.
    threads : whose threads run products.
    """

    def __init__(
        self,
        triple: str,
        data_layout: str,
        text: str = "",
        strategy: ProductStrategy = ProductStrategy.AUTO,
        memory: PanelAllocator | None = None,
        threads: ThreadSource = ThreadSource.OFF,
    ) -> None:
        self._strategy, self._memory, self._threads = strategy, memory or PanelAllocator(), threads
        self._teams: TeamRuntime | None = None
        self._module = Module("tilewright", triple, data_layout)
        prefixes = (f"tilewright_{number}_" for number in count())
        self._prefix = next(prefix for prefix in prefixes if f"@{prefix}" not in text)
        self._kernels = Kernels(self._prefix)
        self._machines: dict[str, Machine] = {}
        self._number = 0

    def splice(
        self, lines: Sequence[str], found: Found, machine: Machine, attributes: str = ""
    ) -> list[str] | Refusal:
        """A function as text, in which a product bypasses its loops whenever its conditions hold.

        Parameters
        ----------
        lines : the function.
        machine : the target of kernels.
        attributes : target attributes of the function, in LLVM syntax. The function that calls the kernels
            has the same ones: both must pass floats in the same registers, and it may be inlined.

        Returns
        -------
        Refusal : no kernel computes the product; the function is unchanged.
        """
        planned = plans(found.product, machine, self._strategy)
        if isinstance(planned, Refusal):
            return planned
        number, self._number = self._number, self._number + 1
        call = f"{self._prefix}product_{number}"
        taken = self._define(call, planned, machine, self._context(attributes, machine))
        return self._bypassed(lines, found.place, call, taken, found.product.where)

    def splice_distribution(
        self, lines: Sequence[str], found: Distributed, machine: Machine, attributes: str = ""
    ) -> list[str] | Refusal:
        """As `splice`, for a nest that several products and loops replace."""
        distribution = self._without_steps(found.distribution, machine)
        if program_values(distribution) is None:
            return Refusal(
                distribution.where,
                "has several statements, and reads a number or a pointer to a row from memory",
            )
        calls: dict[MatrixProduct, ProductCall] = {}
        refused: Refusal | None = None
        for product in distribution.products:
            planned = plan(product, machine, self._strategy)
            if isinstance(planned, Refusal):
                refused = planned
                continue
            number, self._number = self._number, self._number + 1
            name = f"{self._prefix}product_{number}"
            kernels = self._kernels_of(planned, machine)
            context = self._context(attributes, machine)
            taken = define_call(self._module, name, planned, kernels, context)
            self._compile_new_for(machine)
            calls[product] = ProductCall(Callee(INT1, f"@{name}"), taken)
        if not calls:
            assert refused is not None
            return refused
        number, self._number = self._number, self._number + 1
        name = f"{self._prefix}nest_{number}"
        taken = define_distribution(self._module, name, distribution, calls, attributes)
        self._machines[name] = machine
        return self._bypassed(lines, found.place, name, taken, distribution.where)

    def _without_steps(self, distribution: Distribution, machine: Machine) -> Distribution:
        """A distribution whose products have finishing steps only where kernels do."""
        steps: list[Step] = []
        for step in distribution.steps:
            if (
                isinstance(step, ProductStep)
                and step.parts
                and isinstance(plan(step.product, machine, self._strategy), Refusal)
            ):
                steps += step.parts
            else:
                steps.append(step)
        return replace(distribution, steps=tuple(steps))

    def _context(self, attributes: str, machine: Machine) -> Context:
        """What the functions of a product depend on, in a function with these target attributes."""
        if self._teams is None:
            self._teams = team_runtime(self._threads, replace(machine, triple=self._module.triple))
        functions = None if self._teams is None else self._teams.functions
        return Context(attributes, self._memory, functions)

    def _bypassed(
        self,
        lines: Sequence[str],
        place: NestLocation,
        call: str,
        taken: Sequence[SsaValue],
        where: Where,
    ) -> list[str] | Refusal:
        """A function that calls another in front of a nest, and goes around the nest if that returns true."""
        values = dict(place.leaving)
        behind = phis(lines, place.exit)
        for phi in behind:
            if phi.name not in values:
                return Refusal(where, f"computes {phi.name}, which is used after the loops")
        number, self._number = self._number, self._number + 1
        done = f"{self._prefix}done_{number}"
        code = [_call(f"%{done}", "i1", call, taken)]
        leaving: dict[str, str] = {}
        for phi in behind:
            function = f"{self._prefix}leaving_{number}_{len(leaving)}"
            leaving[phi.name] = f"%{function}"
            self._machines[function] = self._machines[call]
            given = define_value(self._module, function, Polynomial.of(values[phi.name]), phi.kind)
            code.append(_call(f"%{function}", phi.kind, function, given))
        code.append(f"br i1 %{done}, label %{place.exit}, label %{place.header}")
        return insert_bypass(lines, place, f"{self._prefix}{number}", code, leaving)

    def _define(
        self, call: str, planned: Sequence[KernelPlan | TablePlan], machine: Machine, context: Context
    ) -> tuple[SsaValue, ...]:
        """Define a function that runs the first of some plans that may run; returns the values it takes."""
        several = [f"{call}_{place}" for place in range(len(planned))] if len(planned) > 1 else [call]
        taken = []
        for name, one in zip(several, planned, strict=True):
            if isinstance(one, TablePlan):
                kernel = self._kernels.find(one.problem, machine, threads=context.teams is not None)
                self._kernels.take(kernel)
                taken.append(define_table_call(self._module, (name, self._prefix), one, kernel, context))
            else:
                taken.append(define_call(self._module, name, one, self._kernels_of(one, machine), context))
        if len(planned) > 1:
            found = define_first(self._module, call, list(zip(several, taken, strict=True)), context)
        else:
            (found,) = taken
        self._compile_new_for(machine)
        return found

    def _compile_new_for(self, machine: Machine) -> None:
        """Functions without a machine are for this one."""
        self._machines |= {name: machine for name in self._module.functions if name not in self._machines}

    def multiply_by_tiles(
        self, lines: Sequence[str], machine: Machine, *, assume_reassociation: bool
    ) -> list[str]:
        """Lower `llvm.matrix.multiply` in a function to register tiles; see `matrices.multiply_by_tiles`."""
        if self._strategy is ProductStrategy.GENERIC:
            return list(lines)
        return multiply_by_tiles(lines, self._kernels, machine, assume_reassociation=assume_reassociation)

    def _kernels_of(self, planned: KernelPlan, machine: Machine) -> list[tuple[KernelChoice, EmbeddedKernel]]:
        """The kernels of a plan that are used; one for little work only if its panels fit into the stack
        frame.

        If the amount of work is known, only one is used.
        """
        if planned.intrinsic:
            return []
        if self._strategy is ProductStrategy.GENERIC:
            machine = machine.with_lowering(Lowering.GENERIC)
        large = self._threads is not ThreadSource.OFF and (planned.work is None or planned.work > TEAM_WORK)
        found = [
            (way, self._kernels.find(way.problem, machine, way.panel_depth, threads=large and way.is_last))
            for way in planned.ways
        ]
        kept = [one for one in found if one[0].most_work is None or one[1].scratch_bytes <= FRAME_BYTES]
        if planned.work is not None:
            kept = [one for one in kept if one[0].most_work is None or planned.work <= one[0].most_work][:1]
        for _, kernel in kept:
            self._kernels.take(kernel)
        return kept

    @property
    def declarations(self) -> tuple[str, ...]:
        """Declarations that a module with spliced functions needs until `link` is called."""
        found = []
        for name, function in self._module.functions.items():
            kinds = ", ".join(value.type.text for value in function.arguments.values())
            found.append(f"declare {function.result.text} @{name}({kinds})")
        return (*found, *self._kernels.declarations)

    def link(self, module: Any) -> None:
        """Link the product functions, which may be inlined, into the spliced module."""
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
        """Link the kernels after optimisation, which would make them up to 10 % slower."""
        texts = self._kernels.texts(inlined=False)
        if self._teams is not None and self._teams.functions.open in self._module.declarations:
            texts = (*texts, self._teams.text)
        self._add(module, texts)

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
