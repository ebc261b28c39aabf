"""Transposes against `memcpy` and peers: bytes read and written in a second.

Each round has operands of its own, because where the pages of an array lie in memory decides which of
its lines meet in the caches. In a round every system is measured once, in a new random order, and right
before each of them `memcpy` moves the same bytes for as long. Reported are the median speed with its 95 %
confidence interval, and the median of its share of that `memcpy`.

`kernel` is the compiled kernel called in a compiled loop, as `memcpy` is; the other systems are called from
Python, with the result's memory given.
"""

from __future__ import annotations

import ctypes
import json
import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilewright.calls.strided_loop import KERNEL_ARGUMENTS, loop_over_arrays, strided_loop_record
from tilewright.errors import InvalidChoice, InvalidSize, WrongMove, shown
from tilewright.llvm.build import Module
from tilewright.llvm.builtin import address_of
from tilewright.llvm.jit import Linked
from tilewright.llvm.target import data_layout, emit_object
from tilewright.llvm.values import INT64, POINTER, VOID
from tilewright.machine.host import host_machine
from tilewright.ops.transpose.call import move_kernel
from tilewright.preparing import once
from tilewright.records import dataclass
from tilewright.spec.dtype import DType, parse_dtype
from tilewright.tools.explore.statistics import median, median_interval
from tilewright.tools.explore.systems import NumPy, Torch, parse_peers

Array: TypeAlias = NDArray[Any]
#: Computes b = aᵀ a number of times.
Runner: TypeAlias = Callable[[int], object]

#: One measurement repeats the call until it lasts at least this long.
MEASUREMENT_SECONDS = 0.005
#: Measurements of each system on each size.
REPEAT = 20
#: The peers that transpose.
TRANSPOSING = (NumPy(), Torch())

_SIZES = re.compile(r"(\d+)(?:x(\d+))?")


@dataclass(frozen=True)
class MoveRow:
    """One system on one size; the fields are the JSON form."""

    problem: str
    dtype: str
    rows: int
    columns: int
    system: str
    gib_per_second: float
    gib_per_second_ci: tuple[float, float]
    share_of_memcpy: float
    memcpy_gib_per_second: float


@dataclass(frozen=True)
class MoveReport:
    """A finished measurement; the fields are the JSON form."""

    machine: Mapping[str, object]
    rows: tuple[MoveRow, ...]

    def to_json(self) -> str:
        """The report as a JSON text."""
        return json.dumps(asdict(self), indent=2) + "\n"


def parse_shapes(text: str) -> tuple[tuple[int, int], ...]:
    """The shapes of a comma list of "512" (square) and "1000x1537" (rows and columns of the input).

    >>> parse_shapes("64,1000x3")
    ((64, 64), (1000, 3))
    """
    found = []
    for item in (part.strip() for part in text.split(",")):
        match = _SIZES.fullmatch(item)
        if match is None:
            raise InvalidChoice(name="size", found=shown(item), allowed="N or MxN, such as 512 or 1000x1537")
        rows, columns = int(match[1]), int(match[2] or match[1])
        if min(rows, columns) < 1:
            raise InvalidSize(name="size", found=item, required="at least 1 to be measured")
        found.append((rows, columns))
    return tuple(dict.fromkeys(found))


# --- what is measured -----------------------------------------------------------------------------------

_COPY = "tw_memcpy"


@once
def _memcpy_code() -> Linked:
    """`memcpy` of the C library in the signature of a move kernel: the first integer is the bytes."""
    machine = host_machine()
    module = Module(_COPY, machine.triple, data_layout(machine))
    arguments = [("a", POINTER), ("b", POINTER), *((name, INT64) for name in KERNEL_ARGUMENTS)]
    f = module.define(_COPY, VOID, arguments, exported=True)
    g = f.arguments
    f.call(
        module.declare("memcpy", POINTER, (POINTER, POINTER, INT64)), [g["b"], g["a"], g[KERNEL_ARGUMENTS[0]]]
    )
    f.ret()
    imports = {"memcpy": address_of(ctypes.CDLL(None).memcpy)}
    return Linked(emit_object(str(module), _COPY, machine), (_COPY,), imports)


def _looped(address: int, a: Array, b: Array, integers: Sequence[int]) -> Runner:
    """A kernel with the same operands again and again, in a compiled loop."""

    def run(calls: int) -> None:
        loop_over_arrays(strided_loop_record(address, integers, ((calls, 0, 0),)), a, b)

    return run


def _memcpy(a: Array, b: Array) -> Runner:
    return _looped(_memcpy_code().address(_COPY), a, b, (a.nbytes, 0, 0, 0, 0, 0))


def _kernel(a: Array, b: Array) -> Runner:
    rows, columns = a.shape
    return _looped(move_kernel(a.itemsize).address, a, b, (1, columns, rows, 1, columns, rows))


def _called(function: Callable[[], object]) -> Runner:
    def run(calls: int) -> None:
        for _ in range(calls):
            function()

    return run


def _tilewright(a: Array, b: Array) -> Runner:
    transpose = import_module("tilewright").transpose
    return _called(lambda: transpose(a, out=b))


def _numpy(a: Array, b: Array) -> Runner:
    return _called(lambda: np.copyto(b, a.T))


def _torch(a: Array, b: Array) -> Runner:
    torch = import_module("torch")
    torch.set_num_threads(1)
    source, target = torch.from_numpy(a), torch.from_numpy(b)
    return _called(lambda: target.copy_(source.t()))


#: How each system is prepared. A new peer is a row here and in `systems.py`.
SYSTEMS: dict[str, Callable[[Array, Array], Runner]] = {
    "kernel": _kernel,
    "tilewright": _tilewright,
    "numpy": _numpy,
    "torch": _torch,
}


# --- measuring ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MovePlan:
    """What is measured: shapes of one element type, and peers beside tilewright."""

    shapes: tuple[tuple[int, int], ...]
    dtype: DType
    peers: tuple[str, ...]
    repeat: int = REPEAT
    seed: int = 0

    @classmethod
    def parse(cls, sizes: str, dtype: str, peers: str, repeat: int, seed: int) -> MovePlan:
        """The plan of a command line."""
        element = parse_dtype(dtype)
        return cls(parse_shapes(sizes), element, parse_peers(peers, TRANSPOSING), repeat, seed)

    @property
    def systems(self) -> tuple[str, ...]:
        """Everything that is measured."""
        return ("kernel", "tilewright", *self.peers)


def measure_moves(
    plan: MovePlan, machine: Mapping[str, object], on_step: Callable[[], None] = lambda: None
) -> MoveReport:
    """Carry out a plan; the method is described at the head of this file.

    Parameters
    ----------
    plan : what is measured.
    machine : what the report says about the machine.
    on_step : called after each round.

    Raises
    ------
    WrongMove : a system's result is not the transpose.
    """
    order = random.Random(plan.seed)  # noqa: S311  (an order, not a secret)
    rows: list[MoveRow] = []
    for shape in plan.shapes:
        values = _values(shape, plan.dtype, plan.seed)
        samples: dict[str, list[tuple[float, float]]] = {system: [] for system in plan.systems}
        for _ in range(plan.repeat):
            a, b = values.copy(), np.zeros(shape[::-1], values.dtype)
            todo = list(plan.systems)
            order.shuffle(todo)
            for system in todo:
                run = SYSTEMS[system](a, b)
                _check(system, a, b, run)
                samples[system].append((_speed(_memcpy(a, b), a), _speed(run, a)))
            on_step()
        rows.extend(_row(plan, shape, system, pairs) for system, pairs in samples.items())
    return MoveReport(machine, tuple(rows))


def _values(shape: tuple[int, int], dtype: DType, seed: int) -> Array:
    """Random bytes, never NaN."""
    bits = np.random.default_rng(seed).integers(0, 64, (shape[0], shape[1] * dtype.size), np.uint8)
    values: Array = bits.view(dtype.numpy)
    return values


def _check(system: str, a: Array, b: Array, run: Runner) -> None:
    b[...] = 0
    run(1)
    if not np.array_equal(b, a.T):
        raise WrongMove(system=system, shape=a.shape, dtype=a.dtype)


def _speed(run: Runner, a: Array) -> float:
    """GiB read and written in a second, by calls that together last long enough, after untimed ones."""
    calls, spent = 1, _seconds(run, 1)
    while spent < MEASUREMENT_SECONDS / 4:
        calls *= 2
        spent = _seconds(run, calls)
    calls = max(1, round(calls * MEASUREMENT_SECONDS / spent))
    return 2 * a.nbytes * calls / _seconds(run, calls) / 2**30


def _seconds(run: Runner, calls: int) -> float:
    start = time.perf_counter()
    run(calls)
    return time.perf_counter() - start


def _row(plan: MovePlan, shape: tuple[int, int], system: str, pairs: list[tuple[float, float]]) -> MoveRow:
    speeds = [speed for _, speed in pairs]
    return MoveRow(
        problem=f"transpose {shape[0]}x{shape[1]}",
        dtype=str(plan.dtype),
        rows=shape[0],
        columns=shape[1],
        system=system,
        gib_per_second=median(speeds),
        gib_per_second_ci=median_interval(speeds),
        share_of_memcpy=median([speed / copied for copied, speed in pairs]),
        memcpy_gib_per_second=median([copied for copied, _ in pairs]),
    )
