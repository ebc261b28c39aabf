"""The command line: info, bench, emit."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from tilewright.errors import BinaryToTerminal, InvalidChoice, OutputNotWritable, TilewrightError, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console

    from tilewright.compiler.pipeline import Problem
    from tilewright.llvm.object_cache import ObjectCache
    from tilewright.loops.opt.records import ProductOptions, Remark
    from tilewright.machine.machine import Machine

#: Exit status of every error that has a class in `errors`.
ERROR_STATUS = 2
#: Help texts are plain text: rich's markup, Typer's default, would take `[/KV_HEADS]` for a closing tag.
MARKUP = None


class CleanErrors(TyperGroup):
    """Commands whose errors are one line on standard error; --debug shows the traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except TilewrightError as error:
            if ctx.params.get("debug"):
                raise
            typer.echo(f"tilewright: {error}", err=True)
            raise typer.Exit(ERROR_STATUS) from None


app = typer.Typer(
    name="tilewright",
    cls=CleanErrors,
    help="A tensor compiler for CPUs: inspect the machine, measure speed, read generated code.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=MARKUP,
)
bench_app = typer.Typer(
    help="Measure speed against peers and the peak.",
    no_args_is_help=True,
    rich_markup_mode=MARKUP,
)
emit_app = typer.Typer(
    help="Write generated code and kernel libraries.",
    no_args_is_help=True,
    rich_markup_mode=MARKUP,
)
app.add_typer(bench_app, name="bench")
cache_app = typer.Typer(
    help="The object cache on disk: show, clear, prune.", no_args_is_help=True, rich_markup_mode=MARKUP
)
app.add_typer(emit_app, name="emit")
app.add_typer(cache_app, name="cache")


def main() -> None:
    """Entry point of the `tilewright` script."""
    app()


def _print_version(wanted: bool) -> None:
    if wanted:
        import tilewright

        typer.echo(f"tilewright {tilewright.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Options of every command; `CleanErrors` reads --debug."""


def _console() -> Console:
    """The terminal; where output goes to a file, lines are not cut to 80 columns."""
    from rich.console import Console

    return Console() if _is_terminal() else Console(width=160)


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def _write(path: Path, content: str | bytes) -> None:
    """Write a file that the user named; the failure is an error of ours."""
    try:
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise OutputNotWritable(path=str(path), reason=error.strerror or str(error)) from error


def _check_writable(path: Path) -> None:
    """Refuse, before minutes of measuring, a file in a folder that does not exist."""
    if not path.parent.is_dir():
        raise OutputNotWritable(path=str(path), reason=f"{path.parent} is not a folder")


# --- info ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Info:
    """Everything `tilewright info` says; the fields are its JSON form."""

    machine: dict[str, Any]
    settings: dict[str, dict[str, Any]]
    versions: dict[str, str]
    threads: int
    pool: dict[str, Any]
    blocking: dict[str, dict[str, Any]]
    units: dict[str, str]
    peak_gflops: dict[str, float]


def _collect_info() -> Info:
    from tilewright.compiler.peak import measure_peak, peak_name
    from tilewright.compiler.pipeline import run_stages
    from tilewright.machine.host import default_thread_count, detect_host
    from tilewright.macro.blocking import Blocking
    from tilewright.ops.gemm.problem import Gemm
    from tilewright.settings import VARIABLES, read_settings
    from tilewright.spec.dtype import GEMM_DTYPES, DType
    from tilewright.threads.pool import pool_facts
    from tilewright.tools.explore.facts import library_versions, machine_facts

    settings = read_settings()
    facts = detect_host(settings)
    machine = facts.machine()

    def blocking(dtype: DType) -> dict[str, Any]:
        found = run_stages(Gemm(dtype=dtype), machine, until="blocking").blocking
        assert isinstance(found, Blocking)
        return asdict(found)

    return Info(
        machine=machine_facts(facts, origins=True),
        settings={
            variable.name: {"value": getattr(settings, variable.field), "meaning": variable.meaning}
            for variable in VARIABLES
        },
        versions=library_versions(),
        threads=default_thread_count(settings, facts),
        pool=pool_facts(),
        blocking={str(dtype): blocking(dtype) for dtype in GEMM_DTYPES},
        units={str(dtype): peak_name(dtype, dtype, machine) for dtype in GEMM_DTYPES},
        peak_gflops={str(dtype): measure_peak(dtype, machine) for dtype in GEMM_DTYPES},
    )


def _leaves(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Name, value and origin of every fact; cache levels are nested one deep."""
    for name, value in values.items():
        full = f"{prefix}{name}".replace("_", " ")
        if value is None:
            yield full, "none", ""
        elif isinstance(value, bool):
            yield full, "yes" if value else "no", ""
        elif "origin" in value:
            yield full, _shown(full, value["value"]), value["origin"]
        else:
            yield from _leaves(value, f"{full} ")


def _shown(name: str, value: object) -> str:
    """A value for a person: sizes in KiB, and of the features those the CPU has; --json has it all."""
    if name == "features":
        return " ".join(feature[1:] for feature in str(value).split(",") if feature.startswith("+"))
    if isinstance(value, int) and name.endswith(("size", "bytes")):
        return f"{value / 1024:g} KiB"
    return "none" if value is None else str(value)


def _print_table(
    console: Console, title: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]
) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table)


@app.command()
def info(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Show this machine, its settings and its measured peak."""
    found = _collect_info()
    if as_json:
        typer.echo(json.dumps(asdict(found), indent=2))
        return
    console = _console()
    facts = [*_leaves(found.machine), ("threads", str(found.threads), "cores and settings")]
    facts += [(f"thread pool {name}", str(value), "this process") for name, value in found.pool.items()]
    _print_table(console, "machine", ("value of", "is", "from"), facts)
    peaks = [
        (
            dtype,
            found.units[dtype],
            f"{peak:.1f}",
            " ".join(f"{key}={size}" for key, size in found.blocking[dtype].items()),
        )
        for dtype, peak in found.peak_gflops.items()
    ]
    columns = ("dtype", "multiplies with", "peak of one core, GFLOPS, measured now", "blocking")
    _print_table(console, "element types", columns, peaks)
    settings = [
        (name, "-" if entry["value"] is None else str(entry["value"]), entry["meaning"])
        for name, entry in found.settings.items()
    ]
    _print_table(console, "settings (environment variables)", ("variable", "is", "meaning"), settings)
    _print_table(console, "versions", ("library", "version"), list(found.versions.items()))


_Dtype = Annotated[
    str, typer.Option(help="Element type of A and B, such as f32, bf16, i8, c64; of each, such as u8i8.")
]
_OutDtype = Annotated[
    str | None, typer.Option(help="Element type of C; by default the wider of A's and B's.")
]


# --- bench --------------------------------------------------------------------------------------


@bench_app.command("gemm")
def bench_gemm(
    sizes: Annotated[str, typer.Option(help="Comma list of N or MxNxK.")] = "256,512,768,1024,2048",
    dtype: _Dtype = "f32",
    out_dtype: _OutDtype = None,
    target: Annotated[
        str, typer.Option(help="host, or a target whose kernels this host runs, such as x86-64-v3.")
    ] = "host",
    threads: Annotated[int, typer.Option(min=1, help="Threads that each system may use.")] = 1,
    peers: Annotated[
        str | None,
        typer.Option(
            help="Comma list of numpy, numpy-best, torch, jax, onnxruntime, tilewright-f32, "
            "tilewright-generic, tilewright-avx2; may be empty. By default numpy, or torch where NumPy lacks "
            "the type. numpy runs as shipped; numpy-best with the fastest OPENBLAS_CORETYPE."
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
    from tilewright.compiler.target import resolve_target
    from tilewright.tools.explore.cases import parse_sizes
    from tilewright.tools.explore.measure import BenchmarkPlan
    from tilewright.tools.explore.plot import check_plot_path, draw_report
    from tilewright.tools.explore.present import measure_with_progress, print_report
    from tilewright.tools.explore.systems import PEERS, VARIANTS, default_peers, parse_peers

    cases = parse_sizes(sizes, dtype, trans, out_dtype)
    beside = default_peers(cases[0].gemm.types) if peers is None else parse_peers(peers, PEERS + VARIANTS)
    resolve_target(target)  # a name that no machine has is refused before anything is measured
    plan = BenchmarkPlan(cases, beside, threads, repeat, seed, None if target == "host" else target)
    for path in (json_path, plot_path):
        if path is not None:
            _check_writable(path)
    if plot_path is not None:
        check_plot_path(plot_path)
    console = _console()
    report = measure_with_progress(plan, console)
    print_report(plan, report, console)
    if json_path is not None:
        _write(json_path, report.to_json())
    if plot_path is not None:
        draw_report(plan, report, plot_path)


@bench_app.command("brgemm")
def bench_brgemm(
    sizes: Annotated[str, typer.Option(help="Comma list of N or MxNxK.")] = "16,32,48,64,96,128",
    count: Annotated[int, typer.Option(min=1, help="Products summed by one call.")] = 1,
    dtype: Annotated[str, typer.Option(help="Element type: f32 or f64.")] = "f32",
    grid: Annotated[
        bool, typer.Option("--grid", help="All 20,480 shapes of m, n up to 64 and k of 1, 16, 32, 64, 128.")
    ] = False,
    sample: Annotated[int, typer.Option(min=0, help="With --grid: a random sample of this many.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of that sample.")] = 0,
    csv_path: Annotated[Path | None, typer.Option("--csv", help="Write one line a kernel here.")] = None,
) -> None:
    """Measure batch-reduce kernels of hardcoded sizes.

    Kernels run in a compiled loop; the FMA peak is measured next to each.
    """
    from rich.progress import track

    from tilewright.ops.batch_reduce.problem import BatchReduceGemm
    from tilewright.tools.explore import kernels
    from tilewright.tools.explore.cases import parse_sizes
    from tilewright.tools.explore.statistics import geometric_mean

    if csv_path is not None:
        _check_writable(csv_path)
    shapes = tuple(case.sizes for case in parse_sizes(sizes, dtype, "n"))
    if grid:
        shapes = kernels.sample_grid(sample, seed) if sample else tuple(kernels.grid())
    console = _console()
    rows = [
        kernels.measure_kernel(BatchReduceGemm(m, n, k, count, dtype), repeat=1 if grid else 9)
        for m, n, k in track(shapes, description="measure", console=console, transient=True)
    ]
    if not grid:
        lines = [
            (f"{row.m}x{row.n}x{row.k}", f"{row.gflops:.1f}", f"{row.share_of_peak:.1%}") for row in rows
        ]
        _print_table(
            console, f"{dtype} batch-reduce kernels, {count} products", ("size", "GFLOPS", "of peak"), lines
        )
    mean = sum(row.gflops for row in rows) / len(rows)
    share = geometric_mean([row.share_of_peak for row in rows])
    console.print(
        f"{len(rows)} kernels: arithmetic mean {mean:.1f} GFLOPS, geometric mean {share:.1%} of peak"
    )
    if csv_path is not None:
        kernels.write_csv(rows, csv_path)


@bench_app.command("attention")
def bench_attention(
    shapes: Annotated[
        str,
        typer.Option(
            help="Comma list of BATCHxHEADS[/KV_HEADS]xQUERIES[:KEYS]xHEAD_DIM, "
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
            help="Comma list of torch, onnxruntime, numpy, tilewright-unfused; may be empty. "
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
    from tilewright.tools.explore.attention_bench import AttentionBench, run_bench
    from tilewright.tools.explore.attention_cases import parse_shapes
    from tilewright.tools.explore.attention_systems import ATTENTION_PEERS, default_attention_peers
    from tilewright.tools.explore.measure import BenchmarkPlan
    from tilewright.tools.explore.plot import check_plot_path
    from tilewright.tools.explore.systems import parse_peers

    cases = parse_shapes(shapes, dtype, causal=causal, window=window)
    beside = default_attention_peers(dtype) if peers is None else parse_peers(peers, ATTENTION_PEERS)
    plan = BenchmarkPlan(cases, beside, threads, repeat, seed)
    for path in (json_path, plot_path, memory_plot_path):
        if path is not None:
            _check_writable(path)
    for path in (plot_path, memory_plot_path):
        if path is not None:
            check_plot_path(path)
    bench = AttentionBench(plan, cases, memory or memory_plot_path is not None)
    found = run_bench(bench, _console())
    if json_path is not None:
        _write(json_path, found.to_json())
    if plot_path is not None:
        found.draw_times(plot_path)
    if memory_plot_path is not None:
        found.draw_memory(memory_plot_path)


@bench_app.command("transpose")
def bench_transpose(
    sizes: Annotated[str, typer.Option(help="Comma list of N or MxN.")] = "64,512,2048,8192",
    dtype: Annotated[str, typer.Option(help="Element type, such as i8, f32, f64 or c128.")] = "f32",
    peers: Annotated[str, typer.Option(help="Comma list of numpy, torch; may be empty.")] = "numpy",
    repeat: Annotated[int, typer.Option(min=1, help="Measurements of each system on each size.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the operands and of the order.")] = 0,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the report here.")] = None,
) -> None:
    """Measure transposes and compare with peers.

    Speeds are GiB/s read and written, next to memcpy measured in the same run.
    """
    from rich.progress import Progress

    from tilewright.machine.host import detect_host
    from tilewright.tools.explore.facts import describe_machine, machine_title
    from tilewright.tools.explore.moves import MovePlan, measure_moves

    plan = MovePlan.parse(sizes, dtype, peers, repeat, seed)
    if json_path is not None:
        _check_writable(json_path)
    console = _console()
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("check and measure", total=plan.repeat * len(plan.shapes))
        report = measure_moves(plan, describe_machine(detect_host()), lambda: progress.advance(task))
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
    _print_table(console, title, ("size", "system", "GiB/s", "memcpy", "share of memcpy"), lines)
    if json_path is not None:
        _write(json_path, report.to_json())


@app.command()
def verify(
    state: Annotated[Path, typer.Option(help="File that keeps the progress; a second run continues.")] = Path(
        ".verify.json"
    ),
    sample: Annotated[int, typer.Option(min=0, help="Only a random sample of this many shapes.")] = 0,
) -> None:
    """Check batch-reduce kernels against exact integers.

    The grid has 20,480 shapes: m and n up to 64, k of 1, 16, 32, 64, 128. Each is checked with one product
    and with 16, with tight and with padded leading dimensions.
    """
    from rich.progress import Progress

    from tilewright.tools.explore import kernels

    shapes = kernels.sample_grid(sample, 0) if sample else tuple(kernels.grid())
    console = _console()
    with Progress(console=console, transient=True) as progress:
        done = kernels.Progress.load(state).done
        task = progress.add_task("verify", total=len(shapes), completed=done)
        found = kernels.verify_grid(state, shapes, lambda: progress.advance(task))
    failed = found.failed or []
    console.print(f"{found.done} shapes verified, {len(failed)} kernels wrong")
    for m, n, k, count, padding in failed[:20]:
        console.print(f"  wrong: {m}x{n}x{k} count {count} padding {padding}")
    if failed:
        raise typer.Exit(1)


# --- emit ---------------------------------------------------------------------------------------

_Form = Annotated[str, typer.Option(help="Form to write: tile, llvm, asm, obj or header.")]
_Stage = Annotated[str | None, typer.Option(help="Write the output of this stage instead.")]
_Output = Annotated[
    Path | None, typer.Option("-o", "--output", help="File to write; - or none: standard output.")
]
_Target = Annotated[str, typer.Option(help="host, the name of a target, or triple:cpu:+features.")]
_Lowering = Annotated[
    str, typer.Option(help="Lowering of tile products: target, or generic (llvm.matrix.multiply).")
]
_Mca = Annotated[
    bool, typer.Option("--mca", help="Print the llvm-mca estimate for the loops over depth instead.")
]

#: What --emit writes: the property of a kernel for each word.
_FORMS: dict[str, Callable[[Any], str | bytes]] = {
    "tile": lambda kernel: kernel.tile_ir,
    "llvm": lambda kernel: kernel.llvm_ir,
    "asm": lambda kernel: kernel.assembly,
    "obj": lambda kernel: kernel.object_code,
    "header": lambda kernel: kernel.header,
}


_Spec = Annotated[Path | None, typer.Option(help="With --library: a TOML file of [[kernel]] tables.")]
_Targets = Annotated[str, typer.Option("--target", help="Comma list of targets of one architecture.")]
_LibraryForm = Annotated[str, typer.Option("--form", help="archive, or objects: one per kernel and target.")]


@emit_app.callback(invoke_without_command=True)
def emit_options(
    context: typer.Context,
    library: Annotated[
        Path | None, typer.Option(help="Write a library of many kernels and targets into this folder.")
    ] = None,
    spec: _Spec = None,
    target: _Targets = "host",
    form: _LibraryForm = "archive",
) -> None:
    """Options of `emit --library DIR --spec FILE`, which is the same as `emit library`."""
    given = [context.get_parameter_source(name) for name in ("library", "spec", "target", "form")]
    if context.invoked_subcommand is not None:
        if any(source is not None and source.name == "COMMANDLINE" for source in given):
            raise typer.BadParameter(f"options of {context.invoked_subcommand} stand behind it")
    elif library is None or spec is None:
        raise typer.BadParameter("needs a command, or --library DIR and --spec FILE")
    else:
        emit_library(library, spec, target, form)


@emit_app.command("library")
def emit_library(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Output folder; created if missing.")],
    spec: Annotated[Path, typer.Option(help="A TOML file of [[kernel]] tables.")],
    target: _Targets = "host",
    form: _LibraryForm = "archive",
) -> None:
    """Write a library of kernels for C and C++.

    The library holds machine code for each target, a header, and a resolver that picks the variant for the
    CPU at run time.
    """
    from tilewright.aot.build import build_library
    from tilewright.aot.files import library_files
    from tilewright.aot.form import LibraryForm
    from tilewright.aot.spec_file import read_spec
    from tilewright.aot.variants import split_targets
    from tilewright.compiler.target import resolve_target
    from tilewright.spec.arguments import parse_choice

    wanted = parse_choice(LibraryForm, form, "form")
    library = build_library(read_spec(spec), [resolve_target(name) for name in split_targets(target)])
    files = library_files(library, wanted)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputNotWritable(path=str(folder), reason=error.strerror or str(error)) from error
    for name, content in files.items():
        _write(folder / name, content)
    targets = ", ".join(variant.target for variant in library.variants.ordered)
    typer.echo(f"{folder}: {len(files)} files, {len(library.functions)} kernels; best first: {targets}")


@emit_app.command("gemm")
def emit_gemm(
    m: Annotated[int | None, typer.Option(help="Rows of C; omitted: given at run time.")] = None,
    n: Annotated[int | None, typer.Option(help="Columns of C; omitted: given at run time.")] = None,
    k: Annotated[int | None, typer.Option(help="Depth; omitted: given at run time.")] = None,
    dtype: _Dtype = "f32",
    out_dtype: _OutDtype = None,
    a: Annotated[str, typer.Option(help="Layout of A: row, col or strided.")] = "row",
    b: Annotated[str, typer.Option(help="Layout of B.")] = "row",
    c: Annotated[str, typer.Option(help="Layout of C.")] = "row",
    epilogue: Annotated[
        str, typer.Option(help="Steps before the store of C, such as bias,gelu or scale:column,clamp:0:6.")
    ] = "",
    strategy: Annotated[str, typer.Option(help="auto, tiling or packing.")] = "auto",
    target: _Target = "host",
    emit: _Form = "asm",
    dump: _Stage = None,
    lowering: _Lowering = "target",
    mca: _Mca = False,
    output: _Output = None,
) -> None:
    """Write the code for C = alpha·A·B + beta·C with an epilogue."""
    from tilewright.ops.gemm.problem import Gemm
    from tilewright.spec.epilogue import Epilogue
    from tilewright.tools.explore.cases import parse_types

    steps = Epilogue.parse(epilogue)
    types = parse_types(dtype, out_dtype, steps)
    problem = Gemm(
        *(m, n, k, types.a),
        a=a,
        b=b,
        c=c,
        b_dtype=types.b,
        out_dtype=types.c,
        epilogue=steps,
        strategy=strategy,
    )
    machine = _machine(target, lowering)
    if mca:
        _print_estimate(problem, machine)
    else:
        _emit(problem, machine, emit, dump, output)


@emit_app.command("brgemm")
def emit_brgemm(
    m: Annotated[int, typer.Option(help="Rows of C.")],
    n: Annotated[int, typer.Option(help="Columns of C.")],
    k: Annotated[int, typer.Option(help="Depth.")],
    count: Annotated[int, typer.Option(help="Products summed by one call.")] = 1,
    dtype: _Dtype = "f32",
    out_dtype: _OutDtype = None,
    a: Annotated[str, typer.Option(help="Layout of A: row or col.")] = "col",
    b: Annotated[str, typer.Option(help="Layout of B.")] = "col",
    c: Annotated[str, typer.Option(help="Layout of C.")] = "col",
    beta: Annotated[int, typer.Option(help="1 adds to C, 0 replaces it.")] = 1,
    batch: Annotated[str, typer.Option(help="stride, or address: operands behind pointers.")] = "stride",
    target: _Target = "host",
    emit: _Form = "asm",
    dump: _Stage = None,
    lowering: _Lowering = "target",
    mca: _Mca = False,
    output: _Output = None,
) -> None:
    """Write the code for a batch-reduce GEMM.

    C = beta·C + the sum of `count` products A_i·B_i, all of hardcoded sizes.
    """
    from tilewright.ops.batch_reduce.problem import BatchReduceGemm
    from tilewright.tools.explore.cases import parse_types

    types = parse_types(dtype, out_dtype)
    kinds = {"b_dtype": types.b, "out_dtype": types.c}
    problem = BatchReduceGemm(m, n, k, count, types.a, a=a, b=b, c=c, beta=beta, batch=batch, **kinds)
    machine = _machine(target, lowering)
    if mca:
        _print_estimate(problem, machine)
    else:
        _emit(problem, machine, emit, dump, output)


@emit_app.command("unary")
def emit_unary(
    op: Annotated[str, typer.Argument(help="zero, identity, relu, square, exp, tanh, gelu, ...")],
    m: Annotated[int | None, typer.Option(help="Rows; omitted: given at run time.")] = None,
    n: Annotated[int | None, typer.Option(help="Columns; omitted: given at run time.")] = None,
    dtype: Annotated[
        str, typer.Option(help="f32 or f64; for zero and identity also i8, i16, c128, ...")
    ] = "f32",
    b: Annotated[str, typer.Option(help="Layout of B: col, or row, which transposes.")] = "col",
    target: _Target = "host",
    emit: _Form = "asm",
    dump: _Stage = None,
    output: _Output = None,
) -> None:
    """Write the code for B = op(A), A column-major."""
    from tilewright.ops.unary.problem import Unary

    _emit(Unary(op, m, n, dtype, b=b), _machine(target), emit, dump, output)


@emit_app.command("mmt4d")
def emit_mmt4d(
    m0: Annotated[int, typer.Option(help="Rows of a tile of lhs and of out.")],
    n0: Annotated[int, typer.Option(help="Rows of a tile of rhs, columns of one of out.")],
    k0: Annotated[int, typer.Option(help="Columns of a tile of lhs and of rhs.")] = 1,
    dtype: _Dtype = "f32",
    target: _Target = "host",
    emit: _Form = "asm",
    dump: _Stage = None,
    output: _Output = None,
) -> None:
    """Write the code for mmt4d, a product of tiled matrices.

    The second operand is transposed, as in linalg.mmt4d of MLIR.
    """
    from tilewright.ops.mmt4d.problem import Mmt4d
    from tilewright.tools.explore.cases import parse_types

    types = parse_types(dtype, None)
    _emit(Mmt4d(m0, n0, k0, types.a, b_dtype=types.b), _machine(target), emit, dump, output)


@emit_app.command("syr2k")
def emit_syr2k(
    n: Annotated[int | None, typer.Option(help="Rows and columns of C; omitted: given at run time.")] = None,
    k: Annotated[int | None, typer.Option(help="Depth; omitted: given at run time.")] = None,
    dtype: _Dtype = "f32",
    out_dtype: _OutDtype = None,
    a: Annotated[str, typer.Option(help="Layout of A: row, col or strided.")] = "row",
    b: Annotated[str, typer.Option(help="Layout of B.")] = "row",
    c: Annotated[str, typer.Option(help="Layout of C.")] = "row",
    upper: Annotated[bool, typer.Option("--upper", help="The upper triangle instead of the lower.")] = False,
    target: _Target = "host",
    emit: _Form = "asm",
    dump: _Stage = None,
    output: _Output = None,
) -> None:
    """Write the code for syr2k.

    syr2k is one triangle of C = alpha·(A·Bᵀ + B·Aᵀ) + beta·C.
    """
    from tilewright.ops.triangular.syr2k_problem import Syr2k

    problem = Syr2k(n, k, dtype, a=a, b=b, c=c, out_dtype=out_dtype, lower=not upper)
    _emit(problem, _machine(target), emit, dump, output)


@emit_app.command("syrk")
def emit_syrk(
    n: Annotated[int | None, typer.Option(help="Rows and columns of C; omitted: given at run time.")] = None,
    k: Annotated[int | None, typer.Option(help="Depth; omitted: given at run time.")] = None,
    dtype: _Dtype = "f32",
    out_dtype: _OutDtype = None,
    a: Annotated[str, typer.Option(help="Layout of A: row, col or strided.")] = "row",
    c: Annotated[str, typer.Option(help="Layout of C.")] = "row",
    upper: Annotated[bool, typer.Option("--upper", help="The upper triangle instead of the lower.")] = False,
    target: _Target = "host",
    emit: _Form = "asm",
    dump: _Stage = None,
    output: _Output = None,
) -> None:
    """Write the code for syrk.

    syrk is one triangle of C = alpha·A·Aᵀ + beta·C.
    """
    from tilewright.ops.triangular.syr2k_problem import Syrk

    problem = Syrk(n, k, dtype, a=a, c=c, out_dtype=out_dtype, lower=not upper)
    _emit(problem, _machine(target), emit, dump, output)


@emit_app.command("trmm")
def emit_trmm(
    m: Annotated[int | None, typer.Option(help="Rows of B and C; omitted: given at run time.")] = None,
    n: Annotated[int | None, typer.Option(help="Columns of B and C; omitted: given at run time.")] = None,
    dtype: _Dtype = "f32",
    a: Annotated[str, typer.Option(help="Layout of A: row, col or strided.")] = "row",
    b: Annotated[str, typer.Option(help="Layout of B.")] = "row",
    c: Annotated[str, typer.Option(help="Layout of C.")] = "row",
    side: Annotated[str, typer.Option(help="Side of the triangular matrix: left or right.")] = "left",
    upper: Annotated[bool, typer.Option("--upper", help="The upper triangle instead of the lower.")] = False,
    unit: Annotated[bool, typer.Option("--unit", help="Unit diagonal.")] = False,
    target: _Target = "host",
    emit: _Form = "asm",
    dump: _Stage = None,
    output: _Output = None,
) -> None:
    """Write the code for trmm.

    trmm is C = alpha·T·B or alpha·B·T, where T is one triangle of A.
    """
    from tilewright.ops.triangular.trmm_problem import Trmm

    problem = Trmm(m, n, dtype, a=a, b=b, c=c, side=side, lower=not upper, unit=unit)
    _emit(problem, _machine(target), emit, dump, output)


@emit_app.command("attention")
def emit_attention(
    head_dim: Annotated[int, typer.Option(help="Elements of a query and of a key (head size).")] = 64,
    value_dim: Annotated[int | None, typer.Option(help="Elements of a value; by default as many.")] = None,
    dtype: Annotated[str, typer.Option(help="f32, f64, bf16 or f16.")] = "f32",
    kv_dtype: Annotated[str | None, typer.Option(help="Element type of keys and values: i8.")] = None,
    mask: Annotated[str | None, typer.Option(help="Element type of a mask; u8 for a boolean mask.")] = None,
    bounded: Annotated[bool, typer.Option("--bounded", help="Causal or windowed attention.")] = False,
    softcap: Annotated[bool, typer.Option("--softcap", help="Soft-capped scores.")] = False,
    slopes: Annotated[bool, typer.Option("--slopes", help="ALiBi slopes.")] = False,
    sinks: Annotated[
        bool, typer.Option("--sinks", help="Attention sinks: each head has one extra score without a value.")
    ] = False,
    scales: Annotated[bool, typer.Option("--scales", help="Scales for keys and values.")] = False,
    paged: Annotated[bool, typer.Option("--paged", help="Paged keys and values.")] = False,
    schedule: Annotated[str, typer.Option(help="blocks, or decode for few queries.")] = "blocks",
    target: _Target = "host",
    emit: _Form = "asm",
    dump: _Stage = None,
    lowering: _Lowering = "target",
    mca: _Mca = False,
    output: _Output = None,
) -> None:
    """Write the code for fused attention of any lengths."""
    from tilewright.ops.attention.problem import Attention

    problem = Attention(
        head_dim,
        value_dim,
        dtype,
        kv_dtype=kv_dtype,
        bounded=bounded,
        mask=mask,
        softcap=softcap,
        slopes=slopes,
        sinks=sinks,
        key_scales=scales,
        value_scales=scales,
        paged=paged,
        schedule=schedule,
    )
    machine = _machine(target, lowering)
    if mca:
        _print_estimate(problem, machine)
    else:
        _emit(problem, machine, emit, dump, output)


@emit_app.command("chain")
def emit_chain(
    sizes: Annotated[
        str, typer.Option(help="Input size, then the output size of each layer, such as 1024,4096,1024.")
    ],
    activations: Annotated[str, typer.Option(help="One activation per layer, such as gelu,none.")] = "",
    dtype: Annotated[str, typer.Option(help="f32, f64, bf16 or f16.")] = "f32",
    bias: Annotated[bool, typer.Option(help="Each layer has a bias.")] = True,
    target: _Target = "host",
    emit: _Form = "tile",
    dump: _Stage = None,
    output: _Output = None,
) -> None:
    """Write the code for a chain of linear layers.

    --dump shows how they are fused.
    """
    from tilewright.ops.chain.problem import LinearChain

    try:
        layers = [int(size) for size in sizes.split(",")]
    except ValueError:
        raise InvalidChoice(name="sizes", found=shown(sizes), allowed="integers such as 64,256,64") from None
    words = [None if word == "none" else word for word in activations.split(",")] if activations else []
    _emit(LinearChain(layers, words, dtype, bias=bias), _machine(target), emit, dump, output)


@emit_app.command("contraction")
def emit_contraction(
    subscripts: Annotated[
        str, typer.Argument(help='einsum subscripts of one or two operands, such as "ij,jk->ik".')
    ],
    sizes: Annotated[str, typer.Option(help="Length of each label, such as i=64,j=48,k=32.")],
    dtype: Annotated[str, typer.Option(help="Element type of the operands.")] = "f32",
    out_dtype: _OutDtype = None,
    main: Annotated[
        str | None, typer.Option(help="Function of one operand: identity (default), relu, exp, ...")
    ] = None,
    first: Annotated[str, typer.Option(help="First touch: zero, none or bias.")] = "zero",
    last: Annotated[str, typer.Option(help="Last touch: steps such as relu or clamp:0:6.")] = "",
    target: _Target = "host",
    emit: _Form = "asm",
    dump: Annotated[
        str | None, typer.Option(help="Write the contraction after this pass, or the output of this stage.")
    ] = None,
    output: _Output = None,
) -> None:
    """Write the schedule or the code of a tensor contraction.

    Operands are row-major. --dump names a stage, or one of the passes fuse, identify, block, split, reorder,
    parallelise, each of which rewrites the contraction.
    """
    import tilewright

    lengths = _label_sizes(sizes)
    inputs = subscripts.replace(" ", "").partition("->")[0].split(",")
    for label in "".join(inputs):
        if label.isalpha() and label not in lengths:
            raise InvalidChoice(
                name="sizes", found=shown(sizes), allowed=f"a length for each label, as {label}=64"
            )
    shapes = [tuple(lengths[label] for label in term if label in lengths) for term in inputs]
    problem = tilewright.einsum_contraction(
        subscripts, *shapes, dtype=dtype, out_dtype=out_dtype, main=main, first=first, last=last or None
    )
    _emit(problem, _machine(target), emit, dump, output)


def _label_sizes(text: str) -> dict[str, int]:
    """The length of each label, from text such as i=64,j=48."""
    found = {}
    for word in text.split(","):
        label, _, size = word.strip().partition("=")
        if len(label) != 1 or not size.isdecimal():
            raise InvalidChoice(
                name="sizes", found=shown(text), allowed="a length for each label, as i=64,j=48"
            )
        found[label] = int(size)
    return found


def _machine(target: str, lowering: str = "target") -> Machine:
    """The machine of a target, with the row of a lowering."""
    from tilewright.compiler.target import resolve_target
    from tilewright.machine.isa import Lowering
    from tilewright.spec.arguments import parse_choice

    return resolve_target(target).with_lowering(parse_choice(Lowering, lowering, "lowering"))


def _emit(problem: Problem, machine: Machine, emit: str, dump: str | None, output: Path | None) -> None:
    """One form of a problem's kernel, or the output of one stage, to a file or the terminal."""
    if emit not in _FORMS:
        raise InvalidChoice(name="emit", found=shown(emit), allowed=", ".join(_FORMS))
    content = _FORMS[emit](_compile(problem, machine)) if dump is None else _dump(problem, machine, dump)
    if output is not None and str(output) != "-":
        _write(output, content)
    elif isinstance(content, bytes):
        if _is_terminal():
            raise BinaryToTerminal
        typer.echo(content, nl=False)
    else:
        typer.echo(content.rstrip("\n"))


def _print_estimate(problem: Problem, machine: Machine) -> None:
    """What llvm-mca says of the kernel's loops over depth, as a table."""
    from tilewright.tools.explore.mca import estimate_kernel, estimate_table

    _console().print(estimate_table(estimate_kernel(_compile(problem, machine))))


def _compile(problem: Problem, machine: Machine) -> Any:
    import tilewright

    return tilewright.compile(problem, machine)


def _dump(problem: Problem, machine: Machine, wanted: str) -> str | bytes:
    """The output of one stage: text, or the last one's machine code; of a contraction also of one pass."""
    from tilewright.compiler.pipeline import STAGES, run_stages
    from tilewright.ir.nodes import Program
    from tilewright.ir.text import print_program
    from tilewright.ops.contraction.problem import Contraction
    from tilewright.ops.contraction.schedule.passes import PASSES, schedule

    names = [stage.name for stage in STAGES]
    if isinstance(problem, Contraction):
        passes = [step.name for step in PASSES]
        if wanted in passes:
            return str(schedule(problem, machine, until=wanted))
        names, problem = passes + names, schedule(problem, machine)
    if wanted not in names:
        raise InvalidChoice(name="dump", found=shown(wanted), allowed=", ".join(names))
    output = getattr(run_stages(problem, machine, until=wanted), wanted)
    match output:
        case bytes() | str():
            return output
        case Program():
            return print_program(output)
        case _:
            return str(output)


_LoopTarget = Annotated[
    str | None,
    typer.Option("--target", help="Target as in `emit`; by default the one each function was compiled for."),
]
_LoopStrategy = Annotated[
    str, typer.Option("--strategy", help="auto, intrinsic, tiling, packing or generic.")
]
_L2 = Annotated[str | None, typer.Option("--l2", help="Bytes of L2 cache to block for, such as 1M.")]
_L3 = Annotated[str | None, typer.Option("--l3", help="Bytes of L3 cache to block for.")]
_AssumeReassociation = Annotated[
    bool,
    typer.Option("--assume-reassociation", help="Allow float sums to be reordered, as -ffast-math does."),
]
_Arena = Annotated[
    str | None,
    typer.Option("--arena", help="A function of the program that allocates panels, in place of malloc."),
]
_RemarksFile = Annotated[
    Path | None,
    typer.Option("--remarks", help="Write one line per loop nest here; - is standard error."),
]


@app.command("opt")
def optimise_loops(
    source: Annotated[Path, typer.Argument(help="LLVM IR as text or bitcode; - is standard input.")],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="A file ending in .ll, .bc, .o or .s; - is standard output."),
    ] = Path("-"),
    emit: Annotated[
        str | None, typer.Option(help="ll, bc, o or s, if the file name of the output does not say.")
    ] = None,
    target: _LoopTarget = None,
    strategy: _LoopStrategy = "auto",
    l2: _L2 = None,
    l3: _L3 = None,
    assume_reassociation: _AssumeReassociation = False,
    arena: _Arena = None,
    remarks: _RemarksFile = None,
    dump: Annotated[
        bool,
        typer.Option(
            "--dump", help="Also write the module before and after the replacement: .shaped.ll, .spliced.ll."
        ),
    ] = False,
) -> None:
    """Replace matrix products in LLVM IR by kernels.

    Loop nests that are matrix products are replaced, and LLVM's -O3 passes run. Prints a table of the nests:
    replaced, or why not. Nothing is written if anything fails.
    """
    from tilewright.loops.opt.files import form_of, read_source, write_dumps, write_file
    from tilewright.loops.opt.optimise import optimise

    form = form_of(output, emit)
    if output == Path("-") and not form.is_text and _is_terminal():
        raise BinaryToTerminal
    options = replace(_loop_options(target, strategy, l2, l3, assume_reassociation), arena=arena)
    done = optimise(read_source(source), form, options, name=str(source), dump=dump)
    _write_remarks(remarks, done.remarks)
    if output == Path("-"):
        typer.echo(done.content, nl=False)
    else:
        write_file(output, done.content)
        _print_remarks(done.remarks)
    if dump:
        write_dumps(output, done)


@app.command("cc", context_settings={"allow_interspersed_args": False})
def compile_command(
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND...", help="A command of clang, flang, zig or rustc.")
    ],
    target: _LoopTarget = None,
    strategy: _LoopStrategy = "auto",
    l2: _L2 = None,
    l3: _L3 = None,
    assume_reassociation: _AssumeReassociation = False,
    arena: _Arena = None,
    remarks: _RemarksFile = None,
) -> None:
    """Run a compiler and replace matrix products by kernels.

    For example: tilewright cc -- clang -O3 -march=native -ffast-math prog.c -o prog -lm
    """
    from tilewright.loops.driving.build import build
    from tilewright.loops.driving.units import UnitCompiler

    units = UnitCompiler(replace(_loop_options(target, strategy, l2, l3, assume_reassociation), arena=arena))
    status = build(command, units)
    _write_remarks(remarks, units.remarks)
    raise typer.Exit(status)


def _loop_options(
    target: str | None, strategy: str, l2: str | None, l3: str | None, assume_reassociation: bool
) -> ProductOptions:
    from tilewright.loops.opt.records import ProductOptions
    from tilewright.loops.splice.plan import ProductStrategy
    from tilewright.settings import parse_bytes
    from tilewright.spec.arguments import parse_choice

    return ProductOptions(
        target=None if target is None else _machine(target),
        strategy=parse_choice(ProductStrategy, strategy, "strategy"),
        l2_bytes=None if l2 is None else parse_bytes("--l2", l2),
        l3_bytes=None if l3 is None else parse_bytes("--l3", l3),
        assume_reassociation=assume_reassociation,
    )


def _write_remarks(path: Path | None, remarks: Sequence[Remark]) -> None:
    """A line for each nest."""
    from tilewright.loops.opt.files import STANDARD, write_file

    lines = "".join(f"{remark}\n" for remark in remarks)
    if path == STANDARD:
        typer.echo(lines, err=True, nl=False)
    elif path is not None:
        write_file(path, lines.encode())


def _print_remarks(remarks: Sequence[Remark]) -> None:
    """A row for each nest that multiplies elements, and how many others there are."""
    from tilewright.loops.opt.records import NO_ELEMENTS

    shown = [remark for remark in remarks if remark.text != NO_ELEMENTS]
    rows = [(str(one.where), "replaced" if one.replaced else "refused", one.text) for one in shown]
    others = len(remarks) - len(shown)
    if others:
        rows.append((f"{others} more", "refused", NO_ELEMENTS))
    if rows:
        _print_table(_console(), "nests of loops", ("at", "are", "since, or as"), rows)


def _object_cache() -> ObjectCache | None:
    from tilewright.llvm.object_cache import object_cache

    found = object_cache()
    if found is None:
        typer.echo("the object cache is off (TILEWRIGHT_CACHE=0)")
    return found


@cache_app.command("show")
def cache_show() -> None:
    """Show the directory of the cache and its size."""
    found = _object_cache()
    if found is not None:
        entries = found.entries()
        total = sum(entry.size for entry in entries)
        typer.echo(f"directory  {found.directory}")
        typer.echo(f"objects    {len(entries)}")
        typer.echo(f"size       {total} bytes of at most {found.limit_bytes}")


@cache_app.command("clear")
def cache_clear() -> None:
    """Remove every object."""
    found = _object_cache()
    if found is not None:
        typer.echo(f"removed {found.clear()} objects")


@cache_app.command("prune")
def cache_prune(
    size: Annotated[
        str, typer.Option(help="Size to keep, such as 64M; the least recently used objects go first.")
    ] = "",
) -> None:
    """Remove the least recently used objects.

    What is left is at most --size, by default the limit of the cache.
    """
    from tilewright.settings import parse_bytes

    found = _object_cache()
    if found is not None:
        limit = parse_bytes("--size", size) if size else found.limit_bytes
        typer.echo(f"removed {found.prune(limit)} objects")
