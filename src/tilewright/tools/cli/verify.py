"""`tilewright verify`: batch-reduce kernels against exact integers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress

from tilewright.tools.cli import terminal
from tilewright.tools.cli.options import group
from tilewright.tools.explore import kernels

app = group()


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
    shapes = kernels.sample_grid(sample, 0) if sample else tuple(kernels.grid())
    console = terminal.console()
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
