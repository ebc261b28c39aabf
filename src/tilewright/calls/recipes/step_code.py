"""Steps of recipes in machine code: the team of a step, and the words that its function is given."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from tilewright.calls.object_code import ObjectCode
from tilewright.calls.recipes.recipe import StepField
from tilewright.llvm.build import Callee, Module
from tilewright.llvm.values import INT64, VOID, Type, Value, int64, null
from tilewright.threads.pool import POLL_WORK, TEAM_WORK
from tilewright.threads.pool_memory import APART, PoolState, TeamMemory


class TeamRequest(NamedTuple):
    """Parameters for opening a team: the pool, whether to open one, the thread limit, whether the call is
    long.
    """

    state: Value
    wanted: Value
    threads: Value
    long: Value


class StepCode(ObjectCode):
    """A function that runs steps of recipes.

    Attributes
    ----------
    teams : those closed: whether each was open, and where it is.
    """

    def __init__(
        self,
        module: Module,
        name: str,
        result: Type,
        arguments: Sequence[tuple[str, Type]],
        *,
        exported: bool = False,
    ) -> None:
        super().__init__(module, name, result, arguments, exported=exported)
        self.teams: list[tuple[Value, Value]] = []

    def takes_team(self, work: Value, size: Value) -> Value:
        """Whether this many multiply-adds take a team of a pool of a size."""
        several = self.and_(self.icmp(">", work, TEAM_WORK), self.icmp(">", size, 1))
        return self.or_(several, self.icmp(">", work, POLL_WORK))

    @contextmanager
    def team(self, wish: TeamRequest) -> Iterator[Value]:
        """The team of the call, opened without the GIL; null if it uses none."""
        memory = self.alloca(INT64, ctypes.sizeof(TeamMemory) // 8, APART)
        with self.once_if(wish.wanted, [null()]) as (_, opened):
            code = self.pointer(wish.state, PoolState.open)
            arguments = [wish.state, memory, wish.threads, self.zext(wish.long, INT64)]
            self.call(Callee(VOID, code.text), arguments)
            opened([memory])
        yield opened.results[0]
        with self.when(wish.wanted):
            self.call(Callee(VOID, self.pointer(wish.state, PoolState.close).text), [memory])
        self.teams.append((wish.wanted, memory))

    def fill(self, step: Value, words: Value, bases: Value) -> None:
        """The words of a step, with the addresses that they start from."""
        given = self.at(step, 8 * StepField.ARGUMENTS)
        with self.loop(int64(0), self.word(step, StepField.COUNT), int64(1), "argument") as number:
            pair = self.at(given, self.mul(number, 16))
            base = self.word(self.item(bases, self.word(pair)))
            self.put(self.item(words, number), 0, self.add(base, self.word(pair, 8)))
