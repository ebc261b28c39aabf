"""Options and paths of the whole test-suite: `--update-golden`, and tests/support.py for every test."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

# Tests compile for themselves: an object cache of the user would hide what they look at.
os.environ.setdefault("TILEWRIGHT_CACHE", "0")

sys.path.insert(0, str(Path(__file__).parent))


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-golden` rewrites the golden files instead of comparing with them."""
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files of tile IR")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten."""
    return bool(request.config.getoption("--update-golden"))
