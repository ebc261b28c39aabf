"""State shared by threads: the one lock under which it is created, and functions that create a value once.

Compiled code, the tables that machine code reads, scratch memory and the threads of the pool exist once per
process. The first thread that needs one creates it under the lock `preparing`. A single lock cannot be taken
in two orders, and a fork has to hold only this one (`threads/lifetime.py`).

The lock is reentrant: a signal handler or a finaliser may call the package while its own thread holds it. The
handler then creates the value a second time, and the one that is stored first is kept.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any, ParamSpec, TypeVar, cast

from tilewright.cached import cached_property
from tilewright.errors import CalledWhileImporting

P = ParamSpec("P")
T = TypeVar("T")

#: Held while shared state is created. A thread that holds it may take `importing`, never the reverse.
preparing = threading.RLock()


class _Importing:
    """The lock around imports inside functions: ``with importing: from ... import ...``.

    Python holds a lock for each module that is being imported. A fork in that moment would leave it held in
    the child for ever, so a fork holds this lock, and no such import is in progress then.

    Raises
    ------
    CalledWhileImporting
        To a signal handler or finaliser that interrupted an import of its own thread: the module is only
        half there.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._busy = False

    def __enter__(self) -> None:
        self.lock.acquire()
        if self._busy:  # by this thread, since it has the lock
            self.lock.release()
            raise CalledWhileImporting
        self._busy = True

    def __exit__(self, *failure: object) -> None:
        self._busy = False
        self.lock.release()


importing = _Importing()


class Places:
    """Values by name, given by their places, "module:attribute"; one is imported when it is asked for first.

    >>> places = Places()
    >>> places.add("gcd", "math:gcd")
    >>> places["gcd"](4, 6)
    2
    """

    def __init__(self) -> None:
        self._places: dict[str, str] = {}
        self._found: dict[str, Any] = {}

    def add(self, name: str, place: str) -> None:
        """Registers a name."""
        self._places[name] = place
        self._found.pop(name, None)

    def remove(self, name: str) -> None:
        """Removes a name."""
        del self._places[name]
        self._found.pop(name, None)

    @property
    def names(self) -> tuple[str, ...]:
        """All names; their values are not imported."""
        return tuple(self._places)

    def __getitem__(self, name: str) -> Any:
        found = self._found.get(name)
        if found is None:
            module, _, attribute = self._places[name].partition(":")
            with importing:
                found = self._found[name] = getattr(import_module(module), attribute)
        return found


class Late:
    """A function by its place, "module:function", whose module is imported when it is called first.

    >>> gcd = Late("math:gcd")
    >>> gcd(4, 6)
    2
    """

    __slots__ = ("_found", "place")

    def __init__(self, place: str) -> None:
        self.place = place
        self._found: Callable[..., Any] | None = None

    @property
    def function(self) -> Callable[..., Any]:
        """The function itself."""
        found = self._found
        if found is None:
            module, _, attribute = self.place.partition(":")
            with importing:
                found = self._found = getattr(import_module(module), attribute)
        return found

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Calls the function."""
        return self.function(*arguments, **named)


class Section:
    """Optional work under `preparing`, which a call skips if it interrupted its own thread in that work.

    >>> section = Section()
    >>> with section as first, section as second:
    ...     first, second
    (True, False)
    """

    def __init__(self) -> None:
        self._depth = 0

    def __enter__(self) -> bool:
        preparing.acquire()
        self._depth += 1
        return self._depth == 1

    def __exit__(self, *failure: object) -> None:
        self._depth -= 1
        preparing.release()


def once(make: Callable[P, T]) -> Callable[P, T]:
    """Like `functools.cache`, but each value is computed by one thread only.

    `functools.cache` lets two threads compute a value at the same time and keeps one of the two. If values
    own code or memory, the other is freed while its thread still uses an address in it.

    >>> @once
    ... def table(size):
    ...     print("made")
    ...     return [0] * size
    >>> table(3) is table(3)
    made
    True
    """
    made: dict[Any, T] = {}

    @functools.wraps(make)
    def make_once(*arguments: P.args, **named: P.kwargs) -> T:
        key = (arguments, *named.items()) if named else arguments
        with preparing:
            if key not in made:
                value = make(*arguments, **named)
                made.setdefault(key, value)  # a call that interrupted this one may have been first
            return made[key]

    return cast("Callable[P, T]", functools.cache(make_once))  # in C, and without the lock


class once_property(cached_property[T]):  # noqa: N801 - as `cached_property`
    """A cached property that one thread computes, for values that own code, memory or an address."""

    def _made(self, instance: Any) -> T:
        with preparing:
            if self._name not in instance.__dict__:
                return super()._made(instance)
            found: T = instance.__dict__[self._name]
            return found
