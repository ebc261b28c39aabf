"""`tilewright emit`: generated code and kernel libraries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from enum import Enum
from inspect import Parameter, Signature, getdoc, signature
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from tilewright import __version__, compile, einsum_contraction
from tilewright.aot.blas.build import build_blas
from tilewright.aot.blas.files import blas_files
from tilewright.aot.build import build_library
from tilewright.aot.files import library_files
from tilewright.aot.form import LibraryForm
from tilewright.aot.spec_file import read_spec
from tilewright.aot.variants import split_targets
from tilewright.compiler.operation import Op, Problem
from tilewright.compiler.pipeline import STAGES, run_stages
from tilewright.compiler.target import resolve_target
from tilewright.errors import BinaryToTerminal, InvalidChoice, OutputNotWritable, shown
from tilewright.ir.nodes import Program
from tilewright.ir.text import print_program
from tilewright.machine.isa import Lowering
from tilewright.machine.machine import Machine
from tilewright.ops.contraction.problem import Contraction
from tilewright.ops.contraction.schedule.passes import PASSES, schedule
from tilewright.spec.arguments import parse_choice
from tilewright.spec.dtype import DType, parse_dtype
from tilewright.spec.operations import OPS
from tilewright.tools.cli import terminal
from tilewright.tools.cli.options import OutDtype, complete_target, group, with_metavars
from tilewright.tools.explore.mca import estimate_kernel, estimate_table


class EmitGroup(TyperGroup):
    """The commands of this file, and one for each operation of `OPS`, made from the record."""

    @staticmethod
    def of_operation(operation: str) -> Any:
        """The command of an operation."""
        return command_of(operation)

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands."""
        first = {OPS[name].problem: name for name in reversed(OPS.names)}  # of several for one problem
        return list(dict.fromkeys((*super().list_commands(ctx), *reversed(first.values()))))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of an operation is made when it is asked for."""
        found = super().get_command(ctx, cmd_name)
        return found if found is not None or cmd_name not in OPS.names else self.of_operation(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """An unknown name is compared with all of them, for a suggestion."""
        if args and self.get_command(ctx, args[0]) is None:
            for name in self.list_commands(ctx):
                self.commands[name] = self.get_command(ctx, name)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands, each with the whole first line of its help."""
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        lines = [(name, (one.help or "").partition("\n")[0]) for name, one in commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(lines)


app = group("Write generated code and kernel libraries.", cls=EmitGroup)

_Form = Annotated[
    str,
    typer.Option(
        help="Form to write: tile, llvm, asm, obj or header.",
        autocompletion=lambda incomplete: [form for form in _FORMS if form.startswith(incomplete)],
    ),
]
_Stage = Annotated[str | None, typer.Option(help="Write the output of this stage instead.")]
_Output = Annotated[
    Path | None, typer.Option("-o", "--output", help="File to write; - or none: standard output.")
]
_Target = Annotated[
    str,
    typer.Option(help="host, the name of a target, or triple:cpu:+features.", autocompletion=complete_target),
]
_Lowering = Annotated[
    str, typer.Option(help="Lowering of tile products: target, or generic (llvm.matrix.multiply).")
]
_Mca = Annotated[
    bool, typer.Option("--mca", help="Print the llvm-mca estimate for the loops over depth instead.")
]

_McaJson = Annotated[bool, typer.Option("--json", help="With --mca: print JSON instead of a table.")]

#: What --emit writes: the property of a kernel for each word.
_FORMS: dict[str, Callable[[Any], str | bytes]] = {
    "tile": lambda kernel: kernel.tile_ir,
    "llvm": lambda kernel: kernel.llvm_ir,
    "asm": lambda kernel: kernel.assembly,
    "obj": lambda kernel: kernel.object_code,
    "header": lambda kernel: kernel.header,
}


_Spec = Annotated[Path | None, typer.Option(help="With --library: a TOML file of [[kernel]] tables.")]
_Targets = Annotated[
    str,
    typer.Option(
        "--target",
        help="Comma-separated list of targets of one architecture.",
        autocompletion=complete_target,
    ),
]
_LibraryForm = Annotated[
    str, typer.Option("--form", help="archive, shared, or objects: one per kernel and target.")
]
_Blas = Annotated[bool, typer.Option("--blas", help="With --library: level-3 BLAS under its standard names.")]
_Behind = Annotated[
    Path | None,
    typer.Option(help="With --blas: a BLAS that the shared library loads, for names that it does not have."),
]


@app.callback(invoke_without_command=True)
def emit_options(
    context: typer.Context,
    library: Annotated[
        Path | None, typer.Option(help="Write a library of many kernels and targets into this folder.")
    ] = None,
    spec: _Spec = None,
    blas: _Blas = False,
    behind: _Behind = None,
    target: _Targets = "host",
    form: _LibraryForm = "archive",
) -> None:
    """Options of `emit --library DIR` with `--spec FILE` or `--blas`: as `emit library` and `emit blas`."""
    names = ("library", "spec", "blas", "behind", "target", "form")
    sources = {name: context.get_parameter_source(name) for name in names}
    given = {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}
    if context.invoked_subcommand is not None:
        if given:
            raise typer.BadParameter(f"options of {context.invoked_subcommand} stand behind it")
    elif library is None or (spec is None) is not blas:
        raise typer.BadParameter("needs a command, or --library DIR and either --spec FILE or --blas")
    elif spec is not None:
        if behind is not None:
            raise typer.BadParameter("--behind is of --blas")
        emit_library(library, spec, target, form)
    else:
        emit_blas(library, target, form if "form" in given else None, behind)


@app.command("library")
def emit_library(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Output folder; created if missing.")],
    spec: Annotated[Path, typer.Option(help="A TOML file of [[kernel]] tables.")],
    target: _Targets = "host",
    form: _LibraryForm = "archive",
) -> None:
    """Write a library of kernels for C and C++.

    The library holds machine code for each target, a header, and a resolver that picks the variant for the
    CPU at run time.
    """
    wanted = parse_choice(LibraryForm, form, "form")
    library = build_library(read_spec(spec), [resolve_target(name) for name in split_targets(target)])
    files = library_files(library, wanted, __version__)
    _write_files(folder, files)
    targets = ", ".join(variant.target for variant in library.variants.ordered)
    typer.echo(f"{folder}: {len(files)} files, {len(library.functions)} kernels; best first: {targets}")


@app.command("blas")
def emit_blas(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Output folder; created if missing.")],
    target: _Targets = "host",
    form: Annotated[
        str | None, typer.Option(help="archive, shared or objects; by default archive and shared.")
    ] = None,
    behind: _Behind = None,
) -> None:
    """Write level-3 BLAS under its standard names, for Fortran and C.

    The library holds machine code for each target, and selects by the CPU at run time. No compiler is needed;
    the shared library is linked by LLD of the ziglang package or by the system's linker.
    """
    both = (LibraryForm.SHARED, LibraryForm.ARCHIVE)
    forms = both if form is None else (parse_choice(LibraryForm, form, "form"),)
    library = build_blas([resolve_target(name) for name in split_targets(target)])
    files = blas_files(library, forms, __version__, behind)
    _write_files(folder, files)
    targets = ", ".join(variant.target for variant in library.variants.ordered)
    typer.echo(f"{folder}: {len(files)} files, {len(library.exports)} functions; best first: {targets}")


def _write_files(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files into a folder, which is created if it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputNotWritable(path=str(folder), reason=error.strerror or str(error)) from error
    for name, content in files.items():
        terminal.write(folder / name, content)


@app.command("contraction")
def emit_contraction(
    subscripts: Annotated[
        str, typer.Argument(help='einsum subscripts of one or two operands, such as "ij,jk->ik".')
    ],
    sizes: Annotated[str, typer.Option(help="Length of each label, such as i=64,j=48,k=32.")],
    dtype: Annotated[str, typer.Option(help="Element type of the operands.")] = "f32",
    out_dtype: OutDtype = None,
    main: Annotated[
        str | None, typer.Option(help="Function of one operand: identity (default), relu, exp, ...")
    ] = None,
    first: Annotated[str, typer.Option(help="First touch: zero, none or bias.")] = "zero",
    last: Annotated[str, typer.Option(help="Last touch: steps such as relu or clamp:0:6.")] = "",
    target: _Target = "host",
    emit: _Form = "asm",
    dump: Annotated[
        str | None, typer.Option(help="Write the contraction after this pass, or the output of this stage.")
    ] = None,
    output: _Output = None,
) -> None:
    """Write the schedule or the code of a tensor contraction.

    Operands are row-major. --dump names a stage, or one of the passes fuse, identify, block, split, reorder,
    parallelise, each of which rewrites the contraction.
    """
    words: dict[str, Any] = {"main": main, "first": first, "last": last or None}
    problem = contraction_of(subscripts, sizes, dtype, out_dtype, words)
    _emit(problem, _machine(target), emit, dump, output)


def contraction_of(
    subscripts: str, sizes: str, dtype: str, out_dtype: str | None, words: Mapping[str, Any]
) -> Contraction:
    """The contraction of row-major operands, from subscripts and the length of each label as text."""
    lengths = _label_sizes(sizes)
    inputs = subscripts.replace(" ", "").partition("->")[0].split(",")
    for label in "".join(inputs):
        if label.isalpha() and label not in lengths:
            raise InvalidChoice(
                name="sizes", found=shown(sizes), allowed=f"a length for each label, as {label}=64"
            )
    shapes = [tuple(lengths[label] for label in term if label in lengths) for term in inputs]
    return einsum_contraction(subscripts, *shapes, dtype=dtype, out_dtype=out_dtype, **words)


def _label_sizes(text: str) -> dict[str, int]:
    """The length of each label, from text such as i=64,j=48."""
    found = {}
    for word in text.split(","):
        label, _, size = word.strip().partition("=")
        if len(label) != 1 or not size.isdecimal():
            raise InvalidChoice(
                name="sizes", found=shown(text), allowed="a length for each label, as i=64,j=48"
            )
        found[label] = int(size)
    return found


#: The parameters that every generated command has beside those of its problem.
_COMMON = {
    "target": (_Target, "host"),
    "emit": (_Form, "asm"),
    "dump": (_Stage, None),
    "lowering": (_Lowering, "target"),
    "mca": (_Mca, False),
    "json": (_McaJson, False),
    "output": (_Output, None),
}


def command_of(operation: str) -> Any:
    """The command of `emit` for an operation."""

    def run(
        problem: Problem,
        target: str,
        emit: str,
        dump: str | None,
        lowering: str,
        mca: bool,
        json: bool,
        output: Path | None,
    ) -> None:
        machine = _machine(target, lowering)
        if json and not mca:
            raise typer.BadParameter("is for --mca", param_hint="--json")
        if mca:
            _print_estimate(problem, machine, as_json=json)
        else:
            _emit(problem, machine, emit, dump, output)

    return problem_command(operation, _COMMON | {"emit": (_Form, OPS[operation].form)}, run)


#: How the help of an operation's command begins where its docstring says what `emit` does.
_WRITES = "Write the code for "


def problem_command(
    operation: str,
    options: Mapping[str, tuple[Any, Any]],
    act: Callable[..., None],
    writes: str = _WRITES,
) -> Any:
    """A command on a problem of an operation: its options are the parameters that build the problem.

    Parameters
    ----------
    options : further options of the command: annotation and default by name.
    act : called with the problem, and these options by name.
    writes : what the command does with the operation, as its help begins.
    """
    op: Op = OPS[operation]
    parameters = signature(op.build).parameters
    texts = parameter_texts(op.build)

    def run(**given: Any) -> None:
        further = {name: given.pop(name) for name in options}
        problem = op.build(**{name: _value(parameters[name], text) for name, text in given.items()})
        act(problem, **further)

    said = (getdoc(op.build) or operation).partition("\n")[0]
    what = said.removeprefix(_WRITES) if said.startswith(_WRITES) else f"{operation}: {said}"
    run.__doc__ = f"{writes}{what}"
    own = [_declared(one, texts.get(one.name, "")) for one in parameters.values()]
    common = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in options.items()
    ]
    run.__annotations__ = {one.name: one.annotation for one in (*own, *common)}
    vars(run)["__signature__"] = Signature([*own, *common])
    single = group()
    single.command(operation)(run)
    return get_command(with_metavars(single))


def _declared(parameter: Parameter, text: str) -> Parameter:
    """A parameter of a problem as Typer reads it; a required one that is no number is an argument."""
    kind, default = str(parameter.annotation), parameter.default
    required = default is Parameter.empty
    if isinstance(default, Enum):
        default = default.value
    elif isinstance(default, DType):
        default = default.name
    known: Any = {"bool": bool, "int": int, "int | None": int | None}.get(kind, str | None)
    if required and known is not int and "Sequence" not in kind:
        option: Any = typer.Argument(help=text)
    else:
        flag = (f"--{parameter.name.replace('_', '-')}",) if known is bool and not default else ()
        option = typer.Option(*flag, help=text)
    known = str if required and known not in (int, bool) else known
    if default == ():
        default = ""
    return Parameter(
        parameter.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[known, option]
    )


def _value(parameter: Parameter, given: Any) -> Any:
    """The value of an option: lists are separated by commas, and "none" in one stands for None."""
    kind = str(parameter.annotation)
    if kind == "DType":
        return parse_dtype(given)
    if "Sequence" not in kind:
        return given
    parts = [part.strip() for part in given.split(",")] if given else []
    if kind != "Sequence[int]":
        return [None if part == "none" else part for part in parts]
    try:
        return [int(part) for part in parts]
    except ValueError:
        required = "integers such as 64,256,64"
        raise InvalidChoice(name=parameter.name, found=shown(given), allowed=required) from None


def parameter_texts(function: Callable[..., Any]) -> dict[str, str]:
    """What a docstring in NumPy's form says of each parameter.

    >>> parameter_texts(Contraction)["main"].partition(",")[0]
    '"gemm"'
    """
    found: dict[str, str] = {}
    _, _, section = (getdoc(function) or "").partition("Parameters\n----------\n")
    names: list[str] = []
    for line in section.partition("\n\n")[0].splitlines():
        head, colon, text = line.partition(" : ")
        if colon and not line.startswith(" "):
            names = head.split(", ")
            found |= dict.fromkeys(names, text)
        else:
            found |= {name: f"{found[name]} {line.strip()}" for name in names}
    return {name: _sentence(text) for name, text in found.items()}


def _sentence(text: str) -> str:
    """A text with a capital letter, unless it begins with a value as "auto, tiling or packing" does."""
    first = text.partition(" ")[0]
    is_value = first.endswith(",") or any(letter.isdigit() for letter in first)
    return text if is_value else text[:1].upper() + text[1:]


def _machine(target: str, lowering: str = "target") -> Machine:
    """The machine of a target, with the row of a lowering."""
    return resolve_target(target).with_lowering(parse_choice(Lowering, lowering, "lowering"))


def _emit(problem: Problem, machine: Machine, emit: str, dump: str | None, output: Path | None) -> None:
    """One form of a problem's kernel, or the output of one stage, to a file or the terminal."""
    if emit not in _FORMS:
        raise InvalidChoice(name="emit", found=shown(emit), allowed=", ".join(_FORMS))
    content = _FORMS[emit](_compile(problem, machine)) if dump is None else _dump(problem, machine, dump)
    if output is not None and str(output) != "-":
        terminal.write(output, content)
    elif isinstance(content, bytes):
        if terminal.is_terminal():
            raise BinaryToTerminal
        typer.echo(content, nl=False)
    else:
        typer.echo(content.rstrip("\n"))


def _print_estimate(problem: Problem, machine: Machine, *, as_json: bool) -> None:
    """What llvm-mca says of the kernel's loops over depth, as a table or as JSON."""
    if as_json:
        terminal.print_json(asdict(estimate_kernel(_compile(problem, machine))))
        return
    terminal.console().print(estimate_table(estimate_kernel(_compile(problem, machine))))


def _compile(problem: Problem, machine: Machine) -> Any:
    return compile(problem, machine)


def _dump(problem: Problem, machine: Machine, wanted: str) -> str | bytes:
    """The output of one stage: text, or the last one's machine code; of a contraction also of one pass."""
    names = [stage.name for stage in STAGES]
    if isinstance(problem, Contraction):
        passes = [step.name for step in PASSES]
        if wanted in passes:
            return str(schedule(problem, machine, until=wanted))
        names, problem = passes + names, schedule(problem, machine)
    if wanted not in names:
        raise InvalidChoice(name="dump", found=shown(wanted), allowed=", ".join(names))
    output = getattr(run_stages(problem, machine, until=wanted), wanted)
    match output:
        case bytes() | str():
            return output
        case Program():
            return print_program(output)
        case _:
            return str(output)
