"""Comparisons of LLVM IR as inequalities: trip counts, and facts implied by branches taken."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.loops.llvm.control_flow import Flow, NaturalLoop
from tilewright.loops.llvm.evolution import Evolution, Evolutions
from tilewright.loops.llvm.facts import bits_of
from tilewright.loops.llvm.instruction import Instruction
from tilewright.loops.llvm.module import ParsedModule
from tilewright.loops.llvm.rules import OVERFLOW, RULES
from tilewright.loops.llvm.successors import never_returns
from tilewright.loops.nests.nest import Bound, Extent
from tilewright.loops.nests.polynomial import Polynomial
from tilewright.records import dataclass

_NEGATED = {"eq": "ne", "lt": "ge", "le": "gt"}
_NEGATED |= {other: one for one, other in _NEGATED.items()}
#: Which of its two targets a constant branch takes.
_CONSTANTS = {"true": 0, "false": 1}
_MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}


@dataclass(frozen=True)
class Comparison:
    """left `predicate` right; a predicate is one of eq, ne, lt, le, gt, ge.

    Attributes
    ----------
    signs : permitted readings: signed (True), unsigned (False), or both, with the same result.
    """

    predicate: str
    left: Evolution
    right: Evolution
    signs: tuple[bool, ...]

    @property
    def mirrored(self) -> Comparison:
        """The comparison with left and right exchanged."""
        predicate = _MIRRORED.get(self.predicate, self.predicate)
        return Comparison(predicate, self.right, self.left, self.signs)


def _wide(value: Polynomial) -> Evolution:
    """A constant of more bits than any variable has."""
    return Evolution((value,), 128, signed=True)


class TripCounts(Evolutions):
    """Evolutions, with trip counts of the loops of the nest."""

    rules = RULES

    def __init__(self, module: ParsedModule, flow: Flow, root: NaturalLoop) -> None:
        super().__init__(module, flow, root)
        #: List that collects NaN tests of floats in `comparisons`; None: they are not accepted as
        #: comparisons.
        self.tests: list[Instruction] | None = None
        self._learn_entry()

    # Branch conditions

    def comparisons(self, text: str, at: NaturalLoop | None, *, truth: bool) -> list[Comparison] | None:
        """Comparisons that hold together exactly if an i1 is true (or false); None if there are none."""
        if text in ("true", "false"):
            return [] if (text == "true") == truth else None
        definition = self.function.definitions.get(text)
        match definition:
            case Instruction(opcode="icmp", operands=(left, right), predicate=predicate):
                home = self.home(definition.result)
                over = home is not None and (at is None or at.header not in home.blocks)
                if over:
                    return None
                one, other = self.of(*left, home), self.of(*right, home)
                name = predicate if predicate in ("eq", "ne") else predicate[1:]
                name = name if truth else _NEGATED[name]
                if (one is None) != (other is None):
                    # Equality in the wide type is equality in the narrow type if both are in its range.
                    known, signed = one or other, predicate.startswith("s") or name in ("eq", "ne")
                    if known is None or not self.exact(known, signed=signed):
                        return None
                    return self._of_narrow(name, (one, left.text), (other, right.text), home, signed=signed)
                if one is None or other is None:
                    return None
                signs = (True, False) if "samesign" in definition.flags else (predicate.startswith("s"),)
                return [Comparison(name, one, other, signs)]
            case Instruction(opcode="fcmp", predicate="une" | "oeq") if self.tests is not None and truth == (
                definition.predicate == "une"
            ):
                self.tests.append(definition)
                return []
            case Instruction(opcode="extractvalue") if not truth:
                return self._without_overflow(definition)
            case Instruction(opcode="xor", operands=(left, (_, "true"))):
                return self.comparisons(left.text, at, truth=not truth)
            case Instruction(opcode="freeze", operands=(left,)):
                return self.comparisons(left.text, at, truth=truth)
            case Instruction(opcode="and" | "or", operands=(left, right)) if truth == (
                definition.opcode == "and"
            ):
                parts = [left.text, right.text]
            case Instruction(opcode="select", operands=(left, right, (_, "false"))) if truth:
                parts = [left.text, right.text]
            case Instruction(opcode="select", operands=(left, (_, "true"), right)) if not truth:
                parts = [left.text, right.text]
            case _:
                return None
        lists = [self.comparisons(part, at, truth=truth) for part in parts]
        return None if None in lists else [one for part in lists if part for one in part]

    def _of_narrow(
        self,
        name: str,
        left: tuple[Evolution | None, str],
        right: tuple[Evolution | None, str],
        home: NaturalLoop | None,
        *,
        signed: bool,
    ) -> list[Comparison] | None:
        """A comparison of a value that may have wrapped around before it was extended, in the narrow type."""
        known, text = (left[0], right[1]) if right[0] is None else (right[0], left[1])
        definition = self.function.definitions.get(text)
        if definition is None or known is None:
            return None
        # A sign-extended negative number is large when read as unsigned.
        if definition.opcode != "zext" and (definition.opcode != "sext" or not signed):
            return None
        value = self.of(*definition.operands[0], home)
        if value is None or value.single is None:
            return None
        low = -(1 << value.bits - 1) if definition.opcode == "sext" else 0
        equality = name in ("eq", "ne")
        if equality and not all(self.require(bound, low, low + (1 << value.bits)) for bound in known.bounds):
            return None
        found = Comparison(name, value, known, (definition.opcode == "sext",))
        return [
            found if left[0] is None else Comparison(_MIRRORED.get(name, name), value, known, found.signs)
        ]

    def _without_overflow(self, definition: Instruction) -> list[Comparison] | None:
        """Conditions under which the overflow bit of `llvm.sadd.with.overflow` and its variants is false."""
        call = self.function.definitions.get(definition.operands[0].text)
        found = OVERFLOW.match(call.callee) if call is not None else None
        home = self.home(definition.operands[0].text)
        if call is None or found is None or not definition.text.endswith(", 1"):
            return None
        signed = found[1] == "s"
        operands = [self.of(kind, text, home) for kind, text in call.operands]
        exact = [one.single for one in operands if one is not None and self.exact(one, signed=signed)]
        match exact, found[2]:
            case [Polynomial() as left, Polynomial() as right], "add":
                value = left + right
            case [Polynomial() as left, Polynomial() as right], "sub":
                value = left - right
            case [Polynomial() as left, Polynomial() as right], _:
                value = left * right
            case _:
                return None
        bits = bits_of(call.operands[0].kind) or 0
        low = -(1 << bits - 1) if signed else 0
        limits = (("ge", low), ("lt", low + (1 << bits)))
        return [
            Comparison(name, _wide(value), _wide(Polynomial.of(limit)), (True,)) for name, limit in limits
        ]

    def stays(self, label: str, at: NaturalLoop | None, targets: tuple[str, ...]) -> list[Comparison] | None:
        """Comparisons that hold exactly if a block's branch goes to one of two targets."""
        branch = self.function.blocks[label].terminator
        if branch.opcode != "br" or len(branch.operands) != 1:
            return None
        return self.comparisons(branch.operands[0].text, at, truth=branch.targets[0] in targets)

    def inequalities(self, comparison: Comparison, *, adopt: bool) -> list[Polynomial] | None:
        """Numbers that are non-negative exactly if a comparison holds; None if there are none.

        `adopt`: operands may be made exact by run-time conditions.
        """
        if comparison.predicate in ("gt", "ge"):
            comparison = comparison.mirrored
        left, right = comparison.left, comparison.right
        if left.single is None or not self._readable(comparison, adopt=adopt):
            return None
        match comparison.predicate:
            case "lt":
                return [bound - left.single - 1 for bound in right.bounds]
            case "le":
                return [bound - left.single for bound in right.bounds]
            case "eq" if right.single is not None:
                return [right.single - left.single, left.single - right.single]
            case "ne" if right.single is not None:
                return self._apart(right.single - left.single, adopt=adopt)
            case _:
                return None

    def _apart(self, difference: Polynomial, *, adopt: bool) -> list[Polynomial] | None:
        """`ne` of two numbers, one of which is known (or required) not to be larger."""
        ways = difference, -difference
        for value in ways:
            if self.facts.proves(value):
                return [value - 1]
        # Unsigned sizes are compared with 0.
        for value in ways:
            if (
                adopt
                and not difference.indices
                and all(factor > 0 for monomial, factor in value.terms if monomial)
            ):
                return [value - 1] if self.require(value, 0) else None
        # Sizes of containers are differences of addresses, of which compilers name the end first.
        if adopt and not difference.indices and _are_addresses(difference) and self.require(-difference, 0):
            return [-difference - 1]
        return None

    def _readable(self, comparison: Comparison, *, adopt: bool) -> bool:
        """Whether both sides equal their polynomials in the signedness of the comparison."""
        signs = comparison.signs if comparison.predicate not in ("eq", "ne") else (True, False)
        sides = comparison.left, comparison.right

        def known(value: Evolution, *, signed: bool) -> bool:
            if value.signed if signed else value.unsigned:
                return True
            return not signed and value.signed and all(map(self.facts.proves, value.bounds))

        if any(all(known(side, signed=sign) for side in sides) for sign in signs):
            return True
        return adopt and all(self.exact(side, signed=signs[0]) for side in sides)

    def settle(self, label: str, loop: NaturalLoop) -> None:
        """Add conditions under which loop-invariant branches never lead to a join point."""
        for before in self.function.predecessors[label]:
            if self.flow.innermost(before) is not loop or before in self.skipped.get(label, ()):
                continue
            others = tuple(one for one in self.function.blocks[before].successors if one != label)
            comparisons = self.stays(before, loop, others) if others else None
            values = [self.inequalities(one, adopt=True) for one in comparisons or []]
            wanted = [value for part in values if part is not None for value in part]
            if comparisons is None or None in values or any(value.indices for value in wanted):
                continue
            if all(self.require(value, 0) for value in wanted):
                self.skipped.setdefault(label, set()).add(before)

    # Facts at the entry of the nest

    def _learn_entry(self) -> None:
        """Record the facts implied by the branches that lead to the nest, and by assumptions before it."""
        flow, label = self.flow, self.root.header
        ways: list[tuple[str, str]] = []
        while flow.immediate_dominators.get(label, label) != label:
            above = flow.immediate_dominators[label]
            entering = [one for one in self.function.predecessors[label] if not self._inside(one, label)]
            if entering == [above]:
                ways.append((above, label))
            label = above
        for above, below in reversed(ways):
            for instruction in self.function.blocks[above].instructions:
                if instruction.callee == "@llvm.assume":
                    self._learn_all(self.comparisons(instruction.operands[0].text, None, truth=True))
            if len(self.function.blocks[above].successors) == 2:
                self._learn_all(self.stays(above, None, (below,)))

    def _inside(self, label: str, header: str) -> bool:
        return self.flow.dominates(header, label)

    def _learn_all(self, comparisons: list[Comparison] | None) -> None:
        for comparison in comparisons or []:
            found = self.inequalities(comparison, adopt=False)
            if found is not None:
                self.facts.add(*found)
                continue
            left, right = comparison.left.single, comparison.right.single
            if comparison.predicate == "ne" and left is not None and right is not None:
                self.facts.add_nonzero(right - left)
                self.facts.add_nonzero(left - right)

    # Loops

    def leaving(self, loop: NaturalLoop) -> Iterator[tuple[str, str]]:
        """The branches out of a loop, except those to blocks from which control never returns."""
        for label in loop.exiting:
            for successor in self.function.blocks[label].successors:
                if successor not in loop.blocks and not never_returns(self.function, successor):
                    yield label, successor

    def extent(self, loop: NaturalLoop) -> Extent | None:
        """Trip count of a loop once it is entered; None if it is not a polynomial."""
        ways = list(self.leaving(loop))
        if len(ways) != 1 or len(loop.latches) != 1:
            return None
        label, target = ways[0]
        last = label in loop.latches
        if not last and label != loop.header:
            return None
        if self._always(label, target):
            return Extent.of(int(last))
        if last and self._is_first(label, target, loop):
            return Extent.of(2)
        within = tuple(one for one in self.function.blocks[label].successors if one != target)
        comparisons = self.stays(label, loop, within)
        if not comparisons:
            return None
        extents = [
            self._bounds(comparison, loop, last=last, alone=len(comparisons) == 1)
            for comparison in comparisons
        ]
        found = [extent for extent in extents if extent is not None]
        if len(found) < len(extents):
            return None
        bounds = tuple(dict.fromkeys(bound for extent in found for bound in extent.bounds))
        return Extent(bounds, max(extent.least for extent in found))

    def _always(self, label: str, target: str) -> bool:
        """Whether a block's branch has a constant condition that selects one target."""
        branch = self.function.blocks[label].terminator
        known = [_CONSTANTS[operand.text] for operand in branch.operands if operand.text in _CONSTANTS]
        return known != [] and branch.targets[known[0]] == target

    def _is_first(self, label: str, target: str, loop: NaturalLoop) -> bool:
        """Whether a loop exits in its second iteration: its branch tests which iteration it is."""
        branch = self.function.blocks[label].terminator
        for phi in self.function.blocks[loop.header].phis:
            if [operand.text for operand in branch.operands] == [phi.result]:
                values = {pair.label in loop.blocks: pair.text for pair in phi.incoming}
                return values == {False: "true", True: "false"} and branch.targets[1] == target
        return False

    def _bounds(self, comparison: Comparison, loop: NaturalLoop, *, last: bool, alone: bool) -> Extent | None:
        """How often a comparison holds before it fails; once more if the body comes first (`last`)."""
        index = self.indices[loop.header]
        if any(index in bound.symbols for bound in comparison.right.bounds):
            comparison = comparison.mirrored
        if comparison.left.single is None or any(index in bound.symbols for bound in comparison.right.bounds):
            return None
        form = comparison.left.single.linear([index])
        if form is None or not form.coefficient(index):
            return None
        step = form.coefficient(index).constant
        if step is None:
            return self._strides(comparison, form.rest, form.coefficient(index), last=last)
        if comparison.predicate == "eq" and comparison.right.single is not None:
            # The loop exits as soon as the sides differ: in the second iteration at the latest.
            apart = (comparison.right.single - form.rest).constant
            return None if apart is None else Extent.of(int(last) + (apart == 0))
        match comparison.predicate, step > 0:
            case ("lt" | "le", True) | ("gt" | "ge", False):
                spans = self._until(comparison, form.rest, step)
            case "ne", _:
                spans = self._until_equal(comparison, form.rest, step, alone=alone)
            case _:
                return None
        if spans is None:
            return None
        if last:
            spans = [span + abs(step) for span in spans]
        bounds = tuple(Bound(*_reduced(span, abs(step))) for span in spans)
        sure = comparison.predicate == "ne" or all(self.facts.proves(bound.span - 1) for bound in bounds)
        return Extent(bounds, int(last and not sure))

    def _strides(
        self, comparison: Comparison, start: Polynomial, step: Polynomial, *, last: bool
    ) -> Extent | None:
        """As `_bounds`, for a step known at run time only, if the distance is a multiple of it."""
        right = comparison.right.single
        if right is None or comparison.predicate not in ("lt", "ne"):
            return None
        count = _quotient(right - start + (step if last else 0), step)
        low = -(1 << comparison.left.bits - 1) if comparison.signs[0] else 0
        high = low + (1 << comparison.left.bits)
        if count is None or not self.require(step, 1):
            return None
        if not self.require(start, low, high) or not self.require(right, low, high):
            return None
        if comparison.predicate == "ne" and not self.require(count, int(last)):
            return None
        return Extent((Bound(count),), int(last and not self.facts.proves(count - 1)))

    def _until(self, comparison: Comparison, start: Polynomial, step: int) -> list[Polynomial] | None:
        """Distance that the left side covers before it passes the right side."""
        left, right = comparison.left, comparison.right
        more = int(comparison.predicate in ("le", "ge"))
        signed = next((sign for sign in comparison.signs if (left.signed if sign else left.unsigned)), None)
        if signed is None:
            # It never wraps around: its start and the bound it passes are both in range of its type.
            signed = comparison.signs[0]
            low = -(1 << left.bits - 1) if signed else 0
            high = low + (1 << left.bits)
            ahead, behind = (abs(step) + more - 1, 0) if step > 0 else (0, abs(step) + more - 1)
            if not self.require(start, low, high):
                return None
            if not all(self.require(bound, low + behind, high - ahead) for bound in right.bounds):
                return None
        elif not self.exact(right, signed=signed):
            return None
        if step > 0:
            return [bound - start + more for bound in right.bounds]
        return [start - bound + more for bound in right.bounds] if right.single is not None else None

    def _until_equal(
        self, comparison: Comparison, start: Polynomial, step: int, *, alone: bool
    ) -> list[Polynomial] | None:
        """Distance until the left side equals the right side, which it must hit exactly."""
        left, right = comparison.left, comparison.right
        if right.single is None:
            return None
        span = right.single - start if step > 0 else start - right.single
        # Without wrapping it must hit the right side: anything else is undefined behaviour.
        straight = alone and ((left.signed and right.signed) or (left.unsigned and right.unsigned))
        met = all(factor % step == 0 for _, factor in span.terms)
        if straight or (met and self.require(span, 0, 1 << min(left.bits, 63))):
            return [span]
        return None


def _are_addresses(difference: Polynomial) -> bool:
    """Whether a number is the difference of two addresses."""
    kinds = [tuple(getattr(symbol, "kind", "") for symbol in monomial) for monomial, _ in difference.terms]
    return kinds == [("ptr",), ("ptr",)] and sum(factor for _, factor in difference.terms) == 0


def _quotient(value: Polynomial, divisor: Polynomial) -> Polynomial | None:
    """A polynomial divided by a monomial, if there is no remainder."""
    if len(divisor.terms) != 1:
        return None
    ((divided_by, by),) = divisor.terms
    terms = []
    for monomial, factor in value.terms:
        left = list(monomial)
        for symbol in divided_by:
            if symbol not in left:
                return None
            left.remove(symbol)
        if factor % by:
            return None
        terms.append((tuple(left), factor // by))
    return sum((Polynomial((term,)) for term in terms), Polynomial())


def _reduced(span: Polynomial, step: int) -> tuple[Polynomial, int]:
    """ceil(span / step) with a step of 1 if every term is a multiple of it."""
    if any(factor % step for _, factor in span.terms):
        return span, step
    return Polynomial(tuple((monomial, factor // step) for monomial, factor in span.terms)), 1
