"""Integers and addresses of LLVM IR as polynomials in the loop indices of a nest (scalar evolution)."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from typing import TypeAlias

from tilewright.loops.llvm.control_flow import Flow, NaturalLoop
from tilewright.loops.llvm.facts import Facts, bits_of
from tilewright.loops.llvm.instruction import Instruction, read_instruction
from tilewright.loops.llvm.module import FunctionDefinition, ParsedModule
from tilewright.loops.llvm.symbols import (
    Computed,
    IntegerOperation,
    Reloaded,
    Rows,
    SsaValue,
    names_rows,
)
from tilewright.loops.llvm.type_layout import DataLayout
from tilewright.loops.nests.nest import Extent, Within
from tilewright.loops.nests.polynomial import Index, Polynomial, Symbol
from tilewright.records import dataclass

_NUMBER = re.compile(r"-?\d+$")
_CONSTANT_GEP = re.compile(r"(getelementptr(?: [a-z]+(?:\([^)]*\))?)*) \((.*)\)$")
_WORDS = {"null": 0, "false": 0, "true": 1}
_RANGE = re.compile(r"range\(i\d+ (-?\d+), (-?\d+)\)")


@dataclass(frozen=True)
class Unknown(Symbol):
    """Placeholder for a phi while its step is being computed."""


@dataclass(frozen=True)
class Evolution:
    """An integer or address in every iteration: a polynomial, up to multiples of 2**bits.

    Attributes
    ----------
    bounds : the value is the minimum of these; more than one only if they are exact.
    bits : width of the type.
    signed, unsigned : in this reading the value equals the polynomial wherever the program is defined.
    """

    bounds: tuple[Polynomial, ...]
    bits: int
    signed: bool = False
    unsigned: bool = False

    @property
    def single(self) -> Polynomial | None:
        """The polynomial, if there is only one."""
        return self.bounds[0] if len(self.bounds) == 1 else None


class Evolutions(ABC):
    """Evolutions of values in one loop nest; a subclass supplies rules for instructions and trip counts.

    Values computed before the nest are expanded to arguments and loads as far as that is exact, and become
    symbols of their own otherwise. Inside the nest, a number that might wrap around before it is extended is
    taken as exact under a condition (`conditions`) that is checked at run time.

    Parameters
    ----------
    module, flow : of the function.
    root : the outermost loop of the nest.
    """

    #: Rule for each opcode.
    rules: Mapping[str, Rule]

    def __init__(self, module: ParsedModule, flow: Flow, root: NaturalLoop) -> None:
        self.module, self.flow, self.function, self.root = module, flow, flow.function, root
        self.facts = Facts()
        self.conditions: list[Within] = []
        self.extents: dict[str, Extent] = {}
        #: Loads that represent memory contents before the nest.
        self.reloads: dict[Reloaded, list[Instruction]] = {}
        #: Loads of pointers to rows from tables, with their offsets there.
        self.rows: dict[Rows, list[tuple[Instruction, Polynomial]]] = {}
        #: For each join point: predecessors that control never comes from while the nest runs.
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
        """The innermost loop of the nest that defines a value; None if it is defined before the nest."""
        label = self.function.homes.get(name)
        return self.flow.innermost(label) if label in self.root.blocks and label is not None else None

    @abstractmethod
    def extent(self, loop: NaturalLoop) -> Extent | None:
        """Trip count of a loop of the nest once it is entered; None if unknown."""

    @abstractmethod
    def settle(self, label: str, loop: NaturalLoop) -> None:
        """Add conditions under which loop-invariant branches never lead to a join point."""

    def incoming_values(self, phi: Instruction) -> set[str]:
        """Incoming values that a phi at a join point may take while the nest runs."""
        skipped = self.skipped.get(self.function.homes[phi.result], set())
        return {pair.text for pair in phi.incoming if pair.label not in skipped} - {"poison", "undef"}

    def trips(self, loop: NaturalLoop) -> Polynomial | None:
        """The trip count as a polynomial; None if it is not one."""
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
        """Loops that values depend on, also through the trip counts of these loops; outermost first."""
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
        """Require low <= value < high, by a run-time condition unless it is proved; returns whether that is
        possible.
        """
        high = 1 << 63 if high is None else high
        if self.facts.proves(value - low) and self.facts.proves(high - 1 - value):
            return True
        if value.constant is not None or any(isinstance(symbol, Unknown) for symbol in value.symbols):
            return False
        if names_rows(value):
            return False  # differences between rows are no numbers
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
        """Assume temporarily that numbers are not negative; results derived from that are discarded
        afterwards.
        """
        before = dict(self._found)
        with self.facts.assuming(values):
            yield
        self._found = before

    @contextmanager
    def exploring(self, hidden: Set[str]) -> Iterator[dict[str, Evolution | None]]:
        """Let a caller enter the evolutions of some names; all that is found meanwhile is forgotten."""
        before, conditions = self._found, list(self.conditions)
        reloads = {symbol: list(loads) for symbol, loads in self.reloads.items()}
        self._found = {name: found for name, found in before.items() if name not in hidden}
        try:
            with self.facts.assuming(()):
                yield self._found
        finally:
            self._found, self.conditions[:], self.reloads = before, conditions, reloads

    def exact(self, value: Evolution, *, signed: bool) -> bool:
        """Require that a value, read as signed or unsigned, equals its polynomial."""
        if value.signed if signed else value.unsigned:
            return True
        low = -(1 << value.bits - 1) if signed else 0
        return all(self.require(bound, low, low + (1 << value.bits)) for bound in value.bounds)

    # Values

    def of(self, kind: str, text: str, at: NaturalLoop | None) -> Evolution | None:
        """Evolution of an operand in a loop, or before the nest (no loop); None if it is not a polynomial."""
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
        """The memory object of an address, and its offset in bytes."""
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

    def row(self, table: Symbol, offset: Polynomial, instruction: Instruction) -> Evolution | None:
        """A pointer that memory holds at an address which depends on loop indices; one level deep."""
        if instruction.kind != "ptr" or isinstance(table, Rows) or names_rows(offset):
            return None
        rows = Rows.of(table)
        self.rows.setdefault(rows, []).append((instruction, offset))
        return Evolution((offset * rows.distance + rows,), 64)

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
        """Evolution of a value at its definition."""
        if text in self.pending:
            return self.pending[text]
        if text in self._found:
            return self._found[text]
        instruction = self.function.definitions.get(text)
        home = self.home(text)
        found: Evolution | None
        if home is None:
            # Independent of the loop that reads it, also if it is known to be positive there.
            with self.facts.without_assumptions():
                found = self._before_the_nest(instruction, kind, text)
        else:
            found = self._by_rule(instruction, home)
        # A known trip count may allow a better result.
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
        """Evolution of a value after the loop that defines it."""
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
        """The polynomial of a value; a minimum of several is computed before the nest."""
        if value is None or value.single is not None:
            return value.single if value else None
        if any(bound.indices for bound in value.bounds):
            return None
        return self.computed(IntegerOperation.MINIMUM, *value.bounds)

    def computed(self, operator: IntegerOperation, *operands: Polynomial) -> Polynomial | None:
        """A symbol for a value computed before the nest from loop-invariant values."""
        if any(isinstance(symbol, Unknown) for operand in operands for symbol in operand.symbols):
            return None
        if any(map(names_rows, operands)):
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

    # Facts about values that remain symbols

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


#: Evolution of an instruction in a loop of the nest or before it; None if it is not a polynomial.
Rule: TypeAlias = Callable[[Evolutions, Instruction, NaturalLoop | None], Evolution | None]
