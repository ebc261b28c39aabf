"""What repeated calls of einsum come to, where machine code finds it: a table of recipes by operands.

A recipe belongs to one subscripts object and to operands of known types, shapes and strides. It is never
changed, and freed only while no call follows it, since machine code may read it without the GIL.
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
#: Operands of a call, and steps of a recipe.
MOST_OPERANDS, MOST_STEPS = 6, 12
#: Bytes of the largest result of a step: calls that make larger ones take much longer than Python.
MOST_BYTES = 1 << 28
#: Words of a key: subscripts, `optimize`; of operands and `out` type, number of axes, two for each axis.
MOST_WORDS = 2 + (MOST_OPERANDS + 1) * (2 + 2 * MOST_AXES)
#: 2**64 divided by the golden ratio, made odd, as a signed number: multiplicative hashing (Knuth, TAOCP 6.4).
HASH = 0x9E3779B97F4A7C15 - (1 << 64)
#: Recipes kept, and slots of the table: twice as many, a power of two, so that few look further than one.
MOST_RECIPES = 2048
SLOT_BITS = 12
#: Slots that are looked at, from the one that a key goes to. There are as many behind the last.
PROBES = 8
#: Numbers that kernels take between their arrays and the team: five lengths, and five strides of each array.
NUMBERS = 20
#: High bits of a product are mixed into its low ones, which the next product spreads.
MIX_BITS = 32

assert 2 * MOST_RECIPES == 1 << SLOT_BITS


class Action(IntEnum):
    """What a step does."""

    VIEW = 0
    PRODUCT = 1  # `matmul` of views of two arrays
    KERNEL = 2  # a kernel of one or two arrays


class View(ctypes.Structure):
    """How an array is seen; `axes` is -1 where it is seen as it is.

    array : which one: of the operands, then of what steps made.
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
    """One action.

    Attributes
    ----------
    views : of arrays, in the order in which a product or a kernel takes them.
    result : how what is made becomes the result; of a kernel, the axes and shape that are made; of a product
        into `out`, what it writes of that.
    into_out : whether the result is written into `out`.
    scalar : whether what a kernel makes is returned as a number.
    dtype : of the result of a kernel, NumPy's descriptor.
    code, factors, numbers : a kernel, how many arrays it reads, and what it takes behind all of them.
    work : of a kernel, in multiply-adds.
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
    """One call: its key, and its steps, of which the last makes the result.

    Attributes
    ----------
    work : the most of a step.
    itemsize : bytes of an element.
    uses : calls that follow it now; counted by machine code, under the GIL.
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


#: Arrays that a pair is made of, each with its place: operands, then what steps made.
Placed: TypeAlias = "tuple[tuple[int, Array], tuple[int, Array]]"


class Made(NamedTuple):
    """A step, an array that stands where its result will, and what has to live as long as the step."""

    step: RecipeStep
    result: Array
    needed: tuple[Any, ...] = ()


def like_result(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array | None:
    """An array that stands as a new one of a step will; None where that is too large to be made for this."""
    return np.empty(shape, dtype) if prod(shape) * dtype.itemsize <= MOST_BYTES else None


def view_step(array: Array, view: Array, place: int) -> Made | None:
    """The step to a view of an array; None where it is no view, no array, or of too many axes."""
    if not 0 < view.ndim <= MOST_AXES or not np.may_share_memory(array, view):
        return None
    seen = View(place, view.ndim, data_address(view) - data_address(array), view.shape, view.strides)
    return Made(RecipeStep(action=Action.VIEW, views=(seen,)), view)


def product_step(
    factors: Sequence[tuple[int, Array, Array]], cut: Any, out: Array | None, *, last: bool
) -> Made | None:
    """The step to a product of views of arrays; None where machine code does not make it.

    Parameters
    ----------
    factors : which array each is of, that array, and the view of it.
    cut : the `Cut` that makes the result of the product's.
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
    """The step of a kernel whose result is C-contiguous; None where machine code does not call it.

    Parameters
    ----------
    places : which array each of its factors is.
    made : an array like the result.
    call : the numbers that the kernel takes, and its work in multiply-adds.
    out, last : as of `product_step`.
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
    """What machine code knows a call by.

    Attributes
    ----------
    subscripts, optimize : the very objects; an `optimize` of "auto" counts as none.
    operands : plain aligned arrays.
    out : one more, or None.
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
        """What machine code reads of it, in its order."""
        words = [id(self.subscripts), 0 if self.optimize == "auto" else id(self.optimize)]
        for array in self.arrays:
            words += [id(array.dtype), array.ndim]
            for size, stride in zip(array.shape, array.strides, strict=True):
                words += [size, stride]
        return words

    @property
    def fits(self) -> bool:
        """Whether a recipe can be for it."""
        few = len(self.operands) <= MOST_OPERANDS and all(array.ndim <= MOST_AXES for array in self.arrays)
        return few and type(self.subscripts) is str and isinstance(self.optimize, (str, bool))


def slot_of(words: Sequence[int]) -> int:
    """The first slot that a key may be in: the highest bits of a product chain.

    >>> slot_of([1]) == (HASH & (1 << 64) - 1) >> 64 - SLOT_BITS
    True
    """
    mixed, mask = 0, (1 << 64) - 1
    for word in words:
        mixed = ((mixed ^ word & mask) * HASH) & mask
        mixed ^= mixed >> MIX_BITS
    return mixed >> 64 - SLOT_BITS


class RecipeTable:
    """A table of recipes, from Python.

    A table that is full is emptied. Its recipes are freed when it is emptied the next time, unless a call
    still follows them: one may have been found, and its use not been counted yet.
    """

    def __init__(self) -> None:
        self.slots = (ctypes.c_void_p * ((1 << SLOT_BITS) + PROBES))()
        self._kept: list[Any] = []
        self._retired: list[Any] = []

    @property
    def address(self) -> int:
        """Where machine code finds it."""
        return ctypes.addressof(self.slots)

    def add(self, call: EinsumCall, steps: Sequence[Made]) -> None:
        """Makes the steps of a call of einsum reachable."""
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
        """Makes a recipe reachable, unless its place is full, or it is there.

        Parameters
        ----------
        recipe : begins with the number of its words and these, which are written here.
        kept : what has to live as long.
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
