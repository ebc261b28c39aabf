"""Programs of other people, run to their end."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from tilewright.errors import CompilerMissing


def run(command: Sequence[str]) -> int:
    """The exit status of a command; as of a shell, 128 and the signal where one ended it.

    Raises
    ------
    CompilerMissing : there is no such program here.
    """
    try:
        status = subprocess.run(command, check=False).returncode
    except FileNotFoundError as error:
        raise CompilerMissing(program=command[0]) from error
    return status if status >= 0 else 128 - status
