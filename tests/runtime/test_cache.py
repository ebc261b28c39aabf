"""The object cache: what is stored comes back, what was altered does not, and nobody else's is read."""

from __future__ import annotations

import logging
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tilewright.machine.catalog import find_machine
from tilewright.runtime.cache import SUFFIX, ObjectCache, key_of

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
