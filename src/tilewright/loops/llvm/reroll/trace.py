"""Paths through copies of a loop body: the iterations that each part of a path runs, in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from tilewright.loops.llvm.control_flow import NaturalLoop
from tilewright.loops.llvm.evolution import Evolution, Unknown
from tilewright.loops.llvm.facts import bits_of
from tilewright.loops.llvm.instruction import Instruction
from tilewright.loops.llvm.intrinsics import changes_nothing
from tilewright.loops.llvm.reroll.conditions import Masked, PathCondition, condition_of, masked
from tilewright.loops.llvm.reroll.counting import LoopCount
from tilewright.loops.llvm.reroll.indices import IndexPhi, lanes_of, scattered
from tilewright.loops.llvm.reroll.lanes import LaneValues
from tilewright.loops.llvm.reroll.summands import (
    NotOneLoop,
    key,
    place_key,
    reads_in,
    summands,
)
from tilewright.loops.nests.nest import Access, Cell, Read, Value
from tilewright.loops.nests.pointwise import elements_of
from tilewright.loops.nests.polynomial import Polynomial, Symbol
from tilewright.records import dataclass

#: Stores and terms of one part of a path, at most.
_MOST_LANES = 512


@dataclass(frozen=True)
class LaneEffect:
    """The effect of one iteration: a value is stored, or added to the sum (no target)."""

    target: Access | None
    value: Value


@dataclass(frozen=True)
class StraightPart:
    """Iterations from `start` on, written one after the other."""

    start: Polynomial
    lanes: tuple[LaneEffect, ...]


@dataclass(frozen=True)
class LoopPart:
    """A loop that runs several iterations in each of its own.

    Attributes
    ----------
    loop : its blocks; effects are in terms of its index.
    start : iterations before it.
    lanes : effects of its iteration number index.
    """

    loop: NaturalLoop
    start: Polynomial
    lanes: tuple[LaneEffect, ...]


Part: TypeAlias = StraightPart | LoopPart


@dataclass(frozen=True)
class PathStep:
    """A block or a loop of a path, and the block before it."""

    label: str
    before: str


class PathTrace:
    """What one path through a region does.

    Parameters
    ----------
    lanes : values, of this path alone.
    loops : the loops of the region by header.
    elements : names of integers that are computed from elements of memory.
    sums : whether the region computes a sum; otherwise it stores elements.

    Attributes
    ----------
    parts, loop_counts, conditions : along the path, in order.
    start : the sum at the beginning.
    position : iterations so far.
    stored : the element that holds the sum at the end of the path.
    """

    def __init__(
        self, lanes: LaneValues, loops: Mapping[str, NaturalLoop], elements: frozenset[str], *, sums: bool
    ) -> None:
        self.lanes, self._loops, self._elements, self._sums = lanes, loops, elements, sums
        self._function = lanes.function
        self.parts: list[Part] = []
        self.loop_counts: list[LoopCount] = []
        self.conditions: list[tuple[PathCondition, bool]] = []
        self.start: tuple[Value, ...] = ()
        self.position = Polynomial()
        self.stored: Access | None = None
        self.masks: dict[Symbol, Masked] = {}
        #: The sum in memory, and the sum in values that the last loop leaves; None: before any loop.
        self._written: tuple[Value, ...] | None = None
        self._left: Counter[str] | None = None
        self._waiting: list[LaneEffect] = []
        #: Stores of the loop that was followed last.
        self._kept: list[tuple[Access, Value]] = []

    # Blocks

    def walk(self, steps: Sequence[PathStep], end: str) -> None:
        """Follow a path; each step is a block, or the header of a loop that runs to its end."""
        for number, step in enumerate(steps):
            loop = self._loops.get(step.label)
            if loop is not None:
                self._run(loop, step.before)
                continue
            if number:  # the first block is in front of the region
                self.enter(step.label, step.before)
                self._execute(step.label)
            self._branch(step.label, steps[number + 1].label if number + 1 < len(steps) else end)

    def enter(self, label: str, before: str) -> None:
        """Give the phis of a block the values of the block before."""
        found: dict[str, Polynomial] = {}
        others: dict[str, tuple[Value, ...]] = {}
        phis = self._function.blocks[label].phis
        integers = self._index_phis(phis)
        at = self.lanes.counts.flow.innermost(label)
        for integer in integers:
            text = integer.text(before, self.lanes.indices, at)
            if text not in ("poison", "undef"):
                found[integer.name] = self.lanes.integer(integer.kind, text)
        for phi in self._others(phis, integers):
            text = next(pair.text for pair in phi.incoming if pair.label == before)
            others[phi.result] = self.lanes.of(phi.kind, text)
        self._give(integers, found)
        self.lanes.lanes |= others

    def _give(self, phis: Sequence[IndexPhi], values: Mapping[str, Polynomial]) -> None:
        """Enter the values of phis."""
        for phi in phis:
            bits = bits_of(phi.kind)
            assert bits is not None
            if phi.name in values:
                self.lanes.found[phi.name] = Evolution((values[phi.name],), bits)

    def _index_phis(self, phis: Sequence[Instruction]) -> list[IndexPhi]:
        """Phis of integers that are no elements, and lanes of those of vectors of indices."""
        found: list[IndexPhi] = []
        for phi in phis:
            if phi.result in self._elements:
                continue
            if bits_of(phi.kind) is not None:
                found.append(IndexPhi(phi.result, phi.kind, phi, None))
            elif phi.result in self.lanes.indices.names:
                found += self.lanes.indices.phis(phi)
        return found

    @staticmethod
    def _others(phis: Sequence[Instruction], integers: Sequence[IndexPhi]) -> list[Instruction]:
        """The other phis: of elements."""
        known = {one.phi.result for one in integers}
        return [phi for phi in phis if phi.result not in known]

    def _execute(self, label: str) -> None:
        self.lanes.indices.follow(self._function.blocks[label].instructions)
        for instruction in self._function.blocks[label].instructions:
            for target, value in self._stores(instruction):
                if not self._sums:
                    self._waiting.append(LaneEffect(target, value))
                    continue
                if self.stored is not None and place_key(self.stored) != place_key(target):
                    raise NotOneLoop("stores into several elements beside a sum")
                self.stored = target
                self._written = summands(value)

    def _stores(self, instruction: Instruction) -> list[tuple[Access, Value]]:
        """Elements that an instruction stores, with their values; refuses other effects."""
        if instruction.flags & {"volatile", "atomic"}:
            raise NotOneLoop("touches memory that is volatile or atomic")
        match instruction.opcode:
            case "store":
                (kind, text), (_, pointer) = instruction.operands
                _, element = lanes_of(kind)
                values = self.lanes.of(kind, text)
                return [
                    (self.lanes.element(instruction, element, pointer, lane), value)
                    for lane, value in enumerate(values)
                ]
            case "call" if (places := scattered(instruction)) is not None:
                if places.stored is None:
                    return []
                _, element = lanes_of(places.stored.kind)
                targets = self.lanes.elements(instruction, element, places.pointers)
                return list(zip(targets, self.lanes.of(*places.stored), strict=True))
            case "call" if not changes_nothing(instruction.callee):
                raise NotOneLoop(f"calls {instruction.callee}")
            case "br" | "call" | "load" | "phi" | "icmp" | "select" | "getelementptr" | "freeze":
                return []
            case opcode if opcode in _HARMLESS:
                return []
            case opcode:
                raise NotOneLoop(f"computes {opcode}")

    def _branch(self, label: str, target: str) -> None:
        branch = self._function.blocks[label].terminator
        if branch.opcode != "br":
            raise NotOneLoop("has a multi-way branch")
        if len(branch.targets) == 2 and branch.targets[0] != branch.targets[1]:
            condition = condition_of(branch.operands[0].text, self.lanes)
            self.conditions.append((condition, branch.targets[0] == target))

    # Loops

    def _run(self, loop: NaturalLoop, before: str) -> None:
        """A loop from its first iteration to its last."""
        block = self._function.blocks[loop.header]
        index = Polynomial.of(self.lanes.counts.indices[loop.header])
        counts, indices = self.lanes.counts, self.lanes.indices
        integers = self._index_phis(block.phis)
        around = counts.parents[loop.header]
        starts = {
            phi.name: self.lanes.integer(phi.kind, phi.text(before, indices, around)) for phi in integers
        }
        sums = self._others(block.phis, integers)
        latching = {
            phi.result: next(pair.text for pair in phi.incoming if pair.label == loop.header) for phi in sums
        }
        initial = [
            value
            for phi in sums
            for text in (pair.text for pair in phi.incoming if pair.label == before)
            for lane in self.lanes.of(phi.kind, text)
            for value in summands(lane)
        ]
        self._meet(initial)
        own = [one.result for one in block.instructions if one.result]
        steps = self._steps(loop, own)
        self._forget(own)
        integers = self._index_phis(block.phis)
        self._give(integers, {name: start + steps[name] * index for name, start in starts.items()})
        indices.follow(block.instructions)
        before_lanes = {phi.result: _named(f"before {phi.result}", lanes_of(phi.kind)[0]) for phi in sums}
        self.lanes.lanes |= before_lanes
        effects = self._body(loop)
        last = {phi.result: self.lanes.of(phi.kind, latching[phi.result]) for phi in sums}
        if self._sums:
            effects = _added(before_lanes, last)
        if not 0 < len(effects) <= _MOST_LANES:
            raise NotOneLoop("has a loop without effect among its copies")
        self.parts.append(LoopPart(loop, self.position, tuple(effects)))
        written = self._written_in(loop, last)
        distance, step, bits = self._distance(loop)
        self.loop_counts.append(LoopCount(distance, step, bits))
        self.position = self.position + len(effects) + _divided(distance * len(effects), step)
        after = self._after(loop, distance, step)
        self._forget(own)
        for name, value in after.items():
            width = bits_of(self._function.definitions[name].kind)
            assert width is not None
            self.lanes.found[name] = Evolution((value,), width)
        total: list[Value] = []
        for phi in sums:
            left = _named(f"after {phi.result}", len(last[phi.result]))
            self.lanes.lanes[latching[phi.result]] = left
            total += left
        self._left = _counted(total)
        self._written = tuple(total) if written else None

    def _steps(self, loop: NaturalLoop, own: Sequence[str]) -> dict[str, Polynomial]:
        """How far integers move in each iteration."""
        self._forget(own)
        block = self._function.blocks[loop.header]
        phis = self._index_phis(block.phis)
        unknowns = {phi.name: Unknown(f"phi {phi.name}") for phi in phis}
        self._give(phis, {name: Polynomial.of(unknown) for name, unknown in unknowns.items()})
        self.lanes.indices.follow(block.instructions)
        found = {}
        for phi in phis:
            latching = phi.text(loop.header, self.lanes.indices, loop)
            step = self.lanes.integer(phi.kind, latching) - unknowns[phi.name]
            if any(
                getattr(symbol, "text", "") in own or isinstance(symbol, Unknown) for symbol in step.symbols
            ):
                raise NotOneLoop("counts in steps that differ")
            found[phi.name] = step
        return found

    def _forget(self, names: Sequence[str]) -> None:
        for name in names:
            self.lanes.found.pop(name, None)
            self.lanes.lanes.pop(name, None)
            self.lanes.indices.forget(name)

    def _body(self, loop: NaturalLoop) -> list[LaneEffect]:
        """Stores of one iteration of a loop that stores elements."""
        found = []
        self._kept = []
        for instruction in self._function.blocks[loop.header].instructions:
            for target, value in self._stores(instruction):
                found.append(LaneEffect(target, value))
                self._kept.append((target, value))
        return found

    def _written_in(self, loop: NaturalLoop, last: dict[str, tuple[Value, ...]]) -> bool:
        """Whether each iteration of a loop with a sum ends by storing the sum to its element."""
        if not self._sums or not self._kept:
            return False
        index = self.lanes.counts.indices[loop.header]
        for target, _ in self._kept:
            if index in target.offset.symbols:
                raise NotOneLoop("stores elements beside a sum")
            if self.stored is not None and place_key(self.stored) != place_key(target):
                raise NotOneLoop("stores into several elements beside a sum")
            self.stored = target
        sums = [term for lanes in last.values() for lane in lanes for term in summands(lane)]
        if _counted(summands(self._kept[-1][1])) != _counted(sums):
            raise NotOneLoop("stores something other than the sum")
        return True

    def _distance(self, loop: NaturalLoop) -> tuple[Polynomial, int, int]:
        """The number of a loop's last iteration, as a fraction of integers of so many bits."""
        branch = self._function.blocks[loop.header].terminator
        stays = branch.targets[0] == loop.header
        test = self._function.definitions.get(branch.operands[0].text) if branch.operands else None
        if test is None or test.opcode != "icmp" or len(branch.targets) != 2:
            raise NotOneLoop("has a loop among its copies whose end is not understood")
        (kind, left), (_, right) = test.operands
        index = self.lanes.counts.indices[loop.header]
        apart = self.lanes.integer(kind, right) - self.lanes.integer(kind, left)
        form, bits = apart.linear([index]), bits_of(kind)
        step = -form.coefficient(index) if form is not None else Polynomial()
        ends = ("ne", "ult", "slt") if stays else ("eq", "uge", "sge")
        if form is None or not step.constant or bits is None or test.predicate not in ends:
            raise NotOneLoop("has a loop among its copies whose end is not understood")
        if step.constant < 0:
            if test.predicate not in ("eq", "ne"):
                raise NotOneLoop("has a loop among its copies whose end is not understood")
            return -form.rest, -step.constant, bits
        return form.rest, step.constant, bits

    def _after(self, loop: NaturalLoop, distance: Polynomial, step: int) -> dict[str, Polynomial]:
        """Integers of a loop's last iteration that are used behind it."""
        index = self.lanes.counts.indices[loop.header]
        found = {}
        for one in self._function.blocks[loop.header].instructions:
            users = self._function.users.get(one.result, ())
            if bits_of(one.kind) in (None, 1) or one.result in self._elements:
                continue
            if all(label in loop.blocks for label, _ in users):
                continue
            form = self.lanes.integer(one.kind, one.result).linear([index])
            if form is not None:
                moved = form.coefficient(index) * distance
                if all(factor % step == 0 for _, factor in moved.terms):
                    found[one.result] = form.rest + _divided(moved, step)
        return found

    # Sums

    def _meet(self, values: Sequence[Value]) -> None:
        """Account for everything that was computed since the last loop."""
        if not self._sums:
            if values:
                raise NotOneLoop("carries values beside the elements that it stores")
            waiting, self._waiting = self._waiting, []
        else:
            waiting = [LaneEffect(None, value) for value in self._split(values)]
        if waiting:
            if len(waiting) > _MOST_LANES:
                raise NotOneLoop("has too many copies")
            self.parts.append(StraightPart(self.position, tuple(waiting)))
            self.position = self.position + len(waiting)

    def _split(self, values: Sequence[Value]) -> list[Value]:
        """Terms that were added since the last loop; checks that the rest is the sum."""
        carried = [value for value in values if not any(True for _ in elements_of(value))]
        added = [value for value in values if any(True for _ in elements_of(value))]
        if self._left is None:
            self.start = tuple(carried)
        elif _counted(carried) != self._left:
            raise NotOneLoop("uses parts of a sum more than once, or not at all")
        if any(True for value in added for _ in reads_in(value)):
            raise NotOneLoop("carries a value that is no sum")
        return added

    def finish(self, phis: Sequence[str], others: Sequence[str]) -> frozenset[str]:
        """Account for the rest of a path.

        Parameters
        ----------
        phis, others : values of the block behind the region that may be the sum.

        Returns
        -------
        Those that are the sum.
        """
        if not self._sums:
            self._meet(())
            return frozenset()
        found = {name: terms for name in (*phis, *others) if (terms := self._terms(name)) is not None}
        whole = {name: _counted(terms) for name, terms in found.items()}
        if self._left is not None:
            left = self._left
            whole = {name: count for name, count in whole.items() if left <= count}
        chosen = [name for name in phis if name in whole] or sorted(whole, key=lambda one: whole[one].total())
        if chosen:
            total = found[chosen[0]]
            if self.stored is not None and self._written is None:
                raise NotOneLoop("stores something other than the sum")
        elif self._written is not None:
            total = self._written
        else:
            raise NotOneLoop("leaves no sum")
        if self._written is not None and _counted(self._written) != _counted(total):
            raise NotOneLoop("stores something other than the sum")
        self._meet(total)
        return frozenset(name for name, count in whole.items() if count == _counted(total))

    def _terms(self, name: str) -> tuple[Value, ...] | None:
        """The terms of a value; None if it is no sum."""
        kind = self._function.definitions[name].kind
        try:
            return tuple(term for lane in self.lanes.of(kind, name) for term in summands(lane))
        except NotOneLoop:
            return None


def _counted(values: Sequence[Value]) -> Counter[str]:
    return Counter(map(key, values))


def _named(name: str, count: int) -> tuple[Value, ...]:
    """Values that are nothing but their names."""
    return tuple(Read(Cell(f"{name} lane {lane}")) for lane in range(count))


def _added(before: dict[str, tuple[Value, ...]], last: dict[str, tuple[Value, ...]]) -> list[LaneEffect]:
    """What one iteration of a loop adds to each lane of its sums."""
    found = []
    for name, lanes in before.items():
        for own, value in zip(lanes, last[name], strict=True):
            terms = list(summands(value))
            if terms.count(own) != 1:
                raise NotOneLoop("carries a value that is no sum")
            terms.remove(own)
            if any(True for term in terms for _ in reads_in(term)):
                raise NotOneLoop("mixes the lanes of a sum")
            found += [LaneEffect(None, term) for term in terms]
    return found


def _divided(value: Polynomial, by: int) -> Polynomial:
    if any(factor % by for _, factor in value.terms):
        raise NotOneLoop("runs in copies whose counts are not understood")
    return Polynomial(tuple((monomial, factor // by) for monomial, factor in value.terms))


_HARMLESS = frozenset(
    (  # noqa: SIM905
        "add sub mul shl lshr ashr and or xor trunc zext sext fadd fsub fmul fneg fpext fptrunc sitofp "
        "insertelement extractelement shufflevector urem ptrtoint icmp"
    ).split()
)


def masks_of(values: Sequence[Polynomial], lanes: LaneValues, known: dict[Symbol, Masked]) -> None:
    """Note what the symbols of polynomials are made of, as far as that is understood."""
    left = [symbol for value in values for symbol in value.symbols]
    while left:
        symbol = left.pop()
        operands = getattr(symbol, "operands", ())
        left += [inner for operand in operands for inner in operand.symbols]
        if symbol in known:
            continue
        part = masked(symbol, lanes)
        if part is not None:
            known[symbol] = part
            left += part.value.symbols
