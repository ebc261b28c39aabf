"""What contractions are refused: orders, primitives without kernel, types that can't hold sums."""

from __future__ import annotations

from math import prod

from tilewright.errors import ContractionPrimitive, SizeOverflow
from tilewright.ops.contraction.problem import Contraction, Dimension, DimensionType, FirstTouch, Main
from tilewright.ops.scattered.problem import SCATTERED_DTYPES
from tilewright.ops.unary.problem import check_unary_dtype
from tilewright.spec.arguments import MAX_SIZE
from tilewright.spec.functions import UnaryOp

#: How many primitive dimensions of each type a main primitive takes; None: any.
_MOST: dict[Main, dict[DimensionType, int] | None] = {
    Main.GEMM: {DimensionType.M: 1, DimensionType.N: 1, DimensionType.K: 1},
    Main.BRGEMM: {DimensionType.M: 1, DimensionType.N: 1, DimensionType.K: 2},
    Main.PACKED_GEMM: None,
}


def check_contraction(problem: Contraction) -> None:
    """Raises what `Contraction` says it raises."""
    _check_sizes(problem)
    _check_order(problem.dimensions)
    _check_primitive(problem.dimensions, problem.main)
    if problem.is_unary:
        _check_unary(problem)
    else:
        _check_sums(problem)


def _check_sizes(problem: Contraction) -> None:
    """Offsets in bytes and the number of iterations fit 64 bits; a length of 0 counts as 1, as in NumPy."""
    sizes = [max(dimension.size or 1, 1) for dimension in problem.dimensions]
    _check_fits("contraction: its iteration space", prod(sizes), MAX_SIZE)
    for name in problem.names:
        strides = [abs(getattr(one, name)) for one in problem.having(name)]
        reached = sum((max(one.size or 1, 1) - 1) * abs(getattr(one, name)) for one in problem.having(name))
        limit = MAX_SIZE // problem.element_of(name).size
        _check_fits(f"contraction: {name}", max(reached + 1, *strides, 0), limit)


def _check_fits(what: str, found: int, limit: int) -> None:
    """Refuses a number of elements beyond a limit."""
    if found > limit:
        raise SizeOverflow(what=what, found=found, limit=limit)


def _check_order(dimensions: tuple[Dimension, ...]) -> None:
    """Primitive dimensions are innermost."""
    inside = False
    for number, dimension in enumerate(dimensions):
        if inside and not dimension.is_primitive:
            raise ContractionPrimitive(
                main="primitive dimensions",
                found=f"dimension {number} ({dimension}) inside of one",
                required="all the last ones: the primitive is what the loops run",
            )
        inside = inside or dimension.is_primitive


def _check_primitive(dimensions: tuple[Dimension, ...], main: Main | UnaryOp) -> None:
    """The primitive dimensions are some that the main primitive has a kernel for."""
    primitive = [dimension for dimension in dimensions if dimension.is_primitive]
    counts = {kind: sum(dimension.type is kind for dimension in primitive) for kind in DimensionType}
    most = _MOST[main] if isinstance(main, Main) else {DimensionType.BATCH: 2}
    if most is None:
        return
    for kind, count in counts.items():
        allowed = most.get(kind, 0)
        if count > allowed:
            raise ContractionPrimitive(
                main=main.value,
                found=f"{count} primitive dimensions of type {kind.value}",
                required=f"at most {allowed}; fuse them, run the others as loops, or take packed_gemm",
            )
    if isinstance(main, UnaryOp) and any(d.type is not DimensionType.BATCH for d in dimensions):
        raise ContractionPrimitive(
            main=main.value, found="dimensions that an operand lacks", required="all of type c"
        )


def _check_unary(problem: Contraction) -> None:
    """One operand: its function on its elements, and nothing before or after."""
    assert isinstance(problem.main, UnaryOp)
    check_unary_dtype(problem.main, problem.dtype)
    for what, dtype in (("out of", problem.out_dtype), ("in1 of", problem.in1_dtype)):
        if dtype != problem.dtype:
            raise ContractionPrimitive(
                main=problem.main.value, found=f"{what} {dtype}", required=f"{problem.dtype}, as in0"
            )
    touches = ["a bias at first touch"] if problem.first is FirstTouch.BIAS else []
    touches += [f"{problem.last} at last touch"] if problem.last else []
    for found in touches:
        raise ContractionPrimitive(
            main=problem.main.value, found=found, required="none: each element is written once"
        )


def _check_sums(problem: Contraction) -> None:
    """Steps have no operands; sums that out can't hold are finished inside of the primitive."""
    types, main = problem.types, problem.main
    assert isinstance(main, Main)
    for step, _, operand in problem.last.typed(types.sums, types.c):
        if operand is not None:
            raise ContractionPrimitive(
                main=f"{main.value}, last touch",
                found=f"the step {step}",
                required="a step without operand; a bias may be copied at first touch",
            )
    packed = main is Main.PACKED_GEMM and bool(problem.primitive)
    if packed and not (types.a == types.b and types.a in SCATTERED_DTYPES):
        raise ContractionPrimitive(
            main=main.value,
            found=f"elements of {types.a} x {types.b}",
            required=f"two of one type among {', '.join(map(str, SCATTERED_DTYPES))}; or take gemm",
        )
    if packed and types.c != types.acc:
        _refuse_sums(problem, "")
    if problem.is_scheduled:
        check_loops(problem)


def check_loops(problem: Contraction) -> None:
    """Refuses loops over k that would keep their sums in an out which rounds them.

    A record without any schedule only describes an operation: its loops are checked when it is compiled.
    """
    types = problem.types
    wide = types.narrows or (types.c.real != types.acc and bool(problem.last))
    outside = [dimension for dimension in problem.loops if dimension.type is DimensionType.K]
    if problem.batch is not None and not problem.hardcoded:
        outside.append(problem.batch)  # which tiles can't sum in registers
    if wide and outside:
        _refuse_sums(problem, f" by the loop {outside[0]}")


def _refuse_sums(problem: Contraction, where: str) -> None:
    types = problem.types
    raise ContractionPrimitive(
        main=problem.main.value,
        found=f"sums of {types.acc} kept in an out of {types.c}{where}",
        required=f"an out of {types.acc}, or a gemm (a brgemm of known sizes) with all k dimensions",
    )
