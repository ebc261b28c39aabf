"""How much of a loop one task takes, so that any number of threads ends together.

One thread makes one task of everything, which costs it one call. Each further thread adds the same number of
tasks, from which threads help themselves: the last one to finish makes the others wait for at most one task.

No task does more than about `TASK_WORK`, because signal handlers run between tasks. Where the loops of a
task have no bound, the nest spends from the task's budget (`ir.primitives.Spend`).
(The pool's teams of one thread count two, so that one thread makes several tasks too.)
"""

from __future__ import annotations

from tilewright.ir.expressions import Expression, Threads, ceildiv, maximum, minimum, roundup
from tilewright.ir.nodes import Execution, Loop, Statement
from tilewright.macro.work import TASK_WORK

#: Tasks for each further thread. Column tasks of a nest without packing: n = 128 has four tiles of columns.
COLUMN_TASKS = 8

#: Blocks of rows between two packed panels of B: few enough that A is seldom packed, in blocks of at least
#: `LEAST_TILES` register tiles, and more than threads, for some are late.
ROW_TASKS = 24
LEAST_TILES = 2

#: Parts of the columns where rows are too few to give every thread this many tasks; each has at least
#: `LEAST_COLUMN_TILES` register tiles beside one another, as A is packed again for each.
THREAD_TASKS = 4
LEAST_COLUMN_TILES = 8
#: The same where A stays in place.
LEAST_STRIP_TILES = 2

#: Bytes of a row that one task packs at least: the shorter the runs, the less of them hardware prefetches.
PACKED_RUN = 256

#: Elements of a task are a multiple of so many: few enough for small arrays, and whole lines of any type.
TASK_UNIT = 1024
#: The same in elements that are read or written: 4 ms of memory, of functions of many instructions as much.
TASK_ELEMENTS = 1 << 20
#: Multiply-adds that take as long as one element of memory: 60 per nanosecond, against 4 elements.
MOVED_WORK = 16

#: Rows of a task where columns alone are too few: register tiles, and more where a task copies columns of B.
LEAST_ROW_TILES = 2
LEAST_COPIED_TILES = 8


def tasks(each: int) -> Expression:
    """`each` for every thread but the first, and at least one."""
    return maximum((Threads() - 1) * each, 1)


def bounded(parts: Expression, work: Expression, most: int = TASK_WORK) -> Expression:
    """`parts`, or more, so that each does at most so much; one thread without a team has no limit."""
    return maximum(parts, minimum(Threads() - 1, 1) * ceildiv(work, most))


def share(extent: Expression, unit: int, parts: Expression) -> Expression:
    """The step of a loop that is cut into about so many parts, each a multiple of `unit`.

    Before: 512 columns in 3 parts of whole 32. After: 192, 192 and 128.
    """
    return maximum(roundup(ceildiv(extent, parts), unit), unit)


def parallel(axis: str, begin: Expression, end: Expression, step: Expression, *body: Statement) -> Loop:
    """A loop whose iterations are tasks."""
    return Loop(axis, begin, end, step, body, Execution.PARALLEL)
