"""The command line: output, files, and errors as one line."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from shares import looped
from typer.main import get_command
from typer.testing import CliRunner

import tilewright as tw
from tilewright.errors import BinaryToTerminal, InvalidChoice, OutputNotWritable
from tilewright.ops.contraction.problem import Contraction
from tilewright.ops.contraction.schedule.passes import PASSES
from tilewright.spec.dtype import DTYPES
from tilewright.tools.cli import COMMANDS as TOP
from tilewright.tools.cli import app, emit, terminal
from tilewright.tools.explore.mca import KernelEstimate, LoopEstimate, Tool

runner = CliRunner()


def run(*words: str) -> str:
    """Standard output of a command that succeeds."""
    result = runner.invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def refused(*words: str) -> str:
    """The message of a command that is refused: one line, exit code 2, nothing on standard output."""
    result = runner.invoke(app, words)
    assert result.exit_code == 2, result.stderr
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("tilewright: ")
    return line


def test_version() -> None:
    assert run("--version").startswith("tilewright ")


def test_python_m() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tilewright", "--help"], capture_output=True, text=True, check=True
    )
    for command in ("info", "bench", "emit"):
        assert command in done.stdout


def test_import_does_not_load_the_command_line() -> None:
    question = "import sys, tilewright; sys.exit(any(name in sys.modules for name in ('typer', 'rich')))"
    subprocess.run([sys.executable, "-c", question], check=True)


# --- help ---------------------------------------------------------------------------------------


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command and group, with the words that name it."""
    yield path, command
    for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield from commands(command.get_command(None, name), (*path, name))


COMMANDS = dict(commands(get_command(app)))


def help_sources(command: Any) -> Iterator[str]:
    """What was written for a person about one command: its own text and that of its parameters."""
    yield command.help or ""
    for parameter in command.params:
        yield getattr(parameter, "help", None) or ""
        yield parameter.metavar or ""


@looped("path", COMMANDS)
def test_help_shows_what_was_written(path: tuple[str, ...]) -> None:
    """A bracket must not be taken for markup: `[/KV_HEADS]` was a closing tag, `[[kernel]]` vanished."""
    text = run(*path, "--help")
    shown = "".join(text.split())
    for source in help_sources(COMMANDS[path]):
        for word in source.split():
            assert word in shown, word
    assert not re.search(r"\bseed 0|the seed's", text), "cites a document that readers do not have"


@looped("path", COMMANDS)
def test_help_is_readable_in_a_narrow_terminal(path: tuple[str, ...]) -> None:
    result = runner.invoke(app, [*path, "--help"], env={"COLUMNS": "40", "TERMINAL_WIDTH": "40"})
    assert result.exit_code == 0, result.output
    assert "--help" in result.stdout


@looped("path", COMMANDS)
def test_values_of_options_have_one_word_for_each_type(path: tuple[str, ...]) -> None:
    """N, NUMBER, PATH or TEXT, or a word of our own; never Typer's "<int range>" or "INTEGER RANGE"."""
    options = run(*path, "--help").partition("Options:")[2].partition("Commands:")[0]
    for line in re.findall(r"^  (-\S.*?)(?:  |$)", options, re.MULTILINE):
        assert not re.search(r"[<>]|RANGE|INTEGER", line), line


def test_texts_that_begin_with_a_value_keep_it() -> None:
    for words in ("auto, tiling or packing", "f32, f64, bf16"):
        assert emit._sentence(words) == words
    assert emit._sentence("rows of C") == "Rows of C"


def test_commands_of_every_operation_have_help() -> None:
    assert {("emit", "gemm"), ("emit", "attention"), ("emit", "library"), ("cache", "show")} <= set(COMMANDS)


@pytest.mark.parametrize("path", [path for path, command in COMMANDS.items() if hasattr(command, "commands")])
def test_lists_of_commands_are_not_cut(path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert "..." not in run(*path, "--help").partition("Commands:")[2]


@pytest.mark.parametrize("name", TOP)
def test_the_list_says_what_the_command_says(name: str) -> None:
    assert TOP[name][1] == COMMANDS[(name,)].get_short_help_str(200)


def test_help_imports_no_command() -> None:
    question = (
        "import sys; from tilewright.tools.cli import app; app(['--help'], standalone_mode=False); "
        "sys.exit(any(name.startswith('tilewright.aot') for name in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", question], check=True, capture_output=True)


def test_a_misspelt_command_gets_a_suggestion() -> None:
    result = runner.invoke(app, ["emit", "gem"])
    assert result.exit_code == 2
    assert "Did you mean 'gemm'" in result.stderr


# --- info ---------------------------------------------------------------------------------------


def test_info_json() -> None:
    found = json.loads(run("info", "--json"))
    facts = ["machine", "core", "core_figures", "settings", "versions", "threads", "pool", "repeated_calls"]
    assert list(found) == [*facts, "blocking", "units", "peak_gflops"]
    assert found["machine"]["cpu"]["origin"]
    assert found["machine"]["l1"]["size"]["value"] > 0
    assert found["machine"]["isa"]["value"] in {"avx512", "avx2", "neon", "generic128"}
    assert found["blocking"]["f32"]["mr"] > 0
    assert all(figure["row"] > 0 and figure["used"] > 0 for figure in found["core_figures"].values())
    assert {figure["measured"] for figure in found["core_figures"].values()} == {None}
    assert set(found["peak_gflops"]) == set(found["units"]) == set(found["blocking"]) == set(DTYPES)
    assert all(peak > 0 for peak in found["peak_gflops"].values())
    assert found["threads"] >= 1
    assert found["pool"]["size"] >= 1
    assert found["pool"]["sleeps on"] in {"futex", "pthread condition"}


def test_info_measures_a_core_that_has_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CPU", "haswell")
    found = json.loads(run("info", "--json", "--measure"))
    assert found["machine"]["core"]["value"] == "Haswell"
    assert found["core"]["figures used"]["value"] == "row"
    for figure in found["core_figures"].values():
        assert figure["used"] == figure["row"]
        assert figure["ratio"] == pytest.approx(figure["measured"] / figure["row"])
    assert not json.loads(run("info", "--json"))["core_figures"]["L1 bytes a cycle"]["measured"]


def test_info_keeps_what_it_measures_of_a_core_without_a_row(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TILEWRIGHT_CPU", "x86-64-v3" if tw.machine().arch == "x86_64" else "generic")
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "first"))
    assert json.loads(run("info", "--json"))["core"]["figures used"]["value"] == "default"
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "second"))
    text = run("info", "--measure")
    (line,) = (line for line in text.splitlines() if "page walk" in line)
    assert len(line.split("│")) == 7
    assert "default" in text
    # The process that measured stays with its machine; with another setting, one is described anew.
    monkeypatch.setenv("TILEWRIGHT_CACHE_BYTES", "1M")
    found = json.loads(run("info", "--json"))
    assert found["core"]["figures used"]["value"] == "measured"
    figures = found["core_figures"].values()
    assert all(figure["used"] == figure["measured"] for figure in figures)


def test_info_shows_where_a_value_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_L2_BYTES", "3MiB")
    text = run("info")
    (line,) = (line for line in text.splitlines() if re.match(r"│ l2 ", line))
    assert "3 MiB, " in line
    assert "TILEWRIGHT_L2_BYTES" in line
    assert "multiplies with" in text
    assert "llvmlite" in text


def test_info_refuses_an_impossible_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_L2_BYTES", "much")
    assert "TILEWRIGHT_L2_BYTES='much'" in refused("info")


# --- bench --------------------------------------------------------------------------------------


def test_bench_writes_table_json_and_plot(tmp_path: Path) -> None:
    report, plot = tmp_path / "report.json", tmp_path / "plot.png"
    text = run(
        *("bench", "gemm", "--sizes", "8,12x16x4", "--dtype", "f64", "--trans", "b", "--repeat", "2"),
        *("--json", str(report), "--plot", str(plot)),
    )
    for words in ("12x16x4", "numpy", "geometric mean", "share of", "slower than numpy at:"):
        assert words in text
    written = json.loads(report.read_text(encoding="utf-8"))
    assert list(written) == ["machine", "target", "unit", "peak_gflops", "rows"]
    assert written["peak_gflops"] > 0
    assert written["machine"]["versions"]["numpy"]
    assert [(row["problem"], row["system"]) for row in written["rows"]] == [
        ("gemm 8x8x8 nt", "numpy"),
        ("gemm 8x8x8 nt", "tilewright"),
        ("gemm 12x16x4 nt", "numpy"),
        ("gemm 12x16x4 nt", "tilewright"),
    ]
    row = written["rows"][3]
    assert (row["dtype"], row["m"], row["n"], row["k"], row["threads"]) == ("f64", 12, 16, 4, 1)
    assert list(row["ratio_to"]) == ["numpy"]
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_bench_without_peers() -> None:
    text = run("bench", "gemm", "--sizes", "8", "--peers", "", "--repeat", "1")
    assert "ratio" not in text


def test_bench_of_other_element_types(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    words = ("--sizes", "8", "--repeat", "2", "--peers", "numpy,tilewright-f32", "--json", str(path))
    text = run("bench", "gemm", "--dtype", "i8", "--out-dtype", "i32", *words)
    for part in (
        "i8i32 matrix products",
        "exact integers",
        "numpy computes numpy.matmul(i8, i8, dtype=int32)",
    ):
        assert part in text
    assert [row["dtype"] for row in json.loads(path.read_text(encoding="utf-8"))["rows"]] == ["i8i32"] * 3


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="kernels of x86-64")
def test_bench_of_kernels_for_a_target(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    words = ("--sizes", "8", "--repeat", "1", "--peers", "", "--json", str(path))
    text = run("bench", "gemm", "--dtype", "i32", "--target", "x86-64-v2", *words)
    assert "kernels for x86-64-v2" in " ".join(text.split())  # after a long name of a CPU the title is broken
    written = json.loads(path.read_text(encoding="utf-8"))
    assert (written["target"], written["unit"]) == ("x86-64-v2", "multiply and add")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--sizes", "8x"), "size is '8x'"),
        (("--dtype", "f37"), "f37"),
        (("--dtype", "i8", "--out-dtype", "f32"), "C of f32 for i8 x i8"),
        (("--dtype", "i4", "--peers", "numpy"), "i4 of numpy"),
        (("--target", "abacus"), "abacus"),
        (("--peers", "blas"), "peer is 'blas'"),
        (("--trans", "x"), "trans is 'x'"),
        (("--plot", "plot.txt"), ".png, .svg, .pdf"),
        (("--json", "absent-folder/report.json"), "absent-folder is not a folder"),
    ],
)
def test_bench_refuses_before_it_measures(words: tuple[str, ...], message: str) -> None:
    assert message in refused("bench", "gemm", *words)


def test_bench_transpose_writes_table_and_json(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    text = run(
        "bench", "transpose", "--sizes", "8,12x16", "--dtype", "f64", "--repeat", "2", "--json", str(path)
    )
    for words in ("f64 transposes", "12x16", "kernel", "tilewright", "numpy", "share of memcpy"):
        assert words in text
    written = json.loads(path.read_text(encoding="utf-8"))
    assert list(written) == ["machine", "rows"]
    assert [(row["problem"], row["system"]) for row in written["rows"][3:]] == [
        ("transpose 12x16", "kernel"),
        ("transpose 12x16", "tilewright"),
        ("transpose 12x16", "numpy"),
    ]
    assert all(row["share_of_memcpy"] > 0 for row in written["rows"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--sizes", "8x8x8"), "size is '8x8x8'"),
        (("--sizes", "0"), "size is 0"),
        (("--dtype", "f37"), "f37"),
        (("--peers", "blas"), "peer is 'blas'"),
        (("--json", "absent-folder/report.json"), "absent-folder is not a folder"),
    ],
)
def test_bench_transpose_refuses_before_it_measures(words: tuple[str, str], message: str) -> None:
    assert message in refused("bench", "transpose", *words)


# --- emit ---------------------------------------------------------------------------------------

FORMS = {"tile": "matmul", "llvm": "define ", "asm": ".text", "header": "void gemm_f32_mxnxk_rrr_auto_"}


@pytest.mark.parametrize(("form", "words"), FORMS.items())
def test_emit_text(form: str, words: str, tmp_path: Path) -> None:
    printed = run("emit", "gemm", "--emit", form)
    assert words in printed
    run("emit", "gemm", "--emit", form, "-o", str(tmp_path / "out"))
    assert (tmp_path / "out").read_text(encoding="utf-8").strip() == printed.strip()
    assert run("emit", "gemm", "--emit", form, "-o", "-") == printed


def test_emit_object(tmp_path: Path) -> None:
    run("emit", "gemm", "--emit", "obj", "--target", "znver5", "-o", str(tmp_path / "gemm.o"))
    assert (tmp_path / "gemm.o").read_bytes().startswith(b"\x7fELF")


def test_emit_for_another_machine() -> None:
    text = run("emit", "gemm", "--emit", "llvm", "--target", "haswell", "--dtype", "f64", "--m", "32")
    assert "x86_64" in text
    assert "f64" in text


def test_emit_dumps_every_stage() -> None:
    from tilewright.compiler.pipeline import STAGES

    words = {"blocking": "mr=", "llvm": "define "}
    for stage in STAGES[:-1]:
        assert words.get(stage.name, "matmul") in run("emit", "gemm", "--dump", stage.name)
    assert runner.invoke(app, ["emit", "gemm", "--dump", STAGES[-1].name]).stdout_bytes[:4] == b"\x7fELF"


def test_emit_shows_how_layers_are_fused() -> None:
    words = ("emit", "chain", "--sizes", "64,128,32", "--activations", "gelu,none", "--target", "haswell")
    texts = {
        stage: run(*words, "--dump", stage) for stage in ("nest", "fuse_unpack", "fuse_pack", "fuse_consumer")
    }
    assert [text.count("\n  for ") for text in texts.values()] == [6, 4, 4, 2]
    assert run(*words) == texts["fuse_consumer"]
    for wrong in ("64,x", "64"):
        assert runner.invoke(app, ["emit", "chain", "--sizes", wrong]).exit_code != 0


def test_emit_mmt4d() -> None:
    text = run("emit", "mmt4d", "--m0", "6", "--n0", "16", "--target", "haswell", "--emit", "tile")
    assert "matmul 6x16x1 out[" in text
    assert "pack" not in text
    assert "pack" in run("emit", "mmt4d", "--m0", "4", "--n0", "4", "--target", "haswell", "--emit", "tile")


def test_emit_syr2k_and_syrk() -> None:
    words = ("--target", "haswell", "--emit", "tile")
    text = run("emit", "syr2k", *words)
    assert "program syr2k_f32_nxk_rrr_lower_avx2" in text
    assert text.count("pack b_pack") == text.count("pack a_pack") == 2
    text = run("emit", "syrk", "--upper", "--dtype", "bf16", "--n", "64", *words)
    assert "program syrk_bf16_64xk_rr_upper_avx2" in text
    assert text.count("pack b_pack") == text.count("pack a_pack") == 1
    assert "zmm" in run("emit", "syr2k", "--target", "znver5")
    assert "row, col, strided" in refused("emit", "syr2k", "--c", "packed")


def test_emit_contraction() -> None:
    words = ("emit", "contraction", "ij,jk->ik", "--sizes", "i=384, j=256,k=256", "--target", "znver5")
    after = {step.name: run(*words, "--dump", step.name) for step in PASSES}
    assert "k sequential 256" in after["fuse"]
    assert "m primitive 384" in after["identify"]
    assert Contraction.parse(after["parallelise"]).main.value == "gemm"
    assert "matmul" in run(*words, "--dump", "nest")
    assert "vfmadd" in run(*words)
    moved = ("emit", "contraction", "abc->cba", "--sizes", "a=9,b=8,c=7")
    assert "main=relu" in run(*moved, "--main", "relu", "--dump", "fuse")
    assert "fuse, identify, block" in refused(*words, "--dump", "tile")
    assert "i=64,j=48" in refused("emit", "contraction", "ij,jk", "--sizes", "i=4,j=five")
    assert "as k=64" in refused("emit", "contraction", "ij,jk", "--sizes", "i=4,j=5")


def test_emit_trmm() -> None:
    words = ("--target", "haswell", "--emit", "tile")
    text = run("emit", "trmm", "--side", "right", "--upper", "--unit", *words)
    assert "program trmm_f32_mxn_rrr_right_upper_unit_avx2" in text
    assert "block_sums" in text  # rows of C are columns of the nest
    assert "block_sums" not in run("emit", "trmm", "--m", "64", *words)
    assert "left, right" in refused("emit", "trmm", "--side", "top")


def test_emit_attention() -> None:
    words = ("emit", "attention", "--head-dim", "16", "--target", "neoverse-v2")
    given = ("--bounded", "--sinks", "--mask", "u8", "--softcap", "--slopes", "--paged")
    text = run(*words, *given, "--emit", "tile")
    for word in ("softmax", "normalise", "mask", "sinks", "slopes", "pages", "softcap"):
        assert word in text
    assert "fmla" in run(*words, "--kv-dtype", "i8", "--scales")
    assert "partials" in run(*words, "--schedule", "decode", "--emit", "tile")
    assert "dtype i8" in refused("emit", "attention", "--dtype", "i8")
    assert "schedule" in refused("emit", "attention", "--schedule", "rows")


def test_emit_with_an_epilogue() -> None:
    text = run("emit", "gemm", "--epilogue", "bias,gelu", "--emit", "tile")
    assert "then bias:f32 bias[j; 0, 1], gelu at last pc" in text
    header = run("emit", "gemm", "--dtype", "i8", "--epilogue", "scale:column,bias", "--emit", "header")
    assert "float *c," in header
    assert "then scale:column, bias;" in header
    assert "gelu does not apply to i32" in refused("emit", "gemm", "--dtype", "i8", "--epilogue", "gelu")
    assert "step of an epilogue" in refused("emit", "gemm", "--epilogue", "elu")


def test_emit_refuses_binary_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "is_terminal", lambda: True)
    assert BinaryToTerminal.message in refused("emit", "gemm", "--emit", "obj")


def test_emit_refuses_a_file_it_cannot_write() -> None:
    line = refused("emit", "gemm", "-o", "absent-folder/gemm.s")
    assert OutputNotWritable(path="absent-folder/gemm.s", reason="No such file or directory").args[0] in line


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--emit", "elf"), "emit is 'elf', must be one of: tile, llvm, asm, obj, header"),
        (("--dump", "tea"), "dump is 'tea'"),
        (("--a", "diagonal"), "a is 'diagonal'"),
        (("--m", "-1"), "m is -1"),
        (("--target", "abacus"), "abacus"),
        (("--strategy", "hope"), "strategy is 'hope'"),
    ],
)
def test_emit_refuses(words: tuple[str, str], message: str) -> None:
    assert message in refused("emit", "gemm", *words)


def test_emit_unary() -> None:
    words = ("emit", "unary", "relu", "--m", "4", "--n", "8", "--b", "row", "--target", "neoverse-v2")
    assert "unary relu b[0; ld_b, 1] = a[0; 1, ld_a] rows 4 columns 8 near" in run(*words, "--emit", "tile")
    assert "zip1" in run(*words)
    assert "near=" in run("emit", "unary", "identity", "--dtype", "i16", "--dump", "blocking")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("sqrt",), "op is 'sqrt'"),
        (("relu", "--dtype", "i8"), "i8 of relu"),
        (("relu", "--b", "strided"), "b is 'strided'"),
        (("relu", "--m", "0"), "m is 0"),
        (("relu", "--emit", "elf"), "emit is 'elf'"),
    ],
)
def test_emit_unary_refuses(words: tuple[str, ...], message: str) -> None:
    assert message in refused("emit", "unary", *words)


def test_emit_brgemm() -> None:
    sizes = ("--m", "8", "--n", "4", "--k", "3", "--count", "2")
    words = ("emit", "brgemm", *sizes, "--beta", "0", "--batch", "address", "--target", "neoverse-v2")
    assert "void brgemm_f32_8x4x3x2_ccc_replace_address_neon(" in run(*words, "--emit", "header")
    assert "fmla" in run(*words)
    assert "heights=" in run(*words, "--dump", "blocking")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--a", "strided"), "a is 'strided'"),
        (("--beta", "2"), "beta is 2"),
        (("--batch", "list"), "batch is 'list'"),
        (("--emit", "elf"), "emit is 'elf'"),
    ],
)
def test_emit_brgemm_refuses(words: tuple[str, ...], message: str) -> None:
    assert message in refused("emit", "brgemm", "--m", "8", "--n", "4", "--k", "3", *words)


@pytest.mark.parametrize("command", ["gemm", "brgemm"])
def test_emit_mca(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    loop = LoopEstimate("tile", ".LBB0_1", 1, 37, 24, 8, 0, 0, cycles=8.0, bound=6.0)

    def estimate(kernel: Any) -> KernelEstimate:
        asked.append((kernel.machine.name, kernel.problem.m))
        return KernelEstimate(kernel.name, "the-cpu", Tool("llvm-mca", 19), (loop,))

    monkeypatch.setattr(emit, "estimate_kernel", estimate)
    words = ("--m", "16", "--n", "6", "--k", "64", "--target", "neoverse-v2", "--mca")
    text = run("emit", command, *words)
    assert asked == [("neoverse-v2", 16)]
    assert "on the-cpu" in text
    assert "75.0%" in text


def test_emit_mca_without_the_tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "apt-get install llvm-19" in refused("emit", "gemm", "--mca")


@pytest.mark.parametrize("command", ["gemm", "brgemm"])
def test_emit_the_generic_lowering(command: str) -> None:
    words = ("emit", command, "--m", "16", "--n", "6", "--k", "64", "--target", "pwr10")
    assert "@llvm.matrix.multiply" in run(*words, "--lowering", "generic", "--emit", "llvm")
    assert "@llvm.matrix.multiply" in run(*words, "--lowering", "generic", "--dump", "llvm")
    assert "@llvm.matrix.multiply" not in run(*words, "--emit", "llvm")
    assert "lowering is 'mlir'" in refused(*words, "--lowering", "mlir")


def test_emit_for_a_triple(capfd: pytest.CaptureFixture[str]) -> None:
    text = run("emit", "unary", "relu", "--target", "aarch64-linux-gnu:neoverse-n2:+sve")
    assert "unary_relu_f32_mxn_cc_neon:" in text
    for target, message in (
        ("aarch64-linux-gnu:neoverse-n0", "the CPU 'neoverse-n0'"),
        ("aarch64-linux-gnu:neoverse-n2:+sv2", "the feature 'sv2'"),
        ("abacus:x", "the target triple 'abacus'"),
        ("x86_64-linux-gnu:i386", "64-bit code requested"),
    ):
        assert message in refused("emit", "unary", "relu", "--target", target)
    assert capfd.readouterr().err == ""


def test_debug_shows_the_traceback() -> None:
    result = runner.invoke(app, ["--debug", "emit", "gemm", "--emit", "elf"])
    assert isinstance(result.exception, InvalidChoice)


def test_explore_writes_one_page_for_several_targets(tmp_path: Path) -> None:
    path = tmp_path / "k.html"
    options = ("--target", "znver4,neoverse-v2", "-o", str(path))
    said = run("explore", "brgemm", "--m", "16", "--n", "6", "--k", "64", "--count", "1", *options)
    assert said.startswith(f"{path}: ")
    assert "brgemm_f32_16x6x64x1_ccc</title>" in path.read_text(encoding="utf-8")
    run("explore", "contraction", "abc,cd->abd", "--sizes", "a=2,b=3,c=4,d=5", "-o", str(path))
    assert "contraction_gemm" in path.read_text(encoding="utf-8")


def test_explore_has_a_command_for_each_operation() -> None:
    helped = run("explore", "--help")
    for name in ("gemm", "attention", "contraction", "rows", "model"):
        assert name in helped
    assert "--draw" in run("explore", "gemm", "--help")


def test_explore_refuses_what_it_cannot_do(tmp_path: Path) -> None:
    assert "m=512" in refused("explore", "unary", "relu", "--draw", "m")
    missing = tmp_path / "none" / "k.html"
    assert "is not a folder" in refused("explore", "unary", "relu", "-o", str(missing))
