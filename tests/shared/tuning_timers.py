"""Timers of tuning sessions that measure nothing: kernels of known speeds, and a clock that they set."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

from tilewright.machine.machine import Machine
from tilewright.tools.explore.cases import Case
from tilewright.tools.explore.tuning.choice import Round


class FakeTimer:
    """A timer whose kernels run at given speeds.

    Parameters
    ----------
    speeds : of a constant's value, for the types that have it; 1 for all others.
    round_seconds : that each round takes on the clock.
    stop_after : rounds after which Ctrl-C is pressed; None: never.
    """

    def __init__(
        self,
        speeds: Mapping[tuple[str, int], float],
        round_seconds: float = 0.1,
        stop_after: int | None = None,
    ) -> None:
        self._speeds, self._round_seconds, self._stop_after = speeds, round_seconds, stop_after
        self.now, self.rounds = 0.0, 0
        self.prepared: list[tuple[tuple[Machine, ...], tuple[Case, ...]]] = []

    def __enter__(self) -> FakeTimer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    @property
    def clock(self) -> Callable[[], float]:
        """The time, which passes in rounds."""
        return lambda: self.now

    def prepare(self, machines: Sequence[Machine], cases: Sequence[Case]) -> None:
        """Remembers what is to be measured."""
        self.prepared.append((tuple(machines), tuple(cases)))

    def measure(self, order: random.Random) -> Round:
        """Times that vary by a thousandth."""
        self.rounds += 1
        if self.rounds == self._stop_after:
            raise KeyboardInterrupt
        self.now += self._round_seconds
        machines, cases = self.prepared[-1]
        return [
            [(1 + order.random() / 1000) / self._speed(machine, case) for case in cases]
            for machine in machines
        ]

    def _speed(self, machine: Machine, case: Case) -> float:
        tuning = machine.tuning(case.types.name)
        product = 1.0
        for one in () if tuning is None else tuning.constants:
            product *= self._speeds.get((one.name, one.value), 1.0)
        return product
