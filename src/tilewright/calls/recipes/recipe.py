"""Recipes: what machine code does to repeat a call, and the table where it finds them by the call's key.

A recipe is a list of steps, each a function of machine code on words. A word is a number, or the address of
an argument, of a new array, of scratch or of a team, plus a number of bytes. Recipes are made by a recording
(`recording.py`) of a call that Python made, and are never changed; machine code may read one without
the GIL, so it is freed only when no call uses it.
"""

from __future__ import annotations

import ctypes
from array import array
from collections import Counter
from enum import IntEnum
from typing import Any, NamedTuple

from tilewright.preparing import preparing

#: Axes of an array in a key or a recipe; calls with more go through Python.
MOST_AXES = 8
#: Arrays among the arguments of a call, those of a decoder with two caches for each of 100 layers; new arrays
#: that it returns, and pools of scratch that it uses.
MOST_ARRAYS, MOST_RESULTS, MOST_SCRATCH = 256, 64, 2
#: Steps of a recipe, those of a graph of hundreds of nodes, and words of one.
MOST_STEPS, MOST_STEP_WORDS = 8192, 64
#: Arguments of a function of NumPy.
MOST_VIEWS = 5
#: Words of a key: those of the most arrays, each of four axes and named, and of as many relations.
MOST_WORDS = 4096
#: Bytes of temporary arrays of a call that are on the stack; of more, they are allocated.
STACK_BYTES = 2048
#: Temporary arrays and scratch begin at multiples of this: a cache line.
ALIGNMENT = 64

#: 2**64 divided by the golden ratio, made odd, as a signed number: multiplicative hashing (Knuth, TAOCP 6.4).
HASH = 0x9E3779B97F4A7C15 - (1 << 64)
#: Difference of neighbours among the odd factors of the words of a key, whose products add up to its hash
#: (Dietzfelbinger et al., J. Algorithms 25(1), 1997): 2**64 / sqrt(2), made even, as a signed number.
FACTOR_STEP = 0xB504F333F9DE6484 - (1 << 64)
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


class Field(IntEnum):
    """Words of a recipe. Behind them is its key, then the results of the call, then the steps.

    `USES` counts the calls that are executing it, under the GIL, and `HITS` those that it has served; after
    `LIMIT` of these, unless 0, a call goes to Python again, which may know something better. `WORK` is of
    the largest step with a team, `THREADS` the most threads of one, or 0. `TEMPORARY_BYTES` are those of all
    temporary arrays. `HOLDER` is 0 where the result is returned, the type tuple for a tuple of
    the results, or a class of objects whose slots hold them, see `Grouped`. `MAKER` is 0 for results of
    NumPy; else see `ResultMaker`.
    """

    WORDS = 0  # of the key
    USES = 1
    HITS = 2
    LIMIT = 3
    WORK = 4
    THREADS = 5
    TEMPORARY_BYTES = 6
    HOLDER = 7
    MAKER = 8
    RESULTS = 9
    STEPS = 10
    SCRATCH = 11  # addresses of tables


#: Bytes of a recipe in front of its key.
HEADER_BYTES = 8 * (Field.SCRATCH + MOST_SCRATCH)


class ArrayField(IntEnum):
    """Words of an array: a result, or what a function of NumPy is given.

    A result whose `BASE` is an argument is this argument, without a `DTYPE`, or else a view of it; one whose
    base is a temporary array is a NumPy scalar read from there. `FLAGS` are NumPy's. Of tensors of PyTorch,
    `DTYPE` is the number of their type and 1, and offset and strides are in elements.
    """

    BASE = 0
    OFFSET = 1
    DTYPE = 2
    FLAGS = 3
    AXES = 4
    LENGTHS = 5  # and then the strides


class StepField(IntEnum):
    """Words of a step, with the arguments of its function behind them.

    `THUNK` is machine code that calls `CODE` with words, each given as a `Base` and what is added to its
    address. Without a thunk, `CODE` is a function of NumPy, 0 for a copy of the second array into the first,
    and its arguments are arrays, or, with a base below 0, the object in place of a `DTYPE`; the last ones
    have `NAMES`, a tuple. One that `IS_QUIET` neither warns nor raises, whatever `numpy.errstate` says.
    `WORK` is in multiply-adds; it decides whether the step has a team, if it `TAKES_TEAM`, and the GIL. After
    a step that `IS_CHECK`, the word that its first argument points to says whether Python makes the call.
    """

    BYTES = 0  # of the step
    THUNK = 1
    CODE = 2
    COUNT = 3  # of arguments
    WORK = 4
    TAKES_TEAM = 5
    IS_QUIET = 6
    IS_CHECK = 7
    NAMES = 8
    ARGUMENTS = 9


class MadeRecipe(NamedTuple):
    """A recipe before it has a key.

    Attributes
    ----------
    header : the words in front of the key.
    body : those behind it.
    kept : objects that must live as long as the recipe.
    """

    header: list[int]
    body: list[int]
    kept: tuple[Any, ...]


class _Recipe(NamedTuple):
    """A recipe in memory, what must live as long, the name of its function, and its key."""

    words: array[int]
    kept: tuple[Any, ...]
    function: str
    key: bytes


class RecipeTable:
    """Python side of a table of recipes.

    It is changed under the lock `preparing`. A full table is cleared; where the slots of a key are full, one
    of them is given to it. Recipes that calls use are freed at a later clearing: machine code counts a use
    before it gives up the GIL.
    """

    def __init__(self) -> None:
        self.slots = (ctypes.c_void_p * ((1 << SLOT_BITS) + PROBES))()
        self._places: dict[bytes, int] = {}  # the slots of keys
        self._kept: dict[int, _Recipe] = {}  # by slot
        self._retired: list[_Recipe] = []
        self._hits: Counter[str] = Counter()  # of recipes that are gone
        self._given = 0  # slots that were taken from another key

    @property
    def address(self) -> int:
        """The address of the table, for machine code."""
        return ctypes.addressof(self.slots)

    def __len__(self) -> int:
        return len(self._kept)

    def has(self, words: bytes) -> bool:
        """Whether there is a recipe of a key."""
        return words in self._places

    def served(self, words: bytes) -> int | None:
        """The calls that the recipe of a key has served; None without one."""
        with preparing:
            slot = self._places.get(words)
            address = None if slot is None else self.slots[slot]
            return None if address is None else ctypes.c_int64.from_address(address + 8 * Field.HITS).value

    def add(self, function: str, words: bytes, mixed: int, made: MadeRecipe, kept: tuple[Any, ...]) -> None:
        """Add a recipe, or put it in the place of one with its key, or else of one of those in its slots.

        Parameters
        ----------
        function : the name of the function.
        words, mixed : the key and its hash, as machine code forms them.
        kept : objects of the key that must live as long as the recipe.
        """
        with preparing:
            if len(self._kept) >= MOST_RECIPES:
                self._clear()
            slot = self._places.get(words)
            if slot is None:
                slot = self._slot_of(mixed)
            former = self._kept.get(slot)
            block = array("q", made.header)
            block[Field.WORDS] = len(words) // 8
            block.frombytes(words)
            block.fromlist(made.body)
            self._kept[slot] = _Recipe(block, (made.kept, kept), function, words)
            self._places[words] = slot
            self.slots[slot] = block.buffer_info()[0]  # last: who finds it reads all of it
            if former is not None:
                if former.key != words:
                    del self._places[former.key]
                self._free(former)

    def _slot_of(self, mixed: int) -> int:
        """The slot for a new key: a free one, or in turn one of those that are searched."""
        first = (mixed & (1 << 64) - 1) >> 64 - SLOT_BITS
        for slot in range(first, first + PROBES):
            if not self.slots[slot]:
                return slot
        self._given += 1
        return first + self._given % PROBES

    def _free(self, recipe: _Recipe) -> None:
        """Drops a recipe that no slot leads to, unless a call uses it."""
        if recipe.words[Field.USES]:
            self._retired.append(recipe)
        else:
            self._hits[recipe.function] += recipe.words[Field.HITS]

    def hits(self) -> Counter[str]:
        """Calls that machine code has repeated, by the names of their functions."""
        with preparing:
            found = Counter(self._hits)
            for recipe in (*self._kept.values(), *self._retired):
                found[recipe.function] += recipe.words[Field.HITS]
        return found

    def clear(self) -> None:
        """Removes all recipes."""
        with preparing:
            self._clear()

    def _clear(self) -> None:
        ctypes.memset(self.slots, 0, ctypes.sizeof(self.slots))
        self._places.clear()
        everything = [*self._retired, *self._kept.values()]
        self._retired, self._kept = [], {}
        for one in everything:
            self._free(one)
