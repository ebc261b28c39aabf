"""Recipes: what machine code does to repeat a call, and the table where it finds them by the call's key.

A recipe is a list of steps, each a function of machine code on words. A word is a number, or the address of
an argument, of a new array, of scratch or of a team, plus a number of bytes. Recipes are made by a recording
(`calls/recording.py`) of a call that Python made, and are never changed; machine code may read one without
the GIL, so it is freed only when no call uses it.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Any, NamedTuple

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
#: High bits of a hash are mixed into its low ones before the next multiplication.
MIX_BITS = 32
#: Recipes kept; the table has twice as many slots, a power of two, so that most searches end at the first.
MOST_RECIPES = 2048
SLOT_BITS = 12
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
    argument : the number of the array argument that it is, or -1.
    number : whether it is a NumPy scalar, read from a temporary array at `offset`.
    dtype, axes, shape, strides : of a new array.
    """

    _fields_ = (
        ("argument", ctypes.c_int64),
        ("number", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("dtype", ctypes.c_void_p),
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
    """A recipe before it has a key, and the objects that must live as long as it."""

    recipe: Recipe
    kept: tuple[Any, ...]


class RecipeTable:
    """Python side of a table of recipes.

    A full table is cleared. Its recipes are freed at the next clearing, unless a call still uses them: it may
    have found one without having counted its use yet.
    """

    def __init__(self) -> None:
        self.slots = (ctypes.c_void_p * ((1 << SLOT_BITS) + PROBES))()
        self._kept: list[tuple[Any, Any]] = []
        self._retired: list[tuple[Any, Any]] = []
        self._hits = 0  # of recipes that are gone

    @property
    def address(self) -> int:
        """The address of the table, for machine code."""
        return ctypes.addressof(self.slots)

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, key: bytes, mixed: int, made: MadeRecipe) -> None:
        """Add a recipe, or put it in the place of one with its key, unless its slots are full.

        Parameters
        ----------
        key, mixed : the words and their hash, as machine code forms them.
        """
        if len(self._kept) >= MOST_RECIPES:
            self.clear()
        size = ctypes.sizeof(Recipe)
        whole = (ctypes.c_int64 * ((size + len(key)) // 8))()
        start = ctypes.addressof(whole)
        made.recipe.words = len(key) // 8
        ctypes.memmove(start, ctypes.addressof(made.recipe), size)
        ctypes.memmove(start + size, key, len(key))
        first = (mixed & (1 << 64) - 1) >> 64 - SLOT_BITS
        for number in range(first, first + PROBES):
            there = self.slots[number]
            same = there and Recipe.from_address(there).words == made.recipe.words
            if not there or (same and ctypes.string_at(there + size, len(key)) == key):
                self._kept.append((whole, made.kept))
                self.slots[number] = start  # last: who finds it reads all of it
                return

    def clear(self) -> None:
        """Removes all recipes."""
        ctypes.memset(self.slots, 0, ctypes.sizeof(self.slots))
        in_use = [one for one in self._retired if Recipe.from_buffer(one[0]).uses]
        self._retired = [*in_use, *self._kept]
        self._kept = []
