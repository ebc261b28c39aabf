"""Public functions whose repeated calls run in machine code, whatever form these have.

`Repeated` is a builtin over a Python function. A call of a new kind runs the Python function under a
recording (`recording.py`); where that ends with a recipe, later calls of the kind are machine code
(`replay.py`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import MethodType
from typing import Any, ParamSpec, TypeVar, cast

from tilewright.calls.afterwards import afterwards
from tilewright.calls.fastcall import native_entry_possible
from tilewright.calls.recording import Recording
from tilewright.calls.replay import Replay
from tilewright.llvm.builtin import Builtin, define_method, make_method
from tilewright.preparing import Section, once, preparing
from tilewright.recorder import current, recordings
from tilewright.threads.lifetime import reset_after_forks

P = ParamSpec("P")
T = TypeVar("T")

_remembering = Section()


reset_after_forks(recordings.clear)


@once
def replay() -> Replay:
    """The entry of this process."""
    return Replay()


class Repeated(Builtin):
    """A public function as a builtin.

    Parameters
    ----------
    function : the Python function, with the signature and the docstring of the public one.
    name, module, doc : as in `Builtin`; by default those of the function.
    """

    def __init__(self, function: Callable[..., Any], name: str = "", module: str = "", doc: str = "") -> None:
        name = name or function.__name__

        def first(*arguments: Any, **named: Any) -> Any:
            recorder = current.recorder
            if recorder is not None:
                # A signal handler or a finaliser inside of another call, or a call that is not recorded.
                recorder.refuse(f"a call of {name} inside")
            if not native_entry_possible():
                return function(*arguments, **named)
            recording = Recording((*arguments, *named.values()))
            recording.begin()
            try:
                result = function(*arguments, **named)
            finally:
                recording.end()
            with afterwards(name):
                self.remember(recording, arguments, named, result)
            return result

        first.__wrapped__ = function  # type: ignore[attr-defined]
        first.__doc__, first.__name__, first.__module__ = function.__doc__, name, function.__module__
        first.__qualname__ = f"{name}.__self__"  # what the builtin under this name has as its self
        super().__init__(first, name, module or function.__module__, doc or _text_of(function, name))

    def remember(
        self, recording: Recording, arguments: tuple[Any, ...], named: dict[str, Any], result: Any
    ) -> None:
        """Makes calls like this one reachable for machine code, where it can repeat them."""
        made = recording.finished(result, named.get("threads"))
        if made is None:
            return
        with _remembering as first:
            if not first:
                return
            for pool in recording.pools:
                pool.supply()
            if replay().add(self.fallback, arguments, named, made):
                self.connect(replay())

    def connect(self, entry: Replay) -> None:
        """Gives the builtin its machine code, if it has none."""
        if not self.owners:
            self.install(entry.address, entry)


class RepeatedMethod(Repeated):
    """A method of a class of numbered objects, in machine code from its first use.

    In the class it is this descriptor, then a method descriptor of C.

    Parameters
    ----------
    method : as the class defines it.
    """

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
