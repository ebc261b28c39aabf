"""Kernels of a machine for the harness: compiled by the pipeline's stages, each under a symbol of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from object_symbols import undefined_symbols
from shares import EVERY_TEST_RUNS

from tilewright.compiler.lowering.interface import scalar_type, scratch_layout
from tilewright.compiler.operation import Compilation, Problem, kernel_name
from tilewright.compiler.pipeline import STAGES
from tilewright.ir.nodes import Program
from tilewright.llvm.parts import emit_by_parts
from tilewright.machine.cache import Cache
from tilewright.machine.isa_rows import ISAS
from tilewright.machine.machine import Machine
from tilewright.ops.attention.backward_problem import AttentionBackward
from tilewright.ops.attention.problem import Attention
from tilewright.ops.binary.problem import BinaryFunction
from tilewright.ops.contraction.problem import Contraction
from tilewright.ops.elementwise.problem import Elementwise
from tilewright.ops.embedding.problem import Embedding
from tilewright.ops.rotary.problem import Rotary
from tilewright.ops.rows.problem import RowFunction
from tilewright.ops.sum_of_products.problem import SumOfProducts
from tilewright.ops.triangular.syr2k_problem import Syrk
from tilewright.ops.triangular.trmm_problem import Trmm

#: Problems on whose fields the signature depends: their kernels are called through arrays of arguments.
SPREAD = (
    *(Attention, AttentionBackward, Contraction, RowFunction, Elementwise, BinaryFunction, SumOfProducts),
    *(Syrk, Trmm, Rotary, Embedding),
)
#: What scalars are in C, by their type.
NUMBERS = {"f32": "float", "f64": "double", "i32": "int", "i64": "long long"}

#: Of the kernels of a binary, one in so many is compiled well, the others as quick code. Users run both. The
#: IR of both is the same, and the parts with the arithmetic (register tiles, softmax, long functions of rows)
#: are compiled well in either, as for users. LLVM takes a quarter of the time less for quick code.
WELL_COMPILED = 2 if EVERY_TEST_RUNS else 8

#: Threads of the team in harness.c.
TEAM_THREADS = 3

_KIB = 1 << 10


def small_caches(machine: Machine) -> Machine:
    """A machine with caches so small that small matrices meet every block and every threshold."""
    return replace(
        machine,
        l1=Cache(4 * _KIB, ways=4, line=machine.l1.line),
        l2=Cache(16 * _KIB, ways=8, line=machine.l1.line),
        l3=Cache(64 * _KIB, ways=16, line=machine.l1.line),
    )


@dataclass(frozen=True)
class Emitted:
    """One kernel: its problem, where its code is, and what it needs of a caller."""

    problem: Problem
    machine: Machine
    number: int
    symbol: str
    cut: Any
    scratch_bytes: int
    program: Program = field(repr=False)
    object_code: bytes = field(repr=False)

    @property
    def name(self) -> str:
        """What messages call it."""
        return kernel_name(self.problem, self.machine.isa.name)


class Kernels:
    """The kernels of one binary, in the order of the harness's table.

    Parameters
    ----------
    machine : what they are compiled for.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.near = small_caches(machine)
        self.emitted: list[Emitted] = []

    @property
    def row_number(self) -> int:
        """The place of the machine's row among all: the next row takes the next share of a table."""
        return [row.name for row in ISAS].index(self.machine.isa.name)

    def emit(self, problem: Problem, *, near: bool = False, cut: Mapping[str, int] | None = None) -> Emitted:
        """One more kernel, which calls nothing: no memcpy, no conversion of a run-time library, no fmaf.

        `near` gives it the small caches, `cut` changes fields of how it is cut.
        """
        machine = self.near if near else self.machine
        number = len(self.emitted)
        state = Compilation(problem, machine, f"kernel_{number}")
        for stage in STAGES[:-1]:
            state = state.with_field(stage.name, stage.run(state))
            if cut and stage.name == "blocking":
                state = state.with_field("blocking", replace(state.blocking, **cut))
        quick = number % WELL_COMPILED != 0
        state = state.with_field("object", emit_by_parts(state.llvm, state.name, machine, quick=quick))
        assert state.blocking is not None
        assert state.nest is not None
        assert undefined_symbols(state.object) == set(), problem
        done = Emitted(
            problem,
            machine,
            number,
            state.name,
            state.blocking,
            scratch_layout(state.nest).size(TEAM_THREADS),
            state.nest,
            state.object,
        )
        self.emitted.append(done)
        return done

    def table(self) -> str:
        """The C source of the harness's table of functions."""
        declared = "".join(f"void {kernel.symbol}(void);\n{adapter(kernel)}" for kernel in self.emitted)
        listed = "".join(f"    (void *){called(kernel)},\n" for kernel in self.emitted)
        return f"{declared}void *const kernels[] = {{\n{listed}}};\n"


def called(kernel: Emitted) -> str:
    """The function in the table: the kernel, or that which spreads its arguments."""
    return f"call_{kernel.symbol}" if isinstance(kernel.problem, SPREAD) else kernel.symbol


def adapter(kernel: Emitted) -> str:
    """The C source of a function that calls a kernel whose signature depends on its problem."""
    problem, program = kernel.problem, kernel.program
    if not isinstance(problem, SPREAD):
        return ""
    number = NUMBERS[scalar_type(program).name] if program.scalars else ""
    kinds = (
        ("void *", "at", len(program.arguments)),
        ("long long", "s", len(program.sizes)),
        (number, "x", len(program.scalars)),
    )
    types = [kind for kind, _, count in kinds for _ in range(count)]
    values = [f"{name}[{index}]" for _, name, count in kinds for index in range(count)]
    last = ["scratch"] * program.needs_scratch + ["team"]
    types += ["void *"] * len(last)
    return (
        f"void {called(kernel)}"
        "(void **at, const long long *s, const double *x, void *scratch, void *team) {\n"
        f"    ((void (*)({', '.join(types)})){kernel.symbol})({', '.join([*values, *last])});\n}}\n"
    )
