"""Recordings: a call that Python makes is taken down as a recipe, which machine code then repeats.

The Python function that checks and prepares a call stays the only place where its rules are written. While it
runs, machine code, scratch, teams and new arrays report themselves (`recorder.py`), and the function reports
what NumPy does (`calls/recording.py`). Every address that a function of machine code is given must lie in an
argument, in a new array, in scratch or in memory that is declared constant; otherwise the call is not
repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from tilewright.calls.exchange import Exchange
from tilewright.calls.interpreter import error_state
from tilewright.calls.kinds import group_readable
from tilewright.calls.layout import WRITEABLE
from tilewright.calls.operands import Array, data_address
from tilewright.calls.recipes.recipe import (
    ALIGNMENT,
    HEADER_BYTES,
    MOST_ARRAYS,
    MOST_AXES,
    MOST_RESULTS,
    MOST_SCRATCH,
    MOST_STEP_WORDS,
    MOST_STEPS,
    MOST_VIEWS,
    Base,
    MadeRecipe,
    StepField,
)
from tilewright.calls.recipes.thunks import thunk_of, word_of
from tilewright.recorder import Grouped, Numbered, current, recordings

#: Levels of tuples and lists among arguments in which arrays are looked for.
MOST_DEPTH = 8

#: Memory that addresses may point into: its first byte, that behind its last one, and the address from which
#: it is counted as so many bytes after a base.
_Place: TypeAlias = tuple[int, int, int, int]

#: Reading a member of an enumeration takes longer than the rest of a step's word.
_NUMBER, _TEAM, _SCRATCH, _ARGUMENT, _RESULT, _TEMPORARY = map(
    int, (Base.NUMBER, Base.TEAM, Base.SCRATCH, Base.ARGUMENT, Base.RESULT, Base.TEMPORARY)
)
_BYTES, _THUNK, _CODE, _TAKES_TEAM, _IS_CHECK, _ARGUMENTS = map(
    int,
    (
        StepField.BYTES,
        StepField.THUNK,
        StepField.CODE,
        StepField.TAKES_TEAM,
        StepField.IS_CHECK,
        StepField.ARGUMENTS,
    ),
)


#: Words of a recipe in front of its key.
_HEADER_WORDS = HEADER_BYTES // 8
#: The place of the first argument's word in a step, behind its base.
_FIRST_WORD = _ARGUMENTS + 1

#: Types of most arguments, of which it is known that they are neither sequences nor of this package.
_PLAIN = frozenset((np.ndarray, float, int, bool, str, type(None)))


def flattened(values: Iterable[Any], depth: int = MOST_DEPTH) -> list[Any]:
    """Arguments, and the items of tuples and lists among them in place of these; not below some depth.

    >>> flattened([1, (2, [3]), None])
    [1, 2, 3, None]
    """
    found = []
    for value in values:
        kind = type(value)
        if kind in _PLAIN:
            found.append(value)
        elif kind is tuple or kind is list:
            if depth:
                found += flattened(value, depth - 1)
        else:
            found.append(value)
            if isinstance(value, Grouped):
                found += value.parts()
    return found


def extent(array: Array) -> tuple[int, int, int]:
    """Address of the first byte of an array, of that behind its last one, and of its first element."""
    start = data_address(array)
    if array.flags.c_contiguous:
        return start, start + array.nbytes, start
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
    exchange : where some arguments are views of operands of other libraries.
    """

    reason = ""
    vouched = elsewhere = checked = restartable = dry = False
    _numbers: dict[np.dtype[Any], int] | None = None  # of PyTorch's types, where results are tensors
    _team: int | None = None
    _work = -1  # outside of teams
    _most_work = _limit = 0

    def __init__(
        self, arguments: Sequence[Any], function: Any = None, exchange: Exchange | None = None
    ) -> None:
        self.function = function
        self._exchange = exchange
        self.arrays: list[Array] = []
        self.pools: list[Any] = []
        self._places: list[_Place] = []
        self._starts: dict[int, int] = {}  # the bases of addresses where arrays begin
        self._numbered: list[Numbered] = []
        self._new: list[Array] = []
        self._scalars: list[tuple[Any, int]] = []
        self._steps: list[list[int]] = []
        self._unplaced: list[tuple[list[int], int]] = []  # where steps have addresses in new arrays
        self._kept: list[Any] = []
        base = _ARGUMENT
        for value in flattened(arguments):
            kind = type(value)
            if kind is np.ndarray:
                low, high, start = extent(value)
                self._places.append((low, high, start, base))
                self._starts[start] = base
                self.arrays.append(value)
                self._kept.append(value.dtype)
                base += 1
            elif kind not in _PLAIN and isinstance(value, Numbered):
                self._numbered.append(value)
        if len(self.arrays) > MOST_ARRAYS:
            self.reason = "more arrays than a recipe has"
        for one in self._numbered:
            for address, size in one.memory():
                arrays = self._places[: len(self.arrays)]
                if any(low < address + size and address < high for low, high, _, _ in arrays):
                    # Addresses there could follow from either.
                    self.reason = "an argument that shares memory with another one"
                self._places.append((address, address + size, 0, _NUMBER))

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
        self._new.append(array)
        low, high, start = extent(array)
        base = -len(self._new)
        self._places.append((low, high, start, base))
        self._starts[start] = base

    def scalar(self, value: Any, array: Array) -> None:
        """A NumPy scalar was read from an array without axes."""
        self._scalars.append((value, data_address(array)))

    def constant(self, holder: Any, address: int, size: int) -> None:
        """Memory whose contents follow from the arguments' types, shapes and options; `holder` owns it."""
        self._kept.append(holder)
        self._starts.pop(address, None)  # also of a new array that Python has filled
        self._places.append((address, address + size, 0, _NUMBER))

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
        base = _SCRATCH + self.pools.index(pool)
        self._places.append((address, address + max(pool.size, 1), address, base))
        self._starts[address] = base

    def team(self, address: int | None, work: int) -> None:
        """The functions that follow run on a team, or on none, because of their work in multiply-adds."""
        self._team, self._work = address, work

    def numpy(
        self, function: Any, arguments: tuple[Any, ...], names: tuple[str, ...] = (), *, quiet: bool = False
    ) -> None:
        """A function of NumPy is called on arrays; None: the second is copied into the first."""
        code = 0 if function is None else id(function)
        if len(arguments) > MOST_VIEWS or (quiet and error_state()["quiet"] is None):
            self.refuse("a function of NumPy whose arguments or errors machine code does not know")
            return
        step = [0, 0, code, len(arguments), 0, 0, quiet, 0, id(names) if names else 0]
        for array in arguments:
            if type(array) is not np.ndarray:
                self._kept.append(array)
                step += (-1, 0, id(array), 0, 0)
                continue
            found = self._found(data_address(array))
            if found is None or array.ndim > MOST_AXES:
                self.refuse(
                    "a function of NumPy on other memory than arguments and new arrays, or on many axes"
                )
                return
            self._place(step, found)
            self._describe(step, array, WRITEABLE)
        self._kept += (function, names)
        self._add(step)

    def called(self, function: Any, arguments: tuple[Any, ...]) -> None:
        """A `NativeFunction` runs on arguments."""
        if self.reason:
            return
        thunk = function.thunk or thunk_of(function)
        count, known = len(arguments), self._work
        if thunk is None or count > MOST_STEP_WORDS:
            self.refuse("arguments of other types than a recipe has, or more of them")
            return
        work = max(0, known)
        words = [_NUMBER] * (2 * count)
        words[1::2] = arguments
        step = [0, thunk.address, function.address, count, work, 0, 0, 0, 0, *words]
        for place in thunk.numbers:
            step[_FIRST_WORD + 2 * place] = word_of(function.kinds[place], arguments[place])
        last = count - 1
        for place in thunk.pointers:
            address, here = arguments[place], _ARGUMENTS + 2 * place
            if place == last and known >= 0 and address == self._team:
                step[here] = _TEAM
                step[here + 1] = 0
                step[_TAKES_TEAM] = 1
                self._most_work = max(self._most_work, work)
                continue
            found = self._found(address)
            if found is None:
                self.refuse("memory that is neither an argument nor new")
                return
            step[here : here + 2] = found
            if found[0] < 0:
                self._unplaced.append((step, here))
        self._kept.append(function.code)
        self._add(step)

    def check(self) -> None:
        """The last function has set the word that its first argument points to: 0 for a call like this one.

        Before it, nothing has been written but new arrays.
        """
        if self.reason:
            return
        for step in () if self.restartable else self._steps[:-1]:
            if not (step[_IS_CHECK] or (step[_THUNK] == step[_CODE] == 0 and step[_ARGUMENTS] < 0)):
                self.refuse("a check of contents after something else")
                return
        self._steps[-1][_IS_CHECK] = 1
        self.checked = True

    def _place(self, step: list[int], found: tuple[int, int]) -> None:
        """Adds an address to a step, as a base and bytes from there."""
        if found[0] < 0:
            self._unplaced.append((step, len(step)))
        step += found

    def _describe(self, words: list[int], array: Array, flags: int) -> None:
        """Adds what NumPy makes an array of, behind its place."""
        dtype = array.dtype
        self._kept.append(dtype)
        words += (id(dtype), flags, array.ndim, *array.shape, *array.strides)

    def _describe_result(self, words: list[int], array: Any, flags: int) -> None:
        """Adds what a result is made of, behind its place: an array, or a tensor of PyTorch."""
        if self._numbers is None:
            self._describe(words, array, flags)
            return
        number = self._numbers.get(array.dtype)
        if number is None or any(step < 0 for step in array.strides):
            self.refuse("a result of a type or with strides that tensors do not have")
            return
        steps = (step // array.itemsize for step in array.strides)
        words += (number + 1, flags, array.ndim, *array.shape, *steps)

    def _add(self, step: list[int]) -> None:
        """Adds a step."""
        step[_BYTES] = 8 * len(step)
        if len(self._steps) >= MOST_STEPS:
            self.refuse("more steps than a recipe has")
        self._steps.append(step)

    def _found(self, address: Any) -> tuple[int, int] | None:
        """An address as a base and bytes from there; bases of new arrays are negative."""
        if not isinstance(address, int):  # None, or an array of pointers
            return None if address else (_NUMBER, 0)
        begun = self._starts.get(address)
        if begun is not None:
            return begun, 0
        if not address:
            return _NUMBER, 0
        for low, high, start, base in reversed(self._places):
            if low <= address < high or address == start:
                return base, address - start
        return None

    # --- the recipe -----------------------------------------------------------------------------

    def finished(self, result: Any, threads: int | None) -> MadeRecipe | None:
        """The recipe of the call, whose result this is; None where machine code cannot repeat it."""
        if not self.vouched:
            self.refuse("not a kind of call that machine code repeats")
        maker = None
        if self._exchange is not None:
            try:
                maker = self._exchange.maker(result)
            except LookupError as error:
                self.refuse(str(error))
        holder, results = 0, (result,)
        if isinstance(result, Grouped) and group_readable(result):
            # Its parts are arrays of NumPy's, of whatever library the operands are.
            holder, results, maker = id(type(result)), result.parts(), None
        elif type(result) is tuple:
            holder, results = id(tuple), result
        self._numbers = None if maker is None else maker.numbers
        if len(results) > MOST_RESULTS or len(self.pools) > MOST_SCRATCH:
            self.refuse("more results or scratch than a recipe has")
        if self.reason:
            return None
        body: list[int] = []
        placed: dict[int, tuple[int, int]] = {}  # base and offset of new arrays
        for number, one in enumerate(results):
            self._add_result(body, one, _RESULT + number, placed)
        size = 0
        if len(placed) < len(self._new):
            for number, array in enumerate(self._new, 1):
                if -number not in placed:
                    placed[-number] = _TEMPORARY, size
                    size += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
        for words, at in self._unplaced:
            base, offset = placed[words[at]]
            words[at] = base
            words[at + 1] += offset
            if words is body and base != _TEMPORARY:
                self.refuse("a number that is an element of a result")
        if self.reason:
            return None
        for step in self._steps:
            body += step
        made_by = 0 if maker is None else maker.word
        header = [0, 0, 0, self._limit, self._most_work, threads or 0, size, holder]
        header += (made_by, len(results), len(self._steps), *[pool.table_address for pool in self.pools])
        header += [0] * (_HEADER_WORDS - len(header))
        kept = [*self.pools, *self._kept, maker]
        if self._numbered:
            owned = {id(one) for argument in self._numbered for one in argument.owned()}
            kept = [one for one in kept if id(one) not in owned]
        return MadeRecipe(header, body, tuple(kept))

    def _add_result(
        self, words: list[int], value: Any, base: int, placed: dict[int, tuple[int, int]]
    ) -> None:
        """Adds a result: an argument, a view of one, all of a new array in any shape, or a scalar.

        Parameters
        ----------
        base : of a new array that is this result.
        placed : bases of the new arrays that are results.
        """
        if type(value) is np.ndarray and value.ndim <= MOST_AXES:
            for number, array in enumerate(self._new, 1):
                if value is array and -number not in placed:
                    placed[-number] = base, 0
                    words += (base, 0)
                    self._describe_result(words, value, 0)
                    return
        for place, array in enumerate(self.arrays):
            if value is array:
                words += (_ARGUMENT + place, 0, 0, 0, 0)
                return
        if isinstance(value, np.generic):
            for scalar, address in self._scalars:
                found = self._found(address) if scalar is value else None
                if found is not None and found[0] < 0:
                    if self._numbers is not None and self._new[-1 - found[0]].size == 1:
                        placed[found[0]] = base, 0
                        words += (base, 0)
                        self._describe_result(words, value, 0)
                        return
                    self._place(words, found)
                    self._kept.append(value.dtype)
                    words += (id(value.dtype), 0, 0)
                    return
            self.refuse("a number that is not an element of a new array")
            return
        if type(value) is not np.ndarray or value.ndim > MOST_AXES:
            self.refuse("a result that is no array of few axes")
            return
        low, high, start = extent(value)
        for first, last, begin, number in self._places:
            if number < 0 and number not in placed and (first, last, low) == (low, high, start):
                if value.nbytes == high - low:
                    placed[number] = base, begin - low
                    words += (base, 0)
                    self._describe_result(words, value, 0)
                    return
                break
        found = self._found(start)
        if found is not None and _ARGUMENT <= found[0] < _RESULT:
            first, last, _, _ = self._places[found[0] - _ARGUMENT]
            viewed = self.arrays[found[0] - _ARGUMENT]
            other = self._exchange is not None and self._exchange.made(viewed) and self._numbers is None
            if first <= low and high <= last and not other:
                unit = 1 if self._numbers is None else value.itemsize
                words += (found[0], found[1] // unit)
                self._describe_result(words, value, WRITEABLE if value.flags.writeable else 0)
                return
        self.refuse("a result that is not the whole of a new array, nor a view of an argument")
