"""What threads share is made once: locks, imports inside functions, values that own code."""

from __future__ import annotations

import threading
import time

import pytest

from tilewright.errors import CalledWhileImporting
from tilewright.preparing import Section, importing, once, once_property, preparing


def in_threads(count: int, work: object) -> list[object]:
    """What some threads found that began at the same time."""
    barrier, found = threading.Barrier(count), []

    def run() -> None:
        barrier.wait()
        found.append(work())  # type: ignore[operator]

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_once_makes_one_value_for_all_threads() -> None:
    made: list[object] = []

    @once
    def value(key: str) -> object:
        time.sleep(0.01)  # long enough for the others to ask
        made.append(key)
        return object()

    assert len(set(in_threads(8, lambda: value("a")))) == 1
    assert value("b") is not value("a")
    assert made == ["a", "b"]


def test_once_takes_keywords() -> None:
    @once
    def pair(a: int, b: int = 0) -> list[int]:
        return [a, b]

    assert pair(1, b=2) is pair(1, b=2)
    assert pair(1, b=2) == [1, 2]
    assert pair(1) == [1, 0]


def test_once_again_after_a_failure() -> None:
    tries: list[int] = []

    @once
    def value() -> int:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("the first time")
        return 3

    with pytest.raises(OSError, match="first time"):
        value()
    assert value() == 3


def test_a_call_that_interrupts_its_own_thread_is_first() -> None:
    """As a signal handler does: the value of the inner call is everyone's."""
    depth: list[int] = []

    @once
    def value() -> object:
        depth.append(1)
        if len(depth) == 1:
            inner.append(value())
        return object()

    inner: list[object] = []
    assert value() is inner[0]
    assert value() is inner[0]


class Lazy:
    """A property that takes a while."""

    @once_property
    def value(self) -> object:
        time.sleep(0.01)
        return object()


def test_a_property_is_made_by_one_thread() -> None:
    lazy = Lazy()
    assert len(set(in_threads(8, lambda: lazy.value))) == 1


def test_the_lock_is_reentrant() -> None:
    with preparing, preparing:
        pass


def test_a_section_is_left_out_by_who_interrupts_it() -> None:
    section = Section()
    with section as first, section as second:
        assert (first, second) == (True, False)
    with section as again:
        assert again


def test_imports_wait_for_imports_of_other_threads() -> None:
    inside: list[int] = []

    def work() -> int:
        with importing:
            inside.append(1)
            count = len(inside)
            time.sleep(0.001)
            inside.pop()
        return count

    assert in_threads(6, work) == [1] * 6


def test_a_call_that_interrupts_an_import_of_its_thread_is_refused() -> None:
    with importing:
        with pytest.raises(CalledWhileImporting), importing:
            pass
        with pytest.raises(CalledWhileImporting), importing:  # and leaves the lock as it was
            pass
    with importing:
        pass
