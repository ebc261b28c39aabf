"""Public functions whose repeated calls run in machine code, whatever form these have.

`Repeated` is a builtin over a Python function. A call of a new kind runs the Python function under a
recording (`recipes/recording.py`); where that ends with a recipe, later calls of the kind are machine code
(`recipes/replay.py`).
"""

from __future__ import annotations

import contextlib
import ctypes
import inspect
from collections import Counter, OrderedDict
from collections.abc import Callable
from types import MethodType
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast

import numpy as np

from tilewright.calls.afterwards import afterwards
from tilewright.calls.exchange import Exchange, exchanged
from tilewright.calls.layout import native_entry_possible, warn_of_python, why_not_native
from tilewright.calls.lists import MOST_ARGUMENTS
from tilewright.calls.recipes.recording import Recording
from tilewright.calls.recipes.replay import Key, Replay
from tilewright.errors import TilewrightError
from tilewright.errors.callers import name_caller
from tilewright.llvm.builtin import Builtin, address_of, define_method, make_method
from tilewright.llvm.quick import quick_code
from tilewright.notebook import columns_table, entry
from tilewright.preparing import Section, once, preparing
from tilewright.recorder import current, recordings
from tilewright.threads.lifetime import reset_after_forks

P = ParamSpec("P")
T = TypeVar("T")

_remembering = Section()
reset_after_forks(recordings.clear)

#: Why a call has no key.
_NO_KEY = "an argument that machine code does not know, such as an object or a subclass"
#: Why a call with the key of a recipe is Python's.
_OTHER_CONTENTS = "numbers in arrays that are others than in the first call"
#: Calls of a key, repeated and declined, after which a recipe for the contents of the last one is made.
_MOST_OF_CONTENTS = 16
_declines: Counter[bytes] = Counter()
#: The Python functions under the builtins.
_owners: list[Any] = []
#: Calls that Python made, by function: those that left a recipe, and the others by reason.
_first: Counter[str] = Counter()
_python: Counter[tuple[str, str]] = Counter()
#: Why calls of some keys are Python's, and the objects whose addresses are in the key.
_reasons: OrderedDict[bytes, tuple[str, Any]] = OrderedDict()
_MOST_REASONS = 1024
#: Calls that Python makes for a known reason, after which one is recorded again.
_TRIED_AGAIN = 1000


def _is_operand(value: Any) -> bool:
    """Return whether an argument is a list of numbers or of lists, which NumPy makes an array of."""
    return type(value) is list and len(value) > 0 and type(value[0]) in (list, float)


def _note(key: Key, reason: str) -> None:
    _reasons[key.words] = reason, key.kept
    if len(_reasons) > _MOST_REASONS:
        _reasons.popitem(last=False)


def _declined(words: bytes) -> bool:
    """Whether a call that a recipe's check has declined leaves that recipe as it is; counts the call."""
    served = replay().table.served(words)
    if served is None:
        return False
    if len(_declines) > _MOST_REASONS:
        _declines.clear()
    _declines[words] += 1
    return served + _declines[words] < _MOST_OF_CONTENTS


#: The address of the entry, for machine code that serves some calls and hands on the others: CPython's own
#: call of the Python function until there is an entry.
others = ctypes.c_void_p(address_of(ctypes.pythonapi.PyObject_Vectorcall))


@once
def replay() -> Replay:
    """The entry of this process."""
    return Replay(others)


class Repeated(Builtin):
    """A public function as a builtin.

    Parameters
    ----------
    function : the Python function, with the signature and the docstring of the public one.
    name, module, doc : as in `Builtin`; by default those of the function.
    """

    #: Whether errors name the function.
    speaks = True

    def __init__(self, function: Callable[..., Any], name: str = "", module: str = "", doc: str = "") -> None:
        name = name or function.__name__
        self._called, speaks = function, self.speaks

        def first(*arguments: Any, **named: Any) -> Any:
            try:
                return self.in_python(arguments, named)
            except (TilewrightError, TypeError) as error:
                if speaks:
                    name_caller(error, name, function, arguments, named)
                raise

        first.__wrapped__ = function  # type: ignore[attr-defined]
        first.__doc__, first.__name__, first.__module__ = function.__doc__, name, function.__module__
        first.__qualname__ = f"{name}.__self__"  # what the builtin under this name has as its self
        super().__init__(first, name, module or function.__module__, doc or _text_of(function, name))
        _owners.append(first)
        self._serves_lists = False
        self.refused = False  # whether a recording of some call was

    def in_python(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """The result of a call that machine code does not repeat yet, recorded where that may be of use."""
        recorder = current.recorder
        if recorder is not None:
            # A signal handler or a finaliser inside of another call, or a call that is not recorded.
            recorder.refuse(f"a call of {self.fallback.__name__} inside")
        exchange = exchanged(self._called, arguments, named)
        if exchange is None:
            return self.make(arguments, named)
        return exchange.result(self.make(arguments, named, exchange))

    def make(
        self, arguments: tuple[Any, ...], named: dict[str, Any], exchange: Exchange | None = None
    ) -> Any:
        """Makes a call through Python, of views where operands are of other libraries."""
        function, name = self._called, self.fallback.__name__
        values, options = (exchange.arguments, exchange.named) if exchange else (arguments, named)
        if not native_entry_possible():
            warn_of_python(levels=4)
            return function(*values, **options)
        if list in map(type, arguments):
            with afterwards(name):
                self.serve_lists()
            if any(map(_is_operand, arguments)):
                _python[name, "an operand that is not an array"] += 1
                return function(*values, **options)
        in_vain = False
        if self.refused:
            with afterwards(name):
                in_vain = self.known(arguments, named)
        if in_vain:
            return function(*values, **options)
        if quick_code.unfinished:
            with afterwards(name):
                quick_code.count()
        # The machine code that some functions have of their own knows NumPy's arrays only.
        recording = Recording((*values, *options.values()), None if exchange else function, exchange)
        recording.begin()
        try:
            result = function(*values, **options)
        finally:
            recording.end()
        with afterwards(name):
            self.remember(recording, arguments, named, result)
        return result

    def serve_lists(self) -> None:
        """From here on, machine code makes arrays of lists of numbers that are operands.

        Operands are the positional parameters without a default, or what follows a text as subscripts.
        """
        if self._serves_lists or not self.speaks:  # kernels write into an argument
            return
        parameters = inspect.signature(self._called).parameters.values()
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        count = sum(one.kind in kinds and one.default is one.empty for one in parameters)
        operands = slice(0, count) if count else slice(1, MOST_ARGUMENTS)
        entry = replay()
        entry.operands.add(self.fallback, self.function, operands)
        self.connect(entry)
        self._serves_lists = True

    def remember(
        self, recording: Recording, arguments: tuple[Any, ...], named: dict[str, Any], result: Any
    ) -> None:
        """Makes calls like this one reachable for machine code, where it can repeat them."""
        if recording.elsewhere:
            _first[self.fallback.__name__] += 1
            return
        made = recording.finished(result, named.get("threads"))
        name = self.fallback.__name__
        with _remembering as first:
            if not first:
                return
            entry = replay()
            key = entry.key(self.fallback, arguments, named)
            again = recording.checked and key is not None and _declined(key.words)
            if key is None or made is None or again:
                reason = recording.reason or (_OTHER_CONTENTS if again else _NO_KEY)
                _python[name, reason] += 1
                for pool in recording.pools if again else ():
                    pool.supply()
                if key is not None:
                    if list not in map(type, arguments):  # lists differ in every call
                        self.refused = True
                    _note(key, reason)
                return
            _first[name] += 1
            if _reasons:
                _reasons.pop(key.words, None)
            if _declines:
                _declines.pop(key.words, None)
            for pool in recording.pools:
                pool.supply()
            entry.table.add(name, key.words, key.mixed, made, key.kept)
            self.connect(entry)

    def known(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> bool:
        """Return whether a recording of such a call would be in vain, since one was refused; counts the call.

        Now and then it is tried again: what stopped the recording may have been a signal handler.
        """
        key = replay().key(self.fallback, arguments, named)
        found = None if key is None else _reasons.get(key.words)
        if found is None:
            return False
        reason, _ = found
        name = self.fallback.__name__
        assert key is not None
        if reason is _OTHER_CONTENTS and not _declined(key.words):
            return False
        _python[name, reason] += 1
        return _python[name, reason] % _TRIED_AGAIN != 0

    def connect(self, entry: Replay) -> None:
        """Gives the builtin its machine code, if it has none."""
        if not self.owners:
            entry.connect(self)


class RepeatedMethod(Repeated):
    """A method of a class of numbered objects, in machine code from its first use.

    In the class it is this descriptor, then a method descriptor of C.

    Parameters
    ----------
    method : as the class defines it.
    """

    speaks = False  # it is a kernel that is called, which its errors name

    def __init__(self, method: Callable[..., Any]) -> None:
        super().__init__(method)
        self._method = method

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None or not native_entry_possible():
            return self.fallback if instance is None else MethodType(self.fallback, instance)
        with preparing:
            if not self.owners:
                self._link(replay())
        return getattr(instance, self._name)

    def connect(self, entry: Replay) -> None:
        """The class has the machine code before the first call."""

    def _link(self, entry: Replay) -> None:
        """Puts the method descriptor into the class."""
        code = entry.method(self.fallback)
        text = _text_of(self._method, self._name).replace("(self", "($self", 1)  # as inspect reads it
        definition = define_method(self._name, code.address("tw_method"), text)
        self.owners += [self, entry, code, definition]
        setattr(self._owner, f"_machine_code_of_{self._name}", self.owners)  # lives as long as the class
        setattr(self._owner, self._name, make_method(definition, self._owner))


def repeated_method(method: Callable[P, T]) -> Callable[P, T]:
    """A method whose repeated calls are machine code; see `RepeatedMethod`."""
    return cast("Callable[P, T]", RepeatedMethod(method))


def _text_of(function: Callable[..., Any], name: str) -> str:
    """The documentation of a builtin: its signature in front, where Python reads it, then the docstring."""
    signature = inspect.signature(function).replace(return_annotation=inspect.Signature.empty)
    plain = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
    return f"{name}{signature.replace(parameters=plain)}\n--\n\n{inspect.cleandoc(function.__doc__ or '')}\n"


def repeated(function: Callable[P, T]) -> Callable[P, T]:
    """The builtin of a public function; see `Repeated`."""
    return cast("Callable[P, T]", Repeated(function).function)


def in_python(function: Callable[P, T]) -> Callable[P, T]:
    """The Python function under the builtin of a `Repeated`: what functions call inside of a recording."""
    return cast("Callable[P, T]", function.__self__.__wrapped__)  # type: ignore[attr-defined]


def is_repeated(function: Any) -> bool:
    """Return whether a function is the builtin of a `Repeated`."""
    return any(owner is getattr(function, "__self__", None) for owner in _owners)


def as_served(function: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments as machine code has them: lists of numbers as arrays, after a first call with some."""
    if not is_repeated(function) or not native_entry_possible():
        return arguments
    table = replay().operands
    for row in table.rows[: table.count]:
        if row.builtin == id(function) and (not row.first or type(arguments[0]) is str):
            places = range(row.first, min(row.last, len(arguments)))
            with contextlib.suppress(ValueError):
                return tuple(
                    np.asarray(value) if place in places and type(value) is list else value
                    for place, value in enumerate(arguments)
                )
    return arguments


def path_of(function: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> str:
    """Which way the next call of a public function takes, in words."""
    if not native_entry_possible():
        return f"through Python: {why_not_native()}"
    if any(map(_is_operand, arguments)):
        return "through Python: the first call with lists of numbers"
    key = replay().key(function.__self__, arguments, named)
    if key is None:
        return f"through Python: {_NO_KEY}"
    if replay().table.has(key.words):
        return "native entry: repeats a call of the same types, shapes and options"
    first = "the first call of its kind, which machine code repeats where it can"
    reason, _ = _reasons.get(key.words, (first, None))
    return f"through Python: {reason}"


class CallCount(NamedTuple):
    """Calls of one public function in this process.

    Attributes
    ----------
    function : its name.
    repeated : calls that machine code repeated.
    first : calls that Python made and that left a recipe, or have machine code of their own.
    python : calls that Python made and will make again, by the reason.
    """

    function: str
    repeated: int
    first: int
    python: dict[str, int]


#: Lines of the table of calls that an interactive session shows; reasons may take two lines of a screen.
SHOWN_LINES = 32


class CallCounts(tuple[CallCount, ...]):
    """The calls of this process, a function each; prints as a table."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """What notebooks show."""
        rows = []
        for one in self:
            reasons = "; ".join(f"{count} x {reason}" for reason, count in one.python.items())
            counts = (one.repeated, one.first, sum(one.python.values()))
            rows.append((one.function, *map(str, counts), reasons))
        columns = ("function", "repeated", "first", "Python", "why Python")
        return entry("tilewright.show_calls()", columns_table(columns, rows))

    def __str__(self) -> str:
        lines = [f"{'function':<20} {'repeated':>10} {'first':>8} {'Python':>8}"]
        for one in self:
            lines.append(
                f"{one.function:<20} {one.repeated:>10} {one.first:>8} {sum(one.python.values()):>8}"
            )
            lines += [f"  {count} x {reason}" for reason, count in one.python.items()]
        return "\n".join(lines)

    def __repr__(self) -> str:
        """As printed; of a long table, what fits a screen."""
        lines = str(self).splitlines()
        if len(lines) <= SHOWN_LINES:
            return "\n".join(lines)
        rest = len(lines) - SHOWN_LINES
        return "\n".join([*lines[:SHOWN_LINES], f"... {rest} more lines: print(tilewright.show_calls())"])


#: What counts calls of functions that are not this package's.
counted_elsewhere: list[Callable[[], list[CallCount]]] = []


def show_calls() -> CallCounts:
    """How often machine code repeated calls in this process, and which calls Python made, with the reason.

    Plain products of `matmul`, of arrays of up to three axes without options, are repeated without a count.
    After `tilewright.install`, NumPy's own functions are counted for each element type: calls that kernels
    took as repeated, calls that stayed with NumPy under Python.

    Returns
    -------
    CallCounts
        A tuple of `CallCount`, those with most calls of Python first. Prints as a table.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> for _ in range(3):
    ...     c = tw.matmul(np.ones((2, 2)), np.ones((2, 2)), alpha=2.0)
    >>> print(tw.show_calls())  # doctest: +SKIP
    function               repeated    first   Python
    matmul                        2        1        0
    """
    hits = replay().table.hits() if native_entry_possible() else Counter[str]()
    reasons: dict[str, dict[str, int]] = {}
    for (name, reason), count in _python.items():
        reasons.setdefault(name, {})[reason] = count
    names = {*hits, *_first, *reasons}
    found = [CallCount(name, hits[name], _first[name], reasons.get(name, {})) for name in names]
    found += [one for count_them in counted_elsewhere for one in count_them()]
    return CallCounts(sorted(found, key=lambda one: (-sum(one.python.values()), -one.repeated, one.function)))
