"""The base of every error: a message with named fields, printed safely whatever their values are."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

#: The module that users import errors from.
_PUBLIC = __name__.rpartition(".")[0]
#: Letters of a value that a message quotes.
_MOST_SHOWN = 100


class _Shown(reprlib.Repr):
    """Values in messages: in a few words, whatever they are and whether or not they can be printed."""

    def __init__(self) -> None:
        super().__init__()
        self.maxtuple = self.maxlist = 12
        self.maxstring = self.maxother = self.maxlong = _MOST_SHOWN

    def repr_int(self, x: int, level: int) -> str:  # noqa: ARG002
        """Integers, also long ones."""
        return str(_shown(x))

    def repr_instance(self, x: Any, level: int) -> str:  # noqa: ARG002 - as `reprlib` calls it
        """Anything but the kinds that have a limit of their own."""
        if isinstance(x, np.ndarray) and x.ndim:
            return f"an array of shape {x.shape} and dtype {x.dtype}"
        text = repr(x)
        return text if len(text) <= self.maxother else f"{text[: self.maxother]}..."


_SHOWN = _Shown()


def shown(value: object) -> str:
    """A short description of a value for messages.

    >>> shown("relu"), shown(10**5000), shown([1] * 20)
    ("'relu'", '2**16609 or more', '[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, ...]')
    """
    try:
        return _SHOWN.repr(value)
    except Exception:  # its own methods, or the limit of Python on long integers
        return f"a value of type {type(value).__name__}"


#: Bits of the longest integer that a message prints digit by digit.
_PRINTED_BITS = 256


#: Fields that hold names of operands.
_OPERANDS = ("name", "left", "right")


class TilewrightError(Exception):
    """Base of every error this package raises on purpose.

    A subclass declares ``message``, a format string; its fields are the keyword arguments of the
    constructor and stay readable as attributes. Errors of public functions name the function in front.

    Examples
    --------
    >>> from tilewright.errors import ShapeMismatch
    >>> raise ShapeMismatch(a=(2, 3), b=(4, 5), inner_a=3, inner_b=4)
    Traceback (most recent call last):
    ...
    tilewright.errors.ShapeMismatch: matmul: a has shape (2, 3) and b has shape (4, 5): ...
    """

    message: ClassVar[str] = "{reason}"
    #: The function that a message names in front, unless the field ``function`` names another one.
    speaker: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        """Name the class as users import it, whichever file of this package declares it."""
        if cls.__module__.startswith(_PUBLIC):
            cls.__module__ = _PUBLIC

    def __init__(self, **fields: object) -> None:
        self.fields = fields
        super().__init__(self._text())

    def restate(self, **fields: object) -> None:
        """Change fields, and the text accordingly: the caller's words for what an inner function was given.

        >>> error = TilewrightError(reason="a is 3")
        >>> error.restate(function="linear", reason="x is 3")
        >>> str(error)
        'linear: x is 3'
        """
        self.fields |= fields
        self.args = (self._text(),)

    def rename(self, names: Mapping[str, str], **fields: object) -> None:
        """Call operands what the caller calls them, and say its values of fields that the message has.

        >>> error = TilewrightError(name="a", reason=3)
        >>> error.rename({"a": "x"}, reason=4, found=5)
        >>> error.fields
        {'name': 'x', 'reason': 4}
        """
        own = {key: value for key, value in self.fields.items() if key in _OPERANDS and type(value) is str}
        given = {key: value for key, value in fields.items() if key in self.fields}
        self.restate(**{key: names.get(value, value) for key, value in own.items()}, **given)

    def _text(self) -> str:
        """The message, after the name of the function that was called."""
        try:
            text = self.message.format(**{name: _shown(value) for name, value in self.fields.items()})
        except Exception:  # a value that cannot be printed
            self.fields = {name: shown(value) for name, value in self.fields.items()}
            text = self.message.format(**self.fields)
        function = self.fields.get("function", self.speaker)
        return f"{function}: {text}" if function else text

    def __getattr__(self, name: str) -> object:
        try:
            return self.__dict__["fields"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.fields)


def _shown(value: object) -> object:
    """A value as messages print it: Python refuses to print integers of several thousand digits.

    >>> _shown((3, 10**5000))
    (3, '2**16609 or more')
    """
    match value:
        case int() if value.bit_length() > _PRINTED_BITS:
            return f"{'-' if value < 0 else ''}2**{value.bit_length() - 1} or more"
        case tuple() | list() if any(isinstance(part, int | tuple | list) for part in value):
            return type(value)(map(_shown, value)) if type(value) in (tuple, list) else value
        case _:
            return value


def _rebuild(kind: type[TilewrightError], fields: dict[str, object]) -> TilewrightError:
    return kind(**fields)
