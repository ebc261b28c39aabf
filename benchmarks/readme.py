"""Writes the measured tables of README.md and docs/performance.md from JSON reports of `tilewright bench`.

``python benchmarks/readme.py FOLDER`` prints the tables; ``--write`` puts them between the markers
``<!-- measured: NAME -->`` and ``<!-- end -->`` of both pages. FOLDER holds NAME.json for each name in
`REPORTS`; reports that are missing are left out, and their tables stay as they are. docs/performance.md shows
the command that writes each report.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "docs/performance.md")

#: What a reader knows each system as.
TITLES = {
    "numpy": "NumPy as shipped",
    "numpy-best": "NumPy, best setting",
    "torch": "PyTorch",
    "jax": "JAX",
    "onnxruntime": "ONNX Runtime",
    "tilewright-avx2": "tilewright, AVX2",
    "tilewright": "tilewright",
}
#: LLVM's names of CPUs, as people call them.
CPUS = {"znver4": "AMD EPYC (Zen 4)", "znver5": "AMD EPYC (Zen 5)"}


@dataclass(frozen=True)
class Reported:
    """A report: the name of its file, and what the summary calls it."""

    name: str
    title: str


REPORTS = (
    Reported("gemm-f32", "float32 products"),
    Reported("gemm-f32-small", "float32 products"),
    Reported("gemm-f32-2threads", "float32 products"),
    Reported("gemm-f64", "float64 products"),
    Reported("gemm-bf16", "bfloat16 products"),
    Reported("gemm-u8i8", "uint8 x int8 products"),
    Reported("attention-f32", "attention, float32"),
    Reported("attention-f32-causal", "causal attention, float32"),
    Reported("attention-bf16", "attention, bfloat16"),
)


class Report:
    """One JSON report: rows by problem and system."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.machine, self.unit, self.peak = content["machine"], content["unit"], content["peak_gflops"]
        self.rows = {(row["problem"], row["system"]): row for row in content["rows"]}
        self.problems = list(dict.fromkeys(problem for problem, _ in self.rows))
        self.systems = list(dict.fromkeys(system for _, system in self.rows))
        self.threads = content["rows"][0]["threads"]

    @property
    def others(self) -> list[str]:
        """Every system but tilewright."""
        return [system for system in self.systems if system != "tilewright"]

    @property
    def peers(self) -> list[str]:
        """Systems of others."""
        return [system for system in self.others if not system.startswith("tilewright")]

    @property
    def best_peer(self) -> str:
        """The fastest peer, by the geometric mean of its speeds."""
        return max(self.peers, key=lambda peer: mean([row["gflops_median"] for row in self.column(peer)]))

    def column(self, system: str) -> list[dict[str, Any]]:
        """The rows of one system."""
        return [self.rows[problem, system] for problem in self.problems]

    def ratios(self, other: str) -> list[float]:
        """Tilewright's speed over another system's."""
        return [row["ratio_to"][other] for row in self.column("tilewright")]

    def ratios_to_fastest(self) -> list[float]:
        """Tilewright's speed over that of the fastest peer of each problem."""
        return [min(row["ratio_to"][peer] for peer in self.peers) for row in self.column("tilewright")]

    def shares(self, system: str) -> list[float]:
        """The shares of the peak of one system."""
        return [row["share_of_peak"] for row in self.column(system)]


def mean(values: list[float]) -> float:
    """The geometric mean."""
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def size(problem: str) -> str:
    """A problem as the first column names it: "gemm 8x8x8 nn" is 8.

    >>> size("gemm 8x8x8 nn"), size("gemm 8x8x4 nn"), size("attention 1x8x64x64")
    ('8', '8x8x4', '1x8x64x64')
    """
    name = problem.split()[1]
    parts = name.split("x")
    return parts[0] if problem.startswith("gemm") and len(set(parts)) == 1 else name


def line(*cells: str) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def table(report: Report) -> Iterator[str]:
    """One line per problem: speed, share of the peak, and the ratio to every other system."""
    titles = [f"over {TITLES.get(other, other)}" for other in report.others]
    yield line("size", "GFLOPS", f"share of {report.unit} peak", *titles)
    yield line(*["---"] * (3 + len(titles)))
    for problem in report.problems:
        row = report.rows[problem, "tilewright"]
        ratios = (f"{row['ratio_to'][other]:.2f}" for other in report.others)
        yield line(size(problem), speed(row["gflops_median"]), percent(row["share_of_peak"]), *ratios)
    means = (f"{mean(report.ratios(other)):.2f}" for other in report.others)
    yield line("geometric mean", "", percent(mean(report.shares("tilewright"))), *means)


def percent(share: float) -> str:
    """A share of the peak.

    >>> percent(0.957)
    '96 %'
    """
    return f"{100 * share:.0f} %"


def speed(gflops: float) -> str:
    """Three digits."""
    return f"{gflops:.0f}" if gflops >= 100 else f"{gflops:.1f}" if gflops >= 10 else f"{gflops:.2f}"


def share_table(report: Report) -> Iterator[str]:
    """One line per problem: the share of the peak of every system."""
    yield line("size", *(TITLES.get(system, system) for system in reversed(report.systems)))
    yield line(*["---"] * (1 + len(report.systems)))
    for problem in report.problems:
        shares = (percent(report.rows[problem, s]["share_of_peak"]) for s in reversed(report.systems))
        yield line(size(problem), *shares)


def summary(reports: dict[str, Report]) -> Iterator[str]:
    """One line per report: share of the peak, the best peer, and the ratio to it."""
    yield line("one thread", "share of peak", "best peer", "speed over it", "least", "over the fastest")
    yield line(*["---"] * 6)
    for row in REPORTS:
        if row.name in reports:
            report = reports[row.name]
            ratios = report.ratios(report.best_peer)
            yield line(
                f"{row.title}{sizes(report)}",
                percent(mean(report.shares("tilewright"))),
                TITLES.get(report.best_peer, report.best_peer),
                f"{mean(ratios):.2f}",
                f"{min(ratios):.2f}",
                f"{mean(report.ratios_to_fastest()):.2f}",
            )


def sizes(report: Report) -> str:
    """The sizes of a report's square products, and its threads where there are several."""
    found = [size(problem) for problem in report.problems]
    span = f", n = {found[0]} to {found[-1]}" if all(map(str.isdecimal, found)) else ""
    return span + ("" if report.threads == 1 else f", {report.threads} threads")


def machine(report: Report) -> str:
    """Where it was measured, and with which versions."""
    facts = report.machine
    versions = facts["versions"]
    named = ", ".join(
        f"{title} {versions[key]}"
        for key, title in (
            ("llvm", "LLVM"), ("numpy", "NumPy"), ("numpy blas", "its BLAS"), ("torch", "PyTorch"),
            ("jax", "JAX"), ("onnxruntime", "ONNX Runtime"),
        )
        if key in versions
    )  # fmt: skip
    row = {"avx512": "AVX-512", "avx2": "AVX2"}.get(facts["isa"], facts["isa"])
    return f"{CPUS.get(facts['cpu'], facts['cpu'])}, {row}; {named}"


def headline(reports: dict[str, Report]) -> str:
    """The first sentence: by best peer."""
    report = reports["gemm-f32"]
    ratios, share = report.ratios(report.best_peer), percent(mean(report.shares("tilewright")))
    best = TITLES.get(report.best_peer, report.best_peer)
    avx2 = mean(report.shares("tilewright-avx2")) if "tilewright-avx2" in report.systems else None
    also = "" if avx2 is None else f" ({percent(avx2)} with its AVX2 kernels)"
    sentences = (
        f"One thread, float32{sizes(report)}, in the geometric mean: {share} of the measured FMA peak{also}, "
        f"{mean(ratios):.2f} times the speed of the best peer "
        f"({best}; {min(ratios):.2f} to {max(ratios):.2f} by size). Measured on: {machine(report)}."
    )
    return textwrap.fill(sentences, width=118, break_on_hyphens=False)


def setting(report: Report) -> str:
    """The setting with which NumPy is fastest."""
    row = next((row for row in report.rows.values() if row["system"] == "numpy-best"), None)
    found = "" if row is None else " ".join(f"{k}={v}" for k, v in row["environment"].items())
    return f"The best setting of NumPy here: {f'`{found}`' if found else 'as shipped'}."


def blocks(reports: dict[str, Report]) -> dict[str, str]:
    """What stands between the markers of each name."""
    found = {name: "\n".join(table(report)) for name, report in reports.items()}
    found["summary"] = "\n".join(summary(reports))
    if "gemm-f32" in reports:
        found["headline"] = headline(reports)
        found["setting"] = setting(reports["gemm-f32"])
        found["shares"] = "\n".join(share_table(reports["gemm-f32"]))
    return found


def replace(page: str, found: dict[str, str]) -> str:
    """A page with its marked blocks replaced.

    >>> replace("<!-- measured: a -->\\nold\\n<!-- end -->", {"a": "new"})
    '<!-- measured: a -->\\nnew\\n<!-- end -->'
    """

    def block(match: re.Match[str]) -> str:
        new = found.get(match[2])
        return match[0] if new is None else f"{match[1]}{new}\n<!-- end -->"

    return re.sub(r"(<!-- measured: ([\w-]+) -->\n)(.*?)<!-- end -->", block, page, flags=re.DOTALL)


def main() -> None:
    """Print, or write into the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the reports are")
    parser.add_argument("--write", action="store_true", help="write the tables into the pages")
    options = parser.parse_args()
    reports = {}
    for row in REPORTS:
        path = options.folder / f"{row.name}.json"
        if path.exists():
            reports[row.name] = Report(json.loads(path.read_text(encoding="utf-8")))
        else:
            print(f"no {path}")
    found = blocks(reports)
    if options.write:
        for name in PAGES:
            path = ROOT / name
            path.write_text(replace(path.read_text(encoding="utf-8"), found), encoding="utf-8")
    else:
        for name, text in found.items():
            print(f"\n## {name}\n\n{text}")


if __name__ == "__main__":
    main()
