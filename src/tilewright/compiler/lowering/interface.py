"""The interface of a lowered program: the arguments of its function, and the layout of its scratch memory."""

from __future__ import annotations

from typing import NamedTuple

from tilewright.compiler.interface import SCRATCH_ALIGNMENT
from tilewright.ir.nodes import Execution, If, Loop, Program, Space, Statement
from tilewright.llvm.values import INT64, POINTER, Type, element_type
from tilewright.spec.dtype import DType, Kind, accumulator

#: Each scratch buffer is shifted from the start of a page by so many bytes more than the one before it, so
#: that their first lines fall into different sets of the cache.
SCRATCH_STAGGER = 1024


class ScratchLayout(NamedTuple):
    """Offsets of the scratch buffers of a program in one block of memory.

    Attributes
    ----------
    offsets : bytes from the start of the block; for per-thread buffers, those of thread 0.
    bytes : size of the block for one thread.
    thread_bytes : distance from one thread's buffers to the next thread's, and so what each thread adds.
    """

    offsets: dict[str, int]
    bytes: int
    thread_bytes: int

    def size(self, threads: int) -> int:
        """Size of the block for a number of threads."""
        return self.bytes + (threads - 1) * self.thread_bytes


def scratch_layout(program: Program) -> ScratchLayout:
    """Shared buffers first, then one group of per-thread buffers for each thread."""
    offsets: dict[str, int] = {}
    ends: list[int] = [0]
    number = 0
    for space in (Space.SHARED, Space.THREAD):
        for buffer in program.scratch:
            if buffer.space is not space:
                continue
            assert buffer.size is not None
            start = _whole_pages(ends[-1]) + number * SCRATCH_STAGGER
            offsets[buffer.name] = start
            ends.append(start + buffer.dtype.bytes(buffer.size))
            number += 1
        if space is Space.SHARED:
            shared = ends[-1]
    first_page = shared // SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT
    return ScratchLayout(offsets, ends[-1], _whole_pages(ends[-1]) - first_page)


def _whole_pages(size: int) -> int:
    """A size rounded up to whole pages."""
    return -(-size // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT


def has_tasks(program: Program) -> bool:
    """Whether a program has parallel loops, and so takes a team."""
    return any(map(makes_tasks, program.body))


def makes_tasks(statement: Statement) -> bool:
    """Whether a statement is or contains a parallel loop."""
    match statement:
        case Loop(execution=Execution.PARALLEL):
            return True
        case Loop(body=body):
            return any(map(makes_tasks, body))
        case If(then=then, otherwise=otherwise):
            return any(map(makes_tasks, (*then, *otherwise)))
        case _:
            return False


def scalar_type(program: Program) -> DType:
    """The type of scalars and of primitives' numbers: by default the sums' of the first two operands."""
    if program.scalar_dtype is not None:
        return program.scalar_dtype
    a, b = (buffer.dtype for buffer in (program.arguments * 2)[:2])
    if a.is_integer != b.is_integer:  # words of a packed weight, whose elements are converted to A's type
        b = a
    floats = a.kind is b.kind is Kind.FLOAT
    return accumulator(a.real, b.real) if program.scalars or floats else a


def signature(program: Program) -> list[tuple[str, Type]]:
    """The arguments of a program's function, in order; see `lower`."""
    scalar = element_type(scalar_type(program)) if program.scalars else POINTER
    return [
        *((buffer.name, POINTER) for buffer in program.arguments),
        *((name, INT64) for name in program.sizes),
        *((name, scalar) for name in program.scalars),
        *((("scratch", POINTER),) if program.needs_scratch else ()),
        *((("team", POINTER),) if has_tasks(program) else ()),
    ]
