"""Tensor operations given dimension by dimension: a schedule of loops around a primitive."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import Any

from tilewright.errors import ContractionDimension, ContractionPrimitive, InvalidChoice
from tilewright.spec.choice import parse_choice
from tilewright.spec.dtype import DType
from tilewright.spec.epilogue import Epilogue
from tilewright.spec.functions import UnaryOp
from tilewright.spec.problem import Operand, ProductTypes, check_size


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
        strides = {"in0": int(in0), "in1": int(in1), "out": int(out)}
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
            "bias": int(bias),
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
    order, parallel ones as tasks, around the main primitive. `scheduled` finds a schedule instead.

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
    ContractionPrimitive : if no primitive runs over the dimensions that are called primitive.

    Examples
    --------
    >>> matrix = Contraction([
    ...     Dimension("m", "sequential", 64, in0=1, out=1),
    ...     Dimension("n", "sequential", 48, in1=32, out=64),
    ...     Dimension("k", "sequential", 32, in0=64, in1=1),
    ... ])
    >>> matrix.flops
    196608

    Source: seed 002's plan of a tensor compiler; its primitives, §7.2 and §7.3.
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
        types = ProductTypes.parse(dtype, in1_dtype, out_dtype)
        found = tuple(dimensions)
        values: dict[str, Any] = {
            "dimensions": found,
            "dtype": types.a,
            "in1_dtype": types.b,
            "out_dtype": types.c,
            "main": _parse_main(main),
            "first": parse_choice(FirstTouch, first, "first"),
            "last": Epilogue.parse(last),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        _check_order(found)
        _check_primitive(found, values["main"])

    @property
    def is_unary(self) -> bool:
        """Whether it has one operand."""
        return isinstance(self.main, UnaryOp)

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


def _parse_main(main: Main | UnaryOp | str) -> Main | UnaryOp:
    words: dict[str, Main | UnaryOp] = {member.value: member for member in (*Main, *UnaryOp)}
    if isinstance(main, (Main, UnaryOp)):
        return main
    if main not in words:
        raise InvalidChoice(name="main", found=repr(main), allowed=", ".join(words))
    return words[main]


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


#: How many primitive dimensions of each type a main primitive takes; None: any.
_MOST: dict[Main, dict[DimensionType, int] | None] = {
    Main.GEMM: {DimensionType.M: 1, DimensionType.N: 1, DimensionType.K: 1},
    Main.BRGEMM: {DimensionType.M: 1, DimensionType.N: 1, DimensionType.K: 2},
    Main.PACKED_GEMM: None,
}
