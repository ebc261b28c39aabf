"""Manners of the command line: exit codes, JSON, colours, completion, interruptions and errors of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import tilewright as tw
from tilewright.tools.cli import app, main
from tilewright.tools.cli.exit_codes import MEANINGS, PASSED_ON, ExitCode
from tilewright.tools.cli.options import complete_dtype, complete_target

ROOT = Path(__file__).resolve().parents[2]
runner = CliRunner()


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that is no group, with the words that name it."""
    if not hasattr(command, "list_commands"):
        yield path, command
        return
    for name in command.list_commands(None):
        yield from commands(command.get_command(None, name), (*path, name))


COMMANDS = dict(commands(get_command(app)))
#: Commands that show no facts: they write code or files, run programs, or say in a line what they removed.
WITHOUT_JSON = {
    *(("cache", "clear"), ("cache", "prune"), ("cc",), ("run",)),
    *(("emit", "library"), ("emit", "blas"), ("emit", "contraction")),
    *(path for path in COMMANDS if path[0] == "explore"),
}


def environment(**changes: str) -> dict[str, str]:
    """This process's environment without words about colours."""
    words = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE")
    return {name: value for name, value in os.environ.items() if name not in words} | changes


# --- exit codes -----------------------------------------------------------------------------------


def test_the_page_has_the_table_of_exit_codes() -> None:
    page = (ROOT / "docs" / "reference" / "exit-codes.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", page, re.MULTILINE)
    assert {int(code): meaning for code, meaning in rows} == MEANINGS
    assert dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.MULTILINE)) == PASSED_ON


def test_every_exit_code_has_a_meaning() -> None:
    assert set(MEANINGS) == set(ExitCode)
    assert {(name,) for name in PASSED_ON} <= set(COMMANDS)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--version"], ExitCode.SUCCESS),
        (["emit", "gemm", "--no-such-option"], ExitCode.ERROR),
        (["no-such-command"], ExitCode.ERROR),
        (["emit", "gemm", "--dtype", "f33"], ExitCode.ERROR),
        (["bench", "gemm", "--repeat", "0"], ExitCode.ERROR),
    ],
)
def test_exit_codes(words: list[str], code: ExitCode) -> None:
    assert runner.invoke(app, words).exit_code == code


def fail(error: BaseException) -> Any:
    def show() -> None:
        raise error

    return show


def test_an_error_of_the_package_says_what_to_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.tools.cli.cache.object_cache", fail(ZeroDivisionError("of ours")))
    result = runner.invoke(app, ["cache", "show"])
    assert result.exit_code == ExitCode.BUG
    assert result.stdout == ""
    assert "ZeroDivisionError: of ours" in result.stderr
    assert result.stderr.splitlines()[-1].endswith("tilewright info --config")


def test_control_c_ends_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.tools.cli.cache.object_cache", fail(KeyboardInterrupt()))
    result = runner.invoke(app, ["cache", "show"])
    assert result.exit_code == ExitCode.INTERRUPTED
    assert "Traceback" not in result.stderr


def test_verify_that_is_interrupted_goes_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    state, seen = tmp_path / "state.json", list[int]()

    def verify(kernel: Any, padding: int) -> bool:
        seen.append(padding)
        if len(seen) == 4 * 3 + 1:
            raise KeyboardInterrupt
        return True

    monkeypatch.setattr("tilewright.tools.explore.kernels.verify_kernel", verify)
    monkeypatch.setattr("tilewright.tools.explore.kernels.compile_problem", lambda problem: problem)
    words = ["verify", "--sample", "5", "--state", str(state), "--json"]
    assert runner.invoke(app, words).exit_code == ExitCode.INTERRUPTED
    assert json.loads(state.read_text())["done"] == 3
    result = runner.invoke(app, words, catch_exceptions=False)
    assert json.loads(result.stdout) == {"shapes": 5, "wrong": []}
    assert len(seen) == 4 * 3 + 1 + 4 * 2


def test_verify_that_finds_a_wrong_kernel_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(
        "tilewright.tools.explore.kernels.verify_kernel", lambda kernel, padding: padding == 0
    )
    monkeypatch.setattr("tilewright.tools.explore.kernels.compile_problem", lambda problem: problem)
    result = runner.invoke(app, ["verify", "--sample", "1", "--state", str(tmp_path / "state"), "--json"])
    assert result.exit_code == ExitCode.FAILED
    assert [one["padding"] for one in json.loads(result.stdout)["wrong"]] == [3, 3]


# --- JSON -----------------------------------------------------------------------------------------


def test_every_command_that_shows_facts_has_json() -> None:
    without = {
        path
        for path, command in COMMANDS.items()
        if "--json" not in [word for parameter in command.params for word in parameter.opts]
    }
    assert without == WITHOUT_JSON


def test_json_of_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    found = json.loads(runner.invoke(app, ["cache", "show", "--json"], catch_exceptions=False).stdout)
    assert found == {"directory": str(tmp_path), "objects": 0, "bytes": 0, "limit_bytes": 256 << 20}
    monkeypatch.setenv("TILEWRIGHT_CACHE", "0")
    assert json.loads(runner.invoke(app, ["cache", "show", "--json"], catch_exceptions=False).stdout) is None


def test_json_of_startup(tmp_path: Path) -> None:
    states = []
    for action in ("show", "enable", "disable"):
        words = ["startup", action, "--directory", str(tmp_path), "--json"]
        states.append(json.loads(runner.invoke(app, words, catch_exceptions=False).stdout)["state"])
    assert states == ["disabled", "enabled", "disabled"]


def test_json_of_kernels(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    runner.invoke(app, ["bench", "brgemm", "--sizes", "8", "--json", str(path)], catch_exceptions=False)
    found = json.loads(path.read_text())
    assert [(row["m"], row["n"], row["k"]) for row in found["rows"]] == [(8, 8, 8)]
    assert found["machine"]["isa"] == tw.machine().isa.name


_LOOPS = """
define void @nothing(ptr %p) {
  ret void
}
"""


def test_json_of_loops(tmp_path: Path) -> None:
    source = tmp_path / "a.ll"
    source.write_text(_LOOPS)
    words = ["opt", str(source), "-o", str(tmp_path / "b.ll"), "--json"]
    assert json.loads(runner.invoke(app, words, catch_exceptions=False).stdout) == []
    result = runner.invoke(app, ["opt", str(source), "--json"])
    assert result.exit_code == ExitCode.ERROR
    assert "--json" in result.stderr


def test_json_of_an_estimate_is_of_estimates() -> None:
    result = runner.invoke(app, ["emit", "brgemm", "--m", "4", "--n", "4", "--k", "4", "--json"])
    assert result.exit_code == ExitCode.ERROR
    assert "--mca" in result.stderr


# --- colours --------------------------------------------------------------------------------------

#: Escape sequences that choose a colour, as opposed to bold or italic letters.
_COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-8]|4[0-8]|9\d|10\d)(?:;\d+)*m")


@pytest.mark.parametrize(("words", "coloured"), [({"FORCE_COLOR": "1"}, True), ({}, False)])
def test_colours(words: dict[str, str], coloured: bool) -> None:
    """None in a file, and none where NO_COLOR is set, whatever else asks for them."""
    program = (
        "from tilewright.tools.cli.terminal import console, print_table\n"
        "c = console(); c.print('[red]a[/red]'); print_table(c, 't', ('a', 'b'), [('1', '2')])\n"
    )
    for no_color in ({}, {"NO_COLOR": "1"}):
        environ = environment(**words, **no_color)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, env=environ, check=True)
        text = done.stdout.decode()
        assert bool(_COLOUR.search(text)) is (coloured and not no_color), (words, no_color)


# --- completion -----------------------------------------------------------------------------------


def completed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """What bash is offered for the last word."""
    monkeypatch.setenv("_TILEWRIGHT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", " ".join(("tilewright", *words)))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (0, None)
    return capsys.readouterr().out.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("ver",), ["verify"]),
        (("emit", "ge"), ["gemm"]),
        (("cache", ""), ["show", "clear", "prune"]),
        (("emit", "gemm", "--emit", "t"), ["tile"]),
        (("emit", "gemm", "--target", "neoverse-v"), ["neoverse-v1", "neoverse-v2"]),
        (("bench", "gemm", "--dtype", "bf"), ["bf16"]),
        (("infer", "--precision", "i4"), ["i4-weights"]),
        (("verify", "--st"), ["--state"]),
    ],
)
def test_shells_complete(
    words: tuple[str, ...],
    expected: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert completed(monkeypatch, capsys, *words) == expected


def test_completions_of_values() -> None:
    assert complete_dtype("c") == ["c64", "c128"]
    assert complete_target("znver4,znver") == [f"znver4,{name}" for name in tw.targets() if "znver" in name]
    assert complete_target("ho") == ["host"]


def test_completing_a_command_imports_none() -> None:
    question = (
        "import sys\nfrom tilewright.tools.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = ('tilewright.aot', 'tilewright.tools.cli.bench')\n"
        "sys.exit(any(name.startswith(heavy) for name in sys.modules))"
    )
    words = {"_TILEWRIGHT_COMPLETE": "complete_bash", "COMP_WORDS": "tilewright ", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", question], env=environment(**words), capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) >= {"info", "bench", "emit"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_get_a_script(
    shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_TILEWRIGHT_COMPLETE", f"source_{shell}")
    with pytest.raises(SystemExit):
        main()
    text = capsys.readouterr().out
    assert f"_TILEWRIGHT_COMPLETE=complete_{shell}" in text
