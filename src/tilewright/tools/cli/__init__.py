"""The command line. A command's file is imported when the command is run."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from tilewright import __version__
from tilewright.errors import TilewrightError
from tilewright.tools.cli.options import MARKUP

#: Exit status of every error that has a class in `errors`.
ERROR_STATUS = 2

#: Command: the Typer app that holds it, and the line about it in `tilewright --help`.
COMMANDS = {
    "info": ("tilewright.tools.cli.info:app", "Show this machine, its settings and its measured peak."),
    "verify": ("tilewright.tools.cli.verify:app", "Check batch-reduce kernels against exact integers."),
    "opt": ("tilewright.tools.cli.loops:optimiser", "Replace matrix products in LLVM IR by kernels."),
    "cc": ("tilewright.tools.cli.loops:driver", "Run a compiler and replace matrix products by kernels."),
    "bench": ("tilewright.tools.cli.bench:app", "Measure speed against peers and the peak."),
    "run": (
        "tilewright.tools.cli.run:app",
        "Run a Python script or module after `tilewright.install`.",
    ),
    "startup": (
        "tilewright.tools.cli.startup:app",
        "Let TILEWRIGHT_INSTALL=1 install in every program of this environment.",
    ),
    "infer": ("tilewright.tools.cli.infer:app", "Run an ONNX model on arrays of .npy files."),
    "tune": (
        "tilewright.tools.cli.tune:app",
        "Measure constants of the models on this CPU and keep those that are faster.",
    ),
    "emit": ("tilewright.tools.cli.emit:app", "Write generated code and kernel libraries."),
    "explore": (
        "tilewright.tools.cli.explore:app",
        "Write an HTML page about a kernel or a model: blocking, tiles, code, cycles.",
    ),
    "cache": ("tilewright.tools.cli.cache:app", "The object cache on disk: show, clear, prune."),
}


class DeferredCommands(MutableMapping[str, Any]):
    """The commands by name. Looking one up imports it; listing their names does not."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            module, _, attribute = COMMANDS[name][0].partition(":")
            self._loaded[name] = get_command(getattr(import_module(module), attribute))
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class DeferredGroup(TyperGroup):
    """The top of the command line. Errors are one line on standard error; --debug shows the traceback."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = DeferredCommands()

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - as Typer calls it
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])

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
    cls=DeferredGroup,
    help="A tensor compiler for CPUs: inspect the machine, measure speed, read generated code.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=MARKUP,
)


def main() -> None:
    """Entry point of the `tilewright` script."""
    app()


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tilewright {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Options of every command; `DeferredGroup` reads --debug."""
