"""Kernels of `Gemm`: one product, batches of them, and the kernels behind `matmul`."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from tilewright.cached import cached_property
from tilewright.calls.afterwards import afterwards
from tilewright.calls.batch import (
    BatchAxis,
    batch_function,
    fixed_batch_function,
    make_loop,
    merge_axes,
    outer_offsets,
)
from tilewright.calls.kernel import ArrayKernel
from tilewright.calls.kernels import kernel_for
from tilewright.calls.operands import Array, data_address, element_strides
from tilewright.calls.recording import keep, repeatable
from tilewright.calls.repeated import repeated_method
from tilewright.compiler.interface import SCRATCH_ALIGNMENT
from tilewright.compiler.scratch import scratch_for, scratch_pool
from tilewright.errors import InvalidScalar
from tilewright.ops.batch_reduce.kernel import BatchReduceKernel
from tilewright.ops.gemm.epilogue_operands import step_matrices
from tilewright.ops.gemm.exact_sizes import exact_table
from tilewright.ops.gemm.matrix_values import Turns
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.gemm.small_products import (
    NEVER,
    PRODUCTS_TO_REPAY,
    BatchSteps,
    Fit,
    Specials,
    ahead_from,
    fit,
    largest_exact,
)
from tilewright.preparing import once, once_property
from tilewright.spec.dtype import DType
from tilewright.spec.epilogue import Epilogue, Residual
from tilewright.spec.factors import factor
from tilewright.spec.problem import Layout, ProductTypes
from tilewright.threads.pool import MOST_THREADS, call_team
from tilewright.threads.scratch import ScratchPool


class GemmKernel(ArrayKernel):
    """A kernel of a `Gemm`: ``kernel(a, b, c, alpha=1, beta=0)``, operands of the epilogue by their names."""

    problem: Gemm

    @cached_property
    def types(self) -> ProductTypes:
        """The element types of A, B and C, and that of the sums."""
        return self.problem.types

    @cached_property
    def ahead_from(self) -> int:
        """Bytes of a batch from which kernels of exact sizes prefetch the next product."""
        types = self.types
        if self.largest_exact < 0 or not types.uniform:
            return NEVER
        return ahead_from(self.machine, self.machine.isa.tile(types.a))

    @cached_property
    def largest_exact(self) -> int:
        """Multiply-adds up to which kernels of exact sizes serve in place of this one; -1: never."""
        types = self.types
        alike = types.a == types.b == types.c
        return largest_exact(self.machine.isa.tile(types.a)) if alike else -1

    @cached_property
    def _transposable(self) -> bool:
        problem = self.problem
        free = all(operand.layout is Layout.STRIDED for operand in problem.operands)
        alike = problem.dtype == problem.b_dtype
        return alike and free and problem.m is None and problem.n is None

    @cached_property
    def turns(self) -> Turns:
        """The products that native entries compute transposed."""
        if not self._transposable:
            return Turns.NONE
        return Turns.ONE_COLUMN if self.types.is_complex else Turns.ALL

    @once_property
    def _transposed(self) -> GemmKernel:
        """The kernel of the transposed product: this one, if rows and columns are alike to its epilogue."""
        transposed = self.problem.epilogue.transposed()
        if transposed == self.problem.epilogue:
            return self
        return type(self).compiled(self.problem.with_epilogue(transposed), self.machine)

    @once_property
    def pool(self) -> ScratchPool:
        """Where calls find scratch: batches and native entries take a block whatever the program needs."""
        return scratch_for(self.scratch_bytes_for(MOST_THREADS))

    @cached_property
    def scratch_step(self) -> int:
        """Bytes from one product's scratch to the next, where several are computed at once."""
        return -(-self.scratch_bytes // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT

    @cached_property
    def scratch_parts(self) -> int:
        """Number of products that one scratch block lets run in parallel."""
        step = self.scratch_step
        return self.pool.size // step if step else MOST_THREADS

    def run(
        self,
        a: Array,
        b: Array,
        c: Array,
        alpha: complex,
        beta: complex,
        scratch: int,
        operands: Sequence[Array] = (),
        team: int | None = None,
    ) -> None:
        """Run one product of validated arrays: aligned, native byte order, one dtype, no overlap.

        Where nothing is fixed at compile time, a column-major C is computed as the transposed product,
        which makes its rows contiguous. Operands of the epilogue are matrices: see `steps.step_matrices`.
        `team` is an open thread team; by default the call opens its own if the product is large enough.
        """
        kernel = self
        if self._transposable and _better_transposed(a, c, is_complex=self.types.is_complex):
            a, b, c = b.T, a.T, c.T
            kernel, operands = self._transposed, [operand.T for operand in operands]
        pointers = map(data_address, (a, b, c, *operands))
        strides = self.residual_strides(operands) if operands else ()
        sizes = _sizes(a, b, c)
        with (
            call_team(sizes[0] * sizes[1] * sizes[2])
            if team is None
            else contextlib.nullcontext(team) as given
        ):
            kernel.function(*pointers, *sizes, *strides, alpha, beta, scratch, given)

    def residual_strides(self, operands: Sequence[Array]) -> list[int]:
        """The strides, in elements, of those operands of the epilogue that are matrices."""
        residuals = [operands[number] for number in self._residuals]
        return [stride for array in residuals for stride in element_strides(array)]

    @cached_property
    def _residuals(self) -> list[int]:
        """The epilogue operands that are matrices."""
        steps = [step for step, _, name in self.problem.steps if name is not None]
        return [number for number, step in enumerate(steps) if isinstance(step, Residual)]

    def step_matrices(
        self, c: Array, given: dict[str, Any], sizes: tuple[int, int], factors: tuple[float, float]
    ) -> list[Array]:
        """The operands of the epilogue, checked: see `steps.step_matrices`."""
        acc, stored = self.types.acc, self.types.c
        if factors[1] != 0 and acc.is_integer is not stored.is_integer:
            required = f"0 where sums of {acc} go to a c of {stored}"
            raise InvalidScalar(name="beta", found=factors[1], required=required)
        found = step_matrices(self.name, self.problem, given, sizes)
        for operand, array in zip(self.problem.step_operands, found, strict=True):
            if np.may_share_memory(array, c):
                self._refuse(operand, "memory", "shared with c", "separate from c")
        return found

    def run_batch(
        self,
        a: Array,
        b: Array,
        c: Array,
        alpha: complex,
        beta: complex,
        scratch: int,
        operands: Sequence[Array] = (),
    ) -> None:
        """Run a batch of products of validated arrays: axes before the last two broadcast to those of c.

        Epilogue operands, of which at most `MOST_VECTORS` are vectors, are shared by all products.
        """
        batch = c.shape[:-2]
        if 0 in c.shape:  # also of rows or columns: a batch may be as long as it likes then
            return
        if not batch:
            self.run(a, b, c, alpha, beta, scratch, operands)
            return
        matrices = first_matrices(a, b, c)
        axes = _batch_axes(a, b, c)
        if not axes:
            self.run(matrices[0], matrices[1], matrices[2], alpha, beta, scratch, operands)
            return
        make_loop(self.types.acc)  # also if another one serves: a native entry may have come here for it
        # The longest axis runs in compiled code; the others, if any do not merge, around it.
        longest = max(axes, key=lambda axis: axis.length)
        others = [axis for axis in axes if axis is not longest]
        steps, kernel = longest.steps, self
        if self._transposable and _better_transposed(
            matrices[0], matrices[2], is_complex=self.types.is_complex
        ):
            kernel, operands = self._transposed, [operand.T for operand in operands]
            matrices = [matrices[1].T, matrices[0].T, matrices[2].T]
            others = [axis._replace(steps=_swapped(axis.steps)) for axis in others]
            steps = _swapped(steps)
        plain = alpha == 1 and beta == 0 and not self.problem.epilogue
        if plain and self._run_special(matrices, longest.length, steps, others):
            return
        sizes = _sizes(*matrices)
        pointers, vectors = ([data_address(array) for array in arrays] for arrays in (matrices, operands))
        run, step = batch_function(self.types.acc, len(vectors)), self.scratch_step
        with call_team(math.prod(sizes[:3]) * longest.length) as team:
            for offsets in outer_offsets(others):
                places = (pointer + offset for pointer, offset in zip(pointers, offsets, strict=True))
                rest = (alpha, beta, scratch, step, self.scratch_parts, team)
                run(kernel.address, longest.length, *steps, *places, *vectors, *sizes, *rest)

    def _run_special(
        self, matrices: list[Array], count: int, steps: tuple[int, ...], others: list[BatchAxis]
    ) -> bool:
        """Run a batch of one small shape with its exact-size kernel, if any; the result is bit-identical."""
        ahead = BatchSteps(count, steps).is_far(self.ahead_from)
        found = fit(
            matrices[0], matrices[1], matrices[2], self.problem.dtype, self.largest_exact, ahead=ahead
        )
        if found is None:
            return False
        products = count * math.prod(axis.length for axis in others)
        kernel = _specials().find(found.shape, products)
        if kernel is None:
            return False
        keep(kernel)
        run, address = fixed_batch_function(), kernel.address
        pointers = [data_address(matrix) for matrix in matrices]
        size = self.problem.dtype.size
        strides = (*found.leading, steps[0] // size, steps[1] // size)
        with call_team(math.prod(_sizes(*matrices)[:3]) * count) as team:
            for offsets in outer_offsets(others):
                places = (pointer + offset for pointer, offset in zip(pointers, offsets, strict=True))
                run(address, count, *steps, *places, *strides, team)
        return True

    @repeated_method
    def __call__(
        self, a: Array, b: Array, c: Array, *, alpha: complex = 1.0, beta: complex = 0.0, **operands: Any
    ) -> Array:
        """c = alpha · a @ b + beta · c and its epilogue, on arrays of the problem's shapes, dtypes, layouts.

        Parameters
        ----------
        operands : those of the epilogue by their names ("bias", "scale", "residual", a second one "bias_2"):
            vectors of n or m elements, numbers, matrices of c's shape.

        Raises
        ------
        OperandMismatch : if an array has another shape, dtype or layout, before c changes.
        StepOperands : if an operand of the epilogue is missing or unknown.
        InvalidScalar : if beta is not 0 although c cannot be added to the sums.
        ForeignKernel : if the kernel was compiled for another machine.
        """
        acc = self.types.acc
        factors = (factor(alpha, "alpha", acc), factor(beta, "beta", acc))
        self.check(a, b, c)
        steps = self.step_matrices(c, operands, (c.shape[0], c.shape[1]), factors)
        function_ready = self.function  # a foreign kernel is refused before scratch is taken
        del function_ready
        pool = self.pool
        with pool.block() as scratch:
            self.run(a, b, c, *factors, scratch, steps)
        if pool.table.wanted:  # native calls arrived here because no scratch block was free
            with afterwards(self.name):
                pool.supply()
        repeatable()
        return c


def first_matrices(a: Array, b: Array, c: Array) -> list[Array]:
    """The first matrices of a batch."""
    return [array if array.ndim == 2 else array[(0,) * (array.ndim - 2)] for array in (a, b, c)]


def _batch_axes(a: Array, b: Array, c: Array) -> tuple[BatchAxis, ...]:
    """The axes of a batch, of which those that follow each other are one."""
    batch = c.shape[:-2]
    return merge_axes(batch, [_batch_steps(array, len(batch)) for array in (a, b, c)])


def exact_fit(a: Array, b: Array, c: Array, dtype: DType, largest: int, least: int) -> Fit | None:
    """The shape of each product of a batch if a kernel of exact sizes can compute it: see `fit`.

    Parameters
    ----------
    least : bytes of a batch from which such kernels prefetch the next product.
    """
    axes = _batch_axes(a, b, c)
    longest = max(axes, key=lambda axis: axis.length, default=BatchAxis(1, (0, 0, 0)))
    ahead = BatchSteps(longest.length, longest.steps).is_far(least)
    one_a, one_b, one_c = first_matrices(a, b, c)
    return fit(one_a, one_b, one_c, dtype, largest, ahead=ahead)


def _batch_steps(array: Array, axes: int) -> list[int]:
    """Bytes from one matrix of an array to the next along each axis of a batch; 0 where it repeats."""
    own = array.ndim - 2
    steps = zip(array.shape[:own], array.strides, strict=False)
    return [0] * (axes - own) + [0 if length == 1 else step for length, step in steps]


def _better_transposed(a: Array, c: Array, *, is_complex: bool) -> bool:
    """Return whether to compute Cᵀ = Bᵀ·Aᵀ: for a column-major C, or a column-major A times one column.

    A complex C of several columns is computed as it is: transposed, imaginary parts would be rounded
    otherwise (`macro.nest.computed_transposed`).
    """
    row, column = element_strides(c)
    if column != 1:
        return row == 1 and not is_complex
    return row == 1 and c.shape[1] == 1 and element_strides(a)[0] == 1


def arranged(kernel: GemmKernel, a: Array, b: Array, c: Array) -> tuple[bool, tuple[int, ...]]:
    """Whether a kernel without fixed layouts computes the transposed product, and the sizes passed to it."""
    if _better_transposed(a, c, is_complex=kernel.types.is_complex):
        return True, _sizes(b.T, a.T, c.T)
    return False, _sizes(a, b, c)


def _swapped(steps: tuple[int, ...]) -> tuple[int, ...]:
    """Steps of a, b, c for the transposed product, where b comes first."""
    return steps[1], steps[0], steps[2]


def _sizes(a: Array, b: Array, c: Array) -> tuple[int, ...]:
    """m, n, k and the strides of three matrices in elements, as the C function takes them."""
    (m, k), n = a.shape, b.shape[1]
    return m, n, k, *element_strides(a), *element_strides(b), *element_strides(c)


@once
def _specials() -> Specials:
    return Specials(BatchReduceKernel.compiled, exact_table())


def make_wanted() -> None:
    """Compile the exact-size kernel that the native entry requested, if any."""
    shape = exact_table().take_wanted()
    if shape is not None:
        _specials().find(shape, PRODUCTS_TO_REPAY)


#: The kernels of plain products that native callers can reach, by name of the element types.
matmul_kernels: dict[str, GemmKernel] = {}

#: That of a plain product.
_NOTHING = Epilogue()


@cache
def matmul_kernel(types: ProductTypes | DType, epilogue: Epilogue = _NOTHING) -> GemmKernel:
    """The kernel behind `matmul` for some element types, or one of all: any sizes, any strides.

    Made for the host as the environment described it at the first use of the types and the epilogue.
    """
    if isinstance(types, DType):
        types = ProductTypes.parse(types)
    layouts: dict[str, Any] = dict.fromkeys("abc", Layout.STRIDED)
    kinds: dict[str, Any] = {"dtype": types.a, "b_dtype": types.b, "out_dtype": types.c, "sums": types.sums}
    kernel: GemmKernel = kernel_for(Gemm(**kinds, **layouts, epilogue=epilogue), quick=True)
    if not epilogue and types.chosen is None:  # native callers find a kernel by the types of the arrays
        matmul_kernels[types.name] = kernel
    return kernel


def native_kernels() -> list[tuple[tuple[np.dtype[Any], ...], GemmKernel]]:
    """The kernels that native callers can reach, which use the common scratch, with their NumPy types."""
    reachable: list[tuple[tuple[np.dtype[Any], ...], GemmKernel]] = []
    for kernel in list(matmul_kernels.values()):
        if kernel.pool is not scratch_pool():
            continue
        types = kernel.types
        reachable.append(((types.a.numpy, types.b.numpy, types.c.numpy), kernel))
        unsigned = types.a.unsigned_numpy_name
        if unsigned is not None and types.a == types.b == types.c:
            reachable.append(((np.dtype(unsigned),) * 3, kernel))
    return reachable
