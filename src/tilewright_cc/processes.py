"""Run external programs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence


def run(command: Sequence[str]) -> int:
    """The exit status of a command; 128 plus the signal number if a signal ended it, as in a shell.

    Raises
    ------
    CompilerMissing : the program does not exist.
    """
    try:
        # Open files are kept: make and Cargo pass their job servers to compilers by number.
        status = subprocess.run(command, check=False, close_fds=False).returncode
    except FileNotFoundError as error:
        from tilewright.errors import CompilerMissing

        raise CompilerMissing(program=command[0]) from error
    return status if status >= 0 else 128 - status


def warn(text: str) -> None:
    """One line on standard error."""
    print(f"tilewright: warning: {text}", file=sys.stderr)  # noqa: T201 - a command
