"""Runs the programs of this folder, each in a forked process: a fault ends only that one, and is reported.

    python tests/guard_pages/every.py [--quick] "guarded matmul f32 auto" "guarded_weights i8 f32" ...

The row is the host's, or that of TILEWRIGHT_ISA. With `--quick`, most modules are compiled without
optimisation. A program's line is its name, its words and what it wrote.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from importlib import import_module

from quick_tests import run_quickly


def run(words: list[str]) -> int:
    """The exit status of a program that runs in a child of this process."""
    module = import_module(words[0])
    sys.stdout.flush()
    child = os.fork()
    if not child:
        status = 1
        try:
            sys.stdout.write(f"{' '.join(words)}: ")
            module.main(*words[1:])
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(*programs: str) -> None:
    """All programs; the failures together at the end."""
    if programs[0] == "--quick":
        run_quickly()
        programs = programs[1:]
    failures = []
    for program in programs:
        status = run(program.split())
        if status:
            why = signal.Signals(-status).name if status < 0 else f"exit status {status}"
            failures.append(f"{program}: {why}")
    if failures:
        raise SystemExit("\n".join(failures))


if __name__ == "__main__":
    main(*sys.argv[1:])
