"""The object cache: what is stored comes back, what was altered does not, and nobody else's is read."""

from __future__ import annotations

import logging
import os
import shutil
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support import within

import tilewright
from tilewright.atomic import STALE_SECONDS
from tilewright.llvm.object_cache import key_of, sources_digest, states_digest
from tilewright.machine.catalog import find_machine
from tilewright.store import MOST_OBJECT_BYTES, SUFFIX, ObjectCache

KEY = key_of("something", find_machine("znver5"))


@pytest.fixture
def store(tmp_path: Path) -> ObjectCache:
    return ObjectCache(tmp_path / "cache" / "objects")


def test_what_is_stored_comes_back(store: ObjectCache) -> None:
    assert store.load(KEY) is None
    store.store(KEY, b"machine code")
    assert store.load(KEY) == b"machine code"
    assert store.directory.stat().st_mode & 0o777 == 0o700


def test_keys_differ_by_machine_and_problem() -> None:
    other = key_of("something", find_machine("znver4"))
    assert len({KEY, other, key_of("something else", find_machine("znver5"))}) == 3


@pytest.mark.parametrize("position", [0, 10, 45, 60, 85, -1])
def test_an_altered_file_is_not_read(store: ObjectCache, position: int) -> None:
    store.store(KEY, b"machine code")
    (entry,) = store.entries()
    content = bytearray(entry.path.read_bytes())
    content[position] ^= 1
    entry.path.write_bytes(content)
    assert store.load(KEY) is None
    store.store(KEY, b"machine code")
    assert store.load(KEY) == b"machine code"


@pytest.mark.parametrize("length", [0, 20, 81])
def test_a_truncated_file_is_not_read(store: ObjectCache, length: int) -> None:
    store.store(KEY, b"machine code")
    (entry,) = store.entries()
    entry.path.write_bytes(entry.path.read_bytes()[:length])
    assert store.load(KEY) is None


def test_a_file_under_another_key_is_not_read(store: ObjectCache) -> None:
    store.store(KEY, b"machine code")
    (entry,) = store.entries()
    other = key_of("other", find_machine("znver5"))
    entry.path.rename(store.directory / (other.hex() + SUFFIX))
    assert store.load(other) is None


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_a_directory_that_others_may_write_is_not_used(
    store: ObjectCache, caplog: pytest.LogCaptureFixture
) -> None:
    store.store(KEY, b"machine code")
    store.directory.chmod(0o777)
    with caplog.at_level(logging.WARNING, "tilewright"):
        assert store.load(KEY) is None
        store.store(KEY, b"other code")
    assert len(caplog.records) == 1, "said once"
    store.directory.chmod(0o700)
    assert store.load(KEY) == b"machine code"


def test_a_file_in_the_way_is_left_alone(store: ObjectCache) -> None:
    store.directory.parent.mkdir()
    store.directory.write_text("not a cache")
    store.store(KEY, b"machine code")
    assert store.load(KEY) is None
    assert store.directory.read_text() == "not a cache"


def test_the_least_recently_used_go_first(store: ObjectCache) -> None:
    keys = [key_of(str(number), find_machine("znver5")) for number in range(4)]
    for age, key in enumerate(keys):
        store.store(key, bytes(1000))
        path = store.directory / (key.hex() + SUFFIX)
        os.utime(path, (1000 + age, 1000 + age))
    assert store.load(keys[0]) is not None  # now the most recently used
    assert store.prune(3 * 1100) == 2
    assert [store.load(key) is not None for key in keys] == [True, False, False, True]
    assert store.clear() == 2
    assert store.entries() == ()


def test_many_writers_at_once(store: ObjectCache) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: store.store(KEY, b"code" * 5000), range(64)))
    assert store.load(KEY) == b"code" * 5000
    assert [path.suffix for path in store.directory.iterdir()] == [SUFFIX]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes have names on POSIX")
@pytest.mark.parametrize("kind", ["pipe", "socket", "folder", "link", "device", "long"])
def test_what_is_no_regular_file_is_not_read(store: ObjectCache, kind: str, tmp_path: Path) -> None:
    store.store(KEY, b"machine code")
    (entry,) = store.entries()
    path, content = entry.path, entry.path.read_bytes()
    path.unlink()
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "socket":
            with socket.socket(socket.AF_UNIX) as end:
                folder = os.open(path.parent, os.O_RDONLY)  # the path of a socket is at most 108 characters
                end.bind(f"/proc/self/fd/{folder}/{path.name}" if sys.platform == "linux" else str(path))
                os.close(folder)
        case "folder":
            path.mkdir()
        case "link":
            (tmp_path / "other").write_bytes(content)
            path.symlink_to(tmp_path / "other")
        case "device":
            path.symlink_to("/dev/zero")
        case "long":
            path.write_bytes(content)
            os.truncate(path, MOST_OBJECT_BYTES + 100)
    with within(10):
        assert store.load(KEY) is None
        store.store(KEY, b"machine code")
        assert (store.load(KEY) == b"machine code") == (kind != "folder")
        store.prune(1)
        assert store.load(KEY) is None
        assert store.clear() == 0


def test_files_of_killed_writers_go(store: ObjectCache) -> None:
    store.store(KEY, b"machine code")
    fresh, old, future = (store.directory / f".new-{name}" for name in ("fresh", "old", "future"))
    for path in (fresh, old, future):
        path.write_bytes(b"half of it")
    now = time.time()
    os.utime(old, (now, now - STALE_SECONDS - 60))
    os.utime(future, (now, now + STALE_SECONDS + 60))
    store.store(KEY, b"machine code")
    assert old.exists(), "one process looks once"
    ObjectCache(store.directory).store(KEY, b"machine code")
    assert [path.exists() for path in (fresh, old, future)] == [True, False, False]
    os.utime(fresh, (now, now - STALE_SECONDS - 60))
    assert store.prune(store.limit_bytes) == 0
    assert not fresh.exists()


def test_a_file_that_cannot_be_removed(store: ObjectCache, monkeypatch: pytest.MonkeyPatch) -> None:
    store.store(KEY, b"machine code")

    def refuse(_path: Path) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "unlink", refuse)
    assert (store.prune(1), store.clear()) == (0, 0)


def test_a_changed_source_has_another_state(tmp_path: Path) -> None:
    """Also where the size and the time of the last change of contents are those of before."""
    place = tmp_path / "inner" / "module.py"
    assert states_digest(tmp_path, "salt") is None
    place.parent.mkdir()
    place.write_text("one = 1\n")
    before, times = states_digest(tmp_path, "salt"), place.stat()
    assert states_digest(tmp_path, "salt") == before
    assert states_digest(tmp_path, "pepper") != before
    time.sleep(0.02)  # the clock of the file system ticks
    place.write_text("one = 2\n")
    os.utime(place, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert states_digest(tmp_path, "salt") != before


def test_every_source_is_in_the_key(tmp_path: Path) -> None:
    root = Path(tilewright.__file__).parent
    copy = tmp_path / "tilewright"
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns("__pycache__"))
    digests = [sources_digest(root, "salt"), sources_digest(copy, "salt")]
    assert digests[0] == digests[1]
    for place in (
        "macro/cost.py",
        "ops/einsum/contraction.py",
        "compiler/lowering/program.py",
        "new.py",
    ):
        with (copy / place).open("a") as file:
            file.write("# changed\n")
        digests.append(sources_digest(copy, "salt"))
    digests.append(sources_digest(root, "pepper"))
    assert len(set(digests)) == len(digests) - 1
