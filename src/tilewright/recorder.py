"""Where machine code reports to a recording what a call does, while Python makes it for the first time.

A recording (`calls/recipes/recording.py`) learns which functions of machine code a call runs on which
arguments, and which scratch, teams and arrays these are. Whatever provides one of these reports it here;
without a recording in this thread that costs the look at one attribute.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, Self


class Recorder(Protocol):
    """What a recording is told.

    Attributes
    ----------
    function : the Python function that makes the call.
    vouched : whether that function has said that all it does to arrays is reported.
    elsewhere : whether machine code of its own repeats the call.
    restartable : whether all that it writes may be written again, when Python makes it after all.
    dry : whether functions are only taken down: nothing runs, and the contents of arrays do not count.
    """

    function: Any
    vouched: bool
    elsewhere: bool
    restartable: bool
    dry: bool

    def called(self, function: Any, arguments: tuple[Any, ...]) -> None:
        """A `NativeFunction` runs on arguments."""

    def scratch(self, address: int, pool: Any) -> None:
        """A block of a `ScratchPool` is in use."""

    def team(self, address: int | None, work: int) -> None:
        """The functions that follow run on a team, or on none, because of their work in multiply-adds."""

    def made(self, array: Any) -> None:
        """A new array was allocated."""

    def scalar(self, value: Any, array: Any) -> None:
        """A NumPy scalar was read from an array without axes."""

    def constant(self, holder: Any, address: int, size: int) -> None:
        """Memory whose contents follow from the arguments' types, shapes and options; `holder` owns it."""

    def keep(self, holder: Any) -> None:
        """What must live as long as the call may be repeated, as a kernel whose address is an argument."""

    def limit(self, calls: int) -> None:
        """After so many repetitions Python makes the call again, which may know something better then."""

    def numpy(
        self, function: Any, arguments: tuple[Any, ...], names: tuple[str, ...] = (), *, quiet: bool = False
    ) -> None:
        """A function of NumPy is called on arrays; None: the second is copied into the first."""

    def check(self) -> None:
        """The last function has set the word that its first argument points to, 0 for calls like this."""

    def refuse(self, reason: str) -> None:
        """The call does something else too, or depends on more than its arguments' types and shapes."""


_serials = itertools.count()


class Numbered:
    """Objects that identify repeated calls, as packed operands and kernels: each has a number of its own.

    The number is in the first slot of the object, where machine code reads it. No other object of the process
    ever has it; copies and unpickled objects get one of their own. What the number stands for never changes.
    """

    __slots__ = ("_serial",)

    _serial: int

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """A new object, with the next number."""
        made = super().__new__(cls)
        object.__setattr__(made, "_serial", next(_serials))  # also of frozen dataclasses
        return made

    def __getstate__(self) -> Any:
        return self.__dict__  # without the number

    def memory(self) -> Iterable[tuple[int, int]]:
        """Address and bytes of memory that is at its place as long as the object lives."""
        return ()

    def owned(self) -> Iterable[object]:
        """What lives as long as the object: machine code, scratch, tables; recipes need not keep it."""
        return ()


class Grouped:
    """Objects that stand for a few arrays, which their slots hold; a key has these."""

    __slots__: tuple[str, ...] = ()

    def parts(self) -> tuple[Any, ...]:
        """What is in the slots, in the order of their names."""
        return tuple(getattr(self, name) for name in sorted(type(self).__slots__))


#: One item for each recording in progress. Machine code reads the length of the list, and while it is not 0
#: it hands every call to Python: a recording must see what its call does inside of others.
recordings: list[None] = []


class _Current(threading.local):
    recorder: Recorder | None = None


current = _Current()


@contextmanager
def unrecorded() -> Iterator[None]:
    """A recording does not see what is done inside: values computed once, which repeated calls find.

    The recording is told of their memory by `Recorder.constant`.
    """
    recorder, current.recorder = current.recorder, None
    try:
        yield
    finally:
        current.recorder = recorder
