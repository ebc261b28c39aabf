"""Loggers: each is in the table, in the page, and below `tilewright`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tilewright.logs import LOGGERS

ROOT = Path(__file__).resolve().parents[1]
_LOGGER = re.compile(r'getLogger\("([\w.]*)"\)')


def test_the_table_has_every_logger_and_no_other() -> None:
    sources = (ROOT / "src" / "tilewright").rglob("*.py")
    assert {name for path in sources for name in _LOGGER.findall(path.read_text("utf-8"))} == set(LOGGERS)


def test_the_page_has_the_table() -> None:
    page = (ROOT / "docs" / "reference" / "logging.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(tilewright\.\w+)` \| (.*) \|$", page, re.MULTILINE))
    assert rows == LOGGERS


def test_one_level_and_one_handler_are_for_all() -> None:
    """A copy of an operand is logged below `tilewright`, and nothing is unless it is asked for."""
    program = (
        "import logging, sys, numpy as np, tilewright as tw\n"
        "call = lambda: tw.matmul(np.ones((2, 3), np.int32), np.ones((3, 2)))\n"
        "call(); print('quiet', file=sys.stderr)\n"
        "logging.basicConfig(format='%(name)s %(levelname)s')\n"
        "logging.getLogger('tilewright').setLevel(logging.DEBUG)\n"
        "tw.matmul(np.ones((2, 4), np.int32), np.ones((4, 2)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines() == ["quiet", "tilewright.calls DEBUG"]
