"""Layout and meaning of the memory shared by workers and callers of the thread pool.

Each worker has a slot; it communicates with callers through one word of the slot:

    FREE        polls the word                     FREE   -> team           a caller offers its tasks
    ASLEEP      waits in the operating system      ASLEEP -> team|ASLEPT    the same; the caller then wakes it
    team        is offered the tasks of a team     team   -> team|TAKEN     the worker takes the offer,
    team|TAKEN  works on them                      team   -> FREE, ASLEEP   or the caller takes it back
                                                   team|TAKEN -> FREE       there are no more tasks
    STOPPED     has ended, or is about to          FREE, ASLEEP -> STOPPED  the pool ends

So a caller waits for those workers alone that took its offer; one that is slow to wake finds nothing. Who
waits for a worker that is inside a task sets `WAITED` beside `TAKEN`, and is woken. Callers that run at the
same time claim different workers; one that finds none does its tasks itself.
"""

from __future__ import annotations

import ctypes

#: The exported functions of the machine code.
WORK, OPEN, CLOSE, RUN = "tw_pool_work", "tw_team_open", "tw_team_close", "tw_team_run"

#: Workers that a pool can have.
MOST_WORKERS = 1023
#: Granularity that avoids false sharing: a cache line and the adjacent one that x86 prefetches.
APART = 128

#: States of a slot without a team.
FREE, ASLEEP, STOPPED = 8, 9, 10
#: States of a slot with a team, in the low bits of its address; bit 3 tells ASLEEP from a worker that ASLEPT.
ASLEPT, TAKEN, WAITED = 1, 2, 4
#: A team's address is a multiple of this, so that those bits are free.
TEAM_ALIGNMENT = 16

#: Callers take tasks from the first on, workers from the last on, so that calls that follow each other find
#: their data in the caches of the same cores. Both are counted in one word: callers' below bit 32.
FROM_BELOW, FROM_ABOVE = 1, 1 << 32
#: More tasks are done by the caller.
MOST_TASKS = 1 << 29
#: What the word says when no task is left, far from the end of the numbers: late workers still count up.
NO_TASK = FROM_ABOVE << 30

#: No pthread_mutex_t or pthread_cond_t is larger (macOS: 64 and 48 bytes, glibc: 40 and 48).
PTHREAD_BYTES = 64


class WorkerSlot(ctypes.Structure):
    """Memory shared by one worker and its callers."""

    _fields_ = (
        ("word", ctypes.c_int64),
        ("mutex", ctypes.c_byte * PTHREAD_BYTES),  # on systems without futexes
        ("condition", ctypes.c_byte * PTHREAD_BYTES),
        ("thread", ctypes.c_int64),  # the worker's number in the operating system; 0 before it has begun
        ("kept_off", ctypes.c_int64),  # 1 + the CPU that it was kept off when it was woken; 0 for none
        ("handle", ctypes.c_int64),  # the pthread_t of a thread that is joined
        ("_rest", ctypes.c_byte * (2 * APART - 4 * 8 - 2 * PTHREAD_BYTES)),
    )


class PoolState(ctypes.Structure):
    """A pool: rarely written fields, fields callers write, and the slots, on separate cache lines."""

    _fields_ = (
        ("size", ctypes.c_int64),  # threads of a call that does not say how many
        ("started", ctypes.c_int64),  # slots that have a worker
        ("cores", ctypes.c_int64),  # that this process may use at once
        ("spin_ns", ctypes.c_int64),  # for how long threads poll before they sleep
        ("poll_ns", ctypes.c_int64),  # from one look for signals to the next
        ("main_thread", ctypes.c_uint64),  # as PyThread_get_thread_ident has it
        ("open", ctypes.c_void_p),  # the functions that open and close teams, once they are compiled
        ("close", ctypes.c_void_p),
        ("_rarely", ctypes.c_byte * (APART - 8 * 8)),
        ("active", ctypes.c_int64),  # teams that are open
        ("awake", ctypes.c_int64),  # workers that poll or work
        ("closed_at", ctypes.c_int64),  # when a team was closed last, in ns
        ("alone_until", ctypes.c_int64),  # until when callers do their tasks themselves, in ns
        ("_often", ctypes.c_byte * (APART - 4 * 8)),
        ("slots", WorkerSlot * MOST_WORKERS),
    )


class TeamMemory(ctypes.Structure):
    """The threads of one call; its head is the ``tw_team`` that kernels know.

    Attributes
    ----------
    run : address of the function that runs tasks.
    threads : as many as may be inside a task at once, and at least two: work is cut by it, and one thread too
        looks for signals between tasks.
    share : how many may be inside a task at once.
    cancelled : whether a signal handler raised; tasks that had not begun are skipped.
    """

    _fields_ = (
        ("run", ctypes.c_void_p),
        ("threads", ctypes.c_int64),
        ("state", ctypes.c_void_p),
        ("share", ctypes.c_int64),
        ("cancelled", ctypes.c_int64),
        ("polls", ctypes.c_int64),  # whether its caller looks for signals
        ("poll_at", ctypes.c_int64),  # when it does so next, in ns
        ("exception", ctypes.c_void_p * 3),  # type, value and traceback of what the handler raised
        ("running", ctypes.c_int64),
        ("wakes", ctypes.c_int64),  # whether its caller wakes sleepers
        ("body", ctypes.c_void_p),
        ("env", ctypes.c_void_p),
        ("tasks", ctypes.c_int64),
        ("float_mode", ctypes.c_int64),  # of the caller, in which its tasks run on workers, too
        ("_read", ctypes.c_byte * (2 * APART - 16 * 8)),
        ("next", ctypes.c_int64),  # tasks that were taken from below and from above
        ("arrived", ctypes.c_int64),  # workers that have had one
        ("woken", ctypes.c_int64),  # slots that were looked at for sleepers
        ("_written", ctypes.c_byte * (APART - 3 * 8)),
    )
