"""Kernels of functions of rows and of single elements: their C function, and calls on lines of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tilewright.calls.operands import Array, data_address
from tilewright.calls.promotion import store
from tilewright.compiler.kernel import Kernel
from tilewright.preparing import once_property
from tilewright.threads.pool import call_team
from tilewright.threads.scratch import ScratchPool

#: Multiply-adds that take as long as one element of a row: 60 per nanosecond, against 4 elements.
ELEMENT_WORK = 16


class RowKernel(Kernel):
    """A kernel of a function of rows or of single elements.

    The C function at `address` takes pointers to x, y, weight and bias (the last two where the problem has
    them), the sizes and strides of `macro.row_function.row_sizes`, eps of norms, scratch where the program
    `needs_scratch` (null where it has no buffer there), and a team.
    """

    @once_property
    def pool(self) -> ScratchPool | None:
        """Pool that provides the buffers of rows."""
        return super().pool if self.nest.scratch else None

    def run(
        self, arrays: Sequence[Array], sizes: tuple[int, ...], elements: int, scalars: Sequence[float] = ()
    ) -> None:
        """One call on validated arrays: x, y and the vectors along the columns.

        Parameters
        ----------
        sizes : those of `row_sizes`.
        elements : number of elements of x.
        """
        with call_team(elements * ELEMENT_WORK) as team:
            if self.pool is None:
                none = (None,) * self.nest.needs_scratch
                self.function(*map(data_address, arrays), *sizes, *scalars, *none, team)
                return
            with self.pool.block() as scratch:
                self.function(*map(data_address, arrays), *sizes, *scalars, scratch, team)


class RowCall(NamedTuple):
    """A kernel call on x, y and the vectors along the columns; see `RowKernel.run`."""

    kernel: RowKernel
    arrays: Sequence[Array]
    sizes: tuple[int, ...]
    elements: int
    scalars: Sequence[float] = ()

    def run(self) -> None:
        """Does it."""
        self.kernel.run(self.arrays, self.sizes, self.elements, self.scalars)


class Prepared(NamedTuple):
    """A validated call of a public function.

    Attributes
    ----------
    x : the array, or a copy if one was necessary.
    target : the array the result is computed in.
    out : the caller's output array, if any.
    call : the kernel call on these; None if there is nothing to do, or `moved` does it.
    moved : runs the kernel on a copy with contiguous rows.
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
