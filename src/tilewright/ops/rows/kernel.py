"""Calls of functions of rows and of single elements on lines of arrays, and their public functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Generic, NamedTuple, ParamSpec, Protocol, TypeVar

from tilewright.calls.operands import Array, data_address
from tilewright.calls.promotion import store
from tilewright.calls.recording import element, repeatable
from tilewright.calls.repeated import repeated
from tilewright.compiler.kernel import Kernel
from tilewright.macro.partition import MOVED_WORK
from tilewright.threads.pool import limited

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class RowCall(NamedTuple):
    """A call of a kernel of rows or of single elements on validated arrays.

    Attributes
    ----------
    arrays : x, y, weight and bias, the last two where the problem has them.
    sizes : those of `row_sizes`.
    elements : number of elements of x.
    scalars : eps of norms.
    """

    kernel: Kernel
    arrays: Sequence[Array]
    sizes: tuple[int, ...]
    elements: int
    scalars: Sequence[float] = ()

    def run(self) -> None:
        """Runs the kernel."""
        arguments = (*map(data_address, self.arrays), *self.sizes, *self.scalars)
        self.kernel.launch(arguments, self.elements * MOVED_WORK)


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
            return element(self.target) if self.scalar else self.target
        if self.target is self.out:
            return self.target
        store(self.target, self.out)
        return self.out


class _Runnable(Protocol[T_co]):
    """A validated call: `Prepared`, or one with more results."""

    def run(self) -> T_co:
        """The result."""


class Request(NamedTuple, Generic[T]):
    """A call of a public function.

    Attributes
    ----------
    prepare : validates the arguments and returns the work to do.
    threads : maximum number of threads of the call.
    """

    prepare: Callable[[], _Runnable[T]]
    threads: int | None


def served(ask: Callable[P, Request[T]]) -> Callable[P, T]:
    """The public function that executes the requests which a function prepares.

    It has the function's name, documentation and signature.
    """

    @wraps(ask)
    def execute(*arguments: P.args, **named: P.kwargs) -> T:
        prepare, threads = ask(*arguments, **named)
        if threads is None:
            result = prepare().run()
        else:
            with limited(threads):
                result = prepare().run()
        repeatable()
        return result

    return repeated(execute)
