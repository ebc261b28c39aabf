"""Cache of prepared calls of row and element functions, which machine code reads.

A recipe belongs to one function, to arrays of known types, shapes and strides, to floats of known values and
to other arguments that are known objects. As with einsum's, it is immutable, and freed only while no
call uses it.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.operands import Array
from tilewright.calls.recipes import MOST_AXES, RecipeTable
from tilewright.ops.rows.kernel import ELEMENT_WORK, Prepared, RowCall
from tilewright.ops.rows.nest import row_sizes

#: Arguments of a call: x, weight, bias, axis, eps and out.
MOST_ARGUMENTS = 6
#: Words of a key: the function and the number of arguments, and how many of them are given by name; names; of
#: each array two and two for each axis.
MOST_WORDS = 2 + MOST_ARGUMENTS + MOST_ARGUMENTS * (2 + 2 * MOST_AXES)
#: Tags of arrays and floats in an argument's second word; for arrays combined with the number of axes.
IS_ARRAY, IS_FLOAT = 1 << 8, 1 << 9
#: Flag of keyword arguments in the word that counts them.
NAMED = 1 << 16
#: Most arrays in addition to x: weight and bias.
MOST_BESIDE = 2
#: Integers of which CPython has one object each: cpython/pycore_runtime_structs.h, _PY_NSMALLNEGINTS.
SINGLE_INTEGERS = range(-5, 257)


class RowRecipe(ctypes.Structure):
    """One prepared call: its key, its kernel, and the argument positions of the arrays; -1: not passed.

    Attributes
    ----------
    code : the kernel.
    form : its calling convention, an index of `FORMS`.
    scratch : the table of its blocks; null where it needs none.
    work : in multiply-adds.
    same : whether x and `out` have the same strides, and so may be the same array.
    reach : for x, `out` and the vectors: from the first element to the first byte and past the
        last one.
    dtype : NumPy's descriptor of a new result.
    axes, shape : number of axes and shape of a new result.
    scalar : whether a result without axes becomes a scalar.
    uses : calls that use it now; counted by machine code, under the GIL.
    """

    _fields_ = (
        ("words", ctypes.c_int64),
        ("key", ctypes.c_int64 * MOST_WORDS),
        ("code", ctypes.c_void_p),
        ("form", ctypes.c_int64),
        ("scratch", ctypes.c_void_p),
        ("work", ctypes.c_int64),
        ("x", ctypes.c_int64),
        ("out", ctypes.c_int64),
        ("beside", ctypes.c_int64 * MOST_BESIDE),
        ("same", ctypes.c_int64),
        ("reach", ctypes.c_int64 * (2 * (2 + MOST_BESIDE))),
        ("sizes", ctypes.c_int64 * len(row_sizes())),
        ("eps", ctypes.c_double),
        ("dtype", ctypes.c_void_p),
        ("axes", ctypes.c_int64),
        ("shape", ctypes.c_int64 * MOST_AXES),
        ("scalar", ctypes.c_int64),
        ("uses", ctypes.c_int64),
    )


class Form(NamedTuple):
    """Calling convention of a kernel: arrays besides x and y, type of eps, whether scratch is passed."""

    beside: int
    eps: str | None
    scratch: bool


#: Every calling convention: functions of elements, softmax, norms.
FORMS = (
    Form(0, None, scratch=False),
    Form(0, None, scratch=True),
    *(Form(beside, acc, scratch=True) for acc in ("f32", "f64") for beside in range(MOST_BESIDE + 1)),
)


def _reach(array: Array) -> tuple[int, int]:
    """From the first element to the first byte and behind the last one."""
    ends = [(length - 1) * step for length, step in zip(array.shape, array.strides, strict=True)]
    return sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends) + array.itemsize


def call_words(owner: object, arguments: Sequence[Any], named: Mapping[str, Any]) -> list[int] | None:
    """The words machine code reads of a call, in order; None if these do not identify the call."""
    given = (*arguments, *named.values())
    if len(given) > MOST_ARGUMENTS:
        return None
    words = [id(owner), len(given) + NAMED * len(named), *map(id, named)]
    for value in given:
        if type(value) is np.ndarray:
            if value.ndim > MOST_AXES or not value.flags.aligned:
                return None
            words += [id(value.dtype), IS_ARRAY + value.ndim]
            for length, step in zip(value.shape, value.strides, strict=True):
                words += [length, step]
        elif type(value) is float:
            words += [*struct.unpack("<q", struct.pack("<d", value)), IS_FLOAT]
        elif _single(value):
            words += [id(value), 0]
        else:
            return None
    return words


def _single(value: object) -> bool:
    """Return whether an object is a singleton, identified by its address."""
    if type(value) is str:
        return sys.intern(value) is value
    return value is None or type(value) is bool or (type(value) is int and value in SINGLE_INTEGERS)


def _places(call: RowCall, arguments: Sequence[Any], named: Mapping[str, Any]) -> list[int] | None:
    """Positions of x, y (-1 for a new array) and the other arrays among the arguments.

    None if they are ambiguous: an object passed twice would be matched at one position only, and calls like
    this one may have two objects there. Only x may be `out` too. Other arrays, such as eps, may change.
    """
    given, (x, y) = (*arguments, *named.values()), call.arrays[:2]
    found: list[int] = []
    for array in call.arrays:
        places = [number for number, value in enumerate(given) if value is array]
        if x is y and array is x:
            out = len(arguments) + [*named].index("out") if "out" in named else places[-1]
            places = [place for place in places if (place == out) is (len(found) == 1)]
        if len(places) > 1 or (not places and len(found) != 1):
            return None
        found.append(places[0] if places else -1)
    others = any(isinstance(value, np.ndarray) for at, value in enumerate(given) if at not in found)
    return None if others else found


def make_recipe(
    call: RowCall, arguments: Sequence[Any], named: Mapping[str, Any], *, scalar: bool = False
) -> RowRecipe | None:
    """The recipe of a call; None where its arrays are not all arguments, or one new contiguous array,
    or where the result has more than `MOST_AXES` axes.

    Parameters
    ----------
    scalar : whether a new result without axes becomes a scalar.
    """
    kernel, y, places = call.kernel, call.arrays[1], _places(call, arguments, named)
    if places is None or y.ndim > MOST_AXES or (places[1] < 0 and not y.flags.c_contiguous):
        return None
    x, beside = call.arrays[0], call.arrays[2:]
    scalars = kernel.nest.scalars
    form = Form(len(beside), kernel.problem.acc.name if scalars else None, scratch=kernel.nest.needs_scratch)
    padding = [-1] * (MOST_BESIDE - len(beside))
    return RowRecipe(
        code=kernel.address,
        form=FORMS.index(form),
        scratch=None if kernel.pool is None else kernel.pool.table_address,
        work=call.elements * ELEMENT_WORK,
        x=places[0],
        out=places[1],
        beside=(*places[2:], *padding),
        same=(x.shape, x.strides) == (y.shape, y.strides),
        reach=tuple(end for array in call.arrays for end in _reach(array)),
        sizes=call.sizes,
        eps=call.scalars[0] if scalars else 0.0,
        dtype=id(y.dtype),
        axes=y.ndim,
        shape=y.shape,
        scalar=scalar,
    )


def add_recipe(
    table: RecipeTable, owner: object, arguments: Sequence[Any], named: Mapping[str, Any], done: Prepared
) -> None:
    """Record a call of a function, if machine code can recognise and repeat it."""
    words, given, call = call_words(owner, arguments, named), (*arguments, *named.values()), done.repeatable
    if words is None or call is None:
        return
    recipe = make_recipe(call, arguments, named, scalar=done.scalar)
    if recipe is None:
        return
    objects = [value.dtype if isinstance(value, np.ndarray) else value for value in given]
    table.put(words, recipe, (owner, call.kernel, call.arrays[1].dtype, tuple(named), objects))
