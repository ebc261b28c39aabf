"""GEMM and batch-reduce kernels with their cases: layouts, strategies, sizes around every block, factors."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from shares import share
from support import Array

from emulated.case_file import UNREAD, UNWRITTEN, Case, Placed, Scalars, Signature, Values, image
from emulated.elements import Filling, allowed, cut, stored
from emulated.emulators import emulator_of
from emulated.kernels import Emitted, Kernels
from tilewright.macro.blocking import Blocking
from tilewright.macro.cost import STREAMED_ROWS
from tilewright.ops.batch_reduce.problem import BatchReduceGemm
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.gemm.streaming import DOT_DEPTH, DOT_ROWS, STREAMED_VECTORS, SUMS_BYTES
from tilewright.spec.dtype import DType
from tilewright.spec.problem import Layout, Strategy

LAYOUTS = ("row", "col", "strided")
DTYPES = ("f32", "f64")
#: alpha and beta; of integers, the halves are threes.
COEFFICIENTS = ((1.0, 0.0), (1.0, 1.0), (0.5, -2.0), (0.0, 1.0), (2.0, 0.0), (-1.0, 1.0), (0.0, 0.0))
#: One case in so many has values that are not finite.
NOT_FINITE = 9
#: Elements between lines; they take turns.
GAPS = (3, 0)
#: Of the plans of a row's first machine, `make test` runs one in so many; of the others', every second one.
SHARED = 24
#: The same of the layouts of batch-reduce kernels.
SHARED_BATCH = 12
#: One pair of sizes in so many for each kernel; the next kernel takes the next ones.
THINNED = 7

Size = tuple[int, int, int]


class Shape(NamedTuple):
    """Sizes of a case, and whether its operands stand without gaps."""

    m: int
    n: int
    k: int
    dense: bool = False


def strides(layout: Layout, rows: int, columns: int, gap: int, turn: int) -> tuple[int, int]:
    """Strides in elements; strided operands are spread, reversed, or one of the other layouts."""
    match layout:
        case Layout.ROW:
            return columns + gap, 1
        case Layout.COL:
            return 1, rows + gap
        case Layout.STRIDED:
            spread = (2 * columns + gap, 2)
            return (spread, (columns + gap, 1), (-(columns + gap), -1), (1, rows + gap))[turn % 4]
        case Layout.PACKED:
            raise ValueError(layout)


def gemm_case(kernel: Emitted, shape: Shape, turn: int, filling: Filling = Filling.EXACT) -> Case:
    """One product; factors, gaps, ends and values that are not finite take turns."""
    problem = kernel.problem
    assert isinstance(problem, Gemm)
    types, (m, n, k, dense) = problem.types, shape
    shapes = ((m, k), (k, n), (m, n))
    alpha, beta = COEFFICIENTS[turn % len(COEFFICIENTS)]
    if types.a.is_integer:
        alpha = 3.0 if alpha == 0.5 else alpha
    a, b, c = (
        cut(dtype, filling, seed, sides, turn)
        for seed, (dtype, sides) in enumerate(zip((types.a, types.b, types.c), shapes, strict=True))
    )
    floats = not types.a.is_integer
    if turn % NOT_FINITE == 0 and k and floats and not types.is_complex and filling is Filling.EXACT:
        a[turn % m, turn % k] = (np.inf, -np.inf, np.nan)[turn // NOT_FINITE % 3]
        b[(turn + 1) % k, turn % n] = np.inf
    with np.errstate(all="ignore"):
        exact = problem.reference(a, b, c, alpha=alpha, beta=beta)
    bound = None
    if filling is Filling.ROUGH:
        bound = allowed(types, exact, a, b, beta * c.astype(exact.dtype), alpha)
    if floats and beta == 0:
        c[...] = np.nan
    if floats and alpha == 0:
        a[...], b[...] = np.nan, np.nan
    gap = 0 if dense else GAPS[turn % 2]
    steps = [
        strides(operand.layout, rows, columns, gap, turn + number)
        for number, (operand, (rows, columns)) in enumerate(zip(problem.operands, shapes, strict=True))
    ]
    slack = emulator_of(kernel.machine).slack_bytes

    def at_end(array: Array, step: tuple[int, int], number: int) -> bool:
        """At which guard page; where masked lanes are read, lines without elements lie inside the memory."""
        return min(step) < 0 if slack and not array.size else bool((turn + number // 2) % 3)

    places = [
        Placed(*image(array, step, gap), argument=number, at_end=at_end(array, step, number))
        for number, (array, step, gap) in enumerate(
            zip((a, b, c), steps, (UNREAD, UNREAD, UNWRITTEN), strict=True)
        )
    ]
    places[2] = replace(
        places[2],
        expected=image(stored(exact, types.c), steps[2], UNWRITTEN)[0],
        allowed=b"" if bound is None else image(bound, steps[2], 0)[0],
    )
    return Case(
        label=f"{kernel.name} {m}x{n}x{k} {filling.value} alpha {alpha:g} beta {beta:g} strides {steps} "
        f"case {turn}",
        kernel=kernel.number,
        signature=Signature.GEMM,
        element=types.c.real.size,
        integers=(m, n, k, *(step for pair in steps for step in pair)),
        operands=tuple(places),
        alpha=alpha,
        beta=beta,
        values=Values.of(types.c),
        scalars=Scalars.of(types.acc),
        scratch_bytes=kernel.scratch_bytes,
    )


def accumulator_of(kernel: Emitted) -> DType:
    """The type of a kernel's sums."""
    assert isinstance(kernel.problem, Gemm | BatchReduceGemm)
    return kernel.problem.types.acc


def lanes_of(kernel: Emitted) -> int:
    """How many of a kernel's sums are in one vector."""
    return kernel.machine.isa.lanes(accumulator_of(kernel))


def around(*sizes: int) -> set[int]:
    """Each size with its neighbours."""
    return {size + offset for size in sizes for offset in (-1, 0, 1) if size + offset > 0}


def tile_shapes(kernel: Emitted, number: int) -> Iterator[Shape]:
    """Every tail of the register tile, a sample of the pairs for each kernel; depths take turns."""
    blocking, lanes = kernel.cut, lanes_of(kernel)
    assert isinstance(blocking, Blocking)
    sizes = sorted({1, 2, 3, *around(lanes, blocking.mr, blocking.nr), 2 * max(blocking.mr, blocking.nr) + 3})
    depths = [0, 1, 2, 7, 8, 9, 17, 33]
    if blocking.kc <= 256:
        depths += [blocking.kc - 1, blocking.kc, blocking.kc + 1, 2 * blocking.kc + 9]
    pairs = list(itertools.product(sizes, sizes))[number % THINNED :: THINNED]
    for turn, (m, n) in enumerate(pairs):
        yield Shape(m, n, depths[(turn + number) % len(depths)])


def block_shapes(kernel: Emitted) -> Iterator[Shape]:
    """Sizes that meet every cache block, and the thresholds of a machine with small caches."""
    blocking = kernel.cut
    assert isinstance(blocking, Blocking)
    mc, nc, kc = (
        min(size, bound) for size, bound in ((blocking.mc, 96), (blocking.nc, 300), (blocking.kc, 1100))
    )
    yield Shape(2 * mc + 5, nc + blocking.nr + 3, min(kc, 75) + 9)
    yield Shape(mc + 1, 2 * blocking.nr + 1, kc + 9)
    yield Shape(blocking.mr + 1, nc + 1, min(kc, 75) + 1)


def vector_shapes(kernel: Emitted) -> Iterator[Shape]:
    """One column, one row and few rows: dot products, turned and streamed matrices."""
    lanes = lanes_of(kernel)
    width, block = STREAMED_VECTORS * lanes, SUMS_BYTES // accumulator_of(kernel).size
    sides = [1, 2, DOT_ROWS + 1, 2 * DOT_ROWS + 3]
    depths = [0, 1, lanes - 1, lanes, lanes + 1, 4 * lanes, 5 * lanes + 1, 8 * lanes + 3]
    for turn, side in enumerate((*sides, *sides, width - 1, 2 * width + 3, lanes * lanes + 1)):
        yield Shape(side, 1, depths[turn % len(depths)], dense=True)
        yield Shape(1, side, depths[(turn + 3) % len(depths)], dense=True)
    yield Shape(DOT_ROWS + 1, 1, DOT_DEPTH + 5, dense=True)
    yield Shape(1, DOT_ROWS + 1, DOT_DEPTH + 5, dense=True)
    yield Shape(1, block + width + 3, 9)
    yield Shape(block + width + 3, 1, 9)
    if kernel.machine.l2.size <= 1 << 16:
        far = kernel.machine.l2.size // accumulator_of(kernel).size
        for rows in range(2, STREAMED_ROWS + 2):
            yield Shape(rows, 3 * width + rows, far // (3 * width) + rows)
            yield Shape(3 * width + rows, rows, far // (3 * width) + rows)


def gemm_cases(kernels: Kernels, *, every_layout: bool) -> Iterator[Case]:
    """Kernels of all layouts whose strategies and caches take turns, or of a few.

    Of the second type, which differs from the first in the lanes only, every fourth layout.
    """
    turn = 0
    strategies = itertools.cycle((Strategy.AUTO, Strategy.TILING, Strategy.PACKING, Strategy.AUTO))
    for dtype in DTYPES:
        first = dtype == DTYPES[0]
        combinations = list(itertools.product(LAYOUTS, repeat=3))[:: 1 if first else 4]
        chosen = combinations if every_layout else [("row",) * 3, ("row", "col", "row"), ("strided",) * 3]
        plans = [(layouts, next(strategies), bool(number % 2)) for number, layouts in enumerate(chosen)]
        whole = (("row",) * 3, ("strided",) * 3, ("row", "col", "row")) if every_layout and first else ()
        plans += [
            (layouts, strategy, near)
            for layouts, strategy, near in itertools.product(whole, Strategy, (False, True))
            if (layouts, strategy, near) not in plans
        ]
        chosen_plans = share(plans, SHARED if every_layout else 2, kernels.row_number)
        for number, ((a, b, c), strategy, near) in enumerate(chosen_plans):
            kernel = kernels.emit(Gemm(dtype=dtype, a=a, b=b, c=c, strategy=strategy), near=near)
            shapes = itertools.chain(
                tile_shapes(kernel, number),
                block_shapes(kernel) if near or number % 5 == 0 else (),
                vector_shapes(kernel) if strategy is Strategy.AUTO else (),
            )
            for shape in shapes:
                yield gemm_case(kernel, shape, turn)
                turn += 1


# --- batch-reduce ---------------------------------------------------------------------------------


def batch_reduce_case(kernel: Emitted, turn: int, *, at_end: bool, filling: Filling = Filling.EXACT) -> Case:
    """One batch of products with gaps between lines and matrices."""
    problem = kernel.problem
    assert isinstance(problem, BatchReduceGemm)
    m, n, k, count, types = problem.m, problem.n, problem.k, problem.count, problem.types
    dtypes, shapes = (types.a, types.b, types.c), ((count, m, k), (count, k, n), (1, m, n))
    a, b, c = (
        cut(dtype, filling, seed, shape, turn)
        for seed, (dtype, shape) in enumerate(zip(dtypes, shapes, strict=True))
    )
    exact = problem.reference(a, b, c[0])
    expected = stored(exact, types.c)[np.newaxis]
    bound = None
    if filling is Filling.ROUGH:
        bound = allowed(types, exact, a, b, problem.beta * c[0].astype(exact.dtype), 1.0)[np.newaxis]
    if problem.beta == 0 and not types.a.is_integer:
        c[...] = np.nan
    placed, leading, steps = [], [], []
    addresses = problem.batch.value == "address"
    for number, (operand, array) in enumerate(zip(problem.operands, (a, b, c), strict=True)):
        _, rows, columns = array.shape
        by_rows = operand.layout is Layout.ROW
        line = (columns if by_rows else rows) + GAPS[turn % 2]
        step = line * (rows if by_rows else columns) + 3
        every = (step, line, 1) if by_rows else (step, 1, line)
        laid_out, origin = image(array, every, UNREAD if number < 2 else UNWRITTEN)
        argument = None if addresses and number < 2 else number
        one = Placed(laid_out, origin, argument, at_end)
        if number == 2:
            about = b"" if bound is None else image(bound, every, 0)[0]
            one = replace(one, expected=image(expected, every, UNWRITTEN)[0], allowed=about)
        placed.append(one)
        leading.append(line)
        steps.append(0 if addresses else step)
        if addresses and number < 2:
            offsets = np.arange(count, dtype="<i8") * (step * operand.dtype.size)
            placed.append(Placed(offsets.tobytes(), 0, number, at_end, None, target=len(placed) - 1))
    place = "end" if at_end else "start"
    return Case(
        label=f"{kernel.name} {filling.value} leading {leading} at {place} case {turn}",
        kernel=kernel.number,
        signature=Signature.BATCH_REDUCE,
        element=types.c.real.size,
        integers=(*leading, *steps[:2]),
        operands=tuple(placed),
        values=Values.of(types.c),
    )


def batch_reduce_cases(kernels: Kernels, *, each: int) -> Iterator[Case]:
    """All combinations of layouts, each with `each` sizes, or a share of them; tails, beta, count and mode
    take turns."""
    combinations = itertools.product(DTYPES, itertools.product(("row", "col"), repeat=3), range(each))
    for turn, (dtype, (a, b, c), _) in share(enumerate(combinations), SHARED_BATCH, kernels.row_number):
        m, n, k = 1 + 7 * turn % 37, 1 + 17 * turn % 41, 1 + (5 * turn + turn // 8) % 40
        kernel = kernels.emit(
            BatchReduceGemm(
                m,
                n,
                k,
                1 + turn % 3,
                dtype,
                a=a,
                b=b,
                c=c,
                beta=turn // 2 % 2,
                batch=("stride", "address")[(turn + turn // 4) % 2],
            )
        )
        for at_end in (False, True):
            yield batch_reduce_case(kernel, turn, at_end=at_end)
