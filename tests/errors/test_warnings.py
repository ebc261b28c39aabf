"""Warnings: their classes, their remedies, and names that are deprecated."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import tilewright as tw
from tilewright import errors
from tilewright.deprecated import Deprecated
from tilewright.errors import DeprecatedName, TilewrightError, TilewrightWarning

OLD = Deprecated("tilewright.mm", "tilewright.matmul", since="0.2", removed="0.4")
WARNINGS = [
    kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, TilewrightWarning)
]


@pytest.mark.parametrize("kind", [kind for kind in WARNINGS if kind is not TilewrightWarning])
def test_each_warning_has_a_remedy_and_a_class_of_pythons(kind: type[TilewrightWarning]) -> None:
    assert ";" in kind.message, "what is wrong; what to do"
    assert kind.__module__ == "tilewright.errors"
    builtin = {base.__name__ for base in kind.__mro__ if base.__module__ == "builtins"}
    assert builtin & {"RuntimeWarning", "DeprecationWarning", "UserWarning"}
    assert not issubclass(kind, TilewrightError)


def test_one_filter_silences_all() -> None:
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", TilewrightWarning)
        OLD.warn()
        warnings.warn("other", RuntimeWarning, stacklevel=1)
    assert [str(one.message) for one in given] == ["other"]


def test_a_deprecated_name_is_its_replacement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tw._DEPRECATED, "mm", OLD)
    with pytest.warns(
        DeprecatedName, match="deprecated since version 0.2 .* 0.4; use tilewright.matmul"
    ) as given:
        found = tw.mm  # type: ignore[attr-defined]
    assert found is tw.matmul
    assert Path(given[0].filename) == Path(__file__), "the line that uses the name"
    assert "mm" not in dir(tw)
    assert "mm" not in tw.__all__


def test_names_that_exist_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in tw.__all__:
            getattr(tw, name)


def test_deprecated_names_stand_for_public_ones() -> None:
    for name, one in {"mm": OLD, **tw._DEPRECATED}.items():
        assert one.name == f"tilewright.{name}"
        assert one.replacement.removeprefix("tilewright.") in tw.__all__
        assert name not in tw.__all__
        assert tuple(map(int, one.since.split("."))) < tuple(map(int, one.removed.split(".")))


_PROGRAM = """
import tilewright as tw
from tilewright.deprecated import Deprecated
tw._DEPRECATED["mm"] = Deprecated("tilewright.mm", "tilewright.matmul", "0.2", "0.4")
for _ in range(3):
    tw.mm
from tilewright import mm
"""


def test_a_program_hears_of_it_once_for_each_line(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(_PROGRAM)
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, env=environ)
    said = [line for line in done.stderr.splitlines() if "DeprecatedName" in line]
    assert [int(line.split(":")[1]) for line in said if line.startswith(str(script))] == [6, 7]
    assert len(said) == 2
