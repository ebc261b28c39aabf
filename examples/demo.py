"""Multiply random float32 matrices with tilewright and every installed peer; check, compare, draw.

Run it with `make demo`. It writes demo.png into the current folder. Peers are NumPy as shipped, NumPy with
the fastest OPENBLAS_CORETYPE, and PyTorch, JAX and ONNX Runtime where they are installed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from expectations import expectation_line
from rich.console import Console

from tilewright import Gemm, TilewrightError
from tilewright.plotting import check_plot_path
from tilewright.tools.explore.cases import Case
from tilewright.tools.explore.measure import REPEAT, BenchmarkPlan
from tilewright.tools.explore.plot import draw_report
from tilewright.tools.explore.present import measure_with_progress, print_report
from tilewright.tools.explore.systems import installed_peers

#: Square, odd, tall, wide, deep, batched, and transposed views; the longest comes last.
CASES = (
    Case(Gemm(64, 64, 64), label="64"),
    Case(Gemm(256, 256, 256), label="256"),
    Case(Gemm(512, 512, 512), label="512"),
    Case(Gemm(127, 127, 127), label="odd 127"),
    Case(Gemm(1023, 1023, 1023), label="odd 1023"),
    Case(Gemm(8192, 64, 256), label="tall 8192x64x256"),
    Case(Gemm(64, 8192, 256), label="wide 64x8192x256"),
    Case(Gemm(128, 128, 8192), label="deep 128x128x8192"),
    Case(Gemm(128, 128, 128), batch=64, label="batch of 64: 128"),
    Case(Gemm(1024, 1024, 1024, a="col"), label="A transposed 1024"),
    Case(Gemm(1024, 1024, 1024, b="col"), label="B transposed 1024"),
    Case(Gemm(2048, 2048, 2048), label="2048"),
)


def main() -> None:
    """Measure, print the table, write the plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("demo.png"), help="the plot to write")
    parser.add_argument("--repeat", type=int, default=REPEAT, help="measurements of each product")
    options = parser.parse_args()
    console = Console()
    try:
        # SciPy's BLAS has no batches.
        peers = tuple(name for name in installed_peers(CASES[0].types) if name != "scipy")
        plan = BenchmarkPlan(CASES, peers, threads=1, repeat=options.repeat)
        check_plot_path(options.output)
        report = measure_with_progress(plan)
        print_report(plan, report, console)
        draw_report(plan, report, options.output)
    except TilewrightError as error:
        sys.exit(f"demo: {error}")
    console.print(expectation_line(report.machine), markup=False, highlight=False)
    console.print(f"plot written to {options.output}", markup=False, highlight=False)


if __name__ == "__main__":
    main()
