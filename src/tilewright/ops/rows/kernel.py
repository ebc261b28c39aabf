"""Kernels of functions of rows and of single elements: their C function, and calls on lines of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tilewright.calls.operands import Array, data_address
from tilewright.calls.promotion import store
from tilewright.compiler.kernel import Kernel
from tilewright.ops.elementwise.problem import Elementwise
from tilewright.ops.rows.problem import RowFunction
from tilewright.preparing import once_property, preparing
from tilewright.threads.pool import call_team
from tilewright.threads.scratch import ScratchPool

#: Multiply-adds of a product that take as long as one element of a row: 60 a nanosecond, beside 4 elements.
ELEMENT_WORK = 16


class RowKernel(Kernel):
    """A kernel of a `RowFunction` or an `Elementwise`.

    The C function at `address` takes pointers to x, y, weight and bias (the last two where the problem has
    them), the sizes and strides of `macro.row_function.row_sizes`, eps of norms, scratch where the program
    `needs_scratch` (null where it has no buffer there), and a team.
    """

    problem: RowFunction | Elementwise

    @once_property
    def pool(self) -> ScratchPool | None:
        """Where the buffers of rows come from."""
        return super().pool if self.nest.scratch else None

    def run(
        self, arrays: Sequence[Array], sizes: tuple[int, ...], elements: int, scalars: Sequence[float] = ()
    ) -> None:
        """One call on arrays that are known to fit: x, y and what stands beside the columns.

        Parameters
        ----------
        sizes : those of `row_sizes`.
        elements : of x.
        """
        with call_team(elements * ELEMENT_WORK) as team:
            if self.pool is None:
                none = (None,) * self.nest.needs_scratch
                self.function(*map(data_address, arrays), *sizes, *scalars, *none, team)
                return
            with self.pool.block() as scratch:
                self.function(*map(data_address, arrays), *sizes, *scalars, scratch, team)


class RowCall(NamedTuple):
    """A call of a kernel on x, y and what stands beside; see `RowKernel.run`."""

    kernel: RowKernel
    arrays: Sequence[Array]
    sizes: tuple[int, ...]
    elements: int
    scalars: Sequence[float] = ()

    def run(self) -> None:
        """Does it."""
        self.kernel.run(self.arrays, self.sizes, self.elements, self.scalars)


class Prepared(NamedTuple):
    """A call of a public function after its checks.

    Attributes
    ----------
    x : the array, copied where it had to be.
    target : where the result is computed.
    out : where it goes, if that is not a new array.
    call : the call of a kernel on these; None where there is nothing to do, or arrays are moved around it.
    moved : does that.
    scalar : whether a new result without axes becomes a scalar, as NumPy's do.
    """

    x: Array
    target: Array
    out: Array | None
    call: RowCall | None
    moved: Callable[[], None] | None = None
    scalar: bool = False

    def run(self) -> Array:
        """The result."""
        if self.call is not None:
            self.call.run()
        elif self.moved is not None:
            self.moved()
        if self.out is None:
            return self.target[()] if self.scalar else self.target
        if self.target is self.out:
            return self.target
        store(self.target, self.out)
        return self.out

    @property
    def repeatable(self) -> RowCall | None:
        """The call of a kernel, where that is all that happens."""
        return self.call if self.out is None or self.target is self.out else None


#: The kernels of this process, by their problems.
_kernels: dict[RowFunction | Elementwise, RowKernel] = {}


def row_kernel(problem: RowFunction | Elementwise) -> RowKernel:
    """The kernel of a problem on this host."""
    found = _kernels.get(problem)
    if found is None:
        with preparing:
            found = _kernels.get(problem)
            if found is None:
                found = _kernels.setdefault(problem, RowKernel.compiled(problem))
    return found
