"""Batch-reduce GEMM as a problem: a sum of products, every size hardcoded, with its meaning in NumPy."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, get_args

import numpy as np

from tilewright.cached import cached_property
from tilewright.errors import InvalidChoice, shown
from tilewright.records import dataclass
from tilewright.spec.arguments import as_number, check_integer, parse_choice
from tilewright.spec.constructor import constructor_text
from tilewright.spec.dtype import DType
from tilewright.spec.problem import Layout, Operand, ProductTypes, exact_dtype
from tilewright.spec.records import set_fields
from tilewright.typing import BatchModeName, ElementType, LayoutName

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: What a hardcoded kernel may be: beyond it compilation takes long and `Gemm` is as fast.
MAX_KERNEL_M = MAX_KERNEL_N = MAX_KERNEL_COUNT = 1024
MAX_KERNEL_K = 2048


class BatchMode(Enum):
    """Addressing of a batch's operands: constant stride or arrays of pointers; or one product of a batch."""

    STRIDE, ADDRESS, AHEAD = get_args(BatchModeName)


@dataclass(frozen=True, init=False)
class BatchReduceGemm:
    """C[m, n] = beta * C[m, n] + sum over i of A_i[m, k] @ B_i[k, n], every size hardcoded.

    Parameters
    ----------
    m, n, k, count : sizes and number of products, 1 to 1024 (k to 2048).
    dtype : element type of A ("f32", "bf16", "i8", ...).
    b_dtype : that of B; by default A's.
    out_dtype : that of C; by default the wider of A's and B's. Sums are kept in float32, float64, 32 or 64
        bits (`ProductTypes.acc`) and converted when they are stored.
    a, b, c : layouts "row" or "col"; leading dimensions are given with each call.
    beta : 1 adds to C, 0 replaces it without reading it.
    batch : "stride" (A_i is br_stride_a elements after A_(i-1)) or "address" (A and B are arrays of
        pointers; the batch strides are then not read); or "ahead": one product, and the batch strides lead
        to the next one, which is prefetched: its A, B and C are taken to be without gaps, C to follow C.
        Nothing is prefetched where both operands are packed (instructions of several depths, complex
        numbers) or tiles hold depths of A in registers (Neon).

    Raises
    ------
    UnsupportedDtype, InvalidSize, InvalidChoice

    Examples
    --------
    >>> BatchReduceGemm(16, 6, 64, 1).flops
    12288

    Source: scalable.uni-jena.de/opt/pbtc, §7.2.
    """

    operation: ClassVar[str] = "brgemm"
    __repr__ = constructor_text
    m: int
    n: int
    k: int
    count: int
    dtype: DType
    b_dtype: DType
    out_dtype: DType
    a: Layout
    b: Layout
    c: Layout
    beta: int
    batch: BatchMode

    def __init__(
        self,
        m: int,
        n: int,
        k: int,
        count: int = 1,
        dtype: DType | ElementType = "f32",
        *,
        a: Layout | LayoutName = Layout.COL,
        b: Layout | LayoutName = Layout.COL,
        c: Layout | LayoutName = Layout.COL,
        b_dtype: DType | ElementType | None = None,
        out_dtype: DType | ElementType | None = None,
        beta: int = 1,
        batch: BatchMode | BatchModeName = BatchMode.STRIDE,
    ) -> None:
        types = ProductTypes.parse(dtype, b_dtype, out_dtype)
        values: dict[str, object] = {
            "dtype": types.a,
            "b_dtype": types.b,
            "out_dtype": types.c,
            "batch": parse_choice(BatchMode, batch, "batch"),
        }
        limits = (MAX_KERNEL_M, MAX_KERNEL_N, MAX_KERNEL_K, MAX_KERNEL_COUNT)
        for name, size, limit in zip(("m", "n", "k", "count"), (m, n, k, count), limits, strict=True):
            required = f"an integer from 1 to {limit}; use tilewright.Gemm beyond that"
            values[name] = check_integer(size, name, 1, limit, required)
        if values["batch"] is BatchMode.AHEAD and count != 1:
            raise InvalidChoice(name="batch", found="ahead", allowed="stride, address, where count is not 1")
        for name, layout in (("a", a), ("b", b), ("c", c)):
            values[name] = parse_choice(Layout, layout, name, (Layout.ROW, Layout.COL))
        number = as_number(beta)
        if number not in (0, 1):
            raise InvalidChoice(name="beta", found=shown(beta), allowed="0, 1")
        values["beta"] = int(number == 1)
        set_fields(self, **values)

    @cached_property
    def types(self) -> ProductTypes:
        """The element types of A, B and C, and that of the sums."""
        return ProductTypes.parse(self.dtype, self.b_dtype, self.out_dtype)

    @property
    def operands(self) -> tuple[Operand, Operand, Operand]:
        """One A (m, k), one B (k, n), and C (m, n)."""
        return (
            Operand("a", self.m, self.k, self.dtype, self.a, "mk"),
            Operand("b", self.k, self.n, self.b_dtype, self.b, "kn"),
            Operand("c", self.m, self.n, self.out_dtype, self.c, "mn"),
        )

    @property
    def flops(self) -> int:
        """Operations of one call: 2·m·n·k·count, of complex numbers 8·m·n·k·count on their parts."""
        return (8 if self.types.is_complex else 2) * self.m * self.n * self.k * self.count

    @property
    def bytes(self) -> int:
        """Bytes that one call must move: A and B read, C written, and read where beta is 1; each once.

        >>> BatchReduceGemm(16, 6, 64, 1).bytes
        6400
        """
        inputs = self.m * self.dtype.size + self.n * self.b_dtype.size
        return self.count * self.k * inputs + self.out_dtype.size * (1 + self.beta) * self.m * self.n

    def reference(self, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any] | None = None) -> NDArray[Any]:
        """The meaning of the problem: a (count, m, k), b (count, k, n), c (m, n) -> (m, n).

        In float64 or complex128; in 64-bit integers, which wrap around, where the elements are integers.
        """
        exact = exact_dtype(self.types)
        total = np.einsum("imk,ikn->mn", a.astype(exact), b.astype(exact))
        if self.beta and c is not None:
            total = total + c.astype(exact)
        return np.asarray(total)
