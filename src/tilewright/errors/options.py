"""Errors about the options of a function: sizes, flags, names, thread counts, settings."""

from __future__ import annotations

from tilewright.errors.base import TilewrightError
from tilewright.errors.other_names import nearest_word


class NotExplained(TilewrightError, TypeError):
    """The argument of `explain` is neither a problem nor one of the functions it knows."""

    speaker = "explain"
    message = "found {found}, must be a problem, or one of {known} and its arguments"


class NotMeasured(TilewrightError, ValueError):
    """`tilewright explore --measure` was asked to measure what it cannot."""

    message = "--measure: {reason}; leave it out, or see `tilewright bench`"


class InvalidThreads(TilewrightError, ValueError):
    """Invalid thread count."""

    message = (
        "{name} is {found}, must be an integer from 1 to {most}; "
        "more threads than cores are allowed, but gain nothing"
    )


class InvalidSize(TilewrightError, ValueError):
    """Invalid problem size."""

    message = "{name} is {found}, must be {required}"


class InvalidFlag(TilewrightError, TypeError):
    """Invalid flag: neither True nor False."""

    message = "{name} is {found}, must be True or False"


class InvalidText(TilewrightError, TypeError):
    """An argument is not text."""

    message = "{name} is {found}, must be text"


class InvalidSequence(TilewrightError, TypeError):
    """An argument is not a sequence, or not of the required items."""

    message = "{name} is {found}, must be {required}"


class InvalidFileName(TilewrightError, TypeError, ValueError):
    """Invalid file name."""

    message = "{name} is {found}, must be the name of a file: text, bytes or os.PathLike, without NUL"


class UnexpectedKeyword(TilewrightError, TypeError):
    """Unexpected keyword argument."""

    message = "unexpected keyword {name!r}: {remedy}"


class WrongArguments(TilewrightError, TypeError):
    """An argument is missing, given twice, or one too many."""

    message = "{reason}; it takes {places} by position"


class InvalidChoice(TilewrightError, ValueError):
    """Invalid choice."""

    message = "{name} is {found}, must be one of: {allowed}{hint}"

    def __init__(self, **fields: object) -> None:
        found, allowed = str(fields["found"]), str(fields["allowed"]).split(", ")
        hint = nearest_word(found[1:-1], allowed) if found[:1] == "'" else ""  # of text that `shown` quotes
        super().__init__(**{"hint": hint} | fields)


class InvalidSetting(TilewrightError, ValueError):
    """Invalid value of an environment variable or override."""

    message = "{name}={found} is not {required}"
