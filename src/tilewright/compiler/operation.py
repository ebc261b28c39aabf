"""The `Op` record: everything about one operation that the compiler and the tools need, declared once.

Kernel names, C headers, argument checks, `tilewright.compile`, `tilewright emit` and library specifications
iterate over `OPS`. An operation registers itself by one line, the place of its record::

    OPS.add("toy", "my_package.toy.op:TOY")

and its problem names it in a class attribute, ``operation = "toy"``. Records are imported when a problem of
theirs is compiled first, so that a product pays nothing for attention.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from inspect import getdoc
from math import prod
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from tilewright.machine.machine import Machine
from tilewright.records import dataclass
from tilewright.spec.operations import OPS
from tilewright.spec.problem import Layout, Operand

if TYPE_CHECKING:
    from tilewright.compiler.example import Example
    from tilewright.ir.nodes import Program
    from tilewright.macro.bounds import CutBounds


class Problem(Protocol):
    """What is to be computed, as an immutable record with its meaning in NumPy."""

    @property
    def operation(self) -> str:
        """The name of the operation in `OPS`."""

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The arrays of a call, the one that is written last."""

    @property
    def flops(self) -> int | None:
        """Floating-point operations of one call; None where sizes are given at run time."""

    @property
    def bytes(self) -> int | None:
        """Bytes that one call must move; None where sizes are given at run time."""


@dataclass(frozen=True)
class Compilation:
    """A problem on its way to machine code; each stage fills the field of its name."""

    problem: Any
    machine: Machine
    name: str
    blocking: Any = None
    nest: Program | None = None
    fuse_unpack: Program | None = None
    fuse_pack: Program | None = None
    fuse_consumer: Program | None = None
    llvm: str = ""
    object: bytes = b""

    @property
    def program(self) -> Program:
        """The tile IR after the last stage that has been done."""
        found = self.fuse_consumer or self.fuse_pack or self.fuse_unpack or self.nest
        assert found is not None
        return found

    def with_field(self, name: str, value: Any) -> Compilation:
        """A copy with one more stage done."""
        return replace(self, **{name: value})


LAYOUT_WORDS = {
    Layout.ROW: "row-major",
    Layout.COL: "column-major",
    Layout.STRIDED: "any strides",
    Layout.PACKED: "packed in tiles",
}


def sizes_text(letters: str, sizes: Iterable[int | None]) -> str:
    """Sizes as kernel names spell them: numbers, or their letter where they are given at run time.

    >>> sizes_text("mnk", (64, None, 8))
    '64xnx8'
    """
    return "x".join(
        letter if size is None else str(size) for letter, size in zip(letters, sizes, strict=True)
    )


#: Hexadecimal digits of a digest in a kernel name: 40 bits, for the thousands of kernels of a process.
DIGEST_LENGTH = 10


def digest(text: str) -> str:
    """What stands in a kernel name for a text of hundreds of letters."""
    return sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]


def layouts_text(problem: Problem) -> str:
    """The layouts of all operands, a letter each."""
    return "".join(operand.layout.letter for operand in problem.operands)


def plain_stem(problem: Problem) -> str:
    """The kernel name without the ISA row: the operation, element types, sizes and layouts."""
    operands = problem.operands
    types = "".join(dict.fromkeys(str(operand.dtype) for operand in operands))
    known = {axis: size for operand in operands for axis, size in operand.sizes}
    sizes = "x".join(axis if size is None else str(size) for axis, size in known.items())
    return "_".join(filter(None, (problem.operation, types, sizes, layouts_text(problem))))


def first_line(problem: Problem) -> str:
    """The first line of the problem's docstring."""
    return (getdoc(type(problem)) or "").partition("\n")[0]


def last_operand(problem: Problem) -> tuple[str, ...]:
    """The operand that is written, where it is only the last one."""
    return (problem.operands[-1].name,)


def matrix_meaning(state: Compilation, name: str) -> str:
    """What a parameter of a C function is: a matrix, a size of matrices, a stride, a leading dimension."""
    operands = {operand.name: operand for operand in state.problem.operands}
    if name in operands:
        return matrix_text(operands[name])
    owner = max((known for known in operands if name.endswith(f"_{known}")), key=len, default="")
    if owner:
        return stride_text(name.removesuffix(f"_{owner}"), operands[owner])
    return size_text(name, operands.values()) or name


def matrix_text(operand: Operand) -> str:
    """Sizes and layout of a matrix."""
    rows, columns = (axis if size is None else size for axis, size in operand.sizes)
    unspelled = f" of {operand.dtype}" if operand.dtype.c_name == "void" else ""
    return f"{operand.name.upper()}: {rows} x {columns}{unspelled}, {LAYOUT_WORDS[operand.layout]}"


def stride_text(kind: str, operand: Operand) -> str:
    """A leading dimension ("ld") or a stride ("rs", "cs") of a matrix; many strides are not read."""
    letter = operand.name.upper() if len(operand.name) == 1 else operand.name
    if kind == "ld":
        step = "rows" if operand.layout is Layout.ROW else "columns"
        return f"from one of the {step} of {letter} to the next"
    step, contiguous = {"rs": ("rows", Layout.COL), "cs": ("columns", Layout.ROW)}[kind]
    unread = operand.layout in (contiguous, Layout.PACKED)
    return f"from one of the {step} of {letter} to the next" + "; not read" * unread


def size_text(axis: str, operands: Iterable[Operand]) -> str:
    """Which rows and columns a size counts."""
    owners = [operand for operand in operands if axis in operand.axes]
    words = " and ".join(
        f"{('rows', 'columns')[operand.axes.index(axis)]} of {operand.name.upper()}" for operand in owners
    )
    known = dict(owners[0].sizes)[axis] if owners else None
    return words if known is None else f"{words}; not read, it is {known}"


def product_of_sizes(problem: Problem, arrays: Sequence[Any]) -> int:
    """The product of all sizes that the operands name: m·n·k of a matrix product."""
    pairs = zip(problem.operands, arrays, strict=True)
    return prod({axis: array.shape[at] for one, array in pairs for at, axis in enumerate(one.axes)}.values())


#: Rewrites a program: pure, before -> after.
Rewrite: TypeAlias = "Callable[[Program], Program]"


@dataclass(frozen=True)
class Op:
    """One operation.

    Attributes
    ----------
    problem : the class of its problems.
    cut : problem, machine -> how the problem is cut: register tile, cache blocks, a cover, ...
    nest : problem, cut, machine, name -> tile IR.
    stem : the kernel name without the ISA row.
    kernel : the class of kernels; None for `ArrayKernel`, which checks arrays against the declared operands.
    formula : what a kernel computes, as one sentence.
    overlap : which operands may share memory, and the units of strides, as one sentence.
    meaning : compilation, name -> what a parameter of the C function is.
    written : names of the operands that are written.
    pointers : names of the operands that are arrays of pointers.
    work : problem, arrays -> multiply-adds of one call, which decide how many threads share it.
    rewrites : of the tile IR, by the names of their stages.
    arguments : builds a problem from the options of `tilewright emit`; None for the problem itself.
    form : what `tilewright emit` writes by default.
    strategy : compilation -> how its kernel runs, in words, for `tilewright.explain`.
    completed : problem, machine -> the problem with what it leaves to the model.
    shared_stem : problem, text of the program -> `stem`, where kernels whose programs are equal are one.
    quick : problem, cut, machine, program -> a shorter program with the same bits, for quick code.
    bounds : problem, machine, cut -> the rules that fixed each block size, or None; for people.
    example : kernel, lengths by name -> a call to draw; None for that of `compiler.matrix_example`.
    """

    problem: type[Any]
    cut: Callable[[Any, Machine], Any]
    nest: Callable[[Any, Any, Machine, str], Program]
    stem: Callable[[Any], str] = plain_stem
    kernel: type[Any] | None = None
    formula: Callable[[Any], str] = first_line
    overlap: Callable[[Any], str] = lambda _: (
        "C overlaps neither A nor B; strides and leading dimensions are in elements."
    )
    meaning: Callable[[Compilation, str], str] = matrix_meaning
    written: Callable[[Any], Collection[str]] = last_operand
    pointers: Callable[[Any], Collection[str]] = lambda _: ()
    work: Callable[[Any, Sequence[Any]], int] = product_of_sizes
    rewrites: tuple[tuple[str, Rewrite], ...] = ()
    arguments: Callable[..., Any] | None = None
    form: str = "asm"
    strategy: Callable[[Compilation], str] | None = None
    completed: Callable[[Any, Machine], Any] = lambda problem, _: problem
    shared_stem: Callable[[Any, str], str] | None = None
    quick: Callable[[Any, Any, Machine, Program], Program] | None = None
    bounds: Callable[[Any, Machine, Any], CutBounds | None] | None = None
    example: Callable[[Any, Mapping[str, int]], Example] | None = None

    @property
    def build(self) -> Callable[..., Any]:
        """Makes a problem from the options of `tilewright emit`."""
        return self.arguments or self.problem


def operation_of(problem: Problem) -> Op:
    """The record of a problem's operation.

    Raises
    ------
    NotAProblem
    """
    found: Op = OPS.of(problem)
    return found


def kernel_name(problem: Problem, isa: str) -> str:
    """The name of a problem's kernel on an ISA row, also its exported symbol.

    Sizes are numbers, or their letter where they are given at run time; then one letter a layout
    (row, col, strided, packed); then what differs from the default, as the epilogue does; then the row.

    >>> from tilewright.ops.gemm.problem import Gemm
    >>> kernel_name(Gemm(m=64, dtype="f64", b="col"), "avx512")
    'gemm_f64_64xnxk_rcr_auto_avx512'
    """
    return f"{operation_of(problem).stem(problem)}_{isa}"
