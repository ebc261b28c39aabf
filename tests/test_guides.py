"""Pages that people learn from: every example runs, and how-to pages have the parts that they all have."""

from __future__ import annotations

import doctest
import importlib
import os
from pathlib import Path

import pages
import pytest
from tiers import exhaustive

import tilewright as tw

DOCS = pages.ROOT / "docs"
FOLDERS = ("start", "howto", "understand", "building", "examples")
#: Pages of the reference that no other test runs.
REFERENCE = ("accelerate", "models", "tensors")
GUIDES = [
    path for folder in FOLDERS for path in sorted((DOCS / folder).rglob("*.md")) if path.name != "index.md"
] + [DOCS / "reference" / f"{name}.md" for name in REFERENCE]
#: Pages that run in `make test`: quick ones, of different kinds. `make test-all` and `make docs` run all.
QUICK = {"install", "threads", "softmax"}
HOW_TO = [path for path in GUIDES if path.parent.name == "howto"]


def with_blocks() -> list[object]:
    """Pages that have examples."""
    found = [path for path in GUIDES if pages.blocks(path)]
    return [
        pytest.param(
            path, id=f"{path.parent.name}-{path.stem}", marks=() if path.stem in QUICK else exhaustive
        )
        for path in found
    ]


def docstring_tests() -> list[doctest.DocTest]:
    """Examples of the public names, in the namespace of their module, as the reference prints them."""
    finder, found = doctest.DocTestFinder(), []
    for name in tw.__all__:
        public = getattr(tw, name)
        if callable(public):
            home = importlib.import_module(tw._HOMES.get(name, "tilewright.errors"))
            found += finder.find(public, name, module=False, globs={**vars(home), "tw": tw})
    return [one for one in found if one.examples]


@exhaustive
def test_examples_of_docstrings_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tests, threads = docstring_tests(), tw.get_num_threads()
    assert len(tests) > 80
    said: list[str] = []
    try:
        runner = doctest.DocTestRunner(
            verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
        )
        for one in tests:
            runner.run(one, out=said.append)
    finally:
        tw.set_num_threads(threads)
        tw.uninstall()
    assert runner.failures == 0, "".join(said)


@pytest.mark.parametrize("page", with_blocks())
def test_its_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    # Cells start processes of their own.
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join((str(pages.ROOT / "src"), os.environ.get("PYTHONPATH", "")))
    )
    if "import pictures" in page.read_text(encoding="utf-8"):
        matplotlib = pytest.importorskip("matplotlib")
        for name, value in matplotlib.rcParams.items():  # which the pictures change
            monkeypatch.setitem(matplotlib.rcParams, name, value)
    if "IPython" in page.read_text(encoding="utf-8"):
        pytest.importorskip("IPython")
    threads = tw.get_num_threads()
    try:
        pages.run(page, tmp_path)
    finally:
        tw.set_num_threads(threads)


def test_how_to_pages_begin_with_the_problem_and_say_what_may_go_wrong() -> None:
    assert len(HOW_TO) >= 15
    for page in HOW_TO:
        text = page.read_text(encoding="utf-8")
        assert text.partition("\n\n")[2].startswith("**Problem.**"), page
        assert "What you see" in text, page
        assert "What may go wrong" in text, page
        assert len(text.splitlines()) <= 120, page


def test_a_page_whose_example_fails_is_found(tmp_path: Path) -> None:
    text = (DOCS / "howto" / "threads.md").read_text(encoding="utf-8")
    page = tmp_path / "threads.md"
    page.write_text(text.replace("tw.get_num_threads()", "tw.no_such_name()"), encoding="utf-8")
    with pytest.raises(AttributeError, match="no_such_name"):
        pages.run(page, tmp_path)
