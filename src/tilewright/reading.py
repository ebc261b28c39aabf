"""Opening files for reading: regular files of bounded size, never waiting for another process."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)

# O_NONBLOCK: a pipe that takes the name of a file between the check and the opening keeps nobody waiting.
_FLAGS = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY")
)


def open_regular(
    path: str | os.PathLike[str], most_bytes: int | None = None, *, follow: bool = True
) -> BinaryIO:
    """A regular file, open for reading.

    Parameters
    ----------
    path : the file.
    most_bytes : a longer file is refused before anything is read.
    follow : whether the name may be a symbolic link.

    Raises
    ------
    OSError
        If the file cannot be opened, is no regular file, or is too long; `strerror` says why.

    Examples
    --------
    >>> open_regular(os.devnull)
    Traceback (most recent call last):
    ...
    OSError: [Errno 22] it is a device, not a regular file: ...
    """
    try:
        _check(Path(path).stat(follow_symlinks=follow), path, most_bytes)
        number = os.open(path, _FLAGS if follow else _FLAGS | getattr(os, "O_NOFOLLOW", 0))
    except ValueError as error:  # a null character
        raise OSError(errno.EINVAL, str(error), path) from error
    try:
        _check(os.fstat(number), path, most_bytes)
        return os.fdopen(number, "rb")
    except BaseException:
        os.close(number)
        raise


def read_input(path: str | os.PathLike[str], most_bytes: int) -> bytes:
    """All bytes of a file that a user names on a command line: a regular file or a pipe.

    Raises
    ------
    OSError
        As `open_regular`.
    """
    try:
        pipe = stat.S_ISFIFO(Path(path).stat().st_mode)
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error), path) from error
    with Path(path).open("rb") if pipe else open_regular(path, most_bytes) as stream:
        return read_bounded(stream, most_bytes)


def read_bounded(stream: BinaryIO, most_bytes: int) -> bytes:
    """All bytes of a stream; `OSError` if there are more than `most_bytes`."""
    found = stream.read(most_bytes + 1)
    if len(found) > most_bytes:
        raise _too_long(f"more than {most_bytes}", most_bytes, stream.name)
    return found


def _check(found: os.stat_result, path: object, most_bytes: int | None) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = next((name for test, name in _KINDS if test(found.st_mode)), "something else")
        raise OSError(errno.EINVAL, f"it is {kind}, not a regular file", path)
    if most_bytes is not None and found.st_size > most_bytes:
        raise _too_long(str(found.st_size), most_bytes, path)


def _too_long(found: str, most_bytes: int, path: object) -> OSError:
    return OSError(errno.EFBIG, f"it has {found} bytes, at most {most_bytes} are read", path)
