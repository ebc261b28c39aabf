"""`tilewright opt` and `tilewright cc`: loops that are matrix products become kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
from tilewright.settings import parse_bytes
from tilewright.spec.arguments import parse_choice
from tilewright.tools.cli import terminal
from tilewright.tools.cli.options import group
from tilewright_cc.archives import is_archive

optimiser, driver = group(), group()

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
_Threads = Annotated[
    str,
    typer.Option(
        "--threads",
        help="off; openmp: large products share the threads of the program's OpenMP; own: those of a pool.",
    ),
]
_RemarksFile = Annotated[
    Path | None,
    typer.Option("--remarks", help="Write one line per loop nest here; - is standard error."),
]


@optimiser.command("opt")
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
    target: _LoopTarget = None,
    strategy: _LoopStrategy = "auto",
    l2: _L2 = None,
    l3: _L3 = None,
    assume_reassociation: _AssumeReassociation = False,
    arena: _Arena = None,
    threads: _Threads = "off",
    remarks: _RemarksFile = None,
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
    options = replace(
        _loop_options(target, strategy, l2, l3, assume_reassociation),
        arena=arena,
        threads=parse_choice(ThreadSource, threads, "threads"),
    )
    if archived:
        done = optimise_archive(content, options, name=str(source), forks=True)
    else:
        done = optimise(content, form, options, name=str(source), dump=dump, forks=True)
    write_remarks(remarks, done.remarks)
    if output == Path("-"):
        typer.echo(done.content, nl=False)
    else:
        write_file(output, done.content)
        _print_remarks(done.remarks, as_json=as_json)
    if dump:
        write_dumps(output, done)


@driver.command("cc", context_settings={"allow_interspersed_args": False})
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
    threads: _Threads = "off",
    remarks: _RemarksFile = None,
) -> None:
    """Run a compiler and replace matrix products by kernels.

    For example: tilewright cc -- clang -O3 -march=native -ffast-math prog.c -o prog -lm
    """
    options = replace(
        _loop_options(target, strategy, l2, l3, assume_reassociation),
        arena=arena,
        threads=parse_choice(ThreadSource, threads, "threads"),
    )
    units = UnitCompiler(options, every_nest=remarks is not None, forks=True)
    status = build(command, units)
    units.write_remarks(remarks)
    raise typer.Exit(status)


def _loop_options(
    target: str | None, strategy: str, l2: str | None, l3: str | None, assume_reassociation: bool
) -> ProductOptions:
    return ProductOptions(
        target=None if target is None else resolve_target(target),
        strategy=parse_choice(ProductStrategy, strategy, "strategy"),
        l2_bytes=None if l2 is None else parse_bytes("--l2", l2),
        l3_bytes=None if l3 is None else parse_bytes("--l3", l3),
        assume_reassociation=assume_reassociation,
    )


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
