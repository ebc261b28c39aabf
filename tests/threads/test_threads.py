"""The thread pool: every task once, callers beside each other, sleep, signals, forks, the end."""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from pool_bodies import INSIDE, MEET, Count, body, count, meeting, run
from shares import EVERY_TEST_RUNS
from support import run_python

from tilewright.errors import InvalidThreads
from tilewright.threads.pool import MOST_THREADS, ThreadPool, check_threads
from tilewright.threads.pool_memory import ASLEEP, FREE, TeamMemory
from tilewright.threads.pool_system import Wait, host_wait

WAITS = [Wait.CONDITION] if host_wait() is Wait.CONDITION else list(Wait)
#: Seconds for what takes milliseconds, where other processes have the processors meanwhile.
LONGEST = 60
#: `pause` instructions of a task that takes long enough for a sleeping worker to come: about 1 ms.
LONG = 20_000

posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs POSIX processes")
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture(params=WAITS, ids=lambda wait: wait.value)
def wait(request: pytest.FixtureRequest) -> Wait:
    found: Wait = request.param
    return found


_pools: list[ThreadPool] = []


def pool_of(size: int, wait: Wait | None = None, cores: int = 64, spin_us: float = 50) -> ThreadPool:
    """A pool of its own; its workers stay, asleep."""
    _pools.append(ThreadPool(size, cores, spin_us, wait))
    return _pools[-1]


@pytest.fixture(autouse=True)
def nobody_polls_afterwards() -> Iterator[None]:
    """A worker that still polled would take its core from the tests that follow."""
    yield
    pools, _pools[:] = _pools[:], []
    for pool in pools:
        pool.state.cores = 0
    assert eventually(lambda: not any(pool.state.awake for pool in pools))


def settled(pool: ThreadPool) -> bool:
    """Waits until every worker sleeps."""
    end = time.monotonic() + LONGEST
    while time.monotonic() < end:
        words = [pool.state.slots[index].word for index in range(pool.workers)]
        if pool.state.awake == 0 and all(word == ASLEEP for word in words):
            return True
        time.sleep(0.001)
    return False


def eventually(condition: Callable[[], bool]) -> bool:
    """Waits until something holds."""
    end = time.monotonic() + LONGEST
    while not condition() and time.monotonic() < end:
        time.sleep(0.001)
    return condition()


def test_offers_that_are_taken_back_while_a_worker_wakes(wait: Wait) -> None:
    """Callers that are done at once meet workers on their way from sleep, thousands of times."""
    for _ in range(15):
        pool = pool_of(5, wait)
        for tasks in (2, 3, 7):
            found = count(pool, tasks, jobs=50)
            assert np.all(found.ran == 50)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_every_task_runs_once(size: int, wait: Wait) -> None:
    pool = pool_of(size, wait)
    for tasks, turns in itertools.product((0, 1, 2, 3, 7, 100), (0, 30)):
        found = count(pool, tasks, turns=turns, jobs=50)
        assert np.all(found.ran == 50)
        assert (found.clashes, found.most) == (0, min(found.most, size, tasks))
    assert pool.workers == size - 1
    assert pool.state.active == 0


def test_threads_run_at_the_same_time(wait: Wait) -> None:
    pool = pool_of(4, wait)
    for _ in range(5):
        assert meeting(pool, 4) == 4
        assert settled(pool)


def test_sleepers_wake_each_other(wait: Wait) -> None:
    """The caller wakes two, and each of them two more; in the end all are awake."""
    pool = pool_of(33, wait)
    for _ in range(3):
        assert meeting(pool, 33) == 33
        assert settled(pool)


@linux_only
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs another CPU to wake on")
def test_a_sleeper_wakes_on_another_cpu_than_its_caller() -> None:
    """Else the two may share one for milliseconds; the worker may go there again before it sleeps."""
    pool = pool_of(2, Wait.FUTEX, spin_us=100_000)
    count(pool, 2)
    assert eventually(lambda: pool.state.slots[0].thread != 0)
    worker = int(pool.state.slots[0].thread)
    everywhere = os.sched_getaffinity(0)
    here = min(everywhere)
    os.sched_setaffinity(0, {here})
    kept_off = 0
    try:
        for _ in range(60):  # on a busy machine it may be awake too soon, or asleep again
            assert settled(pool)
            time.sleep(0.01)  # from saying that it sleeps to sleeping
            # One whose offer was taken back at once may still be on its way.
            assert eventually(lambda: os.sched_getaffinity(worker) == everywhere)
            count(pool, 2, turns=LONG)
            kept_off += os.sched_getaffinity(worker) == everywhere - {here}
            if kept_off == 3:
                break
    finally:
        os.sched_setaffinity(0, everywhere)
    assert kept_off == 3


@linux_only
def test_a_worker_that_has_one_cpu_keeps_it() -> None:
    """Wherever its caller runs: there, or on a CPU that the worker never had."""
    pool = pool_of(2, Wait.FUTEX)
    count(pool, 2)
    assert eventually(lambda: pool.state.slots[0].thread != 0)
    everywhere = os.sched_getaffinity(0)
    worker, only = int(pool.state.slots[0].thread), {min(everywhere)}
    # One that was woken puts its caller's CPU back before it sleeps, into whatever CPUs it has by then.
    assert eventually(lambda: settled(pool) and os.sched_getaffinity(worker) == everywhere)
    os.sched_setaffinity(worker, only)
    try:
        for here in (min(everywhere), max(everywhere)):
            os.sched_setaffinity(0, {here})
            for _ in range(10):
                assert settled(pool)
                assert np.all(count(pool, 50, turns=100).ran == 1)
            assert settled(pool)
            time.sleep(0.01)  # from saying that it sleeps to sleeping
            assert os.sched_getaffinity(worker) == only, f"called from CPU {here}"
    finally:
        os.sched_setaffinity(0, everywhere)


def test_the_caller_takes_back_what_nobody_took() -> None:
    """A worker that does not come, as one that is slow to wake, is not waited for."""
    pool = pool_of(3)
    pool.state.started = 2  # slots without a thread
    pool.state.slots[0].word, pool.state.slots[1].word = FREE, ASLEEP
    found = count(pool, 20)
    assert np.all(found.ran == 1)
    assert found.most == 1
    assert [pool.state.slots[index].word for index in range(2)] == [FREE, ASLEEP]


def test_nested_runs(wait: Wait) -> None:
    pool = pool_of(3, wait)
    inner, tasks = Count(50), 40
    with pool.team() as outer_team, pool.team(3) as other_team:
        for team in (outer_team, other_team):
            env = np.array([team, body("count"), inner.address, 50], np.int64)
            run(outer_team, body("nest"), env.ctypes.data, tasks)
    assert inner.ran.sum() == 2 * tasks * 50


def test_callers_beside_each_other(wait: Wait) -> None:
    pool = pool_of(4, wait, cores=2)
    barrier = threading.Barrier(8)

    def call(number: int) -> bool:
        barrier.wait()
        found = [count(pool, 1 + number, turns=10, jobs=20) for _ in range(50)]
        return all(np.all(one.ran == 20) and one.clashes == 0 and one.most <= 4 for one in found)

    with ThreadPoolExecutor(8) as executor:
        assert all(executor.map(call, range(8)))
    assert pool.state.active == 0


def test_teams_share_the_threads() -> None:
    pool = pool_of(8)
    with pool.team() as first, pool.team() as second, pool.team() as third, pool.team(2) as fourth:
        teams = (first, second, third, fourth)
        records = [TeamMemory.from_address(team) for team in teams]
        assert [record.share for record in records] == [8, 4, 2, 1]
        assert [record.threads for record in records] == [8, 4, 2, 2], "work is cut for one thread too"


def test_sizes_change(wait: Wait) -> None:
    pool = pool_of(2, wait)
    for size in (1, 4, 2, 6, 3):
        pool.resize(size)
        found = count(pool, 60, turns=2000)
        assert np.all(found.ran == 1)
        assert found.most <= size
        assert pool.size == size
    assert pool.workers == 5


def test_resizing_while_others_call() -> None:
    pool, stop = pool_of(2), threading.Event()

    def resize() -> None:
        for size in itertools.cycle((1, 3, 2, 5)):
            pool.resize(size)
            if stop.wait(0.001):
                return

    thread = threading.Thread(target=resize)
    thread.start()
    try:
        for _ in range(100):
            assert np.all(count(pool, 20, turns=20, jobs=10).ran == 10)
    finally:
        stop.set()
        thread.join()


def test_short_calls_wake_nobody_unless_they_follow_each_other() -> None:
    pool = pool_of(2, spin_us=200_000)
    assert meeting(pool, 2) == 2
    for _ in range(20):  # beside other load, two calls may be further apart than a worker waits
        assert settled(pool)
        time.sleep(0.3)
        assert meeting(pool, 2, long=False) == 1
        assert pool.state.slots[0].word == ASLEEP
        if meeting(pool, 2, long=False) == 2:
            break
    else:
        pytest.fail("a short call woke nobody although it followed another")
    assert eventually(lambda: meeting(pool, 2, long=False) == 2)
    assert settled(pool)


def test_losses_are_repaid() -> None:
    """After a run that took longer than its caller alone would have, callers do without workers."""
    pool, env = pool_of(2), Count(0, 400_000)
    env.words[MEET] = 1000
    repaid = 0
    for _ in range(50):
        pool.state.alone_until = 0
        with pool.team() as team:
            run(team, body("held_up"), env.address, 20)
            before, left = env.words[INSIDE], pool.state.alone_until - time.monotonic_ns()
            run(team, body("held_up"), env.address, 20)
            if left > 5e6:  # else the worker did not come, or the caller was held up itself
                assert env.words[INSIDE] == before
                repaid += 1
    assert repaid > 0
    assert settled(pool)


def test_idle_workers_sleep(wait: Wait) -> None:
    pool = pool_of(4, wait, spin_us=2000)
    count(pool, 40, turns=LONG)
    assert settled(pool)
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.1


def test_nobody_polls_where_cores_are_short() -> None:
    """Workers beyond the cores go to sleep at once, however long they may poll."""
    pool = pool_of(3, cores=1, spin_us=10 * LONGEST * 1e6)
    count(pool, 40, turns=LONG)
    assert eventually(lambda: pool.state.awake <= 1)


@linux_only
def test_workers_leave_signals_alone() -> None:
    count(pool_of(2), 4)
    worker = next(thread for thread in threading.enumerate() if thread.name == "tilewright-1")
    assert worker.daemon

    def blocked() -> int:
        status = Path(f"/proc/self/task/{worker.native_id}/status").read_text(encoding="ascii")
        return int(status.split("SigBlk:")[1].split()[0], 16)

    assert eventually(lambda: blocked() != 0)
    mask = blocked()
    assert mask >> (2 - 1) & 1, "SIGINT"
    assert not mask >> (11 - 1) & 1, "SIGSEGV"


@pytest.mark.parametrize("value", [0, -1, True, 2.0, "2", None, MOST_THREADS + 1])
def test_numbers_of_threads(value: object) -> None:
    with pytest.raises(InvalidThreads):
        check_threads("threads", value)
    assert check_threads("threads", np.int32(3)) == 3
    assert check_threads("threads", MOST_THREADS) == MOST_THREADS


# --- signals ------------------------------------------------------------------------------------

INTERRUPT = """
import os, signal, sys, threading, time
import numpy as np
from pool_bodies import Count, body, count, run
from tilewright.threads.pool import ThreadPool
signal.signal(signal.SIGINT, signal.default_int_handler)
size = int(sys.argv[1])
pool = ThreadPool(size, 2)
assert np.all(count(pool, 10).ran == 1)
for turn in range(3):
    sent = []
    def interrupt():
        time.sleep(0.1)
        sent.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=interrupt).start()
    tasks, found = 10_000_000, Count(10_000_000, 50)
    try:
        with pool.team() as team:
            run(team, body("count"), found.address, tasks)
            took = time.process_time() - sent[0]  # whatever else runs on the processors
            ran = found.ran.sum()
            run(team, body("count"), found.address, tasks)
            assert found.ran.sum() == ran, "a cancelled team went on"
    except KeyboardInterrupt:
        assert took < 0.2 * size, took
        assert 0 < ran < tasks
        assert found.ran.max() == 1
    else:
        raise SystemExit("no KeyboardInterrupt")
    assert np.all(count(pool, 1000).ran == 1)
handled = []
signal.signal(signal.SIGUSR1, lambda *_: handled.append(1))
threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1)).start()
found = count(pool, 50_000, turns=500)
assert np.all(found.ran == 1) and handled == [1]
print("usable")
"""


@posix
@pytest.mark.parametrize("size", [1, 2])
def test_signals_reach_a_long_call(size: int) -> None:
    """A handler runs between tasks; if it raises, the rest is skipped, if not, the call goes on."""
    assert "usable" in run_python("-c", INTERRUPT, str(size))


# --- forks and the end --------------------------------------------------------------------------

FORKS = """
import os, sys, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)
import numpy as np
from pool_bodies import count
from tilewright.threads.pool_system import Wait
from tilewright.threads.pool import ThreadPool
pool = ThreadPool(3, 2, wait=Wait[sys.argv[1]])
stop, bad, jobs = threading.Event(), [], []
count(pool, 50)
def work():
    while not stop.is_set():
        found = count(pool, 50, turns=200)
        jobs.append(1)
        if not np.all(found.ran == 1):
            bad.append(found)
threads = [threading.Thread(target=work) for _ in range(2)]
[thread.start() for thread in threads]
for number in range(int(sys.argv[2])):
    child = os.fork()
    if not child:
        assert (pool.workers, pool.state.active, pool.state.awake) == (0, 0, 0)
        found = count(pool, 50, turns=2000)
        os._exit(0 if np.all(found.ran == 1) and pool.workers == 2 and found.clashes == 0 else 1)
    assert os.waitpid(child, 0)[1] == 0, number
before = len(jobs)
while len(jobs) < before + 10:
    pass
stop.set()
[thread.join() for thread in threads]
assert not bad and np.all(count(pool, 50).ran == 1)
print("forked")
"""


@posix
def test_forks_while_the_pool_works(wait: Wait) -> None:
    assert "forked" in run_python("-c", FORKS, wait.name, "100" if EVERY_TEST_RUNS else "20")


EXIT = """
import os, sys, threading, time
from pool_bodies import count
from tilewright.threads.pool import ThreadPool
pool = ThreadPool(3, 2)
count(pool, 10)
case = sys.argv[1]
def work():
    while True:
        count(pool, 100, turns=100_000)
if case in ("working", "forked"):
    [threading.Thread(target=work, daemon=True).start() for _ in range(2)]
    time.sleep(0.05)
if case == "forked":
    child = os.fork()
    if not child:
        count(pool, 10)
        [threading.Thread(target=work, daemon=True).start() for _ in range(2)]
        time.sleep(0.05)
    else:
        assert os.waitpid(child, 0)[1] == 0
"""


@posix
@pytest.mark.parametrize("case", ["idle", "working", "forked"])
def test_the_process_ends(case: str) -> None:
    for _ in range(3 if EVERY_TEST_RUNS else 1):
        run_python("-W", "ignore", "-c", EXIT, case)


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    """Python threads of a test end with it, workers aside."""
    yield
    assert all(thread.daemon or thread is threading.main_thread() for thread in threading.enumerate())
