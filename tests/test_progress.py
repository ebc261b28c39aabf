"""Progress bars: when one appears, where it is written, and that others see nothing."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import threading
import time
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
    work(clock, SHOWN_FROM / 2)
    text = terminal.getvalue()
    assert "pack [weights]" in text, "brackets are no markup"
    assert "25%" not in text, "two seconds have not passed"
    assert "50%" in text
    assert "100%" in text


@pytest.mark.parametrize("share", [0.2, 0.25])
def test_short_work_has_none(share: float, monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    """Nor has work that ends when two seconds have passed."""
    terminal = shown_terminal(monkeypatch)
    work(clock, share * SHOWN_FROM)
    assert terminal.getvalue() == ""


def test_a_timer_shows_that_of_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a step is done."""
    monkeypatch.setattr(progress, "SHOWN_FROM", 0.01)
    terminal = shown_terminal(monkeypatch)
    with Steps("measure", 4, timed=True):
        end = time.monotonic() + 60
        while "measure" not in terminal.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
    assert "measure" in terminal.getvalue()
    assert Steps._shown is None


def test_short_commands_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SHOWN_FROM", 60.0)
    terminal = shown_terminal(monkeypatch)
    with Steps("measure", 4, timed=True) as steps:
        for _ in range(4):
            steps.advance()
    assert terminal.getvalue() == ""
    assert not any(isinstance(one, threading.Timer) for one in threading.enumerate())


@pytest.mark.parametrize("title", ["pack weights", "run sample calls", "prepare kernels"])
def test_large_graphs_show_it(title: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packing, calibration and the first call of a graph have a bar where they take long."""
    monkeypatch.setattr(progress, "SHOWN_FROM", 0.0)
    terminal = shown_terminal(monkeypatch)
    graph = tw.Graph()
    x = graph.input("x", shape=("batch", 8))
    weight = np.ones((8, 8), np.float32)
    graph.output(graph.softmax(graph.linear(graph.softmax(graph.linear(x, weight)), weight)))
    row = np.ones((2, 8), np.float32)
    run = graph.compile(precision="i8-weights", calibration=[row, row])
    run(row)
    assert title in terminal.getvalue()


@pytest.mark.parametrize("reason", ["no terminal", "setting", "thread"])
@pytest.mark.parametrize("timed", [True, False])
def test_nobody_else_sees_it(
    reason: str, timed: bool, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SHOWN_FROM", 0.01)
    terminal = shown_terminal(monkeypatch)
    if reason == "no terminal":
        monkeypatch.setattr(Terminal, "isatty", lambda self: False)
    elif reason == "setting":
        monkeypatch.setenv("TILEWRIGHT_PROGRESS", "0")

    def wait() -> None:
        with Steps("measure", 4, timed=timed) as steps:
            time.sleep(0.05 * timed)
            clock[0] += 10.0
            steps.advance()

    run = threading.Thread(target=wait)
    if reason == "thread":
        run.start()
        run.join()
    else:
        wait()
    assert terminal.getvalue() == ""


def test_no_standard_error_at_all(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    work(clock, 10.0, timed=True)


def test_one_bar_at_a_time(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    terminal = shown_terminal(monkeypatch)
    with Steps("outer", 2, timed=True):
        work(clock, 10.0)
    assert terminal.getvalue() == "", "the outer one has the terminal"
    work(clock, 10.0)
    assert "pack" in terminal.getvalue()


def test_an_error_takes_the_bar_away(monkeypatch: pytest.MonkeyPatch) -> None:
    shown_terminal(monkeypatch)
    with pytest.raises(ZeroDivisionError), Steps("measure", 4, timed=True):
        raise ZeroDivisionError
    assert Steps._shown is None


@pytest.mark.parametrize("shown_from", [0.0, 1000.0])
def test_commands_write_it_to_standard_error_only(shown_from: float) -> None:
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
    program = (
        "from tilewright import progress\n"
        f"progress.SHOWN_FROM = {shown_from}\n"
        f"from tilewright.tools.cli import app\napp({words})"
    )
    hidden = ("NO_COLOR", "FORCE_COLOR", "TILEWRIGHT_PROGRESS")
    environ = {name: value for name, value in os.environ.items() if name not in hidden} | {"TERM": "xterm"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=theirs,
        stdin=subprocess.DEVNULL,
        env=environ,
        check=True,
    )
    os.close(theirs)
    reader.join()
    os.close(ours)
    if shown_from:
        assert b"".join(seen) == b""
    else:
        assert b"measure" in b"".join(seen)
    assert b"\x1b" not in done.stdout
    assert b"GFLOPS" in done.stdout
