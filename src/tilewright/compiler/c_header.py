"""The C header of a kernel: its exported prototype, with the meaning of each argument."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tilewright.compiler.lowering.interface import SCRATCH_ALIGNMENT, has_tasks, scratch_layout
from tilewright.ir.nodes import Program
from tilewright.ir.text import print_program
from tilewright.ops.attention.backward_problem import AttentionBackward
from tilewright.ops.attention.decode import DecodeCut
from tilewright.ops.attention.problem import Attention
from tilewright.ops.batch_reduce.problem import BatchMode, BatchReduceGemm
from tilewright.ops.chain.problem import LinearChain
from tilewright.ops.contraction.problem import Contraction
from tilewright.ops.elementwise.problem import Elementwise
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.mmt4d.problem import Mmt4d
from tilewright.ops.packing.problem import Packing, Role
from tilewright.ops.rows.problem import RowFunction
from tilewright.ops.scattered.problem import ScatteredGemm
from tilewright.ops.sum_of_products.problem import SumOfProducts
from tilewright.ops.triangular.syr2k_problem import Syr2k, Syrk
from tilewright.ops.triangular.trmm_problem import Side, Trmm
from tilewright.ops.unary.problem import Unary
from tilewright.preparing import importing
from tilewright.spec.dtype import accumulator
from tilewright.spec.functions import UnaryOp
from tilewright.spec.problem import Layout, Operand

if TYPE_CHECKING:
    from tilewright.compiler.kernel import Kernel

_WORDS = {
    Layout.ROW: "row-major",
    Layout.COL: "column-major",
    Layout.STRIDED: "any strides",
    Layout.PACKED: "packed in tiles",
}


#: The parameter of every function with parallel loops.
TEAM_MEANING = "the threads that share the call; null for one"
_LANES = {Role.A: "rows", Role.B: "columns"}


#: What C is told of `llvm/team.py`.
TEAM = (
    "/* The threads that share a call. run calls body once for every task 0 .. tasks-1, in any order, and",
    " * returns when all have been done. thread is 0 .. threads-1 and differs between bodies that run at the",
    " * same time. Long tasks call run with no body and 0 tasks, which has nothing to do; it may set the",
    " * int64_t at env to end the task early. */",
    "#ifndef TILEWRIGHT_TEAM",
    "#define TILEWRIGHT_TEAM",
    "struct tw_team {",
    "    void (*run)(struct tw_team *team, void (*body)(void *env, int64_t thread, int64_t task),",
    "                void *env, int64_t tasks);",
    "    int64_t threads;",
    "};",
    "#endif",
    "",
)


class Parameter(NamedTuple):
    """One parameter: its declaration and what it means."""

    declaration: str
    meaning: str

    @property
    def name(self) -> str:
        """The name that is declared.

        >>> Parameter("const float *const *a", "2 pointers to A").name
        'a'
        """
        return self.declaration.rpartition(" ")[2].lstrip("*")


def c_header(kernel: Kernel) -> str:
    """The header of a kernel, for C99 and C++.

    Examples
    --------
    >>> import tilewright as tw
    >>> text = c_header(tw.compile(tw.Unary("relu", 8, 4), target="haswell"))
    >>> [line.strip() for line in text.splitlines() if line.strip().startswith("const")]
    ['const float *a,  /* A: 8 x 4, column-major */']
    """
    guard = f"{kernel.symbol.upper()}_H"
    return "\n".join(
        [
            f"/* {formula(kernel)}",
            f" * Compiled for {kernel.machine.name} ({kernel.machine.triple}, {kernel.machine.cpu}).",
            f" * {overlap(kernel)} */",
            f"#ifndef {guard}",
            f"#define {guard}",
            "",
            "#include <stdint.h>",
            "",
            *(TEAM if has_tasks(kernel.nest) else ()),
            "#ifdef __cplusplus",
            'extern "C" {',
            "#endif",
            "",
            *prototype(kernel.symbol, parameters(kernel)),
            "",
            "#ifdef __cplusplus",
            "}",
            "#endif",
            "",
            f"#endif /* {guard} */",
            "",
        ]
    )


def prototype(symbol: str, parameters: Sequence[Parameter]) -> list[str]:
    """The lines that declare a function, each parameter with its meaning.

    >>> prototype("f", [Parameter("float *c", "C: 2 x 2")])
    ['void f(', '    float *c);  /* C: 2 x 2 */']
    """
    ends = [","] * (len(parameters) - 1) + [");"]
    declared = [f"    {parameter.declaration}{end}" for parameter, end in zip(parameters, ends, strict=True)]
    width = max(map(len, declared))
    meanings = (parameter.meaning for parameter in parameters)
    lines = [f"{line:{width}}  /* {meaning} */" for line, meaning in zip(declared, meanings, strict=True)]
    return [f"void {symbol}(", *lines]


def formula(kernel: Kernel) -> str:
    """What a kernel computes, as a sentence."""
    match kernel.problem:
        case Gemm(epilogue=epilogue):
            steps = f", then {str(epilogue).replace(',', ', ')}" if epilogue else ""
            return f"C = alpha * A * B + beta * C{steps}; beta 0 does not read C, alpha 0 neither A nor B."
        case Syrk(lower=lower) as problem:
            products = "(A * B^T + B * A^T)" if isinstance(problem, Syr2k) else "A * A^T"
            triangle = "lower" if lower else "upper"
            return f"C = alpha * {products} + beta * C, its {triangle} triangle; beta 0 does not read C."
        case Trmm(side=side, lower=lower, unit=unit):
            product = "T * B" if side is Side.LEFT else "B * T"
            ones = " with ones on its diagonal" if unit else ""
            triangle = "lower" if lower else "upper"
            return f"C = alpha * {product}, T the {triangle} triangle of A{ones}; alpha 0 reads neither."
        case BatchReduceGemm(count=count, beta=beta):
            return f"C = {'C + ' if beta else ''}sum of A[i] * B[i], i from 0 to {count - 1}."
        case Unary(op=op):
            return f"B = {op.value}(A), element by element."
        case Packing(role=role):
            return f"Packs a matrix in the role of {role.value.upper()}: lanes are its {_LANES[role]}."
        case LinearChain():
            return "y = the linear layers of x, one after the other: each step(x * weight + bias)."
        case Mmt4d():
            return "out = lhs * rhs^T + beta * out, tile by tile; beta 0 does not read out."
        case ScatteredGemm():
            return "C[cm[i] + cn[j]] = alpha * sum of A[am[i] + ak[p]] * B[bn[j] + bk[p]] + beta * the same."
        case Contraction() as problem:
            with importing:
                from tilewright.ops.contraction.c_header import contraction_formula  # which knows this file

            return contraction_formula(problem)
        case Elementwise(op=op):
            return (
                f"y = {op.value} of every element of x; a team's tasks are some rows each, or parts of rows."
            )
        case SumOfProducts(walk=walk, factors=factors):
            product = "x[b, o, t, i, j] * y[b, o, t, i, j]" if factors == 2 else "x[b, o, t, i, j]"
            if walk.sums:
                return f"z[b, o, i] = sum of {product} over turns t and columns j."
            return f"z[b, o, t, i, j] = {product}."
        case RowFunction(op=op):
            numbers = "a number for each row, " if op.reduces else ""
            return f"y = {numbers}{op.value} of every row of x; a team's tasks are some rows each."
        case Attention(bounded=bounded):
            range_ = ", query i over the keys low + i to high + i" if bounded else ""
            return f"out = softmax(scale * q * k^T) * v of every head{range_}."
        case AttentionBackward(bounded=bounded):
            range_ = ", query i over the keys low + i to high + i" if bounded else ""
            return f"Gradients of out = softmax(scale * q * k^T) * v of every head{range_}."


def overlap(kernel: Kernel) -> str:
    """Which operands may share memory, and what strides count."""
    match kernel.problem:
        case Unary():
            return "B is A's own memory in the same layout, or apart from it; strides are in elements."
        case RowFunction(op=op) if op.reduces:
            return "y overlaps nothing; strides are in elements."
        case RowFunction() | Elementwise():
            return "y is x's own memory with x's strides, or apart from it; strides are in elements."
        case Packing():
            return "The panels overlap nothing; strides are in elements."
        case Syrk():
            return "C overlaps no factor, and beyond the triangle it is left alone; strides are in elements."
        case Attention() | AttentionBackward():
            return "Results overlap no operand; offsets and strides are in elements."
        case _:
            return "C overlaps neither A nor B; strides and leading dimensions are in elements."


def parameters(kernel: Kernel) -> tuple[Parameter, ...]:
    """The parameters in the order of `lower`: buffers, sizes, scalars, scratch, team."""
    return tuple(_parameters(kernel))


def _parameters(kernel: Kernel) -> Iterator[Parameter]:
    program = kernel.nest
    match kernel.problem:
        case Packing() as problem:
            yield from _packing(problem, program)
            return
        case Mmt4d() as problem:
            yield from _mmt4d(problem, program)
            return
        case LinearChain() as problem:
            yield from _chain(problem, program)
            return
        case ScatteredGemm():
            yield from _scattered(program)
            return
        case Contraction() as problem:
            with importing:
                from tilewright.ops.contraction.c_header import (
                    contraction_parameters,  # which knows this file
                )

            yield from contraction_parameters(problem, program)
            return
        case Attention() | AttentionBackward():
            yield from _attention(kernel)
            return
        case (RowFunction() | Elementwise()) as problem:
            yield from _row_function(problem, program)
            return
        case SumOfProducts():
            yield from _products(program)
            return
    operands = {operand.name: operand for operand in kernel.problem.operands}
    steps = kernel.problem.step_operands if isinstance(kernel.problem, Gemm) else ()
    written = kernel.problem.operands[-1].name
    given = {operand.name: operand for operand in steps}
    for buffer in program.arguments:
        match buffer.name:
            case name if name == written:
                yield Parameter(f"{operands[name].dtype.c_name} *{name}", _matrix(kernel, operands[name]))
            case name if name in operands:
                yield _input(kernel, operands[name])
            case name if name in given:
                yield Parameter(f"const {given[name].dtype.c_name} *{name}", _step_operand(given[name]))
            case name:
                yield Parameter(f"const {buffer.dtype.c_name} *{name}", f"{name} of the packed weight")
    operands |= given
    for name in program.sizes:
        yield Parameter(f"int64_t {name}", _integer(kernel, name, operands))
    for name in program.scalars:
        acc = kernel.problem.types.acc if isinstance(kernel.problem, (Gemm, Syrk, Trmm)) else None
        scalar = (acc or accumulator(*(buffer.dtype.real for buffer in program.arguments[:2]))).c_name
        product = {Syrk: "what is added to C", Syr2k: "what is added to C", Trmm: "the product"}.get(
            type(kernel.problem), "A * B"
        )
        yield Parameter(f"{scalar} {name}", f"factor of {'C' if name == 'beta' else product}")
    if program.needs_scratch:
        yield Parameter("void *scratch", scratch_meaning(program))
    if has_tasks(program):
        yield Parameter("struct tw_team *team", TEAM_MEANING)


def _packing(problem: Packing, program: Program) -> Iterator[Parameter]:
    """The parameters of a kernel that packs."""
    source, panels = program.arguments
    shape = "lanes x depth" if problem.role is Role.A else "depth x lanes"
    yield Parameter(f"const {source.dtype.c_name} *source", f"{shape} of {source.dtype}, any strides")
    yield Parameter(f"{panels.dtype.c_name} *panels", f"panels of {panels.dtype}")
    meanings = {
        "lanes": f"{_LANES[problem.role]} of the matrix",
        "depth": "the other of its sizes",
        "lane_stride": "from one lane to the next",
        "depth_stride": "from one depth to the next",
    }
    for name in program.sizes:
        yield Parameter(f"int64_t {name}", meanings[name])


def _mmt4d(problem: Mmt4d, program: Program) -> Iterator[Parameter]:
    """The parameters of an mmt4d."""
    m0, n0, k0 = problem.m0, problem.n0, problem.k0
    tiles = {"lhs": ("m1 x k1", m0, k0), "rhs": ("n1 x k1", n0, k0), "out": ("m1 x n1", m0, n0)}
    for buffer in program.arguments:
        constant = "" if buffer.name == "out" else "const "
        counts, rows, columns = tiles[buffer.name]
        meaning = f"{counts} x {rows} x {columns} of {buffer.dtype}"
        yield Parameter(f"{constant}{buffer.dtype.c_name} *{buffer.name}", meaning)
    for name in program.sizes:
        known = getattr(problem, name)
        meaning = f"tiles in {name[0]}" if known is None else f"tiles in {name[0]}; not read, it is {known}"
        yield Parameter(f"int64_t {name}", meaning)
    yield Parameter(f"{problem.types.acc.c_name} beta", "factor of out: 0 or 1")
    yield Parameter("void *scratch", scratch_meaning(program))
    yield Parameter("struct tw_team *team", TEAM_MEANING)


def _chain(problem: LinearChain, program: Program) -> Iterator[Parameter]:
    """The parameters of a chain of linear layers."""
    meanings = {"x": f"x: m x {problem.sizes[0]}", "y": f"y: m x {problem.sizes[-1]}"}
    for operand, buffer in zip(problem.operands, program.arguments, strict=True):
        shape = meanings.get(operand.name, f"{operand.rows} x {operand.columns}")
        constant = "" if operand.name == "y" else "const "
        meaning = f"{shape} of {buffer.dtype}, {_WORDS[operand.layout]}"
        yield Parameter(f"{constant}{buffer.dtype.c_name} *{operand.name}", meaning)
    yield Parameter("int64_t m", "rows of x and y")
    for name in ("x", "y"):
        yield Parameter(f"int64_t rs_{name}", f"from one of the rows of {name} to the next")
    yield Parameter("void *scratch", scratch_meaning(program))
    yield Parameter("struct tw_team *team", TEAM_MEANING)


#: What the arguments of attention mean that no rule tells.
_ATTENTION = {
    "items": "16 numbers of each sequence: where its q, k, v, out, mask, state, scales and pages begin, in "
    "elements, then queries, keys, low, high, and with slopes shift: query 0 is at key "
    "keys - queries + shift; of gradients shift takes the place of pages, and dout, dq, dk, dv follow high",
    "row_max": "largest score of each query, for whom the state is kept",
    "row_sum": "sum of e^(score - row_max) of each query",
    "mask": "batch x heads x queries x keys, any strides: 0 hides a key, or numbers that are added",
    "slopes": "one for each head",
    "sinks": "one for each head",
    "lse": "logarithm of the sum of e^score of each query",
    "delta": "for the sum of dout * out of each query",
    "key_scales": "one for each key",
    "value_scales": "one for each value",
    "pages": "numbers of pages",
    "batch": "sequences",
    "kv_heads": "heads of k and v",
    "group": "heads of q for each head of k",
    "queries": "the most of a sequence",
    "keys": "the most of a sequence",
    "page": "keys of a page",
    "scale": "of the scores",
    "softcap": "scores are softcap * tanh(score / softcap)",
}


#: What kernels of attention write.
_WRITTEN = frozenset({"out", "row_max", "row_sum", "partials"})
_WRITTEN_BACKWARD = frozenset({"dq", "dk", "dv", "delta"})


def _meanings(kernel: Kernel) -> dict[str, str]:
    """What arguments of attention mean that its cut says more of."""
    cut = kernel.blocking
    if isinstance(cut, DecodeCut):
        each = cut.partials(1, 1, 1, 1)
        return _ATTENTION | {
            "partials": f"space for batch * kv_heads * group * queries * splits * {each} numbers",
            "heads_together": "heads of keys that one task takes side by side: 1, or more where those of one "
            "key are adjacent",
            "splits": f"runs of {cut.split} keys that the longest sequence has, at least 1",
        }
    if isinstance(kernel.problem, AttentionBackward):
        rows = f"batch x heads x rows x columns of {kernel.problem.dtype}, columns adjacent"
        return _ATTENTION | dict.fromkeys(("out", "dout", "dq", "dk", "dv"), rows)
    stands = isinstance(kernel.problem, Attention) and not kernel.problem.paged
    return _ATTENTION | ({"v_col": "1: columns of v are adjacent"} if stands else {})


def _attention(kernel: Kernel) -> Iterator[Parameter]:
    """The parameters of attention."""
    program, meanings = kernel.nest, _meanings(kernel)
    outputs = _WRITTEN if isinstance(kernel.problem, Attention) else _WRITTEN_BACKWARD
    for buffer in program.arguments:
        constant = "" if buffer.name in outputs else "const "
        meaning = meanings.get(buffer.name, f"batch x heads x rows x columns of {buffer.dtype}, any strides")
        yield Parameter(f"{constant}{buffer.dtype.c_name} *{buffer.name}", meaning)
    used = set(re.findall(r"\w+", print_program(program).split("argument", maxsplit=1)[1]))
    for name in program.sizes:
        array, _, axis = name.rpartition("_")
        steps = {"head": "head", "row": "row", "col": "column", "page": "page"}
        meaning = meanings.get(name, f"of {array}, from one {steps.get(axis, axis)} to the next")
        unread = f"not read: columns of {array} are adjacent" if axis == "col" else f"{meaning}; not read"
        yield Parameter(f"int64_t {name}", meaning if name in used else unread)
    state = next(buffer.dtype for buffer in program.arguments if buffer.name in ("row_max", "lse"))
    for name in program.scalars:
        yield Parameter(f"{state.c_name} {name}", _ATTENTION[name])
    yield Parameter("void *scratch", scratch_meaning(program))
    yield Parameter("struct tw_team *team", TEAM_MEANING)


def _scattered(program: Program) -> Iterator[Parameter]:
    """The parameters of a product by tables."""
    for buffer in program.arguments:
        constant = "" if buffer.name == "c" else "const "
        meaning = "elements" if len(buffer.name) == 1 else "table of offsets, runs or steps, in elements"
        yield Parameter(f"{constant}{buffer.dtype.c_name} *{buffer.name}", meaning)
    for name in program.sizes:
        yield Parameter(f"int64_t {name}", "products" if name == "batch" else "entries of its tables")
    scalar = accumulator(*(buffer.dtype for buffer in program.arguments[:2])).c_name
    for name in program.scalars:
        yield Parameter(f"{scalar} {name}", {"alpha": "factor of A * B", "beta": "factor of C"}[name])
    yield Parameter("void *scratch", scratch_meaning(program))
    yield Parameter("struct tw_team *team", TEAM_MEANING)


_ROW_FUNCTION = {
    "x": "batch x outer x rows x columns of {0}; elements of a {1} are adjacent",
    "y": "as x, and x itself or apart from it",
    "weight": "columns of {0}",
    "bias": "columns of {0}",
    "batch": "matrices of matrices",
    "outer": "matrices",
    "rows": "of each matrix",
    "columns": "elements of a row",
    "eps": "what is added under the root",
}


def _row_function(problem: RowFunction | Elementwise, program: Program) -> Iterator[Parameter]:
    """The parameters of a function of rows."""
    by_columns = isinstance(problem, RowFunction) and problem.layout is Layout.COL
    along = line = "column" if by_columns else "row"
    for buffer in program.arguments:
        constant = "" if buffer.name == "y" else "const "
        meaning = _ROW_FUNCTION[buffer.name].format(buffer.dtype, along)
        if buffer.name == "y" and isinstance(problem, RowFunction) and problem.op.reduces:
            meaning = f"batch x outer x rows of {buffer.dtype}, apart from x"
        yield Parameter(f"{constant}{buffer.dtype.c_name} *{buffer.name}", meaning)
    for name in program.sizes:
        array, _, axis = name.partition("_")
        step = f"of {array}, from one {line if axis == 'line' else axis} to the next"
        yield Parameter(f"int64_t {name}", _ROW_FUNCTION.get(name, step))
    for name in program.scalars:
        yield Parameter(f"{problem.acc.c_name} {name}", _ROW_FUNCTION[name])
    if program.needs_scratch:
        yield Parameter("void *scratch", scratch_meaning(program))
    yield Parameter("struct tw_team *team", TEAM_MEANING)


def _products(program: Program) -> Iterator[Parameter]:
    """The parameters of products of elements."""
    for buffer in program.arguments:
        constant = "" if buffer.name == "z" else "const "
        yield Parameter(f"{constant}{buffer.dtype.c_name} *{buffer.name}", f"elements of {buffer.dtype}")
    for name in program.sizes:
        array, _, axis = name.partition("_")
        step = f"of {array}, from one {axis} to the next; 0 repeats"
        yield Parameter(f"int64_t {name}", step if axis else "length of the axis")
    yield Parameter("struct tw_team *team", TEAM_MEANING)


def _axes(kernel: Kernel, operand: Operand) -> str:
    """The letters of an operand's rows and columns."""
    if isinstance(kernel.problem, Unary):
        return "mn"
    if isinstance(kernel.problem, Syrk):
        return "nn" if operand.name == "c" else "nk"
    if isinstance(kernel.problem, Trmm) and operand.name in "ab":
        return "mn" if operand.name == "b" else {Side.LEFT: "mm", Side.RIGHT: "nn"}[kernel.problem.side]
    return {"a": "mk", "b": "kn", "c": "mn"}.get(operand.name, "")


def _step_operand(operand: Operand) -> str:
    """What an operand of the epilogue is."""
    many = "numbers" if operand.dtype.c_name != "void" else f"numbers of {operand.dtype}"
    rows = "m" if operand.rows is None else str(operand.rows)
    columns = "n" if operand.columns is None else str(operand.columns)
    match operand.name.partition("_")[0], operand.layout:
        case "residual", _:
            return f"{operand.name}: {rows} x {columns} of {operand.dtype}, {_WORDS[operand.layout]}"
        case "scale", Layout.ROW if operand.columns == 1:
            return f"{operand.name}: one {many.replace('numbers', 'number')}"
        case _, Layout.ROW:
            return f"{operand.name}: {columns} {many}, one for each column of C"
        case _:
            return f"{operand.name}: {rows} {many}, one for each row of C"


def _matrix(kernel: Kernel, operand: Operand) -> str:
    sizes = zip(_axes(kernel, operand), (operand.rows, operand.columns), strict=True)
    rows, columns = (letter if size is None else size for letter, size in sizes)
    unspelled = f" of {operand.dtype}" if operand.dtype.c_name == "void" else ""
    return f"{operand.name.upper()}: {rows} x {columns}{unspelled}, {_WORDS[operand.layout]}"


def _input(kernel: Kernel, operand: Operand) -> Parameter:
    matrix, kind = _matrix(kernel, operand), operand.dtype.c_name
    match kernel.problem:
        case BatchReduceGemm(batch=BatchMode.ADDRESS, count=count):
            return Parameter(f"const {kind} *const *{operand.name}", f"{count} pointers to {matrix}")
        case BatchReduceGemm(count=count) if count > 1:
            return Parameter(f"const {kind} *{operand.name}", f"the first of {count} {matrix}")
        case Unary(op=UnaryOp.ZERO):
            return Parameter(f"const {kind} *{operand.name}", "not read, may be null")
        case _:
            return Parameter(f"const {kind} *{operand.name}", matrix)


def _integer(kernel: Kernel, name: str, operands: dict[str, Operand]) -> str:
    """What a size, a stride or a leading dimension means; many are not read."""
    owner = max((known for known in operands if name.endswith(f"_{known}")), key=len, default="")
    if not owner:
        return _size(kernel, name, operands)
    kind, operand = name.removesuffix(f"_{owner}"), operands[owner]
    letter = owner.upper() if len(owner) == 1 else owner
    unread = isinstance(kernel.problem, Unary) and kernel.problem.op is UnaryOp.ZERO and owner == "a"
    match kind:
        case "br_stride":
            problem = kernel.problem
            unread = isinstance(problem, BatchReduceGemm) and (
                problem.batch is BatchMode.ADDRESS or problem.count == 1
            )
            meaning = f"from one {letter} to the next"
        case "ld":
            step = "rows" if operand.layout is Layout.ROW else "columns"
            meaning = f"from one of the {step} of {letter} to the next"
        case _:
            step, contiguous = {"rs": ("rows", Layout.COL), "cs": ("columns", Layout.ROW)}[kind]
            unread = unread or operand.layout in (contiguous, Layout.PACKED)
            meaning = f"from one of the {step} of {letter} to the next"
    return f"{meaning}; not read" if unread else meaning


def _size(kernel: Kernel, letter: str, operands: dict[str, Operand]) -> str:
    owners = [operand for operand in operands.values() if letter in _axes(kernel, operand)]
    axis = _axes(kernel, owners[0]).index(letter)
    known = (owners[0].rows, owners[0].columns)[axis]
    words = " and ".join(
        f"{('rows', 'columns')[_axes(kernel, operand).index(letter)]} of {operand.name.upper()}"
        for operand in owners
    )
    return words if known is None else f"{words}; not read, it is {known}"


def scratch_meaning(program: Program) -> str:
    """What the parameter for scratch is to be."""
    layout = scratch_layout(program)
    if not layout.bytes:
        return "not read, may be null"
    more = f", {layout.thread_bytes} more for each thread of a team but one" if has_tasks(program) else ""
    return f"{layout.bytes} bytes on a multiple of {SCRATCH_ALIGNMENT}{more}"
