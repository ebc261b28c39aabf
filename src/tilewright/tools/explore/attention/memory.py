"""What memory one attention takes beyond its operands and its result, at most: each in a process of its own.

Linux tells the most memory that a process has had since it was last asked to forget it (proc(5): VmHWM, and
5 written to clear_refs). Before the call that counts, another one loads and compiles what it needs: a small
one, or where a system can tell what it keeps between calls, one of the same size
(`AttentionSystem.kept_bytes`, which is added).
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.errors import ToolMissing
from tilewright.records import dataclass
from tilewright.spec.dtype import parse_dtype
from tilewright.tools.explore.measure import WorkerProcess

if TYPE_CHECKING:
    from tilewright.tools.explore.attention.cases import AttentionCase

_STATUS, _FORGET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
#: What makes Linux forget the largest size so far: proc(5), clear_refs.
_FORGET_PEAK = "5"


@dataclass(frozen=True)
class MemoryRow:
    """One system on one problem; the fields are the JSON form."""

    problem: str
    system: str
    threads: int
    extra_bytes: int

    @property
    def json_fields(self) -> dict[str, Any]:
        """The fields as a report writes them."""
        return asdict(self)


def extra_bytes(case: AttentionCase, system: str, seed: int, threads: int) -> int:
    """The most memory that one call of a system takes in this process, beyond operands and result.

    Masks, copies and whatever else a system prepares from the operands count too.

    Raises
    ------
    ToolMissing : this is not Linux, whose /proc tells it.
    WrongResult : the call computed something else.
    """
    row = case.row_of(system)
    before = case if row.kept_bytes() is not None else case.small
    before.start(system, seed, threads, None).product.run(1)
    arrays = case.operands(seed)
    _forget_peak()
    held = _status_bytes("VmRSS")
    call = row.prepare(case, arrays, threads)
    _forget_peak()  # what ways took that were tried and not chosen
    call.run(1)
    grown = _status_bytes("VmHWM") - held
    case.check(system, arrays, call.result(), seed)
    result = case.batch * case.heads * case.queries * case.head_dim * parse_dtype(case.dtype).size
    return max(0, grown - result) + (row.kept_bytes() or 0)


def _forget_peak() -> None:
    """Gives back what is free, and begins to look for the largest size anew."""
    gc.collect()
    with suppress(AttributeError):  # a C library that is not glibc
        ctypes.CDLL(None).malloc_trim(0)
    try:
        _FORGET.write_text(_FORGET_PEAK, encoding="ascii")
    except OSError as error:
        raise ToolMissing(purpose="measuring memory", tool=str(_FORGET), package="linux") from error


def _status_bytes(name: str) -> int:
    """One size of this process, which Linux gives in KiB."""
    lines = _STATUS.read_text(encoding="ascii").splitlines()
    (found,) = (line.split()[1] for line in lines if line.startswith(f"{name}:"))
    return int(found) * 1024


def measure_memory(
    cases: tuple[AttentionCase, ...],
    systems: tuple[str, ...],
    threads: int,
    seed: int = 0,
    on_step: Callable[[], None] = lambda: None,
) -> tuple[MemoryRow, ...]:
    """The memory of every system on every case, each in a new process.

    Raises
    ------
    ToolMissing, WrongResult, WorkerFailed
    """
    rows = []
    for index, case in enumerate(cases):
        for system in systems:
            with WorkerProcess(system, threads) as worker:
                found = worker.ask("memory", **case.request, seed=seed + index)["bytes"]
            rows.append(MemoryRow(case.name, system, threads, found))
            on_step()
    return tuple(rows)
