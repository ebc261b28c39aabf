"""Tensor operations given dimension by dimension: a schedule of loops around a primitive."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tilewright.cached import cached_property
from tilewright.errors import (
    ContractionPrimitive,
    ContractionText,
    InvalidSequence,
    InvalidSize,
    SizeOverflow,
    TilewrightError,
    shown,
)
from tilewright.ops.batch_reduce.problem import MAX_KERNEL_COUNT, MAX_KERNEL_K, MAX_KERNEL_M, MAX_KERNEL_N
from tilewright.ops.contraction.checks import check_order, check_primitive
from tilewright.ops.contraction.dimension import Dimension, ExecutionType, replace_size
from tilewright.ops.contraction.main import TABLE_DTYPES, FirstTouch, Main, parse_main
from tilewright.ops.contraction.memory import view
from tilewright.ops.contraction.text import CHOICES, parse_contraction, print_contraction
from tilewright.ops.unary.problem import check_unary_dtype
from tilewright.records import dataclass
from tilewright.spec.arguments import MAX_SIZE, check_items, parse_choice, unchecked
from tilewright.spec.constructor import constructor_text
from tilewright.spec.dtype import DType, accumulator, parse_dtype
from tilewright.spec.epilogue import Epilogue
from tilewright.spec.functions import UnaryOp, meaning
from tilewright.spec.problem import Operand, ProductTypes, exact_dtype
from tilewright.spec.records import set_fields
from tilewright.spec.roles import DimensionRole
from tilewright.typing import DimensionRoleName, ElementType, FirstTouchName, MainName, UnaryName


@dataclass(frozen=True, init=False)
class Contraction:
    """out[c, m, n] (+)= Σ_k in0[c, m, k] · in1[c, k, n], or out[c] = op(in0[c]), as the dimensions say.

    Dimensions stand outermost first; primitive ones are the last. They run exactly as given: loops in this
    order, parallel ones as tasks, around the main primitive. Where all are sequential nothing was chosen:
    `tilewright.compile` finds a schedule, as `tilewright.schedule` does. Prints as text, a line for each
    dimension, that `Contraction.parse` reads.

    Parameters
    ----------
    dimensions : `Dimension` records.
    dtype : element type of in0 ("f32", ...).
    in1_dtype, out_dtype : those of in1 and out; by default as in `Gemm`.
    main : "gemm", "brgemm", "packed_gemm" (by default), or a function of `Unary` for an operation of one
        operand ("identity" is a copy).
    first : what happens to each element of out before anything is added: "none" (products are added to what
        it holds), "zero", "bias" (elements of a further operand).
    last : what happens to each element of out once its sum is complete: an `Epilogue`, its steps, text such
        as "relu"; by default nothing.

    Raises
    ------
    InvalidChoice, UnsupportedDtype
    ContractionPrimitive : if no primitive runs over the dimensions that are called primitive, on elements of
        these types, or with these touches.

    Notes
    -----
    Operands are memory: element (i, j, ...) of one is i·stride + j·stride + ... elements from the first one
    of the array that is passed, so arrays of any shape do. Steps of `last` are those without operands.

    Inside of a task of a parallel dimension, further parallel dimensions (other than those directly inside of
    it, which are one space of tasks with it) run in sequence.

    Where out is narrower than the sums (bf16 beside f32), all k dimensions are in a gemm, or in a brgemm of
    known and small sizes: each loop would round sums.

    Examples
    --------
    >>> matrix = Contraction([
    ...     Dimension("m", "sequential", 64, in0=1, out=1),
    ...     Dimension("n", "sequential", 48, in1=32, out=64),
    ...     Dimension("k", "sequential", 32, in0=64, in1=1),
    ... ])
    >>> matrix.flops
    196608

    Source: scalable.uni-jena.de/opt/pbtc, a plan of a tensor compiler; its primitives, §7.2 and §7.3.
    """

    operation: ClassVar[str] = "contraction"
    __repr__ = constructor_text
    dimensions: tuple[Dimension, ...]
    dtype: DType
    in1_dtype: DType
    out_dtype: DType
    main: Main | UnaryOp
    first: FirstTouch
    last: Epilogue

    def __init__(
        self,
        dimensions: Iterable[Dimension],
        dtype: DType | ElementType = "f32",
        *,
        in1_dtype: DType | ElementType | None = None,
        out_dtype: DType | ElementType | None = None,
        main: Main | UnaryOp | MainName | UnaryName = Main.PACKED_GEMM,
        first: FirstTouch | FirstTouchName = FirstTouch.ZERO,
        last: Epilogue | str | None = None,
    ) -> None:
        steps = Epilogue.parse(last)
        types = ProductTypes.parse(dtype, in1_dtype, out_dtype, epilogue=steps)
        found = check_items(dimensions, "dimensions", "a sequence of Dimension")
        for one in found:
            if not isinstance(one, Dimension):
                raise InvalidSequence(
                    name="dimensions", found=shown(found), required="a sequence of Dimension"
                )
        set_fields(
            self,
            dimensions=found,
            dtype=types.a,
            in1_dtype=types.b,
            out_dtype=types.c,
            main=parse_main(main),
            first=parse_choice(FirstTouch, first, "first"),
            last=steps,
        )
        check_contraction(self)

    @classmethod
    def parse(cls, text: str) -> Contraction:
        """The contraction that was printed as this text.

        Raises
        ------
        ContractionText : with the line, and what is wrong with it.
        """
        found = parse_contraction(text)
        try:
            choices = {name: unchecked(word) for name, word in found.choices.items()}
            return cls(found.dimensions, choices.pop("dtype", "f32"), **choices)
        except TilewrightError as error:
            raise ContractionText(line=found.line, found=found.head, reason=str(error)) from error

    def __str__(self) -> str:
        values = (
            *(self.dtype, self.in1_dtype, self.out_dtype),
            *(self.main.value, self.first.value, self.last),
        )
        return print_contraction(dict(zip(CHOICES, values, strict=True)), self.dimensions)

    @property
    def is_unary(self) -> bool:
        """Whether it has one operand."""
        return isinstance(self.main, UnaryOp)

    @cached_property
    def types(self) -> ProductTypes:
        """The element types of in0, in1 and out, and that of the sums."""
        return ProductTypes.parse(self.dtype, self.in1_dtype, self.out_dtype, epilogue=self.last)

    @property
    def is_scheduled(self) -> bool:
        """Whether it says how it runs: some dimension is parallel or of the primitive."""
        return any(dimension.execution is not ExecutionType.SEQUENTIAL for dimension in self.dimensions)

    @property
    def is_open(self) -> bool:
        """Whether a size is given at run time."""
        return any(dimension.size is None for dimension in self.dimensions)

    @property
    def names(self) -> tuple[str, ...]:
        """The operands of a call, in their order.

        >>> Contraction([Dimension("c", "primitive", 8, in0=1, out=1)], main="relu").names
        ('in0', 'out')
        """
        inputs = ("in0",) if self.is_unary else ("in0", "in1")
        return (*inputs, "out", *(("bias",) if self.first is FirstTouch.BIAS else ()))

    def element_of(self, name: str) -> DType:
        """The element type of an operand; a bias has that of out."""
        return {"in0": self.dtype, "in1": self.in1_dtype}.get(name, self.out_dtype)

    def having(self, name: str) -> tuple[Dimension, ...]:
        """The dimensions of an operand, outermost first; a bias has those of out."""
        wanted = "out" if name == "bias" else name
        return tuple(dimension for dimension in self.dimensions if wanted in dimension.type.operands)

    def sized(self, sizes: Sequence[int] = ()) -> Contraction:
        """The same with sizes for the dimensions whose size is given at run time, in their order.

        Raises
        ------
        InvalidSize

        >>> line = Contraction([Dimension("c", "primitive", in0=1, out=1)], main="relu")
        >>> line.sized([8]).dimensions[0].size
        8
        """
        known = [dimension.size is None for dimension in self.dimensions]
        if len(sizes) != sum(known):
            required = f"{sum(known)} integers, one for each dimension whose size is given at run time"
            raise InvalidSize(name="sizes", found=tuple(sizes), required=required)
        if not sizes:
            return self
        given = iter(sizes)
        return self.with_dimensions(
            dimension if dimension.size is not None else replace_size(dimension, next(given))
            for dimension in self.dimensions
        )

    def view(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        """An operand with one axis for each of its dimensions, in the memory of the array that was passed.

        Raises
        ------
        ContractionMemory : if the array is shorter than the operand.
        InvalidSize : if sizes are open; see `sized`.
        """
        return view(self.having(name), name, array)

    def reference(
        self,
        in0: NDArray[Any],
        in1: NDArray[Any] | None = None,
        out: NDArray[Any] | None = None,
        bias: NDArray[Any] | None = None,
    ) -> NDArray[Any]:
        """The meaning of the operation: what `view("out", out)` is to be, in float64, complex128 or int64.

        Parameters
        ----------
        in0, in1 : the memory of the operands.
        out : what is added to, where first touch is "none".
        bias : where first touch copies one.

        Raises
        ------
        ContractionMemory, InvalidSize : as `view`.

        >>> import numpy as np
        >>> square = Contraction([Dimension("c", "primitive", 3, in0=1, out=1)], main="square")
        >>> square.reference(np.array([1.0, 2.0, 3.0], np.float32))
        array([1., 4., 9.])
        """
        first = self.view("in0", in0)
        if isinstance(self.main, UnaryOp):
            return meaning(self.main, first)
        types = self.types
        exact = exact_dtype(types)
        assert in1 is not None, "a product has two operands"
        labels = {
            name: [number for number, one in enumerate(self.dimensions) if name in one.type.operands]
            for name in ("in0", "in1", "out")
        }
        arrays = (first.astype(exact), labels["in0"], self.view("in1", in1).astype(exact), labels["in1"])
        value: NDArray[Any] = np.asarray(np.einsum(*arrays, labels["out"], optimize=True))
        added = {FirstTouch.NONE: ("out", out), FirstTouch.BIAS: ("bias", bias)}.get(self.first)
        if added is not None:
            name, array = added
            assert array is not None, f"first touch reads {name}"
            value = value + self.view(name, array).astype(exact)
        return self.last.reference(value, (), types.sums, types.c)

    @property
    def batch(self) -> Dimension | None:
        """The outer of the two primitive k dimensions of a brgemm."""
        depths = [one for one in self.primitive if one.type is DimensionRole.K]
        return depths[0] if self.main is Main.BRGEMM and len(depths) == 2 else None

    @property
    def hardcoded(self) -> bool:
        """Whether the sizes of the primitive are known, and so small that straight tiles of them are best.

        Else a gemm becomes the loops of `Gemm`, and a brgemm a loop over its batch around them.
        """
        limits = {DimensionRole.M: MAX_KERNEL_M, DimensionRole.N: MAX_KERNEL_N, DimensionRole.K: MAX_KERNEL_K}
        batch = self.batch
        sizes = [(one.size, limits[one.type]) for one in self.primitive if one.type in limits]
        sizes += [(batch.size, MAX_KERNEL_COUNT)] if batch is not None else []
        return all(size is not None and size <= limit for size, limit in sizes)

    @property
    def loops(self) -> tuple[Dimension, ...]:
        """The dimensions outside of the primitive, outermost first."""
        return tuple(dimension for dimension in self.dimensions if not dimension.is_primitive)

    @property
    def primitive(self) -> tuple[Dimension, ...]:
        """The dimensions of the primitive."""
        return tuple(dimension for dimension in self.dimensions if dimension.is_primitive)

    def of_type(self, kind: DimensionRole | DimensionRoleName) -> tuple[Dimension, ...]:
        """The dimensions of one type, outermost first."""
        wanted = parse_choice(DimensionRole, kind, "type")
        return tuple(dimension for dimension in self.dimensions if dimension.type is wanted)

    @property
    def operands(self) -> tuple[Operand, ...]:
        """None: operands are memory with a stride for each dimension."""
        return ()

    @property
    def flops(self) -> int | None:
        """Two for each product, none for a copy; None where a size is given at run time."""
        sizes = [dimension.size for dimension in self.dimensions]
        if None in sizes:
            return None
        each = self.main.computes if isinstance(self.main, UnaryOp) else 2
        return each * prod(size or 0 for size in sizes)

    @property
    def bytes(self) -> int | None:
        """Bytes that one call must move, each element of each operand once; None where a size is open."""
        if any(dimension.size is None for dimension in self.dimensions):
            return None
        return sum(
            self.element_of(name).size * prod(d.size or 0 for d in self.dimensions if name in d.type.operands)
            for name in (("in0", "out") if self.is_unary else ("in0", "in1", "out"))
        )

    def with_dimensions(self, dimensions: Iterable[Dimension], main: Main | None = None) -> Contraction:
        """The same operation run in another way."""
        return Contraction(
            dimensions,
            self.dtype,
            in1_dtype=self.in1_dtype,
            out_dtype=self.out_dtype,
            main=self.main if main is None else main,
            first=self.first,
            last=self.last,
        )


@cache
def table_contraction(
    dtype: DType | ElementType, first: FirstTouch | FirstTouchName = FirstTouch.ZERO
) -> Contraction:
    """The contraction by tables of operands with any dimensions, of one type, into sums.

    One dimension of each type stands for all: what machine code needs to know of them is in its tables.

    >>> table_contraction("bf16").out_dtype.name
    'f32'
    """
    dimensions = [Dimension(role, ExecutionType.PRIMITIVE) for role in DimensionRole]
    kind = parse_dtype(dtype, TABLE_DTYPES)
    out_dtype = accumulator(kind, kind)
    return Contraction(dimensions, kind, out_dtype=out_dtype, main=Main.PACKED_GEMM, first=first)


def check_contraction(problem: Contraction) -> None:
    """Raises what `Contraction` says it raises."""
    _check_sizes(problem)
    check_order(problem.dimensions)
    check_primitive(problem.dimensions, problem.main)
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


def _check_unary(problem: Contraction) -> None:
    """One operand: its function on its elements, and nothing before or after."""
    assert isinstance(problem.main, UnaryOp)
    check_unary_dtype(problem.main, problem.dtype)
    for what, dtype in (("out of", problem.out_dtype), ("in1 of", problem.in1_dtype)):
        if dtype != problem.dtype:
            raise ContractionPrimitive(
                main=problem.main.value, found=f"{what} {dtype}", required=f"{problem.dtype}, as in0"
            )
    bias = problem.first is FirstTouch.BIAS
    if bias or problem.last:
        what = "a bias at first touch" if bias else f"{problem.last} at last touch"
        required = "none: each element is written once"
        raise ContractionPrimitive(main=problem.main.value, found=what, required=required)


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
    if packed and not (types.a == types.b and types.a in TABLE_DTYPES):
        raise ContractionPrimitive(
            main=main.value,
            found=f"elements of {types.a} x {types.b}",
            required=f"two of one type among {', '.join(map(str, TABLE_DTYPES))}; or take gemm",
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
    outside = [dimension for dimension in problem.loops if dimension.type is DimensionRole.K]
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
