"""Epilogue of sums stored outside of C: scaling, beta times C, steps, conversion and store."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.convert import Convert
from tilewright.llvm.values import (
    INT64,
    POINTER,
    VOID,
    Type,
    Value,
    constant,
    element_type,
    int64,
    memory_type,
    vector_type,
    zero,
)
from tilewright.machine.isa import Edge, Isa
from tilewright.micro.emission import emitter
from tilewright.micro.packing.transpose import PART_BITS
from tilewright.spec.dtype import DType
from tilewright.spec.epilogue import Bias, Epilogue, Residual, Scale, Step


class Factors(NamedTuple):
    """The scalars alpha and beta of C = alpha · sums + beta · C."""

    alpha: Value
    beta: Value

    @classmethod
    def of_depth(cls, f: Function, acc: DType) -> Factors:
        """The factors among a function's arguments; alpha is not used if the depth is 0."""
        g = f.arguments
        empty = f.icmp("==", g["depth"], 0)
        return cls(f.select(empty, constant(acc, 1), g["alpha"]), g["beta"])


def store_sums(
    f: Function,
    isa: Isa,
    factors: Factors,
    sums: list[Value],
    places: list[Value],
    types: tuple[DType, DType],
) -> None:
    """C = alpha · sums + beta · C for some vectors or elements of C; C is not read when beta is 0.

    `types` are the element types of the sums and of C.
    """
    acc, c = types
    convert = Convert(f, half=isa.half)
    values = [f.times(value, _spread(f, factors.alpha, value.type)) for value in sums]
    with f.once_if(f.not_equal(factors.beta, zero(factors.beta.type)), values) as (given, advance):
        found = []
        for value, place in zip(given, places, strict=True):
            lanes = value.type.lanes
            old = f.load(vector_type(c, lanes) if lanes else memory_type(c), place, c.size)
            old = convert(old, c, acc)
            found.append(f.multiply_add(_spread(f, factors.beta, value.type), old, value, fused=isa.fused))
        advance(found)
    for value, place in zip(advance.results, places, strict=True):
        f.store(convert(value, acc, c), place, c.size)


def _spread(f: Function, scalar: Value, like: Type) -> Value:
    """A scalar, or a vector of it, like the type given."""
    return f.splat(scalar, like.lanes) if like.lanes else scalar


class ColumnAccess(Enum):
    """How the operand of a step follows the columns of a row of C."""

    ADJACENT = "adjacent"  # an element per column, contiguous
    REPEATED = "repeated"  # one element for all columns
    STRIDED = "strided"  # an element per column, at any stride


class StepAccess(NamedTuple):
    """One step, and how its operand, if any, is read."""

    step: Step
    reach: ColumnAccess | None = None

    @property
    def dtype(self) -> DType:
        """The element type of the operand."""
        assert isinstance(self.step, (Bias, Scale, Residual))
        assert self.step.dtype is not None
        return self.step.dtype


def steps_name(steps: tuple[StepAccess, ...]) -> str:
    """Steps as a part of a function's name."""
    if not steps:
        return ""
    reach = "".join(given.reach.value[0] for given in steps if given.reach)
    return f"_with_{Epilogue(given.step for given in steps).identifier}_{reach}"


class _MatrixRow(NamedTuple):
    """One row of a matrix: address, element type, how it follows the columns, and the column stride."""

    pointer: Value
    dtype: DType
    reach: ColumnAccess
    column: Value


class EpilogueKernel:
    """C[rows, columns] = alpha · sums + beta · C, then steps; the rows of sums are contiguous.

    Parameters
    ----------
    isa : the row.
    acc, c : element types of the sums and of C.
    steps : the steps that follow, each with the type of its operand.
    pairs : the elements of C and of operands are pairs of numbers; sums and columns count numbers.
    strided : the columns of C may have any stride.
    """

    def __init__(
        self,
        isa: Isa,
        acc: DType,
        c: DType,
        steps: tuple[StepAccess, ...] = (),
        *,
        pairs: bool = False,
        strided: bool = False,
    ) -> None:
        self.isa, self.acc, self.c, self.steps = isa, acc, c, steps
        self.unit, self.strided = 2 if pairs else 1, strided
        self.element = element_type(acc)
        self.epilogue = Epilogue(given.step for given in steps)
        self.mixed = acc.is_integer is not c.is_integer
        self.edge = isa.edge_of(acc, c, *(given.dtype for given in steps if given.reach))

    @property
    def name(self) -> str:
        """The function's name in a module."""
        marks = "_pairs" * (self.unit > 1) + "_strided" * self.strided
        return f"epilogue_{self.acc}_{self.c}{marks}{steps_name(self.steps)}"

    def emit(self, module: Module) -> Callee:
        """Defines the function in a module; the value to call.

        Its last arguments are a pointer and two strides for each operand of a step.
        """
        known = module.find(self.name)
        if known is not None:
            return known
        numbers = [number for number, given in enumerate(self.steps) if given.reach]
        arguments = [
            ("rows", INT64),
            ("columns", INT64),
            ("c", POINTER),
            ("c_row", INT64),
            ("c_column", INT64),
            ("sums", POINTER),
            ("sums_row", INT64),
            ("alpha", self.element),
            ("beta", self.element),
            *((f"step{n}", POINTER) for n in numbers),
            *((f"step{n}_{axis}", INT64) for n in numbers for axis in ("row", "column")),
        ]
        f = module.define(self.name, VOID, arguments)
        strides = [("c", self.strided)]
        strides += [(f"step{n}", True) for n in numbers if self.steps[n].reach is ColumnAccess.STRIDED]
        adjacent = None
        for name, any_stride in strides:
            if any_stride:
                one = f.icmp("==", f.arguments[f"{name}_column"], self.unit)
                adjacent = one if adjacent is None else f.and_(adjacent, one)
        if adjacent is None:
            self._rows(f, strided=False)
        else:
            with f.when(adjacent):
                self._rows(f, strided=False)
                f.ret()
            self._rows(f, strided=True)
        f.ret()
        return f.callee

    def _widths(self, *, strided: bool) -> list[int]:
        """Widths of the vectors that rows are cut into, in lanes, widest first; 1 is a single element.

        None is narrower than a register's smallest part: unused lanes could raise floating-point flags.
        """
        widths = []
        lanes = self.isa.lanes(self.acc)
        while not strided and lanes > 1 and lanes * self.acc.bits >= PART_BITS:
            widths.append(lanes)
            lanes //= 2
        return widths[:1] if self.edge is Edge.MASK and not strided else [*widths, 1]

    def _rows(self, f: Function, *, strided: bool) -> None:
        """Every row, in vectors where its columns are adjacent."""
        g = f.arguments
        with f.loop(int64(0), g["rows"], int64(1), "row") as row:
            sums = f.at(g["sums"], f.mul(f.mul(row, g["sums_row"]), self.acc.size))
            c = self._place(f, "c", self.c, ColumnAccess.STRIDED if strided else ColumnAccess.ADJACENT, row)
            operands = {
                n: self._place(f, f"step{n}", given.dtype, _reach_of(given.reach, strided=strided), row)
                for n, given in enumerate(self.steps)
                if given.reach
            }
            done = int64(0)
            widths = self._widths(strided=strided)
            for width in widths:
                end = f.add(g["columns"], 1 - width)
                with f.carried_loop(done, end, int64(width), (done,), "column") as (column, _, advance):
                    self._one(f, _RowPart(column, width, None), sums, c, operands)
                    advance((f.add(column, width),))
                (done,) = advance.results
            if widths[-1] > 1:
                with f.when(f.icmp("<", done, g["columns"])):
                    mask = f.lane_mask(f.sub(g["columns"], done), 0, widths[0])
                    self._one(f, _RowPart(done, widths[0], mask), sums, c, operands)

    def _place(self, f: Function, name: str, dtype: DType, reach: ColumnAccess, row: Value) -> _MatrixRow:
        step = f.mul(f.mul(row, f.arguments[f"{name}_row"]), dtype.size)
        return _MatrixRow(f.at(f.arguments[name], step), dtype, reach, f.arguments[f"{name}_column"])

    def _one(
        self, f: Function, cut: _RowPart, sums: Value, c: _MatrixRow, operands: dict[int, _MatrixRow]
    ) -> None:
        """One vector, or one element."""
        g = f.arguments
        at_sums = _MatrixRow(sums, self.acc, ColumnAccess.ADJACENT, int64(1))
        value = self._load(f, at_sums, cut)
        value = f.times(value, _spread(f, g["alpha"], value.type))
        if not self.mixed:
            with f.once_if(f.not_equal(g["beta"], zero(self.element)), [value]) as ((given,), advance):
                old = Convert(f, half=self.isa.half)(self._load(f, c, cut), self.c, self.acc)
                beta = _spread(f, g["beta"], value.type)
                advance([f.multiply_add(beta, old, given, fused=self.isa.fused)])
            (value,) = advance.results
        if self.steps:
            steps = emitter("tiles.steps:StepEmitter")(f, self.isa, self.epilogue, self.acc, self.c)
            value = steps(value, lambda number: self._load(f, operands[number], cut))
        else:
            value = Convert(f, half=self.isa.half)(value, self.acc, self.c)
        pointer = self._at(f, c, cut)
        if cut.mask is None:
            f.store(value, pointer, self.c.size)
        else:
            f.masked_store(value, pointer, cut.mask, self.c.size)

    def _at(self, f: Function, place: _MatrixRow, cut: _RowPart) -> Value:
        """The address of the first element of a part of a row."""
        match place.reach:
            case ColumnAccess.ADJACENT:
                return f.at(place.pointer, f.mul(cut.column, place.dtype.size))
            case ColumnAccess.REPEATED if self.unit > 1 and cut.width == 1:
                return f.at(place.pointer, f.mul(f.and_(cut.column, int64(1)), place.dtype.size))
            case ColumnAccess.REPEATED:
                return place.pointer
            case ColumnAccess.STRIDED if self.unit > 1:
                pair, part = f.ashr(cut.column, int64(1)), f.and_(cut.column, int64(1))
                return f.at(place.pointer, f.mul(f.add(f.mul(pair, place.column), part), place.dtype.size))
            case ColumnAccess.STRIDED:
                return f.at(place.pointer, f.mul(f.mul(cut.column, place.column), place.dtype.size))

    def _load(self, f: Function, place: _MatrixRow, cut: _RowPart) -> Value:
        """The elements of a part of a row, in their type in memory."""
        pointer, size = self._at(f, place, cut), place.dtype.size
        if cut.width == 1:
            return f.load(memory_type(place.dtype), pointer, size)
        if place.reach is ColumnAccess.REPEATED and self.unit == 1:
            return f.splat(f.load(memory_type(place.dtype), pointer, size), cut.width)
        if place.reach is ColumnAccess.REPEATED:
            pair = f.load(vector_type(place.dtype, self.unit), pointer, size)
            return f.shuffle(pair, pair, [lane % self.unit for lane in range(cut.width)])
        kind = vector_type(place.dtype, cut.width)
        if cut.mask is None:
            return f.load(kind, pointer, size)
        return f.masked_load(kind, pointer, cut.mask, size)


class _RowPart(NamedTuple):
    """A part of a row: its first column, its lanes (1: an element), and the mask of those that exist."""

    column: Value
    width: int
    mask: Value | None


def _reach_of(reach: ColumnAccess, *, strided: bool) -> ColumnAccess:
    """How an operand is read: in vectors if its stride proved to be 1."""
    return ColumnAccess.ADJACENT if reach is ColumnAccess.STRIDED and not strided else reach
