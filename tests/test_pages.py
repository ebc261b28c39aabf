"""README.md and docs: links resolve, examples run, and what they name exists."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from itertools import zip_longest
from pathlib import Path
from platform import machine
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from shares import looped
from tiers import exhaustive
from typer.main import get_command

import tilewright as tw
from tilewright.aot.form import LibraryForm
from tilewright.compiler.pipeline import STAGES
from tilewright.ops.contraction.schedule.passes import PASSES
from tilewright.spec.problem import Strategy
from tilewright.tools.cli import app
from tilewright.tools.explore.cases import parse_sizes
from tilewright.tools.explore.measure import BenchmarkPlan, BenchmarkReport, Sample, make_rows

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = (
    "README.md",
    "CHANGELOG.md",
    "examples/library/README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    *(str(p.relative_to(ROOT)) for p in sorted((ROOT / "docs").rglob("*.md"))),
)
#: Pages that name files of the package, and must name those that exist.
MAPS = ("CONTRIBUTING.md", *(page for page in PAGES if page.startswith("docs/")))
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CLANG = next(filter(None, map(shutil.which, ("clang-19", "clang-20", "clang-21", "clang"))), None)
#: Words that stand for a command, or name one of another package.
PLACEHOLDERS = {"COMMAND", "NAME", "squared"}
#: Values of options of commands.
CHOICES = {
    "--dump": {*(stage.name for stage in STAGES), *(step.name for step in PASSES), "STAGE"},
    "--emit": {"tile", "llvm", "asm", "obj", "header", "ll", "bc", "o", "s"},
    "--form": {form.value for form in LibraryForm},
    "--strategy": {strategy.value for strategy in Strategy},
}
#: Commands of these pages that are ours.
COMMAND = re.compile(r"(?:^|`)((?:tilewright|python -m tilewright) [^`\n#|]*)", re.MULTILINE)


def load(path: Path) -> ModuleType:
    """A Python file as a module."""
    spec = importlib.util.spec_from_file_location(f"page_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def anchors(page: str) -> set[str]:
    """The anchors of headings, as GitHub makes them."""
    headings = re.findall(
        r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text(page), flags=re.DOTALL | re.MULTILINE), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@looped("page", PAGES)
def test_links_resolve(page: str) -> None:
    for target in LINK.findall(text(page)):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        if path.startswith("../api/"):
            continue  # written when the site is built, which follows every link
        found = (ROOT / page).parent / path if path else ROOT / page
        assert found.exists(), target
        if anchor:
            assert anchor in anchors(str(found.resolve().relative_to(ROOT))), target


@cache
def python_files() -> list[str]:
    """The paths of all Python files, each after a slash."""
    places = ("src", "tests", "docs", "benchmarks", "examples")
    return [f"/{path.relative_to(ROOT)}" for place in places for path in (ROOT / place).rglob("*.py")]


@looped("page", MAPS)
def test_pages_name_files_that_exist(page: str) -> None:
    """Every path of a Python file in backticks is the end of the path of some file."""
    named = set(re.findall(r"`((?:[\w.]+/)*\w+\.py)`", text(page)))
    assert {name for name in named if not any(path.endswith(f"/{name}") for path in python_files())} == set()


def test_the_picture_of_the_layers_is_drawn_from_the_table() -> None:
    """Layers and rooms in the order of the imports; otherwise run `python docs/layers.py`."""
    found = text("docs/images/layers.svg")
    at = -1
    for title, _, rooms in load(ROOT / "docs" / "layers.py").boxes():
        for words in (title, *rooms):
            at = found.find(f">{words}<", at + 1)
            assert at >= 0, words


def test_the_first_screen_is_short() -> None:
    assert len(README.splitlines()) <= 120
    assert README.count("![") == 1


def blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", text(page), re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def readme() -> dict[str, Any]:
    """The names that the examples of README.md leave behind, and what they print."""
    names: dict[str, Any] = {"printed": []}
    names["print"] = lambda *words: names["printed"].append(" ".join(map(str, words)))
    for block in blocks("README.md"):
        exec(block, names)
    return names


def test_the_examples_compute_what_they_say(readme: dict[str, Any]) -> None:
    np.testing.assert_allclose(readme["c"], readme["a"] @ readme["b"])
    x, weight, bias, y = (readme[name] for name in ("x", "weight", "bias", "y"))
    assert np.array_equal(y, tw.linear(x, weight, bias, "gelu"))
    assert readme["out"].shape == readme["q"].shape


#: Runs the first example up to its explanation, and prints the kernels that exist then and the one explained.
RAN = """
import gc, re
{before}
from tilewright.compiler.kernel import Kernel
made = [found.name for found in gc.get_objects() if isinstance(found, Kernel)]
print(*made)
print(re.search(r"kernel +(\\w+)", str(tw.explain(tw.matmul, a, b)))[1])
"""


def test_the_kernel_that_is_explained_is_the_one_that_ran() -> None:
    before, _, _ = blocks("README.md")[0].partition("print(")
    script = RAN.format(before=before)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    made, explained = done.stdout.splitlines()
    assert explained in made.split()


def test_what_the_examples_print_is_short(readme: dict[str, Any]) -> None:
    (explained,) = readme["printed"]
    assert 3 < len(explained.splitlines()) < 40


@exhaustive
@pytest.mark.skipif(machine() not in ("x86_64", "aarch64"), reason="its clang has no -march=native")
@pytest.mark.skipif(CLANG is None, reason="clang is not installed")
def test_the_loops_of_c_are_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file and the command, as they are shown."""
    assert CLANG is not None
    (program,) = re.findall(r"^```c\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    (tmp_path / "mm.c").write_text(program, encoding="utf-8")
    (command,) = (line for page, line in commands() if page == "README.md" and "-- clang" in line)
    words = [CLANG if word == "clang" else word for word in shlex.split(command)[1:]]
    monkeypatch.chdir(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "tilewright", *words], capture_output=True, text=True, check=True, timeout=300
    )
    assert re.search(
        r"^replaced mm:\d+: c\[m,n\] \+= a\[m,k\]\*b\[k,n\]", done.stderr + done.stdout, re.MULTILINE
    )
    assert (tmp_path / "mm.o").stat().st_size > 1000


@exhaustive
def test_the_example_with_pytorch_runs() -> None:
    torch = pytest.importorskip("torch")
    (block,) = re.findall(r"^```python torch\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    exec(block, names)
    assert names["y"].shape == (8, 64)
    assert torch.isfinite(names["y"]).all()


def test_the_commands_of_the_first_pages_are_those_of_the_readme() -> None:
    """Which run: the next test."""
    ours = {line.partition("#")[0].strip() for line in README.splitlines()}
    for page in ("docs/start/install.md", "docs/start/five-minutes.md"):
        for block in re.findall(r"^```sh\n(.*?)^```", text(page), re.DOTALL | re.MULTILINE):
            assert {line.partition("#")[0].strip() for line in block.splitlines()} <= ours, page


@exhaustive
def test_the_commands_of_the_readme_run(tmp_path: Path) -> None:
    """`pip install .` into an empty folder, then the others by what was installed there."""
    pytest.importorskip("hatchling")
    block = README[README.index("```sh\n") : README.index("`make demo`")]
    first, *others = (line.partition("#")[0].split() for line in block.splitlines()[1:5])
    assert first == ["pip", "install", "."]
    said = {"info": "numpy", "bench": "numpy", "explore": "gemm.html"}
    assert [words[1] for words in others] == list(said)
    options = ["-q", "--no-deps", "--no-build-isolation", "--target", str(tmp_path / "installed")]
    subprocess.run(
        [sys.executable, "-m", *first, *options], cwd=ROOT, check=True, capture_output=True, timeout=300
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed")}
    for _, *words in others:
        done = subprocess.run(
            [sys.executable, "-m", "tilewright", *words],
            capture_output=True, text=True, check=True, timeout=900, env=environment, cwd=tmp_path,
        )  # fmt: skip
        assert said[words[0]] in done.stdout.lower()


def commands() -> Iterator[tuple[str, str]]:
    """Every command of README.md and of the site; decisions tell of commands of their time."""
    site = [page for page in PAGES if page.startswith("docs/")]
    taught = [page for page in site if not page.startswith(("docs/decisions/", "docs/api/"))]
    for page in ("README.md", *taught):
        for command in COMMAND.findall(text(page).replace("\\\n", " ")):
            yield page, command.strip()


def test_pages_name_commands() -> None:
    assert len(list(commands())) > 10


@looped(("page", "command"), list(commands()))
def test_commands_and_their_options_exist(page: str, command: str) -> None:
    """Every command and option that a page shows is one of ours."""
    found: Any = get_command(app)
    words = shlex.split(command)[1:]
    while words and hasattr(found, "commands"):
        inner = found.get_command(None, words[0])
        if inner is None:
            break
        found = inner
        del words[0]
    options = {"--help", *(name for parameter in found.params for name in parameter.opts)}
    if found.context_settings.get("ignore_unknown_options"):
        return  # `tilewright run`: the words are those of the program
    before_separator = words[: words.index("--")] if "--" in words else words
    for word, value in zip_longest(before_separator, before_separator[1:]):
        if word.startswith("-") and word != "-":
            assert word.partition("=")[0] in options, f"{page}: {command}"
        if word in CHOICES and value != word.strip("-").upper():
            assert value in CHOICES[word], f"{page}: {command}"
    if hasattr(found, "commands"):
        assert words == [] or words[0] in {*PLACEHOLDERS, *options}, f"{page}: {command}"


@looped("name", sorted(set(re.findall(r"`(?:@)?tw\.(\w+)", text("docs/reference/overview.md")))))
def test_the_reference_names_what_exists(name: str) -> None:
    assert name in {*tw.__all__, *tw._PACKAGES}


# --- measured tables ------------------------------------------------------------------------------

TABLES = load(ROOT / "benchmarks" / "readme.py")


def reported(name: str) -> Any:
    """A report of two sizes as `tilewright bench --json` writes it."""
    systems = ("numpy", "numpy-best", "tilewright-avx2", "tilewright")
    plan = BenchmarkPlan(parse_sizes("256,512"), systems[:-1], repeat=2)
    speeds = {"numpy": 50.0, "numpy-best": 80.0, "tilewright-avx2": 45.0, "tilewright": 90.0}
    samples = {
        (case, s): [Sample(speeds[s] * (1 + case), 100.0 * (1 + case))] * 2
        for case in (0, 1)
        for s in systems
    }
    rows = make_rows(plan, samples, {"numpy-best": {"OPENBLAS_CORETYPE": "Zen"}})
    machine = {"cpu": "znver4", "isa": "avx512", "versions": {"numpy": "2"}}
    return TABLES.Report(json.loads(BenchmarkReport(machine, "host", "FMA", 100.0, rows).to_json()))


def test_every_marked_table_is_written() -> None:
    """The script that writes the tables knows every marker of the pages, and every table has its place."""
    known = TABLES.blocks({row.name: reported(row.name) for row in TABLES.REPORTS})
    marked = {
        name for page in TABLES.PAGES for name in re.findall(r"<!-- measured: ([\w-]+) -->", text(page))
    }
    assert marked == set(known)
    page = TABLES.replace(text("docs/performance.md"), {"headline": "As fast as light."})
    assert "<!-- measured: headline -->\nAs fast as light.\n<!-- end -->" in page
    assert TABLES.replace(page, {"headline": ""}).count("<!-- end -->") == page.count("<!-- end -->")


def test_tables_and_headline_are_by_the_best_peer() -> None:
    report = reported("gemm-f32")
    assert report.best_peer == "numpy-best"
    headline = TABLES.headline({"gemm-f32": report}).replace("\n", " ")
    assert "90 % of the measured FMA peak (45 % with its AVX2 kernels), 1.12 times" in headline
    assert "`OPENBLAS_CORETYPE=Zen`" in TABLES.setting(report)
    lines = list(TABLES.table(report))
    assert lines[2] == "| 256 | 90.0 | 90 % | 1.80 | 1.12 | 2.00 |"
    assert lines[-1] == "| geometric mean |  | 90 % | 1.80 | 1.12 | 2.00 |"
    assert list(TABLES.share_table(report))[-1] == "| 512 | 90 % | 45 % | 80 % | 50 % |"
    (row,) = (line for line in TABLES.summary({"gemm-f32": report}) if "n = 256 to 512" in line)
    assert row.endswith("| 90 % | NumPy, best setting | 1.12 | 1.12 | 1.12 |")


def test_expectations_are_of_measured_cpus() -> None:
    page = text("docs/performance.md")
    known = load(ROOT / "examples" / "expectations.py")
    for row in known.EXPECTATIONS:
        assert f"## Zen {row.cpu[-1]}" in page
        line = known.expectation_line({"cpu": row.cpu})
        assert row.share in line
        assert len(line) <= 80
