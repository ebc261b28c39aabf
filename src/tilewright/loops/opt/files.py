"""Input and output files of `tilewright opt`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, cast

from tilewright.atomic import replacing
from tilewright.errors import InputNotReadable, InvalidChoice, OutputNotWritable, shown
from tilewright.loops.opt.records import Optimised, OutputFormat, Remark
from tilewright.reading import read_bounded, read_input
from tilewright_cc.reports import formatted, lines

#: The path that means standard input or output.
STANDARD = Path("-")

#: Suffix of static archives.
ARCHIVE_SUFFIX = ".a"

#: Largest module that is read, in bytes.
MOST_BYTES = 1 << 30


def read_source(path: Path) -> bytes:
    """Text or bitcode of a module; "-" is standard input."""
    try:
        if path == STANDARD:
            return read_bounded(cast("BinaryIO", sys.stdin.buffer), MOST_BYTES)
        return read_input(path, MOST_BYTES)
    except OSError as error:
        raise InputNotReadable(path=str(path), reason=error.strerror or str(error)) from error


def form_of(output: Path, emit: str | None) -> OutputFormat:
    """The output format: the requested one, else that of the output's suffix, else text.

    >>> form_of(Path("a.o"), None), form_of(STANDARD, None), form_of(Path("a.out"), "s")
    (<OutputFormat.OBJECT: '.o'>, <OutputFormat.LL: '.ll'>, <OutputFormat.ASSEMBLY: '.s'>)
    """
    allowed = {form.value.removeprefix("."): form for form in OutputFormat}
    if emit is not None:
        if emit not in allowed:
            raise InvalidChoice(name="emit", found=shown(emit), allowed=", ".join(allowed))
        return allowed[emit]
    if output == STANDARD:
        return OutputFormat.LL
    found = allowed.get(output.suffix.removeprefix("."))
    if found is None:
        endings = ", ".join(form.value for form in OutputFormat)
        raise InvalidChoice(name="the suffix of --output", found=shown(output.suffix), allowed=endings)
    return found


def check_archive_form(output: Path, emit: str | None) -> None:
    """Check the output of an archive, whose members become objects.

    Raises
    ------
    InvalidChoice : it is no archive, or of other members.
    """
    if emit not in (None, OutputFormat.OBJECT.value.removeprefix(".")):
        raise InvalidChoice(name="emit", found=shown(emit), allowed="o, since the source is an archive")
    if output != STANDARD and output.suffix != ARCHIVE_SUFFIX:
        allowed = f"{ARCHIVE_SUFFIX}, since the source is an archive"
        raise InvalidChoice(name="the suffix of --output", found=shown(output.suffix), allowed=allowed)


def write_file(path: Path, content: bytes) -> None:
    """Write a file atomically; devices and pipes are written directly."""
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
        with replacing(path.resolve()) as stream:
            stream.write(content)
    except OSError as error:
        raise OutputNotWritable(path=str(path), reason=error.strerror or str(error)) from error


def write_dumps(output: Path, optimised: Optimised) -> tuple[Path, ...]:
    """Write intermediate modules beside the output: out.shaped.ll, out.spliced.ll."""
    base = Path("tilewright.ll") if output == STANDARD else output
    paths = []
    for name, text in optimised.dumps:
        path = base.with_suffix(f".{name}.ll")
        write_file(path, text.encode())
        paths.append(path)
    return tuple(paths)


def write_remarks(path: Path | None, remarks: Sequence[Remark]) -> None:
    """Write remarks in the format of the file's suffix; "-" is standard error, None nowhere."""
    if path == STANDARD:
        sys.stderr.write(lines(remarks))
    elif path is not None:
        write_file(path, formatted(remarks, path.suffix).encode())
