"""The whole benchmark with fake processes: what is kept, how a run goes on, and the page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_workers import FakeWorker, fake_results, fake_row
from typer.testing import CliRunner

from tilewright.errors import InputNotReadable, ReportInvalid, ReportOfAnotherRun, WrongResult
from tilewright.tools.bench import contest, run
from tilewright.tools.bench.page import render_page
from tilewright.tools.bench.results import OURS, Results, read_results
from tilewright.tools.bench.run import Progress, Run, carry_out
from tilewright.tools.bench.table import TableRow, rows
from tilewright.tools.bench.verdicts import Verdict, verdict_of
from tilewright.tools.cli import app, whole_bench

FIELDS = [
    "key", "family", "label", "problem", "dtype", "sizes", "threads", "counts", "work", "moved",
    "memory_seconds", "systems", "failures",
]  # fmt: skip


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> type[FakeWorker]:
    """Processes that take 1 ms, NumPy's 2 ms; SciPy's fail."""

    class Worker(FakeWorker):
        pass

    Worker.seconds, Worker.asked = {OURS: 1e-3, "numpy": 2e-3}, []

    class Pass:
        def __init__(self, size_bytes: int, threads: int) -> None:
            pass

        def seconds(self) -> float:
            return 1e-4

    monkeypatch.setattr(contest, "WorkerProcess", Worker)
    monkeypatch.setattr(run, "MemoryPass", Pass)
    return Worker


def one_of_each_family() -> tuple[TableRow, ...]:
    return tuple({row.family: row for row in reversed(rows(2, quick=True))}.values())[::-1]


def small_run(path: Path | None, **changes: Any) -> Run:
    return replace(Run(one_of_each_family(), path, quick=True, peers=("numpy", "scipy")), **changes)


def test_a_report_of_one_row_of_each_family(workers: type[FakeWorker], tmp_path: Path) -> None:
    path, seen = tmp_path / "run.json", []
    results = carry_out(small_run(path), Progress(lambda label, done: seen.append((label, done))))
    wanted = list(one_of_each_family())
    assert [row.key for row in results.rows] == [row.key for row in wanted]
    assert seen == [*((row.label, number) for number, row in enumerate(wanted)), ("", len(wanted))]
    written = json.loads(path.read_text())
    assert list(written) == ["format", "identity", "machine", "skipped", "rows"]
    assert all(list(row) == FIELDS for row in written["rows"])
    assert read_results(path) == results
    (product,) = (row for row in results.rows if row.family == "products")
    assert product.names == ("numpy", OURS)
    assert product.ratio("numpy") == pytest.approx(2, rel=0.1)
    assert len(product.of(OURS).seconds) == len(product.of(OURS).peaks) == 7
    (call,) = (row for row in results.rows if row.family == "calls")
    assert call.counts == "calls"
    assert call.share(OURS) is None


def test_every_measurement_has_its_peak_right_before(workers: type[FakeWorker]) -> None:
    carry_out(small_run(None))
    for number, (system, command) in enumerate(workers.asked):
        if command == "measure":
            assert workers.asked[number - 1] == (OURS, "peak"), (number, system)


def test_a_run_goes_on_where_it_stopped(workers: type[FakeWorker], tmp_path: Path) -> None:
    path, prepared = tmp_path / "run.json", []

    def stop_at_third(system: str, request: dict[str, Any]) -> None:
        prepared.append(system)
        if prepared.count(OURS) == 3:
            raise KeyboardInterrupt

    workers.on_prepare = staticmethod(stop_at_third)
    with pytest.raises(KeyboardInterrupt):
        carry_out(small_run(path))
    kept = read_results(path)
    assert len(kept.rows) == 2
    prepared.clear()
    workers.on_prepare = staticmethod(lambda system, request: prepared.append(system))
    whole = carry_out(small_run(path))
    assert whole.rows[:2] == kept.rows
    assert prepared.count(OURS) == len(one_of_each_family()) - 2
    prepared.clear()
    assert carry_out(small_run(path)) == whole
    assert prepared == []


def test_results_of_another_run_are_kept(workers: type[FakeWorker], tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    results = carry_out(small_run(path))
    other = {**results.identity, "versions": {**results.identity["versions"], "numpy": "1.0"}}
    replace(results, identity=other).write(path)
    before = path.read_bytes()
    with pytest.raises(ReportOfAnotherRun, match="versions"):
        carry_out(small_run(path))
    with pytest.raises(ReportOfAnotherRun, match="--fresh"):
        carry_out(small_run(path, seed=1))
    assert path.read_bytes() == before
    assert carry_out(small_run(path, fresh=True)).identity == results.identity


def test_a_peer_that_fails_is_named(workers: type[FakeWorker]) -> None:
    pytest.importorskip("scipy")
    results = carry_out(small_run(None))
    failures = [text for row in results.rows for text in row.failures]
    text = "scipy is left out: measuring scipy failed: it is fake"
    assert failures == [text, text]  # its processes, of one thread and of two, end once each
    assert failures[0] in render_page(results)


def test_a_wrong_result_of_a_peer_is_never_timed(workers: type[FakeWorker]) -> None:
    workers.wrong = frozenset({"numpy"})
    results = carry_out(small_run(None))
    assert all(row.names == (OURS,) for row in results.rows)
    assert all("numpy computed p wrongly" in row.failures[0] for row in results.rows if row.failures)
    assert ("numpy", "measure") not in workers.asked


def test_a_peer_that_dies_while_it_is_measured_is_left_out(workers: type[FakeWorker]) -> None:
    workers.dying = frozenset({"numpy"})
    results = carry_out(small_run(None, peers=("numpy",)))
    assert all(row.names == (OURS,) for row in results.rows)
    assert len(results.rows) == len(one_of_each_family())
    assert workers.asked.count(("numpy", "measure")) == 2  # of one thread, and of two
    assert {text for row in results.rows for text in row.failures} == {
        "numpy is left out: measuring numpy failed: it died"
    }


def test_a_wrong_result_of_ours_ends_the_run(workers: type[FakeWorker]) -> None:
    workers.wrong = frozenset({OURS})
    with pytest.raises(WrongResult):
        carry_out(small_run(None))


def test_peers_that_compile_are_left_out_by_name_where_time_is_short(
    workers: type[FakeWorker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "QUICK_SECONDS", -1.0)
    monkeypatch.setattr(run, "find_peers", lambda names: (("numpy", "iree"), {}))
    monkeypatch.setattr(run, "_computes", lambda row, system: row.family == "products" or system == OURS)
    results = carry_out(small_run(None))
    texts = [text for row in results.rows for text in row.failures]
    assert "iree is left out: it compiles for seconds, which were not left" in texts
    assert all(len(row.of(OURS).seconds) == run.FEWEST for row in results.rows)


def test_the_quick_form_measures_less_where_time_is_short() -> None:
    assert run.quick_rounds(run.PACE) == run.QUICK_REPEAT
    assert run.FEWEST < run.quick_rounds(0.6 * run.PACE) < run.QUICK_REPEAT
    assert run.quick_rounds(-1.0) == run.FEWEST


@pytest.mark.parametrize(
    "text",
    [
        "no JSON",
        "[1]",
        '{"format": 2}',
        '{"format": 1, "identity": {}, "machine": {}, "skipped": {}}',
        '{"format": 1, "identity": {}, "machine": {}, "skipped": {}, "rows": [{}]}',
        '{"format": 1, "identity": {}, "machine": {}, "skipped": {}, "rows": 3}',
    ],
)
def test_a_file_that_is_no_report_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(text)
    with pytest.raises(ReportInvalid, match="no report"):
        read_results(path)
    with pytest.raises(InputNotReadable):
        read_results(tmp_path / "absent.json")


@pytest.mark.parametrize("seconds", [[], [0.0], [-1.0], [float("nan")], [1.0, 2.0]])
def test_times_that_are_none_are_refused(seconds: list[float], tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    fake_results(fake_row({OURS: 1e-3}, count=1)).write(path)
    fields = json.loads(path.read_text())
    fields["rows"][0]["systems"][0]["seconds"] = seconds
    path.write_text(json.dumps(fields))
    with pytest.raises(ReportInvalid):
        read_results(path)


# --- the page ---------------------------------------------------------------------------------------


@pytest.fixture
def mixed() -> Results:
    """A win, a loss, a tie, and one row without peers."""
    return fake_results(
        fake_row({"numpy": 3e-3, "torch": 2e-3, OURS: 1e-3}, label="win"),
        fake_row({"numpy": 1e-3, OURS: 2e-3}, label="loss <b>"),
        fake_row({"numpy": 1e-3, OURS: 1e-3}, label="tie", noise=0.3),
        fake_row({OURS: 1e-3}, label="alone"),
    )


def test_verdicts(mixed: Results) -> None:
    assert [verdict_of(row) for row in mixed.rows] == [
        Verdict.FASTER,
        Verdict.SLOWER,
        Verdict.EVEN,
        Verdict.ALONE,
    ]
    assert mixed.rows[0].peers == ("torch", "numpy")
    assert mixed.mean_ratio("products") == pytest.approx(
        (2 * 0.5 * mixed.rows[2].ratio("numpy")) ** (1 / 3), 0.1
    )


def test_losses_are_printed_like_wins_and_first(mixed: Results) -> None:
    page = render_page(mixed)
    ratios = page[page.index('id="ratios"') :]
    places = [ratios.index(f'class="name">{name}') for name in ("loss &lt;b&gt;", "tie", "win")]
    assert places == sorted(places)
    assert "loss <b>" not in page
    assert len(re.findall(r'class="bar (?:slower|even|faster)"', ratios)) == 3


def test_the_page_needs_nothing_else(workers: type[FakeWorker]) -> None:
    page = render_page(carry_out(small_run(None)))
    assert not re.findall(r"(?:https?:|//|<script|<link|<img|url\(|@import)", page)
    assert page.count("<section") == page.count("</section>")
    for row in one_of_each_family():
        assert row.label.replace(">", "&gt;") in page
    assert "prefers-color-scheme: dark" in page


def test_the_page_says_where_the_machine_was_noisy(mixed: Results) -> None:
    assert mixed.noisy_rows == 0
    assert 'class="warning"' not in render_page(mixed)
    row = mixed.rows[0]
    busy = replace(row.systems[0], peaks=(50.0,) * 19 + (100.0,))
    ours = replace(row.of(OURS), peaks=busy.peaks)
    noisy = replace(mixed, rows=(replace(row, systems=(busy, ours)), *mixed.rows[1:]))
    assert noisy.noisy_rows == 1
    assert "In 1 of 4 rows" in render_page(noisy)


def test_the_page_names_who_was_left_out(mixed: Results) -> None:
    skipped = {"jax": "measuring JAX needs the package jax"}
    assert "measuring JAX needs the package jax" in render_page(replace(mixed, skipped=skipped))
    assert "None: every peer" in render_page(mixed)


def test_charts_of_sizes_threads_and_rooflines() -> None:
    def sized(n: int, threads: int = 1) -> Any:
        row = fake_row({"numpy": n * 2e-6 / threads, OURS: n * 1e-6 / threads}, label=str(n))
        family = "threads" if threads > 1 else "products"
        return replace(
            row,
            key=f"{n} {threads}",
            sizes={"m": n, "n": n, "k": n},
            threads=threads,
            family=family,
            problem=str(n),
        )

    page = render_page(fake_results(sized(64), sized(128), sized(256), sized(256, threads=2)))
    for section in ("sizes", "threads", "roofline"):
        assert f'<section id="{section}">' in page
    assert page.count("<svg") == 4  # two charts in two widths
    assert "2.0" in page[page.index('id="threads"') :]  # the speed-up of both
    plain = render_page(fake_results(sized(64)))
    assert '<section id="sizes">' not in plain
    assert '<section id="threads">' not in plain


# --- the command ------------------------------------------------------------------------------------


def test_the_command_writes_page_and_results(
    workers: type[FakeWorker], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole_bench, "rows", lambda cores, quick: one_of_each_family())
    words = ("bench", "--report", str(tmp_path / "out.html"), "--quick", "--peers", "numpy,libxsmm")
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0
    assert "left out: JAX: not asked for" in result.stdout
    count = len(one_of_each_family())
    assert f"{count}/{count}" not in result.stdout  # no bar where no person reads
    assert len(read_results(tmp_path / "out.json").rows) == len(one_of_each_family())
    assert (tmp_path / "out.html").read_text().startswith("<!doctype html>")
    again = CliRunner().invoke(app, words[:-2], catch_exceptions=True)
    assert again.exit_code == 2  # of other peers
    assert "--fresh" in again.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("--quick",),
        ("--report", "/no/such/folder/out.html"),
        ("--report", "out.html", "--peers", "nobody"),
        ("--quick", "gemm", "--sizes", "8"),
        ("--compare", "absent.json", "absent.json"),
        ("--compare", "a.json", "b.json", "--quick"),
    ],
)
def test_the_command_refuses_before_it_measures(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ("bench", *words))
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("tilewright: ")
    assert result.stdout == ""
