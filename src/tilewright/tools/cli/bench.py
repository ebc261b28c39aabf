"""`tilewright bench`: speed against peers and the peak."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tilewright.compiler.target import resolve_target
from tilewright.errors import InvalidChoice
from tilewright.machine.host import detect_host
from tilewright.ops.batch_reduce.problem import BatchReduceGemm
from tilewright.plotting import check_plot_path
from tilewright.progress import Steps
from tilewright.spec.arguments import unchecked
from tilewright.tools.cli import terminal
from tilewright.tools.cli.options import Dtype, ModelInputs, OutDtype, Precision, group
from tilewright.tools.cli.whole_bench import SLOWER_STATUS, compare_files, run_whole
from tilewright.tools.explore import kernels
from tilewright.tools.explore.attention.bench import AttentionBench, run_bench
from tilewright.tools.explore.attention.cases import parse_shapes
from tilewright.tools.explore.attention.systems import ATTENTION_PEERS, default_attention_peers
from tilewright.tools.explore.cases import parse_sizes
from tilewright.tools.explore.facts import describe_machine, machine_title
from tilewright.tools.explore.measure import BenchmarkPlan
from tilewright.tools.explore.model_bench import ModelOptions, measure_file
from tilewright.tools.explore.moves import MovePlan, measure_moves
from tilewright.tools.explore.plot import draw_report
from tilewright.tools.explore.present import measure_with_progress, print_report
from tilewright.tools.explore.statistics import geometric_mean
from tilewright.tools.explore.systems import PEERS, VARIANTS, default_peers, parse_peers

_ABOUT = """Measure speed against peers and the peak.

With --report or --json and no command, the whole benchmark: products, skewed shapes, element types, batches,
attention, einsum, linear layers, norms, models, loops, fixed-size kernels, calls and threads, in one page.
Each row is kept in the file of results when it is measured, so an interrupted run goes on where it stopped,
if the machine, all versions and this package's code are the same.

With --compare, two such files: exit status 1 if Tilewright is slower on some row beyond noise, else 0.
"""

app = group(_ABOUT)


@app.callback(invoke_without_command=True)
def bench_all(
    context: typer.Context,
    report_path: Annotated[
        Path | None,
        typer.Option("--report", metavar="PAGE.html", help="Measure everything; write the page here."),
    ] = None,
    json_path: Annotated[
        Path | None,
        typer.Option(
            "--json", metavar="FILE.json", help="The results; by default PAGE.json beside the page."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="About 75 rows in three minutes on two cores.")
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Replace results that the file has.")] = False,
    peers: Annotated[
        str | None,
        typer.Option(help="Comma-separated list of peers; by default every one that is installed."),
    ] = None,
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="OLD.json NEW.json", help="Print what changed between two runs beyond noise."),
    ] = None,
) -> None:
    """Carry out the whole benchmark, or compare two runs of it; see `_ABOUT`."""
    asked = report_path is not None or json_path is not None or compare is not None
    beside = quick or fresh or peers is not None
    if context.invoked_subcommand is not None:
        if asked or beside:
            raise InvalidChoice(
                name="command beside options of the whole benchmark",
                found=context.invoked_subcommand,
                allowed="none; options of a command follow it",
            )
        return
    if not asked:
        raise InvalidChoice(
            name="output",
            found="none",
            allowed="--report PAGE.html, --json FILE.json, --compare OLD.json NEW.json",
        )
    if compare is None:
        run_whole(report_path, json_path, peers, quick=quick, fresh=fresh)
        return
    if report_path is not None or beside:
        raise InvalidChoice(name="option beside --compare", found="another", allowed="--json")
    if compare_files(*compare, json_path).is_slower:
        raise typer.Exit(SLOWER_STATUS)


@app.command("gemm")
def bench_gemm(
    sizes: Annotated[str, typer.Option(help="Comma-separated list of N or MxNxK.")] = "256,512,768,1024,2048",
    dtype: Dtype = "f32",
    out_dtype: OutDtype = None,
    target: Annotated[
        str, typer.Option(help="host, or a target whose kernels this host runs, such as x86-64-v3.")
    ] = "host",
    threads: Annotated[int, typer.Option(min=1, help="Threads that each system may use.")] = 1,
    peers: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated list of numpy, numpy-best, torch, jax, onnxruntime, scipy, iree, "
            "tilewright-f32, tilewright-generic, tilewright-avx2, tilewright-model (without tuned "
            "constants); may be empty. By default numpy, or torch where NumPy lacks the type. numpy runs as "
            "shipped; numpy-best with the fastest OPENBLAS_CORETYPE."
        ),
    ] = None,
    trans: Annotated[str, typer.Option(help="Operands that are transposed views: n, a, b or ab.")] = "n",
    repeat: Annotated[int, typer.Option(min=1, help="Measurements of each system on each size.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the operands and of the order.")] = 0,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the report here.")] = None,
    plot_path: Annotated[
        Path | None, typer.Option("--plot", help="Draw the share of the peak here (.png, .svg or .pdf).")
    ] = None,
) -> None:
    """Measure matrix products and compare with peers.

    Systems run interleaved in random order, each in its own process. Every result is first checked against
    float64, or exact integers. The table gives the median speed with its 95 % confidence interval, the ratio
    to each peer, and the share of the peak measured in the same run: of the FMA, or of the dot-product or
    matrix instruction of the element types.
    """
    cases = parse_sizes(sizes, dtype, trans, out_dtype)
    beside = default_peers(cases[0].gemm.types) if peers is None else parse_peers(peers, PEERS + VARIANTS)
    resolve_target(target)  # a name that no machine has is refused before anything is measured
    plan = BenchmarkPlan(cases, beside, threads, repeat, seed, None if target == "host" else target)
    for path in (json_path, plot_path):
        if path is not None:
            terminal.check_writable(path)
    if plot_path is not None:
        check_plot_path(plot_path)
    console = terminal.console()
    report = measure_with_progress(plan)
    print_report(plan, report, console)
    if json_path is not None:
        terminal.write(json_path, report.to_json())
    if plot_path is not None:
        draw_report(plan, report, plot_path)


@app.command("brgemm")
def bench_brgemm(
    sizes: Annotated[str, typer.Option(help="Comma-separated list of N or MxNxK.")] = "16,32,48,64,96,128",
    count: Annotated[int, typer.Option(min=1, help="Products summed by one call.")] = 1,
    dtype: Annotated[str, typer.Option(help="Element type: f32 or f64.")] = "f32",
    grid: Annotated[
        bool, typer.Option("--grid", help="All 20,480 shapes of m, n up to 64 and k of 1, 16, 32, 64, 128.")
    ] = False,
    sample: Annotated[int, typer.Option(min=0, help="With --grid: a random sample of this many.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of that sample.")] = 0,
    csv_path: Annotated[Path | None, typer.Option("--csv", help="Write one line a kernel here.")] = None,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the report here.")] = None,
) -> None:
    """Measure batch-reduce kernels of hardcoded sizes.

    Kernels run in a compiled loop; the FMA peak is measured next to each.
    """
    for path in (csv_path, json_path):
        if path is not None:
            terminal.check_writable(path)
    shapes = tuple(case.sizes for case in parse_sizes(sizes, dtype, "n"))
    if grid:
        shapes = kernels.sample_grid(sample, seed) if sample else tuple(kernels.grid())
    console = terminal.console()
    rows = []
    with Steps("measure", len(shapes), timed=True) as steps:
        for m, n, k in shapes:
            problem = BatchReduceGemm(m, n, k, count, unchecked(dtype))
            rows.append(kernels.measure_kernel(problem, repeat=1 if grid else 9))
            steps.advance()
    if not grid:
        lines = [
            (f"{row.m}x{row.n}x{row.k}", f"{row.gflops:.1f}", f"{row.share_of_peak:.1%}") for row in rows
        ]
        terminal.print_table(
            console,
            f"{dtype} batch-reduce kernels",
            ("size", "products summed", "GFLOPS", "share of peak"),
            [(size, str(count), *rest) for size, *rest in lines],
        )
    mean = sum(row.gflops for row in rows) / len(rows)
    share = geometric_mean([row.share_of_peak for row in rows])
    if len(rows) > 1:
        console.print(
            f"{len(rows)} kernels: arithmetic mean {mean:.1f} GFLOPS, geometric mean {share:.1%} of peak"
        )
    if csv_path is not None:
        kernels.write_csv(rows, csv_path)
    if json_path is not None:
        report = {"machine": describe_machine(detect_host()), "rows": [asdict(row) for row in rows]}
        terminal.write(json_path, terminal.json_text(report))


@app.command("attention")
def bench_attention(
    shapes: Annotated[
        str,
        typer.Option(
            help="Comma-separated list of BATCHxHEADS[/KV_HEADS]xQUERIES[:KEYS]xHEAD_DIM, "
            "or of bert, decoders, lengths."
        ),
    ] = "1x12x384x64,8x12x384x64,1x16x2048x64,1x8x4096x128",
    dtype: Annotated[str, typer.Option(help="Element type: f32, bf16, f16 or f64.")] = "f32",
    causal: Annotated[
        bool, typer.Option("--causal", help="Causal attention: a query sees the keys up to its own position.")
    ] = False,
    window: Annotated[
        str | None, typer.Option(help="LEFT or LEFT,RIGHT: keys that a query sees on either side of its own.")
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads that each system may use.")] = 1,
    peers: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated list of torch, onnxruntime, numpy, tilewright-unfused; may be empty. "
            "By default torch where it is installed, else numpy."
        ),
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, help="Measurements of each system on each shape.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the operands and of the order.")] = 0,
    memory: Annotated[
        bool, typer.Option("--memory", help="Also measure memory beyond operands and result (Linux).")
    ] = False,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the report here.")] = None,
    plot_path: Annotated[
        Path | None, typer.Option("--plot", help="Draw time by sequence length here (.png, .svg or .pdf).")
    ] = None,
    memory_plot_path: Annotated[
        Path | None,
        typer.Option("--memory-plot", help="Draw memory by sequence length here; implies --memory."),
    ] = None,
) -> None:
    """Measure attention and compare with peers.

    Systems run interleaved in random order, each in its own process. Operations are counted as
    4 x batch x heads x queries x keys x head, half of that for causal attention, and only the visible keys
    for a window. Every result is first checked against float64. The table gives the median speed with its
    95 % confidence interval, the ratio to each peer, and the share of the peak measured in the same run.
    """
    cases = parse_shapes(shapes, dtype, causal=causal, window=window)
    beside = default_attention_peers(dtype) if peers is None else parse_peers(peers, ATTENTION_PEERS)
    plan = BenchmarkPlan(cases, beside, threads, repeat, seed)
    for path in (json_path, plot_path, memory_plot_path):
        if path is not None:
            terminal.check_writable(path)
    for path in (plot_path, memory_plot_path):
        if path is not None:
            check_plot_path(path)
    bench = AttentionBench(plan, cases, memory or memory_plot_path is not None)
    found = run_bench(bench, terminal.console())
    if json_path is not None:
        terminal.write(json_path, found.to_json())
    if plot_path is not None:
        found.draw_times(plot_path)
    if memory_plot_path is not None:
        found.draw_memory(memory_plot_path)


@app.command("transpose")
def bench_transpose(
    sizes: Annotated[str, typer.Option(help="Comma-separated list of N or MxN.")] = "64,512,2048,8192",
    dtype: Annotated[str, typer.Option(help="Element type, such as i8, f32, f64 or c128.")] = "f32",
    peers: Annotated[str, typer.Option(help="Comma-separated list of numpy, torch; may be empty.")] = "numpy",
    repeat: Annotated[int, typer.Option(min=1, help="Measurements of each system on each size.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the operands and of the order.")] = 0,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the report here.")] = None,
) -> None:
    """Measure transposes and compare with peers.

    Speeds are GiB/s read and written, next to memcpy measured in the same run.
    """
    plan = MovePlan.parse(sizes, dtype, peers, repeat, seed)
    if json_path is not None:
        terminal.check_writable(json_path)
    console = terminal.console()
    with Steps("check and measure", plan.repeat * len(plan.shapes), timed=True) as steps:
        report = measure_moves(plan, describe_machine(detect_host()), steps.advance)
    lines = [
        (
            f"{row.rows}x{row.columns}",
            row.system,
            f"{row.gib_per_second:.1f}  {row.gib_per_second_ci[0]:.1f}..{row.gib_per_second_ci[1]:.1f}",
            f"{row.memcpy_gib_per_second:.1f}",
            f"{row.share_of_memcpy:.2f}",
        )
        for row in report.rows
    ]
    title = f"{plan.dtype} transposes on {machine_title(report.machine)}, 1 thread"
    terminal.print_table(console, title, ("size", "system", "GiB/s", "memcpy", "share of memcpy"), lines)
    if json_path is not None:
        terminal.write(json_path, report.to_json())


@app.command("model")
def bench_model(
    model: Annotated[Path, typer.Argument(help="An ONNX model.")],
    inputs: ModelInputs = None,
    sizes: Annotated[
        list[str] | None,
        typer.Option("--size", metavar="NAME=N", help="A size that the model names; repeat it for each."),
    ] = None,
    precision: Precision = "f32",
    threads: Annotated[int, typer.Option(min=1, help="Threads that each system may use.")] = 1,
    repeat: Annotated[int, typer.Option(min=1, help="Measurements of each system.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the inputs and of the order.")] = 0,
    bound: Annotated[
        float, typer.Option(min=0, help="Largest accepted difference of the results, of the largest element.")
    ] = 1e-3,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the report here.")] = None,
) -> None:
    """Measure a model, beside ONNX Runtime where it is installed.

    Inputs without a file are random: floats normal, integers 0 and 1. Sizes that are not given are 1 on a
    first axis, else 128. The results of both systems are compared before anything is timed. On CPUs without
    VNNI, ONNX Runtime's products of 8 bits saturate: raise --bound for models with such.
    """
    if json_path is not None:
        terminal.check_writable(json_path)
    report = measure_file(
        model, inputs or [], sizes or [], ModelOptions(precision, threads, repeat, seed, bound)
    )
    console = terminal.console()
    lines = [
        (
            row.system,
            f"{row.seconds * 1e3:.3f}  {row.seconds_ci[0] * 1e3:.3f}..{row.seconds_ci[1] * 1e3:.3f}",
            f"{row.seconds / report.rows[0].seconds:.2f}",
            f"{row.first_seconds:.2f}",
        )
        for row in report.rows
    ]
    shapes = ", ".join(f"{name} {shape}" for name, shape in report.inputs.items())
    title = f"{model} ({shapes}) on {machine_title(report.machine)}, {threads} threads, {precision}"
    terminal.print_table(console, title, ("system", "ms", "times ours", "first call, s"), lines)
    if report.rows[0].difference is not None:
        console.print(f"largest difference: {report.rows[0].difference:.2g} of the largest element")
    if json_path is not None:
        terminal.write(json_path, report.to_json())
