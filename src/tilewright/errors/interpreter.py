"""Errors about the interpreter, and warnings."""

from __future__ import annotations

from typing import ClassVar

from tilewright.errors.base import TilewrightError

#: The module that users import warnings from.
_PUBLIC = __name__.rpartition(".")[0]


class TilewrightWarning(Warning):
    """Base of every warning of this package.

    A subclass declares ``message``, a format string that ends with the remedy. Each is given once: in a
    process, or for each line that uses a deprecated name.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("ignore", TilewrightWarning)
    """

    message: ClassVar[str] = "{reason}"

    def __init_subclass__(cls) -> None:
        """Name the class as users import it."""
        if cls.__module__.startswith(_PUBLIC):
            cls.__module__ = _PUBLIC


TilewrightWarning.__module__ = _PUBLIC


class CallsThroughPython(TilewrightWarning, RuntimeWarning):
    """Machine code does not serve repeated calls in this process: results are the same, calls take longer."""

    message = (
        "calls of tilewright go through Python, which adds up to 200 us to each: {reason}; {remedy}; "
        "or ignore the warning: warnings.simplefilter('ignore', tilewright.errors.CallsThroughPython)"
    )


class DeprecatedName(TilewrightWarning, DeprecationWarning):
    """A public name or option that a later version will not have.

    Python shows it where the deprecated name is used in a program's main module, and pytest always does.
    """

    message = (
        "{name} is deprecated since version {since} and will be removed in version {removed}; "
        "use {replacement}"
    )


class InstallRefused(TilewrightError, RuntimeError):
    """NumPy's functions cannot be replaced in this process."""

    message = "NumPy's products stay as they are: {reason}; {remedy}"
