"""What systems that multiply matrices have in common: prepared products, and the protocol of a system."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from itertools import repeat
from typing import TYPE_CHECKING, Any, Protocol

from tilewright.records import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tilewright.ops.gemm.problem import Gemm
    from tilewright.spec.problem import ProductTypes

#: A, B and C of one product.
Arrays = tuple["NDArray[Any]", "NDArray[Any]", "NDArray[Any]"]
#: Environment variables of a system's process.
Environment = Mapping[str, str]


@dataclass(frozen=True)
class SystemProduct:
    """A product of one system; all are called the same way, so the overhead of the loop is equal."""

    function: Callable[..., object]
    a: object
    b: object
    out: object

    def run(self, calls: int) -> None:
        """Compute out = a @ b, `calls` times."""
        function, a, b, out = self.function, self.a, self.b, self.out
        for _ in repeat(None, calls):
            function(a, b, out=out)

    def finish(self) -> None:
        """Bring the result of the last call into C, for systems that return a new array."""


@dataclass(frozen=True)
class ReturningProduct(SystemProduct):
    """One product by a system that returns a new array of its own; `out` receives it before the check."""

    last: list[Any] = field(default_factory=list, compare=False)

    def run(self, calls: int) -> None:
        """Compute a @ b, `calls` times, and wait for each."""
        function, a, b, result = self.function, self.a, self.b, None
        for _ in repeat(None, calls):
            result = function(a, b)
        self.last[:] = [result]

    def finish(self) -> None:
        """Copy the last result into C."""
        out: Any = self.out
        out[...] = self.last.pop()


@dataclass(frozen=True)
class KernelProduct(SystemProduct):
    """One product by a compiled kernel, which takes C behind its operands."""

    def run(self, calls: int) -> None:
        """Compute out = a @ b, `calls` times."""
        function, a, b, out = self.function, self.a, self.b, self.out
        for _ in repeat(None, calls):
            function(a, b, out)


class NamedSystem(Protocol):
    """A system of any kind; it is loaded only in its own worker process."""

    @property
    def name(self) -> str:
        """The name on the command line and in reports."""

    @property
    def package(self) -> str:
        """The package that must be installed."""


class System(NamedSystem, Protocol):
    """Something that multiplies matrices."""

    def environments(self, threads: int) -> tuple[Environment, ...]:
        """Environment settings to try for its process; the fastest on the measured cases is used."""

    def types(self, wanted: ProductTypes) -> ProductTypes:
        """The element types it computes where others are wanted: the same ones, or the nearest it has.

        Raises
        ------
        UnsupportedDtype : it has no product to compare with.
        """

    def call(self, types: ProductTypes) -> str:
        """What is called for element types of its own, as reports name it."""

    def prepare(self, gemm: Gemm, arrays: Arrays, threads: int, target: str | None) -> SystemProduct:
        """Bring arrays of its own types into the system's form, without copying, on `threads` threads."""


def stored(array: NDArray[Any]) -> tuple[NDArray[Any], bool]:
    """An array in the order its memory has, and whether its last two axes are exchanged in that."""
    flip = array.strides[-1] > array.strides[-2]
    return (array.swapaxes(-1, -2), True) if flip else (array, False)
