"""Files that appear complete or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[Any]:
    """A new file that takes the name at the end; where writing fails, nothing is left of it.

    Examples
    --------
    >>> path = Path(tempfile.mkdtemp()) / "words"
    >>> with replacing(path) as stream:
    ...     _ = stream.write(b"all of them")
    >>> path.read_bytes()
    b'all of them'
    """
    number, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(number, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).chmod(0o666 & ~_umask())
        Path(name).replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def _umask() -> int:
    found = os.umask(0o077)
    os.umask(found)
    return found
