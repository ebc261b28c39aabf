"""`tilewright emit`: generated code and kernel libraries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from tilewright import compile, einsum_contraction
from tilewright.aot.build import build_library
from tilewright.aot.files import library_files
from tilewright.aot.form import LibraryForm
from tilewright.aot.spec_file import read_spec
from tilewright.aot.variants import split_targets
from tilewright.compiler.pipeline import STAGES, Problem, run_stages
from tilewright.compiler.target import resolve_target
from tilewright.errors import BinaryToTerminal, InvalidChoice, OutputNotWritable, shown
from tilewright.ir.nodes import Program
from tilewright.ir.text import print_program
from tilewright.machine.isa import Lowering
from tilewright.machine.machine import Machine
from tilewright.ops.attention.problem import Attention
from tilewright.ops.batch_reduce.problem import BatchReduceGemm
from tilewright.ops.chain.problem import LinearChain
from tilewright.ops.contraction.problem import Contraction
from tilewright.ops.contraction.schedule.passes import PASSES, schedule
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.mmt4d.problem import Mmt4d
from tilewright.ops.triangular.syr2k_problem import Syr2k, Syrk
from tilewright.ops.triangular.trmm_problem import Trmm
from tilewright.ops.unary.problem import Unary
from tilewright.spec.arguments import parse_choice
from tilewright.spec.epilogue import Epilogue
from tilewright.tools.cli import terminal
from tilewright.tools.cli.options import Dtype, OutDtype, group
from tilewright.tools.explore.cases import parse_types
from tilewright.tools.explore.mca import estimate_kernel, estimate_table

app = group("Write generated code and kernel libraries.")

_Form = Annotated[str, typer.Option(help="Form to write: tile, llvm, asm, obj or header.")]
_Stage = Annotated[str | None, typer.Option(help="Write the output of this stage instead.")]
_Output = Annotated[
    Path | None, typer.Option("-o", "--output", help="File to write; - or none: standard output.")
]
_Target = Annotated[str, typer.Option(help="host, the name of a target, or triple:cpu:+features.")]
_Lowering = Annotated[
    str, typer.Option(help="Lowering of tile products: target, or generic (llvm.matrix.multiply).")
]
_Mca = Annotated[
    bool, typer.Option("--mca", help="Print the llvm-mca estimate for the loops over depth instead.")
]

#: What --emit writes: the property of a kernel for each word.
_FORMS: dict[str, Callable[[Any], str | bytes]] = {
    "tile": lambda kernel: kernel.tile_ir,
    "llvm": lambda kernel: kernel.llvm_ir,
    "asm": lambda kernel: kernel.assembly,
    "obj": lambda kernel: kernel.object_code,
    "header": lambda kernel: kernel.header,
}


_Spec = Annotated[Path | None, typer.Option(help="With --library: a TOML file of [[kernel]] tables.")]
_Targets = Annotated[str, typer.Option("--target", help="Comma list of targets of one architecture.")]
_LibraryForm = Annotated[str, typer.Option("--form", help="archive, or objects: one per kernel and target.")]


@app.callback(invoke_without_command=True)
def emit_options(
    context: typer.Context,
    library: Annotated[
        Path | None, typer.Option(help="Write a library of many kernels and targets into this folder.")
    ] = None,
    spec: _Spec = None,
    target: _Targets = "host",
    form: _LibraryForm = "archive",
) -> None:
    """Options of `emit --library DIR --spec FILE`, which is the same as `emit library`."""
    given = [context.get_parameter_source(name) for name in ("library", "spec", "target", "form")]
    if context.invoked_subcommand is not None:
        if any(source is not None and source.name == "COMMANDLINE" for source in given):
            raise typer.BadParameter(f"options of {context.invoked_subcommand} stand behind it")
    elif library is None or spec is None:
        raise typer.BadParameter("needs a command, or --library DIR and --spec FILE")
    else:
        emit_library(library, spec, target, form)


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
    files = library_files(library, wanted)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputNotWritable(path=str(folder), reason=error.strerror or str(error)) from error
    for name, content in files.items():
        terminal.write(folder / name, content)
    targets = ", ".join(variant.target for variant in library.variants.ordered)
    typer.echo(f"{folder}: {len(files)} files, {len(library.functions)} kernels; best first: {targets}")


@app.command("gemm")
def emit_gemm(
    m: Annotated[int | None, typer.Option(help="Rows of C; omitted: given at run time.")] = None,
    n: Annotated[int | None, typer.Option(help="Columns of C; omitted: given at run time.")] = None,
    k: Annotated[int | None, typer.Option(help="Depth; omitted: given at run time.")] = None,
    dtype: Dtype = "f32",
    out_dtype: OutDtype = None,
    a: Annotated[str, typer.Option(help="Layout of A: row, col or strided.")] = "row",
    b: Annotated[str, typer.Option(help="Layout of B.")] = "row",
    c: Annotated[str, typer.Option(help="Layout of C.")] = "row",
    epilogue: Annotated[
        str, typer.Option(help="Steps before the store of C, such as bias,gelu or scale:column,clamp:0:6.")
    ] = "",
    strategy: Annotated[str, typer.Option(help="auto, tiling or packing.")] = "auto",
    target: _Target = "host",
    emit: _Form = "asm",
    dump: _Stage = None,
    lowering: _Lowering = "target",
    mca: _Mca = False,
    output: _Output = None,
) -> None:
    """Write the code for C = alpha·A·B + beta·C with an epilogue."""
    steps = Epilogue.parse(epilogue)
    types = parse_types(dtype, out_dtype, steps)
    problem = Gemm(
        *(m, n, k, types.a),
        a=a,
        b=b,
        c=c,
        b_dtype=types.b,
        out_dtype=types.c,
        epilogue=steps,
        strategy=strategy,
    )
    machine = _machine(target, lowering)
    if mca:
        _print_estimate(problem, machine)
    else:
        _emit(problem, machine, emit, dump, output)


@app.command("brgemm")
def emit_brgemm(
    m: Annotated[int, typer.Option(help="Rows of C.")],
    n: Annotated[int, typer.Option(help="Columns of C.")],
    k: Annotated[int, typer.Option(help="Depth.")],
    count: Annotated[int, typer.Option(help="Products summed by one call.")] = 1,
    dtype: Dtype = "f32",
    out_dtype: OutDtype = None,
    a: Annotated[str, typer.Option(help="Layout of A: row or col.")] = "col",
    b: Annotated[str, typer.Option(help="Layout of B.")] = "col",
    c: Annotated[str, typer.Option(help="Layout of C.")] = "col",
    beta: Annotated[int, typer.Option(help="1 adds to C, 0 replaces it.")] = 1,
    batch: Annotated[str, typer.Option(help="stride, or address: operands behind pointers.")] = "stride",
    target: _Target = "host",
    emit: _Form = "asm",
    dump: _Stage = None,
    lowering: _Lowering = "target",
    mca: _Mca = False,
    output: _Output = None,
) -> None:
    """Write the code for a batch-reduce GEMM.

    C = beta·C + the sum of `count` products A_i·B_i, all of hardcoded sizes.
    """
    types = parse_types(dtype, out_dtype)
    kinds = {"b_dtype": types.b, "out_dtype": types.c}
    problem = BatchReduceGemm(m, n, k, count, types.a, a=a, b=b, c=c, beta=beta, batch=batch, **kinds)
    machine = _machine(target, lowering)
    if mca:
        _print_estimate(problem, machine)
    else:
        _emit(problem, machine, emit, dump, output)


@app.command("unary")
def emit_unary(
    op: Annotated[str, typer.Argument(help="zero, identity, relu, square, exp, tanh, gelu, ...")],
    m: Annotated[int | None, typer.Option(help="Rows; omitted: given at run time.")] = None,
    n: Annotated[int | None, typer.Option(help="Columns; omitted: given at run time.")] = None,
    dtype: Annotated[
        str, typer.Option(help="f32 or f64; for zero and identity also i8, i16, c128, ...")
    ] = "f32",
    b: Annotated[str, typer.Option(help="Layout of B: col, or row, which transposes.")] = "col",
    target: _Target = "host",
    emit: _Form = "asm",
    dump: _Stage = None,
    output: _Output = None,
) -> None:
    """Write the code for B = op(A), A column-major."""
    _emit(Unary(op, m, n, dtype, b=b), _machine(target), emit, dump, output)


@app.command("mmt4d")
def emit_mmt4d(
    m0: Annotated[int, typer.Option(help="Rows of a tile of lhs and of out.")],
    n0: Annotated[int, typer.Option(help="Rows of a tile of rhs, columns of one of out.")],
    k0: Annotated[int, typer.Option(help="Columns of a tile of lhs and of rhs.")] = 1,
    dtype: Dtype = "f32",
    target: _Target = "host",
    emit: _Form = "asm",
    dump: _Stage = None,
    output: _Output = None,
) -> None:
    """Write the code for mmt4d, a product of tiled matrices.

    The second operand is transposed, as in linalg.mmt4d of MLIR.
    """
    types = parse_types(dtype, None)
    _emit(Mmt4d(m0, n0, k0, types.a, b_dtype=types.b), _machine(target), emit, dump, output)


@app.command("syr2k")
def emit_syr2k(
    n: Annotated[int | None, typer.Option(help="Rows and columns of C; omitted: given at run time.")] = None,
    k: Annotated[int | None, typer.Option(help="Depth; omitted: given at run time.")] = None,
    dtype: Dtype = "f32",
    out_dtype: OutDtype = None,
    a: Annotated[str, typer.Option(help="Layout of A: row, col or strided.")] = "row",
    b: Annotated[str, typer.Option(help="Layout of B.")] = "row",
    c: Annotated[str, typer.Option(help="Layout of C.")] = "row",
    upper: Annotated[bool, typer.Option("--upper", help="The upper triangle instead of the lower.")] = False,
    target: _Target = "host",
    emit: _Form = "asm",
    dump: _Stage = None,
    output: _Output = None,
) -> None:
    """Write the code for syr2k.

    syr2k is one triangle of C = alpha·(A·Bᵀ + B·Aᵀ) + beta·C.
    """
    problem = Syr2k(n, k, dtype, a=a, b=b, c=c, out_dtype=out_dtype, lower=not upper)
    _emit(problem, _machine(target), emit, dump, output)


@app.command("syrk")
def emit_syrk(
    n: Annotated[int | None, typer.Option(help="Rows and columns of C; omitted: given at run time.")] = None,
    k: Annotated[int | None, typer.Option(help="Depth; omitted: given at run time.")] = None,
    dtype: Dtype = "f32",
    out_dtype: OutDtype = None,
    a: Annotated[str, typer.Option(help="Layout of A: row, col or strided.")] = "row",
    c: Annotated[str, typer.Option(help="Layout of C.")] = "row",
    upper: Annotated[bool, typer.Option("--upper", help="The upper triangle instead of the lower.")] = False,
    target: _Target = "host",
    emit: _Form = "asm",
    dump: _Stage = None,
    output: _Output = None,
) -> None:
    """Write the code for syrk.

    syrk is one triangle of C = alpha·A·Aᵀ + beta·C.
    """
    problem = Syrk(n, k, dtype, a=a, c=c, out_dtype=out_dtype, lower=not upper)
    _emit(problem, _machine(target), emit, dump, output)


@app.command("trmm")
def emit_trmm(
    m: Annotated[int | None, typer.Option(help="Rows of B and C; omitted: given at run time.")] = None,
    n: Annotated[int | None, typer.Option(help="Columns of B and C; omitted: given at run time.")] = None,
    dtype: Dtype = "f32",
    a: Annotated[str, typer.Option(help="Layout of A: row, col or strided.")] = "row",
    b: Annotated[str, typer.Option(help="Layout of B.")] = "row",
    c: Annotated[str, typer.Option(help="Layout of C.")] = "row",
    side: Annotated[str, typer.Option(help="Side of the triangular matrix: left or right.")] = "left",
    upper: Annotated[bool, typer.Option("--upper", help="The upper triangle instead of the lower.")] = False,
    unit: Annotated[bool, typer.Option("--unit", help="Unit diagonal.")] = False,
    target: _Target = "host",
    emit: _Form = "asm",
    dump: _Stage = None,
    output: _Output = None,
) -> None:
    """Write the code for trmm.

    trmm is C = alpha·T·B or alpha·B·T, where T is one triangle of A.
    """
    problem = Trmm(m, n, dtype, a=a, b=b, c=c, side=side, lower=not upper, unit=unit)
    _emit(problem, _machine(target), emit, dump, output)


@app.command("attention")
def emit_attention(
    head_dim: Annotated[int, typer.Option(help="Elements of a query and of a key (head size).")] = 64,
    value_dim: Annotated[int | None, typer.Option(help="Elements of a value; by default as many.")] = None,
    dtype: Annotated[str, typer.Option(help="f32, f64, bf16 or f16.")] = "f32",
    kv_dtype: Annotated[str | None, typer.Option(help="Element type of keys and values: i8.")] = None,
    mask: Annotated[str | None, typer.Option(help="Element type of a mask; u8 for a boolean mask.")] = None,
    bounded: Annotated[bool, typer.Option("--bounded", help="Causal or windowed attention.")] = False,
    softcap: Annotated[bool, typer.Option("--softcap", help="Soft-capped scores.")] = False,
    slopes: Annotated[bool, typer.Option("--slopes", help="ALiBi slopes.")] = False,
    sinks: Annotated[
        bool, typer.Option("--sinks", help="Attention sinks: each head has one extra score without a value.")
    ] = False,
    scales: Annotated[bool, typer.Option("--scales", help="Scales for keys and values.")] = False,
    paged: Annotated[bool, typer.Option("--paged", help="Paged keys and values.")] = False,
    schedule: Annotated[str, typer.Option(help="blocks, or decode for few queries.")] = "blocks",
    target: _Target = "host",
    emit: _Form = "asm",
    dump: _Stage = None,
    lowering: _Lowering = "target",
    mca: _Mca = False,
    output: _Output = None,
) -> None:
    """Write the code for fused attention of any lengths."""
    problem = Attention(
        head_dim,
        value_dim,
        dtype,
        kv_dtype=kv_dtype,
        bounded=bounded,
        mask=mask,
        softcap=softcap,
        slopes=slopes,
        sinks=sinks,
        key_scales=scales,
        value_scales=scales,
        paged=paged,
        schedule=schedule,
    )
    machine = _machine(target, lowering)
    if mca:
        _print_estimate(problem, machine)
    else:
        _emit(problem, machine, emit, dump, output)


@app.command("chain")
def emit_chain(
    sizes: Annotated[
        str, typer.Option(help="Input size, then the output size of each layer, such as 1024,4096,1024.")
    ],
    activations: Annotated[str, typer.Option(help="One activation per layer, such as gelu,none.")] = "",
    dtype: Annotated[str, typer.Option(help="f32, f64, bf16 or f16.")] = "f32",
    bias: Annotated[bool, typer.Option(help="Each layer has a bias.")] = True,
    target: _Target = "host",
    emit: _Form = "tile",
    dump: _Stage = None,
    output: _Output = None,
) -> None:
    """Write the code for a chain of linear layers.

    --dump shows how they are fused.
    """
    try:
        layers = [int(size) for size in sizes.split(",")]
    except ValueError:
        raise InvalidChoice(name="sizes", found=shown(sizes), allowed="integers such as 64,256,64") from None
    words = [None if word == "none" else word for word in activations.split(",")] if activations else []
    _emit(LinearChain(layers, words, dtype, bias=bias), _machine(target), emit, dump, output)


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
    lengths = _label_sizes(sizes)
    inputs = subscripts.replace(" ", "").partition("->")[0].split(",")
    for label in "".join(inputs):
        if label.isalpha() and label not in lengths:
            raise InvalidChoice(
                name="sizes", found=shown(sizes), allowed=f"a length for each label, as {label}=64"
            )
    shapes = [tuple(lengths[label] for label in term if label in lengths) for term in inputs]
    problem = einsum_contraction(
        subscripts, *shapes, dtype=dtype, out_dtype=out_dtype, main=main, first=first, last=last or None
    )
    _emit(problem, _machine(target), emit, dump, output)


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


def _print_estimate(problem: Problem, machine: Machine) -> None:
    """What llvm-mca says of the kernel's loops over depth, as a table."""
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
