"""Runs NumPy's own tests with kernels in NumPy's products of every size; a program.

    python tests/installation/numpy_own_tests.py {forced|installed|none} arguments of pytest

With "forced" kernels take the smallest products, too; with "installed" what they take by default. The last
line says how many calls of NumPy's functions they took.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import ml_dtypes  # noqa: F401 - adds types to NumPy's tables, also where nothing is installed
import pytest
from installed_loops import taking_everything

import tilewright as tw

_WAYS: dict[str, Any] = {
    "forced": taking_everything,
    "installed": tw.installed,
    "none": contextlib.nullcontext,
}


def main(way: str, *arguments: str) -> int:
    """The exit status of pytest."""
    with _WAYS[way]():
        status = int(pytest.main([*arguments, "-p", "no:cacheprovider", "-p", "no:xdist"]))
    taken = sum(one.repeated for one in tw.show_calls() if one.function.startswith("numpy."))
    sys.stdout.write(f"{taken} calls taken\n")
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
