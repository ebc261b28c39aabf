"""What repeated calls of einsum come to, where machine code finds it: a table of recipes by operands.

A recipe belongs to one subscripts object and to operands of known types, shapes and strides. It is never
changed and never freed, since machine code may read it without the GIL; so the table only fills up.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilewright.runtime.exact import HASH
from tilewright.runtime.operands import Array, data_address

if TYPE_CHECKING:
    from tilewright.runtime.kernel import Kernel

#: Axes of an operand or of a result that a recipe holds; calls with more go through Python.
MOST_AXES = 6
#: Operands of a call.
MOST_OPERANDS = 2
#: Words of a key: the subscripts; of each operand type, number of axes, and two for each axis.
MOST_WORDS = 1 + MOST_OPERANDS * (2 + 2 * MOST_AXES)
#: Recipes kept, and slots of the table: twice as many, a power of two, so that few look further than one.
MOST_RECIPES = 2048
SLOT_BITS = 12
#: Slots that are looked at, from the one that a key goes to. There are as many behind the last.
PROBES = 8
#: Numbers that kernels take between their arrays and the team: five lengths, and five strides of each array.
NUMBERS = 20

assert 2 * MOST_RECIPES == 1 << SLOT_BITS


class Action(IntEnum):
    """What a call does."""

    VIEW = 0
    PRODUCT = 1  # `matmul` of views of two operands
    KERNEL = 2  # a kernel of one or two operands


class View(ctypes.Structure):
    """How an array is seen; `axes` is -1 where it is seen as it is.

    operand : which one, of those of the call.
    offset : bytes from its first element.
    """

    _fields_ = (
        ("operand", ctypes.c_int64),
        ("axes", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("shape", ctypes.c_int64 * MOST_AXES),
        ("strides", ctypes.c_int64 * MOST_AXES),
    )

    @classmethod
    def of(cls, whole: Array, part: Array, operand: int = 0) -> View:
        """The view that `part` is of `whole`."""
        if part is whole:
            return cls(operand, -1)
        return cls(operand, part.ndim, data_address(part) - data_address(whole), part.shape, part.strides)


class Recipe(ctypes.Structure):
    """One call: its key, what it does, and with what.

    Attributes
    ----------
    views : of operands, in the order in which a product takes them.
    result : how what is made becomes the result; of a kernel, the axes and shape that are made.
    dtype : of the result of a kernel, NumPy's descriptor.
    code, factors, numbers : a kernel, how many operands it takes, and what it takes behind all arrays.
    work : of a kernel, in multiply-adds.
    """

    _fields_ = (
        ("words", ctypes.c_int64),
        ("key", ctypes.c_int64 * MOST_WORDS),
        ("action", ctypes.c_int64),
        ("views", View * MOST_OPERANDS),
        ("result", View),
        ("dtype", ctypes.c_void_p),
        ("code", ctypes.c_void_p),
        ("factors", ctypes.c_int64),
        ("numbers", ctypes.c_int64 * NUMBERS),
        ("work", ctypes.c_int64),
    )


class Made(NamedTuple):
    """A recipe without its key, and what has to live as long as it does."""

    recipe: Recipe
    needed: tuple[Any, ...] = ()


def view_recipe(array: Array, view: Array) -> Made | None:
    """The recipe of a call that returns a view; None where it has too many axes, or is a scalar."""
    if not 0 < view.ndim <= MOST_AXES:
        return None
    seen = View(0, view.ndim, data_address(view) - data_address(array), view.shape, view.strides)
    return Made(Recipe(action=Action.VIEW, views=(seen,)))


def product_recipe(operands: Sequence[Array], seen: Sequence[tuple[int, Array]], cut: Any) -> Made | None:
    """The recipe of a product of views of the operands.

    Parameters
    ----------
    seen : for each factor, which operand it is a view of, and that view.
    cut : the `Cut` that makes the result of the product's.
    """
    product = np.empty(cut.product, operands[0].dtype)
    result = cut.of(product)
    if result.ndim == 0 and product.ndim > 0:  # a scalar, made of an array
        return None
    if max(array.ndim for array in (*operands, result, *(view for _, view in seen))) > MOST_AXES:
        return None
    views = tuple(View.of(operands[operand], view, operand) for operand, view in seen)
    return Made(Recipe(action=Action.PRODUCT, views=views, result=View.of(product, result)))


def kernel_recipe(
    kernel: Kernel,
    places: Sequence[int],
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    call: tuple[Sequence[int], int],
) -> Made:
    """The recipe of a kernel that makes a C-contiguous array, or a scalar.

    Parameters
    ----------
    places : which operand each of its factors is.
    dtype, shape : of the result.
    call : the numbers that the kernel takes, and its work in multiply-adds.
    """
    numbers, work = call
    recipe = Recipe(
        action=Action.KERNEL,
        views=tuple(View(place, -1) for place in places),
        result=View(0, len(shape), 0, shape),
        dtype=id(dtype),
        code=kernel.address,
        factors=len(places),
        numbers=tuple(numbers),
        work=work,
    )
    return Made(recipe, (kernel, dtype))


def key_words(subscripts: str, operands: Sequence[Array]) -> list[int]:
    """What machine code reads of a call, in its order."""
    words = [id(subscripts)]
    for array in operands:
        words += [id(array.dtype), array.ndim]
        for size, stride in zip(array.shape, array.strides, strict=True):
            words += [size, stride]
    return words


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


#: High bits of a product are mixed into its low ones, which the next product spreads.
MIX_BITS = 32


class RecipeTable:
    """The table of this process, from Python."""

    def __init__(self) -> None:
        self.slots = (ctypes.c_void_p * ((1 << SLOT_BITS) + PROBES))()
        self._kept: list[Any] = []

    @property
    def address(self) -> int:
        """Where machine code finds it."""
        return ctypes.addressof(self.slots)

    def add(self, subscripts: str, operands: Sequence[Array], made: Made) -> None:
        """Makes a recipe of einsum reachable."""
        if all(array.ndim <= MOST_AXES for array in operands):
            kept = (subscripts, [array.dtype for array in operands], made)
            self.put(key_words(subscripts, operands), made.recipe, kept)

    def put(self, words: Sequence[int], recipe: ctypes.Structure, kept: object) -> None:
        """Makes a recipe reachable, unless its place or the table is full; nothing where it is there.

        Parameters
        ----------
        recipe : begins with the number of its words and these, which are written here.
        kept : what has to live as long.
        """
        if len(self._kept) == MOST_RECIPES:
            return
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
