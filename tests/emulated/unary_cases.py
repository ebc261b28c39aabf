"""Unary kernels with their cases: every operation with and without transposition, on every path of a cut."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from shares import share
from support import Array

from emulated.case_file import UNWRITTEN, Case, Placed, Signature, Values, image
from tilewright.ops.unary.problem import Unary
from tilewright.spec.dtype import Kind
from tilewright.spec.functions import UnaryOp
from tilewright.spec.problem import Layout

if TYPE_CHECKING:
    from emulated.kernels import Emitted, Kernels

#: What one 128-bit register moves, besides the types that are computed with.
MOVED = ("i8", "i16", "c128")
FLOATS = ("f32", "f64")
LAYOUTS = ("col", "row")
#: Operations whose results have one representation; the others give NaN, or a zero of either sign.
BITWISE = frozenset({UnaryOp.ZERO, UnaryOp.IDENTITY, UnaryOp.NEGATE, UnaryOp.SQUARE, UnaryOp.RECIPROCAL})
#: What the others may differ by, in units of the float type's epsilon: the bounds of micro/elements/math.py,
#: and for f64 the rounding of the reference, whose argument of exp or erfc is rounded too.
EPSILONS = {"f32": 4, "f64": 40}
#: Cuts that send every matrix along one path.
CUTS: tuple[dict[str, int], ...] = (
    {"near": 1},
    {"near": 1, "stream_from": 1},
    {"near": 1, "block": 16},
)
#: Columns long enough to be streamed, rows of several blocks.
LARGE = ((1100, 3), (3, 1100), (131, 70), (70, 150))
GAPS = (3, 0, 5)
#: Of the problems of a row, `make test` runs one in so many.
SHARED = 12
#: One pair of sizes in so many for each kernel; the next kernel takes the next ones.
THINNED = 5


@cache
def content(dtype: str, op: UnaryOp) -> Array:
    """Elements to cut operands from: any for moves, else around zero with the values at the ends."""
    kind = Unary("identity", dtype=dtype).dtype
    size = 1 << 15
    random = np.random.default_rng(5)
    if kind.kind is not Kind.FLOAT:
        return np.frombuffer(random.bytes(size * kind.size), kind.numpy).copy()
    bound = 16.0 if dtype == "f32" else 4.0
    found = random.uniform(-bound, bound, size)
    special = [0.0, -0.0, np.inf, -np.inf, 1e-30, -1e-30, 100.0, -100.0]
    special += [] if op in BITWISE else [np.nan, 700.0, -700.0]
    found[::17] = np.resize(special, found[::17].size)
    return found.astype(kind.numpy)


def unary_case(kernel: Emitted, sizes: tuple[int, int], turn: int) -> Case:
    """One call; gaps and ends take turns."""
    problem = kernel.problem
    assert isinstance(problem, Unary)
    (m, n), dtype = sizes, problem.dtype
    start = 13 * turn % 1000
    a = content(str(dtype), problem.op)[start : start + m * n].reshape(m, n)
    with np.errstate(all="ignore"):
        b = problem.reference(a).astype(dtype.numpy)
    steps = []
    for number, operand in enumerate(problem.operands):
        gap = GAPS[(turn + number) % len(GAPS)]
        match operand.layout:
            case Layout.COL:
                steps.append((1, m + gap))
            case Layout.ROW:
                steps.append((n + gap, 1))
            case Layout.STRIDED:
                steps.append(((2 * n + gap, 2), (1, m + gap), (n + gap, 1))[(turn + turn // 3 * number) % 3])
    placed = []
    if problem.op is not UnaryOp.ZERO:
        placed.append(Placed(*image(a, steps[0]), argument=0, at_end=bool(turn % 3)))
    before, origin = image(np.zeros_like(b) if turn % 2 else np.full_like(b, 77), steps[1], UNWRITTEN)
    placed.append(Placed(before, origin, 1, bool((turn + 1) % 3), expected=image(b, steps[1], UNWRITTEN)[0]))
    strides = [step for pair in steps for step in pair]
    if problem.operands[0].layout is not Layout.STRIDED:
        strides = [max(pair) if min(m, n) else 0 for pair in steps]
    fixed = problem.m is not None and problem.n is not None
    approximate = problem.op.computes and problem.op not in BITWISE | {UnaryOp.RELU}
    limits: np.finfo[Any] | None = np.finfo(str(dtype.numpy)) if approximate else None
    allowed = EPSILONS[str(dtype)] if approximate else 0
    return Case(
        label=f"{kernel.name} {m}x{n} strides {steps} cut {kernel.cut} case {turn}",
        kernel=kernel.number,
        signature=Signature.UNARY,
        element=dtype.size,
        integers=(*strides, *(() if fixed else sizes)),
        operands=tuple(placed),
        values=Values.BYTES if problem.op in BITWISE else Values.of(dtype),
        relative=allowed * float(limits.eps) if limits else 0.0,
        absolute=allowed * float(limits.smallest_subnormal) if limits else 0.0,
    )


def problems(*, every: bool) -> Iterator[tuple[Unary, dict[str, int]]]:
    """Problems and how their cut is changed: all, or a sample."""
    for number, (op, dtype, b) in enumerate(itertools.product(UnaryOp, FLOATS, LAYOUTS)):
        if every or number % 7 == 0:
            yield Unary(op, dtype=dtype, b=b), {}
    if not every:
        return
    moved = [Unary(op, dtype=dtype, b=b) for op in ("zero", "identity") for dtype in MOVED for b in LAYOUTS]
    moved += [Unary("identity", dtype=dtype, a="strided", b="strided") for dtype in (*FLOATS, *MOVED)]
    yield from ((problem, {}) for problem in moved)
    cut = [Unary(op, dtype="f32", b=b) for op in ("identity", "zero", "reciprocal", "gelu") for b in LAYOUTS]
    cut += [Unary("identity", dtype=dtype, b="row") for dtype in ("f64", *MOVED)]
    yield from itertools.product(cut, CUTS)
    for number, (m, n) in enumerate(((1, 1), (3, 5), (17, 4), (8, 33), (64, 48), (131, 9))):
        fixed = ("identity", "relu", "tanh")[number % 3]
        yield from ((Unary(fixed, m, n, dtype, b=LAYOUTS[number % 2]), {}) for dtype in FLOATS)


def unary_cases(kernels: Kernels, *, every: bool) -> Iterator[Case]:
    """Every tail of vectors and squares; matrices of many blocks where the cut is changed."""
    turns = itertools.count()
    chosen = list(problems(every=every))
    if every:
        chosen = share(chosen, SHARED, kernels.row_number)
    for number, (problem, changed) in enumerate(chosen):
        kernel = kernels.emit(problem, cut=changed)
        if problem.m is not None and problem.n is not None:
            sizes = [(problem.m, problem.n)] * 6
        else:
            lanes = kernels.machine.isa.vector_bits // problem.dtype.bits
            sides = sorted(
                {1, 2, 3, 5, 33, 70, *(lanes + offset for offset in (-1, 0, 1)), 2 * lanes + 3} - {0}
            )
            sizes = list(itertools.product(sides, sides))[number % THINNED :: THINNED]
            sizes += LARGE if changed else ()
        for size in sizes:
            yield unary_case(kernel, size, next(turns))
