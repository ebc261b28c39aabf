"""Examples of a page of the documentation: its blocks of Python in their order, run in one namespace."""

from __future__ import annotations

import linecache
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: A block of Python, or a cell that runs while the site is built: words behind its language, its lines.
_BLOCK = re.compile(r"^```(?:python|\{code-cell\} ipython3)([^\n]*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_OPTIONS = re.compile(r"\A(?:---\n.*?\n---\n|(?::[^\n]*\n)+)", re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    """The packages that each block of a page needs, and its lines."""
    text = page.read_text(encoding="utf-8")
    return [(needs.strip(), _OPTIONS.sub("", lines)) for needs, lines in _BLOCK.findall(text)]


@contextmanager
def working_directory(folder: Path) -> Iterator[None]:
    """Runs in a folder, with the pictures of the site importable."""
    before, tools = Path.cwd(), str(ROOT / "docs" / "tools")
    os.chdir(folder)
    sys.path.insert(0, tools)
    try:
        yield
    finally:
        sys.path.remove(tools)
        os.chdir(before)


def run(page: Path, folder: Path) -> dict[str, Any]:
    """Runs the examples of a page in an empty folder; the names that they leave behind.

    Source is kept for `inspect`, since `tw.accelerate` reads it. Packages that a block needs and that are not
    installed skip the page.
    """
    names: dict[str, Any] = {"__name__": f"page_{page.stem.replace('-', '_')}"}
    with working_directory(folder):
        for number, (needs, lines) in enumerate(blocks(page)):
            for package in needs.split():
                pytest.importorskip(package)
            file = f"<{page.parent.name}/{page.name}, block {number}>"
            linecache.cache[file] = (len(lines), None, lines.splitlines(keepends=True), file)
            exec(compile(lines, file, "exec"), names)
    return names
