"""Products of every element type: share of the unit's peak and ratios to others, beside what is asked.

Single thread, by the method of ``tilewright bench gemm``: one process per system, all interleaved in random
order, results checked first, the peak measured beside each measurement. torch joins where it is installed.
Run it with ``python benchmarks/element_types.py`` on a quiet machine; NumPy takes most of its minutes.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

from tilewright.errors import PackageMissing, TilewrightError
from tilewright.machine.host import detect_host
from tilewright.tools.explore.cases import parse_sizes
from tilewright.tools.explore.facts import describe_machine, machine_title
from tilewright.tools.explore.measure import BenchmarkPlan, BenchmarkReport, BenchmarkRow, measure
from tilewright.tools.explore.systems import TILEWRIGHT, find_system

#: The figure that is no ratio to another system.
SHARE = "share of peak"
#: Large squares, and those that NumPy's loops for other than BLAS types take seconds for.
LARGE, MEDIUM = "512,1024,2048,4096", "512,1024,2048"
#: The level of x86-64 whose multiply units are those of AVX2.
AVX2 = "x86-64-v3"


@dataclass(frozen=True)
class Asked:
    """One report: what is multiplied, for which target, the least each figure should be (None: no matter)."""

    dtype: str
    sizes: str
    least: dict[str, float | None]
    out_dtype: str | None = None
    target: str | None = None

    @property
    def title(self) -> str:
        """Types and target in a few words."""
        types = parse_sizes("1", self.dtype, out_dtype=self.out_dtype)[0].gemm.types.name
        return types if self.target is None else f"{types} {self.target}"


TABLE = (
    Asked("bf16", LARGE, {SHARE: 0.85, "torch": 1.0}),
    Asked("u8i8", LARGE, {SHARE: 0.85, "torch": 1.0}),
    Asked("f16", MEDIUM, {"tilewright-f32": 0.9, "numpy": 250}),
    Asked("f32", MEDIUM, {SHARE: 0.88}, target=AVX2),
    Asked("bf16", MEDIUM, {"tilewright-f32": 0.85}, target=AVX2),
    Asked("f16", MEDIUM, {"tilewright-f32": 0.85}, target=AVX2),
    Asked("i8", MEDIUM, {"tilewright-f32": 1.2}, out_dtype="i32", target=AVX2),
    Asked("i32", "512", {"numpy": 40}),
    Asked("i64", "512", {"numpy": 12}),
    Asked("c64", "1024", {"numpy": 1.6}),
    Asked("f32", "512,1024", {"tilewright-generic": None}),
    Asked("bf16", "512,1024", {"tilewright-generic": None}),
    Asked("u8i8", "512,1024", {"tilewright-generic": None}),
)


def installed(asked: Asked) -> Asked:
    """Without the figures of peers that are not there, which is said."""
    kept = dict(asked.least)
    for name in [name for name in kept if name != SHARE]:
        try:
            find_system(name)
        except PackageMissing as error:
            print(f"{asked.title}: {error}")
            del kept[name]
    return replace(asked, least=kept)


def report_of(asked: Asked, repeat: int) -> BenchmarkReport:
    """Measures what one row of the table needs."""
    peers = tuple(name for name in asked.least if name != SHARE)
    cases = parse_sizes(asked.sizes, asked.dtype, out_dtype=asked.out_dtype)
    return measure(
        BenchmarkPlan(cases, peers, repeat=repeat, target=asked.target), describe_machine(detect_host())
    )


def figure_of(row: BenchmarkRow, name: str) -> float:
    """One figure of tilewright on one problem."""
    return row.share_of_peak if name == SHARE else row.ratio_to[name]


def print_rows(asked: Asked, report: BenchmarkReport) -> tuple[int, int]:
    """One line for each figure and size; how many were asked for, and how many reach it."""
    wanted = reached = 0
    for name, least in asked.least.items():
        meaning = f"share of {report.unit} peak" if name == SHARE else f"ratio to {name}"
        for row in report.rows:
            if row.system != TILEWRIGHT.name:
                continue
            found = figure_of(row, name)
            verdict = "" if least is None else "yes" if found >= least else "no"
            wanted, reached = wanted + (least is not None), reached + (verdict == "yes")
            needed = "" if least is None else f"{least:g}"
            few = min(
                (other.measurements for other in report.rows if other.problem == row.problem), default=0
            )
            note = f"  a system was measured {few} times only" if few < row.measurements else ""
            print(
                f"{asked.title:<16} {row.sizes['n']:>5} {meaning:<32} {needed:>6} {found:>9.2f} {verdict:<4}"
                f"{row.gflops_median:>8.1f}{note}"
            )
    return wanted, reached


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--dtypes", default="", help="comma list: only these rows, such as bf16,u8i8")
    options = parser.parse_args()
    chosen = options.dtypes.split(",") if options.dtypes else [asked.dtype for asked in TABLE]
    print(f"{machine_title(describe_machine(detect_host()))}, one thread, {options.repeat} measurements")
    print(f"{'types':<16} {'n':>5} {'figure':<32} {'asked':>6} {'measured':>9}     GFLOPS")
    wanted = reached = 0
    for asked in TABLE:
        if asked.dtype in chosen and (kept := installed(asked)).least:
            try:
                counts = print_rows(kept, report_of(kept, options.repeat))
            except TilewrightError as error:
                print(f"{asked.title}: {error}")
                counts = (len(kept.least), 0)
            wanted, reached = wanted + counts[0], reached + counts[1]
    print(f"{reached} of {wanted} figures are what is asked")


if __name__ == "__main__":
    main()
