"""Processes in which LLVM may abort: a new interpreter, or a fork of this one."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import warnings
from typing import NoReturn

from tilewright.loops.opt.work import Work, answer_to, main
from tilewright.records import dataclass

#: Start of a new interpreter, with this process's module search path.
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    f"from {main.__module__} import {main.__name__}; {main.__name__}()"
)

#: Exit status of a fork that an exception ended.
_FAILED = 1


@dataclass(frozen=True)
class Ended:
    """How a process ended.

    Attributes
    ----------
    status : its exit status; a negative number is the signal that ended it.
    output, errors : what it wrote.
    """

    status: int
    output: bytes
    errors: bytes


def run_child(work: Work, *, forks: bool) -> Ended:
    """Process a request in a child process.

    Parameters
    ----------
    forks : fork this process where that is safe: Linux, and no other Python thread. The child then imports
        nothing, which takes a second, but names of types in its modules depend on modules before.

    Raises
    ------
    OSError : the process could not be started.
    """
    if forks and sys.platform == "linux" and threading.active_count() == 1:
        return _fork(work)
    done = subprocess.run(
        [sys.executable, "-P", "-c", _START, json.dumps(sys.path)],
        input=pickle.dumps(work),
        capture_output=True,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def _fork(work: Work) -> Ended:
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        with warnings.catch_warnings():
            # Threads of NumPy's BLAS, which wait for work; locks of LLVM are held across the fork.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if not child:
            _answer(work, output.fileno(), errors.fileno())
        _, status = os.waitpid(child, 0)
        output.seek(0)
        errors.seek(0)
        return Ended(os.waitstatus_to_exitcode(status), output.read(), errors.read())


def _answer(work: Work, output: int, errors: int) -> NoReturn:
    """Write the answer from a fork, and end it without what the parent does at its end."""
    status = _FAILED
    try:
        os.dup2(errors, 2)
        with os.fdopen(os.dup(output), "wb") as stream:
            stream.write(answer_to(work))
        status = 0
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode(errors="replace"))
    finally:
        os._exit(status)
