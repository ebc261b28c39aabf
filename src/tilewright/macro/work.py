"""The work of one task."""

#: Multiply-adds of a task, about: 1 ms of vectors, 30 ms of elements that no vector instruction multiplies.
TASK_WORK = 1 << 26
