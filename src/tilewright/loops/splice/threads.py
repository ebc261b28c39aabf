"""Threads of replaced nests: whose they are, and how a product's function opens and closes teams of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

from tilewright.compiler.interface import SCRATCH_ALIGNMENT
from tilewright.llvm.build import Function
from tilewright.llvm.values import INT64, POINTER, VOID, Value, int64, null
from tilewright.loops.splice.kernels import EmbeddedKernel
from tilewright.records import dataclass
from tilewright.threads.pool_memory import APART, TeamMemory

#: 64-bit words of a team's memory.
TEAM_WORDS = (TeamMemory.next.offset + APART) // 8


class ThreadSource(Enum):
    """Whose threads run the products of a program.

    OFF: the calling thread alone. OPENMP: the program's OpenMP runtime, if one is linked. OWN: a pool that
    the program's files share.
    """

    OFF = "off"
    OPENMP = "openmp"
    OWN = "own"


@dataclass(frozen=True)
class TeamFunctions:
    """The functions that open and close the teams of a module: ``ptr open(ptr memory, i64 work)``, which
    returns null for one thread, and ``void close(ptr team)``, which takes null, too.
    """

    open: str
    close: str


@contextmanager
def open_team(f: Function, functions: TeamFunctions, work: Value) -> Iterator[tuple[Value, Value]]:
    """Open a team for so many multiply-adds; yields it and its threads. What is inside runs if there is one,
    and closes it.
    """
    memory = f.alloca(INT64, TEAM_WORDS, APART)
    team = f.call(f.module.declare(functions.open, POINTER, (POINTER, INT64)), [memory, work])
    with f.when(f.icmp("!=", team, null())):
        yield team, f.load(INT64, f.at(team, TeamMemory.threads.offset), 8)


def close_team(f: Function, functions: TeamFunctions, team: Value) -> None:
    """Close a team, which may be null."""
    f.call(f.module.declare(functions.close, VOID, (POINTER,)), [team])


@dataclass(frozen=True)
class TeamOfCall:
    """The team of one call of a kernel, or of several in a loop.

    Attributes
    ----------
    team : null for one thread.
    scratch_bytes : memory of the kernel for that many threads, and to align it.
    """

    team: Value
    scratch_bytes: Value


@contextmanager
def team_of_call(
    f: Function, kernel: EmbeddedKernel, functions: TeamFunctions | None, work: Value
) -> Iterator[TeamOfCall]:
    """Open a team for a kernel that takes one, and close it; what is between may not return.

    Parameters
    ----------
    work : multiply-adds of one call.
    """
    needed = int64(kernel.scratch_bytes + SCRATCH_ALIGNMENT)
    if functions is None or not kernel.takes_team:
        yield TeamOfCall(null(), needed)
        return
    memory = f.alloca(INT64, TEAM_WORDS, APART)
    team = f.call(f.module.declare(functions.open, POINTER, (POINTER, INT64)), [memory, work])
    with f.once_if(f.icmp("!=", team, null()), [int64(0)]) as (_, advance):
        threads = f.load(INT64, f.at(team, TeamMemory.threads.offset), 8)
        advance([f.mul(f.sub(threads, 1), int64(kernel.thread_bytes))])
    yield TeamOfCall(team, f.add(advance.results[0], needed))
    close_team(f, functions, team)
