"""The linker program that rustc starts: replaces loops in bitcode objects, then links."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path

from tilewright.errors import TilewrightError
from tilewright.loops.driving.rust import LinkJob
from tilewright.loops.driving.units import UnitCompiler
from tilewright.loops.opt.records import OutputFormat
from tilewright_cc.processes import run

#: Magic number of LLVM bitcode.
_BITCODE = b"BC\xc0\xde"
#: Linker plugin options of rustc, which do not apply to machine code.
_FOR_PLUGINS = ("-Wl,-plugin-opt=", "-plugin-opt=", "-Wl,--lto-", "--lto-")
#: Exit status if a unit cannot be compiled; rustc reports that the linker failed, and this program why.
_FAILED = 1


def main(arguments: Sequence[str]) -> int:
    """Replace the loops of each bitcode object, then link as rustc requested.

    Parameters
    ----------
    arguments : the file of a `LinkJob`, and rustc's linker arguments.

    Returns
    -------
    int
        The exit status.
    """
    job: LinkJob = pickle.loads(Path(arguments[0]).read_bytes())  # noqa: S301 - written by our own process
    words = [word for word in arguments[1:] if not word.startswith(_FOR_PLUGINS)]
    units = UnitCompiler(job.options)
    try:
        for path in map(Path, words):
            if path.suffix == ".o" and path.is_file():
                content = path.read_bytes()
                if content.startswith(_BITCODE):
                    path.write_bytes(units.code(content, OutputFormat.OBJECT, path.name))
    except TilewrightError as failure:
        job.answer.write_bytes(pickle.dumps(failure))
        return _FAILED
    job.answer.write_bytes(pickle.dumps(units.remarks))
    return run([job.linker, *words])
