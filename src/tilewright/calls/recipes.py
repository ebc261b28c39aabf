"""Prepared einsum calls for machine code: a table of recipes, keyed by operands.

A recipe belongs to one subscripts object and to operands of known types, shapes and strides. It is immutable,
and freed only when no call uses it, since machine code may read it without the GIL.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from enum import IntEnum
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from tilewright.calls.operands import Array, data_address

if TYPE_CHECKING:
    from tilewright.compiler.kernel import Kernel

#: Axes of an array that a recipe holds; calls with more go through Python.
MOST_AXES = 6
#: Operands of a call and steps of a recipe, at most.
MOST_OPERANDS, MOST_STEPS = 6, 12
#: Bytes of the largest result of a step: for larger ones the overhead of Python is negligible.
MOST_BYTES = 1 << 28
#: Words of a key: subscripts, `optimize`; of operands and `out` type, number of axes, two for each axis.
MOST_WORDS = 2 + (MOST_OPERANDS + 1) * (2 + 2 * MOST_AXES)
#: 2**64 divided by the golden ratio, made odd, as a signed number: multiplicative hashing (Knuth, TAOCP 6.4).
HASH = 0x9E3779B97F4A7C15 - (1 << 64)
#: Recipes kept; the table has twice as many slots, a power of two, so that most searches end at the first
#: one.
MOST_RECIPES = 2048
SLOT_BITS = 12
#: Slots searched from the one that a key hashes to; the table has this many extra slots at its end.
PROBES = 8
#: Integer arguments of kernels between arrays and team: five lengths, and five strides of each array.
NUMBERS = 20
#: High bits of a hash are mixed into its low ones before the next multiplication.
MIX_BITS = 32

assert 2 * MOST_RECIPES == 1 << SLOT_BITS


class Action(IntEnum):
    """Kind of a step."""

    VIEW = 0
    PRODUCT = 1  # `matmul` of views of two arrays
    KERNEL = 2  # a kernel of one or two arrays


class View(ctypes.Structure):
    """How an array is viewed; `axes` is -1 for the array itself.

    array : its number: operands first, then results of steps.
    offset : bytes from its first element.
    """

    _fields_ = (
        ("array", ctypes.c_int64),
        ("axes", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("shape", ctypes.c_int64 * MOST_AXES),
        ("strides", ctypes.c_int64 * MOST_AXES),
    )

    @classmethod
    def of(cls, whole: Array, part: Array, array: int = 0) -> View:
        """The view that `part` is of `whole`."""
        if part is whole:
            return cls(array, -1)
        return cls(array, part.ndim, data_address(part) - data_address(whole), part.shape, part.strides)


class RecipeStep(ctypes.Structure):
    """One step of a recipe.

    Attributes
    ----------
    views : views of arrays, in the argument order of the product or kernel.
    result : view of the output that is the result; for a kernel, the axes and shape of the output; for a
        product into `out`, the part that it writes.
    into_out : whether the result is written to `out`.
    scalar : whether the output of a kernel is returned as a number.
    dtype : NumPy's descriptor of a kernel's output.
    code, factors, numbers : a kernel, the number of arrays it reads, and its integer arguments.
    work : multiply-adds of a kernel.
    """

    _fields_ = (
        ("action", ctypes.c_int64),
        ("views", View * 2),
        ("result", View),
        ("into_out", ctypes.c_int64),
        ("scalar", ctypes.c_int64),
        ("dtype", ctypes.c_void_p),
        ("code", ctypes.c_void_p),
        ("factors", ctypes.c_int64),
        ("numbers", ctypes.c_int64 * NUMBERS),
        ("work", ctypes.c_int64),
    )


class Recipe(ctypes.Structure):
    """One prepared call: its key and its steps, the last of which produces the result.

    Attributes
    ----------
    work : the largest work of a step.
    itemsize : bytes of an element.
    uses : calls that are executing it; counted by machine code, under the GIL.
    """

    _fields_ = (
        ("words", ctypes.c_int64),
        ("key", ctypes.c_int64 * MOST_WORDS),
        ("count", ctypes.c_int64),
        ("steps", ctypes.c_void_p),
        ("work", ctypes.c_int64),
        ("itemsize", ctypes.c_int64),
        ("uses", ctypes.c_int64),
    )


#: Arrays of a pair with their numbers: operands first, then results of steps.
Placed: TypeAlias = "tuple[tuple[int, Array], tuple[int, Array]]"


class Made(NamedTuple):
    """A step, a stand-in array like its result, and objects that must live as long as the step."""

    step: RecipeStep
    result: Array
    needed: tuple[Any, ...] = ()


def like_result(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array | None:
    """A stand-in for the new array of a step; None if that would be too large."""
    return np.empty(shape, dtype) if prod(shape) * dtype.itemsize <= MOST_BYTES else None


def view_step(array: Array, view: Array, place: int) -> Made | None:
    """The step to a view of an array; None if it is not a view, or has too many axes."""
    if not 0 < view.ndim <= MOST_AXES or not np.may_share_memory(array, view):
        return None
    seen = View(place, view.ndim, data_address(view) - data_address(array), view.shape, view.strides)
    return Made(RecipeStep(action=Action.VIEW, views=(seen,)), view)


def product_step(
    factors: Sequence[tuple[int, Array, Array]], cut: Any, out: Array | None, *, last: bool
) -> Made | None:
    """The step to a product of views of arrays; None if machine code does not support it.

    Parameters
    ----------
    factors : for each factor: number of the array, the array, and the view of it.
    cut : the `Cut` from the product's output to the result.
    out : the array that receives it.
    last : whether it is the result of the call, which may be a number.
    """
    seen = tuple(View.of(array, view, place) for place, array, view in factors)
    views = [view for _, _, view in factors]
    if out is not None:
        target = cut.target(out)
        if target is None or max(array.ndim for array in (target, *views)) > MOST_AXES:
            return None
        result = View(0, target.ndim, data_address(target) - data_address(out), target.shape, target.strides)
        return Made(RecipeStep(action=Action.PRODUCT, views=seen, result=result, into_out=1), out)
    product = like_result(cut.product, factors[0][1].dtype)
    if product is None:
        return None
    result = cut.of(product)
    if result.ndim == 0 and (product.ndim > 0 or not last):  # an array in place of a number, or the reverse
        return None
    if max(array.ndim for array in (product, result, *views)) > MOST_AXES:
        return None
    return Made(RecipeStep(action=Action.PRODUCT, views=seen, result=View.of(product, result)), result)


def kernel_step(
    kernel: Kernel,
    places: Sequence[int],
    made: Array,
    call: tuple[Sequence[int], int],
    out: Array | None,
    *,
    last: bool,
) -> Made | None:
    """The step of a kernel with a C-contiguous result; None if machine code does not support it.

    Parameters
    ----------
    places : numbers of the arrays of its factors.
    made : an array like the result.
    call : integer arguments of the kernel, and its work in multiply-adds.
    out, last : as in `product_step`.
    """
    numbers, work = call
    if made.ndim > MOST_AXES or (out is not None and not out.flags.c_contiguous):
        return None
    step = RecipeStep(
        action=Action.KERNEL,
        views=tuple(View(place, -1) for place in places),
        result=View(0, made.ndim, 0, made.shape),
        into_out=out is not None,
        scalar=last and out is None and made.ndim == 0,
        dtype=id(made.dtype),
        code=kernel.address,
        factors=len(places),
        numbers=tuple(numbers),
        work=work,
    )
    return Made(step, made if out is None else out, (kernel, made.dtype))


class EinsumCall(NamedTuple):
    """An einsum call, as machine code identifies it.

    Attributes
    ----------
    subscripts, optimize : compared by identity; an `optimize` of "auto" counts as missing.
    operands : plain aligned arrays.
    out : output array, or None.
    """

    subscripts: str
    optimize: Any
    operands: Sequence[Array]
    out: Array | None = None

    @property
    def arrays(self) -> tuple[Array, ...]:
        """Operands, then `out` if there is one."""
        return (*self.operands, *(() if self.out is None else (self.out,)))

    @property
    def words(self) -> list[int]:
        """The key words, in the order in which machine code reads them."""
        words = [id(self.subscripts), 0 if self.optimize == "auto" else id(self.optimize)]
        for array in self.arrays:
            words += [id(array.dtype), array.ndim]
            for size, stride in zip(array.shape, array.strides, strict=True):
                words += [size, stride]
        return words

    @property
    def fits(self) -> bool:
        """Whether the call is within the limits of a recipe."""
        few = len(self.operands) <= MOST_OPERANDS and all(array.ndim <= MOST_AXES for array in self.arrays)
        return few and type(self.subscripts) is str and isinstance(self.optimize, (str, bool))


def slot_of(words: Sequence[int]) -> int:
    """The first slot of a key: the highest bits of a multiplicative hash.

    >>> slot_of([1]) == (HASH & (1 << 64) - 1) >> 64 - SLOT_BITS
    True
    """
    mixed, mask = 0, (1 << 64) - 1
    for word in words:
        mixed = ((mixed ^ word & mask) * HASH) & mask
        mixed ^= mixed >> MIX_BITS
    return mixed >> 64 - SLOT_BITS


class RecipeTable:
    """Python side of a table of recipes.

    A full table is cleared. Its recipes are freed at the next clearing, unless a call still uses them: it may
    have found one without having counted its use yet.
    """

    def __init__(self) -> None:
        self.slots = (ctypes.c_void_p * ((1 << SLOT_BITS) + PROBES))()
        self._kept: list[Any] = []
        self._retired: list[Any] = []

    @property
    def address(self) -> int:
        """The address of the table, for machine code."""
        return ctypes.addressof(self.slots)

    def add(self, call: EinsumCall, steps: Sequence[Made]) -> None:
        """Add the steps of an einsum call."""
        if len(steps) > MOST_STEPS or not call.fits:
            return
        made = (RecipeStep * len(steps))(*(one.step for one in steps))
        recipe = Recipe(
            count=len(steps),
            steps=ctypes.addressof(made),
            work=max(one.step.work for one in steps),
            itemsize=call.operands[0].itemsize,
        )
        dtypes = [array.dtype for array in call.arrays]
        needed = [one.needed for one in steps]
        self.put(call.words, recipe, (call.subscripts, call.optimize, dtypes, made, needed))

    def put(self, words: Sequence[int], recipe: ctypes.Structure, kept: object) -> None:
        """Add a recipe, unless its slots are full or it is already present.

        Parameters
        ----------
        recipe : begins with the number of key words and the words, which are written here.
        kept : objects that must live as long as the recipe.
        """
        if len(self._kept) >= MOST_RECIPES:
            ctypes.memset(self.slots, 0, ctypes.sizeof(self.slots))
            self._retired = [*(one for one in self._retired if one[0].uses), *self._kept]
            self._kept = []
        key = (ctypes.c_int64 * (1 + len(words))).from_buffer(recipe)
        key[:] = [len(words), *words]
        first = slot_of(words)
        for number in range(first, first + PROBES):
            address = self.slots[number]
            if not address:
                self._kept.append((recipe, kept))
                self.slots[number] = ctypes.addressof(recipe)  # last: who finds it reads all of it
                return
            if ctypes.c_int64.from_address(address).value == len(words):
                known = type(key).from_address(address)
                if known[:] == key[:]:
                    return
