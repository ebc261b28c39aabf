"""The Makefile: every target does something, and `make help` names those for people."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "Makefile").read_text(encoding="utf-8")
PHONY = re.findall(r"^\.PHONY: (.*)$", TEXT, re.MULTILINE)[0].split()

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def make(*words: str) -> str:
    command = ["make", "--no-print-directory", "-C", str(ROOT), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("target", PHONY)
def test_a_target_has_something_to_do(target: str) -> None:
    """A name that is a folder too, such as docs, is up to date without a rule: make ends with status 0."""
    done = make("--dry-run", "--always-make", "PYTHON=python3", target)
    assert done.strip()
    assert "Nothing to be done" not in done


def test_help_names_targets_that_exist() -> None:
    named = re.findall(r"^  make ([\w-]+)", make("help"), re.MULTILINE)
    assert set(named) < set(PHONY)
    assert {"demo", "test", "test-all", "docs", "bench"} <= set(named)


def test_docs_checks_the_pages_and_nothing_else() -> None:
    command = next(line for line in make("--dry-run", "docs").splitlines() if " pytest " in line)
    named = [path for word in command.split() if word.startswith("tests/") for path in ROOT.glob(word)]
    assert ROOT / "tests" / "test_pages.py" in named
    for path in named:
        assert re.match(r'"""(README\.md|docs/[\w/-]+\.md)', path.read_text(encoding="utf-8")), path
