"""The site builds without a warning, and its reference has every public name."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tiers import exhaustive

import tilewright as tw
from tilewright import errors

ROOT = Path(__file__).resolve().parents[1]


@exhaustive
def test_the_site_builds(tmp_path: Path) -> None:
    for name in ("sphinx", "myst_parser", "pydata_sphinx_theme", "sphinx_design"):
        pytest.importorskip(name)
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", "-E"]
    done = subprocess.run(
        [*command, ROOT / "docs", tmp_path], capture_output=True, text=True, check=False, timeout=600
    )
    assert (done.returncode, done.stderr) == (0, "")
    pages = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "api").glob("*.html"))
    kinds = [name for name in dir(errors) if inspect.isclass(getattr(errors, name))]
    failures = [name for name in kinds if issubclass(getattr(errors, name), Exception)]
    named = [
        f"tilewright.{name}"
        for name in tw.__all__
        if callable(getattr(tw, name)) and name != "TilewrightError"
    ]
    for name in (*named, *(f"tilewright.errors.{name}" for name in failures)):
        assert f'id="{name}"' in pages or f'href="#{name}"' in pages, name
    assert (tmp_path / "building" / "gemm.html").exists()


def test_every_page_is_in_the_contents() -> None:
    """A page that no contents have cannot be found from the first one."""
    docs = ROOT / "docs"
    listed = {docs / "index.md"}
    for page in docs.rglob("index.md"):
        for entries in re.findall(r"```\{toctree\}(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            lines = [line for line in entries.split() if not line.startswith(":")]
            listed |= {(page.parent / f"{line}.md").resolve() for line in lines}
    made = {docs / "api", docs / "decisions", docs / "_build"}
    pages = {page for page in docs.rglob("*.md") if not made & set(page.parents)}
    assert pages <= listed, pages - listed
