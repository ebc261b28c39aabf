"""Shares of a table that one loop walks: all of it in `make test-all`, a part in `make test`.

Apart from tiers.py, so that child processes need no pytest.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

#: Whether this is a run of `make test-all`: conftest.py sets the variable for workers and children.
EVERY_TEST_RUNS = bool(os.environ.get("EVERY_TEST_RUNS"))


def share(cases: Iterable[T], each: int, first: int = 0) -> list[T]:
    """Cases of one loop: all of them in `make test-all`, else one in `each`, beginning with `first % each`.

    Where a row meets a share of a table, the next row takes the next one, so that `make test` meets all.
    """
    found = list(cases)
    return found if EVERY_TEST_RUNS else found[first % each :: each]
