"""`tilewright tune`: its options, its output, and programs whose products are recorded."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tuning_timers import FakeTimer
from typer.testing import CliRunner, Result

import tilewright as tw
from tilewright.errors import ScriptFailed
from tilewright.machine.host import host_machine
from tilewright.ops.gemm.kernel import GemmKernel
from tilewright.recorder import recordings
from tilewright.spec.problem import ProductTypes
from tilewright.tools.cli import app
from tilewright.tools.cli import tune as command
from tilewright.tools.explore.tuning.classes import CLASSES, Shape, Situation
from tilewright.tools.explore.tuning.record_products import products_counted, record_products

F32 = ProductTypes.parse("f32")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where tuned constants are kept."""
    path = tmp_path / "tuned.json"
    monkeypatch.setenv("TILEWRIGHT_TUNING", str(path))
    return path


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Callable[[FakeTimer], FakeTimer]:
    """Lets a timer measure."""

    def use(timer: FakeTimer) -> FakeTimer:
        monkeypatch.setattr(command, "new_timer", lambda _seed: timer)
        return timer

    return use


def run(*words: str, status: int = 0) -> Result:
    result = CliRunner().invoke(app, ["tune", *words])
    assert result.exit_code == status, (result.output, result.exception)
    return result


def faster_strips() -> FakeTimer:
    strip = Situation(host_machine(), F32).limits.strip
    mr = Situation(host_machine(), F32).blocking.mr
    return FakeTimer({("strip", 4 * mr): 1.25, ("strip", strip): 1.0})


def test_what_is_found_is_printed_kept_and_shown(
    file: Path, measured: Callable[[FakeTimer], FakeTimer]
) -> None:
    measured(faster_strips())
    output = run("--dtype", "f32").stdout
    assert "strip" in output
    assert "->" in output
    assert f"measured {len(CLASSES)} classes" in output
    assert file.exists()
    shown = run("--show").stdout
    assert "->" in shown
    assert "geometric mean of the gains" in shown
    rows: dict[str, Any] = json.loads(run("--show", "--json").stdout)
    (strip,) = (row for row in rows["f32"] if row["shape_class"] == "large")
    assert strip["gain"] == pytest.approx(1.25, abs=0.01)
    assert strip["in_use"] is True
    assert "\x1b" not in output  # no progress bar where nobody looks


def test_another_run_has_nothing_to_do(file: Path, measured: Callable[[FakeTimer], FakeTimer]) -> None:
    measured(faster_strips())
    run("--dtype", "f32")
    before = file.read_text()
    assert "measured 0 classes" in run("--dtype", "f32").stdout
    assert file.read_text() == before


def test_constants_of_other_models_are_shown_as_unused(
    file: Path, measured: Callable[[FakeTimer], FakeTimer]
) -> None:
    measured(faster_strips())
    run("--dtype", "f32")
    content = json.loads(file.read_text())
    for row in content["findings"]["f32"]:
        if row["shape_class"] == "large":
            row["model"]["strip"] += 1
    content["findings"]["f64"] = [{**content["findings"]["f32"][0], "shape_class": "of another version"}]
    file.write_text(json.dumps(content))
    output = run("--show").stdout
    assert output.replace("\n", " ").count("not used") >= 1
    rows = json.loads(run("--show", "--json").stdout)
    assert [row["in_use"] for row in rows["f64"]] == [False]
    assert sum(not row["in_use"] for row in rows["f32"]) == 1


def test_ctrl_c_keeps_what_was_found(file: Path, measured: Callable[[FakeTimer], FakeTimer]) -> None:
    timer = faster_strips()
    timer = measured(FakeTimer({}, stop_after=60))
    result = run("--dtype", "f32", status=130)
    assert "stopped" in result.stdout
    assert "run the command again to go on" in result.stdout
    kept = json.loads(file.read_text())["findings"]["f32"]
    assert 0 < len(kept) < len(CLASSES)
    assert timer.rounds == 60
    measured(FakeTimer({}))
    assert f"measured {len(CLASSES) - len(kept)} classes" in run("--dtype", "f32").stdout


def test_reset_forgets(file: Path, measured: Callable[[FakeTimer], FakeTimer]) -> None:
    measured(FakeTimer({}))
    run("--dtype", "f32", "--seconds", "1")
    assert run("--reset").stdout == "removed\n"
    assert not file.exists()
    assert run("--reset").stdout == "there was nothing to remove\n"
    assert run("--show").stdout == "nothing was tuned on this CPU\n"


@pytest.mark.parametrize(
    ("variables", "words", "message"),
    [
        ({"TILEWRIGHT_TUNING": "0"}, ["--show"], "TILEWRIGHT_TUNING"),
        ({"TILEWRIGHT_CPU": "generic"}, ["--show"], "TILEWRIGHT_CPU"),
        ({}, ["--dtype", "f33"], "f33"),
        ({}, ["--record", "nosuchfile.py"], "no such file"),
        ({}, ["a", "b"], "--record"),
        ({}, ["--seconds", "0"], "seconds"),
    ],
)
def test_what_is_refused(
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    words: list[str],
    message: str,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert message in run(*words, status=2).stderr
    assert not file.exists()


# --- recorded programs -------------------------------------------------------------------------------------

SCRIPT = """
import sys
import numpy as np
import tilewright as tw

count, name = int(sys.argv[1]), sys.argv[2]
a, b = np.ones((70, 50), name), np.ones((50, 60), name)
for _ in range(count):
    tw.matmul(a, b)
tw.matmul(a, np.asfortranarray(b))
tw.matmul(np.ones((9, 20, 30), "f4"), np.ones((30, 40), "f4"))
tw.linear(a, np.ones((80, 50), name), np.ones(80, name))
packed = tw.pack(b)
tw.matmul(a, packed)
assert __name__ == "__main__"
"""


def test_a_program_s_products_are_counted(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    found = record_products([str(script), "7", "float64"])
    f64 = ProductTypes.parse("f64")
    assert set(found) == {F32, f64}
    operations = {shape: flops / (2 * shape.m * shape.n * shape.k) for shape, flops in found[f64].items()}
    assert operations[Shape(70, 60, 50)] == 7
    assert operations[Shape(70, 60, 50, "b")] == 1
    assert operations[Shape(70, 80, 50, "b")] == 1
    assert sum(found[F32].values()) == 2 * 9 * 20 * 30 * 40


def test_counting_ends_with_its_context() -> None:
    run_one, run_batch = GemmKernel.run, GemmKernel.run_batch
    a = np.ones((30, 30), np.float32)
    with products_counted() as found:
        assert recordings
        tw.matmul(a, a)
        tw.matmul(a, a)
    assert not recordings
    assert (GemmKernel.run, GemmKernel.run_batch) == (run_one, run_batch)
    tw.matmul(a, a)
    assert found == {(("f32", "f32", "f32"), Shape(30, 30, 30)): 2}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("raise SystemExit(3)", "status 3"),
        ("1 / 0", "status 1"),
        ("import tilewright", "no product"),
    ],
)
def test_programs_that_fail(tmp_path: Path, text: str, reason: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(text)
    with pytest.raises(ScriptFailed, match=reason):
        record_products([str(script)])


def test_tuning_for_a_program(tmp_path: Path, file: Path, measured: Callable[[FakeTimer], FakeTimer]) -> None:
    timer = measured(faster_strips())
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, numpy as np, tilewright as tw\n"
        "tw.matmul(np.ones((300, 400), 'f4'), np.ones((400, 500), 'f4'))\n"
        "assert sys.argv[1:] == ['--size', '3']\n"
    )
    output = run("--record", str(script), "--", "--size", "3").stdout
    assert "f32" in output
    content = json.loads(file.read_text())["findings"]
    assert list(content) == ["f32"]
    assert all(row["shapes"] == ["300x500x400"] for row in content["f32"])
    assert {case.name for _, cases in timer.prepared for case in cases} == {"gemm 300x500x400 nn"}
