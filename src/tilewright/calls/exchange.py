"""Tensors of other libraries in public functions: operands as NumPy views, results of the same library.

`exchanged` looks at the arguments of a call. PyTorch tensors, JAX arrays, and what exports DLPack, the array
interface or a buffer become NumPy arrays in the same memory. If all arrays of the call are of PyTorch, or all
of JAX, the results become tensors of that library, also in the same memory.
"""

from __future__ import annotations

import ctypes
import enum
import inspect
import sys
from collections.abc import Callable, Iterable
from functools import lru_cache, wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast

import numpy as np

from tilewright.calls import dlpack
from tilewright.calls.foreign import overrides
from tilewright.calls.operands import Array
from tilewright.calls.torch_functions import numpy_type_of, torch_types
from tilewright.errors import RequiresGrad, TensorNotReadable
from tilewright.recorder import Numbered

P = ParamSpec("P")
T = TypeVar("T")

#: Levels of tuples and lists in which operands are looked for.
MOST_DEPTH = 8
#: Types of arguments that are no exporters.
_COMMON = {np.ndarray, int, float, bool, complex, str, bytes, type(None), dict, set, range, slice}
_OWN = (np.ndarray, np.generic, np.dtype, int, float, complex, str, bytes, enum.Enum, Numbered)


class Library(enum.Enum):
    """Where an operand comes from, which decides of what library the results are."""

    TORCH = "torch"
    JAX = "jax"
    OTHER = "another library"  # whose operands have results of NumPy
    NONE = "no operand"  # an element type


class Exporter(NamedTuple):
    """How arguments of a class are read.

    Attributes
    ----------
    library : whose arrays they are.
    view : the argument as NumPy's array in the same memory.
    known : whether arguments of the class are known to have one.
    """

    library: Library
    view: Callable[[Any], Any]
    known: bool = True


class ResultMaker(NamedTuple):
    """How machine code makes the results of a repeated call.

    Attributes
    ----------
    word : 1 for tensors of PyTorch, else the address of a function that makes something of each array.
    numbers : PyTorch's numbers of element types.
    function : the function, which must live as long as the recipe.
    """

    word: int
    numbers: dict[np.dtype[Any], int] | None = None
    function: Any = None


#: Exporters by class, in order of use: classes may be made in functions.
_exporters: dict[type, Exporter | None] = {}
_MOST_EXPORTERS = 256


def exporter_of(value: Any) -> Exporter | None:
    """How an argument is read, if it is an array of another library.

    >>> exporter_of(memoryview(b"ab")).library, exporter_of([1.0])
    (<Library.OTHER: 'another library'>, None)
    """
    kind = type(value)
    if kind in _COMMON:
        return None
    try:
        return _exporters[kind]
    except KeyError:
        found = _find_exporter(kind, value)
    if len(_exporters) >= _MOST_EXPORTERS:
        _exporters.clear()
    _exporters[kind] = found
    return found


def _find_exporter(kind: type, value: Any) -> Exporter | None:
    root = kind.__module__.partition(".")[0]
    if issubclass(kind, (*_OWN, list, tuple)) or isinstance(value, type) or root == "tilewright":
        return None
    torch = sys.modules.get("torch")
    if torch is not None and issubclass(kind, torch.Tensor):
        return Exporter(Library.TORCH, _view_torch, kind in (torch.Tensor, torch.nn.Parameter))
    if torch is not None and kind is torch.dtype:
        return Exporter(Library.NONE, _torch_dtype)
    if root in ("jax", "jaxlib") and hasattr(kind, "__array__"):
        values = kind.__name__ == "ArrayImpl"
        return Exporter(Library.JAX, _view_jax if values else _refuse_traced, values)
    if overrides(kind, "__array_function__") or overrides(kind, "__array_ufunc__"):
        return None  # its library has functions of its own
    own = getattr(value, "__dict__", ())
    if any(hasattr(kind, name) or name in own for name in ("__array_interface__", "__array_struct__")):
        return Exporter(Library.OTHER, _view_numpy)
    if hasattr(kind, "__dlpack__"):
        return Exporter(Library.OTHER, _view_dlpack)
    if ctypes.pythonapi.PyObject_CheckBuffer(ctypes.py_object(value)):
        return Exporter(Library.OTHER, _view_numpy)
    return None


def _refuse(value: Any, reason: object) -> TensorNotReadable:
    kind = type(value)
    return TensorNotReadable(name="an operand", kind=f"{kind.__module__}.{kind.__qualname__}", reason=reason)


def _view_numpy(value: Any) -> Array:
    try:
        return np.asarray(value)
    except (TypeError, ValueError, BufferError) as error:
        raise _refuse(value, error) from error


def _view_dlpack(value: Any) -> Array:
    try:
        return dlpack.view(value)
    except (TypeError, ValueError, BufferError, RuntimeError, AttributeError) as error:
        raise _refuse(value, error) from error


#: Shardings on one CPU, as JAX calls the places of an array, by their ids.
_on_one_cpu: dict[int, Any] = {}
_MOST_SHARDINGS = 64


def _refuse_traced(value: Any) -> Array:
    raise _refuse(value, "it is not an array with values; use tilewright.jax, or call outside of jax.jit")


def _view_jax(value: Any) -> Array:
    try:
        sharding = value.sharding
        if id(sharding) not in _on_one_cpu:
            devices = value.devices()
            if len(devices) != 1 or next(iter(devices)).platform != "cpu":
                places = ", ".join(map(str, devices))
                raise _refuse(value, f"it is on {places}; copy it to one CPU device with jax.device_put")
            if len(_on_one_cpu) < _MOST_SHARDINGS:
                _on_one_cpu[id(sharding)] = sharding
        found = getattr(value, "_npy_value", None)  # what JAX itself returns from the second time on
        return np.asarray(value) if type(found) is not np.ndarray else found
    except TensorNotReadable:
        raise
    except (RuntimeError, TypeError, ValueError) as error:
        raise _refuse(value, error) from error


#: Why PyTorch's tensors have no elements in memory as NumPy's arrays have, and what to do.
_TORCH_REASONS: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (lambda t: t.device.type != "cpu", "it is on another device; pass x.cpu()"),
    (lambda t: t.is_quantized, "it is quantised; pass x.dequantize(), or see tilewright.quantize_weights"),
    (lambda t: not str(t.layout).endswith("strided"), "its layout is not strided; pass x.to_dense()"),
    (lambda t: t.is_conj(), "its conjugate bit is set; pass x.resolve_conj()"),
    (lambda t: t.is_neg(), "its negative bit is set; pass x.resolve_neg()"),
)


def _torch_dtype(dtype: Any) -> Any:
    return numpy_type_of(dtype) or dtype


def _view_torch(value: Any) -> Array:
    torch = sys.modules["torch"]
    if type(value) not in (torch.Tensor, torch.nn.Parameter):
        raise _refuse(value, "it is of a subclass of torch.Tensor; pass x.as_subclass(torch.Tensor)")
    for holds, reason in _TORCH_REASONS:
        if holds(value):
            raise _refuse(value, reason)
    duals = sys.modules["torch.autograd.forward_ad"]
    if duals._current_level >= 0 and duals.unpack_dual(value).tangent is not None:  # noqa: SLF001
        raise RequiresGrad(name="an operand", what="has a tangent")
    if value.requires_grad and torch.is_grad_enabled():
        raise RequiresGrad(name="an operand", what="requires grad")
    dtype = numpy_type_of(value.dtype)
    if dtype is None:
        raise _refuse(value, f"NumPy has no type for its {value.dtype}")
    try:
        plain = value.detach()
        if dtype.kind != "V":
            return cast("Array", plain.numpy())
        bits = torch.int16 if dtype.itemsize == 2 else torch.uint8
        return cast("Array", plain.view(bits).numpy().view(dtype))
    except (RuntimeError, TypeError, ValueError, AssertionError) as error:
        raise _refuse(value, str(error).partition("\n")[0]) from error


def _as_torch(array: Array) -> Any:
    """A tensor in the memory of an array; the array itself if PyTorch lacks its type."""
    torch = sys.modules["torch"]
    if any(step < 0 for step in array.strides):
        array = array.copy()
    if array.dtype.kind != "V":
        try:
            return torch.from_numpy(array)
        except TypeError:
            return array
    dtype = getattr(torch, array.dtype.name, None)
    if dtype is None or numpy_type_of(dtype) is None:
        return array
    bits = np.int16 if array.dtype.itemsize == 2 else np.uint8
    return torch.from_numpy(array.view(bits)).view(dtype)


def _as_jax(array: Array) -> Any:
    """A JAX array of an array that nobody else writes to; not copied if JAX can take over the memory."""
    jax = sys.modules["jax"]
    if array.nbytes <= _MOST_SAMPLE_BYTES:
        try:
            put, described = _jax_put(array.shape, array.dtype, jax.config.jax_default_device)
            if put is not None:
                return put(*described[:2], [array], *described[2:])
        except (AttributeError, ImportError, TypeError):
            pass  # this version of JAX has no such function
    return jax.device_put(array)


#: Results of up to this many bytes are described to JAX by an array that it made itself.
_MOST_SAMPLE_BYTES = 1 << 20


@lru_cache(maxsize=256)
def _jax_put(shape: tuple[int, ...], dtype: np.dtype[Any], device: Any) -> tuple[Any, tuple[Any, ...]]:
    """The function under `jax.device_put` and its arguments for such arrays, but for the array.

    None in place of the function where JAX changes the type.

    Parameters
    ----------
    device : JAX's default, which may change.
    """
    sample = sys.modules["jax"].device_put(np.zeros(shape, dtype), device)
    put = sys.modules[type(sample).__module__].batched_device_put if sample.dtype == dtype else None
    return put, (sample.aval, sample.sharding, [*sample.devices()], False)


def _maker_for_jax(result: Any) -> Callable[[Array], Any]:
    """`_as_jax` for arrays like one."""
    if not isinstance(result, np.ndarray) or result.nbytes > _MOST_SAMPLE_BYTES:
        return _as_jax
    config = sys.modules["jax"].config
    device = config.jax_default_device
    try:
        put, (aval, sharding, devices, committed) = _jax_put(result.shape, result.dtype, device)
    except (AttributeError, ImportError, TypeError):
        return _as_jax

    def make(array: Array) -> Any:
        if config.jax_default_device is not device:
            return _as_jax(array)
        return put(aval, sharding, [array], devices, committed)

    return _as_jax if put is None else make


_RESULTS: dict[Library, Callable[[Array], Any]] = {Library.TORCH: _as_torch, Library.JAX: _as_jax}


class Exchange:
    """The arguments of a call as the function takes them, and its results as the caller gets them.

    Attributes
    ----------
    arguments, named : the arguments with views in the place of operands of other libraries.
    library : whose arrays all arrays of the call are; None for several, and for NumPy's.
    """

    def __init__(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        self._views: dict[int, Any] = {}  # by the operand's id
        self._operands: dict[int, tuple[Any, Any]] = {}  # by the view's id: the operand, and the view
        self._libraries: set[Library | None] = set()
        self.arguments = tuple(self._each(arguments, MOST_DEPTH))
        self.named = dict(zip(named, self._each(named.values(), MOST_DEPTH), strict=True))

    @property
    def library(self) -> Library | None:
        """Whose arrays all arrays of the call are, if results can be of it."""
        only = next(iter(self._libraries)) if len(self._libraries) == 1 else None
        return only if only in _RESULTS else None

    def maker(self, result: Any) -> ResultMaker | None:
        """How machine code makes results of the call's library like this one; None for those of NumPy.

        Raises
        ------
        LookupError : if it cannot.
        """
        match self.library:
            case None:
                return None
            case Library.TORCH:
                if not torch_types.connect():
                    raise LookupError("tensors of a PyTorch that machine code does not know")
                return ResultMaker(1, torch_types.numbers)
            case _:
                function = _maker_for_jax(result)
                return ResultMaker(id(function), function=function)

    def made(self, array: Array) -> bool:
        """Return whether an array is the view of an operand of another library."""
        return id(array) in self._operands

    def _each(self, values: Iterable[Any], depth: int) -> list[Any]:
        return [self._viewed(value, depth) for value in values]

    def _viewed(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is np.ndarray:
            self._libraries.add(None)
            return value
        if isinstance(value, (list, tuple)):
            if not depth or not _exports((value,), depth):
                return value
            items = self._each(value, depth - 1)
            return _rebuilt(value, items)
        exporter = exporter_of(value)
        if exporter is None:
            return value
        if id(value) not in self._views:
            view = exporter.view(value)
            self._views[id(value)] = view
            self._operands[id(view)] = value, view
        if exporter.library is not Library.NONE:
            self._libraries.add(exporter.library)
        return self._views[id(value)]

    def result(self, found: Any) -> Any:
        """A result, or a tuple of them, as the caller gets it: an operand that it is, or a tensor."""
        if id(found) in self._operands:
            return self._operands[id(found)][0]
        if isinstance(found, (tuple, list)):
            return _rebuilt(found, [self.result(item) for item in found])
        library = self.library
        if library is None or not isinstance(found, (np.ndarray, np.generic)):
            return found
        return _RESULTS[library](np.asarray(found))


def _rebuilt(values: Any, items: list[Any]) -> Any:
    """A tuple or a list of the same class with other items."""
    if hasattr(values, "_replace"):
        return values._replace(**dict(zip(values._fields, items, strict=True)))
    return items if isinstance(values, list) else tuple(items)


def _exports(values: Iterable[Any], depth: int) -> bool:
    """Return whether some argument, or an item of tuples and lists, is of another library."""
    for value in values:
        if type(value) in _COMMON:
            continue
        if isinstance(value, (list, tuple)):
            if (
                depth
                and (len(value) < 1 or type(value[0]) not in (int, float))
                and _exports(value, depth - 1)
            ):
                return True
        elif exporter_of(value) is not None:
            return True
    return False


def exchanged(
    function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]
) -> Exchange | None:
    """The exchange of a call; None if all its operands are NumPy's.

    Raises
    ------
    TensorNotReadable : for an operand whose elements are not in this memory as an array has them.
    RequiresGrad : for a tensor that PyTorch records operations of, which these would be missing in.
    """
    if not _exports(arguments, MOST_DEPTH) and not _exports(named.values(), MOST_DEPTH):
        return None
    try:
        return Exchange(arguments, named)
    except (TensorNotReadable, RequiresGrad) as error:
        fields = {**error.fields, "name": _name_of(function, arguments, named)}
        raise type(error)(**fields) from error.__cause__


def _name_of(function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> str:
    """The name of the first argument that cannot be read."""
    try:
        given = inspect.signature(function).bind_partial(*arguments, **named).arguments
    except TypeError:
        given = named
    for name, value in given.items():
        try:
            Exchange((value,), {})
        except (TensorNotReadable, RequiresGrad):
            return name
    return "an operand"


def exchanging(function: Callable[P, T]) -> Callable[P, T]:
    """A public function that takes arrays of other libraries, as one does that is `repeated`."""

    @wraps(function)
    def execute(*arguments: P.args, **named: P.kwargs) -> T:
        exchange = exchanged(function, arguments, named)
        if exchange is None:
            return function(*arguments, **named)
        return cast("T", exchange.result(function(*exchange.arguments, **exchange.named)))

    return execute
