"""`tilewright infer` and `tilewright bench model`."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tilewright import errors
from tilewright.tools.cli import app
from tilewright.tools.explore import model_bench
from tilewright.tools.explore.model_inputs import parse_sizes, read_inputs

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnx.parser")

TEXT = """<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 3] x, float[n, 3] y, int64[k] i) => (float[n, 3] apart, int64[k] twice)
{ apart = Sub(x, y)  twice = Add(i, i) }"""


def invoke(*words: str, status: int = 0) -> Any:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == status, (result.output, result.exception)
    return result


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(TEXT), path)
    return path


@pytest.fixture
def arrays(tmp_path: Path) -> dict[str, str]:
    values = {
        "x": np.arange(6, dtype=np.float32).reshape(2, 3),
        "y": np.ones((2, 3), np.float32),
        "i": np.array([3, 4]),
    }
    for name, value in values.items():
        np.save(tmp_path / f"{name}.npy", value)
    return {name: str(tmp_path / f"{name}.npy") for name in values}


def test_infer_writes_files(model: Path, arrays: dict[str, str], tmp_path: Path) -> None:
    """Files without a name belong to the inputs that are left, in the model's order."""
    words = ("--input", arrays["x"], "--input", f"i={arrays['i']}", "--input", arrays["y"])
    out = tmp_path / "results"
    assert invoke("infer", str(model), *words, "--output", str(out)).stdout == ""
    assert np.load(out / "apart.npy").tolist() == [[-1, 0, 1], [2, 3, 4]]
    assert np.load(out / "twice.npy").tolist() == [6, 8]


def test_infer_prints_a_summary(model: Path, arrays: dict[str, str]) -> None:
    words = [word for name, path in arrays.items() for word in ("--input", f"{name}={path}")]
    lines = invoke("infer", str(model), *words, "--threads", "1").stdout.splitlines()
    (row,) = [line for line in lines if "apart" in line]
    assert row.replace("│", " ").split() == ["apart", "float32", "(2,", "3)", "-1", "4", "1.5"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "x, y, i is missing"),
        (("--input", "z=x.npy"), "input z: the model's inputs are x, y, i"),
        (("--input", "x=none.npy"), "input x: cannot read none.npy: No such file"),
        (("--input", "x={model}"), "input x: cannot read"),
        (("--input", "x={x}", "--input", "x={x}"), "input x: is given twice"),
        (("--input", "{x}", "--input", "{x}", "--input", "{x}", "--input", "{y}"), "4 files for the inputs"),
        (("--input", "{x}", "--input", "{x}", "--input", "{x}"), "input i"),
        (("--input", "{x}", "--output", "/nowhere/at/all"), "/nowhere/at is not a folder"),
        (("--precision", "f64"), "precision"),
    ],
)
def test_infer_refuses(words: tuple[str, ...], message: str, model: Path, arrays: dict[str, str]) -> None:
    given = [word.format(model=model, **arrays) for word in words]
    result = invoke("infer", str(model), *given, status=2)
    (line,) = result.stderr.splitlines()
    assert line.startswith("tilewright: ")
    assert message in line
    with pytest.raises(errors.InferenceInput, match="twice"):
        read_inputs([f"x={arrays['x']}"] * 2, ["x"])


def test_archives_of_arrays_and_pickles_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "many.npz", np.ones(3))
    np.save(tmp_path / "pickle.npy", np.array([{}], object), allow_pickle=True)
    for name in ("many.npz", "pickle.npy"):
        with pytest.raises(errors.InferenceInput, match=r"several arrays|cannot read"):
            read_inputs([str(tmp_path / name)], ["x"])


# --- bench model --------------------------------------------------------------------------------------


def test_bench_model(model: Path, arrays: dict[str, str], tmp_path: Path) -> None:
    report_path = tmp_path / "report.json"
    words = ("--repeat", "2", "--size", "n=5", "--input", f"i={arrays['i']}", "--json", str(report_path))
    text = invoke("bench", "model", str(model), *words).stdout
    report = json.loads(report_path.read_text())
    assert report["inputs"] == {"x": [5, 3], "y": [5, 3], "i": [2]}
    systems = ["tilewright", *(["onnxruntime"] if find_spec("onnxruntime") else [])]
    assert [row["system"] for row in report["rows"]] == systems
    for row in report["rows"]:
        assert row["system"] in text
        assert row["seconds_ci"][0] <= row["seconds"] <= row["seconds_ci"][1]
        assert 0 < row["seconds"] < row["first_seconds"] + 1


def test_bench_model_without_the_peer(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_bench, "PEER", "no_such_package")
    options = model_bench.ModelOptions(repeat=1)
    report = model_bench.measure_file(model, [], [], options)
    assert [(row.system, row.difference) for row in report.rows] == [("tilewright", None)]
    assert report.inputs == {"x": (1, 3), "y": (1, 3), "i": (1,)}


def test_bench_model_refuses_wrong_results(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def other(plan: model_bench.ModelPlan) -> Any:
        return lambda: [plan.inputs["x"] + 1, plan.inputs["i"] * 2]

    monkeypatch.setattr(model_bench, "PEER", "onnx")  # a package that is there
    monkeypatch.setattr(model_bench, "_session", other)
    with pytest.raises(errors.ModelResult, match="output apart differs"):
        model_bench.measure_file(model, [], [], model_bench.ModelOptions(repeat=1))
    report = model_bench.measure_file(model, [], [], model_bench.ModelOptions(repeat=1, bound=1e6))
    assert report.rows[0].difference is not None
    assert report.rows[0].difference > model_bench.BOUND


@pytest.mark.parametrize("words", [["--size", "n"], ["--size", "n=x"], ["--size", "m=3"]])
def test_bench_model_refuses_sizes(words: list[str], model: Path) -> None:
    assert "a size is NAME=NUMBER" in (
        text := invoke("bench", "model", str(model), *words, status=2).stderr
    ) or ("no input has this size; the model's sizes are n, k" in text)


def test_sizes() -> None:
    assert parse_sizes(["n=5", "m=0"]) == {"n": 5, "m": 0}
