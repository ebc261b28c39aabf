"""The files that this package keeps between processes: a private directory, checked entries, bounded size.

A directory of small files, each a header (magic, key, length and digest of the payload) and one payload,
mostly an object file; nothing is unpickled. Files appear by atomic replacement, so any number of processes
may fill the directory at once; a damaged, foreign or truncated file counts as missing and is replaced.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import stat
import struct
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tilewright.atomic import remove, remove_stale
from tilewright.preparing import importing
from tilewright.reading import open_regular
from tilewright.settings import Settings, read_settings

MAGIC = b"TWOBJ001"
#: magic, key digest, payload length, payload digest
_HEADER = struct.Struct("<8s32sQ32s")
SUFFIX = ".twobj"

#: Prefix of files that are being written; those of killed writers are removed once they are old.
_NEW = ".new-"

#: Larger than any kernel: longer files are not cache entries and are not read.
MOST_OBJECT_BYTES = 256 << 20

#: Default bound of the cache; a kernel takes 5 to 30 KiB.
DEFAULT_LIMIT_BYTES = 256 << 20

#: After pruning, this share of the bound is left, so that not every store prunes.
KEPT_SHARE = 0.8

#: Share of the limit by which files may exceed it, on average, before some are removed.
EXCESS_SHARE = 1 / 64

logger = logging.getLogger("tilewright.cache")


class StoredFile(NamedTuple):
    """One file of the cache."""

    path: Path
    size: int
    used: float


def _payload(content: bytes, key: bytes) -> bytes | None:
    """The object in a file of the cache, None where header, length, key or digest do not fit."""
    if len(content) < _HEADER.size:
        return None
    magic, stored_key, length, digest = _HEADER.unpack_from(content)
    payload = content[_HEADER.size :]
    if magic != MAGIC or stored_key != key or length != len(payload):
        return None
    return payload if hashlib.sha256(payload).digest() == digest else None


def default_directory() -> Path:
    """Where the cache stands unless TILEWRIGHT_CACHE_DIR names another place."""
    with importing:
        from platformdirs import user_cache_path

    return user_cache_path("tilewright") / "objects"


class PrivateDirectory:
    """A directory that belongs to this user and that nobody else may enter.

    Parameters
    ----------
    path : of the directory; it is made with mode 0700 when something is to be written.
    noun : what it is, for the one warning that says why it is not used.
    """

    def __init__(self, path: Path, noun: str) -> None:
        self.path, self.noun = path, noun
        self._complained = False

    def complain(self, reason: str) -> None:
        """Says once why the directory is not used."""
        if not self._complained:
            self._complained = True
            logger.warning("%s %s is not used: %s", self.noun, self.path, reason)

    def trusted(self) -> bool:
        """Whether the directory is ours and nobody else may write it; asked anew for each access."""
        try:
            found = self.path.lstat()
        except OSError:
            return False
        if not stat.S_ISDIR(found.st_mode):
            self.complain("it is not a directory")
        elif hasattr(os, "getuid") and found.st_uid != os.getuid():
            self.complain("it belongs to another user")
        elif os.name == "posix" and found.st_mode & 0o077:
            self.complain(f"others may access it (mode {stat.S_IMODE(found.st_mode):o}; needs 700)")
        else:
            return True
        return False

    def make(self) -> bool:
        """Makes the directory if it is missing; whether it is there and trusted."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                self.path.mkdir(mode=0o700)
        except OSError as error:
            self.complain(str(error))
            return False
        return self.trusted()


class ObjectCache:
    """Object files in one directory.

    Parameters
    ----------
    directory : created with mode 0700 when something is stored.
    limit_bytes : bound of the total size; the least recently used files go first.
    """

    def __init__(self, directory: Path, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self.directory, self.limit_bytes = directory, limit_bytes
        self._private = PrivateDirectory(directory, "object cache")
        self._swept = False

    def writable(self) -> bool:
        """Whether entries can be stored: the directory is there, or could be made, and is trusted."""
        return self._private.make() and os.access(self.directory, os.W_OK)

    # --- access -----------------------------------------------------------------------------

    def _path(self, key: bytes) -> Path:
        return self.directory / (key.hex() + SUFFIX)

    def load(self, key: bytes) -> bytes | None:
        """The object of a key, or None where there is none that can be trusted."""
        if not self._private.trusted():
            return None
        path = self._path(key)
        try:
            with open_regular(path, _HEADER.size + MOST_OBJECT_BYTES, follow=False) as file:
                content = file.read(_HEADER.size + MOST_OBJECT_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            logger.info("object cache entry %s is not read: %s; it is made again", path.name, error.strerror)
            return None
        payload = _payload(content, key)
        if payload is None:
            logger.info("object cache entry %s is damaged; it is made again", path.name)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # most recently used
        return payload

    def store(self, key: bytes, payload: bytes) -> None:
        """Writes an object; a cache that cannot be written is left alone, and said so once."""
        if not self._private.make():
            return
        header = _HEADER.pack(MAGIC, key, len(payload), hashlib.sha256(payload).digest())
        if not self._swept:
            self._swept = True
            remove_stale(self.directory, _NEW)
        try:
            handle, name = tempfile.mkstemp(dir=self.directory, prefix=_NEW)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(header + payload)
                Path(name).replace(self._path(key))
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError as error:
            self._private.complain(str(error))
            return
        # Looking at every file takes longer than writing one. A chance in proportion to the bytes written
        # bounds what is expected to be there too much, however many processes write a little each.
        if int.from_bytes(os.urandom(4), "little") / 2**32 < len(payload) / (EXCESS_SHARE * self.limit_bytes):
            self.prune(self.limit_bytes)

    # --- size -------------------------------------------------------------------------------

    def entries(self) -> tuple[StoredFile, ...]:
        """Every file, least recently used first."""
        return tuple(sorted(self._scan(), key=lambda entry: entry.used))

    def _scan(self) -> Iterator[StoredFile]:
        if not self._private.trusted():
            return
        for path in self.directory.glob("*" + SUFFIX):
            with contextlib.suppress(OSError):  # another process may have removed it
                found = path.lstat()
                if not stat.S_ISDIR(found.st_mode):
                    yield StoredFile(path, found.st_size, found.st_mtime)

    def prune(self, limit_bytes: int) -> int:
        """Removes the least recently used files until the rest fits; how many went.

        Temporary files of killed writers are removed too, once they are old.
        """
        if self._private.trusted():
            remove_stale(self.directory, _NEW)
        entries = self.entries()
        total = sum(entry.size for entry in entries)
        if total <= limit_bytes:
            return 0
        removed = 0
        for entry in entries:
            if total <= limit_bytes * KEPT_SHARE:
                break
            total -= entry.size
            removed += remove(entry.path)
        return removed

    def clear(self) -> int:
        """Removes every file of the cache; how many went."""
        return sum(remove(entry.path) for entry in self.entries())


@cache
def store_for(settings: Settings) -> ObjectCache | None:
    """The cache of some settings, None where they turn it off."""
    if not settings.cache:
        return None
    directory = Path(settings.cache_dir) if settings.cache_dir else default_directory()
    return ObjectCache(directory, settings.cache_bytes or DEFAULT_LIMIT_BYTES)


def object_cache() -> ObjectCache | None:
    """The cache of this environment, None where TILEWRIGHT_CACHE is 0."""
    return store_for(read_settings())
