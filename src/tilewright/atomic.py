"""Files that appear complete or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: Age in seconds from which a temporary file is taken for that of a killed writer.
STALE_SECONDS = 3600.0


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[Any]:
    """A new file that takes the name at the end; where writing fails, nothing is left of it.

    Temporary files of killed writers of the same file are removed once they are an hour old.

    Examples
    --------
    >>> path = Path(tempfile.mkdtemp()) / "words"
    >>> with replacing(path) as stream:
    ...     _ = stream.write(b"all of them")
    >>> path.read_bytes()
    b'all of them'
    """
    # Of fixed length: with the target's name in it, the longest names would have none.
    prefix = f".tilewright-{zlib.crc32(os.fsencode(target.name)):08x}-"
    remove_stale(target.parent, prefix)
    number, name = tempfile.mkstemp(prefix=prefix, dir=target.parent)
    try:
        with os.fdopen(number, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).chmod(0o666 & ~_umask())
        Path(name).replace(target)
    except BaseException:
        remove(Path(name))
        raise


def check_replaceable(target: Path) -> None:
    """Raises an error if a target must not be replaced by a file: a device, a pipe, a socket, a directory.

    Raises
    ------
    OSError
    """
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "it is not a regular file", str(target))


def remove(path: Path) -> bool:
    """Removes a file; returns False if it is gone already or cannot be removed."""
    try:
        path.unlink()
    except OSError:
        return False
    return True


def remove_stale(folder: Path, prefix: str) -> None:
    """Removes the files with a prefix that have not changed for an hour."""
    now = time.time()
    with contextlib.suppress(OSError), os.scandir(folder) as found:
        for entry in found:
            # In both directions, since clocks may be set back.
            if (
                entry.name.startswith(prefix)
                and abs(now - entry.stat(follow_symlinks=False).st_mtime) > STALE_SECONDS
            ):
                remove(Path(entry.path))


def _umask() -> int:
    found = os.umask(0o077)
    os.umask(found)
    return found
