"""Errors about the options of a function: sizes, flags, names, thread counts, settings."""

from __future__ import annotations

from tilewright.errors.base import TilewrightError


class NotExplained(TilewrightError, TypeError):
    """`explain` is asked about something that is neither a problem nor one of the functions it knows."""

    message = "explain takes a problem, or one of {known} and its arguments; found {found}"


class InvalidThreads(TilewrightError, ValueError):
    """A number of threads that is none."""

    message = (
        "{name} is {found}, must be an integer from 1 to {most}; "
        "more threads than cores are allowed, but they take turns"
    )


class InvalidSize(TilewrightError, ValueError):
    """A problem size out of range."""

    message = "{name} is {found}, must be {required}"


class InvalidFlag(TilewrightError, TypeError):
    """A switch that is neither on nor off."""

    message = "{name} is {found}, must be True or False"


class InvalidText(TilewrightError, TypeError):
    """Something else where text is required."""

    message = "{name} is {found}, must be text"


class InvalidSequence(TilewrightError, TypeError):
    """Something else where a sequence is required, or a sequence of other things."""

    message = "{name} is {found}, must be {required}"


class InvalidFileName(TilewrightError, TypeError, ValueError):
    """Invalid file name."""

    message = "{name} is {found}, must be the name of a file: text, bytes or os.PathLike, without NUL"


class UnexpectedKeyword(TilewrightError, TypeError):
    """A keyword that a function does not have."""

    message = "{function}: unexpected keyword {name!r}: {remedy}"


class InvalidChoice(TilewrightError, ValueError):
    """A word that is not one of the choices."""

    message = "{name} is {found}, must be one of: {allowed}"


class InvalidSetting(TilewrightError, ValueError):
    """An environment variable or override with an impossible value."""

    message = "{name}={found} is not {required}"
