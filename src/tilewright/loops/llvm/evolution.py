"""Integers and addresses of LLVM IR as polynomials in the iterations of a loop nest."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from tilewright.loops.llvm.control_flow import Flow, NaturalLoop
from tilewright.loops.llvm.facts import Facts, bits_of
from tilewright.loops.llvm.instruction import Instruction, read_instruction
from tilewright.loops.llvm.module import FunctionDefinition, ParsedModule
from tilewright.loops.llvm.symbols import Computed, IntegerOperation, Reloaded, SsaValue
from tilewright.loops.llvm.type_layout import DataLayout
from tilewright.loops.nests.nest import Extent, Within
from tilewright.loops.nests.polynomial import Index, Polynomial, Symbol

_NUMBER = re.compile(r"-?\d+$")
_CONSTANT_GEP = re.compile(r"(getelementptr(?: [a-z]+(?:\([^)]*\))?)*) \((.*)\)$")
_WORDS = {"null": 0, "false": 0, "true": 1}
_RANGE = re.compile(r"range\(i\d+ (-?\d+), (-?\d+)\)")


@dataclass(frozen=True)
class Unknown(Symbol):
    """What a phi is while its step is looked for."""


@dataclass(frozen=True)
class Evolution:
    """An integer or an address in every iteration: a polynomial, up to multiples of 2**bits.

    Attributes
    ----------
    bounds : it is the least of these; more than one only where they are exact.
    bits : of the type.
    signed, unsigned : read as such a number, it is the polynomial itself wherever the program's behaviour is
        defined.
    """

    bounds: tuple[Polynomial, ...]
    bits: int
    signed: bool = False
    unsigned: bool = False

    @property
    def single(self) -> Polynomial | None:
        """The polynomial, where it is one."""
        return self.bounds[0] if len(self.bounds) == 1 else None


class Evolutions(ABC):
    """What integers and addresses are, seen from a loop nest; a subclass knows instructions and counts loops.

    Values that are computed before the nest are written in terms of arguments and loads as far as that is
    exact; what is not becomes a symbol of its own. Inside the nest, a number that may wrap around where it is
    widened is taken as exact under a condition (`conditions`) that run time checks.

    Parameters
    ----------
    module, flow : the function's, which `flow` has.
    root : the outermost loop of the nest.
    """

    #: What becomes of each opcode.
    rules: Mapping[str, Rule]

    def __init__(self, module: ParsedModule, flow: Flow, root: NaturalLoop) -> None:
        self.module, self.flow, self.function, self.root = module, flow, flow.function, root
        self.facts = Facts()
        self.conditions: list[Within] = []
        self.extents: dict[str, Extent] = {}
        #: Loads that stand for what memory holds before the nest.
        self.reloads: dict[Reloaded, list[Instruction]] = {}
        #: For blocks where ways meet: where control does not come from while the nest runs.
        self.skipped: dict[str, set[str]] = {}
        self.parents: dict[str, NaturalLoop | None] = {root.header: None}
        for loop in root.walk():
            self.parents.update((child.header, loop) for child in loop.children)
        self.indices = {loop.header: Index(f"i.{loop.header}") for loop in root.walk()}
        self.layout = DataLayout(module.types)
        self._found: dict[str, Evolution | None] = {}
        self.pending: dict[str, Evolution] = {}
        self._learn_ranges(self.function)

    # Loops

    def home(self, name: str) -> NaturalLoop | None:
        """The innermost loop of the nest in which a value is defined; None before the nest."""
        label = self.function.homes.get(name)
        return self.flow.innermost(label) if label in self.root.blocks and label is not None else None

    @abstractmethod
    def extent(self, loop: NaturalLoop) -> Extent | None:
        """How often a loop of the nest runs once it is entered; None where that is not found out."""

    @abstractmethod
    def settle(self, label: str, loop: NaturalLoop) -> None:
        """Make branches that stay the same in the nest not lead to a block where ways meet, by conditions."""

    def ways_in(self, phi: Instruction) -> set[str]:
        """What a phi behind branches may be while the nest runs."""
        skipped = self.skipped.get(self.function.homes[phi.result], set())
        return {pair.text for pair in phi.incoming if pair.label not in skipped} - {"poison", "undef"}

    def trips(self, loop: NaturalLoop) -> Polynomial | None:
        """The same as a polynomial; None where it is none."""
        extent = self.extents.get(loop.header) or self.extent(loop)
        if extent is None or len(extent.bounds) > 1:
            return None
        bound = extent.bounds[0]
        if not self.require(bound.span, low=max(1, extent.least)):
            return None
        if bound.step == 1:
            return bound.span
        rounded = bound.span + (bound.step - 1)
        if rounded.constant is not None:
            return Polynomial.of(rounded.constant // bound.step)
        return (
            None
            if rounded.indices
            else self.computed(IntegerOperation.QUOTIENT, rounded, Polynomial.of(bound.step))
        )

    def loops_of(self, *values: Polynomial) -> tuple[tuple[Index, Extent], ...]:
        """The loops that values depend on, also by way of how often these run; outermost first."""
        asked = {index for value in values for index in value.indices}
        rows = []
        for loop in reversed(list(self.root.walk())):
            index, extent = self.indices[loop.header], self.extents.get(loop.header)
            if index in asked and extent is not None:
                rows.append((index, extent))
                asked |= {one for bound in extent.bounds for one in bound.span.indices}
        return tuple(reversed(rows))

    # Conditions

    def require(self, value: Polynomial, low: int, high: int | None = None) -> bool:
        """Make sure that low <= value < high, at run time if it does not follow; whether that can be."""
        high = 1 << 63 if high is None else high
        if self.facts.proves(value - low) and self.facts.proves(high - 1 - value):
            return True
        if value.constant is not None or any(isinstance(symbol, Unknown) for symbol in value.symbols):
            return False
        loops = self.loops_of(value)
        if {index for index, _ in loops} < value.indices:
            return False  # how often its loops run is not known yet
        condition = Within(value, Polynomial.of(low), Polynomial.of(min(high, (1 << 63) - 1)), loops)
        if condition not in self.conditions:
            self.conditions.append(condition)
            self.facts.add(value - low, high - 1 - value)
        return True

    @contextmanager
    def assuming(self, values: Iterable[Polynomial]) -> Iterator[None]:
        """Take it for a while that numbers are not negative; what was found out by that is forgotten then."""
        before = dict(self._found)
        with self.facts.assuming(values):
            yield
        self._found = before

    def exact(self, value: Evolution, *, signed: bool) -> bool:
        """Make sure that a value, read with or without a sign, is its polynomial."""
        if value.signed if signed else value.unsigned:
            return True
        low = -(1 << value.bits - 1) if signed else 0
        return all(self.require(bound, low, low + (1 << value.bits)) for bound in value.bounds)

    # Values

    def of(self, kind: str, text: str, at: NaturalLoop | None) -> Evolution | None:
        """What an operand is in a loop; in no loop of the nest: before it. None where it is no polynomial."""
        bits = bits_of(kind)
        if bits is None:
            return None
        if text[:1] != "%":
            return self._constant(kind, text, bits)
        found = self._defined(kind, text)
        home = self.home(text)
        while found is not None and home is not None and (at is None or at.header not in home.blocks):
            found = self._left(found, home, text)
            home = self.parents[home.header]
        return found

    def address(self, text: str, at: NaturalLoop | None) -> tuple[Symbol, Polynomial] | None:
        """What memory an address is in, and its offset in bytes."""
        found = self.of("ptr", text, at)
        value = found.single if found else None
        if value is None:
            return None
        bases = [term for term in value.terms if any(getattr(one, "kind", "") == "ptr" for one in term[0])]
        match bases:
            case [((base,), 1)]:
                return base, value - base
            case _:
                return None

    def _constant(self, kind: str, text: str, bits: int) -> Evolution | None:
        if _NUMBER.match(text):
            value = int(text)
            return Evolution((Polynomial.of(value),), bits, signed=True, unsigned=value >= 0)
        if text in _WORDS:
            return Evolution((Polynomial.of(_WORDS[text]),), bits, signed=bits > 1, unsigned=True)
        if text.startswith("@"):
            return self._opaque(kind, text)
        constant = _CONSTANT_GEP.match(text)
        if constant:
            written = read_instruction(f"%gep = {constant[1]} {constant[2]}")
            return self.rules[written.opcode](self, written, None)
        return None

    def _opaque(self, kind: str, text: str) -> Evolution:
        bits = bits_of(kind)
        assert bits is not None
        return Evolution((Polynomial.of(SsaValue.of(text, kind)),), bits, signed=kind != "ptr")

    def _defined(self, kind: str, text: str) -> Evolution | None:
        """A value where it is defined."""
        if text in self.pending:
            return self.pending[text]
        if text in self._found:
            return self._found[text]
        instruction = self.function.definitions.get(text)
        home = self.home(text)
        found: Evolution | None
        if home is None:
            # The same wherever the nest reads it, also where it is known to be positive.
            with self.facts.without_assumptions():
                found = self._before_the_nest(instruction, kind, text)
        else:
            found = self._by_rule(instruction, home)
        # More may be found out once it is known how often the loop runs.
        final = found is not None or home is None or home.header in self.extents
        if final and not self.pending:
            self._found[text] = found
        return found

    def _by_rule(self, instruction: Instruction | None, home: NaturalLoop | None) -> Evolution | None:
        rule = self.rules.get(instruction.opcode) if instruction is not None else None
        return rule(self, instruction, home) if rule and instruction is not None else None

    def _before_the_nest(self, instruction: Instruction | None, kind: str, text: str) -> Evolution:
        found = self._by_rule(instruction, None)
        if found is not None and (found.signed or kind == "ptr") and found.single is not None:
            return found
        self._learn(instruction, found, text, kind)
        return self._opaque(kind, text)

    def _left(self, value: Evolution, loop: NaturalLoop, text: str) -> Evolution | None:
        """A value behind a loop that it is defined in."""
        index = self.indices[loop.header]
        if not any(index in bound.symbols for bound in value.bounds):
            return value
        trips = self.trips(loop)
        if trips is None:
            return None
        tested_first = loop.header in loop.exiting and loop.header not in loop.latches
        last = trips if tested_first and self.function.homes[text] == loop.header else trips - 1
        bounds = tuple(bound.substitute({index: last}) for bound in value.bounds)
        return Evolution(bounds, value.bits, value.signed, value.unsigned)

    def one(self, value: Evolution | None) -> Polynomial | None:
        """The polynomial of a value; what is computed before the nest where it is the least of several."""
        if value is None or value.single is not None:
            return value.single if value else None
        if any(bound.indices for bound in value.bounds):
            return None
        return self.computed(IntegerOperation.MINIMUM, *value.bounds)

    def computed(self, operator: IntegerOperation, *operands: Polynomial) -> Polynomial | None:
        """The symbol of what is computed before the nest from values that stay the same."""
        if any(isinstance(symbol, Unknown) for operand in operands for symbol in operand.symbols):
            return None
        value = Polynomial.of(Computed.of(operator, *operands))
        match operator:
            case IntegerOperation.MAXIMUM:
                self.facts.add(*(value - operand for operand in operands))
            case IntegerOperation.MINIMUM:
                self.facts.add(*(operand - value for operand in operands))
            case IntegerOperation.QUOTIENT:
                dividend, divisor = operands
                self.facts.add(value, dividend - value * divisor)
                self.facts.add(value * divisor + (divisor - 1) - dividend)
        return value

    # What is known of values that stay symbols

    def _learn_ranges(self, function: FunctionDefinition) -> None:
        for parameter in function.parameters:
            found = _RANGE.search(parameter.attributes)
            if found and int(found[1]) < int(found[2]):
                value = Polynomial.of(SsaValue.of(parameter.name, parameter.kind))
                self.facts.add(value - int(found[1]), int(found[2]) - 1 - value)

    def _learn(self, instruction: Instruction | None, found: Evolution | None, text: str, kind: str) -> None:
        if instruction is None or kind == "ptr":
            return
        value = Polynomial.of(SsaValue.of(text, kind))
        if found is not None and len(found.bounds) > 1:
            self.facts.add(*(bound - value for bound in found.bounds))
        match instruction:
            case Instruction(opcode="zext"):
                bits = bits_of(instruction.operands[0].kind)
                self.facts.add(value)
                if bits is not None:
                    self.facts.add((1 << bits) - 1 - value)
            case Instruction(opcode="lshr", operands=(_, (_, amount))) if (
                _NUMBER.match(amount) and int(amount) > 0
            ):
                self.facts.add(value)
            case Instruction(opcode="and", operands=(_, (_, mask))) if _NUMBER.match(mask) and int(mask) >= 0:
                self.facts.add(value, int(mask) - value)
            case Instruction(opcode="call"):
                limits = _RANGE.search(instruction.text)
                if limits and int(limits[1]) < int(limits[2]):
                    self.facts.add(value - int(limits[1]), int(limits[2]) - 1 - value)
            case _:
                return


#: An instruction in a loop of the nest, or before it, as an evolution; None where it is none.
Rule: TypeAlias = Callable[[Evolutions, Instruction, NaturalLoop | None], Evolution | None]
