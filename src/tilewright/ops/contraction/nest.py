"""The loops of a contraction, exactly as given, around its first touch, its primitive and its last touch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from tilewright.ir.expressions import AllOf, AnyOf, Compare, Constant, Expression, Name, Relation, Scalar
from tilewright.ir.nodes import (
    Applied,
    Buffer,
    Execution,
    Finish,
    If,
    Loop,
    Program,
    Slice,
    Space,
    Statement,
    TileEpilogue,
    UnaryMap,
)
from tilewright.ir.relocate import Place, Relocation
from tilewright.machine.machine import Machine
from tilewright.ops.contraction.dimension import ExecutionType
from tilewright.ops.contraction.main import FirstTouch
from tilewright.ops.contraction.primitive import (
    DimensionLoop,
    PrimitiveContext,
    form_of,
    named,
    split,
    takes_steps,
)
from tilewright.ops.contraction.problem import Contraction
from tilewright.spec.dtype import DType
from tilewright.spec.functions import UnaryOp
from tilewright.spec.roles import DimensionRole


def open_sizes(problem: Contraction) -> tuple[str, ...]:
    """The names of the sizes that a call gives, in the order of the dimensions.

    >>> from tilewright.ops.contraction.dimension import (Dimension)
    >>> open_sizes(Contraction([Dimension("c", "primitive", in0=1, out=1)], main="relu"))
    ('c_0_size',)
    """
    return tuple(one.extent.name for one in named(problem) if isinstance(one.extent, Name))


def build_contraction(problem: Contraction, cut: Any, machine: Machine, name: str) -> Program:
    """The tile IR of a contraction.

    Before: ``m sequential 64, k sequential 8, m n k primitive; first zero, last relu``. After::

        for m_0 = 0 .. 64 step 1:
          for k_1 = 0 .. 8 step 1:
            if k_1 == 0:
              unary zero out
            matmul out = 1.0 * out + in0 . in1
            if 8 <= k_1 + 1:
              epilogue out then relu

    Where no k runs as a loop, tiles replace out, and take the steps before they store. Operands of a length
    of 0 make a program that does nothing: see `ops/contraction/kernel.py`.

    Examples
    --------
    >>> from tilewright.machine.catalog import find_machine
    >>> from tilewright.ops.contraction.dimension import (Dimension)
    >>> from tilewright.ops.contraction.primitive import choose_contraction
    >>> machine = find_machine("znver5")
    >>> line = Contraction([Dimension("c", "primitive", 8, in0=1, out=1)], main="relu")
    >>> len(build_contraction(line, choose_contraction(line, machine), machine, "kernel").body)
    1
    """
    loops, inner = split(problem)
    sums = [one for one in loops if one.dimension.type is DimensionRole.K]
    zeros = not sums and problem.first is FirstTouch.ZERO
    steps = not sums and takes_steps(problem)
    in_task = any(one.dimension.execution is ExecutionType.PARALLEL for one in loops)
    laid = form_of(problem).lay(
        problem, cut, machine, PrimitiveContext(adds=not zeros, steps=steps, led=not loops)
    )
    statements = (
        *(() if zeros or problem.is_unary else _first_touch(problem, inner, sums)),
        *laid.statements,
        *(() if steps or not problem.last else _last_touch(problem, inner, sums)),
    )
    places = {operand: Place(operand, _offset(problem, loops, operand)) for operand in problem.names}
    body = _around(loops, Relocation(places, {}, in_task).block(statements))
    buffers = [Buffer(operand, _stored(problem, operand), Space.ARGUMENT) for operand in problem.names]
    buffers += [_own(buffer) if in_task else buffer for buffer in laid.buffers]
    if 0 in [dimension.size for dimension in problem.dimensions]:
        body = ()
    return Program(name, (*open_sizes(problem), *laid.sizes), (), tuple(buffers), body)


def _parts(problem: Contraction) -> int:
    """Numbers per element of out in tile IR: 2 where products are complex."""
    return 1 if problem.is_unary else 2 if problem.types.is_complex else 1


def _stored(problem: Contraction, operand: str) -> DType:
    """The type of a buffer: out and bias of complex products are stored as pairs of numbers."""
    found = problem.element_of(operand)
    return found.real if operand in ("out", "bias") and _parts(problem) == 2 else found


def _offset(problem: Contraction, loops: tuple[DimensionLoop, ...], operand: str) -> Expression:
    """Where the block of an operand begins, in elements of its buffer."""
    parts = _parts(problem) if operand in ("out", "bias") else 1
    found: Expression = Constant(0)
    for one in loops:
        found = found + Name(one.axis) * (getattr(one.dimension, operand) * parts)
    return found


def _own(buffer: Buffer) -> Buffer:
    """Scratch as a task has it: what all threads would share, each has to itself."""
    return replace(buffer, space=Space.THREAD) if buffer.space is Space.SHARED else buffer


def _around(loops: tuple[DimensionLoop, ...], body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """The loops, outermost first; inside of a task all others run in sequence.

    Parallel loops directly inside of one another are one space of tasks.
    """
    kinds = [one.dimension.execution is ExecutionType.PARALLEL for one in loops]
    first = kinds.index(True) if True in kinds else len(kinds)
    end = first
    while end < len(kinds) and kinds[end]:
        end += 1
    for place in reversed(range(len(loops))):
        execution = Execution.PARALLEL if first <= place < end else Execution.SEQUENTIAL
        one = loops[place]
        body = (Loop(one.axis, Constant(0), one.extent, Constant(1), body, execution),)
    return body


# --- first and last touch -------------------------------------------------------------------------


def _first_touch(
    problem: Contraction, inner: tuple[DimensionLoop, ...], sums: list[DimensionLoop]
) -> tuple[Statement, ...]:
    """Zeros or elements of the bias, before the first product of a block is added."""
    if problem.first is FirstTouch.NONE:
        return ()
    first = AnyOf((AllOf(tuple(Compare(Relation.EQ, Name(one.axis), Constant(0)) for one in sums)),))
    return _guarded(first, sums, _over_block(problem, inner, _begin))


def _last_touch(
    problem: Contraction, inner: tuple[DimensionLoop, ...], sums: list[DimensionLoop]
) -> tuple[Statement, ...]:
    """The steps of the epilogue, in place, once the last product of a block has been added."""
    last = AnyOf((AllOf(tuple(Compare(Relation.LE, one.extent, Name(one.axis) + 1) for one in sums)),))
    return _guarded(last, sums, _over_block(problem, inner, _finish))


def _guarded(
    condition: AnyOf, sums: list[DimensionLoop], body: tuple[Statement, ...]
) -> tuple[Statement, ...]:
    return (If(condition, body),) if sums else body


class _OutBlock(NamedTuple):
    """Two dimensions of a block of out: lengths, and strides by row and column in out and bias."""

    problem: Contraction
    sizes: tuple[Expression, Expression]
    offset: tuple[Expression, Expression]
    out: tuple[int, int]
    bias: tuple[int, int]


def _over_block(
    problem: Contraction,
    inner: tuple[DimensionLoop, ...],
    touch: Callable[[_OutBlock], tuple[Statement, ...]],
) -> tuple[Statement, ...]:
    """A touch of every element that one primitive writes, by the two dimensions nearest in out."""
    written = [one for one in inner if "out" in one.dimension.type.operands]
    written.sort(key=lambda one: abs(one.dimension.out), reverse=True)
    outer, last = written[:-2], written[-2:]
    missing = 2 - len(last)
    sizes = (*(Constant(1) for _ in range(missing)), *(one.extent for one in last))
    out = (*(1 for _ in range(missing)), *(one.dimension.out for one in last))
    bias = (*(1 for _ in range(missing)), *(one.dimension.bias for one in last))
    offset: Expression = Constant(0)
    from_bias: Expression = Constant(0)
    parts = _parts(problem)
    for one in outer:
        offset = offset + Name(one.axis) * (one.dimension.out * parts)
        from_bias = from_bias + Name(one.axis) * (one.dimension.bias * parts)
    body = touch(
        _OutBlock(problem, (sizes[0], sizes[1]), (offset, from_bias), (out[0], out[1]), (bias[0], bias[1]))
    )
    for one in reversed(outer):
        body = (Loop(one.axis, Constant(0), one.extent, Constant(1), body),)
    return body


def _begin(block: _OutBlock) -> tuple[Statement, ...]:
    """Zeros, or a copy of the bias; of pairs of numbers one part after the other."""
    problem, parts = block.problem, _parts(block.problem)
    found = []
    for part in range(parts):
        to = _window("out", block.offset[0] + part, block.out, parts)
        source = _window("bias", block.offset[1] + part, block.bias, parts)
        zeros = problem.first is FirstTouch.ZERO
        op = UnaryOp.ZERO if zeros else UnaryOp.IDENTITY
        found.append(UnaryMap(op, to, None if zeros else source, *block.sizes))
    return tuple(found)


def _finish(block: _OutBlock) -> tuple[Statement, ...]:
    """Steps on elements of out, whose columns are adjacent, or taken one by one."""
    problem, types = block.problem, block.problem.types
    steps = Finish(tuple(Applied(one.step) for one in problem.last.typed(types.sums, types.c)))
    one, zero = Scalar(1.0), Scalar(0.0)
    (rows, columns), (row, column) = block.sizes, block.out
    if column == 1 or columns == Constant(1):
        place = _window("out", block.offset[0], (row, 1), 1)
        return (TileEpilogue(place, place, rows, columns, one, zero, steps),)
    place = _window("out", block.offset[0] + Name("column") * column, (row, 1), 1)
    body = TileEpilogue(place, place, rows, Constant(1), one, zero, steps)
    return (Loop("column", Constant(0), columns, Constant(1), (body,)),)


def _window(buffer: str, offset: Expression, strides: tuple[int, int], parts: int) -> Slice:
    return Slice(buffer, offset, (Constant(strides[0] * parts), Constant(strides[1] * parts)))
