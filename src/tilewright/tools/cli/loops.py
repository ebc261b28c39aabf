"""`tilewright opt` and `tilewright cc`: loops that are matrix products become kernels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tilewright.compiler.target import resolve_target
from tilewright.errors import BinaryToTerminal
from tilewright.loops.driving.build import build
from tilewright.loops.driving.units import UnitCompiler
from tilewright.loops.opt.archives import optimise_archive
from tilewright.loops.opt.files import (
    check_archive_form,
    form_of,
    read_source,
    write_dumps,
    write_file,
    write_remarks,
)
from tilewright.loops.opt.optimise import optimise
from tilewright.loops.opt.records import NO_ELEMENTS, OutputFormat, ProductOptions, Remark
from tilewright.loops.splice.plan import ProductStrategy
from tilewright.loops.splice.threads import ThreadSource
from tilewright.records import dataclass
from tilewright.settings import parse_bytes
from tilewright.spec.arguments import parse_choice
from tilewright.tools.cli import terminal
from tilewright.tools.cli.options import group, with_options
from tilewright_cc.archives import is_archive

optimiser, driver = group(), group()


@dataclass(frozen=True)
class LoopOptions:
    """The options that both commands have."""

    target: Annotated[
        str | None,
        typer.Option(help="Target as in `emit`; by default the one each function was compiled for."),
    ] = None
    strategy: Annotated[str, typer.Option(help="auto, intrinsic, tiling, packing or generic.")] = "auto"
    l2: Annotated[str | None, typer.Option("--l2", help="Bytes of L2 cache to block for, such as 1M.")] = None
    l3: Annotated[str | None, typer.Option("--l3", help="Bytes of L3 cache to block for.")] = None
    assume_reassociation: Annotated[
        bool,
        typer.Option("--assume-reassociation", help="Allow float sums to be reordered, as -ffast-math does."),
    ] = False
    arena: Annotated[
        str | None,
        typer.Option(help="A function of the program that allocates panels, in place of malloc."),
    ] = None
    threads: Annotated[
        str,
        typer.Option(
            help="off; openmp: large products share the threads of the program's OpenMP; own: those of a "
            "pool."
        ),
    ] = "off"
    remarks: Annotated[
        Path | None,
        typer.Option(help="Write one line per loop nest here; - is standard error."),
    ] = None

    @property
    def of_products(self) -> ProductOptions:
        """How products are replaced."""
        return ProductOptions(
            target=None if self.target is None else resolve_target(self.target),
            strategy=parse_choice(ProductStrategy, self.strategy, "strategy"),
            l2_bytes=None if self.l2 is None else parse_bytes("--l2", self.l2),
            l3_bytes=None if self.l3 is None else parse_bytes("--l3", self.l3),
            assume_reassociation=self.assume_reassociation,
            arena=self.arena,
            threads=parse_choice(ThreadSource, self.threads, "threads"),
        )


@optimiser.command("opt")
@with_options("loops", LoopOptions)
def optimise_loops(
    source: Annotated[
        Path, typer.Argument(help="LLVM IR as text or bitcode, or an archive of it; - is standard input.")
    ],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="A file ending in .ll, .bc, .o, .s or .a; - is standard output."),
    ] = Path("-"),
    emit: Annotated[
        str | None, typer.Option(help="ll, bc, o or s, if the file name of the output does not say.")
    ] = None,
    *,
    loops: LoopOptions,
    dump: Annotated[
        bool,
        typer.Option(
            "--dump", help="Also write the module before and after the replacement: .shaped.ll, .spliced.ll."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON; needs -o FILE.")] = False,
) -> None:
    """Replace matrix products in LLVM IR by kernels.

    Loop nests that are matrix products are replaced, and LLVM's -O3 passes run. Prints a table of the nests:
    replaced, or why not. Nothing is written if anything fails.
    """
    if as_json and output == Path("-"):
        raise typer.BadParameter("needs -o FILE: standard output is taken by the module", param_hint="--json")
    content = read_source(source)
    archived = is_archive(content)
    if archived:
        check_archive_form(output, emit)
        if dump:
            raise typer.BadParameter("takes a module, not an archive of several", param_hint="--dump")
    form = OutputFormat.OBJECT if archived else form_of(output, emit)
    if output == Path("-") and not form.is_text and terminal.is_terminal():
        raise BinaryToTerminal
    options = loops.of_products
    if archived:
        done = optimise_archive(content, options, name=str(source), forks=True)
    else:
        done = optimise(content, form, options, name=str(source), dump=dump, forks=True)
    write_remarks(loops.remarks, done.remarks)
    if output == Path("-"):
        typer.echo(done.content, nl=False)
    else:
        write_file(output, done.content)
        _print_remarks(done.remarks, as_json=as_json)
    if dump:
        write_dumps(output, done)


@driver.command("cc", context_settings={"allow_interspersed_args": False})
@with_options("loops", LoopOptions)
def compile_command(
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND...", help="A command of clang, flang, zig or rustc.")
    ],
    *,
    loops: LoopOptions,
) -> None:
    """Run a compiler and replace matrix products by kernels.

    For example: tilewright cc -- clang -O3 -march=native -ffast-math prog.c -o prog -lm
    """
    options = loops.of_products
    units = UnitCompiler(options, every_nest=loops.remarks is not None, forks=True)
    status = build(command, units)
    units.write_remarks(loops.remarks)
    raise typer.Exit(status)


def _print_remarks(remarks: Sequence[Remark], *, as_json: bool) -> None:
    """A row for each nest that multiplies elements, and how many others there are; all of them as JSON."""
    if as_json:
        found = [{"at": str(one.where), "replaced": one.replaced, "text": one.text} for one in remarks]
        terminal.print_json(found)
        return
    shown = [remark for remark in remarks if remark.text != NO_ELEMENTS]
    rows = [(str(one.where), "replaced" if one.replaced else "refused", one.text) for one in shown]
    others = len(remarks) - len(shown)
    if others:
        rows.append((f"{others} more", "refused", NO_ELEMENTS))
    if rows:
        terminal.print_table(terminal.console(), "nests of loops", ("at", "are", "since, or as"), rows)
