"""Type checkers on programs of users: right calls, wrong calls; and what help shows of each function."""

from __future__ import annotations

import inspect
import pydoc
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.calls.repeated import is_repeated

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "tests" / "typing"
FUNCTIONS = [
    name for name in tw.__all__ if callable(getattr(tw, name)) and not inspect.isclass(getattr(tw, name))
]
_LINE = re.compile(r"(\w+)\.py:(\d+).*error")

WRONG = [
    number
    for number, line in enumerate((SCRIPTS / "wrong_script.py").read_text().splitlines(), 1)
    if line.endswith("# wrong")
]


def errors_of(*command: str) -> dict[str, list[int]]:
    """The lines in which a type checker finds errors, by script."""
    scripts = [str(SCRIPTS / f"{name}.py") for name in ("user_script", "wrong_script")]
    done = subprocess.run([*command, *scripts], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    found: dict[str, set[int]] = {"user_script": set(), "wrong_script": set()}
    for script, line in _LINE.findall(done.stdout):
        found[script].add(int(line))
    return {script: sorted(lines) for script, lines in found.items()}


def test_mypy() -> None:
    pytest.importorskip("mypy")
    cache, options = ROOT / ".mypy_cache" / "user_scripts", SCRIPTS / "mypy.ini"
    given = ("--strict", "--follow-imports=silent", f"--config-file={options}", f"--cache-dir={cache}")
    found = errors_of("env", "MYPYPATH=src", sys.executable, "-m", "mypy", *given)
    assert found == {"user_script": [], "wrong_script": WRONG}


@pytest.mark.skipif(shutil.which("pyright") is None, reason="pyright is not installed")
def test_pyright() -> None:
    found = errors_of("pyright", "--pythonpath", sys.executable)
    assert found == {"user_script": [], "wrong_script": WRONG}


def test_the_script_calls_every_function() -> None:
    text = (SCRIPTS / "user_script.py").read_text()
    assert [name for name in FUNCTIONS if not re.search(rf"\btw\.{name}\b", text)] == []


@pytest.mark.parametrize("name", FUNCTIONS)
def test_help_has_the_signature_and_the_documentation(name: str) -> None:
    function = getattr(tw, name)
    python = function.__self__.__wrapped__ if is_repeated(function) else function
    text = pydoc.plain(pydoc.render_doc(function))
    for parameter in inspect.signature(python).parameters:
        assert re.search(rf"\b{parameter}\b", text.split("\n\n")[1]), parameter
    assert (inspect.getdoc(function) or "").splitlines()[0] in text
