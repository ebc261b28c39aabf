"""The benchmarks, most of which no test runs: the names that they import exist."""

from __future__ import annotations

import ast
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

BENCHMARKS = sorted((Path(__file__).resolve().parent.parent / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_imported_names_exist(path: Path) -> None:
    absent = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("tilewright"):
            continue
        try:
            module = import_module(node.module or "")
        except ImportError as error:
            if (error.name or "tilewright").startswith("tilewright"):
                raise
            continue  # a library that is not installed
        absent += [
            f"{node.module}.{alias.name}"
            for alias in node.names
            if not hasattr(module, alias.name) and find_spec(f"{node.module}.{alias.name}") is None
        ]
    assert absent == []
