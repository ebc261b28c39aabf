"""GEMM as a problem: C = alpha·A·B + beta·C and an epilogue, with its meaning in NumPy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.cached import cached_property
from tilewright.errors import InvalidChoice, InvalidSize, shown
from tilewright.records import dataclass
from tilewright.spec.arguments import check_size, parse_choice
from tilewright.spec.constructor import constructor_text
from tilewright.spec.dtype import DType, Use, dtypes_for, parse_dtype
from tilewright.spec.epilogue import Along, Bias, Epilogue, Residual, Scale, Step, TypedStep
from tilewright.spec.problem import Layout, Operand, ProductTypes, Strategy, exact_dtype
from tilewright.spec.records import set_fields
from tilewright.spec.weights import Weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tilewright.typing import ElementType, LayoutName, StrategyName

#: The types of A that can be multiplied with quantised weights.
WEIGHTED_DTYPES = dtypes_for(Use.ACTIVATIONS)


@dataclass(frozen=True, init=False)
class Gemm:
    """C[m, n] = alpha * A[m, k] @ B[k, n] + beta * C[m, n].

    Parameters
    ----------
    m, n, k : sizes; None: given at run time, so that one kernel serves every size.
    dtype : element type of A ("f32", "bf16", "i8", "c64", ...).
    b_dtype : that of B; by default A's.
    out_dtype : that of C; by default the wider of A's and B's.
    sums : the type that sums are kept in, which alpha and beta have too; C is converted when it is stored. By
        default float32 for floats of up to 32 bits, 32-bit integers for those of up to 16, and otherwise the
        type of the elements. Of the same kind, float64, "i64" and "c128" are wider: elements of A and B are
        converted to it before they are multiplied. No operand is packed then.
    a, b, c : layouts "row", "col", "strided" (any two strides, given at run time) or "packed" (tiles of the
        machine's register tile, each contiguous: `tilewright.pack` makes them; C must not be "col" then).
    epilogue : operations on alpha * A @ B + beta * C before it is stored: an `Epilogue`, its steps, or text
        such as "bias,gelu". Then C is read and written in the type of C once, and steps that make floats of
        integer sums allow a C of floats.
    strategy : "auto", "tiling" (operands in place) or "packing".
    weights : the quantised format of a packed B, with or without scales; None if its panels hold elements of
        the multiply instruction. A is of float32 or bfloat16, and B's elements are taken for A's type.

    alpha and beta are given with each call, and so are the operands of the epilogue. beta = 0 never reads C;
    alpha = 0 or k = 0 never reads A or B. beta must be 0 where C is of floats and the sums of integers.

    Raises
    ------
    UnsupportedDtype, InvalidSize, InvalidChoice, StepDtype

    Examples
    --------
    >>> Gemm(dtype="f64", a="col").operands[0].layout
    <Layout.COL: 'col'>

    Source: Kuzma et al., Softw. Pract. Exper. 2023, doi:10.1002/spe.3214, Algorithm 1.
    """

    __repr__ = constructor_text
    m: int | None
    n: int | None
    k: int | None
    dtype: DType
    b_dtype: DType
    out_dtype: DType
    a: Layout
    b: Layout
    c: Layout
    epilogue: Epilogue
    strategy: Strategy
    weights: Weights | None
    sums: DType | None

    def __init__(
        self,
        m: int | None = None,
        n: int | None = None,
        k: int | None = None,
        dtype: DType | ElementType = "f32",
        *,
        a: Layout | LayoutName = Layout.ROW,
        b: Layout | LayoutName = Layout.ROW,
        c: Layout | LayoutName = Layout.ROW,
        b_dtype: DType | ElementType | None = None,
        out_dtype: DType | ElementType | None = None,
        epilogue: Epilogue | str | Iterable[Step] | None = None,
        strategy: Strategy | StrategyName = Strategy.AUTO,
        weights: Weights | None = None,
        sums: DType | ElementType | None = None,
    ) -> None:
        steps = Epilogue.parse(epilogue)
        if weights is not None:
            if not isinstance(weights, Weights):
                raise InvalidChoice(name="weights", found=shown(weights), allowed="None, a Weights record")
            b, b_dtype = Layout.PACKED, weights.elements.value_type(parse_dtype(dtype, WEIGHTED_DTYPES))
        types = ProductTypes.parse(dtype, b_dtype, out_dtype, epilogue=steps, sums=sums)
        set_fields(
            self,
            m=check_size(m, "m"),
            n=check_size(n, "n"),
            k=check_size(k, "k"),
            dtype=types.a,
            b_dtype=types.b,
            out_dtype=types.c,
            a=parse_choice(Layout, a, "a"),
            b=parse_choice(Layout, b, "b"),
            c=parse_choice(Layout, c, "c"),
            epilogue=steps,
            strategy=parse_choice(Strategy, strategy, "strategy"),
            weights=weights,
            sums=None if types.chosen is None else types.sums,
        )
        if self.sums is not None and Layout.PACKED in (self.a, self.b):
            raise InvalidChoice(name="sums", found=f"'{self.sums}'", allowed="None where a or b is packed")
        if self.c is Layout.COL and Layout.PACKED in (self.a, self.b):
            # It would be computed as Cᵀ = Bᵀ·Aᵀ, and panels of A are not panels of B.
            raise InvalidChoice(
                name="c", found="'col'", allowed="row, strided, packed where a or b is packed"
            )

    @cached_property
    def types(self) -> ProductTypes:
        """The element types of A, B and C, and that of the sums."""
        kinds = (self.dtype, self.b_dtype, self.out_dtype)
        return ProductTypes.parse(*kinds, epilogue=self.epilogue, sums=self.sums)

    def with_epilogue(self, epilogue: Epilogue | str | None) -> Gemm:
        """The same product with another epilogue.

        >>> Gemm(dtype="f64").with_epilogue("bias").step_operands[0].dtype.name
        'f64'
        """
        return self._with(epilogue=epilogue)

    def with_strategy(self, strategy: Strategy) -> Gemm:
        """The same product by another strategy.

        >>> Gemm(dtype="f64").with_strategy(Strategy.PACKING).strategy
        <Strategy.PACKING: 'packing'>
        """
        return self._with(strategy=strategy)

    def _with(self, **changes: Any) -> Gemm:
        names = ("a", "b", "c", "b_dtype", "out_dtype", "epilogue", "strategy", "weights", "sums")
        given: dict[str, Any] = {name: getattr(self, name) for name in names}
        return Gemm(self.m, self.n, self.k, self.dtype, **(given | changes))

    @cached_property
    def steps(self) -> tuple[TypedStep, ...]:
        """The steps of the epilogue with their types."""
        return self.epilogue.typed(self.types.sums, self.out_dtype)

    @property
    def packed(self) -> frozenset[str]:
        """The names of the operands in packed layout.

        >>> Gemm(b="packed").packed
        frozenset({'b'})
        """
        return frozenset(operand.name for operand in self.operands if operand.layout is Layout.PACKED)

    @property
    def operation(self) -> str:
        """The operation: kernels of packed operands take `PackedMatrix`."""
        return "packed_gemm" if self.packed else "gemm"

    @property
    def operands(self) -> tuple[Operand, Operand, Operand]:
        """A (m, k), B (k, n) and C (m, n)."""
        return (
            Operand("a", self.m, self.k, self.dtype, self.a, "mk"),
            Operand("b", self.k, self.n, self.b_dtype, self.b, "kn"),
            Operand("c", self.m, self.n, self.out_dtype, self.c, "mn"),
        )

    @cached_property
    def step_operands(self) -> tuple[Operand, ...]:
        """The operands of the epilogue, in the order of its steps: vectors of one row or column, matrices."""
        return tuple(self._step_operand(step, name) for step, _, name in self.steps if name is not None)

    def _step_operand(self, step: Step, name: str) -> Operand:
        match step:
            case Bias(along, dtype) | Scale(along, dtype) if dtype is not None:
                rows = self.m if along is Along.ROW else 1
                columns = self.n if along is Along.COLUMN else 1
                return Operand(name, rows, columns, dtype, Layout.COL if along is Along.ROW else Layout.ROW)
            case Residual(dtype) if dtype is not None:
                layout = Layout.ROW if self.c is Layout.PACKED else self.c
                return Operand(name, self.m, self.n, dtype, layout)
            case _:
                raise AssertionError(f"{step} has no typed operand")

    @property
    def flops(self) -> int | None:
        """Operations of one call: 2·m·n·k, of complex numbers 8·m·n·k on their parts.

        None where a size is given at run time.
        """
        if self.m is None or self.n is None or self.k is None:
            return None
        return (8 if self.types.is_complex else 2) * self.m * self.n * self.k

    @property
    def bytes(self) -> int | None:
        """Bytes that one call with beta = 0 must move: A, B and operands of steps read, C written, each once.

        None where a size is given at run time.

        >>> Gemm(16, 6, 64).bytes, Gemm(16, 6, 64, epilogue="bias").bytes
        (6016, 6040)
        >>> Gemm(1, 6, 64, weights=Weights.parse("i4g32")).bytes
        520
        """
        if self.m is None or self.n is None or self.k is None:
            return None
        rest = self.m * (self.k * self.dtype.size + self.n * self.out_dtype.size)
        rest += sum((one.rows or 0) * (one.columns or 0) * one.dtype.size for one in self.step_operands)
        if self.weights is not None:
            return rest + self.n * self.weights.column_bytes(self.k)
        return rest + self.k * self.n * self.b_dtype.size

    def reference(
        self,
        a: NDArray[Any],
        b: NDArray[Any],
        c: NDArray[Any] | None = None,
        *,
        alpha: float = 1,
        beta: float = 0,
        operands: Sequence[NDArray[Any]] = (),
    ) -> NDArray[Any]:
        """The meaning of the problem: the exact formula evaluated in float64 or complex128.

        In 64-bit integers, which wrap around, where the elements are integers. Shapes a (m, k), b (k, n),
        c (m, n) -> (m, n). c is not read when beta is 0. The operands of the epilogue broadcast to (m, n).
        """
        exact = exact_dtype(self.types)
        m, n = a.shape[0], b.shape[1]
        result = np.zeros((m, n), exact)
        if alpha != 0 and a.shape[1] != 0:
            result += exact.type(alpha) * (a.astype(exact) @ b.astype(exact))
        if beta != 0:
            if c is None:
                raise InvalidSize(name="c", found=None, required="an array when beta is not 0")
            result += exact.type(beta) * c.astype(exact)
        return self.epilogue.reference(result, operands, self.types.sums, self.out_dtype)
