"""The systems that are measured: tilewright and its peers, one row each."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import repeat
from typing import TYPE_CHECKING, Any, Protocol

from tilewright.errors import InvalidChoice, PackageMissing

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


@dataclass(frozen=True)
class Product:
    """One prepared product; every system is called the same way, so the overhead of the loop is equal."""

    function: Callable[..., object]
    a: object
    b: object
    out: object

    def run(self, calls: int) -> None:
        """Compute out = a @ b, `calls` times."""
        function, a, b, out = self.function, self.a, self.b, self.out
        for _ in repeat(None, calls):
            function(a, b, out=out)


class System(Protocol):
    """Something that multiplies matrices; it is loaded only in its own worker process."""

    @property
    def name(self) -> str:
        """The name on the command line and in reports."""

    @property
    def package(self) -> str:
        """The package that must be installed."""

    def prepare(self, a: NDArray[Any], b: NDArray[Any], out: NDArray[Any], threads: int) -> Product:
        """Bring the operands into the system's own form, without copying, on `threads` threads."""


@dataclass(frozen=True)
class Tilewright:
    """The package itself, loaded by name and called from outside like any other."""

    name: str = "tilewright"
    package: str = "tilewright"

    def prepare(self, a: NDArray[Any], b: NDArray[Any], out: NDArray[Any], threads: int) -> Product:  # noqa: ARG002
        """The thread count comes from the worker's environment."""
        return Product(import_module(self.package).matmul, a, b, out)


@dataclass(frozen=True)
class NumPy:
    """`numpy.matmul`, on the BLAS that NumPy was built with."""

    name: str = "numpy"
    package: str = "numpy"

    def prepare(self, a: NDArray[Any], b: NDArray[Any], out: NDArray[Any], threads: int) -> Product:
        """The environment bounds the threads of the BLAS; threadpoolctl, where installed, sets them."""
        function = import_module(self.package).matmul
        with contextlib.suppress(ImportError):
            import_module("threadpoolctl").threadpool_limits(threads, user_api="blas")
        return Product(function, a, b, out)


@dataclass(frozen=True)
class Torch:
    """`torch.matmul` on tensors that share memory with the NumPy arrays."""

    name: str = "torch"
    package: str = "torch"

    def prepare(self, a: NDArray[Any], b: NDArray[Any], out: NDArray[Any], threads: int) -> Product:
        """Outside of autograd, on `threads` intra-op threads."""
        torch = import_module(self.package)
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        return Product(torch.matmul, *(torch.from_numpy(array) for array in (a, b, out)))


TILEWRIGHT = Tilewright()
#: Whom tilewright is compared with. A new peer is a row here.
PEERS: tuple[System, ...] = (NumPy(), Torch())
SYSTEMS: tuple[System, ...] = (*PEERS, TILEWRIGHT)


def find_system(name: str) -> System:
    """The row of a name, if its package is installed.

    Raises
    ------
    InvalidChoice : no row has the name.
    PackageMissing : the package is not installed.

    Examples
    --------
    >>> find_system("numpy").name
    'numpy'
    """
    for system in SYSTEMS:
        if system.name == name:
            if find_spec(system.package) is None:
                raise PackageMissing(
                    purpose=f"measuring {name}", package=system.package, install=system.package
                )
            return system
    raise InvalidChoice(name="system", found=repr(name), allowed=", ".join(row.name for row in SYSTEMS))


def parse_peers(text: str) -> tuple[str, ...]:
    """The peers of a comma list, which may be empty; tilewright itself is not one.

    >>> parse_peers("numpy")
    ('numpy',)
    """
    allowed = [row.name for row in PEERS]
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    for name in names:
        if name not in allowed:
            raise InvalidChoice(name="peer", found=repr(name), allowed=", ".join(allowed))
        find_system(name)
    return names
