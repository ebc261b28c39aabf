"""The process that measures one system: reads commands from a pipe, one JSON object per line.

A worker blocks in ``readline`` while others are measured, so it takes no processor time from them.

Commands and answers::

    {"prepare": {"index": 0, "gemm": {...}, "batch": 1, "seed": 7}}   -> {"seconds": 0.006}
    {"prepare": {"index": 1, "attention": {...}, "seed": 7}}         -> {"seconds": 0.011}
    {"prepare": {"index": 2, "operation": {...}, "seed": 7}}         -> {"seconds": 0.005}
    {"measure": {"index": 0}}                                        -> {"seconds": 0.00042}
    {"memory": {"attention": {...}, "seed": 7}}                      -> {"bytes": 2359296}
    {"peak": {"dtype": "u8", "b_dtype": "i8", "seconds": 0.006}}     -> {"gflops": 946.1}

The first three are how long one measurement will last, the fourth is how long one call took. What is
prepared is what was asked for, in the element types that the system has (`System.types`).

A failure is answered by ``{"error": class, "fields": {...}}`` or ``{"failure": text}``.
"""

from __future__ import annotations

import gc
import json
import math
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from importlib import import_module
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any

from tilewright.errors import TilewrightError
from tilewright.ops.gemm.problem import Gemm
from tilewright.records import dataclass
from tilewright.spec.dtype import parse_dtype
from tilewright.tools.explore.attention.cases import AttentionCase
from tilewright.tools.explore.attention.memory import extra_bytes
from tilewright.tools.explore.cases import Case
from tilewright.tools.explore.measured import Measured, Runnable

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

#: One measurement repeats the call until it lasts at least this long.
MEASUREMENT_SECONDS = 0.005
#: Each product runs this long before it is measured for the first time.
WARM_UP_SECONDS = 0.05
#: A first call that takes so long has compiled nothing worth mentioning; another one would not be faster.
WARM_FROM_SECONDS = 5.0
#: Calls shorter than this are preceded by untimed ones in each measurement; longer ones do not notice.
UNTIMED_BELOW_SECONDS = 0.05
#: Idle threads of BLAS and OpenMP libraries spin after a call, OpenBLAS's for 2^28 cycles of the time stamp
#: counter: 130 ms at 2 GHz. This lets them rest.
SETTLE_SECONDS = 0.2


@dataclass(frozen=True)
class TimedProduct:
    """A product that is ready to be measured.

    Attributes
    ----------
    product : the call.
    calls : how many calls one measurement times; together they last `MEASUREMENT_SECONDS` or longer.
    seconds : how long they lasted while warming up.
    untimed_calls : how many calls come before them, to bring caches and clock frequency to the state
        they have under repetition, which the system measured before has spoilt.
    """

    product: Runnable
    calls: int
    seconds: float
    untimed_calls: int


@dataclass
class Worker:
    """One system, the products prepared for it, and how to answer each command."""

    system: str
    threads: int
    target: str | None = None
    prepared: dict[int, TimedProduct] = field(default_factory=dict)

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        """Carry out one command; see the head of this file."""
        match command:
            case {"prepare": {"index": index, "gemm": gemm, "batch": batch, "seed": seed}}:
                self.prepared[index] = self._prepare(Case(Gemm(**gemm), batch), seed)
                return {"seconds": self.prepared[index].seconds}
            case {"prepare": {"index": index, "attention": attention, "seed": seed}}:
                self.prepared[index] = self._prepare(AttentionCase.from_request(attention), seed)
                return {"seconds": self.prepared[index].seconds}
            case {"prepare": {"index": index, "operation": operation, "seed": seed}}:
                self.prepared[index] = self._prepare(_operation_case(operation), seed)
                return {"seconds": self.prepared[index].seconds}
            case {"memory": {"attention": attention, "seed": seed}}:
                case = AttentionCase.from_request(attention)
                return {"bytes": extra_bytes(case, self.system, seed, self.threads)}
            case {"measure": {"index": index}}:
                return {"seconds": self._measure(self.prepared[index])}
            case {"peak": {"dtype": dtype, "b_dtype": b_dtype, "seconds": seconds}}:
                measure = peak_measurement(dtype, b_dtype, self.target)
                return {"gflops": measure_peak_of_threads(measure, self.threads, seconds)}
            case _:
                raise AssertionError(command)

    def _prepare(self, case: Measured, seed: int) -> TimedProduct:
        """Allocate, compute once, check the result, warm up, and count the calls of one measurement."""
        started = case.start(self.system, seed, self.threads, self.target)
        first = _seconds(started.product.run, 1)
        started.check()
        return warmed_up(started.product, first)

    def _measure(self, prepared: TimedProduct) -> float:
        """Seconds of one call, the mean over the calls of one measurement."""
        seconds = call_seconds(prepared)
        if self.threads > 1:
            time.sleep(SETTLE_SECONDS)
        return seconds


def _operation_case(fields: dict[str, Any]) -> Measured:
    """The case of an operation's request; its module imports every operation, which products do not need."""
    case: Measured = import_module("tilewright.tools.bench.case").OperationCase.from_request(fields)
    return case


def warmed_up(product: Runnable, first: float) -> TimedProduct:
    """A product that has run for a while since its first call of so many seconds; counts its calls."""
    long = first > WARM_FROM_SECONDS
    seconds, spent = (first, first) if long else (_seconds(product.run, 1), 0.0)
    while spent < WARM_UP_SECONDS:
        calls = _calls_lasting(MEASUREMENT_SECONDS, seconds)
        total = _seconds(product.run, calls)
        seconds = total / calls
        spent += total
    calls = _calls_lasting(MEASUREMENT_SECONDS, seconds)
    untimed = math.ceil(calls / 4) if seconds < UNTIMED_BELOW_SECONDS else 0
    return TimedProduct(product, calls, calls * seconds, untimed)


def call_seconds(prepared: TimedProduct) -> float:
    """Seconds of one call: one measurement, after the calls that are not timed."""
    prepared.product.run(prepared.untimed_calls)
    return _seconds(prepared.product.run, prepared.calls) / prepared.calls


def _calls_lasting(duration: float, seconds_per_call: float) -> int:
    """How many calls last at least `duration` seconds."""
    return max(1, math.ceil(duration / max(seconds_per_call, 1e-9)))


def _seconds(run: Callable[[int], None], calls: int) -> float:
    """Duration of `calls` calls, without the garbage collector in between."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        start = time.perf_counter()
        run(calls)
        return time.perf_counter() - start
    finally:
        if enabled:
            gc.enable()


def peak_measurement(dtype: str, b_dtype: str, target: str | None) -> Callable[[float], float]:
    """Measures the peak of the unit that multiplies two element types on a target, over some seconds."""
    from tilewright.compiler.peak import measure_peak
    from tilewright.compiler.target import resolve_target

    a, b, machine = parse_dtype(dtype), parse_dtype(b_dtype), resolve_target(target)
    return lambda seconds: measure_peak(a, machine, seconds, b_dtype=b)


def measure_peak_of_threads(measure: Callable[[float], float], threads: int, seconds: float) -> float:
    """The peak in GFLOPS of `threads` cores at once, over `seconds`: the sum of what each reaches."""
    if threads == 1:
        return measure(seconds)
    with ThreadPoolExecutor(threads) as pool:
        parts = [pool.submit(measure, seconds) for _ in range(threads)]
        return math.fsum(part.result() for part in parts)


def serve(worker: Worker, commands: TextIO, answers: TextIO) -> None:
    """Answer every command until the pipe is closed."""
    for line in iter(commands.readline, ""):
        answer: dict[str, Any]
        try:
            answer = worker.answer(json.loads(line))
        except TilewrightError as error:
            answer = {"error": type(error).__name__, "fields": error.fields}
        except Exception as error:  # the parent names the system and the reason
            answer = {"failure": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer, default=str), file=answers, flush=True)


def main(system: str, threads: int, target: str | None = None) -> None:
    """Run as a process: commands on standard input, answers on standard output.

    Whatever a library prints goes to standard error, so that it cannot mix with the answers.
    """
    import os

    answers = TextIOWrapper(os.fdopen(os.dup(1), "wb"), encoding="utf-8")
    os.dup2(2, 1)
    try:
        serve(Worker(system, threads, target), sys.stdin, answers)
    except (KeyboardInterrupt, BrokenPipeError):
        raise SystemExit(1) from None
