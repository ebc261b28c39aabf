"""What machine code reads of objects is checked first; without it, Python makes calls and says so once."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator

import numpy as np
import pytest

import tilewright as tw
from tilewright.calls import layout
from tilewright.calls.repeated import path_of
from tilewright.errors import CallsThroughPython


def test_objects_are_as_machine_code_reads_them() -> None:
    compared = list(layout._comparisons())
    assert [what for what, found, expected in compared if found != expected] == []
    assert layout.layout_known()


@pytest.fixture
def unknown(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process whose objects have another layout."""
    monkeypatch.setattr(layout, "_comparisons", lambda: iter([("length of a tuple", 1, 2)]))
    monkeypatch.setattr(layout, "_said", [])
    for cached in (layout._other_layout, layout.why_not_native):
        cached.cache_clear()
    yield
    for cached in (layout._other_layout, layout.why_not_native):
        cached.cache_clear()


@pytest.mark.usefixtures("unknown")
def test_another_layout_is_named_and_warned_of_once() -> None:
    assert layout.why_not_native() == "objects have another layout: length of a tuple"
    assert not layout.layout_known()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        layout.warn_of_python(1)
        layout.warn_of_python(1)
    assert [one.category for one in said] == [CallsThroughPython]
    assert "length of a tuple; use CPython 3.11 to 3.14" in str(said[0].message)
    assert "objects have another layout" in path_of(tw.softmax, (np.ones((2, 2)),), {})


def test_other_interpreters_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    layout._other_layout.cache_clear()
    monkeypatch.setattr(sys.implementation, "name", "other")
    assert layout._other_layout() == "the interpreter is other, not CPython"
    monkeypatch.undo()
    layout._other_layout.cache_clear()


#: The first calls of a process are those of a user: its own file is named by the warning.
_CALLS = """
import warnings, numpy as np, tilewright as tw
from tilewright.calls import layout
layout.why_not_native = lambda: "a reason"
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    for _ in range(3):
        assert (tw.matmul(np.eye(2), np.eye(2)) == np.eye(2)).all()
    tw.exp(np.zeros(2))
print([(one.category.__name__, one.filename, one.lineno) for one in said])
"""


def test_a_user_reads_the_warning_at_the_first_call() -> None:
    done = subprocess.run([sys.executable, "-c", _CALLS], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[('CallsThroughPython', '<string>', 8)]"
