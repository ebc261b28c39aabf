"""Products of every element type: which of them a machine is the one to run, and their cases."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Sequence
from enum import Enum
from functools import cache
from typing import NamedTuple

from product_types import TYPES
from shares import EVERY_TEST_RUNS, cover

from emulated.case_file import Case
from emulated.elements import Filling
from emulated.emulators import emulator_of
from emulated.gemm_cases import (
    DTYPES,
    Shape,
    batch_reduce_case,
    block_shapes,
    gemm_case,
    tile_shapes,
    vector_shapes,
)
from emulated.kernels import Emitted, Kernels
from tilewright.errors import UnsupportedDtype
from tilewright.machine.isa import TileFma
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import SUMS_COLUMNS, SUMS_ROWS, Blocking
from tilewright.ops.batch_reduce.problem import BatchReduceGemm
from tilewright.ops.gemm.nest import instruction_of
from tilewright.ops.gemm.problem import Gemm
from tilewright.spec.dtype import I32
from tilewright.spec.problem import ProductTypes, Strategy

#: Depths from which sums of products at the ends of the range wrap around: 255·255·k and 128·128·k.
WRAPPING = {"u8": 33_030, "i8": 131_073}
#: Of what other machines run too, one type in so many.
THINNED = 4
#: The same in `make test`, where that adds a length of vectors only; and of these, at any sizes.
THINNED_LENGTH, THINNED_ANY = 12, 24
#: Of products of any sizes, `make test` compiles one in so many with the automatic strategy.
AUTOMATIC = 6
#: Bounds of m, n and k in `make test`: one tile of any row and a full vector of most, with tails.
NEAR, FAR = (9, 23, 22), (37, 41, 40)
LAYOUTS = tuple(itertools.product(("row", "col"), repeat=3))
STRATEGIES = (Strategy.PACKING, Strategy.TILING, Strategy.AUTO)


class Novelty(Enum):
    """What a machine adds to those before it, for one product of two types."""

    INSTRUCTION = "an instruction of a row that none of them has, or the row itself"
    WAY = "an instruction that none of them multiplied these types with"
    LENGTH = "vectors of a length that the instruction did not have"
    NONE = "no more than another CPU of the same kind"


class Way(NamedTuple):
    """What products are computed with: the row, its instruction, that for B times A, and their vectors."""

    row: str
    instruction: str
    turned: str
    vector_bits: int


def named(tile: TileFma) -> str:
    """An instruction with the types it multiplies."""
    return f"{tile.instruction} {tile.a} {tile.b}"


@cache
def way_of(machine: Machine, types: ProductTypes) -> Way | None:
    """How a machine multiplies; None if it cannot, or if its emulator is known to be wrong about it."""
    problems = [Gemm(dtype=types.a, b_dtype=types.b, out_dtype=types.c, c=c) for c in ("row", "col")]
    try:
        tiles = [instruction_of(problem, machine.isa) for problem in problems]
    except UnsupportedDtype:
        return None
    if not all(map(emulator_of(machine).runs, tiles)):
        return None
    instruction, turned = map(named, tiles)
    return Way(machine.isa.name, instruction, turned, tiles[0].n * tiles[0].acc.bits)


def novelty(machine: Machine, types: ProductTypes, machines: Sequence[Machine]) -> Novelty | None:
    """What a machine adds to those before it; None if it has no way."""
    way = way_of(machine, types)
    if way is None:
        return None
    same_row = [other for other in machines[: machines.index(machine)] if other.isa.name == way.row]
    others = [way_of(other, types) for other in same_row]
    if way in others:
        return Novelty.NONE
    if any(other and other[:3] == way[:3] for other in others):
        return Novelty.LENGTH
    known = {named(tile) for other in same_row for tile in other.isa.tiles}
    return Novelty.WAY if {way.instruction, way.turned} <= known else Novelty.INSTRUCTION


def sample_shapes(kernel: Emitted, number: int) -> Iterator[Shape]:
    """Tails of the register tile, blocks beyond each size and, of narrow results, beyond their sums."""
    blocking = kernel.cut
    problem = kernel.problem
    assert isinstance(blocking, Blocking)
    assert isinstance(problem, Gemm)
    yield Shape(1, 1, 1)
    yield from tile_shapes(kernel, number)
    yield from block_shapes(kernel)
    if problem.strategy is Strategy.AUTO:
        yield from vector_shapes(kernel)
    if problem.types.narrows and blocking.kc <= 200:
        wide, high = SUMS_COLUMNS + blocking.nr + 3, SUMS_ROWS + blocking.mr + 1
        yield Shape(3, wide, blocking.kc + 9) if number % 2 else Shape(high, 3, blocking.kc + 9)


def _emit_gemm(
    kernels: Kernels, types: ProductTypes, layouts: Sequence[str], strategy: Strategy, *, near: bool
) -> Emitted:
    a, b, c = layouts
    problem = Gemm(dtype=types.a, b_dtype=types.b, out_dtype=types.c, a=a, b=b, c=c, strategy=strategy)
    return kernels.emit(problem, near=near)


def _fillings(types: ProductTypes) -> tuple[Filling, Filling]:
    """What most cases hold, and what one in three does."""
    return Filling.EXACT, Filling.ENDS if types.a.is_integer else Filling.ROUGH


def gemm_cases_of(kernels: Kernels, types: ProductTypes, number: int, *, fixed: bool) -> Iterator[Case]:
    """All strides given at run time, on a machine with small caches; then layouts and strategies in turn.

    In `make test` most products are packed always: the automatic strategy holds twice the code.
    """
    first = Strategy.AUTO if EVERY_TEST_RUNS or number % AUTOMATIC == 0 else Strategy.PACKING
    plans: list[tuple[tuple[str, ...], Strategy, bool]] = [(("strided",) * 3, first, True)]
    if fixed:
        plans.append((LAYOUTS[3 * number % 8], STRATEGIES[number % 3], number % 2 == 0))
    turns = itertools.count(5 * number)
    for offset, (layouts, strategy, near) in enumerate(plans):
        kernel = _emit_gemm(kernels, types, layouts, strategy, near=near)
        usual, other = _fillings(types)
        for turn, shape in zip(turns, sample_shapes(kernel, number + 3 * offset), strict=False):
            yield gemm_case(kernel, shape, turn, other if turn % 3 == 2 else usual)
        if types.a == types.b and types.c == I32 and types.a.name in WRAPPING and offset == 0:
            # The turn chooses the ends: both at their largest size.
            extreme = 4 * next(turns) + (3 if types.a.name == "u8" else 0)
            yield gemm_case(kernel, Shape(2, 3, WRAPPING[types.a.name]), extreme, Filling.ENDS)


def batch_reduce_cases_of(kernels: Kernels, types: ProductTypes, turn: int) -> Iterator[Case]:
    """Layouts, tails, beta, count and mode in turn; C at both guard pages."""
    a, b, c = LAYOUTS[(turn + turn // 8) % 8]
    rows, columns, depths = FAR if EVERY_TEST_RUNS else NEAR
    problem = BatchReduceGemm(
        1 + 7 * turn % rows,
        1 + 17 * turn % columns,
        1 + (5 * turn + turn // 8) % depths,
        1 + turn % 3,
        types.a,
        b_dtype=types.b,
        out_dtype=types.c,
        a=a,
        b=b,
        c=c,
        beta=turn // 2 % 2,
        batch=("stride", "address")[(turn + turn // 4) % 2],
    )
    kernel = kernels.emit(problem)
    for at_end, filling in itertools.product((False, True), _fillings(types)):
        yield batch_reduce_case(kernel, turn, at_end=at_end, filling=filling)


def parts_of(types: ProductTypes, way: Hashable) -> set[Hashable]:
    """What a product adds to a test of others: how it is computed, and the conversions before and after."""
    return {way, ("A", types.a), ("B", types.b), ("C", types.acc, types.c)}


class Plan(NamedTuple):
    """What a machine runs of one product: any sizes, then other layouts too; known sizes, at most twice."""

    types: ProductTypes
    number: int
    any_sizes: bool
    layouts: bool
    known_sizes: int


def plans(machine: Machine, machines: Sequence[Machine]) -> Iterator[Plan]:
    """Everything of what is new on a machine; of other lengths of vectors one type in `THINNED`, each machine
    others.

    In `make test` products of any sizes run once for each shape of a machine's instructions and type of their
    sums (micro/units/test_emulate.py has all instructions), products of known sizes for types in which each
    instruction, each type of A and of B and each result of each type of sums occurs. In `make test-all`
    products of any sizes run for every type, of other layouts too, and one type in `THINNED` on machines that
    add nothing.

    The first machine of a row runs `DTYPES` elsewhere.
    """
    start = machines.index(machine)
    first = all(other.isa.name != machine.isa.name for other in machines[:start])
    seen: set[object] = set()
    added_ways = {
        types: parts_of(types, way)
        for types in TYPES
        if novelty(machine, types, machines) in {Novelty.INSTRUCTION, Novelty.WAY}
        and (way := way_of(machine, types)) is not None
        and not (first and types.name in DTYPES)
    }
    chosen = cover(added_ways)
    for number, types in enumerate(TYPES, start):
        new = novelty(machine, types, machines)
        if new is None or (first and types.name in DTYPES):
            continue
        pair, way = (types.a.name, types.b.name), way_of(machine, types)
        tile = way and machine.isa.tile(types.a, types.b)
        nest = tile and (tile.m, tile.n, tile.k, tile.acc)  # how panels are packed and walked
        sampled = number % THINNED == 0
        # Types of C differ in the store, and mixed ones in the conversion: one kernel of each shows it.
        fixed = new is Novelty.INSTRUCTION and types.a == types.b == types.c
        added = new is Novelty.INSTRUCTION or new is Novelty.WAY
        if EVERY_TEST_RUNS:
            whole = new is Novelty.INSTRUCTION or (new is Novelty.WAY and pair not in seen)
            whole = whole or (new is Novelty.LENGTH and sampled)
            yield Plan(types, number, whole, fixed, (new is not Novelty.NONE or sampled) + fixed)
        elif added or (new is Novelty.LENGTH and number % THINNED_LENGTH == 0):
            whole = nest not in seen if added else number % THINNED_ANY == 0
            known = types in chosen or not added
            if whole or known:
                yield Plan(types, number, whole, fixed and sampled, int(known))
        else:
            continue
        if whole:
            seen |= {pair, nest}


def type_cases(kernels: Kernels, machines: Sequence[Machine]) -> Iterator[Case]:
    """The cases of a machine's plans."""
    for plan in plans(kernels.machine, machines):
        if plan.any_sizes:
            yield from gemm_cases_of(kernels, plan.types, plan.number, fixed=plan.layouts)
        for again in range(plan.known_sizes):
            yield from batch_reduce_cases_of(kernels, plan.types, plan.number + again * len(TYPES))
