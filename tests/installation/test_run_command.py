"""`tilewright run` and `tilewright startup`: programs that know nothing of the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tilewright.tools.cli import app
from tilewright.tools.cli.startup import FILE_NAME, line

SOURCE = Path(__file__).resolve().parents[2] / "src"

SCRIPT = """
import sys
import numpy as np
a = np.ones((50, 50), np.float32)
print(sys.argv[1:], sys.path[0], __name__, __file__)
print((a @ a).sum(), "Replaced" in type(np.dot).__name__)
"""


def python(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if name != "TILEWRIGHT_INSTALL"}
    environ |= {"PYTHONPATH": str(SOURCE), **variables}
    return subprocess.run(
        [sys.executable, *words], env=environ, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "script.py"
    file.write_text(SCRIPT, encoding="utf-8")
    return file


def test_a_script_runs_as_under_python(script: Path) -> None:
    words = ("--help", "-m", "x y", "--", "-3")
    done = python("-m", "tilewright", "run", str(script), *words)
    first, second = done.stdout.splitlines()
    assert first == f"{list(words)} {script.parent} __main__ {script}"
    assert second == "125000.0 True"
    assert done.returncode == 0
    assert done.stderr == ""


def test_a_module_runs_as_under_python(script: Path) -> None:
    path = f"{SOURCE}{os.pathsep}{script.parent}"
    done = python("-m", "tilewright", "run", "-m", "script", "--debug", PYTHONPATH=path)
    first, second = done.stdout.splitlines()
    assert first.startswith("['--debug']")
    assert first.endswith(f"__main__ {script}")
    assert second == "125000.0 True"


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("raise SystemExit(7)", 7, ""),
        ("import sys; sys.exit('gone')", 1, "gone\n"),
        ("1 / 0", 1, "ZeroDivisionError: division by zero\n"),
        ("import tilewright; tilewright.matmul([[1]], [[1], [2]])", 1, ")\n"),
        ("raise KeyboardInterrupt", 130, "KeyboardInterrupt\n"),
    ],
)
def test_programs_end_as_under_python(tmp_path: Path, text: str, status: int, said: str) -> None:
    file = tmp_path / "ends.py"
    file.write_text(f"def f():\n    {text}\nf()\n", encoding="utf-8")
    done = python("-m", "tilewright", "run", str(file))
    assert done.returncode == status
    assert done.stderr.endswith(said)
    if "Error" in said or "Interrupt" in said:
        lines = done.stderr.splitlines()
        assert lines[0] == "Traceback (most recent call last):"
        assert f'File "{file}", line 3' in lines[1]  # nothing of what runs the program


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    assert "No such file" in python("-m", "tilewright", "run", str(tmp_path / "none.py")).stderr
    assert "needs the name of a module" in python("-m", "tilewright", "run", "-m").stderr
    assert "No module named" in python("-m", "tilewright", "run", "-m", "no_such_module").stderr


def startup(*words: str) -> str:
    result = CliRunner().invoke(app, ["startup", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return " ".join(result.stdout.split())


def test_the_startup_file_comes_and_goes(tmp_path: Path) -> None:
    there = ("--directory", str(tmp_path))
    assert startup(*there).startswith("not enabled")
    assert startup("enable", *there).startswith("enabled")
    assert (tmp_path / FILE_NAME).read_text(encoding="utf-8") == line()
    assert startup("show", *there).startswith("enabled")
    (tmp_path / FILE_NAME).write_text("import other\n", encoding="utf-8")
    assert "another installation" in startup(*there)
    assert startup("disable", *there).startswith("not enabled")
    assert not list(tmp_path.iterdir())
    result = CliRunner().invoke(app, ["startup", "enable", "--directory", str(tmp_path / "none")])
    assert result.exit_code == 2
    assert "No such file" in result.stderr


#: What `site` does with the file when Python starts.
START = "import site, sys; site.addsitedir(sys.argv[1]); "
ASKED = "print('Replaced' in type(numpy.dot).__name__)"


@pytest.mark.parametrize(
    ("value", "program", "expected"),
    [
        ("1", "import numpy; " + ASKED, "True"),
        ("yes", "import tilewright, numpy; " + ASKED, "True"),
        ("0", "import numpy; " + ASKED, "False"),
        ("", "import numpy; " + ASKED, "False"),
        ("1", "print('numpy' in sys.modules, 'tilewright' in sys.modules)", "False False"),
    ],
)
def test_the_variable_installs_after_the_import_of_numpy(
    tmp_path: Path, value: str, program: str, expected: str
) -> None:
    (tmp_path / FILE_NAME).write_text(line(), encoding="utf-8")
    done = python("-c", START + program, str(tmp_path), TILEWRIGHT_INSTALL=value)
    assert (done.stdout.strip(), done.stderr) == (expected, "")


def test_a_program_goes_on_when_it_fails(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text(line(), encoding="utf-8")
    program = START + "import numpy; " + ASKED
    done = python("-c", program, str(tmp_path), TILEWRIGHT_INSTALL="1", TILEWRIGHT_NUM_THREADS="many")
    assert done.stdout.strip() == "False"
    assert done.stderr.startswith("tilewright: NumPy's products stay as they are: ")
    assert len(done.stderr.splitlines()) == 1
