"""llvm-mca on the loops over depth: the text it gets, what is read of its report, what it says of ours."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from uncompiled import uncompiled

from tilewright.errors import ModelFailed, NoInnerLoop, ToolMissing
from tilewright.ops.batch_reduce.problem import BatchReduceGemm
from tilewright.tools.explore import mca
from tilewright.tools.explore.loops import innermost_loops
from tilewright.tools.explore.mca import (
    OLDEST_VERSION,
    KernelEstimate,
    LoopEstimate,
    Tool,
    estimate_kernel,
    estimate_table,
    find_tool,
    read_report,
    regions,
)

TEXT = """
kernel:
.LBB0_1:
	vmovups	(%rsi), %zmm2
	vfmadd231ps	4(%rdi,%rax,8){1to16}, %zmm2, %zmm0
	vfmadd231ps	-64(%rsp), %zmm2, %zmm1
	vmovups	%zmm3, 64(%rsp)
	prefetcht0	64(%rsi)
	leaq	64(%rsp), %rax
	jne	.LBB0_1
	retq
"""

#: What llvm-mca 19 writes, as much of it as is read.
REPORT: dict[str, Any] = {
    "CodeRegions": [
        {
            "InstructionInfoView": {
                "InstructionList": [
                    {"mayLoad": loads, "mayStore": stores}
                    for loads, stores in (
                        (True, False),
                        (True, False),
                        (True, False),
                        (False, True),
                        (True, True),
                        (False, False),
                        (False, False),
                    )
                ]
            },
            "SummaryView": {"BlockRThroughput": 1.5, "Iterations": 1000, "TotalCycles": 1250},
        },
        {"SummaryView": {"BlockRThroughput": 1, "Iterations": 1000, "TotalCycles": 4003}},
    ],
    "TargetInfo": {"CPUName": "znver4"},
}


def installed() -> bool:
    try:
        find_tool()
    except ToolMissing:
        return False
    return True


needs_tool = pytest.mark.skipif(
    not installed(), reason=f"llvm-mca is not installed: apt-get install llvm-{OLDEST_VERSION}"
)


def test_regions() -> None:
    text = regions(innermost_loops(TEXT, "x86_64-linux"))
    first, second = (part.split("# LLVM-MCA-END")[0].split() for part in text.split("# LLVM-MCA-BEGIN")[1:])
    assert text.startswith(".LBB0_1:\n"), "Mach-O knows no undefined local label"
    assert len([word for word in first if word.startswith(("v", "p", "l", "j"))]) == 7
    assert " ".join(second) == "vfmadd231ps %zmm0, %zmm2, %zmm0 vfmadd231ps %zmm1, %zmm2, %zmm1"


def test_report() -> None:
    (found,) = read_report(REPORT, innermost_loops(TEXT, "x86_64-linux"))
    assert found == LoopEstimate(
        function="kernel",
        label=".LBB0_1",
        depths=1,
        instructions=7,
        multiplies=2,
        loads=4,
        stores=2,
        spills=2,
        cycles=1.25,
        bound=1,
    )
    assert (found.cycles_per_depth, found.bound_per_depth, found.share) == (1.25, 1.0, 0.8)


def test_table() -> None:
    loop = LoopEstimate("tile", ".LBB0_1", 2, 70, 48, 14, 3, 1, cycles=12.5, bound=12.0)
    table = estimate_table(KernelEstimate("kernel", "a-cpu", Tool("llvm-mca", 19), (loop,)))
    assert table.title == "kernel on a-cpu"
    (cells,) = zip(*(column.cells for column in table.columns), strict=True)
    assert cells == ("tile .LBB0_1", "2", "70", "48", "14", "3", "1", "6.25", "6.00", "96.0%")


def script(path: Path, version: str, body: str = "") -> None:
    path.write_text(
        f'#!/bin/sh\nif [ "$1" = --version ]; then echo "Debian LLVM version {version}"; exit; fi\n{body}\n'
    )
    path.chmod(0o755)


def test_the_newest_tool_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name, version in (("llvm-mca", "19.1.7"), ("llvm-mca-20", "20.1.0"), ("llvm-mca-19", "19.1.7")):
        script(tmp_path / name, version)
    assert find_tool() == Tool(str(tmp_path / "llvm-mca-20"), 20)
    script(tmp_path / "llvm-mca", "22.0.0git")
    assert find_tool() == Tool(str(tmp_path / "llvm-mca"), 22)


@pytest.mark.parametrize("version", [None, "14.0.6", "of none"])
def test_no_tool(version: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if version is not None:
        script(tmp_path / "llvm-mca", version)
    with pytest.raises(ToolMissing, match="apt-get install llvm-19"):
        find_tool()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("echo 'no model.' >&2; exit 1", "no model; install"),
        ("exit 3", "exit status 3"),
        (f"echo \"'x' is not a recognized processor\" >&2; echo '{json.dumps(REPORT)}'", "not a recognized"),
    ],
)
def test_no_model(body: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "llvm-mca", "19.1.7", f"while read line; do :; done\n{body}")
    monkeypatch.setattr(mca, "find_tool", lambda: Tool(str(tmp_path / "llvm-mca"), 19))
    with pytest.raises(ModelFailed, match=reason):
        estimate_kernel(uncompiled(BatchReduceGemm(16, 6, 64), "znver4"))


def test_straight_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mca, "find_tool", lambda: Tool("absent", 19))
    with pytest.raises(NoInnerLoop, match="brgemm_f32_16x6x1x1_ccc_neon"):
        estimate_kernel(uncompiled(BatchReduceGemm(16, 6, 1), "neoverse-v2"))


@needs_tool
def test_seed_002_on_grace() -> None:
    """24 multiply-adds a depth at four a cycle: the model of the Neoverse V2 is kept busy."""
    (loop,) = estimate_kernel(uncompiled(BatchReduceGemm(16, 6, 64), "neoverse-v2")).loops
    assert (loop.multiplies, loop.stores, loop.spills) == (24 * loop.depths, 0, 0)
    assert loop.bound_per_depth == 6
    assert loop.share >= 0.93


@needs_tool
@pytest.mark.parametrize(
    "name",
    ["haswell", "cascadelake", "znver4", "x86-64-v2", "neoverse-n1", "a64fx", "apple-m1", "pwr9", "pwr10"],
)
def test_every_architecture(name: str) -> None:
    """Whole loops go through the tool's assembler, and the bound is that of the multiplies alone."""
    for loop in estimate_kernel(uncompiled(BatchReduceGemm(64, 64, 64), name)).loops:
        assert loop.spills == 0
        assert 0.3 < loop.share <= 1


@needs_tool
def test_a_cpu_without_a_model() -> None:
    with pytest.raises(ModelFailed, match="generic-rv64"):
        estimate_kernel(uncompiled(BatchReduceGemm(16, 6, 64), "rva23"))
    done = subprocess.run([find_tool().path, "--version"], capture_output=True, text=True, check=True)
    assert "riscv64" in done.stdout, "the back end is there"


@needs_tool
def test_the_timeline_has_the_life_of_each_instruction() -> None:
    tool = find_tool()
    kernel = uncompiled(BatchReduceGemm(16, 6, 64), "neoverse-v2")
    loop = next(one for one in innermost_loops(kernel.assembly, kernel.machine.triple) if one.multiplies)
    found = mca.timeline_of(tool, kernel.machine, loop, 2)
    assert len(found) == 2 * len(loop.instructions)
    assert [one["text"].split()[0] for one in found[: len(loop.instructions)]] == [
        line.split()[0] for line in loop.instructions
    ]
    for one in found:
        assert one["dispatched"] <= one["issued"] <= one["executed"] <= one["retired"]
