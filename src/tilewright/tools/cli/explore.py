"""`tilewright explore`: a page about a kernel or a model."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated, Any

import typer

from tilewright.aot.variants import split_targets
from tilewright.compiler.operation import Problem
from tilewright.tools.cli import terminal
from tilewright.tools.cli.emit import EmitGroup, contraction_of, problem_command
from tilewright.tools.cli.options import OutDtype, Precision, group
from tilewright.tools.explore.page.build import Exploration
from tilewright.tools.explore.page.graphs import explore_file
from tilewright.tools.explore.page.kernels import explore_problem, parse_peers, parse_sizes

_Targets = Annotated[
    str,
    typer.Option("--target", help="Comma-separated list of host, names of targets, or triple:cpu:+features."),
]
_Sizes = Annotated[
    str, typer.Option("--draw", help="Lengths of open axes for the call that is drawn, as m=512,keys=1024.")
]
_Output = Annotated[Path, typer.Option("-o", "--output", help="File to write.")]
_Open = Annotated[bool, typer.Option("--open", help="Open the page in the browser.")]
_Measure = Annotated[
    bool, typer.Option("--measure", help="Measure the call that is drawn on this host (seconds).")
]
_Peers = Annotated[
    str,
    typer.Option(
        "--peers",
        help="With --measure: numpy,torch or others, or none. [default: those installed]",
    ),
]

#: The options that every command of an operation has beside those of its problem.
_COMMON = {
    "target": (_Targets, "host"),
    "draw": (_Sizes, ""),
    "measure": (_Measure, False),
    "peers": (_Peers, ""),
    "output": (_Output, Path("kernel.html")),
    "open_page": (_Open, False),
}


class ExploreGroup(EmitGroup):
    """The commands of this file, and one for each operation, with the options of `emit` for its problem."""

    @staticmethod
    def of_operation(operation: str) -> Any:
        """The command of an operation."""
        return problem_command(operation, _COMMON, _explore, "Write a page about the kernel for ")


app = group("Write an HTML page about a kernel or a model: blocking, tiles, code, cycles.", cls=ExploreGroup)


@app.callback()
def explore_options() -> None:
    """Write an HTML page about a kernel or a model: blocking, tiles, code, cycles."""


def _explore(
    problem: Problem, target: str, draw: str, measure: bool, peers: str, output: Path, open_page: bool
) -> None:
    """The page of a problem on some targets."""
    terminal.check_writable(output)
    page = explore_problem(
        problem, split_targets(target), parse_sizes(draw), measure=measure, peers=parse_peers(peers)
    )
    _write(page, output, open_page)


def _write(page: Exploration, output: Path, open_page: bool) -> None:
    """The file, and the browser where it is wanted."""
    text = page.html
    terminal.write(output, text)
    typer.echo(f"{output}: {len(text.encode()) / 1024:,.0f} KiB, {page.title}")
    if open_page:
        webbrowser.open(output.resolve().as_uri())


@app.command("contraction")
def explore_contraction(
    subscripts: Annotated[
        str, typer.Argument(help='einsum subscripts of one or two operands, such as "ij,jk->ik".')
    ],
    sizes: Annotated[str, typer.Option(help="Length of each label, such as i=64,j=48,k=32.")],
    dtype: Annotated[str, typer.Option(help="Element type of the operands.")] = "f32",
    out_dtype: OutDtype = None,
    target: _Targets = "host",
    measure: _Measure = False,
    peers: _Peers = "",
    output: _Output = Path("kernel.html"),
    open_page: _Open = False,
) -> None:
    """Write the page of a tensor contraction of row-major operands."""
    _explore(
        contraction_of(subscripts, sizes, dtype, out_dtype, {}),
        target,
        draw="",
        measure=measure,
        peers=peers,
        output=output,
        open_page=open_page,
    )


@app.command("model")
def explore_model(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An ONNX model or a saved graph.")],
    sizes: Annotated[
        str, typer.Option(help="Values of the named sizes of its inputs, as batch=8,n=128.")
    ] = "",
    precision: Precision = "f32",
    target: _Targets = "host",
    output: _Output = Path("model.html"),
    open_page: _Open = False,
) -> None:
    """Write the page of a model: its nodes, the memory of a run, and the kernels of its products."""
    terminal.check_writable(output)
    page = explore_file(file, parse_sizes(sizes), split_targets(target), precision)
    _write(page, output, open_page)
