"""One loop in the place of its copies: unrolled, in vectors, with what is left over, in two versions.

Before: ``for (; i + 4 <= n; i += 4) s += <x[i], x[i+1], x[i+2], x[i+3]>; for (; i < n; ++i) s += x[i];``
After: ``for (i = 0; i < n; ++i) s += x[i];``

It is proved, not guessed. Every path through the copies is followed, and what each iteration of each copy
adds or stores is compared, lane by lane, with the same expression in the number of the iteration; so are
the numbers of iterations, for all counts (`counting`). The order of loads and stores is not: a product takes
the place of the loop only where operands are apart from the result and no element is stored twice, which is
checked at run time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tilewright.loops.llvm.control_flow import Flow, NaturalLoop
from tilewright.loops.llvm.evolution import Evolution
from tilewright.loops.llvm.facts import bits_of
from tilewright.loops.llvm.reroll.conditions import IntegerTest, Masked, PathCondition, equalities
from tilewright.loops.llvm.reroll.counting import CountedPath, CountProof
from tilewright.loops.llvm.reroll.lanes import LaneValues
from tilewright.loops.llvm.reroll.region import CopiedRegion, elements_in, indices_of, regions, sums_in
from tilewright.loops.llvm.reroll.summands import (
    NotOneLoop,
    key,
    moved,
    moved_access,
    place_key,
    rebuilt,
)
from tilewright.loops.llvm.reroll.trace import LaneEffect, LoopPart, Part, PathTrace, masks_of
from tilewright.loops.llvm.symbols import SsaValue
from tilewright.loops.llvm.trip_counts import TripCounts
from tilewright.loops.llvm.values import Values
from tilewright.loops.nests.nest import (
    Access,
    Assign,
    Cell,
    CountedLoop,
    Extent,
    InvariantScalar,
    Number,
    Read,
    Statement,
    Sum,
    Value,
    Within,
)
from tilewright.loops.nests.polynomial import Index, Polynomial, Symbol
from tilewright.records import dataclass

_FLOATS = ("half", "bfloat", "float", "double")
#: The number of an iteration of the one loop.
POSITION = Index("iteration of copies")


@dataclass(frozen=True)
class OneLoop:
    """The loop that a region is.

    Attributes
    ----------
    count : how often it runs.
    effect : what its iteration number `POSITION` does.
    start : the sum before it, as terms; empty for loops that store.
    stored : the element that it leaves the sum in.
    names : values of the block behind the region that are the sum.
    taken : labels of blocks from which control may reach that block.
    """

    count: Polynomial
    effect: LaneEffect
    start: tuple[Value, ...]
    stored: Access | None
    names: frozenset[str]
    taken: frozenset[str]
    conditions: tuple[Within, ...]
    loop: NaturalLoop
    sums: bool


def copied_regions(flow: Flow, label: str, loop: NaturalLoop) -> Iterator[CopiedRegion]:
    """Regions behind a block that may be copies of a loop, by their branches and the number of accesses."""
    successors = flow.function.blocks[label].successors
    for region in regions(flow, label, loop) if loop.children else ():
        if region.is_plain or (len(successors) > 1 and region.end in successors):
            continue  # nothing is copied, or a branch leads around loops that may be empty
        yield region


class Rerolling:
    """Reads regions of one nest as loops.

    Parameters
    ----------
    flow, counts, values : of the nest.

    Attributes
    ----------
    reasons : why regions that begin behind a block are none.
    """

    def __init__(self, flow: Flow, counts: TripCounts, values: Values) -> None:
        self._flow, self._counts, self._values = flow, counts, values
        self._function = flow.function
        self.reasons: list[str] = []

    def read(self, label: str, loop: NaturalLoop, statements: list[Statement]) -> str | None:
        """Read the region behind a block as one loop, and return the block behind it; None if it is none."""
        for region in copied_regions(self._flow, label, loop):
            try:
                statements += self._statements(region, loop)
            except NotOneLoop as reason:
                self.reasons.append(str(reason))
                continue
            return region.end
        return None

    def _statements(self, region: CopiedRegion, loop: NaturalLoop) -> list[Statement]:
        """A region as one loop, or `NotOneLoop`; values behind it become those of the loop."""
        found = self._prove(region)
        where = self._counts.module.where(self._function, self._function.blocks[found.loop.header].terminator)
        counts, values = self._counts, self._values
        limit = Polynomial.of(found.count)
        index = counts.indices[found.loop.header]
        extent = Extent.of(limit)
        counts.extents[found.loop.header] = extent
        counts.conditions.extend(one for one in found.conditions if one not in counts.conditions)

        def place(offset: Polynomial) -> Polynomial:
            return offset.substitute({POSITION: Polynomial.of(index)})

        def leaf(at: NaturalLoop, value: Value) -> Value:
            match value:
                case InvariantScalar(SsaValue(text=text, kind=kind)):
                    return values.of(kind, text, at)
                case _:
                    return value

        value = rebuilt(moved(found.effect.value, place), lambda one: leaf(found.loop, one))
        if found.effect.target is not None:
            target = moved_access(found.effect.target, place)
            values.note_store(target, "", loop)
            return [CountedLoop(index, extent, (Assign(target, value, where),), where)]
        cell = Cell(f"sum behind {region.start}")
        start: Value = Number(0)
        for number, term in enumerate(found.start):
            one = rebuilt(term, lambda inner: leaf(loop, inner))
            start = Sum(start, one, reassociates=True) if number else one
        self._leave(region, found, cell)
        body = Assign(cell, Sum(Read(cell), value, reassociates=True), where)
        statements: list[Statement] = [
            Assign(cell, start, where),
            CountedLoop(index, extent, (body,), where),
        ]
        if found.stored is not None:
            values.note_store(found.stored, "", loop)
            statements.append(Assign(found.stored, Read(cell), where))
        return statements

    def _leave(self, region: CopiedRegion, found: OneLoop, cell: Cell) -> None:
        """Give the values behind a region that are its sum the value of a variable."""
        for name in found.names:
            self._values.cells[name] = cell
        kept = min(found.taken)
        behind = self._function.predecessors[region.end]
        skipped = [label for label in behind if label in {*region.blocks, region.start} and label != kept]
        self._counts.skipped.setdefault(region.end, set()).update(skipped)
        for phi in self._function.blocks[region.end].phis:
            text = next(pair.text for pair in phi.incoming if pair.label == kept)
            if phi.result in found.names:
                self._values.cells[text] = self._values.finals[text] = cell

    # Proof

    def _prove(self, region: CopiedRegion) -> OneLoop:
        region.check_uses()
        indices = indices_of(region)
        elements = elements_in(region, indices)
        sums = sums_in(region, elements, indices)
        inside = region.names | {one.result for one in self._function.blocks[region.end].instructions}
        traces: list[PathTrace] = []
        paths: list[CountedPath] = []
        names: list[frozenset[str]] = []
        conditions: list[Within] = []
        steps = region.paths()
        for path in steps:
            with self._counts.exploring(inside) as known:
                before, reloads = len(self._counts.conditions), set(self._counts.reloads)
                lanes = LaneValues(self._counts, self._values, inside, region.loops.keys(), known, indices)
                self._hide(known)
                trace = PathTrace(lanes, region.loops, elements, sums=sums)
                failure, whole = "", frozenset[str]()
                try:
                    trace.walk(path, region.end)
                    whole = self._finished(trace, region, path[-1].label, elements)
                except NotOneLoop as reason:
                    failure = str(reason)
                masks_of(list(_polynomials(trace)), lanes, trace.masks)
                conditions += self._counts.conditions[before:]
                if set(self._counts.reloads) != reloads:
                    raise NotOneLoop("reads sizes from memory among its copies")
            traces.append(trace)
            names.append(whole)
            paths.append(
                CountedPath(tuple(trace.conditions), tuple(trace.loop_counts), trace.position, failure)
            )
        return self._one_loop(region, steps, traces, paths, names, conditions, sums=sums)

    def _hide(self, known: dict[str, Evolution | None]) -> None:
        """Leave integers whose bits are cut to the proof of counts."""
        for label in self._counts.root.blocks:
            for one in self._function.blocks[label].instructions:
                if one.opcode in ("and", "urem") and one.kind != "i1" and bits_of(one.kind) is not None:
                    known[one.result] = None

    def _finished(
        self, trace: PathTrace, region: CopiedRegion, last: str, elements: frozenset[str]
    ) -> frozenset[str]:
        """Names of the block behind a region that are the sum on one path."""
        block = self._function.blocks[region.end]
        trace.enter(region.end, last)
        named = [one for one in block.instructions if one.result in elements or one.kind in _FLOATS]
        phis = [one.result for one in named if one.opcode == "phi"]
        return trace.finish(phis, [one.result for one in named if one.opcode != "phi"])

    def _one_loop(
        self,
        region: CopiedRegion,
        steps: Sequence[Sequence[object]],
        traces: Sequence[PathTrace],
        paths: Sequence[CountedPath],
        names: Sequence[frozenset[str]],
        conditions: Sequence[Within],
        *,
        sums: bool,
    ) -> OneLoop:
        masks: dict[Symbol, Masked] = {}
        for trace in traces:
            for symbol, cut in trace.masks.items():
                if masks.setdefault(symbol, cut) != cut:
                    raise NotOneLoop("runs in copies whose counts are not understood")
        count = _count([path.end for path in paths if not path.failure], masks, paths[0].failure)
        factors = [len(part.lanes) for trace in traces for part in trace.parts if isinstance(part, LoopPart)]
        proof = CountProof(count, masks)
        possible = proof.possible(paths, factors)
        kept = [traces[number] for number in sorted(possible)]
        equal = {id(trace): equalities(trace.conditions) for trace in kept}
        general = sorted(kept, key=lambda trace: len(equal[id(trace)]))
        loop, effect = _pattern([part for trace in general for part in trace.parts])
        checked: set[tuple[object, ...]] = set()
        for trace in kept:
            for part in trace.parts:
                case = part, *sorted((str(one), str(value)) for one, value in equal[id(trace)].items())
                if case not in checked:
                    checked.add(case)
                    _check_part(part, effect, equal[id(trace)])
        start, stored = _agreed(kept)
        whole = frozenset.intersection(*(names[number] for number in possible))
        self._check_phis(region, whole)
        found = self._limited(count, proof.below)
        self._check_symbols(count, effect, stored, (*conditions, *found))
        taken = frozenset(str(steps[number][-1].label) for number in possible)  # type: ignore[attr-defined]
        return OneLoop(count, effect, start, stored, whole, taken, (*conditions, *found), loop, sums)

    def _limited(self, count: Polynomial, below: int) -> tuple[Within, ...]:
        """Conditions for a count that the proof holds for."""
        if count.constant is not None:
            return ()
        before = list(self._counts.conditions)
        if not self._counts.require(count, 1, below):
            raise NotOneLoop("runs for a number of times that is not known in front of the nest")
        found = [one for one in self._counts.conditions if one not in before]
        return tuple(found)

    def _check_phis(self, region: CopiedRegion, whole: frozenset[str]) -> None:
        """Refuse phis behind a region that are neither the sum nor the same wherever control comes from."""
        inside = region.names
        for phi in self._function.blocks[region.end].phis:
            if phi.result in whole or phi.kind.startswith("<"):
                continue  # nothing outside of copies reads vectors
            texts = {pair.text for pair in phi.incoming if pair.label in {*region.blocks, region.start}}
            if len(texts) > 1 or texts & inside:
                raise NotOneLoop("leaves values to the code behind its copies")

    def _check_symbols(
        self, count: Polynomial, effect: LaneEffect, stored: Access | None, conditions: Sequence[Within]
    ) -> None:
        """Refuse addresses and counts in terms of values that the nest computes."""
        asked = [count, *_offsets(effect), *((stored.offset,) if stored is not None else ())]
        for condition in conditions:
            asked += [condition.value, condition.low, condition.high]
        for symbol in {symbol for value in asked for symbol in value.symbols}:
            if isinstance(symbol, SsaValue) and self._counts.home(symbol.text) is not None:
                raise NotOneLoop("computes addresses that are not affine in its indices")


def _count(ends: Sequence[Polynomial], masks: Mapping[Symbol, Masked], failure: str) -> Polynomial:
    """The count that most paths end with, in whole or with bits cut off."""
    known = [end for end in ends if not end.symbols & masks.keys()]
    cut = [masks[symbol].value for end in ends for symbol in end.symbols & masks.keys()]
    cut = [value for value in cut if not value.symbols & masks.keys()]
    named = [end for end in known if end.constant is None]
    found = named or cut or known
    if not found:
        raise NotOneLoop(failure or "runs in copies whose counts are not understood")
    return min(found, key=lambda one: (-found.count(one), str(one)))


def _offsets(effect: LaneEffect) -> list[Polynomial]:
    found: list[Polynomial] = [] if effect.target is None else [effect.target.offset]

    def note(offset: Polynomial) -> Polynomial:
        found.append(offset)
        return offset

    moved(effect.value, note)
    return found


def _polynomials(trace: PathTrace) -> list[Polynomial]:
    """Every polynomial that the proof of counts asks for."""
    found = [trace.position, *(loop.distance for loop in trace.loop_counts)]
    left: list[PathCondition] = [condition for condition, _ in trace.conditions]
    while left:
        match left.pop():
            case IntegerTest(left=one, right=other):
                found += [one, other]
            case test:
                left += [getattr(test, name) for name in ("left", "right") if hasattr(test, name)]
    return found


# Iterations


def _pattern(parts: Sequence[Part]) -> tuple[NaturalLoop, LaneEffect]:
    """What one iteration does, from the first loop of a region: of its lanes, the one that comes first."""
    part = next((one for one in parts if isinstance(one, LoopPart)), None)
    if part is None:
        raise NotOneLoop("has no loop left")
    index, factor = Index(f"i.{part.loop.header}"), len(part.lanes)

    def general(offset: Polynomial) -> Polynomial:
        form = offset.linear([index])
        slope = form.coefficient(index) if form is not None else Polynomial()
        if form is None or any(number % factor for _, number in slope.terms):
            raise NotOneLoop("touches elements at distances that differ")
        step = Polynomial(tuple((monomial, number // factor) for monomial, number in slope.terms))
        return form.rest + step * (Polynomial.of(POSITION) - part.start)

    lanes = Counter(map(_effect_key, part.lanes))
    for lane in part.lanes:
        effect = _moved_effect(lane, general)
        own = Polynomial.of(index) * factor + part.start
        if all(_effect_key(_at(effect, own + place)) in lanes for place in range(factor)):
            return part.loop, effect
    raise NotOneLoop("does different things in its copies")


def _moved_effect(effect: LaneEffect, change: object) -> LaneEffect:
    assert callable(change)
    target = None if effect.target is None else moved_access(effect.target, change)
    return replace(effect, target=target, value=moved(effect.value, change))


def _at(effect: LaneEffect, position: Polynomial) -> LaneEffect:
    """The effect of one iteration."""
    return _moved_effect(effect, lambda offset: offset.substitute({POSITION: position}))


def _effect_key(effect: LaneEffect) -> str:
    target = "" if effect.target is None else place_key(effect.target)
    return f"{target} = {key(effect.value)}"


def _check_part(part: Part, effect: LaneEffect, equal: Mapping[Symbol, Polynomial]) -> None:
    """Refuse a part that does anything but its iterations, where symbols have the values given."""
    factor, start = len(part.lanes), part.start
    if isinstance(part, LoopPart):
        start = start + Polynomial.of(Index(f"i.{part.loop.header}")) * factor

    def special(one: LaneEffect) -> str:
        return _effect_key(_moved_effect(one, lambda offset: offset.substitute(equal)) if equal else one)

    found = Counter(map(special, part.lanes))
    asked = Counter(special(_at(effect, start + place)) for place in range(factor))
    if found != asked:
        raise NotOneLoop("does different things in its copies")


def _agreed(traces: Sequence[PathTrace]) -> tuple[tuple[Value, ...], Access | None]:
    """The sum before a region, and the element that it is left in: the same on all paths."""
    starts = {tuple(sorted(map(key, trace.start))): trace.start for trace in traces}
    stored = {"" if trace.stored is None else place_key(trace.stored): trace.stored for trace in traces}
    if len(starts) != 1 or len(stored) != 1:
        raise NotOneLoop("begins or ends its sum in ways that differ")
    ((_, start),) = starts.items()
    ((_, target),) = stored.items()
    return start, target
