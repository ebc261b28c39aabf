"""Tuning sessions: what is measured, kept and measured again."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tuning_timers import FakeTimer

from tilewright.errors import OtherBits
from tilewright.machine.catalog import find_machine
from tilewright.machine.findings import Finding, tunings_of
from tilewright.machine.host import host_machine
from tilewright.machine.tuning import TunedConstant, Tuning
from tilewright.machine.tuning_file import TuningFile
from tilewright.spec.problem import ProductTypes
from tilewright.threads.pool import get_num_threads
from tilewright.tools.explore.tuning.choice import FEWEST_ROUNDS, FIRST_OTHER, MOST_ROUNDS, Round
from tilewright.tools.explore.tuning.classes import CLASSES, Shape, Situation
from tilewright.tools.explore.tuning.session import Outcome, Recorded, Session, SessionPlan
from tilewright.tools.explore.tuning.timer import KernelTimer

F32, F64 = ProductTypes.parse("f32"), ProductTypes.parse("f64")
#: A tile of 12x32 with strips of 24 rows and blocks of 60, nc of 2048, 36 few rows.
ZEN5 = find_machine("znver5")
FASTER: Mapping[tuple[str, int], float] = {("strip", 48): 1.1, ("few_rows", 48): 1.2, ("few_rows", 72): 1.3}


@pytest.fixture
def file(tmp_path: Path) -> TuningFile:
    return TuningFile(tmp_path / "tuning" / "one.json", "a cpu", private=True)


def plan(**fields: Any) -> SessionPlan:
    return replace(SessionPlan(ZEN5, (F32,), 1e6), **fields)


def run(plan: SessionPlan, file: TuningFile, timer: FakeTimer) -> dict[str, Outcome]:
    session = Session(plan, file, timer, clock=timer.clock)
    return {one.step.shape_class.name: one for one in session.run()}


def finding(outcomes: dict[str, Outcome], name: str) -> Finding:
    found = outcomes[name].finding
    assert found is not None
    return found


def test_winners_are_kept_and_others_leave_the_models_choice(file: TuningFile) -> None:
    outcomes = run(plan(), file, FakeTimer(FASTER))
    assert list(outcomes) == [one.name for one in CLASSES]
    assert all(one.is_new for one in outcomes.values())
    strip, rows = finding(outcomes, "large"), finding(outcomes, "few rows")
    assert (strip.model, strip.chosen) == ({"strip": 24}, {"strip": 48})
    assert strip.low <= strip.gain <= strip.high
    assert strip.gain == pytest.approx(1.1, abs=0.01)
    assert rows.chosen == {"few_rows": 72}
    assert FEWEST_ROUNDS <= rows.rounds <= MOST_ROUNDS
    for name in ("tile", "wide", "small"):
        stays = finding(outcomes, name)
        assert stays.chosen == stays.model
        assert (stays.gain, stays.low, stays.high) == (1.0, 1.0, 1.0)
        assert stays.rounds >= FEWEST_ROUNDS
    assert finding(outcomes, "few columns").rounds == 0  # nothing to choose
    constants = (TunedConstant("few_rows", 36, 72), TunedConstant("strip", 24, 48))
    assert tunings_of(file.load()) == (Tuning("f32", constants),)


class LuckyTimer(FakeTimer):
    """A timer whose kernels are as fast as they say only while several are compared."""

    def measure(self, order: random.Random) -> Round:
        machines, cases = self.prepared[-1]
        if len(machines) > FIRST_OTHER + 1:
            return super().measure(order)
        self.rounds += 1
        return [[1 + order.random() / 1000 for _ in cases] for _ in machines]


def test_a_winner_must_win_again(file: TuningFile) -> None:
    strip = finding(run(plan(), file, LuckyTimer(FASTER)), "large")
    assert strip.chosen == strip.model
    assert strip.rounds >= FEWEST_ROUNDS
    assert tunings_of(file.load()) == ()


def test_later_classes_are_measured_beside_what_was_found(file: TuningFile) -> None:
    timer = FakeTimer(FASTER)
    run(plan(), file, timer)
    machines, _ = timer.prepared[-1]  # of the last class
    assert {Situation(machine, F32).limits.strip for machine in machines} == {48}
    assert machines[0] == machines[1]
    assert len(set(machines)) == len(machines) - 1


def test_another_tile_makes_the_models_choose_anew(file: TuningFile) -> None:
    run(plan(), file, FakeTimer(FASTER))
    outcomes = run(plan(again=True), file, FakeTimer({("mr", 14): 1.2}))
    tile, strip = finding(outcomes, "tile"), finding(outcomes, "large")
    assert tile.chosen == {"mr": 14, "nr": 32}
    assert strip.model["strip"] % 14 == 0
    assert {one.types for one in tunings_of(file.load())} == {"f32"}


def test_a_second_run_measures_nothing(file: TuningFile) -> None:
    first = run(plan(), file, FakeTimer(FASTER))
    timer = FakeTimer(FASTER)
    second = run(plan(), file, timer)
    assert timer.rounds == 0
    assert not any(one.is_new for one in second.values())
    assert {name: one.finding for name, one in second.items()} == {
        name: one.finding for name, one in first.items()
    }


def test_again_measures_everything(file: TuningFile) -> None:
    run(plan(), file, FakeTimer(FASTER))
    outcomes = run(plan(again=True), file, FakeTimer({}))
    assert all(one.is_new for one in outcomes.values())
    assert tunings_of(file.load()) == ()


def test_a_class_is_measured_again_where_the_models_choose_otherwise(file: TuningFile) -> None:
    run(plan(), file, FakeTimer(FASTER))
    assert ZEN5.l3 is not None
    other = replace(ZEN5, l3=replace(ZEN5.l3, size=8 << 20))
    outcomes = run(plan(machine=other), file, FakeTimer(FASTER))
    assert [name for name, one in outcomes.items() if one.is_new] == ["wide"]


def test_ctrl_c_keeps_what_was_found_and_another_run_goes_on(file: TuningFile) -> None:
    timer = FakeTimer(FASTER, stop_after=2 * MOST_ROUNDS + 5)
    with pytest.raises(KeyboardInterrupt):
        run(plan(), file, timer)
    kept = file.load()["f32"]
    assert 0 < len(kept) < len(CLASSES)
    outcomes = run(plan(), file, FakeTimer(FASTER))
    assert [name for name, one in outcomes.items() if not one.is_new] == [one.shape_class for one in kept]
    assert len(file.load()["f32"]) == len(CLASSES)


def test_no_class_is_begun_after_the_time(file: TuningFile) -> None:
    timer = FakeTimer({}, round_seconds=1.0)
    outcomes = run(plan(seconds=3.5 * FEWEST_ROUNDS), file, timer)
    left = [name for name, one in outcomes.items() if one.is_left]
    assert 0 < len(left) < len(CLASSES)
    assert left == [one.name for one in CLASSES if one.name in left]
    assert timer.now <= 4.5 * FEWEST_ROUNDS
    assert all(outcomes[name].finding is None for name in left)


def test_the_time_decides_the_number_of_rounds(tmp_path: Path) -> None:
    rounds = []
    for number, seconds in enumerate((1.0, 60.0, 1e6)):
        file = TuningFile(tmp_path / "tuning" / f"{number}.json", "a cpu", private=True)
        rounds.append(finding(run(plan(seconds=seconds), file, FakeTimer({})), "tile").rounds)
    assert rounds == sorted(rounds)
    assert (rounds[0], rounds[-1]) == (FEWEST_ROUNDS, MOST_ROUNDS)


def test_types_are_tuned_one_after_the_other(file: TuningFile) -> None:
    timer = FakeTimer({("strip", 48): 1.1})
    session = Session(plan(types=(F32, F64)), file, timer, clock=timer.clock)
    types = [one.step.types.name for one in session.run()]
    assert types == ["f32"] * len(CLASSES) + ["f64"] * len(CLASSES)
    assert [one.types for one in tunings_of(file.load())] == ["f32", "f64"]


def test_rounds_are_reported(file: TuningFile) -> None:
    shares: list[float] = []
    timer = FakeTimer({})
    list(Session(plan(), file, timer, shares.append, timer.clock).run())
    assert len(shares) == timer.rounds
    assert all(0 < share <= 1 for share in shares)


def test_a_recorded_program_has_the_classes_of_its_shapes(file: TuningFile) -> None:
    recorded: Recorded = {F32: {Shape(2000, 500, 1000): 3.0, Shape(1000, 500, 1000): 1.0}}
    timer = FakeTimer(FASTER)
    outcomes = run(plan(recorded=recorded), file, timer)
    assert [name for name, one in outcomes.items() if one.is_new] == ["tile", "large"]
    assert not any(one.is_left for one in outcomes.values())
    assert finding(outcomes, "large").shapes == ("2000x500x1000", "1000x500x1000")
    _, cases = timer.prepared[-1]
    assert [case.sizes for case in cases] == [(2000, 500, 1000), (1000, 500, 1000)]
    # The shapes of the class itself are others, and those of the program again are done.
    assert not any(one.is_new for one in run(plan(recorded=recorded), file, FakeTimer({})).values())


# --- measuring ---------------------------------------------------------------------------------------------


def test_kernels_are_measured_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Situation(replace(host_machine(), tunings=()), F32)
    other = host.replaced({"few_rows": 2 * host.limits.few_rows})
    monkeypatch.setattr("tilewright.tools.explore.tuning.timer.measure_peak", lambda *_, **__: 100.0)
    before = get_num_threads()
    with KernelTimer() as timer:
        assert get_num_threads() == 1
        cases = [Shape(8, 8, 8).case(F32), Shape(40, 30, 20, "ab").case(F32)]
        timer.prepare([host.machine, host.machine, other.machine], cases)
        found = timer.measure(random.Random(0))
    assert get_num_threads() == before
    assert [len(times) for times in found] == [2, 2, 2]
    assert all(time > 0 for times in found for time in times)


def test_other_bits_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that sums otherwise is a mistake of ours, and nothing is kept of it."""
    host = Situation(replace(host_machine(), tunings=()), F32)
    other = host.replaced({"few_rows": 2 * host.limits.few_rows})

    class Wrong:
        def __init__(self, machine: Any) -> None:
            self._machine = machine

        def native(self, _a: Any, _b: Any, c: Any) -> None:
            c.fill(len(self._machine.tunings))

    monkeypatch.setattr(
        "tilewright.tools.explore.tuning.timer.new_kernel", lambda _problem, machine: Wrong(machine)
    )
    with KernelTimer() as timer, pytest.raises(OtherBits, match="few_rows"):
        timer.prepare([host.machine, other.machine], [Shape(8, 8, 8).case(F32)])
