"""`tilewright startup`: lets TILEWRIGHT_INSTALL=1 install in every program of an environment."""

from __future__ import annotations

import sys
import sysconfig
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tilewright.errors import OutputNotWritable
from tilewright.installation import at_startup
from tilewright.tools.cli import terminal
from tilewright.tools.cli.options import AsJson, group

app = group()

#: Python's `site` module executes the lines of such files that begin with "import" when it starts.
FILE_NAME = "tilewright_startup.pth"

#: One line, which does nothing at all without the variable, and nothing where the package is gone.
_LINE = (
    "import os; os.environ.get('TILEWRIGHT_INSTALL', '').lower() in ('1', 'true', 'yes', 'on') "
    "and os.path.exists({hook!r}) "
    "and __import__('runpy').run_path({hook!r}, run_name='tilewright_at_startup')\n"
)


class Action(StrEnum):
    """What to do about the file."""

    SHOW = "show"
    ENABLE = "enable"
    DISABLE = "disable"


def line() -> str:
    """The content of the file."""
    return _LINE.format(hook=str(Path(at_startup.__file__).resolve()))


@app.command()
def startup(
    action: Annotated[Action, typer.Argument(help="What to do.")] = Action.SHOW,
    directory: Annotated[
        Path | None, typer.Option(help="Where the file is; site-packages of this environment by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Let TILEWRIGHT_INSTALL=1 turn on `tilewright.install` in this environment.

    `enable` writes one file, tilewright_startup.pth, into site-packages. Python reads it whenever it starts;
    without the variable it does nothing, with it `tilewright.install` runs after the first import of NumPy.
    `disable` removes the file.
    """
    file = (directory or Path(sysconfig.get_path("purelib"))) / FILE_NAME
    try:
        if action is Action.ENABLE:
            file.write_text(line(), encoding="utf-8")
        elif action is Action.DISABLE:
            file.unlink(missing_ok=True)
        found = file.read_text(encoding="utf-8") if file.exists() else None
    except OSError as error:
        raise OutputNotWritable(path=str(file), reason=error.strerror or str(error)) from error
    if as_json:
        state = "disabled" if found is None else "enabled" if found == line() else "enabled by another"
        terminal.print_json({"file": str(file), "environment": sys.prefix, "state": state})
        return
    console = terminal.console()
    if found is None:
        console.print(f"not enabled for {sys.prefix}: {file} does not exist")
    elif found != line():
        console.print(f"enabled by another installation of the package: {file}")
    else:
        console.print(f"enabled for {sys.prefix}, in processes with TILEWRIGHT_INSTALL=1: {file}")
