"""The wheel and the sdist: metadata, files, and a new user in an empty environment."""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tiers import exhaustive

import tilewright as tw
from tilewright.tools.cli import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
#: Files of a package that no user should get.
STRAY = re.compile(r"__pycache__|\.py[cod]$|\.so$|~$|/\.|\.orig$|\.rej$|\.log$|\.twobj$")
TIMEOUT = 900


def run(*command: Any, cwd: Path, **changes: str) -> str:
    """Standard output of a command that succeeds, in an environment without this tree."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "NO_COLOR", "FORCE_COLOR")
    environ = {name: value for name, value in os.environ.items() if name not in hidden} | changes
    words = list(map(str, command))
    done = subprocess.run(
        words, cwd=cwd, env=environ, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def lacking(output: str) -> bool:
    """Whether pip found no index, which says nothing about this package."""
    return any(words in output for words in ("No matching distribution", "Could not find", "Connection"))


def pip(python: Path, *words: Any, cwd: Path) -> None:
    """Runs pip; skips the test where no package index can be reached."""
    command = [str(python), "-m", "pip", "--disable-pip-version-check", *map(str, words)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    if done.returncode and lacking(done.stderr):
        pytest.skip(f"no package index: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr


def new_environment(folder: Path) -> Path:
    """The Python of an empty virtual environment."""
    try:
        run(sys.executable, "-m", "venv", folder, cwd=folder.parent)
    except AssertionError as failure:
        if "ensurepip" in str(failure):
            pytest.skip("this Python makes no virtual environments")
        raise
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist, and the wheel that is built of it."""
    folder = tmp_path_factory.mktemp("built")
    python = new_environment(folder / "builder")
    pip(python, "install", "--quiet", "build", "hatchling", cwd=folder)
    run(python, "-m", "build", "--no-isolation", "--outdir", folder / "dist", ROOT, cwd=folder)
    (sdist,), (wheel,) = (folder / "dist").glob("*.tar.gz"), (folder / "dist").glob("*.whl")
    return sdist, wheel


def metadata_of(wheel: Path) -> email.message.Message:
    with zipfile.ZipFile(wheel) as files:
        (name,) = [name for name in files.namelist() if name.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(files.read(name))


# --- what is declared -----------------------------------------------------------------------------


def test_bounds_of_what_is_parsed() -> None:
    """LLVM's text is parsed and written, so that an untried LLVM must not come by itself."""
    bounds = {re.split(r"[<>=]", one)[0]: one for one in PROJECT["dependencies"]}
    assert re.search(r">=.*,<", bounds["llvmlite"])
    assert re.search(r">=.*,<", bounds["numpy"])


def test_the_command_line_is_part_of_the_package() -> None:
    names = {re.split(r"[<>=]", one)[0] for one in PROJECT["dependencies"]}
    assert {"rich", "typer"} <= names
    assert PROJECT["scripts"] == {
        "tilewright": "tilewright_cc.launch:main",
        "tilewright-cc": "tilewright_cc.launch:compiler_main",
    }


def test_versions_agree() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    recipe = (ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8")
    assert f"\nversion: {tw.__version__}\n" in citation
    assert f"\n  version: {tw.__version__}\n" in recipe


def test_the_recipe_needs_what_the_package_needs() -> None:
    recipe = (ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8")
    run_section = recipe.partition("\n  run:\n")[2].partition("\n\n")[0]
    needed = {line.removeprefix("    - ").replace(" ", "") for line in run_section.splitlines()}
    declared = {one.replace(" ", "") for one in PROJECT["dependencies"]}
    assert needed - {"python>=${{python_min}}"} == declared


def test_urls_and_platforms() -> None:
    assert {"Documentation", "Source", "Issues", "Changelog"} <= set(PROJECT["urls"])
    assert all(url.startswith("https://") for url in PROJECT["urls"].values())
    systems = [one for one in PROJECT["classifiers"] if one.startswith("Operating System")]
    assert any("Linux" in one for one in systems)
    assert any("MacOS" in one for one in systems)


def workflows() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    folder = ROOT / ".github" / "workflows"
    return {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in folder.glob("*.yml")}


def test_workflows_name_targets_that_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    called = set()
    for content in workflows().values():
        for job in content["jobs"].values():
            for step in job["steps"]:
                called |= set(re.findall(r"\bmake ([a-z-]+)", step.get("run", "")))
    assert called >= {"lint", "test", "test-all", "docs"}
    assert called <= targets


def test_workflows_have_as_few_rights_as_they_need() -> None:
    found = workflows()
    assert set(found) == {"tests", "docs", "release"}
    for name, content in found.items():
        assert content["permissions"] == {"contents": "read"}, name
        for job in content["jobs"].values():
            assert job["timeout-minutes"] <= 360
    publish = found["release"]["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}, "trusted publishing, no stored secret"
    assert "secrets." not in (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")


def test_workflows_run_on_every_platform() -> None:
    systems = set(workflows()["tests"]["jobs"]["test"]["strategy"]["matrix"]["os"])
    assert {"ubuntu-24.04", "ubuntu-24.04-arm", "macos-15"} <= systems


# --- what is built --------------------------------------------------------------------------------


@exhaustive
def test_the_wheel_has_the_package_and_nothing_else(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[1]) as files:
        names = files.namelist()
    tops = {name.split("/")[0] for name in names}
    assert tops == {"tilewright", "tilewright_cc", f"tilewright-{tw.__version__}.dist-info"}
    assert [name for name in names if STRAY.search(name)] == []
    listed = (path for path in (ROOT / "src").rglob("*") if path.is_file())
    source = {str(path.relative_to(ROOT / "src")) for path in listed}
    package = {name for name in names if not name.startswith(f"tilewright-{tw.__version__}")}
    assert package == {name for name in source if not STRAY.search(name)}
    assert "tilewright/py.typed" in package
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


@exhaustive
def test_the_metadata_is_complete(built: tuple[Path, Path]) -> None:
    found = metadata_of(built[1])
    assert (found["Name"], found["Version"]) == ("tilewright", tw.__version__)
    assert found["License-Expression"] == "Apache-2.0"
    assert found["License-File"] == "LICENSE"
    assert found["Requires-Python"] == ">=3.11"
    assert found["Description-Content-Type"] == "text/markdown"
    assert len(found.get_all("Project-URL") or ()) == len(PROJECT["urls"])
    assert set(map(spelled, PROJECT["dependencies"])) <= set(
        map(spelled, found.get_all("Requires-Dist") or ())
    )


def spelled(requirement: str) -> tuple[str, frozenset[str]]:
    """A requirement as its name and bounds; tools write either in forms of their own."""
    name, bounds = re.fullmatch(r"([\w.-]+)\s*([^;]*).*", requirement, re.DOTALL).groups()  # type: ignore[union-attr]
    return name.lower().replace("_", "-"), frozenset(bounds.replace(" ", "").split(","))


@exhaustive
def test_the_sdist_has_what_it_takes_to_test_and_build(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as files:
        names = [name.partition("/")[2] for name in files.getnames()]
    for name in ("LICENSE", "README.md", "SECURITY.md", "CITATION.cff", "Makefile", "recipe/recipe.yaml"):
        assert name in names
    assert {"src/tilewright/py.typed", "tests/conftest.py", "docs/index.md"} <= set(names)
    strays = [name for name in names if STRAY.search(f"/{name}") and not name.startswith(".gitignore")]
    assert strays == []


#: What a new user types, from the README: after `pip install tilewright`, in any folder.
_PRODUCT = """
import numpy as np
import tilewright as tw
a, b = np.random.rand(1000, 300), np.random.rand(300, 2000)
c = tw.matmul(a, b)
np.testing.assert_allclose(c, a @ b)
print(tw.explain(tw.matmul, a, b))
"""
_MODEL = """
import numpy as np
import tilewright as tw
g = tw.Graph()
x = g.input("x", shape=("batch", 64))
w = np.random.rand(256, 64).astype(np.float32)
g.output(g.softmax(g.linear(x, w, activation="gelu")))
model = g.compile()
x = np.random.rand(7, 64).astype(np.float32)
np.testing.assert_allclose(model(x).sum(axis=-1), 1, rtol=1e-5)
model.save("model.twgraph")
np.testing.assert_array_equal(tw.load_graph("model.twgraph")(x), model(x))
print(model)
"""


def page_command(tilewright: Path, page: Path) -> Sequence[object]:
    """The command that writes the first page: that of `explore`, or the assembly of a kernel."""
    words = ("--m", "64", "--n", "64", "--k", "64")
    if "explore" in COMMANDS:
        return (tilewright, "explore", "gemm", *words, "-o", page)
    return (tilewright, "emit", "gemm", *words, "-o", page)


@exhaustive
def test_a_new_user_s_path(built: tuple[Path, Path], tmp_path: Path) -> None:
    """Install, look at the machine, first product, first page, first model, a measurement: six commands."""
    python = new_environment(tmp_path / "environment")
    tilewright = python.parent / "tilewright"
    home = {"HOME": str(tmp_path), "TILEWRIGHT_CACHE_DIR": str(tmp_path / "objects")}
    pip(python, "install", "--quiet", built[1], cwd=tmp_path)
    config = run(tilewright, "info", "--config", cwd=tmp_path, **home)
    assert f"tilewright    {tw.__version__}"[:12] in config
    explained = run(python, "-c", _PRODUCT, cwd=tmp_path, **home)
    assert "not taken" in explained
    page = tmp_path / "page.html"
    run(*page_command(tilewright, page), cwd=tmp_path, **home)
    assert page.stat().st_size > 100
    assert run(python, "-c", _MODEL, cwd=tmp_path, **home).startswith("<CompiledGraph")
    words = ("bench", "gemm", "--sizes", "64", "--repeat", "2", "--peers", "numpy")
    assert "GFLOPS" in run(tilewright, *words, cwd=tmp_path, **home)
    where = run(python, "-c", "import tilewright; print(tilewright.__file__)", cwd=tmp_path)
    assert str(tmp_path) in where, "the installed package ran, not the one of this tree"


@exhaustive
def test_a_user_s_script_is_checked_against_the_installed_package(
    built: tuple[Path, Path], tmp_path: Path
) -> None:
    """`py.typed` is in the wheel, and no annotation leads into this tree."""
    python = new_environment(tmp_path / "environment")
    pip(python, "install", "--quiet", built[1], "mypy", cwd=tmp_path)
    script = tmp_path / "script.py"
    script.write_text((ROOT / "tests" / "typing" / "user_script.py").read_text(encoding="utf-8"))
    run(python, "-m", "mypy", "--strict", "--follow-imports=silent", script, cwd=tmp_path)
