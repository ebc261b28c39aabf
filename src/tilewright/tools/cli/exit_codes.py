"""Exit codes of the command line; `docs/reference/exit-codes.md` has the same table."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum


class ExitCode(IntEnum):
    """How a command ended."""

    SUCCESS = 0
    FAILED = 1
    ERROR = 2
    BUG = 70
    INTERRUPTED = 130


#: What each means, for a person.
MEANINGS: Mapping[ExitCode, str] = {
    ExitCode.SUCCESS: "the command did what it was asked to do",
    ExitCode.FAILED: "`verify` found a kernel that computes wrongly; standard output was closed too early",
    ExitCode.ERROR: "an error of the caller: unknown words or options, or a class of `tilewright.errors`, "
    "in one line on standard error; `--debug` shows the traceback",
    ExitCode.BUG: "an error of this package: a traceback, and what to report (`EX_SOFTWARE` of sysexits.h)",
    ExitCode.INTERRUPTED: "Control-C; `tune` and `verify` keep what they found, and go on when run again",
}

#: Commands that end with the exit code of another program.
PASSED_ON: Mapping[str, str] = {
    "cc": "of the compiler",
    "run": "of the program: 1 after an exception, the number of `sys.exit`, 130 after Control-C",
}
