"""C functions of PyTorch by which machine code reads tensors and makes new ones.

They are those of PyTorch's stable C interface (torch/csrc/inductor/aoti_torch/c/shim.h), and four of C++ that
it lacks. What these rely on is tried on a few tensors before any call does; where one is missing, or answers
otherwise, Python serves the calls.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np

from tilewright.calls.layout import HEADER
from tilewright.spec.dtype import named_numpy_dtype

#: torch/csrc/autograd/python_variable.h: the handle of a tensor, behind the header of its Python object.
TENSOR_HANDLE = HEADER
#: Numbers of element types are below this, a power of two.
MOST_TORCH_TYPES = 64
#: Words of the C++ object that are searched for the set of dispatch keys.
_MOST_FIELDS = 64

#: How often the functions are tried, a millisecond each: modes of PyTorch, as that of fake tensors and the
#: levels of forward-mode differentiation, may be in the way.
_MOST_TRIES = 32

#: Names of the functions, in order of preference; all take a handle unless noted.
_SYMBOLS = {
    "data": ("aoti_torch_get_data_ptr",),  # and each of these where to store the answer
    "axes": ("aoti_torch_get_dim",),
    "shape": ("aoti_torch_get_sizes",),
    "strides": ("aoti_torch_get_strides",),  # in elements
    "dtype": ("aoti_torch_get_dtype",),
    "empty": ("aoti_torch_empty_strided",),  # axes, shape, strides, dtype, device type and number, handle
    "view": ("aoti_torch__reinterpret_tensor",),  # handle, axes, shape, strides, offset, handle
    "delete": ("aoti_torch_delete_tensor_object",),
    "grad_mode": ("aoti_torch_grad_mode_is_enabled",),  # no arguments
    "requires_grad": ("_ZNK3c1010TensorImpl13requires_gradEv",),  # the C++ object
    "tangent": ("_ZNK3c1010TensorImpl8_fw_gradEmRKN2at10TensorBaseE",),  # the C++ object, a level, a handle
    "wrap": (  # the Python object of a tensor
        "_Z16THPVariable_WrapON2at10TensorBaseE",
        "_Z16THPVariable_WrapRKN2at10TensorBaseE",
        "_Z16THPVariable_WrapN2at10TensorBaseE",
    ),
}


class TorchFunctions(ctypes.Structure):
    """What machine code knows of PyTorch; all 0 before the first tensor.

    Attributes
    ----------
    keys : where the C++ object of a tensor has its set of dispatch keys.
    plain_keys, inference_keys : the sets of tensors on the CPU with elements in memory as they are read.
    no_tensor : what `tangent` points to where there is none.
    sizes : bytes of an element by the number of the type; 0 for types that NumPy lacks.
    """

    _fields_ = (
        *((name, ctypes.c_void_p) for name in _SYMBOLS),
        ("keys", ctypes.c_int64),
        ("plain_keys", ctypes.c_int64),
        ("inference_keys", ctypes.c_int64),
        ("no_tensor", ctypes.c_int64),
        ("sizes", ctypes.c_int64 * MOST_TORCH_TYPES),
    )


def numpy_type_of(dtype: Any) -> np.dtype[Any] | None:
    """NumPy's type of an element type of PyTorch; None where there is none, and for integers of 4 bits."""
    found = named_numpy_dtype(str(dtype).partition(".")[2])
    return None if found is None or found.name.endswith("int4") else found


class TorchTypes:
    """The table of `TorchFunctions` of this process, and the numbers of PyTorch's element types."""

    def __init__(self) -> None:
        self.table = TorchFunctions()
        self.numbers: dict[np.dtype[Any], int] = {}
        self._tries = 0

    def connect(self) -> bool:
        """Fills the table; returns whether machine code can use it."""
        if not self.numbers and self._tries < _MOST_TRIES:
            self._tries += 1
            torch = sys.modules["torch"]
            try:
                with torch.inference_mode(mode=False), torch.enable_grad():
                    self._fill(torch)
            except Exception:  # whatever a mode of PyTorch raises: Python makes the call
                self.numbers.clear()
        return bool(self.numbers)

    def _fill(self, torch: Any) -> None:
        library = ctypes.PyDLL(torch._C.__file__)  # noqa: SLF001
        table = self.table
        for name, symbols in _SYMBOLS.items():
            found = next(symbol for symbol in symbols if hasattr(library, symbol))
            setattr(table, name, ctypes.cast(getattr(library, found), ctypes.c_void_p).value)
        with torch.no_grad():
            plain = torch.ones((2, 3), dtype=torch.complex64, device="cpu")
            others = plain.conj(), plain.to("meta"), plain.to_sparse(), torch.nn.Parameter(plain)
        with torch.inference_mode():
            inference = torch.ones(1, device="cpu")
        keys = {id(tensor): _keys(torch, tensor) for tensor in (plain, inference, *others)}
        offsets = range(0, 8 * _MOST_FIELDS, 8)
        (table.keys,) = (
            offset
            for offset in offsets
            if all(
                _word(tensor._cdata + offset) == keys[id(tensor)]  # noqa: SLF001
                for tensor in (plain, inference, *others)
            )
        )
        if len({keys[id(plain)], keys[id(inference)], *map(keys.get, map(id, others[:3]))}) < 5:
            raise ValueError("sets of keys that do not differ")
        table.plain_keys, table.inference_keys = keys[id(plain)], keys[id(inference)]
        parameter = others[3]
        asked = [bool(self._call("requires_grad", tensor._cdata)) for tensor in (plain, parameter)]  # noqa: SLF001
        if keys[id(parameter)] != table.plain_keys or asked != [False, True]:
            raise ValueError("tensors that require grad")
        table.no_tensor = _word(self._call("tangent", plain._cdata, 0, _handle(plain)))  # noqa: SLF001
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(torch.ones(1), torch.ones(1))
            tangent = _word(self._call("tangent", dual._cdata, 0, _handle(dual)))  # noqa: SLF001
        if tangent == table.no_tensor or self._call("grad_mode") & 1 != torch.is_grad_enabled():
            raise ValueError("tangents")
        numbers: dict[np.dtype[Any], int] = {}
        for dtype in {one for one in vars(torch).values() if isinstance(one, torch.dtype)}:
            known = numpy_type_of(dtype)
            if known is not None:
                number = self._asked("dtype", torch.empty(1, dtype=dtype, device="cpu")) & 0xFFFFFFFF
                table.sizes[number], numbers[known] = known.itemsize, number
        turned = torch.ones((2, 3), device="cpu").T
        lengths = [
            [_word(self._asked(name, turned) + 8 * axis) for axis in (0, 1)] for name in ("shape", "strides")
        ]
        read = lengths, self._asked("axes", turned), self._asked("data", turned)
        if read != ([[3, 2], [1, 3]], 2, turned.data_ptr()):
            raise ValueError("shapes of tensors")
        self.numbers = numbers

    def _call(self, name: str, *arguments: int) -> int:
        kinds = [ctypes.c_size_t] * len(arguments)
        return int(ctypes.PYFUNCTYPE(ctypes.c_size_t, *kinds)(getattr(self.table, name))(*arguments))

    def _asked(self, name: str, tensor: Any) -> int:
        answer = ctypes.c_int64(0)
        if self._call(name, _handle(tensor), ctypes.addressof(answer)) & 0xFFFFFFFF:
            raise ValueError(name)
        return answer.value


def _keys(torch: Any, tensor: Any) -> int:
    return int(torch._C._dispatch_keys(tensor).raw_repr())  # noqa: SLF001


def _word(address: int) -> int:
    return int(ctypes.c_int64.from_address(address).value)


def _handle(tensor: Any) -> int:
    """The address of the handle in a Python tensor."""
    handle = id(tensor) + TENSOR_HANDLE
    if _word(handle) != tensor._cdata:  # noqa: SLF001
        raise ValueError("where a tensor has its handle")
    return handle


#: The one table of this process.
torch_types = TorchTypes()
