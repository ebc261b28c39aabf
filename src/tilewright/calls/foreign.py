"""Array-likes as operands: converted as NumPy does, rejected, or dispatched to their own library."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np

from tilewright.errors import ForeignArray, ForeignKeyword, MaskedOperand, NotAnArray, NoUfuncs, shown
from tilewright.recorder import current
from tilewright.spec.arguments import MOST_AXES, array_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

logger = logging.getLogger("tilewright.calls")

#: NumPy's functions, saved when the package is imported: programs may replace them by this package's.
NUMPY: dict[str, Callable[..., Any]] = {
    name: getattr(np, name)
    for name in ("matmul", "vecdot", "matvec", "vecmat", "einsum", "tensordot", "inner", "kron")
    if hasattr(np, name)  # NumPy 2.0 has no matvec and vecmat
}

#: Defaults of keywords of NumPy's product functions. The casting rule is also the one that products check.
SAME_KIND: Final = "same_kind"
ANY_ORDER: Final = "K"


#: Libraries whose arrays are refused everywhere: why, and what to do.
_REFUSED = {
    "dask": (
        "whose elements are not computed yet",
        "pass x.compute(), or call the function of tilewright.dask, or dask.array.map_blocks",
    ),
    "cupy": ("which is in the memory of a GPU", "pass x.get(), or call CuPy's own function"),
    "scipy.sparse": ("which does not store every element", "pass x.toarray(), or call its own functions"),
    "sparse": ("which does not store every element", "pass x.todense(), or call its own functions"),
    "polars": ("whose elements are not computed yet", "pass x.collect().to_numpy()"),
}
#: Libraries whose tables and labelled arrays are converted, though their classes have functions of their own.
_CONVERTED = {"pandas", "polars", "xarray"}


# --- operands -----------------------------------------------------------------------------------


def as_array(value: Any, name: str) -> NDArray[Any]:
    """An operand as a plain array.

    Raises
    ------
    MaskedOperand : for masked arrays, also in lists.
    ForeignArray : for arrays of libraries that override NumPy's functions, are sparse or lazy.
    NotAnArray : for None, text and objects of which NumPy makes no numbers.
    InvalidOperand : if NumPy cannot convert it.

    Examples
    --------
    >>> as_array([1, 2], "x")
    array([1, 2])
    """
    if type(value) is np.ndarray:
        return value
    refuse(value, name)
    recorder = current.recorder
    if recorder is None:
        return _converted(value, name)
    if not isinstance(value, (int, float, complex, np.generic)):
        recorder.refuse("an operand that is not an array")  # whose elements are copied at each call
    array = _converted(value, name)
    recorder.constant(array, array.__array_interface__["data"][0], max(array.nbytes, 1))  # it is in the key
    return array


def _converted(value: Any, name: str) -> NDArray[Any]:
    """What `numpy.asarray` makes of an operand, unless it is an array that holds the operand itself.

    Raises
    ------
    ForeignArray, NotAnArray, InvalidOperand
    """
    if value is None or isinstance(value, (str, bytes)):
        raise NotAnArray(name=name, found=shown(value), remedy="")
    array = array_of(value, name)
    if array.dtype.hasobject and not array.ndim and not isinstance(value, np.ndarray):
        _refuse_object(value, name)
    return array


def _refuse_object(value: Any, name: str) -> NoReturn:
    """Reject an object of which NumPy makes an array that holds the object itself.

    Raises
    ------
    ForeignArray, NotAnArray
    """
    kind = type(value)
    library = _REFUSED.get(_library(kind))
    if library is not None:
        raise ForeignArray(name=name, kind=_name_of(kind), reason=library[0], remedy=library[1])
    remedy = "; pass list(x), or numpy.fromiter(x, float)" if hasattr(kind, "__iter__") else ""
    raise NotAnArray(name=name, found=f"of type {_name_of(kind)}", remedy=remedy)


def refuse(value: Any, name: str) -> None:
    """Reject operands whose meaning `numpy.asarray` would change.

    Raises
    ------
    MaskedOperand, ForeignArray
    """
    kinds = _kinds(value, MOST_AXES) if isinstance(value, (list, tuple)) else (type(value),)
    for kind in kinds:
        if kind is np.ndarray:
            continue
        if is_masked(kind):
            raise MaskedOperand(name=name)
        _refuse_library(kind, name)
        if overrides(kind, "__array_function__"):
            raise ForeignArray(name=name, kind=_name_of(kind))
    _refuse_lazy(value, name)


def _refuse_library(kind: type, name: str) -> None:
    """Reject arrays of libraries of which `_REFUSED` says what to do.

    Raises
    ------
    ForeignArray
    """
    library = _library(kind)
    if library in _REFUSED and library not in _CONVERTED:
        reason, remedy = _REFUSED[library]
        raise ForeignArray(name=name, kind=_name_of(kind), reason=reason, remedy=remedy)


def _refuse_lazy(value: Any, name: str) -> None:
    """Reject collections of Dask's protocol, whose elements would be computed for the call and then dropped.

    Raises
    ------
    ForeignArray
    """
    graph = getattr(type(value), "__dask_graph__", None)
    if graph is not None and graph(value) is not None:
        reason, remedy = _REFUSED["dask"]
        raise ForeignArray(name=name, kind=_name_of(type(value)), reason=reason, remedy=remedy)


def _kinds(values: Iterable[Any], depth: int) -> Iterator[type]:
    """The types of the items of nested lists."""
    kinds = set(map(type, values))
    yield from kinds
    if depth > 1 and any(issubclass(kind, (list, tuple)) for kind in kinds):
        for value in values:
            if isinstance(value, (list, tuple)):
                yield from _kinds(value, depth - 1)


def is_masked(kind: type) -> bool:
    """Return whether a type is a masked array; NumPy imports numpy.ma when it is first used."""
    module = sys.modules.get("numpy.ma")
    masked = getattr(module, "MaskedArray", None)
    return masked is not None and issubclass(kind, masked)


def overrides(kind: type, protocol: str) -> bool:
    """Return whether a type overrides one of NumPy's protocols.

    >>> overrides(list, "__array_function__"), overrides(np.matrix, "__array_ufunc__")
    (False, False)
    """
    own = getattr(np.ndarray, protocol)
    return getattr(kind, protocol, own) is not own


def _library(kind: type) -> str:
    """The package of a class; of SciPy the part of it."""
    parts = str(kind.__module__).split(".")
    return ".".join(parts[:2]) if parts[0] == "scipy" else parts[0]


def _name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


# --- functions that NumPy has too ---------------------------------------------------------------


def foreign_operand(protocol: str, operands: Mapping[str, Any]) -> Any:
    """The first operand that NumPy's functions would dispatch to its own library, or None.

    Raises
    ------
    MaskedOperand, ForeignArray
    """
    for name, value in operands.items():
        kind = type(value)
        if kind is np.ndarray or value is None:
            continue
        if is_masked(kind):
            raise MaskedOperand(name=name)
        if overrides(kind, protocol) and _library(kind) not in _CONVERTED:
            _refuse_library(kind, name)
            return value
        _refuse_lazy(value, name)
    return None


def leave_to_numpy(
    function: str, foreign: Any, arguments: Iterable[Any], numpys: Mapping[str, Any], ours: Iterable[str] = ()
) -> Any:
    """Call NumPy's function of the same name, which dispatches to the library of one of the operands.

    Parameters
    ----------
    foreign : that operand.
    numpys : the given keywords that NumPy's function supports.
    ours : names of the other given keywords.

    Raises
    ------
    ForeignKeyword : a keyword is not supported by NumPy's function.
    NoUfuncs : the operand declares that it does not support universal functions.
    """
    kind = _name_of(type(foreign))
    numpys_own = NUMPY[function]
    if isinstance(numpys_own, np.ufunc) and type(foreign).__array_ufunc__ is None:
        raise NoUfuncs(function=function, kind=kind)
    for name in ours:
        raise ForeignKeyword(function=function, name=name, kind=kind)
    logger.debug("%s: dispatched to numpy.%s, since %s overrides it", function, function, kind)
    return numpys_own(*arguments, **numpys)


def wrapped(function: str, inputs: tuple[Any, ...], found: Any) -> Any:
    """A result in the type that NumPy's universal functions return.

    That is the subclass among the inputs with the highest ``__array_priority__``, the first one on ties.
    """
    arrays = [value for value in inputs if isinstance(value, np.ndarray) and type(value) is not np.ndarray]
    if not arrays:
        return found
    owner: Any = max(arrays, key=_priority)
    if _priority(owner) < 0 and any(type(value) is np.ndarray for value in inputs):
        return found
    array = np.asarray(found)
    context = (NUMPY[function], inputs, 0)
    try:
        return owner.__array_wrap__(array, context, array.ndim == 0)
    except TypeError:  # a class from before NumPy 2
        return owner.__array_wrap__(array, context)


def viewed(a: Any, b: Any, found: Any) -> Any:
    """A result in the type that `numpy.inner` returns: that of a, or of b if its priority is higher."""
    owner = b if _priority(b) > _priority(a) else a
    if type(owner) is np.ndarray or not isinstance(owner, np.ndarray):
        return found
    return np.ndarray.__array_wrap__(owner, np.asarray(found))[()]


def _priority(value: Any) -> float:
    return float(value.__array_priority__) if isinstance(value, np.ndarray) else 0.0
