"""docs/reference/explore.md: its example runs, its commands parse, and it names every section of the page."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from support import run_python
from typer.testing import CliRunner

from tilewright.tools.cli import app
from tilewright.tools.explore.page.build import SCRIPTS

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "reference" / "explore.md").read_text(encoding="utf-8")
STATIC = ROOT / "src" / "tilewright" / "tools" / "explore" / "page" / "static"


def test_its_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE):
        exec(block, names)
    assert (tmp_path / "kernel.html").stat().st_size > 100_000


def test_its_commands_have_the_options_that_it_says() -> None:
    (block,) = re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    for line in block.splitlines():
        words = shlex.split(line)[1:]
        helped = CliRunner().invoke(app, [*words[:2], "--help"]).stdout
        for word in words:
            if word.startswith("-"):
                assert word in helped, line


def test_a_page_is_the_first_thing_a_process_does() -> None:
    program = "import tilewright as tw; print(len(tw.compile(tw.Gemm(dtype='f32')).explore().html) > 10_000)"
    assert run_python("-c", program) == "True\n"


def test_it_names_every_section() -> None:
    titles = {
        title
        for name in SCRIPTS
        for title in re.findall(r'id: "\w+", title: "([\w ]+)"', (STATIC / name).read_text(encoding="utf-8"))
    }
    assert len(titles) == 10
    assert titles == set(re.findall(r"^\| ([A-Z][\w ]+?) \|", PAGE, re.MULTILINE))


def test_d3_has_its_licence_beside_it() -> None:
    assert "Mike Bostock" in (STATIC / "d3.LICENSE").read_text(encoding="utf-8")
    assert (STATIC / "d3.min.js").read_text(encoding="utf-8").startswith("// https://d3js.org v7")
