"""Run rustc with a linker program that replaces loops in the bitcode that it receives."""

from __future__ import annotations

import json
import pickle
import shlex
import stat
import sys
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from tilewright.errors import TilewrightError
from tilewright.loops.driving.units import UnitCompiler
from tilewright.loops.opt.records import ProductOptions
from tilewright.records import dataclass
from tilewright_cc.processes import run, warn

#: Options for rustc: unoptimised bitcode instead of objects, so that bounds checks are still inside the loops
#: that they belong to.
_IR = ("-C", "linker-plugin-lto", "-C", "no-prepopulate-passes", "-C", "codegen-units=1")
#: Start of the linker program, with this process's module search path.
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from tilewright.loops.driving.link_rust import main; sys.exit(main(sys.argv[2:]))"
)
#: Crate types that rustc links; it writes the others itself.
_LINKED = ("bin", "cdylib", "dylib")
#: Crate types whose code is in no object that a linker of rustc's gets.
_LIBRARIES = ("lib", "rlib", "staticlib")


@dataclass(frozen=True)
class LinkJob:
    """Instructions for the linker program: link_rust.py.

    Attributes
    ----------
    linker : the real linker.
    answer : the file for remarks, or the error that ended it.
    """

    linker: str
    options: ProductOptions
    answer: Path


def build_rust(command: Sequence[str], units: UnitCompiler) -> int:
    """Run a rustc command with the loops of its objects replaced before linking.

    A command that produces no program, cdylib or dylib runs unchanged, as Cargo needs it.

    Raises
    ------
    OptimiserFailed : LLVM could not compile a unit.
    """
    words = list(command)
    kinds = _values(words, "--crate-type")
    asked = _values(words, "--emit")
    if any(kind not in _LINKED for kind in kinds) or any(
        form.partition("=")[0] not in ("link", "dep-info") for form in asked
    ):
        if any(kind in _LIBRARIES for kind in kinds):
            name = next(iter(_values(words, "--crate-name")), "the crate")
            warn(f"{name} is compiled without replacing loops: rustc links no {', '.join(kinds)}")
        return run(words)
    if "build_script_build" in _values(words, "--crate-name"):
        return run(words)
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        # rustc derives the linker's command-line syntax from its name.
        wrapper, job, answer = (Path(folder) / name for name in ("cc", "job", "answer"))
        job.write_bytes(pickle.dumps(LinkJob(_linker(words), units.options, answer)))
        script = [sys.executable, "-P", "-c", _START, json.dumps(sys.path), str(job)]
        wrapper.write_text(f'#!/bin/sh\nexec {shlex.join(script)} "$@"\n', encoding="utf-8")
        wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
        status = run([*words, *_IR, "-C", f"linker={wrapper}"])
        if answer.exists():
            found = pickle.loads(answer.read_bytes())  # noqa: S301 - written by our own process
            if isinstance(found, TilewrightError):
                raise found
            units.remarks += found
        return status


def _values(words: Sequence[str], option: str) -> list[str]:
    """The comma-separated values of an option, in both spellings."""
    found = [word.partition("=")[2] for word in words if word.startswith(f"{option}=")]
    found += [value for word, value in pairwise(words) if word == option]
    return [part for value in found for part in value.split(",")]


def _linker(words: Sequence[str]) -> str:
    """The linker that the command names, or rustc's default C compiler."""
    spelled = [word.removeprefix("-C") for word in words if word.startswith("-Clinker=")]
    spelled += [value for word, value in pairwise(words) if word in ("-C", "--codegen")]
    named = [value.partition("=")[2] for value in spelled if value.startswith("linker=")]
    return named[-1] if named else "cc"
