"""Recordings: a call that Python makes is taken down as a recipe, which machine code then repeats.

The Python function that checks and prepares a call stays the only place where its rules are written. While it
runs, machine code, scratch, teams and new arrays report themselves (`recorder.py`). Every address that a
function of machine code is given must lie in an argument, in a new array, in scratch or in memory that is
declared constant; otherwise the call is not repeated. What NumPy does to arrays is not seen: a function calls
`repeatable` where it has done nothing else, or reported it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.fastcall import WRITEABLE
from tilewright.calls.operands import Array, data_address
from tilewright.calls.recipe import (
    ALIGNMENT,
    MOST_ARRAYS,
    MOST_AXES,
    MOST_RESULTS,
    MOST_SCRATCH,
    MOST_STEP_WORDS,
    MOST_STEPS,
    Base,
    MadeRecipe,
    Recipe,
    RecipeStep,
    Result,
    View,
)
from tilewright.calls.thunks import TYPES, thunk_address, word_of
from tilewright.recorder import Numbered, current, recordings

#: Levels of tuples and lists among arguments in which arrays are looked for.
MOST_DEPTH = 8
_MASK = (1 << 64) - 1


def repeatable() -> None:
    """Declare that the call in progress has done nothing to arrays that a recording has not seen."""
    recorder = current.recorder
    if recorder is not None:
        recorder.vouched = True  # type: ignore[attr-defined]


def not_repeatable(reason: str) -> None:
    """Declare that machine code cannot repeat the call in progress."""
    recorder = current.recorder
    if recorder is not None:
        recorder.refuse(reason)


def repeated_elsewhere(function: Any) -> None:
    """Declare that machine code of its own repeats the call in progress, if that is one of this function."""
    recorder = current.recorder
    if recorder is not None and recorder.function is function:  # type: ignore[attr-defined]
        recorder.elsewhere = True  # type: ignore[attr-defined]
        recorder.refuse("machine code of its own repeats it")


def keep(holder: Any) -> None:
    """Keep an object alive as long as machine code may repeat the call in progress."""
    recorder = current.recorder
    if recorder is not None:
        recorder.keep(holder)


def numpy_call(function: Any, *arrays: Array) -> None:
    """Call a function of NumPy that only reads and writes arrays given by position; seen by a recording."""
    recorder = current.recorder
    if recorder is not None:
        recorder.numpy(function, arrays)
    function(*arrays)


def constant(array: Array) -> Array:
    """An array whose contents follow from the types, shapes and options of the call in progress."""
    recorder = current.recorder
    if recorder is not None:
        recorder.constant(array, data_address(array), max(array.nbytes, 1))
    return array


def new_array(shape: tuple[int, ...], dtype: Any) -> Array:
    """`numpy.empty`, known to a recording."""
    array = np.empty(shape, dtype)
    recorder = current.recorder
    if recorder is not None:
        recorder.made(array)
    return array


def new_like(array: Array, dtype: Any = None) -> Array:
    """`numpy.empty_like` for a plain array, known to a recording."""
    found = np.empty_like(array, dtype=dtype, subok=False)
    recorder = current.recorder
    if recorder is not None:
        recorder.made(found)
    return found


class _Place(NamedTuple):
    """Memory that addresses may point into: from `low` to `high`, counted from `start`."""

    low: int
    high: int
    start: int
    base: int


class _Called(NamedTuple):
    """A function of machine code, its words as places and numbers, and its work."""

    function: Any
    bases: list[int]
    words: list[int]
    work: int


class _Numpy(NamedTuple):
    """A function of NumPy on arrays, or a copy."""

    function: Any
    arrays: tuple[Array, ...]


def _team_work(step: _Called | _Numpy) -> int:
    """The work of a step that takes a team."""
    return step.work if isinstance(step, _Called) and Base.TEAM in step.bases else 0


def flattened(values: Iterable[Any], depth: int = MOST_DEPTH) -> Iterator[Any]:
    """Arguments, and the items of tuples and lists among them in place of these; not below some depth.

    >>> list(flattened([1, (2, [3]), None]))
    [1, 2, 3, None]
    """
    for value in values:
        if type(value) in (tuple, list):
            if depth:
                yield from flattened(value, depth - 1)
        else:
            yield value


def extent(array: Array) -> tuple[int, int, int]:
    """Address of the first byte of an array, of that behind its last one, and of its first element."""
    start = data_address(array)
    if not array.size:
        return start, start, start
    low, high = start, start + array.itemsize
    for length, step in zip(array.shape, array.strides, strict=True):
        reach = (length - 1) * step
        if reach < 0:
            low += reach
        else:
            high += reach
    return low, high, start


class Recording:
    """What one call does; see `Recorder` for what it is told.

    Parameters
    ----------
    arguments : those of the call, positional ones first.
    function : the Python function that makes it.
    """

    def __init__(self, arguments: Sequence[Any], function: Any = None) -> None:
        self.function = function
        given = list(flattened(arguments))
        self.arrays = [value for value in given if type(value) is np.ndarray]
        self.reason = "" if len(self.arrays) <= MOST_ARRAYS else "more arrays than a recipe has"
        self.vouched = False
        self._places = [
            _Place(*extent(array), Base.ARGUMENT + number) for number, array in enumerate(self.arrays)
        ]
        self._numbered = [value for value in given if isinstance(value, Numbered)]
        for one in self._numbered:
            for address, size in one.memory():
                arrays = self._places[: len(self.arrays)]
                if any(place.low < address + size and address < place.high for place in arrays):
                    # Addresses there could follow from either.
                    self.reason = "an argument that shares memory with another one"
                self._places.append(_Place(address, address + size, 0, Base.NUMBER))
        self._new: list[Array] = []
        self.pools: list[Any] = []
        self._team: int | None = None
        self._work = -1  # outside of teams
        self._limit = 0
        self.elsewhere = False
        self._steps: list[_Called | _Numpy] = []
        self._kept: list[Any] = []

    def begin(self) -> None:
        """From here on, this thread reports what it does."""
        if not self.reason:
            recordings.append(None)
            current.recorder = self

    def end(self) -> None:
        """Nothing more is reported; what a refused call does next runs as in any other call."""
        if current.recorder is self:
            current.recorder = None
            if recordings:  # not so in the child of a fork
                recordings.pop()

    # --- what is reported -----------------------------------------------------------------------

    def refuse(self, reason: str) -> None:
        """The call does something else too, or depends on more than its arguments' types and shapes."""
        self.reason = self.reason or reason
        self.end()

    def made(self, array: Array) -> None:
        """A new array was allocated."""
        self._places.append(_Place(*extent(array), -1 - len(self._new)))
        self._new.append(array)

    def constant(self, holder: Any, address: int, size: int) -> None:
        """Memory whose contents follow from the arguments' types, shapes and options; `holder` owns it."""
        self._kept.append(holder)
        self._places.append(_Place(address, address + size, 0, Base.NUMBER))

    def keep(self, holder: Any) -> None:
        """What must live as long as the call may be repeated, as a kernel whose address is an argument."""
        self._kept.append(holder)

    def limit(self, calls: int) -> None:
        """After so many repetitions Python makes the call again, which may know something better then."""
        self._limit = min(self._limit, calls) if self._limit else calls

    def scratch(self, address: int, pool: Any) -> None:
        """A block of a `ScratchPool` is in use."""
        if pool not in self.pools:
            self.pools.append(pool)
        number = self.pools.index(pool)
        self._places.append(_Place(address, address + max(pool.size, 1), address, Base.SCRATCH + number))

    def team(self, address: int | None, work: int) -> None:
        """The functions that follow run on a team, or on none, because of their work in multiply-adds."""
        self._team, self._work = address, work

    def numpy(self, function: Any, arrays: tuple[Array, ...]) -> None:
        """A function of NumPy is called on arrays; None: the second is copied into the first."""
        if max(array.ndim for array in arrays) > MOST_AXES:
            self.refuse("arrays of many axes in a function of NumPy")
        self._steps.append(_Numpy(function, arrays))

    def called(self, function: Any, arguments: tuple[Any, ...]) -> None:
        """A `NativeFunction` runs on arguments."""
        if self.reason:
            return
        bases, words = [], []
        last = len(arguments) - 1
        for place, (kind, value) in enumerate(zip(function.kinds, arguments, strict=True)):
            if kind is ctypes.c_void_p:
                if place == last and self._work >= 0 and value == self._team:
                    bases.append(int(Base.TEAM))
                    words.append(0)
                    continue
                found = self._found(value)
                if found is None:
                    self.refuse("memory that is neither an argument nor new")
                    return
                bases.append(found[0])
                words.append(found[1])
            elif kind in TYPES:
                bases.append(int(Base.NUMBER))
                words.append(word_of(kind, value))
            else:
                self.refuse(f"an argument of the type {kind.__name__}")
                return
        if len(words) > MOST_STEP_WORDS or len(self._steps) >= MOST_STEPS:
            self.refuse("more steps than a recipe has")
        self._steps.append(_Called(function, bases, words, max(self._work, 0)))

    def _found(self, address: Any) -> tuple[int, int] | None:
        """An address as a base and bytes from there."""
        if address is None or address == 0:
            return int(Base.NUMBER), 0
        if not isinstance(address, int):
            return None
        for place in reversed(self._places):
            if place.low <= address < place.high or address == place.start:
                return place.base, address - place.start
        return None

    # --- the recipe -----------------------------------------------------------------------------

    def finished(self, result: Any, threads: int | None) -> MadeRecipe | None:
        """The recipe of the call, whose result this is; None where machine code cannot repeat it."""
        if not self.vouched:
            self.refuse("not a kind of call that machine code repeats")
        results = list(result) if type(result) is tuple else [result]
        if len(results) > MOST_RESULTS or len(self.pools) > MOST_SCRATCH:
            self.refuse("more results or scratch than a recipe has")
        if self.reason:
            return None
        bases: dict[int, tuple[int, int]] = {}  # of new arrays by their negative numbers: base and offset
        made = []
        for number, one in enumerate(results):
            returned = self._result(one, number, bases)
            if returned is None:
                return None
            made.append(returned)
        offset = 0
        for number, array in enumerate(self._new):
            if -1 - number in bases:
                continue
            bases[-1 - number] = (int(Base.TEMPORARY), offset)
            offset += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
        for returned, one in zip(made, results, strict=True):
            if returned.number:
                returned.offset = bases[-1 - self._holder(one)][1]
        steps = [self._step(step, bases) for step in self._steps]
        if None in steps:
            return None
        all_steps = (RecipeStep * len(steps))(*(step for step in steps if step is not None))
        all_results = (Result * len(made))(*made)
        recipe = Recipe(
            work=max(map(_team_work, self._steps), default=0),
            limit=self._limit,
            threads=threads or 0,
            steps=len(steps),
            first_step=ctypes.addressof(all_steps),
            results=len(made),
            first_result=ctypes.addressof(all_results),
            tuple=int(type(result) is tuple),
            temporary_bytes=offset,
            scratch_tables=tuple(pool.table_address for pool in self.pools),
        )
        codes = [step.function.code for step in self._steps if isinstance(step, _Called)]
        owned = {id(one) for argument in self._numbered for one in argument.owned()}
        holders = [one for one in (*codes, *self.pools, *self._kept) if id(one) not in owned]
        dtypes = [array.dtype for array in (*self.arrays, *self._new)]
        return MadeRecipe(recipe, (all_steps, all_results, dtypes, holders))

    def _holder(self, value: Any) -> int:
        """The number of the new array of one element that a scalar was read from; -1 if there is none."""
        for number in range(len(self._new) - 1, -1, -1):  # results are made last
            array = self._new[number]
            if array.size == 1 and array.dtype == value.dtype and array.tobytes() == value.tobytes():
                return number
        return -1

    def _result(self, value: Any, number: int, bases: dict[int, tuple[int, int]]) -> Result | None:
        """A result: an argument, a view of one, all of a new array in any shape, or a scalar."""
        for place, array in enumerate(self.arrays):
            if value is array:
                return Result(argument=place)
        if isinstance(value, np.generic):
            if self._holder(value) < 0:
                self.refuse("a number that is not an element of a new array")
                return None
            return Result(argument=-1, number=1, dtype=id(value.dtype))
        if type(value) is not np.ndarray or value.ndim > MOST_AXES:
            self.refuse("a result that is no array of few axes")
            return None
        low, high, start = extent(value)
        for place, array in enumerate(self._new):
            if -1 - place not in bases and extent(array)[:2] == (low, high) and start == low:
                if prod(value.shape) * value.itemsize != high - low:
                    break
                bases[-1 - place] = (Base.RESULT + number, data_address(array) - low)
                return Result(
                    argument=-1,
                    dtype=id(value.dtype),
                    axes=value.ndim,
                    shape=value.shape,
                    strides=value.strides,
                )
        base, offset = self._found(start) or (int(Base.NUMBER), 0)
        place = base - Base.ARGUMENT
        if 0 <= place < len(self.arrays):
            first, last, _ = extent(self.arrays[place])
            if first <= low and high <= last:
                return Result(
                    argument=place,
                    offset=offset,
                    dtype=id(value.dtype),
                    flags=WRITEABLE if value.flags.writeable else 0,
                    axes=value.ndim,
                    shape=value.shape,
                    strides=value.strides,
                )
        self.refuse("a result that is not the whole of a new array, nor a view of an argument")
        return None

    def _step(self, step: _Called | _Numpy, bases: dict[int, tuple[int, int]]) -> RecipeStep | None:
        if isinstance(step, _Numpy):
            views = (View * len(step.arrays))()
            for place, array in enumerate(step.arrays):
                found = self._found(data_address(array))
                if found is None:
                    self.refuse("a function of NumPy on memory that is neither an argument nor new")
                    return None
                base, offset = self._resolved(found, bases)
                views[place] = View(base, offset, id(array.dtype), array.ndim, array.shape, array.strides)
            function = step.function
            self._kept += [views, function, *(array.dtype for array in step.arrays)]
            return RecipeStep(
                code=None if function is None else id(function),
                count=len(views),
                views=ctypes.addressof(views),
            )
        resolved = [self._resolved(pair, bases) for pair in zip(step.bases, step.words, strict=True)]
        count = len(resolved)
        starts = (ctypes.c_int64 * count)(*(base for base, _ in resolved))
        words = (ctypes.c_uint64 * count)(*(word & _MASK for _, word in resolved))
        self._kept += [starts, words]
        return RecipeStep(
            thunk=thunk_address(step.function.kinds),
            code=step.function.address,
            count=count,
            bases=ctypes.addressof(starts),
            words=ctypes.addressof(words),
            work=step.work,
            team=int(Base.TEAM in step.bases),
        )

    @staticmethod
    def _resolved(pair: tuple[int, int], bases: dict[int, tuple[int, int]]) -> tuple[int, int]:
        """A base and bytes, where a new array has become a result or a temporary one."""
        base, word = pair
        if base >= 0:
            return pair
        found, offset = bases[base]
        return found, offset + word
