"""Tensor operations given dimension by dimension: a schedule of loops around a primitive."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import TYPE_CHECKING, Any

from tilewright.cached import cached_property
from tilewright.errors import ContractionDimension, InvalidChoice, InvalidSequence, InvalidSize, shown
from tilewright.ops.batch_reduce.problem import MAX_KERNEL_COUNT, MAX_KERNEL_K, MAX_KERNEL_M, MAX_KERNEL_N
from tilewright.preparing import importing
from tilewright.spec.arguments import as_text, check_items, check_size, check_stride, parse_choice
from tilewright.spec.dtype import DType
from tilewright.spec.epilogue import Epilogue
from tilewright.spec.functions import UnaryOp
from tilewright.spec.problem import Operand, ProductTypes

if TYPE_CHECKING:
    from numpy.typing import NDArray


class DimensionType(Enum):
    """Which operands have a dimension: all, in0 and out, in1 and out, in0 and in1.

    A unary operation has only dimensions of `BATCH`, and its in1 does not exist.
    """

    BATCH = "c"
    M = "m"
    N = "n"
    K = "k"

    @property
    def operands(self) -> tuple[str, ...]:
        """The names of the strides that may be other than 0."""
        return {"c": ("in0", "in1", "out"), "m": ("in0", "out"), "n": ("in1", "out"), "k": ("in0", "in1")}[
            self.value
        ]


class ExecutionType(Enum):
    """How a dimension runs: as a loop, as tasks of threads, or inside of the main primitive."""

    SEQUENTIAL = "sequential"
    PARALLEL = "parallel"
    PRIMITIVE = "primitive"


class Main(Enum):
    """What runs over the primitive dimensions of a binary contraction.

    GEMM: one m, one n, one k (each may be missing: of length 1), operands where they stand. BRGEMM: the same
    and one more k outside of them, the batch, summed in registers. PACKED_GEMM: any number of each type,
    operands packed on the fly, block by block, by tables of offsets.
    """

    GEMM = "gemm"
    BRGEMM = "brgemm"
    PACKED_GEMM = "packed_gemm"


class FirstTouch(Enum):
    """What becomes of out before the first product is added: nothing, zeros, or elements of the bias."""

    NONE = "none"
    ZERO = "zero"
    BIAS = "bias"


@dataclass(frozen=True, init=False)
class Dimension:
    """One dimension of a tensor operation.

    Parameters
    ----------
    type : "c", "m", "n" or "k".
    execution : "sequential", "parallel" or "primitive".
    size : its length; None means given at run time.
    in0, in1, out : elements from one index to the next in each operand, of any sign; 0 where it lacks the
        dimension.
    bias : the same in the bias, where first touch copies one; 0 repeats.

    Raises
    ------
    InvalidChoice, InvalidSize
    ContractionDimension : if an operand that lacks the dimension has a stride, or a k runs in parallel.

    Examples
    --------
    >>> print(Dimension("m", "primitive", 32, in0=1, out=1))
    m primitive 32 in0=1 in1=0 out=1
    """

    type: DimensionType
    execution: ExecutionType
    size: int | None
    in0: int
    in1: int
    out: int
    bias: int

    def __init__(
        self,
        type: DimensionType | str,  # noqa: A002 - the glossary's word
        execution: ExecutionType | str = ExecutionType.SEQUENTIAL,
        size: int | None = None,
        *,
        in0: int = 0,
        in1: int = 0,
        out: int = 0,
        bias: int = 0,
    ) -> None:
        what = parse_choice(DimensionType, type, "type")
        how = parse_choice(ExecutionType, execution, "execution")
        strides = {
            name: check_stride(step, name) for name, step in (("in0", in0), ("in1", in1), ("out", out))
        }
        bias = check_stride(bias, "bias")
        for name, step in strides.items():
            if step and name not in what.operands:
                raise ContractionDimension(
                    type=what.value, found=f"a stride of {step} in {name}", required="0: it has none there"
                )
        if what is DimensionType.K and (bias or how is ExecutionType.PARALLEL):
            found = "parallel" if not bias else f"a stride of {bias} in the bias"
            raise ContractionDimension(
                type=what.value, found=found, required="sequential or primitive, without a bias: it is summed"
            )
        values: dict[str, Any] = {
            "type": what,
            "execution": how,
            "size": check_size(size, "size"),
            **strides,
            "bias": bias,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __str__(self) -> str:
        size = "?" if self.size is None else self.size
        bias = f" bias={self.bias}" if self.bias else ""
        strides = f"in0={self.in0} in1={self.in1} out={self.out}{bias}"
        return f"{self.type.value} {self.execution.value} {size} {strides}"

    @property
    def is_primitive(self) -> bool:
        """Whether it runs inside of the main primitive."""
        return self.execution is ExecutionType.PRIMITIVE


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
        dtype: DType | str = "f32",
        *,
        in1_dtype: DType | str | None = None,
        out_dtype: DType | str | None = None,
        main: Main | UnaryOp | str = Main.PACKED_GEMM,
        first: FirstTouch | str = FirstTouch.ZERO,
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
        values: dict[str, Any] = {
            "dimensions": found,
            "dtype": types.a,
            "in1_dtype": types.b,
            "out_dtype": types.c,
            "main": _parse_main(main),
            "first": parse_choice(FirstTouch, first, "first"),
            "last": steps,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        with importing:
            from tilewright.ops.contraction.checks import check_contraction  # which knows this class

        check_contraction(self)

    @classmethod
    def parse(cls, text: str) -> Contraction:
        """The contraction that was printed as this text.

        Raises
        ------
        ContractionText : with the line, and what is wrong with it.
        """
        with importing:
            from tilewright.ops.contraction.text import parse_contraction  # which makes contractions

        return parse_contraction(text)

    def __str__(self) -> str:
        with importing:
            from tilewright.ops.contraction.text import print_contraction

        return print_contraction(self)

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
        with importing:
            from tilewright.ops.contraction.reference import view

        return view(self, name, array)

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
        with importing:
            from tilewright.ops.contraction.reference import reference

        return reference(self, in0, in1, out, bias)

    @property
    def batch(self) -> Dimension | None:
        """The outer of the two primitive k dimensions of a brgemm."""
        depths = [one for one in self.primitive if one.type is DimensionType.K]
        return depths[0] if self.main is Main.BRGEMM and len(depths) == 2 else None

    @property
    def hardcoded(self) -> bool:
        """Whether the sizes of the primitive are known, and so small that straight tiles of them are best.

        Else a gemm becomes the loops of `Gemm`, and a brgemm a loop over its batch around them.
        """
        limits = {DimensionType.M: MAX_KERNEL_M, DimensionType.N: MAX_KERNEL_N, DimensionType.K: MAX_KERNEL_K}
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

    def of_type(self, kind: DimensionType | str) -> tuple[Dimension, ...]:
        """The dimensions of one type, outermost first."""
        wanted = parse_choice(DimensionType, kind, "type")
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
        types = {"in0": self.dtype, "in1": self.in1_dtype, "out": self.out_dtype}
        if self.is_unary:
            del types["in1"]
        return sum(
            dtype.size * prod(d.size or 0 for d in self.dimensions if name in d.type.operands)
            for name, dtype in types.items()
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


def replace_size(dimension: Dimension, size: int | None) -> Dimension:
    """The same dimension of another length."""
    return _replaced(dimension, size=check_size(size, "size"))


def replace_execution(dimension: Dimension, execution: ExecutionType) -> Dimension:
    """The same dimension run in another way."""
    return _replaced(dimension, execution=execution)


def _replaced(dimension: Dimension, **changes: Any) -> Dimension:
    given = {name: value for name, value in dimension.__dict__.items() if name != "type"}
    return Dimension(dimension.type, **{**given, **changes})


def _parse_main(main: Main | UnaryOp | str) -> Main | UnaryOp:
    words: dict[str, Main | UnaryOp] = {member.value: member for member in (*Main, *UnaryOp)}
    if isinstance(main, (Main, UnaryOp)):
        return main
    found = as_text(main)
    if found is None or found not in words:
        raise InvalidChoice(name="main", found=shown(main), allowed=", ".join(words))
    return words[found]
