"""`tilewright tune`: measures constants of the models on this host, and keeps those that are faster."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tilewright.errors import InvalidSetting, TilewrightError
from tilewright.machine.findings import Finding, Findings
from tilewright.machine.host import detect_host
from tilewright.machine.tuning_file import TuningFile, tuning_file
from tilewright.progress import Steps
from tilewright.settings import read_settings, variable_of
from tilewright.spec.problem import parse_types
from tilewright.tools.cli import terminal
from tilewright.tools.cli.exit_codes import ExitCode
from tilewright.tools.cli.options import group
from tilewright.tools.explore.statistics import geometric_mean
from tilewright.tools.explore.tuning.classes import CLASSES, Situation, types_named
from tilewright.tools.explore.tuning.record_products import record_products
from tilewright.tools.explore.tuning.session import Outcome, Recorded, Session, SessionPlan, Timer
from tilewright.tools.explore.tuning.timer import KernelTimer

app = group()

_COLUMNS = ("types", "class", "constant", "gain", "interval", "noise", "rounds", "seconds")


def new_timer(seed: int) -> KernelTimer:
    """The timer of kernels, which tests replace."""
    return KernelTimer(seed)


@app.command(context_settings={"allow_interspersed_args": False})
def tune(
    arguments: Annotated[
        list[str] | None, typer.Argument(help="With --record: arguments of the script.", show_default=False)
    ] = None,
    dtype: Annotated[
        str, typer.Option(help="Comma-separated list of element types, such as f32,f64,bf16,u8i8.")
    ] = "f32,f64",
    seconds: Annotated[
        float, typer.Option(min=1, help="Time after which no other class of shapes is begun.")
    ] = 300,
    record: Annotated[
        Path | None,
        typer.Option(
            help="Run this script first and tune for the products it computes; its arguments follow."
        ),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Measure also what was measured before.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Show what was found and measure nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    reset: Annotated[bool, typer.Option("--reset", help="Forget what was found on this CPU.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the operands and of the order.")] = 0,
) -> None:
    """Measure constants of the models on this CPU and keep those that are faster.

    They decide how products are cut. For each class of shapes, kernels with a few other values run
    interleaved with the models' choice on one thread, beside the peak. One is kept if it is faster by more
    than 1 % and more than the noise, with 95 % confidence, in two separate series of rounds. Results of
    products keep their bits. Later processes on such a CPU use what was found. Ctrl-C stops; another run
    goes on.
    """
    file = _file()
    if reset:
        typer.echo("removed" if file.remove() else "there was nothing to remove")
        return
    if show:
        _print(file.load(), as_json=as_json)
        return
    types = tuple(dict.fromkeys(parse_types(name.strip()) for name in dtype.split(",") if name.strip()))
    if arguments and record is None:
        raise typer.BadParameter("arguments of a script follow --record", param_hint="arguments")
    recorded: Recorded | None = None
    if record is not None:
        recorded = record_products([str(record), *(arguments or ())])
        types = tuple(recorded)
    plan = SessionPlan(detect_host().machine(), types, seconds, recorded, again, seed)
    with new_timer(seed) as timer:
        outcomes, stopped = _run(plan, file, timer)
    _print(file.load(), as_json=as_json)
    if not as_json:
        _print_rest(outcomes, stopped=stopped, count=len(plan.steps))
    if stopped:
        raise typer.Exit(ExitCode.INTERRUPTED)


def _file() -> TuningFile:
    """The file of this CPU."""
    settings = read_settings()
    facts = detect_host(settings)
    file = tuning_file(settings, facts.kind.value)
    if file is None:
        required = "unset or the name of a file, so that what is found can be kept"
        raise InvalidSetting(name=variable_of("tuning"), found="0", required=required)
    if facts.named:
        required = "unset, since tuned constants are kept for the CPU and the features that were detected"
        names = f"{variable_of('cpu')} or {variable_of('features')}"
        raise InvalidSetting(name=names, found="set", required=required)
    return file


def _run(plan: SessionPlan, file: TuningFile, timer: Timer) -> tuple[list[Outcome], bool]:
    """Carry out a plan under a progress bar: the outcomes, and whether Ctrl-C stopped it."""
    outcomes: list[Outcome] = []
    with Steps("compile", len(plan.steps), timed=True) as steps:
        session = Session(plan, file, timer, lambda share: steps.reach(len(outcomes) + share))
        try:
            for outcome in session.run():
                outcomes.append(outcome)
                steps.reach(len(outcomes), _next_step(plan, len(outcomes)))
        except KeyboardInterrupt:
            return outcomes, True
    return outcomes, False


def _next_step(plan: SessionPlan, done: int) -> str:
    """The step that is measured next, in words."""
    if done == len(plan.steps):
        return "done"
    step = plan.steps[done]
    return f"{step.types.name}, {step.shape_class.name}"


def _print_rest(outcomes: Sequence[Outcome], *, stopped: bool, count: int) -> None:
    """Print how many classes this session measured, and how many are left."""
    new = [one.finding for one in outcomes if one.is_new and one.finding is not None]
    left = sum(one.is_left for one in outcomes) + (count - len(outcomes))
    spent = sum(one.seconds for one in new)
    typer.echo(f"measured {len(new)} classes in {spent:.0f} seconds" + (", stopped" if stopped else ""))
    if left:
        typer.echo(f"{left} classes are not measured yet; run the command again to go on")


def _print(findings: Findings, *, as_json: bool) -> None:
    """Print all findings, as a table or as JSON."""
    current = _current(findings)
    if as_json:
        content = {
            types: [{**asdict(one), "in_use": current[types, one.shape_class]} for one in classes]
            for types, classes in findings.items()
        }
        typer.echo(json.dumps(content, indent=2))
        return
    if not findings:
        typer.echo("nothing was tuned on this CPU")
        return
    lines = [
        _line(types, finding, in_use=current[types, finding.shape_class])
        for types in findings
        for finding in findings[types]
    ]
    terminal.print_table(terminal.console(), "tuned constants", _COLUMNS, lines)
    for types, classes in findings.items():
        gains = [one.gain for one in classes]
        typer.echo(
            f"{types}: geometric mean of the gains of {len(gains)} classes {geometric_mean(gains):.3f}"
        )


def _line(types: str, finding: Finding, *, in_use: bool) -> tuple[str, ...]:
    """The table row of a class."""
    constants = ", ".join(
        f"{one.name} {one.model}" + (f" -> {one.value}" if one.value != one.model else "")
        for one in finding.constants
    )
    if not in_use:
        constants += " (not used: the models choose otherwise now)"
    interval = f"{finding.low:.3f}..{finding.high:.3f}" if finding.replaces else "-"
    gain = f"{finding.gain:.3f}" if finding.replaces else "1"
    measured = (f"{finding.noise:.3f}", str(finding.rounds), f"{finding.seconds:.0f}")
    return (types, finding.shape_class, constants, gain, interval, *measured)


def _current(findings: Findings) -> dict[tuple[str, str], bool]:
    """For each class, whether the models still choose what they chose when it was measured."""
    machine = detect_host().machine()
    constants = {one.name: one.constants for one in CLASSES}
    found: dict[tuple[str, str], bool] = {}
    for types, classes in findings.items():
        for finding in classes:
            key = types, finding.shape_class
            try:
                situation = Situation(machine, types_named(types)).without(constants[finding.shape_class])
                found[key] = situation.values(tuple(finding.model)) == dict(finding.model)
            except (TilewrightError, KeyError, AttributeError):  # of another version of this package
                found[key] = False
    return found
