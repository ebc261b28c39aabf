"""`tilewright run`: a Python program, unchanged, with NumPy's products on this package."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from types import TracebackType
from typing import Annotated

import typer

from tilewright.installation.public import install
from tilewright.tools.cli.exit_codes import ExitCode
from tilewright.tools.cli.options import group

app = group()

_SETTINGS = {
    "ignore_unknown_options": True,
    "allow_interspersed_args": False,
    "help_option_names": ["--help"],
}


@app.command(context_settings=_SETTINGS)
def run(
    program: Annotated[
        list[str], typer.Argument(help="A script and its arguments, or -m, a module and its arguments.")
    ],
) -> None:
    """Run a Python script or module after `tilewright.install`.

    The program sees the `sys.argv`, `sys.path[0]` and `__main__` that it would have under `python`. Processes
    that it starts begin without the installation: see `tilewright startup`.
    """
    if program == ["-m"]:
        raise typer.BadParameter("-m needs the name of a module")
    install()
    try:
        if program[0] == "-m":
            sys.argv = program[1:]
            sys.path[0] = str(Path.cwd())
            runpy.run_module(program[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = program
            sys.path[0] = str(Path(program[0]).resolve().parent)
            runpy.run_path(program[0], run_name="__main__")
    except SystemExit:
        raise
    except BaseException as error:
        error.__traceback__ = _of_program(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        code = ExitCode.INTERRUPTED if isinstance(error, KeyboardInterrupt) else ExitCode.FAILED
        raise SystemExit(code) from None


def _of_program(traceback: TracebackType | None) -> TracebackType | None:
    """A traceback from the program's first frame on."""
    at = traceback
    while at is not None and at.tb_frame.f_code.co_filename in (__file__, runpy.__file__, "<frozen runpy>"):
        at = at.tb_next
    return at or traceback
