"""The site builds without a warning, and its reference has every public name."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from tiers import exhaustive

import tilewright as tw
from tilewright import errors
from tilewright.settings import VARIABLES
from tilewright.tools.cli import COMMANDS

ROOT = Path(__file__).resolve().parents[1]


DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS / "tools"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built once, with the files beside its folder."""
    for name in (
        "sphinx",
        "myst_nb",
        "pydata_sphinx_theme",
        "sphinx_design",
        "sphinxext.opengraph",
        "ipykernel",
    ):
        pytest.importorskip(name)
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", "-E"]
    done = subprocess.run(
        [*command, DOCS, folder / tw.__version__], capture_output=True, text=True, check=False, timeout=900
    )
    assert (done.returncode, done.stderr) == (0, "")
    versions = subprocess.run(
        [sys.executable, DOCS / "tools" / "versions.py", folder], capture_output=True, text=True, check=False
    )
    assert (versions.returncode, versions.stderr) == (0, "")
    return folder


@exhaustive
def test_every_public_name_is_in_the_reference(site: Path) -> None:
    pages = "".join(
        path.read_text(encoding="utf-8") for path in (site / tw.__version__ / "api").glob("*.html")
    )
    own = [
        f"tilewright.{name}"
        for name in tw.__all__
        if callable(getattr(tw, name)) and name != "TilewrightError"
    ]
    failures = [f"tilewright.errors.{name}" for name in reference_pages().error_classes()]
    assert len(failures) > 100
    for name in (*own, *failures):
        assert f'id="{name}"' in pages or f'href="#{name}"' in pages, name
    for variable in VARIABLES:
        assert variable.name in pages, variable.name


@exhaustive
def test_no_link_of_the_site_is_broken(site: Path) -> None:
    check = importlib.import_module("check_site")
    assert check.broken_links(site / tw.__version__) == []
    assert check.pictures_without_text(site / tw.__version__) == []
    page = site / tw.__version__ / "start" / "five-minutes.html"
    page.write_text(page.read_text(encoding="utf-8") + '<a href="nowhere.html">', encoding="utf-8")
    check.parsed.cache_clear()
    assert check.broken_links(site / tw.__version__) == ["start/five-minutes.html: nowhere.html"]


@exhaustive
def test_the_site_has_a_card_a_list_of_pages_and_versions(site: Path) -> None:
    first = (site / tw.__version__ / "index.html").read_text(encoding="utf-8")
    assert 'property="og:image"' in first
    assert 'property="og:title"' in first
    assert (site / tw.__version__ / "_static" / "card.png").stat().st_size > 10_000
    listed = (site / tw.__version__ / "llms.txt").read_text(encoding="utf-8")
    places = re.findall(r"\]\(([^)]+)\)", listed)
    assert len(places) > 60
    for place in places:
        assert (site / tw.__version__ / place).exists(), place
    (row,) = json.loads((site / "versions.json").read_text(encoding="utf-8"))
    assert row["version"] == tw.__version__
    assert (site / row["url"].removeprefix("../") / "index.html").exists()


def reference_pages() -> ModuleType:
    """The module that writes the reference."""
    return importlib.import_module("reference_pages")


def test_the_reference_has_every_function_error_variable_and_command() -> None:
    """Of the pages as they are written, before Sphinx reads the docstrings."""
    pages = {name: "\n".join(page()) for name, page in reference_pages().PAGES.items() if name != "packages"}
    for name in tw.__all__:
        found = getattr(tw, name)
        if callable(found) and name != "TilewrightError":
            kind = "autoclass" if inspect.isclass(found) else "autofunction"
            page = pages["classes" if inspect.isclass(found) else "functions"]
            assert f".. {kind}:: tilewright.{name}\n" in page, name
    for name, found in vars(errors).items():
        if inspect.isclass(found) and issubclass(found, Exception):
            assert f".. autoexception:: tilewright.errors.{name}\n" in pages["errors"], name
    for variable in VARIABLES:
        assert f"`{variable.name}`" in pages["variables"]
    for name in (*COMMANDS, "bench gemm", "emit brgemm", "cache clear"):
        assert f" tilewright {name}\n" in pages["commands"], name


def test_no_public_name_or_member_is_undocumented() -> None:
    """What autodoc would leave out or print without a word: names, and the members of classes."""
    pages = reference_pages()
    lacking = [name for name in pages.public_functions() if not inspect.getdoc(getattr(tw, name))]
    for name in pages.public_classes():
        kind = getattr(tw, name)
        lacking += [] if kind.__doc__ else [name]
        for member, value in vars(kind).items():
            described = (
                isinstance(value, property) or inspect.isfunction(value) or isinstance(value, classmethod)
            )
            if described and not member.startswith("_") and not inspect.getdoc(getattr(kind, member)):
                lacking.append(f"{name}.{member}")
    lacking += [name for name in pages.error_classes() if not vars(getattr(errors, name)).get("__doc__")]
    assert lacking == []


def test_every_environment_variable_of_the_package_is_in_the_reference() -> None:
    """Names that sources read or tell users to set are rows of a table."""
    pages = reference_pages()
    known = {one.name for one in VARIABLES} | {name for name, _ in pages.OUTSIDE_SETTINGS}
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    named = set(re.findall(r"\bTILEWRIGHT_[A-Z][A-Z0-9_]*[A-Z0-9]\b", sources))
    # Macros of C headers.
    named -= {"TILEWRIGHT_H", "TILEWRIGHT_BLAS_H", "TILEWRIGHT_SCRATCH_ALIGNMENT", "TILEWRIGHT_TEAM"}
    assert named <= known, named - known


def test_versions_are_listed_newest_first(tmp_path: Path) -> None:
    for name in ("0.9.0", "0.10.0", "0.2.1"):
        (tmp_path / name).mkdir()
        for file in ("index.html", "llms.txt"):
            (tmp_path / name / file).write_text(name, encoding="utf-8")
    importlib.import_module("versions").write(tmp_path)
    rows = json.loads((tmp_path / "versions.json").read_text(encoding="utf-8"))
    assert [row["version"] for row in rows] == ["0.10.0", "0.9.0", "0.2.1"]
    assert [row.get("preferred", False) for row in rows] == [True, False, False]
    assert "url=0.10.0/index.html" in (tmp_path / "index.html").read_text(encoding="utf-8")
    assert (tmp_path / "llms.txt").read_text(encoding="utf-8") == "0.10.0"


def test_every_page_is_in_the_contents() -> None:
    """A page that no contents have cannot be found from the first one."""
    docs = ROOT / "docs"
    listed = {docs / "index.md"}
    for page in docs.rglob("index.md"):
        for entries in re.findall(r"```\{toctree\}(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            lines = [re.sub(r".*<(.+)>", r"\1", line) for line in entries.splitlines()]
            lines = [line for line in lines if line and not line.startswith(":")]
            for line in lines:
                listed |= (
                    {found.resolve() for found in page.parent.glob(f"{line}.md")} if "*" in line else set()
                )
                listed.add((page.parent / f"{line}.md").resolve())
    made = {docs / "api", docs / "decisions", docs / "_build"}
    pages = {page for page in docs.rglob("*.md") if not made & set(page.parents)}
    assert pages <= listed, pages - listed
