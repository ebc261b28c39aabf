"""Machine code that reads tensors of PyTorch, and makes new ones, by the functions of `TorchFunctions`."""

from __future__ import annotations

from typing import NamedTuple

from tilewright.calls.kinds import KeyKind
from tilewright.calls.layout import ADDRESS_BITS, ALIGNED, WRITEABLE
from tilewright.calls.object_code import ObjectCode
from tilewright.calls.recipes.recipe import ArrayField
from tilewright.calls.torch_functions import MOST_TORCH_TYPES, TENSOR_HANDLE, TorchFunctions
from tilewright.llvm.build import Callee
from tilewright.llvm.control import Block
from tilewright.llvm.values import INT8, INT32, INT64, POINTER, Type, Value, int32, int64

#: Where the first word of an argument has its kind, and that of an array its number of axes and flags, above
#: an address.
KIND_BIT, AXES_BIT, FLAGS_BIT = ADDRESS_BITS, ADDRESS_BITS + 4, ADDRESS_BITS


class AxesRead(NamedTuple):
    """What is read of an array or a tensor.

    Attributes
    ----------
    word : its kind, flags and element type.
    axes, shape, strides : how many lengths and strides there are, and where.
    start, size : the first element, and bytes of one.
    unit : how many bytes the unit of a stride has; None for one.
    """

    word: Value
    axes: Value
    start: Value
    size: Value
    shape: Value
    strides: Value
    unit: Value | None = None


def _call(f: ObjectCode, name: str, kind: Type, *arguments: Value) -> Value:
    """A call of one of PyTorch's functions."""
    code = f.pointer(f.symbol("torch"), getattr(TorchFunctions, name))
    return f.call(Callee(kind, code.text), arguments)


def read_tensor(f: ObjectCode, tensor: Value) -> AxesRead:
    """Emits the reading of a tensor.

    The function returns 0 where PyTorch records operations of the tensor, or its elements are not in memory
    as those of an array are: Python makes such calls.
    """
    table, handle = f.symbol("torch"), f.at(tensor, TENSOR_HANDLE)

    def given(condition: Value) -> None:
        f.return_if(f.not_(condition), int64(0))

    def fact(name: str) -> Value:
        return f.word(table, getattr(TorchFunctions, name))

    inner = f.pointer(handle)
    keys = f.load(INT64, f.at(inner, fact("keys")), 8)
    given(f.or_(f.icmp("==", keys, fact("plain_keys")), f.icmp("==", keys, fact("inference_keys"))))
    tangent = f.word(_call(f, "tangent", POINTER, inner, int64(0), handle))
    given(f.icmp("==", tangent, fact("no_tensor")))
    with f.when(f.icmp("!=", _call(f, "requires_grad", INT8, inner), 0)):
        given(f.icmp("==", _call(f, "grad_mode", INT8), 0))
    found = {}
    for name in ("axes", "shape", "strides", "dtype", "data"):
        place = f.alloca(INT64, 1, 8)
        f.put(place, 0, int64(0))  # a type has 32 bits
        given(f.icmp("==", _call(f, name, INT32, handle, place), 0))
        found[name] = place
    axes, dtype, start = (f.word(found[name]) for name in ("axes", "dtype", "data"))
    size = f.word(f.item(table, f.and_(dtype, int64(MOST_TORCH_TYPES - 1)), TorchFunctions.sizes))
    given(f.icmp("!=", size, 0))
    given(f.icmp("==", f.and_(start, f.sub(f.minimum(size, int64(8)), 1)), 0))
    word = f.add(dtype, int64(((ALIGNED | WRITEABLE) << FLAGS_BIT) + (KeyKind.TENSOR << KIND_BIT)))
    return AxesRead(word, axes, start, size, f.pointer(found["shape"]), f.pointer(found["strides"]), size)


def new_tensor(f: ObjectCode, record: Value, failed: Block, viewed: Value | None = None) -> Value:
    """Emits the making of a tensor with memory of its own, or of a view of another one.

    Parameters
    ----------
    record : see `ArrayField`.
    """
    handle, axes = f.alloca(POINTER, 1, 8), f.word(record, ArrayField.AXES)
    lengths = f.at(record, 8 * ArrayField.LENGTHS)
    layout = [axes, lengths, f.item(lengths, axes)]
    if viewed is None:
        number = f.trunc(f.sub(f.word(record, ArrayField.DTYPE), 1), INT32)
        status = _call(f, "empty", INT32, *layout, number, int32(0), int32(0), handle)
    else:
        offset = f.word(record, ArrayField.OFFSET)
        status = _call(f, "view", INT32, f.at(viewed, TENSOR_HANDLE), *layout, offset, handle)
    with f.when(f.icmp("!=", status, 0)):
        f.python("no_memory")
        f.jump(failed)
    owned = f.pointer(handle)
    made = _call(f, "wrap", POINTER, owned)
    _call(f, "delete", INT32, owned)
    f.leave_if(f.is_null(made), failed)
    return made


def data_of_tensor(f: ObjectCode, tensor: Value, place: Value) -> None:
    """Emits the writing of the address of a tensor's first element to a place."""
    _call(f, "data", INT32, f.at(tensor, TENSOR_HANDLE), place)
