"""The measuring method: shares, ratios, JSON form, and the processes that are fed over pipes."""

from __future__ import annotations

import io
import json

import pytest

from tilewright.errors import (
    InvalidChoice,
    InvalidSize,
    PackageMissing,
    UnsupportedDtype,
    WorkerFailed,
    WrongResult,
)
from tilewright.explore import measure as measuring
from tilewright.explore import systems, worker
from tilewright.explore.cases import Case, parse_sizes
from tilewright.explore.measure import Plan, Report, Sample, WorkerProcess, make_rows, measure, summarise
from tilewright.explore.present import slower_lines
from tilewright.explore.systems import Product, find_system, parse_peers
from tilewright.explore.worker import Worker, serve
from tilewright.spec.problem import Gemm

TWO = Plan(parse_sizes("8,16x8x4"), peers=("numpy",), repeat=3)
ROW_FIELDS = [
    "problem", "dtype", "m", "n", "k", "threads", "system",
    "gflops_median", "gflops_ci", "share_of_peak", "ratio_to",
]  # fmt: skip


def samples_of(*pairs: tuple[float, float]) -> list[Sample]:
    return [Sample(gflops, peak) for gflops, peak in pairs]


SAMPLES = {
    (0, "numpy"): samples_of((50, 100), (60, 100), (40, 100)),
    (0, "tilewright"): samples_of((90, 100), (80, 200), (100, 100)),
    (1, "numpy"): samples_of((20, 100), (20, 100), (20, 100)),
    (1, "tilewright"): samples_of((10, 100), (10, 100), (10, 100)),
}


@pytest.fixture
def report() -> Report:
    return Report({"cpu": "znver5", "isa": "avx512"}, 100.0, make_rows(TWO, SAMPLES))


def test_share_uses_the_peak_beside_each_measurement(report: Report) -> None:
    row = report.row("gemm 8x8x8 nn", "tilewright")
    assert row.gflops_median == 90
    assert row.share_of_peak == pytest.approx(0.9)  # the median of 0.9, 0.4 and 1.0
    assert row.gflops_ci == (80.0, 100.0)
    assert row.ratio_to == {"numpy": pytest.approx(1.8)}


def test_a_loss_is_reported_like_a_win(report: Report) -> None:
    assert report.row("gemm 16x8x4 nn", "tilewright").ratio_to == {"numpy": 0.5}
    assert report.row("gemm 16x8x4 nn", "numpy").ratio_to == {"tilewright": 2.0}
    assert slower_lines(TWO, report) == ("slower than numpy at: 16x8x4 (0.50)",)


def test_summary(report: Report) -> None:
    share, ratio = summarise(report)
    assert (share.figure, ratio.figure) == ("share of peak", "ratio to numpy")
    assert share.geometric_mean == pytest.approx((0.9 * 0.1) ** 0.5)
    assert ratio.geometric_mean == pytest.approx((1.8 * 0.5) ** 0.5)
    assert (ratio.worst, ratio.worst_problem) == (0.5, "gemm 16x8x4 nn")


def test_json_form(report: Report) -> None:
    written = json.loads(report.to_json())
    assert list(written) == ["machine", "peak_gflops", "rows"]
    assert written["machine"]["cpu"] == "znver5"
    assert len(written["rows"]) == 4
    for row in written["rows"]:
        assert list(row) == ROW_FIELDS
    assert written["rows"][1] == {
        "problem": "gemm 8x8x8 nn",
        "dtype": "f32",
        "m": 8,
        "n": 8,
        "k": 8,
        "threads": 1,
        "system": "tilewright",
        "gflops_median": 90,
        "gflops_ci": [80, 100],
        "share_of_peak": pytest.approx(0.9),
        "ratio_to": {"numpy": pytest.approx(1.8)},
    }


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"cases": ()}, InvalidSize),
        ({"threads": 0}, InvalidSize),
        ({"repeat": 0}, InvalidSize),
        ({"cases": (Case(Gemm(2, 2, 2)), Case(Gemm(2, 2, 2), label="again"))}, InvalidChoice),
        ({"cases": (Case(Gemm(2, 2, 2)), Case(Gemm(3, 3, 3, "f64")))}, InvalidChoice),
    ],
)
def test_plans_that_make_no_sense(change: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        Plan(**{"cases": TWO.cases, **change})  # type: ignore[arg-type]


def test_peers() -> None:
    assert parse_peers(" numpy, numpy,") == ("numpy",)
    assert parse_peers("") == ()
    with pytest.raises(InvalidChoice, match="numpy, torch"):
        parse_peers("blas")
    with pytest.raises(InvalidChoice, match="peer"):
        parse_peers("tilewright")


def test_a_peer_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = systems.Torch(package="tilewright_absent_package")
    monkeypatch.setattr(systems, "SYSTEMS", (absent,))
    with pytest.raises(PackageMissing, match="pip install tilewright_absent_package"):
        find_system("torch")


# --- the process of one system -------------------------------------------------------------------


def converse(*lines: str) -> list[dict[str, object]]:
    """What a worker that measures NumPy answers to lines on its pipe, in this process."""
    answers = io.StringIO()
    serve(Worker("numpy", threads=1), io.StringIO("".join(f"{line}\n" for line in lines)), answers)
    return [json.loads(line) for line in answers.getvalue().splitlines()]


PREPARE = '{"prepare": {"index": 0, "gemm": {"m": 4, "n": 4, "k": 4, "a": "col"}, "batch": 1, "seed": 1}}'


def test_a_worker_prepares_and_measures() -> None:
    prepared, measured = converse(PREPARE, '{"measure": {"index": 0}}')
    lasting, seconds = prepared["seconds"], measured["seconds"]
    assert isinstance(lasting, float)
    assert isinstance(seconds, float)
    # A call takes far less than a measurement, which repeats it.
    assert 0 < seconds < worker.MEASUREMENT_SECONDS / 10
    assert lasting == pytest.approx(worker.MEASUREMENT_SECONDS, rel=0.11)


def test_a_worker_refuses_to_time_a_wrong_product(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgets_the_last_row(a: object, b: object, out: object) -> None:
        out[:-1] = (a @ b)[:-1]  # type: ignore[index, operator]

    def prepare(self: object, a: object, b: object, out: object, threads: int) -> Product:
        return Product(forgets_the_last_row, a, b, out)

    monkeypatch.setattr(systems.NumPy, "prepare", prepare)
    (answer,) = converse(PREPARE)
    assert answer["error"] == WrongResult.__name__
    assert answer["fields"]["row"] == 3  # type: ignore[index]


def test_a_worker_answers_failures_and_goes_on() -> None:
    unsupported = PREPARE.replace('"m": 4', '"m": 4, "dtype": "f37"')
    first, second, third = converse(unsupported, '{"measure": {"index": 9}}', PREPARE)
    assert first["error"] == UnsupportedDtype.__name__
    assert second == {"failure": "KeyError: 9"}
    assert "seconds" in third


def test_the_process_gets_its_thread_counts_before_libraries_load() -> None:
    with WorkerProcess("numpy", threads=1) as process:
        assert process.ask("prepare", index=0, gemm={"m": 2, "n": 2, "k": 2}, batch=1, seed=0)["seconds"] > 0
        with pytest.raises(UnsupportedDtype, match="f37"):
            process.ask("prepare", index=1, gemm={"m": 2, "n": 2, "k": 2, "dtype": "f37"}, batch=1, seed=0)
        with pytest.raises(WorkerFailed, match="KeyError: 7"):
            process.ask("measure", index=7)


def test_a_process_that_ends_is_named_with_its_last_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "_START", "import sys; sys.exit('no such luck')")
    with (
        WorkerProcess("numpy", threads=1) as process,
        pytest.raises(WorkerFailed, match=r"numpy failed: .*status 1: no such luck"),
    ):
        process.ask("measure", index=0)


def test_thread_variables_are_set_in_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    show = "import os; sys.exit(' '.join(os.environ[name] for name in start['environment']))"
    start = measuring._START.split("from tilewright", maxsplit=1)[0]
    monkeypatch.setattr(measuring, "_START", f"{start}{show}")
    with WorkerProcess("numpy", threads=3) as process, pytest.raises(WorkerFailed, match="3 3 3 3"):
        process.ask("measure", index=0)


def test_peak_of_threads_is_their_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    from tilewright.runtime import peak

    monkeypatch.setattr(peak, "measure_peak", lambda dtype, machine, seconds: 100.0)
    assert worker.measure_peak_of_threads("f32", 1, 0.005) == 100.0
    assert worker.measure_peak_of_threads("f32", 3, 0.005) == 300.0


def test_measure_end_to_end() -> None:
    """Needs `tilewright.matmul` and `runtime.peak`."""
    steps = []
    found = measure(TWO, {"cpu": "here"}, lambda: steps.append(1))
    assert len(steps) == TWO.steps == 16
    assert found.peak_gflops > 0
    assert [(row.problem, row.system) for row in found.rows] == [
        (case.name, system) for case in TWO.cases for system in ("numpy", "tilewright")
    ]
    for row in found.rows:
        assert row.gflops_ci[0] <= row.gflops_median <= row.gflops_ci[1]
        assert 0 < row.share_of_peak < 2
