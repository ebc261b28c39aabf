"""`tilewright verify`: batch-reduce kernels against exact integers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tilewright.progress import Steps
from tilewright.tools.cli import terminal
from tilewright.tools.cli.exit_codes import ExitCode
from tilewright.tools.cli.options import AsJson, group
from tilewright.tools.explore import kernels

app = group()


@app.command()
def verify(
    state: Annotated[Path, typer.Option(help="File that keeps the progress; a second run continues.")] = Path(
        ".verify.json"
    ),
    sample: Annotated[int, typer.Option(min=0, help="Only a random sample of this many shapes.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Check batch-reduce kernels against exact integers.

    The grid has 20,480 shapes: m and n up to 64, k of 1, 16, 32, 64, 128. Each is checked with one product
    and with 16, with tight and with padded leading dimensions.
    """
    shapes = kernels.sample_grid(sample, 0) if sample else tuple(kernels.grid())
    done = kernels.Checkpoint.load(state).done
    with Steps("verify", len(shapes), done=done, timed=True) as steps:
        found = kernels.verify_grid(state, shapes, steps.advance)
    failed = found.failed or []
    if as_json:
        names = ("m", "n", "k", "count", "padding")
        wrong = [dict(zip(names, one, strict=True)) for one in failed]
        terminal.print_json({"shapes": found.done, "wrong": wrong})
    else:
        console = terminal.console()
        console.print(f"{found.done} shapes verified, {len(failed)} kernels wrong")
        for m, n, k, count, padding in failed[:20]:
            console.print(f"  wrong: {m}x{n}x{k} count {count} padding {padding}")
    if failed:
        raise typer.Exit(ExitCode.FAILED)
