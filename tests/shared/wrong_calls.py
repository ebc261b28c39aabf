"""Random calls with wrong arguments: each must work, or raise an error of this package and change nothing.

``python tests/shared/wrong_calls.py --calls 20000 --seed 3`` runs as many in child processes, prints faults.
"""

from __future__ import annotations

import argparse
import faulthandler
import inspect
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from hostile_values import HOSTILE, Refused
from wrong_subjects import Subject, subjects

import tilewright as tw

#: Seconds after which a call counts as one that hangs.
LONGEST_CALL = 250
#: What Python says of arguments that no parameter takes, or the other way around.
_BINDING = re.compile(
    r"missing \d+ required|unexpected keyword argument|positional arguments? but|multiple values for|"
    r"takes (no|at most|at least|exactly)|takes no arguments|passed as keyword|missing a required|"
    r"too many positional"
)


def make_call(subject: Subject, choose: random.Random) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of one call: right ones, of which one to three are replaced, or left out, or too many."""
    arguments = [make() for make in subject.first.values()]
    share = choose.choice((0.0, 0.2, 0.5))
    named = {name: make() for name, make in subject.named.items() if choose.random() < share}
    for _ in range(choose.randint(1, 3)):
        value = choose.choice(HOSTILE)()
        what = choose.random()
        if what < 0.02:
            arguments.append(value)
        elif what < 0.03 and arguments:
            arguments.pop(choose.randrange(len(arguments)))
        elif what < 0.04:
            named[choose.choice(("no_such_keyword", "axis", "dtype", "out", "a", "where"))] = value
        else:
            place = choose.randrange(max(len(arguments) + len(subject.named), 1))
            if place < len(arguments):
                arguments[place] = value
            elif subject.named:
                named[choose.choice(tuple(subject.named))] = value
    return arguments, named


def bytes_of(value: Any) -> Any:
    """What an array holds, and arrays in lists; None of other values."""
    if isinstance(value, np.ndarray):
        return None if value.dtype.hasobject else (value.shape, value.strides, np.ndarray.tobytes(value))
    if type(value) in (list, tuple) and len(value) < 10:
        return [bytes_of(one) if isinstance(one, np.ndarray) else None for one in value]
    return None


def fault_of(subject: Subject, arguments: list[Any], named: dict[str, Any]) -> str | None:
    """What is wrong with how a call ends, or None."""
    call = subject.call()
    values = [*arguments, *named.values()]
    before = [bytes_of(value) for value in values]
    try:
        call(*arguments, **named)
    except tw.TilewrightError as error:
        str(error)
        repr(error)
    except Refused:
        pass
    except TypeError as error:
        if not _BINDING.search(str(error)):
            return _described(error)
    except Exception as error:  # all others are what is looked for
        return _described(error)
    else:
        return None
    if [bytes_of(value) for value in values] != before:
        return "an argument changed before the error"
    return None


def _described(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "tilewright" in frame.filename and "tests" not in frame.filename]
    place = f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "outside"
    return f"{type(error).__name__} at {place}: {str(error)[:100]}"


def text_of(subject: Subject, arguments: list[Any], named: dict[str, Any]) -> str:
    """A call as a person may write it."""

    def one(value: Any) -> str:
        if isinstance(value, np.ndarray):
            return f"{type(value).__name__}{value.shape}:{value.dtype}"
        try:
            return repr(value)[:60]
        except Exception:
            return f"<{type(value).__name__}>"

    words = [*map(one, arguments), *(f"{name}={one(value)}" for name, value in named.items())]
    return f"{subject.name}({', '.join(words)})"


def faults(seed: int, first: int, end: int, *, only: str = "") -> Iterator[tuple[int, str, str, str]]:
    """What is wrong with some of a seed's calls: its number, the subject, the fault, the call."""
    known = [subject for subject in subjects() if only in subject.name]
    threads = tw.get_num_threads()
    for number in range(first, end):
        choose = random.Random(f"{seed} {number}")
        subject = known[number % len(known)]
        arguments, named = make_call(subject, choose)
        faulthandler.dump_traceback_later(LONGEST_CALL, exit=True)
        text = text_of(subject, arguments, named)
        _progress(number, text)
        started = time.monotonic()
        fault = fault_of(subject, arguments, named)
        taken = time.monotonic() - started
        faulthandler.cancel_dump_traceback_later()
        if taken > 10:
            print(f"slow: {taken:.0f} s: {number}: {text}", flush=True)
        tw.set_num_threads(threads)
        if fault is not None:
            yield number, subject.name, fault, text


_progress_file: list[int] = []


def _progress(number: int, text: str) -> None:
    """Leaves the number of the running call where a crash does not reach it."""
    if _progress_file:
        os.pwrite(_progress_file[0], f"{number:<12} {text[:400]:<400}".encode(errors="replace")[:413], 0)


def public_callables() -> Iterator[str]:
    """The names that users call, kinds of errors and abstract classes aside."""
    for name in tw.__all__:
        value = getattr(tw, name)
        if callable(value) and not (inspect.isclass(value) and issubclass(value, Exception)):
            yield name


def _child(seed: int, first: int, end: int, only: str, progress: str) -> None:
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    faulthandler.enable()
    _progress_file.append(os.open(progress, os.O_WRONLY | os.O_CREAT))
    for number, name, fault, text in faults(seed, first, end, only=only):
        print(
            f"{number}\t{name}\t{fault}\t{text}".replace("\n", " ").encode("utf-8", "replace").decode(),
            flush=True,
        )


def main() -> int:
    """Runs a campaign; 1 if there was any fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default="", help="part of a subject's name")
    parser.add_argument("--show", type=int, default=2, help="calls shown for each fault")
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        _child(given.seed, given.first, given.calls, given.only, given.child)
        return 0
    place, found = given.first, []
    folder = tempfile.TemporaryDirectory()
    progress = Path(folder.name) / "progress"
    # The folder is where calls run that write files of hostile names.
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(str(Path(entry).resolve()) for entry in sys.path)}
    settings: dict[str, Any] = {"cwd": folder.name, "env": environ, "errors": "replace"}
    while place < given.calls:
        command = [sys.executable, str(Path(__file__).resolve()), "--child", str(progress)]
        command += ["--seed", str(given.seed), "--only", given.only]
        command += ["--first", str(place), "--calls", str(given.calls)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, **settings)
        found += [line.split("\t", 3) for line in done.stdout.splitlines() if line.count("\t") == 3]
        for line in done.stdout.splitlines():
            if line.count("\t") != 3:
                print(line)
        if done.returncode == 0:
            break
        number, text = progress.read_text(errors="replace").split(" ", 1)
        print(f"status {done.returncode} at call {number}: {text.strip()}\n{done.stderr[-1500:]}")
        found.append([number, "crash", f"status {done.returncode}", text.strip()])
        place = int(number) + 1
    folder.cleanup()
    groups: dict[str, list[list[str]]] = {}
    for entry in found:
        groups.setdefault(entry[2].split(": ")[0], []).append(entry)
    for fault, entries in sorted(groups.items(), key=lambda item: -len(item[1])):
        print(f"{len(entries):5} {fault}   {Counter(entry[1] for entry in entries).most_common(4)}")
        for entry in entries[: given.show]:
            print(f"        {entry[0]} {entry[2].partition(': ')[2][:100]} <- {entry[3][:230]}")
    print(f"{given.calls - given.first} calls of seed {given.seed}: {len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
