"""Functions of spliced programs that make tables of panels from offsets, and compare where rows are.

Offsets are arrays of 64-bit integers, of elements where not said otherwise.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.ir.primitives.tables import NO_STEP
from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.values import INT1, INT64, POINTER, VOID, Type, Value, int64

#: Bytes of an entry of a table.
ENTRY = 8


def entry(f: Function, table: Value, index: Value) -> Value:
    """An entry of a table."""
    return f.load(INT64, f.at(table, f.mul(index, ENTRY)), ENTRY)


def put(f: Function, value: Value, table: Value, index: Value) -> None:
    """Set an entry of a table."""
    f.store(value, f.at(table, f.mul(index, ENTRY)), ENTRY)


def chunk_of(f: Function, part: Value, width: int, unit: int) -> Value:
    """Lanes of each panel of a part: whole panels of rows; columns in panels alike, of whole vectors."""
    if unit == 1:
        return int64(width)
    panels = f.ceildiv(part, int64(width))
    return f.mul(f.ceildiv(part, f.mul(panels, unit)), unit)


class TableCode:
    """The functions, defined in a module where they are needed first.

    Parameters
    ----------
    module : of the spliced functions.
    prefix : of their names.

    They name no CPU, so that callers compiled for several CPUs share them.
    """

    def __init__(self, module: Module, prefix: str) -> None:
        self._module, self._prefix = module, prefix

    def _function(
        self,
        name: str,
        result: Type,
        arguments: tuple[tuple[str, Type], ...],
        body: Callable[[Function], None],
    ) -> Callee:
        full = f"{self._prefix}{name}"
        known = self._module.find(full)
        if known is not None:
            return known
        words = f"{self._module.attributes} noinline"
        f = self._module.define(full, result, arguments, exported=True, attributes=words)
        body(f)
        return f.callee

    @property
    def panels(self) -> Callee:
        """panels(lanes, part, width, chunk, at, c_at, to, c_to, counts, steps, c_steps) -> panels.

        The lanes of one side, cut at the ends of parts, in panels of some chunk each; see `ScatterPanels`.
        """
        tables = tuple((name, POINTER) for name in ("at", "c_at", "to", "c_to", "counts", "steps", "c_steps"))
        sizes = tuple((name, INT64) for name in ("lanes", "part", "width", "chunk"))
        return self._function("panels", INT64, (*sizes, *tables), self._panels)

    def _panels(self, f: Function) -> None:
        g = f.arguments
        step = self.step
        zero = int64(0)
        with f.carried_loop(zero, g["lanes"], g["part"], [zero]) as (first, (number,), outer):
            with f.carried_loop(zero, g["part"], g["chunk"], [number]) as (begin, (panel,), inner):
                count = f.minimum(g["chunk"], f.sub(g["part"], begin))
                start, last = f.add(first, begin), f.sub(count, 1)
                place = f.mul(panel, g["width"])
                with f.loop(zero, g["width"], int64(1)) as lane:
                    source = f.add(start, f.minimum(lane, last))
                    for at, to in (("at", "to"), ("c_at", "c_to")):
                        put(f, entry(f, g[at], source), g[to], f.add(place, lane))
                put(f, count, g["counts"], panel)
                for to, steps in (("to", "steps"), ("c_to", "c_steps")):
                    lanes = f.at(g[to], f.mul(place, ENTRY))
                    put(f, f.call(step, [lanes, count]), g[steps], panel)
                inner([f.add(panel, 1)])
            outer([inner.results[0]])
        f.ret(outer.results[0])

    @property
    def step(self) -> Callee:
        """step(at, count) -> the distance between lanes of a panel, or that there is no common one."""
        return self._function("step", INT64, (("at", POINTER), ("count", INT64)), self._step)

    def _step(self, f: Function) -> None:
        at, count = f.arguments["at"], f.arguments["count"]
        with f.when(f.icmp("<", count, 2)):
            f.ret(int64(1))
        first = f.sub(entry(f, at, int64(1)), entry(f, at, int64(0)))
        with f.carried_loop(int64(1), count, int64(1), [int64(0)]) as (lane, (uneven,), advance):
            distance = f.sub(entry(f, at, lane), entry(f, at, f.sub(lane, 1)))
            advance([f.or_(uneven, f.xor(distance, first))])
        f.ret(f.select(f.icmp("==", advance.results[0], 0), first, int64(NO_STEP)))

    @property
    def runs(self) -> Callee:
        """runs(at, count, to): how many depths from each one on keep one distance."""
        arguments = (("at", POINTER), ("count", INT64), ("to", POINTER))
        return self._function("runs", VOID, arguments, self._runs)

    def _runs(self, f: Function) -> None:
        at, count, to = (f.arguments[name] for name in ("at", "count", "to"))
        with f.loop(int64(0), f.minimum(count, int64(2)), int64(1)) as behind:
            put(f, f.add(behind, 1), to, f.sub(f.sub(count, 1), behind))
        with f.loop(int64(2), count, int64(1)) as behind:
            place = f.sub(f.sub(count, 1), behind)
            here, one, two = (entry(f, at, f.add(place, ahead)) for ahead in range(3))
            even = f.icmp("==", f.sub(one, here), f.sub(two, one))
            put(f, f.select(even, f.add(entry(f, to, f.add(place, 1)), 1), int64(2)), to, place)
        f.ret()

    @property
    def extreme(self) -> Callee:
        """extreme(at, count, sign) -> the least of entries times a sign, times it again."""
        arguments = (("at", POINTER), ("count", INT64), ("sign", INT64))
        return self._function("extreme", INT64, arguments, self._extreme)

    def _extreme(self, f: Function) -> None:
        at, count, sign = (f.arguments[name] for name in ("at", "count", "sign"))
        start = f.mul(entry(f, at, int64(0)), sign)
        with f.carried_loop(int64(1), count, int64(1), [start]) as (place, (found,), advance):
            advance([f.minimum(found, f.mul(entry(f, at, place), sign))])
        f.ret(f.mul(advance.results[0], sign))

    @property
    def apart(self) -> Callee:
        """apart(at, count, begin, length, size, and the same of others) -> whether no rows overlap.

        Row i is the `length` bytes from `begin` + at[i] * size on.
        """
        one = (("at", POINTER), ("count", INT64), ("begin", INT64), ("length", INT64), ("size", INT64))
        arguments = tuple((f"{side}{name}", kind) for side in ("", "other_") for name, kind in one)
        return self._function("apart", INT1, arguments, self._apart)

    def _apart(self, f: Function) -> None:
        g, extreme = f.arguments, self.extreme

        def row(side: str, offset: Value) -> tuple[Value, Value]:
            begin = f.add(g[f"{side}begin"], f.mul(offset, g[f"{side}size"]))
            return begin, f.add(begin, g[f"{side}length"])

        ends = []
        for side in ("", "other_"):
            low, high = (
                row(side, f.call(extreme, [g[f"{side}at"], g[f"{side}count"], int64(sign)]))
                for sign in (1, -1)
            )
            ends.append((low[0], high[1]))
        (first, last), (other_first, other_last) = ends
        with f.when(f.or_(f.icmp("<=", last, other_first), f.icmp("<=", other_last, first))):
            f.ret(Value(INT1, "true"))
        with f.loop(int64(0), g["count"], int64(1)) as place:
            begin, end = row("", entry(f, g["at"], place))
            with f.loop(int64(0), g["other_count"], int64(1)) as other:
                other_begin, other_end = row("other_", entry(f, g["other_at"], other))
                meet = f.and_(f.icmp("<", begin, other_end), f.icmp("<", other_begin, end))
                with f.when(meet):
                    f.ret(Value(INT1, "false"))
        f.ret(Value(INT1, "true"))

    @property
    def distinct(self) -> Callee:
        """distinct(at, count, length) -> whether no two rows of some elements overlap."""
        arguments = (("at", POINTER), ("count", INT64), ("length", INT64))
        return self._function("distinct", INT1, arguments, self._distinct)

    def _distinct(self, f: Function) -> None:
        at, count, length = (f.arguments[name] for name in ("at", "count", "length"))
        ordered = Value(INT1, "true")
        with f.carried_loop(int64(1), count, int64(1), [ordered, ordered]) as (place, (up, down), advance):
            away = f.sub(entry(f, at, place), entry(f, at, f.sub(place, 1)))
            above = f.and_(up, f.icmp("<=", length, away))
            below = f.and_(down, f.icmp("<=", length, f.sub(int64(0), away)))
            advance([above, below])
        with f.when(f.or_(*advance.results)):
            f.ret(ordered)
        with f.loop(int64(1), count, int64(1)) as place:
            here = entry(f, at, place)
            with f.loop(int64(0), place, int64(1)) as other:
                away = f.sub(here, entry(f, at, other))
                distance = f.maximum(away, f.sub(int64(0), away))
                with f.when(f.icmp("<", distance, length)):
                    f.ret(Value(INT1, "false"))
        f.ret(ordered)
