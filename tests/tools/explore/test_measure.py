"""The measuring method: shares, ratios, JSON form, and the processes that are fed over pipes."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console
from tiers import crossed

from tilewright.errors import (
    InvalidChoice,
    InvalidSize,
    PackageMissing,
    UnsupportedDtype,
    WorkerFailed,
    WrongResult,
)
from tilewright.machine.host import detect_host
from tilewright.machine.isa_rows import usable_isas
from tilewright.machine.machine import enabled_features
from tilewright.ops.gemm.problem import Gemm
from tilewright.spec.problem import parse_types
from tilewright.tools.explore import measure as measuring
from tilewright.tools.explore import systems, worker
from tilewright.tools.explore.cases import Case, parse_sizes
from tilewright.tools.explore.measure import (
    LONG_CALL_REPEAT,
    LONG_CALL_SECONDS,
    BenchmarkPlan,
    BenchmarkReport,
    Sample,
    WorkerProcess,
    best_peer,
    choose_rounds,
    make_rows,
    measure,
    start_worker,
    summarise,
)
from tilewright.tools.explore.prepared import SystemProduct
from tilewright.tools.explore.present import (
    call_lines,
    print_report,
    report_table,
    report_title,
    slower_lines,
)
from tilewright.tools.explore.systems import PEERS, VARIANTS, default_peers, find_system, parse_peers
from tilewright.tools.explore.worker import Worker, serve

TWO = BenchmarkPlan(parse_sizes("8,16x8x4"), peers=("numpy",), repeat=3)
ROW_FIELDS = [
    "problem", "dtype", "m", "n", "k", "threads", "system", "call", "environment", "measurements",
    "gflops_median", "gflops_ci", "share_of_peak", "ratio_to",
]  # fmt: skip


def usable_rows() -> set[str]:
    """Names of the instruction-set rows that this host runs."""
    facts = detect_host()
    return {row.name for row in usable_isas(facts.machine().arch, enabled_features(facts.machine().features))}


def samples_of(*pairs: tuple[float, float]) -> list[Sample]:
    return [Sample(gflops, peak) for gflops, peak in pairs]


SAMPLES = {
    (0, "numpy"): samples_of((50, 100), (60, 100), (40, 100)),
    (0, "tilewright"): samples_of((90, 100), (80, 200), (100, 100)),
    (1, "numpy"): samples_of((20, 100), (20, 100), (20, 100)),
    (1, "tilewright"): samples_of((10, 100), (10, 100), (10, 100)),
}


@pytest.fixture
def report() -> BenchmarkReport:
    return BenchmarkReport({"cpu": "znver5", "isa": "avx512"}, "host", "FMA", 100.0, make_rows(TWO, SAMPLES))


def test_share_uses_the_peak_beside_each_measurement(report: BenchmarkReport) -> None:
    row = report.row("gemm 8x8x8 nn", "tilewright")
    assert row.gflops_median == 90
    assert row.share_of_peak == pytest.approx(0.9)  # the median of 0.9, 0.4 and 1.0
    assert row.gflops_ci == (80.0, 100.0)
    assert row.ratio_to == {"numpy": pytest.approx(1.8)}


def test_a_loss_is_reported_like_a_win(report: BenchmarkReport) -> None:
    assert report.row("gemm 16x8x4 nn", "tilewright").ratio_to == {"numpy": 0.5}
    assert report.row("gemm 16x8x4 nn", "numpy").ratio_to == {"tilewright": 2.0}
    assert slower_lines(TWO, report) == ("slower than numpy at: 16x8x4 (0.50)",)


def test_summary(report: BenchmarkReport) -> None:
    share, ratio = summarise(report)
    assert (share.figure, ratio.figure) == ("share of peak", "ratio to numpy")
    assert share.geometric_mean == pytest.approx((0.9 * 0.1) ** 0.5)
    assert ratio.geometric_mean == pytest.approx((1.8 * 0.5) ** 0.5)
    assert (ratio.worst, ratio.worst_problem) == (0.5, "gemm 16x8x4 nn")


def test_json_form(report: BenchmarkReport) -> None:
    written = json.loads(report.to_json())
    assert list(written) == ["machine", "target", "unit", "peak_gflops", "rows"]
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
        "call": "tilewright, f32",
        "environment": {},
        "measurements": 3,
        "gflops_median": 90,
        "gflops_ci": [80, 100],
        "share_of_peak": pytest.approx(0.9),
        "ratio_to": {"numpy": pytest.approx(1.8)},
    }


THREE = BenchmarkPlan(parse_sizes("8,16x8x4"), peers=("numpy", "numpy-best", "tilewright-avx2"), repeat=3)
OF_THREE = {
    **SAMPLES,
    (0, "numpy-best"): samples_of((60, 100), (60, 100), (60, 100)),
    (1, "numpy-best"): samples_of((18, 100), (18, 100), (18, 100)),
    (0, "tilewright-avx2"): samples_of((99, 100), (99, 100), (99, 100)),
    (1, "tilewright-avx2"): samples_of((99, 100), (99, 100), (99, 100)),
}


def test_summary_names_the_best_peer() -> None:
    """The best by the mean of its speeds; kernels of our own are no peers."""
    report = BenchmarkReport({}, "host", "FMA", 100.0, make_rows(THREE, OF_THREE))
    assert best_peer(report, ("numpy", "numpy-best")) == "numpy-best"
    assert best_peer(report, ()) is None
    found = {line.figure: line for line in summarise(report)}
    assert found["ratio to the best peer, numpy-best"].geometric_mean == pytest.approx((1.5 * 10 / 18) ** 0.5)
    assert found["ratio to the fastest peer at each size"].worst == 0.5
    assert "ratio to tilewright-avx2" in found


def test_labels_are_no_markup() -> None:
    case = Case(Gemm(8, 8, 8), label="[/odd]")
    plan = BenchmarkPlan((case,), repeat=1)
    samples = {(0, system): samples_of((50, 100)) for system in plan.systems}
    report = BenchmarkReport({"cpu": "c", "isa": "i"}, "host", "FMA", 100.0, make_rows(plan, samples))
    console = Console(width=100, record=True, file=io.StringIO())
    print_report(plan, report, console)
    assert console.export_text().count("[/odd]") >= 2


def test_tables_of_many_systems_have_a_line_for_each() -> None:
    report = BenchmarkReport({"cpu": "c", "isa": "i"}, "host", "FMA", 100.0, make_rows(THREE, OF_THREE))
    columns = [list(column.cells) for column in report_table(THREE, report).columns]
    assert columns[0] == ["8", "", "", "", "16x8x4", "", "", ""]
    assert columns[1][:4] == ["numpy", "numpy-best", "tilewright-avx2", "tilewright"]
    assert columns[4][:4] == ["50.0%", "60.0%", "99.0%", "90.0%"]
    assert columns[5][:4] == ["1.80", "1.50", "0.91", ""]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"cases": ()}, InvalidSize),
        ({"threads": 0}, InvalidSize),
        ({"repeat": 0}, InvalidSize),
        ({"cases": (Case(Gemm(2, 2, 2)), Case(Gemm(2, 2, 2), label="again"))}, InvalidChoice),
        ({"cases": (Case(Gemm(2, 2, 2)), Case(Gemm(3, 3, 3, "f64")))}, InvalidChoice),
        ({"cases": (Case(Gemm(2, 2, 2, "i8")), Case(Gemm(3, 3, 3, "i8", out_dtype="i32")))}, InvalidChoice),
        ({"cases": (Case(Gemm(2, 2, 2, "bf16")),), "peers": ("numpy",)}, UnsupportedDtype),
    ],
)
def test_plans_that_make_no_sense(change: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        BenchmarkPlan(**{"cases": TWO.cases, **change})  # type: ignore[arg-type]


def test_peers() -> None:
    assert parse_peers(" numpy, numpy,") == ("numpy",)
    assert parse_peers("") == ()
    with pytest.raises(InvalidChoice, match="numpy, numpy-best, torch"):
        parse_peers("blas")
    with pytest.raises(InvalidChoice, match="peer"):
        parse_peers("tilewright")
    with pytest.raises(InvalidChoice, match="peer"):
        parse_peers("tilewright-f32")
    assert parse_peers("tilewright-f32", PEERS + VARIANTS) == ("tilewright-f32",)


def test_a_peer_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = systems.Torch(package="tilewright_absent_package")
    monkeypatch.setattr(systems, "SYSTEMS", (absent,))
    with pytest.raises(PackageMissing, match="pip install tilewright_absent_package"):
        find_system("torch")


# --- element types ------------------------------------------------------------------------------

CALLS = {
    ("f16", None, "numpy"): ("f16", "numpy.matmul(f16, f16)"),
    ("i8", "i32", "numpy"): ("i8i32", "numpy.matmul(i8, i8, dtype=int32)"),
    ("u8i8", None, "numpy"): ("u8i8i32", "numpy.matmul(u8, i8, dtype=int32)"),
    ("u8i8", None, "torch"): ("i8i32", "torch._int_mm(i8, i8)"),
    ("i8", "i32", "torch"): ("i8i32", "torch._int_mm(i8, i8)"),
    ("bf16", None, "torch"): ("bf16", "torch.matmul(bf16, bf16)"),
    ("bf16", "f32", "torch"): ("bf16", "torch.matmul(bf16, bf16)"),
    ("u8i8", None, "tilewright-f32"): ("f32", "tilewright, f32"),
    ("u8i8", None, "tilewright-generic"): ("u8i8i32", "tilewright, u8i8i32, generic lowering"),
    ("c64", None, "tilewright"): ("c64", "tilewright, c64"),
    ("f32", None, "tilewright-avx2"): ("f32", "tilewright, f32, kernels of the row avx2"),
    ("f32", None, "tilewright-model"): ("f32", "tilewright, f32, without tuned constants"),
    ("f32", None, "numpy-best"): ("f32", "numpy.matmul(f32, f32)"),
    ("bf16", None, "jax"): ("bf16", "jax.jit(jax.numpy.matmul)(bf16, bf16)"),
}
ROWS = {system.name: system for system in systems.SYSTEMS}


@pytest.mark.parametrize(("wanted", "found"), CALLS.items())
def test_what_a_system_computes(wanted: tuple[str, str | None, str], found: tuple[str, str]) -> None:
    dtype, out_dtype, system = wanted
    types = ROWS[system].types(parse_types(dtype, out_dtype))
    assert (types.name, ROWS[system].call(types)) == found


@pytest.mark.parametrize(
    ("dtype", "out_dtype", "system"),
    [("bf16", None, "numpy"), ("i4", None, "numpy"), ("i32", "i8", "numpy"), ("i4", None, "torch"),
     ("i16", "i32", "torch"), ("i8", None, "jax"), ("bf16", "f32", "jax")],
)  # fmt: skip
def test_types_that_a_peer_lacks(dtype: str, out_dtype: str | None, system: str) -> None:
    with pytest.raises(UnsupportedDtype, match=system):
        ROWS[system].types(parse_types(dtype, out_dtype))


def test_default_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_peers(parse_types("c64")) == ("numpy",)
    assert default_peers(parse_types("i4")) == ()
    monkeypatch.setattr(systems, "find_spec", lambda name: object() if name == "torch" else None)
    assert default_peers(parse_types("bf16")) == ("torch",)
    monkeypatch.setattr(systems, "find_spec", lambda name: None)
    assert default_peers(parse_types("bf16")) == ()


@pytest.mark.parametrize(
    ("system", "name"),
    crossed(
        ["tilewright", "tilewright-generic"],
        ["f64", "bf16", "f16", "i4", "u4", "i8", "u8", "i16", "i32", "i64", "c64", "c128"],
        2,
    ),
)
def test_every_type_is_computed_and_checked(name: str, system: str) -> None:
    prepare = PREPARE.replace('"a": "col"', f'"a": "col", "dtype": "{name}"')
    (answer,) = converse(prepare, system=system)
    assert "seconds" in answer, answer


@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v2"])
def test_kernels_of_a_target_are_measured(target: str) -> None:
    from tilewright.machine.catalog import find_machine
    from tilewright.machine.host import host_machine
    from tilewright.machine.machine import runs_on

    if not runs_on(find_machine(target), host_machine()):
        pytest.skip(f"this host does not run {target}")
    mixed = PREPARE.replace('"a": "col"', '"dtype": "u8", "b_dtype": "i8", "out_dtype": "i32"')
    peak = '{"peak": {"dtype": "u8", "b_dtype": "i8", "seconds": 0.001}}'
    prepared, measured = converse(mixed, peak, system="tilewright", target=target)
    assert "seconds" in prepared, prepared
    assert measured["gflops"] > 0  # type: ignore[operator]


def test_kernels_of_a_foreign_target_are_refused_before_they_run() -> None:
    (answer,) = converse(PREPARE, system="tilewright", target="pwr10")
    assert answer["error"] == "ForeignKernel"
    (answer,) = converse(PREPARE.replace('"batch": 1', '"batch": 2'), system="tilewright", target="x86-64-v2")
    assert answer["error"] == "InvalidChoice"


def test_calls_of_more_than_a_second_are_measured_in_few_rounds() -> None:
    order = random.Random(1)
    assert choose_rounds(LONG_CALL_SECONDS, 20, order) == frozenset(range(20))
    few = [choose_rounds(LONG_CALL_SECONDS * 1.01, 20, order) for _ in range(20)]
    assert {len(rounds) for rounds in few} == {LONG_CALL_REPEAT}
    assert len(set(few)) > 1  # anywhere among the others
    assert choose_rounds(9.0, 2, order) == {0, 1}


def test_fewer_measurements_are_said() -> None:
    plan = BenchmarkPlan(parse_sizes("8"), repeat=4)
    samples = {(0, "numpy"): samples_of((5, 10)) * 3, (0, "tilewright"): samples_of((5, 10)) * 4}
    rows = make_rows(plan, samples)
    assert [row.measurements for row in rows] == [3, 4]
    table = report_table(plan, BenchmarkReport({"cpu": "c", "isa": "i"}, "host", "FMA", 10.0, rows))
    cells = [next(iter(column.cells)) for column in table.columns]
    assert "(3)" in str(cells[1])
    assert "(" not in str(cells[2])
    assert "longer than 1 s" in str(table.caption)


def test_the_report_names_types_target_unit_and_calls() -> None:
    plan = BenchmarkPlan(parse_sizes("8", "u8i8"), ("numpy", "tilewright-f32"), repeat=1, target="x86-64-v3")
    rows = make_rows(plan, {(0, system): samples_of((5, 10)) for system in plan.systems})
    report = BenchmarkReport({"cpu": "c", "isa": "i"}, "x86-64-v3", "pmaddwd and add", 10.0, rows)
    assert report_title(plan, report) == "u8i8i32 matrix products on c (i), kernels for x86-64-v3, 1 thread"
    assert "exact integers; pmaddwd and add peak" in str(report_table(plan, report).caption)
    assert call_lines(plan, report) == (
        "numpy computes numpy.matmul(u8, i8, dtype=int32)",
        "tilewright-f32 computes tilewright, f32",
    )
    plain = BenchmarkPlan(parse_sizes("8"), repeat=1)
    rows = make_rows(plain, {(0, system): samples_of((5, 10)) for system in plain.systems})
    assert call_lines(plain, BenchmarkReport({}, "host", "FMA", 10.0, rows)) == ()


def test_measure_mixed_types_beside_another_type() -> None:
    plan = BenchmarkPlan(parse_sizes("8", "u8i8"), ("tilewright-f32",), repeat=2)
    found = measure(plan, {"cpu": "here"})
    f32, ours = found.rows
    assert (ours.dtype, ours.call, f32.call) == ("u8i8i32", "tilewright, u8i8i32", "tilewright, f32")
    assert found.unit
    assert found.peak_gflops > 0


def test_workers_are_told_types_and_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[tuple[str, str], Any] = {}

    def ask(process: WorkerProcess, command: str, **arguments: Any) -> dict[str, float]:
        told[process.system, command] = arguments
        return {"seconds": 0.01, "gflops": 1.0}

    monkeypatch.setattr(WorkerProcess, "ask", ask)
    measure(BenchmarkPlan(parse_sizes("10", "u8i8"), ("numpy",), repeat=1), {})
    assert Gemm(**told["numpy", "prepare"]["gemm"]).types == parse_types("u8i8")
    unit = told["tilewright", "peak"]
    assert (unit["dtype"], unit["b_dtype"]) == ("u8", "i8")


def test_complex_products_count_eight_operations_beside_two(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"prepare": {"seconds": 0.01}, "peak": {"gflops": 1.0}, "measure": {"seconds": 1e-6}}
    monkeypatch.setattr(WorkerProcess, "ask", lambda self, command, **arguments: asked[command])
    found = measure(BenchmarkPlan(parse_sizes("10", "c64"), ("tilewright-f32",), repeat=1), {})
    assert [row.gflops_median for row in found.rows] == [pytest.approx(2.0), pytest.approx(8.0)]


# --- the process of one system -------------------------------------------------------------------


def converse(*lines: str, system: str = "numpy", target: str | None = None) -> list[dict[str, object]]:
    """What a worker answers to lines on its pipe, in this process."""
    answers = io.StringIO()
    serve(Worker(system, 1, target), io.StringIO("".join(f"{line}\n" for line in lines)), answers)
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

    def prepare(self: object, gemm: Gemm, arrays: Any, threads: int, target: None) -> SystemProduct:
        return SystemProduct(forgets_the_last_row, *arrays)

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


def test_a_long_call_is_not_warmed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []

    def seconds(run: Callable[[int], None], calls: int) -> float:
        ran.append(calls)
        run(calls)
        return 6.0

    monkeypatch.setattr(worker, "_seconds", seconds)
    assert converse(PREPARE) == [{"seconds": 6.0}]
    assert ran == [1]
    monkeypatch.setattr(worker, "WARM_FROM_SECONDS", 7.0)
    assert converse(PREPARE) == [{"seconds": 6.0}]
    assert ran == [1, 1, 1, 1]  # the first call; again, to see how many last long enough; warm up


def test_thread_variables_are_set_in_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    show = "import os; sys.exit(' '.join(os.environ[name] for name in start['environment']))"
    start = measuring._START.split("from tilewright", maxsplit=1)[0]
    monkeypatch.setattr(measuring, "_START", f"{start}{show}")
    with WorkerProcess("numpy", threads=3) as process, pytest.raises(WorkerFailed, match="3 3 3 3"):
        process.ask("measure", index=0)


def test_settings_of_the_shell_do_not_reach_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy as shipped: images that set OPENBLAS_CORETYPE would measure something else."""
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.setenv("OPENBLAS_L2_SIZE", "1")
    show = "import os; sys.exit(' '.join(name for name in start['removed'] if name in os.environ) or 'none')"
    start = measuring._START.split("from tilewright", maxsplit=1)[0]
    monkeypatch.setattr(measuring, "_START", f"{start}{show}")
    with (
        WorkerProcess("numpy", threads=1) as process,
        pytest.raises(WorkerFailed, match=r"1: none$"),
    ):
        process.ask("measure", index=0)
    show = "import os; sys.exit(os.environ['OPENBLAS_CORETYPE'])"
    monkeypatch.setattr(measuring, "_START", f"{start}{show}")
    setting = {"OPENBLAS_CORETYPE": "Zen"}
    with WorkerProcess("numpy", 1, None, setting) as process, pytest.raises(WorkerFailed, match=r"1: Zen$"):
        process.ask("measure", index=0)


def test_the_fastest_setting_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings are tried on the smaller cases; one whose kernels the CPU lacks ends its process."""
    seconds = {"": 2e-3, "Haswell": 3e-3, "Zen": 1e-3, "Cooperlake": 4e-3, "Sapphirerapids": 5e-3}
    asked = []

    def ask(process: WorkerProcess, command: str, **arguments: Any) -> dict[str, float]:
        setting = process.environment.get("OPENBLAS_CORETYPE", "")
        asked.append((setting, command, arguments["index"]))
        if setting not in seconds:
            raise WorkerFailed(system=process.system, reason="its process ended with status -4: no message")
        return {"seconds": seconds[setting]}

    monkeypatch.setattr(WorkerProcess, "ask", ask)
    monkeypatch.setattr(measuring, "_START", "import sys; sys.stdin.read()")
    plan = BenchmarkPlan(parse_sizes("8,4096"), ("numpy-best",), repeat=1)
    with start_worker(plan, "numpy-best") as worker:
        assert worker.environment == {"OPENBLAS_CORETYPE": "Zen"}
    seconds[""] = seconds["Zen"] * 1.01  # as fast, beside noise: settings that select the same kernels
    with start_worker(plan, "numpy-best") as worker:
        assert worker.environment == {}
    assert ("SkylakeX", "prepare", 0) in asked
    assert {index for _, _, index in asked} == {0}
    seconds.pop("")
    with pytest.raises(WorkerFailed, match="status -4"):
        start_worker(plan, "numpy-best")


def test_the_setting_is_named() -> None:
    plan = BenchmarkPlan(parse_sizes("8"), ("numpy-best",), repeat=1)
    rows = make_rows(
        plan,
        {(0, system): samples_of((5, 10)) for system in plan.systems},
        {"numpy-best": {"OPENBLAS_CORETYPE": "Zen"}},
    )
    report = BenchmarkReport({}, "host", "FMA", 10.0, rows)
    (line,) = call_lines(plan, report)
    assert line == "numpy-best, the fastest of 6 settings: OPENBLAS_CORETYPE=Zen"
    assert json.loads(report.to_json())["rows"][0]["environment"] == {"OPENBLAS_CORETYPE": "Zen"}


@pytest.mark.skipif("avx2" not in usable_rows(), reason="kernels of the row avx2")
def test_kernels_of_the_row_avx2() -> None:
    found = measure(BenchmarkPlan(parse_sizes("40"), ("tilewright-avx2",), repeat=1), {})
    assert found.rows[0].environment == {"TILEWRIGHT_ISA": "avx2"}
    assert found.rows[0].gflops_median > 0


@pytest.mark.parametrize("system", ["jax", "onnxruntime"])
@pytest.mark.parametrize("trans", ["n", "a", "b", "ab"])
def test_a_peer_computes_the_product(system: str, trans: str) -> None:
    """In this process: each result is checked before it is timed."""
    pytest.importorskip(system)
    if system == "onnxruntime":
        pytest.importorskip("onnx")
    (case,) = parse_sizes("5x7x3", trans=trans)
    started = case.start(system, 0, 1, None)
    started.product.run(2)
    started.check()


def test_peak_of_threads_is_their_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure_it(seconds: float) -> float:
        return 20_000 * seconds

    assert worker.measure_peak_of_threads(measure_it, 1, 0.005) == 100.0
    assert worker.measure_peak_of_threads(measure_it, 3, 0.005) == 300.0


def test_peak_is_that_of_the_types_on_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    from tilewright.compiler import peak

    asked = []

    def measure_peak(dtype: object, machine: Any, seconds: float, *, b_dtype: object) -> float:
        asked.append((str(dtype), str(b_dtype), machine.name, seconds))
        return 5.0

    monkeypatch.setattr(peak, "measure_peak", measure_peak)
    question = '{"peak": {"dtype": "u8", "b_dtype": "i8", "seconds": 0.5}}'
    assert converse(question, system="tilewright", target="x86-64-v3") == [{"gflops": 5.0}]
    assert converse(question, system="tilewright") == [{"gflops": 5.0}]
    assert asked == [("u8", "i8", "x86-64-v3", 0.5), ("u8", "i8", "host", 0.5)]


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
