"""Functions of NumPy that are no universal functions, replaced by name in NumPy's own modules.

Each serves plain arrays of numbers from a size on. Everything else is the replaced function's: subclasses,
other libraries' arrays, objects, unusual arguments, every error and every warning. `ndarray.dot` is a method
of a C type and cannot be replaced.
"""

from __future__ import annotations

import functools
import pkgutil
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from tilewright.errors import TilewrightError
from tilewright.installation.rows import BLAS_LETTERS, LETTERS
from tilewright.ops.einsum.products import kron, tensordot
from tilewright.ops.einsum.public import einsum

#: Multiply-adds from which a product gains, by BLAS's types and by others.
_LEAST_OF_BLAS, _LEAST = 1 << 23, 1 << 13
#: The same for contractions, whose first call of a kind is checked and planned by Python.
_LEAST_CONTRACTION = 1 << 16
#: Words for which NumPy looks for an order of contraction.
ORDERS = ("greedy", "optimal")
#: Elements of a result of `kron`.
_LEAST_KRON = 1 << 14


class Replaced:
    """A function in place of one of NumPy's.

    It equals that function, so that tables of other libraries whose keys are NumPy's functions find their
    entries by either.

    Attributes
    ----------
    former : the function of NumPy.
    taken, passed_on : calls that were served, and the others.
    """

    def __init__(self, former: Callable[..., Any], place: str, serve: Callable[..., Any]) -> None:
        functools.update_wrapper(self, former)
        self.former, self.place, self.serve = former, place, serve
        self.taken = self.passed_on = 0

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Calls the function."""
        found = NotImplemented
        if len(arguments) > 1:
            found = self.serve(*arguments, **named)
        if found is NotImplemented:
            self.passed_on += 1
            return self.former(*arguments, **named)
        self.taken += 1
        return found

    def __eq__(self, other: object) -> bool:
        return other is self or other is self.former

    def __hash__(self) -> int:
        return hash(self.former)

    def __repr__(self) -> str:
        return repr(self.former)

    def __reduce__(self) -> tuple[Any, ...]:
        return pkgutil.resolve_name, (self.place,)


def _plain(a: Any, b: Any) -> bool:
    """Return whether two operands are arrays of one type that loops know."""
    if type(a) is not np.ndarray or type(b) is not np.ndarray:
        return False
    return a.dtype is b.dtype and a.dtype.char in LETTERS


def _watched() -> dict[str, Any]:
    """The kinds of floating-point errors that the caller does not ignore."""
    return {kind: word for kind, word in np.geterr().items() if word != "ignore"}


def _unless_errors(compute: Callable[[], Any]) -> Any:
    """A product by a universal function; NotImplemented after a floating-point error that the caller watches.

    NumPy's function then computes it again, and warns or raises under its own name.
    """
    errors: list[str] = []
    quiet: dict[str, Any] = dict.fromkeys(("divide", "over", "under", "invalid"), "ignore")
    with np.errstate(**quiet | dict.fromkeys(_watched(), "call"), call=lambda kind, _: errors.append(kind)):
        found = compute()
    return NotImplemented if errors else found


def _unless_infinite(compute: Callable[[], Any]) -> Any:
    """A result; NotImplemented where it is not finite and the caller watches floating-point errors."""
    watched = _watched()
    if "under" in watched:
        return NotImplemented
    try:
        found = compute()
    except TilewrightError:
        return NotImplemented
    inexact = found.dtype.kind in "fc"
    return NotImplemented if inexact and watched and not np.isfinite(found).all() else found


def _dot(a: Any, b: Any, out: Any = None, *rest: Any, transposed: bool = False, **named: Any) -> Any:
    """``numpy.dot`` of matrices and vectors; with a transposed B, ``numpy.inner``."""
    if rest or named or not _plain(a, b) or not (0 < a.ndim < 3 and 0 < b.ndim < 3):
        return NotImplemented
    if transposed:
        b = b.T
    work = a.size * (b.shape[1] if b.ndim > 1 else 1)
    if work < (_LEAST_OF_BLAS if a.dtype.char in BLAS_LETTERS else _LEAST) or a.shape[-1] != b.shape[0]:
        return NotImplemented
    if out is not None and (transposed or not _fits(out, a, b)):
        return NotImplemented
    if a.dtype.kind not in "fc":
        return np.matmul(a, b, out=out)
    return _unless_errors(lambda: np.matmul(a, b, out=out))


def _fits(out: Any, a: Any, b: Any) -> bool:
    """Return whether ``numpy.dot`` takes this `out`, and may compute once more after `out` has changed."""
    return bool(
        type(out) is np.ndarray
        and out.dtype is a.dtype
        and out.shape == (*a.shape[:-1], *b.shape[1:])
        and out.flags.c_contiguous
        and out.flags.behaved
        and not np.may_share_memory(out, a)
        and not np.may_share_memory(out, b)
    )


def _tensordot(a: Any, b: Any, *rest: Any, **named: Any) -> Any:
    if not _plain(a, b) or a.size * b.size < _LEAST_CONTRACTION:
        return NotImplemented
    if len(rest) + len(named) > 1 or (named and "axes" not in named):
        return NotImplemented
    return _unless_infinite(lambda: tensordot(a, b, *rest, **named))


def _kron(a: Any, b: Any, *rest: Any, **named: Any) -> Any:
    if rest or named or not _plain(a, b) or a.size * b.size < _LEAST_KRON:
        return NotImplemented
    return _unless_infinite(lambda: kron(a, b))


def _einsum(subscripts: Any, *operands: Any, **named: Any) -> Any:
    """``numpy.einsum`` of two arrays or more; ``optimize`` is for NumPy's own order."""
    if type(subscripts) is not str or len(operands) < 2 or named.keys() - {"optimize"}:
        return NotImplemented
    optimize = named.get("optimize", False)
    if type(optimize) is not bool and optimize not in ORDERS:
        return NotImplemented
    first = operands[0]
    if not all(_plain(first, operand) for operand in operands):
        return NotImplemented
    if _multiplications(subscripts, operands) < _LEAST_CONTRACTION:
        return NotImplemented
    if optimize:  # it warns, as matmul does
        return _unless_infinite(lambda: einsum(subscripts, *operands))
    try:
        return einsum(subscripts, *operands)
    except TilewrightError:
        return NotImplemented


def _multiplications(subscripts: str, operands: tuple[Any, ...]) -> int:
    """Terms of the sums without any order of contraction; 0 where the subscripts do not fit."""
    inputs = subscripts.partition("->")[0].replace(" ", "").split(",")
    sizes: dict[str, int] = {}
    for labels, operand in zip(inputs, operands, strict=False):
        if len(labels) != operand.ndim or "." in labels:
            return 0
        sizes.update(zip(labels, operand.shape, strict=True))
    total = 1
    for size in sizes.values():
        total *= size
    return total


#: NumPy's functions and what serves them. `multi_dot` multiplies by the `dot` of its module.
_SERVED: dict[str, Callable[..., Any]] = {
    "numpy:dot": _dot,
    "numpy:inner": functools.partial(_dot, transposed=True),
    "numpy:tensordot": _tensordot,
    "numpy:kron": _kron,
    "numpy:einsum": _einsum,
}


class Names:
    """The names in the modules of NumPy that are loaded, and what was there."""

    def __init__(self) -> None:
        self.functions: dict[str, Replaced] = {}
        self._places: list[tuple[ModuleType, str, Any, Replaced]] = []

    def install(self) -> None:
        """Puts the functions into the modules."""
        modules = _modules_of_numpy()
        for place, serve in _SERVED.items():
            name = place.partition(":")[2]
            former = pkgutil.resolve_name(place)
            known = self.functions.get(name)
            if known is None or known.former is not former:
                known = self.functions[name] = Replaced(former, place, serve)
            for module in modules:
                if vars(module).get(name) is former:
                    self._places.append((module, name, former, known))
                    setattr(module, name, known)

    def uninstall(self) -> None:
        """Puts back what was there, where it is still ours."""
        while self._places:
            module, name, former, ours = self._places.pop()
            if vars(module).get(name) is ours:
                setattr(module, name, former)


def _modules_of_numpy() -> list[ModuleType]:
    """The modules of NumPy that are loaded, without its tests."""
    # Most of the thousands of modules of a large program are told apart by their first letters.
    names = [name for name in list(sys.modules) if name[:5] == "numpy" and name[5:6] in ("", ".")]
    loaded = (sys.modules.get(name) for name in names if ".tests" not in name)
    return [module for module in loaded if module is not None]
