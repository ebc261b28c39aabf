"""Files of tuned constants, one for each kind of CPU: private, checked, replaced as a whole.

A file that is damaged, foreign or writable by others is not used, and a warning says so once.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tilewright.atomic import remove, replacing
from tilewright.errors import OutputNotWritable
from tilewright.machine.findings import Findings, decode_findings, encode_findings, tunings_of
from tilewright.machine.tuning import Tuning, tuning_path
from tilewright.preparing import importing
from tilewright.reading import open_regular
from tilewright.settings import Settings
from tilewright.store import PrivateDirectory

#: Longer files are not ours.
MOST_BYTES = 1 << 20
#: Kinds of CPU whose files a directory keeps; the least recently written go first.
MOST_FILES = 64
SUFFIX = ".json"
#: The file that writers lock.
_LOCK = ".tilewright-tuning.lock"

logger = logging.getLogger("tilewright.machine")


class TuningFile:
    """The findings for one kind of CPU on disk.

    Parameters
    ----------
    path : of the file. A named one may be in any directory.
    kind : the kind of CPU; a file of another kind is not used.
    private : whether the directory is this package's own, which it makes and whose mode it checks.
    """

    def __init__(self, path: Path, kind: str, *, private: bool) -> None:
        self.path, self.kind = path, kind
        self._directory = PrivateDirectory(path.parent, "directory of tuned constants") if private else None
        self._complained = False

    def _complain(self, reason: str) -> None:
        if not self._complained:
            self._complained = True
            logger.warning("tuned constants in %s are not used: %s", self.path, reason)

    def load(self) -> Findings:
        """The stored findings; empty if there is no file, or it cannot be used."""
        if self._directory is not None and not self._directory.trusted():
            return {}
        try:
            with open_regular(self.path, MOST_BYTES, follow=self._directory is None) as file:
                reason = _untrusted(os.fstat(file.fileno()))
                content = file.read(MOST_BYTES)
        except FileNotFoundError:
            return {}
        except OSError as error:
            self._complain(error.strerror or str(error))
            return {}
        if reason:
            self._complain(reason)
            return {}
        try:
            return decode_findings(content, self.kind)
        except ValueError as error:
            self._complain(str(error))
            return {}

    def update(self, change: Callable[[Findings], Findings]) -> Findings:
        """Stores `change(findings)` in place of the findings, and returns it; safe among processes.

        Raises
        ------
        OutputNotWritable : the file cannot be written.
        """
        if self._directory is not None and not self._directory.make():
            raise OutputNotWritable(path=str(self.path), reason="its directory is not private or not ours")
        try:
            with _locked(self.path.parent):
                found = change(self.load())
                with replacing(self.path) as stream:
                    stream.write(encode_findings(self.kind, found).encode())
                self.path.chmod(0o600)
                self._prune()
        except OSError as error:
            raise OutputNotWritable(path=str(self.path), reason=error.strerror or str(error)) from error
        return found

    def remove(self) -> bool:
        """Removes the file; returns whether there was one."""
        return remove(self.path)

    def _prune(self) -> None:
        """Removes the least recently written files beyond `MOST_FILES`."""
        if self._directory is None:
            return
        files = []
        for path in self._directory.path.glob("*" + SUFFIX):
            with contextlib.suppress(OSError):
                files.append((path.lstat().st_mtime, path))
        for _, path in sorted(files)[:-MOST_FILES]:
            remove(path)


def _untrusted(found: os.stat_result) -> str:
    """Why a file is not trusted; empty if it is: ours or the administrator's, and writable by nobody else."""
    if hasattr(os, "getuid") and found.st_uid not in (os.getuid(), 0):
        return "it belongs to another user"
    if os.name == "posix" and found.st_mode & 0o022:
        return f"others may write it (mode {stat.S_IMODE(found.st_mode):o})"
    return ""


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Holds a directory's lock among processes; the system releases the lock of a process that ends."""
    descriptor = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        if sys.platform == "win32":
            with importing:
                import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
        else:
            with importing:
                import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def tuning_file(settings: Settings, kind: str) -> TuningFile | None:
    """The file of a kind of CPU; None where the settings turn tuning off."""
    path = tuning_path(settings, kind)
    return None if path is None else TuningFile(path, kind, private=settings.tuning is None)


def load_tunings(settings: Settings, kind: str) -> tuple[Tuning, ...]:
    """The tunings that are kept for a kind of CPU."""
    file = tuning_file(settings, kind)
    return () if file is None else tunings_of(file.load())
