"""Code that several threads generate: the same objects, whatever happens to the threads meanwhile."""

from __future__ import annotations

import gc
import os
import signal
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from support import run_python

import tilewright as tw
from tilewright.compiler.pipeline import run_stages
from tilewright.errors import CompilationFailed
from tilewright.llvm import generation as module
from tilewright.llvm.generation import Job, emit_objects, generation
from tilewright.llvm.parts import split_module
from tilewright.llvm.target import CODEGEN_LEVEL, QUICK_LEVEL, compilations, emit_object
from tilewright.machine.catalog import find_machine

MACHINE = find_machine("x86-64-v3")


@pytest.fixture(scope="module")
def jobs() -> list[Job]:
    texts = split_module(run_stages(tw.Gemm(dtype="f32"), MACHINE, until="llvm").llvm)
    return [Job(text, QUICK_LEVEL if number % 3 else CODEGEN_LEVEL) for number, text in enumerate(texts)]


@pytest.fixture(scope="module")
def objects(jobs: list[Job]) -> list[bytes]:
    return [emit_object(job.text, "product", MACHINE, job.level) for job in jobs]


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[threading.Thread]]:
    """Three threads generate code; those that are started beside the caller."""
    started: list[threading.Thread] = []
    start = threading.Thread.start

    def noted(thread: threading.Thread) -> None:
        start(thread)
        started.append(thread)

    monkeypatch.setattr(threading.Thread, "start", noted)
    monkeypatch.setattr(generation, "most", 3)
    yield started
    assert not generation._running
    assert not any(thread.is_alive() for thread in started)


def test_threads_make_the_same_objects(
    three: list[threading.Thread], jobs: list[Job], objects: list[bytes]
) -> None:
    before = compilations.number
    assert emit_objects(jobs, "product", MACHINE) == objects
    assert len(three) == 2
    assert compilations.number == before + len(jobs)


def test_one_thread_starts_none(
    three: list[threading.Thread], jobs: list[Job], objects: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = generation.most, tw.get_num_threads()
    try:
        tw.set_num_threads(1)
        assert generation.threads == 1
        assert emit_objects(jobs, "product", MACHINE) == objects
    finally:
        tw.set_num_threads(before[1])
        generation.most = before[0]
    assert emit_objects(jobs[:1], "product", MACHINE) == objects[:1]
    monkeypatch.setattr(module, "_LEAST_LINES", 1 << 30)
    assert emit_objects(jobs, "product", MACHINE) == objects, "short modules are not worth a thread"
    assert not three


def test_by_default_as_many_threads_as_a_call_has() -> None:
    script = """
import os

os.environ["TILEWRIGHT_NUM_THREADS"] = "1"
from tilewright.llvm.generation import generation

print(generation.threads)
"""
    assert run_python("-c", script) == "1\n"


def test_a_system_without_threads(
    three: list[threading.Thread], jobs: list[Job], objects: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert emit_objects(jobs, "product", MACHINE) == objects
    assert not three


def test_text_that_is_no_module_is_refused_before_a_thread_starts(
    three: list[threading.Thread], jobs: list[Job]
) -> None:
    with pytest.raises(CompilationFailed, match="product"):
        emit_objects([*jobs, Job("define", CODEGEN_LEVEL)], "product", MACHINE)
    assert not three


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize("enabled", [True, False])
def test_no_cycle_is_collected_by_a_thread(
    enabled: bool, jobs: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finaliser there might wait for the caller's lock, and the caller waits for the thread."""
    seen = []
    original = generation.run

    def run(*arguments: Any) -> list[bytes]:
        seen.append(gc.isenabled())
        return original(*arguments)

    monkeypatch.setattr(generation, "run", run)
    (gc.enable if enabled else gc.disable)()
    try:
        emit_objects(jobs, "product", MACHINE)
        assert seen == [False]
        assert gc.isenabled() == enabled, "as it was"
    finally:
        gc.enable()


class Interrupted(Exception):
    """What a signal handler raises."""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs POSIX processes")
@pytest.mark.parametrize("what", ["fork", "compile", "raise"])
def test_signals_while_threads_generate_code(
    what: str,
    three: list[threading.Thread],
    jobs: list[Job],
    objects: list[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The handler may fork, and both processes compile on; it may compile; it may raise."""
    children: list[int] = []
    alive: list[list[bool]] = []

    def lives() -> list[bool]:
        return [thread.is_alive() for thread in three]

    def handle(*_: object) -> None:
        alive.append(lives())
        if what == "raise":
            raise Interrupted
        if what == "compile":
            assert emit_objects(jobs, "product", MACHINE) == objects
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns where threads run
            child = os.fork()
        alive.append(lives())
        if not child:
            import faulthandler

            faulthandler.dump_traceback_later(300, exit=True)
            os._exit(0 if emit_objects(jobs, "product", MACHINE) == objects else 1)
        children.append(child)

    def start(threads: list[threading.Thread]) -> None:
        original(threads)
        if not alive:
            signal.raise_signal(signal.SIGUSR1)

    original = module._start
    monkeypatch.setattr(module, "_start", start)
    before = signal.signal(signal.SIGUSR1, handle)
    try:
        assert emit_objects(jobs, "product", MACHINE) == objects
        assert what != "raise"
    except Interrupted:
        assert not any(lives()), "it waits for the threads that use its modules"
    finally:
        signal.signal(signal.SIGUSR1, before)
    first, *others = alive
    assert all(first), "the signal came in their midst"
    assert not any(map(any, others)), "a fork waits for them"
    assert all(os.waitpid(child, 0)[1] == 0 for child in children)
    assert emit_objects(jobs, "product", MACHINE) == objects
