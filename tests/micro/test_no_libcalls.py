"""Kernels of every element type call nothing: no memcpy, no conversion of a run-time library, no fmaf.

LLVM writes such calls for what a target lacks, and only the object says so. Kernels that run under an
emulator are checked where they are compiled for it (`Kernels.emit` in tests/emulated); the kernels here are
those of the other rows, CPUs and object formats.
"""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from collections.abc import Hashable
from functools import cache

import pytest
from emulated.emulators import emulated_machines
from emulated.test_emulated import TYPED
from emulated.type_cases import parts_of, plans
from object_symbols import undefined_symbols
from product_types import TYPES
from shares import EVERY_TEST_RUNS, cover, share
from tiers import first_of

from tilewright.compiler.operation import Problem
from tilewright.compiler.pipeline import run_stages
from tilewright.llvm.target import CODEGEN_LEVEL, QUICK_LEVEL, emit_object
from tilewright.machine.catalog import CATALOG, find_machine
from tilewright.machine.isa_rows import usable_isas
from tilewright.machine.machine import Machine, enabled_features
from tilewright.ops.batch_reduce.problem import BatchReduceGemm
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.rows.problem import RowFunction
from tilewright.spec.dtype import BF16, F32, FUNCTION_DTYPES
from tilewright.spec.problem import ProductTypes
from tilewright.spec.row_functions import RowOp

#: Of the element types, one in so many is compiled as a product of any sizes, and where a machine before
#: multiplies them likewise, as one of known sizes: the next machine takes the next ones. In `make test` no
#: product of known sizes is compiled again, and none of rows that an emulator runs, which checks its kernels.
THINNED_ANY, THINNED_KNOWN = (16 if EVERY_TEST_RUNS else len(TYPES)), 18
#: The same for rows that an emulator runs on another architecture or system.
THINNED_ROWS = 3
#: Of a machine's products of known sizes, one in so many is compiled well in `make test`, the others and all
#: further kernels without optimisation: calls come from types and operations that a target lacks, which are
#: replaced at every level.
WELL_COMPILED = 8


def machines() -> list[Machine]:
    """Every row that a machine of the catalogue has, at the machine's length of vectors."""
    return [
        entry.machine.with_isa(isa)
        for entry in CATALOG
        for isa in usable_isas(entry.machine.arch, enabled_features(entry.machine.features))
        if not isa.scalable or entry.machine.vector_bits
    ]


MACHINES = machines()
#: In `make test` the first machine of each row and length of vectors, with every unit that multiplies.
each_machine = pytest.mark.parametrize(
    "machine",
    first_of(
        MACHINES,
        lambda machine: (
            machine.arch,
            machine.isa.name,
            machine.isa.vector_bits,
            machine.isa.tile(F32).instruction,
            machine.isa.tile(BF16).instruction,
        ),
    ),
    ids=lambda machine: f"{machine.name}-{machine.isa.name}",
)


def known_sizes(types: ProductTypes, number: int) -> BatchReduceGemm:
    """Partial tiles and vectors beside a full one, two products; layouts take turns."""
    a, b, c = (("row", "col")[number >> axis & 1] for axis in range(3))
    return BatchReduceGemm(
        5, 19, 9, 2, types.a, b_dtype=types.b, out_dtype=types.c, a=a, b=b, c=c, beta=number >> 3 & 1
    )


def any_sizes(types: ProductTypes) -> Gemm:
    """Every path of the strategies, every way to pack."""
    layout = "strided"
    return Gemm(dtype=types.a, b_dtype=types.b, out_dtype=types.c, a=layout, b=layout, c=layout)


def row_of(machine: Machine) -> tuple[str, str, bool]:
    """The architecture, the row, and whether objects are those of Linux."""
    return machine.arch, machine.isa.name, "linux" in machine.triple


def way(machine: Machine, types: ProductTypes) -> tuple[object, ...]:
    """The row, and its instructions for both orders of A and B."""
    instructions = (machine.isa.tile(a, b).instruction for a, b in ((types.a, types.b), (types.b, types.a)))
    return *row_of(machine), *instructions


#: What tests/emulated compiles.
EMULATED_ROWS = {row_of(machine) for machine in emulated_machines()}
EMULATED_WAYS = {
    (way(machine, plan.types), plan.types) for machine in TYPED for plan in plans(machine, TYPED)
}


def parts(machine: Machine, types: ProductTypes) -> set[Hashable]:
    """What a product of a machine shows: its instructions and conversions, each with the row."""
    return {(row_of(machine), part) for part in parts_of(types, way(machine, types))}


@cache
def chosen() -> list[list[ProductTypes]]:
    """Of each machine, types that together show what neither emulators nor machines before it do."""
    shown = {
        part for machine in TYPED for plan in plans(machine, TYPED) for part in parts(machine, plan.types)
    }
    found = []
    for machine in MACHINES:
        new = {types: parts(machine, types) - shown for types in TYPES}
        found.append(cover(new))
        shown = shown.union(*new.values())
    return found


def new_types(machine: Machine) -> list[ProductTypes]:
    """All types that neither emulators nor machines before it multiply in the way of a machine."""
    before = MACHINES[: MACHINES.index(machine)]
    return [
        types
        for types in TYPES
        if (way(machine, types), types) not in EMULATED_WAYS
        and all(way(machine, types) != way(other, types) for other in before)
    ]


def called(problem: Problem, machine: Machine, *, well: bool = False) -> set[str]:
    """What the object of a problem calls; compiled well, or as `make test` compiles most of them."""
    if EVERY_TEST_RUNS:
        return undefined_symbols(run_stages(problem, machine).object)
    found = run_stages(problem, machine, until="llvm")
    level = CODEGEN_LEVEL if well else QUICK_LEVEL
    return undefined_symbols(emit_object(found.llvm, found.name, machine, level))


@each_machine
def test_nothing_is_called(machine: Machine) -> None:
    """Products of known sizes: each way to multiply, every type of an operand and of a result in a row, and
    all of these together in `make test-all`. Of any sizes: some types of each row.

    Rows that an emulator runs elsewhere take turns with the types: Neon of Apple, generic128 of three others.
    """
    start = MACHINES.index(machine)
    taken = new_types(machine) if EVERY_TEST_RUNS else chosen()[start]
    emulated = row_of(machine) in EMULATED_ROWS
    if not emulated and machine.isa.name in {name for _, name, _ in EMULATED_ROWS}:
        taken = share(taken, THINNED_ROWS, start)
    problems: list[Problem] = []
    for number, types in enumerate(TYPES, start):
        again = number % THINNED_KNOWN == 0 and EVERY_TEST_RUNS
        if again or types in taken:
            problems.append(known_sizes(types, number))
        if number % THINNED_ANY == 0 and not emulated:
            problems.append(any_sizes(types))
    for number, problem in enumerate(problems):
        well = number % WELL_COMPILED == 0 and isinstance(problem, BatchReduceGemm)
        assert called(problem, machine, well=well) == set(), problem


#: Element types of A, B and C, and steps with every conversion: they take turns.
EPILOGUES = (
    ("f32", "f32", "f32", "bias:f16,residual:bf16,gelu,scale:row,clamp:-1:9"),
    ("i8", "i8", "bf16", "bias,relu,scale:column,sigmoid,residual"),
    ("f64", "f64", "f16", "bias:f32,gelu_tanh,residual"),
    ("u8", "i8", "u8", "scale:f16,bias,tanh,saturate"),
    ("i64", "i64", "f32", "clamp:-5:5,scale,silu"),
    ("f64", "f64", "i16", "scale:column,saturate"),
    ("c64", "c64", "c64", "bias,residual"),
)


@pytest.mark.parametrize(
    "machine", first_of(MACHINES, row_of), ids=lambda machine: f"{machine.name}-{machine.isa.name}"
)
def test_epilogues_call_nothing(machine: Machine) -> None:
    """In `make test` a row compiles the steps of one product, the next row those of the next."""
    start = 2 * MACHINES.index(machine)
    for number in share(range(start, start + 2), 2):
        a, b, c, steps = EPILOGUES[number % len(EPILOGUES)]
        layout = ("row", "strided")[number // len(EPILOGUES) % 2]
        problem = Gemm(dtype=a, b_dtype=b, out_dtype=c, a="strided", b="strided", c=layout, epilogue=steps)
        assert called(problem, machine) == set(), problem


def test_what_is_called_is_seen() -> None:
    """Integers of 128 bits are divided by a call, and exp is one."""
    machine = find_machine("x86-64-v2")
    text = (
        f'target triple = "{machine.triple}"\n'
        "define i128 @f(i128 %x, i128 %y) {\n%z = sdiv i128 %x, %y\nret i128 %z\n}\n"
        "define float @g(float %x) {\n%y = call float @llvm.exp.f32(float %x)\nret float %y\n}\n"
        "declare float @llvm.exp.f32(float)\n"
    )
    for level in (CODEGEN_LEVEL, QUICK_LEVEL):
        assert undefined_symbols(emit_object(text, "called", machine, level)) == {"__divti3", "expf"}


@each_machine
def test_functions_of_rows_call_nothing(machine: Machine) -> None:
    """Of operations, types and layouts each machine takes some; the next machine takes the next ones.

    Rows that an emulator runs are checked there, whose functions `test_row_runs` compiles.
    """
    start = MACHINES.index(machine)
    operations = [] if row_of(machine) in EMULATED_ROWS and not EVERY_TEST_RUNS else enumerate(RowOp, start)
    for number, op in share(operations, 5, start):
        dtype = FUNCTION_DTYPES[number % len(FUNCTION_DTYPES)]
        problem = RowFunction(op, dtype, layout=("row", "col")[number // len(FUNCTION_DTYPES) % 2])
        assert called(problem, machine) == set(), problem
