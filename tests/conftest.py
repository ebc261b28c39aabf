"""The whole test-suite: `--update-golden`, tests/shared for every test, one object cache for a run."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

# Before NumPy is imported, also in child processes: NumPy computes references on one thread. Idle threads of
# OpenBLAS spin between the products of a test, which takes the cores from the other workers.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Kernels are those that the models choose, whatever was tuned on this host.
os.environ.setdefault("TILEWRIGHT_TUNING", "0")
# Images for containers often have Python write no bytecode. Each worker would then rewrite the assertions of
# all tests, for 12 s, and each child process compile what it imports of tests/shared.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
sys.path[:0] = [str(Path(__file__).parent / "shared"), str(Path(__file__).parent)]

#: Objects that are made before one garbage collection; 700 are Python's default.
GARBAGE = 20_000


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-golden` rewrites the golden files instead of comparing with them."""
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files of tile IR")


def pytest_configure(config: pytest.Config) -> None:
    """A run compiles everything once: its workers and child processes share a cache that begins empty.

    Tests of compilation itself take the fixture `uncached`.
    """
    # What tests import and what compilation builds has hardly any cycles.
    gc.set_threshold(GARBAGE)
    if "TILEWRIGHT_CACHE_DIR" not in os.environ:  # workers inherit it
        directory = tempfile.mkdtemp(prefix="tilewright-tests-")
        os.environ["TILEWRIGHT_CACHE_DIR"] = directory
        config.add_cleanup(lambda: shutil.rmtree(directory, ignore_errors=True))
    from hypothesis import settings  # here, so that its bytecode is written

    # No example has to end within a time: the machine may do other things.
    settings.register_profile("tilewright", deadline=None)
    settings.load_profile("tilewright")
    if config.option.markexpr == "not exhaustive":
        os.environ["EXHAUSTIVE_LEFT_OUT"] = "1"
    if not config.option.markexpr:
        os.environ["EVERY_TEST_RUNS"] = "1"
    elif not config.getoption("numprocesses", None) or hasattr(config, "workerinput"):
        _run_quick_code(config)


def _run_quick_code(config: pytest.Config) -> None:
    """Makes what `make test` and runs of single files share shorter; see tests/shared/quick_tests.py."""
    from hypothesis.internal.conjecture import providers
    from quick_tests import choose_level, install

    install()
    # Hypothesis reads the source of every module for constants to draw, for 3 s where nothing is cached yet.
    # The draws of a test would also change with every other source.
    if hasattr(providers, "_get_local_constants"):
        providers._get_local_constants = lambda: providers._local_constants

    class BeforeFixtures:
        """The level of a test is known before its fixtures, which compile too."""

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_setup(self, item: pytest.Item) -> None:
            choose_level(item)

    config.pluginmanager.register(BeforeFixtures())


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Every second worker collects folders from their ends: where workers meet, bytecode is there."""
    report = yield
    if isinstance(collector, pytest.Directory) and hasattr(collector.config, "workerinput"):
        from worker_order import from_the_end

        if from_the_end(collector.config.workerinput["workerid"]):
            report.result.reverse()
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Repetitions get their mark before marks are selected; of several workers the long tests come first."""
    from tiers import mark_repetitions

    mark_repetitions(items)
    if hasattr(config, "workerinput"):
        from worker_order import is_long, long_first

        items.sort(key=lambda item: item.path)  # as every worker, whatever it collected first
        items[:] = long_first(items, lambda item: is_long(item.path))


def pytest_collection_finish() -> None:
    """Tests and their modules live as long as the run: no garbage collection looks at them again."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def uncached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that this test needs is compiled anew."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", "0")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten."""
    return bool(request.config.getoption("--update-golden"))
