"""Recipes: what machine code does to repeat a call, and the table where it finds them by the call's key.

A recipe is a list of steps, each a function of machine code on words. A word is a number, or the address of
an argument, of a new array, of scratch or of a team, plus a number of bytes. Recipes are made by a recording
(`calls/recording.py`) of a call that Python made, and are never changed; machine code may read one without
the GIL, so it is freed only when no call uses it.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from enum import IntEnum
from typing import Any, NamedTuple

from tilewright.preparing import preparing

#: Axes of an array in a key or a recipe; calls with more go through Python.
MOST_AXES = 8
#: Arrays among the arguments of a call, new arrays that it returns, and pools of scratch that it uses.
MOST_ARRAYS, MOST_RESULTS, MOST_SCRATCH = 8, 4, 2
#: Steps of a recipe, and words of one.
MOST_STEPS, MOST_STEP_WORDS = 32, 64
#: Arrays of a function of NumPy.
MOST_VIEWS = 3
#: Words of a key.
MOST_WORDS = 192
#: Bytes of temporary arrays of a call that are on the stack; of more, they are allocated.
STACK_BYTES = 2048
#: Temporary arrays and scratch begin at multiples of this: a cache line.
ALIGNMENT = 64

#: 2**64 divided by the golden ratio, made odd, as a signed number: multiplicative hashing (Knuth, TAOCP 6.4).
HASH = 0x9E3779B97F4A7C15 - (1 << 64)
#: Factor of a word's place in a key: 2**64 divided by the square root of 2, made odd, as a signed number.
PLACE = 0xB504F333F9DE6485 - (1 << 64)
#: High bits of a hash are mixed into its low ones before the next multiplication.
MIX_BITS = 32
#: Recipes kept; the table has twice as many slots, a power of two, so that most searches end at the first.
MOST_RECIPES = 1024
SLOT_BITS = 11
#: Slots searched from the one that a key hashes to; the table has this many extra slots at its end.
PROBES = 8

assert 2 * MOST_RECIPES == 1 << SLOT_BITS


class Base(IntEnum):
    """What an address in a step starts from; each range has as many places as there may be such things."""

    NUMBER = 0
    TEAM = 1
    SCRATCH = 2
    ARGUMENT = SCRATCH + MOST_SCRATCH
    RESULT = ARGUMENT + MOST_ARRAYS
    TEMPORARY = RESULT + MOST_RESULTS


#: Number of bases.
BASES = Base.TEMPORARY + 1


class View(ctypes.Structure):
    """An array at an address, as NumPy copies it."""

    _fields_ = (
        ("base", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("dtype", ctypes.c_void_p),
        ("axes", ctypes.c_int64),
        ("shape", ctypes.c_int64 * MOST_AXES),
        ("strides", ctypes.c_int64 * MOST_AXES),
    )


class RecipeStep(ctypes.Structure):
    """One step.

    Attributes
    ----------
    thunk : machine code that calls `code` with the words as its arguments; null for a function of NumPy.
    code : a C function; or a function of NumPy, null for a copy.
    count, bases, words : the words, in two arrays: one of `Base`, and what is added to each.
    views : arrays of a function of NumPy, `count` of them; of a copy, where it goes and where it comes from.
    work : multiply-adds, which decide whether the step has a team and the GIL.
    team : whether it takes a team.
    """

    _fields_ = (
        ("thunk", ctypes.c_void_p),
        ("code", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("bases", ctypes.c_void_p),
        ("words", ctypes.c_void_p),
        ("views", ctypes.c_void_p),
        ("work", ctypes.c_int64),
        ("team", ctypes.c_int64),
    )


class Result(ctypes.Structure):
    """One result of a call.

    Attributes
    ----------
    argument : the number of the array argument that it is, or is a view of; or -1.
    number : whether it is a NumPy scalar, read from a temporary array at `offset`.
    offset : of a view, bytes from the argument's first element.
    dtype, axes, shape, strides : of a new array, or of a view; no dtype of an argument itself.
    flags : NumPy's, of a view.
    """

    _fields_ = (
        ("argument", ctypes.c_int64),
        ("number", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("dtype", ctypes.c_void_p),
        ("flags", ctypes.c_int64),
        ("axes", ctypes.c_int64),
        ("shape", ctypes.c_int64 * MOST_AXES),
        ("strides", ctypes.c_int64 * MOST_AXES),
    )


class Recipe(ctypes.Structure):
    """One prepared call; its key follows it in memory.

    Attributes
    ----------
    words : of the key.
    uses : calls that are executing it; counted by machine code, under the GIL.
    hits : calls that it has served.
    limit : hits after which a call goes to Python again, which may know something better; 0 for no limit.
    threads : the most threads of a step, or 0.
    temporary_bytes : of all temporary arrays.
    tuple : whether the results are returned as a tuple.
    """

    _fields_ = (
        ("words", ctypes.c_int64),
        ("uses", ctypes.c_int64),
        ("hits", ctypes.c_int64),
        ("limit", ctypes.c_int64),
        ("work", ctypes.c_int64),
        ("threads", ctypes.c_int64),
        ("steps", ctypes.c_int64),
        ("first_step", ctypes.c_void_p),
        ("results", ctypes.c_int64),
        ("first_result", ctypes.c_void_p),
        ("tuple", ctypes.c_int64),
        ("temporary_bytes", ctypes.c_int64),
        ("scratch_tables", ctypes.c_void_p * MOST_SCRATCH),
    )


class MadeRecipe(NamedTuple):
    """A recipe before it has a key, the objects that must live as long as it, and its function's name."""

    recipe: Recipe
    kept: tuple[Any, ...]
    function: str = ""


def _words_at(address: int) -> bytes:
    """The key of the recipe at an address."""
    words = Recipe.from_address(address).words
    return ctypes.string_at(address + ctypes.sizeof(Recipe), 8 * words)


class RecipeTable:
    """Python side of a table of recipes.

    It is changed under the lock `preparing`. A full table is cleared. Recipes that calls use are freed at a
    later clearing: machine code counts a use before it gives up the GIL.
    """

    def __init__(self) -> None:
        self.slots = (ctypes.c_void_p * ((1 << SLOT_BITS) + PROBES))()
        self._kept: list[tuple[Any, MadeRecipe]] = []
        self._retired: list[tuple[Any, MadeRecipe]] = []
        self._hits: Counter[str] = Counter()  # of recipes that are gone

    @property
    def address(self) -> int:
        """The address of the table, for machine code."""
        return ctypes.addressof(self.slots)

    def __len__(self) -> int:
        return len(self._kept)

    def has(self, words: bytes, mixed: int) -> bool:
        """Whether there is a recipe of a key."""
        with preparing:
            slot = self._slot(words, mixed)
            return slot is not None and bool(self.slots[slot])

    def _slot(self, words: bytes, mixed: int) -> int | None:
        """The number of the slot that has a recipe of a key, or else of a free one."""
        first = (mixed & (1 << 64) - 1) >> 64 - SLOT_BITS
        for number in range(first, first + PROBES):
            address = self.slots[number]
            if not address or _words_at(address) == words:
                return number
        return None

    def add(self, words: bytes, mixed: int, made: MadeRecipe) -> None:
        """Add a recipe, or put it in the place of one with its key, unless its slots are full.

        Parameters
        ----------
        words, mixed : the key and its hash, as machine code forms them.
        """
        with preparing:
            if len(self._kept) >= MOST_RECIPES:
                self._clear()
            slot = self._slot(words, mixed)
            if slot is not None:
                self._put(slot, words, made)

    def _put(self, slot: int, words: bytes, made: MadeRecipe) -> None:
        size = ctypes.sizeof(Recipe)
        whole = (ctypes.c_int64 * ((size + len(words)) // 8))()
        start = ctypes.addressof(whole)
        made.recipe.words = len(words) // 8
        ctypes.memmove(start, ctypes.addressof(made.recipe), size)
        ctypes.memmove(start + size, words, len(words))
        self._kept.append((whole, made))
        self.slots[slot] = start  # last: who finds it reads all of it

    def hits(self) -> Counter[str]:
        """Calls that machine code has repeated, by the names of their functions."""
        with preparing:
            found = Counter(self._hits)
            for whole, made in (*self._kept, *self._retired):
                found[made.function] += Recipe.from_buffer(whole).hits
        return found

    def clear(self) -> None:
        """Removes all recipes."""
        with preparing:
            self._clear()

    def _clear(self) -> None:
        ctypes.memset(self.slots, 0, ctypes.sizeof(self.slots))
        everything, self._retired, self._kept = [*self._retired, *self._kept], [], []
        for one in everything:
            recipe = Recipe.from_buffer(one[0])
            if recipe.uses:
                self._retired.append(one)
            else:
                self._hits[one[1].function] += recipe.hits
