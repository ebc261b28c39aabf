"""rustc, driven: it hands bitcode to the linker, and the linker that it is given replaces loops first."""

from __future__ import annotations

import json
import shlex
import stat
import sys
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from tilewright.driving.processes import run
from tilewright.errors import RustcNotDriven

#: What rustc is told: bitcode in the place of objects, as the front end makes it. Checks of subscripts then
#: stand in the loops that they belong to.
_IR = ("-C", "linker-plugin-lto", "-C", "no-prepopulate-passes", "-C", "codegen-units=1")
#: Kinds of crates that rustc has linked; others are archives that it writes itself.
_LINKED = ("bin", "cdylib", "dylib")


def build_rust(command: Sequence[str], options: Sequence[str]) -> int:
    """Run a command of rustc whose objects pass through `tilewright opt` on their way to the linker.

    Raises
    ------
    RustcNotDriven : the command does not end in a program, a cdylib or a dylib.
    """
    words = list(command)
    kinds = _values(words, "--crate-type")
    asked = _values(words, "--emit")
    if any(kind not in _LINKED for kind in kinds):
        raise RustcNotDriven(option="--crate-type", found=", ".join(kinds), allowed=", ".join(_LINKED))
    if any(form.partition("=")[0] not in ("link", "dep-info") for form in asked):
        raise RustcNotDriven(option="--emit", found=", ".join(asked), allowed="link, dep-info")
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        # rustc takes the command line that a linker has from its name.
        wrapper, job = Path(folder) / "cc", Path(folder) / "job.json"
        job.write_text(json.dumps({"linker": _linker(words), "options": list(options)}), encoding="utf-8")
        script = [sys.executable, "-m", "tilewright.driving.link_rust", str(job)]
        wrapper.write_text(f'#!/bin/sh\nexec {shlex.join(script)} "$@"\n', encoding="utf-8")
        wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
        return run([*words, *_IR, "-C", f"linker={wrapper}"])


def _values(words: Sequence[str], option: str) -> list[str]:
    """The comma-separated values of an option, in both of its spellings."""
    found = [word.partition("=")[2] for word in words if word.startswith(f"{option}=")]
    found += [value for word, value in pairwise(words) if word == option]
    return [part for value in found for part in value.split(",")]


def _linker(words: Sequence[str]) -> str:
    """The linker that the command names, or the C compiler that rustc takes."""
    spelled = [word.removeprefix("-C") for word in words if word.startswith("-Clinker=")]
    spelled += [value for word, value in pairwise(words) if word in ("-C", "--codegen")]
    named = [value.partition("=")[2] for value in spelled if value.startswith("linker=")]
    return named[-1] if named else "cc"
