"""What one call of a program does: how often each statement runs, and the bytes that move between levels.

Statements are counted exactly, without running them: the turns of a loop in which nothing but offsets differs
are counted once and multiplied.

Bytes follow from footprints. Whatever one turn of a loop touches is still in a cache at the next turn, if the
cache holds it; then the loop brings in the elements of all turns once. Where the cache does not, each turn
brings in its own. What the whole call touches is in the nearest cache that holds it before the call begins,
as it is for calls that are repeated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from tilewright.ir.expressions import Expression, Name
from tilewright.ir.nodes import If, Let, Loop, Program, Slice, Statement
from tilewright.machine.machine import Machine
from tilewright.macro.cost import KEPT_SHARE
from tilewright.macro.footprint import AccessLattice, LatticeAxis, distinct, touched
from tilewright.macro.levels import FAR_LEVELS
from tilewright.macro.slopes import Evaluator, Sloped, flat, parts_of
from tilewright.macro.touches import Touch, extents_of, touches_of
from tilewright.records import dataclass

_Names: TypeAlias = dict[str, Sloped]
_Numbers: TypeAlias = Callable[[Expression], int]


class StatementRun(NamedTuple):
    """A statement with its sizes by name, as it runs a number of times."""

    node: Statement
    sizes: tuple[tuple[str, int], ...]

    @property
    def extents(self) -> dict[str, int]:
        """The sizes by name."""
        return dict(self.sizes)


class Holder(NamedTuple):
    """What keeps elements close: a cache, or the TLB.

    name : of the level that delivers what it lacks: "l2" of L1, "l3" or "memory" of L2, "tlb".
    grain : bytes of a line or a page.
    capacity : bytes that it keeps.
    """

    name: str
    grain: int
    capacity: float


def holders_of(machine: Machine) -> tuple[Holder, ...]:
    """The caches of a machine, L1 first, then the TLB if its size is known."""
    caches = [cache for cache in (machine.l1, machine.l2, machine.l3) if cache is not None]
    beyond = [*("l2", "l3")[: len(caches) - 1], "memory"]
    shares = (1.0, KEPT_SHARE, KEPT_SHARE)
    found = [
        Holder(name, cache.line, cache.size * share)
        for name, cache, share in zip(beyond, caches, shares, strict=False)
    ]
    pages = max(machine.core.tlb_pages)
    if pages:
        found.append(Holder("tlb", machine.page_bytes, pages * machine.page_bytes))
    return tuple(found)


@dataclass(frozen=True)
class Counts:
    """What a call does.

    Attributes
    ----------
    runs : how often each statement runs with which sizes.
    missed : bytes that the holder in front of each level lacks; walks of pages under "tlb".
    touched : distinct bytes of cache lines.
    """

    runs: Mapping[StatementRun, int]
    missed: Mapping[str, float]
    touched: float

    @property
    def bytes_by_level(self) -> dict[str, float]:
        """Bytes that come from each level and from none beyond it."""
        levels = [name for name in FAR_LEVELS if name in self.missed]
        beyond = {name: self.missed[after] for name, after in pairwise(levels)}
        return {name: max(self.missed[name] - beyond.get(name, 0.0), 0.0) for name in levels}


@dataclass(frozen=True)
class _Summary:
    """One execution of a block; bytes that are stored past the caches are neither in windows nor missed."""

    runs: Counter[tuple[int, tuple[int, ...]]]
    windows: tuple[AccessLattice, ...]
    missed: tuple[float, ...]
    past: float = 0.0


class _Counter:
    """Walks the tree of a program once for every set of sizes that changes what a block does."""

    def __init__(
        self, program: Program, machine: Machine, tables: Mapping[str, Sequence[int]], *, whole: bool = False
    ) -> None:
        """With `whole`, windows that are stored past the caches are among the others."""
        self.bytes = {buffer.name: buffer.dtype.bits / 8 for buffer in program.buffers}
        self.holders = holders_of(machine)
        self.evaluate = Evaluator(tables)
        self.whole = whole
        self.nodes: dict[int, Statement] = {}
        self.keys: dict[int, tuple[Expression, ...]] = {}
        self.known: dict[tuple[int, tuple[int, ...]], _Summary] = {}

    def block(self, body: tuple[Statement, ...], names: _Names) -> _Summary:
        """Statements one after the other."""
        names = dict(names)
        found = []
        for statement in body:
            match statement:
                case Let(name, value):
                    names[name] = self.evaluate.integer(value, names)
                case Loop():
                    found.append(self.loop(statement, names))
                case If(condition, then, otherwise):
                    found.append(
                        self.block(then if self.evaluate.holds(condition, names) else otherwise, names)
                    )
                case _:
                    found.append(self.statement(statement, names))
        if len(found) == 1:
            return found[0]
        runs: Counter[tuple[int, tuple[int, ...]]] = Counter()
        for one in found:
            runs.update(one.runs)
        windows = distinct(window for one in found for window in one.windows)
        kept = self.kept(windows, windows, [(one, 1) for one in found])
        return _Summary(runs, windows, kept, sum(one.past for one in found))

    def kept(
        self,
        again: tuple[AccessLattice, ...],
        windows: tuple[AccessLattice, ...],
        parts: list[tuple[_Summary, int]],
    ) -> tuple[float, ...]:
        """Bytes that each holder lacks: distinct ones if it holds `again`, else those of each part."""
        held = {one.grain: touched(again, one.grain) * one.grain for one in self.holders}
        moved: dict[tuple[int, bool], float] = {}
        found = []
        for at, holder in enumerate(self.holders):
            apart = sum(one.missed[at] * times for one, times in parts)
            if apart and held[holder.grain] <= holder.capacity:
                kind = (holder.grain, holder.name != "tlb")
                if kind not in moved:
                    moved[kind] = touched(windows, holder.grain, moved=kind[1]) * holder.grain
                apart = min(apart, moved[kind])
            found.append(apart)
        return tuple(found)

    def loop(self, loop: Loop, names: _Names) -> _Summary:
        """All turns; those whose sizes are equal are looked at once."""
        begin, end, step = (self.evaluate.integer(one, names) for one in (loop.begin, loop.end, loop.step))
        turns = range(begin.value, end.value, step.value)
        if not turns:
            return _Summary(Counter(), (), (0.0,) * len(self.holders))
        times: Counter[tuple[int, ...]] = Counter()
        inside: dict[tuple[int, ...], _Summary] = {}
        slopes = {**begin.slopes, loop.axis: 1}
        equal = loop.axis not in self.names(loop)
        for turn in turns[:1] if equal else turns:
            here = {**names, loop.axis: Sloped(turn, slopes)}
            key = self.key(loop, here)
            times[key] += len(turns) if equal else 1
            if key not in inside:
                inside[key] = self.turn(loop, key, here)
        runs: Counter[tuple[int, tuple[int, ...]]] = Counter()
        for key, count in times.items():
            for run, often in inside[key].runs.items():
                runs[run] += often * count
        most = max(inside.values(), key=lambda one: sum(window.elements for window in one.windows))
        extent = (end.value - begin.value) / step.value
        windows = tuple(window.over(loop.axis, step.value, extent) for window in most.windows)
        parts = [(inside[key], count) for key, count in times.items()]
        past = sum(one.past * count for one, count in parts)
        return _Summary(runs, windows, self.kept(most.windows, windows, parts), past)

    def turn(self, loop: Loop, key: tuple[int, ...], names: _Names) -> _Summary:
        """One turn of a loop."""
        place = (id(loop), key)
        if place not in self.known:
            self.known[place] = self.block(loop.body, names)
        return self.known[place]

    def key(self, loop: Loop, names: _Names) -> tuple[int, ...]:
        """The values that decide what a turn of a loop does, offsets aside."""
        return tuple(self.evaluate.integer(one, names).value for one in self.deciding(loop))

    def deciding(self, loop: Loop) -> tuple[Expression, ...]:
        """The expressions whose values are the key of a loop."""
        if id(loop) not in self.keys:
            self.keys[id(loop)] = tuple(dict.fromkeys(_deciding(loop.body)))
        return self.keys[id(loop)]

    def names(self, loop: Loop) -> set[str]:
        """The names that these mention."""
        return {name for one in self.deciding(loop) for name in _names_of(one)}

    def statement(self, node: Statement, names: _Names) -> _Summary:
        """One primitive."""
        self.nodes[id(node)] = node
        sizes = {name: self.evaluate.integer(one, names).value for name, one in extents_of(node).items()}
        runs = Counter({(id(node), tuple(sizes.values())): 1})
        if any(sizes.get(name) == 0 for name in ("rows", "columns", "lanes", "elements")):
            return _Summary(runs, (), (0.0,) * len(self.holders))
        touches = list(touches_of(node))
        past = [one for one in touches if one.written and self.evaluate.integer(one.past, names).value]
        windows = tuple(self.window(touch, names) for touch in touches if self.whole or touch not in past)
        stored = sum(self.window(touch, names).elements * self.bytes[touch.part.buffer] for touch in past)
        missed = tuple(
            touched(windows, one.grain, moved=one.name != "tlb") * one.grain for one in self.holders
        )
        return _Summary(runs, windows, missed, stored)

    def window(self, touch: Touch, names: _Names) -> AccessLattice:
        """A window in bytes."""
        part, size = touch.part, self.bytes[touch.part.buffer]

        def number(value: Expression) -> int:
            return self.evaluate.integer(value, names).value

        offset = self.evaluate.integer(part.offset, names)
        transfers = 2 if touch.written else 1
        slopes = {axis: slope * size for axis, slope in offset.slopes.items()}
        axes = tuple(
            LatticeAxis(stride * size, count)
            for stride, count in _axes(part, number, (number(touch.rows), number(touch.columns)))
            if count > 1 and stride
        )
        return AccessLattice(part.buffer, int(offset.value * size), size, axes, slopes, transfers)


def _axes(part: Slice, number: _Numbers, shape: tuple[int, int]) -> Iterator[tuple[float, float]]:
    """Strides in elements and counts of the axes of a window."""
    rows, columns = shape
    first, second = (number(stride) for stride in part.strides)
    if part.panels is None:
        yield first, rows
    else:
        lanes = min(part.panels.lanes, rows)
        yield first, lanes
        yield number(part.panels.stride), rows / max(lanes, 1)
    within = min(part.interleave, columns)
    yield 1, within if part.interleave > 1 else 1
    yield second, columns / max(within, 1) if part.interleave > 1 else columns


def _deciding(body: tuple[Statement, ...]) -> list[Expression]:
    """The expressions over names from outside of a block that decide its sizes, bounds and branches."""
    inside, lets = _bound_in(body)
    found: list[Expression] = []
    seen: set[str] = set()

    def collect(node: Expression) -> None:
        names = set(_names_of(node))
        if not names:
            return
        if not names & inside:
            found.append(node)
            return
        for name in sorted(names & lets.keys() - seen):
            seen.add(name)
            for value in lets[name]:
                collect(value)
        for part in parts_of(node):
            collect(part)

    for node in _sizes_in(body):
        collect(node)
    return found


def _bound_in(body: tuple[Statement, ...]) -> tuple[set[str], dict[str, list[Expression]]]:
    """The names that a block binds, and the values of those that are no axes."""
    names: set[str] = set()
    lets: dict[str, list[Expression]] = {}
    for statement in body:
        match statement:
            case Let(name, value):
                names.add(name)
                lets.setdefault(name, []).append(value)
            case Loop(axis=axis, body=inner):
                names.add(axis)
                more, further = _bound_in(inner)
                names |= more
                lets |= {name: lets.get(name, []) + values for name, values in further.items()}
            case If(_, then, otherwise):
                more, further = _bound_in((*then, *otherwise))
                names |= more
                lets |= {name: lets.get(name, []) + values for name, values in further.items()}
    return names, lets


def _sizes_in(body: tuple[Statement, ...]) -> Iterator[Expression]:
    """Bounds of loops, sides of conditions, sizes of statements."""
    for statement in body:
        match statement:
            case Let():
                pass
            case Loop(_, begin, end, step, inner):
                yield from (begin, end, step)
                yield from _sizes_in(inner)
            case If(condition, then, otherwise):
                for conjunction in condition.terms:
                    for term in conjunction.terms:
                        yield from (term.left, term.right)
                yield from _sizes_in((*then, *otherwise))
            case _:
                yield from extents_of(statement).values()


def _names_of(node: Expression) -> Iterator[str]:
    """The names that an expression mentions."""
    if isinstance(node, Name):
        yield node.name
    for part in parts_of(node):
        yield from _names_of(part)


def count_program(
    program: Program,
    machine: Machine,
    sizes: Mapping[str, int],
    tables: Mapping[str, Sequence[int]] | None = None,
) -> Counts:
    """Count the statements of one call and the bytes that it moves.

    Parameters
    ----------
    sizes : a value for each run-time size.
    tables : the content of buffers of integers that the program reads.

    Raises
    ------
    InvalidTileIr : if a size or a table is missing.
    """
    counter = _Counter(program, machine, tables or {})
    names = {name: flat(value) for name, value in sizes.items()}
    whole = counter.block(program.body, names)
    runs: Counter[StatementRun] = Counter()
    for (at, extents), times in whole.runs.items():
        node = counter.nodes[at]
        runs[StatementRun(node, tuple(zip(extents_of(node), extents, strict=True)))] += times
    missed = {}
    for holder, count in zip(counter.holders, whole.missed, strict=True):
        resident = touched(whole.windows, holder.grain) * holder.grain <= holder.capacity
        missed[holder.name] = 0.0 if resident else count
        if holder.name != "tlb":
            missed[holder.name] += whole.past
    line = counter.holders[0].grain
    return Counts(runs, missed, touched(whole.windows, line) * line + whole.past)


def reaches(
    program: Program,
    machine: Machine,
    sizes: Mapping[str, int],
    tables: Mapping[str, Sequence[int]] | None = None,
) -> dict[str, float]:
    """Bytes from the start of each buffer to the end of what one call touches; more where loops shrink."""
    counter = _Counter(program, machine, tables or {}, whole=True)
    whole = counter.block(program.body, {name: flat(value) for name, value in sizes.items()})
    found: dict[str, float] = {}
    for window in whole.windows:
        found[window.buffer] = max(found.get(window.buffer, 0.0), window.offset + window.extent)
    return found
