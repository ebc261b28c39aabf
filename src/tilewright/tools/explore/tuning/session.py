"""A tuning session: classes of shapes are measured one after the other, and what is faster is kept.

A session keeps the finding of each class as soon as it has it, so that one that was stopped goes on where it
was. Findings count as long as the models choose what they chose when these were measured.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from tilewright.machine.findings import Finding, Findings, merged, tunings_of
from tilewright.machine.machine import Machine
from tilewright.machine.tuning_file import TuningFile
from tilewright.records import dataclass
from tilewright.spec.problem import ProductTypes
from tilewright.tools.explore.cases import Case
from tilewright.tools.explore.tuning.choice import (
    FEWEST_ROUNDS,
    FIRST_OTHER,
    MOST_ROUNDS,
    Round,
    VariantComparison,
    compare,
    fastest,
)
from tilewright.tools.explore.tuning.classes import CLASSES, Shape, ShapeClass, Situation

#: Share of a class's time in which variants are compared; the rest confirms the best one.
COMPARING_SHARE = 0.6

#: Shapes of a recorded program with the operations that it spent on each, by types.
Recorded = Mapping[ProductTypes, Mapping[Shape, float]]


class Timer(Protocol):
    """What measures kernels."""

    def prepare(self, machines: Sequence[Machine], cases: Sequence[Case]) -> None:
        """Compiles a kernel for each machine, also for equal ones, and allocates operands; warms up.

        It checks that all kernels give the same bits. Code and memory are in other places each time.

        Raises
        ------
        OtherBits : a kernel gives another result than the first one.
        """

    def measure(self, order: random.Random) -> Round:
        """Times of the kernels, each once on every case, in cycles at the peak."""


class SessionStep(NamedTuple):
    """One class of one type that a session measures."""

    types: ProductTypes
    shape_class: ShapeClass


@dataclass(frozen=True)
class SessionPlan:
    """What a session measures.

    Attributes
    ----------
    machine : this host as the models see it.
    types : of products.
    seconds : after which no other class is begun.
    recorded : shapes of a program; None for those of the classes.
    again : whether classes are measured that have a finding.
    seed : of the order.
    """

    machine: Machine
    types: tuple[ProductTypes, ...]
    seconds: float
    recorded: Recorded | None = None
    again: bool = False
    seed: int = 0

    @property
    def steps(self) -> tuple[SessionStep, ...]:
        """Every class of every type, each type's classes in their order."""
        return tuple(SessionStep(types, one) for types in self.types for one in CLASSES)


@dataclass(frozen=True)
class Outcome:
    """What became of one step.

    Attributes
    ----------
    finding : what was found; None if there was no time, or the recorded program has no such shape.
    is_new : whether it was measured in this session.
    is_left : whether there was no time for it.
    """

    step: SessionStep
    finding: Finding | None
    is_new: bool = False
    is_left: bool = False


class Session:
    """Carries out a plan.

    Parameters
    ----------
    plan : what is measured.
    file : where findings are kept.
    timer : what measures.
    on_round : called after each round with the share of its step that is done.
    clock : seconds.
    """

    def __init__(
        self,
        plan: SessionPlan,
        file: TuningFile,
        timer: Timer,
        on_round: Callable[[float], None] = lambda _share: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plan, self._file, self._timer, self._on_round, self._clock = plan, file, timer, on_round, clock
        self._order = random.Random(plan.seed)  # noqa: S311 - an order, not a secret
        self.findings: Findings = file.load()

    def run(self) -> Iterator[Outcome]:
        """Measures step after step; each outcome follows when its finding is kept."""
        end = self._clock() + self._plan.seconds
        steps = self._plan.steps
        for number, step in enumerate(steps):
            model, shapes = self._prepared(step)
            known = self._known(step)
            if not shapes:
                yield Outcome(step, None)
            elif step.shape_class.is_done(known, model, shapes) and not self._plan.again:
                yield Outcome(step, known)
            elif (left := end - self._clock()) <= 0:
                yield Outcome(step, None, is_left=True)
            else:
                finding = self._measured(step, model, shapes, left / self._open(steps[number:]))
                self._keep(step, finding)
                yield Outcome(step, finding, is_new=True)

    def _prepared(self, step: SessionStep) -> tuple[Situation, tuple[Shape, ...]]:
        """The models' choice of a class beside what else was found, and the shapes."""
        machine = replace(self._plan.machine, tunings=tunings_of(self.findings))
        model = Situation(machine, step.types).without(step.shape_class.constants)
        recorded = self._plan.recorded
        mine = None if recorded is None else recorded.get(step.types, {})
        return model, step.shape_class.measured_shapes(model, mine)

    def _known(self, step: SessionStep) -> Finding | None:
        kept = self.findings.get(step.types.name, ())
        return next((one for one in kept if one.shape_class == step.shape_class.name), None)

    def _open(self, steps: Sequence[SessionStep]) -> int:
        """How many steps are not done, as far as is known now."""
        count = 0
        for step in steps:
            model, shapes = self._prepared(step)
            done = step.shape_class.is_done(self._known(step), model, shapes) and not self._plan.again
            count += bool(shapes) and not done
        return max(count, 1)

    def _keep(self, step: SessionStep, finding: Finding) -> None:
        self.findings = self._file.update(lambda kept: merged(kept, step.types.name, finding))

    def _measured(
        self, step: SessionStep, model: Situation, shapes: Sequence[Shape], seconds: float
    ) -> Finding:
        """The finding of one class, in about so many seconds."""
        begin, one = self._clock(), step.shape_class
        variants = one.variants(model)
        chosen, comparison, rounds = model, None, 0
        if variants:
            # The model's choice twice: what differs between the two is noise.
            self._prepare(step, (model, model, *variants), shapes)
            compared = self._rounds(begin + COMPARING_SHARE * seconds, 0.0)
            weights = self._weights(step, shapes)
            comparisons = compare(compared, weights)
            best = fastest(comparisons)
            if best is not None:
                winner = variants[best.variant - FIRST_OTHER]
                self._prepare(step, (model, model, winner), shapes)
                confirming = self._rounds(begin + seconds, COMPARING_SHARE)
                (comparison,) = compare(confirming, weights)
                rounds = len(confirming)
                chosen = winner if comparison.is_faster else model
            else:
                rounds = len(compared)
                comparison = max(comparisons, key=lambda found: found.gain)
        return _finding(one, (model, chosen), comparison, rounds, self._clock() - begin, shapes)

    def _prepare(self, step: SessionStep, situations: Sequence[Situation], shapes: Sequence[Shape]) -> None:
        """Compiles the kernels of some situations and allocates their operands."""
        machines = [situation.machine for situation in situations]
        self._timer.prepare(machines, [shape.case(step.types) for shape in shapes])

    def _weights(self, step: SessionStep, shapes: Sequence[Shape]) -> list[float]:
        """All alike, or the operations that a program spent on each."""
        if self._plan.recorded is None:
            return [1.0] * len(shapes)
        mine = self._plan.recorded[step.types]
        return [mine[shape] for shape in shapes]

    def _rounds(self, end: float, done: float) -> list[Round]:
        """Rounds up to a time, within bounds of their number."""
        found: list[Round] = []
        while len(found) < FEWEST_ROUNDS or (len(found) < MOST_ROUNDS and self._clock() < end):
            found.append(self._timer.measure(self._order))
            share = COMPARING_SHARE if done == 0 else 1 - COMPARING_SHARE
            self._on_round(min(1.0, done + share * len(found) / MOST_ROUNDS))
        return found


def _finding(
    shape_class: ShapeClass,
    situations: tuple[Situation, Situation],
    comparison: VariantComparison | None,
    rounds: int,
    seconds: float,
    shapes: Sequence[Shape],
) -> Finding:
    """The record of a class: the model's choice and what replaces it, and why."""
    model, chosen = (situation.values(shape_class.constants) for situation in situations)
    stays = model == chosen or comparison is None
    gain, low, high = (
        (1.0, 1.0, 1.0) if stays or comparison is None else (comparison.gain, comparison.low, comparison.high)
    )
    return Finding(
        shape_class=shape_class.name,
        model=model,
        chosen=chosen,
        gain=round(gain, 4),
        low=round(low, 4),
        high=round(high, 4),
        noise=round(1.0 if comparison is None else comparison.noise, 4),
        rounds=rounds,
        seconds=round(seconds, 1),
        shapes=tuple(shape.label for shape in shapes),
    )
