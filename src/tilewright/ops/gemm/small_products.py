"""Kernels of exact sizes for small products that recur: made late, kept few.

The general kernel spends about 100 ns around a small product; a kernel of hardcoded sizes saves most of
it but takes about 10 ms to compile. So shapes are counted, and only one that has recurred often enough
to repay its compilation gets a kernel; a program of 10,000 shapes compiles none.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias

from numpy.typing import NDArray

from tilewright.machine.isa import TileFma
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import machine_tile, wide_tile
from tilewright.ops.batch_reduce.problem import BatchMode, BatchReduceGemm
from tilewright.preparing import preparing
from tilewright.recorder import current
from tilewright.spec.dtype import DTYPES, DType
from tilewright.spec.problem import Layout

Array: TypeAlias = NDArray[Any]

#: Products of one shape after which its kernel is compiled, 10 ms of work: what recurs ten thousand times
#: recurs more often than not, and at 40 ns saved each it then repays its compilation. From the object cache
#: the kernel takes less than 1 ms.
PRODUCTS_TO_REPAY = 10_000

#: Kernels that prefetch save a part of the time in which a product's bytes come, not a constant: each product
#: counts once for so many bytes. So a kernel is made after 40 MB, about 4 ms: more than it takes to load one
#: from the object cache, less than to compile it.
BYTES_OF_A_COUNT = 1 << 12

#: Sizes up to which there are kernels of exact sizes. They sum every depth in order, so they give the bits of
#: the general kernel while all depths are in one block and one chain: no core has a smaller kc for floats.
LARGEST_SIDE = 255

#: Multiply-adds up to which a kernel of exact sizes pays off; beyond, the general one is less than 5 %
#: slower. Where depths are interleaved, both pack their operands, and less is saved
#: (docs/decisions/061-exact-sizes.md).
MOST_IN_PLACE = 64**3
MOST_INTERLEAVED = 48**3

#: The next product of a batch is prefetched where the batch takes this share of L2, which may no longer hold
#: it, and a product at most the other share: two of them stay there (docs/decisions/074-next-products.md).
AHEAD_BATCH_L2, AHEAD_PRODUCT_L2 = 1 / 8, 1 / 4
#: The second as a multiple of the first, a power of two.
AHEAD_PRODUCTS = int(AHEAD_PRODUCT_L2 / AHEAD_BATCH_L2)
#: For cores and types that have no such kernels: a batch of so many bytes.
NEVER = (1 << 63) - 1

#: Kernels kept, and shapes counted, at most; the least recently used go first.
MOST_KERNELS = 64
MOST_COUNTED = 1024


class ExactSizeKey(NamedTuple):
    """Key of an exact-size kernel: C = A · B with a row-major C; plain strings and ints hash fast.

    `ahead`: it prefetches the next product of a batch.
    """

    m: int
    n: int
    k: int
    dtype: str
    a: str
    b: str
    ahead: bool = False

    @property
    def counts(self) -> int:
        """How often a product counts before there is a kernel.

        >>> ExactSizeKey(64, 64, 64, "f32", "row", "row").counts
        1
        >>> ExactSizeKey(64, 64, 64, "f32", "row", "row", ahead=True).counts
        12
        """
        if not self.ahead:
            return 1
        elements = self.m * self.k + self.k * self.n + self.m * self.n
        return max(1, elements * DTYPES[self.dtype].size // BYTES_OF_A_COUNT)

    @property
    def products_to_repay(self) -> int:
        """After so many products there is a kernel."""
        return -(-PRODUCTS_TO_REPAY // self.counts)

    def problem(self) -> BatchReduceGemm:
        """The problem of that kernel: one product that replaces C."""
        return BatchReduceGemm(
            *(self.m, self.n, self.k, 1, DTYPES[self.dtype]),
            a=Layout(self.a),
            b=Layout(self.b),
            c=Layout.ROW,
            beta=0,
            batch=BatchMode.AHEAD if self.ahead else BatchMode.STRIDE,
        )


def _layout(array: Array) -> tuple[Layout, int] | None:
    """Layout and leading dimension in elements, None where no axis is contiguous."""
    rows, columns = array.shape
    row, column = array.strides
    size = array.itemsize
    if column == size and row % size == 0 and row >= columns * size:
        return Layout.ROW, row // size
    if row == size and column % size == 0 and column >= rows * size:
        return Layout.COL, column // size
    return None


class BatchSteps(NamedTuple):
    """How many products a batch has, and bytes from one to the next, of A, B and C."""

    products: int
    steps: tuple[int, ...]

    def is_far(self, least: int) -> bool:
        """Whether it has more bytes than `ahead_from`, and each product not too many.

        >>> [BatchSteps(products, (4096, 4096, 4096)).is_far(256 << 10) for products in (500, 20)]
        [True, False]
        """
        each = sum(self.steps)
        return each * self.products > least and each <= least * AHEAD_PRODUCTS


class Fit(NamedTuple):
    """A shape, and the leading dimensions of three matrices that have it."""

    shape: ExactSizeKey
    leading: tuple[int, int, int]


def largest_exact(instruction: TileFma) -> int:
    """Multiply-adds up to which kernels of exact sizes serve beside a general one of this instruction.

    >>> from tilewright.machine.isa_rows import AVX512
    >>> from tilewright.spec.dtype import BF16, F32
    >>> largest_exact(AVX512.tile(F32)), largest_exact(AVX512.tile(BF16))
    (262144, 110592)
    """
    return MOST_IN_PLACE if instruction.kr == 1 else MOST_INTERLEAVED


def ahead_from(machine: Machine, instruction: TileFma) -> int:
    """Bytes of a batch from which kernels of exact sizes prefetch the next product.

    Where strips have wide tiles, which says that L3 is late and L2 large and fast; `NEVER` on other cores,
    which were not measured.
    """
    tile = machine_tile(machine, instruction)
    wide = wide_tile(machine, instruction, tile.mr, tile.nr)
    return NEVER if wide is None else int(machine.l2.size * AHEAD_BATCH_L2)


def fit(
    a: Array,
    b: Array,
    c: Array,
    dtype: DType,
    largest: int = MOST_IN_PLACE,
    *,
    ahead: bool = False,
) -> Fit | None:
    """The shape of a product of so many multiply-adds at most, if an exact-size kernel can compute it.

    With `ahead`, the next product of a batch is prefetched, and there may be more multiply-adds, if the
    matrices have no gaps.

    One column cannot be: its sums run along the depth in an order that these kernels do not have.

    >>> import numpy as np
    >>> ones = np.ones((4, 4), np.float32)
    >>> from tilewright.spec.dtype import F32
    >>> fit(ones, ones.T, ones.copy(), F32).shape.b
    'col'
    """
    (m, k), n = a.shape, b.shape[1]
    if not min(m, n, k) > 0 or n == 1 or max(m, n, k) > LARGEST_SIDE:
        return None
    of_a, of_b, of_c = _layout(a), _layout(b), _layout(c)
    if of_a is None or of_b is None or of_c is None or of_c[0] is not Layout.ROW:
        return None
    (in_a, ld_a), (in_b, ld_b), (_, ld_c) = of_a, of_b, of_c
    ahead = ahead and (ld_a, ld_b, ld_c) == (
        k if in_a is Layout.ROW else m,
        n if in_b is Layout.ROW else k,
        n,
    )
    if m * n * k > largest and not ahead:
        return None
    return Fit(ExactSizeKey(m, n, k, dtype.name, in_a.value, in_b.value, ahead), (ld_a, ld_b, ld_c))


class Published(Protocol):
    """The native lookup table of kernels (`exact_sizes.ExactTable`)."""

    def put(self, shape: ExactSizeKey, kernel: Any) -> None:
        """Makes a kernel reachable."""

    def drop(self, shape: ExactSizeKey) -> None:
        """Makes it unreachable."""


class Specials:
    """Counts of shapes, and the kernels of those that recurred.

    Parameters
    ----------
    compile_it : makes the kernel of a problem.
    published : where machine code looks for kernels, if it does.
    """

    def __init__(
        self, compile_it: Callable[[BatchReduceGemm], Any], published: Published | None = None
    ) -> None:
        self._compile, self._published = compile_it, published
        self._counts: OrderedDict[ExactSizeKey, int] = OrderedDict()
        self._kernels: OrderedDict[ExactSizeKey, Any] = OrderedDict()

    def find(self, shape: ExactSizeKey, products: int) -> Any | None:
        """The kernel of a shape, None until it would repay its compilation; counts these products.

        Also None while another thread holds the lock, most likely to compile: the general kernel gives the
        same bits, and its caller need not wait.
        """
        if not preparing.acquire(blocking=False):
            return None
        try:
            kernel = self._kernels.get(shape)
            if kernel is not None:
                self._kernels.move_to_end(shape)
                if self._published is not None:
                    self._published.put(shape, kernel)  # another shape may have had its place
                return kernel
            counted = products * shape.counts
            count = self._counts.pop(shape, 0) + counted
            if count < PRODUCTS_TO_REPAY:
                recorder = current.recorder
                if (
                    recorder is not None
                ):  # machine code repeats the call until the compilation would be repaid
                    recorder.limit(-(-(PRODUCTS_TO_REPAY - count) // counted))
                    count = PRODUCTS_TO_REPAY - 1
                self._counts[shape] = count
                if len(self._counts) > MOST_COUNTED:
                    self._counts.popitem(last=False)
                return None
            kernel = self._compile(shape.problem())
            self._kernels[shape] = kernel
            if self._published is not None:
                self._published.put(shape, kernel)
            if len(self._kernels) > MOST_KERNELS:
                oldest, unused = self._kernels.popitem(last=False)
                if self._published is not None:
                    self._published.drop(oldest)  # before `unused` goes, and its code with it
                del unused
            return kernel
        finally:
            preparing.release()
