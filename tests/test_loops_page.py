"""docs/reference/loops.md: its program is replaced, its commands are ours, and it names every option."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from tilewright.tools.cli import app

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "reference" / "loops.md").read_text(encoding="utf-8")
CLANG = next(filter(None, map(shutil.which, ("clang-19", "clang-20", "clang-21", "clang"))), None)


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.skipif(CLANG is None, reason="clang is not installed")
def test_its_example_is_replaced(tmp_path: Path) -> None:
    assert CLANG is not None
    (program,) = blocks("c")
    (tmp_path / "mm.c").write_text(program)
    compile_line, opt_line, *_ = (line[2:] for line in blocks("console")[0].splitlines() if line[0] == "$")
    words = [CLANG, *shlex.split(compile_line)[1:]]
    subprocess.run(words, cwd=tmp_path, check=True)
    tool, *options = shlex.split(opt_line)
    assert tool == "tilewright"
    paths = [str(tmp_path / word) if word.startswith("mm.") else word for word in options]
    result = CliRunner().invoke(app, paths, catch_exceptions=False)
    (expected,) = (line for line in PAGE.splitlines() if line.startswith("replaced mm"))
    assert result.stderr.splitlines() == [expected]
    assert (tmp_path / "mm.o").read_bytes().startswith(b"\x7fELF")


def test_it_names_every_option() -> None:
    command = typer.main.get_command(app).commands["opt"]  # type: ignore[attr-defined]
    for parameter in command.params:
        for name in parameter.opts:
            if name.startswith("--") and name != "--help":
                assert f"`{name}`" in PAGE, name
