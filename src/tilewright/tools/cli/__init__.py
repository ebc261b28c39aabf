"""The command line. A command's file is imported when the command is run."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from tilewright import __version__
from tilewright.errors import TilewrightError
from tilewright.tools.cli.exit_codes import ExitCode
from tilewright.tools.cli.options import MARKUP, with_metavars

#: Exceptions that Typer handles: its own, of which `ClickException` has no public name, and `OSError`, where
#: standard output is closed.
_HANDLED: tuple[type[BaseException], ...] = (
    *(typer.Exit, typer.Abort, OSError),
    *(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"),
)

#: What a person is asked to do about an error that is none of theirs.
_REPORT = (
    "tilewright: this is an error of tilewright itself; please report it, with what is above and the output "
    "of: tilewright info --config"
)

#: Command: the Typer app that holds it, and the line about it in `tilewright --help`.
COMMANDS = {
    "info": ("tilewright.tools.cli.info:app", "Show this machine, its settings and its measured peak."),
    "bench": ("tilewright.tools.cli.bench:app", "Measure speed against peers and the peak."),
    "explore": (
        "tilewright.tools.cli.explore:app",
        "Write an HTML page about a kernel or a model: blocking, tiles, code, cycles.",
    ),
    "emit": ("tilewright.tools.cli.emit:app", "Write generated code and kernel libraries."),
    "run": (
        "tilewright.tools.cli.run:app",
        "Run a Python script or module after `tilewright.install`.",
    ),
    "startup": (
        "tilewright.tools.cli.startup:app",
        "Let TILEWRIGHT_INSTALL=1 turn on `tilewright.install` in this environment.",
    ),
    "cc": ("tilewright.tools.cli.loops:driver", "Run a compiler and replace matrix products by kernels."),
    "opt": ("tilewright.tools.cli.loops:optimiser", "Replace matrix products in LLVM IR by kernels."),
    "infer": ("tilewright.tools.cli.infer:app", "Run an ONNX model on arrays of .npy files."),
    "tune": (
        "tilewright.tools.cli.tune:app",
        "Measure constants of the models on this CPU and keep those that are faster.",
    ),
    "cache": ("tilewright.tools.cli.cache:app", "The object cache on disk: show, clear, prune."),
    "verify": ("tilewright.tools.cli.verify:app", "Check batch-reduce kernels against exact integers."),
}


class DeferredCommands(MutableMapping[str, Any]):
    """The commands by name. Looking one up imports it; listing their names does not."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            module, _, attribute = COMMANDS[name][0].partition(":")
            self._loaded[name] = get_command(with_metavars(getattr(import_module(module), attribute)))
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

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Commands and options that begin so; no command is imported for it."""
        deferred = self.commands
        self.commands = {name: TyperCommand(name, help=summary) for name, (_, summary) in COMMANDS.items()}
        try:
            return super().shell_complete(ctx, incomplete)
        finally:
            self.commands = deferred

    def invoke(self, ctx: Any) -> Any:
        """Run the command; `exit_codes` says how errors end it."""
        try:
            return super().invoke(ctx)
        except TilewrightError as error:
            if ctx.params.get("debug"):
                raise
            typer.echo(f"tilewright: {error}", err=True)
            raise typer.Exit(ExitCode.ERROR) from None
        except KeyboardInterrupt:
            typer.echo("", err=True)
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        except _HANDLED:
            raise
        except Exception:
            traceback.print_exc()
            typer.echo(_REPORT, err=True)
            raise typer.Exit(ExitCode.BUG) from None


app = typer.Typer(
    name="tilewright",
    cls=DeferredGroup,
    help="A tensor compiler for CPUs: inspect the machine, measure speed, read generated code.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=MARKUP,
)


def main() -> None:
    """Entry point of the `tilewright` script, and of `python -m tilewright`."""
    app(prog_name="tilewright")  # shells complete it by this name


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
