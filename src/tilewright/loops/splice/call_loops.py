"""The loops around a kernel call: one after the other, or as tasks of a team."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from tilewright.llvm.build import Callee, Function
from tilewright.llvm.team import BODY_ARGUMENTS, RUN_OFFSET, Environment
from tilewright.llvm.values import POINTER, VOID, Value, constant, int64
from tilewright.loops.nests.nest import ProductDimension
from tilewright.loops.splice.arithmetic import Invariants, least
from tilewright.loops.splice.plan import KernelPlan
from tilewright.records import dataclass
from tilewright.spec.dtype import DType
from tilewright.spec.roles import DimensionRole

#: Multiply-adds of a task: a microsecond, many times what it takes to hand out one.
TASK_WORK = 1 << 17
#: Calls are counted up to this, so that their number times the work of one does not overflow.
MOST_CALLS = 1 << 20

#: Writes the kernel call, given its arguments and the index of the thread.
Write = Callable[[Function, Mapping[str, Value], Value], None]


@dataclass(frozen=True)
class CallLoops:
    """The loops around a call.

    Attributes
    ----------
    roles : of each loop, outermost first; those of role K come last.
    acc : the type of beta.
    values : in the function in which the loops are: "start a" for the begin of each operand, "count 0" for
        the trip count of the first loop, "step 0 a" for the bytes that it moves A by, and those arguments of
        the call that are the same in all iterations.
    """

    roles: tuple[DimensionRole, ...]
    acc: DType
    values: Mapping[str, Value]

    @classmethod
    def of(
        cls,
        invariants: Invariants,
        plan: KernelPlan,
        counts: Mapping[ProductDimension, Value],
        given: Mapping[str, Value],
    ) -> CallLoops:
        """The loops of a plan."""
        f, values = invariants.f, dict(given)
        for matrix in plan.matrices:
            place = invariants.address(matrix.operand.memory.base, matrix.operand.offset)
            values[f"start {matrix.name}"] = place
        for number, one in enumerate(plan.around):
            count = counts[one]
            if one.role is DimensionRole.K:
                # Where one of several depths is 0, one call of depth 0 does what beta asks for.
                some = f.icmp("<", int64(0), count)
                values["k"] = f.select(some, values["k"], int64(0))
                count = f.maximum(count, int64(1))
            values[f"count {number}"] = count
            for name in "abc":
                values[f"step {number} {name}"] = invariants.integer(getattr(one, name), f)
        return cls(tuple(one.role for one in plan.around), plan.types.acc, values)

    def with_arguments(self, **more: Value) -> CallLoops:
        """The loops around a call with further arguments."""
        return replace(self, values={**self.values, **more})

    @property
    def independent(self) -> int:
        """Loops, from the outermost on, whose iterations may run in any order."""
        return sum(role is not DimensionRole.K for role in self.roles)

    def calls(self, f: Function) -> Value:
        """Iterations of the independent loops, counted up to `MOST_CALLS`."""
        total = int64(1)
        for number in range(self.independent):
            count = least(f, self.values[f"count {number}"], int64(MOST_CALLS))
            total = least(f, f.mul(total, count), int64(MOST_CALLS))
        return total

    def write(self, f: Function, write: Write) -> None:
        """One call after the other."""
        with self._loops(f, range(len(self.roles)), self._starts) as given:
            write(f, given, int64(0))

    def write_tasks(self, f: Function, team: Value, work: Value, write: Write) -> None:
        """Calls as tasks of a team, in any order; each task is of about `TASK_WORK` or one call.

        Before: ``for i: for j: call(i, j)``. After: a function of i and j, and a call of the team with its
        address.
        """
        total = int64(1)
        for number in range(self.independent):
            total = f.mul(total, self.values[f"count {number}"])
        chunk = f.ceildiv(int64(TASK_WORK), f.maximum(work, int64(1)))
        environment = Environment({**self.values, "total": total, "chunk": chunk})
        number = sum(name.startswith(f"{f.name}_calls_") for name in f.module.functions)
        name = f"{f.name}_calls_{number}"
        body = f.module.define(name, VOID, BODY_ARGUMENTS, exported=True, attributes=f.attributes)
        inside = environment.inside(body)
        self.with_arguments(**inside).write_task(body, write)
        body.ret()
        run = f.load(POINTER, f.at(team, RUN_OFFSET), 8)
        given = [team, Value(POINTER, body.callee.text), environment.keep(f, body), f.ceildiv(total, chunk)]
        f.call(Callee(VOID, run.text), given)

    def write_task(self, f: Function, write: Write) -> None:
        """The calls of one task, in the function of tasks."""
        values, (_, thread, task) = self.values, f.arguments.values()
        begin = f.mul(task, values["chunk"])
        end = f.minimum(f.add(begin, values["chunk"]), values["total"])
        with f.loop(begin, end, int64(1), "call") as call:
            rest, starts = call, self._starts
            for number in reversed(range(self.independent)):  # the innermost loop is the fastest
                index = rest
                if number:
                    rest = f.udiv(index, values[f"count {number}"])
                    index = f.sub(index, f.mul(rest, values[f"count {number}"]))
                starts = self._moved(f, starts, number, index)
            with self._loops(f, range(self.independent, len(self.roles)), starts) as given:
                write(f, given, thread)

    @property
    def _starts(self) -> dict[str, Value]:
        return {name: self.values[f"start {name}"] for name in "abc"}

    def _moved(self, f: Function, places: Mapping[str, Value], number: int, index: Value) -> dict[str, Value]:
        """Operands at one index of a loop."""
        steps = {name: self.values[f"step {number} {name}"] for name in places}
        return {name: f.at(place, f.mul(index, steps[name])) for name, place in places.items()}

    @contextmanager
    def _loops(
        self, f: Function, numbers: Sequence[int], places: Mapping[str, Value]
    ) -> Iterator[dict[str, Value]]:
        """Some of the loops; yields the arguments of the call. Of several calls that accumulate into the same
        elements, the first one applies beta.
        """
        with ExitStack() as loops:
            first: Value | None = None
            for number in numbers:
                index = loops.enter_context(f.loop(int64(0), self.values[f"count {number}"], int64(1)))
                places = self._moved(f, places, number, index)
                if self.roles[number] is DimensionRole.K:
                    begins = f.icmp("==", index, 0)
                    first = begins if first is None else f.and_(first, begins)
            beta = self.values["beta"]
            if first is not None:
                beta = f.select(first, beta, constant(self.acc, 1))
            yield {**self.values, **places, "beta": beta}
