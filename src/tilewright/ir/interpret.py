"""Runs tile IR with NumPy: the oracle for every macro-kernel, on machines that lack the ISA too.

Every window is checked against the bounds of its buffer. Scratch starts as NaN, so that a read of elements
that were never written shows in the result. With several threads, tasks run last to first, and each starts
with per-thread scratch of NaN.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import ml_dtypes
import numpy as np

from tilewright.errors import InvalidTileIr
from tilewright.ir.expressions import (
    ADJACENT,
    AnyOf,
    Binary,
    Constant,
    Expression,
    FirstElse,
    Lead,
    Name,
    Relation,
    Scalar,
    ScalarValue,
    TableEntry,
    Threads,
    Unless,
    apply,
)
from tilewright.ir.nodes import (
    Array,
    Execution,
    Finish,
    If,
    Let,
    Loop,
    Pack,
    Primitive,
    Program,
    Slice,
    Space,
    Statement,
    Stored,
    TileEpilogue,
    TileMatmul,
    UnaryMap,
    sums_type,
)
from tilewright.spec.dtype import DType, find_numpy_dtype
from tilewright.spec.epilogue import Epilogue
from tilewright.spec.functions import meaning
from tilewright.spec.parts import Parts
from tilewright.spec.weights import Weights

#: A buffer and the index of the element at offset 0, or one of these for each pointer.
_Held: TypeAlias = tuple[Array, int] | list[tuple[Array, int]]


class Interpreter:
    """One run of a program on buffers: the meaning of expressions, conditions and primitives."""

    def __init__(
        self,
        buffers: dict[str, _Held],
        scalars: Mapping[str, complex],
        threads: int = 1,
        own: tuple[str, ...] = (),
    ) -> None:
        self.buffers, self.scalars, self.threads = buffers, scalars, threads
        self.own = own  # the buffers of each thread
        self.last: dict[str, bool] = {}  # which axes are at their last iteration

    def integer(self, node: Expression, names: Mapping[str, int]) -> int:
        """An expression in 64-bit integers, given the names in scope."""
        match node:
            case Constant(value):
                return value
            case Name(name):
                return names[name]
            case Binary(operator, left, right):
                return apply(operator, self.integer(left, names), self.integer(right, names))
            case Lead(buffer, unit_bytes, offset):
                held = self.buffers.get(buffer)
                if held is None:  # a run without arrays: each begins with a line
                    return 0
                assert isinstance(held, tuple)
                flat, origin = held
                place = origin + self.integer(offset, names)
                address = int(flat.__array_interface__["data"][0]) + place * flat.itemsize
                return -address % unit_bytes // flat.itemsize
            case TableEntry(buffer, index):
                held = self.buffers[buffer]
                assert isinstance(held, tuple)
                flat, origin = held
                return int(flat[origin + self.integer(index, names)])
            case Threads():
                return self.threads
            case Unless(scalar, value):
                return 0 if self.scalars[scalar] == 0 else self.integer(value, names)
            case _:
                raise InvalidTileIr(where=repr(node), reason="is not an expression")

    def scalar(self, value: ScalarValue, first: Mapping[str, bool]) -> Any:
        """A scalar, given which axes are at their first iteration."""
        if isinstance(value, FirstElse):
            value = value.first if first[value.axis] else value.rest
        return self.scalars[value.value] if isinstance(value.value, str) else value.value

    def holds(self, condition: AnyOf, names: Mapping[str, int]) -> bool:
        """Whether a condition holds."""
        tests = {Relation.EQ: int.__eq__, Relation.LE: int.__le__, Relation.LT: int.__lt__}
        return any(
            all(
                tests[term.relation](self.integer(term.left, names), self.integer(term.right, names))
                for term in conjunction.terms
            )
            for conjunction in condition.terms
        )

    def window(self, part: Slice, shape: tuple[int, int], names: Mapping[str, int]) -> Array:
        """A strided view of a buffer after a bounds check."""
        held = self.buffers[part.buffer]
        if part.index is not None:
            assert isinstance(held, list)
            held = held[self.integer(part.index, names)]
        assert isinstance(held, tuple)
        assert part.interleave == 1, "windows with adjacent depths are read and written by `elements`"
        flat, origin = held
        start = origin + self.integer(part.offset, names)
        strides = tuple(self.integer(stride, names) for stride in part.strides)
        if 0 in shape:
            return np.empty(shape, flat.dtype)
        reach = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
        low = start + sum(min(0, step) for step in reach)
        high = start + sum(max(0, step) for step in reach)
        if low < 0 or high >= flat.size:
            raise InvalidTileIr(
                where=f"{part.buffer}[{start}; {strides}] of shape {shape}",
                reason=f"reaches elements {low}..{high} of {flat.size}",
            )
        return np.lib.stride_tricks.as_strided(
            flat[start:], shape, tuple(stride * flat.itemsize for stride in strides)
        )

    def elements(self, part: Slice, shape: tuple[int, int], names: Mapping[str, int]) -> _Elements:
        """The elements of a window of any interleave, in panels or not."""
        if part.interleave == 1 and part.panels is None:
            return _Elements(self.window(part, shape, names), ...)
        held = self.buffers[part.buffer]
        if part.index is not None:
            assert isinstance(held, list)
            held = held[self.integer(part.index, names)]
        assert isinstance(held, tuple)
        flat, origin = held
        first, second = (self.integer(stride, names) for stride in part.strides)
        i, p = np.ogrid[: shape[0], : shape[1]]
        lane = i if part.panels is None else i % part.panels.lanes
        at = origin + self.integer(part.offset, names) + lane * first
        if part.panels is not None:
            at = at + i // part.panels.lanes * self.integer(part.panels.stride, names)
        at = at + p // part.interleave * second + p % part.interleave
        if at.size and not (at.min() >= 0 and at.max() < flat.size):
            raise InvalidTileIr(
                where=f"{part.buffer} by {part.interleave} of shape {shape}",
                reason=f"reaches elements {at.min()}..{at.max()} of {flat.size}",
            )
        return _Elements(flat, at)

    def block(self, body: tuple[Statement, ...], names: dict[str, int], first: dict[str, bool]) -> None:
        """Runs the statements of one block."""
        names = dict(names)
        for statement in body:
            match statement:
                case Let(name, value):
                    names[name] = self.integer(value, names)
                case Loop(execution=Execution.PARALLEL):
                    self.tasks(statement, names, first)
                case Loop(axis, begin, end, step, inner):
                    start, stride = self.integer(begin, names), self.integer(step, names)
                    if stride <= 0:
                        raise InvalidTileIr(where=f"loop {axis}", reason=f"step {stride} is not positive")
                    stop = self.integer(end, names)
                    for position in range(start, stop, stride):
                        self.last[axis] = position + stride >= stop
                        self.block(inner, names | {axis: position}, first | {axis: position == start})
                case If(condition, then, otherwise):
                    self.block(then if self.holds(condition, names) else otherwise, names, first)
                case Pack():
                    self.pack(statement, names)
                case UnaryMap():
                    self.unary(statement, names)
                case TileMatmul():
                    self.matmul(statement, names, first)
                case TileEpilogue():
                    self.epilogue(statement, names, first)
                case Primitive():
                    statement.run(_InterpretedOperands(self, statement, names, first))
                case _:
                    raise InvalidTileIr(where=repr(statement), reason="is not a statement")

    def tasks(self, loop: Loop, names: dict[str, int], first: dict[str, bool]) -> None:
        """Every task of a parallel loop."""
        loops = loop.fused()
        spans = []
        for one in loops:
            begin, end, step = (self.integer(part, names) for part in (one.begin, one.end, one.step))
            if step <= 0:
                raise InvalidTileIr(where=f"loop {one.axis}", reason=f"step {step} is not positive")
            spans.append(range(begin, end, step))
        tasks = list(itertools.product(*spans))
        for task in tasks if self.threads == 1 else reversed(tasks):
            self.forget()
            axes = {one.axis: position for one, position in zip(loops, task, strict=True)}
            self.block(loops[-1].body, names | axes, first)
        self.forget()

    def forget(self) -> None:
        """Overwrites per-thread scratch: tasks of other threads may have run in between."""
        if self.threads == 1:
            return
        for name in self.own:
            held = self.buffers[name]
            assert isinstance(held, tuple)
            held[0][...] = _nothing(held[0].dtype)

    def pack(self, node: Pack, names: Mapping[str, int]) -> None:
        """The meaning of `Pack`."""
        lanes, depth = self.integer(node.lanes, names), self.integer(node.depth, names)
        if node.stored is None:
            source = _parts(self.elements(node.source, (lanes, depth), names).values, node.parts)
        else:
            source = self.stored(node.source, node.stored, (lanes, depth), names)
        held = self.buffers[node.destination.buffer]
        assert isinstance(held, tuple)
        lanes, depth = source.shape
        padded = -(-depth // node.unit) * node.unit
        panels = -(-lanes // node.panel)
        whole = np.zeros((panels * node.panel, padded), held[0].dtype)
        whole[:lanes, :depth] = source
        whole[lanes:, :depth] = source[-node.parts.spread[0] :][
            (np.arange(lanes, len(whole)) - lanes) % node.parts.spread[0]
        ]
        # (panel, lane, depth group, kr) -> (panel, depth group, lane, kr)
        order = whole.reshape(panels, node.panel, padded // node.kr, node.kr).transpose(0, 2, 1, 3)
        flat = self.window(
            Slice(node.destination.buffer, node.destination.offset, (Constant(1), Constant(1))),
            (order.size, 1),
            names,
        )
        flat[:, 0] = order.reshape(-1)

    def stored(self, part: Slice, how: Stored, shape: tuple[int, int], names: Mapping[str, int]) -> Array:
        """The elements of a packed weight less their zero points, of shape (lanes, depth), in float64."""
        lanes, depth = shape
        if not how.elements.scaled:
            floats: Array = self.elements(part, shape, names).values.astype(np.float64)
            return floats
        form = Weights(how.elements)
        words = self.elements(part, (lanes, form.words(depth)), names).values
        values: Array = form.unpacked(words, depth).astype(np.float64)
        if how.zero is None:
            return values - how.elements.middle
        group = self.integer(how.group, names)
        zeros = self.elements(how.zero, (lanes, -(-depth // group)), names).values
        values -= np.repeat(zeros, group, axis=1)[:, :depth]
        return values

    def unary(self, node: UnaryMap, names: Mapping[str, int]) -> None:
        """The meaning of `UnaryMap`."""
        shape = (self.integer(node.rows, names), self.integer(node.columns, names))
        destination = self.window(node.destination, shape, names)
        source = destination if node.source is None else self.window(node.source, shape, names)
        destination[...] = meaning(node.op, source)

    def matmul(self, node: TileMatmul, names: Mapping[str, int], first: Mapping[str, bool]) -> None:
        """The meaning of `TileMatmul`."""
        rows, columns, depth = (self.integer(part, names) for part in (node.rows, node.columns, node.depth))
        if rows > node.tile.mr or columns > node.tile.nr:
            raise InvalidTileIr(
                where=f"matmul {node.c.buffer}", reason=f"{rows}x{columns} exceeds {node.tile}"
            )
        c = self.elements(node.c, (rows, columns), names)
        acc = sums_type(node, self.dtype(node.a), self.dtype(node.b))
        exact = _exact(acc.numpy)
        value: Array = np.zeros((rows, columns), exact)
        for left, right in self.batch(node, names) if depth else ():
            a = self.elements(left, (rows, depth // node.depths_of_a), names).values
            a = (_split(a) if node.split else a).astype(exact)
            if node.stored is None:
                across, deep = node.spread_of_b
                b = self.elements(right, (columns // across, depth // deep), names).values
                b = (_rotated(b) if node.rotated else b).astype(exact)
            else:
                b = self.stored(right, node.stored, (columns, depth), names)
            if node.groups is not None:
                group = self.integer(node.groups.depth, names)
                scales = self.elements(node.groups.scale, (columns, -(-depth // group)), names).values
                b = b * np.repeat(scales, group, axis=1)[:, :depth].astype(exact)
            if node.copied is not None:
                self.window(node.copied, (columns, depth), names)[...] = b
            value += a @ b.T
        if node.carry is not None:
            sums = self.window(node.carry.sums, (rows, columns), names)
            if not first[node.carry.axis]:
                value += sums
            if not self.last[node.carry.axis]:
                sums[...] = value
                return
        if depth:
            value = exact(self.scalar(node.alpha, first)) * value
        beta = self.scalar(node.beta, first)
        value = value if beta == 0 else value + exact(beta) * c.values.astype(exact)
        c.store(self.finished(node.finish, value, (acc, self.dtype(node.c)), names))

    def epilogue(self, node: TileEpilogue, names: Mapping[str, int], first: Mapping[str, bool]) -> None:
        """The meaning of `TileEpilogue`."""
        shape = (self.integer(node.rows, names), self.integer(node.columns, names))
        c = self.elements(node.c, shape, names)
        acc = self.dtype(node.sums)
        exact = _exact(acc.numpy)
        value = exact(self.scalar(node.alpha, first)) * self.window(node.sums, shape, names).astype(exact)
        beta = self.scalar(node.beta, first)
        value = value if beta == 0 else value + exact(beta) * c.values.astype(exact)
        c.store(self.finished(node.finish, value, (acc, self.dtype(node.c)), names))

    def finished(
        self, node: Finish | None, value: Array, types: tuple[DType, DType], names: Mapping[str, int]
    ) -> Array:
        """The meaning of `Finish` on sums, given their type and C's."""
        if node is None or (node.axis is not None and not self.last[node.axis]):
            return value
        operands = [one.operand for one in node.steps if one.operand is not None]
        shape = (value.shape[0], value.shape[1])
        given = [self.elements(operand, shape, names).values for operand in operands]
        return Epilogue(one.step for one in node.steps).reference(value, given, *types)

    def dtype(self, part: Slice) -> DType:
        """The element type of a buffer."""
        held = self.buffers[part.buffer]
        array, _ = held[0] if isinstance(held, list) else held
        found = find_numpy_dtype(array.dtype)
        assert found is not None
        return found

    def batch(self, node: TileMatmul, names: Mapping[str, int]) -> Iterator[tuple[Slice, Slice]]:
        """The slices of A and B of each product of a tile."""
        if node.batch is None:
            yield node.a, node.b
            return
        steps = (node.batch.a_step, node.batch.b_step)
        for number in range(self.integer(node.batch.count, names)):
            if node.batch.addresses:
                moved = [replace(part, index=Constant(number)) for part in (node.a, node.b)]
            else:
                moved = [
                    replace(part, offset=part.offset + number * step)
                    for part, step in zip((node.a, node.b), steps, strict=True)
                ]
            yield moved[0], moved[1]


class _InterpretedOperands(NamedTuple):
    """The fields of a primitive as numbers and arrays: see `PrimitiveOperands`."""

    run: Interpreter
    node: Primitive
    names: Mapping[str, int]
    first: Mapping[str, bool]

    def number(self, name: str) -> Any:
        """An integer or a scalar; None if the field is None."""
        value = getattr(self.node, name)
        if value is None:
            return None
        if isinstance(value, Expression):
            return self.run.integer(value, self.names)
        assert isinstance(value, (Scalar, FirstElse))
        return self.run.scalar(value, self.first)

    def window(self, name: str, rows: int, columns: int, shift: int = 0) -> Array:
        """A window of the given size, `shift` elements further on."""
        part = self._slice(name)
        part = replace(part, offset=part.offset + shift)
        return self.run.window(part, (rows, columns), self.names)

    def contiguous(self, name: str, elements: int) -> Array:
        """Adjacent elements from the first one of a window, whatever its strides."""
        part = replace(self._slice(name), strides=(ADJACENT, ADJACENT))
        return self.run.window(part, (elements, 1), self.names)[:, 0]

    def buffer(self, name: str) -> tuple[Array, int]:
        """The whole buffer of a window, and the index of the window's first element."""
        part = self._slice(name)
        held = self.run.buffers[part.buffer]
        assert isinstance(held, tuple)
        return held[0], held[1] + self.run.integer(part.offset, self.names)

    def _slice(self, name: str) -> Slice:
        part = getattr(self.node, name)
        assert isinstance(part, Slice)
        return part


class _Elements(NamedTuple):
    """The elements of a window: an array, and which of its elements."""

    array: Array
    at: Any

    @property
    def values(self) -> Array:
        """The values of the elements."""
        found: Array = self.array[self.at]
        return found

    def store(self, values: Array) -> None:
        """Overwrites the elements."""
        self.array[self.at] = values


def _split(values: Array) -> Array:
    """The numbers of a matrix of complex ones: twice the columns, real parts and imaginary parts in turn."""
    return np.stack([values.real, values.imag], axis=2).reshape(values.shape[0], -1)


def _rotated(values: Array) -> Array:
    """The numbers of complex columns: each is two rows here, and each depth two."""
    real = np.stack([values.real, -values.imag], axis=2).reshape(len(values), -1)
    imag = np.stack([values.imag, values.real], axis=2).reshape(len(values), -1)
    return np.stack([real, imag], axis=1).reshape(2 * len(values), -1)


def _exact(dtype: np.dtype[Any]) -> type[np.int64 | np.float64]:
    """The type in which products of elements of a type are summed: integers wrap around."""
    integer = dtype.kind in "iu" or dtype.name.startswith(("int", "uint"))  # the second of ml_dtypes
    return np.int64 if integer else np.float64


def _nothing(dtype: np.dtype[Any]) -> float:
    """The initial value of scratch buffers."""
    return float("nan") if _exact(dtype) is np.float64 else int(ml_dtypes.iinfo(dtype).max)  # type: ignore[no-untyped-call]


def _parts(source: Array, parts: Parts) -> Array:
    """The elements of a source, in the order in which a panel stores them."""
    match parts:
        case Parts.WHOLE:
            return source
        case Parts.SPLIT:
            return np.stack((source.real, source.imag), axis=-1).reshape(len(source), -1)
        case Parts.ROTATED:
            rows = np.stack((source.real, source.imag), axis=1), np.stack((-source.imag, source.real), axis=1)
            return np.stack(rows, axis=-1).reshape(2 * len(source), -1)


def interpret(
    program: Program,
    sizes: Mapping[str, int],
    scalars: Mapping[str, complex],
    buffers: Mapping[str, Array | tuple[Array, int] | list[Array]],
    threads: int = 1,
) -> None:
    """Runs a program on flat arrays, changing the output buffers in place.

    Parameters
    ----------
    sizes, scalars : a value for each parameter of the program.
    buffers : a flat array for each argument buffer, or (array, index of the element at offset 0)
        where strides are negative, or a list of flat arrays where the buffer is an array of pointers.
    threads : the value of `Threads`.

    Raises
    ------
    InvalidTileIr : if a window leaves its buffer.
    """
    arrays: dict[str, _Held] = {}
    for buffer in program.buffers:
        if buffer.space is Space.ARGUMENT:
            given = buffers[buffer.name]
            if isinstance(given, list):
                arrays[buffer.name] = [(array, 0) for array in given]
            else:
                arrays[buffer.name] = given if isinstance(given, tuple) else (given, 0)
        else:
            kind: np.dtype[Any] = buffer.dtype.numpy
            arrays[buffer.name] = (np.full(buffer.size or 0, _nothing(kind), kind), 0)
    own = tuple(buffer.name for buffer in program.buffers if buffer.space in (Space.THREAD, Space.LOCAL))
    Interpreter(arrays, scalars, threads, own).block(program.body, dict(sizes), {})
