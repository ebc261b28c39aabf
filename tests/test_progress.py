"""Progress bars: when one appears, where it is written, and that others see nothing."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright import progress
from tilewright.progress import SHOWN_FROM, Steps


class Terminal(io.StringIO):
    """A terminal that keeps what is written."""

    def isatty(self) -> bool:
        return True


def shown_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal in place of standard error; no fixture, since pytest sets it again for each phase."""
    found = Terminal()
    monkeypatch.setattr(sys, "stderr", found)
    monkeypatch.setenv("TERM", "xterm")
    for name in ("TILEWRIGHT_PROGRESS", "TTY_INTERACTIVE", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return found


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which tests set."""
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def work(clock: list[float], seconds: float, **options: Any) -> None:
    """Four steps of so many seconds each."""
    with Steps("pack [weights]", 4, **options) as steps:
        for _ in range(4):
            clock[0] += seconds
            steps.advance()


def test_long_work_has_a_bar(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    terminal = shown_terminal(monkeypatch)
    work(clock, SHOWN_FROM / 4)
    text = terminal.getvalue()
    assert "pack [weights]" in text, "brackets are no markup"
    assert "25%" in text
    assert "100%" in text


def test_short_work_has_none(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    terminal = shown_terminal(monkeypatch)
    work(clock, SHOWN_FROM / 5)
    assert terminal.getvalue() == ""


def test_commands_show_it_from_the_start(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    terminal = shown_terminal(monkeypatch)
    with Steps("measure", 4, at_once=True):
        pass
    assert "measure" in terminal.getvalue()


def test_a_first_step_that_takes_longer_foretells_nothing(
    monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    terminal = shown_terminal(monkeypatch)
    with Steps("prepare kernels", 100) as steps:
        clock[0] += 0.3
        steps.advance()
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("title", ["pack weights", "run sample calls", "prepare kernels"])
def test_large_graphs_show_it(title: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packing, calibration and the first call of a graph have a bar where they take long."""
    monkeypatch.setattr(progress, "SHOWN_FROM", 0.0)
    monkeypatch.setattr(progress, "FORETOLD_AFTER", 0.0)
    terminal = shown_terminal(monkeypatch)
    graph = tw.Graph()
    x = graph.input("x", shape=("batch", 8))
    graph.output(graph.linear(x, np.ones((8, 8), np.float32)))
    row = np.ones((2, 8), np.float32)
    run = graph.compile(precision="i8-weights", calibration=[row])
    run(row)
    assert title in terminal.getvalue()


def test_resumed_work_counts_what_was_done(clock: list[float]) -> None:
    steps = Steps("verify", 100, done=90)
    clock[0] += 3
    steps.done += 1
    assert steps.expected_seconds == pytest.approx(30)


@pytest.mark.parametrize("reason", ["no terminal", "setting", "thread"])
def test_nobody_else_sees_it(reason: str, clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = shown_terminal(monkeypatch)
    if reason == "no terminal":
        monkeypatch.setattr(Terminal, "isatty", lambda self: False)
    elif reason == "setting":
        monkeypatch.setenv("TILEWRIGHT_PROGRESS", "0")
    run = threading.Thread(target=work, args=(clock, 10.0), kwargs={"at_once": True})
    if reason == "thread":
        run.start()
        run.join()
    else:
        work(clock, 10.0, at_once=True)
    assert terminal.getvalue() == ""


def test_no_standard_error_at_all(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    work(clock, 10.0, at_once=True)


def test_one_bar_at_a_time(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    terminal = shown_terminal(monkeypatch)
    with Steps("outer", 2, at_once=True) as outer:
        work(clock, 10.0)
        outer.advance()
    assert "outer" in terminal.getvalue()
    assert "pack" not in terminal.getvalue()
    work(clock, 10.0)
    assert "pack" in terminal.getvalue()


def test_an_error_takes_the_bar_away(monkeypatch: pytest.MonkeyPatch) -> None:
    shown_terminal(monkeypatch)
    with pytest.raises(ZeroDivisionError), Steps("measure", 4, at_once=True):
        raise ZeroDivisionError
    assert Steps._shown is None


def test_commands_write_it_to_standard_error_only() -> None:
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    seen: list[bytes] = []

    def read() -> None:
        with contextlib.suppress(OSError):  # what Linux says at the end
            while part := os.read(ours, 1 << 16):
                seen.append(part)

    reader = threading.Thread(target=read)
    reader.start()
    words = ["bench", "brgemm", "--sizes", "8", "--json", os.devnull]
    hidden = ("NO_COLOR", "FORCE_COLOR", "TILEWRIGHT_PROGRESS")
    environ = {name: value for name, value in os.environ.items() if name not in hidden} | {"TERM": "xterm"}
    done = subprocess.run(
        [sys.executable, "-m", "tilewright", *words],
        stdout=subprocess.PIPE,
        stderr=theirs,
        stdin=subprocess.DEVNULL,
        env=environ,
        check=True,
    )
    os.close(theirs)
    reader.join()
    os.close(ours)
    assert b"measure" in b"".join(seen)
    assert b"\x1b" not in done.stdout
    assert b"GFLOPS" in done.stdout
