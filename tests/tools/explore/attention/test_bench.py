"""Attention as a problem that is measured: cases, their check, peers, memory, pictures, the command."""

from __future__ import annotations

import importlib.util
import io
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiers import each_value
from typer.testing import CliRunner

from tilewright.errors import (
    InvalidChoice,
    InvalidSize,
    InvalidWindow,
    OutputNotWritable,
    PackageMissing,
    ToolMissing,
    UnsupportedDtype,
    WrongResult,
)
from tilewright.tools.cli import app
from tilewright.tools.explore.attention import memory, systems
from tilewright.tools.explore.attention.bench import AttentionBench, AttentionReport, memory_table
from tilewright.tools.explore.attention.cases import WORKLOADS, AttentionCase, parse_shapes
from tilewright.tools.explore.attention.memory import MemoryRow, extra_bytes, measure_memory
from tilewright.tools.explore.attention.systems import (
    ATTENTION_PEERS,
    ATTENTION_SYSTEMS,
    AttentionRun,
    default_attention_peers,
)
from tilewright.tools.explore.measure import BenchmarkPlan, BenchmarkReport, Sample, make_rows
from tilewright.tools.explore.systems import find_system, parse_peers
from tilewright.tools.explore.worker import Worker, serve

SMALL = AttentionCase(1, 2, 1, 5, 7, 8)
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


# --- cases --------------------------------------------------------------------------------------


def test_shapes_of_a_list() -> None:
    first, second = parse_shapes(" 1x12x384x64, 2x32/8x1:4096x128", "bf16", causal=True)
    assert (first.batch, first.heads, first.kv_heads, first.queries, first.keys, first.head_dim) == (
        *(1, 12, 12, 384, 384, 64),
    )
    assert (second.kv_heads, second.queries, second.keys, second.dtype) == (8, 1, 4096, "bf16")
    assert first.name == "attention 1x12x384x64 causal"
    assert parse_shapes("1x2x8x4,1x2x8x4") == parse_shapes("1x2x8x4")


def test_workloads_are_shapes_by_a_name() -> None:
    for name, shapes in WORKLOADS.items():
        assert [case.label for case in parse_shapes(name)] == list(shapes)
    assert {case.batch for case in parse_shapes("bert")} == {16, 32}
    assert {case.keys for case in parse_shapes("bert")} >= {80, 1600}


@pytest.mark.parametrize(
    ("text", "options", "error"),
    [
        ("12x384x64", {}, InvalidChoice),
        ("1x12x384", {}, InvalidChoice),
        ("1x12x0x64", {}, InvalidSize),
        ("1x12/5x16x64", {}, InvalidChoice),
        ("1x12x16x64", {"dtype": "i8"}, UnsupportedDtype),
        ("1x12x16x64", {"window": "left"}, InvalidChoice),
        ("1x12x16x64", {"window": "1,2,3"}, InvalidChoice),
        ("1x12x16x64", {"window": "-1"}, InvalidChoice),
    ],
)
def test_shapes_that_make_no_sense(text: str, options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        parse_shapes(text, **options)


def test_a_window_of_a_case_is_checked_like_that_of_a_call() -> None:
    with pytest.raises(InvalidWindow):
        replace(SMALL, window=(-1, 0))


@pytest.mark.parametrize(
    ("case", "flops"),
    [
        (AttentionCase(2, 3, 3, 10, 20, 8), 4 * 2 * 3 * 10 * 20 * 8),
        (AttentionCase(1, 1, 1, 10, 10, 8, causal=True), 2 * 10 * 10 * 8),
        # Queries 0..2 beside keys 0..4, the last at the last: 3 + 4 + 5 pairs.
        (AttentionCase(1, 1, 1, 3, 5, 8, causal=True), 4 * 12 * 8),
        # Four queries, one key to the left: 1 + 2 + 2 + 2.
        (AttentionCase(1, 1, 1, 4, 4, 8, causal=True, window=(1, 0)), 4 * 7 * 8),
        (AttentionCase(1, 1, 1, 4, 4, 8, window=(1, 1)), 4 * 10 * 8),
        (AttentionCase(1, 1, 1, 1, 9, 8, causal=True), 4 * 9 * 8),
    ],
)
def test_operations_that_count(case: AttentionCase, flops: int) -> None:
    assert case.flops == case.flops_of("tilewright") == flops


def test_operations_of_a_window_are_the_visible_pairs() -> None:
    case = AttentionCase(1, 1, 1, 13, 29, 8, window=(5, 3))
    assert case.pairs == case.visible(np.arange(13)).sum()


def test_a_request_makes_the_case_again() -> None:
    case = AttentionCase(1, 4, 2, 5, 7, 8, "bf16", causal=True, window=(3, 0))
    sent = json.loads(json.dumps(case.request))
    assert AttentionCase.from_request(sent["attention"]) == case


def test_operands_are_standard_normal_in_their_type() -> None:
    q, k, v = AttentionCase(2, 8, 2, 40, 50, 64, "f16").operands(seed=1)
    assert (q.shape, k.shape, v.shape) == ((2, 8, 40, 64), (2, 2, 50, 64), (2, 2, 50, 64))
    assert {array.dtype for array in (q, k, v)} == {np.dtype(np.float16)}
    assert 0.95 < float(q.astype(np.float64).std()) < 1.05
    assert not np.array_equal(k, v)


def exact(case: AttentionCase, arrays: tuple[Any, ...]) -> Any:
    """The result in float64 by the definition, one query after the other."""
    q, k, v = (array.astype(np.float64) for array in arrays)
    out = np.zeros(q.shape)
    group = case.heads // case.kv_heads
    seen = case.visible(np.arange(case.queries))
    for b, h, i in np.ndindex(*q.shape[:3]):
        scores = k[b, h // group] @ q[b, h, i] / math.sqrt(case.head_dim)
        weights = np.where(seen[i], np.exp(scores), 0.0)
        out[b, h, i] = weights @ v[b, h // group] / weights.sum()
    return out


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "f16"])
@pytest.mark.parametrize(("causal", "window"), [(False, None), (True, None), (False, (2, 1))])
def test_the_check_accepts_what_is_right(dtype: str, causal: bool, window: tuple[int, int] | None) -> None:
    case = AttentionCase(2, 4, 2, 9, 11, 8, dtype, causal, window)
    arrays = case.operands(3)
    found = exact(case, arrays).astype(arrays[0].dtype)
    assert case.check("exact", arrays, found) <= 2.0 ** -(7 if dtype == "bf16" else 9)


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_the_check_refuses_what_is_wrong(dtype: str) -> None:
    case = AttentionCase(1, 2, 1, 5, 7, 8, dtype, causal=True)
    arrays = case.operands(3)
    right = exact(case, arrays).astype(arrays[0].dtype)
    unmasked = exact(replace(case, causal=False), arrays).astype(arrays[0].dtype)
    with pytest.raises(WrongResult, match="head 0 wrongly: row"):
        case.check("forgetful", arrays, unmasked)
    right[0, 1, 4, 7] = np.nan
    with pytest.raises(WrongResult, match="head 1 wrongly: row 4, column 7"):
        case.check("hole", arrays, right)


# --- systems ------------------------------------------------------------------------------------


def converse(*lines: object, system: str) -> list[dict[str, Any]]:
    """What a worker answers to lines on its pipe, in this process."""
    answers = io.StringIO()
    serve(Worker(system, 1), io.StringIO("".join(f"{json.dumps(line)}\n" for line in lines)), answers)
    return [json.loads(line) for line in answers.getvalue().splitlines()]


@pytest.mark.parametrize("system", ATTENTION_SYSTEMS, ids=lambda row: row.name)
@pytest.mark.parametrize(
    "case",
    [
        AttentionCase(2, 4, 4, 33, 33, 16),
        AttentionCase(1, 4, 2, 33, 33, 16, causal=True),
        AttentionCase(1, 4, 2, 9, 33, 16, causal=True),
        AttentionCase(1, 4, 2, 1, 33, 16, causal=True),
        AttentionCase(1, 2, 2, 33, 33, 16, window=(4, 2)),
        AttentionCase(1, 2, 2, 33, 33, 16, "bf16", causal=True),
    ],
    ids=lambda case: f"{case.name} {case.dtype}",
)
@each_value
def test_every_system_computes_and_is_checked(system: Any, case: AttentionCase) -> None:
    try:
        case.types_of(system.name)
    except (PackageMissing, UnsupportedDtype, InvalidChoice) as refusal:
        pytest.skip(str(refusal))
    assert case.call_of(system.name)
    prepare = {"prepare": {"index": 0, **case.request, "seed": 1}}
    prepared, measured = converse(prepare, {"measure": {"index": 0}}, system=system.name)
    assert "seconds" in prepared, prepared
    assert measured["seconds"] > 0


def test_a_worker_refuses_to_time_wrong_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    def prepare(self: object, case: AttentionCase, arrays: Any, threads: int) -> AttentionRun:
        return AttentionRun(lambda: np.zeros_like(arrays[0]), np.asarray)

    monkeypatch.setattr(systems.NumPyAttention, "prepare", prepare)
    (answer,) = converse({"prepare": {"index": 0, **SMALL.request, "seed": 1}}, system="numpy")
    assert answer["error"] == WrongResult.__name__


def test_the_fastest_way_is_taken() -> None:
    import time

    calls: list[str] = []

    def slow() -> str:
        calls.append("slow")
        time.sleep(0.01)
        return "slow"

    def fast() -> str:
        calls.append("fast")
        return "fast"

    assert systems._fastest([slow, fast])() == "fast"
    assert calls[:4] == ["slow", "fast"] * 2
    assert systems._fastest([slow]) is slow


def test_what_peers_lack_is_refused_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnsupportedDtype, match="numpy"):
        BenchmarkPlan((replace(SMALL, dtype="bf16"),), ("numpy",))
    found = importlib.util.find_spec("numpy")
    for module in (systems, importlib.import_module("tilewright.tools.explore.systems")):
        monkeypatch.setattr(module, "find_spec", lambda name: None if name == "onnx" else found)
    with pytest.raises(InvalidChoice, match="causal square"):
        BenchmarkPlan((replace(SMALL, causal=True),), ("onnxruntime",))
    with pytest.raises(PackageMissing, match="pip install onnx"):
        BenchmarkPlan((SMALL,), ("onnxruntime",))


def test_a_peer_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = systems.OnnxRuntimeAttention(package="tilewright_absent_package")
    with pytest.raises(PackageMissing, match="pip install tilewright_absent_package"):
        find_system("onnxruntime", (absent,))
    with pytest.raises(InvalidChoice, match="torch, onnxruntime"):
        parse_peers("jax", ATTENTION_PEERS)


def test_default_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systems, "find_spec", lambda name: None)
    assert default_attention_peers("f32") == ("numpy",)
    assert default_attention_peers("bf16") == ()
    monkeypatch.setattr(systems, "find_spec", lambda name: object())
    assert default_attention_peers("bf16") == ("torch",)


def test_kernels_of_other_targets_are_not_measured() -> None:
    with pytest.raises(InvalidChoice, match="host"):
        SMALL.start("numpy", 0, 1, "x86-64-v3")


# --- memory -------------------------------------------------------------------------------------

#: Whole scores of one head are 2 MiB, which NumPy and torch's mask have; the result is 32 KiB.
LONG = AttentionCase(1, 1, 1, 512, 1024, 16)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is read from Linux's /proc")
def test_whole_scores_are_seen_in_memory() -> None:
    (row,) = measure_memory((LONG,), ("numpy",), 1)
    assert (row.problem, row.system, row.threads) == (LONG.name, "numpy", 1)
    assert 1.5 * 2**20 < row.extra_bytes < 8 * 2**20


def test_what_a_system_keeps_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = iter([1000, 5000])
    monkeypatch.setattr(memory, "_forget_peak", lambda: None)
    monkeypatch.setattr(memory, "_status_bytes", lambda name: next(sizes))
    monkeypatch.setattr(systems.NumPyAttention, "kept_bytes", lambda self: 70)
    result = 2 * 5 * 8 * 4
    assert extra_bytes(SMALL, "numpy", 0, 1) == 4000 - result + 70


def test_memory_needs_proc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(memory, "_FORGET", tmp_path / "absent" / "clear_refs")
    with pytest.raises(ToolMissing, match="measuring memory"):
        extra_bytes(SMALL, "numpy", 0, 1)


# --- report, pictures, command ------------------------------------------------------------------

CASES = parse_shapes("1x1x8x4,1x1x16x4", causal=True)
PLAN = BenchmarkPlan(CASES, ("numpy",), repeat=2)
SAMPLES = {(i, name): [Sample(50.0, 100.0)] * 2 for i in range(2) for name in PLAN.systems}
MEMORY = tuple(MemoryRow(case.name, name, 1, 2 << 20) for case in CASES for name in PLAN.systems)
REPORT = AttentionReport(
    AttentionBench(PLAN, CASES, memory=True),
    BenchmarkReport({"cpu": "znver5", "isa": "avx512"}, "host", "FMA", 100.0, make_rows(PLAN, SAMPLES)),
    MEMORY,
)


def test_pictures_have_the_words(tmp_path: Path) -> None:
    REPORT.draw_times(tmp_path / "times.svg")
    REPORT.draw_memory(tmp_path / "memory.svg")
    times, memory = ((tmp_path / f"{name}.svg").read_text(encoding="utf-8") for name in ("times", "memory"))
    for words in ("f32 causal attention on znver5 (avx512), 1 thread", "tilewright", "numpy", "keys"):
        assert words in times
        assert words in memory
    assert "milliseconds" in times
    assert "MiB" in memory
    with pytest.raises(OutputNotWritable, match="absent"):
        REPORT.draw_times(tmp_path / "absent" / "times.png")


def test_json_has_sizes_and_memory() -> None:
    written = json.loads(REPORT.to_json())
    first = written["rows"][0]
    assert list(first)[:8] == [
        "problem",
        "dtype",
        "batch",
        "heads",
        "kv_heads",
        "queries",
        "keys",
        "head_dim",
    ]
    assert first["gflops_median"] == 50.0
    assert written["memory"][0] == {
        "problem": CASES[0].name,
        "system": "numpy",
        "threads": 1,
        "extra_bytes": 2 << 20,
    }
    plain = replace(REPORT, bench=replace(REPORT.bench, memory=False))
    assert "memory" not in json.loads(plain.to_json())


def test_table_of_memory() -> None:
    table = memory_table(REPORT.bench, MEMORY)
    assert [list(column.cells) for column in table.columns] == [
        ["1x1x8x4", "1x1x16x4"],
        *[["2.0", "2.0"]] * 2,
    ]


def test_the_command_writes_tables_json_and_pictures(tmp_path: Path) -> None:
    paths = {name: tmp_path / name for name in ("report.json", "times.png", "memory.png")}
    words = ["bench", "attention", "--shapes", "1x2x8x8,1x2/1x16x8", "--causal", "--window", "4"]
    words += ["--peers", "numpy", "--repeat", "2", "--json", str(paths["report.json"])]
    words += ["--plot", str(paths["times.png"]), "--memory-plot", str(paths["memory.png"])]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    words = result.stdout.split()  # titles break where the table is narrow
    assert "causal attention" in " ".join(words)
    assert "beyond operands and result" in " ".join(words)
    written = json.loads(paths["report.json"].read_text(encoding="utf-8"))
    assert len(written["rows"]) == len(written["memory"]) == 4
    assert all(path.stat().st_size > 1000 for path in paths.values())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--shapes", "1x2x3"), "shape"),
        (("--peers", "blas"), "torch, onnxruntime"),
        (("--dtype", "i8"), "i8"),
        (("--window", "x"), "window"),
        (("--plot", "times.txt"), ".png, .svg, .pdf"),
    ],
)
def test_the_command_refuses_before_it_measures(words: tuple[str, str], message: str) -> None:
    result = CliRunner().invoke(app, ["bench", "attention", *words])
    assert result.exit_code == 2
    assert message in result.stderr
