"""Warnings and errors about the interpreter."""

from __future__ import annotations

from typing import ClassVar

from tilewright.errors.base import TilewrightError


class CallsThroughPython(RuntimeWarning):
    """Machine code does not serve repeated calls in this process: results are the same, calls take longer."""

    message: ClassVar[str] = (
        "calls of tilewright go through Python, which adds up to 200 us to each: {reason}; {remedy}; "
        "or ignore the warning: warnings.simplefilter('ignore', tilewright.errors.CallsThroughPython)"
    )


CallsThroughPython.__module__ = __name__.rpartition(".")[0]  # where users import it from


class InstallRefused(TilewrightError, RuntimeError):
    """NumPy's functions cannot be replaced in this process."""

    message = "NumPy's products stay as they are: {reason}; {remedy}"
