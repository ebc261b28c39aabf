"""How many threads: the public functions, the environment, threadpoolctl."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support import run_python

import tilewright as tw
from tilewright.errors import InvalidThreads
from tilewright.threads import pool as threads


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    before = tw.get_num_threads()
    yield
    tw.set_num_threads(before)


def test_setting_the_number() -> None:
    for count in (3, 1, 2):
        tw.set_num_threads(count)
        assert tw.get_num_threads() == count
        assert threads.thread_pool().size == count
    with pytest.raises(InvalidThreads, match="set_num_threads"):
        tw.set_num_threads(0)
    assert tw.get_num_threads() == 2


#: Orders of imports, and whether threadpoolctl is looked at before the package is there.
ORDERS = [
    "import tilewright as tw, threadpoolctl",
    "import threadpoolctl, tilewright as tw",
    "import threadpoolctl; threadpoolctl.threadpool_info(); import tilewright as tw",
    "import importlib.util as u, tilewright as tw; u.find_spec('threadpoolctl'); import threadpoolctl",
]

LIMITS = """
ours = [entry for entry in threadpoolctl.threadpool_info() if entry["user_api"] == "tilewright"]
assert len(ours) == 1, ours
assert ours[0]["num_threads"] == tw.get_num_threads() == 3
assert (ours[0]["internal_api"], ours[0]["version"]) == ("tilewright", tw.__version__)
with threadpoolctl.threadpool_limits(1):
    assert tw.get_num_threads() == 1
    with threadpoolctl.threadpool_limits({"tilewright": 2}):
        assert tw.get_num_threads() == 2
    assert tw.get_num_threads() == 1
assert tw.get_num_threads() == 3
with threadpoolctl.threadpool_limits(1, user_api="blas"):
    assert tw.get_num_threads() == 3
import sys
assert not any(type(finder).__module__.startswith("tilewright") for finder in sys.meta_path)
print("found")
"""


@pytest.mark.parametrize("order", ORDERS)
def test_threadpoolctl(order: str) -> None:
    pytest.importorskip("threadpoolctl")
    assert "found" in run_python("-c", f"{order}\ntw.set_num_threads(3)\n{LIMITS}")


def test_importing_does_not_import_threadpoolctl() -> None:
    run_python("-c", "import sys, tilewright; assert 'threadpoolctl' not in sys.modules")


DEFAULT = """
import tilewright as tw
from tilewright.machine.host import default_thread_count, detect_host
from tilewright.settings import read_settings
settings = read_settings()
assert tw.get_num_threads() == default_thread_count(settings, detect_host(settings))
print(tw.get_num_threads())
"""


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [("OMP_NUM_THREADS", "1", 1), ("TILEWRIGHT_NUM_THREADS", "1", 1), ("TILEWRIGHT_CPU_QUOTA", "1.9", 1)],
)
def test_the_default(name: str, value: str, expected: int) -> None:
    code = f"import os\nos.environ[{name!r}] = {value!r}\n{DEFAULT}"
    assert int(run_python("-c", code)) == expected
