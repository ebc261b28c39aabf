"""Records of options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer
from typer.testing import CliRunner

from tilewright.records import dataclass
from tilewright.tools.cli.options import group, with_metavars, with_options


@dataclass(frozen=True)
class Size:
    """Two options."""

    width: Annotated[int, typer.Option(help="Columns.")] = 3
    deep: Annotated[bool, typer.Option("--deep", help="Also depth.")] = False


app = group()


@app.command()
@with_options("size", Size)
def show(name: str, *, size: Size, last: Annotated[str, typer.Option(help="After them.")] = "z") -> None:
    """Print what was given."""
    typer.echo(f"{name} {size} {last}")


def test_fields_of_a_record_are_options_in_its_place() -> None:
    run = CliRunner()
    done = run.invoke(with_metavars(app), ["a", "--width", "5", "--deep"])
    assert done.output == "a Size(width=5, deep=True) z\n"
    assert run.invoke(app, ["b"]).output == "b Size(width=3, deep=False) z\n"
    shown = run.invoke(app, ["--help"]).output
    assert shown.index("--width") < shown.index("--deep") < shown.index("--last")
    assert run.invoke(app, ["b", "--size", "1"]).exit_code == 2
