"""The systems that are measured: tilewright and its peers, one row each."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import repeat
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from tilewright.errors import InvalidChoice, PackageMissing, UnsupportedDtype
from tilewright.spec.dtype import BF16, F16, F32, I8, I32, U8, DType
from tilewright.spec.problem import ProductTypes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tilewright.spec.problem import Gemm

#: A, B and C of one product.
Arrays = tuple["NDArray[Any]", "NDArray[Any]", "NDArray[Any]"]


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


@dataclass(frozen=True)
class KernelProduct(Product):
    """One product by a compiled kernel, which takes C behind its operands."""

    def run(self, calls: int) -> None:
        """Compute out = a @ b, `calls` times."""
        function, a, b, out = self.function, self.a, self.b, self.out
        for _ in repeat(None, calls):
            function(a, b, out)


class Named(Protocol):
    """A system of any kind; it is loaded only in its own worker process."""

    @property
    def name(self) -> str:
        """The name on the command line and in reports."""

    @property
    def package(self) -> str:
        """The package that must be installed."""


class System(Named, Protocol):
    """Something that multiplies matrices."""

    def types(self, wanted: ProductTypes) -> ProductTypes:
        """The element types it computes where others are wanted: the same ones, or the nearest it has.

        Raises
        ------
        UnsupportedDtype : it has no product to compare with.
        """

    def call(self, types: ProductTypes) -> str:
        """What is called for element types of its own, as reports name it."""

    def prepare(self, gemm: Gemm, arrays: Arrays, threads: int, target: str | None) -> Product:
        """Bring arrays of its own types into the system's form, without copying, on `threads` threads."""


@dataclass(frozen=True)
class Tilewright:
    """The package itself, loaded by name and called from outside like any other.

    Attributes
    ----------
    dtype : computes in this type whatever is wanted.
    lowering : who writes the tile products (`tilewright.compile`).
    """

    name: str = "tilewright"
    package: str = "tilewright"
    dtype: DType | None = None
    lowering: str = "target"

    def types(self, wanted: ProductTypes) -> ProductTypes:
        """What is wanted, or a product of one type."""
        return wanted if self.dtype is None else ProductTypes.parse(self.dtype)

    def call(self, types: ProductTypes) -> str:
        """`matmul`, or a kernel of a target or a lowering."""
        return f"tilewright, {types.name}" + (", generic lowering" if self.lowering != "target" else "")

    def prepare(self, gemm: Gemm, arrays: Arrays, threads: int, target: str | None) -> Product:  # noqa: ARG002
        """`matmul` on this host; the thread count comes from the worker's environment.

        For another target, or by another lowering, the kernel that `matmul` would take there.
        """
        package = import_module(self.package)
        if target is None and self.lowering == "target":
            return Product(package.matmul, *arrays)
        if arrays[2].ndim > 2:
            raise InvalidChoice(name="case", found="a batch", allowed="single products, which kernels take")
        layouts = dict.fromkeys("abc", "strided")
        types = gemm.types
        problem = package.Gemm(dtype=types.a, b_dtype=types.b, out_dtype=types.c, **layouts)
        return KernelProduct(package.compile(problem, target, lowering=self.lowering).native, *arrays)


@dataclass(frozen=True)
class NumPy:
    """`numpy.matmul`, on the BLAS that NumPy was built with where that has the element type."""

    name: str = "numpy"
    package: str = "numpy"

    def types(self, wanted: ProductTypes) -> ProductTypes:
        """NumPy's own types; a C that is wider than its operands is computed in its type."""
        plain = not any(dtype.extension for dtype in (wanted.a, wanted.b, wanted.c))
        if plain and wanted.c.holds(wanted.a) and wanted.c.holds(wanted.b):
            return wanted
        raise UnsupportedDtype(
            dtype=f"{wanted.name} of numpy", supported="NumPy's types, into a C that holds them"
        )

    def call(self, types: ProductTypes) -> str:
        """`matmul`, with the type it computes in where that is not the operands'."""
        dtype = "" if types.a == types.b == types.c else f", dtype={types.c.numpy}"
        return f"numpy.matmul({types.a}, {types.b}{dtype})"

    def prepare(self, gemm: Gemm, arrays: Arrays, threads: int, target: str | None) -> Product:  # noqa: ARG002
        """The environment bounds the threads of the BLAS; threadpoolctl, where installed, sets them."""
        function = import_module(self.package).matmul
        with contextlib.suppress(ImportError):
            import_module("threadpoolctl").threadpool_limits(threads, user_api="blas")
        types = gemm.types
        if not types.a == types.b == types.c:
            function = partial(function, dtype=types.c.numpy)
        return Product(function, *arrays)


@dataclass(frozen=True)
class Torch:
    """`torch.matmul` on tensors that are the NumPy arrays' memory; `torch._int_mm` for int8 into int32."""

    name: str = "torch"
    package: str = "torch"

    def types(self, wanted: ProductTypes) -> ProductTypes:
        """One type; 8-bit integers into int32 are int8, floats of 16 bits give what they are."""
        if wanted.c == I32 and {wanted.a, wanted.b} <= {I8, U8}:
            return ProductTypes.parse(I8, I8, I32)
        if wanted.a == wanted.b and (wanted.c == wanted.a or wanted.a in (BF16, F16)):
            one = ProductTypes.parse(wanted.a)
            if one.a == BF16 or not one.a.extension:
                return one
        raise UnsupportedDtype(dtype=f"{wanted.name} of torch", supported="one type, and int8 into int32")

    def call(self, types: ProductTypes) -> str:
        """`matmul`, or the product of int8 that has no public name."""
        name = "torch.matmul" if types.a == types.c else "torch._int_mm"
        return f"{name}({types.a}, {types.b})"

    def prepare(self, gemm: Gemm, arrays: Arrays, threads: int, target: str | None) -> Product:  # noqa: ARG002
        """Outside of autograd, on `threads` intra-op threads."""
        torch = import_module(self.package)
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        types = gemm.types
        function = torch.matmul if types.a == types.c else torch._int_mm  # noqa: SLF001  (it has no other)
        return Product(function, *(array_tensor(torch, array, types.a) for array in arrays))


def array_tensor(torch: Any, array: NDArray[Any], dtype: DType) -> Any:
    """The same memory as a tensor; torch takes no array of bfloat16, but its bits."""
    if dtype == BF16:
        return torch.from_numpy(array.view("int16")).view(torch.bfloat16)
    return torch.from_numpy(array)


AnySystem = TypeVar("AnySystem", bound=Named)

TILEWRIGHT = Tilewright()
#: Whom tilewright is compared with. A new peer is a row here.
PEERS: tuple[System, ...] = (NumPy(), Torch())
#: Products of the same sizes that tilewright computes in another way: what a type or a lowering costs.
VARIANTS: tuple[System, ...] = (
    Tilewright("tilewright-f32", dtype=F32),
    Tilewright("tilewright-generic", lowering="generic"),
)
SYSTEMS: tuple[System, ...] = (*PEERS, *VARIANTS, TILEWRIGHT)


def find_system(name: str, rows: Sequence[AnySystem] | None = None) -> AnySystem:
    """The row of a name, if its package is installed; of those that multiply matrices by default.

    Raises
    ------
    InvalidChoice : no row has the name.
    PackageMissing : the package is not installed.

    Examples
    --------
    >>> find_system("numpy").name
    'numpy'
    """
    known: Sequence[Any] = SYSTEMS if rows is None else rows
    for system in known:
        if system.name == name:
            if find_spec(system.package) is None:
                raise PackageMissing(
                    purpose=f"measuring {name}", package=system.package, install=system.package
                )
            found: AnySystem = system
            return found
    raise InvalidChoice(name="system", found=repr(name), allowed=", ".join(row.name for row in known))


def parse_peers(text: str, peers: Sequence[Named] = PEERS) -> tuple[str, ...]:
    """The peers of a comma list, which may be empty; tilewright itself is not one.

    >>> parse_peers("numpy")
    ('numpy',)
    """
    allowed = [row.name for row in peers]
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    for name in names:
        if name not in allowed:
            raise InvalidChoice(name="peer", found=repr(name), allowed=", ".join(allowed))
        find_system(name, peers)
    return names


def default_peers(types: ProductTypes) -> tuple[str, ...]:
    """NumPy; where it lacks the element types, the first installed peer that has them.

    >>> default_peers(ProductTypes.parse("f32"))
    ('numpy',)
    """
    for system in PEERS:
        with contextlib.suppress(UnsupportedDtype, PackageMissing):
            find_system(system.name).types(types)
            return (system.name,)
    return ()
